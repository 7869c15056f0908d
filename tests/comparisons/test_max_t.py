"""Simultaneous intervals: the joint law of all differences, whatever holds the losses."""

import itertools
from functools import partial

import numpy as np
import oracle_many
import pandas as pd
import pytest
from paired_logs import equivalent_models
from rows import multi_index
from scipy import stats

import cvstats
from cvstats.comparisons import _adjust as max_t
from cvstats.errors import LogError

ALTERNATIVES = ["two-sided", "less", "greater"]
RNG = np.random.default_rng(17)


models = partial(equivalent_models, k=4, names="abcd", rng=RNG)
FRAME = models()


def of_draws(p, draws):
    """Five standard errors of a share of draws."""
    return 5 * np.sqrt(p * (1 - p) / draws) + 2 / draws


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_two_against_a_reference_as_integrated(alternative):
    draws = 200_000
    frame = FRAME[["a", "b", "c"]]
    table = frame.cvci.compare(
        reference="a", method="wald", adjust="max-t", alternative=alternative, n_draws=draws, rng=1
    )
    gaps = [(frame[name] - frame["a"]).tolist() for name in ("b", "c")]
    for z, p in zip(table["statistic"], table["p_adjusted"], strict=True):
        bound = {"two-sided": abs(z), "less": -z, "greater": z}[alternative]
        exact = oracle_many.largest_of_two(*gaps, bound, alternative)
        assert p == pytest.approx(exact, abs=of_draws(exact, draws))


def test_degrees_of_freedom():
    """Normal statistics with a t law each: no chi-squared is common to all pairs."""
    draws, folds = 200_000, 12
    index = multi_index(fold=np.arange(96) % folds, point=range(96))
    frame = pd.DataFrame(RNG.normal(size=(96, 3)), index, list("abc"))
    table = frame.cvci.compare(
        reference="a", adjust="max-t", method="corrected_t", n_draws=draws, rng=1
    )
    means = frame.groupby(level="fold").mean()
    rho = np.corrcoef(means["b"] - means["a"], means["c"] - means["a"])[0, 1]
    law = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    for t, p in zip(table["statistic"].abs(), table["p_adjusted"], strict=True):
        z = stats.norm.isf(stats.t.sf(t, folds - 1))
        exact = 1 - law.cdf([z, z], lower_limit=[-z, -z])
        assert p == pytest.approx(exact, abs=of_draws(exact, draws) + 1e-4)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", ["wald", "corrected_t", "naive", "cv_t"])
def test_p_values_and_intervals_are_duals(method, alternative):
    frame = models(names="abcdef", step=0.25)
    plain = frame.cvci.compare(method=method, alternative=alternative, adjust=None)
    for alpha in (0.01, 0.05, 0.3):
        table = frame.cvci.compare(
            method=method, alternative=alternative, adjust="max-t", alpha=alpha, rng=2, n_draws=999
        )
        apart = (table["lower"] > 0) | (table["upper"] < 0)
        np.testing.assert_array_equal(apart, table["p_adjusted"] <= alpha)
        for name in ("difference", "se", "statistic", "p_value"):
            np.testing.assert_array_equal(table[name], plain[name])
        assert (table["p_adjusted"] >= table["p_value"] - 0.08).all()
        assert (table["p_adjusted"] <= 15 * table["p_value"] + 0.03).all()
        half = table["upper"] - table["difference"]
        if alternative != "greater":  # one number of standard errors for all pairs
            np.testing.assert_allclose(half / table["se"], (half / table["se"]).iloc[0], rtol=1e-9)
    sides = {"less": "lower", "greater": "upper"}
    if alternative in sides:
        assert np.isinf(table[sides[alternative]]).all()


def test_quantiles_of_t_and_normal_are_inverse():
    """Far tails keep their digits; beyond what a float holds a statistic is infinite."""
    z = np.array([-7.5, -1.0, 0.0, 0.5, 3.0, 9.0])
    for df in (1, 4, 49, 1e6):
        t = max_t.student_quantile(z, df)
        np.testing.assert_allclose(stats.t.sf(t, df), stats.norm.sf(z), rtol=1e-9)
        np.testing.assert_allclose(max_t.normal_quantile(t, df), z, rtol=1e-9, atol=1e-12)
    assert list(max_t.normal_quantile(np.array([-np.inf, np.inf, 80.0]), 1e5)) == [
        -np.inf, np.inf, np.inf,
    ]  # fmt: skip
    assert list(max_t.student_quantile(np.array([-np.inf]), 10)) == [-np.inf]


def test_independent_models_have_the_studentized_range():
    """Equal variances, no correlation: Tukey's law with known variance."""
    m, draws = 5, 200_000
    squared = 2.0 * (1 - np.eye(m))
    left, right = np.triu_indices(m, 1)
    drawn = max_t.max_statistic_draws(
        squared, left, right, alternative="two-sided", n_draws=draws, seed=3
    )
    for alpha in (0.5, 0.05, 0.01):
        ours = max_t.critical_value(drawn, alpha)
        exact = stats.studentized_range.isf(alpha, m, np.inf) / np.sqrt(2)
        assert ours == pytest.approx(exact, rel=0.01)


def test_the_seed_tells_all():
    table = FRAME.cvci.compare(adjust="max-t", rng=5)
    assert table.attrs["adjust"] == "max-t"
    assert (table.attrs["seed"], table.attrs["n_draws"]) == (5, 10_000)
    pd.testing.assert_frame_equal(FRAME.cvci.compare(adjust="max-t", rng=5), table)
    free = FRAME.cvci.compare(adjust="max-t")
    again = FRAME.cvci.compare(adjust="max-t", rng=free.attrs["seed"])
    pd.testing.assert_frame_equal(free, again)
    mine = FRAME.cvci.compare(adjust="max-t", rng=np.random.default_rng(5))
    assert mine.attrs["seed"] != 5
    with pytest.raises(LogError, match="not a seed"):
        FRAME.cvci.compare(adjust="max-t", rng="five")


