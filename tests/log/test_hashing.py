"""Equal labels have equal prints, whatever holds them."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import multi_index

import cvstats
from cvstats import Moments
from cvstats.large.moments import hashes_of

DAYS = pd.to_datetime(
    ["2020-01-01", "2020-01-02 03:04:05.678901", "1969-12-31", "2021-06-01"], format="ISO8601"
)
BERLIN = DAYS.tz_localize("Europe/Berlin")


def plain(labels) -> pd.Index:
    return pd.Index(list(labels), dtype=object, tupleize_cols=False)


def written(*labels) -> pd.Index:
    return pd.Index(list(labels), dtype=object, tupleize_cols=False)


EQUAL = {
    "whole numbers": [
        pd.Index([0, 1, 4, 250], dtype=dtype)
        for dtype in ("int64", "uint8", "uint64", "float32", "float64", "object", "Int64")
    ] + [written(0.0, True, Fraction(4), Decimal(250)), pd.CategoricalIndex([0, 1, 4, 250])],
    "numbers": [
        pd.Index([0.5, -200.0, 4.0, 1e30]), plain([0.5, -200, 4, int(1e30)]),
        written(Decimal("0.5"), np.float32(-200), np.int8(4), 1e30),
    ],
    "long whole numbers": [
        pd.Index(np.array([2**63 + 2048, 3], np.uint64)), plain([2**63 + 2048, 3]),
        pd.Index([2.0**63 + 2048, 3.0]),
    ],
    "long negative numbers": [
        pd.Index([-(2.0**63) - 2048, -(2.0**63)]), plain([-(2**63) - 2048, -(2**63)]),
    ],
    "infinite": [pd.Index([np.inf, -np.inf, 1.0]), plain([np.inf, -np.inf, 1])],
    "dates": [
        *(DAYS.as_unit(unit) for unit in ("us", "ns")), plain(DAYS),
        plain(day.to_pydatetime() for day in DAYS), pd.CategoricalIndex(DAYS),
        plain(np.datetime64(day, "ns") for day in DAYS),
    ],
    "days": [DAYS.normalize().as_unit(unit) for unit in ("s", "ms", "us", "ns")],
    "far dates": [
        pd.Index(np.array(["3000-01-01", "2020-01-01"], f"M8[{unit}]")) for unit in ("s", "us")
    ] + [plain([datetime.datetime(3000, 1, 1), datetime.datetime(2020, 1, 1)])],
    "zones": [
        BERLIN, BERLIN.tz_convert("UTC"), BERLIN.as_unit("ns"), plain(BERLIN),
        plain(BERLIN.tz_convert("Asia/Tokyo")), pd.CategoricalIndex(BERLIN),
    ],
    "spans": [
        pd.to_timedelta([1, 36], unit="h"), pd.to_timedelta([1, 36], unit="h").as_unit("ns"),
        plain([datetime.timedelta(hours=1), pd.Timedelta(hours=36)]),
    ],
    "text": [
        pd.Index(["a", "b"], dtype=object), pd.Index(["a", "b"], dtype="str"),
        pd.Index(["a", "b"], dtype="string"), pd.CategoricalIndex(["a", "b"]),
        pd.Index([np.str_("a"), "b"], dtype=object),
    ],
    "tuples": [
        written(("a", 1), (2.0, DAYS[0])),
        written(("a", True), (2, DAYS[0].to_pydatetime())),
    ],
    "sets": [written(frozenset([1, "b"])), written(frozenset(["b", 1.0]))],
    "intervals": [pd.interval_range(0, 2), pd.interval_range(0.0, 2.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_equal_labels_have_equal_prints(name):
    first, *others = EQUAL[name]
    expected = hashes_of(first)
    assert len(set(expected.tolist())) == len(first)
    for other in others:
        np.testing.assert_array_equal(hashes_of(other), expected)


def test_labels_that_differ_have_different_prints():
    labels = [0, 0.5, "0", 2**63, 2**64, -1, (0,), frozenset([0]), DAYS[1], BERLIN[1], "a", 2**70]
    assert len(set(hashes_of(plain(labels)).tolist())) == len(labels)
    near = np.array([2**63 + 1, 2**63 + 2], np.uint64)
    assert len(set(hashes_of(pd.Index(near)).tolist())) == 2
    nanos = pd.DatetimeIndex(["2020-01-01 00:00:00.000000001", "2020-01-01 00:00:00.000000002"])
    assert len(set(hashes_of(nanos).tolist())) == 2


STORED = {
    range(3): [0, 6238072747940578789, 15839785061582574730],
    tuple("abc"): [13950350942979735504, 12688059582079114975, 12544043241617149648],
    (("x", 1), 2.5, "é", 3): [
        17812879481398401686, 17671430070892880561, 16908809132758853863, 2185194620014831856,
    ],
    (frozenset("abc"),): [3420554456954565188],
}  # fmt: skip


@pytest.mark.parametrize("labels", STORED)
def test_prints_are_the_same_in_every_process_and_release(labels):
    assert hashes_of(labels).tolist() == STORED[labels]


def points(labels, repetition: int) -> pd.Series:
    index = multi_index(repetition=[repetition] * 4, fold=[0, 0, 1, 1], point=labels)
    return pd.Series([1.0, 2.0, 4.0, 8.0], index=index)


@pytest.mark.parametrize("name", ["whole numbers", "dates", "zones"])
def test_batches_whose_points_are_of_other_types_are_one_log(name):
    first, *others = EQUAL[name]
    for other in others:
        both = Moments.of_log(points(first, 0)) + Moments.of_log(points(other, 1))
        assert cvstats.wald(both).attrs["n_points"] == 4


def test_positions_of_points_without_labels_are_their_labels():
    coords = {"repetition": [0], "fold": ("point", [0, 0, 1, 1])}
    bare = xr.DataArray([[1.0, 2.0, 4.0, 8.0]], coords, ["repetition", "point"])
    named = bare.assign_coords(repetition=[1], point=[0, 1, 2, 3])
    assert cvstats.wald(Moments.of_log(bare) + Moments.of_log(named)).attrs["n_points"] == 4


def test_tuples_that_read_alike_are_different_points():
    for one, two in (((1, "a"), ("1", "a")), (("Smith, J", "NY"), ("Smith", "J, NY"))):
        assert hashes_of(plain([one]))[0] != hashes_of(plain([two]))[0]
        assert hashes_of(plain([frozenset(one)]))[0] != hashes_of(plain([frozenset(two)]))[0]


def test_points_may_be_numbers_of_any_length():
    ids = [uuid.UUID(int=2**127 + i).int for i in range(3)] + [-(2**90)]
    for labels in (ids, np.array([2**63 + 5, 2**64 - 1, 3, 4], np.uint64)):
        log = points(pd.Index(labels, dtype=None if isinstance(labels, np.ndarray) else object), 0)
        both = Moments.of_log(log.iloc[:2]) + Moments.of_log(log.iloc[2:])
        np.testing.assert_allclose(cvstats.wald(both)["se"], cvstats.wald(log)["se"], rtol=1e-14)
