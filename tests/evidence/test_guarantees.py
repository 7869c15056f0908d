"""What each method says that it guarantees, held against what the study measured."""

from __future__ import annotations

from math import sqrt

import pytest

from cvstats.evidence import read_figures
from cvstats.registry import list_methods

STUDY = read_figures()
GUARANTEES = {method.name: method.guarantee for method in list_methods()}
LEVEL = 0.95
SLACK = 0.015
"""How far the largest logs of the study may still be from what holds as the points grow."""
FEW = 30
"""Fewer runs without a label say nothing."""
LARGE = 1000
"""Fewer points say nothing of what holds as the points grow."""

BREAKS = {
    "nearest neighbour": "stable",
    "nearest label": "stable",
    "sparse logit": "stable",
    "interpolation peak": "stable",
    "ar1 0.6": "independent",
    "ar1 0.9": "independent",
    "zero or mean": "relatively stable",
    "extra feature": "relatively stable",
    "soft thresholds": "relatively stable",
    "neighbours": "relatively stable",
    "ten neighbours": "relatively stable",
    "forecasts": "independent",
}
"""Populations in which something fails that a guarantee asks for, and the word that says so."""


def lowest(row):
    """The share of intervals, or of tests of equal models, that has to be right."""
    words = GUARANTEES[row["method"]]
    promises = (
        "exact",
        "conservative",
        "finite-sample",
        "that of the interval",
        "given the models",
    )
    return LEVEL if words.startswith(promises) else 0.0


def questions():
    """Of each question the row with the most points, and its share of right answers."""
    found = {}
    for row in (*STUDY["intervals"], *STUDY["comparisons"]):
        key = row["method"], str(row["options"]), row["population"], row["plan"], row["target"]
        if row["method"] in GUARANTEES and (key not in found or row["n"] > found[key]["n"]):
            found[key] = row
    for row in found.values():
        share = row["silent_coverage"] if "coverage" in row else row["silent_size"]
        if share is not None:  # or every run had a label
            yield row, share if "coverage" in row else 1 - share


def silent_misses():
    """What is guaranteed, did not show at the largest number of points, and had no label."""
    for row, right in questions():
        runs = round(row["runs"] * (1 - row["cautioned"]))
        least = lowest(row) - SLACK - 3 * sqrt(LEVEL * (1 - LEVEL) / max(runs, 1))
        if runs >= FEW and right < least:
            yield row


def is_explained(row):
    """Whether the words of the guarantee, or of the interval beneath it, ask for what fails."""
    beneath = GUARANTEES.get(row["options"].get("method"), "")
    return BREAKS.get(row["population"], "nothing") in GUARANTEES[row["method"]] + beneath


def test_what_is_guaranteed_shows_or_has_a_label():
    assert [row for row in silent_misses() if row["n"] >= LARGE and not is_explained(row)] == []


@pytest.mark.parametrize("population", BREAKS)
def test_each_exception_is_needed(population):
    assert population in {row["population"] for row in silent_misses()}


def test_a_guarantee_that_does_not_hold_is_found(monkeypatch):
    monkeypatch.setitem(GUARANTEES, "location_shifted", "exact as the points grow")
    assert any(row["method"] == "location_shifted" for row in silent_misses())
