"""Logs of several metrics: each metric has the answer that it has alone, in every container."""

import re
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from plotted import without_marks
from zarr_stores import writes_zarr

import cvstats
from cvstats import LogError

N = 240
METRICS = ["auc", "calibration_slope", "rmse", "log_loss"]
RANKED = ["auc", "rmse", "log_loss"]


def predictions(*levels: str, seed: int = 0) -> pd.DataFrame:
    """Probabilities of three models, at 12 sites, with some of the levels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"point": np.arange(N), "y": rng.integers(0, 2, N)})
    for at, name in enumerate(["lr", "rf", "xgb"]):
        score = 1.5 * table["y"] - 0.7 + rng.normal(size=N) * (1 + 0.3 * at)
        table[name] = 1 / (1 + np.exp(-score))
    own = {"fold": np.arange(N) % 5, "source": np.repeat(np.arange(12), 20),
           "half": np.where(np.arange(N) % 2, "x", "z")}  # fmt: skip
    return table.assign(**{name: own[name] for name in levels}).set_index(["point", *levels])


def array_of(
    *levels: str, metrics: list[str] | str = METRICS, grid: bool = False, **options: Any
) -> xr.Dataset:
    """A log of its own for each caller, made once."""
    names = metrics if isinstance(metrics, str) else tuple(metrics)
    return make_array(levels, names, grid, **options).copy()


@cache
def make_array(
    levels: tuple[str, ...], metrics: tuple[str, ...] | str, grid: bool, **options: Any
) -> xr.Dataset:
    table = predictions(*levels)
    coords = {name: ("row", table.index.get_level_values(name)) for name in table.index.names}
    data = xr.Dataset({name: ("row", column) for name, column in table.items()}, coords)
    models = ["lr", "rf", "xgb"]
    if grid:
        other = data.assign({name: data[name] ** 2 for name in models})
        data = xr.concat([data, other], pd.Index([40, 50], name="lat"), data_vars=models)
    wanted = metrics if isinstance(metrics, str) else list(metrics)
    log: xr.Dataset = cvstats.losses(data, "y", models, wanted, positive=1, **options)
    return log


def assert_answers_of_each(found: xr.Dataset, log: xr.Dataset, ask: Any) -> None:
    """Compare with the answers for each metric alone, but for adjustments for their number."""
    for name in log["metric"].values.tolist():
        alone, here = ask(log.sel(metric=name)), found.sel(metric=name)
        for column in set(alone.data_vars) - {"p_adjusted", "caution"}:
            np.testing.assert_allclose(here[column], alone[column], 1e-12, err_msg=column)
        assert np.array_equal(cvstats.cautions(here), cvstats.cautions(alone))


ASKED = {
    "interval": (METRICS, lambda log: cvstats.interval(log)),
    "wald": (METRICS, lambda log: cvstats.wald(log)),
    "t": (METRICS, lambda log: cvstats.interval(log, method="naive")),
    "compare": (METRICS, lambda log: cvstats.compare(log)),
    "reference": (METRICS, lambda log: cvstats.compare(log, reference="rf")),
    "difference": (METRICS, lambda log: cvstats.interval(cvstats.difference(log))),
    "equivalence": (METRICS, lambda log: cvstats.equivalence(log, margin=0.05)),
    "power": (METRICS, lambda log: cvstats.power(log, effect=0.05)),
    "best_set": (RANKED, lambda log: cvstats.best_set(log, n_draws=200, rng=0)),
    "winner": (RANKED, lambda log: cvstats.winner(log, n_draws=200, rng=0)),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("level", ["point", "fold", "lat"])
def test_an_array_answers_for_each_metric(name: str, level: str) -> None:
    metrics, ask = ASKED[name]
    log = array_of(*{level} & {"fold"}, metrics=metrics, grid=level == "lat")
    assert_answers_of_each(ask(log), log, ask)


def table_of(*levels: str, metrics: list[str] | str = METRICS, **options: Any) -> pd.DataFrame:
    names = metrics if isinstance(metrics, str) else tuple(metrics)
    return make_table(levels, names, **options).copy()


@cache
def make_table(levels: tuple[str, ...], metrics: Any, **options: Any) -> pd.DataFrame:
    models, table = ["lr", "rf", "xgb"], predictions(*levels)
    wanted = metrics if isinstance(metrics, str) else list(metrics)
    log: pd.DataFrame = cvstats.losses(table, "y", models, wanted, positive=1, **options)
    return log


def assert_rows_of_each(found: pd.DataFrame, log: pd.DataFrame, ask: Any) -> None:
    """Compare with the rows for each metric alone, but for adjustments for their number."""
    names = list(log.index.unique("metric"))
    assert list(found.index.unique("metric")) == names
    for name in names:
        alone = ask(log.xs(name, level="metric", drop_level=False))
        here = found.loc[[name]]
        for column in alone.columns.difference(["p_adjusted", "caution"]):
            np.testing.assert_allclose(here[column], alone[column], 1e-12, err_msg=column)
        assert "caution" not in alone or list(here["caution"]) == list(alone["caution"])
        assert here.index.nlevels == 1 or here.index.droplevel("metric").equals(alone.index)


@pytest.mark.parametrize("name", [*ASKED, "moments"])
def test_a_frame_answers_for_each_metric(name: str) -> None:
    """In any order of its rows."""
    metrics, ask = {**ASKED, "moments": (METRICS, lambda log: cvstats.moments(log, by=()))}[name]
    log = table_of("fold", metrics=metrics)
    found = ask(log)
    assert_rows_of_each(found, log, ask)
    for rows in (log.sort_index(level="point"), log.sample(frac=1)):
        other = ask(rows).reindex(metrics, level="metric")
        pd.testing.assert_frame_equal(other, found, check_exact=False, rtol=1e-12)


def test_a_series_and_groups_of_several_metrics() -> None:
    log = table_of("half", metrics=RANKED, by="half")
    assert_rows_of_each(log["lr"].cvci.interval(), log["lr"], cvstats.interval)
    found = log.cvci.interval(by="half")
    assert found.index.names == ["half", "metric", "model"]
    found = found.reorder_levels(["metric", "half", "model"])
    assert_rows_of_each(found, log, lambda one: cvstats.interval(one, by="half"))
    with pytest.raises(LogError, match="each metric has a result of its own without by="):
        table_of("source", metrics=RANKED).cvci.clustered(by="metric")


def test_a_frame_of_plain_losses_is_contrasted_for_each_label() -> None:
    one, labels = predictions("half").drop(columns="y"), ["plain", "squared"]
    log = pd.concat([one, one**2], keys=labels, names=["metric"])
    ask = partial(cvstats.contrast, by="half", between=("x", "z"))
    found = ask(log).cvci.interval()
    for label in labels:
        alone = ask(log.xs(label, level="metric")).cvci.interval()
        np.testing.assert_allclose(found.loc[label]["se"], alone["se"], 1e-12)


@pytest.mark.parametrize("name", ["friedman", "nemenyi"])
def test_ranks_have_the_cautions_of_each_metric(name: str) -> None:
    ask = partial(getattr(cvstats, name), by="source")
    of: dict[str, Any] = {"by": "source", "metrics": ["auc", "log_loss"]}
    log, array = table_of("source", **of), array_of("source", **of)
    assert (
        "few of a class" in ask(log.xs("auc", level="metric", drop_level=False))["caution"].iloc[0]
    )
    assert_rows_of_each(ask(log), log, ask)
    assert_answers_of_each(ask(array), array, ask)


def test_metrics_with_different_evaluations_are_selected_or_passed_as_by() -> None:
    log = table_of("fold", metrics=["log_loss", "brier"])
    log = log[(log.index.get_level_values("point") > 9) | (log.index.codes[0] == 0)]
    with pytest.raises(LogError, match=r"with different evaluations.*log.xs\('log_loss'.*by='metr"):
        log.cvci.interval()
    assert len(log.cvci.interval(by="metric")) == 6


@pytest.mark.parametrize("rows", [slice(3, None, N), slice(None)])
def test_evaluations_without_a_metric_are_refused(rows: slice) -> None:
    log = table_of(metrics=["log_loss", "brier"])
    table = log.reset_index()
    table.iloc[rows, 0] = None
    with pytest.raises(LogError, match=r"level 'metric' has no label \(NaN\) in row"):
        table.set_index(log.index.names).cvci.interval()


def test_moments_of_rows_of_an_array_ask_for_by() -> None:
    log, rows = table_of(metrics=RANKED), table_of(metrics=RANKED).reset_index()
    coords = {name: ("row", rows[name]) for name in log.index.names}
    array = xr.Dataset({name: ("row", log[name]) for name in log}, coords, log.attrs)
    moments = cvstats.Moments.of_log(array, by="metric")
    with pytest.raises(LogError, match="separately, as in by='metric'"):
        moments.interval()
    assert moments.interval(by="metric").sizes == {"metric": 3, "model": 3}


def test_moments_of_a_frame_answer_for_each_metric(tmp_path: Path) -> None:
    """Batches of it, a saved file, and cells that have the level ``metric``."""
    log = table_of("fold", metrics=RANKED)
    early = log.index.get_level_values("fold") < 2
    moments = sum(cvstats.Moments.of_log(log[part], pairs=True) for part in (early, ~early))
    moments.save(tmp_path / "moments")
    level = cvstats.Moments.of_log(log, by=["fold", "metric"], pairs=True)
    rows = [log.iloc[start : start + 100] for start in range(0, len(log), 100)]
    parts = sum(cvstats.Moments.of_log(part, by="fold", pairs=True) for part in rows)
    for each in (moments, cvstats.Moments.load(tmp_path / "moments"), level, parts):
        for name in ("interval", "wald", "compare", "equivalence", "moments"):
            ask = ASKED[name][1] if name in ASKED else cvstats.moments
            found = ask(each)
            pd.testing.assert_frame_equal(found, ask(log), check_exact=False, rtol=1e-10)
        found = each.interval(by="metric").loc[RANKED]
        pd.testing.assert_frame_equal(found, log.cvci.interval(), check_exact=False, rtol=1e-10)
    assert "lr is the best of 3 models: its AUC is higher than" in str(moments.summary())
    array = cvstats.Moments.of_log(array_of("fold", metrics=RANKED))
    xr.testing.assert_equal(array.interval(by="metric"), array.interval())


def test_batches_do_not_mix_metrics() -> None:
    log = table_of("fold", metrics=["log_loss", "brier"]).sort_index()
    one, other = log.loc[["brier"]].iloc[:100], log.loc[["log_loss"]].iloc[100:]
    for by in (None, "fold"):
        mixed = cvstats.Moments.of_log(one, by=by) + cvstats.Moments.of_log(other, by=by)
        with pytest.raises(LogError, match="not evaluated on the same points"):
            mixed.interval()


@pytest.mark.parametrize("writer", ["cvstats", "pandas", "index", "several"])
def test_a_file_of_several_metrics_answers_as_the_frame(writer: str, tmp_path: Path) -> None:
    """Also one that pandas wrote, which stores the attrs, and in batches of parts of a metric."""
    pytest.importorskip("pyarrow")
    log, path = table_of("fold", metrics=RANKED), tmp_path / "log.parquet"
    if writer == "cvstats":
        cvstats.save_log(log, path)
    elif writer == "several":
        for at, name in enumerate(RANKED):
            part = log.xs(name, level="metric", drop_level=False).reset_index()
            part.attrs = log.attrs
            part.to_parquet(tmp_path / f"{at}.parquet")
    else:
        (log if writer == "index" else log.reset_index()).to_parquet(path)
    wanted = log.cvci.interval()
    if writer != "several":
        read = cvstats.read_log(path).rename_axis(columns=None).cvci.interval()
        pd.testing.assert_frame_equal(read.loc[RANKED], wanted)
    paths = str(tmp_path / "*.parquet")
    moments = cvstats.scan_parquet(paths, loss=list(log), batch_size=100, pairs=True)
    pd.testing.assert_frame_equal(moments.interval(), wanted, check_exact=False, rtol=1e-12)
    found = moments.interval(by="metric").loc[RANKED]
    pd.testing.assert_frame_equal(found, wanted, check_exact=False, rtol=1e-12)
    found = cvstats.scan_parquet(paths, loss=list(log), batch_size=100, by="fold").interval()
    pd.testing.assert_frame_equal(found, wanted, check_exact=False, rtol=1e-12)
    found = moments.compare()
    pd.testing.assert_frame_equal(found, log.cvci.compare(), check_exact=False, rtol=1e-10)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("order", ["metrics", "points", "shuffled"])
def test_long_streams_of_several_metrics_keep_losses_of_the_same_points(
    order: str, dated: bool
) -> None:
    """More than are kept: cautions need single losses, of all metrics at the same points."""
    rng, n = np.random.default_rng(0), 30_000
    shock = np.cumsum(rng.standard_t(2, n)) if dated else rng.standard_t(2, n)
    levels = {"fold": np.arange(n) % 5, "point": np.arange(n)}
    if dated:
        levels["time"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) // 4, unit="D")
    index = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    losses = {"absolute": np.abs(shock), "squared": np.square(shock)}
    frames = {name: pd.DataFrame({"a": values}, index) for name, values in losses.items()}
    log = pd.concat(frames, names=["metric"])
    if order == "points":
        log = log.sort_index(level="point", sort_remaining=False, kind="stable")
    elif order == "shuffled":
        log = log.sample(frac=1, random_state=0)
    parts = (log.iloc[at : at + 9_000] for at in range(0, len(log), 9_000))
    moments = sum(cvstats.Moments.of_log(part, by=["fold", "metric"]) for part in parts)
    found, memory = moments.wald(), log.cvci.wald()
    words = "serial dependence" if dated else "heavy tails"
    assert found["caution"].str.contains(words).all()
    assert memory["caution"].str.contains(words).all()
    pd.testing.assert_frame_equal(found, moments.wald(by="metric"))


def test_a_dask_frame_of_several_metrics_answers_as_the_frame() -> None:
    dask = pytest.importorskip("dask.dataframe")
    log = table_of("fold", metrics=RANKED)
    frame = dask.from_pandas(log.reset_index(), npartitions=5)
    frame.attrs = log.attrs
    for ask in (cvstats.interval, cvstats.compare):
        pd.testing.assert_frame_equal(ask(frame).compute(), ask(log), check_exact=False, rtol=1e-12)


def test_several_losses_of_a_dask_frame_of_predictions() -> None:
    dask = pytest.importorskip("dask.dataframe")
    table, options = predictions("fold"), {"truth": "y", "prediction": ["lr", "rf"]}
    options["loss"], parts = ["brier", "log_loss"], dask.from_pandas(table.reset_index(), 4)
    found, log = cvstats.losses(parts, **options), cvstats.losses(table, **options)
    for ask in (cvstats.interval, cvstats.compare):
        pd.testing.assert_frame_equal(ask(found).compute(), ask(log), check_exact=False, rtol=1e-12)


@pytest.mark.parametrize("by", [None, "half"])
def test_parts_of_several_metrics_are_refused(by: str | None) -> None:
    """Of arrays and frames, with dropped losses, lazily, and as moments."""
    pytest.importorskip("dask")
    levels = ["fold"] if by is None else ["fold", by]
    of: dict[str, Any] = {"metrics": ["auc", "f1"], "by": by, "threshold": 0.5}
    log, frame = array_of(*levels, **of), table_of(*levels, **of)
    masked, drop = log.where(log["point"] < 100), {"missing": "drop"}
    for ask in (
        lambda: cvstats.interval(log.isel(row=slice(100))),
        lambda: cvstats.interval(log["lr"].isel(row=slice(100))),
        lambda: cvstats.interval(frame[frame.index.get_level_values("point") < 100]),
        lambda: cvstats.interval(log.isel(row=slice(100)).chunk()),
        lambda: cvstats.Moments.of_log(log.isel(row=slice(100))).interval(),
        lambda: cvstats.interval(masked, **drop),
        lambda: cvstats.interval(masked.sel(metric="auc").chunk(), **drop).compute(),
        lambda: cvstats.interval(masked.chunk(), method="naive", **drop).compute(),
    ):
        with pytest.raises(LogError, match="^this is a part of a log of auc"):
            ask()
    assert_answers_of_each(cvstats.interval(log.chunk(), **drop).compute(), log, cvstats.interval)


def test_moments_keep_the_cells_of_a_metric() -> None:
    """Averaged over the folds of each half, whatever levels are asked for."""
    pytest.importorskip("dask")
    log = table_of("fold", "half", metrics="auc", by="half", folds="average")
    wanted, each = log.cvci.interval(), log.cvci.interval(by="half")
    for by in (None, "half", ["half", "fold"]):
        moments = cvstats.Moments.of_log(log, by=by)
        pd.testing.assert_frame_equal(moments.interval(), wanted)
        if by is not None:
            pd.testing.assert_frame_equal(moments.interval(by="half"), each)
    array = array_of("fold", "half", metrics="auc", by="half", folds="average")
    lazy = array.chunk().cvci.interval().compute()
    np.testing.assert_allclose(lazy["lower"], wanted["lower"], 1e-12)


@pytest.mark.parametrize("name", ["interval", "wald", "compare", "equivalence"])
def test_moments_of_an_array_answer_for_each_metric(name: str) -> None:
    """Also for the log loss, which is not below chance as the negative AUC of the same cells."""
    metrics, ask = ASKED[name]
    log = array_of("fold", metrics=metrics)
    log = log.assign(lr=log["lr"].where(log["metric"] != "auc", 1 - log["lr"]))
    found = ask(cvstats.Moments.of_log(log, pairs=True))
    assert_answers_of_each(found, log, ask)


def test_a_dimension_of_metrics_without_labels_has_the_limits_of_losses() -> None:
    log = array_of("fold")
    found = log.drop_vars("metric").cvci.interval()
    np.testing.assert_allclose(found["lower"], log.cvci.wald()["lower"], 1e-12)


def attempts() -> xr.Dataset:
    rng = np.random.default_rng(0)
    wrong = {name: (("repetition", "point"), rng.integers(0, 2, (6, 40)) * 1.0) for name in "ab"}
    return xr.Dataset(wrong, {"repetition": range(6), "point": range(40)})


MADE: dict[str, Any] = {
    "auc": lambda: array_of("fold", metrics=["auc"]).sel(metric="auc"),
    "several": lambda: array_of("fold"),
    "contrast": lambda: cvstats.contrast(array_of("half", metrics="auc", by="half"), by="half"),
    "difference": lambda: cvstats.difference(array_of("fold", metrics="auc"), reference="lr"),
    "differences": lambda: cvstats.difference(array_of("fold"), reference="lr"),
    "passes": lambda: cvstats.passes(attempts(), k=3),
    "several passes": lambda: cvstats.passes(attempts(), k=[1, 3]),
}


@pytest.mark.parametrize("name", MADE)
def test_a_variable_is_a_log_with_the_facts_of_its_dataset(name: str) -> None:
    log = MADE[name]()
    found = log.cvci.interval()
    for model in log.data_vars:
        alone = log[model].cvci.interval()
        for column in ("estimate", "lower", "upper", "se"):
            np.testing.assert_allclose(alone[column], found.sel(model=model)[column], 1e-12)


def test_two_variables_are_compared_as_models() -> None:
    log = array_of("fold")
    for one in (log, log.sel(metric=RANKED), log.sel(metric="auc")):
        pair, two = one.cvci.compare().isel(pair=0), cvstats.compare(one["lr"], one["rf"])
        for column in ("difference", "lower", "upper", "p_value"):
            np.testing.assert_allclose(two[column], pair[column], 1e-12)
        assert two.attrs["metric"] == pair.attrs["metric"]
        assert cvstats.difference(one["lr"], one["rf"]).attrs["metric"] == two.attrs["metric"]
    other = cvstats.compare(log["lr"], log["rf"].isel(metric=[3, 1, 0, 2]))
    xr.testing.assert_equal(other, cvstats.compare(log["lr"], log["rf"]))


def test_other_attrs_named_metrics_are_ignored() -> None:
    table = pd.concat({name: predictions()[["lr"]] for name in "ab"}, names=["metric"])
    table.attrs["metrics"] = ["a", "b"]
    assert table.cvci.interval(by="metric")["estimate"].nunique() == 1


@pytest.mark.parametrize("name", ["interval", "wald", "compare", "equivalence", "difference"])
def test_a_lazy_array_answers_for_each_metric(name: str) -> None:
    pytest.importorskip("dask")
    metrics, ask = ASKED[name]
    log = array_of("fold", metrics=metrics)
    for chunks in ({"row": 70}, {"row": 90, "metric": 2}):
        assert_answers_of_each(ask(log.chunk(chunks)).compute(), log, ask)


@pytest.mark.parametrize("ask", [cvstats.interval, cvstats.compare])
def test_dropped_losses_are_those_of_each_cell(ask: Any) -> None:
    """Of losses of points: 0/1 losses have limits of their own, log losses have not."""
    log = array_of("fold", metrics=["log_loss", "net_benefit"], threshold=0.3)
    log = xr.concat([log, log.where(log["point"] != 3)], pd.Index([1, 2], name="run"))
    log["lr"] = log["lr"].where((log["run"] == 1) | (log["point"] > 9))
    found = ask(log, missing="drop")
    assert_answers_of_each(found, log, lambda one: ask(one, missing="drop"))
    assert found["n_dropped"].max() == 10


@pytest.mark.parametrize("container", ["frame", "array"])
def test_each_metric_has_its_own_default_method(container: str) -> None:
    """Of one site at a time, the AUC is averaged, and the calibration slope is of all sites."""
    log: Any = array_of("source")
    table = cvstats.losses(predictions("source"), "y", ["lr", "rf", "xgb"], METRICS, positive=1)
    found = log.cvci.interval()
    two = array_of("source", metrics=METRICS[:2]).cvci.interval()
    np.testing.assert_array_equal(two["upper"], found["upper"].sel(metric=METRICS[:2]))
    if container == "frame":
        found = table.cvci.interval(by="metric")
    assert (found.attrs["method"], found.attrs["reason"]) == (
        "interval", "the default method of each metric",
    )  # fmt: skip
    for name in METRICS:
        alone = table.xs(name, level="metric", drop_level=False).cvci.interval()
        here = found.loc[name] if container == "frame" else found.sel(metric=name)
        for column in ("estimate", "lower", "upper", "se"):
            np.testing.assert_allclose(here[column], alone[column], 1e-12)
    cvstats.to_markdown(found)


def test_metrics_without_facts_need_one_default_method() -> None:
    """One was measured in cross-validation, the other on a test set."""
    parts = {"a": predictions("fold")[["lr"]], "b": predictions("fold")[["lr"]]}
    parts["b"].index = parts["b"].index.set_codes(np.zeros(N, dtype=int), level="fold")
    with pytest.raises(LogError, match="wald for 'a', but holdout for 'b'"):
        pd.concat(parts, names=["metric"]).cvci.interval(by="metric")
    one = pd.concat({"wer": parts["a"]}, names=["metric"])
    assert one.cvci.interval().attrs["loss"] == "wer"


@pytest.mark.parametrize("suffix", [".nc", pytest.param(".zarr", marks=writes_zarr)])
def test_a_saved_array_is_read(suffix: str, tmp_path: Path) -> None:
    """Its metrics are text of pandas, which xarray keeps as a type of text of NumPy."""
    pytest.importorskip({".nc": "h5netcdf"}.get(suffix, "zarr"))
    log = array_of("fold")
    cvstats.save_log(log, tmp_path / f"log{suffix}")
    read = cvstats.read_log(tmp_path / f"log{suffix}")
    assert_answers_of_each(read.cvci.interval(), log, cvstats.interval)


@pytest.mark.parametrize("metrics", [RANKED, ["rmse", "log_loss"], ["auc", "average_precision"]])
def test_limits_of_several_metrics_are_named(metrics: list[str]) -> None:
    """Not as Wilson's, which none of them has, and with the works that describe them."""
    log = array_of("fold", metrics=metrics, folds="pool")
    found = log.cvci.interval().attrs
    alone = [log.sel(metric=name).cvci.interval().attrs for name in metrics]
    assert found["interval"] == " or ".join(dict.fromkeys(one["interval"] for one in alone))
    works = {work for one in alone for work in one["reference"].split("; ")}
    assert set(found["reference"].split("; ")) == works


