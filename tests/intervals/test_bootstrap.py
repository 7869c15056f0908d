"""Intervals from bootstrap samples: R, the oracle, and what must hold whatever the losses."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle_bootstrap as slow
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rows import only_row
from strategies import close, losses

import cvstats
from cvstats.intervals.bootstrap import correct_errors, estimate_out_of_bag
from cvstats.log.bootstrap import BootstrapCounts

R = json.loads((Path(__file__).parents[1] / "reference" / "r_bootstrap.json").read_text("utf-8"))
NAMES = ["sample", "repetition", "point", "count"]
METHODS = ("bootstrap_oob", "bootstrap_632", "case_bootstrap", "location_shifted", "two_stage")
ALPHAS = st.sampled_from([0.05, 0.1, 0.32, 0.001])


# --- logs -----------------------------------------------------------------------------------------


def r_log(name):
    """A log of the reference file: fits with their points (all of them, if not listed)."""
    rows = []
    for fit in R["logs"][name]:
        points = fit.get("point", range(len(fit["loss"])))
        key = fit.get("sample", 0), fit["repetition"]
        rows += [
            (*key, point, int(count), loss)
            for point, count, loss in zip(points, fit["count"], fit["loss"], strict=True)
        ]
    frame = pd.DataFrame(rows, columns=[*NAMES, "loss"])
    levels = NAMES if name.startswith("two_stage") else NAMES[1:]
    return frame.set_index(levels)["loss"]


@st.composite
def bootstraps(draw, kind="bootstrap", points=(3, 6), samples=(2, 12)):
    """Evaluations of bootstrap fits with losses of any kind, for the oracle."""
    n, fits = draw(st.integers(*points)), draw(st.integers(*samples))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = np.vstack([np.ones((1, n), int), rng.multinomial(n, np.full(n, 1 / n), fits)])
    found = losses_of(draw, table, 0, kind)
    if kind == "two_stage":
        for sample in range(1, draw(st.integers(3, 5))):
            drawn = rng.multinomial(n, np.full(n, 1 / n))
            inner = rng.multinomial(n, drawn / n, fits)
            found += losses_of(draw, np.vstack([drawn, inner]), sample, kind)
    return found


def losses_of(draw, table, sample, kind):
    """Rows of one data set: a table of counts, fit by point."""
    rows = []
    for repetition, counts in enumerate(table):
        for point, count in enumerate(counts):
            there = count > 0 and repetition > 0 if kind == "case" else table[0, point] > 0
            if there:
                rows.append((repetition, point, int(count), sample))
    values = draw(losses(len(rows)))
    return [slow.Loss(Fraction(v), *row) for v, row in zip(values, rows, strict=True)]


def series(rows, seed=None, labels=lambda point: point):
    """The rows as a log, shuffled."""
    frame = pd.DataFrame(
        [
            (row.sample, row.repetition, labels(row.point), row.count, float(row.loss))
            for row in rows
        ],
        columns=[*NAMES, "loss"],
    )
    log = frame.set_index(NAMES if frame["sample"].any() else NAMES[1:])["loss"]
    return log if seed is None else log.sample(frac=1, random_state=seed)


def out_enough(rows, least=2):
    """Whether points are out of bag in every data set."""
    for sample in {row.sample for row in rows}:
        out = {r.point for r in rows if r.sample == sample and r.repetition > 0 and r.count == 0}
        if len(out) < least:
            return False
    return True


# --- R --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_r(method, capsys):
    worst = {}
    for case in R["cases"]:
        if case["method"] != method:
            continue
        log = r_log(case["log"]).sample(frac=1, random_state=1)
        ours = only_row(getattr(cvstats, method)(log, alpha=case["alpha"], **case["kwargs"]))
        expected = case["expected"]
        width = expected["upper"] - expected["lower"]
        kind = "case" if "case offset" in case["log"] else "others"
        gap = max(abs(ours[name] - value) / width for name, value in expected.items())
        worst[kind] = max(gap, worst.get(kind, 0.0))
    with capsys.disabled():
        print(f"\n{method}: worst deviation from R, in widths of the interval: {worst}")
    assert worst["others"] < 1e-12
    assert worst.get("case", 0.0) < 1e-7  # losses of a million: R printed 15 digits


# --- the oracle -----------------------------------------------------------------------------------


def same(ours, exact, rows):
    """Whether a result agrees with the oracle's."""
    assert close(only_row(ours)["estimate"], exact.estimate, rows)
    for name in ("lower", "upper", "se"):
        wide = max(1.0, abs(getattr(exact, name)) / max(slow_spread(rows), 1e-300))
        assert close(only_row(ours)[name], getattr(exact, name), rows, tolerance=1e-11 * wide), name


def slow_spread(rows):
    values = [float(row.loss) for row in rows]
    return max(values) - min(values)


