"""A grid of cells: how sure each is, or where one model is better than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.comparisons.compare import compare
from cvstats.core.orientation import targets_of
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice, listed
from cvstats.log.log import Losses
from cvstats.options import Missing
from cvstats.plot._axes import (
    DIVERGING,
    MEAN,
    add_bar,
    canvas,
    column_width,
    describe_evidence,
    describe_level,
    describe_loss,
    escape_math,
    label_x,
    label_y,
    legend_above,
    letters_down,
    read_facts,
    row_height,
    set_tick_labels,
    show_direction,
)
from cvstats.recommend import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh


SHOWN = ("half-width", "estimate", "difference")
EASTWARD = ("x", "lon", "longitude", "east", "easting", "col", "column")
"""Names of dimensions that run from left to right."""
NOTHING = "#D9D9D9"
"""The grey of cells without losses."""
APART = 5.0
"""Points between dots; of smaller cells only some have one."""
MOST_CELLS = 10_000
"""Larger grids are pixels, also in a vector graphic."""


def map(
    losses: Losses,
    other: Losses | None = None,
    *,
    show: Literal["half-width", "estimate", "difference"] | None = None,
    x: str | None = None,
    y: str | None = None,
    method: str | None = None,
    adjust: Literal["holm", "bh"] | None = "bh",
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw a grid of cells: the half-width of each interval, or the difference of two models.

    The target in each cell is that of its interval, or the difference of two of them, see
    `compare`.

    Parameters
    ----------
    losses : DataArray or Dataset
        A log with two dimensions that are carried through, such as latitude and longitude.
    other : the same kind, optional
        The losses of the other model on the same evaluations.
    show : {"half-width", "estimate", "difference"}, optional
        By default the difference if there are two models, otherwise the half-width.
    x, y : str, optional
        The dimensions from left to right and from bottom to top. By default the last one, or one
        called like a longitude, is ``x``.
    method : str, optional
        The name of an interval; by default the one that `cvstats.interval` or `compare` chooses.
    adjust : {"holm", "bh", None}, optional
        How p-values are adjusted for the number of cells: "bh" bounds the share of wrong dots,
        "holm" the chance of any.
    alpha : float, optional
        One minus the level of intervals, and the bound of the adjusted p-values.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out of its cell. A cell without
        any loss is grey in either case.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A coloured square for each cell, and a bar of the colours. Differences have dots where the
        adjusted p-value is below ``alpha``; of small cells only every second, third, … has one.

    Raises
    ------
    LogError
        If the log is not an array, has more or fewer than two carried dimensions, or more models
        than can be shown.

    Notes
    -----
    Blue is where the first model is better. Neighboring cells are often correlated; "bh" remains
    valid under positive dependence.

    References
    ----------
    Wilks (2016), Bulletin of the American Meteorological Society 97(12), 2263-2273,
    doi:10.1175/BAMS-D-15-00267.1.

    Examples
    --------
    >>> import cvstats
    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> first = xr.DataArray(rng.exponential(size=(50, 3, 4)), dims=("point", "lat", "lon"))
    >>> ax = cvstats.plot.map(first, first + rng.random((50, 3, 4)), ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('lon', 'lat')
    """
    facts = read_facts(losses, missing)
    checked_choice("show", show, (*SHOWN, None))
    if not isinstance(facts.losses, (xr.DataArray, xr.Dataset)):
        raise LogError(
            f"a {type(facts.losses).__name__} has no grid of cells. Expected an array of xarray "
            f"with two carried dimensions, as in log.to_xarray()."
        )
    several = isinstance(facts.losses, xr.Dataset) or "model" in facts.losses.dims
    if show is None:
        show = "difference" if other is not None or several else "half-width"
    if show == "difference":
        options: dict[str, Any] = {"method": method, "adjust": adjust, "alpha": alpha}
        result = facts.apply(compare, **options) if other is None else (
            compare(losses, other, missing=missing, **options)
        )  # fmt: skip
    else:
        refuse_other(other, show)
        result = facts.apply(interval, method=method, alpha=alpha)
    found = arrange(show_direction(result.compute(), facts), x, y)
    if show == "half-width":
        values = (found["upper"] - found["lower"]) / 2
        words = f"half-width of the {describe_level(alpha)} interval, {describe_loss(facts)}"
    else:
        values = found[show]
        words = describe_loss(facts, MEAN if show == "estimate" else "difference in ")
    ax = canvas(ax, float(np.clip(14 * values.shape[0] / values.shape[1], 6, 20)))
    image = draw_cells(ax, values, symmetric=show == "difference", turned=facts.is_score)
    dots: list[Any] = []
    if show == "difference":
        p = found["p_adjusted" if "p_adjusted" in found else "p_value"]
        dots = draw_dots(ax, p < alpha, describe_evidence(alpha, adjust, p.size))
        words += "" if targets_of(facts.attrs) else ", blue:\N{NO-BREAK SPACE}first is better"
    add_bar(ax, image, words, letters_down(ax, 50))
    name_axes(ax, values)
    nothing = grey_patch() if values.isnull().any() else []
    if dots or nothing:
        legend_above(ax, [*dots, *nothing])
    return ax


def refuse_other(other: Losses | None, show: str) -> None:
    """Refuse a second log where one model is drawn."""
    if other is not None:
        raise LogError(
            f"show={show!r} is of one model, and two were passed. Expected one of them, or "
            f"show='difference'."
        )


# --- the grid -----------------------------------------------------------------------------------