def test_metrics_with_one_method_give_its_reason() -> None:
    table = cvstats.losses(predictions("fold"), "y", ["lr", "rf"], METRICS, positive=1)
    for log in (table, array_of("fold")):
        found = log.cvci.interval(by="metric")
        assert found.attrs["method"] == "wald"
        assert found.attrs["reason"].startswith("a partition into 5 folds")


def test_a_lazy_array_of_different_default_methods_names_them() -> None:
    pytest.importorskip("dask")
    log = array_of("source").chunk(row=50)
    with pytest.raises(LogError, match="method='out_of_source'"):
        log.cvci.interval().compute()
    found = log.cvci.interval(method="clustered").compute()
    assert_answers_of_each(found, array_of("source"), lambda one: cvstats.clustered(one))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("levels", [("half",), ("half", "source")])
def test_groups_of_several_metrics(levels: tuple[str, ...], gaps: bool) -> None:
    """With the default method of each: one site at a time, only some metrics are of each fold."""
    log = array_of(*levels, by="half")
    assert_answers_of_each(
        log.cvci.interval(by="half"), log, lambda one: cvstats.interval(one, by="half")
    )
    table, models = predictions(*levels), ["lr", "rf", "xgb"]
    if gaps:
        table.loc[pd.IndexSlice[[3, 8]], models] = np.nan
    rows: Any = cvstats.losses(table, "y", models, METRICS, positive=1, by="half")
    ask = partial(cvstats.interval, by="half", missing="drop")
    found = ask(rows)
    assert_rows_of_each(found.reorder_levels(["metric", "half", "model"]), rows, ask)
    assert found.attrs["method"] == ("interval" if "source" in levels else "holdout")


