"""The best model's error: simultaneous limits, a corrected estimate, every container."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from paired_logs import models
from rows import multi_index, only_row, product_index
from scipy import special, stats
from sklearn.dummy import DummyRegressor

import cvstats
from cvstats import LogError
from cvstats.core.cautions import Caution

RNG = np.random.default_rng(11)


def correlated(n_models, points, runs=None, means=None, seed=1):
    """Losses of models that share half of their variance on each point."""
    rng = np.random.default_rng(seed)
    shape = (points,) if runs is None else (points, runs)
    shared, own = rng.standard_normal(shape), rng.standard_normal((n_models, *shape))
    level = np.zeros(n_models) if means is None else np.asarray(means)
    return level.reshape(-1, *[1] * len(shape)) + np.sqrt(0.5) * (shared + own)


def frame_of(losses):
    points = pd.RangeIndex(losses.shape[1], name="point")
    return pd.DataFrame(losses.T, index=points, columns=[f"m{i}" for i in range(len(losses))])


def test_the_limits_are_simultaneous_ones_about_the_smallest_mean():
    frame = frame_of(correlated(6, 80, means=[0.3, 0.2, 0, 0.1, 0.2, 0.05]))
    found = frame.cvci.winner(rng=3, n_draws=200_000)
    means = frame.mean()
    assert list(found.index) == [means.idxmin()]
    assert list(found) == ["estimate", "lower", "upper", "se", "mean", "caution"]
    row = only_row(found)
    assert row["mean"] == pytest.approx(means.min(), rel=1e-12)
    assert row["n_models"] == 6
    # the oracle: draws from the covariance of the means, their maximum taken to Student's t
    cov = np.cov(frame.to_numpy().T) / 80
    g = np.random.default_rng(0).multivariate_normal(np.zeros(6), cov, 400_000)
    z = np.quantile(abs(g / np.sqrt(np.diag(cov))).max(axis=1), 0.95)
    c = stats.t.isf(stats.norm.sf(z), 79)
    skewness = stats.skew(frame)
    skewness = max(skewness[int(means.argmin())], np.median(skewness)) / np.sqrt(80)

    def halls(t):
        return t + skewness * (t**2 / 3 + 1 / 6) + skewness**2 * t**3 / 27

    assert halls((row["mean"] - row["upper"]) / row["se"]) == pytest.approx(-c, rel=0.01)
    assert row["mean"] - row["lower"] == pytest.approx(c * row["se"], rel=0.01)
    chosen = (means.to_numpy() + g).argmin(axis=1)
    out_of_bag = means.to_numpy()[chosen] - g[np.arange(len(g)), chosen]
    assert row["estimate"] == pytest.approx(out_of_bag.mean(), abs=0.003 * row["se"] + 2e-4)
    assert found.attrs["target"].endswith("for the model with the smallest mean loss in this log")
    assert found.attrs["interval_method"] == "holdout"
    assert "alpha" in found.attrs
    assert "10.1007/s10994-018-5714-4" in found.attrs["reference"]


def test_folds_sources_and_moments():
    log = cvstats.datasets.load("flights_by_month")
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    found = losses.cvci.winner(rng=1)
    assert found.attrs["interval_method"] == "out_of_source"
    assert "few sources" in found["caution"].item()
    row = only_row(found)
    plain = losses.cvci.out_of_source().loc[found.index[0]]
    assert row["se"] == pytest.approx(plain["se"], rel=1e-12)
    assert row["upper"] > plain["upper"]
    pooled = only_row(losses.cvci.winner(rng=1, method="wald", options={"variance": "within-fold"}))
    assert pooled["se"] < row["se"]
    streamed = only_row(cvstats.Moments.of_log(losses, pairs=True).winner(rng=1))
    for name in ("estimate", "lower", "upper"):
        assert streamed[name] == pytest.approx(row[name], rel=1e-9)


def test_models_without_an_error_and_twins():
    losses = (correlated(4, 60) > 1.2).astype(float)
    losses[2] = 0.0
    row = only_row(frame_of(losses).cvci.winner(rng=1))
    z = -special.ndtri(0.05 / 8)  # Bonferroni: a model without variance is not in the draws
    assert row["lower"] == row["mean"] == 0
    assert row["upper"] == pytest.approx(z**2 / (60 + z**2), rel=1e-12)
    assert row["caution"] == ""
    certain = correlated(4, 60)
    certain[2] = -9.0
    row = only_row(frame_of(certain).cvci.winner(rng=1))
    assert np.isnan([row["lower"], row["upper"]]).all()
    assert row["mean"] == row["estimate"] == -9
    twins = correlated(3, 60)
    twins[1] = twins[0]
    assert math.isfinite(only_row(frame_of(twins).cvci.winner(rng=1))["upper"])


def rare_classes(**levels) -> pd.DataFrame:
    """Scores of three models of 120 points, 15 of them positive; the first is always right."""
    random = np.random.default_rng(8)
    index = pd.MultiIndex.from_arrays([*levels.values(), range(120)], names=[*levels, "point"])
    truth = np.arange(120) % 8 == 0
    scores = {name: truth + random.normal(0, sd, 120) for name, sd in (("b", 0.5), ("c", 0.7))}
    return pd.DataFrame({"y": truth.astype(int), "a": truth * 1.0, **scores}, index)


def metric(loss="auc", **levels) -> pd.DataFrame:
    options = {"auc": {"positive": 1}, "f1": {"positive": 1, "threshold": 0.5}}.get(loss, {})
    frame = rare_classes(**levels)
    return cvstats.losses(frame, truth="y", prediction=["a", "b", "c"], loss=loss, **options)


def right_or_wrong(*, answers=1, sites=False) -> pd.DataFrame:
    """Losses of 0 and 1 of three models, of which the first makes no errors."""
    losses = np.random.default_rng(9).random((answers * 60, 3)) < [0, 0.1, 0.3]
    point = np.tile(range(60), answers)
    levels = {"fold": 0 * point} if answers == 1 else {"repetition": np.repeat(range(answers), 60)}
    levels |= {"source": point // 5} if sites else {}
    index = pd.MultiIndex.from_arrays([*levels.values(), point], names=[*levels, "point"])
    frame = pd.DataFrame(losses.astype(float), index, columns=list("abc"))
    frame.attrs["loss"] = "zero_one"
    return frame


@pytest.mark.parametrize(
    "losses",
    [
        metric(), metric(fold=np.arange(120) // 8 % 3),
        metric(fold=np.zeros(120, int), source=np.arange(120) // 8),
        metric("f1"), right_or_wrong(answers=4), right_or_wrong(sites=True),
        right_or_wrong(answers=4).cvci.passes(k=2),
        right_or_wrong(answers=4, sites=True).cvci.passes(k=2),
    ],
    ids=["auc", "folds", "clusters", "f1", "answers", "sites", "passes", "passes of sites"],
)  # fmt: skip
def test_a_best_model_without_errors_has_the_limits_of_interval(losses):
    """No variance, so c is Bonferroni's: mean and standard error would give no width."""
    alone = losses[["a"]].cvci.interval(alpha=0.05 / 3)
    row = only_row(losses.cvci.winner(n_draws=200))
    assert row["upper"] > row["lower"] == row["mean"] == 0
    assert row["upper"] == pytest.approx(alone["upper"].item(), rel=1e-12)
    assert row["caution"] == alone["caution"].item()
    array = losses.to_xarray().to_dataarray("model")
    array.attrs = losses.attrs
    array = array.stack(evaluation=losses.index.names).dropna("evaluation")
    assert float(array.cvci.winner(n_draws=200)["upper"]) == pytest.approx(row["upper"], rel=1e-9)


