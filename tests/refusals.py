"""What is refused, in which words: logs with a fault, calls, and the containers of both.

`tests/reference/refusals.json` holds the words of all `calls`, texts of `summary` and `report`
among them. `tests/test_refusals.py` makes the calls again and compares. To store the words anew,
after a change that is meant::

    python tests/refusals.py
"""

import html
import json
import re
from functools import cache, partial
from pathlib import Path
from unittest import mock

import dask
import golden
import numpy as np
import pandas as pd
import shown
from golden import by_point, k_fold, log_named
from plotted import draw_without_marks, write_without_marks

import cvstats

PATH = Path(__file__).parent / "reference" / "refusals.json"

# --- logs with one fault --------------------------------------------------------------------------


def with_loss(log, value, column=0, row=3):
    log = log.copy()
    log.iloc[row, column] = value
    return log


def with_label(log, level, label, row=4):
    """The log with one other label."""
    labels = log.index.to_frame(index=False)
    labels[level] = labels[level].astype(object)
    labels.loc[row, level] = label
    return log.set_axis(pd.MultiIndex.from_frame(labels))


def without_rows(log, *rows):
    return log.drop(index=log.index[list(rows)])


@cache
def maker(name):
    """What makes a log of `golden`, one for each."""
    return partial(log_named, name)


PLAIN, REPEATED, SOURCES = map(maker, ("k-fold", "repeated", "repeated sources"))

FAULTS = {
    "a loss is missing": lambda: with_loss(PLAIN(), np.nan),
    "losses of all models are missing": lambda: with_loss(PLAIN(), np.nan, column=slice(None)),
    "a loss of the last model is missing": lambda: with_loss(REPEATED(), np.nan, column=2),
    "a loss is infinite": lambda: with_loss(PLAIN(), np.inf, column=1),
    "losses are too large": lambda: with_loss(PLAIN(), 1e200),
    "a model has no losses": lambda: PLAIN().assign(b=np.nan),
    "no losses": lambda: PLAIN() * np.nan,
    "no rows": lambda: PLAIN().iloc[:0],
    "an evaluation twice": lambda: pd.concat([PLAIN(), PLAIN().iloc[[4, 7]]]),
    "a point in two folds": lambda: with_label(PLAIN(), "point", 9, 8),
    "a point in two folds of a repetition": lambda: with_label(REPEATED(), "point", 9, 8),
    "a row without a fold": lambda: with_label(PLAIN(), "fold", None),
    "a point is missing in a repetition": lambda: without_rows(REPEATED(), 5),
    "a fold is missing in a repetition": lambda: REPEATED().drop((1, 2)),
    "no points": lambda: REPEATED().droplevel("point"),
    "one fold": lambda: PLAIN().xs(0, level="fold", drop_level=False),
    "one fold for each point": partial(log_named, "leave-one-out"),
    "one point": lambda: PLAIN().iloc[:1],
    "random splits": partial(log_named, "splits"),
    "a source in two labels": lambda: with_label(SOURCES(), "source", None),
    "one source": lambda: SOURCES()[SOURCES().index.get_level_values("source") == "s1"],
    "sources of one point": lambda: k_fold(n=12, k=3, sources=12),
    "several logs": lambda: pd.concat({"x": PLAIN(), "y": PLAIN()}, names=["dataset"]),
    "unknown levels": lambda: PLAIN().rename_axis(["cv", "id"]),
    "one model": lambda: PLAIN()[["a"]],
}  # fmt: skip

OPTIONS = {
    "wald": {}, "naive": {"by": "source"}, "corrected_t": {"by": "fold"}, "cv_t": {},
    "clustered": {}, "quadratic": {}, "compare": {}, "interval": {}, "decompose": {},
    "heterogeneity": {}, "best_set": {"rng": 0, "n_draws": 100}, "moments": {"by": "source"},
}  # fmt: skip
"""The calls on every log with a fault, each as it is and with ``missing="drop"``."""

EVERYWHERE = ("no losses", "a model has no losses", "several logs", "an evaluation twice")
"""Faults of several parts of a table: which of them is found first is up to dask."""

OF_CHUNKS = ("wald", "corrected_t", "compare", "best_set", "moments")
"""The calls on lazy arrays, which take longest: one of each way to read them."""

CONTAINERS = ("frame", "array by point", "dense array", "dask by point", "moments", "scan_dask")

# --- calls with one fault -------------------------------------------------------------------------

