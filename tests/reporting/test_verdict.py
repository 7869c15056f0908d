"""The verdict over several models: one procedure, whose interval and p-value agree."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import cvstats
from cvstats.facts import LogFacts
from cvstats.formatting import result_frame, sentences_in
from cvstats.recommend import group_interval
from cvstats.reporting.page import Grid, describe_method, make_report
from cvstats.reporting.verdict import Verdict, split_alpha

DESIGNS = ("test set", "folds", "repeated", "seeds", "sources", "whole sources", "splits", "scores",
           "cells")  # fmt: skip
KINDS = ("normal", "skewed", "right or wrong", "auc", "f1")
NUMBER = r"[−+]?[\d,.]+"


def levels_of(design, n, rng):
    """The levels of a log of so many points in each repetition, and how many repetitions."""
    folds = np.arange(n) % 5
    points = np.arange(n)
    if design in ("test set", "scores"):
        return {"point": points}
    if design == "sources":
        return {"source": points % 9, "point": points}
    if design == "whole sources":
        return {"fold": points % 15 % 5, "source": points % 15, "point": points}
    if design in ("folds", "cells"):
        return {"fold": folds, "point": points}
    if design == "seeds":
        return {"repetition": np.repeat(range(3), n), "point": np.tile(points, 3)}
    if design == "repeated":
        return {
            "repetition": np.repeat(range(3), n),
            "fold": np.concatenate([rng.permutation(folds) for _ in range(3)]),
            "point": np.tile(points, 3),
        }
    drawn = [rng.permutation(2 * n)[: n // 4] for _ in range(12)]
    return {"repetition": np.repeat(range(12), n // 4), "point": np.concatenate(drawn)}


def make_log(seed):
    """A random log: a design, a kind of losses, and 2 to 12 models that may be similar."""
    rng = np.random.default_rng(seed)
    design, kind = str(rng.choice(DESIGNS)), str(rng.choice(KINDS))
    models, n = int(rng.integers(2, 13)), int(rng.choice([24, 60, 150]))
    if design in ("scores", "splits", "seeds", "sources", "cells") and kind in ("auc", "f1"):
        kind = "skewed"
    index = pd.MultiIndex.from_frame(pd.DataFrame(levels_of(design, n, rng)))
    point = index.get_level_values("point").to_numpy()
    shared = rng.normal(size=2 * n)[point]
    shift = rng.choice([0.0, 0.0, 0.3, 1.0]) * rng.random(models)
    noise = rng.choice([0.2, 1.0]) * rng.normal(size=(len(index), models))
    names = [f"m{k}" for k in range(models)]
    if kind in ("auc", "f1"):
        truth = (shared > 0).astype(int)
        scores = 1 / (1 + np.exp(-(shared[:, None] * rng.choice([0.2, 2]) + noise - shift)))
        table = pd.DataFrame(scores if kind == "auc" else scores > 0.5, index, names)
        table = table.astype(float if kind == "auc" else int).assign(y=truth)
        return cvstats.losses(table, truth="y", prediction=names, loss=kind, folds="pool")
    values = shared[:, None] + noise + shift
    values = {"normal": values, "skewed": values**2, "right or wrong": 1.0 * (values > 1)}[kind]
    losses = pd.DataFrame(values, index, names)
    if design == "splits":
        losses.attrs["n_train"] = 2 * n - n // 4
    if design == "scores":
        losses = losses.groupby(np.arange(n) % 10).mean().rename_axis("fold")
        losses.attrs = {"holds": "scores", "n_train": 9 * n // 10, "n_test": n // 10}
    if design == "cells":
        cells = rng.choice([2, 3])
        return xr.DataArray(
            losses.to_numpy().T[:, None] + rng.normal(0, 0.5, (models, cells, n)),
            dims=["model", "lead", "point"],
            coords={"model": names, "lead": range(cells), "fold": ("point", np.arange(n) % 5)},
        )
    return losses


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def check_verdict(seed):
    """Intervals exclude 0 exactly where p < alpha: of all pairs, and in the sentences."""
    losses = make_log(seed)
    verdict = Verdict(LogFacts(losses), 0.05, 0)
    for part in (verdict, verdict.whole):
        pairs = None if part is None else part.pairs
        if part is not None:
            assert pairs is not None
            known = ~np.isnan(pairs.p)
            away = (pairs.lower > 0) | (pairs.upper < 0)
            assert (away == (pairs.p < 0.05))[known].all()
            assert not (pairs.clear & pairs.narrow).any()
    found, words = 0, cvstats.summary(losses)
    for sentence in words.sentences:
        for low, high, p in re.findall(
            rf"interval ({NUMBER}) to ({NUMBER}), p [=<>] ([\d.]+\d)", sentence
        ):
            found += 1
            excluded = number(low) > 0 or number(high) < 0
            assert excluded == (number(p) < 0.05), sentence
            assert excluded == ("not statistically" not in sentence and "same" not in sentence
                                and "share" not in sentence), sentence  # fmt: skip
    check_report(losses, words)
    check_advice(losses, words)
    return found


def check_report(losses, words):
    """The report has the sentences of the summary, and tables that agree with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cvstats.reporting.page.draw_svg", lambda *_: "")
        report = make_report(LogFacts(losses), 0.05, 0)
    assert report.sentences == words.sentences
    assert report.cautions == list(words.cautions.values())
    for section in report.sections:
        for part in section.parts:
            if isinstance(part, Grid) and part.heads[:3] == ["difference", "lower", "upper"]:
                if part.heads[3] not in ("p", "adj. p"):
                    continue
                for _, (_, low, high, p, *_) in part.rows:
                    if number(low) and number(high) and number(p.strip("<")) != 0.05:
                        excluded = number(low) > 0 or number(high) < 0
                        assert excluded == (number(p.strip("<")) < 0.05), (low, high, p)


