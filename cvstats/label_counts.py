"""Counts of truth by predicted label: metrics of logs of predictions that fit into no memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import pandas as pd

from cvstats.errors import LogError
from cvstats.io import scan
from cvstats.large.moments import CellMoments
from cvstats.large.scanning import Batch, columns_of, levels_of
from cvstats.log.columns import TableColumns, set_level_index
from cvstats.loss_functions.label_counts import (
    CountedColumns,
    count_batch,
    encode_batch,
    moments_of_counts,
    positive_number,
)
from cvstats.loss_functions.predictions import Columns, models, require_columns, single
from cvstats.options import Missing, check_choices, find_choices
from cvstats.streaming import Moments

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class LabelCounts:
    """How often each truth met each predicted label, in each cell of a log.

    Make them of a batch of predictions by `of_predictions`, or of Parquet files by
    `cvstats.scan_predictions`; add batches by ``+``; and ask them for the moments of any metric of
    labels, which have all methods of a log that need no losses one by one. Memory grows with the
    cells and the labels, and not with the predictions.

    Notes
    -----
    The influence of a point on accuracy, precision, recall, F1, Matthews correlation, kappa and
    the like depends on its truth and its predicted label alone. So these counts hold the metric of
    each cell, averaged or pooled over folds, and its variance: the interval is that of the log in
    memory, to rounding. AUC, average precision and other metrics of ranks need all scores of a cell
    at once, and are refused. Across batches the same is checked as for `Moments`.

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
    >>> cvstats.as_scores(counts.moments("f1").wald())[["estimate", "lower", "upper"]].round(3)
                 estimate  lower  upper
    model
    naive_bayes     0.135  0.124  0.146
    """

    part: CellMoments
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
            Truth and predicted labels as columns, with the levels of a loss log, as for
            `cvstats.losses`.
        truth : hashable, optional
            The column of the truth.
        prediction : hashable, sequence or mapping, optional
            The column of predictions; for several models a list of columns, or a mapping from the
            model's name to its column.
        labels : sequence, optional
            All labels: a batch need not hold each of them.
        threshold : float, optional
            Where probabilities of one of two labels are predicted: from where on it is predicted.
        positive : hashable, optional
            With ``threshold``, of which label the probabilities are, if these are not 0 and 1.
        weight : hashable, optional
            The column of weights of the points, of which only ratios matter.
        by : str or sequence of str, optional
            The levels whose labels tell cells apart, as of `Moments.of_log`.
        pairs : bool, optional
            Whether to count the labels of each two models together, which `compare` needs.
        missing : {"raise", "drop"}, optional
            Whether a missing truth or prediction is an error, or leaves the evaluation out for all
            models.

        Returns
        -------
        LabelCounts
            Counts for each cell that occurs.

        Raises
        ------
        LogError
            If a column is missing, a label is not among ``labels``, or the batch is not a log.
        """
        if not isinstance(predictions, pd.DataFrame):
            raise LogError(
                f"a {type(predictions).__name__} holds no columns of predictions. Expected a "
                f"DataFrame. Count it part by part: sum(map(LabelCounts.of_predictions, parts))."
            )
        counted = count_columns(
            truth, prediction, labels=labels, threshold=threshold, positive=positive,
            weight=weight, pairs=pairs,
        )  # fmt: skip
        require_columns(predictions, counted.columns)
        frame = set_level_index(predictions, counted.columns)
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
            As of `cvstats.losses`; ``by`` names levels of the counts.

        Returns
        -------
        Moments
            To be asked for intervals and, with ``pairs=True``, for comparisons.

        Raises
        ------
        LogError
            If counts do not hold the metric, or it has no value in a cell.
        """
        check_choices(locals(), find_choices(LabelCounts.moments))
        asked: dict[str, Any] = {
            "folds": folds, "average": average, "positive": positive, "beta": beta,
            "weights": weights, "zero_division": zero_division,
            "by": () if by is None else (by,) if isinstance(by, str) else tuple(by),
        }  # fmt: skip
        found = moments_of_counts(self.part, self.counted, loss, asked)
        return Moments(*(getattr(found, field.name) for field in fields(found)))

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
        """Let ``sum`` start from its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        """Describe what was counted."""
        m, k = len(self.counted.models), len(self.counted.labels)
        pairs = ", with pairs" if self.counted.pairs else ""
        return (
            f"<LabelCounts of {self.part.n_losses:,} evaluations in "
            f"{len(self.part.cells.count):,} cells by "
            f"{', '.join(map(repr, self.part.levels)) or 'nothing'}; {m:,} "
            f"model{'s' if m > 1 else ''}, {k:,} labels{pairs}>"
        )


