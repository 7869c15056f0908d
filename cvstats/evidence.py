"""Results of a simulation study of each method, for logs similar to a given one.

The figures come from ``python -m evidence`` in the project's repository: populations with known
errors, thousands of logs from each, and how often intervals contained their target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cvstats.core.design import Design

Row = dict[str, Any]

GROUPED = ("groups", "sources")
"""Designs of populations whose points come in groups."""


USED_BY = {"refit_corrected": ("compare", "repeated_k_fold(")}
"""A method that was measured as the default of another one on some plans."""


@cache
def read_figures() -> dict[str, Any]:
    """Read the results bundled with the package."""
    text = files("cvstats").joinpath("evidence.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def describe_measured(
    method: str, design: Design, *, binary: bool | None, wilson: bool = False
) -> str:
    """Describe the coverage of a method in simulated populations similar to a log.

    Empty if none is similar, and for logs of scores or without point labels.

    Parameters
    ----------
    method : str
        The name of an interval or a comparison.
    design : Design
        The design of the log. Populations have groups if the log has sources, and the nearest
        number of points.
    binary : bool, optional
        Whether the losses are all 0 or 1; None if that is not known.
    wilson : bool, optional
        Whether the limits are Wilson's.
    """
    points = design.splits().points
    if design.scores or points is None:
        return ""
    return write_measured(
        method, points, binary, wilson, grouped=design.has("source"), metric=bool(design.metric)
    )


@cache
def write_measured(
    method: str, points: int, binary: bool | None, wilson: bool, *, grouped: bool, metric: bool
) -> str:
    """Describe the results of a method at the number of points nearest to that of a log."""
    rows = [
        min(found, key=lambda row: distance(row["n"], points))
        for found in by_population(method, binary, wilson, grouped=grouped, metric=metric)
    ]
    if not rows:
        return ""
    sizes = sorted({row["n"] for row in rows})
    over = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,}"
    wrong = [row["size"] if "size" in row else 1 - row["coverage"] for row in rows]
    at = int(np.argmax(wrong))
    worst = title_of(rows[at]["population"])
    if rows[0].get("power") is not None:
        what, shares = "tests at 5% rejected equality of equally good models", wrong
    else:
        what, shares = "95% intervals contained the true value", [1 - share for share in wrong]
    middle, end = (f"{100 * share:.0f}%" for share in (np.median(shares), shares[at]))
    if len(rows) == 1:
        return f"in a simulated population (n = {over}), {what} in {end} of runs: {worst}"
    return (
        f"in {len(rows):,} simulated populations (n = {over}), {what} in {middle} of runs (median) "
        f"and in {end} in the worst case ({worst})"
    )


def by_population(
    method: str, binary: bool | None, wilson: bool, *, grouped: bool, metric: bool
) -> Iterator[list[Row]]:
    """Collect the rows of a method by population, for populations similar to a log."""
    study = read_figures()
    name, plan = USED_BY.get(method, (method, ""))
    asked = [
        row
        for row in (*study["intervals"], *study["comparisons"])
        if row["method"] == name and row["plan"].startswith(plan)
        if row.get("coverage", row.get("size")) is not None
    ]
    usual: dict[str, Any] = {"interval": "wilson"} if wilson else {}
    if asked and not any(row["options"] == usual for row in asked):
        usual = asked[0]["options"]
    asked = [row for row in asked if row["options"] == usual]
    for population in study["populations"]:
        kind = population["kind"]
        if (population["design"] in GROUPED) != grouped or (kind == "score") != metric:
            continue
        if (population["design"] == "ordered") != (method == "ordered"):
            continue
        if binary is not None and binary != (kind == "zero_one"):
            continue
        if found := [row for row in asked if row["population"] == population["name"]]:
            yield found


def distance(n: float, points: float) -> float:
    """Distance of two numbers of points, as a ratio."""
    return abs(float(np.log(n / points)))


def title_of(population: str) -> str:
    """Look up the title of a population."""
    every = read_figures()["populations"]
    return next(str(one["title"]) for one in every if one["name"] == population)
