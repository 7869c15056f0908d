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

from cvstats import plot
from cvstats.comparisons.best_set import best_set
from cvstats.comparisons.compare import compare
from cvstats.containers import Losses, read
from cvstats.core.design import Design
from cvstats.diagnostics import diagnose
from cvstats.errors import LogError
from cvstats.formatting import format_cells, name_rows, result_frame
from cvstats.intervals.decompose import decompose
from cvstats.intervals.heterogeneity import heterogeneity
from cvstats.options import Missing
from cvstats.plot.sources import group_interval
from cvstats.selection import interval, methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Figure", "Grid", "Section", "Settings", "sections"]

MOST_ROWS = 60
"""More rows than these, or models to compare, are more than anyone reads."""
WIDTH = 3.6
"""Of a figure, in inches: narrow, so that its text is large enough on a phone."""
FEWER_FINDINGS = 10
"""So many findings of one code are listed."""
HEADS = {
    "se": "std. error",
    "p_value": "p",
    "p_adjusted": "p, adjusted",
    "in_set": "in the set",
    "lower_rank": "best rank",
    "upper_rank": "worst rank",
    "i2": "I²",
    "q": "Q",
    "tau_lower": "tau, lower",
    "tau_upper": "tau, upper",
}


@dataclass(frozen=True)
class Grid:
    """A table of text: caption, heads of its columns, name of each row, cells."""

    caption: str
    heads: list[str]
    rows: list[tuple[str, list[str]]]
    words: list[bool]
    """Which columns hold words and not numbers."""
    corner: str = "model"
    caution: str = ""
    """The caution that every row has."""


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
    references: list[str] = field(default_factory=list)
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    """Code, what was found, and what to do about it."""

    def note(self, attrs: dict[Any, Any]) -> None:
        """Remember whom the method of a result comes from."""
        if (words := str(attrs.get("reference", ""))) and words not in self.references:
            self.references.append(words)


@dataclass(frozen=True)
class Settings:
    """What the user of the report may choose."""

    alpha: float
    seed: int
    missing: Missing

    @property
    def level(self) -> str:
        """The level of the intervals in words."""
        return f"{100 * (1 - self.alpha):g}%"


def sections(losses: Losses, settings: Settings) -> Iterator[Section]:
    """Make all sections that this log has anything to say for."""
    log = read(losses, missing=settings.missing)
    yield of_intervals(losses, settings)
    models = len(log.labels.models)
    if 1 < models <= MOST_ROWS:
        yield of_pairs(losses, settings)
        yield of_best(losses, settings)
    elif models > 1:
        yield of_many(models)
    if log.design.has("source"):
        yield of_sources(losses, settings, log.design)
    scatter = of_scatter(losses, settings, log.design)
    if scatter.parts:
        yield scatter
    yield of_diagnosis(losses)


def grid(table: Any, caption: str, columns: list[str]) -> Grid:
    """Format some columns of a result, sorted; cautions only where rows differ in them."""
    frame = result_frame(table)
    doubts = set(frame["caution"]) if "caution" in frame else {""}
    if len(doubts) > 1:
        columns = [*columns, "caution"]
    kept = [name for name in columns if name in frame]
    sorted_by = [name for name in ("estimate", "difference") if name in frame]
    shown = frame.sort_values(sorted_by, kind="stable").head(MOST_ROWS) if sorted_by else frame
    if len(frame) > MOST_ROWS:
        caption = f"{caption} (the first {MOST_ROWS} of {len(frame):,} rows)"
    rows = zip(name_rows(shown), format_cells(shown)[kept].to_numpy().tolist(), strict=True)
    words = [frame[name].dtype.kind not in "fiu" for name in kept]
    heads = [HEADS.get(name, name.replace("_", " ")) for name in kept]
    corner = "models" if "other" in frame.index.names else "model"
    sentences = frame.attrs.get("cautions", {}).values() if len(doubts) == 1 else ()
    return Grid(caption, heads, list(rows), words, corner, " ".join(sentences).removesuffix("."))


def add_figure(
    section: Section, draw: Callable[..., Any], *, title: str, caption: str, height: float
) -> None:
    """Add a plot to a section; one that cannot be drawn leaves its reason instead."""
    try:
        section.parts.append(Figure(draw_svg(lambda ax: draw(ax=ax), height), title, caption))
    except LogError as error:
        section.paragraphs.append(f"{title} cannot be drawn: {error}")


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
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}"


