"""Cochran's Q: several models, losses of 0 and 1."""

from __future__ import annotations

import numpy as np
import oracle_many
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats


@given(st.integers(2, 5).flatmap(
    lambda m: st.lists(st.lists(st.integers(0, 1), min_size=m, max_size=m), min_size=2, max_size=40)
))  # fmt: skip
def test_q_from_row_and_column_sums(table):
    frame = pd.DataFrame(table, dtype=float).rename_axis("point")
    exact = float(oracle_many.cochran(table))
    ours = frame.cvci.cochran_q()
    np.testing.assert_allclose(ours["statistic"], exact, rtol=1e-12, atol=1e-12)
    k = frame.shape[1]
    np.testing.assert_allclose(ours["p_value"], stats.chi2.sf(exact, k - 1), rtol=1e-10)
    np.testing.assert_allclose(ours["estimate"], frame.mean())
    assert set(ours["df"]) == {k - 1}
