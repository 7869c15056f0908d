"""Tables of one's own: a mapping of columns, and one score for each split."""

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses
from rows import only_row, product_index
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_validate
from together import together
from tool_logs import LOGS, MODELS, direct, experiment, same_interval

import cvstats
from cvstats import cli
from cvstats.errors import LogError


@pytest.fixture
def table():
    return experiment()


def test_a_column_for_each_model(table):
    values = direct(table, (table["y"] - table["guess"]) ** 2)
    same_interval(cvstats.read_log(values.reset_index()), values)
    same_interval(cvstats.read_log(values), values)  # levels in the index
    guesses = direct(table, table["guess"]).assign(y_true=direct(table, table["y"])["ridge"])
    log = cvstats.read_log(guesses, prediction=MODELS, loss="squared_error")
    same_interval(log, values)


@together(
    [
        ({"a": [1], "b": [1, 2]}, {}, "different lengths"),
        ({"a": [1.0]}, {}, "no column of losses"),
        ({"fold": [1], "name": ["x"]}, {}, "are not losses: 'name'"),
        ({"fold": [1], "y_true": [1], "z": [1]}, {"loss": "zero_one"}, "column of predictions"),
        ({"fold": [1], "z": [1]}, {"loss": "zero_one"}, "column of true values"),
        ({"fold": [1, None], "loss": [1, 2]}, {}, "row 1 has no fold"),
        ({"fold": [1, 1], "loss": [1, 2]}, {}, "occurs twice: fold=1"),
        ({"fold": [], "name": pd.Series(dtype="str"), "mse": []}, {}, "the table is empty"),
        ({"point": [1, 1], "loss": [1, 2]}, {}, "differ: repetition= or fold= or model="),
        ({"fold": [1, np.inf], "loss": [1, 2]}, {}, "infinite"),
        ({"fold": [1, 2], "loss": [1, np.inf]}, {}, "infinite"),
        ({"fold": [1, 2], "loss": [1, "x"]}, {}, "'loss' has 'x' .1."),
        ({"fold": [1], "loss": [1]}, {"loss": "brier"}, "this contains losses"),
        ({"fold": [1], "loss": [1]}, {"fold": "split"}, "no column 'split'"),
        ({"fold": [1], "loss": [1]}, {"missing": "ignore"}, "Invalid missing='ignore'"),
        ({"fold": [1], "loss": [1]}, {"quantile": 0.5}, "quantile= applies to predictions"),
        ({"fold": [1], "loss": [1]}, {"n_test": 3}, "only to format='scores'"),
        ({}, {}, "cannot be read"),
        (None, {}, "cannot be read"),
        (7, {}, "cannot be read"),
    ],
)
def test_words(columns, options, words):
    refuses(words, cvstats.read_log, columns, **options)


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ({"visit_id": [1, 2], "days_true": [3, 4], "days_hat": [4, 4]}, {}),
        ({"visit_id": [1, 2], "days_true": [3, 4]}, {"loss": "absolute_error"}),
        ({"cv_split": [1, 2], "note": ["", "x"]}, {"fold": "cv_split"}),
    ],
)
def test_columns_are_listed_with_the_call_that_names_them(table, options):
    words = refusal(cvstats.read_log, table, **options)
    assert f"The columns are {', '.join(map(repr, table))}. Expected names" in words
    assert "read_log(path, fold=…, point=…, metric=…) for losses" in words


