"""How often intervals for metrics of censored times cover; the table is in the guide.

A run is a data set: times are exponential with a log-linear rate in two features, censoring is
exponential, and an exponential regression is fitted anew in each of five folds. The metrics of each
fitted rule on new points without censoring are known by quadrature.
"""

import functools

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats.errors import LogError
from cvstats.metrics import METRICS
from cvstats.metrics.metric import MetricOptions, Points

pytestmark = pytest.mark.slow

RUNS, FOLDS = 1000, 5
SLOPES = np.array([0.8, 0.6])
LIMIT = 0.75
CENSORING = {0.39: 0.58, 0.58: 1.48}
"""Rates of censoring by the share that it censors."""


def fit(x, time, event, width):
    """Exponential regression of every run by Newton's method: an intercept and some slopes."""
    x = np.concatenate([np.ones((*x.shape[:2], 1)), x[..., :width]], axis=2)
    beta = np.zeros((len(x), width + 1))
    beta[:, 0] = np.log(event.sum(1) / time.sum(1))
    for _ in range(25):
        mean = time * np.exp(np.einsum("rnk,rk->rn", x, beta))
        score = np.einsum("rnk,rn->rk", x, event - mean)
        information = np.einsum("rnk,rn,rnl->rkl", x, mean, x)
        beta += np.linalg.solve(information, score[..., None])[..., 0]
    slopes = np.zeros((len(x), 2))
    slopes[:, :width] = beta[:, 1:]
    return beta[:, 0], slopes


@functools.cache
def draw(n, share, seed=0):
    """Data of every run, with the risks and scores of two models, and what they are worth."""
    rng = np.random.default_rng([seed, n, int(100 * share)])
    x = rng.standard_normal((RUNS, n, 2))
    died = rng.exponential(size=(RUNS, n)) / np.exp(x @ SLOPES)
    left = rng.exponential(size=(RUNS, n)) / CENSORING[share]
    time, event = np.minimum(died, left), died <= left
    fold = np.arange(n) % FOLDS
    found = {"time": time, "event": event}
    worth = {}
    for model, width in (("both", 2), ("one", 1)):
        score, parts = np.empty((RUNS, n)), []
        for k in range(FOLDS):
            train, test = fold != k, fold == k
            level, slopes = fit(x[:, train], time[:, train], event[:, train], width)
            score[:, test] = np.einsum("rnk,rk->rn", x[:, test], slopes) + level[:, None]
            parts.append((true_brier(level, slopes), *true_ranks(slopes)))
        found[model], found[f"{model}_score"] = 1 - np.exp(-LIMIT * np.exp(score)), -score
        worth[model] = dict(zip(("brier", "auc", "uno"), np.mean(parts, axis=0), strict=True))
    return found, worth


def true_brier(level, slopes):
    """Mean over new points, by Gauss-Hermite quadrature over both features."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    weight = np.outer(weights, weights).ravel() / weights.sum() ** 2
    happens = 1 - np.exp(-LIMIT * np.exp(grid @ SLOPES))
    risk = 1 - np.exp(-LIMIT * np.exp(level[:, None] + slopes @ grid.T))
    return (happens * (1 - risk) ** 2 + (1 - happens) * risk**2) @ weight


def true_ranks(slopes):
    """AUC at the time and Uno's C up to it, which depend on the direction of the slopes only."""
    cosine = slopes @ SLOPES / np.linalg.norm(slopes, axis=1) / np.linalg.norm(SLOPES)
    grid, table = ranks_of_directions()
    return tuple(np.interp(np.arccos(np.clip(cosine, -1, 1)), grid, column) for column in table)


@functools.cache
def ranks_of_directions():
    """Both by quadrature over the score and the direction across it, for some angles."""
    from scipy.special import ndtri

    along = ndtri((np.arange(240) + 0.5) / 240)
    across, weight = np.polynomial.hermite_e.hermegauss(16)
    weight = weight / weight.sum()
    later = np.subtract.outer(along, along)
    right = (later > 0) + 0.5 * (later == 0)
    angles, found = np.linspace(0, np.pi, 33), []
    for angle in angles:
        size = np.linalg.norm(SLOPES)
        log_rate = size * (np.cos(angle) * along[:, None] + np.sin(angle) * across)
        happens = (1 - np.exp(-LIMIT * np.exp(log_rate))) @ weight
        cases = np.outer(happens, 1 - happens)
        one, other = np.exp(log_rate)[:, :, None, None], np.exp(log_rate)
        first = np.zeros((240, 240))
        for block in range(0, 240, 24):
            rows = one[block : block + 24]
            total = rows + other
            share = rows / total * -np.expm1(-LIMIT * total)
            first[block : block + 24] = np.einsum("iajb,a,b->ij", share, weight, weight)
        found.append([(part * right).sum() / part.sum() for part in (cases, first)])
    return angles, np.array(found).T


def limits(result, row):
    return result["lower"].iloc[row], result["upper"].iloc[row]


