"""Differences between groups of one log, as a log whose mean is the difference."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from frontier import CASES
from rows import multi_index, product_index
from scipy import special, stats
from strategies import by_row

import cvstats

DATA = CASES["binary_data"]["inputs"]


def predictions(*, sites: bool = False, folds: int = 0) -> pd.DataFrame:
    """The stored predictions, by group, and perhaps by site or fold."""
    frame = pd.DataFrame(DATA).rename(columns={"site": "source"}).rename_axis("point")
    names = ["group"]
    if folds:
        frame["fold"] = np.arange(len(frame)) % folds
        names = ["fold", *names]
    if sites:
        frame = frame.assign(fold=0)
        names = ["fold", "source", *names]
    return frame.set_index(names, append=True)[["y", "p", "q"]]


def losses(loss: str = "brier", *, sites: bool = False, folds: int = 0, **options):
    frame = predictions(sites=sites, folds=folds)
    return cvstats.losses(frame, truth="y", prediction=["p", "q"], loss=loss, positive=1, **options)


LOG = losses()
PAIR = ("f", "m")
ENDS = ["lower", "upper"]


def test_difference_of_groups_is_welch_s_test():
    expected = CASES["group_brier"]["outputs"]
    gap = LOG["p"].cvci.contrast(by="group", between=PAIR)
    found = gap.cvci.interval().iloc[0]
    for name in ("se", "df", "lower", "upper"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9)
    assert gap.cvci.compare(0)["p_value"].item() == pytest.approx(expected["p"], rel=1e-9)
    by_group = [part["p"].to_numpy() for _, part in LOG.groupby(level="group")]
    assert found["estimate"] == pytest.approx(np.subtract(*map(np.mean, by_group)), rel=1e-12)


def test_difference_of_differences_is_the_t_test_of_paired_differences():
    expected = CASES["group_difference_of_differences"]["outputs"]
    gaps = LOG.cvci.contrast(by="group", between=PAIR)
    found = gaps.cvci.compare(reference="q").iloc[0]
    for name, other in (("difference", None), ("se", None), ("df", None), ("p_value", "p")):
        assert found[name] == pytest.approx(expected[other or name], rel=1e-9)
    pd.testing.assert_frame_equal(gaps.cvci.compare(), gaps.cvci.compare(reference="q"))


def test_sites_are_the_sample_where_there_are_any():
    expected = CASES["group_clustered"]["outputs"]
    gap = losses(sites=True)["p"].cvci.contrast(by="group", between=PAIR)
    found = gap.cvci.clustered(correction="CR1").iloc[0]
    assert found["estimate"] == pytest.approx(expected["difference"], rel=1e-12)
    assert found["se"] ** 2 == pytest.approx(expected["cr1"], rel=1e-12)
    assert found["se"] ** 2 * 11 / 12 == pytest.approx(expected["cr0"], rel=1e-12)
    assert gap.cvci.interval().attrs["method"] == "clustered"
    spread = losses(sites=True)["p"].droplevel("fold")
    fold = pd.Index(np.arange(len(spread)) % 5, name="fold")
    folded = spread.to_frame().set_index(fold, append=True)["p"]
    folded.attrs = LOG.attrs
    assert folded.cvci.interval().attrs["method"] == "wald"
    gap = folded.cvci.contrast(by="group", between=PAIR)
    assert gap.cvci.interval().attrs["method"] == "clustered"


def test_auc_of_two_groups_is_delong_s_unpaired_test():
    expected = CASES["group_auc"]["outputs"]
    log = losses("auc", by="group")["p"]
    gap = log.cvci.contrast(by="group", between=PAIR)
    found = cvstats.as_scores(gap.cvci.compare(0, method="holdout")).iloc[0]
    assert found["difference"] == pytest.approx(np.subtract(*expected["auc"]), rel=1e-12)
    assert found["se"] ** 2 == pytest.approx(sum(expected["var"]), rel=1e-12)
    assert found["statistic"] == pytest.approx(expected["statistic"], rel=1e-9)
    (one, *_), (other, *_) = json.loads(log.attrs["one_prediction"])["models"]["p"][0]
    for table in (gap.cvci.interval(), gap.cvci.compare(0)):
        assert half_width(table).item() == pytest.approx(reach(table, one**2 + other**2).item())


@pytest.mark.parametrize("loss", ["pearson", "rmse", "r2", "wmape", "observed_expected"])
@pytest.mark.parametrize("pair", [("x", "z"), ("z", "x")])
def test_groups_of_a_metric_with_limits_of_its_own_have_those_of_welch(loss, pair):
    """Limits of Pearson's r were 20 times as wide; those of the RMSE twice, if it was larger."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"half": ["x", "z"] * 100, "point": range(200)})
    if loss == "observed_expected":
        frame = frame.assign(y=rng.integers(0, 2, 200), a=rng.random(200), b=rng.random(200))
    else:
        frame["y"] = 5 + rng.normal(size=200)
        for name in "ab":
            frame[name] = frame["y"] + rng.normal(size=200) * np.where(frame["half"] == "x", 2, 1)
    log = cvstats.losses(frame, "y", ["a", "b"], loss, by="half", folds="pool")
    gaps = log.cvci.contrast(by="half", between=pair)
    plain = gaps.cvci.holdout()
    assert plain["caution"].eq(gaps.cvci.interval()["caution"]).all()
    for model in ("a", "b"):
        for found in (gaps[[model]].cvci.interval(), gaps[model].cvci.compare(0)):
            np.testing.assert_allclose(found[ENDS], plain.loc[[model], ENDS], rtol=1e-9)
    both = gaps.cvci.difference()
    expected = both.cvci.holdout()[ENDS]
    np.testing.assert_allclose(both.cvci.interval()[ENDS], expected, rtol=1e-9)
    np.testing.assert_allclose(both.cvci.compare(0)[ENDS], expected, rtol=1e-9)


