"""Metrics of censored times: other programs, derivatives, methods, and the words of refusals."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal

import cvstats
from cvstats.errors import LogError
from cvstats.metrics import METRICS
from cvstats.metrics.metric import MetricOptions, Points

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "reference" / "forecasts.json").read_text())
}
KINDS = ["surv", "surv_ties"]


def data(kind):
    """The points of a case, with the risks of model a on a grid."""
    table = pd.DataFrame(CASES[f"{kind}_data"]["inputs"]).rename_axis("point")
    for at, time in enumerate(grid_of(kind)):
        table[f"r{at}"] = np.clip(table["a"] * time / 4, 0.01, 0.99)
    return table.assign(minus=-table["a"])


def grid_of(kind):
    return CASES[f"exact_se_{kind}"]["inputs"]["grid"]


def time_of(kind):
    return CASES[f"brier_{kind}"]["inputs"]["t"]


def lost(kind, loss, prediction, **options):
    return cvstats.losses(
        data(kind), "time", prediction, loss, event="event", folds="pool", **options
    )


def spread(losses):
    return math.sqrt(((losses - losses.mean()) ** 2).sum()) / len(losses)


def risks(kind):
    return {"a": [f"r{at}" for at in range(len(grid_of(kind)))]}


# --- other programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_brier_score_and_auc_as_riskregression_computes_them(kind):
    brier = lost(kind, "brier_at", ["a", "b"], at=time_of(kind)).mean()
    auc = 1 - lost(kind, "auc_at", ["a", "b"], at=time_of(kind)).mean()
    for found, case in ((brier, f"brier_{kind}"), (auc, f"auc_{kind}")):
        expected = CASES[case]["outputs"]
        for model in ("a", "b"):
            assert found[model] == pytest.approx(expected[model], rel=1e-9)
        assert found["b"] - found["a"] == pytest.approx(expected["delta"], rel=1e-9)


@pytest.mark.parametrize("loss", ["brier_at", "auc_at"])
def test_an_event_at_the_time_has_happened_by_then(loss):
    before, at = (lost("surv_ties", loss, "a", at=time) for time in (6.5, 6))
    np.testing.assert_array_equal(at, before)


@pytest.mark.parametrize("kind", KINDS)
def test_uno_as_the_r_package_survival_computes_it(kind):
    expected = CASES[f"uno_{kind}"]["outputs"]
    assert 1 - lost(kind, "uno", "minus").mean() == pytest.approx(expected["c"], rel=1e-9)
    assert 1 - lost(kind, "uno", "minus", at=6).mean() == pytest.approx(expected["c6"], rel=1e-9)


def test_without_ties_as_scikit_survival_computes_it():
    expected = CASES["sksurv"]["outputs"]
    for at, time in enumerate(grid_of("surv")):
        brier = lost("surv", "brier_at", f"r{at}", at=time)
        assert brier.mean() == pytest.approx(expected["brier"][at], rel=1e-9)
        auc = lost("surv", "auc_at", "a", at=time)
        assert 1 - auc.mean() == pytest.approx(expected["auc"][at], rel=1e-9)
    integrated = lost("surv", "integrated_brier", risks("surv"), at=grid_of("surv"))
    assert integrated["a"].mean() == pytest.approx(expected["ibs"], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_with_the_censoring_estimated(kind):
    expected = CASES[f"exact_se_{kind}"]["outputs"]
    at = time_of(kind)
    found = {
        "brier": lost(kind, "brier_at", "a", at=at), "auc": lost(kind, "auc_at", "a", at=at),
        "ibs": lost(kind, "integrated_brier", risks(kind), at=grid_of(kind))["a"],
        "uno": lost(kind, "uno", "minus"), "uno6": lost(kind, "uno", "minus", at=6),
    }  # fmt: skip
    for name, losses in found.items():
        assert spread(losses) == pytest.approx(expected[name], rel=1e-9)


# --- derivatives ----------------------------------------------------------------------------------

ASKED = {
    "brier_at": ("a", MetricOptions(at=3.0)), "auc_at": ("a", MetricOptions(at=3.0)),
    "uno": ("minus", MetricOptions()), "uno until 6": ("minus", MetricOptions(at=6.0)),
    "integrated_brier": (["r0", "r1", "r2", "r3"], MetricOptions(at=[1.0, 2.0, 3.0, 4.0])),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("asked", ASKED)
def test_influences_are_derivatives(asked, weighted, kind):
    columns, options = ASKED[asked]
    table = data(kind)
    time, event = table["time"].to_numpy(float), table["event"].to_numpy(bool)
    score = table[columns].to_numpy()
    score = score.round(1) if kind == "surv_ties" else score  # ties of scores as well
    weight = np.random.default_rng(0).uniform(0.5, 2, len(time)) if weighted else np.ones(len(time))
    weight[3] = 0.0 if weighted else 1.0
    metric = METRICS[asked.split()[0]]

    def value(w):
        return metric.influence(Points(time, score, weight=w, event=event), options)[0]

    phi = metric.influence(Points(time, score, weight=weight, event=event), options)[1]
    assert abs(weight @ phi) < 1e-12 * len(time)
    step = 1e-5
    for i in np.flatnonzero(weight)[::3]:
        up, down = weight.copy(), weight.copy()
        up[i] += step
        down[i] -= step
        slope = (value(up) - value(down)) / (2 * step) * weight.sum()
        assert phi[i] == pytest.approx(slope, abs=1e-7)


def test_without_censoring_they_are_the_plain_metrics():
    table = data("surv").assign(event=1)
    at = table["time"].sort_values().iloc[len(table) // 2]  # the time of a point
    table = table.assign(late=(table["time"] <= at).astype(int))
    brier = cvstats.losses(table, "time", "a", "brier_at", event="event", at=at)
    plain = cvstats.losses(table, "late", "a", "brier")
    np.testing.assert_allclose(brier, plain, atol=1e-14)
    auc = cvstats.losses(table, "time", "a", "auc_at", event="event", at=at)
    plain = cvstats.losses(table, "late", "a", "auc", ddof=0)
    np.testing.assert_allclose(auc, plain, atol=1e-13)
    limits = [cvstats.holdout(log)[["lower", "upper"]].to_numpy() for log in (auc, plain)]
    np.testing.assert_allclose(*limits, rtol=1e-12)
    uno = cvstats.losses(table, "time", "minus", "uno", event="event")
    plain = cvstats.losses(table, "time", "minus", "concordance", event="event")
    np.testing.assert_allclose(uno, plain, atol=1e-13)
    assert "depends on censoring" not in cvstats.holdout(plain)["caution"].item()


# --- methods and containers -----------------------------------------------------------------------


def study(kind="surv", folds=3):
    """A cross-validated study of two models, with sites."""
    table = data(kind).reset_index()
    table["fold"], table["source"] = table["point"] % folds, table["point"] % 15
    return table.set_index(["fold", "source", "point"])


def test_each_group_has_a_censoring_of_its_own():
    table = study().assign(sex=lambda t: np.where(np.arange(len(t)) % 2, "f", "m"))
    asked = {"event": "event", "at": 3.0, "folds": "pool"}
    log = cvstats.losses(table, "time", ["a", "b"], "brier_at", by="sex", **asked)
    found = cvstats.wald(log, by="sex")["estimate"]
    for sex, part in table.groupby("sex"):
        alone = cvstats.losses(part, "time", ["a", "b"], "brier_at", **asked).mean()
        np.testing.assert_allclose(found.xs(sex, level="sex"), alone, rtol=1e-12)
    gap = cvstats.wald(log.cvci.contrast(by="sex"))["estimate"]
    np.testing.assert_allclose(
        gap, found.xs("f", level="sex") - found.xs("m", level="sex"), rtol=1e-12
    )
    whole = cvstats.losses(table, "time", ["a", "b"], "brier_at", **asked)
    with pytest.raises(LogError, match=r"the groups by 'source' split the cells"):
        cvstats.wald(whole, by="source")


def test_a_grid_may_be_a_dimension_of_an_array():
    grid = grid_of("surv")
    table = data("surv")
    arrays = xr.Dataset(
        {
            "time": ("point", table["time"]), "event": ("point", table["event"]),
            "risk": (("point", "month"), table[risks("surv")["a"]]),
        },
        {"point": table.index, "month": grid},
    )  # fmt: skip
    log = cvstats.losses(
        arrays, "time", "risk", "integrated_brier", event="event", at=grid, member="month"
    )
    assert float(log.mean()) == pytest.approx(CASES["sksurv"]["outputs"]["ibs"], rel=1e-9)


def test_weights_count_a_point_as_often():
    table = data("surv_ties").assign(w=lambda t: np.arange(len(t)) % 3 + 1.0)
    twice = table.loc[table.index.repeat(table["w"].astype(int))].reset_index(drop=True)
    for loss, columns, at in (("brier_at", "a", 4), ("auc_at", "a", 4), ("uno", "minus", None)):
        options = {"event": "event", "at": at, "folds": "pool"}
        own = cvstats.losses(table, "time", columns, loss, weight="w", **options)
        copies = cvstats.losses(twice.rename_axis("point"), "time", columns, loss, **options)
        assert own.mean() == pytest.approx(copies.mean(), rel=1e-12)


def test_pairs_that_are_all_in_one_order_have_limits():
    table = data("surv")
    for sign, value in ((1, 1.0), (-1, 0.0)):
        table["best"] = sign * table["time"]
        log = cvstats.losses(table, "time", "best", "uno", event="event")
        result = cvstats.as_scores(cvstats.interval(log))
        assert result["estimate"].item() == value
        lower, upper = result[["lower", "upper"]].to_numpy()[0]
        assert (upper == 1 and 0.8 < lower < 1) if value else (lower == 0 and 0 < upper < 0.2)
        assert "zero variance" not in result["caution"].item()


def test_metrics_of_all_points_of_sources_without_folds_are_clustered():
    table = study().droplevel("fold")
    models = {"cox": "a", "forest": "b"}
    log = cvstats.losses(table, "time", models, "brier_at", event="event", at=3.0)
    result = log.cvci.interval()
    assert result.attrs["method"] == "clustered"
    assert result.attrs["reason"].startswith("a metric of all points, from 15 sources")
    pd.testing.assert_frame_equal(
        result.drop(columns="caution"), log.cvci.clustered().drop(columns="caution")
    )
    assert log.cvci.compare().attrs["interval_method"] == "clustered"
    assert "15 sources" in str(log.cvci.summary())


def test_results_name_the_time_of_a_metric():
    log = cvstats.losses(data("surv"), "time", "a", "auc_at", event="event", at=3.0)
    result = cvstats.as_scores(log.cvci.interval())
    assert result.attrs["at"] == 3
    assert "AUC at 3 = " in cvstats.to_apa(result)


def test_no_folds_are_advised_after_the_last_time():
    with pytest.raises(
        LogError, match=r"^AUC at 1e\+06 of .*an earlier time\)\. Expected a value in every cell\.$"
    ):
        cvstats.losses(study(), "time", "a", "auc_at", event="event", at=1e6)


def test_labels_of_events_are_asked_for_as_numbers():
    table = data("surv").assign(event=lambda t: t["event"].map({0: "alive", 1: "died"}))
    with pytest.raises(LogError, match=r"the event contains '\w+'\. Expected 1 for an event and 0"):
        cvstats.losses(table, "time", "a", "auc_at", event="event", at=3.0)


def test_probabilities_of_surviving_are_found_out():
    table = data("surv").assign(survives=lambda t: 1 - t["a"])
    log = cvstats.losses(table, "time", "survives", "auc_at", event="event", at=3.0)
    words = "the AUC at 3 is 0.283, below 1/2: do larger predictions mean surviving?"
    assert words in " ".join(log.cvci.diagnose()["finding"])
    assert "Caution, below chance: This AUC" in " ".join(str(log.cvci.summary()).split())
    assert "below chance" in log.cvci.interval()["caution"].item()


def test_harrells_c_warns_of_censored_times():
    log = cvstats.losses(data("surv"), "time", "minus", "concordance", event="event")
    result = cvstats.holdout(log)
    assert "depends on censoring" in result["caution"].item()
    assert "Use loss='uno'" in result.attrs["cautions"]["depends on censoring"]
    uno = cvstats.losses(data("surv"), "time", "minus", "uno", event="event")
    assert "depends on censoring" not in cvstats.holdout(uno)["caution"].item()


def test_custom_metrics_get_the_events():
    def with_weights(truth, prediction, weight, event):
        return np.average(event & (truth <= 3), weights=weight)

    def by_name(truth, prediction, *, event):
        return float(np.mean(event & (truth <= 3)))

    table = data("surv").iloc[:40]
    for function in (with_weights, by_name):
        log = cvstats.losses(table, "time", "a", metric=function, event="event")
        expected = ((table["time"] <= 3) & (table["event"] == 1)).mean()
        assert -log.mean() == pytest.approx(expected)
        assert np.ptp(log) > 0
        with pytest.raises(LogError, match="has a parameter for events. Pass the column"):
            cvstats.losses(table, "time", "a", metric=function)

    def optional(truth, prediction, *, event=None):
        return float(np.mean(truth if event is None else event))

    for event, column in ((None, "time"), ("event", "event")):
        log = cvstats.losses(table, "time", "a", metric=optional, event=event)
        assert -log.mean() == pytest.approx(table[column].mean())

    def plain(truth, prediction):
        return float(np.mean(truth))

    with pytest.raises(LogError, match="plain does not use event="):
        cvstats.losses(table, "time", "a", metric=plain, event="event")

    def own_loss(truth, risk):
        time, event = truth.T
        return np.where(event == 1, (1 - risk) ** 2, 0.0)

    log = cvstats.losses(table, ["time", "event"], "a", own_loss)
    assert log.iloc[0] == pytest.approx((1 - table["a"][0]) ** 2 * table["event"][0])


# --- refusals -------------------------------------------------------------------------------------

AT = {"event": "event", "at": 3.0}
REFUSALS = [
    ("brier_at", "a", {"at": 3.0}, {}, "brier_at needs the censoring of each time. Pass"),
    ("uno", "minus", {}, {}, "uno needs the censoring of each time"),
    ("brier_at", "a", {"event": "event"}, {}, "brier_at needs a time, but got at=None. Expected"),
    ("auc_at", "a", {"event": "event", "at": [1.0, 2.0]}, {}, "got at=[1.0, 2.0]. Expected a num"),
    ("auc_at", "a", {"event": "event", "at": -1}, {}, "auc_at needs a time, but got at=-1."),
    ("brier_at", "a", {"event": "event", "at": 99.0}, {},
     "no point is observed after 99 (use an earlier time)"),
    ("brier_at", "a", {"event": "event", "at": 0.001}, {},
     "no event occurred by 0.001 (use a later time)"),
    ("brier_at", "minus", AT, {}, "needs the probability of the event by a time, but a predict"),
    ("brier_at", "a", AT, {"time": -1.0}, "one of them is -1. Expected finite nonnegative times"),
    ("brier_at", "a", AT, {"event": 2}, "the event is 2.0 in row 0. Expected 1 for an event"),
    ("concordance", "minus", {"event": "event"}, {"event": 2}, "Competing events are not support"),
    ("integrated_brier", ["r0", "r1"], {"event": "event", "at": [2.0, 1.0]}, {},
     "needs at least two ascending times, but got at=[2.0, 1.0]"),
    ("integrated_brier", ["r0", "r1"], {"event": "event", "at": 1.0}, {}, "but got at=1.0"),
    ("integrated_brier", ["r0", "r1"], {"event": "event", "at": [1.0, 2.0, 3.0]}, {},
     "got 2 columns of predictions for 3 times. Expected the probability of the event by each of"),
    ("integrated_brier", ["r1", "r0"], {"event": "event", "at": [1.0, 2.0]}, {},
     "which cannot decrease, but it goes from 0.36655 to 0.183275. Expected"),
    ("brier", "a", {"at": 3.0}, {}, "censored times. Expected loss='brier_at', with event= and"),
    ("concordance", "minus", {"at": 3.0, "event": "event"}, {}, "times. Expected loss='uno', with"),
    ("brier_at", {"m": ["r0", "r1"]}, AT, {}, "model 'm' has 2 columns of predictions. Expected 1"),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "columns", "options", "changed", "words"), REFUSALS)
def test_refusals(loss, columns, options, changed, words):
    table = data("surv")
    for name, value in changed.items():
        table[name] = table[name].astype(float)
        table.loc[0, name] = value
    assert words in refusal(cvstats.losses, table, "time", columns, loss, **options)


def test_a_missing_time_or_event_is_a_missing_loss():
    for name in ("time", "event", "a"):
        table = data("surv").astype(float)
        table.loc[4, name] = np.nan
        log = cvstats.losses(table, "time", "a", "brier_at", event="event", at=3.0)
        assert np.flatnonzero(log.isna()).tolist() == [4]
        with pytest.raises(
            LogError, match="1 of 90 points lack a prediction, the truth or the event"
        ):
            cvstats.holdout(log)


def test_a_fold_without_cases_says_what_to_do():
    with pytest.raises(LogError, match=r"at fold=\d: no point is observed .*folds='pool'"):
        cvstats.losses(study(folds=30), "time", "a", "auc_at", event="event", at=9.0)
