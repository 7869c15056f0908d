"""From estimators and data to a log: its losses, its levels, and the interval of each plan."""

import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from rows import only_row
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor, Ridge
from sklearn.metrics import brier_score_loss, f1_score, log_loss, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import cvstats
from cvstats import LogError, plans

DIABETES = load_diabetes(return_X_y=True, as_frame=True)
CANCER = load_breast_cancer(return_X_y=True, as_frame=True)
EVERY = [
    plans.k_fold(5, rng=1),
    plans.k_fold(3, grouped=True, rng=1),
    plans.leave_one_out(),
    plans.repeated_k_fold(4, 3, rng=1),
    plans.subsampling(8, rng=1),
    plans.paired_subsampling(3, 4, rng=1),
    plans.five_by_two(rng=1),
    plans.nested_cv(4, 3, rng=1),
    plans.replace_one(4, rng=1),
    plans.bootstrap(25, rng=1),
    plans.case_bootstrap(3, rng=1),
    plans.two_stage(4, 6, rng=1),
    plans.leave_one_source_out(),
    plans.holdout(rng=1),
]


class Counting(RegressorMixin, BaseEstimator):
    """Predict the mean of what was trained on, and remember how often."""

    fits = 0

    def fit(self, X, y):
        """Count."""
        type(self).fits += 1
        self.mean_ = float(np.mean(y))
        self.size_ = len(y)
        return self

    def predict(self, X):
        """Predict the mean."""
        return np.full(len(X), self.mean_)


def small(n=40):
    """The first patients, and groups of them."""
    X, y = (part.iloc[:n] for part in DIABETES)
    return X, y, np.array(list("abcdef"))[np.arange(n) % 6]


def run(estimators, X, y, plan, **options):
    """Evaluate without a bar."""
    return cvstats.evaluate(estimators, X, y, plan=plan, progress=False, **options)


@pytest.mark.parametrize("plan", EVERY, ids=lambda plan: plan.name)
def test_every_plan_gives_the_log_and_the_interval_that_it_is_for(plan):
    X, y, groups = small(24)
    grouped = "source" in plan.levels or plan.design.mixing == "groups"
    sources = groups if grouped else None
    Counting.fits = 0
    log = run({"mean": Counting()}, X, y, plan, groups=sources)
    bound = plan.bind(len(y), groups=groups)
    assert Counting.fits == bound.n_fits == log.attrs["n_fits"]
    assert log.attrs["plan"] == str(plan)
    levels = list(plan.levels)
    if grouped and "source" not in levels:
        levels.insert(levels.index("point"), "source")
    assert log.index.names == levels
    assert log.index.is_unique
    assert np.isfinite(log.to_numpy()).all()
    expected = {}
    for fit in bound:
        for at in fit.evaluations:
            mean = y.iloc[fit.train].mean()
            for i, point in enumerate(at.points.tolist()):
                place = {**at.levels, "point": X.index[point], "source": groups[point]}
                place |= {} if at.count is None else {"count": int(at.count[i])}
                label = tuple(place[level] for level in levels)
                expected[label if len(label) > 1 else label[0]] = (y.iloc[point] - mean) ** 2
    pd.testing.assert_series_equal(
        log["mean"].sort_index(),
        pd.Series(expected, name="mean").sort_index().rename_axis(log.index.names),
        check_index_type=False,
    )
    for name in plan.intervals:
        options = {"train_size": log.attrs["n_train"]} if name == "corrected_t" else {}
        result = getattr(log.cvci, name)(**options)
        assert (result["lower"] < result["upper"]).all(), name


@pytest.mark.process
@pytest.mark.parametrize(
    "plan",
    [
        plans.repeated_k_fold(4, 3, rng=1),
        plans.nested_cv(4, 2, rng=1),
        plans.two_stage(2, 4, rng=1),
    ],
    ids=lambda plan: plan.name,
)
def test_two_processes_give_the_same_log(plan):
    X, y, groups = small(24)
    models = {
        "tree": make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=0)),
        "forest": RandomForestRegressor(2, random_state=np.random.RandomState(3)),
        "ridge": Ridge(),
    }
    one, two = (run(models, X, y, plan, groups=groups, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert one.attrs == two.attrs


def test_nothing_of_the_callers_is_changed():
    X, y, groups = small()
    state = np.random.RandomState(1)
    models = {
        "a": Ridge(),
        "b": make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=state)),
    }
    before = X.copy(), y.copy(), groups.copy(), state.get_state()[1].copy()
    parameters = repr(models), joblib.hash(models)
    run(models, X, y, plans.k_fold(3, rng=1), groups=groups)
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_series_equal(y, before[1])
    assert groups.tolist() == before[2].tolist()
    assert (state.get_state()[1] == before[3]).all()
    assert (repr(models), joblib.hash(models)) == parameters
    for model in models.values():
        assert [key for key in vars(model) if key.endswith("_")] == []
    assert not hasattr(models["b"][0], "mean_")