def half_width(table) -> np.ndarray:
    return (table["upper"] - table["lower"]).to_numpy() / 2


def reach(table, added: float) -> np.ndarray:
    """Half the width of a 95% interval with something added to the variance."""
    quantile = stats.t.ppf(0.975, table["df"].to_numpy())
    return quantile * np.sqrt(table["se"].to_numpy() ** 2 + added)


def three_groups() -> pd.DataFrame:
    """Losses of two models in three regions of several sites."""
    random = np.random.default_rng(2)
    region = np.repeat(["east", "north", "west"], [60, 40, 90])
    lift = {"east": 0.0, "north": 0.2, "west": 1.0}
    table = pd.DataFrame({
        "region": region, "point": np.arange(len(region)),
        "a": random.gamma(2, 1, len(region)) + [lift[name] for name in region],
    })  # fmt: skip
    table["b"] = table["a"] + random.normal(0.1, 0.5, len(table))
    return table.set_index(["region", "point"])


REGIONS = three_groups()


def test_errors_of_several_models_have_the_limits_of_each():
    errors = REGIONS.gt(REGIONS.median()) * 1.0
    table = errors.cvci.contrast(by="region").cvci.interval()
    for model in errors:
        alone = errors[model].cvci.contrast(by="region").cvci.interval()
        np.testing.assert_allclose(table.loc[model, "lower"], alone["lower"], rtol=1e-12)


def test_all_pairs_are_columns_and_holm_adjusts_for_them():
    gaps = REGIONS["a"].cvci.contrast(by="region")
    assert list(gaps.columns) == ["east - north", "east - west", "north - west"]
    table = gaps.cvci.compare()
    samples = dict(list(REGIONS["a"].groupby(level="region")))
    expected = [
        stats.ttest_ind(samples[a], samples[b], equal_var=False).pvalue
        for a, b in (name.split(" - ") for name in gaps.columns)
    ]
    np.testing.assert_allclose(table["p_value"], expected, rtol=1e-9)
    order = np.argsort(expected)
    holm = np.maximum.accumulate(np.minimum(np.array(expected)[order] * [3, 2, 1], 1))
    np.testing.assert_allclose(table["p_adjusted"].to_numpy()[order], holm, rtol=1e-12)
    together = gaps.cvci.compare(adjust="max-t", rng=0)  # each pair has its own df
    assert (together["p_adjusted"] >= table["p_value"]).all()
    both = REGIONS.cvci.contrast(by="region")
    assert both.columns.names == ["model", "contrast"]
    assert len(both.cvci.compare(0)) == 6


def test_reference_and_rest():
    rest = REGIONS["a"].cvci.contrast(by="region", reference="rest")
    assert list(rest.columns) == ["east - rest", "north - rest", "west - rest"]
    north = REGIONS["a"].xs("north", level="region")
    others = REGIONS["a"].drop("north", level="region")
    assert rest["north - rest"].mean() == pytest.approx(north.mean() - others.mean(), rel=1e-12)
    expected = np.sqrt(north.var() / len(north) + others.var() / len(others))
    assert rest.cvci.interval()["se"].iloc[1] == pytest.approx(expected, rel=1e-12)
    against = REGIONS["a"].cvci.contrast(by="region", reference="west")
    assert list(against.columns) == ["east - west", "north - west"]


def test_equivalence_is_the_statement_of_fairness():
    gap = REGIONS["a"].cvci.contrast(by="region", between=("east", "north"))
    loose, strict = (gap.cvci.equivalence(margin=margin) for margin in (2.0, 0.1))
    assert loose["equivalent"].item()
    assert not strict["equivalent"].item()
    found = gap.cvci.interval().iloc[0]
    t = (found["estimate"] - 2) / found["se"], (found["estimate"] + 2) / found["se"]
    expected = max(stats.t.cdf(t[0], found["df"]), stats.t.sf(t[1], found["df"]))
    assert loose["p_value"].item() == pytest.approx(expected, rel=1e-9)


