"""The loss functions: one loss per point, from its true value and its prediction.

Losses of probabilistic forecasts read several columns for a model: Gneiting and Raftery (2007),
doi:10.1198/016214506000001437.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr, xlogy

from cvstats.core.design import readonly
from cvstats.core.orientation import TARGET, facts_of_score
from cvstats.core.types import FloatArray
from cvstats.errors import (
    MOST,
    LogError,
    checked_choice,
    checked_flag,
    checked_share,
    count_others,
    is_number,
    is_several,
    listed,
    nearest,
    plainly,
    read_names,
    spelled,
)
from cvstats.metrics import METRICS

Values = NDArray[Any]
NUMBERS = (Real, Decimal, np.bool_)
MANY_DECIMALS = 10
"""Number of different decimal predictions, none of them a true label, that cannot be labels."""


@dataclass(frozen=True)
class LossOptions:
    """Options of some losses besides truth and prediction."""

    quantile: float | None = None
    threshold: float | None = None
    classes: Sequence[Hashable] | None = None
    positive: Hashable = None
    clip: float | None = None
    delta: float | None = None
    level: float | Sequence[float] | None = None
    fair: bool | None = None
    distribution: str | None = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> LossOptions:
        """Select these from the given options."""
        return cls(**{each.name: asked.get(each.name) for each in fields(cls)})


# --- one loss for each point ----------------------------------------------------------------------


def squared_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared difference, in squared units of the truth."""
    with np.errstate(over="ignore"):  # an infinite loss is rejected when it is used
        return difference(truth, prediction) ** 2


def absolute_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Absolute difference, in units of the truth."""
    return np.abs(difference(truth, prediction))


def squared_log_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared difference of log(1 + value)."""
    why = "squared_log_error uses log(1 + value)"
    y = numbers_above(-1, why, "truth", truth)
    mean = numbers_above(-1, why, "prediction", prediction)
    return (np.log1p(y) - np.log1p(mean)) ** 2


