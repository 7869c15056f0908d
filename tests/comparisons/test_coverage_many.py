"""How often comparisons are right: simulations whose tables stand in the documentation.

Each prints its table with the Monte Carlo error of a share. A run is a data set; all runs lie
side by side in one array, as a dimension that is carried through.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import cvstats
from cvstats.core.cautions import Caution

pytestmark = pytest.mark.slow


@pytest.fixture
def told(capsys):
    """Print a table with its heading."""

    def tell(heading, rows):
        table = pd.DataFrame(rows)
        with capsys.disabled():
            print(f"\n{heading}\n{table.to_string(index=False)}")
        return table

    return tell


def error(share, runs):
    """Monte Carlo standard error of a share."""
    return np.sqrt(share * (1 - share) / runs)


def log(losses, folds=None):
    """Losses of points, models and runs as a log."""
    n, m, _ = losses.shape
    coords = {"point": np.arange(n), "model": [f"m{j}" for j in range(m)]}
    array = xr.DataArray(losses, dims=("point", "model", "run"), coords=coords)
    return array if folds is None else array.assign_coords(fold=("point", folds))


def correlated(rng, shape, rho):
    """Standard normal numbers, whose models (second axis) have one correlation."""
    shared = rng.standard_normal((shape[0], 1, shape[2]))
    return np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal(shape)


def unpaired(losses):
    """The two-sided z-test that forgets that both models met the same points."""
    n = losses.shape[0]
    mean, var = losses.mean(axis=0), losses.var(axis=0, ddof=1)
    left, right = np.triu_indices(losses.shape[1], 1)
    return (mean[left] - mean[right]) / np.sqrt((var[left] + var[right]) / n)


# --- two models -----------------------------------------------------------------------------------


def test_size_and_power_against_the_unpaired_test(told):
    """Two models with right answers 70% of the time; one-sided tests at 5%."""
    n, runs, rows = 300, 20_000, []
    rng = np.random.default_rng(2026)
    z = stats.norm.isf(0.05)
    for rho in (0.0, 0.5, 0.8):
        for gap in (0.0, 0.05):
            latent = correlated(rng, (n, 2, runs), rho)
            limits = stats.norm.isf([0.30 - gap, 0.30])[:, None]
            losses = (latent > limits).astype(np.float32)
            ours = log(losses).cvci.compare(alternative="less")
            share = float((ours["p_value"] < 0.05).mean())
            theirs = float((unpaired(losses)[0] < -z).mean())
            rows.append({
                "correlation": rho, "true difference": -gap, "compare": share,
                "unpaired z": theirs, "error": error(share, runs),
            })  # fmt: skip
            if gap == 0:
                assert share == pytest.approx(0.05, abs=4 * error(0.05, runs) + 0.004)
            else:
                assert share >= theirs - 4 * error(share, runs)
    table = told("rejected at 5%, one-sided, 300 points, error rates 30%", rows)
    assert table["unpaired z"].iloc[4] < 0.01  # the unpaired test hardly ever rejects


def learned(rng, n, k, runs):
    """10-fold cross-validation of the mean and of a shrunken mean: losses and true risks."""
    y = rng.standard_exponential((n, runs))
    folds = np.arange(n) % k
    losses = np.empty((n, 2, runs))
    risk = np.zeros((2, runs))
    for fold in range(k):
        test = folds == fold
        mean = y[~test].mean(axis=0)
        for j, prediction in enumerate((mean, 0.9 * mean)):
            losses[test, j] = (y[test] - prediction) ** 2
            risk[j] += test.sum() / n * (1 + (1 - prediction) ** 2)  # mean and variance are 1
    return losses, folds, risk


def test_coverage_of_the_difference_of_two_learners(told):
    """The target is the difference in error of the models that were really trained."""
    runs, rows = 20_000, []
    rng = np.random.default_rng(2027)
    for n in (50, 200, 1_000):
        losses, folds, risk = learned(rng, n, 10, runs)
        table = log(losses, folds).cvci.compare()
        truth = risk[0] - risk[1]
        above, below = (table["lower"].values[0] > truth), (table["upper"].values[0] < truth)
        share = 1 - above.mean() - below.mean()
        rows.append({
            "points": n, "covered": share, "interval above": above.mean(),
            "interval below": below.mean(), "error": error(share, runs),
        })  # fmt: skip
    table = told("95% intervals of a difference, 10-fold cross-validation", rows)
    assert abs(table["covered"].iloc[-1] - 0.95) < 0.01
    assert table["covered"].is_monotonic_increasing


# --- simultaneous intervals -----------------------------------------------------------------------


def test_simultaneous_coverage(told):
    """All 45 differences of ten correlated models at once."""
    m, runs, parts, rows = 10, 4_000, 20, []
    rng = np.random.default_rng(2028)
    rates = np.linspace(0.25, 0.35, m)
    left, right = np.triu_indices(m, 1)
    gap = (rates[left] - rates[right])[:, None]

    def covered(table):
        inside = (table["lower"].values <= gap) & (gap <= table["upper"].values)
        return inside.all(axis=0).mean() / parts

    for n, kind, rho in (
        (100, "normal", 0.5), (100, "normal", 0.9), (500, "normal", 0.9), (100, "0/1", 0.5),
        (500, "0/1", 0.5),
    ):  # fmt: skip
        shares = np.zeros(3)
        for part in range(parts):  # the runs of one part share their draws
            latent = correlated(rng, (n, m, runs // parts), rho)
            losses = (latent > stats.norm.isf(rates)[:, None]).astype(float)
            if kind == "normal":  # of unequal variances
                losses = np.linspace(0.5, 2, m)[:, None] * latent + rates[:, None]
            frame = log(losses)
            shares[0] += covered(frame.cvci.compare(adjust="max-t", n_draws=1_999, rng=part))
            shares[1] += covered(frame.cvci.compare(alpha=0.05 / 45))
            shares[2] += covered(frame.cvci.compare())
        rows.append({
            "points": n, "losses": kind, "correlation": rho, "max-t": shares[0],
            "Bonferroni": shares[1], "one at a time": shares[2], "error": error(shares[0], runs),
        })  # fmt: skip
    table = told("all 45 differences of ten models covered by 95% intervals", rows)
    assert (table["max-t"] > 0.92).all()  # the normal law takes some hundred points
    assert (table["max-t"] > 0.95 - 4 * error(0.95, runs))[table["points"] == 500].all()
    assert (table["Bonferroni"] >= table["max-t"]).all()


# --- the set of the best --------------------------------------------------------------------------


@pytest.mark.parametrize("m", [10, 50])
def test_the_set_of_the_best(told, m):
    """Keep a model that is best, and as few others as the points allow."""
    n, runs, rows = 500, 2_000, []
    rng = np.random.default_rng(2029 + m)
    for best, gap in ((m, 0.0), (3, 0.05), (3, 0.15), (1, 0.15)):
        error_of = np.where(np.arange(m) < best, 0.0, gap) * np.linspace(1, 2, m)
        size = kept = every = ranked = 0.0
        for part in range(10):  # the runs of one part share their draws
            losses = correlated(rng, (n, m, runs // 10), 0.5) + error_of[:, None]
            found = cvstats.best_set(log(losses), n_draws=999, rng=part)
            inside = found["in_set"].transpose("run", "model").values
            kept += inside[:, 0].mean() / 10
            every += inside[:, :best].all(axis=1).mean() / 10
            size += inside.sum(axis=1).mean() / 10
            low = found["lower_rank"].transpose("run", "model").values
            high = found["upper_rank"].transpose("run", "model").values
            first = 1 + (error_of < error_of[:, None]).sum(axis=1)
            last = m - (error_of > error_of[:, None]).sum(axis=1)
            ranked += ((low <= last) & (high >= first)).all(axis=1).mean() / 10
        rows.append({
            "best models": best, "lead": gap, "one of them kept": kept, "all kept": every,
            "size": size, "ranks hold": ranked, "error": error(kept, runs),
        })  # fmt: skip
        assert kept > 0.95 - 4 * error(0.95, runs)
        assert ranked > 0.95 - 4 * error(0.95, runs)
    told(f"best_set of {m} models, 500 points, 95%", rows)


@pytest.mark.parametrize("kind", ["normal", "lognormal", "0/1"])
def test_few_points_and_many_models(told, kind):
    """Equally good models of one shape: errors of max-t and best_set on 50 points."""
    rng = np.random.default_rng(2030)
    rows = []
    for n, m, runs in ((50, 20, 500), (50, 200, 200)):
        false = {"a reference": 0.0, "all pairs": 0.0, "best_set": 0.0}
        for run in range(runs):
            losses = correlated(rng, (n, m, 1), 0.5)
            if kind == "normal":
                losses = np.linspace(0.5, 2, m)[:, None] * losses
            elif kind == "lognormal":
                losses = np.exp(losses)
            else:
                losses = (losses > stats.norm.isf(0.2)).astype(float)
            frame = log(losses)
            draws = {"n_draws": 999, "rng": run}
            one = frame.cvci.compare(reference="m0", adjust="max-t", **draws)
            false["a reference"] += float((one["p_adjusted"] <= 0.05).any()) / runs
            best = cvstats.best_set(frame, **draws)
            false["best_set"] += float(not best["in_set"].sel(model="m0").item()) / runs
            ranks = (best["lower_rank"] > 1) | (best["upper_rank"] < m)  # some pair differs
            false["all pairs"] += float(ranks.any()) / runs
            assert ((best["caution"] & Caution.MANY_MODELS) != 0).all()
        rows.append({"points": n, "models": m, **false, "error": error(0.05, runs)})
        for share in false.values():
            assert share < 0.05 + 3 * error(0.05, runs)
    told(f"equally good models, {kind} losses, 5%", rows)


# --- ties and differences -------------------------------------------------------------------------


def test_false_ties_and_false_differences(told):
    """Ten models in three tiers: who is told from whom, by which test?"""
    n, runs, m = 500, 2_000, 10
    rng = np.random.default_rng(2031)
    tier = np.array([0] * 3 + [1] * 3 + [2] * 4)
    left, right = np.triu_indices(m, 1)
    same = tier[left] == tier[right]
    rows = []
    for gap in (0.03, 0.08):
        limits = stats.norm.isf(0.25 + gap * tier)[:, None]
        losses = (correlated(rng, (n, m, runs), 0.7) > limits).astype(np.float32)
        frame = log(losses)
        tables = {name: frame.cvci.compare(adjust=name) for name in ("holm", "bh")}
        tables["max-t"] = frame.cvci.compare(adjust="max-t", n_draws=1_999, rng=0)
        p = {name: table["p_adjusted"].transpose("pair", "run").values
             for name, table in tables.items()}  # fmt: skip
        p["compare, none"] = tables["holm"]["p_value"].transpose("pair", "run").values
        p["unpaired z, none"] = 2 * stats.norm.sf(np.abs(unpaired(losses)))
        for name in ("unpaired z, none", "compare, none", "bh", "holm", "max-t"):
            found = p[name] <= 0.05
            rows.append({
                "gap": gap, "adjust": name, "false differences": found[same].mean(),
                "any false difference": found[same].any(axis=0).mean(),
                "false ties": 1 - found[~same].mean(),
            })  # fmt: skip
    table = told("ten models in three tiers, 500 points of 0/1 losses", rows)
    worst = table[table["adjust"].isin(["holm", "max-t"])]["any false difference"].max()
    assert worst < 0.05 + 4 * error(0.05, runs)
    for _, part in table.groupby("gap"):
        ties = part.set_index("adjust")["false ties"]
        assert ties["compare, none"] < ties["max-t"]
        assert ties["compare, none"] < ties["unpaired z, none"]
