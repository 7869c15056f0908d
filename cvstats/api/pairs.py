"""From one log of several models, or from two, to paired differences and what they share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from cvstats.api.choosing import chosen_for
from cvstats.api.options import checked_words
from cvstats.api.rounding import exact
from cvstats.api.running import RUNNERS, Losses, folds_per_repetition
from cvstats.api.running_resampled import checked_train_size
from cvstats.containers import Log, dropped, read
from cvstats.containers.pairing import aligned
from cvstats.containers.reading import MISSING
from cvstats.core.columns import Differences, LossColumns
from cvstats.core.crossproducts import cross_products
from cvstats.core.design import Design, Level
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import MOST, LogError, checked_choice, listed, looked_up, nearest
from cvstats.intervals.registry import require

__all__ = [
    "Options",
    "Pairs",
    "averaged",
    "based",
    "checked_options",
    "columns_of",
    "directly",
    "every_two",
    "paired",
    "pairs_of",
    "products",
    "usual",
]

Pairs = list[tuple[Hashable, Hashable]]
Options: TypeAlias = Mapping[str, Any] | None


# --- which models -----------------------------------------------------------------------------


def pairs_of(log: Log, reference: Hashable) -> tuple[Pairs, IntArray, IntArray]:
    """Choose the pairs to compare: their names, and the numbers of their models."""
    models = list(log.labels.models)
    m = len(models)
    if m < 2:
        raise LogError(
            "the log holds one model. Expected two or more: pass the other log, as in "
            "a.cvci.compare(b), or a frame with a column for each model (an array with a "
            "dimension 'model')."
        )
    if reference is None:
        left, right = np.triu_indices(m, 1)
        return list(combinations(models, 2)), left, right
    at = looked_up(reference, {model: i for i, model in enumerate(models)})
    if at is None:
        raise LogError(
            f"there is no model {reference!r}. Expected reference to be one of "
            f"{listed(map(repr, models))}.{nearest(reference, models)}"
        )
    left = np.delete(np.arange(m), at)
    return [(models[i], reference) for i in left], left, np.full(m - 1, at)


def paired(
    losses: Losses, other: Losses | None, reference: Hashable, missing: str
) -> tuple[Log, Pairs, Differences]:
    """Pair the models of one log, or each of them with its partner in another log."""
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    return (
        one_log(losses, reference, missing) if other is None else two_logs(losses, other, missing)
    )


def one_log(losses: Losses, reference: Hashable, missing: str) -> tuple[Log, Pairs, Differences]:
    """Pair the models of one log."""
    log = read(losses, missing=missing)
    pairs, left, right = pairs_of(log, reference)
    columns = columns_of(log)
    return log, pairs, Differences(
        log.panels, columns[left].reshape(-1), columns[right].reshape(-1)
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
        shown = [one.design.format_labels(int(row)) for row in apart[:MOST]]
        raise LogError(
            f"the models were not evaluated on the same points: only the "
            f"{'first' if masks[0][apart[0]] else 'second'} log has a loss at "
            f"{listed(shown, len(apart))}. Expected the same evaluations in both. Pass "
            f"missing='drop' to compare on those that both have."
        )


def two_logs(one: Losses, two: Losses, missing: str) -> tuple[Log, Pairs, Differences]:
    """Pair each model of one log with its partner in another."""
    checked_choice("missing", missing, MISSING)
    first = read(one)
    second = read(aligned(one, two))
    mine, yours = list(first.labels.models), list(second.labels.models)
    both = LossColumns((*first.panels.tables, *second.panels.tables))
    log = replace(first, panels=both, other=second.labels)
    if missing == "drop":
        log = dropped(log)
        log.design.splits()
    else:
        check_same_rows(first, second)
    width = first.panels.width
    columns = columns_of(first).reshape(-1)
    names = [
        ("model" if a is None else a, "other" if b is None else b)
        for a, b in zip(mine, yours, strict=True)
    ]
    return log, names, Differences(both, columns, columns + width)


def columns_of(log: Log) -> IntArray:
    """List the columns of the models, models by carried cells; of both logs, if there are two."""
    own = np.stack([log.labels.columns(model) for model in range(len(log.labels.models))])
    return own if log.other is None else np.concatenate([own, own + log.panels.width // 2])


def every_two(log: Log) -> Differences:
    """Pair all models with each other, in each carried cell."""
    columns = columns_of(log)
    left, right = np.triu_indices(len(columns), 1)
    return Differences(log.panels, columns[left].reshape(-1), columns[right].reshape(-1))


# --- which interval ---------------------------------------------------------------------------


def checked_options(method: str | None, options: Options) -> dict[str, Any]:
    """Refuse options that the method does not have, or that mean nothing for differences."""
    checked_choice("method", method, (*RUNNERS, None))
    if not (options is None or isinstance(options, Mapping)):
        raise LogError(
            f"options={options!r} is not known. Expected the options of the method by name, as in "
            f"method='wald', options={{'variance': 'within-fold'}}."
        )
    given = dict(options or {})
    if not given:
        return given
    if method is None:
        raise LogError("options belong to a method. Expected method= beside them.")
    known = [
        name
        for name, parameter in signature(RUNNERS[method]).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY and name not in ("alpha", "alternative")
    ]
    for name in given:
        if name not in known:
            raise LogError(
                f"options holds {name!r}, and {method} has no such option for differences. "
                f"Expected some of: {', '.join(map(repr, known)) or 'none'}.{nearest(name, known)}"
            )
    checked_words(method, given)
    if "train_size" in given:
        checked_train_size(given["train_size"])
    if method == "holdout" and given.get("interval", "wald") not in ("wald", "t"):
        raise LogError(
            f"options={{'interval': {given['interval']!r}}} is an interval for a proportion, and "
            f"a difference is none. Expected 'wald' or 't'."
        )
    return given


def usual(log: Log) -> str:
    """Name the interval for differences: of one test set, of folds, or of another design.

    Sources left out are folds here, as for `wald`: the models differ on these sources.
    """
    try:
        method = chosen_for(log)[0]
    except LogError:  # nothing fits: the words of one of the two say what is missing
        method = "holdout"
    if method in ("holdout", "wald", "out_of_source"):
        return "holdout" if folds_per_repetition(log) == 1 else "wald"
    return method if method in RUNNERS else "bootstrap_oob"


def based(
    log: Log, losses: Differences, method: str, options: Mapping[str, Any], alpha: float
) -> Result:
    """Compute the interval of differences on which a comparison stands."""
    return exact(inexactly(log, losses, method, options, alpha), log, losses)


def inexactly(
    log: Log, losses: Differences, method: str, options: Mapping[str, Any], alpha: float
) -> Result:
    """Compute the interval as the method gives it, rounding and all."""
    repetitions = log.design.number("repetition")
    if method != "holdout" or repetitions == 1:
        return RUNNERS[method](log, losses, alpha=alpha, **options)
    require("holdout", log.design)
    points = averaged(log)
    means = Differences(points.panels, losses.left, losses.right)
    result = RUNNERS[method](points, means, alpha=alpha, **options)
    columns = {**result.columns, "n_repetitions": np.full(losses.width, repetitions)}
    return replace(result, columns=columns)


def averaged(log: Log) -> Log:
    """Average each point over its repetitions, less the first model's losses.

    Differences of models stay what they are, and a large common level costs no digits.
    """
    names = [name for name in ("source", "point") if name in log.design.levels]
    columns = columns_of(log)
    first = np.empty(log.panels.width, dtype=np.int64)
    first[columns] = columns[0]
    apart = Differences(log.panels, np.arange(log.panels.width), first)
    found = log.moments(names, apart)
    levels = {
        name: Level(labels, np.ascontiguousarray(found.codes[:, i]))
        for i, (name, labels) in enumerate(zip(found.levels, found.labels, strict=True))
    }
    return replace(
        log, design=Design(levels, len(found.count)), panels=LossColumns((found.location,))
    )


# --- what all differences come from -----------------------------------------------------------


def products(log: Log, columns: IntArray, found: Moments) -> tuple[FloatArray, FloatArray]:
    """Sum the cross products of some columns about their cells' means, over all cells.

    ``found`` holds the moments of all columns. Also gives the mean of each column over all
    rows, less any number that the columns share, so that a large common level costs no digits.
    """
    some = found.pick(columns)
    total, rest = cross_products(log.design, log.panels, columns, some)
    share = found.count / found.count.sum()
    mean = some.location
    level = share @ (mean - mean[:, :1]) + (rest - rest[0]) / found.count.sum()
    return total, level


def directly(
    log: Log, columns: IntArray, pairs: IntArray, by: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Sum squares of some differences about their cells' means, and their means, one by one."""
    few = Differences(log.panels, columns[pairs[:, 0]], columns[pairs[:, 1]])
    found = log.moments(by, few)
    return found.m2.sum(axis=0), found.over(()).location[0]
