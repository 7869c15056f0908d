"""Arrays at the edge: chunks that are empty or of no known size, and numbers of every type."""

from functools import cache, partial

import numpy as np
import pytest
import xarray as xr
from calls import refuses
from lazily import now
from rows import counts_to_attrs

import cvstats

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")


def gridded(losses, kind="lat"):
    """Losses of points in folds, over a map or for several models."""
    points = np.arange(len(losses))
    coords = {"fold": ("point", points % 5), "source": ("point", points % 3)}
    return xr.DataArray(losses, coords, ("point", kind))


def tabled(losses):
    """A dense table of which NaN tells what was evaluated."""
    return xr.DataArray(losses, {"model": list("abc")}, ("repetition", "fold", "point", "model"))


def partly_labeled(losses):
    """The same for points of which some have neither a source nor losses."""
    names = [None, "a", "b", "c"] * 5
    return tabled(losses).assign_coords(source=("point", names)).where(lambda x: x.source.notnull())


MAP = np.random.default_rng(0).normal(size=(100, 6))
FOLD = np.random.default_rng(1).permuted(np.tile(np.arange(20) % 4, (2, 1)), axis=1)
TABLE = np.where(FOLD[:, None] == np.arange(4)[:, None], MAP[:20, 0], np.nan)[..., None]
TABLE = TABLE * [1.0, 2.0, -1.0]

EMPTY = {
    "first": (gridded, MAP, ((0, 50, 50), (6,))),
    "between": (gridded, MAP, ((50, 0, 50), (3, 3))),
    "last": (gridded, MAP, ((100, 0), (6,))),
    "of cells": (gridded, MAP, ((50, 50), (0, 3, 3))),
    "of both": (gridded, MAP, ((0, 100), (3, 0, 3))),
    "of repetitions": (tabled, TABLE, ((0, 1, 1), (4,), (20,), (3,))),
    "of folds": (tabled, TABLE, ((2,), (0, 4), (20,), (3,))),
    "of points": (tabled, TABLE, ((2,), (4,), (0, 10, 10), (3,))),
    "of models": (tabled, TABLE, ((2,), (4,), (20,), (0, 3))),
    "of all": (tabled, TABLE, ((2, 0), (2, 0, 2), (20, 0), (1, 0, 2))),
    "of points without a source": (partly_labeled, TABLE, ((2,), (4,), (0, 10, 10), (3,))),
}

DROPPED = partial(cvstats.wald, missing="drop")
ASKED = (cvstats.wald, cvstats.moments, cvstats.decompose, DROPPED)


@cache
def in_memory(make):
    """The answers of the log without chunks."""
    return [ask(make(MAP if make is gridded else TABLE)) for ask in ASKED]


@pytest.mark.parametrize("name", EMPTY)
def test_empty_chunks(name):
    make, losses, chunks = EMPTY[name]
    lazy = make(dask.array.from_array(losses, chunks=chunks))
    with now():
        for ask, expected in zip(ASKED, in_memory(make), strict=True):
            found = counts_to_attrs(ask(lazy).compute())
            xr.testing.assert_allclose(found, expected, rtol=1e-11)
            known = {k: v for k, v in expected.attrs.items() if k != "cautions"}
            assert found.attrs == known  # which cautions occur is not known before
        kept = cvstats.Moments.of_log(lazy)
    xr.testing.assert_allclose(kept.wald(), in_memory(make)[0], rtol=1e-11)


@pytest.mark.parametrize(
    ("level", "loss", "limits"),
    [
        ("fold", "loss", "wilson for 0/1 losses, otherwise wald"),
        ("source", "loss", "korn-graubard for 0/1 losses, otherwise wald"),
        ("source", "zero_one", "korn-graubard"),
    ],
)
def test_limits_of_lazy_losses_are_named_for_each_kind_of_chunk(level, loss, limits):
    log = xr.DataArray((MAP > 0) * 1.0, dims=("point", "lat"), attrs={"loss": loss}).assign_coords(
        {level: ("point", np.arange(len(MAP)) % 5)}
    )
    assert log.chunk(lat=2).cvci.interval().attrs["interval"] == limits


@pytest.mark.parametrize("dims", [("point",), ("point", "lat"), ("lat", "point")])
def test_chunks_of_no_known_size(dims):
    some = dask.array.from_array(MAP[:, 0], chunks=30) > 0
    data = dask.array.from_array(MAP, chunks=30)
    shapes = {("point",): data[:, 0][some], ("point", "lat"): data[some],
              ("lat", "point"): data.T[:, some]}  # fmt: skip
    log = xr.DataArray(shapes[dims], dims=dims)
    words = (
        r"the chunks of this array along 'point' have unknown sizes \(dask\). Expected known .*"
        r"log = log.copy\(data=log.data.compute_chunk_sizes\(\)\)"
    )
    for ask in (cvstats.holdout, cvstats.moments, cvstats.Moments.of_log, cvstats.interval):
        refuses(words, ask, log)
    refuses(words, cvstats.compare, log, log**2)
    with now():
        log = log.copy(data=log.data.compute_chunk_sizes())
        found = cvstats.holdout(log).compute()
        xr.testing.assert_allclose(found, cvstats.holdout(log.compute()), rtol=1e-12)


