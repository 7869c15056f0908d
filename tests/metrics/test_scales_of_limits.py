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


def test_a_correlation_has_the_jackknife_on_fishers_scale():
    from scipy import stats

    frame = make_frame(30)
    table = cvstats.as_scores(
        cvstats.interval(cvstats.losses(frame, prediction="m", loss="pearson"))
    )
    y, m, n = frame["y_true"].to_numpy(), frame["m"].to_numpy(), 30
    keep = ~np.eye(n, dtype=bool)
    z = np.arctanh([np.corrcoef(y[k], m[k])[0, 1] for k in keep])
    se = np.sqrt((n - 1) / n * ((z - z.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, n - 1) * se
    middle = np.arctanh(np.corrcoef(y, m)[0, 1])
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
