"""Moments in place of a log: any batches in any order say what the whole log says."""

from importlib.util import find_spec

import golden
import numpy as np
import pandas as pd
import pytest
import resampled_logs
import xarray as xr
from calls import refuses
from rows import multi_index, only_row, product_index, with_counts
from strategies import indexed

import cvstats
from cvstats import LogError, Moments
from cvstats.core.cells import Cells


def batches(frame, cuts, order):
    """Some rows at a time, the batches in some order."""
    parts = [part for part in np.split(np.arange(len(frame)), sorted(cuts)) if len(part)]
    return [frame.iloc[parts[i % len(parts)]] for i in order if i < len(parts)]


def streamed(parts, **options):
    return sum(Moments.of_log(part, **options) for part in parts)


def sourced():
    """Three models in two repetitions of five folds, on 120 points of six sources."""
    rng = np.random.default_rng(5)
    levels = {
        "repetition": np.repeat([0, 1], 120),
        "fold": np.concatenate([rng.permutation(np.arange(120) % 5) for _ in range(2)]),
        "source": [f"site {point % 6}" for point in range(120)] * 2,
        "point": np.tile(np.arange(120), 2),
    }
    return pd.DataFrame(rng.standard_normal((240, 3)), index=indexed(levels), columns=list("abc"))


@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_batches_that_bring_new_folds_are_added_in_linear_time(monkeypatch, missing):
    """Each cell is moved a few times, however many batches there are."""
    moved, add = [], Cells.__add__

    def count(one, two):
        moved[-1] += len(one.count) + len(two.count)
        return add(one, two)

    monkeypatch.setattr(Cells, "__add__", count)
    for number in (16, 128):
        values = np.random.default_rng(1).standard_normal((20 * number, 2))
        names = np.arange(20 * number)
        frame = pd.DataFrame(values, multi_index(fold=names, point=names), columns=["a", "b"])
        if missing == "drop":
            frame.iloc[7, 0] = np.nan
        cuts = range(0, len(frame), 20)
        parts = [Moments.of_log(frame[at : at + 20], missing=missing) for at in cuts]
        moved.append(0)
        whole = sum(parts)
        expected = cvstats.wald(frame, missing=missing)
        pd.testing.assert_frame_equal(whole.wald(), expected, rtol=1e-11)
    assert moved[1] < 2 * (128 / 16) * moved[0]


def test_a_missing_batch_is_noticed():
    parts = batches(sourced(), {30, 60, 200}, [0, 1, 2, 3])
    refuses("part of the log is missing", streamed(parts[:3]).wald)
    streamed(parts).wald()


def test_a_point_that_changes_its_source_is_noticed():
    frame = sourced()
    frame.index = frame.index.set_codes(
        np.roll(frame.index.codes[2], 1) * (np.arange(240) < 120)
        + frame.index.codes[2] * (np.arange(240) >= 120), level="source",
    )  # fmt: skip
    with pytest.raises(LogError, match="do not test the same points of source="):
        streamed(batches(frame, {99}, [0, 1])).clustered()


def test_parts_without_labels_may_have_more_of_them():
    """Sources are then numbered, and the second part has two more."""
    losses = np.random.default_rng(0).random((5, 20))
    parts = [xr.DataArray(part, dims=("source", "point")) for part in (losses[:3], losses)]
    found = (Moments.of_log(parts[0]) + Moments.of_log(parts[1])).interval(by="source")
    wanted = [*np.mean(losses[:3], axis=1), *np.mean(losses[3:], axis=1)]
    np.testing.assert_allclose(found["estimate"].to_numpy(), wanted)


