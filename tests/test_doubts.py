"""What the losses make doubtful appears in `caution`, and not where there is nothing to doubt."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import golden
import numpy as np
import pandas as pd
import pytest
import resampled_logs as plans
import xarray as xr
from test_diagnostics import SOUND, dated, found, k_fold, near_models, stored_twice

import cvstats
from cvstats import LogError
from cvstats.core.cautions import Caution
from cvstats.log.checks import (
    LIMIT,
    count_near_best,
    is_calendar_number,
    measure_shapes,
    rank_labels,
    read_calendar,
    residuals_of_points,
)


def labels(result):
    """All labels that occur in a result."""
    text = cvstats.cautions(result).to_numpy().astype(str).ravel()
    return {label for row in text for label in row.split(", ") if label}


def heavy(n=300, seed=1):
    return k_fold(n, losses=np.random.default_rng(seed).standard_t(3, n) ** 2)


# --- too few --------------------------------------------------------------------------------------


def of_sources(*sizes):
    return golden.by_source(sizes=sizes).cvci


def wrong(log, n):
    """The first n points of the log are errors."""
    points = log.index.get_level_values("point")
    return pd.Series(1.0 * (points.factorize(sort=True)[0] < n), log.index).cvci


def of_two_ways(sources, points):
    return golden.crossed(sources, points).cvci.clustered(by=("source", "point"))


def of_points(**columns):
    return pd.DataFrame(columns).rename_axis("point")


def judged(n, apart):
    """Labels of people for n of 200 points, and of a judge, who errs on so many of the n."""
    human, judge = np.arange(200) % 2, np.arange(200) // 2 % 2
    judge = np.where(np.arange(200) % 5, human, judge)
    judge[:n] = human[:n] ^ (np.arange(n) < apart)
    human, judge = (1.0 * of_points(model=labels)["model"] for labels in (human, judge))
    return cvstats.prediction_powered(human[:n], judge[:n], judge)


def discordant(n):
    """Two models of which one alone errs on n of 200 points."""
    points = np.arange(200)
    return of_points(a=1.0 * (points < n // 2), b=1.0 * ((points >= n // 2) & (points < n))).cvci


def scored(n):
    """The AUC of 60 points, n of them of one class."""
    scores = np.random.default_rng(0).normal(size=60)
    return cvstats.losses(of_points(y_true=np.arange(60) < n, y_pred=scores), loss="auc").cvci


def grouped(n):
    """The difference of the error rates of two groups, one of which has n errors."""
    wrong = 1.0 * ((np.arange(100) < n) | (np.arange(100) >= 80))
    log = of_points(a=wrong, group=np.arange(100) // 50).set_index("group", append=True)
    return log.cvci.contrast(by="group").cvci


ENOUGH = {
    ("few points", 30): {
        "wald": lambda n: golden.k_fold(n=n).cvci.wald(),
        "holdout": lambda n: golden.one_set().iloc[:n].cvci.holdout(),
        "refits": lambda n: golden.k_fold(n=n, repetitions=3).cvci.refit_corrected(),
        "days": lambda n: golden.one_set().iloc[:n].cvci.ordered(estimator="newey-west", lags=3),
        "sources": lambda n: of_sources(9, 9, n - 18).out_of_source(target="these_sources"),
        "smallest": lambda n: of_sources(n, 40).heterogeneity(),
        "pooled": lambda n: of_sources(9, 9, n - 18).heterogeneity(variance="pooled"),
        "models": lambda n: golden.k_fold(n=n).cvci.best_set(rng=0, n_draws=100),
        "nested": lambda n: golden.planned(partial(plans.nested_cv, n, 4, 2), 8).cvci.nested_cv(),
        "replaced": lambda n: golden.planned(
            partial(plans.replace_one, n, 3, 2), 9
        ).cvci.replace_one(),
        "judged": lambda n: judged(n, n),
    },
    ("few disagreements", 10): {"judged": lambda n: judged(50, n)},
    ("few sources", 30): {"sources": lambda n: of_sources(*[3] * n).out_of_source()},
    ("few clusters", 30): {
        "clusters": lambda n: golden.k_fold(n=2 * n, sources=n, whole=True).cvci.clustered(),
        "signs": lambda n: of_sources(*[3] * n).wild_cluster(n_draws=99, rng=0),
        "ways": lambda n: of_two_ways(n, 12),
    },
    ("very few clusters", 3): {"clusters": lambda n: of_sources(*[4] * n).clustered()},
    ("few clusters at one level", 10): {
        "sources": lambda n: of_two_ways(n, 12), "points": lambda n: of_two_ways(12, n)
    },
    ("few splits", 10): {
        "splits": lambda n: golden.planned(
            partial(plans.subsampling, np.arange(30), 10, n), 5
        ).cvci.corrected_t(train_size=20),
        "folds": lambda n: golden.k_fold(k=n).cvci.corrected_t(),
    },
    ("small folds", 20): {
        "folds": lambda n: golden.k_fold(n=2 * n, k=2).cvci.best_set(rng=0, n_draws=100)
    },
    ("few repetitions", 10): {
        "halves": lambda n: golden.planned(
            partial(plans.paired_subsampling, 24, 8, 3, n), 6
        ).cvci.conservative_z()
    },
    ("few repetitions", 25): {
        "nested": lambda n: golden.planned(partial(plans.nested_cv, 20, 4, n), 8).cvci.nested_cv()
    },
    ("few data sets", 5): {"ranks": lambda n: of_sources(*[3] * n).friedman(test="f")},
    ("few errors", 10): {
        "errors": lambda n: wrong(golden.one_set(), n).holdout(interval="wald"),
        "correct": lambda n: wrong(golden.one_set(), 36 - n).holdout(interval="wald"),
        "folds": lambda n: wrong(golden.k_fold(), n).wald(),
        "splits": lambda n: wrong(golden.k_fold(), n).corrected_t(),
        "independent": lambda n: wrong(golden.k_fold(), n).cv_t(),
        "clusters": lambda n: wrong(golden.by_source(sizes=(5,) * 8), n).clustered(),
        "left out": lambda n: wrong(golden.by_source(sizes=(5,) * 8), n).out_of_source(),
        "days": lambda n: wrong(golden.one_set(), n).ordered(estimator="newey-west"),
        "nested": lambda n: wrong(
            golden.planned(partial(plans.nested_cv, 40, 4, 2), 8), n).nested_cv(),
    },
    ("few discordant points", 25): {
        "points": lambda n: discordant(n).compare(method="tango"),
        "chi2": lambda n: discordant(n).mcnemar(test="chi2"),
    },
    ("few of a class", 10): {
        "auc": lambda n: scored(n).wald(), "groups": lambda n: grouped(n).holdout()
    },
}  # fmt: skip
"""Calls on a log with so many of something; the caution ends where there are enough."""


@pytest.mark.parametrize(
    ("label", "enough", "ask"),
    [pytest.param(*limit, ask, id=f"{limit[0]}: {name}")
     for limit, asks in ENOUGH.items() for name, ask in asks.items()],
)  # fmt: skip
def test_few_ends_where_there_are_enough(label, enough, ask):
    assert label in labels(ask(enough - 1))
    assert label not in labels(ask(enough))


def first_of(log, level, n):
    """The log of the first n labels of a level."""
    return log[log.index.get_level_values(level).factorize(sort=True)[0] < n].cvci


def groups_of(n, size):
    log = golden.one_set()[["a"]].assign(group=np.minimum(np.arange(36) // size, n - 1))
    return log.set_index("group", append=True).cvci.contrast(by="group").cvci.interval()


LEAST = {
    2: {
        "holdout": lambda n: golden.one_set().iloc[:n].cvci.holdout(),
        "wald": lambda n: golden.k_fold(n=n, k=n).cvci.wald(),
        "folds": lambda n: golden.k_fold(n=5 * n).cvci.wald(variance="within-fold"),
        "estimator": lambda n: golden.k_fold(k=n).cvci.quadratic(),
        "decompose": lambda n: golden.k_fold(n=5 * n).cvci.decompose(),
        "refits": lambda n: golden.k_fold(repetitions=n).cvci.refit_corrected(),
        "best_set": lambda n: golden.one_set().iloc[:n].cvci.best_set(rng=0, n_draws=99),
        "best of folds": lambda n: golden.k_fold(n=5 * n).cvci.best_set(
            rng=0, n_draws=99, center="fold"),
        "best of models": lambda n: golden.one_set()[golden.MODELS[:n]].cvci.best_set(
            rng=0, n_draws=99),
        "winner": lambda n: golden.one_set()[golden.MODELS[:n]].cvci.winner(),
        "groups": lambda n: groups_of(n, 4),
        "group": lambda n: groups_of(2, n),
        "clusters": lambda n: of_sources(*[4] * n).clustered(),
        "signs": lambda n: of_sources(*[4] * n).wild_cluster(),
        "differing": lambda n: of_sources(*[4] * n).heterogeneity(),
        "cluster": lambda n: of_sources(4, n).heterogeneity(),
        "left out": lambda n: of_sources(*[4] * n).out_of_source(),
        "known": lambda n: of_sources(4, n).out_of_source(target="these_sources"),
        "ranks": lambda n: of_sources(*[4] * n).friedman(),
        "ways": lambda n: of_two_ways(n, 4),
        "ways of points": lambda n: of_two_ways(4, n),
        "splits": lambda n: first_of(golden.log_named("splits"), "repetition", n).corrected_t(
            train_size=20),
        "out of bag": lambda n: first_of(
            golden.log_named("bootstrap"), "repetition", n + 1).bootstrap_oob(),
        "cases": lambda n: first_of(
            golden.log_named("case bootstrap"), "repetition", n).case_bootstrap(),
        "answered": lambda n: first_of(golden.one_set(repetitions=2), "point", n).answers(),
        "answers": lambda n: golden.one_set(repetitions=n).cvci.answers(),
        "runs": lambda n: golden.one_set(repetitions=n).cvci.power(effect=1, repetitions=4),
    },
    3: {
        "nested": lambda n: golden.planned(partial(plans.nested_cv, 24, n, 2), 8).cvci.nested_cv(),
        "ranked models": lambda n: golden.by_source()[golden.MODELS[:n]].cvci.nemenyi(),
    },
    4: {"days": lambda n: golden.one_set().iloc[:n].cvci.ordered()},
    5: {"data sets": lambda n: (golden.by_source(sizes=(4,) * n) + 10).cvci.compare(
        relative=True, over="source")},
    7: {"lags": lambda n: golden.one_set().iloc[:n].cvci.ordered(
        estimator="newey-west", lags=5)},
}  # fmt: skip
"""Calls on a log with so many of something, which is refused with fewer."""


@pytest.mark.parametrize(
    ("least", "ask"),
    [pytest.param(least, ask, id=f"{name} of {least}")
     for least, asks in LEAST.items() for name, ask in asks.items()],
)  # fmt: skip
def test_the_smallest_log_is_answered_and_a_smaller_one_refused(least, ask):
    ask(least)
    with pytest.raises(LogError):
        ask(least - 1)


# --- heavy tails and skewness ---------------------------------------------------------------------


def test_the_differences_decide_and_not_the_losses():
    common = heavy()
    pair = pd.DataFrame({"a": common, "b": common + np.random.default_rng(0).normal(size=300)})
    assert {"heavy tails", "skewed"} <= labels(pair.cvci.wald())
    assert labels(pair.cvci.compare()) <= {"unstable difference"}
    other = pd.DataFrame({"a": SOUND, "b": SOUND})
    other["b"] += np.tile(heavy().to_numpy(), 5)
    assert {"heavy tails", "skewed"} <= labels(other.cvci.compare())
    assert labels(other[["a"]].cvci.wald()) == set()


def simulate(draw, mean, n, runs=100):
    """How often the interval covers, and how often it has the label `heavy tails`."""
    covered = labelled = 0
    for seed in range(runs):
        losses = pd.Series(draw(np.random.default_rng(seed), n), pd.RangeIndex(n, name="point"))
        row = losses.cvci.holdout().iloc[0]
        covered += row["lower"] <= mean <= row["upper"]
        labelled += "heavy tails" in row["caution"]
    return covered / runs, labelled / runs


def test_heavy_tails_depend_on_the_number_of_points():
    """Exponential losses squared need 1,100 points; without a variance, no number suffices."""
    covered, labelled = simulate(lambda rng, n: rng.exponential(size=n) ** 2, 2, 40_000)
    assert covered >= 0.93
    assert labelled <= 0.05
    for n in (1_000, 40_000):
        covered, labelled = simulate(lambda rng, n: rng.pareto(1.5, n) + 1, 3, n)
        assert covered < 0.9
        assert labelled == 1
    losses = k_fold(40_000, losses=np.random.default_rng(0).exponential(size=40_000) ** 2)
    assert not {"CVS005", "CVS006", "CVS007"} & set(losses.cvci.diagnose()["code"])


@pytest.mark.parametrize("unit", [1e-140, 1e140])
@pytest.mark.filterwarnings("error")
def test_the_unit_of_the_loss_does_not_matter(unit):
    """Cubes of such losses overflow, or are 0, and then nothing was skewed."""
    log = heavy().to_frame("a").assign(b=SOUND.xs(0).to_numpy()[:300])
    for call in (cvstats.wald, partial(cvstats.wald, interval="hall"), cvstats.winner):
        wanted, found = call(log), call(log * unit)
        assert (found["caution"] == wanted["caution"]).all()
        limits = ["lower", "upper"]
        np.testing.assert_allclose(found[limits] / unit, wanted[limits], rtol=1e-12)


def test_differences_of_0_and_1_are_not_skewed():
    right = np.zeros(300)
    wrong = right.copy()
    wrong[:3] = 1
    pair = pd.DataFrame({"a": right, "b": wrong}, k_fold().index)
    assert not {"heavy tails", "skewed"} & labels(pair.cvci.compare())


def test_each_cell_and_each_group_has_its_own_labels():
    both = pd.concat({"good": SOUND.xs(0), "bad": heavy().xs(0)}, names=["region"])
    table = both.cvci.wald(by="region")
    assert "skewed" in table.loc["bad", "caution"]
    assert table.loc["good", "caution"] == ""
    assert both.to_xarray().cvci.wald()["caution"].dims == ("region",)
    grouped = both.cvci.corrected_t(by="region", train_size=270)
    assert "skewed" in grouped.loc["bad", "caution"]
    array = both.to_xarray().cvci.wald()
    np.testing.assert_array_equal(
        [bool(flags & Caution.SKEWED) for flags in array["caution"].to_numpy()],
        [region == "bad" for region in array["region"].to_numpy()],
    )


def test_of_large_logs_and_many_groups_a_sample_is_read():
    n = LIMIT + 1
    losses = k_fold(n, losses=np.random.default_rng(0).standard_t(3, n) ** 2)
    assert "heavy tails" in labels(pd.DataFrame({"a": losses, "b": 0.0}).cvci.compare())
    assert labels(k_fold(n).cvci.wald()) == set()
    many = np.random.default_rng(0).standard_t(3, 303 * 20) ** 2
    index = pd.MultiIndex.from_product([range(303), range(20)], names=["site", "point"])
    found = pd.Series(many, index)
    assert labels(found.cvci.holdout(by="site")) == {"few points", "skewed"}
    assert "skewed" in labels(found[: 20 * 100].cvci.holdout(by="site"))


@pytest.mark.parametrize(("cells", "dtype"), [(864, "float64"), (5_000, "float32")])
def test_cells_of_a_large_grid_are_labelled(cells, dtype):
    """Months of an autoregression on a grid of more losses than are read."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, cells)).astype(dtype)
    for month in range(1, 400):
        noise[month] += 0.4 * noise[month - 1]
    months = pd.date_range("1980-01-01", periods=400, freq="MS")
    grid = xr.DataArray(noise, dims=("point", "cell"), coords={"point": months})
    told = cvstats.holdout(grid)["caution"].to_numpy() & Caution.SERIAL_DEPENDENCE
    assert (told != 0).mean() > 0.99
    one = cvstats.holdout(grid.isel(cell=slice(0, 1)))
    assert labels(one) == {"serial dependence"}
    assert not (cvstats.ordered(grid[:, :864])["caution"] & Caution.SERIAL_DEPENDENCE).any()
    independent = grid.copy(data=rng.normal(size=grid.shape))
    told = cvstats.holdout(independent)["caution"].to_numpy() & Caution.SERIAL_DEPENDENCE
    assert (told != 0).mean() < 0.03


