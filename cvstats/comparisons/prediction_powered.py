"""A few human labels, combined with many labels from an imperfect judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvstats.comparisons._pairs import read_pairs
from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.results import flag, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, is_number
from cvstats.log.align import take_other_points
from cvstats.log.log import Log, Losses, Table
from cvstats.log.loss_checks import mark_shapes
from cvstats.log.read import read
from cvstats.options import Missing, check_alpha

REFERENCE = (
    "Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Science 382, 669-674, "
    "doi:10.1126/science.adi6000; Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv:2311.01453"
)


FEW_APART = 10
"""Number of disagreements between people and judge below which it is too rough for 0/1 losses."""


def prediction_powered(
    human: Losses,
    judge: Losses,
    judge_on_all: Losses,
    *,
    weight: float | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Prediction-powered interval for a mean, from few human labels and many labels of a judge.

    The target is the mean loss that people would give, over points from the same population. Let y
    be the losses from human labels on n points, f the losses from the judge's labels on the same
    points, and u the losses from the judge's labels on N other points. The estimate is ``w mean(u)
    + mean(y - w f)``: the judge's mean on many points, corrected by its error on a few. Its
    variance is ``w^2 var(u) / N + var(y - w f) / n``. The default weight w, which minimizes this
    variance, is ``cov(y, f) / ((1 + n / N) var(f and u))``, clipped to [0, 1]. The limits use
    Student's t.

    Parameters
    ----------
    human : Series, DataFrame or DataArray
        Losses from human labels, one for each of a few points: a level ``point``, and a column
        for each model.
    judge : the same kind
        Losses of the same answers from labels of the judge, in any order.
    judge_on_all : the same kind
        Losses of many points from labels of the judge. They may include points that people
        labeled, which are not counted twice.
    weight : float, optional
        Instead of the best weight, a number from 0 (ignore the judge) to 1 (the original form of
        the method), chosen before seeing the labels.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their points are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``df``, ``weight``, ``human_se`` (the
        standard error without the judge) and ``caution``. ``n_points`` (labeled by people) and
        ``n_judged`` (others) are in ``attrs``.

    Raises
    ------
    LogError
        If people and judge did not label the same points, if points have no labels or appear
        several times, or if the judge labeled no other point.

    Notes
    -----
    The interval is asymptotically exact in both numbers of points, no matter how bad the judge is,
    if the points that people label are a random sample. It is not valid if people label only hard
    points, or points on which judges disagree. A bad judge gets a small weight, and with a weight
    of 0 the interval uses only the human labels. If the judge labels many more points, and its
    losses have correlation r with the human losses, using it is worth about as much as ``1 / (1 -
    r^2)`` times as many human labels.

    With 200 human labels, 95% intervals for a proportion of 20% covered in 94% to 95% of 2,000
    simulations, and with 50 or 100 labels in 92% to 95%; for the mean of 30 to 200 ratings from 0
    to 4 in 94% to 95%. An accurate judge needs more human labels: if it is wrong on 5% of points,
    50 labels show two or three errors, and ``caution`` then contains ``few disagreements``.

    To compare two models, pass the differences of their losses from `difference`, by people and
    by the judge.

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
          estimate  lower  upper     se  df weight human_se caution
    model
    model    0.298  0.234  0.361  0.032  98  0.618    0.045
    """
    check_alpha(alpha)
    if weight is not None and not (is_number(weight) and 0 <= weight <= 1):
        raise LogError(
            f"weight={weight!r} is out of range. Expected a number from 0 to 1, or None for the "
            "best weight."
        )
    check_points(read(human, missing=missing), "human")
    given: Any = judge
    if given is None:  # `read_pairs` would compare the models of human
        raise LogError(
            "judge=None is not a loss log. Expected the losses of the same points from labels of "
            "the judge. For human labels alone use holdout."
        )
    check_points(read(judge, missing=missing), "judge")
    both = read_pairs(human, judge, None, missing).without_pairs()
    others = read(judge_on_all, missing=missing)
    check_points(others, "judge_on_all")
    others = take_other_points(others, both)
    left, right = np.arange(both.losses.width).reshape(2, -1)
    of_both, of_others = both.moments(()), others.moments(())
    people, judged = of_both.take_columns(left), of_both.take_columns(right)
    n, n_others = people.count[0], of_others.count[0]
    if n < 2:
        raise LogError(f"{n:.0f} point has a human label. Expected at least two.")
    error = replace(both, pairs=(left, right)).moments(())  # y - f
    covariance = (people.m2[0] + judged.m2[0] - error.m2[0]) / 2 / n
    tuned = best_weight(covariance, judged, of_others)
    w = tuned if weight is None else np.full(len(left), float(weight))
    residual = people.m2[0] / n - 2 * w * covariance + w**2 * judged.m2[0] / n  # var(y - w f)
    shift = w * (of_others.location[0] - judged.location[0])
    caution = flag(Caution.JUDGE_IGNORED, w == 0)
    binary = both.zero_one()
    known = binary[left] & binary[right] & (w > 0)
    caution |= flag(Caution.FEW_DISAGREEMENTS, known & (error.squares[0] < FEW_APART - 0.5))
    caution |= mark_residuals(both, w)
    calls = {Caution.SKEWED: "Have people label more points."}
    if both.design.has("source"):
        caution |= np.int64(Caution.SOURCES_IGNORED)
        calls[Caution.SOURCES_IGNORED] = OF_LABELED_SOURCES
    if n < ENOUGH_POINTS:
        caution |= np.int64(Caution.FEW_POINTS)
    attrs: dict[str, Any] = {
        "target": "mean of the losses that people would give, over points from the same population",
        "guarantee": "asymptotically exact in the numbers of points labeled by people and "
        "judge, if the former are drawn at random from all, however good or bad the judge is",
        "reference": REFERENCE,
    }
    result = interval(
        "prediction_powered",
        people.mean[0] + shift,
        np.maximum(residual, 0.0) / (n - 1) + w**2 * of_others.m2[0] / n_others**2,
        origin=people.origin,
        alpha=alpha,
        df=max(n - (2 if weight is None else 1), 1),  # as in a regression of y on f
        extra={
            "weight": w, "human_se": np.sqrt(people.m2[0] / (n - 1) / n), "n_points": int(n),
            "n_judged": int(n_others),
        },
        caution=caution,
        attrs=attrs,
    )  # fmt: skip
    return both.label(replace(result, calls=calls))


