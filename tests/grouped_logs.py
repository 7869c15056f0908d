"""Logs with sources, as rows of the oracle and as a Series in any order of rows."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from scipy import stats
from strategies import series

LIMITS = ("estimate", "se", "lower", "upper")
LOGS = {
    "3 x 4": (4, 4, 4),
    "5 x 6": (6,) * 5,
    "2 x 2": (2, 2),
    "unequal": (5, 2, 7, 3),
    "one large": (20, 2, 2, 3, 2),
}


def random_rows(sizes, seed, repetitions=1):
    """Losses of sources of different level and spread, with a few decimals."""
    rng = np.random.default_rng(seed)
    level, spread = rng.uniform(0, 3, len(sizes)), rng.uniform(0.1, 2, len(sizes))
    return [
        oracle.Row(Fraction(int(1000 * (level[k] + spread[k] * e)), 1000), r, k, f"s{k}", i)
        for r in range(repetitions)
        for k, size in enumerate(sizes)
        for i, e in enumerate(rng.standard_normal(size))
    ]


def log_of(rows, levels=("repetition", "source", "point"), seed=0):
    """The rows as a Series, shuffled; points are numbered within their sources."""
    log = series(rows, np.random.default_rng(seed).permutation(len(rows)), levels=levels)
    log.attrs["points_are"] = "nested"
    return log


def stored_case(name):
    """A case of `reference/clusters.json`."""
    cases = json.loads((Path(__file__).parent / "reference" / "clusters.json").read_text())
    return next(case for case in cases if case["id"] == name)


def series_of(case):
    """The sample of a stored case, as one test set."""
    pairs = zip(case["inputs"]["y"], case["inputs"]["g"], strict=True)
    rows = [
        oracle.Row(Fraction(str(loss)), 0, 0, f"g{cluster}", i)
        for i, (loss, cluster) in enumerate(pairs)
    ]
    return log_of(rows, levels=("fold", "source", "point"))


def assert_limits(row, mean, variance, df, **tolerance):
    """The row has this mean, and limits of Student's t about it."""
    mean, se, df = float(mean), float(variance) ** 0.5, float(df)
    reach = stats.t.ppf(0.975, df) * se
    wanted = {"estimate": mean, "se": se, "df": df, "lower": mean - reach, "upper": mean + reach}
    for name, number in wanted.items():
        assert row[name] == pytest.approx(number, **(tolerance or {"rel": 1e-12})), name
