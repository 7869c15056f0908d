"""scikit-learn: results of cross-validation and fitted searches; reports of skore."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.orientation import OFF_TARGET, TURNED, facts_of_score, turn
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, describe_type, listed, spelled
from cvstats.io.table import (
    PredictionTable,
    ReadOptions,
    add_split_numbers,
    find_orientation,
    refuse_one_split,
)
from cvstats.io.tools import SCORE, SPLITTING, is_search, refuse_unused
from cvstats.loss_functions.losses import choose_response, find_loss, find_responses
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS


def cross_validate(result: Mapping[str, Any], options: ReadOptions) -> PredictionTable:
    """Predict again with the returned estimators, each on its test points.

    Without estimators, the scores of splits are read, which requires the ``cv`` of the splits.
    """
    lost = [name for name in ("estimator", "indices") if name not in result]
    if lost and options.data.get("cv") is not None:
        return search(of_one_candidate(result, options.wanted), options)
    if lost:
        raise LogError(
            f"this result of cross_validate has no {' and no '.join(map(repr, lost))}, so the "
            "losses of points cannot be computed. Expected cross_validate(…, "
            "return_estimator=True, return_indices=True). To read only its scores of splits, "
            "pass cv= as it was passed to cross_validate, and name the score: "
            f"read_log(result, cv=cv, metric='accuracy')."
        )
    unused = next((n for n in ("cv", "metric", "higher_is_better") if n in options.given()), None)
    if unused is not None:
        raise LogError(
            f"{unused}= applies to scores of splits, but this result of cross_validate has "
            "estimators, which predict each point. Omit it, and pass loss=…."
        )
    X, y = options.data.get("X"), options.data.get("y")
    if X is None or y is None:
        raise LogError(
            "cross_validate does not store data and truth. Expected both, as in "
            "read_log(result, X=X, y=y, loss=…)."
        )
    truth, points = truth_of(y, X)
    estimators, tests = list(result["estimator"]), list(result["indices"]["test"])
    trains = list(result["indices"]["train"])
    if not len(estimators) == len(tests) == len(trains):
        raise LogError(
            f"there are {len(estimators):,} estimators and {len(tests):,} test sets. Expected "
            "equal numbers."
        )
    predicted, tested = [], []
    classes: list[list[Hashable]] = []
    chances = []
    responses, ranks = find_responses(
        (loss, {**options.loss_options, **implied})
        for loss, implied in map(find_loss, options.losses)
    )
    response = "decision_function" if [*responses] == ["decision_function"] else "predict"
    for estimator, test in zip(estimators, tests, strict=True):
        rows = rows_of(test, len(truth))
        part = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
        choose_response(estimator, response, responses.get(response, options.loss), False)
        predicted.append(np.asarray(getattr(estimator, response)(part)))
        tested.append(rows)
        wanted = "predict_proba" in responses and hasattr(estimator, "classes_")
        if wanted or hasattr(estimator, "predict_proba"):
            chances.append(predict_classes(estimator, part, responses, ranks))
            classes.append(np.asarray(estimator.classes_).tolist())
    names = classes[0] if classes else None
    if other := next((own for own in classes if own != names), None):
        if "predict_proba" in responses:
            raise LogError(
                f"the estimators have different classes: {names} and {other}. Expected every class "
                "in every training set. Stratify the splits, or predict with cvstats.evaluate."
            )
        names = None
    rows, values = np.concatenate(tested), np.concatenate(predicted)
    table = pd.DataFrame({"point": points[rows], "y_true": truth[rows], "y_pred": values})
    table, of_classes = with_classes(table, names, chances)
    table = with_groups(table, options, rows, len(truth))
    table = add_split_numbers(table, np.repeat(np.arange(len(tests)), list(map(len, tested))))
    return PredictionTable(table, of_classes, train_sizes(trains))


def predict_classes(
    estimator: Any, part: Any, responses: Mapping[str, Any], ranks: bool
) -> FloatArray:
    """Predict the probability of each class, or scores if only their order matters."""
    scored = hasattr(estimator, "decision_function") and len(estimator.classes_) == 2
    loss = responses.get("predict_proba")
    response = choose_response(estimator, "predict_proba", loss, ranks and scored)
    found = np.asarray(getattr(estimator, response)(part))
    return np.column_stack([-found, found]) if response == "decision_function" else found


def skore(report: Any, options: ReadOptions) -> PredictionTable:
    """Predict again with the estimators of a report, which stores data and splits."""
    if hasattr(report, "split_indices"):
        X, y, pairs = report.X, report.y, report.split_indices
        parts = getattr(report, "reports_", None) or report.estimator_reports_  # until mid 2026
        fitted = [part.estimator_ for part in parts]
    else:
        X, y, fitted = report.X_test, report.y_test, [report.estimator_]
        known = 0 if report.X_train is None else len(report.X_train)
        pairs = [(np.arange(known), np.arange(len(y)))]
    train, test = zip(*pairs, strict=True)
    result = {"estimator": fitted, "indices": {"train": train, "test": test}}
    read = cross_validate(result, replace(options, data={**options.data, "X": X, "y": y}))
    attrs = {name: fact for name, fact in read.attrs.items() if fact}
    return replace(read, attrs=attrs, called=str(report.estimator_name_))


def of_one_candidate(result: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Arrange the scores of splits like those of a search with one candidate.

    A single score has no name in the result, and gets the requested one.
    """
    scores = {name: column for name, column in result.items() if str(name).startswith("test_")}
    if not scores:
        raise LogError("this result of cross_validate has no test scores. Expected 'test_score'.")
    if list(scores) == ["test_score"] and name is not None:
        scores = {f"test_{name}": scores["test_score"]}
    columns = {
        f"split{split}_{name}": [value]
        for name, column in scores.items()
        for split, value in enumerate(column)
    }
    return {"params": [{}], **columns}


