"""Helpers shared by paired comparisons: models, differences and their interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.folds import count_folds, fold_levels, repetition_level
from cvstats.core.loss_columns import LossColumns
from cvstats.core.orientation import targets_of
from cvstats.core.results import Result, scale_errors
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import (
    MOST,
    LogError,
    checked_choice,
    is_number,
    listed,
    looked_up,
    nearest,
    unpaired,
)
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._limits import (
    BOUNDED,
    OF_SPLITS,
    PROPORTIONS,
    add_pseudo_errors,
    compare_numerators,
)
from cvstats.intervals._method import OF_TWO, REFITS, RELATIVE_STABILITY, WeighGroups, answer_log
from cvstats.intervals._requirements import (
    ignores_refits,
    recommend_method,
    recommend_options,
    repeats_refits,
    shows_refits,
)
from cvstats.intervals._stability import widen_one_partition
from cvstats.intervals.holdout import flag_seeds
from cvstats.large.lazy import concat_logs
from cvstats.log.align import CONSTANT, align_logs, same_facts, zeros_like
from cvstats.log.gaps import drop_gaps
from cvstats.log.groups import DifferentGroups, Groups
from cvstats.log.log import Log, Losses
from cvstats.log.loss_checks import find_whole
from cvstats.log.metadata import SIDES, has_several, has_several_contrasts, is_ratio, is_root
from cvstats.log.read import MISSING, read
from cvstats.log.tables import as_container

Options: TypeAlias = Mapping[str, Any] | None


# --- which models ---------------------------------------------------------------------------------


def choose_pairs(log: Log, reference: Hashable) -> Log:
    """Choose the pairs to compare, and return the log of their differences."""
    models = list(log.labels.models)
    m = len(models)
    if m < 2:
        raise one_model()
    if words := getattr(log.labels, "not_compared", ""):
        raise LogError(words)
    if reference is None:
        labels = log.labels.of_pairs(list(combinations(models, 2)))
        return log.with_pairs(*np.triu_indices(m, 1), labels)
    at = looked_up(reference, {model: i for i, model in enumerate(models)})
    if at is None:
        raise LogError(
            f"Unknown model {reference!r}. Expected reference to be one of "
            f"{listed(map(repr, models))}.{nearest(reference, models)}"
        )
    left = np.delete(np.arange(m), at)
    labels = log.labels.of_pairs([(models[i], reference) for i in left])
    return log.with_pairs(left, np.full(m - 1, at), labels)


def one_model() -> LogError:
    """Make the error for a log of one model."""
    return LogError(
        "the log has only one model. Expected at least two: pass the other log, as in "
        "a.cvci.compare(b), or a frame with a column for each model (an array with a "
        "dimension 'model')."
    )


def refuse_targets(log: Log, what: str) -> None:
    """Reject a metric with a target value, or different units: models cannot be ranked."""
    if words := getattr(log.labels, "not_compared", ""):
        raise LogError(words)
    for metric, target in targets_of(log.metadata).items():
        raise LogError(
            f"{what} ranks models, but {metric} has the target value {target:g}: neither a "
            "larger nor a smaller value is better. Expected a loss or a score, such as "
            "loss='brier'. Use interval for each model, or compare for their differences."
        )


def refuse_impossible(option: str, size: float, log: Log, difference: FloatArray) -> None:
    """Refuse a difference that 0/1 losses, or a metric with a range, cannot have."""
    low, high = log.metadata.get("range", (-np.inf, np.inf))
    if size >= 1 and np.any(difference) and log.zero_one().all():
        low, high = 0.0, 1.0
    if size < high - low or has_several(log.metadata):
        return
    points = "1 percentage point" if size == 1 else f"{size:g} percentage points"
    raise LogError(
        f"{option}={size:g} is too large, because all values are between {low:g} and {high:g}. "
        f"Expected a smaller difference; {option}={size / 100:g} is {points}."
    )


def check_one_partner(other: Losses | None, reference: Hashable) -> None:
    """Reject other= together with reference=."""
    if other is not None and reference is not None:
        raise LogError("other and reference were both given. Expected only one of them.")


def compare_pairs(
    losses: Losses,
    other: Any,
    reference: Hashable,
    missing: str,
    run: Callable[[Log], Result],
    *,
    by: str | None = None,
    levels: Sequence[str] = (),
    prepare: Callable[[Log], Log] | None = None,
    **how: Any,
) -> Any:
    """Run a comparison on pairs of models, now or when lazy losses are computed.

    ``by`` is a level whose labels are compared separately, and ``levels`` are the levels named in
    the options of the interval. ``prepare`` records in the log what the caller specified about it.
    ``how`` are the options of `answer_log`. If ``other`` is 0, differences are compared with no
    difference; this is the default for a log of one difference, or of differences between groups.
    """
    metadata: Any = getattr(losses, "attrs", {})
    kind = metadata.get("kind")
    alone = other is None and reference is None and kind is not None
    if alone and (has_several_contrasts(losses) or len(read(losses).labels.models) == 1):
        other = 0
    if other is not None and is_number(other):
        if other != 0 or kind is None:
            way = f" An error rate has a name: alpha={other!r}." if 0 < other < 1 else ""
            raise LogError(
                f"other={other!r} is a number. Expected a log, or 0 if the log has differences, as "
                f"returned by difference or contrast.{way}"
            )
        other = zeros_like(losses)
    log = read_pairs(losses, other, reference, missing, levels, by)
    log = log if prepare is None else prepare(log)
    return answer_log(log, run, by=by, **how)


def read_pairs(
    losses: Losses,
    other: Losses | None,
    reference: Hashable,
    missing: str,
    levels: Sequence[str] = (),
    by: str | None = None,
) -> Log:
    """Pair the models of one log, or each model with the same model in another log."""
    if other is None:
        return choose_pairs(read(losses, missing=missing, levels=levels, by=by), reference)
    check_one_partner(other, reference)
    checked_choice("missing", missing, MISSING)
    one, two = (as_container(log, (by, *levels)) for log in (losses, other))
    facts = same_facts(one, two)
    two = align_logs(one, two)
    first, second = (read(log, levels=levels, by=by) for log in (one, two))
    names = [
        ("model" if a is None else a, "other" if b is None else b)
        for a, b in zip(first.labels.models, second.labels.models, strict=True)
    ]
    if first.lazy is not None or second.lazy is not None:
        models = [
            f"{name or 'log'} of the {side} log"
            for log, side in ((first, "first"), (second, "second"))
            for name in log.labels.models
        ]
        both = concat_logs(one, two, models).assign_attrs(facts)
        log = read(both, missing=missing, levels=levels, by=by)
        own = [list(log.labels.models) for log in (first, second)]
        log = replace(log, metadata={**log.metadata, SIDES: own})
    else:
        tables = LossColumns((*first.losses.tables, *second.losses.tables))
        log = replace(first, losses=tables, other=second.labels, metadata=facts)
        if missing == "drop":
            log = drop_gaps(log)
            log.design.splits()
            log.refuse_parts()
        else:
            check_same_evaluations(first, second)
    constant = getattr(two, "attrs", {}).get(CONSTANT)
    if constant is not None:
        names = [(a, constant) for a, _ in names]
        log = replace(log, metadata={**log.metadata, CONSTANT: constant})
    left = np.arange(len(names))
    return log.with_pairs(left, left + len(names), first.labels.of_pairs(names))


def check_same_evaluations(one: Log, two: Log) -> None:
    """Reject two arrays whose masks of evaluations differ, naming the first difference."""
    if one.design.valid is two.design.valid:  # usually None
        return
    masks = one.design.marks, two.design.marks
    differing = np.flatnonzero(masks[0] != masks[1])
    if len(differing):
        shown = [one.design.format_labels(int(row)) for row in differing[:MOST]]
        raise unpaired(
            f"only the {'first' if masks[0][differing[0]] else 'second'} log has a loss at "
            f"{listed(shown, len(differing))}. Expected the same evaluations in both. Pass "
            "missing='drop' to compare on the evaluations in both logs."
        )


def average_repetitions(log: Log) -> Log:
    """Average each point over its repetitions, minus the first model's losses.

    Differences between models are unchanged, and a large common offset loses no digits.
    """
    names = [name for name in ("source", "point") if name in log.design.levels]
    if "fold" in log.design.levels and not log.design.has("fold"):
        names.append("fold")  # one test set, regardless of sources
    columns = log.columns_by_cell()
    first = np.empty(log.losses.width, dtype=np.int64)
    first[columns] = columns[0]
    found = replace(log, pairs=(np.arange(log.losses.width), first)).moments(names)
    design = Design(found.to_levels(), len(found.count), metric=log.design.metric)
    return replace(log, design=design, losses=LossColumns((found.location,)))


# --- which interval -------------------------------------------------------------------------------


def check_method_options(method: str | None, options: Options, *, each: bool = False) -> None:
    """Reject options that the method does not have, or that do not apply to differences.

    ``each``: whether the method is for the intervals of both models, not for the difference.
    """
    others = () if each else (UNION, "tango")
    checked_choice("method", method, (*interval_names(for_differences=True), *others, None))
    if not (options is None or isinstance(options, Mapping)):
        raise LogError(
            f"options={options!r} is not a mapping. Expected the options of the method by name, "
            f"as in method='wald', options={{'variance': 'within-fold'}}."
        )
    given = read_options(method, options)
    if method == UNION:
        check_method_options(given.pop("method"), given, each=True)
        return
    if not given:
        return
    if method is None:
        raise LogError("options= requires method=. Pass both.")
    if method == "tango":
        raise LogError(f"options={options!r} were given, but tango has no options. Omit options=.")
    record = find_method(method)
    known = [name for name in record.defaults if name not in ("alpha", "alternative")]
    for name in given:
        if name not in known:
            raise LogError(
                f"{method} has no option {name!r} for differences. Valid options: "
                f"{', '.join(map(repr, known)) or 'none'}.{nearest(name, known)}"
            )
    record.check_options({**record.defaults, **given})
    own = given.get("interval")
    if own in ("hall", "prediction") or (own in BOUNDED and not each):
        more = ", bounds=..." if own in BOUNDED else ""
        raise LogError(
            f"options={{'interval': {own!r}}} has limits without a corresponding test. Use "
            f"{record.defaults['interval']!r}, or the interval of the difference alone: "
            f"cvstats.difference(losses, reference=...).cvci.{method}(interval={own!r}{more})."
        )
    if not each and given.get("interval") in PROPORTIONS:
        raise LogError(
            f"options={{'interval': {given['interval']!r}}} is an interval for a proportion, but "
            "a difference is not one. Use 'wald' or, for holdout, 't'. For 0/1 losses use "
            "method='tango'."
        )


def read_options(method: str | None, options: Options) -> dict[str, Any]:
    """Copy the options of a method; of the union also the method of each model."""
    return {**({"method": None} if method == UNION else {}), **(options or {})}


def levels_of_options(method: str | None, options: Mapping[str, Any]) -> tuple[str, ...]:
    """List the levels that the options of a method name."""
    if method == UNION:
        return levels_of_options(options["method"], options)
    if method is None or method == "tango":
        return ()
    named = options.get(find_method(method).level_option or "")
    return () if named is None else (named,) if isinstance(named, str) else tuple(named)


def reads_lazy_losses(method: str | None, options: Mapping[str, Any], log: Log) -> bool:
    """Whether the method of comparison needs all lazy losses of a carried cell at once."""
    default = default_difference
    if method == UNION:
        default, options = default_method, dict(options)
        method = options.pop("method")
    if method is None:
        options = recommend_options(log)
        later = log.lazy is not None and log.lazy.nan_tells  # two ways and refits need losses
        method = "clustered" if later and not repeats_refits(log) else default(log)
    return method in interval_names() and find_method(method).reads_lazy_losses(options, log)


def default_method(log: Log) -> str:
    """Choose the interval for differences: that of `interval`, if it applies to differences."""
    if log.design.by is not None:
        groups = Groups(replace(log, design=replace(log.design, by=None)), log.design.by)
        names = {default_method(groups.part(at)) for at in groups.kinds()}
        if len(names) > 1:
            raise DifferentGroups("groups are compared by different methods.")
        return names.pop()
    try:
        method = recommend_method(log)[0]
    except LogError:  # no method applies: the error of holdout or wald shows what is missing
        return choose_over_points(log.planned)
    return method if find_method(method).for_differences else "bootstrap_oob"


def choose_over_points(design: Design) -> str:
    """Choose the interval that treats points as independent."""
    return "holdout" if count_folds(design) == 1 else "wald"


def default_difference(log: Log) -> str:
    """Choose the interval for differences of models: refit_corrected if repetitions allow it."""
    method = default_method(log)
    return REFITS if ignores_refits(method, log) and shows_refits(log) else method


def difference_interval(
    log: Log, method: str | None, options: Mapping[str, Any], alpha: float
) -> Result:
    """Compute the interval of the differences of a log on which a comparison is based.

    For ``"tango"``, whose limits are inserted later, it is the interval over points of this design.

    Raises
    ------
    DifferentGroups
        If the groups of the log must be computed one after the other: for averages over
        repetitions, for 0/1 losses, and if differences may be rounding errors.
    """
    grouped = log.design.by is not None
    if grouped and method == "corrected_t":  # raises if several groups share the folds
        find_method(method).run(log, alpha=alpha, **options)
    if grouped and (method in (UNION, "tango") or not log.in_memory or log.zero_one().any()):
        raise DifferentGroups(
            "counts and limits of each model are computed for one group at a time."
        )
    if method is None:
        chosen, options = default_difference(log), recommend_options(log)
    else:
        chosen = choose_over_points(log.design) if method == "tango" else method
    repetitions = log.design.number("repetition")
    if chosen == "holdout" and repetitions > 1 and not log.of_contrasts:
        if grouped:
            raise DifferentGroups("points are averaged for one group at a time.")
        find_method("holdout").require(log.design)
        points = average_repetitions(log)
        base = find_method(chosen).run(points, alpha=alpha, **options)
        names = [name for name in ("source", "point") if name in log.design.levels]
        runs = log.moments(repetition_level(log.design))
        base = flag_seeds(base, log, runs, log.moments(names))
        counts = np.full(points.values.width, repetitions)
        base = replace(base, columns={**base.columns, "n_repetitions": counts})
    elif chosen == UNION:
        of_each = dict(options)
        if options["method"] is None:
            of_each |= {"method": default_method(log), **recommend_options(log)}
        base = compute_union(log, alpha=alpha, **of_each)
    else:
        base = find_method(chosen).run(log, alpha=alpha, **options)
        root = log.metadata and is_root(log.metadata) and chosen != OF_SPLITS
        if root and has_standard_errors(base):
            each = find_method(chosen).run(log.without_pairs(), alpha=alpha, **options)
            base = compare_squares(base, each, log)
    tested = chosen not in (UNION, OF_SPLITS)
    if tested and log.metadata and is_ratio(log.metadata) and has_standard_errors(base):
        base = test_numerators(base, log, alpha)
    base = zero_rounding_noise(base, log)
    if method is None:
        if log.design.metric or chosen in (OF_SPLITS, "out_of_source"):
            run = partial(find_method(chosen).run, alpha=alpha, **options)
            base = add_pseudo_errors(base, log, run)
        elif chosen == "wald":
            base = widen_alike(base, log)
    attrs = {**base.attrs, "interval_method": method or chosen}
    sampled = log.cells is not None and log.cells.sample is not None and find_whole(log) is None
    if method is None and sampled and repeats_refits(log) and ignores_refits(chosen, log):
        attrs["instead_of"] = (
            "refit_corrected, which needs the losses of each point, but these moments have only "
            "a sample"
        )
        calls = {**base.calls, Caution.UNSTABLE_DIFFERENCE: "compare(method='corrected_t')"}
        base = replace(base, calls=calls)
    return replace(base, attrs=attrs)


def test_numerators(base: Result, log: Log, alpha: float) -> Result:
    """Test differences of a metric that is a ratio, such as R2, by their numerators."""
    plain = choose_over_points(log.design)
    of_points = base if base.method == plain else find_method(plain).run(log, alpha=alpha)
    return compare_numerators(base, of_points, log)


def widen_alike(base: Result, log: Log) -> Result:
    """Widen intervals of one partition for very similar models, as refit_corrected does."""
    alike = base.has_caution(Caution.UNSTABLE_DIFFERENCE)
    if log.design.number("repetition") > 1 or not alike.any():
        return base
    wider = widen_one_partition(log.moments(fold_levels(log.design))).reshape(-1)
    factor = np.ones_like(wider)  # similar pairs have a variance
    np.divide(wider, base.columns["se"], out=factor, where=alike)
    return scale_errors(base, factor)


def compare_squares(base: Result, each: Result, log: Log) -> Result:
    """Test differences of roots of means, such as RMSE, through the means, which are linear.

    If a root r has the pseudo-losses z, its square has r^2 + 2 r (z - r). The difference of the
    squares divided by the sum of both roots is the difference of the roots, and its pseudo-losses
    are those of the models times 2 a / (a + b) and 2 b / (a + b). With a single extreme point its
    statistic is at most 1, whereas that of the roots tends to 2.
    """
    root, variance = each.columns["estimate"], each.columns["se"] ** 2
    a, b, va, vb = (
        values.reshape(-1, log.losses.width)[:, side].reshape(-1)
        for values in (root, variance)
        for side in log.sides
    )
    se = base.columns["se"]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 2 * a / (a + b), 2 * b / (a + b)
        moved = (share[0] - share[1]) * (share[0] * va - share[1] * vb)
        squared = moved + share[0] * share[1] * se**2
        own = np.where(a + b > 0, np.sqrt(np.maximum(squared, 0)), se)
        factor = np.where(se > 0, own / se, 1.0)
    return scale_errors(base, factor)


def has_standard_errors(base: Result) -> bool:
    """Whether the limits are symmetric: the estimate plus or minus a multiple of se."""
    own_limits = np.isnan(base.columns["se"]) & ~np.isnan(base.columns["lower"])
    return "p_value" not in base.columns and not own_limits.any()


def require_standard_errors(what: str, base: Result) -> None:
    """Reject intervals without a standard error."""
    if not has_standard_errors(base):
        raise LogError(
            f"{what}, but {base.method} with these options has none. Use another method, such as "
            "method='wald'."
        )


def degrees_of_each(base: Result) -> float | FloatArray | None:
    """Read the degrees of freedom of Student's t; None if the normal distribution is used.

    An array if they vary between differences, by more than rounding.
    """
    if "df" not in base.columns:
        return None
    df = np.asarray(base.columns["df"], dtype=np.float64)
    known = df[~np.isnan(df)]
    first = float(known[0]) if len(known) else np.nan
    return first if np.isclose(known, first, rtol=1e-9, atol=0).all() else df


def distribution(statistic: FloatArray, df: float | FloatArray | None) -> FloatArray:
    """Distribution function of Student's t, or of the normal if ``df`` is None."""
    share = special.ndtr(statistic) if df is None else special.stdtr(df, statistic)
    return np.asarray(share, dtype=np.float64)


