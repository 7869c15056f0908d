"""Replace-one cross-validation of Austern and Zhou: how much the error owes to one point."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import IntArray
from cvstats.errors import checked_choice

__all__ = ["CONSTANTS", "replace_one"]

CONSTANTS = ("efron-stein", "printed")


def replace_one(
    moments: Moments,
    samples: IntArray,
    *,
    constant: str,
    alpha: float,
    n_points: int,
    n_folds: int,
    n_repetitions: int,
) -> Result:
    """Interval from one cell for each sample; ``samples`` numbers the cells.

    Sample 0 is the data, 1 the half, and each further one the half with one point replaced.
    Every run has the same points in each repetition, so its pooled mean is the mean of its
    repetitions.
    """
    checked_choice("constant", constant, CONSTANTS)
    mean = moments.mean[np.argsort(samples)]
    total = ((mean[2:] - mean[1]) ** 2).sum(axis=0)
    # sigma^2 / n, with sigma^2 = (n / 4) total; the printed formula has n / 2
    variance = total / (4 if constant == "efron-stein" else 2)
    extra = {"n_points": n_points, "n_folds": n_folds, "n_repetitions": n_repetitions}
    attrs = {"constant": constant}
    if constant == "printed":
        attrs["guarantee"] = "conservative: twice the variance that is right as the points grow"
    return interval(
        "replace_one", mean[0], variance, alpha=alpha, extra=extra, attrs=attrs,
        caution=Caution.FEW_POINTS if n_points < 30 else 0,
    )  # fmt: skip