def poisson_deviance(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Deviance of counts or rates from their predicted mean: 2 (y log(y / mean) - y + mean)."""
    why = "poisson_deviance is for counts and rates, whose predicted mean is positive"
    y = numbers_above(0, why, "truth", truth, or_equal=True)
    mean = numbers_above(0, why, "prediction", prediction)
    return np.maximum(2 * (xlogy(y, y / mean) - y + mean), 0.0)


def gamma_deviance(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Deviance of positive amounts from their predicted mean: 2 (log(mean / y) + y / mean - 1)."""
    why = "gamma_deviance is for positive amounts"
    y = numbers_above(0, why, "truth", truth)
    mean = numbers_above(0, why, "prediction", prediction)
    return np.maximum(2 * (y / mean - 1 - np.log(y / mean)), 0.0)


def numbers_above(
    least: float, why: str, what: str, column: Values, *, or_equal: bool = False
) -> FloatArray:
    """Return numbers, after rejecting those outside of the domain of a loss."""
    values = floats(column, what)
    wrong = np.flatnonzero(values < least if or_equal else values <= least)
    if len(wrong):
        raise LogError(
            f"{why}, but the {what} in row {wrong[0]:,} is {spelled(values[wrong[0]])}. Expected "
            f"numbers {'from' if or_equal else 'above'} {least}. Use squared_error."
        )
    return values


def huber(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Half the squared error up to ``delta``, then linear (Huber 1964)."""
    delta = delta_of(options)
    error = np.abs(difference(truth, prediction))
    near = np.minimum(error, delta)
    return near * (error - near / 2)


def delta_of(options: LossOptions) -> float:
    """Read the error above which Huber's loss is linear."""
    delta = options.delta
    if not is_number(delta) or delta is None or not 0 < delta < np.inf:
        raise LogError(
            f"huber needs the error above which it is linear, but got delta={delta!r}. Expected "
            "a number above 0, in units of the truth, such as delta=1.0."
        )
    return float(delta)


def percentage_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Absolute difference as a fraction of the absolute truth: 0.1 is 10%."""
    wrong = np.flatnonzero(floats(truth, "truth") == 0)
    if len(wrong):
        raise LogError(
            f"percentage_error divides by the truth, which is 0 in row {wrong[0]:,}"
            f"{count_others(len(wrong))}. Expected nonzero true values. Use absolute_error."
        )
    return np.abs(difference(truth, prediction) / floats(truth, "truth"))


def pinball(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Loss of a predicted quantile (Koenker and Bassett 1978, doi:10.2307/1913643)."""
    level = level_of(options)
    above = difference(truth, prediction)
    return np.abs(np.where(above > 0, level, 1 - level) * above)


def level_of(options: LossOptions) -> float:
    """Read the level of a predicted quantile."""
    needs = "pinball needs the level of the predicted quantile"
    return checked_share(needs, "quantile", options.quantile, "0.9")


def zero_one(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """0 for the right label, 1 for a wrong one."""
    if options.threshold is not None:
        says_yes = probabilities(prediction) >= options.threshold
        wrong = np.where(np.isnan(floats(prediction, "prediction")), np.nan, 1.0)
        return np.where(says_yes == (signs(truth, options) > 0), 0.0, wrong) * known(truth)
    if options.positive is not None:
        raise LogError(
            "zero_one compares labels, and uses positive= only for probabilities. Pass "
            "threshold= with it, such as threshold=0.5."
        )
    refuse_other_labels("zero_one", truth, prediction)
    wrong = np.asarray(truth != prediction, dtype=np.float64)
    return wrong * known(truth) * known(prediction)


def log_loss(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Negative logarithm of the predicted probability of the observed class, in nats."""
    most = np.inf if options.clip is None else -np.log(options.clip)
    with np.errstate(divide="ignore"):
        if prediction.ndim == 2:
            _, given = one_hot(truth, prediction, options)
            return np.minimum(0.0 - np.log(given), most)  # 0.0 where the probability is 1, not -0.0
        p = probabilities(prediction)
        y = signs(truth, options)
        values = np.where(np.isnan(y), np.nan, 0.0 - np.where(y > 0, np.log(p), np.log1p(-p)))
        return np.minimum(values, most)


def brier(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared error of probabilities (Brier 1950).

    Two classes: ``(p - y)^2``, whether one probability is predicted or both. Three or more: the
    sum over classes.
    """
    if prediction.ndim == 2:
        hot, _ = one_hot(truth, prediction, options)
        squares: FloatArray = (probabilities(prediction) - hot) ** 2
        return squares[:, 1] if squares.shape[1] == 2 else squares.sum(axis=1)
    y = (signs(truth, options) + 1) / 2
    return (probabilities(prediction) - y) ** 2


def net_benefit(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Minus the net benefit of treating above a threshold (Vickers and Elkin 2006).

    A true positive counts 1, and a false positive minus the odds of the threshold.
    """
    cut = cut_of(options)
    treated = np.asarray(probabilities(prediction) >= cut, dtype=np.float64)
    benefit = np.where(signs(truth, options) > 0, 1.0, -cut / (1 - cut))
    return (0.0 - treated * benefit) * known(truth) * known(prediction)


def cut_of(options: LossOptions) -> float:
    """Read the treatment threshold."""
    needs = "net_benefit needs the treatment threshold, a probability"
    return checked_share(needs, "threshold", options.threshold, "0.2, or a list of them")


def hinge(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """``max(0, 1 - y s)`` for a score s and y = 1 or -1."""
    margin = 1 - signs(truth, options) * floats(prediction, "prediction")
    return np.maximum(margin, 0.0)


# --- probabilistic forecasts ----------------------------------------------------------------------


ROWS = 4096
"""Rows of an ensemble scored together, to fit in the processor's cache."""


def interval_score(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Width of a central interval, plus 2 / (1 - level) times the distance of a truth outside."""
    lower, upper = limits_of("interval_score", forecast)
    tail = 1 - check_level("interval_score", level)
    below, above = np.maximum(lower - truth, 0), np.maximum(truth - upper, 0)
    return (upper - lower) + 2 / tail * below + 2 / tail * above


def coverage(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """1 where a central interval contains the truth, 0 elsewhere."""
    lower, upper = limits_of("coverage", forecast)
    check_level("coverage", level)
    missing = np.isnan(truth + lower + upper)
    return np.where(missing, np.nan, (lower <= truth) & (truth <= upper))


def weighted_interval_score(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Weighted sum of the interval scores of several levels and the error of the median."""
    return sum(parts_of_score(truth, forecast, level), start=np.zeros(len(truth)))


def part_of_score(truth: FloatArray, forecast: FloatArray, level: Any, *, at: int) -> FloatArray:
    """Part of the weighted interval score: overprediction, underprediction or dispersion."""
    return parts_of_score(truth, forecast, level)[at]


def parts_of_score(
    truth: FloatArray, forecast: FloatArray, level: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split the weighted interval score (Bracher et al. 2021, doi:10.1371/journal.pcbi.1008618).

    The interval of a level enters with the weight (1 - level) / 2, the median with 1/2, and the
    sum is divided by the number of intervals plus 1/2.
    """
    levels = list(level) if is_several(level) else [level]
    tails = [1 - check_level("weighted_interval_score", each) for each in levels]
    if len(set(levels)) < len(levels):
        raise LogError(f"level={level!r} contains a level twice. Expected each level once.")
    names = ["median", *(f"{end}_{each}" for each in levels for end in ("lower", "upper"))]
    check_columns("weighted_interval_score", forecast, names)
    median = forecast[:, 0]
    over, under = np.maximum(median - truth, 0) / 2, np.maximum(truth - median, 0) / 2
    width = np.where(np.isnan(truth + median), np.nan, 0.0)
    for at, (tail, each) in enumerate(zip(tails, levels, strict=True)):
        limits = forecast[:, 1 + 2 * at : 3 + 2 * at]
        lower, upper = limits_of("weighted_interval_score", limits)
        if len(wrong := np.flatnonzero((median < lower) | (median > upper))):
            row = int(wrong[0])
            raise LogError(
                f"the median of row {row:,}, {median[row]:.6g}, is outside its interval of level "
                f"{each}: {lower[row]:.6g} to {upper[row]:.6g}. Expected the columns as the "
                f"median, then the lower and the upper limit of each level. Sort quantiles that "
                f"cross."
            )
        over = over + np.maximum(lower - truth, 0)
        under = under + np.maximum(truth - upper, 0)
        width = width + tail / 2 * (upper - lower)
    number = len(levels) + 0.5
    missing = np.where(np.isnan(width + over), np.nan, 1.0) / number
    return over * missing, under * missing, width * missing


def crps(
    truth: FloatArray, forecast: FloatArray, fair: Any = None, distribution: Any = None
) -> FloatArray:
    """Continuous ranked probability score of an ensemble, or of a normal distribution."""
    checked_choice("distribution", distribution, (None, "normal"))
    if distribution == "normal":
        if fair is not None:
            raise LogError(
                "fair= applies to ensemble members, but distribution='normal' has none. Omit fair=."
            )
        return crps_of_normal(truth, forecast)
    members = forecast.shape[1]
    pairs = count_pairs("crps", members, fair)
    # Sum of |x_i - x_j| over all pairs: that of (2 i - m - 1) x_(i), twice.
    places = (2 * np.arange(1, members + 1) - members - 1) / pairs
    found = np.empty(len(truth))
    for start in range(0, len(truth), ROWS):
        rows = slice(start, start + ROWS)
        error = forecast[rows] - truth[rows, None]
        error.sort(axis=1)
        spread = error @ places
        found[rows] = np.abs(error, out=error).mean(axis=1) - spread
    return found


def crps_of_normal(truth: FloatArray, forecast: FloatArray) -> FloatArray:
    """Score of a normal distribution in closed form, with its limit for zero standard deviation."""
    check_columns("crps", forecast, ["mean", "sd"])
    mean, sd = forecast.T
    if len(wrong := np.flatnonzero(sd < 0)):
        raise LogError(
            f"the standard deviation of row {wrong[0]:,} is {sd[wrong[0]]:.6g}. Expected the "
            f"columns as [mean, standard deviation], and none below 0."
        )
    error = truth - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        z = error / sd
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        score: FloatArray = error * (2 * ndtr(z) - 1) + sd * (2 * density - 1 / np.sqrt(np.pi))
    return np.where(sd == 0, np.abs(error), score)


def energy_score(truth: FloatArray, forecast: FloatArray, fair: Any = None) -> FloatArray:
    """Energy score of an ensemble of vectors: the CRPS with distances for absolute errors."""
    points = truth.reshape(len(truth), -1)
    size = points.shape[1]
    members, rest = divmod(forecast.shape[1], size)
    if rest or not members:
        raise LogError(
            f"energy_score got {forecast.shape[1]} columns of predictions for {size} columns of "
            "the truth. Expected the same number of members for each: all members of the first "
            "column of the truth, then those of the second, …"
        )
    pairs = count_pairs("energy_score", members, fair)
    found = np.empty(len(truth))
    for start in range(0, len(truth), ROWS):
        rows = slice(start, start + ROWS)
        vectors = forecast[rows].reshape(-1, size, members)
        errors = np.linalg.norm(vectors - points[rows, :, None], axis=1)
        spread = np.zeros(len(errors))
        for at in range(members - 1):
            apart = vectors[:, :, at + 1 :] - vectors[:, :, at : at + 1]
            spread += np.linalg.norm(apart, axis=1).sum(axis=1)
        found[rows] = errors.mean(axis=1) - spread / pairs
    return found


def check_level(loss: str, level: Any) -> float:
    """Reject an invalid level of a central interval."""
    example = "0.9 for the quantiles 5% and 95%"
    return checked_share(f"{loss} needs the level of the interval", "level", level, example)


def check_columns(loss: str, forecast: FloatArray, names: Sequence[str]) -> None:
    """Reject a forecast with the wrong number of columns."""
    if forecast.shape[1] != len(names):
        raise LogError(
            f"loss={loss!r} got {forecast.shape[1]} columns of predictions for a model. Expected "
            f"{len(names)}, as in cvstats.losses(frame, prediction={{'model': {list(names)}}}, "
            f"loss={loss!r}, …)."
        )


def limits_of(loss: str, forecast: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Read the limits of an interval, the lower one first."""
    check_columns(loss, forecast, ["lower", "upper"])
    lower, upper = forecast[:, 0], forecast[:, 1]
    if len(wrong := np.flatnonzero(lower > upper)):
        row = int(wrong[0])
        raise LogError(
            f"the lower limit of row {row:,} is above the upper one: {lower[row]:.6g} and "
            f"{upper[row]:.6g}. Expected the columns as [lower, upper]."
        )
    return lower, upper


def count_pairs(loss: str, members: int, fair: Any) -> float:
    """Count the pairs of members over which distances are averaged."""
    checked_flag("fair", False if fair is None else fair)
    if fair and members < 2:
        raise LogError(
            f"{loss} with fair=True got one member. Expected at least two, as in "
            f"prediction={{'model': ['member_1', 'member_2', …]}}; omit fair= for one member."
        )
    return float(members * (members - 1) if fair else members**2)


def stack_columns(columns: Sequence[Any]) -> Any:
    """Stack columns side by side, some rows at a time."""
    kind = np.result_type(*columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=kind)
    for start in range(0, len(table), ROWS):
        for at, column in enumerate(columns):
            table[start : start + ROWS, at] = column[start : start + ROWS]
    return table


# --- losses by name -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointwiseLoss:
    """The facts about one loss of points.

    Parameters
    ----------
    function : callable
        Maps truth, prediction and `LossOptions` to a loss for each point. That of a forecast maps
        truth and columns, with its own options as keywords.
    reads : {"numbers", "labels", "probabilities", "margins", "forecasts"}
        Its predictions: numbers; labels; probabilities of classes; signed scores; several columns.
    takes : tuple of str
        The options that it uses.
    check : callable, optional
        Reads an option without which the loss is not defined, and rejects invalid values.
    facts : callable, optional
        Maps the options to further attrs of a log of this loss.
    """

    function: Callable[..., FloatArray]
    reads: Literal["numbers", "labels", "probabilities", "margins", "forecasts"]
    takes: tuple[str, ...] = ()
    check: Callable[[LossOptions], object] | None = None
    facts: Callable[[LossOptions], dict[Any, Any]] | None = None

    def __call__(self, truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
        """Compute the loss of each point."""
        if self.reads != "forecasts":
            return self.function(truth, prediction, options)
        own = {option: getattr(options, option) for option in self.takes}
        forecast = floats(prediction.reshape(len(prediction), -1), "prediction")
        return self.function(floats(truth, "truth"), forecast, **own)


def facts_of_brier(options: LossOptions) -> dict[Any, Any]:
    """Record which of the two definitions was used."""
    two = options.classes is None or len(options.classes) == 2
    return {"brier": "binary" if two else "multi-class"}


def facts_of_net_benefit(options: LossOptions) -> dict[Any, Any]:
    """Record the score and its threshold."""
    facts = {"range": (-np.inf, 1.0), "threshold": options.threshold}
    return facts_of_score("net_benefit", "-score") | facts


def facts_of_coverage(options: LossOptions) -> dict[Any, Any]:
    """Record the target value."""
    facts = {"metric": "coverage", "orientation": "value", TARGET: options.level}
    return {**facts, "range": (0.0, 1.0)}


LOSSES = {
    "squared_error": PointwiseLoss(squared_error, "numbers"),
    "absolute_error": PointwiseLoss(absolute_error, "numbers"),
    "zero_one": PointwiseLoss(zero_one, "labels", ("threshold", "positive")),
    "log_loss": PointwiseLoss(log_loss, "probabilities", ("classes", "positive", "clip")),
    "brier": PointwiseLoss(brier, "probabilities", ("classes", "positive"), facts=facts_of_brier),
    "pinball": PointwiseLoss(pinball, "numbers", ("quantile",), level_of),
    "percentage_error": PointwiseLoss(percentage_error, "numbers"),
    "hinge": PointwiseLoss(hinge, "margins", ("positive",)),
    "net_benefit": PointwiseLoss(
        net_benefit, "probabilities", ("threshold", "positive"), cut_of, facts_of_net_benefit
    ),
    "squared_log_error": PointwiseLoss(squared_log_error, "numbers"),
    "poisson_deviance": PointwiseLoss(poisson_deviance, "numbers"),
    "gamma_deviance": PointwiseLoss(gamma_deviance, "numbers"),
    "huber": PointwiseLoss(huber, "numbers", ("delta",), delta_of),
    "interval_score": PointwiseLoss(interval_score, "forecasts", ("level",)),
    "weighted_interval_score": PointwiseLoss(weighted_interval_score, "forecasts", ("level",)),
    "overprediction": PointwiseLoss(partial(part_of_score, at=0), "forecasts", ("level",)),
    "underprediction": PointwiseLoss(partial(part_of_score, at=1), "forecasts", ("level",)),
    "dispersion": PointwiseLoss(partial(part_of_score, at=2), "forecasts", ("level",)),
    "crps": PointwiseLoss(crps, "forecasts", ("fair", "distribution")),
    "energy_score": PointwiseLoss(energy_score, "forecasts", ("fair",)),
    "coverage": PointwiseLoss(coverage, "forecasts", ("level",), facts=facts_of_coverage),
}
"""Every loss of points by name."""


def pointwise(
    truth: Values, prediction: Values, loss: str | Callable[[Any, Any], Any], options: LossOptions
) -> FloatArray:
    """One loss per point, by name or by a custom function."""
    if callable(loss):
        checked_loss(loss, options)
        # The function may return its argument.
        values = floats(np.array(loss(readonly(truth), readonly(prediction))), "loss")
        if values.shape != (len(truth),):
            raise LogError(
                f"the loss function returned an array of shape {values.shape} for {len(truth):,} "
                "points. Expected one number per point: do not average inside it."
            )
        return values
    checked_loss(loss, options)
    return LOSSES[loss](truth, prediction, options)


def checked_loss(loss: object, options: LossOptions) -> None:
    """Reject an unknown loss, and missing or unused options."""
    if callable(loss):
        refuse_unused("a custom function", options, ("classes",))
        return
    if not isinstance(loss, str) or loss not in LOSSES:
        raise unknown_loss(loss)
    refuse_unused(f"loss={loss!r}", options, LOSSES[loss].takes)
    if (check := LOSSES[loss].check) is not None:
        check(options)
    cut = options.threshold
    if cut is not None and not (is_number(cut) and 0 <= cut <= 1):
        raise LogError(
            f"threshold={cut!r} is not a probability. Expected a number from 0 to 1, such as "
            f"threshold=0.5."
        )
    check_clip(options.clip)
    if not isinstance(options.positive, Hashable):
        raise LogError(
            f"positive={options.positive!r} is not a label. Expected a label of the truth."
        )


def check_clip(clip: Any) -> None:
    """Reject an invalid bound of probabilities."""
    if clip is not None and not (is_number(clip) and 0 < clip < 0.5):
        raise LogError(
            f"clip={clip!r} is not a small probability. Expected a number above 0 and "
            f"below 0.5, such as clip=1e-6."
        )


def facts_of_loss(loss: object, options: LossOptions) -> dict[Any, Any]:
    """Return the attrs of a log of losses: their name, and what results need to know of them."""
    facts: dict[Any, Any] = {"loss": loss_name(loss)}
    if loss == "accuracy":
        facts = {**facts_of_score("accuracy", "1 - score"), "range": (0.0, 1.0)}
    if isinstance(loss, str) and loss in LOSSES and (own := LOSSES[loss].facts) is not None:
        facts |= own(options)
    return facts


def loss_name(loss: object) -> str:
    """Return the name of a loss, or of a function."""
    return str(loss if isinstance(loss, str) else getattr(loss, "__name__", "loss"))


CALIBRATION_ERRORS = ("ece", "mce", "expected_calibration_error", "calibration_error")
"""Metrics of binned calibration, by name."""


def unknown_loss(loss: object) -> LogError:
    """Create the error for an unknown loss, with the closest one by meaning or spelling."""
    if isinstance(loss, str) and loss.lower() in CALIBRATION_ERRORS:
        return LogError(
            f"{loss} has no interval: it is biased upward by noise, and near calibration its "
            "influences vanish. Use loss='calibration_slope', or a proper score: "
            "loss='brier' or loss='log_loss'."
        )
    name = plainly(loss).removeprefix("neg-").removesuffix("-loss").removesuffix("-score")
    known = (
        f"{', '.join(map(repr, LOSSES))}, a function (truth, prediction) -> losses, or a metric: "
        f"{', '.join(METRICS)}"
    )
    if name.startswith("median"):
        return LogError(
            f"loss={loss!r} has no standard error without a density estimate. Use a robust mean "
            "instead: loss='absolute_error', or loss='huber' with delta=."
        )
    meant = read_names("loss").get(name) or read_names("near").get(name)
    near = f" Did you mean {meant!r}?" if meant else ""
    near = near or nearest(name, [*LOSSES, *METRICS])
    return LogError(f"Unknown loss {loss!r}.{near} Expected one of {known}.")


def list_users(option: str) -> list[str]:
    """List the losses and metrics that use an option."""
    users = [name for name, loss in LOSSES.items() if option in loss.takes]
    return users + [name for name, metric in METRICS.items() if metric.uses(option)]


def refuse_unused(who: str, options: LossOptions, taken: Sequence[str]) -> None:
    """Reject an option that has no effect."""
    for option in fields(options):
        if getattr(options, option.name) is not None and option.name not in taken:
            users = list_users(option.name)
            raise LogError(
                f"{who} does not use {option.name}=, which applies only to "
                f"loss={' or '.join(map(repr, users))}. Omit it, or use that loss."
            )


def floats(values: Values, what: str) -> FloatArray:
    """Convert numbers to float64, or raise for the first non-number; text is not converted."""
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if values.dtype == object:
        stray = next((v for v in values.flat if v is not None and not isinstance(v, NUMBERS)), None)
        if stray is None:
            return np.asarray(values, dtype=np.float64)
    else:
        stray = next(values.flat, values.dtype)
    shown = spelled(stray) if isinstance(stray, str) else str(stray)
    way = "Convert them with pd.to_numeric; for labels use loss='zero_one'."
    if isinstance(stray, str) and "," in stray and not stray.strip("+-0123456789.,"):
        comma, dot = stray.rfind(","), stray.rfind(".")
        marks = "thousands=','" if dot > comma else "decimal=','"
        marks += " and thousands='.'" if 0 <= dot < comma else ""
        way = f"Read the file with {marks}, an option of pandas.read_csv and read_log."
    raise LogError(
        f"the {what} contains {shown}, which is not a number. Expected numbers for this loss. {way}"
    )


def difference(truth: Values, prediction: Values) -> FloatArray:
    """Truth minus prediction."""
    return floats(truth, "truth") - floats(prediction, "prediction")


def known(values: Values) -> FloatArray:
    """Return 1 for present values and NaN for missing ones."""
    missing = pd.isna(values) if values.dtype == object else values != values  # NaN and NaT
    return np.where(missing, np.nan, 1.0)


def find_kinds(labels: Values) -> set[bool]:
    """Find whether labels are text, numbers, or both; nothing if all are missing."""
    if labels.dtype == object:
        found = pd.unique(labels)
        return {isinstance(label, str) for label in found[known(found) == 1]}
    return {labels.dtype.kind == "U"} if (labels == labels).any() else set()


def refuse_other_labels(who: str, truth: Values, prediction: Values) -> None:
    """Reject predictions that cannot be labels of the truth, so all of them would be wrong."""
    kinds = find_kinds(truth), find_kinds(prediction)
    if all(kinds) and kinds[0].isdisjoint(kinds[1]):
        here = (known(truth) * known(prediction)) == 1
        row = int(here.argmax())
        raise LogError(
            f"{who} compares labels, but one of truth and prediction is text and the other "
            f"numeric (row {row:,}: {spelled(truth[row])} and {spelled(prediction[row])}). "
            "Expected the same labels in both. Convert one of them, as in "
            "frame['prediction'].astype(int); for probabilities pass threshold=0.5 and positive=."
        )
    if prediction.dtype.kind != "f" or truth.dtype.kind not in "biuf":
        return
    decimal = np.flatnonzero((prediction != np.floor(prediction)) & (prediction == prediction))
    if not len(decimal):
        return
    labels = np.unique(truth[known(truth) == 1])
    decimal = decimal[~np.isin(prediction[decimal], labels)]
    values = prediction[decimal]
    shares = decimal[(values > 0) & (values < 1)]
    if len(shares) and set(labels) <= {0, 1}:
        raise LogError(
            f"{who} compares labels, but the predictions look like probabilities (row "
            f"{shares[0]:,}: {spelled(prediction[shares[0]])}). Expected labels such as 0 "
            "and 1. Pass threshold=0.5, or use brier or log_loss."
        )
    if len(np.unique(values)) >= MANY_DECIMALS:
        raise LogError(
            f"{who} compares labels, but the predictions are decimal numbers that do not occur in "
            f"the truth (row {decimal[0]:,}: {spelled(values[0])}). Expected labels. For numbers "
            "use squared_error or absolute_error."
        )


def probabilities(prediction: Values) -> FloatArray:
    """Numbers from 0 to 1."""
    p = floats(prediction, "prediction")
    outside = np.argwhere((p < 0) | (p > 1))
    if len(outside):
        at = tuple(outside[0])
        raise LogError(
            f"a predicted probability is {spelled(p[at])} (row {at[0]:,}). Expected numbers from "
            "0 to 1. If these are scores, use hinge, or convert them to probabilities."
        )
    return p


def signs(truth: Values, options: LossOptions) -> FloatArray:
    """1 for the positive class, -1 for the other one, NaN where the truth is missing."""
    there = known(truth)
    here = truth[there == 1]
    labels = list(dict.fromkeys(here)) if here.dtype == object else np.unique(here).tolist()
    positive: Any = options.positive
    if positive is None:
        if not set(labels) <= {0, 1} and not set(labels) <= {-1, 1}:
            raise LogError(
                f"the truth has {named_labels(labels)}. Expected 0 and 1 (or -1 and 1, or "
                f"booleans) if one probability or score is predicted. {which_label(labels)}"
            )
        positive = 1
    elif len(labels) > 2:
        raise LogError(
            f"the truth has {len(labels)} labels. Expected two if one probability or score is "
            "predicted. Otherwise pass a probability for each class with classes=."
        )
    elif len(labels) == 2 and positive not in labels:
        raise LogError(
            f"positive={positive!r} is not a label of the truth. Expected {labels[0]!r} or "
            f"{labels[1]!r}."
        )
    return np.where(np.asarray(truth == positive), 1.0, -1.0) * there


def named_labels(labels: Sequence[Any]) -> str:
    """List a few labels; count many."""
    if len(labels) == 1:
        return f"the label {labels[0]!r} alone"
    many = len(labels) > MOST
    return f"{len(labels):,} values" if many else f"the labels {listed(map(repr, labels))}"


def which_label(labels: Sequence[Any]) -> str:
    """Ask for the predicted label, or for the probabilities of all if there are more than two."""
    if len(labels) <= 2:
        either = " or ".join(f"positive={label!r}" for label in labels)
        return f"Specify the predicted label: {either}{' or positive=…' * (len(labels) == 1)}."
    return (
        "Pass a probability for each class with classes=; for numbers use a loss such as "
        "squared_error."
    )


def read_classes(options: LossOptions) -> list[Any]:
    """Read the labels of the columns of probabilities."""
    classes = list(options.classes or ())
    if options.positive is not None:
        raise LogError("classes= and positive= were both given. Expected only one of them.")
    if len(set(classes)) < len(classes):
        raise LogError(f"classes={classes!r} contains a label twice. Expected each class once.")
    return classes


def one_hot(
    truth: Values, prediction: Values, options: LossOptions
) -> tuple[FloatArray, FloatArray]:
    """Return indicators of the observed class, and its predicted probability."""
    classes = read_classes(options)
    hot = np.column_stack([np.asarray(truth == label, dtype=np.float64) for label in classes])
    stray = np.flatnonzero((hot.sum(axis=1) != 1) & ~np.isnan(known(truth)))
    if len(stray):
        raise LogError(
            f"the truth is {spelled(truth[stray[0]])} in row {stray[0]:,}, which is not among "
            f"classes={classes!r}. Expected the classes in the order of their columns."
        )
    p = probabilities(prediction)
    off = np.flatnonzero(np.abs(p.sum(axis=1) - 1) > 1e-3)
    if len(off):
        raise LogError(
            f"the probabilities of row {off[0]:,} sum to {p[off[0]].sum():.6g}. Expected a sum "
            f"of 1, with one column for each of classes={classes!r}."
        )
    there = known(truth)
    return hot * there[:, None], (p * hot).sum(axis=1) * there


# --- columns of any container ---------------------------------------------------------------------


def flat_columns(column: pd.Series) -> Any:
    """Convert a column to an array of numbers if it is numeric, otherwise of objects."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not isinstance(column.dtype, np.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy()


def flattened(array: Values) -> Any:
    """Flatten an array to one column, with None for any marker of a missing object."""
    values = array.reshape(-1)
    if values.dtype == object:
        values = values.copy()
        values[pd.isna(values)] = None
    return values


def broadcast(
    predictions: xr.Dataset, names: Sequence[Hashable]
) -> tuple[tuple[xr.DataArray, ...], xr.DataArray]:
    """Broadcast variables against each other; also the first with the coordinates of all."""
    parts = xr.broadcast(*(predictions[name] for name in names))
    coords = xr.merge([part.coords.to_dataset() for part in parts], compat="override").coords
    return parts, parts[0].assign_coords(coords)


def map_columns(
    predictions: pd.DataFrame | xr.Dataset, names: Sequence[Hashable],
    work: Callable[..., FloatArray], dims: Sequence[Hashable] | None = None,
) -> Any:  # fmt: skip
    """Apply a function of flat columns to columns of a frame, or to variables of a dataset.

    With ``dims`` it receives arrays in which these dimensions come last.
    """
    if isinstance(predictions, pd.DataFrame):
        columns = [flat_columns(predictions[name]) for name in names]
        return pd.Series(work(*columns), index=predictions.index, copy=False)
    parts, whole = broadcast(predictions, names)

    def of_blocks(*blocks: Values) -> FloatArray:
        return work(*map(flattened, blocks)).reshape(blocks[0].shape)

    core = [] if dims is None else list(dims)
    found: xr.DataArray = xr.apply_ufunc(
        of_blocks if dims is None else work, *xr.unify_chunks(*parts),
        input_core_dims=[core] * len(parts), output_core_dims=[core], dask="parallelized",
        output_dtypes=[np.float64],
    )  # fmt: skip
    return whole.copy(data=found.transpose(*whole.dims).data)
