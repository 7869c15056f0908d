"""Adjusted p-values: Holm, and Benjamini and Hochberg."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from statsmodels.stats.multitest import multipletests

import cvstats
from cvstats.errors import LogError


def maps(n_models):
    """Losses of models on a map of 4 by 3 cells, one of them masked."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=(40, n_models, 4, 3)) + 0.3 * np.arange(12).reshape(4, 3) % 0.9
    values[:, 0] += rng.choice([0.0, 1.0], size=(4, 3))
    values[:, :, 2, 1] = np.nan
    return xr.DataArray(
        values, dims=("point", "model", "lat", "lon"),
        coords={"point": range(40), "model": list("abcd")[:n_models], "lat": range(4)},
    )  # fmt: skip


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("n_models", [2, 3])
@pytest.mark.parametrize(("adjust", "theirs"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_all_pairs_and_carried_cells_count(adjust, theirs, n_models, lazy):
    log = maps(n_models)
    if lazy:
        log = log.chunk(lat=2, lon=1)
    table = log.cvci.compare(adjust=adjust)
    assert list(table)[5:7] == ["p_value", "p_adjusted"]
    assert (table["p_adjusted"].chunks is not None) == lazy
    assert table.attrs["adjust"] == adjust
    p, ours = table["p_value"].values.ravel(), table["p_adjusted"].values.ravel()
    known = ~np.isnan(p)
    assert known.sum() == 11 * len(log.cvci.compare()["pair"])
    np.testing.assert_allclose(ours[known], multipletests(p[known], method=theirs)[1], rtol=1e-12)
    assert np.isnan(ours[~known]).all()
    assert "p_adjusted" not in log.cvci.compare(adjust=None)


@pytest.mark.parametrize("lazy", [False, True])
def test_two_logs_with_carried_cells(lazy):
    log = maps(2).chunk(lat=1) if lazy else maps(2)
    one, two = (log.sel(model=name, drop=True) for name in "ab")
    table = one.cvci.compare(two, adjust="bh")
    wanted = log.cvci.compare(adjust="bh").isel(pair=0)
    np.testing.assert_allclose(table["p_adjusted"], wanted["p_adjusted"], rtol=1e-12)
    cell = {"lat": 0, "lon": 0}
    assert "p_adjusted" not in one.isel(cell).cvci.compare(two.isel(cell), adjust="bh")


@pytest.mark.parametrize("lazy", [False, True])
def test_max_t_of_one_pair_in_many_cells_is_refused(lazy):
    log = maps(2).chunk(lat=1) if lazy else maps(2)
    with pytest.raises(LogError, match=r"one pair in each of 12 cells\. Use adjust='holm' or"):
        log.cvci.compare(adjust="max-t")
    assert "p_adjusted" in maps(3).cvci.compare(adjust="max-t", n_draws=99)


@pytest.mark.parametrize("adjust", ["holm", "bh", "max-t"])
def test_many_normal_tests_of_few_points_are_flagged(adjust):
    """Without a difference, holm and bh find one in .32 of maps of 1,000 cells and 30 points."""
    rng = np.random.default_rng(3)
    losses = pd.DataFrame(rng.normal(size=(40, 20)), pd.RangeIndex(40, name="point"))
    draws = {"n_draws": 999, "rng": 0} if adjust == "max-t" else {}

    def flagged(log, **options):
        return log.cvci.compare(adjust=adjust, **draws, **options)["caution"].str.contains(
            "too many"
        )

    assert flagged(losses).all()
    assert not flagged(losses.iloc[:, :3]).any()
    assert not flagged(losses, method="clustered", options={"by": "point"}).any()  # Student's t


def test_cells_count_as_tests_in_memory_and_lazily():
    log = maps(2)
    few, many = log.isel(lat=[0], lon=[0, 1]), log.isel(lat=[0, 2] * 10)
    for each, labels in ((few, {""}), (many, {"too many models", "no losses"})):
        wanted = each.cvci.compare()
        found = each.chunk(lat=1).cvci.compare().compute()
        assert set(cvstats.cautions(wanted).values.ravel()) == labels
        np.testing.assert_array_equal(found["caution"], wanted["caution"])


def test_exact_tests_and_limits_of_every_look_are_not_flagged():
    rng = np.random.default_rng(4)
    wrong = pd.DataFrame((rng.random((60, 12)) < 0.1) * 1.0, pd.RangeIndex(60, name="point"))
    assert not wrong.cvci.compare()["caution"].str.contains("too many").any()
    early = wrong + rng.normal(size=wrong.shape)
    assert not early.cvci.compare(anytime=True)["caution"].str.contains("too many").any()
