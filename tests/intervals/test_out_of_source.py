"""Intervals from sources left out: the oracle, folds that are sources, identities."""

import math
import statistics

import numpy as np
import oracle_sources as exactly
import pandas as pd
import pytest
import xarray as xr
from grouped_logs import LIMITS, LOGS, log_of, random_rows
from rows import multi_index, only_row
from scipy import stats
from strategies import ROADS

import cvstats
from cvstats import LogError


@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize(
    ("target", "variance"),
    [("new_source", "theta_b"), ("these_sources", "theta_a"), ("these_sources", "theta_b")],
)
def test_out_of_source_against_the_oracle(sizes, repetitions, target, variance):
    rows = random_rows(sizes, 5, repetitions)
    ours = cvstats.out_of_source(log_of(rows), target=target, variance=variance, alpha=0.1)
    exact = exactly.out_of_source(rows, target, variance, alpha=0.1)
    for name in LIMITS:
        assert only_row(ours)[name] == pytest.approx(float(getattr(exact, name)), rel=1e-12), name
    assert only_row(ours)["n_sources"] == len(sizes)
    assert only_row(ours)["n_points"] == sum(sizes)
    assert (only_row(ours)["smallest"], only_row(ours)["largest"]) == (min(sizes), max(sizes))
    assert ("df" in only_row(ours)) == (target == "new_source")
    assert ("few sources" in only_row(ours)["caution"]) == (target == "new_source")
    assert ("sources as folds" in only_row(ours)["caution"]) == (target == "these_sources")
    assert ours.attrs["target"].startswith(
        "mean over these sources" if "these" in target else "expected loss, averaged over new"
    )


@pytest.mark.parametrize("repetitions", [1, 3])
def test_one_new_source_by_its_formula(repetitions):
    rows = random_rows((3, 7, 4, 5), 9, repetitions)
    means = [
        statistics.mean(row.loss for row in rows if row.source == name)
        for name in sorted({row.source for row in rows})
    ]
    found = only_row(log_of(rows).cvci.out_of_source(interval="prediction", alpha=0.1))
    reach = stats.t.isf(0.05, 3) * statistics.stdev(means) * math.sqrt(1 + 1 / 4)
    middle = statistics.mean(means)
    assert found["lower"] == pytest.approx(middle - reach, rel=1e-12)
    assert found["upper"] == pytest.approx(middle + reach, rel=1e-12)


def test_one_new_source_is_a_question_of_its_own():
    """Most schools lie outside the interval for the mean over schools."""
    log = log_of(random_rows((6,) * 40, 3))
    each = log.groupby("source").mean()
    mean, one = (log.cvci.out_of_source(interval=kind) for kind in ("mean", "prediction"))

    def inside(result):
        row = only_row(result)
        return each.between(row["lower"], row["upper"]).mean()

    assert inside(mean) < 0.5 < 0.9 <= inside(one)
    assert one.attrs["target"].startswith("mean loss on one new source from the same population")
    assert "normal distribution" in one.attrs["guarantee"]
    assert "averaged over new sources" in mean.attrs["target"]
    assert (mean.attrs["interval"], one.attrs["interval"]) == ("mean", "prediction")
    gaps = pd.DataFrame({"a": log, "b": log**2}).cvci.difference()
    assert (
        "normal distribution" in gaps.cvci.out_of_source(interval="prediction").attrs["guarantee"]
    )


def test_one_new_source_is_refused_where_it_is_not_the_question():
    log = log_of(random_rows((3, 4, 5), 7))
    with pytest.raises(cvstats.LogError, match="is for one new source, but target='these_sou"):
        log.cvci.out_of_source(interval="prediction", target="these_sources")
    both = pd.DataFrame({"a": log, "b": log**2})
    with pytest.raises(cvstats.LogError, match=r"without a corresponding test\. Use 'mean', or"):
        both.cvci.compare(method="out_of_source", options={"interval": "prediction"})


def test_a_source_of_one_point_has_a_mean():
    log = log_of(random_rows((1, 4, 3), 7))
    assert cvstats.out_of_source(log).attrs["smallest"] == 1
    with pytest.raises(cvstats.LogError, match=r"source 's0' has one.*target='new_source'"):
        cvstats.out_of_source(log, target="these_sources")
    with pytest.raises(cvstats.LogError, match="at least two points per source"):
        cvstats.source_estimators(log)


def firms(loss="absolute_error", n_sources=5):
    """Losses that cannot be negative, of sources that differ much."""
    rng = np.random.default_rng(2)
    source = np.repeat(range(n_sources), 20)
    values = np.abs(rng.normal(size=len(source))) * 10.0 ** (source % 3)
    index = multi_index(source=source, point=range(len(source)))
    log = pd.DataFrame({"a": values, "b": values[::-1]}, index)
    log.attrs["loss"] = loss
    return log


def limits_of(result):
    result = result.compute() if isinstance(result, xr.Dataset) else result
    return np.array([result["lower"], result["upper"]])


@pytest.mark.parametrize("road", ROADS)
def test_a_prediction_of_absolute_errors_ends_at_zero(road):
    log = firms()
    open_ended = limits_of(firms("profit").cvci.out_of_source(interval="prediction"))
    assert (open_ended[0] < 0).all()
    found = limits_of(cvstats.out_of_source(ROADS[road](log), interval="prediction"))
    np.testing.assert_array_equal(found[0], 0.0)
    np.testing.assert_allclose(found[1], open_ended[1])


def test_a_prediction_of_errors_ends_at_one():
    rng = np.random.default_rng(0)
    source = np.repeat(range(4), 25)
    wrong = (rng.random(100) < np.array([0.1, 0.95, 0.2, 0.9])[source]).astype(float)
    index = multi_index(source=source, point=range(100))
    found = limits_of(pd.DataFrame({"a": wrong}, index).cvci.out_of_source(interval="prediction"))
    assert found.ravel().tolist() == [0.0, 1.0]
    gaps = firms().cvci.difference()
    assert (limits_of(gaps.cvci.out_of_source(interval="prediction"))[0] < 0).all()


def grouped(log, k=5):
    """Put whole sources into folds."""
    fold = log.index.get_level_values("source") % k
    return log.set_index(fold.rename("fold"), append=True).reorder_levels([2, 0, 1])


@pytest.mark.parametrize("road", ROADS)
def test_one_new_source_from_folds_of_whole_sources(road):
    log = firms(n_sources=12)
    alone = limits_of(log.cvci.out_of_source(interval="prediction"))
    folds = grouped(log)
    assert folds.cvci.interval().attrs["method"] == "clustered"
    found = cvstats.clustered(ROADS[road](folds), interval="prediction")
    np.testing.assert_allclose(limits_of(found), alone)
    assert found.attrs["target"].startswith("mean loss on one new source")


def test_one_new_source_needs_sources_that_were_left_out():
    log = firms()
    spread = log.set_index(pd.Index(np.arange(len(log)) % 5, name="fold"), append=True)
    with pytest.raises(LogError, match="labels of 'source' that occur in several folds"):
        spread.cvci.clustered(interval="prediction")
    with pytest.raises(LogError, match="is for one new cluster, but by= names two levels"):
        log.cvci.clustered(by=("source", "point"), interval="prediction")
