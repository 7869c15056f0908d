"""The moments of a log, where two models differ most, and a one-line description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.comparisons._pairs import read_pairs
from cvstats.comparisons.compare import compare
from cvstats.core.folds import count_folds, fold_level
from cvstats.errors import LogError, checked_level, listed, nearest
from cvstats.formatting import flatten
from cvstats.intervals._method import answer_log
from cvstats.large import frames
from cvstats.large.frames import delay_answer
from cvstats.large.lazy import count_cells, tabulate_moments
from cvstats.log.display import ResultFrame
from cvstats.log.groups import METRIC
from cvstats.log.log import Log, Losses, metrics_of_cells, of_its_kind
from cvstats.log.metadata import cuts_cells, facts_of_metric, refuse_parts_of_cells
from cvstats.log.read import is_dask_frame, read
from cvstats.log.tables import as_container, suggest_renaming, unrecognized_levels
from cvstats.options import Adjust, Missing, check_choices, find_choices, known_name, whole_number

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
    one = isinstance(by, str) or not isinstance(by, Iterable) or getattr(by, "ndim", 1) == 0
    names: tuple[Any, ...] = (by,) if one else tuple(by)
    log = read(as_container(losses, names), missing=missing)
    known = log.design.levels
    if all(isinstance(name, str) for name in names) and names == BY:
        fold = "fold" if "fold" in known or "source" not in known else "source"
        names = tuple(name for name in ("repetition", fold) if name in known)
        names = tuple(name for name in names if not cuts_cells(log.metadata, name))
    carried = log.labels.dims
    unknown = [
        name for name in names
        if not isinstance(name, str) or (name not in known and name not in carried)
    ]  # fmt: skip
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Available levels: "
            f"{listed(map(repr, known)) or 'none'}.{nearest(unknown[0], known)}"
        )
    names = tuple(filter(known.__contains__, names))
    for name in names:
        refuse_parts_of_cells(log.metadata, name)
    return tabulate_cells(log, names, {"method": "moments", **facts_of_metric(log.metadata)})


def tabulate_cells(log: Log, names: tuple[str, ...], attrs: Mapping[str, Any]) -> Any:
    """Make a table of count, mean and variance of each cell, in the kind of the log."""
    known = log.design.levels
    attrs = {**attrs, **log.attrs}
    if log.lazy is None:
        log.design.check_labels(names)
    if log.lazy is None and log.gaps is None:
        return (log.pair_labels or log.labels).cells(log.moments(names), attrs)
    axes = [(name, list(known[name].labels)) for name in names]
    log = replace(log, used=(*log.used, *names))
    table: Any = answer_log(log, partial(tabulate_moments, names), axes=axes)
    del table["caution"]
    table.attrs = attrs
    if log.gaps is None and not ("n_dropped" in table and table["n_dropped"].ndim):
        table["count"] = names, count_cells(log, names)  # the same in each carried cell
    return table


def describe_log(losses: Losses) -> str:
    """Summarize a log in one line, or the reason why it cannot be read, without raising."""
    if is_dask_frame(losses):
        return frames.describe(losses)
    try:
        return summarize_log(read(losses))
    except LogError as error:
        return str(error)


def summarize_log(log: Log, n_cells: int | None = None) -> str:
    """Summarize a log in one line; ``n_cells`` is the number of cells with losses, if known."""
    design = log.design
    points = count_points(log)
    one = "score" if design.scores else "loss"
    parts = [f"{points:,} points" if points is not None and not design.scores else
             count(int(design.splits().rows.sum()), one)]  # fmt: skip
    fold = 1 if fold_level(design) == "source" else count_folds(design)
    counts = {
        "repetition": design.number("repetition"),
        "fold": fold,
        log.source_name: design.number("source"),
    }
    parts += [count(number, name) for name, number in counts.items() if number > 1]
    models = len(log.shown_models)
    parts.append(count(models, "difference" if log.of_differences else "model"))
    cells = log.losses.width // models if n_cells is None else n_cells
    if METRIC in log.labels.dims and (metrics := metrics_of_cells(log)) is not None:
        number = len({*metrics.tolist()})
        parts, cells = [*parts, count(number, "metric")], cells // number
    if cells > 1:
        parts.append(count(cells, "cell"))
    guesses = [
        f"; level {name!r} is not used; it may contain the {level}s: "
        f"{suggest_renaming(design, name, level)}"
        for name, level in unrecognized_levels(design, crossed=log.crossed).items()
    ]
    return f"{', '.join(parts)}{''.join(guesses)}"


def count_points(log: Log) -> int | None:
    """Count the points, those of several sources once if they are the same; None if unknown."""
    if "source" in log.design.levels and log.crossed:
        return log.design.number("point")
    return log.design.splits().points


def count(number: int, name: str) -> str:
    """Format a count with its noun."""
    if number == 1:
        return f"1 {name}"
    return f"{number:,} {name}{'es' if name.endswith('s') else 's'}"


# --- where two models differ most -----------------------------------------------------------------


def largest_differences(
    losses: Losses,
    other: Losses | None = None,
    *,
    by: str = "point",
    n: int = 10,
    reference: str | None = None,
    adjust: Adjust | None = "holm",
    missing: Missing = "raise",
) -> pd.DataFrame:
    """List the points, or the labels of another level, where two models differ most.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log of one model with ``other``, or of several.
    other : Series, DataFrame, DataArray or Dataset, optional
        The log of the other model, on the same evaluations.
    by : str, optional
        ``"point"``, or a level such as ``source`` or ``segment``, whose labels are tested.
    n : int, optional
        Number of points or labels to list for each pair of models.
    reference : str, optional
        The model to which all others are compared; by default all pairs are compared.
    adjust : {"holm", "bonferroni", "bh", None}, optional
        For labels: how ``p_adjusted`` accounts for all pairs and all labels, not only for those
        listed.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame
        The largest absolute differences first, for arrays too. For points: ``difference`` (mean
        over the evaluations of the point, in units of the loss; negative means that the model is
        better), ``share`` of the sum of the absolute differences of all points, and ``count`` of
        evaluations. For labels: the columns of `compare` with ``by=``.

    Raises
    ------
    LogError
        If the log has no such level, has pseudo-losses of a metric, which are not errors of points,
        or is lazy, unless labels are tested.

    See Also
    --------
    cvstats.compare : How much better a model is.
    cvstats.heterogeneity : Whether a difference varies significantly between groups.

    Notes
    -----
    Points are listed for inspection only. They have no p-values, because they are selected for
    being extreme, and would differ less on new data. For labels, ``p_adjusted`` accounts for the
    number of labels.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.largest_differences(n=3).round(3)
                               difference  share  count
    model other         point
    ridge random_forest 256    -15853.979  0.027     10
                        9       -9294.107  0.016     10
                        340     -9218.709  0.016     10
    """
    whole_number("n", n, 1)
    checked_level("by", by)
    adjust = known_name("adjust", adjust)
    check_choices({"adjust": adjust, "missing": missing}, find_choices(largest_differences))
    if by == "point":
        found = tabulate_differences(read_pairs(losses, other, reference, missing))
        within = ["source", "point"]
    else:
        log: Any = losses
        tests: Any = compare(log, other, reference=reference, by=by, adjust=adjust, missing=missing)
        tests = tests.compute() if hasattr(tests, "compute") else tests  # of dask
        found, within = flatten(tests) if isinstance(tests, xr.Dataset) else tests, [by]
    size = found["difference"].abs()  # those that differ by rounding errors keep their order
    ordered = found.iloc[np.argsort(-(size / size.max()).round(12), kind="stable")]
    pairs = [name for name in ordered.index.names if name not in within]
    kept = ordered.groupby(pairs, observed=True, sort=False).head(n) if pairs else ordered.head(n)
    kept.attrs = dict(found.attrs)
    return kept


def tabulate_differences(log: Log) -> pd.DataFrame:
    """Compute the mean difference of each pair of models at each point, and its share of all."""
    known = log.design.levels
    if not log.in_memory:
        raise log.lacks_losses("largest_differences")
    if log.design.metric:
        raise LogError(
            "this log was made from a metric: its values are influences, not errors of points. "
            "Expected a loss of individual points, such as loss='squared_error'."
        )
    if "point" not in known:
        raise LogError(
            f"the log has no level 'point'. Expected one of its levels: by="
            f"{listed(map(repr, known)) or 'none'}."
        )
    means = tabulate_cells(log, tuple(name for name in ("source", "point") if name in known), {})
    if isinstance(means, xr.Dataset):
        means = flatten(means).dropna(subset="mean")
    pairs = [name for name in means.index.names if name not in known]
    size = means["mean"].abs()
    total = size.groupby(pairs, observed=True).transform("sum") if pairs else size.sum()
    return ResultFrame(
        {"difference": means["mean"], "share": size / total, "count": means["count"]}
    )
