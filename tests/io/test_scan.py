"""Parquet logs of any length: a batch at a time, in bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses
from rows import multi_index

import cvstats
from cvstats import LogError
from cvstats.large.moments import in_order

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra io is not installed")


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


@pytest.mark.parametrize("loss", ["auc", "zero_one"])
@pytest.mark.parametrize("writer", ["cvstats", "pandas"])
def test_the_attrs_of_a_saved_log_are_used(tmp_path, loss, writer):
    rng = np.random.default_rng(1)
    truth = rng.random(80) < 0.4
    scores = {"ridge": truth + 0.8 * rng.normal(size=80), "forest": truth + 0.0}
    if loss == "zero_one":
        scores = {name: score > 0.5 for name, score in scores.items()}
    index = multi_index(fold=np.arange(80) % 5, point=range(80))
    predictions = pd.DataFrame({"y": truth, **scores}, index)
    options = {"folds": "pool"} if loss == "auc" else {}
    log = cvstats.losses(predictions, "y", MODELS, loss, **options)
    if writer == "cvstats":
        cvstats.save_log(log, tmp_path / "log.parquet")
    else:
        log.reset_index().to_parquet(tmp_path / "log.parquet")
    read = cvstats.read_log(tmp_path / "log.parquet").rename_axis(columns=None)
    pd.testing.assert_frame_equal(read.cvci.interval(), log.cvci.interval())
    for batch_size in (1 << 20, 30):
        found = cvstats.scan_parquet(tmp_path, loss=MODELS, batch_size=batch_size).interval()
        pd.testing.assert_frame_equal(found, log.cvci.interval(), rtol=1e-10)
        assert found.attrs["loss"] == log.attrs["loss"]


def test_a_saved_contrast_keeps_its_groups(tmp_path):
    """Without them it had no degrees of freedom: normal limits for a group of six points."""
    draw = np.random.default_rng(0).gamma(1, 1, (40, 2))
    levels = {"point": range(40), "sex": np.where(np.arange(40) < 6, "f", "m")}
    frame = pd.DataFrame(draw, pd.MultiIndex.from_frame(pd.DataFrame(levels)), columns=MODELS)
    gap = frame.cvci.contrast(by="sex", between=("f", "m"))
    cvstats.save_log(gap, tmp_path / "log.parquet")
    found = cvstats.scan_parquet(tmp_path / "log.parquet").interval()
    pd.testing.assert_frame_equal(found, gap.cvci.interval(), rtol=1e-10)
    cvstats.save_log(gap["ridge"], tmp_path / "one.parquet")
    one = cvstats.scan_parquet(tmp_path / "one.parquet").interval()
    assert one["df"].item() == pytest.approx(found.loc["ridge", "df"])


def test_a_saved_log_needs_no_names_of_models(tmp_path):
    log = table(n=60).set_index(["repetition", "fold", "point"])[MODELS]
    log["hospital"] = np.arange(len(log)) % 4
    log = log.set_index("hospital", append=True)
    cvstats.save_log(log, tmp_path / "log.parquet")
    found = cvstats.scan_parquet(tmp_path / "log.parquet", pairs=True)
    named = cvstats.scan_parquet(tmp_path / "log.parquet", loss=MODELS, pairs=True)
    pd.testing.assert_frame_equal(found.compare(), named.compare())
    by = cvstats.scan_parquet(tmp_path / "log.parquet", by=["hospital", "fold"])
    assert list(by.wald(by="hospital").index.unique("hospital")) == [0, 1, 2, 3]
    log.reset_index().to_parquet(path := tmp_path / "plain.parquet")
    assert f"loss={MODELS!r}" in refusal(cvstats.scan_parquet, path)  # the hospital is no model


@pytest.mark.parametrize(
    ("batch_size", "folder"), [(1, False), (100, False), (100, True), (10**6, False)]
)
def test_a_file_or_a_folder(tmp_path, batch_size, folder):
    whole = table(n=300 if batch_size > 1 else 20)
    log = cvstats.as_log(whole, loss=MODELS)
    if folder:
        for i, rows in enumerate(np.array_split(np.arange(len(whole)), 3)):
            whole.iloc[rows].to_parquet(tmp_path / f"{i}.parquet", index=False)
        (tmp_path / "notes.txt").write_text("no Parquet file")
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


@pytest.mark.parametrize(
    ("loss", "batch_size"),
    [("absolute_error", 100), (lambda _truth, prediction: prediction, 10**6)],
)
def test_predictions_are_read_as_by_read_log(tmp_path, loss, batch_size):
    whole = table(n=300).assign(y=lambda one: one["point"] / 100)
    whole.to_parquet(path := tmp_path / "predictions.parquet", index=False)
    options = {"truth": "y", "loss": loss}
    log = cvstats.read_log(path, prediction=MODELS, **options)
    moments = cvstats.scan_parquet(
        path, prediction=MODELS, pairs=True, batch_size=batch_size, **options
    )
    for name in ("wald", "compare"):
        ours, theirs = getattr(cvstats, name)(moments), getattr(cvstats, name)(log)
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-10)
        assert ours.attrs["loss"] == theirs.attrs["loss"]
    one = cvstats.scan_parquet(path, prediction="ridge", **options).wald()
    pd.testing.assert_frame_equal(one, log["ridge"].cvci.wald(), rtol=1e-10)
    long = whole.melt(
        ["repetition", "fold", "source", "point", "y"], var_name="model", value_name="guess"
    )
    long.to_parquet(path, index=False)
    stacked = cvstats.scan_parquet(path, prediction="guess", batch_size=batch_size, **options)
    pd.testing.assert_frame_equal(stacked.wald().loc[MODELS], log.cvci.wald(), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"truth": "ridge"}, "only one of them was passed. Pass both truth= and prediction="),
        ({"prediction": "ridge"}, "only one of them was passed. Pass both truth= and predic"),
        ({"truth": "ridge", "prediction": "forest"}, "loss='loss' cannot be computed from a batch"),
        (
            {"truth": "ridge", "prediction": "forest", "loss": "f1"},
            "For metrics of labels use cvstats.scan_predictions.",
        ),
        ({"truth": "rige", "prediction": "forest", "loss": "brier"}, "Did you mean 'ridge'"),
    ],
)
def test_predictions_of_which_no_loss_is_computed(tmp_path, options, words):
    table().to_parquet(path := tmp_path / "predictions.parquet", index=False)
    assert words in refusal(cvstats.scan_parquet, path, **options)


def test_several_files_and_patterns(tmp_path):
    whole = table(n=60)
    parts = np.array_split(np.arange(len(whole)), 3)
    for name, rows in zip(("a.parquet", "b.parquet", "sub/c.parquet"), parts, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        whole.iloc[rows].to_parquet(tmp_path / name, index=False)
    expected = cvstats.as_log(whole, loss=MODELS).cvci.wald()
    lists = (
        [tmp_path / "a.parquet", str(tmp_path / "b.parquet"), tmp_path / "sub"],
        (tmp_path / "*.parquet", tmp_path / "s*"),
        str(tmp_path / "**" / "*.parquet"),
    )
    for paths in lists:
        found = cvstats.scan_parquet(paths, loss=MODELS).wald()
        pd.testing.assert_frame_equal(found, expected, rtol=1e-10)
    odd = tmp_path / "[1].parquet"  # the name of a file, and not a pattern
    whole.to_parquet(odd, index=False)
    pd.testing.assert_frame_equal(
        cvstats.scan_parquet(odd, loss=MODELS).wald(), expected, rtol=1e-10
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            ["a.parquet", "a.parquet"],
            "'.*a.parquet' is listed twice, so its rows would count twice",
        ),
        (["*.parquet", "link.parquet"], "is listed twice"),
        ([], "the list of files is empty. Expected at least one path of a Parquet file"),
        (["x*.parquet"], "No such file or folder: '.*'. Expected .* or a pattern such as"),
        ([3], "3 is not a path. Expected .* or a list of names"),
    ],
)
def test_lists_of_files_are_looked_at(tmp_path, names, words):
    table(n=9).to_parquet(tmp_path / "a.parquet", index=False)
    (tmp_path / "link.parquet").symlink_to("a.parquet")
    paths = [tmp_path / name if isinstance(name, str) else name for name in names]
    refuses(words, cvstats.scan_parquet, paths, loss="ridge")


def sum_of_points(moments):
    """The sums of the hashes of the points of each cell, cells by their labels."""
    return in_order(moments.table).prints


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
    pd.testing.assert_frame_equal(moments.wald(), cvstats.wald(log), rtol=1e-12)
    again = cvstats.Moments.of_log(log)  # the same points, in another container
    np.testing.assert_array_equal(sum_of_points(moments), sum_of_points(again))


NUMBERS = {
    "int8": np.array([-90, -30, 30, 90], np.int8),
    "int16": np.array([-32_768, -1, 5, 200], np.int16),
    "uint8": np.array([0, 100, 200, 255], np.uint8),
    "the ends of int64": np.array([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]),
    "the start of int64": np.arange(4) + np.iinfo(np.int64).min,
    "the end of int64": np.iinfo(np.int64).max - np.arange(4),
    "the end of uint64": np.arange(4, dtype=np.uint64) + np.uint64(2**64 - 4),
    "the middle of uint64": np.arange(4, dtype=np.uint64) + np.uint64(2**63 - 2),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("level", ["source", "point"])
def test_whole_numbers_of_any_size_are_labels(tmp_path, name, level):
    labels = NUMBERS[name]
    frame = pd.DataFrame({
        "source": np.repeat(labels, 50) if level == "source" else np.repeat([1, 2, 3, 4], 50),
        "point": np.arange(200) if level == "source" else np.tile(labels, 50),
        "repetition": 0 if level == "source" else np.tile(np.repeat(range(50), 4), 1),
        "loss": np.arange(200.0) ** 0.5,
    })  # fmt: skip
    if level == "point":
        frame["source"] = np.tile([1, 2, 3, 4], 50)
    frame.to_parquet(tmp_path / "log.parquet")
    found = cvstats.scan_parquet(tmp_path / "log.parquet", batch_size=60)
    expected = cvstats.as_log(frame, loss="loss").cvci.moments(by="source")
    pd.testing.assert_frame_equal(
        found.moments(by="source"), expected, check_index_type=False, rtol=1e-12
    )
    again = cvstats.Moments.of_log(cvstats.as_log(frame, loss="loss"))
    np.testing.assert_array_equal(sum_of_points(found), sum_of_points(again))


def stacked(whole):
    """Two models below each other."""
    parts = {"a": whole["ridge"], "b": whole["forest"]}
    rest = whole.drop(columns=MODELS)
    return pd.concat([rest.assign(ridge=loss, model=name) for name, loss in parts.items()])


def test_models_below_each_other(tmp_path):
    rows = stacked(table(n=60)).sample(frac=1, random_state=1)
    rows.to_parquet(tmp_path / "log", index=False)
    log = cvstats.as_log(rows, loss="ridge", model="model")
    moments = cvstats.scan_parquet(tmp_path / "log", loss="ridge", batch_size=17)
    assert moments.models == ["a", "b"]
    for name in ("wald", "clustered", "cv_t"):
        ours, theirs = getattr(moments, name)(), getattr(cvstats, name)(log.loc[:, ["a", "b"]])
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-11)
    rows.rename(columns={"model": "who"}).to_parquet(tmp_path / "log", index=False)
    again = cvstats.scan_parquet(tmp_path / "log", loss="ridge", model="who")
    pd.testing.assert_frame_equal(again.wald(), moments.wald(), rtol=1e-11)
    rows.drop(columns="point").to_parquet(tmp_path / "log", index=False)
    unnamed = cvstats.scan_parquet(tmp_path / "log", loss="ridge")
    pd.testing.assert_frame_equal(unnamed.corrected_t(), moments.corrected_t(), rtol=1e-11)


def files():
    yield "a number", "42 is not a path", lambda folder: 42
    yield "nothing", "None is not a path", lambda folder: None
    yield (
        "no file",
        "No such file or folder: .*nofile.parquet",
        lambda folder: folder / "nofile.parquet",
    )
    yield "no files", "contains no files", lambda folder: folder

    def hidden(folder):
        (folder / "_metadata").write_bytes(b"x")
        return folder

    def written(content):
        def write(folder):
            (folder / "log.parquet").write_bytes(content(folder))
            return folder / "log.parquet"

        return write

    def whole(folder):
        table().to_parquet(folder / "whole", index=False, row_group_size=50)
        return (folder / "whole").read_bytes()

    def broken(folder):  # its end is there, and what it points to is not
        data = bytearray(whole(folder))
        data[200:4000] = b"\0" * 3800
        return bytes(data)

    yield "hidden files", "contains no files", hidden
    yield "an empty file", "cannot be read as a Parquet file: it is empty", written(lambda _: b"")
    yield "a truncated file", "it is of another type, or truncated", written(
        lambda folder: whole(folder)[:3000])  # fmt: skip
    yield "text", "cannot be read as a Parquet file", written(lambda _: b"a,b\n1,2\n")
    yield "broken pages", "cannot be read as a Parquet file", written(broken)

    def apart(folder):
        table(n=20).to_parquet(folder / "0.parquet", index=False)
        table(n=20).drop(columns="fold").to_parquet(folder / "1.parquet", index=False)
        return folder

    yield "columns apart", "has no column 'fold', but '0.parquet' has one", apart


FILES = {name: rest for name, *rest in files()}


@pytest.mark.parametrize("name", FILES)
def test_no_parquet_file(tmp_path, name):
    words, make = FILES[name]
    with pytest.raises(LogError, match=words) as caught:
        cvstats.scan_parquet(make(tmp_path), loss="ridge")
    assert isinstance(caught.value, FileNotFoundError) == (name == "no file")


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True, "many"])
def test_batches_of_no_size(tmp_path, batch_size):
    table(n=9).to_parquet(tmp_path / "log", index=False)
    with pytest.raises(LogError, match="batch_size=.* is out of range"):
        cvstats.scan_parquet(tmp_path / "log", loss="ridge", batch_size=batch_size)


def refusals():
    yield (
        "a column",
        r"no column 'loss'.* Name all columns of losses: loss=\['ridge', 'forest'\]",
        {},
        lambda t: t,
    )
    yield (
        "twice",
        "is named both as a level and as the loss",
        {"loss": "ridge", "fold": "ridge"},
        lambda t: t,
    )
    yield "levels", "no level", {"loss": "ridge"}, lambda t: t[["ridge"]]
    yield "models", "pairs=True compares models", {"loss": "ridge", "pairs": True}, (
        lambda t: t.assign(model="a"))  # fmt: skip
    yield "models, drop", "missing='drop' drops an evaluation", (
        {"loss": "ridge", "missing": "drop"}), lambda t: t.assign(model="a")  # fmt: skip
    yield "models twice", "both name models", {"loss": MODELS, "model": "who"}, (
        lambda t: t.assign(who="a"))  # fmt: skip
    yield "no name", "a model has no name", {"loss": "ridge"}, lambda t: t.assign(
        model=np.where(t["point"] == 3, None, "a"))  # fmt: skip
    yield "unpaired", r"'a' and 'b' have 1,?\d* and \d+ points|have \d+ and \d+ points", (
        {"loss": "ridge"}), lambda t: stacked(t).iloc[1:]  # fmt: skip
    yield "other points", "'a' and 'b' have different points at repetition=0", {"loss": "ridge"}, (
        lambda t: stacked(t).assign(point=lambda s: np.where(
            (s["model"] == "b") & (s["point"] == 3), 10**6, s["point"])))  # fmt: skip
    for lost, words in (("a", "0 and 1 points"), ("b", "1 and 0 points")):
        yield f"a cell that {lost} lacks", words, {"loss": "ridge"}, (
            lambda t, lost=lost: stacked(t.assign(source=t["source"].where(t["point"] != 3, "own")))
            .query(f"model != {lost!r} or source != 'own'"))  # fmt: skip
    yield "empty", "log is empty", {"loss": "ridge"}, lambda t: t.iloc[:0]
    yield "text", "not numbers", {"loss": "source"}, lambda t: t
    yield "a batch", "the same evaluation appears twice", {"loss": "ridge"}, lambda t: (
        pd.concat([t, t.iloc[:1]]))  # fmt: skip
    yield "no label", "has no label|no label", {"loss": "ridge"}, lambda t: t.assign(
        fold=t["fold"].where(t["point"] != 3))  # fmt: skip
    for name, cells in ("counts", {}), ("counts, cells", {"by": ()}):
        yield name, r"a bootstrap log .* cvstats.read_log\(path\)", {"loss": "ridge", **cells}, (
            lambda t: t.assign(count=1))  # fmt: skip
    yield "counts, no name", r"Name all columns of losses: loss=\['ridge', 'forest'\]", {}, (
        lambda t: t.assign(count=1))  # fmt: skip
    yield "a loss", "NaN", {"loss": "ridge"}, lambda t: t.assign(
        ridge=t["ridge"].where(t["point"] != 3))  # fmt: skip


CASES = {name: rest for name, *rest in refusals()}


@pytest.mark.parametrize("name", CASES)
def test_refused_in_words(tmp_path, name):
    words, options, change = CASES[name]
    change(table()).to_parquet(tmp_path / "log", index=False)
    refuses(words, cvstats.scan_parquet, tmp_path / "log", **options)


def roads():
    """The same losses as moments, and the losses that the advice is to load."""
    whole = table()
    log = cvstats.as_log(whole, loss=MODELS)

    def path(folder):
        return folder / "log.parquet"

    def scan(folder, **options):
        whole.to_parquet(path(folder), index=False)
        return cvstats.scan_parquet(path(folder), loss=MODELS, **options)

    def scan_dask(folder, **options):
        frames = pytest.importorskip("dask.dataframe")
        return cvstats.scan_dask(frames.from_pandas(whole, 2), loss=MODELS, **options).compute()

    def of_log(folder, **options):
        return cvstats.Moments.of_log(log, **options)

    def of_array(folder, **options):
        losses = log.to_xarray().to_dataarray("model").stack(at=log.index.names).dropna("at")
        return cvstats.Moments.of_log(losses, **options)

    return {"scan_parquet": scan, "scan_dask": scan_dask, "of_log": of_log, "of_array": of_array}


@pytest.mark.parametrize("road", roads())
def test_moments_without_pairs_are_made_with_them_as_advised(tmp_path, road):
    make = roads()[road]
    moments, advised = make(tmp_path), make(tmp_path, pairs=True)
    advice = "Pass pairs=True to Moments.of_log, scan_parquet or scan_dask"
    calls = {"compare": {}, "equivalence": {"margin": 0.2}, "winner": {"rng": 0}}
    for name, options in calls.items():
        refuses(f"made without pairs=True.* {advice}", getattr(moments, name), **options)
        assert getattr(advised, name)(**options) is not None
    assert (
        f"no test of the difference is available: these moments were made without pairs=True, \
which comparisons need. {advice}."
        in moments.summary().sentences[0]
    )
    assert "pairs=True" not in str(advised.summary())


MEASURE = """
import sys, tempfile
from pathlib import Path
import numpy as np
from benchmarks import billion
from benchmarks.measure import forget_peak, peak
import cvstats
rows = int(sys.argv[1])
folder = Path(sys.argv[2])
billion.write(folder, rows, files=4)
read = dict(loss=billion.MODELS, batch_size=1 << 17)
cvstats.scan_parquet(folder / "000.parquet", **read).wald(variance="within-fold")
forget_peak()
before = peak()
cvstats.scan_parquet(folder, **read)
print(peak() - before)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from Linux")
def test_memory_does_not_grow_with_the_file(tmp_path):
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE, str(1 << 23), str(tmp_path)], check=True,
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    ).stdout  # fmt: skip
    assert float(printed.split()[-1]) < 64  # in MB; its losses alone take 134


