"""Many tests at once: Holm, Benjamini and Hochberg, and max-t.

Max-t adjusts tests and intervals by the largest statistic of their joint distribution.

The standard errors of all differences determine the covariance A of the models' means, up to a part
that cancels in differences: ``se_ij^2 = A_ii + A_jj - 2 A_ij``. Draws g of N(0, A) then give the
distribution of any maximum of ``(g_i - g_j) / se_ij`` (Hothorn, Bretz and Westfall 2008). Standard
errors that are widened for similar models are bounds: their statistics become smaller, but the
draws are those of the errors before. If some standard errors were clamped, no covariance may have
them all; then Šidák's adjustment is used, which holds for any correlation of the statistics.

The standard errors are estimated from n points, so a statistic follows Student's t with n - 1
degrees of freedom rather than the normal distribution. This matters little for one statistic but
much for the largest of many. The largest of a draw is therefore transformed to the scale of t: z
becomes ``t = F^-1(Phi(z))`` with F that t distribution, as if each statistic had been transformed
from t to z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from cvstats.comparisons._pairs import degrees_of_each, has_standard_errors
from cvstats.core import kernels
from cvstats.core.cautions import Caution
from cvstats.core.results import Result, confidence_limits
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, is_number
from cvstats.options import Alternative


def adjust_p_values(
    p: FloatArray,
    caution: IntArray,
    points: Any,
    *,
    adjust: str,
    alpha: float = 0.05,
    alternative: str = "two-sided",
) -> tuple[FloatArray, IntArray]:
    """Adjust p-values (an array of any shape) for multiplicity, and flag those that are too small.

    ``"holm"`` controls the probability of any false difference, for any dependence of the tests
    (Holm 1979), as does ``"bonferroni"`` with larger p-values. ``"bh"`` controls the expected share
    of false differences among those found, for independent or positively dependent tests (Benjamini
    and Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x). Missing p-values are ignored.

    With few ``points`` (or groups), normal tests are too small in the tails that matter for many
    tests, as in `flag_few_points`; None for other tests. Tests with few discordant points are exact
    or have a caution of their own.
    """
    known = ~np.isnan(p)
    order = np.argsort(p[known])
    ascending = p[known][order]
    m = len(ascending)
    rank = np.arange(1, m + 1)
    if adjust == "bonferroni":
        steps = ascending * m
    elif adjust == "holm":
        steps = np.maximum.accumulate(ascending * (m - rank + 1))
    else:
        steps = np.minimum.accumulate((ascending * m / rank)[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(steps, 1.0)
    out = np.full(p.shape, np.nan)
    out[known] = adjusted
    if points is not None and m > 0:
        critical = -special.ndtri(alpha / m / (1 + (alternative == "two-sided")))
        normal = known & ((caution & np.int64(Caution.DISCORDANT_FEW)) == 0)
        few = normal & (critical**3 > SKEW_ROOM * np.sqrt(points))
        caution = np.where(few, caution | np.int64(Caution.MANY_MODELS), caution)
    return out, caution


def adjust_tests(result: Result, adjust: str | None, **test: Any) -> Result:
    """Add adjusted p-values to several tests, of all pairs of models and all carried cells.

    ``test`` is the level and the alternative of normal tests, unless they use Student's t.
    """
    columns, points = result.columns, None
    if adjust is None or columns["p_value"].size < 2:
        return result
    if test and "df" not in columns:
        points = columns.get("n_clusters", columns.get("n_points"))
    p_adjusted, caution = adjust_p_values(
        columns["p_value"], result.caution, points, adjust=adjust, **test
    )
    return add_adjusted(replace(result, caution=caution), p_adjusted, {"adjust": adjust})


def add_adjusted(
    result: Result, p_adjusted: FloatArray, attrs: Mapping[str, str | float | int]
) -> Result:
    """Add adjusted p-values next to the unadjusted ones."""
    columns = {}
    for name, values in result.columns.items():
        columns[name] = values
        if name == "p_value":
            columns["p_adjusted"] = p_adjusted
    return replace(result, columns=columns, attrs={**result.attrs, **attrs})


# --- max-t ----------------------------------------------------------------------------------------

CHUNK = 1 << 16
"""Numbers drawn at once, to fit in the processor's cache."""

FEWEST = 64
"""Minimum number of draws made at once."""

SKEW_ROOM = 2.5
"""Maximum of c^3 / sqrt(n), with c the critical value, at which skewness matters little."""

NO_COVARIANCE = 1e-8
"""Negative eigenvalue of correlations, for each model, beyond which none has these variances."""

ROUNDING = 1e-13
"""Bound of the relative rounding errors of variances, for each model."""

