"""pass@k and pass^k: a log of attempts becomes a log with one loss for each problem."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import singledispatch
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from cvstats.core.design import LEVELS
from cvstats.core.orientation import facts_of_score
from cvstats.errors import (
    LogError,
    checked_flag,
    count_others,
    describe_type,
    is_several,
    listed,
    spelled,
)
from cvstats.log.groups import METRIC
from cvstats.log.log import Log
from cvstats.log.metadata import OF_PROBLEMS, put_attrs
from cvstats.log.read import read
from cvstats.log.tables import as_container
from cvstats.loss_functions.losses import join_metrics
from cvstats.options import whole_number

LogT = TypeVar("LogT", bound=pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset)

KEPT = ("models_are", "sources_are", "points_are", "format")
"""Facts about the log of attempts that also apply to problems."""

LIMITS: dict[Hashable, Any] = {"limits": OF_PROBLEMS, "quantiles": "t"}
"""Facts that select the limits of `interval`, and Student's t for differences."""

Share = Callable[[NDArray[Any], NDArray[Any], int], NDArray[np.float64]]
"""Maps numbers of attempts and correct attempts, and k, to an estimate."""


def passes(
    losses: LogT, *, k: int | Sequence[int], all: bool = False, majority: bool = False
) -> LogT:
    r"""Create a log of pass@k, pass^k or majority of k from repeated attempts at problems.

    The target is the mean, over problems from the same population, of the probability that at least
    one of k new attempts is correct (pass@k), that all k are correct (pass^k), or that more than
    half of them are correct. The loss of a problem is one minus the unbiased estimate of this
    probability.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Attempts at problems: losses that are 0 (correct) or 1, with the attempts as level
        ``repetition`` and the problems as ``point``. Problems may differ in their number of
        attempts, and models too (NaN where there was none).
    k : int or sequence of int
        Number of attempts drawn. Several numbers give a log with the level ``metric``.
    all : bool, optional
        Whether all k attempts must be correct (pass^k), instead of at least one.
    majority : bool, optional
        Whether more than half of the k attempts must be correct.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log with one row for each problem and no level ``repetition``, which works with
        intervals, comparisons, sets, plots and the report like any other. `cvstats.as_scores`
        converts results to pass@k.

    Raises
    ------
    LogError
        If a problem has fewer than k attempts, losses are not 0 or 1, or the log has no
        attempts, several folds, or pseudo-losses of a metric.

    See Also
    --------
    cvstats.answers : How much additional attempts would narrow the interval of the mean.
    cvstats.interval : Uses exact limits for such a log.

    Notes
    -----
    With n attempts at a problem, c of them correct, the estimates are

    .. math::

        \text{pass@}k = 1 - \binom{n - c}{k} \Big/ \binom{n}{k}, \qquad
        \text{pass}^k = \binom{c}{k} \Big/ \binom{n}{k}, \qquad
        \text{maj@}k = \sum_{j > k / 2} \binom{c}{j} \binom{n - c}{k - j} \Big/ \binom{n}{k} .

    Problems are the sampling unit. The variance between problems includes the variance of the
    attempts. If each attempt were treated as a sampling unit, the intervals would be too narrow,
    and so are intervals based on the variation between runs over the same problems. `interval` uses
    the limits of Korn and Graubard with one pseudo-error, which are Clopper-Pearson limits if all
    values are 0 or 1. If all problems have the same value between 0 and 1, there are no limits.
    With 30 problems, coverage was 99% for pass^3 of .015 to .05 and 97% for .25 to .4
    (simulations).

    References
    ----------
    Chen et al. (2021), Evaluating large language models trained on code, arXiv:2107.03374.
    Yao, Shinn, Razavi and Narasimhan (2024), tau-bench, arXiv:2406.12045.

    Examples
    --------
    Four problems with three attempts each, 1 for a wrong one:

    >>> import cvstats, pandas as pd
    >>> index = pd.MultiIndex.from_product([range(4), range(3)], names=["point", "repetition"])
    >>> attempts = pd.Series([0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0], index, name="llm", dtype=float)
    >>> cvstats.passes(attempts, k=2).round(3).tolist()
    [0.333, 1.0, 0.0, 0.0]
    >>> log = attempts.cvci.passes(k=[1, 2, 3])
    >>> cvstats.as_scores(log.cvci.interval(by="metric"))[["estimate", "lower", "upper"]].round(2)
           estimate lower upper
    metric
    pass@1     0.50  0.10  0.90
    pass@2     0.67  0.17  0.97
    pass@3     0.75  0.19  0.99
    """
    for name, chosen in (("all", all), ("majority", majority)):
        checked_flag(name, chosen)
    if all and majority:
        raise LogError("all=True and majority=True were both given. Expected only one of them.")
    several = is_several(k)
    given: Any = k
    numbers = [whole_number("k", number, 1) for number in (given if several else [given])]
    if not numbers or len(set(numbers)) < len(numbers):
        raise LogError(
            f"Invalid k={k!r}. Expected a number, or several different numbers: k=[1, 5]."
        )
    losses = as_container(losses)
    log = read(losses)
    refuse_other_logs(log)
    if several and METRIC in log.labels.dims:
        raise LogError(
            "the log contains several metrics, and several k make a metric each. Expected several "
            "of one of them. Pass one k, or select a metric."
        )
    column = log.metadata.get("loss")
    attempts: Any = losses
    if column is not None and getattr(losses, "name", None) == column:  # not the name of a model
        attempts = losses.rename(None)
    name, share = ("pass^", share_all) if all else ("pass@", share_any)
    if majority:
        name, share = "maj@", share_majority
    kept: dict[Hashable, Any] = {fact: log.metadata[fact] for fact in KEPT if fact in log.metadata}
    made: dict[str, LogT] = {}
    for number in numbers:
        made[f"{name}{number}"] = found = reduce_attempts(
            attempts, share, number, not log.fixed_sources
        )
        facts = facts_of_score(f"{name}{number}", "1 - score")
        put_attrs(found, {**kept, **facts, "range": (0.0, 1.0), **LIMITS})
    if not several:
        return made[f"{name}{numbers[0]}"]
    whole: LogT = join_metrics(made)
    put_attrs(whole, {**whole.attrs, **kept, **LIMITS})
    return whole


