"""Many sources in a long log: ``python -m benchmarks.sources``.

Sources of very different sizes, rows in random order; each answer against the sum of the losses
and against the moments that pandas groups by the same levels, and the memory of a first call.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs, table
from benchmarks.cases import row
from benchmarks.memory import beyond
from benchmarks.processes import printed
from benchmarks.table import Row

ROWS, SOURCES = 10**7, 2_000

CALLS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "out_of_source": (cvstats.out_of_source, False),
    "out_of_source, these": (partial(cvstats.out_of_source, target="these_sources"), False),
    "clustered": (cvstats.clustered, False),
    "heterogeneity": (cvstats.heterogeneity, False),
    "wald(by='source')": (partial(cvstats.wald, by="source"), False),
    "wald(by='source') in folds": (
        partial(cvstats.wald, by="source", variance="within-fold"), True,
    ),
}  # fmt: skip
"""What is measured, and whether its log has folds besides sources."""


def grouped(rows: int, sources: int, folds: bool) -> pd.Series:
    """Points of sources whose sizes differ by factors; with folds, each has all sources."""
    rng = np.random.default_rng(1)
    share = rng.lognormal(size=sources)
    starts = np.sort(rng.permutation(rows)[: sources * 4])  # four points at least for each
    source = rng.choice(sources, size=rows, p=share / share.sum()).astype(np.int16)
    source[starts] = np.tile(np.arange(sources, dtype=np.int16), 4)
    codes = {"source": source, "point": np.arange(rows, dtype=np.int32)}
    levels: dict[str, Any] = {"source": range(sources), "point": range(rows)}
    if folds:  # two folds, so that even the smallest source has two points in each
        order = np.lexsort((rng.random(rows), source))
        fold = np.empty(rows, dtype=np.int8)
        fold[order] = np.arange(rows) % 2
        codes["fold"], levels["fold"] = fold, range(2)
    index = pd.MultiIndex(
        levels=list(levels.values()), codes=list(codes.values()), names=list(levels),
        verify_integrity=False,
    )  # fmt: skip
    return pd.Series(rng.standard_normal(rows), index=index, name="model", copy=False)


def measured(rows: int, sources: int, budget: float) -> Iterator[Row]:
    """Yield a row for each call and peer."""
    for folds in (False, True):
        losses = grouped(rows, sources, folds)
        values = losses.to_numpy()
        by = ["source", "fold"] if folds else ["source"]
        peers: dict[str, Callable[[], Any]] = {
            "np.sum": partial(np.sum, values),
            "groupby.agg": lambda losses=losses, by=by: losses.groupby(level=by).agg(
                ["count", "mean", "var"]
            ),
        }
        size = f"{rows:,} rows, {sources:,} sources"
        for name, (call, in_folds) in CALLS.items():
            if in_folds != folds:
                continue
            for peer, theirs in peers.items():
                yield row(
                    f"{name}, checked", size, peer, theirs, call, argument=losses, budget=budget
                )
                yield row(
                    f"{name}, first call", size, peer, theirs, call,
                    prepare=lambda losses=losses: logs.unseen(losses), budget=budget,
                )  # fmt: skip


def memory(name: str, rows: int, sources: int) -> dict[str, float]:
    """Measure the memory of one first call beyond the log."""
    call, folds = CALLS[name]
    call(grouped(max(rows // 25, 10 * sources), sources, folds))
    losses = grouped(rows, sources, folds)
    return beyond(losses, lambda: logs.unseen(losses), call)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sources", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--sources", type=int, default=SOURCES)
    parser.add_argument(
        "--budget", type=float, default=5.0, help="seconds for each line; 0 only shows that it runs"
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    parser.add_argument("--memory", choices=CALLS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        print(json.dumps(memory(chosen.memory, chosen.rows, chosen.sources)))
        return
    rows = list(measured(chosen.rows, chosen.sources, chosen.budget))
    if sys.platform != "win32" and chosen.budget > 0:
        for name in CALLS:
            sizes = ("--rows", str(chosen.rows), "--sources", str(chosen.sources))
            found = json.loads(printed("-m", "benchmarks.sources", "--memory", name, *sizes))
            rows += [
                Row(f"memory of {name}, {kind}", f"{chosen.rows:,} rows", "", megabytes,
                    unit="MB", absolute=True)
                for kind, megabytes in found.items()
            ]  # fmt: skip
    print((table.markdown if chosen.markdown else table.text)(rows))


if __name__ == "__main__":
    main()