ALIKE = 1e-8
"""Share of a variance above which rounding, and what was added to avoid it, matter."""


def check_draws(n_draws: object, alpha: float) -> None:
    """Reject a number of draws so small that no p-value could reach ``alpha``."""
    if (
        not is_number(n_draws)
        or not isinstance(n_draws, (int, np.integer))
        or alpha * (n_draws + 1) < 1
    ):
        raise LogError(
            f"n_draws={n_draws!r} is too small. Expected a whole number of draws, at least "
            f"{np.ceil(1 / alpha - 1e-9) - 1:,.0f} for alpha={alpha}; 10,000 is usual."
        )


def no_common_covariance(method: str) -> LogError:
    """Reject standard errors that do not come from one covariance of all models."""
    return LogError(
        "adjust='max-t' needs standard errors that come from one covariance of all models, but "
        f"those of {method} with these options do not. Use adjust='holm' or a method such as "
        "'wald'."
    )


# --- tests and intervals --------------------------------------------------------------------------


def adjust_max_t(
    result: Result,
    every_pair: Result,
    pairs: tuple[IntArray, IntArray],
    models: int,
    *,
    alternative: Alternative,
    alpha: float,
    n_draws: int,
    seed: int,
) -> Result:
    """Adjust tests and intervals by the largest statistic, separately in each carried cell.

    ``every_pair`` is the interval of all pairs of models (of both logs, if there are two), and
    ``pairs`` the numbers of the two models of each difference in ``result``. Each statistic follows
    Student's t. With fewer degrees of freedom than twice the number of models, the estimated
    covariance makes the maximum too small: then Šidák's adjustment is used if it is larger. It is
    used, too, if no covariance has all the variances.
    """
    if not has_standard_errors(every_pair):
        raise no_common_covariance(every_pair.method)
    left, right = pairs
    cells = len(result.columns["se"]) // len(left)
    own = np.full((len(left), cells), np.inf)
    points = every_pair.columns["n_points"].flat[0] if "n_points" in every_pair.columns else None
    of_method = degrees_of_each(every_pair) is not None
    if of_method:
        own = result.columns["df"].reshape(own.shape).astype(np.float64)
    elif points is not None:
        own[:] = points - 1
    variance = (every_pair.columns["se"] ** 2).reshape(-1, cells)
    seen = ~np.isnan(every_pair.columns["estimate"]).reshape(-1, cells)
    statistic = result.columns["statistic"].reshape(len(left), cells)
    if alternative != "greater":  # large values are evidence against no difference
        statistic = -statistic if alternative == "less" else np.abs(statistic)
    of_one = result.columns["p_value"].reshape(statistic.shape)
    p = np.full_like(statistic, np.nan)
    bound = np.full_like(statistic, np.nan)
    cautions = np.zeros(cells, dtype=np.int64)
    for c in np.flatnonzero(seen.any(axis=0)):
        there = np.flatnonzero(pair_matrix(seen[:, c].astype(float), models).any(axis=0))
        here = np.searchsorted(there, np.stack([left, right]))
        known = np.flatnonzero(~np.isnan(statistic[:, c]))
        squared = pair_matrix(variance[:, c], models)[np.ix_(there, there)]
        if np.isnan(squared).any():
            raise no_common_covariance(every_pair.method)
        largest = max_statistic_draws(
            squared, *here[:, known], alternative=alternative, n_draws=n_draws, seed=seed
        )
        critical = -np.inf if largest is None else critical_value(largest, alpha)
        drawn = normal_quantile(statistic[:, c], own[:, c])
        p[:, c] = 0.0 if largest is None else max_t_p_values(drawn, largest)
        few = of_method and own[known, c].min(initial=np.inf) < 2 * (len(there) - 1)
        if few or largest is None:
            tests, sides = len(known), 1 + (alternative == "two-sided")
            single = -np.expm1(np.log1p(-alpha) / tests) / sides
            critical = max(critical, -float(special.ndtri(single)))
            with np.errstate(divide="ignore"):
                of_each = np.log1p(-sides * special.ndtr(-drawn))
            p[:, c] = np.maximum(p[:, c], -np.expm1(tests * of_each))
        elif not of_method and points is not None:
            cautions[c] = flag_few_points(critical, points)
        bound[:, c] = student_quantile(np.full(len(left), critical), own[:, c])
    p[of_one == 1] = 1.0  # equal losses, for any draws
    columns = dict(result.columns)
    reach = np.where(np.isinf(bound), 0.0, bound).reshape(-1)
    down = np.inf if alternative == "less" else reach
    up = np.inf if alternative == "greater" else reach
    columns["lower"], columns["upper"] = confidence_limits(
        columns["difference"], columns["se"], down, up
    )
    attrs: dict[str, str | float | int] = {"adjust": "max-t", "n_draws": n_draws, "seed": seed}
    caution = result.caution | np.where(np.isnan(statistic), 0, cautions).reshape(-1)
    return add_adjusted(replace(result, columns=columns, caution=caution), p.reshape(-1), attrs)


