"""Names of losses and metrics in other programs, such as scikit-learn's scorers."""

from __future__ import annotations

from typing import Any

from cvstats.errors import plainly
from cvstats.loss_functions.pointwise import LOSSES, OTHER_NAMES
from cvstats.metrics import METRICS

IMPLIED: dict[str, tuple[str, str]] = {
    **{name: ("average", name) for name in ("macro", "micro", "weighted")},
    **{name: ("multi_class", name) for name in ("ovr", "ovo")},
}
"""The options that the last words of a name stand for."""
QUADRATIC = ("quadratic-kappa", "quadratic-weighted-kappa", "qwk")


def find_loss(loss: Any) -> tuple[Any, dict[str, Any]]:
    """Find the loss or metric that a name stands for, and the options that it implies.

    Names that no program uses are returned as they are.

    Examples
    --------
    >>> find_loss("neg_mean_squared_error"), find_loss("f1_macro")
    (('squared_error', {}), ('f1', {'average': 'macro'}))
    """
    if not isinstance(loss, str) or loss in LOSSES or loss in METRICS:
        return loss, {}
    name = plainly(loss).removeprefix("neg-")
    if name in QUADRATIC:
        return "kappa", {"weights": "quadratic"}
    implied = {}
    while (last := name.rpartition("-")[2]) in IMPLIED and last != name:
        option, value = IMPLIED[last]
        implied[option] = value
        name = name.removesuffix(f"-{last}")
    own = {plainly(word): word for word in (*LOSSES, *METRICS)} | OTHER_NAMES
    for spelling in (name, name.removesuffix("-score"), name.removesuffix("-loss")):
        known = own.get(spelling, "")
        taken = METRICS[known].options if known in METRICS else ()
        if known and all(option in taken for option in implied):
            return known, implied
    return loss, {}


def is_loss(loss: object) -> bool:
    """Whether this is a loss or a metric, and not the name of a column."""
    found = find_loss(loss)[0]
    return callable(found) or (isinstance(found, str) and (found in LOSSES or found in METRICS))
