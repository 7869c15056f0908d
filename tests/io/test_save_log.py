"""A log comes back from each of five kinds of files as it was."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import product_index
from zarr_stores import writes_zarr

import cvstats
from cvstats.errors import LogError
from cvstats.io import arrow

ZARR = pytest.param("zarr", marks=writes_zarr)
SUFFIXES = ["parquet", "csv", "jsonl", "nc", ZARR]
SPECIAL = [0.1, 1e-308, 1.7976931348623157e308, -0.0, np.nan, np.inf, -np.inf, 1 / 3]


def round_trip(log, path):
    """Write and read."""
    cvstats.save_log(log, path)
    return cvstats.read_log(path)


def labels():
    """Levels with labels of all kinds."""
    n = len(SPECIAL)
    return {
        "integers": np.arange(n, dtype=np.int32),
        "large": np.arange(n, dtype=np.uint64) + 2**63,
        "text": [f'a{i}, "q"\n' for i in range(n)],
        "odd": ["", "NA", "nan", "None", "1", "é✓", " x ", "\t"],
        "mixed": ["a", 1, 2.5, True, None, ("t", 1), np.nan, datetime.date(2024, 2, 29)],
        "dates": pd.DatetimeIndex(np.arange(n) + np.datetime64("2024-01-01T01", "ns")),
        "zoned": pd.DatetimeIndex(
            list(pd.date_range("2024-03-31", periods=n, freq="h", tz="Europe/Paris"))
        ),
        "seconds": pd.DatetimeIndex(np.arange(n) + np.datetime64("1850-01-01", "s")),
        "spans": pd.TimedeltaIndex(np.arange(n).astype("m8[ms]")),
        "grades": pd.Categorical(list("abcabcab"), ["c", "b", "a", "z"], ordered=True),
        "sizes": pd.Categorical([1, 2, None, 1, 2, 1, 2, 1]),
        "truth": np.arange(n) % 2 == 0,
        "nullable": pd.array([1, None, 3, 4, 5, 6, 7, 8], dtype="Int64"),
        "strings": pd.array(list("abcdefgh"), dtype="string"),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_of_every_kind(tmp_path, suffix):
    index = pd.MultiIndex.from_arrays(list(labels().values()), names=list(labels()))
    log = pd.Series(SPECIAL, index=index, name="ridge")
    back = round_trip(log, tmp_path / f"log.{suffix}")
    pd.testing.assert_series_equal(back, log, check_exact=True)
    for ours, theirs in zip(back.index.levels, index.levels, strict=True):
        assert [type(label) for label in ours] == [type(label) for label in theirs]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_models_types_and_attrs(tmp_path, suffix):
    log = pd.DataFrame(
        {
            "single": np.float32(SPECIAL[:1] + SPECIAL[4:]),
            "whole": np.arange(5, dtype=np.int8),
            7: [True, False, True, True, False],
            ("a", 1): np.arange(5.0),
            "losses/ridge": np.arange(5.0),
            "": np.arange(5.0) / 3,
            "y_true": list("abcab"),
            "half": np.float16([0.5, 1, 2, 3, 4]),
        },
        index=pd.Index(list("vwxyz"), name="point"),
    )
    log.columns = pd.Index(list(log.columns), name="model", tupleize_cols=False)
    log.attrs = {
        "units": "kg", "n_train": [90, 91], "nested": {"a": None, "b": [1.5, float("inf")]},
        "rates": {("x", 1): np.float64(2)}, "when": pd.Timestamp("2024-01-01 12:00"),
        "table": np.arange(4).reshape(2, 2), "flag": True, "long": "x" * 100_000,
    }  # fmt: skip
    before = log.copy(deep=True)
    back = round_trip(log, tmp_path / f"log.{suffix}")
    pd.testing.assert_frame_equal(back, log, check_exact=True)
    assert list(back.columns) == list(log.columns)
    np.testing.assert_array_equal(back.attrs.pop("table"), log.attrs.pop("table"))
    assert back.attrs == log.attrs
    pd.testing.assert_frame_equal(log, before)  # and nothing was done to the log


def test_other_programs_find_short_texts_and_numbers_of_64_bits_in_attrs(tmp_path):
    """The other attributes are only in our header."""
    readable = {"units": "kg", "scale": 0.5, "seed": 2**63 - 1, "note": "x" * 9999}
    hidden = {"big": 2**63, "long": "x" * 10_000, "flag": True, "dtype": "int8", "pair": [1, 2]}
    log = xr.DataArray([1.0, 2.0], dims="point", attrs=readable | hidden)
    assert round_trip(log, tmp_path / "log.nc").attrs == readable | hidden
    with xr.open_dataset(tmp_path / "log.nc", engine="h5netcdf") as dataset:
        assert dataset.attrs == readable


def test_categories_are_written_as_their_labels(tmp_path):
    labels = pd.Categorical(["north", "south", "north"], ["south", "north"])
    cvstats.save_log(pd.Series([0.0, 1, 2], pd.Index(labels, name="source")), tmp_path / "log.csv")
    assert pd.read_csv(tmp_path / "log.csv", comment="#")["source"].tolist() == list(labels)


# The CSV reader of pandas 2 ends a cell at a NUL.
NOT_READ = "\0" if pd.__version__ < "3" else ""
ANY = st.characters(exclude_categories=["Cs"], exclude_characters=NOT_READ)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.text(ANY, max_size=6), min_size=1, max_size=4, unique=True),
    texts=st.lists(st.text(ANY, max_size=8), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_any_text_survives(tmp_path, names, texts, data):
    numbers = st.floats(allow_nan=True, allow_infinity=True)
    log = pd.DataFrame(
        {
            name: data.draw(st.lists(numbers, min_size=len(texts), max_size=len(texts)))
            for name in names
        },
        index=pd.Index(texts, dtype=object, name=data.draw(st.text(ANY, max_size=5))),
    )
    for suffix in ("parquet", "csv", "jsonl"):
        back = round_trip(log, tmp_path / f"log.{suffix}")
        pd.testing.assert_frame_equal(back, log, check_exact=True)


def arrays():
    """Logs in xarray, one for each layout."""
    rng = np.random.default_rng(1)
    dense = xr.DataArray(
        rng.gamma(2.0, size=(2, 6, 3)).astype(np.float32),
        dims=("repetition", "point", "lat"),
        coords={
            "repetition": [1, 2],
            "point": list("abcdef"),
            "fold": (("repetition", "point"), np.tile([0, 1, 2], (2, 2))),
            "source": ("point", np.array(["n", "n", "n", "s", "s", "s"])),
            "when": ("point", pd.date_range("2024-01-01", periods=6)),
            "lat": ("lat", [10.0, 20.0, 30.0], {"units": "degrees_north", "odd": None}),
            "north": 1,
        },
        name="ridge",
        attrs={"units": "kg2", "n_train": [4, 4], "note": {"a": 1}},
    )
    index = product_index(fold=[0, 1], point=list("abc"))
    coords = xr.Coordinates.from_pandas_multiindex(index, "evaluation")
    stacked = xr.DataArray(rng.normal(size=6), dims="evaluation", coords=coords)
    both = xr.Dataset(
        {"ridge": dense, "tree": dense * 2, "seen": dense > 1}, attrs={"title": "made up"}
    )
    bare = xr.DataArray(rng.normal(size=(2, 3)), dims=("fold", "point"))
    missing = dense.where(dense > 1)
    return {"dense": dense, "stacked": stacked, "both": both, "bare": bare, "missing": missing}


@pytest.mark.parametrize("suffix", ["nc", ZARR])
@pytest.mark.parametrize("name", arrays())
def test_xarray(tmp_path, suffix, name):
    log = arrays()[name]
    before = log.copy(deep=True)
    back = round_trip(log, tmp_path / f"log.{suffix}")
    xr.testing.assert_identical(back, log)
    xr.testing.assert_identical(log, before)
    assert type(back) is type(log)
    for key in log.coords:
        assert back[key].dtype.kind == log[key].dtype.kind
        assert list(back.indexes) == list(log.indexes)
    if isinstance(log, xr.DataArray):
        assert back.dims == log.dims
        assert back.dtype == log.dtype


def test_other_peoples_netcdf_is_read(tmp_path):
    log = arrays()["bare"].rename("ridge")
    log.to_netcdf(tmp_path / "one.nc", engine="h5netcdf")
    xr.testing.assert_allclose(cvstats.read_log(tmp_path / "one.nc"), log)
    frame = cvstats.datasets.load("diabetes").iloc[:100].reset_index()
    frame.rename_axis("row").to_xarray().to_netcdf(tmp_path / "two.nc", engine="h5netcdf")
    read = cvstats.read_log(tmp_path / "two.nc", prediction="ridge", loss="squared_error")
    assert isinstance(read, xr.DataArray)
    frame = cvstats.datasets.load("diabetes")[["ridge"]]
    frame.to_parquet(tmp_path / "pandas.parquet")
    assert len(cvstats.read_log(tmp_path / "pandas.parquet")) == len(frame)


def test_a_compressed_multiindex_is_decoded(tmp_path):
    import cf_xarray

    log = arrays()["stacked"].rename("ridge").to_dataset()
    encoded = cf_xarray.encode_multi_index_as_compress(log, "evaluation")
    encoded.to_netcdf(tmp_path / "cf.nc", engine="h5netcdf")
    back = cvstats.read_log(tmp_path / "cf.nc")
    assert list(back.indexes["evaluation"].names) == ["fold", "point"]


@pytest.mark.parametrize(
    ("log", "name", "words"),
    [
        (pd.Series([1.0]), "log.xlsx", "ends in '.xlsx'"),
        (pd.Series([1.0]), "log", "has no suffix.*, as in log.parquet"),
        (pd.Series([1.0]), "folder.csv", "exists and is a directory"),
        (pd.Series([1.0]), "log.arff", "does not write .arff"),
        (pd.Series([], dtype=float), "log.csv", "the log is empty"),
        ([1.0], "log.csv", "a list is not a loss log"),
        (
            cvstats.Moments.of_log(pd.Series([1.0]).rename_axis("point")),
            "log.csv",
            r"a Moments is not a loss log.*Save moments by moments\.save\(path\)",
        ),
        (pd.Series([1j]), "log.csv", "the type complex128"),
        (pd.Series([1.0], index=[object()]), "log.csv", "has the type object"),
        (pd.Series([1.0], index=pd.period_range("2024", periods=1)), "log.csv", "the type period"),
        (xr.DataArray([1.0], dims="point"), "log.csv", "cannot be saved as .csv"),
        (xr.Dataset({1: ("point", [1.0])}), "log.nc", "a variable is named 1"),
        (pd.Series([1.0]), "missing/log.csv", "could not be written"),
        (pd.DataFrame([[1.0]], columns=[["a"], ["b"]]), "log.csv", "several levels"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, log, name, words):
    (tmp_path / "folder.csv").mkdir()
    refuses(words, cvstats.save_log, log, tmp_path / name)


def test_attrs_that_no_file_can_hold_are_named(tmp_path):
    log = pd.Series([1.0])
    log.attrs["model"] = object()
    with pytest.raises(LogError, match="an entry of attrs has the type object"):
        cvstats.save_log(log, tmp_path / "log.parquet")


@writes_zarr
def test_a_directory_of_other_things_is_not_replaced(tmp_path):
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.txt").write_text("years of work", encoding="utf-8")
    refuses("is not a Zarr store", cvstats.save_log, pd.Series([1.0]), tmp_path / "mine.zarr")
    assert (tmp_path / "mine.zarr" / "thesis.txt").exists()
    store = tmp_path / "log.zarr"
    cvstats.save_log(pd.Series([1.0, 2.0]), store)
    assert len(round_trip(pd.Series([1.0]), store)) == 1  # and one of ours is


def test_a_header_that_lies_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    cvstats.save_log(cvstats.losses(cvstats.datasets.load("diabetes"), prediction="ridge"), path)
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    notes = json.loads(head.removeprefix("# cvstats: "))
    for change, words in [
        ({"cvstats_log": 99}, "not written by this version"),
        (
            {"index": notes["index"][:1] + [{**notes["index"][1], "kind": "pickle"}]},
            "kind 'pickle'",
        ),
        ({"columns": [{**notes["columns"][0], "field": "gone"}]}, "it has no 'gone'"),
        ({"attrs": {"~x": 1}}, "Unknown mark '~x'"),
    ]:
        lying = json.dumps({**notes, **change})
        path.write_text(f"# cvstats: {lying}\n{rest}", encoding="utf-8")
        refuses(words, cvstats.read_log, path)


@pytest.mark.parametrize("suffix", ["parquet", "nc", "zarr"])
def test_without_the_extra_the_error_names_it(tmp_path, suffix, monkeypatch):
    from cvstats.io import paths

    def absent(module):
        raise ImportError(module)

    monkeypatch.setattr(paths, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install .*\[io\]'"):
        cvstats.save_log(pd.Series([1.0]), tmp_path / f"log.{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_time_zones_are_found_again_or_refused(tmp_path, suffix):
    tz = pytest.importorskip("dateutil.tz", reason="a dependency of older pandas")
    plain = pd.date_range("2024-03-30", periods=4, freq="12h", tz="Europe/Paris")
    path = tmp_path / f"log.{suffix}"
    for zone in (datetime.UTC, datetime.timezone(datetime.timedelta(hours=2)), "Europe/Paris"):
        log = pd.Series(range(4), index=plain.tz_convert(zone).rename("point"), dtype=float)
        back = round_trip(log, path)
        assert (back.index == log.index).all()
        assert str(back.index.tz) == str(log.index.tz)
    log.index = plain.tz_convert(tz.gettz("Europe/Paris")).rename("point")
    refuses(r"point has the time zone tzfile.*tz_convert\('Europe", cvstats.save_log, log, path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_other_byte_orders_and_sparse_columns(tmp_path, suffix):
    index = pd.Index(np.arange(4, dtype=">i4"), name="point")
    frame = pd.DataFrame({"a": np.arange(4, dtype=">f8"), "b": [0.0, 0, 1, 0]}, index=index)
    frame["b"] = frame["b"].astype(pd.SparseDtype(float))
    back = round_trip(frame, tmp_path / f"log.{suffix}")
    np.testing.assert_array_equal(back.to_numpy(), frame.to_numpy())
    assert back.index.tolist() == [0, 1, 2, 3]
    assert back.attrs == {}


@pytest.mark.parametrize("suffix", ["nc", ZARR])
def test_other_byte_orders_in_arrays(tmp_path, suffix):
    log = xr.DataArray(
        np.arange(6, dtype=">f4"), {"fold": ("point", np.arange(6, dtype=">i2") % 2)}, "point",
        attrs={"units": ["kg", "m"], "scale": np.arange(3), "pair": ("a", 1)},
    )  # fmt: skip
    back = round_trip(log, tmp_path / f"log.{suffix}")
    np.testing.assert_array_equal(back, log)
    np.testing.assert_array_equal(back["fold"], log["fold"])
    assert back.attrs["units"] == ["kg", "m"]
    assert back.attrs["pair"] == ("a", 1)
    np.testing.assert_array_equal(back.attrs["scale"], np.arange(3))


def test_a_log_of_many_models_is_read_as_often_as_one_of_few(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra io is not installed")
    opened, kind = [], parquet.ParquetFile

    def count(*args, **options):
        opened[-1] += 1
        return kind(*args, **options)

    monkeypatch.setattr(parquet, "ParquetFile", count)
    for models in (3, 300):
        opened.append(0)
        log = pd.DataFrame(np.arange(5.0 * models).reshape(5, models)).rename_axis("point")
        log.columns = [f"m{i}" for i in range(models)]
        pd.testing.assert_frame_equal(round_trip(log, tmp_path / "log.parquet"), log)
    assert opened[0] == opened[1]
    monkeypatch.setattr(arrow, "READ_TOGETHER", 35)  # columns by sevens
    pd.testing.assert_frame_equal(cvstats.read_log(tmp_path / "log.parquet"), log)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "nc", ZARR])
def test_metrics_keep_their_order(tmp_path, suffix):
    """Results of a saved log had another order of rows."""
    parts = {name: pd.Series([0.2, 0.5, 0.4], pd.RangeIndex(3, name="point")) for name in "zam"}
    log = pd.concat(parts, names=["metric"]).rename("loss")
    cvstats.save_log(log, path := tmp_path / f"log.{suffix}")
    read = cvstats.read_log(path)
    pd.testing.assert_series_equal(read, log)
    assert list(read.cvci.interval(by="metric").index) == ["z", "a", "m"]
