"""Repeated answers to the same points: how much of the variance more of them would remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.results import Result
from cvstats.errors import LogError, is_several, listed, place
from cvstats.intervals._method import LogMethod
from cvstats.intervals._requirements import single_dataset
from cvstats.intervals._sources import flag_ignored_sources
from cvstats.log.log import Log
from cvstats.options import Missing, whole_number

ROUNDING = 1e-12
"""A share of the variance between points below which a negative part of it is rounding."""


def check_repetitions(options: Mapping[str, Any]) -> None:
    """Refuse what are not numbers of answers."""
    if not list_numbers(options["repetitions"]):
        raise LogError(
            "repetitions=() is empty. Expected one number of answers or more, as in "
            "repetitions=(1, 4, 16)."
        )


def repeated_answers(design: Design) -> str | None:
    """Ask for one test set whose points were evaluated several times."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if "point" not in design.levels:
        return (
            "the log has no level 'point', so it is unknown which answers belong to one point. "
            "Add the identity of each point to the index."
        )
    if design.has("fold"):
        return (
            f"the log has {design.number('fold'):,} folds, each tested with another model. Take "
            f"one of them: {design.take('fold')}; or use power, which plans repetitions of "
            f"cross-validation."
        )
    if "fold" not in design.levels and design.has("source"):
        return (
            f"a log with sources and no folds leaves one source out at a time, with "
            f"{design.number('source'):,} models. For the tasks of a benchmark ask for each: "
            f"by='source'. If one model answered all points, say so with a fold: "
            f"pandas.concat({{0: log}}, names=['fold'])."
        )
    if not design.has("repetition"):
        return (
            "the log has one repetition, which does not show how much answers to one point "
            "differ. Expected two or more with labels of a level 'repetition'."
        )
    return None


@LogMethod(
    check=check_repetitions,
    requires=repeated_answers,
    needs="one test set whose points were evaluated twice or more",
    target="standard error of the mean over points drawn as these were, with K answers to each",
    guarantee="unbiased variances, for independent points and answers that are independent given "
    "the point",
    fits="1",
    reference="Miller (2024), arXiv:2411.00640",
    needs_losses=True,
    groups_at_once=True,
)
def answers(
    log: Log,
    *,
    repetitions: int | Sequence[int] = (1, 4, 16),
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Split the variance of repeated answers: between points, and between answers to one point.

    The target is the standard error of the mean over points drawn as these were, if each were
    answered K times. The variance of the points' means has two parts: the variance between
    points, which stays, and the variance of the answers to one point, which is divided by K.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        One test set, each point of which was evaluated twice or more (level ``repetition``:
        epochs, runs, samples of a language model), some perhaps more often than others. Losses
        in any unit, or their differences.
    repetitions : int or sequence of int, optional
        The numbers K to give a standard error for.
    by : str, optional
        A level (or coordinate): one result for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves its point out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, the mean over
        points; ``se``, its standard error with the answers there are, ``sqrt(B / n)``; ``between``
        (B), ``within`` (W) and ``point_variance`` (omega^2, raw), in squared units of the loss;
        ``se_1``, ``se_4``, ... with so many answers, and ``se_limit`` with no end of them; and
        ``caution``. ``n_points`` and ``n_answers`` are in ``attrs``.

    Raises
    ------
    LogError
        If there is one repetition, a point was answered once, points have no names, or the log
        has folds.

    See Also
    --------
    cvstats.power : How many points or answers a comparison takes.
    cvstats.clustered : Points and seeds as two samples at once.
    cvstats.holdout : The interval for the mean over these answers.

    Notes
    -----
    With s_i^2 the variance of the K_i answers to point i of n, W the mean of the s_i^2 and B the
    variance of the points' means,

    .. math::

        \omega^2 = B - \frac1n \sum_i \frac{s_i^2}{K_i}, \qquad
        \mathrm{se}_K^2 = \frac{1}{n} \left(\omega^2 + \frac{W}{K}\right) .

    Unbiased for points that are independent and answers that are independent given the point. A
    negative ``point_variance`` counts as 0 in the standard errors, and ``caution`` says ``points
    alike``. More answers divide the variance of a single one by ``(omega^2 + W) / omega^2`` at
    most.

    Seeds of one network are not such answers if one seed is better than another on all points:
    then more points do not help, and ``clustered(by=("point", "repetition"))`` is right.

    References
    ----------
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.

    Examples
    --------
    Twelve questions, each answered four times:

    >>> import cvstats, pandas as pd
    >>> index = pd.MultiIndex.from_product([range(12), range(4)], names=["point", "repetition"])
    >>> wrong = "0001 0000 1110 0010 1001 1111 0100 1000 1111 0100 0000 0111".replace(" ", "")
    >>> losses = pd.Series([float(mark) for mark in wrong], index, name="llm")
    >>> losses.cvci.answers()[["estimate", "se", "se_1", "se_16", "se_limit"]].round(3)
           estimate     se   se_1  se_16  se_limit
    model
    llm       0.438  0.103  0.146  0.088     0.083
    """
    # Compare the means of the points, and the answers to each.
    points = log.moments([name for name in ("source", "point") if name in log.design.levels])
    check_numbers_of_answers(points)
    n, k = points.n_cells, points.count[:, None]
    means = points.cell_means().over(())
    between = means.m2 / (n - 1)
    single = points.m2 / (k - 1)
    within = points.average(single)
    stays = between - points.average(single / k)
    columns: dict[str, NDArray[Any]] = {
        "estimate": means.location, "se": np.sqrt(between / n), "between": between,
        "within": within, "point_variance": stays,
    }  # fmt: skip
    left = np.maximum(stays, 0.0)
    for number in list_numbers(repetitions):
        columns[f"se_{number}"] = np.sqrt((left + within / number) / n)
    columns["se_limit"] = np.sqrt(left / n)
    columns |= {"n_points": n, "n_answers": points.sum(points.count).astype(np.int64)}
    rows = {
        name: np.broadcast_to(values, between.shape).reshape(-1) for name, values in columns.items()
    }
    flags = np.where(stays < -ROUNDING * between, np.int64(Caution.POINTS_ALIKE), np.int64(0))
    flags[np.isnan(between)] = Caution.NO_LOSSES
    result = Result("answers", rows, flags.reshape(-1))
    return flag_ignored_sources(result, log.design, of_means=False)


def list_numbers(repetitions: Any) -> list[int]:
    """List the numbers of answers, each once."""
    given = list(repetitions) if is_several(repetitions) else [repetitions]
    return list(dict.fromkeys(whole_number("repetitions", number, 1) for number in given))


def check_numbers_of_answers(points: Cells) -> None:
    """Refuse a single point, and points that were answered once."""
    if (points.n_cells < 2).any():
        raise LogError(
            "answers needs two points or more, and this log has one. Expected the whole test set."
        )
    once = np.flatnonzero(points.count < 2)
    if len(once):
        names = [
            place({
                level: labels[code]
                for level, labels, code in zip(
                    points.levels, points.labels, points.codes[row].tolist(), strict=True
                )
            })
            for row in once.tolist()
        ]  # fmt: skip
        raise LogError(
            f"these points have one answer: {listed(names)}. Expected two or more of each, "
            f"which show how much answers to one point differ. Ask again, or leave them out."
        )
