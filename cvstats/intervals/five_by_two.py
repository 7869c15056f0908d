"""Five repetitions of twofold cross-validation: Dietterich's t and Alpaydin's combined F."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import count_cells, covers_all_points
from cvstats.core.results import Result, flag, interval, make_result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import place
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import single_dataset
from cvstats.intervals.corrected_t import count_points, sort_cells
from cvstats.log.log import Log
from cvstats.options import Missing

DIETTERICH = (
    "Dietterich (1998), Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197"
)
ALPAYDIN = "Alpaydin (1999), Neural Computation 11(8), 1885-1892, doi:10.1162/089976699300016007"


def five_times_two_folds(design: Design) -> str | None:
    """Require five repetitions, each of two folds that together contain every point."""
    if (problem := single_dataset(design)) is not None:
        return problem
    made = "cvstats.plans.five_by_two creates such a log."
    for level in ("repetition", "fold"):
        if level not in design.levels:
            return f"the log has no level {level!r}. Add it to the index; {made}"
    codes, _ = count_cells(design, ("repetition", "fold"))
    folds = np.unique(codes[:, 0], return_counts=True)[1]
    if len(folds) != 5 or np.any(folds != 2):
        least, most = folds.min(), folds.max()
        number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"the log has {len(folds):,} {'repetition' if len(folds) == 1 else 'repetitions'} "
            f"of {number} folds. Expected five repetitions of two folds; {made}"
        )
    if not covers_all_points(design):
        return f"the two folds of a repetition do not cover all points. Expected two halves; {made}"
    return None


@IntervalMethod(
    requires=five_times_two_folds,
    needs="five repetitions of two folds",
    target="expected risk at half the points",
    guarantee="heuristic; conservative only if fold means are independent and normal",
    fits="10",
    reference=f"{DIETTERICH}; for test='f' {ALPAYDIN}",
    plan="five_by_two",
    takes_scores=True,
    takes_means=True,
    takes_metrics="averaged",
    groups_at_once=True,
)
def five_by_two(
    log: Log,
    *,
    test: Literal["t", "f"] = "t",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval from five repetitions of twofold cross-validation.

    The target is the expected risk at half the points. The variance is computed from the two fold
    means of each repetition and averaged over the five.

    - t: the estimate is the mean of the very first fold alone, and the limits use Student's t with
      5 degrees of freedom.
    - F: the interval contains all values that the combined F test, with 10 and 5 degrees of
      freedom, does not reject, and the estimate is the mean of all ten fold means.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Five repetitions of two folds that together contain every point. Both tests were designed
        for differences of two models.
    test : {"t", "f"}, optional
        Which of the two tests to invert.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN for F) in the units of the loss; for t ``df``; for F
        ``statistic`` and ``p_value`` for a mean of zero, which are useful for differences; and
        ``caution``. ``n_folds``, ``n_repetitions``, and ``n_points`` (if the log has the level
        ``point``) are in ``attrs``, or columns if they vary between rows. ``attrs["first"]``
        names the fold used for p_11.

    Raises
    ------
    LogError
        If the log has other numbers of repetitions or folds, or ``test`` is invalid.

    See Also
    --------
    cvstats.corrected_t : For other numbers of folds and repetitions.
    cvstats.compare : The difference of two models, for which the test was designed.
    cvstats.plans.five_by_two : The resampling plan this method needs.

    Notes
    -----
    With p_r1 and p_r2 the fold means of repetition r, p the mean of all ten and F the quantile,

    .. math::

        s_r^2 = \frac{(p_{r1} - p_{r2})^2}{2}, \qquad
        \mathrm{se}_t^2 = \frac15 \sum_r s_r^2, \qquad
        \mathrm{limits}_F = p \pm \sqrt{\frac{2 F \sum_r s_r^2 - \sum_{rj} (p_{rj} - p)^2}{10}} .

    The method is heuristic. The t interval depends on which fold comes first. Here it is the one
    whose labels sort first, regardless of row order (labels that cannot be sorted keep the order of
    the level).

    The F test can reject every value, in 1.2% of cases if the fold means are independent and
    normal. The interval is then empty: its limits are NaN, and ``caution`` contains ``empty
    interval``. In the same setting, at a nominal level of 5%, the t-test rejects a true value in
    2.8% of cases, and the F test in 1.8%.

    References
    ----------
    Dietterich (1998), Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197.
    Alpaydin (1999), Neural Computation 11(8), 1885-1892, doi:10.1162/089976699300016007.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((60, 1)), np.random.default_rng(1).normal(size=60)
    >>> plan = cvstats.plans.five_by_two(rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.five_by_two(losses, test="f").round(2)
                   estimate lower upper se statistic p_value caution
    model
    DummyRegressor     0.76  0.45  1.06  –     26.04  <0.001  skewed
    """
    # Compare the two folds of each repetition; the first is the one whose labels sort first.
    cells = log.moments(("repetition", "fold"))
    order = sort_cells(cells)
    key = cells.key(order[0])
    means = cells.mean[order].reshape(-1, 5, 2, cells.mean.shape[1])
    counts = count_points(log) | {"n_folds": 2, "n_repetitions": 5}
    noise = ((means[:, :, 0] - means[:, :, 1]) ** 2 / 2).sum(axis=1)  # sum of the s_r^2
    attrs = {"test": test, "first": place({level: key[level] for level in ("repetition", "fold")})}
    if test == "t":  # Dietterich (1998)
        return interval(
            "five_by_two", means[:, 0, 0], noise / 5, origin=cells.origin, alpha=alpha, df=5,
            extra=counts, attrs=attrs,
        )  # fmt: skip
    return invert_f(cells, noise, alpha=alpha, counts=counts, attrs=attrs)


def invert_f(
    cells: Cells,
    noise: FloatArray,
    *,
    alpha: float,
    counts: Mapping[str, IntArray | int],
    attrs: Mapping[str, str],
) -> Result:
    """Invert the combined F test of Alpaydin (1999), which may reject every value."""
    estimate, squares = cells.mean_and_squares()
    critical = float(special.fdtri(10, 5, 1 - alpha))
    radicand = (2 * critical * noise - squares) / 10
    empty = radicand < 0
    reach, total = np.sqrt(np.where(empty, np.nan, radicand)), cells.sum(cells.location**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.where((noise == 0) & (total == 0), 0.0, total / (2 * noise))
    columns = {
        "estimate": cells.origin + estimate,
        "lower": cells.origin + (estimate - reach),
        "upper": cells.origin + (estimate + reach),
        "se": np.nan,
        "statistic": f,
        "p_value": special.fdtrc(10, 5, f),
        **counts,
    }
    flags = flag(Caution.EMPTY, empty) | flag(Caution.ZERO_VARIANCE, radicand == 0)
    facts: dict[str, str | float | int] = {"alpha": alpha, "alternative": "two-sided", **attrs}
    return make_result("five_by_two", columns, flags, facts)