def test_a_metric_without_an_answer_is_named() -> None:
    with pytest.raises(LogError, match=r"metric='calibration_slope'.*log.sel\(metric="):
        array_of("fold").cvci.cv_t()
    with pytest.raises(LogError, match="^bootstrap_oob needs"):
        array_of("fold").cvci.bootstrap_oob()
    log = array_of("fold", metrics=["log_loss", "rmse"])
    log = log.where((log["metric"] == "rmse") | (log["point"] > 3))
    with pytest.raises(LogError, match=r"metric='rmse'.*log.sel\(metric="):
        log.cvci.cv_t(missing="drop")


def test_selected_metrics_are_described_without_the_others() -> None:
    """The calibration slope has a target value, so that no model is the best of it."""
    log = array_of("fold")
    with pytest.raises(LogError, match="calibration_slope has the target value 1"):
        log.cvci.best_set()
    some = log.sel(metric=RANKED)
    assert_answers_of_each(some.cvci.best_set(rng=0), some, lambda one: one.cvci.best_set(rng=0))
    assert some.cvci.interval().attrs["metric"] == RANKED
    table = cvstats.losses(predictions("fold"), "y", ["lr", "rf"], METRICS, positive=1)
    assert table.loc[RANKED].cvci.interval(by="metric").attrs["metric"] == RANKED


