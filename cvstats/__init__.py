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

from cvstats import accessor, datasets, errors, plans
from cvstats.api.bootstrapping import bootstrap_632, bootstrap_oob
from cvstats.api.choosing import interval, methods
from cvstats.api.comparing import compare, difference
from cvstats.api.describing import decompose, moments
from cvstats.api.intervals import cv_t, holdout, naive, quadratic, wald
from cvstats.api.making import as_log, losses
from cvstats.api.percentiles import case_bootstrap, location_shifted, two_stage
from cvstats.api.resampled import (
    conservative_z,
    corrected_t,
    five_by_two,
    nested_cv,
    replace_one,
)
from cvstats.api.sourcing import (
    clustered,
    heterogeneity,
    out_of_source,
    source_components,
    source_estimators,
)
from cvstats.errors import LogError
from cvstats.evaluation import evaluate
from cvstats.moments import Moments

__all__ = [
    "LogError",
    "Moments",
    "accessor",
    "as_log",
    "bootstrap_632",
    "bootstrap_oob",
    "case_bootstrap",
    "clustered",
    "compare",
    "conservative_z",
    "corrected_t",
    "cv_t",
    "datasets",
    "decompose",
    "difference",
    "errors",
    "evaluate",
    "five_by_two",
    "heterogeneity",
    "holdout",
    "interval",
    "location_shifted",
    "losses",
    "methods",
    "moments",
    "naive",
    "nested_cv",
    "out_of_source",
    "plans",
    "quadratic",
    "replace_one",
    "source_components",
    "source_estimators",
    "two_stage",
    "wald",
]

__version__ = _version("cvstats")
