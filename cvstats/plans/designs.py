"""The plans: folds, random splits and bootstrap samples."""

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
    held_out,
    listed_options,
    mixing,
    shuffled,
    train_share,
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
        """Require a point to train on."""
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
        """Require a source to train on."""
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
        """Require folds of two points, whose variance can be estimated."""
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
        """Require a half that fills the folds."""
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


# --- random splits --------------------------------------------------------------------------------


def tested_units(points: Points, ratio: float, by: Mixing) -> int:
    """Count the points (groups) of a test set if a share ``ratio`` is trained on."""
    units, what = (points.units, "groups") if by == "groups" else (points.n, "points")
    n_train = round(ratio * units)
    if not 1 <= n_train < units:
        raise LogError(
            f"ratio={ratio!r} of {units:,} {what} gives {n_train:,} for training and "
            f"{units - n_train:,} for testing. Expected at least one of each."
        )
    return units - n_train


def split(
    points: Points, n_units: int, by: Mixing, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the training and the test points of one split."""
    tested = held_out(points, n_units, by, rng)
    return np.delete(np.arange(points.n), tested), tested


@dataclass(frozen=True)
class Splits:
    """Random splits; without ``n_repetitions``, one without that level."""

    n_repetitions: int | None
    ratio: float
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Require points in both sets."""
        tested_units(points, self.ratio, self.mixing)

    def n_fits(self, points: Points | None) -> int:
        """Count the splits."""
        return self.n_repetitions or 1

    def fits(self, points: Points) -> Iterator[Fit]:
        """Draw one split after the other."""
        n_units = tested_units(points, self.ratio, self.mixing)
        for repetition in range(self.n_repetitions or 1):
            rng = generator(self.seed, repetition)
            train, tested = split(points, n_units, self.mixing, rng)
            label = {} if self.n_repetitions is None else {"repetition": repetition}
            yield Fit(train, (Evaluation(label, tested),))


@dataclass(frozen=True)
class PairedSplits:
    """Random splits of the data and of both halves of random divisions of them."""

    n_repetitions: int
    n_divisions: int
    ratio: float
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Require halves that are larger than the test sets."""
        n_test = tested_units(points, self.ratio, self.mixing)
        if points.n // 2 <= n_test:
            raise LogError(
                f"ratio={self.ratio!r} of {points.n:,} points gives {n_test:,} for testing, but "
                f"the halves of {points.n // 2:,} points must be larger than that. Expected a "
                "larger ratio, 2/3 or more."
            )

    def n_fits(self, points: Points | None) -> int:
        """Count the splits of all samples."""
        return (2 * self.n_divisions + 1) * self.n_repetitions

    def fits(self, points: Points) -> Iterator[Fit]:
        """Draw the splits of the data, and then those of the halves."""
        n_test = tested_units(points, self.ratio, self.mixing)
        for sample in range(2 * self.n_divisions + 1):
            rows = self.rows(points, sample)
            inside = points.take(rows)
            for repetition in range(self.n_repetitions):
                rng = generator(self.seed, 1, sample, repetition)
                train, tested = split(inside, n_test, self.mixing, rng)
                label = {"sample": sample, "repetition": repetition}
                yield Fit(rows[train], (Evaluation(label, rows[tested]),))

    def rows(self, points: Points, sample: int) -> IntArray:
        """Find the points of a sample: all, or one half of a division.

        If the number of points is odd, each division omits one at random.
        """
        if sample == 0:
            return np.arange(points.n)
        division, second = divmod(sample - 1, 2)
        rng = generator(self.seed, 0, division)
        kept = np.sort(rng.permutation(points.n)[: 2 * (points.n // 2)])
        # Every other point in random order within a class (or of all points without classes).
        order = shuffled(points.take(kept), self.mixing, rng)
        return np.sort(kept[order[second::2]])


def holdout(
    ratio: float = 0.8, *, stratified: bool = False, grouped: bool = False, rng: Rng = None
) -> Plan:
    """Plan a single random split into training and test points.

    The log is used by `cvstats.holdout`, which targets the risk of the trained model.

    Parameters
    ----------
    ratio : float, optional
        Share of the points to train on (of the groups, if ``grouped``).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in the test set, up to one point.
    grouped : bool, optional
        Keep the points of a group in the same set.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the level ``point``, from one fit.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The interval is asymptotically exact for independent points, but it is wide, because few points
    are tested.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.holdout(ratio=0.75, rng=1).bind(100)
    holdout(ratio=0.75, stratified=False, grouped=False, rng=1)
    100 points, 1 fit for each model
     fit  n_train  n_test
       0       75      25
    """
    design = Splits(None, train_share(ratio), mixing(stratified, grouped), seed_of(rng))
    options = (
        ("ratio", design.ratio), ("stratified", stratified), ("grouped", grouped),
        ("rng", design.seed),
    )  # fmt: skip
    return Plan("holdout", options, ("point",), ("holdout",), True, design)


def subsampling(
    n_repetitions: int = 25,
    *,
    ratio: float = 0.9,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan independent random splits of the data (Monte Carlo cross-validation).

    The log is used by `cvstats.corrected_t`, which targets the expected error at the training size.

    Parameters
    ----------
    n_repetitions : int, optional
        Number of splits.
    ratio : float, optional
        Share of the points to train on (of the groups, if ``grouped``).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each test set, up to one point.
    grouped : bool, optional
        Keep the points of a group in the same set.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point``, from ``n_repetitions`` fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends the defaults for more than 100 points.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.subsampling(25, ratio=0.9, rng=1).bind(442).to_frame().head(2)
       fit  repetition  n_train  n_test
    0    0           0      398      44
    1    1           1      398      44
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Splits(n_repetitions, train_share(ratio), mixing(stratified, grouped), seed_of(rng))
    options = (
        ("n_repetitions", n_repetitions), ("ratio", design.ratio), ("stratified", stratified),
        ("grouped", grouped), ("rng", design.seed),
    )  # fmt: skip
    levels = ("repetition", "point")
    return Plan("subsampling", options, levels, ("corrected_t",), True, design)


def paired_subsampling(
    n_repetitions: int = 10,
    n_divisions: int = 25,
    *,
    ratio: float = 0.9,
    stratified: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan random splits of the data, and of disjoint halves to estimate their variance.

    The log is used by `cvstats.conservative_z`, which targets the expected error at the training
    size of the models of the whole data.

    Parameters
    ----------
    n_repetitions : int, optional
        J, the number of splits of the data and of each half.
    n_divisions : int, optional
        R, the number of divisions of the data into two halves.
    ratio : float, optional
        Share of the data to train on. The halves are tested on as many points as the data and
        trained on the rest, so the share must be above 1/2, preferably 2/3 or more.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each half and each test set of the data,
        and those of a half in its test sets, up to one point.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, point``, from ``(2 R + 1) J`` fits. Sample 0 is
        the data; samples ``2 r - 1`` and ``2 r`` are the halves of division r, counted from 1.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends J >= 10 and R = 25 up to 100 points, J = 5 and R = 10
    beyond. If the number of points is odd, each division omits one at random.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.paired_subsampling(5, 10, rng=1).n_fits
    105
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    n_divisions = whole_number("n_divisions", n_divisions, 1)
    by = mixing(stratified, grouped=False)
    design = PairedSplits(n_repetitions, n_divisions, train_share(ratio), by, seed_of(rng))
    options = (
        ("n_repetitions", n_repetitions), ("n_divisions", n_divisions), ("ratio", design.ratio),
        ("stratified", stratified), ("rng", design.seed),
    )  # fmt: skip
    levels = ("sample", "repetition", "point")
    return Plan("paired_subsampling", options, levels, ("conservative_z",), False, design)


# --- bootstrap samples ----------------------------------------------------------------------------


def check_two(points: Points) -> None:
    """Require two points to draw from."""
    if points.n < 2:
        raise LogError("a bootstrap needs at least two points, but there is only 1.")


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap samples of the data and, with ``n_samples``, of bootstrap samples of them."""

    n_samples: int | None
    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require two points to draw from."""
        check_two(points)

    def n_fits(self, points: Points | None) -> int:
        """Count one fit per sample, and one per bootstrap sample of it."""
        return ((self.n_samples or 0) + 1) * (self.n_repetitions + 1)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Train on each sample itself, and then on draws from it."""
        n = points.n
        for sample in range((self.n_samples or 0) + 1):
            rng = generator(self.seed, sample)
            drawn = rng.integers(n, size=n) if sample else np.arange(n)
            label = {} if self.n_samples is None else {"sample": sample}
            tested = np.unique(drawn)
            for repetition in range(self.n_repetitions + 1):
                train = drawn[rng.integers(n, size=n)] if repetition else drawn
                count = np.bincount(train, minlength=n)[tested]
                at = Evaluation({**label, "repetition": repetition}, tested, count)
                yield Fit(np.sort(train), (at,), apparent=repetition == 0)


@dataclass(frozen=True)
class CaseBootstrap:
    """Leave each point out of each bootstrap sample that contains it, with all copies."""

    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require two points to draw from."""
        check_two(points)

    def n_fits(self, points: Points | None) -> int | None:
        """Count the different points of all samples."""
        if points is None:
            return None
        every = range(self.n_repetitions)
        return sum(int(np.count_nonzero(self.counts(points.n, b))) for b in every)

    def counts(self, n: int, repetition: int) -> IntArray:
        """Draw how often each point is in a sample; a sample of a single point is redrawn."""
        rng = generator(self.seed, repetition)
        while True:
            counts = np.bincount(rng.integers(n, size=n), minlength=n)
            if np.count_nonzero(counts) > 1:
                return counts

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one point of one sample after the other."""
        for repetition in range(self.n_repetitions):
            counts = self.counts(points.n, repetition)
            train = np.repeat(np.arange(points.n), counts)
            for i in np.flatnonzero(counts):
                tested = Evaluation(
                    {"repetition": repetition + 1}, np.array([i]), counts[i : i + 1]
                )
                yield Fit(train[train != i], (tested,))


def bootstrap(n_repetitions: int = 1000, *, rng: Rng = None) -> Plan:
    """Plan bootstrap samples, each tested on all points, and the fit to the data.

    The log is used by `cvstats.bootstrap_oob`, `cvstats.bootstrap_632` and
    `cvstats.location_shifted`, which target the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples of n points are drawn with replacement.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point, count``, from B + 1 fits. The count is how often
        the point was in the training sample (0: out of bag); repetition 0 is the fit to the data,
        whose error on them is the apparent error.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The reported standard error is much too large unless B is several times the number of points;
    the methods can remove the Monte Carlo part (``monte_carlo="removed"``). A point is in every
    sample, and so never out of bag, with probability ``0.632^B``, which a few dozen samples make
    negligible. Groups and classes are ignored: the standard errors require samples of single
    points.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.bootstrap(1000, rng=1).n_fits
    1001
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Bootstrap(None, n_repetitions, seed_of(rng))
    options = (("n_repetitions", n_repetitions), ("rng", design.seed))
    intervals = ("bootstrap_632", "bootstrap_oob", "location_shifted")
    levels = ("repetition", "point", "count")
    return Plan("bootstrap", options, levels, intervals, False, design)


def case_bootstrap(n_repetitions: int = 200, *, rng: Rng = None) -> Plan:
    """Plan leave-one-out cross-validation of bootstrap samples, leaving out all copies of a point.

    The log is used by `cvstats.case_bootstrap`, which targets the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples are drawn; 200 or more for limits at 95%.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point, count``, with repetitions numbered from 1, from
        one fit for each distinct point of each sample: about 0.632 n B in all. The bound plan gives
        the exact number.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The bias correction also needs the log of `leave_one_out`, with n more fits. A sample that
    contains only one distinct point, which happens with a handful of points, is redrawn.

    References
    ----------
    Jiang, Varma and Simon (2008), Calculating confidence intervals for prediction error in
    microarray classification using resampling, Statistical Applications in Genetics and
    Molecular Biology 7(1), doi:10.2202/1544-6115.1322.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.case_bootstrap(200, rng=1).bind(40).n_fits
    5115
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = CaseBootstrap(n_repetitions, seed_of(rng))
    options = (("n_repetitions", n_repetitions), ("rng", design.seed))
    levels = ("repetition", "point", "count")
    cost = "about 0.632 n n_repetitions"
    return Plan("case_bootstrap", options, levels, ("case_bootstrap",), False, design, cost)


def two_stage(n_samples: int = 200, n_repetitions: int = 100, *, rng: Rng = None) -> Plan:
    """Plan bootstrap samples of bootstrap samples.

    The log is used by `cvstats.two_stage`, which targets the expected error: the estimate is
    recomputed in each outer sample.

    Parameters
    ----------
    n_samples : int, optional
        Outer samples, each of n points drawn with replacement from the data.
    n_repetitions : int, optional
        Inner samples of the data and of each outer sample.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, point, count``, from ``(n_samples + 1) *
        (n_repetitions + 1)`` fits. Sample 0 is the data, and repetition 0 of each sample is the fit
        to it. Each distinct point of an outer sample is tested once; its count is the number of
        copies in the training sample.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    This is the most expensive plan. In the apparent error of an outer sample, points are weighted
    by their count at repetition 0.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based
    optimism correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.two_stage(200, 100, rng=1).n_fits
    20301
    """
    n_samples = whole_number("n_samples", n_samples, 1)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Bootstrap(n_samples, n_repetitions, seed_of(rng))
    options = (("n_samples", n_samples), ("n_repetitions", n_repetitions), ("rng", design.seed))
    levels = ("sample", "repetition", "point", "count")
    return Plan("two_stage", options, levels, ("two_stage",), False, design)
