"""No call travels farther than it does: bounds on what `tools.trips` counts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the tools are not installed

from tools import trips

BOUNDS = {
    "wald": (117, 91, 17),
    "wald(by=)": (164, 109, 18),
    "corrected_t(by=)": (203, 124, 18),
    "compare": (201, 126, 21),
    "dask wald": (529, 173, 20),
    "dask compare": (726, 219, 25),
    "summary": (634, 291, 37),
    "report": (6_289, 694, 65),  # each plot is a module of its own; works are looked up for links
}
"""Calls, functions and modules; to be lowered whenever they fall."""


@pytest.mark.parametrize("name", BOUNDS)
def test_trips_stay_as_short_as_they_are(name, monkeypatch):
    """Without what matplotlib does to write a plot, which takes most of the time of a report."""
    write = "matplotlib.backends.backend_svg.FigureCanvasSVG.print_svg"
    monkeypatch.setattr(write, lambda self, file, **_: file.write("<svg></svg>"))
    trip = trips.measure(name)
    found = trip.calls.total(), len(trip.calls), len(trip.modules)
    assert all(ours <= most for ours, most in zip(found, BOUNDS[name], strict=True)), found
    assert trip.read in (None, 1.0)  # every chunk once
