"""One pass over the losses: the same numbers for any threads, blocks, layout and type."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvstats.core import design as designs
from cvstats.core import kernels, reduce
from cvstats.core import loss_columns as columns
from cvstats.core import threads as blocks
from cvstats.core.design import Design, Level
from cvstats.core.loss_columns import Differences, LossColumns, binary_columns
from cvstats.core.reduce import compute_moments


@pytest.fixture(autouse=True, scope="module")
def loops():
    """The compiled loops, whatever the size of a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FEW", 0)
        yield


BYS = [(), ("fold",), ("repetition", "fold")]


def design_of(n, folds=5, valid=None, seed=0):
    """A design that knows nothing yet."""
    rng = np.random.default_rng(seed)
    codes = {"repetition": np.arange(n) % 2, "fold": rng.integers(0, folds, n)}
    levels = {name: Level(range(folds), column) for name, column in codes.items()}
    return Design(levels, n, valid)


def state(found):
    return found.codes, found.count, found.location, found.m2


def same_bits(one, two):
    for ours, theirs in zip(state(one), state(two), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def nearly(one, two, tolerance=1e-13, level=1.0):
    """Agreement to so many digits of the spread, which is about one, and of the level."""
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.count, two.count)
    np.testing.assert_allclose(one.mean, two.mean, rtol=0, atol=tolerance * level)
    np.testing.assert_allclose(one.m2, two.m2, rtol=tolerance, atol=tolerance)


