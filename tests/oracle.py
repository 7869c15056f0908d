"""The estimators once more: slow, exact, and written from the papers.

Everything is a sum over individual losses, or over pairs of them, in ``fractions.Fraction``; only
square roots and quantiles are floats. Nothing is merged from moments and nothing is imported
from the package, so that an agreement between the two means something.

A log is a list of `Row`: a loss and the levels that say which evaluation it was. A row may also
be given as a mapping with a subset of the keys ``loss, repetition, fold, source, point``, and
`log` makes rows from columns. Equation numbers:

- (B n): Bayle, Bayle, Janson & Mackey (2020), Cross-validation confidence intervals for test
  error, as numbered in the authors' poster; (8) and (9) are used with the normalisations of the
  paper, which the poster misprints.
- (G n), Table 2, Prop. 1: Geras & Sutton (2013), Multiple-source cross-validation.

Notation: fold k holds n_k of the N losses and has mean m_k; v_k are weights of folds that sum to
one, "pooled" v_k = n_k/N or "macro" v_k = 1/K; mu = sum_k v_k m_k.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from numbers import Integral, Real
from typing import Literal, NamedTuple

from scipy import stats

Alternative = Literal["two-sided", "less", "greater"]
Weights = Literal["pooled", "macro"]
Folds = list[list[Fraction]]

ZERO = Fraction(0)
ONE = Fraction(1)


# --- logs ---------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One evaluation: its loss and its levels."""

    loss: Fraction
    repetition: Hashable = 0
    fold: Hashable = 0
    source: Hashable = 0
    point: Hashable = None


def exact(value: object) -> Fraction:
    """Convert a number to the fraction it is; a string is read as the decimal it shows."""
    if isinstance(value, (str, Decimal, Fraction)):
        return Fraction(value)
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Real):
        return Fraction(float(value))
    raise TypeError(f"not a number: {value!r}")


def log(
    loss: Iterable[object],
    *,
    repetition: Iterable[Hashable] | None = None,
    fold: Iterable[Hashable] | None = None,
    source: Iterable[Hashable] | None = None,
    point: Iterable[Hashable] | None = None,
) -> list[Row]:
    """Make rows from columns. Sources are the folds where no folds are given."""
    losses = [exact(value) for value in loss]
    n = len(losses)
    sources = list(source) if source is not None else None
    columns: list[list[Hashable]] = [
        list(repetition) if repetition is not None else [0] * n,
        list(fold) if fold is not None else (sources or [0] * n),
        sources or [0] * n,
        list(point) if point is not None else list(range(n)),
    ]
    return [Row(*values) for values in zip(losses, *columns, strict=True)]


def as_rows(records: Iterable[Row | tuple | Mapping]) -> list[Row]:
    """Accept rows, plain tuples in the order of `Row`, or mappings; number points."""
    rows = []
    for number, record in enumerate(records):
        if isinstance(record, Mapping):
            record = Row(**{"fold": record.get("source", 0), **record})
        row = Row(*record)
        point = number if row.point is None else row.point
        rows.append(row._replace(loss=exact(row.loss), point=point))
    return rows


def group(rows: Iterable[Row], *levels: str) -> dict[tuple, list[Fraction]]:
    """Losses by the given levels, in order of appearance."""
    cells: dict[tuple, list[Fraction]] = {}
    for row in rows:
        cells.setdefault(tuple(getattr(row, level) for level in levels), []).append(row.loss)
    return cells


def folds_of(rows: Iterable[Row | tuple | Mapping], level: str = "fold") -> Folds:
    """The losses of one repetition, a list for each fold, or for each label of another level."""
    rows = as_rows(rows)
    if len({row.repetition for row in rows}) > 1:
        raise ValueError("one repetition expected")
    return list(group(rows, level).values())


# --- sums ---------------------------------------------------------------------------------------


def mean(values: Iterable[Fraction]) -> Fraction:
    """Arithmetic mean."""
    values = list(values)
    return sum(values, ZERO) / len(values)


def squares(values: Sequence[Fraction], centre: Fraction) -> Fraction:
    """Sum of squared deviations from a centre."""
    return sum(((value - centre) ** 2 for value in values), ZERO)


