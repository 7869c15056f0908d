"""What each method needs, what it covers, what it promises, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvstats.design import Design
from cvstats.errors import LogError

__all__ = ["METHODS", "Method", "fold_level", "require"]


@dataclass(frozen=True)
class Method:
    """One entry: facts for the reader, and the test whether a log allows it."""

    name: str
    needs: str
    target: str
    guarantee: str
    fits: str
    reference: str
    problem: Callable[[Design], str | None]


def fold_level(design: Design) -> str | None:
    """Find the level that names the test folds: ``fold``, else ``source``, else none."""
    return next((level for level in ("fold", "source") if level in design.levels), None)


def fewest_folds(design: Design) -> int:
    """Count the folds of the repetition that has fewest; each may call its folds anew."""
    level = fold_level(design)
    if level is None or not design.has("repetition"):
        return 1 if level is None else design.number(level)
    codes = design.codes_of(design.plan(("repetition", level)))
    return int(np.unique(codes[:, 0], return_counts=True)[1].min())


def plain(design: Design) -> str | None:
    """Ask for a log of one data set, without resampled copies or inner folds."""
    for level, what in {
        "count": "a bootstrap log",
        "outer": "a nested cross-validation log",
        "sample": "a log of several resampled data sets",
    }.items():
        if design.has(level):
            return (
                f"this is {what} (level {level!r}). Take one part of it first, as in "
                f"log.xs(0, level={level!r}), or use the method made for it."
            )
    return None


def partition(design: Design) -> str | None:
    """Ask for each point to be tested once in every repetition."""
    if (words := plain(design)) is not None:
        return words
    splits = design.splits()
    if splits.points is None:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so nothing tells "
            f"which losses belong to one point. Add the identity of each point to the index, "
            f"or take one repetition: log.xs(0, level='repetition')."
        )
    least, most = int(splits.rows.min()), int(splits.rows.max())
    if least < splits.points:
        tested = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"its repetitions test {tested} of the {splits.points:,} points, so these are random "
            f"splits, or some evaluations were left out. A partition tests every point once in "
            f"each repetition. Keep the points that all repetitions have, or treat one "
            f"repetition as a test set: holdout(log.xs(0, level='repetition'))."
        )
    return None


def folds(design: Design) -> str | None:
    """Ask for a partition with at least two folds."""
    if (words := partition(design)) is not None:
        return words
    if fewest_folds(design) < 2:
        return (
            "the log has one fold, a single test set. Add the level 'fold' to the index, "
            "or use holdout."
        )
    return None


def one_partition(design: Design) -> str | None:
    """Ask for a single partition with at least two folds."""
    if (words := folds(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions. Take one of them: "
            f"log.xs(0, level='repetition'); or use wald, which knows about repetitions."
        )
    return None


def test_set(design: Design) -> str | None:
    """Ask for one test set, perhaps several times over."""
    if (words := plain(design)) is not None:
        return words
    if design.has("fold"):
        return (
            f"the log has {design.number('fold'):,} folds, each tested with another model. Take "
            f"one of them: log.xs(0, level='fold'); or use wald for all of them."
        )
    return partition(design)


BAYLE = "Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671"
BATES = (
    "Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445, "
    "doi:10.1080/01621459.2023.2197686"
)
GERAS = "Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300"
BENGIO = "Bengio and Grandvalet (2004), JMLR 5, 1089-1105"
NADEAU = "Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366"

METHODS = {
    method.name: method
    for method in (
        Method(
            "holdout",
            "one test set",
            "risk of the trained model, over points drawn as the test points were",
            "exact as the test set grows, for independent test points",
            "1",
            NADEAU,
            test_set,
        ),
        Method(
            "wald",
            "a K-fold partition, leave-one-out, or several repetitions of it",
            "average test error of the models trained in this cross-validation",
            "exact as the points grow, if the learner is stable; no promise about the risk at "
            "the full sample size",
            "K for each repetition",
            BAYLE,
            partition,
        ),
        Method(
            "naive",
            "a K-fold partition",
            "claimed: the expected risk",
            "none: dependent losses are taken for independent ones",
            "K for each repetition",
            BATES,
            partition,
        ),
        Method(
            "cv_t",
            "a K-fold partition with at least two folds",
            "claimed: the expected risk",
            "none: dependent fold means are taken for independent ones",
            "K for each repetition",
            BAYLE,
            folds,
        ),
        Method(
            "quadratic",
            "one K-fold partition with at least two folds",
            "expected risk at the size of the training folds",
            "heuristic: the variance estimator has the bias that its name states",
            "K",
            GERAS,
            one_partition,
        ),
        Method(
            "decompose",
            "a K-fold partition with at least two folds, or several repetitions of it",
            "components of the variance of one repetition's mean loss",
            "unbiased for the differences of components; the components themselves cannot be "
            "estimated from one log",
            "K for each repetition",
            BENGIO,
            folds,
        ),
    )
}


def require(name: str, design: Design) -> None:
    """Refuse a log that a method cannot answer for, in words.

    Raises
    ------
    LogError
        What the method needs, what this log is, and what to type instead.
    """
    method = METHODS[name]
    if (words := method.problem(design)) is not None:
        raise LogError(f"{name} needs {method.needs}; {words}")
