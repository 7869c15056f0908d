"""Headers as people write them: blanks, capitals, columns that are no losses, names given twice."""

from __future__ import annotations

import pandas as pd
import pytest

import cvstats

PLAIN = "fold,point,ridge\n0,a,0.5\n0,b,1.5\n1,c,2.5\n"


def read(tmp_path, text, **options):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return cvstats.read_log(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(",", ", "),
        PLAIN.replace("fold,point", "fold ,point "),
        PLAIN.replace("fold", "Fold").replace("point", "POINT"),
        PLAIN.replace("fold,point", '"Fold", "Point"'),
    ],
)
def test_blanks_and_capitals_in_a_header_change_nothing(tmp_path, text):
    log = read(tmp_path, text)
    pd.testing.assert_series_equal(log, read(tmp_path, PLAIN), check_exact=True)


PREDICTED = "fold,point,y_true,y_pred\n0,a,0.5,1.0\n0,b,1.5,1.0\n1,c,2.5,0.0\n"


@pytest.mark.parametrize("options", [{}, {"truth": "y_true", "prediction": "y_pred"}])
def test_capitals_in_truth_and_prediction_change_nothing(tmp_path, options):
    header, rows = PREDICTED.split("\n", 1)
    expected = read(tmp_path, PREDICTED, loss="squared_error")
    found = read(tmp_path, f"{header.title()}\n{rows}", loss="squared_error", **options)
    pd.testing.assert_series_equal(found, expected, check_exact=True)
    named = {"truth": "Y_Pred", "prediction": "Y_True"}
    swapped = read(tmp_path, f"{header.title()}\n{rows}", loss="squared_error", **named)
    assert swapped.tolist() == expected.tolist()
    losses = PLAIN.replace("ridge", "loss")
    pd.testing.assert_series_equal(
        read(tmp_path, losses.replace("loss", "Loss")), read(tmp_path, losses)
    )


FACTS = ["n_train", "seed", "time_s", "fit_time", "n", "batch_size", "weight", "runtime"]


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_fit_are_no_models(tmp_path, name):
    text = f"repetition,fold,point,ridge,forest,{name}\n0,0,a,1.0,2.0,7\n0,1,b,3.0,4.0,8\n"
    with pytest.warns(
        UserWarning, match=f"ignored columns that are not named like models: '{name}'"
    ):
        log = read(tmp_path, text)
    assert log.columns.tolist() == ["ridge", "forest"]
