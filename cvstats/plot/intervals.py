"""Plots of intervals: of methods, sources, repetitions and folds, and of their variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.core.design import Design
from cvstats.describe import moments
from cvstats.errors import LogError, checked_choice
from cvstats.facts import LogFacts
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._recommend import recommend_options
from cvstats.intervals.decompose import decompose
from cvstats.intervals.wald import wald
from cvstats.log.log import Log, Losses, Table
from cvstats.options import Missing, check_alpha
from cvstats.plot._axes import (
    COLOURS,
    GREY,
    MARKERS,
    MEAN,
    MOST_ROWS,
    canvas,
    check_distinct,
    check_rows,
    describe_level,
    describe_loss,
    label_step,
    label_x,
    legend_above,
    letters_across,
    offsets,
    rank_models,
    read_facts,
    read_number,
    result_rows,
    set_numbers,
    set_tick_labels,
    shorten_names,
)
from cvstats.recommend import find_problem, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest(
    losses: Losses,
    *,
    methods: Sequence[str] | Mapping[str, Table] | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the intervals of all models, several methods side by side.

    The target of each interval is that of its method, see the ``attrs`` of its result.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. ``attrs["long_name"]`` and ``attrs["units"]`` label the axis.
    methods : sequence of str, or mapping of str to result, optional
        The names of methods, or results of any methods by the names to show. By default what
        `cvstats.interval` chooses, and `naive` where it applies.
    alpha : float, optional
        One minus the level, for methods given by name.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model or cell at y = 0, 1, 2, … downwards, the best estimate of the
        first method first; methods without any guarantee in grey. A legend names the methods.

    Raises
    ------
    LogError
        If a method does not apply to the log, or there are more than 60 rows.

    Notes
    -----
    The marks are at ``estimate`` and the lines reach from ``lower`` to ``upper``, nothing
    rounded. Where an interval does not exist there is only a mark.

    References
    ----------
    Okabe and Ito (2008), Color universal design, https://jfly.uni-koeln.de/color/.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"])
    >>> ax = cvstats.plot.forest(losses, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['wald, 95%', 'naive, 95%']
    """
    facts = read_facts(losses, missing)
    results = compute_intervals(facts, methods, alpha)
    rows = {name: result_rows(result, facts) for name, result in results.items()}
    for table in rows.values():
        check_rows(len(table), "rows")
    first = next(iter(rows.values()), pd.DataFrame({"model": [], "estimate": []}))
    ranked = rank_models(first, facts)
    models = list(dict.fromkeys([*ranked, *(m for table in rows.values() for m in table["model"])]))
    place = {model: at for at, model in enumerate(models)}
    ax = canvas(ax, len(models) * max(1.0, 0.7 * len(rows)))
    beside = offsets(len(rows), min(0.6, 0.22 * (len(rows) - 1)))
    bright = iter(zip(COLOURS * len(rows), MARKERS * len(rows), strict=False))
    for (name, table), shift in zip(rows.items(), beside, strict=True):
        attrs = results[name].attrs
        grey = str(attrs.get("guarantee", "")).startswith("none")
        colour, marker = (GREY, "o") if grey else next(bright)
        level = describe_level(float(attrs.get("alpha", alpha)))
        draw_intervals(
            ax, table, [place[model] + shift for model in table["model"]],
            colour=colour, marker=marker, label=f"{name}, {level}",
        )  # fmt: skip
    set_tick_labels(ax, "y", models)
    ax.set_ylim(len(models) - 0.5, -0.5)
    set_numbers(ax, describe_loss(facts))
    legend_above(ax)
    return ax


def compute_intervals(
    facts: LogFacts, methods: Sequence[str] | Mapping[str, Table] | None, alpha: float
) -> dict[str, Table]:
    """Compute the intervals that were asked for by name; take results as they are."""
    if isinstance(methods, Mapping):
        return dict(methods)
    found = {}
    if methods is None:
        chosen = facts.apply(interval, alpha=alpha)
        found[str(chosen.attrs["method"])] = chosen
        methods = ["naive"] if find_problem(find_method("naive"), facts.log) is None else []
    for name in methods:
        found[name] = facts.apply(interval, method=name, alpha=alpha)
    return found


