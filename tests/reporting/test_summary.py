"""The summary: which model is best, by how much, how sure, and its cautions."""

import re

import bootstrap_logs
import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from plotted import many, without_marks

import cvstats
from cvstats import cli
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.reporting import Summary
from cvstats.reporting.page import list_facts
from cvstats.reporting.sentences import list_names, name_sources, write_p_value
from cvstats.reporting.verdict import read_scale


def pairs(shift=0.3, n=200, noise=0.3, models=2, levels=("fold", "point"), **attrs):
    """Losses of models of which each is worse than the one before by ``shift``."""
    rng = np.random.default_rng(0)
    base = rng.exponential(size=n)
    labels = {"fold": np.arange(n) % 5, "source": np.arange(n) % 20, "point": np.arange(n)}
    frame = pd.DataFrame(
        {f"m{k}": base + shift * k + rng.normal(0, noise, n) for k in range(models)},
        index=pd.MultiIndex.from_arrays([labels[name] for name in levels], names=levels),
    )
    frame.attrs = attrs
    return frame


def hits(*right, loss="accuracy"):
    """A log of right and wrong answers, of a score by name."""
    n = 200
    index = pd.MultiIndex.from_arrays([np.arange(n) % 5, np.arange(n)], names=["fold", "point"])
    preds = pd.DataFrame({"y": np.zeros(n, dtype=int)}, index=index)
    for k, number in enumerate(right):
        preds[f"m{k}"] = (np.random.default_rng(k).permutation(n) >= number).astype(int)
    names = [f"m{k}" for k in range(len(right))]
    return cvstats.losses(preds, truth="y", prediction=names, loss=loss)


def grid(models=2, shape=(4, 5), n=60, shift=0.6, dims=("lat", "lon")):
    rng = np.random.default_rng(1)
    shifts = shift * np.arange(models).reshape(-1, *[1] * (len(shape) + 1))
    return xr.DataArray(
        rng.gamma(1, 0.5, (models, *shape, n)) + shifts,
        dims=["model", *dims, "point"],
        coords={"model": [f"m{k}" for k in range(models)], "fold": ("point", np.arange(n) % 6)}
        | {dim: np.arange(size) for dim, size in zip(dims, shape, strict=True)},
    )


def test_the_better_of_two_models_has_its_lead_and_its_p_value():
    losses = pairs(loss="squared_error")
    row = cvstats.compare(losses).iloc[0]
    assert row["p_value"] < 0.001
    found = losses.cvci.summary()
    assert found.sentences[0] == (
        f"m0 is better than m1: its mean squared error is lower by {-row['difference']:.3f} (95% "
        f"interval {-row['upper']:.3f} to {-row['lower']:.3f}, p < 0.001)."
    )
    assert "narrow" not in found.sentences[-1]
    assert found.cautions == {}
    assert len(found.sentences) == 3


@pytest.mark.parametrize("shift", [0.01, 0.07, 0.16])
@pytest.mark.parametrize("models", [2, 5])
def test_best_and_tied_are_what_compare_finds(shift, models):
    losses = pairs(shift, models=models)
    table = cvstats.compare(losses, method="wald", adjust="max-t", rng=0).reset_index()
    best = losses.mean().idxmin()
    own = table[(table["model"] == best) | (table["other"] == best)]
    p = own["p_adjusted" if "p_adjusted" in own else "p_value"]
    words = losses.cvci.summary(method="wald").sentences[0]
    assert ("signific" in words) == bool((p >= 0.05).any())
    assert (f"{best} is " in words and "be chance" not in words) == bool((p < 0.05).all())


@pytest.mark.parametrize("models", [4, 10, 11, 30])
def test_tied_are_the_models_that_none_is_significantly_better_than(models):
    losses = many(models)
    table = cvstats.compare(losses, method="wald", adjust="max-t", rng=0).reset_index()
    beaten = {*table["model"][table["lower"] > 0], *table["other"][table["upper"] < 0]}
    order = losses.mean().sort_values().index
    tied = [name for name in order[1:] if name not in beaten]
    words = losses.cvci.summary(method="wald").sentences[0]
    if len(tied) == models - 1:
        assert words.startswith(
            f"None of the {models} models is significantly worse than any other"
        )
    else:
        assert f"better than {list_names(tied)}: its advantage of " in words
        assert f" over {tied[0]} is not statistically significant (" in words
        worse = [name for name in order if name in beaten]
        verb = "is" if len(worse) == 1 else "are"
        assert words.endswith(f"); {list_names(worse)} {verb} significantly worse.")
    assert f"adjusted for {models * (models - 1) // 2} comparisons)" in words


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_scores_for_losses_are_told_above_one_half(share):
    right = pd.DataFrame({name: np.arange(100.0) < 100 * share for name in "ab"}, dtype=float)
    right["b"] = right["b"].to_numpy()[::-1]
    words = str(right.rename_axis("point").cvci.summary())
    assert ("are these scores?" in " ".join(words.split())) == (share > 0.5)


def test_scores_without_a_percent_and_named_by_their_loss():
    log = hits(180, 130)
    log.attrs = {"loss": "1 - exact_match"}
    assert read_scale(LogFacts(log).attrs, {}).value(0.25, 3) == "75.0%"
    log.attrs = {"loss": "1 - passed"}
    passed = read_scale(LogFacts(log).attrs, {})
    assert (passed.name, passed.value(0.25, 3)) == ("pass rate", "75.0%")
    log.attrs = {"loss": "-r2"}
    negative = read_scale(LogFacts(log).attrs, {})
    assert (negative.name, negative.value(-0.25, 2)) == ("R2", "0.25")
    assert negative.range(-0.5, -0.25, 2, of_values=True) == "0.25 to 0.50"
    assert read_scale({"metric": "gain", "orientation": "-score"}, {}).name == "gain"
    assert read_scale({"metric": "auc", "orientation": "1 - score"}, {}).value(0.2, 2) == "0.80"
    assert read_scale({"metric": "rmse", "orientation": "error"}, {}).value(0.2, 2) == "0.20"
    assert read_scale({"long_name": "mean delay", "units": "1"}, {}).unit_words == ""
    assert read_scale({"long_name": "mean delay"}, {}).name == "mean delay"
    assert read_scale({}, {"loss": "brier"}).name == "Brier score"


