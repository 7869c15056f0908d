"""Resampling plans: what to train on, what to test on, and the levels of the log.

A plan is created without data and bound to data later, by `cvstats.evaluate`, by scikit-learn if
the plan is passed as ``cv=``, or explicitly by ``plan.bind(n)``. Its seed is drawn when it is
created, so binding it to the same data always gives the same splits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from inspect import signature
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import IntArray
from cvstats.errors import LogError, checked_flag, describe_type, spelled
from cvstats.options import Rng, seed_of, whole_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BoundPlan",
    "Evaluation",
    "Fit",
    "Plan",
    "bootstrap",
    "case_bootstrap",
    "five_by_two",
    "holdout",
    "k_fold",
    "leave_one_out",
    "leave_one_source_out",
    "nested_cv",
    "paired_subsampling",
    "repeated_k_fold",
    "replace_one",
    "subsampling",
    "two_stage",
]


def __dir__() -> list[str]:
    return __all__


# --- a plan, its fits and its points --------------------------------------------------------------

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
        by, points = self.design.mixing, Points(n)
        if by == "groups" and groups is None:
            raise LogError(f"{self.name} keeps groups together. Pass groups=, one label per point.")
        if groups is not None:
            codes, names = encode_labels(groups, n, "groups")
            points = Points(n, groups=codes, names=names) if by == "groups" else points
        if by == "classes":
            points = Points(n, classes=encode_classes(y, n))
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
        for fit in self.bind(count_points(X), y, groups):
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
        if self.design.n_fits(None) is not None or (X is None and groups is None):
            return self.n_fits
        return self.bind(len(groups) if X is None else count_points(X), y, groups).n_fits

    def require_splitter(self) -> None:
        """Refuse plans that are not pairs of training and test sets."""
        if not self.splitter:
            raise LogError(
                f"{self.name} is more than pairs of training and test sets, so scikit-learn cannot "
                f"use it as cv=. Call cvstats.evaluate(estimators, X, y, plan=…) instead."
            )


def make_plan(
    function: Callable[..., Plan], design: Design, levels: tuple[str, ...],
    intervals: tuple[str, ...], *, splitter: bool = False, cost: str = "",
) -> Plan:  # fmt: skip
    """Make the plan of a function; the design has the values of all parameters of the function."""
    values = {
        **vars(design),
        "stratified": design.mixing == "classes",
        "grouped": design.mixing == "groups",
    }
    if "seed" in values:
        values["rng"] = values["seed"]
    options = tuple((name, values[name]) for name in signature(function).parameters)
    return Plan(function.__name__, options, levels, intervals, splitter, design, cost)


def count_points(X: Any) -> int:
    """Count the points of data of any kind."""
    shape = getattr(X, "shape", None)
    if shape == () or (shape is None and not isinstance(X, Sized)):
        raise LogError(f"X is {describe_type(X)}. Expected data with a row for each point.")
    return int(shape[0]) if shape else len(X)


def encode_classes(y: Any, n: int) -> IntArray:
    """Return the class number of each point, for a stratified plan."""
    if y is None:
        raise LogError("a stratified plan needs the classes. Pass y=, a label for each point.")
    values = np.asarray(y)
    if values.dtype.kind == "f":
        between = np.flatnonzero(np.floor(values.ravel()) < values.ravel())
        if len(between):
            raise LogError(
                f"a stratified plan needs classes, but y looks continuous (point {between[0]:,}: "
                f"{spelled(values.ravel()[between[0]])}). Omit stratified=True."
            )
    return encode_labels(y, n, "y")[0]


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
            {"fit": k, **at.levels, "n_train": len(fit.train), "n_test": len(at.points)}
            for k, fit in enumerate(self)
            for at in fit.evaluations
        )
        return pd.DataFrame(list(islice(every, rows)))


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
        Code of the group of each point, if the plan keeps groups together.
    names : sequence
        The labels of the groups, by code.
    """

    n: int
    classes: IntArray | None = None
    groups: IntArray | None = None
    names: Sequence[Hashable] = ()

    def take(self, rows: IntArray) -> Points:
        """Select some points that are not in groups."""
        return Points(len(rows), None if self.classes is None else self.classes[rows])

    @property
    def units(self) -> int:
        """The number of groups, or of points if there are no groups."""
        return self.n if self.groups is None else len(self.names)

    @property
    def noun(self) -> str:
        """What is counted by ``units``."""
        return "points" if self.groups is None else "groups"


