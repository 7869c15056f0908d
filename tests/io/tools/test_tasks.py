"""Benchmarks of several tasks: a score and the same weight for each, alike by every road."""

import copy
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from plotted import without_marks
from rows import multi_index
from tool_logs import LOGS

import cvstats
from cvstats import LogError

HARNESS = LOGS / "lm_eval"
CHOICE = {"metric": {"parity": "acc"}, "filter": {"sums": "strict"}}


def harness(tasks, folder):
    """Write samples of lm-evaluation-harness: of each model and task the scores."""
    for model, scores in tasks.items():
        (folder / model).mkdir(parents=True)
        for task, (name, values) in scores.items():
            rows = [
                {"doc_id": at, "doc_hash": f"{task}{at}", "filter": "none", "metrics": [name],
                 name: value}
                for at, value in enumerate(values)
            ]  # fmt: skip
            path = folder / model / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"
            path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def run_of(model, task, scores, name="match", **head):
    samples = [
        {"id": at, "epoch": 1, "scores": {name: {"value": value}}}
        for at, value in enumerate(scores)
    ]
    facts = {"eval_id": f"{model}{task}", "model": model, "task": task} | head
    return {"version": 2, "status": "success", "eval": facts, "samples": samples}


def archive(run, path):
    """Write a run as inspect does: a zip of its head and of a file for each sample."""
    with zipfile.ZipFile(path, "w") as file:
        head = {name: part for name, part in run.items() if name != "samples"}
        file.writestr("header.json", json.dumps(head))
        for sample in run["samples"]:
            file.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


def inspect_folder(folder):
    folder.mkdir()
    runs = {}
    for model in ("a", "b"):
        for task, name, number in (("sums", "match", 8), ("words", "choice", 5)):
            scores = [(at * (3 if model == "a" else 5)) % 4 > 1 for at in range(number)]
            runs[f"2026-01-02_{task}_{model}"] = run_of(model, task, map(float, scores), name)
    return [archive(run, folder / f"{name}.eval") for name, run in runs.items()]


def test_each_task_has_its_own_score_and_filter():
    log = cvstats.read_log(HARNESS, **CHOICE)
    assert log.attrs["task_metrics"] == {"parity": "acc", "sums": "exact_match"}
    assert log.attrs["filter"] == {"parity": "none", "sums": "strict"}
    assert log.attrs["loss"] == "1 - acc or exact_match"
    for model in ("alpha", "beta"):
        for task, options in (("parity", {"metric": "acc"}), ("sums", {"filter": "strict"})):
            (path,) = (HARNESS / model).glob(f"samples_{task}*")
            alone = cvstats.read_log(path, **options)
            pd.testing.assert_series_equal(
                log[model].xs(task, level="source").sort_index(), alone.sort_index(),
                check_names=False,
            )  # fmt: skip
    one_name = cvstats.read_log(HARNESS, metric="acc", filter="strict")
    pd.testing.assert_frame_equal(one_name, log)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"metric": {"parity": "f1"}, "filter": "strict"},
            "Unknown score 'f1' of the task 'parity'",
        ),
        ({"metric": {"arc": "acc"}, "filter": "strict"}, "names the task 'arc'.*'parity', 'sums'"),
        ({"metric": "acc", "filter": {"sums": "loose"}}, "Unknown filter 'loose' of the task"),
        ({"metric": "acc"}, r"filters: 'strict', 'flexible'.*filter=\{'sums': 'strict'\}"),
        ({"metric": "rouge", "filter": "strict"}, "Unknown score 'rouge' of the task 'parity'"),
    ],
)
def test_a_choice_that_a_task_does_not_have_is_refused(options, words):
    refuses(words, cvstats.read_log, HARNESS, **options)


