"""What the package shows of a log: sentences, findings, tables, pages, and the output of commands.

`tests/reference/shown.json.gz` holds the lines of every view of every log, and
`tests/test_shown.py` computes them again. After a change of words store them anew, and read the
lines that differ:

    python tests/shown.py [LOG …]
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from datetime import date
from difflib import unified_diff
from functools import partial
from html import unescape
from pathlib import Path
from unittest import mock

import golden
import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from plotted import (
    describe,
    few_numbers,
    grid,
    logged,
    many,
    repeated,
    schools,
    write_without_marks,
)

import cvstats
from cvstats import cli
from cvstats.errors import LogError
from cvstats.log.metadata import MADE_OF
from cvstats.loss_functions.metric_logs import METRICS
from cvstats.reporting import page as report_page

PATH = Path(__file__).parent / "reference" / "shown.json.gz"

# --- logs -----------------------------------------------------------------------------------------


def predicted(loss, models=("forest", "net"), n=240, sources=0, **options):
    """A log of predicted probabilities of which each model is worse than the one before."""
    rng = np.random.default_rng(n)
    levels = {"fold": np.arange(n) % 6, **({"source": np.arange(n) % sources} if sources else {})}
    index = pd.MultiIndex.from_arrays([*levels.values(), range(n)], names=[*levels, "point"])
    truth = rng.integers(0, 2, n)
    table = pd.DataFrame({"y": truth}, index)
    for k, name in enumerate(models):
        logits = (1.5 - 0.4 * k) * (2 * truth - 1) + rng.normal(0, 1 + 0.2 * k, n)
        table[name] = 1 / (1 + np.exp(-logits))
    return cvstats.losses(table, "y", list(models), loss, **options)


def measured(metric, n):
    """A log of a metric of two models over folds and sources, with weights."""
    rng = np.random.default_rng(7)
    hard = rng.normal(size=n)
    risk, reads = 1 / (1 + np.exp(-1.2 * hard)), METRICS[metric].reads
    table = pd.DataFrame({
        "fold": np.arange(n) % 4, "source": np.arange(n) % 12, "point": range(n),
        "event": rng.random(n) < 0.7, "w": rng.integers(1, 4, n), "ref": rng.gamma(2, 1, n),
        "labels": np.digitize(hard + 0.3 * rng.normal(size=n), [-0.5, 0.6]),
        "scores": rng.random(n) < risk, "numbers": np.exp(0.4 * hard), "times": np.exp(hard),
    })  # fmt: skip
    for k, name in enumerate("ab"):
        noisy = hard + rng.normal(size=n) * (0.3 + 0.6 * k)
        chance = 1 / (1 + np.exp(-1.2 * noisy))
        table[name] = {
            "labels": np.digitize(noisy, [-0.5, 0.6]), "scores": noisy, "probabilities": chance,
            "numbers": np.exp(0.4 * noisy), "losses": np.exp(0.4 * noisy),
            "times": 1 - chance if "brier" in metric else noisy,
        }[reads]  # fmt: skip
        table[f"{name}2"] = 1 - 0.9 * chance
    if reads == "numbers":  # one error is large, and neither number
        table.loc[hard.argmax(), "a"] = table["a"].min()
    truth = {"probabilities": "scores", "losses": "numbers"}.get(reads, reads)
    at = {"at": [0.5, 1.5]} if metric == "integrated_brier" else {"at": 1.0}
    given = {
        "weight": "w", "average": "macro", "beta": 2, "max_fpr": 0.3, "event": "event",
        "reference": "ref", **at,
    }  # fmt: skip
    used = {name: option for name, option in given.items() if METRICS[metric].uses(name)}
    if reads != "labels":
        used.pop("average", None)
    models = {"a": ["a", "a2"], "b": ["b", "b2"]} if metric == "integrated_brier" else ["a", "b"]
    return cvstats.losses(table, truth, models, metric, folds="pool", **used)


def answers(*wrong, **attrs):
    """Right and wrong answers of models to the questions of a benchmark."""
    rng = np.random.default_rng(9)
    index = pd.MultiIndex.from_arrays([np.repeat(list("pqr"), 50), range(150)],
                                      names=["source", "point"])  # fmt: skip
    names = [f"model_{k}" for k in range(len(wrong))]
    log = pd.DataFrame(1.0 * (rng.random((150, len(wrong))) < wrong), index, names)
    return named(log, loss="1 - acc", metric="acc", orientation="1 - score", **attrs)


def named(log, **attrs):
    """A copy of a log with the facts of its losses."""
    log = log.copy()
    log.attrs = attrs
    return log


def days(shift, n=200):
    """Two models of a daily series whose differences last for days."""
    rng = np.random.default_rng(1)
    gap = np.zeros(n)
    for day in range(1, n):
        gap[day] = 0.8 * gap[day - 1] + rng.normal()
    base = rng.exponential(10, n)
    dates = pd.date_range("2024-01-01", periods=n, name="point")
    return pd.DataFrame({"a": base, "b": base + gap - gap.mean() + shift}, dates)


def cells(models, *sizes, dims=("lead", "lat", "lon"), n=40):
    """Losses of models on a grid; which of them is better depends on the last dimension."""
    rng = np.random.default_rng(3)
    dims = dims[-len(sizes) :]
    values = rng.gamma(1, 1, (models, *sizes, n))
    values += (
        0.6
        * np.arange(models).reshape(-1, *[1] * (len(sizes) + 1))
        * np.linspace(-1, 1.5, sizes[-1])[:, None]
    )
    places = {dim: np.linspace(-50, 60, size) for dim, size in zip(dims, sizes, strict=True)}
    return xr.DataArray(
        values, dims=["model", *dims, "point"],
        coords={**places, "model": [f"m{k}" for k in range(models)],
                "fold": ("point", np.arange(n) % 5)},
    )  # fmt: skip


def scored():
    rng = np.random.default_rng(4)
    log = pd.DataFrame(
        rng.random((10, 3)) + [0.1, 0.2, 0.5], pd.RangeIndex(10, name="fold"), list("abc")
    )
    return named(log, holds="scores", n_train=90, n_test=10)


def with_gaps():
    log = golden.k_fold()
    log.iloc[[3, 8], 0] = log.iloc[5, 2] = np.nan
    return log


def twins():
    log = golden.k_fold()
    return log.assign(b=log["a"], d=log["a"].to_numpy()[::-1], e=2.0)


def regions():
    rng = np.random.default_rng(6)
    index = pd.MultiIndex.from_arrays(
        [np.tile(["f", "m"], 150), range(300)], names=["sex", "point"]
    )
    base = rng.gamma(2, 1, (300, 2)) + 0.8 * (np.arange(300) % 2)[:, None] * [1, 0.2]
    return pd.DataFrame(base, index, ["forest", "net"])


LOGS = {
    **{f"{name} log": partial(golden.log_named, name) for name in golden.LOGS},
    "diabetes": lambda: logged("diabetes"),
    "flights": lambda: logged("flights"),
    "months": lambda: logged("flights_by_month"),
    "twelve models": many,
    "forty models": lambda: many(40),
    "four models": repeated,
    "schools": lambda: schools(25),
    "one model": lambda: logged("diabetes")["ridge"],
    "accuracy": lambda: predicted("accuracy", ("a", "b", "c"), threshold=0.5),
    "error rate": lambda: predicted("zero_one", threshold=0.5),
    "auc": lambda: predicted("auc", sources=20, folds="pool"),
    "metrics": lambda: predicted(["auc", "f1", "brier"], folds="pool", threshold=0.5),
    "slope": lambda: predicted("calibration_slope", ("a", "b", "c"), folds="pool"),
    "slopes": lambda: predicted("calibration_slope", tuple("abcdef"), folds="pool"),
    "tasks": lambda: answers(0.2, 0.3, 0.55, sources_are="fixed"),
    "sums": lambda: answers(0.2, 0.22),
    "scores": scored,
    "days": lambda: days(0.25),
    "better days": lambda: days(2.0),
    "months of days": lambda: (
        days(0.25).assign(source=lambda log: log.index.month).set_index("source", append=True)
    ),
    "gaps": with_gaps,
    "twins": twins,
    "candidates": lambda: pd.DataFrame(
        np.random.default_rng(0).exponential(size=(200, 20)), pd.RangeIndex(200, name="point")
    ),
    "units": lambda: named(golden.k_fold()[["a", "b"]], long_name="CRPS", units="mm", title="Rain"),
    "huge": lambda: golden.k_fold(k=3) * 1e7,
    "groups": lambda: regions().cvci.contrast(by="sex", between=("f", "m")),
    "groups of errors": lambda: named(
        1.0 * (regions() > 2), loss="1 - acc", metric="acc", orientation="1 - score"
    ).cvci.contrast(by="sex", between=("f", "m")),
    "one group": lambda: regions()[["forest"]].cvci.contrast(by="sex", between=("f", "m")),
    "differences": lambda: golden.k_fold().cvci.difference(),
    "few points": lambda: golden.one_set()[["a", "b"]].iloc[:7],
    "no points": lambda: pd.Series(np.arange(8.0), pd.Index([0, 1] * 4, name="repetition")),
    "grid": grid,
    "map": lambda: cells(1, 5, 6),
    "maps": lambda: cells(3, 5, 6),
    "leads": lambda: cells(2, 5, 3, 3),
    "line": lambda: named(
        1.0 * (cells(3, 24) > 1), loss="1 - acc", metric="acc", orientation="1 - score"
    ),
    "few cells": lambda: cells(2, 3),
}
"""Words of all of these are stored; tables, pages and commands of some."""


def few_errors(log):
    """Errors at three points, at two of them, and at none."""
    points = pd.factorize(log.index.get_level_values("point"))[0]
    return log - log + (points[:, None] < [3, 2, 0][: log.shape[1]])


CHANGES = {
    "zeros": lambda log: log - log,
    "twins": lambda log: pd.DataFrame({name: log.iloc[:, 0] + (name == "c") for name in "abc"}),
    "few errors": few_errors,
    "a huge loss": lambda log: log * np.where(np.arange(len(log)) == 3, 2.0**12, 1.0)[:, None],
    "below zero": lambda log: log - 8.0,
}


def first(k, level, log):
    """The evaluations of the first labels of a level."""
    labels = log.index.get_level_values(level)
    return log[labels.isin(pd.unique(labels)[:k])]


def edges():
    """The logs of `golden` with losses, or numbers of labels, at which rules change."""
    for name in golden.LOGS:
        log = golden.log_named(name)
        for change, make in CHANGES.items():
            yield f"{change} of {name}", name, partial(make, log)
        for level in log.index.names:
            for k in {1, 2, 3} & set(range(log.index.get_level_values(level).nunique())):
                if level != "count":
                    yield f"{k} {level} of {name}", name, partial(first, k, level, log)


EDGES = {edge: name for edge, name, _ in edges()}
LOGS |= {edge: make for edge, _, make in edges()}

# --- views ----------------------------------------------------------------------------------------

RESULTS = {
    "interval": lambda log: cvstats.interval(log),
    "compare": lambda log: cvstats.compare(log),
    "max-t": lambda log: cvstats.compare(log, adjust="max-t", rng=0, n_draws=500, alpha=0.1),
    "best_set": lambda log: cvstats.best_set(log, rng=0, n_draws=500),
    "heterogeneity": lambda log: cvstats.heterogeneity(log),
    "winner": lambda log: cvstats.winner(log, rng=0),
    "power": lambda log: cvstats.power(log, effect=0.1),
    "equivalence": lambda log: cvstats.equivalence(log, margin=0.1),
    "relative": lambda log: cvstats.compare(log, relative=True),
    "rope": lambda log: cvstats.rope(log, margin=0.1),
    "mcnemar": lambda log: cvstats.mcnemar(log),
}


def shown_tables(log):
    """Results in Markdown, in LaTeX, as a journal writes them, and with all digits."""
    for name, ask in RESULTS.items():
        try:
            result = ask(log)
        except LogError as error:
            yield f"{name}: {error}"
            continue
        for write in (cvstats.to_markdown, cvstats.to_latex, cvstats.to_apa):
            with contextlib.suppress(LogError):
                yield f"{name}: {write(result)}"
        yield f"{name}: {result.attrs}"


def shown_words(log):
    """The summary with its advice, the findings, the methods, and the log in a notebook."""
    for alpha in (0.05, 0.2):
        found = refused(lambda alpha=alpha: cvstats.summary(log, alpha=alpha))
        yield from found.splitlines() if isinstance(found, str) else lines_of(found)
    yield from (str(row) for row in records(lambda: cvstats.diagnose(log)))
    methods = refused(lambda: cvstats.methods(log))
    yield methods if isinstance(methods, str) else methods.attrs["suggestion"]
    yield from () if isinstance(methods, str) else methods["why_not"].items()
    yield repr(log.cvci)
    yield from words_of(log.cvci._repr_html_())


def lines_of(found):
    parts = found.values() if isinstance(found, dict) else [found]
    for part in parts:
        yield from (" | ".join(row) for row in part.rows())
    yield from found.write(70).splitlines()
    yield found._repr_html_()


def records(ask):
    found = refused(ask)
    return [found] if isinstance(found, str) else found.to_dict("records")


def refused(ask):
    """The answer, or the words of the error."""
    try:
        return ask()
    except LogError as error:
        return f"refused: {error}"


def shown_answers(log, name):
    """The answers, or refusals, of the calls of `golden` on a log."""
    for case in golden.CASES.values():
        if case.log == name:
            found = refused(lambda case=case: golden.computed(golden.call(case, log)))
            found = found if isinstance(found, str) else golden.normalized(found)
            yield TINY.sub("0.0", f"{case.name}: {found}")


def shown_measures(log):
    """What is noted about a metric, and the answers, or refusals."""
    yield str({name: note for name, note in log.attrs.items() if name != MADE_OF})
    for name, ask in {
        "interval": lambda: log.cvci.interval(), "wald": lambda: log.cvci.wald(alpha=0.2),
        "logit": lambda: log.cvci.wald(scale="logit"), "log": lambda: log.cvci.wald(scale="log"),
        "fisher-z": lambda: log.cvci.wald(scale="fisher-z"),
        "compare": lambda: log.cvci.compare(), "clustered": lambda: log.cvci.clustered(),
        "of points": lambda: log.cvci.compare(method="wald", alternative="less"),
    }.items():  # fmt: skip
        found = refused(ask)
        yield f"{name}: {found if isinstance(found, str) else golden.normalized(found)}"


def shown_page(log):
    """The words of the report."""
    with mock.patch.object(report_page, "draw_svg", write_without_marks):
        yield from words_of_report(log)


def drawn_page(log):
    """The words of the report, and what its plots draw, artist by artist."""
    drawn, draw_svg = [], report_page.draw_svg

    def draw_and_describe(draw, *options):
        axes = []
        source = draw_svg(lambda ax: [axes.append(ax), draw(ax)], *options)
        drawn.extend(few_numbers(describe(axes[0])))
        return source

    draw = mock.patch.object(report_page, "draw_svg", draw_and_describe)
    with draw, mpl.rc_context({"figure.dpi": 72}):
        yield from words_of_report(log)
    yield from (f"{kind} {words} {numbers}" for kind, words, numbers in drawn)


def words_of_report(log):
    page = refused(lambda: cvstats.report(log, missing="drop"))
    return [*words_of(page.replace(date.today().isoformat(), "TODAY"))]


def words_of(page):
    """The words of a page in lines, and where its tips are."""
    page = re.sub(r"<style>.*?</style>|<script>.*?</script>|<p>Versions.*?</p>", "", page,
                  flags=re.DOTALL)  # fmt: skip
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        yield re.search(r'viewBox="([^"]*)"', svg)[0]
        yield from re.findall(r'class="tip"(.*?)</title>', svg)
    page = re.sub(r"<svg.*?</svg>|<meta.*?>", "", page, flags=re.DOTALL)
    for line in re.sub(r"<(?!td class|div class|section)[^>]*>", "\n", page).splitlines():
        if line.strip():
            yield unescape(line.strip())


COMMANDS = {
    "interval": [], "interval --format csv": [], "interval --alpha 0.1 --format json": [],
    "compare": [], "compare --adjust bh --format json": [], "compare --format markdown": [],
    "compare --adjust none --alternative less": [], "best-set --n-draws 300": [],
    "equivalence --margin 0.2": [], "power --effect 0.2": [], "summary": [],
    "summary --format csv": [], "methods": [], "methods --format json": [], "diagnose": [],
    "diagnose --format csv": [], "compare --relative --format csv": [],
}  # fmt: skip
COMMANDED = ("flights", "one model", "accuracy", "scores", "metrics", "twins")


def shown_commands(log):
    """What commands print about a saved log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        cvstats.save_log(log, path)
        for words in COMMANDS:
            out, err = io.StringIO(), io.StringIO()
            command, *options = words.split()
            wide = mock.patch.dict(os.environ, COLUMNS="96")  # whatever the terminal of the tests
            with wide, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = cli.main([command, str(path), *options])
            yield f"cvstats {words}: {status}"
            yield from (out.getvalue() + err.getvalue()).replace(folder, "").splitlines()


