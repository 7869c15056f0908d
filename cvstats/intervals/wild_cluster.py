"""Wild cluster bootstrap: the interval of all means that a bootstrap test does not reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import sort_labels
from cvstats.core.folds import find_across_folds
from cvstats.core.results import Result, make_result
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray, MaskArray
from cvstats.intervals._requirements import several_groups
from cvstats.intervals.clustered import (
    OF_SPLIT_GROUPS,
    ClusterMethod,
    check_parts,
    count_points,
    degrees_of_freedom,
    flag_few_clusters,
)
from cvstats.intervals.out_of_source import size_range
from cvstats.log.log import Log
from cvstats.options import Missing, Rng, check_rng, seed_of, whole_number

ENUMERATED = 12
"""With this many clusters or fewer, all sign vectors are enumerated."""

FEW_SIGNS = 6
"""With fewer clusters, no p-value can fall below 5%."""

TIES = 1e-10
"""Relative difference below which two statistics count as equal."""

NUMBERS = 1 << 21
"""Numbers generated at once: signs of some draws, or statistics of some columns."""

STEPS = 48
"""Number of bisection steps for a limit: to float precision."""


def check_draws(options: Mapping[str, Any]) -> None:
    """Reject invalid numbers of draws or seeds, and parts of one cluster each."""
    check_parts(options)
    whole_number("n_draws", options["n_draws"], 99)
    check_rng(options["rng"])


@ClusterMethod(
    check=check_draws,
    requires=several_groups,
    needs="a level that identifies at least two independent groups (source)",
    reference="Cameron, Gelbach and Miller (2008), Review of Economics and Statistics 90(3), "
    "414-427, doi:10.1162/rest.90.3.414",
)
def wild_cluster(
    log: Log,
    *,
    by: str = "source",
    n_draws: int = 9_999,
    rng: Rng = 0,
    alpha: float = 0.05,
    per: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Wild cluster bootstrap-t interval for the mean loss, for few clusters.

    The target is the same as for `clustered`, the mean loss over points of groups from the same
    population. To test the hypothesis that it equals m, the t statistic of the cluster totals about
    m is compared with the statistics of the same totals with random signs. The interval contains
    all values m that are not rejected.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any log of one data set with a level that names the clusters; each point belongs to
        one cluster. Losses in any unit.
    by : str, optional
        The level (or coordinate) whose labels are the clusters.
    n_draws : int, optional
        Number of random sign vectors if there are more than 12 clusters; with 12 or fewer all
        ``2^G`` are enumerated.
    rng : int or numpy.random.Generator, optional
        The seed of the draws; by default the same seed for the same log.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    per : str, optional
        Another level: one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN: the limits do not use one) in the units of the loss;
        ``statistic`` (the mean over its standard error) and ``p_value`` for a mean of zero, which
        are useful for differences; and ``caution``. ``n_points``, ``n_clusters`` and the points
        of the ``smallest`` and the ``largest`` cluster are in ``attrs``, or columns if they vary
        between rows.

    Raises
    ------
    LogError
        If there is only one cluster, or a point is in several.

    See Also
    --------
    cvstats.clustered : A formula instead of random signs, for more clusters.
    cvstats.out_of_source : For groups that were left out one at a time.

    Notes
    -----
    With U_c the sum of (loss - m) over cluster c of G, and v_c its share of the losses,

    .. math::

        t = \frac{\sum_c U_c}{\sqrt{\sum_c \left(U_c - v_c \sum_b U_b\right)^2}} .

    The p-value of m is the share of draws whose statistic, from the U_c with random signs, is at
    least as far from 0 as t. The interval contains the values m whose p-value is above alpha.

    The interval is asymptotically exact in the number of clusters, if the clusters are independent
    and no model was trained on the clusters it was tested on. In simulations with six to ten
    clusters its coverage equals or slightly exceeds that of CR2 of `clustered`; skewed cluster
    means make both too narrow. With G clusters p cannot fall below ``2 / 2^G``: with fewer than
    six, no mean is rejected at 5%, the limits are infinite, and ``caution`` contains ``very few
    clusters``.

    Draws whose statistic equals t up to rounding count as ties. Programs that do not handle
    rounding give p-values that are smaller by one or two draws.

    The p-value is a step function of m, and each limit is found by doubling the distance from the
    estimate and then bisecting.

    References
    ----------
    Cameron, Gelbach and Miller (2008), Review of Economics and Statistics 90(3), 414-427,
    doi:10.1162/rest.90.3.414.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> losses.cvci.wild_cluster()[["estimate", "lower", "upper", "caution"]].round(3)
                estimate  lower  upper       caution
    model
    naive_bayes    0.175  0.157  0.194  few clusters
    """
    # Invert the test, using the sums of the clusters about their mean and their sizes.
    cells = log.moments((by,))
    points = count_points(log, by, cells, "wild_cluster")
    mean = cells.over(()).mean[0]
    sums = cells.count[:, None] * np.nan_to_num(cells.mean - mean)
    g, width = sums.shape
    estimate = cells.origin + mean
    seed = None if g <= ENUMERATED else seed_of(rng)
    reach, p = np.empty((2, width)), np.empty(width)
    drawn = n_draws if seed is not None else 1 << (g - 1)
    order = sort_labels(cells.labels[-1][code] for code in cells.codes[:, -1].tolist())
    for start, stop in block_bounds(width, NUMBERS, drawn):
        tile = slice(start, stop)
        test = SignTest(sums[order, tile], cells.count[order], n_draws, seed)
        p[tile] = test.p_values(-estimate[tile])
        reach[:, tile] = [test.find_reach(side, alpha) for side in (-1.0, 1.0)]
    empty = np.isnan(mean)
    error = np.sqrt((sums**2).sum(axis=0)) / cells.count.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((error == 0) & (estimate == 0), 0.0, estimate / error)
    columns: dict[str, Any] = {
        "estimate": estimate,
        "lower": np.where(empty, np.nan, estimate - reach[0]),
        "upper": np.where(empty, np.nan, estimate + reach[1]),
        "se": np.nan,
        "statistic": statistic,
        "p_value": np.where(empty, np.nan, p),
    }
    sizes = {name: size.item() for name, size in size_range(points, cells).items()}
    columns |= {"n_points": int(points.sum()), "n_clusters": g, **sizes}
    share = cells.count[:, None] / cells.count.sum()
    flags = flag_few_clusters(cells, degrees_of_freedom(cells, share), sums)[0]
    if g < FEW_SIGNS:
        flags[:] = Caution.VERY_FEW_CLUSTERS
    split = find_across_folds(log.design, by) is not None
    if split:
        flags |= Caution.SOURCES_ACROSS_FOLDS
    flags[error == 0] |= np.int64(Caution.ZERO_VARIANCE)
    attrs: dict[str, str | float | int] = {"alpha": alpha, "alternative": "two-sided", "by": by}
    attrs |= {"n_draws": 1 << g} if seed is None else {"n_draws": n_draws, "seed": seed}
    attrs |= OF_SPLIT_GROUPS if split else {}
    return make_result("wild_cluster", columns, flags, attrs)


