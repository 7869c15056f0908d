"""The report as one self-contained HTML page: its sections, tables and plots."""

from __future__ import annotations

import platform
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from html import escape
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from io import StringIO
from itertools import compress
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import pandas as pd
import xarray as xr

from cvstats import plot
from cvstats.core.design import SPLIT
from cvstats.core.folds import count_folds, covers_all_points, fold_level
from cvstats.core.orientation import TURNED, targets_of, turn
from cvstats.core.types import FloatArray
from cvstats.describe import count_points, describe_log, summarize_log
from cvstats.diagnostics import list_findings
from cvstats.errors import LogError, checked_choice, install_command, listed
from cvstats.facts import LogFacts
from cvstats.formatting import (
    OPEN_END,
    find_works,
    has_caution,
    locate_work,
    name_rows,
    printable,
    result_frame,
    to_score,
    write_labels,
)
from cvstats.intervals.clustered import clustered
from cvstats.intervals.decompose import decompose
from cvstats.intervals.heterogeneity import heterogeneity
from cvstats.intervals.out_of_source import out_of_source
from cvstats.large.frames import delay_answer, has_columns_of_models
from cvstats.log.display import count_decimals, print_cells
from cvstats.log.groups import METRIC
from cvstats.log.log import Losses
from cvstats.log.metadata import select_metric
from cvstats.log.plain import replacing
from cvstats.log.read import MISSING, is_dask_frame
from cvstats.metrics import METRICS
from cvstats.options import Missing, check_alpha, whole_number
from cvstats.plot._axes import (
    COLOURS,
    GREY,
    MARKERS,
    edges_of,
    font_size,
    label_x,
    label_y,
    legend_above,
    places_of,
    set_numbers,
)
from cvstats.recommend import NEEDS_LOSSES, group_interval, interval, methods
from cvstats.reporting.sentences import (
    NUMBERS,
    capitalize,
    capitalize_sentence,
    describe_target,
    describe_verdict,
    join_words,
    name_sources,
    split_log,
)
from cvstats.reporting.verdict import Cell, Verdict, name_difference, quote_names, read_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


version_of = cache(version)
"""Returns the version of an installed package, which takes long to read."""

PAGES = (".html", ".htm", "")
"""Valid suffixes of a page."""


@overload
def report(
    losses: Losses,
    path: None = None,
    *,
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
) -> str: ...


@overload
def report(
    losses: Losses,
    path: str | PathLike[str] | None,
    *,
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
) -> str | Path: ...


def report(
    losses: Losses,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
) -> str | Path:
    """Write a one-page report on a log: intervals, comparisons, plots, and warnings.

    The page states the target of each interval.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log. ``attrs["long_name"]`` and ``attrs["units"]`` name the loss and its units,
        ``attrs["title"]`` the log.
    path : str or path, optional
        Where to write the page, such as ``"report.html"``: a name ending in ``.html`` or
        ``.htm``, or without a suffix.
    title : str, optional
        The heading of the page.
    alpha : float, optional
        One minus the level of all intervals.
    seed : int, optional
        The seed of all random draws.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    Path or str
        The path of the page; if ``path`` is not given, the page itself.

    Raises
    ------
    LogError
        If the log cannot be read. Sections that cannot be computed state the reason instead.
    ModuleNotFoundError
        If jinja2 or matplotlib is not installed (extra ``report``).

    Notes
    -----
    The page is self-contained: plots are embedded as SVG, and nothing is loaded from a network. Its
    script, which sorts a table when a column header is clicked, is optional. The page uses the
    light or dark color scheme of the browser. All names are escaped. Numbers are rounded to two
    digits of the smallest standard error, for display only.

    References
    ----------
    W3C (2018), Web content accessibility guidelines 2.1, https://www.w3.org/TR/WCAG21/.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge"], loss="squared_error")
    >>> page = cvstats.report(losses)
    >>> page.splitlines()[0]
    '<!DOCTYPE html>'
    """
    if is_dask_frame(losses):
        ask = partial(report, path=path, title=title, alpha=alpha, seed=seed)
        pairs = has_columns_of_models(losses)
        page: str | Path = delay_answer(losses, ask, pairs=pairs, missing=missing).compute()
        return page
    options = [] if path is None else [f"{str(path)!r}"]
    options += [f"title={title!r}"] if title else []
    options += [f"alpha={alpha!r}"] if alpha != 0.05 else []
    options += [f"seed={seed!r}"] if seed else []
    options += [f"missing={missing!r}"] if isinstance(missing, str) and missing != "raise" else []
    call = f"losses.cvci.report({', '.join(options)})"
    return write_report(
        losses, path, title=title, alpha=alpha, seed=seed, missing=missing, call=call
    )


def write_report(
    losses: Losses,
    path: str | PathLike[str] | None,
    *,
    title: str | None,
    alpha: float,
    seed: int,
    missing: Missing,
    call: str,
) -> str | Path:
    """Create the page and write it; ``call`` is the code that reproduces it."""
    check_alpha(alpha)
    checked_choice("missing", missing, MISSING)
    whole_number("seed", seed, 0)
    if not (title is None or isinstance(title, str)):
        raise LogError(f"title={title!r} is not a title. Expected a string.")
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                f"the report needs {package}. Install it: {install_command('report')}", name=package
            )
    if isinstance(losses, (str, PathLike)):
        raise LogError(
            f"{str(losses)!r} is a path, not a log. Read it first: "
            f"cvstats.report(cvstats.read_log({str(losses)!r}), …)."
        )
    target = None if path is None else check_path(path)
    facts = LogFacts(losses, missing)
    if missing == "raise":
        facts.log.moments(())  # reports the first missing loss
    labels: Any = facts.raw.labels
    several = METRIC in labels.dims and METRIC in labels.coords
    made = (make_reports if several else make_report)(facts, alpha, seed)
    templates = files("cvstats.reporting").joinpath("templates")
    page: str = compile_template().render(
        title=title or str(facts.losses.attrs.get("title", made.title)),
        line=summarize_log(facts.raw, facts.n_cells),
        style=templates.joinpath("report.css").read_text(encoding="utf-8"),
        script=templates.joinpath("report.js").read_text(encoding="utf-8"),
        first=write_first_section(facts),
        report=made,
        how=describe_computation(facts, made, call),
        today=date.today().isoformat(),
    )
    page = printable(page, lines=True)
    if target is None:
        return page
    try:
        with replacing(target) as new:  # the old page is kept until the new one is complete
            new.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LogError(
            f"could not write the report to {str(target)!r}: {error.strerror}."
        ) from error
    return target


