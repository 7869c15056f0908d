"""Each interval against the same formula in pandas and numpy.

Each method gets a log of realistic size with one model; every pair of calls runs on a new index,
and again on a checked one. The results of both sides are compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, stats

import cvstats
from benchmarks import logs
from benchmarks.measure import Row, in_turns


@dataclass(frozen=True)
class Size:
    """The number of points and of resamples."""

    n: int
    nested: tuple[int, int]
    replaced: int
    samples: int
    outer: tuple[int, int]


# --- logs -----------------------------------------------------------------------------------------

SIZES = {
    "full": Size(1_000, (5, 50), 200, 1_000, (100, 20)),
    "tiny": Size(60, (3, 2), 12, 60, (10, 8)),
}


def series(codes: dict[str, Any]) -> pd.Series:
    """Positive losses for the codes of some levels."""
    arrays = {name: np.asarray(values) for name, values in codes.items()}
    index = pd.MultiIndex(
        levels=[range(int(values.max()) + 1) for values in arrays.values()],
        codes=list(arrays.values()), names=list(arrays), verify_integrity=False,
    )  # fmt: skip
    loss = np.random.default_rng(1).gamma(2.0, size=len(index))
    return pd.Series(loss, index=index, name="model")


def folds(size: Size, k: int = 10, repetitions: int = 10) -> pd.Series:
    """Repetitions of K equal folds."""
    rng = np.random.default_rng(2)
    fold = np.concatenate([rng.permutation(np.arange(size.n) % k) for _ in range(repetitions)])
    return series(
        {
            "repetition": np.repeat(np.arange(repetitions), size.n),
            "fold": fold,
            "point": np.tile(np.arange(size.n), repetitions),
        }
    )


def points(size: Size) -> pd.Series:
    """One test set."""
    return folds(size, 1, 1).droplevel("fold")


def partition(size: Size) -> pd.Series:
    """One partition into ten folds."""
    return folds(size, 10, 1).droplevel("repetition")


def splits(size: Size) -> pd.Series:
    """25 random splits that test a tenth of the points."""
    rng = np.random.default_rng(3)
    tests = [rng.permutation(size.n)[: size.n // 10] for _ in range(25)]
    repetition = np.repeat(np.arange(25), size.n // 10)
    losses = series({"repetition": repetition, "point": np.concatenate(tests)})
    losses.attrs["train_size"] = size.n - size.n // 10
    return losses


def halves(size: Size) -> pd.Series:
    """Five splits of the data, and of the halves of ten divisions."""
    rng = np.random.default_rng(4)
    tests, samples, repetitions = [], [], []
    for sample in range(21):
        if sample % 2:
            order = rng.permutation(size.n)
        of = np.arange(size.n) if sample == 0 else np.array_split(order, 2)[(sample + 1) % 2]
        for j in range(5):
            tests.append(rng.permutation(of)[: size.n // 10])
            samples.append(np.full(size.n // 10, sample))
            repetitions.append(np.full(size.n // 10, j))
    names = {"sample": samples, "repetition": repetitions, "point": tests}
    return series({name: np.concatenate(parts) for name, parts in names.items()})


def nested(size: Size) -> pd.Series:
    """All pairs of an outer fold and a tested one, repeated."""
    k, repetitions = size.nested
    rng = np.random.default_rng(5)
    fold = np.stack([rng.permutation(np.arange(size.n) % k) for _ in range(repetitions)])
    shape = repetitions, k, size.n
    repetition, outer, point = (part.ravel() for part in np.indices(shape))
    tested = np.broadcast_to(fold[:, None], shape).ravel()
    return series({"repetition": repetition, "outer": outer, "fold": tested, "point": point})


def replaced(size: Size) -> pd.Series:
    """Folds of the data, of a half, and of that half with each point replaced."""
    n, h = size.replaced, size.replaced // 2
    half = np.tile(np.arange(h), (h + 1, 1))
    half[np.arange(1, h + 1), np.arange(h)] += h
    sample = np.concatenate([np.zeros(n, int), np.repeat(np.arange(1, h + 2), h)])
    fold = np.concatenate([np.arange(n) % 5, np.tile(np.arange(h) % 5, h + 1)])
    point = np.concatenate([np.arange(n), half.ravel()])
    return series({"sample": sample, "fold": fold, "point": point})


def sources(size: Size) -> pd.Series:
    """Fifty sources, left out one at a time."""
    return series({"source": np.arange(size.n) % 50, "point": np.arange(size.n)})


def dozen(size: Size) -> pd.Series:
    """Twelve sources, few enough for all signs of them."""
    return series({"source": np.arange(size.n) % 12, "point": np.arange(size.n)})


def bootstrap(size: Size) -> pd.Series:
    """The sample and bootstrap samples of it, every point in each."""
    rng = np.random.default_rng(6)
    counts = rng.multinomial(size.n, np.full(size.n, 1 / size.n), size.samples)
    counts = np.vstack([np.ones((1, size.n), int), counts])
    repetition, point = (part.ravel() for part in np.indices(counts.shape))
    losses = series({"repetition": repetition, "point": point, "count": counts.ravel()})
    losses[counts.ravel() > 0] *= 0.8  # in-bag losses are slightly smaller
    losses.attrs["no_information"] = 4.0
    return losses


def cases(size: Size) -> pd.Series:
    """The points that are in bag."""
    losses = bootstrap(size)
    levels = losses.index
    seen = (levels.get_level_values("count") > 0) & (levels.get_level_values("repetition") > 0)
    return logs.unseen(losses[seen])


def two_stage(size: Size) -> pd.Series:
    """The data and outer samples, each with bootstrap samples of its own."""
    outer, inner = size.outer
    rng = np.random.default_rng(7)
    parts: dict[str, list[np.ndarray]] = {
        name: [] for name in ("sample", "repetition", "point", "count")
    }
    for sample in range(outer + 1):
        share = np.full(size.n, 1 / size.n)
        drawn = rng.multinomial(size.n, share) if sample else np.ones(size.n, int)
        there = np.flatnonzero(drawn)
        counts = rng.multinomial(size.n, drawn[there] / size.n, inner)
        counts = np.vstack([drawn[there], counts])
        fit, at = (part.ravel() for part in np.indices(counts.shape))
        values = np.full(len(fit), sample), fit, there[at], counts.ravel()
        for name, value in zip(parts, values, strict=True):
            parts[name].append(value)
    losses = series({name: np.concatenate(values) for name, values in parts.items()})
    losses[losses.index.get_level_values("count") > 0] *= 0.8
    losses.attrs["no_information"] = [4.0] * (outer + 1)
    return losses


# --- formulas by hand: no checks, only the necessary levels, and the usual tools ------------------

Limits = tuple[float, float, float]
ALPHA = 0.05
Z = float(stats.norm.ppf(1 - ALPHA / 2))


def around(estimate: float, se: float, df: float | None = None) -> Limits:
    reach = se * (Z if df is None else stats.t.ppf(1 - ALPHA / 2, df))
    return estimate, estimate - reach, estimate + reach


def between(estimate: float, values: np.ndarray, shift: float = 0.0) -> Limits:
    low, high = np.quantile(values, [ALPHA / 2, 1 - ALPHA / 2]) + shift
    return estimate, low, high


def plain_holdout(losses: pd.Series) -> Limits:
    return around(losses.mean(), losses.sem())


def plain_wald(losses: pd.Series) -> Limits:
    parts = losses.groupby(level="repetition").agg(lambda part: part.var(ddof=0) / len(part))
    return around(losses.mean(), np.sqrt(parts.mean()))


def plain_cv_t(losses: pd.Series) -> Limits:
    means = losses.groupby(level=["repetition", "fold"]).mean()
    return around(means.mean(), means.sem(), len(means) - 1)


def plain_quadratic(losses: pd.Series) -> Limits:
    folds = losses.groupby(level="fold").agg(["size", "mean", "var"])
    k, m = len(folds), folds["size"].iloc[0]  # equal folds
    within, between_folds = folds["var"].mean(), folds["mean"].var()
    theta = (1 + 1 / k) * between_folds - within / m
    return around(losses.mean(), np.sqrt(theta if theta > 0 else within / (k * m)))


def plain_corrected_t(losses: pd.Series) -> Limits:
    means = losses.groupby(level="repetition").mean()
    ratio = len(losses) / len(means) / losses.attrs["train_size"]
    return around(means.mean(), np.sqrt((1 / len(means) + ratio) * means.var()), len(means) - 1)


def plain_refit_corrected(losses: pd.Series) -> Limits:
    n, r = losses.groupby(level="repetition").size().iloc[0], losses.index.unique("repetition").size
    residual = losses - losses.groupby(level="point").transform("mean")
    folds = residual.groupby(level=["repetition", "fold"])
    share = (folds.size() ** 2).groupby(level="repetition").sum().mean() / n**2
    refits = (residual**2).sum() / (r - 1) / n**2
    mutual = ((folds.sum() ** 2).sum() - (residual**2).sum()) * r / (r - 1) ** 2 / n**2
    added = np.clip(mutual + refits * np.sqrt(2 * share / r), 0, refits) / share
    parts = losses.groupby(level="repetition").agg(lambda part: part.var(ddof=0) / len(part))
    return around(losses.mean(), np.sqrt(parts.mean() + added))


def plain_conservative_z(losses: pd.Series) -> Limits:
    splits = losses.groupby(level=["sample", "repetition"]).mean()
    means = splits.groupby(level="sample").mean().sort_index()
    first, second = means.iloc[1::2].to_numpy(), means.iloc[2::2].to_numpy()
    return around(means.loc[0], np.sqrt(((first - second) ** 2).mean() / 2))


def plain_five_by_two(losses: pd.Series) -> Limits:
    means = losses.groupby(level=["repetition", "fold"]).mean().unstack("fold")
    spread = (means[0] - means[1]) ** 2 / 2
    return around(means.iloc[0, 0], np.sqrt(spread.mean()), 5)


def plain_nested_cv(losses: pd.Series) -> Limits:
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


def plain_replace_one(losses: pd.Series) -> Limits:
    means = losses.groupby(level="sample").mean().sort_index()
    apart = means.iloc[2:] - means.loc[1]
    return around(means.loc[0], 0.5 * np.sqrt((apart**2).sum()))


def plain_out_of_source(losses: pd.Series) -> Limits:
    means = losses.groupby(level="source").mean()
    return around(means.mean(), means.sem(), len(means) - 1)


def plain_clustered(losses: pd.Series) -> Limits:
    apart = losses - losses.mean()
    sums = apart.groupby(level="source").sum()
    g, n = len(sums), len(losses)
    se = np.sqrt((sums**2).sum() * g / (g - 1)) / n
    return around(losses.mean(), se, g - 1)


def plain_wild_cluster(losses: pd.Series) -> Limits:
    groups = losses.groupby(level="source")
    total, count = groups.sum().to_numpy(), groups.size().to_numpy()
    share, mean = count / count.sum(), losses.mean()
    signs = 1 - 2 * (np.arange(2 ** len(total))[:, None] >> np.arange(len(total)) & 1)

    def statistic(sums: np.ndarray) -> np.ndarray:
        whole = sums.sum(axis=-1)
        left = sums - share * whole[..., None]
        return np.abs(whole) / np.sqrt((left**2).sum(axis=-1))

    def excess(m: float) -> float:
        own = total - m * count
        reached = statistic(signs * own) >= statistic(own) * (1 - 1e-10)  # ties but for rounding
        return float(reached.mean()) - ALPHA

    far = 20 * np.sqrt(((total - mean * count) ** 2).sum()) / len(losses)
    low, high = (optimize.bisect(excess, mean, mean + side * far, xtol=1e-13) for side in (-1, 1))
    return mean, low, high


def plain_ordered(losses: pd.Series) -> Limits:
    n, values = len(losses), losses.sort_index().to_numpy()
    cosines = int(0.4 * n ** (2 / 3) + 1e-9)
    angle = np.pi / n * np.arange(1, cosines + 1)[:, None] * (np.arange(n) + 0.5)
    sums = np.sqrt(2 / n) * np.cos(angle) @ (values - values.mean())
    return around(values.mean(), np.sqrt((sums**2).mean() / n), cosines)


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


def plain_bootstrap_oob(losses: pd.Series) -> Limits:
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


def plain_bootstrap_632(losses: pd.Series) -> Limits:
    _, estimate, se = weighed(losses, *pivoted(losses))
    return around(estimate, se)


def plain_location_shifted(losses: pd.Series) -> Limits:
    counts, loss = pivoted(losses)
    apparent, estimate, _ = weighed(losses, counts, loss)
    own = (counts[1:] * loss[1:]).sum(axis=1) / counts[1:].sum(axis=1)
    return between(estimate, own, estimate - apparent)


def plain_case_bootstrap(losses: pd.Series) -> Limits:
    counts = losses.index.get_level_values("count").to_numpy()
    sums = pd.DataFrame({"loss": losses.to_numpy() * counts, "count": counts})
    sums = sums.groupby(losses.index.get_level_values("repetition").to_numpy()).sum()
    means = sums["loss"] / sums["count"]
    return between(means.mean(), means.to_numpy())


def plain_two_stage(losses: pd.Series) -> Limits:
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


METHODS: dict[str, tuple[Callable[[Size], pd.Series], Callable[[pd.Series], Limits]]] = {
    "holdout": (points, plain_holdout),
    "wald": (folds, plain_wald),
    "naive": (folds, plain_holdout),
    "cv_t": (folds, plain_cv_t),
    "quadratic": (partition, plain_quadratic),
    "corrected_t": (splits, plain_corrected_t),
    "conservative_z": (halves, plain_conservative_z),
    "five_by_two": (partial(folds, k=2, repetitions=5), plain_five_by_two),
    "nested_cv": (nested, plain_nested_cv),
    "refit_corrected": (partial(folds, repetitions=5), plain_refit_corrected),
    "replace_one": (replaced, plain_replace_one),
    "out_of_source": (sources, plain_out_of_source),
    "clustered": (sources, plain_clustered),
    "wild_cluster": (dozen, plain_wild_cluster),
    "ordered": (points, plain_ordered),
    "bootstrap_oob": (bootstrap, plain_bootstrap_oob),
    "bootstrap_632": (bootstrap, plain_bootstrap_632),
    "case_bootstrap": (cases, plain_case_bootstrap),
    "location_shifted": (bootstrap, plain_location_shifted),
    "two_stage": (two_stage, plain_two_stage),
}
"""The log and the plain formula of each method."""


def apply_method(losses: pd.Series, name: str, size: Size) -> Any:
    """Call a method with the options of its plain formula."""
    options: dict[str, Any] = {
        "corrected_t": {"train_size": size.n - size.n // 10}, "clustered": {"correction": "CR1"},
    }.get(name, {})  # fmt: skip
    return getattr(cvstats, name)(losses, **options)


def is_same(ours: Any, theirs: Limits) -> bool:
    """Whether both sides found the same interval; one model may be a row or a table of one."""
    found = [float(np.ravel(ours[name])[0]) for name in ("estimate", "lower", "upper")]
    return bool(np.allclose(found, theirs, rtol=1e-9))


def methods(size: Size, budget: float) -> Iterator[Row]:
    """Yield two rows for each method: with a new index, and with a checked one."""
    for name, (make, formula) in METHODS.items():
        losses, ours = make(size), partial(apply_method, name=name, size=size)
        theirs = partial(formula, losses)
        if not is_same(ours(losses), theirs()):
            raise SystemExit(f"{name}: cvstats and the plain formula differ")
        for call, prepare in (
            ("first call", partial(logs.unseen, losses)),
            ("checked", lambda losses=losses: losses),
        ):
            found = in_turns(theirs, ours, prepare=prepare, budget=budget)
            yield found.row(f"{name}, {call}", f"{len(losses):,} rows", "pandas, numpy")
