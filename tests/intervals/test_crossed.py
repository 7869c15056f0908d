"""Crossed logs, where the same points occur under several sources: the default, and its numbers."""

import dask.dataframe
import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from grouped_logs import assert_limits
from matplotlib.figure import Figure
from plotted import without_marks
from rows import multi_index, only_row, product_index
from scipy import stats
from strategies import by_row

import cvstats
from cvstats.errors import LogError

BOTH = ("source", "point")
MODELS = ["a", "b"]


def simulate(sources, points, *, ar=0.0, of_source=0.0, of_point=1.0, runs=2, seed=0, days=True):
    """Losses of mean 0 with effects of sources and shocks of points, which may be alike in time."""
    rng = np.random.default_rng(seed)
    shock = rng.standard_normal((points, runs))
    for t in range(1, points):
        shock[t] = ar * shock[t - 1] + np.sqrt(1 - ar**2) * shock[t]
    effect = of_source * rng.standard_normal((sources, 1, runs))
    values = effect + of_point * shock + 0.5 * rng.standard_normal((sources, points, runs))
    labels = pd.date_range("2022-01-01", periods=points) if days else range(points)
    index = pd.MultiIndex.from_product([range(sources), labels], names=BOTH)
    return pd.DataFrame(values.reshape(-1, runs), index)


def oracle(log):
    """The estimate, variance and degrees of freedom of one Series, in plain loops."""
    e = {key: float(loss - log.mean()) for key, loss in log.items()}
    n, sources, points = len(e), sorted({s for s, _ in e}), sorted({t for _, t in e})
    s_number, t_number = len(sources), len(points)
    sums_s = [sum(e.get((s, t), 0.0) for t in points) for s in sources]
    sums_t = [sum(e.get((s, t), 0.0) for s in sources) for t in points]
    v_s = s_number / (s_number - 1) * sum(total**2 for total in sums_s) / n**2
    if isinstance(points[0], pd.Timestamp):
        df = int(0.4 * t_number ** (2 / 3))
        power = 0.0
        for j in range(1, df + 1):
            wave = [np.cos(np.pi * j * (t + 0.5) / t_number) for t in range(t_number)]
            power += 2 / t_number * sum(w * u for w, u in zip(wave, sums_t, strict=True)) ** 2
        near = sum(u * w for u, w in zip(sums_t[1:], sums_t, strict=False))
        near /= sum(u * u for u in sums_t)
        r = min(max(near + (1 + 3 * near) / t_number, 0), 0.97)
        waves = [np.cos(np.pi * j / t_number) for j in range(1, df + 1)]
        share = sum((1 - r) ** 2 / (1 - 2 * r * wave + r**2) for wave in waves) / df
        v_t = power / df * t_number / n**2 / share
    else:
        df = t_number - 1
        v_t = t_number / df * sum(total**2 for total in sums_t) / n**2
    if n == s_number * t_number:
        rest = sum(
            (e[s, t] - sums_s[i] / t_number - sums_t[j] / s_number) ** 2
            for i, s in enumerate(sources)
            for j, t in enumerate(points)
        )
        v_i = rest / ((s_number - 1) * (t_number - 1)) / n
    else:
        v_i = n / (n - 1) * sum(loss**2 for loss in e.values()) / n**2
    variance = max(v_s + v_t - v_i, v_s, v_t)
    return log.mean(), variance, (v_s + v_t) ** 2 / (v_s**2 / (s_number - 1) + v_t**2 / df)


@pytest.mark.parametrize(("days", "kept"), [(True, 0.7), (False, 1.0)])
@pytest.mark.parametrize(("of_source", "of_point"), [(0, 1), (1, 0), (1, 1), (0, 0)])
def test_the_card_in_loops(days, kept, of_source, of_point):
    log = simulate(7, 30, of_source=of_source, of_point=of_point, days=days)[0].rename("net")
    log = log[np.random.default_rng(1).random(len(log)) < kept].sample(frac=1, random_state=2)
    wanted = oracle(log)
    for by in (BOTH, BOTH[::-1]):
        assert_limits(only_row(cvstats.clustered(log, by=by)), *wanted, rel=1e-10, abs=1e-12)
    result = cvstats.interval(log)
    assert_limits(only_row(result), *wanted, rel=1e-10, abs=1e-12)
    assert (result.attrs["method"], result.attrs["by"]) == ("clustered", "source, point")
    assert result.attrs.get("n_cosines") == (3 if days else None)
    far = only_row(cvstats.interval(log + 2.0**30))
    assert far["se"] == pytest.approx(only_row(result)["se"], rel=1e-6)


