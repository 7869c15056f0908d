"""The compiled loops do what their Python says, and compile wherever they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cvstats
from cvstats.core import kernels

EPS = np.finfo(float).eps


def both(kernel, inputs, outputs):
    """The outputs of the compiled loop and of its Python; the inputs are read-only."""
    results = []
    for run in (kernel, kernel.py_func):
        out = [array.copy() for array in outputs]
        kept = [array.copy() if isinstance(array, np.ndarray) else array for array in inputs]
        for array in kept:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        run(*arguments(kernel, kept, out))
        for before, after in zip(inputs, kept, strict=True):
            np.testing.assert_array_equal(before, after)
        results.append(out)
    return results


def arguments(kernel, inputs, outputs):
    """Put the arguments in the order of the loop: what is written stands where it is written."""
    first = kernel.py_func.__name__ in ("combine", "mark_seen")
    return [*outputs, *inputs] if first else [*inputs, *outputs]


def same_bits(kernel, inputs, outputs):
    compiled, plain = both(kernel, inputs, outputs)
    for ours, theirs in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return compiled


@st.composite
def rows(draw, cells=5, most=23):
    """Losses and their cells; -1 is nowhere. Any number of rows, a multiple of four or not."""
    n = draw(st.integers(0, most))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = rng.normal(draw(st.sampled_from([0.0, 1e9])), 1.0, n)
    return values, rng.integers(-1, cells, n).astype(np.int32), rng


@given(rows(), st.sampled_from([np.int8, np.int16, np.int32, np.int64]))
def test_combine(log, dtype):
    _, cells, rng = log
    codes = rng.integers(-1, 7, len(cells)).astype(dtype)
    (ours,) = same_bits(kernels.combine, [codes, 7], [cells])
    np.testing.assert_array_equal(ours, np.where((cells < 0) | (codes < 0), -1, cells * 7 + codes))


@given(rows(), st.integers(1, 30))
def test_count(log, block):
    _, cells, _ = log
    zeros = np.zeros((-(-len(cells) // block), 6), int)
    counts, first = same_bits(kernels.count_rows, [cells, block], [zeros, zeros])
    for b in range(len(zeros)):
        part = cells[b * block : (b + 1) * block]
        for k in range(6):
            at = np.flatnonzero(part == k)
            assert counts[b, k] == len(at)
            assert first[b, k] == (at[0] if len(at) else 0)


@given(rows(), st.integers(0, 4), st.integers(1, 3))
def test_mark(log, low, groups):
    _, cells, rng = log
    width = 6
    points = rng.integers(-1, width, len(cells)).astype(np.int32)
    table = np.zeros(groups * (width - 2), np.uint8)
    (seen,) = same_bits(kernels.mark_seen, [cells, points, low, 1, width - 2], [table])
    wanted = np.zeros((groups, width), np.uint8)
    for cell, point in zip(cells, points, strict=True):
        if low <= cell < low + groups and cell >= 0 and point >= 0:
            wanted[cell - low, point] = 1
    np.testing.assert_array_equal(seen.reshape(groups, -1), wanted[:, 1:-1])
    few = np.zeros_like(table)
    kernels.mark_few_seen(few, cells, points, low, 1, width - 2)
    np.testing.assert_array_equal(few, seen)


def pairs_of(sums, cells=5):
    """Take the lanes together: a sum and a sum of squares for each cell."""
    return sums.reshape(cells, kernels.LANES, 2).sum(axis=1).T


def check_sums(values, cells, shift, sums, squares):
    for k in range(len(shift)):
        apart = values[cells == k] - shift[k]
        size = np.abs(apart).sum() + 1
        assert abs(sums[k] - apart.sum()) <= 16 * EPS * size
        assert abs(squares[k] - (apart**2).sum()) <= 16 * EPS * ((apart**2).sum() + 1)


@given(rows(most=50), st.integers(1, 3), st.integers(1, 60), st.booleans(), st.booleans())
def test_accumulate(log, width, block, own, wide):
    """Blocks of columns of a table; it calls the loops of one cell, one shift and own shifts."""
    _, cells, rng = log
    row, column, n = 2, 1, len(cells)
    table = rng.normal(3.0, 1.0, (width + 2, n + 3)).astype(np.float64 if wide else np.float32)
    starts = range(0, n, block)
    only = np.full(len(starts), -1)
    for b, start in enumerate(starts):
        if rng.random() < 0.3:
            cells[start : start + block] = only[b] = rng.integers(5)
    shift = rng.normal(size=(len(starts), width, 5 if own else 1))
    inputs = [table, column, row, block, n, cells, only, shift]
    compiled, plain = both(kernels.accumulate, inputs, [np.zeros((2, len(starts), 5, width))])
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-12, atol=1e-12)
    for b, start in enumerate(starts):
        for j in range(width):
            values = table[column + j, row + start : row + min(start + block, n)].astype(float)
            about = np.broadcast_to(shift[b, j], 5)
            check_sums(values, cells[start : start + block], about, *compiled[0][:, b, :, j])


@given(rows(), st.integers(1, 5), st.sampled_from([np.float64, np.float32]))
def test_accumulate_wide(log, width, dtype):
    _, cells, rng = log
    row, column = 2, 1
    table = rng.normal(3.0, 1.0, (len(cells) + 3, width + 2)).astype(dtype)
    shift = rng.normal(size=(5, width))
    inputs = [table, row, column, cells, shift]
    (sums,) = same_bits(kernels.accumulate_wide, inputs, [np.zeros((5, 2, width))])
    for j in range(width):
        values = table[row : row + len(cells), column + j].astype(float)
        check_sums(values, cells, shift[:, j], sums[:, 0, j], sums[:, 1, j])


@pytest.mark.parametrize("cells", [[2, 3, 2], [2, 2, 2], [2, -1, 2], [3, 2, 2], [-1, -1, -1]])
def test_cells_that_differ_little_are_kept_apart(cells):
    values, cells = np.array([1.0, 2.0, 4.0]), np.array(cells, dtype=np.int32)
    (sums,) = same_bits(kernels.accumulate_one_shift, [values, cells, 0.5], [np.zeros(40)])
    check_sums(values, cells, [0.5] * 5, *pairs_of(sums))


def test_rows_of_no_cell_are_never_read():
    values = np.array([1.0, np.nan, np.inf, 2.0, np.nan, 3.0])
    cells = np.array([0, -1, -1, 0, -1, 0], dtype=np.int32)
    (sums,) = same_bits(kernels.accumulate_one_shift, [values, cells, 2.0], [np.zeros(8)])
    assert pairs_of(sums, cells=1).ravel().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("kind", ["mixed", "gaps", "constant"])
def test_long_runs_of_any_kind(kind):
    rng = np.random.default_rng(4)
    values, cells = rng.normal(size=3_003), rng.integers(0, 5, 3_003).astype(np.int32)
    if kind == "gaps":
        cells[rng.random(3_003) < 0.1] = -1
    if kind == "constant":
        cells[:2_048] = 3
    sums = np.zeros(40)
    kernels.accumulate_one_shift(values, cells, 0.25, sums)
    check_sums(values, cells, [0.25] * 5, *pairs_of(sums))


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans())
def test_gaps(seed, others, both_sides):
    """Any number of other lines, a multiple of four or not; none changes nothing."""
    rng = np.random.default_rng(seed)
    draws, lines = rng.normal(size=(10, 7)), rng.permutation(9)[:others]
    scale, before = rng.normal(size=others), rng.normal(size=7)
    gaps = (draws[9] - draws[lines]) * scale[:, None]
    expected = np.maximum((np.abs(gaps) if both_sides else gaps).max(axis=0), before)
    inputs = [draws, 9, lines, scale, both_sides]
    (largest,) = same_bits(kernels.raise_to_gaps, inputs, [before])
    np.testing.assert_array_equal(largest, expected)
    none = [draws, 9, lines[:0], scale[:0], both_sides]
    np.testing.assert_array_equal(same_bits(kernels.raise_to_gaps, none, [before])[0], before)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 6), st.booleans())
def test_centring(seed, n, models, gaps):
    """Less the level, the row's mean and then the column's, whichever way the table lies."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n + 3, models + 2)) + 5
    at = 2 + np.flatnonzero(rng.random(n) < 0.7) if gaps else np.arange(2, n + 2)
    at = at if len(at) else np.array([1])
    picks = rng.permutation(models + 2)[:models]
    level = rng.normal(size=models)
    rows = table[at][:, picks] - level
    rows -= rows.mean(axis=1, keepdims=True)
    shape = (len(at), models)
    for kernel, way in ((kernels.center_columns, "T"), (kernels.center_rows, "")):
        lies = np.ascontiguousarray(table.T if way else table)
        out = [np.empty(shape[::-1] if way else shape), np.empty(models)]
        for part, middle in both(kernel, [lies, at, picks, level], out):
            np.testing.assert_allclose(middle, rows.mean(axis=0), atol=1e-13)
            part = part.T if way else part
            np.testing.assert_allclose(part, rows - rows.mean(axis=0), atol=1e-13)


