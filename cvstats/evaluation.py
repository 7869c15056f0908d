"""`evaluate`: run estimators over a resampling plan, and collect their losses."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import (
    LogError,
    NotGiven,
    checked_flag,
    describe_type,
    install_command,
    listed,
    place,
    spelled,
)
from cvstats.loss_functions.losses import (
    Loss,
    LossKeywords,
    choose_response,
    find_loss,
    find_responses,
    join_metrics,
    losses,
    name_response,
    refuse_columns,
    refuse_unknown,
    split_options,
)
from cvstats.loss_functions.pointwise import (
    LossOptions,
    checked_loss,
    facts_of_loss,
    loss_name,
    pointwise,
)
from cvstats.metrics import METRICS
from cvstats.options import check_choices, find_choices, is_whole
from cvstats.plans import BoundPlan, Evaluation, Fit, Plan, bind_splits

LONGEST_CALL = 100
"""Maximum length of the text of a splitter that is stored in the log."""


def evaluate(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    plan: Plan | BoundPlan | None = None,
    cv: Any = None,
    loss: Loss | Sequence[Loss] | None = None,
    folds: Literal["average", "pool"] | None = None,
    groups: Any = None,
    point: Any = None,
    n_jobs: int | None = 1,
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    **options: Unpack[LossKeywords],
) -> pd.Series | pd.DataFrame:
    """Run a resampling plan with one or more estimators, and return the loss log.

    Each loss is for one point and one trained model, and all estimators are evaluated on the same
    splits. The plan determines which interval methods apply to the log, and which error they
    estimate.

    Parameters
    ----------
    estimators : estimator, or mapping of str to estimator
        Objects with scikit-learn's ``fit`` and ``predict``: pipelines, searches, regressors,
        classifiers. Each fit uses a clone.
    X : array, sparse array, DataFrame or list, n rows
        The data.
    y : array or Series, shape (n,)
        The truth.
    plan : Plan
        A resampling plan from `cvstats.plans`. Either this or ``cv`` is required, because it
        determines which intervals apply.
    cv : int, splitter or iterable, optional
        Any ``cv`` of scikit-learn: a number of folds (stratified if all estimators are
        classifiers, in the order of the data), a splitter such as ``RepeatedKFold(n_repeats=10)``,
        to which ``groups`` is passed, or pairs of training and test rows. A partition gives the
        level ``fold``, repeated partitions ``repetition`` and ``fold``, random splits
        ``repetition``.
    loss : str, callable or list, optional
        As for `cvstats.losses`: ``squared_error``, ``absolute_error``, ``percentage_error``,
        ``pinball``, ``zero_one`` (which use ``predict``), ``log_loss`` and ``brier`` (which use
        ``predict_proba``), ``hinge`` (which uses ``decision_function``), or a function of truth and
        prediction that returns a loss for each point. Also a metric such as ``auc`` (which uses
        ``predict_proba`` or, for a binary classifier without it, ``decision_function``), ``f1``,
        ``rmse`` or ``r2``; or a list, which gives a log with the level ``metric``. Of two classes,
        the one that sorts last is the positive one. By default ``zero_one`` for classifiers, and
        ``squared_error`` for regressors; for other estimators, ``zero_one`` if ``y`` contains text,
        categories or booleans.
    folds : {"average", "pool"}, optional
        For metrics, as for `cvstats.losses`.
    groups : array or Series, shape (n,), optional
        Source of each point, stored as the level ``source``. Grouped plans and
        ``leave_one_source_out`` keep sources together.
    point : array or sequence, shape (n,), optional
        Label of each point; by default the index of ``X``, or the row number.
    n_jobs : int, optional
        Number of processes, as in joblib; -1 uses all cores.
    progress : bool, optional
        Show a progress bar on the standard error stream.
    checkpoint : path, optional
        Folder in which finished fits are stored; created if it does not exist. Repeating the call
        continues an interrupted run, and returns the log of an uninterrupted one. A stored fit is
        reused only for the same rows, data, loss, estimator and code.
    **options : optional
        Options of individual losses and metrics, such as ``quantile``, ``delta``, ``threshold``,
        ``clip``, ``average`` or ``beta``, as in `cvstats.losses`. Options that name columns, such
        as ``event``, require logged predictions.

    Returns
    -------
    Series or DataFrame
        The losses, in the units of the loss, with the levels of the plan as index; for a mapping
        of estimators a DataFrame with a column for each. ``attrs``: ``plan`` (as text),
        ``n_fits`` (of each estimator), ``loss``, ``n_train`` (number of training points of the fits
        to the data: one number, or a list in the order of the fits if they differ) and, for
        bootstrap plans, ``no_information`` (a number for each model; with outer samples a list by
        ``sample``), which the bootstrap methods use.

    Raises
    ------
    LogError
        If data and plan do not match, if a fit fails (the error names model, repetition and fold,
        and the original exception is its cause), or if the loss or an estimator cannot be pickled,
        which a checkpoint requires.
    ImportError
        If scikit-learn, joblib or tqdm is missing; install them with ``cvstats[sklearn]``.

    Notes
    -----
    With two classes, the probability is that of the class that sorts last, and ``brier`` is its
    squared error. With more, there is a probability for each class, which is 0 for a class that is
    missing from the training sample.

    Arguments are not modified. Two runs give the same log, whatever ``n_jobs``, if the plan and
    each estimator have a seed (``random_state=0``). With ``random_state=None`` each fit draws new
    random numbers; a generator passed as ``random_state`` is copied, so that every fit starts from
    the same state. Each fit uses one thread, because the number of threads can change the last
    digits of a sum; use ``n_jobs`` for speed.

    The no-information rate is the mean loss over all pairs of a truth and a prediction of one
    sample. It takes O(n) time for ``squared_error``, ``zero_one`` and ``brier``, O(n log n) for
    ``absolute_error``, and up to O(n^2) for other losses of numbers.

    References
    ----------
    Pedregosa et al. (2011), Scikit-learn: machine learning in Python, JMLR 12, 2825-2830.
    Efron and Tibshirani (1997), JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007.

    Examples
    --------
    >>> import cvstats
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> plan = cvstats.plans.k_fold(10, rng=1)
    >>> log = cvstats.evaluate({"ridge": Ridge(alpha=0.1)}, X, y, plan=plan, progress=False)
    >>> log.index.names, log.shape
    (FrozenList(['fold', 'point']), (442, 1))
    >>> log.cvci.wald().round(0)
          estimate  lower  upper   se caution
    model
    ridge    2,990  2,634  3,345  182

    From estimators to a verdict in two lines:

    >>> log = cvstats.evaluate({"a": Ridge(0.1), "b": Ridge(10)}, X, y, cv=5, progress=False)
    >>> print(log.cvci.summary().sentences[0])
    a is better than b: its mean squared error is lower by 2,010 (95% interval 1,586 to 2,433,
    p < 0.001).
    """
    refuse_unknown(evaluate, options)
    refuse_columns(options)
    asked: dict[str, Any] = {**options, "folds": folds}
    check_choices(asked, find_choices(evaluate) | find_choices(LossKeywords))
    given = {name: value for name, value in asked.items() if value is not None}
    base, joblib, bars = import_tools()
    checked_flag("progress", progress)
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise LogError(f"n_jobs={n_jobs!r} is not a number of processes. Expected 1, 2, … or -1.")
    models, is_single = read_models(estimators)
    data = read_data(X, y, groups, point)
    bound = bind_cv(cv, plan, data, list(models.values()), groups)
    loss = default_loss(list(models.values()), y) if loss is None else loss
    if isinstance(loss, str) and not find_loss(loss)[1]:
        loss = str(find_loss(loss)[0])
    of_metric = isinstance(loss, str) and find_loss(loss)[0] in METRICS and loss != "accuracy"
    if of_metric or (isinstance(loss, Sequence) and not isinstance(loss, str)):
        spec = make_prediction_spec(loss, given, data.truth, bound)
    else:
        spec = make_pointwise_spec(loss, given, data.truth)
    table = LossTable.of_plan(bound, list(models), sum(spec.widths) or 1)
    score: Callable[..., Any] = fit_and_score
    keys = dict.fromkeys(models, "")
    if checkpoint is not None:
        score = partial(read_or_score, create_folder(checkpoint))
        run = fingerprint("the data", data.values) + fingerprint(f"loss={loss_name(loss)}", spec)
        keys = {
            name: run + fingerprint(f"model {name!r}", base.clone(estimator))
            for name, estimator in models.items()
        }

    def calls() -> Iterator[Any]:
        """Iterate over the fits, and for each over all models."""
        call = joblib.delayed(run_fit)
        for number, fit in enumerate(bound):
            tested = np.unique(np.concatenate([at.points for at in fit.evaluations]))
            rows = fit.train, tested, fit.apparent
            for name, estimator in models.items():
                yield call(score, number, name, keys[name], *rows, estimator, data.values, spec)

    bar = bars.tqdm(
        total=bound.n_fits * len(models), disable=not progress or sys.stderr is None,
        unit="fit", file=sys.stderr, desc=bound.plan.name,
    )  # fmt: skip
    with bar, run_calls(calls(), n_jobs) as results:
        for result in results:
            table.add(result)
            bar.update()
    facts = {"plan": str(bound.plan), "n_fits": bound.n_fits, **table.attrs()}
    if spec.responses:
        log = metric_log(table, data, spec, loss, given)
        found = log.iloc[:, 0] if is_single else log
        found.attrs = {**facts, **log.attrs}
        return found
    found = table.to_log(data, is_single)
    found.attrs = {**facts, **facts_of_loss(loss, spec.options)}
    return found


def import_tools() -> tuple[Any, Any, Any]:
    """Import the optional packages: sklearn.base, joblib, tqdm."""
    try:
        return import_module("sklearn.base"), import_module("joblib"), import_module("tqdm")
    except ImportError as error:
        raise ImportError(
            f"cvstats.evaluate needs scikit-learn, joblib and tqdm ({error}). Install it: "
            f"{install_command('sklearn')}"
        ) from error


def read_models(estimators: Any) -> tuple[dict[Hashable, Any], bool]:
    """Name the estimators; also return whether there is a single unnamed one."""
    clone = import_module("sklearn.base").clone
    if isinstance(estimators, (list, tuple)):
        raise LogError(
            f"estimators= is {describe_type(estimators)}. Expected one estimator, or several with "
            "their names: {'ridge': Ridge(), 'lasso': Lasso()}."
        )
    is_single = not isinstance(estimators, Mapping)
    models = {type(estimators).__name__: estimators} if is_single else dict(estimators)
    if not models:
        raise LogError("estimators= is empty. Expected at least one, as in {'ridge': Ridge()}.")
    for name, estimator in models.items():
        try:
            clone(estimator)
        except (TypeError, RuntimeError) as error:
            raise LogError(
                f"model {name!r} is {describe_type(estimator)}, which scikit-learn cannot clone: "
                f"{str(error).rstrip('.')}. Expected an estimator, as in {{'ridge': Ridge()}}."
            ) from error
        if not hasattr(estimator, "fit"):
            raise LogError(f"model {name!r} has no method fit. Expected a scikit-learn estimator.")
    return models, is_single


def are_all(kind: str, estimators: Sequence[Any]) -> bool:
    """Whether all estimators are classifiers, or all are regressors."""
    is_kind = getattr(import_module("sklearn.base"), f"is_{kind}")
    try:
        return all(map(is_kind, estimators))
    except AttributeError:  # not derived from scikit-learn's classes
        return False


def default_loss(estimators: Sequence[Any], y: Any) -> str:
    """Choose the default loss by the kind of the estimators, or of the target."""
    kinds = pd.api.types
    dtype = getattr(y, "dtype", None) or np.asarray(y).dtype
    labels = not kinds.is_numeric_dtype(dtype) or kinds.is_bool_dtype(dtype)
    if are_all("classifier", estimators) or (labels and not are_all("regressor", estimators)):
        return "zero_one"
    return "squared_error"


def bind_cv(
    cv: Any, plan: Plan | BoundPlan | None, data: Data, estimators: Sequence[Any], groups: Any
) -> BoundPlan:
    """Split as scikit-learn does, once for all estimators; without ``cv``, bind the plan."""
    if cv is not None and plan is not None:
        raise LogError("plan= and cv= were both given. Expected only one of them.")
    if cv is None or isinstance(cv, (Plan, BoundPlan)):
        return bind_plan(plan if cv is None else cv, data, groups)
    splits_data = hasattr(cv, "split") and not isinstance(cv, (str, type))
    if not (splits_data or is_pairs(cv) or (is_whole(cv) and cv >= 2)):
        raise LogError(
            f"Invalid cv={cv!r}. Expected 2 or more folds, such as cv=5, a splitter "
            f"of scikit-learn, or pairs of training and test rows."
        )
    if is_pairs(cv):
        splits = list(cv)
        return bind_splits(splits, len(data.truth), f"splits({len(splits)})")
    check_cv = import_module("sklearn.model_selection").check_cv
    given = None if data.source is None else data.source.to_numpy()
    try:
        # Random splitters are called once, so that all models are evaluated on the same splits.
        splitter = check_cv(cv, data.truth, classifier=are_all("classifier", estimators))
        with warnings.catch_warnings():  # intervals have a caution about ignored groups
            warnings.filterwarnings("ignore", "The groups parameter is ignored by")
            splits = list(splitter.split(data.values.X, data.truth, given))
    except (ValueError, TypeError, AttributeError) as error:
        raise LogError(f"cv={cv!r} cannot split these data: {error}") from error
    call = " ".join(repr(splitter).split())
    named = call.startswith(type(splitter).__name__) and len(call) < LONGEST_CALL
    return bind_splits(splits, len(data.truth), call if named else type(splitter).__name__ + "(…)")


def is_pairs(cv: Any) -> bool:
    """Whether ``cv`` may be pairs of training and test rows."""
    return isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split")


def bind_plan(plan: Plan | BoundPlan | None, data: Data, groups: Any) -> BoundPlan:
    """Bind the plan to the data, unless it is already bound."""
    n = len(data.truth)
    if plan is None:
        raise NotGiven(
            "cv is required: it determines training sets, test sets and the target of the "
            "interval. Expected any scikit-learn cv, such as cv=5, or a plan of cvstats, such "
            "as plan=cvstats.plans.k_fold(10, rng=1)."
        )
    if isinstance(plan, Plan):
        return plan.bind(n, data.truth, None if groups is None else data.source)
    if not isinstance(plan, BoundPlan):
        raise LogError(
            f"plan= is {describe_type(plan)}. Expected a plan of cvstats, such as "
            "cvstats.plans.k_fold(10, rng=1). Pass a scikit-learn cv as cv=."
        )
    if plan.points.n != n:
        raise LogError(f"the plan is bound to {plan.points.n:,} points, but X has {n:,} rows.")
    if data.source is None and "source" in plan.plan.levels:
        raise LogError(f"{plan.plan.name} requires sources. Pass groups=.")
    return plan


@contextmanager
def run_calls(calls: Iterable[Any], n_jobs: int | None) -> Iterator[Iterator[FitResult]]:
    """Run fits in any order, each on one thread, so that sums are equal.

    At the end workers are stopped, without joblib's warning about unfinished tasks.
    """
    joblib, threads = import_module("joblib"), import_module("threadpoolctl")
    with (
        threads.threadpool_limits(limits=1),  # of this process
        joblib.parallel_config("loky", inner_max_num_threads=1),
    ):
        results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
        try:
            yield results
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()


# --- input of estimators --------------------------------------------------------------------------


INDEXED_BY_ROW = ("csr", "csc", "lil")
"""Formats of sparse arrays that can be indexed by row."""


@dataclass(frozen=True, eq=False)
class Data:
    """The data of an experiment, with labels of points and sources.

    Parameters
    ----------
    values : Values
        The data themselves.
    point : Index
        A label for each point.
    source : Index, optional
        The source of each point.
    """

    values: Values
    point: pd.Index
    source: pd.Index | None

    @property
    def truth(self) -> NDArray[Any]:
        """The target as plain numbers or labels."""
        return self.values.truth


def read_data(X: Any, y: Any, groups: Any, point: Any) -> Data:
    """Check that data, target, groups and labels match.

    Raises
    ------
    LogError
        If their lengths or their indexes differ, a target is missing, or a label is a duplicate.
    """
    shape = getattr(X, "shape", None)
    arrow = type(X).__module__.startswith("pyarrow")  # scikit-learn cannot select its rows
    if arrow or isinstance(X, (str, Mapping)) or (shape is None and not isinstance(X, Sequence)):
        way = " Pass X.to_pandas()." if arrow else ""
        raise LogError(f"X is {describe_type(X)}. Expected an array or a DataFrame.{way}")
    if shape == ():
        raise LogError("X is a single number. Expected an array or a DataFrame.")
    n = int(shape[0]) if shape else len(X)
    if n == 0:
        raise LogError("X is empty. Expected a row for each point.")
    for name, values in {"y": y, "groups": groups, "point": point}.items():
        if values is not None:
            check_rows(name, values, X, n)
    truth = np.asarray(y)
    nullable = isinstance(y, pd.Series) and not isinstance(y.dtype, np.dtype)
    if nullable and pd.api.types.is_numeric_dtype(y.dtype):
        truth = y.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.flatnonzero(pd.isna(truth))
    if len(missing):
        rows = listed(f"row {row:,}" for row in missing)
        raise LogError(
            f"y is missing (NaN) in {rows}. Expected the true value of every point. Drop these "
            "rows from X and y."
        )
    labels: pd.Index = pd.RangeIndex(n)
    if point is not None or isinstance(X, (pd.DataFrame, pd.Series)):
        labels = label_index(X.index if point is None else point)
    source = None if groups is None else label_index(groups)
    check_labels(labels, source)
    if hasattr(X, "tocsr") and X.format not in INDEXED_BY_ROW:
        X = X.tocsr()
    return Data(Values(make_contiguous(X), make_contiguous(y), truth), labels, source)


def check_rows(name: str, values: Any, X: Any, n: int) -> None:
    """Raise unless there is one value for each row of X, with the same index if both have one."""
    shape = getattr(values, "shape", None)
    if shape is None:
        shape = (len(values),) if isinstance(values, Sized) else ()
    if not shape:
        raise LogError(
            f"{name} is {describe_type(values)}. Expected one value for each of {n:,} rows of X."
        )
    if tuple(shape) != (n,):
        way = f" Pass {name}.squeeze()." if tuple(shape) == (n, 1) else ""
        raise LogError(
            f"{name} has the shape {tuple(shape)}, but X has {n:,} rows. Expected one value for "
            f"each row of X.{way}"
        )
    pandas = isinstance(X, (pd.DataFrame, pd.Series)) and isinstance(values, pd.Series)
    if pandas and not X.index.equals(values.index):
        raise LogError(
            f"{name} and X have different indexes. Expected the same labels in the same order: "
            f"{name}.loc[X.index]. If only the order of the rows counts, pass {name}.to_numpy()."
        )


def label_index(labels: Any) -> pd.Index:
    """Make an index of labels, without expanding tuples."""
    one_dimensional = isinstance(labels, (pd.Series, np.ndarray, pd.Index))
    if not one_dimensional or isinstance(labels, pd.MultiIndex):
        labels = list(labels)
    index: pd.Index = pd.Index(labels, tupleize_cols=False).rename(None)
    return index


def check_labels(point: pd.Index, source: pd.Index | None) -> None:
    """Raise unless every point has a label that is unique within its source."""
    for name, labels in {"point": point, "groups": source}.items():
        if labels is not None and labels.hasnans:
            at = int(np.flatnonzero(labels.isna())[0])
            raise LogError(f"{name} has no label (NaN) in row {at:,}. Expected one for each row.")
    scope: list[Any] = [point] if source is None else [source, point]
    again = np.flatnonzero(
        pd.MultiIndex.from_arrays([pd.factorize(s)[0] for s in scope]).duplicated()
    )
    if len(again):
        label: Hashable = point[int(again[0])]
        raise LogError(
            f"row {again[0]:,} has the duplicate label {spelled(label)}. Expected a unique label "
            "for each point. Pass labels as point=, or number the rows: "
            f"X.reset_index(drop=True), y.reset_index(drop=True)."
        )


def make_contiguous(values: Any) -> Any:
    """Copy an array that is not contiguous, so that it is equal in every process."""
    if type(values) is np.ndarray and not (values.flags.c_contiguous or values.flags.f_contiguous):
        return np.ascontiguousarray(values)
    return values


# --- the losses of all fits -----------------------------------------------------------------------


POINT_LEVELS = ("source", "point", "count")
"""Levels that describe points, not fits."""


@dataclass(frozen=True, eq=False)
class LossTable:
    """A table with one row per evaluation in the order of the fits, and one column per model.

    Parameters
    ----------
    plan : BoundPlan
        The plan of the rows.
    models : list of str
        The names of the columns.
    starts : array of int, shape (fits + 1,)
        Where the rows of each fit start.
    points : array of int, shape (rows,)
        The rows of the data that are tested.
    levels : mapping of str to array of int, shape (rows,)
        The numbered levels, and ``count`` if the plan has it.
    train_sizes : list of int
        Number of training points of the fits to the data, without inner fits and resampled data
        sets.
    apparent : list of int
        The fits that are tested on their own sample.
    losses : array of float, shape (rows, models)
        NaN until a fit has been added.
    rates : mapping of (fit, model) to float
        The no-information rates of the apparent fits.
    """

    plan: BoundPlan
    models: list[Hashable]
    starts: IntArray
    points: IntArray
    levels: dict[str, IntArray]
    train_sizes: list[int]
    apparent: list[int]
    losses: FloatArray
    rates: dict[tuple[int, Hashable], float | None] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: BoundPlan, models: Sequence[Hashable], width: int) -> LossTable:
        """Make an empty table for a plan, with ``width`` numbers per point."""
        every: list[Evaluation] = []
        starts, train_sizes, apparent = [0], [], []
        for number, fit in enumerate(plan):
            every += fit.evaluations
            starts.append(starts[-1] + sum(len(at.points) for at in fit.evaluations))
            train_sizes += [len(fit.train)] if is_fit_to_data(fit) else []
            apparent += [number] if fit.apparent else []
        lengths = [len(at.points) for at in every]
        levels = {
            name: np.repeat(np.array([at.levels[name] for at in every]), lengths)
            for name in numbered_levels(plan)
        }
        if counts := [at.count for at in every if at.count is not None]:
            levels["count"] = np.concatenate(counts)
        points = np.concatenate([at.points for at in every])
        losses = np.full((len(points), len(models) * width), np.nan)
        return cls(
            plan, list(models), np.array(starts), points, levels, train_sizes, apparent, losses
        )

    def add(self, result: FitResult) -> None:
        """Enter the losses of a fit.

        Raises
        ------
        LogError
            If the fit failed; its exception is the cause.
        """
        if result.losses is None:
            failed = next(fit for number, fit in enumerate(self.plan) if number == result.fit)
            where = place(failed.evaluations[0].levels) or "its one split"
            raise LogError(
                f"model {result.model!r} failed at {where}: {type(result.failure).__name__}: "
                f"{result.failure}"
            ) from result.failure
        rows = slice(*self.starts[result.fit : result.fit + 2])
        _, at = np.unique(self.points[rows], return_inverse=True)
        width = self.losses.shape[1] // len(self.models)
        first = self.models.index(result.model) * width
        self.losses[rows, first : first + width] = result.losses.reshape(-1, width)[at]
        if result.no_information is not None:
            self.rates[result.fit, result.model] = result.no_information

    def to_log(self, data: Data, as_series: bool) -> pd.Series | pd.DataFrame:
        """Make the log: one column per model, or a Series for a single model."""
        index, order = self.index_and_order(data)
        values = self.losses[order]
        if as_series:
            return pd.Series(values[:, 0], index=index, name=self.models[0])
        columns = pd.Index(self.models, name="model", tupleize_cols=False)
        return pd.DataFrame(values, index=index, columns=columns)

    def index_and_order(self, data: Data) -> tuple[pd.Index, IntArray]:
        """Make the index of the log, and the order of its rows: by level, then as in the data."""
        names = numbered_levels(self.plan)
        order = np.lexsort([self.points, *(self.levels[name] for name in reversed(names))])
        if self.plan.plan.levels[0] == "source":  # fits have no other level
            order = np.arange(len(self.points))
        parts = {name: factorize_range(self.levels[name]) for name in names}
        if data.source is not None:
            parts["source"] = factorize_labels(data.source, self.points)
        parts["point"] = factorize_labels(data.point, self.points)
        if "count" in self.levels:
            parts["count"] = factorize_range(self.levels["count"])
        if len(parts) == 1:
            return data.point.take(self.points[order]).rename("point"), order
        labels: list[Any] = [names for names, _ in parts.values()]
        codes: list[Any] = [places[order] for _, places in parts.values()]
        return pd.MultiIndex(levels=labels, codes=codes, names=list(parts)), order

    def attrs(self) -> dict[Hashable | None, Any]:
        """Collect the training sizes and the no-information rates, if there are any."""
        found: dict[Hashable | None, Any] = {}
        if self.train_sizes:
            first, *others = self.train_sizes
            found["n_train"] = self.train_sizes if set(others) - {first} else first
        if self.apparent:
            rates = {name: [self.rates[fit, name] for fit in self.apparent] for name in self.models}
            resampled = "sample" in self.plan.plan.levels
            found["no_information"] = (
                rates if resampled else {name: each[0] for name, each in rates.items()}
            )
        return found


def numbered_levels(plan: BoundPlan) -> list[str]:
    """List the numbered levels of the fits."""
    return [name for name in plan.plan.levels if name not in POINT_LEVELS]


def is_fit_to_data(fit: Fit) -> bool:
    """Whether this is a fit to the data, neither an inner fit nor a fit to resampled data."""
    first = fit.evaluations[0]
    at = first.levels
    inner = at.get("sample", 0) != 0 or ("outer" in at and at["outer"] != at["fold"])
    return not inner and (first.count is None or fit.apparent)


def factorize_labels(labels: pd.Index, rows: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Factorize a level of labels."""
    if labels.is_unique:
        return labels, rows
    codes, names = pd.factorize(labels)
    return names, codes[rows]