def test_differences_of_error_rates_cover_their_target():
    """By enumeration of the errors of 20 and 40 points; the limits of Welch cover 55% at worst."""
    of_f, of_m = np.divmod(np.arange(21 * 41), 41)
    wrong = np.concatenate([np.arange(20)[:, None] < of_f, np.arange(40)[:, None] < of_m])
    log = xr.DataArray(wrong, dims=["point", "case"])
    gap = log.assign_coords(sex=("point", np.repeat(PAIR, [20, 40])))
    gap = gap.cvci.contrast(by="sex", between=PAIR)
    rates = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    least = []
    for table in (gap.cvci.interval(), gap.cvci.holdout()):
        lower, upper = table["lower"].values - 1e-12, table["upper"].values + 1e-12
        least.append(min(
            stats.binom.pmf(of_f, 20, p) * stats.binom.pmf(of_m, 40, q)
            @ ((lower <= p - q) & (p - q <= upper))
            for p in rates for q in rates
        ))  # fmt: skip
    assert least == pytest.approx([0.963, 0.553], abs=0.001)


@pytest.mark.parametrize(("errors", "others"), [(0, 40), (9, 40), (0, 0)])
def test_one_prediction_of_each_group_may_change_an_error_rate(errors, others):
    wrong = np.r_[np.arange(60) < errors, np.arange(200) < others]
    sexes = np.repeat(["f", "m"], [60, 200])
    index = multi_index(sex=sexes, point=range(260))
    frame = pd.DataFrame({"a": wrong, "b": np.r_[wrong[:60], ~wrong[60:]]}, index)
    array = frame.droplevel("sex").to_xarray().to_dataarray("model")
    array = array.assign_coords(sex=("point", sexes))
    repeated = pd.concat({1: frame, 2: frame}, names=["repetition"])
    for log in (frame, frame["a"], array, array.to_dataset("model"), repeated):
        gap, every = log.cvci.contrast(by="sex", between=PAIR), log.cvci.contrast(by="sex")
        tables = [gap.cvci.interval(), every.cvci.interval(), gap.cvci.compare(0)]
        tables += [gap.cvci.equivalence(0, margin=0.1, alpha=0.025)]
        tables += [] if log is repeated else [cvstats.Moments.of_log(gap).interval()]
        for table in tables:
            found = cvstats.cautions(table) if isinstance(table, xr.Dataset) else table["caution"]
            assert not found.to_numpy().any()
            np.testing.assert_allclose(half_width(table), reach(table, 1 / 60**2 + 1 / 200**2))
        plain = gap.cvci.holdout()
        found = cvstats.cautions(plain) if isinstance(plain, xr.Dataset) else plain["caution"]
        assert "few of a class" in found.to_numpy().reshape(-1)[0]
        np.testing.assert_allclose(half_width(plain), reach(plain, 0))


def test_groups_that_are_sources_count_one_prediction_too():
    wrong = (np.arange(80) % 40 < 2).astype(float)
    log = pd.Series(wrong, multi_index(source=np.repeat(PAIR, 40), point=range(80)), name="a")
    by_sex = log.rename_axis(index={"source": "sex"})
    found, expected = (
        part.cvci.contrast(by=by, between=PAIR).cvci.interval()
        for part, by in ((log, "source"), (by_sex, "sex"))
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=False, rtol=1e-12)
    np.testing.assert_allclose(half_width(found), reach(found, 2 / 40**2))


@pytest.mark.parametrize("loss", ["auc", "zero_one", None])
def test_a_cell_of_a_grid_without_losses_leaves_the_others_as_they_are(loss):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (3, 80)).astype(float)
    guess = rng.random((3, 80)) if loss == "auc" else rng.integers(0, 2, (3, 80)) / 1.0
    table = xr.Dataset({"y": (("lat", "point"), truth), "a": (("lat", "point"), guess)})
    table = table.assign_coords(sex=("point", np.repeat(PAIR, 40)))
    masked = table.where(xr.DataArray([True, False, True], dims="lat"))
    found = []
    for part in (table, masked):
        options = {"by": "sex"} if loss == "auc" else {}
        log = cvstats.losses(part, "y", ["a"], loss or "zero_one", **options)
        log = log.assign_attrs({} if loss is None else log.attrs)
        gap = log.cvci.contrast(by="sex", between=PAIR)
        found.append(gap.cvci.interval()["upper"].isel(lat=[0, 2]))
        assert (half_width(gap.isel(lat=[0]).cvci.interval()) > half_width(
            gap.isel(lat=[0]).cvci.holdout())).all()  # fmt: skip
    xr.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("container", ["frame", "array"])
