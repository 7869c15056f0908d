"""How the time of every public function grows: ``python -m benchmarks.scaling``.

One thing grows (points, samples, models, folds, sources, groups, cells, batches or files) and the
rest stays the same. The exponent is the slope of log time over log size, by least squares, from
the first size on that takes four times as long as the smallest one: 1 is linear. Times are
processor times, the best of three, and no size takes longer than a few seconds. Memory is the peak
allocated by Python and numpy in one more call at the largest size.

``--write`` saves the lines, and ``python -m benchmarks.page --redraw`` puts them into the page.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs, methods
from benchmarks.growth import folded
from benchmarks.measure import ROOT, amount, load, save

LINEAR = 1.1
"""A larger exponent is marked."""

LONGEST = 3.0
"""Maximum seconds: after a longer call, no larger size is measured."""

FROM = 4.0
"""Sizes that take this many times as long as the smallest are used for the exponent."""

REASONS = {
    "best_set": "all pairs of models: with m models, m² tests",
    "compare": "all pairs of models: with m models, m² rows",
    "compare, max-t": "simultaneous draws for all pairs: with m models, m² rows",
    "winner": "all pairs of models",
    "conservative_z": "its pairs of half samples no longer fit the processor's cache",
    "losses, kendall": "sorts the points: n log n",
    "losses, concordance": "sorts the points: n log n",
    "losses, uno": "sorts the points: n log n",
    "losses, auc_at": "sorts the points: n log n",
    "losses, calibration_slope": "its columns no longer fit the processor's cache",
}
"""Why some functions may grow faster than linearly; others may not."""

Call = Callable[[], Any]
FULL = methods.SIZES["full"]


@dataclass(frozen=True)
class Curve:
    """A function, what grows, the sizes, and a call for each size."""

    function: str
    axis: str
    sizes: tuple[int, ...]
    make: Callable[[int], Call]


# --- what is measured -----------------------------------------------------------------------------

POINTS = (1_000, 10_000, 100_000, 1_000_000)
BOOTSTRAPS = ("bootstrap_oob", "bootstrap_632", "case_bootstrap", "location_shifted")


def call_of_method(name: str, n: int) -> Call:
    """A method on its log of n points (replace_one: points that are replaced)."""
    size = replace(FULL, n=n, replaced=n, samples=200, outer=(20, 10), nested=(5, 5))
    log = methods.METHODS[name][0](size)
    return lambda: methods.apply_method(logs.unseen(log), name, size)


def models(n: int) -> pd.DataFrame:
    """500 points in ten folds, by n models."""
    return logs.frame(500, n, order="C")


def in_ten_folds(n: int) -> pd.Series:
    """One partition of n points."""
    return methods.partition(replace(FULL, n=n))


def in_groups(n: int, groups: int) -> pd.Series:
    """Points of many groups, in folds."""
    codes = {"fold": np.arange(n) // groups % 5, "source": np.arange(n) % groups,
             "point": np.arange(n)}  # fmt: skip
    return methods.series(codes)


def add_batches(count: int) -> Call:
    """Sum the moments of batches, each with a new fold."""
    log = in_groups(100 * count, 1)
    parts = []
    for number in range(count):
        part = log.iloc[100 * number : 100 * (number + 1)].reset_index(drop=True)
        index = pd.MultiIndex.from_arrays(
            [np.full(100, number), np.arange(100) + 100 * number], names=["fold", "point"]
        )
        parts.append(cvstats.Moments.of_log(part.set_axis(index)))
    return lambda: cvstats.wald(sum(parts[1:], parts[0]))


def scan_files(folder: Path, count: int) -> Call:
    """Read a folder of many Parquet files."""
    place = folder / str(count)
    place.mkdir(exist_ok=True)
    for number in range(count):
        table = in_groups(1_000, 10).rename("loss").reset_index()
        table["point"] += 1_000 * number
        table.to_parquet(place / f"{number:04d}.parquet")
    return lambda: cvstats.wald(cvstats.scan_parquet(place))


def list_curves(folder: Path) -> Iterator[Curve]:
    """List every function with the axis along which it grows."""
    for name in methods.METHODS:
        if name == "replace_one":
            yield Curve(name, "points replaced", (50, 100, 200, 400), partial(call_of_method, name))
        elif name in BOOTSTRAPS or name == "two_stage":
            sizes = (100, 300, 1_000, 3_000)
            yield Curve(name, "points, 200 samples", sizes, partial(call_of_method, name))
        else:
            yield Curve(name, "points", POINTS, partial(call_of_method, name))

    def of(function: str, make: Callable[[int], Any], **options: Any) -> Callable[[int], Call]:
        def at(size: int) -> Call:
            log = make(size)
            return lambda: getattr(cvstats, function)(log, **options)

        return at

    views = ("decompose", "moments", "interval", "summary", "diagnose", "methods")
    for name in views:
        yield Curve(name, "points", POINTS, of(name, in_ten_folds))
    pairs: dict[str, dict[str, Any]] = {
        "compare": {}, "best_set": {"n_draws": 999, "rng": 0}, "winner": {"rng": 0},
        "equivalence": {"margin": 0.1}, "power": {"effect": 0.1}, "difference": {},
    }  # fmt: skip
    for name, options in pairs.items():
        two = {"reference": "model 0"} if name in ("equivalence", "power", "difference") else {}
        yield Curve(name, "models", (4, 16, 64, 256), of(name, models, **options, **two))
    yield Curve("compare, max-t", "models", (4, 16, 64, 256),
                of("compare", models, adjust="max-t", rng=0))  # fmt: skip
    yield Curve("wald", "models", (4, 32, 256, 2_048), of("wald", models))
    yield Curve("summary", "models", (4, 16, 64, 256), of("summary", models))
    yield Curve("friedman", "models", (4, 16, 64, 256), of("friedman", models_by_source))
    folds = (10, 100, 1_000, 10_000, 100_000)
    for name in ("wald", "corrected_t", "quadratic", "cv_t", "decompose"):
        yield Curve(name, "folds", folds[:-1] if name == "quadratic" else folds,
                    of(name, partial(folded, 200_000)))  # fmt: skip
    sources = (10, 100, 1_000, 10_000, 50_000)
    grouped = partial(in_groups, 200_000)
    for name in ("clustered", "out_of_source", "heterogeneity", "wild_cluster", "interval"):
        made = grouped if name != "out_of_source" else (lambda g: grouped(g).droplevel("fold"))
        yield Curve(name, "sources", sources, of(name, made))
    for name in ("wald", "corrected_t", "clustered"):
        by = "fold" if name == "clustered" else "source"
        yield Curve(f"{name}(by=)", "groups", sources[:-1], of(name, grouped, by=by))
    cells = partial(logs.grid, 200, dtype="float64")
    for name in ("wald", "corrected_t", "interval"):
        yield Curve(name, "cells", (10, 100, 1_000, 10_000, 100_000), of(name, cells))
    yield Curve("Moments +", "batches", (4, 16, 64, 256), add_batches)
    yield Curve("scan_parquet", "files", (2, 8, 32, 128), partial(scan_files, folder))
    for name in ("auc", "average_precision", "f1", "rmse", "kendall", "concordance"):
        yield Curve(f"losses, {name}", "points", POINTS, partial(metric_of, name))
    for name in ("calibration_slope", "crps", "brier_at", "auc_at", "uno"):
        yield Curve(f"losses, {name}", "points", POINTS, partial(forecast_of, name))
    groups = partial(in_groups, groups=2)
    yield Curve("contrast", "points", POINTS, of("contrast", groups, by="source"))
    yield Curve("largest_differences", "points", POINTS, of("largest_differences", two_models))
    yield Curve("passes", "problems", POINTS[:-1], of("passes", attempts, k=3))
    yield Curve("strengths", "battles", POINTS, call_of_battles)


def models_by_source(n: int) -> pd.DataFrame:
    """Twenty data sets, by n models."""
    return logs.frame(500, n, order="C").rename_axis(index={"fold": "source"})


def metric_of(name: str, n: int) -> Call:
    """Pseudo-losses of two models."""
    table = logs.predictions(n)
    kind = "label" if name == "f1" else "score"
    options: dict[str, Any] = {"positive": 1} if name in ("auc", "average_precision", "f1") else {}
    return lambda: cvstats.losses(
        table, truth="y_true", prediction=[f"{kind}_a", f"{kind}_b"], loss=name, **options
    )


def two_models(n: int) -> pd.DataFrame:
    """Two models on n points."""
    return logs.frame(n, 2, order="C")


def attempts(n: int) -> pd.Series:
    """Five attempts at each of n problems."""
    codes = {"repetition": np.arange(5 * n) % 5, "point": np.arange(5 * n) // 5}
    index = pd.MultiIndex.from_arrays(list(codes.values()), names=list(codes))
    return pd.Series(np.random.default_rng(6).integers(0, 2, 5 * n).astype(float), index)


def call_of_battles(n: int) -> Call:
    """n results between ten models."""
    rng = np.random.default_rng(7)
    names = np.array([f"model {j}" for j in range(10)])
    first = rng.integers(0, 10, n)
    second = (first + rng.integers(1, 10, n)) % 10
    table = pd.DataFrame(
        {"prompt": np.arange(n) // 4, "a": names[first], "b": names[second],
         "won": rng.integers(0, 2, n).astype(float)}
    )  # fmt: skip
    return lambda: cvstats.strengths(table, prompt="prompt", models=["a", "b"], score="won")


def forecast_of(name: str, n: int) -> Call:
    """Losses of risks, of an ensemble of ten, or of censored times."""
    rng = np.random.default_rng(8)
    index = pd.MultiIndex.from_arrays([np.arange(n) % 10, np.arange(n)], names=["fold", "point"])
    risk = rng.uniform(0.05, 0.95, n)
    table = pd.DataFrame({"risk": risk, "time": rng.exponential(1, n)}, index)
    table["event"] = (rng.uniform(size=n) < 0.7).astype(float)
    options: dict[str, Any] = {"truth": "time", "prediction": "risk", "loss": name}
    if name == "calibration_slope":
        table["truth"] = (rng.uniform(size=n) < risk).astype(float)
        options |= {"truth": "truth", "positive": 1}
    elif name == "crps":
        members = [f"member {j}" for j in range(10)]
        table[members] = rng.standard_normal((n, 10))
        options["prediction"] = {"ensemble": members}
    else:
        options |= {"event": "event", "at": 1.0}
    return lambda: cvstats.losses(table, **options)


# --- measuring ------------------------------------------------------------------------------------


def measure(curve: Curve) -> list[tuple[int, float]]:
    """The best of three times of each size."""
    found: list[tuple[int, float]] = []
    curve.make(curve.sizes[0])()  # loads compiled loops
    for size in curve.sizes:
        call = curve.make(size)
        seconds = []
        for _ in range(3):
            start = time.process_time()
            call()
            seconds.append(time.process_time() - start)
            if sum(seconds) > LONGEST:
                break
        found.append((size, min(seconds)))
        if min(seconds) > LONGEST:
            break
    return found


def traced(call: Call) -> float:
    """The peak of one call in megabytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log time over log size, where the time grows; NaN if it does not."""
    sizes, seconds = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    grown = np.flatnonzero(seconds >= FROM * seconds.min())
    grown = grown[grown > seconds.argmin()]
    if not len(grown):
        return float("nan")
    start = max(int(grown[0]) - 1, 0)
    x, y = np.log(sizes[start:]), np.log(seconds[start:])
    return float(np.polyfit(x, y, 1)[0])


HEAD = ("function", "what grows", "from", "to", "time", "exponent", "memory", "reason")


def write_line(curve: Curve) -> tuple[str, ...]:
    """Measure a curve, and write its line."""
    points = measure(curve)
    (low, fast), (high, slow) = points[0], points[-1]
    slope = exponent(points)
    reason = "" if np.isnan(slope) or slope <= LINEAR else REASONS.get(curve.function, "**none**")
    return (
        curve.function, curve.axis, f"{low:,}", f"{high:,}", f"{amount(fast)} to {amount(slow)}",
        "constant" if np.isnan(slope) else f"{slope:.2f}",
        amount(traced(curve.make(high)), "MB"), reason,
    )  # fmt: skip


def main() -> None:
    """Measure every curve, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--only", nargs="+", help="names of functions")
    parser.add_argument("--write", action="store_true", help="save the lines of the documentation")
    chosen = parser.parse_args()
    lines = []
    with TemporaryDirectory() as folder:
        for curve in list_curves(Path(folder)):
            if chosen.only and curve.function not in chosen.only:
                continue
            lines.append(write_line(curve))
            print(" | ".join(lines[-1]), flush=True)
    if chosen.write:
        path = ROOT / "docs" / "benchmarks" / "run.json"
        run = load(path)
        fresh = {line[:2] for line in lines}
        kept = [line for line in run.get("scaling", []) if tuple(line[:2]) not in fresh]
        save({**run, "scaling": [*kept, *lines]}, path)


if __name__ == "__main__":
    main()
