"""What a log of a metric cannot answer is refused in words, and what is doubtful is labelled."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from calls import refusal as words
from together import together

import cvstats
from cvstats import LogError
from cvstats.intervals import list_methods


def frame(n: int = 60, folds: int = 3, seed: int = 0) -> pd.DataFrame:
    """One partition; ``y`` and ``label`` are 0 and 1, ``score`` a score, ``t`` a number."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) // folds % 2
    score = y + rng.normal(size=n)
    return pd.DataFrame(
        {
            "fold": np.arange(n) % folds, "point": np.arange(n), "y": y, "score": score,
            "label": (score > 0.5).astype(int), "t": y + rng.normal(size=n),
            "hospital": np.where(np.arange(n) // 2 % 2, "a", "b"), "w": rng.gamma(2, size=n),
        }
    )  # fmt: skip


def made(loss: str = "auc", **options: Any) -> Any:
    """A log of one metric for the frame above."""
    column = {"auc": "score", "f1": "label", "rmse": "t", "average_precision": "score"}[loss]
    return cvstats.losses(frame(), "y", [column], loss=loss, **options)


# --- methods --------------------------------------------------------------------------------------

NEVER = {
    "bootstrap_oob", "bootstrap_632", "case_bootstrap", "location_shifted", "two_stage", "mcnemar",
    "cochran_q",
}  # fmt: skip


def test_binned_calibration_errors_have_no_interval() -> None:
    def ece(truth: Any, prediction: Any, weight: Any) -> float:
        return float(abs(truth.mean() - prediction.mean()))

    for asked in ({"loss": "ece"}, {"metric": "ece"}, {"metric": ece}):
        said = words(cvstats.losses, frame(), "y", ["label"], **asked)
        assert "ece has no interval" in said
        assert "loss='brier'" in said
    columns = {"point": "point", "truth": "y", "prediction": "score"}
    assert "ECE has no interval" in words(cvstats.read_log, frame(), loss="ECE", **columns)
    pytest.importorskip("sklearn", reason="the extra sklearn is not installed")
    from sklearn.dummy import DummyClassifier

    asked = {"cv": 3, "loss": "ece", "progress": False}
    said = words(cvstats.evaluate, {"m": DummyClassifier()}, frame()[["t"]], frame()["y"], **asked)
    assert "ece has no interval" in said


def test_methods_for_losses_of_points_refuse_a_metric() -> None:
    table = cvstats.methods(made())
    refused = {m.name for m in list_methods() if m.takes_metrics is False}
    assert refused == NEVER
    for name in NEVER:
        assert not table.loc[name, "applies"]
        assert "the log was made from a metric" in table.loc[name, "why_not"]
    both = cvstats.losses(frame().assign(b=1 - frame()["label"]), "y", ["label", "b"], loss="f1")
    assert "has no losses of individual points" in words(both.cvci.mcnemar)
    assert "has no losses of individual points" in words(both.cvci.cochran_q)


OF_FOLDS = {
    "conservative_z", "corrected_t", "cv_t", "decompose", "five_by_two", "friedman",
    "heterogeneity", "nemenyi", "nested_cv", "out_of_source", "quadratic", "replace_one",
    "source_components", "source_estimators",
}  # fmt: skip


def test_every_method_takes_metrics_or_says_which() -> None:
    assert {m.name for m in list_methods() if m.takes_metrics == "averaged"} == OF_FOLDS


@pytest.mark.parametrize("method", ["corrected_t", "cv_t", "quadratic", "decompose"])
def test_methods_of_fold_means_take_averaged_metrics_only(method: str) -> None:
    said = words(getattr(cvstats, method), made(folds="pool"))
    assert "was pooled over folds" in said
    assert "folds='average'" in said
    getattr(cvstats, method)(made())


def test_intervals_for_proportions_refuse_a_metric() -> None:
    one = cvstats.losses(frame().drop(columns="fold"), "y", ["label"], loss="f1")
    for interval in ("wilson", "clopper-pearson"):
        assert "needs one 0/1 loss per point" in words(one.cvci.holdout, interval=interval)
    for interval in ("betting", "bernstein"):
        said = words(one.cvci.holdout, interval=interval, bounds=(0, 1))
        assert "this log was made from a metric" in said
    assert one.cvci.holdout().attrs["metric"] == "f1"


def test_skewness_corrected_limits_refuse_a_metric() -> None:
    one = cvstats.losses(frame().drop(columns="fold"), "y", ["label"], loss="f1")
    twice = pd.concat({0: one, 1: one}, names=["repetition"])
    twice.attrs = one.attrs
    for call in (made().cvci.wald, one.cvci.holdout, twice.cvci.holdout):
        assert "was made from a metric" in words(call, interval="hall")


def test_bootstrap_samples_have_no_cells() -> None:
    log = frame().drop(columns="fold").assign(repetition=1, count=0)
    assert "without the level 'count'" in words(cvstats.losses, log, "y", "score", "auc")


# --- degenerate cells -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "truth", "column", "why"),
    [
        ("auc", "y", "score", "the truth has only one class"),
        ("gini", "y", "score", "the truth has only one class"),
        ("somers_d", "y", "t", "no two points are comparable"),
        ("ordered_gini", "y", "t", "the truth is constant"),
        ("specificity", "y1", "label", "every point is of the positive class"),
        ("average_precision", "y", "score", "no point is of the positive class"),
        ("recall", "y", "label", "no point is of the positive class"),
        ("balanced_accuracy", "y", "label", "no point is of class 1"),
        ("g_mean", "y", "label", "no point is of class 1"),
        ("matthews", "y", "label", "only one true class"),
        ("r2", "y", "t", "the truth is constant"),
        ("pearson", "y", "t", "the truth is constant"),
        ("spearman", "y", "t", "the truth is constant"),
        ("kendall", "y", "t", "the truth is constant"),
        ("concordance", "y", "t", "no two points are comparable"),
    ],
)
def test_a_cell_without_a_value_is_named(loss: str, truth: str, column: str, why: str) -> None:
    one = frame()
    one.loc[one["fold"] == 1, "y"] = 0
    one["y1"] = 1 - one["y"]
    said = words(cvstats.losses, one, truth, column, loss, folds="average")
    assert f"of {column!r} is not defined at" in said
    assert "at fold=1: " in said
    assert why in said
    assert "stratified folds" in said
    assert "folds='pool'" in said
    cvstats.losses(one, truth, column, loss, folds="pool")
    one["y"], one["y1"] = 0, 1
    said = words(cvstats.losses, one, truth, column, loss, folds="average")
    assert said.endswith("Expected a value in every cell.")  # no other folds would help


