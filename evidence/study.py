"""The pieces of the study: run in processes, saved when finished, and combined."""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from tqdm import tqdm

from evidence import (
    best,
    comparisons,
    designs,
    intervals,
    metrics,
    planning,
    source_variances,
    verdicts,
)
from evidence.learners import Array
from evidence.simulate import join_runs

SEED = 2026

ROOT = Path(__file__).parent.parent

AFTERWARDS = ("__main__.py", "literature.py", "results.py")
"""Modules that only read the results of pieces."""

PARTS: dict[str, ModuleType] = {
    "intervals": intervals,
    "comparisons": comparisons,
    "best": best,
    "power": planning,
    "source_variances": source_variances,
    "verdicts": verdicts,
    "metrics": metrics,
}
"""Every part of the study: the functions that run a cell and summarize its rows."""


@dataclass(frozen=True)
class Piece:
    """Some runs of one cell."""

    part: str
    cell: Any
    first: int
    runs: int

    @property
    def seed(self) -> int:
        """The seed of a piece, independent of all other pieces."""
        entropy = [SEED, zlib.crc32(repr((self.part, self.cell)).encode()), self.first]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    @property
    def name(self) -> str:
        """The name of its file."""
        told = hashlib.sha256(repr((SEED, self)).encode()).hexdigest()
        return f"{self.part}-{told[:20]}.npz"


def list_pieces(part: str, cell: Any, scale: float) -> list[Piece]:
    """Cut the runs of a cell, multiplied by a scale, into batches."""
    runs = max(2, round(cell.runs * scale))
    return [
        Piece(part, cell, first, min(cell.batch, runs - first))
        for first in range(0, runs, cell.batch)
    ]


def run_piece(piece: Piece, folder: Path) -> None:
    """Run a piece and save it atomically."""
    start = time.perf_counter()
    found = PARTS[piece.part].run(piece.cell, piece.runs, piece.seed)
    found["seconds"] = np.array(time.perf_counter() - start)
    unfinished = folder / f"{piece.name}.{os.getpid()}"
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **found)
    unfinished.replace(folder / piece.name)


def run_pieces(pieces: Sequence[Piece], folder: Path, jobs: int, *, quiet: bool = False) -> None:
    """Run the pieces that have no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [piece for piece in pieces if not (folder / piece.name).exists()]
    done = len(pieces) - len(left)
    with tqdm(total=len(pieces), initial=done, disable=quiet, unit="piece") as bar:
        if jobs == 1:
            for piece in left:
                run_piece(piece, folder)
                bar.update()
            return
        with ProcessPoolExecutor(jobs) as pool:
            running = [pool.submit(run_piece, piece, folder) for piece in left]
            try:
                for ended in as_completed(running):
                    ended.result()
                    bar.update()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def load(pieces: Iterable[Piece], folder: Path) -> dict[str, Array]:
    """Put the pieces of one cell together, in their order."""
    parts: list[dict[str, Array]] = []
    for piece in pieces:
        with np.load(folder / piece.name) as file:
            parts.append(dict(file))
    joined = join_runs(parts)
    joined["seconds"] = np.sum([part["seconds"] for part in parts])
    return joined


def fingerprint() -> str:
    """Hash all code that a piece depends on, so that pieces of different versions never mix."""
    files = [*ROOT.glob("cvstats/**/*.py"), *ROOT.glob("evidence/*.py")]
    told = hashlib.sha256()
    for file in sorted(files):
        if file.name not in AFTERWARDS:
            told.update(file.read_bytes())
    return told.hexdigest()[:16]


@dataclass(frozen=True)
class Study:
    """The rows of every part, their runs, and the core seconds that they took."""

    rows: dict[str, list[dict[str, Any]]]
    runs: int
    seconds: float


def list_all() -> dict[str, list[Any]]:
    """Every cell of every part."""
    return {
        "intervals": designs.list_cells(),
        "comparisons": comparisons.list_matches(),
        "best": best.list_selections(),
        "power": planning.list_plans(),
        "source_variances": source_variances.list_experiments(),
        "verdicts": verdicts.list_trials(),
        "metrics": metrics.list_samples(),
    }


def run_study(
    cells: Mapping[str, Sequence[Any]],
    folder: Path,
    *,
    scale: float = 1.0,
    jobs: int = 1,
    quiet: bool = False,
) -> Study:
    """Run all unfinished cells of all parts, and summarize them."""
    pieces = {
        (part, cell): list_pieces(part, cell, scale) for part in cells for cell in cells[part]
    }
    every = [piece for some in pieces.values() for piece in some]
    run_pieces(every, folder, jobs, quiet=quiet)
    rows: dict[str, list[dict[str, Any]]] = {part: [] for part in cells}
    seconds = 0.0
    for (part, cell), some in pieces.items():
        found = load(some, folder)
        seconds += float(found["seconds"])
        rows[part] += PARTS[part].summarize(cell, found)
    return Study(rows, sum(piece.runs for piece in every), seconds)
