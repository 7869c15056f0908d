"""Labels to whole numbers, once for each column: what follows compares numbers and not text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.types import IntArray
from cvstats.errors import LogError

Coded = tuple[IntArray, pd.Index]
"""A number for each row, and the label of each number."""

MOST_KEYS = FAR = 1 << 62


def coded(labels: pd.Series, level: str) -> Coded:
    """Give the labels of a level numbers, and check them; 1.0, 2.0, … become 1, 2, …."""
    try:
        codes, names = numbered(labels)
    except TypeError:
        raise unhashable({level: labels}) from None
    gone = np.flatnonzero(codes < 0)
    if len(gone):
        more = len(gone) - 1
        rest = f" (and {more:,} more evaluation{'s' if more > 1 else ''})" if more else ""
        raise LogError(
            f"row {gone[0]:,} has no {level}{rest}. Expected a label in every row. Leave "
            f"the rows out that have none, as in frame.dropna(subset=[…])."
        )
    return codes, whole(names, level)


def unhashable(labels: Mapping[str, pd.Series]) -> LogError:
    """Word the error for lists and the like as labels of a level."""
    level, odd = next(
        (level, label)
        for level, column in labels.items()
        for label in column
        if not pd.api.types.is_hashable(label)
    )
    return LogError(f"a label of {level!r} is a {type(odd).__name__}. Expected names or numbers.")


def numbered(values: Any) -> Coded:
    """Give labels numbers in the order of the labels, -1 where there is none."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(range(len(dtype.categories)), dtype=dtype)
        return pd.Categorical(values).codes, pd.CategoricalIndex(every)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(values):
        whole_numbers = np.asarray(values)
        least, most = int(whole_numbers.min()), int(whole_numbers.max())
        if most - least < 4 * len(values) and least > -FAR and most < FAR:
            return close(whole_numbers, least, most)
    found = pd.Categorical(values)
    return found.codes, found.categories


def close(values: IntArray, least: int, most: int) -> Coded:
    """Give numbers to integers that lie close together, without a table to look them up."""
    small = np.dtype(np.int32 if most - least < 1 << 31 else np.int64)
    at = np.subtract(
        values, least, dtype=np.int64, casting="unsafe", out=np.empty(len(values), small)
    )
    seen = np.zeros(most - least + 1, dtype=bool)
    seen[at] = True
    if not seen.all():
        place = np.cumsum(seen, dtype=at.dtype)
        place -= 1
        at = place[at]
        return at, pd.Index((np.flatnonzero(seen) + least).astype(values.dtype))
    if values.dtype == np.int64:
        return at, pd.RangeIndex(least, most + 1)  # takes no memory
    return at, pd.Index(np.arange(least, most + 1).astype(values.dtype))


def whole(names: pd.Index, level: str) -> pd.Index:
    """Turn whole numbers into integers, and refuse infinite ones."""
    if names.dtype.kind != "f":
        return names
    values = names.to_numpy()
    if np.isinf(values).any():
        raise LogError(f"a label of {level!r} is infinite. Expected names or numbers.")
    exact = (np.abs(values) < 2**53).all() and (values == np.floor(values)).all()
    return names.astype(np.int64) if exact else names


def combined(parts: Sequence[Coded]) -> IntArray:
    """Give rows numbers in order of appearance; those with the same labels have the same one."""
    if any(all_different(codes, len(names)) for codes, names in parts):
        return np.arange(len(parts[0][0]))
    key, size = parts[0][0].astype(np.int64), len(parts[0][1])
    for codes, names in parts[1:]:
        if size * len(names) > MOST_KEYS:
            key, known = pd.factorize(key)
            size = len(known)
        key *= len(names)
        key += codes
        size *= len(names)
    ordered = np.sort(key)  # much faster than a table of the keys
    if (ordered[1:] != ordered[:-1]).all():
        return np.arange(len(key))
    rows: IntArray = pd.factorize(key)[0]
    return rows


def all_different(codes: IntArray, size: int) -> bool:
    """Whether no code of 0, 1, …, size - 1 occurs twice."""
    if size < len(codes):
        return False
    seen = np.zeros(size, dtype=bool)
    seen[codes] = True
    return bool(np.count_nonzero(seen) == len(codes))


def first_rows(group: IntArray) -> IntArray:
    """Find where each of the groups 0, 1, 2, …, numbered as they appear, is met first."""
    if group[-1] == len(group) - 1:
        return group  # each is met once
    first = np.empty(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)  # what is assigned last stays
    return first


def indexed(parts: dict[str, Coded], rows: IntArray) -> pd.Index:
    """Make the index of some rows."""
    if len(parts) == 1:
        ((level, (codes, names)),) = parts.items()
        return names.take(codes[rows]).set_names(level)
    return index_of([(codes[rows], names) for codes, names in parts.values()], list(parts))


def index_of(parts: Sequence[Coded], names: Sequence[Any]) -> pd.MultiIndex:
    """Make an index of numbered labels."""
    levels: list[Any] = [labels for _, labels in parts]
    codes: list[Any] = [numbers for numbers, _ in parts]
    return pd.MultiIndex(levels=levels, codes=codes, names=list(names), verify_integrity=False)
