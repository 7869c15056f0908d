"""Draw docs/gallery/multiple_source_*.svg from the stored results of tools/multiple_source.py.

    python tools/multiple_source_figures.py

Needs matplotlib (extra ``plot``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
BLUE, RED, GREY, GREEN = "#0072b2", "#d55e00", "#555555", "#009e73"  # safe for color-blind readers
BY_SOURCE = {"color": BLUE, "marker": "o", "label": "by source (CVS)"}
RANDOM = {"color": RED, "marker": "s", "label": "at random (CVR)"}
Rows = list[dict[str, Any]]


def column(rows: Rows, key: str) -> np.ndarray:
    """One number of every row."""
    return np.array([row[key] for row in rows])


def panels(title: str, xlabels: tuple[str, str]) -> tuple[Any, list[Any]]:
    """Two plots side by side, as wide as a column of text."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.1), layout="constrained")
    figure.suptitle(title, fontsize=11)
    for ax, label in zip(axes, xlabels, strict=True):
        ax.set_xlabel(label)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def save(figure: Any, name: str) -> None:
    """Write a reproducible SVG."""
    plt.rcParams["svg.hashsalt"] = name
    figure.savefig(FOLDER / f"multiple_source_{name}.svg", metadata={"Date": None})
    plt.close(figure)


def means(found: dict[str, Rows]) -> None:
    """Estimates against the truth (their Figure 2)."""
    figure, axes = panels("Estimated and true error", ("sources", "points in each source"))
    for ax, key, x in zip(
        axes, ("growing_sources", "growing_points"), ("sources", "points"), strict=True
    ):
        rows = found[key]
        truth = {"color": GREY, "marker": "^", "label": "true error on new sources"}
        for name, style in (("by_source", BY_SOURCE), ("random", RANDOM), ("truth", truth)):
            error = 2 * column(rows, f"{name}_error")
            ax.errorbar(column(rows, x), column(rows, name), error, capsize=2, **style)
        if x == "points":
            ax.set_xscale("log")
    axes[0].set_ylabel("share of flights misjudged")
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, "means")


def deviations(found: dict[str, Rows]) -> None:
    """Standard deviations of both estimates (their Figure 3)."""
    figure, axes = panels("Standard deviation over data sets", ("sources", "points in each source"))
    for ax, key, x in zip(
        axes, ("growing_sources", "growing_points"), ("sources", "points"), strict=True
    ):
        for name, style in (("by_source", BY_SOURCE), ("random", RANDOM)):
            ax.plot(column(found[key], x), column(found[key], f"{name}_deviation"), **style)
        if x == "points":
            ax.set(xscale="log", yscale="log")
    axes[0].set_ylabel("standard deviation")
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, "deviations")


def decomposition(rows: Rows) -> None:
    """The three parts of either variance (their Figure 4)."""
    label = "points in each source"
    figure, axes = panels("Parts of the variance: by source, at random", (label, label))
    parts = {"part_sigma2": ("σ²", BLUE), "part_omega": ("ω", RED), "part_gamma": ("γ", GREEN)}
    at = np.arange(len(rows))
    for ax, name in zip(axes, ("by_source", "random"), strict=True):
        for i, (part, (word, color)) in enumerate(parts.items()):
            height = column(rows, f"{name}_{part}")
            ax.bar(at + (i - 1) * 0.27, height, 0.27, color=color, label=f"part of {word}")
        ax.set_xticks(at, column(rows, "points"))
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_yscale("symlog", linthresh=1e-6)
    axes[0].set_ylabel("variance")
    axes[1].legend(frameon=False, fontsize=8)
    save(figure, "decomposition")


def spread(rows: Rows) -> None:
    """How much omega_k and gamma_kl differ between sources (their Figure 5)."""
    label = "points in each source"
    figure, axes = panels("Covariances: within a source, between two", (label, label))
    for ax, key in zip(axes, ("omega_k", "gamma_kl"), strict=True):
        ax.boxplot([row[key] for row in rows], tick_labels=[str(row["points"]) for row in rows])
        ax.axhline(0, color=GREY, linewidth=0.8)
    axes[0].set_ylabel("ω of each source")
    axes[1].set_ylabel("γ of each pair of sources")
    save(figure, "spread")


def estimators(rows: Rows) -> None:
    """Estimators of the variance against the truth (their Figure 6)."""
    label = "points in each source"
    figure, axes = panels("Estimated variance: by source, at random", (label, label))
    shown = {
        "by_source": {"theta_gamma": "θ^γ", "theta_a": "θ_A", "theta_b": "θ_B"},
        "random": {"theta_3": "θ₃", "theta_5": "θ₅"},
    }
    x = column(rows, "points")
    for ax, name in zip(axes, shown, strict=True):
        truth = column(rows, f"{name}_theta")
        ax.errorbar(
            x,
            truth,
            2 * column(rows, f"{name}_theta_error"),
            color=GREY,
            marker="^",
            label="true θ",
        )
        colors = (BLUE, RED, GREEN)
        for (key, word), color in zip(shown[name].items(), colors, strict=False):
            ax.plot(x, column(rows, f"{name}_{key}"), color=color, marker="o", label=word)
        ax.set(xscale="log", yscale="log")
        ax.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("variance of the estimated error")
    save(figure, "estimators")


def main() -> None:
    """Draw all five."""
    found = json.loads((FOLDER / "multiple_source.json").read_text("utf-8"))
    means(found)
    deviations(found)
    decomposition(found["variances"])
    spread(found["variances"])
    estimators(found["variances"])


if __name__ == "__main__":
    main()