def test_dates_of_a_large_log_are_read_in_order():
    """Rows in any order, with sources: neighbours are those in time."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(3_000, 40))
    for day in range(1, 3_000):
        noise[day] += 0.5 * noise[day - 1]
    days = pd.date_range("2010-01-01", periods=3_000)
    index = pd.MultiIndex.from_product([days, range(40)], names=["point", "source"])
    log = pd.Series(noise.ravel(), index).sample(frac=1, random_state=1)
    assert "serial dependence" in labels(cvstats.naive(log))


def test_scores_have_no_shape():
    table = {"split": range(12), "auc": [*np.linspace(0.7, 0.8, 11), 0.01]}
    scores = cvstats.read_log(table, format="scores", higher_is_better=True, n_train=80, n_test=20)
    assert labels(scores.cvci.corrected_t()) == set()


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dates", "text", "periods", "days", "numbers"])
def test_points_are_dated_by_their_labels(form):
    losses = dated(0.6, text=True) if form == "text" else dated(0.6)
    days = losses.index.get_level_values("point")
    if form in ("periods", "days", "numbers"):
        other = {
            "periods": lambda: days.to_period("D"),
            "days": lambda: pd.Index([day.date() for day in days]),
            "numbers": lambda: days.factorize(sort=True)[0],
        }[form]()
        folds = losses.index.get_level_values("fold")
        losses.index = pd.MultiIndex.from_arrays([folds, other], names=["fold", "point"])
    assert ("serial dependence" in labels(losses.cvci.wald())) == (form != "numbers")


@pytest.mark.parametrize("loss", ["rmse", "auc", "observed_expected"])
def test_pseudo_losses_of_successive_dates_may_depend(loss):
    """The RMSE of two equal forecasts of dependent days differed in 42% of logs, without a word."""
    risk = dated(0.9).droplevel("fold").sort_index().rank(pct=True) - 0.001
    frame = pd.DataFrame({"y_true": (risk > 0.5) * 1.0, "a": 0.9 * risk})
    frame["b"] = risk.shift(5).bfill()
    log = cvstats.losses(frame, prediction=["a", "b"], loss=loss)
    assert "serial dependence" in labels(log[["b"]].cvci.interval())
    assert "CVS027" in cvstats.diagnose(log)["code"].tolist()
    words = log["b"].cvci.summary().sentences
    assert "using ordered because of serial dependence" in words[0]
    assert log.cvci.ordered()["lower"].min() >= 0
    grid = xr.DataArray(log["b"].to_numpy(), dims="point", coords={"point": log.index})
    lazy = grid.assign_attrs(log.attrs).chunk().cvci.holdout().compute()
    assert int(lazy["caution"]) & Caution.SERIAL_DEPENDENCE


def test_dates_of_climate_models_are_dates():
    day = type("DatetimeNoLeap", (int,), {"__module__": "cftime"})
    losses = dated(0.6).droplevel("fold").sort_index()
    losses.index = pd.Index([day(i) for i in range(300)], dtype=object, name="point")
    assert "serial dependence" in labels(losses.cvci.holdout())


def test_independent_days_are_not_serial():
    told = sum(
        "serial dependence" in labels(dated(0.0, seed=seed).cvci.wald()) for seed in range(40)
    )
    assert told <= 2
    assert "serial dependence" not in labels(dated(0.9, n=20).cvci.wald())
    constant = 0 * dated(0.9, n=60) + 0.1  # whose mean is rounded
    assert "serial dependence" not in labels(constant.cvci.wald())


@pytest.mark.parametrize("grid", [False, True])
def test_tests_of_models_examine_their_differences_on_successive_dates(grid):
    """The best of three equal models was often excluded without a word."""
    losses = pd.DataFrame({seed: dated(0.8, seed=seed).droplevel("fold") for seed in range(3)})
    right = losses[[0, 1]] > losses.median().mean()
    told = {"serial dependence"}
    if grid:
        losses, right = (
            frame.to_xarray().to_dataarray("model").astype(float).expand_dims(cell=2) for frame in
            (losses, right)
        )  # fmt: skip
    assert labels(losses.cvci.best_set(rng=0, n_draws=200)) == told
    assert labels(right.astype(float).cvci.mcnemar()) == told
    assert labels(right.astype(float).cvci.cochran_q()) == told
    mixed = losses.copy()
    mixed[:] = np.random.default_rng(0).normal(size=losses.shape)
    assert labels(mixed.cvci.best_set(rng=0, n_draws=200)) == set()
    assert labels((mixed > 0).astype(float).cvci.mcnemar(reference=0)) == set()
    assert labels((mixed > 0).astype(float).cvci.cochran_q()) == set()


def test_tests_without_standard_errors_name_the_comparison_in_time():
    losses = pd.DataFrame({"a": dated(0.8)})
    losses["b"] = dated(0.8, seed=1).droplevel("fold").reindex(losses.index, level="point")
    assert labels(losses.cvci.rope(margin=0.1)) == {"serial dependence"}
    right = (losses > 1).astype(float)
    answers = losses.cvci.rope(margin=0.1), losses.cvci.best_set(rng=0, n_draws=200)
    for table in (*answers, right.cvci.mcnemar(), right.cvci.cochran_q()):
        words = table.attrs["cautions"]["serial dependence"]
        assert "Use log.cvci.compare(method='ordered')" in words


def test_each_source_is_a_series_and_groups_may_depend():
    losses = dated(0.6, n=400)
    day = losses.index.get_level_values("point")
    block = pd.Series(losses.to_numpy(), pd.MultiIndex.from_arrays(
        [day.day_of_year // 60 + 10 * day.year, day], names=["source", "point"]
    ))  # fmt: skip
    block = pd.concat({0: block}, names=["fold"])
    assert "serial dependence" in labels(block.cvci.holdout())
    assert "serial dependence" not in labels(block.cvci.clustered())
    shuffled = block.groupby("source").transform(
        lambda one: np.random.default_rng(0).permutation(one)
    )
    level = shuffled + 5 * (shuffled.index.get_level_values("source") % 2)
    assert "serial dependence" not in labels(level.cvci.holdout())


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [0, 1, 2, 9])
def test_points_stored_once_are_not_duplicates(decimals):
    for repetitions in (1, 3):
        losses = stored_twice(copies=1, decimals=decimals, repetitions=repetitions)
        assert "duplicated points" not in labels(losses.cvci.wald())
        assert "duplicated points" not in labels(losses.round(2).cvci.wald())
        assert "duplicated points" not in labels((losses > 0.5).astype(float).cvci.wald())
        assert "duplicated points" not in labels(losses[["line"]].cvci.wald())


def test_one_column_of_one_repetition_is_not_enough():
    losses = stored_twice(repetitions=1)
    assert "duplicated points" in labels(losses.cvci.wald())
    assert "duplicated points" in labels(losses.cvci.compare())
    assert "duplicated points" not in labels(losses["line"].cvci.wald())
    assert "duplicated points" in labels(stored_twice()["line"].cvci.wald())


def test_one_loss_for_each_fold_is_no_copy():
    """The truth of these cells is constant, so each model has one error."""
    fold = np.arange(100) % 5
    losses = pd.DataFrame({"a": fold / 8.0, "b": fold / 4.0 + 1}, pd.RangeIndex(100, name="point"))
    losses = losses.set_index(pd.Index(fold, name="fold"), append=True)
    assert "duplicated points" not in labels(losses.cvci.wald())


def test_an_array_with_masked_cells_is_looked_at():
    array = stored_twice(repetitions=1).droplevel("repetition").to_xarray().to_dataarray("model")
    cells = np.array([1.0, np.nan])
    found = (array * array.copy(data=np.ones(array.shape))).expand_dims(cell=2) * (
        array.isel(fold=0, point=0, model=0, drop=True).expand_dims(cell=2).copy(data=cells)
    )
    result = found.cvci.wald()
    assert labels(result.isel(cell=0)) == {"duplicated points"}
    assert labels(result.isel(cell=1)) == {"no losses"}


# --- the best of many -----------------------------------------------------------------------------


def test_only_the_best_model_is_selected():
    frame = near_models(6)
    result = frame.cvci.holdout()
    told = result["caution"].str.contains("selected model")
    assert told.sum() == 1
    assert told.idxmax() == result["estimate"].idxmin()
    assert labels(near_models(4).cvci.holdout()) == set()
    frame[0] -= 0.5
    assert labels(frame.cvci.holdout()) == set()
    assert "selected model" not in labels(near_models(6).cvci.compare())
    errors = np.arange(200) < 70
    shuffled = {k: np.random.default_rng(k).permutation(errors) * 1.0 for k in range(6)}
    tied = pd.DataFrame(shuffled, k_fold(200, 7).index)  # equal means except for rounding
    for log in (tied, tied[tied.columns[::-1]]):
        assert "selected model" in log.cvci.quadratic()["caution"].iloc[0]
    even = np.tile([0.1, -0.1, 0.3, -0.3], 50)  # means of 0, except for rounding
    tied = pd.DataFrame({k: np.random.default_rng(k).permutation(even) for k in range(6)})
    for seed in range(8):
        log = tied.rename_axis("point").sample(frac=1, random_state=seed)
        assert "selected model" in log.cvci.holdout()["caution"].iloc[0]


EIGHT = [f"m{k}" for k in range(8)]


def predicted(kind):
    """Eight models that predict probabilities of a class, or numbers, about equally well."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300) if kind == "classes" else rng.normal(size=300)
    table = truth[:, None] + rng.normal(size=(300, 8))
    index = pd.MultiIndex.from_arrays(
        [np.arange(300) % 5, np.arange(300) % 60, range(300)], names=["fold", "source", "point"]
    )
    table = 1 / (1 + np.exp(-table)) if kind == "classes" else table
    return pd.DataFrame(table, index, EIGHT).assign(y_true=truth)


