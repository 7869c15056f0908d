"""Logs of the resampling plans, for the tests of their methods."""

from __future__ import annotations

import numpy as np
import pandas as pd
import simulate


def example(method, seed=0, models=2, offset=0.0):
    """A frame of two models on a plan of some size."""
    rng = np.random.default_rng(seed)
    plan = {
        "corrected_t": lambda: simulate.subsampling(np.arange(20), 4, 6, rng),
        "conservative_z": lambda: simulate.paired_subsampling(20, 3, 4, 3, rng),
        "five_by_two": lambda: simulate.repeated_k_fold(11, 2, 5, rng),
        "nested_cv": lambda: simulate.nested_cv(14, 4, 2, rng),
        "replace_one": lambda: simulate.replace_one(13, 3, 2, rng),
    }[method]()
    index = simulate.index_of(plan)
    table = offset + rng.gamma(2.0, size=(len(index), models))
    return pd.DataFrame(table, index=index, columns=list("abc")[:models])


CALLS = [
    ("corrected_t", {"train_size": 16}),
    ("conservative_z", {}),
    ("five_by_two", {}),
    ("five_by_two", {"test": "f"}),
    ("nested_cv", {}),
    ("nested_cv", {"bias_correction": None}),
    ("replace_one", {}),
    ("replace_one", {"constant": "printed"}),
]
