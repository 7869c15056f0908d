"""Metrics of labels from counts of batches: the same as from the log in memory."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from calls import refusal as words

import cvstats
from cvstats import LabelCounts, LogError
from cvstats.metrics import METRICS

HARD = [metric.name for metric in METRICS.values() if metric.reads == "labels"]
SOFT = [metric.name for metric in METRICS.values() if metric.reads != "labels"]


def frame(labels: int = 3, seed: int = 0, n: int = 240) -> pd.DataFrame:
    """Two repetitions of four folds, in a random order of rows; two models."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, labels, n)
    parts = []
    for repetition in range(2):
        guess = [np.where(rng.random(n) < q, y, rng.integers(0, labels, n)) for q in (0.6, 0.5)]
        parts.append(
            pd.DataFrame(
                {
                    "repetition": repetition, "fold": rng.permutation(n) % 4,
                    "point": np.arange(n), "y": y, "a": guess[0], "b": guess[1],
                    "p": rng.random(n) * 0.4 + 0.3 * (y > 0), "w": rng.gamma(2.0, size=n),
                    "ward": np.where(np.arange(n) % 2, "east", "west"),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=seed)


def counted(table: pd.DataFrame, prediction: Any, rows: int = 101, **options: Any) -> LabelCounts:
    """Count a table in batches that cut through every cell."""
    return sum(
        LabelCounts.of_predictions(table.iloc[at : at + rows], "y", prediction, **options)
        for at in range(0, len(table), rows)
    )


@cache
def counted_once(weight: str | None) -> tuple[pd.DataFrame, LabelCounts]:
    """A table of three labels, and its counts."""
    table = frame(n=120)
    return table, counted(table, ["a", "b"], labels=[0, 1, 2], weight=weight, pairs=True)


def assert_same(one: pd.DataFrame, two: pd.DataFrame) -> None:
    """The same numbers to 1e-12, the same cautions."""
    assert list(one.columns) == list(two.columns)
    assert one.index.equals(two.index)
    number = np.array([dtype.kind == "f" for dtype in one.dtypes])
    left, right = (table.loc[:, number].to_numpy() for table in (one, two))
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
    pd.testing.assert_frame_equal(one.loc[:, ~number], two.loc[:, ~number])


@pytest.mark.parametrize(("folds", "weight"), [("average", None), ("pool", "w")])
@pytest.mark.parametrize("loss", HARD)
def test_every_metric_of_labels_is_that_of_the_log(loss: str, folds: Any, weight: Any) -> None:
    options: dict[str, Any] = {} if (loss, weight) == ("accuracy", None) else {"folds": folds}
    if "average" in METRICS[loss].takes:
        options["average"] = "macro"
    if loss == "fbeta":
        options["beta"] = 2
    if loss == "kappa":
        options["weights"] = "quadratic"
    table, counts = counted_once(weight)
    log = cvstats.losses(table, "y", ["a", "b"], loss, weight=weight, **options)
    moments = counts.moments(loss, **options)
    for variance in ("all-pairs", "within-fold"):
        assert_same(log.cvci.wald(variance=variance), moments.wald(variance=variance))
    assert_same(log.cvci.compare(method="wald"), moments.compare(method="wald"))
    assert_same(log.cvci.moments(), moments.moments())
    of_losses = ("range", "made_of", "one_prediction")  # counts of rows, and what one changes
    facts = {name: fact for name, fact in log.attrs.items() if name not in of_losses}
    assert {name: moments.attrs[name] for name in facts} == facts
    score = cvstats.as_scores(moments.wald())
    assert score.attrs["score"] == METRICS[loss].words


@pytest.mark.parametrize(
    ("average", "loss"),
    [("binary", "precision"), ("macro", "f1"), ("weighted", "precision"), ("micro", "f1")],
)
def test_two_labels_and_each_average(loss: str, average: Any) -> None:
    table = frame(2, n=80)
    names = {0: "ill", 1: "well"}
    table[["y", "a"]] = table[["y", "a"]].replace(names).astype(str).replace({"0": "ill"})
    options = {"average": average, **({"positive": "ill"} if average == "binary" else {})}
    log = cvstats.losses(table, "y", "a", loss, **options)
    counts = counted(table, "a", labels=["ill", "well"])
    assert_same(log.cvci.wald(), counts.moments(loss, **options).wald())


@pytest.mark.parametrize(
    ("loss", "average"),
    [("f1", "macro"), ("f1", "weighted"), ("f1", "micro"), ("recall", None),
     ("balanced_accuracy", None), ("kappa", None)],
)  # fmt: skip
def test_probabilities_become_labels(loss: str, average: Any) -> None:
    options = {"average": average} if average else {}
    table = frame(2, n=80)
    log = cvstats.losses(table, "y", ["p"], loss, threshold=0.4, **options)
    labels = cvstats.losses(table.assign(p=table["p"].ge(0.4) * 1), "y", ["p"], loss, **options)
    assert_same(log.cvci.wald(), labels.cvci.wald())
    counts = counted(table, ["p"], threshold=0.4)
    assert_same(log.cvci.wald(), counts.moments(loss, **options).wald())
    other = table.assign(y=table["y"].map({0: "sun", 1: "rain"}))
    log = cvstats.losses(other, "y", ["p"], loss, threshold=0.4, positive="rain", **options)
    for labels in (["rain", "sun"], ["sun", "rain"]):
        counts = counted(other, ["p"], threshold=0.4, positive="rain", labels=labels)
        moments = counts.moments(loss, **options)
        assert_same(log.cvci.wald(), moments.wald())
        assert moments.attrs.get("positive") == log.attrs.get("positive")


def test_groups_and_clusters() -> None:
    table = frame()
    log = cvstats.losses(table, "y", ["a", "b"], "matthews", by="ward")
    counts = counted(table, ["a", "b"], labels=[0, 1, 2], by=["repetition", "fold", "ward"])
    found = counts.moments("matthews", by="ward")
    assert_same(log.cvci.wald(by="ward"), found.wald(by="ward"))
    with pytest.raises(LogError, match="the groups by 'ward' split the cells"):
        counts.moments("matthews").wald(by="ward")
    clusters = table.assign(source=table["point"] // 8, fold=table["point"] // 8 % 4)
    clusters = clusters.drop(columns="ward").query("repetition == 0")
    for folds in ("average", "pool"):
        log = cvstats.losses(clusters, "y", ["a"], "kappa", folds=folds)
        found = counted(clusters, ["a"], labels=[0, 1, 2]).moments("kappa", folds=folds)
        assert_same(log.cvci.clustered(), found.clustered())
    for weight in (None, "w"):  # limits of `interval` depend on how much one source can change
        log = cvstats.losses(clusters, "y", ["a", "b"], "kappa", weight=weight)
        found = counted(clusters, ["a", "b"], labels=[0, 1, 2], weight=weight, pairs=True)
        for ask in (cvstats.interval, cvstats.compare):
            assert_same(ask(log), ask(found.moments("kappa")))


def test_files_are_counted_batch_by_batch(tmp_path: Any) -> None:
    table = frame(2)
    file, text = tmp_path / "predictions.parquet", tmp_path / "predictions.csv"
    table.to_parquet(file)
    table.to_csv(text, index=False)
    expected = cvstats.losses(table, "y", ["a", "b"], "f1").cvci.compare()
    seen: list[int] = []
    options = {"truth": "y", "prediction": ["a", "b"], "pairs": True}
    counts = cvstats.scan_predictions(file, batch_size=70, progress=seen.append, **options)
    assert (sum(seen), len(seen)) == (480, 7)
    assert_same(expected, counts.moments("f1").compare())
    counts = sum(
        LabelCounts.of_predictions(part, **options) for part in pd.read_csv(text, chunksize=99)
    )
    assert_same(expected, counts.moments("f1").compare())
    renamed = table.rename(columns={"fold": "cv"}).assign(p=table["p"])
    renamed.to_parquet(file)
    counts = cvstats.scan_predictions(
        file, truth="y", prediction={"model": "p"}, threshold=0.4, fold="cv", weight="w"
    )
    log = cvstats.losses(table, "y", {"model": "p"}, "f1", threshold=0.4, weight="w")
    assert_same(log.cvci.wald(), counts.moments("f1").wald())


def test_counts_grow_with_cells_and_not_with_points() -> None:
    few, many = (counted(frame(n=n), ["a"], labels=[0, 1, 2]) for n in (120, 600))
    assert few.part.cells.mean.shape == many.part.cells.mean.shape == (8, 9)
    assert repr(many) == (
        "<LabelCounts of 1,200 evaluations in 8 cells by 'repetition', 'fold'; 1 model, 3 labels>"
    )
    pairs = counted(frame(), ["a", "b"], labels=[0, 1, 2], pairs=True)
    assert repr(pairs).endswith("2 models, 3 labels, with pairs>")


# --- refusals -------------------------------------------------------------------------------------


def test_metrics_that_do_not_stream_say_so() -> None:
    counts = counted(frame(2), ["a"])
    for loss in SOFT:
        said = words(counts.moments, loss)
        assert f"loss={loss!r} cannot be computed from counts of labels" in said
        assert "needs all predictions of a cell at once" in said
        assert f"cvstats.losses(…, loss={loss!r})" in said


def test_losses_of_points_add_up_by_themselves() -> None:
    counts = counted(frame(2), ["a"])
    assert "cvstats.Moments.of_log" in words(counts.moments, "zero_one")
    assert "Expected one of 'accuracy', 'precision'" in words(counts.moments, "roc")


def test_a_cell_without_a_value_is_named() -> None:
    table = frame(2).query("repetition == 0").drop(columns="repetition")
    table.loc[table["fold"] == 1, "y"] = 0
    counts = counted(table, ["a"])
    expected = words(cvstats.losses, table, "y", ["a"], "recall", folds="average")
    assert words(counts.moments, "recall", folds="average") == expected
    assert "recall of 'a' is not defined at fold=1" in expected
    table = table.assign(a=0)
    counts = counted(table, ["a"])
    said = words(counts.moments, "precision")
    assert said == words(cvstats.losses, table, "y", ["a"], "precision")
    log = cvstats.losses(table, "y", ["a"], "precision", zero_division=0)
    assert_same(log.cvci.wald(), counts.moments("precision", zero_division=0).wald())
    single = counted(table, "a", by="fold")
    assert "precision is not defined" in words(single.moments, "precision")


def test_cells_of_one_point_or_without_weight() -> None:
    loo = (
        frame(2)
        .query("repetition == 0")
        .drop(columns="repetition")
        .assign(fold=lambda t: t["point"])
    )
    assert "the cell has only one point" in words(counted(loo, "a").moments, "f1", folds="average")
    zero = frame(2).assign(w=0.0)
    said = words(counted(zero, "a", weight="w").moments, "f1", folds="average")
    assert "every weight is 0. Expected a value in every cell" in said
    one = counted(frame(2).assign(y=0), "a").moments
    assert words(one, "matthews", folds="average").endswith("Expected a value in every cell.")


VALUES = pd.Series([0, 1, 1], name="a")

REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"labels": [0]}, "does not name classes. Expected at least two"),
    ({"labels": [0, 0]}, "does not name classes"),
    ({"labels": 2}, "labels=2 is not a list"),
    ({"labels": [5, 6]}, "which is not among the labels"),
    ({"threshold": "half"}, "threshold='half' is not a number"),
    ({"threshold": 0.5, "labels": [0, 1, 2]}, "Count predicted labels"),
    ({"threshold": 0.5, "labels": ["a", "b"]}, "positive=None is not a label"),
    ({"threshold": 0.5, "positive": 3}, "positive=3 is not a label"),
    ({"positive": 1}, "counts.moments('f1', positive=…)"),
    ({"pairs": True}, "only one is counted"),
    ({"weight": "minus"}, "the weight in row 1 is -1.0. Expected finite nonnegative weights"),
    ({"weight": "endless"}, "the weight in row 0 is inf. Expected finite"),
    ({"weight": "mass"}, "no column 'mass'"),
    ({"by": "clinic"}, "no column 'clinic'"),
    ({"prediction": "c"}, "no column 'c'"),
    ({"prediction": VALUES}, "a Series is not the name of a column. Expected names"),
    ({"prediction": ["a", VALUES]}, "a Series is not the name of a column. Expected names"),
    ({"threshold": 0.5, "positive": VALUES}, "positive= is a Series. Expected one label"),
]