def test_years_days_and_quarters_are_times():
    log = simulate(6, 40)
    for freq, form in (("YS", "%Y"), ("D", "%Y%m%d"), ("QS", None)):
        days = pd.date_range("1990-01-01", periods=40, freq=freq)
        labels = pd.PeriodIndex(days, freq="Q").astype(str) if form is None else days.strftime(form)
        names = dict(
            zip(log.index.levels[1], labels if form is None else labels.astype(int), strict=True)
        )
        dated = log.rename(index=names, level="point")
        names = dated.index.levels[1]
        categories = pd.CategoricalIndex(names, categories=names[::-1])
        for index in (dated.index, dated.index.set_levels(categories, level="point")):
            result = cvstats.interval(dated.set_axis(index))
            np.testing.assert_allclose(result["se"], cvstats.interval(log)["se"], rtol=1e-12)
            assert (result["caution"] == cvstats.interval(log)["caution"]).all()
    log = simulate(6, 40, days=False).reset_index()
    for number, cosines in ((3, None), (4, 1)):  # fewer than four dates of points are no series
        log["date"] = days[log["point"] % number]
        result = cvstats.clustered(log.set_index([*BOTH, "date"]), by=BOTH)
        assert result.attrs.get("n_cosines") == cosines


def test_dates_with_gaps_and_long_memory_are_told():
    log = simulate(6, 300, ar=0.99, of_point=5.0, runs=1, seed=3)
    assert "strong dependence" in cvstats.interval(log)["caution"].iloc[0]
    gone = log.drop(index=log.index.levels[1][5:9], level="point")
    assert "gaps in time" in cvstats.interval(gone)["caution"].iloc[0]


@pytest.mark.parametrize(
    ("dates", "ar", "least", "most"),
    [
        (60, 0.95, 0.6, 1),  # covers .80
        (60, 0.6, 0, 0.05),  # .94
        (400, 0.95, 0, 0.2),  # .94, because the variance is corrected
    ],
)
def test_dates_that_depend_on_each_other_are_told_if_the_correction_is_uncertain(
    dates, ar, least, most
):
    log = simulate(6, dates, ar=ar, of_point=5.0, runs=200, seed=1)
    told = cvstats.clustered(log, by=BOTH)["caution"].str.contains("strong dependence")
    assert least <= told.mean() <= most


def two_models(**options):
    return simulate(12, 65, **options).set_axis(MODELS, axis=1)


@pytest.mark.parametrize("points_are", [None, "crossed", "nested"])
@pytest.mark.parametrize("folds", ["random", "blocks", "sources", "points"])
def test_both_ways_are_the_default_of_folds_that_divide_one(folds, points_are):
    """Folds that divide sources and points say nothing about the units, unless attrs do."""
    index = pd.MultiIndex.from_product([range(12), range(30)], names=BOTH)
    source, point = (index.get_level_values(name).to_numpy() for name in BOTH)
    rng = np.random.default_rng(0)
    fold = {
        "random": rng.integers(0, 5, len(index)), "blocks": source % 2 * 2 + point % 2,
        "sources": source % 3, "points": point % 3,
    }[folds]  # fmt: skip
    index = pd.MultiIndex.from_arrays([fold, source, point], names=["fold", *BOTH])
    log = pd.DataFrame({"a": rng.normal(size=len(index))}, index)
    if points_are is not None:
        log.attrs["points_are"] = points_are
    found = log.cvci.interval().attrs
    divided = folds in ("random", "blocks")
    both = points_are == "crossed" or (points_are is None and not divided)
    assert (found.get("by") == "source, point") == both
    assert both or found["method"] == ("clustered" if folds == "sources" else "wald")
    caution = log.cvci.clustered(by=BOTH)["caution"].item()
    assert ("sources across folds" in caution) == divided


