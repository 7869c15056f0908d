"""`losses`: logged predictions in, a loss log out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, listed, nearest
from cvstats.large.lazy import mapped
from cvstats.log.columns import set_level_index
from cvstats.log.read import is_dask_frame
from cvstats.loss_functions.metric_logs import (
    ACCURACY,
    MetricRequest,
    flat_columns,
    mean_loss,
    metric_log,
    takes_option,
)
from cvstats.loss_functions.pointwise import (
    TAKES,
    LossOptions,
    Values,
    brier_kind,
    checked_loss,
    loss_name,
    pointwise,
)
from cvstats.metrics import F1_OF_SETS, METRICS, metric_of
from cvstats.options import check_choices, find_choices

Columns: TypeAlias = (
    Hashable | Sequence[Hashable] | Mapping[Hashable, Hashable | Sequence[Hashable]]
)
Loss: TypeAlias = str | Callable[[Any, Any], Any]


def losses(
    predictions: pd.DataFrame | xr.Dataset,
    truth: Hashable | list[Hashable] = "y_true",
    prediction: Columns = "y_pred",
    loss: Loss | Sequence[Loss] = "squared_error",
    *,
    quantile: float | None = None,
    threshold: float | None = None,
    classes: Sequence[Hashable] | None = None,
    positive: Hashable = None,
    clip: float | None = None,
    metric: Callable[..., float] | None = None,
    higher_is_better: bool = True,
    folds: Literal["average", "pool"] | None = None,
    by: Hashable | Sequence[Hashable] | None = None,
    weight: Hashable = None,
    strata: Hashable = None,
    shares: Mapping[Hashable, float] | None = None,
    labels: Sequence[Hashable] | None = None,
    average: Literal["binary", "macro", "weighted", "micro"] | None = None,
    multi_class: Literal["ovr", "ovo"] | None = None,
    beta: float | None = None,
    weights: Literal["linear", "quadratic"] | None = None,
    zero_division: float | None = None,
    ddof: int | None = None,
    class_shares: Literal["cell", "log"] | None = None,
    event: Hashable = None,
    reference: Hashable = None,
    base: Loss | None = None,
) -> Any:
    """Turn logged predictions into a loss log.

    Parameters
    ----------
    predictions : DataFrame or Dataset
        Truth and predictions as columns (variables), with the levels of a loss log. Where the
        index of a frame names no level, columns with the names of levels become its index. A
        frame of dask stays lazy; its levels are columns, and stay so. A dataset in chunks stays
        lazy, too.
    truth : hashable or list, optional
        The column of the truth. For the micro F1 of points that have several labels each, a list
        of columns of 0 and 1, one for each label.
    prediction : hashable, sequence or mapping, optional
        The column of predictions; for several models a list of columns, or a mapping from
        the model's name to its column. With ``classes`` each model has a list of columns, the
        probabilities of the classes; with a truth of several columns, one for each label. Without
        it, the models that the attrs of a frame note, as `cvstats.read_predictions` and
        `cvstats.datasets.load` do; for ``log_loss``, ``brier`` and ``auc`` the probabilities of
        their classes.
    loss : str, callable or list, optional
        A loss of points: ``squared_error``, ``absolute_error``, ``percentage_error`` (a share:
        0.1 is 10%), ``pinball``, ``zero_one``, ``log_loss`` (nats), ``brier``, ``hinge``; or a
        function of two arrays that returns one loss for each point. Or a metric, which is not a
        mean of such losses: of labels ``accuracy``, ``precision``, ``recall``, ``specificity``,
        ``npv``, ``f1``, ``fbeta``, ``jaccard``, ``balanced_accuracy``, ``g_mean``, ``matthews``,
        ``kappa``; of scores ``auc``, ``gini``, ``average_precision``; of numbers ``rmse``, ``r2``,
        ``wmape``, ``pearson``, ``concordance_correlation``, ``spearman``, ``kendall`` (tau-b),
        ``kendall_a``, ``ordered_gini``, ``concordance`` (C index), ``somers_d``; against a
        reference ``skill`` and ``relative_error``. A list gives a log with the level (dimension)
        ``metric``.
    quantile : float, optional
        For ``pinball``, the level of the predicted quantile.
    threshold : float, optional
        For ``zero_one`` and metrics of labels, where probabilities are predicted: from where on
        the positive class is predicted.
    classes : sequence, optional
        For ``log_loss``, ``brier`` and ``auc`` of a probability for each class: the labels, in
        the order of the columns.
    positive : hashable, optional
        For one probability or score, and for metrics of one class: its label, if the truth is not
        0 and 1.
    clip : float, optional
        For ``log_loss``, the least probability that counts as given to what happened: with
        ``clip=1e-6`` no loss is above 13.8. Without it a probability of 0 has an infinite loss.
    metric : callable, optional
        Instead of ``loss``, a metric of one's own: ``(truth, prediction, weight) -> float``, or
        without weights. It is called about twice for each point.
    higher_is_better : bool, optional
        For ``metric``, whether larger values are better.
    folds : {"average", "pool"}, optional
        For metrics, whether each fold has its own value, and these are averaged, or all folds of
        a repetition have one. By default averaged for scores, ranks and functions of your own,
        pooled for metrics of labels and numbers.
    by : hashable or sequence, optional
        For metrics, levels (columns, coordinates) for each of whose labels there is a value.
    weight : hashable, optional
        The column of weights of the points, of which only ratios matter.
    strata : hashable, optional
        The column of the strata from which the points were sampled.
    shares : mapping, optional
        The known share of each stratum, to which weights are adjusted (post-stratification).
    labels : sequence, optional
        For metrics of labels, all classes; by default those that occur in the truth or in the
        predictions of any model.
    average : {"binary", "macro", "weighted", "micro"}, optional
        How a metric of one class becomes one of several classes.
    multi_class : {"ovr", "ovo"}, optional
        For ``auc`` with ``classes``: each class against the rest, or against each other one.
    beta : float, optional
        For ``fbeta``, how many times as important recall is.
    weights : {"linear", "quadratic"}, optional
        For ``kappa`` of ordered classes, how disagreement counts.
    zero_division : {0, 1}, optional
        The value of precision, F1 and the like where they are 0/0, which is otherwise an error.
    ddof : {0, 1}, optional
        For ``auc``, whether the degrees of freedom of each class are counted (the default).
    class_shares : {"cell", "log"}, optional
        For ``auc``, whether the influence takes the shares of the classes in the cell (the
        default), or those in the whole log, as the R package cvAUC does.
    event : hashable, optional
        For ``concordance``, the column that is 1 where the time is that of an event, 0 where it
        is censored. The prediction is larger for later times: pass minus a risk.
    reference : hashable, optional
        For ``skill``, the column of the predictions to compare with.
    base : str or callable, optional
        For ``skill``, the loss of points; ``squared_error`` by default.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        For one column of predictions a Series (DataArray), else a column (variable) for each
        model, with the levels of the predictions. The attrs name the loss: ``loss`` of a frame,
        ``long_name`` of an array; ``brier`` says ``binary``, which is (p - y)^2, or
        ``multi-class``, which is the sum over classes. For a metric they say what it is, how folds
        were combined and what the ``cells`` are.

    Raises
    ------
    LogError
        If a column is missing, a probability is not one, the truth does not fit the loss, or a
        metric has no value in a cell.

    Notes
    -----
    Where truth or prediction is missing the loss is NaN; nothing is dropped.

    A metric T of a cell (a repetition and fold) enters as pseudo-losses: T plus the influence of
    each point, turned so that lower is better (1 minus a score in [0, 1], minus another score).
    Their mean over the cell is that of the metric, exactly, and their variance is the variance of
    T by the delta method. They may lie outside the range of the metric.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, JASA 102(477), 359-378,
    doi:10.1198/016214506000001437. LeDell, Petersen and van der Laan (2015), Computationally
    efficient confidence intervals for cross-validated area under the ROC curve estimates,
    Electronic Journal of Statistics 9(1), 1583-1607, doi:10.1214/15-EJS1035.

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
    check_choices(locals(), find_choices(losses))
    lazy = is_dask_frame(predictions)
    if not lazy and not isinstance(predictions, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"a {type(predictions).__name__} holds no named predictions. Expected a DataFrame "
            f"or a Dataset, and the names of its columns: losses(frame, truth='y_true', "
            f"prediction='y_pred'). Arrays are read by cvstats.read_log(predictions, y=y, cv=cv, "
            f"loss=…)."
        )
    if classes is not None and single(classes):
        raise LogError(f"classes={classes!r} is not a list. Expected the label of each column.")
    if classes is not None:  # they may be an array, such as the classes_ of a classifier
        classes = [c.item() if isinstance(c, np.generic) else c for c in classes]
    asked: dict[str, Any] = {
        "quantile": quantile, "threshold": threshold, "classes": classes, "positive": positive,
        "clip": clip, "folds": folds, "by": by, "weight": weight, "strata": strata,
        "shares": shares, "labels": labels, "average": average, "multi_class": multi_class,
        "beta": beta, "weights": weights, "zero_division": zero_division, "ddof": ddof,
        "class_shares": class_shares, "event": event, "reference": reference, "base": base,
    }  # fmt: skip
    asked = {name: value for name, value in asked.items() if value is not None}
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        return several_losses(predictions, truth, prediction, loss, asked)
    if (
        isinstance(prediction, str)
        and prediction == PREDICTION
        and isinstance(predictions, pd.DataFrame)
    ):
        prediction, asked = take_noted(predictions, loss, asked)
        classes = asked.get("classes")
    own = asked.keys() & {"quantile", "threshold", "classes", "positive", "clip"}
    options = LossOptions(**{name: asked[name] for name in own})
    truths = list(truth) if isinstance(truth, list) else [truth]
    columns_of_each = truths if isinstance(truth, list) else classes
    request = metric_request(loss, metric, higher_is_better, asked, options, truth)
    chosen = models(prediction, columns_of_each)
    needed = [*truths, *(name for names in chosen.values() for name in names)]
    further = [*request.columns, *request.by] if request is not None else []
    inside = list(predictions.index.names) if isinstance(predictions, pd.DataFrame) else []
    require_columns(predictions, [*needed, *(name for name in further if name not in inside)])
    if lazy and request is not None:
        raise LogError(
            f"this is a frame of dask, and {request.metric.words} needs whole cells in one place. "
            f"Expected a frame in memory. Type predictions.compute()."
        )
    if lazy:
        pointwise_loss: Any = "zero_one" if loss == "accuracy" else loss
        ask = partial(
            losses, truth=truth, prediction=prediction, loss=pointwise_loss, quantile=quantile,
            threshold=threshold, classes=classes, positive=positive, clip=clip,
        )  # fmt: skip
        return mapped(predictions, ask, needed, [*map(str, chosen)])
    if isinstance(predictions, pd.DataFrame):
        predictions = set_level_index(predictions, [*needed, *further])
    values: dict[Hashable, Any] = {}
    named: dict[Any, Any]
    if request is not None:
        values, named = metric_log(predictions, truths, chosen, request)
    else:
        of_points = "zero_one" if loss == "accuracy" else loss
        named = {"loss": loss_name(loss), **brier_kind(loss, classes)}
        if loss == "accuracy":
            named = dict(ACCURACY)
        for model, columns in chosen.items():
            if isinstance(predictions, pd.DataFrame):
                values[model] = of_frame(predictions, truths[0], columns, of_points, options)
            else:
                values[model] = of_dataset(predictions, truths[0], columns, of_points, options)
    several = columns_of_each is None and not single(prediction)
    one = not several and not isinstance(prediction, Mapping)
    return put_together(predictions, values, named, one)