def test_scores_on_other_scales_are_not_averaged(tmp_path):
    text = harness(
        {"m": {"chat": ("bleu", [31.5, 20.0]), "arc": ("acc", [1.0, 0.0])}}, tmp_path / "wide"
    )
    refuses("'chat' has the score 31.5", cvstats.read_log, text)
    mixed = harness(
        {"m": {"wiki": ("perplexity", [3.0, 2.0]), "arc": ("acc", [1.0, 0.0])}}, tmp_path / "both"
    )
    refuses("'wiki' is better when lower, that of 'arc' when higher", cvstats.read_log, mixed)
    errors = {"m": {"wiki": ("perplexity", [3.0, 2.0]), "news": ("perplexity", [9.0, 7.0])}}
    log = cvstats.read_log(harness(errors, tmp_path / "errors"))
    assert log.attrs["loss"] == "perplexity"
    assert "orientation" not in log.attrs
    assert log.sum() == 21


def test_scores_of_tasks_are_for_tools_with_tasks():
    table = pd.DataFrame({"point": [1, 2], "acc": [0.5, 1.0]})
    with pytest.raises(LogError, match="names scores of tasks, but format='columns'"):
        cvstats.read_log(table, metric={"a": "acc"}, point="point")


def test_the_harness_is_read_alike_by_every_road():
    log = cvstats.read_log(HARNESS, **CHOICE)
    files = sorted(HARNESS.rglob("*.jsonl"))
    pd.testing.assert_frame_equal(cvstats.read_log(files, **CHOICE), log)
    pd.testing.assert_frame_equal(
        cvstats.read_log(files[::-1], **CHOICE).sort_index()[list(log)], log.sort_index()
    )
    folders = {model: HARNESS / model for model in ("alpha", "beta")}
    pd.testing.assert_frame_equal(cvstats.read_log(folders, **CHOICE), log)


def test_a_folder_of_eval_files_is_the_log_of_its_files(tmp_path):
    files = inspect_folder(tmp_path / "logs")
    log = cvstats.read_log(tmp_path / "logs")
    assert list(log) == ["a", "b"]
    assert log.groupby(level="source").size().to_dict() == {"sums": 8, "words": 5}
    assert log.attrs["task_metrics"] == {"sums": "match", "words": "choice"}
    pd.testing.assert_frame_equal(cvstats.read_log(files), log)
    pd.testing.assert_frame_equal(cvstats.read_log(tmp_path / "logs", format="inspect"), log)
    documents = [json.loads(json.dumps(part)) for part in map(as_document, files)]
    for document in documents:
        alone = cvstats.read_log(document)
        model, task = document["eval"]["model"], document["eval"]["task"]
        np.testing.assert_array_equal(alone, log[model].xs(task, level="source"))
    table = pd.concat([rows_of(part) for part in documents], ignore_index=True)
    pd.testing.assert_frame_equal(cvstats.read_log(table), log)
    (tmp_path / "deep").mkdir()
    (tmp_path / "logs").rename(tmp_path / "deep" / "logs")
    pd.testing.assert_frame_equal(cvstats.read_log(tmp_path / "deep"), log)


def as_document(path):
    with zipfile.ZipFile(path) as file:
        head = json.loads(file.read("header.json"))
        samples = [json.loads(file.read(n)) for n in file.namelist() if n.startswith("samples/")]
    return head | {"samples": samples}


def rows_of(document):
    """Lay a log out as `samples_df` does."""
    head = document["eval"]
    return pd.DataFrame(
        [
            {"id": s["id"], "epoch": s["epoch"], "eval_id": head["eval_id"],
             "model": head["model"], "task_name": head["task"]}
            | {f"score_{name}": score["value"] for name, score in s["scores"].items()}
            for s in document["samples"]
        ]
    )  # fmt: skip


