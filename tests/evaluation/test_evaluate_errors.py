"""What `evaluate` refuses, and in which words."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from calls import refusal
from failing_estimators import Failing
from sklearn.base import BaseEstimator
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC

import cvstats
from cvstats import LogError, plans

RNG = np.random.default_rng(1)
X = pd.DataFrame(RNG.normal(size=(20, 2)), columns=["a", "b"])
Y = pd.Series(RNG.normal(size=20))
LABELS = pd.Series(np.arange(20) % 2)
PLAN = plans.k_fold(4, rng=1)


def run(estimators=None, X=X, y=Y, plan=PLAN, **options):
    """Evaluate without a bar."""
    estimators = {"ridge": Ridge()} if estimators is None else estimators
    return cvstats.evaluate(estimators, X, y, plan=plan, progress=False, **options)


IN_PROCESSES = (
    pytest.mark.process,
    # joblib may look for a task that it has just cancelled: a KeyError in its own thread
    pytest.mark.filterwarnings("ignore:Exception in thread ExecutorManagerThread"),
)


@pytest.mark.parametrize(
    ("when", "n_jobs"),
    [("fit", 1), ("predict", 1), pytest.param("fit", 2, marks=IN_PROCESSES)],
)
def test_a_failing_fit_is_named(when, n_jobs):
    plan = plans.repeated_k_fold(4, 2, rng=1)
    fold = next(at.levels for f in plan.bind(20) for at in f.evaluations if 7 in at.points)
    # The first to fail is named: of two processes it may be the second repetition's.
    where = f"repetition=0, fold={fold['fold']}" if n_jobs == 1 else r"repetition=\d, fold=\d"
    words = f"model 'bad' failed at {where}: ZeroDivisionError: no pivot"
    with pytest.raises(LogError, match=words) as caught:
        run({"ridge": Ridge(), "bad": Failing(7, when)}, plan=plan, n_jobs=n_jobs)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=IN_PROCESSES)])
def test_a_failure_that_cannot_travel_keeps_its_words(n_jobs):
    with pytest.raises(LogError, match="Stubborn: this and that") as caught:
        run({"bad": Failing(7, stubborn=True)}, n_jobs=n_jobs)
    cause = caught.value.__cause__
    assert "this and that" in str(cause)
    assert n_jobs == 1 or isinstance(cause, RuntimeError)


def test_a_failing_holdout_has_no_level_to_name():
    tested = next(iter(plans.holdout(rng=1).bind(20))).evaluations[0].points[0]
    with pytest.raises(LogError, match="failed at its one split: ZeroDivisionError"):
        run(Failing(int(tested)), plan=plans.holdout(rng=1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: run({}), "estimators= is empty"),
        (
            lambda: run({"ridge": "Ridge"}),
            "model 'ridge' is a str, which scikit-learn cannot clone",
        ),
        (lambda: run(Ridge), "cannot clone"),
        (lambda: run(KFold(3)), "cannot clone"),
        (lambda: run(BaseEstimator()), "has no method fit"),
        (lambda: run(plan=KFold(3)), "plan= is a KFold. Expected a plan of cvstats"),
        (lambda: run(plan=PLAN.bind(19)), "bound to 19 points, but X has 20 rows"),
        (lambda: run(plan=plans.k_fold(30, rng=1)), "30 folds need at least 30 points"),
        (lambda: run(plan=plans.leave_one_source_out()), "Pass groups="),
        (
            lambda: run(plan=plans.leave_one_source_out().bind(20, groups=LABELS)),
            "requires sources",
        ),
        (lambda: run(y=Y[:19]), r"y has the shape \(19,\), but X has 20 rows"),
        (lambda: run(y=Y.to_frame()), r"y has the shape \(20, 1\).* Pass y.squeeze\(\)\."),
        (lambda: run([Ridge(), Lasso()]), "estimators= is a list. Expected one .* {'ridge': Ridge"),
        (lambda: run(groups=[1, 2]), r"groups has the shape \(2,\)"),
        (lambda: run(point=range(3)), r"point has the shape \(3,\)"),
        (lambda: run(y=Y[::-1]), r"y and X have different indexes.*y.loc\[X.index\]"),
        (lambda: run(groups=LABELS.set_axis(range(1, 21))), "groups and X have different indexes"),
        (lambda: run(y=Y.where(Y.index != 3)), "y is missing .NaN. in row 3. Expected"),
        (lambda: run(X="data.csv"), "X is a str"),
        (
            lambda: run(X=pa.table({"x": X["a"]})),
            "X is a Table. Expected an array or a DataFrame. Pass X.to_pandas().",
        ),
        (lambda: run(X=np.array(1.0)), "X is a single number"),
        (lambda: run(y=3), "y is an int. Expected one value for each of 20 rows"),
        (lambda: run(groups=np.array(3)), "groups is an ndarray. Expected one value for each"),
        *[
            (partial(run, n_jobs=wrong), f"n_jobs={wrong!r} is not a number of processes")
            for wrong in (0, 1.5, True, "two")
        ],
        (lambda: list(PLAN.split(None)), "X is a NoneType. Expected data with a row for each"),
        (lambda: run(X=X[:0], y=Y[:0]), "X is empty"),
        (lambda: run(point=[*range(19), 4]), "row 19 has the duplicate label 4"),
        (lambda: run(point=[None, *range(19)]), "point has no label .NaN. in row 0"),
        (lambda: run(groups=[None, *range(19)]), "groups has no label .NaN. in row 0"),
        (lambda: run(loss="squarish"), "Unknown loss 'squarish'"),
        (lambda: run(loss="brier"), "is for classes, but y looks continuous"),
        *[
            (partial(run, loss=loss), "is for classes, but y looks continuous")
            for loss in ("zero_one", "accuracy", "f1_macro", ["squared_error", "balanced_accuracy"])
        ],
        (
            lambda: run(LogisticRegression(), y=np.arange(20) % 3, loss="average_precision"),
            "loss='average_precision' is for two classes, but y has 3",
        ),
        (lambda: run(y=LABELS * 0, loss="brier"), "is for classes, but y has only 0"),
        (lambda: run(LinearSVC(), y=LABELS, loss="brier"), "LinearSVC has no predict_proba"),
        (lambda: run(LogisticRegression(), y=LABELS, quantile=0.5, loss="brier"), "quantile"),
        (lambda: run(loss="pinball"), "quantile=None"),
        (lambda: run(KNeighborsRegressor(2), loss=lambda t, f: 1.0), "one number per point"),
    ],
)
def test_words(call, words):
    with pytest.raises(LogError, match=words):
        call()


LOSSES = [
    ("squared_eror", "Did you mean 'squared_error'?"),
    ("nothing like it", "Unknown loss 'nothing like it'. Expected one of 'squared_error', "),
    ("max_error", "Did you mean 'absolute_error'?"),
    ([], "loss=[] contains a loss twice"),
    (["rmse", "rmse"], "contains a loss twice. Expected each loss once."),
    ("pinball", "pinball needs the level of the predicted quantile, but got quantile=None."),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "words"), LOSSES)
def test_a_loss_that_is_none_is_refused_before_any_fit(loss, words):
    class Fitted(Ridge):
        def fit(self, X, y):
            pytest.fail("fitted")

    assert words in refusal(run, Fitted(), loss=loss)
    table = pd.DataFrame({"y_true": [0.0], "y_pred": [0.0], "fold": [0]}).set_index("fold")
    assert words in refusal(cvstats.losses, table, loss=loss)


def test_the_plan_has_to_be_given():
    for error in (LogError, TypeError):  # as Python refuses a missing argument
        with pytest.raises(error, match=r"cv is required.*cv=5.*plan=cvstats\.plans\.k_fold\(10"):
            cvstats.evaluate(Ridge(), X, Y)


def test_a_model_that_predicts_a_table_is_refused():
    class Wide(Failing):
        def predict(self, X):
            return np.zeros((len(X), 2))

    class Narrow(Failing):
        def predict(self, X):
            return np.zeros((len(X), 1))

    with pytest.raises(LogError, match=r"predict returned the shape \(5, 2\)"):
        run(Wide(-1, when="never"))
    np.testing.assert_allclose(run(Narrow(-1, when="never")).droplevel(0).sort_index(), Y**2)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install .*\[sklearn\]'"):
        run()
