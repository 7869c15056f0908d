"""Diagnostics: each code is told where it should be, with its number, and not elsewhere."""

from __future__ import annotations

import math
import re
import statistics
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats.core.cautions import Caution
from cvstats.diagnostics import CHECKS, drift, trend_p_value
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.log.checks import mark_shapes, measure_shapes, sample_rows
from cvstats.log.read import read

DOCS = Path(__file__).parents[1] / "docs"
rng = np.random.default_rng(7)


def k_fold(n=300, k=10, repetitions=1, losses=None, seed=0):
    """A K-fold log, its points in random folds of nearly equal size."""
    draw = np.random.default_rng(seed)
    parts = []
    for r in range(repetitions):
        folds = draw.permutation(np.arange(n) % k)
        parts.append(pd.MultiIndex.from_arrays(
            [np.full(n, r), folds, np.arange(n)], names=["repetition", "fold", "point"]
        ))  # fmt: skip
    index = parts[0].append(parts[1:])
    if losses is None:
        losses = np.tile(draw.uniform(1, 2, n), repetitions) + draw.normal(0, 0.01, len(index))
    return pd.Series(np.asarray(losses, dtype=float), index, name="model")


def found(losses):
    table = cvstats.diagnose(losses)
    assert list(table.columns) == ["code", "finding", "model", "value", "advice"]
    assert table["code"].is_monotonic_increasing
    for row in table.to_dict("records"):
        assert row["advice"].startswith(CHECKS[row["code"]].advice)
        assert row["finding"][0] not in " "
    return table.set_index("code")


SOUND = k_fold(repetitions=5)


def with_outlier():
    losses = SOUND.copy()
    losses.iloc[:8] = 50.0
    return losses


def by_source(sources, folds=None, n=40):
    label = np.repeat(np.arange(sources), n)
    index = [label, np.arange(len(label))]
    names = ["source", "point"]
    if folds is not None:
        index, names = [np.arange(len(label)) % folds, *index], ["fold", *names]
    return pd.Series(
        np.random.default_rng(3).uniform(size=len(label)),
        pd.MultiIndex.from_arrays(index, names=names),
    )


def splits(repetitions, n=100, size=20, level="repetition"):
    draw = np.random.default_rng(5)
    points = np.concatenate([draw.choice(n, size, replace=False) for _ in range(repetitions)])
    index = [np.repeat(np.arange(repetitions), size), points]
    return pd.Series(
        draw.uniform(size=len(points)), pd.MultiIndex.from_arrays(index, names=[level, "point"])
    )


def test_a_sound_log_has_no_findings():
    assert cvstats.diagnose(SOUND).empty
    log = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(log, prediction=["random_forest", "gradient_boosting"])
    assert losses.cvci.diagnose().empty
    assert losses.to_xarray().cvci.diagnose().empty


def test_differences_are_examined_besides_models():
    log = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(log, prediction=log.attrs["models"])
    (row,) = losses.cvci.diagnose().itertuples()
    assert row.code == "CVS024"
    assert "between ridge and random_forest, depend on the training points" in row.finding
    assert row.finding.startswith("2 of the 3 differences, such as the one between")
    labels = losses.cvci.compare(method="wald")["caution"]
    assert labels.tolist() == ["unstable difference", "unstable difference", ""]
    assert row.value == 2


def test_differences_are_examined_by_the_rule_of_their_label():
    """Seeds average out: the means of repetitions differ by .3 to .7, and the label is rare."""
    rng, labelled = np.random.default_rng(1), 0
    for _ in range(10):
        log = k_fold(200, 10, 5, losses=np.zeros(1000)).to_frame("a")
        points = np.tile(rng.normal(size=(200, 2)), (5, 1))  # refits add noise of each point
        log = log.assign(a=1 + points[:, 0] + rng.normal(size=1000), b=1 + rng.normal(size=1000))
        log["b"] += points[:, 0]
        label = "unstable difference" in log.cvci.compare(method="wald")["caution"].iloc[0]
        assert ("CVS024" in set(log.cvci.diagnose()["code"])) == label
        labelled += label
    assert labelled <= 3
    once = k_fold(200, losses=rng.normal(10, 1, 200)).to_frame("a")
    once["b"] = once["a"] + rng.normal(0, 0.1, 200)
    assert "CVS024" in set(once.cvci.diagnose()["code"])