def test_of_several_runs_of_a_task_the_newest_is_read(tmp_path):
    files = inspect_folder(tmp_path / "logs")
    expected = cvstats.read_log(tmp_path / "logs")
    old = run_of("a", "sums", [0.0] * 8)
    broken = copy.deepcopy(old) | {"status": "error"}
    archive(old, tmp_path / "logs" / "2026-01-01_sums_a.eval")
    with pytest.warns(UserWarning, match=r"read was 2026-01-02_sums_a.eval \(the newest of 2 runs"):
        log = cvstats.read_log(tmp_path / "logs")
    pd.testing.assert_frame_equal(log, expected)
    with pytest.raises(LogError, match="an evaluation occurs twice"):
        cvstats.read_log([*files, tmp_path / "logs" / "2026-01-01_sums_a.eval"])
    archive(broken, tmp_path / "logs" / "2026-01-03_sums_a.eval")
    complete = r"read was 2026-01-02_sums_a.eval \(the newest complete one of 3 runs\)"
    with pytest.warns(UserWarning, match=complete):
        log = cvstats.read_log(tmp_path / "logs")
    pd.testing.assert_frame_equal(log, expected)
    for date in ("01", "02"):
        (tmp_path / "logs" / f"2026-01-{date}_sums_a.eval").unlink()
    unfinished = "2026-01-03_sums_a.eval: this inspect run did not finish"
    with pytest.warns(UserWarning, match=unfinished):
        cvstats.read_log(tmp_path / "logs")


def test_a_damaged_file_of_a_folder_is_named(tmp_path):
    inspect_folder(tmp_path / "logs")
    (tmp_path / "logs" / "2026-01-04_x.eval").write_bytes(b"PK nothing")
    refuses("2026-01-04_x.eval", cvstats.read_log, tmp_path / "logs")


def test_tasks_have_the_same_weight_and_are_not_a_sample(tmp_path):
    log = cvstats.read_log(HARNESS, **CHOICE)
    result = log.cvci.interval()
    by_task = log.groupby(level="source")
    np.testing.assert_allclose(result["estimate"], by_task.mean().mean(), rtol=1e-12)
    within = (by_task.var() / by_task.count()).sum() / 4
    np.testing.assert_allclose(result["se"] ** 2, within, rtol=1e-12)
    assert (result["caution"] == "").all()
    assert result.attrs["reason"] == "2 fixed sources (tasks), each with the same weight"
    assert "each with the same weight" in result.attrs["target"]
    assert "CVS015" not in set(log.cvci.diagnose()["code"])
    pair = log["alpha"].cvci.compare(log["beta"])
    gap = log["alpha"] - log["beta"]
    by_task = gap.groupby(level="source")
    se = np.sqrt((by_task.var() / by_task.count()).sum()) / 2
    np.testing.assert_allclose(pair["difference"], by_task.mean().mean(), rtol=1e-12)
    np.testing.assert_allclose(pair["se"], se, rtol=1e-12)
    scores = cvstats.as_scores(result)
    np.testing.assert_allclose(scores["estimate"], 1 - result["estimate"])
    assert scores.attrs["score"] == "acc or exact_match"
    drawn = log.cvci.out_of_source(target="new_source")
    assert (drawn["caution"] == "few sources").all()
    assert "prediction" in log.cvci.out_of_source(interval="prediction").attrs["interval"]


def answers_of_tasks(repetitions, seed=0, wrong=(0.4, 0.45, 0.6)):
    """Draw losses of three models on two tasks of 40 and 60 questions."""
    rng = np.random.default_rng(seed)
    index = multi_index(
        repetition=np.repeat(range(repetitions), 100),
        source=np.tile(np.repeat(["sums", "words"], [40, 60]), repetitions),
        point=np.tile([*range(40), *range(60)], repetitions),
    )
    hard = np.tile(rng.random(100) - 0.5, repetitions)[:, None]
    losses = (rng.random((len(index), 3)) < np.array(wrong) + hard).astype(float)
    log = pd.DataFrame(losses, index, list("abc"))
    log.attrs["sources_are"] = "fixed"
    return log.droplevel("repetition") if repetitions == 1 else log


def test_answers_to_fixed_tasks_have_no_caution():
    log = answers_of_tasks(3)
    assert not log.cvci.answers()["caution"].any()
    del log.attrs["sources_are"]
    log.attrs["models_are"] = "fixed"
    assert (log.cvci.answers()["caution"] == "sources ignored").all()


