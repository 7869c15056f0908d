"""Pieces are saved and found again, and what is counted is what happened."""

import numpy as np
import pytest

from evidence import comparisons, designs, intervals, results, study
from evidence.designs import Cell

CELLS = {
    "intervals": [Cell("normal mean", 30, "10-fold", 25, 10)],
    "comparisons": [comparisons.Match("two classifiers", 40, "test set, labels", 12, 6)],
    "best": [],
    "power": [],
}


def test_a_stopped_study_goes_on(tmp_path, monkeypatch):
    whole = study.run_study(CELLS, tmp_path / "whole", quiet=True)
    assert whole.runs == 25 + 12
    files = sorted((tmp_path / "whole").iterdir())
    assert len(files) == 3 + 2
    again = tmp_path / "again"
    again.mkdir()
    for file in files[::2]:
        (again / file.name).write_bytes(file.read_bytes())
    kept = {file: (again / file.name).stat().st_mtime_ns for file in files[::2]}
    ended = study.run_study(CELLS, again, quiet=True)
    assert ended.rows == whole.rows
    assert {file: (again / file.name).stat().st_mtime_ns for file in kept} == kept
    assert sorted(file.name for file in again.iterdir()) == [file.name for file in files]


def test_pieces_have_seeds_of_their_own():
    pieces = study.list_pieces("intervals", CELLS["intervals"][0], 1.0)
    assert [piece.runs for piece in pieces] == [10, 10, 5]
    assert len({piece.seed for piece in pieces}) == len({piece.name for piece in pieces}) == 3


def test_what_is_measured():
    lower = np.array([0.0, 2.0, -3.0, 0.0, np.nan])
    upper = np.array([2.0, 3.0, -1.0, 2.0, np.nan])
    estimate = (lower + upper) / 2
    truth = np.array([1.0, 1.0, 1.0, 2.5, 1.0])
    found = intervals.measure(truth, estimate, lower, upper, np.array([0, 0, 1, 1, 0]))
    gaps = (estimate - truth)[:4]
    assert found == {
        "coverage": 0.25, "below": 0.25, "above": 0.5, "cautioned": 0.5, "silent_coverage": 0.5,
        "refused": 0.2, "width": 1.75,
        "width_ratio": pytest.approx(1.75 / (2 * 1.959964 * gaps.std()), rel=1e-3),
        "median_width_ratio": pytest.approx(2 / (2 * 1.959964 * gaps.std()), rel=1e-3),
    }  # fmt: skip


def test_a_refusal_is_counted(tmp_path):
    question = designs.ask("five_by_two", "trained")
    log = intervals.simulate(
        intervals.POPULATIONS["normal mean"], designs.DESIGNS["10-fold"].plan(0), 30, 4, 1,
        {"trained"},
    ).log  # fmt: skip
    found = intervals.answer(log, question)
    assert np.isnan(found["lower"]).all()
    row = intervals.measure(np.ones(4), **found)
    assert row["refused"] == 1
    assert row["coverage"] is None


def test_every_interval_and_comparison_is_asked_of_two_populations():
    from cvstats.intervals import list_methods

    asked = {}
    for cell in designs.list_cells():
        for question in designs.DESIGNS[cell.design].questions:
            asked.setdefault(question.method, set()).add(cell.population)
    for match in comparisons.list_matches():
        for question in comparisons.PLANS[match.plan][1]:
            asked.setdefault(question.method, set()).add(match.population)
    cells = study.list_all()
    asked["best_set"] = {cell.population for cell in cells["best"]}
    asked["power"] = {cell.population for cell in cells["power"]}
    without_error = {
        "answers", "decompose", "difference", "heterogeneity", "source_components",
        "source_estimators",
    }  # fmt: skip
    names = {method.name for method in list_methods()} - without_error
    few = {name for name in names if len(asked.get(name, ())) < 2}
    assert few == set(designs.ELSEWHERE | designs.UNMEASURED)


def test_shares_differ_beyond_chance():
    assert not results.differ(0.95, 100, 0.9, 4000)
    assert not results.differ(1.0, 20, 0.95, 4000)
    assert results.differ(0.7, 100, 0.95, 4000)
    assert results.differ(0.94, 4000, 0.97, 4000)


def test_changes_are_named():
    row = {"method": "wald", "options": {}, "population": "ridge", "plan": "k_fold()", "n": 100,
           "target": "trained", "runs": 400}  # fmt: skip
    stored = {"intervals": [{**row, "coverage": 0.95}], "comparisons": [], "best": []}
    new = study.Study(
        {"intervals": [{**row, "coverage": 0.6}, {**row, "n": 50, "coverage": 0.6}],
         "comparisons": [], "best": []}, 800, 1.0,
    )  # fmt: skip
    (change,) = results.find_changes(stored, new)
    assert "0.6, stored 0.95" in change
