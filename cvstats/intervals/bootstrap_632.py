"""The .632 and .632+ errors, with the standard error of the leave-one-out bootstrap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray
from cvstats.errors import checked_flag
from cvstats.intervals._bootstrap import (
    INTERPOLATES,
    MonteCarlo,
    apparent_error,
    correct_errors,
    estimate_out_of_bag,
    overfitting_caution,
)
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._references import EFRON
from cvstats.intervals._requirements import bootstrap_with_apparent_error
from cvstats.log.bootstrap import Rates, no_information_of, resamples
from cvstats.log.log import Log
from cvstats.options import Missing


@IntervalMethod(
    check=lambda options: checked_flag("plus", options["plus"]),
    requires=bootstrap_with_apparent_error,
    needs="bootstrap samples with the losses of their points out of bag, and the fit on the sample "
    "itself (levels 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic: the standard error is that of bootstrap_oob, in proportion; .632 is "
    "far too small for models that fit their training data perfectly",
    fits="B + 1",
    reference=EFRON,
    needs_losses=True,
    for_differences=False,
    made_for=("count",),
    recognized_by="bootstrap samples, and the fit on the sample itself (repetition 0)",
    takes_metrics=False,
)
def bootstrap_632(
    log: Log,
    *,
    plus: bool = True,
    no_information: Rates | None = None,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r""".632+ bootstrap: out-of-bag error, corrected for its smaller training samples.

    The target is the expected risk at n points. The estimate is a weighted mean of two errors: the
    apparent error of the model fitted to the whole sample, which is too small, and the
    leave-one-out bootstrap error of `bootstrap_oob`, which is too large. The latter has the weight
    0.632 for .632; for .632+ its weight rises from there to 1, the more the model overfits. The
    standard error is that of `bootstrap_oob`, multiplied by the ratio of the two estimates.

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
        See `bootstrap_oob`. The noise of the samples hides that .632+ estimates its weight: with
        "removed" its intervals are too narrow, and those of learners that overfit covered 65% to
        87% in place of 95%.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper``, ``se``, ``se_monte_carlo``, ``apparent`` (err), ``out_of_bag`` (Err1) and
        ``no_information`` (gamma), all in the unit of the loss; ``overfitting`` (R), ``weight`` (w)
        and ``caution``. ``n_points`` and ``n_repetitions`` are in ``attrs``, or columns where rows
        differ in them.

    Raises
    ------
    LogError
        If repetition 0 or gamma is missing, or for the reasons of `bootstrap_oob`.

    See Also
    --------
    cvstats.bootstrap_oob : The out-of-bag error alone, which also compares models.
    cvstats.location_shifted : The same estimate, with quantiles of apparent errors.
    cvstats.plans.bootstrap : The resampling plan that it needs.

    Notes
    -----
    With err the apparent error, Err1 that of `bootstrap_oob` and gamma the no-information rate,

    .. math::

        \mathrm{estimate} = (1 - w)\,\mathrm{err} + w\,\mathrm{Err}_1, \qquad
        w_{.632+} = \frac{0.632}{1 - 0.368 R}, \qquad
        R = \frac{\mathrm{Err}_1 - \mathrm{err}}{\gamma - \mathrm{err}} .

    Heuristic; B + 1 fits. For a model that fits its training data perfectly .632 is
    0.632 Err1, whatever the error is, and covered 18% to 24% for the nearest neighbour;
    ``caution`` then says ``overfitting``. R is kept within 0 and 1, and Err1 at or below gamma
    where it enters the estimate; ``caution`` says where that was needed. The proportion of the
    standard errors supposes that losses are positive: it is left out where Err1 is not, and
    rules out differences of two models; `bootstrap_oob` compares them.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007, equations 24-32.

    Examples
    --------
    The nearest neighbour of 40 labels that are coin tosses and cannot be predicted:

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
    >>> print(result.attrs["cautions"]["bounded"])
    The standard error, or the overfitting rate, was put at the end of its possible range. ...
    """
    # Weigh apparent and out-of-bag error; the standard error is that of Err1, in proportion.
    #
    # The proportion makes sense for errors, which are positive, and is left out for others.
    rates = None
    if plus:
        rates = no_information_of(
            log, no_information, method="bootstrap_632", without="plus=False (the .632 error)"
        )
    (data,) = resamples(log.design)
    data.check_draws()
    own: list[float] = []

    def columns() -> Iterator[FloatArray | None]:
        for values in log.columns():
            own.append(np.nan if values is None else apparent_error(data, values))
            yield None if values is None else data.losses(values)

    found = estimate_out_of_bag(data.bags, columns(), monte_carlo=monte_carlo)
    n_repetitions, n_points = data.bags.counts.shape
    apparent = np.array(own)
    mixed = correct_errors(apparent, found.error, rates)
    with np.errstate(divide="ignore", invalid="ignore"):
        sensible = (found.error > 0) & (mixed.estimate >= 0)
        ratio = np.where(sensible, mixed.estimate / found.error, 1.0)
    caution = found.caution.copy()
    caution[mixed.clipped] |= Caution.BOUNDED
    if rates is None:  # the weights of .632+ allow for it
        caution |= overfitting_caution(apparent, found.error, INTERPOLATES)
    correction = "632" if rates is None else "632+"
    extra: dict[str, FloatArray | float] = {"se_monte_carlo": np.sqrt(found.noise) * ratio}
    extra |= {"apparent": apparent, "out_of_bag": found.error}
    if rates is not None:
        extra |= {"no_information": rates, "overfitting": mixed.overfitting}
    extra |= {"weight": mixed.weight, "n_points": n_points, "n_repetitions": n_repetitions}
    return interval(
        "bootstrap_632", mixed.estimate, found.variance * ratio**2, origin=0.0, alpha=alpha,
        extra=extra,
        caution=caution, attrs={"correction": correction, "monte_carlo": monte_carlo},
    )  # fmt: skip
