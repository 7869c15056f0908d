"""Limits of metrics with ends are the same in groups, folds, streams, arrays and clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats.core.cautions import Caution

COLUMNS = ["lower", "upper"]


def make_frame(n: int = 400, sources: bool = False) -> pd.DataFrame:
    """Five folds; every eighth point is positive."""
    rng = np.random.default_rng(0)
    truth = (np.arange(n) % 8 == 0).astype(int)
    frame = pd.DataFrame(
        {
            "point": range(n), "fold": np.arange(n) // 8 % 5, "half": np.arange(n) // 40 % 2,
            "y_true": truth, "a": truth + rng.normal(size=n) * 0.3,
            "b": truth + rng.normal(size=n) * 0.5,
        }
    )  # fmt: skip
    frame["label"] = (frame["a"] > 0.5).astype(int)
    return frame.assign(source=np.arange(n) // 10, fold=0) if sources else frame


def same(one: pd.DataFrame, two: pd.DataFrame) -> None:
    np.testing.assert_allclose(one[COLUMNS], two[COLUMNS], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("column", "loss"), [("a", "auc"), ("label", "balanced_accuracy")])
def test_groups_have_the_limits_of_their_own_log(column, loss):
    frame, options = make_frame(), {"prediction": [column], "loss": loss, "folds": "pool"}
    log = cvstats.losses(frame, by="half", **options)
    table = cvstats.interval(log, by="half")
    assert table.attrs["interval"] == "korn-graubard"
    for half, part in frame.groupby("half"):
        same(table.xs(half, level="half"), cvstats.interval(cvstats.losses(part, **options)))


@pytest.mark.parametrize(("column", "loss"), [("a", "auc"), ("label", "f1")])
def test_carried_cells_are_known_by_their_labels(column, loss):
    pytest.importorskip("dask")
    frame = make_frame()
    data = frame.set_index("point").to_xarray().set_coords(["fold", "half"])
    rng = np.random.default_rng(1)
    leads = xr.DataArray([10, 20, 30], dims="lead", coords={"lead": [10, 20, 30]})
    noise = xr.DataArray(rng.normal(size=(3, 400)) * 0.2, dims=("lead", "point"))
    data["a"] = data["a"] + noise + 0 * leads
    data["label"] = (data["a"] > 0.5).astype(int)
    log = cvstats.losses(data, prediction=[column], loss=loss)
    whole = cvstats.interval(log)
    assert whole.attrs["interval"] == "korn-graubard"
    for lead in (10, 30):
        own = cvstats.losses(data.sel(lead=lead), prediction=[column], loss=loss)
        expected = cvstats.interval(own)["lower"]
        np.testing.assert_allclose(whole["lower"].sel(lead=lead), expected, rtol=1e-10)
        alone = cvstats.interval(log.sel(lead=lead))["lower"]
        np.testing.assert_allclose(alone, expected, rtol=1e-10)
        lazy = cvstats.interval(log.sel(lead=lead).chunk())
        assert lazy.attrs["interval"] == "korn-graubard"
        np.testing.assert_allclose(lazy["lower"], expected, rtol=1e-10)
    turned = cvstats.interval(log.isel(lead=[2, 0]))["lower"]
    np.testing.assert_allclose(turned, whole["lower"].isel(lead=[2, 0]), rtol=1e-12)
    lazy = cvstats.interval(log.chunk({"lead": 1}))["lower"]
    np.testing.assert_allclose(lazy, whole["lower"], rtol=1e-12)


def test_a_difference_has_two_pseudo_errors():
    """Judge's card J4: 15 positives of 100, and the standard error that the losses have."""
    rng = np.random.default_rng(4)
    truth = (np.arange(100) < 15).astype(int)
    frame = pd.DataFrame({"point": range(100), "y_true": truth, "a": truth + rng.normal(size=100)})
    frame["b"] = frame["a"] + rng.normal(size=100) * 0.5
    log = cvstats.losses(frame, prediction=["a", "b"], loss="auc")
    row, plain = cvstats.compare(log).iloc[0], cvstats.compare(log, method="holdout").iloc[0]
    assert row["se"] == pytest.approx(plain["se"])
    half = 1.959963984540054 * np.sqrt(plain["se"] ** 2 + 2 / 30**2)
    assert row["upper"] - row["difference"] == pytest.approx(half, rel=1e-9)
    assert row["statistic"] == pytest.approx(row["difference"] / half * 1.959963984540054)
    two = log["a"].cvci.compare(log["b"]).iloc[0]
    np.testing.assert_allclose(two[COLUMNS].astype(float), row[COLUMNS].astype(float), rtol=1e-12)
    equal = cvstats.losses(frame.assign(b=frame["a"]), prediction=["a", "b"], loss="auc")
    limits = cvstats.compare(equal).iloc[0]
    assert limits["upper"] == pytest.approx(1.96 * np.sqrt(2) / 30, rel=1e-3)
    assert limits["p_value"] == 1
    assert limits["caution"] == ""


