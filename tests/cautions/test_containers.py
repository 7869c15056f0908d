"""A caution does not depend on the container: each label on every path that answers the call."""

import inspect
from functools import cache, partial

import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from flagged_logs import (
    SOUND,
    autoregressive,
    bootstrap_log,
    dated,
    disagreeing,
    heavy,
    k_fold,
    labels,
    near_models,
    one_partition,
    stored_twice,
    zero_one,
)
from rows import multi_index, product_index
from strategies import by_row
from together import together

import cvstats
from cvstats import Moments
from cvstats.core.cautions import Caution
from cvstats.large import moments
from cvstats.log import loss_checks as checks

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")

RNG = partial(np.random.default_rng, 0)


def rows(losses, **levels):
    """A log of one column."""
    index = multi_index(**levels)
    return pd.DataFrame({"a": np.asarray(losses, dtype=float)}, index)


def alike(repetitions=5, n=200):
    """Two models that refits change more than points do."""
    log = k_fold(n, 5, repetitions, losses=np.zeros(n * repetitions)).to_frame("a")
    noise = RNG().normal(size=(repetitions, 5))
    codes = [log.index.get_level_values(level) for level in ("repetition", "fold")]
    log["a"] = RNG().normal(size=len(log)) + 3
    log["b"] = log["a"] + noise[codes[0], codes[1]] + 0.1 * RNG().normal(size=len(log))
    return log


def written(form, freq="D"):
    """A log whose losses depend on those of the day or month before, with dates as text."""
    log = dated(0.6).to_frame("a")
    days = log.index.get_level_values("point")
    later = pd.date_range("1990-01-01", periods=len(log), freq=freq)
    return log.rename(index=dict(zip(sorted(days), later.strftime(form), strict=True)),
                      level="point")  # fmt: skip


def beside_points(name):
    """The same log with its dates on a level of this name, and points numbered at random."""
    log = dated(0.6).to_frame("a").rename_axis(index={"point": name})
    points = pd.Index([f"p{number}" for number in RNG().permutation(len(log))], name="point")
    return log.set_index(points, append=True)


def clusters(sizes, last=0.0):
    source = np.repeat(np.arange(len(sizes)), sizes)
    losses = RNG().normal(5, 1, len(source)) + last * (source == source[-1])
    return rows(losses, source=source, point=np.arange(len(source)))


def splits(number=12, tested=15, n=60):
    """Random splits with more rows, but not more points, than a normal mean needs."""
    rng = RNG()
    point = np.concatenate([rng.permutation(n)[:tested] for _ in range(number)])
    return rows(rng.exponential(size=point.size), repetition=np.repeat(np.arange(number), tested),
                point=point)  # fmt: skip


def crossed(table):
    n, m = table.shape
    return rows(table.ravel(), source=np.repeat(np.arange(n), m), point=np.tile(np.arange(m), n))


def fewer_splits():
    log = golden.log_named("halves")
    sample, split = (log.index.get_level_values(name) for name in ("sample", "repetition"))
    return log[(sample != 2) | (split == split.min())]


def metric_log(loss, n=60, **more):
    rng = RNG()
    y = (rng.random(n) < 0.5).astype(int)
    y[:4] = 1
    table = pd.DataFrame({
        "y": y, "t": rng.normal(size=n), "score": 1 / (1 + np.exp(-rng.normal(size=n) - y)),
        "fold": np.arange(n) % 5, "point": np.arange(n), "zero": 0,
    }).set_index(["fold", "point"])  # fmt: skip
    table["best"], table["worst"] = table["y"], -table["score"]
    return cvstats.losses(table, more.pop("truth", "y"), [more.pop("column", "score")], loss,
                          **more)  # fmt: skip


def times(values):
    return pd.DataFrame({"a": np.asarray(values, dtype=float)},
                        pd.RangeIndex(len(values), name="point"))  # fmt: skip


def halves(values):
    return pd.DataFrame({"a": values}, product_index(repetition=range(5), fold=range(2)))


