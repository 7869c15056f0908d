"""Two levels at once: points and seeds, prompts and judges, each a sample of its own kind.

A loss has a part of its point, a part of its seed and a rest. The mean of all losses varies with
all three: ``Var(mean) = sigma_A^2 / I + sigma_B^2 / J + sigma_E^2 / (I J)`` for I points under J
seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.design import Design
from cvstats.core.folds import find_across_folds
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError
from cvstats.intervals._differences import is_difference
from cvstats.intervals._groups import FEW_CLUSTERS, FEW_DF, OF_FOLDS
from cvstats.intervals._references import RELATIVE_STABILITY
from cvstats.intervals._requirements import no_level, single_dataset
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Log

FEW_OF_ONE = 10
"""With fewer labels of one level its part of the standard error is known badly."""

ROUNDING = 1e-12
"""A share of the larger variances below which their difference is rounding."""

TARGET = (
    "mean loss over new labels of both levels, such as new points under new seeds, drawn as these "
    "were"
)
GUARANTEE = (
    "asymptotically exact in the labels of both levels, if those of each are independent and none "
    "occurs in training and in test folds"
)
REFERENCE = (
    "Cameron, Gelbach and Miller (2011), Journal of Business & Economic Statistics 29(2), 238-249, "
    "doi:10.1198/jbes.2010.07136; Satterthwaite (1946), Biometrics Bulletin 2(6), 110-114, "
    "doi:10.2307/3002019"
)


def two_ways(design: Design, one: str, two: str) -> str | None:
    """Ask for two labels or more of both levels, of one data set."""
    if (words := single_dataset(design)) is not None:
        return words
    for name, other in ((one, two), (two, one)):
        if name not in design.levels:
            return f"{no_level(name)}, or name another level, as in by=('point', 'repetition')."
        if count_labels(design, name) < 2:
            return (
                f"the log has one label of {name!r}, which does not show how much others would "
                f"differ. Expected two or more, ten or more to rely on; without them use "
                f"by={other!r}."
            )
    return None


def count_labels(design: Design, name: str) -> int:
    """Count the labels of a level that occur, also where the points are not at hand."""
    points = design.splits().points if name == "point" else None
    return design.number(name) if points is None else points


def compute_two_ways(log: Log, names: tuple[str, str], correction: str, alpha: float) -> Result:
    """Compute the interval from mean squares in a crossed log, otherwise from sums of clusters."""
    if log.design.by is not None:
        raise DifferentGroups("two levels are taken for one group at a time.")
    if correction == "CR3":
        raise LogError(
            "correction='CR3' takes clusters of one level, and by= names two. Expected 'CR2', or "
            "'CR1' for the sums of clusters of other programs."
        )
    ways = TwoWays.of(log, names)
    if correction == "CR2" and ways.crossed:
        variance, df, clamped = mean_squares(ways)
    else:
        variance, df, clamped = cluster_sums(ways)
    fewest, most = sorted((ways.i, ways.j))
    caution = Caution(0)
    if fewest < FEW_OF_ONE:
        caution |= Caution.FEW_OF_ONE_WAY
    if most < FEW_CLUSTERS:
        caution |= Caution.FEW_CLUSTERS
    if divides_sources(log, names):
        caution |= Caution.SOURCES_ACROSS_FOLDS
    flags = np.full(len(variance), np.int64(caution))
    flags[df < FEW_DF] |= np.int64(Caution.VERY_FEW_CLUSTERS)
    flags[clamped] |= np.int64(Caution.TWO_WAYS_CLAMPED)
    counts = {"n_first": ways.i, "n_second": ways.j}
    if (points := log.design.splits().points) is not None:
        counts = {"n_points": points, **counts}
    guarantee, reference = GUARANTEE, REFERENCE
    if is_difference(log):
        guarantee = f"{GUARANTEE}, {OF_FOLDS}"
        reference = f"{REFERENCE}; {RELATIVE_STABILITY}"
    return interval(
        "clustered", ways.mean, variance, origin=ways.first.origin, alpha=alpha, df=df,
        extra={"df": df, **counts, "crossed": int(ways.crossed)}, caution=flags,
        attrs={
            "by": ", ".join(names), "correction": correction, "target": TARGET,
            "guarantee": guarantee, "reference": reference,
        },
    )  # fmt: skip


def divides_sources(log: Log, names: tuple[str, str]) -> bool:
    """Whether a label that points keep, such as that of a source, occurs in several folds.

    Each point is tested once in a repetition, and repetitions or judges are in all folds.
    """
    if "point" in names:
        return False
    design = log.design
    named = log.in_memory and "point" in design.levels
    crossed = design.splits().by if named else design.within
    kept = [name for name in names if name not in ("repetition", *crossed)]
    return any(find_across_folds(design, name) is not None for name in kept)


# --- what the formulas need -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoWays:
    """The means of the labels of both levels, and the squares of the pairs of labels.

    Parameters
    ----------
    first, second : Moments
        A cell for each label, about one origin.
    mean : array, shape (columns,)
        The mean of all losses, about that origin.
    n : int
        How many losses there are.
    pairs : int
        How many pairs of labels occur.
    squares : array, shape (columns,)
        The sum over pairs of the squared sum of their losses about the mean.
    crossed : bool
        Whether every pair of labels has equally many losses; these are then averaged, and ``n``
        is the number of pairs.
    """

    first: Moments
    second: Moments
    mean: FloatArray
    n: int
    pairs: int
    squares: FloatArray
    crossed: bool

    @property
    def i(self) -> int:
        """How many labels the first level has."""
        return len(self.first.count)

    @property
    def j(self) -> int:
        """How many labels the second level has."""
        return len(self.second.count)

    @classmethod
    def of(cls, log: Log, names: tuple[str, str]) -> TwoWays:
        """Compute them: in two passes where a pair has one loss, otherwise from all pairs."""
        one, two = (key_of(log.design, name) for name in names)
        if has_single_losses(log.design, names):
            first = log.moments(one)
            second = log.moments(two).about(first.origin)
            whole = first.over(())
            found = cls(
                first, second, whole.mean[0], int(whole.count[0]), int(whole.count[0]),
                whole.m2[0], int(whole.count[0]) == len(first.count) * len(second.count),
            )  # fmt: skip
        else:
            found = cls.of_pairs(log.moments(tuple(dict.fromkeys((*one, *two)))), one, two)
        for name, other, labels in ((names[0], names[1], found.i), (names[1], names[0], found.j)):
            if found.pairs == labels:
                raise LogError(
                    f"each label of {name!r} occurs with one label of {other!r} only: the levels "
                    f"are nested and not crossed. Expected two levels whose labels meet several of "
                    f"the other. by={other!r} allows for both."
                )
        return found

    @classmethod
    def of_pairs(cls, pairs: Moments, one: tuple[str, ...], two: tuple[str, ...]) -> TwoWays:
        """Merge pairs of labels; where they have equally many losses, their means count once."""
        number = len(pairs.count)
        even = bool((pairs.count == pairs.count[0]).all())
        if even:
            pairs = pairs.once()
        first, second, whole = pairs.over(one), pairs.over(two), pairs.over(())
        sums = pairs.count[:, None] * (pairs.mean - whole.mean[0])
        crossed = even and number == len(first.count) * len(second.count)
        return cls(
            first, second, whole.mean[0], int(whole.count[0]), number, (sums**2).sum(axis=0),
            crossed,
        )  # fmt: skip


def key_of(design: Design, name: str) -> tuple[str, ...]:
    """Name the levels that identify the labels of a level: points may be numbered by source."""
    return ("source", name) if name == "point" and "source" in design.levels else (name,)


def has_single_losses(design: Design, names: tuple[str, str]) -> bool:
    """Whether no pair of labels has several losses."""
    repeated = [name for name in ("repetition", *design.within) if design.has(name)]
    if "point" in names and all(name in names for name in repeated):
        return True  # each point is evaluated once in a repetition
    return int(design.cell_table(names).total.max()) == 1


# --- the variance ---------------------------------------------------------------------------------


def mean_squares(ways: TwoWays) -> tuple[FloatArray, FloatArray, MaskArray]:
    """Compute ``(MS_A + MS_B - MS_E) / (I J)`` and Satterthwaite's degrees of freedom.

    The mean squares have the expectations ``J sigma_A^2 + sigma_E^2``, ``I sigma_B^2 + sigma_E^2``
    and ``sigma_E^2``, so that the variance is unbiased, and ``sigma_E^2 / (I J)`` its floor. Also
    return where the estimate is below that.
    """
    i, j = ways.i, ways.j
    of_first = j * ((ways.first.mean - ways.mean) ** 2).sum(axis=0)
    of_second = i * ((ways.second.mean - ways.mean) ** 2).sum(axis=0)
    rest = np.maximum(ways.squares - of_first - of_second, 0.0)
    df = i - 1, j - 1, (i - 1) * (j - 1)
    first, second, single = of_first / df[0], of_second / df[1], rest / df[2]
    total = first + second - single
    clamped = total < single
    spread = first**2 / df[0] + second**2 / df[1] + single**2 / df[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(clamped | (total == 0), df[2], total**2 / spread)
    return np.where(clamped, single, total) / (i * j), freedom, clamped


def cluster_sums(ways: TwoWays) -> tuple[FloatArray, FloatArray, MaskArray]:
    """Compute ``V_A + V_B - V_AB``, each with its ``G / (G - 1)``, and the fewer labels less one.

    ``V_A`` is the variance of the mean that CR1 has from the clusters of the first level, and
    ``V_AB`` from those of the pairs. Where the sum is not positive, ``V_A + V_B`` takes its place,
    and this is returned, too.
    """

    def correct(squares: FloatArray, g: int) -> FloatArray:
        return g / (g - 1) * squares / ways.n**2

    def residuals(cells: Moments) -> FloatArray:
        sums: FloatArray = ((cells.count[:, None] * (cells.mean - ways.mean)) ** 2).sum(axis=0)
        return sums

    both = correct(residuals(ways.first), ways.i) + correct(residuals(ways.second), ways.j)
    variance = both - correct(ways.squares, ways.pairs)
    clamped = (both > 0) & (variance <= ROUNDING * both)
    df = np.full(len(both), min(ways.i, ways.j) - 1.0)
    return np.where(clamped, both, variance), df, clamped
