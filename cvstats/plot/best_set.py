"""The range of the rank of each model, and the possibly best models."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Literal

import xarray as xr

from cvstats.comparisons.best_set import best_set as compute_best_set
from cvstats.errors import LogError
from cvstats.log.log import Losses
from cvstats.options import Missing, Rng
from cvstats.plot._axes import (
    canvas,
    check_rows,
    describe_level,
    describe_name,
    draw_marked_rows,
    keep_inside,
    label_x,
    legend_above,
    letters_across,
    name_cautions,
    read_facts,
    result_rows,
    set_tick_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def best_set(
    losses: Losses,
    *,
    alpha: float = 0.05,
    center: Literal["fold", "global"] = "fold",
    n_draws: int = 10_000,
    rng: Rng = None,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the range of the rank of each model, and the possibly best models.

    The targets are the set of models with the smallest error, and the rank of each model; see
    `cvstats.best_set`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A test set or a K-fold partition of several models.
    alpha, center, n_draws, rng, missing : optional
        As in `cvstats.best_set`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model at y = 0, 1, 2, … downwards, the best estimate first: a line
        from ``lower_rank`` to ``upper_rank``, a marker at the rank of its mean loss, filled and
        blue for the models in the set.

    Raises
    ------
    LogError
        If there is only one model, `cvstats.best_set` does not apply to the log, or there are
        carried dimensions.

    Notes
    -----
    Rank intervals are simultaneous at level ``1 - alpha``. A model whose rank interval begins at
    1 may still be excluded from the set, whose test is more powerful.

    References
    ----------
    Lei (2020), JASA 115(532), 1978-1997, doi:10.1080/01621459.2019.1672556.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> ax = cvstats.plot.best_set(losses, rng=0, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['gradient_boosting', 'logistic_regression', 'naive_bayes']
    """
    facts = read_facts(losses, missing)
    found = facts.apply(compute_best_set, alpha=alpha, center=center, n_draws=n_draws, rng=rng)
    table = result_rows(found, facts)
    if len(facts.log.labels.dims) > 1:
        way = "log.sel(lead=1)" if isinstance(found, xr.Dataset) else "log.loc[['auc']]"
        raise LogError(f"ranks are drawn for one cell at a time. Select one, as in {way}.")
    check_rows(len(table), "models")
    upwards = not facts.is_score
    table = table.sort_values("estimate", kind="stable", ascending=upwards, ignore_index=True)
    ax = canvas(ax, len(table))
    ranks = table[["lower_rank", "upper_rank"]].set_axis(["lower", "upper"], axis=1)
    ranks["rank"] = table["estimate"].rank(method="min", ascending=upwards)
    inside = table["in_set"].to_numpy(dtype=bool)
    draw_marked_rows(ax, ranks, inside, "rank", ("possibly best", "excluded"))
    set_tick_labels(ax, "y", list(table["model"]))
    ax.set_ylim(len(table) - 0.5, -0.5)
    aside = max(0.4, 0.025 * len(table))  # no mark is on the frame
    ax.set_xlim(1 - aside, len(table) + aside)
    ax.set_xticks(choose_ticks(len(table), letters_across(ax, 0.5) // 3))
    label_x(
        ax,
        f"rank by {describe_name(facts)}, 1\N{NO-BREAK SPACE}is\N{NO-BREAK SPACE}best",
        f"({describe_level(alpha)}, simultaneous)",
        *name_cautions(table),
    )
    legend_above(ax)
    return keep_inside(ax)


def choose_ticks(last: int, most: int) -> list[int]:
    """Choose ranks to write below the axis: the first always, then even steps."""
    step = next(
        step
        for power in count()
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if (last - 1) / step < most
    )
    return list(range(1, last + 1, step)) if step < 5 else [1, *range(step, last + 1, step)]
