"""What the report says, section by section, before it becomes a page."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvstats import plot
from cvstats.core.design import Design
from cvstats.core.folds import is_resampled
from cvstats.diagnostics import diagnose
from cvstats.errors import LogError
from cvstats.formatting import count_decimals, format_cells, name_rows, result_frame
from cvstats.intervals.decompose import decompose
from cvstats.intervals.heterogeneity import heterogeneity
from cvstats.log.log import Losses
from cvstats.log.read import read
from cvstats.options import Missing
from cvstats.plot._style import facts_of
from cvstats.plot.sources import group_interval
from cvstats.recommend import interval, methods
from cvstats.reporting.evidence import Evidence
from cvstats.reporting.pictures import draw_lines, draw_map, draw_ranking, most_often_best
from cvstats.reporting.verdict import level_of, scale_of_cell, summarize_evidence
from cvstats.reporting.wording import describe_target
from cvstats.scores import turned

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_ROWS = 60
"""So many rows of a table or a plot are read; more are a picture, and the top of the table."""
TOP = 20
"""So many rows of a longer table are shown."""
MOST_MAPS = 4
"""So many maps of slices are shown."""
PALE = 0.35
"""Opacity of what is shown for comparison only."""
WIDTH = 3.6
"""Of a figure, in inches: narrow, so that its text is large enough on a phone."""
FEWER_FINDINGS = 10
"""So many findings of one code are listed."""
HEADS = {
    "se": "std. error",
    "p_value": "p",
    "p_adjusted": "adj. p",
    "in_set": "may be best",
    "lower_rank": "best rank",
    "upper_rank": "worst rank",
    "tau": "std. deviation",
    "tau_lower": "from",
    "tau_upper": "to",
}
SPREAD = ["tau", "tau_lower", "tau_upper", "p_value"]
"""What is shown of how much sources differ."""


@dataclass(frozen=True)
class Grid:
    """A table of text: caption, heads of its columns, name of each row, cells."""

    caption: str
    heads: list[str]
    rows: list[tuple[str, list[str]]]
    words: list[bool]
    """Which columns hold words and not numbers."""
    corner: str = "model"

    @property
    def wide(self) -> bool:
        """Whether the table takes the width of the page."""
        return len(self.heads) > 5 or any(len(cell) > 24 for _, row in self.rows for cell in row)


@dataclass(frozen=True)
class Figure:
    """A plot as the source of an image, what it is called, and its caption."""

    source: str
    title: str
    caption: str


@dataclass
class Section:
    """A heading and what is below it."""

    key: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    parts: list[Grid | Figure] = field(default_factory=list)
    findings: list[tuple[str, list[str], str]] = field(default_factory=list)
    """Code, what was found where, and what to do about it."""

    @property
    def columns(self) -> list[list[Grid | Figure]]:
        """What is beside each other: all tables and all pictures, or each picture by itself."""
        tables: list[Grid | Figure] = []
        pictures: list[Grid | Figure] = []
        for part in self.parts:
            if isinstance(part, Figure):
                pictures.append(part)
            elif not part.wide:
                tables.append(part)
        return [tables, pictures] if tables and pictures else [[part] for part in tables + pictures]

    @property
    def across(self) -> list[Grid]:
        """The tables that take the width of the page."""
        return [part for part in self.parts if isinstance(part, Grid) and part.wide]


@dataclass(frozen=True)
class Settings:
    """What the user of the report may choose."""

    alpha: float
    seed: int
    missing: Missing


@dataclass
class Report:
    """The verdict, the sections, and what the appendix says about how they were made."""

    sentences: tuple[str, ...]
    doubts: list[str]
    sections: list[Section] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """What is not shown, and the reason."""
    evidence: Evidence | None = None

    @property
    def title(self) -> str:
        """What the page is called unless it is given a name."""
        if self.evidence is None:
            return "Loss log"
        scale, names = scale_of_cell(self.evidence, 0), self.evidence.names
        what = "Metrics" if "metric" in self.evidence.dims else capital(scale.name)
        return f"{what} of {names[0] if len(names) == 1 else f'{len(names):,} models'}"

    def note(self, attrs: dict[Any, Any]) -> None:
        """Remember whom the method of a result comes from."""
        if (words := str(attrs.get("reference", ""))) and words not in self.references:
            self.references.append(words)

    def draw(
        self, section: Section, draw: Callable[..., Any], *,
        title: str, caption: str, height: float,
    ) -> None:  # fmt: skip
        """Add a plot to a section; the appendix has the reason for one that cannot be drawn."""
        try:
            source = draw_svg(lambda ax: draw(ax=ax), height)
        except LogError as error:
            self.refusals.append((title, str(error)))
        else:
            section.parts.append(Figure(source, title, caption))


def make_report(losses: Losses, settings: Settings) -> Report:
    """Make the verdict and all sections that this log has anything to say for."""
    evidence = Evidence(losses, settings.alpha, settings.seed, settings.missing)
    try:
        verdict = summarize_evidence(evidence)
    except LogError as error:
        words = "No interval answers for this log; the appendix has the reason."
        report = Report((words,), [], refusals=[("Intervals", str(error))])
        report.sections.append(of_diagnosis(losses))
        return report
    report = Report(verdict.sentences, list(verdict.doubts.values()), evidence=evidence)
    report.sections += (s for s in make_sections(report, evidence, settings) if has_content(s))
    reasons = {"comparison": "Comparison of the models", "best_set": "Models that may be the best"}
    report.refusals += [(reasons[name], words) for name, words in evidence.refusals.items()]
    return report


def has_content(section: Section) -> bool:
    """Whether there is anything below a heading."""
    return bool(section.paragraphs or section.parts or section.findings)


def make_sections(report: Report, evidence: Evidence, settings: Settings) -> Iterator[Section]:
    """Make the sections in the order in which they are read."""
    losses, models = evidence.losses, len(evidence.models)
    design = read(losses, missing=settings.missing).design
    yield of_intervals(report, evidence, settings)
    if is_gridded(evidence):
        yield of_maps(report, evidence)
    elif models > 1 and evidence.all_pairs:
        yield of_pairs(report, evidence, settings)
        if models > 2:
            yield of_candidates(report, evidence, settings)
    elif models > 1:
        yield of_many(report, evidence)
    if not is_gridded(evidence):  # of many cells such tables and plots show nothing
        if design.has("source"):
            yield of_sources(report, evidence, settings, design)
        yield of_scatter(report, losses, settings, design)
    yield of_diagnosis(losses)


def is_gridded(evidence: Evidence) -> bool:
    """Whether there are more carried cells than a table can show."""
    return len(evidence.cells) > 1 and len(evidence.frame) > TOP


def shown(evidence: Evidence, result: Any) -> Any:
    """Turn a result into one of the score that the losses were made from."""
    scale = scale_of_cell(evidence, 0)
    if not scale.larger or "metric" in evidence.dims:
        return result
    return turned(result, scale.name, scale.orientation, result.attrs)


def grid(
    table: Any, caption: str, columns: list[str], *, best: str = "", larger: bool = False,
    most: int = MOST_ROWS,
) -> Grid:  # fmt: skip
    """Format some columns of a result, sorted; cautions only where rows differ in them."""
    frame = result_frame(table)
    if "caution" in frame and frame["caution"].nunique() > 1:
        columns = [*columns, "caution"]
    kept = [name for name in columns if name in frame]
    if best:
        frame = frame.sort_values(best, kind="stable", ascending=not larger)
    top = frame.head(most)
    if len(frame) > most:
        caption = f"{caption} (the first {most} of {len(frame):,} rows)"
    rows = zip(name_rows(top), format_cells(top)[kept].to_numpy().tolist(), strict=True)
    words = [frame[name].dtype.kind not in "fiu" for name in kept]
    heads = [HEADS.get(name, name.replace("_", " ")) for name in kept]
    corner = "models" if "other" in frame.index.names else str(frame.index.names[0] or "model")
    return Grid(caption, heads, list(rows), words, corner)


def draw_svg(draw: Callable[[Axes], Axes], height: float) -> str:
    """Draw on a new figure, whose height is in inches, and return it as a data URI."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",  # text instead of outlines: smaller
        "svg.hashsalt": "cvstats",  # the same log gives the same page
        "figure.constrained_layout.use": True,
    }
    with rc_context(settings):
        canvas = Canvas(figsize=(WIDTH, height))
        draw(canvas.subplots())
        file = BytesIO()
        canvas.savefig(file, format="svg", dpi=200, metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}"


