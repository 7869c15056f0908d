"""Too few of something: where the caution ends, and the smallest log that is answered."""

from functools import partial

import golden
import numpy as np
import pandas as pd
import pytest
import resampled_logs as plans
from flagged_logs import labels
from together import together

import cvstats
from cvstats import LogError


def of_sources(*sizes):
    return golden.by_source(sizes=sizes).cvci


def wrong(log, n):
    """The first n points of the log are errors."""
    points = log.index.get_level_values("point")
    return pd.Series(1.0 * (points.factorize(sort=True)[0] < n), log.index).cvci


def of_two_ways(sources, points):
    return golden.crossed(sources, points).cvci.clustered(by=("source", "point"))


def of_points(**columns):
    return pd.DataFrame(columns).rename_axis("point")


def judged(n, apart):
    """Labels of people for n of 200 points, and of a judge, who errs on so many of the n."""
    human, judge = np.arange(200) % 2, np.arange(200) // 2 % 2
    judge = np.where(np.arange(200) % 5, human, judge)
    judge[:n] = human[:n] ^ (np.arange(n) < apart)
    human, judge = (1.0 * of_points(model=labels)["model"] for labels in (human, judge))
    return cvstats.prediction_powered(human[:n], judge[:n], judge)


def discordant(n):
    """Two models of which one alone errs on n of 200 points."""
    points = np.arange(200)
    return of_points(a=1.0 * (points < n // 2), b=1.0 * ((points >= n // 2) & (points < n))).cvci


def scored(n):
    """The AUC of 60 points, n of them of one class."""
    scores = np.random.default_rng(0).normal(size=60)
    return cvstats.losses(of_points(y_true=np.arange(60) < n, y_pred=scores), loss="auc").cvci


def grouped(n):
    """The difference of the error rates of two groups, one of which has n errors."""
    wrong = 1.0 * ((np.arange(100) < n) | (np.arange(100) >= 80))
    log = of_points(a=wrong, group=np.arange(100) // 50).set_index("group", append=True)
    return log.cvci.contrast(by="group").cvci


ENOUGH = {
    ("few points", 30): {
        "wald": lambda n: golden.k_fold(n=n).cvci.wald(),
        "holdout": lambda n: golden.one_set().iloc[:n].cvci.holdout(),
        "refits": lambda n: golden.k_fold(n=n, repetitions=3).cvci.refit_corrected(),
        "days": lambda n: golden.one_set().iloc[:n].cvci.ordered(estimator="newey-west", lags=3),
        "sources": lambda n: of_sources(9, 9, n - 18).out_of_source(target="these_sources"),
        "smallest": lambda n: of_sources(n, 40).heterogeneity(),
        "pooled": lambda n: of_sources(9, 9, n - 18).heterogeneity(variance="pooled"),
        "models": lambda n: golden.k_fold(n=n).cvci.best_set(rng=0, n_draws=100),
        "nested": lambda n: golden.planned(partial(plans.nested_cv, n, 4, 2), 8).cvci.nested_cv(),
        "replaced": lambda n: golden.planned(
            partial(plans.replace_one, n, 3, 2), 9
        ).cvci.replace_one(),
        "judged": lambda n: judged(n, n),
    },
    ("few disagreements", 10): {"judged": lambda n: judged(50, n)},
    ("few sources", 30): {"sources": lambda n: of_sources(*[3] * n).out_of_source()},
    ("few clusters", 30): {
        "clusters": lambda n: golden.k_fold(n=2 * n, sources=n, whole=True).cvci.clustered(),
        "signs": lambda n: of_sources(*[3] * n).wild_cluster(n_draws=99, rng=0),
        "ways": lambda n: of_two_ways(n, 12),
    },
    ("very few clusters", 3): {"clusters": lambda n: of_sources(*[4] * n).clustered()},
    ("few clusters at one level", 10): {
        "sources": lambda n: of_two_ways(n, 12), "points": lambda n: of_two_ways(12, n)
    },
    ("few splits", 10): {
        "splits": lambda n: golden.planned(
            partial(plans.subsampling, np.arange(30), 10, n), 5
        ).cvci.corrected_t(train_size=20),
        "folds": lambda n: golden.k_fold(k=n).cvci.corrected_t(),
    },
    ("small folds", 20): {
        "folds": lambda n: golden.k_fold(n=2 * n, k=2).cvci.best_set(rng=0, n_draws=100)
    },
    ("few repetitions", 10): {
        "halves": lambda n: golden.planned(
            partial(plans.paired_subsampling, 24, 8, 3, n), 6
        ).cvci.conservative_z()
    },
    ("few repetitions", 25): {
        "nested": lambda n: golden.planned(partial(plans.nested_cv, 20, 4, n), 8).cvci.nested_cv()
    },
    ("few data sets", 5): {"ranks": lambda n: of_sources(*[3] * n).friedman(test="f")},
    ("few errors", 10): {
        "errors": lambda n: wrong(golden.one_set(), n).holdout(interval="wald"),
        "correct": lambda n: wrong(golden.one_set(), 36 - n).holdout(interval="wald"),
        "folds": lambda n: wrong(golden.k_fold(), n).wald(),
        "splits": lambda n: wrong(golden.k_fold(), n).corrected_t(),
        "independent": lambda n: wrong(golden.k_fold(), n).cv_t(),
        "clusters": lambda n: wrong(golden.by_source(sizes=(5,) * 8), n).clustered(),
        "left out": lambda n: wrong(golden.by_source(sizes=(5,) * 8), n).out_of_source(),
        "days": lambda n: wrong(golden.one_set(), n).ordered(estimator="newey-west"),
        "nested": lambda n: wrong(
            golden.planned(partial(plans.nested_cv, 40, 4, 2), 8), n).nested_cv(),
    },
    ("few discordant points", 25): {
        "points": lambda n: discordant(n).compare(method="tango"),
        "chi2": lambda n: discordant(n).mcnemar(test="chi2"),
    },
    ("few of a class", 10): {
        "auc": lambda n: scored(n).wald(), "groups": lambda n: grouped(n).holdout()
    },
}  # fmt: skip
"""Calls on a log with so many of something; the caution ends where there are enough."""


@together(
    [(name, *limit, ask) for limit, asks in ENOUGH.items() for name, ask in asks.items()],
    by=lambda name, label, *_: label,
)
def test_few_ends_where_there_are_enough(name, label, enough, ask):
    assert label in labels(ask(enough - 1))
    assert label not in labels(ask(enough))


def first_of(log, level, n):
    """The log of the first n labels of a level."""
    return log[log.index.get_level_values(level).factorize(sort=True)[0] < n].cvci


def groups_of(n, size):
    log = golden.one_set()[["a"]].assign(group=np.minimum(np.arange(36) // size, n - 1))
    return log.set_index("group", append=True).cvci.contrast(by="group").cvci.interval()


LEAST = {
    2: {
        "holdout": lambda n: golden.one_set().iloc[:n].cvci.holdout(),
        "wald": lambda n: golden.k_fold(n=n, k=n).cvci.wald(),
        "folds": lambda n: golden.k_fold(n=5 * n).cvci.wald(variance="within-fold"),
        "estimator": lambda n: golden.k_fold(k=n).cvci.quadratic(),
        "decompose": lambda n: golden.k_fold(n=5 * n).cvci.decompose(),
        "refits": lambda n: golden.k_fold(repetitions=n).cvci.refit_corrected(),
        "best_set": lambda n: golden.one_set().iloc[:n].cvci.best_set(rng=0, n_draws=99),
        "best of folds": lambda n: golden.k_fold(n=5 * n).cvci.best_set(
            rng=0, n_draws=99, center="fold"),
        "best of models": lambda n: golden.one_set()[golden.MODELS[:n]].cvci.best_set(
            rng=0, n_draws=99),
        "winner": lambda n: golden.one_set()[golden.MODELS[:n]].cvci.winner(),
        "groups": lambda n: groups_of(n, 4),
        "group": lambda n: groups_of(2, n),
        "clusters": lambda n: of_sources(*[4] * n).clustered(),
        "signs": lambda n: of_sources(*[4] * n).wild_cluster(),
        "differing": lambda n: of_sources(*[4] * n).heterogeneity(),
        "cluster": lambda n: of_sources(4, n).heterogeneity(),
        "left out": lambda n: of_sources(*[4] * n).out_of_source(),
        "known": lambda n: of_sources(4, n).out_of_source(target="these_sources"),
        "ranks": lambda n: of_sources(*[4] * n).friedman(),
        "ways": lambda n: of_two_ways(n, 4),
        "ways of points": lambda n: of_two_ways(4, n),
        "splits": lambda n: first_of(golden.log_named("splits"), "repetition", n).corrected_t(
            train_size=20),
        "out of bag": lambda n: first_of(
            golden.log_named("bootstrap"), "repetition", n + 1).bootstrap_oob(),
        "cases": lambda n: first_of(
            golden.log_named("case bootstrap"), "repetition", n).case_bootstrap(),
        "answered": lambda n: first_of(golden.one_set(repetitions=2), "point", n).answers(),
        "answers": lambda n: golden.one_set(repetitions=n).cvci.answers(),
        "runs": lambda n: golden.one_set(repetitions=n).cvci.power(effect=1, repetitions=4),
    },
    3: {
        "nested": lambda n: golden.planned(partial(plans.nested_cv, 24, n, 2), 8).cvci.nested_cv(),
        "ranked models": lambda n: golden.by_source()[golden.MODELS[:n]].cvci.nemenyi(),
    },
    4: {"days": lambda n: golden.one_set().iloc[:n].cvci.ordered()},
    5: {"data sets": lambda n: (golden.by_source(sizes=(4,) * n) + 10).cvci.compare(
        relative=True, over="source")},
    7: {"lags": lambda n: golden.one_set().iloc[:n].cvci.ordered(
        estimator="newey-west", lags=5)},
}  # fmt: skip
"""Calls on a log with so many of something, which is refused with fewer."""


@together([(name, least, ask) for least, asks in LEAST.items() for name, ask in asks.items()])
def test_the_smallest_log_is_answered_and_a_smaller_one_refused(name, least, ask):
    ask(least)
    with pytest.raises(LogError):
        ask(least - 1)
