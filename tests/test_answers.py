"""One answer of a method, whatever holds its log: each property on all methods of `golden`.

A new method is covered by its rows in `golden.cases`.
"""

from copy import deepcopy
from functools import cache
from itertools import cycle

import golden
import numpy as np
import pandas as pd
import pytest
from golden import CASES, IN_UNITS, by_point, dense, log_named, mixed, normalized, shuffled
from strategies import listed_coords
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import list_methods

FIRST = {}
for _name, _case in CASES.items():
    if _case.function != "methods" and _case.containers != ("frame",):
        key = _name if _case.everywhere or _case.apart else (_case.function, _case.log)
        FIRST.setdefault(key, _name)
FIRST = {name: CASES[name] for name in FIRST.values()}
"""One call of each function on each of its logs, and those that are computed in another way.

Calls that are stored for a frame alone are other options of these.
"""

STORED = golden.read()["answers"]

PARTITIONS = (
    "k-fold", "repeated", "binary", "leave-one-out", "one set", "seeds", "binary set",
    "spread sources", "whole sources", "repeated sources", "by source",
)  # fmt: skip
COUNT_ALL = {"rope", "corrected_t", "summary"}
"""They count the points that models were trained on, those without a loss among them."""


def function_of(name, *_):
    return CASES[name].function


def ask(case, *logs, without=(), **more):
    options = {key: value for key, value in case.options.items() if key not in without} | more
    try:
        return normalized(golden.computed(golden.call(case, *logs, options=options)))
    except LogError:
        return {"refused": "LogError"}


def stored(name, container):
    """The stored answer, which `test_golden.py` computes; it is computed here if there is none."""
    found = STORED[name].get(container) or golden.answer(CASES[name], container)
    return deepcopy(found)


@cache
def remembered(name):
    return ask(FIRST[name], log_named(FIRST[name].log))


def ask_frame(name):
    """The answer to the log as it is, which most properties are compared to."""
    return deepcopy(remembered(name))


def assert_same(found, wanted, tolerance=1e-9):
    said = golden.differences(wanted, found, tolerance=tolerance)
    assert not said


def test_every_method_has_a_case():
    functions = {case.function for case in CASES.values()}
    assert {method.name for method in list_methods()} <= functions


def with_other_levels(log):
    """The rows and the levels in another order."""
    log = shuffled(log)
    return log.reorder_levels(log.index.names[::-1]) if log.index.nlevels > 1 else log


def with_texts(log):
    """The labels of folds, repetitions and points as texts of the same order."""
    for level in {"repetition", "fold", "point"}.intersection(log.index.names):
        log = log.rename(lambda label: f"é{label:04d}", level=level)
    return log


def with_unused_labels(log):
    """The log sliced out of a longer one, whose labels stay in its index."""
    extra = log.iloc[:1].rename(lambda label: 999, level="point")
    return pd.concat([extra, log]).iloc[1:]


def shows_labels(case):
    """Whether an answer depends on what its labels are: times, and folds that are listed."""
    return case.function in ("ordered", "moments") or case.log not in PARTITIONS


@together(FIRST, by=function_of)
def test_order_and_labels_change_nothing(name):
    case = FIRST[name]
    log = log_named(case.log)
    log = log if shows_labels(case) else with_texts(log)
    assert_same(ask(case, with_other_levels(with_unused_labels(log))), ask_frame(name))


ARRAYS = ("array by point", "dense array", "stacked array", "dataset")
LAZY_ARRAYS = ("dask by point", "dask by model", "dense dask array")
MOMENTS = ("dask frame", "scan_dask", "moments")


def as_in_an_array(frame, array):
    """The answer for a frame, as an array says it."""
    if "refused" in frame:
        return frame, array
    frame.pop("caution", None)  # these are bits in an array
    frame["attrs"].pop("n_dropped", None)  # of a table with gaps
    for row in frame["rows"].values():
        row.pop("n_folds", None)  # those of a label are those in its first repetition
    if "rows" in array and any(label.startswith("pair=") for label in array["rows"]):
        array["rows"] = dict(zip(frame["rows"], array["rows"].values(), strict=True))
    return frame, array


