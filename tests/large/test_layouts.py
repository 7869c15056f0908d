"""Every layout of a lazy array, in any chunks: the dense form, where NaN tells, among them."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from lazily import guard, now
from rows import counts_to_attrs
from strategies import ARRAYS, indexed

import cvstats
from cvstats import LogError

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")

REPETITIONS, FOLDS, SOURCES, POINTS = 2, 4, 3, 36


def frame(repetitions=REPETITIONS, sources=True, level=0.0):
    """Two models on repeated folds, points in sources."""
    rng = np.random.default_rng(8)
    points = np.arange(POINTS)
    codes = {
        "repetition": np.repeat(np.arange(repetitions), POINTS),
        "fold": np.concatenate([rng.permutation(points % FOLDS) for _ in range(repetitions)]),
        "source": [f"site {i % SOURCES}" for i in points] * repetitions,
        "point": [f"p{i}" for i in points] * repetitions,
    }
    if not sources:
        del codes["source"]
    values = level + rng.standard_normal((len(codes["fold"]), 3))
    return pd.DataFrame(values, index=indexed(codes), columns=list("abc"))


def mapped(array):
    """Carry a small map through too, with a corner that is masked."""
    lat = xr.DataArray([1.0, 2.0], dims="lat", coords={"lat": [10.0, 20.0]})
    lon = xr.DataArray([0.0, 0.5, 3.0], dims="lon", coords={"lon": [1, 2, 3]})
    return (array * lat + lon).where((lat["lat"] > 10) | (lon["lon"] > 1))


def folded(array):
    """A single repetition, whose folds are a coordinate with one dimension."""
    one = array.isel(repetition=0, drop=True)
    return one.assign_coords(fold=("point", one["fold"].values))


LAYOUTS = {
    "dense": lambda log: ARRAYS["dense"](log),
    "dense, sources beside": lambda log: (
        ARRAYS["dense"](log.droplevel("source"))
        .assign_coords(source=("point", [f"site {i % SOURCES}" for i in range(POINTS)]))),
    "by point": lambda log: mapped(ARRAYS["by point"](log)),
    "fold of points": lambda log: folded(ARRAYS["by point"](log)),
    "stacked": lambda log: ARRAYS["stacked"](log),
    "coordinates": lambda log: ARRAYS["coordinates"](log),
}  # fmt: skip


def chunked(array, data):
    """Cut each dimension in one to three pieces of any sizes, in any order of dimensions."""
    array = array.transpose(*data.draw(st.permutations(array.dims)))
    sizes = {}
    for dim, size in array.sizes.items():
        most = 3 if dim in ("point", "evaluation") else 2
        sizes[dim] = data.draw(st.integers(-(-size // most), size))
    return array, array.chunk(sizes)


def close(ours, theirs):
    """The same to 1e-13 of the width of the interval."""
    with now():
        found = counts_to_attrs(ours.compute())
    width = (theirs["upper"] - theirs["lower"]).max().item()
    for name in ("estimate", "difference", "se", "lower", "upper"):
        if name in theirs:
            np.testing.assert_allclose(
                found[name].transpose(*theirs[name].dims), theirs[name], rtol=0, atol=1e-13 * width
            )
    assert list(found) == list(theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=2)
@given(st.data())
def test_any_chunking_of_any_layout(layout, data):
    array, lazy = chunked(LAYOUTS[layout](frame()), data)
    with guard():
        found = lazy.cvci.wald(variance="within-fold"), lazy.cvci.compare()
    close(found[0], cvstats.wald(array, variance="within-fold"))
    close(found[1], cvstats.compare(array))
    sizes = {dim: lazy.chunksizes[dim] for dim in found[0]["se"].dims}
    assert found[0]["se"].chunksizes == sizes


def test_an_interval_that_was_chosen_too_early():
    log = LAYOUTS["dense"](frame())
    log[occupied(log)] = np.nan
    with guard():
        lazy = cvstats.interval(log.chunk(point=9))
        assert lazy.attrs["method"] == "wald"
    with now(), pytest.raises(LogError, match=r"interval\(losses, method='corrected_t'\)"):
        lazy.compute()


def occupied(log):
    """The place of an evaluation."""
    at = np.argwhere(log.notnull().all("model").values)[0]
    return dict(zip(("repetition", "fold", "source", "point"), map(int, at), strict=True))


def refused_later():
    def missing(log):
        log[{**occupied(log), "model": 1}] = np.nan

    def infinite(log):
        log[{**occupied(log), "model": 1}] = np.inf

    def twice(log):
        at = occupied(log)
        log[{**at, "fold": (at["fold"] + 1) % FOLDS}] = 1.0

    def lost(log):
        log[occupied(log)] = np.nan

    def masked(log):
        log[{"model": 2, "repetition": 1}] = np.nan

    def one_left(log):
        at = occupied(log)
        log[{"model": 1}] = np.nan
        log[{**at, "model": 1}] = 1.0

    one = r"repetition=0, fold=\d, source='site 0', point='p\d+'"
    gap = rf"same points: model='b' has no loss \(NaN\) at {one}, where"
    yield "missing", missing, {}, rf"{gap} model='a' has one"
    yield ("missing, apart", missing, {"model": 1}, rf"{gap} another model or cell has one")
    words = r"model='b' has no loss .*; and 70 more, where another model or cell has one"
    yield "one left, apart", one_left, {"model": 1}, words
    yield "infinite", infinite, {}, rf"'b' is infinite at {one}"
    yield "twice", twice, {}, r"a point appears in two folds of one repetition: .* and "
    yield "twice, apart", twice, {"fold": 1}, r"a point appears in two folds of one repetition"
    yield "lost", lost, {}, r"some repetitions of this log test only 35 of the 36 points"
    gone = r"model='c' has no loss \(NaN\) at repetition=1, fold=\d, .*; and 35 more, where"
    yield "masked", masked, {"repetition": 1}, rf"{gone} model='a' has one"
    yield (
        "masked, apart",
        masked,
        {"repetition": 1, "model": 1},
        rf"{gone} another model or cell has one",
    )
    yield "nothing", lambda log: log.values.fill(np.nan), {}, "the log is empty"


LATER = {name: rest for name, *rest in refused_later()}


@pytest.mark.parametrize("name", LATER)
def test_refused_when_computed(name):
    change, chunks, words = LATER[name]
    log = LAYOUTS["dense"](frame())
    change(log)
    with guard():
        lazy = cvstats.wald(log.chunk(chunks))
    with now(), pytest.raises(LogError, match=words):
        lazy.compute()


@pytest.mark.parametrize("two", [False, True])
def test_models_on_different_points_are_not_compared(two):
    log = LAYOUTS["dense"](frame())
    log[{**occupied(log), "model": 1}] = np.nan
    lazy = log.chunk(point=9)
    with guard():
        if two:
            found = cvstats.compare(*(lazy.sel(model=name, drop=True) for name in "ab"))
        else:
            found = cvstats.compare(lazy)
    words = r"same points: model='.*' has no loss \(NaN\) at repetition=0, .*point='p"
    with now(), pytest.raises(LogError, match=words):
        found.compute()


def test_what_an_assumption_refuses_says_so():
    log = LAYOUTS["dense"](frame())
    with guard(), pytest.raises(LogError, match="NaN marks what was not evaluated"):
        cvstats.quadratic(log.chunk(point=9))
    gone = log.where(log["source"] != "site 1")
    with guard():
        lazy = cvstats.naive(gone.chunk(point=9), by="source")
    with now(), pytest.raises(LogError, match="only 2 of 3 labels of 'source'"):
        lazy.compute()


def test_a_model_that_misses_a_whole_chunk():
    log = LAYOUTS["by point"](frame(repetitions=1))
    log[{"model": 0, "point": slice(0, 12)}] = np.nan
    for chunk in (12, -1):
        with guard():
            lazy = cvstats.naive(log.chunk(point=chunk), missing="drop")
        with now():
            assert (lazy["n_dropped"].isel(lat=1).compute() == 12).all()
    one = log.isel(lat=1, lon=1)
    with guard():
        lazy = cvstats.naive(one.chunk(point=12), missing="drop")
    with now():
        xr.testing.assert_allclose(
            counts_to_attrs(lazy.compute()), cvstats.naive(one, missing="drop")
        )