def test_classes_of_a_threshold_are_named_in_words() -> None:
    one = frame().assign(y=0)
    said = words(cvstats.losses, one, "y", ["score"], "balanced_accuracy", threshold=0.5)
    assert "is not defined: no point is of the positive class." in said


def test_constant_predictions_are_named() -> None:
    one = frame().assign(same=1.0, zero=0)
    assert "prediction is constant" in words(cvstats.losses, one, "t", "same", "pearson")
    assert "one predicted class" in words(cvstats.losses, one, "y", "zero", "matthews")
    same = one.assign(y=0)
    assert "all of one class" in words(cvstats.losses, same, "y", "zero", "kappa", labels=[0, 1])
    assert "only one class" in words(cvstats.losses, same, "y", "t", "partial_auc", max_fpr=0.1)
    assert "is 0, where the geometric mean" in words(cvstats.losses, one, "y", "zero", "g_mean")
    assert "truth and prediction are the same constant" in words(
        cvstats.losses, one, "same", "same", "concordance_correlation"
    )
    assert "the mean of the absolute truth is 0" in words(cvstats.losses, one, "zero", "t", "wmape")


def test_zero_division_is_an_error_unless_it_has_a_value() -> None:
    one = frame().assign(zero=0)
    said = words(cvstats.losses, one, "y", "zero", "precision")
    assert "nothing is predicted as the positive class" in said
    assert "zero_division=0" in said
    log = cvstats.losses(one, "y", "zero", "precision", zero_division=1)
    assert (log == 0).all()
    assert "metric without variance" in log.cvci.wald()["caution"].item()
    macro = cvstats.losses(one, "y", "zero", "precision", average="macro", zero_division=0)
    assert 1 - macro.mean() == pytest.approx(0.25)  # (1/2 + 0) / 2


def test_a_fold_of_one_point_has_no_metric() -> None:
    one = frame().assign(fold=np.arange(60))
    assert ("the cell has only one point") in words(
        cvstats.losses, one, "y", "t", "rmse", folds="average"
    )


