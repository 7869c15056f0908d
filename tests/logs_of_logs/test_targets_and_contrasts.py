"""Metrics with a target in contrasts and verdicts, and winners that are called as a column is."""

import numpy as np
import pandas as pd
import pytest
from rows import multi_index

import cvstats
from cvstats import LogError


def predictions(n=200):
    rng = np.random.default_rng(0)
    index = multi_index(point=np.arange(n), fold=np.arange(n) % 5)
    columns = {"y": rng.integers(0, 2, n), "a": rng.uniform(0.1, 0.9, n)}
    return pd.DataFrame({**columns, "b": rng.uniform(0.1, 0.9, n)}, index)


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


def test_the_target_of_a_difference_of_metrics_with_a_target_is_named_after_the_metric():
    table = predictions().assign(sex=np.where(np.arange(200) % 2, "f", "m"))
    losses = cvstats.losses(
        table.set_index("sex", append=True), truth="y", prediction="a", loss="calibration_slope",
        by="sex",
    )  # fmt: skip
    words = " ".join(str(losses.cvci.contrast(by="sex", between=("f", "m")).cvci.summary()).split())
    assert "difference between groups in the average calibration slope of" in words
    assert "error" not in words
