"""The recommended interval for a log, the table of all methods, and what a study measured.

The figures come from ``python -m evidence`` in the project's repository: populations with known
errors, thousands of logs from each, and how often intervals contained their target.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from cvstats.comparisons._pairs import default_difference
from cvstats.core.design import Design
from cvstats.core.folds import count_folds, covers_all_points, find_crossed, is_resampled
from cvstats.core.results import WORKS, Result
from cvstats.errors import LogError, checked_choice, spelled
from cvstats.facts import LogFacts
from cvstats.formatting import SentenceTable
from cvstats.intervals import find_method, interval_names, list_methods
from cvstats.intervals._limits import (
    OF_NORMAL_LIMITS,
    OF_PROPORTIONS,
    cut_limits,
    name_limits,
    take_own_limits,
)
from cvstats.intervals._method import IntervalMethod, Method, answer_log
from cvstats.intervals._requirements import (
    POINTS,
    recommend_method,
    recommend_options,
    suggest_study,
    take_points,
    takes_two_ways,
)
from cvstats.large.frames import delay_answer
from cvstats.log.gaps import answer_cells, of_metric
from cvstats.log.groups import METRIC, Groups
from cvstats.log.log import WITHOUT_PAIRS, Log, Losses, Table, metrics_of_cells, of_its_kind
from cvstats.log.loss_checks import find_dates, find_whole
from cvstats.log.metadata import has_several
from cvstats.log.read import is_dask_frame, read
from cvstats.options import Missing, check_alpha, known_name
from cvstats.registry import COMPARISONS, unknown_option

BY_NAME = "requested by name"
"""The reason of a method that the caller named."""


def methods(losses: Losses) -> pd.DataFrame:
    """List all methods, whether each applies to this log, and what is missing if it does not.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.

    Returns
    -------
    DataFrame
        Indexed by ``method``, those that apply first, and among them intervals before
        comparisons, with invalid methods last: ``applies`` (bool), ``why_not`` (empty, or what is
        missing and which resampling plan provides it), ``target`` (the quantity the interval is
        for), ``guarantee``, ``measured`` (coverage in simulated populations similar to this log,
        with about as many points), ``fits`` (the number of model fits), ``needs`` and
        ``reference``. ``attrs["suggestion"]`` is the recommendation of a large comparison study
        for this number of independent points; it is empty for groups and for language models.

    Raises
    ------
    LogError
        If the log is inconsistent.

    See Also
    --------
    cvstats.interval : The recommended interval for the log.
    cvstats.diagnose : Problems of the log, with advice.

    Notes
    -----
    A method applies if it can be computed with its defaults. It may still require a number that is
    not in the log, such as the training size of random splits or the margin of an equivalence test,
    and it can fail because of the losses, for example if all losses of a source are equal. A method
    that does not apply may apply with other options, as `quadratic` with ``estimator="theta_3"``
    does to leave-one-out.

    References
    ----------
    Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), Constructing
    confidence intervals for "the" generalization error, arXiv:2409.18836.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> table = cvstats.methods(losses)
    >>> table.loc[["wald", "corrected_t", "conservative_z"], ["applies", "fits"]]
                    applies                                     fits
    method
    wald               True                    K for each repetition
    corrected_t        True  1 for each split, K for each repetition
    conservative_z    False  J (2R + 1) for J splits and R divisions
    """
    if is_dask_frame(losses):
        answer: pd.DataFrame = delay_answer(losses, methods)
        return answer
    log = read(losses)
    of_default = find_problem_of_default(log)
    found = [
        (method, find_problem(method, log) or (of_default if method.of_interval else None))
        for method in list_methods()
    ]
    binary = find_binary(log)
    split = log.design.has("source") and bool(find_crossed(log.design, "source").any())
    rows = []
    for method, words in sorted(found, key=rank_method):
        facts = {
            **method.facts,
            **(method.of_fixed_models if log.only_tested else {}),
            **(method.of_split_sources if split else {}),
        }
        rows.append(
            {
                "method": method.name,
                "applies": words is None,
                "why_not": words or "",
                "target": facts["target"],
                "guarantee": facts["guarantee"],
                "measured": quote_study(method.name, log, binary=binary),
                "fits": method.fits,
                "needs": method.needs,
                "reference": method.reference,
            }
        )
    table = MethodTable(rows, index=pd.Index([row.pop("method") for row in rows], name="method"))
    table.attrs = {"suggestion": suggest_study(log)}
    return table


class MethodTable(SentenceTable):
    """The table of `methods`: each with its target, or what is missing in the log."""

    def list_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield a sentence for each method."""
        for name, applies, why_not, target in zip(
            self.index, self["applies"], self["why_not"], self["target"], strict=True
        ):
            yield str(name), f"yes: {target}" if applies else f"no: {why_not}"


