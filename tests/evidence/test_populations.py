"""The truths that the study holds intervals to, against new points in large numbers."""

import numpy as np
import pytest

from evidence.contests import CONTESTS, Entries
from evidence.learners import Neighbour, Wave, logistic_error
from evidence.populations import POPULATIONS, Drawn, Given

N, RUNS = 60, 300
SLOW = ("deep tree", "sparse logit")


def standard_errors(measured, known):
    """How far a mean over runs is from what is known of each, in its standard errors."""
    gap = np.broadcast_to(measured - known, measured.shape)
    return abs(gap.mean()) / (gap.std(ddof=1) / np.sqrt(len(gap)))


def new_losses(sample, n_train):
    """Losses of the points that were not trained on, and the risk that is claimed."""
    n = sample.y.shape[1]
    model, rest = sample.fit(np.arange(n_train)), np.arange(n_train, n)
    losses = sample.loss(sample.y[:, rest], sample.predict(model, rest))
    return losses.mean(axis=1), sample.risk(model)


@pytest.mark.parametrize("name", [name for name in POPULATIONS if name not in SLOW])
def test_the_risk_is_the_mean_loss_on_new_points(name):
    draw = np.random.default_rng(5)
    population = POPULATIONS[name]
    drawn = population.draw(6 * N, RUNS, draw)
    if isinstance(drawn, Given):
        means = drawn.log.mean([dim for dim in drawn.log.dims if dim != "run"]).values
        assert standard_errors(means, drawn.truth) < 4
        return
    assert isinstance(drawn, Drawn)
    n_train = N if drawn.groups is None else int(np.searchsorted(drawn.groups, 6))
    assert standard_errors(*new_losses(drawn.sample, n_train)) < 4


def test_the_risk_of_trees_and_sparse_rules():
    for name, n_train in (("deep tree", 60), ("sparse logit", 40)):
        drawn = POPULATIONS[name].draw(n_train + 200, 6, np.random.default_rng(2))
        assert standard_errors(*new_losses(drawn.sample, n_train)) < 4


def test_the_error_on_a_source_is_that_of_its_points():
    drawn = POPULATIONS["sources"].draw(400, 500, np.random.default_rng(1))
    sample = drawn.sample
    last = np.flatnonzero(drawn.groups == 19)
    model = sample.fit(np.arange(380))
    losses = sample.loss(sample.y[:, last], sample.predict(model, last)).mean(axis=1)
    assert standard_errors(losses, drawn.on_group(model, 19)) < 4
    new = drawn.on_group(sample.fit(np.arange(400)), -1)
    assert standard_errors(new, sample.risk(sample.fit(np.arange(400))).mean()) < 4


@pytest.mark.parametrize("name", CONTESTS)
@pytest.mark.parametrize("with_effect", [False, True])
def test_contestants_are_as_good_as_is_said(name, with_effect):
    contest = CONTESTS[name]
    effect = contest.effect * with_effect
    drawn = contest.draw(6 * N, RUNS, np.random.default_rng(7), effect)
    if isinstance(drawn, Entries):
        risks = []
        for sample in drawn.samples.values():
            losses, risk = new_losses(sample, N)
            assert standard_errors(losses, risk) < 4
            risks.append(risk.mean())
    else:
        means = drawn.log.mean("point").transpose("model", "run").values
        for measured, known in zip(means, drawn.truth, strict=True):
            assert standard_errors(measured, known) < 4
        risks = list(drawn.truth)
    if not with_effect:  # models that approach one limit still differ by a little
        assert np.ptp(risks) < 0.05 * max(risks)


def test_the_nearest_neighbour_is_the_nearest():
    x = np.random.default_rng(3).random((4, 30))
    sample = Neighbour(x, np.arange(120.0).reshape(4, 30), Wave(0, 1), 0.25)
    train, points = np.arange(20), np.arange(20, 30)
    nearest = np.abs(x[:, points, None] - x[:, None, train]).argmin(axis=2)
    predicted = sample.predict(sample.fit(train), points)
    assert np.array_equal(predicted, np.take_along_axis(sample.y[:, train], nearest, axis=1))


def test_least_squares_with_repeated_and_with_too_few_points():
    sample = POPULATIONS["interpolation peak"].draw(100, 3, np.random.default_rng(4)).sample
    drawn = np.random.default_rng(0).integers(100, size=400)
    few = np.array([0, 0, 3, 7, 7, 7, 20])
    for train in (drawn, few):
        found = sample.fit(train)
        for run in range(3):
            wanted = np.linalg.lstsq(sample.x[run, train], sample.y[run, train])[0]
            np.testing.assert_allclose(found[run], wanted, rtol=1e-7, atol=1e-9)


def test_logistic_error_of_the_best_rule_and_of_a_coin():
    truth = np.array([0.4825] * 4)
    rules = np.array([truth, [1.0, -1.0, 0.0, 0.0]])
    best, coin = logistic_error(rules, np.zeros(2), truth)
    assert best == pytest.approx(0.33, abs=0.001)
    assert coin == pytest.approx(0.5, abs=1e-12)
