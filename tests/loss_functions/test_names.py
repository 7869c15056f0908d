"""Names of scikit-learn and other programs, wherever a loss or a metric is named."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from together import together

import cvstats
from cvstats import LogError
from cvstats.errors import read_names
from cvstats.loss_functions.losses import find_loss
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS

N = 90
RNG = np.random.default_rng(3)
NUMBERS = pd.DataFrame(
    {"fold": np.arange(N) % 3, "y_true": RNG.normal(size=N), "y_pred": RNG.normal(size=N)}
)
NUMBERS["point"] = np.arange(N)
LABELS = NUMBERS.assign(
    y_true=RNG.integers(0, 3, N).astype(float), y_pred=RNG.integers(0, 3, N).astype(float)
)
YES = NUMBERS.assign(y_true=RNG.integers(0, 2, N), y_pred=RNG.random(N))

SAME = [
    *[(name, "squared_error", {}) for name in ("mse", "MSE", "neg_mean_squared_error", "l2")],
    *[(name, "absolute_error", {}) for name in ("mae", "neg_mean_absolute_error")],
    *[(name, "rmse", {}) for name in ("neg_root_mean_squared_error", "rmsd", "RMSE")],
    *[(name, "r2", {}) for name in ("r2_score", "R2", "rsq")],
    ("mape", "percentage_error", {}),
    *[(name, "zero_one", {}) for name in ("error_rate", "zero_one_loss")],
    *[(name, "accuracy", {}) for name in ("acc", "accuracy_score")],
    ("balanced_accuracy_score", "balanced_accuracy", {}),
    *[(name, "matthews", {}) for name in ("mcc", "matthews_corrcoef")],
    *[(f"{name}_{way}", name, {"average": way})
      for name in ("f1", "precision", "jaccard") for way in ("macro", "micro", "weighted")],
    ("qwk", "kappa", {"weights": "quadratic"}),
    ("cohen_kappa_score", "kappa", {}),
    *[(name, "log_loss", {}) for name in ("logloss", "neg_log_loss", "nll")],
    *[(name, "brier", {}) for name in ("brier_score", "neg_brier_score", "Brier")],
    *[(name, "auc", {}) for name in ("roc_auc", "roc_auc_score", "auroc")],
    ("pr_auc", "average_precision", {}),
    ("harrell", "concordance", {}),
]  # fmt: skip


OF_TIMES = [
    *[(name, "integrated_brier", {}) for name in ("ibs", "integrated_brier_score")],
    ("cumulative_dynamic_auc", "auc_at", {}),
    ("uno_c", "uno", {}),
]


@together([*SAME, *OF_TIMES])
def test_other_names_are_found(name, own, options):
    assert find_loss(name) == (own, options)


@pytest.mark.parametrize(
    ("name", "own", "options"), {own: (name, own, options) for name, own, options in SAME}.values()
)
def test_other_names_give_the_same_log(name, own, options):
    score = own in ("log_loss", "brier", "auc", "average_precision")
    table = YES if score else LABELS if options or own in (
        "zero_one", "accuracy", "balanced_accuracy", "matthews", "kappa"
    ) else NUMBERS  # fmt: skip
    given = {"positive": 1} if own in ("auc", "average_precision") else {}
    made = cvstats.losses(table, loss=name, **given)
    same = cvstats.losses(table, loss=own, **options, **given)
    pd.testing.assert_series_equal(made, same)
    assert made.attrs == same.attrs
    read = cvstats.read_log(table, loss=name, **given)
    pd.testing.assert_series_equal(read, cvstats.read_log(table, loss=own, **options, **given))


@pytest.mark.parametrize("kind", [int, float, bool, object])
def test_labels_that_are_whole_numbers_are_noted_as_such(kind):
    table = LABELS.assign(**(LABELS[["y_true", "y_pred"]] > 0).astype(int).astype(kind))
    facts = cvstats.losses(table, loss="f1").attrs
    assert repr((facts["labels"], facts["positive"])) == "([0, 1], 1)"


@pytest.mark.parametrize("name", ["roc_auc_ovr", "roc_auc_ovo_weighted", "roc_auc_ovr_weighted"])
def test_auc_of_two_classes_by_the_names_for_several(name):
    """As in scikit-learn; the averages over two classes are the same."""
    made, same = (cvstats.losses(YES, loss=loss) for loss in (name, "auc"))
    pd.testing.assert_series_equal(made, same)
    X, y = make_classification(60, random_state=0)
    log = cvstats.evaluate({"lr": LogisticRegression()}, X, y, cv=3, loss=name, progress=False)
    score = cross_val_score(LogisticRegression(), X, y, cv=3, scoring=name).mean()
    assert np.isclose(cvstats.as_scores(log.cvci.wald())["estimate"].iloc[0], score)


@pytest.mark.parametrize("name", ["neg_mean_poisson_deviance", "neg_mean_gamma_deviance"])
def test_deviances_of_scikit_learn(name):
    table = NUMBERS.assign(y_true=np.exp(NUMBERS["y_true"]), y_pred=np.exp(NUMBERS["y_pred"]))
    log = cvstats.losses(table, loss=name)
    deviance = getattr(sklearn.metrics, name.removeprefix("neg_"))
    assert np.isclose(log.mean(), deviance(table["y_true"], table["y_pred"]), rtol=1e-12)
    assert log.attrs["loss"] == name.removeprefix("neg_mean_")


def test_several_names_are_told_apart():
    log = cvstats.losses(LABELS, loss=["f1_macro", "f1_micro", "acc"])
    assert list(log.index.unique("metric")) == ["f1_macro", "f1_micro", "acc"]
    read = cvstats.read_log(LABELS, loss=["f1_macro", "f1_micro"])
    assert read.attrs["metric"] == ["f1_macro", "f1_micro"]
    assert read.groupby("metric").mean().nunique() == 2


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "f1", "average": "macro"},
        {"loss": "fbeta", "average": "weighted", "beta": 2},
        {"loss": "kappa", "weights": "linear"},
        {"loss": "recall", "average": "macro", "folds": "average"},
        {"loss": "precision", "average": "macro", "zero_division": 0},
    ],
)
def test_options_of_a_metric_in_read_log(options):
    read = cvstats.read_log(LABELS, **options)
    made = cvstats.losses(LABELS.set_index(["fold", "point"]), **options)
    pd.testing.assert_series_equal(read, made, check_names=False)


@pytest.mark.parametrize(
    "name", ["f1_macro", "roc_auc_ovr", "roc_auc_ovo", "matthews_corrcoef", "recall_weighted"]
)
def test_evaluate_computes_the_scores_of_scikit_learn(name):
    X, y = load_iris(return_X_y=True)
    model = GaussianNB()
    log = cvstats.evaluate(model, X, y, cv=5, loss=name, folds="average", progress=False)
    expected = cross_val_score(model, X, y, cv=5, scoring=name).mean()
    assert cvstats.as_scores(log.cvci.interval())["estimate"].iloc[0] == pytest.approx(expected)


def test_evaluate_takes_several_names():
    X, y = load_iris(return_X_y=True)
    names = ["f1_macro", "mae", "acc"]
    log = cvstats.evaluate(GaussianNB(), X, y, cv=5, loss=names, progress=False)
    assert log.attrs["metric"] == names


def test_the_score_of_a_search_has_its_direction():
    X, y = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1.0]}
    search = GridSearchCV(LogisticRegression(max_iter=500), grid, scoring="f1_macro", cv=3)
    assert cvstats.read_log(search.fit(X, y)).attrs["loss"] == "1 - f1_macro"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cvstats.read_log(LABELS, loss="f1_macro", average="micro"),
         "loss='f1_macro' implies average='macro', but average='micro' was given"),
        (lambda: cvstats.losses(NUMBERS, loss="median_absolute_error"), "no standard error"),
        (lambda: cvstats.losses(NUMBERS, loss="max_error"), "Did you mean 'absolute_error'"),
        (lambda: cvstats.losses(NUMBERS, loss="mae_macro"), "Unknown loss 'mae_macro'"),
        (lambda: cvstats.read_log(LABELS, loss="f1", event="fold"), "is for censored times"),
        (lambda: cvstats.read_log(NUMBERS, loss="mae", average="macro"), "does not use average="),
    ],
)  # fmt: skip
def test_refusals(call, words):
    with pytest.raises(LogError, match=words):
        call()


def test_an_option_that_nothing_has():
    with pytest.raises(TypeError, match=r"read_log\(\) got .*'betta'. Did you mean 'beta'"):
        cvstats.read_log(NUMBERS, loss="mae", betta=2)


LOG = cvstats.losses(
    cvstats.datasets.load("diabetes"), prediction=["ridge", "random_forest", "gradient_boosting"]
)


@pytest.mark.parametrize(
    ("name", "method"),
    [("ttest", "corrected_t"), ("diebold_mariano", "ordered"), ("dm", "ordered")],
)
def test_methods_by_the_names_of_their_fields(name, method):
    one = LOG[["ridge", "random_forest"]]
    pd.testing.assert_frame_equal(one.cvci.compare(method=name), one.cvci.compare(method=method))
    if method != "ordered":
        assert str(one.cvci.summary(method=name)) == str(one.cvci.summary(method=method))
        assert one.cvci.interval(method=name).attrs["method"] == method


def test_delong_is_a_test_of_areas():
    with pytest.raises(LogError, match="a test of two AUCs, but this log has squared_error"):
        LOG.cvci.compare(method="DeLong")
    with pytest.raises(LogError, match="a test of two AUCs"):
        LOG[["ridge"]].cvci.interval(method="delong")
    flights = cvstats.datasets.load("flights")
    models = ["naive_bayes", "gradient_boosting"]
    log = cvstats.losses(flights, prediction=models, loss="auc", folds="pool")
    found, expected = (log.cvci.compare(method=name) for name in ("delong", "wald"))
    pd.testing.assert_frame_equal(found, expected)


def test_adjustments_by_other_names():
    plain = LOG.cvci.compare(adjust=None)["p_value"]
    bonferroni = LOG.cvci.compare(adjust="bonferroni")
    np.testing.assert_allclose(bonferroni["p_adjusted"], np.minimum(1, 3 * plain))
    assert bonferroni.attrs["adjust"] == "bonferroni"
    for name in ("fdr", "fdr_bh", "Benjamini-Hochberg"):
        pd.testing.assert_frame_equal(LOG.cvci.compare(adjust=name), LOG.cvci.compare(adjust="bh"))
    with pytest.raises(LogError, match="Invalid adjust='tukey'. Expected one of 'holm', 'bon"):
        LOG.cvci.compare(adjust="tukey")


def test_what_is_available_is_documented_and_not_called_missing():
    """A new loss or metric is named in the docstring of `losses`, and no longer as missing."""
    known = {*LOSSES, *METRICS}
    assert {
        name for name in known if not re.search(rf"\b{name}\b", cvstats.losses.__doc__)
    } == set()
    assert {name.replace("-", "_") for name in read_names("near")} & known == set()