@pytest.mark.parametrize("of_sources", [False, True])
@pytest.mark.parametrize(
    ("kind", "loss"), [("classes", "auc"), ("numbers", "rmse"), ("numbers", "absolute_error")]
)
def test_the_best_model_is_selected_by_any_metric_and_among_sources(kind, loss, of_sources):
    table = predicted(kind) if of_sources else predicted(kind).droplevel("source")
    options = {"folds": "pool"} if loss != "absolute_error" else {}
    log = cvstats.losses(table, prediction=EIGHT, loss=loss, **options)
    result = log.cvci.clustered() if of_sources else log.cvci.interval()
    told = result["caution"].str.contains("selected model")
    assert list(result.index[told]) == [result["estimate"].idxmin()]
    assert "CVS029" in found(log).index
    assert "selected model" not in labels(log[EIGHT[:4]].cvci.interval())
    five = log[EIGHT[:5]]
    assert ("selected model" in labels(five.cvci.interval())) == ("CVS029" in found(five).index)


def sources_of_models(seed):
    """Eight models whose differences vary more between sources than between points."""
    rng = np.random.default_rng(seed)
    source = np.repeat(range(40), rng.integers(2, 16, 40))
    losses = rng.normal(5, 1, (40, 8))[source] + rng.normal(size=(len(source), 8))
    index = pd.MultiIndex.from_arrays(
        [source % 5, source, source, range(len(source))], names=["fold", "source", "site", "point"]
    )
    return pd.DataFrame(losses + np.linspace(0, 1.2, 8), index, EIGHT)


