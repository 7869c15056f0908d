"""Lists and tables of methods, metrics, checks and cautions, written from their records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cvstats.core.cautions import Caution
from cvstats.diagnostics import CHECKS
from cvstats.intervals import list_methods
from cvstats.intervals._method import Method
from cvstats.metrics import METRICS
from cvstats.registry import COMPARISONS, FUNCTIONS, INTERVALS, STATISTICS

FOLDER = Path(__file__).parent / "api"
ACCESSORS = {"pandas": "DataFrame", "xarray": "DataArray"}
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
    every = list_methods()
    texts = {
        "intervals": autosummary("cvstats", "Intervals", INTERVALS),
        "statistics": autosummary("cvstats", "What a log contains", ["moments", *STATISTICS]),
        "comparisons": autosummary("cvstats", "Comparisons", COMPARISONS),
        "methods": table(every),
        "metrics": table_of_metrics(),
        "checks": table_of_checks(),
        "cautions": table_of_cautions(),
    }
    for module, kind in ACCESSORS.items():
        names = [f"{kind}.cvci.{name}" for name in FUNCTIONS]
        texts[f"accessor_{module}"] = autosummary(
            module, f"Accessor of {module}", names, template="autosummary/accessor_method.rst"
        )
    for name, text in texts.items():
        path = FOLDER / f"_{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    return [f"api/_{name}.md" for name in texts]


def autosummary(
    module: str, caption: str, names: Iterable[str], template: str | None = None
) -> str:
    """Write an autosummary of some names."""
    options = [f"   :caption: {caption}"] + ([f"   :template: {template}"] if template else [])
    entries = [f"   {name}" for name in names]
    lines = [
        "```{eval-rst}", f".. currentmodule:: {module}", "", ".. autosummary::",
        "   :toctree: generated/", *options, "", *entries, "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def table(methods: Iterable[Method]) -> str:
    """Write the table of all methods."""
    lines = ["| method | log it needs | target | guarantee |", "|---|---|---|---|"]
    for method in methods:
        link = f"[`{method.name}`](api/generated/cvstats.{method.name}.rst)"
        lines.append(f"| {link} | {method.needs} | {method.target} | {method.guarantee} |")
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
    lines = ["| code | what | the number | reported | what to do | label |", "|---" * 6 + "|"]
    for check in CHECKS.values():
        words = " ".join((check.find.__doc__ or "").split()).removesuffix(".")
        number, _, limit = words.removeprefix("Report ").partition(". Limit: ")
        if number.startswith("that "):
            number, limit = "none", f"if {number.removeprefix('that ')}"
        label = f"`{check.label}`" if check.label else ""
        cells = [f"`{check.code}`", check.title, number, limit, check.advice, label]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def table_of_cautions() -> str:
    """Write the table of all labels in the column ``caution``, with the codes that find them."""
    lines = ["| label | what it says | what to do | found by |", "|---" * 4 + "|"]
    for caution in sorted(Caution, key=lambda one: one.label):
        codes = [f"`{check.code}`" for check in CHECKS.values() if check.caution is caution]
        found = ", ".join(codes) or "the method"
        methods = " or ".join(f"`{call}`" for call in caution.instead)
        advice = caution.advise(methods)
        lines.append(f"| `{caution.label}` | {caution.sentence} | {advice} | {found} |")
    return "\n".join(lines) + "\n"
