"""What plans draw: folds, splits and samples of every size, with classes and with groups."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cvstats import LogError, plans

SEEDS = st.integers(0, 2**40)


def evaluations(bound):
    """Pairs of a fit and an evaluation, the levels as a tuple."""
    return [(fit, at, tuple(at.levels.values())) for fit in bound for at in fit.evaluations]


# --- folds ----------------------------------------------------------------------------------------


@given(seed=SEEDS, n=st.integers(2, 60), k=st.integers(2, 12))
def test_folds_divide_the_points_evenly(seed, n, k):
    plan = plans.repeated_k_fold(k, 2, rng=seed)
    if n < k:
        with pytest.raises(LogError, match=f"n_folds={n} or fewer"):
            plan.bind(n)
        return
    tested = {(r, f): at.points for fit, at, (r, f) in evaluations(plan.bind(n))}
    assert set(tested) == {(r, f) for r in range(2) for f in range(k)}
    for r in range(2):
        sizes = [len(tested[r, f]) for f in range(k)]
        assert max(sizes) - min(sizes) <= 1
        assert sorted(np.concatenate([tested[r, f] for f in range(k)])) == list(range(n))
    for fit, at, _ in evaluations(plan.bind(n)):
        assert sorted([*fit.train, *at.points]) == list(range(n))


@given(seed=SEEDS, sizes=st.lists(st.integers(3, 15), min_size=2, max_size=4), k=st.integers(2, 3))
@example(seed=0, sizes=[3, 5], k=3)
def test_stratified_folds_have_their_share_of_each_class(seed, sizes, k):
    y = np.random.default_rng(seed).permutation(np.repeat(list("abcd")[: len(sizes)], sizes))
    counts = [
        Counter(y[at.points].tolist())
        for _, at, _ in evaluations(plans.k_fold(k, stratified=True, rng=seed).bind(len(y), y))
    ]
    for label, size in zip("abcd", sizes, strict=False):
        assert {c[label] for c in counts} <= {size // k, -(-size // k)}
    totals = [sum(c.values()) for c in counts]
    assert max(totals) - min(totals) <= 1


@given(seed=SEEDS, sizes=st.lists(st.integers(1, 9), min_size=4, max_size=12), k=st.integers(2, 4))
def test_grouped_folds_keep_groups_together(seed, sizes, k):
    groups = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    tested = [
        set(groups[at.points].tolist())
        for _, at, _ in evaluations(
            plans.k_fold(k, grouped=True, rng=seed).bind(len(groups), groups=groups)
        )
    ]
    assert sum(map(len, tested)) == len(sizes)
    assert set.union(*tested) == set(range(len(sizes)))
    assert all(tested)


def test_groups_of_different_sizes_still_fall_differently():
    groups = np.repeat(np.arange(8), np.arange(1, 9))
    plan = plans.repeated_k_fold(2, 20, grouped=True, rng=1)
    ways = {tuple(at.points) for _, at, _ in evaluations(plan.bind(len(groups), groups=groups))}
    assert len(ways) > 10


def test_leave_one_out_and_leave_one_source_out():
    left = evaluations(plans.leave_one_out().bind(4))
    assert [(label, at.points.tolist()) for _, at, label in left] == [((i,), [i]) for i in range(4)]
    months = ["jan", "feb", "jan", "mar", "feb"]
    out = evaluations(plans.leave_one_source_out().bind(5, groups=months))
    assert [(label, at.points.tolist()) for _, at, label in out] == [
        (("feb",), [1, 4]), (("jan",), [0, 2]), (("mar",), [3]),
    ]  # fmt: skip


@given(seed=SEEDS, n=st.integers(6, 40), k=st.integers(3, 5))
def test_nested_folds(seed, n, k):
    plan = plans.nested_cv(k, 2, rng=seed)
    if n < 2 * k:
        needs = f"at least {2 * k} points, but there are {n}. Expected n_folds={n // 2} or fewer"
        with pytest.raises(LogError, match=needs):
            plan.bind(n)
        return
    bound = plan.bind(n)
    assert bound.n_fits == 2 * k * (k + 1) // 2
    every = evaluations(bound)
    assert {label for _, _, label in every} == {
        (r, j, f) for r in range(2) for j in range(k) for f in range(k)
    }
    fold = {(r, f): set(at.points) for _, at, (r, j, f) in every if j == f}
    for fit, at, (r, j, f) in every:
        assert set(at.points) == fold[r, f]
        assert set(fit.train) == set(range(n)) - fold[r, f] - fold[r, j]


@given(seed=SEEDS, n=st.integers(4, 30), k=st.integers(2, 4))
def test_replaced_points(seed, n, k):
    plan = plans.replace_one(k, 2, rng=seed)
    h = n // 2
    if h < k:
        with pytest.raises(LogError, match=f"n_folds={h} or fewer"):
            plan.bind(n)
        return
    bound = plan.bind(n)
    assert bound.n_fits == 2 * (2 * k + h * (k - 1))
    sets, models = {}, {}
    for fit, at, (sample, r, f) in evaluations(bound):
        sets.setdefault((sample, r), {})[f] = set(at.points.tolist())
        models[sample, r, f] = set(fit.train.tolist())
    assert set(sets) == {(sample, r) for sample in range(h + 2) for r in range(2)}
    for (sample, r), tested in sets.items():
        points = set().union(*tested.values())
        assert len(points) == sum(map(len, tested.values())) == (n if sample == 0 else h)
        assert all(models[sample, r, f] == points - tested[f] for f in range(k))
        if sample > 1:  # one point is another, in the same fold; the others have not moved
            half, new = sets[1, r], points - set().union(*sets[1, r].values())
            changed = [f for f in range(k) if tested[f] != half[f]]
            assert len(new) == len(changed) == 1
            assert new <= tested[changed[0]]
    left = set().union(*sets[1, 0].values())
    assert left == set().union(*sets[1, 1].values())
    gone = [left - set().union(*sets[s, 0].values()) for s in range(2, h + 2)]
    come = [set().union(*sets[s, 0].values()) - left for s in range(2, h + 2)]
    assert set().union(*gone) == left  # each point once
    assert len(set().union(*come)) == h


# --- splits and bootstraps ------------------------------------------------------------------------


@given(seed=SEEDS, n=st.integers(2, 60), ratio=st.floats(0.05, 0.95))
def test_random_splits(seed, n, ratio):
    plan = plans.subsampling(3, ratio=ratio, rng=seed)
    if not 1 <= round(ratio * n) < n:
        with pytest.raises(LogError, match="at least one of each"):
            plan.bind(n)
        return
    for fit, at, _ in evaluations(plan.bind(n)):
        assert len(fit.train) == round(ratio * n)
        assert sorted([*fit.train, *at.points]) == list(range(n))


@given(seed=SEEDS, sizes=st.lists(st.integers(1, 20), min_size=2, max_size=4))
def test_stratified_splits(seed, sizes):
    y = np.repeat(np.arange(float(len(sizes))), sizes)
    n, n_test = len(y), len(y) - round(0.6 * len(y))
    if not 0 < n_test < n:
        return
    for _, at, _ in evaluations(
        plans.subsampling(4, ratio=0.6, stratified=True, rng=seed).bind(n, y)
    ):
        for label, size in enumerate(sizes):
            assert abs((y[at.points] == label).sum() - size * n_test / n) < 1


def test_stratified_splits_draw_every_point_as_often():
    y = np.repeat([0, 1, 1], [1, 9, 11])
    plan = plans.subsampling(4000, ratio=0.7, stratified=True, rng=1)
    times = np.bincount(np.concatenate([at.points for _, at, _ in evaluations(plan.bind(21, y))]))
    assert np.all(np.abs(times / 4000 - 6 / 21) < 5 * np.sqrt(0.25 / 4000))


def test_grouped_splits_share_groups():
    groups = np.repeat(np.arange(10), 3)
    for fit, at, _ in evaluations(
        plans.subsampling(5, ratio=0.8, grouped=True, rng=1).bind(30, groups=groups)
    ):
        assert len(set(groups[at.points])) == 2
        assert not set(groups[at.points]) & set(groups[fit.train])


@given(seed=SEEDS, n=st.integers(8, 50), stratified=st.booleans())
def test_paired_halves(seed, n, stratified):
    y = np.arange(n) % 2
    plan = plans.paired_subsampling(3, 2, ratio=0.8, stratified=stratified, rng=seed)
    samples = {}
    for fit, at, (sample, _) in evaluations(plan.bind(n, y)):
        assert len(at.points) == n - round(0.8 * n)
        samples.setdefault(sample, set()).add(frozenset([*fit.train, *at.points]))
    assert set(samples) == set(range(5))
    assert samples[0] == {frozenset(range(n))}
    for r in (1, 2):
        (a,), (b,) = samples[2 * r - 1], samples[2 * r]
        assert len(a) == len(b) == n // 2
        assert not a & b
        if stratified:
            assert abs(y[list(a)].sum() - y[list(b)].sum()) <= 1


@given(seed=SEEDS, n=st.integers(2, 30))
def test_bootstrap_samples(seed, n):
    for sample, rows in enumerate((range(n), None)):
        bound = (plans.bootstrap(4, rng=seed) if rows else plans.two_stage(2, 4, rng=seed)).bind(n)
        outer = {}
        for fit, at, label in evaluations(bound):
            *s, b = label
            assert len(fit.train) == n
            assert fit.apparent == (b == 0)
            assert at.count.sum() == n
            if b == 0:
                outer[*s] = set(fit.train)
                assert at.count.min() > 0
            assert set(at.points) == outer[*s]  # also those out of bag
        assert outer[(0,) if sample else ()] == set(range(n))


@given(seed=SEEDS, n=st.integers(2, 20))
def test_case_bootstrap_leaves_all_copies_out(seed, n):
    bound = plans.case_bootstrap(3, rng=seed).bind(n)
    sums = Counter()
    for fit, at, (b,) in evaluations(bound):
        (count,) = at.count
        assert len(fit.train) == n - count
        assert at.points[0] not in fit.train
        sums[b] += count
    assert sums == {1: n, 2: n, 3: n}
