"""Resampling plans: their fits, how points are drawn, and plans from given splits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import IntArray
from cvstats.errors import LogError, checked_flag, describe_type, spelled
from cvstats.options import whole_number

if TYPE_CHECKING:
    import pandas as pd


SHOWN = 6
"""Number of evaluations of a bound plan that are printed."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test points of one fit, and the labels of their losses in the log.

    Parameters
    ----------
    levels : mapping of str to label
        The labels of the losses in the log, except ``point`` and ``count``.
    points : array of int, shape (tested,)
        Rows of the data, ascending.
    count : array of int, shape (tested,), optional
        Bootstrap plans: how often each of these points was in the training sample.

    Examples
    --------
    >>> import cvstats
    >>> fit = next(iter(cvstats.plans.leave_one_out().bind(4)))
    >>> fit.evaluations[0].levels, fit.evaluations[0].points
    ({'fold': 0}, array([0]))
    """

    levels: Mapping[str, Hashable]
    points: IntArray
    count: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """One model to train, and the points to predict with it.

    Parameters
    ----------
    train : array of int, shape (trained,)
        Rows of the data; a bootstrap sample contains some of them several times.
    evaluations : tuple of Evaluation
        Usually one. Nested and replace-one cross-validation have several per model, so that no
        model is trained twice.
    apparent : bool
        Whether the model is tested on its training sample, from which the no-information error rate
        of the bootstrap methods is computed.

    Examples
    --------
    >>> import cvstats
    >>> next(iter(cvstats.plans.leave_one_out().bind(4))).train
    array([1, 2, 3])
    """

    train: IntArray
    evaluations: tuple[Evaluation, ...]
    apparent: bool = False


class Design(Protocol):
    """The part of a plan that draws the fits."""

    @property
    def mixing(self) -> Mixing:
        """Whether individual points are drawn, points within classes, or whole groups."""

    def check(self, points: Points) -> None:
        """Refuse data that the design cannot be applied to."""

    def n_fits(self, points: Points | None) -> int | None:
        """Count the models to train; None if it depends on the data."""

    def fits(self, points: Points) -> Iterator[Fit]:
        """Iterate over the fits."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A resampling plan: created once, bound to data when it runs.

    Plans come from the functions of `cvstats.plans`. A plan that consists of pairs of training and
    test sets can be passed to scikit-learn as ``cv=``.

    Parameters
    ----------
    name : str
        The function that created it.
    options : tuple of (str, value)
        The options, always with a seed, even if none was given.
    levels : tuple of str
        The index levels of the log.
    intervals : tuple of str
        The methods of cvstats for this plan, the recommended one first.
    splitter : bool
        Whether scikit-learn can use it.
    design : Design
        What draws the fits.
    cost : str, optional
        The number of fits as a formula, if it depends on the data.

    Examples
    --------
    >>> import cvstats
    >>> plan = cvstats.plans.k_fold(5, rng=1)
    >>> plan.n_fits
    5
    >>> plan
    k_fold(n_folds=5, stratified=False, grouped=False, rng=1)
    levels     fold, point
    fits       5
    intervals  wald, corrected_t, quadratic
    cv=        yes
    >>> plan.bind(100)
    k_fold(n_folds=5, stratified=False, grouped=False, rng=1)
    100 points, 5 fits for each model
     fit  fold  n_train  n_test
       0     0       80      20
       1     1       80      20
       2     2       80      20
       3     3       80      20
       4     4       80      20
    """

    name: str
    options: tuple[tuple[str, Any], ...]
    levels: tuple[str, ...]
    intervals: tuple[str, ...]
    splitter: bool
    design: Design
    cost: str = ""

    def __str__(self) -> str:
        """Return the call that creates this plan."""
        if self.name.endswith(")"):  # a splitter of another library
            return self.name
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.options)})"

    def facts(self) -> dict[str, str]:
        """Summarize the plan.

        Returns
        -------
        dict of str to str
            ``levels`` of the log, number of ``fits``, recommended ``intervals``, and whether it can
            be passed to scikit-learn as ``cv=``.
        """
        n_fits = self.design.n_fits(None)
        return {
            "levels": ", ".join(self.levels),
            "fits": self.cost if n_fits is None else f"{n_fits:,}",
            "intervals": ", ".join(self.intervals),
            "cv=": "yes" if self.splitter else "no",
        }

    def __repr__(self) -> str:
        """Show the call, the levels of the log, the number of fits and the intervals."""
        return "\n".join([str(self), *(f"{name:<9}  {is_}" for name, is_ in self.facts().items())])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row: the options and the summary of the plan.

        Returns
        -------
        DataFrame
            A column for each option, then ``levels``, ``fits``, ``intervals`` and ``cv=``.
        """
        import pandas as pd  # already loaded; only needed here

        return pd.DataFrame({**dict(self.options), **self.facts()}, index=[self.name])

    @property
    def n_fits(self) -> int:
        """Number of models trained per estimator."""
        n_fits = self.design.n_fits(None)
        if n_fits is None:
            raise LogError(
                f"the number of fits of {self.name} depends on the data. Bind the plan to the "
                "data: plan.bind(n).n_fits."
            )
        return n_fits

    def bind(self, n: int, y: Any = None, groups: Any = None) -> BoundPlan:
        """Bind the plan to data.

        Parameters
        ----------
        n : int
            Number of points.
        y : array, shape (n,), optional
            Labels of the classes; needed by a stratified plan and ignored by others.
        groups : array, shape (n,), optional
            Group of each point; needed by a grouped plan and by ``leave_one_source_out``.

        Returns
        -------
        BoundPlan
            The plan bound to the data, an iterable of fits.

        Raises
        ------
        LogError
            If there are too few points, or if classes or groups are missing or too few.
        """
        n = whole_number("n", n, 1)
        by = self.design.mixing
        codes: IntArray | None = None
        names: list[Hashable] = []
        if by == "groups" and groups is None:
            raise LogError(f"{self.name} keeps groups together. Pass groups=, one label per point.")
        if groups is not None:
            codes, names = coded(groups, n, "groups")
        classes = classes_of(y, n) if by == "classes" else None
        points = Points(n, classes, codes, names)
        self.design.check(points)
        return BoundPlan(self, points)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield training and test rows, as scikit-learn requires of ``cv=``.

        Parameters
        ----------
        X : array or DataFrame
            The data; only their number is used.
        y : array, optional
            Labels, for a stratified plan.
        groups : array, optional
            Groups, for a grouped plan.

        Yields
        ------
        train, test : array of int
            Rows of the data.
        """
        self.require_splitter()
        for fit in self.bind(size_of(X), y, groups):
            yield fit.train, fit.evaluations[0].points

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Count the splits, as scikit-learn requires of ``cv=``.

        Parameters
        ----------
        X, y, groups : array, optional
            The data, for plans whose number of splits depends on them.

        Returns
        -------
        int
            The number of pairs that ``split`` yields.
        """
        self.require_splitter()
        n_fits = self.design.n_fits(None)
        if n_fits is not None:
            return n_fits
        n = len(groups) if X is None and groups is not None else None if X is None else size_of(X)
        return self.n_fits if n is None else self.bind(n, y, groups).n_fits

    def require_splitter(self) -> None:
        """Refuse plans that are not pairs of training and test sets."""
        if not self.splitter:
            raise LogError(
                f"{self.name} is more than pairs of training and test sets, so scikit-learn cannot "
                f"use it as cv=. Call cvstats.evaluate(estimators, X, y, plan=…) instead."
            )


