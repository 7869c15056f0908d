"""The moments of the cells of a log, and a one-line description of its design."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cvstats.core.folds import count_folds, fold_level
from cvstats.errors import LogError, listed, nearest
from cvstats.intervals._method import answer_log
from cvstats.large import frames
from cvstats.large.frames import delay_answer
from cvstats.large.lazy import count_cells, tabulate_moments
from cvstats.log.log import Log, Losses, of_its_kind
from cvstats.log.metadata import cuts_cells, facts_of_metric, refuse_parts_of_cells
from cvstats.log.read import is_dask_frame, read
from cvstats.log.tables import as_container, suggest_renaming, unrecognized_levels
from cvstats.options import Missing

BY = ("repetition", "fold")


@of_its_kind
def moments(losses: Losses, *, by: str | Sequence[str] = BY, missing: Missing = "raise") -> Any:
    """Compute the count, mean and variance of the losses in each cell of a log.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    by : str or sequence of str, optional
        The levels (or other index levels and coordinates) whose labels define the cells. The
        default is those of repetition and fold that the log has, and ``source`` if it has no
        fold.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``count``, ``mean`` (in the units of the loss) and ``var`` (in squared units; sample
        variance with n - 1, NaN for a single loss), a row for each cell; with several models the
        first index level is the model. For xarray, variables over the levels and the carried
        dimensions.

    Raises
    ------
    LogError
        If a level is not in the log, or a label is missing (NaN).

    See Also
    --------
    cvstats.Moments : The same for a log read in batches.
    cvstats.wald : The interval computed from these moments.

    Notes
    -----
    The moments are computed in one pass about the mean of each cell, so no precision is lost if all
    losses have a large common offset.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> losses.cvci.moments(by="fold").head(2).round(4)
          count   mean     var
    fold
    0      2000  0.175  0.0482
    1      2000  0.171  0.0486
    """
    if is_dask_frame(losses):
        more = () if by == BY else (by,) if isinstance(by, str) else tuple(by)
        return delay_answer(losses, partial(moments, by=by), levels=more, missing=missing)
    log = read(as_container(losses, list_levels(by)), missing=missing)
    known = log.design.levels
    names = list_levels(by)
    if all(isinstance(name, str) for name in names) and names == BY:
        fold = "fold" if "fold" in known or "source" not in known else "source"
        names = tuple(name for name in ("repetition", fold) if name in known)
        names = tuple(name for name in names if not cuts_cells(log.metadata, name))
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Available levels: "
            f"{listed(map(repr, known)) or 'none'}.{nearest(unknown[0], known)}"
        )
    for name in names:
        refuse_parts_of_cells(log.metadata, name)
    if log.lazy is None:
        log.design.check_labels(names)
    attrs = {"method": "moments", **log.attrs, **facts_of_metric(log.metadata)}
    if log.lazy is None and log.gaps is None:
        return log.labels.cells(log.moments(names), attrs)
    axes = [(name, list(known[name].labels)) for name in names]
    log = replace(log, used=(*log.used, *names))
    table: Any = answer_log(log, partial(tabulate_moments, names), axes=axes)
    del table["caution"]
    table.attrs = attrs
    if log.gaps is None and not ("n_dropped" in table and table["n_dropped"].ndim):
        table["count"] = names, count_cells(log, names)  # the same in each carried cell
    return table


def list_levels(by: Any) -> tuple[Any, ...]:
    """List the requested levels, one or several."""
    one = isinstance(by, str) or not isinstance(by, Iterable) or getattr(by, "ndim", 1) == 0
    return (by,) if one else tuple(by)


def describe_log(losses: Losses) -> str:
    """Summarize a log in one line, or the reason why it cannot be read, without raising."""
    if is_dask_frame(losses):
        return frames.describe(losses)
    try:
        return summarize_log(read(losses))
    except LogError as error:
        return str(error)


def summarize_log(log: Log) -> str:
    """Summarize a log in one line: points, resampling, models."""
    design = log.design
    points = design.splits().points
    one = "score" if design.scores else "loss"
    parts = [f"{points:,} points" if points is not None and not design.scores else
             count(int(design.splits().rows.sum()), one)]  # fmt: skip
    fold = 1 if fold_level(design) == "source" else count_folds(design)
    counts = {
        "repetition": design.number("repetition"),
        "fold": fold,
        "task" if log.fixed_sources else "source": design.number("source"),
        "model": len(log.labels.models),
    }
    parts += [
        count(number, name) for name, number in counts.items() if number > 1 or name == "model"
    ]
    if (cells := log.losses.width // len(log.labels.models)) > 1:
        parts.append(count(cells, "cell"))
    guesses = [
        f"; level {name!r} is not used; it may contain the {level}s: "
        f"{suggest_renaming(design, name, level)}"
        for name, level in unrecognized_levels(design, crossed=log.crossed).items()
    ]
    return f"{', '.join(parts)}{''.join(guesses)}"


def count(number: int, name: str) -> str:
    """Format a count with its noun."""
    if number == 1:
        return f"1 {name}"
    return f"{number:,} {name}{'es' if name.endswith('s') else 's'}"
