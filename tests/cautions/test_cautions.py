"""Cautions about losses and models: where they appear, and not where all is well."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from flagged_logs import SOUND, heavy, k_fold, labels, near_models, stored_twice
from rows import multi_index, product_index

import cvstats
from cvstats.core.cautions import Caution
from cvstats.log.loss_checks import LIMIT, count_near_best, measure_shapes, residuals_of_points


def codes(log):
    """The codes of all findings."""
    return set(cvstats.diagnose(log)["code"])


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
    found = pd.Series(many, product_index(site=range(303), point=range(20)))
    assert labels(found.cvci.holdout(by="site")) == {"few points", "skewed"}
    assert "skewed" in labels(found[: 20 * 100].cvci.holdout(by="site"))


def test_scores_have_no_shape():
    table = {"split": range(12), "auc": [*np.linspace(0.7, 0.8, 11), 0.01]}
    scores = cvstats.read_log(table, format="scores", higher_is_better=True, n_train=80, n_test=20)
    assert labels(scores.cvci.corrected_t()) == set()


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
    differences = cvstats.difference(near_models(7), reference=0)
    assert "selected model" not in labels(differences.cvci.holdout())
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
    index = multi_index(fold=np.arange(300) % 5, source=np.arange(300) % 60, point=range(300))
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
    assert "CVS029" in codes(log)
    assert "selected model" not in labels(log[EIGHT[:4]].cvci.interval())
    five = log[EIGHT[:5]]
    assert ("selected model" in labels(five.cvci.interval())) == ("CVS029" in codes(five))


def sources_of_models(seed):
    """Eight models whose differences vary more between sources than between points."""
    rng = np.random.default_rng(seed)
    source = np.repeat(range(40), rng.integers(2, 16, 40))
    losses = rng.normal(5, 1, (40, 8))[source] + rng.normal(size=(len(source), 8))
    index = multi_index(fold=source % 5, source=source, site=source, point=range(len(source)))
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
            told = cvstats.diagnose(log).set_index("code")["value"]
            assert told.get("CVS029", near) == near
            assert ("CVS029" in told) == (near >= 5)
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
    assert "CVS029" not in codes(log)


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
    columns = SimpleNamespace(models=range(6), columns=lambda model: np.array([model]))
    near, best = count_near_best(
        SimpleNamespace(labels=columns), leads, residuals_of_points(values, 100)
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
    draw = np.random.default_rng(3)
    ratings = pd.DataFrame(draw.integers(0, 15, (300, 3)) * 1.0)
    rare = pd.DataFrame((draw.random((300, 4)) < 0.01) * 1.0, columns=list("efgh"))
    mixed = pd.concat([ratings, rare], axis=1).rename_axis("point")
    assert "duplicated points" not in cvstats.compare(mixed)["caution"].iloc[0]
    twice = product_index(repetition=range(2), point=range(15))
    for seed in range(30):  # chance is most likely with few points and one model
        one = pd.Series(np.random.default_rng(seed).integers(-10, 10, 30) * 1.0, twice)
        assert "duplicated points" not in one.cvci.ordered()["caution"].item()
    same = pd.Series(np.repeat(draw.normal(size=10), 3), twice)
    assert "duplicated points" in same.cvci.ordered()["caution"].item()
    truths = pd.DataFrame({"y_true": rng.normal(size=300), "low": -2.0, "high": 2.0, "more": 3.0})
    columns = {"a": ["low", "high"], "b": ["low", "more"]}
    scores = cvstats.losses(
        truths.rename_axis("point"), prediction=columns, loss="interval_score", level=0.9
    )
    assert "duplicated points" not in cvstats.compare(scores)["caution"].iloc[0]


def test_a_loss_of_zero_is_not_negative():
    assert measure_shapes(np.array([[0.0], [-1.0], [0.5], [2.0]])).negative == 0.25


def test_two_sources_of_a_group_are_ignored():
    point = np.arange(120)
    index = multi_index(fold=0 * point, group=point // 40, source=point // 20, point=point)
    losses = pd.DataFrame({"a": np.random.default_rng(0).random(120)}, index)
    for by, ignored in (("group", True), ("source", False)):
        cautions = losses.cvci.holdout(by=by)["caution"]
        assert (cautions.str.contains("sources ignored") == ignored).all()
