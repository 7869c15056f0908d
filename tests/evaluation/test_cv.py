"""Splits of scikit-learn in the place of a plan, and the loss chosen by the kind of target."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import cvstats
from cvstats.errors import LogError

X, Y = (part.iloc[:60] for part in load_diabetes(return_X_y=True, as_frame=True))
SITES = np.array(list("abcdef"))[np.arange(60) % 6]


def run(estimators=None, cv=None, y=Y, **options):
    """Evaluate without a bar."""
    models = {"ridge": Ridge(0.1), "mean": DummyRegressor()} if estimators is None else estimators
    return cvstats.evaluate(models, X, y, cv=cv, progress=False, **options)


@pytest.mark.parametrize(
    ("cv", "levels", "method"),
    [
        (5, ["fold", "point"], "wald"),
        (np.int64(3), ["fold", "point"], "wald"),
        (KFold(5, shuffle=True), ["fold", "point"], "wald"),
        (RepeatedKFold(n_splits=5, n_repeats=2), ["repetition", "fold", "point"], "wald"),
        (LeaveOneGroupOut(), ["fold", "source", "point"], "out_of_source"),
        (GroupKFold(3), ["fold", "source", "point"], "clustered"),
        (ShuffleSplit(5), ["repetition", "point"], "corrected_t"),
        (ShuffleSplit(1), ["point"], "holdout"),
        (TimeSeriesSplit(4), ["fold", "point"], "wald"),
        (LeaveOneOut(), ["fold", "point"], "wald"),
        (PredefinedSplit(np.arange(60) % 3), ["fold", "point"], "wald"),
        (list(KFold(3).split(X)), ["fold", "point"], "wald"),
        (KFold(3).split(X), ["fold", "point"], "wald"),
        (cvstats.plans.k_fold(3, rng=1), ["fold", "point"], "wald"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_whatever_scikit_learn_takes_as_cv(cv, levels, method):
    groups = SITES if "source" in levels else None
    log = run(cv=cv, groups=groups)
    assert log.index.names == levels
    assert log.index.is_unique
    assert log.attrs["loss"] == "squared_error"
    assert log.cvci.interval().attrs["method"] == method
    assert "(" in log.attrs["plan"]


@pytest.mark.parametrize(
    "cv", [TimeSeriesSplit(4), KFold(3), [([0, 2, 7, 30], [1, 3]), ([9, 8], [4])]]
)
def test_models_are_trained_on_the_rows_of_each_split(cv):
    log = run({"ridge": Ridge(0.1)}, cv=cv)["ridge"]
    for train, test in cv if isinstance(cv, list) else cv.split(X):
        model = Ridge(0.1).fit(X.iloc[train], Y.iloc[train])
        expected = (Y.iloc[test] - model.predict(X.iloc[test])) ** 2
        found = log[log.index.get_level_values("point").isin(X.index[test])]
        np.testing.assert_allclose(found.droplevel("fold")[X.index[test]], expected)


def test_all_models_meet_the_same_splits_of_a_splitter_without_a_seed():
    log = run({"a": DummyRegressor(), "b": DummyRegressor()}, cv=RepeatedKFold(n_repeats=3))
    assert (log["a"] == log["b"]).all()
    assert log.index.get_level_values("repetition").nunique() == 3


@pytest.mark.parametrize(
    ("estimators", "target", "loss"),
    [
        (DummyRegressor(), "numbers", "squared_error"),
        (DummyRegressor(), "codes", "squared_error"),
        (DummyClassifier(), "codes", "zero_one"),
        ({"a": DummyClassifier(), "b": LogisticRegression()}, "codes", "zero_one"),
        (DummyClassifier(), "words", "zero_one"),
        (DummyClassifier(), "flags", "zero_one"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_loss_is_chosen_by_the_kind_of_target(estimators, target, loss):
    y = {
        "numbers": Y,
        "codes": (Y > 150).astype(int),
        "flags": Y > 150,
        "words": pd.Series(np.where(Y > 150, "high", "low"), index=Y.index),
    }[target]
    assert run(estimators, 3, y).attrs["loss"] == loss


def test_folds_of_classifiers_are_stratified_as_in_scikit_learn():
    y = (Y > 200).astype(int)
    log = run(DummyClassifier(), 5, y)
    folds = log.index.get_level_values("fold")
    tests = [test for _, test in StratifiedKFold(5).split(X, y)]
    assert all(set(log[folds == k].index.get_level_values("point")) == set(X.index[test])
               for k, test in enumerate(tests))  # fmt: skip


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (1, r"Invalid cv=1. Expected 2 or more folds, such as cv=5"),
        (True, r"Invalid cv=True"),
        ("loo", r"Invalid cv='loo'.*a splitter"),
        (KFold, r"Invalid cv=<class .*KFold'>"),
        (0.5, r"Invalid cv=0.5"),
        ([], r"cv= has no splits. Expected at least one, such as cv=5"),
        ([(1, 2, 3)], r"split 0 of cv= is a tuple, not a pair of training and test"),
        ([([0], [60])], r"split 0 of cv= has row 60, but X has 60 rows"),
        ([([-1], [6])], r"split 0 of cv= has row -1"),
        ([([0], ["a"])], r"split 0 of cv= has a <U1 array of the shape"),
        ([([0], [])], r"split 0 of cv= has"),
        ([([], np.array([1]))], r"split 0 of cv= has"),
        ([([0], [1, 1])], r"split 0 of cv= tests row 1 twice"),
        (KFold(99), r"cv=KFold.*cannot split these data: Cannot have number of splits"),
        (LeaveOneGroupOut(), r"cannot split these data: The 'groups' parameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_cv_is_refused_in_one_message(cv, words):
    with pytest.raises(LogError, match=words):
        run(cv=cv)


def test_a_plan_and_a_cv_are_one_too_many():
    with pytest.raises(LogError, match="plan= and cv= were both given"):
        run(cv=5, plan=cvstats.plans.k_fold(5))