def of_intervals(report: Report, evidence: Evidence, settings: Settings) -> Section:
    """Tell the error of each model, and what its interval covers."""
    scale, facts = scale_of_cell(evidence, 0), evidence.facts
    section = Section(
        "intervals", f"How {'high' if scale.larger else 'large'} is the {scale.name}?"
    )
    report.note(facts)
    level = level_of(evidence)
    if left_out := facts.get("n_dropped"):
        one = left_out == 1
        section.paragraphs.append(
            f"{left_out:,.0f} {'evaluation is' if one else 'evaluations are'} left out for all "
            f"models, because some model has no loss there."
        )
    if is_gridded(evidence):
        section.parts.append(quantiles(evidence))
        return section
    table, larger = shown(evidence, evidence.intervals), scale.larger
    caption = f"{capital(scale.name)} of each model with its {level} interval, the best first"
    rows = len(evidence.frame)
    many = rows > TOP and len(evidence.cells) == 1
    most = TOP if many else MOST_ROWS
    numbers = ["estimate", "lower", "upper", "se"]
    section.parts.append(grid(table, caption, numbers, best="estimate", larger=larger, most=most))
    if many:
        report.draw(
            section, partial(draw_ranking, evidence=evidence, scale=scale),
            title=f"{scale.name} of all {rows:,} models", height=4.5,
            caption=f"All {rows:,} models, the best at the top: the line is the {scale.name}, the "
            f"band its {level} interval. Blue are the models that may be the best.",
        )  # fmt: skip
        return section
    report.draw(
        section, partial(draw_intervals, evidence, settings),
        title="Intervals of all models", height=min(8.0, 1.1 + 0.36 * rows),
        caption="Dots are estimates, lines are intervals. Two models may differ although their "
        "intervals overlap: look at their difference. The naive interval, in grey, counts every "
        "loss as a new point; it is shown for comparison and guarantees nothing.",
    )  # fmt: skip
    return section