def test_what_was_evaluated_are_test_sets_where_there_are_scores_alone():
    scores = pd.DataFrame(
        {"a": [0.2, 0.1, 0.3, 0.2], "b": [0.3, 0.2, 0.4, 0.1]}, pd.RangeIndex(4, name="fold")
    )
    scores.attrs = {"holds": "scores", "n_train": 75, "n_test": 25}
    assert "measured on 4 test sets of 25 points." in scores.cvci.summary().text
    scores.attrs |= {"n_train": 76.5, "n_test": 25.5}
    assert "4 test sets of about 26 points." in scores.cvci.summary().text
    scores.attrs = {"holds": "scores"}
    assert "measured on 4 test sets." in scores.cvci.summary().text
    assert repr(scores.cvci) == "<cvci: 4 scores, 4 folds, 2 models>"


def test_splits_that_test_some_points_are_not_said_to_test_all():
    rng = np.random.default_rng(0)
    rows = [(r, p) for r in range(15) for p in rng.choice(70, rng.integers(5, 9), replace=False)]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point"])
    log = pd.Series(rng.uniform(size=len(rows)), index, name="m")
    log.attrs["n_train"] = 60
    n = index.get_level_values("point").nunique()
    text = " ".join(log.cvci.summary().text.split())
    assert f"measured on {n} points in 15 splits." in text


def test_a_lead_that_is_rounding_noise_is_a_draw():
    scores = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "b": [0.4, 0.3, 0.2, 0.1]})
    scores = scores.rename_axis("fold")
    scores["b"] += 1e-15
    scores.attrs["holds"] = "scores"
    assert scores["a"].mean() != scores["b"].mean()
    assert "a and b have the same mean loss." in scores.cvci.summary().text


@pytest.mark.parametrize("size", [1e10, 1e14, 1e17])
def test_a_model_that_diverged_hides_no_difference(size):
    base = np.random.default_rng(0).exponential(size=(100, 1))
    losses = pd.DataFrame(base * [1, 0.5, size], range(100), list("abc"))
    assert losses.cvci.summary().text.startswith("b is the best of 3 models: its mean loss is")
    cells = xr.DataArray(
        np.stack([base * [2, 1], base * [size, 2 * size], base * [1, np.nan]]),
        {"model": ["a", "b"], "data": list("xyz")}, ("data", "point", "model"),
    )  # fmt: skip
    words = " ".join(cells.cvci.summary().text.split())
    assert "a has the lower mean loss in 1 of 2 cells (data), and b in 1;" in words
    assert "; a is significantly better in 1 (data=y), and b in 1 (data=x), adj" in words


def test_a_draw_is_not_a_lead():
    one = hits(180)["m0"]
    two = pd.DataFrame({"a": one, "b": one.iloc[::-1].to_numpy()}, one.index)
    two.attrs = one.attrs
    first = two.cvci.summary().sentences[0]
    assert first.startswith("a and b have the same accuracy. The difference is 0")
    three = two.assign(c=np.roll(two["a"], 1), d=1.0 * (np.arange(200) % 2))
    three.attrs = one.attrs
    words = three.cvci.summary().sentences[0]
    assert words.startswith(
        "a and b share the highest accuracy of 4 models; c is not significantly worse; d is "
        "significantly worse."
    )
    assert ". The difference is 0" in words
    two = two.assign(d=three["d"])
    two.attrs = one.attrs
    assert (
        two.cvci.summary()
        .sentences[0]
        .startswith("a and b share the highest accuracy of 3 models; d is significantly worse.")
    )