def factorize_range(values: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Factorize a level of numbers that start near zero and have no gaps."""
    least = int(values.min())
    return pd.RangeIndex(least, int(values.max()) + 1), values - least


def split_losses(
    loss: Loss | Sequence[Loss], given: Mapping[str, Any]
) -> dict[str, tuple[Loss, dict[str, Any]]]:
    """Find the options of each loss, by its name; a single metric has all of them."""
    if not isinstance(loss, str):
        return split_options(loss if isinstance(loss, Sequence) else [loss], given)
    known, implied = find_loss(loss)
    return {loss: (known, {**given, **implied})}


def make_prediction_spec(
    loss: Loss | Sequence[Loss], given: Mapping[str, Any], truth: NDArray[Any], plan: BoundPlan
) -> ScoringSpec:
    """Find which predictions every fit must keep."""
    wanted = split_losses(loss, given).values()
    if "count" in plan.plan.levels:
        raise LogError(
            f"{plan.plan.name} draws bootstrap samples, whose methods average pointwise losses. "
            "Expected one pointwise loss, such as loss='zero_one'. For metrics use "
            "cvstats.plans.k_fold."
        )
    for one, own in wanted:
        metric = METRICS.get(one) if isinstance(one, str) else None
        if metric is None:
            checked_loss(one, LossOptions.of(own))
        elif "reference" in metric.takes or metric.assumes:
            what = "events of censored times" if metric.assumes else "predictions of a reference"
            raise LogError(
                f"loss={one!r} requires the {what}. Use another metric, or save the predictions "
                f"and use cvstats.losses(…, {'event' if metric.assumes else 'reference'}=…)."
            )
    responses, ranked = find_responses(wanted)
    of_classes = [str(one) for one, own in wanted if needs_classes(one, own)]
    if of_classes:
        refuse_decimals(of_classes[0], truth)
    classes = tuple(np.unique(truth).tolist()) if of_classes else ()
    for one, own in wanted:
        refuse_several(one, own, len(classes))
    ranks = ranked and len(classes) == 2
    response, loss = next(iter(responses.items()))
    return ScoringSpec(loss, response, classes, LossOptions(), responses, ranks)


def metric_log(
    found: LossTable,
    data: Data,
    spec: ScoringSpec,
    loss: Loss | Sequence[Loss],
    given: Mapping[str, Any],
) -> pd.DataFrame:
    """Convert the predictions of all fits to a log of the requested losses."""
    index, order = found.index_and_order(data)
    values, truth = found.losses[order], data.truth[found.points[order]]
    table: dict[Hashable, Any] = {"truth": truth}
    columns: dict[str, dict[Hashable, Any]] = {}
    at = 0
    for model in found.models:
        for response, width in zip(spec.responses, spec.widths, strict=True):
            names = [f"{response} {at + j}" for j in range(width)]
            for j, name in enumerate(names):
                column = values[:, at + j]
                if response == "predict" and spec.classes:
                    column = np.array(spec.classes)[column.astype(np.int64)]
                table[name] = column
            columns.setdefault(response, {})[model] = names if width > 1 else names[0]
            at += width
    frame = pd.DataFrame(table, index=index)
    logs = {}
    for name, (one, own) in split_losses(loss, given).items():
        response = name_response(one, own)
        own |= name_classes(one, response, spec, own)
        if len(found.train_sizes) == 1 and isinstance(one, str) and one in METRICS:
            own.setdefault("folds", "pool")  # one test set, whose sources are not folds
        made: Any = losses(frame, "truth", columns[response], one, **own)
        logs[name] = made.rename_axis(columns="model")
    log: pd.DataFrame = logs[loss] if isinstance(loss, str) else join_metrics(logs)
    return log


def name_classes(
    loss: Loss, response: str, spec: ScoringSpec, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the option that names the classes, or the positive one of two."""
    if response != "predict":
        several = len(spec.classes) > 2
        return {"classes": spec.classes} if several else {"positive": spec.classes[1]}
    metric = METRICS.get(loss) if isinstance(loss, str) and loss != "accuracy" else None
    binary = len(spec.classes) == 2 and own.get("average", "binary") == "binary"
    if metric is not None and metric.uses("average") and binary:
        return {"positive": spec.classes[1]}
    return {}


# --- one fit --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Values:
    """The arrays that a fit needs.

    Parameters
    ----------
    X : array, sparse array, DataFrame or list
        A row for each point.
    y : array or Series
        The target as passed, to train on.
    truth : array, shape (n,)
        The target as plain numbers or labels, to compute losses with.
    """

    X: Any
    y: Any
    truth: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ScoringSpec:
    """How every fit is scored.

    Parameters
    ----------
    loss : str or callable
        As for `cvstats.losses`.
    response : str
        The prediction method of the model.
    classes : tuple
        The sorted class labels; empty if ``predict`` is called.
    options : LossOptions
        The other arguments of the loss.
    responses : mapping
        For metrics, the prediction methods whose results are kept, and a loss that requires each;
        the loss is then not computed.
    ranks : bool
        Whether only the order of the probabilities matters, so that ``decision_function`` serves
        a model without ``predict_proba``.
    """

    loss: Loss
    response: str
    classes: tuple[Hashable, ...]
    options: LossOptions
    responses: Mapping[str, Loss] = field(default_factory=dict)
    ranks: bool = False

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of values per point of each response."""
        several = len(self.classes) if len(self.classes) > 2 else 1
        return tuple(several if name == "predict_proba" else 1 for name in self.responses)


@dataclass(frozen=True, eq=False)
class FitResult:
    """The losses of one fit of one model.

    Parameters
    ----------
    fit : int
        Number of the fit in the plan.
    model : str
        Name of the model.
    losses : array of float, shape (points,) or (points, numbers), optional
        A loss for each distinct test point, in ascending order of rows, or its predictions; None if
        the fit failed.
    no_information : float, optional
        If the fit is tested on its own sample: the mean loss over all pairs of a truth and a
        prediction.
    failure : Exception, optional
        The exception, if the fit failed.
    """

    fit: int
    model: Hashable
    losses: FloatArray | None = None
    no_information: float | None = None
    failure: BaseException | None = None


def needs_classes(loss: Loss, given: Mapping[str, Any]) -> bool:
    """Whether a loss compares labels, or uses probabilities or scores of classes."""
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    of_labels = loss == "zero_one" or (metric is not None and metric.reads == "labels")
    return of_labels or name_response(loss, given) != "predict"


def refuse_decimals(loss: str, truth: NDArray[Any]) -> None:
    """Reject a target of decimal numbers for a loss of classes."""
    if truth.dtype.kind == "f" and np.any(truth % 1 != 0):
        raise LogError(
            f"loss={loss!r} is for classes, but y looks continuous. Expected labels, or another "
            "loss, such as squared_error."
        )


def refuse_several(loss: Loss, given: Mapping[str, Any], classes: int) -> None:
    """Reject more than two classes for a loss of two."""
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    response = name_response(loss, given)
    of_two = response == "decision_function" or given.get("threshold") is not None
    if metric is not None and response != "predict":
        of_two = not metric.uses("classes")
    if of_two and classes > 2:
        raise LogError(f"loss={loss!r} is for two classes, but y has {classes}.")


def make_pointwise_spec(loss: Loss, given: Mapping[str, Any], truth: NDArray[Any]) -> ScoringSpec:
    """Check the loss against the target, and find which predictions it uses."""
    if loss == "accuracy":  # its mean is the same for pooled and averaged folds
        loss, given = "zero_one", {name: given[name] for name in given if name != "folds"}
    options = LossOptions.of(given)
    checked_loss(loss, options)
    if more := [name for name in given if not hasattr(options, name)]:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points and does not use {more[0]}=. Omit it."
        )
    response = name_response(loss, given)
    if needs_classes(loss, given):
        refuse_decimals(str(loss), truth)
    if response == "predict":
        return ScoringSpec(loss, response, (), options)
    classes = tuple(np.unique(truth).tolist())
    if len(classes) < 2:
        raise LogError(f"loss={loss!r} is for classes, but y has only {classes[0]!r}.")
    if len(classes) == 2:
        return ScoringSpec(loss, response, classes, replace(options, positive=classes[1]))
    refuse_several(loss, given, len(classes))
    return ScoringSpec(loss, response, classes, replace(options, classes=classes))


def run_fit(
    score: Callable[..., tuple[FloatArray, float | None]],
    number: int,
    model: Hashable,
    *arguments: Any,
) -> FitResult:
    """Call `fit_and_score` or its cached version, and return an exception as a result.

    If it were raised in a worker process, the exception would lose its cause. An exception that
    cannot be pickled is replaced by one with its text.
    """
    try:
        return FitResult(number, model, *score(*arguments))
    except Exception as error:
        failure: BaseException = error
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:
        words = f"{type(failure).__name__}: {failure}"
        failure = RuntimeError(words).with_traceback(failure.__traceback__)
    return FitResult(number, model, failure=failure)


def fit_and_score(
    key: str,
    train: IntArray,
    points: IntArray,
    apparent: bool,
    estimator: Any,
    data: Values,
    spec: ScoringSpec,
) -> tuple[FloatArray, float | None]:
    """Train a clone of the estimator and compute its loss at each of the points.

    Parameters
    ----------
    key : str
        Identifies estimator, data and scoring in a cache; not used here.
    train, points : array of int
        Rows to train on, including repeats, and distinct rows to test on, in ascending order.
    apparent : bool
        Whether the fit is tested on its own sample.
    estimator, data, spec
        The estimator to clone, the data, and the scoring.

    Returns
    -------
    losses : array of float, shape (points,)
    no_information : float or None
        The no-information rate of an apparent fit.
    """
    clone = import_module("sklearn.base").clone
    fitted = clone(estimator).fit(take_rows(data.X, train), take_rows(data.y, train))
    if spec.responses:
        return collect_predictions(fitted, take_rows(data.X, points), spec), None
    predicted = predict(fitted, take_rows(data.X, points), spec)
    truth = data.truth[points]
    losses = pointwise(truth, predicted, spec.loss, spec.options)
    if not apparent:
        return losses, None
    again = np.searchsorted(points, train)  # each point as often as in the sample
    return losses, no_information(truth[again], predicted[again], spec.loss, spec.options)


def take_rows(values: Any, rows: IntArray) -> Any:
    """Select rows, including repeats, of data of any kind."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "shape"):
        return values[rows]
    return [values[row] for row in rows.tolist()]


def collect_predictions(fitted: Any, X: Any, spec: ScoringSpec) -> FloatArray:
    """Compute all predictions that the metrics need, as numbers: labels as codes."""
    columns: list[NDArray[Any]] = []
    for response, loss in spec.responses.items():
        found = predict(fitted, X, replace(spec, response=response, loss=loss))
        if response == "predict" and spec.classes:
            found = np.searchsorted(np.array(spec.classes), found)
        columns.append(found.reshape(len(found), -1))
    return np.column_stack(columns).astype(np.float64)


def predict(fitted: Any, X: Any, spec: ScoringSpec) -> NDArray[Any]:
    """Compute the predictions that the loss uses."""
    response = choose_response(fitted, spec.response, spec.loss, spec.ranks)
    found = np.asarray(getattr(fitted, response)(X))
    if response == "predict_proba":
        # A class that was not in the training sample has probability 0.
        columns = np.zeros((len(found), len(spec.classes)))
        for at, label in enumerate(np.asarray(fitted.classes_).tolist()):
            columns[:, spec.classes.index(label)] = found[:, at]
        return columns[:, 1] if len(spec.classes) == 2 else columns
    if found.ndim == 2 and found.shape[1] == 1:
        return found[:, 0]
    if found.ndim != 1:
        raise LogError(
            f"{response} returned the shape {found.shape}. Expected one number for each point."
        )
    return found


def no_information(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> float:
    """Average the loss over all pairs of a truth and a prediction (Efron and Tibshirani 1997, 28).

    Squared error and Brier score take one step per point, absolute error also a sort. Other losses
    take one step per distinct truth and prediction, which are few for classes.
    """
    if loss == "squared_error":
        return average_squared_error(truth, prediction)
    if loss == "brier" and prediction.ndim == 1:
        return average_squared_error(truth == options.positive, prediction)
    if loss == "brier":
        pairs = zip(options.classes or (), prediction.T, strict=True)
        return float(sum(average_squared_error(truth == label, column) for label, column in pairs))
    if loss == "absolute_error":
        return average_absolute_error(truth.astype(np.float64), prediction.astype(np.float64))
    values, counts = np.unique(truth, return_counts=True)
    rates = [
        np.mean(pointwise(np.full(len(truth), value), prediction, loss, options))
        for value in values
    ]
    return float(np.average(rates, weights=counts))


def average_squared_error(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """``var(y) + var(f) + (mean(y) - mean(f))^2``, the variances with divisor n."""
    y, f = truth.astype(np.float64), prediction.astype(np.float64)
    return float(np.var(y) + np.var(f) + (np.mean(y) - np.mean(f)) ** 2)


def average_absolute_error(truth: FloatArray, prediction: FloatArray) -> float:
    """Mean distance of all pairs, from the sorted predictions and their running sums."""
    origin = np.mean(prediction)  # keeps the precision of running sums
    f = np.sort(prediction - origin)
    y = truth - origin
    n = len(f)
    below = np.searchsorted(f, y)
    running = np.concatenate([[0.0], np.cumsum(f)])
    total = y * below - running[below] + (running[n] - running[below]) - y * (n - below)
    return float(np.mean(total) / n)


# --- finished fits on disk ------------------------------------------------------------------------


DIGEST = 32
"""Size of a SHA-256 hash in bytes."""
PLAIN = (str, bytes, int, float, complex, type(None))
"""Types of constants that are described by their text."""


Scored = tuple[FloatArray, float | None]
"""The result of `fit_and_score`: losses, and the no-information rate of an apparent fit."""


def read_or_score(
    folder: Path, key: str, train: IntArray, points: IntArray, apparent: bool, *question: Any
) -> Scored:
    """Call `fit_and_score`, unless its result is cached in a folder.

    A result is a file of numbers preceded by their SHA-256 hash. Reading one cannot execute code,
    and a file that is damaged or belongs to another fit is computed again.
    """
    about = repr((key, len(train), apparent)).encode()
    rows = (np.asarray(part, dtype="<i8").tobytes() for part in (train, points))
    path = folder / f"{sha256(about + b''.join(rows)).hexdigest()}.fit"
    found = read_result(path)
    if found is None:
        found = fit_and_score(key, train, points, apparent, *question)
        write_result(path, *found)
    return found


def hash_result(path: Path, numbers: bytes) -> bytes:
    """Hash the numbers of a file together with its name, which identifies the fit."""
    return sha256(path.stem.encode() + numbers).digest()


def read_result(path: Path) -> Scored | None:
    """Read the result of a fit; None if it does not exist or is damaged."""
    if not path.exists():
        return None
    whole = path.read_bytes()
    digest, numbers = whole[:DIGEST], whole[DIGEST:]
    if digest != hash_result(path, numbers):
        return None
    has_rate, rate, *_ = values = np.frombuffer(numbers, dtype="<f8")
    return values[2:].astype(np.float64), float(rate) if has_rate else None


def write_result(path: Path, losses: FloatArray, rate: float | None) -> None:
    """Write the result of a fit atomically."""
    values = np.concatenate([[rate is not None, rate or 0.0], losses.reshape(-1)])
    numbers = values.astype("<f8").tobytes()
    new = path.with_suffix(f".{os.getpid()}")
    new.write_bytes(hash_result(path, numbers) + numbers)
    os.replace(new, path)


def create_folder(folder: str | PathLike[str]) -> Path:
    """Create the folder of the results of fits, unless it exists.

    Raises
    ------
    LogError
        If the path is not a folder, or is not writable.
    """
    expected = "Expected the path of a folder, such as checkpoint='my_run'."
    if not isinstance(folder, (str, PathLike)):
        raise LogError(f"checkpoint= is {describe_type(folder)}. {expected}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise LogError(f"checkpoint={str(path)!r} is not a folder. {expected}")
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError("permission denied")
    except OSError as error:
        raise LogError(
            f"checkpoint={str(path)!r} cannot be written: {error.strerror or error}. {expected}"
        ) from error
    return path.resolve()


def fingerprint(name: str, value: Any) -> str:
    """Hash a value and the code of its classes and functions, equal in all processes.

    Raises
    ------
    LogError
        If the value cannot be pickled.
    """
    try:
        code = CodeCollector()
        code.dump(value)
        # Bytecode differs between versions of Python, and losses may between versions of cvstats.
        versions = sys.version_info[:2], version("cvstats")
        return str(import_module("joblib").hash([value, sorted(code.found), versions]))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise LogError(
            f"{name} cannot be pickled, which checkpoint= needs: {error}. Define functions and "
            "classes by def and class at the top level of a module, or omit checkpoint=."
        ) from error


class CodeCollector(pickle.Pickler):
    """Collects the code of every class and function that an object refers to.

    Pickles, and therefore `joblib.hash`, contain only the name of a class, so the losses of an
    estimator that was edited since would be reused.

    Attributes
    ----------
    found : list of (str, str)
        Name and version of the package if it is installed, otherwise bytecode and constants.
    """

    def __init__(self) -> None:
        # Only names are needed: arrays are skipped, not copied.
        super().__init__(BytesIO(), protocol=5, buffer_callback=lambda _: None)
        self.found: list[tuple[str, str]] = []
        self.seen: set[int] = set()  # avoids endless recursion

    def persistent_id(self, thing: Any) -> None:
        """Inspect every object that is pickled, and pickle it as usual."""
        if isinstance(thing, (type, FunctionType)):
            self.add(thing)

    def add(self, thing: type | FunctionType) -> None:
        """Add a class or function, and those that its code refers to."""
        if id(thing) in self.seen:
            return
        self.seen.add(id(thing))
        text = installed_version(str(thing.__module__).partition(".")[0])
        if text is None:
            text = repr([self.describe(part) for part in list_parts(thing)])
        self.found.append((f"{thing.__module__}.{thing.__qualname__}", text))

    def describe(self, part: Any) -> Any:
        """Describe a part of a class or function, independent of the process."""
        if isinstance(part, (type, FunctionType)):
            self.add(part)
            return part.__qualname__
        if isinstance(part, tuple):
            return [self.describe(item) for item in part]
        if isinstance(part, frozenset):
            return sorted(map(repr, part))
        if isinstance(part, CodeType):
            return [part.co_code.hex(), part.co_names, self.describe(part.co_consts)]
        if hasattr(part, "__wrapped__"):  # such as by functools.lru_cache
            return self.describe(part.__wrapped__)
        return part if isinstance(part, PLAIN) else type(part).__qualname__


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None for code that the user may edit."""
    if package in sys.stdlib_module_names:
        return sys.version
    module = sys.modules.get(package)
    folders = Path(getattr(module, "__file__", None) or "").parts
    if not {"site-packages", "dist-packages"} & set(folders):
        return None
    return str(getattr(module, "__version__", ""))


def list_parts(thing: type | FunctionType) -> Iterator[Any]:
    """Yield the parts of a class or function, and what its code refers to."""
    if isinstance(thing, type):
        yield from thing.__bases__
        for name, part in vars(thing).items():
            part = getattr(part, "__func__", part)  # of a class method or static method
            if isinstance(part, property):
                yield name, (part.fget, part.fset)
            elif isinstance(part, (type, FunctionType)) or not name.startswith("__"):
                yield name, part
        return
    yield from (thing.__code__, thing.__defaults__, tuple((thing.__kwdefaults__ or {}).items()))
    yield from (cell.cell_contents for cell in thing.__closure__ or ())
    names = list_names(thing.__code__)
    known = [thing.__globals__[name] for name in names if name in thing.__globals__]
    modules = [vars(part) for part in known if isinstance(part, ModuleType)]
    yield from known
    yield from (module[name] for module in modules for name in names if name in module)


def list_names(code: CodeType) -> list[str]:
    """List the names in some code, including the functions that it defines."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [*code.co_names, *(name for part in inner for name in list_names(part))]