def p_values(statistic: FloatArray, df: float | FloatArray | None, alternative: str) -> FloatArray:
    """Probability of a statistic at least as extreme, under no difference.

    ``"less"`` tests whether the model has the smaller error. An infinite statistic (a difference
    with zero variance) gives 0 or 1.
    """
    if alternative == "two-sided":
        return 2 * distribution(-np.abs(statistic), df)
    return distribution({"less": statistic, "greater": -statistic}[alternative], df)


def advise_on_refits(result: Result, log: Log, advice: str) -> Result:
    """Give other advice about unstable differences if, by default, `compare` accounts for them."""
    flagged = result.has_caution(Caution.UNSTABLE_DIFFERENCE).any()
    if not flagged or default_difference(log) != REFITS:
        return result
    return replace(result, calls={**result.calls, Caution.UNSTABLE_DIFFERENCE: advice})


# --- the interval of a difference from those of both models ---------------------------------------

UNION = "union"
"""Its name in `compare`."""


def compute_union(log: Log, *, method: str, alpha: float, **options: Any) -> Result:
    """Subtract the limits of two intervals: ``[L1 - U2, U1 - L2]``.

    If both intervals are symmetric, the interval excludes 0 if and only if ``p < alpha``: see
    `p_values_of_union`. Otherwise, as for limits of proportions, the p-value is NaN.
    """
    record = find_method(method)
    each = record.run(log.without_pairs(), alpha=alpha / 2, **options)
    one, two = ({name: values[side] for name, values in each.columns.items()} for side in log.sides)
    gap = one["estimate"] - two["estimate"]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(gap == 0, 0.0, gap / (one["se"] + two["se"]))
    columns = {
        "estimate": gap,
        "lower": one["lower"] - two["upper"],
        "upper": one["upper"] - two["lower"],
        "se": np.full_like(gap, np.nan),
        "statistic": statistic,
        "p_value": np.where(
            np.isnan(statistic) | (each.attrs.get("interval") in (*PROPORTIONS, *BOUNDED)),
            np.nan,
            p_values_of_union(statistic, one, two),
        ),
        **{name: values for name, values in one.items() if name.startswith("n_")},
    }
    caution: IntArray = np.bitwise_or(*(each.caution[side] for side in log.sides))
    attrs = {
        **each.attrs,
        "alpha": alpha,
        "target": f"{OF_TWO}{each.attrs['target']}",
        "guarantee": "conservative (Bonferroni): both single-model intervals cover jointly at "
        f"the nominal level; for each: {each.attrs['guarantee']}",
        "reference": f"{RELATIVE_STABILITY}; {each.attrs['reference']}",
        "interval_of_each": method,
    }
    return Result(UNION, columns, caution, attrs)


