"""A level of 1e9 changes no width: also where it comes from differences between cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import only_row, with_counts

import cvstats

LEVEL = 1e9
WIDTH = 1e-9
"""Relative; the contract of the package is 1e-6, for logs of any length."""


def near_and_far(n=100_000, sources=False, models=1):
    """A log, and the same log a level higher, no loss rounded."""
    draw = np.random.default_rng(0)
    losses = draw.normal(size=(n, models)) + LEVEL - LEVEL  # as far as 1e9 + x tells
    names = ["fold", "point"]
    index = pd.MultiIndex.from_arrays([np.arange(n) % 10, np.arange(n)], names=names)
    if sources:
        index = index.set_names("source", level="fold")
    near = pd.DataFrame(losses, index, columns=list("abc")[:models])
    return near, near + LEVEL


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("quadratic", {}), ("quadratic", {"estimator": "theta_2"}),
        ("quadratic", {"estimator": "theta_3"}), ("cv_t", {}), ("corrected_t", {}),
        ("out_of_source", {}), ("clustered", {}), ("interval", {"method": "cv_t"}),
        ("wald", {}), ("wald", {"variance": "within-fold"}),
    ],
)  # fmt: skip
def test_widths_keep_their_digits(name, options):
    near, far = near_and_far(sources=name in ("out_of_source", "clustered"), models=2)
    expected, found = (getattr(cvstats, name)(log, **options) for log in (near, far))
    assert (found["se"] / expected["se"]).tolist() == pytest.approx([1, 1], rel=WIDTH)
    half = (found["upper"] - found["estimate"]) / (expected["upper"] - expected["estimate"])
    assert half.tolist() == pytest.approx([1, 1], rel=1e-4)  # the ulp of 1e9 is 1e-7
    assert (found["estimate"] - LEVEL).tolist() == pytest.approx(
        expected["estimate"].tolist(), abs=2e-7
    )
    others = [c for c in found if c not in ("estimate", "se", "lower", "upper", "caution")]
    pd.testing.assert_frame_equal(found[others], expected[others], rtol=WIDTH)
    assert found.attrs == expected.attrs


def test_parts_of_the_variance_keep_their_digits():
    near, far = near_and_far()
    expected, found = near.cvci.decompose(), far.cvci.decompose()
    rest = found.columns.difference(["theta_1"])
    pd.testing.assert_frame_equal(found[rest], expected[rest], rtol=1e-8)
    raw = far.cvci.quadratic(estimator="theta_1")["variance_raw"]  # this one has the level in it
    assert found["theta_1"].tolist() == raw.tolist()


def test_a_grid_of_levels():
    near, _ = near_and_far(n=2000)
    log = xr.DataArray(
        near["a"].to_numpy()[:, None] + np.array([0.0, 1e9, -1e12, np.nan]),
        {"fold": ("point", np.arange(2000) % 10), "lat": range(4)}, ("point", "lat"),
    )  # fmt: skip
    result = log.cvci.cv_t()
    expected = float(log.isel(lat=0).cvci.cv_t()["se"])
    assert float(result["se"][1]) == pytest.approx(expected, rel=1e-6)
    assert np.isnan(result["se"][3])
    assert cvstats.cautions(result).values[3] == "no losses"


def test_a_squared_mean_is_not_moved():
    _, far = near_and_far(n=1000)
    plain = far.cvci.quadratic(estimator="theta_1")
    assert "mean dominates" in plain["caution"].iloc[0]


def test_nested_folds_and_their_errors():
    plan, draw = cvstats.plans.nested_cv(4, 3, rng=0), np.random.default_rng(2)
    rows = [
        {**test.levels, "point": point}
        for fit in plan.bind(60) for test in fit.evaluations for point in test.points
    ]  # fmt: skip
    near = cvstats.as_log(pd.DataFrame(rows).assign(loss=draw.normal(size=len(rows))))
    expected, found = near.cvci.nested_cv(), (near + LEVEL).cvci.nested_cv()
    for name in ("estimate", "err_ncv", "err_cv"):
        assert only_row(found)[name] - LEVEL == pytest.approx(only_row(expected)[name], abs=3e-7)
    assert only_row(found)["se"] == pytest.approx(only_row(expected)["se"], rel=1e-6)
    assert only_row(found)["bias"] == pytest.approx(only_row(expected)["bias"], rel=1e-5)


@pytest.mark.parametrize("name", ["cv_t", "quadratic", "decompose"])
def test_parts_keep_theirs(name):
    near, _ = near_and_far(n=20_000, models=2)
    near["region"] = np.where(np.arange(20_000) % 3 == 0, "south", "north")
    near = near.set_index("region", append=True)
    call = getattr(cvstats, name)
    expected, found = call(near, by="region"), call(near + LEVEL, by="region")
    alone = call((near + LEVEL).xs("south", level="region"))
    expected, found, alone = map(with_counts, (expected, found, alone))
    kept = [c for c in found if c not in ("estimate", "lower", "upper", "caution", "theta_1")]
    pd.testing.assert_frame_equal(found[kept], expected[kept], rtol=1e-6)
    pd.testing.assert_frame_equal(found.loc["south", kept], alone[kept], rtol=1e-9)
    if "estimate" in found:
        np.testing.assert_allclose(found["estimate"] - LEVEL, expected["estimate"], atol=3e-7)
