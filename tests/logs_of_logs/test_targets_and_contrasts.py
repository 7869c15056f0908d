"""Metrics with a target in contrasts and verdicts, and winners that are called as a column is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats import LogError


def predictions(n=200):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(n), np.arange(n) % 5], names=["point", "fold"])
    columns = {"y": rng.integers(0, 2, n), "a": rng.uniform(0.1, 0.9, n)}
    return pd.DataFrame({**columns, "b": rng.uniform(0.1, 0.9, n)}, index)


@pytest.mark.parametrize("loss", ["observed_expected", "r2"])
def test_a_difference_of_metrics_on_a_log_scale_has_limits_of_its_own(loss):
    table = predictions().assign(sex=np.where(np.arange(200) % 2, "f", "m"))
    options = {"positive": 1} if loss == "observed_expected" else {}
    losses = cvstats.losses(
        table.set_index("sex", append=True), truth="y", prediction=["a", "b"], loss=loss, by="sex",
        **options,
    )  # fmt: skip
    gap = losses.cvci.contrast(by="sex", between=("f", "m"))
    limits = ["estimate", "lower", "upper"]
    pd.testing.assert_frame_equal(gap.cvci.interval()[limits], gap.cvci.wald()[limits])


def covered(**columns):
    table = predictions().assign(**columns)
    return cvstats.losses(
        table, truth="y", prediction={"m": ["lo", "hi"]}, loss="coverage", level=0.9
    )


def test_a_coverage_of_all_points_is_above_its_level():
    losses = covered(lo=-1.0, hi=2.0)
    row = losses.cvci.interval().iloc[0]
    assert row["lower"] == pytest.approx(0.025 ** (1 / 200), rel=1e-6)
    assert "above 0.9" in losses.cvci.summary().sentences[0]


def test_a_metric_without_limits_is_not_compared_with_its_target():
    table = predictions().assign(y=0)
    losses = cvstats.losses(
        table, truth="y", prediction=["a"], loss="observed_expected", positive=1
    )
    first = losses.cvci.summary().sentences[0]
    assert "without an interval" in first
    assert "significant" not in first


def test_a_ratio_of_values_with_a_target_is_refused():
    table = predictions().assign(lo=0.1, hi=2.0, low=-1.0, high=0.5)
    losses = cvstats.losses(
        table, truth="y", prediction={"m": ["lo", "hi"], "k": ["low", "high"]}, loss="coverage",
        level=0.9,
    )  # fmt: skip
    with pytest.raises(LogError, match="coverage has a target value: smaller is not better"):
        losses.cvci.compare(relative=True)


def test_models_may_be_called_as_columns_are():
    rng = np.random.default_rng(1)
    names = np.array(list("abcd"))
    first = rng.integers(0, 4, 300)
    second = (first + rng.integers(1, 4, 300)) % 4
    won = rng.random(300) < 0.5 + 0.1 * (second - first)
    battles = pd.DataFrame({
        "prompt": np.arange(300) % 60, "a": names[first], "b": names[second],
        "score": won.astype(float), "winner": np.where(won, names[first], names[second]),
    })  # fmt: skip
    by_score, by_name = (
        cvstats.strengths(battles, prompt="prompt", models=["a", "b"], score=score)
        for score in ("score", "winner")
    )
    assert np.allclose(
        by_score.cvci.interval()["estimate"], by_name.cvci.interval()["estimate"], rtol=1e-12
    )


def test_the_target_of_a_difference_of_metrics_with_a_target_is_named_after_the_metric():
    table = predictions().assign(sex=np.where(np.arange(200) % 2, "f", "m"))
    losses = cvstats.losses(
        table.set_index("sex", append=True), truth="y", prediction="a", loss="calibration_slope",
        by="sex",
    )  # fmt: skip
    words = " ".join(str(losses.cvci.contrast(by="sex", between=("f", "m")).cvci.summary()).split())
    assert "difference between groups in the average calibration slope of" in words
    assert "error" not in words
