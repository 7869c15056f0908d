"""Models with 0/1 losses: McNemar's test, Cochran's Q, and Tango's score test.

A difference of two such losses is -1, 0 or 1, and only the discordant points are informative:
those on which exactly one of the models errs. If there are few of these, standard errors are rough
or zero, and Tango's score test and the binomial test replace normal ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._adjust import adjust_tests
from cvstats.comparisons._pairs import HALVINGS, one_model, p_values, read_pairs
from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import repetition_level
from cvstats.core.loss_columns import binary_columns
from cvstats.core.results import OWN_ERROR, Result, flag, make_result
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, checked_flag
from cvstats.intervals._limits import Limits, critical_value, open_side
from cvstats.intervals._method import (
    Comparison,
    Method,
    flag_ignored_sources,
    flag_serial_dependence,
)
from cvstats.intervals._requirements import one_test_per_point
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table
from cvstats.log.loss_checks import find_serial_dependence
from cvstats.log.read import read
from cvstats.options import Adjust, Missing

FEW = 25
"""Discordant points below which normal approximations are poor."""

SLACK = 1e-4
"""Tolerance for a sum over points to count as a whole number."""

TANGO = (
    "Tango (1998), Statistics in Medicine 17(8), 891-908, "
    "doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B"
)

SOME_EXACT = "exact for 0/1 losses with fewer than 25 discordant points, otherwise wald"
"""The test of `compare` if it varies between pairs, or if losses are lazy."""

SOME_SCORE = "tango for 0/1 losses, otherwise wald"
"""The same for `equivalence`."""

OF_POINTS = ("holdout", "wald", "refit_corrected", "tango")
"""Intervals of differences with points as the sampling unit."""


@dataclass(frozen=True, eq=False)
class Discordance:
    """The numbers of points on which models disagree, for each pair.

    Parameters
    ----------
    known : array of bool
        Whether the losses of both models are 0 or 1; the counts of other pairs are meaningless.
    n01, n10 : array
        Points on which only the other model errs, and on which only the model errs; averages over
        repetitions.
    n : float
        Number of points.
    repetitions : int
        How often each point was evaluated.
    averaged : bool
        Whether the interval averages each point over the repetitions, which makes it narrower.
    refits : array of bool
        Whether the variance includes that of the refits, which makes the interval wider.
    alone : bool
        Whether these are all pairs, so that no other carried cells may use another test.
    """

    known: MaskArray
    n01: FloatArray
    n10: FloatArray
    n: float
    repetitions: int
    averaged: bool
    refits: MaskArray
    alone: bool

    @property
    def total(self) -> FloatArray:
        """Number of points on which the models disagree."""
        return self.n01 + self.n10

    @property
    def counted(self) -> MaskArray:
        """Whether counts are better than standard errors, unless many points are averaged."""
        return (self.few if self.averaged else self.known) & ~self.refits

    @property
    def few(self) -> MaskArray:
        """Whether both losses are 0 or 1 and the models disagree on few points."""
        return self.known & (self.total < FEW)


def find_discordance(log: Log, base: Result) -> Discordance | None:
    """Count disagreements of each pair; None if points are not the sampling unit.

    The sums of the differences and of their squares, which for one repetition follow from the
    interval, quickly rule out most other losses. If losses may be 0/1, they are inspected
    individually.
    """
    if base.attrs["interval_method"] not in OF_POINTS or "n_clusters" in base.columns:
        return None
    if base.method == "refit_corrected":
        rows = base.columns["n_points"] * base.columns["n_repetitions"]
        net = rows * base.columns["estimate"]
        if not (np.abs(net - np.rint(net)) <= SLACK + 1e-13 * rows).any():
            return None
    n = float(log.design.splits().rows[0])
    plain, attrs = ("all-pairs", "size", None), base.attrs
    once = log.design.number("repetition") == 1
    similar = once & base.has_caution(Caution.UNSTABLE_DIFFERENCE)  # possibly widened
    if (
        once
        and not similar.any()
        and (attrs.get("variance") in plain and attrs.get("fold_weights") in plain)
    ):
        mean, se = base.columns["estimate"][None], base.columns["se"][None]
        ddof = 0 if base.method == "wald" else 1
        net, both = n * mean, (n - ddof) * n * se**2 + n * mean**2
    else:
        cells = log.moments(repetition_level(log.design))
        net, both = n * cells.location, cells.squares
    slack = SLACK + 1e-13 * n
    whole = (np.abs(net - np.rint(net)) <= slack) & (np.abs(both - np.rint(both)) <= slack)
    net, both = np.rint(net), np.rint(both)
    known = np.logical_and.reduce(whole & (np.abs(net) <= both) & (both <= n), axis=0)
    if known.any():
        known &= log.zero_one_pairs()
    n01, n10 = (counts.mean(axis=0) for counts in split_discordant(net, both))
    averaged = len(net) > 1 and base.method == "holdout"
    spread = np.sqrt(np.maximum(both - net**2 / n, 0).mean(axis=0)) / n
    refits = similar & (base.columns["se"] > 1.01 * spread) | (base.method == "refit_corrected")
    return Discordance(known, n01, n10, n, len(net), averaged, refits, not log.some_cells)


def split_discordant(net: FloatArray, both: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split the number of discordant points by which of the two models errs.

    Differences of 0/1 losses are -1, 0 or 1. The sum of their squares, ``both``, is the number of
    discordant points; their sum, ``net``, is the second number minus the first.
    """
    return (both - net) / 2, (both + net) / 2