@given(rows=bootstraps(), alpha=ALPHAS, removed=st.booleans())
def test_bootstrap_oob_is_the_oracle(rows, alpha, removed):
    assume(out_enough(rows))
    exact = slow.bootstrap_oob(rows, alpha, removed)
    kept = "removed" if removed else "kept"
    ours = cvstats.bootstrap_oob(series(rows, 0), alpha=alpha, monte_carlo=kept)
    assume(not removed or exact.se > 1e-6 * slow_spread(rows))  # near zero the floor takes over
    same(ours, exact, rows)
    assert only_row(ours)["se_monte_carlo"] == pytest.approx(
        math.sqrt(exact.extra["noise"]), rel=1e-9
    )


@given(rows=bootstraps(), alpha=ALPHAS, gamma=st.sampled_from([None, -3, 0, 0.5, 2, 1e5]))
def test_bootstrap_632_is_the_oracle(rows, alpha, gamma):
    assume(out_enough(rows))
    positive = [row._replace(loss=abs(row.loss)) for row in rows]
    chance = None if gamma is None else Fraction(gamma)
    exact = slow.bootstrap_632(positive, alpha, chance)
    ours = cvstats.bootstrap_632(
        series(positive, 0), plus=gamma is not None, no_information=gamma, alpha=alpha
    )
    assume(exact.estimate >= 0)
    same(ours, exact, positive)
    assert close(only_row(ours)["apparent"], exact.extra["apparent"], rows)
    assert close(only_row(ours)["out_of_bag"], exact.extra["out_of_bag"], rows)


@given(rows=bootstraps("case"), alpha=ALPHAS, corrected=st.booleans(), data=st.data())
def test_case_bootstrap_is_the_oracle(rows, alpha, corrected, data):
    assume(any(row.count > 1 for row in rows) and len({row.point for row in rows}) > 1)
    without = None
    if corrected:
        without = data.draw(losses(1 + max(row.point for row in rows)))
    exact = slow.case_bootstrap(
        rows, alpha, None if without is None else [Fraction(v) for v in without]
    )
    ours = cvstats.case_bootstrap(series(rows, 0), leave_one_out=without, alpha=alpha)
    unit = rows + [slow.Loss(Fraction(v), 0, 0, 0) for v in without or ()]
    same(ours, exact, unit)


CORRECTIONS = st.sampled_from(["632+", "632", "harrell"])


@given(
    rows=bootstraps(), alpha=ALPHAS, correction=CORRECTIONS, gamma=st.sampled_from([-3, 0.5, 99])
)
def test_location_shifted_is_the_oracle(rows, alpha, correction, gamma):
    assume(out_enough(rows))
    exact = slow.location_shifted(rows, alpha, Fraction(gamma), correction)
    log = series(rows, 0)
    ours = cvstats.location_shifted(log, correction=correction, no_information=gamma, alpha=alpha)
    same(ours, exact, [*rows, slow.Loss(Fraction(gamma), 0, 0, 0)])


@given(rows=bootstraps("two_stage"), alpha=ALPHAS, correction=CORRECTIONS, data=st.data())
def test_two_stage_is_the_oracle(rows, alpha, correction, data):
    assume(out_enough(rows, 1))
    samples = sorted({row.sample for row in rows})
    gamma = data.draw(losses(len(samples)))
    exact = slow.two_stage(rows, alpha, [Fraction(g) for g in gamma], correction)
    log = series(rows, 0)
    ours = cvstats.two_stage(log, correction=correction, no_information=gamma, alpha=alpha)
    same(ours, exact, rows + [slow.Loss(Fraction(g), 0, 0, 0) for g in gamma])


# --- what the formulas say ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4])
def test_the_standard_error_is_the_directional_derivative(n):
    # All n^n samples, equally likely, and losses that depend on the sample in any way: the
    # D_i of Efron and Tibshirani are then 1/n times the derivatives of Err1 towards point i.
    rng = np.random.default_rng(n)
    samples = slow.every_sample(range(n))
    table = {tuple(sorted(s)): rng.integers(0, 1000, n).tolist() for s in samples}
    fitted = [
        slow.Fit(
            {i: Fraction(table[tuple(sorted(s))][i]) for i in range(n)},
            {i: s.count(i) for i in range(n)},
        )
        for s in samples
    ]
    slopes = [slow.directional_derivative(i, fitted) for i in range(n)]
    variance = sum(slope**2 for slope in slopes) / n**2
    counts = np.array([[fit.count[i] for i in range(n)] for fit in fitted])
    values = np.array([[float(fit.loss[i]) for i in range(n)] for fit in fitted])
    for offset in (0.0, 1e6):  # with every sample the level of the losses drops out
        found = estimate_out_of_bag(BootstrapCounts(counts), [values + offset], monte_carlo="kept")
        assert found.variance[0] == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize(
    ("apparent", "error", "gamma", "estimate", "clipped"),
    [
        (0.1, 0.3, 0.5, 0.1 + 0.632 / (1 - 0.368 * 0.5) * 0.2, False),
        (0.1, 0.55, 0.5, 0.5, True),  # Err1 above gamma: the rate is 1, and Err1 is gamma
        (0.45, 0.9, 0.5, 0.5, True),
        (0.1, 0.5, 0.5, 0.5, False),  # a rate of 1 is within the range
        (0.3, 0.3, 0.5, 0.3, False),
        (0.3, 0.2, 0.5, 0.3 - 0.632 * 0.1, True),  # no overfitting: the rate is 0
        (0.5, 0.6, 0.5, 0.5, True),  # gamma is the apparent error: nothing to divide by
        (0.5, 0.6, 0.4, 0.5 - 0.632 * 0.1, True),
    ],
)
def test_the_rate_is_clipped(apparent, error, gamma, estimate, clipped):
    found = correct_errors(*(np.array([x]) for x in (apparent, error, gamma)))
    assert found.estimate[0] == pytest.approx(estimate)
    assert found.clipped[0] == clipped
    assert 0 <= found.overfitting[0] <= 1
    assert 0.632 <= found.weight[0] <= 1