BY = {
    "by a level that is not there": ("wald", "k-fold", {"by": "source"}),
    "by a level misspelt": ("wald", "spread sources", {"by": "sorce"}),
    "by the points": ("wald", "k-fold", {"by": "point"}),
    "by the folds": ("wald", "k-fold", {"by": "fold"}),
    "by the repetitions": ("wald", "repeated", {"by": "repetition"}),
    "by the models": ("wald", "k-fold", {"by": "model"}),
    "by two levels": ("wald", "spread sources", {"by": ["source", "fold"]}),
    "by nothing": ("naive", "k-fold", {"by": ""}),
    "by a number": ("cv_t", "k-fold", {"by": 3}),
    "by sources, two points in each": ("decompose", "whole sources", {"by": "source"}),
    "by sources, one fold in each": ("cv_t", "whole sources", {"by": "source"}),
    "by sources that are the folds": ("out_of_source", "by source", {"by": "source"}),
    "per the clusters": ("clustered", "spread sources", {"per": "source"}),
    "per a level that is not there": ("clustered", "spread sources", {"per": "dataset"}),
    "clusters that are not there": ("clustered", "k-fold", {}),
    "clusters of two levels": ("clustered", "spread sources", {"by": ["source", "fold", "x"]}),
    "clusters of points": ("clustered", "seeds", {"by": ("point", "repetition")}),
    "moments by a level that is not there": ("moments", "k-fold", {"by": "source"}),
    "blocks that are not there": ("friedman", "k-fold", {}),
    "sources that are not there": ("heterogeneity", "k-fold", {}),
    "a loss is no word": ("wald", "k-fold", {"missing": "ignore"}),
    "a reference that is not there": ("compare", "k-fold", {"reference": "z"}),
    "a method misspelt": ("compare", "k-fold", {"method": "corected_t"}),
    "an option misspelt": ("compare", "k-fold", {"options": {"varianse": "within-fold"}}),
    "a correction that is none": ("compare", "k-fold", {"adjust": "bonferroni"}),
    "alpha in percent": ("wald", "k-fold", {"alpha": 95}),
    "a mistake has two values": ("mcnemar", "k-fold", {}),
    "wilson of numbers": ("holdout", "one set", {"interval": "wilson"}),
    "a test set of folds": ("holdout", "k-fold", {}),
    "a partition of seeds": ("quadratic", "seeds", {}),
    "no inner folds": ("nested_cv", "k-fold", {}),
    "five of one": ("five_by_two", "repeated", {}),
    "halves of folds": ("conservative_z", "repeated", {}),
    "no samples": ("bootstrap_oob", "k-fold", {}),
    "no replaced points": ("replace_one", "repeated", {}),
    "no margin": ("equivalence", "k-fold", {"margin": -1.0}),
    "no training size": ("corrected_t", "splits", {"missing": "drop"}),
}  # fmt: skip

NEED_LOSSES = {
    "best_set": ("k-fold", {}),
    "answers": ("seeds", {}),
    "mcnemar": ("binary", {}),
    "cochran_q": ("binary", {}),
    "friedman": ("by source", {}),
    "nemenyi": ("by source", {}),
    "source_components": ("independent sources", {}),
    "winner": ("k-fold", {"rng": 0}),
    "ordered": ("one set", {}),
    "diagnose": ("k-fold", {}),
    "report": ("k-fold", {}),
    "bootstrap_oob": ("bootstrap", {}),
    "bootstrap_632": ("bootstrap", {"no_information": 1.0}),
    "case_bootstrap": ("case bootstrap", {}),
    "location_shifted": ("bootstrap", {"no_information": 1.0}),
    "two_stage": ("two-stage", {"correction": "632"}),
}
"""Calls that need the losses of all models, or all losses, at once; each is refused somewhere."""

# --- two logs -------------------------------------------------------------------------------------


def other_logs(log):
    """Pairs of logs that do not fit each other."""
    one, two = log[["a"]], log[["b"]]
    yield "fewer points", one, without_rows(two, 3, 5)
    yield "more points", without_rows(one, 3, 5), two
    yield "other points", one, two.rename(lambda label: label + 100, level="point")
    yield "points as texts", one, two.rename(str, level="point")
    yield "other folds", one, two.rename(lambda label: (label + 1) % 5, level="fold")
    yield "a fold of its own", one, with_label(two, "fold", 7)
    yield "no folds", one, two.droplevel("fold")
    yield "another level", one, pd.concat({"x": two}, names=["dataset"])
    yield "a loss is missing", one, with_loss(two, np.nan)
    yield "other losses are missing", with_loss(one, np.nan, row=4), with_loss(two, np.nan)
    yield "several models", one, log
    yield "models of other names", log, log.rename(columns={"c": "d"})
    yield "an evaluation twice", one, pd.concat([two, two.iloc[:1]])
    yield "two of one model", one, one
    yield "no rows", one, two.iloc[:0]


