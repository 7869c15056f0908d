"""The functions of a log as methods, for type checkers; written by ``python -m tools.stubs``."""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import cvstats
from cvstats.log.log import TableFunction

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

class TableMethod(Protocol[P]):
    def __get__(self, instance: MomentsMethods[T], owner: object) -> Callable[P, T]: ...

@overload
def method(function: TableFunction[P]) -> TableMethod[P]: ...
@overload
def method(function: Callable[Concatenate[Any, P], R]) -> staticmethod[P, R]: ...

class MomentsMethods(Generic[T]):
    answers = method(cvstats.answers)
    best_set = method(cvstats.best_set)
    bootstrap_632 = method(cvstats.bootstrap_632)
    bootstrap_oob = method(cvstats.bootstrap_oob)
    case_bootstrap = method(cvstats.case_bootstrap)
    clustered = method(cvstats.clustered)
    cochran_q = method(cvstats.cochran_q)
    compare = method(cvstats.compare)
    conservative_z = method(cvstats.conservative_z)
    corrected_t = method(cvstats.corrected_t)
    cv_t = method(cvstats.cv_t)
    decompose = method(cvstats.decompose)
    diagnose = method(cvstats.diagnose)
    difference = method(cvstats.difference)
    equivalence = method(cvstats.equivalence)
    five_by_two = method(cvstats.five_by_two)
    friedman = method(cvstats.friedman)
    heterogeneity = method(cvstats.heterogeneity)
    holdout = method(cvstats.holdout)
    interval = method(cvstats.interval)
    location_shifted = method(cvstats.location_shifted)
    mcnemar = method(cvstats.mcnemar)
    methods = method(cvstats.methods)
    moments = method(cvstats.moments)
    naive = method(cvstats.naive)
    nemenyi = method(cvstats.nemenyi)
    nested_cv = method(cvstats.nested_cv)
    ordered = method(cvstats.ordered)
    out_of_source = method(cvstats.out_of_source)
    power = method(cvstats.power)
    quadratic = method(cvstats.quadratic)
    refit_corrected = method(cvstats.refit_corrected)
    replace_one = method(cvstats.replace_one)
    report: Callable[..., Any]
    rope = method(cvstats.rope)
    source_components = method(cvstats.source_components)
    source_estimators = method(cvstats.source_estimators)
    summary = method(cvstats.summary)
    two_stage = method(cvstats.two_stage)
    wald = method(cvstats.wald)
    wild_cluster = method(cvstats.wild_cluster)
    winner = method(cvstats.winner)

class LogMethods(MomentsMethods[T]):
    contrast = method(cvstats.contrast)
    largest_differences = method(cvstats.largest_differences)
    passes = method(cvstats.passes)
