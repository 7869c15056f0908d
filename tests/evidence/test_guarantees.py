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

BREAKS = {
    "nearest neighbour": "stable",
    "nearest label": "stable",
    "deep tree": "stable",
    "sparse logit": "stable",
    "interpolation peak": "stable",
    "ar1 0.6": "independent",
    "ar1 0.9": "independent",
    "tested groups": "independent",
    "seeds": "independent",
    "groups": "stable",
    "unequal groups": "stable",
}
"""Populations in which something fails that a guarantee asks for: the word that says so there."""


def promised(row):
    """The lowest and the highest coverage that the guarantee allows as the points grow."""
    words = GUARANTEES.get(row["method"], "none")
    if words.startswith(("conservative", "finite-sample")):
        return LEVEL, 1.0
    return (LEVEL, LEVEL) if words.startswith("exact") else (0.0, 1.0)


def largest_logs():
    """Of each question the row with the most points."""
    found = {}
    for row in STUDY["intervals"]:
        if row["coverage"] is None:
            continue
        key = row["method"], str(row["options"]), row["population"], row["plan"], row["target"]
        if key not in found or row["n"] > found[key]["n"]:
            found[key] = row
    return list(found.values())


def too_low(coverage, runs, lowest):
    """Whether a share of runs is below what is promised, by more than chance and slack."""
    return coverage < lowest - SLACK - 3 * sqrt(LEVEL * (1 - LEVEL) / runs)


def silent_misses():
    """What is guaranteed, did not show at the largest number of points, and had no label."""
    for row in largest_logs():
        runs = round(row["runs"] * (1 - row["cautioned"]))
        if runs >= FEW and too_low(row["silent_coverage"], runs, promised(row)[0]):
            yield row["method"], row["population"], row["n"], row["silent_coverage"]


def test_what_is_guaranteed_shows_or_has_a_label():
    unexplained = [
        (method, population, n, coverage)
        for method, population, n, coverage in silent_misses()
        if BREAKS.get(population, "nothing") not in GUARANTEES[method]
    ]
    assert unexplained == []


@pytest.mark.parametrize("population", BREAKS)
def test_each_exception_is_needed(population):
    assert population in {missed for _, missed, _, _ in silent_misses()}


def test_a_guarantee_that_does_not_hold_is_found(monkeypatch):
    monkeypatch.setitem(GUARANTEES, "location_shifted", "exact as the points grow")
    assert any(method == "location_shifted" for method, *_ in silent_misses())
