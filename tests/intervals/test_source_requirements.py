"""Logs whose sources cannot answer: what is said, and what it says to type."""

import pandas as pd
import pytest
from calls import refusal, refuses
from grouped_logs import log_of, random_rows
from rows import only_row

import cvstats

ROWS = random_rows((4, 4, 4), 1)
NO_SOURCES = log_of([row._replace(point=f"{row.source}{row.point}") for row in ROWS],
                    ("fold", "point"))  # fmt: skip
K_FOLD = [row._replace(fold=row.point % 2) for row in ROWS]
PAIRS = [row._replace(fold=row.fold // 2) for row in ROWS]
WITH_FOLD = ("fold", "source", "point")

OUT_OF_SOURCE = {
    "no sources": (
        lambda: NO_SOURCES,
        "out_of_source needs a log that leaves one source out at a time (level 'source', and "
        "either no level 'fold' or one source in each fold); the log has no level 'source'. Add "
        "the group of each point to the index: cvstats.as_log(frame, source='subject'). Leave one "
        "source out at a time: cvstats.plans.leave_one_source_out creates such a log.",
    ),
    "one source": (
        lambda: log_of(ROWS[:4]),
        "the log has only one source, 's0', which does not show how sources differ. Expected "
        "at least two, preferably thirty or more; cvstats.plans.leave_one_source_out creates "
        "such a log.",
    ),
    "crossed": (
        lambda: log_of(K_FOLD, WITH_FOLD),
        "source 's0' occurs in 2 folds (and 2 more like it), so models were tested on "
        "a source that they had been trained on. Leave one source out at a time "
        "(cvstats.plans.leave_one_source_out creates such a log), or use wald or clustered for "
        "these sources.",
    ),
    "several in a fold": (
        lambda: log_of(PAIRS, WITH_FOLD),
        "fold 0 tests 2 sources ('s0', 's1'). Expected one source in each fold; "
        "cvstats.plans.leave_one_source_out creates such a log. For folds of whole sources, use "
        "clustered (points of new sources) or wald (the models trained here).",
    ),
    "other points in each repetition": (
        lambda: log_of(random_rows((3, 3), 1, repetitions=2)).drop((1, "s0", 0)),
        "some repetitions of this log test only 5 of the 6 points",
    ),
    "several data sets": (
        lambda: pd.concat({0: log_of(ROWS), 1: log_of(ROWS)}, names=["sample"]),
        "this is a log of several resampled data sets (level 'sample')",
    ),
}


@pytest.mark.parametrize("name", OUT_OF_SOURCE)
@pytest.mark.parametrize("function", [cvstats.out_of_source, cvstats.source_estimators])
def test_no_source_was_left_out(name, function):
    make, words = OUT_OF_SOURCE[name]
    said = refusal(function, make()).replace("source_estimators", "out_of_source")
    assert words in said


@pytest.mark.parametrize("call", [cvstats.clustered, cvstats.heterogeneity])
def test_clusters_that_share_points(call):
    rows = random_rows((3, 4), 2, repetitions=2)
    moved = [row._replace(fold=(row.fold + row.repetition * row.point) % 2) for row in rows]
    log = log_of(moved, ("repetition", "fold", "source", "point"))
    refuses(r"share no point, but the point at repetition=.*too", call, log, by="fold")
    refuses(r"one label of .* per point in all repetitions", call, log, by="repetition")
    nameless = log.droplevel("point")
    refuses("no level 'point'", call, nameless)


def test_groups_without_a_variance():
    log = log_of(random_rows((1, 4, 3), 3))
    with pytest.raises(
        cvstats.LogError,
        match=r"1 group has only one point, so its .*: source 's0'\. Drop it, .*variance='pooled'",
    ):
        cvstats.heterogeneity(log)
    assert cvstats.heterogeneity(log, variance="pooled").attrs["n_groups"] == 3
    twice = log_of(random_rows((1, 1, 2), 3))
    assert cvstats.heterogeneity(twice, variance="pooled")["q"].notna().all()
    log = log_of(ROWS)
    log[log.index.get_level_values("source") == "s1"] = 0.0
    refuses(r"all losses of source 's1' are equal", cvstats.heterogeneity, log)
    assert only_row(cvstats.heterogeneity(log, variance="pooled"))["tau_upper"] > 0
    refuses("all groups have zero variance", cvstats.heterogeneity, 0 * log, variance="pooled")
    lone = log.groupby(level="source").head(1)
    refuses("every group has one point", cvstats.heterogeneity, lone, variance="pooled")


@pytest.mark.parametrize(
    ("call", "options", "words"),
    [
        (cvstats.clustered, {"per": "source"}, "leaves one cluster in each part"),
        (cvstats.source_estimators, {"other": "s0"}, "other= names the second source of a pair"),
        (cvstats.source_estimators, {"source": "s0", "other": "s0"}, "are both 's0'"),
    ],
)
def test_wrong_options(call, options, words):
    refuses(words, call, log_of(ROWS), **options)