@given(rows(), st.integers(1, 6), st.sampled_from([None, 1, 5]))
def test_residuals(log, models, number):
    """About the means of cells, whichever way the table lies; rows of no cell count nothing."""
    _, cells, rng = log
    n, whole = len(cells), number is None
    cells = cells if whole else np.minimum(cells, number - 1)
    table = rng.normal(size=(n + 3, models + 2)) + 5
    picks = rng.permutation(models + 2)[:models]
    mean = rng.normal(size=(number or 1, models))
    at = np.zeros(n, int) if whole else cells
    wanted = np.where(at[:, None] >= 0, table[2 : n + 2, picks] - mean[at], 0.0)
    given_cells = np.empty(0, np.int32) if whole else cells
    for kernel, way in ((kernels.residual_columns, "T"), (kernels.residual_rows, "")):
        lies = np.ascontiguousarray(table.T if way else table)
        out = [np.empty(wanted.T.shape if way else wanted.shape), np.ones(models)]
        for part, rest in both(kernel, [lies, 2, given_cells, picks, mean], out):
            np.testing.assert_allclose(part.T if way else part, wanted, atol=1e-14)
            np.testing.assert_allclose(rest, 1 + wanted.sum(axis=0), atol=1e-12)


SCRIPT = """
import numpy as np, pandas as pd, cvstats
index = pd.MultiIndex.from_arrays([np.arange(12) % 3, range(12)], names=["fold", "point"])
log = pd.Series(np.arange(12.0) ** 2, index=index)
print(cvstats.__file__)
print(repr(cvstats.wald(log, variance="within-fold")["se"].item()))
"""


