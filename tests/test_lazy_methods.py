"""Every method on what is not in memory: lazily the same answer, or words that say why not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import simulate
import xarray as xr
from bootstrap_logs import LOGS, OPTIONS
from strategies import ARRAYS, indexed

import cvstats
from cvstats import LogError, Moments
from cvstats.accessor import CVAccessor

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")


def early(graph, keys, **_):
    """Stand in for a scheduler where nothing may be computed."""
    raise AssertionError("something was computed early")


guard = partial(dask.config.set, scheduler=early)
now = partial(dask.config.set, scheduler="synchronous")

METHODS = sorted(
    {name for kind in CVAccessor.__mro__ for name in vars(kind) if not name.startswith("_")}
)


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


def runs():
    """One test set, evaluated three times."""
    return k_fold(3).droplevel(["fold", "source"])


def by_source():
    return k_fold().droplevel(["repetition", "fold"])


def datasets():
    return pd.concat({"x": by_source(), "y": by_source() + 1.0}, names=["dataset"])


FIVE = partial(planned, lambda rng: simulate.repeated_k_fold(20, 2, 5, rng))
NESTED = partial(planned, lambda rng: simulate.nested_cv(24, 3, 2, rng))
HALVES = partial(planned, lambda rng: simulate.paired_subsampling(30, 20, 3, 4, rng))
REPLACED = partial(planned, lambda rng: simulate.replace_one(12, 3, 2, rng))

LAZY = {
    "wald": (partial(k_fold, 2), {}),
    "naive": (k_fold, {}),
    "cv_t": (partial(k_fold, 2), {}),
    "quadratic": (k_fold, {}),
    "decompose": (k_fold, {"rho": 0.1}),
    "corrected_t": (partial(k_fold, 2), {}),
    "out_of_source": (by_source, {}),
    "clustered": (k_fold, {}),
    "wild_cluster": (k_fold, {}),
    "heterogeneity": (k_fold, {}),
    "source_estimators": (by_source, {}),
    "moments": (partial(k_fold, 2), {}),
    "holdout": (one_set, {}),
    "interval": (k_fold, {}),
    "conservative_z": (HALVES, {}),
    "five_by_two": (FIVE, {}),
    "nested_cv": (NESTED, {}),
    "replace_one": (REPLACED, {}),
    "compare": (partial(k_fold, 2), {}),
    "equivalence": (k_fold, {"margin": 0.5}),
    "rope": (partial(k_fold, 2), {"margin": 0.5}),
    "power": (k_fold, {"effect": 0.1}),
    "methods": (k_fold, {}),
}
SUMMED = {"friedman": (k_fold, {}), "nemenyi": (k_fold, {}),
          "source_components": (datasets, {}), "winner": (k_fold, {"rng": 1})}  # fmt: skip
"""They need cells alone, but of all models or data sets together: of frames, not of arrays."""

OF_ARRAYS = {"ordered": (k_fold, {})}
"""They need the losses of each carried cell together: of arrays, and not of frames."""

IN_MEMORY = {
    "best_set": (k_fold, {}),
    "answers": (runs, {}),
    "mcnemar": (partial(k_fold, binary=True), {}),
    "cochran_q": (partial(k_fold, binary=True), {}),
    **{name: (make, OPTIONS.get(name, {})) for name, make in LOGS.items()},
    "diagnose": (k_fold, {}),
    "report": (k_fold, {}),
}
NEED_LOSSES = ["answers", "best_set", "mcnemar", "cochran_q", "difference", "ordered"]
NEED_PAIRS = ["compare", "equivalence", "power", "rope", "winner"]
"""Of moments they need what two models share, and that is there only if it was asked for."""

OTHERS = {"difference", "plot", "summary"}
"""Differences of a lazy array are a lazy array; plots and sentences have numbers to show."""


POWER_RANGE = ["power_lower", "power_upper", "points_needed_lower", "points_needed_upper"]


def test_no_method_is_left_out():
    assert {*LAZY, *SUMMED, *OF_ARRAYS, *IN_MEMORY} | OTHERS == set(METHODS)


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


@pytest.mark.parametrize("name", LAZY | OF_ARRAYS)
def test_of_a_lazy_array(name):
    make, options = (LAZY | OF_ARRAYS)[name]
    array, lazy = stacked(make())
    with guard():
        found = getattr(lazy.cvci, name)(**options)
    eager = getattr(array.cvci, name)(**options)
    if name == "methods":
        changed = [*SUMMED, "best_set", "mcnemar", "cochran_q"]
        pd.testing.assert_frame_equal(found.drop(changed), eager.drop(changed))
        return
    assert {variable.chunks is None for variable in found.variables.values()
            if variable.dtype.kind == "f"} == {False}  # fmt: skip
    with now():
        equal(found.compute(), eager)


@pytest.mark.parametrize("name", SUMMED | IN_MEMORY)
def test_in_words_of_a_lazy_array(name):
    make, options = (SUMMED | IN_MEMORY)[name]
    _, lazy = stacked(make())
    words = r"(one by one|is lazy).*log.compute\(\)|a bootstrap log .* in memory"
    with guard(), pytest.raises(LogError, match=words):
        getattr(lazy.cvci, name)(**options)


@pytest.mark.parametrize("name", SUMMED)
def test_the_way_out_of_a_lazy_array(name):
    make, options = SUMMED[name]
    array, lazy = stacked(make())
    by = ["dataset", "source"] if name == "source_components" else None
    with now():
        moments = Moments.of_log(lazy, by=by, pairs=name in NEED_PAIRS)
    equal(getattr(moments, name)(**options), getattr(array.cvci, name)(**options))


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


def partitioned(log):
    """The log as a frame of dask, in no order."""
    rows = log.sample(frac=1, random_state=3).reset_index()
    return frames.from_pandas(rows, npartitions=4, sort=False)


@pytest.mark.parametrize("name", LAZY | SUMMED)
def test_of_a_frame_of_dask(name):
    make, options = (LAZY | SUMMED)[name]
    log = make()
    frame = partitioned(log)
    with guard():
        found = getattr(frame.cvci, name)(**options)
        again = getattr(cvstats, name)(frame, **options)
    with now():
        found, again = dask.compute(found, again)
    eager = getattr(log.cvci, name)(**options)
    if name == "methods":
        changed = [*NEED_LOSSES, *NEED_PAIRS]
        assert not found.loc[changed, "applies"].any()
        found, again, eager = (table.drop(changed) for table in (found, again, eager))
    equal(found, eager)
    equal(again, found)


@pytest.mark.parametrize("name", OF_ARRAYS | IN_MEMORY)
def test_in_words_of_a_frame_of_dask(name):
    make, options = (OF_ARRAYS | IN_MEMORY)[name]
    frame = partitioned(make())
    with guard(), pytest.raises(LogError, match=r"frame.compute\(\)"):
        getattr(frame.cvci, name)(**options)


# --- moments ------------------------------------------------------------------------------------


ASKED = {**LAZY, **SUMMED}


@pytest.mark.parametrize("name", ASKED)
def test_of_moments(name):
    make, options = ASKED[name]
    log = make()
    half = len(log) // 2
    by = ["dataset", "source"] if name == "source_components" else None
    pairs = name in NEED_PAIRS
    parts = (log.iloc[:half], log.iloc[half:])
    moments = sum(Moments.of_log(part, by=by, pairs=pairs) for part in parts)
    if name == "methods":
        changed = [*NEED_LOSSES, *NEED_PAIRS]
        assert not moments.methods().loc[changed, "applies"].any()
        equal(moments.methods().drop(changed), log.cvci.methods().drop(changed))
        return
    ours, theirs = getattr(moments, name)(**options), getattr(log.cvci, name)(**options)
    equal(ours, theirs)


@pytest.mark.parametrize("name", sorted((OF_ARRAYS | IN_MEMORY).keys() - LOGS.keys()))
def test_in_words_of_moments(name):
    make, options = (OF_ARRAYS | IN_MEMORY)[name]
    moments = Moments.of_log(make(), pairs=True)
    with pytest.raises(LogError, match="one by one"):
        getattr(cvstats, name)(moments, **options)


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
