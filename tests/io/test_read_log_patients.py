"""A table of patients, as somebody brings it who has read nothing: names of its own everywhere."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from patients import MODELS, outcomes, patients

import cvstats

CALL = {"fold": "CV Split", "point": "Patient ID", "source": "Hospital"}


@pytest.fixture
def table():
    return patients(np.random.default_rng(8))


@pytest.fixture
def answers(table):
    return outcomes(table.drop(columns=MODELS))


refused = partial(refusal, cvstats.read_log)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "brier"},
        {"loss": "log_loss"},
        {"loss": "zero_one", "threshold": 0.5},
        {"loss": "hinge"},
    ],
)
def test_no_label_is_guessed(answers, options):
    words = refused(answers, truth="Outcome", prediction="Prob", **options, **CALL)
    assert "the truth has the labels 'no', 'yes'. Expected 0 and 1" in words
    assert words.endswith("Specify the predicted label: positive='no' or positive='yes'.")
    losses = [
        cvstats.read_log(
            answers, truth="Outcome", prediction="Prob", positive=label, **options, **CALL
        ).mean()
        for label in ("yes", "no")
    ]
    assert losses[0] < losses[1]


def test_labels_of_other_kinds(answers):
    options = {"truth": "Outcome", "prediction": "Prob", "loss": "brier", **CALL}
    one = answers.assign(Outcome="yes")
    assert "the truth has the label 'yes' alone" in refused(one, **options)
    assert refused(one, **options).endswith("positive='yes' or positive=….")
    codes = answers.assign(Outcome=pd.Categorical(answers["Outcome"]))
    assert "positive='no' or positive='yes'" in refused(codes, **options)
    ranks = answers.assign(Outcome=(answers["Outcome"] == "yes") + 1)
    assert "the labels 1, 2" in refused(ranks, **options)
    assert refused(ranks, **options).endswith("positive=1 or positive=2.")
    for plain in ((0, 1), (-1, 1), (False, True)):
        known = answers.assign(Outcome=[plain[word == "yes"] for word in answers["Outcome"]])
        expected = cvstats.read_log(answers, positive="yes", **options)
        np.testing.assert_array_equal(cvstats.read_log(known, **options), expected)
    assert "positive='maybe' is not a label" in refused(answers, positive="maybe", **options)


@pytest.mark.parametrize("positive", [None, 86.87])
def test_numbers_are_no_classes(table, positive):
    options = {"prediction": "Pred (XGB)", "loss": "brier", "positive": positive, **CALL}
    assert "the truth has 60 " in refused(table, truth="True Value", **options)
    options |= {"source": "CV Split"}
    assert "the truth has 4 " in refused(table, truth="Hospital", **options)
    assert "the truth has 4 " in refused(table, truth="Hospital", **options | {"loss": "hinge"})


def test_scores_of_points_are_turned(table):
    rng = np.random.default_rng(1)
    scored = table.assign(acc=rng.integers(0, 2, 60), gain=rng.normal(size=60))
    log = cvstats.read_log(scored, metric="acc", higher_is_better=True, **CALL)
    assert log.tolist() == (1 - scored["acc"]).tolist()
    assert (log.name, log.attrs["loss"]) == ("1 - acc", "1 - acc")
    log = cvstats.read_log(scored, loss="gain", higher_is_better=True, **CALL)
    assert log.tolist() == (-scored["gain"]).tolist()
    assert log.attrs["loss"] == "-gain"
    log = cvstats.read_log(scored, metric="acc", higher_is_better=False, **CALL)
    assert log.tolist() == scored["acc"].tolist()
    assert (log.name, log.attrs["loss"]) == ("acc", "acc")


def test_scores_that_cannot_be_turned(table):
    words = refused(
        table, truth="True Value", prediction="Pred (XGB)", loss="squared_error",
        higher_is_better=True, **CALL,
    )  # fmt: skip
    assert words.startswith("higher_is_better= applies to tables of scores")
    assert words.endswith("Omit it.")
    table["acc"] = np.where(np.arange(len(table)) == 0, "good", "bad")
    words = refused(table, metric="acc", higher_is_better=True, **CALL)
    assert "the losses of 'acc' are not numbers: 'good'" in words


@pytest.mark.parametrize("option", ["loss", "metric"])
def test_one_column_of_losses(table, option):
    words = refused(table, **{option: ["a", "b"]}, **CALL)
    assert words == (
        f"{option}=['a', 'b'] names several columns. Expected one. If each model has a column of "
        "losses, call cvstats.as_log(frame, loss=['a', 'b'], …); if it has one of predictions, "
        "pass prediction=[…], and one loss."
    )
    words = refused(table, **{option: ["a"]}, **CALL)
    assert words == f"{option}=['a'] is a list. Expected the name of one column: {option}='a'."


def test_columns_that_sound_like_a_level_stay(table):
    options = {"truth": "True Value", "prediction": MODELS, "loss": "squared_error"}
    log = cvstats.read_log(table, point="Patient ID", **options)
    assert log.index.names == ["point", "CV Split", "Hospital"]
    assert log.cvci.interval()["caution"].str.contains("unused level").all()
    assert "CVS021" in set(log.cvci.diagnose()["code"])
    rows = cvstats.read_log(table, **options)  # without any level, each row is a point
    assert rows.index.names == ["point", "Patient ID", "CV Split", "Hospital"]
    assert rows.cvci.interval()["caution"].str.contains("unused level").all()
    named = cvstats.read_log(table, **CALL, **options)
    assert named.index.names == ["fold", "source", "point"]
    np.testing.assert_array_equal(log, named)
    log = cvstats.read_log(table, point="Patient ID", metric="True Value")
    assert log.index.names == ["point", "CV Split", "Hospital"]
    frame = cvstats.read_predictions(
        table, truth="True Value", prediction=MODELS, fold="CV Split", point="Patient ID"
    )
    assert frame.index.names == ["fold", "point", "Hospital"]


def test_what_is_another_for_each_model_does_not_stay(table):
    below = pd.concat([table[["Patient ID"]].assign(model=m, seed=i, loss=i + 0.5)
                       for i, m in enumerate("ab")])  # fmt: skip
    log = cvstats.read_log(below.assign(hospital=[*table["Hospital"]] * 2), point="Patient ID")
    assert log.index.names == ["point", "hospital"]
    assert log.shape == (60, 2)
    one = table.assign(Hospital="A", loss=1.0).drop(columns="CV Split")
    assert cvstats.read_log(one, point="Patient ID").index.names == ["point"]
    gaps = table.assign(Hospital=table["Hospital"].where(table["Hospital"] != "A"), loss=1.0)
    log = cvstats.read_log(gaps.drop(columns="CV Split"), point="Patient ID")
    assert log.index.get_level_values("Hospital").isna().sum() == (table["Hospital"] == "A").sum()