def persistent(n=100, correlation=0.95):
    return times(autoregressive(RNG().normal(size=n), correlation))


def case(name):
    return golden.log_named(name)


def of(call, **options):
    return partial(getattr(cvstats, call), **options)


CASES = {
    "zero variance": (lambda: SOUND.to_frame("a") * 0 + 2, of("wald")),
    "variance clamped": (partial(case, "k-fold"), of("quadratic", estimator="theta_2")),
    "dependence ignored": (partial(case, "k-fold"), of("naive")),
    "dependence ignored of folds": (partial(case, "k-fold"), of("cv_t")),
    "dependence ignored of shared points": (partial(case, "crossed"), of("clustered")),
    "dependence ignored of shared points in tests": (
        partial(case, "crossed"), of("heterogeneity")),
    "dependence ignored of shared points in differences": (
        partial(case, "crossed"), of("compare", method="clustered")),
    "below chance": (partial(metric_log, "auc", 200, column="worst"), of("wald")),
    "below chance of folds": (
        partial(metric_log, "auc", 200, column="worst", folds="average"), of("interval")),
    "one fold": (partial(case, "one set"), of("wald")),
    "one fold of differences": (partial(case, "one set"), of("compare", method="wald")),
    "sources as folds": (partial(case, "by source"), of("wald")),
    "mean dominates": (partial(case, "k-fold"), of("quadratic", estimator="theta_1")),
    "assumed correlation": (partial(case, "k-fold"), of("decompose", rho=0.1)),
    "few points": (lambda: case("one set").iloc[:20], of("holdout")),
    "few repetitions": (partial(case, "halves"), of("conservative_z")),
    "unstable difference": (alike, of("compare", method="wald")),
    "unstable difference of one partition": (one_partition, of("compare", method="wald")),
    "serial dependence": (lambda: dated(0.6).to_frame("a"), of("wald")),
    "serial dependence of text": (lambda: dated(0.6, text=True).to_frame("a"), of("wald")),
    "serial dependence of elapsed times": (
        lambda: dated(0.6).to_frame("a").rename(
            index=lambda day: day - pd.Timestamp("2020-01-01"), level="point"), of("wald")),
    "serial dependence of German dates": (partial(written, "%d.%m.%Y"), of("wald")),
    "serial dependence of months": (
        lambda: written("%Y%m", "MS").rename(index=int, level="point"), of("wald")),
    "serial dependence of dates beside points": (partial(beside_points, "Date"), of("wald")),
    "selected model": (partial(near_models, 6), of("holdout")),
    "few bootstrap samples": (partial(case, "bootstrap"), of("bootstrap_oob")),
    "few sources": (partial(case, "by source"), of("out_of_source")),
    "few clusters": (partial(case, "whole sources"), of("clustered")),
    "few clusters of unequal sizes": (partial(clusters, (200, *(5,) * 39)), of("clustered")),
    "skewed of clusters": (partial(clusters, (5,) * 39, last=40.0), of("clustered")),
    "skewed of sources": (partial(clusters, (5,) * 39, last=40.0), of("out_of_source")),
    "skewed of splits": (splits, of("corrected_t", train_size=45)),
    "skewed of signs": (partial(clusters, (5,) * 39, last=40.0),
                        of("wild_cluster", n_draws=99, rng=0)),
    "sources across folds": (partial(case, "spread sources"), of("clustered")),
    "few of a class": (partial(metric_log, "auc", 24), of("wald")),
    "few discordant points": (partial(case, "binary"), of("compare")),
    "no p-value": (lambda: alike(5, 40).rename(index=lambda k: k % 2, level="fold"),
                   of("compare", method="union",
                      options={"method": "five_by_two", "test": "f"})),
    "few splits": (partial(case, "k-fold"), of("corrected_t")),
    "few errors": (lambda: zero_one(200, 4).to_frame("a"), of("wald")),
    "few errors of splits": (lambda: 1.0 * (splits() > 3), of("corrected_t", train_size=45)),
    "few errors of clusters": (lambda: 1.0 * (clusters((5,) * 39) > 3), of("clustered")),
    "sources ignored": (partial(case, "spread sources"), of("wald")),
    "sources ignored of folds": (
        partial(case, "spread sources"), of("heterogeneity", by="fold")),
    "small folds": (partial(case, "k-fold"), of("best_set", rng=1, n_draws=500, center="fold")),
    "unstable": (lambda: disagreeing().to_frame("a"), of("wald")),
    "skewed": (lambda: heavy().to_frame("a"), of("wald")),
    "heavy tails": (lambda: heavy().to_frame("a"), of("corrected_t")),
    "unused level": (lambda: SOUND.to_frame("a").rename_axis(index={"fold": "cv_fold"}).xs(0),
                     of("holdout")),
    "very few clusters": (partial(clusters, (60, 2, 2, 2, 2)), of("clustered")),
    "one loss per split": (
        lambda: k_fold().to_frame("a").groupby("fold").mean(), of("wald")),
    "empty interval": (
        partial(halves, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.1]),
        of("five_by_two", test="f")),
    "no limits yet": (lambda: case("one set").iloc[:20], of("compare", anytime=True)),
    "early look": (partial(case, "one set"), of("compare", anytime=True)),
    "dominated": (lambda: (SOUND * 256).round().to_frame("a").assign(b=lambda log: log["a"] + 1),
                  of("best_set", rng=0)),
    "identical model": (lambda: SOUND.to_frame("a").assign(b=SOUND, c=SOUND + 1),
                        of("best_set", rng=0)),
    "no discordant points": (lambda: pd.DataFrame(dict.fromkeys("ab", zero_one(20, 4))),
                             of("power", effect=0.05)),
    "one repetition": (partial(case, "binary"), of("power", effect=0.1)),
    "bounded": (partial(case, "nested"), of("nested_cv")),
    "too many models": (
        lambda: pd.DataFrame(RNG().normal(size=(15, 3)), pd.RangeIndex(15, name="point")),
        of("compare", adjust="max-t", rng=0)),
    "unequal test sizes": (fewer_splits, of("conservative_z")),
    "overfitting": (lambda: bootstrap_log(120).to_frame("a"), of("bootstrap_632", plus=False)),
    "duplicated points": (stored_twice, of("wald")),
    "reference near zero": (
        lambda: pd.DataFrame({"a": np.r_[1.5, np.zeros(59)], "b": RNG().gamma(2.0, size=60)},
                             pd.RangeIndex(60, name="point")),
        of("compare", relative=True, reference="a")),
    "large alpha": (partial(case, "k-fold"), of("wald", alpha=0.95)),
    "unequal clusters": (partial(clusters, (200, *(5,) * 39)), of("clustered", correction="CR1")),
    "biased by fold": (partial(metric_log, "r2", 600, truth="t", folds="average"), of("wald")),
    "end of scale": (partial(metric_log, "auc", column="best"), of("wald", scale="logit")),
    "metric without variance": (
        partial(metric_log, "precision", column="zero", zero_division=1), of("wald")),
    "few clusters at one level": (lambda: crossed(RNG().normal(size=(40, 4))),
                       of("clustered", by=("source", "point"))),
    "two-way variance clamped": (
        lambda: crossed(np.add.outer(np.arange(4), np.arange(4)) % 4
                        + np.arange(4)[:, None] / 64),
        of("clustered", by=("source", "point"), correction="CR1")),
    "similar points": (
        lambda: rows([0, 1, 1, 0, 0, 1], point=[0, 0, 1, 1, 2, 2], repetition=[0, 1] * 3),
        of("answers")),
    "gaps in time": (lambda: times(RNG().normal(size=60)).iloc[[*range(20), *range(30, 60)]],
                     of("ordered")),
    "horizon not used": (
        lambda: times([1.0, -1, 1, -1, 1, -1.5, 1, -1, 1, -1, 1, -1]), of("ordered", horizon=2)),
    "strong dependence": (persistent, of("ordered")),
    "few data sets": (
        lambda: pd.DataFrame([[1.0, 2, 3], [4, 5, 6]], columns=list("abc")).rename_axis("source"),
        of("friedman", test="f")),
}  # fmt: skip


