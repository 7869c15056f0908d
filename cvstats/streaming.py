"""Logs that come in batches, or are too long for memory: moments in place of losses."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cvstats.errors import LogError
from cvstats.io import scan
from cvstats.large import frames
from cvstats.large.lazy import has_lazy_losses, moments_of_array
from cvstats.large.moments import CellMoments, load, save, summarize
from cvstats.log.log import Losses
from cvstats.log.read import is_dask_frame
from cvstats.options import Missing
from cvstats.registry import add_methods

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Moments(CellMoments):
    """Counts, means and squared deviations of the cells of a log, in place of the log.

    Make them of a batch by `of_log`, add batches by ``+``, keep them in a file, and ask them
    what you would ask the log: for monitoring, for logs spread over machines, and for logs that
    fit into no memory. All functions of `cvstats` that need no more than cells take them, as in
    ``cvstats.wald(moments)``; those that need losses one by one refuse in words.

    Notes
    -----
    Labels and their number need not be known before, and the order of batches does not matter but
    for rounding: standard errors agree to about 14 digits, however far from zero the losses are.
    Models are matched by name.
    Each batch is checked as any log is. Across batches it is checked that all repetitions test
    the same points, by sums of hashes of their labels, and that no evaluation appears in two
    batches, by the hashes of the evaluations: of all up to 65,536, and of so many in a longer log.
    There a batch that was added twice is found, and a few evaluations may not be. Nothing is
    known again where points have no names. ``attrs["checked"]`` of a result says what was done.
    What the ``attrs`` of all batches say is kept, such as ``n_train`` and ``units``; where they
    differ, ``attrs["mixed"]`` of a result names them. Losses in different units are refused.

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
    >>> both.wald().round(0)
                   estimate   lower   upper     se caution
    model
    ridge            3006.0  2640.0  3372.0  187.0
    random_forest    3188.0  2807.0  3569.0  194.0
    """

    def __post_init__(self) -> None:
        """Refuse what was to go to `of_log`."""
        if not isinstance(self.parts, tuple):
            raise LogError(
                f"Moments of a {type(self.parts).__name__} are not made so. Expected a loss log, "
                f"for cvstats.Moments.of_log(log), or a file, for cvstats.Moments.load(path)."
            )

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
            If the batch is not a loss log, or a bootstrap log.

        Examples
        --------
        >>> import cvstats
        >>> log = cvstats.datasets.load("flights")
        >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
        >>> cvstats.Moments.of_log(losses, by="fold")
        <Moments of 24,000 evaluations in 12 cells by 'fold'; 1 model>
        """
        if has_lazy_losses(losses):
            return moments_of_array(cls, losses, by, pairs, missing)
        if is_dask_frame(losses):
            raise LogError(
                "this is a frame of dask. Expected cvstats.scan_dask(frame, loss=…), whose "
                ".compute() gives the moments."
            )
        return summarize(cls, losses, by, pairs, missing)

    def save(self, path: Path) -> None:
        """Write the moments to one small file, which is there whole or not at all.

        Arrays and text in numpy's ``.npz``, nothing pickled. What `load` reads is the same to the
        last bit. The labels of a level are text, numbers or times, all of one type, or tuples of
        these.

        Parameters
        ----------
        path : str or path
            Where to write; a file that is there is replaced.

        Raises
        ------
        LogError
            If ``path`` is not a path, or the labels of a level are of several types.
        """
        save(self, path)

    @classmethod
    def load(cls, path: Path) -> Moments:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Moments
            The same numbers, to the last bit.

        Raises
        ------
        LogError
            If there is no such file, or it is damaged, or holds something else.
        """
        return load(cls, path)


add_methods(Moments, without=("diagnose", "report"))


def scan_parquet(
    path: Path | Sequence[Path],
    *,
    loss: str | Sequence[str] | Callable[[Any, Any], Any] = "loss",
    truth: str | None = None,
    prediction: str | Sequence[str] | None = None,
    model: str | None = None,
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
) -> Moments:
    """Compute the moments of a Parquet log of any length, a batch of rows at a time.

    Parameters
    ----------
    path : str, path, or several of them
        A Parquet file, or a folder of them: a row for each evaluation. Or a list of these, or a
        pattern such as ``"logs/2024-*.parquet"`` (``**`` stands for any folders).
    loss : str, sequence of str or callable, optional
        The column of losses; a list where each model has a column of its own. With ``truth`` and
        ``prediction``, the loss of points to be computed of them, such as ``squared_error``, or a
        function of two arrays, as in `cvstats.losses`.
    truth, prediction : str or sequence of str, optional
        The columns of the truth and of the predictions; a list for several models.
    model : str, optional
        The column that names the model, where the models are stacked; a column
        called ``model`` is found by itself. Their points are compared by sums of hashes, and
        there are no ``pairs``.
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
        If a column is missing, some batch is not a loss log, or the loss is not one of points.
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
    >>> float(moments.wald().loc["loss", "estimate"].round())
    3006.0
    """
    asked = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point,
    }  # fmt: skip
    return scan.scan_parquet(
        Moments, path, loss, asked, truth=truth, prediction=prediction, model=model, by=by,
        pairs=pairs, missing=missing, batch_size=batch_size, progress=progress,
    )  # fmt: skip


def scan_dask(
    frame: Any,
    *,
    loss: str | Sequence[str] = "loss",
    model: str | None = None,
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
        be in any partition, and labels need not be known.
    loss, model, sample, outer, repetition, fold, source, point, by, pairs, missing : optional
        As of `scan_parquet` of a file of losses.

    Returns
    -------
    dask.delayed.Delayed
        Of `Moments`: ``scan_dask(frame).compute()`` gives them, and methods may be called
        before, as in ``scan_dask(frame).wald().compute()``. Methods of one object that are
        computed together read the frame once.

    Raises
    ------
    LogError
        If a column is missing; when computed, if some partition is not a loss log.
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
    return frames.scan_dask(
        Moments, frame, loss, asked, model=model, by=by, pairs=pairs, missing=missing
    )
