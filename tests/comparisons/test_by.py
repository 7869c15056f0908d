"""One answer for each label of a level: the same as asking each part of the log by itself."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from grouped_logs import log_of, random_rows
from rows import multi_index, only_row, product_index, with_counts
from statsmodels.stats.multitest import multipletests
from strategies import ARRAYS, by_row

import cvstats


def label_of(frame, by):
    return frame.index.get_level_values(by)


def test_curves_over_rho():
    log = log_of(random_rows((3, 4, 5), 3))
    rhos = np.array([0, 0.1, 0.5])
    curve = cvstats.decompose(log, rho=rhos)
    assert curve.index.tolist() == [0, 0.1, 0.5]
    assert curve.index.name == "rho"
    for rho in rhos:
        single = only_row(cvstats.decompose(log, rho=float(rho)))
        assert curve.loc[rho, "theta"] == single["theta"]
    frame = pd.DataFrame({"a": log, "b": -log})
    assert cvstats.decompose(frame, rho=[0.2]).index.names == ["rho", "model"]
    index = product_index(site=range(2), fold=range(2), point=range(3))
    index = pd.MultiIndex.from_tuples(
        [(s, f, f"{s}{f}{p}") for s, f, p in index], names=index.names
    )
    both = pd.Series(np.arange(12.0) ** 2, index=index)
    table = cvstats.decompose(both, rho=(0.1, 0.2), by="site")
    assert table.index.names == ["site", "rho"]
    site = both[label_of(both, "site") == 1]
    assert table.loc[(1, 0.2), "theta"] == only_row(cvstats.decompose(site, rho=0.2))["theta"]
    array = ARRAYS["stacked"](frame)
    assert cvstats.decompose(array, rho=[0, 0.5])["theta"].dims == ("rho", "model")
    for bad, words in [([0, 1.0], "out of range"), ([], "empty"), ("x", "finite number")]:
        refuses(words, cvstats.decompose, log, rho=bad)


def test_a_part_without_an_answer_is_named():
    log = log_of(random_rows((1, 4, 1), 6))
    assert refusal(cvstats.wald, log, by="source") == (
        "2 of the 3 groups by 'source' could not be computed ('s0', 's2'). The first error is "
        "for source='s0': wald needs at least two points, but this log has 1. To omit such groups, "
        "type log.drop(['s0', …], level='source') in pandas."
    )
    refuses(r"^Invalid variance='x'", cvstats.wald, log, by="source", variance="x")
    kept = log.drop(["s0", "s2"], level="source")
    assert len(cvstats.wald(kept, by="source")) == 1


def sites(binary=False, seed=0):
    """Three models in four folds, on points of three sites."""
    n = np.arange(180)
    index = multi_index(fold=n % 4, site=n % 3, point=n)
    losses = np.random.default_rng(seed).random((180, 3)) ** [1.0, 1.2, 2.0]
    return pd.DataFrame((losses > 0.4) * 1.0 if binary else losses, index, list("abc"))


COMPARED = {
    "holm": {},
    "bh": {"reference": "a", "adjust": "bh"},
    "max-t": {"adjust": "max-t", "rng": 0, "n_draws": 199},
    "none": {"adjust": None, "method": "corrected_t", "options": {"train_size": 90}},
    "within-fold": {"method": "wald", "options": {"variance": "within-fold"}},
    "clustered": {"method": "clustered", "options": {"by": "fold"}},
    "union": {"method": "union"},
    "one-sided": {"alternative": "less"},
}


@pytest.mark.parametrize(
    ("case", "binary"), [*((case, False) for case in COMPARED), ("holm", True), ("one-sided", True)]
)
def test_comparisons_for_each_label(case, binary):
    log, options = sites(binary), COMPARED[case]
    found = with_counts(log.cvci.compare(by="site", **options))
    assert found.index.names == ["site", "model", "other"]
    parts = {k: log.xs(k, level="site").cvci.compare(**options) for k in (0, 1, 2)}
    wanted = pd.concat({k: with_counts(part) for k, part in parts.items()}, names=["site"])
    if case not in ("max-t", "none"):
        method = {"holm": "holm", "bh": "fdr_bh"}[options.get("adjust", "holm")]
        wanted["p_adjusted"] = multipletests(wanted["p_value"], method=method)[1]
        normal = ~wanted["caution"].str.contains("few discordant")
        nine = case in ("holm", "within-fold", "union")  # two-sided tests of 60 points each
        wanted["caution"] += np.where(normal & nine, "too many models", "")
    pd.testing.assert_frame_equal(found, wanted[list(found)], rtol=1e-12, check_dtype=False)


def test_comparisons_for_each_label_in_every_container():
    log = sites()
    table = log.cvci.compare(by="site", reference="a")
    one = log["b"].cvci.compare(log["a"].sample(frac=1, random_state=1), by="site", adjust=None)
    pd.testing.assert_frame_equal(one, table.loc[[(k, "b", "a") for k in (0, 1, 2)], list(one)])
    grid = site_grid(binary=False)
    found = grid.cvci.compare(by="site", reference="a")
    assert found["difference"].dims == ("site", "pair", "lat")
    for lat, losses in enumerate((log, log**2)):
        wanted = losses.cvci.compare(by="site", reference="a")
        for (k, model, _), row in wanted.iterrows():
            ours = found.isel(lat=lat).sel(site=k).isel(pair=["b", "c"].index(model))
            for name in ("difference", "se", "lower", "upper", "p_value"):
                assert float(ours[name]) == pytest.approx(row[name], rel=1e-10)
    together = np.sort(multipletests(found["p_value"].values.ravel(), method="holm")[1])
    np.testing.assert_allclose(np.sort(found["p_adjusted"].values.ravel()), together)
    plain = log.droplevel("fold")
    halves = [
        cvstats.Moments.of_log(half, pairs=True, by="site") for half in (plain[:90], plain[90:])
    ]
    streamed = (halves[0] + halves[1]).compare(by="site")
    pd.testing.assert_frame_equal(streamed, plain.cvci.compare(by="site"), rtol=1e-11)
    gaps = log.copy()
    gaps.iloc[[3, 10, 77], 1] = np.nan
    dropped = gaps.cvci.compare(by="site", missing="drop", adjust=None)
    alone = pd.concat(
        [gaps.xs(k, level="site").cvci.compare(missing="drop", adjust=None) for k in (0, 1, 2)]
    )
    np.testing.assert_allclose(dropped["se"], alone["se"], rtol=1e-12)
    each = gaps.cvci.interval(by="site", missing="drop")  # by the folds before losses were dropped
    alone = [gaps.xs(k, level="site").cvci.interval(missing="drop")["se"] for k in (0, 1, 2)]
    np.testing.assert_allclose(each["se"], np.concatenate(alone), rtol=1e-12)


@pytest.mark.parametrize("names", [["b", "c", "a"], [10, 2, 30], [10, 2, "a"]])
def test_labels_have_the_same_order_in_every_container(names):
    log = sites().rename(index=dict(enumerate(names)), level="site").iloc[::-1]
    log.index = pd.MultiIndex.from_frame(log.index.to_frame())  # labels in their order
    array = by_row(log)
    wanted = list(log.cvci.wald(by="site").index.unique("site"))
    for losses in (array, array.chunk(row=40)):
        assert losses.cvci.wald(by="site")["site"].values.tolist() == wanted
    for losses in (log, array):
        lines = str(losses.cvci.summary(by="site")).split("\n")
        assert [line for line in lines if "site=" in line] == [f"site={name}" for name in wanted]
    contrasts = array.cvci.contrast(by="site")["contrast"].values.tolist()
    assert contrasts == list(log.cvci.contrast(by="site").columns.unique("contrast"))


def site_grid(binary):
    log = sites(binary)
    array = log.droplevel(["fold", "site"]).to_xarray().to_array("model")
    array = array.assign_coords(
        {k: ("point", log.index.get_level_values(k)) for k in ("fold", "site")}
    )
    return xr.concat([array, 1 - array if binary else array**2], "lat")


@pytest.mark.parametrize(
    ("case", "binary"),
    [*((case, False) for case in ("bh", "max-t", "clustered", "union")), ("holm", True)],
)
def test_lazy_comparisons_for_each_label(case, binary):
    grid, options = site_grid(binary), COMPARED[case]
    wanted = grid.cvci.compare(by="site", **options)
    for chunks in ({"lat": 1}, {"point": 100, "model": 2}):
        found = grid.chunk(chunks).cvci.compare(by="site", **options)
        assert found.chunks
        xr.testing.assert_allclose(found.compute()[list(wanted)], wanted, rtol=1e-10)


def test_groups_that_share_folds_have_no_training_sizes_in_any_container():
    log, options = sites(), {"by": "site", "method": "corrected_t"}
    moments = cvstats.Moments.of_log(log, by=["fold", "site"], pairs=True)
    for ours in (log.cvci, moments, site_grid(False).cvci, site_grid(False).chunk(lat=1).cvci):
        refuses("each fold contains points of several labels", ours.compare, **options)


@pytest.mark.parametrize("level", ["source", "site"])
def test_groups_with_folds_of_their_own_have_the_training_sizes_of_each(level):
    log = sites()["a"].reset_index().iloc[30:]
    names = log["site"].map({0: "x", 1: "y", 2: "z"})
    log[level], log["fold"] = names, names + log["fold"].astype(str)
    log = log.set_index([level, "fold", "point"])["a"]
    found = cvstats.corrected_t(log, by=level)
    for label in "xyz":
        alone = cvstats.corrected_t(log.xs(label, level=level))
        names = ["estimate", "lower", "upper"]
        np.testing.assert_allclose(found.loc[label, names], alone[names].iloc[0], rtol=1e-12)


def test_what_comparisons_for_each_label_refuse():
    log = sites()
    refuses("no level 'sites'.* Did you mean 'site'", log.cvci.compare, by="sites")
    mixed = log[(log.index.get_level_values("site") > 0) | (log.index.get_level_values("fold") < 1)]
    words = r"2 of the 3 groups.*would use wald here but holdout for the first.*one method for all"
    refuses(words, mixed.cvci.compare, by="site")
    with pytest.raises(TypeError, match="wald.. got an unexpected option 'alhpa'.* mean 'alpha'"):
        log.cvci.wald(alhpa=0.1)
    table = log.cvci.difference(reference="a").cvci.wald(by="site")
    ours = log.cvci.compare(by="site", reference="a", method="wald")
    np.testing.assert_allclose(table["se"], ours["se"])


def test_comparisons_without_labels_name_the_call_for_each_label_and_it_runs():
    log = sites()
    moments = cvstats.Moments.of_log(log, by=["fold", "site"], pairs=True)
    answers = []
    for owner, way in (
        (log.cvci, "log.cvci"),
        (site_grid(False).cvci, "log.cvci"),
        (site_grid(False).chunk(lat=1).cvci, "log.cvci"),
        (moments, "moments"),
    ):
        for name, options in (("equivalence", {"margin": 0.1}), ("power", {"effect": 0.1})):
            with pytest.raises(TypeError) as error:
                getattr(owner, name)(by="site", **options)
            assert str(error.value).startswith(f"{name}() got an unexpected option 'by'. ")
            advice = f" For the difference at each label, use {way}.compare(by='site')."
            assert str(error.value).endswith(advice)
        answers.append(owner.compare(by="site"))
    pd.testing.assert_frame_equal(answers[-1], answers[0], check_exact=False)
    with pytest.raises(TypeError, match="Valid options: [a-z_, ]*[.]$"):
        log.cvci.equivalence(by=("site", "fold"), margin=0.1)


def test_differences_that_are_rounding_in_some_group():
    """One group after the other, as each alone: twins and copies with another rounding."""
    log = sites()
    log["b"] = np.where(log.index.get_level_values("site") == 1, log["a"] + 1e-17, log["b"])
    log["c"] = np.where(log.index.get_level_values("site") == 2, log["a"] * (1 + 1e-16), log["c"])
    found = log.cvci.compare(by="site", adjust=None)
    alone = pd.concat([log.xs(k, level="site").cvci.compare(adjust=None) for k in (0, 1, 2)])
    for name in ("difference", "se", "p_value", "caution"):
        assert found[name].tolist() == alone[name].tolist()
    runs = pd.concat([sites(), sites(seed=1)], keys=[0, 1], names=["repetition"]).droplevel("fold")
    twice = runs.cvci.compare(by="site", adjust=None)
    alone = pd.concat([runs.xs(k, level="site").cvci.compare(adjust=None) for k in (0, 1, 2)])
    np.testing.assert_allclose(twice["se"], alone["se"], rtol=1e-12)
    assert twice.attrs["interval_method"] == alone.attrs["interval_method"] == "holdout"


def test_sources_are_whole_in_the_folds_of_one_group_only():
    """Its differences have degrees of freedom, and those of the other group do not."""
    point, rng = np.tile(np.arange(60), 2), np.random.default_rng(0)
    levels = {
        "repetition": np.repeat([0, 1], 60), "fold": rng.integers(0, 3, 120),
        "site": np.where(point % 3, "m", "f"), "source": point // 2, "point": point,
    }  # fmt: skip
    index = pd.MultiIndex.from_frame(pd.DataFrame(levels))
    log = pd.DataFrame(rng.gamma(2.0, size=(120, 2)), index, list("ab"))
    found = log.cvci.compare(by="site")
    assert found["df"].isna().tolist() == [False, True]
    alone = pd.concat([log.xs(site, level="site").cvci.compare() for site in "fm"])
    pd.testing.assert_series_equal(
        found["p_value"].droplevel("site"), alone["p_value"], check_exact=True
    )


def test_repetitions_are_used_for_labels_that_share_some_points():
    """As for lead times of which one has fewer dates: they were compared without the refits."""
    rng = np.random.default_rng(0)
    sizes = {"long": 40, "short": 25}
    parts = {}
    for lead, n in sizes.items():
        folds = np.concatenate([rng.permutation(n) % 3 for _ in range(2)])
        levels = [np.repeat(range(2), n), folds, np.tile(range(n), 2)]
        index = pd.MultiIndex.from_arrays(levels, names=["repetition", "fold", "point"])
        parts[lead] = pd.DataFrame(rng.normal(size=(2 * n, 2)), index, list("ab"))
    whole = pd.concat(parts, names=["lead"])
    alone = [part.cvci.compare()["se"].item() for part in parts.values()]
    for log in (whole, by_row(whole), by_row(whole).chunk(row=30)):  # lazy: it was a ValueError
        found = log.cvci.compare(by="lead")
        assert found.attrs["interval_method"] == "refit_corrected"
        np.testing.assert_allclose(np.ravel(found["se"]), alone, rtol=1e-12)


def test_interval_takes_one_method_for_all_labels():
    n = 120
    index = multi_index(fold=np.arange(n) % 5, region=np.arange(n) // 40, point=np.arange(n))
    log = pd.Series(np.random.default_rng(0).normal(size=n), index, name="net")
    found = cvstats.interval(log, by="region")
    assert found.attrs["reason"].startswith("region=0: a partition into 5 folds")
    pd.testing.assert_frame_equal(found, log.cvci.wald(by="region"))
    named = cvstats.interval(log, by="region", method="naive")
    pd.testing.assert_frame_equal(named, log.cvci.naive(by="region"))
    errors = (log > 1).astype(float)
    assert cvstats.interval(errors, by="region").attrs["interval"].startswith("wilson")
    kept = log[(label_of(log, "region") > 0) | (label_of(log, "fold") == 0)]
    words = refusal(cvstats.interval, kept, by="region")
    assert "different default methods: holdout for 0, but wald for 1. Pass a method" in words
    assert words.endswith("method='wald').")  # holdout refuses the region 1
    refuses("no level 'site'", cvstats.interval, log, by="site")


def test_the_method_that_is_named_is_one_for_all_labels():
    source = np.tile(np.arange(120) % 12, 2)
    levels = {"segment": np.repeat(["x", "y"], 120), "source": source, "point": np.arange(240)}
    index = multi_index(**levels)
    log = pd.DataFrame({"fold": np.where(index.codes[0] == 0, source, source // 2)}, index)
    log = log.assign(net=np.arange(240.0) % 7).set_index("fold", append=True)
    words = refusal(cvstats.interval, log, by="segment")
    assert "out_of_source for 'x', but clustered for 'y'. Pass a method by name" in words
    assert words.endswith("method='clustered').")
    splits = log.droplevel(["fold", "source"]).reset_index()
    splits["repetition"] = np.where(splits["segment"] == "x", np.arange(240) // 30 % 4, 0)
    splits = splits.set_index(["segment", "repetition", "point"])
    splits.attrs["n_train"] = 90
    words = refusal(cvstats.interval, splits, by="segment")
    assert words.endswith(
        "corrected_t for 'x', but holdout for 'y'. Analyze each label separately."
    )


def test_interval_of_a_lazy_array_by_label():
    rng = np.random.default_rng(0)
    crossed = {"source": ("point", np.arange(40) // 5), "point": np.arange(40) % 5}
    levels = {"one set": {}, "crossed": crossed, "clusters": {"source": crossed["source"]}}
    for name, coords in levels.items():
        losses = xr.DataArray(
            rng.normal(size=(40, 2)) if name == "crossed" else (rng.random((40, 2)) < 0.3) * 1.0,
            dims=("point", "lat"), coords={"region": ("point", np.arange(40) // 20), **coords},
        )  # fmt: skip
        wanted = cvstats.interval(losses, by="region")
        for chunks in ({"lat": 1}, {"point": 15}):
            found = cvstats.interval(losses.chunk(chunks), by="region")
            assert found.attrs["method"] == wanted.attrs["method"]
            assert found.attrs["reason"] == wanted.attrs["reason"]
            xr.testing.assert_allclose(found.compute()[list(wanted)], wanted, rtol=1e-10)
    lazy = losses.chunk({"lat": 1})
    with pytest.raises(cvstats.LogError, match=r"method='wald'\); or load the log"):
        cvstats.interval(lazy, by="region", missing="drop")  # evaluations are not known yet
    options = {"method": wanted.attrs["method"], "missing": "drop"}
    found = cvstats.interval(lazy, by="region", **options).compute()
    np.testing.assert_allclose(found["se"], wanted["se"])
