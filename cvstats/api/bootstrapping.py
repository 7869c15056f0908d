"""Intervals from the errors of points out of bag: the public functions."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias

from cvstats.api.answering import answered
from cvstats.api.options import checked
from cvstats.api.rates import Rates
from cvstats.api.running import Losses, Missing, Table
from cvstats.api.running_bootstrap import run_bootstrap_632, run_bootstrap_oob
from cvstats.containers import read
from cvstats.errors import checked_flag

__all__ = ["MonteCarlo", "bootstrap_632", "bootstrap_oob"]

MonteCarlo: TypeAlias = Literal["kept", "removed"]


def bootstrap_oob(
    losses: Losses,
    *,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Leave-one-out bootstrap: the error of points that a bootstrap sample does not contain.

    The target is the expected risk of a model trained on a bootstrap sample, which holds about
    0.632 n different points, and so is a little too large for n points. With E_i the mean loss
    of point i over the samples without it, the estimate Err1 is the mean of the E_i. Its
    standard error is the infinitesimal jackknife's, ``sqrt(sum D_i^2)``, with

        D_i = (2 + 1/(n-1)) (E_i - Err1) / n + sum_b (N_ib - mean N_i) q_b / (samples without i)

    where N_ib counts point i in sample b and q_b is 1/n times the sum of the losses out of bag.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Bootstrap samples as levels ``repetition``, ``point`` and ``count`` (how often the point
        was in the sample, 0 out of bag), every point in each repetition. Losses in any unit;
        those in bag, and repetition 0 (the fit on the sample itself), are not used.
    monte_carlo : {"kept", "removed"}, optional
        Whether the standard error is the printed formula, or that less the variance which it
        has from the number of samples being finite; that variance is estimated, and its larger
        part, which grows with the mean loss, left out from the start.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models. Its count
        is read all the same, so losses in bag need not be there.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``se_monte_carlo``
        (the part of the printed ``se`` that comes from the number of samples; squares add up),
        ``n_points``, ``n_repetitions`` (bootstrap samples) and ``caution``.

    Raises
    ------
    LogError
        If a level is missing, a repetition lacks points, its counts do not add up to n, or
        fewer than two points are ever out of bag.

    Notes
    -----
    Heuristic; B fits. The printed standard error is too large unless the samples are many times
    the points: with as many samples as points its square is more than doubled. It is not
    unchanged by a constant added to all losses either, save with ``monte_carlo="removed"``.
    Points that are never out of bag are left out and the variance rescaled by n over the rest.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007, equations 17 and 35-40.

    Examples
    --------
    The loss of a mean, fitted to 400 bootstrap samples of 20 numbers:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> loss = (y - counts @ y[:, None] / 20) ** 2
    >>> names = ["repetition", "point"]
    >>> index = pd.MultiIndex.from_product([range(1, 401), range(20)], names=names)
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> losses.cvci.bootstrap_oob()[["estimate", "se", "se_monte_carlo"]].round(3)
           estimate     se  se_monte_carlo
    model
    mean      0.386  0.108            0.04
    """
    options: dict[str, Any] = {"monte_carlo": monte_carlo, "alpha": alpha}
    checked("bootstrap_oob", options)
    return answered(losses, partial(run_bootstrap_oob, **options), by=by, missing=missing)


def bootstrap_632(
    losses: Losses,
    *,
    plus: bool = True,
    no_information: Rates | None = None,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """.632+ bootstrap: out-of-bag error, corrected for its smaller training samples.

    The target is the expected risk at n points. The estimate is ``(1 - w) err + w Err1``, with
    err the apparent error of the model fitted to the whole sample and Err1 the leave-one-out
    bootstrap error of `bootstrap_oob`. For .632 the weight w is 0.632. For .632+ it is
    ``0.632 / (1 - 0.368 R)``, where ``R = (Err1 - err) / (gamma - err)`` tells how far the
    model overfits on the way to the no-information rate gamma. The standard error is that of
    `bootstrap_oob` times estimate / Err1.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        As for `bootstrap_oob`, with repetition 0: the losses of the model fitted to the sample
        itself, with a count of 1.
    plus : bool, optional
        Whether to compute .632+, or .632, which needs no gamma and is too small for models that
        fit their training data perfectly.
    no_information : float, mapping, sequence or array, optional
        For .632+ the rate gamma: the mean loss over all n^2 pairs of a truth and a prediction of
        the model fitted to the whole sample. A number for all models, or one for each, by name
        or in their order; for an array of losses also an array over its carried dimensions.
        Without it ``losses.attrs["no_information"]``, which `cvstats.evaluate` writes.
    monte_carlo : {"kept", "removed"}, optional
        See `bootstrap_oob`.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper``, ``se_monte_carlo``, ``apparent`` (err),
        ``out_of_bag`` (Err1), ``no_information`` (gamma), all in the unit of the loss;
        ``overfitting`` (R), ``weight`` (w), ``n_points``, ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If repetition 0 or gamma is missing, or for the reasons of `bootstrap_oob`.

    Notes
    -----
    Heuristic; B + 1 fits. R is kept within 0 and 1, and Err1 at or below gamma where it enters
    the estimate; ``caution`` tells when that was needed. The proportion of the standard errors
    supposes that losses are positive: it is left out where Err1 is not, and makes this no
    method for differences of two models; `bootstrap_oob` compares them.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007, equations 24-32.

    Examples
    --------
    The nearest neighbour of 40 labels that are coin tosses, and so nobody can predict:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(2)
    >>> x, y = rng.normal(size=40), rng.integers(0, 2, 40)
    >>> counts = rng.multinomial(40, np.full(40, 1 / 40), size=500)
    >>> counts = np.vstack([np.ones(40, dtype=int), counts])  # repetition 0 is the whole sample
    >>> gaps = np.abs(x - x[:, None])
    >>> nearest = [np.where(drawn > 0, gaps, np.inf).argmin(axis=1) for drawn in counts]
    >>> loss = np.array([y[near] != y for near in nearest]).astype(float)
    >>> index = pd.MultiIndex.from_product([range(501), range(40)], names=["repetition", "point"])
    >>> log = pd.DataFrame({"count": counts.ravel(), "1-nn": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["1-nn"]
    >>> share = y.mean()
    >>> result = losses.cvci.bootstrap_632(no_information=2 * share * (1 - share))
    >>> result[["estimate", "apparent", "out_of_bag", "no_information"]].round(3)
           estimate  apparent  out_of_bag  no_information
    model
    1-nn      0.499       0.0       0.511           0.499
    >>> list(result.attrs["cautions"])
    ['bounded']
    """
    options: dict[str, Any] = {"monte_carlo": monte_carlo, "alpha": alpha}
    checked("bootstrap_632", options)
    checked_flag("plus", plus)
    log = read(losses, missing=missing)
    return log.label(run_bootstrap_632(log, plus=plus, no_information=no_information, **options))
