"""holdout against the oracle, and what it refuses."""

import numpy as np
import oracle
import pandas as pd
import pytest
from fold_logs import ALPHAS, LIMITS, agrees
from golden import log_named
from hypothesis import given
from hypothesis import strategies as st
from rows import only_row, product_index
from scipy import stats
from strategies import logs, series

import cvstats
from cvstats.intervals.holdout import seeds_matter
from cvstats.log.read import read


@given(st.data(), st.sampled_from(["wald", "t"]), ALPHAS)
def test_holdout(data, interval, alpha):
    rows = data.draw(logs(sizes=(2, 14), folds=(1, 1), repetitions=(1, 3)))
    exact = oracle.holdout(rows, interval, alpha)
    log = series(rows, levels=("repetition", "point"))
    agrees(cvstats.holdout(log, interval=interval, alpha=alpha), exact, rows)


@given(logs(sizes=(2, 30), folds=(1, 1), zero_one=True), ALPHAS)
def test_holdout_of_proportions(rows, alpha):
    log = series(rows, levels=("point",))
    for interval in ("wilson", "clopper-pearson"):
        exact = oracle.holdout(rows, interval, alpha)
        ours = only_row(cvstats.holdout(log, interval=interval, alpha=alpha))
        for name in LIMITS:
            assert ours[name] == pytest.approx(float(getattr(exact, name)), rel=1e-12, abs=1e-15)
        assert 0 <= ours["lower"] < ours["upper"] <= 1
        assert "zero variance" not in ours["caution"]


def test_proportions_of_several_repetitions_are_refused():
    right = log_named("binary set")
    twice = pd.concat({0: right, 1: right}, names=["repetition"])
    with pytest.raises(cvstats.LogError, match="this log has 2 repetitions"):
        cvstats.holdout(twice, interval="clopper-pearson")


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_seeds_that_differ_are_flagged_and_the_advice_works(spread):
    """Two equal networks of five seeds each differed "significantly" in 67% of logs, silently."""
    rng = np.random.default_rng(5)
    index = product_index(repetition=range(5), point=range(400))
    hard, seeds = np.tile(rng.normal(size=400), 5), rng.normal(0, spread, (5, 2))
    odds = hard[:, None] + np.repeat(seeds, 400, axis=0)
    log = pd.DataFrame((rng.random((2000, 2)) < 1 / (1 + np.exp(-odds))) * 1.0, index, ["a", "b"])
    call = "options={'by': ('point', 'repetition')}"
    assert ("CVS017" in log.cvci.diagnose()["code"].tolist()) == (spread > 0)
    for table in (log, log.to_xarray()):
        results = cvstats.holdout(table), cvstats.holdout(table, interval="hall")
        for result in (*results, cvstats.compare(table)):
            assert ("unstable" in result.attrs["cautions"]) == (spread > 0)
    assert (call in str(log.cvci.compare().attrs["cautions"])) == (spread > 0)
    by = {"by": ("point", "repetition")}
    wide, narrow = log.cvci.compare(method="clustered", options=by), log.cvci.compare()
    assert (wide["se"] > 2 * narrow["se"]).all() == (spread > 0)
    means = log.groupby("repetition").mean()  # by hand: a two-way table without interaction
    table = log["a"].unstack("repetition")
    rest = table.sub(table.mean(axis=1), axis=0) - (means["a"] - log["a"].mean())
    per_run, noise = 400 * means["a"].var(), (rest**2).to_numpy().sum() / (4 * 399)
    extra = max(per_run - noise, 0) / 400 / (table.mean(axis=1).var() / 400)
    ratio, _ = seeds_matter(*(read(log["a"]).moments((by,)) for by in ("repetition", "point")))
    assert ratio.item() == pytest.approx(extra**0.5, rel=1e-9)


def test_seeds_differ_by_an_f_test_and_if_they_add_a_fifth_to_the_variance():
    rng = np.random.default_rng(1)
    k, n, models = 3, 12, 400
    seeds, points = rng.normal(0, 0.8, (k, 1, models)), rng.normal(size=(n, models))
    losses = rng.normal(size=(k, n, models)) + seeds + points * rng.uniform(0, 6, models)
    index = product_index(repetition=range(k), point=range(n))
    log = read(pd.DataFrame(losses.reshape(-1, models), index))
    runs, units = losses.mean(axis=1), losses.mean(axis=0)
    rest = ((losses - runs[:, None] - units + units.mean(axis=0)) ** 2).sum(axis=(0, 1))
    noise, of_runs = rest / ((k - 1) * (n - 1)), n * runs.var(axis=0, ddof=1)
    significant = stats.f.sf(of_runs / noise, k - 1, (k - 1) * (n - 1)) < 0.01
    matters = (of_runs - noise) / k > 0.2 * units.var(axis=0, ddof=1)
    found = seeds_matter(*(log.moments((by,)) for by in ("repetition", "point")))[1]
    np.testing.assert_array_equal(found.reshape(-1), significant & matters)
    assert (significant & ~matters).sum() > 20
    assert (matters & ~significant).sum() > 20
    assert found.sum() > 20