# --- doubts ---------------------------------------------------------------------------------------


def test_small_classes_and_biased_averages_are_labelled() -> None:
    few = cvstats.losses(frame(24).drop(columns="hospital"), "y", ["score"], loss="auc").cvci.wald()
    assert few["caution"].item() == "few points, few of a class"
    large = frame(600).drop(columns="hospital")
    many = cvstats.losses(large, "y", ["score"], loss="auc").cvci.wald()
    assert many["caution"].item() == ""
    for loss, column, truth in (("average_precision", "score", "y"), ("r2", "score", "t")):
        averaged = cvstats.losses(large, truth, [column], loss=loss, folds="average")
        assert averaged.cvci.wald()["caution"].item() == "biased by fold"
        pooled = cvstats.losses(large, truth, [column], loss=loss, folds="pool")
        assert pooled.cvci.wald()["caution"].item() == ""
        whole = frame(600).drop(columns="fold")  # one test set: nothing is averaged
        parts = cvstats.losses(whole, truth, [column], loss=loss, folds="average", by="hospital")
        assert not parts.cvci.holdout(by="hospital")["caution"].str.contains("biased").any()


BIASED = {
    "t": ("rmse", "pearson", "spearman", "concordance_correlation", "wmape", "ordered_gini"),
    "r": ("skill", "relative_error"),
    "y": ("precision", "npv", "f1", "fbeta", "jaccard", "g_mean", "kappa", "matthews"),
}
"""Metrics of numbers, of two losses and of labels whose mean over small folds is biased."""


@pytest.mark.parametrize(
    ("truth", "metric"), [(truth, metric) for truth in BIASED for metric in BIASED[truth]]
)
def test_an_average_over_many_small_folds_is_labelled(truth: str, metric: str) -> None:
    """Its bias is of order 1 / m with m points in a fold, its standard error 1 / sqrt(n)."""
    pytest.importorskip("dask")
    table = frame(400).drop(columns=["hospital"]).assign(score=lambda t: t["t"] + t["score"])
    options = {"y": {"labels": [0, 1]}, "r": {"reference": "t"}}.get(truth, {})
    if truth == "y":  # half of each fold is positive, and two of its predictions are wrong
        row = np.arange(400) // 40
        table = table.assign(y=row % 2, score=np.where(row < 2, 1 - row % 2, row % 2))
    else:
        table = table.assign(t=np.exp(table["t"]), score=np.exp(table["score"]), r=table["w"])
    table = table[[truth, "score"] + ["t"] * (truth == "r")]
    for folds, biased in ((40, True), (2, False)):
        table["fold"] = np.arange(400) % folds
        for how, labelled in (("average", biased), ("pool", False)):
            log = cvstats.losses(table, truth, ["score"], metric, folds=how, **options)
            array = table.reset_index(drop=True).rename_axis("row").to_xarray()
            array = array.assign_coords(fold=array["fold"])
            arrays = [
                cvstats.losses(one, truth, ["score"], metric, folds=how, **options)
                for one in (array, array.chunk())
            ]
            counted = ()
            if truth == "y":  # streamed
                counts = cvstats.LabelCounts.of_predictions(table, truth="y", prediction="score")
                counted = (counts.moments(metric, folds=how),)
            for one in (log, *arrays, cvstats.Moments.of_log(log), *counted):
                result = cvstats.wald(one)
                found = cvstats.cautions(result.compute() if one is arrays[1] else result)
                assert ("biased by fold" in str(found)) is labelled, (folds, how, type(one))


# --- requests -------------------------------------------------------------------------------------

