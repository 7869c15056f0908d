"""Metrics of predicted labels from counts that are additive over batches.

The influence of a point on such a metric depends only on its true and predicted label. The counts
of each combination in each cell therefore determine the metric, its variance and, with joint
counts of two models, the variance of their difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from cvstats.core.cells import Cells
from cvstats.core.design import CellIndex
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, describe_type, listed
from cvstats.large.moments import Moments, SharedAttrs, assemble, levels_of, read_batch
from cvstats.log.log import Log
from cvstats.log.metadata import ONE_PREDICTION
from cvstats.log.pandas import FrameLabels
from cvstats.log.tables import from_arrow, is_arrow, set_levels
from cvstats.loss_functions.losses import (
    Columns,
    check_positive,
    find_columns_of_models,
    is_loss,
    is_one_name,
    require_columns,
    resolve_loss,
)
from cvstats.loss_functions.metric_logs import (
    MetricRequest,
    cell_names,
    check_labels,
    check_threshold,
    choose_classes,
    choose_folds,
    combine_masks,
    encode_labels,
    find_known,
    is_biased_by_fold,
    metric_facts,
    metric_options,
    read_numbers,
    two_classes,
    undefined,
    write_reaches,
)
from cvstats.loss_functions.pointwise import facts_of_loss, flat_columns, loss_name, which_label
from cvstats.metrics import METRICS
from cvstats.metrics.metric import (
    CellNotes,
    UndefinedMetricError,
    influence_of_counts,
    reach_of_labels,
)
from cvstats.options import Missing, check_choices, find_choices

WEIGHT = "the weight"
"""The name of the column of weights, also in messages."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelCounts:
    """Counts of true and predicted labels in each cell of a log.

    Create counts from a batch of predictions with `of_predictions`, or from Parquet files with
    `cvstats.scan_predictions`, and add batches with ``+``. From the counts you can compute the
    moments of any metric of predicted labels, which have all methods of a log that do not need
    individual losses. Memory use grows with the number of cells and labels, not with the number of
    predictions.

    Notes
    -----
    The influence of a point on accuracy, precision, recall, F1, Matthews correlation, kappa and
    similar metrics depends only on its true and predicted label. The counts therefore determine
    the metric of each cell, averaged or pooled over folds, and its variance: the interval equals
    that of the log in memory, up to rounding. AUC, average precision and other rank metrics need
    all scores of a cell at once, and raise an error. Batches are checked as for `Moments`.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> both = [log.iloc[:9000], log.iloc[9000:]]
    >>> counts = sum(
    ...     cvstats.LabelCounts.of_predictions(part, prediction="naive_bayes", threshold=0.5)
    ...     for part in both
    ... )
    >>> counts
    <LabelCounts of 24,000 evaluations in 144 cells by 'fold', 'source'; 1 model, 2 labels>
    >>> cvstats.as_scores(counts.moments("f1").clustered())[["estimate", "lower", "upper"]].round(3)
                estimate  lower  upper
    model
    naive_bayes    0.135  0.110  0.160
    """

    part: Moments
    counted: CountedColumns

    @classmethod
    def of_predictions(
        cls,
        predictions: pd.DataFrame,
        truth: Hashable = "y_true",
        prediction: Columns = "y_pred",
        *,
        labels: Sequence[Hashable] = (0, 1),
        threshold: float | None = None,
        positive: Hashable = None,
        weight: Hashable = None,
        by: str | Sequence[str] | None = None,
        pairs: bool = False,
        missing: Missing = "raise",
    ) -> LabelCounts:
        """Count the labels of a batch, or of a whole log.

        Parameters
        ----------
        predictions : DataFrame
            True and predicted labels as columns, with the levels of a loss log, as for
            `cvstats.losses`.
        truth : hashable, optional
            The column with the true values.
        prediction : hashable, sequence or mapping, optional
            The column with predictions; for several models a list of columns, or a mapping from
            model names to columns.
        labels : sequence, optional
            All labels; a batch need not contain each of them.
        threshold : float, optional
            For predicted probabilities of one of two labels: the decision threshold.
        positive : hashable, optional
            With ``threshold``, the label whose probability is predicted, if labels are not 0 and
            1.
        weight : hashable, optional
            The column with the weights of the points, of which only ratios matter.
        by : str or sequence of str, optional
            The levels whose labels define the cells, as for `Moments.of_log`.
        pairs : bool, optional
            Whether to count the labels of each pair of models jointly, which `compare` needs.
        missing : {"raise", "drop"}, optional
            Whether missing true values or predictions raise an error, or their evaluations are
            dropped for all models.

        Returns
        -------
        LabelCounts
            Counts for each cell that occurs.

        Raises
        ------
        LogError
            If a column is missing, a label is not among ``labels``, or the batch is not a log.
        """
        if is_arrow(predictions):
            predictions = from_arrow(predictions)
        if not isinstance(predictions, pd.DataFrame):
            raise LogError(
                f"{describe_type(predictions)} has no columns of predictions. Expected a "
                "DataFrame. Count it in parts: sum(map(LabelCounts.of_predictions, parts))."
            )
        counted = count_columns(
            truth, prediction, labels=labels, threshold=threshold, positive=positive,
            weight=weight, pairs=pairs,
        )  # fmt: skip
        require_columns(predictions, counted.columns)
        frame = set_levels(predictions, counted.columns)
        more = () if by is None else (by,) if isinstance(by, str) else by
        beside = [name for name in more if name not in frame.index.names]
        require_columns(frame, beside)
        if beside:
            frame = frame.set_index(beside, append=True)
        codes = pd.DataFrame(encode_batch(frame, counted), index=frame.index)
        codes.attrs = predictions.attrs
        return cls(count_batch(codes, counted, by, missing), counted)

    def moments(
        self,
        loss: str,
        *,
        folds: Literal["average", "pool"] | None = None,
        by: str | Sequence[str] | None = None,
        average: Literal["binary", "macro", "weighted", "micro"] | None = None,
        positive: Hashable = None,
        beta: float | None = None,
        weights: Literal["linear", "quadratic"] | None = None,
        zero_division: float | None = None,
    ) -> Moments:
        """Compute the moments of a metric of labels.

        Parameters
        ----------
        loss : str
            The metric: ``accuracy``, ``precision``, ``recall``, ``specificity``, ``npv``, ``f1``,
            ``fbeta``, ``jaccard``, ``balanced_accuracy``, ``g_mean``, ``matthews`` or ``kappa``.
        folds, by, average, positive, beta, weights, zero_division : optional
            As in `cvstats.losses`; ``by`` names levels of the counts.

        Returns
        -------
        Moments
            Moments for intervals and, with ``pairs=True``, for comparisons.

        Raises
        ------
        LogError
            If the metric cannot be computed from counts, or is undefined in a cell.
        """
        check_choices(locals(), find_choices(LabelCounts.moments))
        asked: dict[str, Any] = {
            "folds": folds, "average": average, "positive": positive, "beta": beta,
            "weights": weights, "zero_division": zero_division,
            "by": () if by is None else (by,) if isinstance(by, str) else tuple(by),
        }  # fmt: skip
        return moments_of_counts(self.part, self.counted, loss, asked)

    def __add__(self, other: LabelCounts) -> LabelCounts:
        """Add the counts of another batch."""
        if not isinstance(other, LabelCounts):
            return NotImplemented
        for field in fields(CountedColumns):
            mine, yours = getattr(self.counted, field.name), getattr(other.counted, field.name)
            if mine != yours:
                raise LogError(
                    f"the batches were counted with {field.name}={mine!r} and {yours!r}. Expected "
                    f"the same in each batch."
                )
        return LabelCounts(self.part + other.part, self.counted)

    def __radd__(self, other: object) -> LabelCounts:
        """Support ``sum``, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        """Describe what was counted."""
        m, k = len(self.counted.models), len(self.counted.labels)
        pairs = ", with pairs" if self.counted.pairs else ""
        return (
            f"<LabelCounts of {self.part.n_losses:,} evaluations in {len(self.part.cells.count):,} "
            f"cells by {', '.join(map(repr, self.part.levels)) or 'nothing'}; {m:,} "
            f"model{'s' if m > 1 else ''}, {k:,} labels{pairs}>"
        )


@dataclass(frozen=True)
class CountedColumns:
    """What is counted: labels, models, and how predictions become labels.

    Parameters
    ----------
    truth : hashable
        The column with the true values.
    models : mapping
        The column of predictions of each model.
    single : bool
        Whether a single column was passed, not a list.
    labels : tuple
        All labels.
    threshold : float, optional
        The decision threshold for the second label, if probabilities are predicted.
    positive : int
        The index of the positive label, if there is a threshold.
    weight : hashable, optional
        The column of weights.
    pairs : bool
        Whether each pair of models is counted jointly.
    """

    truth: Hashable
    models: Mapping[Hashable, Hashable]
    single: bool
    labels: tuple[Hashable, ...]
    threshold: float | None = None
    positive: int = 1
    weight: Hashable = None
    pairs: bool = False

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        check_labels(list(self.labels))
        check_threshold(self.threshold)
        if self.threshold is not None and len(self.labels) > 2:
            raise LogError(
                "threshold= converts one probability to two labels, but there are "
                f"{len(self.labels)} labels. Count predicted labels instead."
            )
        if self.pairs and len(self.models) < 2:
            raise LogError(
                "pairs=True needs several models, but only one is counted. Expected at least "
                "two, as in prediction=['ridge', 'forest']."
            )

    @property
    def columns(self) -> list[Hashable]:
        """The columns that are read."""
        return [self.truth, *self.models.values(), *([] if self.weight is None else [self.weight])]

    @property
    def planes(self) -> int:
        """Number of sums kept for each combination: the count, and two more with weights."""
        return 1 if self.weight is None else 3

    @property
    def couples(self) -> list[tuple[int, int]]:
        """The pairs of models that are counted jointly."""
        m = len(self.models)
        return [(a, b) for a in range(m) for b in range(a + 1, m)] if self.pairs else []


def count_columns(truth: Hashable, prediction: Any, **options: Any) -> CountedColumns:
    """Collect what is to be counted."""
    labels, threshold = options.pop("labels"), options["threshold"]
    if is_one_name(labels):
        raise LogError(f"labels={labels!r} is not a list. Expected all labels, such as [0, 1].")
    labels, positive = tuple(labels), options.pop("positive")
    check_positive(positive)
    if threshold is None and positive is not None:
        raise LogError(
            "positive= applies to probabilities here and requires threshold=. For predicted "
            "labels pass it later: counts.moments('f1', positive=…)."
        )
    one = is_one_name(prediction)
    columns = {name: names[0] for name, names in find_columns_of_models(prediction, None).items()}
    counted = CountedColumns(truth, columns, one, labels, **options)
    if threshold is None:
        return counted
    if positive is None and set(labels) in ({0, 1}, {-1, 1}):
        positive = 1
    if positive is None or positive not in labels:
        raise LogError(
            f"positive={positive!r} is not a label. Expected one of "
            f"{listed(map(repr, labels))}. {which_label(labels)}"
        )
    return replace(counted, positive=labels.index(positive))


# --- counting -------------------------------------------------------------------------------------


def encode_batch(
    table: pd.DataFrame | Mapping[Any, Any], counted: CountedColumns
) -> dict[Hashable, FloatArray]:
    """Compute the index of the combination of labels in each row; weights follow."""
    arrays = {name: flat_columns(pd.Series(table[name], copy=False)) for name in counted.columns}
    k, labels = len(counted.labels), list(counted.labels)
    truth, here = encode_labels(arrays[counted.truth], labels, "truth")
    found: dict[Hashable, FloatArray] = {}
    for model, column in counted.models.items():
        if counted.threshold is None:
            label, also = encode_labels(arrays[column], labels, "prediction")
        else:
            p = read_numbers(arrays[column], "prediction")
            above = p >= counted.threshold
            label, also = np.where(above, counted.positive, 1 - counted.positive), find_known(p)
        known = combine_masks(here, also)
        codes = (truth * k + label).astype(np.float64)
        found[model] = codes if known is None else np.where(known, codes, np.nan)
    if counted.weight is not None:
        weight = np.asarray(read_numbers(arrays[counted.weight], "weight"), dtype=np.float64)
        wrong = np.flatnonzero(~((weight >= 0) & (weight < np.inf)))
        if len(wrong):
            raise LogError(
                f"the weight in row {wrong[0]:,} is {weight[wrong[0]]}. Expected finite "
                "nonnegative weights."
            )
        found[WEIGHT] = weight
    return found


def count_batch(
    codes: object, counted: CountedColumns, by: str | Sequence[str] | None, missing: str
) -> Moments:
    """Count the combinations in each cell of a log of combination indices.

    The counts are kept as the means of their indicators, which combine over batches like those of
    losses; squares are not kept.
    """
    log, within = read_batch(codes, by, missing)
    levels = levels_of(log, by)
    log.design.check_labels(levels)
    table = log.design.cell_table(levels)
    count = table.total[table.used].astype(np.float64)
    mean = count_combinations(log, levels, counted) / count[:, None]
    cells = Cells(
        levels, tuple(log.design.levels[name].labels for name in levels),
        table.codes, count, mean, np.zeros_like(mean), np.zeros(mean.shape[1]),
    )  # fmt: skip
    found = assemble(log, cells, None, within)
    return replace(found, labels=FrameLabels(range(mean.shape[1]), None), kept=())


def count_combinations(log: Log, levels: tuple[str, ...], counted: CountedColumns) -> FloatArray:
    """Sum counts, weights and squared weights: cells by combinations.

    First the planes of each model, truth by label, then those of each pair of models.
    """
    table = log.design.cell_table(levels)
    at = np.zeros(table.size, dtype=np.int64)
    at[table.used] = np.arange(len(table.used))
    cell = log.design.cells(levels, 0, log.design.size)
    there = log.design.here
    rows, n = at[cell[there]], len(table.used)
    columns = [column[there] for column in log.columns() if column is not None]
    weight = columns.pop() if counted.weight is not None else None
    codes = [column.astype(np.int64) for column in columns]
    k = len(counted.labels)

    def add(number: IntArray, size: int, power: int) -> FloatArray:
        own = None if weight is None else weight**power
        sums = np.bincount(rows * size + number, own, minlength=n * size)
        return sums.reshape(n, size).astype(np.float64)

    found = [add(own, k * k, power) for own in codes for power in range(counted.planes)]
    for one, two in counted.couples:
        found.append(add(codes[one] * k + codes[two] % k, k**3, counted.planes - 1))
    return np.concatenate(found, axis=1)


# --- metrics of counts ----------------------------------------------------------------------------


def moments_of_counts(
    part: Moments, counted: CountedColumns, loss: str, asked: Mapping[str, Any]
) -> Moments:
    """Compute the moments of the pseudo-losses that the log of these predictions would have.

    A point of weight w has the loss ``level + w slope``, where the level depends on its cell and
    the slope on its true and predicted label. Only the sums of w and w^2 are needed.
    """
    request = count_request(counted, loss, asked)
    cells, k, m = part.cells, len(counted.labels), len(counted.models)
    sums = cells.count[:, None] * cells.mean
    if counted.weight is None:
        sums = np.rint(sums)
    size = m * counted.planes * k * k
    planes = sums[:, :size].reshape(len(sums), m, counted.planes, k, k)
    joint = sums[:, size:].reshape(len(sums), len(counted.couples), k, k, k)
    first, last = planes[:, :, min(1, counted.planes - 1)], planes[:, :, -1]
    level, slope, facts = levels_and_slopes(part, counted, request, planes)
    n = cells.count[:, None]
    shift = (first * slope).sum(axis=(2, 3)) / n
    mean = level + shift
    m2 = np.maximum((last * slope**2).sum(axis=(2, 3)) - n * shift**2, 0)
    if counted.pairs:
        one, two = np.array(counted.couples).T
        apart = slope[:, one][..., :, :, None] - slope[:, two][..., :, None, :]
        between = shift[:, one] - shift[:, two]
        squares = np.maximum((joint * apart**2).sum(axis=(2, 3, 4)) - n * between**2, 0)
        mean = np.concatenate([mean, mean[:, one] - mean[:, two]], axis=1)
        m2 = np.concatenate([m2, squares], axis=1)
    models = list(counted.models)
    axis = None if counted.single else pd.Index(models, tupleize_cols=False)
    notes = SharedAttrs.of({**part.attrs, **facts})
    found = replace(cells, mean=mean, m2=m2, origin=np.zeros(mean.shape[1]))
    return replace(
        part, parts=(found,), labels=FrameLabels(models, axis),
        pairs=counted.pairs, notes=replace(notes, mixed=part.notes.mixed),
    )  # fmt: skip


def levels_and_slopes(
    part: Moments, counted: CountedColumns, request: MetricRequest, planes: FloatArray
) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Compute the metric of each cell if defined, and the influence of each combination."""
    cells, k, m = part.cells, len(counted.labels), len(counted.models)
    first = planes[:, :, min(1, counted.planes - 1)]  # sums of the weights
    if counted.threshold is None:
        classes = choose_classes(list(counted.labels), request)
    else:
        classes = two_classes(request, counted.positive)
    options, notes = metric_options(request, classes), CellNotes()
    reaches: dict[str, list[list[float]]] = {str(model): [] for model in counted.models}
    keys: list[str] = []
    design = part.log().design
    request = choose_folds(request, design)
    names = cell_names(design, request)
    at = [cells.levels.index(name) for name in names]
    group = CellIndex.numbered([len(cells.labels[i]) for i in at], cells.codes[:, at].T)[1]
    level, slope = np.empty((len(group), m)), np.empty((len(group), m, k, k))
    for number in range(group.max() + 1):
        here = np.flatnonzero(group == number)
        where = {
            name: cells.labels[i][cells.codes[here[0], i]]
            for name, i in zip(names, at, strict=True)
        }
        keys.append(", ".join(map(str, where.values())))
        for j, model in enumerate(counted.models):
            tables = planes[here, j].sum(axis=0)
            weights = first[here, j].sum(axis=0)
            try:
                if tables[0].sum() < 2:
                    raise UndefinedMetricError("the cell has only one point")
                if not weights.sum() > 0:
                    raise UndefinedMetricError("every weight is 0")
                value, phi = influence_of_counts(request.metric, weights, options, notes)
            except UndefinedMetricError as error:
                whose = None if counted.single else model
                whole = first[:, j].sum(axis=0)
                folded = bool(whole.sum() > 0) and ("fold" in names or "source" in names)
                if folded:
                    try:
                        influence_of_counts(request.metric, whole, options, notes)
                    except UndefinedMetricError:
                        folded = False
                raise undefined(request, whose, classes, where, folded, str(error)) from None
            notes.see_class(int(tables[0].sum(axis=1).min()))
            total, squares = weights.sum(axis=1), [tables[-1].sum(axis=1)]
            if "source" in cells.levels:  # all predictions of a source may change together
                source = cells.codes[here, cells.levels.index("source")]
                sums = np.zeros((source.max() + 1, k))
                np.add.at(sums, source, first[here, j].sum(axis=2))
                squares.append((sums**2).sum(axis=0))
            known = [reach_of_labels(float(np.ptp(phi)), total, each) for each in squares]
            reaches[str(model)].append(known[0] + known[-1] if phi.any() else [np.nan] * 4)
            level[here, j] = request.metric.loss(value)
            slope[here, j] = request.metric.sign * phi * (tables[0].sum() / weights.sum())
    if request.metric.name == "accuracy" and counted.weight is None:
        return level, slope, facts_of_loss("accuracy", request.options)
    facts = metric_facts(request, names, classes, [notes])
    if is_biased_by_fold(request, design, names, lambda: np.bincount(group, cells.count)):
        facts["biased_by_fold"] = True
    written = write_reaches(keys, {}, {model: [own] for model, own in reaches.items()})
    return level, slope, facts if written is None else {**facts, ONE_PREDICTION: written}


