"""Plans whose models serve several evaluations: nested and replace-one cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError
from cvstats.options import Rng, seed_of, whole_number
from cvstats.plans.drawing import Mixing, Points, folds, generator, mixing
from cvstats.plans.folds import check_folds
from cvstats.plans.plan import Evaluation, Fit, Plan, listed_options


@dataclass(frozen=True)
class Nested:
    """Cross-validation within cross-validation, without training any model twice."""

    n_folds: int
    n_repetitions: int
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Ask for folds of two points, whose variance can be estimated."""
        check_folds(points, self.n_folds, self.mixing, per_fold=1 if self.mixing == "groups" else 2)

    def n_fits(self, points: Points | None) -> int:
        """Count single folds and pairs of folds."""
        return self.n_repetitions * self.n_folds * (self.n_folds + 1) // 2

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out each fold, and then each pair of folds.

        The model without the folds j and l is tested on l as the inner model of the outer
        fold j, and on j as the inner model of the outer fold l.
        """
        for repetition in range(self.n_repetitions):
            fold = folds(points, self.n_folds, self.mixing, generator(self.seed, repetition))
            inside = [np.flatnonzero(fold == k) for k in range(self.n_folds)]

            def tested(
                outer: int, k: int, r: int = repetition, at: list[IntArray] = inside
            ) -> Evaluation:
                return Evaluation({"repetition": r, "outer": outer, "fold": k}, at[k])

            for j in range(self.n_folds):
                yield Fit(np.flatnonzero(fold != j), (tested(j, j),))
            for j in range(self.n_folds):
                for k in range(j + 1, self.n_folds):
                    train = np.flatnonzero((fold != j) & (fold != k))
                    yield Fit(train, (tested(j, k), tested(k, j)))


@dataclass(frozen=True)
class ReplaceOne:
    """Cross-validation of the data, of a half, and of the half with each point replaced."""

    n_folds: int
    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Ask for a half that fills the folds."""
        if points.n // 2 < self.n_folds:
            raise LogError(
                f"the half of {points.n:,} points cannot fill {self.n_folds:,} folds. Expected "
                f"n_folds={points.n // 2:,} or fewer."
            )

    def n_fits(self, points: Points | None) -> int | None:
        """Count the folds of the data, of the half, and those that a replaced point changes."""
        if points is None:
            return None
        changed = (points.n // 2) * (self.n_folds - 1)
        return self.n_repetitions * (2 * self.n_folds + changed)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Go through the repetitions; the halves are the same in all of them."""
        order = generator(self.seed, 0).permutation(points.n)
        half = points.n // 2
        left, right = np.sort(order[:half]), order[half : 2 * half]
        for repetition in range(self.n_repetitions):
            rng = generator(self.seed, 1, repetition)
            yield from self.whole(folds(points, self.n_folds, "points", rng), repetition)
            fold = folds(Points(half), self.n_folds, "points", rng)
            yield from self.halves(left, right, fold, repetition)

    def whole(self, fold: IntArray, repetition: int) -> Iterator[Fit]:
        """Leave out one fold of the data after the other."""
        for k in range(self.n_folds):
            label = {"sample": 0, "repetition": repetition, "fold": k}
            tested = Evaluation(label, np.flatnonzero(fold == k))
            yield Fit(np.flatnonzero(fold != k), (tested,))

    def halves(
        self, left: IntArray, right: IntArray, fold: IntArray, repetition: int
    ) -> Iterator[Fit]:
        """Leave out one fold of the half after the other, with each of its points replaced.

        Replacing a point of the fold that is left out does not change the model, so the one
        trained on the half is tested on all these test sets.
        """

        def tested(sample: int, rows: IntArray, k: int) -> Evaluation:
            label = {"sample": sample, "repetition": repetition, "fold": k}
            return Evaluation(label, rows[fold == k])

        for k in range(self.n_folds):
            changed = [
                tested(2 + at, replaced(left, right, at), k)
                for at in np.flatnonzero(fold == k).tolist()
            ]
            yield Fit(left[fold != k], (tested(1, left, k), *changed))
        for at in range(len(left)):
            rows = replaced(left, right, at)
            for k in range(self.n_folds):
                if k != fold[at]:
                    yield Fit(rows[fold != k], (tested(2 + at, rows, k),))


def replaced(left: IntArray, right: IntArray, at: int) -> IntArray:
    """Put one point of the other half in the place of a point."""
    rows = left.copy()
    rows[at] = right[at]
    return rows


def nested_cv(
    n_folds: int = 5,
    n_repetitions: int = 25,
    *,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan the nested cross-validation of Bates, Hastie and Tibshirani.

    For `cvstats.nested_cv`, designed for the risk of the model fitted to all data. This is not
    the nesting in which hyper-parameters are tuned: here the inner cross-validation measures
    how far a cross-validation is off. To tune as well, pass `cvstats.evaluate` an estimator
    that tunes itself, such as scikit-learn's ``GridSearchCV``.

    Parameters
    ----------
    n_folds : int, optional
        K, 3 or more.
    n_repetitions : int, optional
        How many random partitions; at least 25, the paper takes 200.
    stratified : bool, optional
        Give every fold its share of each class of ``y``, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        Leads to the levels ``repetition, outer, fold, point``: where ``outer == fold`` the
        model was trained on all other folds, else on those that are neither. It takes
        ``n_repetitions * K (K + 1) / 2`` fits, not ``K^2``: the model without two folds serves
        both ways round.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods suggests the defaults for up to 100 points.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), Cross-validation: what does it estimate and how well
    does it do it?, JASA 119(546), 1434-1445, doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.nested_cv(10, 50, rng=1).n_fits
    2750
    """
    n_folds = whole_number("n_folds", n_folds, 3)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Nested(n_folds, n_repetitions, mixing(stratified, grouped), seed_of(rng))
    counts = {"n_folds": n_folds, "n_repetitions": n_repetitions}
    options = listed_options(counts, stratified, grouped, design.seed)
    levels = ("repetition", "outer", "fold", "point")
    return Plan("nested_cv", options, levels, ("nested_cv",), False, design)


def replace_one(n_folds: int = 5, n_repetitions: int = 1, *, rng: Rng = None) -> Plan:
    """Plan a cross-validation, and many of one half of the data in which one point is replaced.

    For `cvstats.replace_one`, whose target is the expected error at the size of the training
    folds; how much the half's error moves gives the variance.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more.
    n_repetitions : int, optional
        Random partitions, the same ones for the half and for all its changed forms.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        Leads to the levels ``sample, repetition, fold, point``. Sample 0 is the data, 1 the
        half of ``h = n // 2`` points, ``1 + l`` the half with its l-th point (of 1 to h)
        replaced, in its place, by one of the other half. It takes ``2 K + h (K - 1)`` fits a
        repetition, not ``(h + 2) K``: a point replaced in the fold that is left out changes the
        test set and not the model.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The fits grow with n, which makes this the plan for a few hundred points and fast learners.
    If the number of points is odd, one stays out of both halves.

    References
    ----------
    Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.replace_one(5, rng=1).bind(200).n_fits
    410
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = ReplaceOne(n_folds, n_repetitions, seed_of(rng))
    options = (("n_folds", n_folds), ("n_repetitions", n_repetitions), ("rng", design.seed))
    levels = ("sample", "repetition", "fold", "point")
    cost = "n_repetitions (2 n_folds + (n // 2) (n_folds - 1))"
    return Plan("replace_one", options, levels, ("replace_one",), False, design, cost)