@pytest.mark.parametrize("loss", ["spearman", "kendall", "concordance", "somers_d", "gini"])
def test_ranks_at_their_end_have_a_width(loss):
    truth = (np.arange(30) < 12).astype(int) if loss == "gini" else np.arange(30.0)
    frame = pd.DataFrame({"point": range(30), "y_true": truth, "m": truth * 1.0})
    row = cvstats.interval(cvstats.losses(frame, prediction=["m"], loss=loss)).iloc[0]
    assert row["lower"] == pytest.approx(row["estimate"])
    assert row["upper"] > row["lower"] + 0.05


def test_partial_auc_ends_at_its_rate():
    frame = make_frame()
    ask = {"prediction": ["y_true"], "loss": "partial_auc", "folds": "pool"}
    row = cvstats.as_scores(cvstats.interval(cvstats.losses(frame, max_fpr=0.2, **ask))).iloc[0]
    assert row["estimate"] == pytest.approx(0.2)
    assert row["upper"] == pytest.approx(0.2)
    assert 0.15 < row["lower"] < 0.2
    few = cvstats.losses(frame, max_fpr=0.02, **ask)
    assert "few of a class" in cvstats.interval(few)["caution"].item()


@pytest.mark.parametrize("positives", [7, 60])
def test_lazy_scores_have_the_limits_of_scores_in_memory(positives):
    pytest.importorskip("dask", reason="the extra dask is not installed")
    rng = np.random.default_rng(3)
    truth = (np.arange(300) < positives) * 1
    data = xr.Dataset(
        {"y_true": ("point", truth), "a": (("point", "cell"), rng.normal(size=(300, 2)))},
        coords={"point": np.arange(300), "fold": ("point", np.zeros(300, dtype=int))},
    )
    data["a"] = data["a"] + 2 * data["y_true"]
    for loss in ("auc", "average_precision"):
        found = [
            cvstats.interval(cvstats.losses(each, prediction="a", loss=loss)).compute()
            for each in (data, data.chunk({"cell": 1}))
        ]
        for name in ("estimate", "lower", "upper", "caution"):
            np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-12, err_msg=name)
        few = found[1]["caution"].to_numpy() & int(Caution.FEW_OF_A_CLASS)
        assert (few != 0).all() == (positives == 7)


def test_a_perfect_auc_of_crossed_sources_has_limits():
    """Its interval was (1, 1): the variance of both ways is 0."""
    truth = np.tile(np.arange(40) % 4 == 0, 5).astype(int)
    frame = pd.DataFrame({
        "y_true": truth, "a": truth + 0.1 * np.sin(np.arange(200)),
        "source": np.repeat(range(5), 40), "point": np.tile(np.arange(40), 5),
    })  # fmt: skip
    log = cvstats.losses(frame, prediction=["a"], loss="auc", folds="pool")
    table = cvstats.interval(log)
    assert table.attrs["by"] == "source, point"
    assert table["lower"].iloc[0] == 0
    points = np.log(0.025) / np.log(1 - table["upper"].iloc[0])  # as of 0 errors in so many
    np.testing.assert_allclose(points, 10)
    other = cvstats.interval(log.rename(columns={"a": "z"}))  # the only model keeps its counts
    np.testing.assert_array_equal(other[["lower", "upper"]], table[["lower", "upper"]])
    far = cvstats.losses(frame.assign(a=truth + np.sin(7 * np.arange(200))), loss="auc",
                         prediction=["a"], folds="pool")  # fmt: skip
    rough = cvstats.interval(far).iloc[0]
    assert rough["df"] > 4  # the limits rest on those of five sources
    np.testing.assert_allclose(
        rough[["lower", "upper"]].astype(float), [0.118857, 0.254297], rtol=1e-5
    )
    assert "zero variance" not in table["caution"].iloc[0]


