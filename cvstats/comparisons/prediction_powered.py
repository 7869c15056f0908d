"""A few labels of people, helped by many of a judge that is wrong at times."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvstats.comparisons._pairs import read_pairs
from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.columns import Differences
from cvstats.core.results import interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, is_number
from cvstats.log.align import take_other_points
from cvstats.log.log import Log, Losses, Table
from cvstats.log.read import read
from cvstats.options import Missing, check_alpha

REFERENCE = (
    "Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Science 382, 669-674, "
    "doi:10.1126/science.adi6000; Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv:2311.01453"
)

FEW = 30
"""Points with a label of a person below which the normal approximation is rough."""

FEW_APART = 10
"""Points on which people and judge disagree below which it is too rough for losses of 0 and 1."""


def prediction_powered(
    human: Losses,
    judge: Losses,
    judge_on_all: Losses,
    *,
    weight: float | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Prediction-powered interval for a mean: a few labels of people, many of a judge.

    The target is the mean of the losses that people would give, over points drawn as these were.
    With y the losses by people and f those by the judge on the same n points, and u those by the
    judge on N other points, the estimate is ``w mean(u) + mean(y - w f)``: what the judge says
    on many points, corrected by what it gets wrong on a few. Its variance is
    ``w^2 var(u) / N + var(y - w f) / n``. The weight w that makes it small is
    ``cov(y, f) / ((1 + n / N) var(f and u))``, clipped to [0, 1].

    Parameters
    ----------
    human : Series, DataFrame or DataArray
        Losses from labels of people, one for each of a few points: a level ``point``, and a
        column for each model.
    judge : the same kind
        Losses of the same answers from labels of the judge, in any order.
    judge_on_all : the same kind
        Those of many points. Points that people have labelled may be among them, and are not
        counted again.
    weight : float, optional
        In place of the best weight, a number from 0 (the judge does not count) to 1 (the first
        form of the method); chosen before the labels were seen.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the point out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the unit of the loss, ``weight``, ``human_se`` (the standard error
        without the judge) and ``caution``. ``n_points`` (labelled by people) and ``n_judged``
        (others) are in ``attrs``.

    Raises
    ------
    LogError
        If people and judge did not label the same points, if points are not named or appear several
        times, or if the judge has labelled no further point.

    Notes
    -----
    Exact as both numbers grow, however bad the judge is, if the points that people label were drawn
    at random from all: not the hard ones, and not those on which judges disagree. A bad judge
    gets a small weight, and at 0 the interval is that of the people alone. A judge that agrees
    with people with correlation r brings about as much as ``1 / (1 - r^2)`` times as many labels
    of people, as long as it labels many more points.

    With 200 labels of people, 95% intervals for a share of 20% covered in 94% to 95% of 2,000
    simulations, with 50 or 100 in 91% to 94%. A judge that hardly errs needs more of them: of one
    that is wrong on 5% of points, 50 labels show two or three errors, and ``caution`` then says
    ``few disagreements``.

    For two models pass the differences of their losses, by people and by the judge, as
    `difference` makes them.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Science 382, 669-674,
    doi:10.1126/science.adi6000.
    Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered inference,
    arXiv:2311.01453.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> points = pd.RangeIndex(1000, name="point")
    >>> truth = pd.Series(rng.random(1000) < 0.3, index=points, name="model").astype(float)
    >>> judged = truth.where(rng.random(1000) < 0.85, 1 - truth)
    >>> people = truth.sample(100, random_state=1)
    >>> found = cvstats.prediction_powered(people, judged[people.index], judged)
    >>> found.round(3)
           estimate  lower  upper     se  weight  human_se caution
    model
    model     0.298  0.236   0.36  0.032   0.618     0.045
    """
    check_alpha(alpha)
    if weight is not None and not (is_number(weight) and 0 <= weight <= 1):
        raise LogError(
            f"weight={weight!r} is out of range. Expected a number from 0 to 1, or None for the "
            f"best one."
        )
    check_points(read(human, missing=missing), "human")
    both = read_pairs(human, judge, None, missing)[0]
    others = read(judge_on_all, missing=missing)
    check_points(others, "judge_on_all")
    others = take_other_points(others, both)
    width = both.panels.width // 2
    pairs = Differences(both.panels, np.arange(width), np.arange(width) + width)
    of_both, of_others = both.moments(()), others.moments(())
    people, judged = of_both.pick(pairs.left), of_both.pick(pairs.right)
    n, n_others = people.count[0], of_others.count[0]
    if n < 2:
        raise LogError(f"people have labelled {n:.0f} point. Expected two or more.")
    error = both.moments((), pairs)  # y - f
    covariance = (people.m2[0] + judged.m2[0] - error.m2[0]) / 2 / n
    tuned = best_weight(covariance, judged, of_others)
    w = tuned if weight is None else np.full(width, float(weight))
    residual = people.m2[0] / n - 2 * w * covariance + w**2 * judged.m2[0] / n  # var(y - w f)
    shift = w * (of_others.location[0] - judged.location[0])
    caution = np.where(w == 0, np.int64(Caution.JUDGE_IGNORED), np.int64(0))
    binary = both.zero_one()
    known = binary[pairs.left] & binary[pairs.right] & (w > 0)
    caution[known & (error.squares[0] < FEW_APART - 0.5)] |= np.int64(Caution.FEW_DISAGREEMENTS)
    if both.design.has("source"):
        caution |= np.int64(Caution.SOURCES_IGNORED)
    if n < FEW:
        caution |= np.int64(Caution.FEW_POINTS)
    attrs: dict[str, Any] = {
        "target": "mean of the losses that people would give, over points drawn as these were",
        "guarantee": "exact as the points labelled by people and by the judge grow, if the former "
        "are drawn at random from all, however good or bad the judge is",
        "reference": REFERENCE,
    }
    result = interval(
        "prediction_powered",
        people.mean[0] + shift,
        np.maximum(residual, 0.0) / n + w**2 * of_others.m2[0] / n_others**2,
        origin=people.origin,
        alpha=alpha,
        extra={
            "weight": w, "human_se": np.sqrt(people.m2[0] / (n - 1) / n), "n_points": int(n),
            "n_judged": int(n_others),
        },
        caution=caution,
        attrs=attrs,
    )  # fmt: skip
    return both.label(result)


def best_weight(covariance: FloatArray, judged: Cells, others: Cells) -> FloatArray:
    """Weigh the judge by how much of the labels of people its own explain; 0 if it never varies."""
    n, n_others = judged.count[0], others.count[0]
    total = n + n_others
    gap = judged.location[0] - others.location[0]
    squares = judged.m2[0] + others.m2[0] + n * n_others / total * gap**2
    scaled = (1 + n / n_others) * squares / (total - 1)
    ratio = np.divide(covariance, scaled, out=np.zeros_like(scaled), where=scaled > 0)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


def check_points(log: Log, name: str) -> None:
    """Refuse what is not one loss for each of some named points."""
    design = log.design
    if "point" not in design.levels:
        raise LogError(
            f"the points of {name} have no names, and they are matched by name. Expected a level "
            f"'point'. Type {name}.rename_axis('point')."
        )
    for level in ("repetition", "fold", "outer", "sample"):
        if design.has(level):
            raise LogError(
                f"{name} has {design.number(level):,} labels of the level {level!r}. Expected one "
                f"loss for each point. Average them first: {name}.groupby('point').mean()."
            )
