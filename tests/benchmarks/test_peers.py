"""Peers do the work that they are compared for; one that is absent is named."""

import numpy as np
import pytest
from rows import only_row

import cvstats
from benchmarks import logs, peers


def needed(library):
    pytest.importorskip(library, reason=f"{library} is a peer of the benchmarks (extra bench)")


@pytest.mark.parametrize("of", ["series", "frame"])
@pytest.mark.parametrize("name", ["by_flox", "by_numbagg", "by_pandas", "by_polars"])
def test_variances_of_folds(name, of):
    needed(name.removeprefix("by_"))
    losses = logs.series(2_000) if of == "series" else logs.frame(300, 4, order="C")
    moments = cvstats.moments(losses)
    variances = moments["var"]
    if of == "frame":
        variances = variances.unstack("model")[list(losses)]
    found = getattr(peers, name)(losses)()
    if name == "by_pandas":
        found = found["var"] if of == "series" else found.xs("var", axis=1, level=-1)
    elif name == "by_polars":
        found = found.sort("repetition", "fold")
        models = ["model"] if of == "series" else list(losses)
        assert found[f"{models[0]} count"].to_list() == [20 if of == "series" else 30] * len(found)
        found = np.column_stack([found[f"{model} var"] for model in models])
    elif name == "by_flox":
        found = found[0].T
    elif of == "frame":  # numbagg puts the folds last
        found = found.T
    np.testing.assert_allclose(np.ravel(found), np.ravel(variances), rtol=1e-9)


def test_variances_of_folds_by_numpy():
    losses = logs.series(2_000)
    moments = cvstats.moments(losses)
    for name, found in zip(("count", "mean", "var"), peers.by_bincount(losses)(), strict=True):
        np.testing.assert_allclose(found, moments[name].astype(float), rtol=1e-9)


@pytest.mark.parametrize("name", ["xarray", "flox", "numbagg"])
def test_variances_of_folds_on_a_grid(name):
    needed(name)
    losses = logs.grid(50, 6, dtype="float64")
    expected = losses.groupby("fold").var("point", ddof=1).transpose("fold", "cell").to_numpy()
    found = np.asarray(getattr(peers, f"grid_by_{name}")(losses)())
    found = found.T if found.shape == expected.T.shape else found
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["of_columns", "of_columns_by_numbagg", "of_columns_by_polars"])
def test_variances_of_columns(name):
    if "_by_" in name:
        needed(name.rpartition("_")[2])
    losses = logs.frame(300, 4, order="C")
    se = cvstats.wald(losses)["se"].to_numpy()
    found = np.ravel(getattr(peers, name)(losses)()) / 300
    if "_by_" in name:  # these divide by n - 1
        found = found * 299 / 300
    np.testing.assert_allclose(np.sqrt(found), se, rtol=1e-9)


def test_variances_of_repetitions():
    losses = logs.series(2_000)
    se = np.sqrt(np.mean(peers.by_repetition(losses)()) / 200)
    assert se == pytest.approx(cvstats.wald(losses)["se"], rel=1e-9)


def test_the_bootstrap_finds_the_same_interval():
    losses = logs.series(1_000, 1)
    found = peers.bootstrapped(losses, 2_000)().confidence_interval
    ours = only_row(cvstats.wald(losses))
    width = ours["upper"] - ours["lower"]
    assert found.low == pytest.approx(ours["lower"], abs=width / 10)
    assert found.high == pytest.approx(ours["upper"], abs=width / 10)


def test_an_absent_peer_is_named(monkeypatch):
    there = peers.find_spec
    absent = {"polars", "flox", "numbagg"}
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name in absent else there(name))
    rows = list(peers.against(peers.SERIES, logs.series(1_000), "1,000 rows", 0.0))
    cells = {row.peer: row.cells() for row in rows}
    assert set(cells) == set(peers.SERIES)
    assert cells["flox var"][3:] == ("not installed", "", "", "", "", "")
    assert cells["np.bincount, centred"][3] != "not installed"
