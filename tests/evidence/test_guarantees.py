"""What each method says that it guarantees, held against what the study measured."""

from math import sqrt

import pytest

from cvstats.intervals import list_methods
from cvstats.recommend import read_figures
from evidence.metrics import QUESTIONS

STUDY = read_figures()
GUARANTEES = {method.name: method.guarantee for method in list_methods()}
LEVEL = 0.95
SLACK = 0.015
"""How far the largest logs of the study may still be from what holds as the points grow."""
MOST = 0.5
"""Where more logs than this share have a label, the label says where not."""
PROMISES = (
    "exact",
    "asymptotically exact",
    "conservative",
    "finite-sample",
    "that of the interval",
    "given the models",
)

BREAKS = {
    "nearest label": "stable",
    "sparse logit": "stable",
    "interpolation peak": "stable",
    "ar1 0.6": "independent",
    "ar1 0.9": "independent",
    "neighbours": "relatively stable",
    "forecasts": "independent",
}
"""Populations in which something fails that a guarantee asks for, and the word that says so."""


def guarantee(row):
    """The guarantee of a method, and of the interval that a comparison was asked to use."""
    words = GUARANTEES[row["method"]]
    based_on = row["options"].get("method")
    return f"{words}; {GUARANTEES[based_on]}" if based_on in GUARANTEES else words


def questions():
    """Of each question the row with the most points, and its share of right answers."""
    found = {}
    for row in (*STUDY["intervals"], *STUDY["comparisons"]):
        wrong = 1 - row["coverage"] if row.get("coverage") is not None else row.get("size")
        if wrong is None or row["method"] not in GUARANTEES:
            continue
        key = row["method"], str(row["options"]), row["population"], row["plan"], row["target"]
        if key not in found or row["n"] > found[key][0]["n"]:
            found[key] = row, 1 - wrong
    return list(found.values())


def silent_misses():
    """What is guaranteed, did not show at the largest number of points, and had no label."""
    for row, right in questions():
        if guarantee(row).startswith(PROMISES) and row["cautioned"] < MOST:
            least = LEVEL - SLACK - 3 * sqrt(LEVEL * (1 - LEVEL) / row["runs"])
            if right < least:
                yield row, right


def test_what_is_guaranteed_shows_or_has_a_label():
    unexplained = [
        (row["method"], row["options"], row["population"], row["n"], right)
        for row, right in silent_misses()
        if BREAKS.get(row["population"], "nothing") not in guarantee(row)
    ]
    assert unexplained == []


@pytest.mark.parametrize("population", BREAKS)
def test_each_exception_is_needed(population):
    assert population in {row["population"] for row, _ in silent_misses()}


def test_a_guarantee_that_does_not_hold_is_found(monkeypatch):
    monkeypatch.setitem(GUARANTEES, "five_by_two", "asymptotically exact in the number of points")
    found = {row["population"] for row, _ in silent_misses() if row["method"] == "five_by_two"}
    assert found - set(BREAKS)


def test_metrics_and_logs_made_from_logs_are_covered_or_have_a_label():
    found = [row for row in STUDY["metrics"] if "cautioned" in row]
    assert {row["method"] for row in found} == set(QUESTIONS)
    for row in found:
        if row["cautioned"] <= 0.99:
            silent = max(1 - row["cautioned"], 1 - MOST) * row["runs"]
            least = LEVEL - SLACK - 3 * sqrt(LEVEL * (1 - LEVEL) / silent)
            assert row["silent"] >= least, row
