"""What the caller said besides the file: the options that readers look at."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from cvstats.errors import LogError, is_several

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
    path : str, optional
        The file as it was named, for calls that messages show.
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
    path: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse several columns where one is meant."""
        one = ("loss", "metric", "truth", "model")
        for name, value in ({name: getattr(self, name) for name in one} | self.levels).items():
            if is_several(value) or not isinstance(value, Hashable):
                raise LogError(several_columns(name, value))

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


def several_columns(name: str, value: Any) -> str:
    """Say what to call where each model has a column of its own."""
    if is_several(value) and len(value) == 1:
        return f"{name}={value!r} is no name. Expected that of one column: {name}={value[0]!r}."
    said = f"{name}={value!r} names several columns. Expected one."
    if name not in ("loss", "metric"):
        return said
    return (
        f"{said} Where each model has a column of losses, call cvstats.as_log(frame, "
        f"loss={list(map(str, value))!r}, …); where it has one of predictions, pass "
        f"prediction=[…], and one loss."
    )
