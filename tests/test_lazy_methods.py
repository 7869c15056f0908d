"""Every method on what is not in memory: lazily the same answer, or words that say why not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import simulate
import xarray as xr
from strategies import ARRAYS, indexed

import cvstats
from cvstats import LogError, Moments

dask = pytest.importorskip("dask", reason="the extra dask is not installed")


def early(graph, keys, **_):
    """Stand in for a scheduler where nothing may be computed."""
    raise AssertionError("something was computed early")


guard = partial(dask.config.set, scheduler=early)
now = partial(dask.config.set, scheduler="synchronous")


def k_fold(repetitions=1, binary=False):
    """Three models on repeated folds, points in sources."""
    rng = np.random.default_rng(8)
    points = np.arange(40)
    index = indexed({
        "repetition": np.repeat(np.arange(repetitions), 40),
        "fold": np.concatenate([rng.permutation(points % 4) for _ in range(repetitions)]),
        "source": np.tile(points % 5, repetitions), "point": np.tile(points, repetitions),
    })  # fmt: skip
    values = rng.standard_normal((len(index), 3))
    values = (values > 0).astype(float) if binary else values
    return pd.DataFrame(values, index=index, columns=list("abc"))


def planned(make):
    """Three models on some other plan."""
    rng = np.random.default_rng(4)
    index = simulate.index_of(make(rng))
    return pd.DataFrame(rng.standard_normal((len(index), 3)), index=index, columns=list("abc"))


def one_set():
    return k_fold().droplevel(["repetition", "fold", "source"])


def by_source():
    return k_fold().droplevel(["repetition", "fold"])


FIVE = partial(planned, lambda rng: simulate.repeated_k_fold(20, 2, 5, rng))
NESTED = partial(planned, lambda rng: simulate.nested_cv(24, 3, 2, rng))
HALVES = partial(planned, lambda rng: simulate.paired_subsampling(30, 20, 3, 4, rng))
REPLACED = partial(planned, lambda rng: simulate.replace_one(12, 3, 2, rng))


POWER_RANGE = ["power_lower", "power_upper", "points_needed_lower", "points_needed_upper"]


def equal(ours, theirs):
    """The same table, whatever container it is in."""
    if theirs.attrs.get("method") == "conservative_z" and not isinstance(theirs, xr.Dataset):
        # Moments do not tell how many points there are in all samples.
        theirs = theirs.drop(columns="n_points", errors="ignore")
    if theirs.attrs.get("method") == "power":
        # The range over the pilot's uncertainty needs fourth moments of single differences.
        for column in POWER_RANGE:
            assert bool(ours[column].isnull().all())
        ours, theirs = (
            table.drop(columns=POWER_RANGE)
            if isinstance(table, pd.DataFrame)
            else table.drop_vars(POWER_RANGE)
            for table in (ours, theirs)
        )
    if isinstance(theirs, (pd.DataFrame, pd.Series)):
        same = pd.testing.assert_frame_equal if isinstance(theirs, pd.DataFrame) else (
            pd.testing.assert_series_equal)  # fmt: skip
        same(ours, theirs, rtol=1e-10, check_like=True)
    else:
        xr.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)
        assert list(ours) == list(theirs)


# --- arrays -------------------------------------------------------------------------------------


def stacked(log):
    array = ARRAYS["stacked" if log.index.nlevels > 1 else "coordinates"](log)
    return array, array.chunk(evaluation=-(-array.sizes["evaluation"] // 2), model=2)


def test_differences_of_a_lazy_array_are_one():
    array, lazy = stacked(k_fold())
    with guard():
        found = lazy.cvci.difference(reference="a")
        interval = cvstats.wald(found)
    with now():
        equal(interval.compute(), cvstats.wald(array.cvci.difference(reference="a")))


# --- frames of dask -----------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _registered():
    cvstats.accessor.register_dask()


# --- moments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("make", [partial(k_fold, 2), k_fold, partial(k_fold, binary=True),
                                  one_set, by_source, FIVE, NESTED, HALVES, REPLACED])  # fmt: skip
def test_what_applies_to_moments_has_an_answer(make, pairs):
    log = make()
    moments = Moments.of_log(log, pairs=pairs)
    table = moments.methods()
    options = {"rope": {"margin": 0.1}, "equivalence": {"margin": 0.1}, "power": {"effect": 0.1}}
    for name in table.index:
        if name in ("corrected_t", "source_components"):
            continue  # they ask for a number, or for a level by its name
        if name in ("friedman", "nemenyi") and "source" not in moments.levels:
            continue  # any level may name data sets
        try:
            getattr(cvstats, name)(moments, **options.get(name, {}))
            answered = True
        except LogError:
            answered = False
        assert answered == table.loc[name, "applies"], (name, table.loc[name, "why_not"])