TABLED = (
    "binary log", "spread sources log", "whole sources log", "crossed log", "splits log",
    "halves log", "five by two log", "nested log", "replaced log", "bootstrap log",
    "case bootstrap log", "diabetes", "months", "twelve models", "accuracy", "auc", "metrics",
    "slopes", "tasks", "sums", "scores", "gaps", "twins", "candidates", "one group", "differences",
    "few points", "grid", "map", "leads", "few cells",
)  # fmt: skip
DRAWN = (
    "repeated log", "repeated sources log", "bootstrap log", "flights", "forty models", "tasks",
    "grid", "map", "maps", "leads", "line", "few cells",
)  # fmt: skip
PAGED = (
    "binary set log", "by source log", "crossed log", "independent log", "splits log",
    "one model", "accuracy", "metrics", "slopes", "days", "twins", "groups", "no points",
)  # fmt: skip

VIEWS = {
    "words": (shown_words, tuple(LOGS)),
    "tables": (shown_tables, TABLED),
    "page": (shown_page, PAGED),
    "drawn page": (drawn_page, DRAWN),
    "commands": (shown_commands, COMMANDED),
}
VIEWS["answers"] = (shown_answers, tuple(EDGES))
MEASURED = {
    f"{metric} of {n}": partial(measured, metric, n) for metric in METRICS for n in (24, 160)
}
LOGS |= MEASURED
VIEWS["measures"] = (shown_measures, tuple(MEASURED))
CASES = [(view, name) for view, (_, names) in VIEWS.items() for name in names]


