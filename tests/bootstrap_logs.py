"""Small bootstrap logs of two models, one for each method that takes such logs."""

import numpy as np
import pandas as pd

import cvstats

LEVELS = ["repetition", "point", "count"]
MODELS = ["tree", "ridge"]
RATES = {"tree": 2.5, "ridge": 1.5}
METHODS = ("bootstrap_oob", "bootstrap_632", "case_bootstrap", "location_shifted", "two_stage")


def table(counts, seed, offset=0.0):
    """Losses of two models for each count, larger out of bag."""
    rng = np.random.default_rng(seed)
    loss = rng.gamma(2.0, size=(counts.size, 2)) * np.where(counts.ravel() > 0, 0.5, 1.0)[:, None]
    return loss + offset


def bootstrap(n=9, fits=60, seed=0):
    rng = np.random.default_rng(seed)
    counts = np.vstack([np.ones((1, n), int), rng.multinomial(n, np.full(n, 1 / n), fits)])
    codes = np.repeat(np.arange(fits + 1), n), np.tile(np.arange(n), fits + 1), counts.ravel()
    index = pd.MultiIndex.from_arrays(codes, names=LEVELS)
    return pd.DataFrame(table(counts, seed), index=index, columns=MODELS)


def case():
    log = bootstrap(seed=1)
    return log[log.index.get_level_values("count") > 0].drop(0, level="repetition")


def two_stage(n=9, outer=5, fits=20):
    rng = np.random.default_rng(2)
    parts = {}
    for sample in range(outer + 1):
        drawn = rng.multinomial(n, np.full(n, 1 / n)) if sample else np.ones(n, int)
        counts = np.vstack([drawn, rng.multinomial(n, drawn / n, fits)])[:, drawn > 0]
        points = np.flatnonzero(drawn)
        codes = np.repeat(np.arange(fits + 1), len(points)), np.tile(points, fits + 1)
        index = pd.MultiIndex.from_arrays([*codes, counts.ravel()], names=LEVELS)
        parts[sample] = pd.DataFrame(table(counts, sample), index=index, columns=MODELS)
    return pd.concat(parts, names=["sample"])


LOGS = {
    "bootstrap_oob": bootstrap,
    "bootstrap_632": bootstrap,
    "case_bootstrap": case,
    "location_shifted": bootstrap,
    "two_stage": two_stage,
}
OPTIONS = {
    "bootstrap_632": {"no_information": RATES},
    "location_shifted": {"no_information": RATES},
    "two_stage": {"no_information": {m: list(np.linspace(1, 3, 6)) for m in MODELS}},
}


def answer(method, log, **more):
    return getattr(cvstats, method)(log, **{**OPTIONS.get(method, {}), **more})
