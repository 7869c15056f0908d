"""Every interval as one writes it by hand with pandas and numpy: (estimate, lower, upper).

No checks, no levels but those it needs, and the usual tools: groupby, pivot, quantile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

Limits = tuple[float, float, float]
ALPHA = 0.05
Z = float(stats.norm.ppf(1 - ALPHA / 2))


def around(estimate: float, se: float, df: float | None = None) -> Limits:
    reach = se * (Z if df is None else stats.t.ppf(1 - ALPHA / 2, df))
    return estimate, estimate - reach, estimate + reach


def between(estimate: float, values: np.ndarray, shift: float = 0.0) -> Limits:
    low, high = np.quantile(values, [ALPHA / 2, 1 - ALPHA / 2]) + shift
    return estimate, low, high


def holdout(losses: pd.Series) -> Limits:
    return around(losses.mean(), losses.sem())


def wald(losses: pd.Series) -> Limits:
    parts = losses.groupby(level="repetition").agg(lambda part: part.var(ddof=0) / len(part))
    return around(losses.mean(), np.sqrt(parts.mean()))


def cv_t(losses: pd.Series) -> Limits:
    means = losses.groupby(level=["repetition", "fold"]).mean()
    return around(means.mean(), means.sem(), len(means) - 1)


def quadratic(losses: pd.Series) -> Limits:
    folds = losses.groupby(level="fold").agg(["size", "mean", "var"])
    k, m = len(folds), folds["size"].iloc[0]  # equal folds
    within, between_folds = folds["var"].mean(), folds["mean"].var()
    theta = (1 + 1 / k) * between_folds - within / m
    return around(losses.mean(), np.sqrt(theta if theta > 0 else within / (k * m)))


def corrected_t(losses: pd.Series) -> Limits:
    means = losses.groupby(level="repetition").mean()
    ratio = len(losses) / len(means) / losses.attrs["train_size"]
    return around(means.mean(), np.sqrt((1 / len(means) + ratio) * means.var()), len(means) - 1)


def conservative_z(losses: pd.Series) -> Limits:
    splits = losses.groupby(level=["sample", "repetition"]).mean()
    means = splits.groupby(level="sample").mean().sort_index()
    first, second = means.iloc[1::2].to_numpy(), means.iloc[2::2].to_numpy()
    return around(means.loc[0], np.sqrt(((first - second) ** 2).mean() / 2))


def five_by_two(losses: pd.Series) -> Limits:
    means = losses.groupby(level=["repetition", "fold"]).mean().unstack("fold")
    spread = (means[0] - means[1]) ** 2 / 2
    return around(means.iloc[0, 0], np.sqrt(spread.mean()), 5)


def nested_cv(losses: pd.Series) -> Limits:
    names = losses.index
    inner = names.get_level_values("outer") != names.get_level_values("fold")
    by = ["repetition", "outer"]
    e_in = losses[inner].groupby(level=by).mean()
    e_out = losses[~inner].groupby(level=by).agg(["mean", "var", "size"])
    mse = ((e_in - e_out["mean"]) ** 2).mean() - (e_out["var"] / e_out["size"]).mean()
    k = names.get_level_values("fold").nunique()
    lowest = losses[inner].var() / names.get_level_values("point").nunique()
    variance = np.clip((k - 1) / k * mse, lowest, k * lowest)
    bias = (1 + (k - 2) / k) * (losses[inner].mean() - losses[~inner].mean())
    return around(losses[inner].mean() - bias, np.sqrt(variance))


def replace_one(losses: pd.Series) -> Limits:
    means = losses.groupby(level="sample").mean().sort_index()
    apart = means.iloc[2:] - means.loc[1]
    return around(means.loc[0], 0.5 * np.sqrt((apart**2).sum()))


def out_of_source(losses: pd.Series) -> Limits:
    means = losses.groupby(level="source").mean()
    return around(means.mean(), means.sem(), len(means) - 1)


def clustered(losses: pd.Series) -> Limits:
    apart = losses - losses.mean()
    sums = apart.groupby(level="source").sum()
    g, n = len(sums), len(losses)
    se = np.sqrt((sums**2).sum() * g / (g - 1)) / n
    return around(losses.mean(), se, g - 1)


def pivoted(losses: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Counts and losses, fit by point, the fit on the sample itself first."""
    table = losses.rename("loss").reset_index("count")
    table = table.pivot_table(index="repetition", columns="point", values=["count", "loss"])
    return table["count"].to_numpy(), table["loss"].to_numpy()