def check_advice(log, words):
    """Every call that an advice of the summary or of the diagnosis names runs on this log."""
    advice = [*words.advice.values(), *cvstats.diagnose(log)["advice"]]
    for code in {code for text in advice for code in CODE.findall(text)}:
        assert len(eval(code, {"log": log})), code


CODE = re.compile(r"log\.cvci\.\w+\([^()]*\)")


SEEDS = (0, 1, 4, 8, 9, 11, 12, 14, 20, 21, 23)
"""Logs of each design."""
CLOSE = (1044, 1080, 1087, 1122, 1252, 1273)
"""Logs whose leads are significant by themselves and not among all pairs."""


@pytest.mark.parametrize("seed", [*SEEDS, *CLOSE])
def test_an_interval_excludes_zero_exactly_where_p_is_below_alpha(seed):
    assert check_verdict(seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_intervals_agree_with_p_values_in_many_logs(start):
    assert all([check_verdict(1000 + start + at) > 0 for at in range(50)])


@pytest.mark.parametrize("models", [2, 11])
def test_equal_models_are_tied(models):
    runs, wrong = 40, 0
    index = pd.MultiIndex.from_arrays([np.arange(100) % 5, range(100)], names=["fold", "point"])
    for run in range(runs):
        rng = np.random.default_rng([run, models])
        losses = pd.DataFrame(
            rng.exponential(size=(100, 1)) + rng.normal(size=(100, models)), index
        )
        wrong += not Verdict(LogFacts(losses), 0.05, run).tied.all()
    assert wrong <= 6  # of 40 at 5%: exceeded in 1.4% of seeds


def test_a_model_beaten_by_another_than_the_best_is_not_tied():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(200) % 5, range(200)], names=["fold", "point"])
    base = rng.normal(10, 1, 200)
    losses = pd.DataFrame(
        {"wild": rng.normal(0, 5, 200), "a": base, "b": base + 0.3 + rng.normal(0, 0.1, 200)}, index
    )  # fmt: skip
    losses["wild"] += 9.9 - losses["wild"].mean()
    words = losses.cvci.summary().sentences[0]
    assert words.startswith("wild has the lowest mean loss of 3 models, but its advantage of ")
    assert " over a is not statistically significant (" in words
    assert words.endswith("adjusted for 3 comparisons); b is significantly worse.")


# --- no verdict against its own caution -----------------------------------------------------------