def test_a_model_without_errors_leaves_the_limits_of_others_as_they_are(container):
    """The others had no pseudo-errors: 3 and 50 points with 5% errors differed in 21% of logs."""
    row = np.arange(55)
    index = multi_index(group=np.where(row < 5, "a", "b"), point=row)
    log = pd.DataFrame({"few": (row % 10 == 7) * 1.0, "none": 0.0, "all": 1.0}, index)
    alone, beside = (
        cvstats.contrast(each if container == "frame" else by_row(each), by="group",
                         between=("a", "b")) for each in (log[["few"]], log)
    )  # fmt: skip
    for ask in (cvstats.interval, lambda contrast: cvstats.compare(contrast, 0)):
        one, many = ask(alone), ask(beside)
        for name in ("lower", "upper"):
            assert np.ravel(one[name])[0] == pytest.approx(np.ravel(many[name])[0], rel=1e-12)
            assert abs(np.ravel(many[name])[1]) == pytest.approx(0.403, abs=0.001)  # as by name
    assert np.ravel(cvstats.compare(beside, 0)["p_value"])[0] > 0.6


def test_costs_that_are_zero_or_one_by_chance_are_not_error_rates():
    index = multi_index(sex=list("ffffmmmm"), point=range(8))
    for name, cost in (("absolute_error", [0.0, 1.0] * 4), (None, [0.0] * 8)):
        log = pd.Series(cost, index, name="a")
        log.attrs = {} if name is None else {"loss": name}
        gap = log.cvci.contrast(by="sex", between=PAIR)
        pd.testing.assert_series_equal(gap.cvci.interval()["upper"], gap.cvci.holdout()["upper"])


@pytest.mark.parametrize(("small", "flagged"), [(12, True), (200, False)])
def test_a_small_group_of_skewed_losses_is_flagged(small, flagged):
    """With 12 and 400 exponential losses the interval covers .90 of 400 logs."""
    rng = np.random.default_rng(7)
    groups = np.repeat(["x", "y"], [small, 400])
    index = multi_index(group=groups, point=range(small + 400))
    frame = pd.DataFrame({"a": rng.exponential(size=small + 400)}, index)
    frame["b"] = frame["a"] ** 2 if flagged else frame["a"]
    array = frame.droplevel("group").to_xarray().to_dataarray("model")
    for log in (frame, array.assign_coords(group=("point", groups))):
        gap = log.cvci.contrast(by="group", between=("x", "y"))
        for table in (gap.cvci.interval(), cvstats.Moments.of_log(gap).interval()):
            found = cvstats.cautions(table) if isinstance(table, xr.Dataset) else table["caution"]
            assert list(found.values) == ["few points, skewed" if flagged else ""] * 2


def test_a_group_of_fewer_than_30_points_is_flagged_as_a_log_of_so_few():
    """In each repetition, in either place, and of losses that are not skewed."""
    rng = np.random.default_rng(3)
    for sizes, flagged in (((29, 200), True), ((200, 29), True), ((30, 200), False)):
        names = np.repeat(["x", "y"], sizes)
        once = pd.DataFrame({"group": names, "point": range(len(names))})
        log = pd.concat([once.assign(repetition=i, a=rng.normal(size=len(names))) for i in (0, 1)])
        log = log.set_index(["repetition", "group", "point"])
        for how in ({"between": ("x", "y")}, {}, {"reference": "rest"}):
            found = cvstats.contrast(log, by="group", **how).cvci.wald()["caution"]
            assert found.str.contains("few points").all() == flagged


def test_sources_may_be_the_groups():
    log = REGIONS["a"].rename_axis(index={"region": "source"})
    gap = log.cvci.contrast(by="source", between=("east", "west"))
    expected = REGIONS["a"].cvci.contrast(by="region", between=("east", "west"))
    pd.testing.assert_frame_equal(
        gap.cvci.interval(), expected.cvci.interval(), check_exact=False, rtol=1e-12
    )
    numbered = log.groupby(level="source").cumcount()
    nested = pd.Series(
        log.to_numpy(),
        multi_index(source=log.index.get_level_values("source"), point=numbered),
        name="a",
    )
    nested.attrs["points_are"] = "nested"
    again = nested.cvci.contrast(by="source", between=("east", "west")).cvci.interval()
    np.testing.assert_allclose(again["se"], gap.cvci.interval()["se"], rtol=1e-12)


def regions_array() -> xr.DataArray:
    """The same losses as an array, the regions a coordinate."""
    array = REGIONS.droplevel("region").to_xarray().to_dataarray("model")
    return array.assign_coords(region=("point", REGIONS.index.get_level_values("region")))


