"""Cells, plans and the checks of a design, against sets and dictionaries."""

import itertools

import numpy as np
import pytest
from calls import refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import product_index

from cvstats.core import design as designs
from cvstats.core import kernels
from cvstats.core.design import Design, GridCodes, Level
from cvstats.log.pandas import facts_about

BLOCKS = st.sampled_from([1, 3, 16, 1 << 18])
INTS = [np.int8, np.int16, np.int32, np.int64]


@pytest.fixture(autouse=True, scope="module", params=[0, kernels.FEW], ids=["loops", "numpy"])
def ways(request):
    """The compiled loops, and numpy in their place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FEW", request.param)
        yield


@st.composite
def drawn(draw, names=("repetition", "fold", "point"), least=0, most=30, nowhere=True):
    """A design with random codes, and the codes as columns."""
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {name: draw(st.integers(1, 5)) for name in names}
    low = -1 if nowhere and draw(st.booleans()) else least
    codes = {name: rng.integers(low, size, n) for name, size in sizes.items()}
    valid = rng.random(n) < 0.7 if draw(st.booleans()) else None
    levels = {
        name: Level([f"{name[0]}{i}" for i in range(sizes[name])], column.astype(rng.choice(INTS)))
        for name, column in codes.items()
    }
    return Design(levels, n, valid), codes


def keys_of(design, codes, by):
    """The key of each row as a tuple, None where nothing was evaluated."""
    here = np.ones(design.size, bool) if design.valid is None else design.valid
    return [
        tuple(int(codes[name][i]) for name in by)
        if here[i] and all(codes[name][i] >= 0 for name in by)
        else None
        for i in range(design.size)
    ]


def numbers_of(plan, design):
    """The key of each used cell number."""
    return dict(zip(plan.used.tolist(), map(tuple, plan.codes.tolist()), strict=True))


def check_plan(design, codes, by):
    plan = design.cell_table(by)
    keys = keys_of(design, codes, by)
    names = numbers_of(plan, design)
    cells = design.cells(by, 0, design.size)
    assert not cells.flags.writeable
    assert [names.get(int(k)) for k in cells] == keys
    assert set(names.values()) == {key for key in keys if key is not None}
    assert plan.total.sum() == sum(key is not None for key in keys)
    blocks = [
        range(start, min(start + plan.rows, design.size))
        for start in range(0, design.size, plan.rows)
    ]
    for b, block in enumerate(blocks):
        for number, key in names.items():
            at = [i - block.start for i in block if keys[i] == key]
            assert plan.blocks[0][b, number] == len(at)
            assert plan.blocks[1][b, number] == (at[0] if at else 0)
    return plan


@given(drawn(), BLOCKS, st.integers(0, 3))
def test_cells_and_plans(log, block, many):
    design, codes = log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "BLOCK", block)
        for by in itertools.permutations(codes, many):
            check_plan(design, codes, by)


@given(drawn(), st.data())
def test_cells_of_some_rows(log, data):
    design, codes = log
    by = tuple(codes)[:2]
    start = data.draw(st.integers(0, design.size))
    stop = data.draw(st.integers(start, design.size))
    part = design.cells(by, start, stop)
    np.testing.assert_array_equal(part, design.cells(by, 0, design.size)[start:stop])
    np.testing.assert_array_equal(design.cells(by, start, stop, narrow=True), part)


@given(drawn(nowhere=False), BLOCKS)
def test_a_coarser_plan_is_read_off_a_finer_one(log, block):
    design, codes = log
    fresh = Design(design.levels, design.size, design.valid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "BLOCK", block)
        for by in ((), ("repetition",), ("point",), ("point", "repetition")):
            design.cell_table((*by, "fold"))
            ours = check_plan(design, codes, by)
            np.testing.assert_array_equal(ours.total, fresh.cell_table(by).total)


def test_a_coarser_plan_reads_no_codes(monkeypatch):
    """Those of a log on disk are read once."""
    codes = {"repetition": np.arange(12) % 2, "fold": np.arange(12) % 3}
    design = Design({name: Level(range(3), code) for name, code in codes.items()}, 12)
    design.cell_table(("repetition", "fold"))
    monkeypatch.setattr(Design, "cells", None)
    assert design.cell_table(("fold",)).total.tolist() == [4, 4, 4]
    assert design.cell_table(("repetition",)).total.tolist() == [6, 6, 0]


@given(drawn(), BLOCKS)
def test_a_sparse_plan(log, block):
    """More products of labels than cells could ever be used: only those that occur count."""
    design, codes = log
    levels = {
        name: Level(range(100_003 if name == "fold" else 1_009), level.codes)
        for name, level in design.levels.items()
    }
    sparse = Design(levels, design.size, design.valid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "BLOCK", block)
        for by in (("fold", "point"), ("repetition", "fold", "point"), ("fold",)):
            plan = check_plan(sparse, codes, by)
            assert plan.size == len(plan.index) == len(plan.used)
        assert sparse.cell_table(("repetition",)).index is None
        check_plan(sparse, codes, ("repetition",))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_grid(shape, data):
    shape = tuple(shape)
    size = int(np.prod(shape))
    axes = tuple(data.draw(st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True)))
    base = np.arange(np.prod([shape[axis] for axis in axes]), dtype=np.int32)
    base = base.reshape([shape[axis] for axis in axes])
    wanted = [base[tuple(at[axis] for axis in axes)] for at in np.ndindex(shape)]
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    np.testing.assert_array_equal(GridCodes(axes, shape, base)[start:stop], wanted[start:stop])
    along = GridCodes(axes[:1], shape)
    positions = [at[axes[0]] for at in np.ndindex(shape)]
    np.testing.assert_array_equal(along[start:stop], positions[start:stop])
    block = Level(range(shape[axes[0]]), along).block(start, stop)
    assert block.dtype == np.int32
    assert not block.flags.writeable


SPLIT = ("sample", "outer", "repetition")


def verdict(design, codes):
    """What the checks must find: rows of each split and number of points, or which complaint."""
    by = tuple(name for name in SPLIT if name in codes)
    here = [i for i in range(design.size) if design.valid is None or design.valid[i]]
    splits = [tuple(codes[name][i] for name in by) for i in here]
    rows = sorted(splits.count(split) for split in set(splits))
    for scope in (("point",), ("point", "source") if "source" in codes else ("point",)):
        points = [tuple(codes[name][i] for name in scope) for i in here]
        if len(set(zip(splits, points, strict=True))) == len(here):
            return rows, len(set(points))
    known = [name for name in designs.LEVELS if name in codes]
    full = [tuple(codes[name][i] for name in known) for i in here]
    if len(set(full)) == len(here):
        return "in two folds"
    moved = len(set(zip(splits, points, strict=True))) < len(set(full))
    return "appears twice|in two folds" if moved else "appears twice"


LEVEL_SETS = [
    ("point",), ("fold", "point"), ("repetition", "point"), ("repetition", "fold", "point"),
    ("source", "point"), ("repetition", "source", "point"), ("sample", "repetition", "point"),
    ("outer", "fold", "source", "point"), ("repetition", "fold", "point", "count"),
]  # fmt: skip


@settings(max_examples=30)
@given(st.data(), st.sampled_from(LEVEL_SETS), BLOCKS, st.sampled_from([1, 7, 1 << 25]))
def test_each_evaluation_stands_once(data, names, block, window):
    """Whatever the blocks, and however many windows the table of points needs."""
    design, codes = data.draw(drawn(names, most=9, nowhere=False))
    wanted = verdict(design, codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "BLOCK", block)
        patch.setattr(designs, "WINDOW", window)
        if isinstance(wanted, str):
            refuses(wanted, design.splits)
        else:
            splits = design.splits()
            assert (sorted(splits.rows.tolist()), splits.points) == wanted


@pytest.mark.parametrize("window", [7, 100, 1 << 25])
def test_a_partition_of_some_size(monkeypatch, window):
    monkeypatch.setattr(designs, "WINDOW", window)
    monkeypatch.setattr(designs, "BLOCK", 64)
    rng = np.random.default_rng(0)
    n, r = 50, 6
    codes = {
        "repetition": np.repeat(np.arange(r), n),
        "fold": np.tile(np.arange(n) % 5, r),
        "point": np.concatenate([rng.permutation(n) for _ in range(r)]),
    }
    order = rng.permutation(n * r)
    levels = {name: Level(range(n), column[order]) for name, column in codes.items()}
    splits = Design(levels, n * r).splits()
    assert (splits.rows.tolist(), splits.points) == ([n] * r, n)
    codes["point"][7] = codes["point"][8]
    twice = {name: Level(range(n), column) for name, column in codes.items()}
    refuses("in two folds of one repetition: repetition=0, fold=2", Design(twice, n * r).splits)


def test_points_named_within_their_sources():
    source, point = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 2])
    levels = {"source": Level("ab", source), "point": Level(range(3), point)}
    assert Design(levels, 5).splits().points == 5
    again = {"source": Level("ab", source), "point": Level(range(3), point[[0, 1, 2, 3, 3]])}
    refuses(r"source='b', point=1 \(rows 3 and 4\)", Design(again, 5).splits)
    only_some = Design(again, 5, np.array([True, True, True, True, False]))
    assert only_some.splits().points == 4


@pytest.mark.parametrize("name", ["repetition", "fold", "point"])
def test_a_row_without_a_label(name):
    codes = {level: np.array([0, 0, 1, 1]) for level in ("repetition", "fold")}
    codes["point"] = np.array([0, 1, 0, 1])
    codes[name] = np.where(np.arange(4) == 2, -1, codes[name])
    levels = {level: Level("ab", column) for level, column in codes.items()}
    refuses(f"level '{name}' has no label .NaN. in row 2: .*{name}=None", Design(levels, 4).splits)
    masked = Design(levels, 4, np.array([True, True, False, True]))
    assert masked.splits().points == 2


def test_other_levels_do_not_tell_evaluations_apart():
    levels = {"point": Level("a", np.array([0, 0])), "model": Level("xy", np.array([0, 1]))}
    refuses(r"appears twice.*unstack\('model'\)", Design(levels, 2).splits)


def test_what_is_known_of_an_index_depends_on_its_labels():
    """The same codes with more labels have other cell numbers."""
    index = product_index(fold=range(2), point=range(3))
    more = index.set_levels(range(9), level="point")
    assert facts_about(index) is facts_about(index[:])
    assert facts_about(index) is not facts_about(more)