HALVINGS = 60
"""Number of bisections, after which an interval of [-1, 1] is narrower than 2^-58."""


def p_values_of_union(
    statistic: FloatArray, one: Mapping[str, Any], two: Mapping[str, Any]
) -> FloatArray:
    """Compute the alpha at which the limits of both models meet, ``|d| = t1 se1 + t2 se2``.

    The quantiles leave ``alpha / 4`` in each tail. With equal distributions, ``alpha`` is ``4
    F(-|d| / (se1 + se2))``. Otherwise the share of the difference that is ``t1 se1`` is bisected.
    """
    p = 4 * distribution(-np.abs(statistic), one.get("df"))
    if "df" not in one:
        return np.minimum(p, 1.0)
    at = np.isfinite(statistic) & (statistic != 0) & (one["df"] != two["df"])
    if at.any():
        gap = np.abs(statistic[at]) * (one["se"] + two["se"])[at]
        share = np.full(len(gap), 0.5)
        for step in 0.5 ** np.arange(2, HALVINGS):
            tails = [
                tail_at(part * gap, model, at) for part, model in ((share, one), (1 - share, two))
            ]
            share += np.where(tails[0] > tails[1], step, -step)
        p[at] = 4 * np.where(share > 0.5, *tails)  # the larger share has more digits
    return np.minimum(p, 1.0)