# --- losses ---------------------------------------------------------------------------------------


def folded(estimator, X, y, plan, method="predict"):
    """Predictions by scikit-learn over the folds of the same plan, with the folds of the points."""
    predicted = cross_val_predict(estimator, X, y, cv=plan, method=method)
    fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(plan.split(X, y)):
        fold[test] = k
    return predicted, fold


def test_losses_of_regressors_are_those_of_scikit_learn():
    X, y = DIABETES
    plan = plans.k_fold(4, rng=2)
    predicted, fold = folded(Ridge(0.1), X, y, plan)
    by_hand = {
        "squared_error": (y - predicted) ** 2,
        "absolute_error": (y - predicted).abs(),
        "percentage_error": ((y - predicted) / y).abs(),
    }
    for loss, values in by_hand.items():
        log = run(Ridge(0.1), X, y, plan, loss=loss)
        assert log.name == "Ridge"
        frame = log.reset_index().sort_values("point")
        np.testing.assert_allclose(frame["Ridge"], values, rtol=1e-12)
        assert frame["fold"].tolist() == fold.tolist()
    log = run(Ridge(0.1), X, y, plan, loss=lambda truth, guess: (truth > guess) * 1.0)
    np.testing.assert_array_equal(log.droplevel("fold").sort_index(), y > predicted)
    quantile = QuantileRegressor(quantile=0.9, alpha=0)
    log = run(quantile, X, y, plan, loss="pinball", quantile=0.9)
    guess, _ = folded(quantile, X, y, plan)
    assert np.isclose(log.mean(), mean_pinball_loss(y, guess, alpha=0.9), rtol=1e-12)


@pytest.mark.parametrize("labels", [("benign", "malignant"), (False, True)])
def test_losses_of_classifiers_are_those_of_scikit_learn(labels):
    X, y = (part.iloc[::4] for part in CANCER)
    y = y.map(dict(enumerate(labels)))
    plan = plans.k_fold(4, stratified=True, rng=2)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    p, _ = folded(model, X, y, plan, "predict_proba")
    log = run(model, X, y, plan, loss="log_loss")
    assert np.isclose(log.mean(), log_loss(y, p), rtol=1e-10)
    log = run(model, X, y, plan, loss="brier")
    assert np.isclose(log.mean(), brier_score_loss(y, p[:, 1], pos_label=labels[1]), rtol=1e-10)
    guess, _ = folded(model, X, y, plan)
    log = run(model, X, y, plan, loss="zero_one").droplevel("fold").sort_index()
    np.testing.assert_array_equal(log, guess != y)
    score, _ = folded(LinearSVC(random_state=0), X, y, plan, "decision_function")
    log = run(LinearSVC(random_state=0), X, y, plan, loss="hinge").droplevel("fold").sort_index()
    margin = np.where(y == labels[1], score, -score)
    np.testing.assert_allclose(log, np.maximum(0, 1 - margin), rtol=1e-10)


def test_several_classes_and_one_that_a_training_sample_lacks():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    plan = plans.k_fold(5, stratified=True, rng=1)
    p, _ = folded(GaussianNB(), X, names, plan, "predict_proba")
    log = run(GaussianNB(), X, names, plan, loss="log_loss")
    assert np.isclose(log.mean(), log_loss(names, p), rtol=1e-10)
    log = run(GaussianNB(), X, names, plan, loss="brier")
    assert np.isclose(log.mean(), ((p - np.eye(3)[y]) ** 2).sum(axis=1).mean(), rtol=1e-10)
    # Leaving out a species: no model gives it any probability.
    log = run(GaussianNB(), X, names, plans.leave_one_source_out(), loss="brier", groups=names)
    assert (log >= 1).all()
    with pytest.raises(LogError, match=r"loss='hinge' is for two classes, but y has 3"):
        run(LinearSVC(), X, names, plan, loss="hinge")


def mean_of_pairs(truth, guess, loss):
    """The no-information rate from all pairs."""
    return float(np.mean([[loss(t, f) for f in guess] for t in truth]))


