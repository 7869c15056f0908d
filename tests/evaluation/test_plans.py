"""Plans: what each one draws, how it counts, prints and serves scikit-learn."""

import pickle
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate

from cvstats import LogError, plans
from cvstats.plans import row_numbers

SPLITTERS = {
    "k_fold": plans.k_fold(5, rng=3),
    "leave_one_out": plans.leave_one_out(),
    "repeated_k_fold": plans.repeated_k_fold(5, 3, rng=3),
    "subsampling": plans.subsampling(7, ratio=0.8, rng=3),
    "five_by_two": plans.five_by_two(rng=3),
    "leave_one_source_out": plans.leave_one_source_out(),
    "holdout": plans.holdout(ratio=0.7, rng=3),
}
OTHERS = {
    "paired_subsampling": plans.paired_subsampling(3, 4, ratio=0.8, rng=3),
    "nested_cv": plans.nested_cv(4, 3, rng=3),
    "replace_one": plans.replace_one(3, 2, rng=3),
    "bootstrap": plans.bootstrap(6, rng=3),
    "case_bootstrap": plans.case_bootstrap(4, rng=3),
    "two_stage": plans.two_stage(3, 4, rng=3),
}
EVERY = SPLITTERS | OTHERS
N = 23
GROUPS = np.array(["a", "b", "c", "d"])[np.arange(N) % 4]


def drawn(plan, n=N, y=None, groups=GROUPS):
    """Everything a bound plan asks for, as plain lists."""
    return [
        (
            fit.train.tolist(),
            fit.apparent,
            [
                (
                    dict(at.levels),
                    at.points.tolist(),
                    None if at.count is None else at.count.tolist(),
                )
                for at in fit.evaluations
            ],
        )
        for fit in plan.bind(n, y, groups)
    ]


def evaluations(bound):
    """Pairs of a fit and an evaluation, the levels as a tuple."""
    return [(fit, at, tuple(at.levels.values())) for fit in bound for at in fit.evaluations]


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_knows_its_fits_and_its_levels(name):
    plan = EVERY[name]
    bound = plan.bind(N, groups=GROUPS)
    fits = list(bound)
    assert len(fits) == bound.n_fits == len(bound)
    if name in ("leave_one_out", "leave_one_source_out", "replace_one", "case_bootstrap"):
        with pytest.raises(LogError, match=r"plan.bind\(n\).n_fits"):
            _ = plan.n_fits
    else:
        assert plan.n_fits == bound.n_fits
    seen = set()
    for fit, at, label in evaluations(bound):
        assert set(at.levels) == set(plan.levels) - {"point", "count"}
        assert ("count" in plan.levels) == (at.count is not None)
        assert len(fit.train)
        assert np.all(np.diff(fit.train) >= 0) or name == "replace_one"
        for array in (fit.train, at.points):
            assert array.dtype == np.int64
            assert array.min() >= 0
            assert array.max() < N
        for point in at.points.tolist():
            assert (label, point) not in seen
            seen.add((label, point))
        if at.count is None:
            assert not np.isin(at.points, fit.train).any()
        else:
            copies = Counter(fit.train.tolist())
            removed = name == "case_bootstrap"
            assert [0 if removed else c for c in at.count] == [copies[p] for p in at.points]
    # No model is trained twice, save by chance in small random samples.
    if at.count is None and name != "paired_subsampling":
        assert len({tuple(sorted(fit.train)) for fit in fits}) == len(fits)


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_is_the_same_each_time(name):
    plan = EVERY[name]
    first = drawn(plan)
    assert drawn(plan) == first
    assert drawn(pickle.loads(pickle.dumps(plan))) == first
    assert pickle.loads(pickle.dumps(plan)) == plan
    bound = plan.bind(N, groups=GROUPS)
    assert len(list(bound)) == len(list(bound))


