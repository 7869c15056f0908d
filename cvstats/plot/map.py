"""Maps of gridded logs: half-widths, estimates, or the difference of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.comparisons.compare import compare
from cvstats.core.orientation import targets_of
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice, describe_type, listed
from cvstats.log.log import Losses
from cvstats.options import Adjust, Missing
from cvstats.plot._axes import (
    LETTER,
    MEAN,
    add_bar,
    canvas,
    column_width,
    describe_level,
    describe_loss,
    describe_significance,
    diverging,
    draw_panels,
    edges_of,
    escape_math,
    ink,
    is_dark,
    is_numeric,
    keep_inside,
    label_x,
    label_y,
    legend_above,
    name_cautions,
    paper,
    places_of,
    read_facts,
    row_height,
    set_tick_labels,
    shorten_names,
    show_direction,
)
from cvstats.recommend import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh


SHOWN = ("half-width", "estimate", "difference")
EASTWARD = ("x", "lon", "longitude", "east", "easting", "col", "column")
"""Names of dimensions that run from left to right."""
NORTHWARD = ("y", "lat", "latitude", "north", "northing", "row")
"""Names of dimensions that run from bottom to top."""
DEGREES = {"lon": "degrees_east", "longitude": "degrees_east",
           "lat": "degrees_north", "latitude": "degrees_north"}  # fmt: skip
NOTHING = "#D9D9D9"
"""The gray of cells without losses."""
APART = 5.0
"""Spacing of dots in points; with smaller cells only some are dotted."""
MOST_CELLS = 10_000
"""Number of cells above which grids are rasterized."""
LONGEST = 18
"""Length of names of models below a map."""
BAR = 75.0
"""Width of the color bar with its numbers and label, in points."""


def map(
    losses: Losses,
    other: Losses | None = None,
    *,
    show: Literal["half-width", "estimate", "difference"] | None = None,
    x: str | None = None,
    y: str | None = None,
    method: str | None = None,
    adjust: Adjust | None = "bh",
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of the half-widths of intervals, or of the differences between two models.

    The target in each cell is the target of its interval, or the difference between the targets of
    two models; see `compare`.

    Parameters
    ----------
    losses : DataArray or Dataset
        A log with two carried dimensions, such as latitude and longitude. A third, such as the
        lead time, or several models make a panel each.
    other : the same kind, optional
        The losses of the other model on the same evaluations.
    show : {"half-width", "estimate", "difference"}, optional
        By default the difference if there are two models, otherwise the half-width.
    x, y : str, optional
        The dimensions from left to right and from bottom to top. By default those named like
        longitude and latitude, or the last two.
    method : str, optional
        The name of an interval; by default the choice of `cvstats.interval` or `compare`.
    adjust : {"bh", "holm", "bonferroni", None}, optional
        How p-values are adjusted for the number of cells: "bh" controls the false discovery rate,
        "holm" and "bonferroni" the family-wise error rate.
    alpha : float, optional
        One minus the level of intervals, and the threshold for adjusted p-values.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped from the cell. A cell
        without losses is gray in either case.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A colored square for each cell, and a color bar. Differences have dots where the
        adjusted p-value is below ``alpha``, rings where the second model is better; of small cells
        only every second, third, … has one. Panels are in ``child_axes``.

    Raises
    ------
    LogError
        If the log is not an array, has fewer than two carried dimensions or more than three,
        models included, or its panels do not fit.

    Notes
    -----
    Blue means that the first model of a pair is better. Neighboring cells are often correlated;
    "bh" remains valid under positive dependence. Latitudes and longitudes are drawn in an
    equal-area cylindrical projection, and other coordinates of a plane in proportion.

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
    >>> ax.get_xlabel().splitlines()[0], ax.get_ylabel()
    ('lon', 'lat')
    """
    facts = read_facts(losses, missing)
    checked_choice("show", show, (*SHOWN, None))
    if not isinstance(facts.losses, (xr.DataArray, xr.Dataset)):
        raise LogError(
            f"{describe_type(facts.losses)} has no grid of cells. Expected an xarray object "
            "with two carried dimensions, as in log.to_xarray()."
        )
    models = len(facts.log.labels.models)
    if show is None:
        show = "difference" if other is not None or models > 1 else "half-width"
    if show == "difference":
        options: dict[str, Any] = {"method": method, "adjust": adjust, "alpha": alpha}
        result: Any = facts.apply(compare, **options) if other is None else (
            compare(losses, other, missing=missing, **options)
        )  # fmt: skip
    elif other is not None:
        raise LogError(
            f"show={show!r} needs one model, but two were passed. Pass one of them, or use "
            "show='difference'."
        )
    else:
        result = facts.apply(interval, method=method, alpha=alpha)
    found = arrange(show_direction(result.compute(), facts), x, y)
    if show == "half-width":
        values = (found["upper"] - found["lower"]) / 2
        words = f"half-width of the {describe_level(alpha)} interval, {describe_loss(facts)}"
    else:
        values = found[show]
        words = describe_loss(facts, MEAN if show == "estimate" else "difference in ")
    symmetric = show == "difference"
    marks = against = None
    if symmetric:
        marks = found["p_adjusted" if "p_adjusted" in found else "p_value"] < alpha
        against = None if targets_of(facts.attrs) else (values > 0) != facts.is_score
    sides = name_sides(found)
    limits = limit_colours(values, symmetric)
    images: list[QuadMesh] = []
    keys: dict[str, Any] = {}  # what the legend explains

    def draw(panel: Axes, at: dict[str, int]) -> None:
        cells = values.isel(at)
        images.append(
            draw_cells(panel, cells, symmetric=symmetric, turned=facts.is_score, limits=limits)
        )
        if marks is not None:
            second = None if against is None else against.isel(at)
            labels = ["clear"] if second is None else [f"{name} better" for name in sides]
            dots = draw_dots(panel, marks.isel(at), *labels, against=second)
            keys.update({dot.get_label(): dot for dot in dots})
        mark_axes(panel, cells)

    shape = shape_of(values)
    if values.ndim == 2:
        wide = min(3.7, 5.0 / shape)
        ax = canvas(ax, (wide * shape - 0.4) / 0.27, width=wide + 1.3)
        draw(ax, {})
    else:
        names = name_panels(found, str(values.dims[0]))
        places = dict(zip(names, range(len(names)), strict=True))
        beside = 14 + LETTER["small"] * max(len(name) for name in names_of(values[values.dims[1]]))
        ax = draw_panels(
            ax, names, lambda panel, name: draw(panel, {str(values.dims[0]): places[name]}),
            numbers=None, beside=min(beside, 60.0), aside=BAR, aspect=1 / shape,
        )  # fmt: skip
    below = [] if marks is None else [f"dot: {describe_significance(alpha, adjust, values.size)}"]
    below += [] if against is None else [f"blue: {sides[0]} is better"]
    below += [] if show == "estimate" else name_cautions(found)
    label_dimensions(ax, values, *below)
    add_map_bar(ax, images[0], words, values if images[0].axes is ax else None)
    if values.isnull().any():
        from matplotlib.patches import Patch

        gray = "#4D4D4D" if is_dark(ax) else NOTHING
        keys["no losses"] = Patch(facecolor=gray, label="no losses")
    if keys:
        legend_above(ax, list(keys.values()), BAR)
    return keep_inside(ax)


