"""What to doubt about a log before any number is read off it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from cvstats.api.choosing import chosen_for
from cvstats.api.running import (
    INTERVALS,
    Losses,
    by_fold,
    by_repetition,
    folds_per_repetition,
)
from cvstats.containers import Log, read
from cvstats.core.columns import all_binary
from cvstats.core.design import Design
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError
from cvstats.findings import (
    Finding,
    drift,
    names_a_score,
    outlier_share,
    points_for_skewness,
    tail_index,
)
from cvstats.intervals import layouts
from cvstats.intervals.registry import METHODS
from cvstats.intervals.unused import one_each, renaming, unused

__all__ = ["diagnose"]

OUTLIERS, TAIL, SPREAD, TREND = 1 / 2, 2.0, 0.5, 0.01
SIZES, VARIANCES = 2.0, 5.0
FEW_POINTS, FEW_ERRORS, FEW_FOLDS, FEW_SOURCES, FEW_SPLITS, FEW_SAMPLES = 30, 10, 5, 10, 15, 100


def diagnose(losses: Losses) -> pd.DataFrame:
    """Look for what makes the numbers of a log doubtful, and say what to do about it.

    The target is no error but the log: outliers that carry the variance, heavy tails, unequal
    or few folds, sources and repetitions, drift, copies, and designs that no method takes.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log, also one that the methods refuse.

    Returns
    -------
    DataFrame
        A row for each finding: ``code`` (``"CVS005"``), ``finding`` (a sentence), ``model``
        (empty where it is about the log), ``value`` (the number behind it, NaN if there is
        none) and ``advice``. No rows where nothing was found.

    Raises
    ------
    LogError
        If the object is no container of losses at all, or its losses are not in memory (dask).

    Notes
    -----
    With ``d_i = e_i - mean(e)``, outliers are told by ``sum of the top 1% of d_i^2 / sum
    d_i^2``, skewness by the rule ``n > 25 G_1^2`` and tails by Hill's index. The limits are
    rules of thumb, and no finding is a proof: a log without findings may still be wrong, and
    one with findings may be all there is. The page *Diagnostics* lists every code. Where an
    array carries dimensions, a model's worst cell is told.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd edition, Wiley, section 2.15.
    Hill (1975), Annals of Statistics 3(5), 1163-1174, doi:10.1214/aos/1176343247.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> len(cvstats.diagnose(losses))
    0
    >>> quarter = losses[losses.index.get_level_values("source") <= "2013-03"]
    >>> cvstats.diagnose(quarter)[["code", "finding", "value"]]
         code                        finding  value
    0  CVS015  the log has only 3 sources...    3.0
    """
    rows = [
        (found.code, found.words, found.model, found.value, found.advice)
        for found in sorted(findings(losses), key=lambda found: found.code)
    ]
    columns = ["code", "finding", "model", "value", "advice"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float})


def findings(losses: Losses) -> Iterator[Finding]:
    """Look at a log from the outside in: whether it can be read, is whole, is sound."""
    if not isinstance(getattr(losses, "attrs", None), dict) or getattr(losses, "chunks", None):
        read(losses)  # refuses what is no container, or not in memory, in its own words
    try:
        log = read(losses)
    except LogError as error:
        yield Finding("CVS001", str(error), "", np.nan)
        return
    gone = list(not_finite(log))
    yield from gone
    try:
        log = read(losses, missing="drop") if gone else log
        log.moments(())
    except LogError as error:
        yield Finding("CVS001", str(error), "", np.nan)
        return
    yield from of_design(log.design, log)
    yield from of_levels(log.design)
    yield from of_losses(log)
    yield from of_scores(log)
    yield from of_cells(log)
    yield from copies(log)


def named(log: Log, model: int) -> str:
    """Name a model; nothing for the one model without a name."""
    name = log.labels.models[model]
    return "" if name is None else str(name)


def per_model(
    log: Log,
    values: FloatArray,
    bad: IntArray | FloatArray,
    code: str,
    words: Callable[[float], str],
) -> Iterator[Finding]:
    """Tell the worst of the cells of each model in which something is wrong.

    ``values`` and ``bad`` have an entry for each column; the larger ``bad`` the worse, and what
    is not above zero is well.
    """
    for model in range(len(log.labels.models)):
        columns = log.labels.columns(model)
        worst = columns[np.argmax(bad[columns])]
        if bad[worst] > 0:
            number = int((bad[columns] > 0).sum())
            cells = f", in {number:,} of {len(columns):,} cells" if len(columns) > 1 else ""
            value = float(values[worst])
            yield Finding(code, f"{words(value)}{cells}", named(log, model), value)


def not_finite(log: Log) -> Iterator[Finding]:
    """Count losses that are missing or infinite."""
    masked = set(log.masked().tolist())
    for model in range(len(log.labels.models)):
        total = 0
        for j in log.labels.columns(model).tolist():
            if j not in masked:
                bad = ~np.isfinite(log.panels.column(j, 0, log.design.size))
                total += int(
                    bad.sum() if log.design.present is None else bad[log.design.present].sum()
                )
        if total:
            words = f"{total:,} {'loss is' if total == 1 else 'losses are'} missing or infinite"
            yield Finding("CVS002", words, named(log, model), total)


def of_design(design: Design, log: Log) -> Iterator[Finding]:
    """Look at who was tested where."""
    plain = not any(design.has(level) for level in ("sample", "outer", "count"))
    try:
        method, reason = chosen_for(log)
        words = None if method not in INTERVALS else problem(method, design)
        if words is None and method == "corrected_t":
            INTERVALS[method](log)  # asks for training sizes that no design tells
    except LogError as error:
        words = str(error)
    if words is not None:
        yield Finding("CVS004", words, "", np.nan)
    splits = design.splits()
    if splits.points is not None and splits.points < FEW_POINTS:
        yield Finding("CVS008", f"the log has only {splits.points} points", "", splits.points)
    yield from of_repetitions(design)
    sources = design.number("source")
    if 1 < sources < FEW_SOURCES:
        yield Finding("CVS015", f"the log has only {sources} sources", "", sources)
    if plain:
        yield from of_folds(design, log)


def problem(method: str, design: Design) -> str | None:
    """Ask the chosen method whether it takes the log."""
    return METHODS[method].problem(design) if method in METHODS else None


def of_repetitions(design: Design) -> Iterator[Finding]:
    """Look for few random splits or resamples."""
    repetitions = design.number("repetition")
    if design.has("count"):
        samples = repetitions - fits_to_the_sample(design)
        if samples < FEW_SAMPLES:
            words = f"the log has only {samples} bootstrap samples"
            yield Finding("CVS016", words, "", samples)
    elif (
        design.has("repetition")
        and layouts.fewest_folds(design) < 2
        and not layouts.whole(design)
        and repetitions < FEW_SPLITS
    ):
        words = f"the log has only {repetitions} random splits"
        yield Finding("CVS016", words, "", repetitions)


def fits_to_the_sample(design: Design) -> int:
    """Count the repetitions of a bootstrap log that are no bootstrap sample: that called 0."""
    used = design.codes_of(design.cell_table(("repetition",)))[:, 0].tolist()
    labels = design.levels["repetition"].labels
    return sum(1 for code in used if labels[code] == 0)


def of_folds(design: Design, log: Log) -> Iterator[Finding]:
    """Look at the number and the sizes of folds, and at who shares them."""
    splits = design.splits()
    k = folds_per_repetition(log)
    if k < 2:
        return
    if splits.points is not None and not layouts.whole(design):
        share = 1 - int(splits.rows.min()) / splits.points
        words = f"a repetition tests {splits.rows.min():,} of the {splits.points:,} points only"
        yield Finding("CVS003", words, "", share)
    by_source = layouts.fold_level(design) == "source"
    if k < FEW_FOLDS and not by_source:
        words = f"with {k} folds each model was trained on {1 - 1 / k:.0%} of the points"
        yield Finding("CVS014", words, "", k)
    sizes = design.cell_table(by_fold(log)).total
    sizes = sizes[sizes > 0]
    ratio = float(sizes.max() / sizes.min())
    if ratio > SIZES and sizes.max() - sizes.min() > 1:
        what = "source" if by_source else "fold"
        words = f"the largest {what} has {sizes.max():,} points and the smallest {sizes.min():,}"
        yield Finding("CVS012", words, "", ratio)
    if not by_source and design.has("source"):
        one = ("repetition",) if "repetition" in design.levels else ()
        codes = design.codes_of(design.cell_table((*one, "fold", "source")))
        pairs = np.unique(codes[:, [*range(len(one)), -1]], axis=0, return_counts=True)
        shared = np.unique(pairs[0][pairs[1] > 1][:, -1])
        if len(shared):
            words = (
                f"{len(shared):,} of {design.number('source'):,} sources stand in several folds, "
                f"so models were tested on sources that they were trained on"
            )
            yield Finding("CVS020", words, "", len(shared))


def of_levels(design: Design) -> Iterator[Finding]:
    """Look for levels under other names, and for means where losses of points should be."""
    for name, level in unused(design).items():
        number = design.number(name)
        words = (
            f"level {name!r} has {number:,} labels and is not used, and it may name the {level}s: "
            f"if so, type {renaming(design, name, level)}"
        )
        yield Finding("CVS021", words, "", number)
    if one_each(design):
        number = int(design.splits().rows.sum())
        words = f"the log has one loss for each of {number:,} splits: are these means or scores?"
        yield Finding("CVS023", words, "", number)


def of_scores(log: Log) -> Iterator[Finding]:
    """Look for scores, of which more is better, by their names and as hits in place of errors."""
    means = log.moments(()).location[0]
    there = ~np.isnan(means)
    hits = bool(there.any() and (means[there] > 0.5).all()) and all_binary(log.design, log.panels)
    for model in range(len(log.labels.models)):
        columns = log.labels.columns(model)
        if not there[columns].any():
            continue
        mean = float(np.nanmean(means[columns]))
        named_so = mean > 0 and names_a_score(log.labels.models[model])
        if hits or named_so:
            what = "losses of 0 and 1" if hits else "losses with the name of a score"
            words = (
                f"{what} have the mean {mean:.3g}: are these scores? Lower is better here: use "
                f"1 - x for accuracies"
            )
            yield Finding("CVS022", words, named(log, model), mean)


def of_losses(log: Log) -> Iterator[Finding]:
    """Look at the distribution of the losses, column by column."""
    points = log.design.splits().points or log.design.size
    width = log.panels.width
    found: dict[str, list[FloatArray]] = {
        code: [np.zeros(width), np.zeros(width)]
        for code in ("CVS005", "CVS006", "CVS007", "CVS009", "CVS010", "CVS011")
    }

    def note(code: str, j: int, value: float, bad: float) -> None:
        found[code][0][j], found[code][1][j] = value, bad

    for j, column in enumerate(log.columns()):
        if column is None:
            continue
        values = column if log.design.present is None else column[log.design.present]
        low, high = float(values.min()), float(values.max())
        if low == high:
            note("CVS010", j, low, 1.0)
            continue
        if high <= 0:
            note("CVS011", j, float(np.mean(values < 0)), 1.0)
        if low == 0 and high == 1 and bool(np.all((values == 0) | (values == 1))):
            rate = float(values.mean())
            rare = min(rate, 1 - rate) * points
            note("CVS009", j, rare, FEW_ERRORS - rare)
            continue  # what follows is about losses that can be large
        share, index = outlier_share(values), tail_index(values)
        note("CVS005", j, share, share - OUTLIERS if len(values) >= 100 else 0.0)
        note("CVS006", j, index, TAIL - index)
        asked = points_for_skewness(values)
        note("CVS007", j, asked, asked - points)
    words: dict[str, Callable[[float], str]] = {
        "CVS005": lambda v: f"the top 1% of the losses carry {v:.0%} of the sum of squares",
        "CVS006": lambda v: f"the largest losses fall off like a power law of index {v:.1f}",
        "CVS007": lambda v: f"losses so skewed ask for {v:,.0f} points, and there are {points:,}",
        "CVS009": lambda v: f"the rarer outcome stands for {v:.3g} points only",
        "CVS010": lambda v: f"every loss is {v:g}",
        "CVS011": lambda v: f"no loss is positive, and {v:.0%} are negative: are these scores?",
    }
    for code, (values, bad) in found.items():
        yield from per_model(log, values, bad, code, words[code])


def of_cells(log: Log) -> Iterator[Finding]:
    """Look at the variances of folds and the means of repetitions."""
    design = log.design
    if any(design.has(level) for level in ("sample", "outer", "count")):
        return
    if folds_per_repetition(log) > 1:
        folds = log.moments(by_fold(log))
        if folds.count.min() >= 10:
            variance = folds.m2 / (folds.count[:, None] - 1)
            typical = np.median(variance, axis=0)
            ratio = variance.max(axis=0) / np.where(typical > 0, typical, np.inf)
            yield from per_model(
                log, ratio, ratio - VARIANCES, "CVS013",
                lambda v: f"the variance of one fold is {v:.1f} times that of the median fold",
            )  # fmt: skip
    if not design.has("repetition") or not layouts.whole(design):
        return  # random splits test different points: their means differ anyway
    rows = log.moments(by_repetition(log))
    means, count = rows.mean, len(rows.count)
    if count >= 3:
        se = np.sqrt(np.mean(rows.m2, axis=0)) / rows.count.mean()
        ratio = means.std(axis=0, ddof=1) / np.where(se > 0, se, np.inf)
        yield from per_model(
            log, ratio, ratio - SPREAD, "CVS017",
            lambda v: f"the means of the repetitions differ by {v:.2f} standard errors",
        )  # fmt: skip
    if count >= 5:
        p = np.array([drift(means[:, j]) for j in range(means.shape[1])])
        yield from per_model(
            log, p, TREND - p, "CVS018",
            lambda v: f"the mean loss drifts over the repetitions (p = {v:.1g})",
        )  # fmt: skip


def copies(log: Log) -> Iterator[Finding]:
    """Find models whose losses are the same everywhere; equal means come first."""
    means = log.moments(()).location[0]
    models = range(len(log.labels.models))
    seen: dict[tuple[float, ...], list[int]] = {}
    for model in models:
        columns = log.labels.columns(model)
        key = tuple(np.nan_to_num(means[columns], nan=np.inf).tolist())  # a NaN equals nothing
        for earlier in seen.setdefault(key, []):
            if all(
                np.array_equal(
                    log.panels.column(int(i), 0, log.design.size),
                    log.panels.column(int(j), 0, log.design.size),
                    equal_nan=True,
                )
                for i, j in zip(log.labels.columns(earlier), columns, strict=True)
            ):
                words = f"every loss is the same as that of {named(log, earlier)}"
                yield Finding("CVS019", words, named(log, model), 1.0)
                break
        else:
            seen[key].append(model)
