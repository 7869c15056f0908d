"""Checks of a loss log: problems with its numbers, and what to do about them.

Each check is one function with its code; the docstring describes the value of a finding and the
limit at which it is reported. Title, sentence, advice and the corresponding caution of results are
in ``cautions.toml``. `diagnose`, the report and the guide read the checks in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import special

from cvstats.core.cautions import ENOUGH_POINTS, Caution, read_texts
from cvstats.core.folds import (
    covers_all_points,
    fewest_folds,
    find_single_losses,
    fold_levels,
    lacks_few_points,
    repeats_test_set,
    repetition_level,
)
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.formatting import OPEN_END, SentenceTable
from cvstats.intervals import find_method
from cvstats.intervals._method import find_call
from cvstats.intervals._requirements import recommend_options, takes_two_ways
from cvstats.intervals._stability import find_unstable
from cvstats.intervals.bootstrap import INTERPOLATES, apparent_error, point_means
from cvstats.intervals.clustered import sum_clusters
from cvstats.intervals.corrected_t import FEW_SPLITS
from cvstats.intervals.holdout import seeds_matter
from cvstats.intervals.out_of_source import FEW_SOURCES
from cvstats.intervals.wald import DISAGREEMENT, measure_disagreement
from cvstats.large.frames import delay_answer, has_columns_of_models
from cvstats.log.bootstrap import code_of, resamples
from cvstats.log.log import DIFFERENT_GAPS, Losses
from cvstats.log.loss_checks import (
    NEAR,
    SHARE,
    TAIL,
    Residuals,
    count_near_best,
    find_duplicates,
    has_best_model,
    is_serial,
    measure_serial,
    residuals_of_points,
)
from cvstats.log.metadata import cautions_of_metric, each_metric, is_below_chance
from cvstats.log.read import is_dask_frame, read
from cvstats.log.tables import as_container, names_a_score, suggest_renaming, unrecognized_levels
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS
from cvstats.recommend import interval


class Finding(NamedTuple):
    """A finding about a log: value, model, and the other facts of its sentence."""

    value: float = np.nan
    model: str = ""
    facts: Mapping[str, object] = MappingProxyType({})


CheckFunction: TypeAlias = Callable[[LogFacts], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """One kind of finding.

    Parameters
    ----------
    code : str
        The code of the check.
    find : callable
        Yields the findings.
    title, finding, advice : str
        A short title, the sentence with facts in braces, and what to do.
    caution : Caution, optional
        The corresponding caution of results, if any.
    """

    code: str
    find: CheckFunction
    title: str
    finding: str
    advice: str
    caution: Caution | None = None

    def describe(self, finding: Finding) -> str:
        """Describe a finding in a sentence, and in how many cells it was made."""
        words = self.finding.format(value=finding.value, **finding.facts)
        return f"{words}{finding.facts.get('cells', '')}"


CHECKS: dict[str, Check] = {}
"""Every check by its code, in the order of the codes."""

OF_ANY_LOG = ("CVS001", "CVS002")
"""The checks of a log that no method can read."""

CELLS_APART = "the carried cells lack different evaluations, so only missing losses were checked"
ONE_CELL = (
    "Check one cell at a time. With missing='drop', methods compute each cell from the evaluations "
    "that it has."
)


def check(code: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check; its docstring describes its value."""

    def declare(find: CheckFunction) -> CheckFunction:
        texts = dict(read_texts()["checks"][code])
        caution = Caution[texts.pop("caution")] if "caution" in texts else None
        CHECKS[code] = Check(code, find, caution=caution, **texts)
        return find

    return declare


