"""Tables as people keep them: other separators, folders, misspelt columns, and unnamed models."""

import re
from functools import partial
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from rows import product_index

import cvstats
from cvstats import cli
from cvstats.errors import LogError
from cvstats.io.tools import FORMATS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "reading.md"


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    rows = {"fold": np.arange(12) % 3, "point": np.arange(12), "ridge": rng.random(12)}
    return pd.DataFrame(rows).assign(forest=rng.random(12))


@pytest.fixture
def odd():
    """Models below each other, and no column called as a level is."""
    rows = [(i, i % 3, model, i / 7) for model in "ab" for i in range(9)]
    return pd.DataFrame(rows, columns=["id", "split", "model", "err"])


refused = partial(refusal, cvstats.read_log)


@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_are_seen_in_the_header(tmp_path, table, name, separator):
    table.to_csv(tmp_path / name, index=False, sep=separator)
    pd.testing.assert_frame_equal(
        cvstats.read_log(tmp_path / name), cvstats.read_log(table), check_like=True
    )


def test_an_encoding_is_named_with_the_option_that_reads_another(tmp_path, table):
    path = tmp_path / "log.csv"
    table.rename(columns={"ridge": "Süd"}).to_csv(path, index=False, encoding="latin-1")
    words = refused(path)
    assert "it is not valid UTF-8 from byte 12 on" in words
    assert "For CSV files with another encoding, pass it as in encoding='latin-1'" in words
    assert "is not valid ASCII" in refused(path, encoding="ascii")
    assert list(cvstats.read_log(path, encoding="latin-1")) == ["Süd", "forest"]


def test_a_folder_of_saved_logs(tmp_path, table):
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    log = cvstats.read_log(table)
    for name, rows in (("a", slice(0, 5)), ("b", slice(5, None))):
        cvstats.save_log(log.iloc[rows], tmp_path / f"{name}.parquet")
    pd.testing.assert_frame_equal(cvstats.read_log(tmp_path), log)
    cvstats.save_log(log["ridge"], tmp_path / "c.parquet")
    words = refused(tmp_path)
    assert words.startswith("'c.parquet' has the columns ")
    assert "; 'a.parquet' has " in words
    assert "Expected the same columns in each file of the folder: the rows of one log" in words
    assert "pass the files by name" in words


@pytest.mark.parametrize("rows", [slice(None), slice(1)])
def test_a_folder_of_one_file_and_a_list_of_records(tmp_path, table, rows):
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    table = table.iloc[rows]
    table.to_parquet(tmp_path / "a.parquet")
    read = cvstats.read_log(tmp_path)
    pd.testing.assert_frame_equal(read, cvstats.read_log(table))
    pd.testing.assert_frame_equal(cvstats.read_log(table.to_dict("records")), read)


def test_a_folder_of_anything_is_not_searched_to_the_bottom(tmp_path):
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "samples_x.jsonl").write_text('{"doc_id": 0, "filter": "none", "acc": 1.0}\n')
    words = refused(tmp_path)
    assert f"the folder {tmp_path.name} contains neither Parquet files nor samples_*.jsonl" in words
    assert "cvstats.scan_parquet(path)" in words
    assert cvstats.read_log(tmp_path, format="lm-eval", metric="acc").shape == (1,)
    assert cvstats.read_log(tmp_path / "a", metric="acc").shape == (1,)
    (deep / "samples_x.jsonl").unlink()
    assert "contains no samples_*.jsonl" in refused(tmp_path, format="lm-eval")


def test_nothing_in_a_list():
    assert refused([]) == "the list is empty. Expected paths of files, or records of a table."
    assert refused(()).startswith("the tuple is empty")


def test_misspelt_columns(odd):
    words = refused(odd, loss="error", fold="split")
    assert words.startswith("'error' is neither a column nor a loss. Expected")
    assert words.endswith("Did you mean 'err'?")
    assert refused(odd, loss="err", fold="splt").endswith("Did you mean 'split'?")
    assert refused(odd, metric="er", fold="split").endswith("Did you mean 'err'?")
    assert "the column of true values is unknown" in refused(odd, loss="mse", fold="split")


