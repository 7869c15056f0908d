"""The command, on a study of a few seconds."""

import json

import numpy as np
import pandas as pd
import pytest

from evidence import __main__ as command
from evidence import (
    best,
    comparisons,
    designs,
    literature,
    metrics,
    results,
    source_variances,
    study,
    verdicts,
)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A study of a cell of each part, whose figures are written elsewhere."""
    cells = {
        "intervals": designs.over("frequent errors", "test set, labels", {50: 200}),
        "comparisons": [comparisons.Match("two classifiers", 50, "test set, labels", 40, 20)],
        "best": [best.Selection("ten classifiers", 50, "test set, many", 20, 10)],
        "power": [comparisons.Match("two classifiers", 50, "test set, labels", 20, 10)],
        "source_variances": [source_variances.Experiment(5, 20, 10)],
        "verdicts": [verdicts.Trial("one feature each", 40, "10-fold", 6, 3)],
        "metrics": [metrics.Sample("auc", "5% positives", 240, 10, 5)],
    }
    monkeypatch.setattr(study, "list_all", lambda: cells)
    monkeypatch.setattr(literature, "compare", lambda rows: [])
    file = tmp_path / "evidence.json"
    monkeypatch.setattr(results, "FILE", file)
    return file


def run(tmp_path, *options):
    return command.main([*options, "--jobs", "1", "--folder", str(tmp_path / "pieces")])


def test_the_whole_study_and_a_quick_one(tiny, tmp_path, monkeypatch, capsys):
    assert run(tmp_path) == 0
    found = json.loads(tiny.read_text("utf-8"))
    assert found["study"]["runs"] == 200 + 40 + 20 + 20 + 20 + 6 + 10
    assert found["study"]["seed"] == study.SEED
    assert {row["method"] for row in found["intervals"]} == {"holdout", "interval"}
    assert all(0.8 < row["coverage"] <= 1 for row in found["intervals"])
    (power,) = found["power"]
    assert 0 < power["predicted"] < 1
    assert found["best"][0]["models"] == 10

    monkeypatch.setattr(command, "QUICK", 0.5)
    assert run(tmp_path, "--quick") == 0
    for row in found["intervals"]:
        row["coverage"] = 0.2
    results.write(found, tiny)
    assert run(tmp_path, "--quick") == 1
    assert f"{len(found['intervals'])} figures differ" in capsys.readouterr().out


def test_the_stored_figures_of_a_method_are_printed(capsys):
    assert command.main(["mcnemar"]) == 0
    printed = capsys.readouterr().out
    assert "two classifiers" in printed
    assert "equivalence" not in printed


def test_one_part_is_run_again_and_the_others_are_kept(tiny, tmp_path):
    run(tmp_path)
    before = results.read(tiny)
    kept = {**before, "intervals": [], "verdicts": []}
    results.write(kept, tiny)
    assert run(tmp_path, "--part", "verdicts") == 0
    after = results.read(tiny)
    assert after["verdicts"] == before["verdicts"]
    assert after["intervals"] == []
    assert after["comparisons"] == before["comparisons"]
    assert after["study"]["parts"]["verdicts"]["runs"] == 6


def test_verdicts_and_habits():
    (trial,) = [one for one in verdicts.list_trials() if one.population == "stores and days"]
    rows = verdicts.summarize(trial, verdicts.run(trial, 8, 1))
    by_name = {row["method"]: row for row in rows}
    assert set(by_name) == {"summary", "t-test over rows", "bootstrap of rows"}  # no folds
    assert by_name["summary"]["wrong"] < 0.3 < by_name["t-test over rows"]["wrong"]
    assert by_name["summary"]["found"] > 0.5


@pytest.mark.parametrize("models", [2, 3, 12])
def test_a_headline_declares_what_is_significant(models):
    rng = np.random.default_rng(2)
    for lead in (0, 3):
        losses = 5 + rng.normal(size=(200, models)) - lead * (np.arange(models) == 0)
        log = pd.DataFrame(losses, pd.RangeIndex(200, name="point"))
        table = verdicts.Table(log, losses, None)
        assert verdicts.ask_summary(table, rng)[0] == (lead > 0), str(log.cvci.summary())


def test_a_method_by_itself_is_simulated(tiny, tmp_path, capsys):
    assert run(tmp_path, "mcnemar", "--again") == 0
    printed = capsys.readouterr().out
    assert "two classifiers" in printed
    assert "mid-p" in printed
    assert "equivalence" not in printed
    assert not tiny.exists()


def test_a_method_that_is_not_asked(tiny, tmp_path):
    with pytest.raises(SystemExit, match="does not ask 'jackknife'"):
        run(tmp_path, "jackknife", "--again")


def test_a_method_without_stored_figures():
    with pytest.raises(SystemExit, match="does not ask 'jackknife'"):
        command.main(["jackknife"])


def test_the_file_that_ships():
    found = results.read(results.FILE)
    assert set(found) >= {"study", "populations", "targets", "intervals", "comparisons", "best",
                          "power", "literature"}  # fmt: skip
    assert set(found["study"]) >= {"seed", "versions", "commit", "date", "minutes", "runs"}
    known = {population["name"] for population in found["populations"]}
    for part in ("intervals", "comparisons", "best", "power", "verdicts"):
        assert {row["population"] for row in found[part]} <= known
    facts = {"method", "options", "population", "plan", "n", "target", "alpha", "runs", "coverage",
             "below", "above", "width", "width_ratio", "median_width_ratio", "cautioned",
             "silent_coverage", "refused", "fits"}  # fmt: skip
    for row in found["intervals"]:
        assert facts <= set(row)
        assert row["target"] in found["targets"]
        if row["coverage"] is not None:
            assert row["coverage"] + row["below"] + row["above"] == pytest.approx(1, abs=3e-4)
    assert len(found["literature"]) > 20
    assert results.FILE.stat().st_size < 620_000


def test_the_literature_is_judged_by_the_rows():
    found = results.read(results.FILE)
    lines = literature.compare({part: found[part] for part in study.PARTS})
    assert lines == found["literature"]
    assert {line["study"].split(" (")[0] for line in lines} == {
        "Bayle et al.", "Bates, Hastie and Tibshirani", "Schulz-Kuempel et al.", "Geras and Sutton",
    }  # fmt: skip
    with pytest.raises(LookupError, match="0 rows of intervals"):
        literature.pick(found, "intervals", method="wald", population="the moon")