def diagnose(losses: Losses) -> pd.DataFrame:
    """List problems with the losses of a log, with advice for each.

    The checks cover outliers that dominate the variance, heavy tails, unequal or few folds,
    sources and repetitions, drift, duplicates, and designs that no method accepts.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log, including logs that methods reject.

    Returns
    -------
    DataFrame
        A row for each finding: ``code`` (``"CVS005"``), ``finding`` (a sentence), ``model``
        (empty if it concerns the log), ``value`` (the measured value, NaN if there is none) and
        ``advice``. Empty if nothing was found.

    Raises
    ------
    LogError
        If the object is not a container of losses, or its losses are not in memory (dask).

    See Also
    --------
    cvstats.cautions : The labels of caution for each cell of an array.
    cvstats.methods : Every method, and whether it applies to the log.
    cvstats.summary : The conclusions from a log in three sentences.

    Notes
    -----
    With ``d_i = e_i - mean(e)``, outliers are measured by ``sum of the top 1% of d_i^2 / sum
    d_i^2``, skewness by the rule ``n > 25 G_1^2`` and tails by Hill's index. The limits are rules
    of thumb: a log without findings may still have problems, and one with findings may still be
    usable. The page *Diagnostics* lists every code. For an array with further dimensions, the
    worst cell of each model is reported.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd edition, Wiley, section 2.15.
    Hill (1975), Annals of Statistics 3(5), 1163-1174, doi:10.1214/aos/1176343247.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> len(cvstats.diagnose(cvstats.losses(log, prediction="ridge")))
    0
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> cvstats.diagnose(losses)[["code", "finding", "value"]]
         code                     finding  value
    0  CVS015  the log has only 12 sources   12.0
    """
    if is_dask_frame(losses):
        found: pd.DataFrame = delay_answer(losses, diagnose, pairs=has_columns_of_models(losses))
        return found
    losses = as_container(losses)  # once: a stream can be read only once
    if not isinstance(getattr(losses, "attrs", None), dict) or getattr(losses, "chunks", None):
        read(losses)  # raises if it is not a container, or not in memory
    return list_findings(LogFacts(losses))


def list_findings(facts: LogFacts) -> pd.DataFrame:
    """List the findings of all checks, or of those that apply to an unreadable log."""
    facts = facts.drop_missing()
    checks = [CHECKS[code] for code in OF_ANY_LOG] if facts.error else CHECKS.values()
    rows = [
        (check.code, check.describe(finding), finding.model, finding.value, advise(check, facts))
        for check in checks
        for finding in check.find(facts)
    ]
    columns = ["code", "finding", "model", "value", "advice"]
    return FindingTable(pd.DataFrame(rows, columns=columns).astype({"value": float}))


def advise(check: Check, facts: LogFacts) -> str:
    """Return the advice, with an alternative call that works on this log, if any."""
    if check.code == "CVS001" and facts.error == DIFFERENT_GAPS:
        return ONE_CELL
    if check.caution is None or facts.error:
        return check.advice
    log = facts.log
    if check.caution is Caution.UNSTABLE_DIFFERENCE:
        log = log.with_all_pairs()
    try:
        call = find_call(check.caution, log, facts.recommended[0])
    except LogError:  # no method is recommended
        return check.advice
    return f"{check.advice} Use {call}." if call else check.advice


class FindingTable(SentenceTable):
    """The table of `diagnose`: findings with advice."""

    def list_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield the finding and the advice of each row."""
        for row in self.to_dict("records"):
            model = f"{row['model']}: " if row["model"] else ""
            yield row["code"], model + OPEN_END.sub(".", row["finding"])
            yield "", row["advice"]


def report_worst(
    facts: LogFacts, values: FloatArray, exceeded: MaskArray, *, smallest: bool = False,
    **more: object,
) -> Iterator[Finding]:  # fmt: skip
    """Yield a finding for the worst column of each model beyond the limit.

    ``values`` and ``exceeded`` have an entry for each column.
    """
    labels = facts.log.labels
    for model in range(len(labels.models)):
        columns = labels.columns(model)
        beyond = values[columns][exceeded[columns]]
        if len(beyond):
            value = float(beyond.min() if smallest else beyond.max())
            seen = len(np.setdiff1d(columns, facts.log.masked()))
            cells = f", in {len(beyond):,} of {seen:,} cells" * (len(columns) > 1)
            yield Finding(value, facts.name_model(model), {**more, "cells": cells})


# --- the log as a whole -----------------------------------------------------------------------


@check("CVS001")
def unreadable_log(facts: LogFacts) -> Iterator[Finding]:
    """Report that the log is inconsistent."""
    if facts.error:
        apart = facts.error == DIFFERENT_GAPS
        yield Finding(facts={"words": CELLS_APART if apart else facts.error})


@check("CVS002")
def missing_losses(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of losses that are missing or infinite. Limit: any."""
    for model, total in (facts.n_missing if not facts.read_error else {}).items():
        yield Finding(total, model, {"losses": "loss is" if total == 1 else "losses are"})


@check("CVS003")
def incomplete_partition(facts: LogFacts) -> Iterator[Finding]:
    """Report the share of points missing from the smallest repetition.

    Limit: a log with folds whose repetitions do not test the same points.
    """
    splits = facts.design.splits()
    if facts.n_folds < 2 or splits.points is None or covers_all_points(facts.design):
        return
    fewest, points = int(splits.rows.min()), splits.points
    yield Finding(1 - fewest / points, facts={"fewest": fewest, "points": points})