def take_exact_tests(
    result: Result, found: Discordance, *, alternative: str, alpha: float
) -> Result:
    """Replace normal tests and limits by exact tests and Tango's limits for few discordant points.

    The exact test applies to points evaluated once; averages over repetitions keep the normal
    test, and so do very similar models, whose interval was widened. The limits are extended to 0
    if the exact test is not significant.
    """
    at = found.few & ~found.refits
    if not found.known.any():
        return result
    p = binomial_p_values(found.n10, found.n01, alternative)
    lower, upper = tango_limits(found.n10, found.n01, found.n, alpha, alternative)
    kept = p >= alpha
    numbers = {
        "lower": np.where(kept, np.minimum(lower, 0.0), lower),
        "upper": np.where(kept, np.maximum(upper, 0.0), upper),
        "statistic": score_statistic(found.n10, found.n01, found.n, 0.0),
        "p_value": p,
    }
    words = "exact" if at.all() else SOME_EXACT if at.any() else "wald"
    words = words if found.alone else SOME_EXACT
    return replace_numbers(result, at, numbers, words)


def widen_few(base: Result, found: Discordance) -> Result:
    """Add a pseudo-error of each model where averages over repetitions have few discordant points.

    In 180 designs of 240 or 800 simulations each, with two linear classifiers in 3 or 10
    repetitions of 5 or 10 folds of 50 to 300 points, on fewer than 10 of which they disagreed, the
    limits then cover .986 to 1.00 of the differences, and .08 to 1.00 without it. The standard
    error without it is kept: see `show_own_errors`.
    """
    if found.repetitions == 1 or not found.few.any():
        return base
    se = base.columns["se"]
    wide = np.where(found.few, np.hypot(se, np.sqrt(2) / found.n), se)
    base = replace(base, columns={**base.columns, OWN_ERROR: se, "se": wide})
    return base.drop_caution(Caution.ZERO_VARIANCE, found.few)


def score_tests(result: Result, found: Discordance, *, alternative: str, alpha: float) -> Result:
    """Compute Tango's limits, and his test of no difference, which is McNemar's."""
    check_known(result, found)
    lower, upper = tango_limits(found.n10, found.n01, found.n, alpha, alternative)
    z = score_statistic(found.n10, found.n01, found.n, 0.0)
    p = p_values(z, None, alternative)
    numbers = {"lower": lower, "upper": upper, "statistic": z, "p_value": p}
    return replace_numbers(result, found.known, numbers, "tango")


CORRECTION = 0.25
"""Continuity correction of the score test of equivalence, in points, for a size of at most .051."""


def score_equivalence(
    result: Result, found: Discordance, *, margin: tuple[float, float], alpha: float
) -> Result:
    """Test with Tango's score at each end of the margin whether a difference is within it."""
    if not found.counted.any():
        return result
    low, high = margin

    def score(end: float, correction: float) -> FloatArray:
        return score_statistic(found.n10, found.n01, found.n, end, correction)

    # differences of proportions are between -1 and 1
    p = np.maximum(
        0.0 if low < -1 else special.ndtr(-score(low, CORRECTION)),
        0.0 if high > 1 else special.ndtr(score(high, -CORRECTION)),
    )
    lower, upper = tango_limits(found.n10, found.n01, found.n, 2 * alpha, correction=CORRECTION)
    numbers = {"lower": lower, "upper": upper, "p_value": p, "equivalent": p < alpha}
    words = "tango" if found.counted.all() and found.alone else SOME_SCORE
    return replace_numbers(result, found.counted, numbers, words)