def other_arrays():
    """Pairs of arrays that do not fit each other."""
    array = golden.on_grid(log_named("k-fold"))
    one, two = array.sel(model="a", drop=True), array.sel(model="b", drop=True)
    yield "other places", one, two.assign_coords(lat=[1, 2, 3, 4])
    yield "fewer places", one, two.isel(lat=[0, 1])
    yield "no places", one, two.isel(lat=0, drop=True)
    yield "places named otherwise", one, two.rename(lat="latitude")
    yield "fewer points", one, two.isel(point=slice(3, None))
    yield "other folds", one, two.assign_coords(fold=("point", one["fold"].values[::-1]))
    yield "no folds", one, two.drop_vars("fold")
    yield "a gap in one", one, two.where((two["lat"] > 10) | (two["point"] != 3))


def in_chunks(log):
    """A lazy array, of a frame or of an array in memory."""
    array = by_point(log) if isinstance(log, pd.DataFrame) else log
    return array.chunk({dim: 25 if dim == "point" else 2 for dim in array.dims})


def pairs():
    """Name, container and logs of all pairs that do not fit."""
    for name, one, two in other_logs(log_named("k-fold")):
        for container, make in (("frame", None), ("array", by_point), ("dask", in_chunks)):
            yield f"two logs: {name}", container, make, one, two
    for name, one, two in other_arrays():
        for container, make in (("array", None), ("dask", in_chunks)):
            yield f"two grids: {name}", container, make, one, two


# --- calling --------------------------------------------------------------------------------------


def name_of(function, options):
    return ", ".join([function, *[f"{key}={value}" for key, value in options.items()]])


def words_of(call):
    """The words of a refusal, or those of a text; what has neither is answered."""
    try:
        with dask.config.set(scheduler="synchronous"):
            (result,) = dask.compute(call())
    except cvstats.LogError as error:
        return str(error)
    except Exception as error:
        return f"{FAILED} {type(error).__name__}"
    return result if isinstance(result, str) else ANSWERED


ANSWERED, FAILED = "answered", "fails with"
"""What is stored where nothing is said, and of what is not refused in our own words."""


BUILDS = {
    "frame": lambda log: log,
    "array by point": by_point,
    "dask frame": golden.rows_of,
    "dense array": golden.dense,
    "dask by point": in_chunks,
    "grid": golden.on_grid,
    "dask grid": golden.chunks_of_grid,
    "moments": lambda log: cvstats.Moments.of_log(log, pairs=True),
    "scan_dask": lambda log: cvstats.scan_dask(
        golden.rows_of(log), loss=list(log.columns), pairs=True
    ),
}


def ask(function, options, container, make):
    """Call a function on a log in one of the containers of `golden`."""
    log = built(container, make)
    if container == "scan_dask":
        return getattr(log, function)(**options)
    return getattr(cvstats, function)(log, **options)


@cache
def built(container, make):
    """One log in one container."""
    return BUILDS[container](make())


def ask_both(function, options, make, one, two):
    one, two = (make(log) if make else log for log in (one, two))
    return getattr(cvstats, function)(one, two, **options)


def fault_calls():
    """Every call on every log with a fault, in each container."""
    for fault, make in FAULTS.items():
        for container in CONTAINERS[: -1 if fault in EVERYWHERE else None]:
            for function, chosen in OPTIONS.items():
                if container == "dask by point" and function not in OF_CHUNKS:
                    continue
                for more in ({}, {"missing": "drop"}):
                    options = chosen | more
                    if not more or container not in ("moments", "scan_dask"):
                        yield (
                            (fault, container, name_of(function, options)),
                            partial(ask, function, options, container, make),
                        )


def option_calls():
    """Every call with a fault, on logs in each container."""
    for fault, (function, log, options) in BY.items():
        for container in (*CONTAINERS, "grid", "dask grid"):
            yield (
                (f"options: {fault}", container, function),
                partial(ask, function, options, container, maker(log)),
            )


