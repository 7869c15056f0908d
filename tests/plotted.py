"""The plots that tests look at, and the way they are described.

``python tests/plotted.py`` writes `tests/images/drawn.json` anew: the places, sizes, colours and
words of what is drawn.
"""

import json
from functools import cache
from html import escape
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import cvstats
from cvstats import plot
from cvstats.reporting.page import WIDTH, draw_svg

DRAWN = Path(__file__).parent / "images" / "drawn.json"
LABELS = {
    "diabetes": {"long_name": "squared_error", "units": "score²"},
    "flights": {"long_name": "Brier score"},
    "flights_by_month": {"long_name": "Brier score"},
}


@cache
def logged(name):
    log = cvstats.datasets.load(name)
    loss = "squared_error" if name == "diabetes" else "brier"
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss=loss)
    losses.attrs = dict(LABELS[name])
    return losses


@cache
def many(number=12):
    rng = np.random.default_rng(1)
    base = rng.exponential(size=300)
    index = pd.MultiIndex.from_arrays(
        [np.arange(300) % 10, np.arange(300)], names=["fold", "point"]
    )
    return pd.DataFrame(
        {f"model_{k}": base + rng.normal(0.03 * k, 0.3, 300) for k in range(number)}, index=index
    )


@cache
def repeated():
    """Four models, eight repetitions of five folds."""
    rng = np.random.default_rng(2)
    folds = np.concatenate([rng.permutation(60) % 5 for _ in range(8)])
    index = pd.MultiIndex.from_arrays(
        [np.repeat(np.arange(8), 60), folds, np.tile(np.arange(60), 8)],
        names=["repetition", "fold", "point"],
    )
    base = np.tile(rng.exponential(size=60), 8)
    return pd.DataFrame(
        {f"model_{k}": base + rng.normal(0.1 * k, 0.3, 480) for k in (2, 0, 3, 1)}, index=index
    )


@cache
def schools(number=100):
    rng = np.random.default_rng(3)
    source = np.arange(10 * number) % number
    index = pd.MultiIndex.from_arrays([source, np.arange(10 * number)], names=["source", "point"])
    effect = rng.normal(3, 1, number)[source]
    return pd.DataFrame(
        {name: effect + rng.normal(size=len(index)) for name in ("ridge", "forest")}, index=index
    )


@cache
def grid():
    """Two forecasts of a field; the second is better in the east, and a corner is masked."""
    rng = np.random.default_rng(4)
    lat, lon = np.linspace(60, -60, 7), np.linspace(-165, 165, 12)
    early = xr.DataArray(
        rng.exponential(size=(80, 7, 12)), dims=("day", "lat", "lon"),
        coords={"point": ("day", np.arange(80)), "lat": lat, "lon": lon},
    )  # fmt: skip
    late = early + rng.normal(0, 0.2, early.shape) - 0.1 * np.sin(np.deg2rad(early["lon"] / 2))
    log = xr.Dataset({"late": late, "early": early})
    log = log.where((log["lat"] < 30) | (log["lon"] > -90))
    return log.assign_attrs(loss="squared_error", units="K²")


def in_view(axis):
    """The labels of ticks that are drawn."""
    if not axis.get_ticklabels():  # those of panels are hidden, except at the left and below
        return []
    low, high = sorted(axis.get_view_interval())
    at = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label for place, label in at if low <= place <= high]