def quote_study(name: str, log: Log, *, binary: bool | None, default: bool = False) -> str:
    """Quote simulation results for similar logs; of metrics, only the AUC was studied here.

    Empty if none is similar, and for logs of scores or without point labels. ``binary`` is None
    if it is not known whether all losses are 0 or 1. With ``default``, the limits are those that
    `interval` chose.
    """
    facts, design = log.metadata, log.design
    made = "quantiles" in facts  # a log derived from another, which was not studied
    made |= bool(design.metric) and (facts.get("metric") != "auc" or "contrast" in facts)
    if log.fixed_sources or made or (name == "clustered" and log.crossed):
        return ""
    points = design.splits().points
    if design.scores or points is None:
        return ""
    repeated = "repetition" in design.levels
    designs: tuple[str, ...] = ("points", "repeated answers")[: 1 + repeated]
    if design.has("source"):
        designs = ("groups", "sources") if name != "ordered" else ()
    elif name == "ordered":
        designs = ("ordered",)
    kinds = ("score",) if design.metric else ("zero_one",) * (binary is not False)
    if not (design.metric or binary):
        kinds += ("squared", "absolute", "log")
    tested = name in COMPARISONS and (log.only_tested or tests_one_set(design))
    return write_measured(name, points, designs, kinds, default=default, tested=tested)


def tests_one_set(design: Design) -> bool:
    """Whether every repetition evaluates the same points, which are not in folds."""
    return not is_resampled(design) and count_folds(design) == 1 and covers_all_points(design)


def find_binary(log: Log) -> bool | None:
    """Whether all losses are 0 or 1; None if they are lazy."""
    return None if log.lazy is not None or log.design.metric else bool(log.zero_one().all())


def rank_method(found: tuple[Method, str | None]) -> tuple[bool, bool, bool, str]:
    """Sort key: applicable methods first, invalid ones last, then intervals, then by name."""
    method, words = found
    claims = isinstance(method, IntervalMethod) and method.claims_too_much
    return words is not None, claims, not isinstance(method, IntervalMethod), method.name


def find_problem(method: Method, log: Log) -> str | None:
    """Describe why a method does not apply to a log, by design or losses; None if it applies."""
    if (words := method.problem(log.design)) is not None:
        return words
    if not log.in_memory and (words := find_problem_of_cells(method, log)):
        return words
    models = len(log.labels.models)
    if models < method.models:
        return (
            f"the log has only {models} model{'s' if models > 1 else ''}; {method.name} needs more."
        )
    return method.of_losses(log) if method.of_losses is not None else None


def find_problem_of_default(log: Log) -> str | None:
    """Describe why the default interval of differences does not apply; None if it does."""
    try:
        method, _ = find_method(default_difference(log)), recommend_options(log)
    except LogError as error:
        return str(error)
    words = find_problem(method, log)
    return words and f"{method.name} needs {method.needs}; {words}"


NEEDS_LOSSES = "it needs individual losses"
"""How the reason begins why moments do not suffice for a method."""


def find_problem_of_cells(method: Method, log: Log) -> str | None:
    """Describe what moments of cells or a lazy array do not provide."""
    lazy = log.lazy is not None
    if lazy and method.takes_lazy_losses:
        return None
    if method.takes_kept_losses and find_whole(log) is not None:
        return None
    averages = method.needs_points and log.design.number("repetition") > 1
    if method.needs_losses or (averages and tests_one_set(log.design)):
        have = "this array is lazy" if lazy else "only moments of cells are available"
        return f"{NEEDS_LOSSES}, but {have}. Use the log in memory."
    if lazy and not method.lazy:
        return (
            f"it is not computed lazily. Aggregate first: "
            f"cvstats.Moments.of_log(losses).{method.name}()."
        )
    if method.models > 1 and method.needs_pairs and log.lacks_pairs:
        return f"{WITHOUT_PAIRS}."
    return None


