"""Plans that divide the data into folds, each tested by a model trained on the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError, spelled
from cvstats.options import Rng, seed_of, whole_number
from cvstats.plans.plan import (
    Evaluation,
    Fit,
    Mixing,
    Plan,
    Points,
    folds,
    generator,
    listed_options,
    mixing,
)


def check_folds(points: Points, n_folds: int, by: Mixing, per_fold: int = 1) -> None:
    """Refuse data that cannot fill the folds."""
    units, what = (points.units, "groups") if by == "groups" else (points.n, "points")
    if units < per_fold * n_folds:
        raise LogError(
            f"{n_folds:,} folds need at least {per_fold * n_folds:,} {what}, but there are "
            f"{units:,}. Expected n_folds={units // per_fold:,} or fewer."
        )
    if by == "classes" and points.classes is not None:
        sizes = np.bincount(points.classes)
        rarest = int(sizes.argmin())
        if sizes[rarest] < n_folds:
            first = int(np.flatnonzero(points.classes == rarest)[0])
            raise LogError(
                f"the class of point {first:,} has {sizes[rarest]:,} points, which cannot be in "
                f"each of {n_folds:,} folds. Use fewer folds, or omit stratified=True."
            )


@dataclass(frozen=True)
class Partition:
    """Random partitions into folds; without ``n_repetitions``, one without that level."""

    n_folds: int
    n_repetitions: int | None
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Refuse data that cannot fill the folds."""
        check_folds(points, self.n_folds, self.mixing)

    def n_fits(self, points: Points | None) -> int:
        """Count the folds."""
        return self.n_folds * (self.n_repetitions or 1)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one fold after the other."""
        for repetition in range(self.n_repetitions or 1):
            fold = folds(points, self.n_folds, self.mixing, generator(self.seed, repetition))
            label = {} if self.n_repetitions is None else {"repetition": repetition}
            for k in range(self.n_folds):
                tested = Evaluation({**label, "fold": k}, np.flatnonzero(fold == k))
                yield Fit(np.flatnonzero(fold != k), (tested,))


@dataclass(frozen=True)
class LeaveOneOut:
    """Every point is a fold."""

    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Ask for a point to train on."""
        if points.n < 2:
            raise LogError("leave_one_out needs at least two points, but there is only 1.")

    def n_fits(self, points: Points | None) -> int | None:
        """Count the points."""
        return None if points is None else points.n

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one point after the other."""
        every = np.arange(points.n)
        for i in range(points.n):
            yield Fit(np.delete(every, i), (Evaluation({"fold": i}, every[i : i + 1]),))


@dataclass(frozen=True)
class LeaveOneGroupOut:
    """Every group is a fold of the same name."""

    mixing: Mixing = "groups"

    def check(self, points: Points) -> None:
        """Ask for a source to train on."""
        if points.units < 2:
            (only,) = points.names
            raise LogError(
                "leave_one_source_out needs at least two sources, but groups= has only "
                f"{spelled(only)}."
            )

    def n_fits(self, points: Points | None) -> int | None:
        """Count the groups."""
        return None if points is None else points.units

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one group after the other."""
        for code, name in enumerate(points.names):
            inside = points.groups == code
            tested = Evaluation({"source": name}, np.flatnonzero(inside))
            yield Fit(np.flatnonzero(~inside), (tested,))


def intervals_of(design: Partition, *names: str) -> tuple[str, ...]:
    """Name the methods for a partition; groups that are kept together are the sampling unit."""
    return ("clustered", *names) if design.mixing == "groups" else names


