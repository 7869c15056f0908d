"""Plans that train on samples drawn with replacement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError
from cvstats.options import Rng, seed_of, whole_number
from cvstats.plans.plan import Evaluation, Fit, Mixing, Plan, Points, generator


def check_two(points: Points) -> None:
    """Ask for points to draw from."""
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
        """Ask for points to draw from."""
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
        """Ask for points to draw from."""
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