def draw_intervals(
    ax: Axes, table: pd.DataFrame, at: Sequence[float], *, colour: str, marker: str,
    label: str | None, name: str = "estimate", filled: bool = True, size: float = 5.5,
    width: float = 1.6,
) -> None:  # fmt: skip
    """Draw marks at the estimates and lines between the limits, at these heights."""
    middle = table[name].to_numpy(dtype=float)
    lower, upper = (table[side].to_numpy(dtype=float) for side in ("lower", "upper"))
    # An interval need not contain its estimate (percentiles may not): lines and marks are separate.
    known = np.isfinite(lower) & np.isfinite(upper)
    heights = np.asarray(at, dtype=float)
    ax.hlines(heights[known], lower[known], upper[known], colors=colour, linewidth=width)
    ax.plot(
        middle, heights, linestyle="none", marker=marker, markersize=size, color=colour,
        markerfacecolor=colour if filled else "white", label=label,
    )  # fmt: skip


def sources(
    losses: Losses, *, alpha: float = 0.05, missing: Missing = "raise", ax: Axes | None = None
) -> Axes:
    """Draw an interval for each source, the best first, and below them that for a new source.

    The target of each row is the error on that source; that of the last row is the mean error on
    sources drawn as these were. Where sources were not left out one at a time, the last row is
    the interval of the mean loss whose sample are the sources, and names its method.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log with a level ``source``, in which each point was tested once per repetition.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each source at y = 0, 1, 2, … downwards, the best mean over the models first,
        then the last row, whose interval is also a pale band over all rows. More than 60 sources
        are so many thin lines without names, in the same order.

    Raises
    ------
    LogError
        If the log has no sources, or more models than there are colours.

    Notes
    -----
    A source's interval is `wald` of its points, ``mean_k ± z se_k``: it treats the points of one
    source as independent given the source. Twelve intervals at 95% miss about once in two
    plots: they are not simultaneous.

    References
    ----------
    Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> ax = cvstats.plot.sources(losses, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()][-2:]
    ['2013-12', 'mean over new sources']
    """
    facts = read_facts(losses, missing)
    if not facts.design.has("source"):
        raise LogError(
            "plot.sources needs a level 'source' with at least two labels. Add it: "
            "as_log(frame, source='hospital')."
        )
    each = result_rows(facts.apply(wald, by="source", alpha=alpha), facts)
    last, whole = group_interval(facts, alpha=alpha)
    whole_rows = result_rows(whole, facts)
    models = rank_models(whole_rows, facts)
    check_distinct(len(models))
    labels = rank_models(each.drop(columns="model").rename(columns={"source": "model"}), facts)
    many = len(labels) > MOST_ROWS
    gap = max(1.0, 0.04 * len(labels))  # where the last row would touch many others
    last_at = len(labels) - 1 + gap
    place = {label: at for at, label in enumerate(labels)}
    ax = canvas(ax, 30 if many else (len(labels) + 1) * max(1.0, 0.45 * len(models)))
    if last == "new source":
        last = "mean over new sources"
        last = last if len(last) <= letters_across(ax, 0.42) else "new sources"
    shifts = offsets(len(models), 0.5)
    step = (shifts[1] - shifts[0] if len(models) > 1 else 1.0) / (len(labels) + 1)
    height = 72 * ax.figure.bbox.height / ax.figure.dpi
    size = float(np.clip(0.7 * height * step, 1.2 if many else 2.5, 5.5))
    width = float(np.clip(0.5 * height * step, 0.3, 1.6))
    whole_shifts = offsets(len(models), 0.5 * gap)
    style = zip(models, shifts, whole_shifts, COLOURS, MARKERS, strict=False)
    for model, shift, whole_shift, colour, marker in style:
        part, end = each[each["model"] == model], whole_rows[whole_rows["model"] == model]
        draw_intervals(
            ax, part, [place[source] + shift for source in part["source"]],
            colour=colour, marker=marker, label=model or f"{describe_level(alpha)} interval",
            size=size, width=width,
        )  # fmt: skip
        ax.axvspan(*end[["lower", "upper"]].to_numpy()[0], color=colour, alpha=0.1, linewidth=0)
        draw_intervals(
            ax, end, [last_at + whole_shift], colour=colour, marker=marker, label=None,
            size=max(size, 4.0),
        )  # fmt: skip
    ax.axhline(last_at - gap / 2, color="black", linewidth=0.8)
    if many:
        ax.set_yticks([len(labels) / 2, last_at], [f"{len(labels):,} sources,\nbest first", last])
    else:
        set_tick_labels(ax, "y", [*labels, last])
    ax.set_ylim(last_at + gap / 2, -0.5)
    set_numbers(ax, describe_loss(facts))
    legend_above(ax)
    return ax


