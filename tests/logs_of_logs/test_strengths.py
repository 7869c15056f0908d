"""Bradley-Terry strengths with prompts as clusters, as a log with a row for each prompt."""

import re

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses
from frontier import CASES
from scipy import optimize, special

import cvstats

BATTLES = pd.DataFrame(CASES["battles_data"]["inputs"])
STORED = CASES["bradley_terry"]["outputs"]
COLUMNS = {"prompt": "prompt", "models": ["first", "second"], "score": "score"}


def fit(battles: pd.DataFrame = BATTLES, **options):
    return cvstats.strengths(battles, **{**COLUMNS, **options})


def test_strengths_and_errors_are_those_of_other_programs():
    log = fit()
    found = cvstats.as_scores(log.cvci.interval())
    number = len(log)
    np.testing.assert_allclose(found["estimate"], STORED["strength"], rtol=1e-9)
    clustered = found["se"] * np.sqrt((number - 1) / number)
    np.testing.assert_allclose(clustered, STORED["se_prompt"], rtol=1e-9)
    assert (found["df"] == number - 1).all()
    apart = log.cvci.compare(reference=1).loc[(0, 1)]
    assert -apart["difference"] == pytest.approx(STORED["difference"], rel=1e-9)
    se = apart["se"] * np.sqrt((number - 1) / number)
    assert se == pytest.approx(STORED["difference_se"], rel=1e-9)
    alone = cvstats.as_scores(fit(BATTLES.assign(prompt=range(len(BATTLES)))).cvci.interval())
    n = len(BATTLES)
    np.testing.assert_allclose(alone["se"] * np.sqrt((n - 1) / n), STORED["se_battle"], rtol=1e-9)


def test_elo_and_winners_by_name():
    elo = fit(elo=True)
    np.testing.assert_allclose(elo.mean(), 400 / np.log(10) * fit().mean(), rtol=1e-12)
    assert "Elo" in str(elo.cvci.summary())
    named = BATTLES.assign(
        first="m" + BATTLES["first"].astype(str), second="m" + BATTLES["second"].astype(str)
    )
    words = np.select(
        [named["score"] == 1, named["score"] == 0], [named["first"], "second"], "tie (both bad)"
    )
    found = fit(named.assign(score=words))
    np.testing.assert_allclose(found, fit(), rtol=1e-12)
    assert list(found.columns) == ["m0", "m1", "m2", "m3"]


def test_swapped_order_and_rows_change_nothing():
    swapped = BATTLES.rename(columns={"first": "second", "second": "first"})
    swapped["score"] = 1 - swapped["score"]
    np.testing.assert_allclose(fit(swapped).sort_index(), fit().sort_index(), atol=1e-12)
    mixed = BATTLES.sample(frac=1, random_state=1)
    np.testing.assert_allclose(fit(mixed).sort_index(), fit().sort_index(), atol=1e-12)


def test_influences_are_derivatives_in_the_weights_of_prompts():
    log, step = fit(), 1e-4
    deviations = (log - log.mean()) / len(log)  # minus the influence of a prompt

    def strengths_with(weight: np.ndarray) -> np.ndarray:
        first, second, y = (BATTLES[name].to_numpy() for name in ("first", "second", "score"))
        w = weight[BATTLES["prompt"].to_numpy()]

        def gradient(s):
            left = w * (y - special.expit(s[first] - s[second]))
            return np.bincount(first, left, 4) - np.bincount(second, left, 4) - s.mean()

        return optimize.root(gradient, np.zeros(4), tol=1e-14).x

    for prompt in (0, 7, 20):
        up, down = (np.ones(len(log)) for _ in range(2))
        up[prompt] += step
        down[prompt] -= step
        slope = (strengths_with(up) - strengths_with(down)) / (2 * step)
        np.testing.assert_allclose(-deviations.loc[prompt], slope, atol=1e-7)