def tail_at(distance: FloatArray, model: Mapping[str, Any], at: MaskArray) -> FloatArray:
    """Probability beyond a distance on one side of some estimates; 0 with zero variance."""
    se, df = model["se"][at], model["df"][at]
    statistic = np.divide(-distance, se, out=np.full_like(se, -np.inf), where=se > 0)
    return distribution(statistic, df)


# --- groups ---------------------------------------------------------------------------------------


def weights_of(method: str) -> WeighGroups:
    """Find how an interval over groups weights them."""
    weigh = find_method(method).weigh_groups
    assert weigh is not None  # all such methods define it
    return weigh


# --- rounding errors of differences ---------------------------------------------------------------

ROUNDING = 4 * np.finfo(float).eps
"""Share of the losses below which the spread of a difference is rounding error."""

ALWAYS_ROUNDING = 1e-13
"""Share of the mean difference below which a spread is rounding error for any losses."""

SUSPECT = 1e-9
"""Share of the first losses below which the magnitude of all losses is measured."""

HEAD = 1 << 16
"""Number of losses inspected first."""


def zero_rounding_noise(base: Result, log: Log) -> Result:
    """Set standard errors of differences to zero if they are rounding errors of the losses.

    A mean that is also a rounding error is set to zero. Limits that do not use standard errors are
    unchanged.
    """
    estimate, se = base.columns["estimate"], base.columns["se"]
    largest = np.inf  # of the first losses, if they are in memory
    if log.in_memory:
        rows, largest = max(1, HEAD // log.losses.width), 0.0
        for table in log.losses.tables:
            head = np.abs(table[:rows].astype(np.float64))
            largest = float(np.fmax.reduce(head, axis=None, initial=largest))
    if log.design.by is not None:
        if ((se > 0) & (se <= SUSPECT * np.fmax(largest, np.abs(estimate)))).any():
            raise DifferentGroups("rounding is checked for one group at a time.")
        return base
    spread = se * np.sqrt(int(log.design.splits().rows.max()))
    tiny = (spread > 0) & (spread <= ALWAYS_ROUNDING * np.abs(estimate))
    equal = np.zeros_like(tiny)
    suspects = (se > 0) & (spread <= SUSPECT * largest)
    if suspects.any():
        whole = log.without_pairs().moments(repetition_level(log.design)).over(())
        of_each = loss_magnitude(whole.location[0], whole.m2[0], float(whole.count[0]))
        level = np.maximum(*(of_each[side] for side in log.sides))
        tiny |= suspects & (spread <= ROUNDING * level)
        equal = tiny & (np.abs(estimate) <= ROUNDING * level)
    if not tiny.any():
        return base
    columns = dict(base.columns)
    if has_standard_errors(base):
        columns["estimate"] = np.where(equal, 0.0, estimate)
        columns["se"] = np.where(tiny, 0.0, se)
        for side in ("lower", "upper"):
            columns[side] = np.where(tiny, columns["estimate"], base.columns[side])
    base = replace(base, columns=columns).add_caution(Caution.ZERO_VARIANCE, tiny)
    return base.drop_caution(Caution.UNSTABLE_DIFFERENCE, tiny)


def loss_magnitude(mean: FloatArray, squares: FloatArray, rows: float) -> FloatArray:
    """Measure the magnitude of losses: their absolute mean plus their standard deviation."""
    return np.abs(mean) + np.sqrt(squares / rows)