IN_SOURCES = {
    "clustered": ("clustered", {}),
    "CR3": ("clustered", {"correction": "CR3"}),
    "site": ("clustered", {"by": "site"}),
    "out_of_source": ("out_of_source", {}),
}


@pytest.mark.parametrize("case", IN_SOURCES)
def test_models_near_the_best_are_counted_by_standard_errors_over_sources(case):
    method, options = IN_SOURCES[case]
    seen = set()
    for seed in range(4):
        log = sources_of_models(seed)
        log = log.droplevel("fold") if method == "out_of_source" else log
        result = getattr(log.cvci, method)(**options)
        best = result["estimate"].idxmin()
        table = log.cvci.compare(reference=best, method=method, options=options, adjust=None)
        near = 1 + np.count_nonzero(table["difference"] <= 2 * table["se"])
        seen.add(near >= 5)
        array = xr.DataArray(log.rename_axis(columns="model"))
        forms = [log.cvci, array.cvci, cvstats.Moments.of_log(log.droplevel("site"), pairs=True)]
        for form in forms[: 2 if "by" in options else 3]:
            assert ("selected model" in labels(getattr(form, method)(**options))) == (near >= 5)
        if not options:
            assert found(log)["value"].get("CVS029", near) == near
            assert ("CVS029" in found(log).index) == (near >= 5)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({}, "winner(method='clustered')"),
        ({"by": "site"}, "winner(method='clustered', options={'by': 'site'})"),
        ({"by": ("site", "repetition")}, "options={'by': ['site', 'repetition']})"),
        ({"per": "group"}, ""),
    ],
)
def test_the_advised_interval_of_the_winner_has_the_same_sampling_units(options, call):
    log = sources_of_models(1) - np.linspace(0, 1.2, 8)
    log = pd.concat([log, log + 1], keys=[0, 1], names=["repetition"])
    log = pd.concat([log], keys=["a"], names=["group"])
    words = log.cvci.clustered(**options).attrs["cautions"]["selected model"]
    assert (call in words) if call else ("winner" not in words)


