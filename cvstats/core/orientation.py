"""Whether higher values of a metric are better, and conversion to losses and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Better = Literal["larger", "smaller", "closer"]

TURNED = ("1 - score", "-score")
"""Orientations of losses that were computed from a score, where higher is better."""

OFF_TARGET: Mapping[str, tuple[str, str]] = {
    "calibration_slope": (
        "its predictions are too extreme", "its predictions are not extreme enough",
    ),
    "calibration_intercept": (
        "its predicted probabilities are too high", "its predicted probabilities are too low",
    ),
    "observed_expected": (
        "its predicted probabilities are too high", "its predicted probabilities are too low",
    ),
    "coverage": ("its intervals are too narrow", "its intervals are wider than necessary"),
}  # fmt: skip
"""What a value below and above the target of a metric means for a model."""

TARGET = "target_value"
"""The attr of a log and of its results for the target of a metric."""


def turn(values: Any, orientation: str) -> Any:
    """Convert values of a metric to losses, or losses to values: it is its own inverse."""
    if orientation not in TURNED:
        return values
    return 1 - values if orientation == TURNED[0] else 0 - values


def facts_of_score(name: str, orientation: str) -> dict[Any, Any]:
    """Return the attrs of losses that were computed from a metric: loss, metric, orientation."""
    loss = orientation.removesuffix("score") + name if orientation in TURNED else name
    return {"loss": loss, "metric": name, "orientation": orientation}


def targets_of(metadata: Mapping[Any, Any]) -> dict[str, float]:
    """Map metrics to their targets, if they have one; empty for losses and scores.

    The target of a difference between groups is 0.
    """
    if metadata.get("kind") == "contrasts":
        return {"a difference between groups": 0.0}
    several = metadata.get("metrics")
    parts = several.values() if isinstance(several, Mapping) else [metadata]
    return {
        str(part.get("metric")): float(part[TARGET])
        for part in parts
        if isinstance(part, Mapping) and TARGET in part
    }
