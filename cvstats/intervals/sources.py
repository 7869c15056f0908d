"""Intervals from the means of sources: the error on a new one, and on those at hand.

Geras and Sutton (2013) leave a source out at a time; source k holds M_k losses with mean m_k
and sample variance var_k, and the estimate is the mean of the m_k. With sigma_k^2 the variance
of a loss, omega_k the covariance of two losses of a source and gamma_kl that of losses of two
sources, the variance of the estimate over data sets from the same sources is

    theta = K^-2 [sum sigma_k^2 / M_k + sum (1 - 1/M_k) omega_k + sum_{k != l} gamma_kl].    (7)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice, listed, spelled

__all__ = [
    "CORRECTIONS",
    "SOURCE_BIAS",
    "TARGETS",
    "VARIANCES",
    "clustered",
    "estimators",
    "out_of_source",
]

TARGETS = {
    "new_source": "expected loss on a source that is not in the data, drawn as these were",
    "these_sources": "mean over these sources of the loss on the one left out, on average over "
    "data sets that they could have given",
}
GUARANTEES = {
    "new_source": "exact as sources grow, if they are drawn independently",
    "these_sources": "heuristic: the covariances of the losses are left out",
}
VARIANCES = ("theta_b", "theta_a")
CORRECTIONS = ("CR1", "CR3")

FEW_SOURCES = 10
FEW_CLUSTERS = 30
FEW_POINTS = 30
TOO_NARROW = 0.9
"""A share of CR1's own target below which clusters count as too unequal for it."""

SOURCE_BIAS = {
    "theta_omega_k": "-omega_k + mean(mu)^2 - mu_k^2",
    "theta_gamma_kl": "-gamma_kl + mean(mu)^2 - mu_k mu_l",
    "theta_omega": "-mean_k omega_k - (1 - 1/K) Var(mu)",
    "theta_gamma": "-mean_kl gamma_kl + Var(mu) / K",
    "theta_a": "-K^-2 (sum_k omega_k + sum_kl gamma_kl)",
    "theta_b": "K^-2 (sum_k [sigma_k^2 - (M_k + 1) omega_k] / M_k - sum_kl gamma_kl)",
}
"""Bias of each estimator of (7); mu_k is the expected loss of source k, Var(mu) their sample
variance, and kl runs over pairs of different sources."""


def by_source(moments: Moments) -> tuple[Moments, FloatArray]:
    """Merge the repetitions of each source; also the points in it."""
    merged = moments.over(("source",))
    repetitions = 1
    if "repetition" in moments.levels:
        at = moments.levels.index("repetition")
        repetitions = len(np.unique(moments.codes[:, at]))
    return merged, merged.count / repetitions


def mean_of_means(part: Moments) -> tuple[FloatArray, FloatArray]:
    """Give the mean of the source means, and their sample variance V_b, about the first mean."""
    origin = part.mean[0]
    apart = part.mean - origin
    middle = apart.mean(axis=0)
    return origin + middle, ((apart - middle) ** 2).sum(axis=0) / (len(apart) - 1)


def own_variances(moments: Moments) -> FloatArray:
    """Compute ``var_k / M_k`` of each source, averaged over repetitions.

    Points come back in every repetition, so the mean is not divided by the repetitions.
    """
    lonely = np.flatnonzero(moments.count < 2)
    if len(lonely):
        at = moments.levels.index("source")
        codes = np.unique(moments.codes[lonely, at]).tolist()
        names = [spelled(moments.labels[at][code]) for code in codes]
        raise LogError(
            f"the variance within sources needs at least two points of each, and source "
            f"{listed(names)} has one. Leave these sources out, or ask for "
            f"target='new_source', which needs the means of the sources only."
        )
    each = moments.m2 / ((moments.count - 1) * moments.count)[:, None]
    splits = Moments(moments.levels, moments.labels, moments.codes, np.ones(len(each)), each, each)
    averaged: FloatArray = splits.over(("source",)).mean
    return averaged


def out_of_source(moments: Moments, *, target: str, variance: str, alpha: float) -> Result:
    """Interval from a log that leaves a source out at a time.

    ``moments`` has a cell for each source, or for each repetition and source.
    """
    checked_choice("target", target, TARGETS)
    checked_choice("variance", variance, VARIANCES)
    if target == "new_source" and variance != "theta_b":
        raise LogError(
            f"variance={variance!r} is for these sources, and a new one has its own. Expected "
            f"target='these_sources' beside it, or no variance."
        )
    part, points = by_source(moments)
    k = len(part.count)
    estimate, spread = mean_of_means(part)
    n = int(round(points.sum()))
    df = None
    caution = Caution.FEW_SOURCES if k < FEW_SOURCES else Caution(0)
    attrs: dict[str, str | float | int] = {
        "target": TARGETS[target], "guarantee": GUARANTEES[target],
    }  # fmt: skip
    if target == "new_source":
        squared, df = spread / k, k - 1
    else:
        squared = own_variances(moments).sum(axis=0) / k**2  # (11)
        squared = squared if variance == "theta_a" else 2 * squared  # (12)
        caution |= Caution.SOURCES_AS_FOLDS | (Caution.FEW_POINTS if n < FEW_POINTS else 0)
        attrs |= {"variance": variance, "bias": SOURCE_BIAS[variance]}
    extra: dict[str, FloatArray | float] = {} if df is None else {"df": df}
    extra |= {"n_points": n, "n_sources": k, **sizes(points)}
    return interval(
        "out_of_source", estimate, squared, alpha=alpha, df=df, extra=extra,
        caution=int(caution), attrs=attrs,
    )  # fmt: skip


