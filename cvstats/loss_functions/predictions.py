"""`losses`: logged predictions in, a loss log out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, is_number, listed, nearest
from cvstats.large.frames import mapped
from cvstats.log.arrow import from_arrow, is_arrow
from cvstats.log.columns import set_level_index
from cvstats.log.read import is_dask_frame
from cvstats.loss_functions.forecasts import FORECASTS, stack_columns
from cvstats.loss_functions.metric_logs import (
    ACCURACY,
    MetricRequest,
    mean_loss,
    metric_log,
)
from cvstats.loss_functions.names import find_loss
from cvstats.loss_functions.pointwise import (
    TAKES,
    LossOptions,
    Values,
    checked_loss,
    facts_of_loss,
    loss_name,
    map_columns,
    pointwise,
)
from cvstats.metrics import F1_OF_SETS, METRICS, metric_of
from cvstats.options import check_choices, find_choices

Columns: TypeAlias = (
    Hashable | Sequence[Hashable] | Mapping[Hashable, Hashable | Sequence[Hashable]]
)
Loss: TypeAlias = str | Callable[[Any, Any], Any]


class LossKeywords(TypedDict, total=False):
    """The options that belong to single losses and metrics."""

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
        of columns of 0 and 1, one for each label. For ``energy_score`` and functions of points a
        list of numbers, one for each component.
    prediction : hashable, sequence or mapping, optional
        The column of predictions; for several models a list of columns, or a mapping from
        the model's name to its column. With ``classes`` each model has a list of columns, the
        probabilities of the classes; with a truth of several columns, one for each label. Losses
        of forecasts, and functions, read several columns of a model, too: limits, quantiles or
        members, as in ``{"ets": ["lower", "upper"]}``. Without ``prediction``, the models that
        the attrs of a frame note, as `cvstats.read_predictions` and `cvstats.datasets.load` do;
        for ``log_loss``, ``brier`` and ``auc`` the probabilities of their classes.
    loss : str, callable or list, optional
        A loss of points: ``squared_error``, ``absolute_error``, ``percentage_error`` (a share:
        0.1 is 10%), ``squared_log_error``, ``huber``, ``pinball``, ``zero_one``, ``log_loss``
        (nats), ``brier``, ``hinge``, ``net_benefit`` (a score); of probabilistic forecasts
        ``interval_score`` (limits),
        ``weighted_interval_score`` (the median, then the limits of each level) and its parts
        ``overprediction``, ``underprediction`` and ``dispersion``, ``crps`` (members),
        ``energy_score`` (members of each component), ``coverage`` (limits); or a function of two
        arrays that returns one loss for each point, whose second one has a column for each column
        of the model. Or a metric, which is not a mean of such losses: of labels ``accuracy``,
        ``precision``, ``recall``, ``specificity``, ``npv``, ``f1``, ``fbeta``, ``jaccard``,
        ``balanced_accuracy``, ``g_mean``, ``matthews``, ``kappa``; of scores ``auc``, ``gini``,
        ``average_precision``, ``partial_auc``; of probabilities ``calibration_slope``,
        ``calibration_intercept``, ``observed_expected``, which have a target (1, 0 and 1) and no
        better direction; of numbers ``rmse``, ``r2``, ``wmape``, ``pearson``,
        ``concordance_correlation``, ``spearman``, ``kendall`` (tau-b), ``kendall_a``,
        ``ordered_gini``, ``concordance`` (Harrell's C index), ``somers_d``; of censored times
        ``brier_at``, ``integrated_brier``, ``auc_at`` and ``uno`` (Uno's C index); against a
        reference ``skill`` and ``relative_error``. A list gives a log with the level (dimension)
        ``metric``.
    classes : sequence, optional
        For ``log_loss``, ``brier`` and ``auc`` of a probability for each class: the labels, in
        the order of the columns.
    positive : hashable, optional
        For one probability or score, and for metrics of one class: its label, if the truth is not
        0 and 1.
    metric : callable, optional
        Instead of ``loss``, a custom metric: ``(truth, prediction, weight) -> float``, or
        without weights; a parameter ``event`` gets the column of ``event=``. It is called about
        twice for each point.
    higher_is_better : bool, optional
        For ``metric``, whether larger values are better.
    folds : {"average", "pool"}, optional
        For metrics, whether each fold has its own value, and these are averaged, or all folds of
        a repetition have one. By default averaged for scores, ranks and custom functions,
        pooled for metrics of labels and numbers.
    by : hashable or sequence, optional
        For metrics, levels (columns, coordinates) for each of whose labels there is a value.
    weight : hashable, optional
        The column of weights of the points, of which only ratios matter.
    **options
        The options of the loss or metric, below. Each is refused where it is not used.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        For one column of predictions a Series (DataArray), else a column (variable) for each
        model, with the levels of the predictions. The attrs name the loss: ``loss`` of a frame,
        ``long_name`` of an array; ``brier`` says ``binary``, which is (p - y)^2, or
        ``multi-class``, which is the sum over classes. For a metric they say what it is, how folds
        were combined and what the ``cells`` are.

    Other Parameters
    ----------------
    quantile : float, optional
        For ``pinball``, the level of the predicted quantile.
    threshold : float, optional
        For ``zero_one`` and metrics of labels, where probabilities are predicted: from where on
        the positive class is predicted. For ``net_benefit``, from where on one treats; of a list,
        each has its net benefit, by the level ``metric``.
    clip : float, optional
        For the calibration slope and intercept, probabilities of 0 and 1 become this and one minus
        this. For ``log_loss``, the lower bound applied to the predicted probability of the observed
        class: with ``clip=1e-6`` no loss is above 13.8. Without it a probability of 0 has an
        infinite loss.
    delta : float, optional
        For ``huber``, the error above which the loss is linear, in units of the truth.
    level : float or sequence, optional
        The probability that a central interval is to contain the truth, such as 0.9; several for
        ``weighted_interval_score`` and its parts.
    fair : bool, optional
        For ``crps`` and ``energy_score``, whether members are a sample of the forecast, whose
        score is estimated without bias: pairs of different members count. By default the members
        are the forecast.
    distribution : {"normal"}, optional
        For ``crps`` of two columns, the mean and the standard deviation.
    member : hashable, optional
        Of a Dataset, the dimension of the members of an ensemble. Of a frame each member is a
        column.
    strata : hashable, optional
        With ``weight`` or alone, the column of the strata from which the points were sampled.
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
    baselines : bool, optional
        For ``net_benefit``, whether to add the models ``treat all`` and ``treat none``.
    max_fpr : float, optional
        For ``partial_auc``, the largest false positive rate: the area under the ROC curve up to
        there, at most ``max_fpr`` itself.
    class_shares : {"cell", "log"}, optional
        For ``auc``, whether the influence uses the shares of the classes in the cell (the
        default), or those in the whole log, as the R package cvAUC does.
    event : hashable, optional
        For metrics of censored times, the column that is 1 where the time is that of an event, 0
        where it is censored. For ``concordance``, ``somers_d`` and ``uno`` the prediction is larger
        for later times: pass minus a risk. ``auc_at``, ``brier_at`` and ``integrated_brier`` read
        the risk: the probability that the event happens by the time.
    at : float or sequence, optional
        For ``brier_at`` and ``auc_at``, the time by which the event is predicted; for
        ``integrated_brier`` the times of the columns; for ``uno`` the last time that counts.
    reference : hashable, optional
        For ``skill``, the column of the predictions to compare with.
    base : str or callable, optional
        For ``skill``, the loss of points; ``squared_error`` by default.

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
    refuse_unknown(options)
    check_choices({**options, "folds": folds}, find_choices(losses) | find_choices(LossKeywords))
    if is_arrow(predictions):
        predictions = from_arrow(predictions)
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
    levels: Any = by
    by = None if by is None else [levels] if single(levels) else list(levels)
    given = {
        "classes": classes, "positive": positive, "folds": folds, "by": by, "weight": weight,
        **options,
    }  # fmt: skip
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        return several_losses(predictions, truth, prediction, loss, asked)
    loss, asked = with_implied(loss, asked)
    cuts = asked.get("threshold")
    if loss == "net_benefit" and isinstance(cuts, Iterable) and not isinstance(cuts, str):
        return decision_curve(predictions, truth, prediction, list(cuts), asked)
    baselines = asked.pop("baselines", None) if loss == "net_benefit" else None
    if (
        isinstance(prediction, str)
        and prediction == PREDICTION
        and isinstance(predictions, pd.DataFrame)
    ):
        prediction, asked = take_noted(predictions, loss, asked)
    member = asked.pop("member", None)
    request = metric_request(loss, metric, higher_is_better, asked, truth)
    truths = list(truth) if isinstance(truth, list) else [truth]
    sets = isinstance(truth, list) and request is not None
    several = reads_several(loss, metric)
    alone = several and member is None and metric is None and not callable(loss)
    chosen = models(prediction, truths if sets else asked.get("classes"), several, alone)
    if member is not None:
        if not several:
            raise LogError(
                f"loss={loss_name(loss)!r} reads one column of predictions for a model, and does "
                f"not use member=. Expected it with loss='crps' or 'energy_score', or a function."
            )
        predictions, chosen = split_members(predictions, chosen, member)
    if baselines:
        predictions, chosen = add_baselines(predictions, chosen)
    needed = [*truths, *(name for names in chosen.values() for name in names)]
    further = [] if request is None else [*request.further.values(), *request.by]
    inside = list(predictions.index.names) if isinstance(predictions, pd.DataFrame) else []
    require_columns(predictions, [*needed, *(name for name in further if name not in inside)])
    of_points: Any = "zero_one" if loss == "accuracy" else loss
    if lazy and request is not None:
        raise LogError(
            f"this is a frame of dask, and {request.metric.words} needs whole cells in one place. "
            f"Expected a frame in memory. Type predictions.compute()."
        )
    if lazy:
        ask = partial(losses, truth=truth, prediction=prediction, loss=of_points, **asked)
        return mapped(predictions, ask, needed, [*map(str, chosen)])
    if isinstance(predictions, pd.DataFrame):
        predictions = set_level_index(predictions, [*needed, *further])
    if request is not None:
        values, named = metric_log(predictions, truths, chosen, request)
    else:
        of_loss = LossOptions.of(asked)
        work = partial(of_points_alone, of_points, of_loss, len(truths))
        values = {
            model: map_columns(predictions, [*columns, *truths], work)
            for model, columns in chosen.items()
        }
        plain = isinstance(loss, str) or isinstance(predictions, pd.DataFrame)
        kind = ACCURACY if loss == "accuracy" else facts_of_loss(loss, of_loss)
        named = {"loss": loss_name(loss) if plain else "loss", **kind}
    one = (
        not isinstance(prediction, Mapping)
        and not baselines
        and (single(prediction) or sets or alone or "classes" in asked)
    )
    return put_together(predictions, values, named, one)


BASELINES = {"treat all": 1.0, "treat none": 0.0}
"""Models that treat all or none, and the probability that they predict."""


def add_baselines(
    predictions: Any, chosen: Mapping[Hashable, list[Hashable]]
) -> tuple[Any, dict[Hashable, list[Hashable]]]:
    """Add models that treat all and none, wherever the first model has a prediction."""
    first = next(iter(chosen.values()))[0]
    require_columns(predictions, [first])
    column = predictions[first]
    added = {name: column.where(column.isnull(), p) for name, p in BASELINES.items()}
    return predictions.assign(**added), {**chosen, **{name: [name] for name in BASELINES}}


def decision_curve(
    predictions: Any, truth: Any, prediction: Columns, cuts: list[float], asked: dict[str, Any]
) -> Any:
    """Make a log of the net benefit at several thresholds, by the level ``metric``."""
    if not cuts or len(set(cuts)) < len(cuts):
        raise LogError(f"threshold={cuts!r} are not different. Expected each of them once.")
    logs = {}
    for cut in cuts:
        own: Any = {**asked, "threshold": cut}
        logs[f"net_benefit at {cut:g}" if is_number(cut) else str(cut)] = losses(
            predictions, truth, prediction, "net_benefit", **own
        )
    return join_metrics(logs)


def refuse_unknown(options: Iterable[str]) -> None:
    """Refuse an option that no loss and no metric has."""
    known = [*LossKeywords.__annotations__, *signature(losses).parameters]
    for name in options:
        if name not in known:
            raise TypeError(
                f"losses() got an unexpected keyword argument {name!r}.{nearest(name, known)}"
            )


def with_implied(loss: Loss, asked: Mapping[str, Any]) -> tuple[Loss, dict[str, Any]]:
    """Resolve the name of a loss, and add the options that it implies to those asked for."""
    found: Loss
    found, implied = find_loss(loss)
    for option, value in implied.items():
        if asked.get(option, value) != value:
            raise LogError(
                f"loss={loss!r} means {option}={value!r}, and {option}={asked[option]!r} was "
                f"given. Expected one of them: loss={found!r} with {option}=."
            )
    own = {**asked, **implied}
    if "base" in own:
        own["base"] = find_loss(own["base"])[0]
    return found, own


PREDICTION = "y_pred"
"""The column of predictions where a call names none."""
OF_CLASSES = ("log_loss", "brier", "auc", "gini")
"""What takes the probability of each class."""
CALIBRATION_ERRORS = ("ece", "mce", "expected_calibration_error", "calibration_error")
"""Metrics of binned calibration, by name."""
OF_SCORES = (
    "auc", "gini", "average_precision", "partial_auc", "calibration_slope", "calibration_intercept",
    "observed_expected",
)  # fmt: skip
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


def metric_request(
    loss: Any, metric: Any, higher_is_better: bool, asked: Mapping[str, Any], truth: Any
) -> MetricRequest | None:
    """Find the metric that is asked for; None where it is a loss of points."""
    for asked_for in (loss, metric):
        name = getattr(asked_for, "__name__", asked_for)
        if isinstance(name, str) and name.lower() in CALIBRATION_ERRORS:
            raise LogError(
                f"{name} has no interval: it is biased upward by noise, and near calibration its "
                f"influences vanish. Expected loss='calibration_slope', or a proper score: "
                f"loss='brier' or loss='log_loss'."
            )
    sampled = "weight" in asked or "strata" in asked
    if isinstance(truth, list) and loss == "f1" and metric is None:
        return MetricRequest(F1_OF_SETS, asked)
    vectors = loss == "energy_score" or callable(loss)
    if isinstance(truth, list) and (sampled or metric is not None or not vectors):
        weighted = " with weight= or strata=" if vectors and sampled else ""
        raise LogError(
            f"truth={truth!r} is a list of columns, and loss={loss_name(loss)!r}{weighted} reads "
            f"one. A list is for several labels of each point, loss='f1' with average='micro'; for "
            f"vectors, loss='energy_score'; and for functions of points."
        )
    if metric is not None:
        if not callable(metric):
            name = metric if isinstance(metric, str) else "auc"
            raise LogError(
                f"metric={metric!r} is not a function. Expected (truth, prediction, weight) -> "
                f"float. Name a metric as in loss={name!r}."
            )
        better: Literal["larger", "smaller"] = "larger" if higher_is_better else "smaller"
        return MetricRequest(metric_of(metric, better), asked)
    if isinstance(loss, str) and loss in METRICS and (loss != "accuracy" or sampled):
        return MetricRequest(METRICS[loss], asked)
    options = LossOptions.of(asked)
    checked_loss("zero_one" if loss == "accuracy" else loss, options)
    if sampled:
        return MetricRequest(mean_loss(loss, options), {"base": loss, **asked})
    if more := [name for name in asked if not hasattr(options, name)]:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points, and does not use {more[0]}=. "
            f"Expected it with a metric, such as loss='f1'. Leave it out."
        )
    return None


def put_together(
    predictions: pd.DataFrame | xr.Dataset,
    values: dict[Hashable, Any],
    named: Mapping[Any, Any],
    one: bool,
) -> Any:
    """Make one container of the losses of all models, with the facts about them."""
    table: Any
    if isinstance(predictions, xr.Dataset):
        facts = {str(name): fact for name, fact in named.items()} if "metric" in named else {}
        rest = facts or {name: fact for name, fact in named.items() if name != "loss"}
        for array in values.values():
            array.attrs = {**rest, "long_name": named["loss"]}
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
        known, implied = find_loss(loss)
        own = {option: asked[option] for option in asked if looks_at(known, option, asked)}
        used |= set(own)
        own |= implied
        logs[name] = losses(predictions, truth, prediction, known, **own)
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
    if option == "member":
        return reads_several(loss, None)
    if isinstance(loss, str) and loss in METRICS and loss != "accuracy":
        return METRICS[loss].uses(option)
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


def reads_several(loss: Any, metric: Any) -> bool:
    """Whether a loss or a metric may read several columns of predictions for a model."""
    if callable(loss) or callable(metric):
        return True
    return loss in FORECASTS or (loss in METRICS and METRICS[loss].several)


def models(
    prediction: Any,
    classes: Sequence[Hashable] | None,
    several: bool = False,
    alone: bool = False,
) -> dict[Hashable, list[Hashable]]:
    """Find the columns of each model; ``alone``: a list has the columns of one model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if single(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif (classes is not None or alone) and not single(prediction):
        chosen = {"model": list(prediction)}
    else:
        names = [prediction] if single(prediction) else list(prediction)
        chosen = {name: [name] for name in names if is_name(name)}
        if len(chosen) < len(names):
            raise LogError(f"prediction={prediction!r} names no columns, or one of them twice.")
    if not all([chosen, *chosen.values()]):
        raise LogError("prediction= names no column. Expected at least one model's predictions.")
    expected = 1 if classes is None else len(classes)
    for name, columns in chosen.items():
        if len(columns) != expected and (classes is not None or not several):
            raise LogError(
                f"model {name!r} has {len(columns)} columns of predictions. Expected {expected}"
                + (
                    ", or classes= with the label of each."
                    if classes is None
                    else f", one for each of {list(classes)!r}."
                )
            )
    return chosen


def split_members(
    predictions: pd.DataFrame | xr.Dataset,
    chosen: Mapping[Hashable, list[Hashable]],
    member: Hashable,
) -> tuple[xr.Dataset, dict[Hashable, list[Hashable]]]:
    """Make each member of an ensemble a variable of its own."""
    if not isinstance(predictions, xr.Dataset):
        raise LogError(
            f"member={member!r} is a dimension of a Dataset, and this is a "
            f"{type(predictions).__name__}. Expected a column for each member: "
            f"prediction={{'model': ['member_1', 'member_2', …]}}. Members in rows become columns "
            f"by predictions['y_pred'].unstack(level)."
        )
    require_columns(predictions, [name for names in chosen.values() for name in names])
    found: dict[Hashable, Any] = {}
    columns: dict[Hashable, list[Hashable]] = {}
    for model, names in chosen.items():
        columns[model] = []
        for name in names:
            if member not in predictions[name].dims:
                raise LogError(
                    f"{name!r} has no dimension {member!r}. Expected one of its dimensions, "
                    f"{listed(map(repr, predictions[name].dims))}, in member=."
                )
            array = predictions[name].drop_vars([member], errors="ignore")
            for at in range(array.sizes[member]):
                columns[model].append(own := f"{name}[{member}={at}]")
                found[own] = array.isel({member: at})
    return predictions.drop_dims([member]).assign(found), columns


def of_points_alone(loss: Any, options: LossOptions, truths: int, *columns: Values) -> FloatArray:
    """Compute the losses of points from the columns of predictions, and the truths after them."""
    guesses, own = columns[:-truths], columns[-truths:]
    truth = own[0] if truths == 1 else stack_columns(own)
    guess = stack_columns(guesses) if options.classes or len(guesses) > 1 else guesses[0]
    return pointwise(truth, guess, loss, options)
