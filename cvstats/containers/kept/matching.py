"""Two batches held against each other: their models, grids and cells, whatever their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from cvstats.containers.arrays import ArrayLabels
from cvstats.containers.frames import FrameLabels
from cvstats.containers.log import Labels
from cvstats.core.design import CellIndex
from cvstats.core.moments import Moments
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed

__all__ = ["matched", "reordered", "rows_of"]


def reordered(found: Moments, levels: tuple[str, ...]) -> Moments:
    """Name the levels of cells in another order."""
    at = [found.levels.index(level) for level in levels]
    labels = tuple(found.labels[i] for i in at)
    return replace(found, levels=levels, labels=labels, codes=found.codes[:, at])


def matched(one: Labels, two: Labels) -> tuple[IntArray, list[tuple[int, int]]]:
    """Find the models of one batch in another, and so the pairs; the grids must be the same."""
    mine, yours = list(one.models), list(two.models)
    if type(one) is not type(two) or (
        isinstance(one, FrameLabels)
        and isinstance(two, FrameLabels)
        and (one.columns_axis is None) != (two.columns_axis is None)
    ):
        raise LogError(
            "the batches come from containers of different kinds. Expected all from Series, from "
            "DataFrames, from DataArrays or from Datasets."
        )
    if len(mine) != len(yours) or set(mine) != set(yours):
        raise LogError(
            f"the batches hold different models: {listed(map(repr, mine))} in one, "
            f"{listed(map(repr, yours))} in the other. Expected the same names in each batch."
        )
    if isinstance(one, ArrayLabels) and isinstance(two, ArrayLabels):
        same_grid(one, two)
    order = [yours.index(model) for model in mine]
    pairs = [(order[i], order[j]) for i in range(len(mine)) for j in range(i + 1, len(mine))]
    return np.array(order, dtype=np.int64), pairs


def same_grid(one: ArrayLabels, two: ArrayLabels) -> None:
    """Refuse batches whose carried dimensions differ in order, size or labels."""
    for dim in dict.fromkeys((*one.dims, *two.dims)):
        mine, yours = (
            pd.Index(labels.coords[dim].values) if dim in labels.coords and dim != "model" else None
            for labels in (one, two)
        )
        alike = mine is yours if mine is None or yours is None else mine.equals(yours)
        if one.dims != two.dims or one.sizes != two.sizes or not alike:
            raise LogError(
                f"the batches lie on different grids along {dim!r}: {one.dims} of sizes "
                f"{one.sizes} and {two.dims} of sizes {two.sizes}. Expected the same carried "
                f"dimensions and labels in each batch, in one order."
            )


def rows_of(whole: Moments, part: Moments) -> IntArray:
    """Find the cells of a part among those of a sum that holds it."""
    mine = np.empty_like(part.codes)
    for i, labels in enumerate(whole.labels):
        place = {label: code for code, label in enumerate(labels)}
        codes = np.array([place[label] for label in part.labels[i]], dtype=np.int64)
        mine[:, i] = codes[part.codes[:, i]]
    return CellIndex.of([len(labels) for labels in whole.labels], lambda: [whole.codes.T]).find(
        mine.T
    )
