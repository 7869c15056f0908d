"""Loss logs for hypothesis, as rows of the oracle and as a Series in any order of rows."""

import copy
import math
from fractions import Fraction

import numpy as np
import oracle
import pandas as pd
import xarray as xr
from hypothesis import strategies as st

import cvstats

LEVELS = ("repetition", "fold", "point")


def series(rows, order=None, name="model", levels=LEVELS):
    """The rows as a loss log, in the order given."""
    rows = [rows[i] for i in order] if order is not None else rows
    columns = [[getattr(row, level) for row in rows] for level in levels]
    index = pd.MultiIndex.from_arrays(columns, names=list(levels))
    return pd.Series([float(row.loss) for row in rows], index=index, name=name)


@st.composite
def losses(draw, size):
    """Doubles of some size and spread, tied values among them."""
    step = draw(st.sampled_from([1.0, 0.1, 0.37, 1e-3, 1e4]))
    offset = draw(st.sampled_from([0.0, 0.0, 1.0, -250.0]))
    widest = draw(st.sampled_from([3, 50, 1000]))
    whole = st.integers(-widest, widest)
    return [offset + step * value for value in draw(st.lists(whole, min_size=size, max_size=size))]


@st.composite
def logs(draw, sizes=(1, 5), folds=(1, 5), repetitions=(1, 1), zero_one=False):
    """A log of one or more partitions of the same points into folds of any sizes.

    A repetition shuffles the points and keeps the sizes of the folds.
    """
    fold_sizes = draw(st.lists(st.integers(*sizes), min_size=folds[0], max_size=folds[1]))
    n = sum(fold_sizes)
    names = [k for k, size in enumerate(fold_sizes) for _ in range(size)]
    rows = []
    for repetition in range(draw(st.integers(*repetitions))):
        points = draw(st.permutations(range(n)))
        values = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n)
                      if zero_one else losses(n))  # fmt: skip
        rows += [
            oracle.Row(Fraction(loss), repetition, fold, 0, point)
            for loss, fold, point in zip(values, names, points, strict=True)
        ]
    return rows


def shuffled(rows, seed=0):
    """A Series of the rows, shuffled."""
    return series(rows, np.random.default_rng(seed).permutation(len(rows)))


def spread(rows):
    """The largest distance of a loss from their mean."""
    centre = oracle.mean(row.loss for row in rows)
    return float(max(abs(row.loss - centre) for row in rows))


def close(ours, exact, rows, power=1, tolerance=1e-12):
    """Whether a number agrees with the oracle, relative to the losses' spread.

    ``power`` is 0 for pure numbers, 1 for numbers in units of the loss and 2 for their
    squares. Sixteen units in the last place of the largest loss are always granted: the
    input is no better known.
    """
    if not math.isfinite(float(exact)):
        return float(ours) == float(exact) or (math.isnan(ours) and math.isnan(float(exact)))
    unit = spread(rows)
    known = 16 * np.finfo(float).eps * float(max(abs(row.loss) for row in rows))
    allowed = tolerance
    if power:  # losses that are all equal have squares too, of what they are known to
        allowed = tolerance * unit**power + known * max(unit, known) ** (power - 1)
    return abs(Fraction(float(ours)) - Fraction(exact)) <= allowed


# --- the same log in every container ------------------------------------------------------------

LABELS = {
    "integers": lambda n: [5 * i - 3 for i in range(n)],
    "floats": lambda n: [i / 4 for i in range(n)],
    "strings": lambda n: [f"é{i}" for i in range(n)],
    "dates": lambda n: list(pd.date_range("2024-02-28", periods=n)),
    "periods": lambda n: list(pd.period_range("2023-11", periods=n, freq="M")),
    "tuples": lambda n: [("site", i) for i in range(n)],
    "frozen sets": lambda n: [frozenset({i, "x"}) for i in range(n)],
    "mixed": lambda n: [i if i % 2 else f"{i}" for i in range(n)],
    "categories": lambda n: pd.Categorical.from_codes(
        np.arange(n), categories=[f"c{i}" for i in range(n)][::-1] + ["never"]
    ),
}
"""Ways to name the labels of a level: hashable things of any kind."""

KINDS = ("k-fold", "repeated k-fold", "leave-one-out", "holdout")

DTYPES = ("float64", "float64", "float32", "int64", "uint8", "bool")


def named(codes, labels):
    """The labels of some codes, as an array that pandas and xarray take as they are."""
    if isinstance(labels, pd.Categorical):
        return labels.take(codes)
    things = np.empty(len(codes), dtype=object)
    things[:] = [labels[code] for code in codes]
    return pd.Index(things, tupleize_cols=False).infer_objects().array


def indexed(columns):
    """A MultiIndex of the levels; tuples stay labels."""
    return pd.MultiIndex.from_arrays(
        [pd.Index(values, tupleize_cols=False) for values in columns.values()], names=list(columns)
    )