def variance(values: Sequence[Fraction]) -> Fraction:
    """Sample variance, divisor n - 1."""
    if len(values) < 2:
        raise ValueError("a variance needs two values")
    return squares(values, mean(values)) / (len(values) - 1)


def moments(rows: Iterable, by: Sequence[str] = ("repetition", "fold")) -> dict[tuple, tuple]:
    """Count, mean and sample variance (None below two losses) of each cell."""
    cells = group(as_rows(rows), *by)
    return {
        key: (len(cell), mean(cell), variance(cell) if len(cell) > 1 else None)
        for key, cell in cells.items()
    }


# --- intervals and tests ------------------------------------------------------------------------


class Interval(NamedTuple):
    """An interval; `variance` is the exact raw SE^2, which `se` may clamp.

    `extra` holds what a method reports besides.
    """

    estimate: Fraction
    variance: Fraction
    se: float
    lower: float
    upper: float
    df: int | None = None
    extra: Mapping[str, object] = {}


class Outcome(NamedTuple):
    """A test of a mean difference of zero and the interval dual to it."""

    difference: Fraction
    se: float
    lower: float
    upper: float
    statistic: float
    p_value: float


def reference(df: int | None):
    """The reference distribution: normal, or Student's t with df degrees of freedom."""
    return stats.norm() if df is None else stats.t(df)


def interval(
    estimate: Fraction,
    squared_error: Fraction,
    alpha: float = 0.05,
    df: int | None = None,
    alternative: Alternative = "two-sided",
    floor: Fraction | None = None,
) -> Interval:
    """Estimate -+ quantile * SE (B 6), or the one-sided interval dual to a one-sided test.

    A negative squared error is replaced by `floor`; without a floor the SE is NaN.
    """
    usable = squared_error if squared_error >= 0 or floor is None else floor
    if usable < 0:
        return Interval(estimate, squared_error, math.nan, math.nan, math.nan, df)
    se = math.sqrt(usable)
    tail = alpha / 2 if alternative == "two-sided" else alpha
    reach = exact(reference(df).isf(tail) * se)  # added exactly: a large estimate costs no digits
    lower = -math.inf if alternative == "less" else float(estimate - reach)
    upper = math.inf if alternative == "greater" else float(estimate + reach)
    return Interval(estimate, squared_error, se, lower, upper, df)


def zero_test(ci: Interval, alternative: Alternative = "two-sided") -> Outcome:
    """Test of zero: reject for "less" iff estimate < z_alpha * SE (B 7)."""
    if math.isnan(ci.se):
        statistic = p_value = math.nan
    elif ci.se > 0:
        statistic = float(ci.estimate) / ci.se
        dist = reference(ci.df)
        p_value = {
            "less": dist.cdf(statistic),
            "greater": dist.sf(statistic),
            "two-sided": 2 * dist.sf(abs(statistic)),
        }[alternative]
    else:  # all mass at the estimate
        sign = (ci.estimate > 0) - (ci.estimate < 0)
        statistic = sign * math.inf if sign else 0.0
        against = {"less": sign >= 0, "greater": sign <= 0, "two-sided": sign == 0}[alternative]
        p_value = float(against)
    return Outcome(ci.estimate, ci.se, ci.lower, ci.upper, statistic, float(p_value))


# --- one test set -------------------------------------------------------------------------------


def point_means(rows: Iterable) -> list[Fraction]:
    """The mean loss of each point over the repetitions."""
    return [mean(cell) for cell in group(as_rows(rows), "point").values()]


def holdout(
    rows: Iterable,
    kind: Literal["wald", "t", "wilson", "clopper-pearson"] = "wald",
    alpha: float = 0.05,
) -> Interval:
    """Mean of one test set; SE^2 = s^2 / n, of the point means if there are repetitions."""
    losses = point_means(rows)
    n = len(losses)
    wald_interval = interval(mean(losses), variance(losses) / n, alpha)
    if kind == "wald":
        return wald_interval
    if kind == "t":
        return interval(mean(losses), variance(losses) / n, alpha, df=n - 1)
    if not set(losses) <= {ZERO, ONE}:
        raise ValueError("0/1 losses expected")
    limits = wilson if kind == "wilson" else clopper_pearson
    lower, upper = limits(int(sum(losses)), n, alpha)
    return wald_interval._replace(lower=lower, upper=upper)


