"""Adjusted p-values: Holm, and Benjamini and Hochberg."""

import numpy as np
import pytest
import xarray as xr
from statsmodels.stats.multitest import multipletests

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
