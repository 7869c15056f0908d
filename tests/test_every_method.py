"""What holds for every interval, whichever there are: a new method is covered by its file alone."""

import inspect
import re

import golden
import pandas as pd
import xarray as xr
from calls import refuses
from rows import only_row
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import find_method, interval_names, list_methods

LIMITS = ["estimate", "lower", "upper", "se"]
LOGS = {name: golden.log_named(name) for name in golden.LOGS}
MADE_OF = {"no_information": 1.0, "train_size": 20}
"""Numbers that a log cannot hold, by the option that takes them."""


def first_log(name):
    """The first standard log that a method takes, and the options that it needs there."""
    known = find_method(name).defaults
    needed = {key: value for key, value in MADE_OF.items() if key in known}
    for log in LOGS.values():
        for options in ({}, needed, {"correction": "632"} if "correction" in known else {}):
            try:
                getattr(cvstats, name)(log, **options)
            except LogError:
                continue
            return log, options
    raise AssertionError(f"no standard log is one for {name}: add one to tests/golden.py")


CASES = {name: first_log(name) for name in interval_names()}


def compute(name, log, **more):
    return getattr(cvstats, name)(log, **CASES[name][1], **more)


@together(interval_names())
def test_the_result_explains_itself(name):
    log, _ = CASES[name]
    before = log.copy()
    result = compute(name, log)
    assert isinstance(result, pd.DataFrame)
    assert list(result.columns[:4]) == LIMITS
    assert result.columns[-1] == "caution"
    assert list(result.index) == list(log.columns)
    record = find_method(name)
    for fact in ("target", "guarantee", "reference", "method", "alpha", "cautions"):
        assert fact in result.attrs, fact
    assert result.attrs["method"] == record.name == name
    pd.testing.assert_frame_equal(log, before)


@together(interval_names())
def test_it_is_found_on_every_road(name):
    log, options = CASES[name]
    function = getattr(cvstats, name)
    method = getattr(log.cvci, name)
    assert (
        list(inspect.signature(method).parameters)
        == list(inspect.signature(function).parameters)[1:]
    )
    assert method.__doc__
    result = compute(name, log)
    pd.testing.assert_frame_equal(method(**options), result)
    assert name in cvstats.methods(log).index
    if not options:
        again = cvstats.interval(log, method=name)
        pd.testing.assert_frame_equal(again, result)
    if find_method(name).for_differences:
        table = cvstats.compare(log, method=name, options=options or None)
        gap = cvstats.difference(log)
        assert table.attrs["interval_method"] == name
        assert list(table.index) == list(gap.columns)
    elif name not in ("case_bootstrap",):
        refuses("method=", cvstats.compare, log, method=name)


def test_every_record_says_what_users_read():
    for method in list_methods():
        for fact in (method.needs, method.target, method.fits, method.reference):
            assert fact, method.name
        assert re.search(r"(doi:10\.|arXiv:|PMLR|JMLR)", method.reference), method.name
        assert method.function.__doc__, method.name
        assert method.name == method.function.__name__


@together(interval_names())
def test_alpha_is_an_error_rate(name):
    log, _ = CASES[name]
    refuses("alpha=95 is out of range", compute, name, log, alpha=95)
    narrow, wide = compute(name, log, alpha=0.3), compute(name, log, alpha=0.05)
    known = narrow["upper"].notna() & wide["upper"].notna()
    assert (narrow["upper"] <= wide["upper"])[known].all()
    assert only_row(wide.iloc[:1])["caution"] is not None
    assert isinstance(compute(name, golden.by_point(log)), xr.Dataset)