def test_metrics_with_a_target_have_no_best_model():
    log = cvstats.losses(predicted("classes"), prediction=EIGHT, loss="calibration_slope")
    assert "selected model" not in labels(log.cvci.interval())
    assert "CVS029" not in found(log).index


# --- instability, overfitting ---------------------------------------------------------------------


def test_three_pairs_of_three_models_are_looked_at():
    """As many pairs as models: each pair has its own differences."""
    losses = np.random.default_rng(0).lognormal(2, 2, size=(300, 4))
    frame = pd.DataFrame(losses, columns=list("abcd"), index=pd.RangeIndex(300, name="point"))
    of_four = frame.cvci.compare(adjust=None)["caution"]
    of_three = frame[["a", "b", "c"]].cvci.compare(adjust=None)["caution"]
    assert of_three.tolist() == of_four[of_three.index].tolist()
    assert "heavy tails" in of_three["a", "c"]


def test_models_within_two_standard_errors_of_the_best_are_counted():
    noise = np.tile([-1.0, 1.0], 50)  # a standard error of 0.1 in 100 points
    leads = np.array([0.0, 0.15, 0.19, 0.21, 0.25, np.nan])
    values = leads + np.outer(noise, leads > 0)
    labels = SimpleNamespace(models=range(6), columns=lambda model: np.array([model]))
    near, best = count_near_best(
        SimpleNamespace(labels=labels), leads, residuals_of_points(values, 100)
    )
    assert (near.tolist(), best.tolist()) == ([3], [0])


