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
        """Count a fit for each sample, and one for each of its bootstrap samples."""
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
    """Leave each point out of each bootstrap sample that has it, all copies at once."""

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
        """Draw how often each point is in a sample; a sample of one point is drawn again."""
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
    """Plan bootstrap samples, each tested on all points, and the fit to the data themselves.

    For `cvstats.bootstrap_oob`, `cvstats.bootstrap_632` and `cvstats.location_shifted`, whose
    target is the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples of n points are drawn with replacement.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        Leads to the levels ``repetition, point, count`` with B + 1 fits. The count says how
        often the point was in the training sample, 0 being out of bag; repetition 0 is the fit
        to the data, whose error on them is the apparent one.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The printed standard error is much too large unless B is several times the number of points;
    the methods can take that part out (``monte_carlo="removed"``). A point in every sample is
    never out of bag: that has the probability ``0.632^B``, so a few dozen samples prevent it.
    Groups and classes are not kept: the standard errors rest on samples of single points.

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
    """Plan leave-one-out cross-validation of bootstrap samples, a point leaving with its copies.

    For `cvstats.case_bootstrap`, whose target is the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples are drawn; 200 or more for limits at 95%.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        Leads to the levels ``repetition, point, count``, the repetitions counted from 1, with a
        fit for each different point of each sample, some 0.632 n B in all; the bound plan knows
        the number.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The correction of its bias needs the log of `leave_one_out` too, n fits more. A sample that
    holds a single point many times over, which happens with a handful of points, is drawn again.

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

    For `cvstats.two_stage`, whose target is the expected error: the whole estimate is made
    again in each outer sample.

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
        Leads to the levels ``sample, repetition, point, count`` with
        ``(n_samples + 1) * (n_repetitions + 1)`` fits. Sample 0 is the data, and repetition 0
        of each sample the fit to it. Each different point of an outer sample is tested once;
        the count adds up all its copies in the training sample, so 0 means that none was seen.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The most expensive plan of all. In the apparent error of an outer sample a point weighs as
    much as its count at repetition 0.

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
