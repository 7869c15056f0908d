"""Golden answers: every method on every container, as they are stored and as they are computed.

`tests/reference/answers.json.gz` holds the answers of all `CASES` in their `CONTAINERS`, and the
public signatures. `tests/test_golden.py` computes them again and compares. To store the answers of
new cases, and all cautions and signatures::

    python tests/golden.py

With ``--all`` it stores every answer anew, after a change of numbers that is meant and is in the
changelog.

Answers are stored without their shape: for each row (a model, a pair, a cell) its numbers by name,
wherever the result has them, as columns, variables or attributes of the whole.
"""

import gzip
import hashlib
import inspect
import json
import math
import numbers
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import bootstrap_logs
import dask
import dask.dataframe
import numpy as np
import pandas as pd
import resampled_logs
import xarray as xr
from lazily import guard
from rows import multi_index
from strategies import as_dataset, dense, label_arrays, stacked

import cvstats
from cvstats.intervals import list_methods
from cvstats.intervals._method import LogMethod

PATH = Path(__file__).parent / "reference" / "answers.json.gz"
FAR = 1e9
STEP = 2.0**-20
"""All losses are multiples of it, so that `FAR` is added to them without rounding."""

# --- logs -----------------------------------------------------------------------------------------

MODELS = list("abc")


def losses(index, seed, models=MODELS):
    """Losses of models of different quality that share what is hard about a point."""
    rng = np.random.default_rng(seed)
    points, _ = pd.factorize(index.get_level_values("point"))
    shared = rng.standard_normal(points.max() + 1)[points]
    own = rng.standard_normal((len(index), len(models)))
    values = 1.0 + shared[:, None] + 0.5 * own + 0.1 * np.arange(len(models))
    return pd.DataFrame(np.round(values / STEP) * STEP, index=index, columns=models)


def k_fold(n=42, k=5, repetitions=1, seed=1, sources=0, whole=False):
    """K-fold cross-validation, repeated or not; sources are spread over the folds or kept whole."""
    rng = np.random.default_rng(seed)
    points = np.arange(n)
    source = points % sources if sources else points
    levels = {"repetition": np.repeat(np.arange(repetitions), n)} if repetitions > 1 else {}
    blocks = source if whole else points
    levels["fold"] = np.concatenate(
        [rng.permutation(np.arange(blocks.max() + 1) % k)[blocks] for _ in range(repetitions)]
    )
    if sources:
        levels["source"] = np.tile([f"s{label}" for label in source], repetitions)
    levels["point"] = np.tile(points, repetitions)
    return losses(multi_index(**levels), seed)


def leave_one_out():
    return losses(multi_index(fold=np.arange(31), point=np.arange(31)), 2)


def one_set(repetitions=1):
    """One test set, evaluated after one or several fits."""
    points = np.tile(np.arange(36), repetitions)
    if repetitions == 1:
        return losses(multi_index(point=points), 3)
    return losses(multi_index(repetition=np.repeat(np.arange(repetitions), 36), point=points), 3)


def binary(log):
    """Turn losses into mistakes."""
    return (log > log.stack().median()).astype(float)


def by_source(sizes=(5, 8, 3, 6, 9), seed=4):
    """One source left out at a time."""
    source = np.repeat([f"s{k}" for k in range(len(sizes))], sizes)
    log = losses(multi_index(source=source, point=np.arange(sum(sizes))), seed)
    shift = np.arange(len(sizes))[np.repeat(np.arange(len(sizes)), sizes)] % 3
    return log + 0.25 * shift[:, None]


def crossed(sources=5, points=17):
    """The same points under each of several sources."""
    source, point = np.repeat(np.arange(sources), points), np.tile(np.arange(points), sources)
    log = losses(multi_index(source=[f"s{label}" for label in source], point=point), 11)
    return log + 0.25 * (source % 3)[:, None]


def independent(make, count=3):
    """Several logs of the same design, below each other."""
    logs = {f"d{i}": make(seed=10 + i) for i in range(count)}
    return pd.concat(logs, names=["dataset"])


def planned(make, seed):
    """A log of one of the plans of `resampled_logs`."""
    return losses(resampled_logs.index_of(make(np.random.default_rng(seed))), seed)


def bootstrapped(name):
    log = bootstrap_logs.LOGS[name]()
    return (log / STEP).round() * STEP


