"""One log, many roads: every method gives one answer, whatever holds the log and in what order.

A method is covered by its file alone: methods and the logs they take are found by the registry.
"""

from __future__ import annotations

import inspect
import re

import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from strategies import dense, listed_coords, stacked

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import list_methods

GIVEN = {
    "margin": 0.5, "effect": 0.5, "rng": 0, "n_draws": 199, "no_information": 1.0,
    "train_size": 20, "correction": "632", "independent": "dataset",
}  # fmt: skip
"""Options that a log cannot hold, or that make a draw the same one."""

RECORDS = {method.name: method for method in list_methods() if method.name != "difference"}


def options_of(name):
    """The options to try: what must be given, and then what some methods need besides."""
    known = inspect.signature(getattr(cvstats, name)).parameters
    must = {key: GIVEN[key] for key in ("margin", "effect", "rng", "n_draws") if key in known}
    if "by" in known and known["by"].default is inspect.Parameter.empty:
        must["by"] = "source"
    yield must
    for key in ("no_information", "train_size", "correction", "independent"):
        if key in known:
            yield {**must, key: GIVEN[key]}
    yield {**must, **{key: GIVEN[key] for key in ("no_information", "train_size") if key in known}}


def find_case(name):
    """The first standard log that a method takes, and the options that it needs there."""
    for log in map(golden.log_named, golden.LOGS):
        for options in options_of(name):
            try:
                getattr(cvstats, name)(log, **options)
            except LogError:
                continue
            return log, options
    raise AssertionError(f"no standard log is one for {name}: add one to tests/golden.py")


CASES = {name: find_case(name) for name in RECORDS}


def turned(array):
    return array.transpose(*reversed(array.dims))


def shuffled(log, seed=5):
    return log.sample(frac=1.0, random_state=seed)


def mixed(array):
    """The same array with every dimension in another order of its labels."""
    draw = np.random.default_rng(6)
    return array.isel({dim: draw.permutation(size) for dim, size in array.sizes.items()})


ROADS = {
    "shuffled": lambda log: shuffled(log).reorder_levels(log.index.names[::-1]),
    "transposed": lambda log: turned(mixed(golden.by_point(log))),
    "stacked": stacked,
    "coordinates": lambda log: listed_coords(shuffled(log)),
    "dense": lambda log: turned(dense(log)),
    "lazy": lambda log: turned(golden.by_point(log).chunk(point=7, model=1)),
    "streamed": lambda log: cvstats.Moments.of_log(shuffled(log), pairs=True),
    "drop": lambda log: log,
    "array, drop": golden.by_point,
}
KEYS = ("study", "dataset", "source", "model", "other")
CELLS_ONLY = {
    "power": (
        "power_lower",
        "power_upper",
        "points_needed_lower",
        "points_needed_upper",
        "caution",
    ),
    "replace_one": ("caution",),
    "conservative_z": ("n_points",),
}
"""What needs losses one by one, and is not known where there are only cells."""


UNDRAWN = {"case_bootstrap": ("caution",)}
"""Points that were not drawn are NaN in an array, and its losses are not looked at for doubts."""


def table_of(result):
    """A result as a table with a row for each model or pair, found by its labels."""
    attrs = dict(result.attrs)
    if isinstance(result, xr.Dataset):
        if "caution" in result:
            result = result.assign(caution=cvstats.cautions(result))
        result = result.expand_dims("row").to_dataframe().reset_index()
    elif isinstance(result, pd.Series):
        result = result.to_frame().T.rename_axis("model").reset_index()
    else:
        result = result.reset_index()
    keys = [key for key in KEYS if key in result]
    result = result.drop(columns=["row", "pair", "index"], errors="ignore")
    table = result.set_index(keys) if keys else result
    for name, value in attrs.items():
        if name.startswith("n_") and name not in table:
            table[name] = value
    return table.sort_index()