def test_every_default_takes_both_ways():
    log = two_models()
    wanted = cvstats.clustered(cvstats.difference(log, reference="b"), by=BOTH).iloc[0]
    for table in (
        cvstats.compare(log), cvstats.equivalence(log["a"], log["b"], margin=0.5),
        cvstats.power(log["a"], log["b"], effect=0.5),
    ):  # fmt: skip
        assert table["se"].iloc[0] == pytest.approx(wanted["se"], rel=1e-12)
        assert table.attrs["interval_method"] == "clustered"
    assert np.isnan(cvstats.power(log, effect=0.5)["points_needed"].iloc[0])
    each = cvstats.interval(log)
    best = each["estimate"].idxmin()
    winner = cvstats.winner(log, rng=0)
    assert winner["se"].iloc[0] == pytest.approx(each.loc[best, "se"], rel=1e-12)
    assert winner["upper"].iloc[0] - winner["lower"].iloc[0] >= np.ptp(
        each.loc[best, ["lower", "upper"]]
    )
    assert cvstats.best_set(log, rng=0)["in_set"].all()
    assert "advantage of 0.13 is not" in str(cvstats.summary(log))
    assert "sources and points" in " ".join(str(cvstats.summary(log)).split())
    drawn = cvstats.plot.forest(log, ax=Figure().subplots())
    assert "clustered" in str(drawn.get_legend_handles_labels()[1])


def test_points_that_are_numbered_anew():
    log = two_models(days=False)
    nested = cvstats.interval(log, points="nested")
    metadata = log.copy()
    metadata.attrs["points_are"] = "nested"
    pd.testing.assert_frame_equal(nested, cvstats.out_of_source(metadata))
    taken = cvstats.out_of_source(log)
    assert set(taken["caution"]) == {"dependence ignored, few sources"}
    assert (
        "Use log.attrs['points_are'] = 'nested' if" in taken.attrs["cautions"]["dependence ignored"]
    )
    assert nested.attrs["reason"].startswith("12 sources, each tested as a whole")
    table = cvstats.compare(log, points="nested")
    assert table.attrs["interval_method"] == "out_of_source"
    assert cvstats.interval(metadata).attrs["method"] == "out_of_source"
    pd.testing.assert_frame_equal(cvstats.compare(metadata), table)
    assert "as a whole" not in cvstats.interval(metadata, points="crossed").attrs["reason"]
    refuses("Invalid points='new'", cvstats.interval, log, points="new")
    one = log.reset_index("point", drop=True)
    one = one.set_index(pd.RangeIndex(len(one), name="point"), append=True)
    refuses("in this log they do not", cvstats.interval, one, points="crossed")
    with pytest.raises(LogError, match="each label of 'point' occurs with one label of 'source'"):
        cvstats.clustered(one, by=BOTH)


def stacked(array):
    """The same, lazy, a row for each evaluation: its levels say that points recur."""
    whole = array.stack(row=BOTH).transpose("row", "model")
    source, point = (whole[name].to_numpy() for name in BOTH)
    bare = xr.DataArray(whole.to_numpy(), dims=("row", "model"), coords={"model": MODELS})
    return bare.assign_coords(source=("row", source), point=("row", point)).chunk({"row": 100})


def test_what_does_not_keep_the_points_refuses():
    log = two_models()
    array = xr.DataArray(
        log["a"].to_numpy().reshape(12, 65), dims=BOTH, coords={"point": log.index.levels[1]}
    )
    words = "the same points occur in several sources, so both are sampling units"
    for ask in (
        lambda: cvstats.interval(array.chunk({"source": 5})).compute(),
        lambda: cvstats.interval(cvstats.Moments.of_log(log)),
        lambda: cvstats.compare(cvstats.Moments.of_log(log, pairs=True)),
    ):
        refuses(words, ask)
    with pytest.raises(LogError, match="require 'clustered'"):
        cvstats.compare(golden.chunks_of_gaps(log), missing="drop").compute()
    nested = cvstats.interval(cvstats.Moments.of_log(log), points="nested")
    np.testing.assert_allclose(nested["se"], cvstats.out_of_source(log)["se"], rtol=1e-10)
    with pytest.raises(LogError, match="= 'nested' before the moments are computed"):
        cvstats.summary(cvstats.Moments.of_log(log))
    log.attrs["points_are"] = "nested"
    assert "12 sources" in str(cvstats.summary(cvstats.Moments.of_log(log)))