PREDICTION = "y_pred"
"""The column of predictions where a call names none."""
OF_CLASSES = ("log_loss", "brier", "auc", "gini")
"""What takes the probability of each class."""
OF_SCORES = ("auc", "gini", "average_precision")
"""What takes a score for one of two classes."""


def take_noted(
    predictions: pd.DataFrame, loss: Loss, asked: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Take the models, or the probabilities of their classes, that a frame notes in its attrs."""
    noted, columns = predictions.attrs, set(predictions.columns)
    chances: Any = noted.get("probabilities", {})
    classes: Any = noted.get("classes")
    found = bool(chances) and all(columns.issuperset(names) for names in chances.values())
    if found and classes and "classes" not in asked:
        positive = asked.get("positive", classes[-1] if len(classes) == 2 else None)
        of_one = loss in OF_SCORES or "threshold" in asked
        if positive in classes and (of_one or (loss in OF_CLASSES and "positive" in asked)):
            at = list(classes).index(positive)
            scores: Any = {model: names[at] for model, names in chances.items()}
            only = next(iter(scores.values())) if len(scores) == 1 else scores
            return only, {**asked, "positive": positive}
        if loss in OF_CLASSES:
            only = next(iter(chances.values())) if len(chances) == 1 else dict(chances)
            return only, {**asked, "classes": list(classes)}
    models = noted.get("models")
    if isinstance(models, list) and models and columns.issuperset(models):
        return (models[0] if models == [PREDICTION] else models), asked
    return PREDICTION, asked


FOR_METRICS = (
    "folds", "by", "weight", "strata", "shares", "labels", "average", "multi_class", "beta",
    "weights", "zero_division", "ddof", "class_shares", "event", "reference", "base",
)  # fmt: skip
"""Options that no loss of points looks at."""


def metric_request(
    loss: Any, metric: Any, higher_is_better: bool,
    asked: Mapping[str, Any], options: LossOptions, truth: Any,
) -> MetricRequest | None:  # fmt: skip
    """Find the metric that is asked for; None where it is a loss of points."""
    more = {name: value for name, value in asked.items() if name in FOR_METRICS}
    if "by" in more:
        more["by"] = [more["by"]] if single(more["by"]) else list(more["by"])
    sampled = "weight" in more or "strata" in more
    if isinstance(truth, list):
        if loss != "f1" or metric is not None:
            raise LogError(
                f"truth={truth!r} is a list of columns, and loss={loss_name(loss)!r} reads one. "
                f"A list is for several labels of each point: loss='f1' with average='micro'."
            )
        return MetricRequest(F1_OF_SETS, options=options, **more)
    if metric is not None:
        if not callable(metric):
            name = metric if isinstance(metric, str) else "auc"
            raise LogError(
                f"metric={metric!r} is not a function. Expected (truth, prediction, weight) -> "
                f"float. Name a metric as in loss={name!r}."
            )
        better: Literal["larger", "smaller"] = "larger" if higher_is_better else "smaller"
        return MetricRequest(metric_of(metric, better), options=options, **more)
    if isinstance(loss, str) and loss in METRICS and (loss != "accuracy" or sampled):
        return MetricRequest(METRICS[loss], options=options, **more)
    checked_loss("zero_one" if loss == "accuracy" else loss, options)
    if sampled:
        return MetricRequest(mean_loss(loss, options), options=options, **{"base": loss, **more})
    if more:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points, and does not use "
            f"{next(iter(more))}=. Expected it with a metric, such as loss='f1'. Leave it out."
        )
    return None


def put_together(
    predictions: pd.DataFrame | xr.Dataset,
    values: dict[Hashable, Any],
    named: Mapping[Any, Any],
    one: bool,
) -> Any:
    """Make one container of the losses of all models, with the facts about them."""
    if isinstance(predictions, xr.Dataset):
        facts = {str(name): fact for name, fact in named.items()} if "metric" in named else {}
        for name, array in values.items():
            long_name = {"long_name": named["loss"]} if facts else {}
            values[name] = array.assign_attrs({**facts, **long_name})
        if one:
            ((name, only),) = values.items()
            return only.rename(name)
        return xr.Dataset(values, attrs=facts)
    if one:
        ((name, only),) = values.items()
        only = only.rename(name)
        only.attrs = dict(named)
        return only
    table = pd.DataFrame(values, copy=False)
    table.attrs = dict(named)
    return table


def several_losses(
    predictions: Any, truth: Any, prediction: Columns, wanted: Sequence[Loss],
    asked: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Make a log of several losses, by the level (dimension) ``metric``.

    Each takes the options that it looks at.
    """
    names = check_different(wanted)
    used: set[str] = set()
    logs = {}
    for name, loss in zip(names, wanted, strict=True):
        own = {option: asked[option] for option in asked if looks_at(loss, option, asked)}
        used |= set(own)
        logs[name] = losses(predictions, truth, prediction, loss, **own)
    if unused := [option for option in asked if option not in used]:
        raise LogError(f"none of loss={names!r} uses {unused[0]}=. Leave it out.")
    return join_metrics(logs)


def check_different(wanted: Sequence[Loss]) -> list[str]:
    """Name several losses, and refuse one that is asked for twice."""
    names = [loss_name(loss) for loss in wanted]
    if not names or len(set(names)) < len(names):
        raise LogError(f"loss={names!r} are not different losses. Expected each of them once.")
    return names


def join_metrics(logs: Mapping[str, Any]) -> Any:
    """Put logs of one loss each together, by the level (dimension) ``metric``."""
    names = list(logs)
    facts = {
        "loss": ", ".join(names), "metric": names,
        "metrics": {name: dict(log.attrs) for name, log in logs.items()},
    }  # fmt: skip
    if isinstance(logs[names[0]], (xr.DataArray, xr.Dataset)):
        whole = xr.concat(list(logs.values()), pd.Index(names, name="metric"), combine_attrs="drop")
        return whole.assign_attrs(facts)
    table = pd.concat(logs, names=["metric"])
    table.attrs = facts
    return table


def looks_at(loss: Loss, option: str, asked: Collection[str]) -> bool:
    """Whether a loss or a metric looks at one of the options that are asked for."""
    if isinstance(loss, str) and loss in METRICS and loss != "accuracy":
        return takes_option(METRICS[loss], option)
    of_points = "zero_one" if loss == "accuracy" else loss
    if of_points == "zero_one" and option == "positive":
        return "threshold" in asked  # labels are compared without it
    taken = TAKES.get(of_points, ()) if isinstance(of_points, str) else ("classes",)
    return option in (*taken, "weight", "strata", "shares")


def require_columns(predictions: pd.DataFrame | xr.Dataset, names: Iterable[Hashable]) -> None:
    """Refuse a name that no column has, or several have."""
    dataset = isinstance(predictions, xr.Dataset)
    have = list(predictions.variables if dataset else predictions.columns)
    wanted = list(names)
    named = list(filter(is_name, wanted))
    others = [name for name in filter(is_name, have) if name not in named]
    for name in wanted:
        if not is_name(name) or name not in have:
            raise LogError(
                f"there is no column {name!r}. Expected truth= and prediction= to be among "
                f"{listed(map(repr, predictions))}.{nearest(name, others)}"
            )
        if have.count(name) > 1:
            raise LogError(f"several columns are called {name!r}. Expected one. Rename them.")


def single(name: Any) -> bool:
    """Whether this is the name of one column and not a collection of names."""
    text = isinstance(name, (str, bytes))
    return text or not isinstance(name, Iterable) or getattr(name, "ndim", 1) == 0


def is_name(name: object) -> bool:
    """Whether something can be the name of a column: no list, and not pandas' NA."""
    return isinstance(name, Hashable) and name is not pd.NA


def models(prediction: Any, classes: Sequence[Hashable] | None) -> dict[Hashable, list[Hashable]]:
    """Find the columns of each model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if single(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif classes is not None and not single(prediction):
        chosen = {"model": list(prediction)}
    else:
        names = [prediction] if single(prediction) else list(prediction)
        chosen = {name: [name] for name in names if is_name(name)}
        if len(chosen) < len(names):
            raise LogError(f"prediction={prediction!r} names no columns, or one of them twice.")
    if not chosen:
        raise LogError("prediction= names no column. Expected at least one model's predictions.")
    expected = 1 if classes is None else len(classes)
    for name, columns in chosen.items():
        if len(columns) != expected:
            raise LogError(
                f"model {name!r} has {len(columns)} columns of predictions. Expected {expected}"
                + (
                    ", or classes= with the label of each."
                    if classes is None
                    else f", one for each of {list(classes)!r}."
                )
            )
    return chosen


def of_frame(
    predictions: pd.DataFrame,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> pd.Series:
    """Compute the losses of one model in a frame."""
    y = flat_columns(predictions[truth])
    parts = [flat_columns(predictions[column]) for column in columns]
    guess = parts[0] if options.classes is None else np.column_stack(parts)
    values = pointwise(y, guess, loss, options)
    # A function of the user's own may return what it was given.
    return pd.Series(values, index=predictions.index, copy=callable(loss))


def of_dataset(
    predictions: xr.Dataset,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> xr.DataArray:
    """Compute the losses of one model in a dataset; truth is broadcast to the predictions."""
    parts = xr.broadcast(*(predictions[column] for column in columns), predictions[truth])
    *guesses, y = (part.transpose(*parts[0].dims) for part in parts)

    def work(truth: Values, *parts: Values) -> FloatArray:
        flat = [flattened(part) for part in parts]
        guess = flat[0] if options.classes is None else np.column_stack(flat)
        return pointwise(flattened(truth), guess, loss, options).reshape(truth.shape)

    # The truth may have dimensions that the predictions lack, and coordinates along these.
    result = guesses[0].assign_coords(y.coords)
    if any(part.chunks is not None for part in parts):
        computed = xr.apply_ufunc(
            work, *xr.unify_chunks(y, *guesses), dask="parallelized", output_dtypes=[np.float64]
        )
        result = result.copy(data=computed.data)
    else:
        result = result.copy(data=work(y.values, *(guess.values for guess in guesses)))
    named = loss if isinstance(loss, str) else "loss"
    result.attrs = {"long_name": named, **brier_kind(loss, options.classes)}
    return result


def flattened(array: Values) -> Any:
    """Lay an array out as one column, with None for whatever marks a missing object."""
    values = array.reshape(-1)
    if values.dtype == object:
        values = values.copy()
        values[pd.isna(values)] = None
    return values
