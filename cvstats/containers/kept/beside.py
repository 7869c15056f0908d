"""Models whose moments were computed one by one, put side by side."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cvstats.containers.cells import canonical, in_order
from cvstats.containers.hashing import as_index
from cvstats.containers.kept.batches import Kept
from cvstats.containers.pandas import FrameLabels
from cvstats.errors import place, unpaired

__all__ = ["side_by_side"]

K = TypeVar("K", bound=Kept)


def side_by_side(parts: Mapping[Hashable, K]) -> K:
    """Make a column of each model, if all were evaluated on the same points.

    Raises
    ------
    LogError
        If two models differ in a cell, its count, or the sum of the hashes of its points.
    """
    every = list(parts)
    names = [every[at] for at in canonical(every).tolist()]
    models = [sorted_cells(parts[name]) for name in names]
    for name, model in zip(names[1:], models[1:], strict=True):
        same_points(names[0], models[0], name, model)
    cells = replace(
        models[0].cells,
        mean=np.concatenate([model.cells.mean for model in models], axis=1),
        m2=np.concatenate([model.cells.m2 for model in models], axis=1),
        origin=np.concatenate([model.cells.origin for model in models]),
    )
    axis = pd.Index(names, name="model", tupleize_cols=False)
    return replace(
        models[0], cells=cells, labels=FrameLabels(names, axis),
        batches=max(model.batches for model in models),
        notes=reduce(and_, (model.notes for model in models)),
    )  # fmt: skip


def sorted_cells(model: K) -> K:
    """Lay the cells of one model out by the order of their labels."""
    cells, order = in_order(model.cells)
    prints = None if model.prints is None else model.prints[order]
    return replace(model, cells=cells, prints=prints)


def same_points(name: Hashable, one: Kept, other: Hashable, two: Kept) -> None:
    """Refuse two models that were not evaluated on the same points, by the first cell."""
    counted = [points_by_cell(model) for model in (one, two)]
    for cell in (*counted[0], *counted[1]):
        mine, yours = (counts.get(cell) for counts in counted)
        if mine != yours:
            where = place(dict(zip(one.levels, cell, strict=True))) or "the log"
            found = [
                0 if count is None else round(count[0]) for count in (mine, yours)
            ]  # fmt: skip
            how = (
                "other points" if found[0] == found[1] else f"{found[0]:,} and {found[1]:,} points"
            )
            raise unpaired(
                f"{name!r} and {other!r} have {how} at {where}. Expected every model on every "
                f"evaluation."
            )


def points_by_cell(model: Kept) -> dict[tuple[Any, ...], tuple[float, int]]:
    """For each cell, by its labels, the number of its points and the sum of their hashes."""
    labels = [as_index(names) for names in model.cells.labels]
    prints = np.zeros(len(model.cells.count)) if model.prints is None else model.prints
    return {
        tuple(names[code] for names, code in zip(labels, codes, strict=True)): (
            float(count), int(print_)
        )
        for codes, count, print_ in zip(
            model.cells.codes.tolist(), model.cells.count, prints, strict=True
        )
    }  # fmt: skip
