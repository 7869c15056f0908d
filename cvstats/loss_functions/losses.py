"""`losses`: convert saved predictions to a loss log."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.core.types import FloatArray
from cvstats.errors import (
    LogError,
    describe_type,
    is_number,
    listed,
    nearest,
    nearest_option,
    plainly,
    read_names,
)
from cvstats.large.frames import attrs_of_frame, concat_metrics, map_predictions
from cvstats.log.metadata import put_attrs
from cvstats.log.read import is_dask_frame
from cvstats.log.tables import from_arrow, is_arrow, set_levels
from cvstats.loss_functions.metric_logs import MetricRequest, mean_loss, metric_log, plain_labels
from cvstats.loss_functions.pointwise import (
    CALIBRATION_ERRORS,
    LOSSES,
    LossOptions,
    Values,
    checked_loss,
    facts_of_loss,
    list_users,
    loss_name,
    map_columns,
    pointwise,
    stack_columns,
    unknown_loss,
)
from cvstats.metrics import METRICS
from cvstats.metrics.confusion import F1_OF_SETS
from cvstats.metrics.numbers import metric_of, name_function
from cvstats.options import check_choices, find_choices

Columns: TypeAlias = (
    Hashable | Sequence[Hashable] | Mapping[Hashable, Hashable | Sequence[Hashable]]
)
Models: TypeAlias = (
    list[Hashable] | list[str] | tuple[Hashable, ...] | Mapping[str, Hashable | Sequence[Hashable]]
)
"""Columns of several models."""
Loss: TypeAlias = str | Callable[[Any, Any], Any]
Predictions = TypeVar("Predictions", pd.DataFrame, xr.Dataset)


class LossKeywords(TypedDict, total=False):
    """The options of individual losses and metrics."""

    quantile: float | None
    threshold: float | Sequence[float] | None
    baselines: bool | None
    clip: float | None
    max_fpr: float | None
    delta: float | None
    level: float | Sequence[float] | None
    fair: bool | None
    distribution: Literal["normal"] | None
    member: Hashable
    strata: Hashable
    shares: Mapping[Hashable, float] | None
    labels: Sequence[Hashable] | None
    average: Literal["binary", "macro", "weighted", "micro"] | None
    multi_class: Literal["ovr", "ovo"] | None
    beta: float | None
    weights: Literal["linear", "quadratic"] | None
    zero_division: float | None
    ddof: int | None
    class_shares: Literal["cell", "log"] | None
    event: Hashable
    at: float | Sequence[float] | None
    reference: Hashable
    base: Loss | None


class AllKeywords(LossKeywords, total=False):
    """All options of `losses` that are passed by keyword."""

    classes: Sequence[Hashable] | None
    positive: Hashable
    metric: Callable[..., float] | None
    higher_is_better: bool
    folds: Literal["average", "pool"] | None
    by: Hashable | Sequence[Hashable] | None
    weight: Hashable


@overload
def losses(
    predictions: pd.DataFrame,
    truth: Hashable | list[Hashable] = ...,
    *,
    prediction: str,
    loss: Loss | Sequence[Loss] = ...,
    **options: Unpack[AllKeywords],
) -> pd.Series: ...
@overload
def losses(
    predictions: Predictions,
    truth: Hashable | list[Hashable] = ...,
    *,
    prediction: Models,
    loss: Loss | Sequence[Loss] = ...,
    **options: Unpack[AllKeywords],
) -> Predictions: ...
@overload
def losses(
    predictions: pd.DataFrame,
    truth: Hashable | list[Hashable] = ...,
    prediction: Columns = ...,
    loss: Loss | Sequence[Loss] = ...,
    **options: Unpack[AllKeywords],
) -> pd.Series | pd.DataFrame: ...
@overload
def losses(
    predictions: xr.Dataset,
    truth: Hashable | list[Hashable] = ...,
    *,
    prediction: str,
    loss: Loss | Sequence[Loss] = ...,
    **options: Unpack[AllKeywords],
) -> xr.DataArray: ...
@overload
def losses(
    predictions: xr.Dataset,
    truth: Hashable | list[Hashable] = ...,
    prediction: Columns = ...,
    loss: Loss | Sequence[Loss] = ...,
    **options: Unpack[AllKeywords],
) -> xr.DataArray | xr.Dataset: ...
def losses(
    predictions: pd.DataFrame | xr.Dataset,
    truth: Hashable | list[Hashable] = "y_true",
    prediction: Columns = "y_pred",
    loss: Loss | Sequence[Loss] = "squared_error",
    *,
    classes: Sequence[Hashable] | None = None,
    positive: Hashable = None,
    metric: Callable[..., float] | None = None,
    higher_is_better: bool = True,
    folds: Literal["average", "pool"] | None = None,
    by: Hashable | Sequence[Hashable] | None = None,
    weight: Hashable = None,
    **options: Unpack[LossKeywords],
) -> Any:
    """Compute a loss log from saved predictions.

    Parameters
    ----------
    predictions : DataFrame or Dataset
        Truth and predictions as columns (variables), with the levels of a loss log. Columns with
        the names of levels are added to the index of a frame, and such variables to the
        coordinates of a dataset. A dask frame stays lazy, and its levels remain columns. A chunked
        dataset also stays lazy.
    truth : hashable or list, optional
        The column with the true values. For the micro F1 of points with several labels each, a
        list of 0/1 columns, one per label. For ``energy_score`` and functions of vectors a list
        of numeric columns, one per component.
    prediction : hashable, sequence or mapping, optional
        The column with the predictions; for several models a list of columns, or a mapping from
        model names to columns. With ``classes`` each model has a list of columns, the class
        probabilities; with a truth of several columns, one per label. Losses of forecasts, and
        functions, can also read several columns of a model: limits, quantiles or members, as in
        ``{"ets": ["lower", "upper"]}``. The default is the models recorded in the attrs of a
        frame by `cvstats.read_predictions` or `cvstats.datasets.load`; for ``log_loss``,
        ``brier`` and ``auc`` their class probabilities.
    loss : str, callable or list, optional
        A pointwise loss: ``squared_error``, ``absolute_error``, ``percentage_error`` (a fraction:
        0.1 is 10%), ``squared_log_error``, ``poisson_deviance``, ``gamma_deviance``, ``huber``,
        ``pinball``, ``zero_one``, ``log_loss`` (nats), ``brier``, ``hinge``, ``net_benefit`` (a
        score); of probabilistic forecasts ``interval_score`` (limits), ``weighted_interval_score``
        (the median, then the limits of each level) and its parts ``overprediction``,
        ``underprediction`` and ``dispersion``, ``crps`` (members), ``energy_score`` (members of
        each component), ``coverage`` (limits);
        or a function of two arrays that returns one loss per point; the second array has a column
        for each column of the model. Or a metric, which is not a mean of such losses: of labels
        ``accuracy``, ``precision``, ``recall``, ``specificity``, ``npv``, ``f1``, ``fbeta``,
        ``jaccard``, ``balanced_accuracy``, ``g_mean``, ``matthews``, ``kappa``; of scores
        ``auc``, ``gini``, ``average_precision``, ``partial_auc``; of probabilities
        ``calibration_slope``, ``calibration_intercept``, ``observed_expected``, which have a
        target value (1, 0 and 1), so neither direction is better; of numbers ``rmse``, ``r2``,
        ``wmape``, ``pearson``, ``concordance_correlation``, ``spearman``, ``kendall`` (tau-b),
        ``kendall_a``, ``ordered_gini``, ``concordance`` (Harrell's C index), ``somers_d``; of
        censored times ``brier_at``, ``integrated_brier``, ``auc_at`` and ``uno`` (Uno's C index);
        against a reference ``skill`` and ``relative_error``. A list gives a log with the level
        (dimension) ``metric``.
    classes : sequence, optional
        For ``log_loss``, ``brier`` and ``auc`` with a probability for each class: the labels, in
        the order of the columns.
    positive : hashable, optional
        For one probability or score, and for metrics of one class: its label, if the truth is not
        0/1.
    metric : callable, optional
        Instead of ``loss``, a custom metric: ``(truth, prediction, weight) -> float``, or without
        weights; a parameter ``event`` receives the column of ``event=``. It is called about twice
        per point.
    higher_is_better : bool, optional
        For ``metric``, whether larger values are better.
    folds : {"average", "pool"}, optional
        For metrics, whether values are computed per fold and averaged, or computed once over all
        folds of a repetition. By default averaged for scores, ranks and custom functions, and for
        nested or resampled data (level ``outer`` or ``sample``), and pooled for metrics of labels
        and numbers.
    by : hashable or sequence, optional
        For metrics, levels (columns, coordinates) whose labels each get a value of the metric.
    weight : hashable, optional
        The column with the weights of the points; only their ratios matter.
    **options
        The options of the loss or metric, listed below. Unused options raise an error.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        For one column of predictions a Series (DataArray), else a column (variable) for each
        model, with the levels of the predictions. The attrs name the loss: ``loss``, for an array
        also ``long_name``; for ``brier`` also whether it is ``binary``, i.e. (p - y)^2, or
        ``multi-class``, i.e. the sum over classes. For a metric they record the metric, how folds
        were combined, and the ``cells``.

    Other Parameters
    ----------------
    quantile : float, optional
        For ``pinball``, the level of the predicted quantile.
    threshold : float, optional
        For ``zero_one`` and metrics of labels with predicted probabilities: the decision
        threshold for the positive class. For ``net_benefit``, the treatment threshold; a list
        gives the net benefit at each, in the level ``metric``.
    clip : float, optional
        For ``log_loss``, the lower bound applied to the predicted probability of the observed
        class: with ``clip=1e-6`` no loss is above 13.8. By default a probability of 0 has an
        infinite loss. For the calibration slope and intercept, probabilities of 0 and 1 are
        replaced by ``clip`` and ``1 - clip``.
    delta : float, optional
        For ``huber``, the error above which the loss is linear, in units of the truth.
    level : float or sequence, optional
        The nominal coverage of a central interval, such as 0.9; several for
        ``weighted_interval_score`` and its parts.
    fair : bool, optional
        For ``crps`` and ``energy_score``, whether members are a sample from the forecast
        distribution, whose score is then estimated without bias from pairs of different members.
        By default the members are the forecast itself.
    distribution : {"normal"}, optional
        For ``crps`` of two columns, the mean and the standard deviation.
    member : hashable, optional
        For a Dataset, the dimension of the ensemble members. In a frame each member is a column.
    strata : hashable, optional
        With ``weight`` or alone, the column of the strata from which the points were sampled.
    shares : mapping, optional
        The known share of each stratum, to which weights are adjusted (post-stratification).
    labels : sequence, optional
        For metrics of labels, all classes; by default those that occur in the truth or in the
        predictions of any model.
    average : {"binary", "macro", "weighted", "micro"}, optional
        How the values of several classes are combined; ``binary`` uses one class.
    multi_class : {"ovr", "ovo"}, optional
        For ``auc`` with ``classes``: each class against the rest, or all pairs of classes. With
        ``average="weighted"``, classes or pairs are weighted by their numbers of points.
    beta : float, optional
        For ``fbeta``, the weight of recall relative to precision.
    weights : {"linear", "quadratic"}, optional
        For ``kappa`` with ordered classes, the weights of disagreements.
    zero_division : {0, 1}, optional
        The value of precision, F1 and similar metrics when they are 0/0, which otherwise raises
        an error.
    ddof : {0, 1}, optional
        For ``auc``, whether to correct for the degrees of freedom of each class (the default).
    baselines : bool, optional
        For ``net_benefit``, whether to add the models ``treat all`` and ``treat none``.
    max_fpr : float, optional
        For ``partial_auc``, the largest false positive rate: the area under the ROC curve up to
        there, at most ``max_fpr`` itself.
    class_shares : {"cell", "log"}, optional
        For ``auc``, whether the influence uses the shares of the classes in the cell (the
        default), or those in the whole log, as the R package cvAUC does.
    event : hashable, optional
        For metrics of censored times, the column that is 1 for event times and 0 for censored
        times. For ``concordance``, ``somers_d`` and ``uno`` the prediction is larger for later
        times: pass the negative of a risk. ``auc_at``, ``brier_at`` and ``integrated_brier`` read
        the risk: the probability that the event occurs by that time.
    at : float or sequence, optional
        For ``brier_at`` and ``auc_at``, the time by which the event is predicted; for
        ``integrated_brier`` the times of the columns; for ``uno`` the truncation time.
    reference : hashable, optional
        For ``skill`` and ``relative_error``, the column of the predictions to compare with.
    base : str or callable, optional
        For ``skill`` and ``relative_error``, the loss of points; ``squared_error`` by default.

    Raises
    ------
    LogError
        If a column is missing, a probability is invalid, the truth does not match the loss, or a
        metric is undefined in a cell.

    Notes
    -----
    If the truth or a prediction is missing, the loss is NaN; nothing is dropped. If a model has
    several columns, such as the members of an ensemble, the loss is NaN if any of them is missing.

    A metric T of a cell (a repetition and fold) is represented by pseudo-losses: T plus the
    influence of each point, oriented so that lower is better (1 minus a score in [0, 1], or the
    negative of another score). Their mean over the cell is exactly the metric, and their variance
    gives the variance of T by the delta method. They may lie outside the range of the metric.

    Metrics of ranks (``auc``, ``average_precision``, ``spearman``, ``kendall``, ``concordance``
    and their relatives) sort the n points of each cell: their time grows as n log n. The time of
    every other loss and metric is proportional to n.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, JASA 102(477), 359-378,
    doi:10.1198/016214506000001437. Bracher et al. (2021), Evaluating epidemic forecasts in an
    interval format, PLoS Computational Biology 17(2), doi:10.1371/journal.pcbi.1008618. LeDell,
    Petersen and van der Laan (2015), Computationally efficient confidence intervals for
    cross-validated area under the ROC curve estimates, Electronic Journal of Statistics 9(1),
    1583-1607, doi:10.1214/15-EJS1035.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="brier")
    >>> float(losses["naive_bayes"].mean().round(5))
    0.17308
    >>> auc = cvstats.losses(log, prediction=["naive_bayes"], loss="auc", folds="pool")
    >>> auc.attrs["loss"], float(auc["naive_bayes"].mean().round(5))
    ('1 - auc', 0.35199)
    """
    refuse_unknown(losses, options)
    check_choices({**options, "folds": folds}, find_choices(losses) | find_choices(LossKeywords))
    if is_arrow(predictions):
        predictions = from_arrow(predictions)
    if not (is_dask_frame(predictions) or isinstance(predictions, (pd.DataFrame, xr.Dataset))):
        raise LogError(
            f"{describe_type(predictions)} has no named predictions. Expected a DataFrame or a "
            "Dataset, and the names of its columns: losses(frame, truth='y_true', "
            "prediction='y_pred'). For arrays use cvstats.read_log(predictions, y=y, cv=cv, "
            "loss=…)."
        )
    if classes is not None and is_one_name(classes):
        raise LogError(f"classes={classes!r} is not a list. Expected the label of each column.")
    check_positive(positive)
    levels: Any = by
    given = {
        "classes": None if classes is None else plain_labels(classes),
        "by": None if by is None else [by] if is_one_name(by) else list(levels),
        "positive": positive, "folds": folds, "weight": weight, **options,
    }  # fmt: skip
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    ask = partial(losses, predictions, truth, prediction)
    wanted: Any = loss
    loss = wanted.tolist() if isinstance(wanted, (np.ndarray, pd.Index)) else wanted
    if metric is not None and loss != "squared_error":  # the default
        raise LogError(
            "loss= and metric= were both given. Expected one of them: the name of a loss or "
            "metric, or a function that computes a metric."
        )
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        parts = split_options(loss, asked).items()
        return join_metrics({name: ask(one, **own) for name, (one, own) in parts})
    loss, asked = resolve_loss(loss, asked)
    if loss == "net_benefit" and not is_one_name(asked.get("threshold")):
        each = split_thresholds(list(asked["threshold"]), asked).items()
        return join_metrics({name: ask("net_benefit", **own) for name, own in each})
    return make_log(predictions, truth, prediction, loss, metric, higher_is_better, asked)


def make_log(
    predictions: Any, truth: Any, prediction: Any, loss: Any, metric: Any, higher_is_better: bool,
    asked: dict[str, Any],
) -> Any:  # fmt: skip
    """Compute the log of one loss or metric, for the models in some columns."""
    baselines = asked.pop("baselines", None) if loss == "net_benefit" else None
    named_one = is_one_name(prediction) and prediction != PREDICTION
    if isinstance(predictions, pd.DataFrame):
        prediction, asked = choose_recorded_models(predictions, prediction, loss, asked)
    member = asked.pop("member", None)
    request = metric_request(loss, metric, higher_is_better, asked, truth)
    truths = list(truth) if isinstance(truth, list) else [truth]
    sets = isinstance(truth, list) and request is not None
    several = reads_several(loss, metric)
    alone = several and member is None and metric is None and not callable(loss)
    chosen = find_columns_of_models(
        prediction, truths if sets else asked.get("classes"), several, alone, loss
    )
    if member is not None:
        if not several:
            raise LogError(
                f"loss={loss_name(loss)!r} reads one column of predictions per model, and does not "
                "use member=, which applies only to loss='crps' or 'energy_score', or a function."
            )
        predictions, chosen = split_members(predictions, chosen, member)
    elif loss in OF_MEMBERS and isinstance(predictions, xr.Dataset):
        refuse_unnamed_members(predictions, truths, chosen, loss)
    if baselines:
        predictions, chosen = add_baselines(predictions, chosen)
    needed = [*truths, *(name for names in chosen.values() for name in names)]
    further = [] if request is None else [*request.further.values(), *request.by]
    inside = list(predictions.index.names) if isinstance(predictions, pd.DataFrame) else []
    require_columns(predictions, needed)
    if request is not None:
        for option, name in [*request.further.items(), *(("by", name) for name in request.by)]:
            if not (is_name(name) and name in inside):
                require_columns(predictions, [name], f"{option}=")
        if is_dask_frame(predictions):
            raise LogError(
                f"this is a dask frame, but {request.metric.words} needs whole cells. Expected a "
                "frame in memory: predictions.compute()."
            )
        predictions = set_levels(predictions, [*needed, *further])
        values, facts = metric_log(predictions, truths, chosen, request)
    else:
        options = LossOptions.of(asked)
        plain = isinstance(loss, str) or not isinstance(predictions, xr.Dataset)
        facts = facts_of_loss(loss if plain else "loss", options)
        if is_dask_frame(predictions):
            ask = partial(losses, truth=truth, prediction=prediction, loss=loss, **asked)
            return map_predictions(predictions, ask, needed, [*map(str, chosen)], facts)
        predictions = set_levels(predictions, needed)
        of_points = "zero_one" if loss == "accuracy" else loss
        work = partial(compute_pointwise, of_points, options, len(truths))
        values = {
            model: map_columns(predictions, [*columns, *truths], work)
            for model, columns in chosen.items()
        }
    unnamed = not isinstance(prediction, Mapping) and (
        is_one_name(prediction) or sets or alone or "classes" in asked
    )
    return combine_models(predictions, values, facts, not baselines and (named_one or unnamed))


BASELINES = {"treat all": 1.0, "treat none": 0.0}
"""Models that treat all or none, and their predicted probability."""


def add_baselines(
    predictions: Any, chosen: Mapping[Hashable, list[Hashable]]
) -> tuple[Any, dict[Hashable, list[Hashable]]]:
    """Add models that treat all and none, for each prediction of the first model."""
    first = next(iter(chosen.values()))[0]
    require_columns(predictions, [first])
    column = predictions[first]
    added = {name: column.where(column.isnull(), p) for name, p in BASELINES.items()}
    return predictions.assign(**added), {**chosen, **{name: [name] for name in BASELINES}}


def split_thresholds(cuts: list[Any], asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Find the options of the net benefit at each of several thresholds, by its name."""
    if not cuts or len(set(cuts)) < len(cuts):
        raise LogError(f"threshold={cuts!r} contains a value twice. Expected each threshold once.")
    names = [f"net_benefit at {cut:g}" if is_number(cut) else str(cut) for cut in cuts]
    return {name: {**asked, "threshold": cut} for name, cut in zip(names, cuts, strict=True)}


OF_COLUMNS = ("weight", "strata", "event", "reference")
"""Options of losses that name columns besides truth and predictions."""


INSTEAD = {
    "classes": " For a table with a column of probabilities for each class, use "
    "cvstats.losses(frame, prediction={'model': […]}, classes=[…]), for a frame with levels as its "
    "index.",
    "missing": " A missing prediction has a missing loss. Pass missing='drop' to the function that "
    "uses the losses, as in losses.cvci.interval(missing='drop').",
    "scoring": " Pass the name of the score as loss=, as in loss='roc_auc'.",
    "positive": " Of two classes, the one that sorts last is the positive one. To make another one "
    "positive, pass y == label as y.",
}
"""What to pass instead of options of other functions."""


def refuse_unknown(function: Callable[..., Any], options: Iterable[str]) -> None:
    """Refuse an option that no loss, no metric and no parameter of the function has."""
    known = [*LossKeywords.__annotations__, *signature(function).parameters]
    for name in options:
        if name in known:
            continue
        meant = read_names("option").get(plainly(name), name)
        hint = (meant not in known and INSTEAD.get(meant)) or nearest_option(name, known)
        if function is losses and name in (*LEVELS, "model"):
            hint = (
                f" Levels are the index of the frame: predictions.set_index(['fold', 'point']). "
                f"For columns of other names use cvstats.read_log(predictions, {name}=…)."
            )
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}.{hint}")