SEEDED = {
    "k_fold": lambda rng: plans.k_fold(5, rng=rng),
    "repeated_k_fold": lambda rng: plans.repeated_k_fold(5, 2, rng=rng),
    "subsampling": lambda rng: plans.subsampling(3, rng=rng),
    "five_by_two": lambda rng: plans.five_by_two(rng=rng),
    "holdout": lambda rng: plans.holdout(rng=rng),
    "paired_subsampling": lambda rng: plans.paired_subsampling(2, 2, rng=rng),
    "nested_cv": lambda rng: plans.nested_cv(4, 2, rng=rng),
    "replace_one": lambda rng: plans.replace_one(3, rng=rng),
    "bootstrap": lambda rng: plans.bootstrap(3, rng=rng),
    "case_bootstrap": lambda rng: plans.case_bootstrap(2, rng=rng),
    "two_stage": lambda rng: plans.two_stage(1, 1, rng=rng),
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeds(name):
    make = SEEDED[name]
    assert drawn(make(5)) == drawn(make(np.int64(5))) != drawn(make(6))
    one, two = (make(np.random.default_rng(5)) for _ in range(2))
    assert one == two
    rng = np.random.default_rng(5)
    assert drawn(make(rng)) != drawn(make(rng))  # the generator has moved on
    fresh = make(None)  # draws a seed, prints it and keeps it
    assert drawn(fresh) == drawn(fresh) == drawn(make(dict(fresh.options)["rng"]))
    assert f"rng={dict(fresh.options)['rng']}" in repr(fresh)
    with pytest.raises(LogError, match="is not a seed"):
        make(-1)
    with pytest.raises(LogError, match="is not a seed"):
        make(1.5)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (plans.repeated_k_fold(5, 2, rng=1), plans.repeated_k_fold(5, 4, rng=1)),
        (plans.subsampling(2, rng=1), plans.subsampling(5, rng=1)),
        (plans.nested_cv(4, 1, rng=1), plans.nested_cv(4, 3, rng=1)),
        (plans.paired_subsampling(3, 2, rng=1), plans.paired_subsampling(3, 5, rng=1)),
        (plans.bootstrap(3, rng=1), plans.bootstrap(9, rng=1)),
        (plans.case_bootstrap(2, rng=1), plans.case_bootstrap(5, rng=1)),
        (plans.two_stage(2, 3, rng=1), plans.two_stage(5, 3, rng=1)),
    ],
    ids=lambda plan: plan.name,
)
def test_more_repetitions_begin_like_fewer(short, long):
    fewer, more = drawn(short), drawn(long)
    assert more[: len(fewer)] == fewer


# --- scikit-learn, printing, words ----------------------------------------------------------------


@pytest.mark.parametrize("name", SPLITTERS)
def test_scikit_learn_takes_it_as_cv(name):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:N], y[:N]
    plan = SPLITTERS[name]
    found = cross_validate(
        Ridge(), X, y, groups=GROUPS, cv=plan, scoring="neg_mean_squared_error",
        return_indices=True,
    )  # fmt: skip
    bound = plan.bind(N, groups=GROUPS)
    assert plan.get_n_splits(X, y, GROUPS) == bound.n_fits == len(found["test_score"])
    for k, fit in enumerate(bound):
        assert found["indices"]["train"][k].tolist() == fit.train.tolist()
        assert found["indices"]["test"][k].tolist() == fit.evaluations[0].points.tolist()


