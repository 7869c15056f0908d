"""Headers as people write them: blanks, capitals, columns that are no losses, names given twice."""

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


FACTS = ["n_train", "seed", "time_s", "fit_time", "n", "batch_size", "weight", "runtime"]


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_fit_are_no_models(tmp_path, name):
    text = f"repetition,fold,point,ridge,forest,{name}\n0,0,a,1.0,2.0,7\n0,1,b,3.0,4.0,8\n"
    with pytest.warns(
        UserWarning, match=f"ignored columns that are not named like models: '{name}'"
    ):
        log = read(tmp_path, text)
    assert log.columns.tolist() == ["ridge", "forest"]
