"""A log that does not fit into memory: ``python -m benchmarks.billion --rows 1_000_000_000``.

Writes a folder of Parquet files (repetition, fold, point, and the losses of two models), reads it
file by file with pyarrow and with pandas, which take the means of the losses and nothing else, and
then by `cvstats.scan_parquet` and the commands, each in a new process: seconds, and the peak of
memory of the whole process. ``--dask`` adds a cluster of two workers, one of which is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from benchmarks import measure

FOLDS, REPETITIONS = 10, 2
LEVELS, MODELS = ["repetition", "fold", "point"], ["ridge", "forest"]
MEMORY = "1GB"
"""Of each worker of dask."""


def make(number: int, rows: int, files: int) -> pa.Table:
    """Make a file: half of the files are a repetition of the points of the others, in new folds."""
    repetition, part = divmod(number, files // REPETITIONS)
    base = np.random.default_rng(part).standard_exponential(rows, dtype=np.float32)
    rng = np.random.default_rng([number, 1])
    columns: dict[str, Any] = {
        "repetition": np.full(rows, repetition, dtype=np.int8),
        "fold": rng.integers(0, FOLDS, rows, dtype=np.int8),
        "point": np.arange(part * rows, (part + 1) * rows, dtype=np.int32),
    }
    for place, model in enumerate(MODELS):
        noise = rng.standard_normal(rows, dtype=np.float32)
        columns[model] = (base + np.float32(0.3) * noise) ** 2 + np.float32(2e-4 * place)
    return pa.table(columns)


def write(folder: Path, rows: int, files: int) -> None:
    """Write the log in files of equal length, each with its own seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = folder / f"{number:03d}.parquet"
        unfinished = path.with_suffix(".part")
        parquet.write_table(
            make(number, rows // files, files), unfinished, compression="none",
            use_dictionary=["repetition", "fold"],
            column_encoding={"point": "DELTA_BINARY_PACKED", **dict.fromkeys(MODELS, "PLAIN")},
        )  # fmt: skip
        unfinished.replace(path)


# --- what is measured, each in a new process ------------------------------------------------------


def by_pyarrow(folder: Path) -> list[float]:
    """Read all columns file by file, and take the means of the losses."""
    import pyarrow.compute as compute

    means = []
    for path in sorted(folder.iterdir()):
        table = parquet.read_table(path, columns=[*LEVELS, *MODELS])
        means.append([compute.mean(table[model]).as_py() for model in MODELS])
    return [float(mean) for mean in np.mean(means, axis=0)]


def by_pandas(folder: Path) -> list[float]:
    """Read all columns file by file, and take the means of the losses."""
    import pandas as pd

    means = [
        pd.read_parquet(path, columns=[*LEVELS, *MODELS])[MODELS].mean()
        for path in sorted(folder.iterdir())
    ]
    return [float(mean) for mean in np.mean(means, axis=0)]


def by_scanning(folder: Path) -> list[float]:
    """Compute moments with pairs, the intervals and the comparison."""
    import cvstats

    moments = cvstats.scan_parquet(folder, loss=MODELS, pairs=True)
    moments.compare()
    return [float(mean) for mean in moments.wald()["estimate"]]


def by_command(name: str, folder: Path, *options: str) -> str:
    """Run a command; return what it prints."""
    import contextlib
    import io

    from cvstats.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([name, str(folder), *options])
    return printed.getvalue()


def by_dask(folder: Path, kill: float = 0.0) -> list[float]:
    """Compute intervals on two workers; the first one is killed after some seconds."""
    import dask.dataframe
    from dask.distributed import Client, LocalCluster

    import cvstats

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=MEMORY,
                     dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        frame = dask.dataframe.read_parquet(folder)
        if kill:
            first = next(iter(cluster.workers.values())).pid
            threading.Timer(kill, os.kill, (first, 9)).start()
        found = client.compute(cvstats.wald(frame)).result()
    return [float(mean) for mean in found["estimate"]]


def timed(call: str, folder: Path) -> tuple[list[float], Any]:
    """Evaluate a call in a new process: time, processor time and peak of memory; its result."""
    code = (
        "import json, time; from pathlib import Path; from benchmarks import billion, measure; "
        f"import cvstats; folder = Path({str(folder)!r}); clocks = time.perf_counter, "
        "time.process_time; before = [clock() for clock in clocks]; "
        f"found = billion.{call}; spent = [clock() - b for clock, b in zip(clocks, before)]; "
        "print(); print(json.dumps([[*spent, measure.peak()], found]))"
    )
    spent, found = json.loads(measure.run_python(code).splitlines()[-1])
    return spent, found


HEAD = ("work", "time", "ratio", "processor time", "ratio", "peak of memory")


def report(folder: Path, cluster: bool) -> list[tuple[str, ...]]:
    """Read the log in each way; all must find the same means."""
    plain, means = timed("by_pyarrow(folder)", folder)
    lines: list[tuple[str, ...]] = [HEAD]

    def add(work: str, spent: list[float], answer: Any) -> Any:
        ratios = [f"{ours / theirs:.2f}" for ours, theirs in zip(spent, plain, strict=True)]
        seconds, busy = (f"{value:.0f} s" for value in spent[:2])
        lines.append((work, seconds, ratios[0], busy, ratios[1], f"{spent[2]:.0f} MB"))
        print(*lines[-1], sep=" | ", flush=True)
        if not isinstance(answer, str):
            np.testing.assert_allclose(answer, means, rtol=1e-6)
        return answer

    add("pyarrow, means", plain, means)
    add("pandas, means", *timed("by_pandas(folder)", folder))
    add("scan_parquet, wald and compare", *timed("by_scanning(folder)", folder))
    for name in ("interval", "compare", "summary"):
        print(add(f"cvstats {name}", *timed(f"by_command({name!r}, folder)", folder)))
    page = folder.parent / "report.html"
    options = f"'report', folder, '-o', {str(page)!r}"
    add("cvstats report", *timed(f"by_command({options})", folder))
    if cluster:  # the workers are processes of their own
        spent, whole = timed("by_dask(folder)", folder)
        lines.append(
            ("dask frame, 2 workers", f"{spent[0]:.0f} s", "", "", "", f"limit 2 x {MEMORY}")
        )
        spent, again = timed(f"by_dask(folder, {spent[0] / 3})", folder)
        lines.append(
            ("the same, one killed", f"{spent[0]:.0f} s", "", "", "", f"limit 2 x {MEMORY}")
        )
        print(means, whole, again)
        np.testing.assert_allclose(whole, means, rtol=1e-6)
        if whole != again:
            raise AssertionError(f"with one worker killed: {again}, not {whole}")
    return lines


def main() -> None:
    """Read the options, write the log if it is not there, measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.billion", description=__doc__)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--files", type=int, default=200, help="an even number")
    parser.add_argument("--folder", type=Path, help="where the log stays; otherwise it is removed")
    parser.add_argument("--json", type=Path, help="add what was measured to a saved run")
    parser.add_argument("--dask", action="store_true", help="also on a local cluster of dask")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=None) as temporary:
        folder = (chosen.folder or Path(temporary)) / f"log_{chosen.rows}"
        if not folder.exists():
            write(folder, chosen.rows, chosen.files)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
        lines = report(folder, chosen.dask)
    print(measure.lay_out(lines, left=1))
    if chosen.json:
        written = f"{chosen.rows:,} rows, {size:.1f} GB in {chosen.files} files."
        billion = {"heading": f"{written} {measure.machine()} Each once.", "lines": lines}
        measure.save({**measure.load(chosen.json), "billion": billion}, chosen.json)


if __name__ == "__main__":
    main()