def draw_signs(g: int, n_draws: int, seed: int | None) -> Iterator[FloatArray]:
    """Draw signs of g clusters in blocks; without a seed enumerate all, with the last sign +1."""
    total = 1 << (g - 1) if seed is None else n_draws
    for block, (start, stop) in enumerate(block_bounds(total, NUMBERS, g)):
        if seed is None:
            bits = np.arange(start, stop)[:, None] >> np.arange(g)
        else:
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))
            bits = rng.integers(2, size=(stop - start, g))
        yield np.where(bits & 1, -1.0, 1.0)


class SignTest:
    """The test that the mean equals the estimate plus a step, by signs of the clusters' sums.

    With S the sums of the clusters about the estimate and n their sizes, the step d leaves
    ``U = S - d n``, so the sum of each draw is linear in d.

    Parameters
    ----------
    sums : array, shape (clusters, columns)
        Sums of the losses of each cluster about the mean of all.
    count : array, shape (clusters,)
        Losses in each cluster.
    n_draws : int
        Number of draws, if not all are enumerated.
    seed : int or None
        The seed of the draws; None to enumerate all. Half of them suffice: the others have the same
        statistics with opposite signs.
    """

    def __init__(self, sums: FloatArray, count: FloatArray, n_draws: int, seed: int | None) -> None:
        share = count / count.sum()
        self.seed, self.n = seed, float(count.sum())
        self.squares = float((share**2).sum())
        linear = np.column_stack([sums, count, share[:, None] * sums, share * count])
        drawn = [signs @ linear for signs in draw_signs(len(count), n_draws, seed)]
        every = np.concatenate(drawn)
        width = sums.shape[1]
        self.of_sums, self.of_count = every[:, :width], every[:, [width]]
        self.of_shares, self.of_both = every[:, width + 1 : -1], every[:, [-1]]
        self.norms = (sums**2).sum(axis=0), count @ sums, float((count**2).sum())
        self.error = np.sqrt(self.norms[0]) / self.n

    def p_values(self, step: FloatArray) -> FloatArray:
        """Find the share of draws whose statistic is at least as large as that of the step."""
        total = self.of_sums - step * self.of_count
        both = self.of_shares - step * self.of_both
        norm = self.norms[0] - 2 * step * self.norms[1] + step**2 * self.norms[2]
        left = np.maximum(norm - 2 * total * both + total**2 * self.squares, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = total**2 / left  # of sum_c (U_c - v_c sum U)^2
            own = (step * self.n) ** 2 / self.norms[0]
        reached = (drawn >= own * (1 - 2 * TIES) - TIES**2) | np.isnan(own)
        found = np.where(np.isinf(own), 0, reached.sum(axis=0))
        if self.seed is None:  # the observed signs are among the draws
            return np.asarray(np.maximum(found, 1) / len(drawn))
        return np.asarray((1 + found) / (len(drawn) + 1))

    def find_reach(self, side: float, alpha: float) -> FloatArray:
        """Find the distance from the estimate at which means are rejected; infinite if none are."""
        unit = np.where(self.error > 0, self.error, 1.0)

        def rejects(far: FloatArray) -> MaskArray:
            return np.asarray(self.p_values(side * far * unit) <= alpha)

        low, high = np.zeros_like(self.error), np.ones_like(self.error)
        for _ in range(64):
            enough = rejects(high)
            if enough.all():
                break
            low, high = np.where(enough, low, high), np.where(enough, high, 2 * high)
        bounded = rejects(high)
        for _ in range(STEPS):
            middle = (low + high) / 2
            enough = rejects(middle)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(bounded, low * self.error, np.inf)
