"""Variance components from several independent logs, where nothing has to be assumed.

One log cannot show how far all of its losses move together. The means of logs of independent
data sets can: their sample variance is unbiased for theta, and what a single log shows of
sigma^2 - omega and omega - gamma then leaves one value for each component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments, mean_and_squares
from cvstats.core.design import LEVELS
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_level, listed, spelled
from cvstats.intervals._method import Method
from cvstats.intervals.quadratic import (
    Components,
    average_columns,
    estimate_components,
    split_repetitions,
)
from cvstats.log.groups import Groups
from cvstats.log.read import read


def read_independent_logs(losses: object, name: str, missing: str) -> Groups:
    """Read stacked independent logs, distinguished by a level."""
    checked_level("independent", name)
    if name == "repetition":
        raise LogError(
            "independent='repetition': repetitions split the same data anew and share all that "
            "is particular to them, so they are not independent logs and say nothing about gamma. "
            "Expected a level whose labels are data sets of their own, as in "
            "independent='dataset'. If each of your repetitions drew new data, call it so: "
            "log.rename_axis(index={'repetition': 'dataset'})."
        )
    if name in LEVELS:
        raise LogError(
            f"independent={name!r}: the labels of {name!r} are parts of one experiment on one "
            f"data set, so they are not independent logs. Expected another level, whose labels "
            f"are data sets of their own, as in independent='dataset'."
        )
    groups = Groups(read(losses, missing=missing, by=name), name)
    if len(groups.labels) < 2:
        raise LogError(
            f"level {name!r} has one label, {spelled(groups.labels[0])}: a single log cannot "
            f"show its own variance. Expected two data sets or more, drawn independently."
        )
    return groups


def check_logs(method: Method, groups: Groups, needs: str) -> None:
    """Refuse logs of which one does not allow the method."""
    for label, part in zip(groups.labels, groups.parts(), strict=True):
        words = method.problem(part.design)
        if words is not None:
            raise LogError(f"{needs}; {groups.name}={spelled(label)}: {words}")


def moments_by_source(groups: Groups) -> Moments:
    """Compute the moments of each source in each log."""
    if groups.design.has("repetition"):
        raise LogError(
            f"the logs that leave a source out have {groups.design.number('repetition'):,} "
            f"repetitions. Expected one in each log: {groups.design.take('repetition')}."
        )
    return groups.log.moments((groups.name, "source"))


def sample_variance(values: FloatArray) -> FloatArray:
    """Sample variance along the first axis."""
    return mean_and_squares(values)[1] / (len(values) - 1)


def variance_of_one(means: Sequence[FloatArray]) -> FloatArray:
    """Estimate the variance of a single repetition's mean, without bias.

    ``means`` has for each log an array (repetitions, columns). The mean over the r_d
    repetitions of log d varies by what its repetitions share, and by 1/r_d of what they do not.
    """
    theta = sample_variance(np.stack([mean_and_squares(part)[0] for part in means]))
    spare = sum(len(part) - 1 for part in means)
    if spare:
        alone = sum(sample_variance(part) * (len(part) - 1) for part in means if len(part) > 1)
        theta = theta + alone / spare * (1 - float(np.mean([1 / len(part) for part in means])))
    return theta


def decompose_logs(logs: Sequence[Moments], fold_weights: str) -> Result:
    """Estimate sigma^2, omega, gamma and theta from independent logs of one design.

    Each log has cells by fold, or by repetition and fold. Where folds differ in size between
    the logs, theta is the mean of their variances, and H and S2 are means too.
    """
    logs = [found.about(logs[0].origin) for found in logs]
    parts = [
        [estimate_components(part, fold_weights) for part in split_repetitions(found)]
        for found in logs
    ]
    flat = [part for log in parts for part in log]
    found = average_columns([log_mean(log) for log in parts])
    theta = variance_of_one([np.stack([part.mean for part in log]) for log in parts])
    h, s2 = (float(np.mean([getattr(part, name) for part in flat])) for name in ("h", "s2"))
    within, between = found["sigma2_minus_omega"], found["omega_minus_gamma"]
    gamma = theta - h * within - s2 * between  # theta = gamma + S2 (omega - gamma) + H (…)
    omega = gamma + between
    sigma2 = omega + within
    columns: dict[str, NDArray[Any]] = {
        **found, "sigma2": sigma2, "omega": omega, "gamma": gamma, "theta": theta,
        "part_sigma2": h * sigma2, "part_omega": (s2 - h) * omega, "part_gamma": (1 - s2) * gamma,
    }  # fmt: skip
    return add_counts(columns, parts, fold_weights)


def log_mean(parts: Sequence[Components]) -> dict[str, FloatArray]:
    """Average over the repetitions of a log what each of them shows."""
    return average_columns([part.to_columns() for part in parts])


def add_counts(
    columns: dict[str, NDArray[Any]], parts: Sequence[Sequence[Components]], fold_weights: str
) -> Result:
    """Append the counts, of one log; their mean where the logs differ."""
    width = np.ones(len(columns["theta"]), dtype=np.int64)
    counts = {
        "n_points": [log[0].points for log in parts],
        "n_folds": [log[0].folds for log in parts],
        "n_repetitions": [len(log) for log in parts],
    }
    for name, numbers in counts.items():
        one = float(np.mean(numbers))
        columns[name] = width * (int(one) if one == int(one) else one)
    columns["n_logs"] = len(parts) * width
    missing = np.isnan(columns["theta"])
    caution = np.where(missing, np.int64(Caution.NO_LOSSES), np.int64(0))
    attrs = {
        "fold_weights": fold_weights,
        "guarantee": "unbiased for independent logs of one design",
    }
    return Result("decompose", columns, caution, attrs)


@dataclass(frozen=True, eq=False)
class BySource:
    """Components of the mean over sources, each source with its own.

    Tables have a number for each column of the losses in their last axis: ``covariance`` and
    ``gamma`` for each pair of sources, ``sigma2`` and ``omega`` for each source. ``size`` is
    the mean of M_k over the logs, ``inverse`` that of 1 / M_k.
    """

    covariance: FloatArray
    sigma2: FloatArray
    omega: FloatArray
    size: FloatArray
    inverse: FloatArray
    logs: int


def by_source(found: Moments) -> BySource:
    """Estimate sigma_k^2, omega_k and gamma_kl from independent logs of the same sources.

    ``found`` has a cell for each log and source, in this order of levels.
    """
    r, k = (len(np.unique(found.codes[:, i])) for i in range(2))
    if len(found.count) < r * k:
        raise absent(found)
    alone = found.count < 2
    if alone.any():
        at = int(np.flatnonzero(alone)[0])
        raise LogError(
            f"{found.levels[1]} {name_of(found, 1, at)} has one point in {found.levels[0]} "
            f"{name_of(found, 0, at)}, so sigma^2 cannot be separated from omega. Expected at "
            f"least two points of each source in each log."
        )
    shape = (r, k, found.mean.shape[1])
    mean, m2 = found.mean.reshape(shape), found.m2.reshape(shape)
    count = found.count.reshape(r, k)
    apart = mean - mean[0]
    apart -= apart.mean(axis=0)
    covariance = np.einsum("rkw,rlw->klw", apart, apart) / (r - 1)
    within = (m2 / (count - 1)[:, :, None]).mean(axis=0)
    inverse = (1 / count).mean(axis=0)
    # E Var(m_k) = omega_k + (sigma_k^2 - omega_k) E(1 / M_k)
    omega = np.einsum("kkw->kw", covariance) - inverse[:, None] * within
    return BySource(covariance, omega + within, omega, count.mean(axis=0), inverse, r)


def name_of(found: Moments, level: int, cell: int) -> str:
    """Spell the label of a cell on one level."""
    return spelled(found.labels[level][found.codes[cell, level]])


def absent(found: Moments) -> LogError:
    """Name the sources that some log lacks."""
    logs, sources = (np.unique(found.codes[:, i]) for i in range(2))
    there = set(map(tuple, found.codes.tolist()))
    lost = [(a, b) for a in logs.tolist() for b in sources.tolist() if (a, b) not in there]
    words = [
        f"{found.levels[0]}={spelled(found.labels[0][a])} has no {found.levels[1]} "
        f"{spelled(found.labels[1][b])}"
        for a, b in lost
    ]
    return LogError(
        f"the independent logs do not have the same sources: {listed(words)}. Expected each "
        f"source in each log. Keep those that all have; if each log drew sources of its own, "
        f"they are folds: log.rename_axis(index={{'source': 'fold'}})."
    )


def decompose_source_logs(found: Moments, fold_weights: str) -> Result:
    """Do the same as `decompose_logs` for logs that leave a source out: (7), with any weights.

    ``sigma2``, ``omega`` and ``gamma`` are means over sources, and over pairs of them.
    """
    parts = [[estimate_components(part, fold_weights)] for part in found.groups(found.levels[0])]
    each = by_source(found)
    k = len(each.size)
    v = each.size / each.size.sum() if fold_weights == "size" else np.full(k, 1 / k)
    theta = np.einsum("k,klw,l->w", v, each.covariance, v)
    total = each.covariance.sum(axis=(0, 1)) - np.einsum("kkw->w", each.covariance)
    sigma = (v**2 * each.inverse) @ each.sigma2
    omega = (v**2 * (1 - each.inverse)) @ each.omega
    own = np.einsum("k,kkw->w", v**2, each.covariance)
    columns: dict[str, NDArray[Any]] = {
        **average_columns([log_mean(log) for log in parts]),
        "sigma2": each.sigma2.mean(axis=0), "omega": each.omega.mean(axis=0),
        "gamma": total / (k * (k - 1)), "theta": theta,
        "part_sigma2": sigma, "part_omega": omega, "part_gamma": theta - own,
    }  # fmt: skip
    return add_counts(columns, parts, fold_weights)
