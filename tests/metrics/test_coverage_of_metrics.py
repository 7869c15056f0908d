"""How often intervals for metrics cover what they are for; the tables are in the guide.

A run is a data set: its learner is fitted anew in every fold, and the metric of each fitted rule
on new points is known in closed form. Two classes are normal with one covariance and a linear
discriminant separates them; numbers are linear with normal errors, fitted by least squares.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import ndtr

import cvstats

pytestmark = pytest.mark.slow

RUNS = 2000


def folds_of(n: int, k: int) -> np.ndarray:
    """Stratified where the points are sorted by class."""
    return np.arange(n) % k


class Discriminant:
    """Rules fitted by linear discriminant analysis, for every run and fold."""

    def __init__(
        self, n: int, k: int, share: float, distance: float, used: int = 4, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        width = 4
        self.share, self.fold = share, folds_of(n, k)
        self.y = -np.sort(-(rng.random((RUNS, n)) < share).astype(np.int64), axis=1)
        centre = np.zeros(width)
        centre[:2] = distance / np.sqrt(2)
        x = rng.standard_normal((RUNS, n, width)) + self.y[..., None] * centre
        x, centre = x[..., :used], centre[:used]
        self.score = np.empty((RUNS, n))
        means, sizes = [], []
        for fold in range(k):
            train, test = self.fold != fold, self.fold == fold
            slope, cut = fit(x[:, train], self.y[:, train])
            self.score[:, test] = np.einsum("rni,ri->rn", x[:, test], slope) - cut[:, None]
            means.append([-cut, slope @ centre - cut])
            sizes.append(np.linalg.norm(slope, axis=1))
        self.means, self.sizes = np.array(means), np.array(sizes)  # (fold, class, run), (fold, run)
        self.k = k

    def rates(self, cut: Any) -> tuple[np.ndarray, np.ndarray]:
        """False and true positive rate of each fold and run, at one cut."""
        both = ndtr((self.means - cut) / self.sizes[:, None])
        return both[:, 0], both[:, 1]

    def auc(self, folds: str) -> np.ndarray:
        """Of each rule, or of scores that are mixed over the rules."""
        pairs = [(a, a) for a in range(self.k)]
        if folds == "pool":
            pairs = [(a, b) for a in range(self.k) for b in range(self.k)]
        found = [
            ndtr((self.means[a, 1] - self.means[b, 0]) / np.hypot(self.sizes[a], self.sizes[b]))
            for a, b in pairs
        ]
        return np.mean(found, axis=0)

    def label_metric(self, folds: str, of_rates: Callable[[Any, Any, float], Any]) -> np.ndarray:
        """A function of both rates and of the share of positives."""
        rates = self.rates(0.0)
        if folds == "pool":
            return of_rates(*(rate.mean(axis=0) for rate in rates), self.share)
        return of_rates(*rates, self.share).mean(axis=0)

    def average_precision(self, folds: str) -> np.ndarray:
        """The integral of precision over recall, on a fine grid of cuts."""
        low = (self.means.min(axis=1) - 8 * self.sizes).min(axis=0)
        high = (self.means.max(axis=1) + 8 * self.sizes).max(axis=0)
        rates = [self.rates(low + at * (high - low)) for at in np.linspace(1, 0, 800)]
        negative, positive = (np.array(part) for part in zip(*rates, strict=True))
        if folds == "pool":
            negative, positive = (r.mean(axis=1, keepdims=True) for r in (negative, positive))
        precision = self.share * positive / (self.share * positive + (1 - self.share) * negative)
        middle = (precision[1:] + precision[:-1]) / 2
        return (middle * np.diff(positive, axis=0)).sum(axis=0).mean(axis=0)

    def dataset(self) -> xr.Dataset:
        """The predictions of all runs."""
        dims = ("run", "point")
        data = {
            "y": (dims, self.y), "score": (dims, self.score),
            "label": (dims, (self.score > 0).astype(np.int64)),
        }  # fmt: skip
        coords = {"point": np.arange(self.y.shape[1]), "fold": ("point", self.fold)}
        return xr.Dataset(data, coords=coords)


def fit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and cut of the discriminant of each run, with equal weight on both classes."""
    n1 = y.sum(axis=1)
    n0 = y.shape[1] - n1
    m1 = np.einsum("rn,rni->ri", y, x) / n1[:, None]
    m0 = np.einsum("rn,rni->ri", 1 - y, x) / n0[:, None]
    centred = x - np.where(y[..., None] == 1, m1[:, None], m0[:, None])
    spread = np.einsum("rni,rnj->rij", centred, centred) / (y.shape[1] - 2)
    slope = np.linalg.solve(spread, (m1 - m0)[..., None])[..., 0]
    return slope, ((m1 + m0) / 2 * slope).sum(axis=1)


