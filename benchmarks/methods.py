"""Each interval against the same formula in pandas and numpy: ``python -m benchmarks.methods``.

A log of realistic size for each method, one model; every pair of calls works on an index that
neither has met before, and once more on one that has been checked. The numbers of both sides
are compared before anything is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs, plain, table
from benchmarks.cases import row
from benchmarks.table import Row


@dataclass(frozen=True)
class Size:
    """Points, and how often they are resampled."""

    n: int
    nested: tuple[int, int]
    replaced: int
    samples: int
    outer: tuple[int, int]


SIZES = {
    "full": Size(1_000, (5, 50), 200, 1_000, (100, 20)),
    "tiny": Size(60, (3, 2), 12, 60, (10, 8)),
}


def series(codes: dict[str, Any]) -> pd.Series:
    """Positive losses for the codes of some levels."""
    arrays = {name: np.asarray(values) for name, values in codes.items()}
    index = pd.MultiIndex(
        levels=[range(int(values.max()) + 1) for values in arrays.values()],
        codes=list(arrays.values()), names=list(arrays), verify_integrity=False,
    )  # fmt: skip
    loss = np.random.default_rng(1).gamma(2.0, size=len(index))
    return pd.Series(loss, index=index, name="model")


def folds(size: Size, k: int = 10, repetitions: int = 10) -> pd.Series:
    """Repetitions of K equal folds."""
    rng = np.random.default_rng(2)
    fold = np.concatenate([rng.permutation(np.arange(size.n) % k) for _ in range(repetitions)])
    return series(
        {
            "repetition": np.repeat(np.arange(repetitions), size.n),
            "fold": fold,
            "point": np.tile(np.arange(size.n), repetitions),
        }
    )


def points(size: Size) -> pd.Series:
    """One test set."""
    return folds(size, 1, 1).droplevel("fold")


def partition(size: Size) -> pd.Series:
    """One partition into ten folds."""
    return folds(size, 10, 1).droplevel("repetition")


def splits(size: Size) -> pd.Series:
    """25 random splits that test a tenth of the points."""
    rng = np.random.default_rng(3)
    tests = [rng.permutation(size.n)[: size.n // 10] for _ in range(25)]
    repetition = np.repeat(np.arange(25), size.n // 10)
    losses = series({"repetition": repetition, "point": np.concatenate(tests)})
    losses.attrs["train_size"] = size.n - size.n // 10
    return losses


def halves(size: Size) -> pd.Series:
    """Five splits of the data, and of the halves of ten divisions."""
    rng = np.random.default_rng(4)
    tests, samples, repetitions = [], [], []
    for sample in range(21):
        if sample % 2:
            order = rng.permutation(size.n)
        of = np.arange(size.n) if sample == 0 else np.array_split(order, 2)[(sample + 1) % 2]
        for j in range(5):
            tests.append(rng.permutation(of)[: size.n // 10])
            samples.append(np.full(size.n // 10, sample))
            repetitions.append(np.full(size.n // 10, j))
    names = {"sample": samples, "repetition": repetitions, "point": tests}
    return series({name: np.concatenate(parts) for name, parts in names.items()})


def nested(size: Size) -> pd.Series:
    """All pairs of an outer fold and a tested one, repeated."""
    k, repetitions = size.nested
    rng = np.random.default_rng(5)
    fold = np.stack([rng.permutation(np.arange(size.n) % k) for _ in range(repetitions)])
    shape = repetitions, k, size.n
    repetition, outer, point = (part.ravel() for part in np.indices(shape))
    tested = np.broadcast_to(fold[:, None], shape).ravel()
    return series({"repetition": repetition, "outer": outer, "fold": tested, "point": point})


def replaced(size: Size) -> pd.Series:
    """Folds of the data, of a half, and of that half with each point replaced."""
    n, h = size.replaced, size.replaced // 2
    half = np.tile(np.arange(h), (h + 1, 1))
    half[np.arange(1, h + 1), np.arange(h)] += h
    sample = np.concatenate([np.zeros(n, int), np.repeat(np.arange(1, h + 2), h)])
    fold = np.concatenate([np.arange(n) % 5, np.tile(np.arange(h) % 5, h + 1)])
    point = np.concatenate([np.arange(n), half.ravel()])
    return series({"sample": sample, "fold": fold, "point": point})


def sources(size: Size) -> pd.Series:
    """Fifty sources, left out one at a time."""
    return series({"source": np.arange(size.n) % 50, "point": np.arange(size.n)})


def bootstrap(size: Size) -> pd.Series:
    """The sample and bootstrap samples of it, every point in each."""
    rng = np.random.default_rng(6)
    counts = rng.multinomial(size.n, np.full(size.n, 1 / size.n), size.samples)
    counts = np.vstack([np.ones((1, size.n), int), counts])
    repetition, point = (part.ravel() for part in np.indices(counts.shape))
    losses = series({"repetition": repetition, "point": point, "count": counts.ravel()})
    losses[counts.ravel() > 0] *= 0.8  # what was seen is known a little better
    losses.attrs["no_information"] = 4.0
    return losses


def cases(size: Size) -> pd.Series:
    """The points that are in bag."""
    losses = bootstrap(size)
    levels = losses.index
    seen = (levels.get_level_values("count") > 0) & (levels.get_level_values("repetition") > 0)
    return logs.unseen(losses[seen])


def two_stage(size: Size) -> pd.Series:
    """The data and outer samples, each with bootstrap samples of its own."""
    outer, inner = size.outer
    rng = np.random.default_rng(7)
    parts: dict[str, list[np.ndarray]] = {
        name: [] for name in ("sample", "repetition", "point", "count")
    }
    for sample in range(outer + 1):
        share = np.full(size.n, 1 / size.n)
        drawn = rng.multinomial(size.n, share) if sample else np.ones(size.n, int)
        there = np.flatnonzero(drawn)
        counts = rng.multinomial(size.n, drawn[there] / size.n, inner)
        counts = np.vstack([drawn[there], counts])
        fit, at = (part.ravel() for part in np.indices(counts.shape))
        values = np.full(len(fit), sample), fit, there[at], counts.ravel()
        for name, value in zip(parts, values, strict=True):
            parts[name].append(value)
    losses = series({name: np.concatenate(values) for name, values in parts.items()})
    losses[losses.index.get_level_values("count") > 0] *= 0.8
    losses.attrs["no_information"] = [4.0] * (outer + 1)
    return losses


LOGS: dict[str, Callable[[Size], pd.Series]] = {
    "holdout": points,
    "wald": folds,
    "naive": folds,
    "cv_t": folds,
    "quadratic": partition,
    "corrected_t": splits,
    "conservative_z": halves,
    "five_by_two": partial(folds, k=2, repetitions=5),
    "nested_cv": nested,
    "replace_one": replaced,
    "out_of_source": sources,
    "clustered": sources,
    "bootstrap_oob": bootstrap,
    "bootstrap_632": bootstrap,
    "case_bootstrap": cases,
    "location_shifted": bootstrap,
    "two_stage": two_stage,
}
"""The log of each method."""


def method_of(name: str, losses: pd.Series) -> Callable[[pd.Series], pd.Series]:
    """Take a method with the option that its log cannot spare."""
    method: Callable[..., pd.Series] = getattr(cvstats, name)
    if name == "corrected_t":
        return partial(method, train_size=losses.attrs["train_size"])
    return method


def agrees(ours: pd.Series, theirs: plain.Limits) -> bool:
    """Whether both sides found the same interval."""
    found = [ours["estimate"], ours["lower"], ours["upper"]]
    return bool(np.allclose(np.array(found, dtype=float), theirs, rtol=1e-9))


def measured(size: Size, budget: float) -> Iterator[Row]:
    """Yield two rows for each method: an index met for the first time, and one that is known."""
    for name, make in LOGS.items():
        losses, theirs = make(size), plain.FORMULAS[name]
        ours = method_of(name, losses)
        if not agrees(ours(losses), theirs(losses)):
            raise SystemExit(f"{name}: cvstats and the plain formula differ")
        rows = f"{len(losses):,} rows"
        yield row(
            f"{name}, first call", rows, "pandas, numpy", partial(theirs, losses), ours,
            prepare=partial(logs.unseen, losses), budget=budget,
        )  # fmt: skip
        yield row(
            f"{name}, checked", rows, "pandas, numpy", partial(theirs, losses), ours,
            argument=losses, budget=budget,
        )  # fmt: skip


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods", description=__doc__)
    parser.add_argument("--scale", choices=SIZES, default="full")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each line")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    chosen = parser.parse_args()
    rows = list(measured(SIZES[chosen.scale], chosen.budget))
    print((table.markdown if chosen.markdown else table.text)(rows))


if __name__ == "__main__":
    main()
