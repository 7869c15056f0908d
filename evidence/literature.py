"""Published results on these methods, compared with this study."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
Rows = dict[str, list[Row]]

BAYLE_2 = "Bayle et al. (2020), figure 2"
BAYLE_3 = "Bayle et al. (2020), figure 3"
BATES = "Bates, Hastie and Tibshirani (2024), table 1"
THIRTEEN = "Schulz-Kuempel et al. (2024), thirteen methods"
GERAS = "Geras and Sutton (2013), figure 6"


def pick(rows: Rows, part: str, **wanted: Any) -> Row:
    """Return the only row with these facts; plans match by the start of their name."""
    options = wanted.pop("options", {})
    found = [
        row for row in rows[part]
        if row.get("options", {}) == options
        and all(str(row[name]).startswith(str(value)) if name == "plan" else row[name] == value
                for name, value in wanted.items())
    ]  # fmt: skip
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows of {part} are {wanted} with {options}")
    return found[0]


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def is_near(share: float, level: float, runs: int) -> bool:
    """Whether a share is within 0.01 of a level, up to simulation error."""
    return abs(share - level) < 0.01 + 3 * math.sqrt(level * (1 - level) / runs)


def line(
    study: str, what: str, theirs: str, ours: str, runs: int, agrees: bool, why: str = ""
) -> Row:
    """Make one line: a statement, and the reason if the study disagrees."""
    return {"study": study, "line": what, "theirs": theirs, "ours": ours, "runs": runs,
            "agrees": bool(agrees), "why": "" if agrees else why}  # fmt: skip


def coverage_of(rows: Rows, method: str, population: str, n: int) -> str:
    """The coverage of a method with its usual options."""
    options = {"correction": "632"} if method == "two_stage" else {}
    row = pick(rows, "intervals", method=method, population=population, n=n, plan=method,
               options=options)  # fmt: skip
    return f"{percent(row['coverage'])} for {population} with {n:,} points"


def judge_coverage(rows: Rows) -> list[Row]:
    """Wald's interval covers for a stable learner, and the valid ones are wider."""
    found = []
    for name, n in (("ridge", 1000), ("ridge", 10_000), ("flights late", 1000)):
        row = pick(rows, "intervals", method="wald", population=name, n=n, plan="k_fold")
        found.append(line(
            BAYLE_2, f"95% interval of the test error, {name}, n = {n:,}, 10 folds",
            "covers 95% at all sizes",
            percent(row["coverage"]), row["runs"], is_near(row["coverage"], 0.95, row["runs"]),
        ))  # fmt: skip
    wald = pick(rows, "intervals", method="wald", population="ridge", n=1000, plan="k_fold")
    others = [
        pick(rows, "intervals", method=method, population="ridge", n=1000, plan=plan)
        for method, plan in (
            ("holdout", "holdout"), ("corrected_t", "k_fold"), ("corrected_t", "subsampling"),
            ("five_by_two", "five_by_two"), ("cv_t", "k_fold"),
        )
    ]  # fmt: skip
    ratios = ", ".join(
        f"{row['method']} on {row['plan'].split('(')[0]} {row['width'] / wald['width']:.2f}"
        for row in others
    )
    valid = [row for row in others if row["coverage"] >= 0.93]
    found.append(line(
        BAYLE_2, "width in proportion to that of Wald's, ridge, n = 1,000",
        "the smallest width of all", ratios, wald["runs"],
        all(row["width"] > wald["width"] for row in valid),
    ))  # fmt: skip
    return found


def judge_tests(rows: Rows) -> list[Row]:
    """The test of improvement holds its level where the difference is relatively stable."""
    found = []
    for name, stable in (("one feature each", True), ("soft thresholds", False)):
        row = pick(rows, "comparisons", method="compare", population=name, n=1000,
                   plan="k_fold", options={"method": "wald"})  # fmt: skip
        corrected = pick(rows, "comparisons", method="compare", population=name, n=1000,
                         plan="k_fold", options={"method": "corrected_t"})  # fmt: skip
        found.append(line(
            BAYLE_3, f"size of the 5% test, {name}, n = 1,000", "5%, the level",
            percent(row["size"]), row["runs"], is_near(row["size"], 0.05, row["runs"]),
            "the difference is not relatively stable, which the theorem requires: both models "
            "approach the same rule",
        ))  # fmt: skip
        if stable:
            found.append(line(
                BAYLE_3, f"power beside that of corrected_t, {name}, n = 1,000",
                "the most powerful test",
                f"{percent(row['power'])} and {percent(corrected['power'])}", row["runs"],
                row["power"] > corrected["power"],
            ))  # fmt: skip
    return found


def judge_bates(rows: Rows) -> list[Row]:
    """Miscoverage of nominal 90% intervals, low and high."""
    found = []
    for name, n, theirs in (
        ("logit 20", 100, "near 10% in all"),
        ("sparse logit", 90, "10% to 20% on each side by cross-validation, 3% to 6% nested"),
    ):
        naive, nested = (
            pick(rows, "intervals", method=method, population=name, n=n, target="final", plan=plan,
                 options={"alpha": 0.1})
            for method, plan in (("naive", "k_fold"), ("nested_cv", "nested_cv"))
        )  # fmt: skip
        ours = "; ".join(
            f"{row['method']}: {percent(row['below'])} below, {percent(row['above'])} above"
            for row in (naive, nested)
        )
        misses = [1 - row["coverage"] for row in (naive, nested)]
        if name == "logit 20":
            agrees = all(0.05 < miss < 0.15 for miss in misses)
        else:
            agrees = misses[0] > 0.2 and 0.04 < misses[1] < 0.14
        found.append(line(
            BATES, f"errors of 90% intervals of the final model's error, {name}, n = {n}",
            theirs, ours, nested["runs"], agrees,
            "the intervals of nested cross-validation are wider here; those of ordinary "
            "cross-validation agree",
        ))  # fmt: skip
    return found


