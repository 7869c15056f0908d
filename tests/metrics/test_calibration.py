"""Metrics with a target: calibration slope and intercept, observed over expected positives."""

import numpy as np
import pandas as pd
import pytest
from frontier import BINARY, CASES, binary_frame
from scipy import special, stats

import cvstats
from cvstats import LogError
from cvstats.metrics import METRICS

TARGETS = {"calibration_slope": 1.0, "calibration_intercept": 0.0, "observed_expected": 1.0}


def make_many(n: int = 4000, slope: float = 2.0) -> pd.DataFrame:
    """Five folds of a model whose logits are too large by a factor."""
    rng = np.random.default_rng(5)
    logit = rng.normal(size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    own = 1 / (1 + np.exp(-slope * logit))
    return pd.DataFrame(
        {
            "point": range(n), "fold": np.arange(n) % 5, "half": np.arange(n) % 2, "y_true": truth,
            "extreme": own, "right": 1 / (1 + np.exp(-logit)), "w": rng.gamma(2.0, size=n),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "case", "model"),
    [
        ("calibration_slope", "calibration_slope", "p"),
        ("calibration_slope", "calibration_slope_q", "q"),
        ("calibration_intercept", "calibration_in_the_large", "p"),
        ("observed_expected", "observed_expected", "p"),
    ],
)
def test_values_and_variances_of_other_programs(loss, case, model):
    stored = CASES[case]["outputs"]
    value = stored.get("slope", stored.get("value"))
    variance = stored["se"] ** 2 if "se" in stored else np.ravel(stored["var"])[-1]
    row = cvstats.holdout(cvstats.losses(binary_frame(), prediction=[model], loss=loss)).iloc[0]
    assert row["estimate"] == pytest.approx(value, rel=1e-9)
    assert row["se"] ** 2 * 79 / 80 == pytest.approx(variance, rel=1e-9)


def test_variance_by_site_is_that_of_sandwich():
    log = cvstats.losses(binary_frame(sources=True), prediction="p", loss="calibration_slope")
    groups = len(np.unique(BINARY["site"]))
    se = cvstats.clustered(log, correction="CR1")["se"].item()
    variance = CASES["calibration_slope"]["outputs"]["var_site"][1]
    assert se**2 * (groups - 1) / groups == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("loss", TARGETS)
def test_the_log_holds_the_value_and_its_target(loss):
    log = cvstats.losses(make_many(), prediction=["extreme", "right"], loss=loss)
    assert (log.attrs["loss"], log.attrs["folds"]) == (loss, "pool")
    assert log.attrs["orientation"] == "value"
    table = cvstats.wald(log)
    assert table.attrs["target_value"] == TARGETS[loss]
    scores = cvstats.as_scores(table)
    pd.testing.assert_frame_equal(scores, table)
    assert scores.attrs["score"] == METRICS[loss].words
    right = table.loc["right"]
    assert right["lower"] < TARGETS[loss] < right["upper"]
    compared = cvstats.compare(log)
    gap = table["estimate"]["extreme"] - table["estimate"]["right"]
    assert compared["difference"].item() == pytest.approx(gap)
    assert "target_value" not in cvstats.difference(log, reference="right").attrs


def test_no_winner_by_a_metric_with_a_target():
    log = cvstats.losses(binary_frame(), prediction=["p", "q"], loss="calibration_slope")
    for call in (cvstats.best_set, cvstats.winner, lambda log: cvstats.rope(log, margin=0.1)):
        with pytest.raises(LogError, match="calibration_slope has the target value 1"):
            call(log)
    result = cvstats.equivalence(log, margin=2.0)
    assert {"lower", "upper", "equivalent"} <= set(result)


def test_cautions_of_a_summary_without_differences_are_those_of_models():
    rng = np.random.default_rng(0)
    logit = np.tile(1.5 * rng.normal(size=200), 4)
    truth = np.tile(rng.random(200) < special.expit(logit[:200] / 1.5), 4)
    index = pd.MultiIndex.from_product([range(4), range(200)], names=["repetition", "point"])
    frame = pd.DataFrame({"y_true": truth.astype(int), "a": special.expit(logit)}, index)
    frame["fold"] = np.concatenate([rng.permutation(200) % 5 for _ in range(4)])
    frame["b"] = special.expit(logit * (1 + 0.3 * rng.normal(size=5))[frame["fold"]])
    frame = frame.set_index("fold", append=True)
    log = cvstats.losses(frame, prediction=["a", "b"], loss="calibration_slope")
    assert cvstats.compare(log)["caution"].item() == "unstable difference"
    assert "unstable difference" not in str(cvstats.summary(log))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"p": 1.0}, {}, "probability is 0 or 1, whose logit is infinite.*Use clip=1e-6"),
        ({"p": 0.0}, {}, "probability is 0 or 1, whose logit is infinite.*Use clip=1e-6"),
        ({"p": 1.5}, {}, "a predicted probability is 1.5 .*Expected numbers from 0 to 1"),
        ({"p": 0.4}, {}, "the prediction is constant"),
        ({"y_true": 0}, {}, "the truth has only one class"),
        ({"y_true": 1}, {}, "the truth has only one class"),
        ({}, {"clip": 0.7}, "clip=0.7 is not a small probability"),
        ({}, {"classes": [0, 1]}, "calibration slope does not use classes="),
        ({}, {"threshold": 0.5}, "calibration slope does not use threshold="),
    ],
)
def test_refusals(change, options, words):
    frame = binary_frame().assign(**change)
    with pytest.raises(LogError, match=words):
        cvstats.losses(frame, prediction="p", loss="calibration_slope", **options)


def test_separated_classes_have_no_slope():
    frame = binary_frame()
    frame["p"] = 0.2 + 0.5 * frame["y_true"] + 0.2 * frame["p"]
    for part in (frame, frame.assign(y_true=1 - frame["y_true"])):
        with pytest.raises(LogError, match="the predictions separate the classes"):
            cvstats.losses(part, prediction="p", loss="calibration_slope")
    cvstats.losses(frame, prediction="p", loss="calibration_intercept")
    frame["w"] = 1.0
    frame.loc[frame.index[frame["y_true"] == 0][0], ["p", "w"]] = 0.9, 0.0
    with pytest.raises(LogError, match="the predictions separate the classes"):
        cvstats.losses(frame, prediction="p", loss="calibration_slope", weight="w")


def test_clipped_probabilities_have_a_slope():
    frame = binary_frame()
    frame.loc[3, "p"] = 1.0
    log = cvstats.losses(frame, prediction="p", loss=["calibration_slope", "log_loss"], clip=1e-6)
    assert np.isfinite(log).all()


@pytest.mark.parametrize("name", ["calibration_slope", "calibration_intercept"])
@pytest.mark.parametrize("road", [lambda log: log, cvstats.Moments.of_log])
def test_limits_are_those_of_student(name, road):
    """With n - 1 degrees of freedom: with 60 points 2% wider than normal ones."""
    frame = make_many(60).set_index(["fold", "point"])
    log = cvstats.losses(frame, prediction="right", loss=name)
    found = cvstats.interval(road(log)).iloc[0]
    reach = stats.t.isf(0.025, 59) * found["se"]
    assert found["upper"] - found["estimate"] == pytest.approx(reach, rel=1e-9)
    assert found["estimate"] - found["lower"] == pytest.approx(reach, rel=1e-9)
