"""Score limits and exact tests of proportions, against other programs and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

from cvstats.comparisons.zero_one import binomial_p_values, score_statistic, tango_limits
from cvstats.intervals._limits import clopper_pearson, wilson

TABLES = st.integers(2, 60).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n)).filter(
        lambda table: table[0] + table[1] <= table[2]
    )
)


def arrays(*numbers):
    return [np.array([number], dtype=float) for number in numbers]


def likelihood_score(n10, n01, n, difference):
    """Maximize the trinomial likelihood at a fixed difference, and standardize the estimate."""
    low, high = max(0.0, -difference), (1 - difference) / 2
    if difference > 0:
        high = min(high, 1 - difference)
    rest = n - n10 - n01

    def loss(q):
        shares = (q + difference, q, 1 - 2 * q - difference)
        counts = (n10, n01, rest)
        if any(s <= 0 < k for s, k in zip(shares, counts, strict=True)):
            return np.inf
        return -sum(k * math.log(s) for s, k in zip(shares, counts, strict=True) if k)

    grid = np.linspace(low, high, 401)
    at = int(np.argmin([loss(q) for q in grid]))
    left, right = grid[max(at - 1, 0)], grid[min(at + 1, 400)]
    found = optimize.minimize_scalar(loss, bounds=(left, right), options={"xatol": 1e-13})
    q = min((found.x, grid[at]), key=loss)
    return (n10 - n01 - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))


@given(TABLES, st.floats(-0.9, 0.9))
def test_the_score_is_that_of_the_most_likely_table(table, difference):
    n10, n01, n = table
    ours = score_statistic(*arrays(n10, n01), n, difference).item()
    if abs(difference) > 1e-3:
        wanted = likelihood_score(n10, n01, n, difference)
        assert ours == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    ("n10", "n01", "n", "lower", "upper"),
    [
        # contingencytables 3.0.0, Tango_asymptotic_score_CI_paired_2x2(cavo_2012)
        (6, 16, 161, -0.1240, -0.0054),
        # the same of bentur_2009; Fagerland, Lydersen and Laake (2014), table VI
        (1, 7, 21, -0.517, -0.026),
    ],
)
def test_limits_of_published_tables(n10, n01, n, lower, upper):
    ours = np.concatenate(tango_limits(*arrays(n10, n01), n, 0.05))
    digits = 4 if abs(lower) < 0.2 else 3
    np.testing.assert_array_equal(ours.round(digits), [lower, upper])


def test_published_p_values():
    # contingencytables 3.0.0: McNemar_asymptotic_test_paired_2x2, _exact_cond_, _midP_ (cavo_2012)
    n10, n01 = arrays(6, 16)
    z = score_statistic(n10, n01, 161, 0.0)
    assert z.item() == pytest.approx(-2.132, abs=5e-4)
    assert 2 * stats.norm.cdf(z).item() == pytest.approx(0.033006, abs=5e-7)
    assert binomial_p_values(n10, n01).item() == pytest.approx(0.052479, abs=5e-7)
    assert binomial_p_values(n10, n01, mid=True).item() == pytest.approx(0.034690, abs=5e-7)
    # Tango (1998), section 5: one discordant pair of 44 lenses, non-inferiority margin 0.1
    z = score_statistic(*arrays(0, 1), 44, -0.1).item()
    assert (round(z, 3), round(stats.norm.sf(z), 3)) == (1.709, 0.044)


@given(TABLES, st.sampled_from([0.01, 0.05, 0.3]))
def test_the_limits_are_where_the_score_is_critical(table, alpha):
    n10, n01, n = table
    lower, upper = tango_limits(*arrays(n10, n01), n, alpha)
    assert -1 <= lower <= (n10 - n01) / n <= upper <= 1
    z = stats.norm.isf(alpha / 2)
    for limit, sign in ((lower, 1), (upper, -1)):
        if abs(limit) < 1:
            score = score_statistic(*arrays(n10, n01), n, limit).item()
            assert score == pytest.approx(sign * z, rel=1e-6)
    assert (lower.item() == -1) == (n01 == n)
    assert (upper.item() == 1) == (n10 == n)
    swapped = tango_limits(*arrays(n01, n10), n, alpha)
    np.testing.assert_allclose([swapped[0], swapped[1]], [-upper, -lower], atol=1e-15)
    for alternative, side in (("less", 1), ("greater", 0)):
        one_sided = tango_limits(*arrays(n10, n01), n, alpha / 2, alternative)
        assert one_sided[side] == (lower, upper)[side]
        assert np.isinf(one_sided[1 - side]).all()


def test_without_variance_the_score_is_infinite_or_zero():
    n10, n01 = np.array([0.0, 3.0, 0.0, np.nan]), np.array([0.0, 0.0, 5.0, 0.0])
    np.testing.assert_array_equal(
        score_statistic(n10, n01, 5, np.array([0.0, -1.0, -1.0, 0.0])), [0, np.inf, 0, np.nan]
    )
    lower, upper = tango_limits(n10, n01, 5, 0.05)
    assert np.isnan([lower[3], upper[3]]).all()
    assert np.isfinite(np.stack([lower, upper])[:, :3]).all()


@given(TABLES)
def test_exact_tests_as_scipy(table):
    n10, n01, _ = table
    total = n10 + n01
    for alternative, side in (("two-sided", "two-sided"), ("less", "less"), ("greater", "greater")):
        wanted = stats.binomtest(n10, total, 0.5, alternative=side).pvalue if total else 1.0
        ours = binomial_p_values(*arrays(n10, n01), alternative).item()
        assert ours == pytest.approx(wanted, rel=1e-10)
    half = stats.binom.pmf(n10, total, 0.5) / 2
    for alternative in ("less", "greater"):
        mid = binomial_p_values(*arrays(n10, n01), alternative, mid=True).item()
        exact = binomial_p_values(*arrays(n10, n01), alternative).item()
        assert mid == pytest.approx(exact - half, rel=1e-10)
    assert np.isnan(binomial_p_values(*arrays(np.nan, 0))).all()


@pytest.mark.parametrize(("errors", "n"), [(0, 50), (1, 50), (3, 20), (10, 20), (50, 50)])
def test_intervals_of_one_proportion_as_statsmodels(errors, n):
    for ours, name in ((wilson, "wilson"), (clopper_pearson, "beta")):
        found = np.concatenate(ours(np.array([errors / n]), n, 0.1))
        np.testing.assert_allclose(
            found, proportion_confint(errors, n, 0.1, name), rtol=1e-12, atol=1e-15
        )
        for alternative, side in (("less", 1), ("greater", 0)):
            bound = np.concatenate(ours(np.array([errors / n]), n, 0.05, alternative))
            assert bound[side] == found[side]
            assert np.isinf(bound[1 - side])
        assert np.isnan(ours(np.array([np.nan]), n, 0.1)).all()


def tables_near(n, p10, p01):
    """All tables that have some probability, and how much."""
    most = [int(stats.binom.isf(1e-9, n, max(p, 1e-12))) + 1 for p in (p10, p01)]
    n10, n01 = (x.ravel() for x in np.meshgrid(*(np.arange(k + 1.0) for k in most)))
    possible = n10 + n01 <= n
    n10, n01 = n10[possible], n01[possible]
    chance = stats.binom.pmf(n10, n, p10) * stats.binom.pmf(n01, n - n10, p01 / (1 - p10))
    return n10, n01, chance


@pytest.mark.parametrize("n", [50, 75, 100, 150, 200, 300, 500])
@pytest.mark.parametrize("margin", [0.01, 0.03, 0.1])
def test_size_of_the_score_test_at_the_margin(n, margin):
    """The largest of all is .0593, at 200 points, margin .03 and errors of one model only."""
    for other in (0, 0.002, 0.005, 0.01, 0.03, 0.08, 0.2):
        n10, n01, chance = tables_near(n, other + margin, other)
        above = score_statistic(n10, n01, n, -margin)
        under = score_statistic(n10, n01, n, margin)
        size = chance[(above > stats.norm.isf(0.05)) & (under < stats.norm.ppf(0.05))].sum()
        assert size <= 0.06


@pytest.mark.parametrize(
    ("n", "at_one_percent", "average"),
    [(50, 0.911, 0.948), (100, 0.921, 0.956), (200, 0.948, 0.959)],
)
def test_coverage_of_wilson_at_few_errors(n, at_one_percent, average):
    errors = np.arange(n + 1.0)
    limits = {kind: kind(errors / n, n, 0.05) for kind in (wilson, clopper_pearson)}

    def coverage(kind, rate):
        lower, upper = limits[kind]
        return stats.binom.pmf(errors, n, rate)[(lower <= rate) & (rate <= upper)].sum()

    assert coverage(wilson, 0.01) == pytest.approx(at_one_percent, abs=5e-4)
    rates = np.linspace(0.005, 0.02, 301)
    assert np.mean([coverage(wilson, rate) for rate in rates]) == pytest.approx(average, abs=5e-4)
    assert min(coverage(clopper_pearson, rate) for rate in rates) >= 0.95
