"""Reasons to doubt a result: the one list of their labels, with what each means and advises.

A method sets bits of `Caution`; a table shows their labels; `attrs["cautions"]` and the report
give sentence and advice. A new reason is one more member with the next free bit. Bits are never
used again for something else, so that results of other versions keep their meaning.
"""

from __future__ import annotations

from enum import IntFlag
from functools import cache
from typing import Any

import numpy as np

from cvstats.core.types import IntArray


class Caution(IntFlag):
    """Reasons to doubt a number, as bits that may be combined.

    Each member has a ``label`` of at most 25 characters without a comma, a ``sentence`` that
    says what was found, and an ``advice``.
    """

    label: str
    sentence: str
    advice: str

    def __new__(cls, flag: int, label: str = "", sentence: str = "", advice: str = "") -> Caution:
        """Make a member of its bit and its words; a combination of members has no words."""
        member = int.__new__(cls, flag)
        member._value_ = flag
        member.label, member.sentence, member.advice = label, sentence, advice
        return member

    NO_LOSSES = (
        1 << 0, "no losses", "No loss was recorded here.", "Nothing is estimated; leave it out.",
    )  # fmt: skip
    ZERO_VARIANCE = (
        1 << 1, "zero variance", "The estimated variance is zero: the interval is a point.",
        "Check whether the losses vary at all; for the error rate of a rule without an error use "
        "interval='wilson'.",
    )  # fmt: skip
    CLAMPED = (
        1 << 2, "variance clamped",
        "The variance estimate was negative and was replaced by its floor.",
        "For an interval use a method whose variance cannot be negative, such as wald.",
    )  # fmt: skip
    NEGATIVE_VARIANCE = (
        1 << 3, "negative variance", "The variance estimate is negative: there is no interval.",
        "Use a method whose variance cannot be negative, such as wald.",
    )  # fmt: skip
    NAIVE_POINTS = (
        1 << 4, "dependence ignored",
        "Every loss is counted as a new point: the interval is too narrow where points are "
        "repeated, and guarantees nothing.",
        "Use wald.",
    )  # fmt: skip
    NAIVE_FOLDS = (
        1 << 5, "dependent folds",
        "Dependent fold means are taken for independent ones.", "Use wald.",
    )  # fmt: skip
    ONE_FOLD = (1 << 6, "one fold", "One fold is a single test set.", "Use holdout.")
    SOURCES_AS_FOLDS = (
        1 << 7, "sources as folds",
        "The folds are sources: the interval covers these sources, not a new one.",
        "For a new source use out_of_source.",
    )  # fmt: skip
    MEAN_DOMINATED = (
        1 << 8, "mean dominates",
        "The variance estimator contains the squared mean, which dominates it.",
        "Use another estimator.",
    )  # fmt: skip
    ASSUMED_GAMMA = (
        1 << 9, "assumed correlation",
        "This rests on the value of gamma or rho that was passed in.",
        "Try several values.",
    )  # fmt: skip
    FEW_POINTS = (
        1 << 10, "few points",
        "There are fewer than 30 points, or few in a group: the normal approximation is rough.",
        "Evaluate more points, or use a t interval; for groups pool the variance.",
    )  # fmt: skip
    FEW_REPETITIONS = (
        1 << 11, "few repetitions", "With few repetitions the standard error itself is noisy.",
        "Run more repetitions.",
    )  # fmt: skip
    UNSTABLE_DIFFERENCE = (
        1 << 12, "unstable difference",
        "Splitting the same points in another way, or replacing one training point, changes the "
        "difference of these two models by a large part of its standard error: an interval that "
        "counts points, such as that of wald, may be far too narrow.",
        "Use corrected_t or nested_cv, whose standard errors allow for the chance in the "
        "training data.",
    )  # fmt: skip
    SERIAL_DEPENDENCE = (
        1 << 13, "serial dependence",
        "Losses of neighbouring dates are alike: the interval is too narrow, since it counts each "
        "as new.",
        "Use ordered, which allows for it; or make blocks of dates the level 'source' and use "
        "clustered.",
    )  # fmt: skip
    SELECTED = (
        1 << 14, "selected model",
        "Five models or more are within two standard errors of this smallest error: if the model "
        "was chosen for it, the error is too small.",
        "Report it on points that played no part in the choice; winner allows for the choice.",
    )  # fmt: skip
    FEW_REPLICATES = (
        1 << 15, "few bootstrap samples", "There are few bootstrap samples for these limits.",
        "Draw more.",
    )  # fmt: skip
    FEW_SOURCES = (
        1 << 16, "few sources",
        "There are fewer than 30 sources: the interval may be too narrow.",
        "Collect more sources; more points of these do not help.",
    )  # fmt: skip
    FEW_CLUSTERS = (
        1 << 17, "few clusters",
        "There are fewer than 30 clusters: the interval may be too narrow, most of all where their "
        "means are skewed.",
        "Collect more clusters; more points of these do not help.",
    )  # fmt: skip
    SOURCES_ACROSS_FOLDS = (
        1 << 18, "sources across folds",
        "Sources appear in training and in test folds: the interval covers these sources, not a "
        "new one.",
        "For a new source leave whole sources out.",
    )  # fmt: skip
    FEW_OF_A_CLASS = (
        1 << 19, "few of a class",
        "A class has fewer than 10 points in a cell of the metric: the interval may be too narrow.",
        "Use fewer folds, stratified ones, or folds='pool'.",
    )  # fmt: skip
    DISCORDANT_FEW = (
        1 << 20, "few discordant points",
        "The models disagree on fewer than 25 points, too few for a normal approximation: the "
        "standard error is rough.",
        "Where each point was evaluated once, compare and mcnemar test exactly: rely on their "
        "p-values. Otherwise evaluate more points.",
    )  # fmt: skip
    NO_TEST = (
        1 << 21, "no p-value", "The method gives an interval and no p-value.",
        "See whether the interval excludes 0.",
    )  # fmt: skip
    FEW_SPLITS = (
        1 << 22, "few splits",
        "With fewer than 10 splits the standard error rests on few numbers, and the interval is "
        "far wider than it could be.",
        "Use one partition into 10 folds, or more splits.",
    )  # fmt: skip
    FEW_ERRORS = (
        1 << 23, "few errors",
        "Fewer than 10 points are errors, or fewer than 10 are not: normal limits are too narrow.",
        "Use interval='wilson', which interval() takes by itself.",
    )  # fmt: skip
    SOURCES_IGNORED = (
        1 << 24, "sources ignored",
        "Points of one source are treated as independent: the interval is too narrow, and it "
        "is not about new sources.",
        "Use clustered; or out_of_source, if no model was trained on the source that it was "
        "tested on.",
    )  # fmt: skip
    SMALL_FOLDS = (
        1 << 25, "small folds",
        "Folds have fewer than 20 points: centring within them overstates leads.",
        "Use center='global'.",
    )  # fmt: skip
    UNSTABLE = (
        1 << 26, "unstable",
        "The means of the repetitions differ by more than half a standard error: the learner is "
        "not as stable as the guarantee demands.",
        "Use corrected_t or nested_cv.",
    )  # fmt: skip
    SKEWED = (
        1 << 27, "skewed",
        "The losses are too skewed for so few points: the interval misses more often than it says, "
        "mostly on one side.",
        "Use interval='hall' of wald or holdout, or evaluate more points.",
    )  # fmt: skip
    UNUSED_LEVEL = (
        1 << 28, "unused level", "A level that is not used may name folds, sources or repetitions.",
        "See diagnose().",
    )  # fmt: skip
    VERY_FEW_CLUSTERS = (
        1 << 29, "very few clusters",
        "One or two clusters carry the interval: fewer than 2 degrees of freedom, or fewer than 6 "
        "clusters whose signs are drawn.",
        "Collect more clusters; the interval is wide, and a poor guide.",
    )  # fmt: skip
    HEAVY_TAILS = (
        1 << 30, "heavy tails",
        "A few losses carry the variance, or the tail is that of a distribution without one: such "
        "intervals miss far more often than they say.",
        "Look at the largest losses; use a bounded or clipped loss, or the absolute error.",
    )  # fmt: skip
    ONE_EACH = (
        1 << 31, "one loss per split",
        "Each fold or split has one loss, and there is no level 'point'.",
        "If these are means or scores, say so with log.attrs['holds'] = 'scores' and use "
        "corrected_t.",
    )  # fmt: skip
    EMPTY = (
        1 << 32, "empty interval",
        "No value agrees with the log at this level: the interval is empty.",
        "Use test='t', or another method.",
    )  # fmt: skip
    NO_LIMITS_YET = (
        1 << 33, "no limits yet",
        "There are fewer than 30 points (or groups), or losses of 0 and 1 differ on fewer than 25: "
        "limits that hold at every look do not start so early.",
        "Evaluate more points.",
    )  # fmt: skip
    DOMINATED = (
        1 << 34, "dominated", "Another model is better by one and the same amount everywhere.",
        "Leave this model out.",
    )  # fmt: skip
    ALWAYS_AGREE = (
        1 << 35, "no discordant points",
        "The models agree on every point, so their disagreement has an upper limit only.",
        "Read power as the least and the points needed as the most that agree with this log.",
    )  # fmt: skip
    ONE_REPETITION = (
        1 << 36, "one repetition", "One repetition does not show what more of them would bring.",
        "Repeat the cross-validation.",
    )  # fmt: skip
    BOUNDED = (
        1 << 37, "bounded",
        "The standard error, or the overfitting rate, was put at the end of its possible range.",
        "Run more repetitions or samples.",
    )  # fmt: skip
    MANY_MODELS = (
        1 << 38, "many models few points",
        "The models are so many and the points so few that skewed differences make adjusted "
        "p-values too small.",
        "Evaluate more points, or choose fewer models beforehand.",
    )  # fmt: skip
    EARLY_LOOK = (
        1 << 39, "early look",
        "There are fewer than 100 points (or groups): where differences are skewed, limits miss "
        "more often at such an early look than they say.",
        "Evaluate at least 100 before you stop.",
    )  # fmt: skip
    OTHER_TEST_SIZE = (
        1 << 40, "unequal test sizes", "Halves and data are not tested on equally many points.",
        "Test all of them on equally many.",
    )  # fmt: skip
    OVERFITTING = (
        1 << 41, "overfitting",
        "The error on the training points is far below that on others: a correction of it is too "
        "small, or its spread too narrow.",
        "Use bootstrap_oob, or cross-validation.",
    )  # fmt: skip
    NEVER_OUT_OF_BAG = (
        1 << 42, "never out of bag", "Some points were never out of bag and do not count.",
        "Draw more bootstrap samples.",
    )  # fmt: skip
    DUPLICATED_POINTS = (
        1 << 43, "duplicated points",
        "Many points have the very same losses as one other point of their fold: stored twice, "
        "they are trained on and tested on, and count double.",
        "Keep one of each, or give both one label of 'source' and whole sources to a fold.",
    )  # fmt: skip
    LARGE_ALPHA = (
        1 << 44, "large alpha", "alpha is the error rate and not the confidence level.",
        "Use alpha=0.05 for a 95% interval.",
    )  # fmt: skip
    IDENTICAL = (
        1 << 45, "identical model",
        "Another model has the very same losses, or the same mean loss in every source that is "
        "counted as one, and shares these numbers.",
        "Leave one of them out.",
    )  # fmt: skip
    HALVES_OVERLAP = (
        1 << 46, "overlapping halves", "The halves of a division share points: too narrow.",
        "Divide the points into disjoint halves.",
    )  # fmt: skip
    OTHER_DRAWS = (
        1 << 47, "incomplete samples",
        "The counts do not add up to one draw a point in each sample: losses of points that were "
        "drawn may be missing.",
        "Log every point of every sample.",
    )  # fmt: skip
    JUDGE_IGNORED = (
        1 << 48, "judge ignored",
        "The weight of the judge is zero: where people have labelled as well, its labels say "
        "nothing about theirs.",
        "Look at its instructions, or take another judge.",
    )  # fmt: skip
    FEW_DISAGREEMENTS = (
        1 << 49, "few disagreements",
        "Judge and people disagree on fewer than 10 of the points that both labelled: too few to "
        "know how often, and the interval may be too narrow.",
        "Have people label more points.",
    )  # fmt: skip
    UNEQUAL_CLUSTERS = (
        1 << 50, "unequal clusters",
        "A few clusters hold much of the log: the interval is too narrow.",
        "Use correction='CR2'.",
    )  # fmt: skip
    BIASED_BY_FOLD = (
        1 << 51, "biased by fold",
        "This metric is biased on few points, and so is its mean over small folds.",
        "Use folds='pool'.",
    )  # fmt: skip
    END_OF_SCALE = (
        1 << 52, "end of scale",
        "The estimate is at the end of the scale, where it has no interval.",
        "Use scale='identity', or evaluate more points.",
    )  # fmt: skip
    NO_INFLUENCE = (
        1 << 53, "metric without variance",
        "In some cell the metric is 0/0 or an error of exactly 0, and counts as a constant.",
        "Evaluate more points in each cell, or use folds='pool'.",
    )  # fmt: skip
    FEW_OF_ONE_WAY = (
        1 << 54, "few of one way",
        "One of the two levels of by= has fewer than 10 labels: their part of the standard error "
        "rests on so few.",
        "Add labels of it, such as seeds or judges; more of the other level do not help.",
    )  # fmt: skip
    TWO_WAYS_CLAMPED = (
        1 << 55, "two ways clamped",
        "The variance that was estimated for two ways is smaller than it can be, and was replaced: "
        "in a crossed log by the part of single losses, otherwise by the sum of both ways.",
        "At least one of the levels hardly matters here; more labels of both show which.",
    )  # fmt: skip
    POINTS_ALIKE = (
        1 << 56, "points alike",
        "Answers to one point differ more than points do: the variance between points was "
        "estimated below 0, and counts as 0.",
        "Read the planned standard errors as the smallest possible, or ask more points.",
    )  # fmt: skip
    GAPS_IN_TIME = (
        1 << 57, "gaps in time",
        "The times do not follow each other after one step, and were counted as if they did.",
        "Fill the gaps, or average over equal periods first.",
    )  # fmt: skip
    HORIZON_NOT_USED = (
        1 << 58, "horizon not used",
        "The variance for this horizon was not positive, and that for one step took its place.",
        "Use equal-weighted cosines, which is ordered without horizon=.",
    )  # fmt: skip
    STRONG_DEPENDENCE = (
        1 << 59, "strong dependence",
        "Losses stay alike for longer than the estimate of their variance allows for: the interval "
        "is too narrow.",
        "Use ordered with estimator='ewc', evaluate more times, or average over longer periods "
        "first.",
    )  # fmt: skip
    FEW_DATA_SETS = (
        1 << 60, "few data sets",
        "There are fewer than 5 data sets: the p-value of the F test may be too small.",
        "Use test='chi2', which errs on the other side, or add data sets.",
    )  # fmt: skip


