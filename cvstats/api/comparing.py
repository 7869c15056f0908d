"""Is one model better than another? Paired differences and their tests."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from cvstats.api.adjusting import simultaneous, with_adjusted
from cvstats.api.pairs import (
    Options,
    ask_pairs,
    based,
    checked_options,
    columns_of,
    every_two,
    pairs_of,
    usual,
)
from cvstats.api.running import Alternative, Compared, Losses, Missing, checked_alpha
from cvstats.comparisons import joint
from cvstats.comparisons.paired import ADJUSTMENTS, adjusted, tested
from cvstats.containers import Log, is_dask_frame, later, read
from cvstats.containers.align import against, every_pair, subtracted
from cvstats.core.chunked import Differences
from cvstats.core.result import ALTERNATIVES, Result
from cvstats.errors import LogError, checked_choice
from cvstats.plans.drawing import Rng, checked_rng, seed_of, whole_number

__all__ = ["compare", "difference"]


def difference(losses: Losses, other: Losses | None = None, *, reference: Hashable = None) -> Any:
    """Take paired differences: the loss of the model minus the loss of the other.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models: the others minus this one.
        With neither, all pairs.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log again, with the levels of ``losses``; negative where the model is better.
        All pairs of a frame have columns ``(model, other)``, those of an array a dimension
        ``pair``.

    Raises
    ------
    LogError
        If the two logs differ in points or folds (the first that do are named), or there is
        only one model.

    Notes
    -----
    Every method that takes a log takes this one: its estimate is then the difference in
    error. Losses of 0 and 1 have differences of -1, 0 and 1, so intervals for proportions do
    not apply.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671, section 4.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> gap = losses["ridge"].cvci.difference(losses["random_forest"])
    >>> float(gap.mean().round(1))
    -181.8
    """
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    if other is not None:
        return subtracted(losses, other)
    log = read(losses)
    pairs_of(log, reference)
    return every_pair(losses) if reference is None else against(losses, reference)


def compare(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    method: Compared | None = None,
    options: Options = None,
    alternative: Alternative = "two-sided",
    adjust: Literal["holm", "bh", "max-t"] | None = "holm",
    alpha: float = 0.05,
    n_draws: int = 10_000,
    rng: Rng = None,
    missing: Missing = "raise",
) -> Any:
    """Test whether models differ, on paired losses.

    The target is the difference of what the interval covers; for `wald` the difference of the
    average test errors of the trained models. With d_i the loss of the model minus the loss
    of the other on evaluation i, the statistic is ``mean(d) / se(mean(d))``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    method : str, optional
        The interval that gives the standard error and the law of the statistic. Without it:
        ``"wald"`` for folds and sources left out, ``"holdout"`` for one test set, and for
        another design what `interval` chooses, or ``"bootstrap_oob"`` if that has no
        differences.
    options : mapping, optional
        Options of that method by name, such as ``{"variance": "within-fold"}`` for `wald`,
        ``{"train_size": 90}`` for `corrected_t` or ``{"test": "f"}`` for `five_by_two`.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` asks whether the model has the smaller error.
    adjust : {"holm", "bh", "max-t", None}, optional
        How ``p_adjusted`` allows for several comparisons (in each carried cell): against any
        false difference, or for the share of false ones. ``"max-t"`` is of the first kind and
        uses how the comparisons depend on each other; it alone also widens ``lower`` and
        ``upper``, which then cover all differences at once.
    alpha : float, optional
        One minus the level of the intervals.
    n_draws : int, optional
        For ``"max-t"``, how many draws from the joint law.
    rng : int or numpy.random.Generator, optional
        For ``"max-t"``, the seed of these draws; ``attrs["seed"]`` tells the one that was used.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``statistic``,
        ``p_value``, with several comparisons ``p_adjusted``, then what the method adds and
        ``caution``. A frame is indexed by ``(model, other)``; an array has a dimension
        ``pair`` with these coordinates. A method without a standard error gives its own
        limits, NaN for ``se``, and a p-value if it has a test.

    Raises
    ------
    LogError
        If the models were evaluated on different points or folds; nothing unpaired is ever
        computed in their place. If ``"max-t"`` or a one-sided test is asked of a method whose
        intervals are not made of standard errors.

    Notes
    -----
    For `wald` the one-sided test has asymptotically the level alpha where the errors are
    equal and a smaller one where the model is worse, if the learners are stable and their
    difference has some variance. Two models whose losses are nearly the same have a
    difference with hardly any, and the normal law may then fail.

    ``"max-t"`` draws the models' means from the normal law that has the standard errors of all
    differences (with Student's t, from the t law that shares its degrees of freedom), and
    compares each statistic to the largest one of a draw. ``p_adjusted <= alpha`` exactly where
    the interval excludes 0.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671.
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.
    Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest", "gradient_boosting"])
    >>> table = losses.cvci.compare(reference="ridge")
    >>> table[["difference", "lower", "upper", "p_adjusted"]].round(3)
                             difference   lower    upper  p_adjusted
    model             other
    random_forest     ridge     181.842 -21.046  384.729       0.158
    gradient_boosting ridge     143.377 -56.530  343.284       0.160
    """
    checked_alpha(alpha)
    checked_choice("alternative", alternative, ALTERNATIVES)
    checked_choice("adjust", adjust, (*ADJUSTMENTS, "max-t", None))
    given = checked_options(method, options)
    checked_rng(rng)
    if adjust == "max-t":
        joint.checked_draws(n_draws, alpha)
    else:
        whole_number("n_draws", n_draws, 1)
    if is_dask_frame(losses):
        ask = partial(
            compare, reference=reference, method=method, options=options, alternative=alternative,
            adjust=adjust, alpha=alpha, n_draws=n_draws, rng=rng,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    run = partial(
        compared, method=method, options=given, alternative=alternative, adjust=adjust,
        alpha=alpha, n_draws=n_draws, seed=seed_of(rng) if adjust == "max-t" else 0,
    )  # fmt: skip
    example = partial(run, n_draws=min(n_draws, FEW))
    every = adjust == "max-t"
    table = ask_pairs(losses, other, reference, missing, run, every=every, example=example)
    if "n_draws" in table.attrs:
        table.attrs["n_draws"] = n_draws
    return table


FEW = 999
"""Draws for the form of an answer, of which no number is kept."""


def compared(
    log: Log,
    gaps: Differences,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: Alternative,
    adjust: str | None,
    alpha: float,
    n_draws: int,
    seed: int,
) -> Result:
    """Test the differences of pairs of models, pairs before carried cells."""
    chosen = usual(log) if method is None else method
    base = based(log, gaps, chosen, options, alpha)
    result = tested(base, alternative=alternative, alpha=alpha)
    result = replace(result, attrs={**result.attrs, "interval_method": chosen}, method="compare")
    columns = columns_of(log)
    number = gaps.width // columns.shape[1]
    if number < 2 or adjust is None:
        return result
    if adjust != "max-t":
        p = adjusted(result.columns["p_value"].reshape(number, -1), adjust)
        return with_adjusted(result, p.reshape(-1), {"adjust": adjust})
    every = every_two(log)
    whole = based(log, every, chosen, options, alpha) if gaps.width < every.width else base
    place = np.empty(columns.size, dtype=np.int64)
    place[columns] = np.arange(len(columns))[:, None]
    first = slice(None, None, columns.shape[1])  # a pair has the same models in each cell
    return simultaneous(
        result, whole, (place[gaps.left[first]], place[gaps.right[first]]), len(columns),
        alternative=alternative, alpha=alpha, n_draws=n_draws, seed=seed,
    )  # fmt: skip
