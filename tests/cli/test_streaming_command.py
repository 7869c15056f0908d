"""The command on large files: a batch at a time, with the numbers of the whole log in memory."""

import json
import re

import bootstrap_logs
import numpy as np
import pandas as pd
import pytest
from plotted import write_without_marks

import cvstats
from cvstats.cli import commands, main

pytest.importorskip("pyarrow", reason="the extra io is not installed")
N = 600
KINDS = ["folder", "parquet", "csv", "german"]


def table():
    """A log of two models in folds, whose customers are in segments."""
    rng = np.random.default_rng(5)
    customer = np.arange(N) % 40
    return pd.DataFrame(
        {
            "fold": customer % 5,
            "point": np.arange(N),
            "customer": customer,
            "ridge": rng.random(N),
            "forest": rng.random(N) + 0.01,
        }
    )


@pytest.fixture
def files(tmp_path):
    """The same log as a folder of Parquet files, one file, and CSV."""
    whole = table()
    folder = tmp_path / "log"
    folder.mkdir()
    for part in range(3):
        whole.iloc[part::3].to_parquet(folder / f"{part}.parquet", index=False)
    whole.to_parquet(tmp_path / "log.parquet", index=False)
    whole.to_csv(tmp_path / "log.csv", index=False)
    whole.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",")
    return {
        "folder": [str(folder)],
        "parquet": [str(tmp_path / "log.parquet")],
        "csv": [str(tmp_path / "log.csv")],
        "german": [str(tmp_path / "german.csv"), "--decimal", ","],
    }


