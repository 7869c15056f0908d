"""Every public name has a page, and says what it needs, gives, refuses and rests on."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from together import together

import cvstats
from cvstats.accessor import CVAccessor
from cvstats.intervals import list_methods

ROOMS = {name: getattr(cvstats, name) for name in ("datasets", "plans", "plot")}
PUBLIC = {name: getattr(cvstats, name) for name in cvstats.__all__} | {
    f"{room}.{name}": getattr(module, name)
    for room, module in ROOMS.items()
    for name in module.__all__
}
FUNCTIONS = sorted(name for name, what in PUBLIC.items() if inspect.isfunction(what))
CLASSES = sorted(name for name, what in PUBLIC.items() if inspect.isclass(what))
SECTIONS = ("Parameters", "Returns", "Raises", "References", "Examples")
# These make files, pages or tables of results, or resample, and rest on no paper.
PLAIN = {"as_log", "read_log", "read_predictions", "report", "save_log", "scan_dask"} | {
    "scan_parquet", "to_apa", "to_latex", "to_markdown", "diagnose", "methods",
}  # fmt: skip
BARE = {"datasets.list", "plans.leave_one_out", "plans.leave_one_source_out"}
WITHOUT = {
    "Parameters": BARE,
    "Returns": {"save_log"},
    "Raises": {"methods", "to_apa", "to_latex", "to_markdown"} | BARE,
    "References": PLAIN | {name for name in FUNCTIONS if name.startswith(("datasets.", "plans."))},
    "Examples": set(),
}
FORMULA = re.compile(r"``[^`]*[=/^*][^`]*``|\.\. math::|:math:`")


def words(what):
    return inspect.getdoc(what) or ""


DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def entries(tmp_path, monkeypatch):
    """List the names with a page of their own, by the module they are looked up in.

    The page of the API includes lists that are written for each build of the documentation.
    """
    monkeypatch.syspath_prepend(DOCS)
    lists = import_module("method_lists")
    monkeypatch.setattr(lists, "FOLDER", tmp_path)
    lists.write_lists()
    page = re.sub(
        r"```\{include\} (_\w+\.md)\n```",
        lambda match: (tmp_path / match[1]).read_text("utf-8"),
        (DOCS / "api" / "index.md").read_text("utf-8"),
    )
    module, found = "", {}
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            found.setdefault(module, []).append(line.strip())
    return found


@together(FUNCTIONS)
def test_sections(name):
    text = words(PUBLIC[name])
    found = {section for section in SECTIONS if f"\n{section}\n{'-' * len(section)}\n" in text}
    assert {s for s in SECTIONS if name not in WITHOUT[s]} <= found, name
    assert ">>>" in text
    first = text.split()[0]
    assert not first.endswith("s") or first.endswith("ss"), first  # a verb, for numpydoc


@together([name for name in FUNCTIONS if name not in BARE])
def test_every_parameter_is_told(name):
    text = words(PUBLIC[name])
    told = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = [
        part.strip("* ")
        for line in told.splitlines()
        if line and not line.startswith(" ")
        for part in line.split(" : ")[0].split(",")
    ]
    assert names == list(inspect.signature(PUBLIC[name]).parameters)


METHODS = sorted({method.name for method in list_methods()} - {"difference"})  # which makes a log


@together(METHODS)
def test_a_method_says_what_it_covers_and_how_it_is_computed(name):
    text = words(PUBLIC[name])
    summary = text.split("Parameters\n----------\n")[0] + text.split("\nNotes\n-----\n")[-1]
    assert "target" in summary, name
    assert FORMULA.search(text), name


@together(METHODS)
def test_a_method_names_its_neighbours(name):
    assert "\nSee Also\n--------\n" in words(PUBLIC[name]), name
    section = words(PUBLIC[name]).split("\nSee Also\n--------\n")[1].split("\n\n")[0]
    others = re.findall(r"^cvstats\.([\w.]+) : [A-Z].*\.$", section, re.MULTILINE)
    assert len(others) == len(section.splitlines())
    assert 2 <= len(others) <= 4
    assert set(others) <= set(PUBLIC) - {name}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_an_example(name):
    assert "Examples\n--------\n" in words(PUBLIC[name])
    assert ">>>" in words(PUBLIC[name])


def test_every_public_name_has_a_page(entries):
    modules = {name for name, what in PUBLIC.items() if inspect.ismodule(what)}
    pages = {name.removeprefix("errors.") for name in entries["cvstats"]}
    assert pages == set(PUBLIC) - modules


def test_every_method_of_the_accessor_has_a_page(entries):
    methods = {name for name in dir(CVAccessor) if not name.startswith("_")} - {"plot"}
    assert methods <= set(entries["cvstats"])


def test_plots_are_methods_too():
    methods = {name for name in dir(cvstats.plot.Plots) if not name.startswith("_")}
    assert methods == {n for n in cvstats.plot.__all__ if inspect.isfunction(PUBLIC[f"plot.{n}"])}
