"""Moments in place of a log: any batches in any order say what the whole log says."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from rows import only_row
from strategies import frames, indexed

import cvstats
from cvstats import LogError, Moments
from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells


def batches(frame, cuts, order):
    """Some rows at a time, the batches in some order."""
    parts = [part for part in np.split(np.arange(len(frame)), sorted(cuts)) if len(part)]
    return [frame.iloc[parts[i % len(parts)]] for i in order if i < len(parts)]


def streamed(parts, **options):
    return sum(Moments.of_log(part, **options) for part in parts)


def alike(ours, theirs, level=1.0, spread=1.0, tolerance=1e-13):
    """Agreement to 13 digits of the spread, and to the last ones of the level."""
    ours, theirs = (pd.DataFrame(table) if isinstance(table, pd.DataFrame) else
                    pd.DataFrame(table).T for table in (ours, theirs))  # fmt: skip
    pd.testing.assert_index_equal(ours.index, theirs.index)
    assert list(ours) == list(theirs)
    # Of losses that are all alike, rounding decides whether the variance is zero or next to it.
    zero = Caution.ZERO_VARIANCE.label
    flat = np.asarray(theirs.get("se", 1.0), dtype=float) < 1e-12 * max(spread, 1e-300)
    for one, two, same in np.broadcast(ours.get("caution", ""), theirs.get("caution", ""), flat):
        told = [
            {words for words in text.split(", ") if words and (words != zero or not same)}
            for text in (one, two)
        ]
        assert told[0] == told[1]
    for name in ours.columns.drop("caution", errors="ignore"):
        unit = max(spread, 1e-300)
        squared = name.startswith(("theta", "sigma2", "omega", "variance"))
        allowed = tolerance * unit + 64 * np.finfo(float).eps * level
        one, two = (np.asarray(table[name], dtype=float) for table in (ours, theirs))
        if name in ("statistic", "p_value", "p_adjusted", "df", "i2", "q"):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
        else:
            allowed = allowed * unit if squared else allowed
            if name == "theta_1":  # the squared mean
                allowed += 64 * np.finfo(float).eps * level**2
            np.testing.assert_allclose(one, two, rtol=0, atol=allowed, err_msg=name)


def sourced(n=120, sources=6, models=3, repetitions=2, level=0.0):
    """A log with sources, in one order or another."""
    rng = np.random.default_rng(5)
    codes = {
        "repetition": np.repeat(np.arange(repetitions), n),
        "fold": np.concatenate([rng.permutation(np.arange(n) % 5) for _ in range(repetitions)]),
        "source": np.tile(np.arange(n) % sources, repetitions),
        "point": np.tile(np.arange(n), repetitions),
    }
    names = {"source": [f"site {code}" for code in range(sources)]}
    index = indexed({k: [names[k][i] for i in v] if k in names else v for k, v in codes.items()})
    values = level + rng.standard_normal((n * repetitions, models))
    return pd.DataFrame(values, index=index, columns=list("abc")[:models])


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
        index = pd.MultiIndex.from_arrays([names, names], names=["fold", "point"])
        frame = pd.DataFrame(values, index, columns=["a", "b"])
        if missing == "drop":
            frame.iloc[7, 0] = np.nan
        cuts = range(0, len(frame), 20)
        parts = [Moments.of_log(frame[at : at + 20], missing=missing) for at in cuts]
        moved.append(0)
        whole = sum(parts)
        alike(whole.wald(), cvstats.wald(frame, missing=missing), 4, 4)
    assert moved[1] < 2 * (128 / 16) * moved[0]


# --- save and load ------------------------------------------------------------------------------


WRITTEN = ("integers", "floats", "strings", "dates", "periods", "tuples", "categories")


@given(frames(labels=WRITTEN))
def test_save_and_load(tmp_path_factory, kind_frame):
    _, frame = kind_frame
    path = tmp_path_factory.mktemp("kept") / "moments.npz"
    moments = Moments.of_log(frame, pairs=frame.shape[1] > 1)
    moments.save(path)
    again = Moments.load(path)
    assert again.cells.labels == moments.cells.labels
    pd.testing.assert_frame_equal(again.moments(), moments.moments(), check_exact=True)
    pd.testing.assert_frame_equal(again.wald(), moments.wald(), check_exact=True)
    first, second = (Moments.of_log(frame[part::2], pairs=True) for part in (0, 1)) if (
        frame.shape[1] > 1
    ) else (None, None)  # fmt: skip
    if first is not None:
        first.save(path)
        both = (Moments.load(path) + second).compare(adjust=None)
        pd.testing.assert_frame_equal(both, (first + second).compare(adjust=None))
    assert [file.name for file in path.parent.iterdir()] == ["moments.npz"]


def test_a_saved_grid(tmp_path):
    rng = np.random.default_rng(0)
    log = xr.DataArray(
        rng.standard_normal((3, 20, 2)),
        {"fold": ("point", np.arange(20) % 4), "lat": [1.5, 2.5, 4.0], "name": ("lat", list("xyz")),
         "time": ("model", pd.date_range("2020", periods=2)), "model": ["a", "b"],
         "code": ("lat", np.array(["x", 3, None], dtype=object)), "run": 5},
        ("lat", "point", "model"), attrs={"units": "K"},
    )  # fmt: skip
    Moments.of_log(log, pairs=True).save(tmp_path / "grid")
    again = Moments.load(tmp_path / "grid")
    xr.testing.assert_identical(again.wald(), cvstats.Moments.of_log(log).wald())
    xr.testing.assert_allclose(again.compare(), cvstats.compare(log))
    stacked = Moments.of_log(log.drop_vars("name").stack(cell=("lat", "model")))
    with pytest.raises(LogError, match=r"'cell' has several levels.*log.reset_index\('cell'\)"):
        stacked.save(tmp_path / "grid")


def test_what_is_no_file_of_moments(tmp_path):
    frame = sourced()
    frame.to_pickle(tmp_path / "frame")
    np.savez(tmp_path / "numbers.npz", a=1)
    for name in ("frame", "numbers.npz"):
        with pytest.raises(LogError, match="does not contain moments"):
            Moments.load(tmp_path / name)
    for labels in ([object(), object()], [frozenset("a"), frozenset("b")], [1, "1"]):
        odd = pd.Series([1.0, 2.0], index=pd.Index(labels, name="fold", tupleize_cols=False))
        moments = Moments.of_log(odd)
        if labels == [1, "1"]:
            moments.save(tmp_path / "odd")
            assert Moments.load(tmp_path / "odd").cells.labels == moments.cells.labels
            continue
        with pytest.raises(LogError, match=r"of 'fold' has the type .*cannot be written") as told:
            moments.save(tmp_path / "odd")
        assert "As text: losses = losses.rename(index=str, level='fold')" in str(told.value)
        assert not (tmp_path / "odd").exists()


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path, moments = tmp_path / "moments.npz", Moments.of_log(sourced())
    moments.save(path)

    def fill(file, **arrays):
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fill)
    with pytest.raises(LogError, match=r"'moments.npz' could not be written: No space left"):
        moments.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["moments.npz"]
    pd.testing.assert_frame_equal(Moments.load(path).wald(), moments.wald())


def test_times_with_zones_are_read_as_they_were(tmp_path):
    days = pd.date_range("2024-03-30", periods=3, tz="Europe/Berlin")
    for labels in (days, days.as_unit("s"), days - days[0]):
        log = pd.Series(np.arange(6.0), pd.Index(labels.repeat(2), name="fold"))
        Moments.of_log(log).save(tmp_path / "days")
        assert Moments.load(tmp_path / "days").cells.labels == Moments.of_log(log).cells.labels


def test_a_file_that_unpacks_to_more_than_it_is_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, head=np.zeros(30_000_000, np.uint8))
    tracemalloc.start()
    with pytest.raises(LogError, match="does not contain moments"):
        Moments.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_damaged_file_is_refused_in_one_way(tmp_path):
    path, draw = tmp_path / "moments.npz", np.random.default_rng(0)
    moments = Moments.of_log(sourced())
    moments.save(path)
    whole, expected = path.read_bytes(), moments.wald()
    for i in range(60):
        damaged = bytearray(whole)
        if i % 2:
            damaged = damaged[: draw.integers(len(whole))]
        else:
            damaged[draw.integers(len(whole))] ^= 1 << draw.integers(8)
        path.write_bytes(damaged)
        with suppress(LogError):  # and nothing else; some bits of an archive are never read
            pd.testing.assert_frame_equal(Moments.load(path).wald(), expected)


def test_files_whose_cells_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "moments.npz"
    Moments.of_log(sourced()).save(path)
    arrays = dict(np.load(path))
    for name, change in (
        ("cells_codes", lambda codes: codes + 1), ("cells_count", lambda count: count[1:]),
        ("cells_prints", lambda prints: prints[1:]), ("cells_origin", lambda origin: origin[:1]),
        ("cells_mean", lambda mean: mean.T),
    ):  # fmt: skip
        np.savez(path, **{**arrays, name: change(arrays[name])})
        with pytest.raises(LogError, match="is damaged"):
            Moments.load(path)


# --- checks across batches ----------------------------------------------------------------------


def test_a_missing_batch_is_noticed():
    parts = batches(sourced(), {30, 60, 200}, [0, 1, 2, 3])
    with pytest.raises(LogError, match="part of the log is missing"):
        streamed(parts[:3]).wald()
    streamed(parts).wald()


def test_a_point_that_changes_its_source_is_noticed():
    frame = sourced()
    frame.index = frame.index.set_codes(
        np.roll(frame.index.codes[2], 1) * (np.arange(240) < 120)
        + frame.index.codes[2] * (np.arange(240) >= 120), level="source",
    )  # fmt: skip
    with pytest.raises(LogError, match="do not test the same points of source="):
        streamed(batches(frame, {99}, [0, 1])).clustered()


# --- refusals -----------------------------------------------------------------------------------


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
    for name in ("best_set", "mcnemar", "cochran_q"):
        call = getattr(cvstats, name)
        yield name, "needs individual losses", lambda call=call: call(whole)
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
    with pytest.raises(LogError, match=words):
        call()


def test_pairs_that_are_kept_are_counted(monkeypatch):
    log = sourced()
    monkeypatch.setattr("cvstats.large.moments.MOST_GAPS", 15)
    assert Moments.of_log(log, by="fold", pairs=True).compare().shape[0] == 3
    with pytest.raises(LogError, match="would keep 18 differences. Expected at most 15"):
        Moments.of_log(log, by="source", pairs=True)


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
    index = pd.MultiIndex.from_arrays([number % 5, times], names=["fold", "point"])
    log = pd.Series(walk, index, name="loss")
    parts = [
        part.reset_index().set_index(["fold", "point"])["loss"]
        for part in batches(log.to_frame(), [90, 180], range(3))
    ]
    found, expected = streamed(parts).wald(), log.cvci.wald()
    assert only_row(found)["caution"] == only_row(expected)["caution"]
    assert "serial dependence" in only_row(found)["caution"]
