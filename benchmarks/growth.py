"""How time and memory grow with a log, measured and drawn.

There are four axes: rows of a Series, models of a DataFrame, folds up to leave-one-out, and cells
of a grid. Each size is measured in a new process: the memory of the first call beyond the log, and
the time of a first and of a checked call, alternating with a plain read of the losses (`np.sum`).

The exponent of a curve is the slope of log time over log size, by least squares. Only sizes at
which a call takes at least ten times as long as the shortest one are used, so that the fixed cost
is at most a tenth; with fewer than three such sizes there is no exponent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs
from benchmarks.contract import VARIANCES
from benchmarks.measure import amount, in_new_process, in_turns, memory_beyond

Point = dict[str, Any]
DOMINATES, FEWEST = 10.0, 3
READ = "np.sum"


@dataclass(frozen=True)
class Axis:
    """An axis: what grows, what is fixed, and the logs."""

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


def measure(name: str, size: int, budget: float) -> Point:
    """Measure one log, in this process."""
    axis = AXES[name]
    alone = size == POINTS and name == "folds"  # leave-one-out has no variance in a fold
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
    point: Point = {"size": size, **memory_beyond(losses, lambda: axis.anew(losses), needs_most)}
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


def measure_all(axes: Sequence[str], largest: float, budget: float) -> dict[str, list[Point]]:
    """Measure every size of some axes, each in a new process."""
    found: dict[str, list[Point]] = {}
    for name in axes:
        sizes = [size for size in AXES[name].sizes if size <= largest] or AXES[name].sizes[:1]
        calls = [f"measure({name!r}, {size}, {budget})" for size in sizes]
        found[name] = [in_new_process("growth", call) for call in calls]
    return found


# --- the table ------------------------------------------------------------------------------------


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[str, str]:
    """Fit the upper part of a curve: format slope, standard error, and the sizes used."""
    start = len(sizes)
    while start and seconds[start - 1] >= DOMINATES * min(seconds):
        start -= 1
    used = len(sizes) - start
    if used < FEWEST:
        return "–", "fixed cost dominates" if used else "less than tenfold in all"
    x, y = np.log(sizes[start:]), np.log(seconds[start:])
    x, y = x - x.mean(), y - y.mean()
    slope = x @ y / (x @ x)
    rest = y - slope * x
    error = np.sqrt(rest @ rest / (used - 2) / (x @ x))
    return f"{slope:.2f} ± {error:.2f}", f"{sizes[start]:,} ({used} sizes)"


def curve(points: Sequence[Point], name: str) -> tuple[list[int], list[float]]:
    """Take the sizes and seconds of one curve."""
    there = [point for point in points if name in point["seconds"]]
    return [point["size"] for point in there], [point["seconds"][name] for point in there]


def lines(growth: dict[str, list[Point]]) -> list[tuple[str, ...]]:
    """Describe each curve: where it starts and ends, and how it grows between."""
    found: list[tuple[str, ...]] = [
        ("what grows", "call", "from", "to", "time", "exponent", "fitted from", "memory beyond")
    ]
    for name, points in growth.items():
        curves = list(dict.fromkeys(key for point in points for key in point["seconds"]))
        most = max(points, key=lambda point: point["resident"] + point["traced"])
        memory = f"{most['resident']:.1f} MB resident, {most['traced']:.1f} MB traced"
        for key in curves:
            sizes, seconds = curve(points, key)
            span = f"{amount(seconds[0])} to {amount(seconds[-1])}"
            slope, fitted = exponent(sizes, seconds)
            call, used = (READ, "") if key == READ else (f"wald {key}", memory)
            ends = f"{sizes[0]:,}", f"{sizes[-1]:,}"
            found.append((AXES[name].label, call, *ends, span, slope, fitted, used))
    return found


# --- the figures ----------------------------------------------------------------------------------

BLUE, RED, GREY, GREEN = "#0072b2", "#d55e00", "#555555", "#009e73"  # safe for color-blind readers
CURVES: dict[str, dict[str, Any]] = {
    "all-pairs, first call": {"color": BLUE, "marker": "o", "markerfacecolor": "white"},
    "all-pairs, checked": {"color": BLUE, "marker": "o"},
    "within-fold, first call": {"color": RED, "marker": "s", "markerfacecolor": "white"},
    "within-fold, checked": {"color": RED, "marker": "s"},
    READ: {"color": GREY, "linestyle": "--"},
}
KINDS: dict[str, dict[str, Any]] = {
    "resident": {"color": BLUE, "marker": "o"},
    "traced": {"color": GREEN, "marker": "^"},
}
BOUND = 64.0
SMALLEST = 0.05
"""Minimum of the logarithmic memory axis, as some calls need no memory."""

STYLE = {"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "growth"}


def make_panels(title: str, growth: dict[str, list[Point]], unit: str) -> tuple[Any, list[Any]]:
    """Make a panel for each axis, two in a row."""
    from matplotlib.figure import Figure

    rows = -(-len(growth) // 2)
    figure = Figure(figsize=(8, 2.9 * rows), layout="constrained")
    grid = figure.subplots(rows, 2, sharey=True, squeeze=False)
    axes = list(grid.ravel())
    figure.suptitle(title, fontsize=11)
    for ax, name in zip(axes, growth, strict=False):
        ax.set(xscale="log", yscale="log", xlabel=f"{AXES[name].label} (number)")
        ax.set_title(AXES[name].held, fontsize=8, color=GREY, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        ax.minorticks_off()
        ax.grid(alpha=0.25, linewidth=0.5)
    for ax in axes[len(growth) :]:
        ax.set_axis_off()
    for row in grid:
        row[0].set_ylabel(unit)
    return figure, axes


def digest(growth: dict[str, list[Point]]) -> str:
    """Hash the numbers of a figure."""
    return sha256(json.dumps(growth, sort_keys=True).encode()).hexdigest()[:16]


def save_figure(figure: Any, ax: Any, path: Path, stamp: str) -> None:
    """Write a reproducible SVG, with one legend below."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Source": f"run {stamp}"})


def draw_time(growth: dict[str, list[Point]], path: Path) -> None:
    """Draw the seconds of a call against the size."""
    figure, axes = make_panels("Time of one call of wald", growth, "time (milliseconds)")
    for ax, points in zip(axes, growth.values(), strict=False):
        for name, style in CURVES.items():
            sizes, seconds = curve(points, name)
            milliseconds = [1e3 * value for value in seconds]
            label = "np.sum of the losses" if name == READ else f"wald {name}"
            ax.plot(sizes, milliseconds, label=label, linewidth=1.2, markersize=4, **style)
    save_figure(figure, axes[0], path, digest(growth))


def draw_memory(growth: dict[str, list[Point]], path: Path) -> None:
    """Draw the memory of the first call beyond the log against the size."""
    title = "Memory of the first call beyond the log"
    figure, axes = make_panels(title, growth, "memory (megabytes)")
    for ax, points in zip(axes, growth.values(), strict=False):
        sizes = [point["size"] for point in points]
        for kind, style in KINDS.items():
            megabytes = [max(point[kind], SMALLEST) for point in points]
            ax.plot(sizes, megabytes, label=kind, linewidth=1.2, markersize=4, **style)
        ax.axhline(BOUND, color=GREY, linestyle=":", linewidth=1, label=f"{BOUND:g} MB")
    save_figure(figure, axes[0], path, digest(growth))


def draw(growth: dict[str, list[Point]], folder: Path) -> None:
    """Draw both figures into a folder; needs matplotlib (extra ``bench``)."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        draw_time(growth, folder / "growth_time.svg")
        draw_memory(growth, folder / "growth_memory.svg")
