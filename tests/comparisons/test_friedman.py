"""Many models on many data sets: Friedman, Iman-Davenport and Nemenyi."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import multi_index, only_row
from scipy import stats

import cvstats
from cvstats.errors import LogError

RNG = np.random.default_rng(47)

# Table 6 of Demsar (2006): areas under the curve of four variants of C4.5 on fourteen data sets.
# His printed mean ranks tell apart the two values of the data set "voting" that he prints alike.
DEMSAR = 1 - pd.DataFrame(
    [[0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
     [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
     [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
     [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
     [0.972, 0.981, 0.97501, 0.975], [0.957, 0.978, 0.946, 0.970]],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
).rename_axis("dataset")  # fmt: skip


def test_the_example_of_demsar():
    """As printed: ranks, chi-squared 9.28, F 3.69, critical differences 1.25 and 1.12."""
    table = DEMSAR.cvci.friedman(by="dataset")
    assert table.attrs["by"] == "dataset"
    np.testing.assert_allclose(table["mean_rank"], [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    n, k = DEMSAR.shape
    counts = [np.unique(row, return_counts=True)[1] for row in DEMSAR.to_numpy()]
    ties = sum((t**3 - t).sum() for t in counts)
    plain = table["statistic"].iloc[0] * (1 - ties / (n * k * (k**2 - 1)))  # he corrects for none
    assert plain == pytest.approx(9.28, abs=5e-3)
    assert (n - 1) * plain / (n * (k - 1) - plain) == pytest.approx(3.69, abs=5e-3)
    chi2 = table["statistic"].iloc[0]
    found = only_row(DEMSAR.cvci.friedman(by="dataset", test="f")[:1])
    assert found["statistic"] == pytest.approx((n - 1) * chi2 / (n * (k - 1) - chi2), rel=1e-12)
    assert found["p_value"] == pytest.approx(
        stats.f.sf(found["statistic"], k - 1, (k - 1) * (n - 1)), rel=1e-12
    )
    for alpha, distance, found in ((0.05, 1.25, []), (0.10, 1.12, ["C4.5+m", "C4.5+m+cf"])):
        pairs = DEMSAR.cvci.nemenyi(by="dataset", alpha=alpha)
        np.testing.assert_allclose(pairs.attrs["critical_difference"], distance, atol=5e-3)
        far = pairs["rank_difference"].abs() > pairs.attrs["critical_difference"]
        assert list(pairs.index[far]) == [("C4.5", name) for name in found]
        assert (far == (pairs["p_value"] < alpha)).all()


def test_data_sets_that_rank_alike():
    """Two data sets agree on the order of three models with probability 1/6."""
    frame = pd.DataFrame([[1.0, 2, 3], [4, 5, 6]]).rename_axis("source")
    found = only_row(frame.cvci.friedman(test="f").iloc[:1])
    assert np.isinf(found["statistic"])
    assert found["p_value"] == pytest.approx(1 / 6, rel=1e-12)
    assert found["caution"] == "few data sets"
    assert (frame.cvci.friedman()["caution"] == "").all()
    for rows, statistic, p in (([[1, 1, 2], [4, 4, 6]], np.inf, 1 / 3), ([[1, 1, 1]] * 2, 0, 1)):
        tied = pd.DataFrame(rows, dtype=float).rename_axis("source").cvci.friedman(test="f")
        assert (tied["statistic"] == statistic).all()
        assert tied["p_value"].to_numpy() == pytest.approx(p, rel=1e-12)
    five = pd.DataFrame(RNG.normal(size=(5, 3))).rename_axis("source")
    assert (five.cvci.friedman(test="f")["caution"] == "").all()


def test_points_are_averaged_within_their_data_set():
    index = multi_index(source=np.repeat(list("uvwxy"), [7, 9, 8, 4, 12]), point=range(40))
    frame = pd.DataFrame(RNG.normal(size=(40, 3)), index, list("abc"))
    means = frame.groupby(level="source").mean()
    pd.testing.assert_frame_equal(
        frame.sample(frac=1, random_state=0).cvci.friedman(), means.cvci.friedman()
    )
    pd.testing.assert_frame_equal(frame.cvci.nemenyi(), means.cvci.nemenyi())
    any_unit = means.mul([1, 10, 100, 1e3, 1e4], axis=0)
    pd.testing.assert_frame_equal(any_unit.cvci.friedman(), means.cvci.friedman())


def stacked() -> pd.DataFrame:
    """Logs of 3-fold cross-validation of five data sets, each of which numbers its own points."""
    logs = {}
    for name, n in zip("uvwxy", (20, 31, 15, 40, 26), strict=True):
        index = multi_index(fold=np.arange(n) % 3, point=np.arange(n))
        logs[name] = pd.DataFrame(
            RNG.normal(size=(n, 3)), index, pd.Index(list("abc"), name="model")
        )
    return pd.concat(logs, names=["dataset"])


@pytest.mark.parametrize("method", ["friedman", "nemenyi"])
def test_each_data_set_may_be_a_log_of_its_own(method):
    """As for interval, compare and summary; the advice was to pass by=, which was passed."""
    frame = stacked()
    means = frame.groupby(level="dataset").mean()
    expected = getattr(means.cvci, method)(by="dataset")
    pd.testing.assert_frame_equal(getattr(frame.cvci, method)(by="dataset"), expected)
    moments = cvstats.Moments.of_log(frame, by=("dataset", "fold"))
    pd.testing.assert_frame_equal(getattr(moments, method)(by="dataset"), expected)
    array = xr.DataArray(
        means, dims=("dataset", "model"), coords={"model": list("abc")}
    ).expand_dims(point=4)
    for log in (array, array.to_dataset("model")):
        found = getattr(log.cvci, method)(by="dataset")
        np.testing.assert_allclose(
            found["p_value"].to_numpy().ravel(), expected["p_value"], rtol=1e-12
        )
    refuses(r"no level 'data'.*Did you mean 'dataset'", getattr(frame.cvci, method), by="data")


@pytest.mark.parametrize("method", ["friedman", "nemenyi"])
def test_folds_and_repetitions_are_not_independent_data_sets(method):
    log = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(log, prediction=log.attrs["models"])
    for by in ("fold", "repetition"):
        found = getattr(losses.cvci, method)(by=by)
        assert set(found["caution"]) == {"dependence ignored"}
        assert found.attrs["cautions"]["dependence ignored"].endswith("Use log.cvci.compare().")
    assert set(getattr(stacked().cvci, method)(by="dataset")["caution"]) == {""}


def test_words():
    frame = pd.DataFrame(RNG.normal(size=(6, 3))).rename_axis("dataset")
    refuses(r"no level 'source'.*by='dataset'\. Available levels: 'dataset'", frame.cvci.friedman)
    with pytest.raises(LogError, match="2 models. Expected at least three; for two, use compare"):
        frame[[0, 1]].cvci.nemenyi(by="dataset")
    refuses("1 model. Expected", frame[0].cvci.friedman, by="dataset")
    refuses("one label of 'dataset'", frame.iloc[:1].cvci.friedman, by="dataset")
    refuses("Invalid test='t'", frame.cvci.friedman, by="dataset", test="t")
