"""The log of paired differences, itself a loss log."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from cvstats.comparisons._pairs import any_log, check_one_partner, choose_pairs
from cvstats.intervals._differences import DIFFERENCES
from cvstats.intervals._method import Comparison
from cvstats.intervals._references import BAYLE, RELATIVE_STABILITY
from cvstats.log.align import against, every_pair, facts_of_differences, subtracted
from cvstats.log.log import Losses
from cvstats.log.read import read


@Comparison(
    requires=any_log,
    needs="two or more models on the same evaluations",
    target="the log of paired differences, itself a log",
    guarantee="none by itself; the interval taken of it states what holds for differences",
    fits="as the log has",
    reference=f"{BAYLE}; {RELATIVE_STABILITY}",
    models=2,
    needs_losses=True,
    takes_lazy_losses=True,
)
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
        ``pair``. Its ``attrs`` are those of the log, or those in which two logs agree: whether it
        holds scores of splits, the training sizes, the metric and its direction.

    Raises
    ------
    LogError
        If the two logs differ in points or folds (the first that do are named) or in what they
        hold (scores or losses, the metric, the loss, units), or there is only one model.

    See Also
    --------
    cvstats.compare : The test of the same differences.
    cvstats.heterogeneity : Whether a difference varies between groups.

    Notes
    -----
    Every method that takes a log takes this one: its estimate is then the difference in
    error. ``attrs["kind"]`` is ``"differences"``, and what an interval promises of it has the
    condition that `compare` states. Losses of 0 and 1 have differences of -1, 0 and 1, so
    intervals for proportions do not apply.

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
    check_one_partner(other, reference)
    if other is not None:
        gaps = subtracted(losses, other)
    else:
        choose_pairs(read(losses), reference)
        gaps = every_pair(losses) if reference is None else against(losses, reference)
        gaps.attrs = facts_of_differences(losses.attrs)
    gaps.attrs = {**gaps.attrs, **DIFFERENCES}
    return gaps