def refuse_other_logs(log: Log) -> None:
    """Reject a log that does not contain attempts of one model at each problem."""
    design = log.design
    for name, what in (("repetition", "attempts"), ("point", "problems")):
        if name not in design.levels:
            raise LogError(
                f"passes needs {what} as level {name!r}, but this log has none. Expected both "
                "levels: cvstats.as_log(frame, loss='wrong', point='problem', "
                "repetition='attempt')."
            )
    if design.metric or design.scores:
        raise LogError(
            "passes needs correct or wrong attempts, but this log holds values of a metric. "
            "Expected 0/1 losses, one per attempt."
        )
    if design.has("fold") or {"sample", "count", "outer"} & set(design.levels):
        way = (
            f". Select one fold: {design.take('fold')}." if design.has("fold")
            else " without levels 'sample', 'count' or 'outer'."
        )  # fmt: skip
        raise LogError(
            "passes needs attempts of one model at each problem, but this log has resampled "
            f"models. Expected one test set{way}"
        )
    if log.lazy is not None:
        raise LogError("passes needs a log in memory. Load it first: log.compute().")


@singledispatch
def reduce_attempts(losses: Any, share: Share, k: int, one_fold: bool) -> Any:
    """Create the log of problems, in the container of the attempts.

    ``one_fold`` marks sources that are a sample, none of which was left out, as one test set.
    """
    raise LogError(f"passes needs a log in memory, but this is {describe_type(losses)}.")


@reduce_attempts.register
def _(losses: pd.DataFrame, share: Share, k: int, one_fold: bool) -> pd.DataFrame:
    check_right_or_wrong(losses.to_numpy(dtype=np.float64))
    names = [name for name in losses.index.names if name != "repetition"]
    problems = losses.astype(np.float64).groupby(level=names, sort=False, observed=True)
    n, wrong = problems.count(), problems.sum()
    short = np.argwhere(n.to_numpy() < k)
    if len(short):
        row, column = short[0].tolist()
        key = n.index[row] if len(names) > 1 else (n.index[row],)
        where = dict(zip(names, key, strict=True))
        raise too_few(where, n.columns[column], int(n.to_numpy()[row, column]), k, len(short))
    values = 1 - share(n.to_numpy(), (n - wrong).to_numpy(), k)
    found = pd.DataFrame(values, index=n.index, columns=losses.columns)
    if one_fold and "source" in names and "fold" not in names:
        found = found.assign(fold=0).set_index("fold", append=True)
    return found


