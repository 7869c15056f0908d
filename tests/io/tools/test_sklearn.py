"""scikit-learn: cross_validate, and cross_val_predict and cross_val_score with their cv."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import multi_index
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tool_logs import same_interval

import cvstats
from cvstats.errors import LogError

KEEP = {"return_estimator": True, "return_indices": True}


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    order = np.random.default_rng(1).permutation(len(y))
    return X.iloc[order], y.iloc[order]


@pytest.fixture(scope="module")
def classes():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:200]), np.where(y[:200] == 1, "benign", "malignant")


def direct(X, y, cv, estimator, names):
    """Fit and predict by hand; ``names`` makes the labels of a split of its number."""
    rows = []
    for number, (train, test) in enumerate(cv.split(X, y)):
        guess = estimator.fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
        for point, loss in zip(X.index[test], (y.iloc[test] - guess) ** 2, strict=True):
            rows.append({**names(number), "point": point, "loss": loss})
    table = pd.DataFrame(rows)
    return table.set_index([name for name in table if name != "loss"])["loss"]


@pytest.mark.parametrize("loss", ["accuracy", "log_loss", "auc", "f1_macro"])
@pytest.mark.parametrize("dtype", [float, "float32", int, bool])
def test_classes_may_be_numbers_of_any_type(classes, dtype, loss):
    """The classes 0.0 and 1.0 were no columns of probabilities."""
    X, y = classes[0], (classes[1] == "benign").astype(dtype)
    run = cross_validate(LogisticRegression(), X, y, cv=4, **KEEP)
    log = cvstats.read_log(run, X=X, y=y, loss=loss)
    one = cvstats.evaluate({"m": LogisticRegression()}, X, y, cv=4, loss=loss, progress=False)
    np.testing.assert_allclose(np.sort(log), np.sort(one["m"]), atol=1e-12)


def test_a_class_that_a_training_set_lacks(classes):
    X, y, cv = classes[0][:60], np.repeat(["a", "b", "c"], 20), KFold(3)
    run = cross_validate(LogisticRegression(), X, y, cv=cv, **KEEP)
    assert (cvstats.read_log(run, X=X, y=y, loss="accuracy") == 1).all()
    with pytest.raises(LogError, match="the estimators have different classes"):
        cvstats.read_log(run, X=X, y=y, loss="log_loss")


@pytest.mark.parametrize(
    ("cv", "names", "n_train"),
    [
        (KFold(10), lambda i: {"fold": i}, None),
        (KFold(13, shuffle=True, random_state=4), lambda i: {"fold": i}, 408),
        (
            RepeatedKFold(n_splits=5, n_repeats=3, random_state=2),
            lambda i: {"repetition": i // 5, "fold": i % 5},
            None,
        ),
    ],
)
def test_cross_validate(numbers, cv, names, n_train):
    X, y = numbers
    result = cross_validate(Ridge(), X, y, cv=cv, **KEEP)
    log = cvstats.read_log(result, X=X, y=y, loss="squared_error")
    assert log.attrs["format"] == "cross_validate"
    if n_train is not None:
        assert log.attrs["n_train"] == n_train
    same_interval(log, direct(X, y, cv, Ridge(), names))


def test_leave_one_out_and_groups(numbers):
    X, y = numbers[0].iloc[:30], numbers[1].iloc[:30]
    result = cross_validate(
        Ridge(), X, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error", **KEEP
    )
    log = cvstats.read_log(result, X=X, y=y, loss="squared_error")
    same_interval(log, direct(X, y, LeaveOneOut(), Ridge(), lambda i: {"fold": i}))
    groups = np.arange(30) % 6
    result = cross_validate(Ridge(), X, y, cv=GroupKFold(6), groups=groups, **KEEP)
    log = cvstats.read_log(result, X=X, y=y, groups=groups, loss="squared_error")
    assert log.index.names == ["fold", "source", "point"]
    assert (
        log.groupby("fold").apply(lambda f: f.index.get_level_values("source").nunique()).max() == 1
    )


@pytest.mark.parametrize("loss", ["log_loss", "brier", "zero_one"])
def test_probabilities(classes, loss):
    X, y = classes
    model = make_pipeline(StandardScaler(), LogisticRegression())
    cv = KFold(5, shuffle=True, random_state=1)
    log = cvstats.read_log(cross_validate(model, X, y, cv=cv, **KEEP), X=X, y=y, loss=loss)
    chances = cross_val_predict(model, X, y, cv=cv, method="predict_proba")
    for values in (chances, pd.DataFrame(chances, columns=model.fit(X, y).classes_)):
        found = cvstats.read_log(values, y=y, cv=cv, loss=loss, format="cross_val_predict")
        same_interval(found, log)
    hot = np.column_stack([y == "benign", y == "malignant"])
    by_hand = {
        "log_loss": -np.log(chances[hot]),
        "brier": (chances[:, 1] - hot[:, 1]) ** 2,
        "zero_one": (chances.argmax(axis=1) != hot.argmax(axis=1)).astype(float),
    }[loss]
    fold = np.empty(len(y), dtype=int)
    for number, (_, test) in enumerate(cv.split(X, y)):
        fold[test] = number
    same_interval(log, pd.Series(by_hand, index=multi_index(fold=fold, point=np.arange(len(y)))))


@pytest.mark.parametrize("coded", [False, True], ids=["names", "numbers"])
@pytest.mark.parametrize("loss", ["roc_auc", ["average_precision", "f1"]])
def test_a_model_without_probabilities_is_ranked_by_its_decision_function(classes, loss, coded):
    X, y = classes
    y = (y == "malignant").astype(int) if coded else y
    cv = StratifiedKFold(5, shuffle=True, random_state=1)
    result = cross_validate(LinearSVC(), X, y, cv=cv, **KEEP)
    log = cvstats.read_log(result, X=X, y=y, loss=loss, positive=None if coded else "malignant")
    name, *others = [loss] if isinstance(loss, str) else loss
    log = log.xs(name, level="metric") if others else log
    scorer = make_scorer(
        {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[name],
        response_method="decision_function",
    )
    expected = cross_val_score(LinearSVC(), X, y == np.unique(y)[-1], cv=cv, scoring=scorer)
    np.testing.assert_allclose(1 - log.groupby("fold").mean(), expected, atol=1e-12)


def test_the_hinge_loss_takes_the_decision_function(classes):
    X, y = classes
    y, cv = (y == "malignant").astype(int), StratifiedKFold(5)
    log = cvstats.read_log(cross_validate(LinearSVC(), X, y, cv=cv, **KEEP), X=X, y=y, loss="hinge")
    margin = (2 * y - 1) * cross_val_predict(LinearSVC(), X, y, cv=cv, method="decision_function")
    expected = pd.Series(np.maximum(0, 1 - margin)).loc[log.index.get_level_values("point")]
    np.testing.assert_allclose(log, expected, atol=1e-12)
    labels = cross_val_predict(LinearSVC(), X, y, cv=cv)
    with pytest.raises(LogError, match="loss='hinge' requires .* are labels"):
        cvstats.read_log(labels, y=y, cv=cv, loss="hinge")
    forests = cross_validate(DummyClassifier(), X, y, cv=cv, **KEEP)
    with pytest.raises(LogError, match="has no decision_function, which loss='hinge'"):
        cvstats.read_log(forests, X=X, y=y, loss="hinge")


def test_labels_are_no_probabilities(classes, tmp_path):
    X, y = classes
    y = (y == "malignant").astype(int)
    cv = StratifiedKFold(5)
    result = cross_validate(LinearSVC(), X, y, cv=cv, **KEEP)
    for loss, probable in (("brier", "brier"), (["roc_auc", "log_loss"], "log_loss")):
        words = f"a LinearSVC has no predict_proba, which loss='{probable}' requires"
        refuses(words, cvstats.read_log, result, X=X, y=y, loss=loss)
    votes = cross_validate(VotingClassifier([("svm", LinearSVC())]), X, y, cv=cv, **KEEP)
    with pytest.raises(LogError, match="a VotingClassifier has no predict_proba"):
        cvstats.read_log(votes, X=X, y=y, loss="roc_auc")
    labels = cross_val_predict(LinearSVC(), X, y, cv=cv)
    words = "loss='auc' requires probabilities, but the predictions.* are labels.*predict_proba"
    refuses(words, cvstats.read_log, labels, y=y, cv=cv, loss="roc_auc")
    table = pd.DataFrame({"point": range(len(y)), "y": y, "svm": labels, "rule": labels == 1})
    for models in ("svm", ["svm", "rule"]):
        refuses("are labels", cvstats.read_log, table, truth="y", prediction=models, loss="brier")
    table.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(LogError, match="the predictions of 'rule' are labels"):
        cvstats.scan_parquet(tmp_path / "log.parquet", truth="y", prediction="rule", loss="brier")
    table["svm"] = labels.astype(float)
    log = cvstats.read_log(table, truth="y", prediction="svm", loss="brier")
    assert log.mean() == pytest.approx((labels != y).mean())


def test_cross_val_predict_of_several_models(numbers):
    X, y = numbers
    cv = KFold(10, shuffle=True, random_state=0)
    values = {a: cross_val_predict(Ridge(a), X, y, cv=cv) for a in (0.1, 10.0)}
    log = cvstats.read_log(values, format="sklearn", y=y, cv=cv, loss="squared_error")
    assert list(log) == ["0.1", "10.0"]
    same_interval(log["10.0"], direct(X, y, cv, Ridge(10.0), lambda i: {"fold": i}))


def test_what_was_not_kept_is_asked_for(numbers):
    X, y = numbers
    bare = cross_validate(Ridge(), X, y, cv=3)
    with pytest.raises(LogError, match="return_estimator=True, return_indices=True"):
        cvstats.read_log(bare, X=X, y=y, loss="squared_error")
    full = cross_validate(Ridge(), X, y, cv=3, **KEEP)
    for data in ({}, {"X": X}, {"y": y}):
        with pytest.raises(LogError, match="does not store data and truth"):
            cvstats.read_log(full, **data, loss="squared_error")
    with pytest.raises(LogError, match="neither truth nor folds"):
        cvstats.read_log(np.zeros(3), y=[1, 2, 3], loss="squared_error")


def test_scores_of_splits_are_read_with_their_cv(classes):
    X, y = classes
    cv = KFold(5, shuffle=True, random_state=1)
    models = {"a": DummyClassifier(), "b": LogisticRegression()}
    results = {name: cross_validate(model, X, y, cv=cv) for name, model in models.items()}
    log = cvstats.read_log(results, cv=cv, metric="accuracy", X=X, y=y)
    assert (list(log), log.index.names, log.attrs["metric"]) == (["a", "b"], ["fold"], "accuracy")
    np.testing.assert_allclose(log["b"], 1 - results["b"]["test_score"])
    interval = log.cvci.interval()
    assert (interval.attrs["method"], interval.attrs["n_train"]) == ("corrected_t", 160)
    assert "5 test sets of 40 points" in " ".join(log.cvci.summary().text.split())
    several = cross_validate(models["b"], X, y, cv=cv, scoring=("accuracy", "neg_log_loss"))
    loss = cvstats.read_log(several, cv=cv, metric="neg_log_loss")
    np.testing.assert_allclose(loss.squeeze(), -several["test_neg_log_loss"])
    refuses("there are 2 scores: 'accuracy', 'neg_log_loss'", cvstats.read_log, several, cv=cv)
    refuses("has no test scores", cvstats.read_log, {"fit_time": [1.0]}, cv=cv)
    frame = pd.DataFrame(results["b"])
    pd.testing.assert_series_equal(
        cvstats.read_log(frame, cv=cv, metric="accuracy", X=X, y=y), log["b"].rename("loss")
    )
    folds = frame.rename_axis("fold")
    array = folds.to_xarray().to_array()
    for table in (frame, folds, folds.to_xarray(), folds.to_xarray().chunk(), array):
        refuses(r"result of cross_validate.*read_log\(frame, cv=cv", table.cvci.wald)


def test_scores_of_cross_val_score_are_those_of_cross_validate(classes):
    X, y = classes
    cv = StratifiedKFold(5, shuffle=True, random_state=1)
    models = {"a": DummyClassifier(), "b": LogisticRegression()}
    results = {name: cross_validate(model, X, y, cv=cv) for name, model in models.items()}
    scores = {name: cross_val_score(model, X, y, cv=cv) for name, model in models.items()}
    given = {"cv": cv, "metric": "accuracy", "X": X, "y": y}
    expected = cvstats.read_log(results, **given)
    lists = {name: found.tolist() for name, found in scores.items()}
    for same in (scores, lists, pd.DataFrame(scores)):
        log = cvstats.read_log(same, **given)
        pd.testing.assert_frame_equal(log, expected)
        assert log.attrs == expected.attrs | {
            "format": "cross_val_score", "read_from": type(same).__name__,
        }  # fmt: skip
    for bare in (scores["b"], lists["b"], pd.Series(scores["b"])):
        log = cvstats.read_log(bare, cv=cv)
        pd.testing.assert_series_equal(log, expected["b"].rename("loss"))
    assert str(log.cvci.summary()).startswith("The score is 0.")


def test_scores_of_other_splits_are_refused(classes):
    X, y = classes
    scores = np.full(10, 0.5)
    for cv, data in ((5, {}), (5, {"X": X}), (RepeatedKFold(n_splits=5, n_repeats=3), {})):
        with pytest.raises(LogError, match="splits, but there are scores of 10"):
            cvstats.read_log(scores, cv=cv, metric="accuracy", **data)
    assert len(cvstats.read_log(scores, cv=GroupKFold(10))) == 10
    with pytest.raises(LogError, match="StratifiedKFold splits by y. Pass y= too, or omit X="):
        cvstats.read_log(scores, cv=StratifiedKFold(10), X=X)
    with pytest.raises(LogError, match=r"have the shape \(5, 2\). Expected one score"):
        cvstats.read_log(scores.reshape(5, 2), cv=5)
    with pytest.raises(LogError, match=r"shape \(10,\) for 200 .* score: metric='accuracy'"):
        cvstats.read_log(scores, cv=5, y=y)
    log = cvstats.read_log(scores, cv=ShuffleSplit(10))
    refuses(r"read_log\(…, n_train=90, n_test=10\)", log.cvci.interval)
    sized = cvstats.read_log(scores, cv=ShuffleSplit(10), n_train=90, n_test=10)
    assert sized.cvci.interval().attrs["n_train"] == 90


def test_results_with_estimators_take_no_scores(classes):
    X, y = classes
    full = cross_validate(DummyClassifier(), X, y, cv=3, **KEEP)
    for option in ({"cv": KFold(3)}, {"metric": "accuracy"}, {"higher_is_better": True}):
        with pytest.raises(LogError, match=f"{next(iter(option))}= applies to scores of splits"):
            cvstats.read_log(full, X=X, y=y, **option)


def test_arrays_of_several_models_with_their_truth_and_cv(classes):
    X, y = classes
    cv = KFold(5, shuffle=True, random_state=1)
    model = LogisticRegression()
    labels = {"a": cross_val_predict(DummyClassifier(), X, y, cv=cv)}
    labels["b"] = cross_val_predict(model, X, y, cv=cv)
    log = cvstats.read_log(labels, y=y, cv=cv, loss="accuracy")
    expected = cvstats.read_log(labels, y=y, cv=cv, loss="accuracy", format="cross_val_predict")
    pd.testing.assert_frame_equal(log, expected)
    frame = pd.DataFrame(labels)
    for same in (frame, {name: frame[name] for name in frame}):
        read = cvstats.read_log(same, y=y, cv=cv, loss="accuracy")
        pd.testing.assert_frame_equal(read, expected)
    chances = {"b": cross_val_predict(model, X, y, cv=cv, method="predict_proba")}
    assert len(cvstats.read_log(chances, y=y, cv=cv, loss="log_loss")) == len(y)
    with pytest.raises(
        LogError, match=r"neither truth nor folds.* with the cv= of cross_val_predict"
    ):
        cvstats.read_log(labels, y=y, loss="accuracy")


def test_an_array_is_not_the_name_of_a_column(classes):
    X, y = classes
    with pytest.raises(LogError, match=r"truth= is an ndarray of 200 values.*pass y= and cv="):
        cvstats.read_log({"a": y}, truth=y, loss="accuracy")
    with pytest.raises(LogError, match=r"fold= is an Index of 200 values.*such as fold='fold'\.$"):
        cvstats.read_log({"a": y}, fold=pd.Index(y), loss="accuracy")
    with pytest.raises(LogError, match=r"use cvstats\.read_log\(predictions, y=y, cv=cv"):
        cvstats.losses({"a": y}, truth=y, loss="accuracy")


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (5, "Expected a splitter"),
        (KFold(5, shuffle=True), "differently each time"),
        (KFold(5, shuffle=True, random_state=np.random.RandomState(1)), "differently each time"),
        (ShuffleSplit(3, random_state=1), "two test sets|no test set"),
        ([([1], [0, 1]), ([0], [1])], "two test sets"),
        ([([1], [0])], "no test set"),
        ([([1], [99])], "has row 99"),
        ([([1], ["a"])], "not row numbers"),
    ],
)
def test_folds_that_cannot_be_found_again_are_refused(cv, words):
    y = np.arange(20.0)
    refuses(words, cvstats.read_log, y, y=y, cv=cv, loss="squared_error")


def test_other_data_than_were_cross_validated_are_refused(numbers):
    X, y = numbers
    result = cross_validate(Ridge(), X, y, cv=3, **KEEP)
    refuses("a split has row", cvstats.read_log, result, X=X[:100], y=y[:100], loss="squared_error")
    with pytest.raises(LogError, match="different indexes"):
        cvstats.read_log(result, X=X, y=y.reset_index(drop=True), loss="squared_error")
    twice = X.set_axis([0] * len(X))
    with pytest.raises(LogError, match="index of y has a duplicate"):
        cvstats.read_log(result, X=twice, y=np.asarray(y), loss="squared_error")


@pytest.mark.parametrize("words", [False, True])
def test_columns_of_models_are_no_class_probabilities(words):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    wrong = {name: rng.random(60) < share for name, share in (("a", 0.1), ("b", 0.3))}
    table = pd.DataFrame({name: np.where(flip, 1 - y, y) for name, flip in wrong.items()})
    if words:
        names = np.array(["no", "yes"])
        y, table = names[y], table.apply(lambda column: names[column])
    cv = KFold(5)
    log = cvstats.read_log(table, y=y, cv=cv, loss="zero_one", format="cross_val_predict")
    assert list(log) == ["a", "b"]
    assert log.mean().tolist() == [wrong["a"].mean(), wrong["b"].mean()]


class Report:
    """What a report of skore keeps, under its names."""

    estimator_name_ = "Ridge"

    def __init__(self, **kept):
        self.__dict__.update(kept)


def reports():
    """Reports of two models in the same folds."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    splits = tuple(KFold(4).split(X))
    made = {}
    for name, model in {"ridge": Ridge(0.1), "mean": DummyRegressor()}.items():
        parts = [
            Report(estimator_=clone(model).fit(X.iloc[train], y.iloc[train])) for train, _ in splits
        ]
        made[name] = Report(X=X, y=y, split_indices=splits, reports_=parts)
    return made, X, y


