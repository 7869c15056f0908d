"""Differences of metrics between models that were refitted in repeated cross-validation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import cvstats
from cvstats.errors import LogError

FOLDS = 5


def cross_validate(
    models: dict[str, Any], x: NDArray[Any], y: NDArray[Any], repetitions: int, seed: int = 0
) -> pd.DataFrame:
    """Probabilities of estimators, each for its own columns of x."""
    rng = np.random.default_rng(seed)
    parts = []
    for repetition in range(repetitions):
        fold = rng.permutation(len(y)) % FOLDS
        part = pd.DataFrame(
            {"repetition": repetition, "fold": fold, "point": range(len(y)), "y": y}
        )
        for name, (estimator, columns) in models.items():
            for k in range(FOLDS):
                test = fold == k
                fitted = estimator.fit(x[~test][:, columns], y[~test])
                part.loc[test, name] = fitted.predict_proba(x[test][:, columns])[:, 1]
        parts.append(part)
    levels = ["repetition", "fold", "point"][repetitions < 2 :]
    return pd.concat(parts).set_index(levels)


TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
MODELS = {
    "tree": (TREE, range(10)), "weak": (LogisticRegression(C=0.001), range(10)),
    "logistic": (LogisticRegression(), range(10)),
}  # fmt: skip


def logs_of_metrics(repetitions: int = 3) -> dict[str, pd.DataFrame]:
    x, y = make_classification(
        300, 10, n_informative=4, weights=[0.8], flip_y=0.05, random_state=0
    )  # fmt: skip
    found = cross_validate(MODELS, x, y, repetitions)
    labels = found.assign(**{name: (found[name] > 0.5).astype(int) for name in MODELS})
    options: dict[str, Any] = {"truth": "y", "prediction": [*MODELS], "positive": 1}
    return {
        "f1": cvstats.losses(labels, loss="f1", folds="pool", **options),
        "auc": cvstats.losses(found, loss="auc", **options),
    }


LOGS = logs_of_metrics()


@pytest.mark.parametrize("metric", LOGS)
def test_pseudo_losses_are_treated_as_losses(metric: str) -> None:
    log = LOGS[metric]
    plain = log.copy()
    plain.attrs = {}
    ours, theirs = (each.cvci.compare(method="refit_corrected") for each in (log, plain))
    for name in ("difference", "se", "lower", "upper", "p_value"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9)
    assert (ours["se"] > log.cvci.compare(method="wald")["se"]).any()
    moments = cvstats.Moments.of_log(log, pairs=True)
    again = moments.compare(method="refit_corrected")
    np.testing.assert_allclose(again["se"], ours["se"], rtol=1e-9)
    assert cvstats.methods(log).loc["refit_corrected", "applies"]
    assert log.cvci.compare().attrs["interval_method"] == "wald"  # as before


def test_a_clear_difference_is_named_although_it_depends_on_the_training_points() -> None:
    """It was withheld if the metric was pooled, because no method accounted for the refits."""
    two = LOGS["f1"][["tree", "weak"]]
    [row] = two.cvci.compare().reset_index().to_dict("records")
    assert row["caution"] == "unstable difference"
    assert row["statistic"] < -5
    text = " ".join(str(two.cvci.summary()).split())
    assert text.startswith("tree is better than weak: its F1 is higher by ")
    assert "using refit_corrected because the difference depends on the training points: " in text
    assert "unstable difference" not in text


def test_one_repetition_shows_nothing_about_a_metric() -> None:
    log = logs_of_metrics(1)["auc"]
    with pytest.raises(LogError, match="the log has one repetition") as error:
        log.cvci.compare(method="refit_corrected")
    assert "or the losses of two models" not in str(error.value)


@pytest.mark.slow
def test_coverage_of_the_difference_of_two_equal_aucs() -> None:
    """Two models of noise, whose difference is all due to the training points."""
    runs, rng = 150, np.random.default_rng(8)
    far = rng.normal(size=(4_000, 5))
    truth = (rng.random(4_000) < 0.5).astype(int)
    models = {"a": (LogisticRegression(), [0, 1]), "b": (LogisticRegression(), [2, 3, 4])}
    covered = {"wald": 0, "refit_corrected": 0}
    for run in range(runs):
        x, y = rng.normal(size=(200, 5)), (rng.random(200) < 0.5).astype(int)
        found = cross_validate(models, x, y, 3, seed=run)
        target = []
        for _, part in found.reset_index().groupby(["repetition", "fold"]):
            train = np.setdiff1d(np.arange(200), part["point"])
            one, two = (
                fit.fit(x[train][:, at], y[train]).decision_function(far[:, at])
                for fit, at in models.values()
            )
            target.append(roc_auc_score(truth, two) - roc_auc_score(truth, one))
        log = cvstats.losses(found, truth="y", prediction=["a", "b"], loss="auc", positive=1)
        for method in covered:
            [row] = log.cvci.compare(method=method).to_dict("records")
            covered[method] += row["lower"] <= np.mean(target) <= row["upper"]
    assert covered["wald"] / runs < 0.93, covered
    assert covered["refit_corrected"] / runs > 0.91, covered