@pytest.mark.parametrize("container", ["frame", "array"])
def test_a_sentence_names_the_metric_of_its_row(container: str) -> None:
    table = cvstats.losses(predictions("fold"), "y", ["lr", "rf"], METRICS, positive=1)
    log: Any = table if container == "frame" else array_of("fold")[["lr", "rf"]]
    found, pairs = log.cvci.interval(by="metric"), log.cvci.compare(by="metric")
    for result, names in (
        (found, ["1 - AUC = ", "calibration slope = ", "RMSE = ", "mean log loss = "]),
        (cvstats.as_scores(found), ["AUC = ", "calibration slope = ", "RMSE = ", "log loss = "]),
        (cvstats.as_scores(pairs), ["in AUC = ", "slope = ", "in RMSE = ", "in log loss = "]),
    ):
        lines = cvstats.to_apa(result).splitlines()
        for name, words in zip(METRICS, names, strict=True):
            own = [line for line in lines if f"metric={name}" in line]
            assert [line for line in own if words in line] == own != []
    for result, label in ((pairs, "1 - AUC"), (cvstats.as_scores(pairs), "AUC")):
        heads, _, *rows = cvstats.to_markdown(result).splitlines()
        assert "difference (95% CI)" in heads
        assert sum(f"| {label} |" in row for row in rows) == 1