def find_naive(evidence: Evidence, settings: Settings) -> Any:
    """Compute the interval that takes every loss for a new point; None where there is none."""
    options: dict[str, Any] = {"alpha": settings.alpha, "missing": settings.missing}
    try:
        return interval(evidence.losses, method="naive", **options)
    except LogError:
        return None


def draw_intervals(evidence: Evidence, settings: Settings, ax: Axes) -> Axes:
    """Draw the intervals of the table, and paler the naive ones."""
    results = {str(evidence.facts["method"]): evidence.intervals}
    naive = find_naive(evidence, settings)
    if naive is not None:
        results["naive"] = naive
    plot.forest(evidence.losses, methods=results, missing=settings.missing, ax=ax)
    for artist in (*ax.collections[1:], *ax.lines[1:]):  # those of the naive interval
        artist.set_alpha(PALE)
    return ax


def quantiles(evidence: Evidence) -> Grid:
    """Describe the errors of many cells by their quantiles, a row for each model."""
    scale, share = scale_of_cell(evidence, 0), np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    decimals = count_decimals(evidence.frame)
    half = (evidence.spread("upper") - evidence.spread("lower")) / 2
    at = np.nanquantile(evidence.estimate, share[::-1] if scale.larger else share, axis=0)
    width = np.nanmedian(half, axis=0)
    rows = [
        (
            name,
            [*(scale.value(value, decimals) for value in at[:, j]),
             scale.difference(width[j], decimals)],
        )
        for j, name in enumerate(evidence.names)
    ]  # fmt: skip
    heads = ["best", "25%", "median", "75%", "worst", "±"]
    caption = (
        f"{capital(scale.name)} over {len(evidence.cells):,} cells ({', '.join(evidence.dims)}), "
        f"from the best cell to the worst; ± is the median half-width of the {level_of(evidence)} "
        f"intervals"
    )
    return Grid(caption, heads, rows, [False] * len(heads))


def of_maps(report: Report, evidence: Evidence) -> Section:
    """Draw the cells of a grid: one dimension as lines, two as maps."""
    section = Section("cells", "Where is the error large, and where does which model lead?")
    scale = scale_of_cell(evidence, 0)
    if len(evidence.models) == 1:
        section.title = "Where is the error large?"
    if "metric" in evidence.dims:
        return section
    level = level_of(evidence)
    if len(evidence.dims) == 1:
        report.draw(
            section, partial(draw_lines, evidence=evidence, scale=scale),
            title=f"{scale.name} along {evidence.dims[0]}", height=3.0,
            caption=f"Lines are estimates, bands {level} intervals of each cell by itself.",
        )  # fmt: skip
        return section
    slices = list(dict.fromkeys(labels[:-2] for labels in evidence.cells))
    for labels in slices[:MOST_MAPS]:
        where = ", ".join(f"{d}={x}" for d, x in zip(evidence.dims, labels, strict=False))
        at = f" at {where}" if where else ""
        for what, title, caption in maps_of(evidence, scale.name, level):
            report.draw(
                section, partial(draw_map, evidence=evidence, scale=scale, what=what, at=labels),
                title=f"{title}{at}", height=3.2, caption=f"{caption}{at}.",
            )  # fmt: skip
    if len(slices) > MOST_MAPS:
        section.paragraphs.append(
            f"Of {len(slices):,} maps the first {MOST_MAPS} are shown; the sentences above count "
            f"all cells."
        )
    return section


