"""No call travels farther than it does: bounds on what `tools.trips` counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tools are not installed

from tools import trips

BOUNDS = {
    "wald": (130, 105, 18),
    "wald(by=)": (212, 130, 20),
    "corrected_t(by=)": (250, 145, 21),
    "compare": (235, 145, 25),
    "dask wald": (700, 222, 22),
    "dask compare": (840, 255, 30),
    "summary": (970, 325, 42),
    "report": (8_400, 715, 71),
}
"""Calls, functions and modules; to be lowered whenever they fall."""


@pytest.mark.parametrize("name", BOUNDS)
def test_trips_stay_as_short_as_they_are(name):
    trip = trips.measure(name)
    found = trip.calls.total(), len(trip.calls), len(trip.modules)
    assert all(ours <= most for ours, most in zip(found, BOUNDS[name], strict=True)), found
    assert trip.read in (None, 1.0)  # every chunk once
