"""Moments of cells: they merge in any grouping and order to the moments of the whole."""

from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import close, logs, losses, shuffled

from cvstats.core.cells import Cells, choose_origin, pool
from cvstats.log.read import read


def cells_of(values, key, level):
    """The moments of a few losses, keyed by one level."""
    table = np.asarray(values, dtype=float).reshape(len(key), -1)
    names, size, none = list(dict.fromkeys(key)), len(key), np.zeros_like(table)
    codes = np.column_stack([np.arange(size), [names.index(label) for label in key]])
    origin = choose_origin(np.ones(size), table, none)
    rows = Cells(
        ("row", level), (range(size), tuple(names)), codes, np.ones(size), table - origin, none,
        origin,
    )  # fmt: skip
    return rows.over((level,))


def test_the_origin_is_near_the_mean_of_all_losses():
    count, mean = np.array([10.0, 30.0]), np.array([[1e6 + 1], [1e6 + 5]])
    for size in (1, 100):
        found = choose_origin(size * count, mean, size * np.array([[10.0], [30.0]]))
        assert abs(found.item() - (1e6 + 4)) < 4  # two standard deviations


def cells(found, column=0):
    """Count, mean and squared deviations by key."""
    keys = [
        tuple(labels[code] for labels, code in zip(found.labels, row, strict=True))
        for row in found.codes
    ]
    assert len(set(keys)) == len(keys)
    values = zip(found.count, found.location[:, column], found.m2[:, column], strict=True)
    return dict(zip(keys, values, strict=True))


def same(one, two, rows):
    """Two sets of cells that agree but for rounding."""
    one, two = cells(one), cells(two)
    assert one.keys() == two.keys()
    for key, (count, mean, m2) in one.items():
        n, middle, squares = two[key]
        assert count == n
        assert close(mean, middle, rows)
        assert close(m2 / n, squares / n, rows, 2)


def check(found, rows, by):
    """The cells of the oracle."""
    exact = oracle.moments(rows, by=by)
    ours = cells(found)
    assert ours.keys() == exact.keys()
    for key, (count, mean, var) in exact.items():
        n, middle, squares = ours[key]
        assert n == count
        assert close(middle, mean, rows)
        assert close(squares / max(n - 1, 1), var or 0, rows, 2)


LOGS = logs(sizes=(1, 5), folds=(1, 4), repetitions=(1, 3))


@given(LOGS)
def test_of_a_log(rows):
    log = read(shuffled(rows))
    for by in ((), ("fold",), ("repetition", "fold"), ("fold", "repetition"), ("point",)):
        check(log.moments(by), rows, by)


@given(LOGS)
def test_over_and_groups(rows):
    fine = read(shuffled(rows)).moments(("repetition", "fold", "point"))
    for by in ((), ("fold",), ("repetition",), ("repetition", "fold"), ("point", "fold")):
        check(fine.over(by), rows, by)
    check(fine.over(("repetition", "fold")).over(("fold",)), rows, ("fold",))
    parts = fine.groups("repetition")
    labels = sorted({row.repetition for row in rows})
    assert len(parts) == len(labels)
    for label, part in zip(labels, parts, strict=True):
        assert part.levels == ("fold", "point")
        own = [row for row in rows if row.repetition == label]
        check(part.over(("fold",)), own, ("fold",))


@given(st.lists(st.integers(1, 6).flatmap(losses), min_size=3, max_size=3), st.data())
def test_addition_is_associative_and_commutative(columns, data):
    names = st.sampled_from("abc")
    parts, rows = [], []
    for values in columns:
        key = data.draw(st.lists(names, min_size=len(values), max_size=len(values)))
        parts.append(cells_of(np.array(values), key, "fold"))
        rows += oracle.log(values, fold=key)
    a, b, c = parts
    same((a + b) + c, a + (b + c), rows)
    same(a + b, b + a, rows)
    check(a + b + c, rows, ("fold",))


def test_labels_are_matched_and_not_their_order():
    one = cells_of(np.array([1.0, 2.0]), ["x", "y"], "fold")
    two = cells_of(np.array([5.0, 6.0, 8.0]), ["y", "z", "x"], "fold")
    assert cells(one + two) == {
        ("x",): (2, 4.5, 24.5), ("y",): (2, 3.5, 4.5), ("z",): (1, 6.0, 0.0),
    }  # fmt: skip
    with pytest.raises(ValueError, match="do not add"):
        one + cells_of(np.array([1.0]), ["x"], "source")


def test_nothing_is_changed_in_place():
    one = cells_of(np.array([1.0, 2.0, 4.0]), ["x", "y", "x"], "fold")
    before = [array.copy() for array in (one.codes, one.count, one.mean, one.m2, one.origin)]
    _ = one + one, one.over(()), one.groups("fold")
    for was, now in zip(before, (one.codes, one.count, one.mean, one.m2, one.origin), strict=True):
        np.testing.assert_array_equal(was, now)


def test_equal_losses_have_no_spread_however_they_are_merged():
    parts = [cells_of(np.full(n, 0.1), ["x"] * n, "fold") for n in (1, 2, 3, 7)]
    whole = parts[0] + parts[1] + parts[2] + parts[3]
    assert cells(whole)[("x",)] == (13, 0.1, 0.0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.data())
def test_pool(sizes, data):
    """Blocks that miss a cell count for nothing; a cell that all miss stays at zero."""
    blocks = [data.draw(losses(size)) for size in sizes]
    count = np.array([[float(size), 0.0] for size in sizes])
    mean, m2 = np.zeros((2, len(sizes), 2, 1))
    for b, values in enumerate(blocks):
        if values:
            mean[b, 0, 0] = np.mean(values)
            m2[b, 0, 0] = np.sum((values - mean[b, 0, 0]) ** 2)
    n, middle, squares = pool(count, mean, m2)
    every = [value for values in blocks for value in values]
    assert n.tolist() == [len(every), 0]
    assert (middle[1, 0], squares[1, 0]) == (0, 0)
    if every:
        rows = oracle.log(every)
        exact = [Fraction(value) for value in every]
        centre = oracle.mean(exact)
        assert close(middle[0, 0], centre, rows)
        assert close(
            squares[0, 0] / len(every), oracle.squares(exact, centre) / len(every), rows, 2
        )