@reduce_attempts.register
def _(losses: pd.Series, share: Share, k: int, one_fold: bool) -> pd.Series:
    found: pd.Series = reduce_attempts(losses.to_frame(), share, k, one_fold).iloc[:, 0]
    found.name = losses.name
    return found


@reduce_attempts.register
def _(losses: xr.DataArray, share: Share, k: int, one_fold: bool) -> xr.DataArray:
    for dim, index in losses.indexes.items():
        if isinstance(index, pd.MultiIndex) and "repetition" in index.names:
            losses = losses.unstack(dim)
            break
    if "repetition" not in losses.dims:
        way = "Rename the dimension of the attempts: log.rename(attempt='repetition')."
        if "repetition" in losses.coords and losses["repetition"].ndim == 1:
            (dim,) = losses["repetition"].dims
            names = [n for n in LEVELS if n in losses.coords and losses[n].dims == (dim,)]
            way = f"Type log.set_index({dim}={names!r}).unstack()."
        raise LogError(
            "passes needs the attempts as a dimension of the array. Expected a dimension "
            f"'repetition'. {way}"
        )
    check_right_or_wrong(losses.to_numpy().astype(np.float64))
    known = losses.notnull()
    n, right = known.sum("repetition"), (losses == 0).sum("repetition")
    tried = n > 0 if "model" not in n.dims else (n > 0).any("model")
    short = np.argwhere(((n < k) & tried).to_numpy())
    if len(short):
        at = dict(zip(map(str, n.dims), short[0].tolist(), strict=True))
        labels = {dim: n[dim].to_numpy()[i] if dim in n.coords else i for dim, i in at.items()}
        model = labels.pop("model", losses.name)
        raise too_few(labels, model, int(n.to_numpy()[tuple(short[0])]), k, len(short))
    values = np.where(n.to_numpy() > 0, 1 - share(n.to_numpy(), right.to_numpy(), k), np.nan)
    found = n.copy(data=values).rename(losses.name)
    if one_fold and "source" in found.coords and "fold" not in found.coords:
        along = found["source"] if "source" not in found.dims else found["point"]
        found = found.assign_coords(fold=(along.dims, np.zeros(along.shape, dtype=np.int64)))
    return found


@reduce_attempts.register
def _(losses: xr.Dataset, share: Share, k: int, one_fold: bool) -> xr.Dataset:
    parts = {name: reduce_attempts(losses[name], share, k, one_fold) for name in losses.data_vars}
    return xr.Dataset(parts)


def check_right_or_wrong(values: NDArray[np.float64]) -> None:
    """Reject losses other than 0 and 1."""
    stray = values[~((values == 0) | (values == 1) | np.isnan(values))]
    if len(stray):
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        raise LogError(
            f"passes needs correct (0) or wrong (1) attempts, but a loss is {stray.flat[0]:g}. "
            "Expected 0/1 losses. Apply a threshold between those of correct and wrong attempts, "
            f"such as (log > {middle:g}).astype(float)."
        )


def too_few(
    where: Mapping[Any, Hashable], model: Hashable, found: int, k: int, total: int
) -> LogError:
    """Create the error for a problem with fewer than k attempts."""
    at = listed([f"{level}={spelled(label)}" for level, label in where.items()])
    at += count_others(total)
    whose = "" if model is None else f" by {spelled(model)}"
    needs = f"k={k} needs {f'{k} attempts' if k > 1 else 'an attempt'} at each problem"
    if not found:
        return LogError(f"{needs}, but {at} has none{whose}. Expected losses. Drop these problems.")
    return LogError(
        f"{needs}, but {at} has {found}{whose}. Expected a k of at most {found}. Use k={found}, or "
        "drop these problems."
    )


def share_any(n: NDArray[Any], right: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Estimate the probability that at least one of k attempts is correct."""
    return 1 - share_all(n, n - right, k)


def share_all(n: NDArray[Any], right: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Estimate the probability that all k attempts are correct: ``C(c, k) / C(n, k)``."""
    found = np.ones(np.shape(n))
    for j in range(k):
        found *= np.maximum(right - j, 0) / np.maximum(n - j, 1)
    return found


def share_majority(n: NDArray[Any], right: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Estimate the probability that more than half of k attempts are correct."""
    found = np.zeros(np.shape(n))
    for j in range(k // 2 + 1, k + 1):
        found += special.comb(right, j) * special.comb(n - right, k - j) / special.comb(n, k)
    return found
