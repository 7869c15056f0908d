"""Results turned into scores: in their own direction, and by their own names."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats import LogError
from cvstats.log.metadata import is_below_chance


def frame(n: int = 120) -> pd.DataFrame:
    """One partition of six folds, and two models."""
    rng = np.random.default_rng(0)
    y = np.arange(n) // 6 % 2
    scores = y + rng.normal(size=(2, n))
    columns = {"y": y, "a": scores[0], "b": scores[1], "p": 1 / (1 + np.exp(-scores[0]))}
    return pd.DataFrame({"fold": np.arange(n) % 6, "point": np.arange(n), **columns})


def arrays() -> xr.Dataset:
    """The same over the dimension point, the fold a coordinate."""
    return frame().set_index("point").to_xarray().set_coords("fold")


def made(loss: str = "auc", **options: Any) -> pd.DataFrame:
    """A log of one metric of both models."""
    return cvstats.losses(frame(), "y", ["a", "b"], loss, **options)


@pytest.mark.parametrize("container", [frame, arrays])
def test_estimates_and_limits_change_sides(container: Any) -> None:
    log = cvstats.losses(container(), "y", ["a", "b"], "auc")
    loss, score = log.cvci.wald(), cvstats.as_scores(log.cvci.wald())
    for mine, other in (("estimate", "estimate"), ("lower", "upper"), ("upper", "lower")):
        np.testing.assert_allclose(score[mine], 1 - loss[other])
    assert score.attrs["score"] == "AUC"
    r2 = cvstats.losses(container(), "y", ["a"], "r2", folds="pool").cvci.wald()
    np.testing.assert_allclose(cvstats.as_scores(r2)["lower"], -r2["upper"])
    rmse = cvstats.losses(container(), "y", ["a"], "rmse").cvci.wald()
    np.testing.assert_allclose(cvstats.as_scores(rmse)["lower"], rmse["lower"])
    assert cvstats.as_scores(rmse).attrs["score"] == "RMSE"


@pytest.mark.parametrize("container", [frame, arrays])
def test_differences_change_their_sign(container: Any) -> None:
    log = cvstats.losses(container(), "y", ["a", "b"], "auc")
    pair = log.cvci.compare(alternative="less")
    turned = cvstats.as_scores(pair)
    for mine, other in (
        ("difference", "difference"), ("lower", "upper"), ("upper", "lower"),
        ("statistic", "statistic"),
    ):  # fmt: skip
        np.testing.assert_allclose(turned[mine], -pair[other])
    np.testing.assert_allclose(turned["p_value"], pair["p_value"])
    assert turned.attrs["alternative"] == "greater"
    own = cvstats.as_scores(log.cvci.difference().cvci.wald())
    np.testing.assert_allclose(own["estimate"], turned["difference"])


def test_statistics_without_a_sign_keep_theirs() -> None:
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_product(
        [range(5), range(2), range(12)], names=["repetition", "fold", "source"]
    )
    point = index.get_level_values("fold") * 12 + index.get_level_values("source")
    table = pd.DataFrame({"y": point % 2}, index=index).set_index(point, append=True)
    table.index.names = [*index.names, "point"]
    for name in "abc":
        table[name] = np.where(rng.random(len(table)) < 0.3, 1 - table["y"], table["y"])
    log = cvstats.losses(table, "y", list("abc"), "accuracy")
    one, sources = log.xs(0, level="repetition"), log.loc[0].droplevel("fold")
    for result in (
        log.cvci.five_by_two(test="f"),
        log.cvci.compare(method="five_by_two", options={"test": "f"}),
        one.cvci.mcnemar(), one.cvci.cochran_q(), sources.cvci.friedman(),
        sources.cvci.wild_cluster(),
    ):  # fmt: skip
        turned = cvstats.as_scores(result)
        assert (turned["statistic"] >= 0).all()
        np.testing.assert_array_equal(turned["statistic"], result["statistic"])


def test_a_margin_changes_sides() -> None:
    found = made().cvci.equivalence(margin=(-0.3, 0.1))
    turned = cvstats.as_scores(found)
    assert (turned.attrs["margin_low"], turned.attrs["margin_high"]) == (-0.1, 0.3)
    np.testing.assert_allclose(turned["lower"], -found["upper"])
    assert (turned["equivalent"] == found["equivalent"]).all()
    rope = made().cvci.rope(margin=0.02)
    turned = cvstats.as_scores(rope)
    np.testing.assert_allclose(turned["difference"], -rope["difference"])
    assert (turned["p_better"] == rope["p_better"]).all()


WANTED = ["auc", "matthews", "log_loss"]


@pytest.mark.parametrize("container", [frame, arrays])
def test_each_of_several_metrics_has_its_own_direction(container: Any) -> None:
    data = container()
    log = cvstats.losses(data, "y", ["p"], WANTED, threshold=0.5, folds="average")
    found = log.cvci.wald() if container is arrays else log.cvci.wald(by="metric")
    turned = cvstats.as_scores(found)
    of = (lambda t, m: t.sel(metric=m)) if container is arrays else (lambda t, m: t.loc[m])
    for name in ("auc", "matthews"):
        own = {"threshold": 0.5} if name == "matthews" else {}
        one = cvstats.losses(data, "y", ["p"], name, folds="average", **own).cvci.wald()
        for column in ("estimate", "lower", "upper"):
            expected = np.ravel(cvstats.as_scores(one)[column])
            np.testing.assert_allclose(np.ravel(of(turned, name)[column]), expected, rtol=1e-12)
    for column in ("estimate", "lower", "upper"):
        np.testing.assert_array_equal(of(turned, "log_loss")[column], of(found, "log_loss")[column])
    named = turned.attrs["score"]
    named = json.loads(named) if container is arrays else named
    assert named == {"auc": "AUC", "matthews": "Matthews correlation", "log_loss": "log_loss"}
    if container is frame:
        assert turned.index.equals(found.index)
    else:
        one = cvstats.as_scores(log.sel(metric="auc").cvci.wald())
        np.testing.assert_allclose(one["estimate"], of(turned, "auc")["estimate"])


def test_metrics_that_no_level_tells_apart_cannot_be_turned() -> None:
    log = cvstats.losses(frame(), "y", ["p"], ["auc", "brier"])
    one = log.xs("brier", level="metric").cvci.wald()
    with pytest.raises(LogError, match="mixes several metrics.*by='metric'.*drop_level=False"):
        cvstats.as_scores(one)
    assert "auc" not in f"{one!r} {cvstats.to_markdown(one)} {cvstats.to_apa(one)}"
    assert "mean loss (95% CI)" in cvstats.to_markdown(one)
    words = log.xs("auc", level="metric").cvci.summary()
    assert "The mean loss of p is" in words.text
    assert words.cautions["metric not named"].startswith(
        "This is part of a log of several metrics (auc and brier), but no label shows which one."
    )
    assert words.advice["metric not named"] == (
        "Keep the level: log.xs('auc', level='metric', drop_level=False)."
    )
    array = cvstats.losses(arrays(), "y", ["p"], ["auc", "brier"]).sel(metric="auc", drop=True)
    advice = array.cvci.summary().advice["metric not named"]
    assert advice == "Keep the level: log.sel(metric='auc')."


@pytest.mark.parametrize("container", [frame, arrays])
def test_one_of_several_metrics_keeps_its_name_and_direction(container: Any) -> None:
    data = container()
    several = cvstats.losses(data, "y", ["p"], ["auc", "brier"])
    for name in ("auc", "brier"):
        alone = cvstats.losses(data, "y", ["p"], name)
        if container is frame:
            one = several.xs(name, level="metric", drop_level=False)
        else:
            one = several.sel(metric=name)
        assert one.cvci.summary().text == alone.cvci.summary().text
        assert not one.cvci.summary().cautions.keys() - alone.cvci.summary().cautions.keys()
        found, expected = one.cvci.interval(), alone.cvci.interval()
        for fact in ("metric", "orientation"):
            assert found.attrs.get(fact) == expected.attrs.get(fact), fact


@pytest.mark.parametrize("other", [3, "auc", None, [1.0]])
def test_what_is_not_a_result_cannot_be_turned(other: Any) -> None:
    with pytest.raises(LogError, match=" is not a result. Expected the result of an interval"):
        cvstats.as_scores(other)


def test_a_log_is_not_a_result() -> None:
    for log in (made(), made()["a"], cvstats.losses(frame(), "y", ["y"], "accuracy")):
        with pytest.raises(LogError, match="a log is not a result"):
            cvstats.as_scores(log)


def test_rounding_is_not_below_chance():
    losses = np.array([0.5, np.nextafter(0.5, 1), 0.51])
    assert is_below_chance({"metric": "auc"}, losses).tolist() == [False, False, True]


IN_FOLDS = "the models trained in this cross-validation"


@pytest.mark.parametrize(
    ("loss", "method", "target", "of_score"),
    [
        ("auc", "wald", f"average 1 - auc of {IN_FOLDS}", f"average AUC of {IN_FOLDS}"),
        ("rmse", "interval", f"average rmse of {IN_FOLDS}", f"average rmse of {IN_FOLDS}"),
        (
            "auc", "corrected_t", "expected 1 - auc of models trained on sets of this size",
            "expected AUC of models trained on sets of this size",
        ),
        (
            "auc", "compare", f"difference of two models in the average 1 - auc of {IN_FOLDS}",
            f"difference of two models in the average AUC of {IN_FOLDS}",
        ),
        (
            "auc", "best_set",
            "the models with the smallest average 1 - auc of those trained in this "
            "cross-validation",
            "the models with the largest average AUC of those trained in this cross-validation",
        ),
        (["auc", "rmse"], "wald", f"average loss of {IN_FOLDS}", None),
        ("squared_error", "wald", f"average test error of {IN_FOLDS}", None),
        (
            "accuracy", "wald", f"average test error of {IN_FOLDS}",
            f"average accuracy of {IN_FOLDS}",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("container", [frame, arrays])
def test_targets_name_the_metric(container, loss, method, target, of_score):
    log = cvstats.losses(container().round(), "y", ["a", "b"], loss)
    options = {"by": "metric"} if isinstance(loss, list) and container is frame else {}
    result = getattr(log.cvci, method)(**options)
    assert result.attrs["target"] == target
    if of_score is not None:
        assert cvstats.as_scores(result).attrs["target"] == of_score
