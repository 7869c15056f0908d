"""A comparison that grows batch by batch and can be inspected at any time."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.comparisons._adjust import adjust_tests
from cvstats.comparisons._pairs import (
    check_method_options,
    choose_pairs,
    compare_pairs,
    refuse_impossible,
)
from cvstats.comparisons.compare import FEWEST_UNITS, compute_anytime, read_tightest_at
from cvstats.comparisons.equivalence import Margin, read_margin
from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError
from cvstats.intervals import find_method
from cvstats.large.moments import Moments
from cvstats.log.log import Log, Losses
from cvstats.log.pandas import add_levels, names_of_frame
from cvstats.log.plain import from_plain, to_plain
from cvstats.log.read import read
from cvstats.options import Adjust, Missing, check_alpha, check_choices, find_choices, known_name

Path = str | os.PathLike[str]

DECISIONS = ("", "better", "worse", "alike", "")
"""Possible decisions about a pair: the model is better, worse, or within the margin.

The last one is for masked cells.
"""

TOO_EARLY = Caution.EARLY_LOOK | Caution.NO_LIMITS_YET | Caution.SKEWED
"""Cautions that more points remove: no decision is made under them, as none can be taken back."""

NOTE = "monitor"
"""Attribute in a file of moments with the settings and decisions of a monitor."""


class Monitor:
    """Comparison of models on a growing test set that is valid at every look.

    Create a monitor with `cvstats.monitor`, or read it from a file with `load`.

    Parameters
    ----------
    reference : hashable
        The model to which the others are compared; None for all pairs.
    method : {"holdout", "clustered"} or None
        Whether points or sources are the sampling unit; None to infer it from the log.
    margin : tuple of two floats or None
        The ends between which a difference does not matter.
    adjust : {"holm", "bonferroni", "bh"} or None
        How decisions are adjusted for multiple pairs.
    alpha : float
        One minus the level of the limits.
    tightest_at : int
        The number of points (or groups) at which the limits are tightest.

    Examples
    --------
    >>> import cvstats, pathlib, tempfile
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> watch = cvstats.monitor(losses.xs((0, 0), level=("repetition", "fold")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     watch.save(pathlib.Path(folder, "watch.npz"))
    ...     tomorrow = cvstats.Monitor.load(pathlib.Path(folder, "watch.npz"))
    >>> tomorrow.interval()[["difference", "lower", "upper", "decision"]].round(0)
                        difference   lower upper decision
    model other
    ridge random_forest       -589  -1,857   680
    """

    def __init__(
        self,
        *,
        reference: Hashable,
        method: str | None,
        margin: tuple[float, float] | None,
        adjust: str | None,
        alpha: float,
        tightest_at: int,
    ) -> None:
        self._reference, self._method, self._margin = reference, method, margin
        self._adjust, self._alpha, self._tightest_at = adjust, alpha, tightest_at
        self._moments: Moments | None = None
        self._repeated = False
        self._decided: IntArray | None = None
        self._stopped_at: FloatArray | None = None

    def __repr__(self) -> str:
        """Show the number of evaluations and of decided pairs."""
        if self._moments is None:
            return "<Monitor of nothing yet>"
        words = "too few to decide"
        if self._decided is not None:
            done, pairs = np.count_nonzero(self._decided), self._decided.size
            words = f"{'stop, ' if self.stop else ''}{done:,} of {pairs:,} pairs decided"
        return f"<Monitor of {self.n_losses:,} evaluations: {words}>"

    @property
    def n_losses(self) -> int:
        """Number of evaluations added for each model."""
        return 0 if self._moments is None else self._moments.n_losses

    @property
    def moments(self) -> Moments:
        """Aggregates of all batches: counts, means and squared deviations of differences."""
        if self._moments is None:
            raise LogError(
                "this monitor is empty. Add a batch of losses first: monitor.add(losses)."
            )
        return self._moments

    @property
    def stop(self) -> bool:
        """Whether every pair is decided, so that no further evaluations are needed."""
        return self._decided is not None and bool((self._decided > 0).all())

    def add(self, batch: Losses, *, missing: Missing = "raise") -> None:
        """Add a batch of paired losses, and update the decisions.

        Parameters
        ----------
        batch : DataFrame, DataArray, Dataset or Moments
            A loss log of additional points for the same models, with all repetitions of a point in
            one batch; or its `Moments`, with ``pairs=True``.
        missing : {"raise", "drop"}, optional
            Whether NaN losses raise an error, or their evaluations are dropped for all models.

        Raises
        ------
        LogError
            If the batch does not match the others, or repeats an evaluation. The monitor is then
            unchanged.
        """
        before, repeated = self._moments, self._repeated
        try:
            part = batch if isinstance(batch, Moments) else self._summarize(batch, missing)
            self._moments = part if before is None else before + part
            if before is None:
                choose_pairs(self._moments.log(), self._reference)
            if self._moments.n_losses >= FEWEST_UNITS:
                self.interval()
        except LogError:
            self._moments, self._repeated = before, repeated
            raise

    def interval(self) -> Any:
        """Return the current differences between the models.

        Returns
        -------
        DataFrame or Dataset
            As in ``compare(anytime=True)``, with ``decision`` (``"better"``, ``"worse"``, or
            ``"alike"`` within the margin; empty until a decision is made) and ``stopped_at``, the
            number of points (or groups) at which it was made. A decision is never taken back.

        Raises
        ------
        LogError
            If fewer than two points were added.
        """
        method = self._method
        if self._repeated or (method is None and "source" in self.moments.levels):
            method = "clustered"

        def run(log: Log) -> Result:
            result = compute_anytime(
                log, method=method, options={}, alpha=self._alpha, tightest_at=self._tightest_at
            )
            if self._margin is not None:
                size = min(map(abs, self._margin))
                refuse_impossible("margin", size, log, result.columns["difference"])
            return result

        return compare_pairs(self.moments, None, self._reference, "raise", run, finish=self._decide)

    def _summarize(self, losses: Any, missing: Missing) -> Moments:
        """Compute the aggregates of a batch; each point with several repetitions is a source.

        With fixed models all sources form one test set, which is marked by a level ``fold``.
        """
        names = names_of_frame(losses)
        if names is not None:
            if "source" not in names:
                design = read(losses, missing=missing).design
                if design.number("repetition") > 1:
                    find_method("holdout").require(design)  # each point in every repetition
                    self._repeated = True
            levels: dict[str, Any] = {}
            if self._repeated:
                levels["source"] = losses.index.get_level_values("point")
            if "fold" not in names and (self._repeated or "source" in names):
                levels["fold"] = np.zeros(len(losses), dtype=np.int64)
            losses = add_levels(losses, levels)
        return Moments.of_log(losses, pairs=True, missing=missing)

    def _decide(self, result: Result) -> Result:
        """Add the decisions made at this look or earlier."""
        result = adjust_tests(result, self._adjust)
        columns = dict(result.columns)
        p = columns.get("p_adjusted", columns["p_value"])
        units = columns["n_clusters"] if "n_clusters" in columns else columns["n_points"]
        found = np.where(columns["difference"] < 0, 1, 2)
        found = np.where(p <= self._alpha, found, 0)
        if self._margin is not None:
            low, high = self._margin
            within = (columns["lower"] > low) & (columns["upper"] < high)
            found = np.where((found == 0) & within, 3, found)
        early = (result.caution & np.int64(TOO_EARLY)) != 0
        found = np.where(early, 0, found)
        masked = np.isnan(columns["difference"])
        found = np.where(masked, DECISIONS.index("", 1), found)
        if self._decided is None or self._stopped_at is None:
            self._decided, self._stopped_at = np.zeros(len(p), np.int64), np.full(len(p), np.nan)
        new = (self._decided == 0) & (found > 0)
        self._stopped_at = np.where(new & ~masked, units, self._stopped_at)
        self._decided = np.where(new, found, self._decided)
        words: NDArray[Any] = np.array(DECISIONS, dtype=object)[self._decided]
        columns |= {"decision": words, "stopped_at": self._stopped_at}
        return replace(result, columns=columns, attrs={**result.attrs, "method": "monitor"})

    def save(self, path: Path) -> None:
        """Write the monitor to one small file, to continue later.

        Parameters
        ----------
        path : str or path
            Where to write; an existing file is overwritten. `Moments.load` can also read it.

        Raises
        ------
        LogError
            If nothing was added yet, or ``path`` is not a path.
        """
        moments = self.moments
        note = {name: value for name, value in vars(self).items() if name != "_moments"}
        if self._reference is not None:
            note["_reference"] = moments.models.index(self._reference)
        notes = replace(moments.notes, shared={**moments.notes.shared, NOTE: to_plain(note)})
        replace(moments, notes=notes).save(path)

    @classmethod
    def load(cls, path: Path) -> Monitor:
        """Read a file written by `save`, to continue from there.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Monitor
            A monitor with the same settings, numbers and decisions.

        Raises
        ------
        LogError
            If the file does not exist, or is not a file of a monitor.
        """
        moments = Moments.load(path)
        shared = dict(moments.notes.shared)
        note = from_plain(shared.pop(NOTE, None))
        if note is None:
            raise LogError(
                f"{os.fspath(path)!r} contains moments, not a monitor. Expected a file written "
                "by Monitor.save. For moments use cvstats.Moments.load."
            )
        if (at := note["_reference"]) is not None:
            note["_reference"] = moments.models[at]
        found = cls.__new__(cls)
        vars(found).update(note)
        found._moments = replace(moments, notes=replace(moments.notes, shared=shared))
        return found


def monitor(
    batch: Losses | None = None,
    *,
    reference: Hashable = None,
    method: Literal["holdout", "clustered"] | None = None,
    margin: Margin | None = None,
    adjust: Adjust | None = "holm",
    tightest_at: int | None = None,
    alpha: float = 0.05,
) -> Monitor:
    """Compare models on a growing test set, and stop as soon as all pairs are decided.

    The monitor looks at the results after each batch of paired losses. The probability of a false
    decision at any look is at most ``alpha``, as the number of points at the first look grows. It
    uses an asymptotic confidence sequence, as does ``compare(anytime=True)``. It keeps the
    `Moments` of the batches, which include up to 50,000 individual losses; so does a saved file.

    Parameters
    ----------
    batch : DataFrame, DataArray, Dataset or Moments, optional
        The first batch; others follow by ``add``.
    reference : hashable, optional
        The name of a model to which the others are compared; all pairs by default.
    method : {"holdout", "clustered"}, optional
        Whether points or sources are the sampling unit; by default sources, if the log has any.
    margin : float or pair of float, optional
        The largest difference that does not matter, in the units of the loss. Models whose
        difference is significantly smaller are then decided as ``"alike"``; without a margin two
        equally good models are never separated.
    adjust : {"holm", "bonferroni", "bh", None}, optional
        How decisions are adjusted for multiple pairs; the decision ``"alike"`` is made for each
        pair separately.
    tightest_at : int, optional
        The number of points (or groups) at which the limits are tightest; 500 by default.
    alpha : float, optional
        One minus the level of the limits.

    Returns
    -------
    Monitor
        With ``add(batch)``, ``interval()``, ``stop``, ``save(path)`` and `Monitor.load`.

    Raises
    ------
    LogError
        If an option is invalid, or the first batch does not have at least two models.

    Notes
    -----
    The points must come in random order, so shuffle the questions before you begin. Batches can
    have any size, which may depend on earlier results, but the choice of points must not depend on
    them. Because a decision is never reversed, no decision is made with fewer than 100 points (or
    groups), or while the differences are too skewed for their number (caution ``skewed``). For 0/1
    losses, 30 points are enough if the two models disagree on 25 of them. If a point has several
    repetitions (answers), they must be in the same batch of a DataFrame, and are averaged; the mean
    of each point is then stored.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52(6), 2613-2640,
    arXiv:2103.06476.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> one_split = losses.xs((0, 0), level=("repetition", "fold"))
    >>> watch = cvstats.monitor(one_split.iloc[:20], tightest_at=100)
    >>> watch.add(one_split.iloc[20:])
    >>> watch
    <Monitor of 45 evaluations: 0 of 1 pairs decided>
    """
    check_alpha(alpha)
    adjust = known_name("adjust", adjust)
    check_choices({"method": method, "adjust": adjust}, find_choices(monitor))
    check_method_options(method, None)
    found = Monitor(
        reference=reference,
        method=method,
        margin=None if margin is None else read_margin(margin),
        adjust=adjust,
        alpha=alpha,
        tightest_at=read_tightest_at(tightest_at),
    )
    if batch is not None:
        found.add(batch)
    return found