@pytest.mark.parametrize(("options", "what"), REQUESTS)
def test_what_cannot_be_counted(options: dict[str, Any], what: str) -> None:
    table = frame(2).assign(endless=np.inf)
    table["minus"] = np.where(np.arange(len(table)) > 0, -1.0, 1.0)
    asked = {"truth": "y", "prediction": "a", **options}
    assert what in words(LabelCounts.of_predictions, table, **asked)


def test_what_cannot_be_asked_of_counts() -> None:
    table = frame(2)
    counts = counted(table, ["p"], threshold=0.4)
    assert "positive= was already used when" in words(counts.moments, "f1", positive=1)
    assert "does not use beta=" in words(counts.moments, "kappa", beta=2)
    assert "by='ward' is not a level" in words(counts.moments, "f1", by="ward")
    three = counted(frame(3), ["a"], labels=[0, 1, 2])
    assert "how F1 averages over classes" in words(three.moments, "f1")


def test_batches_have_to_match() -> None:
    table = frame(2)
    one = LabelCounts.of_predictions(table.iloc[:99], "y", "a")
    other = LabelCounts.of_predictions(table.iloc[99:], "y", "a", weight="w")
    assert "counted with weight=None and 'w'" in words(lambda: one + other)
    assert "in more than one batch" in words(lambda: one + one)
    with pytest.raises(TypeError):
        one + 1
    with pytest.raises(TypeError):
        sum([one], start=2)


def test_only_frames_and_files_with_rows_are_counted(tmp_path: Any) -> None:
    assert "has no columns of predictions" in words(LabelCounts.of_predictions, [1, 2])
    file = tmp_path / "none.parquet"
    frame(2).iloc[:0].to_parquet(file)
    said = words(cvstats.scan_predictions, file, truth="y", prediction="a")
    assert "the files have no rows" in said


@pytest.mark.parametrize("low", [0, -1, False])
def test_one_is_positive_unless_told(low: Any) -> None:
    table = frame(2)
    told = cvstats.losses(table, "y", "a", "precision", positive=1)
    labels = table.assign(**{name: np.where(table[name] == 1, type(low)(1), low) for name in "ya"})
    assert_same(told.cvci.wald(), cvstats.losses(labels, "y", "a", "precision").cvci.wald())
    alone = labels.assign(y=low)
    assert (cvstats.losses(alone, "y", "a", "precision") == 1).all(axis=None)
    with pytest.raises(LogError, match="Specify which one is positive"):
        cvstats.losses(labels.replace({"y": {low: 3}, "a": {low: 3}}), "y", "a", "precision")