def test_different_designs_have_no_evaluations_in_common(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("fold,point,loss\n1,1,0.5\n", encoding="utf-8")
    two.write_text("fold,loss\n1,0.5\n", encoding="utf-8")
    refuses("different levels", cvstats.read_log, [one, two])
    two.write_text("fold,point,loss\n1,2,0.5\n1,1,0.25\n", encoding="utf-8")
    log = cvstats.read_log([one, two])
    assert list(log) == ["one", "two"]
    assert log.loc[(1, 1)].tolist() == [0.5, 0.25]
    refuses("not evaluated on the same points", log.cvci.holdout)


def scores(rng, r=5, k=2):
    """Accuracies of two models for r repetitions of k folds."""
    index = product_index(repetition=range(r), fold=range(k))
    table = pd.DataFrame({"a": rng.normal(0.8, 0.02, r * k), "b": rng.normal(0.7, 0.02, r * k)})
    return table.set_index(index)


def test_scores_say_which_way_is_better():
    table = scores(np.random.default_rng(1))
    refuses("higher_is_better", cvstats.read_log, table, format="scores")
    log = cvstats.read_log(table, format="scores", higher_is_better=True)
    assert (log == -table).all(axis=None)
    log = cvstats.read_log(table.reset_index(), format="scores", higher_is_better=False)
    assert (log == table).all(axis=None)


def test_the_score_of_one_split_is_refused_with_a_way():
    """The advice was to name columns, which the scores of scikit-learn do not have."""
    rows = np.arange(30)
    cv = PredefinedSplit(np.where(rows < 20, -1, 0))
    X, y = rows[:, None] * 1.0, rows % 7 * 1.0
    search = GridSearchCV(DummyRegressor(), {"strategy": ["mean", "median"]}, cv=cv).fit(X, y)
    keep = {"return_estimator": True, "return_indices": True}
    result = cross_validate(DummyRegressor(), X, y, cv=cv, **keep)
    table = pd.DataFrame({"model": ["a", "b"], "split": [0, 0], "r2": [0.8, 0.9]})
    for call in (
        lambda: cvstats.read_log(search, y=y),
        lambda: cvstats.read_log(pd.DataFrame(search.cv_results_), cv=cv),
        lambda: cvstats.read_log(result["test_score"], cv=cv, X=X, metric="r2"),
        lambda: cvstats.read_log({"test_score": result["test_score"]}, cv=cv, metric="r2"),
        lambda: cvstats.read_log(table, format="scores", higher_is_better=True),
    ):
        refuses(r"only one split.*cvstats\.evaluate does, and", call)
    found = cvstats.read_log(result, X=X, y=y, loss="squared_error")
    assert found.cvci.interval().attrs["n_points"] == 10


def test_interval_takes_scores():
    table = scores(np.random.default_rng(1), r=8, k=1).droplevel("fold")
    options = {"format": "scores", "higher_is_better": True}
    log = cvstats.read_log(table, n_train=90, n_test=10, **options)
    got = log.cvci.interval()
    pd.testing.assert_frame_equal(got, log.cvci.corrected_t(), check_like=True)
    assert got.attrs["method"] == "corrected_t"
    assert got.attrs["reason"] == "one score per split and no losses of individual points"
    assert "CVS004" not in set(cvstats.diagnose(log)["code"])
    bare = cvstats.read_log(table, **options)
    call = r"read_log\(…, format='scores', n_train=90, n_test=10\)"
    refuses(call, bare.cvci.interval)
    folds = cvstats.read_log(scores(np.random.default_rng(1)), **options)
    assert folds.cvci.interval().attrs["method"] == "corrected_t"


def test_scores_of_random_splits_need_to_know_the_points_behind_them():
    rng = np.random.default_rng(2)
    losses = rng.gamma(2.0, size=(12, 10))
    points = pd.Series(
        losses.reshape(-1),
        index=product_index(repetition=range(12), row=range(10)),
    )
    means = {"split": range(12), "error": losses.mean(axis=1)}
    bare = cvstats.read_log(means, format="scores", higher_is_better=False)
    refuses("points behind each score", cvstats.corrected_t, bare)
    refuses("points behind each score", cvstats.corrected_t, bare, train_size=90)
    log = cvstats.read_log(means, format="scores", higher_is_better=False, n_train=90, n_test=10)
    got = only_row(cvstats.corrected_t(log))
    want = only_row(cvstats.corrected_t(points, train_size=90))
    for name in ("estimate", "se", "lower", "upper", "n_train", "n_test"):
        assert got[name] == pytest.approx(want[name], rel=1e-12)


@pytest.mark.parametrize("names", [["Fold1.Rep1", "Fold2.Rep1"], ["Resample1", "Resample2"]])
def test_scores_with_names_of_splits(names):
    log = cvstats.read_log(
        {"Resample": names, "RMSE": [1.0, 2.0]}, format="scores", higher_is_better=False
    )
    assert log.index.names[0] == "repetition"
    with pytest.raises(LogError, match="the column of the splits"):
        cvstats.read_log({"RMSE": [1.0, 2.0]}, format="scores", higher_is_better=False)
    with pytest.raises(LogError, match="no column of scores was found"):
        cvstats.read_log({"fold": [1], "x": ["a"]}, format="scores", higher_is_better=False)


@pytest.mark.parametrize(("repetitions", "levels"), [(1, ["fold"]), (2, ["repetition", "fold"])])
def test_names_of_repeated_folds_are_two_levels_where_there_are_two_repetitions(
    repetitions, levels
):
    splits = [f"Fold{fold}.Rep{r + 1}" for r in range(repetitions) for fold in (1, 2)]
    rows = {"fold": splits, "point": [0, 1] * repetitions, "loss": np.arange(2.0 * repetitions)}
    assert cvstats.read_log(pd.DataFrame(rows)).index.names == [*levels, "point"]


def test_a_table_of_weights_and_biases():
    log = cvstats.read_log(
        LOGS / "wandb.table.json", prediction=["ridge", "forest"], loss="squared_error"
    )
    assert log.shape == (12, 2)
    assert list(log.index.names) == ["fold", "point"]
    assert log.loc[(0, 0), "ridge"] == pytest.approx((0.126 + 2.325) ** 2)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("model score_val eval_metric fit_time stack_level fit_order", "predict_proba_oof"),
        ("number value duration params_C state", "score of each split: save them in the objective"),
    ],
)
def test_means_of_models_are_refused_with_a_way(columns, words):
    table = pd.DataFrame({name: [1, 2] for name in columns.split()})
    refuses(words, cvstats.read_log, table)