def listed_options(
    counts: Mapping[str, int], stratified: bool, grouped: bool, seed: int
) -> tuple[tuple[str, Any], ...]:
    """List the options of a plan of folds in printing order."""
    mixed = (("stratified", stratified), ("grouped", grouped))
    return (*counts.items(), *mixed, ("rng", seed))


def size_of(X: Any) -> int:
    """Count the points of data of any kind."""
    shape = getattr(X, "shape", None)
    if shape == () or (shape is None and not isinstance(X, Sized)):
        raise LogError(f"X is {describe_type(X)}. Expected data with a row for each point.")
    return int(shape[0]) if shape else len(X)


def classes_of(y: Any, n: int) -> IntArray:
    """Return the class number of each point, for a stratified plan."""
    if y is None:
        raise LogError("a stratified plan needs the classes. Pass y=, a label for each point.")
    values = np.asarray(y)
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            between = np.flatnonzero(values.ravel() % 1 != 0)
        if len(between):
            raise LogError(
                f"a stratified plan needs classes, but y looks continuous (point {between[0]:,}: "
                f"{spelled(values.ravel()[between[0]])}). Omit stratified=True."
            )
    return coded(y, n, "y")[0]


@dataclass(frozen=True, eq=False, repr=False)
class BoundPlan:
    """A plan bound to data; iterating over it gives the fits.

    Parameters
    ----------
    plan : Plan
        The plan.
    points : Points
        The number of points, and their classes and groups.

    Examples
    --------
    >>> import cvstats
    >>> bound = cvstats.plans.k_fold(3, rng=1).bind(9)
    >>> bound.n_fits
    3
    >>> [len(fit.train) for fit in bound]
    [6, 6, 6]
    """

    plan: Plan
    points: Points

    @property
    def n_fits(self) -> int:
        """Number of models trained per estimator."""
        n_fits = self.plan.design.n_fits(self.points)
        return sum(1 for _ in self) if n_fits is None else n_fits

    def __len__(self) -> int:
        """Count the fits."""
        return self.n_fits

    def __iter__(self) -> Iterator[Fit]:
        """Iterate over the fits; they are drawn lazily, and are the same every time."""
        return self.plan.design.fits(self.points)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all evaluations.

        Returns
        -------
        DataFrame
            One row per evaluation: ``fit`` (from 0), the levels of the log except ``point`` and
            ``count``, and the numbers of points ``n_train`` and ``n_test``.
        """
        return self._table(None)

    def __repr__(self) -> str:
        """Show the plan, the number of fits and the first evaluations."""
        table = self._table(SHOWN + 1)
        n_fits = self.n_fits
        fits = "1 fit" if n_fits == 1 else f"{n_fits:,} fits"
        what = f"{self.points.n:,} points, {fits} for each model"
        more = ["..."] if len(table) > SHOWN else []
        return "\n".join([str(self.plan), what, table[:SHOWN].to_string(index=False), *more])

    def _table(self, rows: int | None) -> pd.DataFrame:
        import pandas as pd  # already loaded; only needed here

        every = (
            {"fit": number, **evaluation.levels} | sizes(fit, evaluation)
            for number, fit in enumerate(self)
            for evaluation in fit.evaluations
        )
        return pd.DataFrame(list(islice(every, rows)))


def sizes(fit: Fit, evaluation: Evaluation) -> dict[str, int]:
    """Count the training and test points of a fit."""
    return {"n_train": len(fit.train), "n_test": len(evaluation.points)}


# --- drawing points -------------------------------------------------------------------------------


Mixing: TypeAlias = Literal["points", "classes", "groups"]
"""What is drawn: individual points, points within classes, or whole groups."""


@dataclass(frozen=True, eq=False)
class Points:
    """The data of a plan: the number of points, their classes and their groups.

    Parameters
    ----------
    n : int
        Number of points.
    classes : array of int, shape (n,), optional
        Code of the class of each point, if the plan is stratified.
    groups : array of int, shape (n,), optional
        Code of the group of each point.
    names : sequence
        The labels of the groups, by code.
    """

    n: int
    classes: IntArray | None = None
    groups: IntArray | None = None
    names: Sequence[Hashable] = ()

    def take(self, rows: IntArray) -> Points:
        """Select some points."""
        classes = None if self.classes is None else self.classes[rows]
        groups = None if self.groups is None else self.groups[rows]
        return Points(len(rows), classes, groups, self.names)

    @property
    def units(self) -> int:
        """The number of groups, or of points if there are no groups."""
        return self.n if self.groups is None else len(self.names)


def coded(labels: Any, n: int, name: str) -> tuple[IntArray, list[Hashable]]:
    """Assign numbers to the labels of ``n`` points, in sorted order if they can be sorted."""
    values = np.asarray(labels)
    if values.shape != (n,):
        raise LogError(
            f"{name} has the shape {values.shape}. Expected one label for each of {n:,} points."
        )
    if values.dtype.kind == "O":
        missing = [i for i, label in enumerate(values) if label is None or label != label]
    else:
        missing = np.flatnonzero(values != values).tolist()
    if missing:
        raise LogError(f"{name} has no label (NaN) for point {missing[0]:,}. Expected one for all.")
    try:
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), names.tolist()
    except TypeError:  # labels of mixed types cannot be sorted
        order = {label: code for code, label in enumerate(dict.fromkeys(values.tolist()))}
        return np.array([order[label] for label in values.tolist()], dtype=np.int64), list(order)


def train_share(ratio: object) -> float:
    """Check the share of the points to train on."""
    number = float(ratio) if isinstance(ratio, (float, np.floating)) else np.nan
    if not 0 < number < 1:
        raise LogError(
            f"ratio={ratio!r} is out of range. Expected the share of the points to train on, "
            f"between 0 and 1, such as 0.9."
        )
    return number


def mixing(stratified: bool, grouped: bool) -> Mixing:
    """Combine the two options."""
    checked_flag("stratified", stratified)
    checked_flag("grouped", grouped)
    if stratified and grouped:
        raise LogError(
            "stratified=True and grouped=True cannot be combined: a group stays together with "
            "all its classes. Expected only one of them. If every class must be in each fold, "
            "define groups that contain all classes."
        )
    return "classes" if stratified else "groups" if grouped else "points"


def generator(seed: int, *part: int) -> np.random.Generator:
    """Create the random generator for one part of a plan.

    Parts are independent, so a plan with more repetitions starts like one with fewer.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=part))


