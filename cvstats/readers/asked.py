"""What the caller said besides the file: the options that readers look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Asked"]


@dataclass(frozen=True)
class Asked:
    """The options of one call.

    Parameters
    ----------
    loss : str or callable, optional
        The loss to be computed of predictions, or the name of a column that holds one.
    truth, prediction, model : optional
        The columns of the truth, of the predictions, and of the models' names.
    levels : dict
        For each level of a loss log the column that holds it.
    data : dict
        ``X``, ``y``, ``groups`` and ``cv``, for tools that do not store them.
    filter, metric, higher_is_better, missing : optional
        Which of several answers and scores, which way is better, and what failed samples do.
    """

    loss: str | Callable[[Any, Any], Any] | None = None
    truth: str | None = None
    prediction: Any = None
    model: str | None = None
    levels: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    filter: str | None = None
    metric: str | None = None
    higher_is_better: bool | None = None
    missing: str = "raise"

    @property
    def wanted(self) -> str | None:
        """The score that was asked for, under either name."""
        if self.metric is not None:
            return self.metric
        return self.loss if isinstance(self.loss, str) else None

    def given(self) -> list[str]:
        """List the options that were given, by the names they have in the call."""
        singles = ("truth", "prediction", "model", "filter", "metric", "higher_is_better")
        named = [name for name in singles if getattr(self, name) is not None]
        data = [name for name, value in self.data.items() if value is not None]
        return [*named, *self.levels, *data]