def no_evidence(log: Log, base: Result) -> MaskArray:
    """Find pairs with 0/1 losses whose standard error of zero is uninformative.

    Two models may agree on the points of a small log although they differ on other points.
    """
    at: MaskArray = base.columns["se"] == 0
    return at & log.zero_one_pairs() if at.any() else at


def check_known(result: Result, found: Discordance) -> None:
    """Reject pairs with losses other than 0 and 1, except in masked cells."""
    if not (found.known | np.isnan(result.columns["difference"])).all():
        raise LogError(
            "method='tango' needs 0/1 losses, but this log has other losses. Use method='wald'."
        )


def replace_numbers(result: Result, at: MaskArray, numbers: Mapping[str, Any], test: str) -> Result:
    """Replace numbers of some pairs, and record the test used."""
    columns = dict(result.columns)
    for name, values in numbers.items():
        columns[name] = np.where(at, values, columns[name])
    attrs: dict[str, Any] = {**result.attrs, "test": test}
    if test != "wald":
        attrs["reference"] = f"{attrs['reference']}; {TANGO}"
    result = replace(result, columns=columns, attrs=attrs)
    return result.drop_caution(Caution.ZERO_VARIANCE, at)


# --- McNemar's test -------------------------------------------------------------------------------


def find_other_loss(log: Log) -> str | None:
    """Find a loss other than 0 and 1; carried cells may be masked."""
    if binary_columns(log.design, log.losses).all():
        return None
    for j in range(log.losses.width):
        here = log.losses.column(j, 0, log.design.size)[log.design.here]
        odd = here[(here != 0) & (here != 1) & ~np.isnan(here)]  # NaN is reported later
        if len(odd):
            return (
                f"{log.name(j)} contains {odd[0]:g}. Expected the zero-one loss: "
                "cvstats.losses(…, loss='zero_one'); for other losses, use compare."
            )
    return None


ErrorRateTest = partial(
    Comparison,
    requires=one_test_per_point,
    needs="0/1 losses, with each point evaluated once",
    fits="1 for a test set, K for folds",
    models=2,
    of_losses=find_other_loss,
    needs_losses=True,
    takes_metrics=False,
)
"""The record of a test of equal error rates, but for its target, guarantee and reference."""


