"""What readers of several tools share: options, required columns, models, class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, is_several, listed, nearest
from cvstats.io.formats.tabular import TextOptions
from cvstats.loss_functions import is_loss


@dataclass(frozen=True)
class ReadOptions:
    """The options of a call that readers look at.

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
        Which of several answers and scores (or which of them for each task), which way is better,
        and what failed samples do.
    text : TextOptions
        How numbers and letters are written in a CSV file.
    drop_duplicates : bool
        Whether copies of rows are left out.
    """

    loss: str | Callable[[Any, Any], Any] | None = None
    truth: str | None = None
    prediction: Any = None
    model: str | None = None
    levels: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    filter: str | Mapping[str, str] | None = None
    metric: str | Mapping[str, str] | None = None
    higher_is_better: bool | None = None
    missing: str = "raise"
    text: TextOptions = TextOptions()
    drop_duplicates: bool = False

    def __post_init__(self) -> None:
        """Refuse several columns where one is expected."""
        one = ("loss", "metric", "truth", "model")
        for name, value in ({name: getattr(self, name) for name in one} | self.levels).items():
            if name == "metric" and isinstance(value, Mapping):
                continue  # a score for each task
            if name == "loss" and is_several(value) and all(map(is_loss, value)):
                continue  # several losses of predictions
            if is_several(value) and len(value) == 1:
                raise LogError(
                    f"{name}={value!r} is a list. Expected the name of one column: "
                    f"{name}={value[0]!r}."
                )
            if isinstance(value, (np.ndarray, pd.Series, pd.Index)):
                array = {"truth": "y", "source": "groups"}.get(name)
                way = (
                    f" Predictions that are arrays are read with {array}= and cv=: "
                    f"read_log(predictions, y=y, cv=cv, loss=…)." if array else ""
                )  # fmt: skip
                raise LogError(
                    f"{name}= is a {type(value).__name__} of {len(value):,} values. Expected the "
                    f"name of a column, such as {name}={name!r}.{way}"
                )
            if is_several(value) or not isinstance(value, Hashable):
                way = (
                    f" Where each model has a column of losses, call cvstats.as_log(frame, "
                    f"loss={list(map(str, value))!r}, …); where it has one of predictions, pass "
                    f"prediction=[…], and one loss."
                    if name in ("loss", "metric") and isinstance(value, Iterable) else ""
                )  # fmt: skip
                raise LogError(f"{name}={value!r} names several columns. Expected one.{way}")

    @property
    def metric_name(self) -> str | None:
        """The column of scores that was named."""
        return self.metric if isinstance(self.metric, str) else None

    @property
    def wanted(self) -> str | None:
        """The score that was named, by either option."""
        if self.metric_name is not None:
            return self.metric_name
        return self.loss if isinstance(self.loss, str) else None

    @property
    def wanted_by_task(self) -> str | Mapping[str, str] | None:
        """The score that was named for all tasks, or for each."""
        return self.metric if isinstance(self.metric, Mapping) else self.wanted

    @property
    def predictions(self) -> list[str]:
        """The columns of predictions that were named."""
        if self.prediction is None:
            return []
        names = self.prediction if is_several(self.prediction) else [self.prediction]
        return [str(name) for name in names]

    def given(self) -> list[str]:
        """List the options that were given, by their names in the call."""
        singles = ("truth", "prediction", "model", "filter", "metric", "higher_is_better")
        named = [name for name in singles if getattr(self, name) is not None]
        data = [name for name, value in self.data.items() if value is not None]
        return [*named, *self.levels, *data]


def require_columns(table: pd.DataFrame, columns: Iterable[str], tool: str) -> None:
    """Refuse a table that lacks columns which the tool always writes, or the caller named."""
    lost = [column for column in columns if column not in table.columns]
    if lost:
        raise LogError(
            f"this is not a {tool}: it has no column {listed(map(repr, lost))}. Found "
            f"{listed(map(repr, table.columns))}.{nearest(lost[0], table.columns)}"
        )


def add_named(out: pd.DataFrame, table: pd.DataFrame, options: ReadOptions) -> None:
    """Add the columns that ``model=`` and ``source=`` name."""
    for name, column in (("model", options.model), ("source", options.levels.get("source"))):
        if column is not None:
            require_columns(table, [column], f"table with this {name}=")
            out[name] = table[column]


def add_probabilities(
    out: pd.DataFrame, table: pd.DataFrame, columns: Mapping[Hashable, Any]
) -> dict[Hashable, str]:
    """Add the probability of each class, by the column of it; return the names of the new ones."""
    found = {label: f"prob_{label}" for label in columns}
    for label, column in columns.items():
        out[found[label]] = table[column]
    return found


def prefixed(table: pd.DataFrame, prefix: str) -> dict[Hashable, str]:
    """Find the classes whose probabilities are in columns with a prefix."""
    names = [str(name) for name in table.columns if str(name).startswith(prefix)]
    return {name.removeprefix(prefix): name for name in names}


def likeliest(table: pd.DataFrame, columns: Mapping[Hashable, Any]) -> pd.Series:
    """Name the class with the highest probability in each row."""
    numbers = table[list(columns.values())].to_numpy(dtype=float)
    return pd.Series(pd.Index(list(columns))[numbers.argmax(axis=1)], index=table.index)