IN_ANOTHER_ORDER = {
    "array": lambda log: mixed(by_point(log)),
    "dense array": lambda log: mixed(dense(log)),
    "coordinates": lambda log: listed_coords(shuffled(log)),
}


@together(zip(FIRST, cycle(IN_ANOTHER_ORDER), strict=False), by=function_of)
def test_an_array_says_what_a_frame_says_and_stays_as_it_was(name, form):
    case = FIRST[name]
    if not golden.applies(case, form):
        return
    array = IN_ANOTHER_ORDER[form](log_named(case.log))
    before = array.copy(deep=True)
    wanted, found = as_in_an_array(ask_frame(name), ask(case, array))
    if case.log not in OTHERWISE_IN_ARRAYS:
        assert_same(found, wanted)
    assert array.equals(before)
    assert array.attrs == before.attrs


OTHERWISE_IN_ARRAYS = ("splits", "case bootstrap", "independent sources")
"""There NaN in an array may be an evaluation that was not made, or one that is missing."""


@pytest.mark.parametrize("container", ARRAYS)
def test_stored_answers_of_arrays_are_those_of_frames(container):
    names = [name for name in CASES if container in STORED[name]]
    assert len(names) > 40
    for name in names:
        if CASES[name].log not in OTHERWISE_IN_ARRAYS:
            wanted, found = as_in_an_array(stored(name, "frame"), stored(name, container))
            assert_same(found, wanted)


@pytest.mark.parametrize("container", [*LAZY_ARRAYS, *MOMENTS])
def test_stored_answers_of_what_is_not_in_memory_are_those_of_frames(container):
    """Some methods are refused there."""
    names = [name for name in CASES if container in STORED[name]
             and CASES[name].function not in ("methods", "power")
             and "refused" not in STORED[name][container]]  # fmt: skip
    assert len(names) > 24
    for name in names:
        wanted, found = as_in_an_array(stored(name, "frame"), stored(name, container))
        if container in LAZY_ARRAYS:
            wanted["attrs"] = {}  # counts are in the rows
        assert_same(found, wanted)


@together(FIRST, by=function_of)
def test_the_log_is_left_as_it_was(name):
    """All tests here ask of the same frame."""
    ask_frame(name)
    log, before = log_named(FIRST[name].log), as_made(FIRST[name].log)
    assert log.equals(before)
    assert log.index.equals(before.index)
    assert log.index.names == before.index.names
    assert log.attrs == before.attrs


@cache
def as_made(name):
    return golden.LOGS[name]()


@together(
    [name for name, case in FIRST.items() if case.far and case.function != "power"], by=function_of
)
def test_another_unit(name):
    case = FIRST[name]
    margin = case.options.get("margin")
    more = {} if margin is None else {"margin": UNIT * np.asarray(margin)}
    more = {key: value.tolist() for key, value in more.items()}
    log = log_named(case.log)
    wanted, found = ask_frame(name), ask(case, UNIT * log, **more)
    for row in wanted.get("rows", {}).values():
        row.update({name: UNIT * row[name] for name in row if name in IN_UNITS})
        for moved in set(row) - IN_UNITS - SHARES:
            del row[moved]
    assert_same(found, wanted)


UNIT = 2.0**-70
"""Small enough that no constant of the code is a loss."""

SHARES = {"statistic", "p_value", "p_adjusted", "df", "i2", "rank", "in_set", "n_points"}


def rows_by_label(parts, level):
    """The answers for single parts, as one answer with a row for each label."""
    for answer in parts.values():
        if "refused" in answer:
            return answer
    rows = {}
    for label, answer in parts.items():
        counts = {key: n for key, n in answer["attrs"].items() if key in ("n_points", "n_folds")}
        for row, numbers in answer["rows"].items():
            labels = [*row.split(", "), f"{level}={label}"]
            rows[", ".join(sorted(filter(None, labels)))] = {**counts, **numbers}
    return {"rows": rows, "attrs": {}}


