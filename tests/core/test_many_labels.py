"""Levels with many labels, with labels that never occur, and with rows that have none."""

import time
import tracemalloc
from dataclasses import replace

import golden
import numpy as np
import oracle
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import multi_index, only_row

import cvstats
from cvstats import Moments
from cvstats.core import design as designs
from cvstats.core import kernels, reduce
from cvstats.core.design import CellIndex
from cvstats.log.groups import Groups
from cvstats.log.read import read

BY = list("abcde")


def crowded(labels: int, n: int = 2_000) -> pd.Series:
    """Five levels whose labels have more products than 64 bits can number."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, labels, n) for _ in BY]
    index = pd.MultiIndex(
        levels=[range(labels)] * 5 + [range(n)], codes=[*codes, np.arange(n)], names=[*BY, "point"]
    )
    return pd.Series(rng.normal(size=n), index=index)


@pytest.mark.parametrize("labels", [3, 20_000, 65_536])
def test_no_row_is_lost_where_cells_are_too_many_to_number(labels):
    log = crowded(labels)
    expected = log.groupby(level=BY).agg(["count", "mean"]).sort_index()
    for found in (log.cvci.moments(by=BY), Moments.of_log(log, by=BY).moments(by=BY)):
        pd.testing.assert_frame_equal(
            found[["count", "mean"]].sort_index(), expected, check_names=False,
            check_index_type=False,
        )  # fmt: skip


@pytest.mark.parametrize("labels", [(1, 127), (1, 128), (43, 3), (13, 10), (1, 255), (16, 16)])
def test_cells_whose_numbers_just_fit_into_few_bits(labels):
    rng = np.random.default_rng(0)
    n = 2 * labels[0] * labels[1]
    codes = np.unravel_index(np.arange(n) % (n // 2), labels)
    values = rng.normal(size=(n, 2))
    names = dict(zip("ab", codes, strict=True))
    index = pd.MultiIndex.from_arrays([*codes, np.arange(n)], names=[*"ab", "point"])
    log = pd.DataFrame(values, index, ["x", "y"])
    means = log.groupby(level=["a", "b"]).mean().stack().sort_index()
    places = {name: ("point", each) for name, each in names.items()}
    array = xr.DataArray(values, {"model": ["x", "y"], **places}, ("point", "model"))
    for one in (log, array, array.chunk(point=7), array.chunk(model=1)):
        found = golden.computed(cvstats.moments(one, by=("a", "b")))
        np.testing.assert_allclose(np.sort(np.ravel(found["mean"])), np.sort(means), rtol=1e-12)
    by = array.chunk(model=1).cvci.wald(by="b")["estimate"].compute()
    np.testing.assert_allclose(by.sel(model="x"), log["x"].groupby(level="b").mean(), rtol=1e-9)


def test_cells_that_differ_in_a_high_digit_only():
    names = ["sample", "outer", "repetition", "fold", "source"]
    zeros = np.zeros(4, dtype=int)
    index = pd.MultiIndex(
        levels=[np.arange(1 << 16)] * 5 + [np.arange(4)],
        codes=[np.array([0, 1, 0, 1]), *[zeros] * 4, np.arange(4)], names=[*names, "point"],
    )  # fmt: skip
    log = pd.Series([0.0, 10.0, 0.0, 10.0], index=index)
    assert log.cvci.moments(by=names)["mean"].tolist() == [0.0, 10.0]
    parts = [Moments.of_log(log.iloc[rows], by=names) for rows in ([0, 1], [2, 3])]
    whole = parts[0] + parts[1]
    assert whole.cells.count.tolist() == [2, 2]
    assert whole.prints.tolist() == (parts[0].prints + parts[1].prints).tolist()


def test_repeated_rows_are_named_among_many_labels():
    log = crowded(65_536)
    twice = log.iloc[[*range(len(log)), 7]]
    twice.index = twice.index.set_names(
        ["sample", "outer", "repetition", "fold", "source", "point"]
    )
    refuses(r"the same evaluation appears twice: .*rows 7 and 2,000", cvstats.wald, twice)


def test_the_parts_of_a_log_of_many_labels():
    log = crowded(65_536)
    site = pd.Index(np.arange(len(log)) % 2, name="site")
    log = log.to_frame("loss").set_index(site, append=True)["loss"]
    groups = Groups(replace(read(log, by="site"), used=("site", *BY)), "site")
    for at in (0, 1):
        design = groups.part(at).design
        own = design.cell_table(tuple(BY)).codes
        found = own[design.cells(BY, 0, design.size)]
        codes = [log.index.codes[log.index.names.index(name)][at::2] for name in BY]
        np.testing.assert_array_equal(found, np.stack(codes, axis=1))


@pytest.mark.parametrize("size", [3, 1 << 20, (1 << 31) - 1])
def test_keys_are_places_in_the_order_of_codes(size):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (4, 200)) * ((size - 1) // 2)
    codes[0, ::7] = -1
    keys = CellIndex.of([size] * 4, lambda: [codes[:, :90], codes[:, 90:]])
    rows = sorted({tuple(row) for row in codes.T.tolist() if min(row) >= 0})
    assert keys.codes().tolist() == [list(row) for row in rows]
    places = [rows.index(tuple(row)) if min(row) >= 0 else -1 for row in codes.T.tolist()]
    assert keys.find(codes).tolist() == places


def test_a_product_that_32_bits_do_not_hold_takes_the_sparse_way(monkeypatch):
    design = designs.Design(
        {name: designs.Level(range(1 << 16), np.array([0, 65_535], np.int32)) for name in "ab"}, 2
    )
    monkeypatch.setattr(designs, "SPARSE", (4, 1 << 40))
    assert design.cell_table(("a", "b")).total.tolist() == [1, 1]


def filtered(labels: int, repetitions: int = 20, n: int = 100) -> pd.Series:
    """What is left of a long log after a filter: few rows, and all of its labels."""
    rng = np.random.default_rng(2)
    points = np.sort(rng.permutation(labels)[:n])
    index = pd.MultiIndex(
        levels=[range(repetitions), np.arange(labels)],
        codes=[np.repeat(np.arange(repetitions), n), np.tile(points, repetitions)],
        names=["repetition", "point"], verify_integrity=False,
    )  # fmt: skip
    return pd.Series(rng.normal(size=len(index)), index=index)


def test_labels_that_never_occur_change_nothing_and_cost_little():
    log = filtered(5_000_000)
    plain = log.copy()
    plain.index = log.index.remove_unused_levels()
    expected = cvstats.corrected_t(plain, train_size=100)
    start = time.process_time()
    tracemalloc.start()
    pd.testing.assert_frame_equal(cvstats.corrected_t(log, train_size=100), expected)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory < 4e6
    assert time.process_time() - start < 2
    assert Moments.of_log(log).prints.tolist() == Moments.of_log(plain).prints.tolist()


def with_site(labels) -> pd.Series:
    return pd.Series(np.arange(300.0), index=multi_index(point=range(300), site=labels))


@pytest.mark.parametrize("gaps", [10, 300])
@pytest.mark.parametrize(
    "ask", [cvstats.moments, cvstats.holdout, Moments.of_log], ids=["moments", "holdout", "of_log"]
)
def test_rows_without_a_label_are_refused_everywhere_in_the_same_words(gaps, ask):
    log = with_site(np.where(np.arange(300) < gaps, np.nan, 1.0))
    words = (
        r"^level 'site' has no label \(NaN\) in row 0: site=None, point=0\. "
        r"Expected a label for every evaluation\. Give these rows a label, or drop them: "
        r"log\[log\.index\.get_level_values\('site'\)\.notna\(\)\]\.$"
    )
    refuses(words, ask, log, by="site")
    assert cvstats.moments(log, by=())["count"].sum() == 300


def test_words_follow_the_labels_of_an_index():
    index = multi_index(
        repetition=np.arange(100) % 2, point=np.arange(100) // 2, source=np.arange(100) % 10
    )
    log = pd.Series(np.arange(100.0), index=index)
    refuses(r"source=0, point=0 appears in source=1 too", cvstats.clustered, log)
    log.index = log.index.set_levels(list("abcdefghij"), level="source")
    refuses(r"source='a', point=0 appears in source='b' too", cvstats.clustered, log)


def many_cells(rows: int, repetitions: int, folds: int) -> pd.Series:
    rng = np.random.default_rng(3)
    points = rows // repetitions
    index = pd.MultiIndex(
        levels=[range(repetitions), range(folds), range(points)],
        codes=[
            np.repeat(np.arange(repetitions, dtype=np.int16), points),
            np.tile((np.arange(points) % folds).astype(np.int8), repetitions),
            np.tile(np.arange(points, dtype=np.int32), repetitions),
        ],
        names=["repetition", "fold", "point"], verify_integrity=False,
    )  # fmt: skip
    return pd.Series(rng.normal(size=rows), index=index)


def test_memory_is_bounded_by_the_cells_and_not_by_the_rows(monkeypatch):
    """Blocks of many cells are merged early, and their counts are not remembered."""
    cvstats.wald(many_cells(20_000, 50, 20), variance="within-fold")  # loads the kernels
    monkeypatch.setenv("CVSTATS_THREADS", "1")
    peaks = []
    for rows in (3_000_000, 6_000_000):
        log = many_cells(rows, 250, 60)
        tracemalloc.start()
        cvstats.wald(log, variance="within-fold")
        peaks.append(tracemalloc.get_traced_memory()[1] - rows)  # a byte marks each point as seen
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 24e6


@pytest.mark.parametrize("table", [0, 1 << 21])
@pytest.mark.parametrize("kept", [1, 1 << 19])
def test_early_merges_and_forgotten_counts_change_no_answer(monkeypatch, table, kept):
    monkeypatch.setattr(kernels, "FEW", 0)
    monkeypatch.setattr(designs, "BLOCK", 64)
    monkeypatch.setattr(designs, "TABLE", table)
    monkeypatch.setattr(reduce, "KEPT", kept)
    rng = np.random.default_rng(4)
    index = multi_index(fold=rng.integers(0, 3, 1_000), point=np.arange(1_000))
    log = pd.Series(rng.normal(size=1_000) + 1e6, index=index)
    expected = oracle.wald(oracle.log(log.tolist(), fold=index.codes[0].tolist()), "within-fold")
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("CVSTATS_THREADS", threads)
        log.index = index.copy(deep=True)
        found.append(only_row(cvstats.wald(log, variance="within-fold"))["se"])
    assert found[0] == found[1] == found[2]
    assert found[0] == pytest.approx(expected.se, rel=1e-9)
