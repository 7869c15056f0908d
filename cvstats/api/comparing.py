"""Is one model better than another? Paired differences and their tests."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from cvstats.api.running import (
    RUNNERS,
    Alternative,
    Compared,
    Losses,
    Missing,
    checked_alpha,
    folds_per_repetition,
)
from cvstats.chunked import Differences, Panels
from cvstats.comparison.paired import ADJUSTMENTS, adjusted, tested
from cvstats.containers import Log, dropped, read
from cvstats.containers.pairing import against, aligned, every_pair, subtracted
from cvstats.errors import MOST, LogError, choice, listed
from cvstats.results import ALTERNATIVES, Result

__all__ = ["compare", "difference"]

Pairs = list[tuple[Hashable, Hashable]]


def difference(losses: Losses, other: Losses | None = None, *, reference: Hashable = None) -> Any:
    """Take paired differences: the loss of the model minus the loss of the other.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models: the others minus this one.
        With neither, all pairs.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log again, with the levels of ``losses``; negative where the model is better.
        All pairs of a frame have columns ``(model, other)``, those of an array a dimension
        ``pair``.

    Raises
    ------
    LogError
        If the two logs differ in points or folds (the first that do are named), or there is
        only one model.

    Notes
    -----
    Every method that takes a log takes this one: its estimate is then the difference in
    error. Losses of 0 and 1 have differences of -1, 0 and 1, so intervals for proportions do
    not apply.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671, section 4.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> gap = losses["ridge"].cvci.difference(losses["random_forest"])
    >>> float(gap.mean().round(1))
    -181.8
    """
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    if other is not None:
        return subtracted(losses, other)
    log = read(losses)
    pairs_of(log, reference)
    return every_pair(losses) if reference is None else against(losses, reference)


def pairs_of(log: Log, reference: Hashable) -> tuple[Pairs, list[int], list[int]]:
    """Choose the pairs to compare: their names, and the numbers of their models."""
    models = list(log.labels.models)
    if len(models) < 2:
        raise LogError(
            "the log holds one model. Expected two or more: pass the other log, as in "
            "a.cvci.compare(b), or a frame with a column for each model (an array with a "
            "dimension 'model')."
        )
    if reference is None:
        chosen = list(combinations(range(len(models)), 2))
    elif reference in models:
        at = models.index(reference)
        chosen = [(i, at) for i in range(len(models)) if i != at]
    else:
        raise LogError(
            f"there is no model {reference!r}. Expected reference to be one of "
            f"{listed(map(repr, models))}."
        )
    left, right = [i for i, _ in chosen], [j for _, j in chosen]
    return [(models[i], models[j]) for i, j in chosen], left, right


def compare(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    method: Compared | None = None,
    alternative: Alternative = "two-sided",
    adjust: Literal["holm", "bh"] | None = "holm",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    """Test whether models differ, on paired losses.

    The target is the difference of what the interval covers; for `wald` the difference of the
    average test errors of the trained models. With d_i the loss of the model minus the loss
    of the other on evaluation i, the statistic is ``mean(d) / se(mean(d))``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    method : str, optional
        The interval that gives the standard error and the law of the statistic. Without it:
        ``"wald"``, or ``"holdout"`` where the log has one fold.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` asks whether the model has the smaller error.
    adjust : {"holm", "bh", None}, optional
        How ``p_adjusted`` allows for several comparisons (in each carried cell): against any
        false difference, or for the share of false ones. The intervals are not adjusted.
    alpha : float, optional
        One minus the level of the intervals.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``statistic``,
        ``p_value``, with several comparisons ``p_adjusted``, then what the method adds and
        ``caution``. A frame is indexed by ``(model, other)``; an array has a dimension
        ``pair`` with these coordinates.

    Raises
    ------
    LogError
        If the models were evaluated on different points or folds; nothing unpaired is ever
        computed in their place.

    Notes
    -----
    For `wald` the one-sided test has asymptotically the level alpha where the errors are
    equal and a smaller one where the model is worse, if the learners are stable and their
    difference has some variance. Two models whose losses are nearly the same have a
    difference with hardly any, and the normal law may then fail.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671.
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest", "gradient_boosting"])
    >>> table = losses.cvci.compare(reference="ridge")
    >>> table[["difference", "lower", "upper", "p_adjusted"]].round(3)
                             difference   lower    upper  p_adjusted
    model             other
    random_forest     ridge     181.842 -21.046  384.729       0.158
    gradient_boosting ridge     143.377 -56.530  343.284       0.160
    """
    checked_alpha(alpha)
    if alternative not in ALTERNATIVES:
        raise choice("alternative", alternative, ALTERNATIVES)
    if adjust is not None and adjust not in ADJUSTMENTS:
        raise choice("adjust", adjust, (*ADJUSTMENTS, "None"))
    if method is not None and method not in RUNNERS:
        raise choice("method", method, RUNNERS)
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    log, pairs, losses_of_pairs = (
        one_log(losses, reference, missing) if other is None else two_logs(losses, other, missing)
    )
    if method is None:
        method = "holdout" if folds_per_repetition(log) == 1 else "wald"
    base = RUNNERS[method](log, losses_of_pairs, alpha=alpha)
    result = tested(base, alternative=alternative, alpha=alpha)
    columns = dict(result.columns)
    attrs: dict[str, Any] = {**result.attrs, "interval_method": method}
    if len(pairs) > 1 and adjust is not None:
        p = columns["p_value"].reshape(len(pairs), -1)
        names = list(columns)
        columns["p_adjusted"] = adjusted(p, adjust).reshape(-1)
        names.insert(names.index("p_value") + 1, "p_adjusted")
        columns = {name: columns[name] for name in names}
        attrs["adjust"] = adjust
    return log.label_pairs(pairs, Result("compare", columns, result.caution, attrs))


def one_log(
    losses: Losses, reference: Hashable, missing: Missing
) -> tuple[Log, Pairs, Differences]:
    """Pair the models of one log."""
    log = read(losses, missing=missing)
    pairs, left, right = pairs_of(log, reference)
    columns = [log.labels.columns(model) for model in range(len(log.labels.models))]
    return log, pairs, Differences(
        log.panels,
        np.concatenate([columns[i] for i in left]),
        np.concatenate([columns[j] for j in right]),
    )  # fmt: skip


def check_same_rows(one: Log, two: Log) -> None:
    """Refuse two arrays whose masks of evaluations differ, by the first place where they do."""
    if one.design.present is None and two.design.present is None:
        return
    masks = [
        np.ones(log.design.size, dtype=bool) if log.design.present is None else log.design.present
        for log in (one, two)
    ]
    apart = np.flatnonzero(masks[0] != masks[1])
    if len(apart):
        shown = [one.design.place(int(row)) for row in apart[:MOST]]
        raise LogError(
            f"the models were not evaluated on the same points: only the "
            f"{'first' if masks[0][apart[0]] else 'second'} log has a loss at "
            f"{listed(shown, len(apart))}. Expected the same evaluations in both. Pass "
            f"missing='drop' to compare on those that both have."
        )


def two_logs(one: Losses, two: Losses, missing: Missing) -> tuple[Log, Pairs, Differences]:
    """Pair each model of one log with its partner in another."""
    first = read(one)
    second = read(aligned(one, two))
    mine, yours = list(first.labels.models), list(second.labels.models)
    both = Panels((*first.panels.tables, *second.panels.tables))
    log = replace(first, panels=both, other=second.labels)
    if missing == "drop":
        log = dropped(log)
        log.design.splits()
    elif missing == "raise":
        check_same_rows(first, second)
    else:
        raise choice("missing", missing, ("raise", "drop"))
    width = first.panels.width
    columns = np.concatenate([first.labels.columns(model) for model in range(len(mine))])
    names = [
        ("model" if a is None else a, "other" if b is None else b)
        for a, b in zip(mine, yours, strict=True)
    ]
    return log, names, Differences(both, columns, columns + width)