def flag_few_points(critical: float, points: float) -> Caution:
    """Flag a maximum of many statistics if their skewness matters with few points.

    At the critical value c the tail of a statistic is off by a factor of about
    ``exp(skewness c^3 / (6 sqrt(n)))``. With zero variance c is infinite, and nothing is flagged.
    """
    few = np.isfinite(critical) and critical**3 > SKEW_ROOM * np.sqrt(points)
    return Caution.MANY_MODELS if few else Caution(0)


def pair_matrix(of_pairs: FloatArray, models: int) -> FloatArray:
    """Arrange one number per pair as models by models, with 0 on the diagonal."""
    found = np.zeros((models, models))
    above: tuple[IntArray, IntArray] = np.triu_indices(models, 1)
    found[above] = of_pairs
    return found + found.T


# --- draws of the models' means -------------------------------------------------------------------


def factor_covariance(squared: FloatArray) -> tuple[FloatArray, bool]:
    """Factor the covariance of the models' means: ``A = L L'``.

    ``squared`` has the variances of all differences, models by models. A is the covariance of the
    models relative to the central one. Also return whether it has these variances: none may, if
    they were clamped or corrected individually, and A is then the nearest covariance.
    """
    m, total = len(squared), squared.sum(axis=0)
    middle = int((total <= (1 + ALIKE) * total.min()).argmax())
    rest = np.delete(np.arange(m), middle)
    root, away = np.zeros((m, max(m - 1, 1))), squared[rest, middle]
    cov = (away[:, None] + away - squared[np.ix_(rest, rest)]) / 2
    scale = np.sqrt(away)  # models with small losses keep their digits beside a huge one
    both = np.outer(scale, scale)
    shares = np.divide(cov, both, out=np.eye(m - 1), where=both > 0)
    spread = scale.max(initial=0.0) / scale.min(initial=np.inf, where=scale > 0)
    jitter = min(1.0, ROUNDING * m * float(spread))  # identical models make it singular
    try:
        root[rest] = scale[:, None] * np.linalg.cholesky(shares + jitter * np.eye(m - 1))
        return root, True
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(cov)
    root[rest] = vectors * np.sqrt(np.maximum(values, 0.0))
    lowest = np.linalg.eigvalsh(shares)[0]  # in shares: a huge model must not hide the others
    return root, bool(lowest >= -max(NO_COVARIANCE, jitter) * m)