@ErrorRateTest(
    target="difference of the error rates of the two models in this log, on new points",
    guarantee="given the models, exact for the binomial test; asymptotically exact in the "
    "number of discordant points for chi-squared and over several folds",
    reference="McNemar (1947), Psychometrika 12, 153-157, doi:10.1007/BF02295996",
)
def mcnemar(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    test: Literal["exact", "chi2", "mid-p"] | None = None,
    correction: bool = False,
    adjust: Adjust | None = "holm",
    missing: Missing = "raise",
) -> Any:
    r"""Test whether two models have the same error rate, by McNemar's test.

    The target is the difference between the error rates of these two models on new points. The
    test uses the discordant points, on which only one of them errs. If the error rates are equal,
    each of the two models is equally likely to be the one that errs.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        0/1 losses of one model, or of several; each point evaluated once.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        Instead of ``other``, the name of the model to which the others are compared. If neither
        is given, all pairs are compared.
    test : {"exact", "chi2", "mid-p"}, optional
        The binomial test, McNemar's chi-squared with one degree of freedom, or the mid-p binomial
        test. The default is the exact test below 25 discordant points and chi-squared otherwise.
    correction : bool, optional
        Whether chi-squared is corrected for continuity (Edwards), never beyond zero. Pairs with
        the exact test by default are not affected.
    adjust : {"holm", "bonferroni", "bh", None}, optional
        How ``p_adjusted`` accounts for multiple comparisons over all pairs of models and carried
        cells, as in `compare`.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``n01`` (points with loss 0 of the model and 1 of the other: only the other errs),
        ``n10`` (only the model errs), ``statistic`` (chi-squared; for the binomial tests the
        smaller of the two counts), ``p_value`` (two-sided), with several comparisons
        ``p_adjusted``, ``test`` and ``caution``. ``n_points`` is in ``attrs``, or a variable if
        it varies between carried cells.

    Raises
    ------
    LogError
        If a loss is neither 0 nor 1, points are evaluated more than once (repetitions), or
        ``correction`` is passed with a binomial test.

    See Also
    --------
    cvstats.compare : The difference itself, with its interval.
    cvstats.cochran_q : More than two models at once.
    cvstats.equivalence : Whether the difference is too small to matter.

    Notes
    -----
    For one test set, the binomial test is exact given the models. The chi-squared test, which is
    used with at least 25 discordant points, is asymptotically exact. In cross-validation, the
    counts of all folds are pooled. The chi-squared test is then equivalent to the test of `compare`
    with `wald`, whose z satisfies

    .. math::

        z^2 = \frac{\chi^2}{1 - \chi^2 / n} .

    Neither accounts for training-set variability. Models that never disagree have p = 1.

    Some authors code correct as 1 and wrong as 0, which swaps ``n01`` and ``n10``.

    References
    ----------
    McNemar (1947), doi:10.1007/BF02295996.
    Dietterich (1998), doi:10.1162/089976698300017197.
    Fagerland, Lydersen and Laake (2013), doi:10.1186/1471-2288-13-91.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights").xs("2013-01", level="source")
    >>> late = (log[log.attrs["models"]] > 0.5).astype(float).assign(y_true=log["y_true"])
    >>> losses = cvstats.losses(late, prediction=log.attrs["models"], loss="zero_one")
    >>> table = losses.cvci.mcnemar(reference="gradient_boosting")
    >>> table[["n01", "n10", "statistic", "p_adjusted", "test"]].round(4)
                                           n01  n10  statistic  p_adjusted   test
    model               other
    logistic_regression gradient_boosting    8   13     8.0000      0.5546  exact
    naive_bayes         gradient_boosting   55   67     1.1803      0.5546   chi2
    """
    checked_flag("correction", correction)
    if correction and test in ("exact", "mid-p"):
        raise LogError(
            f"correction=True requires chi-squared, but test={test!r} is a binomial test. Omit "
            "correction=, or pass test='chi2'."
        )
    log = read_pairs(losses, other, reference, missing)
    run = partial(compute_mcnemar, test=test, correction=correction)
    return log.label(adjust_tests(answer_cells(log, run), adjust))


def compute_mcnemar(log: Log, *, test: str | None, correction: bool) -> Result:
    """Test whether pairs of models of a log with one 0/1 loss per point err equally often."""
    mcnemar.record.require(log.design)
    check_binary(log, mcnemar.record)
    cell = log.moments(())
    n01, n10 = count_discordant(cell)
    total = n01 + n10
    few = total < FEW
    exact = few if test is None else np.full(total.shape, test == "exact")
    mid_p = np.full(total.shape, test == "mid-p")
    least = np.minimum(n01, n10)
    net = np.abs(n10 - n01)
    if correction:
        net = np.maximum(net - 1, 0)
    chi2 = net**2 / np.maximum(total, 1)
    p = special.chdtrc(1, chi2)
    p = np.where(exact, binomial_p_values(n10, n01), p)
    p = np.where(mid_p, binomial_p_values(n10, n01, mid=True), p)
    missing = np.isnan(total)
    caution = flag(Caution.NO_LOSSES, missing)
    caution |= flag(Caution.DISCORDANT_FEW, few & ~(exact | mid_p))
    columns: dict[str, NDArray[Any]] = {
        "n01": np.where(missing, 0, n01).astype(np.int64),
        "n10": np.where(missing, 0, n10).astype(np.int64),
        "statistic": np.where(exact | mid_p, least, chi2),
        "p_value": np.where(missing, np.nan, p),
        "test": np.where(exact, "exact", np.where(mid_p, "mid-p", "chi2")),
        "n_points": np.full(total.shape, int(cell.count[0])),
    }
    result = Result("mcnemar", columns, caution, mcnemar.record.facts)
    result = flag_serial_dependence(
        result, find_serial_dependence(log, len(caution)), log, "mcnemar"
    )
    return flag_ignored_sources(result, log.design, of_means=False)


