"""Names and numbers of splits, as tools write them, to the levels repetition and fold."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd

from cvstats.core.types import IntArray
from cvstats.errors import LogError

FOLD = re.compile(r"(?:fold|slice)_?\s?(\d{1,9})", re.IGNORECASE)
REPEAT = re.compile(r"(?:rep|repeat)_?\s?(\d{1,9})", re.IGNORECASE)
SPLIT = re.compile(r"(?:resample|bootstrap|training|split|iter)_?\s?(\d{1,9})", re.IGNORECASE)
ALONE = ("validation", "train/test split")
"""What rsample calls the only split."""


def parse_split(label: Hashable) -> tuple[int | None, int | None, int | None]:
    """Parse one name as (repetition, fold, split), such as ``Fold01.Rep2`` or ``Repeat1/Fold3``.

    A split is a fold or a repetition: ``Resample01`` may be either.
    """
    found: dict[str, int] = {}
    if isinstance(label, (int, np.integer)) or (isinstance(label, float) and label.is_integer()):
        return None, None, int(label)
    text = str(label)
    for part in re.split(r"[./]|(?<=\d)\s", text[:100]):
        for kind, pattern in (("fold", FOLD), ("repetition", REPEAT), ("split", SPLIT)):
            match = pattern.fullmatch(part.strip())
            if match and kind not in found:
                found[kind] = int(match[1])
                break
        else:
            found = {}
            break
    if not found or ("split" in found and len(found) > 1):
        raise LogError(
            f"the name of a split is {text[:60]!r}. Expected one such as 'Fold1', 'Fold01.Rep2', "
            f"'Repeat1/Fold3', 'Resample01' or a number."
        )
    return found.get("repetition"), found.get("fold"), found.get("split")


def add_split_levels(
    table: pd.DataFrame, labels: pd.Series, per: Iterable[str] = ()
) -> pd.DataFrame:
    """Add the columns ``repetition`` and ``fold`` to a table, from the names of splits.

    ``per`` names the columns, such as ``model``, within which a point is in a fold once.
    """
    if labels.isna().any():
        raise LogError(
            f"row {int(np.flatnonzero(labels.isna())[0]):,} names no split. Expected one in "
            f"every row."
        )
    codes, names = pd.factorize(labels)
    if len(names) == 1 and str(names[0]) in ALONE:
        return table
    parts = [parse_split(name) for name in names]
    kinds = {tuple(part is not None for part in parts) for parts in parts}
    if len(kinds) > 1:
        raise LogError(
            f"the names of the splits are of different kinds: {str(names[0])[:40]!r} and others. "
            f"Expected one scheme."
        )
    repetition, fold, split = (
        np.array([-1 if part[i] is None else part[i] for part in parts])[codes] for i in range(3)
    )
    if split[0] >= 0:
        return add_split_numbers(table, split, per)
    if repetition[0] >= 0:
        table = table.assign(repetition=repetition)
    return table.assign(fold=fold) if fold[0] >= 0 else table


def add_split_numbers(
    table: pd.DataFrame, split: IntArray, per: Iterable[str] = ()
) -> pd.DataFrame:
    """Add numbered splits to a table as folds, as repeated folds or as random splits.

    Folds hold each point once. If every point is in r splits, and in one of each run of m / r of
    the m splits, they are r repetitions of folds in this order. Otherwise they are random
    splits: a repetition each.
    """
    numbers, at = np.unique(split, return_inverse=True)
    if len(numbers) == 1:
        return table
    who = [name for name in (*per, "source", "point") if name in table]
    if "point" not in who:
        return table.assign(repetition=split)
    by = table.groupby(who, sort=False, observed=True).ngroup().to_numpy()
    times = np.bincount(by)
    r = int(times[0])
    if (times == r).all() and len(numbers) % r == 0:
        k = len(numbers) // r
        seen = by.astype(np.int64) * r + at // k
        if k > 1 and np.bincount(seen, minlength=len(times) * r).max() == 1:
            if r == 1:
                return table.assign(fold=split)
            return table.assign(repetition=at // k + 1, fold=at % k + 1)
    return table.assign(repetition=split)
