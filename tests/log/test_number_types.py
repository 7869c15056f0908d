"""What goes in and what comes out: number types, labels, attrs, the accessor, files."""

import inspect
import re
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import multi_index
from strategies import as_dataset, by_point, dense

import cvstats
from cvstats.accessor import CVAccessor

NUMBER_TYPES = ["float64", "float32", "Float64", "int8", "Int64", "bool", "boolean",
                "Sparse[float]"]  # fmt: skip
if find_spec("pyarrow"):
    NUMBER_TYPES += ["double[pyarrow]", "bool[pyarrow]"]


@pytest.fixture
def frame():
    """0/1 losses of three models in two repetitions of three folds of twelve points."""
    rng = np.random.default_rng(3)
    folds = np.concatenate([rng.permutation(np.arange(12) % 3) for _ in range(2)])
    index = multi_index(
        repetition=np.repeat([0, 1], 12), fold=folds, point=np.tile(list("abcdefghijkl"), 2)
    )
    table = rng.integers(0, 2, (24, 3)).astype(float)
    return pd.DataFrame(table, index=index, columns=["tree", "ridge", "svm"])


@pytest.fixture
def single(frame):
    return frame.xs(0, level="repetition")


@pytest.mark.parametrize("dtype", NUMBER_TYPES)
def test_number_types(frame, dtype):
    expected = frame.cvci.wald(variance="within-fold")
    typed = frame.astype(dtype)
    pd.testing.assert_frame_equal(typed.cvci.wald(variance="within-fold"), expected, rtol=1e-14)
    pd.testing.assert_frame_equal(typed["svm"].cvci.wald(), frame.cvci.wald().loc[["svm"]])
    mixed = frame.assign(ridge=typed["ridge"])
    pd.testing.assert_frame_equal(mixed.cvci.wald(variance="within-fold"), expected, rtol=1e-14)
    pd.testing.assert_frame_equal(typed.cvci.compare(), frame.cvci.compare(), rtol=1e-14)
    gaps = typed["tree"].cvci.difference(frame["svm"])
    pd.testing.assert_series_equal(gaps, frame["tree"] - frame["svm"], check_names=False)


@pytest.mark.parametrize(
    "dtype", [d for d in NUMBER_TYPES if re.match("Float|Int|bool.|.*arrow", d)]
)
def test_missing_values_of_nullable_types(single, dtype):
    typed = single.astype(dtype)
    typed.iloc[4, 1] = pd.NA
    place = re.escape(f"fold={single.index[4][0]}, point={single.index[4][1]!r}")
    refuses(f"'ridge' has no loss .NaN. at {place}", cvstats.wald, typed)
    kept = typed.cvci.wald(missing="drop")
    assert kept.attrs["n_dropped"] == 1
    expected = single.drop(single.index[4]).cvci.wald()
    pd.testing.assert_frame_equal(kept, expected)
    with pytest.raises(cvstats.LogError, match="has no loss"):
        cvstats.wald(typed["tree"].cvci.difference(typed["ridge"]).to_frame().assign(b=1.0))


def test_every_public_function_of_a_log_is_a_method():
    functions = {
        name
        for name in cvstats.__all__
        if inspect.isfunction(getattr(cvstats, name))
        and next(iter(inspect.signature(getattr(cvstats, name)).parameters)) == "losses"
    }
    methods = {name for name, _ in inspect.getmembers(CVAccessor, inspect.isfunction)}
    assert functions <= methods
    assert {name for name in methods if not name.startswith("_")} <= functions


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: f, "12 points, 2 repetitions, 3 folds, 3 models"),
        (lambda f: f["svm"], "12 points, 2 repetitions, 3 folds, 1 model"),
        (dense, "12 points, 2 repetitions, 3 folds, 3 models"),
        (lambda f: as_dataset(by_point(f)), "12 points, 2 repetitions, 3 folds, 3 models"),
        (lambda f: f.droplevel("point"), "24 losses, 2 repetitions, 3 folds, 3 models"),
        (lambda f: f.xs(1, level="fold").xs(0), "4 points, 3 models"),
    ],
)
def test_the_repr_tells_what_was_understood(frame, make, words):
    assert repr(make(frame).cvci) == f"<cvci: {words}>"


