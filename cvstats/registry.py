"""The public functions that accept a log: their modules, and the corresponding methods.

The names are listed explicitly, so a search for a name finds its file, and a broken file disables
only its own function. Nothing is imported before it is used.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

from cvstats.errors import nearest_option

INTERVALS = {
    "bootstrap_632": "cvstats.intervals.bootstrap",
    "bootstrap_oob": "cvstats.intervals.bootstrap",
    "case_bootstrap": "cvstats.intervals.bootstrap",
    "clustered": "cvstats.intervals.clustered",
    "conservative_z": "cvstats.intervals.conservative_z",
    "corrected_t": "cvstats.intervals.corrected_t",
    "cv_t": "cvstats.intervals.naive",
    "five_by_two": "cvstats.intervals.five_by_two",
    "holdout": "cvstats.intervals.holdout",
    "location_shifted": "cvstats.intervals.bootstrap",
    "naive": "cvstats.intervals.naive",
    "nested_cv": "cvstats.intervals.nested_cv",
    "ordered": "cvstats.intervals.ordered",
    "out_of_source": "cvstats.intervals.out_of_source",
    "quadratic": "cvstats.intervals.quadratic",
    "refit_corrected": "cvstats.intervals.refit_corrected",
    "replace_one": "cvstats.intervals.replace_one",
    "two_stage": "cvstats.intervals.bootstrap",
    "wald": "cvstats.intervals.wald",
    "wild_cluster": "cvstats.intervals.wild_cluster",
}
STATISTICS = {
    "answers": "cvstats.intervals.answers",
    "decompose": "cvstats.intervals.decompose",
    "heterogeneity": "cvstats.intervals.heterogeneity",
    "source_components": "cvstats.intervals.decompose",
    "source_estimators": "cvstats.intervals.decompose",
}
COMPARISONS = {
    "best_set": "cvstats.comparisons.best_set",
    "cochran_q": "cvstats.comparisons.zero_one",
    "compare": "cvstats.comparisons.compare",
    "difference": "cvstats.comparisons.compare",
    "equivalence": "cvstats.comparisons.equivalence",
    "friedman": "cvstats.comparisons.ranks",
    "mcnemar": "cvstats.comparisons.zero_one",
    "nemenyi": "cvstats.comparisons.ranks",
    "power": "cvstats.comparisons.power",
    "rope": "cvstats.comparisons.equivalence",
    "winner": "cvstats.comparisons.winner",
}
LOGS = {"contrast": "cvstats.loss_functions.contrast", "passes": "cvstats.loss_functions.passes"}
"""The module of each function that maps a log to a log."""

VIEWS = {
    "diagnose": "cvstats.diagnostics",
    "interval": "cvstats.recommend",
    "largest_differences": "cvstats.describe",
    "methods": "cvstats.recommend",
    "moments": "cvstats.describe",
    "report": "cvstats.reporting",
    "summary": "cvstats.reporting",
}
FUNCTIONS = {**INTERVALS, **STATISTICS, **COMPARISONS, **LOGS, **VIEWS}
"""The module of each function that accepts a log; each is also a method of the accessor."""

PLOTS = {
    "forest": "cvstats.plot.forest",
    "comparison": "cvstats.plot.comparison",
    "best_set": "cvstats.plot.best_set",
    "map": "cvstats.plot.map",
    "sources": "cvstats.plot.sources",
    "folds": "cvstats.plot.folds",
    "stability": "cvstats.plot.stability",
    "reliability": "cvstats.plot.reliability",
    "decomposition": "cvstats.plot.decomposition",
}
"""The module of each plot, in the order of the documentation."""

TOOLS = {
    "LabelCounts": "cvstats.loss_functions.label_counts",
    "Moments": "cvstats.large.moments",
    "Monitor": "cvstats.comparisons.monitor",
    "as_log": "cvstats.io.as_log",
    "as_scores": "cvstats.formatting",
    "cautions": "cvstats.formatting",
    "cite": "cvstats.formatting",
    "evaluate": "cvstats.evaluation",
    "losses": "cvstats.loss_functions.losses",
    "monitor": "cvstats.comparisons.monitor",
    "prediction_powered": "cvstats.comparisons.prediction_powered",
    "read_log": "cvstats.io.read",
    "read_predictions": "cvstats.io.read",
    "save_log": "cvstats.io.save",
    "strengths": "cvstats.loss_functions.strengths",
    "scan_dask": "cvstats.io.scan",
    "scan_parquet": "cvstats.io.scan",
    "scan_predictions": "cvstats.io.scan",
    "to_apa": "cvstats.formatting",
    "to_latex": "cvstats.formatting",
    "to_markdown": "cvstats.formatting",
}
"""The module of each other public function or class."""


def find_function(name: str) -> Any:
    """Import a public function by its name."""
    return vars(import_module(FUNCTIONS.get(name) or TOOLS[name]))[name]


@contextmanager
def warn_if_broken(name: str) -> Iterator[None]:
    """Warn of a file that cannot be imported, which then disables only its own functions."""
    try:
        yield
    except Exception as error:
        warnings.warn(f"{name} cannot be imported: {error!r}", stacklevel=3)


# --- functions as methods -------------------------------------------------------------------------

LOSSES_ENTRY = re.compile(r"^losses : .*\n(?:^    .*\n)+", re.MULTILINE)
"""The entry of the log in the docstring of a function; methods do not have this parameter."""


def make_method(function: Callable[..., Any], attribute: str | None) -> Any:
    """Convert a function whose first parameter is the log to a method."""
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()

    most = sum(known.kind is known.POSITIONAL_OR_KEYWORD for known in rest)
    closed = all(known.kind is not known.VAR_KEYWORD for known in rest)

    @wraps(function)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) > most:
            raise unnamed_option(function.__name__, args[most], rest)
        for option in options:
            if closed and option not in signature.parameters:
                names, log = [known.name for known in rest], "log.cvci" if attribute else "moments"
                raise unknown_option(function.__name__, option, names, options, log)
        return function(getattr(self, attribute) if attribute else self, *args, **options)

    itself = first.replace(name="self", annotation=inspect.Parameter.empty)
    vars(method)["__signature__"] = signature.replace(parameters=[itself, *rest])
    method.__doc__ = LOSSES_ENTRY.sub("", inspect.getdoc(function) or "", count=1)
    return method


def unnamed_option(name: str, value: object, known: Sequence[inspect.Parameter]) -> TypeError:
    """Explain that options are passed by name."""
    options = [option.name for option in known if option.kind is option.KEYWORD_ONLY]
    likely = "alpha" if isinstance(value, float) else "by" if isinstance(value, str) else ""
    guess = likely if likely in options else options[0] if options else ""
    way = f" Expected the name of the option too, as in {name}({guess}={value!r})." if guess else ""
    several = f" Valid options: {', '.join(options)}." if options else ""
    return TypeError(f"{name}() got {value!r} without a name.{way}{several}")


def unknown_option(
    name: str, option: str, known: list[str], given: Mapping[str, Any], log: str = "log.cvci"
) -> TypeError:
    """List the options of a function, and explain where options of other functions go."""
    value, method = given[option], given.get("method")
    way = nearest_option(option, known, value)
    if option == "by" and "reference" in known and isinstance(value, str):
        way = f" For the difference at each label, use {log}.compare(by={value!r})."
    interval = find_function(method) if isinstance(method, str) and method in INTERVALS else None
    if "options" in known and interval and option in inspect.signature(interval).parameters:
        way = f" Pass the options of {method} as options={{{option!r}: …}}."
    several = f" Valid options: {', '.join(known)}." if known else f" {name}() has no options."
    return TypeError(f"{name}() got an unexpected option {option!r}.{several}{way}")


class LazyMethod:
    """A function as a method, with its signature and docstring, imported on first access.

    Until then neither the function nor its dependencies are imported, so ``import cvstats`` stays
    fast.

    Parameters
    ----------
    name : str
        The name of the function.
    attribute : str, optional
        The attribute of the object that is the log; the object itself by default.
    """

    def __init__(self, name: str, attribute: str | None = None) -> None:
        self._name, self._attribute = name, attribute

    def __get__(self, instance: object, owner: type) -> Any:
        """Replace this object by the method, and return it."""
        method = make_method(find_function(self._name), self._attribute)
        setattr(owner, self._name, method)
        return method.__get__(instance, owner)


def add_methods(
    owner: type, attribute: str | None = None, *, without: tuple[str, ...] = ()
) -> None:
    """Add every function that accepts a log to a class as a method.

    Parameters
    ----------
    owner : type
        The class.
    attribute : str, optional
        The attribute of its objects that is the log; the object itself by default.
    without : tuple of str
        Functions to omit.
    """
    for name in FUNCTIONS:
        if name not in without:
            setattr(owner, name, LazyMethod(name, attribute))
