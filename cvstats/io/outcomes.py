"""Whether a truth is what a loss of one probability needs: two labels, and known which is which.

The words name the column, and guess nothing: the probability of the other label would rank the
models upside down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, listed, spelled
from cvstats.io.asked import Asked
from cvstats.io.tidy import TRUTH, Tidy

__all__ = ["refuse_other_outcomes"]

OF_TWO = {**dict.fromkeys(("brier", "log_loss", "zero_one"), "probability"), "hinge": "score"}
"""What these losses take of one of two labels; zero_one with a threshold only."""
PLAIN = ({0, 1}, {-1, 1})
"""Truths in which it is plain what is predicted: 1."""


def refuse_other_outcomes(found: Any, asked: Asked, positive: Any, threshold: Any) -> None:
    """Refuse one prediction of two labels where there are not two, or nobody says of which."""
    if isinstance(found, dict):
        for part in found.values():
            refuse_other_outcomes(part, asked, positive, threshold)
        return
    loss = asked.loss if isinstance(asked.loss, str) else ""
    if loss not in OF_TWO or (loss == "zero_one" and threshold is None):
        return
    if isinstance(found, Tidy):
        each = bool(found.probabilities) and loss != "hinge"
        truth = None if each else found.table.get(TRUTH)
    else:
        truth = found.get(asked.truth or TRUTH) if isinstance(found, pd.DataFrame) else None
    if isinstance(truth, pd.Series):
        check(truth, asked.truth or TRUTH, loss, positive)


def check(truth: pd.Series, name: str, loss: str, positive: Any) -> None:
    """Look at the labels of one column."""
    labels = sorted(truth.dropna().unique(), key=order)
    if not labels or (positive is None and any(set(labels) <= plain for plain in PLAIN)):
        return
    if len(labels) > 2:
        raise LogError(several(truth, name, loss, labels))
    if positive is not None:
        return  # a label that is not there is refused where losses are computed
    *other, last = map(spelled, labels)
    met = f"the labels {other[0]} and {last}" if other else f"the label {last} alone"
    raise LogError(
        f"the truth {name!r} has {met}, and one {OF_TWO[loss]} is predicted. Expected which label "
        f"the {OF_TWO[loss]} is of: positive={last} or positive={other[0] if other else '…'}."
    )


def several(truth: pd.Series, name: str, loss: str, labels: list[Any]) -> str:
    """Say what to do with numbers, or with labels, that are more than two."""
    got = f"loss={loss!r} is for two classes, and the column {name!r} has {len(labels):,} different"
    if pd.api.types.is_numeric_dtype(truth):
        return (
            f"{got} values. Expected two labels. For a truth of numbers take "
            f"loss='squared_error' or loss='absolute_error'."
        )
    way = (
        "A probability of each class: cvstats.losses(table, prediction=[…], classes=[…])."
        if loss in ("brier", "log_loss")
        else "For predicted labels take loss='zero_one'."
    )
    return f"{got} labels: {listed(map(spelled, labels))}. Expected two. {way}"


def order(label: Any) -> tuple[bool, Any]:
    """Sort numbers as numbers, and before words."""
    number = isinstance(label, (int, float, np.number, np.bool_))
    return not number, label if number else str(label)