def with_classes(
    table: pd.DataFrame, names: list[Hashable] | None, chances: list[Any]
) -> tuple[pd.DataFrame, dict[Hashable, str]]:
    """Add the probabilities of the classes as columns."""
    if names is None:
        return table, {}
    found = {name: f"prob_{name}" for name in names}
    columns = dict(zip(found.values(), np.concatenate(chances).T, strict=True))
    return table.assign(**columns), found


def truth_of(y: Any, X: Any) -> tuple[Any, Any]:
    """Return the truth and the names of the points: the index of a table, or row numbers."""
    truth = np.asarray(y)
    if truth.ndim != 1:
        way = " Pass y.squeeze()." if truth.shape[1:] == (1,) else ""
        raise LogError(f"y has the shape {truth.shape}. Expected one truth for each point.{way}")
    named = [part.index for part in (y, X) if isinstance(part, (pd.Series, pd.DataFrame))]
    if len(named) == 2 and not named[0].equals(named[1]):
        raise LogError("X and y have different indexes. Expected the same points in both.")
    if X is not None and len(X) != len(truth):
        raise LogError(f"X has {len(X):,} rows, but y has {len(truth):,}. Expected equal numbers.")
    if not named:
        return truth, np.arange(len(truth))
    if isinstance(named[0], pd.MultiIndex) or not named[0].is_unique:
        again = (named[0][named[0].duplicated()] if not named[0].is_unique else named[0])[0]
        raise LogError(
            f"the index of y has a duplicate ({spelled(again)}). Expected a unique name for each "
            "point. Pass y.reset_index(drop=True), and X as well."
        )
    return truth, np.asarray(named[0])


def with_groups(
    table: pd.DataFrame, options: ReadOptions, rows: IntArray, size: int
) -> pd.DataFrame:
    """Add the groups as sources."""
    groups = options.data.get("groups")
    if groups is None:
        return table
    if len(groups) != size:
        raise LogError(
            f"groups has {len(groups):,} labels, but y has {size:,}. Expected equal numbers."
        )
    return table.assign(source=np.asarray(groups)[rows])


