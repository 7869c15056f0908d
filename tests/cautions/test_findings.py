"""Diagnostics: each code is told where it should be, with its number, and not elsewhere."""

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
from calls import refuses
from flagged_logs import (
    FINDINGS,
    SOUND,
    bootstrap_log,
    by_source,
    drifting,
    k_fold,
    labels,
    near_models,
    one_partition,
    splits,
    turned_round,
    with_outlier,
    zero_one,
)
from rows import multi_index
from scipy import stats
from together import together

import cvstats
from cvstats.core.cautions import Caution
from cvstats.diagnostics import CHECKS, drift, trend_p_value
from cvstats.facts import LogFacts
from cvstats.log.loss_checks import mark_shapes, measure_shapes, sample_rows
from cvstats.log.read import read

DOCS = Path(__file__).parents[2] / "docs"
rng = np.random.default_rng(7)


def found(losses):
    table = cvstats.diagnose(losses)
    assert list(table.columns) == ["code", "finding", "model", "value", "advice"]
    assert table["code"].is_monotonic_increasing
    for row in table.to_dict("records"):
        assert row["advice"].startswith(CHECKS[row["code"]].advice)
        assert row["finding"][0] not in " "
    return table.set_index("code")


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
    told = losses.cvci.compare(method="wald")["caution"]
    assert told.tolist() == ["unstable difference", "unstable difference", ""]
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
    (row,) = one_partition().cvci.diagnose().itertuples()
    assert row.code == "CVS024"
    assert row.finding.endswith(
        "may depend on the training points about as much as on the test points"
    )


@together(FINDINGS)
def test_each_code_is_told_with_its_number(code):
    losses, value, words = FINDINGS[code]
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


@together(sorted(FINDINGS.keys() - OF_ROWS - OF_POINTS))
def test_moments_have_the_findings_of_the_log(code):
    losses = FINDINGS[code][0]
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
    assert list(FINDINGS) == list(CHECKS)
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
        assert check.caution is None or f"`{check.caution.label}`" in cautions
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
    for unit in (1, 1e-6, 1e6):
        assert measure_shapes(unit * tail).tail_index == pytest.approx(hill, rel=1e-12)
    few = np.repeat([2.0, -2.0, 0.0], [50, 50, 4900])  # the top 2% of 5000, and no others
    assert measure_shapes(few).tail_index == np.inf
    losses, *_ = FINDINGS["CVS017"]
    runs = losses.groupby(level="repetition")
    ratio = runs.mean().std() / np.sqrt((runs.var(ddof=0) / runs.size()).mean())
    assert found(losses).loc["CVS017", "value"] == pytest.approx(ratio)


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
    table = found(pd.Series(losses + 3, multi_index(fold=np.repeat(range(4), 17), point=range(68))))
    assert ("CVS013" in table.index) == reported


def of_folds(*sizes):
    index = [np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))]
    values = np.random.default_rng(2).uniform(size=sum(sizes))
    return pd.Series(values, pd.MultiIndex.from_arrays(index, names=["fold", "point"]))


def similar(log):
    return log.to_frame("a").assign(b=log + (np.arange(len(log)) % 2 - 0.5) / 100)


def copied(pairs, n=200, apart=0, copies=2):
    """Points whose losses are those of another point of their fold, or of another fold."""
    losses = np.random.default_rng(4).uniform(size=(n, 2))
    for fold in range(pairs):
        losses[fold : fold + 10 * copies : 10] = losses[fold]
    for point in range(150, 150 + 2 * apart, 2):
        losses[point] = losses[point + 1]
    return pd.DataFrame(losses, multi_index(fold=np.arange(n) % 10, point=np.arange(n)), ["a", "b"])


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
    ("CVS009", 10): lambda n: zero_one(200, n),
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
    ("CVS024", 30): lambda n: similar(k_fold(n)),
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
    twins = both.assign_coords(lead=[0, 1]).where(lambda log: log["lead"] == 0)
    assert "CVS019" in found(xr.concat([twins, twins], dim="model")).index


def test_enough_of_everything_is_not_told():
    assert "CVS014" not in found(by_source(3)).index  # its folds are sources
    assert "CVS020" not in found(by_source(12)).index
    assert "CVS020" in found(by_source(12, folds=2)).index
    losses = pd.Series(np.r_[np.ones(100), np.zeros(100)], k_fold(200).index)
    assert found(losses).empty