def dated_pair(shift, seed=1, n=365):
    """Two models of a daily series whose differences last for days."""
    rng = np.random.default_rng(seed)
    gap = np.zeros(n)
    for day in range(1, n):
        gap[day] = 0.8 * gap[day - 1] + rng.normal()
    dates = pd.date_range("2024-01-01", periods=n, name="point")
    base = rng.exponential(10, n)
    return pd.DataFrame({"a": base, "b": base + gap - gap.mean() + shift}, dates)


def test_the_verdict_uses_the_method_that_the_caution_calls_for():
    losses = dated_pair(0.25)
    plain = losses.cvci.compare().iloc[0]
    assert plain["p_value"] < 0.05
    assert "serial dependence" in plain["caution"]
    ordered = losses.cvci.compare(method="ordered").iloc[0]
    assert ordered["p_value"] > 0.05
    words = losses.cvci.summary()
    ratio = (ordered["upper"] - ordered["lower"]) / (plain["upper"] - plain["lower"])
    assert "is not statistically significant" in words.sentences[0]
    assert (
        f"p = {ordered['p_value']:.3f}, using ordered because of serial dependence: {ratio:.1f} "
        in (words.sentences[0])
    )
    assert "serial dependence" not in words.cautions
    assert words.sentences[2].startswith("The intervals of models are for the error of the trained")
    assert "and those of differences are for the long-run mean loss" in words.sentences[2]
    assert "is better" in losses.cvci.summary(method="holdout").sentences[0]
    other = losses.assign(c=losses["a"] + np.random.default_rng(1).normal(size=len(losses)))
    assert (
        "and some of those of differences are for the long-run" in other.cvci.summary().sentences[2]
    )
    dependent = losses["b"] - losses["a"]
    dependent.iloc[3] = np.nan
    said = " ".join(dependent.cvci.summary(missing="drop").sentences)
    assert "using ordered because of serial dependence), measured on one test set of " in said
    assert f"set of {len(losses) - 1} points." in said
    clear = dated_pair(2.0).cvci.summary().sentences[0]
    assert clear.startswith("a is better than b")
    assert "using ordered" in clear


@pytest.mark.parametrize("models", [1, 2])
def test_a_target_is_judged_by_the_method_that_the_caution_calls_for(models):
    """Intervals whose misses last for days were judged as if days were independent."""
    rng = np.random.default_rng(4)
    level = np.convolve(rng.normal(size=419), np.ones(20) / 20**0.5, mode="valid")
    days = pd.date_range("2024-01-01", periods=400, name="point")
    forecasts = pd.DataFrame({"y_true": level, "lower": -1.4, "upper": 1.4}, days)
    columns = {str(model): ["lower", "upper"] for model in range(models)}
    inside = cvstats.losses(forecasts, prediction=columns, loss="coverage", level=0.9)
    found = inside.cvci.ordered(alpha=split_alpha(0.05, models)).iloc[0]
    words = inside.cvci.summary().sentences
    assert f" {found['lower']:.3f} to {found['upper']:.3f}" in words[0]
    assert "using ordered because of serial dependence), not significantly " in words[0]
    named = inside.cvci.summary(method="ordered").sentences
    assert named[0] == words[0].replace(", using ordered because of serial dependence", "")
    assert "measured on 400 points." in named[1]
    assert "below 0.9" in inside.cvci.summary(method="holdout").sentences[0]


def test_a_search_of_one_partition_is_judged_by_what_allows_for_it():
    rng = np.random.default_rng(4)
    index = pd.MultiIndex.from_arrays([np.arange(300) % 10, range(300)], names=["fold", "point"])
    base = rng.exponential(size=300)
    losses = pd.DataFrame({"a": base, "b": base + rng.normal(0.003, 0.02, 300)}, index)
    assert "unstable difference" in losses.cvci.compare()["caution"].item()
    corrected = losses.cvci.compare(method="refit_corrected").iloc[0]
    words = losses.cvci.summary().sentences[0]
    assert f"p = {corrected['p_value']:.2f}" in words or f"p = {corrected['p_value']:.3f}" in words
    assert "widened because of the models' similarity" in words


