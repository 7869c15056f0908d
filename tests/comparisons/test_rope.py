"""The region of practical equivalence: a posterior of the difference."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from paired_logs import equivalent_models
from rows import multi_index, only_row
from scipy import stats

FRAME = equivalent_models()
SHARES = ["p_better", "p_equivalent", "p_worse"]


def test_signs_and_sides():
    frame = FRAME[["a", "b"]].assign(b=FRAME["b"] + 3)
    ours = frame.cvci.rope(margin=0.1).iloc[0]
    assert ours["p_better"] > 0.999  # the model a has the smaller error
    swapped = frame[["b", "a"]].cvci.rope(margin=0.1).iloc[0]
    assert swapped["p_worse"] == pytest.approx(ours["p_better"])
    tail = frame.cvci.rope(margin=(-2.0, 1.0)).iloc[0]
    assert 0 < tail["p_worse"] < 1e-4
    open_side = frame.cvci.rope(margin=(-2.0, None)).iloc[0]
    assert open_side["p_worse"] == 0
    assert frame.cvci.rope(margin=0)["p_equivalent"].item() == 0
    assert open_side["p_equivalent"] == pytest.approx(tail["p_equivalent"] + tail["p_worse"])


def test_rho_and_train_size():
    k = 5
    table = FRAME.cvci.rope(margin=0.2)
    same = FRAME.cvci.rope(margin=0.2, rho=1 / k)
    np.testing.assert_allclose(same[SHARES], table[SHARES], rtol=1e-12)
    free = FRAME.cvci.rope(margin=0.2, rho=0)
    means = FRAME.groupby(level="fold").mean()
    gap = means["a"] - means["b"]
    law = stats.t(k - 1, gap.mean(), gap.sem())
    assert free["p_better"].iloc[0] == pytest.approx(law.cdf(-0.2))
    rows = FRAME.droplevel("fold").reset_index("repetition", drop=True)
    splits = pd.concat({r: rows.sample(12, random_state=r) for r in range(6)}, names=["repetition"])
    refuses("the number of points each model was trained on", splits.cvci.rope, margin=0.2)
    ours = splits.cvci.rope(margin=0.2, train_size=48)
    assert ours.attrs["rho"] == pytest.approx(0.2)
    for rho in (1, -0.1, 2):
        refuses("from 0 to below 1", FRAME.cvci.rope, margin=1, rho=rho)
    refuses("rope needs at least two random splits", FRAME.xs(0, level="fold").cvci.rope, margin=1)


def test_posterior_without_variance():
    a = np.arange(12.0)
    frame = pd.DataFrame({"a": a, "b": a + 1}, multi_index(fold=np.arange(12) % 3, point=range(12)))
    for margin, wanted in ((0.5, [1, 0, 0]), (1, [0, 1, 0]), (2, [0, 1, 0]), ((-3, -2), [0, 0, 1])):
        table = frame.cvci.rope(margin=margin)
        assert list(table[SHARES].iloc[0]) == wanted
        assert table["caution"].tolist() == ["zero variance"]
        assert "variance is zero" in table.attrs["cautions"]["zero variance"]


def test_scores_say_as_much_as_the_means_of_folds():
    frame = equivalent_models(repetitions=2)
    expected = frame.cvci.rope(margin=0.1)
    scores = frame.groupby(level=["repetition", "fold"]).mean()
    scores.attrs["holds"] = "scores"
    pd.testing.assert_frame_equal(scores.cvci.rope(margin=0.1), expected)
    splits = scores.droplevel("fold").groupby("repetition").head(1)
    splits.attrs["holds"] = "scores"
    refuses("points behind each score are unknown", splits.cvci.rope, margin=0.1)
    splits.attrs |= {"n_test": 10, "n_train": 40}
    assert only_row(splits[["a", "b"]].cvci.rope(margin=0.1))["rho"] == pytest.approx(0.2)
