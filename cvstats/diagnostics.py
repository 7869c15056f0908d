"""Checks of a loss log: what makes its numbers doubtful, and what to do about it.

Each check is one function below its declaration (`check`): code, title, label and advice; the
docstring says what the number of a finding is and from where on it is reported. A check whose
finding bears on intervals names the member of `Caution` that results carry for it. `diagnose`, the
report and the guide read the declarations in `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import special

from cvstats.comparisons._pairs import pair_all_models
from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.folds import (
    count_folds,
    covers_all_points,
    fewest_folds,
    fold_level,
    fold_levels,
    has_one_loss_per_split,
    is_resampled,
    repetition_level,
)
from cvstats.core.suggestions import renaming, unused
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, plainly
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._differences import LARGEST_RATIO, repeats_folds, repetition_ratio
from cvstats.intervals._recommend import recommend_method
from cvstats.intervals.bootstrap import INTERPOLATES, apparent_error, out_of_bag_error
from cvstats.intervals.corrected_t import FEW_SPLITS
from cvstats.intervals.out_of_source import FEW_SOURCES
from cvstats.intervals.wald import DISAGREEMENT, measure_disagreement
from cvstats.log.bootstrap import resamples
from cvstats.log.checks import (
    NEAR,
    SHARE,
    TAIL,
    Shapes,
    count_near_best,
    find_twins,
    is_serial,
    measure_serial,
    measure_shapes,
    tabulate,
)
from cvstats.log.log import Log, Losses
from cvstats.log.read import read
from cvstats.recommend import interval


class Finding(NamedTuple):
    """One sentence about a log, the number behind it, and the model it is about."""

    words: str
    value: float = np.nan
    model: str = ""


Look: TypeAlias = "Callable[[Examination], Iterator[Finding]]"


@dataclass(frozen=True)
class Check:
    """One kind of finding.

    Parameters
    ----------
    code, title : str
        How it is listed.
    advice : str
        What to do about it.
    caution : Caution, optional
        The caution of results that it bears on, if it bears on any.
    unreadable : bool
        Whether it also looks at a log that no method can read.
    look : callable
        Yields the findings.
    """

    code: str
    title: str
    advice: str
    caution: Caution | None
    unreadable: bool
    look: Look

    @property
    def label(self) -> str:
        """The label of the caution; empty without one."""
        return "" if self.caution is None else self.caution.label


LARGE = 1_000_000
"""So many losses are looked at together, rows by columns."""

CHECKS: dict[str, Check] = {}
"""Every check by its code, in the order of the codes."""


def check(
    code: str,
    title: str,
    *,
    advice: str,
    caution: Caution | None = None,
    unreadable: bool = False,
) -> Callable[[Look], Look]:
    """Declare the function below to be a check; its docstring says what its number is."""

    def declare(look: Look) -> Look:
        CHECKS[code] = Check(code, title, advice, caution, unreadable, look)
        return look

    return declare


def diagnose(losses: Losses) -> pd.DataFrame:
    """Look for what makes the numbers of a log doubtful, and say what to do about it.

    The target is not an error but the log: outliers that carry the variance, heavy tails, unequal
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
        If the object is not a container of losses, or its losses are not in memory (dask).

    See Also
    --------
    cvstats.cautions : The labels of caution for each cell of an array.
    cvstats.methods : Every method, and whether the log allows it.
    cvstats.summary : The verdict of a log in three sentences.

    Notes
    -----
    With ``d_i = e_i - mean(e)``, outliers are measured by ``sum of the top 1% of d_i^2 / sum
    d_i^2``, skewness by the rule ``n > 25 G_1^2`` and tails by Hill's index. The limits are
    rules of thumb, and a finding is not a proof: a log without findings may still be wrong, and
    one with findings may be all there is. The page *Diagnostics* lists every code. Where an
    array has further dimensions, the worst cell of each model is reported.

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
    if not isinstance(getattr(losses, "attrs", None), dict) or getattr(losses, "chunks", None):
        read(losses)  # raises for what is not a container, or not in memory
    examination = Examination(losses)
    rows = [
        (check.code, finding.words, finding.model, finding.value, check.advice)
        for check in CHECKS.values()
        if check.unreadable or not examination.error
        for finding in check.look(examination)
    ]
    columns = ["code", "finding", "model", "value", "advice"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float})