@pytest.mark.parametrize("source", ["site {}", "0{}"])
def test_the_keys_of_a_partitioned_folder_are_levels(tmp_path, source):
    whole = table(n=60).assign(source=lambda t: [source.format(i % 7) for i in t["point"]])
    whole.to_parquet(tmp_path / "log", partition_cols=["fold", "source"], index=False)
    log = cvstats.as_log(whole, loss=MODELS)
    moments = cvstats.scan_parquet(tmp_path / "log", loss=MODELS)
    for name in ("wald", "clustered"):
        ours, theirs = getattr(moments, name)(), getattr(cvstats, name)(log)
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-10)
    read = cvstats.as_log(cvstats.read_log(tmp_path / "log").reset_index(), loss=MODELS)
    same = read.reset_index("source", drop=True).sort_index()
    assert set(read.index.get_level_values("fold")) == set(range(5))
    assert set(map(str, read.index.get_level_values("source"))) == set(whole["source"])
    pd.testing.assert_frame_equal(
        same.reorder_levels(["repetition", "fold", "point"]).sort_index(),
        log.reset_index("source", drop=True).reorder_levels(["repetition", "fold", "point"])
        .sort_index(), check_names=False, check_dtype=False, check_index_type=False,
    )  # fmt: skip


def test_files_of_a_partitioned_folder_keep_their_keys(tmp_path):
    whole = table(n=60)
    whole["fold"] %= 2  # fewer labels of a key would be one, which is left out
    whole.to_parquet(tmp_path / "run=7", partition_cols=["fold"], index=False)
    expected = cvstats.as_log(whole, loss=MODELS).cvci.wald()
    files = sorted((tmp_path / "run=7").rglob("*.parquet"))
    for path in (files, str(tmp_path / "run=7" / "*" / "*.parquet")):
        found = cvstats.scan_parquet(path, loss=MODELS)
        assert "run" not in found.levels
        pd.testing.assert_frame_equal(found.wald(), expected, rtol=1e-10)
