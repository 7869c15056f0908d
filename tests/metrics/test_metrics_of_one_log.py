"""A metric has the same results alone and as one of several, for numbers and for labels."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import cvstats

N = 300
RNG = np.random.default_rng(3)
INDEX = pd.MultiIndex.from_arrays([np.arange(N) % 5, range(N)], names=["fold", "point"])


def of_classes():
    score = 1 / (1 + np.exp(-2 * RNG.normal(size=N)))
    truth = (RNG.random(N) < score).astype(int)
    return pd.DataFrame({"y": truth, "m1": score.clip(0.01, 0.99), "m2": (score**2).clip(1e-3)},
                        INDEX)  # fmt: skip


def of_numbers():
    truth = 5 * RNG.standard_t(2, N)
    return pd.DataFrame({"y": truth, "m1": 0.8 * truth + RNG.standard_t(2, N),
                         "m2": 0.7 * truth + RNG.standard_t(2, N)}, INDEX)  # fmt: skip


CASES = {
    "classes": (of_classes(), ["auc", "calibration_slope", "average_precision", "log_loss"]),
    "numbers": (of_numbers(), ["rmse", "r2", "pearson", "absolute_error"]),
}


@cache
def lost(kind, loss):
    """The log of one metric, or of all."""
    frame, metrics = CASES[kind]
    return cvstats.losses(frame, "y", ["m1", "m2"], loss or metrics)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("name", ["interval", "compare"])
@pytest.mark.parametrize("road", ["memory", "moments"])
def test_alone_and_in_a_list(kind, name, road):
    log = lost(kind, None)
    if road == "moments":
        asked = {"by": ["metric", "fold"], "pairs": True}
        log = sum(cvstats.Moments.of_log(log.iloc[at::2], **asked) for at in range(2))
    options = {"adjust": None} if name == "compare" else {}
    table = getattr(cvstats, name)(log, by="metric", **options)
    for metric in CASES[kind][1]:
        alone = lost(kind, metric)
        if road == "moments":
            alone = cvstats.Moments.of_log(alone, pairs=True)
        wanted = getattr(cvstats, name)(alone, **options)
        found = table.xs(metric, level="metric")
        assert found["caution"].tolist() == wanted["caution"].tolist(), metric
        numbers = [column for column in wanted if wanted[column].dtype.kind == "f"]
        np.testing.assert_allclose(found[numbers], wanted[numbers], rtol=1e-9, err_msg=metric)
