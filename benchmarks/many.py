"""Many models side by side with numpy, scipy and pandas: ``python -m benchmarks.many``.

All ratios of one run. The loop of pairwise tests is timed once, since it takes a minute; all
else in turns. Memory is that of a fresh process beyond its log.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import cvstats
from benchmarks import logs, table
from benchmarks.memory import forget_peak, peak
from benchmarks.processes import printed
from benchmarks.table import Row
from benchmarks.timing import in_turns, seconds

POINTS, MODELS, MOST = 100_000, 200, 1_000
BOUND = 2.0
"""Times one product of matrices that all pairs of 200 models on 100,000 points may take."""

CALLS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "compare, all pairs": cvstats.compare,
    "compare, max-t": partial(cvstats.compare, adjust="max-t", rng=0),
    "best_set": partial(cvstats.best_set, rng=0),
}


def pairwise(losses: pd.DataFrame) -> list[float]:
    """Tell the p-value of every pair, as one loops over them with scipy."""
    pairs = combinations(losses, 2)
    return [stats.ttest_rel(losses[a], losses[b]).pvalue for a, b in pairs]


def by_hand(losses: pd.DataFrame) -> list[float]:
    """Tell the statistic of every pair, as one loops over them with pandas."""
    gaps = (losses[a] - losses[b] for a, b in combinations(losses, 2))
    return [gap.mean() / gap.sem() for gap in gaps]


def times(points: int, models: int, budget: float) -> Iterator[Row]:
    """Compare each call with one product of the matrix of losses with itself."""
    losses = logs.frame(points, models, order="C")
    values = losses.to_numpy()
    words = f"{points:,} x {models:,} models"
    for work, call in CALLS.items():
        found = in_turns(
            lambda: values.T @ values, call, prepare=lambda: losses, budget=budget
        )  # fmt: skip
        bound = BOUND if (work, points, models) == ("compare, all pairs", POINTS, MODELS) else None
        yield Row(
            work, words, "X.T @ X", median(found.ours), median(found.theirs), found.ratio, bound
        )


def loops(points: int, models: int) -> Iterator[Row]:
    """Compare all pairs with loops over them, whose columns lie in one piece."""
    losses = logs.frame(points, models, order="F")
    rows = logs.frame(points, models, order="C")
    words = f"{points:,} x {models:,} models"
    for peer, loop in (("loop of scipy", pairwise), ("loop of pandas", by_hand)):
        theirs = seconds(lambda loop=loop: loop(losses))
        ours = median(seconds(lambda: cvstats.compare(rows)) for _ in range(3))
        yield Row("compare, all pairs", words, peer, ours, theirs, ours / theirs)


def memory(points: int, models: int) -> Iterator[Row]:
    """Tell what a call takes beyond its log; the bound is one more block of losses."""
    for work in CALLS:
        found = printed("-m", "benchmarks.many", "--peak", work, str(points), str(models))
        yield Row(
            f"memory of {work}", f"{points:,} x {models:,} models", "",
            json.loads(found), bound=max(64.0, points * models * 8 / 1e6), unit="MB",
            absolute=True,
        )  # fmt: skip


def growth(work: str, points: int, models: int) -> float:
    """Tell by how many megabytes the process grew, its kernels loaded before."""
    CALLS[work](logs.frame(1_000, 20, order="C"))
    losses = logs.frame(points, models, order="C")
    np.asarray(losses).sum()
    forget_peak()
    before = peak()
    CALLS[work](losses)
    return peak() - before


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="only show that everything runs")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.peak is not None:
        work, points, models = chosen.peak
        print(json.dumps(growth(work, int(points), int(models))))
        return
    points, models, most = (500, 6, 12) if chosen.tiny else (POINTS, MODELS, MOST)
    budget = 0.0 if chosen.tiny else 20.0
    rows = [
        *times(points, models, budget),
        *loops(points, models),
        *times(points, most, 0.0),
        *memory(points, most),
    ]
    print((table.markdown if chosen.markdown else table.text)(rows))


if __name__ == "__main__":
    main()