def test_options_that_nobody_would_look_at(table):
    held = table.rename(columns={"ridge": "loss"})
    for option in ("prediction", "truth"):
        words = refused(held, **{option: "forest"})
        assert f"are in the column 'loss', but {option}= requires loss=" in words
    assert "no column 'lasso'" in refused(table, metric="lasso")


@pytest.mark.parametrize("repetitions", [1, 2])
def test_the_same_log_of_wide_and_long_tables(tmp_path, repetitions):
    rng = np.random.default_rng(7)
    n = 12 * repetitions
    wide = pd.DataFrame({"cv": np.arange(n) % 3, "id": np.tile(np.arange(12), repetitions)})
    wide["run"] = np.repeat(np.arange(repetitions), 12)
    wide["y"] = np.tile(rng.normal(size=12), repetitions)
    wide[["ridge", "fold"]] = rng.normal(size=(n, 2))  # a model that is called like a level
    wide = wide.sample(frac=1, random_state=3, ignore_index=True)
    wide.loc[2, "fold"] = np.nan
    levels = {"fold": "cv", "point": "id", "repetition": "run"}
    options = {**levels, "truth": "y", "loss": "squared_error"}
    log = cvstats.read_log(wide, prediction=["ridge", "fold"], **options)
    expected = (wide[["ridge", "fold"]].sub(wide["y"], axis=0) ** 2).to_numpy()
    np.testing.assert_array_equal(log.to_numpy(), expected)
    long = wide.melt([*levels.values(), "y"], var_name="who", value_name="guess")
    other = cvstats.read_log(long, prediction="guess", model="who", **options)
    pd.testing.assert_frame_equal(log, other)
    files = {}
    for name in ("ridge", "fold"):
        files[name] = str(tmp_path / f"{name}.parquet")
        wide[[*levels.values(), "y", name]].rename(columns={name: "pred"}).to_parquet(files[name])
    by_file = cvstats.read_log(files, prediction="pred", **options)
    pd.testing.assert_frame_equal(by_file, log)
    both = cvstats.read_log({"a": wide}, prediction=["ridge", "fold"], **options)
    assert list(both) == ["a/ridge", "a/fold"]
    np.testing.assert_array_equal(both.to_numpy(), log.to_numpy())


@pytest.mark.parametrize("names", [["y_true", "ridge"], ["ridge", "y_true"]])
def test_a_model_is_not_taken_for_the_truth(table, names):
    table = table.rename(columns={"forest": "y_true"}).assign(y=0.0)
    words = refused(table, truth="y", prediction=names, loss="squared_error")
    assert words.startswith("two of the columns of models and truth are called 'y_true'. Expected")
    assert cvstats.read_log(table, truth="y", prediction="y_true", loss="squared_error").all()


def test_models_with_one_name_as_text(odd):
    odd["model"] = odd["model"].astype(object).map({"a": 1, "b": "1"})
    words = refused(odd, loss="err", fold="split", point="id")
    assert words.startswith("two of the columns of models and truth are called '1'. Expected")


def test_scores_of_several_models_are_all_shares_or_none(table):
    table.loc[1, "ridge"] = np.nan
    levels = ["fold", "point"]
    shares = cvstats.read_log(table.convert_dtypes(), higher_is_better=True)
    np.testing.assert_allclose(shares, 1 - table.set_index(levels))
    assert shares.attrs["loss"] == "1 - score"
    table.loc[0, "forest"] = 1.5
    other = cvstats.read_log(table, higher_is_better=True)
    np.testing.assert_allclose(other, -table.set_index(levels))
    assert other.attrs["loss"] == "-score"


def test_an_evaluation_that_occurs_twice_is_named_once(table):
    twice = pd.concat([table, table.head(1)])
    words = refused(twice, truth="ridge", prediction=["ridge", "forest"], loss="squared_error")
    expected = "an evaluation occurs twice: fold=0, point=0. Expected each (fold, point) once. "
    assert words.startswith(expected)
    assert "drop_duplicates=True" in words
    twice.iloc[-1, -1] += 1  # another prediction for the same point: no duplicate
    words = refused(twice, truth="ridge", prediction=["ridge", "forest"], loss="squared_error")
    assert "drop_duplicates=True" not in words
    grid = product_index(point=range(9), station=[*"xy"], lead=[1, 2])
    rows = pd.DataFrame({"loss": 0.5}, grid).reset_index()
    words = refused(rows, by="lead", point="point")
    assert "twice: point=0, lead=1; point=0, lead=2; point=1, lead=1; and" in words
    assert "repetition= or fold= or model= or source=." in words
    assert "lead_time" not in words
    assert "pass by='lead_time'" in refused(rows, source="station", point="point")