def test_moments_as_scores_count_the_points_of_all_metrics_once() -> None:
    found = array_of("fold").cvci.moments()
    scores = cvstats.as_scores(found)
    assert scores["count"].dims == found["count"].dims
    np.testing.assert_allclose(
        scores["mean"].sel(metric="auc"), 1 - found["mean"].sel(metric="auc")
    )


def test_a_summary_of_several_metrics_judges_each_by_its_own_facts() -> None:
    """Not the AUC by the target of the calibration slope."""
    table = cvstats.losses(predictions("fold"), "y", ["lr", "rf", "xgb"], METRICS, positive=1)
    found = str(array_of("fold").cvci.summary())
    assert found == str(table.cvci.summary(by="metric"))
    assert "lr is the best of 3 models: its AUC is higher" in found
    for name in METRICS:
        part = table.xs(name, level="metric", drop_level=False)
        alone = str(part.cvci.summary())
        assert alone in found
        assert alone == str(cvstats.Moments.of_log(part, pairs=True).summary())


def test_moments_of_metrics_by_metric() -> None:
    for log in (table_of("fold"), array_of("fold")):
        found, wanted = log.cvci.moments(by="metric"), log.cvci.moments(by=())
        assert found.equals(wanted)


def read_page(log: Any) -> str:
    """The words of a report, without its plots and without the container."""
    page = re.sub(
        r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>", "", log.cvci.report(), flags=re.S
    )
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    return re.sub(r"container \S+ \S+", "", text)


