"""The report as one page of HTML that needs nothing else."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import overload

from cvstats.errors import LogError, install_command
from cvstats.formatting import printable
from cvstats.log.log import Losses
from cvstats.log.plain import replacing
from cvstats.log.read import read
from cvstats.options import Missing, check_alpha, whole_number
from cvstats.reporting.content import Figure, Settings, describe_computation, make_report
from cvstats.reporting.facts import facts, first_section, summarize

PAGES = (".html", ".htm", "")
"""How the name of a page may end."""


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
    """Write one page about a log: intervals, comparisons, plots, and what to doubt.

    The targets are those of the methods that are used, and the page says them in words.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log. ``attrs["long_name"]`` and ``attrs["units"]`` name the loss and its units,
        ``attrs["title"]`` the log.
    path : str or path, optional
        Where to write the page, such as ``"report.html"``: a name in ``.html`` or ``.htm``, or
        without a suffix.
    title : str, optional
        The heading of the page.
    alpha : float, optional
        One minus the level of all intervals.
    seed : int, optional
        The seed of everything that is drawn.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Path or str
        The path that was written; without ``path`` the page itself.

    Raises
    ------
    LogError
        If the log cannot be read. What single sections cannot answer, they say instead.
    ModuleNotFoundError
        If jinja2 or matplotlib is not installed (extra ``report``).

    Notes
    -----
    The page is self-contained: plots are SVG images within it, no script is needed, nothing is
    fetched from a network. Every name is escaped. Numbers are rounded to two digits of the smallest
    standard error, ``10^-d``, for reading only.

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
    options = [] if path is None else [f"{str(path)!r}"]
    options += [f"title={title!r}"] if title else []
    options += [f"alpha={alpha!r}"] if alpha != 0.05 else []
    options += [f"seed={seed!r}"] if seed else []
    options += [f"missing={missing!r}"] if isinstance(missing, str) and missing != "raise" else []
    call = f"losses.cvci.report({', '.join(options)})"
    check_alpha(alpha)
    return write_report(losses, path, title, Settings(alpha, seed, missing), call)


def write_report(
    losses: Losses,
    path: str | PathLike[str] | None,
    title: str | None,
    settings: Settings,
    call: str,
) -> str | Path:
    """Make the page and write it; ``call`` is what a user types to get it again."""
    whole_number("seed", settings.seed, 0)
    if not (title is None or isinstance(title, str)):
        raise LogError(f"title={title!r} is not a title. Expected text.")
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise ModuleNotFoundError(
                f"the report needs {package}; type: {install_command('report')}", name=package
            )
    if isinstance(losses, (str, PathLike)):
        raise LogError(
            f"{str(losses)!r} is a path and not a log. Read it first: "
            f"cvstats.report(cvstats.read_log({str(losses)!r}), …)."
        )
    target = None if path is None else check_path(path)
    read(losses, missing=settings.missing).moments(())  # names the first loss that is missing
    page = render_page(losses, title, settings, call)
    if target is None:
        return page
    try:
        with replacing(target) as new:  # an old page stays until the new one is complete
            new.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LogError(
            f"the report could not be written to {str(target)!r}: {error.strerror}."
        ) from error
    return target


def render_page(losses: Losses, title: str | None, settings: Settings, call: str) -> str:
    """Fill the template."""
    import jinja2

    made = make_report(losses, settings)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    templates = files("cvstats.reporting").joinpath("templates")
    page: str = environment.from_string(
        templates.joinpath("report.html.j2").read_text(encoding="utf-8")
    ).render(
        title=title or str(losses.attrs.get("title", made.title)),
        line=summarize(losses),
        style=templates.joinpath("report.css").read_text(encoding="utf-8"),
        first=first_section(facts(losses), summarize(losses)),
        sentences=made.sentences,
        doubts=made.doubts,
        sections=made.sections,
        how=describe_computation(losses, made, settings, call),
        today=date.today().isoformat(),
    )
    return "\n".join(map(printable, page.split("\n")))


def check_path(path: object) -> Path:
    """Refuse a place where no page can be written before anything is computed."""
    if not isinstance(path, (str, PathLike)):
        raise LogError(f"path={path!r} is not a path. Expected one such as 'report.html', or None.")
    target = Path(path)
    if target.suffix.lower() not in PAGES:
        raise LogError(
            f"{target.name} ends in {target.suffix!r}, and the report is a page of HTML. Expected "
            f"a name such as {target.stem}.html; a browser prints that page as PDF."
        )
    if target.is_dir():
        raise LogError(f"{str(target)!r} is a directory. Expected a file, such as 'report.html'.")
    if not target.parent.is_dir():
        raise LogError(
            f"the report could not be written to {str(target)!r}: there is no directory "
            f"{str(target.parent)!r}. Expected one that is there. Make it first."
        )
    return target
