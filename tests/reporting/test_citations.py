"""BibTeX of the works behind results: every reference has its entry."""

import re
from itertools import product
from pathlib import Path

import golden
import pandas as pd
import pytest
from together import together

import cvstats
from cvstats.comparisons.compare import FLEMING
from cvstats.comparisons.prediction_powered import REFERENCE
from cvstats.core.results import WORKS
from cvstats.formatting import read_works
from cvstats.registry import FUNCTIONS, find_function

RECORDS = [getattr(find_function(name), "record", None) for name in FUNCTIONS]
STORED = [kind.get("attrs") or {} for kinds in golden.read()["answers"].values()
          for kind in kinds.values() if isinstance(kind, dict)]  # fmt: skip
OTHERS = (REFERENCE, FLEMING, *(work for works in WORKS.values() for work in works.values()))
REFERENCES = sorted({
    *(record.reference for record in RECORDS if record and record.reference),
    *(attrs["reference"] for attrs in STORED if attrs.get("reference")),
    *OTHERS,
})  # fmt: skip
YEAR = re.compile(r"\((\d{4})\)")


PAGE = Path(__file__).parents[2] / "docs" / "theory" / "index.md"


def letters(title):
    return re.sub(r"[^a-z0-9+]", "", title.lower().replace("×", "x"))


def test_the_page_of_references_lists_every_work():
    text = letters(PAGE.read_text("utf-8"))
    missing = [key for key, work in read_works().items()
               if key != "cvstats" and letters(work["title"]) not in text]  # fmt: skip
    assert not missing


def as_result(reference):
    table = pd.DataFrame({"estimate": [1.0]})
    table.attrs["reference"] = reference
    return table


@together(REFERENCES)
def test_every_work_of_a_reference_has_an_entry_of_its_year(reference):
    found = cvstats.cite(as_result(reference)).split("\n\n")
    years = sorted(re.search(r"year +=.*?(\d{4})", entry).group(1) for entry in found[:-1])
    assert years == sorted(YEAR.findall(reference))
    for entry in found[:-1]:
        surname = re.search(r"author +=.\s*\{(?:\{?)([^,]+),", entry).group(1)
        assert re.sub(r"\{\\v\{s\}\}", "s", surname) in reference


def test_each_work_is_found_by_one_part_only():
    finds = [facts["find"] for facts in read_works().values() if "find" in facts]
    assert len(set(finds)) == len(finds)
    every = "; ".join(REFERENCES)
    assert [find for find in finds if find not in every] == []


def test_a_result_and_the_package_are_cited():
    log = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    told = cvstats.cite(losses.cvci.wald())
    assert told.startswith("@inproceedings{bayle2020,\n  title         = {Cross-validation ")
    assert "  eprint        = {2007.12671},\n  archiveprefix = {arXiv},\n}" in told
    assert (
        f"  version       = {{{cvstats.__version__}}},\n}}"
        in told.partition("@software{cvstats")[2]
    )
    assert cvstats.cite(losses.cvci.best_set()).count("@") == 3
    assert told == cvstats.cite(losses.to_xarray().cvci.wald())


ADDED = {
    "wilson": ("interval", {}, "interval"),
    "clopper-pearson": ("wald", {"interval": "clopper-pearson"}, "interval"),
    "holm": ("compare", {}, "adjust"),
    "bh": ("compare", {"adjust": "bh"}, "adjust"),
    "max-t": ("compare", {"adjust": "max-t", "rng": 0}, "adjust"),
}


@together(
    product(
        ADDED,
        ["frame", "dense array", "dask by point", "moments", "groups", "dask grid with gaps"],
    ),
    by=lambda name, box: name,
)
def test_works_of_limits_and_adjustments_are_named_once(name, box):
    function, options, attr = ADDED[name]
    case = golden.Case(function, "binary", options)
    found = golden.CONTAINERS[box](case, 0.0).attrs["reference"].split("; ")
    assert found.count(WORKS[attr][name]) == 1
    assert len(set(found)) == len(found)


def test_one_comparison_is_not_adjusted():
    pair = golden.log_named("binary").iloc[:, :2]
    assert WORKS["adjust"]["holm"] not in pair.cvci.compare().attrs["reference"]


def test_what_is_no_result():
    message = "this DataFrame has no attrs['reference']. Expected the result of a method"
    with pytest.raises(cvstats.LogError, match=re.escape(message)):
        cvstats.cite(pd.DataFrame({"estimate": [1.0]}))
