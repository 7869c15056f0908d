"""The report as one self-contained HTML page, and its first section."""

from __future__ import annotations

from datetime import date
from functools import partial
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import overload

import pandas as pd
import xarray as xr

from cvstats.core.folds import count_folds, fold_level
from cvstats.core.orientation import targets_of
from cvstats.describe import describe_log, summarize_log
from cvstats.errors import LogError, checked_choice, install_command, listed
from cvstats.facts import LogFacts
from cvstats.formatting import printable, write_labels
from cvstats.large.frames import delay_answer, has_columns_of_models
from cvstats.log.log import Log, Losses
from cvstats.log.plain import replacing
from cvstats.log.read import MISSING, is_dask_frame
from cvstats.options import Missing, check_alpha, whole_number
from cvstats.reporting.content import Figure, Report, describe_computation, make_report
from cvstats.reporting.verdict import name_difference, read_scale

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
    digits of the smallest standard error, ``10^-d``, for display only.

    References
    ----------
    W3C (2018), Web content accessibility guidelines 2.1, https://www.w3.org/TR/WCAG21/.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="brier")
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
    facts.log.moments(())  # reports the first missing loss
    page = render_page(facts, make_report(facts, alpha, seed), title, call)
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


def render_page(facts: LogFacts, report: Report, title: str | None, call: str) -> str:
    """Fill the template."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    templates = files("cvstats.reporting").joinpath("templates")
    page: str = environment.from_string(
        templates.joinpath("report.html.j2").read_text(encoding="utf-8")
    ).render(
        title=title or str(facts.losses.attrs.get("title", report.title)),
        line=summarize_log(facts.raw),
        style=templates.joinpath("report.css").read_text(encoding="utf-8"),
        script=templates.joinpath("report.js").read_text(encoding="utf-8"),
        first=write_first_section(facts),
        report=report,
        how=describe_computation(facts, report, call),
        today=date.today().isoformat(),
    )
    return printable(page, lines=True)


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
    attrs = dict(losses.attrs)
    if isinstance(losses, xr.Dataset):
        attrs = {**next(iter(losses.data_vars.values())).attrs, **attrs}
    rows = [(key.replace("_", " "), str(attrs[key])) for key in ("title", "source") if key in attrs]
    if "read_from" in attrs:
        rows.append(("read from", str(attrs["read_from"])))
    loss = attrs.get("long_name") or str(attrs.get("loss", "")).replace("_", " ")
    scale = read_scale(facts.attrs, {})
    units = f" in {scale.units}" if scale.units else ""
    if targets := targets_of(attrs).values():
        loss = name_difference(scale, attrs).name
        better = f"closer to {listed(f'{t:g}' for t in targets)}"
    else:
        loss, better = (scale.name, "higher") if facts.is_score else (loss, "lower")
    if loss or units:
        rows.append(
            ("score" if facts.is_score else "loss", f"{loss or 'loss'}{units}, {better} is better")
        )
    models = pd.Index(list(log.labels.models), dtype=object, tupleize_cols=False)
    (names,) = write_labels(models, lambda name: "(no name)" if name is None else str(name))
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    rows.append((f"models ({len(names):,})", ", ".join(names[:MOST_NAMES]) + more))
    points = design.splits().points
    rows.append(("points", f"{points:,}" if points is not None else "not labeled in the log"))
    sizes = design.splits().rows
    rows.append(("evaluations of each model", f"{int(sizes.sum()):,}"))
    for level in ("sample", "outer", "repetition"):
        if design.has(level):
            rows.append((f"{level}s", f"{design.number(level):,}"))
    folds = count_folds(log.design)
    if folds > 1 and not log.only_tested:
        rows.append(("folds", f"{folds:,}{of_points(log)}"))
    if design.has("source"):
        are_folds = fold_level(design) == "source" and not log.only_tested
        both = ", which are the folds" if are_folds else ""
        rows.append(
            ("tasks" if log.fixed_sources else "sources", f"{design.number('source'):,}{both}")
        )
    if design.has("count"):
        rows.append(("count", "number of times the point was in the training sample"))
    cells = (log.losses.width - len(log.masked())) // max(1, len(names))
    if cells > 1:
        rows.append(("cells of each model", f"{cells:,}"))
    rows.append(("missing losses", f"{sum(facts.n_missing.values()):,}"))
    rows.append(("container", f"{type(losses).__module__.split('.')[0]} {type(losses).__name__}"))
    return rows


def of_points(log: Log) -> str:
    """Describe the sizes of the folds."""
    by = [name for name in ("repetition", fold_level(log.design)) if name is not None]
    plan = log.design.cell_table(tuple(name for name in by if name in log.design.levels))
    sizes = plan.total[plan.used]
    least, most = int(sizes.min()), int(sizes.max())
    return f" of {least:,} points" if least == most else f", of {least:,} to {most:,} points each"


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
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(printable(value))}</td></tr>'
        for name, value in list_facts(facts)
    )
    return (
        f'<table class="facts">\n<caption>The log: {escape(printable(summarize_log(facts.raw)))}'
        f"</caption>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
