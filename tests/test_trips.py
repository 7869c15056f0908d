"""No call travels farther than it does: bounds on what `tools.trips` counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tools are not installed

from tools import trips

BOUNDS = {
    "wald": (128, 101, 18),
    "wald(by=)": (178, 122, 20),
    "corrected_t(by=)": (216, 135, 20),
    "compare": (215, 141, 23),
    "dask wald": (677, 210, 21),
    "dask compare": (823, 249, 27),
    "summary": (687, 314, 40),
    "report": (7_060, 735, 75),  # each plot is a module of its own; works are looked up for links
}
"""Calls, functions and modules; to be lowered whenever they fall."""


@pytest.mark.parametrize("name", BOUNDS)
def test_trips_stay_as_short_as_they_are(name):
    trip = trips.measure(name)
    found = trip.calls.total(), len(trip.calls), len(trip.modules)
    assert all(ours <= most for ours, most in zip(found, BOUNDS[name], strict=True)), found
    assert trip.read in (None, 1.0)  # every chunk once