def test_levels_in_another_order_are_the_same_levels():
    frame = golden.log_named("repeated")
    one = Moments.of_log(frame.iloc[:50], by=("fold", "repetition"), pairs=True)
    two = Moments.of_log(frame.iloc[50:], by=("repetition", "fold"), pairs=True)
    for both, levels in ((one + two, one.levels), (two + one, two.levels)):
        assert both.levels == levels
        pd.testing.assert_frame_equal(both.wald(), cvstats.wald(frame), rtol=1e-12)
        pd.testing.assert_frame_equal(both.compare(), cvstats.compare(frame), rtol=1e-12)
        cells = both.moments(by=("fold", "repetition"))
        pd.testing.assert_frame_equal(
            cells.sort_index(), frame.cvci.moments(by=("fold", "repetition")).sort_index(),
            rtol=1e-12,
        )  # fmt: skip
    with pytest.raises(LogError, match="different levels"):
        one + Moments.of_log(frame, by=("fold",), pairs=True)


def test_segments_keep_the_levels_that_methods_use(tmp_path):
    """Repetitions were counted as further points, and sources ignored, without a caution."""
    frame = sourced()
    index = frame.index.to_frame().assign(segment=frame.index.codes[3] % 2)
    frame.index = pd.MultiIndex.from_frame(index)
    cvstats.save_log(frame, tmp_path / "log.parquet")
    for moments in (
        streamed([frame.iloc[:99], frame.iloc[99:]], by="segment", pairs=True),
        cvstats.scan_parquet(tmp_path / "log.parquet", by=["segment"], pairs=True),
    ):
        for method in ("interval", "compare"):
            found = getattr(moments, method)(by="segment")
            whole = getattr(frame.cvci, method)(by="segment")
            shown = ["difference" if method == "compare" else "estimate", "lower", "upper"]
            pd.testing.assert_frame_equal(found[shown], whole[shown], rtol=1e-10)
            assert found["caution"].tolist() == whole["caution"].tolist()
    assert streamed([frame], by=["segment", "fold"]).levels == ("segment", "fold")


@pytest.mark.parametrize("by", ["fold", ()])
def test_repetitions_that_count_as_further_points_are_labeled(by, tmp_path):
    frame = sourced()[["a", "b"]]
    moments = Moments.of_log(frame, by=by)
    moments.save(tmp_path / "moments.npz")
    for part in (moments, Moments.load(tmp_path / "moments.npz")):
        assert (part.interval()["caution"] == "dependence ignored, sources ignored").all()
    once = frame.xs(0, level="repetition")
    assert (Moments.of_log(once.droplevel("source"), by=by).interval()["caution"] == "").all()
    by_source = Moments.of_log(frame, by="source").clustered()  # which sums the repetitions
    assert not by_source["caution"].str.contains("dependence").any()


@pytest.mark.parametrize("kind", ["nested_cv", "conservative_z"])
def test_resampled_data_sets_are_never_mixed(kind, tmp_path):
    """wald of their repetitions and folds averaged inner and outer losses, without a caution."""
    log = resampled_logs.example(kind)["a"]
    by = [name for name in ("repetition", "fold") if name in log.index.names]
    roads = {"memory": log, "array": log.to_xarray()}
    moments = {name: Moments.of_log(form, by=by) for name, form in roads.items()}
    if find_spec("pyarrow"):
        log.to_frame("loss").reset_index().to_parquet(tmp_path / "log.parquet")
        moments["file"] = cvstats.scan_parquet(tmp_path / "log.parquet", by=by)
    for found in moments.values():
        refuses("resampled data sets|nested cross-validation log", found.wald)
        ours, theirs = getattr(found, kind)(), getattr(cvstats, kind)(log)
        for column in ("estimate", "se"):
            assert np.asarray(ours[column]).item() == pytest.approx(theirs[column].item())


