"""What a plan is: a design without data, the fits it asks for, and how it prints."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError, spelled
from cvstats.options import whole_number
from cvstats.plans.drawing import Mixing, Points, coded

if TYPE_CHECKING:
    import pandas as pd


SHOWN = 6
"""So many evaluations of a bound plan are printed."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test points of one fit, and the labels of their losses in the log.

    Parameters
    ----------
    levels : mapping of str to label
        Their place in the log, ``point`` and ``count`` left out.
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
    """One model to train, and everything that is to be predicted with it.

    Parameters
    ----------
    train : array of int, shape (trained,)
        Rows of the data; a bootstrap sample has some of them several times.
    evaluations : tuple of Evaluation
        Nearly always one. Nested and replace-one cross-validation ask for several of one
        model, so that no model is trained twice.
    apparent : bool
        Whether the model is tested on the sample that it was trained on, which is where the
        no-information error rate of the bootstrap methods comes from.

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
    """The part of a plan that draws."""

    @property
    def mixing(self) -> Mixing:
        """Whether single points are drawn, points within classes, or whole groups."""

    def check(self, points: Points) -> None:
        """Refuse data that the design cannot be carried out on."""

    def n_fits(self, points: Points | None) -> int | None:
        """How many different models it trains; None if that takes data to tell."""

    def fits(self, points: Points) -> Iterator[Fit]:
        """Go through the fits."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A resampling plan: made once, bound to data when it runs.

    Plans come from the functions of `cvstats.plans`. One that splits data once into training
    and test points also serves scikit-learn as ``cv=``.

    Parameters
    ----------
    name : str
        The function that made it.
    options : tuple of (str, value)
        What was asked for. The seed is always there, also if none was given.
    levels : tuple of str
        The index levels of the log it leads to.
    intervals : tuple of str
        The methods of cvstats that it is made for, the first before all.
    splitter : bool
        Whether scikit-learn can use it.
    design : Design
        What draws the fits.
    cost : str, optional
        The number of fits as a formula, where it takes data to tell.

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
        """Write the call that makes this plan."""
        if self.name.endswith(")"):  # the splitter of another library
            return self.name
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.options)})"

    def facts(self) -> dict[str, str]:
        """Tell in a few words what the plan does.

        Returns
        -------
        dict of str to str
            ``levels`` of the log, number of ``fits``, ``intervals`` it is made for, and whether
            it serves scikit-learn as ``cv=``.
        """
        n_fits = self.design.n_fits(None)
        return {
            "levels": ", ".join(self.levels),
            "fits": self.cost if n_fits is None else f"{n_fits:,}",
            "intervals": ", ".join(self.intervals),
            "cv=": "yes" if self.splitter else "no",
        }

    def __repr__(self) -> str:
        """Show the call, the levels of the log, the fits and the intervals it is made for."""
        return "\n".join([str(self), *(f"{name:<9}  {is_}" for name, is_ in self.facts().items())])

    def to_frame(self) -> pd.DataFrame:
        """Make a table of one row: the options and what the plan does.

        Returns
        -------
        DataFrame
            A column for each option, then ``levels``, ``fits``, ``intervals`` and ``cv=``.
        """
        import pandas as pd  # loaded already; plans need it for nothing else

        return pd.DataFrame({**dict(self.options), **self.facts()}, index=[self.name])

    @property
    def n_fits(self) -> int:
        """How many models are trained for each estimator; none of them twice."""
        n_fits = self.design.n_fits(None)
        if n_fits is None:
            raise LogError(
                f"the number of fits of {self.name} depends on the data. Expected a plan that was "
                f"bound to them: plan.bind(n).n_fits."
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
            The fits, one after the other.

        Raises
        ------
        LogError
            If the data are too few, or classes or groups are missing or too few.
        """
        n = whole_number("n", n, 1)
        by = self.design.mixing
        codes: IntArray | None = None
        names: list[Hashable] = []
        if by == "groups" and groups is None:
            raise LogError(f"{self.name} keeps groups together. Expected groups=, one a point.")
        if groups is not None:
            codes, names = coded(groups, n, "groups")
        classes = classes_of(y, n) if by == "classes" else None
        points = Points(n, classes, codes, names)
        self.design.check(points)
        return BoundPlan(self, points)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield training and test rows, as scikit-learn asks a ``cv=`` for them.

        Parameters
        ----------
        X : array or DataFrame
            The data; only their number is looked at.
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
        """Count the splits, as scikit-learn asks a ``cv=`` for them.

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
        """Refuse to serve scikit-learn with what is not a list of training and test sets."""
        if not self.splitter:
            raise LogError(
                f"{self.name} is more than pairs of training and test sets, so scikit-learn cannot "
                f"use it as cv=. Call cvstats.evaluate(estimators, X, y, plan=…) instead."
            )


def listed_options(
    counts: Mapping[str, int], stratified: bool, grouped: bool, seed: int
) -> tuple[tuple[str, Any], ...]:
    """List the options of a plan of folds as it prints them."""
    mixed = (("stratified", stratified), ("grouped", grouped))
    return (*counts.items(), *mixed, ("rng", seed))


def size_of(X: Any) -> int:
    """Count the points of data of any kind."""
    shape = getattr(X, "shape", None)
    if shape == () or (shape is None and not isinstance(X, Sized)):
        raise LogError(f"X is a {type(X).__name__}. Expected data with a row for each point.")
    return int(shape[0]) if shape else len(X)


def classes_of(y: Any, n: int) -> IntArray:
    """Give each point the number of its class, for a stratified plan."""
    if y is None:
        raise LogError("a stratified plan needs the classes. Expected y=, a label for each point.")
    values = np.asarray(y)
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            between = np.flatnonzero(values.ravel() % 1 != 0)
        if len(between):
            raise LogError(
                f"a stratified plan needs classes, and y looks continuous (point {between[0]:,}: "
                f"{spelled(values.ravel()[between[0]])}). Leave out stratified=True."
            )
    return coded(y, n, "y")[0]


@dataclass(frozen=True, eq=False, repr=False)
class BoundPlan:
    """A plan together with the points it is for: iterating over it gives the fits.

    Parameters
    ----------
    plan : Plan
        The plan.
    points : Points
        How many points there are, and their classes and groups.

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
        """How many models are trained for each estimator; none of them twice."""
        n_fits = self.plan.design.n_fits(self.points)
        return sum(1 for _ in self) if n_fits is None else n_fits

    def __len__(self) -> int:
        """Count the fits."""
        return self.n_fits

    def __iter__(self) -> Iterator[Fit]:
        """Go through the fits; they are drawn as they come, the same ones each time."""
        return self.plan.design.fits(self.points)

    def to_frame(self) -> pd.DataFrame:
        """Make a table of all evaluations.

        Returns
        -------
        DataFrame
            A row for each evaluation: ``fit`` (from 0), the levels of the log save ``point``
            and ``count``, and ``n_train`` and ``n_test``, numbers of points.
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
        import pandas as pd  # loaded already; plans need it for nothing else

        every = (
            {"fit": number, **evaluation.levels} | sizes(fit, evaluation)
            for number, fit in enumerate(self)
            for evaluation in fit.evaluations
        )
        return pd.DataFrame(list(islice(every, rows)))


def sizes(fit: Fit, evaluation: Evaluation) -> dict[str, int]:
    """Count what a fit is trained and tested on."""
    return {"n_train": len(fit.train), "n_test": len(evaluation.points)}