@together([name for name, box in golden.calls() if box == "groups"
           and "independent" not in CASES[name].options], by=function_of)  # fmt: skip
def test_logs_below_each_other_are_answered_one_by_one(name):
    case = CASES[name]
    second = golden.two_logs(log_named(case.log)).xs("y", level="study")
    parts = {"x": stored(name, "frame"), "y": ask(case, second)}
    assert_same(stored(name, "groups"), rows_by_label(parts, "study"))


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.options.get("by") == "source"
                                  and c.function not in ("moments", "corrected_t")
                                  and c.containers != ("frame",)])  # fmt: skip
def test_labels_are_answered_one_by_one(name):
    case = CASES[name]
    log = log_named(case.log)
    sources = log.index.get_level_values("source")
    parts = {label: ask(case, log[sources == label], without=["by"]) for label in sources.unique()}
    assert_same(ask(case, log), rows_by_label(parts, "source"))


DROPS = [name for name, case in FIRST.items()
         if golden.applies(case, "gaps") and case.log != "splits"]  # fmt: skip


@together(DROPS, by=function_of)
def test_nothing_is_dropped_where_nothing_is_missing(name):
    case = FIRST[name]
    log = log_named(case.log)
    assert_same(ask(case, log, missing="drop"), ask_frame(name))


@together(
    [n for n in DROPS if FIRST[n].log in PARTITIONS and FIRST[n].function not in COUNT_ALL],
    by=function_of,
)
def test_a_point_without_a_loss_is_left_out(name):
    """Of all models and in all repetitions."""
    case = FIRST[name]
    log = log_named(case.log)
    gaps = golden.with_gaps(log)
    levels = [level for level in log.index.names if level in ("source", "point")]
    points = pd.MultiIndex.from_frame(log.index.to_frame()[levels])
    rest = log[~points.isin(points[gaps.isna().any(axis=1)])]
    wanted, found = ask(case, rest), stored(name, "gaps")
    assert found["attrs"]["n_dropped"] == len(log) - len(rest)
    assert_same(found, wanted)


@together(zip(DROPS, cycle([10, 20, 30]), strict=False), by=function_of)
def test_each_cell_of_a_grid_has_gaps_of_its_own(name, lat):
    case = FIRST[name]
    log = log_named(case.log)
    grid = golden.on_grid(log, gaps=True)
    found = stored(name, "grid with gaps")
    lazy = STORED[name].get("dask grid with gaps", {"refused": "LogError"})
    if "refused" in found:
        assert "refused" in lazy
        return
    alone = ask(case, grid.sel(lat=lat, drop=True), missing="drop")
    for row in alone["rows"].values():
        row.pop("p_adjusted", None)  # over all cells
    alone = by_cell(alone, lat)
    assert_same(found, alone)
    if "refused" not in lazy:
        assert_same(lazy, alone)


def by_cell(answer, lat):
    return rows_by_label({lat: {**answer, "attrs": {}}}, "lat")


@together(FIRST, by=function_of)
def test_any_batches_in_any_order(name):
    case = FIRST[name]
    log = log_named(case.log)
    draw = np.random.default_rng(len(name))
    options = golden.moments_options(case)
    cuts = np.sort(draw.choice(np.arange(1, len(log)), 3, replace=False))
    wanted = stored(name, "moments")
    if "refused" in wanted:
        return
    parts = [cvstats.Moments.of_log(log.iloc[rows], **options)
             for rows in np.split(draw.permutation(len(log)), cuts)]  # fmt: skip
    wanted["attrs"].pop("n_batches")
    assert_same(ask(case, sum(parts[::-1])), wanted)


@together(FIRST, by=function_of)
def test_any_chunks(name):
    case = FIRST[name]
    array = by_point(log_named(case.log))
    draw = np.random.default_rng(len(name))
    sizes = {dim: int(draw.integers(1 + size // 3, size + 1)) for dim, size in array.sizes.items()}
    lazy = array.transpose(*reversed(array.dims)).chunk(sizes)
    assert_same(ask(case, lazy), stored(name, "dask by point"))
