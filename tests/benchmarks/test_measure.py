"""How benchmarks are measured and printed. No time is tested."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks import contract, growth, logs, measure, methods, peers
from benchmarks.measure import Pairs, Row
from cvstats.intervals import interval_names
from evidence.designs import UNMEASURED

TINY = logs.SCALES["tiny"]


def test_turns_alternate_and_what_is_prepared_is_not_timed():
    calls = []
    pairs = measure.in_turns(
        lambda: calls.append("theirs"),
        lambda argument: calls.append(argument),
        prepare=lambda: calls.append("prepare") or "ours",
        budget=0.0,
    )
    assert calls == ["theirs", "prepare", "ours", *["prepare", "theirs", "ours"] * 5]
    assert len(pairs.ours) == len(pairs.theirs) == 5
    row = Pairs([1.0, 2.0, 4.0], [2.0, 2.0, 2.0]).row("work", "log", "peer", 1.5)
    assert row == Row("work", "log", "peer", 2.0, 2.0, 1.0, 1.5, spread=(0.75, 1.5))
    assert Pairs([1.0], [2.0]).row("", "", "").spread == (2.0, 2.0)


@pytest.mark.parametrize(
    ("pairs", "spent", "enough"),
    [
        (4, 3.0, False), (5, 1.0, False), (5, 2.0, True), (101, 1.0, True),
        (2, 60.0, False), (3, 7.0, False), (3, 8.0, True),
    ],
)  # fmt: skip
def test_how_many_pairs_suffice(pairs, spent, enough):
    assert measure.is_enough(pairs, spent, budget=2.0) == enough


def test_bounds_and_units():
    fast = Row("a", "b", "c", ours=0.001, theirs=0.1, ratio=0.01, bound=1 / 30)
    assert fast.cells() == ("a", "b", "c", "100 ms", "1 ms", "0.01", "", "<= 1/30", "yes")
    slow = Row("a", "b", "c", ours=2.5e-5, theirs=1e-5, ratio=2.5, bound=2.0)
    assert slow.cells()[3:] == ("10 us", "25 us", "2.5", "", "<= 2", "NO")
    large = Row("a", "b", "", ours=65.0, bound=64.0, unit="MB", absolute=True)
    assert large.cells()[4:] == ("65.0 MB", "", "", "<= 64.0 MB", "NO")
    none = Row("a", "b", "", ours=0, bound=0, unit="of 4", absolute=True)
    assert none.cells()[4:] == ("0 of 4", "", "", "<= 0 of 4", "yes")
    lines = measure.table([fast, slow]).splitlines()
    assert lines[0].split() == " ".join(measure.COLUMNS).split()
    markdown = measure.table([fast], markdown=True).splitlines()
    assert markdown[1] == f"|{' --- |' * 3}{' ---: |' * 6}"
    assert measure.unpack(measure.pack([fast, slow, large])) == [fast, slow, large]


def test_every_call_of_the_contract_is_measured(monkeypatch):
    monkeypatch.setattr(measure, "is_enough", lambda pairs, *_: pairs >= 1)
    rows = list(contract.calls(TINY))
    assert {row.peer for row in rows} == {
        "np.sum", "groupby.agg", "mean, sem", "X.T @ X", 'mean("point")', "same formula in numpy",
        "the metric in scikit-learn", "np.fft.rfft", "a tenth of it",
    }  # fmt: skip
    assert len(rows) == 2 * 12 + 12 + 4 + 3 + 4 + 2 + 16 + 3 + 5
    # The bounds on ratios are for large logs; what a call costs at least is bounded for small.
    assert [row.cells()[-2] for row in rows if row.bound is not None] == ["<= 1 ms"] * 12
    assert all(row.theirs > 0 for row in rows)


def test_peers_compute_the_same():
    losses = logs.series(2_000)
    pd.testing.assert_frame_equal(
        contract.by_fold(losses), losses.cvci.moments(), check_index_type=False, check_dtype=False
    )
    small = logs.grid(100, 3, dtype="float64")
    for variance in contract.VARIANCES:
        found = contract.by_hand(small.to_numpy(), logs.folds(small), variance)
        ours = small.cvci.wald(variance=variance)
        expected = [ours[name] for name in ("estimate", "lower", "upper")]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_unseen_log_is_the_same_log_with_an_index_of_its_own():
    known = logs.series(2_000)
    fresh = logs.unseen(known)
    pd.testing.assert_series_equal(fresh, known)
    for mine, yours in zip(fresh.index.codes, known.index.codes, strict=True):
        assert not np.shares_memory(mine, yours)


def test_every_interval_is_compared_with_its_plain_formula():
    assert set(methods.METHODS) | set(UNMEASURED) == set(interval_names())


@pytest.mark.parametrize("name", methods.METHODS)
def test_the_plain_formula_of_each_interval_agrees(name):
    size = methods.SIZES["tiny"]
    make, formula = methods.METHODS[name]
    losses = make(size)
    assert methods.is_same(methods.apply_method(losses, name, size), formula(losses))


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [("series", (2_000,)), ("cells", (6_000, 30, 20)), ("frame", (50, 3)), ("grid", (30, 4))],
)
def test_memory_is_measured_twice(kind, sizes):
    found = contract.memory(kind, *sizes)
    assert list(found) == ["resident", "traced"]
    assert all(-1 < amount < 64 for amount in found.values())


def test_reads_meet_every_byte():
    for order in "CF":
        values = peers.as_words(logs.frame(50, 3, order=order).to_numpy())
        assert values.shape == (150,)
        assert np.shares_memory(values, values.base)
    odd = np.arange(13, dtype=np.int8)
    assert peers.as_words(odd).view(np.int8).tolist() == list(range(8))  # whole words


def test_the_exponent_is_that_of_the_upper_part():
    sizes = [10**k for k in range(8)]
    found, start = growth.exponent(sizes, [1.0 + 1e-3 * size**1.5 for size in sizes])
    assert found.startswith("1.50 ± 0.0")
    assert start == "1,000 (5 sizes)"
    flat = growth.exponent(sizes, [1.0 + 1e-6 * size for size in sizes])
    assert flat == ("–", "fixed cost dominates")
    assert growth.exponent(sizes[:2], [1.0, 1.0]) == ("–", "less than tenfold in all")


@pytest.mark.process
def test_the_command_prints_its_table():
    command = [sys.executable, "-m", "benchmarks", "--scale", "tiny", "--only", "machine"]
    done = subprocess.run(command, cwd=measure.ROOT, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    heading, empty, columns, *rows = done.stdout.splitlines()
    assert f"numpy {np.__version__}" in heading
    assert empty == ""
    assert columns.split() == " ".join(measure.COLUMNS).split()
    assert all("plain read" in row or "read of losses" in row for row in rows)