@st.composite
def frames(draw, kinds=KINDS, models=(1, 3), labels=tuple(LABELS), dtypes=DTYPES):
    """A loss log as a DataFrame of one to three models, and the kind of resampling it is."""
    kind = draw(st.sampled_from(kinds))
    n = draw(st.integers(4, 14))
    r = draw(st.integers(2, 3)) if kind == "repeated k-fold" else 1
    k = {"leave-one-out": n, "holdout": 1}.get(kind) or draw(st.integers(2, n // 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = {"repetition": np.repeat(np.arange(r), n)} if r > 1 else {}
    if kind != "holdout":
        codes["fold"] = np.concatenate([rng.permutation(np.arange(n) % k) for _ in range(r)])
    codes["point"] = np.tile(rng.permutation(n), r)
    index = indexed(
        {
            level: named(values, LABELS[draw(st.sampled_from(labels))](values.max() + 1))
            for level, values in codes.items()
        }
    )
    width = draw(st.integers(*models))
    table = draw(st.sampled_from([0.0, 1.0, 3.0])) * rng.standard_normal((n * r, width))
    table += draw(st.sampled_from([0.0, 10.0, -1e6]))
    dtype = draw(st.sampled_from(dtypes))
    if dtype == "uint8":
        table = np.abs(table) % 256
    if dtype == "bool":
        table = np.abs(table) % 2 >= 1
    return kind, pd.DataFrame(table.astype(dtype), index=index, columns=list("abc")[:width])


def label_arrays(index):
    """For each level its labels that occur, as an array of objects, and the rows' codes."""
    found = {}
    for name in index.names:
        codes, labels = pd.factorize(index.get_level_values(name))
        things = np.empty(len(labels), dtype=object)
        things[:] = list(labels)
        found[name] = codes, things
    return found


def dense(frame):
    """A DataArray with every level a dimension, and NaN where nothing was evaluated."""
    found = label_arrays(frame.index)
    values = np.full((*(len(labels) for _, labels in found.values()), frame.shape[1]), np.nan)
    values[tuple(codes for codes, _ in found.values())] = frame.to_numpy(dtype=np.float64)
    coords = {name: labels for name, (_, labels) in found.items()}
    return xr.DataArray(values, {**coords, "model": list(frame.columns)}, (*coords, "model"))


def by_point(frame):
    """A DataArray over (repetition, point), with fold (and source) as coordinates."""
    found = label_arrays(frame.index)
    dims = tuple(level for level in ("repetition", "point") if level in found)
    where = tuple(found[level][0] for level in dims)
    shape = tuple(len(found[level][1]) for level in dims)
    values = np.full((frame.shape[1], *shape), np.nan)
    values[:, *where] = frame.to_numpy(dtype=np.float64).T
    coords = {level: found[level][1] for level in dims} | {"model": list(frame.columns)}
    for level in [level for level in found if level not in dims]:
        names = np.empty(shape, dtype=object)
        names[where] = found[level][1][found[level][0]]
        coords[level] = dims, names
    return xr.DataArray(values, coords, ("model", *dims))


def stacked(frame):
    """A DataArray with one stacked dimension, whose index is the frame's."""
    coords = xr.Coordinates.from_pandas_multiindex(frame.index, "evaluation")
    array = xr.DataArray(frame.to_numpy(), coords, ("evaluation", "model"))
    return array.assign_coords(model=list(frame.columns))


def listed_coords(frame):
    """A DataArray with one dimension and the levels as plain coordinates along it."""
    coords = {
        name: ("evaluation", labels[codes])
        for name, (codes, labels) in label_arrays(frame.index).items()
    }
    return xr.DataArray(
        frame.to_numpy(), {**coords, "model": list(frame.columns)}, ("evaluation", "model")
    )


def by_row(log):
    """The same with the labels as they are and the attrs; ``row`` is the dimension."""
    coords = {name: ("row", log.index.get_level_values(name)) for name in log.index.names}
    coords["model"] = list(log.columns)
    return xr.DataArray(log.to_numpy(), coords, ("row", "model"), name="loss", attrs=log.attrs)


ROADS = {
    "frame": lambda log: log,
    "array": by_row,
    "lazy": lambda log: by_row(log).chunk(row=1 + len(log) // 2),
    "moments": lambda log: cvstats.Moments.of_log(log, pairs=1 < log.shape[1] < 9),
}
"""The containers that most tests of one log look at."""


def as_dataset(array):
    """A Dataset with a variable for each model."""
    models = array["model"].values.tolist()
    return xr.Dataset({name: array.sel(model=name, drop=True) for name in models})


ARRAYS = {
    "dense": dense,
    "by point": by_point,
    "stacked": stacked,
    "coordinates": listed_coords,
    "dense dataset": lambda frame: as_dataset(dense(frame)),
    "dataset by point": lambda frame: as_dataset(by_point(frame)),
    "stacked dataset": lambda frame: as_dataset(stacked(frame)),
}
"""The ways of xarray to say what the index of a frame says."""


# --- the input is left alone --------------------------------------------------------------------


def remembered(log):
    """A deep copy of all there is to a log: numbers, index, labels, attrs."""
    if isinstance(log, (pd.Series, pd.DataFrame)):
        index = log.index
        parts = [index.levels, index.codes] if isinstance(index, pd.MultiIndex) else [index]
        return copy.deepcopy((log, [list(map(list, part)) for part in parts[1:]], log.attrs))
    return (
        log.copy(deep=True) if isinstance(log, (xr.DataArray, xr.Dataset)) else copy.deepcopy(log)
    )


def assert_unchanged(log, before):
    """Nothing of the log differs from what was remembered, not even the order of levels."""
    if isinstance(log, (pd.Series, pd.DataFrame)):
        table, codes, attrs = before
        same = pd.testing.assert_frame_equal if isinstance(log, pd.DataFrame) else (
            pd.testing.assert_series_equal)  # fmt: skip
        same(log, table, check_exact=True)
        assert log.attrs == attrs
        if codes:
            assert [list(part) for part in log.index.codes] == codes[0]
            for ours, theirs in zip(log.index.levels, table.index.levels, strict=True):
                pd.testing.assert_index_equal(ours, theirs)
    elif isinstance(log, (xr.DataArray, xr.Dataset)):
        xr.testing.assert_identical(log, before)
        assert log.encoding == before.encoding
        assert list(log.coords) == list(before.coords)
    else:
        assert type(log) is type(before)
        assert np.array_equal(log, before) if isinstance(log, np.ndarray) else log == before
