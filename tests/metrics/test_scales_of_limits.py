"""Limits by Fieller, Fisher's z and logarithms: what `interval` gives ratios and correlations."""

import numpy as np
import pandas as pd
import pytest
from frontier import CASES, binary_frame

import cvstats

COLUMNS = ["lower", "upper"]


def make_frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    return pd.DataFrame(
        {
            "point": range(n), "y_true": truth, "m": truth + rng.normal(size=n) / 2,
            "ref": truth + rng.normal(size=n),
        }
    )  # fmt: skip


def test_a_ratio_of_errors_has_the_limits_of_fieller():
    a, b = (np.array(CASES["paired_data"]["inputs"][name]) for name in "ab")
    frame = pd.DataFrame({"point": range(len(a)), "y_true": 0.0, "m": a, "ref": b})
    ask = {"prediction": "m", "reference": "ref", "base": "absolute_error"}
    table = cvstats.interval(cvstats.losses(frame, loss="relative_error", **ask))
    stored = CASES["ratio_fieller"]["outputs"]
    assert table.attrs["interval"] == "fieller"
    found = table[COLUMNS].to_numpy()[0]
    np.testing.assert_allclose(found, [stored["lower"], stored["upper"]], rtol=1e-9)
    skill = cvstats.as_scores(cvstats.interval(cvstats.losses(frame, loss="skill", **ask)))
    np.testing.assert_allclose(1 - skill[COLUMNS].to_numpy()[0], found[::-1], rtol=1e-12)


def test_a_reference_near_zero_has_no_limits():
    frame = make_frame(12).assign(ref=lambda f: f["y_true"])
    frame.loc[0, "ref"] += 1.0
    log = cvstats.losses(frame, prediction="m", loss="relative_error", reference="ref")
    table = cvstats.interval(log)
    assert table[COLUMNS].isna().all(axis=None)
    assert "reference" in table["caution"].item()


def concordance(y, m):
    return 2 * np.cov(y, m, ddof=0)[0, 1] / (y.var() + m.var() + (y.mean() - m.mean()) ** 2)


@pytest.mark.parametrize(
    ("loss", "correlation"),
    [
        ("pearson", lambda y, m: np.corrcoef(y, m)[0, 1]),
        ("concordance_correlation", concordance),
    ],
)
def test_a_correlation_has_the_jackknife_on_fishers_scale(loss, correlation):
    from scipy import stats

    frame = make_frame(30).assign(m=lambda f: f["m"] + 0.5)
    table = cvstats.as_scores(cvstats.interval(cvstats.losses(frame, prediction="m", loss=loss)))
    y, m, n = frame["y_true"].to_numpy(), frame["m"].to_numpy(), 30
    keep = ~np.eye(n, dtype=bool)
    z = np.arctanh([correlation(y[k], m[k]) for k in keep])
    se = np.sqrt((n - 1) / n * ((z - z.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, n - 1) * se
    middle = np.arctanh(correlation(y, m))
    expected = np.tanh([middle - half, middle + half])
    np.testing.assert_allclose(table[COLUMNS].to_numpy()[0], expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["r2", "observed_expected"])
def test_limits_of_logarithms_are_asymmetric(loss):
    frame = make_frame() if loss == "r2" else binary_frame()
    name = "m" if loss == "r2" else "p"
    row = cvstats.as_scores(cvstats.interval(cvstats.losses(frame, prediction=[name], loss=loss)))
    assert row.attrs["interval"] == "log"
    values = row[["lower", "estimate", "upper"]].to_numpy()[0]
    logs = np.log(1 - values if loss == "r2" else values)
    assert logs[1] - logs[0] == pytest.approx(logs[2] - logs[1])


@pytest.mark.parametrize("loss", ["r2", "pearson", "skill", "auc", "calibration_slope", "rmse"])
def test_a_lazy_log_names_the_same_limits_and_works(loss):
    pytest.importorskip("dask", reason="the extra dask is not installed")
    frame, options = make_frame(), {"prediction": ["m"]}
    if loss == "skill":
        options["reference"] = "ref"
    if loss in ("auc", "calibration_slope"):
        frame, options = binary_frame(), {"prediction": ["p"]}
    log = cvstats.losses(frame.to_xarray(), loss=loss, **options)
    whole, lazy = cvstats.interval(log).attrs, cvstats.interval(log.chunk()).attrs
    assert lazy["interval"] == whole["interval"]
    assert lazy["reference"] == whole["reference"]


@pytest.mark.parametrize("n", [30, 100])
def test_limits_of_concordance_correlation_cover(n):
    """With t4 errors and 30 or 100 points, symmetric limits cover .83 and .88."""
    rng, runs = np.random.default_rng(n), 1000
    index = pd.MultiIndex.from_product([range(runs), range(n)], names=["run", "point"])
    prediction = 0.7 * rng.normal(size=runs * n)
    truth = prediction + np.sqrt((1 - 0.7**2) / 2) * rng.standard_t(4, size=runs * n)
    frame = pd.DataFrame({"y_true": truth, "m": prediction}, index)
    log = cvstats.losses(
        frame, prediction="m", loss="concordance_correlation", folds="pool", by="run"
    )
    table = cvstats.as_scores(cvstats.interval(log, by="run"))
    expected = 2 * 0.7**2 / (1 + 0.7**2)
    inside = (table["lower"] <= expected) & (expected <= table["upper"])
    assert inside.mean() >= 0.9
