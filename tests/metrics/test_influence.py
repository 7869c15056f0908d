"""Influence functions against stored answers of scikit-learn, pROC, cvAUC and survival.

``tests/reference/metrics.json`` holds inputs, outputs and the program of each case.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metric_peers import PEERS, UNWEIGHTED
from sklearn.metrics import f1_score
from together import together

from cvstats.metrics import METRICS
from cvstats.metrics.confusion import F1_OF_SETS
from cvstats.metrics.metric import MetricOptions, Points

STORED = Path(__file__).parents[1] / "reference" / "metrics.json"
CASES = {case["id"]: case for case in json.loads(STORED.read_text(encoding="utf-8"))}
DATA = {name: np.array(values) for name, values in CASES["metrics_data"]["inputs"].items()}
DATA["chance"] = DATA["score"].clip(0.05, 0.95)
CLASSES = {"labels": 3}

ASKED: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    **{name: (name, "truth_number", "prediction_number", {})
       for name in ("concordance_correlation", "spearman")},
    "kendall_b": ("kendall", "truth_number", "prediction_number", {}),
    "auc_ovo_macro": (
        "auc", "truth_class", "probability_class",
        {**CLASSES, "average": "macro", "multi_class": "ovo"},
    ),
}  # fmt: skip
"""Metrics whose influence is compared with stored numbers: other programs take no weights."""


def pseudo_values(
    name: str, truth: Any, prediction: Any, weight: Any, options: dict[str, Any]
) -> tuple[float, Any]:
    """Metric and pseudo-values of one cell."""
    metric, asked = METRICS[name], MetricOptions(**options)
    if metric.reads == "labels":
        table = np.zeros((asked.labels, asked.labels))
        np.add.at(table, (truth, prediction), weight / weight.sum())
        value, phi = metric.influence(table, asked)
        phi = phi[truth, prediction]
    else:
        value, phi = metric.influence(Points(truth, prediction, weight=weight), asked)
    return value, value + weight / weight.mean() * phi


@pytest.mark.parametrize("case", ASKED)
def test_pseudo_values_are_those_of_other_programs(case: str) -> None:
    name, truth, prediction, options = ASKED[case]
    stored = CASES[f"metric_{case}"]["outputs"]
    y, p = DATA[truth], DATA[prediction]
    for which, weight in (("pooled", np.ones(len(y))), ("pooled_weighted", DATA["weight"])):
        value, psi = pseudo_values(name, y, p, weight, options)
        assert value == pytest.approx(stored[which]["estimate"], abs=1e-12)
        np.testing.assert_allclose(psi, stored[which]["pseudo_value"], rtol=0, atol=1e-10)
        assert psi.mean() == pytest.approx(value, abs=1e-13)
    for fold, (expected, whole) in enumerate(
        zip(stored["fold_averaged"]["fold_metric"], [12, 10, 8], strict=True)
    ):
        here = DATA["fold"] == fold
        value, psi = pseudo_values(name, y[here], p[here], np.ones(whole), options)
        assert value == pytest.approx(expected, abs=1e-12)
        part = np.array(stored["fold_averaged"]["pseudo_value"])[here]
        np.testing.assert_allclose(psi, part, rtol=0, atol=1e-10)


def test_censored_times_are_those_of_survival() -> None:
    data, stored = CASES["concordance_censored"]["inputs"], CASES["concordance_censored"]["outputs"]
    time, event = np.array(data["time"]), np.array(data["event"])
    later = -np.array(data["risk"])
    points, asked = Points(time, later, weight=np.ones(len(time)), event=event), MetricOptions()
    value, phi = METRICS["concordance"].influence(points, asked)
    assert value == pytest.approx(stored["C"], abs=1e-14)
    assert phi @ phi / len(phi) ** 2 == pytest.approx(stored["variance"], abs=1e-14)
    np.testing.assert_allclose(value + phi, stored["pseudo_value"], rtol=0, atol=1e-12)
    value, phi = METRICS["somers_d"].influence(points, asked)
    assert value == pytest.approx(2 * stored["C"] - 1, abs=1e-14)


def test_variance_of_kappa_is_that_of_fleiss_cohen_and_everitt() -> None:
    data, stored = CASES["kappa_variance"]["inputs"], CASES["kappa_variance"]["outputs"]
    counts = np.array(data["table"], dtype=float)
    table = counts / counts.sum()
    for weights, value, variance in zip(
        (None, "linear", "quadratic"), stored["kappa"], stored["variance"], strict=True
    ):
        found, phi = METRICS["kappa"].influence(table, MetricOptions(labels=3, weights=weights))
        assert found == pytest.approx(value, abs=1e-14)
        assert (table * phi**2).sum() / counts.sum() == pytest.approx(variance, abs=1e-14)


def derivative(name: str, y: Any, p: Any, w: Any, options: dict[str, Any], step: float) -> Any:
    """Central difference of the metric in the weight of each point, times the total weight."""
    found = []
    for i in range(len(w)):
        ends = []
        for sign in (1, -1):
            moved = w.copy()
            moved[i] += sign * step
            ends.append(pseudo_values(name, y, p, moved, options)[0])
        found.append((ends[0] - ends[1]) / (2 * step) * w.sum())
    return np.array(found)


COLUMNS = {
    "labels": ("truth_binary", "label_binary"), "three labels": ("truth_class", "label_class"),
    "scores": ("truth_binary", "score"), "chances": ("truth_binary", "chance"),
    "chances of three": ("truth_class", "probability_class"),
    "numbers": ("truth_number", "prediction_number"),
}  # fmt: skip
"""Truth and prediction of each kind of metric."""


def ratio(y: Any, p: Any, sample_weight: Any) -> float:
    return (sample_weight @ y) / (sample_weight @ p)


OTHERS = {
    case: (name, *COLUMNS[kind], CLASSES | options if "three" in kind else options, peer)
    for case, (name, options, kind, peer) in PEERS.items() if case not in UNWEIGHTED
}  # fmt: skip
OTHERS |= {  # losses of two models are read as truth and prediction
    "skill": ("skill", *COLUMNS["numbers"], {}, lambda y, p, **w: 1 - ratio(y, p, **w)),
    "relative_error": ("relative_error", *COLUMNS["numbers"], {}, ratio),
}
"""Metrics with their truth, prediction and options, and the same by another program."""


@together(OTHERS, by=lambda case: OTHERS[case][0])
def test_influence_is_the_derivative_in_the_weights(case: str) -> None:
    name, truth, prediction, options, formula = OTHERS[case]
    options = {key: option for key, option in options.items() if key != "classes"}
    y, p, w = DATA[truth], DATA[prediction], DATA["weight"]
    value, psi = pseudo_values(name, y, p, w, options)
    assert value == pytest.approx(formula(y, p, sample_weight=w), abs=1e-10)
    expected = value + w / w.mean() * derivative(name, y, p, w, options, 1e-5)
    np.testing.assert_allclose(psi, expected, rtol=0, atol=2e-7)


def test_influence_of_several_labels_is_the_derivative() -> None:
    rng = np.random.default_rng(7)
    truth, label = rng.integers(0, 2, (2, 30, 4))
    w, asked = DATA["weight"], MetricOptions()
    value, phi = F1_OF_SETS.influence(Points(truth, label, weight=w), asked)
    assert value == pytest.approx(
        f1_score(truth, label, average="micro", sample_weight=w), abs=1e-12
    )
    assert w @ phi == pytest.approx(0, abs=1e-12)
    for i in range(30):
        ends = []
        for step in (1e-5, -1e-5):
            moved = w + step * (np.arange(30) == i)
            ends.append(F1_OF_SETS.influence(Points(truth, label, weight=moved), asked)[0])
        assert phi[i] == pytest.approx((ends[0] - ends[1]) / 2e-5 * w.sum(), abs=2e-7)


CENSORED = {name for name, metric in METRICS.items() if metric.assumes}
"""Those of `test_survival.py`."""
ELSEWHERE = CENSORED | {"partial_auc"}
"""And that of `test_partial_auc.py`."""


def test_every_metric_is_held_against_something() -> None:
    asked = {name for name, *_ in (*ASKED.values(), *OTHERS.values())}
    assert asked | ELSEWHERE == set(METRICS)
