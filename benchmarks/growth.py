"""How time and memory grow with a log: ``python -m benchmarks.growth``.

Along four axes, everything else held: rows of a Series, models of a DataFrame, folds up to
leave-one-out, cells of a grid. Each size is measured in a process of its own: the memory of the
first call beyond the log, and the time of a first and of a checked call in turns with a plain
read of the losses (`np.sum`).

The exponent of a curve is the slope of log time over log size, by least squares. Only the upper
part counts, where a call takes at least ten times as long as the shortest on the curve, so that
what every call costs is no more than a tenth of it; below three such sizes there is no exponent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs, saved
from benchmarks.memory import beyond
from benchmarks.processes import printed
from benchmarks.table import amount
from benchmarks.timing import in_turns

Point = dict[str, Any]
DOMINATES, FEWEST = 10.0, 3
VARIANCES = ("all-pairs", "within-fold")
READ = "np.sum"


@dataclass(frozen=True)
class Axis:
    """What grows, what is held, and the logs."""

    label: str
    held: str
    make: Callable[[int], Any]
    warm: int
    sizes: tuple[int, ...]
    anew: Callable[[Any], Any] = logs.unseen


def halves(low: int, high: int) -> tuple[int, ...]:
    """List 1, 3, 10, … between two powers of ten."""
    return tuple(
        step * 10**power for power in range(low, high + 1) for step in (1, 3)
        if step == 1 or power < high
    )  # fmt: skip


def folded(points: int, folds: int) -> pd.Series:
    """One random partition of some points into any number of folds."""
    size = np.int8 if folds <= 127 else np.int16 if folds <= 32_767 else np.int32
    fold = (np.arange(points) % folds).astype(size)
    np.random.default_rng(1).shuffle(fold)
    index = pd.MultiIndex(
        levels=[range(folds), range(points)], codes=[fold, np.arange(points, dtype=np.int32)],
        names=["fold", "point"], verify_integrity=False,
    )  # fmt: skip
    return pd.Series(np.random.default_rng(2).standard_normal(points), index=index, name="model")


POINTS = 10**6
AXES = {
    "rows": Axis(
        "rows of a Series", "10 repetitions of 10 folds", logs.series, 400_000, halves(4, 8)
    ),
    "models": Axis(
        "models (columns of a DataFrame)", "100,000 points, 10 folds",
        lambda models: logs.frame(100_000, models, order="C"), 20,
        (*halves(0, 2), 200, 300, 500, 1_000),
    ),
    "folds": Axis(
        "folds", "a Series of 1,000,000 points", partial(folded, POINTS), 1_000,
        (2, *(10**power for power in range(1, 7))),
    ),
    "cells": Axis(
        "grid cells of a DataArray", "100 points, 10 folds, float64",
        lambda cells: logs.grid(100, cells, dtype="float64"), 1_000,
        (*halves(0, 5), 2 * 10**5, 5 * 10**5, 10**6), lambda log: log.copy(deep=False),
    ),
}  # fmt: skip


def measured(axis: Axis, size: int, budget: float) -> Point:
    """Measure one log, in this process."""
    alone = size == POINTS and axis is AXES["folds"]  # leave-one-out has no variance in a fold
    calls = {
        variance: partial(cvstats.wald, variance=variance)
        for variance in VARIANCES
        if not (alone and variance == "within-fold")
    }
    small = axis.make(min(size, axis.warm))
    for call in calls.values():
        call(small)
    losses = axis.make(size)
    values = losses.to_numpy()
    *_, needs_most = calls.values()
    point: Point = {"size": size, **beyond(losses, lambda: axis.anew(losses), needs_most)}
    point["seconds"] = seconds = {}
    reads: list[float] = []
    for variance, call in calls.items():
        for kind, prepare in (
            ("first call", lambda: axis.anew(losses)),
            ("checked", lambda: losses),
        ):
            pairs = in_turns(partial(np.sum, values), call, prepare=prepare, budget=budget)
            seconds[f"{variance}, {kind}"] = median(pairs.ours)
            reads += pairs.theirs
    seconds[READ] = median(reads)
    return point


@dataclass(frozen=True)
class Fit:
    """A slope in logarithms, its standard error, and the sizes it rests on."""

    exponent: float
    error: float
    start: int
    sizes: int


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> Fit | None:
    """Fit the upper part of a curve; None where what every call costs dominates."""
    start = len(sizes)
    while start and seconds[start - 1] >= DOMINATES * min(seconds):
        start -= 1
    used = len(sizes) - start
    if used < FEWEST:
        return None
    x, y = np.log(sizes[start:]), np.log(seconds[start:])
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    rest = y - slope * x
    error = float(np.sqrt(rest @ rest / (used - 2) / (x @ x)))
    return Fit(slope, error, sizes[start], used)


def curve(points: Sequence[Point], name: str) -> tuple[list[int], list[float]]:
    """Take the sizes and seconds of one curve."""
    there = [point for point in points if name in point["seconds"]]
    return [point["size"] for point in there], [point["seconds"][name] for point in there]


def words(fit: Fit | None, seconds: Sequence[float]) -> tuple[str, str]:
    """Tell an exponent and what it rests on, or why there is none."""
    if fit:
        return f"{fit.exponent:.2f} ± {fit.error:.2f}", f"{fit.start:,} ({fit.sizes} sizes)"
    grows = max(seconds) >= DOMINATES * min(seconds)
    return "–", "fixed cost dominates" if grows else "less than tenfold in all"


def lines(growth: dict[str, list[Point]]) -> list[tuple[str, ...]]:
    """Tell of each curve where it starts and ends, and how it grows between."""
    found: list[tuple[str, ...]] = [
        ("what grows", "call", "from", "to", "time", "exponent", "fitted from", "memory beyond")
    ]
    for name, points in growth.items():
        curves = list(dict.fromkeys(key for point in points for key in point["seconds"]))
        most = max(points, key=lambda point: point["resident"] + point["traced"])
        memory = f"{most['resident']:.1f} MB resident, {most['traced']:.1f} MB traced"
        for key in curves:
            sizes, seconds = curve(points, key)
            span = f"{amount(seconds[0], 's')} to {amount(seconds[-1], 's')}"
            slope, fitted = words(exponent(sizes, seconds), seconds)
            call, beyond_it = (READ, "") if key == READ else (f"wald {key}", memory)
            ends = f"{sizes[0]:,}", f"{sizes[-1]:,}"
            found.append((AXES[name].label, call, *ends, span, slope, fitted, beyond_it))
    return found


def text(rows: Sequence[tuple[str, ...]]) -> str:
    """Lay a table out in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(rows: Sequence[tuple[str, ...]]) -> str:
    """Lay a table out for a page of the documentation."""
    rule = ("---", "---", *("---:" for _ in rows[0][2:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def run(axes: Sequence[str], largest: float, budget: float) -> dict[str, list[Point]]:
    """Measure every size of some axes, each in a new process."""
    found: dict[str, list[Point]] = {}
    for name in axes:
        sizes = [size for size in AXES[name].sizes if size <= largest]
        found[name] = []
        for size in sizes or AXES[name].sizes[:1]:
            if sys.stderr.isatty():
                print(f"\r{name}: {size:<12,}", end="", file=sys.stderr, flush=True)
            one = printed("-m", "benchmarks.growth", "--one", name, str(size), str(budget))
            found[name].append(json.loads(one))
    return found


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--axis", choices=AXES, action="append", help="may be repeated")
    parser.add_argument("--largest", type=float, default=1e8, help="no size beyond this")
    parser.add_argument("--budget", type=float, default=0.4, help="seconds for each point and call")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        name, size, budget = chosen.one
        print(json.dumps(measured(AXES[name], int(size), float(budget))))
        return
    found = run(chosen.axis or list(AXES), chosen.largest, chosen.budget)
    if chosen.json:
        saved.save({"heading": saved.heading(), "growth": found}, chosen.json)
    print((markdown if chosen.markdown else text)(lines(found)))


if __name__ == "__main__":
    main()