def wilson(errors: int, n: int, alpha: float) -> tuple[float, float]:
    """The rates q that the score test keeps: (p - q)^2 = z^2 q (1 - q) / n at both ends."""
    z = stats.norm.isf(alpha / 2)
    p = errors / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # p = 0 and p = 1 solve the equation with q = p; rounding must not lose that
    return (0.0 if errors == 0 else centre - reach), (1.0 if errors == n else centre + reach)


def clopper_pearson(errors: int, n: int, alpha: float) -> tuple[float, float]:
    """The rates at which each binomial tail from the observed count on is alpha / 2."""
    lower = stats.beta.ppf(alpha / 2, errors, n - errors + 1) if errors else 0.0
    upper = stats.beta.isf(alpha / 2, errors + 1, n - errors) if errors < n else 1.0
    return float(lower), float(upper)


# --- a partition: Wald, naive, t of fold means ---------------------------------------------------


def wald_variance(
    folds: Folds,
    kind: Literal["all-pairs", "within-fold"] = "all-pairs",
    fold_weights: Literal["size", "equal"] = "size",
) -> Fraction:
    """SE^2 of the pooled mean of one partition, (B 8) and (B 9) divided by N."""
    n = sum(len(fold) for fold in folds)
    if kind == "within-fold":  # (B 8): the variances inside the folds, divisor n_k - 1
        if fold_weights == "size":
            return sum(Fraction(len(fold), n) ** 2 * variance(fold) / len(fold) for fold in folds)
        return mean(variance(fold) for fold in folds) / n
    pooled = mean(loss for fold in folds for loss in fold)
    if fold_weights == "size":  # (B 9): all squared deviations from the pooled mean, divisor N
        return sum(squares(fold, pooled) for fold in folds) / n**2
    return mean(squares(fold, pooled) / len(fold) for fold in folds) / n


