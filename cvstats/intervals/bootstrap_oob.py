"""Leave-one-out bootstrap with the standard error of Efron and Tibshirani."""

from __future__ import annotations

import numpy as np

from cvstats.core.results import Result, interval
from cvstats.intervals._bootstrap import MonteCarlo, estimate_out_of_bag
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._references import EFRON
from cvstats.intervals._requirements import bootstrap_samples
from cvstats.log.bootstrap import resamples
from cvstats.log.log import Log
from cvstats.options import Missing


@IntervalMethod(
    requires=bootstrap_samples,
    needs="bootstrap samples with the losses of their points out of bag (levels 'repetition', "
    "'point' and 'count')",
    target="expected risk of training on a bootstrap sample, about 0.632 n different points",
    guarantee="heuristic",
    fits="B",
    reference=EFRON,
    needs_losses=True,
    made_for=("count",),
    recognized_by="bootstrap samples, without the fit on the sample itself",
    takes_metrics=False,
)
def bootstrap_oob(
    log: Log,
    *,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Leave-one-out bootstrap: the error of points that a bootstrap sample does not contain.

    The target is the expected risk of a model trained on a bootstrap sample, which holds about
    0.632 n different points, and so is a little too large for n points. Each point has a mean
    loss, over the samples without it, and the estimate is the mean of these over the points. The
    standard error is that of the infinitesimal jackknife.

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
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models. Its count
        is read all the same, so losses in bag need not be there.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the unit of the loss, ``se_monte_carlo`` (the part of the printed
        ``se`` that comes from the number of samples; squares add up) and ``caution``. ``n_points``
        and ``n_repetitions`` (bootstrap samples) are in ``attrs``, or columns where rows differ in
        them.

    Raises
    ------
    LogError
        If a level is missing, a repetition lacks points, its counts do not add up to n, or
        fewer than two points are ever out of bag.

    See Also
    --------
    cvstats.bootstrap_632 : The same, corrected for the smaller training samples.
    cvstats.case_bootstrap : Leave-one-out within each bootstrap sample.
    cvstats.plans.bootstrap : The resampling plan that it needs.

    Notes
    -----
    With E_i the mean loss of point i over the samples without it, and Err1 their mean,

    .. math::

        \mathrm{se}^2 = \sum_i D_i^2, \qquad
        D_i = \left(2 + \frac{1}{n - 1}\right) \frac{E_i - \mathrm{Err}_1}{n}
            + \frac{\sum_b (N_{ib} - \bar N_i)\, q_b}{\#\{b : N_{ib} = 0\}} ,

    where N_ib counts point i in sample b, q_b is 1/n times the sum of the losses out of bag, and
    the last denominator is the number of samples without point i.

    Heuristic; B fits. The printed standard error is too large unless the samples are many times
    the points: with as many samples as points its square is more than doubled. A constant added
    to all losses changes it too, since the share of points out of bag differs from sample to
    sample; with ``monte_carlo="removed"`` it does not.
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
    # Estimate the out-of-bag error and its variance.
    (data,) = resamples(log.design)
    data.check_draws()
    columns = (None if v is None else data.losses(v) for v in log.columns())
    found = estimate_out_of_bag(data.bags, columns, monte_carlo=monte_carlo)
    fits, points = data.bags.counts.shape
    return interval(
        "bootstrap_oob", found.error, found.variance, origin=0.0, alpha=alpha,
        extra={
            "se_monte_carlo": np.sqrt(found.noise), "n_points": points, "n_repetitions": fits,
        },
        caution=found.caution, attrs={"monte_carlo": monte_carlo},
    )  # fmt: skip
