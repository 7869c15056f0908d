"""How often intervals cover the difference of two models, where both approach one limit.

    python tools/unstable_differences.py            run it all, write docs/theory/differences.json
    python tools/unstable_differences.py --runs 100 the same with fewer runs, printed only

docs/theory/differences.md shows the numbers as `format_table` prints them.

Two linear predictors are cross-validated on the same simulated data sets. Either both approach
one limit (nothing but noise separates them), or they do not. The targets are exact: the
features have a known second moment, so the risk of every fitted model is a quadratic form.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import cvstats

TARGET = Path(__file__).parents[1] / "docs" / "theory" / "differences.json"
SEED = 2508
RUNS = 2_000
NESTED_RUNS = 500
FOLDS = 10
REPETITIONS = 5
NESTED = 5, 25  # folds and repetitions
BATCH = 2_000_000  # losses of one model at once, about

Array = np.ndarray[Any, np.dtype[Any]]
Learner = Callable[[Array, Array, int], Array]
Draw = Callable[[np.random.Generator, tuple[int, int]], tuple[Array, Array]]


# --- learners: coefficients from sums of products ---------------------------------------------


def least_squares(*features: int) -> Learner:
    """Ordinary least squares on some of the features; none of them predicts zero."""

    def fit(gram: Array, cross: Array, n: int) -> Array:
        beta = np.zeros_like(cross)
        if features:
            use = list(features)
            found = np.linalg.solve(gram[..., use, :][..., use], cross[..., use, None])
            beta[..., use] = found[..., 0]
        return beta

    return fit


def ridge(penalty: float) -> Learner:
    """Ridge regression on all features."""

    def fit(gram: Array, cross: Array, n: int) -> Array:
        found: Array = np.linalg.solve(gram + penalty * np.eye(gram.shape[-1]), cross[..., None])
        return found[..., 0]

    return fit


def soft_threshold(threshold: float) -> Learner:
    """Marginal coefficients, moved towards zero by ``threshold / sqrt(n)``."""

    def fit(gram: Array, cross: Array, n: int) -> Array:
        marginal = cross / n
        return np.sign(marginal) * np.maximum(np.abs(marginal) - threshold / np.sqrt(n), 0)

    return fit


# --- populations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Two learners and a population: ``y = x' beta + noise``.

    Parameters
    ----------
    name : str
        What is compared.
    differ : bool
        Whether the two approach different limits.
    beta : tuple of float
        The true coefficients.
    learners : tuple
        The two learners.
    draw : callable
        Draws features, shape (runs, n, features), and noise, shape (runs, n).
    moment : array, optional
        Second moment of the features; the identity by default.
    """

    name: str
    differ: bool
    beta: tuple[float, ...]
    learners: tuple[Learner, Learner]
    draw: Draw
    moment: Array | None = None

    def risks(self, coefficients: Array) -> Array:
        """Risk of fitted coefficients, less that of the true ones."""
        away = coefficients - np.array(self.beta)
        moment = np.eye(len(self.beta)) if self.moment is None else self.moment
        found: Array = np.einsum("...i,ij,...j->...", away, moment, away)
        return found


