"""How often intervals for new points and new seeds cover, and what averaging the seeds hides.

A loss is ``1 + point + seed + rest``. A column is a run, so that one call gives 2,000 intervals.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import cvstats

RUNS = 2_000
BOTH = ("point", "repetition")
DESIGNS = {
    "50 x 10": ((50, 10), (1.0, 0.3, 1.0)),
    "50 x 10, no effect of seeds": ((50, 10), (1.0, 0.0, 1.0)),
    "50 x 10, the rest alone": ((50, 10), (0.0, 0.0, 1.0)),
    "200 x 5": ((200, 5), (1.0, 0.3, 1.0)),
    "200 x 3": ((200, 3), (1.0, 0.1, 1.0)),
    "50 x 2": ((50, 2), (1.0, 0.3, 1.0)),
    "30 x 30": ((30, 30), (1.0, 1.0, 1.0)),
}


def simulate(sizes, spreads, seed, runs=RUNS):
    """Losses of all pairs of labels, pairs by runs."""
    rng = np.random.default_rng(seed)
    first, second = (
        spread * rng.standard_normal((size, runs))
        for size, spread in zip(sizes, spreads[:2], strict=True)
    )
    rest = spreads[2] * rng.standard_normal((*sizes, runs))
    values = 1 + first[:, None] + second[None] + rest
    index = pd.MultiIndex.from_tuples(list(product(*map(range, sizes))), names=BOTH)
    return pd.DataFrame(values.reshape(-1, runs), index)


def coverage(table):
    return float(((table["lower"] <= 1) & (table["upper"] >= 1)).mean())


def report(capsys, name, **shares):
    with capsys.disabled():
        print(f"\n{name}:", ", ".join(f"{key} {share:.3f}" for key, share in shares.items()))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS.values(), ids=list(DESIGNS))
def test_points_under_seeds(capsys, design):
    log = simulate(*design, seed=41)
    table = cvstats.clustered(log, by=BOTH)
    found = {
        "mean squares": coverage(table),
        "sums of clusters": coverage(cvstats.clustered(log, by=BOTH, correction="CR1")),
        "holdout": coverage(cvstats.holdout(log, interval="t")),
        "width": float((table["upper"] - table["lower"]).median()),
    }
    report(capsys, f"{design[0]}, spreads {design[1]}", **found)
    assert (0.93 if design[0][1] > 2 else 0.9) <= found["mean squares"] <= 0.98
    assert found["width"] < 2 * 1.96 * 1.6 * np.sqrt(
        sum(s**2 / n for s, n in zip(design[1], (*design[0], np.prod(design[0])), strict=True))
    )
    if design[1][1] == 0.3:
        assert found["holdout"] <= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_incomplete_logs_of_prompts_and_judges(capsys, share):
    """Each judge sees some of the prompts: the sums of clusters."""
    log = simulate((60, 20), (1.0, 0.5, 1.0), seed=42)
    kept = np.random.default_rng(43).random(len(log)) < share
    log = log[kept]
    numbered = log.assign(point=np.arange(len(log))).set_index("point", append=True)
    by_prompt = numbered.rename_axis(["source", "repetition", "point"])
    found = {
        "two ways": coverage(cvstats.clustered(log, by=BOTH)),
        "prompts": coverage(cvstats.clustered(by_prompt)),
    }
    report(capsys, f"60 prompts, 20 judges, {share:.0%} of the pairs", **found)
    assert 0.93 <= found["two ways"] <= 0.98
    assert found["prompts"] <= 0.9


@pytest.mark.slow
def test_two_models_under_the_same_seeds(capsys):
    """Equal models whose seeds differ: how often the comparison finds a difference at 5%."""
    one, two = (simulate((50, 10), (0.5, 0.3, 1.0), seed) for seed in (44, 45))
    given = {"method": "clustered", "options": {"by": BOTH}}
    table = cvstats.compare(one, two, adjust=None, **given)
    usual = cvstats.compare(one, two, adjust=None)
    assert usual.attrs["interval_method"] == "holdout"
    found = {
        name: float((part["p_value"] <= 0.05).mean())
        for name, part in {"two_ways": table, "points": usual}.items()
    }
    report(capsys, "two equal models under 10 seeds", **found)
    assert found["two_ways"] <= 0.065
    assert found["points"] >= 0.10
