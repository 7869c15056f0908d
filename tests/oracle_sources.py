"""Sources, clusters and independent logs once more: slow, exact, from the papers.

Like `oracle`: sums over individual losses in fractions, nothing merged from moments, nothing taken
from the package. (G n) and Table 1 are Geras & Sutton (2013). K sources, source k with M_k
losses; where the paper writes M for all of them, each term has its own M_k here, and the weights
of the sources stay 1/K.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations

import oracle
from oracle import ZERO, Interval, Matrix, Row, as_rows, exact, group, interval, mean, variance
from scipy import optimize, stats

Sources = list[list[Fraction]]

sources_of = partial(oracle.folds_of, level="source")
"""The losses of each source, of one repetition."""


# --- empirical moments and the estimators of (G 7) ---------------------------------------------


def own(source: Sequence[Fraction]) -> Fraction:
    """s_k^sigma^2: products of a loss with itself."""
    return sum((e * e for e in source), ZERO) / len(source)


def inside(source: Sequence[Fraction]) -> Fraction:
    """s_k^omega: products of two different losses of a source."""
    m = len(source)
    return sum((2 * a * b for a, b in combinations(source, 2)), ZERO) / (m * (m - 1))


def across(one: Sequence[Fraction], two: Sequence[Fraction]) -> Fraction:
    """s_kl^gamma: products of losses of two sources."""
    return sum((a * b for a in one for b in two), ZERO) / (len(one) * len(two))


def all_terms(sources: Sources) -> Fraction:
    """The terms that all lines of Table 1 begin with: (G 7) with the empirical moments."""
    K = len(sources)
    total = sum((own(s) / (K**2 * len(s)) for s in sources), ZERO)
    total += sum((Fraction(len(s) - 1, K**2 * len(s)) * inside(s) for s in sources), ZERO)
    return total + sum((2 * across(s, t) for s, t in combinations(sources, 2)), ZERO) / K**2


def theta_omega_k(sources: Sources, k: int) -> Fraction:
    """Table 1, line 1: as if omega of source k were zero."""
    return all_terms(sources) - inside(sources[k])


def theta_gamma_kl(sources: Sources, k: int, other: int) -> Fraction:
    """Table 1, line 2: as if gamma of two sources were zero."""
    return all_terms(sources) - across(sources[k], sources[other])


def theta_omega(sources: Sources) -> Fraction:
    """Table 1, line 3: as if all omega_k were zero."""
    return all_terms(sources) - mean(inside(s) for s in sources)


def theta_gamma(sources: Sources) -> Fraction:
    """Table 1, line 4: as if all gamma_kl were zero."""
    K = len(sources)
    pairs = sum((2 * across(s, t) for s, t in combinations(sources, 2)), ZERO)
    return all_terms(sources) - pairs / (K * (K - 1))


def theta_a(sources: Sources) -> Fraction:
    """(G 11)."""
    return sum(((own(s) - inside(s)) / len(s) for s in sources), ZERO) / len(sources) ** 2


def theta_b(sources: Sources) -> Fraction:
    """(G 12)."""
    return 2 * theta_a(sources)


# --- their biases, as printed --------------------------------------------------------------------

Table = Sequence[Sequence[object]]


class Truth:
    """Expectations, variances and covariances of the losses of each source (G 6)."""

    def __init__(self, sizes: Sequence[int], mu: Sequence, sigma2: Sequence, omega: Sequence,
                 gamma: Table) -> None:  # fmt: skip
        self.sizes = list(sizes)
        self.mu, self.sigma2, self.omega = ([exact(x) for x in v] for v in (mu, sigma2, omega))
        self.gamma = [[exact(x) for x in row] for row in gamma]
        self.K = len(self.sizes)

    def pairs(self, value: Callable[[int, int], Fraction]) -> Fraction:
        """A sum over all ordered pairs of different sources."""
        return sum((value(k, j) for k in range(self.K) for j in range(self.K) if k != j), ZERO)

    def bias(self, name: str, k: int = 0, other: int = 1) -> Fraction:
        """The bias of an estimator, Table 1 and below (G 11) and (G 12); M is M_k there."""
        K, mu = self.K, self.mu
        all_mu = sum(mu, ZERO) ** 2 / K**2
        products = self.pairs(lambda a, b: mu[a] * mu[b])
        spread = sum((m * m for m in mu), ZERO) - products / (K - 1)
        all_gamma = self.pairs(lambda a, b: self.gamma[a][b])
        each = zip(self.sizes, self.sigma2, self.omega, strict=True)
        return {
            "theta_omega_k": -self.omega[k] + all_mu - mu[k] ** 2,
            "theta_gamma_kl": -self.gamma[k][other] + all_mu - mu[k] * mu[other],
            "theta_omega": -mean(self.omega) + Fraction(1 - K, K**2) * spread,
            "theta_gamma": -all_gamma / (K * (K - 1)) + spread / K**2,
            "theta_a": -(sum(self.omega, ZERO) + all_gamma) / K**2,
            "theta_b": sum(((s - (m + 1) * w) / m for m, s, w in each), ZERO) / K**2
            - all_gamma / K**2,
        }[name]  # fmt: skip

    def covariance(self) -> Matrix:
        """The covariance of all losses, source by source."""
        return oracle.fold_covariance(self.sizes, self.sigma2, self.omega, self.gamma)

    def theta(self) -> Fraction:
        """(G 7), term by term."""
        each = zip(self.sizes, self.sigma2, self.omega, strict=True)
        total = sum((s / m + Fraction(m - 1, m) * w for m, s, w in each), ZERO)
        return (total + self.pairs(lambda k, j: self.gamma[k][j])) / self.K**2


def split(sizes: Sequence[int], losses: Sequence) -> Sources:
    """Consecutive losses as sources of the given sizes."""
    values = iter(exact(loss) for loss in losses)
    return [[next(values) for _ in range(size)] for size in sizes]


def expected(estimator: Callable[[Sources], Fraction], truth: Truth) -> Fraction:
    """E estimator, from its quadratic form."""
    n = sum(truth.sizes)
    A = oracle.quadratic_form(lambda losses: estimator(split(truth.sizes, losses)), n)
    centre = [m for m, size in zip(truth.mu, truth.sizes, strict=True) for _ in range(size)]
    return oracle.exact_expectation(A, truth.covariance(), centre)


# --- intervals -----------------------------------------------------------------------------------


def out_of_source(
    rows: Iterable, target: str = "new_source", which: str = "theta_b", alpha: float = 0.05
) -> Interval:
    """The mean of the source means; V_b / K with t, or theta_A, theta_B with z.

    Several repetitions: each source has the mean of all its losses; the variances within are
    averaged over the repetitions and not divided by them.
    """
    rows = as_rows(rows)
    means = [mean(cell) for cell in group(rows, "source").values()]
    K = len(means)
    if target == "new_source":
        V_b = sum(((a - b) ** 2 for a, b in combinations(means, 2)), ZERO) / (K * (K - 1))
        return interval(mean(means), V_b / K, alpha, df=K - 1)
    estimator = {"theta_a": theta_a, "theta_b": theta_b}[which]
    parts = {row.repetition for row in rows}
    theta = mean(estimator(sources_of(r for r in rows if r.repetition == part)) for part in parts)
    return interval(mean(means), theta, alpha)


def clustered(
    rows: Iterable, correction: str = "CR1", alpha: float = 0.05, by: str = "source"
) -> Interval:
    """The pooled mean with clusters as units, each point averaged over repetitions first."""
    rows = as_rows(rows)
    points = group(rows, by, "source", "point")
    clusters: dict[Hashable, list[Fraction]] = {}
    for (cluster, _, _), losses in points.items():
        clusters.setdefault(cluster, []).append(mean(losses))
    everything = [e for cluster in clusters.values() for e in cluster]
    mu, N, G = mean(everything), len(everything), len(clusters)
    if correction == "CR1":  # the sum of the residuals of each cluster
        scores = [sum((e - mu for e in cluster), ZERO) for cluster in clusters.values()]
        squared = Fraction(G, G - 1) * sum((s * s for s in scores), ZERO) / N**2
    else:  # the mean without each cluster in turn
        left_out = []
        for gone in clusters:
            rest = [e for name, cluster in clusters.items() if name != gone for e in cluster]
            left_out.append(mean(rest))
        squared = Fraction(G - 1, G) * sum(((m - mu) ** 2 for m in left_out), ZERO)
    return interval(mu, squared, alpha, df=G - 1)


# --- several independent logs --------------------------------------------------------------------


def half_differences(values: Sequence[Fraction], others: Sequence[Fraction] | None = None):
    """A sample covariance as a mean over pairs: (x_r - x_s)(y_r - y_s) / 2."""
    others = values if others is None else others
    at = list(combinations(range(len(values)), 2))
    total = sum(((values[r] - values[s]) * (others[r] - others[s]) for r, s in at), ZERO)
    return total / (2 * len(at))


def independent(logs: Sequence[Sequence[Row]], weights: oracle.Weights = "pooled") -> dict:
    """sigma^2, omega, gamma and theta of logs with the same fold sizes, and the parts of (G 2)."""
    folds = [oracle.folds_of(rows) for rows in logs]
    theta = half_differences([oracle.weighted_mean(part, weights) for part in folds])
    W = mean(oracle.within(part) for part in folds)
    D = mean(oracle.between(part, weights) for part in folds)
    S2 = mean(oracle.weigh(part, weights).S2 for part in folds)
    H = mean(oracle.weigh(part, weights).H for part in folds)
    gamma = theta - H * W - S2 * D
    omega = gamma + D
    sigma2 = omega + W
    return {
        "sigma2": sigma2, "omega": omega, "gamma": gamma, "theta": theta,
        "part_sigma2": H * sigma2, "part_omega": (S2 - H) * omega, "part_gamma": (1 - S2) * gamma,
    }  # fmt: skip


def by_source(logs: Sequence[Sources]) -> dict[str, object]:
    """sigma_k^2, omega_k and gamma_kl from logs of the same sources, in the same order."""
    K = len(logs[0])
    means = [[mean(log[k]) for log in logs] for k in range(K)]
    C = [[half_differences(means[k], means[j]) for j in range(K)] for k in range(K)]
    W = [mean(variance(log[k]) for log in logs) for k in range(K)]
    inverse = [mean(Fraction(1, len(log[k])) for log in logs) for k in range(K)]
    omega = [C[k][k] - W[k] * inverse[k] for k in range(K)]
    sigma2 = [omega[k] + W[k] for k in range(K)]
    theta = sum((c for row in C for c in row), ZERO) / K**2
    pairs = sum((C[k][j] for k in range(K) for j in range(K) if k != j), ZERO)
    return {
        "covariance": C, "sigma2": sigma2, "omega": omega, "theta": theta,
        "part_sigma2": sum((s * i for s, i in zip(sigma2, inverse, strict=True)), ZERO) / K**2,
        "part_omega": sum((w * (1 - i) for w, i in zip(omega, inverse, strict=True)), ZERO) / K**2,
        "part_gamma": pairs / K**2, "gamma": pairs / (K * (K - 1)),
    }  # fmt: skip


# --- differences between groups -------------------------------------------------------------------


def scatter(y: Sequence, s2: Sequence, tau2: object = 0):
    """Cochran's Q over pairs of groups."""
    w = [1 / (s + tau2) for s in s2]
    at = combinations(range(len(y)), 2)
    return sum(w[g] * w[h] * (y[g] - y[h]) ** 2 for g, h in at) / sum(w)


