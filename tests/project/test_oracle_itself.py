"""The oracle against what can check it: identities and expectations."""

import random
from fractions import Fraction

import oracle
import pytest


def random_log(sizes, seed, digits=2):
    """A log with consecutive folds of the given sizes, losses with a few decimals."""
    rng = random.Random(seed)
    losses = [Fraction(rng.randint(0, 10**digits), 10**digits) for _ in range(sum(sizes))]
    return oracle.relabel(sizes, losses)


# --- the two ways to theta ------------------------------------------------------------------------

TRIPLES = [
    (0, 0, 0),
    (0, -1, 0),
    (0, 1, -2),
    (Fraction(1, 10), Fraction(-3, 10), Fraction(-4, 5)),
    (Fraction(1, 3), Fraction(1, 4), Fraction(-1, 2)),
    (-1, 2, Fraction(7, 5)),
]


@pytest.mark.parametrize(("K", "M"), [(2, 2), (3, 4), (5, 3)])
@pytest.mark.parametrize("weights", ["pooled", "macro"])
def test_balanced_and_general_forms_are_equal(K, M, weights):
    rows = random_log([M] * K, seed=K)
    for which in (1, 2, 3, 4, 5):
        assert oracle.theta(rows, which, weights) == oracle.theta_balanced(rows, which)
    for bias in TRIPLES:
        assert oracle.quadratic(rows, bias, weights) == oracle.quadratic_balanced(rows, bias)


@pytest.mark.parametrize("weights", ["pooled", "macro"])
def test_pairs_and_moments_give_the_same_w_and_d(weights):
    folds = oracle.folds_of(random_log([5, 2, 4], seed=1))
    n = [len(fold) for fold in folds]
    m = [oracle.mean(fold) for fold in folds]
    W = sum((size - 1) * oracle.variance(fold) for size, fold in zip(n, folds, strict=True)) / (
        sum(n) - len(n)
    )
    v, S2, H = oracle.weigh(folds, weights)
    mu = oracle.weighted_mean(folds, weights)
    V = sum(w * (mean - mu) ** 2 for w, mean in zip(v, m, strict=True))
    G = sum(w / size for w, size in zip(v, n, strict=True))
    assert oracle.within(folds) == W
    assert oracle.between(folds, weights) == (V - (G - H) * W) / (1 - S2)
    s3 = mu**2 - sum((w * mean) ** 2 for w, mean in zip(v, m, strict=True))
    assert oracle.cross(folds, weights) == s3 / (1 - S2)


# --- expectations -------------------------------------------------------------------------------

SIZES = (2, 4, 3)


def coefficients(estimator, sizes=SIZES):
    """The expectation as a linear function: its coefficients of sigma^2, omega, gamma, mu^2."""
    n = sum(sizes)
    A = oracle.quadratic_form(lambda losses: estimator(oracle.relabel(sizes, losses)), n)
    parts = [
        oracle.exact_expectation(A, oracle.fold_covariance(sizes, *basis), [Fraction(0)] * n)
        for basis in [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    ]
    none = oracle.fold_covariance(sizes, 0, 0, 0)
    return [*parts, oracle.exact_expectation(A, none, [Fraction(1)] * n)]


def true_variance(weights):
    """Coefficients of theta = Var(mu): those of mu^2 as an estimator, less its own mu^2."""
    square = coefficients(lambda rows: oracle.weighted_mean(oracle.folds_of(rows), weights) ** 2)
    return [*square[:3], 0]


def bias_of(estimator, weights):
    expected = coefficients(estimator)
    return [e - t for e, t in zip(expected, true_variance(weights), strict=True)]


def test_the_parts_are_unbiased():
    assert coefficients(lambda rows: oracle.within(oracle.folds_of(rows))) == [1, -1, 0, 0]
    for weights in ("pooled", "macro"):

        def between(rows, weights=weights):
            return oracle.between(oracle.folds_of(rows), weights)

        def cross(rows, weights=weights):
            return oracle.cross(oracle.folds_of(rows), weights)

        assert coefficients(between) == [0, 1, -1, 0]
        assert coefficients(cross) == [0, 0, 1, 1]


@pytest.mark.parametrize("weights", ["pooled", "macro"])
def test_variance_of_the_mean_has_three_parts(weights):
    folds = oracle.folds_of(oracle.relabel(SIZES, range(sum(SIZES))))
    _, S2, H = oracle.weigh(folds, weights)
    assert true_variance(weights) == [H, S2 - H, 1 - S2, 0]


@pytest.mark.parametrize("weights", ["pooled", "macro"])
@pytest.mark.parametrize("which", [1, 2, 3, 4, 5])
def test_bias_of_theta(which, weights):
    rows = oracle.relabel(SIZES, range(sum(SIZES)))
    a1, a2, a3 = oracle.theta_bias(rows, which, weights)
    wanted = [a1, a2, a3, a1 + a2 + a3 + 1]
    assert bias_of(lambda rows: oracle.theta(rows, which, weights), weights) == wanted
    assert wanted[3] == (1 if which == 1 else 0)


@pytest.mark.parametrize("weights", ["pooled", "macro"])
@pytest.mark.parametrize("bias", TRIPLES)
def test_bias_of_any_triple(bias, weights):
    wanted = [*bias, sum(bias) + 1]
    assert bias_of(lambda rows: oracle.quadratic(rows, bias, weights), weights) == wanted


@pytest.mark.parametrize("weights", ["pooled", "macro"])
def test_bias_of_theta_a_with_different_sources(weights):
    omega = [1, Fraction(1, 2), Fraction(2, 5)]
    gamma = [[0, Fraction(1, 3), Fraction(1, 7)], [Fraction(1, 3), 0, -1], [Fraction(1, 7), -1, 0]]
    Sigma = oracle.fold_covariance(SIZES, [3, 5, 2], omega, gamma)
    v, _, _ = oracle.weigh(oracle.folds_of(oracle.relabel(SIZES, range(sum(SIZES)))), weights)
    wanted = -sum(w**2 * o for w, o in zip(v, omega, strict=True))
    wanted -= sum(v[k] * v[j] * gamma[k][j] for k in range(3) for j in range(3) if k != j)

    def estimator(rows):
        return oracle.theta_a(rows, weights)

    assert oracle.exact_bias(estimator, SIZES, Sigma, [1, -2, 4], weights) == wanted