def train_sizes(trains: Sequence[Any]) -> dict[str, Any]:
    """Return the training sizes of the estimators: one, or all in the order of the splits."""
    counts = [int(np.sum(t)) if np.asarray(t).dtype == bool else len(t) for t in trains]
    return {"n_train": counts[0] if len(set(counts)) == 1 else counts}


def cross_val_predict(predictions: Any, options: ReadOptions) -> PredictionTable:
    """Split again, to find the fold in which each point was predicted.

    Without a truth, or with the name of a score, the values are those of ``cross_val_score``.
    """
    y, cv = options.data.get("y"), options.data.get("cv")
    if cv is not None and (y is None or options.metric_name):
        return cross_val_score(predictions, options)
    if y is None or cv is None:
        raise LogError(
            "predictions of cross_val_predict contain neither truth nor folds. Pass both, as in "
            "read_log(predictions, y=y, cv=cv, loss=…), with the cv= of cross_val_predict. For "
            "scores of cross_val_score, name the score: read_log(scores, cv=cv, metric='accuracy')."
        )
    refuse_unused("format='cross_val_predict'", options, SPLITTING)
    truth, points = truth_of(y, options.data.get("X"))
    models: list[Hashable] = []
    if isinstance(predictions, pd.DataFrame):
        classes = {str(label) for label in np.unique(truth)} if predictions.shape[1] > 1 else set()
        if {str(name) for name in predictions.columns} != classes:
            models = list(predictions.columns)  # the names of columns are not classes
    values = np.asarray(predictions)
    if values.ndim not in (1, 2) or len(values) != len(truth):
        raise LogError(
            f"the predictions have the shape {values.shape} for {len(truth):,} points. Expected "
            "one prediction for each point, or one for each point and class. For scores of "
            "cross_val_score, name the score: metric='accuracy'."
        )
    fold, trains = find_folds(splits_of(cv, options, truth), points)
    table = pd.DataFrame({"fold": fold, "point": points, "y_true": truth})
    table = with_groups(table, options, np.arange(len(truth)), len(truth))
    attrs = train_sizes(trains)
    if values.ndim == 1:
        return PredictionTable(table.assign(y_pred=values), {}, attrs)
    if models:
        parts = [
            table.assign(model=str(model), y_pred=predictions.iloc[:, at].array)
            for at, model in enumerate(models)
        ]
        return PredictionTable(pd.concat(parts, ignore_index=True), {}, attrs)
    names = np.unique(truth).tolist()
    if len(names) != values.shape[1]:
        raise LogError(
            f"the predictions have {values.shape[1]} columns, but y has {len(names)} classes. "
            f"Expected a column for each class."
        )
    table = table.assign(y_pred=np.asarray(names)[values.argmax(axis=1)])
    table, found = with_classes(table, names, [values])
    return PredictionTable(table, found, attrs)


def find_folds(splits: Iterable[tuple[Any, Any]], points: Any) -> tuple[IntArray, list[IntArray]]:
    """Find the fold in which each point is tested; also list the training rows of each fold."""
    fold = np.full(len(points), -1)
    trains = []
    for number, (train, test) in enumerate(splits):
        rows = rows_of(test, len(points))
        if (fold[rows] >= 0).any():
            raise LogError(
                "a point appears in two test sets of cv. Expected a partition: cross_val_predict "
                "keeps one prediction for each point. For repeated folds use cross_validate(…, "
                "return_estimator=True, return_indices=True)."
            )
        fold[rows] = number
        trains.append(rows_of(train, len(points)))
    if (fold < 0).any():
        raise LogError(
            f"point {spelled(points[int(np.argmin(fold))])} is in no test set of cv. Expected "
            f"the partition that was used for the predictions."
        )
    return fold, trains


def cross_val_score(scores: Any, options: ReadOptions) -> PredictionTable:
    """Read one score per split, in a column for each model if there are several."""
    if np.ndim(scores) != 1 and not isinstance(scores, pd.DataFrame):
        raise LogError(
            f"the values have the shape {np.shape(scores)}. Expected one score of cross_val_score "
            "for each split; for predictions of cross_val_predict, pass y= and no metric=."
        )
    models = scores.items() if isinstance(scores, pd.DataFrame) else [(None, scores)]
    read = [
        search(of_one_candidate({"test_score": column}, options.wanted), options)
        for _, column in models
    ]
    table = pd.concat([part.table for part in read], ignore_index=True)
    if isinstance(scores, pd.DataFrame):
        table["model"] = np.repeat(scores.columns.map(str), len(scores))
    return replace(read[0], table=table, attrs={"format": "cross_val_score", **read[0].attrs})


