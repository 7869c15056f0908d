"""What the rooms above ask of the losses: their moments, and whether all are 0 or 1."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from cvstats.core.chunked import pairs
from cvstats.core.chunked.cells import of_columns
from cvstats.core.chunked.columns import Columns, Differences
from cvstats.core.design import Design
from cvstats.core.moments import Moments
from cvstats.core.threads import BLOCK, NUMBER, is_count, spans
from cvstats.errors import LogError

__all__ = ["all_binary", "moments"]


def moments(design: Design, losses: Columns, by: Sequence[str]) -> Moments:
    """Moments of every column in every cell, in one pass over the losses.

    Many pairs of few models come from the models' co-moments, not from a column for each.

    Raises
    ------
    LogError
        If the environment asks for a number of threads that is none.
    """
    check_threads()
    if isinstance(losses, Differences) and pairs.worth(design, losses, by):
        return pairs.of_pairs(design, losses, by)
    return of_columns(design, losses, by)


def check_threads() -> None:
    """Refuse a number of threads that is none; blocks, which count them, have no words."""
    asked = os.environ.get(NUMBER, "")
    if asked.strip() and not is_count(asked):
        raise LogError(
            f"the environment variable {NUMBER} is {asked!r}. Expected a whole number of 1 or "
            f"more. Type export {NUMBER}=2; or unset {NUMBER}, for a thread on each core."
        )


def all_binary(design: Design, losses: Columns) -> bool:
    """Whether every loss that is there is exactly 0 or 1."""
    for start, stop in spans(design.size, BLOCK):
        here = slice(None) if design.present is None else design.present[start:stop]
        for j in range(losses.width):
            values = losses.column(j, start, stop)[here]
            if not np.all((values == 0) | (values == 1) | np.isnan(values)):
                return False
    return True