def sizes(points: FloatArray | IntArray) -> dict[str, FloatArray | float]:
    """Tell the points of the smallest and of the largest source."""
    return {"smallest": int(round(points.min())), "largest": int(round(points.max()))}


def clustered(
    part: Moments, points: IntArray, *, correction: str, alpha: float, crossed: bool
) -> Result:
    """Interval for the pooled mean, with clusters as the independent units.

    ``part`` has a cell for each of two clusters or more, all evaluations of its points merged;
    ``points`` counts the points. ``crossed`` says that a cluster stands in several folds.
    """
    checked_choice("correction", correction, CORRECTIONS)
    g = len(part.count)
    v = (part.count / part.count.sum())[:, None]
    mean = part.over(()).mean[0]
    apart = v * (part.mean - mean)
    if correction == "CR1":  # Liang and Zeger (1986), times G / (G - 1)
        squared = g / (g - 1) * (apart**2).sum(axis=0)
    else:  # the jackknife: without cluster c the mean moves by v_c (mu - m_c) / (1 - v_c)
        squared = (g - 1) / g * ((apart / (1 - v)) ** 2).sum(axis=0)
    caution = Caution.FEW_CLUSTERS if g < FEW_CLUSTERS else Caution(0)
    if correction == "CR1" and narrowing(v[:, 0]) < TOO_NARROW:
        caution |= Caution.UNEQUAL_CLUSTERS
    if crossed:
        caution |= Caution.SOURCES_ACROSS_FOLDS
    extra: dict[str, FloatArray | float] = {
        "df": g - 1, "n_points": int(points.sum()), "n_clusters": g, **sizes(points),
    }  # fmt: skip
    attrs: dict[str, str | float | int] = {"by": part.levels[0], "correction": correction}
    return interval(
        "clustered", mean, squared, alpha=alpha, df=g - 1, extra=extra,
        caution=int(caution), attrs=attrs,
    )  # fmt: skip


def narrowing(v: FloatArray) -> float:
    """Divide the expectation of CR1 by its target, for cluster means of one variance.

    With independent means of variance one the target is ``S2 = sum v_c^2``, and the
    expectation ``G / (G - 1) sum v_c^2 (1 - 2 v_c + S2)``. It is 1 for equal clusters.
    """
    s2 = float((v**2).sum())
    return len(v) / (len(v) - 1) * (1 + s2 - 2 * float((v**3).sum()) / s2)


def estimators(moments: Moments, *, source: int | None = None, other: int | None = None) -> Result:
    """Estimate (7) in all ways of Geras and Sutton: Table 1, (11) and (12).

    ``source`` and ``other`` are codes of the sources that the first two lines of Table 1 single
    out. Products of means are taken about the estimate, lest their differences lose digits.
    """
    part, points = by_source(moments)
    k = len(part.count)
    mean, spread = mean_of_means(part)
    apart = part.mean - mean
    noise = own_variances(moments)
    columns: dict[str, NDArray[Any]] = {}
    if source is not None:
        at = int(np.flatnonzero(part.codes[:, 0] == source)[0])
        columns["theta_omega_k"] = noise[at] - apart[at] * (2 * mean + apart[at])
        if other is not None:
            to = int(np.flatnonzero(part.codes[:, 0] == other)[0])
            both = apart[at] + apart[to]
            columns["theta_gamma_kl"] = -(mean * both + apart[at] * apart[to])
    columns["theta_omega"] = noise.mean(axis=0) - (1 - 1 / k) * spread
    columns["theta_gamma"] = spread / k
    columns["theta_a"] = noise.sum(axis=0) / k**2
    columns["theta_b"] = 2 * columns["theta_a"]
    width = np.ones(len(mean), dtype=np.int64)
    counts = {"n_points": int(round(points.sum())), "n_sources": k, **sizes(points)}
    words = "; ".join(f"{name}: {SOURCE_BIAS[name]}" for name in columns)
    caution = np.where(np.isnan(mean), np.int64(Caution.NO_LOSSES), np.int64(0))
    if source is not None:
        caution[~np.isnan(mean)] |= np.int64(Caution.MEAN_DOMINATED)
    columns |= {name: number * width for name, number in counts.items()}
    return Result("source_estimators", columns, caution, {"bias": words})