@of_its_kind  # type: ignore[arg-type]  # an option may not be named losses
def interval(
    losses: Losses,
    *,
    method: str | None = None,
    points: Literal["crossed", "nested"] | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
    **options: Any,
) -> Table:
    """Compute the interval that is recommended for the design of this log.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    method : str, optional
        The name of an interval, to use it regardless of the design. The default respects groups:
        one source left out at a time gives `out_of_source`; folds of whole sources, and one test
        set of several sources, `clustered`. If the same points occur in several sources, such as
        dates in stores, both are sampling units. Sources split over the folds are ignored, and
        ``caution`` contains ``sources ignored``. Otherwise one test set gives `holdout`; K-fold
        cross-validation, leave-one-out and their repetitions `wald`; random splits, and logs of one
        score per split, `corrected_t`; splits of the data and of its halves `conservative_z`;
        replaced points `replace_one`; nested folds `nested_cv`; bootstrap samples
        ``bootstrap_632``, or ``bootstrap_oob`` without the fit to the sample itself or without a
        no-information rate in ``attrs``; `case_bootstrap` and `two_stage` for the logs of these
        plans. For 0/1 losses, `holdout` and `wald` then use Wilson's limits, or Clopper-Pearson
        limits with fewer than 10 of the rarer outcome; bounded metrics, such as AUC, F1 and the C
        index, and 0/1 losses of random splits, with sources as the sampling unit or averaged over
        fixed sources, or of a test set that was evaluated several times, have exact limits by Korn
        and Graubard. Limits of other methods for 0/1 losses and bounded metrics, and of one score
        per split, are cut at the bounds.
    points : {"crossed", "nested"}, optional
        If the same point labels occur in several sources, whether they mean the same points (items
        rated by judges) or each source numbers its points separately. By default they are the same,
        unless ``attrs["points_are"]`` is "nested". The attr applies to all functions; lazy arrays
        need "crossed" for points that occur in several sources.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels, with the same method for
        all; for ``"metric"``, with the default method of each. Metrics with the same evaluations
        have an interval each without it.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    **options
        Options of the method, such as ``variance="within-fold"`` for `wald`; they replace the
        choices that `interval` makes for bounded losses. ``target="these_sources"`` uses `ordered`
        if the sources have common points that are times.

    Returns
    -------
    DataFrame or Dataset
        The result of the method, with ``attrs["reason"]``, which explains the choice and reports
        how often its intervals contained the true value in simulated populations similar to this
        log, and ``attrs["suggestion"]``, the recommendation of a large comparison study for this
        number of independent points; empty for groups and for language models, which were not
        studied. A suggestion requires a new experiment and is not applied.

    Raises
    ------
    LogError
        If the method does not apply to the log: the message names the missing level or number.
        Also if the labels of ``by`` require different methods.
    TypeError
        If the method does not have one of the options.

    See Also
    --------
    cvstats.methods : Every method, and whether the log allows it.
    cvstats.compare : The differences of models, with the same choice of method.
    cvstats.winner : The interval of a model that was selected on this log.

    References
    ----------
    Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), Constructing
    confidence intervals for "the" generalization error, arXiv:2409.18836.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> result = cvstats.interval(losses)
    >>> print(result.attrs["method"], "-", result.attrs["reason"].partition(";")[0])
    wald - 10 repetitions of a partition into 10 folds: every point is tested once in each
    """
    check_alpha(alpha)
    method = known_name("method", method, losses)
    checked_choice("method", method, (*interval_names(), None))
    checked_choice("points", points, (*POINTS, None))
    if method is not None:
        check_options(method, options)
    if is_dask_frame(losses):
        ask = partial(interval, method=method, points=points, alpha=alpha, by=by, **options)
        answer: Table = delay_answer(losses, ask, levels=(by,), missing=missing)
        return answer
    log = take_points(read(losses, missing=missing, by=by), points)
    if by is not None and not (by == METRIC and METRIC in log.labels.dims):
        return interval_by_label(log, by, method, alpha, options)
    asked = method is not None or bool(options)
    name, reason, chosen = choose(log, method, options)
    facts = {"reason": reason, "suggestion": suggest_study(log)}
    describe = partial(quote_study, name, log, default=not asked)
    run = partial(find_method(name).run, alpha=alpha, **chosen)
    if log.lazy is not None:
        run = run if asked else partial(run_if_recommended, name, alpha)
        reads_losses = partial(find_method(name).reads_lazy_losses, chosen)
        facts["reason"] = "; ".join(filter(None, [reason, describe(binary=None)]))
        table: Any = answer_log(log, run, reads_losses=reads_losses)
        facts |= {} if asked else facts_of_lazy_limits(log, name, table.attrs)
        return cast(Table, table.assign_attrs(facts))
    several = method is None and "metrics" in log.metadata and metrics_of_cells(log) is not None
    if several:
        run = partial(run_recommended, alpha, options)
    elif not asked:
        run = partial(run_with_wilson, name, alpha)
    result = answer_cells(log, run)
    if several:
        facts["reason"] = str(result.attrs.get("reason", OF_METRICS))
    else:
        kind = result.attrs.get("interval")
        whose = "Wilson's" if kind == "wilson" else "those of Clopper and Pearson for rare outcomes"
        of_zero_one = not asked and kind in OF_PROPORTIONS
        limits = f"the losses are 0 or 1, so the limits are {whose}" if of_zero_one else ""
        measured = describe(binary=find_binary(log))
        facts["reason"] = "; ".join(filter(None, [reason, limits, measured]))
    return log.label(replace(result, attrs={**result.attrs, **facts}))


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Reject options that the method does not have, or that are invalid for every log."""
    record = find_method(name)
    for option in options:
        if option not in record.options:
            shared = ["method", "points", "alpha", "by", "missing"]
            known = [*dict.fromkeys([*shared, *record.options])]
            raise unknown_option("interval", option, known, options)
    record.check_options(options)


Choice = tuple[str, str, Mapping[str, Any]]
"""The name of a method, the reason, and its options."""


def choose(log: Log, method: str | None, options: Mapping[str, Any]) -> Choice:
    """Choose the method, unless it is given, with the reason and all options."""
    if method is not None:
        return method, BY_NAME, options
    name, reason = recommend_method(log)
    if not options:
        return name, reason, recommend_options(log)
    crossed = name == "clustered" and takes_two_ways(log) and find_dates(log.planned)
    if options.get("target") == "these_sources" and (crossed or name == "ordered"):
        name, options = "ordered", {key: options[key] for key in options if key != "target"}
        reason += "; for these sources, only the times are sampled" * bool(crossed)
    check_options(name, options)
    return name, reason, options if name == "ordered" else {**recommend_options(log), **options}


def interval_by_label(
    log: Log, by: str, method: str | None, alpha: float, options: Mapping[str, Any]
) -> Table:
    """Compute an interval for each label of a level, by the method recommended for all of them."""
    of_metrics = by == METRIC and has_several(log.metadata)
    if method is None and log.lazy is not None and log.lazy.known_later:
        raise LogError(
            f"this log is lazy, so the default method for the labels of {by!r} cannot be "
            f"determined. Pass a method by name, as in interval(losses, by={by!r}, "
            "method='wald'); or load the log: log.compute()."
        )
    chosen: dict[str, Choice]
    if method is not None:
        chosen = {"": (method, BY_NAME, options)}
    else:
        names = metrics_of_cells(log)
        parts = [log] if names is None else [of_metric(log, name) for name in dict.fromkeys(names)]
        chosen = {  # a method depends on how the folds of a metric were combined
            part.design.metric: choose_for_labels(part, by, options, of_metrics=of_metrics)
            for part in parts
        }
    for name, _, own in chosen.values():
        check_options(name, own)
    name, reason, options = next(iter(chosen.values()))
    run = partial(run_with_wilson, name, alpha, options=options)
    if method is not None:
        run = partial(find_method(name).run, alpha=alpha, **options)
    elif len({one for one, _, _ in chosen.values()}) > 1:
        run, reason = partial(run_for_metric, alpha, chosen), OF_METRICS
    facts = {"reason": reason} | ({"suggestion": ""} if log.lazy is None else {})
    if method is None and of_metrics:
        run, facts = partial(run_recommended, alpha, options), {"suggestion": ""}
    reads_losses = partial(find_method(name).reads_lazy_losses, options)
    if method is None:
        reads_losses = partial(reads_lazy_losses, name, options)
    run = partial(add_attrs, facts, run)
    table: Any = answer_log(log, run, by=by, reads_losses=reads_losses)
    table.attrs.setdefault("reason", OF_METRICS)
    if log.lazy is not None and method is None and not options:
        table.attrs |= facts_of_lazy_limits(log, name, table.attrs)
    return cast(Table, table)


def reads_lazy_losses(name: str, options: Mapping[str, Any], log: Log) -> bool:
    """Whether a default method needs individual losses of a group, with its default options."""
    chosen = {**recommend_options(log), **options}
    return find_method(name).reads_lazy_losses(chosen, log)


def facts_of_lazy_limits(log: Log, name: str, attrs: Mapping[str, Any]) -> dict[str, str]:
    """Name the limits of a lazy interval, which depend on its losses, and the works on them."""
    limits, cited = name_limits(log, name, attrs.get("interval")), attrs["reference"]
    if not limits:
        return {}
    works = (work for part, work in WORKS["interval"].items() if part in limits)
    reference = "; ".join([cited, *(work for work in works if work not in cited)])
    return {"interval": limits, "reference": reference}


def choose_for_labels(log: Log, by: str, options: Mapping[str, Any], *, of_metrics: bool) -> Choice:
    """Choose the method for all labels of a level, with the reason and the options passed.

    Raises
    ------
    LogError
        If the labels have different default methods, unless they are metrics.
    """
    groups = Groups(log, by)
    chosen = {}
    for at in reversed(groups.kinds()):
        part = groups.part(at) if log.lazy is None else groups.outline(at)
        *choice, taken = choose(part, None, options)
        chosen[tuple(choice)] = at, taken
    (name, reason), (first, taken) = min(chosen.items(), key=lambda found: found[1][0])
    labels = groups.labels
    if len(labels) > 1:  # the others may have more points, or fewer
        reason = f"{by}={spelled(labels[first])}: {reason}"
    for (other, _), (at, _) in chosen.items():
        if other != name and not of_metrics:
            kinds = list(map(groups.kind, groups.kinds()))
            for_all = [
                one for one in dict.fromkeys((name, *(each for each, _ in chosen)))
                if all(find_method(one).problem(kind, options) is None for kind in kinds)
            ]  # fmt: skip
            way = "Analyze each label separately."
            if for_all:
                way = f"Pass a method by name: interval(losses, by={by!r}, method={for_all[0]!r})."
            raise LogError(
                f"the labels of {by!r} have different default methods: {name} for "
                f"{spelled(labels[first])}, but {other} for {spelled(labels[at])}. {way}"
            )
    return name, reason, {option: taken[option] for option in options if option in taken}


def add_attrs(facts: Mapping[str, str], run: Callable[[Log], Result], log: Log) -> Result:
    """Run a method, and add attrs to its result."""
    result = run(log)
    return replace(result, attrs={**result.attrs, **facts})


OF_METRICS = "the default method of each metric"
"""The reason for different methods of several metrics."""


def run_recommended(alpha: float, options: Mapping[str, Any], log: Log) -> Result:
    """Run the method that is recommended for one of several metrics."""
    name, reason, chosen = choose(log, None, options)
    taken = {option: chosen[option] for option in options if option in chosen}
    run = partial(run_with_wilson, name, alpha, options=taken)
    return add_attrs({"reason": reason}, run, log)


def run_for_metric(alpha: float, chosen: Mapping[str, Choice], log: Log) -> Result:
    """Run the method that was chosen for one of several metrics."""
    name, _, options = chosen[log.design.metric]
    return run_with_wilson(name, alpha, log, options=options)


def run_if_recommended(name: str, alpha: float, log: Log) -> Result:
    """Run a method chosen before the evaluations were computed, if it is still recommended."""
    recommend_options(log)
    right, reason = recommend_method(log)
    if right != name:
        raise LogError(
            f"interval found {reason}, for which {right!r} is the default method; before the "
            f"losses of this lazy array were computed, {name!r} was expected. Pass the method by "
            f"name: interval(losses, method={right!r})."
        )
    return run_with_wilson(name, alpha, log)


def run_with_wilson(
    name: str, alpha: float, log: Log, options: Mapping[str, Any] = MappingProxyType({})
) -> Result:
    """Run a method; without options, with limits within the bounds of proportions and metrics."""
    chosen = recommend_options(log) if name in ("clustered", "holdout") else {}
    result = find_method(name).run(log, alpha=alpha, **{**chosen, **options})
    if options:
        return result
    if log.of_differences:
        from cvstats.comparisons.compare import cut_differences, take_limits_of_differences

        compute = partial(take_limits_of_differences, result, alpha=alpha)
        return cut_differences(compute, log)
    result = take_own_limits(result, log)
    if name in OF_NORMAL_LIMITS and "range" not in log.metadata:
        return result
    return cut_limits(result, log, declared=True)


def run_other_method(log: Log, *, method: str, alpha: float) -> Table:
    """Compute an interval by a method other than the default, with the limits of a default."""
    reads_losses = partial(find_method(method).reads_lazy_losses, {})
    return answer_log(log, partial(run_with_wilson, method, alpha), reads_losses=reads_losses)


def group_interval(facts: LogFacts, *, alpha: float) -> tuple[str, Table]:
    """Compute the recommended interval if its sampling unit is the source.

    Otherwise, if sources are split, that of `clustered`. Returns a short name of its target, and
    the result.
    """
    name = facts.recommended[0]
    chosen = find_method(name).of_groups
    method = find_method(name if chosen else "clustered")
    if chosen:
        result = facts.apply(interval, method=None, alpha=alpha)
    else:
        result = facts.apply(run_other_method, method=method.name, alpha=alpha)
    if method.plan and facts.attrs.get("sources_are") == "fixed":
        return "mean over all", result
    return "new source" if method.plan else f"all ({method.name})", result


# --- what a study with known errors measured ------------------------------------------------------


Row = dict[str, Any]

USED_BY = {"refit_corrected": ("compare", "repeated_k_fold(")}
"""A method that was measured as the default of another one on some plans."""


@cache
def read_figures() -> dict[str, Any]:
    """Read the results bundled with the package."""
    text = files("cvstats").joinpath("evidence.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def write_measured(
    method: str,
    points: int,
    designs: tuple[str, ...],
    kinds: tuple[str, ...],
    *,
    default: bool,
    tested: bool,
) -> str:
    """Describe the results of a method at the number of points nearest to that of a log."""
    rows = [
        min(found, key=lambda row: abs(np.log(row["n"] / points)))
        for found in by_population(method, designs, kinds, default=default, tested=tested)
    ]
    if not rows:
        return ""
    sizes = {row["n"] for row in rows}
    over = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
    wrong = [row["size"] if "size" in row else 1 - row["coverage"] for row in rows]
    at = int(np.argmax(wrong))
    titles = {one["name"]: one["title"] for one in read_figures()["populations"]}
    worst = titles[rows[at]["population"]]
    if rows[0].get("power") is not None:
        what, shares = "tests at 5% rejected equality of equally good models", wrong
        if method == "equivalence":
            what = "tests at 5% called models equivalent that differ by the margin"
    else:
        what, shares = "95% intervals contained the true value", [1 - share for share in wrong]
    middle, end = (f"{100 * share:.0f}%" for share in (np.median(shares), shares[at]))
    if len(rows) == 1:
        return f"in a simulated population (n = {over}), {what} in {end} of runs: {worst}"
    return (
        f"in {len(rows):,} simulated populations (n = {over}), {what} in {middle} of runs (median) "
        f"and in {end} in the worst case: {worst}"
    )


def by_population(
    method: str, designs: tuple[str, ...], kinds: tuple[str, ...], *, default: bool, tested: bool
) -> Iterator[list[Row]]:
    """Collect the rows of a method by population, for populations similar to a log.

    With ``default``, those of `interval` where it chose this method, if the losses are 0/1 or the
    metric is the AUC; for other losses, `interval` uses the limits of the method. A comparison of
    models that were only ``tested`` was measured on test sets, others on refitted models.
    """
    study = read_figures()
    name, plan = USED_BY.get(method, (method, ""))
    compared = [
        row
        for row in study["comparisons"]
        if method in USED_BY or row["plan"].startswith("test set") == tested
    ]
    asked = [
        row
        for row in (*study["intervals"], *compared)
        if row["method"] == name and row["plan"].startswith(plan)
        if row.get("coverage", row.get("size")) is not None
    ]
    usual = asked[0]["options"] if asked and all(row["options"] for row in asked) else {}
    asked = [row for row in asked if row["options"] == usual]
    if default and kinds in (("zero_one",), ("score",)):
        asked = [row for row in study["intervals"] if row.get("chosen") == method] or asked
    for population in study["populations"]:
        if population["design"] not in designs or population["kind"] not in kinds:
            continue
        if found := [row for row in asked if row["population"] == population["name"]]:
            yield found
