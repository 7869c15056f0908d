"""A log that does not fit into memory: ``python -m benchmarks.billion --rows 1_000_000_000``.

Writes a Parquet log (repetition, fold, source, point, loss) of many row groups, reads it with
pyarrow alone, and then by `cvstats.scan_parquet`, all in one run: intervals within folds and by
source, rows per second as a ratio to the plain read, and the peak of memory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from tqdm import tqdm

import cvstats
from benchmarks import measure
from benchmarks.measure import Row, forget_peak, peak

GROUP = 1 << 20
FOLDS, SOURCES = 10, 1_000
COLUMNS = ["repetition", "fold", "source", "point", "loss"]
LEVEL, SPREAD = 1e3, 1e-2
"""Losses far from zero compared with their spread: a plain sum of squares would lose precision."""


def chunk(start: int, stop: int) -> pa.Table:
    """Make some rows: points in order, folds and sources in random order."""
    rng = np.random.default_rng(start)
    size = stop - start
    columns: dict[str, Any] = {
        "repetition": np.zeros(size, dtype=np.int16),
        "fold": rng.integers(0, FOLDS, size, dtype=np.int16),
        "source": rng.integers(0, SOURCES, size, dtype=np.int16),
        "point": np.arange(start, stop),
        "loss": rng.standard_normal(size),
    }
    columns["loss"] *= 1 + 0.001 * columns["source"]
    columns["loss"] += LEVEL + SPREAD * columns["fold"]
    return pa.table(columns)


def write(path: Path, rows: int) -> None:
    """Write the log by row groups, each with its own seed."""
    unfinished = path.with_suffix(".part")
    writer = parquet.ParquetWriter(
        unfinished, chunk(0, 1).schema, compression="none",
        use_dictionary=["repetition", "fold", "source"],
        column_encoding={"point": "DELTA_BINARY_PACKED", "loss": "PLAIN"},
    )  # fmt: skip
    with writer, tqdm(total=rows, desc="write", unit="row", unit_scale=True) as bar:
        for start in range(0, rows, GROUP):
            table = chunk(start, min(start + GROUP, rows))
            writer.write_table(table, row_group_size=GROUP)
            bar.update(len(table))
    unfinished.replace(path)


def read(path: Path, progress: Callable[[int], object]) -> None:
    """Read every column with pyarrow and do nothing with it."""
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=GROUP, columns=COLUMNS):
            progress(batch.num_rows)


def warm(folder: Path) -> None:
    """Load kernels and libraries, so that their memory is not counted."""
    path = folder / "small.parquet"
    parquet.write_table(chunk(0, 2 * GROUP), path, row_group_size=GROUP)
    read(path, lambda _: None)
    moments = cvstats.scan_parquet(path, batch_size=GROUP)
    moments.wald(variance="within-fold")
    path.unlink()


def timed(name: str, rows: int, work: Callable[[Callable[[int], object]], Any]) -> Any:
    """Do some work with a progress bar; return its result, the time and the additional memory."""
    forget_peak()
    before, start = peak(), time.perf_counter()
    with tqdm(total=rows, desc=name, unit="row", unit_scale=True) as bar:
        found = work(bar.update)
    return found, time.perf_counter() - start, peak() - before


def exact(rows: int) -> tuple[float, float]:
    """Compute estimate and standard error within folds from generated chunks."""
    count, mean, m2 = (np.zeros(FOLDS) for _ in range(3))
    for start in tqdm(range(0, rows, GROUP), desc="check", unit="chunk"):
        frame = chunk(start, min(start + GROUP, rows)).select(["fold", "loss"]).to_pandas()
        part = frame.groupby("fold")["loss"].agg(["count", "mean", "var"])
        n, k = part["count"].to_numpy(dtype=float), part.index.to_numpy()
        apart = part["mean"].to_numpy() - mean[k]
        total = count[k] + n
        m2[k] += part["var"].fillna(0).to_numpy() * (n - 1) + apart**2 * n * count[k] / total
        mean[k] += apart * n / total
        count[k] = total
    share = count / count.sum()
    return float(share @ mean), float(np.sqrt((share * m2 / (count - 1)).sum() / count.sum()))


def report(path: Path, rows: int, check: bool) -> list[Row]:
    """Read twice, plainly and for intervals, and print what it took."""
    warm(path.parent)
    _, plain, plain_memory = timed("pyarrow", rows, lambda bar: read(path, bar))
    moments, ours, memory = timed(
        "cvstats", rows, lambda bar: cvstats.scan_parquet(path, batch_size=GROUP, progress=bar)
    )
    folds = moments.wald(variance="within-fold")
    print(folds, moments.wald(by="source").head(3), moments, sep="\n")
    print(f"rows/s: pyarrow {rows / plain:,.0f}, cvstats {rows / ours:,.0f}")
    if check:
        found = [float(np.ravel(folds[name])[0]) for name in ("estimate", "se")]
        for name, one, other in zip(("estimate", "se"), found, exact(rows), strict=True):
            print(f"{name}, against chunks by pandas: {abs(one / other - 1):.1e}")
    size = f"{rows:,} rows, {path.stat().st_size / 1e9:.2f} GB"
    return [
        Row("scan_parquet", size, "pyarrow alone", ours, plain, ours / plain),
        Row("memory of scan_parquet", size, "pyarrow alone", memory, plain_memory, unit="MB"),
    ]


def main() -> None:
    """Read the options, write the log if it is not there, measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.billion", description=__doc__)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--folder", type=Path, help="where the log stays; otherwise it is removed")
    parser.add_argument("--json", type=Path, help="add what was measured to a saved run")
    parser.add_argument("--check", action="store_true", help="compute the answer by pandas too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=None) as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"log_{chosen.rows}.parquet"
        if not path.exists():
            write(path, chosen.rows)
        found = report(path, chosen.rows, chosen.check)
    print(measure.table(found))
    if chosen.json:
        billion = {"heading": f"{measure.machine()} Each once.", "rows": measure.pack(found)}
        measure.save({**measure.load(chosen.json), "billion": billion}, chosen.json)


if __name__ == "__main__":
    main()