def maps_of(evidence: Evidence, name: str, level: str) -> list[tuple[str, str, str]]:
    """List the maps that a slice has: what is drawn, title, and caption."""
    models = evidence.names
    errors = (
        "estimate",
        f"Map of the {name}",
        f"The {name} of {models[most_often_best(evidence)]}",
    )
    if len(models) == 1:
        half = f"How far the {level} interval of each cell reaches to each side"
        return [errors, ("half-width", "Map of the intervals", half)]
    if len(models) == 2 and evidence.pairs is not None:
        lead = (
            f"How much better {models[0]} is than {models[1]}, blue, or worse, red. Dots are where "
            f"the difference is beyond chance, after adjusting for {evidence.n_tests:,} "
            f"comparisons; where many cells are small, only some have one"
        )
        return [("lead", "Map of the difference", lead), errors]
    best = "The best model of each cell; pale where it is tied with another one, or not compared"
    return [("best", "Map of the best model", best), errors]


def of_many(report: Report, evidence: Evidence) -> Section:
    """Compare many models with the best of them, and say which may be the best."""
    section = Section("comparisons", "Which models may be the best?")
    report.note(evidence.candidates.attrs)
    if evidence.pairs is None:
        return section
    report.note(evidence.comparison.attrs)
    best, pairs = int(evidence.best[0]), evidence.pairs
    order = [j for j in np.argsort(evidence.estimate[0], kind="stable").tolist() if j != best]
    table = pd.DataFrame(
        {
            "difference": pairs.lead[0, best, order],
            "lower": pairs.lower[0, best, order],
            "upper": pairs.upper[0, best, order],
            "may_be_best": evidence.tied[0, order],
        },
        index=pd.Index([evidence.names[j] for j in order], name="model"),
    )
    sure = level_of(evidence)
    section.paragraphs.append(
        f"The model that is truly best is among those that may be the best with a probability of "
        f"about {sure}; more points would leave fewer of them. Each interval is for one difference "
        f"by itself."
    )
    caption = f"How far the next models are behind {evidence.names[best]}, with {sure} intervals"
    section.parts.append(grid(table, caption, [str(column) for column in table], most=TOP))
    return section


def of_pairs(report: Report, evidence: Evidence, settings: Settings) -> Section:
    """Tell how models differ, on the very same evaluations."""
    section = Section("comparisons", "Which model is better?")
    if evidence.comparison is None:
        return section
    table = shown(evidence, evidence.comparison)
    frame = result_frame(table)
    report.note(table.attrs)
    adjusted = "p_adjusted" in frame
    name = "p_adjusted" if adjusted else "p_value"
    clear, pairs = int((frame[name] < settings.alpha).sum()), len(frame)
    larger = scale_of_cell(evidence, 0).larger
    side = "above" if larger else "below"
    section.paragraphs.append(
        f"Each row is the first model minus the second, on the same points: {side} zero, the "
        f"first is better. {count_clear(clear, pairs)}"
        + (" p-values are adjusted for the number of comparisons; the intervals are not."
           if adjusted else "")
    )  # fmt: skip
    numbers = ["difference", "lower", "upper", name]
    caption = f"Differences of all pairs, with {level_of(evidence)} intervals"
    section.parts.append(grid(table, caption, numbers, best="difference", larger=larger))
    report.draw(
        section,
        partial(plot.comparison, evidence.losses, alpha=settings.alpha, missing=settings.missing),
        title="Differences between models", height=min(8.0, 1.3 + 0.5 * pairs)
        if pairs <= FEW_PAIRS
        else 4.2,
        caption="Differences of all pairs; those that are beyond chance after adjusting for the "
        "number of comparisons are marked."
        if pairs > 1 else "The difference, and zero, where neither model is better.",
    )  # fmt: skip
    return section


