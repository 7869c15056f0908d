"""Limits of metrics with ends are the same in groups, folds, streams, arrays and clusters."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

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
    """The standard error is that of the losses."""
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
    frame = frame.assign(b=np.sin(7 * np.arange(200)))
    for models in (["a"], ["a", "b"]):  # a renamed model keeps the counts that all models have
        log = cvstats.losses(frame, prediction=models, loss="auc", folds="pool")
        other = cvstats.interval(log.rename(columns={"a": "z"})).loc[["z"]]
        np.testing.assert_array_equal(other[["lower", "upper"]], table[["lower", "upper"]])
    far = cvstats.losses(frame.assign(a=truth + np.sin(7 * np.arange(200))), loss="auc",
                         prediction=["a"], folds="pool")  # fmt: skip
    rough = cvstats.interval(far).iloc[0]
    assert rough["df"] > 4  # the limits rest on those of five sources
    t, v, change = rough["estimate"], rough["se"] ** 2, 1 / 10  # half of one of five sources
    errors = 0.1 * (v / (v + change * t**2)) ** 2
    points = (t * (1 - t) + errors * change) / (v + errors * change**2)
    points *= (stats.t.ppf(0.975, 199) / stats.t.ppf(0.975, 4)) ** 2
    expected = stats.beta.ppf([0.025, 0.975], [t * points, t * points + 1],
                              [points - t * points + 1, points - t * points])  # fmt: skip
    np.testing.assert_allclose(rough[["lower", "upper"]].astype(float), expected, rtol=1e-9)
    assert "zero variance" not in table["caution"].iloc[0]


@pytest.mark.parametrize("loss", ["matthews", "f1"])
def test_metrics_alike_in_all_sources_have_limits_at_an_end_only(loss):
    """No variance says nothing inside of the range, which begins at -1 or at 0."""
    truth = np.tile([0, 1], 20)
    for errors, known in ((6, False), (0, True)):
        guess = np.where(np.arange(40) < errors, 1 - truth, truth)
        part = pd.DataFrame({"y": truth, "p": guess})
        parts = [part.assign(source=source, point=part.index + 40 * source) for source in range(12)]
        table = pd.concat(parts)
        found = cvstats.losses(table, "y", "p", loss, folds="average").cvci.interval().iloc[0]
        assert found["se"] == 0
        assert np.isfinite([found["lower"], found["upper"]]).all() == known


@pytest.mark.parametrize("loss", ["auc", "f1"])
@pytest.mark.parametrize("positives", [4, 12])
def test_points_of_a_class_are_counted_once_in_crossed_sources(loss, positives):
    """Twenty raters of four positive points are four points, not twenty or eighty."""
    frame = pd.DataFrame({
        "source": np.repeat(range(20), 40), "point": np.tile(np.arange(40), 20),
        "y_true": np.tile(np.arange(40) < positives, 20) * 1,
    })  # fmt: skip
    for name in ("a", "b"):
        score = frame["y_true"] + np.random.default_rng(ord(name)).normal(size=800)
        frame[name] = score if loss == "auc" else (score > 0.5) * 1
    asked = {"truth": "y_true", "prediction": ["a", "b"], "loss": loss, "folds": "pool"}
    log = cvstats.losses(frame, **asked)
    array = cvstats.losses(frame.set_index(["source", "point"]).to_xarray(), **asked)
    for each in (log, array):
        for table in (each.cvci.interval(), each.cvci.compare()):
            told = cvstats.cautions(table).to_numpy().astype(str)
            assert (np.char.find(told, "few of a class") >= 0).all() == (positives == 4)
    nested = log.cvci.interval(points="nested")["caution"]  # 4 points in each source
    assert not nested.str.contains("few of a class").any()


def expected_of_splits(row: pd.Series, change: float, df: int) -> list[float]:
    """Korn and Graubard's limits with one pseudo-error, for n points and df of the variance."""
    share, n = row["estimate"], row["n_points"]
    points = (share * (1 - share) + change) / (row["se"] ** 2 + change**2)
    if row["se"] > 0:
        points *= (stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, df)) ** 2
    ones = share * points
    lower = stats.beta.ppf(0.025, ones, points - ones + 1) if share else 0.0
    return [lower, stats.beta.ppf(0.975, ones + 1, points - ones)]


