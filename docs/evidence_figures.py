"""Plots and tables of the page about coverage, made from the figures that the package ships."""

import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure

from cvstats.recommend import read_figures

STUDY = read_figures()
POPULATIONS = pd.DataFrame(STUDY["populations"]).set_index("name")
TRUTHS = {
    "trained": "the models trained",
    "expected": "models of such training sets",
    "expected_at_n": "models of all points",
    "final": "the model of all points",
    "one_source": "one new source",
    "these_sources": "these sources",
}
"""What an interval is held to, in words."""

PARTS = {"points": "points", "groups": "groups", "sources": "groups", "ordered": "times",
         "repeated answers": "answers"}  # fmt: skip


def name_rows(table):
    """Name a method with the options that it was asked with."""

    def write(options):
        return ", ".join(f"{name}={value}" for name, value in options.items() if name != "n_draws")

    words = table["options"].map(write)
    return table["method"] + words.map(lambda text: f" ({text})" if text else "")


PLANS = {
    "k_fold(n_folds=10)": "10 folds", "holdout(ratio=0.8)": "a fifth held out",
    "subsampling(n_repetitions=25, ratio=0.9)": "25 random splits",
    "k_fold(n_folds=10, grouped=True)": "10 folds of whole groups",
    "leave_one_source_out()": "one source left out at a time",
}  # fmt: skip
"""How the points of a log were split, in words; other logs have one test set."""


def defaults():
    """All figures of `interval`, a row each, named by how the points were split."""
    table = pd.DataFrame(STUDY["intervals"])
    table = table[(table["method"] == "interval") & table["coverage"].notna()]
    return table.assign(name=table["plan"].map(PLANS).fillna("one test set"))


def intervals():
    """All figures of intervals by name, a row each."""
    table = pd.DataFrame(STUDY["intervals"])
    table = table[(table["method"] != "interval") & table["coverage"].notna()]
    return table.assign(name=name_rows(table), held_to=table["target"].map(TRUTHS))


def usual(table):
    """Of each method the rows with its usual options, or with the first ones it was asked with."""
    first = table.sort_values("options", key=lambda options: options.map(len), kind="stable")
    return table[table["name"] == table["method"].map(first.groupby("method")["name"].first())]


def unusual(table):
    """The rows with other options than the usual ones."""
    return table[~table["name"].isin(usual(table)["name"])]


def nearest(table, n):
    """Of each method and population the row with the number of points nearest to n."""
    gap = np.log(table["n"] / n).abs()
    return table.loc[gap.groupby([table["name"], table["population"]]).idxmin()]


def largest(table):
    """Of each method and population the row with the most points."""
    return table.loc[table.groupby(["name", "population"])["n"].idxmax()]


def describe_study():
    """Say what was run, when, and by which versions."""
    study = STUDY["study"]
    versions = ", ".join(f"{name} {number}" for name, number in study["versions"].items())
    return Markdown(
        f"{study['runs']:,} simulated logs of {len(POPULATIONS)} populations, drawn from seed "
        f"{study['seed']} in {study['minutes']:.0f} minutes on {study['date']}; {versions}."
    )


def show_table(table, digits=3):
    """Show a table, numbers to some digits."""
    return HTML(
        table.to_html(index=False, float_format=f"{{:.{digits}g}}".format, border=0, na_rep="")
    )


def verdicts():
    """All verdicts, a row each, and the contest with its plan."""
    table = pd.DataFrame(STUDY["verdicts"])
    several = table.groupby("population")["plan"].transform("nunique") > 1
    short = table["plan"].str.extract(r"^(\w+)")[0].str.replace("_", " ")
    contest = table["population"] + (", " + short).where(several, "")
    sizes = table.groupby(contest)["n"].transform("nunique") > 1
    contest += (" (" + table["n"].astype(str) + ")").where(sizes, "")
    return table.assign(population=contest, name=table["method"])


def draw_verdicts(share):
    """Draw how often each verdict is wrong, or finds the better model."""
    table = verdicts()
    order = list(dict.fromkeys(table["population"]))
    names = list(dict.fromkeys(table["name"]))
    grid = table.pivot(index="name", columns="population", values=share).loc[names, order]
    if share == "wrong":
        return draw_grid(grid, TwoSlopeNorm(0.05, 0.0, 0.3), "RdYlBu_r")
    return draw_grid(grid, Normalize(0.0, 1.0), "Blues")


def describe_verdicts():
    """List the verdicts of `summary`: how often wrong, with and without a caution."""
    table = verdicts()
    table = table[table["method"] == "summary"]
    names = {"population": "", "plan": "evaluated by", "n": "points", "runs": "logs",
             "wrong": "wrong", "cautioned": "logs with a caution",
             "silent_wrong": "wrong without a caution", "found": "better model found"}  # fmt: skip
    return show_table(table[[*names]].rename(columns=names))


