"""Names short enough to stand beside a plot, and still told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os.path import commonprefix

__all__ = ["plain", "told"]

BREAKS = re.compile(r"([-_/ ·,;:|]+)")
"""What stands between the words of a name."""


def told(names: Sequence[str], most: int = 28) -> list[str]:
    """Shorten names that leave no room for the plot; those that differ still do.

    A name loses its middle. Where two would then look the same, names of as many words keep the
    words in which they differ; or what follows their common beginning; or they are numbered by
    their place among the names.
    """
    every = list(dict.fromkeys(map(str, names)))
    short = {name: middle_out(name, most) for name in every}
    doubtful = alike(short)
    families: dict[int, list[str]] = {}
    for name in every:
        if len(name) > most:
            families.setdefault(len(BREAKS.findall(name)), []).append(name)
    for family in families.values():
        if doubtful & set(family):
            short |= by_words(family, most)
    groups: dict[str, list[str]] = {}
    doubtful = alike(short)
    for name in every:
        if name in doubtful:
            groups.setdefault(short[name], []).append(name)
    for group in groups.values():
        short |= by_window(group, most)
    short |= by_number(short, most)
    return [plain(short[str(name)]) for name in names]


def plain(words: str) -> str:
    """Keep dollar signs from being read as the marks of a formula."""
    return words.replace("$", r"\$")


def alike(short: dict[str, str]) -> set[str]:
    """Find the names whose short form is that of another name, too."""
    number = Counter(short.values())
    return {name for name, form in short.items() if number[form] > 1}


def ended(name: str, end: str, most: int) -> str:
    """Cut a name so that it has room for an end."""
    return name[: max(0, most - len(end))] + end


def middle_out(name: str, most: int) -> str:
    """Cut the middle out of a long name."""
    return name if len(name) <= most else ended(name, f"…{name[-(most * 2 // 5) :]}", most)


def by_words(names: Sequence[str], most: int) -> dict[str, str]:
    """Keep the words in which names differ, and as many beside them as there is room for."""
    split = [BREAKS.split(name) for name in names]  # words, with what stands between them
    places = range(0, len(split[0]), 2)
    kept = {at for at in places if len({parts[at] for parts in split}) > 1}

    def forms(shown: set[int]) -> list[str]:
        return [joined(parts, shown) for parts in split]

    if not kept or max(map(len, forms(kept))) > most:
        return {}
    apart = {at: min(abs(at - other) for other in kept) for at in places}
    near = sorted((at for at in places if apart[at] <= 4), key=lambda at: (apart[at], -at))
    for at in (0, *near):  # the first word, often the family of the model, and neighbours
        if max(map(len, forms(kept | {at}))) <= most:
            kept |= {at}
    return dict(zip(names, forms(kept), strict=True))


def joined(parts: Sequence[str], shown: set[int]) -> str:
    """Write the words to be shown, and an ellipsis for each run of others."""
    text = ""
    for at in range(0, len(parts), 2):
        if at in shown:
            text += (parts[at - 1] if at - 2 in shown else "") + parts[at]
        elif not text.endswith("…"):
            text += "…"
    return text


def by_window(names: Sequence[str], most: int) -> dict[str, str]:
    """Keep what follows the common beginning of names, with some of it for its context."""
    same = len(commonprefix(list(names)))
    ends = [name[same:][::-1] for name in names]
    differing = max(map(len, ends)) - len(commonprefix(ends))
    start = max(0, same - max(0, most - 2 - differing) // 2)
    found = {}
    for name in names:
        text = f"…{name[start:]}" if start else name
        found[name] = text if len(text) <= most else ended(text, "…", most)
    return found


def by_number(short: dict[str, str], most: int) -> dict[str, str]:
    """Give the names that still look alike the number of their place among all."""
    doubtful = alike(short)
    taken = {form for name, form in short.items() if name not in doubtful}
    found = {}
    for number, name in enumerate(short, 1):
        if name not in doubtful:
            continue
        step = number
        while (form := ended(name, f"…({step})", most)) in taken:
            step += len(short)
        found[name] = form
        taken.add(form)
    return found
