"""Repeated answers to the same points: how much variance additional answers would remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.folds import tally
from cvstats.core.results import Result, flag, make_result
from cvstats.errors import LogError, is_several, listed, place
from cvstats.intervals._method import LogMethod, flag_ignored_sources
from cvstats.intervals._requirements import single_dataset
from cvstats.log.log import Log
from cvstats.options import Missing, whole_number

ROUNDING = 1e-12
"""Share of the variance between points below which a negative value is rounding error."""


def check_repetitions(options: Mapping[str, Any]) -> None:
    """Reject invalid numbers of answers."""
    if not list_numbers(options["repetitions"]):
        raise LogError(
            "repetitions=() is empty. Expected at least one number of answers, as in "
            "repetitions=(1, 4, 16)."
        )


def repeated_answers(design: Design) -> str | None:
    """Require one test set whose points were evaluated several times."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if "point" not in design.levels:
        return (
            "the log has no level 'point', so answers to the same point cannot be matched. Add "
            "an identifier for each point to the index."
        )
    if design.has("fold"):
        return (
            f"the log has {design.number('fold'):,} folds, each used to test a different model. "
            f"Select one fold: {design.take('fold')}; or use power, which plans repetitions of "
            "cross-validation."
        )
    if not design.has("repetition"):
        return (
            "the log has one repetition, which does not show how much answers to the same point "
            "differ. Expected at least two, labeled by the level 'repetition'."
        )
    return None


def find_problem(log: Log) -> str | None:
    """Explain what is missing: several points, each with several answers by the same model."""
    if (words := find_several_models(log)) is not None:
        return words
    points = tally(log.design, "source", "point")
    if (points.n_cells < 2).any():
        return "the log has only one point. Pass the whole test set."
    once = np.flatnonzero(points.count < 2)
    if not len(once):
        return None
    names = listed([place(points.key(row)) for row in once.tolist()])
    return (
        f"these points have only one answer: {names}. Collect more answers, or drop these points."
    )


def find_several_models(log: Log) -> str | None:
    """Explain that each source was answered by another model, if it was."""
    design = log.design
    if log.only_tested or "fold" in design.levels or "source" not in design.levels:
        return None
    if (tally(design, "source").n_cells < 2).all():
        return None
    return (
        "a log with sources and no folds leaves one source out at a time, with "
        f"{design.number('source'):,} models. If one model answered all points, set "
        "log.attrs['models_are'] = 'fixed'. For the tasks of a benchmark pass by='source'."
    )


@LogMethod(
    check=check_repetitions,
    requires=repeated_answers,
    of_losses=find_problem,
    needs="one test set whose points were each evaluated at least twice",
    target="standard error of the mean over points from the same population, with K answers per "
    "point",
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
    r"""Split the variance of repeated answers into parts between and within points.

    The target is the standard error that the mean over points would have if each point were
    answered K times. The variance of the point means has two parts: the variance between points,
    which additional answers do not reduce, and the variance of the answers to one point, which is
    divided by K.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        One test set in which each point was evaluated at least twice (level ``repetition``:
        epochs, runs, samples of a language model), possibly more often for some points. Losses in
        any unit, or their differences.
    repetitions : int or sequence of int, optional
        Numbers of answers K for which to compute a standard error.
    by : str, optional
        A level (or coordinate): one result for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their points are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, the mean over
        points; ``se``, its standard error with the existing answers, ``sqrt(B / n)``; ``between``
        (B), ``within`` (W) and ``point_variance`` (omega^2, raw), in squared units of the loss;
        ``se_1``, ``se_4``, ... with that many answers per point, and ``se_limit`` with infinitely
        many; and ``caution``. ``n_points`` and ``n_answers`` are in ``attrs``.

    Raises
    ------
    LogError
        If there is one repetition, a point was answered only once, points have no labels, or the
        log has folds.

    See Also
    --------
    cvstats.power : How many points or answers a comparison needs.
    cvstats.clustered : Points and seeds as two sampling units.
    cvstats.holdout : The interval for the mean over these answers.

    Notes
    -----
    With s_i^2 the variance of the K_i answers to point i of n, W the mean of the s_i^2 and B the
    variance of the points' means,

    .. math::

        \omega^2 = B - \frac1n \sum_i \frac{s_i^2}{K_i}, \qquad
        \mathrm{se}_K^2 = \frac{1}{n} \left(\omega^2 + \frac{W}{K}\right) .

    Both variances are unbiased if the points are independent and the answers are independent given
    the point. If ``point_variance`` is negative, the standard errors use 0 instead, and ``caution``
    contains ``similar points``. More answers reduce the variance of a single answer by a factor of
    at most ``(omega^2 + W) / omega^2``.

    Training seeds are not such answers, because one seed can be better than another on all points,
    and more points do not help then. Use ``clustered(by=("point", "repetition"))`` instead.

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
          estimate    se   se_1  se_16 se_limit
    model
    llm       0.44  0.10  0.146  0.088    0.083
    """
    # Compute the variance of the point means, and of the answers to each point.
    if (words := find_problem(log)) is not None:
        raise LogError(f"answers needs {answers.record.needs}; {words}")
    points = log.moments([name for name in ("source", "point") if name in log.design.levels])
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
    result = make_result(
        "answers", columns, flag(Caution.POINTS_ALIKE, stays < -ROUNDING * between)
    )
    if log.fixed_sources:  # the variance includes that between the sources
        return result
    return flag_ignored_sources(result, log.design, of_means=False)


def list_numbers(repetitions: Any) -> list[int]:
    """List the numbers of answers, each once."""
    given = list(repetitions) if is_several(repetitions) else [repetitions]
    return list(dict.fromkeys(whole_number("repetitions", number, 1) for number in given))
