"""Nemenyi's test of all pairs by their mean ranks."""

from __future__ import annotations

import numpy as np
import oracle_many
import pandas as pd
import pytest

import cvstats

RNG = np.random.default_rng(48)


@pytest.mark.parametrize(("n", "k"), [(5, 3), (12, 4), (30, 10)])
def test_nemenyi_as_integrated(n, k):
    frame = pd.DataFrame(RNG.normal(size=(n, k)) + 0.1 * np.arange(k)).rename_axis("source")
    pairs = frame.cvci.nemenyi()
    for _, row in pairs.iterrows():
        wanted = oracle_many.nemenyi(row["rank_difference"], n, k)
        assert row["p_value"] == pytest.approx(wanted, abs=1e-7)
    far = pairs["rank_difference"].abs() > pairs.attrs["critical_difference"]
    assert (far == (pairs["p_value"] < 0.05)).all()
    ranks = frame.cvci.friedman()["mean_rank"]
    for (a, b), gap in pairs["rank_difference"].items():
        assert gap == pytest.approx(ranks[a] - ranks[b], abs=1e-12)


def test_equal_means_tie_whatever_the_order_of_rows():
    """Means of .1, .2, .3 and of .3, .2, .1 differed by rounding, and with them the ranks."""
    losses = np.tile([[0.1, 0.3, 0.4], [0.2, 0.2, 0.1], [0.3, 0.1, 0.1], [0.7, 0.6, 0.7]], (6, 1))
    index = pd.MultiIndex.from_arrays(
        [np.repeat(range(6), 4), range(24)], names=["source", "point"]
    )
    log = pd.DataFrame(losses, index, list("abc"))
    found = {
        tuple(cvstats.nemenyi(log.sample(frac=1, random_state=seed))["p_value"].round(12))
        for seed in range(10)
    }
    assert len(found) == 1
