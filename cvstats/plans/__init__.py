"""Resampling plans: what to train on, what to test on, and the levels of the log.

A plan is created without data and bound to data later, by `cvstats.evaluate`, by scikit-learn if
the plan is passed as ``cv=``, or explicitly by ``plan.bind(n)``. Its seed is drawn when it is
created, so binding it to the same data always gives the same splits.
"""

from __future__ import annotations

from cvstats.plans.designs import (
    bootstrap,
    case_bootstrap,
    five_by_two,
    holdout,
    k_fold,
    leave_one_out,
    leave_one_source_out,
    nested_cv,
    paired_subsampling,
    repeated_k_fold,
    replace_one,
    subsampling,
    two_stage,
)
from cvstats.plans.plan import BoundPlan, Evaluation, Fit, Plan

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