def test_scikit_learn_searches_with_it():
    X, y = load_diabetes(return_X_y=True)
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=plans.k_fold(4, rng=1))
    assert clone(search).fit(X, y).n_splits_ == 4
    labels = (y > 140).astype(int)
    split = plans.k_fold(4, stratified=True, rng=1).split(X, labels)
    assert {labels[test].sum() for _, test in split} <= {labels.sum() // 4, labels.sum() // 4 + 1}


@pytest.mark.parametrize("name", OTHERS)
def test_others_refuse_scikit_learn_in_words(name):
    for call in (lambda: list(OTHERS[name].split(np.zeros((N, 1)))), OTHERS[name].get_n_splits):
        with pytest.raises(LogError, match=f"{name} is more than pairs .* cvstats.evaluate"):
            call()


def test_the_number_of_splits_may_need_data():
    with pytest.raises(LogError, match="depends on the data"):
        plans.leave_one_out().get_n_splits()
    assert plans.leave_one_source_out().get_n_splits(groups=["a", "b", "a"]) == 2
    assert plans.k_fold(7).get_n_splits() == 7


@pytest.mark.parametrize("name", EVERY)
def test_tables(name):
    plan = EVERY[name]
    lines = repr(plan).splitlines()
    assert lines[0] == str(plan)
    assert lines[0].startswith(f"{name}(")
    assert lines[1] == f"levels     {', '.join(plan.levels)}"
    assert f"intervals  {', '.join(plan.intervals)}" in lines
    (row,) = plan.to_frame().to_dict("records")
    assert row["cv="] == ("yes" if name in SPLITTERS else "no")
    bound = plan.bind(N, groups=GROUPS)
    table = bound.to_frame()
    assert table["fit"].nunique() == bound.n_fits
    assert len(table) == len(evaluations(bound))
    assert f"{bound.n_fits:,} fit" in repr(bound)
    assert len(repr(bound).splitlines()) <= 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plans.k_fold(2.5), "n_folds=2.5 is out of range"),
        (lambda: plans.k_fold(True), "n_folds=True is out of range"),
        (lambda: plans.holdout(1.0), "ratio=1.0 is out of range"),
        (lambda: plans.subsampling(ratio="90%"), "ratio='90%' is out of range"),
        (lambda: plans.k_fold(stratified=True, grouped=True), "cannot be combined"),
        (lambda: plans.k_fold(3, stratified=True).bind(9), "needs the classes. Pass y="),
        (lambda: plans.k_fold(3, stratified=True).bind(3, [1, 0.5, 2]), "point 1: 0.5.. Omit"),
        (lambda: plans.k_fold(3, stratified=True).bind(3, [1, np.nan, 2]), "no label .NaN. for po"),
        (lambda: plans.k_fold(3, stratified=True).bind(4, list("aaab")), "omit stratified"),
        (lambda: plans.k_fold(3, grouped=True).bind(9), "Pass groups=, one label per point"),
        (lambda: plans.k_fold(3, grouped=True).bind(4, groups=list("aabb")), "at least 3 groups"),
        (lambda: plans.leave_one_source_out().bind(2, groups=["a", "a"]), "has only 'a'"),
        (lambda: plans.k_fold(2).bind(3, groups=["a"]), "one label for each of 3 points"),
        (lambda: plans.k_fold(2).bind(2, groups=["a", None]), "no label .NaN. for point 1"),
        (lambda: plans.k_fold(2).bind(2, groups=[np.nan, 1.0]), "no label .NaN. for point 0"),
        (lambda: plans.leave_one_out().bind(1), "at least two points"),
        (lambda: plans.bootstrap().bind(1), "at least two points"),
        (lambda: plans.paired_subsampling(ratio=0.5).bind(20), "a larger ratio"),
        (lambda: plans.holdout(ratio=0.9).bind(3), "gives 3 for training and 0 for testing"),
        (lambda: plans.k_fold().bind(0), "n=0 is out of range"),
    ],
)
def test_words(call, words):
    with pytest.raises(LogError, match=words):
        call()


def test_groups_may_be_labels_of_any_kind():
    bound = plans.leave_one_source_out().bind(3, groups=np.array(["b", 1, "b"], dtype=object))
    assert [label for _, _, label in evaluations(bound)] == [("b",), (1,)]


def test_rows_of_a_split_are_numbers_or_a_mask():
    assert list(row_numbers(np.array([0, 2, 1]), 3, "train")) == [0, 2, 1]
    assert list(row_numbers(np.array([True, False, True]), 3, "train")) == [0, 2]
