"""Parquet logs of any length: a batch at a time, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats import LogError

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra io is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra io is not installed")


def table(n=900, repetitions=2, seed=3):
    rng = np.random.default_rng(seed)
    rows = [
        pd.DataFrame({
            "repetition": r, "fold": rng.permutation(n).astype(np.int16) % 5,
            "source": [f"site {i % 7}" for i in range(n)], "point": np.arange(n) - 5,
            "ridge": rng.standard_normal(n), "forest": rng.standard_normal(n).astype(np.float32),
        })
        for r in range(repetitions)
    ]  # fmt: skip
    return pd.concat(rows, ignore_index=True).sample(frac=1, random_state=seed)


MODELS = ["ridge", "forest"]


@pytest.mark.parametrize("batch_size", [1, 100, 10**6])
@pytest.mark.parametrize("folder", [False, True])
def test_a_file_or_a_folder(tmp_path, batch_size, folder):
    whole = table(n=900 if batch_size > 1 else 30)
    log = cvstats.as_log(whole, loss=MODELS)
    if folder:
        for i, rows in enumerate(np.array_split(np.arange(len(whole)), 3)):
            whole.iloc[rows].to_parquet(tmp_path / f"{i}.parquet", index=False)
    path = tmp_path if folder else tmp_path / "log.parquet"
    if not folder:
        whole.to_parquet(path, index=False, row_group_size=111)
    seen = []
    moments = cvstats.scan_parquet(
        path, loss=MODELS, pairs=True, batch_size=batch_size, progress=seen.append
    )
    assert sum(seen) == len(whole)
    assert max(seen) <= batch_size
    for name in ("wald", "cv_t", "clustered", "compare"):
        ours, theirs = getattr(cvstats, name)(moments), getattr(cvstats, name)(log)
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-10)
        assert ("checked" in ours.attrs) == (len(seen) > 1)


def kinds():
    yield "strings", lambda s: [f"p{i}" for i in s]
    yield "categories", lambda s: pd.Categorical([f"p{i}" for i in s])
    yield "unsigned", lambda s: (s + 5).astype(np.uint32)
    yield "far apart", lambda s: s * 10**12
    yield "dates", lambda s: pd.Timestamp("2020") + pd.to_timedelta(s, unit="h")
    yield "floats", lambda s: s / 2


@pytest.mark.parametrize("name", dict(kinds()))
def test_labels_of_any_type(tmp_path, name):
    whole = table(n=60)
    whole["point"] = dict(kinds())[name](whole["point"].to_numpy())
    log = cvstats.as_log(whole, loss="ridge")
    whole.to_parquet(tmp_path / "log", index=False)
    moments = cvstats.scan_parquet(tmp_path / "log", loss="ridge", batch_size=17)
    pd.testing.assert_series_equal(moments.wald(), cvstats.wald(log), rtol=1e-12)
    again = cvstats.Moments.of_log(log)  # the same points, met in another container
    np.testing.assert_array_equal(
        moments.log().design.prints, again.log().design.prints
    )  # fmt: skip


def test_other_names_and_other_columns(tmp_path):
    whole = table().rename(columns={"fold": "split", "ridge": "se"})
    whole["month"] = pd.Categorical(["may", "june"] * (len(whole) // 2))
    whole.to_parquet(tmp_path / "log", index=False)
    moments = cvstats.scan_parquet(tmp_path / "log", loss="se", fold="split", by=["fold", "month"])
    assert moments.levels == ("fold", "month")
    found = whole.groupby(["split", "month"], observed=True)["se"].mean()
    ours = moments.moments(by=("fold", "month"))["mean"]
    np.testing.assert_allclose(ours.sort_index().to_numpy(),
                               found.rename_axis(["fold", "month"]).reset_index()
                               .assign(month=lambda t: t["month"].astype(str))
                               .set_index(["fold", "month"])["se"].sort_index())  # fmt: skip


def refusals():
    yield "a column", "no column 'loss'", {}, lambda t: t
    yield "twice", "named twice", {"loss": "ridge", "fold": "ridge"}, lambda t: t
    yield "levels", "no level", {"loss": "ridge"}, lambda t: t[["ridge"]]
    yield "models", "a column 'model'", {"loss": "ridge"}, lambda t: t.assign(model="a")
    yield "empty", "log is empty", {"loss": "ridge"}, lambda t: t.iloc[:0]
    yield "text", "not numbers", {"loss": "source"}, lambda t: t
    yield "a batch", "the same evaluation stands twice", {"loss": "ridge"}, lambda t: (
        pd.concat([t, t.iloc[:1]]))  # fmt: skip
    yield "no label", "has no label|no label", {"loss": "ridge"}, lambda t: t.assign(
        fold=t["fold"].where(t["point"] != 3))  # fmt: skip
    yield "a loss", "NaN", {"loss": "ridge"}, lambda t: t.assign(
        ridge=t["ridge"].where(t["point"] != 3))  # fmt: skip


CASES = {name: rest for name, *rest in refusals()}


@pytest.mark.parametrize("name", CASES)
def test_refused_in_words(tmp_path, name):
    words, options, change = CASES[name]
    change(table()).to_parquet(tmp_path / "log", index=False)
    with pytest.raises(LogError, match=words):
        cvstats.scan_parquet(tmp_path / "log", **options)


def test_missing_losses_may_be_dropped(tmp_path):
    whole = table(repetitions=1)
    whole["ridge"] = whole["ridge"].where(whole["point"] != 3)
    whole.to_parquet(tmp_path / "log", index=False)
    moments = cvstats.scan_parquet(tmp_path / "log", loss="ridge", missing="drop", batch_size=50)
    assert moments.wald().attrs["n_dropped"] == 1


MEASURE = """
import sys, tempfile
from pathlib import Path
import numpy as np
from benchmarks import billion
from benchmarks.memory import forget_peak, peak
import cvstats
rows = int(sys.argv[1])
folder = Path(sys.argv[2])
billion.GROUP = 1 << 17
path = folder / f"{rows}.parquet"
billion.write(path, rows)
billion.warm(folder)
forget_peak()
before = peak()
cvstats.scan_parquet(path, batch_size=1 << 17)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from Linux")
def test_memory_does_not_grow_with_the_file(tmp_path):
    pytest.importorskip("tqdm", reason="the benchmark shows its progress with tqdm")
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE, str(1 << 22), str(tmp_path)], check=True,
        capture_output=True, text=True, cwd=Path(__file__).parents[1],
    ).stdout  # fmt: skip
    assert float(printed.split()[-1]) < 64  # in MB; the log itself takes 92
