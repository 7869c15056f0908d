"""What all methods for sources and other groups share: containers, offsets, masked cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from grouped_logs import LIMITS, log_of, random_rows
from rows import only_row
from strategies import ARRAYS

import cvstats

ALL = {
    "out_of_source": cvstats.out_of_source,
    "these_sources": lambda log: cvstats.out_of_source(log, target="these_sources"),
    "clustered": cvstats.clustered,
    "CR3": lambda log: cvstats.clustered(log, correction="CR3"),
    "heterogeneity": cvstats.heterogeneity,
    "source_estimators": cvstats.source_estimators,
}


def two_models(sizes=(4, 3, 6)):
    """Two models on the same points, whose names are unique in the log."""
    rows = [row._replace(point=f"{row.source}{row.point}") for row in random_rows(sizes, 15)]
    log = log_of(rows, levels=("source", "point"))
    return pd.DataFrame({"a": log, "b": np.sqrt(abs(log)) + np.arange(len(log)) % 3})


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ARRAYS)
def test_all_containers_agree(name, kind):
    frame = two_models()
    table = ALL[name](frame)
    found = ALL[name](ARRAYS[kind](frame))
    for model in "ab":
        single = ALL[name](frame[model])
        for column in table.columns.drop("caution"):
            assert only_row(single)[column] == table.loc[model, column]
            theirs = float(found[column].sel(model=model))
            assert theirs == pytest.approx(table.loc[model, column], rel=1e-12), column


@pytest.mark.parametrize("method", ["out_of_source", "clustered"])
def test_differences_can_be_compared(method):
    frame = two_models()
    table = frame.cvci.compare(method=method).iloc[0]
    single = getattr(cvstats, method)(frame["a"] - frame["b"])
    assert only_row(table)["difference"] == pytest.approx(only_row(single)["estimate"], rel=1e-13)
    assert only_row(table)["lower"] == pytest.approx(only_row(single)["lower"], rel=1e-13)
    assert only_row(table)["df"] == only_row(single)["df"]


def test_an_offset_changes_nothing_but_the_estimate():
    log = log_of(random_rows((4, 3, 6), 17))
    for name, function in ALL.items():
        near, far = function(log), function(log + 2.0**30)
        for column in only_row(near).index.drop(
            ["caution", *(n for n in only_row(near).index if n in LIMITS)]
        ):
            tolerance = 1e-5 if column == "p_value" else 1e-6
            assert only_row(far)[column] == pytest.approx(only_row(near)[column], rel=tolerance), (
                name,
                column,
            )
        if "se" in only_row(near):
            assert only_row(far)["se"] == pytest.approx(only_row(near)["se"], rel=1e-6)


def test_a_masked_cell_stays_empty():
    array = ARRAYS["dense"](two_models()).expand_dims(lat=[1, 2])
    array = array.where((array["model"] != "b") | (array["lat"] != 2))
    for name, function in ALL.items():
        found = function(array)
        first = next(iter(found.data_vars))
        assert np.isnan(found[first].sel(model="b", lat=2)), name
        assert int(found["caution"].sel(model="b", lat=2)) == 1, name
        assert not np.isnan(found[first].sel(model="b", lat=1)), name


def test_logs_below_each_other_have_intervals_of_their_own():
    """A level may tell logs of the same sources and points apart, as in every other method."""
    logs = {"u": log_of(random_rows((4, 3, 6), 3)), "v": log_of(random_rows((4, 3, 6), 4))}
    table = cvstats.clustered(pd.concat(logs, names=["region"]), per="region")
    for label, log in logs.items():
        single = cvstats.clustered(log)
        for name in LIMITS:
            assert table.loc[label, name] == pytest.approx(only_row(single)[name], rel=1e-13)
    twice = pd.concat([logs["u"], logs["u"]])
    with pytest.raises(cvstats.LogError, match="appears twice"):
        cvstats.clustered(pd.concat({"u": twice}, names=["region"]), per="region")