def test_points_stored_five_times_are_duplicates():
    """Only points with one twin were found."""
    rng = np.random.default_rng(0)
    losses = pd.DataFrame(np.repeat(rng.normal(3, 1, (60, 2)), 5, axis=0), columns=["a", "b"])
    losses.index.name = "point"
    assert "duplicated points" in cvstats.compare(losses)["caution"].iloc[0]
    stars = pd.DataFrame(rng.integers(0, 5, (300, 2)).astype(float), columns=["a", "b"])
    stars.index.name = "point"
    assert "duplicated points" not in cvstats.compare(stars)["caution"].iloc[0]
    truths = pd.DataFrame({"y_true": rng.normal(size=300), "low": -2.0, "high": 2.0, "more": 3.0})
    columns = {"a": ["low", "high"], "b": ["low", "more"]}
    scores = cvstats.losses(
        truths.rename_axis("point"), prediction=columns, loss="interval_score", level=0.9
    )
    assert "duplicated points" not in cvstats.compare(scores)["caution"].iloc[0]


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y"])
def test_whole_numbers_that_are_days_or_years_are_dates(form):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    for at in range(1, 200):
        noise[at] += 0.8 * noise[at - 1]
    first = "1850-01-01"
    days = pd.date_range(first, periods=200, freq="YS" if form == "%Y" else "D")
    labels = pd.Index(days.strftime(form).astype(int), name="point")
    assert "serial dependence" in cvstats.interval(pd.Series(noise, labels))["caution"].iloc[0]
    assert cvstats.interval(pd.Series(noise, labels % 977))["caution"].iloc[0] == ""