REQUESTS = [
    ({"loss": "auc", "threshold": 0.5}, "AUC does not use threshold=", "'precision'"),
    ({"loss": "rmse", "positive": 1}, "RMSE does not use positive=", "'auc'"),
    ({"loss": "f1", "classes": [0, 1]}, "F1 does not use classes=", "'log_loss' or 'brier' or"),
    ({"loss": "zero_one", "classes": [0, 1]}, "does not use classes=", "or 'brier' or 'auc'"),
    ({"loss": ["f1", "auc"], "prediction": {"m": ["w", "w"]}, "classes": [0, 1]},
     "with the label of each for a loss of probabilities", "Compute f1 of other columns in"),
    ({"loss": "auc", "beta": 2}, "AUC does not use beta=", "only to loss='fbeta'"),
    ({"loss": "fbeta", "beta": -1, "prediction": "label"}, "beta=-1 is not a weight", ""),
    ({"loss": "fbeta", "beta": 0, "prediction": "label"}, "beta=0 is not a weight", ""),
    ({"loss": "f1", "zero_division": 2}, "Invalid zero_division=2", "0 or 1"),
    ({"loss": "auc", "ddof": 2}, "Invalid ddof=2", "0 or 1"),
    ({"loss": "auc", "folds": "mean"}, "Invalid folds='mean'", "'average'"),
    ({"loss": "auc", "shares": {}}, "shares= requires strata=", "strata="),
    ({"loss": "skill"}, "needs a reference", "reference='mean_model'"),
    ({"loss": "zero_one", "folds": "pool", "prediction": "label"}, "does not use folds=", "'f1'"),
    ({"loss": "f1"}, "look like probabilities (row 0: 0.12573", "threshold=0.5"),
    ({"loss": "f1", "threshold": "a"}, "threshold='a' is not a number", ""),
    ({"loss": "f1_macro", "prediction": "label", "positive": 1}, "average='macro' is over all", ""),
    ({"loss": "auc", "classes": [0, 1], "prediction": ["w", "w"], "positive": 1},
     "classes= and positive= were both given", ""),
    ({"loss": "auc", "by": "ward"}, "no column 'ward'", "Expected by= to be among"),
    ({"loss": "auc", "weight": "ward"}, "no column 'ward'", "Expected weight= to be among"),
    ({"loss": "f1_macro", "average": "micro"},
     "implies average='macro'", "loss='f1' with average="),
    ({"loss": "explained_variance"}, "Unknown loss", "'. Did you mean 'r2'? Expected one of"),
    ({"truth": ["y", "label"], "loss": "auc"}, "loss='auc' reads one", "average='micro'"),
    ({"truth": ["y"], "prediction": ["label"], "loss": "f1"},
     "average=None is not supported", "micro"),
    (
        {"truth": ["y", "label"], "prediction": ["label"], "loss": "f1", "average": "micro"},
        "has 1 columns of predictions", "one for each of ['y', 'label']",
    ),
    (
        {"truth": ["y"], "prediction": ["t"], "loss": "f1", "average": "micro"},
        "the prediction of a label is", "threshold=0.5",
    ),
    ({"loss": "average_precision", "class_shares": "log"}, "does not use class_shares=", "'auc'"),
    ({"loss": "auc", "classes": [0, 1], "prediction": ["w", "w"], "class_shares": "log"},
     "class_shares= applies to two classes", ""),
    ({"metric": "f1"}, "is not a function", "loss='f1'"),
    ({"loss": ["auc", "brier"], "metric": max}, "loss= and metric= were both given", "one of them"),
    ({"loss": "brier", "metric": max}, "loss= and metric= were both given", "one of them"),
    ({"metric": 3}, "metric=3 is not a function", "loss='auc'"),
    ({"loss": "f1", "prediction": "label", "labels": [0]},
     "does not name classes", "Expected at least two"),
    ({"loss": "kappa", "prediction": "label", "labels": [1, 2]},
     "the truth is 0 in row 0, which is not among the labels 1, 2", ""),
    ({"loss": "f1", "prediction": "label", "positive": 7}, "positive=7 is not a label", ""),
    ({"loss": "matthews", "prediction": "label", "positive": 1}, "treats all classes equally", ""),
    ({"loss": "f1", "truth": "hospital", "prediction": "hospital"}, "which one is positive", "'a'"),
    ({"loss": "f1", "prediction": "point"}, "how F1 averages over classes", "'macro'"),
    ({"loss": "auc", "weight": "negative"}, "point=1 is -1.0. Expected finite nonneg", ""),
    ({"loss": "auc", "weight": "endless"}, "point=0 is inf. Expected finite nonneg", ""),
    ({"loss": "auc", "weight": "zero"}, "every weight is 0", ""),
    ({"loss": "auc", "strata": "point"}, "a stratum has only one point", ""),
    ({"loss": "auc", "strata": "hospital", "shares": {"a": 1}}, "no share for the stratum", "'b'"),
    ({"loss": "auc", "strata": "hospital", "shares": {"a": 1, "b": 1, "c": 1}}, "no points", ""),
    *[({"loss": "auc", "strata": "hospital", "shares": shares}, said, "nonnegative number")
      for shares, said in [
          ({"a": -1, "b": 2}, "the share of the stratum 'a' is -1"),
          ({"a": 1, "b": np.nan}, "the share of the stratum 'b' is nan"),
          ({"a": "1", "b": 1}, "the share of the stratum 'a' is '1'"),
      ]],
    ({"loss": "auc", "strata": "hospital", "shares": {"a": 0, "b": 0}}, "every share", "positive"),
    ({"loss": "auc", "strata": "hospital", "shares": [0.2, 0.8]}, "is not a mapping", "'case'"),
    ({"loss": "auc", "strata": "gap"}, "there is no stratum at", ""),
    ({"loss": "auc", "strata": "rare", "shares": {"a": 0.8, "b": 0.2}, "folds": "average"},
     "a stratum with a share has no points", ""),
    *[({"loss": loss, "positive": np.array([1, 0])}, "positive= is an ndarray", "one label")
      for loss in ("auc", "f1", "log_loss", "precision")],
    *[({"loss": loss, "prediction": pd.Series(values)}, "a Series is not the name", "'w'")
      for loss in ("auc", "squared_error") for values in ([0, 1, 1], [0.1, 0.3])],
]  # fmt: skip