def test_the_repr_tells_what_was_not_understood(frame):
    for other in (
        frame.reset_index(),
        frame.iloc[:0],
        xr.DataArray(1.0),
        xr.Dataset(),
        pd.Series(),
    ):
        words = repr(other.cvci)
        assert words.startswith("<cvci: ")
        assert "Expected" in words


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.cvci.wald(),
        lambda log: log.cvci.wald(missing="drop"),
        lambda log: log.cvci.wald(alternative="less"),
        lambda log: log.cvci.compare(),
        lambda log: log.cvci.moments(),
        lambda log: log.cvci.decompose(rho=0.1),
        lambda log: log.cvci.difference(reference="tree").cvci.wald(),
        lambda log: log.isel(repetition=0).cvci.quadratic(bias=(0, 1, -2)),
        lambda log: log.sel(model="tree").cvci.compare(log.sel(model="svm")),
        lambda log: as_dataset(log).cvci.wald(),
        lambda log: log.stack(evaluation=("repetition", "point")).cvci.cv_t(),
    ],
)
def test_results_survive_a_file(tmp_path, frame, call):
    log = (by_point(frame) + 0.5).assign_attrs(units="1")  # few errors need more than 32 bits
    log["fold"] = log["fold"].astype(int)
    log["point"] = log["point"].astype(str)
    log["repetition"] = log["repetition"].astype(int)
    result = call(log)
    result.to_netcdf(tmp_path / "result.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "result.nc", engine="scipy") as file:
        xr.testing.assert_equal(file, result)
        assert file.attrs == result.attrs
        for name in result.data_vars:
            for key, value in result[name].attrs.items():
                np.testing.assert_array_equal(file[name].attrs[key], value)


@pytest.mark.parametrize(("folds", "levels"), [(1, ["point"]), (2, ["point", "cv_fold"])])
def test_a_column_that_varies_and_sounds_like_folds_stays_a_level(folds, levels):
    table = pd.DataFrame({"cv_fold": np.arange(12) % folds, "y": 0.0, "a": np.arange(12.0)},
                         pd.RangeIndex(12, name="point"))  # fmt: skip
    assert cvstats.losses(table, truth="y", prediction="a").index.names == levels


def test_folds_in_another_order_of_bytes():
    log = xr.DataArray(np.arange(40.0) ** 2, dims="point")
    folds = np.arange(40) % 5
    wanted = log.assign_coords(fold=("point", folds)).cvci.wald()
    found = log.assign_coords(fold=("point", folds.astype(">i4"))).cvci.wald()
    xr.testing.assert_identical(found, wanted)


def test_decimals_are_numbers_on_every_road(tmp_path):
    """As databases write them; a missing one is a missing loss, and long ones stay labels."""
    pytest.importorskip("pyarrow")
    index = multi_index(fold=np.arange(40) % 4, point=range(40))
    floats = pd.DataFrame({"a": np.arange(40) / 8, "b": np.arange(40) % 7 / 4}, index)
    log, path = floats.map(lambda value: Decimal(str(value))), tmp_path / "log.parquet"
    log.reset_index().to_parquet(path)
    wanted = cvstats.wald(floats)
    for found in (
        log, cvstats.as_log(log.reset_index(), loss=["a", "b"]), cvstats.read_log(path),
        cvstats.read_log(log.reset_index()), cvstats.scan_parquet(path, loss=["a", "b"]),
    ):  # fmt: skip
        np.testing.assert_allclose(cvstats.wald(found)["lower"], wanted["lower"], rtol=1e-12)
    np.testing.assert_allclose(cvstats.wald(log["a"])["lower"], wanted["lower"].iloc[:1])
    log.iloc[3, 0] = None
    for found in (log, cvstats.read_log(log.reset_index())):
        refuses("'a' has no loss", cvstats.wald, found)
    table = floats.reset_index()
    table["point"] = [Decimal(2**60 + at) for at in range(40)]
    assert cvstats.read_log(table).index.unique("point").size == 40