def test_the_sentences_name_a_score_and_no_limit_beyond_it():
    preds = pd.DataFrame(
        {"y": [0, 1] * 20, "a": np.linspace(0, 0.2, 40) + 0.5 * (np.arange(40) % 2)},
        pd.MultiIndex.from_arrays([np.arange(40) // 10, range(40)], names=["fold", "point"]),
    )
    preds.loc[(0, 0), "a"] = 0.6
    losses = cvstats.losses(preds, truth="y", prediction=["a"], loss="auc")
    assert losses.cvci.wald()["lower"].item() < 0  # an AUC above 1
    assert losses.cvci.interval()["lower"].item() > 0
    first, last = losses.cvci.summary().sentences
    assert " to 0.998), measured on 40 points" in first
    assert last == "The interval is for the average AUC of the models trained in this " \
        "cross-validation."  # fmt: skip
    risk = pairs(models=1, levels=("point",)).cvci.summary().sentences[-1]
    assert risk == (
        "The interval is for the error of the trained model on new points from the same "
        "population as the test points."
    )


def test_scores_in_the_place_of_losses_are_said_first():
    right = 1 - hits(180, 150)
    right.attrs = {}
    found = right.cvci.summary()
    label, *_ = found.cautions
    assert label == "scores instead of losses"
    assert found.cautions[label].startswith("0/1 losses have mean 0.9")
    assert "higher_is_better=True" in found.advice[label]
    assert "scores instead of losses" not in (1 - right).cvci.summary().cautions
    named = pairs(models=1).set_axis(["auc"], axis=1)
    assert "losses named like a score" in str(named.cvci.summary()).lower()
    lazy = xr.DataArray(1.0 * right["m0"].to_numpy(), dims="point").chunk(point=50)
    assert "scores instead of losses" in lazy.cvci.summary().cautions
    assert "scores instead of losses" not in (2 * lazy).cvci.summary().cautions


FORMS = [lambda log: log, lambda log: log.to_dataset("model"), lambda log: log.chunk(point=50)]


@pytest.mark.parametrize("form", FORMS, ids=["array", "dataset", "dask"])
def test_a_mean_over_cells_is_widened_if_the_models_are_similar_in_the_cells(form):
    """Such means vary little in relation to their size, whatever the models."""
    log = grid(shift=0.1, n=200)
    similar = log.copy()
    similar[dict(model=1)] = log[dict(model=0)] + 0.02 * (log[dict(model=1)] - 0.6)
    first, second = (form(each).cvci.summary().sentences[0] for each in (log, similar))
    assert "similarity" not in first
    assert "refit_corrected" not in first
    assert "using refit_corrected because" in second
    assert "41% wider than with wald" in second


@pytest.mark.parametrize("form", FORMS, ids=["array", "dataset", "dask"])
@pytest.mark.parametrize("dims", [("lat", "lon"), ("x", "y")])
def test_a_mean_over_cells_leaves_the_attrs_of_the_log(form, dims):
    log = form(grid(dims=("lat", "lon")).rename(dict(zip(("lat", "lon"), dims, strict=True))))
    log.attrs = {"loss": "mse"}
    assert log.cvci.summary().sentences[0].startswith("Averaged over 20 cells")
    assert log.attrs == {"loss": "mse"}


def test_cells_of_a_grid_are_counted():
    log = grid()
    log[dict(model=1, lat=0)] = log[dict(model=0, lat=0)] - 0.9 + 0.01 * log[dict(model=1, lat=0)]
    log[dict(model=1, lat=1)] = log[dict(model=0, lat=1)].to_numpy()[:, ::-1]
    found = log.cvci.compare()
    clear = found["p_adjusted"] < 0.05
    worse, better = int((clear & (found["difference"] > 0)).sum()), int(clear.sum())
    better -= worse
    assert 0 < worse < better
    first, second, third = log.cvci.summary().sentences
    assert first.startswith(
        "Averaged over 20 cells (lat and lon, weighted by area), m0 is better than m1: its mean"
    )
    leads, behind = (int((side * found["difference"] > 1e-9).sum()) for side in (-1, 1))
    assert second == (
        f"m0 has the lower mean loss in {leads} of 20 cells (lat and lon), and m1 in {behind}; m0 "
        f"is significantly better in {better}, and m1 in {worse}, adjusted for 20 comparisons."
    )
    assert third.startswith("Each cell was measured on 60 points in 6-fold cross-validation; the ")
    three = grid(3, shift=0.2).cvci.summary().sentences
    assert re.match(
        r"Among 20 cells \(lat and lon\), m\d is best or not significantly worse than the best "
        r"in \d",
        three[1],
    )


def test_the_interval_of_the_median_cell():
    log = grid(1).isel(model=0, drop=True)
    found = log.cvci.interval()
    half = float(((found["upper"] - found["lower"]) / 2).median())
    words = cvstats.Moments.of_log(log).summary().sentences
    assert f"interval of the median cell is ±{half:.3f}" in " ".join(words)
    words = cvstats.Moments.of_log(grid(2), pairs=True).summary().sentences
    assert words[0].startswith("m0 has the lower mean loss in 20 of 20 cells (lat and lon), and m1")


def test_cells_with_equal_labels_all_count():
    log = grid(1).isel(model=0, lat=0, drop=True)
    log = log.rename(lon="site").assign_coords(site=["x"] * log.sizes["lon"])
    mean = float(log.mean("point").max())
    first, second, _ = log.cvci.summary().sentences
    assert first.startswith(f"Averaged over {log.sizes['site']} cells (site), ")
    assert f" to {mean:.3f} over {log.sizes['site']} cells (site)" in second


def test_the_mean_over_cells_is_weighted_by_area():
    log = grid()
    globe = log.assign_coords(lat=[-90, -30, 30, 90])  # with both poles
    for form in (log, log.rename(lat="latitude"), log.to_dataset("model"), globe):
        weights = np.cos(np.deg2rad((globe if form is globe else log)["lat"])).clip(0)
        mean = log.assign_coords(lat=weights["lat"]).weighted(weights).mean(["lat", "lon"])
        words = form.cvci.summary().sentences[0].partition("), ")[2]
        assert words == mean.cvci.summary().sentences[0]
    plain = log.rename(lat="y").cvci.summary().sentences[0]
    expected = log.mean(["lat", "lon"]).cvci.summary().sentences[0]
    assert plain == (f"Averaged over 20 cells (y and lon), {expected}")


@pytest.mark.parametrize("chunks", [None, {"point": 20}, {"model": 1}, {"lat": 2, "model": 2}])
@pytest.mark.parametrize("cells", [True, False])
def test_a_model_without_losses_is_refused(chunks, cells):
    """Of lazy arrays it was a KeyError, or left out without a word."""
    log = grid(3).where(grid(3)["model"] != "m1")
    log = log if cells else log.isel(lat=0, lon=0, drop=True)
    if chunks is not None:
        log = log.chunk({dim: size for dim, size in chunks.items() if dim in log.dims})
    with pytest.raises(LogError, match="model 'm1' has no losses .NaN everywhere., but 'm0' has"):
        log.cvci.summary()


def test_a_group_without_a_summary_is_named_with_the_call_that_omits_it():
    """Only interval and compare named it: "holdout needs at least two points"."""
    index = pd.MultiIndex.from_arrays([[*"xxxyyyz"], range(7)], names=["g", "point"])
    log = pd.DataFrame(np.random.default_rng(0).random((7, 2)), index, list("ab"))
    array = xr.DataArray(
        log.to_numpy(), dims=("point", "model"),
        coords={"model": list("ab"), "g": ("point", [*"xxxyyyz"])},
    )  # fmt: skip
    for given in (log, array, cvstats.Moments.of_log(log, by="g", pairs=True)):
        with pytest.raises(LogError) as caught:
            cvstats.summary(given, by="g")
        with pytest.raises(LogError) as expected:
            cvstats.interval(given, by="g")
        assert str(caught.value) == str(expected.value)
        assert "'z'" in str(caught.value)
    assert "log.drop(['z', …], level='g')" in str(caught.value)
    assert [*log.drop(["z"], level="g").cvci.summary(by="g")] == ["x", "y"]


def test_percents_are_not_multiplied_by_a_hundred():
    """An accuracy of 72.4 was called 7,240%, and a lead of 4.2 points 420 percentage points."""
    rng = np.random.default_rng(0)
    rows = [(m, k, float(rng.random() < p)) for m, p in (("a", 0.9), ("b", 0.6)) for k in range(99)]
    table = pd.DataFrame(rows, columns=["model", "point", "accuracy"])
    names = {"loss": "accuracy", "higher_is_better": True, "model": "model", "point": "point"}
    shares = cvstats.read_log(table, **names)
    percents = cvstats.read_log(table.assign(accuracy=100 * table["accuracy"]), **names)
    number = r"(?:The accuracy of a is|its accuracy is higher by)\s(\d[\d.]*)"
    found, expected = (re.findall(number, str(log.cvci.summary())) for log in (percents, shares))
    assert len(found) == 2
    assert found == expected
    assert "%" not in str(percents.cvci.summary()).replace("95%", "")


def stations(model_b: float = 0.3, *, hard: float = 10.0) -> xr.DataArray:
    """Two models at four stations; b is worse by the same amount at each, and w is hard."""
    rng = np.random.default_rng(0)
    a = rng.gamma(2.0, 1.0, size=(200, 4)) + np.array([hard, 0, 0, 0])
    b = a + model_b + 0.2 * rng.normal(size=a.shape)
    return xr.DataArray(
        np.stack([a, b]), dims=("model", "point", "station"),
        coords={"model": ["a", "b"], "station": list("wxyz")},
    )  # fmt: skip


@pytest.mark.parametrize("form", ["array", "dataset", "lazy", "transposed"])
@pytest.mark.parametrize("rows", [slice(None), slice(None, None, 3)], ids=["cell", "part"])
def test_the_mean_over_cells_is_of_the_same_losses_for_all_models(form, rows):
    """A model without losses in a hard cell was called better, though worse in every cell."""
    log = stations()
    log[1, rows, 0] = np.nan
    given = log.to_dataset("model") if form == "dataset" else log
    if form == "transposed":
        given = log.transpose("station", "point", "model")
    if form == "lazy":
        pytest.importorskip("dask", reason="the extra dask is not installed")
        given = log.chunk(station=2)
    found = cvstats.summary(given, missing="drop").sentences[0]
    cells = log.cvci.compare(missing="drop")["difference"]
    number = int(cells.notnull().sum())
    assert found.startswith(f"Averaged over {number} cells (station), a is better than b: its mean")
    lead = float(re.search(r"is lower by ([\d.]+) \(", found).group(1))
    assert lead == pytest.approx(-float(cells.mean()), abs=1e-3)
    if number == 3:
        expected = log.isel(station=slice(1, None)).cvci.summary().sentences[0]
        assert found == expected
        assert found == cvstats.summary(given).sentences[0]


@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_a_grid_without_losses_has_no_cells(missing):
    log = stations() * np.nan
    for given in (log, log.chunk(station=1)):
        assert str(given.cvci.summary(missing=missing)) == "No cell of this log has any losses."


def test_the_mean_over_cells_with_gaps_is_the_mean_of_the_cells():
    log = stations()
    log[:, ::3, 0] = np.nan
    log[:, :5] = np.nan  # no losses at these points
    found = log.cvci.summary(missing="drop")
    cells = log.cvci.interval(missing="drop")["estimate"].sel(model="a")
    one = log.sel(model="a").cvci.summary(missing="drop").sentences[0]
    mean = float(re.search(r"the mean loss of a is ([\d.]+) \(", one).group(1))
    assert mean == pytest.approx(float(cells.mean()), abs=5e-3)
    # The standard error is that of a sum of independent means of each cell.
    se = (
        np.sqrt(
            float(
                (log.sel(model="a").var("point", ddof=1) / log.sel(model="a").count("point")).sum()
            )
        )
        / 4
    )
    low, high = map(float, re.search(r"interval ([\d.]+) to ([\d.]+)", one).groups())
    assert (high - low) / 2 == pytest.approx(1.96 * se, rel=0.05)
    assert "one test set of 130 to 195 points;" in found.sentences[2]
    assert found.cautions["missing losses"].startswith(
        "85 evaluations in 4 of 4 cells were dropped for all models, because at least one model"
    )


def test_the_numbers_of_points_that_differ_between_cells():
    log = stations()
    log[0, 3, 1] = np.nan
    ends = {
        "200 points in 5-fold cross-validation": {"fold": ("point", np.arange(200) % 5)},
        "200 points from 40 sources": {"source": ("point", np.arange(200) // 5)},
    }
    for words, levels in ends.items():
        found = log.assign_coords(levels).cvci.summary(missing="drop").sentences[2]
        assert found.startswith(f"Each cell was measured on 199 to {words}; ")
    days = log.assign_coords(point=pd.date_range("2020-01-01", periods=200))
    found = days.cvci.summary(method="ordered", missing="drop").sentences[2]
    assert found.startswith("Each cell was measured on 199 to 200 points; ")


def test_too_many_tests_are_not_made(monkeypatch):
    monkeypatch.setattr("cvstats.reporting.verdict.MOST_TESTS", 10)
    _, first, _ = grid(3).cvci.summary().sentences
    assert first.startswith(
        "Among 20 cells (lat and lon), the lowest mean loss is that of m0 in 20"
    )
    assert "no test of the differences is available" in first
    _, first, _ = grid(3, shift=0.1).cvci.summary().sentences
    wins = list(map(int, re.findall(r"m\d in (\d+)", first)))
    assert wins == sorted(wins, reverse=True)
    assert len(wins) > 1


def test_models_that_cannot_be_compared_are_said_to_be():
    log = many(2)
    moments = cvstats.Moments.of_log(log)  # without pairs
    assert "2 models, but no test of the difference is available" in moments.summary().sentences[0]


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize(
    ("models", "what"), [(2, "difference is available, only its"), (3, "differences is available")]
)
def test_a_case_bootstrap_says_how_to_get_the_interval_of_a_difference(array, models, what):
    log = bootstrap_logs.case()
    log = log.assign(third=log["tree"] + 1).iloc[:, :models]
    first = (xr.DataArray(log, dims=["row", "model"]) if array else log).cvci.summary().sentences[0]
    assert f"no test of the {what}" in first
    call = first.rpartition(" ")[2].rstrip(".")
    intervals = eval(call, {"cvstats": cvstats, "log": log})
    assert len(intervals) == models * (models - 1) / 2
    assert intervals.attrs["method"] == "case_bootstrap"


def test_containers_agree():
    losses = pairs(0.1, models=3, long_name="CRPS", units="mm")
    expected = str(losses.cvci.summary())
    assert "mean CRPS" in expected
    assert " mm (95%" in expected
    array = losses.to_xarray().to_dataarray("model").assign_attrs(losses.attrs)
    shuffled = losses.sample(frac=1, random_state=0)
    shuffled.attrs = losses.attrs
    assert str(shuffled.cvci.summary()) == expected
    assert str(array.cvci.summary()) == expected
    assert str(array.chunk({"point": 50}).cvci.summary()) == expected
    moments = cvstats.Moments.of_log(losses, pairs=True)
    assert moments.summary(method="wald").text == losses.cvci.summary(method="wald").text


def test_a_frame_of_dask_is_delayed():
    frames = pytest.importorskip("dask.dataframe")
    losses = pairs(0.1)
    frame = frames.from_pandas(losses.reset_index(), npartitions=3)
    assert str(cvstats.summary(frame).compute()) == str(losses.cvci.summary())


@pytest.mark.parametrize(
    ("p", "alpha", "words"),
    [
        (0.0009, 0.05, "p < 0.001"), (0.001, 0.05, "p = 0.001"), (0.0009, 0.001, "p < 0.001"),
        (0.0994, 0.05, "p = 0.099"), (0.1, 0.05, "p = 0.10"),
        (0.12, 0.05, "p = 0.12"), (0.995, 0.05, "p = 0.99"), (0.9951, 0.05, "p > 0.99"),
        (0.0499, 0.05, "p = 0.0499"), (0.05, 0.05, "p = 0.050"), (0.0501, 0.05, "p = 0.050"),
        (0.099999, 0.1, "p = 0.099999"), (0.1, 0.1, "p = 0.10"),
    ],
)  # fmt: skip
def test_rounding_does_not_carry_p_across_a_limit(p, alpha, words):
    assert write_p_value(p, alpha) == words


def test_only_the_words_group_and_groups_become_sources():
    text = "for a new group of groups, grouped, and a difference between groups"
    named = "for a new source of sources, grouped, and a difference between groups"
    assert name_sources(text, {"by": "source"}) == named
    assert name_sources(text, {"by": "metric"}) == text


@pytest.mark.parametrize(
    ("models", "words"), [(1, "m0"), (2, "m0 and m1"), (4, "m0, m1, m2 and m3"),
                          (5, "m0, m1, m2 and 2 more")]
)  # fmt: skip
def test_up_to_four_models_are_named(models, words):
    assert list_names([f"m{k}" for k in range(models)]) == words


def test_names_with_commas_are_quoted_everywhere():
    """Candidates of a search are named by several parameters; alone they were not quoted."""
    draws = np.random.default_rng(0).random((60, 2))
    losses = pd.DataFrame(draws[:, [0, 0, 0]] + draws[:, [1]] * [0, 0, 1])
    losses.columns = ["C=1, gamma=1", "C=1, gamma=2", "C=2, gamma=1"]
    losses.index.name = "point"
    first, second, third = losses.columns
    words = f"'{first}' and '{second}' share the lowest mean loss of 3 models; '{third}' is "
    assert losses.cvci.summary().sentences[0].startswith(words)
    words = " ".join(losses[[second, third]].cvci.summary().sentences)
    assert words.startswith(f"'{second}' is better than '{third}': its mean loss is lower by ")
    assert f"The mean loss of '{second}' is " in words
    names = dict(list_facts(LogFacts(losses)))["models (3)"]
    assert names == f"'{first}', '{second}', '{third}'"


@pytest.mark.parametrize(
    ("models", "words"),
    [(5, ")."), (6, "; 1 more is in the table"), (7, "; 2 more are in the table")],
)
def test_up_to_four_differences_are_described(models, words):
    log = golden.losses(golden.k_fold().index, 1, [f"m{k}" for k in range(models)])
    sentence = cvstats.summary(log.cvci.difference(reference="m0")).sentences[0]
    assert sentence.count("95% interval") == 4
    assert words in sentence
    assert ("more" in sentence) == (models > 5)


@pytest.mark.parametrize(
    ("decimals", "words"), [(0, "25%"), (1, "25%"), (2, "25%"), (3, "25.4%"), (4, "25.37%")]
)
def test_a_percentage_has_two_decimals_less(decimals, words):
    scale = read_scale({"loss": "zero_one"}, {})
    assert scale.percent
    assert scale.value(0.2537, decimals) == words


def test_html_escapes_names():
    losses = pairs(n=20).rename(columns={"m0": "<script>", "m1": "a\x1b[31m"})
    page = losses.cvci.summary()._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<ul><li>" in page
    assert "\x1b" not in page
    assert "\x1b" not in str(losses.cvci.summary())
    assert "<ul>" not in pairs().cvci.summary()._repr_html_()


def test_a_log_without_an_answer_is_an_error():
    flat = pd.Series(np.arange(8.0), pd.Index(np.repeat([0, 1], 4), name="repetition"))
    with pytest.raises(LogError, match="no level 'point'"):
        flat.cvci.summary()
    with pytest.raises(LogError, match="alpha=2"):
        pairs().cvci.summary(alpha=2.0)
    with pytest.raises(LogError, match="seed=-1"):
        pairs().cvci.summary(seed=-1)


def test_the_command_prints_the_sentences(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "log.parquet"
    cvstats.save_log(pairs(), file)
    assert cli.main(["compare", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(cvstats.read_log(file).cvci.summary().text + "\n\nmodel - other")
    assert cli.main(["compare", str(file), "--reference", "m0"]) == 0
    assert capsys.readouterr().out.startswith("model - other")
    assert cli.main(["compare", str(file), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("model,other")
    assert isinstance(pairs().cvci.summary(), Summary)


@pytest.mark.parametrize("method", ["wald", "corrected_t", "cv_t", "naive"])
def test_a_method_by_name_gives_both_the_intervals_and_the_comparison(method):
    losses = pairs(0.06)
    words = losses.cvci.summary(method=method).sentences
    row = cvstats.compare(losses, method=method).iloc[0]
    assert f"95% interval {-row['upper']:.3f} to {-row['lower']:.3f}".replace("-", "−") in words[0]
    assert write_p_value(row["p_value"], 0.05) in words[0]
    own = cvstats.interval(losses["m0"], method=method).iloc[0]
    limits = re.search(r"\(95% interval ([\d.]+) to ([\d.]+)\), measured", " ".join(words)).groups()
    assert np.allclose(
        [float(limit) for limit in limits],
        own[["lower", "upper"]].to_numpy(dtype=float),
        atol=0.006,
    )
    with pytest.raises(LogError, match="method='wlad'"):
        losses.cvci.summary(method="wlad")


def test_each_label_of_a_level_has_a_summary():
    losses = pairs(levels=("source", "fold", "point"), n=400)
    losses = losses.rename_axis(["hospital", "fold", "point"])
    losses = losses[losses.index.get_level_values("hospital") < 5]
    found = losses.cvci.summary(by="hospital")
    assert list(found) == list(range(5))
    assert len(found) == 5
    alone = losses.xs(3, level="hospital", drop_level=False)
    assert str(found[3]) == str(alone.cvci.summary())
    assert f"hospital=3\n{found[3]}\n\nhospital=4\n" in str(found)
    assert "<h4>hospital=3</h4><p>" in found._repr_html_()
    array = (
        losses.droplevel("hospital").to_xarray().to_dataarray("model").stack(row=["fold", "point"])
    )
    array = array.dropna("row").reset_index("row")
    place = losses.reset_index().set_index(["fold", "point"])["hospital"]
    at = pd.MultiIndex.from_arrays([array["fold"].to_numpy(), array["point"].to_numpy()])
    array = array.assign_coords(hospital=("row", place.loc[at].to_numpy()))
    assert str(array.cvci.summary(by="hospital")[3]) == str(found[3])
    moments = cvstats.Moments.of_log(losses, by="hospital", pairs=True)
    assert moments.summary(by="hospital")[3].sentences == found[3].sentences
    with pytest.raises(LogError, match="no level 'hopsital'"):
        losses.cvci.summary(by="hopsital")


def test_tuples_are_labels_of_summaries():
    array = xr.DataArray(np.random.default_rng(0).random((40, 2)), dims=["point", "model"])
    site = np.empty(40, dtype=object)
    site[:] = [("north", row % 2) for row in range(40)]
    array = array.assign_coords(model=["a", "b"], site=("point", site))
    found = array.cvci.summary(by="site")
    assert list(found) == [("north", 0), ("north", 1)]
    alone = array.isel(point=slice(1, None, 2)).drop_vars("site")
    assert str(found[("north", 1)]) == str(alone.cvci.summary())


def test_several_metrics_are_summarized_one_by_one():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(200) % 5, range(200)], names=["fold", "point"])
    truth = rng.integers(0, 2, 200)
    preds = pd.DataFrame({"y": truth}, index)
    for name, gap in (("a", 0.5), ("b", 0.2)):
        preds[name] = np.clip(0.5 + gap * (truth - 0.5) + rng.normal(0, 0.2, 200), 0, 1)
    ask = {"truth": "y", "prediction": ["a", "b"], "folds": "pool"}
    log = cvstats.losses(preds, loss=["auc", "f1", "brier"], threshold=0.5, **ask)
    found = log.cvci.summary()
    assert list(found) == ["auc", "f1", "brier"]
    assert str(found) == str(log.cvci.summary(by="metric"))
    with pytest.raises(LogError, match="the groups by 'fold' split the cells"):
        cvstats.losses(preds, loss="auc", **ask).cvci.summary(by="fold")
    alone = cvstats.losses(preds, loss="auc", **ask).cvci.summary()
    assert found["auc"].sentences == alone.sentences
    assert "a is better than b: its Brier score is lower by" in found["brier"].sentences[0]
    array = log.rename_axis(columns=None).to_xarray()
    array.attrs = log.attrs
    assert str(array.cvci.summary()) == str(found)
    page = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", array.cvci.report()))
    for words in (
        "auc: a is better than b: its AUC is higher by",
        "f1: a is better than b: its F1 is higher by",
        "brier: a is better than b: its Brier score is lower by",
        "How high is the AUC? (auc)",
        "difference in AUC, 95%",
    ):
        assert words in page
    assert "median cell" not in page
    assert "adjusted for" not in page


def test_constant_candidates_are_no_caution_about_the_best():
    rng = np.random.default_rng(0)
    index = pd.RangeIndex(40, name="point")
    log = pd.DataFrame(rng.normal(3, 1, (40, 3)), index, ["a", "b", "c"])
    log["c"], log["d"], log["e"] = log["c"] + 3, 9.0, 9.0
    assert "zero variance" in cvstats.interval(log)["caution"]["d"]
    assert "zero variance" not in cvstats.summary(log).cautions
    best = log.assign(d=0.5)
    assert "zero variance" in cvstats.summary(best).cautions


def test_losses_that_are_left_out_are_a_caution():
    """A model without losses on its hard points was better, without a word."""
    losses = np.random.default_rng(0).gamma(2, 1, (100, 2))
    log = pd.DataFrame(losses, pd.RangeIndex(100, name="point"), ["a", "b"])
    log.loc[log["a"] > 2.5, "a"] = np.nan
    count = int(log["a"].isna().sum())
    pytest.importorskip("dask", reason="the extra dask is not installed")
    array = xr.DataArray(log, dims=("point", "model"))
    for given in (log, array, array.chunk()):
        found = cvstats.summary(given, missing="drop").cautions
        assert f"{count} evaluations were dropped" in found["missing losses"]
    moments = cvstats.Moments.of_log(log, pairs=True, missing="drop")
    assert "missing losses" in cvstats.summary(moments).cautions
    assert "missing losses" not in cvstats.summary(log.dropna()).cautions


def test_no_capital_in_the_middle_of_a_sentence():
    rng = np.random.default_rng(0)
    grid = xr.DataArray(
        rng.normal(size=(50, 3, 4)), dims=("point", "model", "cell"), coords={"model": list("abc")}
    )
    text = " ".join(str(grid.cvci.summary()).split())
    assert text.startswith("Averaged over 4 cells (cell), none of the 3 models")


def other_containers(log):
    """The same differences as an array, in chunks, and as moments."""
    whole = log.cvci.difference().dropna()
    levels = {name: ("point", log.index.get_level_values(name)) for name in log.index.names}
    array = xr.DataArray(log.to_numpy(), {"model": list(log), **levels}, dims=("point", "model"))
    yield whole
    for one in (array, array.chunk(point=50)):
        yield one.assign_attrs(log.attrs).cvci.difference()
    yield cvstats.Moments.of_log(whole)


@pytest.mark.parametrize("models", [2, 3])
@without_marks
def test_differences_are_described_and_not_ranked(models):
    pytest.importorskip("dask", reason="the extra dask is not installed")
    log = pairs(shift=-0.3, models=models)
    for differences in other_containers(log):
        found = cvstats.summary(differences)
        table = cvstats.interval(differences)
        target = "difference of two models in the average test error of the models trained in this"
        assert table.attrs["target"].startswith(target)
        assert f"for the {target} cross-validation" in found.sentences[-1]
        for word in ("advantage", "lowest", "better", "worse", "·", "('"):
            assert word not in found.text
        if models == 2:
            assert found.text.startswith("The difference in mean loss of m0 − m1 is 0.2")
            assert "it is statistically significant" in " ".join(found.text.split())
        else:
            assert re.match(
                r"The difference in mean loss is 0.\d+ for m0 − m1 \(95% interval .*\), "
                r"0.\d+ for m0 − m2 \(95% interval .*\) and 0.\d+ for m1 − m2 \(95% interval ",
                found.sentences[0],
            )
    differences = log.cvci.difference()
    rows = dict(list_facts(LogFacts(differences)))
    assert rows[f"differences ({differences.shape[1]})"].startswith("m0 − m1")
    page = cvstats.report(differences)
    assert "Which model is better?" not in page
    assert "best first" not in page
    assert cvstats.diagnose(pairs(models=7).cvci.difference()).empty


@pytest.mark.parametrize("reference", ["m0", None])
@pytest.mark.parametrize("make", [pd.DataFrame, xr.DataArray, xr.Dataset, "grid"])
def test_differences_name_both_models_in_every_container(make, reference):
    frame = pairs(models=3).rename_axis(columns="model")
    log = grid(models=3) if make == "grid" else xr.DataArray(frame)
    if make in (pd.DataFrame, xr.Dataset):
        log = frame if make is pd.DataFrame else log.to_dataset("model")
    differences = log.cvci.difference(reference=reference)
    names = ["m1 − m0", "m2 − m0"] if reference else ["m0 − m1", "m0 − m2", "m1 − m2"]
    facts, cells = dict(list_facts(LogFacts(differences))), ", 20 cells" if make == "grid" else ""
    assert facts[f"differences ({len(names)})"] == ", ".join(names)
    assert facts.get("cells of each difference", "") == ("20" if cells else "")
    assert repr(differences.cvci).endswith(f" {len(names)} differences{cells}>")
    first, *rest = differences.cvci.summary().sentences
    assert re.findall(r"m\d − m\d", first) == names
    if cells:
        below = "below 0 in 0 and above 0 in 20" if reference else "below 0 in 20 and above 0 in 0"
        each = "; ".join(f"{below} for {name}" for name in names)
        assert rest[0] == (
            f"Among 20 cells (lat and lon), the difference in mean loss is significantly {each} "
            f"(95% intervals, adjusted for {20 * len(names)} intervals)."
        )


def test_a_difference_of_scores_is_counted_on_the_side_of_the_score():
    log = grid(models=3).assign_attrs(metric="accuracy", orientation="1 - score")
    gaps = log.cvci.difference(reference="m0")
    gaps[{"lat": 0, "lon": 0}] = 0.0
    counted = gaps.cvci.summary().sentences[1]
    assert "the difference in accuracy is significantly below 0 in 19 and above 0 in 0" in counted


@pytest.mark.parametrize(
    ("method", "levels", "words"),
    [
        ("nested_cv", ["repetition", "outer"],
         "the AUC of the model fitted to all the data (the same interval is used for the expected "
         "AUC)"),
        ("corrected_t", ["repetition"],
         "the expected AUC of models trained on sets of this size"),
    ],
)  # fmt: skip
def test_the_target_of_a_score_names_the_score(method, levels, words):
    rng = np.random.default_rng(0)
    names = [*levels, "point"]
    index = pd.MultiIndex.from_product([range(4)] * len(levels) + [range(60)], names=names)
    point = index.get_level_values("point")
    log = pd.DataFrame({"y": point % 2, "a": rng.random(len(index)), "fold": point // 15}, index)
    log = cvstats.losses(log.set_index("fold", append=True), truth="y", prediction="a", loss="auc")
    assert dict(list_facts(LogFacts(log)))["folds"] == "4, with 15 points each"
    assert log.cvci.summary(method=method).sentences[-1] == f"The interval is for {words}."


def test_facts_of_a_score_name_the_average_and_the_positive_class():
    rng = np.random.default_rng(0)
    for classes, options, row in (
        (["no", "yes"], {"positive": "yes"}, ("positive class", "yes")),
        (["a", "b", "c"], {"average": "macro"}, ("average over classes", "macro")),
    ):
        truth, guess = rng.choice(classes, (2, 90))
        log = pd.DataFrame({"y_true": truth, "m": guess}).rename_axis("point")
        losses = cvstats.losses(log, prediction="m", loss="f1", **options)
        for form in (losses, losses.to_xarray().assign_attrs(losses.attrs)):
            assert row in list_facts(LogFacts(form))


def test_the_loss_of_a_log_has_the_name_of_its_metric():
    log = pd.DataFrame(
        {"y": np.arange(40.0), "a": np.arange(40.0) ** 1.1, "fold": np.arange(40) % 4}
    )
    log = log.rename_axis("point").set_index("fold", append=True)
    for loss, words in {"rmse": "RMSE", "squared_error": "squared error", "r2": "R2"}.items():
        rows = dict(list_facts(LogFacts(cvstats.losses(log, truth="y", prediction="a", loss=loss))))
        kind = "score" if loss == "r2" else "loss"
        assert rows[kind] == f"{words}, {'higher' if loss == 'r2' else 'lower'} is better"


@without_marks
def test_a_log_read_from_one_column_has_no_name(tmp_path):
    """Its Series is named after the loss, which is not shown as the name of a model."""
    path = tmp_path / "scores.csv"
    scores = np.arange(100) % 3 > 0
    pd.DataFrame({"point": range(100), "acc": scores.astype(int)}).to_csv(path, index=False)
    log = cvstats.read_log(path, loss="acc", higher_is_better=True)
    assert log.name == "1 - acc"
    facts = LogFacts(log)
    assert dict(list_facts(facts))["models (1)"] == "(no name)"
    assert facts.name_model(0) == ""
    page = tmp_path / "page.html"
    log.cvci.report(page)
    assert "1 - acc" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("lazy", [False, True])
@without_marks
def test_cells_of_a_stacked_dimension(lazy):
    """Such as land points: each cell has one label, and its area is known from its latitude."""
    rng = np.random.default_rng(0)
    grid = xr.DataArray(
        rng.gamma(2, 1, (2, 60, 3, 4)), dims=("model", "point", "lat", "lon"),
        coords={"model": ["a", "b"], "lat": [-60.0, 0, 60], "lon": np.arange(4) * 90.0},
    )  # fmt: skip
    stacked = grid.stack(cell=("lat", "lon"))
    found = cvstats.summary(stacked.chunk(point=20) if lazy else stacked)
    wanted = cvstats.summary(grid)
    text = " ".join(found.text.split())
    assert text.replace("(cell", "(lat and lon") == " ".join(wanted.text.split())
    assert found.cautions.keys() == wanted.cautions.keys()
    land = stacked.isel(cell=[0, 3, 4, 7, 9])
    assert "of 5 cells (cell" in " ".join(str(land.cvci.summary()).split())
    assert "lat=-60.0 · lon=0.0" in cvstats.to_apa(land.cvci.interval())
    assert lazy or cvstats.report(land)


@pytest.mark.parametrize("container", ["series", "frame", "array"])
def test_two_logs_of_one_model_each(container):
    """Both models of their difference are named, except by arrays, whose names are of losses."""
    one, two = (many(2).droplevel("fold")[[name]] for name in many(2))
    if container != "frame":
        one, two = one.squeeze(), two.squeeze()
    if container == "array":
        one, two = one.to_xarray(), two.to_xarray()
    whose = " of model_0 − model_1" if container != "array" else ""
    words = f"The difference in mean loss{whose} is −0.0"
    assert cvstats.difference(one, two).cvci.summary().text.startswith(words)


@pytest.mark.parametrize("form", ["array", "dataset", "lazy"])
@pytest.mark.parametrize("number", [0, 1, 12])
def test_cells_with_losses_of_one_model_are_not_compared(form, number):
    """Those cells were counted, and adjusted for: "in 12 of 20 cells, adjusted for 20"."""
    log = grid()
    shared = xr.zeros_like(log["lat"] + log["lon"], dtype=bool)
    shared.to_numpy().ravel()[:number] = True
    log = log.where(shared | ((log["model"] == "m0") == (log["lat"] < 2)))
    tests = int(log.cvci.compare()["p_value"].notnull().sum())
    given = log.to_dataset("model") if form == "dataset" else log
    if form == "lazy":
        pytest.importorskip("dask", reason="the extra dask is not installed")
        given = log.chunk(lat=2)
    found = cvstats.summary(given).sentences
    assert tests == number
    if not number:
        assert found[0] == (
            "Among 20 cells (lat and lon), the lowest mean loss is that of m0 in 10 and m1 in 10; "
            "no test of the differences is available."
        )
        return
    cells, plural = f"{number} cells (lat and lon)", "s" * (number > 1)
    assert found[0].startswith(f"Averaged over {number} cells (lat and lon, weighted by area), m0")
    assert f" of {cells}, and m1 in " in found[1]
    assert found[1].endswith(f", adjusted for {number} comparison{plural}.")


def predictions(n=300) -> pd.DataFrame:
    """Probabilities of two models in five folds of whole sources, each with 25 points."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    table = {"y_true": truth, "a": (rng.random(n) + truth) / 2, "b": (rng.random(n) + truth) / 2}
    return pd.DataFrame(table, pd.MultiIndex.from_arrays(
        [np.arange(n) // 25 % 5, np.arange(n) // 25, np.arange(n)],
        names=["fold", "source", "point"],
    ))  # fmt: skip


def test_average_precision_is_not_called_average_average_precision():
    log = cvstats.losses(predictions().droplevel("source"), prediction=["a", "b"],
                         loss="average_precision", folds="pool")  # fmt: skip
    found = str(log.cvci.summary()).replace("\n", " ")
    assert "are for the average precision of the models trained in this cross-validation" in found
    for result in (log.cvci.interval(), log.cvci.compare()):
        assert "average average" not in cvstats.as_scores(result).attrs["target"]


def test_targets_of_differences_are_named_only_if_there_are_some():
    rng = np.random.default_rng(0)
    parts = {}
    for repetition in range(4):  # whose folds differ, and in each of them b is shifted
        part = predictions(240).reset_index()
        part["source"] = part["point"] // 10
        part["fold"] = rng.permutation(24)[part["source"]] % 5
        part["b"] = (part["a"] + 0.3 * rng.normal(size=5)[part["fold"]]).clip(0.01, 0.99)
        parts[repetition] = part.set_index(["fold", "source", "point"])
    both = pd.concat(parts, names=["repetition"])
    for loss, named in (("calibration_intercept", False), ("brier", True)):
        log = cvstats.losses(both, prediction=["a", "b"], loss=loss)
        words = " ".join(log.cvci.summary().sentences)
        assert ("those of differences are for" in words) == named


def test_a_group_in_one_fold_is_one_test_set():
    log = pd.DataFrame(
        np.random.default_rng(0).random((120, 1)), columns=["a"],
        index=pd.MultiIndex.from_product([range(2), range(60)], names=["repetition", "point"]),
    )  # fmt: skip
    log["fold"] = np.repeat([0, 1], 60)
    log = log.set_index("fold", append=True)
    assert "on one test set of 60 points, evaluated 2 times" in " ".join(
        log.cvci.summary(method="wald").sentences
    )


def test_a_guarantee_names_sources_in_singular_and_plural():
    page = cvstats.losses(predictions(), prediction=["a", "b"], loss="brier").cvci.report()
    assert "if they are independent and no source is in both training and test folds" in page
