"""Draw how time and memory grow from a saved run; needs matplotlib (extra ``bench``)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.growth import AXES, READ, Point, curve

BLUE, RED, GREY, GREEN = "#0072b2", "#d55e00", "#555555", "#009e73"  # told apart by any eye
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
LEAST = 0.05
"""Megabytes that are drawn at the least: the scale is logarithmic, and some calls take none."""

STYLE = {"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "growth"}


def panels(title: str, growth: dict[str, list[Point]], unit: str) -> tuple[Any, list[Any]]:
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
    """Stamp the numbers that a figure shows."""
    return sha256(json.dumps(growth, sort_keys=True).encode()).hexdigest()[:16]


def finished(figure: Any, ax: Any, path: Path, stamp: str) -> None:
    """Write an SVG that is the same each time, with one legend below."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Source": f"run {stamp}"})


def time(growth: dict[str, list[Point]], path: Path) -> None:
    """Draw the seconds of a call against the size."""
    figure, axes = panels("Time of one call of wald", growth, "time (milliseconds)")
    for ax, points in zip(axes, growth.values(), strict=False):
        for name, style in CURVES.items():
            sizes, seconds = curve(points, name)
            milliseconds = [1e3 * value for value in seconds]
            label = "np.sum of the losses" if name == READ else f"wald {name}"
            ax.plot(sizes, milliseconds, label=label, linewidth=1.2, markersize=4, **style)
    finished(figure, axes[0], path, digest(growth))


def memory(growth: dict[str, list[Point]], path: Path) -> None:
    """Draw the memory of the first call beyond the log against the size."""
    title = "Memory of the first call beyond the log"
    figure, axes = panels(title, growth, "memory (megabytes)")
    for ax, points in zip(axes, growth.values(), strict=False):
        sizes = [point["size"] for point in points]
        for kind, style in KINDS.items():
            megabytes = [max(point[kind], LEAST) for point in points]
            ax.plot(sizes, megabytes, label=kind, linewidth=1.2, markersize=4, **style)
        ax.axhline(BOUND, color=GREY, linestyle=":", linewidth=1, label=f"{BOUND:g} MB")
    finished(figure, axes[0], path, digest(growth))


def draw(growth: dict[str, list[Point]], folder: Path) -> None:
    """Draw both figures into a folder."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        time(growth, folder / "growth_time.svg")
        memory(growth, folder / "growth_memory.svg")
