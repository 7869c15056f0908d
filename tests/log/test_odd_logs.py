"""Logs as they come out of other hands: read as what they say, or refused in words."""

from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import multi_index

import cvstats

N = 24
FRAME = pd.DataFrame(
    np.random.default_rng(0).random((N, 3)),
    index=multi_index(
        fold=np.arange(N) % 4, source=[f"s{i // 4}" for i in range(N)], point=range(N)
    ),
    columns=list("abc"),
)
ARRAY = xr.DataArray(
    FRAME.to_numpy(),
    {
        "model": list("abc"),
        **{n: ("row", FRAME.index.get_level_values(n)) for n in ("fold", "point")},
    },
    ("row", "model"),
)


def relabelled(level, labels):
    """The log with other labels on one level."""
    table = FRAME.index.to_frame(index=False)
    table[level] = labels
    return FRAME.set_axis(pd.MultiIndex.from_frame(table))


class Kept(pd.DataFrame):
    """A frame of somebody's own."""

    @property
    def _constructor(self):
        return Kept


def readonly():
    """Losses in memory that nobody may write to."""
    values = FRAME.to_numpy().copy()
    values.flags.writeable = False
    return pd.DataFrame(values, index=FRAME.index, columns=FRAME.columns)


FOLD, POINT = (FRAME.index.get_level_values(name) for name in ("fold", "point"))

SAME = {
    "long double": lambda: FRAME.astype(np.longdouble),
    "read-only": readonly,
    "backwards": lambda: FRAME.iloc[::-1],
    "by columns": lambda: pd.DataFrame(
        np.asfortranarray(FRAME.to_numpy()), index=FRAME.index, columns=FRAME.columns
    ),
    "a subclass": lambda: Kept(FRAME),
    "times with a zone": lambda: relabelled(
        "point", pd.date_range("2020", periods=N, tz="Europe/Berlin")
    ),
    "periods": lambda: relabelled("point", pd.period_range("2020", periods=N, freq="D")),
    "intervals": lambda: relabelled("point", pd.IntervalIndex.from_breaks(range(N + 1))),
    "dates with and without a zone": lambda: relabelled(
        "point", [pd.Timestamp(2020, 1, 1 + i, tz="UTC" if i > 3 else None) for i in range(N)]
    ),
    "dates, then numbers": lambda: relabelled(
        "point", [date(2020, 1, 1 + i) if i < 3 else i for i in range(N)]
    ),
    "tuples": lambda: relabelled("point", [(i, i) for i in range(N)]),
    "integers that may be missing": lambda: relabelled("point", pd.array(POINT, dtype="Int64")),
    "categories that never occur": lambda: relabelled(
        "fold", pd.Categorical(FOLD, categories=[9, 0, 1, 2, 3, 7])
    ),
    "labels of two kinds": lambda: relabelled("fold", ["one" if k == 1 else k for k in FOLD]),
    "fractions": lambda: relabelled("fold", FOLD * 1.5),
    "columns of categories": lambda: FRAME.set_axis(
        pd.CategoricalIndex(list("abc"), categories=list("abcd")), axis=1
    ),
    "columns of dates": lambda: FRAME.set_axis(pd.date_range("2020", periods=3), axis=1),
    "columns of two levels": lambda: FRAME.set_axis(
        pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "c")]), axis=1
    ),
    "a column without a name": lambda: FRAME.set_axis(["a", None, "c"], axis=1),
    "columns called like results": lambda: FRAME.set_axis(["caution", "estimate", "model"], axis=1),
}

METHODS = {"wald": {"variance": "within-fold"}, "cv_t": {}, "corrected_t": {}}


@cache
def plain(method):
    """The answer to the log as it is."""
    return getattr(cvstats, method)(FRAME, **METHODS.get(method, {}))


@pytest.mark.parametrize("name", SAME)
def test_the_same_log_in_another_dress(name):
    log = SAME[name]()
    for method, options in METHODS.items():
        ours = getattr(cvstats, method)(log, **options)
        first = ["estimate", "se", "lower", "upper"]
        expected = plain(method)[first].to_numpy()
        np.testing.assert_allclose(ours[first].to_numpy(), expected, rtol=1e-12)
        assert list(ours.index) == list(log.columns) or name == "a column without a name"
    pairs = cvstats.compare(log)[["difference", "se", "p_value"]]
    expected = plain("compare")[["difference", "se", "p_value"]]
    np.testing.assert_allclose(pairs.to_numpy(), expected.to_numpy(), rtol=1e-9)


def test_labels_of_pyarrow():
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    labels = pd.array(list(FRAME.index.get_level_values("source")), dtype="string[pyarrow]")
    ours = cvstats.wald(relabelled("source", labels), variance="within-fold")
    np.testing.assert_allclose(ours["se"], plain("wald")["se"], rtol=1e-12)


@pytest.mark.parametrize("models", [[("a", 1), "b", "c"], [("a", 1), ("a", 2), ("b", 1)]])
def test_tuples_that_name_models(models):
    log = FRAME.set_axis(pd.Index(models, tupleize_cols=False), axis=1)
    cells = log.cvci.moments()
    expected = FRAME.cvci.moments()
    assert cells.index.names == ["model", "fold"]
    assert cells.index.get_level_values("model").unique().tolist() == models
    np.testing.assert_array_equal(cells, expected)
    row = xr.Dataset({name: ARRAY.isel(model=i, drop=True) for i, name in enumerate(models)})
    assert row.cvci.wald()["model"].values.tolist() == [*map(str, models)]


def test_a_level_of_the_columns_may_be_called_model():
    columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "b")])
    named = FRAME.set_axis(columns.set_names(["family", "model"]), axis=1)
    plain = FRAME.set_axis(columns, axis=1)
    assert str(named.cvci.summary()) == str(plain.cvci.summary())


def test_the_level_count_alone_is_diagnosed():
    log = pd.Series(np.arange(8.0), index=pd.Index([3, 4, 5, 6, 0, 1, 2, 7], name="count"))
    assert "CVS" in log.cvci.diagnose()["code"].iloc[0]


def test_lists_are_not_labels():
    table = pd.DataFrame({"fold": [[1]] * 4, "point": range(4), "loss": 1.0})
    refuses("a label of 'fold' is a list. Expected names or numbers", cvstats.as_log, table)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]"])
def test_whole_numbers_that_a_float_rounds(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="the extra io is not installed")
    log = pd.Series([2**62 + i for i in range(8)], pd.Index(range(8), name="point"), dtype=dtype)
    refuses(r"whole numbers above 2\^53", cvstats.holdout, log)
    if dtype == "int64":
        lazy = xr.DataArray(log.to_numpy(), {"point": range(8)}, "point").chunk(point=4)
        for ask in (lambda log: cvstats.holdout(log).compute(), cvstats.Moments.of_log):
            refuses(r"whole numbers above 2\^53", ask, lazy)
