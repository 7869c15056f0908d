"""What the variance of a cross-validated mean is made of, and what of it is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cvstats.errors import LogError
from cvstats.intervals.decompose import decompose
from cvstats.intervals.wald import wald
from cvstats.log.log import Losses
from cvstats.options import Missing
from cvstats.plot._labels import (
    describe_loss,
    legend_above,
    set_numbers,
    shorten_names,
)
from cvstats.plot._style import (
    COLOURS,
    GREY,
    canvas,
    check_rows,
    label_step,
    letters_across,
    rank_models,
    read_number,
    require_memory,
    result_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RHO = (0.0, 0.1, 0.2, 0.3)


def decomposition(
    losses: Losses,
    *,
    rho: Sequence[float] = RHO,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the parts of the variance of the mean, for several assumed correlations of folds.

    The target is theta, the variance of the mean loss over data sets. Two parts of it are
    estimated; the third, the covariance gamma of different folds, no single log can show.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with two points or more in some fold.
    rho : sequence of float, optional
        Correlations of fold means to assume, each a bar.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        For each model, the best first, and each rho a bar of three parts, end to end: points
        ``(sigma^2 - omega) / n``, folds, and gamma, hatched since it is assumed. Parts may be
        negative, and then reach to the left; a stroke marks theta, their sum. A diamond marks
        the variance that `wald` uses.

    Raises
    ------
    LogError
        If the log is not a partition into folds, or a rho is out of range.

    Notes
    -----
    ``theta = (sigma^2 - omega) / n + S2 (omega - gamma) + gamma`` with ``S2 = sum (n_k / n)^2``;
    the numbers are those of `decompose`, and the bar's total is its ``theta``.

    References
    ----------
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.decomposition(losses, rho=[0, 0.1], ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ρ = 0', 'ρ = 0.1']
    """
    require_memory(losses)
    values = list(dict.fromkeys(float(value) for value in rho))
    if not values:
        raise LogError("rho is empty. Expected a correlation, or several.")
    table = result_rows(decompose(losses, rho=values, missing=missing), losses)
    used = result_rows(wald(losses, missing=missing), losses)
    models = rank_models(used, losses)
    check_rows(len(models) * len(values), "bars")
    step = len(values) + (0.8 if len(models) > 1 and len(values) > 1 else 0.0)
    at = np.array(
        [
            models.index(model) * step + values.index(value)
            for model, value in zip(table["model"], table["rho"], strict=True)
        ]
    )
    points = (table["sigma2_minus_omega"] / read_number(table, "n_points")).to_numpy(dtype=float)
    folds = (table["theta"] - table["gamma"]).to_numpy(dtype=float) - points
    ax = canvas(ax, 0.9 * len(models) * step + 1)
    parts = {
        "points": (points, COLOURS[0], ""),
        "folds": (folds, COLOURS[4], ""),
        "γ, assumed": (table["gamma"].to_numpy(dtype=float), "white", "////"),
    }
    ahead, behind = np.zeros(len(at)), np.zeros(len(at))
    for label, (width, colour, hatch) in parts.items():
        left = np.where(width >= 0, ahead, behind)
        ax.barh(
            at, width, left=left, height=0.75, color=colour, hatch=hatch,
            edgecolor=GREY if hatch else colour, linewidth=0.6, label=label,
        )  # fmt: skip
        ahead += np.maximum(width, 0)
        behind += np.minimum(width, 0)
    variance = dict(zip(used["model"], used["se"].astype(float) ** 2, strict=True))
    marks = ax.plot(
        [variance[model] for model in table["model"]], at, linestyle="none", marker="D",
        markersize=4.5, color="black", markerfacecolor="white", label="se² of wald",
    )  # fmt: skip
    marks += ax.plot(
        table["theta"], at, linestyle="none", marker="|", markersize=13, markeredgewidth=2,
        color=COLOURS[1], label="θ, their sum",
    )  # fmt: skip
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_ylim(at.max() + 0.6, -0.6)
    bars = name_bars(ax, models, values, step)
    set_numbers(ax, describe_loss(losses, "variance of the mean ", power=2), *bars)
    legend_above(ax, [*ax.containers, *marks])
    return ax


def name_bars(ax: Axes, models: list[str], values: list[float], step: float) -> list[str]:
    """Name each bar; where they are too narrow, each model, and return what its bars are."""
    bars = [f"ρ = {value:g}" for value in values]
    end = f", {bars[0]}"
    short = shorten_names(models, max(8, letters_across(ax, 0.42) - len(end)))
    if len(models) == 1:
        some = slice(None, None, label_step(ax, len(bars)))
        ax.set_yticks(range(len(bars))[some], bars[some])
        return []
    if label_step(ax, len(models) * step) == 1:
        places = [i * step + j for i in range(len(models)) for j in range(len(bars))]
        ax.set_yticks(places, [word for name in short for word in (f"{name}{end}", *bars[1:])])
        return []
    some = slice(None, None, label_step(ax, len(models)))
    middles = np.arange(len(models)) * step + (len(values) - 1) / 2
    ax.set_yticks(middles[some], short[some])
    listed = ", ".join(f"{value:g}" for value in values)
    return [f"ρ = {listed}" + (" downwards" if len(values) > 1 else "")]