@pytest.mark.parametrize("errors", [0, 4, 20])
def test_limits_of_random_splits_are_those_of_proportions(errors):
    """By default; `corrected_t` called by name, and losses without bounds, keep their limits."""
    pytest.importorskip("dask")
    rows = [(r, (7 * r + k) % 100) for r in range(10) for k in range(20)]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point"])
    wrong = pd.Series(index.get_level_values("point") % 33 * 100 < errors * 33, index, name="m")
    wrong = wrong.astype(float)
    for attrs in ({"loss": "zero_one"}, {"loss": "squared_error"}):
        wrong.attrs = {**attrs, "n_train": 80}
        plain = wrong.cvci.corrected_t()
        counts = pd.Series({"n_points": wrong.index.unique("point").size})
        expected = plain[COLUMNS].iloc[0].to_list()
        if attrs["loss"] == "zero_one":
            row = pd.concat([plain[["estimate", "se"]].iloc[0], counts])
            expected = expected_of_splits(row, 1 / counts["n_points"], df=9)
        array = wrong.to_frame("m").reset_index()
        array = array.assign(evaluation=range(200)).set_index("evaluation").to_xarray()
        array = array.set_coords(["repetition", "point"])["m"].assign_attrs(wrong.attrs)
        forms = [wrong, wrong.to_frame(), cvstats.Moments.of_log(wrong)]
        for form in [*forms, array, array.expand_dims(cell=2).chunk()]:
            found = cvstats.interval(form)
            for side, value in zip(COLUMNS, expected, strict=True):
                np.testing.assert_allclose(np.asarray(found[side]), value, atol=1e-9)
        groups = wrong.to_frame().assign(half=0).set_index("half", append=True)
        groups.attrs = wrong.attrs
        found = cvstats.interval(groups, by="half")
        np.testing.assert_allclose(found[COLUMNS].to_numpy()[0], expected, atol=1e-9)
    wrong.attrs["loss"] = "zero_one"
    pair = wrong.to_frame().assign(n=1.0)  # the best model of two, one of which is always wrong
    pair.attrs = wrong.attrs
    best = pair.cvci.winner(n_draws=200).loc["m"]
    own = wrong.cvci.interval().iloc[0]
    assert best["lower"] <= own["lower"]
    assert own["upper"] <= best["upper"] <= 1


def test_limits_of_metrics_of_random_splits_allow_for_one_prediction():
    """A positive that is tested in one of three splits changes their mean by a third of 1 / 2 m."""
    rng = np.random.default_rng(3)
    parts = []
    for repetition in range(12):
        frame = make_frame(240).assign(repetition=repetition).drop(columns=["fold", "half"])
        tested = np.concatenate([rng.permutation(30)[:10] * 8, rng.permutation(210)[:70]])
        tested[10:] += tested[10:] // 7 + 1  # 10 of 30 positives, 70 of 210 negatives
        parts.append(frame.iloc[tested])
    frame = pd.concat(parts)
    log = cvstats.losses(frame, prediction=["a", "b"], loss="auc")
    log.attrs["n_train"] = 160
    table, plain = cvstats.interval(log), log.cvci.corrected_t()
    assert table.attrs["interval"] == "korn-graubard"
    for model in ("a", "b"):
        points = table.attrs["n_points"]
        row = pd.concat([plain.loc[model, ["estimate", "se"]], pd.Series({"n_points": points})])
        expected = expected_of_splits(row, 80 / points / 20, df=11)
        np.testing.assert_allclose(table.loc[model, COLUMNS].astype(float), expected, rtol=1e-9)
    same(cvstats.Moments.of_log(log).interval(), table)
    pair, own = log.cvci.compare(), log.cvci.compare(method="corrected_t")
    se = np.sqrt(own["se"].item() ** 2 + 2 * (80 / points / 20) ** 2)
    expected = own["difference"].item() + stats.t.ppf(0.975, 11) * se
    np.testing.assert_allclose(pair["upper"].item(), expected)
    best = log.cvci.winner(n_draws=500).loc["a"]
    assert 0 <= best["lower"] < table.loc["a", "lower"]
    assert table.loc["a", "upper"] < best["upper"] <= 1


