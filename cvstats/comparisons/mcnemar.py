"""Do two models err on different points? McNemar's test for losses of 0 and 1."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._adjust import adjust_tests
from cvstats.comparisons._pairs import read_pairs
from cvstats.comparisons._zero_one import FEW, split_discordant
from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.columns import Differences, binary_columns
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_flag
from cvstats.intervals._groups import flag_ignored_sources
from cvstats.intervals._method import Comparison, Method
from cvstats.intervals._proportions import binomial_p_values
from cvstats.intervals._requirements import one_test_per_point
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses
from cvstats.options import Missing


def find_other_loss(log: Log) -> str | None:
    """Find a loss other than 0 and 1, and say where; carried cells may be masked."""
    masked = log.masked()
    if len(masked) == 0 and binary_columns(log.design, log.panels).all():
        return None
    for j in np.setdiff1d(np.arange(log.panels.width), masked).tolist():
        values = log.panels.column(j, 0, log.design.size)
        here = values if log.design.present is None else values[log.design.present]
        odd = here[(here != 0) & (here != 1) & ~np.isnan(here)]  # NaN is named by its label later
        if len(odd):
            return (
                f"{log.name(j)} holds {odd[0]:g}. Expected the zero-one loss: "
                f"cvstats.losses(…, loss='zero_one'); for other losses, use compare."
            )
    return None


@Comparison(
    requires=one_test_per_point,
    needs="losses of 0 and 1 of each point, evaluated once",
    target="difference of the error rates of the models that were trained",
    guarantee="given the models exact by the binomial test; by chi-squared, and over several "
    "folds, as the discordant points grow",
    fits="1 for a test set, K for folds",
    reference="McNemar (1947), Psychometrika 12, 153-157, doi:10.1007/BF02295996",
    models=2,
    of_losses=find_other_loss,
    needs_losses=True,
    takes_metrics=False,
)
def mcnemar(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    test: Literal["exact", "chi2", "mid-p"] | None = None,
    correction: bool = False,
    adjust: Literal["holm", "bh"] | None = "holm",
    missing: Missing = "raise",
) -> Any:
    r"""Test whether two models err equally often, from the points on which they disagree.

    The target is the difference of the error rates of the models that were trained. If they
    err equally often, each discordant point is as likely to be an error of one as of the
    other.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Losses of 0 and 1 of one model, or of several; each point evaluated once.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    test : {"exact", "chi2", "mid-p"}, optional
        The binomial test, McNemar's chi-squared with one degree of freedom, or the binomial
        test that counts half of the observed table. Without it the exact test below 25
        discordant points and chi-squared from there on.
    correction : bool, optional
        Whether chi-squared is corrected for continuity (Edwards), never beyond zero.
    adjust : {"holm", "bh", None}, optional
        How ``p_adjusted`` allows for several comparisons, of all pairs of models and carried
        cells, as in `compare`.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``n01`` (points with loss 0 of the model and 1 of the other: only the other errs),
        ``n10`` (only the model errs), ``statistic`` (chi-squared; for the binomial tests the
        smaller of the two counts), ``p_value`` (two-sided), with several comparisons
        ``p_adjusted``, ``test``, ``n_points`` and ``caution``.

    Raises
    ------
    LogError
        If a loss is neither 0 nor 1, or points are evaluated more than once (repetitions).

    See Also
    --------
    cvstats.compare : The difference itself, with its interval.
    cvstats.cochran_q : More than two models at once.
    cvstats.equivalence : Whether the difference is too small to matter.

    Notes
    -----
    The binomial test is exact given the models, for one test set; chi-squared, which is taken
    from 25 discordant points on, is exact as they grow. Over the folds of cross-validation the
    counts are pooled: chi-squared is then the test of `compare` by `wald`, whose z satisfies

    .. math::

        z^2 = \frac{\chi^2}{1 - \chi^2 / n} .

    Neither accounts for the luck of the training data. Models that never disagree have p = 1.

    Some authors number the same cells by correct (1) and wrong (0), which swaps ``n01`` and
    ``n10``.

    References
    ----------
    McNemar (1947), doi:10.1007/BF02295996.
    Dietterich (1998), doi:10.1162/089976698300017197.
    Fagerland, Lydersen and Laake (2013), doi:10.1186/1471-2288-13-91.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> late = (log[log.attrs["models"]] > 0.5).astype(float).assign(y_true=log["y_true"])
    >>> losses = cvstats.losses(late, prediction=log.attrs["models"], loss="zero_one")
    >>> table = losses.cvci.mcnemar(reference="gradient_boosting")
    >>> table[["n01", "n10", "statistic", "p_adjusted", "test"]].round(4)
                                           n01  n10  statistic  p_adjusted  test
    model               other
    logistic_regression gradient_boosting  105  114     0.3699      0.5431  chi2
    naive_bayes         gradient_boosting  448  584    17.9225      0.0000  chi2
    """
    checked_flag("correction", correction)
    log, pairs, differences = read_pairs(losses, other, reference, missing)
    run = partial(count_and_test, test=test, correction=correction)
    result = answer_cells(log, run, differences)
    return log.label_pairs(pairs, adjust_tests(result, adjust))


def count_and_test(
    log: Log, differences: Differences, *, test: str | None, correction: bool
) -> Result:
    """Test pairs of models of a log that holds 0/1 losses of each point once."""
    mcnemar.record.require(log.design)
    check_binary(log, mcnemar.record)
    result = compute(log.moments((), differences), test=test, correction=correction)
    return flag_ignored_sources(result, log.design, of_means=False)


def compute(cell: Moments, *, test: str | None, correction: bool) -> Result:
    """Test from one cell of differences whether two models err equally often."""
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
    caution = np.where(missing, np.int64(Caution.NO_LOSSES), np.int64(0))
    caution[few & ~(exact | mid_p)] |= np.int64(Caution.DISCORDANT_FEW)
    columns: dict[str, NDArray[Any]] = {
        "n01": whole_counts(n01),
        "n10": whole_counts(n10),
        "statistic": np.where(exact | mid_p, least, chi2),
        "p_value": np.where(missing, np.nan, p),
        "test": np.where(exact, "exact", np.where(mid_p, "mid-p", "chi2")),
        "n_points": np.full(total.shape, int(cell.count[0])),
    }
    return Result("mcnemar", columns, caution, mcnemar.record.facts())


def count_discordant(cell: Moments) -> tuple[FloatArray, FloatArray]:
    """Count from one cell of differences where only the other errs, and where only the model."""
    total = cell.count[0] * cell.location[0]
    return split_discordant(np.rint(total), np.rint(cell.squares[0]))


def whole_counts(values: FloatArray) -> IntArray:
    """Turn counts into whole numbers; 0 in a masked cell."""
    return np.where(np.isnan(values), 0, values).astype(np.int64)


def check_binary(log: Log, method: Method) -> None:
    """Refuse losses other than 0 and 1."""
    if (words := find_other_loss(log)) is not None:
        raise LogError(f"{method.name} needs losses that are 0 or 1, and {words}")
