"""Runs of language models that were repeated, broken off, or went wrong in part."""

import copy
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from tool_logs import LOGS

import cvstats

DROP = {"missing": "drop"}

refused = partial(refusal, cvstats.read_log)


def run_of(model="m", epochs=3, number=12, failed=(), **changes):
    """Make a log; ``failed`` are the (id, epoch) that ended in an error."""
    samples = [
        {"id": at, "epoch": epoch, "target": "x"}
        | (
            {"error": {"message": "timeout"}}
            if (at, epoch) in failed
            else {"scores": {"match": {"value": "CI"[(at * epoch + len(model)) % 3 == 0]}}}
        )
        for epoch in range(1, epochs + 1)
        for at in range(number)
    ]
    head = {"eval_id": model, "model": model, "task": "t"}
    return {"version": 2, "status": "success", "eval": head, "samples": samples} | changes


def test_a_sample_that_lacks_an_epoch_is_left_out_of_all():
    log = cvstats.read_log(run_of(failed=[(3, 1), (4, 2), (4, 3)]), **DROP)
    assert (log.attrs["n_errored"], log.attrs["n_incomplete"]) == (3, 2)
    expected = cvstats.read_log(run_of()).drop([3, 4], level="point")
    assert log.equals(expected)
    pd.testing.assert_frame_equal(log.cvci.interval(), expected.cvci.interval(), check_exact=True)
    assert log.cvci.interval().attrs["n_points"] == 10
    assert "one test set" in str(log.cvci.interval().attrs["reason"])
    log.cvci.holdout(**DROP)


def test_without_leaving_out_the_gaps_are_told():
    log = run_of(eval={"model": "m"})  # the task has no name
    del log["samples"][5]
    with pytest.warns(UserWarning, match="1 sample lacks an epoch .* missing='drop'"):
        read = cvstats.read_log(log)
    assert "lacks an epoch" in read.attrs["lost"]
    assert len(read) == 35
    assert len(cvstats.read_log(log, **DROP)) == 33


def test_nothing_may_be_left():
    log = run_of(number=3, failed=[(0, 1), (1, 2), (2, 3)])
    assert "no sample has a score in every epoch. Keep one epoch" in refused(log, **DROP)


@pytest.mark.parametrize("options", [{}, DROP])
def test_every_sample_failed(options):
    log = run_of(epochs=1, failed=[(at, 1) for at in range(12)])
    words = refused(log, **options)
    assert words.startswith("no sample has a score: all 12 ended in an error. Expected a score")
    for sample in log["samples"]:
        sample["scores"] = {"match": {"value": None}}
    assert refused(log, **options) == words


def test_a_log_that_was_not_scored():
    log = run_of(epochs=1, failed=[(1, 1)])
    for sample in log["samples"]:
        sample.pop("scores", None)
    assert "no sample has a score (1 of 12 ended in an error)" in refused(log, **DROP)


def test_a_sample_that_was_invalidated():
    """`invalidate_samples` leaves its score in the log."""
    log = run_of(epochs=1)
    log["samples"][3]["invalidation"] = {"author": "me", "reason": "the answer leaked"}
    words = "1 sample ended in an error or was invalidated: id=3, epoch=1. Expected a score"
    assert words in refused(log)
    read = cvstats.read_log(log, **DROP)
    assert read.attrs["n_errored"] == 1
    assert read.equals(cvstats.read_log(run_of(epochs=1)).drop(3))


def test_scores_of_several_numbers():
    """As mappings in a log, as JSON in `samples_df`; a number has the name that the results use."""
    log = run_of(epochs=1, number=4)
    values = [{"style": 0.25 * at, "match": 0.5} for at in range(4)]
    for sample, value in zip(log["samples"], values, strict=True):
        sample["scores"]["both"] = {"value": value}
    assert "metric='score_match'" in refused(log)
    assert cvstats.read_log(log, metric="style").tolist() == [1.0, 0.75, 0.5, 0.25]
    assert cvstats.read_log(log, metric="match").equals(
        cvstats.read_log(run_of(epochs=1, number=4), metric="match")
    )
    assert cvstats.read_log(log, metric="both_match").tolist() == [0.5] * 4
    table = pd.DataFrame({"id": range(4), "epoch": 1, "score_both": map(json.dumps, values)})
    read = cvstats.read_log(table, format="inspect", metric="style")
    assert read.tolist() == [1.0, 0.75, 0.5, 0.25]
    assert read.attrs["metric"] == "style"
    table.loc[1, "score_both"] = "{broken"
    assert "a value of 'score_both' is '{broken'" in refused(table.iloc[1:2], format="inspect")


