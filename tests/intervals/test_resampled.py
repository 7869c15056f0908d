"""Corrected t, conservative Z, five by two, nested CV and replace-one: R, and training sizes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import resampled_logs
from fold_logs import assert_agrees_with_r
from rows import multi_index, only_row

import cvstats

R_CASES = json.loads(
    (Path(__file__).parents[1] / "reference" / "r_resampled.json").read_text(encoding="utf-8")
)


def r_log(case):
    """The log of a case; a level whose labels come in runs is stored as label, times, …"""
    levels = {
        name: np.repeat(column["runs"][::2], column["runs"][1::2])
        if isinstance(column, dict)
        else column
        for name, column in case["log"].items()
    }
    index = multi_index(**levels)
    return pd.Series(case["loss"], index=index)


def test_agrees_with_r(capsys):
    assert_agrees_with_r(R_CASES, r_log, lambda case: case["method"], capsys)


def test_training_sizes_of_splits():
    """Nadeau and Bengio: the variance of the means times 1/J + the mean share of test points."""
    log = resampled_logs.example("corrected_t")["a"]
    means, tested = log.groupby("repetition").mean(), log.groupby("repetition").size()
    mixed, sizes = log.sample(frac=1, random_state=1), list(range(11, 11 + len(means)))
    by_label = dict(zip(means.index[::-1], sizes[::-1], strict=True))
    for train_size in (sizes, np.array(sizes), by_label, pd.Series(by_label)):
        ours = only_row(cvstats.corrected_t(mixed, train_size=train_size))
        factor = 1 / len(sizes) + (tested / sizes).mean()
        assert ours["estimate"] == pytest.approx(means.mean(), rel=1e-12)
        assert ours["se"] ** 2 == pytest.approx(factor * means.var(), rel=1e-12)
        assert (ours["df"], ours["n_splits"]) == (len(sizes) - 1, len(sizes))
        assert ours["n_train"] == pytest.approx(np.mean(sizes))
