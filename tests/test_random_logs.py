"""Random logs: the same answer, with the same cautions, whatever holds the log.

Each seed makes a log: its design, its losses or predictions, perhaps gaps, and some calls. Every
container gives the answer that the frame gives, or refuses what it cannot compute from what it has.
More seeds::

    python -m pytest tests/test_random_logs.py -m slow
"""

import inspect
import math
import re
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import dask.dataframe
import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from golden import shuffled
from rows import multi_index
from strategies import by_row

import cvstats


def draw_levels(rng, n):
    """Draw the levels of one of the usual designs, for about n points."""
    points, folds, repetitions = np.arange(n), int(rng.choice([2, 3, 5])), int(rng.choice([2, 3]))
    sources = np.sort(rng.integers(0, max(3, n // int(rng.choice([2, 6]))), n))
    again = {"repetition": np.repeat(np.arange(repetitions), n)}
    split = [rng.permutation(points % folds) for _ in range(repetitions)]
    whole = [rng.permutation(sources.max() + 1)[sources] % folds for _ in range(repetitions)]
    tiled = np.tile(points, repetitions)
    few = [rng.permutation(n)[: n // 3] for _ in range(repetitions)]
    designs = {
        "one set": {"point": points},
        "dates": {"point": pd.date_range("2020-01-01", periods=n)},
        "sources": {"source": sources, "point": points},
        "crossed": {"source": points // 6, "point": points % 6},
        "seeds": {**again, "point": tiled},
        "k-fold": {"fold": split[0], "point": points},
        "spread sources": {"fold": split[0], "source": sources, "point": points},
        "whole sources": {"fold": whole[0], "source": sources, "point": points},
        "one source left out": {"fold": sources, "source": sources, "point": points},
        "repeated": {**again, "fold": np.concatenate(split), "point": tiled},
        "repeated whole": {
            **again, "fold": np.concatenate(whole), "source": np.tile(sources, repetitions),
            "point": tiled,
        },
        "random splits": {
            "repetition": np.repeat(np.arange(repetitions), n // 3), "point": np.concatenate(few),
        },
    }  # fmt: skip
    name = rng.choice(list(designs))
    return name, designs[name]


def draw_losses(rng, n, models):
    shared = rng.standard_normal((n, 1))
    values = shared + rng.standard_normal((n, models))
    kinds = {
        "numbers": lambda: values, "mistakes": lambda: (values > 0.3) * 1.0,
        "rare mistakes": lambda: (values > 2.4) * 1.0, "skewed": lambda: np.exp(1.5 * values),
        "far from zero": lambda: values + 1e6, "ties": lambda: np.round(values),
        "nearly alike": lambda: 5 + shared + 0.01 * values, "constant": lambda: 0 * values + 2.0,
        "a random walk": lambda: np.cumsum(values, axis=0),
    }  # fmt: skip
    name = rng.choice(list(kinds))
    return name, kinds[name]()


def draw_log(seed):
    """Draw a log; also describe it."""
    rng = np.random.default_rng(seed)
    design, levels = draw_levels(rng, int(rng.choice([12, 30, 60, 150])))
    index = multi_index(**levels)
    kind, values = draw_losses(rng, len(index), models := int(rng.integers(1, 4)))
    log = pd.DataFrame(values, index, list("abc")[:models])
    gaps = rng.random() < 0.2
    if gaps:
        log = log.mask(rng.random(log.shape) < 0.05)
    words = f"{design}, {kind}, {len(log)} x {models}{', gaps' if gaps else ''}"
    return words, shuffled(log) if rng.random() < 0.3 else log


NUMBERS = (
    "squared_error", "absolute_error", "rmse", "r2", "skill", "pearson", "spearman", "kendall",
    "concordance", "wmape",
)  # fmt: skip
PROBABILITIES = ("log_loss", "brier", "auc", "average_precision", "calibration_slope")
LABELS = (
    "zero_one", "accuracy", "precision", "recall", "specificity", "f1", "jaccard", "matthews",
    "kappa", "balanced_accuracy",
)  # fmt: skip
POINTWISE = {"squared_error", "absolute_error", "log_loss", "brier", "zero_one"}
WEIGHTED = {"rmse", "r2", "auc", "average_precision", "accuracy", "recall", "f1"}


@dataclass
class Predictions:
    """A table with a row per prediction, its levels, and the options of `cvstats.losses`."""

    table: pd.DataFrame
    levels: list[str]
    models: list[str]
    options: dict[str, Any]

    def losses(self, table):
        return cvstats.losses(table, truth="y", prediction=self.models, **self.options)


def draw_predictions(seed):
    """Draw predictions of models, and a loss or metric of them; also describe both."""
    rng = np.random.default_rng([seed, 2])
    design, levels = draw_levels(rng, int(rng.choice([30, 60, 150])))
    table, models = pd.DataFrame(levels), list("abc")[: int(rng.integers(1, 4))]
    points, _ = pd.factorize(pd.MultiIndex.from_frame(table[[*{"source", "point"} & {*table}]]))
    shared = rng.standard_normal(points.max() + 1)[points]
    seen = shared[:, None] + rng.standard_normal((len(table), len(models)))
    loss = str(rng.choice([*NUMBERS, *PROBABILITIES, *LABELS]))
    options = {"loss": loss}
    table["y"] = 3 + 2 * shared if loss in NUMBERS else (shared > 0.3) * 1
    if loss in PROBABILITIES:
        seen = 1 / (1 + np.exp(-seen))
    elif loss in LABELS:
        seen = (seen > 0.5) * 1
    table[models] = seen
    if loss in LABELS and loss != "zero_one":
        options["labels"] = [0, 1]
    if loss == "skill":
        table["base"], options["reference"] = table["y"] + rng.standard_normal(len(table)), "base"
    if loss in WEIGHTED and rng.random() < 0.3:
        table["w"], options["weight"] = 1 + rng.random(points.max() + 1)[points], "w"
    if loss in WEIGHTED and rng.random() < 0.4:
        options["folds"] = str(rng.choice(["average", "pool"]))
    words = f"{design}, {options}, {len(table)} x {len(models)}"
    return words, Predictions(table, list(levels), models, options)


def in_chunks(log):
    return by_row(log).chunk(row=-(-len(log) // 3))


def in_partitions(log):
    return dask.dataframe.from_pandas(log.reset_index(), npartitions=2, sort=False)


def in_batches(log):
    pairs = log.shape[1] > 1
    return sum(cvstats.Moments.of_log(log.iloc[at::3], pairs=pairs) for at in (2, 0, 1))


def next_to_another(log, every=1):
    """Two logs, of which the first answers ``by=``, and the other may lack points."""
    other = np.random.default_rng(0).gamma(2.0, size=log.shape)
    other = pd.DataFrame(other, log.index, log.columns).where(log.notna())
    point = log.index.get_level_values("point")
    other = other[point.isin(point.unique().sort_values()[::every])]
    return pd.concat({"other": other, "told": log}, names=["site"])


ROADS = {
    "frame": lambda log: log, "other rows": shuffled, "array": by_row, "lazy array": in_chunks,
    "dataset": lambda log: by_row(log).to_dataset(dim="model"), "dask frame": in_partitions,
    "batches": in_batches, "by=": next_to_another,
    "by= of other points": partial(next_to_another, every=2),
}  # fmt: skip


def as_variables(predictions):
    rows = {name: ("row", column.to_numpy()) for name, column in predictions.table.items()}
    return xr.Dataset(rows).set_coords(predictions.levels)


def from_index(predictions, order=slice(None)):
    return predictions.losses(predictions.table.iloc[order].set_index(predictions.levels))


def from_chunks(predictions):
    rows = len(predictions.table)
    if predictions.options["loss"] in POINTWISE:
        rows = -(-rows // 3)
    return predictions.losses(as_variables(predictions).chunk(row=rows))


def from_partitions(predictions):
    table = dask.dataframe.from_pandas(predictions.table, npartitions=2, sort=False)
    return predictions.losses(table)


ROADS_OF_PREDICTIONS = {
    "frame": from_index, "other rows": partial(from_index, order=slice(None, None, -1)),
    "columns": lambda predictions: predictions.losses(predictions.table),
    "dataset": lambda predictions: predictions.losses(as_variables(predictions)),
    "lazy dataset": from_chunks, "dask frame": from_partitions,
    "lazy log": lambda predictions: predictions.losses(as_variables(predictions)).chunk(),
}  # fmt: skip

CALLS = [
    ("interval", {}), ("wald", {"variance": "within-fold", "alternative": "less"}),
    ("holdout", {}), ("ordered", {}), ("clustered", {}), ("corrected_t", {"train_size": 50}),
    ("naive", {}), ("cv_t", {}), ("out_of_source", {}), ("decompose", {}), ("heterogeneity", {}),
    ("quadratic", {}), ("compare", {}), ("compare", {"reference": "a", "adjust": "holm"}),
    ("compare", {"adjust": "max-t", "rng": 0}), ("best_set", {"rng": 0}), ("winner", {"rng": 0}),
    ("compare", {"reference": "a", "relative": True}), ("mcnemar", {}), ("rope", {"margin": 0.1}),
    ("equivalence", {"margin": 0.5}), ("refit_corrected", {}), ("source_estimators", {}),
    ("five_by_two", {}), ("wild_cluster", {"rng": 0, "n_draws": 99}),
]  # fmt: skip

NEEDS_LOSSES = re.compile(
    "individual losses|losses of each point|needs the losses to find|points_are'\\] = 'crossed'"
    "|do not test the same points of|drops a point from all|is lazy|in two folds of one"
    "|predictions are lazy|needs whole cells"
)
"""What logs that are not in memory, and parts for ``by=``, may refuse where a frame answers."""

OTHER_REFUSES = re.compile("different default methods|site='other'|site=other|would use")
"""What may be refused because of the other label, which has fewer points."""


def ask(function, make, source, options):
    try:
        result = golden.computed(getattr(cvstats, function)(make(source), **options))
    except cvstats.LogError as error:
        return str(error)
    flags = cvstats.cautions(result) if "caution" in result else ()
    flags = {label for row in np.ravel(np.asarray(flags)) for label in str(row).split(", ")}
    return golden.normalized(result), flags - {""}, result.attrs


def compare_roads(function, options, source, roads):
    """Describe in which containers a call has another answer than in the first one."""
    parameters = inspect.signature(getattr(cvstats, function)).parameters
    known = {name: parameter.default for name, parameter in parameters.items()}
    gaps = isinstance(source, pd.DataFrame) and source.isna().any(axis=None)
    if "missing" in known and gaps:
        options = {**options, "missing": "drop"}
    wanted = ask(function, roads["frame"], source, options)
    for road, make in roads.items():
        grouped = road.startswith("by=")
        if grouped and (options.get("adjust") == "max-t" or known.get("by", "") is not None):
            continue
        if road == "batches" and gaps:
            continue
        found = ask(function, make, source, {**options, "by": "site"} if grouped else options)
        if isinstance(wanted, str) or isinstance(found, str):
            refused = isinstance(found, str) and not isinstance(wanted, str)
            if refused and "other points" in road and OTHER_REFUSES.search(found):
                continue
            if isinstance(wanted, str) != isinstance(found, str) and not (
                refused and NEEDS_LOSSES.search(found)
            ):
                yield f"{road}: {found if refused else wanted}"
            continue
        # draws from covariances without full rank change with their last digits
        yield from describe_changes(road, wanted, found, 1e-2 if "rng" in options else 1e-8)


def describe_changes(road, wanted, found, tolerance):
    (answer, flags, facts), (other, other_flags, other_facts) = wanted, found
    rows, others = (list(one["rows"].items()) for one in (answer, other))
    unlike = set()
    if road.startswith("by="):  # what is of two logs
        others = [(label, row) for label, row in others if "site=told" in label]
        found = (other.get("caution", {}).get(label, "").split(", ") for label, _ in others)
        other_flags, unlike = {*chain(*found)} - {""}, {"p_adjusted", "n_dropped"}
    if flags != other_flags:
        yield f"{road}: cautions {sorted(other_flags)}, and not {sorted(flags)}"
    if len(rows) != len(others):
        yield f"{road}: {len(others)} rows, and not {len(rows)}"
    for (label, row), (_, theirs) in zip(rows, others, strict=False):
        theirs = other["attrs"] | theirs
        size = max([1.0, *map(abs, filter(math.isfinite, row.values()))])
        for name in row.keys() - unlike:
            if not np.isclose(
                row[name], theirs.get(name, math.inf), rtol=tolerance, atol=tolerance * size,
                equal_nan=True,
            ):  # fmt: skip
                yield f"{road}: {label}: {name} {theirs.get(name)!r}, and not {row[name]!r}"
    names = ("method", "target", "guarantee", "loss", "n_points", "n_folds")
    for name in names if road[:3] != "by=" else ():
        counted = name[:2] == "n_" and road.startswith("lazy")  # unknown before it is computed
        if facts.get(name) != other_facts.get(name) and not counted:
            yield f"{road}: {name} {other_facts.get(name)!r}, and not {facts.get(name)!r}"


def check(words, source, models, roads, seed, calls):
    """Compare the answers to some calls in all containers."""
    rng = np.random.default_rng([seed, 1])
    for at in rng.permutation(len(CALLS))[:calls]:
        function, options = CALLS[at]
        if {"reference", "adjust", "margin"} & options.keys() and models < 2:
            continue
        changes = list(compare_roads(function, options, source, roads))
        assert not changes, f"{words}: {function}({options})"


def check_losses(seed, calls):
    words, log = draw_log(seed)
    check(words, log, log.shape[1], ROADS, seed, calls)


def check_predictions(seed, calls):
    words, predictions = draw_predictions(seed)
    roads = dict(ROADS_OF_PREDICTIONS)
    if predictions.options["loss"] not in (POINTWISE | {"spearman", "kendall"}):
        del roads["lazy dataset"]  # what a single prediction can change is unknown, and it says so
    check(words, predictions, len(predictions.models), roads, seed, calls)


@pytest.mark.parametrize("seed", range(24))
def test_a_few_random_logs(seed):
    check_losses(seed, calls=3)


def test_random_logs_that_had_other_answers():
    for seed in (1531, 1732):  # a whole fold without losses, whose points other models train on
        _, log = draw_log(seed)
        assert not list(compare_roads("rope", {"margin": 0.1}, log, ROADS))
    _, predictions = draw_predictions(1122)  # seeds, whose pseudo-losses are no losses of points
    assert not list(compare_roads("compare", {}, predictions, ROADS_OF_PREDICTIONS))
    _, predictions = draw_predictions(1032)  # limits of several models, before losses are computed
    assert not list(compare_roads("interval", {}, predictions, ROADS_OF_PREDICTIONS))


@pytest.mark.parametrize("seed", [1007, 1054, 1059, 1078, 1114])
def test_summaries_that_had_other_words(seed):
    """Lazy arrays and moments lacked advice or a caution, or took rounding for another limit."""
    _, log = draw_log(seed)
    options = {"missing": "drop"} if (gaps := log.isna().any(axis=None)) else {}
    roads = {name: make for name, make in ROADS.items() if name[:3] != "by="}
    if gaps:
        del roads["batches"], roads["dask frame"]
    found = (cvstats.summary(make(log), **options) for make in roads.values())
    words = {str(one.compute() if hasattr(one, "compute") else one) for one in found}
    assert len(words) == 1


@pytest.mark.parametrize("seed", range(24))
def test_a_few_random_tables_of_predictions(seed):
    check_predictions(seed, calls=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_random_logs(seed):
    check_losses(seed, calls=10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_random_tables_of_predictions(seed):
    check_predictions(seed, calls=8)