LOGS = {
    "k-fold": k_fold,
    "repeated": lambda: k_fold(repetitions=3),
    "binary": lambda: binary(k_fold()),
    "leave-one-out": leave_one_out,
    "one set": one_set,
    "seeds": lambda: one_set(repetitions=3),
    "binary set": lambda: binary(one_set()),
    "spread sources": lambda: k_fold(sources=7),
    "whole sources": lambda: k_fold(sources=12, whole=True),
    "repeated sources": lambda: k_fold(sources=7, repetitions=2),
    "three sources": lambda: k_fold(k=4, sources=3, repetitions=2),
    "by source": by_source,
    "crossed": crossed,
    "independent": lambda: independent(k_fold),
    "independent sources": lambda: independent(by_source),
    "splits": lambda: planned(lambda rng: resampled_logs.subsampling(np.arange(30), 10, 5, rng), 5),
    "halves": lambda: planned(lambda rng: resampled_logs.paired_subsampling(24, 8, 3, 3, rng), 6),
    "five by two": lambda: planned(lambda rng: resampled_logs.repeated_k_fold(20, 2, 5, rng), 7),
    "nested": lambda: planned(lambda rng: resampled_logs.nested_cv(20, 4, 2, rng), 8),
    "replaced": lambda: planned(lambda rng: resampled_logs.replace_one(12, 3, 2, rng), 9),
    "bootstrap": lambda: bootstrapped("bootstrap_oob"),
    "case bootstrap": lambda: bootstrapped("case_bootstrap"),
    "two-stage": lambda: bootstrapped("two_stage"),
}


@cache
def log_named(name, level=0.0):
    return LOGS[name]() + level if level else LOGS[name]()


def digest(log):
    """A hash of all labels and losses."""
    return hashlib.sha256(log.reset_index().to_csv(index=False).encode()).hexdigest()[:16]


# --- cases ----------------------------------------------------------------------------------------


MOVING = ("estimate", "lower", "upper", "mean", "err_ncv", "err_cv")


@dataclass(frozen=True)
class Case:
    """One call of one function on one log."""

    function: str
    log: str
    options: Mapping[str, Any] = field(default_factory=dict)
    cells: tuple[str, ...] | None = None  # what Moments are taken by
    far: bool = True  # whether the numbers do not change, or by FAR, when FAR is added to losses
    containers: tuple[str, ...] | None = None  # the only ones, if not those of `calls`
    everywhere: bool = False  # in all containers, although not the first of its function or log
    apart: bool = False  # computed in another way: with all properties of `test_answers`

    @property
    def name(self):
        words = [
            key if key == "no_information" else f"{key}={value}"
            for key, value in self.options.items()
        ]
        return ", ".join([f"{self.function} of {self.log}", *words])

    @property
    def moving(self):
        """The numbers that move with the losses."""
        return () if self.function in PAIRED else MOVING


PAIRED = {"compare", "difference", "equivalence", "rope", "mcnemar", "power"}
"""These take two logs, or one log of several models."""

GROUPED = {
    method.name: method.group_option
    for method in list_methods()
    if isinstance(method, LogMethod)
    and method.group_option in method.options
    and method.group_option != method.level_option
}
"""The methods that answer for each label of a level, and the option that names it."""

COMPARED = (
    ("holdout", "one set", {}), ("wald", "k-fold", {"variance": "within-fold"}),
    ("naive", "k-fold", {}), ("cv_t", "repeated", {}),
    ("refit_corrected", "repeated", {}), ("quadratic", "k-fold", {}),
    ("corrected_t", "repeated", {}), ("corrected_t", "splits", {"train_size": 20}),
    ("conservative_z", "halves", {}), ("five_by_two", "five by two", {}),
    ("five_by_two", "five by two", {"test": "f"}), ("nested_cv", "nested", {}),
    ("replace_one", "replaced", {}), ("clustered", "whole sources", {"correction": "CR1"}),
    ("clustered", "spread sources", {"correction": "CR3"}),
    ("clustered", "repeated sources", {"by": ("source", "repetition")}),
    ("ordered", "one set", {}), ("out_of_source", "by source", {}),
    ("out_of_source", "by source", {"target": "these_sources"}),
    ("bootstrap_oob", "bootstrap", {}),
)  # fmt: skip
"""The intervals that `compare` takes of differences: method, log, options."""

OF_PAIRS = (
    "frame", "two arrays", "dask by point", "dask by model", "two dask arrays", "dask grid",
    "moments", "groups",
)  # fmt: skip
OF_LABELS = (
    "frame", "array by point", "dense array", "grid with gaps", "dask by point", "dask grid",
    "scan_dask", "moments",
)  # fmt: skip


