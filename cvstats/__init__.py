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

from importlib import import_module as _import
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from cvstats import accessor, errors
from cvstats.errors import LogError
from cvstats.errors import nearest as _nearest

# What type checkers and editors read. Python imports a name when it is first asked for: a room of
# the package is loaded by who uses it, and `import cvstats` stays as quick as its dependencies.
if TYPE_CHECKING:
    from cvstats import datasets, plans, plot
    from cvstats.api.bootstrapping import bootstrap_632, bootstrap_oob
    from cvstats.api.choosing import interval, methods
    from cvstats.api.comparing import compare, difference
    from cvstats.api.counting import cochran_q, mcnemar
    from cvstats.api.describing import decompose, moments
    from cvstats.api.diagnosing import diagnose
    from cvstats.api.intervals import cv_t, holdout, naive, quadratic, wald
    from cvstats.api.margins import equivalence, rope
    from cvstats.api.mean_ranks import friedman, nemenyi
    from cvstats.api.percentiles import case_bootstrap, location_shifted, two_stage
    from cvstats.api.planning import power
    from cvstats.api.ranking import best_set
    from cvstats.api.resampled import (
        conservative_z,
        corrected_t,
        five_by_two,
        nested_cv,
        replace_one,
    )
    from cvstats.api.showing import to_latex, to_markdown
    from cvstats.api.sourcing import clustered, heterogeneity, out_of_source
    from cvstats.api.streaming import Moments, scan_dask, scan_parquet
    from cvstats.api.studying import source_components, source_estimators
    from cvstats.evaluation import evaluate
    from cvstats.io.as_log import as_log
    from cvstats.io.read import read_log, read_predictions
    from cvstats.io.write import save_log
    from cvstats.loss_functions import losses
    from cvstats.reporting import report

__all__ = [
    "LogError",
    "Moments",
    "accessor",
    "as_log",
    "best_set",
    "bootstrap_632",
    "bootstrap_oob",
    "case_bootstrap",
    "clustered",
    "cochran_q",
    "compare",
    "conservative_z",
    "corrected_t",
    "cv_t",
    "datasets",
    "decompose",
    "diagnose",
    "difference",
    "equivalence",
    "errors",
    "evaluate",
    "five_by_two",
    "friedman",
    "heterogeneity",
    "holdout",
    "interval",
    "location_shifted",
    "losses",
    "mcnemar",
    "methods",
    "moments",
    "naive",
    "nested_cv",
    "nemenyi",
    "out_of_source",
    "plans",
    "plot",
    "power",
    "quadratic",
    "read_log",
    "read_predictions",
    "replace_one",
    "report",
    "rope",
    "save_log",
    "scan_dask",
    "scan_parquet",
    "source_components",
    "source_estimators",
    "to_latex",
    "to_markdown",
    "two_stage",
    "wald",
]

__version__ = _version("cvstats")

_ROOMS = {"datasets", "plans", "plot"}

_HOMES = {
    name: f"cvstats.{home}"
    for home, names in {
        "api.bootstrapping": ("bootstrap_632", "bootstrap_oob"),
        "api.choosing": ("interval", "methods"),
        "api.comparing": ("compare", "difference"),
        "api.counting": ("cochran_q", "mcnemar"),
        "api.describing": ("decompose", "moments"),
        "api.diagnosing": ("diagnose",),
        "api.intervals": ("cv_t", "holdout", "naive", "quadratic", "wald"),
        "api.margins": ("equivalence", "rope"),
        "api.mean_ranks": ("friedman", "nemenyi"),
        "api.percentiles": ("case_bootstrap", "location_shifted", "two_stage"),
        "api.planning": ("power",),
        "api.ranking": ("best_set",),
        "api.resampled": (
            "conservative_z",
            "corrected_t",
            "five_by_two",
            "nested_cv",
            "replace_one",
        ),
        "api.showing": ("to_latex", "to_markdown"),
        "api.sourcing": ("clustered", "heterogeneity", "out_of_source"),
        "api.streaming": ("Moments", "scan_dask", "scan_parquet"),
        "api.studying": ("source_components", "source_estimators"),
        "evaluation": ("evaluate",),
        "io.as_log": ("as_log",),
        "io.read": ("read_log", "read_predictions"),
        "io.write": ("save_log",),
        "loss_functions": ("losses",),
        "reporting": ("report",),
    }.items()
    for name in names
}
"""The module of each name that is imported when it is first asked for, as written above."""


def _asked_for(name: str) -> object:
    """Import a public name, and keep it: Python asks only for names that are not there."""
    if name in _ROOMS:
        return _import(f"cvstats.{name}")
    if name in _HOMES:
        found = globals()[name] = vars(_import(_HOMES[name]))[name]
        return found
    raise AttributeError(f"module 'cvstats' has no attribute {name!r}.{_nearest(name, __all__)}")


if not TYPE_CHECKING:
    # Hidden from type checkers, which would else believe that every name is there.
    __getattr__ = _asked_for


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The first interval shall not wait for numba and scipy, which come with these two.
_import("cvstats.core.chunked")
_import("cvstats.core.result")
# A module that was loaded is an attribute of its package; this one has the name of a function.
globals().pop("moments", None)