def test_arrays_carry_dimensions():
    array = regions_array()
    expected = REGIONS.cvci.contrast(by="region", between=("east", "west")).cvci.interval()
    grid = array.expand_dims(lead=[1, 2]) * xr.DataArray([1.0, 3.0], dims="lead")
    for log, take in ((array, lambda x: x), (grid, lambda x: x.isel(lead=0))):
        found = log.cvci.contrast(by="region", between=("east", "west")).cvci.interval()
        np.testing.assert_allclose(take(found["se"]), expected["se"], rtol=1e-12)
        np.testing.assert_allclose(take(found["df"]), expected["df"], rtol=1e-12)
    gaps = grid.cvci.contrast(by="region")
    assert gaps.cvci.interval()["se"].dims == ("contrast", "lead", "model")
    dataset = array.to_dataset("model")
    found = dataset.cvci.contrast(by="region", between=("east", "west")).cvci.interval()
    np.testing.assert_allclose(found["se"], expected["se"], rtol=1e-12)
    table = gaps.isel(lead=0).cvci.compare(reference="a")
    assert set(table.dims) == {"contrast", "pair"}


@pytest.mark.parametrize("loss", ["auc", "zero_one"])
def test_each_of_several_contrasts_has_the_limits_of_its_two_groups(loss):
    rng = np.random.default_rng(1)
    groups = np.array([*"xyz"])[np.arange(90) % 3]
    index = multi_index(site=groups, point=range(90))
    truth, noise = rng.integers(0, 2, 90), rng.random((2, 90))
    noise[0, groups == "x"] = 0  # without an error
    guess = 0.5 * truth + 0.6 * noise if loss == "auc" else truth ^ (noise < [[0.1], [0.3]])
    table = pd.DataFrame({"y": truth, "p": guess[0], "q": guess[1]}, index)
    options = {"by": "site"} if loss == "auc" else {}
    for models in ("p", ["p", "q"]):
        log = cvstats.losses(table, "y", models, loss, **options)
        array = log.droplevel("site").to_xarray()
        array = array if models == "p" else array.to_dataarray("model")
        array = array.assign_coords(site=("point", groups)).assign_attrs(log.attrs)
        for each in (log, array.expand_dims(lead=2)):
            every = each.cvci.contrast(by="site").cvci.interval()
            alone = each.cvci.contrast(by="site", between=("x", "z")).cvci.interval()
            found = (
                every.sel(contrast="x - z") if each is not log
                else every[every.index.get_level_values("contrast") == "x - z"]
            )  # fmt: skip
            for end in ("lower", "upper"):
                np.testing.assert_allclose(found[end], alone[end], rtol=1e-12)


def test_metrics_side_by_side():
    log = losses(["brier", "auc"], by="group")
    gaps = log.cvci.contrast(by="group", between=PAIR)
    table = gaps.cvci.interval(by="metric")
    for name in ("brier", "auc"):
        alone = (LOG if name == "brier" else losses("auc", by="group")).cvci.contrast(
            by="group", between=PAIR
        )
        np.testing.assert_allclose(
            table.loc[name, "se"].to_numpy(), alone.cvci.interval()["se"], rtol=1e-12
        )


def test_sentences():
    gap = losses("auc", by="group")["p"].cvci.contrast(by="group", between=PAIR)
    text = str(gap.cvci.summary()).replace("\n", " ")
    assert "difference in AUC (f - m) of p is −0.11 (95% interval −0.38 to 0.16)" in text
    assert "it is not statistically significant" in text
    page = gap.cvci.report()
    assert "difference between groups in the AUC of the trained model" in page
    assert "difference between groups in the difference" not in page
    gaps = LOG.cvci.contrast(by="group", between=PAIR)
    text = str(gaps.cvci.summary()).replace("\n", " ")
    assert "difference in Brier score (f - m) is 0.052 for p (95% interval −0.049 to 0.154)" in text
    assert "These differ by 0.037, which is not statistically significant (p = 0.52)." in text
    refuses("best_set ranks models, but a difference between", gaps.cvci.best_set)
    for result in (gap.cvci.interval(), gaps.cvci.compare(), gaps.cvci.compare(0)):
        assert result.attrs["contrast"] == "f - m"
        assert "contrast: f - m" in str(result)
        assert "contrast: f - m" in result._repr_html_()
    assert "groups (f - m) in 1 - AUC (95% CI)" in cvstats.to_markdown(gap.cvci.interval())
    text = cvstats.to_latex(cvstats.as_scores(gap.cvci.interval()))
    assert r"difference between groups (f $-$ m) in\\AUC" in text
    text = str(REGIONS.cvci.contrast(by="region", reference="rest").cvci.compare())
    assert "contrast:" not in text
    assert "a · " in text
    assert "('a'" not in text
    several = REGIONS["a"].cvci.contrast(by="region")
    refuses(r"To test all of them, type log\.cvci\.compare\(\)", several.cvci.summary)