def look(view, name):
    """The lines that a view of a log shows; of long parts the first, and a hash of the others."""
    lines = []
    given = (EDGES[name],) if view == "answers" else ()
    for text in VIEWS[view][0](LOGS[name](), *given):
        part = LONG.sub(lambda each: repr(float(f"{float(each[0]):.7g}")), str(text)).splitlines()
        kept = part if len(part) <= MOST_LINES else part[: MOST_LINES - 5]
        lines += (line.rstrip() for line in kept)
        if len(part) > len(kept):
            digest = hashlib.sha256("\n".join(part).encode()).hexdigest()[:12]
            lines.append(f"… {len(part)} lines, {digest}")
    return lines


LONG = re.compile(r"-?\d+\.\d{8,}(?:e[-+]\d+)?")
"""Numbers with all their digits, of which the last depend on the machine."""
TINY = re.compile(r"-?[\d.]+e-(?:1[3-9]|[2-9]\d|\d{3})")
"""Numbers that are rounding errors."""
MOST_LINES = 25


def load():
    return json.loads(gzip.decompress(PATH.read_bytes())) if PATH.exists() else {}


def store(chosen):
    """Store all views, or those of some logs, and print what differs from before."""
    before = load()
    found = {case: before.get(case) for case in map(": ".join, CASES)}
    for view, name in CASES:
        case = f"{view}: {name}"
        if not chosen or name in chosen:
            found[case] = look(view, name)
        for line in unified_diff(before.get(case, []), found[case], case, case, "", "", 0, ""):
            print(line)
    text = json.dumps(found, ensure_ascii=False, indent=0)
    PATH.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    store(sys.argv[1:])