def of_intervals(losses: Losses, settings: Settings) -> Section:
    """Tell the error of each model, what the interval covers and what it promises."""
    section = Section("intervals", "Errors and their intervals")
    try:
        result = interval(losses, alpha=settings.alpha, missing=settings.missing)
    except LogError as error:
        section.paragraphs.append(f"No method answers for this log. {error}")
        return section
    facts = result.attrs
    section.note(facts)
    section.paragraphs += [
        f"The method is {facts['method']}, because this log is {facts['reason']}.",
        f"Target of each interval: {facts['target']}.",
        f"Guarantee: {facts['guarantee']}.",
    ]
    if facts.get("suggestion"):
        section.paragraphs.append(f"Before the next experiment: {facts['suggestion']}.")
    if left_out := facts.get("n_dropped"):
        one = left_out == 1
        section.paragraphs.append(
            f"{left_out:,} {'evaluation is' if one else 'evaluations are'} left out for all "
            f"models, because some model has no loss there."
        )
    numbers = ["estimate", "lower", "upper", "se"]
    section.parts.append(
        grid(result, f"Mean loss of each model with its {settings.level} interval", numbers)
    )
    rows = len(result_frame(result))
    if rows > MOST_ROWS:
        section.paragraphs.append(f"There is no plot: {rows:,} rows are more than anyone reads.")
        return section
    once = facts["method"] == "wald" and facts.get("n_repetitions") == 1
    same = "; with one repetition it has nearly the same limits" if once else ""
    add_figure(
        section,
        partial(plot.forest, losses, alpha=settings.alpha, missing=settings.missing),
        title="Intervals of all models", height=min(8.0, 1.1 + 0.36 * rows),
        caption="Marks are estimates, lines reach from the lower to the upper limit of the table "
        "above. The naive interval, in grey, is too narrow and has no guarantee: it counts every "
        f"loss as a new point{same}.",
    )  # fmt: skip
    return section


def of_many(models: int) -> Section:
    """Say why the models are not compared, and how to compare some."""
    pairs = models * (models - 1) // 2
    words = (
        f"{models:,} models make {pairs:,} pairs, more than anyone reads, and they are not "
        f"compared here. Compare some of them, as in compare(log[['a', 'b', 'c']]), or all with "
        f"one: compare(log, reference='a')."
    )
    return Section("comparisons", "Which model is better?", [words])


def of_pairs(losses: Losses, settings: Settings) -> Section:
    """Tell how models differ, on the very same evaluations."""
    section = Section("comparisons", "Which model is better?")
    try:
        result = compare(losses, alpha=settings.alpha, missing=settings.missing)
    except LogError as error:
        section.paragraphs.append(f"The models were not compared. {error}")
        return section
    frame = result_frame(result)
    section.note(result.attrs)
    name = "p_adjusted" if "p_adjusted" in frame else "p_value"
    apart = int((frame[name] < settings.alpha).sum())
    if len(frame) == 1:
        count = f"The p-value is {'below' if apart else 'not below'} {settings.alpha:g}."
    else:
        count = (
            f"P-values allow for making {len(frame):,} comparisons (Holm); the intervals do not. "
            f"{apart or 'None'} of the {len(frame):,} {'is' if apart == 1 else 'are'} below "
            f"{settings.alpha:g}."
        )
    section.paragraphs += [
        "A difference is the loss of the first model minus the loss of the second: negative is "
        f"better for the first. {count}",
        f"What each interval is for: {result.attrs['target']}. Two models may differ clearly "
        "though their own intervals overlap, since both were tested on the same points.",
    ]
    numbers = ["difference", "lower", "upper", "p_value", "p_adjusted", "se"]
    section.parts.append(
        grid(frame, f"Paired differences with {settings.level} intervals", numbers)
    )
    pairs = len(frame)
    add_figure(
        section,
        partial(plot.comparison, losses, alpha=settings.alpha, missing=settings.missing),
        title="Differences between models", height=1.2 + 0.42 * pairs if pairs <= 10 else 3.8,
        caption="The differences of the table above, with a line at zero; of many pairs a matrix. "
        "Full marks, or bold numbers and dots, are those whose adjusted p-value is below "
        f"{settings.alpha:g}.",
    )  # fmt: skip
    return section


def of_best(losses: Losses, settings: Settings) -> Section:
    """Tell which models may be the best."""
    section = Section("best", "Which models may be the best?")
    options: dict[str, Any] = {
        "alpha": settings.alpha, "rng": settings.seed, "missing": settings.missing,
    }  # fmt: skip
    try:
        result = best_set(losses, **options)
    except LogError as error:
        section.paragraphs.append(f"The set of best models was not computed. {error}")
        return section
    frame = result_frame(result)
    section.note(result.attrs)
    number = int(frame["in_set"].sum())
    best = name_rows(frame[frame["in_set"]])[0]
    found = f"{best} is the best of {len(frame):,} models" if number == 1 else (
        f"{number:,} of {len(frame):,} models may be the best"
    )  # fmt: skip
    section.paragraphs.append(
        f"{found}. Each best model is in this set with a probability of about {settings.level}; "
        f"more points would leave fewer. Each rank lies between the best and the worst of the "
        f"table, for all models at once."
    )
    numbers = ["estimate", "in_set", "lower_rank", "upper_rank", "p_value"]
    section.parts.append(grid(frame, "Models that may be the best", numbers))
    add_figure(
        section,
        partial(plot.best_set, losses, **options), title="Ranks of the models",
        height=min(8.0, 1.2 + 0.28 * len(frame)),
        caption="A line reaches from the best to the worst rank, a mark stands at the rank of "
        "the mean loss. Full marks are the models that may be the best.",
    )  # fmt: skip
    return section