def test_several_contrasts_in_an_array_are_tested_against_0_too():
    """It compared the models, and averaged the differences of the groups."""
    array = by_row(REGIONS)
    for one in (array, array.to_dataset(dim="model")):
        frame = REGIONS.cvci.contrast(by="region", reference="rest")
        gaps = one.cvci.contrast(by="region", reference="rest")
        found, expected = gaps.cvci.compare(), frame.cvci.compare()
        names = ["difference", "lower", "upper", "p_adjusted"]
        np.testing.assert_allclose(
            np.sort(found[names].to_array().values.reshape(len(names), -1)),
            np.sort(expected[names].to_numpy(float).T),
        )
        refuses("differences of several pairs of groups", gaps.cvci.summary)
        west = frame.xs("west - rest", level="contrast", axis=1).cvci.compare()
        alone = gaps.sel(contrast="west - rest").cvci.compare()
        assert float(alone["difference"].squeeze()) == pytest.approx(west["difference"].item())
        assert "These differ by" in str(gaps.sel(contrast="west - rest").cvci.summary())


def crossed() -> pd.Series:
    """Two judges of the same items."""
    return pd.Series(np.arange(20.0), product_index(judge=["x", "y"], point=range(10)))


def numbered():
    """Two groups with numbers as labels."""
    return pd.Series(np.arange(20.0), multi_index(day=np.arange(20) % 2, point=np.arange(20)))


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: REGIONS, {"by": "sex"}, "no level 'sex'"),
        (lambda: REGIONS, {"by": "region", "between": ("east", "south")}, "Unknown group 'south'"),
        (lambda: REGIONS, {"by": "region", "between": "east"}, "Expected two labels"),
        (lambda: REGIONS, {"by": "region", "between": ("east", "east")}, "the same group twice"),
        (numbered, {"by": "day", "between": (1,)}, "between=(0, 1)"),
        (numbered, {"by": "day", "between": (np.int64(1),) * 2}, "between=(1, 1) names"),
        (lambda: REGIONS, {"by": "region", "between": PAIR, "reference": "f"},
         "Expected only one of"),
        (lambda: REGIONS.iloc[:60], {"by": "region"}, "one label of 'region', 'east'"),
        (lambda: REGIONS.iloc[59:], {"by": "region"}, "'east' of 'region' has one point. Expected"),
        (lambda: crossed().iloc[:-5], {"by": "judge"},
         "the same points occur under several labels of 'judge', such as judge='x', point=0."),
        (lambda: losses("auc"), {"by": "group"},
         "the groups by 'group' split the cells (the whole log) on which auc was computed"),
        (lambda: LOG.cvci.contrast(by="group"), {"by": "group"}, "by 'group' split the cells"),
        (lambda: regions_array().chunk(), {"by": "region"}, "log.compute"),
        (lambda: REGIONS.to_xarray(), {"by": "region"}, "is a dimension of this array"),
    ],
)  # fmt: skip
def test_refusals(make, options, words):
    refuses(re.escape(words), make().cvci.contrast, **options)


def test_one_source_in_a_group_is_refused():
    log = losses(sites=True)["p"]
    sites = log.index.get_level_values("source")
    alone = log[(log.index.get_level_values("group") == "m") | (sites == sites[2])]
    alone.attrs = log.attrs
    refuses("come from one source", alone.cvci.contrast, by="group")
    gap = log.cvci.contrast(by="group", between=PAIR)
    advice = re.escape("cvstats.contrast(losses_of_the_part, …).")
    refuses(f"split the cells .* of each group: {advice}", gap.cvci.wald, by="group")
    refuses(f"part of a log .* of the part: {advice}", gap.iloc[:40].cvci.wald)
    refuses("if the log has differences", LOG.cvci.compare, 0)


def wards(seed=0, repetitions=1):
    """Predictions in 30 sites of 20: 6 sites have the wards a and b, the others c and d."""
    rng = np.random.default_rng(seed)
    site, point = np.repeat(np.arange(30), 20), np.arange(600)
    ward = np.where(site < 6, np.where(point % 2, "a", "b"), np.where(point % 3, "c", "d"))
    truth = rng.integers(0, 2, 600)
    parts = []
    for repetition in range(repetitions):
        order = np.r_[rng.permutation(6), 6 + rng.permutation(24)]  # each fold has 2 of 6 sites
        guess = truth + rng.normal(size=600) + rng.normal(size=(30, 2))[site, (ward == "a") * 1]
        parts.append(pd.DataFrame({
            "repetition": repetition, "fold": order[site] % 3, "source": site, "ward": ward,
            "point": point, "y_true": truth, "p": guess, "q": guess + rng.normal(size=600),
        }))  # fmt: skip
    return pd.concat(parts).set_index(["repetition", "fold", "source", "ward", "point"])