def splits_of(cv: Any, options: ReadOptions, truth: Any) -> list[tuple[Any, Any]]:
    """Split as the tool did; refuse splitters that would split differently now."""
    if isinstance(cv, (int, float, str)):
        raise LogError(
            f"cv={cv!r} means different folds for a classifier and a regressor. Expected a "
            f"splitter, such as KFold({cv}) or StratifiedKFold({cv})."
        )
    if not hasattr(cv, "split"):
        return list(cv)
    state = getattr(cv, "random_state", None)
    random = getattr(cv, "shuffle", hasattr(cv, "random_state"))
    if random and not isinstance(state, (int, np.integer)):
        raise LogError(
            f"{type(cv).__name__} shuffles with random_state={state!r}, so that it splits "
            "differently each time. Expected an integer, or the splits themselves: "
            "cv=list(splitter.split(X, y)), created before predicting."
        )
    X, groups = options.data.get("X"), options.data.get("groups")
    if groups is None and "Group" in type(cv).__name__:
        raise LogError(
            f"{type(cv).__name__} splits by groups. Expected those of cross_val_predict: pass "
            "groups=."
        )
    return list(cv.split(np.zeros(len(truth)) if X is None else X, truth, groups))


def search(found: Any, options: ReadOptions) -> PredictionTable:
    """Read the scores of all candidates as models, named by the parameters that differ."""
    if not is_search(found) or (hasattr(found, "refit") and not hasattr(found, "cv_results_")):
        raise LogError(
            f"{describe_type(found)} is not a fitted search. Expected GridSearchCV after "
            f"fit(X, y), or its cv_results_."
        )
    every = getattr(found, "cv_results_", found)
    results, note = last_round(every)
    names = name_candidates(parameters_of(results), parameters_of(every))
    key = choose_score(results, options, named=every is not found)
    values = scores_of(results, key)
    levels, attrs = describe_splits(found, values.shape[1], options)
    lost = ""
    failed = [bool(np.isnan(row).all()) for row in values]
    if all(failed):
        raise LogError("no candidate has a score: every fit failed.")
    if any(failed):
        gone = [name for name, out in zip(names, failed, strict=True) if out]
        lost = f"there are no scores, because all fits failed, for {listed(map(repr, gone))}"
    name = name_of_score(found, key, options)
    values, losses = turn_scores(values[~np.array(failed)], name, options)
    kept = [name for name, out in zip(names, failed, strict=True) if not out]
    tables = [levels.assign(model=name, loss=row) for name, row in zip(kept, values, strict=True)]
    table = pd.concat(tables, ignore_index=True)
    if names == [CANDIDATE]:
        table = table.drop(columns="model")
    return PredictionTable(table, {}, {"holds": "scores", **losses, **attrs}, lost, note)


# --- candidates -----------------------------------------------------------------------------------

CANDIDATE = "candidate"
"""The name of a candidate without parameters that differ."""


