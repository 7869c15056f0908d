"""The same log in every container gives the same interval, and results come back labelled."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    ARRAYS,
    LABELS,
    as_dataset,
    dense,
    frames,
    label_arrays,
    listed_coords,
    stacked,
)

import cvstats
from cvstats.core.cautions import Caution

FIRST = ["estimate", "se", "lower", "upper"]
CALLS = {
    "k-fold": [
        ("wald", {}),
        ("wald", {"variance": "within-fold"}),
        ("cv_t", {}),
        ("quadratic", {}),
    ],
    "repeated k-fold": [("wald", {}), ("wald", {"fold_weights": "equal"}), ("naive", {})],
    "leave-one-out": [("wald", {}), ("quadratic", {"estimator": "theta_3"})],
    "holdout": [("holdout", {}), ("holdout", {"interval": "t"}), ("wald", {})],
}


def numbers(result):
    """Estimate, se and limits of each model as a plain table, whatever the container."""
    if isinstance(result, xr.Dataset):
        columns = [np.atleast_1d(result[name].values) for name in FIRST]
        return np.stack(columns, axis=-1).astype(float)
    table = result.to_frame().T if isinstance(result, pd.Series) else result
    return table[FIRST].to_numpy(dtype=float)


def interval(log, call):
    name, options = call
    return numbers(getattr(cvstats, name)(log, **options))


def assert_same(found, expected, frame):
    """Equal to 1e-12 of the width; sixteen units in the last place of a loss are granted."""
    assert found.shape == expected.shape
    width = np.nan_to_num(expected[:, 3] - expected[:, 2])
    level = np.abs(frame.to_numpy(dtype=float)).max()
    allowed = 1e-12 * width + 16 * np.finfo(float).eps * level
    if expected[:, 1].any():
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert (np.nan_to_num(np.abs(found - expected)) <= allowed[:, None]).all(), (found, expected)


def log_and_call(kinds=tuple(CALLS)):
    """A log, and a call that fits it."""
    return frames(kinds=kinds).flatmap(
        lambda drawn: st.tuples(st.just(drawn[1]), st.sampled_from(CALLS[drawn[0]]))
    )


# --- one log, many shapes -----------------------------------------------------------------------


@given(log_and_call())
def test_xarray_says_what_pandas_says(drawn):
    frame, call = drawn
    expected = interval(frame, call)
    for form in ARRAYS.values():
        assert_same(interval(form(frame), call), expected, frame)
    for j, name in enumerate(frame):
        assert_same(interval(frame[name], call), expected[[j]], frame)
        assert_same(interval(stacked(frame).sel(model=name), call), expected[[j]], frame)
        assert_same(interval(dense(frame).sel(model=name, drop=True), call), expected[[j]], frame)


def relabelled(frame, kind):
    """Every level with labels of another kind."""
    arrays = []
    for codes, _ in label_arrays(frame.index).values():
        labels = LABELS[kind](codes.max() + 1)
        if kind == "categories":
            arrays.append(labels.take(codes))
        else:
            arrays.append(pd.Index([labels[code] for code in codes], tupleize_cols=False))
    return frame.set_axis(pd.MultiIndex.from_arrays(arrays, names=frame.index.names))


def with_unused_labels(frame):
    """Slice the log out of a longer one, whose labels stay in the levels."""
    other = label_arrays(frame.index)
    more = {name: [*labels, "more"][::-1] for name, (_, labels) in other.items()}
    levels = [pd.Index(labels, tupleize_cols=False) for labels in more.values()]
    codes = [len(more[name]) - 1 - other[name][0] for name in more]
    longer = [np.concatenate([part, [0, 0]]) for part in codes]
    index = pd.MultiIndex(levels=levels, codes=longer, names=frame.index.names)
    table = np.concatenate([frame.to_numpy(), frame.to_numpy()[:2]])
    sliced = pd.DataFrame(table, index=index, columns=frame.columns).iloc[:-2]
    assert (index.codes[0][-1], len(sliced)) == (0, len(frame))
    return sliced


@given(log_and_call(), st.randoms(use_true_random=False), st.sampled_from(list(LABELS)))
def test_order_and_labels_change_nothing(drawn, random, kind):
    frame, call = drawn
    expected = interval(frame, call)
    rows = random.sample(range(len(frame)), len(frame))
    levels = random.sample(range(frame.index.nlevels), frame.index.nlevels)
    reordered = frame if len(levels) == 1 else frame.reorder_levels(levels)
    for other in (
        frame.iloc[rows],
        frame.iloc[::-1],
        relabelled(frame, kind),
        relabelled(frame.iloc[rows], kind),
        reordered,
        with_unused_labels(frame),
        frame.set_axis(frame.index.remove_unused_levels()),
    ):
        assert_same(interval(other, call), expected, frame)
    assert_same(interval(stacked(frame.iloc[rows]), call), expected, frame)
    turned = dense(frame).transpose(..., "model", *random.sample(frame.index.names, len(levels)))
    assert_same(interval(turned, call), expected, frame)


@given(frames(kinds=("k-fold", "repeated k-fold"), models=(2, 3), dtypes=("float64", "uint8")))
def test_comparisons_and_differences_agree(drawn):
    _, frame = drawn
    columns = ["difference", "se", "lower", "upper", "statistic", "p_value"]
    table = frame.cvci.compare()
    scale = max(1.0, np.abs(frame.to_numpy(dtype=float)).max())
    for name, form in ARRAYS.items():
        result = form(frame).cvci.compare()
        assert result["model"].values.tolist() == [model for model, _ in table.index], name
        assert result["other"].values.tolist() == [other for _, other in table.index], name
        for column in columns[:4]:
            np.testing.assert_allclose(
                result[column].values, table[column], rtol=1e-9, atol=1e-12 * scale
            )
        for reference in (None, "a"):
            gaps = frame.cvci.difference(reference=reference).astype(float)
            found = form(frame).cvci.difference(reference=reference)
            assert_same(interval(found, ("wald", {})), interval(gaps, ("wald", {})), frame)


@given(frames(kinds=("k-fold", "repeated k-fold"), models=(2, 2)), st.randoms())
def test_two_logs_are_paired_by_label(drawn, random):
    _, frame = drawn
    one, other = frame["a"], frame["b"].iloc[random.sample(range(len(frame)), len(frame))]
    expected = frame.cvci.compare()[["difference", "se", "p_value"]].to_numpy(dtype=float)[0]
    scale = max(1.0, np.abs(frame.to_numpy(dtype=float)).max())
    pairs = [(one, other), (one.to_frame(), other.to_frame())]
    for form in (dense, stacked, listed_coords):
        left, right = form(one.to_frame("m")).squeeze("model"), form(other.to_frame("n"))
        pairs += [(left, right.squeeze("model")), (form(one.to_frame("m")), right)]
        pairs.append((as_dataset(form(one.to_frame("m"))), as_dataset(right)))
    for left, right in pairs:
        found = left.cvci.compare(right)
        values = [float(np.squeeze(found[name])) for name in ("difference", "se", "p_value")]
        assert values == pytest.approx(list(expected), rel=1e-9, abs=1e-11 * scale)
        gap = left.cvci.difference(right).cvci.wald()
        assert float(np.squeeze(gap["se"])) == pytest.approx(expected[1], abs=1e-11 * scale)


# --- xarray: what is carried ----------------------------------------------------------------------


@pytest.fixture
def grid():
    """Squared errors of two models in 3 x 2 places and two lead times, ten points, five folds."""
    rng = np.random.default_rng(5)
    return xr.DataArray(
        rng.gamma(2.0, size=(3, 10, 2, 2, 2)),
        {
            "lat": ("lat", [50.0, 51.0, 52.0], {"units": "degrees_north"}),
            "point": list("abcdefghij"),
            "lon": [7, 8],
            "model": ["old", "new"],
            "lead_time": pd.to_timedelta([1, 2], unit="D"),
            "fold": ("point", np.arange(10) % 5),
            "height": ("lat", [3.0, 5.0, 8.0]),
            "run": 17,
        },
        ("lat", "point", "lon", "model", "lead_time"),
        name="squared_error",
        attrs={"units": "K2", "long_name": "squared error", "history": "made up"},
    )


@pytest.mark.parametrize("name", ["wald", "cv_t", "naive", "quadratic", "decompose"])
def test_carried_dimensions_are_a_loop_over_them(grid, name):
    result = getattr(grid.cvci, name)()
    number = "theta_5" if name == "decompose" else "upper"
    assert result[number].dims == ("lat", "lon", "model", "lead_time")
    for where in np.ndindex(3, 2, 2, 2):
        place = dict(zip(("lat", "lon", "model", "lead_time"), where, strict=True))
        series = grid.isel(place).drop_vars(["lat", "lon", "model", "lead_time", "height", "run"])
        alone = getattr(series.to_series().to_frame("x").set_index(
            pd.MultiIndex.from_arrays([grid["fold"].values, grid["point"].values],
                                      names=["fold", "point"]))["x"].cvci, name)()  # fmt: skip
        assert float(result[number].isel(place)) == pytest.approx(alone[number], rel=1e-13)


def test_coordinates_of_carried_dimensions_stay(grid):
    result = grid.cvci.wald()
    for name in ("lat", "lon", "model", "lead_time", "height", "run"):
        xr.testing.assert_identical(
            result[name].reset_coords(drop=True), grid[name].reset_coords(drop=True)
        )
    assert "point" not in result.coords
    assert "fold" not in result.coords


def test_only_the_units_of_the_loss_are_inherited(grid):
    for result in (grid.cvci.wald(), grid.cvci.compare(reference="old"), grid.cvci.decompose()):
        assert "history" not in result.attrs
        for name, variable in result.data_vars.items():
            if name == "caution":
                continue
            in_units = name in {"estimate", "se", "lower", "upper", "difference"}
            assert variable.attrs == ({"units": "K2"} if in_units else {}), name
    cells = grid.cvci.moments(by="fold")
    assert cells["mean"].attrs == {"units": "K2"}
    assert cells["var"].attrs == cells["count"].attrs == {}
    bare = grid.copy()
    bare.attrs = {}
    assert "units" not in bare.cvci.wald()["estimate"].attrs


def test_models_in_other_units_have_none_in_common(grid):
    table = as_dataset(grid)
    table["new"].attrs["units"] = "K"
    assert "units" not in table.cvci.wald()["estimate"].attrs
    table["new"].attrs["units"] = "K2"
    assert table.cvci.wald()["estimate"].attrs == {"units": "K2"}


def test_caution_is_a_cf_flag_variable(grid):
    caution = grid.cvci.naive()["caution"]
    assert caution.dtype == np.int64
    masks, meanings = caution.attrs["flag_masks"], caution.attrs["flag_meanings"].split()
    assert masks.dtype == caution.dtype
    assert masks.tolist() == [c for c in Caution if (caution.values & c).any()]
    assert len(masks) == len(meanings)
    for words in (words for c in Caution for words in (c.sentence, c.advice)):
        assert words == " ".join(words.split())
    name = Caution.NAIVE_POINTS.label.replace(" ", "_")
    assert dict(zip(meanings, masks.tolist(), strict=True))[name] == Caution.NAIVE_POINTS
    assert ((caution.values & Caution.NAIVE_POINTS) != 0).all()


@pytest.mark.parametrize("options", [{}, {"missing": "drop"}])
def test_masked_cells_give_nan_and_say_so(grid, options):
    masked = grid.where((grid["lat"] != 51.0) | (grid["lon"] != 8))
    result = masked.cvci.wald(**options)
    gone = np.isnan(result["estimate"])
    assert int(gone.sum()) == 4
    assert gone.sel(lat=51.0, lon=8).all()
    assert (result["caution"].where(gone, 1) == Caution.NO_LOSSES).all()
    for name in FIRST:
        xr.testing.assert_equal(result[name], grid.cvci.wald()[name].where(~gone))
    pairs = masked.cvci.compare(**options)
    np.testing.assert_array_equal(np.isnan(pairs["p_value"]).squeeze(), gone.isel(model=0))


def test_a_gap_in_one_cell_is_an_error_and_may_be_dropped(grid):
    whole = grid.cvci.wald()["se"]
    grid[1, 4, 0, 0, 0] = np.nan
    with pytest.raises(cvstats.LogError, match="lat=51.0, lon=7, model='old'.*point='e'"):
        cvstats.wald(grid)
    result = cvstats.wald(grid, missing="drop")
    place = {"lat": 1, "lon": 0, "lead_time": 0}
    gap = xr.zeros_like(result["se"], dtype=bool)
    gap[place] = True  # all models of the cell, and no other cell
    xr.testing.assert_equal(result["n_points"], xr.where(gap, 9, 10))
    xr.testing.assert_equal(result["n_dropped"], xr.where(gap, 1, 0))
    without = grid.drop_sel(point="e").cvci.wald()["se"]
    xr.testing.assert_allclose(result["se"], xr.where(gap, without, whole), rtol=1e-13)