def test_a_verdict_is_withheld_where_no_method_serves(monkeypatch):
    losses = dated_pair(0.6)
    plain = losses.cvci.compare().iloc[0]
    assert plain["p_value"] < 0.05
    monkeypatch.setattr("cvstats.core.cautions.Caution.instead", ())
    words = losses.cvci.summary().sentences[0]
    assert "is better" not in words
    assert "p = " not in words
    assert "p < " not in words
    assert "no method accounts for serial dependence" in words


def test_the_error_of_a_selected_model_accounts_for_the_selection():
    rng = np.random.default_rng(0)
    losses = pd.DataFrame(rng.exponential(size=(200, 20)), pd.RangeIndex(200, name="point"))
    words = losses.cvci.summary()
    found = losses.cvci.winner(rng=0).iloc[0]
    assert (
        f"interval {found['lower']:.3f} to {found['upper']:.3f}, using winner" in words.sentences[1]
    )
    assert "selected model" in set(losses.cvci.interval()["caution"])
    assert "selected model" not in words.cautions  # the interval of winner accounts for it


def test_sidak_takes_the_student_step():
    """Of 210 equal models with 40 points the smallest p is below .05 in 7% of logs at most."""
    runs, wrong = 30, 0
    index = pd.MultiIndex.from_arrays([np.arange(40) % 5, range(40)], names=["fold", "point"])
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        losses = pd.DataFrame(rng.normal(size=(40, 210)) + 3 * rng.normal(size=(40, 1)), index)
        wrong += not Verdict(LogFacts(losses), 0.05, run).tied.all()
    assert wrong <= 4


@pytest.mark.parametrize("loss", ["auc", "zero_one"])
def test_a_method_that_replaces_the_default_has_its_limits_as_a_default(loss):
    """Perfect predictions had an AUC of 1 with limits of 1, if sources were split by folds."""
    points, random = np.arange(120), np.random.default_rng(3).random(120)
    table = pd.DataFrame({"point": points, "source": points % 9, "y": points % 4 == 0}).astype(int)
    table["a"], table["b"] = table["y"], (table["y"] ^ (random < 0.1)).astype(int)
    options = {"truth": "y", "prediction": ["a", "b"], "loss": loss}
    options |= {"folds": "pool"} if loss == "auc" else {}
    split, whole = (
        cvstats.losses(table.assign(fold=fold).set_index(["fold", "source", "point"]), **options)
        for fold in (points % 4, points % 3)
    )
    verdict = Verdict(LogFacts(split), 0.05, 0)
    limits = ["estimate", "lower", "upper", "se"]
    for found in (verdict.intervals, group_interval(LogFacts(split), alpha=0.05)[1]):
        assert found.attrs["method"] == "clustered"
        assert found["upper"].gt(found["lower"]).all()
        pd.testing.assert_frame_equal(found[limits], whole.cvci.interval()[limits])


@pytest.mark.parametrize("loss", ["auc", "splits"])
def test_limits_by_sidak_have_the_pseudo_errors_of_their_tests(loss):
    """Limits of AUC and of error rates over random splits excluded 0 where p was .25."""
    rng = np.random.default_rng(3)
    index = pd.MultiIndex.from_frame(pd.DataFrame(levels_of("splits", 60, rng)))
    scores = rng.random((len(index), 3))
    losses = pd.DataFrame(1.0 * (scores < 0.1), index, list("abc"))
    losses.attrs["n_train"] = 105
    if loss == "auc":
        table = pd.DataFrame(scores[:60], pd.RangeIndex(60, name="point"), list("abc"))
        table["y"] = np.arange(60) % 4 == 0
        losses = cvstats.losses(table, truth="y", prediction=list("abc"), loss="auc")
    found = Verdict(LogFacts(losses), 0.05, 0).compare_by_sidak(None)
    half = (found["upper"] - found["difference"]) / abs(found["difference"])
    df = found.get("df", 59)
    wanted = stats.t.isf(split_alpha(0.05, 3) / 2, df)
    assert (half * abs(found["statistic"])).to_numpy() == pytest.approx(wanted)