def test_differences_over_random_splits_have_two_pseudo_errors():
    """Of a point tested in one of three splits: a third of what it changes in one split."""
    pytest.importorskip("dask")
    rng = np.random.default_rng(2)
    index = draw_splits(rng, 60, 10, 20)
    wrong = pd.DataFrame({"a": rng.random(200) < 0.1, "b": rng.random(200) < 0.04}, index)
    wrong = wrong.astype(float).assign(c=0.0, d=0.0)
    n = index.unique("point").size
    array = wrong.assign(evaluation=range(200)).reset_index().set_index("evaluation").to_xarray()
    array = array.set_coords(["repetition", "point"])[list("abcd")].to_array("model")
    for loss, pseudo in (("zero_one", 2 / n**2), (None, 2 / n**2), ("squared_error", 0.0)):
        attrs = {"n_train": 40} | ({} if loss is None else {"loss": loss})
        wrong.attrs = array.attrs = attrs
        table, plain = wrong.cvci.compare(), wrong.cvci.compare(method="corrected_t")
        np.testing.assert_allclose(table["se"], plain["se"])
        known = np.array([True] * 5 + [loss == "zero_one"])  # two models without any error
        se = np.sqrt(plain["se"] ** 2 + np.where(known, pseudo, 0.0))
        far = stats.t.ppf(0.975, 9) * se
        np.testing.assert_allclose(table["upper"], plain["difference"] + far)
        with np.errstate(invalid="ignore"):
            t = (plain["difference"] / se).where(se > 0)
        np.testing.assert_allclose(table["statistic"].where(se > 0), t)
        moments = cvstats.Moments.of_log(wrong, pairs=True).compare()
        np.testing.assert_allclose(moments[COLUMNS], table[COLUMNS], atol=1e-12)
        for form in (array, array.chunk()):
            found = form.cvci.compare()
            found = found.to_dataframe() if hasattr(found, "to_dataframe") else found
            np.testing.assert_allclose(found[COLUMNS], table[COLUMNS], atol=1e-12)
    wrong.attrs = {"n_train": 40, "loss": "zero_one"}
    halves = wrong.assign(half=np.repeat([0, 1], 100)).set_index("half", append=True)
    halves.attrs = wrong.attrs
    for half, part in wrong.groupby(np.repeat([0, 1], 100)):
        part.attrs = wrong.attrs
        own = part.cvci.compare()[COLUMNS]
        of_half = halves.cvci.compare(by="half").xs(half, level="half")
        np.testing.assert_allclose(of_half[COLUMNS], own, atol=1e-12)