@cache
def log_of(name):
    """The log of a case, made once for all paths."""
    make, _ = CASES[name]
    return make()


def label_of(name):
    return next(c.label for c in Caution if name == c.label or name.startswith(f"{c.label} of"))


def on_array(log, call):
    return call(by_row(log))


def on_lazy_array(log, call):
    return call(by_row(log).chunk(row=-(-len(log) // 3))).compute()


def on_dense_lazy_array(log, call):
    log = log.rename(columns=str)
    array = golden.dense(log) if log.index.nlevels > 1 else by_row(log)
    return call(array.assign_attrs(log.attrs).chunk()).compute()


def on_a_grid(log):
    """The log in the second of three cells; copies and shares of one are so in all of them."""
    array = by_row(log)
    together = log.attrs.get("metric") == "auc" or len(log.columns) == 2 and "line" in log
    other = array / 2 if together else array.copy(data=RNG().gamma(2.0, size=array.shape))
    grid = xr.concat([other, array, other], pd.Index([1, 2, 3], name="cell"))
    return grid.assign_attrs(log.attrs)


def on_a_cell(log, call):
    return call(on_a_grid(log)).sel(cell=2)


def on_a_lazy_cell(log, call):
    grid = on_a_grid(log).chunk(row=-(-len(log) // 2), cell=1)
    return call(grid).compute().sel(cell=2)


def in_float32(log, call):
    return call(log.astype("float32"))


def in_batches(log, call):
    parts = [log.iloc[at::3] for at in range(min(3, len(log)))]
    for part in parts:
        part.attrs = log.attrs
    return call(sum(Moments.of_log(part, pairs=log.shape[1] > 1) for part in parts[::-1]))


def on_dask_frame(log, call):
    table = log.rename(columns=str).reset_index()
    return call(dask.dataframe.from_pandas(table, npartitions=2, sort=False)).compute()


def by_site(log, call):
    other = pd.DataFrame(RNG().gamma(2.0, size=log.shape), log.index, log.columns)
    both = pd.concat({"other": other, "told": log}, names=["site"])
    both.attrs = log.attrs
    return call(both, by="site").loc["told"]


PATHS = {
    "array": on_array, "lazy array": on_lazy_array, "dense lazy array": on_dense_lazy_array,
    "cell": on_a_cell, "lazy cell": on_a_lazy_cell, "float32": in_float32,
    "batches": in_batches, "dask frame": on_dask_frame, "by": by_site,
}  # fmt: skip
LAZY = ("lazy array", "dense lazy array", "lazy cell")

LOSSES = "needs individual losses|losses of each point|in two folds of one repetition"
"""How what needs individual losses is refused; bootstrap logs have no dense form."""

REFUSED = {
    **dict.fromkeys(
        ("few bootstrap samples", "small folds", "dominated", "identical model", "overfitting",
         "similar points"), (*LAZY, "batches", "dask frame")),
    **dict.fromkeys(("gaps in time", "horizon not used", "strong dependence"),
                    ("batches", "dask frame")),
    **dict.fromkeys(("few clusters at one level", "two-way variance clamped"),
                    ("dense lazy array", "batches")),
    "few data sets": LAZY,
}  # fmt: skip
"""The paths that refuse the call, because it needs losses one by one."""

UNKNOWN = {
    "below chance of folds": ("dask frame",),  # which does not have all attrs
}
"""The paths on which the log does not hold what the label is about; in the docs."""


def answers_by_group(call, log):
    """Whether a method has ``by=`` for any level, and the log may be cut by one."""
    record = getattr(call.func, "record", None)
    by = "by" in inspect.signature(call.func).parameters
    return by and getattr(record, "level_option", None) != "by" and "metric" not in log.attrs


FEW = ("lazy cell", "batches")
"""The paths of logs that differ from another one with the same label by their design or dates."""


@together(
    [
        (name, path)
        for name in CASES
        for path in (PATHS if name == label_of(name) else FEW)
        if path not in ("array", "lazy array")
        and (name, path) != ("unused level", "dense lazy array")  # a model for each of its labels
    ],
    by=lambda name, path: label_of(name),
)
def test_the_label_is_the_same(name, path):
    """Arrays without other dimensions are cells without others: ``cell`` and ``lazy cell``."""
    _, call = CASES[name]
    log, label = log_of(name), label_of(name)
    if path == "by" and not answers_by_group(call, log):
        return
    if path in REFUSED.get(name, ()):
        refuses(LOSSES, PATHS[path], log, call)
        return
    found = labels(PATHS[path](log, call))
    assert (label in found) == (path not in UNKNOWN.get(name, ())), found


@together(CASES)
def test_the_log_has_the_label(name):
    _, call = CASES[name]
    assert label_of(name) in labels(call(log_of(name)))


def test_every_label_has_a_case():
    without = {
        "no losses": "masked cells: below", "negative variance": "clamped everywhere today",
        "judge ignored": "compares two sets of labels", "few disagreements": "the same",
        "overlapping halves": "of the labels of points", "never out of bag": "bootstrap logs",
        "incomplete samples": "bootstrap logs",
        "depends on censoring": "a fact about a metric, as few of a class",
    }  # fmt: skip
    assert {caution.label for caution in Caution} == {*map(label_of, CASES), *without}


@pytest.mark.parametrize("path", [lambda log: log, lambda log: log.chunk(point=20),
                                  lambda log: log.chunk(cell=1), Moments.of_log])  # fmt: skip
def test_a_masked_cell_has_no_losses(path):
    values = RNG().normal(size=(60, 2, 5))  # of five models, one may be selected
    log = xr.DataArray(values, dims=("point", "cell", "model"))
    log[:, 1] = np.nan
    found = cvstats.holdout(path(log)).compute()
    assert labels(found.isel(cell=1)) == {"no losses"}
    assert "no losses" not in labels(found.isel(cell=0))


def test_a_file_keeps_what_is_examined(tmp_path):
    for name in ("skewed", "serial dependence", "duplicated points", "selected model"):
        make, call = CASES[name]
        moments = Moments.of_log(make())
        moments.save(tmp_path / "moments.npz")
        again = Moments.load(tmp_path / "moments.npz")
        pd.testing.assert_frame_equal(call(again), call(moments))
        assert name in labels(call(again))


def long_clusters(wrong):
    log = clusters((50,) * 120) * 0.0
    log.iloc[wrong] = 1
    return log


LONG = {
    "skewed": (lambda: heavy(6_000, 4).to_frame("a"), of("wald")),
    "heavy tails": (lambda: heavy(6_000, 4).to_frame("a"), of("corrected_t")),
    "serial dependence": (lambda: dated(0.6, n=6_000).to_frame("a"), of("wald")),
    "serial dependence of text": (lambda: dated(0.6, n=6_000, text=True).to_frame("a"),
                                  of("wald")),
    "serial dependence of periods": (
        lambda: dated(0.6, n=6_000).to_frame("a").rename(
            index=lambda day: day.to_period("D"), level="point"), of("wald")),
    "selected model": (partial(near_models, 6, 4_000), of("holdout")),
    "few errors": (partial(long_clusters, [2_999, 3_001]), of("clustered")),
}  # fmt: skip


@cache
def long_log(name):
    """A long log, whose sample shows the label, and the call."""
    make, call = LONG[name]
    log = make()
    assert label_of(name) in labels(call(log))
    return log, call


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (name, path)
        for name in LONG
        for path in ("array", "dense lazy array", "lazy array", "batches", "dask frame")
        if "periods" not in name or path not in LAZY  # which dask does not have
    ],
)
def test_a_sample_of_a_long_log_shows_the_same(name, path, monkeypatch):
    for module in (checks, moments):
        monkeypatch.setattr(module, "LIMIT", 3_000)
    log, call = long_log(name)
    assert label_of(name) in labels(PATHS[path](log, call))


def test_errors_of_many_groups_are_counted_in_each():
    """Of more than 100 groups, only some are examined for other cautions."""
    log = clusters((600,) * 10)
    at, site = np.divmod(np.arange(6_000), 240)
    log["a"] = 1.0 * np.where(site == 7, at == 3, (site % 3 == 0) & (at % 2 == 0))
    found = cvstats.out_of_source(log.assign(site=site).set_index("site", append=True), by="site")
    few = found["caution"].str.contains("few errors")
    assert list(few[few].index.get_level_values("site")) == [7]
    sizes = np.tile([40, 400], 100)  # with an error in ten
    of_site = np.concatenate([np.arange(size) for size in sizes])
    levels = {"site": np.repeat(np.arange(200), sizes), "fold": of_site % 4}
    errors = pd.DataFrame(
        {"a": (of_site % 10 == 0) * 1.0}, pd.MultiIndex.from_frame(pd.DataFrame(levels))
    )
    found = cvstats.cv_t(errors, by="site")
    assert found["caution"].str.contains("few errors").tolist() == [True, False] * 100


def test_groups_in_between_have_the_cautions_of_the_last_one_examined():
    site, of_site = np.divmod(np.arange(250 * 50), 50)
    rng = RNG()
    losses = np.where(site < 125, rng.lognormal(sigma=1.5, size=site.size), rng.random(site.size))
    levels = {"site": site, "fold": of_site % 5, "point": np.arange(site.size)}
    log = pd.Series(losses, pd.MultiIndex.from_frame(pd.DataFrame(levels)), name="a")
    skewed = log.cvci.wald(by="site")["caution"].str.contains("skewed").to_numpy()
    assert skewed[:120].mean() > 0.9
    assert not skewed[130:].any()


@pytest.fixture(scope="module")
def large_losses():
    """Means of squared exponential losses are nearly normal; squared t3 losses have no variance."""
    squares = k_fold(60_000, losses=RNG().exponential(size=60_000) ** 2).to_frame("a")
    return squares, heavy(60_000).to_frame("a")


@pytest.mark.parametrize("path", ["lazy array", "batches", "dask frame", "by"])
def test_large_losses_are_harmless_with_enough_points(path, large_losses):
    squares, without_variance = large_losses
    assert labels(PATHS[path](squares, of("wald"))) == set()
    assert "heavy tails" in labels(PATHS[path](without_variance, of("wald")))


def ragged():
    """Sources that share some of their dates, each with others of its own."""
    parts = {}
    for source in range(6):
        days = np.r_[np.arange(30), 100 * (source + 1) + np.arange(3 + source)]
        values = RNG().normal(size=(len(days), 2))
        parts[source] = pd.DataFrame(values, pd.Index(days, name="point"), list("ab"))
    return pd.concat(parts, names=["source"])


@pytest.mark.parametrize("call", [cvstats.interval, cvstats.compare])
def test_sources_that_share_some_points_are_crossed_on_every_path(call):
    log = ragged()
    words = "the same points occur in several sources"
    refuses(words, in_batches, log, call)
    refuses(words, on_dask_frame, log, call)
    expected = call(log)
    for path in (on_array, on_lazy_array):
        found = path(log, call)
        np.testing.assert_allclose(found["se"].values, expected["se"], rtol=1e-11)


@pytest.mark.parametrize("call", [cvstats.wald, cvstats.compare, cvstats.cv_t])
def test_losses_that_are_too_small_are_refused_on_every_path(call):
    log = k_fold(losses=RNG().normal(size=300)).to_frame("a")
    log["b"] = RNG().permutation(log["a"])
    for path in (on_array, on_lazy_array, in_batches, on_dask_frame):
        refuses("are too small to be squared", path, log * 1e-200, call)
    assert "zero variance" in labels(on_lazy_array(log * 0 + 1e-200, cvstats.wald))