def test_the_mean_over_cells_uses_the_method_that_the_cells_call_for(monkeypatch):
    """Random walks that cancel in the mean over twelve cells."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(0.3 * rng.normal(size=(200, 12)), axis=0)
    walk -= walk.mean(axis=1, keepdims=True)
    b = rng.normal(10, 1, walk.shape)
    a = b + walk + 0.5 * rng.normal(size=walk.shape)
    days = pd.date_range("2020-01-01", periods=200)
    grid = xr.Dataset(
        {name: (("point", "cell"), losses) for name, losses in {"a": a, "b": b}.items()},
        coords={"point": days},
    )
    verdict = Verdict(LogFacts(grid), 0.05, 0)
    assert verdict.whole.comparison.attrs["interval_method"] == "ordered"
    found = result_frame(verdict.switches["comparison"][0].before)["caution"]
    share = found.str.contains(verdict.switches["comparison"][0].caution.label, regex=False).mean()
    for few, method in [(share, "ordered"), (np.nextafter(share, 2), "holdout")]:
        monkeypatch.setattr("cvstats.formatting.MANY_CELLS", few)
        again = Verdict(LogFacts(grid), 0.05, 0)
        assert again.whole.comparison.attrs["interval_method"] == method
    monkeypatch.undo()
    cells, basis = grid.cvci.summary().sentences[1:3]
    assert "adjusted for 12 comparisons, using ordered because of serial dependence." in cells
    assert basis.startswith("Each cell was measured on one test set of 200 points; the ")
    independent = Verdict(LogFacts(grid.assign(a=grid["b"] + rng.normal(size=(200, 12)))), 0.05, 0)
    assert independent.whole.comparison.attrs["interval_method"] == "holdout"


@pytest.mark.parametrize(("correlated", "masked"), [(1, 0), (5, 0), (5, 70)])
def test_cells_keep_their_method_if_few_have_its_caution(correlated, masked):
    """Serial dependence in 1 of 30 cells, as by chance, changed the method and target of all."""
    rng = np.random.default_rng(0)
    losses = rng.normal(5, 1, (200, 30))
    losses[:, :correlated] += np.cumsum(0.3 * rng.normal(size=(200, correlated)), axis=0)
    losses = np.hstack([losses, np.full((200, masked), np.nan)])
    log = xr.DataArray(
        losses, {"point": pd.date_range("2024-01-01", periods=200)}, ("point", "cell")
    )
    found = Verdict(LogFacts(log), 0.05, 0).intervals
    assert found.attrs["method"] == ("holdout" if correlated == 1 else "ordered")
    if correlated == 1:
        flagged = cvstats.cautions(found).str.contains("serial dependence")
        assert flagged.values.tolist() == [True, *[False] * 29]
        words = log.cvci.summary().cautions["serial dependence"]
        assert words.endswith("This concerns 1 of 30 cells.")
        pair = xr.concat([log, log.mean() + 0 * log], pd.Index(["a", "b"], name="model"))
        for cells in (pair, pair.isel(cell=slice(2))):
            assert "using ordered for 1 of them because of serial" in cells.cvci.summary().text
    assert ("long-run" in log.cvci.summary().text) == (correlated == 5)


def test_few_points_are_judged_by_students_t():
    """With normal quantiles the better of two equal models was named in 19% of logs of 3 points."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(60):
        log = pd.DataFrame({"a": 5 + rng.random(3)}, pd.RangeIndex(3, name="point"))
        log["b"] = log["a"] + rng.normal(size=3)
        pairs = Verdict(LogFacts(log), 0.05, 0).pairs
        assert pairs.p[0, 0, 1] == pytest.approx(stats.ttest_rel(log["a"], log["b"]).pvalue)
        assert pairs.clear.any() == (pairs.p[0, 0, 1] < 0.05)
        wrong += pairs.clear.any()
    assert 0 < wrong <= 5
    assert ", by Student's t" in " ".join(str(log.cvci.summary()).split())
    zero_one = pd.DataFrame(
        {"a": [0.0, 1, 1, 0], "b": [1.0, 0, 0, 0]}, pd.RangeIndex(4, name="point")
    )
    assert "Student" not in str(zero_one.cvci.summary())