@pytest.mark.parametrize("status", ["cancelled", "error"])
@pytest.mark.parametrize(
    ("facts", "of"),
    [
        ({"results": {"total_samples": 40}}, " of 40"),
        ({"eval": {"model": "m", "dataset": {"samples": 20}, "config": {"epochs": 2}}}, " of 40"),
        ({"eval": {"model": "m", "dataset": {"samples": 40}}}, " of 40"),
        ({"eval": {"model": "m", "dataset": 40, "config": None}}, ""),
    ],
)
def test_runs_that_did_not_get_to_their_end(status, facts, of):
    log = run_of(epochs=1, status=status, **facts)
    with pytest.warns(UserWarning, match=f"status '{status}'\\): 12{of} samples are in the log"):
        read = cvstats.read_log(log)
    assert f"12{of} samples are in the log" in read.attrs["lost"]


def test_of_several_files_it_is_said_which(tmp_path):
    for name, status in (("good", "success"), ("bad", "cancelled")):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(run_of(name, status=status)), "utf-8")
    files = {name: tmp_path / f"{name}.json" for name in ("good", "bad")}
    with pytest.warns(UserWarning, match=r"^bad: this inspect run did not finish"):
        cvstats.read_log(files)


def test_logs_without_samples(tmp_path):
    assert "this inspect log has no samples. Expected at least one" in refused(run_of(samples=[]))
    head = run_of()
    del head["samples"]
    words = "this is the header of an inspect log, without its samples"
    assert words in refused(head)
    (tmp_path / "head.json").write_text(json.dumps(head), "utf-8")
    assert words in refused(tmp_path / "head.json")


@pytest.mark.parametrize("tasks", [["sums"], ["sums", "words"], ["sums", "words", "parity"]])
def test_files_of_different_tasks_share_no_questions(tasks):
    """One model in each file: numbers of questions are those of its task."""
    runs = {f"m{k}": run_of(f"m{k}", 1) for k in range(3)}
    for run, task in zip(runs.values(), 3 * tasks, strict=False):
        run["eval"]["task"] = task
    log = cvstats.read_log(runs)
    assert len(log) == 12 * len(tasks)
    assert log.count().tolist() == [12, 12, 12]
    assert log.attrs.get("sources_are") == (None if len(tasks) == 1 else "fixed")
    if len(tasks) > 1:
        found = log.reset_index().melt(["source", "point"], var_name="model").dropna()
        assert dict(zip(found["model"], found["source"], strict=True)) == {
            model: run["eval"]["task"] for model, run in runs.items()
        }


