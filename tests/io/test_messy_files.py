"""Files as people write them: headers, dashes, commas, per cent, dates with the day first."""

from time import process_time

import numpy as np
import pandas as pd
import pytest
from calls import refuses

import cvstats
from cvstats.cli import main
from cvstats.errors import LogError

PLAIN = "fold,point,ridge\n0,a,0.5\n0,b,1.5\n1,c,2.5\n"
GERMAN = "fold;point;loss\n0;a;2.833,3\n0;b;-\n1;c;1,5\n1;d;k.A.\n"


def read(tmp_path, text, **options):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return cvstats.read_log(path, **options)


def test_what_stands_for_a_missing_value(tmp_path):
    marks = {"decimal": ",", "thousands": "."}
    log = read(tmp_path, GERMAN, **marks, na_values=["-", "k.A."])
    assert log.dropna().tolist() == [2833.3, 1.5]
    assert log.isna().sum() == 2
    one = read(tmp_path, "fold,point,loss\n0,1,1\n0,2,-\n1,3,3\n", na_values="-")
    assert one.isna().tolist() == [False, True, False]


def test_the_command_takes_the_same_options(tmp_path, capsys):
    path = tmp_path / "log.csv"
    rows = [f"{i % 4};{i + 1:02d}/02/2024;{i},5" for i in range(20)]
    path.write_text("fold;point;loss\n" + "\n".join(rows) + "\n3;21/02/2024;-\n3;22/02/2024;k.A.\n")
    words = ["--decimal", ",", "--na-values", "-", "--na-values", "k.A.", "--day-first"]
    assert main(["interval", str(path), *words, "--missing", "drop"]) == 0
    assert "10." in capsys.readouterr().out
    assert main(["interval", str(path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "'loss' has '-' (1), 'k.A.' (1)." in error
    assert "On the command line: --decimal, --na-values" in error


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (GERMAN, {"decimal": ",", "thousands": "."},
         r"'loss' has '-' \(1\), 'k.A.' \(1\). .*Pass na_values=\['-', 'k.A.'\] for"),
        (GERMAN, {}, r"Pass decimal=',', thousands='.', na_values=\['-', 'k.A.'\]"),
        ("fold,point,a,b\n0,p,1,-\n0,q,-,4\n1,r,x,5\n1,s,2,6\n1,t,3,7\n", {},
         r"'a' has '-' \(1\), 'x' \(1\); 'b' has '-' \(1\)"),
        ("fold,y_true,y_pred\n0,1,-\n0,2,3\n1,n/a,4\n1,2,2\n", {"loss": ["rmse", "mae"]},
         r"'y_true' has 'n/a' \(1\); 'y_pred' has '-' \(1\)"),
        ("fold,loss\n", {}, "log.csv has a header but no rows"),
        ("fold;a;b\n0;1,5;0.5\n", {"decimal": {"c": ","}}, "names the column 'c', which the file"),
        ("fold,loss\n0,1\n", {"decimal": {"loss": "ab"}}, "decimal='ab' is not a character"),
        ("fold,loss\n0,1\n", {"decimal": {"loss": ","}, "thousands": ","}, "also the decimal mark"),
        ("fold,loss\n0,1\n", {"na_values": 3}, "na_values=3 is not text"),
        ("fold,loss\n0,1\n", {"na_values": ["-", 3]}, "is not text"),
        ("fold,loss\n0,1\n", {"dayfirst": "yes"}, "Invalid dayfirst='yes'"),
    ],
)  # fmt: skip
def test_all_problems_in_one_message(tmp_path, text, options, words):
    refuses(words, read, tmp_path, text, **options)


def test_per_cent(tmp_path):
    assert read(tmp_path, "fold,loss\n0,12.5%\n1,25 %\n").tolist() == [0.125, 0.25]
    for text in (["12.5%", "25%"], ["0.5", "1"]):
        table = pd.DataFrame({"fold": [0, 1], "point": [0, 1], "ridge": text})
        refuses(r"Expected numbers\. Convert the text: pandas\.to_num", cvstats.read_log, table)
    german = read(tmp_path, "fold;loss\n0;12,5 %\n1;25 %\n", decimal=",")
    assert german.tolist() == [0.125, 0.25]
    refuses("not losses: 'ridge', as in '12%'", read, tmp_path, "fold,ridge\n0,12%\n1,0.5\n")
    for some, options in (("12.5%", {}), ("12,5%", {"decimal": ","})):
        with pytest.raises(LogError, match="every number of the column has the sign %") as error:
            read(tmp_path, f"fold;point;loss\n0;a;{some}\n1;b;3\n", **options)
        assert "decimal=" not in str(error.value)


def test_marks_of_single_columns(tmp_path):
    text = "fold;point;a;b\n0;p;1.234,5;0.5\n1;q;2,5;0.75\n"
    log = read(tmp_path, text, decimal={"a": ","}, thousands={"a": "."})
    assert log["a"].tolist() == [1234.5, 2.5]
    assert log["b"].tolist() == [0.5, 0.75]


@pytest.mark.parametrize(("dayfirst", "month"), [(True, 2), (False, 1)])
def test_dates_that_end_with_the_year(tmp_path, dayfirst, month):
    text = "fold,point,loss\n0,01/02/2024,1\n1,02/02/2024,2\n"
    labels = read(tmp_path, text, dayfirst=dayfirst).index.get_level_values("point")
    assert labels[0] == pd.Timestamp(2024, month, 3 - month)
    assert read(tmp_path, text).index.get_level_values("point")[0] == "01/02/2024"


def test_a_file_of_many_models_is_read_in_time(tmp_path):
    """Each column by itself would copy the names of all others: 20,000 took over a minute."""
    seconds = []
    for number in (10, 200, 1600):  # the first one to import
        names = [f"m{i}" for i in range(number)]
        table = pd.DataFrame(np.ones((4, number)), columns=names)
        table.insert(0, "fold", [0, 0, 1, 1])
        table.insert(1, "point", range(4))
        table.to_csv(tmp_path / "log.csv", index=False)
        start = process_time()
        log = cvstats.read_log(tmp_path / "log.csv")
        seconds.append(process_time() - start)
        assert list(log) == names
    assert seconds[2] < 24 * seconds[1]  # eight times as many; the square would be 64 times


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


LEVEL = pytest.mark.parametrize("level", ["fold", "source", "point", "segment"])


@LEVEL
def test_a_number_is_not_also_a_label_as_text(level):
    """Folds 1 and "1" were two folds, and a patient was two patients: the interval too narrow."""
    table = pd.DataFrame({
        "fold": [0, 1] * 4, "source": [2, 3] * 4, "point": [4, 5, 6, 7] * 2,
        "segment": [8, 9] * 4, "repetition": [0] * 4 + [1] * 4,
        "loss": np.arange(8.0), "y_true": 1.0, "y_pred": 2.0,
    })  # fmt: skip
    options = {"by": "segment", "loss": "squared_error"}
    mixed = table.astype({level: object})
    mixed.loc[4:, level] = mixed.loc[4:, level].astype(str)
    readers = [lambda frame: cvstats.read_log(frame, **options)]
    readers += [cvstats.as_log] * (level != "segment")
    for read in readers:
        refuses(rf"^'{level}' has the number \d and the text '\d' as", read, mixed)
        again = mixed.assign(**{level: pd.to_numeric(mixed[level])})  # as the message says
        pd.testing.assert_series_equal(read(again), read(table))
        read(mixed.assign(**{level: ["a", 1, "b", 2] * 2}))  # these are four labels


@LEVEL
@pytest.mark.parametrize("command", [False, True])
def test_files_of_one_log_store_a_level_in_the_same_way(tmp_path, capsys, level, command):
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    table = pd.DataFrame({
        "fold": [0, 1] * 10, "source": np.arange(20) // 2, "point": range(20),
        "segment": np.arange(20) % 3, "loss": np.arange(20.0),
    })  # fmt: skip
    folder = tmp_path / "log"
    folder.mkdir()
    table[:10].to_parquet(folder / "a.parquet")
    later = table[10:].astype({level: str})
    if level in ("source", "point"):
        later[level] = table[level].astype(str).to_numpy()[:10]
    later.to_parquet(folder / "b.parquet")
    if command:
        assert main(["interval", str(folder), "--by", "segment", "--loss", "loss"]) == 2
        assert f"'{level}' has the number " in capsys.readouterr().err
    else:
        by = {"by": "segment"} if level == "segment" else {}
        with pytest.raises(LogError, match=f"^'{level}' is text in some files and not in others"):
            cvstats.scan_parquet(folder, **by)
