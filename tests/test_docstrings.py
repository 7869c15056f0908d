"""Every public function says what it needs, gives, refuses and rests on, with an example."""

import inspect

import pytest

import cvstats

FUNCTIONS = sorted(name for name in cvstats.__all__ if inspect.isfunction(getattr(cvstats, name)))
SECTIONS = ("Parameters", "Returns", "Raises", "References", "Examples")
# These make files, pages or tables of results, and rest on no paper.
PLAIN = {"as_log", "read_log", "read_predictions", "report", "save_log", "scan_dask"} | {
    "scan_parquet", "to_latex", "to_markdown", "diagnose", "methods",
}  # fmt: skip
NOTHING_RETURNED = {"save_log"}
NOTHING_REFUSED = {"methods", "to_latex", "to_markdown"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections(name):
    text = inspect.getdoc(getattr(cvstats, name))
    found = [section for section in SECTIONS if f"\n{section}\n{'-' * len(section)}\n" in text]
    needed = set(SECTIONS)
    if name in PLAIN:
        needed -= {"References"}
    if name in NOTHING_RETURNED:
        needed -= {"Returns"}
    if name in NOTHING_REFUSED:
        needed -= {"Raises"}
    assert needed <= set(found), name
    assert ">>>" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_told(name):
    function = getattr(cvstats, name)
    text = inspect.getdoc(function)
    told = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = [
        part.strip("* ")
        for line in told.splitlines()
        if line and not line.startswith(" ")
        for part in line.split(" : ")[0].split(",")
    ]
    assert names == list(inspect.signature(function).parameters)
