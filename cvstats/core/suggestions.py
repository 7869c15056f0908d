"""Levels that a log has and no method uses, although their names sound like those of ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable
from difflib import get_close_matches

from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import folds_are_guessed
from cvstats.errors import plainly

SYNONYMS = {
    "source": (
        "center", "centre", "cluster", "datasource", "document", "domain", "group", "hospital",
        "participant", "patient", "site", "speaker", "study", "subject", "user",
    ),
    "fold": ("foldid", "kfold", "split"),
    "repetition": ("epoch", "iter", "iteration", "rep", "repeat", "run", "seed"),
    "point": ("observation", "obs", "row"),
}  # fmt: skip
"""What others call the levels, in the singular."""

MEANT = {word: level for level, words in SYNONYMS.items() for word in (level, *words)}
ALONE = dict.fromkeys(("id", "idx", "index", "sample-id", "obs-id"), "point")
"""Names that mean something as a whole; beside other words these say nothing."""

LABELS = ("boolean", "categorical", "integer", "string")
"""Kinds of values that can name something, as pandas calls them."""

BESIDES = {"cv", "data", "id", "idx", "index", "key", "label", "name", "no", "nr", "num", "number"}

NEAR = 0.86
"""How alike a misspelt name is at least: ``sorce`` is ``source``, and ``folder`` no ``fold``."""


def suggest_level(name: str) -> str | None:
    """Guess which level a name stands for; None where it sounds like none of ours."""
    whole = plainly(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name))
    if whole in ALONE:
        return ALONE[whole]
    word = "".join(part for part in whole.split("-") if part not in BESIDES)
    for spelling in (word, word.removesuffix("s")):
        if spelling in MEANT:
            return MEANT[spelling]
    near = get_close_matches(word, SYNONYMS, n=1, cutoff=NEAR)
    return near[0] if near else None


def sounding_like(
    columns: Iterable[Hashable], taken: Collection[Hashable], levels: Collection[str]
) -> list[str]:
    """Find columns that are called much like a level that was not named.

    ``taken`` are columns that are something already, ``levels`` those that the table has.
    """
    every = list(columns)
    return [
        name
        for name in every
        if isinstance(name, str)
        and name not in taken
        and suggest_level(name) not in (None, "point", *levels)
        and every.count(name) == 1
    ]


def can_name(kind: str, different: int) -> bool:
    """Whether values of a kind, of which so many are different, may be the labels of a level."""
    return kind in LABELS and different > 1


def unrecognized_levels(design: Design, used: Collection[str | None] = ()) -> dict[str, str]:
    """Find the levels that no method uses, and which level that the log lacks each may name.

    ``used`` are levels that were asked for by name. Sources are not a guess where each has one
    evaluation only: then they are the points.
    """
    found: dict[str, str] = {}
    for name in design.levels:
        if name in LEVELS or name in used:
            continue
        level = suggest_level(name)
        if level is None or level in design.levels:
            level = "fold" if folds_are_guessed(design) else None
        if level is None or not design.has(name):
            continue
        if level == "source" and design.number(name) == rows(design):
            continue
        found[name] = level
    return found


def rows(design: Design) -> int:
    """Count the evaluations."""
    return int(design.splits().rows.sum())


def suggest_renaming(design: Design, name: str, level: str) -> str:
    """Say what to type to call a level by another name."""
    if design.taking.startswith("log.sel"):
        return f"log.rename({{{name!r}: {level!r}}})"
    return f"log.rename_axis(index={{{name!r}: {level!r}}})"
