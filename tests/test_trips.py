"""No call travels farther than it does: bounds on what `tools.trips` counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tools are not installed

from tools import trips

BOUNDS = {
    "wald": (275, 180, 31),
    "wald(by=)": (415, 205, 32),
    "corrected_t(by=)": (530, 225, 31),
    "compare": (800, 250, 36),
    "dask wald": (800, 235, 26),
    "dask compare": (1_300, 270, 32),
    "summary": (1_620, 390, 44),
    "report": (12_600, 760, 70),
}
"""Calls, functions and modules; to be lowered whenever they fall."""


@pytest.mark.parametrize("name", BOUNDS)
def test_trips_stay_as_short_as_they_are(name):
    trip = trips.measure(name)
    found = trip.calls.total(), len(trip.calls), len(trip.modules)
    assert all(ours <= most for ours, most in zip(found, BOUNDS[name], strict=True)), found
    assert trip.read in (None, 1.0)  # every chunk once
