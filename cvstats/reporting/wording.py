"""Numbers and designs in words: what a loss is called, its values, and what was evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from cvstats.formatting import format_value
from cvstats.metrics import METRICS
from cvstats.scores import score

NAMES = {
    "1 - accuracy": "error rate",
    "absolute error": "mean absolute error",
    "brier": "Brier score",
    "loss": "mean loss",
    "percentage error": "mean percentage error",
    "squared error": "mean squared error",
    "zero one": "error rate",
}
"""What the mean of a loss is called, where it is not "mean" and the name of the loss."""

SHORT = {"acc": "accuracy", "acc_norm": "normalized accuracy", "em": "exact match"}
"""Names of scores in the logs of benchmarks, in words."""

SHARES = ("accuracy", "balanced accuracy", "error rate", "exact match", "normalized accuracy")
"""Shares of points, written in percent."""

SHARE, ANY = (0.0, 1.0), (-inf, inf)
"""What a share, and any number, may be."""

LOSS_WORDS = ("mean loss", "expected loss", "expected risk", "test error", "risk", "loss")
"""What targets call what is estimated; the longest come first."""

NAMED = 4
"""So many names are listed; of more, the others are counted."""


@dataclass(frozen=True)
class Scale:
    """The loss of a log, or the score that it was made from: name, units and direction."""

    name: str
    orientation: str = "error"
    units: str = ""
    bounds: tuple[float, float] = (-inf, inf)
    """No value is outside of these, and no interval for one is written as if it might be."""

    @property
    def larger(self) -> bool:
        """Whether larger values are better."""
        return self.orientation != "error"

    @property
    def percent(self) -> bool:
        """Whether values are shares, written in percent."""
        return is_share(self.name)

    @property
    def unit_words(self) -> str:
        """The units with a space before them, to be put after a number."""
        return f" {self.units}" if self.units else ""

    def value(self, loss: float, decimals: int) -> str:
        """Write the value that belongs to a mean loss."""
        shown = score(loss, self.orientation) if self.larger else loss
        return self._write(shown, decimals) + ("%" if self.percent else "")

    def difference(self, value: float, decimals: int) -> str:
        """Write a difference of two values."""
        text = self._write(value, decimals)
        return f"{text} percentage points" if self.percent else text

    def range(self, lower: float, upper: float, decimals: int, *, of_values: bool) -> str:
        """Write limits: of values, from which the loss is turned, or of a difference."""
        if of_values and self.larger:
            lower, upper = (score(limit, self.orientation) for limit in (upper, lower))
        if of_values:
            lower, upper = max(lower, self.bounds[0]), min(upper, self.bounds[1])
        ends = [self._write(limit, decimals) for limit in (lower, upper)]
        return " to ".join(f"{end}%" for end in ends) if self.percent and of_values else (
            " to ".join(ends)
        )  # fmt: skip

    def _write(self, number: float, decimals: int) -> str:
        if self.percent:
            number, decimals = 100 * number, max(0, decimals - 2)
        return format_value(number + 0.0, "estimate", decimals, "auto").replace("-", "−")


def is_share(words: str) -> bool:
    """Whether a score, or each of several, is a share of points."""
    return set(words.split(" or ")) <= set(SHARES)


def bounds_of(words: str) -> tuple[float, float]:
    """Say between which numbers the values of a score or a loss lie, as far as its name shows."""
    return SHARE if is_share(words) else ANY


def scale_of(noted: Mapping[Any, Any], facts: Mapping[Any, Any]) -> Scale:
    """Read off the attrs of a log and of its result what the numbers are."""
    named = {**facts, **noted}
    metric, orientation = named.get("metric"), named.get("orientation")
    units = str(named.get("units", ""))
    units = "" if units in ("1", "None") else units
    if isinstance(metric, str) and orientation is not None:
        if metric in METRICS:
            return Scale(METRICS[metric].words, str(orientation), units, METRICS[metric].range)
        words = " or ".join(
            SHORT.get(name, name.replace("_", " ")) for name in metric.split(" or ")
        )
        return Scale(words, str(orientation), units, bounds_of(words))
    loss = str(named.get("long_name") or named.get("loss") or "loss").replace("_", " ")
    for start, turned in (("1 - ", "1 - score"), ("-", "-score")):
        if loss.startswith(start) and len(loss) > len(start):
            words = loss.removeprefix(start)
            return Scale(words, turned, units, bounds_of(words))
    known = NAMES.get(loss) or (loss if loss.endswith((" score", " rate")) else f"mean {loss}")
    words = known.removeprefix("mean ") if loss.startswith("mean ") else known
    return Scale(words, "error", units, bounds_of(words))


def describe_basis(facts: Mapping[Any, Any]) -> str:
    """Say what was evaluated, by the counts in the attrs of a result."""
    whole = {name: facts[name] for name in facts if isinstance(facts[name], (int, float))}
    points = f"{whole['n_points']:,.0f} points" if "n_points" in whole else ""
    times = int(whole.get("n_repetitions", 1))
    again = f"{times:,} repetitions of " if times > 1 else ""
    method = facts.get("method")
    groups = whole.get("n_sources", whole.get("n_clusters"))
    if groups is not None:
        tasks = facts.get("sources_are") == "fixed"
        return f"{points} of {groups:,.0f} {'tasks' if tasks else 'sources'}"
    if facts.get("holds") == "scores" and "n_splits" in whole:
        size = whole.get("n_test", 1.0)  # 1 where only their share of the points is known
        each = f" of {'' if size == int(size) else 'about '}{size:,.0f} points" * (size > 1)
        return f"{whole['n_splits']:,.0f} test sets{each}"
    if method == "holdout":
        return f"one test set of {points}" + (f", evaluated {times:,} times" if times > 1 else "")
    if method == "wald" and points and "n_folds" in whole:
        alone = whole["n_folds"] == whole["n_points"]
        what = "leave-one-out" if alone else f"{whole['n_folds']:,.0f}-fold"
        return f"{points} in {again}{what} cross-validation"
    if "n_splits" in whole and "n_divisions" not in whole:
        return f"{whole['n_splits']:,.0f} splits" + (f" of {points}" if points else "")
    reason = str(facts.get("reason", "")).partition(";")[0].partition(":")[0]
    return f"{points} ({reason})" if points and reason else points or reason


def describe_target(target: str, scale: Scale) -> str:
    """Say what the interval is for, of a score by its name, and of a loss without "risk"."""
    if not scale.larger:
        return target.replace("risk", "error")
    words = next((words for words in LOSS_WORDS if words in target), None)
    return target if words is None else target.replace(words, scale.name)


def p_words(p: float) -> str:
    """Write a p-value for a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def join_words(words: Sequence[str]) -> str:
    """Join words by commas, and the last one by "and"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def list_names(names: Sequence[str]) -> str:
    """List some names, and count the others."""
    if len(names) <= NAMED:
        return join_words(names)
    return join_words([*names[: NAMED - 1], f"{len(names) - NAMED + 1:,} more"])