def test_judges_and_prompts_are_both_samples():
    judged = pd.concat([BATTLES.assign(judge=name) for name in ("j1", "j2", "j3")])
    random = np.random.default_rng(0)
    judged["score"] = np.where(random.random(len(judged)) < 0.2, 0.5, judged["score"])
    log = fit(judged, judge="judge")
    assert set(log.index.names) == {"source", "point", "fold"}
    found = log.cvci.interval()
    assert "and both are sampling units" in found.attrs["reason"]
    assert found["se"].notna().all()


def test_every_consumer_takes_the_log():
    log = fit()
    assert log.cvci.best_set()["in_set"].any()
    assert "strength of 0 is 0.67" in str(log.cvci.summary()).replace("\n", " ")
    assert log.cvci.equivalence(reference=0, margin=3.0)["equivalent"].all()
    array = log.to_xarray().to_dataarray("model").assign_attrs(log.attrs)
    np.testing.assert_allclose(array.cvci.interval()["se"], log.cvci.interval()["se"], rtol=1e-12)
    refuses("part of a log of strength", log.iloc[:20].cvci.interval)
    few = BATTLES[BATTLES["prompt"] < 20]
    assert fit(few).cvci.interval()["caution"].str.contains("few points").all()
    assert not fit().cvci.interval()["caution"].str.contains("few points").any()


def won(model: int) -> pd.DataFrame:
    """All results of one model are wins."""
    frame = BATTLES.copy()
    frame.loc[frame["first"] == model, "score"] = 1.0
    frame.loc[frame["second"] == model, "score"] = 0.0
    return frame


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: won(0), {}, "0 won all results against the other models, so no finite"),
        (lambda: won(2).assign(score=1 - won(2)["score"]), {}, "2 lost all results against the"),
        (lambda: BATTLES.query("second == 1 or first == 2"), {}, "models 0, 1 with the models 2"),
        (lambda: BATTLES, {"prompt": "id"}, "prompt='id' is not a column"),
        (lambda: BATTLES, {"score": ["score"]}, "score=['score'] is not a column"),
        (lambda: BATTLES, {"models": "first"}, "Expected the two columns"),
        (lambda: BATTLES, {"models": 2}, "Expected the two columns"),
        (lambda: BATTLES.assign(score=2), {}, "the result in row 0 is 2"),
        (lambda: BATTLES.assign(score="draw"), {}, "the result in row 0 is 'draw'"),
        (lambda: BATTLES.assign(score=np.nan), {}, "the column 'score' is empty in row 0"),
        (lambda: BATTLES.assign(second=BATTLES["first"]), {}, "is compared with itself"),
        (lambda: BATTLES.assign(prompt=1), {}, "Expected at least two prompts"),
        (lambda: BATTLES["score"], {}, "a Series is not a table of results"),
        (lambda: 3, {}, "an int is not a table of results"),
    ],
)  # fmt: skip
def test_refusals(make, options, words):
    refuses(re.escape(words), fit, make(), **options)


@pytest.mark.parametrize(("elo", "call"), [(False, "part, …)"), (True, "part, …, elo=True)")])
def test_a_part_of_the_log_is_made_of_a_part_of_the_battles(elo, call):
    assert f"cvstats.strengths(battles_of_the_{call}" in refusal(
        fit(elo=elo).iloc[5:].cvci.interval
    )
    with pytest.raises(cvstats.LogError, match="of each group: cvstats.strengths") as caught:
        fit(elo=elo).cvci.interval(by="point")
    assert f"cvstats.strengths(battles_of_the_{call}" in str(caught.value)


def test_strengths_have_no_ratio():
    refuses("strength has no zero, so no ratio", fit().cvci.compare, relative=True)


def test_models_that_win_nearly_all():
    """The first steps are shortened: full ones would overshoot."""
    pairs = [(one, two) for one, two in zip("abcdefg", "bcdefgh", strict=True)]
    battles = pd.DataFrame(
        [pair for pair in pairs for _ in range(200)], columns=["first", "second"]
    )
    battles["score"] = (np.arange(len(battles)) % 200 > 0) * 1.0
    found = fit(battles.assign(prompt=range(len(battles)))).mean()
    np.testing.assert_allclose(np.diff(found), np.log(199), rtol=1e-9)
