"""The interval of a difference from the intervals of both models: compare(method="union")."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal
from rows import multi_index, product_index
from scipy import optimize, stats

import cvstats
from cvstats.errors import LogError

RNG = np.random.default_rng(60)


def models(n=60, k=5, repetitions=2, names="abc"):
    rep, row = np.repeat(np.arange(repetitions), n), np.tile(np.arange(n), repetitions)
    index = multi_index(repetition=rep, fold=(row + rep) % k, source=row // 6, point=row)
    losses = RNG.normal(size=(n, 1))[row] + RNG.normal(size=(len(row), len(names)))
    return pd.DataFrame(losses + np.arange(len(names)), index, list(names))


FRAME = models()
PLAIN = FRAME.droplevel("source")


@pytest.mark.parametrize(
    ("method", "options"),
    [("wald", {}), ("wald", {"variance": "within-fold"}), ("corrected_t", {}), ("quadratic", {})],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_limits_are_those_of_both_models_at_half_the_level(method, options, alpha):
    log = PLAIN.xs(0, level="repetition") if method == "quadratic" else PLAIN
    each = getattr(log.cvci, method)(alpha=alpha / 2, **options)
    asked = {**options, "method": method}
    found = log.cvci.compare(method="union", options=asked, alpha=alpha)
    for (one, two), row in found.iterrows():
        assert row["difference"] == pytest.approx(
            each.loc[one, "estimate"] - each.loc[two, "estimate"], rel=1e-12
        )
        assert row["lower"] == each.loc[one, "lower"] - each.loc[two, "upper"]
        assert row["upper"] == each.loc[one, "upper"] - each.loc[two, "lower"]
        assert np.isnan(row["se"])
    assert found.attrs["interval_method"] == "union"
    assert found.attrs["interval_of_each"] == method
    assert found.attrs["target"] == f"difference of two models in the {each.attrs['target']}"
    assert found.attrs["alpha"] == alpha


REFUSALS = {
    "one-sided": ({"alternative": "less"}, "needs a standard error, but union"),
    "max-t": ({"adjust": "max-t"}, "those of union with these options do not"),
    "inside": ({"options": {"method": "union"}}, "Invalid method='union'. Expected one of"),
    "nobody's": ({"options": {"variance": "within-fold"}}, "options= requires method="),
    "option": (
        {"options": {"method": "wald", "train_size": 3}},
        "wald has no option 'train_size' for differences. Valid options: 'interval', 'variance'",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    options, words = REFUSALS[case]
    assert words in refusal(PLAIN.cvci.compare, method="union", **options)


def test_an_interval_for_proportions_serves_for_each_model():
    binary = (PLAIN.xs(0, level="repetition").droplevel("fold") > 0).astype(float)
    found = binary.cvci.compare(method="union", options={"method": "holdout", "interval": "wilson"})
    each = binary.cvci.holdout(interval="wilson", alpha=0.025)
    row = found.loc[("a", "b")]
    assert row["lower"] == each.loc["a", "lower"] - each.loc["b", "upper"]
    with pytest.raises(LogError, match="a difference is not one"):
        binary.cvci.compare(method="holdout", options={"interval": "wilson"})


@pytest.mark.parametrize(("gap", "statistic", "p"), [(0.0, 0.0, 1.0), (1.0, -np.inf, 0.0)])
def test_models_of_one_loss_each(gap, statistic, p):
    log = PLAIN[["a", "b"]] * 0.0 + [1.0, 1.0 + gap]
    row = log.cvci.compare(method="union").iloc[0]
    assert (row["statistic"], row["p_value"]) == (statistic, p)


def crossed(order="ab", gap=2.2, seed=6):
    """Losses in six sources and 60 points: one model varies between sources, one between points."""
    rng = np.random.default_rng(seed)
    index = product_index(source=range(6), point=range(60))
    a = 5 + np.repeat(0.8 * rng.normal(size=6), 60) + 0.3 * rng.normal(size=360)
    b = 5 + gap + np.tile(0.8 * rng.normal(size=60), 6) + 0.3 * rng.normal(size=360)
    return pd.DataFrame({"a": a, "b": b}, index)[list(order)]


def as_array(frame):
    return frame.rename_axis(columns="model").stack().to_xarray()


ROADS = {
    "frame": lambda log: log.cvci,
    "array": lambda log: as_array(log).cvci,
    "dask": lambda log: as_array(log).chunk(model=1).cvci,
    "moments": lambda log: cvstats.Moments.of_log(log, by=["source", "point"], pairs=True),
}


def union_of(owner, **options):
    table = owner.compare(method="union", **options)
    if not isinstance(table, pd.DataFrame):
        table = table.compute().to_dataframe()
    return table[["difference", "lower", "upper", "statistic", "p_value"]].astype(float).iloc[0]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("gap", [0.3, 2.2])
def test_p_values_of_models_with_different_degrees_of_freedom_agree_with_limits(road, gap):
    asked = {"options": {"method": "clustered", "by": ("source", "point")}}
    if road == "dask":  # lazy labels are not compared
        asked["points"] = "crossed"
    one, two = (union_of(ROADS[road](crossed(order, gap)), **asked) for order in ("ab", "ba"))
    each = crossed(gap=gap).cvci.clustered(by=("source", "point"))
    assert each["df"].nunique() == 2
    mirrored = [-two["difference"], -two["upper"], -two["lower"], -two["statistic"]]
    np.testing.assert_allclose(one.iloc[:4], mirrored, rtol=1e-12)
    assert one["p_value"] == pytest.approx(two["p_value"], rel=1e-12)
    alpha = min(one["p_value"], 0.999)
    ends = union_of(ROADS[road](crossed(gap=gap)), **asked, alpha=alpha)
    if one["p_value"] < 1:
        assert ends[["lower", "upper"]].abs().min() == pytest.approx(0, abs=1e-9)
    else:
        assert ends["lower"] < 0 < ends["upper"]
    assert (one["p_value"] < 0.05) == (one["lower"] > 0 or one["upper"] < 0)


def test_the_p_value_of_different_degrees_of_freedom_by_hand():
    each = crossed().cvci.clustered(by=("source", "point"))
    gap = abs(each["estimate"]["a"] - each["estimate"]["b"])

    def surplus(alpha):
        return (stats.t.isf(alpha / 4, each["df"]) * each["se"]).sum() - gap

    p = optimize.brentq(surplus, 1e-9, 1, xtol=1e-14)
    assert p == pytest.approx(0.0533, abs=1e-4)
    assert union_of(crossed().cvci)["p_value"] == pytest.approx(p, rel=1e-9)


def test_each_carried_cell_has_the_p_value_of_its_own_degrees_of_freedom():
    logs = [crossed(seed=seed) for seed in range(4)] + [crossed(gap=0.0) * 0 + [1, 2]]
    grid = xr.concat([as_array(log) for log in logs], "lat")
    found = grid.cvci.compare(method="union")["p_value"].values.ravel()
    alone = [union_of(log.cvci)["p_value"] for log in logs]
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    assert alone[-1] == 0


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_model_without_variance_leaves_the_quantile_of_the_other(order):
    log = crossed(order).assign(b=7.2)
    each = log.cvci.clustered(by=("source", "point")).loc["a"]
    p = 4 * stats.t.sf(abs(each["estimate"] - 7.2) / each["se"], each["df"])
    assert union_of(log.cvci)["p_value"] == pytest.approx(p, rel=1e-9)


def test_limits_of_bounded_losses_have_no_p_value():
    log = PLAIN.xs(0, level="repetition").droplevel("fold")[["a", "b"]].rank(pct=True)
    options = {"method": "holdout", "interval": "bernstein", "bounds": (0, 1)}
    row = log.cvci.compare(method="union", options=options).iloc[0]
    each = log.cvci.holdout(interval="bernstein", bounds=(0, 1), alpha=0.025)
    assert row["lower"] == each.loc["a", "lower"] - each.loc["b", "upper"]
    assert np.isnan(row["p_value"])
    assert "no p-value" in row["caution"]