# --- the grid -----------------------------------------------------------------------------------


def arrange(result: xr.Dataset, x: str | None, y: str | None) -> xr.Dataset:
    """Bring the dimensions into the order panels, rows, columns; coordinates ascend."""
    for name in [name for name, size in result.sizes.items() if size == 1]:
        if name in ("model", "pair") or len(result.sizes) > 2:
            result = result.isel({name: 0})
    dims = [str(name) for name in result.sizes]
    cells = [name for name in dims if name not in ("model", "pair")]
    for option, name in (("x", x), ("y", y)):
        if name is not None and name not in cells:
            raise LogError(f"{option}={name!r} is not a dimension of the grid. Expected one of "
                           f"{listed([repr(name) for name in cells])}.")  # fmt: skip
    if x is not None and x == y:
        raise LogError(f"x and y are both {y!r}. Expected two dimensions.")
    if len(cells) < 2 or len(dims) > 3:
        way = (
            "Draw its intervals with cvstats.plot.forest." if len(cells) < 2
            else f"Choose one of the others, as in log.isel({cells[0]}=0)."
        )  # fmt: skip
        several = " and several models" if len(dims) > len(cells) else ""
        raise LogError(
            f"the log carries {len(cells)} dimension{'s' * (len(cells) != 1)} "
            f"({listed(cells) or 'none'}){several}. "
            f"Expected two of a grid, and at most one more, or several models, as panels. {way}"
        )
    across = x or next((name for name in cells if name.lower() in EASTWARD and name != y), None)
    down = y or next((name for name in cells if name.lower() in NORTHWARD and name != across), None)
    across = across or [name for name in cells if name != down][-1]
    down = down or [name for name in cells if name != across][-1]
    result = result.transpose(..., down, across)
    numeric = [name for name in (down, across) if is_numeric(result[name])]
    return result.sortby(numeric) if numeric else result