@functools.cache
def coverage(n, share):
    """Coverage of each interval, the share of runs that were refused, and mean SE over sd."""
    data, worth = draw(n, share)
    difference = {key: worth["both"][key] - worth["one"][key] for key in ("brier", "auc", "uno")}
    levels = pd.MultiIndex.from_arrays([np.arange(n) % FOLDS, range(n)], names=["fold", "point"])
    hits, estimates, errors = {}, {}, {}
    for run in range(RUNS):
        table = pd.DataFrame({name: values[run] for name, values in data.items()}, index=levels)
        for loss, folds in [
            ("brier_at", "pool"), ("brier_at", "average"), ("auc_at", "average"),
            ("auc_at", "pool"), ("uno", "average"),
        ]:  # fmt: skip
            key = loss.removesuffix("_at")
            columns = {"both": "both", "one": "one"}
            if loss == "uno":
                columns = {"both": "both_score", "one": "one_score"}
            try:
                log = cvstats.losses(
                    table, "time", columns, loss, event="event", at=LIMIT, folds=folds
                )
            except LogError:
                continue
            turned = 1.0 if loss != "brier_at" else 0.0
            sign = -1.0 if loss != "brier_at" else 1.0
            target = turned + sign * worth["both"][key][run]
            asked = {"wald": log.cvci.wald(), "interval": log.cvci.interval()}
            if loss != "brier_at":
                asked["logit"] = log.cvci.wald(scale="logit")
            for method, result in asked.items():
                low, high = limits(result, 0)
                hits.setdefault((loss, folds, method), []).append(low <= target <= high)
            pair = log.cvci.compare()
            low, high = limits(pair, 0)
            gap = sign * difference[key][run]
            hits.setdefault((loss, folds, "difference"), []).append(low <= gap <= high)
            estimates.setdefault((loss, folds), []).append(
                asked["wald"]["estimate"].iloc[0] - target
            )
            errors.setdefault((loss, folds), []).append(asked["wald"]["se"].iloc[0])
    found = {name: (np.mean(each), len(each)) for name, each in hits.items()}
    ratio = {
        name: (np.mean(errors[name]) / np.std(each), np.mean(each))
        for name, each in estimates.items()
    }
    return found, ratio


@pytest.mark.parametrize(("n", "share"), [(100, 0.39), (100, 0.58), (400, 0.39), (400, 0.58)])
def test_coverage(n, share):
    found, ratio = coverage(n, share)
    print(n, share, {k: (round(float(a), 3), b) for k, (a, b) in found.items()})
    print({k: (round(float(a), 3), round(float(b), 4)) for k, (a, b) in ratio.items()})
    hard = n == 100 and share == 0.58
    assert found["brier_at", "pool", "wald"][0] > (0.88 if hard else 0.91)
    assert found["brier_at", "pool", "difference"][0] > 0.90
    assert found["auc_at", "pool", "logit"][0] > (0.91 if hard else 0.93)
    assert found["uno", "average", "logit"][0] > (0.89 if hard else 0.91)
    assert found["auc_at", "pool", "interval"][0] > 0.93
    if hard:  # few controls in a fold: some runs are refused, and the others labelled
        assert found["auc_at", "average", "wald"][1] < RUNS
    else:
        assert found["auc_at", "average", "logit"][0] > 0.93


def early_marker(rng, n, censoring):
    """Times whose rate depends on a score until one half, and not afterwards."""
    score = rng.standard_normal(n)
    needed, rate = rng.exponential(size=n), np.exp(1.5 * score)
    died = np.where(needed < rate / 2, needed / rate, 0.5 + needed - rate / 2)
    left = rng.exponential(size=n) / censoring if censoring else np.full(n, np.inf)
    return np.minimum(died, left), died <= left, -score


def test_the_target_of_harrells_c_moves_with_the_censoring():
    rng = np.random.default_rng(0)
    time, event, score = early_marker(rng, 100_000, 0)
    target = METRICS["concordance"].influence(Points(time, score, event=event), MetricOptions())[0]
    print("uncensored", round(target, 3))
    for censoring in (0, 0.5, 2.0):
        hits, values, shares = {"concordance": 0, "uno": 0}, {"concordance": [], "uno": []}, []
        for _ in range(300):
            time, event, score = early_marker(rng, 1000, censoring)
            shares.append(1 - event.mean())
            index = pd.RangeIndex(1000, name="point")
            table = pd.DataFrame({"time": time, "event": event, "score": score}, index=index)
            for loss in hits:
                log = cvstats.losses(table, "time", "score", loss, event="event")
                low, high = limits(log.cvci.holdout(), 0)
                hits[loss] += low <= 1 - target <= high
                values[loss].append(1 - log.mean())
        means = {loss: round(float(np.mean(v)), 3) for loss, v in values.items()}
        print(round(np.mean(shares), 2), means, {loss: h / 300 for loss, h in hits.items()})
        if censoring < 2:
            assert hits["uno"] > 0.9 * 300
    assert hits["concordance"] < 10
