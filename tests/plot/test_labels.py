"""The writing around plots: names told apart, legends within the figure, numbers in few digits."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from plotted import in_view, legible, logged, many

from cvstats import plot
from cvstats.errors import LogError
from cvstats.formatting import printable
from cvstats.plot._axes import (
    escape_math,
    keep_differing_words,
    legend_above,
    scale_numbers,
    shorten_names,
)
from cvstats.plot.best_set import choose_ticks

NAMED = "resnet50-imagenet-pretrained-lr0.{:03d}-wd0.0001-seed1-ema"
TWO = [NAMED.format(1), NAMED.format(10)]
LONG = [NAMED.format(k) + "-long" * 4 for k in range(5)]


def test_the_first_word_is_kept_where_there_is_room():
    names = [f"gpt one two three four five six seven {end}" for end in "ab"]
    assert keep_differing_words(names, 24) == ["gpt…six seven a", "gpt…six seven b"]
    assert keep_differing_words(names, 8) == ["gpt…a", "gpt…b"]
    assert keep_differing_words(names, 4) == ["…a", "…b"]


def log(names, scale=1.0, shift=0.0, repetitions=2):
    """Losses of models with these names, with folds and repetitions."""
    rng = np.random.default_rng(3)
    levels = [range(repetitions), range(40)]
    index = pd.MultiIndex.from_product(levels, names=["repetition", "point"])
    index = pd.MultiIndex.from_arrays(
        [
            index.get_level_values(0),
            index.get_level_values(1) % 4,
            index.get_level_values(1) % 4,
            index.get_level_values(1),
        ],
        names=["repetition", "fold", "source", "point"],
    )
    base = rng.exponential(size=len(index))
    models = {
        name: scale * (shift + base + rng.normal(0.1 * k, 0.3, len(index)))
        for k, name in enumerate(names)
    }
    losses = pd.DataFrame(models, index=index)
    losses.attrs = {"long_name": "squared_error", "units": "score²"}
    return losses


DRAWN = {
    "forest": lambda names, ax, **of: plot.forest(log(names, **of), ax=ax),
    "folds": lambda names, ax, **of: plot.folds(log(names, **of).droplevel("source"), ax=ax),
    "stability": lambda names, ax, **of: plot.stability(
        log(names, **of).droplevel("source"), ax=ax
    ),
    "sources": lambda names, ax, **of: plot.sources(log(names, **of).xs(0), ax=ax),
    "decomposition": lambda names, ax, **of: plot.decomposition(
        log(names, **of).xs(0).droplevel("source"), ax=ax
    ),
    "comparison": lambda names, ax, **of: plot.comparison(
        log(names, **of), reference=names[0], ax=ax
    ),
    "matrix": lambda names, ax, **of: plot.comparison(log(names, **of), kind="matrix", ax=ax),
    "best_set": lambda names, ax, **of: plot.best_set(
        log(names, **of).xs(0).droplevel("source"), rng=0, ax=ax
    ),
}


def narrow(height=3.6):
    return Figure(figsize=(3.3, height), dpi=72, layout="constrained").subplots()


def laid_out(ax):
    ax.figure.set_dpi(72)
    ax.figure.draw_without_rendering()
    return ax


def words(artists):
    return [text.get_text() for text in artists if text.get_text()]


# --- names -----------------------------------------------------------------------------------


@given(
    middles=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=12
    ).map(lambda texts: [printable(text) for text in texts]),
    start=st.text("ab-_ $", max_size=60),
    end=st.text("yz-_ $", max_size=60),
    most=st.integers(8, 40),
)
def test_names_that_differ_look_different(middles, start, end, most):
    names = [start + middle + end for middle in middles]
    short = shorten_names(names, most)
    assert len(set(short)) == len(set(names))
    assert len(short) == len(names)
    for name, form in zip(names, short, strict=True):
        assert len(form.replace(r"\$", "$")) <= most
        assert len(name) > most or "…" in form or form == escape_math(name)
    assert shorten_names(names, 200) == [escape_math(name) for name in names]


@given(
    rates=st.lists(st.integers(0, 999), min_size=1, max_size=6, unique=True),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True),
    most=st.sampled_from([8, 11, 16, 20, 25, 28]),
)
def test_names_of_a_grid_look_different(rates, seeds, most):
    names = [f"{NAMED.format(rate)}-s{seed}" for rate in rates for seed in seeds]
    short = shorten_names(names, most)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= most


def test_a_short_name_keeps_the_words_that_differ():
    assert shorten_names(TWO) == ["resnet50…lr0.001-wd0.0001…", "resnet50…lr0.010-wd0.0001…"]
    assert shorten_names(TWO, 16) == ["…lr0.001…seed1…", "…lr0.010…seed1…"]
    assert shorten_names(["ridge", TWO[0]]) == ["ridge", "resnet50-imagene…1-seed1-ema"]
    humps = [f"Polynomial{'Plus' * 3}Degree{k}{'WithoutBias' * 4}Ridge" for k in (2, 3)]
    assert shorten_names(humps) == ["Polynomial…Degree2Without…", "Polynomial…Degree3Without…"]
    assert shorten_names(TWO * 2) == shorten_names(TWO) * 2  # the same name, the same form


def test_names_that_cannot_be_shown_still_differ():
    assert shorten_names(["a\x00", "a\x01", "b\n"]) == ["a\ufffd…(1)", "a\ufffd…(2)", "b "]


def test_the_last_resort_is_a_number():
    names = [f"{'p' * 20}{a}{'q' * 20}{b}{'r' * 20}" for a in "xy" for b in "xy"]
    assert shorten_names(names, 12) == [
        "pppppppp…(1)",
        "pppppppp…(2)",
        "pppppppp…(3)",
        "pppppppp…(4)",
    ]
    assert shorten_names([*names, "pppppppp…(2)"], 12)[1] == "pppppppp…(7)"  # not one that is taken


@pytest.mark.parametrize("name", ["forest", "best_set", "comparison", "decomposition", "matrix"])
def test_rows_of_two_long_names_differ(name):
    ax = laid_out(DRAWN[name](TWO, narrow()))
    rows = [text for text in words(ax.get_yticklabels()) if not text.startswith("ρ")]
    if name == "comparison":
        rows = rows[0].split("\n− ")
    assert len(rows) == 2
    assert rows[0] != rows[1]
    assert all("lr0.0" in row for row in rows)
    legible(ax)


# --- legends ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "width", "layout"),
    [("folds", 3.3, "constrained"), ("stability", 5.0, "constrained"), ("sources", 3.3, None)],
)
def test_a_legend_of_long_names_stays_within_the_figure(name, width, layout):
    figure = Figure(figsize=(width, 4.0), layout=layout)
    ax = DRAWN[name](LONG, figure.subplots())
    figure.draw_without_rendering()  # warns where a plot has no room
    box = ax.get_legend().get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1 + 1
    if layout:
        assert box.y1 <= figure.bbox.y1 + 1
    shown = words(ax.get_legend().get_texts())
    assert len(set(shown)) == 5
    assert all(f"lr0.{k:03d}" in text for k, text in enumerate(shown))


def test_names_in_a_legend_are_no_shorter_than_needed():
    """The wider the figure, the longer the names, in steps."""
    for width, length in zip(
        (1.2, 1.6, 2.0, 2.5, 3.1, 3.8, 4.7, 5.75, 6.8),
        (8, 12, 16, 22, 28, 36, 45, 60, 70),
        strict=True,
    ):
        ax = Figure(figsize=(width, 4.0), dpi=72).subplots()
        for k in range(2):
            ax.plot([0, 1], label=f"{k}" + "n" * 69)
        legend_above(ax)
        assert max(map(len, words(ax.get_legend().get_texts()))) == length


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scale", "power"),
    [
        *((name, 1e12, "10¹²") for name in DRAWN),
        ("matrix", -1e12, "10¹²"),
        ("folds", 1e-6, "10⁻⁶"),
    ],
)
def test_powers_of_ten_stand_in_the_label(name, scale, power):
    ax = laid_out(DRAWN[name](["a", "b", "c"], narrow(), scale=scale))
    legible(ax)
    axes = [ax, *ax.child_axes]
    for axis in (axis for each in axes for axis in (each.xaxis, each.yaxis)):
        assert axis.get_offset_text().get_text() == ""
    labels = " ".join(f"{each.get_xlabel()} {each.get_ylabel()}" for each in axes)
    if name in ("forest", "folds", "stability", "sources"):
        assert f"in\N{NO-BREAK SPACE}{power}" in labels
    elif name != "best_set":
        assert "in\N{NO-BREAK SPACE}10" in labels  # of differences, or squared


@pytest.mark.parametrize("name", ["forest", "folds"])
@pytest.mark.parametrize(("shift", "taken"), [(1e9, "minus"), (-1e9, "plus")])
def test_a_large_base_stands_in_the_label(name, shift, taken):
    ax = laid_out(DRAWN[name](["a", "b"], narrow(), shift=shift))
    axis, label = (ax.xaxis, ax.get_xlabel()) if name == "forest" else (ax.yaxis, ax.get_ylabel())
    assert f"{taken}\N{NO-BREAK SPACE}" in label
    shown = words(in_view(axis))
    assert len(set(shown)) == len(shown) > 1
    assert max(map(len, shown)) <= 6
    legible(ax)


def test_an_axes_with_room_on_the_right_keeps_it():
    ax = plot.forest(logged("diabetes"), ax=Figure(figsize=(5, 3)).subplots())
    left, right = ax.get_position().x0, ax.get_position().x1
    assert left > 0.2  # room for the names
    assert abs(right - 0.9) < 0.02


def test_numbers_between_limits():
    for low, high, label, words in (
        (0.0, 2e12, ", in 10¹²", "1.5"),
        (-2e12, -1e12, ", in 10¹²", "−1.5"),
        (1e9 + 1, 1e9 + 2, ", minus 1,000,000,002", "−0.5"),
        (-1e9 - 1, -1e9 + 1, ", plus 1,000,000,000", "0"),
        (1e12 + 1e6, 1e12 + 3e6, ", minus 1,000,000,000,000, in 10⁶", "2"),
    ):
        writing, told_of = scale_numbers(low, high)
        assert told_of.replace("\N{NO-BREAK SPACE}", " ") == label
        assert writing((low + high) / 2 if "−1" not in words else -1.5e12) in (words, "1")
    for low, high in ((0.0, 1.0), (0.0, 0.0), (-np.inf, 1.0), (1.0, 1.0)):
        assert scale_numbers(low, high)[1] == ""
    assert scale_numbers(0.0, 5e-324)[1] == ", in\N{NO-BREAK SPACE}10⁻³⁰⁰"


@pytest.mark.parametrize("ax", [None, "narrow"])
def test_a_level_stands_on_no_line_of_its_own(ax):
    drawn = DRAWN["comparison"](["a", "b"], narrow() if ax else None)
    lines = drawn.get_xlabel().split("\n")
    assert not any(line.strip(" ,").endswith("%") and len(line) < 6 for line in lines)
    assert "[score²],\N{NO-BREAK SPACE}95%" in drawn.get_xlabel()
    plt.close("all")


# --- many models -----------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "height"), [(12, 2.2), (30, 3.0)])
def test_a_low_matrix_names_as_many_rows_as_fit(number, height):
    figure = Figure(figsize=(7, height), dpi=72, layout="constrained")
    ax = laid_out(plot.comparison(many(number), ax=figure.subplots()))
    legible(ax)
    assert len(ax.get_yticks()) >= 6


@pytest.mark.parametrize("name", ["best_set", "reference", "decomposition"])
def test_sixty_rows_are_named_as_far_as_there_is_room(name):
    if name == "reference":
        ax = plot.comparison(many(60), reference="model_0", ax=narrow())
    elif name == "best_set":
        ax = plot.best_set(many(60), rng=0, ax=narrow())
    else:
        ax = plot.decomposition(many(60), rho=[0.1], ax=narrow())
    laid_out(ax)
    legible(ax)
    assert 8 < len(words(ax.get_yticklabels())) < 20


def test_the_last_row_keeps_its_name():
    months = logged("flights_by_month")
    ax = laid_out(plot.sources(months, ax=narrow(2.0)))
    shown = words(in_view(ax.yaxis))
    assert shown[-1] == "new sources"
    assert len(shown) < 10
    legible(ax)


def test_bars_too_narrow_for_names_are_told_below():
    ax = laid_out(DRAWN["decomposition"]([f"model_{k}" for k in range(7)], narrow(3.0)))
    assert words(ax.get_yticklabels()) == [f"model_{k}" for k in range(7)]
    assert "ρ = 0, 0.1, 0.2, 0.3" in ax.get_xlabel()
    legible(ax)


def test_rank_one_has_a_tick_and_stands_off_the_frame():
    for ax in (plot.best_set(many(60), rng=0), plot.best_set(many(60), rng=0, ax=narrow())):
        laid_out(ax)
        assert ax.get_xticks()[0] == 1
        assert words(ax.get_xticklabels())[0] == "1"
        mark = ax.transData.transform((1, 0))[0] - 3 / 72 * ax.figure.dpi
        assert mark > ax.get_window_extent().x0
        assert "1\N{NO-BREAK SPACE}is\N{NO-BREAK SPACE}best" in ax.get_xlabel()
    plt.close("all")
    assert choose_ticks(2, 10) == [1, 2]
    assert choose_ticks(12, 10) == [1, 3, 5, 7, 9, 11]
    assert choose_ticks(60, 7) == [1, 10, 20, 30, 40, 50, 60]
    assert choose_ticks(30, 7) == [1, 5, 10, 15, 20, 25, 30]


# --- where to draw ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ax", "got", "way"),
    [
        (3, "an int", r"figure, ax = plt\.subplots\(\)"),
        (Figure(), "a Figure", r"figure, ax = plt\.subplots\(\)"),
        (Figure().subplots(1, 2), "several things", r"ax=axes\[0\]"),
        ([], "several things", r"ax=axes\[0\]"),
    ],
)
def test_what_is_no_axes_is_told(ax, got, way):
    words = rf"ax= is {got}\. Expected one matplotlib Axes\. .*{way}\.$"
    for draw in DRAWN.values():
        with pytest.raises(LogError, match=words):
            draw(["a", "b"], ax)


def test_zero_has_no_sign():
    write, _ = scale_numbers(999.9995, 1000.0005)
    assert write(1000.0 - 1e-12) == "0"
    write, _ = scale_numbers(-2e6, 2e6)
    assert write(-1e-9) == "0"


@pytest.mark.parametrize(("number", "longest"), [(19, 28), (20, 20)])
def test_names_of_many_models_in_a_matrix_are_short(number, longest):
    losses = many(number).rename(columns=lambda name: f"{'a-long-name-' * 4}{name}")
    shown = words(plot.comparison(losses).get_yticklabels())
    assert max(len(name.split("  ")[0]) for name in shown) == longest
    plt.close("all")


def test_intervals_that_are_too_narrow_are_named_below_the_axis():
    """In each plot of the flights, whose months are split between folds."""
    losses = logged("flights")
    repeated = pd.concat({0: losses, 1: losses + 1e-4}, names=["repetition"])
    cases = [
        (plot.forest, losses, {}), (plot.forest, losses, {"methods": ["wald", "naive"]}),
        (plot.comparison, losses, {"kind": "intervals"}),
        (plot.comparison, losses, {"kind": "matrix"}), (plot.best_set, losses, {"rng": 0}),
        (plot.stability, repeated, {}),
    ]  # fmt: skip
    for draw, log, options in cases:
        label = draw(log, ax=Figure(figsize=(7, 5)).subplots(), **options).get_xlabel()
        assert label.splitlines()[-1] == "caution: sources ignored", draw
    by_month = logged("flights_by_month")
    for draw, log, options in (
        (plot.forest, losses, {"methods": ["clustered", "naive"]}),
        (plot.forest, by_month, {}), (plot.comparison, by_month, {}), (plot.sources, by_month, {}),
        (plot.best_set, by_month, {"rng": 0}),
    ):  # fmt: skip
        assert "caution" not in draw(log, ax=Figure().subplots(), **options).get_xlabel(), draw


@pytest.mark.parametrize(("walks", "named"), [(1, False), (2, True)])
def test_cautions_of_many_cells_are_named_below_a_map(walks, named):
    """A random walk in one of 16 cells may be due to chance, and in two it is not."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=200, name="point")
    grid = xr.DataArray(
        rng.normal(size=(200, 4, 4)), dims=("point", "lat", "lon"), coords={"point": days}
    )
    grid[:, 0, :walks] = np.cumsum(grid[:, 0, :walks], axis=0)
    for show, shown in (("half-width", named), ("estimate", False)):
        label = plot.map(grid, show=show, ax=Figure().subplots()).get_xlabel()
        assert label == "lon" + "\ncaution: serial dependence" * shown
    label = plot.map(grid, grid * 0, ax=Figure().subplots()).get_xlabel()
    assert label.endswith("caution: serial dependence") == named


@pytest.mark.parametrize("columns", [1, 2])
def test_names_stay_inside_after_a_tight_layout(columns):
    figure = Figure(figsize=(4 * columns, 3))
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for ax in axes:
        plot.forest(logged("flights"), ax=ax)
    for after in (lambda: None, figure.tight_layout):
        after()
        for ax in axes:
            box = ax.get_tightbbox()
            assert min(box.x0, box.y0) >= 0
            assert box.x1 <= figure.bbox.width


def test_names_stay_inside_in_a_grid_with_margins_of_its_own():
    figure = Figure(figsize=(4, 3))
    ax = figure.add_subplot(figure.add_gridspec(left=0.01, bottom=0.01)[0])
    box = plot.forest(logged("flights"), ax=ax).get_tightbbox()
    assert min(box.x0, box.y0) >= 0