def test_logs_of_several_data_sets():
    rng = np.random.default_rng(3)
    index = product_index(dataset=["x", "y", "z"], fold=range(4), point=range(5))
    points = index.get_level_values("fold") * 5 + index.get_level_values("point")
    index = index.set_codes(np.asarray(points), level="point", verify_integrity=False)
    index = index.set_levels(range(20), level="point")
    log = pd.Series(rng.standard_normal(60), index=index)
    moments = sum(
        Moments.of_log(part, by=["dataset", "fold"]) for part in (log.iloc[:25], log.iloc[25:])
    )
    eager = log.cvci.wald(by="dataset")
    pd.testing.assert_frame_equal(moments.wald(by="dataset"), eager, rtol=1e-11)
    pd.testing.assert_series_equal(
        moments.decompose(independent="dataset"), log.cvci.decompose(independent="dataset"),
        rtol=1e-11,
    )  # fmt: skip
    refuses(r"by='dataset' or independent='dataset'", moments.wald)


def test_points_whose_numbers_may_be_years_are_no_dates_in_one_batch_only():
    draw = np.random.default_rng(0)
    levels = [np.repeat([0, 1], 1000), draw.integers(0, 5, 2000), np.tile(np.arange(1400, 2400), 2)]
    index = pd.MultiIndex.from_arrays(levels, names=["repetition", "fold", "point"])
    log = pd.DataFrame(draw.normal(size=(2000, 3)), index, ["ridge", "forest", "mean"])
    cuts = [1000, *range(1050, 2000, 50)]  # points 1,800 to 2,099 fill six batches
    parts = [part.reset_index().set_index(index.names) for part in batches(log, cuts, range(21))]
    found, expected = streamed(parts, pairs=True).compare(), log.cvci.compare()
    np.testing.assert_allclose(found["se"], expected["se"], rtol=1e-12)


@pytest.mark.parametrize("kind", ["years", "days", "quarters"])
def test_batches_of_times_show_the_dependence_of_the_log(kind):
    number = np.arange(240)
    days = pd.date_range("2013-01-01", periods=240)
    times = {
        "years": 1850 + number,
        "days": days.strftime("%Y%m%d").astype(int),
        "quarters": [f"{1950 + at // 4}Q{at % 4 + 1}" for at in number],
    }[kind]
    walk = np.repeat(np.random.default_rng(0).normal(size=24), 10)
    log = pd.Series(walk, multi_index(fold=number % 5, point=times), name="loss")
    parts = [
        part.reset_index().set_index(["fold", "point"])["loss"]
        for part in batches(log.to_frame(), [90, 180], range(3))
    ]
    found, expected = streamed(parts).wald(), log.cvci.wald()
    assert only_row(found)["caution"] == only_row(expected)["caution"]
    assert "serial dependence" in only_row(found)["caution"]


def test_cells_of_large_grids_have_the_cautions_of_their_neighbors():
    """Of 4,000 cells every second one is examined, and stands for the next one."""
    draw = np.random.default_rng(0)
    kinds = np.stack([draw.uniform(size=60), draw.uniform(size=60) ** 40])
    skewed = np.arange(4000) // 2 % 3 == 0
    log = xr.DataArray(kinds[skewed.astype(int)], dims=("cell", "point"))
    for result in (log.cvci.wald(), Moments.of_log(log).wald()):
        found = ["skewed" in words for words in cvstats.cautions(result).to_numpy()]
        np.testing.assert_array_equal(found, skewed)


@pytest.mark.parametrize("pairs", [False, True])
def test_batches_of_several_metrics_show_the_dependence_of_each(pairs):
    walk = np.repeat(np.random.default_rng(0).normal(size=24), 10)
    data = xr.Dataset(
        {"y_true": ("point", walk), "a": ("point", 0 * walk), "b": ("point", walk / 9)},
        {"point": pd.date_range("2013-01-01", periods=240), "fold": ("point", np.arange(240) % 5)},
    )
    loss = ["squared_error", "absolute_error"]
    log = cvstats.losses(data, prediction=["a", "b"], loss=loss)
    parts = [
        Moments.of_log(log.sel(point=part), pairs=pairs)
        for part in (log.point[:99], log.point[99:])
    ]
    found = (parts[0] + parts[1]).summary()
    assert list(found) == loss
    assert all("serial dependence" in each.cautions for each in found.values())
    rows = [data.isel(point=part).to_dataframe() for part in (slice(99), slice(99, None))]
    tables = [cvstats.losses(part, prediction=["a", "b"], loss=loss) for part in rows]
    cautions = streamed(tables, pairs=pairs).wald()["caution"]
    assert len(cautions) == 4
    assert cautions.str.contains("serial dependence").all()