@pytest.mark.parametrize("joint", [True, False])
def test_equal_means_have_the_pseudo_errors_of_other_differences(joint):
    """Without them the limits of equal means were narrower than before the adjustment."""
    index = pd.MultiIndex.from_product([range(2), range(24)], names=["repetition", "point"])
    a, b = ((np.arange(48) % step == 0) * 1.0 for step in (8, 6))
    b[[0, 24]] = 0
    log = pd.DataFrame({"a": a, "b": b, "c": 1 - a}, index)
    level, verdict = split_alpha(0.05, 3), Verdict(LogFacts(log), 0.05, 0)
    options = {"adjust": "max-t", "rng": 0} if joint else {"adjust": None, "alpha": level}
    table = cvstats.compare(log, **options)
    assert table["difference"].iloc[0] == pytest.approx(0, abs=1e-15)
    table.iloc[0, table.columns.get_indexer(["difference", "statistic"])] = 0
    found = verdict.adjust_by_sidak(table)
    wider = found["upper"] - found["lower"] - (table["upper"] - table["lower"])
    assert (wider > 0).all()
    if not joint:
        quantiles = (few.isf(level / 2) for few in (stats.t(23), stats.norm))
        ratio = next(quantiles) / next(quantiles)
        assert found["upper"].iloc[0] == pytest.approx(table["upper"].iloc[0] * ratio)
        once = log.loc[0].assign(b=np.roll(log.loc[0, "a"], 1))  # an exact test, and its limits
        table = cvstats.compare(once, **options)
        found = Verdict(LogFacts(once), 0.05, 0).adjust_by_sidak(table)
        assert table.attrs["test"] == "exact"
        assert found["lower"].iloc[0] == table["lower"].iloc[0]


@pytest.mark.parametrize("container", ["frame", "array", "moments", "dask"])
def test_the_verdict_on_few_discordant_points_is_that_of_every_container(container):
    """A lazy array took the normal test: p = 0.030 and "the best of 3 models"."""
    i = np.arange(60)
    index = pd.MultiIndex.from_arrays([i % 5, i], names=["fold", "point"])
    log = pd.DataFrame({"a": i < 4, "b": i < 10, "c": i < 11}, index).astype(float)
    array = log.to_xarray().to_array("model")
    made = {"frame": log, "array": array, "moments": cvstats.Moments.of_log(log, pairs=True),
            "dask": array.chunk(point=20)}[container]  # fmt: skip
    text = " ".join(str(cvstats.summary(made)).split())
    assert "not statistically significant (95% interval 0.000 to 0.230, p = 0.091, Šidák" in text


def test_levels_of_several_intervals_are_those_of_sidak():
    assert split_alpha(0.05, 0) == split_alpha(0.05, 1) == 0.05
    for number in (2, 3, 10**6):
        assert (1 - split_alpha(0.05, number)) ** number == pytest.approx(0.95, rel=1e-9)


def test_each_caution_replaces_the_pairs_that_have_it():
    """Similar models have too narrow limits, and clusters are split between folds."""
    rng = np.random.default_rng(22)
    points = pd.DataFrame({"source": rng.integers(0, 30, 300), "point": range(300)})
    folds = [points.assign(repetition=r, fold=rng.permutation(300) % 5) for r in range(3)]
    log = pd.concat(folds, ignore_index=True)
    ill = (rng.random(300) < 0.3).astype(int)[log["point"]]
    risk = ill + rng.normal(size=300)[log["point"]] + rng.normal(0, 0.5, 30)[log["source"]]
    for model, noise in (("logit", 1), ("forest", 1), ("bad", 3)):
        log[model] = risk + rng.normal(0, noise, len(log))
    losses = cvstats.losses(
        log.assign(ill=ill).set_index(["repetition", "fold", "source", "point"]),
        truth="ill", prediction=["logit", "forest", "bad"], loss="auc", positive=1,
    )  # fmt: skip
    verdict = Verdict(LogFacts(losses), 0.05, 0)
    table, switches = verdict.comparison, verdict.switches["comparison"]
    assert [switch.method for switch in switches] == ["refit_corrected", "clustered"]
    first = switches[0].before
    width = {"wald": first["upper"] - first["lower"]}
    for switch in switches:
        flagged = first["caution"].str.contains(switch.caution.label)
        other = losses.cvci.compare(method=switch.method, adjust=None, alpha=split_alpha(0.05, 3))
        width[switch.method] = (other["upper"] - other["lower"]).where(flagged)
    widest = pd.DataFrame(width)
    assert set(widest.idxmax(axis=1)) == {"wald", "refit_corrected"}
    width_of_t = pytest.approx(widest.max(axis=1), rel=0.01)  # for normal quantiles
    assert (table["upper"] - table["lower"]).to_numpy() == width_of_t
    assert not table["caution"].str.contains("unstable difference|sources ignored").any()
    text = " ".join(str(losses.cvci.summary()).split())
    assert "using refit_corrected because the difference depends on the training points: " in text
    assert "times as wide as with wald); bad is significantly worse." in text
    assert "using clustered because some sources are split between folds), measured on" in text
    rows = dict(describe_method(verdict))
    assert rows["method of differences"] == (
        "wald; for differences with the caution 'unstable difference', the wider of wald and "
        "refit_corrected; for differences with the caution 'sources ignored', the wider of wald "
        "and clustered"
    )
    assert rows["guarantee of differences"].count("; of ") == 2


