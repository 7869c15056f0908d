"""Limits of metrics that have ends, or few points of a class, in the place of normal ones.

What one prediction can change, d, is one pseudo-error beside the variance v of a metric T between
0 and 1. Korn and Graubard (1998, Survey Methodology 24(2), 193-201) give a proportion of a survey
the limits of Clopper and Pearson for ``n* = T (1 - T) / v`` points; here these are ``(T (1 - T) +
d) / (v + d^2)``, so a metric at its end has 1 / d points, and a plain proportion its own n.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.orientation import TARGET, TURNED, turn
from cvstats.core.results import OWN_ERROR, Result, half_widths, rescale_limits
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.intervals._limits import (
    OF_NORMAL_LIMITS,
    SOME_WILSON,
    Limits,
    clopper_pearson,
    fieller,
    find_proportions,
    leave_open,
    replace_limits,
)
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Labels, Log
from cvstats.log.metrics import FEW, OF_OTHER, ONE_PREDICTION

END = 1e-9
"""So near the end of its range a metric is at the end."""

LEAST_OF_A_CLASS = 2
"""With fewer effective points of a class there are no limits."""

OF_CLUSTERS = 0.1
"""Pseudo-errors where clusters are the sample: with one the limits of shares and AUCs of 12 to 80
clusters covered .97 to 1.00 and were up to 5 times as wide, with a tenth .94 to 1.00."""


def korn_graubard(
    estimate: FloatArray,
    variance: FloatArray,
    reach: FloatArray,
    alpha: float,
    alternative: str = "two-sided",
    ends: tuple[float, float] = (0.0, 1.0),
    *,
    errors: float = 1.0,
    clusters: tuple[FloatArray, FloatArray] | None = None,
) -> Limits:
    """Exact limits of a metric between two ends, by an effective number of points.

    ``reach`` is what one prediction can change, and ``errors`` how many such are added.
    ``clusters`` are their number and the degrees of freedom of the variance.
    """
    size = ends[1] - ends[0]
    t, v, d = (estimate - ends[0]) / size, variance / size**2, reach / size
    t = np.where(np.abs(t) < END, 0.0, np.where(np.abs(t - 1) < END, 1.0, t))
    points = (t * (1 - t) + errors * d) / (v + errors * d**2)
    if clusters is not None:
        number, df = clusters
        own, whole = (half_widths("two-sided", alpha, each)[0] for each in (df, number - 1))
        points = points * (whole / own) ** 2
    lower, upper = clopper_pearson(t, points, alpha, alternative)
    return ends[0] + size * lower, ends[0] + size * upper


# --- what one prediction can change ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reach:
    """What one prediction can change in each entry of a result, and how rare a class is.

    Parameters
    ----------
    change : array
        The largest change of the metric; NaN where it is not known.
    rarity : array
        One over the effective number of points, or clusters, of the rarest class.
    """

    change: FloatArray
    rarity: FloatArray

    @property
    def known(self) -> MaskArray:
        """Where it is known."""
        return ~np.isnan(self.change)


def facts_of_one_metric(log: Log) -> Mapping[Any, Any]:
    """Take the facts of the metric of a log; of several, those of the one whose rows are left."""
    several = log.noted.get("metrics")
    if not isinstance(several, Mapping):
        return log.noted
    if log.design.by == "metric":
        raise DifferentGroups("each metric has facts of its own.")
    if "metric" not in log.design.levels:
        return {}
    codes = log.design.cell_table(("metric",)).codes[:, 0]
    label = log.design.levels["metric"].labels[int(codes[0])]
    return several.get(label, {}) if len(codes) == 1 else {}


def find_reach(log: Log, of_clusters: bool) -> Reach | None:
    """Find what one prediction can change in each column, one group after the other.

    Of two logs side by side it is that of the columns of both. None where it is not known.
    """
    found = [tabulate_reach(log, log.labels, ONE_PREDICTION, of_clusters)]
    if log.other is not None:
        found.append(tabulate_reach(log, log.other, OF_OTHER, of_clusters))
    known = [table for table in found if table is not None]
    if len(known) < len(found):
        return None
    table = np.concatenate(known, axis=1).reshape(-1, 2)
    return Reach(table[:, 0], table[:, 1])


def tabulate_reach(log: Log, labels: Labels, key: str, of_clusters: bool) -> FloatArray | None:
    """Tabulate what one prediction can change, and the rarity of a class: groups by columns.

    Of a mean over cells with the shares a it is the sum of ``a^2`` times that of each cell;
    repetitions are averaged.
    """
    facts = facts_of_one_metric(log)
    written = facts.get(key)
    names = tuple(facts.get("cells", ()))
    if not isinstance(written, str) or not set(names) <= log.design.levels.keys():
        return None
    noted = json.loads(written)
    by = log.design.by
    levels = tuple(dict.fromkeys((*([] if by is None else [by]), *names)))
    codes, counts = cells_of(log, levels)
    of_levels = [log.design.levels[name].labels for name in names]
    columns = [levels.index(name) for name in names]
    place = {key: at for at, key in enumerate(noted["cells"])}
    keys = [
        ", ".join(str(own[code]) for own, code in zip(of_levels, row, strict=True))
        for row in codes[:, columns].tolist()
    ]
    rows = np.array([place.get(key, -1) for key in keys])
    if (rows < 0).any():
        return None
    groups = np.unique(codes[:, 0], return_inverse=True)[1] if by else np.zeros(len(codes), int)
    split = groups
    if "repetition" in names and by != "repetition":
        both = np.column_stack([groups, codes[:, levels.index("repetition")]])
        split = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    share = counts / np.bincount(split, counts)[split]
    repetitions = np.bincount(groups[np.unique(split, return_index=True)[1]])
    found = []
    for model, carried in locate_columns(labels, noted):
        each = noted["models"].get(str(model))
        if each is None and len(noted["models"]) == 1:
            each = next(iter(noted["models"].values()))
        if each is None or carried is None:
            return None
        cells = np.array(each[carried if len(each) > 1 else 0], dtype=float)
        if not len(cells):
            found.append(np.full((len(repetitions), 2), np.nan))
            continue
        own = cells[rows][:, 2:] if of_clusters else cells[rows][:, :2]
        sums = [np.bincount(groups, share**2 * part) / repetitions for part in own.T]
        found.append(np.column_stack(sums))
    return np.stack(found, axis=1)


def cells_of(log: Log, levels: tuple[str, ...]) -> tuple[IntArray, FloatArray]:
    """List the cells of a log by some levels, and the number of points of each."""
    if log.cells is not None:
        found = replace(log, design=replace(log.design, by=None)).moments(levels)
        order = [found.levels.index(name) for name in levels]
        return found.codes[:, order], found.count.astype(np.float64)
    if not levels:
        return np.zeros((1, 0), dtype=np.int64), np.array([float(log.design.size)])
    table = log.design.cell_table(levels)
    return table.codes, table.total[table.used].astype(np.float64)


def locate_columns(labels: Labels, noted: Mapping[str, Any]) -> list[tuple[Hashable, int | None]]:
    """List the model of each column, and the number of its carried cell when the log was made.

    A carried cell is known by its labels, so that some of them may be chosen, in any order.
    """
    columns = [labels.columns(number).tolist() for number in range(len(labels.models))]
    width = sum(map(len, columns))
    models: list[Hashable] = [None] * width
    for model, own in zip(labels.models, columns, strict=True):
        for column in own:
            models[column] = model
    carried = noted.get("carried", {})
    if not carried:
        one = {len(each) for each in noted["models"].values()} == {1}
        return [(model, 0 if one else None) for model in models]
    numbers: IntArray = np.zeros(width, dtype=np.int64)
    dims, sizes, coords = (getattr(labels, name, ()) for name in ("dims", "sizes", "coords"))
    at = np.unravel_index(np.arange(width), sizes) if dims else ()
    for dim, noted_labels in carried.items():
        if dim in dims:
            rows = at[dims.index(dim)]
            have = coords[dim].values if dim in coords else np.arange(sizes[dims.index(dim)])
            words = [str(have[int(i)]) for i in rows]
        else:
            words = [str(coords[dim].values) if dim in coords else ""] * width
        place = {label: i for i, label in enumerate(noted_labels)}
        codes = np.array([place.get(word, -UNKNOWN) for word in words])
        numbers = numbers * len(noted_labels) + codes
    return [(m, int(i) if i >= 0 else None) for m, i in zip(models, numbers.tolist(), strict=True)]


UNKNOWN = 10**9
"""More carried cells than there are."""


# --- limits ---------------------------------------------------------------------------------------


def take_own_limits(result: Result, log: Log) -> Result:
    """Put the limits of a proportion, or of a metric with ends, in the place of normal ones.

    Wilson's limits of a proportion cover .84 at worst where it is near 0 or 1; with those of
    Clopper and Pearson below 10 of the rarer outcome .93 (enumerated, n = 30 to 5,000).

    Losses other than 0 and 1 that do not vary, of which nothing is known, have no limits. Test
    sets that were evaluated several times are left: their points have means, not losses.
    """
    if (scale := log.noted.get("scale")) is not None and not log.of_differences:
        return take_named_scale(result, log, str(scale))
    if result.method == "clustered" and not log.of_differences:
        return take_limits_of_metric(result, log) if log.design.metric else result
    averaged = result.method == "holdout" and log.design.number("repetition") > 1
    if result.method not in OF_NORMAL_LIMITS or averaged or log.of_differences:
        return result
    estimate = result.columns["estimate"]
    at = find_proportions(log, estimate)
    if log.design.metric:
        result = take_limits_of_metric(result, log)
    result = leave_open(result, ~at & (result.columns["se"] == 0))
    if not (at.any() or log.some_cells):
        return result
    rarer = result.columns["n_points"] * np.minimum(estimate, 1 - estimate)
    few = at & (rarer < FEW - END)
    limits = replace_limits(replace_limits(result, at, "wilson"), few, "clopper-pearson")
    words = OF_PROPORTIONS[int(few.any()) + int(few.all())]
    if log.some_cells or not at.all():
        words = SOME_WILSON
    return replace(limits, attrs={**limits.attrs, "interval": words})


def take_named_scale(result: Result, log: Log, scale: str) -> Result:
    """Put limits of the scale that a log names in the place of symmetric ones.

    None where nothing varies. Flags columns in which few points, but some, are not at one end.
    """
    if log.design.by is not None:
        raise DifferentGroups("points at the ends of a scale are counted in one group at a time.")
    result = rescale_limits(leave_open(result, result.columns["se"] == 0), scale)
    caution = result.caution.copy()
    for j, values in enumerate(log.columns()):
        inside = 0 if values is None else min(np.count_nonzero(values != end) for end in (0, 1))
        caution[j] |= np.int64(Caution.FEW_ERRORS) if 0 < inside < FEW else 0
    return replace(result, caution=caution)


SCALES = ("log", "fisher-z", "fieller")
"""Scales on which limits of metrics without pseudo-errors are symmetric."""


def take_scale(result: Result, log: Log, facts: Mapping[Any, Any]) -> Result:
    """Put limits on the scale of the metric in the place of normal ones.

    A ratio has those of its logarithm, and R2 those of log(1 - R2). A correlation has Fisher's z,
    with a jackknife variance. The ratio of two mean losses has Fieller's, which are none where the
    mean below does not differ from 0.
    """
    scale, columns = facts["limits"], dict(result.columns)
    loss, se, n = columns["estimate"], columns["se"], columns["n_points"]
    alpha, clustered = float(result.attrs["alpha"]), result.method == "clustered"
    if result.attrs.get("alternative", "two-sided") != "two-sided" or facts.get("folds") != "pool":
        return result
    inflation, own = np.ones(len(loss)), np.zeros(len(loss))
    if scale != "log":
        shape = None if clustered else find_reach(log, of_clusters=False)
        if shape is None or not shape.known.all():
            return result
        inflation, own = shape.change, shape.rarity
    critical = half_widths("two-sided", alpha, columns.get("df"))[0]
    few = np.ones(len(loss))
    if not clustered and TARGET not in facts:  # Student's t, about as many degrees as points
        few = np.ones(len(loss)) if result.method == "holdout" else n / (n - 1)
        critical = half_widths("two-sided", alpha, n - 1)[0]
    spread, caution = critical * se * np.sqrt(few), result.caution
    limits: Limits
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            shift = float(str(facts.get("orientation")) in TURNED)
            ratio = loss + shift
            factor = np.exp(spread / ratio)
            limits = ratio / factor - shift, ratio * factor - shift
        elif scale == "fisher-z":
            own_variance = few * se**2 * (n - 1) / n * inflation
            middle, far = np.arctanh(loss), critical * np.sqrt(own_variance) / (1 - loss**2)
            limits = np.tanh(middle - far), np.tanh(middle + far)
        else:
            shift = float(facts["metric"] == "skill")
            ratio = loss + shift
            shared, below = (part * n / (n - 1) for part in (inflation, own))
            above = few * se**2 + 2 * ratio * shared + ratio**2 * below
            found = fieller(
                ratio, np.ones(len(loss)), (above, below), shared + ratio * below, critical
            )
            limits = found[0] - shift, found[1] - shift
            none = np.isnan(limits[0]) & ~np.isnan(loss)
            caution = caution | np.where(none, np.int64(Caution.REFERENCE_NEAR_ZERO), 0)
    at = se > 0
    for side, limit in zip(("lower", "upper"), limits, strict=True):
        columns[side] = np.where(at, limit, columns[side])
    attrs = {**result.attrs, "interval": str(scale)}
    return replace(result, columns=columns, caution=caution, attrs=attrs)


OF_PROPORTIONS = (
    "wilson",
    "wilson, clopper-pearson below 10 of the rarer outcome",
    "clopper-pearson",
)
"""What the limits of proportions are called, where no, some or all outcomes are rare."""


def take_limits_of_metric(result: Result, log: Log) -> Result:
    """Put limits between the ends of the metric in the place of normal ones, where they are known.

    The metric of a loss is one minus it, or minus it: the limits of both are those of each other.
    """
    facts = facts_of_one_metric(log)
    limits = facts.get("range")
    if facts.get("limits") in SCALES:
        return take_scale(result, log, facts)
    clustered = result.method == "clustered"
    if clustered and result.attrs.get("by") != "source":
        return result
    reach = find_reach(log, clustered) if limits is not None and np.isfinite(limits).all() else None
    if limits is None or reach is None or not reach.known.any():
        return result
    ends = sorted(turn(np.array(limits, dtype=float), str(facts.get("orientation"))).tolist())
    at, columns = reach.known, dict(result.columns)
    variance, n = columns["se"] ** 2, columns["n_points"]
    if result.method == "holdout":
        variance = variance * (n - 1) / n
    found = korn_graubard(
        columns["estimate"], variance, reach.change, float(result.attrs["alpha"]),
        str(result.attrs["alternative"]) if "alternative" in result.attrs else "two-sided",
        (ends[0], ends[1]), errors=OF_CLUSTERS if clustered else 1.0,
        clusters=(columns["n_clusters"], columns["df"]) if clustered else None,
    )  # fmt: skip
    for side, limit in zip(("lower", "upper"), found, strict=True):
        limit = np.where(reach.rarity * LEAST_OF_A_CLASS > 1, np.nan, limit)
        columns[side] = np.where(at, limit, columns[side])
    gone = np.int64(Caution.ZERO_VARIANCE)
    caution = np.where(at, result.caution & ~gone, result.caution)
    changed = replace(result, columns=columns, caution=caution)
    attrs = {**result.attrs, "interval": "korn-graubard"}
    return replace(label_rarity(changed, reach, facts), attrs=attrs)


def add_pseudo_errors(base: Result, log: Log, differences: Differences) -> Result:
    """Add a pseudo-error of each model to the variance of their difference.

    It is what one prediction can change in a metric with ends, where that is known: ``v + d_a^2 +
    d_b^2``. A difference without variance then has limits, and a test. The standard error
    without it is kept: see `show_own_errors`.
    """
    clustered = base.method == "clustered"
    facts = facts_of_one_metric(log)
    if facts.get("limits") in SCALES or (clustered and base.attrs.get("by") != "source"):
        return base
    reach = find_reach(log, clustered)
    if reach is None or "se" not in base.columns:
        return base
    groups = len(reach.change) // log.panels.width
    change = reach.change.reshape(groups, -1)
    rarity = reach.rarity.reshape(groups, -1)
    sides = [differences.left, differences.right]
    squares = sum((np.nan_to_num(change[:, side]) ** 2 for side in sides), np.zeros(1)).reshape(-1)
    rarest = np.fmax(*(rarity[:, side] for side in sides)).reshape(-1)
    if len(squares) != len(base.columns["se"]):
        return base
    se = np.sqrt(base.columns["se"] ** 2 + (OF_CLUSTERS if clustered else 1.0) * squares)
    gone = np.where(squares > 0, np.int64(Caution.ZERO_VARIANCE), 0)
    columns = {**base.columns, OWN_ERROR: base.columns["se"], "se": se}
    changed = replace(base, columns=columns, caution=base.caution & ~gone)
    return label_rarity(changed, Reach(squares, rarest), facts)


def name_limits(log: Log) -> str:
    """Name the limits of a lazy log, of which each chunk takes those of its losses."""
    if not log.design.metric:
        return SOME_WILSON
    return "korn-graubard" if ONE_PREDICTION in log.noted else "wald"


def label_rarity(result: Result, reach: Reach, facts: Mapping[Any, Any]) -> Result:
    """Label entries in which some class has few points, in the place of the label of the log."""
    if not reach.known.all() or "rarest_class" not in facts:
        return result
    rare = reach.rarity * FEW > 1 + END
    caution = result.caution | np.where(rare, np.int64(Caution.FEW_OF_A_CLASS), 0)
    return replace(result, caution=caution, allows_for=result.allows_for | Caution.FEW_OF_A_CLASS)
