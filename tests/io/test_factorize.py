"""Labels as whole numbers: the same as pandas makes, from any kind of column."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from plotted import logged

import cvstats
from cvstats.errors import LogError
from cvstats.io.as_log import combine_codes, factorize, factorize_level, first_rows


@given(
    hnp.arrays(
        st.sampled_from([np.int64, np.int32, np.uint8, np.int8, np.uint64]),
        st.integers(1, 30),
        elements=st.integers(0, 100),
    ),
    st.sampled_from([0, -50, 20]),
)
def test_close_whole_numbers_are_numbered_as_pandas_does(values, shift):
    if values.dtype.kind == "i" and values.dtype.itemsize > 1:
        values = values + values.dtype.type(shift)
    codes, names = factorize(pd.Series(values))
    expected = pd.Categorical(values)
    np.testing.assert_array_equal(codes, expected.codes)
    np.testing.assert_array_equal(names, expected.categories)
    assert names.dtype == values.dtype


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", None],
        [1, "a", (2, 3), 1],
        [2.5, np.nan, 1.0],
        pd.to_datetime(["2024-01-02", "2024-01-01", None]),
        pd.Categorical(["x", "y", None], ["y", "x", "unused"], ordered=True),
        [10**15, -(10**15), 3],
        [2**63 - 1, -(2**63)],
        [True, False, True],
    ],
)
def test_other_labels_too(labels):
    values = pd.Series(labels)
    codes, names = factorize(values)
    taken = [None if code < 0 else names[code] for code in codes]
    assert taken == [None if pd.isna(v) is True else v for v in values]


@pytest.mark.parametrize(("most", "kind"), [(300, "i"), (2**53 - 1, "i"), (2**53, "f")])
def test_floats_become_whole_numbers_if_they_hold_them_exactly(most, kind):
    for labels in ([1.0, most], [-most, 1.0]):
        assert factorize_level(pd.Series(labels, dtype=float), "point")[1].dtype.kind == kind


def test_rows_with_the_same_labels_have_the_same_number(monkeypatch):
    rng = np.random.default_rng(1)
    parts = [factorize(pd.Series(rng.integers(0, 5, 200))) for _ in range(3)]
    table = pd.DataFrame([codes for codes, _ in parts]).T
    expected = table.groupby([0, 1, 2], sort=False).ngroup()
    np.testing.assert_array_equal(combine_codes(parts), expected)
    wide = [(codes << 19, range(1 << 22)) for codes, _ in parts]  # more combinations than 2^64
    np.testing.assert_array_equal(combine_codes(wide), expected)
    monkeypatch.setattr("cvstats.io.as_log.MOST_KEYS", 10)  # numbers that would be too large
    np.testing.assert_array_equal(combine_codes(parts), expected)
    first = table.drop_duplicates().index
    np.testing.assert_array_equal(first_rows(combine_codes(parts)), first)


def test_labels_that_are_none():
    with pytest.raises(LogError, match="a label of 'fold' is a list. Expected names or numbers"):
        factorize_level(pd.Series([[1], [2]]), "fold")
    with pytest.raises(LogError, match="row 1 has no fold \\(and 1 more evaluation\\)"):
        factorize_level(pd.Series(["a", None, None]), "fold")


@pytest.mark.parametrize("package", ["h5py", "h5netcdf"])
def test_what_netcdf_needs(monkeypatch, tmp_path, package):
    cvstats.save_log(logged("diabetes"), path := tmp_path / "log.nc")
    monkeypatch.setitem(sys.modules, package, None)
    words = rf"NetCDF needs {package}. Install it: pip install .*\[io\]'"
    with pytest.raises(ImportError, match=words):
        cvstats.save_log(logged("diabetes"), path)
    with pytest.raises(ImportError, match=words):
        cvstats.read_log(path)


def test_one_truth_for_each_point():
    table = {
        "fold": [1, 2, 1, 2],
        "point": list("abab"),
        "repetition": [1, 1, 2, 2],
        "y_pred": [1] * 4,
    }
    for truth, words in (
        ([1, 2, 3, 2], "1 in one row but 3 in another. Expected one truth for each point."),
        (list("xyzw"), "'x' in one row but 'z' in another (and 1 more). Expected"),
        ([1.5, np.nan, 2.5, 2], "1.5 in one row but 2.5 in another. Expected"),
    ):
        with pytest.raises(LogError, match=re.escape(f"the truth of point='a' is {words}")):
            cvstats.read_log({**table, "y_true": truth}, loss="squared_error")
    log = cvstats.read_log({**table, "y_true": [1.0, 2.0, 1.0, 2.0]}, loss="squared_error")
    assert log.tolist() == [0.0, 1.0, 0.0, 1.0]
    table |= {"y_true": [1.0, 2.0, 3.0, 2.0], "lead": [1, 1, 2, 2], "repetition": 1}
    log = cvstats.read_log(pd.DataFrame(table), by="lead", loss="squared_error")
    assert log.xs(2, level="lead").tolist() == [4.0, 1.0]  # the truth after two steps