def list_populations():
    """List the populations, and how the truth about each is known."""
    table = POPULATIONS.reset_index()
    table["kind"] = table["kind"].str.replace("zero_one", "0 or 1")
    names = {"name": "", "title": "what it is", "kind": "loss", "design": "what counts",
             "truth": "how the truth is known"}  # fmt: skip
    return show_table(table[[*names]].rename(columns=names))


def draw_heat_map(table, share="coverage", nominal=0.95, lowest=0.5):
    """Draw a cell for each method and population, with its share in percent."""
    order = [name for name in POPULATIONS.index if name in set(table["population"])]
    grid = table.pivot(index="name", columns="population", values=share)[order]
    grid = grid.sort_index()
    if share == "coverage":
        return draw_grid(grid, TwoSlopeNorm(nominal, lowest, 1.0), "RdYlBu")
    return draw_grid(grid, TwoSlopeNorm(nominal, 0.0, lowest), "RdYlBu_r")


def draw_grid(grid, norm, colors):
    """Draw shares in percent, a row for each method and a column for each population."""
    rows, columns = grid.shape
    figure = Figure(figsize=(2.3 + 0.23 * columns, 1.6 + 0.19 * rows), layout="constrained")
    ax = figure.subplots()
    values = grid.to_numpy(dtype=float)
    ax.imshow(np.clip(values, norm.vmin, norm.vmax), norm=norm, cmap=colors, aspect="auto")
    ax.set_facecolor("white")
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            dark = not 0.1 < norm(np.clip(value, norm.vmin, norm.vmax)) < 0.9
            ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=7,
                    color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(
        range(columns), grid.columns, rotation=60, ha="right", rotation_mode="anchor", fontsize=7
    )
    ax.set_yticks(range(rows), grid.index, fontsize=7)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return figure


def draw_coverage_and_width(table, columns=4):
    """Draw a panel for each population: how wide a method's intervals are, how often they hold."""
    order = [name for name in POPULATIONS.index if (table["population"] == name).sum() > 5]
    rows = -(-len(order) // columns)
    figure = Figure(figsize=(11, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    names = sorted(set(table.loc[table["population"].isin(order), "method"]))
    marks = dict(zip(names, "osD^v<>PX*hpd8H+x1234|_" * 2, strict=False))
    shades = {name: f"C{at % 10}" for at, name in enumerate(names)}
    for ax, population in zip(panels, order, strict=False):
        for _, row in table[table["population"] == population].iterrows():
            ax.plot(row["width_ratio"], 100 * row["coverage"], marks[row["method"]],
                    color=shades[row["method"]], markersize=5, label=row["method"])  # fmt: skip
        ax.axhline(95, color="0.6", linewidth=0.8, zorder=0)
        ax.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        ax.set_title(population, fontsize=9)
        ax.set_xscale("log")
        ax.set_xlim(0.25, 8)
        ax.set_xticks([0.5, 1, 2, 4], ["½", "1", "2", "4"])
        ax.minorticks_off()
        ax.set_ylim(20, 102)
    for ax in panels[len(order) :]:
        ax.set_visible(False)
    figure.supxlabel(
        "mean width, as a multiple of the width that the true spread would give", fontsize=9
    )
    figure.supylabel("95% intervals that contained the true value [%]", fontsize=9)
    handles = {}
    for ax in panels:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=7, fontsize=7,
                  frameon=False)  # fmt: skip
    return figure


def comparisons():
    """All figures of tests of two equal models, a row each."""
    table = pd.DataFrame(STUDY["comparisons"])
    table = table[table["power"].notna()]
    return table.assign(name=name_rows(table))


def list_power():
    """List predicted and observed power, by population and number of points."""
    table = pd.DataFrame(STUDY["power"])
    return show_table(table[["population", "n", "predicted", "observed", "runs"]], 2)


def list_best():
    """List how often the best model was in the set, and how large the set was."""
    shown = ["population", "n", "effect", "models", "inclusion", "set_size", "runs"]
    table = pd.DataFrame(STUDY["best"])[shown]
    return show_table(table.rename(columns={"set_size": "models in the set"}))


def list_metrics():
    """List how often intervals of metrics and of logs made from logs contain the truth."""
    table = pd.DataFrame(STUDY["metrics"])
    names = {"method": "", "population": "population", "n": "points, problems or battles",
             "runs": "logs", "coverage": "coverage", "silent": "coverage without a caution",
             "cautioned": "logs with a caution", "width": "median width"}  # fmt: skip
    return show_table(table[[*names]].rename(columns=names))


def list_literature():
    """List figures of papers beside those of the study."""
    table = pd.DataFrame(STUDY["literature"])
    table["agrees"] = table["agrees"].map({True: "yes", False: "no"}).fillna("")
    return show_table(table)