@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.parametrize(
    ("loss", "options"),
    [("squared_error", {}), ("auc", {"by": "ward", "folds": "pool"}), ("auc", {"by": "ward"})],
    ids=["loss", "pooled", "averaged"],
)
def test_sources_without_points_of_the_two_groups_are_not_counted(loss, options, repetitions):
    """They were, so 95% intervals for 5 of 40 sites covered 84%, and 64% for averaged AUCs."""
    table = wards(repetitions=repetitions)
    of_two = table[table.index.get_level_values("ward").isin(["a", "b"])]
    whole, part = (
        cvstats.losses(each, prediction=["p", "q"], loss=loss, **options)
        for each in (table, of_two)
    )
    names = ["estimate", "se", "lower", "upper", "df"]
    expected = part.cvci.contrast(by="ward", between=("a", "b")).cvci.interval()
    alone = whole.cvci.contrast(by="ward", between=("a", "b"))
    every = whole.cvci.contrast(by="ward").cvci.interval()
    for found in (alone.cvci.interval(), every.xs("a - b", level="contrast")):
        np.testing.assert_allclose(found[names], expected[names], rtol=1e-9)
        assert found["caution"].str.contains("few clusters").all()
    others = every.xs("c - d", level="contrast")
    assert (others["df"].round(6) == 23).all()
    gap = part.cvci.contrast(by="ward", between=("a", "b"))
    names = ["difference", "lower", "upper", "p_value"]
    for ask in ({}, {"other": 0}):
        found, expected = (log["p" if ask else ["p", "q"]].cvci.compare(**ask)
                           for log in (alone, gap))  # fmt: skip
        np.testing.assert_allclose(found[names], expected[names], rtol=1e-9)


def test_sources_without_points_of_the_two_groups_in_an_array():
    log = cvstats.losses(wards().droplevel("repetition"), prediction=["p", "q"])
    table = log.reset_index()
    array = xr.DataArray(
        log.to_numpy(), dims=("point", "model"),
        coords={"model": ["p", "q"], "point": table["point"]}
        | {name: ("point", [*table[name]]) for name in ("fold", "source", "ward")},
    )  # fmt: skip
    expected = log.cvci.contrast(by="ward", between=("a", "b")).cvci.interval()
    for form in (array, array.to_dataset("model")):
        found = form.cvci.contrast(by="ward", between=("a", "b")).cvci.interval()
        for name in ("estimate", "se", "lower", "upper", "df"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)
        assert set(cvstats.cautions(found).to_numpy()) == {"few clusters"}


def test_a_summary_counts_the_points_of_the_two_groups():
    log = cvstats.losses(wards(repetitions=2), prediction="p")
    for each in (log, log[log.index.get_level_values("ward").isin(["a", "b"])]):
        words = str(each.cvci.contrast(by="ward", between=("a", "b")).cvci.summary())
        assert "measured on 120 points" in words.replace("\n", " ")


@pytest.mark.parametrize("group", ["ward", "own"])
def test_counts_are_those_of_the_two_groups(group):
    """They were those of the log; ``own`` groups share no source."""
    log = cvstats.losses(wards(), prediction="p")
    frame = log.reset_index()
    frame["own"] = np.where(frame["source"] < 3, "a", np.where(frame["source"] < 6, "b", "c"))
    log = frame.set_index([*log.index.names, "own"])[["p"]]
    gap = log.cvci.contrast(by=group, between=("a", "b"))
    for result in (gap.cvci.interval(), gap.cvci.compare(0), gap.cvci.clustered(), gap.cvci.wald()):
        assert result.attrs["n_points"] == 120
        assert result.attrs.get("n_clusters", 6) == 6
    assert "n = 120 points in 6 sources" in cvstats.to_apa(gap.cvci.interval())
    assert "measured on 120 points from 6 sources" in " ".join(str(gap.cvci.summary()).split())


@pytest.mark.parametrize("form", ["array", "models", "dataset"])
def test_a_dimension_with_the_same_points_is_compared_like_models(form):
    """The first call led to a second error, whose call is one for pandas only."""
    array = xr.DataArray(
        np.random.default_rng(0).random((40, 3)), dims=("point", "lead"),
        coords={"point": range(40), "lead": [1, 2, 3]},
    )  # fmt: skip
    log: object = array
    if form != "array":
        models = xr.Dataset({"a": array, "b": array + 1})
        log = models if form == "dataset" else models.to_dataarray("model")
    with pytest.raises(cvstats.LogError, match="is a dimension of this array") as error:
        log.cvci.contrast(by="lead")
    call = re.search(r"like models: (.*\))\. Otherwise", str(error.value)).group(1)
    found = eval(call, {"log": log})
    assert found["pair"].size == 3


def coverage_of_0(table) -> float:
    """Share of the rows whose interval contains 0."""
    return float(((table["lower"] <= 0) & (table["upper"] >= 0)).mean())


