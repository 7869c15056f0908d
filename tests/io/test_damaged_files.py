"""Corrupted files of every format: one clear line or a log, never a traceback, never a hang."""

import re
import shutil
import signal
import tracemalloc
import warnings
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tool_logs import LOGS, arff, caret, direct, experiment, mlr3, openml, tidymodels
from zarr_stores import writes_zarr

import cvstats
from cvstats.errors import LogError

SECONDS = 40
FAST, SLOW = 12, 1000

TOKENS = [
    b"", b"NaN", b"-1", b"1e999", b"-inf", b"9" * 400, b"null", b"[]", b"{}", b"[[", b'"', b"'",
    b"\\", b"\x00", b"\xff\xfe", b"\r", b"\n\n", b",,,", b";", b"=cmd|' /C calc'!A0", b"Fold99",
    b"__import__('os').system('true')", b"!!python/object/apply:os.system", b"cos\nsystem\n(S'x'",
    b"<script>", b"../../../etc/passwd", b"%s%n", b"0x10", b"True", b"2024-02-30", b"\xe2\x80\xae",
    b"Repeat", b"Resample0.Rep0", b"1.5", b"{'a': 1}", b"A" * 5000, b"~d", b"numcodecs.pickle",
]  # fmt: skip


class HungError(BaseException):
    """Not an Exception, so that nothing takes it for a bad file."""


@contextmanager
def no_hang():
    """Stop after some seconds."""

    def stop(signum, frame):
        raise HungError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def small():
    """Make the log that is saved."""
    table = experiment().query("point <= 12")
    return direct(table, (table["y"] - table["guess"]) ** 2)


def laid(layout, **kinds):
    """Write a table as CSV."""
    return lambda path: layout(experiment(), **kinds).to_csv(path, index=False)


def copied(name):
    """Copy a file that a tool wrote."""
    return lambda path: shutil.copyfile(LOGS / name, path)


def stacked(path):
    """Save a DataArray."""
    log = xr.DataArray(
        np.arange(12.0).reshape(2, 6),
        dims=("repetition", "point"),
        coords={"fold": (("repetition", "point"), np.tile([0, 1], (2, 3)))},
    )
    cvstats.save_log(log, path)


def by_blosc(path):
    """Store an array as zarr does by itself, packed by Blosc."""
    log = xr.Dataset({"ridge": ("point", np.arange(40.0)), "forest": ("point", np.ones(40))})
    log.to_zarr(path, mode="w", zarr_format=2, consolidated=False)


SUMS = "lm_eval/alpha/samples_sums_2026-01-01T00-00-00.000000.jsonl"
SQUARED, BRIER = {"loss": "squared_error"}, {"loss": "brier"}
FILES = {
    "tidymodels": (".csv", laid(tidymodels), SQUARED),
    "tidymodels classes": (".csv", laid(tidymodels, classes=True), BRIER),
    "caret": (".csv", laid(caret), SQUARED),
    "caret classes": (".csv", laid(caret, classes=True), {"loss": "zero_one"}),
    "mlr3": (".csv", laid(mlr3), SQUARED),
    "mlr3 Parquet": (".parquet", lambda path: mlr3(experiment()).to_parquet(path), SQUARED),
    "openml": (".arff", lambda path: arff(openml(experiment(), classes=True), path), BRIER),
    "lm-eval": (".jsonl", copied(SUMS), {"filter": "strict"}),
    "inspect table": (".csv", copied("inspect_samples.csv"), {"missing": "drop"}),
    "inspect log": (".json", copied("inspect_alpha.json"), {}),
    "inspect archive": (".eval", copied("inspect_alpha.eval"), {}),
    "nixtla": (".csv", copied("nixtla.csv"), SQUARED),
    "nixtla Parquet": (".parquet", copied("nixtla.parquet"), SQUARED),
    "autogluon": (
        ".csv", copied("autogluon.csv"), {**BRIER, "format": "autogluon", "truth": "label"},
    ),
    "scores": (
        ".csv",
        lambda path: small().groupby("fold").mean().to_csv(path),
        {"format": "scores", "higher_is_better": False},
    ),
    "columns": (".csv", lambda path: small().to_csv(path), {}),
    "columns JSONL": (
        ".jsonl",
        lambda path: small().reset_index().to_json(path, orient="records", lines=True),
        {},
    ),
    **{
        f"saved {suffix}": (suffix, lambda path: cvstats.save_log(small(), path), {})
        for suffix in (".csv", ".jsonl", ".parquet", ".nc", ".zarr")
    },
    "saved array .nc": (".nc", stacked, {}),
    "saved array .zarr": (".zarr", stacked, {}),
    "Blosc .zarr": (".zarr", by_blosc, {}),
}  # fmt: skip

NAMES = [pytest.param(name, marks=[writes_zarr] if "zarr" in name else []) for name in FILES]