def jackknifed(counts: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    """The leave-one-out bootstrap and its standard error."""
    n = counts.shape[1]
    out = counts == 0
    times = out.sum(axis=0)
    seen = np.where(out, loss, 0.0)
    point, fits = seen.sum(axis=0) / times, seen.sum(axis=1) / n
    error = point.mean()
    covariance = ((counts - counts.mean(axis=0)) * fits[:, None]).sum(axis=0) / times
    derivative = (2 + 1 / (n - 1)) * (point - error) / n + covariance
    return error, np.sqrt((derivative**2).sum())


def bootstrap_oob(losses: pd.Series) -> Limits:
    counts, loss = pivoted(losses)
    return around(*jackknifed(counts[1:], loss[1:]))


def weighed(losses: pd.Series, counts: np.ndarray, loss: np.ndarray) -> tuple[float, float, float]:
    """Apparent error, .632+ error, and standard error."""
    error, se = jackknifed(counts[1:], loss[1:])
    apparent, gamma = loss[0].mean(), losses.attrs["no_information"]
    rate = np.clip((min(error, gamma) - apparent) / (gamma - apparent), 0, 1)
    weight = 0.632 / (1 - 0.368 * rate)
    estimate = (1 - weight) * apparent + weight * min(error, gamma)
    return apparent, estimate, se * estimate / error


def bootstrap_632(losses: pd.Series) -> Limits:
    _, estimate, se = weighed(losses, *pivoted(losses))
    return around(estimate, se)


def location_shifted(losses: pd.Series) -> Limits:
    counts, loss = pivoted(losses)
    apparent, estimate, _ = weighed(losses, counts, loss)
    own = (counts[1:] * loss[1:]).sum(axis=1) / counts[1:].sum(axis=1)
    return between(estimate, own, estimate - apparent)


def case_bootstrap(losses: pd.Series) -> Limits:
    counts = losses.index.get_level_values("count").to_numpy()
    sums = pd.DataFrame({"loss": losses.to_numpy() * counts, "count": counts})
    sums = sums.groupby(losses.index.get_level_values("repetition").to_numpy()).sum()
    means = sums["loss"] / sums["count"]
    return between(means.mean(), means.to_numpy())


def two_stage(losses: pd.Series) -> Limits:
    table = losses.rename("loss").reset_index()
    own = table[table["repetition"] == 0]
    weighted = (own["loss"] * own["count"]).groupby(own["sample"]).sum()
    apparent = weighted / own.groupby("sample")["count"].sum()
    out = table[(table["repetition"] > 0) & (table["count"] == 0)]
    error = out.groupby(["sample", "point"])["loss"].mean().groupby("sample").mean()
    gamma = pd.Series(losses.attrs["no_information"])
    capped = np.minimum(error, gamma)
    rate = ((capped - apparent) / (gamma - apparent)).clip(0, 1)
    weight = 0.632 / (1 - 0.368 * rate)
    estimate = (1 - weight) * apparent + weight * capped
    return between(estimate.loc[0], estimate.drop(0).to_numpy())


FORMULAS: dict[str, Callable[[pd.Series], Limits]] = {
    "holdout": holdout,
    "wald": wald,
    "naive": holdout,
    "cv_t": cv_t,
    "quadratic": quadratic,
    "corrected_t": corrected_t,
    "conservative_z": conservative_z,
    "five_by_two": five_by_two,
    "nested_cv": nested_cv,
    "replace_one": replace_one,
    "out_of_source": out_of_source,
    "clustered": clustered,
    "bootstrap_oob": bootstrap_oob,
    "bootstrap_632": bootstrap_632,
    "case_bootstrap": case_bootstrap,
    "location_shifted": location_shifted,
    "two_stage": two_stage,
}
"""The formula of each method, under its name."""