def legible(ax):
    """Assert that no two texts of a figure that was laid out overlap, and that none is cut off."""
    figure, legend = ax.figure, ax.get_legend()
    shown = [other for other in (ax, *ax.child_axes) if other.get_frame_on()]
    texts = [
        *(label for other in shown for axis in (other.xaxis, other.yaxis)
          for label in in_view(axis)), ax.xaxis.label, ax.yaxis.label, *ax.texts,
        ax.xaxis.get_offset_text(), ax.yaxis.get_offset_text(),
        *([] if legend is None else legend.get_texts()),
        *(other.title for other in ax.child_axes),
        *(other.yaxis.label for other in ax.child_axes),  # of a colour bar
        *(other.yaxis.get_offset_text() for other in ax.child_axes),
    ]  # fmt: skip
    boxes = [
        (text.get_text(), text.get_window_extent())
        for text in texts
        if text.get_text() and text.get_visible()
    ]
    assert len(boxes) > 4
    if legend is not None:
        assert legend.get_window_extent().x0 >= -1
    page = figure.bbox
    for words, box in boxes:
        assert box.x0 >= -1, words
        assert box.x1 <= page.x1 + 2.5, words  # less than the room above capitals
        assert box.y0 >= -1, words
        assert box.y1 <= page.y1 + 1, words
    for (one, a), (two, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or along <= 1, (one, two)


def named(axis):
    axis.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def marks(ax):
    """The marks of an Axes by their label."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def reach(collection):
    """The ends of lines, and where they stand."""
    segments = np.array(collection.get_segments())
    return segments[:, 0, 0], segments[:, 1, 0], segments[:, 0, 1]


def as_arrays(losses, models="variables"):
    dataset = losses.to_xarray()
    for name in dataset.data_vars:
        dataset[name].attrs = dict(losses.attrs)
    return (
        dataset
        if models == "variables"
        else dataset.to_dataarray("model").assign_attrs(losses.attrs)
    )


CASES = {
    "forest": lambda ax: plot.forest(logged("diabetes"), ax=ax),
    "folds": lambda ax: plot.folds(logged("diabetes"), ax=ax),
    "folds_once": lambda ax: plot.folds(logged("flights"), ax=ax),
    "stability": lambda ax: plot.stability(logged("diabetes")[["ridge"]], ax=ax),
    "stability_four": lambda ax: plot.stability(repeated(), ax=ax),
    "sources": lambda ax: plot.sources(logged("flights_by_month"), ax=ax),
    "sources_many": lambda ax: plot.sources(schools(), ax=ax),
    "map": lambda ax: plot.map(grid()["late"], ax=ax),
    "map_difference": lambda ax: plot.map(grid(), ax=ax),
    "decomposition": lambda ax: plot.decomposition(logged("diabetes"), ax=ax),
    "comparison": lambda ax: plot.comparison(logged("flights"), ax=ax),
    "matrix": lambda ax: plot.comparison(logged("flights"), kind="matrix", ax=ax),
    "matrix_large": lambda ax: plot.comparison(many(), ax=ax),
    "best_set": lambda ax: plot.best_set(many(), rng=0, ax=ax),
}


def probabilities(sources=0):
    rng = np.random.default_rng(5)
    p = rng.random(400)
    levels = (
        {"point": range(400), "source": np.arange(400) % 40} if sources else {"point": range(400)}
    )
    return pd.DataFrame({**levels, "y_true": (rng.random(400) < p) * 1, "p": p, "q": p**2})


def seasons(number):
    """Losses of two models in folds with long names."""
    folds = np.array([f"season {k} of {number}" for k in range(number)])[np.arange(600) % number]
    index = pd.MultiIndex.from_arrays([folds, range(600)], names=["fold", "point"])
    values = np.random.default_rng(6).exponential(size=(600, 2)) + [0, 0.1]
    return pd.DataFrame(values, index, ["early", "late"])


MORE = {
    **CASES,
    "reliability": lambda ax: plot.reliability(
        probabilities(), prediction=["p", "q"], bins=8, ax=ax
    ),
    "reliability_sources": lambda ax: plot.reliability(
        probabilities(40), prediction="p", bins=5, ax=ax
    ),
    "reliability_panels": lambda ax: plot.reliability(
        probabilities().assign(**{f"p{k}": lambda t, k=k: t["p"] ** k for k in range(1, 9)}),
        prediction=[f"p{k}" for k in range(1, 9)], bins=3, ax=ax,
    ),
    "forest_methods": lambda ax: plot.forest(
        logged("diabetes"), methods=["wald", "naive", "corrected_t"], ax=ax
    ),
    "reference": lambda ax: plot.comparison(many(), reference="model_0", ax=ax),
    "forest_one": lambda ax: plot.forest(logged("flights")["naive_bayes"], ax=ax),
    "forest_sixty": lambda ax: plot.forest(many(60), ax=ax),
    "matrix_sixty": lambda ax: plot.comparison(many(60), ax=ax),
    "matrix_seven": lambda ax: plot.comparison(many(7), kind="matrix", ax=ax),
    "matrix_nine": lambda ax: plot.comparison(many(9), kind="matrix", ax=ax),
    "decomposition_many": lambda ax: plot.decomposition(
        many(3), rho=np.linspace(0, 0.5, 25), ax=ax
    ),
    "decomposition_one_rho": lambda ax: plot.decomposition(many(24), rho=[0.1], ax=ax),
    "folds_named": lambda ax: plot.folds(seasons(9), ax=ax),
    "folds_thirty": lambda ax: plot.folds(seasons(30), ax=ax),
    "folds_eight": lambda ax: plot.folds(many(8), ax=ax),
    "sources_three": lambda ax: plot.sources(schools(3), ax=ax),
    "map_panels": lambda ax: plot.map(
        xr.concat([grid()["late"] * k for k in (1, 2, 3)], "lead"), ax=ax
    ),
    "map_depths": lambda ax: plot.map(
        xr.concat([grid()["late"].rename(lat="depth") * k for k in (1, 2)], "lead"), ax=ax
    ),
    "map_names": lambda ax: plot.map(
        grid()["late"].assign_coords(lon=[f"meridian {k}" for k in range(12)]), ax=ax
    ),
}  # fmt: skip
FIGURES = {
    "narrow": lambda: Figure(figsize=(3.4, 3.9), layout="constrained"),
    "small": lambda: Figure(figsize=(3.3, 2.6)),
    "own": lambda: None,
}
"""A figure that is laid out, one that is not, and that which the plot makes itself."""
BY_SIZE = (
    "reliability", "reliability_panels", "reliability_sources", "forest_sixty", "matrix_sixty",
    "decomposition_many", "folds_eight", "folds_thirty", "map_depths",
    "map_panels",
)  # fmt: skip
"""Of these the plot's own figure depends on the number of rows or panels."""
DESCRIBED = [
    *((name, where) for name in CASES for where in FIGURES),
    *((name, "narrow") for name in MORE if name not in CASES),
    *((name, "own") for name in BY_SIZE),
]


def draw_without_marks(draw, height, tips=(), key="", crop=False):
    """Draw a plot of a report and write its size and tips alone, unless it is cropped to its marks.

    Its figure has the size of the report's, since some plots do not fit into a small one.
    """
    if crop:
        return draw_svg(draw, height, tips, key, crop)
    draw(Figure(figsize=(WIDTH, height), layout="constrained").subplots())
    return write_without_marks(draw, height, tips)


without_marks = pytest.mark.usefixtures("plots_without_marks")
"""Decorates tests that do not look at the marks of the plots of a report."""


def write_without_marks(draw, height, tips=(), *_):
    """Write the size and the tips of a plot of a report, which is not drawn."""
    names = [f'<rect class="tip"><title>{escape(words)}</title></rect>' for *_, words in tips]
    size = f'viewBox="0 0 {72 * WIDTH:.1f} {72 * height:.1f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(names)}</svg>'


TICKED = "left", "bottom", "labelleft", "labelbottom"


def describe(ax, inset=False):
    """The words and the numbers of all that stands on an Axes, artist by artist."""
    x, y, place = ax.xaxis, ax.yaxis, ax.get_axes_locator()
    yield "axes", [ax.get_xlabel(), ax.get_ylabel(), ax.get_title(), ax.get_xscale()], [
        *ax.get_xlim(), *ax.get_ylim(), *(s.get_visible() for s in ax.spines.values()),
        x.label.get_size(), *(at for at in x.get_majorticklocs() if at <= ax.get_xlim()[1]),
    ]  # fmt: skip
    yield "sizes", [ax.get_yscale()], [
        y.label.get_size(), ax.title.get_size(), x.labelpad, y.labelpad,
        *(getattr(place, "_orig_locator", place)._bounds if inset else ()),
        *(at for at in y.get_majorticklocs() if min(ax.get_ylim()) <= at <= max(ax.get_ylim())),
    ]  # fmt: skip
    for axis in (x, y):
        shown, marks = in_view(axis), axis.get_tick_params()
        yield "ticks", [
            *(label.get_text() for label in shown),
            *(str(marks[name]) for name in TICKED if name in marks),
        ], [
            *(t.get_size() for t in shown[:1]), *(t.get_rotation() for t in shown[:1]),
            marks.get("length", -1), len(axis.get_minorticklocs()),
        ]  # fmt: skip
    for line in ax.lines:
        words = [
            line.get_label(),
            to_hex(line.get_color()),
            to_hex(line.get_markerfacecolor()),
            line.get_linestyle(),
            line.get_marker(),
        ]
        sizes = [line.get_linewidth(), line.get_markersize(), line.get_markeredgewidth()]
        yield "line", map(str, words), [*sizes, *style(line), *np.ravel(line.get_xydata())]
    for drawn in ax.collections:
        colours = [
            to_hex(c, True) for c in [*drawn.get_facecolor()[:3], *drawn.get_edgecolor()[:3]]
        ]
        values = drawn.get_array()
        places = [path.vertices for path in drawn.get_paths()[:200]] if values is None else [values]
        numbers = np.concatenate([*map(np.ravel, places), np.ravel(drawn.get_offsets())])
        sizes = [*drawn.get_linewidth()[:3], *getattr(drawn, "get_sizes", list)()[:3]]
        yield (
            "collection",
            [type(drawn).__name__.removeprefix("FillBetween"), *colours],
            [*sizes, *style(drawn), *(drawn.get_clim() if values is not None else ()), *numbers],
        )
    for patch in ax.patches:
        corners = patch.get_patch_transform().transform(patch.get_path().vertices)
        colours = [to_hex(patch.get_facecolor(), True), to_hex(patch.get_edgecolor(), True)]
        colours.append(str(patch.get_hatch()))
        yield "patch", colours, [patch.get_linewidth(), *style(patch), *np.ravel(corners)]
    for text in ax.texts:
        words = [text.get_text(), to_hex(text.get_color()), text.get_ha(), text.get_va()]
        words.append(str(text.get_weight()))
        yield "text", words, [text.get_size(), text.get_rotation(), *text.get_position()]
    if (legend := ax.get_legend()) is not None:
        yield "legend", [text.get_text() for text in legend.get_texts()], [
            legend._ncols, *(text.get_size() for text in legend.get_texts()), legend._loc,
            *within(legend.get_bbox_to_anchor(), ax), legend.borderaxespad, legend.columnspacing,
            legend.handletextpad, legend.get_frame_on(),
        ]  # fmt: skip
    for child in ax.child_axes:
        yield from describe(child, inset=True)


def within(box, ax):
    """The bounds of a box in the coordinates of an Axes."""
    return np.round(box.transformed(ax.transAxes.inverted()).bounds, 3)


def style(artist):
    alpha = artist.get_alpha()
    return [artist.get_zorder(), -1 if alpha is None else alpha, bool(artist.get_rasterized())]


def draw_case(name, where):
    """The Axes of a case, on a figure of one kind, as it is when it is drawn."""
    with mpl.rc_context({"figure.dpi": 72}):
        figure = FIGURES[where]()
        ax = MORE[name](figure and figure.subplots())
        if ax.child_axes or ax.figure.get_layout_engine() is not None:
            ax.figure.draw_without_rendering()
    return ax


def describe_case(ax, where):
    """What a case draws, as JSON holds it."""
    parts = [*describe(ax)]
    if where == "own":
        parts.insert(0, ("figure", [], ax.figure.get_size_inches()))
    return [*few_numbers(parts)]


def few_numbers(parts):
    """Of many numbers a few that tell changes, as JSON holds them."""
    for kind, words, numbers in parts:
        array = np.ma.filled(np.ma.asarray(np.ma.masked_invalid(list(numbers)), float), -999)
        if array.size > 40:
            turned = array * np.cos(np.arange(array.size))
            array = np.array([array.size, array.min(), array.max(), array.mean(), turned.mean()])
        yield [kind, list(words), [float(f"{number:.5g}") for number in array]]


if __name__ == "__main__":
    DRAWN.parent.mkdir(exist_ok=True)
    stored = {}
    for name, where in DESCRIBED:
        stored[f"{name} {where}"] = describe_case(draw_case(name, where), where)
        plt.close("all")
    lines = (
        f"{json.dumps(case)}: {json.dumps(stored[case], ensure_ascii=False)}" for case in stored
    )
    DRAWN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