TYPES = ["longdouble", "float32", "float16", "int8", "uint64", "bool"]
WIDE = np.abs(3 * np.random.default_rng(0).normal(size=(150, 17)))
"""Enough columns to be read in rows, and enough differences for compiled loops."""

COMPARED = {
    "all pairs": cvstats.compare,
    "max-t": partial(cvstats.compare, adjust="max-t", rng=0, n_draws=100),
    "lazy": lambda log: cvstats.compare(log.chunk(point=77), reference=0).compute(),
}


@pytest.mark.parametrize("kind", TYPES)
def test_differences_are_taken_in_double_precision(kind):
    """Whatever the type, its numbers are doubles before they are subtracted."""
    values = WIDE > 1 if kind == "bool" else WIDE.astype(kind)
    for name, ask in COMPARED.items():
        with now():
            wanted = ask(gridded(values.astype(np.float64), "model"))
            for order in "CF":
                found = ask(gridded(np.asarray(values, order=order), "model"))
                xr.testing.assert_allclose(found, wanted, rtol=1e-10)
                assert all(found[v].dtype == wanted[v].dtype for v in wanted), name


def test_many_labels_of_many_levels():
    """The product of the numbers of labels passes 2^63."""
    draw, size = np.random.default_rng(6), 7_000
    levels = ("sample", "outer", "repetition", "fold", "source")
    assert size ** len(levels) > 2**63
    labels = {name: ("row", draw.permutation(size)) for name in levels}
    log = xr.DataArray(draw.normal(size=size), {**labels, "point": ("row", range(size))}, "row")
    with now():
        lazy = cvstats.Moments.of_log(log.chunk(row=2_000), by=levels)
    whole = cvstats.Moments.of_log(log, by=levels)
    assert lazy.n_losses == len(lazy.cells.count) == size
    for name in ("codes", "mean"):
        np.testing.assert_array_equal(getattr(lazy.cells, name), getattr(whole.cells, name))


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize(
    "ask",
    [
        partial(cvstats.compare, by="half"),
        partial(cvstats.interval, by="half", method="clustered"),
        partial(cvstats.ordered, by="half"),
        partial(cvstats.wald, by="half"),
        lambda log: cvstats.compare(log.isel(model=0), log.isel(model=1), by="half"),
    ],
)
def test_points_of_groups_are_counted_as_in_memory(ask, even):
    """They were 0 where individual losses are read, and those of all groups by sources."""
    rng, n = np.random.default_rng(0), 60
    point, source = np.tile(np.arange(n), 2), np.tile(np.arange(n) // 3, 2)
    fold = np.concatenate([rng.permutation(20)[source[:n]] % 5 for _ in range(2)])
    coords = {"repetition": np.repeat([0, 1], n), "fold": fold, "source": source, "point": point,
              "half": (point % 2 if even else point % 3 == 0) * 1}  # fmt: skip
    log = xr.DataArray(
        rng.random((2 * n, 2)), {name: ("row", own) for name, own in coords.items()},
        ("row", "model"),
    ).assign_coords(model=["a", "b"])  # fmt: skip
    with now():
        wanted, found = ask(log), ask(log.chunk(row=25)).compute()
    for name in ("n_points", "n_clusters", "smallest", "largest", "n_times"):
        assert (name in wanted) == (name in found)
        if name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name])
        assert found.attrs.get(name) == wanted.attrs.get(name)


def test_the_level_of_groups_of_two_logs_is_used():
    log = xr.DataArray(
        np.random.default_rng(0).random((40, 2)),
        {"point": ("row", np.arange(40)), "hospital": ("row", np.arange(40) % 2)}, ("row", "model"),
    )  # fmt: skip
    parts = log.isel(model=0), log.isel(model=1)
    with now():
        found = cvstats.compare(*(part.chunk(row=20) for part in parts), by="hospital").compute()
    wanted = cvstats.cautions(cvstats.compare(*parts, by="hospital"))
    np.testing.assert_array_equal(cvstats.cautions(found), wanted)


def test_groups_of_few_points():
    """The shape of an answer is found without losses, also if each cell of a group has one."""
    levels = {"fold": [1, 0, 0, 1, 0, 1], "source": [2, 2, 0, 2, 2, 0]}
    coords = {name: ("point", labels) for name, labels in levels.items()}
    log = xr.DataArray(MAP[:6, 0], coords, "point")
    with now():
        lazy = cvstats.heterogeneity(log.chunk(point=2)).compute()
    assert lazy["q"].item() == pytest.approx(cvstats.heterogeneity(log)["q"].item(), rel=1e-12)