def is_decent(coverage: float, width_ratio: float) -> bool:
    """Near the level, and not much wider than the oracle."""
    return 0.92 < coverage < 0.98 and width_ratio < 1.3


def judge_ranking(rows: Rows) -> list[Row]:
    """The verdicts of the benchmark study, which evaluated each method for the risk."""
    good = "good coverage, a bit conservative"
    others = "not among the five decent ones"
    verdicts: list[tuple[str, str, str, Callable[[float, float], bool]]] = [
        ("holdout", "holdout", "good coverage, too wide", lambda c, w: c > 0.92),
        ("naive", "k_fold", "Wald: mostly reasonable coverage", lambda c, w: c > 0.9),
        ("nested_cv", "nested_cv", good, lambda c, w: 0.94 < c < 0.99),
        ("conservative_z", "paired_subsampling", "conservative", lambda c, w: c > 0.95),
        ("corrected_t", "subsampling", "a bit too liberal", lambda c, w: 0.88 < c < 0.95),
    ]
    verdicts += [
        (method, plan, others, lambda c, w: not is_decent(c, w))
        for method, plan in (
            ("five_by_two", "five_by_two"), ("replace_one", "replace_one"),
            ("bootstrap_oob", "bootstrap"), ("bootstrap_632", "bootstrap"),
            ("location_shifted", "bootstrap"), ("case_bootstrap", "case_bootstrap"),
            ("two_stage", "two_stage"),
        )
    ]  # fmt: skip
    reasons = {
        "holdout": "20 test points, with skewed losses, are too few for the normal approximation: "
        + coverage_of(rows, "holdout", "ridge", 1000),
        **{
            method: "it does well on ridge regression, not on others: "
            + " and ".join(coverage_of(rows, method, name, n) for name in others_of)
            for method, n, others_of in (
                ("five_by_two", 100, ("nearest neighbour", "lognormal mean")),
                ("case_bootstrap", 50, ("lognormal mean",)),
                ("two_stage", 50, ("nearest neighbour", "lognormal mean")),
            )
        },
    }
    found = []
    for method, plan, theirs, holds in verdicts:
        few = method in ("case_bootstrap", "two_stage")
        some = [
            pick(rows, "intervals", method=method, population=name, n=50 if few else 100,
                 plan=plan, **({"target": "final"} if method == "nested_cv" else {}),
                 options={"correction": "632"} if method == "two_stage" else {})
            for name in (("ridge",) if few else ("ridge", "flights late"))
        ]  # fmt: skip
        ours = ", ".join(
            f"{row['population']} {percent(row['coverage'])} at {row['width_ratio']:.2f} times the "
            f"oracle's width"
            for row in some
        )
        coverage, ratio = (
            sum(row[name] for row in some) / len(some) for name in ("coverage", "width_ratio")
        )
        found.append(line(
            THIRTEEN, f"{method}, n = {some[0]['n']}", theirs, ours, some[0]["runs"],
            holds(coverage, ratio), reasons.get(method, ""),
        ))  # fmt: skip
    tree = pick(rows, "intervals", method="naive", population="deep tree", n=100, plan="k_fold")
    found.append(line(
        THIRTEEN, "Wald's interval for the risk of a deep tree, n = 100", "poor coverage",
        percent(tree["coverage"]), tree["runs"], tree["coverage"] < 0.9,
    ))  # fmt: skip
    return found


def judge_sources(rows: Rows) -> list[Row]:
    """Estimators of the variance over data sets of ten sources, in proportion to it."""
    few, *_, many = [row for row in rows["source_variances"] if row["learner"] == "ridge"]
    unstable = [row for row in rows["source_variances"] if row["learner"] == "nearest neighbor"]
    ratios = sorted(row["theta_b"] for row in unstable)

    def both(name: str) -> str:
        return (
            f"{few[name]:.2f} with {few['points']}, {many[name]:.2f} with {many['points']} points"
        )

    return [
        line(GERAS, "theta_gamma in proportion to the variance", "far too large for many points",
             both("theta_gamma"), many["runs"], many["theta_gamma"] > 3),
        line(GERAS, "theta_A in proportion to the variance", "always too small",
             both("theta_a"), many["runs"], few["theta_a"] < 1 and many["theta_a"] < 1),
        line(GERAS, "theta_B in proportion to the variance", "hardly biased for many points",
             both("theta_b"), many["runs"], 0.8 < many["theta_b"] < 1.25,
             f"these figures are for ridge regression; for the nearest neighbor the ratio is "
             f"{ratios[0]:.2f} to {ratios[-1]:.2f}"),
        line(GERAS, "theta_5 and theta_3 of random folds", "theta_5 is less biased, almost not",
             f"{both('theta_5')}; theta_3: {both('theta_3')}", many["runs"],
             abs(few["theta_5"] - 1) < abs(few["theta_3"] - 1),
             "for this stable learner neither is clearly closer to 1"),
    ]  # fmt: skip


def compare(rows: Rows) -> list[Row]:
    """Make a line for each published statement that the study can check."""
    return [
        *judge_coverage(rows), *judge_tests(rows), *judge_bates(rows), *judge_ranking(rows),
        *judge_sources(rows),
    ]  # fmt: skip