def exact(design, table, by):
    """The cells column by column, from sums of whole numbers that lose no digit."""
    here = np.arange(design.size) if design.valid is None else np.flatnonzero(design.valid)
    keys = [tuple(int(design.levels[name].codes[i]) for name in by) for i in here]
    for column in table[here].T.tolist():
        ratios = [loss.as_integer_ratio() for loss in column]
        unit = max(denominator for _, denominator in ratios)  # powers of two
        cells: dict[tuple[int, ...], list[int]] = {}
        for key, (numerator, denominator) in zip(keys, ratios, strict=True):
            cells.setdefault(key, []).append(numerator * (unit // denominator))
        yield {key: exact_moments(cell, unit) for key, cell in cells.items()}


def exact_moments(numbers, unit):
    """Count, mean and squared deviations of whole numbers in this unit."""
    n, total, squares = len(numbers), sum(numbers), sum(number**2 for number in numbers)
    return n, Fraction(total, n * unit), Fraction(n * squares - total**2, n * unit**2)


def check(design, table, losses, by, tolerance=1e-13):
    found = compute_moments(design, losses, by)
    keys = [*map(tuple, found.codes.tolist())]
    for j, wanted in enumerate(exact(design, table, by)):
        assert len(keys) == len(wanted)
        count, *moments = np.array([wanted[key] for key in keys], dtype=float).T
        assert found.count.tolist() == count.tolist()
        for ours, theirs in zip((found.location[:, j], found.m2[:, j]), moments, strict=True):
            apart = np.abs(ours - theirs)
            assert (apart <= tolerance * np.maximum(1, np.abs(theirs))).all()


@pytest.fixture
def small(monkeypatch):
    """Blocks of a few rows and tiles of a few columns, so that a small log has many."""

    def shrink(block=64, tile=3, batch=2):
        for module in (blocks, designs, columns):
            monkeypatch.setattr(module, "BLOCK", block)
        for name, size in (("TILE", tile), ("ABREAST", tile), ("NUMBERS", 1), ("SUMS", 1)):
            monkeypatch.setattr(reduce, name, size)
        monkeypatch.setattr(reduce, "BATCH", batch)
        monkeypatch.setattr(reduce, "TABLE", block)

    return shrink


def kinds(table):
    """The ways in which losses can lie: columns, rows, pieces, few and many differences."""
    width = table.shape[1]
    two = np.array(list(combinations(range(width), 2))).T
    rows = LossColumns((np.ascontiguousarray(table),))
    one = np.zeros(width - 1, int)
    yield "columns", LossColumns((np.asfortranarray(table),)), table
    yield "rows", rows, table
    yield "pieces", LossColumns((table[:, :2], table[:, 2:3], table[:, 3:])), table
    against = Differences(rows, np.arange(1, width), one)
    yield "against", against, table[:, 1:] - table[:, :1]
    yield "pairs", Differences(rows, *two), table[:, two[0]] - table[:, two[1]]


@pytest.mark.parametrize("width", [5, 18])
@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("masked", [False, True])
def test_every_path_against_the_oracle(small, width, by, masked):
    small()
    rng = np.random.default_rng(width)
    n = 203
    table = rng.normal(size=(n, width)) + rng.gamma(1.0, size=(n, 1))
    valid = rng.random(n) < 0.8 if masked else None
    if masked:
        valid[:70] = False  # a whole block
        table[~valid] = np.nan
        table += 1e6
    for kind, losses, wanted in kinds(table):
        assert losses.width == wanted.shape[1]
        if kind == "rows":
            assert (losses.order == "C") == (width >= 16)
        check(design_of(n, valid=valid), wanted, losses, by)


def test_the_wide_path_is_taken(monkeypatch):
    """Otherwise the tests of it would say nothing."""
    taken = []
    wide = reduce._read_rows
    monkeypatch.setattr(reduce, "_read_rows", lambda *args: taken.append(1) or wide(*args))
    table = np.random.default_rng(0).normal(size=(50, 20))
    compute_moments(design_of(50), LossColumns((table,)), ("fold",))
    assert taken
    taken.clear()
    compute_moments(design_of(50), LossColumns((np.asfortranarray(table),)), ("fold",))
    compute_moments(design_of(50), LossColumns((table[:, :15].copy(),)), ("fold",))
    compute_moments(design_of(50), LossColumns((table, table)), ("fold",))
    assert not taken


@pytest.mark.parametrize(("dtype", "width"), [(np.float16, 17), (np.int64, 3)])
def test_types(dtype, width):
    """Every type is widened before it is subtracted or squared."""
    rng = np.random.default_rng(1)
    table = (rng.normal(size=(90, width)) * 40 + 100).astype(dtype)
    wide = table.astype(float)
    for (_, losses, _), (_, doubles, _) in zip(kinds(table), kinds(wide), strict=True):
        for by in BYS:
            found = compute_moments(design_of(90), losses, by)
            nearly(found, compute_moments(design_of(90), doubles, by), level=100)
    check(design_of(90), wide, LossColumns((table,)), ("fold",), tolerance=1e-12)


@pytest.mark.parametrize("width", [4, 18])
@pytest.mark.parametrize("by", BYS)
def test_any_number_of_threads_gives_the_same_bits(small, monkeypatch, width, by):
    small(block=32)
    table = np.random.default_rng(2).normal(size=(401, width)) + 1e3
    found = {}
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("CVSTATS_THREADS", threads)
        for kind, losses, _ in kinds(table):
            moments = compute_moments(design_of(401), losses, by)
            same_bits(moments, found.setdefault(kind, moments))


@pytest.mark.parametrize("block", [1, 2, 7, 64, 1_000])
@pytest.mark.parametrize("width", [4, 18])
def test_any_size_of_block(small, block, width):
    table = np.random.default_rng(4).normal(size=(301, width))
    wanted = {
        (kind, by): compute_moments(design_of(301), losses, by)
        for kind, losses, _ in kinds(table)
        for by in BYS
    }
    small(block=block, tile=1 + block % 5, batch=2 + block % 3)
    for kind, losses, _ in kinds(table):
        for by in BYS:
            found = compute_moments(design_of(301), losses, by)
            nearly(found, wanted[kind, by])


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.sampled_from([1, 3, 18]))
def test_whole_blocks_may_change_places(seed, blocks, width):
    """To the last bit: what the blocks say is merged in an order of its own."""
    rng = np.random.default_rng(seed)
    rows = designs.ROWS_OF_A_CELL * 9  # no cell so small that the design makes its blocks larger
    n = blocks * rows
    table = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-3, 4, (n, 1))
    codes = {name: rng.integers(0, 3, n) for name in ("repetition", "fold")}
    moved = (rng.permutation(blocks)[:, None] * rows + np.arange(rows)).reshape(-1)
    for by in BYS:
        found = []
        for at in (np.arange(n), moved):
            levels = {name: Level(range(3), column[at]) for name, column in codes.items()}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(designs, "BLOCK", rows)
                losses = LossColumns((np.ascontiguousarray(table[at]),))
                found.append(compute_moments(Design(levels, n), losses, by))
        same_bits(*found)