def name_panels(result: xr.Dataset, dim: str) -> list[str]:
    """Name each panel by its model, pair of models or label."""
    if dim == "pair":
        pairs = zip(result["model"].values, result["other"].values, strict=True)
        return [f"{one} − {two}" for one, two in pairs]
    named = names_of(result[dim])
    return named if dim == "model" else [f"{dim} {label}" for label in named]


def name_sides(result: xr.Dataset) -> list[str]:
    """Name the two models of the only pair, or else the first and the second."""
    if {"model", "other"} <= set(result.coords) and result["other"].ndim == 0:
        names = [str(result[name].values) for name in ("model", "other")]
        if names != ["model", "other"] and not {"", "None"} & set(names):  # they have names
            return [escape_math(name) for name in shorten_names(names, LONGEST)]
    return ["first", "second"]


def limit_colours(values: xr.DataArray, symmetric: bool) -> tuple[float, float]:
    """Return the smallest and the largest value, or limits symmetric about 0."""
    numbers = values.to_numpy()
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        raise LogError("no cell of the grid has losses. Expected losses in at least one cell.")
    most = float(np.abs(known).max()) or 1.0
    return (-most, most) if symmetric else (float(known.min()), float(known.max()))


def draw_cells(
    ax: Axes, values: xr.DataArray, *, symmetric: bool, turned: bool,
    limits: tuple[float, float] | None = None,
) -> QuadMesh:  # fmt: skip
    """Draw a square for each cell; cells without a value are gray."""
    down, across = (edges_of(places_of(values[name])) for name in values.dims)
    least, most = limits or limit_colours(values, symmetric)
    colours = diverging(ax, turned) if symmetric else "viridis"
    if is_globe(values):
        down = np.clip(down, -90, 90)
        ax.set_yscale("function", functions=(sine, arcsine))
        ax.set_ylim(down[0], down[-1])
    ax.set_box_aspect(proportion(values))
    ax.set_facecolor("#4D4D4D" if is_dark(ax) else NOTHING)
    return ax.pcolormesh(
        across, down, np.ma.masked_invalid(values.to_numpy()), cmap=colours, vmin=least, vmax=most,
        rasterized=values.size > MOST_CELLS,
    )  # fmt: skip


def is_globe(values: xr.DataArray) -> bool:
    """Whether the rows and columns of a grid are latitudes and longitudes."""
    return all(
        str(name).lower() in DEGREES and is_numeric(values[name])
        or values[name].attrs.get("units") in DEGREES.values()
        for name in values.dims[-2:]
    ) and bool((abs(values[values.dims[-2]]) <= 90).all())  # fmt: skip


def sine(degrees: FloatArray) -> FloatArray:
    """Project latitudes so that equal areas of a sphere are equal areas of the page."""
    return np.sin(np.deg2rad(np.clip(degrees, -90, 90)))


def arcsine(heights: FloatArray) -> FloatArray:
    """Return the latitudes of projected heights."""
    return np.rad2deg(np.arcsin(np.clip(heights, -1, 1)))


def proportion(values: xr.DataArray) -> float | None:
    """Return the height of a map relative to its width; None where there is no plane."""
    down, across = values.dims[-2:]
    high, wide = (np.ptp(edges_of(places_of(values[name]))) for name in (down, across))
    if is_globe(values):
        north = np.clip(edges_of(places_of(values[down])), -90, 90)
        low, top = np.deg2rad([north.min(), north.max()])
        high = np.sin(top) - np.sin(low)
        # the mean of cos² over the area: shapes are accurate for most of the map
        true = 1 - (np.sin(top) ** 3 - np.sin(low) ** 3) / (3 * high)
        high, wide = high / true, np.deg2rad(wide)
    elif not (str(across).lower() in EASTWARD and str(down).lower() in NORTHWARD):
        return None
    return float(np.clip(high / wide, 0.2, 3.0))


