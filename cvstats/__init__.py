"""Valid confidence intervals and comparisons for cross-validated error.

Importing this package registers the accessor ``.cvci`` on pandas Series and DataFrames and on
xarray DataArrays and Datasets that hold losses indexed by repetition, fold, source and point.

Examples
--------
>>> import cvstats
>>> log = cvstats.datasets.load("diabetes")
>>> losses = cvstats.losses(log, prediction="ridge")
>>> losses.cvci.wald()[["estimate", "lower", "upper"]].astype(float).round(0)
estimate    3006.0
lower       2640.0
upper       3372.0
Name: ridge, dtype: float64
"""

from __future__ import annotations

from importlib.metadata import version as _version

from cvstats import accessor, datasets, errors
from cvstats.api.comparing import compare, difference
from cvstats.api.describing import decompose, moments
from cvstats.api.intervals import cv_t, holdout, naive, quadratic, wald
from cvstats.api.making import as_log, losses
from cvstats.errors import LogError
from cvstats.moments import Moments

__all__ = [
    "LogError",
    "Moments",
    "accessor",
    "as_log",
    "compare",
    "cv_t",
    "datasets",
    "decompose",
    "difference",
    "errors",
    "holdout",
    "losses",
    "moments",
    "naive",
    "quadratic",
    "wald",
]

__version__ = _version("cvstats")
