"""The record of a method, a decorator that creates its public function.

A method is one function with its whole public signature and docstring. Its body is the formula:
it receives a `Log` instead of the losses and returns a `Result`; the decorator does the rest::

    @IntervalMethod(requires=partition, needs="a K-fold partition", target=..., ...)
    def naive(
        log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Result:
        '''Docstring of the public function, whose first parameter is ``losses``.'''
        cells = log.moments(repetition_level(log.design))
        ...

The decorator handles `by` and `missing`: the formula is called only with its other options, once
for each label of `by`. The accessor, ``compare(method=)``, ``interval()``, ``methods()``, moments
and lazy arrays all read the record; the registry is the only other place that names the method.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial, wraps
from itertools import pairwise
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from cvstats.core.cautions import Caution, methods_instead
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import (
    count_folds,
    covers_all_points,
    find_whole_sources,
    fold_levels,
    share_models,
    tally,
)
from cvstats.core.results import Result, flag
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, check_two_levels, checked_choice, checked_level
from cvstats.intervals._limits import OF_NORMAL_LIMITS, qualify_contrast
from cvstats.intervals._stability import find_unstable
from cvstats.large.frames import delay_answer
from cvstats.large.lazy import ReadsLosses, answer_lazy_groups, map_method
from cvstats.log.align import CONSTANT
from cvstats.log.gaps import answer_cells
from cvstats.log.groups import METRIC, DifferentGroups, Groups, answer_groups, list_kinds
from cvstats.log.log import Axis, Log, Losses, Table, TableFunction
from cvstats.log.loss_checks import Residuals, find_cautions, shares_dates
from cvstats.log.metadata import is_below_chance
from cvstats.log.read import is_dask_frame, read
from cvstats.options import check_alpha, find_choices, known_name
from cvstats.registry import (
    COMPARISONS,
    INTERVALS,
    STATISTICS,
    find_function,
    unknown_option,
    unnamed_option,
    warn_if_broken,
)

BAYLE = "Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671"
BATES = (
    "Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445, "
    "doi:10.1080/01621459.2023.2197686"
)
GERAS = "Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300"
BENGIO = "Bengio and Grandvalet (2004), JMLR 5, 1089-1105"
RELATIVE_STABILITY = "Bayle, Janson and Mackey (2025), arXiv:2508.04409"
NADEAU = "Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366"
BOUCKAERT = "Bouckaert and Frank (2004), PAKDD, LNCS 3056, 3-12, doi:10.1007/978-3-540-24775-3_3"

OF_FIXED_MODELS = {
    "target": "mean loss on new points from the same population",
    "guarantee": "asymptotically exact in the number of points, if they are independent",
}
"""The target and the guarantee for points if no model was trained on parts of the log."""

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)

WeighGroups: TypeAlias = Callable[..., tuple[FloatArray, FloatArray]]


class Function(Protocol[P, T_co]):
    """A public function with the record of its method."""

    __name__: str
    record: Method

    def __call__(self, *args: P.args, **options: P.kwargs) -> T_co:
        """Call the function."""


class Computed(TableFunction[P], Protocol[P]):
    """A public function that returns a table of numbers, with the record of its method."""

    record: LogMethod


class Compared(TableFunction[P], Protocol[P]):
    """A public function that compares models, with the record of its method."""

    record: Method


def any_log(_: Design) -> str | None:
    """Accept any log."""
    return None


@dataclass(eq=False, kw_only=True)
class Method:
    """The facts about one method, shown to users and checked before it runs.

    Parameters
    ----------
    requires : callable
        Maps the design of a log (and the label of ``level_option``, if the method has one) to a
        description of what is missing, or None if the method applies. By default any log is
        accepted: the intervals on which the method is based have requirements of their own.
    needs, target, guarantee, fits, reference : str
        The log it needs, the quantity it estimates, its guarantee, the number of model fits, and
        the literature reference.
    of_fixed_models, of_split_sources : mapping
        The target and the guarantee if no model was trained on parts of the log, and if sources
        occur in several folds.
    plan : str
        The resampling plan that creates such a log, if ``requires`` does not name it.
    models : int
        Minimum number of models.
    of_losses : callable, optional
        Maps the log to a description of what is wrong with its losses, or None.
    needs_losses : bool
        Whether it needs individual losses, so that moments of cells are not enough.
    takes_kept_losses : bool
        Whether the losses kept with the moments of a short log suffice.
    needs_points : bool
        Whether it averages each point of one test set over the repetitions.
    lazy : bool
        Whether it is computed lazily on a lazy array.
    takes_lazy_losses : bool
        Whether individual losses of a lazy array are processed as those in memory are.
    needs_pairs : bool
        Whether a method for several models needs cross-moments between models.
    takes_scores : bool
        Whether one score per split is enough.
    takes_means : bool
        Whether it needs only the mean of each split.
    level_option : str, optional
        The option that names a level of the log.
    takes_two_levels : bool
        Whether that option may name two levels.
    takes_metrics : bool or "averaged"
        Whether it accepts pseudo-losses of metrics; "averaged" only those with a value in each
        fold, because it uses fold means.
    of_interval : bool
        Whether it is computed from the default interval of differences.
    check : callable, optional
        Receives the options by name and raises for invalid values that the annotations allow.
    """

    requires: Callable[..., str | None] = any_log
    needs: str
    target: str
    guarantee: str
    fits: str
    reference: str
    of_fixed_models: Mapping[str, str] = field(default_factory=dict)
    of_split_sources: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    models: int = 1
    of_losses: Callable[[Log], str | None] | None = None
    needs_losses: bool = False
    takes_kept_losses: bool = False
    needs_points: bool = False
    lazy: bool = True
    takes_lazy_losses: bool = False
    needs_pairs: bool = True
    takes_scores: bool = False
    takes_means: bool = False
    level_option: str | None = None
    takes_two_levels: bool = False
    takes_metrics: bool | Literal["averaged"] = True
    of_interval: bool = False
    check: Callable[[Mapping[str, Any]], None] | None = None
    function: Callable[..., Any] = field(init=False)
    name: str = field(init=False)

    def attach(self, function: Callable[..., Any]) -> Any:
        """Attach the record to its public function."""
        self.function, self.name = function, function.__name__
        vars(function)["record"] = self
        return function

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options of the public function and their defaults."""
        _, *options = inspect.signature(self.function).parameters.values()
        return {option.name: option.default for option in options}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Options of the method itself and their defaults."""
        return {name: value for name, value in self.options.items() if name != "missing"}

    @cached_property
    def choices(self) -> dict[str, tuple[Any, ...]]:
        """Options with a fixed set of values, read from the annotations."""
        return find_choices(inspect.unwrap(self.function))

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Reject options that are invalid for every log; defaults are valid."""
        for name, value in options.items():
            if value is self.options.get(name):
                continue
            if name == "alpha":
                check_alpha(value)
            elif name in self.choices:
                checked_choice(name, value, self.choices[name])
            elif name == self.level_option:
                two = self.takes_two_levels and isinstance(value, (tuple, list))
                (check_two_levels if two else checked_level)(name, value)
        if self.check is not None:
            self.check({**self.options, **options})

    def problem(self, design: Design, options: Mapping[str, Any] | None = None) -> str | None:
        """Describe what is missing and which plan creates it; None if the method applies."""
        if design.scores and not self.takes_scores:
            of_one = isinstance(self, LogMethod)
            others = "corrected_t or five_by_two" if of_one else "compare, rope or winner"
            return (
                "the log has one score per split, not losses of individual points. Use "
                f"{others}; or save the predictions: cvstats.evaluate does, and "
                "cross_validate(…, return_estimator=True, return_indices=True)."
            )
        if design.metric and self.takes_metrics is False:
            return (
                "the log was made from a metric and has no losses of individual points. Use wald, "
                "clustered or compare, or a loss of individual points."
            )
        if self.level_option is None:
            words = self.requires(design)
        else:
            words = self.requires(design, {**self.defaults, **(options or {})}[self.level_option])
        pooled = design.metric == "pool" and count_folds(design) > 1
        if words is None and pooled and self.takes_metrics == "averaged":
            return (
                f"the metric of this log was pooled over folds, but {self.name} needs its value "
                "in each fold. Create the log with cvstats.losses(…, folds='average')."
            )
        if words is None or not self.plan or "cvstats.plans" in words:
            return words
        return f"{words} To run an experiment for {self.name}, use cvstats.plans.{self.plan}."

    def require(self, design: Design, options: Mapping[str, Any] | None = None) -> None:
        """Reject a log to which the method does not apply.

        Raises
        ------
        LogError
            What the method needs, what this log is, and what to type instead.
        """
        if (words := self.problem(design, options)) is not None:
            raise LogError(f"{self.name} needs {self.needs}; {words}")

    @cached_property
    def facts(self) -> dict[str, str]:
        """The facts for users that every result of the method carries."""
        return {"target": self.target, "guarantee": self.guarantee, "reference": self.reference}


