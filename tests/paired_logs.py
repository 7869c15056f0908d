"""Logs of models evaluated on the same points, for the tests of comparisons."""

import math

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import stats

ALTERNATIVES = ["two-sided", "less", "greater"]
MARGINS = st.one_of(
    st.floats(0.01, 20).map(lambda m: (-m, m)),
    st.tuples(st.floats(-20, 0), st.floats(0.01, 20)),
    st.floats(-5, 20).map(lambda high: (-math.inf, high)),
)


def models(n=60, k=4, names=("ridge", "forest", "boost"), repetitions=1, dtype=float, rng=None):
    """A frame of losses that models share in part."""
    rng = np.random.default_rng(3) if rng is None else rng
    rows = repetitions * n
    index = pd.MultiIndex.from_arrays(
        [np.repeat(range(repetitions), n), np.tile(np.arange(n) % k, repetitions),
         np.tile(range(n), repetitions)],
        names=["repetition", "fold", "point"],
    )  # fmt: skip
    shared = rng.gamma(2.0, size=rows)
    columns = {name: shared + rng.normal(0.2 * j, 1, rows) for j, name in enumerate(names)}
    return pd.DataFrame(columns, index=index).astype(dtype)


def equivalent_models(n=60, k=5, names="abc", repetitions=1, rng=None, step=0.1, level=0):
    """A frame of models of nearly equal losses, whose folds change with the repetition.

    Each model is a step worse than the one before, and each fold has a level of its own."""
    rng = np.random.default_rng(41) if rng is None else rng
    rep = np.repeat(np.arange(repetitions), n)
    row = np.tile(np.arange(n), repetitions)
    index = pd.MultiIndex.from_arrays(
        [rep, (row + rep) % k, row], names=["repetition", "fold", "point"]
    )
    shared = rng.gamma(2.0, size=len(index)) + level * (row % k)
    return pd.DataFrame(
        {name: shared + rng.normal(step * j, 1, len(index)) for j, name in enumerate(names)}, index
    )


def wrong_answers(n=80, k=4, rates=(0.2, 0.3, 0.35)):
    """A frame of losses of 0 and 1: hard points are wrong for several models."""
    rng = np.random.default_rng(43)
    index = pd.MultiIndex.from_arrays([np.arange(n) % k, range(n)], names=["fold", "point"])
    hard = rng.normal(size=n)
    noise = rng.normal(size=(n, len(rates)))
    wrong = hard[:, None] + noise > np.sqrt(2) * stats.norm.isf(rates)
    return pd.DataFrame(wrong.astype(float), index, list("abcdef")[: len(rates)])