def cases():
    def each(function, logs, *options, **more):
        for log in logs:
            for chosen in options or ({},):
                yield Case(function, log, chosen, **more)

    partitions = ["k-fold", "repeated"]
    levels = ({"alpha": 0.2}, {"alternative": "less"}, {"alternative": "greater"})

    yield from each("holdout", ["one set", "seeds"], {}, {"interval": "t"})
    yield from each("holdout", ["binary set"], {"interval": "wilson"},
                    {"interval": "clopper-pearson"}, far=False)  # fmt: skip
    yield from each("wald", partitions, {}, {"variance": "within-fold"}, {"fold_weights": "equal"},
                    {"variance": "within-fold", "fold_weights": "equal"})  # fmt: skip
    yield from each("wald", ["k-fold"], *levels)
    yield from each("wald", ["leave-one-out", "by source"])
    for function in ("naive", "cv_t"):
        yield from each(function, partitions)
    yield from each("cv_t", ["repeated"], {"alpha": 0.2})
    for estimator in ("theta_2", "theta_3", "theta_4", "theta_5"):
        yield Case("quadratic", "k-fold", {"estimator": estimator})
    yield Case("quadratic", "k-fold", {"estimator": "theta_1"}, far=False)
    yield Case("quadratic", "k-fold", {"fold_weights": "equal"})
    yield Case("quadratic", "k-fold", {"bias": (1.0, 0.5, 0.0)}, far=False)
    yield from each("refit_corrected", ["repeated"])
    yield from each("corrected_t", ["repeated", "k-fold"])
    yield from each("corrected_t", ["splits"], {"train_size": 20, "missing": "drop"})
    yield from each("conservative_z", ["halves"])
    yield Case("five_by_two", "five by two")
    yield Case("five_by_two", "five by two", {"test": "f"}, far=False)  # tests a mean of zero
    yield from each("nested_cv", ["nested"], {}, {"bias_correction": "code"},
                    {"bias_correction": None})  # fmt: skip
    yield from each("replace_one", ["replaced"], {}, {"constant": "printed"})
    yield from each("bootstrap_oob", ["bootstrap"], {}, {"monte_carlo": "removed"}, far=False)
    rates, staged = (bootstrap_logs.OPTIONS[name] for name in ("bootstrap_632", "two_stage"))
    yield from each("bootstrap_632", ["bootstrap"], rates, {"plus": False}, far=False)
    yield from each("case_bootstrap", ["case bootstrap"])
    without = {"correction": "632"}, {"correction": "harrell"}
    yield from each("location_shifted", ["bootstrap"], rates, *without, far=False)
    yield from each("two_stage", ["two-stage"], staged, *without, far=False)
    yield from each("out_of_source", ["by source"], {}, {"target": "these_sources"},
                    {"target": "these_sources", "variance": "theta_a"})  # fmt: skip
    for log in ("whole sources", "spread sources", "repeated sources"):
        yield from each("clustered", [log], {"correction": "CR1"}, {"correction": "CR3"})
    yield from each("clustered", ["repeated sources"], {"by": ("source", "repetition")},
                    everywhere=True)  # fmt: skip
    yield from each("clustered", ["repeated sources"],
                    {"by": ("repetition", "source"), "correction": "CR1"}, apart=True)  # fmt: skip
    yield from each("clustered", ["seeds"], {"by": ("point", "repetition")})
    yield from each("clustered", ["crossed"], {"by": ("source", "point")})
    yield from each("heterogeneity", ["whole sources", "by source"], {}, {"variance": "pooled"})
    yield Case("source_estimators", "by source")
    yield Case("source_estimators", "by source", {"source": "s1", "other": "s3"}, far=False)
    yield Case("source_components", "independent sources", {}, ("dataset", "source"))
    yield from each("decompose", partitions, {}, {"rho": 0.1}, {"gamma": 0.02},
                    {"rho": (0.0, 0.1), "fold_weights": "equal"}, far=False)  # fmt: skip
    yield Case("decompose", "independent", {"independent": "dataset"}, ("dataset", "fold"), False)
    yield Case("decompose", "by source", far=False)
    yield from each("moments", partitions)
    yield from each("moments", ["whole sources"], {"by": "source"})
    for log in LOGS:
        cells = ("dataset", "source") if log == "independent sources" else None
        near = ("bootstrap", "two-stage", "binary", "binary set")  # 1e9 + 1 is not an error
        yield Case("interval", log, {}, cells, far=log not in near)
        yield Case("methods", log, {}, cells, far=False)

    yield from each("compare", partitions, {})
    yield from each("compare", partitions, {"adjust": "bh"}, {"adjust": None},
                    {"adjust": "max-t", "rng": 1, "n_draws": 2000},
                    containers=OF_PAIRS)  # fmt: skip
    yield from each("compare", partitions, {"reference": "b"})
    yield from each("compare", ["k-fold"], *levels)
    for method, log, options in COMPARED:
        chosen = {"options": options} if options else {}
        dropped = {"missing": "drop"} if log == "splits" else {}
        given = {"method": method, **chosen, **dropped}
        yield Case("compare", log, given, containers=OF_PAIRS)
        drawn = {**given, "adjust": "max-t", "rng": 2, "n_draws": 500}
        yield Case("compare", log, drawn, far=False, containers=("frame", "dask by point"))
    yield from each("compare", ["by source", "whole sources", "seeds", "crossed"])
    for log in ("binary", "binary set"):
        yield from each("compare", [log], {}, {"alternative": "less"}, {"method": "tango"},
                        far=False)  # fmt: skip
        yield from each("equivalence", [log], {"margin": 0.1}, far=False)
        yield from each("power", [log], {"effect": 0.1}, far=False)
    yield from each("wald", ["binary"], {"interval": "wilson"}, {"interval": "clopper-pearson"},
                    {"interval": "wilson", "alternative": "less"}, far=False)  # fmt: skip
    yield from each("difference", partitions, {}, {"reference": "b"})
    yield from each("best_set", partitions, {"rng": 1, "n_draws": 1000},
                    {"rng": 1, "n_draws": 1000, "center": "global"})  # fmt: skip
    yield from each("equivalence", partitions, {"margin": 0.3}, {"margin": (-0.2, 0.4)},
                    {"margin": 0.3, "method": "cv_t"})  # fmt: skip
    yield from each("rope", partitions, {"margin": 0.1}, {"margin": 0.1, "rho": 0.3})
    yield from each("mcnemar", ["binary", "binary set"], {}, {"test": "exact"}, {"test": "chi2"},
                    {"test": "chi2", "correction": True}, {"test": "mid-p", "adjust": "bh"},
                    far=False)  # fmt: skip
    yield from each("cochran_q", ["binary", "binary set"], far=False)
    yield from each("friedman", ["by source"], {}, {"test": "f"})
    yield from each("nemenyi", ["by source"])
    yield from each("power", ["one set", "k-fold", "repeated"], {"effect": 0.2},
                    {"effect": 0.1, "alternative": "less", "target_power": 0.9})  # fmt: skip

    yield from each("ordered", ["one set", "crossed"], {}, {"horizon": 2},
                    {"estimator": "newey-west", "lags": 3}, apart=True)  # fmt: skip
    yield from each("wild_cluster", ["whole sources"], {"rng": 1, "n_draws": 199},
                    far=False)  # fmt: skip
    yield from each("winner", ["k-fold"], {"rng": 1, "n_draws": 199}, far=False)
    yield from each("answers", ["seeds"], {"repetitions": (1, 2)}, far=False)
    yield from each("compare", ["one set"], {"anytime": True}, far=False, everywhere=True)
    yield from each("compare", ["one set", "binary set"],
                    {"anytime": True, "adjust": None, "tightest_at": 20}, far=False)  # fmt: skip
    yield from each("compare", ["repeated"], {"method": "union"}, far=False, everywhere=True)
    yield from each("compare", ["by source"], {"method": "union"}, far=False, apart=True)
    yield from each("wald", ["k-fold"], {"interval": "hall"}, far=False, everywhere=True)
    yield from each("wald", ["k-fold"], {"scale": "log"}, far=False, apart=True)
    yield from each("holdout", ["one set"], {"interval": "betting", "bounds": (-4.0, 6.0)},
                    far=False, everywhere=True)  # fmt: skip
    yield from each("holdout", ["one set"], {"interval": "hall"},
                    {"interval": "bernstein", "bounds": (-4.0, 6.0)}, far=False,
                    apart=True)  # fmt: skip
    yield from each("out_of_source", ["by source"], {"interval": "prediction"})

    # Sources that lie in some folds only, in others from one repetition to the next: there the
    # numbers of points, folds and repetitions are those of the label and not of the log.
    for function, logs, *options in (
        ("wald", ["spread sources", "repeated sources"], {}),
        ("wald", ["three sources"], {"variance": "within-fold"}),
        ("naive", ["spread sources", "repeated sources"], {}),
        ("cv_t", ["spread sources", "repeated sources"], {}),
        ("quadratic", ["spread sources"], {"estimator": "theta_3"}),
        ("corrected_t", ["repeated sources"], {}, {"train_size": 33}),
        ("decompose", ["spread sources", "repeated sources"], {}),
        ("holdout", ["by source"], {}, {"interval": "t"}),
    ):
        for chosen in options:
            labels = {"by": "source", **chosen}
            yield from each(function, logs, labels, far=False, containers=OF_LABELS)
    yield from each("clustered", ["independent sources"], {"per": "dataset"}, far=False,
                    containers=OF_LABELS)  # fmt: skip
    yield from each("out_of_source", ["independent sources"], {"by": "dataset"}, far=False,
                    containers=OF_LABELS)  # fmt: skip

    # What the calls above leave at its default.
    few = {"rng": 1, "n_draws": 199}
    lone = {"far": False, "containers": ("frame",)}
    for function, log, options in (
        ("refit_corrected", "repeated", {}), ("corrected_t", "repeated", {}),
        ("conservative_z", "halves", {}), ("five_by_two", "five by two", {}),
        ("nested_cv", "nested", {}), ("replace_one", "replaced", {}), ("naive", "k-fold", {}),
        ("bootstrap_oob", "bootstrap", {}), ("location_shifted", "bootstrap", rates),
        ("two_stage", "two-stage", staged), ("case_bootstrap", "case bootstrap", {}),
        ("quadratic", "k-fold", {}), ("ordered", "one set", {}), ("holdout", "binary set", {}),
        ("out_of_source", "by source", {"interval": "prediction"}), ("nemenyi", "by source", {}),
        ("clustered", "whole sources", {"interval": "prediction"}), ("friedman", "by source", {}),
        ("heterogeneity", "by source", {}), ("wild_cluster", "whole sources", few),
        ("interval", "repeated", {"method": "cv_t"}),
    ):  # fmt: skip
        yield Case(function, log, {**options, "alpha": 0.2}, **lone)
    yield Case("bootstrap_632", "bootstrap", {**rates, "monte_carlo": "removed"}, **lone)
    yield Case("wild_cluster", "whole sources", {**few, "by": "source"}, **lone)
    for less in ({}, {"alternative": "less"}, {"adjust": "max-t", **few}):
        yield from each("compare", ["binary", "binary set"], {"relative": True, **less}, **lone)
    for log in ("spread sources", "whole sources", "repeated sources", "crossed"):
        yield Case("compare", log, {"by": "source"}, **lone)
    yield from each("compare", ["crossed"], {"points": "nested"}, **lone)
    yield from each("interval", ["crossed"], {"points": "nested"}, {"by": "source"}, **lone)
    yield Case("compare", "independent", {"by": "dataset"}, **lone)
    yield from each("power", ["k-fold", "crossed"], {"effect": 0.2, "method": "quadratic"}, **lone)
    yield from each("power", ["seeds", "halves", "nested"], {"effect": 0.2}, **lone)
    for log in ("k-fold", "repeated", "one set", "whole sources", "crossed"):
        yield Case("winner", log, {**few, "alpha": 0.2}, **lone)
        yield Case("equivalence", log, {"margin": 0.3, "reference": "b", "alpha": 0.1}, **lone)
        yield Case("best_set", log, {**few, "alpha": 0.2}, **lone)
    for log in ("by source", "whole sources", "crossed", "binary", "seeds"):
        yield Case("best_set", log, {**few, "screening": 0.005}, **lone)
    yield Case("best_set", "whole sources", {**few, "method": "clustered"}, **lone)
    for log in ("repeated", "splits"):
        given = {"margin": 0.1, "train_size": 30, "missing": "drop"}
        yield from each("rope", [log], given, **lone)
    yield from each("rope", ["repeated"], {"margin": 0.1, "reference": "b"}, **lone)
    yield from each("mcnemar", ["binary"], {"reference": "b"}, **lone)
    for margin in ((-1.5, 0.2), (-0.2, 1.5), (-1.0, 0.2), (-0.2, 1.0)):
        yield from each("equivalence", ["binary", "binary set"], {"margin": margin}, **lone)
    yield from each("largest_differences", ["k-fold", "crossed"], {"n": 3}, **lone)