@dataclass(eq=False, kw_only=True)
class Comparison(Method):
    """A method whose function reads its own logs, such as a comparison of models.

    As a decorator it checks the options before the function is called, and delays the call on a
    dask frame unless the method needs individual losses.

    Parameters
    ----------
    level_options : tuple of str
        The options that name columns of a dask frame besides the levels of a log.
    """

    level_options: tuple[str, ...] = ()

    def __call__(self, function: Callable[Concatenate[Losses, P], Any]) -> Compared[P]:
        """Check options first, and attach the record."""
        return cast(Compared[P], self.of_any_kind(function))

    def of_any_kind(self, function: Callable[P, T_co]) -> Function[P, T_co]:
        """Decorate a function that returns something other than a table of numbers."""
        known = inspect.signature(function).parameters

        @wraps(function)
        def public(*args: P.args, **options: P.kwargs) -> T_co:
            if not options.keys() <= known.keys():
                unknown = next(name for name in options if name not in known)
                raise unknown_option(self.name, unknown, [*known][1:], options)
            for name in ("method", "adjust"):
                if name in options:
                    options[name] = known_name(name, options[name], *args[:1])
            self.check_options(options)
            if not self.needs_losses and args and is_dask_frame(args[0]):
                return cast(T_co, self.delay(*args, **options))
            return function(*args, **options)

        return cast(Function[P, T_co], self.attach(public))

    def delay(self, losses: object, other: object = None, **options: Any) -> object:
        """Call the function on the moments of a dask frame, once they are known."""
        missing = options.pop("missing", "raise")
        named = {**self.options, **options}
        levels = [named[name] for name in (*self.level_options, self.level_option) if name]
        pairs = self.models > 1 and self.needs_pairs
        return delay_answer(
            losses, partial(self.function, **options), other=other, levels=levels, pairs=pairs,
            missing=missing,
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class LogMethod(Method):
    """A method that computes a table of numbers from one log.

    As a decorator it makes the public function of the formula below it.

    Parameters
    ----------
    prepare : callable, optional
        Returns the log without the parts that the method ignores.
    group_option : str
        The option naming the level for each of whose labels a result is returned.
    for_differences : bool
        Whether it also applies to differences of two models, as in ``compare(method=)``.
    of_groups : bool
        Whether its only sampling unit is the group, not the point.
    weigh_groups : callable, optional
        Maps the sizes of the groups (and ``correction``, if that is an option) to their weights in
        the mean, and to the factors of their residuals in its variance.
    groups_at_once : bool
        Whether the formula computes all groups of ``by=`` at once, from moments of their cells.
    reads_losses : callable, optional
        Maps the options and the log to whether the formula needs individual losses, even of a lazy
        array.
    """

    prepare: Callable[[Log], Log] | None = None
    group_option: str = "by"
    for_differences: bool = False
    of_groups: bool = False
    weigh_groups: WeighGroups | None = None
    reads_losses: Callable[[Mapping[str, Any], Log], bool] | None = None
    groups_at_once: bool = False
    formula: Callable[..., Result] = field(init=False)

    def __call__(self, formula: Callable[Concatenate[Log, P], Result]) -> Computed[P]:
        """Make the public function, which takes losses in any container."""
        self.formula = formula

        @wraps(formula)
        def public(losses: Losses, *unnamed: object, **given: Any) -> Table:
            if unnamed:
                raise unnamed_option(self.name, unnamed[0], [*signature.parameters.values()])
            options = {**self.options, **given}
            if len(options) > len(self.options):
                unknown = next(name for name in given if name not in self.options)
                raise unknown_option(self.name, unknown, [*self.options], given)
            missing, by = options.pop("missing"), None
            self.check_options(options)
            if self.group_option != self.level_option:
                by = options.pop(self.group_option, None)
            return apply_method(
                losses, partial(self.run, **options), by=by, missing=missing,
                level=options[self.level_option] if self.level_option else None,
                needs_losses=self.needs_losses,
                reads_losses=partial(self.reads_lazy_losses, options),
            )  # fmt: skip

        signature = inspect.signature(formula)
        log, *options = signature.parameters.values()
        losses = log.replace(name="losses", annotation="Losses")
        hints = {option.name: option.annotation for option in options}
        public.__annotations__ = {"losses": Losses, **hints, "return": Table}
        vars(public)["__signature__"] = signature.replace(
            parameters=[losses, *options], return_annotation="Table"
        )
        return cast(Computed[P], self.attach(public))

    def computed_by(
        self, formula: Callable[..., Result]
    ) -> Callable[[Callable[Concatenate[Losses, P], Table]], Computed[P]]:
        """Attach the record to a function that reads its own log and calls a formula."""
        self.formula = formula
        return self.attach

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Options of the formula and their defaults."""
        by = None if self.group_option == self.level_option else self.group_option
        return {name: value for name, value in super().defaults.items() if name != by}

    def reads_lazy_losses(self, options: Mapping[str, Any], log: Log) -> bool:
        """Whether the losses of each carried cell of a lazy array must be in one chunk."""
        if self.reads_losses is None:
            return self.takes_lazy_losses
        return self.reads_losses({**self.defaults, **options}, log)

    def run(self, log: Log, **options: Any) -> Result:
        """Check that the method applies to the log, and compute it."""
        options = {**self.defaults, **options}
        grouped = log.design.by is not None
        if grouped and (not self.groups_at_once or self.reads_lazy_losses(options, log)):
            raise DifferentGroups(f"{self.name} accepts one group at a time.")
        if self.prepare is not None:
            log = self.prepare(log)
        for design in list_kinds(log) if grouped else [log.design]:
            self.require(design, options)
        result = self.formula(log, **options)
        attrs = {**self.facts, **result.attrs}
        result = replace(result, attrs=attrs, takes_means=self.takes_means)
        result = self.qualify(result, log, options)
        calls = dict(result.calls)
        of_sources = self.of_groups and result.attrs.get("by", "source") == "source"
        if of_sources and (log.crossed or (log.fixed_sources and shares_dates(log))):
            here = ~result.has_caution(Caution.NO_LOSSES)
            result = result.add_caution(Caution.DEPENDENCE_IGNORED, here)
            calls[Caution.DEPENDENCE_IGNORED] = NUMBERED_ANEW
        for caution in methods_instead(int(np.bitwise_or.reduce(result.caution, axis=None))):
            if caution not in calls and (call := find_call(caution, log, self.name, options)):
                repeated = REFITS in call and log.design.number("repetition") > 1
                calls[caution] = f"Use {call}." if repeated else call
        return replace(result, calls=calls) if calls else result

    def qualify(self, result: Result, log: Log, options: Mapping[str, Any]) -> Result:
        """Add cautions about a result: none, except for intervals."""
        return result

    def find_residuals(self, log: Log, options: Mapping[str, Any]) -> list[Residuals] | None:
        """Scale the residual means of groups: squares of a column sum to its squared error.

        Returns a table for each group of ``by=``, and the mean of each column; with two levels,
        the table is of the groups of both. None if the sources are fixed.
        """
        if self.weigh_groups is None or log.fixed_sources or options.get("target") == THESE_SOURCES:
            return None
        weigh = self.weigh_groups
        if "correction" in options:
            weigh = partial(weigh, correction=options["correction"])
        tables = []
        for name in list_levels(self, options):
            cells = log.moments((name,))
            ends = [*cells.starts.tolist(), len(cells.count)]
            parts = (cells.take(slice(*bounds)) for bounds in pairwise(ends))
            tables.append([group_residuals(part, weigh) for part in parts])
        return [
            (np.concatenate([residuals for residuals, _ in group]), group[0][1])
            for group in zip(*tables, strict=True)
        ]


NUMBERED_ANEW = "log.attrs['points_are'] = 'nested' if each source numbers its points separately"
"""What to type if points with the same label in several sources are not the same."""


@dataclass(eq=False, kw_only=True)
class IntervalMethod(LogMethod):
    """A method that returns an interval for each column of a log, and its decorator.

    Parameters
    ----------
    claims_too_much : bool
        Whether it is included only as an example of what not to use.
    difference_guarantee : str
        The guarantee for the difference of two models, if it requires relative stability of the
        difference. By default the guarantee is that of one model.
    made_for : tuple of str
        The levels that identify the resampling design this method is made for.
    recognized_by : str
        How such a log is recognized, in words: the reason shown by `interval`.
    """

    for_differences: bool = True
    claims_too_much: bool = False
    difference_guarantee: str = ""
    made_for: tuple[str, ...] = ()
    recognized_by: str = ""

    def qualify(self, result: Result, log: Log, options: Mapping[str, Any]) -> Result:
        """Add cautions about an interval.

        Differences of models are checked for stability, and ignored sources are flagged. Facts that
        the formula states itself, such as those of groups split between folds, are kept.
        """
        if self.of_fixed_models and log.only_tested:
            attrs = dict(result.attrs)
            for name, words in self.of_fixed_models.items():
                attrs[name] = words if attrs[name] == self.facts[name] else attrs[name]
            result = replace(result, attrs=attrs)
        if log.of_contrasts:
            result = qualify_contrast(result, log)
        differences = log.of_differences
        if differences and not (log.of_contrasts and CONSTANT in log.metadata):
            target = OF_TWO + str(result.attrs["target"]).removeprefix(OF_TWO)
            result = replace(result, attrs={**result.attrs, "target": target})
        if self.difference_guarantee and differences and not log.only_tested:
            unstable, attrs = find_unstable(log), dict(result.attrs)
            if unstable is not None:
                result = result.add_caution(Caution.UNSTABLE_DIFFERENCE, unstable)
            if attrs["guarantee"] == self.guarantee:  # others state one of their own
                attrs["guarantee"] = self.difference_guarantee
                attrs["reference"] = f"{self.reference}; {RELATIVE_STABILITY}"
            result = replace(result, attrs=attrs)
        residuals = partial(self.find_residuals, log, options) if self.of_groups else None
        cautions = find_cautions(log, result.columns["estimate"], residuals)
        if log.design.metric and not differences:
            below = is_below_chance(log.metadata, result.columns["estimate"])
            cautions[below] |= np.int64(Caution.BELOW_CHANCE)
        if self.takes_means:
            cautions &= ~np.int64(Caution.ONE_EACH)
        if self.name in OF_NORMAL_LIMITS:  # these count errors themselves, also in large logs
            cautions &= ~np.int64(Caution.FEW_ERRORS)
        if cautions.any():
            cautions[result.has_caution(Caution.NO_LOSSES)] = 0
            cautions &= ~np.int64(result.allows_for)
            result = replace(result, caution=result.caution | cautions)
        if self.of_groups or Caution.SOURCES_IGNORED in result.allows_for:
            return result
        of_means = self.takes_scores or self.takes_means
        return flag_ignored_sources(result, log.design, of_means=of_means)


OF_TWO = "difference of two models in the "
"""How the target of an interval for a difference begins."""

THESE_SOURCES = "these_sources"
"""The target of intervals for the sources of a log, whose sampling units are the points."""


def list_levels(method: LogMethod, options: Mapping[str, Any]) -> list[str]:
    """List the levels whose groups are the sampling units of an interval."""
    by = options.get(method.level_option or "", "source")
    return [by] if isinstance(by, str) else list(by)


def group_residuals(cells: Cells, weigh: WeighGroups) -> Residuals:
    """Scale the residual mean of each group: squares sum to the variance of the mean.

    ``cells`` are the groups. Also return the means over groups, weighted as the interval does.
    """
    share, scale = weigh(cells.count)
    mean = share @ cells.mean
    return scale[:, None] * (cells.mean - mean), cells.origin + mean


def call_winner(log: Log, used: str, options: Mapping[str, Any] | None) -> str:
    """Write the call that accounts for the selection of a model, with the same sampling units."""
    if log.design.by is not None or log.lazy is not None or log.lacks_pairs:
        return ""
    method, arguments = find_method(used), ""
    if method.of_groups and options is not None:
        name = used if used == "out_of_source" else "clustered"
        levels = list_levels(method, options)
        by = {} if levels == ["source"] else {"by": levels if len(levels) > 1 else levels[0]}
        arguments = f"method={name!r}" + (f", options={by!r}" if by else "")
    return f"log.cvci.winner({arguments}), which accounts for the selection"


def flag_serial_dependence(result: Result, flags: IntArray, pairs: Log, used: str) -> Result:
    """Flag a test of differences of models, and name the comparison that this log allows."""
    call = find_call(Caution.SERIAL_DEPENDENCE, pairs, used) if flags.any() else ""
    calls = {Caution.SERIAL_DEPENDENCE: call} if call else {}
    return replace(result, caution=result.caution | flags, calls={**result.calls, **calls})


REFITS = "refit_corrected"
"""The method for differences in repeated cross-validation, which needs no more repetitions."""


def find_call(
    caution: Caution, log: Log, used: str, options: Mapping[str, Any] | None = None
) -> str:
    """Find a method to call on this log instead of the one used; empty if there is none.

    ``options`` are those of the method used, if it is not the default of the log. Whether a method
    applies is cached with the design of the log, which logs of different losses share.
    """
    if caution is Caution.SELECTED:
        return call_winner(log, used, options)
    if log.cells is not None and log.cells.of_chunk:
        return ""
    of_pairs, known, by = log.pairs is not None, log.design.facts, log.design.by
    for entry in methods_instead(int(caution)).get(caution, ()):
        name, _, listed = entry.partition("(")
        if not log.in_memory and (find_method(name).needs_losses or "hall" in listed):
            continue
        option = "by" if of_pairs else find_method(name).group_option
        groups = [] if by is None else [f"{option}={by!r}"]
        if listed:
            unknown = log.lazy is not None  # whether all losses are 0 or 1
            other = ("wilson" in listed and (unknown or not log.zero_one().all())) or (
                "hall" in listed and log.design.metric
            )
            if name == used and not (of_pairs or other):
                return f"log.cvci.{name}({', '.join([listed[:-1], *groups])})"
            continue
        sized = name != "corrected_t" or "n_train" in log.metadata
        key = ("allows", name, of_pairs, log.design.metric, by, sized)
        if name != used and key not in known:
            method = find_method(name)
            kinds = list_kinds(log)
            sized = sized or (
                all(kind.has("fold") and covers_all_points(kind) for kind in kinds)
                and (by is None or share_models(log.design, fold_levels(log.design)) is not None)
            )
            words = next(filter(None, map(method.problem, kinds)), None)
            if words is None and method.of_losses is not None:
                words = method.of_losses(log)
            known[key] = words is None and sized and (method.for_differences or not of_pairs)
        if name != used and known[key]:
            if of_pairs:
                return f"log.cvci.compare({', '.join([f'method={name!r}', *groups])})"
            return f"log.cvci.{name}({', '.join(groups)})"
    return ""


def apply_method(
    losses: object,
    run: Callable[[Log], Result],
    *,
    by: str | None = None,
    level: str | Sequence[str] | None = None,
    missing: str = "raise",
    axis: Axis | None = None,
    needs_losses: bool = False,
    reads_losses: ReadsLosses | None = None,
) -> Table:
    """Read a log, run a method on it or on its part for each label of ``by``, and label the result.

    ``level`` is another level whose labels the method needs, or two of them, and ``axis`` names
    the dimension stacked in its result. ``reads_losses`` decides whether a lazy array is computed
    cell by cell.
    """
    levels = () if level is None else (level,) if isinstance(level, str) else tuple(level)
    if is_dask_frame(losses) and not needs_losses:
        ask = partial(apply_method, run=run, by=by, level=level, axis=axis)
        answer: Table = delay_answer(losses, ask, levels=(by, *levels), missing=missing)
        return answer
    log = read(losses, missing=missing, by=by, levels=levels)
    if levels and (by is None or log.lazy is not None):
        log.design.require_labels(levels)
    elif levels:
        run = partial(run_labelled, run, levels)
    return answer_log(
        log, run, by=by, axes=() if axis is None else (axis,), reads_losses=reads_losses
    )


def answer_log(
    log: Log,
    run: Callable[[Log], Result],
    *,
    by: str | None = None,
    axes: Sequence[Axis] = (),
    reads_losses: ReadsLosses | None = None,
    finish: Callable[[Result], Result] | None = None,
    example: Callable[[Log], Result] | None = None,
    all_pairs: bool = False,
) -> Table:
    """Run a method on a log, in memory or lazy; see `apply_method`.

    ``finish`` adds columns that depend on all pairs and carried cells to the result in memory.
    ``example`` is a faster method whose result has the same form. ``all_pairs``: whether all pairs
    of models are needed in addition to those of the log.
    """
    if by is not None and not (by == METRIC and METRIC in log.labels.dims):
        labels = Groups(log, by).labels
        axes = ((by, labels), *axes)
        each = answer_groups if log.lazy is None else answer_lazy_groups
        run = partial(each, by, labels, run)
        example = None if example is None else partial(each, by, labels, example)
    if log.lazy is None:
        whole = log.gaps is None and "metrics" not in log.metadata
        result = run(log) if whole else answer_cells(log, run)
        return log.label(result if finish is None else finish(result), axes)
    table: Table = map_method(
        log, run, axes, by=by, reads_losses=reads_losses, example=example, all_pairs=all_pairs
    )
    return table


def run_labelled(run: Callable[[Log], Result], levels: Sequence[str], log: Log) -> Result:
    """Run a method that needs labels of additional levels at every evaluation."""
    log.design.require_labels(levels)
    return run(log)


# --- methods by name ------------------------------------------------------------------------------


@cache
def find_method(name: str) -> LogMethod:
    """Import an interval or other statistic of one log, and return its record."""
    record: LogMethod = find_function(name).record
    return record


def load_methods(names: Iterable[str]) -> list[Any]:
    """Import the records of some methods; a broken file disables only its own method."""
    records = []
    for name in names:
        with warn_if_broken(f"cvstats.{name}"):
            records.append(find_function(name).record)
    return records


def list_methods() -> list[Method]:
    """List the records of all methods: intervals, other statistics, comparisons."""
    return load_methods([*INTERVALS, *STATISTICS, *COMPARISONS])


@cache
def interval_names(*, for_differences: bool = False) -> tuple[str, ...]:
    """List the methods that return intervals; optionally only those for differences."""
    if not for_differences:
        return tuple(INTERVALS)
    return tuple(method.name for method in load_methods(INTERVALS) if method.for_differences)


def flag_ignored_sources(result: Result, design: Design, *, of_means: bool) -> Result:
    """Flag a result whose method treats the points of one source as independent.

    Results without losses, and folds that are the sources, are not flagged.
    """
    if "source" not in design.levels:
        return result
    ignored: MaskArray = np.full((1, 1), design.has("source"))
    if design.by is not None:
        ignored = tally(design, "source").n_cells > 1
    if of_means and ignored.any():
        ignored &= ~find_whole_sources(design)
    settled = np.int64(Caution.NO_LOSSES | Caution.SOURCES_AS_FOLDS)
    each = np.repeat(ignored, len(result.caution) // len(ignored))
    flags = flag(Caution.SOURCES_IGNORED, each & ((result.caution & settled) == 0))
    return replace(result, caution=result.caution | flags)