def test_a_best_model_without_variance_has_the_limits_of_interval():
    losses = pd.DataFrame({"a": np.ones(60), "b": 2 + np.arange(60.0)}).rename_axis("point")
    folds, sources = (
        losses.assign(**{level: np.arange(60) % 5}).set_index(level, append=True)
        for level in ("fold", "source")
    )
    rmse = metric("rmse", fold=np.arange(120) % 5)
    for log in (losses, folds, sources, losses.to_xarray().to_dataarray("model"), rmse):
        found, alone = log.cvci.winner(n_draws=200), log.cvci.interval()
        for name in ("estimate", "lower", "upper"):
            np.testing.assert_array_equal(np.ravel(found[name])[0], np.ravel(alone[name])[0])
        assert "zero variance" in str(cvstats.cautions(found).values)
    assert only_row(losses.cvci.winner(method="holdout", n_draws=200))["upper"] == 1


def test_losses_of_0_and_1_have_limits_of_a_proportion():
    """Twenty equal models, errors of 5% on 60 points: normal limits cover in half of the runs."""
    losses = np.random.default_rng(4).random((20, 60, 40)) < 0.05
    array = xr.DataArray(losses.astype(float), dims=("model", "point", "run"))
    found = array.cvci.winner(n_draws=500)
    assert found.attrs["interval"] == "wilson"
    lower, upper = found["lower"].values, found["upper"].values
    assert ((lower >= 0) & (upper <= 1)).all()
    assert ((lower <= found["estimate"].values) & (found["estimate"].values <= upper)).all()
    assert np.mean((lower <= 0.05) & (upper >= 0.05)) > 0.95