@pytest.mark.parametrize("repetitions", [1, 3])
def test_all_comparisons_of_tasks_rest_on_one_standard_error(repetitions):
    log = answers_of_tasks(repetitions)
    gaps = log.cvci.compare()
    statistic = gaps["statistic"]
    best = log.cvci.best_set()
    expected = [
        max(statistic["a", "b"], statistic["a", "c"]),
        max(-statistic["a", "b"], statistic["b", "c"]),
        max(-statistic["a", "c"], -statistic["b", "c"]),
    ]
    np.testing.assert_allclose(best["statistic"], expected, rtol=1e-9)
    for words in (best.attrs["target"], best.attrs["guarantee"], gaps.attrs["guarantee"]):
        assert "new source" not in words
        assert "task" in words
    plan = log.cvci.power(effect=0.1)
    assert "groups_needed" not in plan
    np.testing.assert_allclose(plan["se"], gaps["se"])
    reach = 1.959963985 + 0.841621234
    needed = 100 * (reach * gaps["se"] / 0.1) ** 2
    np.testing.assert_allclose(plan["points_needed"], np.ceil(needed))
    assert log.cvci.winner()["mean"].item() == log.cvci.interval()["estimate"].min()


@pytest.mark.parametrize(("form", "name"), [(None, "sources"), ("lm-eval", "tasks")])
@without_marks
def test_fixed_sources_are_tasks_in_logs_of_benchmarks(form, name):
    log = answers_of_tasks(1)
    if form is not None:
        log.attrs["format"] = form
    assert f"measured on 100 points from 2 {name}. " in " ".join(log.cvci.summary().text.split())
    assert f"100 points, 2 {name}, 3 models" in repr(log.cvci)
    assert f"How much do {name} differ?" in log.cvci.report()


def test_more_answers_to_the_questions_of_tasks_are_planned():
    log = answers_of_tasks(5, seed=1)
    plan = log.cvci.power(effect=0.1)
    np.testing.assert_allclose(
        plan["point_variance"] + plan["repetition_variance"] / 5, 100 * plan["se"] ** 2
    )
    same = log.cvci.power(effect=0.1, repetitions=5)
    np.testing.assert_allclose(same["planned_se"], same["se"])
    chosen = {"method": "out_of_source", "options": {"target": "these_sources"}}
    del log.attrs["sources_are"]
    doubled = log.cvci.power(effect=0.1, **chosen)
    np.testing.assert_allclose(doubled["repetition_variance"], 0, atol=1e-12)
    with pytest.raises(LogError, match="out_of_source, whose interval does not narrow"):
        log.cvci.power(effect=0.1, repetitions=5, **chosen)


def test_the_best_of_tasks_needs_names_of_questions():
    log = answers_of_tasks(1).droplevel("point")
    log.cvci.compare()
    refuses("matches the points of tasks by label", log.cvci.best_set)


def test_several_answers_to_a_question_count_once():
    rng = np.random.default_rng(0)
    task = np.repeat(["sums", "words"], [40, 60])
    index = multi_index(
        repetition=np.repeat(range(4), 100), source=np.tile(task, 4), point=np.tile(range(100), 4)
    )
    chance = np.tile(rng.random(100), 4)
    wrong = pd.DataFrame({m: (rng.random(400) < chance).astype(float) for m in "ab"}, index)
    wrong.attrs["sources_are"] = "fixed"
    once = wrong.groupby(level=["source", "point"]).mean()
    by_task = once.groupby(level="source")
    result = wrong.cvci.interval()
    np.testing.assert_allclose(result["estimate"], by_task.mean().mean(), rtol=1e-12)
    se = np.sqrt((by_task.var() / by_task.count()).sum()) / 2
    np.testing.assert_allclose(result["se"], se, rtol=1e-12)
    assert (result.attrs["n_points"], result.attrs["n_sources"]) == (100, 2)
    more = pd.concat([wrong, wrong.rename(lambda r: r + 4, level="repetition")])
    more.attrs = wrong.attrs
    assert not more.cvci.compare()["caution"].str.contains("unstable").any()
    assert "they would narrow with more test points" in " ".join(wrong.cvci.summary().text.split())