def test_bootstrap_samples_and_other_layouts():
    draw = np.random.default_rng(0)
    count = draw.poisson(1, (20, 60))
    count[0] = 1
    index = multi_index(
        repetition=np.repeat(np.arange(20), 60),
        point=np.tile(np.arange(60), 20),
        count=count.reshape(-1),
    )
    losses = pd.Series(draw.uniform(size=1200), index)
    table = found(losses)
    assert table.loc["CVS025", "value"] == 19  # repetition 0 is the fit to the sample itself
    table = found(losses.rename_axis(index={"repetition": "sample"}))
    assert "If 'sample' numbers the bootstrap samples, rename" in table.loc["CVS004", "finding"]
    assert "CVS025" not in table.index  # nothing is known about their number


def test_what_is_left_when_losses_are_missing():
    losses = SOUND.copy()
    losses[:] = np.nan
    assert list(found(losses).index) == ["CVS001", "CVS002"]


def test_what_is_no_container_is_refused():
    refuses("is not a loss log", cvstats.diagnose, [1.0, 2.0])
    refuses("lazy", cvstats.diagnose, SOUND.to_xarray().chunk(point=100))


def test_hits_are_told_by_all_models_and_scores_by_their_names():
    draw = np.random.default_rng(3)
    index = k_fold(200).index
    hits = pd.DataFrame({"good": draw.random(200) < 0.9, "bad": draw.random(200) < 0.7}, index)
    assert found(hits * 1.0).loc["CVS022", "model"].tolist() == ["good", "bad"]
    assert "scores instead of losses" in (hits * 1.0).cvci.summary().cautions
    errors = pd.DataFrame({"good": 1.0 - hits["good"], "chance": np.arange(200) % 2.0})
    assert "CVS022" not in found(errors).index
    for name in ("accuracy", "Test_AUC", "R2", "roc auc", "hits"):
        for unit in (1, 100):  # with means above and below 1
            named = (k_fold() / unit).rename(name)
            assert found(named).loc["CVS022", "finding"][:15] == "losses named li"
    for name in ("brier_score", "scored", "loss", 3, None):
        assert "CVS022" not in found(k_fold().rename(name)).index
    assert "CVS022" not in found(-k_fold().abs().rename("accuracy")).index
    folds = pd.RangeIndex(10, name="fold")
    accuracies = pd.DataFrame({"good": 0.8 + 0.1 * draw.random(10), "bad": 0.7}, folds)
    assert found(accuracies).loc["CVS022", "finding"].str.startswith("values of splits").all()
    assert "scores instead of losses" in accuracies.cvci.summary().cautions
    assert "CVS022" not in found(accuracies - 0.5).index
    assert "CVS022" not in found(accuracies.rename_axis("point")).index
    predictions = pd.DataFrame({"y_true": hits["good"] * 1.0, "score": draw.random(200)}, index)
    briers = cvstats.losses(predictions, prediction="score", loss="brier")
    assert "CVS022" not in found(briers).index
    assert "are these scores" not in str(briers.cvci.summary())


def test_fold_means_are_told_and_no_points():
    means = SOUND.xs(0, level="repetition").groupby("fold").mean()
    assert found(means).loc["CVS023", "value"] == 10
    for method, told in (("wald", True), ("corrected_t", True), ("cv_t", False)):
        caution = cvstats.interval(means, method=method)["caution"].item()
        assert ("one loss per split" in caution) == told, method
    means.attrs["holds"] = "scores"
    assert "CVS023" not in found(means).index


@pytest.mark.parametrize("container", [pd.Series, xr.DataArray, lambda x: xr.DataArray(x).chunk(5)])
def test_rows_without_labels_may_be_scores_of_folds(container):
    """Ten numbers from cross_val_score were read as ten points without a word."""
    accuracy, words = np.linspace(0.9, 0.99, 10), "one loss per split"
    assert words in cautions_of(container(accuracy))
    assert words in cautions_of(container(accuracy[:2]))
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
    index = multi_index(fold=folds, point=range(60))
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
        marked = labels(cvstats.interval(one))
        assert ("heavy tails" in marked) == ("CVS005" in codes)
        assert ("skewed" in marked) == ("CVS007" in codes)