@cache
def label_cautions(flags: int) -> str:
    """Join the labels of all bits of one row; empty where there is none."""
    return ", ".join(caution.label for caution in Caution if flags & caution)


def list_cautions(flags: IntArray) -> tuple[Caution, ...]:
    """List the cautions that occur in any row."""
    return members_of(int(np.bitwise_or.reduce(flags, axis=None)))


@cache
def members_of(flags: int) -> tuple[Caution, ...]:
    """Take a combination of bits apart."""
    return tuple(caution for caution in Caution if flags & caution)


def sentences_of(cautions: tuple[Caution, ...]) -> dict[str, str]:
    """Map the label of each caution to its sentence and its advice."""
    return {caution.label: f"{caution.sentence} {caution.advice}" for caution in cautions}


def flag_attrs(cautions: tuple[Caution, ...]) -> dict[str, Any]:
    """Describe some cautions as CF does for a variable of independent flags.

    The flags are of 64 bits. NetCDF 3 has none of these: there a result can be stored as long as
    the cautions that are listed fit into 32 bits, which is why an array in memory lists those
    that occur and not all. A bit means the same in every result.
    """
    return {
        "long_name": "reasons to doubt the result",
        "flag_masks": np.array([int(caution) for caution in cautions], dtype=np.int64),
        "flag_meanings": " ".join(caution.label.replace(" ", "_") for caution in cautions),
        "flag_descriptions": "; ".join(
            f"{label}: {words}" for label, words in sentences_of(cautions).items()
        ),
    }