@together(REQUESTS)
def test_requests_that_make_no_sense(options: dict[str, Any], what: str, way: str) -> None:
    one = frame().assign(negative=-np.arange(60.0), zero=0.0, gap=[None] + ["s"] * 59)
    one["endless"] = np.inf
    one["rare"] = np.where((one["fold"] == 0) & (one["point"] < 30), "b", "a")
    said = words(cvstats.losses, one, **{"truth": "y", "prediction": "score", **options})
    assert what in said
    assert way in said


@pytest.mark.parametrize("threshold", [50, -0.1])
@pytest.mark.parametrize("form", ["frame", "array", "dask", "several"])
def test_a_threshold_of_probabilities_is_one(form: str, threshold: float) -> None:
    """A threshold of 50 made every prediction negative: two models with an F1 of 0."""
    one = frame().assign(p=np.linspace(0, 1, 60))
    options: dict[str, Any] = {"truth": "y", "prediction": "p", "loss": "f1"}
    if form == "several":
        options |= {"truth": ["y", "label"], "prediction": {"m": ["p", "p"]}, "average": "micro"}
    given: Any = one
    if form in ("array", "dask"):
        given = one.set_index("point")[["y", "p", "fold"]].to_xarray().set_coords("fold")
        given = given.chunk() if form == "dask" else given

    def ask() -> Any:
        found = cvstats.losses(given, threshold=threshold, **options)
        return found.compute() if form == "dask" else found

    assert f"threshold={threshold} is not a probability, but the predictions are" in words(ask)
    cvstats.losses(frame(), "y", "score", loss="f1", threshold=-0.1)  # of scores


def test_labels_that_are_no_classes() -> None:
    one = frame(3000).assign(id=np.arange(3000))
    assert "more than 1,000 labels" in words(cvstats.losses, one, "y", "id", "f1")
    both = frame().assign(p=0.5, q=0.5)
    said = words(cvstats.losses, both, "y", ["p", "q"], "auc", classes=[0, 0])
    assert "contains a label twice" in said
    mixed = frame().assign(y=[1, "x"] * 30, label=[1, "x"] * 30)
    log = cvstats.losses(mixed, "y", "label", "f1", average="macro")
    assert (log == 0).all()


def test_a_level_of_an_array_has_to_be_a_coordinate() -> None:
    data = frame().set_index("point").to_xarray().set_coords("fold")
    assert "by='w' is not a level" in words(cvstats.losses, data, "y", "score", "auc", by="w")


def test_a_weight_that_leaves_none_to_the_other_class():
    """A weight of 1e308 was a ZeroDivisionError."""
    frame = pd.DataFrame({"point": range(40), "y_true": np.arange(40) % 2, "a": np.arange(40.0)})
    with pytest.raises(LogError, match="the weights of the other class are too small to count"):
        cvstats.losses(
            frame.assign(w=np.where(frame["point"] == 3, 1e308, 1.0)), prediction=["a"],
            loss="auc", weight="w",
        )  # fmt: skip
