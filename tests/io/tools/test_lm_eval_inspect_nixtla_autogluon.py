"""Files that lm-evaluation-harness, inspect, Nixtla and AutoGluon wrote themselves."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from tool_logs import LOGS

import cvstats
from cvstats.errors import LogError

LIMITS = ["estimate", "lower", "upper"]


def close(got, want):
    """Hold two results to each other."""
    got, want = got[LIMITS].to_numpy(dtype=float), want[LIMITS].to_numpy(dtype=float)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def samples(model, task):
    """Parse one file by hand."""
    (path,) = (LOGS / "lm_eval" / model).glob(f"samples_{task}_*.jsonl")
    return path, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lm_eval_is_joined_on_doc_hash_and_not_on_order_or_doc_id():
    paths, columns = [], {}
    for model in ("alpha", "beta"):
        path, rows = samples(model, "sums")
        paths.append(path)
        rows = [row for row in rows if row["filter"] == "strict"]
        columns[model] = pd.Series({row["doc_hash"]: 1 - row["exact_match"] for row in rows})
    by_hand = pd.DataFrame(columns).rename_axis("point")
    log = cvstats.read_log(paths, filter="strict")
    assert log.shape == (30, 2)
    assert log.attrs["loss"] == "1 - exact_match"
    assert log.attrs["filter"] == "strict"
    close(log.cvci.holdout(), by_hand.cvci.holdout())
    pd.testing.assert_frame_equal(log.sort_index(), by_hand.sort_index(), check_names=False)
    by_order = {m: [r["doc_id"] for r in samples(m, "sums")[1][::2]] for m in columns}
    assert by_order["alpha"] == by_order["beta"]  # the same numbers for other documents


def test_lm_eval_asks_which_filter_and_which_score():
    path, _ = samples("alpha", "sums")
    refuses("several filters: 'strict', 'flexible'.*filter='strict'", cvstats.read_log, path)
    strict, flexible = (cvstats.read_log(path, filter=f) for f in ("strict", "flexible"))
    assert strict.mean() > flexible.mean()
    refuses("Unknown filter 'loose'", cvstats.read_log, path, filter="loose")
    path, rows = samples("alpha", "parity")
    refuses("2 scores: 'acc', 'acc_norm'.*metric='acc'", cvstats.read_log, path)
    assert cvstats.read_log(path, metric="acc").mean() == 1 - np.mean([r["acc"] for r in rows])
    pd.testing.assert_series_equal(
        cvstats.read_log(path, loss="acc_norm"),
        cvstats.read_log(path, metric="acc_norm"),
        check_names=False,
    )


def test_lm_eval_reads_a_directory_and_records_in_memory(tmp_path):
    for model in ("alpha", "beta"):
        path, _ = samples(model, "parity")
        (tmp_path / model).mkdir()
        (tmp_path / model / path.name).write_bytes(path.read_bytes())
        old = path.name.replace("2026", "2025")
        (tmp_path / model / old).write_text("{}", encoding="utf-8")  # an older run is not read
    with pytest.warns(UserWarning, match="alpha/samples_parity_2026.*beta/samples_parity_2026"):
        log = cvstats.read_log(tmp_path, metric="acc")
    assert list(log) == ["alpha", "beta"]
    _, rows = samples("alpha", "parity")
    assert cvstats.read_log(rows, metric="acc").mean() == log["alpha"].mean()
    with pytest.raises(LogError, match=r"task 'parity' have 2 scores.*metric=\{'parity': 'acc'\}"):
        cvstats.read_log(LOGS / "lm_eval", filter="strict")


def test_lm_eval_copies_and_unknown_scores():
    _, rows = samples("alpha", "parity")
    refuses("an evaluation occurs twice", cvstats.read_log, [*rows, rows[3]], metric="acc")
    copied = [*rows, {**rows[3], "doc_id": 99}]  # the data set has this document twice
    assert len(cvstats.read_log(copied, metric="acc")) == 31
    odd = [{**row, "metrics": ["zest"], "zest": 0.25} for row in rows]
    refuses("higher_is_better", cvstats.read_log, odd)
    assert cvstats.read_log(odd, higher_is_better=False).mean() == 0.25
    pairs = [{**row, "metrics": ["acc"], "acc": [1, 2]} for row in rows]
    refuses("which is not a number", cvstats.read_log, pairs)


@pytest.fixture
def table():
    return pd.read_csv(LOGS / "inspect_samples.csv")


def test_inspect_by_id_and_epoch(table):
    kept = table[table["error"].isna()]
    beta = kept["model"] == "mockllm/beta"
    kept = kept[~(beta & (kept["id"] == "q07"))]  # of which one epoch failed
    loss = 1 - kept["score_match"].map({"C": 1.0, "I": 0.0})
    by_hand = kept.assign(loss=loss).set_index(["epoch", "id", "model"])["loss"].unstack("model")
    by_hand.index.names = ["repetition", "point"]
    log = cvstats.read_log(LOGS / "inspect_samples.csv", missing="drop")
    assert (log.attrs["n_errored"], log.attrs["n_incomplete"]) == (1, 1)
    drop = {"missing": "drop"}
    close(log.loc[[1]].cvci.holdout(**drop), by_hand.loc[[1]].cvci.holdout(**drop))
    close(log.cvci.holdout(**drop), by_hand.cvci.holdout(**drop))
    whole = [model for model in log if log[model].notna().all()]
    assert whole == ["mockllm/alpha"]
    close(log[whole[0]].cvci.holdout(), by_hand[whole[0]].cvci.holdout())
    assert cvstats.read_log(table, missing="drop").equals(log)


def test_inspect_names_the_samples_that_ended_in_an_error():
    with pytest.raises(LogError, match="1 sample ended in an error: id='q07', epoch=2"):
        cvstats.read_log(LOGS / "inspect_samples.csv")


def test_inspect_logs_in_json_hold_the_same_as_the_table(table):
    files = {"alpha": LOGS / "inspect_alpha.json", "beta": LOGS / "inspect_beta.json"}
    log = cvstats.read_log(files, missing="drop")
    expected = cvstats.read_log(table, missing="drop").set_axis(["alpha", "beta"], axis=1)
    pd.testing.assert_frame_equal(
        log.sort_index(), expected.sort_index(), check_names=False, check_index_type=False
    )
    by_list = cvstats.read_log(list(files.values()), missing="drop")
    assert list(by_list) == ["mockllm/alpha", "mockllm/beta"]
    one = json.loads(files["alpha"].read_text(encoding="utf-8"))
    assert cvstats.read_log(one).equals(cvstats.read_log(files["alpha"]))


def test_inspect_archives_hold_the_same_as_the_json():
    log = cvstats.read_log(LOGS / "inspect_alpha.eval")
    pd.testing.assert_series_equal(log, cvstats.read_log(LOGS / "inspect_alpha.json"))
    files = {"alpha": LOGS / "inspect_alpha.eval", "beta": LOGS / "inspect_beta.json"}
    assert list(cvstats.read_log(files, missing="drop")) == ["alpha", "beta"]


def test_inspect_needs_the_models_of_several_runs(table):
    refuses(r"merge\(evals_df", cvstats.read_log, table.drop(columns="model"), missing="drop")
    one = table[table["model"] == "mockllm/alpha"].drop(columns="model")
    assert cvstats.read_log(one).name == "loss"


def test_inspect_grades_and_sources(table):
    grades = table.assign(score_match="P", error=None)
    assert (cvstats.read_log(grades) == 0.5).all(axis=None)
    for odd in ("maybe", "[1, 0]"):
        refuses("grades C, I, P and N", cvstats.read_log, table.assign(score_match=odd, error=None))
    log = cvstats.read_log(table, missing="drop", source="metadata_topic")
    assert set(log.index.get_level_values("source")) == {"even", "odd"}
    again = pd.concat([table, table.assign(sample_id="another-run")])
    refuses("an evaluation occurs twice", cvstats.read_log, again, missing="drop")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_nixtla(suffix):
    path = LOGS / f"nixtla.{suffix}"
    table = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    models = ["Naive", "SeasonalNaive", "HistoricAverage"]
    by_hand = table.rename(columns={"cutoff": "fold", "unique_id": "source", "ds": "point"})
    by_hand = by_hand.set_index(["fold", "source", "point"])
    by_hand = by_hand[models].sub(by_hand["y"], axis=0) ** 2
    log = cvstats.read_log(path, loss="squared_error")
    assert list(log) == models  # and no limits of intervals
    close(log.cvci.wald(), by_hand.cvci.wald())
    two = cvstats.read_log(path, loss="squared_error", prediction=["Naive", "SeasonalNaive"])
    assert list(two) == models[:2]


def test_nixtla_times_that_are_numbers_are_kept():
    table = pd.DataFrame({"unique_id": "a", "ds": range(1, 9), "cutoff": [0] * 4 + [4] * 4,
                          "y": 0.0, "Naive": np.arange(8.0)})  # fmt: skip
    log = cvstats.read_log(table, loss="squared_error")
    assert list(log.index) == [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (4, 6), (4, 7), (4, 8)]


def test_nixtla_windows_must_not_overlap():
    with pytest.raises(LogError, match="windows overlap: unique_id='bakery'.*step_size"):
        cvstats.read_log(LOGS / "nixtla_overlapping.csv", loss="squared_error")


def test_autogluon_says_what_is_lost_and_is_aligned_by_index():
    table = pd.read_csv(LOGS / "autogluon.csv", index_col=0)
    oof, label = table[["no", "yes"]], table["label"].sample(frac=1, random_state=2)
    with pytest.warns(UserWarning, match="does not record the fold"):
        log = cvstats.read_log(oof, format="autogluon", y=label, loss="brier")
    by_hand = ((oof["yes"] - (table["label"] == "yes")) ** 2).rename_axis("point")
    close(log.cvci.holdout(), by_hand.cvci.holdout())
    assert "averages" in log.attrs["lost"]
    with pytest.warns(UserWarning, match="AutoGluon"):
        read = cvstats.read_log(
            LOGS / "autogluon.csv", format="autogluon", truth="label", loss="brier"
        )
    close(read.cvci.holdout(), by_hand.cvci.holdout())
    folds = pd.Series(np.arange(80) % 4, index=table.index)  # where one gave AutoGluon the folds
    read_with = partial(cvstats.read_log, format="autogluon", y=label, loss="zero_one")
    log = read_with(oof, groups=folds[::-1])
    assert log.index.tolist() == [*zip(folds, table.index, strict=True)]
    close(read_with(oof.idxmax(axis=1), groups=folds).cvci.wald(), log.cvci.wald())
    for wrong in (folds.tolist(), pd.concat([folds, folds[:1]])):
        refuses(r"groups= does not match the points\. Expected a Ser", read_with, oof, groups=wrong)


def test_autogluon_copies_of_rare_rows_are_refused():
    table = pd.read_csv(LOGS / "autogluon.csv", index_col=0)
    twice = pd.concat([table, table.iloc[:1]])
    with pytest.raises(LogError, match=re.escape("copies rows of rare classes")):
        cvstats.read_log(twice["no"], format="autogluon", y=table["label"], loss="brier")
    for known, words in ((79, r"\. Expected"), (9, r" \(and 70 more\)\. Expected the training")):
        y, row = table["label"][:known], table.index[known]
        with pytest.raises(LogError, match=f"y has no truth for row {row!r}{words}"):
            cvstats.read_log(table["no"], format="autogluon", y=y, loss="brier")
    with pytest.raises(LogError, match="Pass the label column"):
        cvstats.read_log(table["no"], format="autogluon", loss="brier")
    with pytest.raises(LogError, match="a numpy ndarray cannot be read. Expected a path, a pandas"):
        cvstats.read_log(table["no"].to_numpy(), format="autogluon", y=table["label"])