def assert_one_answer(found, wanted, without=()):
    found, wanted = table_of(found), table_of(wanted).drop(columns=list(without), errors="ignore")
    assert list(found.index) == list(wanted.index)
    for name in wanted:
        ours, theirs = found[name].to_numpy(), wanted[name].to_numpy()
        if wanted[name].dtype.kind not in "fiu":
            assert ours.tolist() == theirs.tolist(), name
            continue
        size = np.max(np.abs(theirs), initial=1e-3, where=np.isfinite(theirs.astype(float)))
        np.testing.assert_allclose(
            ours.astype(float), theirs.astype(float), rtol=1e-9, atol=1e-9 * size, err_msg=name
        )


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", RECORDS)
def test_one_answer_by_every_road(name, road):
    log, options = CASES[name]
    ask, cells = getattr(cvstats, name), road in ("lazy", "streamed")
    wanted = ask(log, **options)
    more = {"missing": "drop"} if road.endswith("drop") else {}
    try:
        found = ask(ROADS[road](log), **options, **more)
    except LogError as error:
        if not cells or not REFUSED.search(str(error)):
            raise
        return
    found = found.compute() if isinstance(found, xr.Dataset) else found
    if more:
        made = ROADS[road](log)
        gaps = 0
        if isinstance(made, xr.DataArray) and "sample" not in made.dims:  # a dense table else
            gaps = made.isnull().any("model").sum().item()
        assert found.attrs.pop("n_dropped") == gaps
    hidden = CELLS_ONLY if cells else UNDRAWN if road in ("transposed", "array, drop") else {}
    assert_one_answer(found, wanted, hidden.get(name, ()))


REFUSED = re.compile(
    "one by one|bootstrap log|moments|the same evaluation appears twice|which model is the best",
    re.I,
)
"""How what has only cells refuses: in words."""

GROUPED = [name for name in RECORDS if "by" in inspect.signature(getattr(cvstats, name)).parameters
           and "by" not in CASES[name][1] and RECORDS[name].is_interval]  # fmt: skip


@pytest.mark.parametrize("name", GROUPED)
def test_one_answer_for_each_part(name):
    log, options = CASES[name]
    ask = getattr(cvstats, name)
    per = "per" if "per" in inspect.signature(ask).parameters else "by"
    both = pd.concat({"x": log, "y": shuffled(log)}, names=["study"])
    both.attrs = log.attrs
    table = ask(both, **options, **{per: "study"})
    wanted = ask(log, **options)
    for study in "xy":
        found = table.xs(study, level="study")
        found.attrs = {**table.attrs}
        assert_one_answer(found, wanted)


TWO_LOGS = [
    name
    for name, record in RECORDS.items()
    if record.models == 2 and "other" in inspect.signature(getattr(cvstats, name)).parameters
]
SIDES = {
    "frames": ("shuffled", lambda log: log),
    "frames, the other way": (lambda log: log, "shuffled"),
    "arrays": ("transposed", golden.by_point),
    "arrays, the other way": (golden.by_point, "transposed"),
    "stacked": (stacked, lambda log: stacked(shuffled(log))),
    "coordinates": ("coordinates", listed_coords),
    "dense": (dense, "dense"),
    "lazy": ("lazy", golden.by_point),
    "lazy, the other way": ("transposed", "lazy"),
}


@pytest.mark.parametrize("name", TWO_LOGS)
def test_one_answer_whatever_the_order_of_either_log(name):
    log, options = CASES[name]
    ask = getattr(cvstats, name)
    pair = list(log.columns[:2])
    wanted = table_of(ask(log[pair], **options)).reset_index(drop=True)
    for sides in SIDES.values():
        logs = [ROADS.get(side, side)(log) for side in sides]
        one, two = (
            each[model] if isinstance(each, pd.DataFrame) else each.sel(model=model, drop=True)
            for each, model in zip(logs, pair, strict=True)
        )
        try:
            found = ask(one, two, **options)
        except LogError as error:
            if "lazy" not in sides or not REFUSED.search(str(error)):
                raise
            continue
        found = found.compute() if isinstance(found, xr.Dataset) else found
        assert_one_answer(
            table_of(found).reset_index(drop=True), wanted,
            CELLS_ONLY.get(name, ()) if "lazy" in sides else (),
        )  # fmt: skip
