"""A comparison that grows batch by batch, looked at as often as one likes."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.comparisons._adjust import adjust_tests
from cvstats.comparisons._pairs import check_method_options, choose_pairs, compare_pairs
from cvstats.comparisons.anytime import FEWEST, check_anytime, compute_anytime
from cvstats.comparisons.equivalence import Margin, check_margin
from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError
from cvstats.intervals import find_method
from cvstats.large.moments import Moments
from cvstats.log.log import Losses
from cvstats.log.pandas import add_levels, names_of_frame
from cvstats.log.plain import from_plain, to_plain
from cvstats.log.read import read
from cvstats.options import Adjust, Missing, check_alpha, check_choices, find_choices, known_name

Path = str | os.PathLike[str]

DECISIONS = ("", "better", "worse", "alike", "")
"""What may be known of a pair: that the model is better, worse, or within the margin.

The last one is for a masked cell, of which there is nothing to know.
"""

NOTE = "monitor"
"""Where a file of moments keeps the settings and decisions of a monitor."""


class Monitor:
    """A comparison of models on a test set that grows, valid however often one looks.

    Made by `monitor`, or read from a file by `load`.

    Parameters
    ----------
    reference : hashable
        The model to which the others are compared; None for all pairs.
    method : {"holdout", "clustered"} or None
        Whether points are counted, or sources; None for what the log says.
    margin : tuple of two floats or None
        The ends between which a difference does not matter.
    adjust : {"holm", "bonferroni", "bh"} or None
        How decisions about several pairs allow for each other.
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
                         difference   lower  upper decision
    model other
    ridge random_forest      -589.0 -1857.0  680.0
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
        """Say how much was seen, and what of it is decided."""
        if self._moments is None:
            return "<Monitor of nothing yet>"
        words = "too few to decide"
        if self._decided is not None:
            done, pairs = np.count_nonzero(self._decided), self._decided.size
            words = f"{'stop, ' if self.stop else ''}{done:,} of {pairs:,} pairs decided"
        return f"<Monitor of {self.n_losses:,} evaluations: {words}>"

    @property
    def n_losses(self) -> int:
        """Number of evaluations that were added, of each model."""
        return 0 if self._moments is None else self._moments.n_losses

    @property
    def moments(self) -> Moments:
        """What is kept of all batches: counts, means and squared deviations of differences."""
        if self._moments is None:
            raise LogError(
                "nothing was added to this monitor yet. Expected a batch of losses first: "
                "monitor.add(losses)."
            )
        return self._moments

    @property
    def stop(self) -> bool:
        """Whether every pair is decided, so that further evaluations would bring nothing new."""
        return self._decided is not None and bool((self._decided > 0).all())

    def add(self, batch: Losses, *, missing: Missing = "raise") -> None:
        """Add a batch of paired losses, and look at what is known now.

        Parameters
        ----------
        batch : DataFrame, DataArray, Dataset or Moments
            A loss log of further points, of the same models as before. All repetitions of a point
            are in one batch. Or its `Moments`, with ``pairs=True``.
        missing : {"raise", "drop"}, optional
            Whether a NaN loss is an error, or leaves the evaluation out for all models.

        Raises
        ------
        LogError
            If the batch does not fit the others, or holds an evaluation again. The monitor then
            stays as it was.
        """
        before, repeated = self._moments, self._repeated
        try:
            part = batch if isinstance(batch, Moments) else self._summarize(batch, missing)
            self._moments = part if before is None else before + part
            if before is None:
                choose_pairs(self._moments.log(), self._reference)
            if self._moments.n_losses >= FEWEST:
                self.interval()
        except LogError:
            self._moments, self._repeated = before, repeated
            raise

    def interval(self) -> Any:
        """Return the differences of the models as they are known now.

        Returns
        -------
        DataFrame or Dataset
            As of ``compare(anytime=True)``, with ``decision`` (``"better"``, ``"worse"``, or
            ``"alike"`` within the margin; empty until something is known) and ``stopped_at``, the
            number of points (or groups) at which it was made. A decision is never taken back.

        Raises
        ------
        LogError
            If fewer than two points were added.
        """
        method = self._method
        if self._repeated or (method is None and "source" in self.moments.levels):
            method = "clustered"
        run = partial(
            compute_anytime, method=method, options={}, alpha=self._alpha,
            tightest_at=self._tightest_at,
        )  # fmt: skip
        return compare_pairs(self.moments, None, self._reference, "raise", run, finish=self._decide)

    def _summarize(self, losses: Any, missing: Missing) -> Moments:
        """Compute what is kept of a batch; each point of several repetitions is a source.

        Models that stay the same make one test set of all sources, which a level ``fold`` says.
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
        """Add to a look what was decided at it, or at one before."""
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
        early = (result.caution & np.int64(Caution.EARLY_LOOK | Caution.NO_LIMITS_YET)) != 0
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
        """Write the monitor to one small file, to go on another day.

        Parameters
        ----------
        path : str or path
            Where to write; a file that is there is replaced. `Moments.load` reads it as well.

        Raises
        ------
        LogError
            If nothing was added yet, or ``path`` is not a path.
        """
        moments = self.moments
        models = moments.models
        note = {
            "reference": None if self._reference is None else models.index(self._reference),
            "method": self._method,
            "margin": None if self._margin is None else list(self._margin),
            "adjust": self._adjust,
            "alpha": self._alpha,
            "tightest_at": self._tightest_at,
            "repeated": self._repeated,
            "decided": None if self._decided is None else self._decided.tolist(),
            "stopped_at": None if self._stopped_at is None else self._stopped_at.tolist(),
        }
        notes = replace(moments.notes, shared={**moments.notes.shared, NOTE: to_plain(note)})
        replace(moments, notes=notes).save(path)

    @classmethod
    def load(cls, path: Path) -> Monitor:
        """Read what `save` wrote, and go on from there.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Monitor
            With the same settings, numbers and decisions.

        Raises
        ------
        LogError
            If there is no such file, or it holds something else.
        """
        moments = Moments.load(path)
        shared = dict(moments.notes.shared)
        note = from_plain(shared.pop(NOTE, None))
        if note is None:
            raise LogError(
                f"{os.fspath(path)!r} holds moments and no monitor. Expected a file of "
                f"Monitor.save. For moments use cvstats.Moments.load."
            )
        at = note["reference"]
        found = cls(
            reference=None if at is None else moments.models[at],
            method=note["method"],
            margin=None if note["margin"] is None else tuple(note["margin"]),
            adjust=note["adjust"],
            alpha=note["alpha"],
            tightest_at=note["tightest_at"],
        )
        found._repeated = note["repeated"]
        found._moments = replace(moments, notes=replace(moments.notes, shared=shared))
        if note["decided"] is not None:
            found._decided = np.array(note["decided"], dtype=np.int64)
            found._stopped_at = np.array(note["stopped_at"], dtype=np.float64)
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
    """Compare models on a test set that grows, and stop as soon as enough is known.

    Each batch of paired losses is followed by a look, and all looks together err with
    probability ``alpha`` at most, as the points at the first one grow: an asymptotic
    confidence sequence, as of ``compare(anytime=True)``. Only counts, means and squared deviations
    are kept.

    Parameters
    ----------
    batch : DataFrame, DataArray, Dataset or Moments, optional
        The first batch; others follow by ``add``.
    reference : hashable, optional
        The name of a model to which the others are compared; without it all pairs are.
    method : {"holdout", "clustered"}, optional
        Whether points are counted, or sources; without it sources where the log has any.
    margin : float or pair of float, optional
        The largest difference that does not matter, in the unit of the loss. Models whose
        difference is surely smaller are then ``"alike"``, and decided as well; without a margin
        two equal models are never decided.
    adjust : {"holm", "bonferroni", "bh", None}, optional
        How decisions about several pairs allow for each other; that two models are alike is decided
        for each pair by itself.
    tightest_at : int, optional
        The number of points (or groups) at which the limits are to be tightest; 500 without it.
    alpha : float, optional
        One minus the level of the limits.

    Returns
    -------
    Monitor
        With ``add(batch)``, ``interval()``, ``stop``, ``save(path)`` and `Monitor.load`.

    Raises
    ------
    LogError
        If an option is not known, or the first batch is not a log of two models or more.

    Notes
    -----
    The points have to come in random order: shuffle the questions before you begin. Batches may
    be of any size, and may depend on what was seen before; the points in them may not. Nothing is
    decided below 100 points (or groups), except for losses of 0 and 1, where 30 are enough if
    the two models disagree on 25 of them. Several repetitions (answers) of a point in a DataFrame
    are averaged, and belong to one batch; then the mean of each point is kept.

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
        margin=None if margin is None else check_margin(margin),
        adjust=adjust,
        alpha=alpha,
        tightest_at=check_anytime(
            tightest_at, method=method, options={}, alternative="two-sided", adjust=adjust
        ),
    )
    if batch is not None:
        found.add(batch)
    return found
