"""cv_t and naive against the oracle."""

import oracle
from fold_logs import ALPHAS, agrees
from hypothesis import given
from rows import only_row
from strategies import logs, shuffled

import cvstats


@given(logs(folds=(2, 5), repetitions=(1, 3)), ALPHAS)
def test_naive_and_cv_t(rows, alpha):
    agrees(cvstats.naive(shuffled(rows), alpha=alpha), oracle.naive(rows, alpha), rows)
    ours = cvstats.cv_t(shuffled(rows), alpha=alpha)
    exact = oracle.cv_t(rows, alpha)
    agrees(ours, exact, rows)
    assert only_row(ours)["df"] == exact.df