def f1(false: Any, true: Any, share: float) -> Any:
    """F1 from the rates."""
    return 2 * share * true / (share * true + (1 - share) * false + share)


def matthews(false: Any, true: Any, share: float) -> Any:
    """Correlation of truth and label from the rates."""
    called = share * true + (1 - share) * false
    covariance = share * true - share * called
    return covariance / np.sqrt(share * (1 - share) * called * (1 - called))


class LeastSquares:
    """Linear rules for numbers, for every run and fold."""

    def __init__(self, n: int, k: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        width, self.fold = 5, folds_of(n, k)
        slope = np.full(width, 0.6)
        x = rng.standard_normal((RUNS, n, width))
        self.y = x @ slope + rng.standard_normal((RUNS, n))
        self.variance = slope @ slope + 1.0
        self.guess = np.empty_like(self.y)
        errors, rho = [], []
        full = np.concatenate([np.ones((RUNS, n, 1)), x], axis=2)
        for fold in range(k):
            train, test = self.fold != fold, self.fold == fold
            a = full[:, train]
            beta = np.linalg.solve(
                np.einsum("rni,rnj->rij", a, a),
                np.einsum("rni,rn->ri", a, self.y[:, train])[..., None],
            )[..., 0]
            self.guess[:, test] = np.einsum("rni,ri->rn", full[:, test], beta)
            errors.append(1.0 + beta[:, 0] ** 2 + ((beta[:, 1:] - slope) ** 2).sum(axis=1))
            norm = np.linalg.norm(beta[:, 1:], axis=1)
            rho.append(beta[:, 1:] @ slope / (norm * np.sqrt(self.variance)))
        self.errors, self.rho = np.array(errors), np.array(rho)

    def rmse(self, folds: str) -> np.ndarray:
        """Root mean squared error on new points."""
        if folds == "pool":
            return np.sqrt(self.errors.mean(axis=0))
        return np.sqrt(self.errors).mean(axis=0)

    def r2(self, folds: str) -> np.ndarray:
        """Share of the variance that is explained on new points."""
        return 1 - self.errors.mean(axis=0) / self.variance

    def pearson(self, folds: str) -> np.ndarray:
        """Correlation on new points, of each rule."""
        return self.rho.mean(axis=0)

    def kendall(self, folds: str) -> np.ndarray:
        """Kendall's tau of two correlated normal numbers, of each rule."""
        return 2 * np.arcsin(self.rho).mean(axis=0) / np.pi

    def concordance(self, folds: str) -> np.ndarray:
        """C index of two correlated normal numbers, of each rule."""
        return 0.5 + np.arcsin(self.rho).mean(axis=0) / np.pi

    def dataset(self) -> xr.Dataset:
        """The predictions of all runs."""
        dims = ("run", "point")
        data = {"y": (dims, self.y), "guess": (dims, self.guess)}
        coords = {"point": np.arange(self.y.shape[1]), "fold": ("point", self.fold)}
        return xr.Dataset(data, coords=coords)


def row(log: Any, target: np.ndarray, scale: Any = "identity") -> tuple[float, float]:
    """Coverage of the 95% interval, and the bias of the score."""
    found = cvstats.as_scores(log.cvci.wald(scale=scale))
    inside = (found["lower"] <= target) & (target <= found["upper"])
    return float(inside.mean()), float((found["estimate"] - target).mean())


@pytest.fixture
def told(capsys: Any) -> Any:
    """Print a table with its heading."""

    def tell(heading: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
        table = pd.DataFrame(rows)
        with capsys.disabled():
            print(f"\n{heading}, {RUNS:,} runs\n{table.round(3).to_string(index=False)}")
        return table

    return tell


@pytest.mark.parametrize(("n", "k", "share"), [(200, 5, 0.4), (500, 5, 0.1), (1000, 5, 0.1)])
def test_metrics_of_two_classes(n: int, k: int, share: float, told: Any) -> None:
    world = Discriminant(n, k, share, 1.5)
    data = world.dataset()
    rows = []
    targets = {
        "auc": ("score", world.auc), "average_precision": ("score", world.average_precision),
        "f1": ("label", lambda folds: world.label_metric(folds, f1)),
        "matthews": ("label", lambda folds: world.label_metric(folds, matthews)),
    }  # fmt: skip
    for metric, (column, target) in targets.items():
        for folds in ("average", "pool"):
            log = cvstats.losses(data, "y", column, metric, folds=folds, **(
                {"zero_division": 0} if metric == "f1" else {}))  # fmt: skip
            covered, bias = row(log, target(folds))
            one = {"metric": metric, "folds": folds, "wald": covered, "bias": bias}
            scale = "fisher-z" if metric == "matthews" else "logit"
            one[scale] = row(log, target(folds), scale)[0]
            rows.append(one)
    table = told(f"n={n}, K={k}, {share:.0%} positive", rows).set_index(["metric", "folds"])
    for metric in ("auc", "f1", "matthews"):
        assert table.loc[metric, "wald"].min() > 0.88
    assert table.loc["auc", "logit"].between(0.925, 0.975).all()
    assert table.loc[("average_precision", "average"), "bias"] > 0.005
    assert abs(table.loc[("average_precision", "pool"), "bias"]) < 0.01


@pytest.mark.parametrize(("n", "share"), [(200, 0.4), (500, 0.1)])
def test_paired_difference_of_two_aucs(n: int, share: float, told: Any) -> None:
    large, small = (Discriminant(n, 5, share, 1.5, used) for used in (4, 1))
    data = large.dataset().assign(small=small.dataset()["score"])
    log = cvstats.losses(data, "y", ["score", "small"], "auc")
    found = cvstats.as_scores(log.cvci.compare(reference="small")).squeeze()
    target = large.auc("average") - small.auc("average")
    inside = (found["lower"] <= target) & (target <= found["upper"])
    rows = [{"n": n, "share": share, "wald": float(inside.mean()), "difference": target.mean()}]
    table = told("Paired difference of two AUCs, averaged over 5 folds", rows)
    assert table["wald"].between(0.9, 0.97).all()


@pytest.mark.parametrize(("n", "k"), [(100, 5), (100, 10), (300, 5)])
def test_metrics_of_numbers(n: int, k: int, told: Any) -> None:
    world = LeastSquares(n, k)
    data, rows = world.dataset(), []
    for metric, target in (("rmse", world.rmse), ("r2", world.r2)):
        for folds in ("average", "pool"):
            log = cvstats.losses(data, "y", "guess", metric, folds=folds)
            covered, bias = row(log, target(folds))
            rows.append({"metric": metric, "folds": folds, "wald": covered, "bias": bias})
            if metric == "rmse":
                rows[-1]["log"] = row(log, target(folds), "log")[0]
    log = cvstats.losses(data, "y", "guess", "concordance")
    covered, bias = row(log, world.concordance("average"))
    one = {"metric": "concordance", "folds": "average", "wald": covered, "bias": bias}
    rows.append({**one, "logit": row(log, world.concordance("average"), "logit")[0]})
    for metric, target in (("pearson", world.pearson), ("kendall", world.kendall)):
        log = cvstats.losses(data, "y", "guess", metric, folds="average")
        covered, bias = row(log, target("average"))
        one = {"metric": metric, "folds": "average", "wald": covered, "bias": bias}
        one["biased"] = "biased by fold" if "biased_by_fold" in log.attrs else ""
        rows.append({**one, "fisher-z": row(log, target("average"), "fisher-z")[0]})
    table = told(f"n={n}, K={k}, least squares", rows).set_index(["metric", "folds"])
    assert table.loc[("rmse", "pool"), "wald"] > 0.9
    assert table.loc[("r2", "pool"), "wald"] > 0.9
    assert (table.loc[table["biased"] == "", "fisher-z"] > 0.9).all()
    assert (n == 10 * k) == (table.loc["pearson", "biased"] == "biased by fold").all()
    assert table.loc[("r2", "average"), "bias"] < table.loc[("r2", "pool"), "bias"]
