"""What can be wrong with a log: every code, its advice, and the numbers that betray it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from cvstats.core.types import FloatArray
from cvstats.errors import plainly

__all__ = [
    "CODES",
    "Code",
    "Finding",
    "drift",
    "names_a_score",
    "outlier_share",
    "points_for_skewness",
    "tail_index",
]


@dataclass(frozen=True)
class Code:
    """One kind of finding: what its number is, from where on it is told, and what to do."""

    title: str
    number: str
    limit: str
    advice: str


@dataclass(frozen=True)
class Finding:
    """One thing found in one log."""

    code: str
    words: str
    model: str
    value: float

    @property
    def advice(self) -> str:
        """What to do about it."""
        return CODES[self.code].advice


CODES: Mapping[str, Code] = {
    "CVS001": Code(
        "Unreadable log",
        "none",
        "the log contradicts itself",
        "Mend what the sentence names; no method answers before that.",
    ),
    "CVS002": Code(
        "Missing losses",
        "how many losses are missing or infinite",
        "any",
        "Find out why the model failed there: the hard points are often the ones that go "
        "missing. missing='drop' leaves them out for all models.",
    ),
    "CVS003": Code(
        "Incomplete partition",
        "share of the points that the smallest repetition lacks",
        "a log with folds whose repetitions do not test the same points",
        "Add the missing evaluations, or keep the points that every repetition has. Until then "
        "the log is taken for random splits.",
    ),
    "CVS004": Code(
        "No method for this log",
        "none",
        "interval() refuses the log",
        "See methods() for what is missing and which resampling plan makes it.",
    ),
    "CVS005": Code(
        "Outliers carry the variance",
        "share of the sum of squares in the top 1% of the losses",
        "above 1/2, from 100 losses on",
        "Look at these points first. The standard error rests on them, so check the data, or "
        "use a loss that is less sensitive, such as the absolute error.",
    ),
    "CVS006": Code(
        "Heavy tails",
        "tail index (Hill) of the largest losses",
        "below 2, from 1,000 losses on",
        "The variance of such losses may not exist, and then no standard error means anything. "
        "Use a bounded or clipped loss, or the logarithm.",
    ),
    "CVS007": Code(
        "Too skewed for so few points",
        "points that the rule 25 x skewness^2 asks for",
        "more than there are",
        "The normal approximation is rough: read the limits as approximate, and do not lean on "
        "p-values near the level.",
    ),
    "CVS008": Code(
        "Few points",
        "number of points",
        "below 30",
        "The normal approximation is rough. Collect more points before comparing models.",
    ),
    "CVS009": Code(
        "Few errors",
        "number of rarer outcomes (0 or 1) among the points",
        "below 10",
        "For 0/1 losses of one test set use holdout(interval='clopper-pearson') or 'wilson'.",
    ),
    "CVS010": Code(
        "Constant losses",
        "the one value of the loss",
        "all losses equal",
        "Check that the column holds losses; an interval of no width says nothing.",
    ),
    "CVS011": Code(
        "Negative losses",
        "share of negative losses",
        "all losses zero or below",
        "Losses are better when smaller. If these are scores, turn their sign.",
    ),
    "CVS012": Code(
        "Folds of unequal size",
        "points in the largest fold over those in the smallest",
        "above 2",
        "Choose whether points or folds count alike: wald(fold_weights='size') or 'equal'; "
        "sources of such different sizes: clustered(correction='CR3').",
    ),
    "CVS013": Code(
        "Folds of unequal variance",
        "variance of the most variable fold over that of the median fold",
        "above 5, with 10 points or more in each fold",
        "Look at what that fold holds: a group of its own, a few outliers, or a failed fit.",
    ),
    "CVS014": Code(
        "Few folds",
        "number of folds",
        "below 5, where points and not sources are split",
        "Each model was trained on much less than all data, so its error is larger than that of "
        "the final model. Use 5 folds or more.",
    ),
    "CVS015": Code(
        "Few sources",
        "number of sources",
        "below 10",
        "An interval for a new source leans on so few numbers; collect more sources, not more "
        "points of these.",
    ),
    "CVS016": Code(
        "Few repetitions",
        "number of random splits or resamples",
        "below 15 random splits, or 100 bootstrap samples",
        "The standard error itself is noisy. Draw more splits; they are cheap beside new data.",
    ),
    "CVS017": Code(
        "Repetitions disagree",
        "standard deviation of the repetition means over the standard error",
        "above 1/2, from three repetitions on",
        "How the data were split matters nearly as much as which data they are. Repeat more "
        "often, or use more folds; an unstable learner has no guarantee.",
    ),
    "CVS018": Code(
        "Drift across repetitions",
        "p-value of a trend of the repetition means",
        "below 0.01, from five repetitions on",
        "Repetitions should not know their number. Look for a seed, a cache or a warm start "
        "that is carried from one to the next.",
    ),
    "CVS019": Code(
        "Duplicated models",
        "share of the evaluations with the very same loss",
        "all of them",
        "One of them may be a copy, or a fall-back to the same predictions. Leave one out: it "
        "only makes adjusted p-values larger.",
    ),
    "CVS020": Code(
        "Sources in training and test",
        "number of sources that stand in several folds",
        "any",
        "Losses of one source depend on each other. Use clustered(), or leave out whole sources "
        "at a time (cvstats.plans.leave_one_source_out).",
    ),
    "CVS021": Code(
        "Unused level",
        "how many labels the level has",
        "a level that no method knows, named like one that the log lacks",
        "No method uses the level, and without it an interval may be far too narrow. Rename it as "
        "the sentence says, if it is that; by= uses a level of any name.",
    ),
    "CVS022": Code(
        "Scores for losses",
        "mean loss",
        "losses of 0 and 1 whose mean is above 1/2 for every model, or a model with the name of "
        "a score",
        "Losses are better when smaller, so scores rank the models upside down. Use 1 - x for "
        "hits and accuracies, and -x for scores that can be any number.",
    ),
    "CVS023": Code(
        "One loss for each split",
        "number of losses",
        "one loss in each fold or split and no level point, below 100 in a repetition",
        "The mean of a fold is no point: log.attrs['holds'] = 'scores' says what these are, and "
        "corrected_t is made for them. Losses of points are better.",
    ),
}  # fmt: skip
"""Every code, in the order of their numbers."""


SCORES = {
    "acc", "accuracy", "auc", "auroc", "correct", "correctness", "exact-match", "f1", "hit", "hits",
    "precision", "r2", "recall", "roc-auc", "score", "scores",
}  # fmt: skip
"""Names of what is better when larger."""


def names_a_score(name: object) -> bool:
    """Whether a column bears the name of a score, perhaps of a certain kind: ``test_accuracy``."""
    words = plainly(name) if isinstance(name, str) else ""
    lead, _, last = words.rpartition("-")
    return words in SCORES or (lead in ("balanced", "mean", "test", "val") and last in SCORES)


def outlier_share(values: FloatArray) -> float:
    """Share of the sum of squares about the mean that the top 1% of the losses carry."""
    squares = values - values.mean()
    np.square(squares, out=squares)
    total = squares.sum()
    top = max(1, -(-len(values) // 100))
    if total <= 0 or top >= len(values):
        return 0.0
    return float(np.partition(squares, len(squares) - top)[-top:].sum() / total)


def tail_index(values: FloatArray) -> float:
    """Hill's estimate of the index of the tail of ``|loss - mean|``; infinite for thin tails.

    Hill (1975), Annals of Statistics 3(5), 1163-1174. Moments of an order above the index do
    not exist.
    """
    top = max(50, len(values) // 50)
    if len(values) < 1000:
        return np.inf
    size = np.abs(values - values.mean())
    largest = np.partition(size, len(size) - top - 1)[-top - 1 :]
    threshold = largest.min()
    if threshold <= 0:
        return np.inf
    excess = float(np.log(largest / threshold).sum() / top)
    return 1 / excess if excess > 0 else np.inf


def points_for_skewness(values: FloatArray) -> float:
    """Cochran's rule: so many points make the normal law good enough for a 95% interval.

    Cochran (1977), Sampling Techniques, 3rd edition, section 2.15.
    """
    apart = values - values.mean()
    powers = apart * apart
    variance = float(powers.mean())
    if variance <= 0:
        return 0.0
    powers *= apart  # a power of 3 would take ten times as long
    skewness = float(powers.mean()) / variance**1.5
    return float(25 * skewness**2)


def drift(means: FloatArray) -> float:
    """Two-sided p-value of a linear trend of the means over their number."""
    number = np.arange(len(means)) - (len(means) - 1) / 2
    apart = means - means.mean()
    scale = np.sqrt((number @ number) * (apart @ apart))
    if scale <= 0:
        return 1.0
    r = float(np.clip(number @ apart / scale, -1, 1))
    df = len(means) - 2
    if abs(r) == 1:
        return 0.0
    return float(2 * special.stdtr(df, -abs(r) * (df / (1 - r * r)) ** 0.5))
