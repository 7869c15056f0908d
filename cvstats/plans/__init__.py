"""Resampling plans: what to train on, what to test on, and the log levels that say so.

A plan is made without data and is bound to them later, by `cvstats.evaluate`, by
scikit-learn where the plan serves as ``cv=``, or by hand with ``plan.bind(n)``. The same plan
bound to the same data is the same design every time: its seed is drawn when it is made.
"""

from __future__ import annotations

from cvstats.plans.bootstraps import bootstrap, case_bootstrap, two_stage
from cvstats.plans.folds import (
    five_by_two,
    k_fold,
    leave_one_out,
    leave_one_source_out,
    nested_cv,
    repeated_k_fold,
    replace_one,
)
from cvstats.plans.plan import BoundPlan, Evaluation, Fit, Plan
from cvstats.plans.splits import holdout, paired_subsampling, subsampling

__all__ = [
    "BoundPlan",
    "Evaluation",
    "Fit",
    "Plan",
    "bootstrap",
    "case_bootstrap",
    "five_by_two",
    "holdout",
    "k_fold",
    "leave_one_out",
    "leave_one_source_out",
    "nested_cv",
    "paired_subsampling",
    "repeated_k_fold",
    "replace_one",
    "subsampling",
    "two_stage",
]


def __dir__() -> list[str]:
    return __all__