@pytest.mark.parametrize(
    ("loss", "pair"),
    [
        ("squared_error", lambda t, f: (t - f) ** 2),
        ("absolute_error", lambda t, f: abs(t - f)),
        ("percentage_error", lambda t, f: abs((t - f) / t)),
        (lambda t, f: np.abs(t - f) ** 1.5, lambda t, f: abs(t - f) ** 1.5),
    ],
)
def test_no_information_rate_of_numbers(loss, pair):
    X, y, _ = small(30)
    log = run({"ridge": Ridge(0.1)}, X, y, plans.two_stage(2, 1, rng=4), loss=loss)
    rates = []
    for fit in plans.two_stage(2, 1, rng=4).bind(30):
        if fit.apparent:
            truth = y.iloc[fit.train].to_numpy()
            guess = Ridge(0.1).fit(X.iloc[fit.train], truth).predict(X.iloc[fit.train])
            rates.append(mean_of_pairs(truth, guess, pair))
    np.testing.assert_allclose(log.attrs["no_information"]["ridge"], rates, rtol=1e-11)


@pytest.mark.parametrize("loss", ["zero_one", "brier", "log_loss"])
@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_no_information_rate_of_classes(loss, data):
    X, y = data(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:60]
    X, y = X[rows], y[rows]
    log = run(GaussianNB(var_smoothing=1e-2), X, y, plans.bootstrap(1, rng=4), loss=loss)
    fitted = GaussianNB(var_smoothing=1e-2).fit(X, y)
    p, guess = fitted.predict_proba(X), fitted.predict(X)
    hot = np.eye(p.shape[1])[y]
    half = 2 if p.shape[1] == 2 else 1
    rate = {
        "zero_one": lambda: mean_of_pairs(y, guess, lambda t, f: float(t != f)),
        "brier": lambda: mean_of_pairs(hot, p, lambda t, f: ((t - f) ** 2).sum() / half),
        "log_loss": lambda: mean_of_pairs(y, p, lambda t, f: -np.log(f[t])),
    }[loss]()
    np.testing.assert_allclose(log.attrs["no_information"]["GaussianNB"], rate, rtol=1e-10)


def test_no_information_rate_of_classes_from_a_threshold():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:60]
    X, y = X[rows], y[rows]
    log = run(GaussianNB(), X, y, plans.bootstrap(1, rng=4), loss="zero_one", threshold=0.9)
    guess = (GaussianNB().fit(X, y).predict_proba(X)[:, 1] >= 0.9).astype(int)
    rate = mean_of_pairs(y, guess, lambda t, f: float(t != f))
    assert 0 < rate < 1
    np.testing.assert_allclose(log.attrs["no_information"]["GaussianNB"], rate, rtol=1e-10)


# --- data and levels ------------------------------------------------------------------------------


def test_labels_of_points_and_sources():
    X, y, groups = small(12)
    names = [f"patient {i}" for i in range(12)]
    plan = plans.k_fold(3, rng=1)
    log = run(Ridge(), X.to_numpy(), y.to_numpy(), plan, groups=groups, point=names)
    assert list(log.index.names) == ["fold", "source", "point"]
    frame = log.reset_index()
    assert set(frame["point"]) == set(names)
    for source, point in zip(frame["source"], frame["point"], strict=True):
        assert source == groups[names.index(point)]
    named = run(Ridge(), X.set_axis(names), y.set_axis(names), plan)
    assert named.droplevel("fold").sort_index().tolist() == (
        log.droplevel(["fold", "source"]).sort_index().tolist()
    )
    pairs = pd.MultiIndex.from_arrays([groups, range(12)])
    log = run(Ridge(), X.set_axis(pairs), y.set_axis(pairs), plans.holdout(rng=1))
    assert set(log.index) <= set(pairs)
    # Points may be numbered within their sources.
    inner = pd.Series(range(12)) // 6
    log = run(Ridge(), X.to_numpy(), y, plans.leave_one_source_out(), groups=groups, point=inner)
    assert len(log) == 12
    assert only_row(log.cvci.wald())["n_points"] == 12