def count_discordant(cell: Cells) -> tuple[FloatArray, FloatArray]:
    """Count discordant points of each kind from one cell of differences."""
    total = cell.count[0] * cell.location[0]
    return split_discordant(np.rint(total), np.rint(cell.squares[0]))


def check_binary(log: Log, method: Method) -> None:
    """Reject losses other than 0 and 1."""
    if (words := find_other_loss(log)) is not None:
        raise LogError(f"{method.name} needs 0/1 losses, but {words}")


# --- Cochran's Q ----------------------------------------------------------------------------------


@ErrorRateTest(
    target="differences of the error rates of the models in this log, on new points",
    guarantee="asymptotically exact in the number of points on which models disagree",
    reference="Cochran (1950), Biometrika 37, 256-266, doi:10.1093/biomet/37.3-4.256",
)
def cochran_q(losses: Losses, *, missing: Missing = "raise") -> Table:
    r"""Test whether several models have the same error rate, by Cochran's Q test.

    The targets are the error rates of these models on new points. A point is discordant for two
    models if only one of them errs. Q measures, over all pairs of models, how unequally the
    discordant points are divided between the two models. It is compared with the chi-squared
    distribution with M - 1 degrees of freedom for M models. For two models, Q is McNemar's
    statistic.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        0/1 losses, with a column for each of at least two models; each point evaluated once.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        For each model ``estimate`` (its error rate); then values common to all models:
        ``statistic`` (Q), ``df``, ``p_value``; and ``caution``. ``n_points`` is in ``attrs``, or
        a variable if it varies between carried cells.

    Raises
    ------
    LogError
        If there is one model, a loss is neither 0 nor 1, or points are evaluated more than
        once (repetitions).

    See Also
    --------
    cvstats.mcnemar : Which models differ.
    cvstats.compare : How much they differ, with intervals.
    cvstats.friedman : Many models over many data sets.

    Notes
    -----
    With b and c the numbers of points on which only the first or only the second model of a pair
    errs, and sums over all pairs of the M models,

    .. math::

        Q = (M - 1)\, \frac{\sum (b - c)^2}{\sum (b + c)} .

    The test is asymptotically exact in the number of points on which models disagree. Q shows only
    that some models differ; `mcnemar` with ``adjust="holm"`` shows which ones. Models that never
    disagree have p = 1.

    References
    ----------
    Cochran (1950), Biometrika 37, 256-266, doi:10.1093/biomet/37.3-4.256.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights").xs("2013-01", level="source")
    >>> late = (log[log.attrs["models"]] > 0.5).astype(float).assign(y_true=log["y_true"])
    >>> losses = cvstats.losses(late, prediction=log.attrs["models"], loss="zero_one")
    >>> losses.cvci.cochran_q()[["estimate", "statistic", "p_value"]].round(4)
                         estimate  statistic  p_value
    model
    logistic_regression    0.2320      1.744   0.4181
    gradient_boosting      0.2295      1.744   0.4181
    naive_bayes            0.2355      1.744   0.4181
    """
    log = read(losses, missing=missing)
    return log.label(answer_cells(log, compare_error_rates))