def wald(
    rows: Iterable,
    kind: Literal["all-pairs", "within-fold"] = "all-pairs",
    fold_weights: Literal["size", "equal"] = "size",
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> Interval:
    """Wald interval of the K-fold test error (B 6).

    Of r partitions of the same n points, the estimate is the mean over all losses and SE^2 the
    mean of the r squared errors: the points are still n, not n * r.
    """
    rows = as_rows(rows)
    repetitions: dict[Hashable, list[Row]] = {}
    for row in rows:
        repetitions.setdefault(row.repetition, []).append(row)
    if len({frozenset(row.point for row in part) for part in repetitions.values()}) > 1:
        raise ValueError("every repetition must test the same points")
    squared_error = mean(
        wald_variance(folds_of(part), kind, fold_weights) for part in repetitions.values()
    )
    estimate = mean(row.loss for row in rows)
    return interval(estimate, squared_error, alpha, alternative=alternative)


def naive(rows: Iterable, alpha: float = 0.05) -> Interval:
    """All losses as if independent: SE^2 = s^2 / n with s^2 over all n of them."""
    losses = [row.loss for row in as_rows(rows)]
    return interval(mean(losses), variance(losses) / len(losses), alpha)


def cv_t(rows: Iterable, alpha: float = 0.05) -> Interval:
    """All fold means as if independent draws: SE^2 = their variance / their number, Student's t."""
    means = [mean(cell) for cell in group(as_rows(rows), "repetition", "fold").values()]
    return interval(mean(means), variance(means) / len(means), alpha, df=len(means) - 1)


# --- quadratic estimators, balanced: the textbook -----------------------------------------------


class Empirical(NamedTuple):
    """The empirical second moments of Geras & Sutton, K folds of M losses."""

    s1: Fraction
    s2: Fraction
    s3: Fraction


def empirical_moments(folds: Folds) -> Empirical:
    """s_1, s_2, s_3: products of a loss with itself, inside its fold, across folds."""
    K = len(folds)
    (M,) = {len(fold) for fold in folds}  # balanced only
    own = sum(e * e for fold in folds for e in fold)
    inside = sum(2 * a * b for fold in folds for a, b in combinations(fold, 2))
    across = sum(2 * a * b for f, g in combinations(folds, 2) for a in f for b in g)
    return Empirical(own / (K * M), inside / (K * M * (M - 1)), across / (K * (K - 1) * M**2))


def theta_balanced(rows: Iterable, which: int) -> Fraction:
    """theta_1 .. theta_4 of Table 2 and theta_5 of section 5, term by term."""
    folds = folds_of(rows)
    K, M = len(folds), len(folds[0])
    N = K * M
    s1, s2, s3 = empirical_moments(folds)
    return {
        1: s1 / N + s2 * (M - 1) / N + s3 * (N - M) / N,
        2: s1 / N - s2 * (N + 1 - M) / N + s3 * (N - M) / N,
        3: s1 / N + s2 * (M - 1) / N - s3 * M / N,
        4: s1 / N - s2 / N,
        5: s1 / N + s2 * (N + M - 1) / N - s3 * (N + M) / N,
    }[which]


def quadratic_balanced(rows: Iterable, bias: Sequence) -> Fraction:
    """Prop. 1: a s_1 + b s_2 + c s_3 with a, b, c read off the wanted bias."""
    folds = folds_of(rows)
    K, M = len(folds), len(folds[0])
    a1, a2, a3 = (exact(a) for a in bias)
    s1, s2, s3 = empirical_moments(folds)
    a = a1 + Fraction(1, K * M)
    b = a2 + Fraction(M - 1, K * M)
    c = a3 + Fraction(K - 1, K)
    return a * s1 + b * s2 + c * s3


# --- quadratic estimators, folds of any size ---------------------------------------------------


class Weighting(NamedTuple):
    """Weights of the folds, S2 = sum v_k^2 and H = sum v_k^2 / n_k."""

    v: list[Fraction]
    S2: Fraction
    H: Fraction


def weigh(folds: Folds, weights: Weights = "pooled") -> Weighting:
    """Pooled weights give the mean over losses, macro weights the mean of fold means."""
    n = sum(len(fold) for fold in folds)
    v = [Fraction(len(f), n) if weights == "pooled" else Fraction(1, len(folds)) for f in folds]
    S2 = sum(w * w for w in v)
    return Weighting(v, S2, sum(w * w / len(fold) for w, fold in zip(v, folds, strict=True)))


def half_square(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """Mean of (a - b)^2 / 2 over all pairs of a loss from the left and one from the right."""
    return sum((a - b) ** 2 for a in left for b in right) / (2 * len(left) * len(right))


def within(folds: Folds) -> Fraction:
    """W, unbiased for sigma^2 - omega.

    A pair of different losses of one fold has E (a - b)^2 / 2 = sigma^2 - omega. Fold k has
    n_k^2 pairs, of which n_k pair a loss with itself and add nothing, so that the expectation of
    n_k * half_square(k, k) is (n_k - 1) (sigma^2 - omega); the folds' sum is divided by N - K.
    """
    spare = sum(len(fold) - 1 for fold in folds)
    if any(len(fold) < 2 for fold in folds):
        raise ValueError("every fold needs two losses")
    return sum(len(fold) * half_square(fold, fold) for fold in folds) / spare


def between(folds: Folds, weights: Weights = "pooled") -> Fraction:
    """D, unbiased for omega - gamma: pairs of losses across folds against pairs inside them.

    For folds k, l:  (m_k - m_l)^2 / 2 = half_square(k, l) - [half_square(k, k)
    + half_square(l, l)] / 2, whose expectation is omega - gamma + (1/n_k + 1/n_l)(sigma^2 -
    omega) / 2. W removes the second part; the pairs of folds are averaged with v_k v_l.
    """
    v, S2, _ = weigh(folds, weights)
    W = within(folds)
    inside = [half_square(fold, fold) for fold in folds]
    total = ZERO
    for (v_k, k, in_k), (v_l, other, in_l) in combinations(zip(v, folds, inside, strict=True), 2):
        apart = half_square(k, other) - (in_k + in_l) / 2
        noise = W * (Fraction(1, len(k)) + Fraction(1, len(other))) / 2
        total += 2 * v_k * v_l * (apart - noise)
    return total / (1 - S2)


def cross(folds: Folds, weights: Weights = "pooled") -> Fraction:
    """s_3, unbiased for gamma + mu^2: products of losses of different folds."""
    v, S2, _ = weigh(folds, weights)
    total = ZERO
    for (v_k, k), (v_l, other) in combinations(zip(v, folds, strict=True), 2):
        total += 2 * v_k * v_l * mean(a * b for a in k for b in other)
    return total / (1 - S2)


def weighted_mean(folds: Folds, weights: Weights = "pooled") -> Fraction:
    """mu = sum v_k m_k."""
    return sum(w * mean(f) for w, f in zip(weigh(folds, weights).v, folds, strict=True))


def quadratic(rows: Iterable, bias: Sequence, weights: Weights = "pooled") -> Fraction:
    """The estimator of theta = Var(mu) whose bias is a1 sigma^2 + a2 omega + a3 gamma + a4 mu^2.

    theta = H sigma^2 + (S2 - H) omega + (1 - S2) gamma is (G 2) for any fold sizes. Adding the
    bias gives the wanted coefficients p, q, r of sigma^2, omega, gamma, and Prop. 1 leaves no
    choice for the one of mu^2: p + q + r = a4 = a1 + a2 + a3 + 1. Then
    p sigma^2 + q omega + r gamma + a4 mu^2 = p (sigma^2 - omega) + (p + q)(omega - gamma)
    + a4 (gamma + mu^2), and each bracket has an unbiased estimate.
    """
    folds = folds_of(rows)
    a1, a2, a3 = (exact(a) for a in bias)
    _, S2, H = weigh(folds, weights)
    p, q, r = H + a1, S2 - H + a2, 1 - S2 + a3
    a4 = p + q + r
    estimate = p * within(folds) + (p + q) * between(folds, weights)
    return estimate + (a4 * cross(folds, weights) if a4 else 0)


def theta_bias(rows: Iterable, which: int, weights: Weights = "pooled") -> tuple[Fraction, ...]:
    """The bias (a1, a2, a3) of theta_1 .. theta_5, the last column of Table 2."""
    _, S2, _ = weigh(folds_of(rows), weights)
    return {
        1: (ZERO, ZERO, ZERO),
        2: (ZERO, -ONE, ZERO),
        3: (ZERO, ZERO, -ONE),
        4: (ZERO, -S2, S2 - 1),
        5: (ZERO, ONE, Fraction(-2)),
    }[which]


def theta(rows: Iterable, which: int, weights: Weights = "pooled") -> Fraction:
    """theta_1 .. theta_5 for any fold sizes; theta_1 is mu^2 itself."""
    if which == 1:
        return weighted_mean(folds_of(rows), weights) ** 2
    return quadratic(rows, theta_bias(rows, which, weights), weights)


def theta_a(rows: Iterable, weights: Weights = "pooled") -> Fraction:
    """theta_A (G 11), each fold with its own variance: sum v_k^2 (s_k^sigma2 - s_k^omega) / n_k."""
    folds = folds_of(rows)
    total = ZERO
    for w, fold in zip(weigh(folds, weights).v, folds, strict=True):
        n = len(fold)
        own = sum(e * e for e in fold) / n
        inside = sum(2 * a * b for a, b in combinations(fold, 2)) / (n * (n - 1))
        total += w * w * (own - inside) / n
    return total


def quadratic_interval(
    rows: Iterable,
    which: int | None = 5,
    bias: Sequence | None = None,
    weights: Weights = "pooled",
    alpha: float = 0.05,
) -> Interval:
    """mu -+ q sqrt(theta): t_{K-1} for theta_3, else z; a negative theta_2, 3 or 5 becomes H W."""
    folds = folds_of(rows)
    mu = weighted_mean(folds, weights)
    if bias is not None:
        return interval(mu, quadratic(rows, bias, weights), alpha)
    floor = weigh(folds, weights).H * within(folds)
    df = len(folds) - 1 if which == 3 else None
    return interval(mu, theta(rows, which, weights), alpha, df=df, floor=floor)


def decompose(rows: Iterable, weights: Weights = "pooled") -> dict[str, Fraction]:
    """What one log tells: sigma^2 - omega, omega - gamma, theta - gamma, and the estimators."""
    rows = as_rows(rows)
    folds = folds_of(rows)
    return {
        "sigma2_minus_omega": within(folds),
        "omega_minus_gamma": between(folds, weights),
        "theta_minus_gamma": theta(rows, 3, weights),
        **{f"theta_{which}": theta(rows, which, weights) for which in (1, 2, 3, 4, 5)},
        "theta_a": theta_a(rows, weights),
    }


def gamma_of_rho(rows: Iterable, rho: object) -> Fraction:
    """Gamma if it is the share rho of the variance of a fold mean: E V_b = Var(m_k) - gamma."""
    spread = variance([mean(fold) for fold in folds_of(rows)])
    return exact(rho) / (1 - exact(rho)) * spread


# --- comparisons ---------------------------------------------------------------------------------


def difference(left: Iterable, right: Iterable) -> list[Row]:
    """The loss of the left model minus that of the right one, evaluation by evaluation."""
    other = {row[1:]: row.loss for row in as_rows(right)}
    rows = as_rows(left)
    if {row[1:] for row in rows} != set(other) or len(rows) != len(other):
        raise ValueError("both models must have the same evaluations")
    return [row._replace(loss=row.loss - other[row[1:]]) for row in rows]


def improvement(
    left: Iterable,
    right: Iterable,
    kind: Literal["all-pairs", "within-fold"] = "all-pairs",
    fold_weights: Literal["size", "equal"] = "size",
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> Outcome:
    """Test whether one algorithm improves on another (B 7), on paired differences."""
    ci = wald(difference(left, right), kind, fold_weights, alternative, alpha)
    return zero_test(ci, alternative)


# --- exact expectations --------------------------------------------------------------------------

Matrix = list[list[Fraction]]


def quadratic_form(estimator: Callable[[list[Fraction]], Fraction], n: int) -> Matrix:
    """The symmetric A with estimator(e) = e'Ae, by evaluating it on unit vectors and their sums."""

    def at(*ones: int) -> Fraction:
        return exact(estimator([ONE if i in ones else ZERO for i in range(n)]))

    A = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        A[i][i] = at(i)
    for i, j in combinations(range(n), 2):  # f(u + v) - f(u) - f(v) = 2 u'Av
        A[i][j] = A[j][i] = (at(i, j) - A[i][i] - A[j][j]) / 2
    return A


def exact_expectation(A: Matrix, Sigma: Matrix, mu: Sequence[Fraction]) -> Fraction:
    """E e'Ae = tr(A Sigma) + mu'A mu for e with mean mu and covariance Sigma."""
    n = len(mu)
    return sum(A[i][j] * (Sigma[j][i] + mu[i] * mu[j]) for i in range(n) for j in range(n))


def fold_covariance(sizes: Sequence[int], sigma2: object, omega: object, gamma: object) -> Matrix:
    """sigma^2 on the diagonal, omega inside a fold, gamma across; one value or one per fold.

    With values per fold (G 6), `gamma` is a K x K table.
    """
    fold_of = [k for k, size in enumerate(sizes) for _ in range(size)]

    def pick(value: object, *index: int) -> Fraction:
        for i in index:
            value = value[i] if isinstance(value, (list, tuple)) else value
        return exact(value)

    return [
        [
            pick(sigma2, k) if i == j else pick(omega, k) if k == l_ else pick(gamma, k, l_)
            for j, l_ in enumerate(fold_of)
        ]
        for i, k in enumerate(fold_of)
    ]


def relabel(sizes: Sequence[int], losses: Iterable[object]) -> list[Row]:
    """Rows of consecutive folds of the given sizes."""
    return log(losses, fold=[k for k, size in enumerate(sizes) for _ in range(size)])


def exact_bias(
    estimator: Callable[[list[Row]], Fraction],
    sizes: Sequence[int],
    Sigma: Matrix,
    mu: object,
    weights: Weights = "pooled",
) -> Fraction:
    """E estimator - theta for losses with the given covariance; `mu` one mean or one per fold."""
    n = sum(sizes)
    means = list(mu) if isinstance(mu, (list, tuple)) else [mu] * len(sizes)
    centre = [exact(m) for m, size in zip(means, sizes, strict=True) for _ in range(size)]
    A = quadratic_form(lambda losses: estimator(relabel(sizes, losses)), n)
    T = quadratic_form(
        lambda losses: weighted_mean(folds_of(relabel(sizes, losses)), weights) ** 2, n
    )
    theta_true = exact_expectation(T, Sigma, [ZERO] * n)  # Var(mu) = E (mu - E mu)^2
    return exact_expectation(A, Sigma, centre) - theta_true
