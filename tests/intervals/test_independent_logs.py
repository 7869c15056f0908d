"""Variance components from several independent logs, and the words for logs that are none."""

from fractions import Fraction

import numpy as np
import oracle
import oracle_sources as exactly
import pandas as pd
import pytest
from calls import refuses
from grouped_logs import log_of, random_rows
from rows import only_row

import cvstats
from cvstats.intervals.decompose import variance_of_one

PARTS = ("sigma2", "omega", "gamma", "theta", "part_sigma2", "part_omega", "part_gamma")
WEIGHTS = {"size": "pooled", "equal": "macro"}


def several(logs, levels, name="dataset"):
    """Logs of rows as one Series, shuffled, told apart by a level."""
    whole = pd.concat({d: log_of(rows, levels) for d, rows in enumerate(logs)}, names=[name])
    return whole.iloc[np.random.default_rng(1).permutation(len(whole))]


def numbered(rows):
    """Points with names that are unique in the log."""
    return [row._replace(point=f"{row.source}{row.point}") for row in rows]


def deviation(ours, exact):
    return float(abs(Fraction(float(ours)) - exact) / abs(exact))


@pytest.mark.parametrize("fold_weights", WEIGHTS)
@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 5, 4), (2, 2)])
@pytest.mark.parametrize("logs", [2, 5])
def test_components_of_folds(fold_weights, sizes, logs):
    parts = [numbered(random_rows(sizes, seed)) for seed in range(logs)]
    log = several(parts, levels=("fold", "point"))
    ours = only_row(cvstats.decompose(log, independent="dataset", fold_weights=fold_weights))
    exact = exactly.independent(parts, WEIGHTS[fold_weights])
    for name in PARTS:
        assert deviation(ours[name], exact[name]) < 1e-10, name
    total = ours["part_sigma2"] + ours["part_omega"] + ours["part_gamma"]
    assert total == pytest.approx(ours["theta"], rel=1e-12)
    single = [cvstats.decompose(log.xs(d, level="dataset"), fold_weights=fold_weights)
              for d in range(logs)]  # fmt: skip
    for name in ("sigma2_minus_omega", "omega_minus_gamma", "theta_5", "theta_a"):
        assert ours[name] == pytest.approx(
            np.mean([only_row(part)[name] for part in single]), rel=1e-13
        )
    assert (ours["n_logs"], ours["n_folds"], ours["n_points"]) == (logs, len(sizes), sum(sizes))


@pytest.mark.parametrize("repetitions", [(2, 2, 2), (2, 3, 1), (1, 1), (4, 2)])
def test_the_variance_of_one_repetition(repetitions):
    """The variance of the means of logs, plus what averaging took from that of repetitions."""
    rng = np.random.default_rng(5)
    means = [rng.normal(size=(r, 2)) for r in repetitions]
    expected = np.var([part.mean(axis=0) for part in means], axis=0, ddof=1)
    spare = sum(repetitions) - len(repetitions)
    if spare:
        squares = sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in means)
        expected += squares / spare * (1 - np.mean([1 / r for r in repetitions]))
    np.testing.assert_allclose(variance_of_one(means), expected, rtol=1e-12)


def test_repetitions_within_independent_logs():
    """theta is for one repetition: what they share, and what each has for itself."""
    rng = np.random.default_rng(3)
    shared, own, logs = 2.0, 0.5, 400
    rows = []
    for d in range(logs):
        level = shared * rng.standard_normal()
        for r in range(1 + d % 3):
            mean = level + own * rng.standard_normal()
            rows += [(d, r, f, p, mean) for f in range(2) for p in (2 * f, 2 * f + 1)]
    frame = pd.DataFrame(rows, columns=["dataset", "repetition", "fold", "point", "loss"])
    log = frame.set_index(["dataset", "repetition", "fold", "point"])["loss"]
    ours = only_row(cvstats.decompose(log, independent="dataset"))
    assert ours["theta"] == pytest.approx(shared**2 + own**2, rel=0.15)
    assert ours["gamma"] == pytest.approx(ours["theta"], rel=1e-9)
    assert ours["n_repetitions"] == pytest.approx(
        frame.groupby("dataset")["repetition"].nunique().mean()
    )


def source_logs(sizes, logs, names=True):
    rows = [random_rows(sizes, seed + 40) for seed in range(logs)]
    return rows, several(rows, levels=("source", "point"))