class Examination:
    """A log under examination, and what several checks ask of it.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The log.
    """

    log: Log
    """The log as methods see it, unless there is an ``error``."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.error = ""
        self.missing: dict[str, int] = {}
        try:
            log = read(losses)
        except LogError as error:
            self.error = str(error)
            return
        self.missing = count_missing(log)  # raises for losses that are not in memory
        try:
            self.log = read(losses, missing="drop") if self.missing else log
            self.log.moments(())  # raises for losses that are not finite
        except LogError as error:
            self.error = str(error)

    @property
    def design(self) -> Design:
        """Which evaluation each row is."""
        return self.log.design

    @cached_property
    def resampled(self) -> bool:
        """Whether the log holds fits to other samples than the data."""
        return is_resampled(self.design)

    @cached_property
    def n_folds(self) -> int:
        """Number of folds in a repetition; 1 for logs of resampled data."""
        return 1 if self.resampled else count_folds(self.design)

    @cached_property
    def by_source(self) -> bool:
        """Whether the folds are the sources."""
        return fold_level(self.design) == "source"

    @cached_property
    def n_points(self) -> int:
        """Number of points, or of losses where points have no names."""
        return self.design.splits().points or self.design.size

    @cached_property
    def means(self) -> FloatArray:
        """Mean loss of each column; NaN for an empty cell."""
        means: FloatArray = self.log.moments(()).location[0]
        return means

    @cached_property
    def table(self) -> FloatArray | None:
        """The losses, rows by columns; None for many, for scores, and for those of a metric."""
        log, design = self.log, self.design
        large = design.size * log.panels.width > LARGE
        return None if large or design.scores or design.metric else tabulate(log, None)

    @cached_property
    def shapes(self) -> Shapes:
        """The distributions of the losses in the columns, each of which is read once."""
        present = self.design.present
        found = np.full((self.log.panels.width, len(Shapes._fields)), np.nan)
        for j, column in enumerate(self.log.columns()):
            if column is not None:
                found[j] = measure_shapes(column if present is None else column[present])
        return Shapes(*found.T)

    def report_worst(
        self, values: FloatArray, exceeded: MaskArray, words: str, *, smallest: bool = False
    ) -> Iterator[Finding]:
        """Yield a finding for each model with a column beyond the limit: the worst one.

        ``values`` and ``exceeded`` have an entry for each column; ``words`` formats the value.
        """
        for model in range(len(self.log.labels.models)):
            columns = self.log.labels.columns(model)
            beyond = values[columns][exceeded[columns]]
            if len(beyond):
                value = float(beyond.min() if smallest else beyond.max())
                cells = f", in {len(beyond):,} of {len(columns):,} cells" * (len(columns) > 1)
                yield Finding(words.format(value) + cells, value, name_model(self.log, model))


def name_model(log: Log, model: int) -> str:
    """Return the name of a model; empty for the one model without a name."""
    name = log.labels.models[model]
    return "" if name is None else str(name)


def count_missing(log: Log) -> dict[str, int]:
    """Count the missing and infinite losses of each model that has some, outside empty cells."""
    masked, present = set(log.masked().tolist()), log.design.present
    found = {}
    for model in range(len(log.labels.models)):
        total = 0
        for j in log.labels.columns(model).tolist():
            if j not in masked:
                bad = ~np.isfinite(log.panels.column(j, 0, log.design.size))
                total += int(np.count_nonzero(bad if present is None else bad[present]))
        if total:
            found[name_model(log, model)] = total
    return found


# --- the log as a whole -----------------------------------------------------------------------


@check(
    "CVS001",
    "Unreadable log",
    unreadable=True,
    advice="Correct what the sentence names; no method takes the log before that.",
)
def unreadable_log(examination: Examination) -> Iterator[Finding]:
    """Report that the log contradicts itself."""
    if examination.error:
        yield Finding(examination.error)


@check(
    "CVS002",
    "Missing losses",
    unreadable=True,
    advice="Find out why the model failed there: the hard points are often the ones that go "
    "missing. missing='drop' leaves missing losses out for all models; an infinite log-loss is "
    "bounded by cvstats.losses(…, clip=1e-6).",
)
def missing_losses(examination: Examination) -> Iterator[Finding]:
    """Report the number of losses that are missing or infinite. Limit: any."""
    for model, total in examination.missing.items():
        words = f"{total:,} {'loss is' if total == 1 else 'losses are'} missing or infinite"
        yield Finding(words, total, model)


@check(
    "CVS003",
    "Incomplete partition",
    advice="Add the missing evaluations, or keep the points that every repetition has. Until "
    "then the log is taken for random splits.",
)
def incomplete_partition(examination: Examination) -> Iterator[Finding]:
    """Report the share of the points that the smallest repetition lacks.

    Limit: a log with folds whose repetitions do not test the same points.
    """
    splits = examination.design.splits()
    if examination.n_folds < 2 or splits.points is None or covers_all_points(examination.design):
        return
    fewest = int(splits.rows.min())
    words = f"a repetition tests {fewest:,} of the {splits.points:,} points only"
    yield Finding(words, 1 - fewest / splits.points)


@check(
    "CVS004",
    "No method for this log",
    advice="See methods() for what is missing and which resampling plan makes it.",
)
def no_method(examination: Examination) -> Iterator[Finding]:
    """Report that interval() refuses the log."""
    try:
        method, _ = recommend_method(examination.log)
        words = find_method(method).problem(examination.design)
        if words is None:
            interval(examination.losses, missing="drop" if examination.missing else "raise")
    except LogError as error:
        words = str(error)
    if words is not None:
        yield Finding(words)


# --- the losses of each model -----------------------------------------------------------------


@check(
    "CVS005",
    "Outliers carry the variance",
    caution=Caution.HEAVY_TAILS,
    advice="Look at these points first. The standard error rests on them, so check the data, "
    "or use a loss that is less sensitive, such as the absolute error.",
)
def outliers(examination: Examination) -> Iterator[Finding]:
    """Report the share of the sum of squares in the top 1% of the losses.

    Limit: above 1/2, from 100 losses on.
    """
    if examination.design.metric:  # its influences are few and large where a class is rare
        return iter(())
    share = examination.shapes.outlier_share
    return examination.report_worst(
        share, share > SHARE, "the top 1% of the losses carry {:.0%} of the sum of squares"
    )


@check(
    "CVS006",
    "Heavy tails",
    caution=Caution.HEAVY_TAILS,
    advice="The variance of such losses may not exist, and then no standard error means "
    "anything. Use a bounded or clipped loss, or the logarithm.",
)
def heavy_tails(examination: Examination) -> Iterator[Finding]:
    """Report the tail index (Hill) of the largest losses. Limit: below 2, from 1,000 losses on."""
    if examination.design.metric:  # as for the outliers
        return iter(())
    index = examination.shapes.tail_index
    return examination.report_worst(
        index,
        index < TAIL,
        "the largest losses fall off like a power law of index {:.1f}",
        smallest=True,
    )


@check(
    "CVS007",
    "Too skewed for so few points",
    caution=Caution.SKEWED,
    advice="The normal approximation is rough: use interval='hall' of wald or holdout, and do not "
    "rely on p-values near alpha.",
)
def skewed(examination: Examination) -> Iterator[Finding]:
    """Report the points that the rule 25 x skewness^2 asks for. Limit: more than there are."""
    n = examination.n_points
    needed = examination.shapes.n_for_skewness
    return examination.report_worst(
        needed, needed > n, f"losses this skewed need {{:,.0f}} points, and there are {n:,}"
    )


@check(
    "CVS008",
    "Few points",
    caution=Caution.FEW_POINTS,
    advice="The normal approximation is rough. Collect more points before comparing models.",
)
def few_points(examination: Examination) -> Iterator[Finding]:
    """Report the number of points. Limit: below 30."""
    points = examination.design.splits().points
    if points is not None and points < 30:
        yield Finding(f"the log has only {points} points", points)


@check(
    "CVS009",
    "Few errors",
    caution=Caution.FEW_ERRORS,
    advice="Use interval(), or interval='wilson' of wald or holdout.",
)
def few_errors(examination: Examination) -> Iterator[Finding]:
    """Report the number of rarer outcomes (0 or 1) among the points. Limit: below 10."""
    rare = np.minimum(examination.shapes.rate, 1 - examination.shapes.rate)
    rare *= examination.n_points
    return examination.report_worst(
        rare, rare < 10, "the rarer outcome occurs at {:.3g} points only", smallest=True
    )


@check(
    "CVS010",
    "Constant losses",
    caution=Caution.ZERO_VARIANCE,
    advice="Check that the column holds losses; an interval of no width says nothing.",
)
def constant_losses(examination: Examination) -> Iterator[Finding]:
    """Report the one value of the loss. Limit: all losses equal."""
    lowest = examination.shapes.lowest
    highest = examination.shapes.highest
    return examination.report_worst(lowest, lowest == highest, "every loss is {:g}")


@check(
    "CVS011",
    "Negative losses",
    advice="Losses are better when smaller. If these are scores, turn their sign.",
)
def negative_losses(examination: Examination) -> Iterator[Finding]:
    """Report the share of negative losses. Limit: all losses zero or below."""
    if "metric" in examination.log.noted:  # the log says of which score they were made
        return iter(())
    share = examination.shapes.negative
    highest = examination.shapes.highest
    return examination.report_worst(
        share,
        (highest <= 0) & ~np.isnan(share),
        "no loss is positive, and {:.0%} are negative: are these scores?",
    )


# --- folds, sources and repetitions -----------------------------------------------------------

GROUP_METHODS = " or ".join(
    f"{name}()" for name in interval_names(of_groups=True) if not find_method(name).plan
)
"""The intervals for groups that need no resampling plan of their own."""


@check(
    "CVS012",
    "Folds of unequal size",
    advice="Choose whether points or folds get equal weight: wald(fold_weights='size') or 'equal'; "
    "for sources of such different sizes use clustered().",
)
def unequal_sizes(examination: Examination) -> Iterator[Finding]:
    """Report the points in the largest fold over those in the smallest. Limit: above 2."""
    if examination.n_folds < 2:
        return
    sizes = examination.design.cell_table(fold_levels(examination.design)).total
    sizes = sizes[sizes > 0]
    most, least = int(sizes.max()), int(sizes.min())
    if most > 2 * least and most - least > 1:
        what = "source" if examination.by_source else "fold"
        words = f"the largest {what} has {most:,} points and the smallest {least:,}"
        yield Finding(words, most / least)


@check(
    "CVS013",
    "Folds of unequal variance",
    advice="Look at what is in that fold: a group of its own, a few outliers, or a failed fit.",
)
def unequal_variances(examination: Examination) -> Iterator[Finding]:
    """Report the variance of the most variable fold over that of the median fold.

    Limit: above 5, with 10 points or more in each fold.
    """
    if examination.n_folds < 2:
        return
    folds = examination.log.moments(fold_levels(examination.design))
    if folds.count.min() < 10:
        return
    variance = folds.m2 / (folds.count[:, None] - 1)
    typical = np.median(variance, axis=0)
    ratio = variance.max(axis=0) / np.where(typical > 0, typical, np.inf)
    yield from examination.report_worst(
        ratio, ratio > 5, "the variance of one fold is {:.1f} times that of the median fold"
    )


@check(
    "CVS014",
    "Few folds",
    advice="Each model was trained on much less than all data, so its error is larger than "
    "that of the final model. Use 5 folds or more.",
)
def few_folds(examination: Examination) -> Iterator[Finding]:
    """Report the number of folds. Limit: below 5, where points and not sources are split."""
    k = examination.n_folds
    if 2 <= k < 5 and not examination.by_source:
        yield Finding(f"with {k} folds each model was trained on {1 - 1 / k:.0%} of the points", k)


@check(
    "CVS015",
    "Few sources",
    caution=Caution.FEW_SOURCES,
    advice="An interval for a new source rests on these few; collect more sources, not more "
    "points of these.",
)
def few_sources(examination: Examination) -> Iterator[Finding]:
    """Report the number of sources. Limit: below 30."""
    sources = examination.design.number("source")
    if 1 < sources < FEW_SOURCES and not examination.log.fixed_sources:
        yield Finding(f"the log has only {sources} sources", sources)


@check(
    "CVS016",
    "Few splits",
    caution=Caution.FEW_SPLITS,
    advice="The standard error itself is noisy. Draw more splits; they are cheap beside new data.",
)
def few_splits(examination: Examination) -> Iterator[Finding]:
    """Report the number of random splits. Limit: below 10."""
    design = examination.design
    number = design.number("repetition")
    if examination.resampled or not design.has("repetition") or number >= FEW_SPLITS:
        return
    if fewest_folds(design) < 2 and not covers_all_points(design):
        yield Finding(f"the log has only {number} random splits", number)


@check(
    "CVS017",
    "Repetitions disagree",
    caution=Caution.UNSTABLE,
    advice="How the data were split matters nearly as much as which data they are. Repeat more "
    "often, or use more folds; an unstable learner has no guarantee.",
)
def unstable(examination: Examination) -> Iterator[Finding]:
    """Report the standard deviation of the repetition means over the standard error.

    Limit: above 1/2, from three repetitions on. Not of the tasks of a benchmark, where nothing was
    split or trained.
    """
    if examination.log.fixed_sources or not repeats_whole(examination):
        return
    rows = examination.log.moments(repetition_level(examination.design))
    ratio = measure_disagreement(rows, np.array([0]))[0]
    yield from examination.report_worst(
        ratio, ratio > DISAGREEMENT, "the means of the repetitions differ by {:.2f} standard errors"
    )


@check(
    "CVS018",
    "Drift across repetitions",
    advice="Repetitions should not depend on their number. Look for a seed, a cache or a warm "
    "start that is carried from one to the next.",
)
def drift(examination: Examination) -> Iterator[Finding]:
    """Report the p-value of a trend of the repetition means.

    Limit: below 0.01, from five repetitions on.
    """
    if not repeats_whole(examination):
        return
    means = examination.log.moments(repetition_level(examination.design)).location
    if len(means) < 5:
        return
    p = np.array([trend_p_value(column) for column in means.T])
    yield from examination.report_worst(
        p, p < 0.01, "the mean loss drifts over the repetitions (p = {:.1g})", smallest=True
    )


def repeats_whole(examination: Examination) -> bool:
    """Whether each repetition tests the same points; means of random splits differ anyway."""
    design = examination.design
    return not examination.resampled and design.has("repetition") and covers_all_points(design)


@check(
    "CVS019",
    "Duplicated models",
    caution=Caution.IDENTICAL,
    advice="One of them may be a copy, or a fall-back to the same predictions. Leave one out: "
    "it only makes adjusted p-values larger.",
)
def duplicated_models(examination: Examination) -> Iterator[Finding]:
    """Report the share of the evaluations with the very same loss. Limit: all of them."""
    log, means = examination.log, examination.means

    def same(one: int, two: int) -> bool:
        pairs = zip(log.labels.columns(one).tolist(), log.labels.columns(two).tolist(), strict=True)
        size = log.design.size
        return all(
            np.array_equal(log.panels.column(i, 0, size), log.panels.column(j, 0, size), True)
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
            words = f"every loss is the same as that of {name_model(log, earlier)}"
            yield Finding(words, 1, name_model(log, model))


@check(
    "CVS020",
    "Sources in training and test",
    caution=Caution.SOURCES_IGNORED,
    advice=f"Losses of one source depend on each other. Use {GROUP_METHODS}, or leave out whole "
    "sources at a time (cvstats.plans.leave_one_source_out).",
)
def sources_across_folds(examination: Examination) -> Iterator[Finding]:
    """Report the number of sources that occur in several folds. Limit: any."""
    design = examination.design
    if examination.n_folds < 2 or examination.by_source or not design.has("source"):
        return
    by = tuple(name for name in ("repetition", "fold", "source") if name in design.levels)
    codes = np.delete(design.codes_of(design.cell_table(by)), by.index("fold"), axis=1)
    places, n_folds = np.unique(codes, axis=0, return_counts=True)
    shared = len(np.unique(places[n_folds > 1][:, -1]))
    if shared:
        words = (
            f"{shared:,} of {design.number('source'):,} sources occur in several folds, so models "
            f"were tested on sources that they were trained on"
        )
        yield Finding(words, shared)


# --- what the log may mean instead ------------------------------------------------------------


@check(
    "CVS021",
    "Unused level",
    caution=Caution.UNUSED_LEVEL,
    advice="No method uses the level, and without it an interval may be far too narrow. Rename "
    "it as the sentence says, if it is that; by= uses a level of any name.",
)
def unused_level(examination: Examination) -> Iterator[Finding]:
    """Report the number of labels of the level.

    Limit: a level that no method knows, named like one that the log lacks.
    """
    design = examination.design
    for name, level in unused(design).items():
        number = design.number(name)
        words = (
            f"level {name!r} has {number:,} labels and is not used, and it may name the {level}s: "
            f"if so, type {renaming(design, name, level)}"
        )
        yield Finding(words, number)


@check(
    "CVS022",
    "Scores for losses",
    advice="Turn scores into losses: 1 - x for hits and accuracies, -x for scores that can be any "
    "number; read_log(…, higher_is_better=True) does it.",
)
def scores(examination: Examination) -> Iterator[Finding]:
    """Report the mean loss.

    Limit: losses of 0 and 1 whose mean is above 1/2 for every model, or a model with the name
    of a score.
    """
    log, means = examination.log, examination.means
    if "metric" in log.noted:  # the log says of which score they were made
        return
    evaluated = means[~np.isnan(means)]
    hits = bool(len(evaluated) and (evaluated > 0.5).all()) and bool(log.zero_one().all())
    for model, name in enumerate(log.labels.models):
        own = means[log.labels.columns(model)]
        if np.isnan(own).all():
            continue
        mean = float(np.nanmean(own))
        if hits or (mean > 0 and names_a_score(name)):
            what = "losses of 0 and 1" if hits else "losses with the name of a score"
            words = (
                f"{what} have the mean {mean:.3g}: are these scores? Lower is better here, and "
                f"scores rank the models upside down"
            )
            yield Finding(words, mean, name_model(log, model))


SCORES = {
    "acc", "accuracy", "auc", "auroc", "correct", "correctness", "exact-match", "f1", "hit", "hits",
    "precision", "r2", "recall", "roc-auc", "score", "scores",
}  # fmt: skip
"""Names of what is better when larger."""


def names_a_score(name: object) -> bool:
    """Whether a column has the name of a score, perhaps of a certain kind: ``test_accuracy``."""
    words = plainly(name) if isinstance(name, str) else ""
    lead, _, last = words.rpartition("-")
    return words in SCORES or (lead in ("balanced", "mean", "test", "val") and last in SCORES)


@check(
    "CVS023",
    "One loss for each split",
    caution=Caution.ONE_EACH,
    advice="The mean of a fold is not a point: log.attrs['holds'] = 'scores' says what these "
    "are, and corrected_t is made for them. Losses of points are better.",
)
def one_loss_per_split(examination: Examination) -> Iterator[Finding]:
    """Report the number of losses.

    Limit: one loss in each fold or split and no level point, below 100 in a repetition.
    """
    if has_one_loss_per_split(examination.design):
        number = int(examination.design.splits().rows.sum())
        words = f"the log has one loss for each of {number:,} splits: are these means or scores?"
        yield Finding(words, number)


@check(
    "CVS024",
    "Unstable differences",
    caution=Caution.UNSTABLE_DIFFERENCE,
    advice="An interval of a difference that counts points, such as compare() takes by default, "
    "may be far too narrow. Use compare(method='corrected_t'), or nested_cv.",
)
def unstable_differences(examination: Examination) -> Iterator[Finding]:
    """Report the standard deviation of a difference's repetition means over its standard error.

    Limit: above 0.3 for any two models, from three repetitions on.
    """
    log = examination.log
    models = log.labels.models
    if len(models) < 2 or not repeats_folds(log):
        return
    pairs = pair_all_models(log)
    ratio = repetition_ratio(log.moments(repetition_level(examination.design), pairs))
    ratio = ratio.reshape(len(models) * (len(models) - 1) // 2, -1)
    worst = np.where(np.isnan(ratio), 0.0, ratio).max(axis=1)
    beyond = int((worst > LARGEST_RATIO).sum())
    if beyond:
        one, two = (at[worst.argmax()] for at in np.triu_indices(len(models), 1))
        names = f"{name_model(log, one)} minus {name_model(log, two)}"
        yield Finding(
            f"the repetition means of {names} differ by {worst.max():.2f} standard errors; of "
            f"{len(worst):,} differences, {beyond:,} exceed {LARGEST_RATIO}",
            float(worst.max()),
        )


# --- what resampling, dates, copies and a choice do ---------------------------------------------


@check(
    "CVS025",
    "Few bootstrap samples",
    caution=Caution.FEW_REPLICATES,
    advice="The standard error and the limits are noisy. Draw more samples.",
)
def few_bootstrap_samples(examination: Examination) -> Iterator[Finding]:
    """Report the number of bootstrap samples. Limit: below 100."""
    design = examination.design
    if not design.has("count"):
        return
    number = design.number("repetition") - count_apparent_fits(design)
    if number < 100:
        yield Finding(f"the log has only {number} bootstrap samples", number)


def count_apparent_fits(design: Design) -> int:
    """Count the repetitions of a bootstrap log that are the fit to the sample itself: number 0."""
    if not design.has("repetition"):
        return 0
    used = design.codes_of(design.cell_table(("repetition",)))[:, 0].tolist()
    labels = design.levels["repetition"].labels
    return sum(1 for code in used if labels[code] == 0)


@check(
    "CVS026",
    "Overfitting",
    caution=Caution.OVERFITTING,
    advice="What starts from the error on the training points is then too small, or too narrow: "
    "location_shifted, two_stage(correction='harrell') and the plain .632. Use bootstrap_oob.",
)
def overfitting(examination: Examination) -> Iterator[Finding]:
    """Report the error on the training points over that of points out of bag.

    Limit: below 0.05, in bootstrap samples with the fit to the sample itself.
    """
    log, method = examination.log, find_method("bootstrap_632")
    if method.problem(log.design) is not None:
        return
    (data,) = resamples(log.design)
    ratio = np.full(log.panels.width, np.nan)
    for j, values in enumerate(log.columns()):
        error = np.nan if values is None else out_of_bag_error(data.bags, data.losses(values))
        if values is not None and error > 0:
            ratio[j] = apparent_error(data, values) / error
    yield from examination.report_worst(
        ratio,
        ratio < INTERPOLATES,
        "the error on the training points is {:.0%} of that out of bag",
        smallest=True,
    )


@check(
    "CVS027",
    "Serial dependence",
    caution=Caution.SERIAL_DEPENDENCE,
    advice="Neighbours share information, so there are fewer losses than it seems. Use ordered, or "
    "make blocks of dates the level 'source' and use clustered.",
)
def serial_dependence(examination: Examination) -> Iterator[Finding]:
    """Report the correlation of the losses of neighbouring dates.

    Limit: above 0.1 and 2.33 standard errors, where points are dates or times, in logs of up to
    a million losses.
    """
    if examination.resampled or examination.table is None:
        return
    found = measure_serial(examination.design, examination.table)
    if found is not None:
        yield from examination.report_worst(
            found[0], is_serial(*found), "losses of neighbouring dates have a correlation of {:.2f}"
        )


@check(
    "CVS028",
    "Duplicated points",
    caution=Caution.DUPLICATED_POINTS,
    advice="A point that is stored twice is trained on and tested on, and counts double. Keep one "
    "of each, or give both one label of 'source' and use grouped folds.",
)
def duplicated_points(examination: Examination) -> Iterator[Finding]:
    """Report the share of the evaluations with the losses of one other evaluation of their fold.

    Limit: 5% and 10 of them or more, ten times as many as have such losses elsewhere; in several
    models or repetitions, and logs of up to a million losses.
    """
    if examination.resampled or examination.table is None:
        return
    twins = find_twins(examination.log, examination.table)
    if twins is not None and twins.found:
        words = (
            f"{twins.paired:,} of {twins.total:,} evaluations have the very same losses as one "
            f"other of their fold: are points stored twice?"
        )
        yield Finding(words, twins.share)


@check(
    "CVS029",
    "Best of many",
    caution=Caution.SELECTED,
    advice="The smallest of many errors is partly luck: it is too small, and its interval too low. "
    "Report it on points that played no part in the choice; winner allows for the choice.",
)
def best_of_many(examination: Examination) -> Iterator[Finding]:
    """Report the number of models within two standard errors of the smallest error.

    Limit: 5 or more, that model included, in logs of up to a million losses.
    """
    log = examination.log
    if examination.resampled or examination.table is None or len(log.labels.models) < NEAR:
        return
    near, best = count_near_best(log, examination.means, examination.table)
    counts = np.full(log.panels.width, np.nan)
    counts[best] = near
    yield from examination.report_worst(
        counts, counts >= NEAR, "{:.0f} models are within two standard errors of this one, the best"
    )


# --- the numbers ------------------------------------------------------------------------------


def trend_p_value(means: FloatArray) -> float:
    """Two-sided p-value of a linear trend of the means over their number."""
    number = np.arange(len(means)) - (len(means) - 1) / 2
    deviation = means - means.mean()
    scale = np.sqrt((number @ number) * (deviation @ deviation))
    if scale <= 0:
        return 1.0
    r = float(np.clip(number @ deviation / scale, -1, 1))
    df = len(means) - 2
    if abs(r) == 1:
        return 0.0
    return float(2 * special.stdtr(df, -abs(r) * (df / (1 - r * r)) ** 0.5))
