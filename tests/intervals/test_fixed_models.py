"""Logs of models that were only tested, such as language models: nothing is advised about folds."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from rows import multi_index, product_index
from scipy import stats
from strategies import ROADS, by_row

import cvstats

LOSSES = 1 - cvstats.datasets.load("llm")

IN_MEMORY_OR_LAZY = [name for name in ROADS if name != "moments"]


def in_tasks(sizes):
    """The levels of tasks of these sizes, each of which numbers its own points."""
    return multi_index(
        source=np.repeat(range(len(sizes)), sizes), point=np.concatenate([*map(np.arange, sizes)])
    )


def tasks():
    """Three models on three tasks of unequal size, four answers to each question."""
    rng = np.random.default_rng(0)
    names = [f"{task}-{i}" for task, n in (("a", 200), ("b", 60), ("c", 400)) for i in range(n)]
    index = pd.MultiIndex.from_tuples(
        [(run, name[0], name) for run in range(4) for name in names],
        names=["repetition", "source", "point"],
    )
    hard = np.tile(rng.normal(size=len(names)), 4)[:, None]
    wrong = rng.random((len(index), 3)) < 1 / (1 + np.exp(hard + [0.5, 0.6, 1.0]))
    log = pd.DataFrame(wrong.astype(float), index, list("abc"))
    log.attrs = {"sources_are": "fixed", "loss": "1 - acc", "metric": "acc",
                 "orientation": "1 - score"}  # fmt: skip
    return log


@pytest.mark.parametrize("container", ROADS)
def test_passages_are_a_sample_and_no_folds(container):
    log = ROADS[container](LOSSES)
    result = log.cvci.interval() if container != "moments" else cvstats.interval(log)
    assert result.attrs["method"] == "clustered"
    assert result.attrs["reason"].startswith("one test set of 300 points from 60 sources")
    gaps = cvstats.compare(log).compute() if container == "lazy" else cvstats.compare(log)
    assert gaps.attrs["interval_method"] == "clustered"
    assert not cvstats.cautions(gaps).to_numpy().any()


def test_wald_is_for_new_points_from_the_same_sources_only_if_no_model_was_trained():
    flights = cvstats.datasets.load("flights").iloc[::10]
    trained = cvstats.losses(flights, prediction=flights.attrs["models"], loss="brier")
    targets = [cvstats.wald(log).attrs["target"] for log in (LOSSES, LOSSES.droplevel(1), trained)]
    assert ["from the same sources" in target for target in targets] == [True, False, False]


def test_the_summary_has_one_story():
    text = " ".join(str(LOSSES.cvci.summary()).split())
    assert "corrected_t" not in text
    assert "Caution" not in text
    assert "mean loss on new sources" in text
    assert LOSSES.cvci.diagnose().empty
    assert LOSSES.droplevel("source").cvci.diagnose().empty


@pytest.mark.parametrize("container", ROADS)
def test_folds_of_models_that_were_not_trained_are_refused(container):
    """They were taken for cross-validation, whose interval ignored the passages."""
    folds = pd.factorize(LOSSES.index.get_level_values("point"))[0] % 5
    log = LOSSES.set_index(pd.Index(folds, name="fold"), append=True)
    log.attrs = LOSSES.attrs
    log = by_row(log) if container in ("array", "lazy") else log
    read = cvstats.Moments.of_log if container == "moments" else cvstats.wald
    with pytest.raises(cvstats.LogError, match="no model was trained on other folds"):
        read(log.chunk(row=500) if container == "lazy" else log)
    del log.attrs["models_are"]
    assert log.cvci.wald().attrs["method"] == "wald"


def test_models_trained_on_chosen_tasks_are_trained():
    """The data sets of a benchmark are fixed, but each has folds."""
    log = tasks()
    folds = pd.factorize(log.index.get_level_values("point"))[0] % 5
    log = log.set_index(pd.Index(folds, name="fold"), append=True)
    log.attrs = tasks().attrs
    assert "trained in this cross-validation" in log.cvci.wald().attrs["target"]
    assert "partition into 5 folds" in log.cvci.interval().attrs["reason"]


def test_repetitions_that_lack_questions_are_no_random_splits():
    """The error asked for the number of points each model was trained on."""
    part = LOSSES.drop(index=LOSSES.loc[[3]].index[:20])
    part.attrs = LOSSES.attrs
    for log, levels in ((part, ["source", "point"]), (part.droplevel("source"), ["point"])):
        refuses("Average the repetitions of each point", log.cvci.interval)
        averaged = log.groupby(levels).mean()
        averaged.attrs = LOSSES.attrs
        method = "clustered" if "source" in levels else "holdout"
        assert averaged.cvci.interval().attrs["method"] == method


def test_moments_of_repetitions_that_lack_questions_have_no_number_of_all():
    log = answers(share=0.5)
    log.attrs["models_are"] = "fixed"
    moments = cvstats.Moments.of_log(log)
    for ask in (moments.interval, moments.summary):
        words = refusal(ask)
        assert re.match(r"some repetitions evaluate only \d+ of the points, so points would", words)


def answers(share=1.0, repetitions=3):
    """Losses of 60 questions, of which each repetition has a random share; no attrs."""
    rng = np.random.default_rng(0)
    index = product_index(repetition=range(repetitions), point=range(60))
    log = pd.DataFrame((rng.random((60 * repetitions, 2)) < 0.4) * 1.0, index, columns=["a", "b"])
    order = [rng.permutation(60) for _ in range(repetitions)]
    return log[np.concatenate(order) < share * 60]


@pytest.mark.parametrize("road", IN_MEMORY_OR_LAZY)
@pytest.mark.parametrize("ask", ["interval", "compare", "corrected_t", "summary"])
def test_a_missing_answer_makes_no_random_splits(road, ask):
    """The error was about training sets, although nothing was trained."""
    log = ROADS[road](answers().drop((1, 10)))
    words = refusal(getattr(log.cvci, ask))
    assert words.startswith("some repetitions evaluate only 59 of the 60 points")
    assert "Average the repetitions of each point first: log.groupby(['point']).mean()" in words
    assert words.endswith("on: corrected_t(losses, train_size=90).")
    if ask in ("interval", "corrected_t"):
        averaged = (log.compute() if "lazy" in road else log).groupby(["point"]).mean()
        assert averaged.cvci.interval().attrs["method"] == "holdout"
        assert log.cvci.corrected_t(train_size=90) is not None


def test_a_missing_answer_is_no_reason_for_more_splits():
    assert "CVS016" not in set(answers().drop((1, 10)).cvci.diagnose()["code"])
    assert "CVS016" in set(answers(share=0.5).cvci.diagnose()["code"])


@pytest.mark.parametrize("repetitions", [2, 3, 9])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_random_splits_of_up_to_half_of_the_points_are_no_missing_answers(share, repetitions):
    with pytest.raises(cvstats.LogError, match="corrected_t needs the number of points each"):
        answers(share, repetitions).cvci.interval()


@pytest.mark.parametrize("container", ROADS)
@pytest.mark.parametrize("method", ["clustered", "wald"])
def test_no_target_or_guarantee_mentions_training(method, container):
    log = ROADS[container](LOSSES)
    result = getattr(cvstats, method)(log)
    words = f"{result.attrs['target']} {result.attrs['guarantee']}"
    assert "train" not in words
    assert "stable" not in words


def test_answers_of_fixed_models_with_passages():
    """They were refused as one source left out at a time, whatever models_are says."""
    found = LOSSES.cvci.answers()
    wanted = LOSSES.droplevel("source").cvci.answers()
    pd.testing.assert_frame_equal(found.drop(columns="caution"), wanted.drop(columns="caution"))
    assert (found["caution"] == "sources ignored").all()
    trained = LOSSES.copy()
    del trained.attrs["models_are"]
    refuses("If one model answered all points, set log.attrs", trained.cvci.answers)


def small_task(container: str, answers=((1.0, 0.0), (1.0, 0.0))):
    """Three tasks, in one of which there are two questions that only b answers correctly."""
    log = tasks().loc[0, ["a", "b"]]
    row = np.arange(len(log))
    few = log[(row < 60) | np.isin(row, (200, 201)) | (row >= 600)].copy()
    few.attrs = log.attrs
    few.loc["b"] = answers
    if container != "repeated":
        return ROADS[container](few)
    twice = pd.concat({0: few, 1: few}, names=["repetition"])
    twice.attrs = few.attrs
    return twice


@pytest.mark.parametrize("container", [*ROADS, "repeated"])
def test_two_points_of_a_task_decide_nothing(container):
    """Their variance was 0, and their task a third of the mean: p < 1e-15, without a caution."""
    log = small_task(container)
    found = cvstats.compare(log)
    if container == "lazy":
        found = found.compute()
    sizes = np.array([60, 2, 60])
    df = (1 / sizes).sum() ** 2 / (1 / (sizes**2 * (sizes - 1.0))).sum()
    row = {name: float(np.ravel(found[name])[0]) for name in ("statistic", "p_value", "df")}
    assert row["df"] == pytest.approx(df, rel=1e-12)
    assert abs(row["statistic"]) > 5
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["statistic"]), df), rel=1e-9)
    assert row["p_value"] > 0.05
    assert np.ravel(cvstats.cautions(found))[0] == "few points"
    text = " ".join(str(cvstats.summary(log)).split())
    assert "not statistically significant" in text
    assert "Caution, few points" in text
    if container in ("frame", "array", "repeated"):
        best = np.ravel(log.cvci.best_set(rng=0)["p_value"])  # one-sided
        assert best[0] == pytest.approx(row["p_value"] / 2, rel=0.2)
        plan = log.cvci.power(effect=0.1)
        assert "groups_needed" not in plan


@pytest.mark.parametrize("adjust", ["holm", "max-t"])
@pytest.mark.parametrize("container", [*ROADS, "repeated"])
def test_no_difference_of_error_rates_is_larger_than_1(container, adjust):
    """With 1.1 degrees of freedom the limits were -3.4 and 3.5."""
    log = small_task(container, [[1.0, 0.0], [0.0, 1.0]])
    found = cvstats.compare(log, adjust=adjust)
    for name, limit in (("lower", -1), ("upper", 1)):
        assert np.ravel(found[name]).tolist() == [limit]
    found = cvstats.compare(log, alternative="less", adjust=None)
    assert (np.ravel(found["lower"]).item(), np.ravel(found["upper"]).item()) == (-np.inf, 1)


def test_only_error_rates_have_a_largest_difference():
    log = small_task("frame", [[9.0, 0.0], [0.0, 9.0]]).astype(int)
    assert cvstats.compare(log)["upper"].item() > 9  # numbers of errors
    log = small_task("frame", [[1.0, 0.0], [0.0, 1.0]])
    change = pd.DataFrame({"a": log["a"] - log["b"], "b": log["b"] - log["a"]})
    change.attrs = {**log.attrs, "kind": "differences"}
    assert cvstats.compare(change)["upper"].item() > 2


def test_limits_of_fixed_sources_of_few_points_cover():
    rng = np.random.default_rng(1)
    log = (rng.random((2000, 123, 2)) < 0.3) @ [1.0, -1.0]
    frame = pd.DataFrame(log.T, in_tasks([3, 40, 80]))
    frame.attrs = {"sources_are": "fixed"}
    found = frame.cvci.out_of_source()
    covered = ((found["lower"] <= 0) & (found["upper"] >= 0)).mean()
    normal = (found["estimate"].abs() <= 1.96 * found["se"]).mean()
    assert normal < 0.92
    assert covered > 0.95
    enough = frame.loc[[1, 2]]
    enough.attrs = frame.attrs
    assert "df" not in enough.cvci.out_of_source()
    assert "few points" not in set(enough.cvci.out_of_source()["caution"])


def test_a_label_with_few_points_leaves_the_limits_of_another_as_they_are():
    few = small_task("frame")
    whole = tasks().loc[0, ["a", "b"]]
    whole.attrs = few.attrs
    both = pd.concat({"x": few, "y": whole}, names=["group"])
    both.attrs = few.attrs
    names = ["estimate", "lower", "upper", "se"]
    for label, log in (("x", few), ("y", whole)):
        pd.testing.assert_frame_equal(
            both.cvci.interval(by="group").loc[label][names], log.cvci.interval()[names]
        )


def exact_limits(losses, sizes):
    """Korn-Graubard limits with one pseudo-error of the smallest task, by hand."""
    ends = np.cumsum(sizes)
    parts = [losses[end - n : end] for n, end in zip(sizes, ends, strict=True)]
    t, k = np.mean([part.mean() for part in parts]), len(sizes)
    v = sum(part.var(ddof=1) / len(part) for part in parts) / k**2
    d = 1 / (k * min(sizes))
    n = (t * (1 - t) + d) / (v + d**2)
    lower = stats.beta.ppf(0.025, t * n, n - t * n + 1) if t > 0 else 0.0
    return [lower, stats.beta.ppf(0.975, t * n + 1, n - t * n)]


def test_problems_of_a_task_with_two_problems_have_its_pseudo_error():
    """One pseudo-error of 162 problems does not account for a task of two."""
    rng = np.random.default_rng(5)
    sizes = 100, 60, 2
    index = pd.MultiIndex.from_tuples(
        [(k, i, run) for k, n in enumerate(sizes) for i in range(n) for run in range(3)],
        names=["source", "point", "repetition"],
    )
    log = pd.DataFrame({"a": (rng.random(len(index)) < 0.4) * 1.0}, index)
    log.loc[2] = 0.0
    log.attrs["sources_are"] = "fixed"
    problems = log.cvci.passes(k=2)
    found = problems.cvci.interval().iloc[0]
    wanted = exact_limits(problems["a"].sort_index().to_numpy(), sizes)
    assert found[["lower", "upper"]].tolist() == pytest.approx(wanted, rel=1e-9)
    assert found["caution"] == "few points"


@pytest.mark.parametrize("container", ROADS)
def test_a_task_without_errors_does_not_determine_the_limits(container):
    """Its variance was 0: limits of two tasks of 30 and 300 points covered 3% errors in 68%."""
    rng = np.random.default_rng(2)
    sizes, runs = (30, 300), 2000
    log = pd.DataFrame((rng.random((330, runs)) < 0.03) * 1.0, in_tasks(sizes))
    log.attrs = {"sources_are": "fixed"}
    found = cvstats.interval(ROADS[container](log))
    found = found.compute() if container == "lazy" else found
    lower, upper = (np.ravel(found[name]) for name in ("lower", "upper"))
    for column in range(5):
        wanted = exact_limits(log[column].to_numpy(), sizes)
        assert [lower[column], upper[column]] == pytest.approx(wanted, rel=1e-9)
    assert ((lower <= 0.03) & (upper >= 0.03)).mean() > 0.95
    assert "few errors" not in " ".join(np.ravel(cvstats.cautions(found)))
    if container == "frame":
        twice = pd.concat({"x": log, "y": log}, names=["group"])
        twice.attrs = log.attrs
        one = twice.cvci.interval(by="group").loc["y"]
        assert one["upper"].to_numpy() == pytest.approx(upper, rel=1e-12)


def test_the_winner_over_fixed_tasks_has_limits_like_those_of_interval():
    """Limits for the best of three models with 3% errors in 30 and 300 points covered 51%."""
    rng = np.random.default_rng(3)
    wrong = {"a": (rng.random(330) < 0.03) * 1.0, "b": 1.0}
    log = pd.concat({0: pd.DataFrame(wrong, in_tasks((30, 300)))}, names=["repetition"])
    log.loc[(0, 0), "a"] = 0.0
    log.attrs = {"sources_are": "fixed"}
    best = [each.cvci.winner(rng=0).loc["a"] for each in (log, log.cvci.passes(k=1))]
    for found in best:
        wanted = log.cvci.interval().loc["a"]
        assert found["lower"] < wanted["lower"] < 0.002
        assert found["upper"] > wanted["upper"] > 0.06
        assert found["caution"] == ""
    assert best[0]["upper"] == best[1]["upper"]


@pytest.mark.parametrize("container", ROADS)
def test_a_task_on_which_models_agree_does_not_determine_their_difference(container):
    """Limits covered 84% of such differences, and 16% of pairs at the margin were equivalent."""
    row = np.arange(330)
    index = multi_index(source=np.where(row < 30, "a", "b"), point=row)
    log = pd.DataFrame({"one": (row % 60 == 40) * 1.0, "two": (row % 60 == 50) * 1.0}, index)
    log.attrs = {"sources_are": "fixed"}
    losses = ROADS[container](log)
    gap = (log["one"] - log["two"]).to_numpy()
    own = np.sqrt(gap[30:].var(ddof=1) / 300) / 2
    width = stats.norm.ppf(0.975) * np.hypot(own, np.sqrt(2) / 60)
    found = cvstats.compare(losses)
    assert np.ravel(found["se"]).tolist() == pytest.approx([own], rel=1e-9)
    for name, limit in (("lower", -width), ("upper", width)):
        assert np.ravel(found[name]) == pytest.approx(gap[30:].mean() / 2 + limit, rel=1e-9)
    assert not np.ravel(cvstats.equivalence(losses, margin=0.03)["equivalent"]).any()
    assert np.ravel(cvstats.equivalence(losses, margin=0.05)["equivalent"]).all()


def test_limits_of_differences_over_fixed_tasks_cover():
    rng = np.random.default_rng(4)
    runs, small = 2000, np.arange(330) < 30
    rates = np.stack([np.where(small, 0.0, 0.02), np.where(small, 0.06, 0.02)])
    wrong = (rng.random((runs, 2, 330)) < rates) * 1.0
    array = xr.DataArray(
        wrong, dims=("cell", "model", "point"),
        coords={"model": ["a", "b"], "source": ("point", np.where(small, "x", "y"))},
        attrs={"sources_are": "fixed"},
    )  # fmt: skip
    found = array.cvci.compare(adjust=None)
    assert float(((found["lower"] <= -0.03) & (found["upper"] >= -0.03)).mean()) > 0.95
    assert float(array.cvci.equivalence(margin=0.03)["equivalent"].mean()) < 0.05


def test_an_equal_model_stays_in_the_best_set_over_tasks():
    """In 15% of logs of 100 and 1,000 points, one of three equal models was excluded."""
    row = np.arange(1100)
    index = multi_index(source=row // 100 > 0, point=row)
    log = pd.DataFrame({"a": 0.0, "b": 0.0}, index.set_levels([0, 1], level="source"))
    log.iloc[[3, 50], 1] = 1.0  # b errs twice in the small task
    log.iloc[[300, 500, 700], 0] = 1.0
    log.attrs = {"sources_are": "fixed", "loss": "zero_one"}
    found, pair = log.cvci.best_set(rng=0), log.cvci.compare()
    assert found["in_set"].all()
    assert found["statistic"].abs().to_numpy() == pytest.approx(abs(pair["statistic"].item()))


def test_an_interval_of_a_difference_ends_where_compare_does():
    log = small_task("frame", [[1.0, 0.0], [0.0, 1.0]])
    found = cvstats.difference(log, reference="b").cvci.interval()
    assert (found["lower"].item(), found["upper"].item()) == (-1, 1)
