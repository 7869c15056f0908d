"""Experiments that are scored by metrics give what cross_val_score gives."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupShuffleSplit,
    LeavePGroupsOut,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import cvstats
from cvstats import LogError, plans

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[::3, :4], Y[::3]
MODELS = {"logistic": make_pipeline(StandardScaler(), LogisticRegression()), "bayes": GaussianNB()}
SVM = {"svm": make_pipeline(StandardScaler(), LinearSVC())}
PLAN = plans.k_fold(5, stratified=True, rng=1)


def splits(plan, X, y):
    """The splits of a plan, as scikit-learn takes them."""
    return [(fit.train, fit.evaluations[0].points) for fit in plan.bind(len(y), y)]


def run(loss, models=MODELS, X=X, y=Y, plan=PLAN, **options):
    """Evaluate without a bar."""
    return cvstats.evaluate(models, X, y, plan=plan, loss=loss, progress=False, **options)


@pytest.mark.parametrize(
    ("loss", "scoring"),
    [("auc", "roc_auc"), ("f1", "f1"), ("matthews", "matthews_corrcoef")],
)
def test_the_mean_of_folds_is_that_of_cross_val_score(loss, scoring):
    log = run(loss, folds="average")
    for name, model in MODELS.items():
        expected = cross_val_score(model, X, Y, cv=splits(PLAN, X, Y), scoring=scoring)
        means = log[name].groupby(level="fold").mean()
        sign = -1 if log.attrs["orientation"] == "-score" else 1
        scores = 1 - means if sign == 1 else -means
        np.testing.assert_allclose(np.sort(scores), np.sort(expected), atol=1e-12)
    assert cvstats.as_scores(log.cvci.wald()).attrs["metric"] == loss
    assert log.attrs["plan"].startswith("k_fold")


@pytest.mark.parametrize(
    ("loss", "scoring"), [("auc", "roc_auc"), ("average_precision", "average_precision")]
)
def test_a_model_without_probabilities_is_ranked_by_its_decision_function(loss, scoring):
    log = run(loss, SVM, folds="average")["svm"]
    expected = cross_val_score(SVM["svm"], X, Y, cv=splits(PLAN, X, Y), scoring=scoring)
    np.testing.assert_allclose(
        np.sort(1 - log.groupby(level="fold").mean()), np.sort(expected), atol=1e-12
    )
    both = run([loss, "f1"], SVM, folds="average").xs(loss, level="metric")["svm"]
    np.testing.assert_allclose(both, log, atol=1e-13)


def test_several_losses_from_one_run():
    log = run(["accuracy", "log_loss", "auc", "f1"])
    assert log.columns.name == "model"
    for loss in ("accuracy", "log_loss", "auc", "f1"):
        one = run(loss)
        np.testing.assert_allclose(log.xs(loss, level="metric"), one, atol=1e-13)
    assert log.attrs["metric"] == ["accuracy", "log_loss", "auc", "f1"]
    single = run(["auc", "brier"], models=GaussianNB())
    np.testing.assert_allclose(single.xs("auc", level="metric"), run("auc")["bayes"], atol=1e-13)


def test_labels_of_any_kind_and_several_classes():
    named = np.where(Y == 1, "well", "ill")
    np.testing.assert_allclose(run("f1", y=named), run("f1"), atol=1e-13)
    X3, y3 = load_iris(return_X_y=True)
    log = run(["f1", "auc", "brier"], X=X3, y=y3, average="macro", folds="average")
    scores = cross_val_score(GaussianNB(), X3, y3, cv=splits(PLAN, X3, y3), scoring="roc_auc_ovr")
    means = 1 - log.xs("auc", level="metric")["bayes"].groupby(level="fold").mean()
    np.testing.assert_allclose(np.sort(means), np.sort(scores), atol=1e-12)


def test_refusals():
    with pytest.raises(LogError, match="draws bootstrap samples"):
        run("auc", plan=plans.bootstrap(3, rng=1))
    with pytest.raises(LogError, match="requires the predictions of a reference.*reference=…"):
        run("skill")
    with pytest.raises(LogError, match="has no predict_proba, which loss='brier' requires"):
        run(["auc", "brier"], SVM)
    with pytest.raises(LogError, match="has no decision_function, which loss='hinge' requires"):
        run(["auc", "hinge"], {"bayes": GaussianNB()})
    with pytest.raises(LogError, match="has no predict_proba"):
        run("auc", SVM, *load_iris(return_X_y=True))
    with pytest.raises(LogError, match="has neither predict_proba nor decision_function"):
        run("auc", {"one nearest": RadiusNeighborsRegressor()})
    with pytest.raises(LogError, match="Unknown loss"):
        run(["auc", "area"])


@pytest.mark.parametrize("loss", ["balanced_accuracy", ["auc", "f1"]])
@pytest.mark.parametrize(
    ("plan", "method"),
    [(plans.nested_cv(3, 2, rng=1), "nested_cv"), (plans.replace_one(2, rng=1), "replace_one")],
)
def test_metrics_of_nested_folds_have_an_interval(plan, method, loss):
    """By default they are averaged over folds, since their methods need a value in each."""
    log = run(loss, {"bayes": GaussianNB(), "flat": GaussianNB(var_smoothing=1)}, plan=plan)
    by = {} if isinstance(loss, str) else {"by": "metric"}
    assert log.cvci.interval(**by).attrs["method"] == method
    assert log.cvci.compare(**by)["se"].notna().all()


@pytest.mark.parametrize("cv", [GroupShuffleSplit(6, test_size=0.3, random_state=0),
                                LeavePGroupsOut(2)])  # fmt: skip
@pytest.mark.parametrize("name", ["roc_auc", "f1", "neg_root_mean_squared_error"])
def test_random_splits_of_groups_have_a_value_each(cv, name):
    """A metric was averaged over the groups of each test set, as if they were folds."""
    X, y = make_classification(180, 4, n_informative=3, n_redundant=0, flip_y=0.3, random_state=1)
    groups, model = np.repeat(np.arange(12), 15), LogisticRegression()
    log = cvstats.evaluate({"m": model}, X, y, cv=cv, groups=groups, loss=name, progress=False)
    scores = cross_val_score(model, X, y, cv=cv, groups=groups, scoring=name)
    rows = log.reset_index()
    table = rows.rename_axis("row").to_xarray().set_coords(["repetition", "source", "point"])
    array = table["m"].assign_attrs(log.attrs)
    for one in (log, array, array.chunk(row=50), cvstats.Moments.of_log(log)):
        result = cvstats.as_scores(cvstats.interval(one))
        result = result.compute() if one is not log and hasattr(result, "compute") else result
        assert result.attrs["method"] == "corrected_t"
        assert np.isclose(abs(np.ravel(result["estimate"])), abs(scores.mean()), rtol=1e-9)
    assert np.isclose(log.groupby("repetition").mean().std().item(), scores.std(ddof=1), rtol=1e-9)
    assert "which are the folds" not in str(log.cvci.report())
    assert set(log.cvci.diagnose()["code"]).isdisjoint({"CVS003"})


@pytest.mark.parametrize("plan", [plans.holdout(rng=1), plans.subsampling(1, rng=1)])
def test_one_test_set_of_several_groups_has_one_value(plan):
    X, y = make_classification(180, 4, n_informative=3, n_redundant=0, flip_y=0.3, random_state=1)
    groups, model = np.repeat(np.arange(12), 15), LogisticRegression()
    run = partial(cvstats.evaluate, {"m": model}, X, y, plan=plan, loss="roc_auc", progress=False)
    log = run(groups=groups)
    assert np.isclose(log.mean().item(), run().mean().item())
    assert log.cvci.interval().attrs["method"] == "clustered"
    with pytest.raises(LogError, match="source="):  # some groups have one test point
        run(groups=groups, folds="average")


@pytest.mark.parametrize("loss", ["roc_auc", ["roc_auc", "accuracy"]])
def test_one_split_of_cross_validate_has_one_value(loss):
    X, y = make_classification(180, 4, n_informative=3, n_redundant=0, flip_y=0.3, random_state=1)
    cv, groups = [(np.arange(90), np.arange(90, 180))], np.repeat(np.arange(12), 15)
    run = cross_validate(
        LogisticRegression(), X, y, cv=cv, return_estimator=True, return_indices=True
    )
    plain, grouped = (
        cvstats.read_log(run, X=X, y=y, loss=loss, **more) for more in ({}, {"groups": groups})
    )
    assert "source" in grouped.index.names
    np.testing.assert_allclose(plain, grouped)
    made = cvstats.evaluate(LogisticRegression(), X, y, cv=cv, groups=groups, loss=loss)
    np.testing.assert_allclose(made, grouped)
