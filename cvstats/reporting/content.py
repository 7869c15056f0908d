"""What the report says, section by section, before it becomes a page."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from cvstats import plot
from cvstats.api.choosing import interval, methods
from cvstats.api.comparing import compare
from cvstats.api.describing import decompose
from cvstats.api.diagnosing import diagnose
from cvstats.api.ranking import best_set
from cvstats.api.running import Losses, Missing
from cvstats.api.showing import cells, framed, row_names
from cvstats.api.sourcing import clustered, heterogeneity, out_of_source
from cvstats.containers import read
from cvstats.core.design import Design
from cvstats.errors import LogError
from cvstats.reporting.figures import drawn

__all__ = ["Figure", "Grid", "Section", "Settings", "sections"]

MOST_ROWS = 60
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
    """What is to be doubted in every row."""


@dataclass(frozen=True)
class Figure:
    """A plot with its caption."""

    svg: str
    caption: str


@dataclass
class Section:
    """A heading and what stands below it."""

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
    if len(log.labels.models) > 1:
        yield of_pairs(losses, settings)
        yield of_best(losses, settings)
    if log.design.has("source"):
        yield of_sources(losses, settings, log.design)
    scatter = of_scatter(losses, settings, log.design)
    if scatter.parts:
        yield scatter
    yield of_diagnosis(losses)


def grid(table: Any, caption: str, columns: list[str]) -> Grid:
    """Lay some columns of a result out as text, cautions only where there are any."""
    frame = framed(table)
    doubts = set(frame["caution"]) if "caution" in frame else {""}
    if len(doubts) > 1:
        columns = [*columns, "caution"]
    kept = [name for name in columns if name in frame]
    names = row_names(frame)
    text = cells(frame)[kept].head(MOST_ROWS)
    if len(frame) > MOST_ROWS:
        caption = f"{caption} (the first {MOST_ROWS} of {len(frame):,} rows)"
    rows = list(zip(names, text.to_numpy().tolist(), strict=False))
    words = [frame[name].dtype.kind not in "fiu" for name in kept]
    heads = [HEADS.get(name, name.replace("_", " ")) for name in kept]
    corner = "models" if "other" in frame.index.names else "model"
    cautions = frame.attrs.get("cautions", {})
    shared = "; ".join(cautions.values()) if len(doubts) == 1 else ""
    return Grid(caption, heads, rows, words, corner, shared.removesuffix("."))


def draw_into(
    section: Section, name: str, draw: Callable[..., Any], *, title: str, words: str, height: float
) -> None:
    """Add a plot to a section; one that cannot be drawn leaves a sentence instead."""
    try:
        svg = drawn(lambda ax: draw(ax=ax), name, title=title, words=words, height=height)
    except LogError as error:
        section.paragraphs.append(f"No plot here: {error}")
        return
    section.parts.append(Figure(svg, words))


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
        f"What each interval is for: {facts['target']}.",
        f"What is promised: {facts['guarantee']}.",
    ]
    if facts.get("suggestion"):
        section.paragraphs.append(f"For a next experiment: {facts['suggestion']}.")
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
    table = framed(result)
    once = facts["method"] == "wald" and facts["n_repetitions"] == 1
    nearly = ", though with one repetition it has nearly the same limits" if once else ""
    draw_into(
        section, "forest",
        partial(plot.forest, losses, alpha=settings.alpha, missing=settings.missing),
        title="Intervals of all models", height=min(8.0, 1.1 + 0.36 * len(table)),
        words="Marks are estimates, lines reach from the lower to the upper limit of the table "
        "above. What is grey is the naive interval, for comparison only: it takes every loss for "
        f"a new point and promises nothing{nearly}.",
    )  # fmt: skip
    return section


def of_pairs(losses: Losses, settings: Settings) -> Section:
    """Tell how models differ, on the very same evaluations."""
    section = Section("comparisons", "Which model is better?")
    try:
        result = compare(losses, alpha=settings.alpha, missing=settings.missing)
    except LogError as error:
        section.paragraphs.append(f"The models were not compared. {error}")
        return section
    frame = framed(result)
    section.note(result.attrs)
    name = "p_adjusted" if "p_adjusted" in frame else "p_value"
    apart = int((frame[name] < settings.alpha).sum())
    many = (
        f" P-values allow for making {len(frame):,} comparisons (Holm); the intervals do not."
        if len(frame) > 1
        else ""
    )
    section.paragraphs += [
        "A difference is the loss of the first model minus the loss of the second: negative is "
        f"better for the first.{many} {apart or 'None'} of {len(frame):,} "
        f"{'is' if apart == 1 else 'are'} below {settings.alpha:g}.",
        f"What each interval is for: {result.attrs['target']}. Two models may differ clearly "
        "though their own intervals overlap, for both met the same points.",
    ]
    numbers = ["difference", "lower", "upper", "p_value", "p_adjusted", "se"]
    section.parts.append(
        grid(frame, f"Paired differences with {settings.level} intervals", numbers)
    )
    pairs = len(frame)
    draw_into(
        section, "comparison",
        partial(plot.comparison, losses, alpha=settings.alpha, missing=settings.missing),
        title="Differences between models", height=1.2 + 0.42 * pairs if pairs <= 10 else 3.8,
        words="The differences of the table above, with a line at zero; of many pairs a matrix. "
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
    frame = framed(result)
    section.note(result.attrs)
    number = int(frame["in_set"].sum())
    section.paragraphs.append(
        f"{number:,} of {len(frame):,} models cannot be told from the best. Each best model is "
        f"among them with a probability of about {settings.level}; more points would leave fewer. "
        f"Each rank lies between the best and the worst of the table, for all models at once."
    )
    numbers = ["estimate", "in_set", "lower_rank", "upper_rank", "p_value"]
    section.parts.append(grid(frame, "Models that may be the best", numbers))
    draw_into(
        section, "best", partial(plot.best_set, losses, **options), title="Ranks of the models",
        height=min(8.0, 1.2 + 0.28 * len(frame)),
        words="A line reaches from the best to the worst rank, a mark stands at the rank of "
        "the mean loss. Full marks are the models that may be the best.",
    )  # fmt: skip
    return section


def of_sources(losses: Losses, settings: Settings, design: Design) -> Section:
    """Tell how sources differ, and what to expect of a new one."""
    section = Section("sources", "Sources")
    options: dict[str, Any] = {"alpha": settings.alpha, "missing": settings.missing}
    numbers = ["estimate", "lower", "upper", "se"]
    try:
        result = out_of_source(losses, **options)
        caption = f"{settings.level} intervals for a new source"
    except LogError:
        try:
            result = clustered(losses, **options)
        except LogError as error:
            section.paragraphs.append(f"Nothing was computed by source. {error}")
            return section
        caption = f"{settings.level} intervals that take sources, not points, for the sample"
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
                ["q", "df", "p_value", "i2", "tau", "tau_lower", "tau_upper"],
            )
        )  # fmt: skip
    models = max(1.0, 0.45 * len(read(losses).labels.models))
    draw_into(
        section, "sources", partial(plot.sources, losses, **options), title="Source by source",
        height=min(9.0, 1.2 + 0.25 * (design.number("source") + 1) * models),
        words="An interval for each source, its points taken for independent; in the last row and "
        "as a band the interval of the table.",
    )  # fmt: skip
    return section


def of_scatter(losses: Losses, settings: Settings, design: Design) -> Section:
    """Show folds and repetitions, and the parts of the variance."""
    section = Section("scatter", "Folds and repetitions")
    plain = not any(design.has(level) for level in ("count", "sample", "outer"))
    if plain and (design.has("fold") or design.has("repetition")):
        draw_into(
            section, "folds", partial(plot.folds, losses, missing=settings.missing),
            title="Means of the folds", height=2.6,
            words="The mean loss of every test set. Their scatter is no standard error: folds "
            "share most of their training data, and repetitions share all data.",
        )  # fmt: skip
    if design.has("repetition"):
        draw_into(
            section, "stability",
            partial(plot.stability, losses, alpha=settings.alpha, missing=settings.missing),
            title="The interval of the first repetitions", height=2.6,
            words="Estimates and limits when only the first repetitions are used. Where the "
            "curves are flat, more repetitions would change nothing.",
        )  # fmt: skip
    try:
        parts = framed(decompose(losses, missing=settings.missing))
    except LogError:
        return section
    section.note(parts.attrs)
    draw_into(
        section, "decomposition", partial(plot.decomposition, losses, missing=settings.missing),
        title="Parts of the variance", height=min(12.0, 1.3 + 0.85 * len(parts)),
        words="The variance of the mean if fold means had the correlation rho. The hatched part "
        "is assumed, since no single log tells it; strokes are the sums, diamonds "
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
    for row in found.to_dict("records"):
        about = row["model"] or "the log"
        words = f"{about}: {row['finding']}."
        section.findings.append((row["code"], words, row["advice"]))
    return section


def computed(losses: Losses, made: list[Section], call: str) -> dict[str, Any]:
    """Tell how everything was computed: call, versions, references, the other methods."""
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