def test_lazy_arrays():
    log = two_models()
    array = xr.DataArray(
        log.to_numpy().reshape(12, 65, 2), dims=("source", "point", "model"),
        coords={"point": log.index.levels[1], "model": MODELS},
    )  # fmt: skip
    wanted = cvstats.interval(array)
    np.testing.assert_allclose(cvstats.interval(log)["se"], wanted["se"], rtol=1e-12)
    for ask in (cvstats.interval, cvstats.compare):
        wanted = ask(array)
        for given in (stacked(array), array.chunk({"source": 5, "point": 20})):
            found = ask(given, points="crossed")
            assert found["se"].chunks is not None
            for name in ("se", "df", "lower"):
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, err_msg=name)
        said = array.chunk({"source": 5}).assign_attrs(points_are="crossed")
        for given in (said, said.to_dataset("model")):
            np.testing.assert_allclose(ask(given).to_array("n").sel(n="se").drop_vars("n"),
                                       wanted["se"], rtol=1e-10)  # fmt: skip
        found = ask(stacked(array))
        assert "each source" in ask(array).attrs.get("reason", "each source")
        np.testing.assert_allclose(found["se"], wanted["se"], rtol=1e-10)
    assert str(said.cvci.summary()) == str(array.cvci.summary())
    explicit = cvstats.clustered(stacked(array), by=BOTH)
    np.testing.assert_allclose(explicit["se"], cvstats.interval(array)["se"], rtol=1e-10)
    nested = cvstats.interval(array.chunk({"point": 20}), points="nested")
    assert nested.attrs["method"] == "out_of_source"
    narrow = cvstats.interval(array.astype(np.float32))
    np.testing.assert_allclose(narrow["se"], cvstats.interval(array)["se"], rtol=1e-5)


@pytest.mark.parametrize("start", [0, 1])
def test_groups_of_a_log(start):
    """Also if their points differ, as those of lead times do: these were one way without a word."""
    parts = [two_models(seed=seed) for seed in (1, 2)]
    point = parts[1].index.get_level_values("point")
    parts[1] = parts[1][point >= sorted(set(point))[start]]
    log = pd.concat(parts, keys=["x", "y"], names=["region"])
    table = cvstats.compare(log, by="region", adjust=None)
    for name, part in zip("xy", parts, strict=True):
        wanted = cvstats.compare(part)["se"].iloc[0]
        assert table.xs(name, level="region")["se"].iloc[0] == pytest.approx(wanted, rel=1e-12)
    for options in ({}, {"correction": "CR1"}):
        by = cvstats.interval(log, by="region", **options)
        for name, part in zip("xy", parts, strict=True):
            own = cvstats.interval(part, **options)
            np.testing.assert_allclose(by.xs(name, level="region")["se"], own["se"], rtol=1e-12)
    each = cvstats.clustered(log, by=BOTH, per="region")
    wanted = cvstats.interval(parts[0]).loc["a", "se"]
    assert each["se"].iloc[0] == pytest.approx(wanted, rel=1e-12)
    moments = cvstats.Moments.of_log(log, by=["region", "source"], pairs=True)
    words = "the same points occur in several sources, so both are sampling units"
    for given in (moments, dask.dataframe.from_pandas(log.reset_index(), 3)):  # one way, narrower
        for ask in (cvstats.interval, cvstats.compare):
            with pytest.raises(LogError, match=words):
                golden.computed(ask(given, by="region"))
        table = golden.computed(cvstats.out_of_source(given, by="region"))
        assert table["caution"].str.contains("dependence ignored").all()


def test_looks_count_one_kind():
    log = two_models()
    refuses("supports one sampling level", cvstats.compare, log, anytime=True)
    assert len(cvstats.compare(log, anytime=True, method="clustered")) == 1


