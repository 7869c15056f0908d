"""No call travels farther than it does: bounds on what `tools.trips` counts."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats

sys.path.insert(0, str(Path(__file__).parents[2]))  # the tools are not installed

from tools import trips

BOUNDS = {
    "wald": (117, 91, 17),
    "wald(by=)": (164, 109, 18),
    "corrected_t(by=)": (203, 124, 18),
    "compare": (201, 126, 21),
    "dask wald": (524, 173, 20),
    "dask compare": (721, 217, 25),
    "summary": (619, 290, 37),
    "report": (6_223, 692, 65),  # each plot is a module of its own; works are looked up for links
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


def test_losses_of_groups_between_0_and_1_are_read_once():
    """Few of them may be errors, which only 0/1 losses are."""
    losses = pd.Series(np.random.default_rng(1).random(24))
    losses.index = pd.MultiIndex.from_arrays([np.arange(24) % 3, range(24)])
    losses = losses.rename_axis(["source", "point"])
    assert trips.follow(lambda: cvstats.wald(losses, by="source")).passes == 1