@pytest.mark.parametrize("cells", [0, 2])
def test_the_wider_limits_account_for_what_the_narrower_ones_account_for(cells):
    """Those of `clustered` ignore refits, but are wider than those of `refit_corrected`."""
    rng = np.random.default_rng(0)
    points = pd.DataFrame({"source": rng.integers(0, 12, 100), "point": range(100)})
    log = pd.concat([points.assign(repetition=r, fold=rng.permutation(100) % 5) for r in range(3)])
    log["a"] = rng.normal(size=300)
    of_source = rng.normal(0, 0.4, 12)[log["source"]]
    log["b"] = log["a"] + of_source + rng.normal(0, 0.5, (3, 5))[log["repetition"], log["fold"]]
    losses = log.set_index(["repetition", "fold", "source", "point"])
    if cells:
        index = losses.index.to_frame(index=False)
        coords = {name: ("evaluation", index[name]) for name in index}
        losses = xr.DataArray(losses.to_numpy(), coords, ("evaluation", "model"))
        losses = losses.assign_coords(model=["a", "b"]).expand_dims(cell=cells)
    verdict = Verdict(LogFacts(losses), 0.05, 0)
    found = result_frame(verdict.comparison)
    [switch] = verdict.switches["comparison"]
    before = result_frame(switch.before)
    alone = result_frame(verdict.compare_by_sidak("clustered"))
    assert set(before["caution"]) == {"sources ignored"}
    assert set(alone["caution"]) == {"unstable difference, few clusters, sources across folds"}
    assert set(found["caution"]) == {"few clusters, sources across folds"}
    assert (found["upper"] > before["upper"] + 0.05).all()


def test_the_selected_model_has_the_interval_of_the_method_that_replaced_the_default():
    """That of points treated the 20 points of each source as independent."""
    rng = np.random.default_rng(0)
    source = np.repeat(range(40), 20)
    shared = rng.normal(size=40)[source] + rng.normal(size=800)
    index = pd.MultiIndex.from_arrays(
        [rng.permutation(800) % 5, source, range(800)], names=["fold", "source", "point"]
    )
    noise = rng.normal(0, 0.3, (800, 6))
    losses = pd.DataFrame(shared[:, None] + noise, index, [f"m{k}" for k in range(6)])
    verdict = Verdict(LogFacts(losses), 0.05, 0)
    assert "selected model" in sentences_in(verdict.intervals)
    found, wanted = verdict.winner, losses.cvci.winner(method="clustered", rng=0)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(wanted))
    by_points = losses.cvci.winner(rng=0)
    width = [float((table["upper"] - table["lower"]).iloc[0]) for table in (found, by_points)]
    assert width[0] > 2 * width[1]
    assert by_points["caution"].iloc[0] == "sources ignored"
    text = " ".join(str(losses.cvci.summary()).split())
    assert "using winner with clustered because it was selected among 6), measured on" in text
