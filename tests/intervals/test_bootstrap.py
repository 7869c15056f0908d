"""Intervals from bootstrap samples: R, the oracle, and what must hold whatever the losses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rows import only_row

import cvstats
from cvstats.intervals.bootstrap import correct_errors

R = json.loads((Path(__file__).parents[1] / "reference" / "r_bootstrap.json").read_text("utf-8"))
NAMES = ["sample", "repetition", "point", "count"]
METHODS = ("bootstrap_oob", "bootstrap_632", "case_bootstrap", "location_shifted", "two_stage")


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
    few = [drawn(fits=40, seed=s, models=20).cvci for s in range(6)]
    many = drawn(fits=2000, models=20).cvci.bootstrap_oob()["se"] ** 2
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
    once = drawn(fits=6, n=8, seed=1)[0]  # each point is out of bag, some of them once
    assert "never out of bag" not in only_row(once.cvci.bootstrap_oob())["caution"]
    for taken in (log, once):
        caution = only_row(taken.cvci.location_shifted(correction="632"))["caution"]
        assert ("never out of bag" in caution) == (taken is log)
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