CASES = {case.name: case for case in cases()}

# --- containers -----------------------------------------------------------------------------------


def shuffled(log, seed=5):
    return log.sample(frac=1.0, random_state=seed)


def mixed(array):
    """The array with its dimensions, and the labels of the levels, in another order."""
    draw = np.random.default_rng(6)
    sizes = {dim: size for dim, size in array.sizes.items() if dim != "model"}
    array = array.isel({dim: draw.permutation(size) for dim, size in sizes.items()})
    return array.transpose(*reversed(array.dims))


ALONG = ("fold", "source", "count")
"""The levels that are coordinates along the others in arrays by point."""


def by_point(log):
    """A DataArray over points, and fits, with fold, source and count as coordinates."""
    found = label_arrays(log.index)
    crosses = "source" in found and not log.index.droplevel("source").is_unique
    dims = [level for level in found if level not in ALONG or (level == "source" and crosses)]
    where = tuple(found[level][0] for level in dims)
    shape = tuple(len(found[level][1]) for level in dims)
    values = np.full((log.shape[1], *shape), np.nan)
    values[:, *where] = log.to_numpy().T
    coords = {level: found[level][1] for level in dims} | {"model": list(log.columns)}
    for level in [level for level in found if level not in dims]:
        codes, labels = found[level]
        full = np.zeros(shape, dtype=np.int64) if level == "count" else np.empty(shape, object)
        full[where] = labels[codes]
        coords[level] = dims, full
    return xr.DataArray(values, coords, ("model", *dims))


