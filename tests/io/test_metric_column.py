"""Tidy tables with a column that names the metric of each row: each metric is a log of its own."""

import numpy as np
import pandas as pd
import pytest
from rows import product_index

import cvstats

rng = np.random.default_rng(0)
WIDE = pd.DataFrame(
    rng.random((40, 4)),
    columns=product_index(measure=["nDCG", "RR"], system=["a", "b"]),
    index=pd.RangeIndex(40, name="query"),
)
TIDY = WIDE.stack(["measure", "system"], future_stack=True).rename("value").reset_index()
NAMES = {"point": "query", "model": "system"}


def expected(metric):
    log = WIDE[metric].rename_axis(columns="model").rename_axis(index="point")
    return log.cvci.holdout()


def check(log, turned=lambda estimate: estimate):
    found = log.cvci.holdout(by="metric")
    for metric in ("nDCG", "RR"):
        wanted = turned(expected(metric)["estimate"])
        np.testing.assert_allclose(found.loc[metric, "estimate"], wanted, rtol=1e-12)
    assert sorted(log.attrs["metric"]) == ["RR", "nDCG"]


@pytest.mark.parametrize("name", ["measure", "metric", "Metric"])
def test_metrics_in_rows_become_a_level(name):
    table = TIDY.rename(columns={"measure": name})
    check(cvstats.as_log(table, loss="value", **NAMES))
    check(cvstats.read_log(table, metric="value", **NAMES))


def test_metrics_in_rows_and_models_in_columns():
    table = WIDE.stack("measure", future_stack=True).reset_index()
    check(cvstats.read_log(table, point="query"))
    check(cvstats.as_log(table, loss=["a", "b"], point="query"))


def test_scores_of_several_metrics():
    log = cvstats.read_log(TIDY, metric="value", higher_is_better=True, **NAMES)
    check(log, lambda estimate: 1 - estimate)
    losses = {name: facts["loss"] for name, facts in log.attrs["metrics"].items()}
    assert losses == {"nDCG": "1 - nDCG", "RR": "1 - RR"}