def test_a_loss_of_zero_is_not_negative():
    assert measure_shapes(np.array([[0.0], [-1.0], [0.5], [2.0]])).negative == 0.25


def test_numbers_of_points_are_no_days_without_a_look_at_all_of_them(monkeypatch):
    seen = []
    real = pd.to_datetime
    monkeypatch.setattr(
        pd, "to_datetime", lambda x, **given: seen.append(len(x)) or real(x, **given)
    )
    assert read_calendar(range(20_000_000, 20_500_000)) is None
    assert seen == [100]
    assert read_calendar([20240131, 20240201]) is not None


@pytest.mark.parametrize("labels", [
    [202400 + month for month in range(1, 14)],  # no month 13
    [f"{number}.1.2024" for number in range(20, 40)],  # no day 32
    ["31.12.2024", "b"],
    ["20240131", "7"],
    ["1.2.3", "1.2.4"],
    [1000001, 1000002],
    ["12/31/2024", "31/12/2024"],
])  # fmt: skip
def test_labels_that_only_look_like_dates(labels):
    assert read_calendar(labels) is None


@pytest.mark.parametrize("unit", [1, 100, 10_000])
def test_calendar_numbers_are_of_the_years_1800_to_2100(unit):
    low = 1800 if unit == 1 else 1800 * unit + 1
    high = 2100 if unit == 1 else 2101 * unit - 1
    assert [is_calendar_number(at) for at in (low - 1, low, high, high + 1)] == [0, 1, 1, 0]
    assert not is_calendar_number(float(low))