@check("CVS004")
def no_method(facts: LogFacts) -> Iterator[Finding]:
    """Report that interval() rejects the log."""
    try:
        words = find_method(facts.recommended[0]).problem(facts.design)
        if words is None:
            facts.apply(interval, method=None, alpha=0.05)
    except LogError as error:
        words = str(error)
    if words is not None:
        yield Finding(facts={"words": words})


# --- the losses of each model -----------------------------------------------------------------


@check("CVS005")
def outliers(facts: LogFacts) -> Iterator[Finding]:
    """Report the share of the variance that is due to the largest 1% of the losses.

    Limit: above 1/2, with at least 100 losses and fewer than 25 times as many points as CVS007
    requires.
    """
    share, needed = facts.shapes.outlier_share, facts.shapes.n_for_tails
    return report_worst(facts, share, (share > SHARE) & (needed > facts.n_points))


@check("CVS006")
def heavy_tails(facts: LogFacts) -> Iterator[Finding]:
    """Report Hill's estimate of the tail index of the largest losses.

    Limit: below 2, with at least 1,000 losses and fewer than 25 times as many points as CVS007
    requires.
    """
    index, needed = facts.shapes.tail_index, facts.shapes.n_for_tails
    beyond = (index < TAIL) & (needed > facts.n_points)
    return report_worst(facts, index, beyond, smallest=True)


