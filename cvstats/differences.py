"""Where two models differ most: individual points, or groups with tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats.comparisons.compare import compare, difference
from cvstats.errors import LogError, checked_level, describe_type, listed
from cvstats.log.log import Losses
from cvstats.log.read import read
from cvstats.log.tables import as_container
from cvstats.options import Adjust, Missing, check_choices, find_choices, known_name, whole_number


def largest_differences(
    losses: Losses,
    other: Losses | None = None,
    *,
    by: str = "point",
    n: int = 10,
    reference: str | None = None,
    adjust: Adjust | None = "holm",
    missing: Missing = "raise",
) -> pd.DataFrame:
    """List the points, or the labels of another level, where two models differ most.

    Parameters
    ----------
    losses : Series or DataFrame
        A loss log of one model with ``other``, or of several.
    other : Series or DataFrame, optional
        The log of the other model, on the same evaluations.
    by : str, optional
        ``"point"``, or a level such as ``source`` or ``segment``, whose labels are tested.
    n : int, optional
        Number of points or labels to list for each pair of models.
    reference : str, optional
        The model to which all others are compared; by default all pairs are compared.
    adjust : {"holm", "bonferroni", "bh", None}, optional
        For labels: how ``p_adjusted`` accounts for all pairs and all labels, not only for those
        listed.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame
        The largest absolute differences first. For points: ``difference`` (mean over the
        evaluations of the point, in units of the loss; negative means that the model is better),
        ``share`` of the sum of the absolute differences of all points, and ``count`` of
        evaluations. For labels: the columns of `compare` with ``by=``.

    Raises
    ------
    LogError
        If the log has no such level, has pseudo-losses of a metric, which are not errors of points,
        or is not a pandas object.

    See Also
    --------
    cvstats.compare : How much better a model is.
    cvstats.heterogeneity : Whether a difference varies significantly between groups.

    Notes
    -----
    Points are listed for inspection only. They have no p-values, because they are selected for
    being extreme, and would differ less on new data. For labels, ``p_adjusted`` accounts for the
    number of labels.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.largest_differences(n=3).round(3)
                               difference  share  count
    model other         point
    ridge random_forest 256    -15853.979  0.027     10
                        9       -9294.107  0.016     10
                        340     -9218.709  0.016     10
    """
    whole_number("n", n, 1)
    checked_level("by", by)
    adjust = known_name("adjust", adjust)
    check_choices({"adjust": adjust, "missing": missing}, find_choices(largest_differences))
    losses = as_container(losses, [by])
    second: Any = as_container(other, [by])
    if not isinstance(losses, (pd.Series, pd.DataFrame)):
        raise LogError(
            f"{describe_type(losses)} is not a pandas log. Expected a Series or DataFrame: "
            "log.to_series() or log.to_dataframe()."
        )
    if by != "point":
        table: pd.DataFrame = compare(
            losses, second, reference=reference, by=by, adjust=adjust, missing=missing
        )
        return first_rows(table, n)
    if losses.attrs.get("pseudo"):
        raise LogError(
            "this log has pseudo-losses of a metric, which are influences, not errors of "
            "points. Expected a loss of individual points, such as loss='squared_error'."
        )
    names = list(read(losses, missing=missing).design.levels)
    keys = [name for name in ("source", "point") if name in names]
    if "point" not in keys:
        raise LogError(
            f"the log has no level 'point'. Expected one of its levels: by="
            f"{listed(map(repr, names)) or 'none'}."
        )
    gaps = difference(losses, second, reference=reference)
    read(gaps, missing=missing).moments(())  # reports the first missing loss
    frame = (gaps.to_frame(losses.name) if isinstance(gaps, pd.Series) else gaps).dropna()
    parts = {}
    for at, column in enumerate(frame.columns):
        pair = tuple(column) if second is None and reference is None else (column, reference)
        if second is not None:
            partners = [second.name] if isinstance(second, pd.Series) else list(second.columns)
            pair = (column, partners[0] if len(partners) == 1 else column)
        points = frame.iloc[:, at].groupby(keys, observed=True, sort=False)
        mean = points.mean()
        size = np.abs(mean)
        parts[pair] = pd.DataFrame(
            {"difference": mean, "share": size / size.sum(), "count": points.size()}
        )
    return first_rows(pd.concat(parts, names=["model", "other"]), n)


def first_rows(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """Sort by the size of the difference, and keep the first rows of each pair of models."""
    order = np.argsort(-np.abs(table["difference"].to_numpy()), kind="stable")
    ordered = table.iloc[order]
    pairs = [name for name in ("model", "other") if name in ordered.index.names]
    kept = ordered.groupby(pairs, observed=True, sort=False).head(n)
    kept.attrs = dict(table.attrs)
    return kept
