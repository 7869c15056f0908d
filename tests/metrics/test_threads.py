"""Models of a long log are computed by threads: the same numbers, and the error of the first."""

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats import LogError
from cvstats.loss_functions import metric_logs

MODELS = list("abcde")


def predictions(n=400):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(n) % 4, np.arange(n)], names=["fold", "point"])
    frame = pd.DataFrame(rng.uniform(0.05, 0.95, (n, len(MODELS))), index, MODELS)
    return frame.assign(y=rng.integers(0, 2, n))


@pytest.mark.parametrize("loss", ["auc", "rmse", "kendall", "calibration_slope"])
def test_threads_change_no_bit(loss, monkeypatch):
    table = predictions()
    one = cvstats.losses(table, truth="y", prediction=MODELS, loss=loss)
    used = []
    monkeypatch.setattr(metric_logs, "BLOCK", 1)
    monkeypatch.setenv("CVSTATS_THREADS", "3")
    ordered_map = metric_logs.ordered_map
    monkeypatch.setattr(
        metric_logs, "ordered_map", lambda work, n: used.append(n) or ordered_map(work, n)
    )
    pd.testing.assert_frame_equal(
        one, cvstats.losses(table, truth="y", prediction=MODELS, loss=loss)
    )
    assert used == [len(MODELS)]


def test_the_first_model_is_named_and_functions_of_users_stay_in_one_thread(monkeypatch):
    monkeypatch.setattr(metric_logs, "BLOCK", 1)
    monkeypatch.setenv("CVSTATS_THREADS", "3")
    table = predictions()
    table[["b", "d"]] = 0.5
    for _ in range(20):
        with pytest.raises(LogError, match="'b'"):
            cvstats.losses(table, truth="y", prediction=MODELS, loss="pearson")
    monkeypatch.setattr(metric_logs, "ordered_map", None)
    square = {"base": lambda truth, prediction: (truth - prediction) ** 2}
    cvstats.losses(table, truth="y", prediction=["a"], loss="skill", reference="c", **square)
