"""The oracle against everything that can check it: other programs, identities, expectations."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import oracle
import pytest

REFERENCE = Path(__file__).parent / "reference"


def load(name):
    return json.loads((REFERENCE / name).read_text(encoding="utf-8"))


GOLDEN = load("golden.json")


def golden_log(column="loss"):
    table = GOLDEN["log"]
    return oracle.log(table[column], fold=table["fold"], point=table["point"])


def random_log(sizes, seed, digits=2):
    """A log with consecutive folds of the given sizes, losses with a few decimals."""
    rng = random.Random(seed)
    losses = [Fraction(rng.randint(0, 10**digits), 10**digits) for _ in range(sum(sizes))]
    return oracle.relabel(sizes, losses)


# --- the golden log -----------------------------------------------------------------------------


# --- R ------------------------------------------------------------------------------------------


# --- NIST ---------------------------------------------------------------------------------------


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


def test_exact_bias_with_numbers():
    Sigma = oracle.fold_covariance(SIZES, "2.5", "0.4", "0.3")
    bias = oracle.exact_bias(lambda rows: oracle.theta(rows, 5), SIZES, Sigma, mu="1.7")
    assert bias == Fraction("0.4") - 2 * Fraction("0.3")
    bias = oracle.exact_bias(lambda rows: oracle.theta(rows, 1), SIZES, Sigma, mu="1.7")
    assert bias == Fraction("1.7") ** 2


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


def test_naive_and_cv_t_are_biased_as_they_must():
    """Losses as independent: the mean covariance is missing; fold means: gamma is missing."""
    sizes = (3, 3, 3)
    Sigma = oracle.fold_covariance(sizes, 5, 2, 1)
    naive = oracle.exact_bias(lambda rows: oracle.naive(rows).variance, sizes, Sigma, 4)
    assert naive == -(Fraction(2 * 2) + Fraction(6 * 1)) / 8
    cv_t = oracle.exact_bias(lambda rows: oracle.cv_t(rows).variance, sizes, Sigma, 4)
    assert cv_t == -1


# --- identities ---------------------------------------------------------------------------------


def test_balanced_identities():
    rows = random_log([4] * 3, seed=3)
    assert (
        oracle.theta(rows, 4) == oracle.theta_a(rows) == oracle.wald(rows, "within-fold").variance
    )
    assert oracle.theta(rows, 3) == oracle.cv_t(rows).variance
    for kind in ("all-pairs", "within-fold"):
        assert oracle.wald(rows, kind, "equal").variance == oracle.wald(rows, kind).variance


def test_unequal_identities():
    rows = random_log([5, 3, 4], seed=4)
    assert oracle.wald(rows, "within-fold").variance == oracle.theta_a(rows)
    assert oracle.naive(rows).variance == oracle.wald(rows).variance * Fraction(12, 11)
    assert oracle.theta(rows, 3, "macro") == oracle.cv_t(rows).variance
    D = oracle.between(oracle.folds_of(rows))
    assert oracle.theta(rows, 5) == oracle.theta(rows, 3) + D


def test_all_pairs_with_equal_folds_is_a_mean_of_fold_means():
    rows = golden_log()
    R = oracle.wald(rows).estimate
    folds = [
        Fraction(c["m2"]) / c["count"] + (Fraction(c["mean"]) - R) ** 2 for c in GOLDEN["cells"]
    ]
    assert float(oracle.wald(rows, fold_weights="equal").variance) == pytest.approx(
        float(sum(folds) / 3 / 12), rel=1e-14
    )


def test_leave_one_out():
    rows = [row._replace(fold=row.point) for row in random_log([7], seed=5)]
    assert oracle.wald(rows).variance == oracle.wald(random_log([7], seed=5)).variance
    assert oracle.wald(rows, fold_weights="equal").variance == oracle.wald(rows).variance
    for refused in (lambda: oracle.wald(rows, "within-fold"), lambda: oracle.theta(rows, 5)):
        with pytest.raises(ValueError, match="two"):
            refused()


def test_zero_one_losses_need_only_their_means():
    rows = oracle.relabel([4, 5], [0, 1, 1, 0, 0, 0, 1, 0, 1])
    rate = oracle.wald(rows).estimate
    assert oracle.wald(rows).variance == rate * (1 - rate) / 9


@pytest.mark.parametrize("kind", ["all-pairs", "within-fold"])
def test_repetitions_are_averaged_and_points_counted_once(kind):
    parts = [random_log([4, 3, 5], seed=seed) for seed in (6, 7)]
    rows = [row._replace(repetition=r) for r, part in enumerate(parts) for row in part]
    single = [oracle.wald(part, kind) for part in parts]
    both = oracle.wald(rows, kind)
    assert both.estimate == (single[0].estimate + single[1].estimate) / 2
    assert both.variance == (single[0].variance + single[1].variance) / 2
    if kind == "all-pairs":
        assert oracle.wald_by_point(rows) <= both.variance
        assert oracle.wald_by_point(parts[0]) == single[0].variance
    with pytest.raises(ValueError, match="same points"):
        oracle.wald(rows[:-1], kind)


def test_holdout_averages_repetitions_first():
    rows = oracle.log([1, 2, 6, 3, 4, 2], repetition=[0, 0, 0, 1, 1, 1], point=list("abcabc"))
    assert oracle.holdout(rows) == oracle.holdout(oracle.log([2, 3, 4]))
    assert oracle.holdout(rows, "t").df == 2


def test_shift_and_scale():
    rows = random_log([5, 3, 4], seed=8)
    moved = [row._replace(loss=3 * row.loss - 10**9) for row in rows]
    for which in (2, 3, 4, 5):
        assert oracle.theta(moved, which) == 9 * oracle.theta(rows, which)
    assert oracle.wald(moved).variance == 9 * oracle.wald(rows).variance


def test_gamma_of_rho_is_nadeau_and_bengio():
    rows = random_log([4] * 5, seed=9)
    theta = oracle.theta(rows, 3) + oracle.gamma_of_rho(rows, Fraction(1, 5))
    spread = oracle.cv_t(rows).variance * 5
    assert theta == spread * (Fraction(1, 5) + Fraction(1, 4))


def test_negative_estimates_fall_back_to_the_floor_or_to_nan():
    rows = golden_log()
    clamped = oracle.quadratic_interval(rows, 5)
    assert clamped.variance < 0
    assert clamped.se == pytest.approx(math.sqrt(oracle.theta(rows, 4)), rel=1e-14)
    assert math.isnan(oracle.quadratic_interval(rows, bias=(0, 1, -2)).se)
    assert oracle.quadratic_interval(rows, 3).df == 2


# --- rates, tests, adjustments --------------------------------------------------------------------


def test_wilson_wants_zero_one_losses():
    with pytest.raises(ValueError, match="0/1"):
        oracle.holdout(oracle.log([0, 1, 2]), "wilson")


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 3])
def test_interval_and_test_are_dual(alternative, shift):
    rows = [row._replace(loss=row.loss + Fraction(shift, 10)) for row in random_log([6, 6], 10)]
    zero = [row._replace(loss=Fraction(1, 2)) for row in rows]
    ours = oracle.improvement(rows, zero, alternative=alternative)
    at_p = oracle.improvement(rows, zero, alternative=alternative, alpha=ours.p_value)
    ends = [end for end in (at_p.lower, at_p.upper) if math.isfinite(end)]
    assert min(abs(end) for end in ends) < 1e-12
    assert (ours.p_value < 0.05) == (not ours.lower <= 0 <= ours.upper)


def test_no_variance_at_all():
    a, b = (oracle.log([value] * 4) for value in (1, 2))
    assert oracle.improvement(a, b, alternative="less").p_value == 0
    assert oracle.improvement(a, b, alternative="greater").p_value == 1
    assert oracle.improvement(a, a).p_value == 1


# --- rows ---------------------------------------------------------------------------------------


def test_rows_may_be_mappings_or_tuples():
    rows = oracle.log(["0.5", 2, 1], fold=["a", "a", "b"], source=["x", "y", "y"])
    mappings = [{"loss": row.loss, "fold": row.fold, "source": row.source} for row in rows]
    tuples = [(float(row.loss), 0, row.fold, row.source) for row in rows]
    assert oracle.as_rows(mappings) == rows == oracle.as_rows(tuples)


def test_sources_are_folds_where_there_are_none():
    by_source = oracle.log([1, 2, 4, 8], source=["x", "x", "y", "y"])
    by_fold = oracle.log([1, 2, 4, 8], fold=[0, 0, 1, 1])
    assert oracle.theta(by_source, 5) == oracle.theta(by_fold, 5)
