"""The partial AUC: pROC's values, exact influences, and what it refuses."""

import numpy as np
import pytest
from frontier import BINARY, CASES, binary_frame
from sklearn.metrics import roc_auc_score

import cvstats
from cvstats import LogError
from cvstats.metrics import METRICS
from cvstats.metrics.metric import MetricOptions, Points

ASK = METRICS["partial_auc"].influence


@pytest.mark.parametrize(("model", "limit"), [("p", 0.2), ("p", 0.5), ("q", 0.2)])
def test_areas_are_those_of_proc_and_scikit_learn(model, limit):
    stored = CASES["partial_auc"]["outputs"]
    log = cvstats.losses(binary_frame(), prediction=[model], loss="partial_auc", max_fpr=limit)
    area = cvstats.as_scores(cvstats.holdout(log))["estimate"].item()
    assert area == pytest.approx(stored[f"{model}{limit * 100:.0f}"], rel=1e-9)
    least = limit**2 / 2
    standardized = (1 + (area - least) / (limit - least)) / 2
    sklearn = roc_auc_score(BINARY["y"], BINARY[model], max_fpr=limit)
    assert standardized == pytest.approx(sklearn, rel=1e-9)


def test_standard_errors_are_those_of_finite_differences():
    log = cvstats.losses(binary_frame(), prediction=["p", "q"], loss="partial_auc", max_fpr=0.3)
    stored = CASES["partial_auc_se"]["outputs"]
    factor = np.sqrt(79 / 80)
    table = cvstats.holdout(log)["se"] * factor
    np.testing.assert_allclose(table, [stored["p"], stored["q"]], rtol=1e-9)
    difference = cvstats.compare(log, method="holdout")["se"].item() * factor
    assert difference == pytest.approx(stored["difference"], rel=1e-9)


@pytest.mark.parametrize("limit", [0.1, 0.33, 0.5, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_influences_are_the_derivatives_in_the_weights(limit, ties):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 50)
    score = rng.normal(size=50) + truth
    score = np.round(score) if ties else score
    weight, asked = rng.gamma(2.0, size=50), MetricOptions(max_fpr=limit)
    value, phi = ASK(Points(truth, score, weight=weight), asked)
    assert weight @ phi == pytest.approx(0, abs=1e-12)
    for i in range(50):
        ends = []
        for step in (1e-6, -1e-6):
            moved = weight.copy()
            moved[i] += step
            ends.append(ASK(Points(truth, score, weight=moved), asked)[0])
        assert phi[i] == pytest.approx((ends[0] - ends[1]) / 2e-6 * weight.sum(), abs=1e-7)
    if limit == 1:
        whole, of_auc = METRICS["auc"].influence(Points(truth, score, weight=weight), asked)
        assert value == pytest.approx(whole, abs=1e-14)
        np.testing.assert_allclose(phi, of_auc, atol=1e-13)


@pytest.mark.parametrize("limit", [None, 0, 1.2, "a", True])
def test_the_rate_is_asked_for(limit):
    with pytest.raises(LogError, match="needs the largest false positive rate, but got max_fpr="):
        cvstats.losses(binary_frame(), prediction="p", loss="partial_auc", max_fpr=limit)