OF_LABELED_SOURCES = (
    "Use human.cvci.clustered(), which ignores the judge, and have people label whole sources in "
    "the next experiment."
)
"""The advice if labeled points have sources; no model was trained here."""


def mark_residuals(both: Log, weight: FloatArray) -> IntArray:
    """Mark models whose residuals ``y - w f`` are too skewed or heavy-tailed for their number."""
    columns, width = list(both.columns()), len(weight)
    pairs = zip(columns[:width], columns[width:], weight, strict=True)
    rests = {i: y - w * f for i, (y, f, w) in enumerate(pairs) if y is not None and f is not None}
    marks = np.zeros(width, dtype=np.int64)
    if rests:
        table = np.stack(list(rests.values()), axis=1)[both.design.here]
        marks[list(rests)] = mark_shapes(table[None], (len(table),))[0]
    return marks


def best_weight(covariance: FloatArray, judged: Cells, others: Cells) -> FloatArray:
    """Weight the judge by how well its labels predict the human labels; 0 if they are constant."""
    n, n_others = judged.count[0], others.count[0]
    total = n + n_others
    gap = judged.location[0] - others.location[0]
    squares = judged.m2[0] + others.m2[0] + n * n_others / total * gap**2
    scaled = (1 + n / n_others) * squares / (total - 1)
    ratio = np.divide(covariance, scaled, out=np.zeros_like(scaled), where=scaled > 0)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


def check_points(log: Log, name: str) -> None:
    """Reject logs without exactly one loss per labeled point."""
    design = log.design
    if "point" not in design.levels:
        raise LogError(
            f"the points of {name} have no labels, but points are matched by label. Expected a "
            f"level 'point': {name}.rename_axis('point')."
        )
    for level in ("repetition", "fold", "outer", "sample"):
        if design.has(level):
            raise LogError(
                f"{name} has {design.number(level):,} labels of the level {level!r}. Expected "
                f"one loss per point. Average them first: {name}.groupby('point').mean()."
            )