def splits(n_train=40, **attrs):
    """Random splits, as `cvstats.evaluate` leaves them."""
    rng = np.random.default_rng(2)
    rows = [(r, int(p)) for r in range(8) for p in rng.permutation(60)[:20]]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point"])
    log = pd.DataFrame(rng.standard_normal((160, 2)), index=index, columns=["a", "b"])
    log.attrs = {"loss": "squared_error", "n_train": n_train, **attrs}
    return log


SIZES = {
    "one number": 40,
    "numpy": np.int64(40),
    "one for each": [40, 39, 38, 40, 40, 40, 40, 37],
    "an array": np.array([40.0, 39, 38, 40, 40, 40, 40, 37]),
    "by label": {label: 40 - label for label in range(8)},
    "a series": pd.Series({label: 40 - label for label in range(8)}),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("saved", [False, True])
def test_training_sizes_need_not_be_said_again(tmp_path, name, saved):
    log = splits(SIZES[name])
    moments = sum(Moments.of_log(part, pairs=True) for part in (log.iloc[:70], log.iloc[70:]))
    if saved:
        moments.save(tmp_path / "kept")
        moments = Moments.load(tmp_path / "kept")
    for ours, theirs in (
        (moments.corrected_t(), log.cvci.corrected_t()),
        (moments.compare(method="corrected_t"), log.cvci.compare(method="corrected_t")),
    ):
        expected = with_counts(theirs)
        found = with_counts(ours)
        assert set(found) - set(expected) == {"n_batches"}
        pd.testing.assert_frame_equal(found[list(expected)], expected, rtol=1e-11)
        assert "mixed" not in ours.attrs
    assert moments.attrs["loss"] == "squared_error"


@pytest.mark.parametrize("other", [{"n_train": 50}, {}, {"n_train": 40.0}])
def test_batches_that_differ_are_told(tmp_path, other):
    log = splits()
    one, two, last = log.iloc[1:70].copy(), log.iloc[70:].copy(), log.iloc[:1].copy()
    two.attrs = {"loss": "squared_error", **other}
    moments = Moments.of_log(one) + Moments.of_log(two)
    assert moments.attrs == {"loss": "squared_error"}
    moments.save(tmp_path / "kept")
    more = moments + Moments.of_log(last)
    for kept in (moments, Moments.load(tmp_path / "kept"), more):
        refuses("Pass one number for all splits", kept.corrected_t)
        told = kept.corrected_t(train_size=40).attrs["mixed"]
        assert told == "'n_train': the batches differ there, so it is not used"


def grid(units):
    return xr.DataArray(
        np.arange(12.0).reshape(2, 6), {"fold": ("point", np.arange(6) % 2)}, ("lat", "point"),
        attrs={} if units is None else {"units": units},
    )  # fmt: skip


def test_units_are_kept_and_never_mixed(tmp_path):
    moments = Moments.of_log(grid("K")) + Moments.of_log(grid("K"))
    moments.save(tmp_path / "kept")
    assert Moments.load(tmp_path / "kept").naive()["estimate"].attrs["units"] == "K"
    for other in ("degC", None):
        with pytest.raises(LogError, match=r"units 'K' in one batch and .* in the other"):
            Moments.of_log(grid("K")) + Moments.of_log(grid(other))
    with pytest.raises(LogError, match=r"log\.attrs\['units'\] = 'K'"):
        Moments.of_log(grid(None)) + Moments.of_log(grid("K"))
    log = splits(units="EUR")
    other = splits(units="USD")
    with pytest.raises(LogError, match="units 'EUR' in one batch and 'USD' in the other"):
        Moments.of_log(log) + Moments.of_log(other)


def refusals():
    frame = sourced()
    half, rest = frame.iloc[:100], frame.iloc[100:]
    one = Moments.of_log(half)
    yield "other models", "different models", lambda: one + Moments.of_log(rest[["a", "b"]])
    yield "levels", "different levels", lambda: one + Moments.of_log(rest.droplevel("source"))
    yield "pairs", "pairs=True for both", lambda: one + Moments.of_log(rest, pairs=True)
    yield "a frame and a series", "different kinds", lambda: (
        Moments.of_log(half[["a"]]) + Moments.of_log(rest["a"]))  # fmt: skip
    yield "names of series", "different models", lambda: (
        Moments.of_log(half["a"]) + Moments.of_log(rest["b"]))  # fmt: skip
    yield "a single model", "only one", lambda: Moments.of_log(half["a"], pairs=True)
    yield "a level", "no level 'month'", lambda: Moments.of_log(half, by="month")
    yield "moments of moments", "moments already", lambda: Moments.of_log(one)
    yield "drop", "needs individual losses", lambda: cvstats.wald(one, missing="drop")
    yield "two moments", "cannot be paired", lambda: cvstats.compare(one, one)
    whole = Moments.of_log(frame.xs(0, level="repetition"), pairs=True)
    flat = Moments.of_log(frame["a"].droplevel(["fold", "source"]))
    yield "seeds", "needs individual losses", lambda: flat.holdout()
    once = Moments.of_log(frame["a"].xs(0).droplevel(["fold", "source"]))
    yield "wilson", "0/1 loss.*other losses", lambda: cvstats.holdout(once, interval="wilson")
    yield "points", "needs individual losses", lambda: whole.moments(by="point")
    coarse = Moments.of_log(frame, by="repetition")
    yield "coarse", "K-fold|two folds|one fold", lambda: coarse.cv_t()
    boots = pd.concat({0: frame["a"].xs(0), 1: frame["a"].xs(1)}, names=["repetition"])
    boots = boots.to_frame().assign(count=np.arange(240) % 2).set_index("count", append=True)["a"]
    yield "bootstrap", "bootstrap log", lambda: Moments.of_log(boots)
    scores = frame["a"].xs(0).droplevel(["source", "point"]).groupby("fold").mean()
    scores.attrs["holds"] = "scores"
    yield "scores", "one score per split", lambda: Moments.of_log(scores)
    gone = half.copy()
    gone.iloc[3, 1] = np.nan
    yield "NaN", "'b' has no loss", lambda: Moments.of_log(gone)
    grid = xr.DataArray(np.ones((4, 2)), dims=("point", "lat"), coords={"lat": [1.0, 2.0]})
    masked = grid.where(grid["lat"] < 2)
    yield "a mask", "in one batch but not in another", lambda: (
        Moments.of_log(grid) + Moments.of_log(masked))  # fmt: skip
    other = grid.assign_coords(lat=[1.0, 3.0])
    yield (
        "grids",
        "different grids along 'lat'",
        lambda: Moments.of_log(grid) + Moments.of_log(other),
    )


CASES = {name: (words, call) for name, words, call in refusals()}


@pytest.mark.parametrize("name", CASES)
def test_refused_in_words(name):
    words, call = CASES[name]
    refuses(words, call)


def test_pairs_that_are_kept_are_counted(monkeypatch):
    log = sourced()
    monkeypatch.setattr("cvstats.large.moments.MOST_GAPS", 15)
    assert Moments.of_log(log, by="fold", pairs=True).compare().shape[0] == 3
    with pytest.raises(LogError, match="would keep 18 differences. Expected at most 15"):
        Moments.of_log(log, by="source", pairs=True)


@pytest.mark.parametrize("given", [42, None, pd.Series([1.0]), "log.npz"])
def test_moments_are_not_made_by_hand(given):
    refuses(r"Moments\.of_log\(log\)", Moments, given)