@check("CVS007")
def skewed(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of points required by the rule 25 x skewness^2.

    Limit: more than the log has.
    """
    needed, points = facts.shapes.n_for_skewness, facts.n_points
    return report_worst(facts, needed, needed > points, points=points)


@check("CVS008")
def few_points(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of points. Limit: below 30."""
    points = facts.design.splits().points
    if points is not None and points < ENOUGH_POINTS:
        yield Finding(points)


@check("CVS009")
def few_errors(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of rarer outcomes (0 or 1) among the points. Limit: below 10."""
    rare = facts.n_points * np.minimum(facts.shapes.rate, 1 - facts.shapes.rate)
    return report_worst(facts, rare, rare < 10, smallest=True)


@check("CVS010")
def constant_losses(facts: LogFacts) -> Iterator[Finding]:
    """Report the constant value of the loss. Limit: all losses equal."""
    lowest = facts.shapes.lowest
    return report_worst(facts, lowest, lowest == facts.shapes.highest)


@check("CVS011")
def negative_losses(facts: LogFacts) -> Iterator[Finding]:
    """Report the share of negative losses. Limit: all losses zero or below."""
    if "metric" in facts.log.metadata or facts.log.of_differences:  # with a score named in attrs
        return iter(())
    share = facts.shapes.negative
    return report_worst(facts, share, (facts.shapes.highest <= 0) & ~np.isnan(share))


# --- folds, sources and repetitions -----------------------------------------------------------


@check("CVS012")
def unequal_sizes(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of points in the largest fold, divided by the number in the smallest.

    Limit: above 2.
    """
    if facts.n_folds < 2:
        return
    sizes = facts.design.cell_table(fold_levels(facts.design)).total
    sizes = sizes[sizes > 0]
    most, least = int(sizes.max()), int(sizes.min())
    if most > 2 * least:
        unit = "source" if facts.by_source else "fold"
        yield Finding(most / least, facts={"unit": unit, "most": most, "least": least})


@check("CVS013")
def unequal_variances(facts: LogFacts) -> Iterator[Finding]:
    """Report the largest variance within a fold, divided by the median variance within folds.

    Limit: above 5, with at least 10 points in each fold.
    """
    if facts.n_folds < 2:
        return
    folds = facts.log.moments(fold_levels(facts.design))
    if folds.count.min() < 10:
        return
    variance = folds.m2 / (folds.count[:, None] - 1)
    typical = np.median(variance, axis=0)
    ratio = variance.max(axis=0) / np.where(typical > 0, typical, np.inf)
    yield from report_worst(facts, ratio, ratio > 5)


@check("CVS014")
def few_folds(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of folds.

    Limit: below 5, if points rather than sources are divided into folds.
    """
    k = facts.n_folds
    if 2 <= k < 5 and not facts.by_source:
        table = facts.design.cell_table(fold_levels(facts.design))
        sizes = table.total[table.used] / facts.n_points
        equal = np.ptp(sizes) * facts.n_points <= 1
        share, which = (1 - 1 / k, "each") if equal else (1 - sizes.max(), "one")
        yield Finding(k, facts={"share": share, "which": which})


@check("CVS015")
def few_sources(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of sources. Limit: below 30."""
    sources = facts.design.number("source")
    if 1 < sources < FEW_SOURCES and not facts.log.fixed_sources:
        yield Finding(sources)


@check("CVS016")
def few_splits(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of random splits. Limit: below 10."""
    design = facts.design
    number = design.number("repetition")
    if facts.resampled or not design.has("repetition") or number >= FEW_SPLITS:
        return
    if fewest_folds(design) > 1 or covers_all_points(design) or lacks_few_points(design):
        return
    yield Finding(number)


@check("CVS017")
def unstable(facts: LogFacts) -> Iterator[Finding]:
    """Report the standard deviation of the repetition means, divided by the standard error.

    Limit: above 1/2, with at least three repetitions of several folds, if models were trained; for
    one test set, a significant difference of at least a fifth of the variance.
    """
    folded = "fold" in facts.design.levels and facts.n_folds > 1
    seeds = repetition_level(facts.design)
    of_points = not (folded or facts.resampled) and "point" in facts.design.levels
    if of_points and facts.log.in_memory and repeats_test_set(facts.design):
        if facts.design.has("source"):
            table = facts.log.moments((*seeds, "source"))
            runs, units = sum_clusters(table, seeds, "source")
        else:
            runs, units = facts.log.moments(seeds), facts.log.moments(("point",))
        ratio, matters = seeds_matter(runs, units)
        yield from report_worst(facts, ratio[0], matters[0])
    if facts.log.only_tested or not (folded and repeats_whole(facts)):
        return
    ratio = measure_disagreement(facts.log.moments(seeds))[0]
    yield from report_worst(facts, ratio, ratio > DISAGREEMENT)


@check("CVS018")
def drift(facts: LogFacts) -> Iterator[Finding]:
    """Report the p-value of a test for a trend in the repetition means.

    Limit: below 0.01, with at least five repetitions.
    """
    if not repeats_whole(facts):
        return
    means = facts.log.moments(repetition_level(facts.design)).location
    if len(means) < 5:
        return
    p = np.array([trend_p_value(column) for column in means.T])
    yield from report_worst(facts, p, p < 0.01, smallest=True)


def repeats_whole(facts: LogFacts) -> bool:
    """Whether each repetition tests the same points; means of random splits always differ."""
    design = facts.design
    return not facts.resampled and design.has("repetition") and covers_all_points(design)


@check("CVS019")
def duplicated_models(facts: LogFacts) -> Iterator[Finding]:
    """Report the share of evaluations with identical losses. Limit: all of them."""
    log, means, sample = facts.log, facts.means, facts.sample
    if sample is None or sample.step > 1:
        return
    losses, size = sample.log.losses, sample.log.design.size

    def same(one: int, two: int) -> bool:
        pairs = zip(log.labels.columns(one).tolist(), log.labels.columns(two).tolist(), strict=True)
        return all(
            np.array_equal(losses.column(i, 0, size), losses.column(j, 0, size), True)
            for i, j in pairs
        )

    seen: dict[tuple[float, ...], list[int]] = {}
    for model in range(len(log.labels.models)):
        columns = log.labels.columns(model)
        key = tuple(np.nan_to_num(means[columns], nan=np.inf).tolist())  # NaN equals nothing
        earlier = next((one for one in seen.get(key, ()) if same(one, model)), None)
        if earlier is None:
            seen.setdefault(key, []).append(model)
        else:
            yield Finding(1, facts.name_model(model), {"other": facts.name_model(earlier)})


@check("CVS020")
def sources_across_folds(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of sources that occur in several folds. Limit: any."""
    design = facts.design
    if facts.n_folds < 2 or facts.by_source or not design.has("source"):
        return
    by = tuple(name for name in ("repetition", "fold", "source") if name in design.levels)
    codes = np.delete(design.cell_table(by).codes, by.index("fold"), axis=1)
    places, n_folds = np.unique(codes, axis=0, return_counts=True)
    shared = len(np.unique(places[n_folds > 1][:, -1]))
    if shared:
        yield Finding(shared, facts={"sources": design.number("source")})


# --- misread logs -----------------------------------------------------------------------------


@check("CVS021")
def unused_level(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of labels of the level.

    Limit: a level that no method uses, and whose name resembles a level that is missing.
    """
    design = facts.design
    for name, level in unrecognized_levels(design, crossed=facts.log.crossed).items():
        call = suggest_renaming(design, name, level)
        yield Finding(design.number(name), facts={"name": name, "level": level, "call": call})


@check("CVS022")
def scores(facts: LogFacts) -> Iterator[Finding]:
    """Report the mean loss.

    Limit: 0/1 losses whose mean is above 1/2 for every model, one value per split with such means
    below 1, or a model with the name of a score.
    """
    log, means = facts.log, facts.means
    made = log.metadata.get("loss") in LOSSES  # computed from truth and predictions
    if made or "metric" in log.metadata:  # the log records the score from which they were made
        return
    evaluated = means[~np.isnan(means)]
    high, below = len(evaluated) and (evaluated > 0.5).all(), (evaluated < 1).all()
    losses = ""
    if high and log.zero_one().all():
        losses = "0/1 losses"
    elif high and below and find_single_losses(facts.design, log.zero_one).all():
        losses = "values of splits"
    for model, name in enumerate(log.labels.models):
        own = means[log.labels.columns(model)]
        if np.isnan(own).all():
            continue
        mean = float(np.nanmean(own))
        if losses != "0/1 losses" and mean > 0 and names_a_score(name):
            yield Finding(mean, facts.name_model(model), {"losses": "losses named like a score"})
        elif losses:
            yield Finding(mean, facts.name_model(model), {"losses": losses})


@check("CVS023")
def one_loss_per_split(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of losses.

    Limit: one loss in each fold, split or row and no level point, below 100 in a repetition;
    rows without labels must not be 0/1 losses.
    """
    if find_single_losses(facts.design, facts.log.zero_one).all():
        yield Finding(int(facts.design.splits().rows.sum()))


@check("CVS024")
def unstable_differences(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of differences between models that depend on the training points.

    Limit: any. In repeated cross-validation, refits add more than 20% to the variance, and more
    than noise explains; in one partition of at least 30 points, two models are very similar.
    Neither shows anything about intervals over sources left out one at a time, or over sources and
    points.
    """
    models, wald = facts.log.labels.models, find_method("wald")
    if len(models) < 2 or facts.log.only_tested:
        return
    pairs = facts.log.with_all_pairs()
    try:
        if facts.recommended[0] == "out_of_source" or takes_two_ways(facts.log):
            return
        unstable = find_unstable(pairs)
        depend = ("depends", "depend")
        if unstable is None:  # one partition, which only shows that models are similar
            depend = ("may depend", "may depend")
            if wald.problem(facts.design) is not None:
                return
            caution = wald.run(pairs).caution
            unstable = np.asarray((caution & np.int64(Caution.UNSTABLE_DIFFERENCE)) != 0)
    except LogError:  # no method is recommended, or moments without pairs of models
        return
    number = len(models) * (len(models) - 1) // 2
    found = unstable.reshape(number, -1).max(axis=1)
    if found.any():
        one, two = (at[found.argmax()] for at in np.triu_indices(len(models), 1))
        many = int(found.sum())
        names = f"between {facts.name_model(one)} and {facts.name_model(two)}"
        if number == 1:
            what = f"the difference {names} {depend[0]}"
        elif many == 1:
            what = f"1 of the {number:,} differences, the one {names}, {depend[0]}"
        else:
            what = f"{many:,} of the {number:,} differences, such as the one {names}, {depend[1]}"
        yield Finding(many, facts={"differences": what})


# --- resampling, dates, duplicates and selection ------------------------------------------------


@check("CVS025")
def few_bootstrap_samples(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of bootstrap samples. Limit: below 100."""
    design = facts.design
    if not (design.has("count") and "repetition" in design.levels):
        return
    number = design.number("repetition")
    if design.has("repetition") and code_of(design, "repetition", 0) is not None:
        number -= 1  # the fit to the sample itself
    if number < 100:
        yield Finding(number)


@check("CVS026")
def overfitting(facts: LogFacts) -> Iterator[Finding]:
    """Report the error on the training points, divided by the out-of-bag error.

    Limit: below 0.05, in a bootstrap log that contains the fit to the data themselves.
    """
    log, method = facts.log, find_method("bootstrap_632")
    if method.problem(log.design) is not None:
        return
    (data,) = resamples(log.design)
    ratio = np.full(log.losses.width, np.nan)
    for j, values in enumerate(log.columns()):
        error = np.nan if values is None else point_means(data.bags, data.losses(values))[0]
        if values is not None and error > 0:
            ratio[j] = apparent_error(data, values) / error
    yield from report_worst(facts, ratio, ratio < INTERPOLATES, smallest=True)


@check("CVS027")
def serial_dependence(facts: LogFacts) -> Iterator[Finding]:
    """Report the correlation between the losses of successive dates.

    Limit: above 0.1 and 2.33 standard errors, if points are dates or times, in logs of up to a
    million losses; of moments in the first dates.
    """
    sample, other = facts.sample, facts.resampled or facts.design.scores
    if other or sample is None or facts.values is None:
        return
    found = measure_serial(sample.log.design, facts.values)
    if found is not None:
        yield from report_worst(facts, found[0], is_serial(*found))


@check("CVS028")
def duplicated_points(facts: LogFacts) -> Iterator[Finding]:
    """Report the share of evaluations whose losses equal those of another one in the same fold.

    Limit: at least 5%, at least 10 of them, and ten times as many as between different folds, or
    as losses that are equal for all models but one; in logs with several models or repetitions
    and up to a million losses.
    """
    sample, other = facts.sample, facts.resampled or facts.design.metric or facts.design.scores
    if other or sample is None or not sample.whole or facts.values is None:
        return
    copies = find_duplicates(sample.log, facts.values)
    if copies is not None:
        yield Finding(copies.share, facts={"paired": copies.paired, "total": copies.total})


@check("CVS029")
def best_of_many(facts: LogFacts) -> Iterator[Finding]:
    """Report the number of models whose error is within two standard errors of the smallest error.

    Limit: 5 or more, including the best model, in logs of up to a million losses.
    """
    log = facts.log
    if facts.values is None or len(log.labels.models) < NEAR or not has_best_model(log):
        return
    residuals, means = find_residuals(facts, facts.values)
    near, best = count_near_best(log, means, residuals)
    counts = np.full(log.losses.width, np.nan)
    counts[best] = near
    yield from report_worst(facts, counts, counts >= NEAR)


def find_residuals(facts: LogFacts, values: FloatArray) -> Residuals:
    """Scale the residuals of the sampling units of the recommended interval, about its means."""
    log = facts.log
    with suppress(LogError):  # no method is recommended, or it needs losses
        method = find_method(facts.recommended[0])
        found = method.find_residuals(log, {**method.defaults, **recommend_options(log)})
        if found is not None:
            return found[0]
    n = log.design.splits().points or log.design.size
    return residuals_of_points(values, n), facts.means


@check("CVS030")
def below_chance(facts: LogFacts) -> Iterator[Finding]:
    """Report the value of the AUC, the C index or a similar score.

    Limit: below 1/2.
    """
    metadata = facts.log.metadata
    below = is_below_chance(metadata, facts.means)
    if below.any():
        metric = str(metadata["metric"])
        yield from report_worst(
            facts, 1 - facts.means, below, smallest=True,
            score=METRICS[metric].words_at(metadata.get("at")),
            opposite=OPPOSITES.get(metric, "earlier times"),
        )  # fmt: skip


OPPOSITES = {"auc": "the negative class", "auc_at": "surviving"}
"""What larger predictions mean if such a score is below 1/2."""


@check("CVS031")
def censored(facts: LogFacts) -> Iterator[Finding]:
    """Report that the target of Harrell's C depends on censoring.

    Limit: any censored time.
    """
    if facts.design.metric and Caution.CENSORED in cautions_of_metric(facts.log.metadata):
        yield Finding()


@check("CVS032")
def predicted_labels(facts: LogFacts) -> Iterator[Finding]:
    """Report that a metric of scores, such as the AUC, was computed from predicted labels.

    Limit: the scores of a model take only two values.
    """
    if any(part.get("two_scores") for part in each_metric(facts.log.metadata)):
        yield Finding()


# --- statistics -------------------------------------------------------------------------------


def trend_p_value(means: FloatArray) -> float:
    """Two-sided p-value of a linear trend of the means over their number."""
    df = len(means) - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.corrcoef(np.arange(len(means)), means)[0, 1]  # NaN for equal means
        t = abs(r) * np.sqrt(df / (1 - r * r))
    return 1.0 if np.isnan(t) else float(2 * special.stdtr(df, -t))