@without_marks
def test_a_report_of_several_metrics_has_a_section_of_each() -> None:
    """With the sentences of the summary, AUC and not 1 - AUC, and only the target of its own."""
    table = table_of("fold")
    page = read_page(table)
    assert page == read_page(array_of("fold"))
    assert "Metrics of 3 models 240 points, 5 folds, 3 models, 4 metrics Summary" in page
    for name, found in table.cvci.summary().items():
        assert f"{name}: {' '.join(found.sentences)}" in page
    for words in (
        "How high is the AUC? (auc)", "How large is the RMSE? (rmse)",
        "metrics AUC, higher is better; calibration slope, closer to 1 is better; RMSE, lower is "
        "better; log loss, lower is better",
    ):  # fmt: skip
        assert words in page
    assert " = auc" not in page


@without_marks
def test_moments_of_several_metrics_have_the_summary_of_each() -> None:
    for log in (table_of("fold"), array_of("fold")):
        moments = cvstats.Moments.of_log(log, pairs=True)
        assert str(moments.summary()) == str(log.cvci.summary())
        page = moments.report()
        assert "How high is the AUC? (auc)" in page
        assert "<td>AUC, higher is better; calibration slope, closer to 1" in page
    level = cvstats.Moments.of_log(table_of("fold"), by=["fold", "metric"], pairs=True)
    assert str(level.summary()["auc"]) == str(table_of("fold").cvci.summary()["auc"])
    grid = array_of("fold", metrics=["auc", "rmse"], grid=True)
    found = cvstats.Moments.of_log(grid, pairs=True).summary()
    assert list(found) == ["auc", "rmse"]
    assert "the average AUC of the models" in str(found["auc"])


