"""A user's script: type checkers see which container comes back, and so does Python.

``mypy --strict`` reads this file (pyproject.toml), and pytest runs it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import assert_type

import pandas as pd
import xarray as xr

import cvstats
from cvstats.accessor import CVAccessor

LOG: pd.DataFrame = cvstats.datasets.load("diabetes")


def test_one_model_is_a_series_and_several_are_a_frame() -> None:
    one = cvstats.losses(LOG, prediction="ridge")
    several = cvstats.losses(LOG, prediction=["ridge", "random_forest"], loss="absolute_error")
    assert_type(several, pd.DataFrame)
    assert isinstance(one, pd.Series)
    assert isinstance(several, pd.DataFrame)


def test_one_model_is_an_array_and_several_are_a_dataset() -> None:
    arrays = xr.Dataset.from_dataframe(LOG)
    one = cvstats.losses(arrays, prediction="ridge")
    several = cvstats.losses(arrays, prediction=["ridge", "random_forest"])
    assert_type(one, xr.DataArray)
    assert_type(several, xr.Dataset)
    assert isinstance(one, xr.DataArray)
    assert isinstance(several, xr.Dataset)


def test_results_are_of_the_kind_of_the_log() -> None:
    losses = cvstats.losses(LOG, prediction=["ridge", "random_forest"])
    assert_type(cvstats.wald(losses), pd.DataFrame)
    assert_type(cvstats.interval(losses, method="corrected_t"), pd.DataFrame)
    assert_type(cvstats.compare(losses, reference="ridge"), pd.DataFrame)
    assert_type(cvstats.best_set(losses, rng=0), pd.DataFrame)
    assert_type(cvstats.moments(losses), pd.DataFrame)
    arrays = xr.Dataset.from_dataframe(losses)
    assert_type(cvstats.wald(arrays), xr.Dataset)
    assert_type(cvstats.interval(arrays["ridge"]), xr.Dataset)
    assert_type(cvstats.compare(arrays), xr.Dataset)
    for log, kind in ((losses, pd.DataFrame), (arrays, xr.Dataset)):
        for function in (cvstats.wald, cvstats.interval, cvstats.compare, cvstats.moments):
            assert isinstance(function(log), kind)


def test_the_accessor_and_moments_have_their_methods() -> None:
    losses = cvstats.losses(LOG, prediction=["ridge", "random_forest"])
    result = CVAccessor(losses).wald()
    pd.testing.assert_frame_equal(result, cvstats.wald(losses))
    total = cvstats.Moments.of_log(losses)
    assert list(total.wald().index) == list(result.index)


def test_the_package_says_that_it_is_typed() -> None:
    assert files("cvstats").joinpath("py.typed").is_file()
