"""Variances of repeated answers: stored numbers, slow sums, containers and refusals."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from rows import only_row

import cvstats
from cvstats.errors import LogError
from cvstats.log import groups

NAMES = ["point", "repetition"]


def log_of(table, name="llm"):
    """A Series of the answers to each point, of which there may be different numbers."""
    index = [(point, k) for point, row in enumerate(table) for k in range(len(row))]
    losses = [float(loss) for row in table for loss in row]
    return pd.Series(losses, pd.MultiIndex.from_tuples(index, names=NAMES), name=name)


def random_table(seed, sizes, between=1.0):
    """Answers with three decimals to points of different level."""
    rng = np.random.default_rng(seed)
    return [
        [Fraction(round(1000 * (level + e)), 1000) for e in rng.standard_normal(size)]
        for level, size in zip(between * rng.standard_normal(len(sizes)), sizes, strict=True)
    ]


def variance(numbers):
    """The sample variance, in fractions."""
    mean = sum(numbers) / Fraction(len(numbers))
    return sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)


def by_hand(table):
    """The parts of the variance, in fractions."""
    means = [sum(row) / Fraction(len(row)) for row in table]
    single = [variance(row) for row in table]
    noise = sum(s / len(row) for s, row in zip(single, table, strict=True)) / len(table)
    between, within = variance(means), sum(single) / Fraction(len(table))
    return sum(means) / Fraction(len(table)), between, within, between - noise


@pytest.mark.parametrize("sizes", [(4,) * 9, (2, 5, 3, 2, 7), (2, 2)])
def test_parts_in_fractions(sizes):
    table = random_table(len(sizes), sizes, between=9.0)
    log = log_of(table).sample(frac=1, random_state=2)
    row = only_row(cvstats.answers(log, repetitions=[3, 1, 3]))
    mean, between, within, stays = by_hand(table)
    n = len(table)
    wanted = {
        "estimate": mean, "between": between, "within": within, "point_variance": stays,
        "se": (between / n) ** Fraction(1, 2), "se_limit": (stays / n) ** Fraction(1, 2),
        "se_3": ((stays + within / 3) / n) ** Fraction(1, 2),
        "se_1": ((stays + within) / n) ** Fraction(1, 2),
    }  # fmt: skip
    assert stays > 0
    for name, number in wanted.items():
        assert row[name] == pytest.approx(float(number), rel=1e-12), name
    names = list(cvstats.answers(log, repetitions=[3, 1, 3]).columns)
    assert names[-4:] == ["se_3", "se_1", "se_limit", "caution"]
    far = only_row(cvstats.answers(log + 2.0**10))
    assert far["within"] == pytest.approx(row["within"], rel=1e-11)


@pytest.mark.parametrize("block", [5, groups.BLOCK])
def test_each_label_of_by_has_the_answer_of_its_part(block, monkeypatch):
    monkeypatch.setattr(groups, "BLOCK", block)  # rows that are looked up together
    parts = {task: log_of(random_table(task, (2, 3, 4, 2))) for task in (3, 4, 5)}
    parts[4] *= 0  # a task without variance
    log = pd.concat(parts, names=["task"])
    table = cvstats.answers(log, by="task", repetitions=(1, 16))
    for task, part in parts.items():
        alone = cvstats.answers(part, repetitions=(1, 16))
        numbers = table.loc[task].drop("caution").astype(float).to_numpy()
        expected = alone.iloc[0].drop("caution").astype(float).to_numpy()
        assert numbers == pytest.approx(expected, rel=1e-12)
        assert table.loc[task, "caution"] == alone["caution"].item()
    with pytest.raises(LogError, match=r"1 of the 3 groups by 'task' .* one answer: point=2\."):
        cvstats.answers(log.drop([(5, 2, 0), (5, 2, 1), (5, 2, 2)]), by="task")


def folded():
    log = log_of(random_table(3, (4,) * 12)).to_frame()
    log["fold"] = log.index.get_level_values("point") % 3
    return log.set_index("fold", append=True)["llm"]


WHOLE = log_of(random_table(3, (2, 3, 2)))
REFUSALS = {
    "one answer": (WHOLE.iloc[:6], {},
        "these points have only one answer: point=2. Collect more answers"),
    "one repetition": (WHOLE.xs(0, level="repetition"), {}, "the log has one repetition"),
    "one point": (WHOLE.iloc[:2], {}, "the log has only one point. Pass the whole test set"),
    "points without names": (WHOLE.droplevel("point"), {}, "the log has no level 'point'"),
    "folds": (folded(), {}, "the log has 3 folds, each used to test a different model"),
    "samples": (
        WHOLE.rename_axis(["point", "sample"]), {}, "a log of several resampled data sets",
    ),
    "no number": (WHOLE, {"repetitions": ()}, "repetitions=() is empty"),
    "a number below 1": (WHOLE, {"repetitions": (4, 0)}, "repetitions=0 is out of range"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS.values(), ids=list(REFUSALS))
def test_refused(case):
    log, options, words = case
    assert words in refusal(cvstats.answers, log, **options)
