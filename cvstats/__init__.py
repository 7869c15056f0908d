"""Valid confidence intervals and comparisons for cross-validated error.

Importing this package registers the accessor ``.cvci`` on pandas Series and DataFrames and on
xarray DataArrays and Datasets that contain losses indexed by repetition, fold, source and point.

Examples
--------
>>> import cvstats
>>> log = cvstats.datasets.load("diabetes")
>>> losses = cvstats.losses(log, prediction="ridge")
>>> losses.cvci.wald().round(0)
      estimate  lower  upper   se caution
model
ridge    3,006  2,640  3,372  187
"""

from __future__ import annotations

from importlib import import_module as _import
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from cvstats import accessor as accessor
from cvstats import errors as errors
from cvstats.errors import LogError as LogError
from cvstats.errors import nearest as _nearest
from cvstats.registry import FUNCTIONS as _FUNCTIONS
from cvstats.registry import TOOLS as _TOOLS
from cvstats.registry import find_function as _find_function

# For type checkers and editors. At run time a module is imported when one of its names is first
# used, so `import cvstats` is as fast as importing its dependencies.
if TYPE_CHECKING:
    from cvstats import datasets as datasets
    from cvstats import plans as plans
    from cvstats import plot as plot
    from cvstats.citations import cite as cite
    from cvstats.comparisons.best_set import best_set as best_set
    from cvstats.comparisons.compare import compare as compare
    from cvstats.comparisons.compare import difference as difference
    from cvstats.comparisons.equivalence import equivalence as equivalence
    from cvstats.comparisons.equivalence import rope as rope
    from cvstats.comparisons.monitor import Monitor as Monitor
    from cvstats.comparisons.monitor import monitor as monitor
    from cvstats.comparisons.power import power as power
    from cvstats.comparisons.prediction_powered import prediction_powered as prediction_powered
    from cvstats.comparisons.ranks import friedman as friedman
    from cvstats.comparisons.ranks import nemenyi as nemenyi
    from cvstats.comparisons.winner import winner as winner
    from cvstats.comparisons.zero_one import cochran_q as cochran_q
    from cvstats.comparisons.zero_one import mcnemar as mcnemar
    from cvstats.describe import moments as moments
    from cvstats.diagnostics import diagnose as diagnose
    from cvstats.differences import largest_differences as largest_differences
    from cvstats.evaluation.evaluate import evaluate as evaluate
    from cvstats.formatting import cautions as cautions
    from cvstats.formatting import to_apa as to_apa
    from cvstats.formatting import to_latex as to_latex
    from cvstats.formatting import to_markdown as to_markdown
    from cvstats.intervals.answers import answers as answers
    from cvstats.intervals.bootstrap import bootstrap_632 as bootstrap_632
    from cvstats.intervals.bootstrap import bootstrap_oob as bootstrap_oob
    from cvstats.intervals.bootstrap import case_bootstrap as case_bootstrap
    from cvstats.intervals.bootstrap import location_shifted as location_shifted
    from cvstats.intervals.bootstrap import two_stage as two_stage
    from cvstats.intervals.clustered import clustered as clustered
    from cvstats.intervals.conservative_z import conservative_z as conservative_z
    from cvstats.intervals.corrected_t import corrected_t as corrected_t
    from cvstats.intervals.decompose import decompose as decompose
    from cvstats.intervals.five_by_two import five_by_two as five_by_two
    from cvstats.intervals.heterogeneity import heterogeneity as heterogeneity
    from cvstats.intervals.holdout import holdout as holdout
    from cvstats.intervals.naive import cv_t as cv_t
    from cvstats.intervals.naive import naive as naive
    from cvstats.intervals.nested_cv import nested_cv as nested_cv
    from cvstats.intervals.ordered import ordered as ordered
    from cvstats.intervals.out_of_source import out_of_source as out_of_source
    from cvstats.intervals.quadratic import quadratic as quadratic
    from cvstats.intervals.refit_corrected import refit_corrected as refit_corrected
    from cvstats.intervals.replace_one import replace_one as replace_one
    from cvstats.intervals.source_components import source_components as source_components
    from cvstats.intervals.source_components import source_estimators as source_estimators
    from cvstats.intervals.wald import wald as wald
    from cvstats.intervals.wild_cluster import wild_cluster as wild_cluster
    from cvstats.io.as_log import as_log as as_log
    from cvstats.io.read import read_log as read_log
    from cvstats.io.read import read_predictions as read_predictions
    from cvstats.io.save import save_log as save_log
    from cvstats.io.scan import scan_dask as scan_dask
    from cvstats.io.scan import scan_parquet as scan_parquet
    from cvstats.io.scan import scan_predictions as scan_predictions
    from cvstats.large.moments import Moments as Moments
    from cvstats.loss_functions.contrast import contrast as contrast
    from cvstats.loss_functions.label_counts import LabelCounts as LabelCounts
    from cvstats.loss_functions.losses import losses as losses
    from cvstats.loss_functions.passes import passes as passes
    from cvstats.loss_functions.strengths import strengths as strengths
    from cvstats.recommend import interval as interval
    from cvstats.recommend import methods as methods
    from cvstats.reporting import report as report
    from cvstats.reporting import summary as summary
    from cvstats.scores import as_scores as as_scores

__version__ = _version("cvstats")

_SUBPACKAGES = ("datasets", "plans", "plot")

__all__ = sorted(["LogError", "accessor", "errors", *_FUNCTIONS, *_TOOLS, *_SUBPACKAGES])


def _find(name: str) -> object:
    if name in _SUBPACKAGES:
        return _import(f"cvstats.{name}")
    if name not in __all__:
        raise AttributeError(
            f"module 'cvstats' has no attribute {name!r}.{_nearest(name, __all__)}"
        )
    found = globals()[name] = _find_function(name)
    return found


if not TYPE_CHECKING:
    # Hidden from type checkers, which would otherwise assume that every name exists.
    __getattr__ = _find


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"]


# Preloads numba and scipy, so that the first interval is fast.
_import("cvstats.core.reduce")
_import("cvstats.core.results")
