"""The reliability diagram: observed frequency by predicted probability, with limits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvstats.core.types import FloatArray
from cvstats.errors import MOST, LogError, describe_type, listed, spelled
from cvstats.intervals._limits import korn_graubard, wilson
from cvstats.intervals.clustered import clustered
from cvstats.log.tables import from_arrow, is_arrow, set_levels
from cvstats.loss_functions.losses import find_columns_of_models, require_columns
from cvstats.loss_functions.pointwise import LossOptions, flat_columns, probabilities, signs
from cvstats.options import check_alpha
from cvstats.plot._axes import (
    GREY,
    describe_level,
    draw_models,
    keep_inside,
    label_x,
    label_y,
    styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability(
    predictions: pd.DataFrame,
    *,
    bins: int | Sequence[float],
    truth: Hashable = "y_true",
    prediction: Any = "y_pred",
    positive: Hashable = None,
    alpha: float = 0.05,
    ax: Axes | None = None,
) -> Axes:
    """Draw the observed frequency of the positive class by bins of its predicted probability.

    The limits are simultaneous: with probability 1 - alpha, the limits of all bins of a model
    contain the true frequencies. Therefore a single bin whose limits exclude the diagonal shows
    that the model is not calibrated.

    Parameters
    ----------
    predictions : DataFrame
        Truth and predictions as columns, as for `cvstats.losses`; each point once. With the level
        (or column) ``source``, sources and not points are the sampling unit.
    bins : int or sequence of float
        The number of bins of equal width from 0 to 1, or their edges. They must be fixed in
        advance, or depend only on the predictions, such as their quantiles.
    truth, prediction : hashable, list or mapping, optional
        The columns of the truth and of the models, as for `cvstats.losses`.
    positive : hashable, optional
        The label whose probability is predicted, if the truth is not 0/1.
    alpha : float, optional
        One minus the probability that all limits of a model cover.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A marker for each bin and model at the mean prediction and the observed frequency, with
        its limits, and the diagonal on which calibrated models lie. More than seven models have a
        panel each, in ``child_axes``.

    Raises
    ------
    LogError
        If predictions are not probabilities or are missing, points occur more than once, or bin
        edges do not increase or do not cover the predictions.

    See Also
    --------
    cvstats.losses : ``loss="calibration_slope"`` is a number with an interval.

    Notes
    -----
    The limits of each of K bins are Wilson's of level (1 - alpha)^(1/K): bins contain different
    points, so they are independent (Šidák). With sources the frequency of a bin has the variance
    of `clustered` (CR2) and limits by Korn and Graubard.

    References
    ----------
    Bröcker and Smith (2007), Weather and Forecasting 22(3), 651-661, doi:10.1175/WAF993.1.
    Šidák (1967), JASA 62(318), 626-633, doi:10.1080/01621459.1967.10482935.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("flights")
    >>> ax = cvstats.plot.reliability(
    ...     log, prediction=["naive_bayes"], bins=5, ax=Figure().subplots()
    ... )
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['naive_bayes']
    """
    check_alpha(alpha)
    table = tabulate_bins(predictions, bins, truth, prediction, positive, alpha)
    names = ["predictions" if model is None else str(model) for model in table["model"]]
    table = table.assign(model=names)
    models = list(dict.fromkeys(names))
    draw = partial(draw_bins, table=table)
    ax = draw_models(ax, models, draw, rows=12.0, legend_from=1, numbers=None, aspect=1.0)
    label_x(ax, "mean predicted probability")
    label_y(ax, "observed frequency", f"({describe_level(alpha)}, all bins of a model together)")
    return keep_inside(ax)


def draw_bins(ax: Axes, models: list[str], table: pd.DataFrame) -> None:
    """Draw the bins of some models, and the diagonal."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--", zorder=1)
    for model, _, colour, marker in styles(ax, models):
        rows = table[table["model"] == model]
        middle = rows["observed"].to_numpy()
        spread = np.abs(rows[["lower", "upper"]].to_numpy().T - middle)
        ax.errorbar(
            rows["predicted"], middle, yerr=spread, color=colour, marker=marker, ms=4, lw=1,
            capsize=2, label=model,
        )  # fmt: skip
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)


