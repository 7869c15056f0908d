"""Plans of random splits into training and test points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError
from cvstats.options import Rng, seed_of, whole_number
from cvstats.plans.plan import (
    Evaluation,
    Fit,
    Mixing,
    Plan,
    Points,
    generator,
    held_out,
    mixing,
    shuffled,
    train_share,
)


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
        Preserve the proportions of the classes of ``y`` in each half and each test set, up to one
        point.
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