def compare_error_rates(log: Log) -> Result:
    """Test whether the models of a log err equally often, in each carried cell."""
    cochran_q.record.require(log.design)
    columns = log.columns_by_cell()
    models = len(columns)
    if models < 2:
        raise one_model()
    check_binary(log, cochran_q.record)
    estimate = log.moments(()).location[0]
    pairs = log.with_all_pairs()
    cell = pairs.moments(())
    # with b and c the discordant points of a pair: Q = (M - 1) sum (b - c)^2 / sum (b + c)
    n01, n10 = (part.reshape(models * (models - 1) // 2, -1) for part in count_discordant(cell))
    q = (models - 1) * ((n10 - n01) ** 2).sum(axis=0) / np.maximum((n01 + n10).sum(axis=0), 1)
    statistic, p = np.empty((2, log.losses.width))
    statistic[columns] = q
    p[columns] = np.where(np.isnan(q), np.nan, special.chdtrc(models - 1, q))
    table = {
        "estimate": estimate,
        "statistic": statistic,
        "df": models - 1,
        "p_value": p,
        "n_points": int(cell.count[0]),
    }
    serial = find_serial_dependence(pairs, cell.mean.size).reshape(-1, columns.shape[1])
    caution = np.zeros(log.losses.width, dtype=np.int64)
    caution[columns] = np.bitwise_or.reduce(serial)
    result = make_result("cochran_q", table, attrs=cochran_q.record.facts)
    result = flag_serial_dependence(result, caution, pairs, "cochran_q")
    return flag_ignored_sources(result, log.design, of_means=False)


# --- Tango's score and the binomial test ----------------------------------------------------------


def score_statistic(
    n10: FloatArray,
    n01: FloatArray,
    n: FloatArray | float,
    difference: FloatArray | float,
    correction: float = 0.0,
) -> FloatArray:
    """Score statistic of a difference of paired proportions (Tango 1998, eq. 13).

    Asymptotically standard normal if the true difference is ``difference``; at 0 it is McNemar's
    ``(n10 - n01) / sqrt(n10 + n01)``. With zero variance it is infinite, or 0 without discordant
    points. ``correction`` is subtracted from the difference of the discordant counts.
    """
    deviations = n10 - n01 - n * difference - correction
    spread = np.sqrt(n * null_variance(n10, n01, n, difference))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = deviations / spread
    return np.where((spread == 0) & (deviations == 0), 0.0, statistic)


def null_variance(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, difference: FloatArray | float
) -> FloatArray:
    """Variance of the difference at one point, under the most likely table with that mean.

    The probability q that only the other errs solves ``2 n q^2 + b q + c = 0`` (Tango 1998, eq.
    11); that of the model is ``q + difference``.
    """
    d = np.asarray(difference, dtype=np.float64)
    a = 2.0 * n
    b = (2 * n - n10 + n01) * d - n10 - n01
    c = -n01 * d * (1 - d)
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # no digits are lost on either side
        q = np.where(b > 0, -2 * c / (root + b), (root - b) / (2 * a))
    q = np.maximum(q, np.maximum(-d, 0.0))
    return np.maximum(2 * q + d * (1 - d), 0.0)


def tango_limits(
    n10: FloatArray,
    n01: FloatArray,
    n: FloatArray | float,
    alpha: float,
    alternative: str = "two-sided",
    correction: float = 0.0,
) -> Limits:
    """Score interval of a difference of paired proportions (Tango 1998).

    The interval contains all differences whose score statistic is not significant. The statistic
    decreases with the difference, so each limit is the only root between the estimate and the end
    of the range, and bisection finds it.
    """
    z = critical_value(alpha, alternative)
    lower = lower_tango_limit(n10, n01, n, z, correction)
    upper = -lower_tango_limit(n01, n10, n, z, correction)
    return open_side(lower, upper, alternative)


def lower_tango_limit(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, z: float, correction: float
) -> FloatArray:
    """Find the smallest difference whose score statistic is at most z."""
    high = (n10 - n01) / n
    low = np.where(np.isnan(high), np.nan, -1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        deviations = n10 - n01 - n * middle - correction
        beyond = deviations > z * np.sqrt(n * null_variance(n10, n01, n, middle))
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.where(n01 == n, -1.0, (low + high) / 2)


def binomial_p_values(
    n10: FloatArray, n01: FloatArray, alternative: str = "two-sided", *, mid: bool = False
) -> FloatArray:
    """Test exactly whether both models are equally likely to err on a discordant point.

    With ``mid`` the observed table counts by half (Fagerland, Lydersen and Laake
    2013, doi:10.1186/1471-2288-13-91). ``"less"`` tests whether the model errs less often.
    """
    if alternative == "two-sided":
        p = 2 * lower_tail(np.minimum(n10, n01), n10 + n01, mid)
        return np.minimum(p, 1.0)
    least = n10 if alternative == "less" else n01
    return lower_tail(least, n10 + n01, mid)


def lower_tail(k: FloatArray, total: FloatArray, mid: bool) -> FloatArray:
    """Probability of at most k heads of a fair coin: an incomplete beta function."""
    upto = np.where(k < total, special.betainc(np.maximum(total - k, 1), k + 1, 0.5), 1.0)
    if mid:
        below = np.where(k > 0, special.betainc(total - k + 1, np.maximum(k, 1), 0.5), 0.0)
        upto = (upto + below) / 2
    return np.where(np.isnan(total), np.nan, upto)