def tabulate_bins(
    predictions: pd.DataFrame, bins: int | Sequence[float], truth: Hashable, prediction: Any,
    positive: Hashable, alpha: float,
) -> pd.DataFrame:  # fmt: skip
    """Tabulate each nonempty bin: prediction, frequency, limits and number of points."""
    if is_arrow(predictions):
        predictions = from_arrow(predictions)
    if not isinstance(predictions, pd.DataFrame):
        raise LogError(
            f"plot.reliability needs predictions, but this is {describe_type(predictions)}. "
            "Expected a DataFrame with true labels and probabilities. For a Dataset pass "
            "predictions.to_dataframe()."
        )
    chosen = find_columns_of_models(prediction, None)
    needed = [truth, *(name for names in chosen.values() for name in names)]
    require_columns(predictions, needed)
    frame = set_levels(predictions, needed)
    levels: Mapping[str, Any] = {str(name): frame.index.unique(name) for name in frame.index.names}
    if len(levels.get("repetition", ())) > 1:
        raise LogError(
            f"each point occurs in {len(levels['repetition'])} repetitions. Expected each point "
            f"once. Select one repetition: predictions.xs({spelled(levels['repetition'][0])}, "
            "level='repetition')."
        )
    once = [name for name in frame.index.names if name not in ("repetition", "fold")]
    twice = frame.index.to_frame()[once].duplicated().to_numpy() if "point" in once else None
    if twice is not None and twice.any():
        label = spelled(frame.index.get_level_values("point")[twice.argmax()])
        raise LogError(
            f"point {label} occurs more than once. Expected each point once. Drop the other rows."
        )
    missing = np.flatnonzero(frame[needed].isna().any(axis=1))
    if len(missing):
        rows = listed([f"row {row:,}" for row in missing[:MOST]], len(missing))
        raise LogError(
            f"the truth or a prediction is missing (NaN) in {rows}. Expected both for every "
            "point. Drop these rows: predictions.dropna()."
        )
    options = LossOptions(positive=positive)
    y = (signs(flat_columns(frame[truth]), options) + 1) / 2
    sources = frame.index.get_level_values("source") if "source" in levels else None
    edges = edges_of(bins)
    level = -np.expm1(np.log1p(-alpha) / (len(edges) - 1))
    found = []
    for model, (column,) in chosen.items():
        p = probabilities(flat_columns(frame[column]))
        if len(p) and not edges[0] <= p.min() <= p.max() <= edges[-1]:
            raise LogError(
                f"some probabilities of {spelled(model)} lie outside of bins={bins!r}. Expected "
                "edges that enclose all of them, such as [0, ..., 1]."
            )
        at = np.searchsorted(edges[1:-1], p, side="right")
        for number in range(len(edges) - 1):
            here = at == number
            if here.any():
                own = None if sources is None else sources[here]
                lower, upper = limits_of_bin(y[here], own, level)
                found.append((model, p[here].mean(), y[here].mean(), lower, upper, here.sum()))
    names = ["model", "predicted", "observed", "lower", "upper", "n_points"]
    return pd.DataFrame(found, columns=names)


def edges_of(bins: int | Sequence[float]) -> FloatArray:
    """Compute the edges of bins of equal width, or check given edges."""
    if isinstance(bins, int) and not isinstance(bins, bool) and bins > 0:
        return np.linspace(0, 1, bins + 1)
    edges = np.asarray(bins if isinstance(bins, Sequence | np.ndarray) else [], dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise LogError(
            f"Invalid bins={bins!r}. Expected their number, such as 10, or at least two "
            "increasing edges, such as [0, 0.1, 0.5, 1]."
        )
    return edges


def limits_of_bin(y: FloatArray, sources: pd.Index | None, alpha: float) -> tuple[float, float]:
    """Compute the limits of the frequency in a bin, by points or by sources."""
    share, n = np.array([y.mean()]), float(len(y))
    if sources is None:
        lower, upper = wilson(share, n, alpha)
        return float(lower[0]), float(upper[0])
    sizes = np.unique(sources, return_counts=True)[1].astype(np.float64)
    if len(sizes) < 2:
        return float("nan"), float("nan")
    index = pd.MultiIndex.from_arrays(
        [np.zeros(len(y), dtype=np.int64), sources, np.arange(len(y))],
        names=["fold", "source", "point"],
    )
    row = clustered(pd.Series(y, index)).iloc[0]
    lower, upper = korn_graubard(
        share, np.array([row["se"] ** 2]), np.array([(sizes**2).sum() / n**2]), alpha,
        errors=None, units=(np.array([n]), np.array([row["df"]])),
    )  # fmt: skip
    return float(lower[0]), float(upper[0])
