"""Logs of folds, and what it is to agree with the oracle."""

import math
from pathlib import Path

import pandas as pd
from hypothesis import strategies as st
from rows import multi_index, only_row
from strategies import close

import cvstats

REFERENCE = Path(__file__).parent / "reference"

ALPHAS = st.sampled_from([0.05, 0.1, 0.32, 0.001])
WEIGHTS = {"size": "pooled", "equal": "macro"}
LIMITS = ["estimate", "se", "lower", "upper"]


def frame_log(table, losses):
    """A Series whose index levels are the columns of a table."""
    index = multi_index(**table)
    return pd.Series(losses, index=index, dtype=float)


def agrees(ours, exact, rows):
    """All of estimate, standard error and limits agree with an interval of the oracle."""
    for name in LIMITS:
        expected = getattr(exact, name)
        reach = 1.0 if name in ("estimate", "se") else max(1.0, quantile_of(exact))
        assert close(only_row(ours)[name], expected, rows, tolerance=1e-12 * reach), name


def top_of(rows):
    """The largest loss by size: what a squared mean is measured by."""
    return float(max(abs(row.loss) for row in rows))


def quantile_of(exact):
    """How many standard errors a limit is away from the estimate."""
    ends = [abs(end - exact.estimate) for end in exact[3:5] if math.isfinite(end)]
    return float(max(ends)) / exact.se if exact.se > 0 and ends else 1.0


def assert_agrees_with_r(cases, log_of, label_of, capsys):
    """The limits of R, in widths of the interval; print the largest deviation of each label."""
    worst = {}
    for case in cases:
        found = getattr(cvstats, case["method"])(
            log_of(case), alpha=case["alpha"], **case["kwargs"]
        )
        ours, wanted = only_row(found), case["expected"]
        width = wanted["upper"] - wanted["lower"]
        apart = max(abs(ours[name] - value) for name, value in wanted.items()) / width
        offset = "offset" in case["id"]
        assert apart <= (1e-7 if offset else 1e-9), case["id"]
        label = label_of(case) + (" (offset)" if offset else "")
        worst[label] = max(worst.get(label, 0.0), apart)
    with capsys.disabled():
        print("\nlargest deviation from inferGE, in widths of the interval")
        for label, apart in sorted(worst.items()):
            print(f"  {label:<26} {apart:.1e}")