def test_plots_name_what_they_show_of_each_metric() -> None:
    """1 - AUC, and no line at the target of another metric."""
    from matplotlib.figure import Figure

    for log in (table_of("fold"), array_of("fold")):
        ax = log.cvci.plot.forest(ax=Figure().subplots())
        ax.figure.canvas.draw()
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert "1 - AUC · lr" in names
        each = [name.split(" · ")[0] for name in names]  # the rows of a metric are together
        assert sum(one != two for one, two in pairwise(each)) == len(set(each)) - 1 == 3
        assert not any("=" in name for name in names)
        assert "target" not in [line.get_label() for line in ax.lines]
        some = log.loc[RANKED] if isinstance(log, pd.DataFrame) else log.sel(metric=RANKED)
        with pytest.raises(LogError, match="ranks are drawn for one cell at a time"):
            some.cvci.plot.best_set()


@pytest.mark.parametrize("name", ["contrast", "difference"])
@without_marks
def test_a_report_of_differences_of_several_metrics(name: str) -> None:
    """Also with a metric that has a target value: a difference has none."""
    metrics = ["auc", "calibration_slope"]
    log: Any = array_of("fold").sel(metric=metrics).cvci.difference(reference="lr")
    if name == "contrast":
        log = array_of("half", metrics=metrics, by="half")
        log = log.cvci.contrast(by="half", between=("x", "z"))
    page = log.cvci.report()
    assert "difference in AUC" in page
    assert "calibration slope" in page