def k_fold(
    n_folds: int = 10, *, stratified: bool = False, grouped: bool = False, rng: Rng = None
) -> Plan:
    """Plan a K-fold cross-validation, in which each point is tested once.

    The log is used by `cvstats.wald`, which targets the average test error of the K trained models.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more. Fold sizes differ by at most one point (more with groups).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold. Otherwise groups are only stored in the log, as its
        level ``source``.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``fold, point``, from K fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    Points must be exchangeable. Do not use this plan for time series, and use ``grouped`` if
    several points come from the same patient. Intervals for stratified folds are computed as for
    random folds, which at worst makes them slightly too wide.

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, JRSS B
    36(2), 111-133, doi:10.1111/j.2517-6161.1974.tb00994.x.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.k_fold(5, rng=1).bind(12)
    k_fold(n_folds=5, stratified=False, grouped=False, rng=1)
    12 points, 5 fits for each model
     fit  fold  n_train  n_test
       0     0        9       3
       1     1        9       3
       2     2       10       2
       3     3       10       2
       4     4       10       2
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    design = Partition(n_folds, None, mixing(stratified, grouped), seed_of(rng))
    options = listed_options({"n_folds": n_folds}, stratified, grouped, design.seed)
    intervals = intervals_of(design, "wald", "corrected_t", "quadratic")
    return Plan("k_fold", options, ("fold", "point"), intervals, True, design)


def leave_one_out() -> Plan:
    """Plan a leave-one-out cross-validation, with one fold for each point.

    The training sets are as large as possible. The log is used by `cvstats.wald`, which targets the
    error of the trained models and is asymptotically exact if the learner is stable.

    Returns
    -------
    Plan
        The log has the levels ``fold, point``, from n fits; folds are numbered like the rows.

    Notes
    -----
    Nothing is random, so there is no seed. `cvstats.case_bootstrap` uses the log of this plan for
    its bias correction.

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, JRSS B
    36(2), 111-133, doi:10.1111/j.2517-6161.1974.tb00994.x.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.leave_one_out().bind(442).n_fits
    442
    """
    return Plan("leave_one_out", (), ("fold", "point"), ("wald",), True, LeaveOneOut(), "n")


def repeated_k_fold(
    n_folds: int = 10,
    n_repetitions: int = 10,
    *,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan several K-fold cross-validations of the same data, with different random folds.

    Repetitions reduce the noise from the random folds, but they do not add points. The log is used
    by `cvstats.wald`, which targets the average error of all trained models, and by
    `cvstats.corrected_t`, which targets the expected error at their training size.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more.
    n_repetitions : int, optional
        Number of partitions. A plan with fewer and the same seed has the first of them.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, fold, point``, from ``n_repetitions * K`` fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    Points must be exchangeable; see `k_fold`.

    References
    ----------
    Bouckaert and Frank (2004), Evaluating the replicability of significance tests for comparing
    learning algorithms, PAKDD, doi:10.1007/978-3-540-24775-3_3.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.repeated_k_fold(10, 5, rng=1).n_fits
    50
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Partition(n_folds, n_repetitions, mixing(stratified, grouped), seed_of(rng))
    counts = {"n_folds": n_folds, "n_repetitions": n_repetitions}
    options = listed_options(counts, stratified, grouped, design.seed)
    levels = ("repetition", "fold", "point")
    intervals = intervals_of(design, "wald", "corrected_t")
    return Plan("repeated_k_fold", options, levels, intervals, True, design)


def five_by_two(*, stratified: bool = False, grouped: bool = False, rng: Rng = None) -> Plan:
    """Plan five repetitions of twofold cross-validation.

    The log is used by `cvstats.five_by_two`, which targets the expected error at half the sample
    size, usually for the difference of two algorithms.

    Parameters
    ----------
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in both halves, up to one point.
    grouped : bool, optional
        Keep the points of a group in one half.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, fold, point``, from 10 fits.

    Raises
    ------
    LogError
        If both stratified and grouped are given.

    Notes
    -----
    The t interval treats the first fold of the first repetition differently. Folds are random, so
    which one has the label 0 is random too.

    References
    ----------
    Dietterich (1998), Approximate statistical tests for comparing supervised classification
    learning algorithms, Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.five_by_two(rng=1).n_fits
    10
    """
    design = Partition(2, 5, mixing(stratified, grouped), seed_of(rng))
    options = listed_options({}, stratified, grouped, design.seed)
    levels = ("repetition", "fold", "point")
    return Plan("five_by_two", options, levels, ("five_by_two",), True, design)


def leave_one_source_out() -> Plan:
    """Plan to leave out one source at a time, such as a patient, a site or a month.

    The log is used by `cvstats.out_of_source`, which targets the error on *new* sources and treats
    sources, not points, as the sampling unit.

    Returns
    -------
    Plan
        The log has the levels ``source, point``, from one fit per source: the sources are the
        folds. ``groups=`` names them.

    Notes
    -----
    Nothing is random, so there is no seed. Sources must be exchangeable and independent of each
    other; consecutive months may be neither.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.leave_one_source_out().bind(5, groups=["a", "a", "b", "b", "c"])
    leave_one_source_out()
    5 points, 3 fits for each model
     fit source  n_train  n_test
       0      a        3       2
       1      b        3       2
       2      c        4       1
    """
    return Plan(
        "leave_one_source_out", (), ("source", "point"), ("out_of_source", "wald"), True,
        LeaveOneGroupOut(), "one for each source",
    )  # fmt: skip


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
        """Count the folds and the pairs of folds."""
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
        """Iterate over the repetitions; the halves are the same in all of them."""
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
    """Replace a point by one of the other half."""
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

    The log is used by `cvstats.nested_cv`, designed for the risk of the model fitted to all the
    data. This is not nested cross-validation for tuning hyper-parameters: here the inner
    cross-validation measures the error of cross-validation itself. To tune as well, pass
    `cvstats.evaluate` an estimator that tunes itself, such as scikit-learn's ``GridSearchCV``.

    Parameters
    ----------
    n_folds : int, optional
        K, 3 or more.
    n_repetitions : int, optional
        Number of random partitions; at least 25, the paper uses 200.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, outer, fold, point``: if ``outer == fold`` the model
        was trained on all other folds, otherwise on all folds except these two. It takes
        ``n_repetitions * K (K + 1) / 2`` fits, not ``K^2``: the model without two folds is used for
        both orders.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends the defaults for up to 100 points.

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
    """Plan a cross-validation of the data, and many of a half with one point replaced.

    The log is used by `cvstats.replace_one`, which targets the expected error at the size of the
    training folds; its variance is estimated from the changes in the error of the half.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more.
    n_repetitions : int, optional
        Number of random partitions, which are the same for the half and all its modifications.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, fold, point``. Sample 0 is the data, 1 the half
        of ``h = n // 2`` points, ``1 + l`` the half with its l-th point (1 to h) replaced by one of
        the other half. It takes ``2 K + h (K - 1)`` fits per repetition, not ``(h + 2) K``:
        replacing a point in the fold that is left out changes the test set but not the model.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The number of fits grows with n, so this plan is suitable only for fast learners and at most a
    few hundred points. If the number of points is odd, one point is in neither half.

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
