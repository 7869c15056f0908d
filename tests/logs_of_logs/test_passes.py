"""pass@k, pass^k and majority of k: a log of attempts becomes a log of problems."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import product_index
from scipy import special, stats
from strategies import by_row

import cvstats
from cvstats.loss_functions.passes import share_all, share_any, share_majority

STORED = Path(__file__).parents[1] / "reference" / "frontier.json"
CASES = {case["id"]: case for case in json.loads(STORED.read_text(encoding="utf-8"))}
DATA = CASES["attempts_data"]["inputs"]


def attempts() -> pd.DataFrame:
    """The first attempts are the correct ones, of each problem and model."""
    rows = [
        (problem, attempt, float(attempt >= c), float(attempt >= other))
        for problem, (n, c, other) in enumerate(
            zip(DATA["n"], DATA["c"], DATA["c_other"], strict=True)
        )
        for attempt in range(n)
    ]
    columns = ["point", "repetition", "a", "b"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:2])


LOG = attempts()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_values_and_standard_errors_are_those_of_all_subsets(k):
    expected = CASES[f"pass_{k}"]["outputs"]
    for every, name in ((False, "at"), (True, "hat")):
        found = cvstats.as_scores(LOG.cvci.passes(k=k, all=every).cvci.holdout()).loc["a"]
        assert found["estimate"] == pytest.approx(expected[name], abs=1e-12)
        assert found["se"] == pytest.approx(expected[f"{name}_se"], rel=1e-12)


def test_paired_difference_is_the_t_test_over_problems():
    expected = CASES["pass_difference"]["outputs"]
    found = LOG.cvci.passes(k=2).cvci.compare(reference="b").iloc[0]
    assert found["statistic"] == pytest.approx(-expected["t"], rel=1e-12)
    assert found["p_value"] == pytest.approx(expected["p"], rel=1e-9)
    assert found["lower"] == pytest.approx(-expected["upper"], rel=1e-9)
    assert found["upper"] == pytest.approx(-expected["lower"], rel=1e-9)


def test_shares_are_those_of_all_subsets_of_attempts():
    n, k = 7, 3
    for right in range(n + 1):
        draws = np.array(list(combinations(np.arange(n) < right, k))).sum(axis=1)
        for share, counted in (
            (share_any, draws > 0), (share_all, draws == k), (share_majority, draws > k / 2),
        ):  # fmt: skip
            found = share(np.array([n]), np.array([right]), k)
            assert found.item() == pytest.approx(counted.mean(), abs=1e-15)


def test_interval_takes_limits_of_shares_with_one_pseudo_error():
    log = LOG.cvci.passes(k=2)
    found = log.cvci.interval().loc["a"]
    n, share = len(log), found["estimate"]
    variance = found["se"] ** 2 * (n - 1) / n
    size = (share * (1 - share) + 1 / n) / (variance + 1 / n**2)
    expected = [
        stats.beta.ppf(0.025, share * size, (1 - share) * size + 1),
        stats.beta.ppf(0.975, share * size + 1, (1 - share) * size),
    ]
    np.testing.assert_allclose(found[["lower", "upper"]].astype(float), expected, rtol=1e-12)
    assert found["caution"] == ""


def test_limits_of_shares_need_no_caution_about_skewness():
    rng = np.random.default_rng(0)
    wrong = rng.random((30, 5)) < np.where(np.arange(30) < 27, 0.98, 0.3)[:, None]
    index = product_index(point=range(30), repetition=range(5))
    log = pd.Series(wrong.ravel().astype(float), index).cvci.passes(k=2)
    assert "skewed" in cvstats.holdout(log)["caution"].iloc[0]
    assert "skewed" not in cvstats.interval(log)["caution"].iloc[0]


def test_problems_that_are_all_right_or_wrong_have_the_limits_of_clopper_and_pearson():
    log = LOG.cvci.passes(k=4, all=True)
    every = log[log.isin([0, 1]).all(axis=1)]
    wrong, n = every["a"].sum(), len(every)
    exact = stats.binomtest(int(wrong), n).proportion_ci(0.95, method="exact")
    found = every.cvci.interval().loc["a"]
    np.testing.assert_allclose([found["lower"], found["upper"]], exact, rtol=1e-12)
    solved = (LOG * 0).cvci.passes(k=2).cvci.interval().loc["a"]
    top = stats.binomtest(0, len(log)).proportion_ci(0.95, method="exact").high
    assert (solved["lower"], solved["caution"]) == (0, "")
    assert solved["upper"] == pytest.approx(top, rel=1e-12)


def test_several_numbers_are_metrics_with_a_name_of_their_own():
    log = LOG.cvci.passes(k=[1, 4])
    assert list(log.index.names) == ["metric", "point"]
    table = cvstats.as_scores(log.cvci.interval(by="metric"))
    for k in (1, 4):
        alone = cvstats.as_scores(LOG.cvci.passes(k=k).cvci.interval())
        np.testing.assert_array_equal(
            table.loc[f"pass@{k}", "lower"].to_numpy(), alone["lower"].to_numpy()
        )
    assert "pass@4" in str(log.cvci.summary())
    assert list(LOG.cvci.passes(k=3, majority=True).attrs["metric"]) == list("maj@3")
    assert LOG.cvci.passes(k=3, all=True).attrs["metric"] == "pass^3"


def test_arrays_give_the_same_log_and_carry_dimensions():
    frame = LOG.cvci.passes(k=2)
    array = LOG.to_xarray().to_dataarray("model")
    for log in (array, LOG.to_xarray()):
        found = log.cvci.passes(k=2).cvci.interval()
        np.testing.assert_allclose(found["lower"], frame.cvci.interval()["lower"], rtol=1e-14)
    grid = array.expand_dims(temperature=[0.0, 1.0]).copy()
    grid[1] = grid[1].where(grid[1].isnull(), 1 - grid[1])
    found = grid.cvci.passes(k=2).cvci.interval()
    assert found["estimate"].dims == ("temperature", "model")
    np.testing.assert_allclose(found["estimate"][0], frame.mean(), rtol=1e-14)
    every = array.cvci.passes(k=5)
    np.testing.assert_allclose(every.T, LOG.cvci.passes(k=5), rtol=1e-14)
    stacked = array.stack(evaluation=("point", "repetition")).dropna("evaluation")
    np.testing.assert_allclose(stacked.cvci.passes(k=2).T, frame, rtol=1e-14)


def suites() -> pd.DataFrame:
    """Two suites of repositories, whose problems share how hard they are."""
    random = np.random.default_rng(5)
    hard = np.repeat(random.normal(0, 1, 24), 5)
    rows = []
    for problem, level in enumerate(hard):
        for attempt in range(6):
            wrong = random.random(3) < special.expit(level + np.array([0.0, 0.3, 1.0]))
            rows.append((f"repo{problem // 5}", problem, attempt, *wrong.astype(float)))
    columns = ["source", "point", "repetition", "large", "medium", "small"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["suite"] = np.where(frame["point"] < 60, "easy", "hard")
    return frame.set_index(["suite", *columns[:3]])


def test_clusters_groups_and_every_consumer_work_on_a_log_of_problems():
    log = suites().cvci.passes(k=3)
    found = log.cvci.interval()
    assert found.attrs["method"] == "clustered"
    array = suites().droplevel(["suite", "source"]).to_xarray().to_dataarray("model")
    array = array.assign_coords(source=("point", np.arange(120) // 5)).cvci.passes(k=3)
    np.testing.assert_allclose(array.cvci.interval(method="clustered")["se"], found["se"])
    assert array.cvci.interval().attrs["method"] == "clustered"
    means = log.groupby(level="source").mean()
    assert found["se"]["large"] > log["large"].std() / np.sqrt(len(log))
    assert found["estimate"]["large"] == pytest.approx(means["large"].mean(), rel=1e-12)
    assert list(log.cvci.interval(by="suite").index.names) == ["suite", "model"]
    assert log.cvci.best_set()["in_set"].any()
    assert log.cvci.equivalence(reference="large", margin=0.2)["p_value"].notna().all()
    assert "pass@3" in str(log.cvci.summary())
    assert len(log.cvci.compare(by="suite")) == 6


def test_values_of_a_metric_are_no_attempts():
    frame = pd.DataFrame({"y": [0, 1] * 20, "p": [0, 1, 1, 0] * 10})
    frame.index = product_index(repetition=range(2), point=range(20))
    log = cvstats.losses(frame, truth="y", prediction="p", loss="f1", positive=1)
    refuses("values of a metric", log.cvci.passes, k=1)


def in_folds(log: pd.DataFrame) -> pd.DataFrame:
    """Test each half of the problems with a model of its own."""
    half = log.index.get_level_values("point") % 2
    return log.set_index(pd.Index(half, name="fold"), append=True)


def tried_once(log):
    """An array of one model, with one attempt at its first problem."""
    array = log["a"].to_xarray()
    return array.where((array.point != array.point[0]) | (array.repetition == array.repetition[0]))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda log: log.iloc[1:], {"k": 5}, "but point=0 (and 1 more) has 4 by 'a'"),
        (lambda log: log[["a"]].iloc[1:], {"k": 5}, "0 has 4 by 'a'. Expected a k of at most 4."),
        (
            lambda log: pd.concat({"s": log.iloc[1:]}, names=["source"]),
            {"k": 5},
            "but source='s', point=0 (and 1 more) has 4 by 'a'",
        ),
        (tried_once, {"k": 2}, "has 1 by 'a'. Expected a k of at most 1"),
        (
            lambda log: log.mask(log.index.get_level_values("point").to_series(log.index) == 0),
            {"k": 1},
            "k=1 needs an attempt at each problem, but point=0 (and 1 more) has none by 'a'.",
        ),
        (lambda log: log.cumsum() + 0.5, {"k": 2}, "a loss is 0.5. Expected 0/1 losses"),
        (lambda log: log, {"k": 1.5}, "k=1.5"),
        (lambda log: log, {"k": [2, 2]}, "several different numbers"),
        (lambda log: log, {"k": 2, "all": True, "majority": True}, "were both given"),
        (lambda log: log.xs(0, level="repetition"), {"k": 1}, "needs attempts as level"),
        (
            lambda log: pd.concat({"x": log, "y": log}, names=["metric"]),
            {"k": [1, 2]},
            "several k make a metric each",
        ),
        (in_folds, {"k": 1}, "Select one fold"),
        (lambda log: log.to_xarray().chunk(), {"k": 1}, "log.compute"),
        (lambda log: log.cvci.passes(k=[1]).assign(a=0.0), {"k": 1}, "needs attempts as level"),
    ],
)
def test_refusals(change, options, words):
    refuses(re.escape(words), change(LOG).cvci.passes, **options)


@pytest.mark.parametrize("container", ["frame", "array"])
def test_tasks_that_were_chosen_are_not_a_sample_of_tasks(container):
    draw = np.random.default_rng(4)
    index = pd.MultiIndex.from_tuples(
        [(f"t{i % 4}", i, attempt) for i in range(80) for attempt in range(4)],
        names=["source", "point", "repetition"],
    )
    log = pd.Series((draw.random(320) < 0.4) * 1.0, index, name="model")
    if container == "array":
        source = log.index.get_level_values("source")[::4]
        log = log.droplevel("source").to_xarray().assign_coords(source=("point", source))
    log.attrs["sources_are"] = "fixed"
    problems = log.cvci.passes(k=2)
    found = problems.cvci.interval()
    tasks = problems.groupby("source")
    var = [float(part.var(ddof=1)) / 20 for _, part in tasks]
    assert float(np.ravel(found["se"])[0]) == pytest.approx(sum(var) ** 0.5 / 4)
    assert found.attrs["method"] == "out_of_source"
    assert "averaged over these sources" in " ".join(str(problems.cvci.summary()).split())


@pytest.mark.parametrize("names", [["repetition", "point"], ["repetition", "source", "point"]])
def test_what_to_type_for_attempts_in_the_rows_of_an_array_works(names):
    index = product_index(repetition=range(3), point=range(8))
    rows = index.to_frame(index=False).assign(source=index.get_level_values("point") // 2)
    wrong = np.random.default_rng(0).random((24, 2)) < 0.5
    frame = pd.DataFrame(wrong * 1.0, pd.MultiIndex.from_frame(rows[names]), list("ab"))
    log = by_row(frame)
    with pytest.raises(cvstats.LogError, match="Expected a dimension 'repetition'") as caught:
        log.cvci.passes(k=2)
    found = eval(str(caught.value).partition("Type ")[2].rstrip("."), {"log": log}).cvci.passes(k=2)
    np.testing.assert_allclose(
        found.cvci.interval()["se"], frame.cvci.passes(k=2).cvci.interval()["se"]
    )


def read_scores(scale: int = 1) -> pd.Series:
    """One model, read from a column of scores, after which its log is named."""
    wrong = LOG["a"].rename("passed").reset_index()
    return cvstats.read_log(
        wrong.assign(passed=scale * (1 - wrong["passed"])), loss="passed", higher_is_better=True,
        point="point", repetition="repetition",
    )  # fmt: skip


def test_a_model_named_after_its_column_has_no_name():
    """The pass@2 was that of a model called "1 - passed"."""
    log = read_scores()
    assert log.name == "1 - passed"
    text = " ".join(str(log.cvci.passes(k=2).cvci.summary()).split())
    assert text.startswith("The pass@2 is 0.")
    expected = LOG["a"].rename(None).cvci.passes(k=2)
    pd.testing.assert_series_equal(log.cvci.passes(k=2), expected)
    several = log.cvci.passes(k=[1, 2]).cvci.interval()
    assert list(several.index) == ["pass@1", "pass@2"]
    first = log.xs(0, level="repetition")
    scores = cvstats.as_scores(first.cvci.interval())
    assert list(scores.index) == ["passed"]
    assert scores["estimate"].iloc[0] == 1 - first.cvci.interval()["estimate"].iloc[0]
    assert "| passed |" in cvstats.to_markdown(scores)


def test_the_threshold_in_the_error_separates_percents():
    """Of percents, which are negated, it called every attempt correct."""
    log = read_scores(100)
    refuses(re.escape("(log > -50).astype(float)"), log.cvci.passes, k=2)
    found = (log > -50).astype(float).cvci.passes(k=2)
    np.testing.assert_array_equal(found, read_scores().cvci.passes(k=2))