def lazy_calls():
    """Every call that needs losses, where they are not at hand."""
    for function, (log, options) in NEED_LOSSES.items():
        others = () if function in ("diagnose", "report") else ("dask frame", "moments")
        for container in ("dask by point", *others):
            yield (
                (f"losses that are not at hand: {log}", container, function),
                partial(ask, function, options, container, maker(log)),
            )


def pair_calls():
    """Every function of two logs on pairs that do not fit."""
    for log, container, make, one, two in pairs():
        for function, options in (
            ("compare", {}), ("compare", {"missing": "drop"}), ("difference", {}), ("mcnemar", {}),
        ):  # fmt: skip
            yield (
                (log, container, name_of(function, options)),
                partial(ask_both, function, options, make, one, two),
            )


def text_calls():
    """What is said of logs without a fault, except what `shown` stores."""
    for name in golden.LOGS:
        log = log_named(name)
        yield (f"texts: {name}", "array by point", "summary"), partial(summary_of, by_point(log))
        if f"{name} log" not in (*shown.PAGED, *shown.DRAWN):
            yield (f"texts: {name}", "frame", "report"), partial(report_of, log)
    for name, make in REPORTED.items():
        yield (
            (f"texts: {name}", "as made", "report"),
            partial(report_of, make(), draw_without_marks),
        )


def measured(loss, source=False):
    """Losses of two classifiers."""
    rng = np.random.default_rng(9)
    levels = {"fold": np.arange(120) % 4, "point": np.arange(120)}
    if source:
        levels = {"fold": np.arange(120) // 6 % 4, "source": np.arange(120) // 6} | levels
    p = rng.random(120).clip(0.02, 0.98)
    table = pd.DataFrame(
        {**levels, "y": (rng.random(120) < p) * 1, "a": p, "b": (p + rng.random(120)) / 2}
    )
    if loss in ("accuracy", "f1"):
        table[["a", "b"]] = table[["a", "b"]].gt(0.5) * 1
    return cvstats.losses(table, "y", ["a", "b"], loss)


REPORTED = {
    **{f"{loss}": partial(measured, loss)
       for loss in ("accuracy", "f1", "auc", "brier", "calibration_slope")},
    "accuracy by source": partial(measured, "accuracy", source=True),
    "several metrics": lambda: measured(["auc", "brier"]).to_xarray(),
}  # fmt: skip
"""Further logs of reports: scores and metrics, some of which have no plot of their folds."""


def report_of(log, draw=write_without_marks):
    """The words of a report up to its call, and of each plot the height and the first tip."""
    with mock.patch("cvstats.reporting.page.draw_svg", draw):
        page = cvstats.report(log)
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    text = re.sub(r"<(svg|style|script).*?</\1>|<wbr>", "", page, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]+>", " ", text)).partition("The call was")[0]
    lines = [" ".join(line.split()) for line in words.splitlines() if line.strip()]
    for plot in plots:
        tips = re.findall(r'class="tip".*?<title>(.*?)</title>', plot, re.DOTALL)
        height = float(re.search(r'viewBox="[\d.]+ [\d.]+ [\d.]+ ([\d.]+)"', plot)[1])
        first = html.unescape("".join(tips[:1]))
        lines.append(f"plot about {height / 72:.1f} in high, {len(tips)} tips: {first}")
    return "\n".join(lines)


def summary_of(log):
    return str(cvstats.summary(log))


@cache
def calls():
    """All calls by log, container and name."""
    found = {}
    for some in (fault_calls(), option_calls(), lazy_calls(), pair_calls(), text_calls()):
        for (log, container, name), call in some:
            found.setdefault(log, {}).setdefault(container, {})[name] = call
    return found


def all_words():
    """The words of all calls."""
    return {
        log: {box: {name: words_of(call) for name, call in said.items()}
              for box, said in boxes.items()}
        for log, boxes in calls().items()
    }  # fmt: skip


def write():
    """Store, for each log, its words and which calls they answer."""
    stored = {}
    for log, boxes in all_words().items():
        for box, said in boxes.items():
            for name, words in said.items():
                stored.setdefault(log, {}).setdefault(words, []).append(f"{box}: {name}")
    PATH.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n", "utf-8")


def read():
    """The stored words of all calls, each call as its container and its name."""
    stored = json.loads(PATH.read_text("utf-8"))
    return {
        log: {tuple(call.split(": ", 1)): words for words, names in said.items() for call in names}
        for log, said in stored.items()
    }


if __name__ == "__main__":
    write()