def test_reports_of_skore():
    made, X, y = reports()
    log = cvstats.read_log(made["ridge"], loss="squared_error")
    expected = cross_validate(
        Ridge(0.1), X, y, cv=KFold(4), return_estimator=True, return_indices=True
    )
    other = cvstats.read_log(expected, X=X, y=y, loss="squared_error")
    pd.testing.assert_series_equal(log, other, check_names=False)
    assert (log.name, log.attrs["format"]) == ("Ridge", "skore")
    assert log.attrs["n_train"] == other.attrs["n_train"]
    for several in (made, Report(reports_=made)):
        both = cvstats.read_log(several, loss=["rmse", "squared_error"])
        assert list(both) == ["ridge", "mean"]
        assert both.index.names == ["metric", "fold", "point"]


def test_a_report_of_skore_on_one_test_set():
    made, X, y = reports()
    fitted = made["ridge"].reports_[0].estimator_
    kept = {"estimator_": fitted, "X_test": X[:100], "y_test": y[:100], "y_train": None}
    log = cvstats.read_log(Report(**kept, X_train=X[100:]), loss="absolute_error")
    assert log.index.names == ["point"]
    assert log.attrs["n_train"] == 342
    np.testing.assert_allclose(log, np.abs(y[:100] - fitted.predict(X[:100])))
    assert "n_train" not in cvstats.read_log(Report(**kept, X_train=None), loss="rmse").attrs


def test_groups_of_a_splitter_are_asked_for(numbers):
    X, y = numbers
    groups = np.arange(len(y)) % 40
    cv = GroupKFold(5)
    predictions = {"ridge": cross_val_predict(Ridge(), X, y, groups=groups, cv=cv)}
    with pytest.raises(LogError, match=r"GroupKFold splits by groups.* pass groups=\."):
        cvstats.read_log(predictions, y=y, cv=cv, loss="squared_error")
    log = cvstats.read_log(predictions, y=y, cv=cv, groups=groups, loss="squared_error")
    assert log.index.get_level_values("source").nunique() == 40