def test_other_dates_are_sorted_by_time():
    for labels in (["01.02.2024", "15.01.2024"], ["02/01/2024", "01/15/2024"],
                   ["2024/2/1", "2024/1/15"], ["202402", "202401"]):  # fmt: skip
        assert rank_labels(labels).tolist() == [1, 0]
    assert rank_labels(["01/02/2024", "15/01/2024"]).tolist() == [1, 0]  # no month 15
    assert rank_labels(["31.12.2024"]).tolist() == [0]


@pytest.mark.parametrize(("name", "found"), [("date", True), ("Month", True), ("station", False)])
def test_dates_next_to_points_have_the_name_of_dates(name, found):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    for at in range(1, 200):
        noise[at] += 0.8 * noise[at - 1]
    index = pd.MultiIndex.from_arrays(
        [rng.permutation(200), pd.date_range("2024-01-01", periods=200)], names=["point", name]
    )
    caution = pd.Series(noise, index).cvci.holdout()["caution"].item()
    assert (caution == "serial dependence") == found


def test_points_next_to_dates_are_not_put_in_order():
    """Numbers of points are no times if another level has the dates."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200).cumsum()
    days = pd.date_range("2024-01-01", periods=200)
    index = pd.MultiIndex.from_arrays([rng.permutation(200), days], names=["point", "date"])
    log = pd.DataFrame({"a": noise, "b": 0.9 * noise}, index)
    with pytest.raises(LogError, match="its dates are on the level 'date'"):
        log.cvci.ordered()
    advice = log.cvci.interval().attrs["cautions"]["serial dependence"]
    assert "ordered" not in advice
    assert "ordered" not in str(log.cvci.summary())