def shape_of(values: xr.DataArray) -> float:
    """Return the height of the plot of a grid relative to its width."""
    return proportion(values) or float(np.clip(values.shape[-2] / values.shape[-1], 0.4, 1.4))


def draw_dots(
    ax: Axes, clear: xr.DataArray, *labels: str, against: xr.DataArray | None = None
) -> list[Any]:
    """Draw a dot in each significant cell, or in some of them if cells are small.

    Cells in which the second model is better, ``against``, have rings, which differ even in
    grayscale.
    """
    free = (0.8 * row_height(ax), 0.7 * column_width(ax))
    steps = [
        max(1, int(np.ceil(APART * number / space)))
        for number, space in zip(clear.shape, free, strict=True)
    ]
    chosen = np.zeros(clear.shape, dtype=bool)
    chosen[tuple(slice(step // 2, None, step) for step in steps)] = True
    few = bool(clear.sum() <= chosen.sum())  # every cell has space for a dot
    chosen = (chosen | few) & clear.to_numpy()
    down, across = (places_of(clear[name]) for name in clear.dims)
    apart = min(space / number for number, space in zip(clear.shape, free, strict=True))
    size = max(2.0 if few else 1.2, min(4.0, 0.4 * apart))
    rings = np.zeros_like(chosen) if against is None else chosen & against.to_numpy()
    drawn = []
    for here, face, edge, words in (
        (chosen & ~rings, ink(ax), paper(ax), labels[0]), (rings, paper(ax), ink(ax), labels[-1]),
    ):  # fmt: skip
        rows, columns = np.nonzero(here)
        if len(rows):
            drawn += ax.plot(
                across[columns], down[rows], linestyle="none", marker="o", color=face,
                markersize=size, markeredgecolor=edge, markeredgewidth=0.2 * size, label=words,
            )  # fmt: skip
    return drawn


def add_map_bar(ax: Axes, image: QuadMesh, words: str, values: xr.DataArray | None) -> None:
    """Add a color bar as high as the map, or as all panels."""
    high = row_height(ax) - 50
    if values is not None:
        high = min(high, shape_of(values) * (column_width(ax) - BAR))
    add_bar(ax, image, words, int(high / LETTER["small"]))


# --- words --------------------------------------------------------------------------------------


def mark_axes(ax: Axes, values: xr.DataArray) -> None:
    """Write coordinates along the axes, and the names of cells without numbers."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    down, across = (values[name] for name in values.dims)
    nbins = 3 if 72 / ax.figure.dpi * ax.get_window_extent().width < 150 else 5
    for labels, axis in ((down, ax.yaxis), (across, ax.xaxis)):
        most = nbins if axis is ax.xaxis else 5
        degrees: dict[str, Any] = {"steps": [1, 1.5, 3, 6, 9, 10]} if is_globe(values) else {}
        locator = MaxNLocator(nbins=most, integer=labels.dtype.kind in "iu", **degrees)
        axis.set_major_locator(locator)
        if degrees and axis is ax.yaxis:  # there is nothing beyond the poles
            ticks = np.asarray(locator.tick_values(*ax.get_ylim()))
            axis.set_major_locator(FixedLocator(ticks[np.abs(ticks) <= 90].tolist()))
    if not is_numeric(across):
        set_tick_labels(ax, "x", names_of(across))
    if not is_numeric(down):
        set_tick_labels(ax, "y", names_of(down))
        ax.yaxis.set_inverted(True)  # the first name is on top


def label_dimensions(ax: Axes, values: xr.DataArray, *more: str) -> None:
    """Label the axes by the dimensions, with more lines below the horizontal one."""
    down, across = (values[name] for name in values.dims[-2:])
    label_x(ax, describe_dimension(across), *more)
    label_y(ax, describe_dimension(down))


def names_of(labels: xr.DataArray) -> list[str]:
    """Format the labels of a dimension, with dates without times if all are at midnight."""
    return [str(name) for name in pd.Index(labels.to_numpy()).astype(str)]


def describe_dimension(labels: xr.DataArray) -> str:
    """Name a dimension in words, and its units in brackets."""
    name = str(labels.attrs.get("long_name") or labels.name).replace("_", " ")
    units = labels.attrs.get("units")
    return escape_math(f"{name} [{units}]" if units else name)