def profile(y: Sequence, s2: Sequence, level: float) -> float:
    """The tau^2 at which Q is ``level``; zero if it is below that from the start."""
    y, s2 = [float(v) for v in y], [float(v) for v in s2]
    if scatter(y, s2) <= level:
        return 0.0
    high = 1.0
    while scatter(y, s2, high) > level:
        high *= 2
    return optimize.brentq(lambda t: scatter(y, s2, t) - level, 0, high, xtol=1e-300, rtol=1e-14)


def heterogeneity(groups: Sources, alpha: float = 0.05, pooled: bool = False) -> dict[str, float]:
    """Welch's F, Q, I^2, tau and the mean, with limits, of one repetition.

    With a pooled variance F is that of the analysis of variance. The mean is weighted by the
    pooled variance over the sizes and tau^2, and its error is that of Hartung & Knapp.
    """
    y = [mean(g) for g in groups]
    spare = sum(len(g) for g in groups) - len(groups)
    W = sum((oracle.squares(g, mean(g)) for g in groups), ZERO) / spare
    s2 = [(W if pooled else variance(g)) / len(g) for g in groups]
    Q, df = scatter(y, s2), len(groups) - 1
    w = [1 / s for s in s2]
    F, within = Q / df, Fraction(spare)
    if not pooled:
        rest = sum((1 - v / sum(w)) ** 2 / (len(g) - 1) for v, g in zip(w, groups, strict=True))
        F /= 1 + 2 * (df - 1) * rest / (len(groups) ** 2 - 1)
        within = (len(groups) ** 2 - 1) / (3 * rest)
    s_mean = [W / len(g) for g in groups]
    tau2_mean = Fraction(profile(y, s_mean, df))
    v = [1 / (s + tau2_mean) for s in s_mean]
    middle = sum(a * b for a, b in zip(v, y, strict=True)) / sum(v)
    error = math.sqrt(scatter(y, s_mean, tau2_mean) / df / sum(v))
    reach = stats.t.isf(alpha / 2, df) * error
    return {
        "estimate": float(middle), "se": error,
        "lower": float(middle) - reach, "upper": float(middle) + reach,
        "statistic": float(F), "df": df, "df_within": float(within), "q": float(Q),
        "p_value": float(stats.f.sf(float(F), df, float(within))),
        "i2": max(0.0, 1 - df / float(Q)) if Q else 0.0, "tau": math.sqrt(profile(y, s2, df)),
        "tau_lower": math.sqrt(profile(y, s2, stats.chi2.isf(alpha / 2, df))),
        "tau_upper": math.sqrt(profile(y, s2, stats.chi2.isf(1 - alpha / 2, df))),
    }  # fmt: skip
