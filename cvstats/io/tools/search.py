"""scikit-learn's searches: the scores of each candidate on each split, which is all they keep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, listed
from cvstats.io.predictions import PredictionTable
from cvstats.io.splits import add_split_numbers
from cvstats.io.tools._table import ReadOptions
from cvstats.metrics import METRICS

SCORE = re.compile(r"split(\d+)_test_(.+)")
ALIASES = {"roc_auc": "auc", "matthews_corrcoef": "matthews"}
"""Scores that have another name here."""


def is_search(found: Any) -> bool:
    """Whether this is a fitted search, or its ``cv_results_``."""
    if isinstance(found, Mapping):
        return "params" in found and any(SCORE.fullmatch(str(name)) for name in found)
    return not isinstance(found, type) and hasattr(found, "cv_results_")


def search(found: Any, options: ReadOptions) -> PredictionTable:
    """Read the scores of all candidates: a model each, named by the parameters that differ."""
    results = found if isinstance(found, Mapping) else found.cv_results_
    results, note = last_round(results)
    names = name_candidates(list(results["params"]))
    key = choose_score(results, options)
    values = scores_of(results, key)
    levels, attrs = describe_splits(found, values.shape[1], options)
    lost = ""
    failed = [bool(np.isnan(row).all()) for row in values]
    if all(failed):
        raise LogError("no candidate has a score: every fit failed. Expected fits that succeed.")
    if any(failed):
        gone = [name for name, out in zip(names, failed, strict=True) if out]
        lost = f"all fits failed, and so there is no score, of {listed(map(repr, gone))}"
    values, losses = turn_scores(values[~np.array(failed)], name_of_score(found, key), options)
    kept = [name for name, out in zip(names, failed, strict=True) if not out]
    table = pd.concat(
        [levels.assign(model=name, loss=row) for name, row in zip(kept, values, strict=True)],
        ignore_index=True,
    )
    return PredictionTable(table, {}, {"holds": "scores", **losses, **attrs}, lost, note)


# --- candidates -----------------------------------------------------------------------------------


def last_round(results: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Keep the last round of a successive halving: the others had fewer points."""
    if "iter" not in results:
        return results, ""
    rounds = np.asarray(results["iter"])
    last = (rounds == rounds.max()).tolist()
    kept = {
        name: [value for value, keep in zip(column, last, strict=True) if keep]
        for name, column in results.items()
    }
    return kept, f"read was the last of {len(np.unique(rounds))} rounds of the search"


