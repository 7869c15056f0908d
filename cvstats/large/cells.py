"""Cells in place of losses: what a log answers whose losses are streamed away or still lazy.

The design of such a log has a row for each cell and a weight for each row. What a method asks of
it is answered as for any design; what single losses alone can answer is refused in words.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.cells import Cells
from cvstats.core.columns import Columns, Differences
from cvstats.core.design import LEVELS, SPLIT, CellIndex, Design, Level, SplitSizes
from cvstats.core.types import IntArray, MaskArray
from cvstats.errors import LogError, listed, spelled
from cvstats.log.log import HiddenTable, Log, Sample
from cvstats.log.sketches import Prints, as_index

CountPoints = Callable[[str], "tuple[IntArray, str | None]"]
"""Counts the distinct points under each label of a level, as `Design.count_points`."""

RANDOM_SPLITS = (
    "its repetitions do not test the same points, so these are random splits, or some of the log "
    "is missing. A partition tests every point once in each repetition. Random splits are what "
    "corrected_t is for; otherwise add what is missing."
)


def cell_levels(design: Design) -> tuple[str, ...]:
    """Name the levels that distinguish cells: all but the points and how often they were drawn."""
    found = [name for name in LEVELS if name in design.levels]
    if "count" in found:
        raise LogError(
            "this is a bootstrap log (level 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources; or this log in memory, and all "
            "of it."
        )
    return tuple([name for name in found if name != "point"])


@dataclass(frozen=True, eq=False)
class CellSource:
    """The moments of the cells of a log, in place of its losses.

    Parameters
    ----------
    found : Cells
        The cells.
    words : str
        The message for a request that needs more than cells.
    count_points : callable
        Counts the distinct points under each label of a level.
    models : array of int, shape (models, carried cells)
        The columns of the models.
    gaps : Cells, optional
        The same cells of the differences of pairs of models, pairs before carried cells.
    pairs : tuple of array of int, optional
        The numbers of the two models of each pair; without it all pairs, as of ``triu_indices``.
    sample : Sample, optional
        The losses of some evaluations.
    """

    found: Cells
    words: str
    count_points: CountPoints
    models: IntArray
    gaps: Cells | None = None
    pairs: tuple[IntArray, IntArray] | None = None
    sample: Sample | None = None

    def moments(self, by: Sequence[str], losses: Columns | None) -> Cells:
        """Merge the cells that these levels do not distinguish."""
        unknown = [level for level in by if level not in self.found.levels]
        if unknown:
            raise LogError(words_for_cells(unknown[0], self.found.levels, self.words))
        if isinstance(losses, Differences):
            return self._pick_differences(losses).over(by)
        return self.found.over(by)

    def _pick_differences(self, losses: Differences) -> Cells:
        """Pick differences out of those that are kept, with the other sign where need be."""
        if self.gaps is None:
            raise LogError(
                "these moments hold nothing that two models share. Expected moments that were "
                "made with pairs=True: cvstats.Moments.of_log(losses, pairs=True)."
            )
        at, signs = find_pairs(self.models, losses.left, losses.right, self.pairs)
        return turn_signs(self.gaps.pick(at), signs)

    def rows(self) -> Log:
        """Refuse: there are no rows."""
        raise LogError(self.words)


def find_pairs(
    models: IntArray,
    left: IntArray,
    right: IntArray,
    pairs: tuple[IntArray, IntArray] | None = None,
) -> tuple[IntArray, IntArray]:
    """Find the differences of some columns among those that are kept, and their signs.

    ``models`` are the columns of the models by carried cells; see `CellSource` for ``pairs``.
    """
    number, cells = models.shape
    model, cell = np.empty((2, models.size), dtype=np.int64)
    model[models] = np.arange(number)[:, None]
    cell[models] = np.arange(cells)
    one, two = np.triu_indices(number, 1) if pairs is None else pairs
    place, sign = np.zeros((2, number, number), dtype=np.int64)
    place[two, one] = place[one, two] = np.arange(len(one))
    sign[two, one], sign[one, two] = -1, 1
    return place[model[left], model[right]] * cells + cell[left], sign[model[left], model[right]]


def turn_signs(found: Cells, signs: IntArray) -> Cells:
    """Take differences with the other sign where need be."""
    return replace(
        found, mean=found.mean * signs, m2=found.m2 * np.abs(signs), origin=found.origin * signs
    )


def beside(*parts: Cells) -> Cells:
    """Put the columns of the same cells side by side."""
    return replace(
        parts[0],
        mean=np.concatenate([found.mean for found in parts], axis=1),
        m2=np.concatenate([found.m2 for found in parts], axis=1),
        origin=np.concatenate([found.origin for found in parts]),
    )


def words_for_cells(level: str, levels: Sequence[str], words: str) -> str:
    """Say which cells are needed and which there are."""
    have = listed(map(repr, levels)) or "none"
    return f"this needs cells by {level!r}, and the moments are by {have}. {words}"


def design_of_cells(
    cells: Cells,
    splits: SplitSizes | None,
    named_points: bool,
    words: str,
    taking: str = Design.taking,
) -> Design:
    """Make a design with a row for each cell; a level of points has a name and no labels."""
    levels = {
        level: Level(labels, cells.codes[:, i])
        for i, (level, labels) in enumerate(zip(cells.levels, cells.labels, strict=True))
    }
    if named_points:
        missing = words_for_cells("point", cells.levels, words)
        hidden: Any = HiddenTable((len(cells.count),), missing)
        levels["point"] = Level((), hidden)
    facts: dict[Any, Any] = {} if splits is None else {"splits": splits}
    weights = cells.count.astype(np.int64)
    return Design(levels, len(weights), facts=facts, taking=taking, weights=weights)


# --- what the sums of hashes of points show of a streamed log -------------------------------------


def split_sizes(cells: Cells, prints: Prints | None) -> SplitSizes:
    """Count rows and points of each split; that all test the same points, the prints show."""
    by = tuple(level for level in SPLIT if level in cells.levels)
    rows = cells.over(by).count.astype(np.int64)
    if len(rows) == 1:
        return SplitSizes(rows, int(rows[0]))
    if prints is None:
        return SplitSizes(rows, None)
    if same_points(cells, prints, by, np.ones(len(prints), dtype=bool)):
        return SplitSizes(rows, int(rows[0]))
    return SplitSizes(rows, None, RANDOM_SPLITS)


def same_points(cells: Cells, prints: Prints | None, by: tuple[str, ...], rows: MaskArray) -> bool:
    """Whether all labels of some levels hold the same points, among some cells."""
    if prints is None:
        return False
    at = [cells.levels.index(name) for name in by]
    keys, split = CellIndex.numbered([len(cells.labels[i]) for i in at], cells.codes[:, at].T)
    sums, counts = np.zeros(len(keys), dtype=np.uint64), np.zeros(len(keys))
    np.add.at(sums, split[rows], prints[rows])
    np.add.at(counts, split[rows], cells.count[rows])
    return bool((sums == sums[0]).all() and (counts == counts[0]).all())


def sources_share_points(cells: Cells, prints: Prints | None) -> bool:
    """Whether two sources hold the same points, of which the sums of hashes then agree."""
    if prints is None or "source" not in cells.levels:
        return False
    source = cells.codes[:, cells.levels.index("source")]
    sums, counts = np.zeros(source.max() + 1, dtype=np.uint64), np.zeros(source.max() + 1)
    np.add.at(sums, source, prints)
    np.add.at(counts, source, cells.count)
    several = counts > 1
    each = set(zip(sums[several].tolist(), counts[several].tolist(), strict=True))
    return len(each) < int(several.sum())


def point_counts(cells: Cells, prints: Prints | None, level: str) -> tuple[IntArray, None]:
    """Count the distinct points under each label of a level of a streamed log."""
    by = tuple(name for name in SPLIT if name in cells.levels)
    at = cells.levels.index(level)
    labels, codes = cells.labels[at], cells.codes[:, at]
    counts = np.zeros(len(labels), dtype=np.int64)
    number = len(cells.over(by).count)
    for code in np.unique(codes).tolist():
        rows = codes == code
        if not same_points(cells, prints, by, rows):
            raise LogError(
                f"the repetitions do not test the same points of {level}="
                f"{spelled(labels[code])}, and moments do not say how many distinct ones there "
                f"are. Expected all points in each repetition. Ask the log itself, or take one "
                f"repetition of it."
            )
        counts[code] = round(float(cells.count[rows].sum()) / number)
    return counts, None


def canonical(labels: Sequence[Hashable]) -> IntArray:
    """Order labels by size where they have one, so that the order of batches does not show."""
    names: list[Any] = list(labels)
    try:
        order = sorted(range(len(names)), key=lambda at: names[at])
    except TypeError:
        order = list(range(len(names)))
    return np.array(order, dtype=np.int64)


def in_order(found: Cells) -> tuple[Cells, IntArray]:
    """Sort the labels of each level and then the cells; also the cells' former places."""
    codes = np.empty_like(found.codes)
    labels = []
    for i, names in enumerate(found.labels):
        if isinstance(names, pd.Index | range):
            codes[:, i] = found.codes[:, i]
            labels.append(names)
            continue
        order = canonical(list(names))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        codes[:, i] = rank[found.codes[:, i]]
        labels.append(as_index([names[at] for at in order.tolist()]))
    keys = [codes[:, i] for i in reversed(range(len(labels)))]
    order = np.lexsort(keys) if keys else np.arange(len(codes))
    sorted_ = replace(
        found, labels=tuple(labels), codes=codes[order], count=found.count[order],
        mean=found.mean[order], m2=found.m2[order],
    )  # fmt: skip
    return sorted_, order