def test_nearly_equal_models_have_a_law():
    """Rounding in the covariance exceeds the variance of a difference; its law is kept."""
    squared = np.array([[0, 1e-20, 2.0], [1e-20, 0, 2.0], [2.0, 2.0, 0]])
    left, right = np.triu_indices(3, 1)
    drawn = max_t.max_statistic_draws(
        squared, left[:1], right[:1], alternative="greater", n_draws=50_000, seed=1
    )
    assert stats.kstest(drawn, "norm").pvalue > 1e-3


def alike_models(number=20, n=100, seed=3):
    """Very similar models in one partition: `compare` widens some of their differences."""
    rng = np.random.default_rng(seed)
    index = multi_index(fold=np.arange(n) % 5, point=range(n))
    own = rng.normal(size=(n, number)) * np.linspace(0.05, 2.0, number)
    return pd.DataFrame(
        (rng.normal(size=(n, 1)) + own) ** 2, index, [f"m{i}" for i in range(number)]
    )


def test_limits_of_widened_differences_have_the_quantile_of_the_others():
    """They had Šidák's, if anything, and contradicted the ranks of `best_set`."""
    log = alike_models()
    each = log.cvci.compare(adjust=None)
    squared = max_t.pair_matrix(each["se"].to_numpy() ** 2, 20)
    assert not max_t.factor_covariance(squared)[1]  # only some are widened
    array = log.to_xarray().to_dataarray("model")
    for form in (log, array, array.chunk(point=25)):
        widened, plain = (
            cvstats.compare(form, method=method, adjust="max-t", rng=1) for method in (None, "wald")
        )
        reach = [np.asarray((t["upper"] - t["difference"]) / t["se"]) for t in (widened, plain)]
        assert reach[0] == pytest.approx(reach[1], rel=1e-9)
        assert np.asarray(widened["se"]) == pytest.approx(each["se"].to_numpy())
    some = log.cvci.compare(reference="m0", adjust="max-t", rng=1)
    plain = log.cvci.compare(reference="m0", method="wald", adjust="max-t", rng=1)
    assert (some["se"] > 1.01 * plain["se"]).any()
    reach = [(t["upper"] - t["difference"]) / t["se"] for t in (some, plain)]
    assert reach[0].to_numpy() == pytest.approx(reach[1].to_numpy(), rel=1e-9)


def test_units_do_not_matter_to_models_that_are_nearly_identical():
    losses = np.random.default_rng(0).normal(size=(100, 5)) * [5, 4, 1, 1, 1]
    log = pd.DataFrame(losses, pd.RangeIndex(100, name="point"), list("abcde"))
    log["b"] = log["a"] + 1e-7 * log["c"]
    large, small = (
        (log * unit).cvci.compare(adjust="max-t", rng=1) for unit in (2.0**40, 2.0**-40)
    )
    assert (large["p_adjusted"] == small["p_adjusted"]).all()
    assert (large["upper"] / 2**80 == small["upper"]).all()


def test_variances_without_a_covariance_are_refused():
    """Three differences that break the triangle inequality."""
    squared = np.array([[0, 1.0, 9.0], [1.0, 0, 1.0], [9.0, 1.0, 0]])
    assert not max_t.factor_covariance(squared)[1]
    beside = np.pad(squared, (0, 1), constant_values=1e18)  # a model that diverged
    beside[3, 3] = 0
    assert not max_t.factor_covariance(beside)[1]
    fine = np.array([[0, 1.0, 4.0], [1.0, 0, 1.0], [4.0, 1.0, 0]])  # on a line
    root, _ = max_t.factor_covariance(fine)
    for i, j in itertools.combinations(range(3), 2):
        assert ((root[i] - root[j]) ** 2).sum() == pytest.approx(fine[i, j], rel=1e-9)


@pytest.mark.parametrize("size", [1e-11, 1e-9, 1e-5, 1e5, 1e9])
def test_draws_are_standardized_beside_a_model_of_another_size(size):
    """A near copy of the central model, or a model that diverged, among similar models."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(300, 1)) + 3e-3 * rng.normal(size=(300, 40))
    means[:, :20] += rng.normal(size=(300, 1))
    means[:, 1] = size * rng.normal(size=300) + (means[:, 0] if size < 1 else 0)
    left, right = np.triu_indices(40, 1)
    squared = max_t.pair_matrix(np.var(means[:, left] - means[:, right], axis=0), 40)
    root, exact = max_t.factor_covariance(squared)
    drawn = ((root[left] - root[right]) ** 2).sum(axis=1)
    scale = max_t.inverse_deviations(root, squared, left, right)
    assert exact
    assert drawn * scale**2 == pytest.approx(1, abs=1e-6)


def test_draws_of_nearly_equal_models_are_standardized_as_they_are_drawn():
    root = np.array([[0, 0], [1, 0], [1, 1e-9], [1, 1e-9]])
    squared = ((root[:, None] - root) ** 2).sum(axis=-1)
    squared[1, 2] = 2e-18  # rounding
    found = max_t.inverse_deviations(root, squared, np.array([0, 1, 2]), np.array([1, 2, 3]))
    assert found.tolist() == pytest.approx([1, 1e9, 0])