@pytest.mark.parametrize(
    ("name", "first"), [("Fold{1}.Rep{0}", 1), ("Repeat{0}/Fold{1}", 0), ("rep{0}.fold_{1}", 1)]
)
@pytest.mark.parametrize("road", ["object", "csv", "command", "predictions"])
def test_names_of_repeated_folds_are_repetitions_and_folds(name, first, road, tmp_path, capsys):
    at = np.arange(24)
    table = pd.DataFrame({
        "point": at % 8, "cv": [name.format(i // 8 + first, (i + i // 8) % 4 + first) for i in at],
        "loss": np.random.default_rng(0).gamma(1, 1, 24),
    })  # fmt: skip
    known = table.assign(repetition=at // 8 + first, fold=(at + at // 8) % 4 + first)
    expected = known.set_index(["repetition", "fold", "point"])["loss"]
    table.to_csv(tmp_path / "log.csv", index=False)
    if road == "command":
        assert cli.run(["interval", str(tmp_path / "log.csv"), "--fold", "cv"]) == 0
        estimate = f"{expected.cvci.interval()['estimate'].iloc[0]:.2f}"
        assert estimate in capsys.readouterr().out
        return
    if road == "predictions":
        table = table.assign(y_true=0.0, y_pred=table["loss"]).drop(columns="loss")
        log = cvstats.read_log(table, fold="cv", loss="absolute_error")
    else:
        log = cvstats.read_log(table if road == "object" else tmp_path / "log.csv", fold="cv")
    pd.testing.assert_series_equal(log, expected, check_names=False)
    one = cvstats.read_log(
        table[:8], fold="cv", loss="absolute_error" if "y_true" in table else None
    )
    assert one.index.names == ["fold", "point"]
    assert set(one.index.get_level_values("fold")) == set(table["cv"][:8])
