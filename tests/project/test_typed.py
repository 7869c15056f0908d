"""A user's script: type checkers see which container comes back, and so does Python.

``mypy --strict`` reads this file (pyproject.toml), and pytest runs it.
"""

import ast
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any, assert_type

import pandas as pd
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cvstats
from cvstats.accessor import CVAccessor
from cvstats.registry import FUNCTIONS
from cvstats.reporting.sentences import Summary

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


def test_methods_of_an_accessor_return_the_kind_of_its_log() -> None:
    losses = cvstats.losses(LOG, prediction=["ridge", "random_forest"])
    accessor = CVAccessor(losses)
    result = accessor.wald()
    pd.testing.assert_frame_equal(result, cvstats.wald(losses))
    assert_type(result, pd.DataFrame)
    assert_type(accessor.compare(reference="ridge"), pd.DataFrame)
    assert_type(accessor.power(effect=100.0), pd.DataFrame)
    assert_type(accessor.methods(), pd.DataFrame)
    assert_type(accessor.summary(), Summary | Any)
    arrays = CVAccessor(xr.Dataset.from_dataframe(losses))
    assert_type(arrays.wald(), xr.Dataset)
    assert_type(arrays.moments(), xr.Dataset)
    assert isinstance(arrays.moments(), xr.Dataset)


def test_methods_of_moments_return_frames() -> None:
    losses = cvstats.losses(LOG, prediction=["ridge", "random_forest"])
    total = cvstats.Moments.of_log(losses)
    result = total.wald()
    assert_type(result, pd.DataFrame | Any)  # a Dataset, if the batches were arrays
    assert_type(total.summary(), Summary | Any)
    pd.testing.assert_frame_equal(result, cvstats.wald(losses))


def test_attempts_become_a_log_of_their_kind() -> None:
    index = pd.MultiIndex.from_product([range(4), range(3)], names=["point", "repetition"])
    attempts = pd.Series([0.0, 1.0] * 6, index, name="llm")
    assert_type(cvstats.passes(attempts, k=2), "pd.Series[float]")
    assert isinstance(cvstats.passes(attempts, k=2), pd.Series)


def test_wrong_names_are_errors() -> None:
    """Type checkers report the names that Python refuses: unused ignores are errors."""
    accessor = CVAccessor(cvstats.losses(LOG, prediction=["ridge", "random_forest"]))
    with pytest.raises(TypeError, match="Did you mean 'alpha'"):
        accessor.wald(alpa=0.1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="wold"):
        accessor.wold()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Did you mean 'alpha'"):
        accessor.plot.forest(alpa=0.1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="florest"):
        accessor.plot.florest()  # type: ignore[attr-defined]


def test_plots_return_axes() -> None:
    accessor = CVAccessor(cvstats.losses(LOG, prediction=["ridge", "random_forest"]))
    ax = accessor.plot.forest(alpha=0.1, ax=Figure().subplots())
    assert_type(ax, Axes)
    assert isinstance(ax, Axes)


@pytest.mark.parametrize("owner", [CVAccessor, cvstats.Moments])
def test_type_checkers_see_the_methods_that_python_adds(owner: type) -> None:
    tree = ast.parse(files("cvstats.log").joinpath("methods.pyi").read_text("utf-8"))
    names = {
        node.name: [line.split()[0].rstrip(":") for line in map(ast.unparse, node.body)]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    seen = names["MomentsMethods"] + names["LogMethods"] * (owner is CVAccessor)
    assert sorted(seen) == sorted(name for name in FUNCTIONS if hasattr(owner, name))


def test_the_names_for_type_checkers_are_those_of_the_registry() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))  # the tools are not installed
    from tools.stubs import main

    assert main(["--check"]) == 0


def test_the_package_says_that_it_is_typed() -> None:
    assert files("cvstats").joinpath("py.typed").is_file()