def test_limits_of_random_splits_end_at_the_bounds_of_proportions_and_metrics():
    """By default; `corrected_t` called by name, and losses without bounds, keep their limits."""
    pytest.importorskip("dask")
    rows = [(r, (7 * r + k) % 100) for r in range(10) for k in range(10)]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point"])
    wrong = pd.Series(np.arange(100) % 33 == 0, index, name="m").astype(float)
    for attrs in ({"loss": "zero_one"}, {"loss": "squared_error"}):
        wrong.attrs = {**attrs, "n_train": 90}
        plain = wrong.cvci.corrected_t()["lower"].item()
        assert plain < 0
        expected = 0.0 if attrs["loss"] == "zero_one" else plain
        array = wrong.to_frame("m").reset_index().set_index("point").to_xarray()
        array = array.set_coords("repetition")["m"].assign_attrs(wrong.attrs)
        forms = [wrong, wrong.to_frame(), cvstats.Moments.of_log(wrong)]
        for form in [*forms, array, array.expand_dims(cell=2).chunk()]:
            found = cvstats.interval(form)["lower"]
            np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)
        groups = wrong.to_frame().assign(half=0).set_index("half", append=True)
        groups.attrs = wrong.attrs
        np.testing.assert_allclose(cvstats.interval(groups, by="half")["lower"], expected)
    scores = pd.DataFrame({"fold": range(10), "m": [0.0] * 8 + [0.1, 0.3]}).set_index("fold")["m"]
    scores.attrs = {"holds": "scores", "loss": "1 - auc", "metric": "auc"}
    known = {"orientation": "1 - score", "range": (0.0, 1.0)}
    for facts in (scores.attrs | known, {"holds": "scores", "loss": "1 - accuracy"}):
        scores.attrs = facts
        assert scores.cvci.corrected_t()["lower"].item() < 0
        found = scores.cvci.interval()
        assert found["lower"].item() == 0
        assert "are cut there" in found.attrs["reason"]
        pair = scores.to_frame().assign(n=scores[::-1].to_numpy() + 0.1)
        pair.attrs = facts
        assert pair.cvci.winner(n_draws=200)["lower"].item() == 0
    for facts in ({"holds": "scores", "loss": "error"}, {"holds": "scores", "loss": "1 - score"}):
        scores.attrs = facts  # may be in percent; may be without bounds
        assert scores.cvci.interval()["lower"].item() < 0


@pytest.mark.parametrize(
    ("loss", "options", "caution"),
    [
        ("pearson", {}, "few of a class"), ("concordance_correlation", {}, ""),
        ("skill", {"reference": "base"}, "few of a class"),
        ("concordance", {"event": "event"}, "few of a class, depends on censoring"),
        ("uno", {"event": "event"}, "few of a class"),
    ],
)  # fmt: skip
def test_lazy_metrics_say_what_is_unknown(loss, options, caution):
    pytest.importorskip("dask", reason="the extra dask is not installed")
    rng = np.random.default_rng(3)
    data = xr.Dataset({"y_true": ("point", rng.normal(9, 1, 100))}, {"point": range(100)})
    data["y_pred"], data["event"] = data["y_true"] + rng.normal(size=100), data["point"] % 3 > 0
    data["base"] = data["y_true"] + rng.normal(size=100)
    lazy = cvstats.losses(data.chunk(), loss=loss, folds="pool", **options)
    assert cvstats.cautions(lazy.cvci.interval().compute()).item() == caution