def drawn(n=30, fits=400, seed=0, models=1, offset=0.0):
    """A bootstrap log of means: squared losses of normal outcomes, a column for each model."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, models))
    counts = np.vstack([np.ones((1, n), int), rng.multinomial(n, np.full(n, 1 / n), fits)])
    loss = (y - (counts @ y / n)[:, None]) ** 2 + offset
    index = pd.MultiIndex.from_arrays(
        [np.repeat(np.arange(fits + 1), n), np.tile(np.arange(n), fits + 1), counts.ravel()],
        names=NAMES[1:],
    )
    return pd.DataFrame(loss.reshape(-1, models), index=index)


def case_of(log):
    """The rows of a bootstrap log that are in bag, as a log of case cross-validation."""
    return log[log.index.get_level_values("count") > 0].drop(0, level="repetition")


def test_the_printed_standard_error_grows_with_the_level_of_the_losses():
    low, high = drawn()[0], drawn(offset=10.0)[0]
    assert (
        only_row(high.cvci.bootstrap_oob())["se"] > 1.5 * only_row(low.cvci.bootstrap_oob())["se"]
    )
    assert "few bootstrap samples" in only_row(high.cvci.bootstrap_oob())["caution"]
    without = [only_row(x.cvci.bootstrap_oob(monte_carlo="removed"))["se"] for x in (low, high)]
    assert without[0] == pytest.approx(without[1], rel=1e-9)


def test_the_noise_of_few_samples_is_what_more_of_them_take_away():
    few = [drawn(fits=40, seed=s, models=20).cvci for s in range(10)]
    many = [drawn(fits=4000, seed=s, models=20).cvci.bootstrap_oob()["se"] ** 2 for s in range(2)]
    kept = [x.bootstrap_oob()["se"] ** 2 for x in few]
    removed = [x.bootstrap_oob(monte_carlo="removed")["se"] ** 2 for x in few]
    assert np.mean(kept) > 1.8 * np.mean(many)
    assert np.mean(removed) == pytest.approx(np.mean(many), rel=0.2)


def test_points_that_are_never_out_of_bag_do_not_count():
    log = drawn(fits=3, n=8, seed=3)[0]
    out = log.drop(0, level="repetition").reset_index("count").query("count == 0")
    never = 8 - out.index.get_level_values("point").nunique()
    assert 0 < never < 7
    result = only_row(log.cvci.bootstrap_oob())
    expected = out.groupby("point")[0].mean().mean()
    assert result["estimate"] == pytest.approx(expected, rel=1e-12)
    assert "never out of bag" in result["caution"]
    assert "never out of bag" in only_row(log.cvci.location_shifted(correction="632"))["caution"]
    assert (
        "never out of bag"
        not in only_row(log.cvci.location_shifted(correction="harrell"))["caution"]
    )


def test_a_case_bootstrap_has_nothing_out_of_bag():
    log = drawn(fits=4)[0].drop(0, level="repetition")
    count, sample = (log.index.get_level_values(name) for name in ("count", "repetition"))
    only_one = log[(count > 0) | (sample == 2)]
    with pytest.raises(cvstats.LogError, match=r"out-of-bag evaluations \(count 0\)"):
        only_one.cvci.case_bootstrap()


def test_few_replicates_for_quantiles_are_told():
    log = case_of(drawn(fits=199))[0]
    assert "few bootstrap samples" in only_row(log.cvci.case_bootstrap())["caution"]
    for result in (
        log.cvci.case_bootstrap(alpha=0.1),
        case_of(drawn(fits=200))[0].cvci.case_bootstrap(),
    ):
        assert "few bootstrap samples" not in only_row(result)["caution"]