def shuffled(points: Points, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Shuffle the points; with classes, one class after the other."""
    order: IntArray = rng.permutation(points.n)
    if by == "classes" and points.classes is not None:
        order = order[np.argsort(points.classes[order], kind="stable")]
    return order


def folds(points: Points, n_folds: int, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Assign points to random folds; sizes differ by at most one, unless groups prevent it."""
    if by == "groups" and points.groups is not None:
        return grouped_folds(points.groups, points.units, n_folds, rng)
    fold = np.empty(points.n, dtype=np.int64)
    # Dealt like cards, so that consecutive points of a class go to different folds.
    fold[shuffled(points, by, rng)] = np.arange(points.n) % n_folds
    return fold


def grouped_folds(
    groups: IntArray, n_groups: int, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """Assign groups in random order, each to the fold with the fewest points so far."""
    sizes = np.bincount(groups, minlength=n_groups)
    load = np.zeros(n_folds, dtype=np.int64)
    fold = np.empty(n_groups, dtype=np.int64)
    for group in rng.permutation(n_groups).tolist():
        fold[group] = np.argmin(load)
        load[fold[group]] += sizes[group]
    return fold[groups]


def held_out(points: Points, n_units: int, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Draw a test set of ``n_units`` points (groups), in ascending order.

    With classes it is a systematic sample of the points sorted by class: each class is represented
    in proportion, up to one point, and all points are equally likely to be drawn.
    """
    if by == "groups" and points.groups is not None:
        chosen = rng.permutation(points.units)[:n_units]
        return np.flatnonzero(np.isin(points.groups, chosen))
    order = shuffled(points, by, rng)
    start = int(rng.integers(points.n))
    return np.sort(order[(np.arange(n_units) * points.n + start) // n_units])


# --- given splits ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenSplits:
    """Training and test rows as given; None if a fit is trained on all other rows."""

    trained: list[IntArray | None]
    tested: list[IntArray]
    labels: list[dict[str, int]]
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Accept any data: the splits were made for them."""

    def n_fits(self, points: Points | None) -> int:
        """Count the splits."""
        return len(self.tested)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Go through the splits."""
        for train, test, label in zip(self.trained, self.tested, self.labels, strict=True):
            rows = np.delete(np.arange(points.n), test) if train is None else train
            yield Fit(rows, (Evaluation(label, test),))


def bind_splits(splits: Iterable[tuple[Any, Any]], n: int, name: str) -> BoundPlan:
    """Make a bound plan from pairs of training and test rows of ``n`` points.

    Raises
    ------
    LogError
        If there is no split, a split is not a pair of rows of the data, or a set is empty.
    """
    trained: list[IntArray | None] = []
    tested: list[IntArray] = []
    for number, pair in enumerate(splits):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise LogError(
                f"split {number:,} of cv= is {describe_type(pair)}, not a pair of training and "
                "test rows. Expected pairs, as in cv=list(splitter.split(X, y))."
            )
        train, test = (row_numbers(rows, n, f"split {number:,} of cv=") for rows in pair)
        test = np.sort(test)
        twice = test[:-1][test[1:] == test[:-1]]
        if len(twice):
            raise LogError(f"split {number:,} of cv= tests row {twice[0]:,} twice. Expected once.")
        # Training sets of all other rows are not stored: that would be n rows for each of n splits.
        others = np.delete(np.arange(n), test)
        trained.append(None if np.array_equal(train, others) else train)
        tested.append(test)
    if not tested:
        raise LogError("cv= has no splits. Expected at least one, such as cv=5.")
    levels, labels = name_splits(tested)
    methods = {"fold": "wald", "repetition": "corrected_t"}
    intervals = tuple(methods[level] for level in levels[:-1]) or ("holdout",)
    design = GivenSplits(trained, tested, labels)
    return BoundPlan(Plan(name, (), levels, intervals, False, design), Points(n))


def row_numbers(rows: Any, n: int, what: str) -> IntArray:
    """Check row numbers, and convert a mask to row numbers."""
    numbers = np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (n,):
        numbers = np.flatnonzero(numbers)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise LogError(
            f"{what} has a {numbers.dtype} array of the shape {numbers.shape}. Expected row "
            "numbers: a one-dimensional array of integers."
        )
    if not len(numbers):
        raise LogError(f"{what} has no training or no test rows. Expected at least one of each.")
    if not 0 <= numbers.min() <= numbers.max() < n:
        wrong = numbers.min() if numbers.min() < 0 else numbers.max()
        raise LogError(f"{what} has row {spelled(wrong)}, but X has {n:,} rows.")
    return numbers.astype(np.int64)


def name_splits(tested: list[IntArray]) -> tuple[tuple[str, ...], list[dict[str, int]]]:
    """Name the levels of splits, and label each split."""
    m = len(tested)
    if m == 1:
        return ("point",), [{}]
    points = np.concatenate(tested)
    k = folds_in_turn(
        np.unique(points, return_inverse=True)[1], np.repeat(np.arange(m), list(map(len, tested)))
    )
    if k is None:
        return ("repetition", "point"), [{"repetition": at} for at in range(m)]
    if k == m:
        return ("fold", "point"), [{"fold": at} for at in range(m)]
    labels = [{"repetition": at // k, "fold": at % k} for at in range(m)]
    return ("repetition", "fold", "point"), labels


def folds_in_turn(points: NDArray[Any], splits: NDArray[Any]) -> int | None:
    """Count the folds of a repetition; None if the splits are random ones.

    Splits are folds if they test each point once. If every point is tested in r of the m splits,
    and once in each run of m / r splits, they are r repetitions of folds in this order.

    Parameters
    ----------
    points, splits : array of int, shape (evaluations,)
        Codes from 0, without gaps.
    """
    times = np.bincount(points)
    r, m = int(times[0]), int(splits.max()) + 1
    if not (times == r).all() or m % r or m == r:
        return None
    k = m // r
    seen = points.astype(np.int64) * r + splits // k
    return k if np.bincount(seen, minlength=len(times) * r).max() == 1 else None
