"""Nemenyi's test of all pairs by their mean ranks."""

import numpy as np
import oracle_many
import pandas as pd
import pytest

RNG = np.random.default_rng(48)


@pytest.mark.parametrize(("n", "k"), [(5, 3), (12, 4), (30, 10)])
def test_nemenyi_as_integrated(n, k):
    frame = pd.DataFrame(RNG.normal(size=(n, k)) + 0.1 * np.arange(k)).rename_axis("source")
    pairs = frame.cvci.nemenyi()
    for _, row in pairs[:: k // 3].iterrows():
        wanted = oracle_many.nemenyi(row["rank_difference"], n, k)
        assert row["p_value"] == pytest.approx(wanted, abs=1e-7)
    far = pairs["rank_difference"].abs() > pairs.attrs["critical_difference"]
    assert (far == (pairs["p_value"] < 0.05)).all()
    ranks = frame.cvci.friedman()["mean_rank"]
    for (a, b), gap in pairs["rank_difference"].items():
        assert gap == pytest.approx(ranks[a] - ranks[b], abs=1e-12)