def name_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name candidates by the parameters in which they differ; those alike by their number."""
    parameters = list(dict.fromkeys(name for one in candidates for name in one))
    absent = object()
    differ = [
        name for name in parameters if len({str(one.get(name, absent)) for one in candidates}) > 1
    ]
    names = [
        ", ".join(f"{name}={shorten(one[name])}" for name in differ if name in one) or "candidate"
        for one in candidates
    ]
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, 1)]


def shorten(value: Any) -> str:
    """Write the value of a parameter; a number as it was drawn to six digits."""
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


# --- scores ---------------------------------------------------------------------------------------


def choose_score(results: Mapping[str, Any], options: ReadOptions) -> str:
    """Choose the score where the search computed several."""
    matches = [match for name in results if (match := SCORE.fullmatch(str(name)))]
    every = list(dict.fromkeys(match[2] for match in matches))
    if options.wanted in every:
        return str(options.wanted)
    if len(every) == 1 and options.wanted is None:
        return every[0]
    if options.wanted is None:
        raise LogError(
            f"the search has {len(every)} scores: {listed(map(repr, every))}. Expected one of "
            f"them: metric={every[0]!r}."
        )
    if every == ["score"]:
        raise LogError(
            f"the search keeps one score, without a name, and {options.wanted!r} was asked for. "
            f"Leave it out. A search keeps no predictions: for losses of points evaluate the "
            f"candidates with cvstats.evaluate."
        )
    raise LogError(
        f"there is no score {options.wanted!r}. Expected metric= to be one of "
        f"{', '.join(map(repr, every))}."
    )


def scores_of(results: Mapping[str, Any], key: str) -> FloatArray:
    """Gather the scores: candidates in rows, splits in columns."""
    columns = sorted(
        (int(match[1]), name)
        for name in results
        if (match := SCORE.fullmatch(str(name))) and match[2] == key
    )
    return np.column_stack([np.asarray(results[name], dtype=float) for _, name in columns])


def name_of_score(found: Any, key: str) -> str:
    """Name a score as scikit-learn does, that of the estimator itself included."""
    if key != "score" or isinstance(found, Mapping):
        return key
    if isinstance(found.scoring, str):
        return found.scoring
    base = import_module("sklearn.base")
    if found.scoring is None and base.is_classifier(found.estimator):
        return "accuracy"
    return "r2" if found.scoring is None and base.is_regressor(found.estimator) else key


def turn_scores(
    values: FloatArray, name: str, options: ReadOptions
) -> tuple[FloatArray, dict[str, Any]]:
    """Turn scores into losses: ``neg_`` ones into errors, shares s into 1 - s, others into -s."""
    if options.higher_is_better is False:
        return values, {"loss": name}
    if name.startswith("neg_"):
        return 0 - values, {"loss": name.removeprefix("neg_")}
    name = ALIASES.get(name, name)
    share = (
        METRICS[name].orientation == "1 - score" if name in METRICS
        else bool(((values >= 0) & (values <= 1) | np.isnan(values)).all())
    )  # fmt: skip
    loss = f"1 - {name}" if share else f"-{name}"
    facts = {"loss": loss, "metric": name, "orientation": "1 - score" if share else "-score"}
    return 1 - values if share else 0 - values, facts


# --- splits ---------------------------------------------------------------------------------------


def describe_splits(
    found: Any, number: int, options: ReadOptions
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Find the repetition and the fold of each split, and sizes where the data are known."""
    cv = options.data.get("cv")
    if cv is None and isinstance(found, Mapping):
        raise LogError(
            "cv_results_ does not say how the data were split. Expected the search itself, or cv= "
            "as it was passed to it: read_log(search.cv_results_, cv=5)."
        )
    cv = found.cv if cv is None else cv
    estimator = getattr(found, "estimator", None)
    X, y = options.data.get("X"), options.data.get("y")
    classes = estimator is not None and import_module("sklearn.base").is_classifier(estimator)
    splitter = import_module("sklearn.model_selection").check_cv(cv, y, classifier=classes)
    if X is None and y is None:
        return levels_of(splitter, number), {}
    n = len(np.asarray(X if y is None else y))
    parts = [
        (len(rows_of(train, n)), rows_of(test, n))
        for train, test in splitter.split(np.zeros((n, 1)), y, options.data.get("groups"))
    ]
    refuse_other_number(len(parts), number)
    trained, tested = zip(*parts, strict=True)
    points = pd.DataFrame({"point": np.concatenate(tested)})
    split = np.repeat(np.arange(number), [len(rows) for rows in tested])
    if is_partition(splitter):
        levels = add_split_numbers(points, split).drop(columns="point").assign(split=split)
        levels = levels.drop_duplicates("split").drop(columns="split").reset_index(drop=True)
    else:
        levels = levels_of(splitter, number)
    sizes = {len(rows) for rows in tested}
    attrs: dict[str, Any] = {"n_train": trained[0] if len(set(trained)) == 1 else list(trained)}
    return levels, attrs | {"n_test": len(split) / number if len(sizes) > 1 else sizes.pop()}


def levels_of(splitter: Any, number: int) -> pd.DataFrame:
    """Read repetitions and folds off the kind of a splitter."""
    at = np.arange(number)
    times = getattr(splitter, "n_repeats", None)
    if isinstance(times, int) and number % times == 0:
        k = number // times
        return pd.DataFrame({"repetition": at // k + 1, "fold": at % k + 1})
    return pd.DataFrame({"fold" if is_partition(splitter) else "repetition": at})


def is_partition(splitter: Any) -> bool:
    """Whether each point is to be tested once, by models of the others."""
    kinds = import_module("sklearn.model_selection")
    return not isinstance(splitter, (kinds.BaseShuffleSplit, kinds.TimeSeriesSplit))


def refuse_other_number(here: int, number: int) -> None:
    """Refuse a splitter that makes another number of splits than there are scores."""
    if here != number:
        raise LogError(
            f"cv makes {here:,} splits, and the search has {number:,}. Expected the cv, and the "
            f"data, that were passed to it."
        )


def rows_of(indices: Any, size: int) -> IntArray:
    """Check row numbers, and turn a mask into them."""
    rows = np.asarray(indices)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise LogError("the indices of a split are not row numbers. Expected integers.")
    if len(rows) and not 0 <= rows.min() <= rows.max() < size:
        raise LogError(
            f"a split names row {int(rows.max()):,}, and y has {size:,} rows. Expected the X and "
            f"y that were cross-validated."
        )
    return rows.astype(np.int64)
