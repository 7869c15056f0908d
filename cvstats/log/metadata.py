"""The attrs of a log of a metric, and what they imply for its results."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.orientation import TARGET, TURNED
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, listed, place

FACTS = ("metric", "orientation", "range", "folds", "cells", "weight", "labels", "positive",
         "average", "metrics", "at", "contrast", TARGET)  # fmt: skip
"""Attrs of a metric that are copied to every result."""


DIFFERENCE_FROM = "difference_from"
"""The attr of a log of differences that names the model that was subtracted."""


AVERAGED = "averaged_over"
"""The attr of a mean over cells, which varies little in relation to its size in any case."""


def name_subtracted(facts: Mapping[Any, Any]) -> tuple[str, Hashable]:
    """Name the groups of a contrast, unless rows do, and the model that was subtracted, if any."""
    groups = facts.get("contrast")
    return groups if isinstance(groups, str) else "", facts.get(DIFFERENCE_FROM)


def facts_of_metric(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the attrs that are copied to results; none if the log is not of a metric."""
    return {
        str(name): metadata[name] for name in FACTS if name in metadata and "metric" in metadata
    }


def put_attrs(log: Any, attrs: Mapping[Any, Any]) -> None:
    """Set the attrs of a log; in a Dataset, also those of each variable, which is itself a log."""
    log.attrs = dict(attrs)
    for array in getattr(log, "data_vars", {}).values():
        units = {"units": array.attrs["units"]} if "units" in array.attrs else {}
        array.attrs = {**units, **attrs}


LOSS_WORDS = re.compile(r"\b(?:mean loss|expected loss|test error|risk|loss)\b")
"""Terms for the estimated quantity in targets, the longest first."""


def name_target(target: str, metadata: Mapping[Any, Any]) -> str:
    """Name the metric in a target, unless its values are means of known losses of points.

    The values of several metrics are called losses.
    """
    loss = "loss" if has_several(metadata) else metadata.get("loss")
    of_points = metadata.get("holds") != "scores" and not any(each_metric(metadata))
    named = isinstance(loss, str) and "metric" in metadata
    named &= metadata.get("metric") not in ("zero_one", *NOT_ZERO_ONE)
    return target if of_points or not named else LOSS_WORDS.sub(str(loss), target)


UNDESCRIBED = "undescribed"
"""The attr of a log that only its label of ``metric`` describes."""


def shared_attrs(variables: Sequence[Any]) -> dict[Any, Any]:
    """Find the attrs that are equal in all variables."""
    first, *rest = variables
    return {
        name: fact
        for name, fact in first.attrs.items()
        if all(repr(one.attrs.get(name)) == repr(fact) for one in rest)
    }


def attrs_of_log(losses: object) -> dict[Hashable, Any]:
    """Copy the attrs of a log; if they describe several metrics, those that it contains.

    Without attrs, such as after `pandas.DataFrame.to_xarray`, the losses of one metric are named
    after its label. A loss such as ``1 - acc`` was computed from the score that it names.
    """
    attrs = dict(getattr(losses, "attrs", {}))
    every = [attrs]
    if isinstance(attrs.get("metrics"), Mapping):
        attrs["metrics"] = {name: dict(own) for name, own in attrs["metrics"].items()}
        every = [attrs, *attrs["metrics"].values()]
    for own in every:
        loss = str(own.get("loss") or own.get("long_name"))
        for orientation in TURNED if "metric" not in own else ():
            start = orientation.removesuffix("score")
            if loss.startswith(start) and len(loss) > len(start):
                found = TURNED[1] if "kind" in own else orientation  # of 1 - x: one of -x
                own |= {"metric": loss.removeprefix(start), "orientation": found}
    names = names_of_metrics(losses) or []
    if len(names) == 1 and "loss" not in attrs and "metrics" not in attrs:
        attrs |= {"loss": str(names[0]), UNDESCRIBED: True}
    return keep_metrics(attrs, names) if "metrics" in attrs else attrs


