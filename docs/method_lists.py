"""Lists and tables of methods, metrics, checks and cautions, written from their records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cvstats.core.cautions import Caution
from cvstats.diagnostics import CHECKS
from cvstats.intervals import list_methods
from cvstats.intervals._method import Method
from cvstats.metrics import METRICS
from cvstats.registry import COMPARISONS, FUNCTIONS, INTERVALS, PLOTS, STATISTICS

FOLDER = Path(__file__).parent / "api"
FIRST = [
    *("interval", "wald", "holdout", "corrected_t", "out_of_source", "clustered", "ordered"),
    *("methods", "wild_cluster", "nested_cv", "conservative_z", "five_by_two", "replace_one"),
    *("refit_corrected", "bootstrap_oob", "bootstrap_632", "location_shifted", "case_bootstrap"),
    *("two_stage", "compare", "best_set", "equivalence", "power", "winner", "difference"),
    *("answers", "heterogeneity", *(f"plot.{name}" for name in PLOTS)),
]
"""What most users need, in this order; the other functions follow in alphabetical order."""
READS = {
    "labels": "predicted labels",
    "scores": "scores or probabilities",
    "probabilities": "probabilities of the positive class",
    "numbers": "numbers",
    "losses": "numbers, and those of a reference",
    "times": "times, censored or not",
}


def write_lists() -> list[str]:
    """Write a file for each list that a page includes, and return their paths."""
    texts = {
        "intervals": autosummary("Intervals", ["interval", *INTERVALS, "methods"]),
        "statistics": autosummary("Variance components", [*STATISTICS, "moments"]),
        "comparisons": autosummary("Comparisons", [*COMPARISONS, "largest_differences"]),
        "plots": autosummary("Plots", [f"plot.{name}" for name in PLOTS], "plot.rst"),
        "methods": table(sorted(list_methods(), key=lambda method: rank(method.name))),
        "metrics": table_of_metrics(),
        "checks": table_of_checks(),
        "cautions": table_of_cautions(),
    }
    for name, text in texts.items():
        path = FOLDER / f"_{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    return [f"api/_{name}.md" for name in texts]


def rank(name: str) -> tuple[int, str]:
    """Sort what most users need first."""
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def autosummary(caption: str, names: Iterable[str], template: str = "base.rst") -> str:
    """Write an autosummary of some functions, the most needed ones first."""
    lines = [
        "```{eval-rst}", ".. currentmodule:: cvstats", "", ".. autosummary::",
        "   :toctree: generated/", f"   :caption: {caption}",
        f"   :template: autosummary/{template}", "",
        *[f"   {name}" for name in sorted(names, key=rank)], "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def name_accessor(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Add how a function is called as a method, after the first paragraph of its page."""
    short = name.removeprefix("cvstats.")
    if "" in lines and what == "function" and (short in FUNCTIONS or short.startswith("plot.")):
        after = lines.index("") + 1
        lines[after:after] = [f"Also a method: ``losses.cvci.{short}()``.", ""]


def table(methods: Iterable[Method]) -> str:
    """Write the table of all methods."""
    lines = ["| method | log it needs | target | guarantee | fits |", "|---" * 5 + "|"]
    for method in methods:
        link = f"[`{method.name}`](api/generated/cvstats.{method.name}.rst)"
        cells = [link, method.needs, method.target, method.guarantee, method.fits]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def table_of_metrics() -> str:
    """Write the table of all metrics that `losses` takes."""
    lines = ["| `loss=` | metric | predictions | better | folds | options |", "|---" * 6 + "|"]
    for metric in METRICS.values():
        options = ", ".join(f"`{name}`" for name in metric.options)
        folds = {"average": "averaged", "pool": "pooled"}[metric.folds]
        better = metric.better if metric.target is None else f"closer to {metric.target:g}"
        cells = [f"`{metric.name}`", metric.words, READS[metric.reads], better, folds]
        lines.append(f"| {' | '.join([*cells, options])} |")
    return "\n".join(lines) + "\n"


def table_of_checks() -> str:
    """Write the table of all checks of `diagnose`, from their declarations and docstrings."""
    lines = ["| code | finding | number | reported | what to do | label |", "|---" * 6 + "|"]
    for check in CHECKS.values():
        words = " ".join((check.find.__doc__ or "").split()).removesuffix(".")
        number, _, limit = words.removeprefix("Report ").partition(". Limit: ")
        if number.startswith("that "):
            number, limit = "none", f"if {number.removeprefix('that ')}"
        label = "" if check.caution is None else f"`{check.caution.label}`"
        cells = [f"`{check.code}`", check.title, number, limit, check.advice, label]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def table_of_cautions() -> str:
    """Write the table of all labels in the column ``caution``, with the codes that find them."""
    lines = ["| label | meaning | what to do | found by |", "|---" * 4 + "|"]
    for caution in sorted(Caution, key=lambda one: one.label):
        codes = [f"`{check.code}`" for check in CHECKS.values() if check.caution is caution]
        found = ", ".join(codes) or "the method"
        methods = " or ".join(f"`{call}`" for call in caution.instead)
        advice = caution.advise(methods)
        lines.append(f"| `{caution.label}` | {caution.sentence} | {advice} | {found} |")
    return "\n".join(lines) + "\n"
