"""The draws that plans are made of: folds, test sets and halves of points, classes or groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from cvstats.core.types import IntArray
from cvstats.errors import LogError, checked_flag

Mixing: TypeAlias = Literal["points", "classes", "groups"]
"""What is drawn: single points, points class by class, or groups as a whole."""


@dataclass(frozen=True, eq=False)
class Points:
    """What a plan knows of the data: how many points, their classes and their groups.

    Parameters
    ----------
    n : int
        Number of points.
    classes : array of int, shape (n,), optional
        Code of the class of each point, where a plan is stratified.
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
        """Keep some points."""
        classes = None if self.classes is None else self.classes[rows]
        groups = None if self.groups is None else self.groups[rows]
        return Points(len(rows), classes, groups, self.names)

    @property
    def units(self) -> int:
        """How many groups there are; where there are none, points."""
        return self.n if self.groups is None else len(self.names)


def coded(labels: Any, n: int, name: str) -> tuple[IntArray, list[Hashable]]:
    """Give each label of ``n`` points a number, in sorted order, else in that of appearance."""
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
    except TypeError:  # labels of several types have no order
        order = {label: code for code, label in enumerate(dict.fromkeys(values.tolist()))}
        return np.array([order[label] for label in values.tolist()], dtype=np.int64), list(order)


def train_share(ratio: object) -> float:
    """Return the share of the points to train on, if it is one."""
    number = float(ratio) if isinstance(ratio, (float, np.floating)) else np.nan
    if not 0 < number < 1:
        raise LogError(
            f"ratio={ratio!r} is out of range. Expected the share of the points to train on, "
            f"between 0 and 1, such as 0.9."
        )
    return number


def mixing(stratified: bool, grouped: bool) -> Mixing:
    """Put the two options into one word."""
    checked_flag("stratified", stratified)
    checked_flag("grouped", grouped)
    if stratified and grouped:
        raise LogError(
            "stratified=True and grouped=True cannot both be kept: a group goes where it goes "
            "with all its classes. Expected one of them. If every class must be in each fold, "
            "label groups so that each holds all classes."
        )
    return "classes" if stratified else "groups" if grouped else "points"


def generator(seed: int, *part: int) -> np.random.Generator:
    """Make the random numbers of one part of a plan.

    Parts are independent, so a plan with more repetitions begins like one with fewer.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=part))


def shuffled(points: Points, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Put the points into random order; with classes, one class after the other."""
    order: IntArray = rng.permutation(points.n)
    if by == "classes" and points.classes is not None:
        order = order[np.argsort(points.classes[order], kind="stable")]
    return order


def folds(points: Points, n_folds: int, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Give each point a random fold; sizes differ by one at most, unless groups prevent it."""
    if by == "groups" and points.groups is not None:
        return grouped_folds(points.groups, points.units, n_folds, rng)
    fold = np.empty(points.n, dtype=np.int64)
    # Dealt like cards: consecutive points of a class go to different folds.
    fold[shuffled(points, by, rng)] = np.arange(points.n) % n_folds
    return fold


def grouped_folds(
    groups: IntArray, n_groups: int, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """Give each group a fold: in random order, always the one that has fewest points so far."""
    sizes = np.bincount(groups, minlength=n_groups)
    load = np.zeros(n_folds, dtype=np.int64)
    fold = np.empty(n_groups, dtype=np.int64)
    for group in rng.permutation(n_groups).tolist():
        fold[group] = np.argmin(load)
        load[fold[group]] += sizes[group]
    return fold[groups]


def held_out(points: Points, n_units: int, by: Mixing, rng: np.random.Generator) -> IntArray:
    """Draw a test set of so many points (groups), in ascending order.

    With classes it is a systematic sample of the points sorted by class: the number of each
    class is its share, up to one, and each point is as likely to be drawn.
    """
    if by == "groups" and points.groups is not None:
        chosen = rng.permutation(points.units)[:n_units]
        return np.flatnonzero(np.isin(points.groups, chosen))
    order = shuffled(points, by, rng)
    start = int(rng.integers(points.n))
    return np.sort(order[(np.arange(n_units) * points.n + start) // n_units])
