"""Compiled loops over sorted points, against the same in Python and against double loops."""

import numpy as np
import pytest

from cvstats.metrics import METRICS, ranks
from cvstats.metrics.metric import MetricOptions, Points

RNG = np.random.default_rng(4)
N = 40
SCORE = RNG.normal(size=N).round(1)
TRUTH = RNG.random(N) < 0.4
WEIGHT = RNG.gamma(2.0, size=N)
TIME = RNG.gamma(2.0, size=N).round(1)
EVENT = RNG.random(N) < 0.7
LEVELS, RANK = np.unique(SCORE, return_inverse=True)

CALLS = {
    "class_placements": (lambda: (SCORE, TRUTH, WEIGHT, np.argsort(SCORE)), 1),
    "average_precision_terms": (lambda: (SCORE, TRUTH, WEIGHT, np.argsort(SCORE)), 1),
    "split_sums": (lambda: (SCORE, WEIGHT, np.argsort(SCORE)), 1),
    "pair_sums": (
        lambda: (TIME, EVENT, RANK, WEIGHT, WEIGHT**2, np.argsort(TIME), len(LEVELS)), (2, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_compiled_loops_do_what_python_does(name: str) -> None:
    kernel = getattr(ranks, name)
    arguments, outputs = CALLS[name]
    shape = outputs if isinstance(outputs, tuple) else (outputs,)
    compiled, plain = np.zeros((2, *shape, N))
    first = kernel(*arguments(), *compiled)
    second = kernel.py_func(*arguments(), *plain)
    np.testing.assert_allclose(compiled, plain, rtol=1e-13)
    if first is not None:
        np.testing.assert_allclose(first, second, rtol=1e-13)


def test_a_tree_adds_up_the_ranks_below() -> None:
    weights = RNG.random(11)
    tree = np.zeros(12)
    for rank, weight in enumerate(weights):
        ranks.add_weight.py_func(tree, rank, weight)
    for rank in range(12):
        expected = weights[:rank].sum()
        assert ranks.sum_below.py_func(tree, rank) == pytest.approx(expected, abs=1e-13)


def test_pairs_of_censored_times_by_a_double_loop() -> None:
    same, comparable = np.zeros((2, N))
    for i in range(N):
        for j in range(N):
            first = TIME[i] < TIME[j] and EVENT[i]
            tied = TIME[i] == TIME[j] and EVENT[i] and not EVENT[j]
            if first or tied:
                right = (SCORE[i] < SCORE[j]) + 0.5 * (SCORE[i] == SCORE[j])
                for one, other in ((i, j), (j, i)):
                    same[one] += WEIGHT[other] * right
                    comparable[one] += WEIGHT[other]
    value, phi = METRICS["concordance"].influence(
        Points(TIME, SCORE, weight=WEIGHT, event=EVENT), MetricOptions()
    )
    expected = (WEIGHT @ same) / (WEIGHT @ comparable)
    assert value == pytest.approx(expected, abs=1e-13)
    below = WEIGHT @ comparable / WEIGHT.sum() ** 2
    other = 2 * (same - expected * comparable) / WEIGHT.sum() / below
    np.testing.assert_allclose(phi, other, atol=1e-12)