def gaussian(features: int) -> Draw:
    """Independent standard normal features and noise."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        return rng.normal(size=(*shape, features)), rng.normal(size=shape)

    return draw


def constant(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
    """No feature but the constant, and standard normal noise."""
    return np.ones((*shape, 1)), rng.normal(size=shape)


FIVE, SIX = least_squares(*range(5)), least_squares(*range(6))
COMPARISONS = (
    Comparison("zero, mean; true mean 0", False, (0.0,), (least_squares(), least_squares(0)),
               constant),
    Comparison("least squares on 5 features, on 6; the sixth is noise", False,
               (1.0, 1.0, 1.0, 1.0, 1.0, 0.0), (FIVE, SIX), gaussian(6)),
    Comparison("soft thresholds 1/√n, 2/√n; all 10 coefficients 0", False, (0.0,) * 10,
               (soft_threshold(1), soft_threshold(2)), gaussian(10)),
    Comparison("ridge 1, ridge 10; all 5 coefficients 0", False, (0.0,) * 5,
               (ridge(1), ridge(10)), gaussian(5)),
    Comparison("zero, mean; true mean 0.5", True, (0.5,), (least_squares(), least_squares(0)),
               constant),
    Comparison("least squares on 5 features, on 6; the sixth has coefficient 0.5", True,
               (1.0, 1.0, 1.0, 1.0, 1.0, 0.5), (FIVE, SIX), gaussian(6)),
    Comparison("ridge 1, ridge 10; one coefficient is 1", True, (1.0, 0.0, 0.0, 0.0, 0.0),
               (ridge(1), ridge(10)), gaussian(5)),
)  # fmt: skip


# --- cross-validation of many data sets at once -----------------------------------------------


@dataclass(frozen=True)
class DataSets:
    """Data sets of one size, and the fits of a comparison to their folds."""

    comparison: Comparison
    x: Array
    y: Array
    folds: Array  # of each point, a row for each repetition

    @classmethod
    def of(
        cls, comparison: Comparison, rng: np.random.Generator, shape: tuple[int, int], *,
        folds: int, repetitions: int,
    ) -> DataSets:  # fmt: skip
        """Draw ``shape[0]`` data sets of ``shape[1]`` points, and their partitions."""
        x, noise = comparison.draw(rng, shape)
        parts = [rng.permutation(np.arange(shape[1]) % folds) for _ in range(repetitions)]
        return cls(comparison, x, x @ np.array(comparison.beta) + noise, np.stack(parts))

    def sums(self, points: Array) -> tuple[Array, Array]:
        """Sum the products of features with each other, and with y, over some points."""
        x = self.x[:, points]
        turned = np.swapaxes(x, 1, 2)
        return turned @ x, (turned @ self.y[:, points, None])[..., 0]

    def fit(self, left_out: Array) -> tuple[Array, Array]:
        """Fit both learners to all other points: coefficients, and risks, (runs, 2) first."""
        whole, part = self.sums(np.arange(self.x.shape[1])), self.sums(left_out)
        n = self.x.shape[1] - len(left_out)
        gram, cross = (all_points - few for all_points, few in zip(whole, part, strict=True))
        both = [learn(gram, cross, n) for learn in self.comparison.learners]
        coefficients = np.stack(both, axis=1)
        return coefficients, self.comparison.risks(coefficients)

    def losses(self, coefficients: Array, points: Array) -> Array:
        """Squared errors of both models on some points, shape (runs, 2, points)."""
        predictions = np.einsum("rni,rmi->rmn", self.x[:, points], coefficients)
        squared: Array = (self.y[:, None, points] - predictions) ** 2
        return squared

    def cross_validate(self) -> tuple[xr.DataArray, Array]:
        """Make the log of repeated cross-validation, and ``R_n`` of each repetition."""
        runs, n = self.y.shape
        log = np.empty((runs, 2, len(self.folds), n))
        risks = np.zeros((runs, 2, len(self.folds)))
        for r, folds in enumerate(self.folds):
            for fold in range(folds.max() + 1):
                points = np.flatnonzero(folds == fold)
                coefficients, risk = self.fit(points)
                log[:, :, r, points] = self.losses(coefficients, points)
                risks[:, :, r] += risk * len(points) / n
        return self.label(log, ()), risks

    def nest(self) -> tuple[xr.DataArray, Array]:
        """Make the log of nested cross-validation, and the risks of the fits to all points."""
        runs, n = self.y.shape
        k = int(self.folds.max()) + 1
        log = np.empty((runs, 2, len(self.folds), k, n))
        for r, folds in enumerate(self.folds):
            for one in range(k):
                for two in range(one, k):
                    coefficients, _ = self.fit(np.flatnonzero((folds == one) | (folds == two)))
                    for fold, outer in {(one, two), (two, one)}:
                        points = np.flatnonzero(folds == fold)
                        log[:, :, r, outer, points] = self.losses(coefficients, points)
        return self.label(log, ("outer",)), self.fit(np.array([], dtype=int))[1]

    def label(self, log: Array, levels: tuple[str, ...]) -> xr.DataArray:
        """Name the dimensions of a log: data sets are cells that are carried along."""
        return xr.DataArray(
            log,
            dims=("run", "model", "repetition", *levels, "point"),
            coords={"model": ["first", "second"], "fold": (("repetition", "point"), self.folds)},
        )


def batches(
    comparison: Comparison, n: int, *, runs: int, folds: int, repetitions: int, rows: int, seed: int
) -> Iterator[DataSets]:
    """Draw all data sets, as many at a time as memory allows; ``rows`` of a log for each."""
    rng = np.random.default_rng([seed, n, folds])
    most = max(1, BATCH // rows)
    for start in range(0, runs, most):
        shape = min(most, runs - start), n
        yield DataSets.of(comparison, rng, shape, folds=folds, repetitions=repetitions)


# --- what is measured -------------------------------------------------------------------------


def compare(log: xr.DataArray, **options: Any) -> xr.Dataset:
    """Compare the two models of each data set."""
    table: xr.Dataset = cvstats.compare(log, adjust=None, **options).isel(pair=0)
    return table


def covered(table: xr.Dataset, truth: Array) -> Array:
    """Whether each interval contains the true difference."""
    within: Array = ((table["lower"] <= truth) & (truth <= table["upper"])).values
    return within


def measure_repeated(
    comparison: Comparison, n: int, *, runs: int, seed: int, repetitions: int = REPETITIONS,
    folds: int = FOLDS,
) -> dict[str, float]:  # fmt: skip
    """Coverage on one partition and on several, and how many differences are labelled."""
    found: dict[str, list[Array]] = {}
    for data in batches(
        comparison, n, runs=runs, folds=folds, repetitions=repetitions, rows=n * repetitions,
        seed=seed,
    ):  # fmt: skip
        log, risks = data.cross_validate()
        gaps = risks[:, 0] - risks[:, 1]
        once = log.isel(repetition=[0])
        one, union = (compare(once, method=name) for name in ("wald", "union"))
        repeated = compare(log, method="wald")
        silent = cvstats.cautions(repeated).str.contains("unstable difference").values == 0
        corrected = compare(once, method="corrected_t")
        for name, values in {
            "one_partition": covered(one, gaps[:, 0]),
            "default": covered(compare(once), gaps[:, 0]),
            "repeated": covered(repeated, gaps.mean(axis=1)),
            "repeated_default": covered(compare(log), gaps.mean(axis=1)),
            "silent": silent,
            "union": covered(union, gaps[:, 0]),
            "union_width": (union["upper"] - union["lower"]).values,
            "width": (one["upper"] - one["lower"]).values,
            "corrected_lower": corrected["lower"].values,
            "corrected_upper": corrected["upper"].values,
            "gap": gaps[:, 0],
        }.items():
            found.setdefault(name, []).append(values)
    all_runs = {name: np.concatenate(parts) for name, parts in found.items()}
    expected = all_runs["gap"].mean()
    low, high = all_runs["corrected_lower"], all_runs["corrected_upper"]
    row = {
        "one_partition": all_runs["one_partition"].mean(),
        "default": all_runs["default"].mean(),
        "corrected_t": ((low <= expected) & (expected <= high)).mean(),
        "union": all_runs["union"].mean(),
        "union_width": np.median(all_runs["union_width"]) / np.median(all_runs["width"]),
    }
    if repetitions > 1:
        silent = all_runs["silent"]
        row |= {
            "repeated": all_runs["repeated"].mean(),
            "repeated_default": all_runs["repeated_default"].mean(),
            "labelled": 1 - silent.mean(),
            "silent": all_runs["repeated"][silent].mean() if silent.any() else np.nan,
        }
    return {name: round(float(value), 4) for name, value in row.items()}


def measure_nested(comparison: Comparison, n: int, *, runs: int, seed: int) -> dict[str, float]:
    """Coverage of nested cross-validation, for the fits to all points."""
    folds, repetitions = NESTED
    found = []
    for data in batches(
        comparison, n, runs=runs, folds=folds, repetitions=repetitions,
        rows=n * folds * repetitions, seed=seed,
    ):  # fmt: skip
        log, risks = data.nest()
        found.append(covered(compare(log, method="nested_cv"), risks[:, 0] - risks[:, 1]))
    return {"nested_cv": round(float(np.concatenate(found).mean()), 4)}


def study(runs: int, nested_runs: int) -> list[dict[str, Any]]:
    """Measure every comparison at every size."""
    rows = []
    for comparison in COMPARISONS:
        for n in (100, 1_000, 10_000):
            if n == 10_000 and len(comparison.beta) > 1:
                continue
            repetitions = 1 if n == 10_000 else REPETITIONS
            row = {"comparison": comparison.name, "differ": comparison.differ, "n": n}
            row |= measure_repeated(comparison, n, runs=runs, seed=SEED, repetitions=repetitions)
            if n == 100:
                row |= measure_nested(comparison, n, runs=nested_runs, seed=SEED)
            rows.append(row)
            print(row, flush=True)
    return rows


COLUMNS = {
    "one_partition": "`wald`",
    "default": "`compare()`",
    "repeated": "`wald`, 5 × 10",
    "labelled": "labeled",
    "silent": "silent",
    "repeated_default": "`compare()`, 5 × 10",
    "corrected_t": "`corrected_t`",
    "nested_cv": "`nested_cv`",
    "union": "`union`",
}
"""What the table of the page shows, in its order."""


def format_table(rows: list[dict[str, Any]]) -> str:
    """Format the numbers as a table in Markdown."""
    lines = [
        " | ".join(["| comparison", "n", *COLUMNS.values()]) + " |",
        "|---|" + "---:|" * (len(COLUMNS) + 1),
    ]
    for row in rows:
        numbers = [f"{row[name]:.3f}" if name in row else "" for name in COLUMNS]
        lines.append(" | ".join([f"| {row['comparison']}", f"{row['n']:,}", *numbers]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the study, and write its numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help=f"{RUNS} where they are written")
    given = parser.parse_args().runs
    start = time.perf_counter()
    rows = study(given or RUNS, min(given or NESTED_RUNS, NESTED_RUNS))
    print(f"{format_table(rows)}\n{time.perf_counter() - start:.0f} s")
    if given is None:
        how = {
            "seed": SEED, "runs": RUNS, "nested_runs": NESTED_RUNS, "folds": FOLDS,
            "repetitions": REPETITIONS, "nested": list(NESTED), "alpha": 0.05,
        }  # fmt: skip
        text = json.dumps({"how": how, "rows": rows}, indent=1, ensure_ascii=False)
        TARGET.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