@cache
def compile_template() -> Any:
    """Compile the template of the page."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    template = files("cvstats.reporting").joinpath("templates", "report.html.j2")
    return environment.from_string(template.read_text(encoding="utf-8"))


def check_path(path: object) -> Path:
    """Reject an unwritable path before anything is computed."""
    if not isinstance(path, (str, PathLike)):
        raise LogError(f"path={path!r} is not a path. Expected one such as 'report.html', or None.")
    target = Path(path)
    if target.suffix.lower() not in PAGES:
        raise LogError(
            f"{target.name} ends in {target.suffix!r}, but the report is an HTML page. Expected "
            f"a name such as {target.stem}.html; a browser can print that page as PDF."
        )
    if target.is_dir():
        raise LogError(f"{str(target)!r} is a directory. Expected a file, such as 'report.html'.")
    if not target.parent.is_dir():
        raise LogError(
            f"could not write the report to {str(target)!r}: the directory "
            f"{str(target.parent)!r} does not exist. Create it first."
        )
    return target


MOST_NAMES = 12


def list_facts(facts: LogFacts) -> list[tuple[str, str]]:
    """List the facts of a log: models, points, resampling design, and missing losses."""
    losses, log = facts.losses, facts.raw
    design = log.design
    attrs = facts.attrs
    rows = [(key.replace("_", " "), str(attrs[key])) for key in ("title", "source") if key in attrs]
    if "read_from" in attrs:
        rows.append(("read from", str(attrs["read_from"])))
    several = attrs.get("metrics", ())
    if several:
        losses_of = [describe_loss(select_metric(attrs, name)) for name in several]
        rows.append(("metrics", "; ".join(losses_of)))
    elif words := describe_loss(attrs):
        rows.append(("score" if facts.is_score else "loss", words))
    models = list(log.shown_models)
    if facts.are_nameless(models):
        models = ["(no name)"]
    index = pd.Index(models, dtype=object, tupleize_cols=False)
    (names,) = write_labels(index, facts.write_model)
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    what = "differences" if facts.log.of_differences else "models"
    rows.append((f"{what} ({len(names):,})", ", ".join(quote_names(names[:MOST_NAMES])) + more))
    for key, name in (("average", "average over classes"), ("positive", "positive class")):
        if attrs.get(key) is not None:
            rows.append((name, str(attrs[key])))
    points = count_points(log)
    rows.append(("points", f"{points:,}" if points is not None else "not labeled in the log"))
    sizes = design.splits().rows
    rows.append((f"evaluations of each {what.removesuffix('s')}", f"{int(sizes.sum()):,}"))
    for level in ("sample", "outer", "repetition"):
        if design.has(level):
            name = "outer folds" if level == "outer" else f"{level}s"
            rows.append((name, f"{design.number(level):,}"))
    folds = count_folds(design)
    folds_are = fold_level(design)
    of_sources = folds_are == "source"
    are_folds = folds > 1 and not log.only_tested and not (of_sources and log.crossed)
    if are_folds:
        levels = filter(design.levels.__contains__, (*SPLIT, str(folds_are)))
        tested = design.cell_table(tuple(levels))
        least, most = int(tested.total[tested.used].min()), int(tested.total.max())
        each = f"{least:,} to {most:,}" if least < most else f"{least:,}"
        noun = "point" if most == 1 else "points"
        rows.append(("folds", f"{folds:,}, with {each} {noun} each"))
    if design.has("source"):
        are_folds = of_sources and are_folds
        both = ", which are the folds" if are_folds else ""
        rows.append((f"{log.source_name}s", f"{design.number('source'):,}{both}"))
    if design.has("count"):
        rows.append(("count", "number of times the point was in the training sample"))
    if (n_cells := facts.n_cells // max(1, len(several))) > 1:
        rows.append((f"cells of each {what.removesuffix('s')}", f"{n_cells:,}"))
    rows.append(("missing losses", f"{sum(facts.n_missing.values()):,}"))
    rows.append(("container", f"{type(losses).__module__.split('.')[0]} {type(losses).__name__}"))
    return rows


def describe_loss(attrs: dict[Any, Any]) -> str:
    """Name the loss or score, its units, and which values are better; empty without a name."""
    loss = attrs.get("long_name") or str(attrs.get("loss", "")).replace("_", " ")
    scale, better = read_scale(attrs, {}), "lower"
    if targets := targets_of(attrs).values():
        loss = name_difference(scale, attrs).name
        better = f"closer to {listed(f'{target:g}' for target in targets)}"
    elif scale.orientation in TURNED:
        loss, better = scale.name, "higher"
    elif loss in METRICS:
        loss = scale.name
    units = f" in {scale.units}" if scale.units else ""
    return f"{loss or 'loss'}{units}, {better} is better" if loss or units else ""


def fragment(losses: Losses) -> str:
    """Write the first section for a notebook, without optional packages and without raising."""
    if is_dask_frame(losses):
        return f"<p>{escape(printable(describe_log(losses)))}</p>"
    try:
        return write_first_section(LogFacts(losses))
    except LogError as error:
        return f"<p><strong>not a valid loss log:</strong> {escape(printable(str(error)))}</p>"


def write_first_section(facts: LogFacts) -> str:
    """Write the facts of a log as a table with a caption, every name escaped."""
    line = summarize_log(facts.raw, facts.n_cells)
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(printable(value))}</td></tr>'
        for name, value in list_facts(facts)
    )
    return (
        f'<table class="facts">\n<caption>The log: {escape(printable(line))}</caption>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


# --- sections -------------------------------------------------------------------------------------


MOST_ROWS = 60
"""Maximum rows of a table or plot; longer tables become a plot and the first rows."""
TOP = 20
"""Number of rows shown of a longer table."""
MOST_MAPS = 4
"""Maximum number of maps of slices."""
PALE = 0.35
"""Opacity of what is shown for comparison only, and of tied models."""
MOST_READ = 12
"""Maximum number of values of a plot that screen readers read."""
Tip: TypeAlias = tuple[float | None, float | None, float | None, float | None, str]
"""Left, right, bottom and top of a part of a plot in data units (None: its edge), and its text."""
WIDTH = 3.6
"""Width of a figure in inches: narrow, so that its text is large enough on a phone."""
FEWER_FINDINGS = 10
"""Maximum number of findings listed per code."""
SPREAD = ("tau", "tau_lower", "tau_upper", "p_value")
"""Columns shown about how much sources differ."""
RHO = (0.0, 0.1, 0.2, 0.3)
"""Correlations of fold means that are assumed."""


@dataclass(frozen=True)
class Grid:
    """A table of text: caption, column headers, row names, cells."""

    caption: str
    heads: list[str]
    rows: list[tuple[str, list[str]]]
    words: list[bool]
    """Columns with words, not numbers."""
    corner: str = "model"

    @property
    def wide(self) -> bool:
        """Whether the table spans the width of the page."""
        return len(self.heads) > 5 or any([len(cell) > 24 for _, row in self.rows for cell in row])


@dataclass(frozen=True)
class Figure:
    """A plot as SVG, its text for screen readers, and its caption."""

    source: str
    words: str
    caption: str


@cache
def read_texts() -> dict[str, dict[str, Any]]:
    """Read the words of the report."""
    templates = files("cvstats.reporting").joinpath("templates")
    return tomllib.loads(templates.joinpath("report.toml").read_text(encoding="utf-8"))


def say(key: str, verdict: Verdict | None = None, **facts: Any) -> str:
    """Write words of the report, such as ``"tables.pairs"``, with facts of a verdict."""
    words: Any = read_texts()
    for part in key.split("."):
        words = words[part]
    if verdict is not None:
        name = verdict.scale.name
        facts |= {"verdict": verdict, "level": verdict.level}
        facts |= {"score": name, "Score": capitalize(name)}
    return str(words.format(**facts))


@dataclass
class Section:
    """A heading and its contents."""

    key: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    parts: list[Grid | Figure] = field(default_factory=list)
    findings: list[tuple[str, list[str], str]] = field(default_factory=list)
    """Code, findings by model, and advice."""

    def say(self, key: str, **facts: Any) -> None:
        """Add a paragraph."""
        self.paragraphs.append(say(f"sentences.{key}", **facts))


@dataclass
class Report:
    """The summary, the sections, and what the appendix needs."""

    sentences: tuple[str, ...]
    cautions: list[str]
    sections: list[Section] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    pictures: int = 0
    refusals: dict[str, str] = field(default_factory=dict)
    """What is not shown, and why."""
    verdict: Verdict | None = None
    metrics: dict[str, Report] = field(default_factory=dict)
    """The report of each of several metrics."""

    @property
    def title(self) -> str:
        """The default title of the page."""
        if self.verdict is None:
            return "Loss log"
        names = self.verdict.names
        what = "Metrics" if self.metrics else capitalize(self.verdict.scale.name)
        several = "pairs of models" if self.verdict.facts.log.of_differences else "models"
        return f"{what} of {names[0] if len(names) == 1 else f'{len(names):,} {several}'}"

    def note(self, attrs: dict[Any, Any]) -> None:
        """Note the reference of the method of a result."""
        if (words := str(attrs.get("reference", ""))) and words not in self.references:
            self.references.append(words)

    def draw(
        self, section: Section, key: str, draw: Callable[[Axes], Any], *, height: float,
        tips: Callable[[], Sequence[Tip]] = tuple, crop: bool = False, **facts: Any,
    ) -> None:  # fmt: skip
        """Add a plot to a section, or the reason why it cannot be drawn to the appendix.

        A plot that fails for any other reason than the log is omitted with a warning.
        """
        title = say(f"plots.{key}.title", self.verdict, **facts)
        try:
            known = tips()
            source = draw_svg(draw, height, known, f"p{self.pictures}-", crop)
        except LogError as error:
            self.refusals[title] = reason_in_words(error)
            return
        except Exception as error:
            self.refusals[title] = say("sentences.not_drawn", error=error)
            warnings.warn(f"report: {title} could not be drawn: {error!r}", stacklevel=2)
            return
        self.pictures += 1
        read = [words for *_, words in known[:MOST_READ]]
        more = [f"and {len(known) - MOST_READ:,} more"] if len(known) > MOST_READ else []
        words = f"{capitalize(title)}. {'; '.join([*read, *more])}".strip()
        caption = say(f"plots.{key}.caption", self.verdict, **facts)
        section.parts.append(Figure(source, words, caption))


def make_reports(facts: LogFacts, alpha: float, seed: int) -> Report:
    """Make the summary and the sections of each of several metrics, as if it were the only one."""
    whole = Report((), [])
    for label, part in split_log(facts.losses, METRIC):
        name = str(label)
        one = make_report(LogFacts(part, facts.missing), alpha, seed, whole.pictures)
        whole.metrics[name] = one
        whole.sentences += (f"{name}: {one.sentences[0]}", *one.sentences[1:])
        whole.cautions += [f"{name}: {words}" for words in one.cautions]
        for section in one.sections:
            section.key += f"-{len(whole.metrics)}"
            section.title += f" ({name})"
        whole.sections += one.sections
        whole.references += one.references
        whole.refusals |= {f"{what} ({name})": words for what, words in one.refusals.items()}
        whole.pictures, whole.verdict = one.pictures, whole.verdict or one.verdict
    return whole


def make_report(facts: LogFacts, alpha: float, seed: int, pictures: int = 0) -> Report:
    """Make the summary and all sections that apply to this log; ``pictures`` precede them."""
    verdict = Verdict(facts, alpha, seed)
    try:
        summary = describe_verdict(verdict)
    except LogError as error:
        words = say("sentences.no_interval")
        refusals = {"Intervals": reason_in_words(error)}
        report = Report((words,), [], pictures=pictures, refusals=refusals)
        report.sections.append(make_diagnosis_section(facts))
        return report
    cautions = list(summary.cautions.values())
    report = Report(summary.sentences, cautions, pictures=pictures, verdict=verdict)
    made = [make_intervals_section(report, verdict)]
    if is_gridded(verdict):
        made.append(make_maps_section(report, verdict))
        if verdict.whole is not None:
            made.append(make_pairs_section(report, verdict.whole))
    else:  # such tables and plots are uninformative for many cells
        few = len(verdict.models) <= FEW_MODELS
        made.append(
            make_pairs_section(report, verdict) if few else make_best_section(report, verdict)
        )
        if facts.design.has("source"):
            made.append(make_sources_section(report, verdict))
        made.append(make_scatter_section(report, verdict))
    made.append(make_diagnosis_section(facts, verdict, cautioned=bool(report.cautions)))
    report.sections += [section for section in made if section.paragraphs or section.parts]
    report.refusals |= {what: reason_in_words(error) for what, error in verdict.refusals.items()}
    return report


FEW_MODELS = 10
"""Maximum number of models for a table of all pairs; with more, differences from the best."""


def is_gridded(verdict: Verdict) -> bool:
    """Whether the log has more carried cells than a table can show."""
    return len(verdict.cells) > 1 and len(verdict.frame) > TOP


def tabulate(
    verdict: Verdict, result: Any, caption: str, columns: Sequence[str] = NUMBERS,
    most: int = MOST_ROWS,
) -> Grid:  # fmt: skip
    """Format some columns of a result, the best row first, unless there is a target."""
    return to_grid(rank_rows(verdict, result, columns[0]), caption, columns, most)


def rank_rows(verdict: Verdict, result: Any, by: str) -> pd.DataFrame:
    """Convert a result to rows, as scores if the losses were made from a score, the best first.

    Rows of a metric that has a target keep their order.
    """
    scale = verdict.scale
    if scale.larger:
        result = to_score(result, scale.name, scale.orientation, result.attrs)
    frame = result_frame(result)
    if verdict.facts.are_nameless(verdict.models) and frame.index.names == ["model"]:
        frame = frame.set_axis(pd.Index(verdict.names, name="model"))
    if verdict.unranked:
        return frame
    return frame.sort_values(by, kind="stable", ascending=not scale.larger)


def to_grid(
    frame: pd.DataFrame, caption: str, columns: Sequence[str], most: int = MOST_ROWS
) -> Grid:
    """Format some columns of a table; cautions only if they vary between rows."""
    varies = "caution" in frame and frame["caution"].nunique() > 1
    kept = [name for name in (*columns, *["caution"] * varies) if name in frame]
    top = frame.head(most)
    if len(frame) > most:
        caption = say("tables.first_rows", caption=caption, most=most, number=len(frame))
    cells = print_cells(top)[kept]
    rows = zip(name_rows(top), cells.to_numpy().tolist(), strict=True)
    words = [frame[name].dtype.kind not in "fiu" for name in kept]
    heads = [read_texts()["heads"].get(name, name.replace("_", " ")) for name in kept]
    corner = "models" if "other" in frame.index.names else str(frame.index.names[0] or "model")
    return Grid(caption, heads, list(rows), words, corner)


def reason_in_words(error: LogError) -> str:
    """Write why something is not shown: what is wrong with the log, without code to type."""
    first = re.split(r"\. (?=[A-Z])", str(error).rstrip("."), maxsplit=1)[0]
    code = re.search(r"[`=]|\w\(|\w\.\w+\(|cvstats|\blog\.", first)
    return say("sentences.not_shown") if code else f"{first}."


PAGE_COLOURS = {
    "#000000": "currentColor", "#ffffff": "var(--page)", "#0072b2": "var(--blue)",
    "#d55e00": "var(--orange)", "#7a7a7a": "var(--grey)",
}  # fmt: skip
"""Colors of plots that the page brightens in dark mode."""
MANY = 400
"""Plots with more marks are rasterized, so that the page stays small."""


def draw_svg(
    draw: Callable[[Axes], Any],
    height: float,
    tips: Sequence[Tip] = (),
    key: str = "",
    crop: bool = False,
) -> str:
    """Draw on a new figure with a height in inches, and return it as inline SVG.

    Its colors are those of the page, its ids start with the key, and invisible rectangles name what
    is under the pointer.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",  # text instead of outlines: smaller
        "svg.hashsalt": "cvstats",  # the same log gives the same page
        "figure.constrained_layout.use": True,
    }
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts show the text
        canvas = Canvas(figsize=(WIDTH, height))
        ax = canvas.subplots()
        draw(ax)
        file = StringIO()
        canvas.patch.set(facecolor="none")
        for each in (ax, *ax.child_axes):
            rasterize_many(each)
            each.patch.set(facecolor="none", edgecolor="none")
        dpi, canvas.dpi = canvas.dpi, 200  # of what is rasterized
        printer: Any = FigureCanvasSVG(canvas)  # savefig draws twice if there is a layout
        printer.print_svg(file, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        canvas.dpi = dpi
        box = canvas.get_tightbbox() if crop else None
    svg = file.getvalue()
    svg = svg[svg.index("<svg") : svg.rindex("</svg>")].replace("\n", " ")
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    y, high = (0, 72 * height) if box is None else (72 * (height - box.y1) - 3, 72 * box.height + 6)
    size = f'viewBox="0 {y:.1f} {72 * WIDTH:.1f} {high:.1f}"'
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*" viewBox="[^"]*"', rf"\1 {size}", svg)
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{key}", svg)
    for colour, name in PAGE_COLOURS.items():
        svg = svg.replace(colour, name)
    return svg + "".join(write_tips(ax, tips, height)) + "</svg>"


def draw_plot(name: str, log: Any, ax: Axes, **options: Any) -> None:
    """Draw a plot of the package; its name is looked up here, since its file may be broken."""
    getattr(plot, name)(log, ax=ax, **options)


def rasterize_many(ax: Any) -> None:
    """Rasterize lines and collections with many marks."""
    for line in ax.lines:
        if line.get_marker() != "None" and len(line.get_xdata(orig=True)) > MANY:
            line.set_rasterized(True)
    for marks in ax.collections:
        if max(len(marks.get_paths()), len(marks.get_offsets())) > MANY:
            marks.set_rasterized(True)


def write_tips(ax: Axes, tips: Sequence[Tip], height: float) -> Iterator[str]:
    """Write an invisible rectangle for each tip, which browsers show on hover."""
    scale, box = 72 / ax.figure.dpi, ax.get_window_extent()
    for left, right, bottom, top, words in tips:
        x0 = box.x0 if left is None else ax.transData.transform((left, 0))[0]
        x1 = box.x1 if right is None else ax.transData.transform((right, 0))[0]
        y0 = box.y0 if bottom is None else ax.transData.transform((0, bottom))[1]
        y1 = box.y1 if top is None else ax.transData.transform((0, top))[1]
        yield (
            f'<rect class="tip" x="{scale * min(x0, x1):.1f}" '
            f'y="{72 * height - scale * max(y0, y1):.1f}" width="{scale * abs(x1 - x0):.1f}" '
            f'height="{scale * abs(y1 - y0):.1f}"><title>{escape(printable(words))}</title></rect>'
        )


def list_row_tips(numbers: pd.DataFrame, start: int = 0) -> list[Tip]:
    """Name each row of a plot with its numbers, from the top."""
    first = next(name for name in ("difference", "estimate") if name in numbers)
    cells = print_cells(numbers[[first, "lower", "upper"]])
    return [
        (None, None, at - 0.5, at + 0.5, f"{name}: {mean} ({lower} to {upper})")
        for at, (name, (mean, lower, upper)) in enumerate(
            zip(name_rows(numbers), cells.to_numpy().tolist(), strict=True), start
        )
    ]


def list_source_tips(verdict: Verdict) -> list[Tip]:
    """Name each source of a plot with the numbers of each model."""
    from cvstats.plot.sources import rank_sources

    each, labels = rank_sources(verdict.facts, alpha=verdict.alpha)
    if len(verdict.names) > len(MARKERS) or len(labels) > MANY:  # panels, or too many
        return []
    cells = print_cells(each[["estimate", "lower", "upper"]]).to_numpy().tolist()
    words: dict[str, list[str]] = {}
    for source, model, (mean, lower, upper) in zip(
        each["source"], each["model"], cells, strict=True
    ):
        words.setdefault(source, []).append(f"{model} {mean} ({lower} to {upper})".strip())
    return [
        (None, None, at - 0.5, at + 0.5, f"{label}: {', '.join(words[label])}")
        for at, label in enumerate(labels)
    ]


def list_cell_tips(verdict: Verdict, at: Cell = ()) -> list[Tip]:
    """Name each cell of a map, or each place along a line, with the numbers of the best models."""
    dims = range(-min(2, len(verdict.dims)), 0)
    shown = [row for row, labels in enumerate(verdict.cells) if labels[:-2] == at or not at]
    places = [find_edges([verdict.cells[row][k] for row in shown]) for k in dims]
    if len(shown) > MANY or not all(places):
        return []
    scale, decimals = verdict.scale, count_decimals(verdict.frame)
    best = np.argsort(np.nanmean(verdict.estimate, axis=0), kind="stable")[:MOST_LINES].tolist()
    lower, upper, names = verdict.spread("lower"), verdict.spread("upper"), verdict.cell_names()
    found: list[Tip] = []
    for row in shown:
        numbers = "; ".join(
            f"{verdict.names[j]} {scale.value(verdict.estimate[row, j], decimals)} "
            f"({scale.range(lower[row, j], upper[row, j], decimals, of_values=True)})"
            for j in best
        )
        ends = [edges[verdict.cells[row][k]] for edges, k in zip(places, dims, strict=True)]
        left, right = ends[-1]
        bottom, top = ends[0] if len(ends) == 2 else (None, None)
        found.append((left, right, bottom, top, f"{names[row]}: {numbers}"))
    return found


def find_edges(labels: list[Any]) -> dict[Any, tuple[float, float]]:
    """Find where the cell of each label begins and ends; empty for one label and for names."""
    unique = sorted({label for label in labels if isinstance(label, (int, float))})
    if len(unique) < 2 or len(unique) < len(set(labels)):
        return {}
    edges = edges_of(np.array(unique, dtype=float)).tolist()
    return {label: (edges[k], edges[k + 1]) for k, label in enumerate(unique)}


def make_intervals_section(report: Report, verdict: Verdict) -> Section:
    """Show the error of each model with its interval."""
    attrs = verdict.attrs
    size = "high" if verdict.scale.larger and not verdict.unranked else "large"
    section = Section("intervals", say("sections.intervals", verdict, size=size))
    report.note(attrs)
    if "n_dropped" in {*attrs, *verdict.frame} and (left_out := verdict.dropped[0]):
        name = "dropped_one" if left_out == 1 else "dropped"
        section.say(name, number=left_out, where=verdict.dropped[1])
    if is_gridded(verdict):
        if verdict.whole is not None:
            caption = say("tables.cells", verdict)
            section.parts.append(tabulate(verdict, verdict.whole.intervals, caption))
        section.parts.append(tabulate_quantiles(verdict))
        return section
    caption = say("tables.intervals", verdict, order="" if verdict.unranked else ", best first")
    rows = len(verdict.frame)
    many = rows > TOP and len(verdict.cells) == 1 and not verdict.unranked
    most = TOP if many else MOST_ROWS
    section.parts.append(tabulate(verdict, verdict.intervals, caption, most=most))
    ranked = rank_rows(verdict, verdict.intervals, "estimate")
    if many:
        report.draw(
            section, "ranking", partial(draw_ranking, verdict=verdict), height=4.5, rows=rows,
            tips=partial(list_row_tips, ranked, 1) if rows <= MANY else tuple,
        )  # fmt: skip
        order = verdict.order[0].tolist()
        section.say("all_models", names=", ".join(verdict.quoted[j] for j in order))
        return section
    report.draw(
        section, "intervals", partial(draw_intervals, verdict=verdict),
        tips=partial(list_row_tips, ranked), height=min(8.0, 1.1 + 0.36 * rows),
    )  # fmt: skip
    return section


def draw_intervals(ax: Axes, verdict: Verdict) -> None:
    """Draw the intervals of the table, and the naive intervals, if any, in a paler color."""
    results = {str(verdict.attrs["method"]): verdict.intervals}
    with suppress(LogError):
        results["naive"] = verdict.facts.apply(interval, method="naive", alpha=verdict.alpha)
    draw_plot("forest", verdict.facts, ax, methods=results)
    for artist in (*ax.collections[1:], *ax.lines[1:]):  # those of the naive interval
        artist.set_alpha(PALE)


def tabulate_quantiles(verdict: Verdict) -> Grid:
    """Describe the errors of many cells by their quantiles, a row for each model."""
    scale, share = verdict.scale, np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    decimals = count_decimals(verdict.frame)
    half = (verdict.spread("upper") - verdict.spread("lower")) / 2
    at = np.nanquantile(verdict.estimate, share, axis=0)  # of losses, also where scores are shown
    width = np.nanmedian(half, axis=0)
    rows = []
    for name, values, typical in zip(verdict.names, at.T, width, strict=True):
        cells = [scale.value(value, decimals) for value in values]
        rows.append((name, [*cells, scale.difference(typical, decimals)]))
    first, last = ("lowest", "highest") if verdict.unranked else ("best", "worst")
    heads = [first, "25%", "median", "75%", last, "±"]
    caption = say(
        "tables.quantiles", verdict, number=len(verdict.cells), dims=", ".join(verdict.dims),
        first=first, last=last,
    )  # fmt: skip
    return Grid(caption, heads, rows, [False] * len(heads))


def make_maps_section(report: Report, verdict: Verdict) -> Section:
    """Draw the cells of a grid: lines for one dimension, maps for two."""
    title = say("sections.cells_of_one" if len(verdict.models) == 1 else "sections.cells")
    section = Section("cells", title)
    if len(verdict.dims) == 1:
        report.draw(
            section, "line", partial(draw_lines, verdict=verdict), height=3.0,
            tips=partial(list_cell_tips, verdict), dim=verdict.dims[0],
        )  # fmt: skip
        return section
    maps = "best", "estimate"
    if len(verdict.models) == 1:
        maps = "estimate", "half_width"
    elif len(verdict.models) == 2 and verdict.pairs is not None:
        maps = "lead", "estimate"
    slices = list(dict.fromkeys(labels[:-2] for labels in verdict.cells))
    for labels in slices[:MOST_MAPS]:
        where = ", ".join(f"{d}={x}" for d, x in zip(verdict.dims, labels, strict=False))
        for what in maps:
            report.draw(
                section, what, partial(draw_map, verdict=verdict, what=what, at=labels),
                height=3.2, crop=True, tips=partial(list_cell_tips, verdict, labels),
                at=f" at {where}" if where else "", names=verdict.quoted,
                model=verdict.quoted[most_often_best(verdict)],
            )  # fmt: skip
    if len(slices) > MOST_MAPS:
        section.say("some_maps", most=MOST_MAPS, number=len(slices))
    return section


def make_best_section(report: Report, verdict: Verdict) -> Section:
    """Compare many models with the best of them, and list the possibly best ones."""
    section = Section("comparisons", say("sections.many"))
    if verdict.pairs is None:
        return section
    report.note(verdict.comparison.attrs)
    best, pairs = int(verdict.best[0]), verdict.pairs
    order = verdict.order[0, 1:].tolist()
    table = pd.DataFrame(
        {
            "difference": pairs.lead[0, best, order],
            "lower": pairs.lower[0, best, order],
            "upper": pairs.upper[0, best, order],
            "possibly_best": verdict.tied[0, order],
        },
        index=pd.Index([verdict.names[j] for j in order], name="model"),
    )
    section.paragraphs.append(f"{count_best(verdict)} {say('sentences.comparisons', verdict)}")
    caption = say("tables.from_best", verdict, name=verdict.quoted[best])
    section.parts.append(to_grid(table, caption, [*map(str, table)], most=TOP))
    return section


def count_best(verdict: Verdict) -> str:
    """Count the models that are not significantly worse than any other."""
    tied = list(compress(verdict.quoted, verdict.tied[0]))
    kept, models = len(tied), len(verdict.models)
    all_kept = kept == models
    return say(
        "sentences.best_models", verdict,
        some=f"Any of the {models:,}" if all_kept else f"{kept:,} of {models:,}",
        names=f": {join_words(tied)}" if len(tied) <= FEW_MODELS else "",
        others="" if all_kept else say("sentences.no_better"),
    )  # fmt: skip


def make_pairs_section(report: Report, verdict: Verdict) -> Section:
    """Describe the paired differences between models."""
    title = "sections.differences" if verdict.unranked else "sections.pairs"
    section = Section("comparisons", say(title))
    if verdict.comparison is None:
        return section
    table, scale = rank_rows(verdict, verdict.comparison, "difference"), verdict.scale
    report.note(verdict.comparison.attrs)
    adjusted, adjust = "p_adjusted" in table, verdict.comparison.attrs.get("adjust")
    clear, pairs = 0 if verdict.pairs is None else int(verdict.pairs.clear.sum()), len(table)
    meaning = say("sentences.first_better", side="above" if scale.larger else "below")
    for target in set(targets_of(verdict.facts.attrs).values()):
        meaning = say("sentences.target_better", verdict, target=target)
    by = "adjusted_sidak" if adjust == "sidak" else "adjusted"
    section.say(
        "pairs",
        meaning=meaning,
        significant=count_significant(clear, pairs, verdict.alpha),
        adjusted=say(f"sentences.{by}", verdict) if adjusted else "",
    )
    if len(verdict.cells) == 1 and len(verdict.models) > 2 and not verdict.unranked:
        section.paragraphs.append(count_best(verdict))
    numbers = ["difference", "lower", "upper", "p_adjusted" if adjusted else "p_value"]
    section.parts.append(to_grid(table, say("tables.pairs", verdict), numbers))
    few = pairs <= FEW_PAIRS
    report.draw(
        section, "pairs" if pairs > 1 else "pair", partial(draw_pairs, verdict=verdict),
        tips=partial(list_row_tips, table) if few else tuple,
        height=min(8.0, 1.3 + 0.5 * pairs) if few else 4.2,
    )  # fmt: skip
    return section


def draw_pairs(ax: Axes, verdict: Verdict) -> None:
    """Draw the comparison of the table."""
    from cvstats.plot.comparison import draw_comparison

    found = verdict.comparison
    draw_comparison(
        found, verdict.facts, alpha=verdict.alpha, adjust=found.attrs.get("adjust"), ax=ax
    )


FEW_PAIRS = 10
"""More pairs are drawn as a matrix."""


def count_significant(clear: int, pairs: int, alpha: float) -> str:
    """Count the significant differences in a sentence."""
    if pairs == 1:
        key = "one_significant" if clear else "one_not"
    else:
        key = "significant" if clear else "none_significant"
    many = f"{clear:,} of the {pairs:,}"
    if clear == pairs:
        many = "Both" if pairs == 2 else f"All {pairs:,}"
    verb = "is" if clear == 1 else "are"
    return say(f"sentences.{key}", level=100 * alpha, pairs=pairs, many=many, verb=verb)


def make_sources_section(report: Report, verdict: Verdict) -> Section:
    """Describe how sources differ, and the interval for new sources, unless they are fixed."""
    log = verdict.facts.log
    number, name = log.design.number("source"), log.source_name
    section = Section("sources", say("sections.sources", name=name))
    if log.fixed_sources:
        section.say("fixed_sources", number=number, name=name)
    elif not add_intervals_of_sources(report, section, verdict, number):
        return section
    models, one = max(1.0, 0.45 * len(verdict.models)), len(verdict.models) == 1
    report.draw(
        section, "sources", partial(draw_plot, "sources", verdict.facts, alpha=verdict.alpha),
        tips=partial(list_source_tips, verdict),
        height=min(9.0, 1.2 + 0.25 * (number + 1) * models),
        name=name, Name=capitalize(name), which="and the band are" if one else "is",
    )  # fmt: skip
    return section


def add_intervals_of_sources(
    report: Report, section: Section, verdict: Verdict, number: int
) -> bool:
    """Add the intervals with sources as the sampling unit, and how much these differ.

    Returns False if they do not apply.
    """
    facts, alpha = verdict.facts, verdict.alpha
    found = verdict.attempt("Intervals of sources", partial(group_interval, facts, alpha=alpha))
    if found is None:
        return False
    row, result = found
    report.note(result.attrs)
    target = describe_target(verdict, result.attrs)
    new = row == "new source"
    units = "sources_and_points" if result.attrs.get("by") == "source, point" else "sources"
    caption = say("tables.new_sources" if new else f"tables.{units}", verdict)
    table = tabulate(verdict, result, caption)
    first = tabulate(verdict, verdict.intervals, caption, most=TOP)  # as in the first table
    known = units == "sources" and table.rows == first.rows
    section.say("sources_above" if known else "sources", number=number, target=target)
    if not known:
        section.parts.append(table)
    predict = out_of_source if new else clustered
    with suppress(LogError):  # of sources that models were trained on
        one = facts.apply(predict, interval="prediction", alpha=alpha)
        caption = say("tables.prediction", verdict)
        section.parts.append(tabulate(verdict, one, caption, NUMBERS[:3]))
    ask = partial(facts.apply, heterogeneity, alpha=alpha)
    if (spread := verdict.attempt("How much sources differ", ask)) is not None:
        report.note(spread.attrs)
        caption = say("tables.spread", verdict)
        section.parts.append(to_grid(result_frame(spread), caption, SPREAD))
    return True


def make_scatter_section(report: Report, verdict: Verdict) -> Section:
    """Show folds and repetitions."""
    facts, design = verdict.facts, verdict.facts.design
    folds = facts.resampled or facts.n_folds > 1
    section = Section("scatter", say(f"sections.{'scatter' if folds else 'repetitions'}"))
    trained = not (facts.resampled or facts.log.only_tested)
    if trained and (design.has("fold") or design.has("repetition")) and len(verdict.names) <= TOP:
        tests = "folds" if folds else "runs" if covers_all_points(design) else "splits"
        report.draw(section, tests, partial(draw_plot, "folds", verdict.facts), height=2.6)
    if design.has("repetition"):
        draw = partial(draw_plot, "stability", verdict.facts, alpha=verdict.alpha)
        report.draw(section, "stability", draw, height=2.6)
    return section


def make_diagnosis_section(
    facts: LogFacts, verdict: Verdict | None = None, *, cautioned: bool = False
) -> Section:
    """List the findings of `diagnose`, and what to do about each or what the report does."""
    section = Section("diagnostics", say("sections.diagnostics"))
    if not facts.error and facts.sample is None:
        section.say("only_moments")
    elif not facts.error and facts.sample is not None and not facts.sample.whole:
        section.say("sampled", number=facts.sample.log.design.size)
    found = list_findings(facts)
    if found.empty:
        section.say("no_more_findings" if cautioned else "no_findings")
        return section
    kinds = found.groupby(["code", "advice"], sort=False)
    section.say("one_finding" if len(kinds) == 1 else "findings", number=len(kinds))
    for (code, advice), rows in kinds:
        words = []
        for row in rows.head(FEWER_FINDINGS).to_dict("records"):
            finding = OPEN_END.sub(".", row["finding"])
            model = row["model"]
            words.append(f"{model}: {finding}" if model else capitalize_sentence(finding))
        if (more := len(rows) - FEWER_FINDINGS) > 0:
            words.append(say("sentences.more_findings", number=more))
        section.findings.append((str(code), words, adapt_advice(str(advice), verdict)))
    return section


def adapt_advice(advice: str, verdict: Verdict | None) -> str:
    """Replace the advice to use a method by the words that the report uses it."""
    if verdict is None:
        return advice
    name = str(verdict.attrs["method"])
    advice = advice.replace(f"Use log.cvci.{name}().", say("sentences.done", method=name))
    if verdict.comparison is None:
        return advice
    names, key = [str(verdict.comparison.attrs["interval_method"])], "done_differences"
    if switches := verdict.switches["comparison"]:
        names, key = list(map(attrgetter("method"), switches)), "done_some"
    for name in names:
        done = say(f"sentences.{key}", method=name)
        advice = advice.replace(f"Use log.cvci.compare(method={name!r}).", done)
    return advice


def describe_computation(facts: LogFacts, report: Report, call: str) -> dict[str, Any]:
    """Describe the computation: call, versions, references, other methods."""
    names = ("cvstats", "numpy", "scipy", "pandas", "xarray", "numba", "matplotlib")
    versions = [("Python", platform.python_version())]
    versions += [(name, version_of(name)) for name in names]
    made: dict[str, Any] = {
        "call": call, "versions": versions, "methods": None,
        "variance": make_variance_section(report, facts),
        "references": list_works(report.references),
        "method": [],
    }  # fmt: skip
    if report.metrics:
        made["method"] = describe_methods(report.metrics)
    elif report.verdict is not None:
        made["method"] = describe_method(report.verdict)
    try:
        known = facts.apply(methods).reset_index().to_dict("records")
    except LogError:
        return made
    for part, head in (("methods", "target"), ("other_methods", "what the log must contain")):
        rows = [
            (row["method"], [row["target"] if row["applies"] else describe_need(row)])
            for row in known
            if row["applies"] == (part == "methods")
        ]
        made[part] = Grid(say(f"tables.{part}"), [head], rows, [True], corner="method")
    return made


def describe_need(method: dict[str, Any]) -> str:
    """Describe what a log for a method has: individual losses if this one has moments only."""
    if method["why_not"].startswith(NEEDS_LOSSES):
        return "individual losses; this log was read as moments of its cells"
    return re.sub(r" \((?:level|levels) .*?\)", "", method["needs"])


def list_works(references: list[str]) -> list[tuple[str, str, str]]:
    """List the works behind the results: authors and year, title, and address.

    A reference without a known work has neither title nor address.
    """
    found: list[tuple[str, str, str]] = []
    for words in references:
        works = find_works(words).values()
        for work in works:
            people = [one.partition(",")[0].strip("{}") for one in work["author"].split(" and ")]
            title = re.sub(r"[{}]", "", work["title"]).replace("--", "–")
            found.append((f"{join_words(people)} ({work['year']})", title, locate_work(work)))
        if not works:
            found.append((words, "", ""))
    return list(dict.fromkeys(found))


def describe_methods(reports: Mapping[str, Report]) -> list[tuple[str, str]]:
    """Describe the methods of several metrics, with the names of metrics if they differ."""
    each = {
        metric: [] if part.verdict is None else describe_method(part.verdict)
        for metric, part in reports.items()
    }
    rows = []
    for what, words in dict.fromkeys(row for own in each.values() for row in own):
        whose = [metric for metric, own in each.items() if (what, words) in own]
        some = "" if len(whose) == len(each) else f" ({', '.join(whose)})"
        rows.append((f"{what}{some}", words))
    return rows


def describe_method(verdict: Verdict) -> list[tuple[str, str]]:
    """Describe the methods of the intervals and of the differences, and their guarantees."""
    facts = verdict.attrs
    why = ""
    for switch in verdict.switches["intervals"]:
        why = f", which replaces {switch.before.attrs['method']} {switch.caution.cause}"
    rows = [
        ("method", f"{facts['method']}{why}"),
        ("reason", facts["reason"]),
        ("target", describe_target(verdict, facts)),
        ("guarantee", name_sources(facts["guarantee"], facts)),
    ]
    if verdict.comparison is not None:
        attrs = verdict.comparison.attrs
        words = name = str(attrs["interval_method"])
        guarantee = name_sources(attrs["guarantee"], attrs)
        switches = verdict.switches["comparison"]
        for switch in switches:
            other = name_sources(switch.attrs["guarantee"], switch.attrs)
            wider = f"the wider of {name} and {switch.method}"
            if len(switches) == 1 and has_caution(switch.before, switch.caution).all():
                words, guarantee = f"{wider}, {switch.caution.cause}", other
            else:
                label = switch.caution.label
                words = f"{words}; for differences with the caution {label!r}, {wider}"
                guarantee = f"{guarantee}; of {switch.method}: {other}"
        rows += [("method of differences", words), ("guarantee of differences", guarantee)]
    if facts.get("suggestion"):
        rows.append(("before the next experiment", facts["suggestion"]))
    return rows


def make_variance_section(report: Report, facts: LogFacts) -> Section:
    """Show the components of the variance, which depend on an assumption."""
    section, verdict = Section("variance", say("sections.variance")), report.verdict
    if report.metrics or (
        verdict is not None and (is_gridded(verdict) or len(verdict.names) > TOP)
    ):
        return section
    if facts.log.only_tested:  # no covariance of losses by common training data
        return section
    try:
        parts = facts.apply(decompose, rho=list(RHO))
    except LogError:
        return section
    report.note(parts.attrs)
    draw = partial(draw_plot, "decomposition", facts, rho=RHO)
    height = min(12.0, 1.3 + 0.6 * len(result_frame(parts)))
    report.draw(section, "decomposition", draw, height=height)
    return section


MOST_LINES = 5
"""Maximum number of models drawn along a dimension."""


def arrange_scores(verdict: Verdict) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and limits by cell and model, as scores if the losses were made from a score."""
    estimate, lower, upper = (
        turn(verdict.spread(name), verdict.scale.orientation) for name in NUMBERS[:3]
    )
    return estimate, np.fmin(lower, upper), np.fmax(lower, upper)


def draw_ranking(ax: Axes, verdict: Verdict) -> None:
    """Draw the intervals of many models below each other, the best at the top."""
    estimate, lower, upper = (values[0] for values in arrange_scores(verdict))
    order = verdict.order[0]
    rank = np.arange(1, len(order) + 1)
    ax.tick_params(labelsize=font_size(ax))
    for here, colour, label in (
        (verdict.tied[0][order], COLOURS[0], "possibly best"),
        (~verdict.tied[0][order], GREY, "excluded"),
    ):
        ax.hlines(
            rank[here], lower[order][here], upper[order][here], colors=colour,
            linewidth=max(0.3, min(2.0, 180 / len(order))), alpha=PALE,
        )  # fmt: skip
        ax.plot(
            estimate[order][here], rank[here], linestyle="none", marker=".", color=colour,
            markersize=max(1.0, min(5.0, 600 / len(order))), label=label,
        )  # fmt: skip
    ax.set_ylim(len(order) + 0.5, 0.5)
    legend_above(ax)
    label_y(ax, "rank of the model")
    set_numbers(ax, verdict.scale.name)


def draw_lines(ax: Axes, verdict: Verdict) -> None:
    """Draw the error of each model along the one carried dimension."""
    estimate, lower, upper = arrange_scores(verdict)
    at = places_of(pd.Index([labels[0] for labels in verdict.cells]))
    order = np.argsort(at)
    ax.tick_params(labelsize=font_size(ax))
    best = np.argsort(np.nanmean(verdict.estimate, axis=0), kind="stable")[:MOST_LINES]
    for colour, j in zip(COLOURS, best, strict=False):
        ax.fill_between(at[order], lower[order, j], upper[order, j], color=colour, alpha=0.2, lw=0)
        ax.plot(at[order], estimate[order, j], color=colour, label=verdict.names[j])
    if len(best) > 1:
        legend_above(ax)
    set_numbers(ax, verdict.scale.name, along="y")
    label_x(ax, verdict.dims[0])


def draw_map(ax: Axes, verdict: Verdict, what: str, at: Cell) -> None:
    """Draw the cells of the last two dimensions: errors, half-widths, leads or the best model."""
    from cvstats.plot.map import add_map_bar, draw_cells, draw_dots, label_dimensions, mark_axes

    rows = [row for row, labels in enumerate(verdict.cells) if labels[:-2] == at]
    mark = verdict.tied[rows].sum(axis=1) == 1
    if what == "lead" and verdict.pairs is not None:
        values, mark = verdict.pairs.lead[rows, 0, 1], verdict.pairs.clear[rows].any(axis=(1, 2))
    elif what == "best":
        values = verdict.best[rows].astype(float)
    else:
        model = most_often_best(verdict)
        estimate, lower, upper = (table[rows, model] for table in arrange_scores(verdict))
        values = estimate if what == "estimate" else (upper - lower) / 2
    index = pd.MultiIndex.from_tuples(
        [verdict.cells[row][-2:] for row in rows], names=verdict.dims[-2:]
    )
    field, clear = (pd.Series(numbers, index).to_xarray() for numbers in (values, mark))
    clear = clear.fillna(0).astype(bool)
    ax.tick_params(labelsize=font_size(ax))
    if what == "best":
        draw_categories(ax, verdict, field, clear)
    else:
        image = draw_cells(ax, field, symmetric=what == "lead", turned=True)
        words = {
            "estimate": verdict.scale.name, "half_width": "half-width of the interval",
            "lead": f"advantage of {verdict.names[0]}",
        }[what]  # fmt: skip
        units = f" [{verdict.scale.units}]" if verdict.scale.units else ""
        add_map_bar(ax, image, f"{words}{units}", field)
    if what == "lead":
        draw_dots(ax, clear, "significant")
    mark_axes(ax, field)
    label_dimensions(ax, field)


def most_often_best(verdict: Verdict) -> int:
    """Find the model that is best in most cells."""
    return int(np.bincount(verdict.best).argmax())


def draw_categories(ax: Axes, verdict: Verdict, field: xr.DataArray, alone: xr.DataArray) -> None:
    """Color each cell by its best model, pale if tied; with many, the last color is for several."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    best = field.to_numpy()
    wins = np.bincount(verdict.best, minlength=len(verdict.names))
    order = [int(j) for j in np.argsort(-wins, kind="stable") if wins[j]]
    most = len(COLOURS) - (len(order) > len(COLOURS))
    known, others = order[:most], order[most:]
    colour = {j: COLOURS[k] for k, j in enumerate(known)} | dict.fromkeys(others, COLOURS[-1])
    pixels = np.ones((*best.shape, 4))
    for j, shade in colour.items():
        pixels[best == j, :3] = to_rgb(shade)
    pixels[..., 3] = np.where(alone, 1.0, PALE)
    down, across = (edges_of(places_of(field[name])) for name in field.dims)
    ax.pcolormesh(across, down, pixels, rasterized=True)
    handles = [Patch(color=colour[j], label=verdict.names[j]) for j in known]
    handles += [Patch(color=COLOURS[-1], label=f"{len(others):,} others")] if others else []
    legend_above(ax, handles)