def missing():
    losses = SOUND.copy()
    losses.iloc[[3, 9]] = [np.nan, np.inf]
    return losses


def incomplete():
    return SOUND[SOUND.index.get_level_values("point") != SOUND.index.get_level_values(0) + 5]


def unequal_folds():
    folds = np.repeat(np.arange(6), [10, 21, 21, 21, 21, 21])
    index = pd.MultiIndex.from_arrays([folds, np.arange(115)], names=["fold", "point"])
    return pd.Series(rng.uniform(size=115), index)


def unequal_variances():
    losses = k_fold()
    wild = losses.index.get_level_values("fold") == 3
    losses[wild] = np.where(np.arange(wild.sum()) % 2, 0.2, 2.8)
    return losses


def disagreeing():
    losses = k_fold(repetitions=4)
    return losses + 0.05 * (losses.index.get_level_values(0) % 2)


def drifting():
    losses = k_fold(repetitions=8)
    return losses + 0.001 * losses.index.get_level_values(0)


def differing():
    """Two models whose difference has another sign in every second repetition."""
    losses = k_fold(repetitions=4)
    sign = 1 - 2 * (losses.index.get_level_values(0) % 2)
    return pd.DataFrame({"a": losses + 0.001 * sign * losses, "b": losses, "c": losses + 1})