def source_log(wrong: np.ndarray, groups: int, *, folds: int = 0) -> xr.DataArray:
    """Losses of equal sources, with a row for each cell; whole sources in each of some folds."""
    source = np.repeat(np.arange(groups), wrong.shape[1] // groups)
    coords = {"source": ("point", source)} | ({"fold": ("point", source % folds)} if folds else {})
    log = xr.DataArray(wrong, dims=("cell", "point"), coords=coords, name="m")
    return log.assign_attrs(loss="zero_one")


def draw_clusters(groups: int, size: int, share: float, icc: float, runs: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    chance = np.full((runs, groups, 1), share)
    if icc:
        a = (1 - icc) / icc
        chance = rng.beta(share * a, (1 - share) * a, size=(runs, groups, 1))
    return (rng.random((runs, groups, size)) < chance).reshape(runs, -1).astype(float)


def cover(table: xr.Dataset, truth: float) -> float:
    return float(((table["lower"] <= truth) & (truth <= table["upper"])).mean())


@pytest.mark.parametrize("folds", [0, 4])
def test_sources_that_err_alike_have_limits_as_narrow_as_those_of_student(folds):
    """They had a tenth of a source as a pseudo-error, and limits 11 times as wide."""
    log = source_log(draw_clusters(12, 1000, 0.05, 0, 20), 12, folds=folds)
    table = cvstats.interval(log)
    plain = log.cvci.clustered() if folds else log.cvci.out_of_source()
    assert table.attrs["method"] == plain.attrs["method"]
    ratio = (table["upper"] - table["lower"]) / (plain["upper"] - plain["lower"])
    assert 1 < ratio.mean() < 1.1
    n = log.sizes["point"]
    frame = pd.DataFrame({
        "source": log["source"], "fold": log["source"] % 4, "point": range(n),
        "y_true": np.arange(n) % 3 == 0,
    })  # fmt: skip
    rng = np.random.default_rng(2)
    for name, noise in (("a", 0.0), ("b", 0.3)):
        own = rng.normal(size=n) if name == "a" else frame["a"] + noise * rng.normal(size=n)
        frame[name] = 3 * frame["y_true"] + own if name == "a" else own
    auc = cvstats.losses(frame, prediction=["a", "b"], loss="auc", folds="pool")
    for one, other, most in (
        (auc.cvci.interval(), auc.cvci.clustered(), 1.3),
        (auc.cvci.compare(), auc.cvci.compare(method="clustered"), 1.5),
    ):
        ratio = (one["upper"] - one["lower"]) / (other["upper"] - other["lower"])
        assert (ratio < most).all()


@pytest.mark.parametrize(("groups", "share"), [(12, 0.1), (30, 0.03)])
@pytest.mark.parametrize("icc", [0, 0.2])
def test_limits_of_sources_cover(groups, share, icc):
    """Student's t covers .80 to .93."""
    wrong = draw_clusters(groups, 30, share, icc, runs=600)
    for folds in (0, 3):
        log = source_log(wrong, groups, folds=folds)
        assert cover(cvstats.interval(log), share) > 0.94


@pytest.mark.slow
@pytest.mark.parametrize("groups", [6, 12, 30, 80])
@pytest.mark.parametrize("size", [4, 30, 300])
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("icc", [0, 0.02, 0.2, 0.5])
def test_figures_of_pseudo_errors_of_clusters(groups, size, share, icc):
    """The figures beside `count_pseudo_errors`: of designs with at least 10 errors in most logs."""
    wrong = draw_clusters(groups, size, share, icc, runs=600)
    log = source_log(wrong, groups)
    rarer = np.minimum(wrong.sum(axis=1), (1 - wrong).sum(axis=1))
    least = 0.925 if np.median(rarer) >= 10 else 0.92
    assert cover(cvstats.interval(log), share) > least


@pytest.mark.parametrize("errors", [0, 3, 40])
def test_limits_of_sources_left_out_are_those_of_proportions(errors):
    """By default, also for metrics; and not for losses whose range is unknown."""
    pytest.importorskip("dask")
    source = np.repeat(np.arange(9), 10)
    wrong = (np.arange(90) * 7 % 90 < errors).astype(float)
    index = pd.MultiIndex.from_arrays([source, range(90)], names=["source", "point"])
    log = pd.DataFrame({"a": wrong, "b": np.maximum(wrong, np.arange(90) % 7 == 0)}, index)
    log.attrs["loss"] = "zero_one"
    plain, table = log.cvci.out_of_source(), log.cvci.interval()
    for model in log:
        t, v = plain.loc[model, "estimate"], plain.loc[model, "se"] ** 2
        uneven = v / (v + min(t, 1 - t) ** 2 / 9) if v else 1.0
        change = 0.1 * uneven**2 / 9
        points = (t * (1 - t) + change) / (v + change / 9)
        if v:
            points *= (stats.t.ppf(0.975, 89) / stats.t.ppf(0.975, 8)) ** 2
        lower = stats.beta.ppf(0.025, t * points, points - t * points + 1) if t else 0.0
        upper = stats.beta.ppf(0.975, t * points + 1, points - t * points)
        np.testing.assert_allclose(table.loc[model, COLUMNS].astype(float), [lower, upper])
    array = log.reset_index("source").to_xarray().set_coords("source").to_array("model")
    array = array.assign_attrs(log.attrs)
    for form in (array, array.chunk()):
        found = form.cvci.interval()
        for side in COLUMNS:
            np.testing.assert_allclose(found[side], table[side], atol=1e-12)
    same(cvstats.Moments.of_log(log).interval(), table)
    halves = log.assign(half=source % 2).set_index("half", append=True)
    halves.attrs = log.attrs
    of_half = halves.cvci.interval(by="half").xs(1, level="half")
    part = log[source % 2 == 1]
    part.attrs = log.attrs
    same(of_half, part.cvci.interval())
    if errors:
        best = log.cvci.winner(n_draws=200).loc["a"]
        assert 0 <= best["lower"] < table.loc["a", "lower"]
        assert table.loc["a", "upper"] < best["upper"] <= 1
    log.attrs["loss"] = "squared_error"
    same(log.cvci.interval(), plain)


def draw_splits(rng, n: int, splits: int, tested: int) -> pd.MultiIndex:
    points = np.concatenate([rng.permutation(n)[:tested] for _ in range(splits)])
    levels = [np.repeat(range(splits), tested), points]
    return pd.MultiIndex.from_arrays(levels, names=["repetition", "point"])


def draw_errors(rng, splits: int, share: float) -> pd.Series:
    """Fifty points, each with a probability of its own, of which a tenth are tested at a time."""
    hard, index = rng.beta(share * 0.4, (1 - share) * 0.4, size=50), draw_splits(rng, 50, splits, 5)
    wrong = rng.random(len(index)) < hard[index.get_level_values("point")]
    return pd.Series(wrong.astype(float), index).rename_axis(index.names)


def draw_auc(rng, splits: int, positives: int, spread: float) -> pd.Series:
    """An AUC of .98; a model of each split adds noise to the scores."""
    center = stats.norm.ppf(0.98) * np.sqrt(1 + spread**2 + 0.08)
    rest, parts = 6 * positives, []
    scores = center + spread * rng.normal(size=positives), rng.normal(size=rest)
    for score, n, truth in zip(scores, (positives, rest), (1, 0), strict=True):
        index = draw_splits(rng, n, splits, n // 5)
        at = index.get_level_values("point").to_numpy()
        noisy = score[at] + 0.2 * rng.normal(size=len(at))
        labels = {"repetition": index.get_level_values(0), "point": at + truth * rest}
        parts.append(pd.DataFrame({**labels, "y_true": truth, "m": noisy}))
    return cvstats.losses(pd.concat(parts), prediction=["m"], loss="auc")


def count_covered(draw, truth: float, trained: int, runs: int) -> tuple[float, float]:
    """Coverage of `interval`, and of `corrected_t`."""
    rng, covered = np.random.default_rng(5), np.zeros(2)
    for _ in range(runs):
        log = draw(rng)
        log.attrs = {"loss": "zero_one", **log.attrs, "n_train": trained}
        for k, table in enumerate([cvstats.interval(log), log.cvci.corrected_t()]):
            row = table.iloc[0]
            covered[k] += row["lower"] - 1e-12 <= truth <= row["upper"] + 1e-12
    return tuple(covered / runs)


def test_random_splits_of_rare_errors_cover():
    found = count_covered(lambda rng: draw_errors(rng, 10, 0.05), 0.05, 45, runs=200)
    assert found[0] > 0.93 > 0.9 > found[1]


@pytest.mark.slow
@pytest.mark.parametrize("splits", [10, 15, 25, 50])
def test_figures_of_random_splits_of_two_percent_errors(splits):
    found = count_covered(lambda rng: draw_errors(rng, splits, 0.02), 0.02, 45, runs=1000)
    assert found[0] > 0.98
    assert 0.48 < found[1] < 0.82


@pytest.mark.slow
@pytest.mark.parametrize(("positives", "spread"), [(15, 1), (15, 3), (30, 1), (30, 3), (100, 3)])
@pytest.mark.parametrize("splits", [15, 25])
def test_figures_of_random_splits_of_an_auc_near_one(splits, positives, spread):
    trained = 7 * positives * 4 // 5
    draw = partial(draw_auc, splits=splits, positives=positives, spread=spread)
    found = count_covered(draw, 0.02, trained, runs=1000)
    assert found[0] > 0.955
    assert 0.48 < found[1] < 0.94


def test_limits_of_scores_of_splits_end_at_the_bounds():
    scores = pd.DataFrame({"fold": range(10), "m": [0.0] * 8 + [0.1, 0.3]}).set_index("fold")["m"]
    scores.attrs = {"holds": "scores", "loss": "1 - auc", "metric": "auc"}
    known = {"orientation": "1 - score", "range": (0.0, 1.0)}
    for facts in (scores.attrs | known, {"holds": "scores", "loss": "1 - accuracy"}):
        scores.attrs = facts
        assert scores.cvci.corrected_t()["lower"].item() < 0
        assert scores.cvci.interval()["lower"].item() == 0
        pair = scores.to_frame().assign(n=scores[::-1].to_numpy() + 0.1)
        pair.attrs = facts
        assert pair.cvci.winner(n_draws=200)["lower"].item() == 0
    for facts in ({"holds": "scores", "loss": "error"}, {"holds": "scores", "loss": "1 - score"}):
        scores.attrs = facts  # may be in percent; may be without bounds
        assert scores.cvci.interval()["lower"].item() < 0


@pytest.mark.parametrize(
    ("loss", "options", "caution"),
    [
        ("pearson", {}, "few of a class"), ("concordance_correlation", {}, "few of a class"),
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