def test_the_best_of_equal_models_with_skewed_losses():
    """Symmetric limits cover .84 of 1,000 runs, these .97."""
    losses, truth = np.exp(correlated(20, 200, runs=150, seed=7)), np.exp(0.5)
    found = xr.DataArray(losses, dims=("model", "point", "run")).cvci.winner(n_draws=500)
    covers = (found["lower"].values <= truth) & (found["upper"].values >= truth)
    assert np.mean(covers) >= 0.93
    one = xr.DataArray(losses[..., 3], dims=("model", "point")).cvci.winner(n_draws=500)
    assert float(one["upper"]) == pytest.approx(float(found["upper"][3]), rel=1e-12)
    assert not (found["caution"].values & int(Caution.SKEWED | Caution.MANY_MODELS)).any()


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize(
    ("groups", "models", "few"), [(30, 12, True), (60, 12, True), (200, 12, False), (60, 2, False)]
)
def test_many_models_need_many_groups(groups, models, few, fold):
    """With exponential effects of groups, 12 models: .87, .90 and .95 of 30, 60 and 120 groups."""
    rng = np.random.default_rng(8)
    levels = {"fold": np.arange(groups * 5) // 5 % 3} if fold else {}
    levels |= {"source": np.arange(groups * 5) // 5, "point": np.arange(groups * 5)}
    effects = rng.exponential(size=(groups, models)).repeat(5, axis=0)
    losses = effects + rng.normal(size=effects.shape)
    log = pd.DataFrame(losses, multi_index(**levels))
    found = only_row(log.cvci.winner(n_draws=2_000))
    assert ("too many models" in found["caution"]) == few


def test_two_ways_have_degrees_of_freedom_of_their_own():
    rng = np.random.default_rng(5)
    index = product_index(source=range(8), point=range(60))
    source, point = (index.get_level_values(level).to_numpy() for level in index.names)
    frame = pd.DataFrame({
        "a": rng.normal(size=8)[source] + 0.1 * rng.normal(size=60)[point],
        "b": rng.normal(size=60)[point] + 0.1 * rng.normal(size=8)[source] - 0.4,
        "c": rng.normal(size=60)[point] + rng.normal(size=8)[source],
    }, index) + rng.normal(size=(480, 3))  # fmt: skip
    each = frame.cvci.interval()
    assert each["df"].nunique() == 3
    row = only_row(frame.cvci.winner(n_draws=200_000))
    reach = (row["upper"] - row["mean"]) / row["se"]
    own = stats.norm.isf(stats.t.sf(reach, each.loc["b", "df"]))
    assert 1.96 < own < stats.norm.isf(0.025 / 3) + 0.01
    table = frame.cvci.compare(adjust="max-t", n_draws=200_000)
    df = table["df"]
    assert df.nunique() == 3
    excludes = (table["lower"] > 0) | (table["upper"] < 0)
    assert (excludes == (table["p_adjusted"] < 0.05)).all()
    normal = stats.norm.isf(stats.t.sf((table["upper"] - table["difference"]) / table["se"], df))
    assert normal.max() - normal.min() < 1e-9
    plan = frame.cvci.power(effect=1.0)
    for pair in plan.index:
        alone = frame[list(pair)].cvci.power(effect=1.0).iloc[0]
        assert plan.loc[pair, "power"] == pytest.approx(alone["power"], rel=1e-9)
        assert plan.loc[pair, "smallest_effect"] == pytest.approx(
            alone["smallest_effect"], rel=1e-9
        )


def test_the_order_of_rows_does_not_change_the_limits():
    rng = np.random.default_rng(0)
    one = (rng.random(40) < 0.5) * 1.0
    index = multi_index(source=np.arange(40) % 3, point=np.arange(40) // 3)
    frame = pd.DataFrame({"a": one, "b": one, "c": one + 1, "d": one + 1}, index)
    lower = [frame.sample(frac=1, random_state=i).cvci.winner(rng=0)["lower"] for i in range(8)]
    np.testing.assert_allclose(lower, lower[0].iloc[0], rtol=1e-12)


def test_a_model_that_diverged_leaves_the_joint_law_of_the_others():
    """Rounding of its variance exceeds the variances of the others, two of which are copies."""
    a, b, huge = np.random.default_rng(0).normal(size=(3, 120))
    b = a + 0.3 * b
    tables = {name: {"a": a, "b": b, "x": unit * (5 + huge), "c": a, "d": b, "e": (a + b) / 2}
              for name, unit in (("usual", 1.0), ("diverged", 1e7))}  # fmt: skip
    frames = {name: pd.DataFrame(table).rename_axis("point") for name, table in tables.items()}
    mixed = [frames["diverged"].sample(frac=1, random_state=i) for i in range(8)]
    sets = [frame.cvci.best_set(rng=0)["p_value"] for frame in mixed]
    np.testing.assert_allclose(sets, [sets[0]] * 8)
    usual = only_row(frames["usual"].cvci.winner(n_draws=50_000))
    for frame in mixed[:2]:
        found = only_row(frame.cvci.winner(n_draws=50_000))
        assert found["upper"] == pytest.approx(usual["upper"], abs=0.02 * usual["se"])


def test_without_a_common_covariance_the_limits_are_those_of_bonferroni():
    """In 150 logs of 12 least squares fits, refit_corrected and quadratic covered in 95% each."""
    folds = models(names="abcdefghij").droplevel("repetition")
    found = folds.cvci.winner(method="quadratic")
    row, points = only_row(found), found.attrs["n_points"]
    reach = stats.t.ppf(1 - 0.05 / 20, points - 1) * row["se"]
    assert row["mean"] - row["lower"] == pytest.approx(reach, rel=1e-9)
    assert row["upper"] - row["mean"] == pytest.approx(reach, rel=1e-9)
    assert row["mean"] <= row["estimate"] <= row["upper"]


@pytest.mark.parametrize(("loss", "slope"), [("rmse", 1), ("r2", 0)])
def test_metrics_without_limits_of_their_own_have_those_of_t_within_their_range(loss, slope):
    """The first model has no variance, so c is Bonferroni's."""
    truth = np.tile([-2.0, -1.0, 1.0, 2.0], 5)
    errors = np.random.default_rng(8).normal(size=(2, 20))
    index = multi_index(fold=np.arange(20) // 4, point=range(20))
    predictions = {"a": slope * (truth + 5), "b": truth + errors[0], "c": truth + errors[1]}
    losses = cvstats.losses(
        pd.DataFrame({"y": truth, **predictions}, index), truth="y", prediction=list("abc"),
        loss=loss, folds="average",
    )  # fmt: skip
    row = only_row(losses.cvci.winner(n_draws=200))
    reach = stats.t.ppf(1 - 0.05 / 6, 19) * row["se"]
    assert row["upper"] - row["mean"] == pytest.approx(reach, rel=1e-9)
    assert row["lower"] == pytest.approx(max(row["mean"] - reach, -1), rel=1e-9)


def test_what_is_refused():
    frame = frame_of(correlated(4, 60))
    refuses("has only one model", frame["m0"].cvci.winner)
    refuses("n_draws=5 is too small", frame.cvci.winner, n_draws=5)
    refuses("rng='x' is not a seed", frame.cvci.winner, rng="x")
    refuses("Invalid method='tango'", frame.cvci.winner, method="tango")
    halves = cvstats.plans.five_by_two(rng=1)
    rules = {"mean": DummyRegressor(), "zero": DummyRegressor(strategy="constant", constant=0)}
    twice = cvstats.evaluate(
        rules, np.zeros((40, 1)), RNG.normal(size=40), plan=halves, progress=False
    )
    with pytest.raises(
        LogError, match="needs standard errors of all models and their differences, but five"
    ):
        twice.cvci.winner(method="five_by_two", options={"test": "f"})
    array = xr.DataArray(frame.to_numpy(), dims=("point", "model")).chunk(point=20)
    refuses(r"this log is lazy.*log\.compute", array.cvci.winner)


def test_a_model_without_losses_in_a_cell_is_not_among_the_candidates_there():
    """The first model was returned, without an estimate and without a caution."""
    rng = np.random.default_rng(0)
    log = xr.DataArray(
        rng.gamma(2.0, 1.0, (3, 80, 4)) + np.array([1.0, 0.3, 0.0])[:, None, None],
        dims=("model", "point", "cell"), coords={"model": list("abc")},
    )  # fmt: skip
    log[1, :, 0] = np.nan
    log[:2, :, 1] = np.nan  # one model remains: nothing was selected
    log[:, :, 2] = np.nan
    found = log.cvci.winner(rng=0)
    for cell, kept in ((0, ["a", "c"]), (3, ["a", "b", "c"])):
        expected = log.isel(cell=cell).sel(model=kept).cvci.winner(rng=0)
        for name in ("estimate", "lower", "upper", "se", "mean", "model"):
            assert found[name].to_numpy()[cell] == expected[name].item()
        assert found["n_models"].to_numpy()[cell] == len(kept)
    assert np.isnan(found["estimate"][1:3]).all()
    assert (cvstats.cautions(found)[1:3] == "no losses").all()
