"""An offset of 1e9 changes no width, in memory, on dask and in batches alike."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import only_row

import cvstats

LEVEL = 1e9
WIDTH = 1e-9
"""Relative; the contract of the package is 1e-6, for logs of any length."""

BETWEEN = [
    ("quadratic", {}), ("quadratic", {"estimator": "theta_2"}),
    ("quadratic", {"estimator": "theta_3"}), ("cv_t", {}), ("corrected_t", {}),
    ("out_of_source", {}), ("clustered", {}), ("interval", {"method": "cv_t"}),
    ("wald", {}), ("wald", {"variance": "within-fold"}), ("naive", {}),
]  # fmt: skip
"""Methods with their options; the widths of most come from differences between cells."""


@cache
def near_and_far(sources, n=30_000):
    """A log, and the same log a level higher, no loss rounded."""
    draw = np.random.default_rng(0)
    losses = draw.normal(size=(n, 2)) + LEVEL - LEVEL  # as far as 1e9 + x tells
    names = ["fold", "point"]
    index = pd.MultiIndex.from_arrays([np.arange(n) % 10, np.arange(n)], names=names)
    if sources:
        index = index.set_names("source", level="fold")
    near = pd.DataFrame(losses, index, columns=list("ab"))
    return near, near + LEVEL


def in_chunks(log, chunk=9_011):
    """The log as a lazy array, cut where no fold ends."""
    level = log.index.names[0]
    array = xr.DataArray(
        log.to_numpy(), {level: ("point", log.index.get_level_values(level)), "model": list(log)},
        ("point", "model"),
    )  # fmt: skip
    return array.chunk(point=chunk)


def in_batches(log, rows=9_011):
    """The moments of the log, added up in batches of some rows."""
    starts = range(0, len(log), rows)
    return sum(cvstats.Moments.of_log(log.iloc[start : start + rows]) for start in starts)


def columns_of(result, name):
    """One column of a result of any container, as numbers."""
    return np.atleast_1d(result[name])


ROADS = {
    "memory": lambda log: log,
    "chunks": in_chunks,
    "batches": in_batches,
    "batches of chunks": lambda log: cvstats.Moments.of_log(in_chunks(log)),
}


@cache
def far_on(road, sources):
    return ROADS[road](near_and_far(sources)[1])


@pytest.mark.parametrize(("name", "options"), BETWEEN)
def test_widths_keep_their_digits_on_every_road(name, options):
    sources = name in ("out_of_source", "clustered")
    near, _ = near_and_far(sources)
    call = getattr(cvstats, name)
    expected = call(near, **options)
    for road in ROADS:
        found = call(far_on(road, sources), **options)
        found = found.compute() if road == "chunks" else found
        se = columns_of(found, "se") / expected["se"].to_numpy()
        assert se.tolist() == pytest.approx([1, 1], rel=WIDTH), road
        for limit in ("estimate", "lower", "upper"):
            moved = columns_of(found, limit) - LEVEL
            assert moved.tolist() == pytest.approx(expected[limit].tolist(), abs=2e-7), road


def test_batches_far_from_each_other():
    rng = np.random.default_rng(1)
    offsets = np.repeat([0.0, 1e9, -1e9, 5.0], 1000)
    index = pd.MultiIndex.from_arrays(
        [np.arange(4000) % 10, np.arange(4000)], names=["fold", "point"]
    )
    log = pd.Series(rng.normal(size=4000) + offsets, index)
    for method in ("naive", "wald"):
        whole = only_row(getattr(cvstats, method)(log))
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
            parts = [cvstats.Moments.of_log(log.iloc[1000 * i : 1000 * i + 1000]) for i in order]
            found = only_row(getattr(cvstats, method)(sum(parts)))
            assert found["se"] == pytest.approx(whole["se"], rel=1e-12)
