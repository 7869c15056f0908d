"""An offset of 1e9 changes no width, in memory, on dask and in batches alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rows import only_row

import cvstats


def test_batches_far_from_each_other():
    rng = np.random.default_rng(1)
    offsets = np.repeat([0.0, 1e9, -1e9, 5.0], 1000)
    index = pd.MultiIndex.from_arrays(
        [np.arange(4000) % 10, np.arange(4000)], names=["fold", "point"]
    )
    log = pd.Series(rng.normal(size=4000) + offsets, index)
    for method in ("naive", "wald"):
        whole = only_row(getattr(cvstats, method)(log))
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
            parts = [cvstats.Moments.of_log(log.iloc[1000 * i : 1000 * i + 1000]) for i in order]
            found = only_row(getattr(cvstats, method)(sum(parts)))
            assert found["se"] == pytest.approx(whole["se"], rel=1e-12)