@pytest.mark.parametrize(("models", "words"), [("ab", "point=2, model='b'. "), ("bb", "point=2. ")])
def test_an_evaluation_that_occurs_twice_has_the_name_of_one_of_several_models(models, words):
    rows = pd.DataFrame({"model": [*models, "b"], "point": [1, 2, 2], "loss": [0.1, 0.2, 0.3]})
    assert words in refused(rows)


def test_rows_without_points_are_to_be_numbered(table):
    bare = table.drop(columns="point").assign(truth=0.0)
    options = {"truth": "truth", "prediction": ["ridge", "forest"], "loss": "squared_error"}
    words = refused(bare, **options)
    assert "drop_duplicates" not in words
    advice = "If each row is a different point, number them: table['point'] = range(len(table))."
    assert words.endswith(advice)
    bare["point"] = range(len(bare))
    assert len(cvstats.read_log(bare, **options)) == len(table)


def test_models_of_a_saved_log(tmp_path, table):
    log = cvstats.read_log(table)
    cvstats.save_log(log, tmp_path / "log.csv")
    path = tmp_path / "log.csv"
    pd.testing.assert_frame_equal(cvstats.read_log(path, prediction=["forest"]), log[["forest"]])
    pd.testing.assert_series_equal(cvstats.read_log(path, prediction="ridge"), log["ridge"])
    assert "prediction= names 'ridg'. Did you mean 'ridge'" in refused(path, prediction="ridg")
    assert "require loss=" in refused(path, truth="forest")
    cvstats.save_log(log["ridge"], path)
    assert "this file contains losses of one model" in refused(path, prediction="ridge")
    predictions = log.assign(y_true=1.0)
    cvstats.save_log(predictions, path)
    assert "require loss=" in refused(path, prediction="ridge")
    assert cvstats.read_log(path, prediction=["ridge"], loss="squared_error").shape == (12, 1)


@pytest.mark.parametrize("empty", [xr.Dataset(), xr.Dataset({"estimate": ("site", [])})])
@pytest.mark.parametrize("write", [cvstats.to_markdown, cvstats.to_latex])
def test_an_empty_result_is_refused(empty, write):
    refuses(r"the result is empty. Expected the result of a function such as", write, empty)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["01", "1", "1e0", "2"], ["01", "1", "1e0", "2"]),
        (["007", "008", "009", "010"], ["007", "008", "009", "010"]),
        (["1", "1.0", "2", "3"], ["1", "1.0", "2", "3"]),
        (["+1", "1", "2", "3"], ["+1", "1", "2", "3"]),
        (["1", "2", "10", "-3"], [1, 2, 10, -3]),
        (["1.0", "2.0", "10.0", "0.0"], [1, 2, 10, 0]),
        (["1e+05", "2e+05", "99999", "0"], [100000, 200000, 99999, 0]),
        (["a", "01", "1", "2"], ["a", "01", "1", "2"]),
    ],
)
@pytest.mark.parametrize("level", ["source", "model"])
def test_labels_are_text_where_numbers_would_merge_them(tmp_path, labels, expected, level):
    rows = [f"{i},{label},{i / 2}" for i, label in enumerate(labels)]
    path = tmp_path / "log.csv"
    path.write_text(f"point,{level},loss\n" + "\n".join(rows) + "\n")
    log = cvstats.read_log(path)
    if level == "source":
        assert dict(zip(log.index.get_level_values("point"),
                        log.index.get_level_values("source"), strict=True)) == dict(
            enumerate(expected))  # fmt: skip
    else:
        assert list(log) == expected


def split(seed, levels=("fold",), n=60):
    """Losses of one model, on folds of its own."""
    rng = np.random.default_rng(seed)
    parts = []
    for repetition in range(2 if "repetition" in levels else 1):
        fold = rng.permutation(n) % 5
        part = pd.DataFrame({"point": range(n), "fold": fold, "repetition": repetition})
        parts.append(part.assign(loss=rng.random(n)))
    table = pd.concat(parts)
    if "fold" not in levels:
        table = table[table["fold"] == 0]
    return table[[*levels, "point", "loss"]]


