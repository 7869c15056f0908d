"""GridSearchCV and RandomizedSearchCV: the scores of candidates on splits."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.experimental import enable_halving_search_cv
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.tree import DecisionTreeClassifier

import cvstats
from cvstats import LogError

assert enable_halving_search_cv is not None  # imported for what it makes importable
X, Y = load_diabetes(return_X_y=True)
CANCER = [part[:300] for part in load_breast_cancer(return_X_y=True)]
GRID = {"alpha": [0.1, 1.0], "fit_intercept": [True]}


def searched(cv=5, **options):
    return GridSearchCV(Ridge(), GRID, cv=cv, **options).fit(X, Y)


def test_candidates_are_models_named_by_what_differs():
    search = searched(RepeatedKFold(n_splits=5, n_repeats=2, random_state=0))
    log = cvstats.read_log(search, X=X, y=Y)
    assert list(log) == ["alpha=0.1", "alpha=1"]
    assert log.index.names == ["repetition", "fold"]
    assert log.groupby(level="repetition").size().tolist() == [5, 5]
    for at, name in enumerate(log):
        scores = [search.cv_results_[f"split{k}_test_score"][at] for k in range(10)]
        np.testing.assert_allclose(-log[name], scores)
    assert log.attrs["holds"] == "scores"
    assert set(log.attrs["n_train"]) == {353, 354}
    assert log.attrs["n_test"] == 88.4
    result = log.cvci.interval()
    assert result.attrs["method"] == "corrected_t"
    shown = cvstats.as_scores(result)
    assert shown.attrs["score"] == "R2"
    assert log.attrs["range"] == (-np.inf, 1.0)
    np.testing.assert_allclose(shown["estimate"], search.cv_results_["mean_test_score"])
    # By hand: Nadeau and Bengio over ten splits that train on four fifths.
    one = log["alpha=1"]
    ratio = np.mean(88.4 / np.array(log.attrs["n_train"]))
    np.testing.assert_allclose(
        result.loc["alpha=1", "se"] ** 2, (1 / 10 + ratio) * one.var(), rtol=1e-9
    )


@pytest.mark.parametrize("known", [{}, {"y": Y}, {"X": X}])
@pytest.mark.parametrize(
    ("cv", "levels"),
    [
        (4, ["fold"]),
        (KFold(3), ["fold"]),
        (ShuffleSplit(6, test_size=0.1, random_state=0), ["repetition"]),
        (TimeSeriesSplit(4), ["repetition"]),
        (RepeatedKFold(n_splits=3, n_repeats=2, random_state=1), ["repetition", "fold"]),
    ],
)
def test_the_splitter_gives_the_levels(cv, levels, known):
    search = searched(cv)
    log = cvstats.read_log(search, **known)
    assert list(log.index.names) == levels
    if len(levels) == 2:
        assert log.index.tolist() == [(r, fold) for r in (1, 2) for fold in (1, 2, 3)]
    assert ("n_train" in log.attrs) is bool(known)
    bare = cvstats.read_log(search.cv_results_, cv=cv, higher_is_better=False, **known)
    np.testing.assert_allclose(bare, -log)  # the scores themselves
    assert bare.index.equals(log.index)


def test_splits_that_were_passed_as_a_list_or_by_groups():
    groups = np.arange(len(Y)) % 12
    by_group = GridSearchCV(Ridge(), GRID, cv=GroupKFold(4)).fit(X, Y, groups=groups)
    log = cvstats.read_log(by_group, y=Y, groups=groups)
    assert list(log.index.names) == ["fold"]
    splits = list(KFold(4).split(X))
    listed = cvstats.read_log(searched(splits), y=Y)
    np.testing.assert_allclose(listed, cvstats.read_log(searched(4)))


@pytest.mark.parametrize("sign", [-1, 1])  # as of a scorer, and as of a metric
@pytest.mark.parametrize("metric", ["rmse", "mse", "mae", "neg_root_mean_squared_error"])
def test_errors_are_read_as_errors(sign, metric):
    errors = {"good": np.array([3.0, 4.0, 5.0, 4.0]), "bad": np.array([6.0, 5.0, 7.0, 8.0])}
    sign = -1 if metric.startswith("neg_") else sign
    log = cvstats.read_log(
        {name: sign * values for name, values in errors.items()}, cv=KFold(4), X=X, metric=metric
    )
    np.testing.assert_array_equal(log, pd.DataFrame(errors))
    found = log.cvci.interval()
    assert ((found["lower"] < found["estimate"]) & (found["estimate"] < found["upper"])).all()
    words = str(log.cvci.summary())
    assert (
        "good has the lowest" in words or "good has a lower" in words or "good is better" in words
    )
    assert "mean root" not in words


def test_percentages_are_not_shares():
    with pytest.raises(LogError, match="'accuracy' cannot be 81.2. .*between 0 and 1. Divide"):
        cvstats.read_log(np.array([81.2, 79.0, 83.0]), cv=KFold(3), metric="accuracy")


def test_the_direction_follows_the_score():
    two = searched(scoring=["neg_mean_squared_error", "r2"], refit=False)
    mse = cvstats.read_log(two, metric="neg_mean_squared_error")
    assert mse.attrs["loss"] == "mean_squared_error"
    assert (mse > 1000).all(axis=None)
    assert "orientation" not in mse.attrs
    assert cvstats.read_log(two, loss="r2").attrs["metric"] == "r2"
    refuses("2 scores: .*metric='neg_mean_squared_error'", cvstats.read_log, two)
    refuses("Unknown score 'mae'", cvstats.read_log, two, metric="mae")
    with pytest.raises(LogError, match="stores no predictions.*cvstats.evaluate"):
        cvstats.read_log(searched(), loss="squared_error")
    classes = RandomizedSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, n_iter=2, cv=3, random_state=0
    ).fit(*CANCER)
    assert cvstats.read_log(classes).attrs["loss"] == "1 - accuracy"
    auc = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, scoring="roc_auc", cv=3)
    assert cvstats.read_log(auc.fit(*CANCER)).attrs["metric"] == "auc"
    mean = GridSearchCV(Ridge(), GRID, cv=3, scoring=lambda model, x, y: 3 + model.score(x, y))
    other = cvstats.read_log(mean.fit(X, Y))
    assert other.attrs["orientation"] == "-score"
    assert other.attrs["loss"] == "-score"
    worse = cvstats.read_log(mean, higher_is_better=False)
    np.testing.assert_allclose(worse, -other)
    share = GridSearchCV(Ridge(), GRID, cv=3, scoring=lambda model, x, y: 0.25)
    assert (cvstats.read_log(share.fit(X, Y)) == 0.75).all(axis=None)


def test_the_results_alone_need_their_splitter():
    results = searched().cv_results_
    refuses("does not record how the data were split.*cv=5", cvstats.read_log, results)
    log = cvstats.read_log(results, cv=5)
    assert log.attrs["loss"] == "1 - score"
    refuses("cv has 4 splits, but there are scores of 5", cvstats.read_log, results, cv=4, y=Y)
    table = cvstats.read_log({**results}, cv=5, format="cv_results_")
    pd.testing.assert_frame_equal(table, log)
    with pytest.raises(LogError, match="is not a fitted search"):
        cvstats.read_log(GridSearchCV(Ridge(), GRID), format="search")
    with pytest.raises(LogError, match="a GridSearchCV is not a fitted search"):
        cvstats.read_log(GridSearchCV(Ridge(), GRID), X=X, y=Y)


@pytest.mark.filterwarnings("ignore")
def test_candidates_that_failed_are_named_and_left_out():
    depth = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [-3, 2, 3]}, cv=3)
    depth.fit(*CANCER)
    with pytest.warns(UserWarning, match="all fits failed, for 'max_depth=-3'"):
        log = cvstats.read_log(depth)
    assert list(log) == ["max_depth=2", "max_depth=3"]
    results = dict(depth.cv_results_)
    for at in range(3):
        results[f"split{at}_test_score"] = np.full(3, np.nan)
    refuses("no candidate has a score", cvstats.read_log, results, cv=3)


def test_names_of_candidates_are_different():
    results = dict(searched().cv_results_)
    results["params"] = [{"model": Ridge()}, {"model": Ridge()}]
    assert list(cvstats.read_log(results, cv=5)) == ["candidate (1)", "candidate (2)"]
    results["params"] = [{"alpha": 0.123456789, "l1": 1}, {"alpha": 2.0}]
    assert list(cvstats.read_log(results, cv=5)) == ["alpha=0.123457, l1=1", "alpha=2"]


def test_a_table_of_results_is_read_like_the_search(tmp_path):
    search = searched(scoring="neg_mean_squared_error")
    log = cvstats.read_log(search)
    table = pd.DataFrame(search.cv_results_)
    name = "neg_mean_squared_error"
    given_forms = [table, tmp_path / "results.csv", tmp_path / "indexed.csv"]
    table.to_csv(given_forms[1], index=False)
    table.to_csv(given_forms[2])
    for given in given_forms:
        read = cvstats.read_log(given, cv=5, metric=name)
        pd.testing.assert_frame_equal(read, log, rtol=1e-12)
        assert read.attrs["loss"] == "mean_squared_error"
        refuses("does not record how the data were split.*cv=5", cvstats.read_log, given)


def test_of_a_halving_search_the_last_round_is_read_and_each_can_be():
    search = HalvingGridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1.0, 10.0]}, cv=3, random_state=0)
    table = pd.DataFrame(search.fit(X, Y).cv_results_)
    for _, rows in table.groupby("iter"):
        log = cvstats.read_log(rows, cv=3)
        assert log.ndim == 1 or list(log) == [f"alpha={alpha:.6g}" for alpha in rows["param_alpha"]]
        assert log.ndim == 1 + (len(rows) > 1)
    words = r"only the last of . rounds.* For another round, pass its rows.*\['iter'\] == 0"
    with pytest.warns(UserWarning, match=words):
        last = cvstats.read_log(search)
    assert last.ndim == 1 or last.shape[1] == len(rows)
    if last.ndim == 1:  # the only one left keeps its name
        assert len(rows) == 1
        assert str(last.name).startswith("alpha=")
