"""Logs with one fault, and the words of a refusal."""

import re

import numpy as np
import pandas as pd
import pytest
from strategies import assert_unchanged, remembered

from cvstats import LogError


def k_fold(n=12, k=3, r=1, models=("a", "b")):
    """Losses of models in r repetitions of k folds of n points; repetitions differ."""
    rows = [(rep, (i * (rep + 1) + i // k) % k, i) for rep in range(r) for i in range(n)]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "fold", "point"])
    values = np.random.default_rng(0).random((n * r, len(models)))
    frame = pd.DataFrame(values, index=index, columns=list(models))
    frame.attrs = {"note": ["kept"]}
    return frame


def one(**options):
    """A single model in one repetition, without that level."""
    return k_fold(models=("a",), **options)["a"].droplevel("repetition")


def with_value(log, value, row=4):
    """The log with one other loss (in its last column)."""
    log = log.copy()
    log.iloc[(row, *[-1] * (log.ndim - 1))] = value
    return log


def without_label(log, level="fold", row=4):
    """The log with one label missing."""
    at = log.index.names.index(level)
    codes = np.array(log.index.codes[at])
    codes[row] = -1
    return log.set_axis(log.index.set_codes(codes, level=level))


def moved():
    """One point in two folds."""
    log = one()
    codes = np.array(log.index.codes[1])
    codes[4] = codes[5]
    return log.set_axis(log.index.set_codes(codes, level="point"))


def random_splits():
    """Two repetitions that each test four of seven points."""
    return k_fold(r=2, models=("a",))["a"].xs(1, level="fold")


def refused(call, *logs):
    """The words of the refusal; nothing about the logs has changed."""
    before = [remembered(log) for log in logs]
    with pytest.raises(LogError) as caught:
        call(*logs)
    for log, copy in zip(logs, before, strict=True):
        assert_unchanged(log, copy)
    words = str(caught.value)
    assert words[-1] == "."
    assert re.search(r"Expected|needs|Pass |Use |require|Available", words)
    assert not re.search(r"np\.\w+\(|dtype=|<.* object at", words), "labels are spelled as typed"
    return words