@pytest.mark.parametrize("levels", [("fold",), ("repetition", "fold"), ("repetition",)])
def test_models_of_different_splits_are_refused(tmp_path, levels):
    one, two = split(1, levels), split(2, levels)
    words = refused({"a": one, "b": two})
    assert words.startswith("'a' and 'b' have different splits: point ")
    assert "Expected the same splits for every model. Evaluate each with cv=list(" in words
    one.to_csv(tmp_path / "a.csv", index=False)
    two.to_csv(tmp_path / "b.csv", index=False)
    assert refused([tmp_path / "a.csv", tmp_path / "b.csv"]).startswith("'a' and 'b' have diff")
    if "fold" in levels:  # models stacked in rows
        stacked = pd.concat([one.assign(model="a"), two.assign(model="b")])
        assert refused(stacked) == words
        assert refusal(cvstats.as_log, stacked, model="model") == words
        moved = one.assign(fold=np.r_[(one["fold"].iloc[0] + 1) % 5, one["fold"].iloc[1:]])
        assert "different splits: point 0 is in " in refused({"a": one, "b": moved})
    same = one.assign(loss=1.0).sample(frac=1, random_state=1)
    assert cvstats.read_log({"a": one, "b": same}).notna().all(axis=None)


def test_models_without_some_repetitions_of_a_point_have_the_same_splits():
    """Every repetition tests all points: what one model lacks is missing, not another split."""
    rows = product_index(repetition=range(3), point=range(6))
    one, two = (pd.DataFrame({"loss": 1.0 * np.arange(18)}, rows).drop(rows[at]) for at in (0, 6))
    log = cvstats.read_log({"a": one.reset_index(), "b": two.reset_index()})
    assert log.isna().sum().tolist() == [1, 1]
    assert len(log) == 18


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_documented(name):
    assert f"``{name}``" in cvstats.read_log.__doc__
    page = GUIDE.read_text("utf-8").lower().replace("-", "")
    assert re.search(rf"\b{name.replace('-', '')}", page)


def answered():
    """Right and wrong answers of two models."""
    rng = np.random.default_rng(0)
    index = product_index(model=list("ab"), point=range(60))
    return pd.DataFrame({"correct": rng.random(120) < 0.7}, index).reset_index()


@pytest.mark.parametrize("name", ["correct", "Accuracy", "auc", "dice", "NDCG@10", "f1_macro"])
def test_a_column_named_like_a_score_is_not_taken_for_losses(name, tmp_path):
    """The worst model would silently be the best."""
    table = answered().rename(columns={"correct": name})
    table.to_parquet(path := tmp_path / "log.parquet")
    for read in (
        lambda: cvstats.read_log(table, loss=name), lambda: cvstats.as_log(table, loss=name),
        lambda: cvstats.read_log(path, loss=name), lambda: cvstats.scan_parquet(path, loss=name),
        lambda: cvstats.as_log(dd.from_pandas(table, npartitions=2), loss=name),
        lambda: cvstats.scan_dask(dd.from_pandas(table, npartitions=2), loss=name),
    ):  # fmt: skip
        refuses(rf"'{name}' is named like a score, .*higher_is_better=", read)
    log = cvstats.read_log(table, loss=name, higher_is_better=False)
    assert log.mean().tolist() == pytest.approx(table.groupby("model")[name].mean().tolist())
    assert cvstats.as_log(answered(), loss=["correct"]).columns.tolist() == ["correct"]
    other = table.rename(columns={name: "accuracy_gap"})
    assert cvstats.as_log(other, loss="accuracy_gap", model="model").shape[1] > 1