FEW_PAIRS = 10
"""More pairs are drawn as a matrix."""


def count_clear(clear: int, pairs: int) -> str:
    """Say in words how many differences are more than chance."""
    if pairs == 1:
        return f"The difference {'is more than chance' if clear else 'may be chance'}."
    if not clear:
        return f"All {pairs:,} differences may be chance."
    many = "All" if clear == pairs else f"{clear:,} of the"
    return f"{many} {pairs:,} differences {'is' if clear == 1 else 'are'} more than chance."


def of_candidates(report: Report, evidence: Evidence, settings: Settings) -> Section:
    """Tell which models may be the best."""
    section = Section("best", "Which models may be the best?")
    if evidence.candidates is None:
        return section
    table = shown(evidence, evidence.candidates)
    frame = result_frame(table)
    report.note(table.attrs)
    number = int(frame["in_set"].sum())
    larger = scale_of_cell(evidence, 0).larger
    best = name_rows(frame[frame["in_set"]])[0]
    found = f"Only {best} may be the best of {len(frame):,} models" if number == 1 else (
        f"{number:,} of {len(frame):,} models may be the best"
    )  # fmt: skip
    section.paragraphs.append(
        f"{found}. Each model is compared with the best of the others only, so this set may leave "
        f"out a model that is tied above. The model that is truly best is in the set with a "
        f"probability of about {level_of(evidence)}."
    )
    numbers = ["estimate", "in_set", "lower_rank", "upper_rank", "p_value"]
    section.parts.append(
        grid(table, "Models that may be the best", numbers, best="estimate", larger=larger)
    )
    report.draw(
        section,
        partial(plot.best_set, evidence.losses, alpha=settings.alpha, rng=settings.seed,
                missing=settings.missing),
        title="Ranks of the models", height=min(8.0, 1.2 + 0.28 * len(frame)),
        caption="Each line reaches from the best to the worst rank that the model may have; the "
        "mark is its rank in this log. Filled marks are models that may be the best.",
    )  # fmt: skip
    return section


def of_sources(report: Report, evidence: Evidence, settings: Settings, design: Design) -> Section:
    """Tell how sources differ, and what to expect of a new one; tasks are what they are."""
    losses, number = evidence.losses, design.number("source")
    tasks = facts_of(losses).get("sources_are") == "fixed"
    name = "task" if tasks else "source"
    section = Section("sources", f"How much do {name}s differ?")
    options: dict[str, Any] = {"alpha": settings.alpha, "missing": settings.missing}
    if tasks:
        section.paragraphs.append(
            f"The points come from {number:,} tasks, which have the same weight in every mean."
        )
    elif not add_intervals_of_sources(report, section, evidence, number):
        return section
    models = max(1.0, 0.45 * len(evidence.models))
    report.draw(
        section,
        partial(plot.sources, losses, **options),
        title=f"{capital(name)} by {name}", height=min(9.0, 1.2 + 0.25 * (number + 1) * models),
        caption=f"One interval for each {name}, as if its points were independent. The last row, "
        f"and the band, are the interval for all of them.",
    )  # fmt: skip
    return section


def add_intervals_of_sources(
    report: Report, section: Section, evidence: Evidence, number: int
) -> bool:
    """Add the intervals that count sources, and how much these differ; False without them."""
    losses, level = evidence.losses, level_of(evidence)
    options: dict[str, Any] = {"alpha": evidence.alpha, "missing": evidence.missing}
    try:
        row, result = group_interval(losses, **options)
    except LogError as error:
        report.refusals.append(("Intervals of sources", str(error)))
        return False
    report.note(result.attrs)
    scale = scale_of_cell(evidence, 0)
    caption = f"{level} intervals for a {row}" if row == "new source" else (
        f"{level} intervals that count sources, not points"
    )  # fmt: skip
    target = describe_target(str(result.attrs["target"]), scale)
    section.paragraphs.append(
        f"The points come from {number:,} sources. These intervals are for the {target}."
    )
    numbers = ["estimate", "lower", "upper", "se"]
    turned_rows = shown(evidence, result)
    section.parts.append(grid(turned_rows, caption, numbers, best="estimate", larger=scale.larger))
    try:
        spread = heterogeneity(losses, **options)
    except LogError as error:
        report.refusals.append(("How much sources differ", str(error)))
    else:
        report.note(spread.attrs)
        words = (
            f"Standard deviation between sources, its {level} interval, and the p-value of no "
            f"difference"
        )
        section.parts.append(grid(spread, words, SPREAD))
    return True