def corrupted(data, rng):
    """Damage a file in one of many ways."""
    n = len(data)
    a, b = sorted(rng.integers(0, n + 1, size=2).tolist())
    lines = data.split(b"\n")
    i, j = rng.integers(0, len(lines), size=2).tolist()
    token = TOKENS[rng.integers(len(TOKENS))]
    way = rng.integers(12)
    if way == 0:
        return data[:a]
    if way == 1:
        return data[b:]
    if way == 2:
        return data[:a] + data[b:]
    if way == 3:
        return data[:b] + data[a:b] + data[b:]
    if way in (4, 5):
        out = bytearray(data)
        for at in rng.integers(0, n, size=int(rng.integers(1, 12))):
            out[at] = rng.integers(256)
        return bytes(out)
    if way == 6:
        return data[:a] + rng.bytes(int(rng.integers(1, 200))) + data[a:]
    if way == 7:
        lines[i], lines[j] = lines[j], lines[i]
    elif way == 8:
        lines.insert(j, lines[i])
    elif way == 9:
        del lines[i]
    else:
        fields = re.split(rb'([,:\s"{}\[\]]+)', lines[i])
        fields[2 * rng.integers((len(fields) + 1) // 2)] = token
        lines[i] = b"".join(fields)
    return b"\n".join(lines)


def damage(path, rng):
    """Damage a file, or one or two of the files of a directory."""
    if path.is_file():
        path.write_bytes(corrupted(path.read_bytes(), rng))
        return
    inside = sorted(p for p in path.rglob("*") if p.is_file())
    for file in rng.choice(np.array(inside, dtype=object), size=int(rng.integers(1, 3))):
        data = file.read_bytes() if file.exists() else b""
        if rng.random() < 0.1:
            file.unlink(missing_ok=True)
        elif data:
            file.write_bytes(corrupted(data, rng))


def fuzz(name, tmp_path, times):
    """Read damaged copies; count what was said of them."""
    suffix, write, options = FILES[name]
    stem = SUMS.rpartition("/")[2].removesuffix(".jsonl") if name == "lm-eval" else "log"
    whole, path = tmp_path / f"whole{suffix}", tmp_path / f"{stem}{suffix}"
    write(whole)
    said = Counter()
    for seed in range(times):
        if whole.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(whole, path)
        else:
            shutil.copyfile(whole, path)
        damage(path, np.random.default_rng([seed, *name.encode()]))
        words = outcome(path, options)
        assert "\n" not in words, (seed, words)
        assert len(words) < 1000, (seed, words)
        said[re.sub(r"'[^']*'|\d[\d,.]*", "…", words)[:110]] += 1
    return said


def outcome(path, options):
    """Read one file; give the words of the one error that there may be.

    What a tool has not written down is a warning at the line that reads, and no other is allowed.
    """
    try:
        with no_hang(), warnings.catch_warnings(record=True) as metadata:
            warnings.filterwarnings("always", category=UserWarning)
            log = cvstats.read_log(path, **options)
    except LogError as error:
        return str(error)
    assert all(note.filename == __file__ for note in metadata), [str(n.message) for n in metadata]
    assert not any("\n" in str(note.message) for note in metadata)
    kinds = (pd.Series, pd.DataFrame, xr.DataArray, xr.Dataset)
    return "(read)" if isinstance(log, kinds) else "no log\n"


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name, tmp_path):
    said = fuzz(name, tmp_path, FAST)
    assert said.total() == FAST
    assert set(said) - {"(read)"}  # some damage was noticed


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_damaged_files(name, tmp_path, capsys):
    said = fuzz(name, tmp_path, SLOW)
    with capsys.disabled():
        print(f"\n{name}: {SLOW:,} damaged files")
        for words, count in said.most_common():
            print(f"{count:6,}  {words}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\x00" * 100, b"not what it says", b"PAR1PAR1"],
    ids=["empty", "newline", "zeros", "words", "parquet"],
)
def test_files_that_are_something_else(name, content, tmp_path):
    suffix, _, options = FILES[name]
    path = tmp_path / f"samples_x{suffix}"
    path.write_bytes(content)
    with pytest.raises(LogError):
        cvstats.read_log(path, **options)
    with pytest.raises(LogError, match="No such file"):
        cvstats.read_log(tmp_path / f"nowhere{suffix}", **options)


@pytest.mark.parametrize("name", ["columns", "openml", "columns JSONL", "lm-eval", "inspect log"])
def test_nothing_that_is_read_takes_memory_beyond_it(name, tmp_path):
    suffix, write, options = FILES[name]
    path = tmp_path / f"samples_x{suffix}"
    write(path)
    cvstats.read_log(path, **options)
    tracemalloc.start()
    cvstats.read_log(path, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * path.stat().st_size + (8 << 20)