def refuse_columns(options: Iterable[str]) -> None:
    """Refuse an option that requires additional columns of the predictions."""
    for name in options:
        if name in (*OF_COLUMNS, "shares", "member"):
            raise LogError(
                f"{name}= requires an additional column of the predictions. Use "
                f"cvstats.losses(frame, {name}=…), for a frame with levels as its index."
            )


def resolve_loss(loss: Loss, asked: Mapping[str, Any]) -> tuple[Loss, dict[str, Any]]:
    """Resolve the name of a loss, and add its implied options to the given ones."""
    found: Loss
    found, implied = find_loss(loss)
    for option, value in implied.items():
        if asked.get(option, value) != value:
            raise LogError(
                f"loss={loss!r} implies {option}={value!r}, but {option}={asked[option]!r} was "
                f"given. Use loss={found!r} with {option}=."
            )
    own = {**asked, **implied}
    if "base" in own:
        own["base"] = find_loss(own["base"])[0]
    return found, own


ERRORS = re.compile(r"(?:error|loss|deviance|(?:^|_)[rs]?m[as]p?e)$", re.IGNORECASE)
"""Names of functions for which smaller values are usually better."""

PREDICTION = "y_pred"
"""The default column of predictions."""
OF_CLASSES = ("log_loss", "brier", "auc", "gini")
"""Losses and metrics that can use the probabilities of all classes."""