def simulate_sites(runs: int, sites: int, seed: int, *, alike: bool) -> tuple[float, float]:
    """Share of logs whose interval contains 0: by points, and by sites; 20 points a site."""
    random = np.random.default_rng(seed)
    per = 20
    site = np.repeat(np.arange(sites), per)
    group = np.tile(np.repeat(["f", "m"], per // 2), sites)
    effect = random.normal(0, 0.5, (2, sites, runs))
    if alike:
        effect[1] = effect[0]
    values = random.exponential(1, (len(site), runs)) + effect[(group == "m").astype(int), site]
    index = multi_index(
        fold=np.zeros(len(site), int), source=site, group=group, point=np.arange(len(site))
    )
    log = pd.DataFrame(values, index, columns=range(runs))
    gap = log.cvci.contrast(by="group", between=PAIR)
    by_sites = gap.cvci.interval()
    by_points = log.droplevel("source").cvci.contrast(by="group", between=PAIR).cvci.interval()
    return coverage_of_0(by_points), coverage_of_0(by_sites)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(4, 8), (10, 10), (5, 35)])
def test_coverage_with_sites_of_one_group_each(sizes):
    random = np.random.default_rng(1)
    number, runs, per = sum(sizes), 2000, 10
    site = np.repeat(np.arange(number), per)
    values = random.normal(size=(number * per, runs)) + random.normal(size=(number, runs))[site]
    index = multi_index(
        fold=0 * site,
        source=site,
        group=np.where(site < sizes[0], "f", "m"),
        point=np.arange(len(site)),
    )
    gap = pd.DataFrame(values, index, columns=range(runs)).cvci.contrast(by="group", between=PAIR)
    assert 0.93 <= coverage_of_0(gap.cvci.interval()) <= 0.965


@pytest.mark.slow
@pytest.mark.parametrize("sites", [12, 40])
def test_coverage_with_sites_whose_effect_differs_by_group(sites):
    by_points, by_sites = simulate_sites(1000, sites, seed=4, alike=False)
    assert by_points < 0.88
    assert 0.93 <= by_sites <= 0.97
    _, by_sites = simulate_sites(1000, sites, seed=5, alike=True)
    assert 0.93 <= by_sites <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 1000])
def test_coverage_of_the_difference_of_two_aucs(n):
    random, hits = np.random.default_rng(8), []
    for _ in range(1000):
        group = np.where(random.random(n) < 0.3, "f", "m")
        y = random.random(n) < 0.4
        frame = pd.DataFrame(
            {"y": y.astype(int), "p": random.normal(y * 1.0)},
            multi_index(group=group, point=np.arange(n)),
        )
        log = cvstats.losses(frame, truth="y", prediction="p", loss="auc", positive=1, by="group")
        hits.append(coverage_of_0(log.cvci.contrast(by="group", between=PAIR).cvci.holdout()))
    assert 0.925 <= np.mean(hits) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 1000])
def test_coverage_of_the_difference_of_two_brier_scores(n):
    random = np.random.default_rng(9)
    group = np.where(np.arange(n) < 0.3 * n, "f", "m")
    x = random.normal(size=(n, 1000))
    y = random.random((n, 1000)) < special.expit(x)
    values = (y - special.expit(0.8 * x + 0.3)) ** 2
    index = multi_index(fold=np.arange(n) % 5, group=group, point=np.arange(n))
    gap = pd.DataFrame(values, index, range(1000)).cvci.contrast(by="group", between=PAIR)
    assert 0.93 <= coverage_of_0(gap.cvci.interval()) <= 0.965


@pytest.mark.slow
def test_coverage_of_the_difference_of_two_aucs_with_sites():
    """By points and by sites, where a score is better at some sites for one group."""
    random, hits = np.random.default_rng(10), []
    site = np.repeat(np.arange(40), 20)
    group = np.tile(np.repeat(["f", "m"], 10), 40)
    index = multi_index(fold=0 * site, source=site, group=group, point=np.arange(800))
    for _ in range(1000):
        good = random.normal(1, 0.8, (2, 40))[(group == "m").astype(int), site]
        y = random.random(800) < 0.4
        frame = pd.DataFrame({"y": y.astype(int), "p": random.normal(y * good)}, index)
        log = cvstats.losses(frame, truth="y", prediction="p", loss="auc", positive=1, by="group")
        gap = log.cvci.contrast(by="group", between=PAIR)
        hits.append([coverage_of_0(gap.cvci.holdout()), coverage_of_0(gap.cvci.interval())])
    by_points, by_sites = np.mean(hits, axis=0)
    assert by_points < 0.92
    assert 0.93 <= by_sites <= 0.97


def test_the_first_group_counts_as_it_is_and_the_second_reversed():
    rng = np.random.default_rng(0)
    index = multi_index(point=range(40), group=np.arange(40) % 2)
    losses = pd.Series(rng.gamma(2.0, size=40), index)
    found = cvstats.contrast(losses, by="group", between=(0, 1))
    for group, sign in ((0, 1.0), (1, -1.0)):
        pair = [log.xs(group, level="group").to_numpy() for log in (losses, found)]
        assert np.corrcoef(*pair)[0, 1] == pytest.approx(sign)