def test_few_series_of_dates_may_be_the_only_ones():
    """Three horizons are no sample of horizons: the advice is the analysis of these series."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2000-01-01", periods=120, freq="MS")
    index = product_index(source=[1, 2, 3], point=days)
    naive = rng.gamma(2.0, size=360)
    log = pd.DataFrame({"naive": naive, "last": naive + np.repeat([0.3, 0.5, 0.9], 120)}, index)
    log["last"] += 0.5 * rng.normal(size=360)
    words = (
        "Use log.cvci.ordered(), or compare(method='ordered') for differences, if only these 3 "
        "sources matter, such as the horizons of a forecast (by='source' gives a result for each "
        "of them), or add labels"
    )
    assert words in log.cvci.compare().attrs["cautions"]["few clusters at one level"]
    text = " ".join(str(log.cvci.summary()).split())
    assert "not statistically significant" in text
    assert "measured on 120 points in 3 sources" in text
    assert words in text
    each = log.cvci.compare(method="ordered", by="source")
    assert (each["p_value"] < 0.01).all()
    numbered = log.rename(index={day: f"i{at}" for at, day in enumerate(days)}, level="point")
    assert "horizons" not in numbered.cvci.compare().attrs["cautions"]["few clusters at one level"]


def errors_of_judges():
    """0/1 losses of 12 sources and 40 points, which are the same in all sources."""
    index = pd.MultiIndex.from_product([[0], range(12), range(40)], names=["fold", *BOTH])
    log = pd.DataFrame(0.0, index, ["some", "none"])
    log.loc[[(0, 0, point) for point in range(6)] + [(0, 1, 0), (0, 2, 0)], "some"] = 1.0
    log.attrs["loss"] = "zero_one"
    return log


@pytest.mark.parametrize("road", ["frame", "array", "dask", "study"])
def test_limits_of_error_rates_are_those_of_a_proportion(road):
    log = errors_of_judges()
    own = log.cvci.clustered(by=("source", "point"))
    assert own["lower"].iloc[0] < 0
    t, v = own["estimate"].iloc[0], own["se"].iloc[0] ** 2
    df = min(own["df"].iloc[0], 11)
    n = t * (1 - t) / v * (stats.t.isf(0.025, 479) / stats.t.isf(0.025, df)) ** 2
    some = stats.beta.ppf([0.025, 0.975], [n * t, n * t + 1], [n - n * t + 1, n - n * t])
    none = 0, 1 - 0.025 ** (1 / 12)  # as of 12 points without errors
    array = log.rename_axis("model", axis=1).stack().to_xarray().assign_attrs(log.attrs)
    if road == "dask":
        array = array.chunk(model=1)
    if road == "study":
        log = pd.concat({"x": log, "y": log}, names=["study"])
        log.attrs["loss"] = "zero_one"
        found = log.cvci.interval(by="study").xs("x", level="study")
    elif road == "frame":
        found = log.cvci.interval()
    else:
        found = array.cvci.interval(points="crossed").compute().to_dataframe()
    for model, wanted in (("some", some), ("none", none)):
        row = found.loc[model]
        np.testing.assert_allclose([row["lower"], row["upper"]], wanted, rtol=1e-9, atol=1e-12)


@without_marks
def test_points_in_several_sources_are_counted_once_wherever_they_are_counted():
    rng = np.random.default_rng(0)
    index = product_index(source=range(8), point=pd.date_range("2020", periods=40))
    log = pd.DataFrame(rng.normal(size=(320, 2)) ** 2, index, ["a", "b"])
    page = cvstats.report(log)
    assert "<cvci: 40 points, 8 sources, 2 models>" == repr(log.cvci) == repr(log.to_xarray().cvci)
    assert "n = 40 points in 8 sources." in cvstats.to_apa(log.cvci.interval())
    assert "measured on 40 points in 8 sources" in " ".join(str(log.cvci.summary()).split())
    assert "40 points, 8 sources" in page
    assert "which are the folds" not in page
    log.attrs["points_are"] = "nested"
    assert repr(log.cvci) == "<cvci: 320 points, 8 sources, 2 models>"


@pytest.mark.parametrize("lazy", [None, False, True])
def test_sources_nested_in_points(lazy):
    """The advice by='point', in interval, made an interval of each point instead."""
    index = multi_index(fold=[0] * 60, source=range(60), point=np.arange(60) // 6)
    log = pd.Series(np.random.default_rng(0).gamma(2, 1, 60), index, name="a")
    given = log if lazy is None else by_row(log.to_frame()).isel(model=0, drop=True)
    given = given.chunk() if lazy else given
    with pytest.raises(LogError, match="nested, not crossed") as error:
        cvstats.interval(given).compute()
    assert str(error.value).endswith(
        "clustered(log, by='point') accounts for both. If each source numbers its points "
        "separately, set log.attrs['points_are'] = 'nested'."
    )
    assert cvstats.clustered(log, by="point").attrs["n_clusters"] == 10
    log.attrs["points_are"] = "nested"
    assert cvstats.interval(log).attrs["n_clusters"] == 60
