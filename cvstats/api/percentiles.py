"""Intervals between quantiles of bootstrap replicates: the public functions."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from cvstats.api.options import checked
from cvstats.api.rates import Rates, leave_one_out_means
from cvstats.api.running import Losses, Missing, Table, checked_alpha
from cvstats.api.running_bootstrap import (
    run_case_bootstrap,
    run_location_shifted,
    run_two_stage,
)
from cvstats.containers import read

__all__ = ["Correction", "case_bootstrap", "location_shifted", "two_stage"]

Correction: TypeAlias = Literal["632+", "632", "harrell"]


def case_bootstrap(
    losses: Losses,
    *,
    leave_one_out: Losses | ArrayLike | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Bootstrap case cross-validation: leave-one-out within each bootstrap sample.

    The target is the expected risk. In bootstrap sample b every different point i is tested by
    a model that was trained without any of its N_ib copies; ``theta_b`` is the mean of these
    losses, weighted by N_ib. The estimate is the mean of the theta_b and the limits are their
    quantiles at alpha/2 and 1 - alpha/2. With ``leave_one_out`` the estimate is the mean of
    those losses, and the limits move along.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss for each different point of each bootstrap sample: levels ``repetition``,
        ``point`` and ``count`` (how often the point is in the sample, 1 or more).
    leave_one_out : log or array-like, optional
        Leave-one-out cross-validation of the sample itself: a log of the same models, or for
        one model a loss for each point in any order.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se`` (NaN: quantiles have none), ``lower``, ``upper`` in the unit of the
        loss, ``bias`` (what the correction subtracted, with ``leave_one_out``), ``n_points``,
        ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If a level is missing, if the log has evaluations out of bag, or if ``leave_one_out``
        has other models or fewer points.

    Notes
    -----
    Heuristic; about 0.632 n B fits, and n for the correction. Training sets of fewer different
    points make the uncorrected estimate too large. Where the counts of the samples do not add
    up to equally many draws, losses of drawn points are missing (or the samples were drawn in
    another way), and ``caution`` says so. Quantiles are of type 7 (linear between
    order statistics); those at 2.5% ask for 200 samples.

    References
    ----------
    Jiang, Varma and Simon (2008), Calculating confidence intervals for prediction error in
    microarray classification using resampling, Statistical Applications in Genetics and
    Molecular Biology 7(1), 8, doi:10.2202/1544-6115.1322.

    Examples
    --------
    The loss of a mean, with all copies of the point left out of it:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> others = (counts @ y[:, None] - counts * y) / (20 - counts)
    >>> names = ["repetition", "point"]
    >>> index = pd.MultiIndex.from_product([range(1, 401), range(20)], names=names)
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": ((y - others) ** 2).ravel()}, index)
    >>> losses = log[log["count"] > 0].set_index("count", append=True)["mean"]
    >>> without = (y - (y.sum() - y) / 19) ** 2
    >>> result = losses.cvci.case_bootstrap(leave_one_out=without)
    >>> result[["estimate", "lower", "upper", "bias"]].round(3)
           estimate  lower  upper   bias
    model
    mean      0.369  0.175  0.641  0.022
    """
    checked_alpha(alpha)
    log = read(losses, missing=missing)
    middle = None if leave_one_out is None else leave_one_out_means(log, leave_one_out, missing)
    return log.label(run_case_bootstrap(log, leave_one_out=middle, alpha=alpha))


def location_shifted(
    losses: Losses,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Location-shifted bootstrap: quantiles of apparent errors, moved to the corrected error.

    The target is the expected risk. ``app_b`` is the apparent error of bootstrap fit b in its
    own sample, a mean over points weighted by their counts. The limits are the quantiles of the
    app_b at alpha/2 and 1 - alpha/2, plus ``estimate - err`` with err the apparent error of the
    fit on the whole sample. The estimate is err, corrected for optimism.

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
    Series, DataFrame or Dataset
        ``estimate``, ``se`` (NaN: quantiles have none), ``lower``, ``upper``, ``apparent``,
        ``out_of_bag`` and ``no_information`` (as far as the correction has them), all in the
        unit of the loss; ``n_points``, ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If a level, repetition 0 or the no-information rate is missing, or points in a repetition.

    Notes
    -----
    Heuristic; B + 1 fits. The spread is that of apparent errors: a model that fits its training
    data perfectly has none, and the interval is then a point. The interval need not contain
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
    options: dict[str, Any] = {"correction": correction, "alpha": alpha}
    checked("location_shifted", options)
    log = read(losses, missing=missing)
    return log.label(run_location_shifted(log, no_information=no_information, **options))


def two_stage(
    losses: Losses,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Two-stage bootstrap: the corrected error, computed anew from resampled data sets.

    The target is the expected risk. Each outer sample s is treated as the data: a fit on itself
    and bootstrap samples of it give an error corrected for optimism. The estimate is that of
    the data (sample 0), and the limits are the quantiles ``q(alpha/2)`` and ``q(1 - alpha/2)``
    of those of the outer samples.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0 the data, others the outer samples), ``repetition`` (0 the fit on
        the sample itself, others its bootstrap samples), ``point`` and ``count``: how often the
        point was in the sample of that fit, which for repetition 0 is how often it was drawn
        into the outer sample. Each different point of an outer sample is in all its repetitions.
    correction : {"632+", "632", "harrell"}, optional
        As in `location_shifted`.
    no_information : mapping, sequence, Series, DataFrame or array, optional
        For "632+" a number for each sample, by label or in the order of the labels; for several
        models as much for each, by name, or a frame of samples by models. Without it
        ``losses.attrs["no_information"]``, which `cvstats.evaluate` writes.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se`` (NaN: quantiles have none), ``lower``, ``upper`` in the unit of the
        loss, ``n_points``, ``n_samples`` (outer samples), ``n_repetitions`` (bootstrap samples
        of each, the fewest) and ``caution``.

    Raises
    ------
    LogError
        If a level, sample 0, a repetition 0 or a no-information rate is missing.

    Notes
    -----
    Heuristic; (B_outer + 1) (B_inner + 1) fits. Out of bag is meant by point: a point drawn
    twice into an outer sample is out of bag of an inner one if no copy of it is in there, and
    then counts once. Apparent errors weigh points by how often they were drawn.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based optimism
    correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y, parts = rng.normal(size=20), []
    >>> for sample in range(201):
    ...     drawn = np.bincount(rng.integers(0, 20, 20) if sample else range(20), minlength=20)
    ...     counts = np.vstack([drawn, rng.multinomial(20, drawn / 20, size=30)])
    ...     loss = (y - counts @ y[:, None] / 20) ** 2
    ...     index = pd.MultiIndex.from_product([[sample], range(31), range(20)])
    ...     part = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    ...     parts.append(part[np.tile(drawn > 0, 31)])
    >>> log = pd.concat(parts).rename_axis(["sample", "repetition", "point"])
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> result = losses.cvci.two_stage(correction="632")
    >>> result.round(3)
           estimate  lower  upper  se           caution
    model
    mean      0.354  0.199  0.555 NaN  never out of bag
    """
    options: dict[str, Any] = {"correction": correction, "alpha": alpha}
    checked("two_stage", options)
    log = read(losses, missing=missing)
    return log.label(run_two_stage(log, no_information=no_information, **options))