def test_metrics_in_columns_beside_a_column_of_models_are_stacked_as_advised():
    table = pd.DataFrame({"model": ["a", "b"] * 30, "user": np.arange(60) // 2})
    table[["ndcg", "hit"]] = np.random.default_rng(0).random((60, 2))
    both, asked = ["ndcg", "hit"], {"model": "model", "point": "user"}
    with pytest.raises(LogError) as error:
        cvstats.as_log(table, loss=both, **asked)
    call = str(error.value).partition("stack them: frame.")[2].rstrip(".")
    stacked = eval(f"table.{call}", {"table": table})
    log = cvstats.read_log(stacked, loss="loss", higher_is_better=True, **asked)
    found = cvstats.as_scores(log.cvci.interval())["estimate"].unstack("metric")[both]
    np.testing.assert_allclose(found.sort_index(), table.groupby("model")[both].mean())
    for read in (
        lambda: cvstats.read_log(table, loss=both, **asked),
        lambda: cvstats.read_log(table, higher_is_better=True, **asked),
    ):
        refuses(r"stack them.* table.melt\(…, \['ndcg', 'hit'\], 'met", read)


def test_each_of_several_scores_is_converted_back():
    """as_scores returned 1 - score under the name of the score."""
    draw = np.random.default_rng(0).random(240)
    rows = pd.MultiIndex.from_product([["ndcg", "hit"], ["a", "b"], range(60)])
    table = pd.DataFrame({"value": draw}, rows.set_names(["metric", "model", "point"]))
    asked = {"loss": "value", "model": "model", "higher_is_better": True}
    log = cvstats.read_log(table.reset_index(), **asked)
    found = cvstats.as_scores(log.cvci.interval())
    alone = cvstats.read_log(table.loc["ndcg"].reset_index(), **asked).cvci.interval()
    limits = ["estimate", "lower", "upper"]
    pd.testing.assert_frame_equal(found.loc["ndcg", limits], cvstats.as_scores(alone)[limits])
    assert found.loc["hit", "estimate"].tolist() == pytest.approx(
        table.loc["hit"].groupby("model")["value"].mean().tolist()
    )
    assert "has a higher ndcg than" in str(log.cvci.summary()["ndcg"]).replace("\n", " ")


def test_scores_are_not_taken_for_losses_of_models_either(tmp_path, capsys):
    table = pd.DataFrame({"fold": range(10), "accuracy": 0.8, "f1": 0.7})
    table.to_parquet(path := tmp_path / "log.parquet")
    for found in (table, path):
        refuses(r"'accuracy' is named .* per split format='scores'", cvstats.read_log, found)
        with pytest.raises(LogError, match="^'accuracy' is named ((?!per split).)*$"):
            cvstats.read_log(table.assign(point=range(10)))
    assert cli.main(["interval", str(path)]) == 2
    assert "--higher-is-better" in capsys.readouterr().err
    assert cvstats.read_log(table, higher_is_better=True)["accuracy"].tolist() == [1 - 0.8] * 10
    assert (
        cvstats.read_log(table, format="scores", higher_is_better=True)["f1"].tolist()
        == [-0.7] * 10
    )


@pytest.mark.parametrize(
    ("given", "start"),
    [(True, "The accuracy is 70.0%"), (False, "The mean correct is 0.700")],
)
def test_a_column_of_losses_names_no_model(given, start):
    table = pd.DataFrame({"fold": np.arange(60) % 5, "point": range(60)})
    table["correct"] = (np.arange(60) % 10 < 7) * 1.0
    log = cvstats.read_log(table, loss="correct", higher_is_better=given)
    assert str(log.cvci.summary()).startswith(start)


@pytest.mark.parametrize("container", ["frame", "array", "dask", "moments"])
def test_scores_are_scores_everywhere(container):
    log = cvstats.read_log(answered(), loss="correct", higher_is_better=True)
    rate = 1 - log.mean()
    made = {
        "frame": log, "array": log.to_xarray().to_dataarray("model").assign_attrs(log.attrs),
        "moments": cvstats.Moments.of_log(log, pairs=True),
    }  # fmt: skip
    made["dask"] = made["array"].chunk()
    (result,) = dask.compute(cvstats.interval(made[container]))
    found = cvstats.as_scores(result)
    assert found.attrs["score"] == "correct"
    assert found.attrs["target"].startswith("accuracy of ")
    assert found["estimate"].to_numpy().tolist() == pytest.approx(rate.tolist())
    if container != "moments":
        (gap,) = dask.compute(cvstats.interval(cvstats.difference(made[container])))
        gap = cvstats.as_scores(gap)["estimate"].to_numpy().item()
        assert gap == pytest.approx(rate.iloc[0] - rate.iloc[1])
    text = str(cvstats.summary(made[container]))
    assert f"accuracy of {rate.idxmax()} is {100 * rate.max():.1f}%" in " ".join(text.split())
