"""What a method declares about itself, beside its public function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cvstats.core.design import Design
from cvstats.errors import LogError
from cvstats.options import check_alpha, check_choices, find_choices

__all__ = ["Method"]

SHARED = ("losses", "missing")
"""Parameters that every public function has and no formula sees."""


@dataclass(frozen=True, eq=False)
class Method:
    """The facts about one method, shown to users and checked before it runs.

    Parameters
    ----------
    function : callable
        The public function. Its name, signature and docstring are those of the method.
    requires : callable
        Takes the design of a log (and the label of ``level_option``, where the method has one)
        and returns what is missing, in words, or None where the method applies.
    needs, target, guarantee, fits, reference : str
        The log it needs, what the result is about, what is promised, how many models have to be
        fitted, and the source.
    plan : str
        The resampling plan that makes such a log, where ``requires`` does not name it.
    models : int
        How many models it needs at least.
    of_losses : callable, optional
        Takes the log and returns what is wrong with its losses, or None.
    needs_losses : bool
        Whether it looks at single losses, so that moments of cells are not enough.
    takes_scores : bool
        Whether one score per split is enough.
    level_option : str, optional
        The option that names a level of the log.
    """

    function: Callable[..., Any]
    requires: Callable[..., str | None]
    needs: str
    target: str
    guarantee: str
    fits: str
    reference: str
    plan: str = ""
    models: int = 1
    of_losses: Callable[[Any], str | None] | None = None
    needs_losses: bool = False
    takes_scores: bool = False
    level_option: str | None = None

    @property
    def name(self) -> str:
        """The name of the method is that of its function."""
        return self.function.__name__

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Options and their defaults, read off the public function."""
        parameters = inspect.signature(self.function).parameters
        return {name: p.default for name, p in parameters.items() if name not in SHARED}

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that no log could make right."""
        if "alpha" in options:
            check_alpha(options["alpha"])
        check_choices(options, find_choices(self.function))

    def problem(self, design: Design, options: Mapping[str, Any] | None = None) -> str | None:
        """Say what is missing, and which plan makes it; None where the method applies."""
        if design.scores and not self.takes_scores:
            return (
                "the log holds one score for each split, and no losses of single points. Choose "
                "corrected_t or five_by_two, or read predictions instead of scores."
            )
        if self.level_option is None:
            words = self.requires(design)
        else:
            words = self.requires(design, {**self.defaults, **(options or {})}[self.level_option])
        if words is None or not self.plan or "cvstats.plans" in words:
            return words
        return f"{words} cvstats.plans.{self.plan} makes a log for {self.name}."

    def require(self, design: Design, options: Mapping[str, Any] | None = None) -> None:
        """Refuse a log that the method cannot answer for.

        Raises
        ------
        LogError
            What the method needs, what this log is, and what to type instead.
        """
        if (words := self.problem(design, options)) is not None:
            raise LogError(f"{self.name} needs {self.needs}; {words}")

    def facts(self) -> dict[str, str]:
        """Facts that every result of the method carries."""
        return {
            "target": self.target,
            "guarantee": self.guarantee,
            "reference": self.reference,
        }
