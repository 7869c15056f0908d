"""Net benefit: dcurves' values, thresholds as metrics, and models that treat all or none."""

import numpy as np
import pytest
from frontier import CASES, binary_frame

import cvstats
from cvstats import LogError

ASK = {"prediction": ["p", "q"], "loss": "net_benefit"}


@pytest.mark.parametrize("cut", [0.2, 0.4, 0.5])
def test_values_are_those_of_dcurves(cut):
    stored = CASES[f"net_benefit_{cut}"]["outputs"]
    log = cvstats.losses(binary_frame(), threshold=cut, baselines=True, **ASK)
    assert log.attrs["loss"] == "-net_benefit"
    assert log.attrs["range"] == (-np.inf, 1.0)
    found = cvstats.as_scores(cvstats.holdout(log))["estimate"]
    assert found["p"] == pytest.approx(stored["p"], rel=1e-9)
    assert found["q"] == pytest.approx(stored["q"], rel=1e-9)
    assert found["treat all"] == pytest.approx(stored["all"], rel=1e-9)
    assert found["treat none"] == 0


def test_several_thresholds_are_metrics():
    log = cvstats.losses(binary_frame(), threshold=[0.2, 0.4], baselines=True, **ASK)
    table = cvstats.as_scores(cvstats.interval(log, by="metric"))
    stored = CASES["net_benefit_0.4"]["outputs"]
    assert table.loc[("net_benefit at 0.4", "p"), "estimate"] == pytest.approx(stored["p"])
    assert list(cvstats.summary(log)) == ["net_benefit at 0.2", "net_benefit at 0.4"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the treatment threshold, a probability, but got threshold=None"),
        ({"threshold": 1.0}, "got threshold=1.0"),
        ({"threshold": [0.2, 0.2]}, "contains a value twice"),
        ({"threshold": []}, "contains a value twice"),
        ({"threshold": [0.2, "a"]}, "got threshold='a'"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(LogError, match=words):
        cvstats.losses(binary_frame(), **ASK, **options)


def test_baselines_belong_to_net_benefit():
    for loss in ("brier", "auc"):
        with pytest.raises(LogError, match="does not use baselines="):
            cvstats.losses(binary_frame(), prediction="p", loss=loss, baselines=True)