def count_request(counted: CountedColumns, loss: Any, asked: Mapping[str, Any]) -> MetricRequest:
    """Find the requested metric, or raise if it cannot be computed from counts."""
    loss, asked = resolve_loss(loss, asked)
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    if metric is None or metric.reads != "labels":
        known = ", ".join(repr(m.name) for m in METRICS.values() if m.reads == "labels")
        way = ""
        if metric is not None:
            way = (
                f" {metric.words} needs all predictions of a cell at once: use cvstats.losses(…, "
                f"loss={loss!r}) on whole cells."
            )
        elif is_loss(loss):
            way = (
                " A loss of individual points is additive: "
                "cvstats.Moments.of_log(cvstats.losses(…)) of each batch."
            )
        raise LogError(
            f"loss={loss_name(loss)!r} cannot be computed from counts of labels. Expected one of "
            f"{known}.{way}"
        )
    positive = asked.get("positive")
    if counted.threshold is not None:
        if positive is not None:
            raise LogError(
                "positive= was already used when probabilities were converted to labels. Omit "
                "it here."
            )
        positive = counted.labels[counted.positive]
    own = {"threshold": counted.threshold, "positive": positive, "weight": counted.weight}
    given = {name: value for name, value in {**asked, **own}.items() if value is not None}
    return MetricRequest(metric, given)