def encode_labels(labels: Any, n: int, name: str) -> tuple[IntArray, list[Hashable]]:
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


def check_train_share(ratio: object) -> float:
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


def make_rng(seed: int, *part: int) -> np.random.Generator:
    """Create the random generator for one part of a plan.

    Parts are independent, so a plan with more repetitions starts like one with fewer.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=part))


def shuffle_points(points: Points, rng: np.random.Generator) -> IntArray:
    """Shuffle the points; with classes, one class after the other."""
    order: IntArray = rng.permutation(points.n)
    if points.classes is not None:
        order = order[np.argsort(points.classes[order], kind="stable")]
    return order


def assign_folds(points: Points, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Assign points to random folds; sizes differ by at most one, unless groups prevent it."""
    if points.groups is not None:
        # Groups in random order, each to the fold with the fewest points so far.
        sizes = np.bincount(points.groups, minlength=points.units)
        load, fold = np.zeros(n_folds, dtype=np.int64), np.empty(points.units, dtype=np.int64)
        for group in rng.permutation(points.units).tolist():
            fold[group] = np.argmin(load)
            load[fold[group]] += sizes[group]
        return fold[points.groups]
    fold = np.empty(points.n, dtype=np.int64)
    # Dealt like cards, so that consecutive points of a class go to different folds.
    fold[shuffle_points(points, rng)] = np.arange(points.n) % n_folds
    return fold