def count_columns(truth: Hashable, prediction: Any, **options: Any) -> CountedColumns:
    """Gather what is to be counted."""
    labels, threshold = options.pop("labels"), options["threshold"]
    if single(labels):
        raise LogError(f"labels={labels!r} is not a list. Expected all labels, such as [0, 1].")
    labels, positive = tuple(labels), options.pop("positive")
    if threshold is None and positive is not None:
        raise LogError(
            "positive= is for probabilities here. Expected threshold= with it. For predicted "
            "labels name it later: counts.moments('f1', positive=…)."
        )
    one = single(prediction)
    columns = {name: names[0] for name, names in models(prediction, None).items()}
    counted = CountedColumns(truth, columns, one, labels, **options)
    if threshold is None:
        return counted
    return replace(counted, positive=positive_number(labels, positive))


def scan_predictions(
    path: Path | Sequence[Path],
    *,
    truth: str = "y_true",
    prediction: str | Sequence[str] | Mapping[str, str] = "y_pred",
    labels: Sequence[Hashable] = (0, 1),
    threshold: float | None = None,
    positive: Hashable = None,
    weight: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
    batch_size: int = scan.BATCH,
    progress: Callable[[int], object] | None = None,
) -> LabelCounts:
    """Count the labels in Parquet files of any length, a batch of rows at a time.

    Parameters
    ----------
    path : str, path, or several of them
        Files with a row for each evaluation, as for `cvstats.scan_parquet`.
    truth, prediction, labels, threshold, positive, weight : optional
        As of `LabelCounts.of_predictions`.
    sample, outer, repetition, fold, source, point : str, optional
        The column of each level. One that bears the level's own name is found by itself.
    by, pairs, missing : optional
        As of `LabelCounts.of_predictions`.
    batch_size, progress : optional
        As of `cvstats.scan_parquet`.

    Returns
    -------
    LabelCounts
        To be asked for the moments of any metric of labels.

    Raises
    ------
    LogError
        If a column is missing, or some batch is not a log.
    ImportError
        If pyarrow is not installed (extra ``io``).

    Notes
    -----
    A CSV file of any length is counted in the same way:
    ``sum(LabelCounts.of_predictions(part) for part in pandas.read_csv(path, chunksize=10**6))``.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats, pathlib, tempfile
    >>> log = cvstats.datasets.load("flights").reset_index()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "predictions.parquet")
    ...     log.to_parquet(file)
    ...     counts = cvstats.scan_predictions(file, prediction="naive_bayes", threshold=0.5)
    >>> cvstats.as_scores(counts.moments("matthews").wald())[["estimate", "se"]].round(3)
                 estimate     se
    model
    naive_bayes       0.1  0.008
    """
    asked = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point,
    }  # fmt: skip
    counted = count_columns(
        truth, prediction, labels=labels, threshold=threshold, positive=positive, weight=weight,
        pairs=pairs,
    )  # fmt: skip

    def find(known: list[str]) -> TableColumns:
        return columns_of(known, [str(name) for name in counted.columns], asked, by)

    total: LabelCounts | None = None
    for table, columns in scan.scan_tables(path, find, batch_size, progress):
        if len(table[columns.names[0]]):
            codes = Batch(levels_of(table, columns), encode_batch(table, counted), single=False)
            found = LabelCounts(count_batch(codes, counted, by, missing), counted)
            total = found if total is None else total + found
    if total is None:
        raise LogError("the files hold no rows. Expected at least one evaluation.")
    return total
