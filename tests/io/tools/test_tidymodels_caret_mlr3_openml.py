"""Tables of tidymodels, caret, mlr3 and OpenML: round trips, and the trap of each."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from tool_logs import (
    CLASSES,
    FOLDS,
    N,
    arff,
    brier_of,
    caret,
    direct,
    experiment,
    mlr3,
    openml,
    same_interval,
    tidymodels,
)

import cvstats
from cvstats.errors import LogError

LAYOUTS = {"tidymodels": tidymodels, "caret": caret, "mlr3": mlr3}


@pytest.fixture
def table():
    return experiment()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "tsv", "object"])
@pytest.mark.parametrize("tool", LAYOUTS)
def test_numbers_give_the_interval_of_the_direct_computation(table, tool, suffix, tmp_path):
    laid = LAYOUTS[tool](table)
    path = tmp_path / f"log.{suffix}"
    if suffix in ("csv", "tsv"):
        laid.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    elif suffix == "jsonl":
        laid.to_json(path, orient="records", lines=True)
    elif suffix == "parquet":
        laid.to_parquet(path)
    log = cvstats.read_log(laid if suffix == "object" else path, loss="squared_error")
    assert log.attrs["format"] == tool
    assert log.attrs["loss"] == "squared_error"
    assert log.shape == (2 * N, 2)
    first = "mtry=2" if tool == "caret" else "pre0_mod1_post0" if tool == "tidymodels" else "ridge"
    log = log[[first, *(m for m in log if m != first)]]
    expected = direct(table, (table["y"] - table["guess"]) ** 2)
    same_interval(log, expected)
    assert log.sort_index().index.equals(expected.index)  # numbered as the tool does


@pytest.mark.parametrize("loss", ["brier", "log_loss", "zero_one"])
@pytest.mark.parametrize("tool", LAYOUTS)
def test_classes_and_their_probabilities(table, tool, loss, tmp_path):
    path = tmp_path / "log.csv"
    LAYOUTS[tool](table, classes=True).to_csv(path)  # with row numbers, as R writes it
    given = table[CLASSES].to_numpy()[np.arange(len(table)), table["label"].map(CLASSES.index)]
    values = {
        "brier": brier_of(table),
        "log_loss": -np.log(given),
        "zero_one": (table["label"] != table["class"]).astype(float),
    }
    log = cvstats.read_log(path, loss=loss)
    expected = direct(table, values[loss])
    order = log.mean().sort_values().index
    same_interval(log[order], expected[expected.mean().sort_values().index])


def test_one_class_of_the_probabilities(table):
    two = table.assign(label=table["label"].replace("mid", "high"), high=1 - table["low"], mid=0.0)
    laid = mlr3(two, classes=True).drop(columns="prob.mid")
    log = cvstats.read_log(laid, loss="brier", positive="low")
    same_interval(log[["ridge", "tree"]], direct(two, (two["low"] - (two["label"] == "low")) ** 2))
    log = cvstats.read_log(laid, loss="zero_one", positive="low", threshold=0.3)
    same_interval(
        log[["ridge", "tree"]],
        direct(two, ((two["low"] >= 0.3) != (two["label"] == "low")).astype(float)),
    )
    refuses("positive='mid' is not a class", cvstats.read_log, laid, loss="brier", positive="mid")
    refuses("Pass positive='low' with it", cvstats.read_log, laid, loss="zero_one", threshold=0.3)
    refuses("3 labels", cvstats.read_log, mlr3(table, classes=True), loss="brier", positive="low")


POOLED = {"folds": "pool"}
ONE = {"positive": "low"}
OF_PROBABILITIES = {
    "calibration_slope": {"clip": 1e-3, **POOLED}, "average_precision": {**ONE, **POOLED},
    "net_benefit": {"threshold": 0.3, **ONE}, "log_loss": {}, "auc": POOLED,
}  # fmt: skip


@pytest.mark.parametrize("loss", OF_PROBABILITIES)
def test_a_loss_takes_the_same_probabilities_from_a_file_and_its_predictions(table, loss):
    options = OF_PROBABILITIES[loss]
    two = table.assign(label=table["label"].replace("mid", "high"), high=1 - table["low"], mid=0.0)
    laid = mlr3(two, classes=True).drop(columns="prob.mid")
    log = cvstats.read_log(laid, loss=loss, **options)
    predictions = cvstats.read_predictions(laid)
    again = cvstats.losses(predictions, loss=loss, **options)
    pd.testing.assert_frame_equal(log, again, check_names=False)
    words = "threshold= applies to the probability of one class.* Pass positive='low' with it"
    refuses(words, cvstats.losses, predictions, loss="zero_one", threshold=0.3)


@pytest.mark.parametrize("suffix", ["arff", "csv"])
def test_openml(table, suffix, tmp_path):
    one = table[table["model"] == "ridge"]
    path = tmp_path / f"predictions.{suffix}"
    for classes in (False, True):
        laid = openml(table, classes)
        arff(laid, path) if suffix == "arff" else laid.to_csv(path, index=False)
        log = cvstats.read_log(path, loss="brier" if classes else "absolute_error")
        values = brier_of(one) if classes else (one["y"] - one["guess"]).abs()
        same_interval(log, direct(one, values))
        assert log.index.get_level_values("point").min() == 0


def test_openml_looks_the_truth_up_by_row(table):
    laid = openml(table).drop(columns="truth")
    refuses("has no truth", cvstats.read_log, laid, loss="squared_error")
    one = table[table["model"] == "ridge"]
    truth = one.drop_duplicates("point").set_index("point")["y"].rename(index=lambda p: p - 1)
    log = cvstats.read_log(laid, loss="squared_error", y=truth.sample(frac=1, random_state=3))
    same_interval(log, direct(one, (one["y"] - one["guess"]) ** 2))
    for ids in (laid["row_id"], laid["row_id"].astype(float)):  # one row, in every repetition
        with pytest.raises(LogError, match="no truth for row_id 5. Expected"):
            cvstats.read_log(laid.assign(row_id=ids), loss="squared_error", y=truth.drop(5))


def test_obs_loss_of_mlr3_needs_no_loss(table):
    values = (table["y"] - table["guess"]) ** 2
    laid = mlr3(table).assign(**{"regr.mse": values})
    log = cvstats.read_log(laid)
    assert log.attrs["loss"] == "regr.mse"
    same_interval(log[["ridge", "tree"]], direct(table, values))
    two = laid.assign(**{"regr.mae": values**0.5})
    refuses("metric='regr.mse'", cvstats.read_log, two)
    same_interval(
        cvstats.read_log(two, metric="regr.mae")[["ridge", "tree"]], direct(table, values**0.5)
    )
    same_interval(cvstats.read_log(two, loss="regr.mae"), cvstats.read_log(two, metric="regr.mae"))


def test_averaged_repetitions_of_tidymodels_are_refused(table):
    averaged = tidymodels(table).drop(columns=["id", "id2"])
    with pytest.raises(LogError, match=r"averaged over repetitions.*summarize = FALSE"):
        cvstats.read_log(averaged, loss="squared_error")


def test_the_dropped_iteration_of_mlr3_is_refused(table):
    with pytest.raises(LogError, match="no column 'iteration'"):
        cvstats.read_log(mlr3(table).drop(columns="iteration"), loss="squared_error")


def test_iterations_become_folds_repeated_folds_or_splits(table):
    one = mlr3(table)[lambda t: t["learner_id"] == "ridge"].drop(columns="learner_id")
    log = cvstats.read_log(one, loss="squared_error")
    assert log.index.names == ["repetition", "fold", "point"]
    log = cvstats.read_log(one[one["iteration"] <= FOLDS], loss="squared_error")
    assert log.index.names == ["fold", "point"]
    log = cvstats.read_log(one[one["iteration"] != 2], loss="squared_error")
    assert log.index.names == ["repetition", "point"]
    single = one[one["iteration"] == 2]
    assert cvstats.read_log(single, loss="squared_error").index.names == ["point"]


@pytest.mark.parametrize("tool", LAYOUTS)
def test_duplicates_are_refused(table, tool):
    laid = LAYOUTS[tool](table)
    twice = pd.concat([laid, laid.iloc[[7]]], ignore_index=True)
    refuses("an evaluation occurs twice", cvstats.read_log, twice, loss="squared_error")


@pytest.mark.parametrize("tool", LAYOUTS)
def test_points_whose_names_do_not_mean_the_same_are_refused(table, tool):
    laid = LAYOUTS[tool](table)
    truth = {"tidymodels": "price", "caret": "obs", "mlr3": "truth"}[tool]
    laid.loc[3, truth] += 1
    options = {"truth": "price"} if tool == "tidymodels" else {}
    with pytest.raises(LogError, match="Expected one truth for each point"):
        cvstats.read_log(laid, loss="squared_error", **options)


def test_the_truth_of_tidymodels_is_asked_for_where_it_could_be_several(table):
    laid = tidymodels(table).assign(area=table["point"] * 2.0)
    refuses("truth='price'", cvstats.read_log, laid, loss="squared_error")
    log = cvstats.read_log(laid, loss="squared_error", truth="price")
    assert log.shape == (2 * N, 2)


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["Fold1", "Fold2"], ["fold", "point"]),
        (["Fold0", "Fold1"], ["fold", "point"]),
        (["Fold01.Rep1", "Fold02.Rep1"], ["repetition", "fold", "point"]),
        (["Repeat0/Fold0", "Repeat0/Fold1"], ["repetition", "fold", "point"]),
        (["Resample01", "Resample02"], ["fold", "point"]),  # each point once: a partition
        ([-1, 0], ["fold", "point"]),
        (["1", "2"], None),
        (["Fold1", "Resample2"], None),
        (["Fold1.Rep1.Rep2.x", "Fold2"], None),
        (["Resample1.Rep1", "Resample2.Rep1"], None),
    ],
)
def test_names_of_splits(names, levels):
    laid = pd.DataFrame(
        {"pred": [1.0, 2.0], "obs": [1.0, 1.0], "rowIndex": [1, 2], "Resample": names}
    )
    if levels is None:
        refuses("split", cvstats.read_log, laid, loss="squared_error")
    else:
        assert cvstats.read_log(laid, loss="squared_error").index.names == levels


def test_leave_one_out_of_caret_has_no_column_resample(table):
    one = table[(table["model"] == "ridge") & (table["repetition"] == 1)]
    laid = caret(one).drop(columns=["Resample", "mtry"])
    log = cvstats.read_log(laid, loss="squared_error")
    assert log.index.names == ["fold", "point"]
    same_interval(log, direct(one.assign(fold=one["point"]), (one["y"] - one["guess"]) ** 2, False))


def test_predictions_without_a_loss_are_not_taken_for_losses(table):
    refuses("Specify the loss to compute", cvstats.read_log, caret(table))


def test_learning_curves_and_several_tasks_are_refused(table):
    with pytest.raises(LogError, match="learning curve"):
        cvstats.read_log(openml(table).assign(sample=range(2 * N)), loss="squared_error")
    one = cvstats.read_log(openml(table).assign(sample=0), loss="squared_error")
    pd.testing.assert_series_equal(one, cvstats.read_log(openml(table), loss="squared_error"))
    tasks = np.where(np.arange(len(table)) < 5, "iris", "wine")
    with pytest.raises(LogError, match="several tasks.*Keep the rows of one: .*== 'iris'"):
        cvstats.read_log(mlr3(table).assign(task_id=tasks), loss="squared_error")
    one = cvstats.read_log(mlr3(table).assign(task_id="iris"), loss="squared_error")
    pd.testing.assert_frame_equal(one, cvstats.read_log(mlr3(table), loss="squared_error"))