@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 5, 4)])
@pytest.mark.parametrize("logs", [2, 4])
def test_components_of_sources(sizes, logs):
    rows, log = source_logs(sizes, logs)
    exact = exactly.by_source([exactly.sources_of(part) for part in rows])
    table = cvstats.source_components(log)
    K = range(len(sizes))
    for k in K:
        for j in K:
            row = table.loc[(f"s{k}", f"s{j}")]
            assert deviation(row["covariance"], exact["covariance"][k][j]) < 1e-10
            if k == j:
                assert deviation(row["sigma2"], exact["sigma2"][k]) < 1e-10
                assert deviation(row["omega"], exact["omega"][k]) < 1e-10
                assert np.isnan(row["gamma"])
            else:
                assert row["gamma"] == row["covariance"]
                assert np.isnan(row["sigma2"])
    ours = only_row(cvstats.decompose(log, independent="dataset", fold_weights="equal"))
    for name in ("theta", "gamma", "part_sigma2", "part_omega", "part_gamma"):
        assert deviation(ours[name], exact[name]) < 1e-10, name
    assert ours["sigma2"] == pytest.approx(float(oracle.mean(exact["sigma2"])), rel=1e-12)
    assert ours["omega"] == pytest.approx(float(oracle.mean(exact["omega"])), rel=1e-12)
    pooled = only_row(cvstats.decompose(log, independent="dataset"))
    means = [oracle.mean(row.loss for row in part) for part in rows]
    assert deviation(pooled["theta"], exactly.half_differences(means)) < 1e-10
    parts = pooled["part_sigma2"] + pooled["part_omega"] + pooled["part_gamma"]
    assert parts == pytest.approx(pooled["theta"], rel=1e-12)


def test_components_of_sources_are_unbiased():
    """Sources of other sizes in the second log."""
    sizes = [(2, 3), (4, 2)]
    truth = exactly.Truth(sizes[0], [2, -3], [4, 6], [1, 2], [[0, "1/3"], ["1/3", 0]])
    n = sum(map(sum, sizes))
    Sigma = [[Fraction(0)] * n for _ in range(n)]
    centre, start = [], 0
    for part in sizes:
        block = oracle.fold_covariance(part, truth.sigma2, truth.omega, truth.gamma)
        for i, row in enumerate(block):
            Sigma[start + i][start : start + len(row)] = row
        centre += [m for m, size in zip(truth.mu, part, strict=True) for _ in range(size)]
        start += sum(part)

    def answer(losses, name, k):
        logs = [exactly.split(sizes[0], losses[:5]), exactly.split(sizes[1], losses[5:])]
        found = exactly.by_source(logs)[name]
        return found[k] if isinstance(found, list) else found

    for name, k, value in [
        ("sigma2", 0, truth.sigma2[0]), ("omega", 1, truth.omega[1]),
        ("gamma", None, truth.gamma[0][1]), ("part_gamma", None, truth.gamma[0][1] / 2),
    ]:  # fmt: skip
        A = oracle.quadratic_form(lambda e, name=name, k=k: answer(e, name, k), n)
        assert oracle.exact_expectation(A, Sigma, centre) == value, name


def test_repetitions_are_no_independent_logs():
    log = cvstats.losses(cvstats.datasets.load("diabetes"), prediction="ridge")
    with pytest.raises(cvstats.LogError) as caught:
        cvstats.decompose(log, independent="repetition")
    assert "split the same data again" in str(caught.value)
    assert "rename_axis(index={'repetition': 'dataset'})" in str(caught.value)
    for level in ("fold", "point", "source"):
        with pytest.raises(cvstats.LogError, match="parts of one experiment on one data set"):
            cvstats.decompose(log, independent=level)
    refuses("parts of one experiment", cvstats.source_components, log, independent="fold")


def test_one_log_is_not_several():
    log = several([numbered(random_rows((3, 3), 1))], levels=("fold", "point"))
    with pytest.raises(cvstats.LogError, match="level 'dataset' has one label, 0: a single log"):
        cvstats.decompose(log, independent="dataset")
    refuses("the log has no level 'study'", cvstats.decompose, log, independent="study")


@pytest.mark.parametrize("option", [{"rho": 0.1}, {"gamma": 1.0}, {"by": "fold"}])
def test_one_question_at_a_time(option):
    log = several([numbered(random_rows((3, 3), d)) for d in range(2)], levels=("fold", "point"))
    with pytest.raises(cvstats.LogError, match=f"independent and {next(iter(option))} were both"):
        cvstats.decompose(log, independent="dataset", **option)


def test_every_log_must_be_one():
    log = several([numbered(random_rows((3, 3), d)) for d in range(2)], levels=("fold", "point"))
    short = log.sort_index().drop((1, 1))
    with pytest.raises(
        cvstats.LogError, match="in each independent log; dataset=1: the log has one"
    ):
        cvstats.decompose(short, independent="dataset")
    refuses("one source out at a time; dataset=0: the log has no", cvstats.source_components, log)


def test_the_same_sources_in_every_log():
    _, log = source_logs((3, 4, 2), 3)
    log = log.sort_index()
    with pytest.raises(cvstats.LogError, match=r"dataset=1 has no source 's0'.*'source': 'fold'"):
        cvstats.source_components(log.drop((1, "s0")))
    renamed = log.drop((1, "s0")).rename_axis(index={"source": "fold"})
    index = renamed.index.to_frame(index=False)
    index["point"] = index["fold"] + index["point"].astype(str)
    as_folds = renamed.set_axis(pd.MultiIndex.from_frame(index))
    assert cvstats.decompose(as_folds, independent="dataset").attrs["n_logs"] == 3
    lone = log.drop([(2, "s2", 0)])
    refuses("source 's2' has one point in dataset 2", cvstats.source_components, lone)
    again = pd.concat({0: log, 1: log}, names=["repetition"])
    with pytest.raises(cvstats.LogError, match="leave-one-source-out logs have 2 repetitions"):
        cvstats.decompose(again, independent="dataset")