def test_the_positive_class_is_for_the_metrics_that_have_one():
    """Cohen kappa refused it, and F1 of text needed it, so both could not be computed at once."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(["no", "yes"], (60, 2)), columns=["y", "a"])
    table.index = pd.RangeIndex(60, name="point")
    names = ["kappa", "f1", "f1_macro", "accuracy", "matthews"]
    log = cvstats.losses(table, "y", "a", names, positive="yes")
    for name in names:
        options = {"positive": "yes"} if name == "f1" else {}
        alone = cvstats.losses(table, "y", "a", name, **options)
        assert log.xs(name, level="metric").tolist() == alone.tolist()


def test_metrics_in_the_columns_are_not_compared_as_models():
    """The squared error of a model was "better" than its absolute error."""
    draw = np.random.default_rng(0).random((60, 2))
    models = pd.DataFrame(draw, pd.RangeIndex(60, name="point"), columns=["a", "b"])
    log = pd.concat({"mae": models, "mse": models**2}, axis=1, names=["metric"])
    assert cvstats.interval(log).index.names[0] == "metric"
    moments = cvstats.Moments.of_log(log, pairs=True)
    for call in ("compare", "summary", "difference", "winner", "best_set"):
        for given in (log, moments) if call in ("compare", "summary") else (log,):
            with pytest.raises(LogError, match=r"different metrics would be .* log.stack\('metric"):
                getattr(cvstats, call)(given)
    one = cvstats.compare(log[["mae"]])
    assert one["difference"].item() == cvstats.compare(models)["difference"].item()
