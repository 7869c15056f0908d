"""Names of models and sources, short enough to leave space for the plot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cvstats.formatting import printable

BREAKS = re.compile(r"([-_/ ·,;:|]+|(?<=[a-z0-9])(?=[A-Z][a-z]))")
"""What separates the words of a name."""


def shorten_names(names: Sequence[str], longest: int = 28) -> list[str]:
    """Shorten names that would leave no space for the plot, keeping them distinct.

    The middle of a name is cut. If two names would then look the same, names with the same number
    of words keep the words in which they differ, or are numbered by position.
    """
    full = {name: printable(name) for name in names}
    short = {name: cut_middle(text, longest) for name, text in full.items()}
    families: dict[int, list[str]] = {}
    for name, text in full.items():
        if len(text) > longest:
            families.setdefault(len(BREAKS.findall(text)), []).append(name)
    doubtful = find_duplicates(short)
    for family in families.values():
        if doubtful & set(family):
            forms = keep_differing_words([full[name] for name in family], longest)
            short |= zip(family, forms, strict=False)
    doubtful = find_duplicates(short)
    taken = set(short.values())
    for number, name in enumerate(short, 1):
        if name in doubtful:
            step = number
            while (form := cut_end(full[name], f"…({step})", longest)) in taken:
                step += len(short)
            short[name] = form
            taken.add(form)
    return [escape_math(short[name]) for name in names]


def escape_math(text: str) -> str:
    """Escape dollar signs, which would begin a formula."""
    return text.replace("$", r"\$")


def find_duplicates(short: dict[str, str]) -> set[str]:
    """Find the names whose short form is not unique."""
    number = Counter(short.values())
    return {name for name, form in short.items() if number[form] > 1}


def cut_end(name: str, end: str, longest: int) -> str:
    """Replace the end of a name by another."""
    return name[: max(0, longest - len(end))] + end


def cut_middle(name: str, longest: int) -> str:
    """Cut the middle out of a long name."""
    if len(name) <= longest:
        return name
    return cut_end(name, f"…{name[-(longest * 2 // 5) :]}", longest)


def keep_differing_words(names: Sequence[str], longest: int) -> list[str]:
    """Keep the words in which names differ, and as many others as fit; None if none differ."""
    split = [BREAKS.split(name) for name in names]  # words, with what separates them
    places = range(0, len(split[0]), 2)
    shown = {at for at in places if len({parts[at] for parts in split}) > 1}
    forms = [join_words(parts, shown) for parts in split]
    if not shown or max(map(len, forms)) > longest:
        return []
    distance = {at: min(abs(at - other) for other in shown) for at in places}
    near = sorted((at for at in places if distance[at] <= 4), key=lambda at: (distance[at], -at))
    for at in (0, *near):  # the first word, often the family of the model, and neighbors
        more = [join_words(parts, shown | {at}) for parts in split]
        if max(map(len, more)) <= longest:
            shown, forms = shown | {at}, more
    return forms


def join_words(parts: Sequence[str], shown: set[int]) -> str:
    """Write the words to be shown, and an ellipsis for each run of others."""
    text = ""
    for at in range(0, len(parts), 2):
        if at in shown:
            text += (parts[at - 1] if at - 2 in shown else "") + parts[at]
        elif not text.endswith("…"):
            text += "…"
    return text
