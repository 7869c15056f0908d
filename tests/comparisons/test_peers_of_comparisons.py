"""Comparisons against other programs, called in the same run; each prints its worst deviation."""

import itertools

import baycomp
import numpy as np
import pandas as pd
import pytest
from mlxtend import evaluate
from paired_logs import equivalent_models
from rows import only_row
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from statsmodels.stats import contingency_tables

import cvstats

RNG = np.random.default_rng(59)


@pytest.fixture
def told(capsys):
    """Compare pairs of numbers (ours, theirs), print the worst deviation and bound it."""

    def tell(name, pairs, tolerance=1e-9):
        ours, theirs = (np.asarray(side, dtype=float) for side in zip(*pairs, strict=True))
        off = np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-12)
        with capsys.disabled():
            print(f"\n{name}: worst relative deviation {off.max():.1e} of {len(off)} numbers")
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-13)

    return tell


def zero_one(n, rates=(0.2, 0.3)):
    hard, noise = RNG.normal(size=(n, 1)), RNG.normal(size=(n, len(rates)))
    wrong = hard + noise > np.sqrt(2) * stats.norm.isf(rates)
    return pd.DataFrame(wrong.astype(int), columns=list("abcdef")[: len(rates)]).rename_axis(
        "point"
    )


def test_mcnemar_of_mlxtend(told):
    pairs = []
    for n in (20, 60, 300, 2_000):
        log = zero_one(n)
        table = evaluate.mcnemar_tables(np.zeros(n, int), log["a"].to_numpy(), log["b"].to_numpy())
        table = table["model_0 vs model_1"]
        for test, options in (
            ("exact", {"exact": True}),
            ("chi2", {"corrected": False}),
            ("chi2", {"corrected": True}),
        ):
            ours = only_row(
                cvstats.mcnemar(log, test=test, correction=options.get("corrected", False)).iloc[0]
            )
            chi2, p = evaluate.mcnemar(table, **options)
            pairs.append((ours["p_value"], p))
            pairs += [(ours["n01"], table[0, 1]), (ours["n10"], table[1, 0])]
            if chi2 is not None:
                pairs.append((ours["statistic"], chi2))
    told("mcnemar, mlxtend", pairs)


def test_cochran(told):
    pairs = []
    for rates in ((0.2, 0.3), (0.2, 0.3, 0.3), (0.1, 0.15, 0.2, 0.2, 0.3)):
        log = zero_one(200, rates)
        ours = only_row(log.cvci.cochran_q().iloc[0])
        theirs = contingency_tables.cochrans_q(log.to_numpy())
        pairs += [(ours["statistic"], theirs.statistic), (ours["p_value"], theirs.pvalue)]
        right = [log[name].to_numpy() for name in log]
        if len(rates) > 2:
            q, p = evaluate.cochrans_q(np.zeros(200, int), *right)
            pairs += [(ours["statistic"], q), (ours["p_value"], p)]
    told("cochran_q, statsmodels and mlxtend", pairs)


class Without(RegressorMixin, BaseEstimator):
    """A ridge regression that does not look at the first column, the name of the point."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.model_ = Ridge(self.alpha).fit(X[:, 1:], y)
        return self

    def losses(self, X, y):
        return (self.model_.predict(X[:, 1:]) - y) ** 2


def test_five_by_two_of_mlxtend(told):
    n = 60
    X = np.column_stack([np.arange(n), RNG.normal(size=(n, 4))])
    y = X[:, 1:] @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=n)
    models = {"a": Without(0.1), "b": Without(40.0)}
    rows = []

    def scoring(model, X, y):
        losses = model.losses(X, y)
        name = "a" if model is models["a"] else "b"
        rows.append(pd.Series(losses, X[:, 0].astype(int), name=name))
        return losses.mean()

    pairs = []
    for test, function in (
        ("t", evaluate.paired_ttest_5x2cv),
        ("f", evaluate.combined_ftest_5x2cv),
    ):
        for seed in range(3):
            rows.clear()
            statistic, p = function(*models.values(), X, y, scoring=scoring, random_seed=seed)
            both = [pd.concat(rows[i : i + 2], axis=1) for i in range(0, 20, 2)]
            keys = list(itertools.product(range(5), range(2)))
            log = pd.concat(
                dict(zip(keys, both, strict=True)), names=["repetition", "fold", "point"]
            )
            ours = only_row(log.cvci.compare(method="five_by_two", options={"test": test}).iloc[0])
            pairs += [(ours["statistic"], statistic), (ours["p_value"], p)]
    told("compare by five_by_two, mlxtend", pairs)


def test_rope_of_baycomp(told):
    pairs = []
    for k, runs in ((5, 1), (10, 1), (5, 3), (4, 10)):
        log = equivalent_models(40, k, "abcd", runs, RNG, step=0)
        means = log.groupby(level=["repetition", "fold"]).mean()
        for a, b in (("a", "b"), ("c", "d")):
            for rope in (0.05, 0.3):
                # Theirs are scores, and its differences those of the second less the first: with
                # losses for scores, its right side is where the first model is better.
                theirs = baycomp.two_on_single(
                    means[a].to_numpy(), means[b].to_numpy(), rope=rope, runs=runs
                )
                ours = only_row(log[[a, b]].cvci.rope(margin=rope).iloc[0])
                shares = ours[["p_worse", "p_equivalent", "p_better"]]
                pairs += list(zip(shares, theirs, strict=True))
    told("rope, baycomp", pairs)