def test_data_of_many_kinds_give_the_same_losses():
    X, y, _ = small()
    X = X.round(2)
    plan = plans.k_fold(4, rng=1)
    expected = run(LinearRegression(), X, y, plan).to_numpy()
    scattered = np.repeat(X.to_numpy(), 2, axis=0)[::2]
    for data in (X.to_numpy(), np.asfortranarray(X), scattered, X.to_numpy().tolist()):
        np.testing.assert_allclose(
            run(LinearRegression(), data, y.to_numpy(), plan), expected, rtol=1e-9
        )
    for format in ("csr", "csc", "lil", "coo", "bsr", "dia"):
        data = sparse.csr_array(X.to_numpy()).asformat(format)
        found = run(LinearRegression(), data, y.to_numpy(), plan)
        np.testing.assert_allclose(found, expected, rtol=1e-3)  # its solver iterates
        assert data.format == format
    found = run(LinearRegression(), X, y.astype("Float64"), plan)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_bound_plan_and_a_search_serve_too():
    X, y, _ = small()
    search = GridSearchCV(Ridge(), {"alpha": [0.01, 1.0]}, cv=plans.k_fold(3, rng=2))
    plan = plans.k_fold(3, rng=1)
    log = run({"search": search}, X, y, plan.bind(40))
    pd.testing.assert_frame_equal(log, run({"search": search}, X, y, plan))


def test_the_bar_counts_fits_and_without_a_standard_error_stream_there_is_none(monkeypatch, capsys):
    X, y, _ = small()
    two = {"a": Ridge(), "b": Ridge(2.0)}
    cvstats.evaluate(two, X, y, plan=plans.k_fold(3, rng=1))
    assert " 6/6 " in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert len(cvstats.evaluate(Ridge(), X, y, plan=plans.k_fold(3, rng=1))) == 40


def test_a_log_loss_is_clipped_on_every_road():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    ask = {"plan": cvstats.plans.k_fold(5, rng=0), "progress": False, "clip": 1e-3}
    log = cvstats.evaluate({"tree": tree}, X, y, loss="log_loss", **ask)
    assert log.to_numpy().max() == -np.log(1e-3)
    several = cvstats.evaluate({"tree": tree}, X, y, loss=["log_loss", "auc"], **ask)
    np.testing.assert_allclose(several.xs("log_loss", level="metric"), log)
    with pytest.raises(LogError, match="does not use clip=, which applies only to loss='log_loss'"):
        cvstats.evaluate({"tree": tree}, X, y, loss="brier", **ask)


def test_a_threshold_takes_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    ask = {"cv": 5, "progress": False, "threshold": 0.2}
    chance = cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
    errors = cvstats.evaluate(model, X, y, loss="zero_one", **ask)
    assert errors.mean() == pytest.approx(((chance >= 0.2) != y).mean())
    benefit = cvstats.evaluate(model, X, y, loss="net_benefit", **ask)
    treated = chance >= 0.2
    expected = (treated & (y == 1)).mean() - 0.25 * (treated & (y == 0)).mean()
    assert -benefit.mean() == pytest.approx(expected)
    f1 = cvstats.evaluate(model, X, y, loss="f1", folds="pool", **ask)
    assert 1 - f1.mean() == pytest.approx(f1_score(y, treated))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"loss": "huber"}, LogError, "got delta=None"),
        ({"average": "macro"}, LogError, "does not use average="),
        ({"loss": ["r2", "rmse"], "delta": 1.0}, LogError, "none of .* uses delta="),
        ({"loss": "uno", "at": 2.0}, LogError, "requires the events of censored times.*event=…"),
        ({"loss": "uno", "event": "died"}, LogError, "event= requires an additional column"),
        ({"quantil": 0.5}, TypeError, "Did you mean 'quantile'"),
        ({"positive": "yes"}, TypeError, "that sorts last is the positive one.*y == label"),
        ({"pos_label": 0}, TypeError, "that sorts last is the positive one.*y == label"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error, words):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(error, match=words):
        cvstats.evaluate(Ridge(), X, y, cv=5, progress=False, **options)


@pytest.mark.parametrize(("loss", "options"), [("net_benefit", {"threshold": 0.3}), ("brier", {})])
def test_a_log_says_what_its_losses_are(loss, options):
    X, y = CANCER
    log = cvstats.evaluate(GaussianNB(), X, y, cv=3, loss=loss, progress=False, **options)
    table = pd.DataFrame({"fold": [0, 1], "y_true": [0, 1], "y_pred": [0.2, 0.7]})
    expected = cvstats.losses(table, loss=loss, **options).attrs
    assert {name: log.attrs[name] for name in expected} == expected


def test_names_of_models_may_be_tuples():
    models = {("ridge", alpha): Ridge(alpha) for alpha in (1, 10)}
    log = cvstats.evaluate(models, *DIABETES, cv=3, loss="squared_error", progress=False)
    assert log.columns.nlevels == 1
    assert log.columns.tolist() == list(models)
    assert cvstats.compare(log).index.tolist() == [(("ridge", 1), ("ridge", 10))]
