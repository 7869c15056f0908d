"""Logs that a bootstrap interval cannot answer for, and the words that say so."""

import numpy as np
import pandas as pd
import pytest
from bootstrap_logs import LEVELS, LOGS, METHODS, answer, bootstrap, case, two_stage
from calls import refusal, refuses
from rows import only_row

import cvstats

PLAN = {
    "bootstrap_oob": "bootstrap",
    "bootstrap_632": "bootstrap",
    "location_shifted": "bootstrap",
    "case_bootstrap": "case_bootstrap",
    "two_stage": "two_stage",
}


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_level_is_named_with_the_plan_that_makes_it(method):
    log = LOGS[method]()
    for level in log.index.names:
        # the rows of one label, so that what remains does not contradict itself
        less = log.xs(log.index.get_level_values(level)[-1], level=level)
        less = less[~less.index.duplicated()]
        words = refusal(answer, method, less)
        assert words.startswith(f"{method} needs")
        assert f"no level {level!r}" in words
        assert f"cvstats.plans.{PLAN[method]} creates such a log" in words
        told = cvstats.methods(less).loc[method]
        assert not told["applies"]
        assert told["why_not"] in words
    assert cvstats.methods(log).loc[method, "applies"]


def test_case_losses_that_are_missing_are_doubted():
    log = case()["tree"]
    words = "incomplete samples"
    assert words not in only_row(cvstats.case_bootstrap(log))["caution"]
    lacking = log.drop(log.index[[3, 70]])
    assert words in only_row(cvstats.case_bootstrap(lacking))["caution"]
    gone = log.index.get_level_values("point") == 4
    assert words in only_row(cvstats.case_bootstrap(log[~gone]))["caution"]
    # half as many draws as points in every sample
    half = log.rename(lambda count: 1, level="count").groupby(level="repetition").head(4)
    assert words in only_row(cvstats.case_bootstrap(half))["caution"]
    # a loss that was dropped still tells how often its point was drawn
    with_gap = log.where(np.arange(len(log)) != 5)
    assert words not in only_row(cvstats.case_bootstrap(with_gap, missing="drop"))["caution"]


def test_logs_of_another_bootstrap_are_told_apart():
    refuses("For case cross-validation use case_bootstrap", cvstats.bootstrap_oob, case())
    refuses("Use interval\\(losses\\) or compare", cvstats.wald, bootstrap())
    refuses("For out-of-bag losses use bootstrap_oob", cvstats.case_bootstrap, bootstrap())
    refuses("use interval\\(losses\\), which uses all of them", cvstats.bootstrap_oob, two_stage())
    alone = bootstrap().drop(0, level="repetition")
    refuses("the log has no repetition 0", answer, "bootstrap_632", alone)
    from_zero = alone.rename(lambda b: b - 1, level="repetition")
    refuses("a bootstrap sample as repetition 0", answer, "bootstrap_632", from_zero)
    np.testing.assert_allclose(
        cvstats.bootstrap_oob(from_zero)["se"], cvstats.bootstrap_oob(alone)["se"]
    )
    few = alone[alone.index.get_level_values("repetition") == 1]
    refuses("1 bootstrap sample. ", cvstats.bootstrap_oob, few)


def test_samples_of_another_size_have_no_such_standard_error():
    log = bootstrap().reset_index("count")
    log["count"] = log["count"].clip(upper=1)
    with pytest.raises(cvstats.LogError, match="the counts add up to . in repetition=1"):
        cvstats.bootstrap_oob(log.set_index("count", append=True))


@pytest.mark.parametrize("odd", [-1, 0.5, "many"])
def test_counts_are_whole_numbers(odd):
    log = bootstrap().rename({2: odd}, level="count")
    refuses("Expected whole numbers, 0 for out of bag", cvstats.bootstrap_oob, log)
    as_floats = bootstrap().rename(float, level="count")
    assert np.isfinite(cvstats.bootstrap_oob(as_floats)["se"]).all()


def test_two_stages_need_the_data_and_the_fit_on_each_sample():
    log = two_stage()
    with pytest.raises(cvstats.LogError, match="labels 1, 2, 3, and 2 more. Expected 0 for"):
        answer("two_stage", log.drop(0, level="sample"))
    index = log.index
    gone = (index.get_level_values("sample") == 3) & (index.get_level_values("repetition") == 0)
    refuses("sample 3 has no repetition 0", answer, "two_stage", log[~gone])
    inside = (index.get_level_values("sample") == 3) & (index.get_level_values("count") == 0)
    refuses("sample 3 has no out-of-bag evaluation", answer, "two_stage", log[~inside])


def test_too_few_points_out_of_bag():
    counts = np.array([[1, 1, 1], [3, 0, 0], [2, 1, 0]])
    index = pd.MultiIndex.from_arrays(
        [np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3), counts.ravel()], names=LEVELS
    )
    losses = pd.Series(np.arange(9.0), index=index)
    assert "never out of bag" in only_row(losses.cvci.bootstrap_oob())["caution"]
    index = index.set_codes([0, 0, 0, 3, 0, 0, 2, 1, 0], level="count", verify_integrity=False)
    one = pd.MultiIndex.from_arrays(
        [np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3), [1, 1, 1, 2, 1, 0, 2, 1, 0]], names=LEVELS
    )
    refuses("only 1 of the 3 points is ever out of bag", losses.set_axis(one).cvci.bootstrap_oob)