def choose_recorded_models(
    predictions: pd.DataFrame, prediction: Any, loss: Loss, asked: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the models, or their class probabilities, recorded in the attrs of a frame.

    The name of a model means its probabilities if the loss uses them.
    """
    metadata, columns = predictions.attrs, set(predictions.columns)
    chances: Any = metadata.get("probabilities", {})
    models = metadata.get("models")
    every = isinstance(prediction, str) and prediction == PREDICTION
    if chances and not every:
        if len(chances) == 1 and isinstance(models, list):
            chances = chances | dict.fromkeys(models, *chances.values())
        named = prediction
        if not isinstance(prediction, Mapping):
            names = [prediction] if is_one_name(prediction) else prediction
            named = {name: name for name in names if is_name(name)}
        if not all(is_name(column) and column in chances for column in named.values()):
            return prediction, asked
        chances = {name: chances[column] for name, column in named.items()}
    known = bool(chances) and all(columns.issuperset(names) for names in chances.values())
    if known and metadata.get("classes") and "classes" not in asked:
        found, asked = choose_columns({}, chances, metadata["classes"], loss, asked)
        if found:
            return (next(iter(found.values())) if every and len(found) == 1 else found), asked
    if not every:
        return prediction, asked
    if isinstance(models, list) and models and columns.issuperset(models):
        return (models[0] if models == [PREDICTION] else models), asked
    return PREDICTION, asked


def choose_columns(
    models: Mapping[Hashable, Any], chances: Mapping[Hashable, Sequence[Any]],
    classes: Sequence[Hashable], loss: Loss, asked: Mapping[str, Any],
) -> tuple[dict[Hashable, Any], dict[str, Any]]:  # fmt: skip
    """Choose the predictions of each model, or the class probabilities if the loss uses them.

    A metric of one probability uses that of ``positive=``, or of the last of two classes.
    """
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    scored = metric is not None and metric.reads in OF_CHANCES
    if not chances or not (scored or "threshold" in asked or loss in OF_CLASSES):
        return dict(models), dict(asked)
    positive = asked.get("positive", classes[-1] if scored and len(classes) == 2 else None)
    if positive is None and loss in OF_CLASSES:
        return dict(chances), {**asked, "classes": list(classes)}
    if positive is None:
        raise LogError(
            f"{'threshold=' if 'threshold' in asked else f'loss={loss!r}'} applies to the "
            f"probability of one class, but there are {listed(map(repr, classes))}. Pass "
            f"positive={classes[-1]!r} with it."
        )
    labels = [str(label) for label in classes]
    if str(positive) not in labels:
        raise LogError(
            f"positive={positive!r} is not a class. Expected one of {listed(map(repr, classes))}."
        )
    at = labels.index(str(positive))
    only = {model: names[at] for model, names in chances.items()}
    return only, {**asked, "positive": classes[at]}


RESPONSES = {"probabilities": "predict_proba", "margins": "decision_function"}
"""The prediction method of losses that do not use ``predict``, by their inputs."""

OF_CHANCES = ("scores", "probabilities")
"""The inputs of metrics that use ``predict_proba``."""


def name_response(loss: Loss, given: Mapping[str, Any]) -> str:
    """Name the prediction method that a loss uses."""
    if not isinstance(loss, str):
        return "predict"
    of_chances = loss in METRICS and METRICS[loss].reads in OF_CHANCES
    if of_chances or "threshold" in given:
        return "predict_proba"
    return RESPONSES.get(LOSSES[loss].reads, "predict") if loss in LOSSES else "predict"


def find_responses(
    wanted: Iterable[tuple[Loss, Mapping[str, Any]]],
) -> tuple[dict[str, Loss], bool]:
    """Name the prediction methods that losses use, and a loss that requires each.

    Also return whether only the order of the probabilities matters, as for AUC.
    """

    def ranks(loss: Loss | None) -> bool:
        return isinstance(loss, str) and loss in METRICS and METRICS[loss].reads == "scores"

    found: dict[str, Loss] = {}
    for loss, given in wanted:
        response = name_response(loss, given)
        if response not in found or ranks(found[response]):
            found[response] = loss
    return found, ranks(found.get("predict_proba"))


def choose_response(fitted: Any, response: str, loss: Loss | None, ranks: bool) -> str:
    """Choose the prediction method of a model; to rank points, scores replace probabilities.

    Raises
    ------
    LogError
        If the model does not have the method that the loss requires.
    """
    if hasattr(fitted, response):
        return response
    has = f"no {response}"
    if ranks and response == "predict_proba":
        if hasattr(fitted, "decision_function"):
            return "decision_function"
        has = f"neither {response} nor decision_function"
    raise LogError(
        f"{describe_type(fitted)} has {has}, which loss={loss!r} requires. Expected a classifier "
        "that has it; for others use zero_one."
    )


def refuse_labels(
    frame: pd.DataFrame, truth: Any, columns: Mapping[Hashable, Any], loss: Loss,
    given: Mapping[str, Any],
) -> None:  # fmt: skip
    """Refuse labels if the loss needs probabilities: the AUC of labels is a different number."""
    response = name_response(loss, given)
    if response == "predict":
        return
    needed = "probabilities" if response == "predict_proba" else "scores"
    for model, name in columns.items():
        kind = pd.api.types.infer_dtype(frame[name]) if isinstance(name, str) else ""
        if kind in ("integer", "boolean") and frame[name].isin(frame[truth]).all():
            raise LogError(
                f"loss={loss!r} requires {needed}, but the predictions"
                f"{'' if model is None else f' of {model!r}'} are labels. Save the {needed} (in "
                f"scikit-learn, the output of {response}). If these are {needed}, convert them to "
                "float first."
            )


def metric_request(
    loss: Any, metric: Any, higher_is_better: bool, asked: Mapping[str, Any], truth: Any
) -> MetricRequest | None:
    """Find the requested metric; None for a pointwise loss."""
    for asked_for in (loss, metric):
        name = getattr(asked_for, "__name__", asked_for)
        if isinstance(name, str) and name.lower() in CALIBRATION_ERRORS:
            raise unknown_loss(name)
    sampled = "weight" in asked or "strata" in asked
    if isinstance(truth, list) and loss == "f1" and metric is None:
        return MetricRequest(F1_OF_SETS, asked)
    vectors = loss == "energy_score" or callable(loss)
    if isinstance(truth, list) and (sampled or metric is not None or not vectors):
        weighted = " with weight= or strata=" if vectors and sampled else ""
        raise LogError(
            f"truth={truth!r} is a list of columns, but loss={loss_name(loss)!r}{weighted} reads "
            "one. Lists are for points with several labels, loss='f1' with average='micro'; for "
            "vectors, loss='energy_score'; and for custom functions."
        )
    if metric is not None:
        if not callable(metric):
            name = metric if isinstance(metric, str) else "auc"
            raise LogError(
                f"metric={metric!r} is not a function. Expected (truth, prediction, weight) -> "
                f"float. Pass a metric by name as loss={name!r}."
            )
        called = name_function(metric)
        if higher_is_better and ERRORS.search(called) and not called.startswith("neg"):
            raise LogError(
                f"{called} has the name of an error, for which smaller values are better. Pass "
                "higher_is_better=False; if larger values are better, rename the function."
            )
        better: Literal["larger", "smaller"] = "larger" if higher_is_better else "smaller"
        return MetricRequest(metric_of(metric, better), asked)
    if isinstance(loss, str) and loss in METRICS and (loss != "accuracy" or sampled):
        refuse_times(loss, METRICS[loss].uses, asked)
        return MetricRequest(METRICS[loss], asked)
    options = LossOptions.of(asked)
    checked_loss("zero_one" if loss == "accuracy" else loss, options)
    refuse_times(loss, lambda option: False, asked)
    if sampled:
        return MetricRequest(mean_loss(loss, options), {"base": loss, **asked})
    ignored = ("folds",) if loss == "accuracy" else ()  # its mean is the same for both
    if more := [name for name in asked if not (hasattr(options, name) or name in ignored)]:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points and does not use {more[0]}=, which "
            "applies to metrics such as loss='f1'. Omit it."
        )
    return None


OF_TIMES = {"brier": "brier_at", "auc": "auc_at", "concordance": "uno"}
"""The losses and metrics for censored times, by the name of their uncensored versions."""


def refuse_times(loss: Any, uses: Callable[[str], bool], asked: Mapping[str, Any]) -> None:
    """Refuse options of censored times, and name the loss that has them."""
    for option in ("at", "event"):
        if option in asked and not uses(option):
            known = OF_TIMES.get(loss) if isinstance(loss, str) else None
            names = " or ".join(map(repr, OF_TIMES.values()))
            expected = f"Expected loss={known!r}" if known else f"It applies to loss={names}"
            raise LogError(
                f"loss={loss_name(loss)!r} does not use {option}=, which is for censored times. "
                f"{expected}, with event= and at=."
            )


def combine_models(
    predictions: pd.DataFrame | xr.Dataset,
    values: dict[Hashable, Any],
    named: Mapping[Any, Any],
    one: bool,
) -> Any:
    """Combine the losses of all models in one container, with their facts."""
    table: Any
    if isinstance(predictions, xr.Dataset):
        facts = {str(name): fact for name, fact in named.items()}
        for array in values.values():
            array.attrs = {**facts, "long_name": named["loss"]}
        table = xr.Dataset(values, attrs=facts)
    else:
        table = pd.DataFrame(values, copy=False)
        table.attrs = dict(named)
    if not one:
        return table
    ((name, only),) = values.items()
    only = only.rename(name)
    if isinstance(predictions, pd.DataFrame):
        only.attrs = dict(named)
    return only


def split_options(
    wanted: Sequence[Loss], asked: Mapping[str, Any]
) -> dict[str, tuple[Loss, dict[str, Any]]]:
    """Find the options of each of several losses, by its name; refuse duplicates, unused ones."""
    names = [loss_name(loss) for loss in wanted]
    if not names or len(set(names)) < len(names):
        raise LogError(f"loss={names!r} contains a loss twice. Expected each loss once.")
    parts: dict[str, tuple[Loss, dict[str, Any]]] = {}
    for name, loss in zip(names, wanted, strict=True):
        known, implied = find_loss(loss)
        every = {**asked, **implied}
        own = {option: asked[option] for option in asked if uses_option(known, option, every)}
        parts[name] = known, own | implied
    if unused := [o for o in asked if not any(o in own for _, own in parts.values())]:
        raise LogError(f"none of loss={names!r} uses {unused[0]}=. Omit it.")
    return parts


def join_metrics(logs: Mapping[str, Any]) -> Any:
    """Combine logs of one loss each, in the level (dimension) ``metric``."""
    names = list(logs)
    lazy = is_dask_frame(logs[names[0]])
    facts = {
        "loss": ", ".join(names), "metric": names,
        "metrics": {n: attrs_of_frame(log) if lazy else dict(log.attrs) for n, log in logs.items()},
    }  # fmt: skip
    if lazy:
        return concat_metrics(logs, facts)
    if isinstance(logs[names[0]], (xr.DataArray, xr.Dataset)):
        whole = xr.concat(list(logs.values()), pd.Index(names, name="metric"), combine_attrs="drop")
    else:
        whole = pd.concat(logs, names=["metric"])
    put_attrs(whole, facts)
    return whole


def uses_option(loss: Loss, option: str, asked: Mapping[str, Any]) -> bool:
    """Whether a loss or a metric uses one of the given options."""
    if option == "member":
        return reads_several(loss, None)
    if isinstance(loss, str) and loss in METRICS and loss != "accuracy":
        metric = METRICS[loss]
        if option == "positive" and metric.reads == "labels" and "threshold" not in asked:
            return "average" in metric.takes and asked.get("average") in (None, "binary")
        return metric.uses(option)
    of_points = "zero_one" if loss == "accuracy" else loss
    if of_points == "zero_one" and option == "positive":
        return "threshold" in asked  # by default labels are compared
    of_function = callable(of_points)
    taken = ("classes",) if of_function else LOSSES[of_points].takes if of_points in LOSSES else ()
    return option in (*taken, "weight", "strata", "shares")


def require_columns(
    predictions: pd.DataFrame | xr.Dataset,
    names: Iterable[Hashable],
    options: str = "truth= and prediction=",
) -> None:
    """Reject a name that matches no column, or several."""
    dataset = isinstance(predictions, xr.Dataset)
    have = list(predictions.variables if dataset else predictions.columns)
    wanted: list[Any] = list(names)
    named = list(filter(is_name, wanted))
    others = [name for name in filter(is_name, have) if name not in named]
    for name in wanted:
        refuse_values(name)
        if not is_name(name) or name not in have:
            raise LogError(
                f"no column {name!r}. Expected {options} to be among "
                f"{listed(map(repr, predictions))}.{nearest(name, others)}"
            )
        if have.count(name) > 1:
            raise LogError(
                f"several columns are named {name!r}. Expected unique names. Rename them."
            )


def refuse_values(name: object) -> None:
    """Reject the values of a column, which are not printed, instead of its name."""
    if isinstance(name, (np.ndarray, pd.Series, pd.DataFrame, xr.DataArray)):
        raise LogError(
            f"{describe_type(name)} is not the name of a column. Expected names: make the "
            "values a column, as in frame.assign(w=values), and pass its name: 'w'."
        )


def check_positive(positive: object) -> None:
    """Reject the labels of a column, which are not printed, instead of one label."""
    if getattr(positive, "ndim", 0):
        raise LogError(
            f"positive= is {describe_type(positive)}. Expected one label of the truth, such as 1."
        )


def is_one_name(name: Any) -> bool:
    """Whether this is the name of one column rather than a collection of names."""
    text = isinstance(name, (str, bytes))
    return text or not isinstance(name, Iterable) or getattr(name, "ndim", 1) == 0


def is_name(name: object) -> bool:
    """Whether a value can be the name of a column: not a list, and not pandas' NA."""
    return isinstance(name, Hashable) and name is not pd.NA


def reads_several(loss: Any, metric: Any) -> bool:
    """Whether a loss or a metric may read several columns of predictions for a model."""
    if callable(loss) or callable(metric):
        return True
    if loss in LOSSES:
        return LOSSES[loss].reads == "forecasts"
    return loss in METRICS and METRICS[loss].several


def find_columns_of_models(
    prediction: Any, classes: Sequence[Hashable] | None, several: bool = False, alone: bool = False,
    loss: Any = None,
) -> dict[Hashable, list[Hashable]]:  # fmt: skip
    """Find the columns of each model; with ``alone`` a list has the columns of one model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if is_one_name(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif (classes is not None or alone) and not is_one_name(prediction):
        chosen = {"model": list(prediction)}
    else:
        if getattr(getattr(prediction, "dtype", None), "kind", "") == "f":
            refuse_values(prediction)
        names = [prediction] if is_one_name(prediction) else list(prediction)
        chosen = {name: [name] for name in names if is_name(name)}
        if len(chosen) < len(names):
            for name in (prediction, *names):
                if getattr(name, "ndim", 0):
                    refuse_values(name)
            raise LogError(
                f"prediction={prediction!r} contains an invalid or duplicated name. Expected "
                "names of different columns."
            )
    if not all([chosen, *chosen.values()]):
        raise LogError("prediction= is empty. Expected the predictions of at least one model.")
    expected = 1 if classes is None else len(classes)
    for name, columns in chosen.items():
        if len(columns) != expected and (classes is not None or not several):
            words = f"model {name!r} has {len(columns)} columns of predictions. Expected {expected}"
            if classes is not None:
                raise LogError(f"{words}, one for each of {list(classes)!r}.")
            used = loss is None or loss_name(loss) in list_users("classes")
            of = "" if used else " for a loss of probabilities, such as 'log_loss'"
            way = "" if used else f" Compute {loss_name(loss)} of other columns in another call."
            raise LogError(f"{words}, or classes= with the label of each{of}.{way}")
    return chosen


OF_MEMBERS = ("crps", "energy_score")
"""Losses of the members of an ensemble."""


def refuse_unnamed_members(
    predictions: xr.Dataset,
    truths: Sequence[Hashable],
    chosen: Mapping[Hashable, list[Hashable]],
    loss: str,
) -> None:
    """Refuse an ensemble whose members would each be a forecast of a single number."""
    names = [name for columns in chosen.values() for name in columns]
    require_columns(predictions, [*truths, *names])
    known = {"model"}.union(*(predictions[name].dims for name in truths))
    further = [dim for dim in predictions[names[0]].dims if dim not in known]
    if further and all(len(columns) == len(truths) for columns in chosen.values()):
        raise LogError(
            f"{names[0]!r} has the dimension {further[0]!r}, which the truth does not have. "
            f"Expected one forecast of each point or, for loss={loss!r}, the members of an "
            f"ensemble: pass member={further[0]!r}."
        )


def split_members(
    predictions: pd.DataFrame | xr.Dataset,
    chosen: Mapping[Hashable, list[Hashable]],
    member: Hashable,
) -> tuple[xr.Dataset, dict[Hashable, list[Hashable]]]:
    """Convert each ensemble member to a separate variable."""
    if not isinstance(predictions, xr.Dataset):
        raise LogError(
            f"member= requires a Dataset, but this is {describe_type(predictions)}. Expected a "
            f"column for each member: prediction={{'model': ['member_1', 'member_2', …]}}. "
            "Convert members in rows to columns: predictions['y_pred'].unstack(level)."
        )
    require_columns(predictions, [name for names in chosen.values() for name in names])
    found: dict[Hashable, Any] = {}
    columns: dict[Hashable, list[Hashable]] = {}
    for model, names in chosen.items():
        columns[model] = []
        for name in names:
            if member not in predictions[name].dims:
                raise LogError(
                    f"{name!r} has no dimension {member!r}. Expected member= to be one of its "
                    f"dimensions: {listed(map(repr, predictions[name].dims))}."
                )
            array = predictions[name].drop_vars([member], errors="ignore")
            for at in range(array.sizes[member]):
                if array.chunks is None and array.isel({member: at}).isnull().all():
                    continue  # padding: this model has fewer members
                columns[model].append(own := f"{name}[{member}={at}]")
                found[own] = array.isel({member: at})
    return predictions.drop_dims([member]).assign(found), columns


def compute_pointwise(loss: Any, options: LossOptions, truths: int, *columns: Values) -> FloatArray:
    """Compute pointwise losses from the columns of predictions, followed by those of the truth."""
    guesses, own = columns[:-truths], columns[-truths:]
    truth = own[0] if truths == 1 else stack_columns(own)
    guess = stack_columns(guesses) if options.classes or len(guesses) > 1 else guesses[0]
    return pointwise(truth, guess, loss, options)


# --- names in other software ----------------------------------------------------------------------


IMPLIED: dict[str, tuple[str, str]] = {
    **{name: ("average", name) for name in ("macro", "micro", "weighted")},
    **{name: ("multi_class", name) for name in ("ovr", "ovo")},
}
"""The options implied by suffixes of a name."""
QUADRATIC = ("quadratic-kappa", "quadratic-weighted-kappa", "qwk")


def find_loss(loss: Any) -> tuple[Any, dict[str, Any]]:
    """Return the loss or metric for a name, and the options it implies.

    Unknown names are returned unchanged.

    Examples
    --------
    >>> find_loss("neg_mean_squared_error"), find_loss("f1_macro")
    (('squared_error', {}), ('f1', {'average': 'macro'}))
    """
    if not isinstance(loss, str) or loss in LOSSES or loss in METRICS:
        return loss, {}
    name = plainly(loss).removeprefix("neg-")
    if name in QUADRATIC:
        return "kappa", {"weights": "quadratic"}
    implied = {}
    while (last := name.rpartition("-")[2]) in IMPLIED and last != name:
        option, value = IMPLIED[last]
        implied[option] = value
        name = name.removesuffix(f"-{last}")
    own = {plainly(word): word for word in (*LOSSES, *METRICS)} | read_names("loss")
    for spelling in (name, name.removesuffix("-score"), name.removesuffix("-loss")):
        known = own.get(spelling, "")
        taken = METRICS[known].options if known in METRICS else ()
        if known and all(option in taken for option in implied):
            return known, implied
    return loss, {}


def is_loss(loss: object) -> bool:
    """Whether this is a loss or a metric rather than the name of a column."""
    found = find_loss(loss)[0]
    return callable(found) or (isinstance(found, str) and (found in LOSSES or found in METRICS))