def split(points: Points, n_units: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the training and the ``n_units`` test points (groups) of one split, in ascending order.

    With classes the test set is a systematic sample of the points sorted by class: each class is
    represented in proportion, up to one point, and all points are equally likely to be drawn.
    """
    if points.groups is not None:
        chosen = rng.permutation(points.units)[:n_units]
        tested = np.flatnonzero(np.isin(points.groups, chosen))
    else:
        order = shuffle_points(points, rng)
        start = int(rng.integers(points.n))
        tested = np.sort(order[(np.arange(n_units) * points.n + start) // n_units])
    return np.delete(np.arange(points.n), tested), tested


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


# --- folds ----------------------------------------------------------------------------------------


def check_folds(points: Points, n_folds: int, per_fold: int = 1) -> None:
    """Refuse data that cannot fill the folds."""
    if points.units < per_fold * n_folds:
        raise LogError(
            f"{n_folds:,} folds need at least {per_fold * n_folds:,} {points.noun}, but there are "
            f"{points.units:,}. Expected n_folds={points.units // per_fold:,} or fewer."
        )
    if points.classes is not None:
        sizes = np.bincount(points.classes)
        rarest = int(sizes.argmin())
        if sizes[rarest] < n_folds:
            first = int(np.flatnonzero(points.classes == rarest)[0])
            raise LogError(
                f"the class of point {first:,} has {sizes[rarest]:,} points, which cannot be in "
                f"each of {n_folds:,} folds. Use fewer folds, or omit stratified=True."
            )


@dataclass(frozen=True)
class Partition:
    """Random partitions into folds; without ``n_repetitions``, one without that level."""

    n_folds: int
    n_repetitions: int | None
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Refuse data that cannot fill the folds."""
        check_folds(points, self.n_folds)

    def n_fits(self, points: Points | None) -> int:
        """Count the folds."""
        return self.n_folds * (self.n_repetitions or 1)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one fold after the other."""
        for repetition in range(self.n_repetitions or 1):
            rng = make_rng(self.seed, repetition)
            fold = assign_folds(points, self.n_folds, rng)
            label = {} if self.n_repetitions is None else {"repetition": repetition}
            for k in range(self.n_folds):
                tested = Evaluation({**label, "fold": k}, np.flatnonzero(fold == k))
                yield Fit(np.flatnonzero(fold != k), (tested,))


@dataclass(frozen=True)
class LeaveOneOut:
    """Every point is a fold."""

    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require a point to train on."""
        if points.n < 2:
            raise LogError("leave_one_out needs at least two points, but there is only 1.")

    def n_fits(self, points: Points | None) -> int | None:
        """Count the points."""
        return None if points is None else points.n

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one point after the other."""
        every = np.arange(points.n)
        for i in range(points.n):
            yield Fit(np.delete(every, i), (Evaluation({"fold": i}, every[i : i + 1]),))


@dataclass(frozen=True)
class LeaveOneGroupOut:
    """Every group is a fold of the same name."""

    mixing: Mixing = "groups"

    def check(self, points: Points) -> None:
        """Require a source to train on."""
        if points.units < 2:
            (only,) = points.names
            raise LogError(
                "leave_one_source_out needs at least two sources, but groups= has only "
                f"{spelled(only)}."
            )

    def n_fits(self, points: Points | None) -> int | None:
        """Count the groups."""
        return None if points is None else points.units

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one group after the other."""
        for code, name in enumerate(points.names):
            inside = points.groups == code
            tested = Evaluation({"source": name}, np.flatnonzero(inside))
            yield Fit(np.flatnonzero(~inside), (tested,))


def intervals_of(design: Partition, *names: str) -> tuple[str, ...]:
    """Name the methods for a partition; groups that are kept together are the sampling unit."""
    return ("clustered", *names) if design.mixing == "groups" else names


def k_fold(
    n_folds: int = 10, *, stratified: bool = False, grouped: bool = False, rng: Rng = None
) -> Plan:
    """Plan a K-fold cross-validation, in which each point is tested once.

    The log is used by `cvstats.wald`, which targets the average test error of the K trained models.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more. Fold sizes differ by at most one point (more with groups).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold. Otherwise groups are only stored in the log, as its
        level ``source``.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``fold, point``, from K fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    Points must be exchangeable. Do not use this plan for time series, and use ``grouped`` if
    several points come from the same patient. Intervals for stratified folds are computed as for
    random folds, which at worst makes them slightly too wide.

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, JRSS B
    36(2), 111-133, doi:10.1111/j.2517-6161.1974.tb00994.x.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.k_fold(5, rng=1).bind(12)
    k_fold(n_folds=5, stratified=False, grouped=False, rng=1)
    12 points, 5 fits for each model
     fit  fold  n_train  n_test
       0     0        9       3
       1     1        9       3
       2     2       10       2
       3     3       10       2
       4     4       10       2
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    design = Partition(n_folds, None, mixing(stratified, grouped), seed_of(rng))
    intervals = intervals_of(design, "wald", "corrected_t", "quadratic")
    return make_plan(k_fold, design, ("fold", "point"), intervals, splitter=True)


def leave_one_out() -> Plan:
    """Plan a leave-one-out cross-validation, with one fold for each point.

    The training sets are as large as possible. The log is used by `cvstats.wald`, which targets the
    error of the trained models and is asymptotically exact if the learner is stable.

    Returns
    -------
    Plan
        The log has the levels ``fold, point``, from n fits; folds are numbered like the rows.

    Notes
    -----
    Nothing is random, so there is no seed. `cvstats.case_bootstrap` uses the log of this plan for
    its bias correction.

    References
    ----------
    Stone (1974), Cross-validatory choice and assessment of statistical predictions, JRSS B
    36(2), 111-133, doi:10.1111/j.2517-6161.1974.tb00994.x.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.leave_one_out().bind(442).n_fits
    442
    """
    levels = ("fold", "point")
    return make_plan(leave_one_out, LeaveOneOut(), levels, ("wald",), splitter=True, cost="n")


def repeated_k_fold(
    n_folds: int = 10,
    n_repetitions: int = 10,
    *,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan several K-fold cross-validations of the same data, with different random folds.

    Repetitions reduce the noise from the random folds, but they do not add points. The log is used
    by `cvstats.wald`, which targets the average error of all trained models, and by
    `cvstats.corrected_t`, which targets the expected error at their training size.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more.
    n_repetitions : int, optional
        Number of partitions. A plan with fewer and the same seed has the first of them.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, fold, point``, from ``n_repetitions * K`` fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    Points must be exchangeable; see `k_fold`.

    References
    ----------
    Bouckaert and Frank (2004), Evaluating the replicability of significance tests for comparing
    learning algorithms, PAKDD, doi:10.1007/978-3-540-24775-3_3.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.repeated_k_fold(10, 5, rng=1).n_fits
    50
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Partition(n_folds, n_repetitions, mixing(stratified, grouped), seed_of(rng))
    levels = ("repetition", "fold", "point")
    intervals = intervals_of(design, "wald", "corrected_t")
    return make_plan(repeated_k_fold, design, levels, intervals, splitter=True)


def five_by_two(*, stratified: bool = False, grouped: bool = False, rng: Rng = None) -> Plan:
    """Plan five repetitions of twofold cross-validation.

    The log is used by `cvstats.five_by_two`, which targets the expected error at half the sample
    size, usually for the difference of two algorithms.

    Parameters
    ----------
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in both halves, up to one point.
    grouped : bool, optional
        Keep the points of a group in one half.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, fold, point``, from 10 fits.

    Raises
    ------
    LogError
        If both stratified and grouped are given.

    Notes
    -----
    The t interval treats the first fold of the first repetition differently. Folds are random, so
    which one has the label 0 is random too.

    References
    ----------
    Dietterich (1998), Approximate statistical tests for comparing supervised classification
    learning algorithms, Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.five_by_two(rng=1).n_fits
    10
    """
    design = Partition(2, 5, mixing(stratified, grouped), seed_of(rng))
    levels = ("repetition", "fold", "point")
    return make_plan(five_by_two, design, levels, ("five_by_two",), splitter=True)


def leave_one_source_out() -> Plan:
    """Plan to leave out one source at a time, such as a patient, a site or a month.

    The log is used by `cvstats.out_of_source`, which targets the error on *new* sources and treats
    sources, not points, as the sampling unit.

    Returns
    -------
    Plan
        The log has the levels ``source, point``, from one fit per source: the sources are the
        folds. ``groups=`` names them.

    Notes
    -----
    Nothing is random, so there is no seed. Sources must be exchangeable and independent of each
    other; consecutive months may be neither.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.leave_one_source_out().bind(5, groups=["a", "a", "b", "b", "c"])
    leave_one_source_out()
    5 points, 3 fits for each model
     fit source  n_train  n_test
       0      a        3       2
       1      b        3       2
       2      c        4       1
    """
    return make_plan(
        leave_one_source_out, LeaveOneGroupOut(), ("source", "point"), ("out_of_source", "wald"),
        splitter=True, cost="one for each source",
    )  # fmt: skip


@dataclass(frozen=True)
class Nested:
    """Cross-validation within cross-validation, without training any model twice."""

    n_folds: int
    n_repetitions: int
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Require folds of two points, whose variance can be estimated."""
        check_folds(points, self.n_folds, per_fold=1 if self.mixing == "groups" else 2)

    def n_fits(self, points: Points | None) -> int:
        """Count the folds and the pairs of folds."""
        return self.n_repetitions * self.n_folds * (self.n_folds + 1) // 2

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out each fold, and then each pair of folds.

        The model without the folds j and l is tested on l as the inner model of the outer
        fold j, and on j as the inner model of the outer fold l.
        """
        for repetition in range(self.n_repetitions):
            rng = make_rng(self.seed, repetition)
            fold = assign_folds(points, self.n_folds, rng)
            inside = [np.flatnonzero(fold == k) for k in range(self.n_folds)]
            pairs = [(j, j) for j in range(self.n_folds)]
            for j, k in [*pairs, *combinations(range(self.n_folds), 2)]:
                tested = tuple(
                    Evaluation({"repetition": repetition, "outer": outer, "fold": at}, inside[at])
                    for outer, at in dict.fromkeys([(j, k), (k, j)])
                )
                yield Fit(np.flatnonzero((fold != j) & (fold != k)), tested)


@dataclass(frozen=True)
class ReplaceOne:
    """Cross-validation of the data, of a half, and of the half with each point replaced."""

    n_folds: int
    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require a half that fills the folds."""
        if points.n // 2 < self.n_folds:
            raise LogError(
                f"the half of {points.n:,} points cannot fill {self.n_folds:,} folds. Expected "
                f"n_folds={points.n // 2:,} or fewer."
            )

    def n_fits(self, points: Points | None) -> int | None:
        """Count the folds of the data, of the half, and those that a replaced point changes."""
        if points is None:
            return None
        changed = (points.n // 2) * (self.n_folds - 1)
        return self.n_repetitions * (2 * self.n_folds + changed)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Iterate over the repetitions; the halves are the same in all of them."""
        order = make_rng(self.seed, 0).permutation(points.n)
        half = points.n // 2
        left, right = np.sort(order[:half]), order[half : 2 * half]
        for repetition in range(self.n_repetitions):
            rng = make_rng(self.seed, 1, repetition)
            yield from self.whole(assign_folds(points, self.n_folds, rng), repetition)
            fold = assign_folds(Points(half), self.n_folds, rng)
            yield from self.halves(left, right, fold, repetition)

    def whole(self, fold: IntArray, repetition: int) -> Iterator[Fit]:
        """Leave out one fold of the data after the other."""
        for k in range(self.n_folds):
            label = {"sample": 0, "repetition": repetition, "fold": k}
            tested = Evaluation(label, np.flatnonzero(fold == k))
            yield Fit(np.flatnonzero(fold != k), (tested,))

    def halves(
        self, left: IntArray, right: IntArray, fold: IntArray, repetition: int
    ) -> Iterator[Fit]:
        """Leave out one fold of the half after the other, with each of its points replaced.

        Replacing a point of the fold that is left out does not change the model, so the one
        trained on the half is tested on all these test sets.
        """

        def tested(sample: int, rows: IntArray, k: int) -> Evaluation:
            label = {"sample": sample, "repetition": repetition, "fold": k}
            return Evaluation(label, rows[fold == k])

        for k in range(self.n_folds):
            changed = [
                tested(2 + at, replace_point(left, right, at), k)
                for at in np.flatnonzero(fold == k).tolist()
            ]
            yield Fit(left[fold != k], (tested(1, left, k), *changed))
        for at in range(len(left)):
            rows = replace_point(left, right, at)
            for k in range(self.n_folds):
                if k != fold[at]:
                    yield Fit(rows[fold != k], (tested(2 + at, rows, k),))


def replace_point(left: IntArray, right: IntArray, at: int) -> IntArray:
    """Replace a point by one of the other half."""
    rows = left.copy()
    rows[at] = right[at]
    return rows


def nested_cv(
    n_folds: int = 5,
    n_repetitions: int = 25,
    *,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan the nested cross-validation of Bates, Hastie and Tibshirani.

    The log is used by `cvstats.nested_cv`, designed for the risk of the model fitted to all the
    data. This is not nested cross-validation for tuning hyper-parameters: here the inner
    cross-validation measures the error of cross-validation itself. To tune as well, pass
    `cvstats.evaluate` an estimator that tunes itself, such as scikit-learn's ``GridSearchCV``.

    Parameters
    ----------
    n_folds : int, optional
        K, 3 or more.
    n_repetitions : int, optional
        Number of random partitions; at least 25, the paper uses 200.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each fold, up to one point.
    grouped : bool, optional
        Keep the points of a group in one fold.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, outer, fold, point``: if ``outer == fold`` the model
        was trained on all other folds, otherwise on all folds except these two. It takes
        ``n_repetitions * K (K + 1) / 2`` fits, not ``K^2``: the model without two folds is used for
        both orders.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends the defaults for up to 100 points.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), Cross-validation: what does it estimate and how well
    does it do it?, JASA 119(546), 1434-1445, doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.nested_cv(10, 50, rng=1).n_fits
    2750
    """
    n_folds = whole_number("n_folds", n_folds, 3)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Nested(n_folds, n_repetitions, mixing(stratified, grouped), seed_of(rng))
    return make_plan(nested_cv, design, ("repetition", "outer", "fold", "point"), ("nested_cv",))


def replace_one(n_folds: int = 5, n_repetitions: int = 1, *, rng: Rng = None) -> Plan:
    """Plan a cross-validation of the data, and many of a half with one point replaced.

    The log is used by `cvstats.replace_one`, which targets the expected error at the size of the
    training folds; its variance is estimated from the changes in the error of the half.

    Parameters
    ----------
    n_folds : int, optional
        K, 2 or more.
    n_repetitions : int, optional
        Number of random partitions, which are the same for the half and all its modifications.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, fold, point``. Sample 0 is the data, 1 the half
        of ``h = n // 2`` points, ``1 + l`` the half with its l-th point (1 to h) replaced by one of
        the other half. It takes ``2 K + h (K - 1)`` fits per repetition, not ``(h + 2) K``:
        replacing a point in the fold that is left out changes the test set but not the model.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The number of fits grows with n, so this plan is suitable only for fast learners and at most a
    few hundred points. If the number of points is odd, one point is in neither half.

    References
    ----------
    Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.replace_one(5, rng=1).bind(200).n_fits
    410
    """
    n_folds = whole_number("n_folds", n_folds, 2)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = ReplaceOne(n_folds, n_repetitions, seed_of(rng))
    levels = ("sample", "repetition", "fold", "point")
    cost = "n_repetitions (2 n_folds + (n // 2) (n_folds - 1))"
    return make_plan(replace_one, design, levels, ("replace_one",), cost=cost)


# --- random splits --------------------------------------------------------------------------------


def count_test_units(points: Points, ratio: float) -> int:
    """Count the points (groups) of a test set if a share ``ratio`` is trained on."""
    units = points.units
    n_train = round(ratio * units)
    if not 1 <= n_train < units:
        raise LogError(
            f"ratio={ratio!r} of {units:,} {points.noun} gives {n_train:,} for training and "
            f"{units - n_train:,} for testing. Expected at least one of each."
        )
    return units - n_train


@dataclass(frozen=True)
class Splits:
    """Random splits; without ``n_repetitions``, one without that level."""

    n_repetitions: int | None
    ratio: float
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Require points in both sets."""
        count_test_units(points, self.ratio)

    def n_fits(self, points: Points | None) -> int:
        """Count the splits."""
        return self.n_repetitions or 1

    def fits(self, points: Points) -> Iterator[Fit]:
        """Draw one split after the other."""
        n_units = count_test_units(points, self.ratio)
        for repetition in range(self.n_repetitions or 1):
            rng = make_rng(self.seed, repetition)
            train, tested = split(points, n_units, rng)
            label = {} if self.n_repetitions is None else {"repetition": repetition}
            yield Fit(train, (Evaluation(label, tested),))


@dataclass(frozen=True)
class PairedSplits:
    """Random splits of the data and of both halves of random divisions of them."""

    n_repetitions: int
    n_divisions: int
    ratio: float
    mixing: Mixing
    seed: int

    def check(self, points: Points) -> None:
        """Require halves that are larger than the test sets."""
        n_test = count_test_units(points, self.ratio)
        if points.n // 2 <= n_test:
            raise LogError(
                f"ratio={self.ratio!r} of {points.n:,} points gives {n_test:,} for testing, but "
                f"the halves of {points.n // 2:,} points must be larger than that. Expected a "
                "larger ratio, 2/3 or more."
            )

    def n_fits(self, points: Points | None) -> int:
        """Count the splits of all samples."""
        return (2 * self.n_divisions + 1) * self.n_repetitions

    def fits(self, points: Points) -> Iterator[Fit]:
        """Draw the splits of the data, and then those of the halves."""
        n_test = count_test_units(points, self.ratio)
        for sample in range(2 * self.n_divisions + 1):
            rows = self.rows(points, sample)
            inside = points.take(rows)
            for repetition in range(self.n_repetitions):
                rng = make_rng(self.seed, 1, sample, repetition)
                train, tested = split(inside, n_test, rng)
                label = {"sample": sample, "repetition": repetition}
                yield Fit(rows[train], (Evaluation(label, rows[tested]),))

    def rows(self, points: Points, sample: int) -> IntArray:
        """Find the points of a sample: all, or one half of a division.

        If the number of points is odd, each division omits one at random.
        """
        if sample == 0:
            return np.arange(points.n)
        division, second = divmod(sample - 1, 2)
        rng = make_rng(self.seed, 0, division)
        kept = np.sort(rng.permutation(points.n)[: 2 * (points.n // 2)])
        # Every other point in random order within a class (or of all points without classes).
        order = shuffle_points(points.take(kept), rng)
        return np.sort(kept[order[second::2]])


def holdout(
    ratio: float = 0.8, *, stratified: bool = False, grouped: bool = False, rng: Rng = None
) -> Plan:
    """Plan a single random split into training and test points.

    The log is used by `cvstats.holdout`, which targets the risk of the trained model.

    Parameters
    ----------
    ratio : float, optional
        Share of the points to train on (of the groups, if ``grouped``).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in the test set, up to one point.
    grouped : bool, optional
        Keep the points of a group in the same set.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the level ``point``, from one fit.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The interval is asymptotically exact for independent points, but it is wide, because few points
    are tested.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.holdout(ratio=0.75, rng=1).bind(100)
    holdout(ratio=0.75, stratified=False, grouped=False, rng=1)
    100 points, 1 fit for each model
     fit  n_train  n_test
       0       75      25
    """
    design = Splits(None, check_train_share(ratio), mixing(stratified, grouped), seed_of(rng))
    return make_plan(holdout, design, ("point",), ("holdout",), splitter=True)


def subsampling(
    n_repetitions: int = 25,
    *,
    ratio: float = 0.9,
    stratified: bool = False,
    grouped: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan independent random splits of the data (Monte Carlo cross-validation).

    The log is used by `cvstats.corrected_t`, which targets the expected error at the training size.

    Parameters
    ----------
    n_repetitions : int, optional
        Number of splits.
    ratio : float, optional
        Share of the points to train on (of the groups, if ``grouped``).
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each test set, up to one point.
    grouped : bool, optional
        Keep the points of a group in the same set.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point``, from ``n_repetitions`` fits.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends the defaults for more than 100 points.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.subsampling(25, ratio=0.9, rng=1).bind(442).to_frame().head(2)
       fit  repetition  n_train  n_test
    0    0           0      398      44
    1    1           1      398      44
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Splits(
        n_repetitions, check_train_share(ratio), mixing(stratified, grouped), seed_of(rng)
    )
    return make_plan(subsampling, design, ("repetition", "point"), ("corrected_t",), splitter=True)


def paired_subsampling(
    n_repetitions: int = 10,
    n_divisions: int = 25,
    *,
    ratio: float = 0.9,
    stratified: bool = False,
    rng: Rng = None,
) -> Plan:
    """Plan random splits of the data, and of disjoint halves to estimate their variance.

    The log is used by `cvstats.conservative_z`, which targets the expected error at the training
    size of the models of the whole data.

    Parameters
    ----------
    n_repetitions : int, optional
        J, the number of splits of the data and of each half.
    n_divisions : int, optional
        R, the number of divisions of the data into two halves.
    ratio : float, optional
        Share of the data to train on. The halves are tested on as many points as the data and
        trained on the rest, so the share must be above 1/2, preferably 2/3 or more.
    stratified : bool, optional
        Preserve the proportions of the classes of ``y`` in each half and each test set of the data,
        and those of a half in its test sets, up to one point.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, point``, from ``(2 R + 1) J`` fits. Sample 0 is
        the data; samples ``2 r - 1`` and ``2 r`` are the halves of division r, counted from 1.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    A benchmark of interval methods recommends J >= 10 and R = 25 up to 100 points, J = 5 and R = 10
    beyond. If the number of points is odd, each division omits one at random.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52,
    239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.paired_subsampling(5, 10, rng=1).n_fits
    105
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    n_divisions = whole_number("n_divisions", n_divisions, 1)
    by = mixing(stratified, grouped=False)
    design = PairedSplits(n_repetitions, n_divisions, check_train_share(ratio), by, seed_of(rng))
    levels = ("sample", "repetition", "point")
    return make_plan(paired_subsampling, design, levels, ("conservative_z",))


# --- bootstrap samples ----------------------------------------------------------------------------


def check_two(points: Points) -> None:
    """Require two points to draw from."""
    if points.n < 2:
        raise LogError("a bootstrap needs at least two points, but there is only 1.")


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap samples of the data and, with ``n_samples``, of bootstrap samples of them."""

    n_samples: int | None
    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require two points to draw from."""
        check_two(points)

    def n_fits(self, points: Points | None) -> int:
        """Count one fit per sample, and one per bootstrap sample of it."""
        return ((self.n_samples or 0) + 1) * (self.n_repetitions + 1)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Train on each sample itself, and then on draws from it."""
        n = points.n
        for sample in range((self.n_samples or 0) + 1):
            rng = make_rng(self.seed, sample)
            drawn = rng.integers(n, size=n) if sample else np.arange(n)
            label = {} if self.n_samples is None else {"sample": sample}
            tested = np.unique(drawn)
            for repetition in range(self.n_repetitions + 1):
                train = drawn[rng.integers(n, size=n)] if repetition else drawn
                count = np.bincount(train, minlength=n)[tested]
                at = Evaluation({**label, "repetition": repetition}, tested, count)
                yield Fit(np.sort(train), (at,), apparent=repetition == 0)


@dataclass(frozen=True)
class CaseBootstrap:
    """Leave each point out of each bootstrap sample that contains it, with all copies."""

    n_repetitions: int
    seed: int
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Require two points to draw from."""
        check_two(points)

    def n_fits(self, points: Points | None) -> int | None:
        """Count the different points of all samples."""
        if points is None:
            return None
        every = range(self.n_repetitions)
        return sum(int(np.count_nonzero(self.counts(points.n, b))) for b in every)

    def counts(self, n: int, repetition: int) -> IntArray:
        """Draw how often each point is in a sample; a sample of a single point is redrawn."""
        rng = make_rng(self.seed, repetition)
        while True:
            counts = np.bincount(rng.integers(n, size=n), minlength=n)
            if np.count_nonzero(counts) > 1:
                return counts

    def fits(self, points: Points) -> Iterator[Fit]:
        """Leave out one point of one sample after the other."""
        for repetition in range(self.n_repetitions):
            counts = self.counts(points.n, repetition)
            train = np.repeat(np.arange(points.n), counts)
            for i in np.flatnonzero(counts):
                tested = Evaluation(
                    {"repetition": repetition + 1}, np.array([i]), counts[i : i + 1]
                )
                yield Fit(train[train != i], (tested,))


def bootstrap(n_repetitions: int = 1000, *, rng: Rng = None) -> Plan:
    """Plan bootstrap samples, each tested on all points, and the fit to the data.

    The log is used by `cvstats.bootstrap_oob`, `cvstats.bootstrap_632` and
    `cvstats.location_shifted`, which target the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples of n points are drawn with replacement.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point, count``, from B + 1 fits. The count is how often
        the point was in the training sample (0: out of bag); repetition 0 is the fit to the data,
        whose error on them is the apparent error.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The reported standard error is much too large unless B is several times the number of points;
    the methods can remove the Monte Carlo part (``monte_carlo="removed"``). A point is in every
    sample, and so never out of bag, with probability ``0.632^B``, which a few dozen samples make
    negligible. Groups and classes are ignored: the standard errors require samples of single
    points.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.bootstrap(1000, rng=1).n_fits
    1001
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Bootstrap(None, n_repetitions, seed_of(rng))
    intervals = ("bootstrap_632", "bootstrap_oob", "location_shifted")
    return make_plan(bootstrap, design, ("repetition", "point", "count"), intervals)


def case_bootstrap(n_repetitions: int = 200, *, rng: Rng = None) -> Plan:
    """Plan leave-one-out cross-validation of bootstrap samples, leaving out all copies of a point.

    The log is used by `cvstats.case_bootstrap`, which targets the expected error.

    Parameters
    ----------
    n_repetitions : int, optional
        B, how many samples are drawn; 200 or more for limits at 95%.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``repetition, point, count``, with repetitions numbered from 1, from
        one fit for each distinct point of each sample: about 0.632 n B in all. The bound plan gives
        the exact number.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    The bias correction also needs the log of `leave_one_out`, with n more fits. A sample that
    contains only one distinct point, which happens with a handful of points, is redrawn.

    References
    ----------
    Jiang, Varma and Simon (2008), Calculating confidence intervals for prediction error in
    microarray classification using resampling, Statistical Applications in Genetics and
    Molecular Biology 7(1), doi:10.2202/1544-6115.1322.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.case_bootstrap(200, rng=1).bind(40).n_fits
    5115
    """
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = CaseBootstrap(n_repetitions, seed_of(rng))
    levels, cost = ("repetition", "point", "count"), "about 0.632 n n_repetitions"
    return make_plan(case_bootstrap, design, levels, ("case_bootstrap",), cost=cost)


def two_stage(n_samples: int = 200, n_repetitions: int = 100, *, rng: Rng = None) -> Plan:
    """Plan bootstrap samples of bootstrap samples.

    The log is used by `cvstats.two_stage`, which targets the expected error: the estimate is
    recomputed in each outer sample.

    Parameters
    ----------
    n_samples : int, optional
        Outer samples, each of n points drawn with replacement from the data.
    n_repetitions : int, optional
        Inner samples of the data and of each outer sample.
    rng : int or numpy.random.Generator, optional
        Seed. Without it one is drawn now, and printed with the plan.

    Returns
    -------
    Plan
        The log has the levels ``sample, repetition, point, count``, from ``(n_samples + 1) *
        (n_repetitions + 1)`` fits. Sample 0 is the data, and repetition 0 of each sample is the fit
        to it. Each distinct point of an outer sample is tested once; its count is the number of
        copies in the training sample.

    Raises
    ------
    LogError
        If an option is out of range.

    Notes
    -----
    This is the most expensive plan. In the apparent error of an outer sample, points are weighted
    by their count at repetition 0.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based
    optimism correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats
    >>> cvstats.plans.two_stage(200, 100, rng=1).n_fits
    20301
    """
    n_samples = whole_number("n_samples", n_samples, 1)
    n_repetitions = whole_number("n_repetitions", n_repetitions, 1)
    design = Bootstrap(n_samples, n_repetitions, seed_of(rng))
    levels = ("sample", "repetition", "point", "count")
    return make_plan(two_stage, design, levels, ("two_stage",))