def bootstrap_log(samples, n=60):
    """The nearest neighbour of noise, which interpolates: no error on points in bag."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=n), draw.normal(size=n)
    counts = np.vstack([np.ones(n, int), draw.multinomial(n, np.full(n, 1 / n), samples)])
    gaps = np.abs(x - x[:, None])
    nearest = [np.where(drawn > 0, gaps, np.inf).argmin(axis=1) for drawn in counts]
    losses = np.array([(y[near] - y) ** 2 for near in nearest])
    index = pd.MultiIndex.from_product(
        [range(samples + 1), range(n)], names=["repetition", "point"]
    )
    table = pd.DataFrame({"count": counts.ravel(), "loss": losses.ravel()}, index)
    return table.set_index("count", append=True)["loss"]


def dated(correlation, n=300, seed=0, **text):
    """Squared errors of a series whose errors depend on those of the day before."""
    draw = np.random.default_rng(seed)
    errors = np.zeros(n)
    for day in range(1, n):
        errors[day] = correlation * errors[day - 1] + draw.normal()
    dates = pd.date_range("2020-01-01", periods=n)
    days = dates.strftime("%Y-%m-%d") if text else dates
    index = pd.MultiIndex.from_arrays([draw.permutation(n) % 5, days], names=["fold", "point"])
    return pd.Series(np.abs(errors), index).iloc[draw.permutation(n)]


def stored_twice(n=100, repetitions=3, decimals=9, copies=2):
    """Each point under two ids, tested by the mean and a line."""
    draw = np.random.default_rng(0)
    x = np.tile(draw.normal(size=n), copies)
    y = np.tile(draw.normal(size=n), copies).round(decimals)
    if copies == 1:
        x, y = draw.normal(size=2 * n), draw.normal(size=2 * n).round(decimals)
    parts = []
    for r in range(repetitions):
        fold = draw.permutation(2 * n) % 10
        losses = np.empty((2 * n, 2))
        for k in range(10):
            test, train = fold == k, fold != k
            line = np.polyfit(x[train], y[train], 1)
            losses[test, 0] = (y[test] - y[train].mean()) ** 2
            losses[test, 1] = (y[test] - np.polyval(line, x[test])) ** 2
        index = [np.full(2 * n, r), fold, np.arange(2 * n)]
        parts.append(
            pd.DataFrame(losses, pd.MultiIndex.from_arrays(index), columns=["mean", "line"])
        )
    return pd.concat(parts).rename_axis(["repetition", "fold", "point"])


def near_models(m, n=200):
    """Models that are equally good, on one test set."""
    losses = np.random.default_rng(0).uniform(1, 2, (n, m))
    return pd.DataFrame(losses, pd.RangeIndex(n, name="point"))


TWINS = pd.DataFrame({"a": SOUND, "b": SOUND + 1, "c": SOUND})
FEW_ERRORS = pd.Series(np.r_[np.ones(4), np.zeros(196)], k_fold(200).index)


def turned_round():
    index = pd.MultiIndex.from_arrays([range(40), np.arange(40) % 4], names=["point", "fold"])
    truth = np.arange(40) // 4 % 2
    return cvstats.losses(pd.DataFrame({"y_true": truth, "y_pred": -truth}, index), loss="auc")


def censored():
    times = np.random.default_rng(2).exponential(size=120)
    table = pd.DataFrame({"y_true": times, "y_pred": -times, "event": np.arange(120) % 3 > 0})
    return cvstats.losses(table.rename_axis("point"), loss="concordance", event="event")


CASES = {
    "CVS001": (pd.concat([SOUND, SOUND]), None, "appears twice"),
    "CVS002": (missing(), 2, "2 losses are missing or infinite"),
    "CVS003": (incomplete(), 1 / 300, "tests only 299 of the 300 points"),
    "CVS004": (SOUND.droplevel(["fold", "point"]), None, "no level 'point'"),
    "CVS005": (with_outlier(), None, "of the sum of squares"),
    "CVS006": (k_fold(2000, losses=np.random.default_rng(1).pareto(1.2, 2000)), None, "power law"),
    "CVS007": (with_outlier(), None, "the log has only 300"),
    "CVS008": (k_fold(25, 5), 25, "only 25 points"),
    "CVS009": (FEW_ERRORS, 4, "for only 4 points"),
    "CVS010": (SOUND * 0 + 2, 2, "every loss is 2"),
    "CVS011": (-SOUND, 1, "are these scores?"),
    "CVS012": (unequal_folds(), 2.1, "largest fold has 21 points and the smallest 10"),
    "CVS013": (unequal_variances(), None, "times that of the median fold"),
    "CVS014": (k_fold(k=3), 3, "trained on only 67% of the points"),
    "CVS015": (by_source(4), 4, "only 4 sources"),
    "CVS016": (splits(6), 6, "only 6 random splits"),
    "CVS017": (disagreeing(), None, "standard errors"),
    "CVS018": (drifting(), None, "drifts over the repetitions"),
    "CVS019": (TWINS, 1, "identical to that of a"),
    "CVS020": (by_source(12, folds=5), 12, "12 of 12 sources occur in several folds"),
    "CVS021": (
        SOUND.rename_axis(index={"fold": "cv_fold"}),
        10,
        "If it contains the folds, type log.rename_axis(index={'cv_fold': 'fold'})",
    ),
    "CVS022": (1 - FEW_ERRORS, 0.98, "are these scores? Smaller losses are better, so"),
    "CVS023": (SOUND.groupby(["repetition", "fold"]).mean(), 50, "one loss for each of 50 splits"),
    "CVS024": (differing(), 3, "the one between a and b, depend on the training points"),
    "CVS025": (bootstrap_log(19), 19, "only 19 bootstrap samples"),
    "CVS026": (bootstrap_log(120), 0, "training points is only 0% of the out-of-bag error"),
    "CVS027": (dated(0.6), None, "losses on successive dates have a correlation of 0."),
    "CVS028": (
        stored_twice(),
        None,
        "exactly the same losses as one other evaluation in their fold",
    ),
    "CVS029": (
        near_models(5),
        5,
        "the errors of 5 models, including this one, are within two standard errors of the "
        "smallest",
    ),
    "CVS030": (turned_round(), 0.0, "do larger predictions mean the negative class?"),
    "CVS031": (censored(), None, "some times are censored"),
}


@pytest.mark.parametrize("code", CASES)
def test_each_code_is_told_with_its_number(code):
    losses, value, words = CASES[code]
    table = found(losses)
    assert code in table.index
    row = table.loc[code]
    assert words in row["finding"]
    if value is not None:
        assert row["value"] == pytest.approx(value)
    elif code in ("CVS001", "CVS004"):
        assert math.isnan(row["value"])


OF_ROWS = {"CVS001", "CVS002", "CVS004", "CVS025", "CVS026", "CVS030", "CVS031"}
"""Codes of logs that have no moments, or whose moments come without losses."""
OF_POINTS = {"CVS003", "CVS008", "CVS016", "CVS021"}
"""Codes that need the number of points, or a level, which moments do not keep."""


@pytest.mark.parametrize("code", sorted(CASES.keys() - OF_ROWS - OF_POINTS))
def test_moments_have_the_findings_of_the_log(code):
    losses = CASES[code][0]
    pairs = losses.ndim > 1 and losses.shape[1] > 1
    ours = cvstats.Moments.of_log(losses, pairs=pairs).diagnose()
    theirs = losses.cvci.diagnose()
    names = ["code", "finding", "model"]
    assert ours[names].to_numpy().tolist() == theirs[names].to_numpy().tolist()
    np.testing.assert_allclose(ours["value"], theirs["value"], rtol=1e-9)


def test_a_sample_of_a_long_log_is_examined(monkeypatch):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", lambda *_: "")
    rng = np.random.default_rng(8)
    rare = np.zeros(90_000)
    rare[rng.permutation(90_000)[:5]] = 1  # none of them need be in the sample
    log = pd.DataFrame({"rare": rare, "wild": rng.pareto(1.2, 90_000)}, k_fold(90_000).index)
    parts = [cvstats.Moments.of_log(part, pairs=True) for part in (log[:50_000], log[50_000:])]
    ours, theirs = sum(parts).diagnose(), log.cvci.diagnose()
    assert ours["code"].tolist() == theirs["code"].tolist() == ["CVS005", "CVS006", "CVS009"]
    assert ours.loc[2, "value"] == pytest.approx(5)
    page = sum(parts).report()
    assert "outliers, skewness and dates were checked in a sample of 25,000 evaluations" in page


def test_a_question_does_not_end_with_a_period():
    text = " ".join(str(cvstats.diagnose(turned_round())).split())
    assert "mean the negative class? Reverse the predictions:" in text


def test_two_folds_of_which_one_repetition_lacks_points():
    index = SOUND.index.to_frame(index=False)
    two = SOUND.set_axis(pd.MultiIndex.from_frame(index.assign(fold=index["fold"] % 2)))
    lacking = two[~((index["repetition"] == 1) & (index["point"] < 3)).to_numpy()]
    assert "tests only 297 of the 300 points" in found(lacking).loc["CVS003", "finding"]


def test_every_code_has_a_case_and_a_row_in_the_guide():
    assert list(CASES) == list(CHECKS)
    sys.path.insert(0, str(DOCS))
    try:
        lists = import_module("method_lists")
    finally:
        sys.path.remove(str(DOCS))
    checks, cautions = lists.table_of_checks(), lists.table_of_cautions()
    assert re.findall(r"^\| `(CVS\d{3})`", checks, re.MULTILINE) == list(CHECKS)
    assert {line.count(" | ") for line in checks.splitlines() if "`CVS" in line} == {5}
    assert re.findall(r"^\| `([^`]*)`", cautions, re.MULTILINE) == sorted(
        caution.label for caution in Caution
    )
    for check in CHECKS.values():
        assert check.advice in checks
        assert check.find.__doc__.startswith("Report ")
        assert check.label == "" or f"`{check.label}`" in cautions
    guide = (DOCS / "guide" / "diagnostics.md").read_text("utf-8")
    assert "_checks.md" in guide
    assert "_cautions.md" in guide


def test_numbers_are_those_of_the_definitions():
    values = with_outlier().to_numpy()
    mean = statistics.fmean(values)
    squares = sorted(((v - mean) ** 2 for v in values), reverse=True)
    share = math.fsum(squares[:15]) / math.fsum(squares)
    assert measure_shapes(values).outlier_share == pytest.approx(share, rel=1e-12)
    assert found(with_outlier()).loc["CVS005", "value"] == pytest.approx(share, rel=1e-12)
    moments = [math.fsum((v - mean) ** k for v in values) / len(values) for k in (2, 3)]
    asked = 25 * moments[1] ** 2 / moments[0] ** 3
    assert measure_shapes(values).n_for_skewness == pytest.approx(asked, rel=1e-9)
    tail = rng.pareto(1.5, 5000)
    centre = statistics.fmean(tail)
    apart = sorted((abs(v - centre) for v in tail), reverse=True)
    hill = 100 / math.fsum(math.log(v / apart[100]) for v in apart[:100])
    assert measure_shapes(tail).tail_index == pytest.approx(hill, rel=1e-12)


def test_shapes_of_many_columns_are_those_of_each():
    columns = np.column_stack([rng.pareto(1.5, 2000), rng.normal(size=2000), np.ones(2000)])
    together = np.array(measure_shapes(columns))
    for j, column in enumerate(columns.T):
        np.testing.assert_allclose(together[:, j], measure_shapes(column), rtol=1e-12)


@pytest.mark.parametrize("size", [60, 100, 300, 999, 1200])
def test_marks_of_long_logs_are_those_of_the_shapes(size):
    usual = rng.normal(size=(size, 40))
    usual[0] = np.geomspace(5, 2 * size, 40)  # from no outlier to one that is nearly everything
    values = np.column_stack([usual, np.ones(size), rng.integers(2, size=size), usual[:, 0] * 0])
    shapes = measure_shapes(values)
    for n in (size, 25 * size - 1, 25 * size, 25 * size + 1, 10**9):
        tails = np.where(shapes.n_for_tails > n, Caution.HEAVY_TAILS, 0)
        skewed = np.where(shapes.n_for_skewness > n, Caution.SKEWED, 0)
        groups = np.stack([values, values[::-1]])
        np.testing.assert_array_equal(mark_shapes(groups, [n, n]), [tails | skewed] * 2)
    assert (shapes.n_for_skewness[:40] < 25 * size).all()
    assert np.any(shapes.n_for_tails[:40] > 25 * size) == (size >= 100)


@pytest.mark.parametrize("values", [[0, 1, 0], [1, 0, -1, 0], [-1, 0, 0], [2, 2]])
def test_losses_of_few_values_have_no_shape(values):
    shapes = measure_shapes(np.array(values, dtype=float))
    assert np.isnan([shapes.outlier_share, shapes.tail_index, shapes.n_for_skewness]).all()
    assert np.isfinite(shapes.rate) == (values == [0, 1, 0])


@pytest.mark.parametrize(("more", "reported"), [(2.9, False), (3, False), (3.1, True)])
def test_variances_of_folds_may_differ_five_times(more, reported):
    even = np.r_[0.0, np.tile([-1.0, 1.0], 8)]
    losses = np.concatenate([even, even, even * np.repeat([1, more], [9, 8]), even])
    index = pd.MultiIndex.from_arrays([np.repeat(range(4), 17), range(68)], names=["fold", "point"])
    table = found(pd.Series(losses + 3, index))
    assert ("CVS013" in table.index) == reported


def of_folds(*sizes):
    index = [np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))]
    values = np.random.default_rng(2).uniform(size=sum(sizes))
    return pd.Series(values, pd.MultiIndex.from_arrays(index, names=["fold", "point"]))


def with_errors(n):
    return pd.Series(1.0 * (np.arange(200) < n), k_fold(200).index)


def similar(log):
    return log.to_frame("a").assign(b=log + (np.arange(len(log)) % 2 - 0.5) / 100)


def copied(pairs, n=200, apart=0, copies=2):
    """Points whose losses are those of another point of their fold, or of another fold."""
    losses = np.random.default_rng(4).uniform(size=(n, 2))
    for fold in range(pairs):
        losses[fold : fold + 10 * copies : 10] = losses[fold]
    for point in range(150, 150 + 2 * apart, 2):
        losses[point] = losses[point + 1]
    index = pd.MultiIndex.from_arrays([np.arange(n) % 10, np.arange(n)], names=["fold", "point"])
    return pd.DataFrame(losses, index, ["a", "b"])


def rated(models, copies=1):
    """Ratings from 0 to 4 of the answers of some models to 120 questions."""
    ratings = np.random.default_rng(2).normal(2, 1, size=(120, models)).round().clip(0, 4)
    return pd.DataFrame(np.repeat(ratings, copies, axis=0)).rename_axis("point")


@pytest.mark.parametrize(
    ("log", "reported"),
    [(copied(5, 201), False), (copied(10, apart=1), True), (copied(10, apart=2), False),
     (copied(4, 100), False), (copied(2, copies=5), True), (copied(1, copies=10), False),
     (rated(5), False), (rated(9, copies=2), True)],
)  # fmt: skip
def test_duplicates_are_ten_and_five_percent_and_ten_times_as_many_as_elsewhere(log, reported):
    assert ("CVS028" in found(log).index) == reported


LIMITS = {
    ("CVS008", 30): lambda n: k_fold(n, 5),
    ("CVS009", 10): with_errors,
    ("CVS014", 5): lambda n: k_fold(k=n),
    ("CVS015", 30): by_source,
    ("CVS016", 10): splits,
    ("CVS023", 100): lambda n: pd.Series(np.arange(1.0 * n), pd.RangeIndex(n, name="fold")),
    ("CVS025", 100): lambda n: bootstrap_log(n, 10),
    # reported if there are as many
    ("CVS012", 21): lambda n: of_folds(10, n, 20),
    ("CVS013", 10): lambda n: of_folds(n, 20, 20) * np.repeat([1, 9, 1], [n, 20, 20]),
    ("CVS017", 3): lambda n: k_fold(repetitions=n) + np.repeat(np.arange(n) % 2, 300) / 20,
    ("CVS018", 5): lambda n: k_fold(repetitions=n) + np.repeat(np.arange(n), 300) / 100,
    ("CVS024", 100): lambda n: similar(k_fold(n)),
    ("CVS028", 5): lambda n: copied(n),
    ("CVS029", 5): near_models,
}
"""The number from which on a code is no longer reported, or is reported."""


@pytest.mark.parametrize(("code", "number"), LIMITS)
def test_a_code_is_reported_up_to_its_limit(code, number):
    make = LIMITS[code, number]
    before, there = (code in found(make(n)).index for n in (number - 1, number))
    assert (before, there) == ((False, True) if code in UPWARDS else (True, False))


UPWARDS = {"CVS012", "CVS013", "CVS017", "CVS018", "CVS024", "CVS028", "CVS029"}


def test_drift_is_the_test_of_a_slope():
    from scipy import stats

    means = rng.normal(size=12) + 0.1 * np.arange(12)
    assert trend_p_value(means) == pytest.approx(
        stats.linregress(np.arange(12), means).pvalue, rel=1e-9
    )
    assert trend_p_value(np.ones(5)) == 1
    assert trend_p_value(np.arange(5.0)) < 1e-20
    weak = drifting().droplevel("fold")
    strong = weak + 0.001 * weak.index.get_level_values(0)
    cells = xr.concat([log.to_xarray() for log in (weak, strong)], "cell")
    of_splits = splits(8) + np.repeat(np.arange(8), 20)  # their means differ anyway
    logs = cells, strong, weak, of_splits
    values = [[finding.value for finding in drift(LogFacts(log))] for log in logs]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert values[1] < values[2]
    assert not values[3]


@pytest.mark.parametrize("size", [99, 100, 999, 1000])
def test_short_logs_have_neither_outliers_nor_tails(size):
    shapes = measure_shapes(np.r_[np.arange(size - 1.0), 1e9])
    assert (shapes.outlier_share > 0) == (size >= 100)
    assert np.isfinite(shapes.tail_index) == (size >= 1000)


def test_usual_laws_are_not_suspicious():
    for values in (rng.normal(size=2000) ** 2, rng.exponential(size=2000), rng.uniform(size=2000)):
        table = found(k_fold(2000, losses=values))
        assert table.empty, table


def test_each_model_is_named_and_worst_cells_are_counted():
    frame = pd.DataFrame({"good": SOUND, "bad": with_outlier()})
    assert set(found(frame).loc["CVS005":"CVS007", "model"]) == {"bad"}
    both = xr.concat([SOUND.to_xarray(), with_outlier().to_xarray()], dim="lead")
    row = found(both).loc["CVS005"]
    assert row["finding"].endswith("in 1 of 2 cells")
    assert row["value"] == found(with_outlier()).loc["CVS005", "value"]


def test_enough_of_everything_is_not_told():
    assert "CVS014" not in found(by_source(3)).index  # its folds are sources
    assert "CVS020" not in found(by_source(12)).index
    losses = pd.Series(np.r_[np.ones(100), np.zeros(100)], k_fold(200).index)
    assert found(losses).empty


def test_bootstrap_samples_and_other_layouts():
    draw = np.random.default_rng(0)
    count = draw.poisson(1, (20, 60))
    count[0] = 1
    index = pd.MultiIndex.from_arrays(
        [np.repeat(np.arange(20), 60), np.tile(np.arange(60), 20), count.reshape(-1)],
        names=["repetition", "point", "count"],
    )
    table = found(pd.Series(draw.uniform(size=1200), index))
    assert table.loc["CVS025", "value"] == 19  # repetition 0 is the fit to the sample itself


def test_what_is_left_when_losses_are_missing():
    losses = SOUND.copy()
    losses[:] = np.nan
    assert list(found(losses).index) == ["CVS001", "CVS002"]


def test_what_is_no_container_is_refused():
    with pytest.raises(LogError, match="is not a loss log"):
        cvstats.diagnose([1.0, 2.0])
    with pytest.raises(LogError, match="lazy"):
        cvstats.diagnose(SOUND.to_xarray().chunk(point=100))


# --- what is not what it seems ----------------------------------------------------------------


def test_hits_are_told_by_all_models_and_scores_by_their_names():
    draw = np.random.default_rng(3)
    index = k_fold(200).index
    hits = pd.DataFrame({"good": draw.random(200) < 0.9, "bad": draw.random(200) < 0.7}, index)
    assert found(hits * 1.0).loc["CVS022", "model"].tolist() == ["good", "bad"]
    assert "scores instead of losses" in (hits * 1.0).cvci.summary().cautions
    errors = pd.DataFrame({"good": 1.0 - hits["good"], "chance": np.arange(200) % 2.0})
    assert "CVS022" not in found(errors).index
    for name in ("accuracy", "Test_AUC", "R2", "roc auc", "hits"):
        assert found(k_fold().rename(name)).loc["CVS022", "finding"][:15] == "losses named li"
    for name in ("brier_score", "scored", "loss", 3, None):
        assert "CVS022" not in found(k_fold().rename(name)).index
    assert "CVS022" not in found(-k_fold().abs().rename("accuracy")).index
    predictions = pd.DataFrame({"y_true": hits["good"] * 1.0, "score": draw.random(200)}, index)
    briers = cvstats.losses(predictions, prediction="score", loss="brier")
    assert "CVS022" not in found(briers).index
    assert "are these scores" not in str(briers.cvci.summary())


def test_fold_means_are_told_and_no_points():
    means = SOUND.xs(0, level="repetition").groupby("fold").mean()
    assert found(means).loc["CVS023", "value"] == 10
    means.attrs["holds"] = "scores"
    assert "CVS023" not in found(means).index


@pytest.mark.parametrize("container", [pd.Series, xr.DataArray, lambda x: xr.DataArray(x).chunk(5)])
def test_rows_without_labels_may_be_scores_of_folds(container):
    """Ten numbers from cross_val_score were read as ten points without a word."""
    accuracy, words = np.linspace(0.9, 0.99, 10), "one loss per split"
    assert words in cautions_of(container(accuracy))
    assert words not in cautions_of(container(np.ones(10)))  # answers, right or wrong
    assert words not in cautions_of(container(np.tile(accuracy, 10)))
    skewed = cautions_of(container(np.exp(np.arange(25.0))))  # and examined like points
    assert words in skewed
    assert "skewed" in skewed


def cautions_of(log):
    found = cvstats.interval(log)
    return str(cvstats.cautions(found.compute() if isinstance(found, xr.Dataset) else found))


def test_a_sample_of_evaluations_has_the_size_asked_for_and_is_evenly_spread():
    design = read(pd.Series(np.zeros(1999), name="model").rename_axis("point")).design
    rows = sample_rows(design, range(1999), 1000, dated=False)
    assert len(rows) == 1000
    assert rows[0] == 0
    assert rows[-1] >= 1997
    assert set(np.diff(rows)) == {1, 2}
    np.testing.assert_array_equal(sample_rows(design, rows, 2000, dated=False), rows)
    fewer = sample_rows(design, range(1999), 400, dated=False)
    assert (len(fewer), set(np.diff(fewer))) == (400, {4, 5})


def test_a_sample_of_dates_is_all_of_the_first_ones():
    """Correlations are those of neighbors in time, which rows far apart do not show."""
    days = np.random.default_rng(0).permutation(1999)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")
    design = read(pd.Series(0.0, pd.Index(dates, name="point"), name="model")).design
    rows = sample_rows(design, range(1999), 1000, dated=True)
    np.testing.assert_array_equal(rows, range(1999))
    for most, days_kept in ((999, 999), (400, 499)):
        rows = sample_rows(design, range(1999), most, dated=True)
        assert sorted(days[rows]) == list(range(days_kept))


def test_unequal_folds_train_on_unequal_shares():
    """The log said that each model was trained on 67% of the points."""
    folds = np.repeat([0, 1, 2], [57, 2, 1])
    index = pd.MultiIndex.from_arrays([folds, range(60)], names=["fold", "point"])
    log = pd.Series(rng.normal(size=60), index)
    assert "one model was trained on only 5% of the points" in found(log).loc["CVS014", "finding"]
    equal = log.set_axis(index.set_codes(np.arange(60) % 3, level="fold"))
    words = found(equal).loc["CVS014", "finding"]
    assert "each model was trained on only 67% of the points" in words


@pytest.mark.parametrize(
    ("loss", "expected"), [("rmse", {"CVS005", "CVS007"}), ("r2", {"CVS005"}), ("auc", set())]
)
def test_tails_and_skewness_of_metrics_are_found_where_their_cautions_are(loss, expected):
    """Influences on the AUC are large if a class is rare, which no caution is about."""
    rng = np.random.default_rng(0)
    p, size = rng.random(400), rng.standard_t(1.5, 400)
    log = pd.DataFrame({"fold": np.arange(400) % 4, "y": 1.0 * (rng.random(400) < 0.1), "p": p})
    if loss in ("rmse", "r2"):
        log["y"] = p + size
    else:
        log["p"] = 0.6 * p + 0.4 * log["y"]
        log = log.iloc[:160]
    log = log.rename_axis("point").set_index("fold", append=True)
    log = cvstats.losses(log, truth="y", prediction="p", loss=loss)
    array = xr.DataArray(log.to_numpy(), dims="point", attrs=log.attrs).assign_coords(
        {name: ("point", log.index.get_level_values(name)) for name in ("fold", "point")}
    )
    for one in (log, array, cvstats.Moments.of_log(log)):
        codes = {"CVS005", "CVS006", "CVS007"} & set(cvstats.diagnose(one)["code"])
        assert codes == expected
        marked = cvstats.interval(one)
        labels = cvstats.cautions(marked).values.ravel()[0].split(", ")
        assert ("heavy tails" in labels) == ("CVS005" in codes)
        assert ("skewed" in labels) == ("CVS007" in codes)