def keep_metrics(attrs: dict[Hashable, Any], names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Keep the facts of some of several metrics; of one, as if the log had been made for it."""
    several = attrs["metrics"] if has_several(attrs) else {}
    kept = {name: facts for name, facts in several.items() if name in names}
    if len(kept) > 1:
        attrs |= {"loss": ", ".join(map(str, kept)), "metric": list(kept), "metrics": kept}
    return select_metric(attrs, names[0]) if len(names) == 1 else attrs


def select_metric(metadata: dict[Hashable, Any], metric: Hashable) -> dict[Hashable, Any]:
    """Return the attrs of one of several metrics, as if the log had been made for it alone."""
    several = metadata.get("metrics")
    if not isinstance(several, Mapping) or metric not in several:
        return metadata
    rest = {name: fact for name, fact in metadata.items() if name not in ("metric", "metrics")}
    return {**rest, "loss": str(metric), **several[metric]}


def has_several(metadata: Mapping[Any, Any]) -> bool:
    """Whether a log has several metrics, each with attrs of its own."""
    return isinstance(metadata.get("metrics"), Mapping)


def has_several_contrasts(losses: Any) -> bool:
    """Whether a log of differences between groups has several pairs of groups."""
    columns, sizes = getattr(losses, "columns", None), getattr(losses, "sizes", None)
    if isinstance(columns, pd.Index):
        return "contrast" in columns.names and len(columns.unique("contrast")) > 1
    if sizes is not None:
        return bool(sizes.get("contrast", 1) > 1)
    return isinstance(getattr(losses, "attrs", {}).get("contrast"), list)


def names_of_metrics(losses: Any) -> list[Hashable] | None:
    """List the labels of the level or coordinate ``metric``; None without it."""
    index = getattr(losses, "index", None)
    if isinstance(index, pd.Index) and "metric" in index.names:
        return list(index.unique("metric"))
    if hasattr(type(losses), "metrics"):  # of moments
        return list(losses.metrics) or None
    coords = getattr(losses, "coords", {})
    return coords["metric"].to_numpy().reshape(-1).tolist() if "metric" in coords else None


NOT_ZERO_ONE = (
    "squared_error", "absolute_error", "percentage_error", "pinball", "log_loss", "brier", "hinge",
    "net_benefit", "squared_log_error", "poisson_deviance", "gamma_deviance", "huber",
    "interval_score", "weighted_interval_score", "overprediction", "underprediction", "dispersion",
    "crps", "energy_score",
)  # fmt: skip
"""Losses that may be zero everywhere without being 0/1 errors."""

PROPORTION_NAMES = (
    "zero_one", "error", "error_rate", "accuracy", "acc", "exact_match", "classif.ce",
    "classif.acc", "coverage",
)  # fmt: skip
"""Losses that are 0 or 1, by name; scores after ``1 - `` too."""

FEW_ERRORS = 10
"""Errors, or points without one, below which normal limits are too narrow."""

FEW = 10
"""With fewer points of a class per cell, the influence is a rough approximation."""


RATIOS = ("r2", "skill", "relative_error", "wmape")
"""Metrics that are ratios of two means: an outlier in both does not show in the influences."""

SCALES = ("log", "fisher-z", "fieller")
"""Limits of metrics that are computed on a scale of their own."""

WITHOUT_REACH = {"ordered_gini"}
"""Bounded metrics whose limits do not depend on how much one prediction can change them."""


def is_root(metadata: Mapping[Any, Any]) -> bool:
    """Whether a metric is the root of one mean over all folds, and not a difference of roots."""
    pooled = metadata.get("folds") == "pool" and "kind" not in metadata
    return pooled and metadata.get("metric") == "rmse"


def is_ratio(metadata: Mapping[Any, Any]) -> bool:
    """Whether a metric is a ratio of means over all folds whose denominator involves no model.

    So are differences of models, but not those of groups, which have different denominators.
    """
    pooled = metadata.get("folds") == "pool" and "contrast" not in metadata
    return pooled and metadata.get("metric") in RATIOS


def is_examined(metadata: Mapping[Any, Any]) -> bool:
    """Whether pseudo-losses can have heavy tails: those of numbers, but not those of classes."""
    limits = tuple(metadata.get("range", ()))
    return "labels" not in metadata and "positive" not in metadata and limits != (0.0, 1.0)


OF_PAIRS = ("auc", "auc_at", "concordance", "uno")
"""Scores that are 1/2 for random predictions."""


def is_below_chance(metadata: Mapping[Any, Any], losses: FloatArray) -> MaskArray:
    """Mark mean losses of a score of pairs that is below 1/2."""
    if metadata.get("metric") not in OF_PAIRS or metadata.get("kind") == "contrasts":
        return np.zeros(losses.shape, dtype=bool)
    return losses > 1 / 2 + 1e-9  # more than rounding


def each_metric(metadata: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
    """Iterate over the attrs of each metric of a log of pseudo-losses."""
    several = metadata.get("metrics")
    parts = several.values() if isinstance(several, Mapping) else [metadata]
    yield from (part for part in parts if isinstance(part, Mapping) and part.get("pseudo"))


def assumptions_of(metadata: Mapping[Any, Any]) -> str:
    """Describe additional assumptions of intervals for a metric: empty for most."""
    found = [str(part["assumes"]) for part in each_metric(metadata) if part.get("assumes")]
    return f"if {found[0]}" if found else ""


def folds_of_metric(metadata: Mapping[Any, Any]) -> str:
    """How folds were combined: "average" or "pool"; empty for losses of points."""
    found = {str(part.get("folds")) for part in each_metric(metadata)}
    return next((word for word in ("pool", "average") if word in found), "")


def levels_of_cells(metadata: Mapping[Any, Any]) -> list[Any]:
    """List the levels whose labels are the cells on which a metric was computed."""
    return [name for part in each_metric(metadata) for name in part.get("cells", ())]


def cuts_cells(metadata: Mapping[Any, Any], by: object) -> bool:
    """Whether the labels of a level split the cells on which a metric was computed."""
    return any(by not in (*part.get("cells", ()), "metric") for part in each_metric(metadata))


def refuse_parts_of_cells(metadata: Mapping[Any, Any], by: object) -> None:
    """Refuse to average the pseudo-losses of a part of a cell: that is not the part's metric."""
    for part in each_metric(metadata) if isinstance(by, str) else ():
        cells, name = list(part.get("cells", ())), part.get("metric")
        if by not in (*cells, "metric"):
            way = "folds='average'" if by == "fold" else f"by={by!r}"
            advice = f"Create the log with cvstats.losses(…, loss={name!r}, {way})."
            if name in STRENGTHS or part.get("kind") == "contrasts":
                advice = f"Create a log of each group: cvstats.{call_of_part(part)}."
            raise LogError(
                f"the groups by {by!r} split the cells ({listed(cells) or 'the whole log'}) on "
                f"which {name} was computed, and the mean over a part of a cell is not the metric "
                f"of that part. Expected cells within the groups. {advice}"
            )


def call_of_part(part: Mapping[Any, Any]) -> str:
    """Write the call that creates a log of a metric from a part of the rows."""
    name = part.get("metric")
    if name in STRENGTHS:
        return f"strengths(battles_of_the_part, …{STRENGTHS[str(name)]})"
    if part.get("kind") == "contrasts":
        return "contrast(losses_of_the_part, …)"
    return f"losses(part, …, loss={name!r})"


STRENGTHS = {"strength": "", "Elo": ", elo=True"}
"""The metrics of `cvstats.strengths`, with the option that computes each."""

ONE_PREDICTION = "one_prediction"
"""The attr for how much one prediction can change a metric, for each model."""

OF_OTHER = "one_prediction_of_other"
"""The same for the second of two logs that are compared."""


def has_own_scale(metadata: Mapping[Any, Any]) -> bool:
    """Whether `ONE_PREDICTION` has covariances or a variance, and not changes by one prediction."""
    return metadata.get("metric") in RATIOS or metadata.get("limits") in SCALES


def note_of_model(notes: Mapping[str, Any], model: Hashable) -> Any:
    """Find what `ONE_PREDICTION` has for a model; None if unknown.

    A renamed model has what all models share.
    """
    if str(model) in notes:
        return notes[str(model)]
    first, *others = notes.values()
    return first if all(other == first for other in others) else None


SIDES = "models_of_both_logs"
"""In the metadata of two lazy logs that were joined: the models of each, by their own names."""

OF_PROBLEMS = "korn-graubard of problems"
"""The bounds of a log of pass@k, in which one problem changes the rate by 1 / n."""

MADE_OF = "made_of"
"""The attr for the number of points on which each cell of a metric was computed."""


def cell_key(design: Design, names: Sequence[str], row: int) -> str:
    """Name the cell of a row by its labels."""
    levels = [design.levels[name] for name in names]
    return ", ".join(str(level.labels[int(level.block(row, row + 1)[0])]) for level in levels)


def refuse_parts_of_logs(
    metadata: Mapping[Any, Any], models: Sequence[Hashable], design: Design, planned: Design, *,
    carried: bool, lacking: Collection[Hashable],
) -> None:  # fmt: skip
    """Refuse a log of pseudo-losses that lacks points of a cell: its mean is not the metric.

    ``carried``: whether several metrics are carried, and therefore have the same evaluations.
    ``lacking``: the metrics of the carried cells that lack evaluations; None of one metric.
    """
    several = metadata.get("metrics")
    parts = several if isinstance(several, Mapping) else {None: metadata}
    for metric, part in parts.items():
        if not isinstance(part, Mapping) or not isinstance(part.get(MADE_OF), str):
            continue
        if metric is not None and not (carried or "metric" in design.levels):  # an unknown one
            continue
        made_of = json.loads(part[MADE_OF])
        whole = planned if "rows" in made_of else design
        known, gaps = "points" in made_of, not {metric, None}.isdisjoint(lacking)
        expected = next(iter(made_of.values()))
        names = map(str, models)
        for points in map(expected.get, names) if "models" in made_of else [expected]:
            if points is not None:
                refuse_missing_points(whole, metric, part, points, gaps=known and gaps)


def refuse_missing_points(
    design: Design,
    metric: object,
    part: Mapping[Any, Any],
    made_of: Mapping[str, int],
    *,
    gaps: bool,
) -> None:
    """Refuse a cell whose number of points differs from that on which the metric was computed.

    If a level of the cells was dropped, as by `xs`, the rest may be one cell or all. Concatenated
    logs of the same points have each cell several times.
    """
    cells = list(part.get("cells", ()))
    names = tuple(name for name in cells if name in design.levels)
    at = int(metric is not None and "metric" in design.levels)
    names = ("metric",) * at + names
    table = design.cell_table(names)
    possible = {*made_of.values(), sum(made_of.values())}
    whole = len(names) - at == len(cells)
    for codes, found in zip(table.codes.tolist(), table.total[table.used], strict=True):
        levels = zip(names, codes, strict=True)
        labels = {name: design.levels[name].labels[code] for name, code in levels}
        if at and str(labels.pop("metric")) != str(metric):
            continue
        known = made_of.get(", ".join(map(str, labels.values()))) if whole else None
        if found % known if known else found not in possible:
            refuse_part(part, labels, int(found), known or max(made_of.values()))
    if gaps:
        refuse_part(part, {}, 0, 0)


def refuse_part(
    part: Mapping[Any, Any], labels: Mapping[str, Any], found: int, known: int
) -> NoReturn:
    """Make the error for a part of a log of a metric."""
    where = f" at {place(labels)}" if labels else ""
    if found > known > 0:
        raise LogError(
            f"{found - known:,} of {found:,} points{where} lack a prediction, the truth or the "
            f"event, and {part.get('metric')} was computed on the others. Expected all of them. "
            "Drop these points first: cvstats.losses(predictions.dropna(), …, "
            f"loss={part.get('metric')!r})."
        )
    how_many = f" ({found:,} of {known:,} points{where})" if known > found else ""
    name = part.get("metric")
    raise LogError(
        f"this is a part of a log of {name}{how_many}, and the mean over a part of the points is "
        f"not the {name} of that part. Expected all points on which {name} was computed, without "
        f"missing='drop'. Create a log of the part: cvstats.{call_of_part(part)}."
    )


CAUTIONS = {
    "few_points": Caution.FEW_POINTS, "cells_without_influence": Caution.NO_INFLUENCE,
    "heavy_tails": Caution.HEAVY_TAILS, "biased_by_fold": Caution.BIASED_BY_FOLD,
    "censored": Caution.CENSORED,
}  # fmt: skip
"""Attrs of a metric that limit every result, if they are not empty, False or 0."""


def cautions_of_metric(metadata: Mapping[Hashable, Any]) -> Caution:
    """Collect cautions about the metric of a log that apply to any method."""
    cautions = Caution(0)
    for part in each_metric(metadata):
        unknown = MADE_OF in part and counts_are_unknown(part)
        if unknown or part.get("rarest_class", FEW) < FEW:
            cautions |= Caution.FEW_OF_A_CLASS
        for name, caution in CAUTIONS.items():
            if part.get(name):
                cautions |= caution
    return cautions


def counts_are_unknown(part: Mapping[Any, Any]) -> bool:
    """Whether the limits of a metric of lazy predictions need what was not counted yet."""
    ends, made_of = part.get("range"), part.get(MADE_OF)
    lazy = isinstance(made_of, str) and "rows" in json.loads(made_of)
    bounded = isinstance(ends, Sequence) and bool(np.isfinite(np.array(ends, dtype=float)).all())
    counted = ONE_PREDICTION in part or part.get("metric") in WITHOUT_REACH
    return lazy and (bounded or is_ratio(part)) and not counted
