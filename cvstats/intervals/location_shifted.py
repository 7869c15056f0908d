"""Location-shifted bootstrap percentile interval of Noma and others (2021)."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.intervals._bootstrap import (
    Correction,
    correct_by,
    measure_of,
    measure_samples,
    never_out_caution,
    overfitting_caution,
    percentile_interval,
    weighted_means,
)
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._references import NOMA
from cvstats.intervals._requirements import bootstrap_with_apparent_error
from cvstats.log.bootstrap import Rates, Resample, no_information_of, resamples
from cvstats.log.log import Log
from cvstats.options import Missing

OPTIMISTIC = 0.85
"""Share of the corrected error below which apparent errors spread too little."""


@IntervalMethod(
    requires=bootstrap_with_apparent_error,
    needs="bootstrap samples with the losses of their points in and out of bag, and the fit on the "
    "sample itself (levels 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic: the spread is that of apparent errors, and none for models that fit "
    "their training data perfectly",
    fits="B + 1",
    reference=NOMA,
    needs_losses=True,
    for_differences=False,
    takes_metrics=False,
)
def location_shifted(
    log: Log,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r"""Location-shifted bootstrap: quantiles of apparent errors, moved to the corrected error.

    The target is the expected risk, and the estimate the apparent error of the model fitted to the
    whole sample, corrected for optimism. Each bootstrap fit has an apparent error in its own
    sample, a mean over points weighted by their counts. The limits are the quantiles of these at
    alpha/2 and 1 - alpha/2, shifted by the correction.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        As for `bootstrap_632`: every point in each bootstrap sample, in bag and out of bag, and
        repetition 0.
    correction : {"632+", "632", "harrell"}, optional
        The estimate: as in `bootstrap_632`; or err less the mean over b of app_b minus the
        error of fit b on the whole sample.
    no_information : float, mapping, sequence or array, optional
        For "632+", as in `bootstrap_632`.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper``, ``se`` (NaN: quantiles have none), ``apparent``, ``out_of_bag`` and
        ``no_information`` (as far as the correction has them), all in the unit of the loss; and
        ``caution``. ``n_points`` and ``n_repetitions`` are in ``attrs``.

    Raises
    ------
    LogError
        If a level, repetition 0 or the no-information rate is missing, or points in a repetition.

    See Also
    --------
    cvstats.bootstrap_632 : The same estimate, with a standard error.
    cvstats.two_stage : Quantiles of corrected errors.
    cvstats.plans.bootstrap : The resampling plan that it needs.

    Notes
    -----
    With err the apparent error of the fit to the whole sample, app_b that of bootstrap fit b in
    its own sample, and q their quantiles, the limits are

    .. math::

        q_{\alpha/2}(\mathrm{app}) + \mathrm{estimate} - \mathrm{err}, \qquad
        q_{1 - \alpha/2}(\mathrm{app}) + \mathrm{estimate} - \mathrm{err} .

    Heuristic; B + 1 fits. The spread is that of apparent errors, which is the smaller the more a
    model overfits: least squares with a feature for every four points was covered 46% to 57% of
    the time, and a model that fits its training data perfectly has no spread, so that the
    interval is a point. ``caution`` says ``overfitting``. The interval need not contain
    the estimate, since bootstrap fits see each point more than once and their apparent errors
    are smaller than err.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based optimism
    correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> counts = np.vstack([np.ones(20, dtype=int), counts])
    >>> loss = (y - counts @ y[:, None] / 20) ** 2
    >>> index = pd.MultiIndex.from_product([range(401), range(20)], names=["repetition", "point"])
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> result = losses.cvci.location_shifted(no_information=y.var())
    >>> result[["estimate", "lower", "upper"]].round(3)
           estimate  lower  upper
    model
    mean      0.333  0.162  0.508
    """
    # Take percentiles of the apparent errors of the bootstrap fits, moved by the correction.
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="location_shifted",
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    (data,) = resamples(log.design)
    error = measure_of(correction)

    def measure(one: Resample, values: FloatArray) -> tuple[float, ...]:
        own = weighted_means(one.bags, one.losses(values))
        return (*error(one, values), *own.tolist())

    found = measure_samples(log, [data], measure, 2 + len(data.fits))[:, 0]
    apparent, second, own = found[0], found[1], found[2:]
    made = correct_by(correction, apparent, second, rates)
    extra: dict[str, FloatArray | float] = {"apparent": apparent}
    if correction != "harrell":
        extra |= {"out_of_bag": second}
    if rates is not None:
        extra |= {"no_information": rates}
    caution = np.full(len(apparent), never_out_caution([data], correction), dtype=np.int64)
    caution[made.clipped] |= Caution.BOUNDED
    caution |= overfitting_caution(apparent, second, OPTIMISTIC)
    extra |= {"n_points": data.bags.counts.shape[1], "n_repetitions": len(data.fits)}
    return percentile_interval(
        "location_shifted", made.estimate, own, shift=made.estimate - apparent, alpha=alpha,
        extra=extra, caution=caution, attrs={"correction": correction},
    )  # fmt: skip