def answer(home, **environment):
    """What a new process prints; it finds no cache but the one it is told of."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NUMBA_", "CVSTATS_", "COV"))
    }
    clean |= {"HOME": str(home), "XDG_CACHE_HOME": str(home), "USERPROFILE": str(home)}
    clean |= {"LOCALAPPDATA": str(home), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=clean, cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    where, se = done.stdout.split()
    return Path(where), float(se)


SQUARES = oracle.log([i**2 for i in range(12)], fold=[i % 3 for i in range(12)])
EXPECTED = oracle.wald(SQUARES, "within-fold").se


@pytest.mark.process
def test_no_folder_can_be_written(tmp_path):
    """An install that nobody may write to, for a user without a home.

    Permissions do not stop root, so both places for the machine code are made impossible in
    a way that stops everyone: there is a file in place of the package's ``__pycache__``, and
    the home is below a file. The numba that runs is the true one.
    """
    package = tmp_path / "site" / "cvstats"
    source = Path(cvstats.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "core" / "__pycache__").touch()
    (tmp_path / "file").touch()
    where, se = answer(tmp_path / "file" / "home", PYTHONPATH=str(tmp_path / "site"))
    assert where.parent == package
    assert se == pytest.approx(EXPECTED, rel=1e-14)
    assert not any(tmp_path.rglob("*.nbi"))
