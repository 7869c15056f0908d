"""``cvstats demo``: valid and conventional intervals for two bundled logs."""

from __future__ import annotations

from math import floor, log10
from textwrap import fill
from typing import Any

import pandas as pd

from cvstats import datasets
from cvstats.cli.output import align, line_width, show
from cvstats.comparisons.compare import compare
from cvstats.describe import moments
from cvstats.intervals.naive import naive
from cvstats.intervals.wald import wald
from cvstats.loss_functions.losses import losses

LOGS = {"diabetes": ("squared_error", "squared error"), "flights": ("brier", "Brier score")}
"""The logs to show, each with its loss and the name of the loss."""


def demo(*, alpha: float = 0.05) -> None:
    """Compare valid with conventional intervals on two real data sets.

    Two cross-validation logs ship with the package. For each, print mean ± std over the folds,
    the naive interval, the valid interval, and every paired comparison of two models.

    Example: cvstats demo --alpha 0.1

    Parameters
    ----------
    alpha : float
        One minus the level of the intervals.
    """
    show("\n\n".join(describe_log(name, *loss, alpha) for name, loss in LOGS.items()))


def describe_log(name: str, loss: str, loss_words: str, alpha: float) -> str:
    """Describe a shipped log, the errors of its models and their differences."""
    log = datasets.load(name)
    errors = losses(log, prediction=log.attrs["models"], loss=loss)
    cells, pairs = moments(errors), compare(errors, alpha=alpha)
    usual: Any = naive(errors, alpha=alpha)
    valid: Any = wald(errors, alpha=alpha)
    head = f"{name}: {log.attrs['title']}"
    about = f"Loss: {loss_words}, smaller is better. Target: {log.attrs['target']}."
    return "\n\n".join(
        [
            f"{head}\n{'=' * len(head)}\n{fill(about, line_width())}",
            interval_table(cells, usual, valid, alpha),
            fill(interval_words(cells, usual, valid), line_width()),
            pair_table(pairs, alpha),
            fill(pair_words(pairs, alpha), line_width()),
        ]
    )


def interval_table(
    cells: pd.DataFrame, usual: pd.DataFrame, valid: pd.DataFrame, alpha: float
) -> str:
    """Show mean ± std of the folds, the naive interval and the valid interval side by side."""
    digits = decimals(valid["se"])
    level = f"{100 * (1 - alpha):g}%"
    rows = [["", "mean ± std of folds", f"naive {level} interval", f"valid {level} interval"]]
    rows += [
        # The std divides by the number of folds, as most reports do.
        [str(model), f"{folds.mean():.{digits}f} ± {folds.std(ddof=0):.{digits}f}",
         limits(usual.loc[model], digits), limits(valid.loc[model], digits)]
        for model, folds in cells["mean"].groupby("model", sort=False)
    ]  # fmt: skip
    return align(rows)


def interval_words(cells: pd.DataFrame, usual: pd.DataFrame, valid: pd.DataFrame) -> str:
    """Explain the table of intervals."""
    points, folds, repetitions = (
        int(valid.attrs[name] if name in valid.attrs else valid[name].iloc[0])
        for name in ("n_points", "n_folds", "n_repetitions")
    )
    sizes = cells["count"]
    size = f"{sizes.min():,}" + (f" or {sizes.max():,}" if sizes.max() > sizes.min() else "")
    ratio = float((valid["se"] / usual["se"]).mean())
    counted = (
        f"the naive interval treats the {points:,} points, each tested {repetitions} times, as "
        f"{points * repetitions:,} independent points, and is {ratio:.1f} times narrower than "
        "the valid interval"
        if repetitions > 1
        else "the naive interval has nearly the same limits, because each point is tested once, "
        "but it is not guaranteed to cover its target, the error of the algorithm"
    )
    return (
        f"How to read it: the std measures how much folds of {size} points differ, not the "
        f"precision of their mean; {counted}; the valid interval (wald) is for the average error "
        f"of the {folds * repetitions} fits of each model, on new points drawn independently "
        "from the same distribution."
    )


def pair_table(pairs: pd.DataFrame, alpha: float) -> str:
    """Lay out every comparison of two models."""
    digits = decimals(pairs["se"])
    level = f"{100 * (1 - alpha):g}%"
    rows = [["difference of errors", "estimate", f"{level} interval", "p (Holm)"]]
    rows += [
        [f"{row['model']} - {row['other']}", f"{row['difference']:.{digits}f}",
         limits(row, digits),
         "<0.001" if row["p_adjusted"] < 0.001 else f"{row['p_adjusted']:.3f}"]
        for row in pairs.reset_index().to_dict("records")
    ]  # fmt: skip
    return align(rows)


def pair_words(pairs: pd.DataFrame, alpha: float) -> str:
    """Explain the table of comparisons."""
    significant = int((pairs["p_adjusted"] < alpha).sum())
    return (
        "How to read it: if the difference is below 0, the first model has the smaller error on "
        f"the same points; p is adjusted for {len(pairs)} comparisons (the intervals are not), "
        f"and is below {alpha:g} for {significant or 'none'} of them."
    )


def decimals(se: pd.Series) -> int:
    """Decimals that show two digits of the smallest standard error."""
    return max(0, 1 - floor(log10(se.min())))


def limits(row: Any, digits: int) -> str:
    """Write the limits of an interval."""
    return f"[{row['lower']:.{digits}f}, {row['upper']:.{digits}f}]"