@pytest.fixture
def twice(tmp_path):
    """A directory with two runs of one task; the older one lies in the folder that sorts last."""
    (path,) = (LOGS / "lm_eval" / "alpha").glob("samples_parity_*.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    worse = [copy.deepcopy(row) | {"acc": 0.0} for row in rows]
    for folder, day, kept in (("x", 2, rows), ("y", 1, worse)):
        out = tmp_path / "results" / folder / "alpha" / f"samples_parity_2026-01-0{day}T1.jsonl"
        out.parent.mkdir(parents=True)
        out.write_text("\n".join(map(json.dumps, kept)), "utf-8")
    return tmp_path / "results"


def test_the_newest_of_two_runs_is_read_and_told(twice):
    newest = "results/x/alpha/samples_parity_2026-01-02T1.jsonl"
    with pytest.warns(UserWarning, match=f"read was {newest} \\(the newest of 2 runs\\)"):
        log = cvstats.read_log(twice, metric="acc")
    assert log.attrs["read_from"] == newest
    alone = twice.parent / newest
    assert log.mean() == cvstats.read_log(alone, metric="acc").mean()
    assert cvstats.read_log(alone.parent, metric="acc").attrs["read_from"] == "alpha"


def test_the_newest_of_three_runs_is_read(twice):
    (older,) = twice.glob("y/*/*")
    newest = twice / "z" / "alpha" / "samples_parity_2026-01-03T1.jsonl"
    newest.parent.mkdir(parents=True)
    newest.write_text(older.read_text("utf-8"), "utf-8")
    with pytest.warns(UserWarning, match=f"read was results/z/.*{newest.name} .* of 3 runs"):
        assert cvstats.read_log(twice, metric="acc").mean() == 1


def test_two_runs_in_a_list(twice, monkeypatch):
    monkeypatch.chdir(twice)
    files = [str(file.relative_to(twice)) for file in sorted(twice.glob("*/*/*"))]
    words = refused(files, metric="acc")
    assert "an evaluation occurs twice" in words
    named = dict(zip(("first", "second"), files, strict=True))
    assert words.endswith(f"Omit one file, or name the models: read_log({named!r}, …).")
    assert list(cvstats.read_log(named, metric="acc")) == ["first", "second"]


def test_directories_of_a_model_each(twice):
    one, two = (twice / folder / "alpha" for folder in "xy")
    log = cvstats.read_log({"new": one, "old": two}, metric="acc")
    assert list(log) == ["new", "old"]
    assert cvstats.read_log({"new": one}, metric="acc").name == "new"
    two.rename(two.parent / "beta")
    assert list(cvstats.read_log([one, two.parent / "beta"], metric="acc")) == ["alpha", "beta"]
    one.rename(two.parent / "alpha")
    words = refused([two.parent, two.parent], metric="acc")
    assert "'y' contains several models: 'alpha', 'beta'. Expected" in words


def test_tasks_are_sources_by_every_road(tmp_path):
    """Six logs of inspect, of two models on three tasks: as a list of files, and as one table."""
    base = json.loads((LOGS / "inspect_alpha.json").read_text(encoding="utf-8"))
    draw = np.random.default_rng(4)
    files, rows = [], []
    for model in ("alpha", "beta"):
        for task in ("sums", "parity", "words"):
            run = copy.deepcopy(base)
            run["eval"] |= {"model": model, "task": task, "eval_id": f"{model} {task}"}
            for sample in run["samples"]:
                sample["scores"]["match"]["value"] = draw.choice(["C", "I"])
            files.append(tmp_path / f"{model}_{task}.json")
            files[-1].write_text(json.dumps(run), encoding="utf-8")
            for sample in run["samples"]:
                head = {"eval_id": f"{model} {task}", "model": model, "task_name": task}
                score = sample["scores"]["match"]["value"]
                rows.append({"id": sample["id"], "epoch": sample["epoch"], **head,
                             "score_match": score})  # fmt: skip
    table, several = cvstats.read_log(pd.DataFrame(rows)), cvstats.read_log(files)
    assert set(table.index.get_level_values("source")) == {"sums", "parity", "words"}
    pd.testing.assert_frame_equal(several.sort_index(), table.sort_index(), check_like=True)
    assert several.attrs == {**table.attrs, "read_from": "list"}
    assert several.attrs["task_metrics"] == dict.fromkeys(["sums", "parity", "words"], "match")
    named = dict.fromkeys(["words", "sums"], "match")  # tasks of different files
    pd.testing.assert_frame_equal(cvstats.read_log(files, metric=named), several)
    ours, theirs = several.cvci.compare(), table.cvci.compare()
    pd.testing.assert_frame_equal(ours, theirs)
    one = cvstats.read_log([files[0], files[3]])
    assert "source" not in one.index.names
    assert one.attrs["task"] == "sums"


def test_means_are_refused_with_the_files_to_read(tmp_path):
    path = tmp_path / "results_2026-11-23T22-55-31.180147.json"
    path.write_text(json.dumps({"results": {"sums": {"acc,none": 0.5}}, "lm_eval_version": "0.4"}))
    said = refused(path)
    assert "this file has the mean scores of lm-evaluation-harness, not its samples." in said
    assert "Expected the files samples_*" in said


def test_perplexities_are_no_means_over_samples(tmp_path):
    """Refused for what they are, before anything is asked about them."""
    sample = {"doc_id": 0, "doc_hash": "a", "filter": "none", "metrics": ["word_perplexity"]}
    path = tmp_path / "samples_wiki_2026-11-23T22-55-31.180147.jsonl"
    path.write_text(json.dumps(sample | {"word_perplexity": [-51.7, 6]}))
    assert "not a mean over samples" in refused(path)
    assert "pass the files of the others" in refused(path)