def group_interval(facts: LogFacts, *, alpha: float) -> tuple[str, Table]:
    """Compute the interval that the design calls for if its sample are the sources.

    Otherwise, where sources are divided, that of `clustered`. Returns what it is for, in a few
    words, and the result.
    """
    name = facts.recommended[0]
    chosen = find_method(name).of_groups
    method = find_method(name if chosen else "clustered")
    result = facts.apply(interval, method=None if chosen else method.name, alpha=alpha)
    if method.plan and facts.attrs.get("sources_are") == "fixed":
        return "mean over all", result
    return "new source" if method.plan else f"all ({method.name})", result


STEPS = 25
"""So many numbers of repetitions are enough to see a curve."""
BARS = 5
"""At so many numbers of repetitions several models have their intervals, side by side."""


def stability(
    losses: Losses,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the interval of the first r repetitions, for growing r.

    The target is that of the method. Where the curves are flat, more repetitions would change
    nothing; they never replace new data.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with two repetitions or more, of any resampling.
    method : str, optional
        The name of an interval; by default what `cvstats.interval` chooses.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        For each model a line through the estimates over the number of repetitions used, the
        best model first in the legend; numbers too small for the method are left out. The limits
        of one model are a band; those of several are bars side by side at five of the numbers.

    Raises
    ------
    LogError
        If the log has one repetition, no number of them suits the method, or there are
        more models than colours.

    Notes
    -----
    Repetitions are taken in the order of their labels. Of many, some 25 numbers evenly spread
    are computed. The point at r is ``mean_r = interval(repetitions 1, …, r)``, not a mean over
    windows.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445,
    doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.stability(losses, ax=Figure().subplots())
    >>> ax.lines[0].get_xdata().tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    facts = read_facts(losses, missing)
    check_alpha(alpha)
    checked_choice("method", method, (*interval_names(), None))
    log = facts.log
    total = log.design.number("repetition")
    if total < 2:
        raise LogError("the log has one repetition. Expected two or more to see how they settle.")
    options = recommend_options(log) if method is None else {}
    if method is None:
        method = facts.recommended[0]
    steps = np.unique(np.linspace(1, total, min(total, STEPS)).round().astype(int)).tolist()
    parts, run = [], find_method(method).run
    for r in steps:
        try:
            part = log.label(run(keep_repetitions(log, r), alpha=alpha, **options))
            result = result_rows(part, facts)
        except LogError as error:
            refused = error
            continue
        parts.append(result.assign(repetitions=r))
        check_rows(len(result), "models or cells")
        target = str(part.attrs["method"])
    if not parts:
        raise refused
    table = pd.concat(parts)
    last = table[table["repetitions"] == table["repetitions"].max()]
    models = rank_models(last, facts)
    check_distinct(len(models))
    ax = canvas(ax, 7)
    used = table["repetitions"].unique()
    shown = used[np.unique(np.linspace(0, len(used) - 1, BARS).round().astype(int))]
    shifts = offsets(len(models), 0.35 * (used[-1] - used[0]) / BARS)
    style = zip(models, shifts, COLOURS, MARKERS, strict=False)
    for model, shift, colour, marker in style:
        rows = table[table["model"] == model]
        ax.plot(
            rows["repetitions"], rows["estimate"], color=colour, marker=marker, linewidth=1.4,
            markersize=4.5 if len(models) == 1 else 0, label=model or "estimate",
        )  # fmt: skip
        if len(models) == 1:
            draw_band(ax, rows, colour)
        else:
            draw_bars(ax, rows[rows["repetitions"].isin(shown)], shift, colour, marker)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    label_x(ax, "repetitions used")
    if len(models) > 1:
        legend_above(ax)
    set_numbers(ax, describe_loss(facts), f"({target}, {describe_level(alpha)})", along="y")
    return ax


def draw_band(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Draw the limits of one model as a band."""
    at = rows["repetitions"]
    ax.fill_between(at, rows["lower"], rows["upper"], color=colour, alpha=0.13, linewidth=0)
    for side in ("lower", "upper"):
        ax.plot(at, rows[side], color=colour, linewidth=0.8)


def draw_bars(ax: Axes, rows: pd.DataFrame, shift: float, colour: str, marker: str) -> None:
    """Draw the limits of one of several models as bars beside those of the others."""
    at = rows["repetitions"] + shift
    ax.vlines(at, rows["lower"], rows["upper"], colors=colour, linewidth=1.4)
    ax.plot(at, rows["estimate"], linestyle="none", marker=marker, markersize=5, color=colour)


def keep_repetitions(log: Log, repetitions: int) -> Log:
    """Keep the first repetitions of a log; the fit on the sample itself does not count."""
    design = log.design
    level = design.levels["repetition"]
    used = np.sort(design.cell_table(("repetition",)).codes[:, 0])
    if design.has("count") and any(level.labels[code] == 0 for code in used.tolist()):
        repetitions += 1  # repetition 0 of a bootstrap log is that fit
    codes = level.block(0, design.size)
    keep = np.isin(codes, used[:repetitions])
    if design.present is not None:
        keep &= design.present
    return replace(log, design=Design(design.levels, design.size, keep, taking=design.taking))


def folds(losses: Losses, *, missing: Missing = "raise", ax: Axes | None = None) -> Axes:
    """Draw the mean loss of every fold, repetition by repetition.

    The target is the log itself: how much folds differ, and how much repetitions do.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with folds or repetitions.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A pale mark for each fold at x = 0, 1, 2, …, the number of its repetition; a short line
        at the mean of each repetition. With one repetition x numbers the folds, and a long
        line shows the mean.

    Raises
    ------
    LogError
        If the log has neither folds nor repetitions, or more models than there are colours.

    Notes
    -----
    The heights are the ``mean`` of `cvstats.moments`; the line is their mean weighted by
    ``count``, ``sum n_k mean_k / sum n_k``. Folds of one repetition share most of their
    training data, and repetitions share all data: their scatter is not a standard error.

    References
    ----------
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.folds(losses, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'repetition'
    """
    facts = read_facts(losses, missing)
    table = result_rows(facts.apply(moments), facts)
    table = table[table["count"] > 0].dropna(subset="mean").copy()
    fold = next((name for name in ("fold", "source") if name in table), None)
    across = "repetition" if "repetition" in table and table["repetition"].nunique() > 1 else fold
    if across is None:
        raise LogError(
            "the log has neither folds nor repetitions. Expected a level 'fold' or 'repetition'."
        )
    table["total"] = table["mean"] * table["count"]
    sums = table.groupby("model", sort=False)[["total", "count"]].sum().reset_index()
    models = rank_models(sums.assign(estimate=sums["total"] / sums["count"]), facts)
    check_distinct(len(models))
    labels = list(dict.fromkeys(table[across]))
    place = {label: at for at, label in enumerate(labels)}
    ax = canvas(ax, 7)
    style = zip(models, offsets(len(models), 0.55), COLOURS, MARKERS, strict=False)
    for model, shift, colour, marker in style:
        part = table[table["model"] == model]
        at = part[across].map(place).to_numpy(dtype=float) + shift
        ax.plot(
            at, part["mean"], linestyle="none", marker=marker, color=colour,
            alpha=0.5 if across == "repetition" else 0.9, markersize=4.5,
            markeredgewidth=0, label=model or "fold mean",
        )  # fmt: skip
        half = 0.4 / max(1, len(models))
        if across == "repetition":
            sums = part.groupby(across)[["total", "count"]].sum()
            middle = np.array([place[label] for label in sums.index]) + shift
            means = sums["total"] / sums["count"]
            ax.hlines(means, middle - half, middle + half, colors=colour, linewidth=2.2)
        else:
            mean = float(part["total"].sum() / part["count"].sum())
            ax.axhline(mean, color=colour, linewidth=1.2)
    set_tick_labels(ax, "x", labels)
    ax.set_xlim(-0.6, len(labels) - 0.4)
    label_x(ax, across)
    if len(models) > 1:
        legend_above(ax)
    set_numbers(ax, describe_loss(facts, MEAN), along="y")
    return ax


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
    facts = read_facts(losses, missing)
    values = list(dict.fromkeys(float(value) for value in rho))
    if not values:
        raise LogError("rho is empty. Expected a correlation, or several.")
    table = result_rows(facts.apply(decompose, rho=values), facts)
    used = result_rows(facts.apply(wald), facts)
    models = rank_models(used, facts)
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
        color=COLOURS[1], label="θ, the total",
    )  # fmt: skip
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_ylim(at.max() + 0.6, -0.6)
    bars = name_bars(ax, models, values, step)
    set_numbers(ax, describe_loss(facts, "variance of the mean ", power=2), *bars)
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
