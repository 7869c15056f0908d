"""Logs that come in batches, or are too long for memory: moments in place of losses."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cvstats.api import choosing, comparing, describing, intervals, resampled, sourcing
from cvstats.api.comparing_lazily import all_gaps, lazy_losses
from cvstats.api.pairs import Options
from cvstats.api.running import Alternative, Compared, Losses, Missing, Table
from cvstats.api.running_resampled import TrainSize
from cvstats.containers import Kept, kept_files, kept_of, kept_of_array, scanning
from cvstats.plans.drawing import Rng

__all__ = ["Moments", "scan_dask", "scan_parquet"]

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Moments(Kept):
    """Counts, means and squared deviations of the cells of a log, in place of the log.

    Make them of a batch by `of_log`, add batches by ``+``, keep them in a file, and ask them
    what you would ask the log: for monitoring, for logs spread over machines, and for logs that
    fit into no memory. All functions of `cvstats` that need no more than cells take them, as in
    ``cvstats.wald(moments)``; those that need losses one by one refuse in words.

    Notes
    -----
    Labels and their number need not be known before, and the order of batches does not matter
    (results agree to about 13 digits of the spread of the losses). Models are matched by name.
    Each batch is checked as any log is. Across batches it is checked that all repetitions test
    the same points, by sums of hashes of their labels. That an evaluation stands in two batches
    is not noticed in a log of one repetition; ``attrs["checked"]`` of a result says so.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> morning, evening = losses.iloc[:1000], losses.iloc[1000:]
    >>> both = cvstats.Moments.of_log(morning) + cvstats.Moments.of_log(evening)
    >>> both
    <Moments of 4,420 evaluations in 100 cells by 'repetition', 'fold'; 2 models>
    >>> both.wald()[["estimate", "lower", "upper"]].round(0)
                   estimate   lower   upper
    model
    ridge            3006.0  2640.0  3372.0
    random_forest    3188.0  2807.0  3569.0
    """

    @classmethod
    def of_log(
        cls,
        losses: Losses,
        *,
        by: str | Sequence[str] | None = None,
        pairs: bool = False,
        missing: Missing = "raise",
    ) -> Moments:
        """Compute the moments of a batch, or of a whole log.

        Parameters
        ----------
        losses : Series, DataFrame, DataArray or Dataset
            A loss log, or some rows of one. A lazy array (dask) is computed chunk by chunk.
        by : str or sequence of str, optional
            The levels whose labels tell cells apart; without it ``sample``, ``outer``,
            ``repetition``, ``fold`` and ``source`` as the log has them. Fewer cells answer
            fewer questions; other levels of the index may be among them.
        pairs : bool, optional
            Whether to keep the moments of the differences of all pairs of models too, which
            `compare` needs. They take models^2 / 2 numbers for each cell.
        missing : {"raise", "drop"}, optional
            Whether a NaN loss is an error, or leaves the evaluation out for all models.

        Returns
        -------
        Moments
            A cell for each combination of labels that occurs.

        Raises
        ------
        LogError
            If the batch is no loss log, or a bootstrap log.

        Examples
        --------
        >>> import cvstats
        >>> log = cvstats.datasets.load("flights")
        >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
        >>> cvstats.Moments.of_log(losses, by="fold")
        <Moments of 24,000 evaluations in 12 cells by 'fold'; 1 model>
        """
        if lazy_losses(losses):
            gaps = all_gaps(losses) if pairs else None
            return kept_of_array(cls, losses, gaps, by, missing)
        return kept_of(cls, losses, by, pairs, missing)

    def save(self, path: Path) -> None:
        """Write the moments to one small file, which is there whole or not at all.

        Arrays and text in numpy's ``.npz``; nothing is pickled, so that a file of a stranger
        can be read. What `load` reads is the same to the last bit.
        """
        kept_files.save(self, path)

    @classmethod
    def load(cls, path: Path) -> Moments:
        """Read what `save` wrote."""
        return kept_files.load(cls, path)

    def moments(self, *, by: str | Sequence[str] = describing.BY) -> Any:
        """Count, mean and variance of each cell: `cvstats.moments`."""
        return describing.moments(self, by=by)

    def wald(
        self,
        *,
        variance: Literal["all-pairs", "within-fold"] = "all-pairs",
        fold_weights: Literal["size", "equal"] = "size",
        alternative: Alternative = "two-sided",
        alpha: float = 0.05,
        by: str | None = None,
    ) -> Table:
        """Interval for the error of the models that were trained: `cvstats.wald`."""
        return intervals.wald(
            self, variance=variance, fold_weights=fold_weights, alternative=alternative,
            alpha=alpha, by=by,
        )  # fmt: skip

    def holdout(self, *, interval: Literal["wald", "t"] = "wald", alpha: float = 0.05) -> Table:
        """Interval from one test set: `cvstats.holdout`."""
        return intervals.holdout(self, interval=interval, alpha=alpha)

    def naive(self, *, alpha: float = 0.05) -> Table:
        """Take losses for independent, which they are not: `cvstats.naive`."""
        return intervals.naive(self, alpha=alpha)

    def cv_t(self, *, alpha: float = 0.05) -> Table:
        """Take fold means for independent, which they are not: `cvstats.cv_t`."""
        return intervals.cv_t(self, alpha=alpha)

    def quadratic(
        self,
        *,
        estimator: Literal["theta_1", "theta_2", "theta_3", "theta_4", "theta_5"] = "theta_5",
        bias: Sequence[float] | None = None,
        fold_weights: Literal["size", "equal"] = "size",
        alpha: float = 0.05,
    ) -> Table:
        """Interval from a quadratic variance estimator: `cvstats.quadratic`."""
        return intervals.quadratic(
            self, estimator=estimator, bias=bias, fold_weights=fold_weights, alpha=alpha
        )

    def decompose(
        self,
        *,
        rho: float | Sequence[float] | None = None,
        gamma: float | None = None,
        fold_weights: Literal["size", "equal"] = "size",
    ) -> Table:
        """Estimate what the log tells of its variance: `cvstats.decompose`."""
        return describing.decompose(self, rho=rho, gamma=gamma, fold_weights=fold_weights)

    def corrected_t(self, *, train_size: TrainSize = None, alpha: float = 0.05) -> Table:
        """Interval of random splits: `cvstats.corrected_t`."""
        return resampled.corrected_t(self, train_size=train_size, alpha=alpha)

    def out_of_source(
        self,
        *,
        target: Literal["new_source", "these_sources"] = "new_source",
        variance: Literal["theta_b", "theta_a"] = "theta_b",
        alpha: float = 0.05,
    ) -> Table:
        """Interval for the error on a new source: `cvstats.out_of_source`."""
        return sourcing.out_of_source(self, target=target, variance=variance, alpha=alpha)

    def clustered(
        self, *, by: str = "source", correction: Literal["CR1", "CR3"] = "CR1", alpha: float = 0.05
    ) -> Table:
        """Interval with groups as the independent units: `cvstats.clustered`."""
        return sourcing.clustered(self, by=by, correction=correction, alpha=alpha)

    def compare(
        self,
        *,
        reference: Hashable = None,
        method: Compared | None = None,
        options: Options = None,
        alternative: Alternative = "two-sided",
        adjust: Literal["holm", "bh", "max-t"] | None = "holm",
        alpha: float = 0.05,
        n_draws: int = 10_000,
        rng: Rng = None,
    ) -> Any:
        """Test whether models differ, if pairs were kept: `cvstats.compare`."""
        return comparing.compare(
            self, reference=reference, method=method, options=options, alternative=alternative,
            adjust=adjust, alpha=alpha, n_draws=n_draws, rng=rng,
        )  # fmt: skip

    def interval(self, *, method: str | None = None, alpha: float = 0.05) -> Table:
        """Give the interval that this log calls for, and why: `cvstats.interval`."""
        return choosing.interval(self, method=method, alpha=alpha)


def scan_parquet(
    path: Path,
    *,
    loss: str | Sequence[str] = "loss",
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
    batch_size: int = scanning.BATCH,
    progress: Callable[[int], object] | None = None,
) -> Moments:
    """Compute the moments of a Parquet log of any length, a batch of rows at a time.

    Parameters
    ----------
    path : str or path
        A Parquet file, or a folder of them: a row for each evaluation.
    loss : str or sequence of str, optional
        The column of losses; a list where each model has a column of its own.
    sample, outer, repetition, fold, source, point : str, optional
        The column of each level. One that bears the level's own name is found by itself.
    by, pairs, missing : optional
        As of `Moments.of_log`; ``by`` may name any column.
    batch_size : int, optional
        Rows that are read together. Memory grows with it, and with the row groups of the file,
        and not with the log.
    progress : callable, optional
        Called with the number of rows after each batch, as ``tqdm(total=rows).update`` is.

    Returns
    -------
    Moments
        To be asked for intervals, added to others, or saved.

    Raises
    ------
    LogError
        If a column is missing, or some batch is no loss log.
    ImportError
        If pyarrow is not installed (extra ``io``).

    Notes
    -----
    Each batch is checked by itself; see `Moments` for what is checked across them.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats, pathlib, tempfile
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "log.parquet")
    ...     losses.rename("loss").reset_index().to_parquet(file)
    ...     moments = cvstats.scan_parquet(file, batch_size=1000)
    >>> float(moments.wald()["estimate"].round())
    3006.0
    """
    asked = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point,
    }  # fmt: skip
    return scanning.scan_parquet(
        Moments, path, loss, asked, by=by, pairs=pairs, missing=missing, batch_size=batch_size,
        progress=progress,
    )  # fmt: skip


def scan_dask(
    frame: Any,
    *,
    loss: str | Sequence[str] = "loss",
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
) -> Any:
    """Make delayed moments of a dask DataFrame: of each partition, and a tree of sums.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        A row for each evaluation, as of ``dask.dataframe.read_parquet``. Folds and points may
        stand in any partition, and labels need not be known.
    loss, sample, outer, repetition, fold, source, point, by, pairs, missing : optional
        As of `scan_parquet`.

    Returns
    -------
    dask.delayed.Delayed
        Of `Moments`: ``scan_dask(frame).compute()`` gives them, and methods may be called
        before, as in ``scan_dask(frame).wald().compute()``. Methods of one object that are
        computed together read the frame once.

    Raises
    ------
    LogError
        If a column is missing; when computed, if some partition is no loss log.
    ImportError
        If dask is not installed (extra ``dask``).

    Notes
    -----
    Each partition is checked by itself; see `Moments` for what is checked across them.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge").rename("loss").reset_index()
    >>> import dask.dataframe  # doctest: +SKIP
    >>> frame = dask.dataframe.from_pandas(losses, npartitions=4)  # doctest: +SKIP
    >>> cvstats.scan_dask(frame).wald().compute()["estimate"].round()  # doctest: +SKIP
    3006.0
    """
    asked = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point,
    }  # fmt: skip
    return scanning.scan_dask(Moments, frame, loss, asked, by=by, pairs=pairs, missing=missing)