def on_grid(log, gaps=False):
    """The log at three places, at one of them without any loss; each with gaps of its own."""
    array = by_point(log)
    places = [array, 2.0 * array + 0.25, array.isel(model=slice(None, None, -1)).assign_coords(
        model=array["model"])]  # fmt: skip
    grid = xr.concat([*places, np.nan * array], pd.Index([10, 20, 30, 40], name="lat"))
    if gaps:
        points = xr.DataArray(np.arange(grid.sizes["point"]), dims="point")
        for lat, points_lost in ((10, (4, 9)), (20, (7,))):
            grid = grid.where((grid["lat"] != lat) | ~points.isin(points_lost))
    return grid.transpose("model", "lat", ...)


def with_gaps(log):
    """The log without the losses of one model, or of all models, on some rows."""
    log = log.copy()
    log.iloc[[2, 11], 0] = np.nan
    log.iloc[17] = np.nan
    return log


def chunks_of_grid(log):
    return on_grid(log).chunk(lat=2, point=20)


def chunks_of_gaps(log):
    return on_grid(log, gaps=True).chunk(lat=1, point=20)


def rows_of(log):
    """The log as a dask frame, in no order."""
    table = log.sample(frac=1, random_state=3).reset_index()
    return dask.dataframe.from_pandas(table, npartitions=2, sort=False)


