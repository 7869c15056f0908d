"""Two-stage bootstrap percentile interval of Noma and others (2021)."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.errors import listed, spelled
from cvstats.intervals._bootstrap import (
    INTERPOLATES,
    Correction,
    correct_by,
    measure_of,
    measure_samples,
    never_out_caution,
    overfitting_caution,
    percentile_interval,
)
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._references import NOMA
from cvstats.intervals._requirements import levels_of_counts, used
from cvstats.log.bootstrap import Rates, code_of, no_information_of, resamples, tally
from cvstats.log.log import Log
from cvstats.options import Missing


def two_stage_samples(design: Design) -> str | None:
    """Ask for bootstrap samples, and the fit itself, of the data and of outer samples."""
    names = ("sample", "repetition", "point", "count")
    if (words := levels_of_counts(design, names, MADE)) is not None:
        return words
    if code_of(design, "sample", 0) is None or design.number("sample") < 3:
        shown = listed(map(spelled, used(design, "sample")))
        return (
            f"its level 'sample' has the labels {shown}. Expected 0 for the data and two outer "
            f"samples or more; {MADE}"
        )
    groups, found = tally(design)
    own = groups[:, 1] == code_of(design, "repetition", 0)
    labels = design.levels["sample"].labels
    for code in np.unique(groups[:, 0]).tolist():
        mine = groups[:, 0] == code
        if not (mine & own).any() or found[mine & own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no repetition 0. Expected the fit on each "
                f"outer sample itself, with counts of 1 and above (how often each point was "
                f"drawn); {MADE}"
            )
        if not found[mine & ~own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no evaluation out of bag (count 0). Expected "
                f"bootstrap samples of each outer sample; {MADE}"
            )
    return None


@IntervalMethod(
    requires=two_stage_samples,
    needs="bootstrap samples of the data and of resampled data sets, with the fit on each of them "
    "itself (levels 'sample', 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic; 'harrell' fails for models that fit their training data perfectly",
    fits="(B_outer + 1) (B_inner + 1)",
    reference=NOMA,
    needs_losses=True,
    for_differences=False,
    made_for=("sample", "count"),
    recognized_by="bootstrap samples of bootstrap samples (levels 'sample' and 'count')",
    takes_metrics=False,
)
def two_stage(
    log: Log,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
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
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN: quantiles have none) in the unit of the loss, and ``caution``.
        ``n_points``, ``n_samples`` (outer samples) and ``n_repetitions`` (bootstrap samples of
        each, the fewest) are in ``attrs``.

    Raises
    ------
    LogError
        If a level, sample 0, a repetition 0 or a no-information rate is missing.

    See Also
    --------
    cvstats.bootstrap_632 : One stage, with far fewer fits.
    cvstats.case_bootstrap : Leave-one-out within each bootstrap sample.
    cvstats.plans.two_stage : The resampling plan that it needs.

    Notes
    -----
    Heuristic; (B_outer + 1) (B_inner + 1) fits. For a model that fits its training data
    perfectly, "harrell" and "632" miss; ``caution`` says ``overfitting``. Out of bag is meant by
    point: a point drawn twice into an outer sample is out of bag of an inner one if no copy of it
    is in there, and then counts once. Apparent errors weigh points by how often they were drawn.

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
    # Take percentiles of the corrected error, computed anew from each outer sample.
    data = resamples(log.design)
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="two_stage", samples=[one.label for one in data],
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    apparent, second = measure_samples(log, data, measure_of(correction), 2)
    made = correct_by(correction, apparent, second, rates)
    outer = np.array([one.label != 0 for one in data])
    caution = np.full(apparent.shape[1], never_out_caution(data, correction), dtype=np.int64)
    caution[made.clipped.any(axis=0)] |= Caution.BOUNDED
    whole = int((~outer).argmax())
    caution |= overfitting_caution(apparent[whole], second[whole], INTERPOLATES)
    extra: dict[str, FloatArray | float] = {
        "n_points": data[whole].bags.counts.shape[1],
        "n_samples": int(outer.sum()),
        "n_repetitions": min(len(one.fits) for one in data),
    }
    return percentile_interval(
        "two_stage", made.estimate[~outer][0], made.estimate[outer],
        shift=np.zeros(apparent.shape[1]), alpha=alpha, extra=extra, caution=caution,
        attrs={"correction": correction},
    )  # fmt: skip


MADE = "cvstats.plans.two_stage makes such a log."