def of_sources(losses: Losses, settings: Settings, design: Design) -> Section:
    """Tell how sources differ, and what to expect of a new one."""
    section = Section("sources", "Sources")
    options: dict[str, Any] = {"alpha": settings.alpha, "missing": settings.missing}
    numbers = ["estimate", "lower", "upper", "se"]
    try:
        row, result = group_interval(losses, **options)
    except LogError as error:
        section.paragraphs.append(f"Nothing was computed by source. {error}")
        return section
    caption = f"{settings.level} intervals for a {row}" if row == "new source" else (
        f"{settings.level} intervals that take sources, not points, for the sample"
    )  # fmt: skip
    section.note(result.attrs)
    section.paragraphs += [
        f"The points come from {design.number('source'):,} sources. What each interval is for: "
        f"{result.attrs['target']}.",
        f"What is promised: {result.attrs['guarantee']}.",
    ]
    section.parts.append(grid(result, caption, numbers))
    try:
        spread = heterogeneity(losses, **options)
    except LogError as error:
        section.paragraphs.append(f"How much sources differ was not estimated. {error}")
    else:
        section.note(spread.attrs)
        section.parts.append(
            grid(
                spread, "How much sources differ: tau is the standard deviation of their errors",
                [
                    str(name)
                    for name in result_frame(spread)
                    if name != "caution" and not str(name).startswith("n_")
                ],
            )
        )  # fmt: skip
    models = max(1.0, 0.45 * len(read(losses).labels.models))
    add_figure(
        section,
        partial(plot.sources, losses, **options), title="Source by source",
        height=min(9.0, 1.2 + 0.25 * (design.number("source") + 1) * models),
        caption="An interval for each source, its points taken for independent; in the last row "
        "and as a band the interval of the table.",
    )  # fmt: skip
    return section


def of_scatter(losses: Losses, settings: Settings, design: Design) -> Section:
    """Show folds and repetitions, and the parts of the variance."""
    section = Section("scatter", "Folds and repetitions")
    plain = not any(design.has(level) for level in ("count", "sample", "outer"))
    if plain and (design.has("fold") or design.has("repetition")):
        add_figure(
            section, partial(plot.folds, losses, missing=settings.missing),
            title="Means of the folds", height=2.6,
            caption="The mean loss of every test set. Their scatter is no standard error: folds "
            "share most of their training data, and repetitions share all data.",
        )  # fmt: skip
    if design.has("repetition"):
        add_figure(
            section,
            partial(plot.stability, losses, alpha=settings.alpha, missing=settings.missing),
            title="The interval of the first repetitions", height=2.6,
            caption="Estimates and limits when only the first repetitions are used. Where the "
            "curves are flat, more repetitions would change nothing.",
        )  # fmt: skip
    try:
        parts = result_frame(decompose(losses, missing=settings.missing))
    except LogError:
        return section
    section.note(parts.attrs)
    add_figure(
        section,
        partial(plot.decomposition, losses, missing=settings.missing),
        title="Parts of the variance", height=min(12.0, 1.3 + 0.85 * len(parts)),
        caption="The variance of the mean if fold means had the correlation rho. The hatched part "
        "is assumed, since no single log shows it; strokes are the sums, diamonds "
        "the squared standard errors of wald.",
    )  # fmt: skip
    return section


def of_diagnosis(losses: Losses) -> Section:
    """Tell what to doubt, and what to do about it."""
    section = Section("diagnostics", "What to doubt")
    found = diagnose(losses)
    if found.empty:
        section.paragraphs.append(
            "No diagnostic found anything. That is no proof: see the guide for what they look at."
        )
        return section
    section.paragraphs.append(
        f"{len(found)} {'finding' if len(found) == 1 else 'findings'}; the codes are explained in "
        f"the guide, page Diagnostics."
    )
    for _, rows in found.groupby("code"):
        for row in rows.head(FEWER_FINDINGS).to_dict("records"):
            words = f"{row['model'] or 'the log'}: {row['finding']}."
            section.findings.append((row["code"], words, row["advice"]))
        if (more := len(rows) - FEWER_FINDINGS) > 0:
            section.findings.append((row["code"], f"and {more:,} more.", row["advice"]))
    return section


def describe_computation(losses: Losses, made: list[Section], call: str) -> dict[str, Any]:
    """Describe how everything was computed: call, versions, references, the other methods."""
    names = ("cvstats", "numpy", "scipy", "pandas", "xarray", "numba", "matplotlib")
    versions = [("Python", platform.python_version()), *((name, version(name)) for name in names)]
    references = dict.fromkeys(words for section in made for words in section.references)
    try:
        table = methods(losses)
    except LogError:
        return {"call": call, "versions": versions, "references": list(references), "methods": None}
    rows = [
        (str(name), ["yes" if row["applies"] else "no", row["why_not"] or row["target"]])
        for name, row in table.iterrows()
    ]
    every = Grid(
        "Methods, and whether this log allows them", ["applies", "target, or what is missing"],
        rows, [True, True], corner="method",
    )  # fmt: skip
    return {"call": call, "versions": versions, "references": list(references), "methods": every}
