"""Labels of people and of a judge: the reference, alignment, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import only_row
from scipy import stats

from cvstats import LogError, cautions, prediction_powered

CASES = json.loads((Path(__file__).parents[1] / "reference" / "sequences.json").read_text())
(CASE,) = [case for case in CASES if case["id"] == "prediction_powered"]


def named(values, start=0):
    points = pd.RangeIndex(start, start + len(values), name="point")
    return pd.Series(np.asarray(values, dtype=float), index=points, name="model")


def reference_logs():
    y, f, u = (CASE["inputs"][name] for name in "yfu")
    return named(y), named(f), named(u, start=len(y))


def rules(n=60, others=400, agree=0.8, seed=1):
    """Labels of people and of a judge for two models, on points in random order."""
    rng = np.random.default_rng(seed)
    index = pd.Index([f"q{i}" for i in range(n + others)], name="point")
    truth = pd.DataFrame(rng.random((n + others, 2)) < [0.2, 0.4], index=index, columns=["a", "b"])
    judged = truth.where(rng.random(truth.shape) < agree, ~truth).astype(float)
    return truth.astype(float).iloc[:n], judged.iloc[:n], judged


@pytest.mark.parametrize(("name", "weight", "df"), [("lambda1", 1.0, 24), ("tuned", None, 23)])
def test_the_interval_is_that_of_the_reference_for_few_labels(name, weight, df):
    """The reference has a normal quantile, and divides the variance of 25 labels by 25."""
    _, _, u = reference_logs()
    row = only_row(prediction_powered(*reference_logs(), weight=weight))
    of_judge = row["weight"] ** 2 * u.var(ddof=0) / len(u)
    plain = np.sqrt((row["se"] ** 2 - of_judge) * 24 / 25 + of_judge)
    limits = row["estimate"] + np.array([-1, 1]) * stats.norm.isf(0.025) * plain
    assert limits == pytest.approx(CASE["outputs"][name], abs=1e-14)
    assert row["df"] == df
    assert row["upper"] - row["estimate"] == pytest.approx(stats.t.isf(0.025, df) * row["se"])


def test_the_weight_is_that_of_the_reference():
    tuned = only_row(prediction_powered(*reference_logs()))
    assert tuned["estimate"] == pytest.approx(CASE["outputs"]["tuned_estimate"], abs=1e-14)
    assert tuned["weight"] == pytest.approx(CASE["outputs"]["tuned_lambda"], abs=1e-14)
    assert tuned["caution"] == "few points"
    assert (tuned["n_points"], tuned["n_judged"]) == (25, 120)


def test_points_are_matched_by_name():
    human, judge, every = rules()
    wanted = prediction_powered(human, judge, every)
    assert list(wanted.index) == ["a", "b"]
    numbers = ["estimate", "lower", "upper", "se", "df", "weight", "human_se"]
    assert list(wanted) == [*numbers, "caution"]
    assert wanted.attrs["n_points"] == 60
    assert wanted.attrs["n_judged"] == 400  # those of people are not counted again
    mixed = prediction_powered(
        human, judge.sample(frac=1, random_state=1)[["b", "a"]],
        every.iloc[60:].sample(frac=1, random_state=2)[["b", "a"]],
    )  # fmt: skip
    pd.testing.assert_frame_equal(mixed, wanted, rtol=1e-12)
    far = prediction_powered(human + 1e6, judge + 1e6, every + 1e6)
    np.testing.assert_allclose(far["se"], wanted["se"], rtol=1e-9)
    np.testing.assert_allclose(far["estimate"] - 1e6, wanted["estimate"], atol=1e-8)


def test_arrays_datasets_and_carried_cells():
    logs = rules()
    wanted = prediction_powered(*logs)
    arrays = [xr.DataArray(log, dims=("point", "model")) for log in logs]
    found = prediction_powered(*arrays)
    datasets = prediction_powered(*(array.to_dataset("model") for array in arrays))
    cells = prediction_powered(*(
        array.expand_dims(lat=[1.0, 2.0]) * xr.DataArray([1.0, 3.0], dims="lat")
        for array in arrays
    ))  # fmt: skip
    for name in ("estimate", "lower", "upper", "se", "weight"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
        np.testing.assert_allclose(datasets[name], wanted[name], rtol=1e-12)
        np.testing.assert_allclose(cells[name].isel(lat=0), wanted[name], rtol=1e-12)
    np.testing.assert_allclose(cells["se"].isel(lat=1), 3 * wanted["se"], rtol=1e-12)
    other = arrays[2].expand_dims(lat=[1.0, 5.0])
    with pytest.raises(LogError, match="different grids along 'lat'"):
        prediction_powered(*(array.expand_dims(lat=[1.0, 2.0]) for array in arrays[:2]), other)


def test_sources_and_gaps():
    human, judge, every = (pd.concat({"s": log, "t": log}, names=["source"]) for log in rules())
    found = prediction_powered(human, judge, every)
    assert (found["caution"] == "sources ignored").all()
    advice = found.attrs["cautions"]["sources ignored"]
    assert advice.endswith("label whole sources in the next experiment.")
    assert "Leave out" not in advice
    assert human.cvci.clustered()["estimate"].notna().all()
    assert found.attrs["n_judged"] == 800
    human, judge, every = rules()
    every.iloc[70, 0] = np.nan
    human.iloc[3, 1] = np.nan
    refuses("NaN", prediction_powered, human, judge, every)
    found = prediction_powered(human, judge, every, missing="drop")
    assert (found.attrs["n_points"], found.attrs["n_judged"]) == (59, 399)


def test_skewed_residuals_are_flagged():
    """40 lognormal ratings: 86% of 800 intervals covered, and 85% with 3 errors of 100."""
    rng = np.random.default_rng(3)
    ratings = np.exp(rng.normal(size=(440, 1)) * [1.5, 0.1])
    truth = pd.DataFrame(ratings, pd.RangeIndex(440, name="point"), columns=["a", "b"])
    logs = truth.iloc[:40], truth.iloc[:40] * rng.uniform(0.5, 1.5, (40, 2)), truth
    found = prediction_powered(*logs)
    assert list(found["caution"]) == ["skewed", ""]
    assert found.attrs["cautions"]["skewed"].endswith("Have people label more points.")
    arrays = [log.to_xarray().to_dataarray("model") for log in logs]
    assert list(cautions(prediction_powered(*arrays)).values) == ["skewed", ""]
    errors = (np.arange(500) % 34 == 0) * 1.0
    judged = np.where(np.arange(500) % 5 == 1, 1 - errors, errors)
    found = prediction_powered(named(errors[:100]), named(judged[:100]), named(judged))
    assert only_row(found)["caution"] == "skewed"


def test_what_is_refused():
    human, judge, every = rules()
    refuses("only the first log has point='q59'", prediction_powered, human, judge.iloc[:-1], every)
    refuses("only the points that people labeled", prediction_powered, human, judge, judge)
    with pytest.raises(LogError, match="judge=None is not a loss log"):  # nor is a model of human
        prediction_powered(human, None, every)
    refuses("different models", prediction_powered, human, judge, every.rename(columns={"a": "z"}))
    refuses("weight=2 is out of range", prediction_powered, human, judge, every, weight=2)
    refuses("alpha", prediction_powered, human, judge, every, alpha=95)
    with pytest.raises(LogError, match="the points of human have no labels"):
        prediction_powered(*(log.reset_index(drop=True) for log in (human, judge, every)))
    with pytest.raises(LogError, match="the points of judge_on_all have no labels"):
        prediction_powered(human, judge, every.reset_index(drop=True))
    twice = [pd.concat({0: log, 1: log}, names=["repetition"]) for log in (human, judge, every)]
    words = r"judge has 2 labels .* Average them first: judge.groupby\('point'\).mean\(\)"
    with pytest.raises(LogError, match=words):  # was to drop the level, which drops answers
        prediction_powered(human, *twice[1:])
    refuses("human has 2 labels of the level 'repetition'", prediction_powered, *twice)
    sources = pd.concat({"s": every}, names=["source"])
    with pytest.raises(LogError, match="'source', 'point' in judge_on_all; 'point' in judge"):
        prediction_powered(human, judge, sources)
    refuses("1 point has a human label", prediction_powered, human.iloc[:1], judge.iloc[:1], every)


@pytest.mark.slow
def test_coverage_however_good_the_judge_is(capsys):
    """2,000 runs each: 0/1 losses of 20%, a judge of another error rate, 1,000 judged points."""
    rows = {}
    runs, many = 2000, 1000
    for n in (30, 50, 100, 200):
        for agree in (0.95, 0.8, 0.5):
            rng = np.random.default_rng([n, int(100 * agree)])
            truth = rng.random((n + many, runs)) < 0.2
            judged = np.where(rng.random(truth.shape) < agree, truth, ~truth).astype(np.float32)
            index = pd.RangeIndex(n + many, name="point")
            every = pd.DataFrame(judged, index=index)
            human = pd.DataFrame(truth[:n].astype(np.float32), index=index[:n])
            for name, weight in (("tuned", None), ("weight 1", 1.0)):
                found = prediction_powered(human, every.iloc[:n], every, weight=weight)
                covered = (found["lower"] <= 0.2) & (found["upper"] >= 0.2)
                rows[n, agree, name] = {
                    "covers": covered.mean(),
                    "width": (found["se"] / found["human_se"]).median(),
                }
    table = pd.DataFrame(rows).T
    with capsys.disabled():
        print(f"\nmean of 0/1 labels of people helped by a judge, {runs:,} runs")
        print(table.round(3).unstack().to_string())
    tuned = table.xs("tuned", level=2)
    assert (tuned["covers"] > 0.85).all()
    assert (tuned["covers"].drop(0.95, level=1) > 0.92).all()
    assert (tuned.loc[200, "covers"] > 0.93).all()
    assert (tuned["width"] <= 1.01).all()
    assert (tuned["width"].xs(0.95, level=1) < 0.75).all()