def last_round(results: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Keep the last round of successive halving: earlier rounds had fewer points."""
    rounds = np.asarray(results["iter"]) if "iter" in results else np.zeros(1)
    if len(np.unique(rounds)) == 1:
        return results, ""
    last = (rounds == rounds.max()).tolist()
    kept = {
        name: [value for value, keep in zip(column, last, strict=True) if keep]
        for name, column in results.items()
    }
    return kept, (
        f"only the last of {len(np.unique(rounds))} rounds of the search was read. For another "
        "round, pass its rows: table = pandas.DataFrame(search.cv_results_); "
        "read_log(table[table['iter'] == 0], cv=…)"
    )


def parameters_of(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the parameters of each candidate, which are columns of text in a CSV file."""
    candidates = list(results["params"])
    if all(isinstance(one, Mapping) for one in candidates):
        return candidates
    columns = {
        str(name).removeprefix("param_"): list(values)
        for name, values in results.items()
        if str(name).startswith("param_")
    }
    return [
        {name: values[at] for name, values in columns.items() if not pd.isna(values[at])}
        for at in range(len(candidates))
    ]


def name_candidates(
    candidates: Sequence[Mapping[str, Any]], among: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Name candidates by the parameters that differ, and identical ones by number."""
    parameters = list(dict.fromkeys(name for one in among for name in one))
    absent = object()
    differ = [name for name in parameters if len({str(one.get(name, absent)) for one in among}) > 1]
    names = [
        ", ".join(f"{name}={shorten(one[name])}" for name in differ if name in one) or CANDIDATE
        for one in candidates
    ]
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, 1)]


def shorten(value: Any) -> str:
    """Format the value of a parameter, numbers to six digits."""
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


# --- scores ---------------------------------------------------------------------------------------


def choose_score(results: Mapping[str, Any], options: ReadOptions, *, named: bool) -> str:
    """Choose the score if the search computed several.

    The only score of a table has no name, unlike that of a search, and gets the requested one.
    """
    matches = [match for name in results if (match := SCORE.fullmatch(str(name)))]
    every = list(dict.fromkeys(match[2] for match in matches))
    if options.wanted in every:
        return str(options.wanted)
    if len(every) == 1 and (options.wanted is None or (every == ["score"] and not named)):
        return every[0]
    if options.wanted is None:
        raise LogError(
            f"there are {len(every)} scores: {listed(map(repr, every))}. Expected one of "
            f"them: metric={every[0]!r}."
        )
    if every == ["score"]:
        raise LogError(
            f"the search has only one, unnamed score, but {options.wanted!r} was requested. Omit "
            "it. A search stores no predictions: for losses of points, evaluate the candidates "
            "with cvstats.evaluate."
        )
    raise LogError(
        f"Unknown score {options.wanted!r}. Expected metric= to be one of "
        f"{', '.join(map(repr, every))}."
    )


def scores_of(results: Mapping[str, Any], key: str) -> FloatArray:
    """Collect the scores: candidates in rows, splits in columns."""
    columns = sorted(
        (int(match[1]), name)
        for name in results
        if (match := SCORE.fullmatch(str(name))) and match[2] == key
    )
    return np.column_stack([np.asarray(results[name], dtype=float) for _, name in columns])


def name_of_score(found: Any, key: str, options: ReadOptions) -> str:
    """Name a score as scikit-learn does, including the default score of the estimator."""
    if key != "score":
        return key
    if not hasattr(found, "cv_results_"):
        return options.wanted or key
    if isinstance(found.scoring, str):
        return found.scoring
    base = import_module("sklearn.base")
    if found.scoring is None and base.is_classifier(found.estimator):
        return "accuracy"
    return "r2" if found.scoring is None and base.is_regressor(found.estimator) else key


def turn_scores(
    values: FloatArray, name: str, options: ReadOptions
) -> tuple[FloatArray, dict[str, Any]]:
    """Convert scores to losses: negated errors to errors, s in [0, 1] to 1 - s, others to -s."""
    if options.higher_is_better is False:
        return values, {"loss": name}
    known, implied = find_loss(name)
    metric = METRICS.get(known)
    negated = name.startswith("neg_")
    own = known in LOSSES and known not in OFF_TARGET and known != "net_benefit"
    if negated or own or (metric is not None and metric.orientation == "error"):
        facts = {"loss": name.removeprefix("neg_") if negated else known}
        if metric is not None:
            facts = facts_of_score(known, metric.orientation)
        negated = negated or bool((values[~np.isnan(values)] <= 0).all())
        return 0 - values if negated else values, facts
    name = name if implied else known
    orientation = find_orientation(values)
    if metric is not None:  # a score is better when larger, whatever its name
        orientation = TURNED[metric.orientation != TURNED[0]]
    facts = facts_of_score(name, orientation)
    if metric is not None:
        facts["range"] = (low, high) = metric.range
        outside = values[(values < low - 1e-9) | (values > high + 1e-9)]
        if len(outside):
            raise LogError(
                f"scores named {name!r} cannot be {outside[0]:g}. Expected values "
                f"{f'of at most {high:g}' if low == -np.inf else f'between {low:g} and {high:g}'}. "
                "Divide percentages by 100, or pass another name: metric='…'."
            )
    return turn(values, orientation), facts


# --- splits ---------------------------------------------------------------------------------------


def describe_splits(
    found: Any, number: int, options: ReadOptions
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Find the repetition and the fold of each split, and sizes if the data are known."""
    refuse_one_split(number)
    cv = options.data.get("cv")
    if cv is None and not hasattr(found, "cv_results_"):
        raise LogError(
            "cv_results_ does not record how the data were split. Pass the search itself, or "
            "cv= as it was passed to the search: read_log(search.cv_results_, cv=5)."
        )
    cv = found.cv if cv is None else cv
    estimator = getattr(found, "estimator", None)
    X, y = options.data.get("X"), options.data.get("y")
    classes = estimator is not None and import_module("sklearn.base").is_classifier(estimator)
    splitter = import_module("sklearn.model_selection").check_cv(cv, y, classifier=classes)
    if X is None and y is None:
        splits = number
        with suppress(TypeError, ValueError):  # the number of some splits depends on the data
            splits = splitter.get_n_splits()
        refuse_other_splits(splits, number)
        return levels_of(splitter, number), {}
    if y is None and "Stratified" in type(splitter).__name__:
        raise LogError(f"{type(splitter).__name__} splits by y. Pass y= too, or omit X=.")
    n = len(np.asarray(X if y is None else y))
    parts = [
        (rows_of(train, n), rows_of(test, n))
        for train, test in splitter.split(np.zeros((n, 1)), y, options.data.get("groups"))
    ]
    refuse_other_splits(len(parts), number)
    trained, tested = zip(*parts, strict=True)
    points = pd.DataFrame({"point": np.concatenate(tested)})
    split = np.repeat(np.arange(number), [len(rows) for rows in tested])
    if is_partition(splitter):
        levels = add_split_numbers(points, split).drop(columns="point").assign(split=split)
        levels = levels.drop_duplicates("split").drop(columns="split").reset_index(drop=True)
    else:
        levels = levels_of(splitter, number)
    sizes = {len(rows) for rows in tested}
    return levels, train_sizes(trained) | {
        "n_test": len(split) / number if len(sizes) > 1 else sizes.pop()
    }


def refuse_other_splits(number: int, scores: int) -> None:
    """Refuse a splitter that did not make the splits of the scores."""
    if number != scores:
        raise LogError(
            f"cv has {number:,} splits, but there are scores of {scores:,}. Expected the cv and "
            "the data that the scores were computed with."
        )


def levels_of(splitter: Any, number: int) -> pd.DataFrame:
    """Determine repetitions and folds from the type of a splitter."""
    at = np.arange(number)
    times = getattr(splitter, "n_repeats", None)
    if isinstance(times, int) and number % times == 0:
        k = number // times
        return pd.DataFrame({"repetition": at // k + 1, "fold": at % k + 1})
    return pd.DataFrame({"fold" if is_partition(splitter) else "repetition": at})


def is_partition(splitter: Any) -> bool:
    """Whether the splitter tests each point once."""
    kinds = import_module("sklearn.model_selection")
    return not isinstance(splitter, (kinds.BaseShuffleSplit, kinds.TimeSeriesSplit))


def rows_of(indices: Any, size: int) -> IntArray:
    """Check row numbers, and convert a mask to row numbers."""
    rows = np.asarray(indices)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise LogError("the indices of a split are not row numbers. Expected integers.")
    if len(rows) and not 0 <= rows.min() <= rows.max() < size:
        raise LogError(
            f"a split has row {int(rows.max()):,}, but y has {size:,} rows. Expected the X and y "
            "that were cross-validated."
        )
    return rows.astype(np.int64)