def chunks_of_points(log):
    return by_point(log).chunk(point=7)


def chunks_of_models(log):
    return by_point(log).chunk(model=1)


def chunks_of_folds(log):
    """A table with gaps where nothing was evaluated, cut unevenly along every dimension."""
    array = mixed(dense(log))
    return array.chunk({dim: -(-2 * size // 3) for dim, size in array.sizes.items()})


def dataset_by_point(log):
    return as_dataset(by_point(log))


def halves_of(log):
    """Two batches, the first half of the rows and the second."""
    return log.iloc[: len(log) // 2], log.iloc[len(log) // 2 :]


def two_logs(log):
    """Two logs below each other, the second with the losses in reverse order."""
    return pd.concat({"x": log, "y": log[::-1].set_axis(log.index)}, names=["study"])


@cache
def built(build, name, level):
    """A log in one container."""
    return build(log_named(name, level))


def of_whole(build):
    """Make the call on the log in one container."""
    return lambda case, level: call(case, built(build, case.log, level))


def of_gaps(build):
    """Make the call on the losses that are left of the log in one container."""

    def answered(case, level):
        options = {**case.options, "missing": "drop"}
        return call(case, built(build, case.log, level), options=options)

    return answered


def of_models(build):
    """Make the call on the logs of the first two models, each in a container."""

    def answered(case, level):
        array = built(build, case.log, level)
        return call(case, *(array.isel(model=at, drop=True) for at in range(2)))

    return answered


def of_series(case, level):
    """One model; two logs of one model each where they are compared."""
    log = log_named(case.log, level)
    options = {
        key: value[log.columns[0]] if key == "no_information" else value
        for key, value in case.options.items()
    }
    first, second = (log[name] for name in log.columns[:2])
    if case.function in PAIRED:
        options.pop("reference", None)
        return call(case, first, second, options=options)
    return call(case, first, options=options)


def moments_options(case):
    return {"by": case.cells and list(case.cells), "pairs": case.function in PAIRED}


def of_moments(case, level):
    first, second = (
        cvstats.Moments.of_log(part, **moments_options(case))
        for part in built(halves_of, case.log, level)
    )
    return call(case, first + second)


def of_scan(case, level):
    models = list(log_named(case.log).columns)
    rows = built(rows_of, case.log, level)
    moments = cvstats.scan_dask(rows, loss=models, **moments_options(case))
    return getattr(moments, case.function)(**case.options)


def of_dask_frame(case, level):
    return getattr(built(rows_of, case.log, level).cvci, case.function)(**case.options)


def of_groups(case, level):
    """One answer for each of two logs."""
    per = GROUPED.get(case.function, "by")
    logs = built(two_logs, case.log, level)
    return call(case, logs, options={**case.options, per: "study"})


def call(case, *logs, options=None):
    """Call the function; of differences, which are a log, take the interval of their mean."""
    found = getattr(cvstats, case.function)(*logs, **(case.options if options is None else options))
    return cvstats.wald(found) if case.function == "difference" else found


CONTAINERS = {
    "series": of_series,
    "frame": lambda case, level: call(case, log_named(case.log, level)),
    "array by point": of_whole(by_point),
    "dense array": of_whole(dense),
    "stacked array": of_whole(stacked),
    "dataset": of_whole(dataset_by_point),
    "dask by point": of_whole(chunks_of_points),
    "dask by model": of_whole(chunks_of_models),
    "dense dask array": of_whole(chunks_of_folds),
    "dask frame": of_dask_frame,
    "scan_dask": of_scan,
    "moments": of_moments,
    "two arrays": of_models(by_point),
    "two dask arrays": of_models(chunks_of_points),
    "groups": of_groups,
    "grid": of_whole(on_grid),
    "dask grid": of_whole(chunks_of_grid),
    "gaps": of_gaps(with_gaps),
    "grid with gaps": of_gaps(partial(on_grid, gaps=True)),
    "dask grid with gaps": of_gaps(chunks_of_gaps),
}

IN_MEMORY = {"dask grid": "grid", "dask grid with gaps": "grid with gaps"}
"""The containers that hold other losses than the frame does, and where these are in memory."""

WITH_GAPS = ("gaps", "grid with gaps", "dask grid with gaps")

FOR_VARIANTS = ("frame", "dask by point", "moments", "groups")
"""The containers of all cases but the first of each function and of each log."""

AT_FAR_LEVEL = ("frame", "moments")
"""The containers of the cases whose losses lie far from zero."""


def applies(case, container):
    """Whether there is such a call, to be answered or refused."""
    if container == "groups":
        return case.function in GROUPED
    if container in ("two arrays", "two dask arrays"):
        return case.function in PAIRED and "reference" not in case.options
    if case.function == "methods":
        return container in ("frame", "moments")
    if container in WITH_GAPS:
        return "missing" in inspect.signature(getattr(cvstats, case.function)).parameters
    if container in ("dense array", "dense dask array"):  # of counts it would be too large
        return "count" not in log_named(case.log).index.names
    return True


def answer(case, container, level=0.0):
    """Compute one answer in the form that is stored, or name the type of the refusal.

    Nothing lazy is computed before its result is.
    """
    try:
        with guard():
            later = CONTAINERS[container](case, level)
        result = computed(later)
    except Exception as error:  # refusals are part of the answers
        kind = cvstats.LogError if isinstance(error, cvstats.LogError) else type(error)
        return {"refused": kind.__name__}
    return normalized(result)


def computed(later):
    """The result, without threads; tables of pandas are never lazy."""
    if isinstance(later, (pd.Series, pd.DataFrame)):
        return later
    with dask.config.set(scheduler="synchronous"):
        return dask.compute(later)[0]


# --- the form that is stored ----------------------------------------------------------------------


def normalized(result):
    """The numbers of a result by row and name, whatever its shape."""
    rows, cautions = {}, {}
    for label, entries in rows_of_result(result):
        rows[label] = {
            str(name): simple(value)
            for name, value in entries.items()
            if isinstance(value, (numbers.Real, np.bool_)) and name != "caution"
        }
        if "caution" in entries and entries["caution"]:
            cautions[label] = str(entries["caution"])
    attrs = {str(name): value for name, value in result.attrs.items()}
    facts = {name: simple(value) for name, value in attrs.items() if is_simple(value)}
    stored = {"rows": rows, "attrs": facts}
    return {**stored, "caution": cautions} if cautions else stored


def is_simple(value):
    return isinstance(value, (numbers.Real, np.bool_, str))


def simple(value):
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return int(value)
    return value if isinstance(value, str) else float(value)


def rows_of_result(result):
    """Yield a label and the entries by name of each row."""
    if isinstance(result, pd.Series):
        yield label_of(["model"], [result.name]), result.to_dict()
    elif isinstance(result, pd.DataFrame):
        names = ["model" if name is None else name for name in result.index.names]
        several, columns = isinstance(result.index, pd.MultiIndex), [*result.columns]
        for label, values in zip(result.index, result.to_numpy(dtype=object), strict=True):
            labels = label if several else (label,)
            yield label_of(names, labels), dict(zip(columns, values, strict=True))
    else:
        sizes = dict(result.sizes)
        full = {name: result.variables[name].set_dims(sizes).values for name in result}
        known = {dim: result[dim].values if dim in result.coords else range(sizes[dim])
                 for dim in sizes}  # fmt: skip
        for at in np.ndindex(*sizes.values()):
            labels = [known[dim][i] for dim, i in zip(sizes, at, strict=True)]
            yield label_of(sizes, labels), {name: full[name][at] for name in full}


def label_of(names, labels):
    """Name a row by its labels, in whatever order the levels come."""
    return ", ".join(sorted(f"{name}={label}" for name, label in zip(names, labels, strict=True)))


# --- comparing ------------------------------------------------------------------------------------

SETTINGS = {"method", "interval_method", "alpha", "adjust"}
"""What a result says about itself that is compared, besides its counts ``n_...``."""

IN_UNITS = {"estimate", "difference", "se", "lower", "upper"}
"""Numbers in the unit of the loss, which are compared relative to the width of the interval."""


def differences(stored, found, *, tolerance=1e-12, level=0.0, moving=()):
    """All in which an answer differs from the stored one, in words.

    The numbers named in ``moving`` have moved by ``level`` together with the losses. There may be
    more numbers, and near zero more cautions, than were stored.
    """
    if "refused" in stored or "refused" in found:
        same = stored.get("refused") == found.get("refused")
        return [] if same else [f"{outcome_of(found)}, and not {outcome_of(stored)}"]
    said = [
        f"{name}: {found['attrs'].get(name)!r}, and not {value!r}"
        for name, value in stored["attrs"].items()
        if (name in SETTINGS or name.startswith("n_")) and not level
        if value != found["attrs"].get(name)
    ]
    theirs = found["rows"]
    doubted, theirs_doubted = stored.get("caution", {}), found.get("caution", {})
    if len(stored["rows"]) == len(theirs) == 1:  # the row of a single model may have any name
        theirs = dict(zip(stored["rows"], theirs.values(), strict=True))
        theirs_doubted = dict(zip(stored["rows"], theirs_doubted.values(), strict=False))
    if missing := stored["rows"].keys() - theirs.keys():
        return [*said, f"no rows {sorted(missing)} among {sorted(theirs)}"]
    for label, row in stored["rows"].items():
        facts = found["attrs"] | theirs[label]
        unit = unit_of(row)
        doubts = theirs_doubted.get(label, "")
        if not level and (lost := flags_of(doubted.get(label, "")) - flags_of(doubts)):
            said.append(f"{label}: no caution {lost}")
        for name, wanted in row.items():
            size = unit if name in IN_UNITS and unit is not None else abs(wanted)
            moved = level if name in moving else 0.0
            if name not in facts:
                said.append(f"{label}: no {name}")
            elif not close(wanted, facts[name], tolerance * size, moved):
                said.append(f"{label}: {name} {facts[name]!r}, and not {wanted!r}")
    return said


def flags_of(caution):
    """The labels of a caution, or its bits where it is a number."""
    if caution.isdigit():
        return {at for at, bit in enumerate(f"{int(caution):b}"[::-1]) if bit == "1"}
    return set(caution.split(", ")) - {""}


def outcome_of(answer):
    return f"raises {answer['refused']}" if "refused" in answer else "answers"


def unit_of(row):
    """The width of the interval; the standard error where one side is open."""
    for unit in (row.get("upper", math.nan) - row.get("lower", math.nan), row.get("se", math.nan)):
        if math.isfinite(unit):
            return unit
    return None


def close(wanted, found, allowed, moved):
    """Whether a number is the stored one, or has moved as it must."""
    if isinstance(found, str):
        return False
    if isinstance(wanted, int):
        return found == wanted
    if not math.isfinite(wanted):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    if moved:  # there the number itself is rounded, and so is the expected one
        allowed += 2 * np.spacing(moved)
    return abs(found - (wanted + moved)) <= allowed


# --- signatures -----------------------------------------------------------------------------------

MODULES = ("datasets", "plans", "plot")


def signature_of(function):
    """Names, kinds and defaults of the parameters."""
    return [
        [
            parameter.name,
            parameter.kind.name,
            "" if parameter.default is parameter.empty else repr(parameter.default),
        ]
        for parameter in inspect.signature(function).parameters.values()
    ]


def callables_of(holder, names):
    return {name: signature_of(getattr(holder, name)) for name in names
            if inspect.isroutine(getattr(holder, name))}  # fmt: skip


def public_names(holder):
    return [name for name in dir(holder) if not name.startswith("_")]


def accessors():
    """The accessor of each container."""
    log = log_named("k-fold")
    array = by_point(log)
    return {
        kind: thing.cvci
        for kind, thing in (
            ("Series", log["a"]), ("DataFrame", log), ("DataArray", array),
            ("Dataset", as_dataset(array)),
        )
    }  # fmt: skip


@cache
def signatures():
    """All public signatures."""
    found = {"cvstats": callables_of(cvstats, cvstats.__all__)}
    own = ("of_log", "save", "load")
    shared = [name for name in cvstats.__all__ if hasattr(cvstats.Moments, name)]
    found["Moments"] = callables_of(cvstats.Moments, [*own, *shared])
    for name in MODULES:
        module = getattr(cvstats, name)
        found[name] = callables_of(module, module.__all__)
    for kind, accessor in accessors().items():
        found[f"{kind}.cvci"] = callables_of(accessor, public_names(accessor))
        found[f"{kind}.cvci.plot"] = callables_of(accessor.plot, public_names(accessor.plot))
    return found


# --- the file -------------------------------------------------------------------------------------


def calls():
    """All pairs of a case and a container.

    Every function, and every log, is in all containers at least once.
    """
    known, found = set(), []
    for name, case in CASES.items():
        boxes, own = case.containers or FOR_VARIANTS, {case.function, f"of {case.log}"}
        other = case.containers or case.function in ("interval", "methods")
        if case.everywhere or (own - known and not other):
            boxes = CONTAINERS
            known |= own
        found += [(name, container) for container in boxes if applies(case, container)]
    return found


def far_calls():
    """The pairs of which the answer at a far level follows from the stored one."""
    return [
        (name, container)
        for name, container in calls()
        if CASES[name].far and container in AT_FAR_LEVEL
    ]


def write(*, anew):
    """Store the answers that are new, or all; of the others only the cautions."""
    stored, answers = read(), {name: {} for name in CASES}
    for name, container in calls():
        known = {} if anew else stored["answers"].get(name, {}).get(container, {})
        kept = {part: value for part, value in known.items() if part != "caution"}
        answers[name][container] = answer(CASES[name], container) | kept
    stored = {
        "logs": {name: digest(log_named(name)) for name in LOGS},
        "signatures": signatures(),
        "answers": answers,
    }
    text = json.dumps(stored, indent=0, ensure_ascii=False)
    PATH.write_bytes(gzip.compress(text.encode(), mtime=0))


def read():
    return json.loads(gzip.decompress(PATH.read_bytes()))


if __name__ == "__main__":
    write(anew="--all" in sys.argv)
