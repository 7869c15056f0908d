"""From a log of bootstrap samples to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cvstats.api.rates import Rates, no_information_of
from cvstats.containers import Log
from cvstats.containers.resamples import Resample, draws, resamples, without_undrawn
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Columns
from cvstats.core.result import Result
from cvstats.core.types import FloatArray
from cvstats.errors import checked_choice
from cvstats.intervals import bootstrap
from cvstats.intervals.registry import require

__all__ = [
    "run_bootstrap_632",
    "run_bootstrap_oob",
    "run_case_bootstrap",
    "run_location_shifted",
    "run_two_stage",
]

Measure = Callable[[Resample, FloatArray], tuple[float, ...]]


def apparent_error(data: Resample, values: FloatArray) -> float:
    """Mean loss of the fit on a data set itself, weighted by how often each point is in it."""
    if data.own is None:
        return np.nan
    return float(bootstrap.weighted_means(data.own, data.own_losses(values))[0])


def measured(
    log: Log, losses: Columns | None, data: Sequence[Resample], measure: Measure, width: int
) -> FloatArray:
    """Measure each data set in each column: numbers, data sets by columns; NaN where masked."""
    found = [
        [(np.nan,) * width if values is None else measure(one, values) for one in data]
        for values in log.columns(losses)
    ]
    return np.array(found, dtype=np.float64).transpose(2, 1, 0)


def run_bootstrap_oob(
    log: Log,
    losses: Columns | None = None,
    *,
    monte_carlo: str = "kept",
    alpha: float = 0.05,
) -> Result:
    """Leave-one-out bootstrap with the standard error of Efron and Tibshirani."""
    require("bootstrap_oob", log.design)
    (data,) = resamples(log.design)
    data.check_draws()
    columns = (None if v is None else data.losses(v) for v in log.columns(losses))
    found = bootstrap.out_of_bag(data.bags, columns, monte_carlo=monte_carlo)
    fits, points = data.bags.counts.shape
    return bootstrap.bootstrap_oob(
        found, alpha=alpha, n_points=points, n_repetitions=fits, monte_carlo=monte_carlo
    )


def run_bootstrap_632(
    log: Log,
    losses: Columns | None = None,
    *,
    plus: bool = True,
    no_information: Rates | None = None,
    monte_carlo: str = "kept",
    alpha: float = 0.05,
) -> Result:
    """.632+ or .632 error, with the standard error of the leave-one-out bootstrap in proportion."""
    require("bootstrap_632", log.design)
    rates = None
    if plus:
        rates = no_information_of(
            log, no_information, method="bootstrap_632", without="plus=False (the .632 error)"
        )
    (data,) = resamples(log.design)
    data.check_draws()
    apparent: list[float] = []

    def columns() -> Iterator[FloatArray | None]:
        for values in log.columns(losses):
            apparent.append(np.nan if values is None else apparent_error(data, values))
            yield None if values is None else data.losses(values)

    found = bootstrap.out_of_bag(data.bags, columns(), monte_carlo=monte_carlo)
    fits, points = data.bags.counts.shape
    return bootstrap.bootstrap_632(
        found, np.array(apparent), rates,
        alpha=alpha, n_points=points, n_repetitions=fits, monte_carlo=monte_carlo,
    )  # fmt: skip


def run_case_bootstrap(
    log: Log,
    losses: Columns | None = None,
    *,
    leave_one_out: FloatArray | None = None,
    alpha: float = 0.05,
) -> Result:
    """Percentiles of case cross-validation; ``leave_one_out`` has the mean loss of each column."""
    log = without_undrawn(log)
    require("case_bootstrap", log.design)
    drawn = draws(log.design)
    theta = np.stack(
        [
            np.full(drawn.fits, np.nan)
            if values is None
            else bootstrap.drawn_means(drawn.fit, drawn.count, values[drawn.rows])
            for values in log.columns(losses)
        ],
        axis=1,
    )
    mean = theta[0] + (theta - theta[0]).mean(axis=0)
    estimate = mean if leave_one_out is None else leave_one_out
    extra: dict[str, FloatArray | float] = {"n_points": drawn.points}
    extra |= {"n_repetitions": drawn.fits}
    if leave_one_out is not None:
        extra = {"bias": mean - estimate, **extra}
    return bootstrap.percentile(
        "case_bootstrap", estimate, theta, shift=estimate - mean, alpha=alpha, extra=extra,
        caution=np.full(theta.shape[1], 0 if drawn.whole else Caution.OTHER_DRAWS, dtype=np.int64),
        attrs={"correction": "none" if leave_one_out is None else "leave-one-out"},
    )  # fmt: skip


def checked_correction(correction: str) -> None:
    """Refuse a correction that nobody knows."""
    checked_choice("correction", correction, bootstrap.CORRECTIONS)


def errors_of(correction: str) -> Measure:
    """Choose what a correction needs of a data set: apparent error, and error or corrected."""

    def error(data: Resample, values: FloatArray) -> tuple[float, ...]:
        apparent, losses = apparent_error(data, values), data.losses(values)
        if correction != "harrell" or data.own is None:
            return apparent, bootstrap.out_of_bag_error(data.bags, losses)
        own = bootstrap.weighted_means(data.bags, losses)
        whole = bootstrap.weighted_means(data.bags, losses, data.own.counts)
        return apparent, bootstrap.harrell(apparent, own, whole)

    return error


def estimates(
    correction: str, apparent: FloatArray, error: FloatArray, rates: FloatArray | None
) -> bootstrap.Corrected:
    """Correct apparent errors by a chosen rule."""
    if correction == "harrell":
        plain = np.full_like(error, np.nan)
        return bootstrap.Corrected(error, plain, plain, np.zeros(error.shape, dtype=bool))
    return bootstrap.corrected(apparent, error, rates)


def never_out(data: Sequence[Resample], correction: str) -> int:
    """Caution where some point of some data set is in all of its samples."""
    if correction == "harrell" or all((one.bags.times > 0).all() for one in data):
        return 0
    return int(Caution.NEVER_OUT_OF_BAG)


def run_location_shifted(
    log: Log,
    losses: Columns | None = None,
    *,
    correction: str = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
) -> Result:
    """Percentiles of the apparent errors of the bootstrap fits, moved by the correction."""
    checked_correction(correction)
    require("location_shifted", log.design)
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="location_shifted",
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    (data,) = resamples(log.design)
    error = errors_of(correction)

    def measure(one: Resample, values: FloatArray) -> tuple[float, ...]:
        own = bootstrap.weighted_means(one.bags, one.losses(values))
        return (*error(one, values), *own.tolist())

    found = measured(log, losses, [data], measure, 2 + len(data.fits))[:, 0]
    apparent, second, own = found[0], found[1], found[2:]
    made = estimates(correction, apparent, second, rates)
    extra: dict[str, FloatArray | float] = {"apparent": apparent}
    if correction != "harrell":
        extra |= {"out_of_bag": second}
    if rates is not None:
        extra |= {"no_information": rates}
    caution = np.full(len(apparent), never_out([data], correction), dtype=np.int64)
    caution[made.clipped] |= Caution.BOUNDED
    extra |= {"n_points": data.bags.counts.shape[1], "n_repetitions": len(data.fits)}
    return bootstrap.percentile(
        "location_shifted", made.estimate, own, shift=made.estimate - apparent, alpha=alpha,
        extra=extra, caution=caution, attrs={"correction": correction},
    )  # fmt: skip


def run_two_stage(
    log: Log,
    losses: Columns | None = None,
    *,
    correction: str = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
) -> Result:
    """Percentiles of the corrected error, computed anew from each outer sample."""
    checked_correction(correction)
    require("two_stage", log.design)
    data = resamples(log.design)
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="two_stage", samples=[one.label for one in data],
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    apparent, second = measured(log, losses, data, errors_of(correction), 2)
    made = estimates(correction, apparent, second, rates)
    outer = np.array([one.label != 0 for one in data])
    caution = np.full(apparent.shape[1], never_out(data, correction), dtype=np.int64)
    caution[made.clipped.any(axis=0)] |= Caution.BOUNDED
    extra: dict[str, FloatArray | float] = {
        "n_points": data[int((~outer).argmax())].bags.counts.shape[1],
        "n_samples": int(outer.sum()),
        "n_repetitions": min(len(one.fits) for one in data),
    }
    return bootstrap.percentile(
        "two_stage", made.estimate[~outer][0], made.estimate[outer],
        shift=np.zeros(apparent.shape[1]), alpha=alpha, extra=extra, caution=caution,
        attrs={"correction": correction},
    )  # fmt: skip