def of_scatter(report: Report, losses: Losses, settings: Settings, design: Design) -> Section:
    """Show folds and repetitions."""
    section = Section("scatter", "Folds and repetitions")
    plain = not is_resampled(design)
    if plain and (design.has("fold") or design.has("repetition")):
        report.draw(
            section, partial(plot.folds, losses, missing=settings.missing),
            title="Means of the folds", height=2.6,
            caption="The mean of each test set. Their scatter is not a standard error: folds "
            "share most of their training data, and repetitions share all data.",
        )  # fmt: skip
    if design.has("repetition"):
        report.draw(
            section,
            partial(plot.stability, losses, alpha=settings.alpha, missing=settings.missing),
            title="The interval of the first repetitions", height=2.6,
            caption="Estimates and limits when only the first repetitions are used. Where the "
            "curves are flat, more repetitions would change nothing.",
        )  # fmt: skip
    return section


def of_diagnosis(losses: Losses) -> Section:
    """Tell what to doubt, and what to do about it."""
    section = Section("diagnostics", "What to doubt")
    found = diagnose(losses)
    if found.empty:
        section.paragraphs.append(
            "The checks found nothing to doubt. That does not prove that all is well; the guide "
            "says what they look at."
        )
        return section
    section.paragraphs.append(
        f"{len(found)} {'finding' if len(found) == 1 else 'findings'}; the codes are explained in "
        f"the guide, page Diagnostics."
    )
    for (code, advice), rows in found.groupby(["code", "advice"], sort=False):
        words = [
            f"{row['model'] or 'the log'}: {row['finding']}."
            for row in rows.head(FEWER_FINDINGS).to_dict("records")
        ]
        if (more := len(rows) - FEWER_FINDINGS) > 0:
            words.append(f"And {more:,} more.")
        section.findings.append((str(code), words, str(advice)))
    return section


def describe_computation(
    losses: Losses, report: Report, settings: Settings, call: str
) -> dict[str, Any]:
    """Describe how everything was computed: call, versions, references, the other methods."""
    names = ("cvstats", "numpy", "scipy", "pandas", "xarray", "numba", "matplotlib")
    versions = [("Python", platform.python_version()), *((name, version(name)) for name in names)]
    made: dict[str, Any] = {
        "call": call, "versions": versions, "references": report.references,
        "refusals": report.refusals, "methods": None,
        "variance": of_variance(report, losses, settings),
        "method": [] if report.evidence is None else describe_method(report.evidence),
    }  # fmt: skip
    try:
        table = methods(losses)
    except LogError:
        return made
    rows = [
        (str(name), ["yes" if row["applies"] else "no", row["why_not"] or row["target"]])
        for name, row in table.iterrows()
    ]
    made["methods"] = Grid(
        "Methods, and whether this log allows them", ["applies", "target, or what is missing"],
        rows, [True, True], corner="method",
    )  # fmt: skip
    return made


def describe_method(evidence: Evidence) -> list[tuple[str, str]]:
    """List which method made the intervals, and what it promises."""
    facts = evidence.facts
    rows = [
        ("method", f"{facts['method']}, because this log is {facts['reason']}"),
        ("target", facts["target"]),
        ("guarantee", facts["guarantee"]),
    ]
    if evidence.comparison is not None:
        compared = evidence.comparison.attrs
        rows.append(("guarantee of differences", compared["guarantee"]))
    if facts.get("suggestion"):
        rows.append(("before the next experiment", facts["suggestion"]))
    return rows


def of_variance(report: Report, losses: Losses, settings: Settings) -> Section:
    """Show the parts of the variance, which rest on an assumption."""
    section = Section("variance", "Parts of the variance")
    if report.evidence is not None and is_gridded(report.evidence):
        return section
    try:
        parts = decompose(losses, missing=settings.missing)
    except LogError:
        return section
    report.note(parts.attrs)
    report.draw(
        section,
        partial(plot.decomposition, losses, missing=settings.missing),
        title="Parts of the variance", height=min(12.0, 1.3 + 0.85 * len(result_frame(parts))),
        caption="The variance of the mean if fold means had the correlation rho. The hatched part "
        "is assumed, since no single log shows it; strokes are the sums, diamonds "
        "the squared standard errors of wald.",
    )  # fmt: skip
    return section


def capital(text: str) -> str:
    """Begin with a capital."""
    return text[:1].upper() + text[1:]