@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
def test_cells_far_apart_lose_no_digits(seed, n):
    """One shift for a whole block will not do where its cells lie far from each other."""
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, 3, n)
    table = (rng.integers(-500, 500, (n, 2)) / 64) + np.array([0.0, 1e6, -1e9])[fold][:, None]
    design = Design({"fold": Level(range(3), fold)}, n)
    check(design, table, LossColumns((np.asfortranarray(table),)), ("fold",), tolerance=1e-12)


@pytest.mark.parametrize("width", [1, 20])
def test_a_first_loss_far_from_the_others_loses_no_digits(width):
    """It is the shift of its cell: the sums about it are huge, so they are taken again."""
    losses = np.random.default_rng(1).normal(size=60_000)
    losses[0] = 1e3
    mean = losses.astype(np.longdouble).mean()
    squares = float(((losses - mean) ** 2).sum())
    table = np.ascontiguousarray(losses[:, None].repeat(width, axis=1))
    found = compute_moments(Design({}, len(losses)), LossColumns((table,)), ())
    np.testing.assert_allclose(found.m2, squares, rtol=1e-12)


def test_a_loss_that_is_no_number_stays_in_its_cell(small):
    small(block=400)
    table = np.random.default_rng(9).normal(size=(400, 2))
    for place, value in ((0, np.nan), (399, np.inf), (0, -np.inf)):
        bad = table.copy()
        bad[place, 0] = value
        found = compute_moments(design_of(400), LossColumns((np.asfortranarray(bad),)), ("fold",))
        wanted = compute_moments(
            design_of(400), LossColumns((np.asfortranarray(table),)), ("fold",)
        )
        here = ~np.isfinite(found.location)
        assert here.sum() == 1
        np.testing.assert_allclose(found.location[~here], wanted.location[~here], rtol=1e-12)
        np.testing.assert_allclose(found.m2[~here], wanted.m2[~here], rtol=1e-12)


def test_many_pairs_come_from_co_moments(monkeypatch):
    """The matrix of co-moments and the columns of differences give the same cells."""
    table = np.random.default_rng(5).normal(size=(400, 12))
    table[:, 3] = table[:, 2]
    table[:, 5] = table[:, 4] + 1e-9 * table[:, 0]
    table[:, 7] = table[:, 6] + 0.5
    losses = Differences(LossColumns((table,)), *np.array(list(combinations(range(12), 2))).T)
    taken = []
    paired = reduce.co_moments

    def metadata(*args):
        taken.append(1)
        return paired(*args)

    monkeypatch.setattr(reduce, "co_moments", metadata)
    for by in BYS:
        ours = compute_moments(design_of(400), losses, by)
        with monkeypatch.context() as patch:
            patch.setattr(reduce, "LARGEST", 0)
            wanted = compute_moments(design_of(400), losses, by)
        nearly(ours, wanted, tolerance=1e-12)
        at = [(left, right) for left, right in combinations(range(12), 2)].index((2, 3))
        assert (ours.location[:, at] == 0).all()
        assert (ours.m2[:, at] == 0).all()
        at = [(left, right) for left, right in combinations(range(12), 2)].index((4, 5))
        np.testing.assert_allclose(ours.m2[:, at], wanted.m2[:, at], rtol=1e-9, atol=0)
    assert len(taken) == len(BYS)


def test_a_common_level_costs_no_digits():
    rng = np.random.default_rng(6)
    steps = rng.integers(-500, 500, size=(300, 10)) / 64  # differences that doubles can hold
    for level in (1e9, rng.integers(0, 2**40, size=(300, 1)).astype(float)):
        for _, losses, wanted in kinds(steps + level):
            if isinstance(losses, Differences):
                check(design_of(300), wanted, losses, ("fold",), tolerance=1e-12)


@pytest.mark.parametrize("dtype", [float, np.float32, np.int8, np.uint8])
def test_binary_columns(small, dtype):
    small(block=8)
    table = (np.random.default_rng(8).random((50, 2)) < 0.5).astype(dtype)
    assert binary_columns(design_of(50), LossColumns((table,))).all()
    table[41, 1] = 2
    assert not binary_columns(design_of(50), LossColumns((table,))).all()
    valid = np.arange(50) != 41
    assert binary_columns(design_of(50, valid=valid), LossColumns((table,))).all()
    gaps = Differences(LossColumns((table,)), np.array([0]), np.array([1]))
    assert not binary_columns(design_of(50, valid=valid), gaps).all()
