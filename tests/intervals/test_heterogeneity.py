"""Differences between groups: the oracle and published numbers."""

from __future__ import annotations

import numpy as np
import oracle_sources as exactly
import pandas as pd
import pytest
from grouped_logs import LOGS, log_of, random_rows
from rows import only_row
from scipy import stats

import cvstats
from cvstats.intervals.heterogeneity import cochran_q, q_profile


@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
def test_heterogeneity_against_the_oracle(sizes, variance):
    rows = random_rows(sizes, 14)
    ours = cvstats.heterogeneity(log_of(rows), variance=variance, alpha=0.1)
    exact = exactly.heterogeneity(exactly.sources_of(rows), 0.1, variance == "pooled")
    for name, value in exact.items():
        assert only_row(ours)[name] == pytest.approx(value, rel=1e-11, abs=1e-300), name
    assert only_row(ours)["n_groups"] == len(sizes)
    assert ("variance clamped" in only_row(ours)["caution"]) == (exact["q"] < exact["df"])


VACCINE = np.array([
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
    (33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892),
    (29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338),
    (27, 16886, 29, 17825),
], dtype=float)  # fmt: skip
"""Thirteen trials of a vaccine (Colditz et al. 1994): ill and well, vaccinated and not."""


def test_q_profile_of_a_published_analysis():
    """Log odds ratios: metafor's worked example prints the interval 0.1302 to 1.1812."""
    y = np.log(VACCINE[:, 0] * VACCINE[:, 3] / VACCINE[:, 1] / VACCINE[:, 2])[:, None]
    s2 = (1 / VACCINE).sum(axis=1)[:, None]
    q, _ = cochran_q(y, s2, np.zeros(1))
    assert round(q[0], 4) == 163.1649
    limits = [q_profile(y, s2, stats.chi2.isf(tail, 12))[0] for tail in (0.025, 0.975)]
    assert limits == pytest.approx([0.1302, 1.1812], abs=1.2e-4)  # the precision of its search


def test_groups_that_do_not_differ():
    log = pd.Series(
        [1.0, 2, 1, 2, 1, 2], index=log_of(random_rows((2, 2, 2), 1)).sort_index().index
    )
    ours = cvstats.heterogeneity(log)
    assert (
        only_row(ours)["q"],
        only_row(ours)["p_value"],
        only_row(ours)["i2"],
        only_row(ours)["tau"],
    ) == (0, 1, 0, 0)
    assert (only_row(ours)["tau_lower"], only_row(ours)["tau_upper"]) == (0, 0)
