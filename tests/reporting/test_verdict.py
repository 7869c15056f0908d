"""The verdict over several models: one procedure, whose interval and p-value agree."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats.facts import LogFacts
from cvstats.reporting.evidence import Evidence

DESIGNS = ("test set", "folds", "repeated", "seeds", "sources", "whole sources", "splits", "scores",
           "cells")  # fmt: skip
KINDS = ("normal", "skewed", "right or wrong", "auc", "f1")
NUMBER = r"[−+]?[\d,.]+"


def levels_of(design, n, rng):
    """The levels of a log of so many points in each repetition, and how many repetitions."""
    folds = np.arange(n) % 5
    points = np.arange(n)
    if design in ("test set", "scores"):
        return {"point": points}
    if design == "sources":
        return {"source": points % 9, "point": points}
    if design == "whole sources":
        return {"fold": points % 15 % 5, "source": points % 15, "point": points}
    if design in ("folds", "cells"):
        return {"fold": folds, "point": points}
    if design == "seeds":
        return {"repetition": np.repeat(range(3), n), "point": np.tile(points, 3)}
    if design == "repeated":
        return {
            "repetition": np.repeat(range(3), n),
            "fold": np.concatenate([rng.permutation(folds) for _ in range(3)]),
            "point": np.tile(points, 3),
        }
    drawn = [rng.permutation(2 * n)[: n // 4] for _ in range(12)]
    return {"repetition": np.repeat(range(12), n // 4), "point": np.concatenate(drawn)}


def make_log(seed):
    """A random log: a design, a kind of losses, and 2 to 12 models that may be similar."""
    rng = np.random.default_rng(seed)
    design, kind = str(rng.choice(DESIGNS)), str(rng.choice(KINDS))
    models, n = int(rng.integers(2, 13)), int(rng.choice([24, 60, 150]))
    if design in ("scores", "splits", "seeds", "sources", "cells") and kind in ("auc", "f1"):
        kind = "skewed"
    index = pd.MultiIndex.from_frame(pd.DataFrame(levels_of(design, n, rng)))
    point = index.get_level_values("point").to_numpy()
    shared = rng.normal(size=2 * n)[point]
    shift = rng.choice([0.0, 0.0, 0.3, 1.0]) * rng.random(models)
    noise = rng.choice([0.2, 1.0]) * rng.normal(size=(len(index), models))
    names = [f"m{k}" for k in range(models)]
    if kind in ("auc", "f1"):
        truth = (shared > 0).astype(int)
        scores = 1 / (1 + np.exp(-(shared[:, None] * rng.choice([0.2, 2]) + noise - shift)))
        table = pd.DataFrame(scores if kind == "auc" else scores > 0.5, index, names)
        table = table.astype(float if kind == "auc" else int).assign(y=truth)
        return cvstats.losses(table, truth="y", prediction=names, loss=kind, folds="pool")
    values = shared[:, None] + noise + shift
    values = {"normal": values, "skewed": values**2, "right or wrong": 1.0 * (values > 1)}[kind]
    losses = pd.DataFrame(values, index, names)
    if design == "splits":
        losses.attrs["n_train"] = 2 * n - n // 4
    if design == "scores":
        losses = losses.groupby(np.arange(n) % 10).mean().rename_axis("fold")
        losses.attrs = {"holds": "scores", "n_train": 9 * n // 10, "n_test": n // 10}
    if design == "cells":
        cells = rng.choice([2, 3])
        return xr.DataArray(
            losses.to_numpy().T[:, None] + rng.normal(0, 0.5, (models, cells, n)),
            dims=["model", "lead", "point"],
            coords={"model": names, "lead": range(cells), "fold": ("point", np.arange(n) % 5)},
        )
    return losses


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def check_verdict(seed):
    """Intervals exclude 0 exactly where p < alpha: of all pairs, and in the sentences."""
    losses = make_log(seed)
    evidence = Evidence(LogFacts(losses), 0.05, 0)
    pairs = evidence.pairs
    assert pairs is not None
    known = ~np.isnan(pairs.p)
    away = (pairs.lower > 0) | (pairs.upper < 0)
    assert (away == (pairs.p < 0.05))[known].all()
    found = 0
    for sentence in cvstats.summary(losses).sentences:
        for low, high, p in re.findall(
            rf"interval ({NUMBER}) to ({NUMBER}), p [=<] ([\d.]+\d)", sentence
        ):
            found += 1
            excluded = number(low) > 0 or number(high) < 0
            assert excluded == (number(p) < 0.05), sentence
            assert excluded == ("not statistically" not in sentence and "same" not in sentence
                                and "share" not in sentence), sentence  # fmt: skip
    return found


CLOSE = (1044, 1080, 1087, 1122, 1252, 1273, 1277)
"""Logs whose leads are significant by themselves and not among all pairs."""


@pytest.mark.parametrize("seed", [*range(53), *CLOSE])
def test_an_interval_excludes_zero_exactly_where_p_is_below_alpha(seed):
    assert check_verdict(seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_intervals_agree_with_p_values_in_many_logs(start):
    assert all([check_verdict(1000 + start + at) > 0 for at in range(50)])


@pytest.mark.parametrize("models", [2, 10, 11, 20])
def test_equal_models_are_tied(models):
    runs, wrong = 40, 0
    index = pd.MultiIndex.from_arrays([np.arange(100) % 5, range(100)], names=["fold", "point"])
    for run in range(runs):
        rng = np.random.default_rng([run, models])
        losses = pd.DataFrame(
            rng.exponential(size=(100, 1)) + rng.normal(size=(100, models)), index
        )
        wrong += not Evidence(LogFacts(losses), 0.05, run).tied.all()
    assert wrong <= 6  # of 40 at 5%: exceeded in 1.4% of seeds


def test_a_model_beaten_by_another_than_the_best_is_not_tied():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(200) % 5, range(200)], names=["fold", "point"])
    base = rng.normal(10, 1, 200)
    losses = pd.DataFrame(
        {"wild": rng.normal(0, 5, 200), "a": base, "b": base + 0.3 + rng.normal(0, 0.1, 200)}, index
    )  # fmt: skip
    losses["wild"] += 9.9 - losses["wild"].mean()
    words = losses.cvci.summary().sentences[0]
    assert words.startswith(
        "wild has the lowest mean loss of 3 models, but is not significantly better than a: its"
    )
    assert words.endswith("adjusted for 3 comparisons); b is significantly worse.")