def inverse_deviations(
    root: FloatArray, squared: FloatArray, left: IntArray, right: IntArray
) -> FloatArray:
    """Invert the standard deviations of drawn differences; 0 if two models are identical."""
    variance = squared[left, right].copy()
    own = np.square(root).sum(axis=1)
    added = np.abs(own - squared[own.argmin()])  # to the variance about the central model
    unsure = np.maximum(ALIKE * squared.max(), (added[left] + added[right]) / ALIKE)
    close = np.flatnonzero((variance > 0) & (variance < unsure))
    for start, stop in block_bounds(len(close), max(FEWEST, CHUNK // len(root))):
        at = close[start:stop]  # what was added may exceed these: each stays standard normal
        variance[at] = ((root[left[at]] - root[right[at]]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.where(variance > 0, 1 / np.sqrt(variance), 0.0)
    return found


def draw_means(
    root: FloatArray, n_draws: int, seed: int, work: Callable[[FloatArray, int, int], None]
) -> None:
    """Pass draws of N(0, L L') to ``work``, models by draws, with the numbers of the draws.

    Each chunk has its own random stream, so results do not depend on threads or carried cells.
    """
    chunks = block_bounds(n_draws, max(FEWEST, CHUNK // len(root)))

    def one(c: int) -> None:
        start, stop = chunks[c]
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(c,)))
        work(root @ rng.standard_normal((root.shape[1], stop - start)), start, stop)

    for _ in ordered_map(one, len(chunks)):
        pass


def student_quantile(z: FloatArray, df: float | FloatArray) -> FloatArray:
    """Map normal quantiles to those of Student's t at the same probability.

    Some versions of scipy return NaN instead of infinity at a probability of 0. Infinite degrees of
    freedom leave z unchanged.
    """
    tail = special.ndtr(-np.abs(z))
    found = np.copysign(np.where(tail == 0, np.inf, special.stdtrit(df, tail)), z)
    return np.where(np.isinf(df), z, found)


def normal_quantile(t: FloatArray, df: float | FloatArray) -> FloatArray:
    """Map quantiles of Student's t to normal ones at the same probability.

    Both use the lower tail, which keeps its digits; beyond 1e-300 the result is infinite.
    """
    found = np.copysign(special.ndtri(special.stdtr(df, -np.abs(t))), t)
    return np.where(np.isinf(df), t, found)


def max_statistic_draws(
    squared: FloatArray,
    left: IntArray,
    right: IntArray,
    *,
    alternative: str,
    n_draws: int,
    seed: int,
) -> FloatArray | None:
    """Draw the largest statistic of some pairs under no difference.

    Parameters
    ----------
    squared : array, shape (models, models)
        Variances of all differences.
    left, right : array of int, shape (pairs,)
        The models of each pair.
    alternative : {"two-sided", "less", "greater"}
        Which statistics count as large: of either sign, negative or positive ones.
    n_draws, seed : int
        The number of draws, and the seed.

    Returns
    -------
    array, shape (draws,), or None
        ``-inf`` if no pair has a variance; None if no covariance has these variances.
    """
    root, exact = factor_covariance(squared)
    if not exact:
        return None
    scale = inverse_deviations(root, squared, left, right)
    keep = scale > 0
    if not keep.any():
        return np.full(n_draws, -np.inf)
    left, right, scale = left[keep], right[keep], scale[keep]
    if alternative == "less":
        scale = -scale
    if len(np.unique(right)) < len(np.unique(left)):
        left, right, scale = right, left, -scale  # fewer groups below
    order = np.argsort(left, kind="stable")
    heads, starts = np.unique(left[order], return_index=True)
    others, times = np.split(right[order], starts[1:]), np.split(scale[order], starts[1:])
    groups = list(zip(heads.tolist(), others, times, strict=True))
    both_sides = alternative == "two-sided"
    out = np.full(n_draws, -np.inf)

    def work(g: FloatArray, start: int, stop: int) -> None:
        for gaps in groups:
            kernels.raise_to_gaps(g, *gaps, both_sides, out[start:stop])

    draw_means(root, n_draws, seed, work)
    return out


def count_leads(
    squared: FloatArray,
    statistic: FloatArray,
    *,
    keep: MaskArray | None,
    n_draws: int,
    seed: int,
) -> tuple[IntArray, FloatArray]:
    """Count, for each model, the draws in which its largest lead reaches a statistic.

    The lead of model m over j is ``(g_m - g_j) / se_mj``; ``keep`` (models by models) selects the j
    for each m. All models share the draws. Also returns the largest lead of any model over any
    other in each draw. Every pair must have a variance.
    """
    root, exact = factor_covariance(squared)
    if not exact:
        raise ValueError("no covariance has these variances of differences")
    m = len(squared)
    scale = pair_matrix(inverse_deviations(root, squared, *np.triu_indices(m, 1)), m)
    others = ~np.eye(m, dtype=bool)
    counted = others if keep is None else others & keep

    def gaps_among(chosen: MaskArray) -> list[tuple[int, IntArray, FloatArray]]:
        return [(i, j, scale[i, j]) for i, j in enumerate(map(np.flatnonzero, chosen))]

    own_gaps = gaps_among(counted)
    other_gaps = [] if keep is None else gaps_among(others & ~counted)
    reached = np.zeros((m, n_draws), dtype=bool)
    most = np.empty(n_draws)

    def work(g: FloatArray, start: int, stop: int) -> None:
        best = np.full((m, stop - start), -np.inf)
        for gaps, largest in zip(own_gaps, best, strict=True):
            kernels.raise_to_gaps(g, *gaps, False, largest)
        reached[:, start:stop] = best >= statistic[:, None]
        most[start:stop] = best.max(axis=0)
        for gaps in other_gaps:
            kernels.raise_to_gaps(g, *gaps, False, most[start:stop])

    draw_means(root, n_draws, seed, work)
    return reached.sum(axis=1), most


def max_t_p_values(statistic: FloatArray, largest: FloatArray) -> FloatArray:
    """Adjust p-values: the share of draws with a largest statistic at least as large.

    The log itself counts as one draw, so that no p-value is zero.
    """
    ordered = np.sort(largest)
    below = np.searchsorted(ordered, statistic, side="left")
    p = (1 + len(ordered) - below) / (len(ordered) + 1)
    return np.where(np.isnan(statistic), np.nan, p)


def critical_value(largest: FloatArray, alpha: float) -> float:
    """Find the bound that a statistic must exceed for an adjusted p-value of at most alpha."""
    rank = min(int(alpha * (len(largest) + 1) * (1 + 1e-12)), len(largest))
    return float(np.sort(largest)[-rank])