def arrange(result: xr.Dataset, x: str | None, y: str | None) -> xr.Dataset:
    """Bring the two dimensions of a grid into the order rows, columns; coordinates ascend."""
    for name in [name for name, size in result.sizes.items() if size == 1]:
        if name == "model" or len(result.sizes) > 2:
            result = result.isel({name: 0})
    dims = [str(name) for name in result.sizes]
    if "model" in dims or ("other" in result.coords and result["other"].ndim):
        raise LogError(
            "the log has several models. Expected one, or two to compare. Choose them, as in "
            "log.sel(model='ridge') or log[['ridge', 'forest']]."
        )
    if len(dims) != 2:
        way = (
            f"Choose one cell of the others, as in log.isel({dims[0]}=0)." if len(dims) > 2
            else "Draw its intervals with cvstats.plot.forest."
        )  # fmt: skip
        raise LogError(
            f"the log carries {len(dims)} dimensions ({listed(dims) or 'none'}). Expected two of "
            f"a grid. {way}"
        )
    for option, name in (("x", x), ("y", y)):
        if name is not None and name not in dims:
            raise LogError(f"{option}={name!r} is not a dimension of the grid. Expected one of "
                           f"{dims[0]!r} and {dims[1]!r}.")  # fmt: skip
    across = x or (next((name for name in dims if name != y), None) if y else None)
    across = across or next((name for name in dims if name.lower() in EASTWARD), dims[1])
    if across == y:
        raise LogError(f"x and y are both {y!r}. Expected two dimensions.")
    down = next(name for name in dims if name != across)
    result = result.transpose(down, across)
    numeric = [name for name in dims if is_numeric(result[name])]
    return result.sortby(numeric) if numeric else result


def is_numeric(labels: xr.DataArray) -> bool:
    """Whether the labels of a dimension are numbers, or there are none but places."""
    return labels.dtype.kind in "iuf"


def places_of(labels: xr.DataArray) -> FloatArray:
    """Place the cells along a dimension: at their numbers, or one after the other."""
    return np.asarray(labels if is_numeric(labels) else range(labels.size), dtype=float)


def edges_of(places: FloatArray) -> FloatArray:
    """Put the edges of cells half-way between their middles."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    between = (places[1:] + places[:-1]) / 2
    return np.concatenate([2 * places[:1] - between[:1], between, 2 * places[-1:] - between[-1:]])


def draw_cells(ax: Axes, values: xr.DataArray, *, symmetric: bool, turned: bool) -> QuadMesh:
    """Draw a square for each cell; those without a value show the grey behind them."""
    down, across = (edges_of(places_of(values[name])) for name in values.dims)
    numbers = values.to_numpy()
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        raise LogError("no cell of the grid has losses. Expected some.")
    most = float(np.abs(known).max()) or 1.0
    limits: dict[str, Any] = {"vmin": -most, "vmax": most} if symmetric else {}
    ax.set_facecolor(NOTHING)
    return ax.pcolormesh(
        across, down, np.ma.masked_invalid(numbers), cmap=DIVERGING[turned] if symmetric else
        "viridis", rasterized=numbers.size > MOST_CELLS, **limits,
    )  # fmt: skip


def draw_dots(ax: Axes, clear: xr.DataArray, label: str) -> list[Any]:
    """Put a dot into each cell that is clear, or into some of them where cells are small."""
    free = (0.8 * row_height(ax), 0.7 * column_width(ax))
    steps = [
        max(1, int(np.ceil(APART * number / space)))
        for number, space in zip(clear.shape, free, strict=True)
    ]
    chosen = np.zeros(clear.shape, dtype=bool)
    chosen[tuple(slice(step // 2, None, step) for step in steps)] = True
    few = bool(clear.sum() <= chosen.sum())  # each has room for its dot
    chosen[:] |= few
    rows, columns = np.nonzero(chosen & clear.to_numpy())
    down, across = (places_of(clear[name]) for name in clear.dims)
    size = min(4.0, 0.4 * min(space / number for number, space in zip(clear.shape, free,
                                                                      strict=True)))  # fmt: skip
    return list(
        ax.plot(
            across[columns], down[rows], linestyle="none", marker="o", color="black",
            markersize=max(2.0 if few else 1.2, size), label=label,
            markeredgecolor="white", markeredgewidth=0.12 * size,
        )
    )  # fmt: skip


# --- words --------------------------------------------------------------------------------------


def name_axes(ax: Axes, values: xr.DataArray) -> None:
    """Label the axes by the dimensions, and cells without numbers by their names."""
    from matplotlib.ticker import MaxNLocator

    down, across = (values[name] for name in values.dims)
    for labels, axis in ((down, ax.yaxis), (across, ax.xaxis)):
        axis.set_major_locator(MaxNLocator(nbins=5, integer=labels.dtype.kind in "iu"))
    if not is_numeric(across):
        set_tick_labels(ax, "x", names_of(across))
    if not is_numeric(down):
        set_tick_labels(ax, "y", names_of(down))
        ax.invert_yaxis()  # the first name is on top
    label_x(ax, describe_dimension(across))
    label_y(ax, describe_dimension(down))


def names_of(labels: xr.DataArray) -> list[str]:
    """Write the labels of a dimension, dates without a midnight that all have."""
    return [str(name) for name in pd.Index(labels.to_numpy()).astype(str)]


def describe_dimension(labels: xr.DataArray) -> str:
    """Name a dimension in words, and its units in brackets."""
    name = str(labels.attrs.get("long_name") or labels.name).replace("_", " ")
    units = labels.attrs.get("units")
    return escape_math(f"{name} [{units}]" if units else name)


def grey_patch() -> list[Any]:
    """Make the entry of a legend for cells without losses."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=NOTHING, label="no losses")]
