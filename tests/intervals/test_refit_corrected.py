"""Differences of refitted models: containers, refusals, and coverage where wald fails."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from rows import multi_index
from scipy import stats

import cvstats
from cvstats.intervals._stability import Partitions


def repeated_log(n=40, k=4, repetitions=3, seed=0, models="ab"):
    """Losses of models in repeated cross-validation, rows in random order."""
    rng = np.random.default_rng(seed)
    folds = np.concatenate([rng.permutation(n) % k for _ in range(repetitions)])
    index = multi_index(
        repetition=np.repeat(np.arange(repetitions), n),
        fold=folds,
        point=np.tile(np.arange(n), repetitions),
    )
    values = rng.standard_normal((len(index), len(models))) ** 2 + 1.0
    return pd.DataFrame(values, index, list(models)).sample(frac=1, random_state=seed)


def test_one_partition():
    log = repeated_log(n=60, repetitions=1)
    wald = log.cvci.compare(method="wald").iloc[0]
    near = log.assign(b=log["a"] + 0.01 * log["b"])
    wider = near.cvci.compare(method="refit_corrected").iloc[0]
    narrow = near.cvci.compare(method="wald").iloc[0]
    d = (near["a"] - near["b"]).groupby("fold").agg(["mean", "size"])
    factor = 1 / len(d) + (d["size"] / (60 - d["size"])).mean()
    df = min(len(d) - 1, 9)
    of_folds = stats.t.isf(0.025, df) / stats.norm.isf(0.025) * np.sqrt(factor * d["mean"].var())
    expected_se = max(np.sqrt(2) * narrow["se"], of_folds)
    assert wider["se"] == pytest.approx(expected_se, rel=1e-12)
    assert wider["upper"] - wider["difference"] == pytest.approx(
        stats.norm.isf(0.025) * expected_se, rel=1e-12
    )
    apart = (log - log.mean()).assign(b=lambda log: 30 * log["b"])
    assert apart.cvci.compare(method="refit_corrected")["se"].iloc[0] == pytest.approx(
        apart.cvci.compare(method="wald")["se"].iloc[0]
    )
    assert wald["se"] > 0


def test_refusals():
    log = repeated_log()
    same = log[log.index.get_level_values("repetition") == 0]
    same = pd.concat([same, same.rename(index={0: 1}, level="repetition")])
    refuses("divide the points into the same folds", same.cvci.compare, method="refit_corrected")
    one = repeated_log(repetitions=1)
    with pytest.raises(
        cvstats.LogError, match=r"has one repetition.*compare\(method='refit_corrected'\)"
    ):
        one.cvci.difference().cvci.refit_corrected()
    refuses("one fold", log.droplevel("fold").cvci.compare, method="refit_corrected")
    refuses("random splits", log.iloc[5:].cvci.compare, method="refit_corrected")


def test_refusals_name_a_plan_that_helps():
    """The plan in the message makes a log with several partitions, unlike `k_fold`."""
    log = repeated_log()
    same = log[log.index.get_level_values("repetition") == 0]
    same = pd.concat([same, same.rename(index={0: 1}, level="repetition")])
    calls = (
        lambda: same.cvci.compare(method="refit_corrected"),
        lambda: repeated_log(repetitions=1).cvci.difference().cvci.refit_corrected(),
    )
    for call in calls:
        (name,) = re.findall(r"cvstats\.plans\.(\w+)", refusal(call))
        assert "repetition" in getattr(cvstats.plans, name)(rng=0).levels


def grouped_array(rng, repetitions=3, n_sources=40, k=5, runs=1):
    """Zero and the training mean of noise in folds of whole sources, and the true difference."""
    source = np.repeat(np.arange(n_sources), rng.integers(2, 16, n_sources))
    n = len(source)
    y = rng.standard_normal((n_sources, runs))[source] + rng.standard_normal((n, runs))
    folds = np.array([(rng.permutation(n_sources) % k)[source] for _ in range(repetitions)])
    means = [np.array([y[fold != each].mean(axis=0) for each in range(k)])[fold] for fold in folds]
    log = xr.DataArray(
        [[y**2] * repetitions, [(y - mean) ** 2 for mean in means]],
        {"model": ["zero", "mean"], "repetition": range(repetitions), "point": range(n),
         "fold": (("repetition", "point"), folds), "source": ("point", source)},
        ("model", "repetition", "point", "run"),
    )  # fmt: skip
    return log, -np.mean(np.square(means), axis=(0, 1))


def grouped_log(rng, repetitions=3, **options):
    """A single run, as a frame."""
    array, _ = grouped_array(rng, repetitions, **options)
    frame = array.isel(run=0).to_dataset("model").to_dataframe().reset_index()
    return frame.set_index(["repetition", "fold", "source", "point"])


@pytest.mark.parametrize("repetitions", [1, 3])
def test_what_refits_add_to_the_variance_over_sources(repetitions):
    log = grouped_log(np.random.default_rng(13), repetitions)
    base = log.cvci.compare(method="clustered").iloc[0]
    found = log.cvci.compare(method="refit_corrected")
    row, d = found.iloc[0], log["zero"] - log["mean"]
    if repetitions == 1:
        folds = d.groupby("fold").agg(["mean", "size"])
        factor = 1 / len(folds) + (folds["size"] / (len(d) - folds["size"])).mean()
        ratio = stats.t.isf(0.025, 4) / stats.norm.isf(0.025)
        se = max(np.sqrt(2) * base["se"], ratio * np.sqrt(factor * folds["mean"].var()))
    else:
        sums = d.groupby(["repetition", "source", "fold"]).sum().reset_index("fold")
        residual = sums[0] - sums[0].groupby("source").transform("mean")
        squares, n = (residual**2).sum(), len(d) / repetitions
        s = squares / (repetitions - 1) / n**2
        of_folds = residual.groupby([sums.index.get_level_values("repetition"), sums["fold"]]).sum()
        c = ((of_folds**2).sum() - squares) * repetitions / (repetitions - 1) ** 2 / n**2
        sizes = d.groupby(["repetition", "fold"]).size() / n
        k = repetitions / (sizes**2).sum()
        added = k * np.clip(c + s * np.sqrt(2 / (repetitions * k)), 0, s)
        se = np.sqrt(base["se"] ** 2 + (1 - 1 / repetitions) * s + added)
    assert row["se"] == pytest.approx(se, rel=1e-12)
    assert row["upper"] - row["difference"] == pytest.approx(
        stats.t.isf(0.025, base["df"]) * se, rel=1e-12
    )
    assert row["df"] == base["df"]
    assert "sources ignored" not in row["caution"]
    assert found.attrs["n_clusters"] == 40


def test_every_comparison_of_repeated_folds_of_sources_uses_it():
    log = grouped_log(np.random.default_rng(15), n_sources=20)
    array = grouped_array(np.random.default_rng(15), n_sources=20)[0].isel(run=0)
    found = log.cvci.compare()
    for other in (array.cvci.compare(), array.chunk(point=50).cvci.compare()):
        assert other.attrs["interval_method"] == "refit_corrected"
        np.testing.assert_allclose(other["se"], found["se"], rtol=1e-12)
    kept = cvstats.Moments.of_log(log, pairs=True).compare()
    np.testing.assert_allclose(kept["se"], found["se"], rtol=1e-12)
    again = log.groupby(["repetition", "source"]).cumcount().rename("point")  # in each source
    anew = log.droplevel("point").set_index(again, append=True)
    moments = cvstats.Moments.of_log(anew, pairs=True)
    np.testing.assert_allclose(moments.compare(points="nested")["se"], found["se"], rtol=1e-12)
    assert moments.methods().loc["refit_corrected", "applies"]
    margin = log.cvci.equivalence(margin=0.1)
    np.testing.assert_allclose(margin["se"], found["se"], rtol=1e-12)
    best = log.cvci.best_set(rng=0)
    assert best.attrs["interval_method"] == "refit_corrected"
    assert best["statistic"].abs().to_numpy() == pytest.approx(abs(found["statistic"].iloc[0]))


def test_small_groups_of_repeated_folds_are_compared_by_one_method():
    """A few points may be in one fold in some repetition, or all apart in the first one."""
    rng = np.random.default_rng(0)
    rows = [
        (repetition, fold, point, point // 5)
        for repetition in range(4)
        for point, fold in enumerate(rng.permutation(40) % 5)
    ]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "fold", "point", "site"])
    log = pd.DataFrame(rng.normal(size=(160, 2)), index, ["a", "b"])
    counts = log.groupby(["site", "repetition"]).apply(lambda part: part.index.unique("fold").size)
    assert counts.min() < 5
    array = log.to_xarray().to_dataarray("model").stack(row=["repetition", "fold", "point", "site"])
    for table in (log.cvci.compare(by="site"), array.dropna("row").cvci.compare(by="site")):
        assert table.attrs["interval_method"] == "refit_corrected"
        assert np.isfinite(table["se"]).all()


def test_partitions_that_refine_each_other_are_not_equal():
    fine, coarse = np.arange(4), np.array([0, 0, 1, 1])
    repetition, point = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    for first, second in ((fine, coarse), (coarse, fine)):
        folds = np.concatenate([first, second + 4])
        folds = np.unique(folds, return_inverse=True)[1]
        assert not Partitions(repetition, folds, point).are_equal()
    folds = np.concatenate([coarse, 3 - coarse])
    assert Partitions(repetition, folds, point).are_equal()
