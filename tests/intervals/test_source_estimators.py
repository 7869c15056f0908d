"""Estimators of the variance of a mean over sources, and their biases."""

from fractions import Fraction

import oracle
import oracle_sources as exactly
import pytest
from grouped_logs import LOGS, log_of, random_rows
from rows import only_row

import cvstats
from cvstats.intervals.decompose import BIASES_OF_SOURCES as STATED_BIASES

TOLERANCE = 1e-10
NAIVE = ("theta_omega_k", "theta_gamma_kl", "theta_omega", "theta_gamma", "theta_a", "theta_b")


def deviation(ours, exact):
    """Relative to the exact number."""
    return float(abs(Fraction(float(ours)) - Fraction(exact)) / abs(Fraction(exact)))


def worst_of(what, pairs, capsys):
    """Print the worst relative deviation of each name, and hold it to the tolerance."""
    worst: dict[str, float] = {}
    for name, ours, exact in pairs:
        worst[name] = max(worst.get(name, 0.0), deviation(ours, exact) if exact else abs(ours))
    with capsys.disabled():
        print(f"\n{what}, worst relative deviation: {max(worst.values()):.1e} of {len(worst)}")
        print("  " + ", ".join(f"{name} {value:.0e}" for name, value in worst.items()))
    assert max(worst.values()) <= TOLERANCE


def test_table_1_and_theta_a_b(capsys):
    def pairs():
        for seed, sizes in enumerate(LOGS.values()):
            rows = random_rows(sizes, seed)
            sources = exactly.sources_of(rows)
            ours = only_row(cvstats.source_estimators(log_of(rows), source="s1", other="s0"))
            yield ("theta_omega_k", ours["theta_omega_k"], exactly.theta_omega_k(sources, 1))
            yield ("theta_gamma_kl", ours["theta_gamma_kl"], exactly.theta_gamma_kl(sources, 1, 0))
            for name in NAIVE[2:]:
                yield name, ours[name], getattr(exactly, name)(sources)

    worst_of("Table 1, (11), (12)", pairs(), capsys)


TRUTHS = {
    "equal sizes": exactly.Truth(
        (3, 3, 3), ["1.5", -2, 4], [3, 5, 2], [1, "0.5", "0.4"],
        [[0, "1/3", "1/7"], ["1/3", 0, -1], ["1/7", -1, 0]],
    ),
    "unequal sizes": exactly.Truth(
        (2, 5, 3), ["1.5", -2, 4], [3, 5, 2], [1, "0.5", "0.4"],
        [[0, "1/3", "1/7"], ["1/3", 0, -1], ["1/7", -1, 0]],
    ),
    "one mean": exactly.Truth((2, 4), [3, 3], [1, 2], ["0.1", "0.2"], [[0, "0.3"], ["0.3", 0]]),
}  # fmt: skip


def in_words(truth, name):
    """The formulas of `STATED_BIASES`, as the theory page prints them."""
    K = truth.K
    spread = oracle.variance(truth.mu)
    gamma = truth.pairs(lambda k, j: truth.gamma[k][j])
    return {
        "-omega_k + mean(mu)^2 - mu_k^2": -truth.omega[0]
        + oracle.mean(truth.mu) ** 2 - truth.mu[0] ** 2,
        "-gamma_kl + mean(mu)^2 - mu_k mu_l": -truth.gamma[0][1]
        + oracle.mean(truth.mu) ** 2 - truth.mu[0] * truth.mu[1],
        "-mean_k omega_k - (1 - 1/K) Var(mu)": -oracle.mean(truth.omega)
        - (1 - Fraction(1, K)) * spread,
        "-mean_kl gamma_kl + Var(mu) / K": -gamma / (K * (K - 1)) + spread / K,
        "-K^-2 (sum_k omega_k + sum_kl gamma_kl)": -(sum(truth.omega) + gamma) / K**2,
        "K^-2 (sum_k [sigma_k^2 - (M_k + 1) omega_k] / M_k - sum_kl gamma_kl)": (
            sum(
                (s - (m + 1) * w) / m
                for m, s, w in zip(truth.sizes, truth.sigma2, truth.omega, strict=True)
            )
            - gamma
        )
        / K**2,
    }[STATED_BIASES[name]]  # fmt: skip


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=list(TRUTHS))
def test_biases_are_exact(truth):
    mean_square = exactly.expected(
        lambda sources: oracle.mean(oracle.mean(s) for s in sources) ** 2, truth
    )
    assert mean_square - oracle.mean(truth.mu) ** 2 == truth.theta()
    for name in NAIVE:
        places = {"theta_omega_k": (0,), "theta_gamma_kl": (0, 1)}.get(name, ())

        def estimator(sources, name=name, places=places):
            return getattr(exactly, name)(sources, *places)

        bias = exactly.expected(estimator, truth) - truth.theta()
        assert bias == truth.bias(name) == in_words(truth, name), name