def run(capsys, *words):
    """What the command prints."""
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.fixture
def streams(monkeypatch):
    """Read even small files in batches, and count how often that happened."""
    seen = []

    def always():
        monkeypatch.setattr(commands, "ROWS", 1)
        monkeypatch.setattr(commands, "BYTES", 1)
        scan = commands.scan_moments
        monkeypatch.setattr(
            commands, "scan_moments", lambda *args: seen.append(args) or scan(*args)
        )

    return always, seen


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        *((kind, ["interval"]) for kind in KINDS),
        ("csv", ["summary"]),
        ("folder", ["interval", "--method", "corrected_t"]),
        ("folder", ["compare", "--adjust", "bonferroni", "--reference", "ridge"]),
        ("folder", ["summary", "--method", "corrected_t"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_same_numbers_as_in_memory(files, capsys, streams, kind, words):
    command, *options = words
    words = [command, *files[kind], "--source", "customer", *options, "--format", "json"]
    memory = json.loads(run(capsys, *words))
    always, seen = streams
    always()
    streamed = json.loads(run(capsys, *words))
    assert len(seen) == 1
    if command == "summary":
        assert streamed["sentences"] == memory["sentences"]
        return
    for mine, yours in zip(streamed["rows"], memory["rows"], strict=True):
        assert mine.pop("caution") == yours.pop("caution")
        for name, value in yours.items():
            expected = value if isinstance(value, str) else pytest.approx(value, rel=1e-10)
            assert mine[name] == expected, name


def words_of(page):
    """The visible text of a report, one piece per line."""
    page = re.sub(r"<(style|script|svg).*?</\1>", "", page, flags=re.DOTALL)
    return [line.strip() for line in re.sub(r"<[^>]+>", "\n", page).splitlines() if line.strip()]


def test_a_report_of_a_large_file_has_the_contents_of_one_in_memory(
    files, capsys, streams, tmp_path, monkeypatch
):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", write_without_marks)
    always, seen = streams
    page = tmp_path / "page.html"
    words = ["report", *files["folder"], "--source", "customer", "-o", str(page)]
    run(capsys, *words)
    memory = words_of(page.read_text("utf-8"))
    always()
    run(capsys, *words)
    streamed = words_of(page.read_text("utf-8"))
    assert len(seen) == 1
    assert memory.index("Methods that apply to this log") > 100
    assert set(memory) - set(streamed) <= {"pandas DataFrame"} | set(
        memory[memory.index("Methods that apply to this log") :]
    )
    assert "individual losses; this log was read as moments of its cells" in streamed


def several_rows_of_a_point():
    """One test set that was evaluated three times, as with three seeds."""
    return pd.concat([table().drop(columns=["fold"]).assign(repetition=r) for r in range(3)])


def crossed():
    """The same fifteen points for each customer."""
    return table().drop(columns=["fold"]).assign(point=np.arange(N) // 40)


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (["interval", "--method", "ordered"], table),
        (["compare", "--method", "ordered"], table),
        (["interval"], several_rows_of_a_point),
        (["summary"], several_rows_of_a_point),
        (["interval", "--source", "customer"], crossed),
        (["power", "--effect", "0.1"], several_rows_of_a_point),
    ],
    ids=["ordered", "ordered difference", "seeds", "seeds, summary", "crossed", "power"],
)  # fmt: skip
def test_a_method_of_single_losses_reads_the_file_whole(tmp_path, capsys, streams, words, rows):
    path = tmp_path / "log.parquet"
    rows().to_parquet(path, index=False)
    command, *options = words
    words = [command, str(path), *options, "--format", "json"]
    memory = run(capsys, *words)
    always, seen = streams
    always()
    assert run(capsys, *words) == memory
    assert len(seen) == 1


@pytest.mark.parametrize("words", [[], ["--method", "wald"]], ids=["default", "wald"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_large_bootstrap_log_is_answered_as_a_small_one(tmp_path, capsys, streams, suffix, words):
    """Its column of counts was not read, so that wald averaged losses in and out of bag."""
    path = tmp_path / f"log{suffix}"
    whole = bootstrap_logs.bootstrap().reset_index()
    (whole.to_parquet if suffix == ".parquet" else whole.to_csv)(path, index=False)
    words = ["interval", str(path), *words, "--format", "json"]
    memory = main(words), capsys.readouterr()
    streams[0]()
    assert (main(words), capsys.readouterr()) == memory


def test_small_files_are_read_whole(files, capsys, streams, monkeypatch):
    _, seen = streams
    monkeypatch.setattr(commands, "scan_moments", lambda *args: seen.append(args))
    run(capsys, "interval", *files["parquet"], "--source", "customer")
    assert seen == []


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_segments_with_customers_as_the_sample(tmp_path, capsys, suffix):
    whole = table().drop(columns=["fold", "forest"]).rename(columns={"ridge": "loss"})
    whole["segment"] = np.array(["basic", "gold"])[whole["customer"] % 2]
    path = tmp_path / f"log{suffix}"
    write = whole.to_parquet if suffix == ".parquet" else whole.to_csv
    write(path, index=False)
    words = [str(path), "--by", "segment", "--source", "customer"]
    found = json.loads(run(capsys, "interval", *words, "--format", "json"))["rows"]
    log = whole.rename(columns={"customer": "source"}).set_index(["source", "point", "segment"])
    expected = cvstats.interval(log, by="segment")
    assert [row["estimate"] for row in found] == pytest.approx(expected["estimate"].tolist())
    assert [row["se"] for row in found] == pytest.approx(expected["se"].tolist())
    parts = json.loads(run(capsys, "summary", *words, "--format", "json"))
    assert list(parts) == ["basic", "gold"]
    assert parts["gold"]["sentences"]


def test_predictions_are_streamed_too(tmp_path, capsys, streams):
    whole = table().rename(columns={"ridge": "y_true", "forest": "y_pred"})
    whole.to_parquet(tmp_path / "p.parquet", index=False)
    words = ["interval", str(tmp_path / "p.parquet"), "--loss", "mae", "--source", "customer"]
    memory = run(capsys, *words)
    always, seen = streams
    always()
    streamed = run(capsys, *words)
    assert len(seen) == 1
    assert streamed.splitlines()[1].split()[1:] == memory.splitlines()[1].split()[1:]


def test_what_is_no_log_of_points_is_read_as_before(tmp_path, capsys, streams):
    always, seen = streams
    always()
    log = cvstats.as_log(table(), loss=["ridge", "forest"], source="customer")
    cvstats.save_log(log, tmp_path / "saved.parquet")
    run(capsys, "interval", str(tmp_path / "saved.parquet"))
    predictions = table().rename(columns={"ridge": "y_true", "forest": "y_pred"})
    predictions.to_parquet(tmp_path / "p.parquet", index=False)
    run(capsys, "interval", str(tmp_path / "p.parquet"), "--loss", "rmse", "--source", "customer")
    assert seen == []


def test_text_far_down_in_a_column_of_numbers(tmp_path, capsys, streams):
    always, _ = streams
    always()
    path = tmp_path / "log.csv"
    rows = [f"{i % 5},{i},{i % 7}.5" for i in range(1500)]
    path.write_text("fold,point,ridge\n" + "\n".join([*rows, "0,1500,-"]), "utf-8")
    assert main(["interval", str(path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "the column 'ridge' of log.csv contains non-numeric values" in error
    run(capsys, "interval", str(path), "--na-values", "-", "--missing", "drop")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("labels", [np.arange(N) % 7, np.array(["a", "b"])[np.arange(N) % 2]])
@pytest.mark.parametrize("large", [False, True])
def test_a_column_of_groups_is_not_a_model(tmp_path, capsys, streams, suffix, labels, large):
    whole = table().drop(columns="customer").assign(hospital=labels)
    whole["segment"] = np.array(["basic", "gold"])[np.arange(N) // 7 % 2]
    path = tmp_path / f"log{suffix}"
    (whole.to_parquet if suffix == ".parquet" else whole.to_csv)(path, index=False)
    always, seen = streams
    if large:
        always()
    words = ["interval", str(path), "--by", "segment", "--format", "json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    expected = cvstats.read_log(path, by="segment").cvci.interval(by="segment")
    assert len(seen) == large
    for row, (label, numbers) in zip(json.loads(out)["rows"], expected.iterrows(), strict=True):
        assert (row["segment"], row["model"], row["caution"]) == (*label, "unused level")
        assert row["upper"] == pytest.approx(numbers["upper"])
    assert err.count("the column 'hospital' is not used. If it contains folds") == 1
    if large and suffix == ".parquet":
        scanned = cvstats.scan_parquet(path, loss=["ridge", "forest"])
        assert (scanned.interval()["caution"] == "unused level").all()
    whole = whole.drop(columns="segment")
    (whole.to_parquet if suffix == ".parquet" else whole.to_csv)(path, index=False)
    assert main(["interval", str(path), "--by", "hospital"]) == 0
    assert "is not used" not in capsys.readouterr().err
