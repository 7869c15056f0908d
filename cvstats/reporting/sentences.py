"""The summary of a log in sentences, and numbers and designs in words."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import Caution, cautions_by_label
from cvstats.core.orientation import OFF_TARGET
from cvstats.core.types import MaskArray
from cvstats.diagnostics import CHECKS
from cvstats.errors import LogError, checked_choice
from cvstats.facts import LogFacts
from cvstats.formatting import (
    has_caution,
    narrow_cautions,
    printable,
    rename_loss,
    result_frame,
    sentences_in,
)
from cvstats.intervals import interval_names
from cvstats.intervals._method import OF_TWO
from cvstats.large.frames import delay_answer, has_columns_of_models
from cvstats.large.moments import Moments
from cvstats.log.display import count_decimals, display_width
from cvstats.log.groups import METRIC, Groups, failed_groups
from cvstats.log.log import WITHOUT_PAIRS, Losses
from cvstats.log.metadata import LOSS_WORDS, UNDESCRIBED, has_several_contrasts
from cvstats.log.read import MISSING, is_dask_frame, read
from cvstats.log.tables import as_container, names_a_score
from cvstats.metrics import METRICS
from cvstats.options import Missing, check_alpha, known_name, whole_number
from cvstats.recommend import BY_NAME
from cvstats.reporting.verdict import NOISE, Verdict, area_weights

NAMED = 4
"""Maximum number of names listed; the others are counted."""


OF_TEST_SET = "one test set of"
"""How the reason for a method that is made for one test set begins."""


def describe_basis(verdict: Verdict) -> str:
    """Describe what was evaluated, by the counts in the attrs of a result, or in its cells."""
    facts = verdict.attrs
    whole = {name: facts[name] for name in facts if isinstance(facts[name], (int, float))}
    points = f"{whole['n_points']:,.0f} points" if "n_points" in whole else ""
    if "n_points" in verdict.frame and not points:
        least, most = verdict.frame["n_points"].agg(["min", "max"])
        points = f"{least:,.0f} to {most:,.0f} points"
    times = int(whole.get("n_repetitions", 1))
    again = f"{times:,} repetitions of " if times > 1 else ""
    method = facts.get("method")
    groups = whole.get("n_sources", whole.get("n_clusters"))
    if groups is not None:
        return f"{points} from {groups:,.0f} {verdict.facts.log.source_name}s"
    if verdict.facts.attrs.get("holds") == "scores" and "n_splits" in whole:
        size = whole.get("n_test", 1.0)  # 1 if only their share of the points is known
        each = f" of {'' if size == int(size) else 'about '}{size:,.0f} points" * (size > 1)
        return f"{whole['n_splits']:,.0f} test sets{each}"
    if method == "holdout" or whole.get("n_folds") == 1:
        return f"{OF_TEST_SET} {points}" + (f", evaluated {times:,} times" if times > 1 else "")
    if method in ("wald", "refit_corrected") and points and "n_folds" in whole:
        alone = whole["n_folds"] == whole.get("n_points")
        what = "leave-one-out" if alone else f"{whole['n_folds']:,.0f}-fold"
        return f"{points} in {again}{what} cross-validation"
    if "n_splits" in whole and "n_divisions" not in whole:
        return (f"{points} in " if points else "") + f"{whole['n_splits']:,.0f} splits"
    reason = str(facts.get("reason", "")).replace(BY_NAME, "")
    if facts.get("by") == "source, point" and ": " in reason:
        return reason.partition(": ")[2].partition(", and ")[0]
    reason = reason.partition(";")[0].partition(":")[0]
    if points and reason.startswith(OF_TEST_SET):  # without the points that were dropped
        return f"{OF_TEST_SET} {points}"
    return f"{points} in {reason}" if reason and points not in reason else reason or points


DIFFERENCE_IN = "difference in "
"""The beginning of names of differences."""


def describe_target(verdict: Verdict, attrs: Mapping[Any, Any]) -> str:
    """Describe the target of a result: by the name of a score, or for a loss without "risk"."""
    target, name = name_sources(str(attrs["target"]), attrs), verdict.scale.name
    if name.startswith(DIFFERENCE_IN):  # the target says so itself
        name = name.removeprefix(DIFFERENCE_IN).partition(" (")[0]
    if isinstance(attrs.get("metric"), str) and not LOSS_WORDS.search(target):
        return rename_loss(target, attrs["loss"], name.removeprefix("mean "))
    if verdict.scale.orientation == "error":
        target = target.replace("risk", "error").replace("mean loss", name)
        return re.sub(r"expected loss\b", f"expected {name.removeprefix('mean ')}", target)
    return LOSS_WORDS.sub(name, target)


def name_sources(text: str, attrs: Mapping[Any, Any]) -> str:
    """Call groups that are sources by that name; a contrast remains one between groups."""
    words = r"(?<!between )\bgroup(s?)\b"
    return re.sub(words, r"source\1", text) if attrs.get("by") == "source" else text


def write_p_value(p: float, alpha: float) -> str:
    """Format a p-value for a sentence so that rounding does not cross alpha."""
    if p < 0.001 <= alpha:
        return "p < 0.001"
    if p > 0.995:
        return "p > 0.99"
    decimals = 3 if p < 0.1 else 2
    while (float(f"{p:.{decimals}f}") < alpha) != (p < alpha):
        decimals += 1
    return f"p = {p:.{decimals}f}"


def join_words(words: Sequence[str]) -> str:
    """Join words by commas, and the last one by "and"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def list_names(names: Sequence[str]) -> str:
    """List some names, and count the others."""
    shown = list(names)
    if len(names) > NAMED:
        shown[NAMED - 1 :] = [f"{len(names) - NAMED + 1:,} more"]
    return join_words(shown)


def count_further_models(verdict: Verdict) -> str:
    """Count the differences that are not named."""
    rest = len(verdict.models) - NAMED
    verb = "is" if rest == 1 else "are"
    return f"; {rest:,} more {verb} in the table of interval()" if rest > 0 else ""


SCORES = "CVS022"
"""The check that finds scores passed as losses."""


@dataclass(frozen=True, repr=False)
class Summary:
    """At most three sentences about a log, and its cautions.

    Parameters
    ----------
    sentences : tuple of str
        Which model is best or tied, by how much, how large the error is, and over what.
    cautions : mapping
        The sentence of each caution that occurs, by label.
    advice : mapping
        The advice for each, by label.
    """

    sentences: tuple[str, ...]
    cautions: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield each sentence, and each caution by its label with its advice."""
        yield from (("", sentence, "") for sentence in self.sentences)
        for label, sentence in self.cautions.items():
            yield label, sentence, self.advice[label]

    @property
    def text(self) -> str:
        """The sentences alone, as a paragraph."""
        return self.paragraphs(display_width())[0]

    def paragraphs(self, width: int) -> list[str]:
        """Write the sentences as a paragraph, and one for each caution, in lines of a width."""
        paragraphs = [printable(" ".join(self.sentences))]
        for label, sentence in self.cautions.items():
            paragraphs.append(f"Caution, {label}: {sentence} {self.advice[label]}")
        return [fill(words, width, break_on_hyphens=False) for words in paragraphs]

    def write(self, width: int) -> str:
        """Write all paragraphs, in lines of a width."""
        return "\n".join(self.paragraphs(width))

    def __str__(self) -> str:
        """Write all paragraphs, in lines that fit."""
        return self.write(display_width())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Write the sentences as a paragraph of HTML, and the cautions as a list."""
        text = f"<p>{escape(printable(' '.join(self.sentences)))}</p>"
        cautions = "".join(
            f"<li>{escape(f'{sentence} {self.advice[label]}')}</li>"
            for label, sentence in self.cautions.items()
        )
        return f"{text}<ul>{cautions}</ul>" if cautions else text


class Summaries(dict[Hashable, Summary]):
    """The summaries of the parts of a log, by the labels of a level.

    Parameters
    ----------
    by : str
        The level.
    parts : mapping
        The summary of each label.
    """

    def __init__(self, by: str, parts: Mapping[Hashable, Summary]) -> None:
        super().__init__(parts)
        self.by = by

    def write(self, width: int) -> str:
        """Write the summaries in sequence, each below its label, in lines of a width."""
        return self.join({label: part.write(width) for label, part in self.items()})

    def paragraphs(self, width: int) -> list[str]:
        """Write the sentences alone, those of each summary below its label."""
        return [self.join({label: part.paragraphs(width)[0] for label, part in self.items()})]

    def join(self, texts: Mapping[Hashable, str]) -> str:
        """Join the text of each summary, below its label."""
        parts = (f"{printable(f'{self.by}={label}')}\n{text}" for label, text in texts.items())
        return "\n\n".join(parts)

    def __str__(self) -> str:
        """Write the summaries in sequence, in lines that fit."""
        return self.write(display_width())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Write the summaries as HTML, each below its label."""
        return "".join(
            f"<h4>{escape(printable(f'{self.by}={label}'))}</h4>{part._repr_html_()}"
            for label, part in self.items()
        )


def summary(
    losses: Losses,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    seed: int = 0,
    missing: Missing = "raise",
) -> Summary | Any:
    """Summarize in at most three sentences which model is best, and whether this is significant.

    The target is the target of the interval that `interval` recommends for this log; the last
    sentence states it. The interval and the p-value in a sentence always agree: the interval
    excludes 0 if and only if ``p < alpha``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    method : str, optional
        The name of an interval, for the models and for their differences; by default the choices
        of `interval` and `compare` for this log.
    alpha : float, optional
        One minus the level of intervals and tests.
    by : str, optional
        A level (or coordinate): a summary for each of its labels, as if it were a separate log:
        its limits and p-values are not adjusted for the other labels. `compare` with ``by``
        adjusts p-values for all of them.
        With several metrics each has a summary, even without ``by="metric"``.
    seed : int, optional
        The seed of the draws of ``"max-t"``, for three or more models.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    Summary
        ``sentences``, ``cautions`` (those that occur, by label) and ``advice``; it prints as a
        paragraph, and as HTML in a notebook. For a dask frame it is delayed. With ``by``, a
        mapping from each label to its summary.

    Raises
    ------
    LogError
        If no interval applies to this log. If one does but no comparison, the sentences state
        that the models were not compared.

    Notes
    -----
    All pairs of models are compared, however many there are, by ``compare(adjust="max-t")``: the
    best model has the smallest mean loss, a model is significantly worse if another one is better
    by these limits, and the others are tied. If all models are equally good, any of them is
    called worse in about a fraction alpha of logs. Limits and p-values are adjusted by Šidák's
    method instead, as stated in the sentence, for 0/1 losses with few discordant points, for
    several cells, for more than 200 models, and if some pairs need another method. Two models on
    fewer than 30 points are compared with the quantiles of Student's t.

    If a caution shows that the intervals of the default method are too narrow, the sentences use a
    method that accounts for the cause, such as `ordered` for autocorrelated losses. They name the
    method and give its width relative to the default. If no such method applies to the log, no
    difference is called significant. If the best model was selected from many, its error is
    estimated by `winner`.

    If the log has further dimensions, such as those of a map, the models are first compared by
    their mean over the cells in which all of them have losses, weighted by the cosine of the
    latitude if a coordinate provides it (``lat``, ``latitude``, or the standard name
    ``latitude``). Then the cells in which each model is better are counted, with p-values that are
    adjusted for all pairs in all cells. If losses were made from a score, the sentences are about
    the score, and larger is better. Numbers are rounded to two digits of the smallest standard
    error.

    References
    ----------
    Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425.
    Šidák (1967), JASA 62(318), 626-633, doi:10.1080/01621459.1967.10482935.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.summary()
    ridge has a lower mean squared error than random_forest, but its advantage of 182 is not
    statistically significant (95% interval −69 to 433, p = 0.16). The mean squared error of
    ridge is 3,006 (95% interval 2,640 to 3,372), measured on 442 points in 10 repetitions
    of 10-fold cross-validation. The intervals are for the average test error of the models
    trained in this cross-validation; they would narrow with more test points.
    """
    check_alpha(alpha)
    checked_choice("missing", missing, MISSING)
    whole_number("seed", seed, 0)
    method = known_name("method", method)
    checked_choice("method", method, (*interval_names(), None))
    if is_dask_frame(losses):
        ask = partial(summary, method=method, alpha=alpha, by=by, seed=seed)
        pairs = has_columns_of_models(losses, by)
        return delay_answer(losses, ask, pairs=pairs, levels=(by,), missing=missing)
    losses = as_container(losses, [by])
    metrics = None if by is not None else read_labels(losses, METRIC)
    if metrics is not None and metrics.nunique() > 1:
        by = METRIC
    if by is None:
        return describe_verdict(Verdict(LogFacts(losses, missing), alpha, seed, method))
    found: dict[Hashable, Summary] = {}
    failed: dict[Hashable, LogError] = {}
    for label, part in split_log(losses, by):
        try:
            found[label] = summary(part, method=method, alpha=alpha, seed=seed, missing=missing)
        except LogError as error:
            failed[label] = error
    if failed:
        raise failed_groups(by, failed, len(found) + len(failed))
    return Summaries(by, found)


def read_labels(losses: Any, name: str) -> pd.Index | None:
    """Read the labels of an index level, or of a coordinate along the evaluations, of each row.

    None without such a level, and for other moments than those of several metrics.
    """
    if isinstance(losses, Moments):
        return pd.Index(losses.metrics) if name == METRIC and losses.metrics else None
    index = getattr(losses, "index", None)
    if isinstance(index, pd.Index) and name in index.names:
        return index.get_level_values(name)
    coordinate = getattr(losses, "coords", {}).get(name)
    return None if coordinate is None or coordinate.ndim != 1 else coordinate.to_index()


def split_log(losses: Any, by: str) -> Iterator[tuple[Hashable, Any]]:
    """Iterate over the parts of a log for each label of a level, in its own container."""
    whole = read(losses, by=by)  # rejects logs without such a level, and metrics that it would cut
    if isinstance(losses, Moments) and by == METRIC:
        yield from losses.split_metrics().items()
        return
    groups, labels = Groups(whole, by), read_labels(losses, by)
    if labels is None:  # moments, or labels along several dimensions
        yield from zip(groups.labels, groups.parts(), strict=True)
        return
    codes, names = labels.factorize()
    place = {label: code for code, label in enumerate(names)}
    for label in groups.labels:
        here = codes == place[label]
        if isinstance(losses, pd.Series | pd.DataFrame):
            yield label, losses[here]
        else:
            (dim,), rows = losses[by].dims, np.flatnonzero(here)
            yield label, losses.isel({dim: rows[0] if dim == METRIC else rows})


def describe_verdict(verdict: Verdict) -> Summary:
    """Write the sentences of a summary, and collect its cautions."""
    if words := getattr(verdict.facts.log.labels, "not_compared", ""):
        raise LogError(words)
    if "contrast" in verdict.facts.attrs and has_several_contrasts(verdict.facts.losses):
        raise LogError(
            "this log has the differences of several pairs of groups. Expected one, as in "
            "contrast(by=..., between=(a, b)). To test all of them, type log.cvci.compare()."
        )
    sentences = write_sentences(verdict)
    cautions, advice = {}, {}
    for label, sentence, action in list_cautions(verdict):
        cautions[label], advice[label] = sentence, action
    return Summary(tuple(sentences), cautions, advice)


def write_sentences(verdict: Verdict) -> list[str]:
    """Describe the models and their differences, then the target unless there are 3 sentences."""
    if not verdict.cells:
        return ["No cell of this log has any losses."]
    if verdict.has_target and "kind" not in verdict.facts.attrs:
        sentences = describe_targets(verdict)
    elif len(verdict.cells) == 1:
        sentences = describe_cell(verdict, "")
    elif verdict.whole is not None:
        sentences = describe_grid(verdict, verdict.whole)
    elif len(verdict.models) > 1:
        sentences = describe_winners(verdict)
    else:
        sentences = describe_range(verdict)
    return sentences if len(sentences) > 2 else [*sentences, describe_scope(verdict)]


def list_cautions(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Yield what limits the log as a whole, then the cautions of all tables.

    Each is a label, a sentence and an advice.
    """
    if words := find_scores(verdict):
        yield CHECKS[SCORES].title.lower(), words, CHECKS[SCORES].advice
    known = "n_dropped" in {*verdict.attrs, *verdict.frame}
    if known and (dropped := verdict.dropped[0]):
        were = f"{verdict.dropped[1]} {'was' if dropped == 1 else 'were'}"
        yield (
            "missing losses",
            f"{dropped:,} evaluation{'s' * (dropped > 1)}{were} dropped "
            "for all models, because at least one model has no loss there. If these are hard "
            "points, the errors are too small, and models with missing losses look better than "
            "they are.",
            "Find out why the losses are missing.",
        )
    if lost := verdict.facts.lost_metrics:
        part = f"log.xs({lost[0]!r}, level='metric', drop_level=False)"
        if isinstance(verdict.facts.losses, xr.DataArray | xr.Dataset):
            part = f"log.sel(metric={lost[0]!r})"
        yield (
            "metric not named",
            f"This is part of a log of several metrics ({join_words([*map(str, lost)])}), but no "
            "label shows which one.",
            f"Keep the level: {part}.",
        )
    attrs = verdict.facts.attrs
    if attrs.get(UNDESCRIBED) and (name := attrs["loss"]) in METRICS:
        yield (
            "metric not described",
            f"The losses are named {name}, but attrs do not describe how they were computed, so "
            "limits and cautions of that metric are not available.",
            "Copy the attrs, which pandas' to_xarray drops: array.attrs = frame.attrs.",
        )
    texts: dict[str, str] = {}
    for table in verdict.tables:
        texts = sentences_in(table) | texts
    for label, caution in cautions_by_label().items():
        if label in texts and concerns_summary(verdict, caution):
            sentence = caution.sentence + describe_share(verdict, caution)
            yield label, sentence, texts[label].removeprefix(caution.sentence).strip()


def concerns_summary(verdict: Verdict, caution: Caution) -> bool:
    """Whether a caution concerns a sentence of the summary."""
    if caution is Caution.SELECTED:
        return verdict.winner is None
    if caution is Caution.UNSTABLE_DIFFERENCE:  # models with a target are not compared
        return not verdict.has_target or "kind" in verdict.facts.attrs
    if caution is Caution.ZERO_VARIANCE:
        return best_is_constant(verdict)
    return caution is not Caution.NO_LOSSES  # already visible


def find_scores(verdict: Verdict) -> str:
    """Describe losses that look like scores.

    Only values above 1/2, and models named like a score, need another pass; a lazy array also
    needs a first loss of 0 or 1.
    """
    if not (verdict.estimate > 0.5).any() and not any(map(names_a_score, verdict.models)):
        return ""
    facts, lazy = verdict.facts, verdict.facts.log.lazy
    if lazy is not None and not any(map(names_a_score, verdict.models)):
        first = float(lazy.array[(0,) * lazy.array.ndim])
        if abs(first) > 0 and abs(first - 1) > 0:
            return ""
    try:
        if lazy is not None:
            facts = LogFacts(Moments.of_log(facts.losses, missing=facts.missing))
        found = list(CHECKS[SCORES].find(facts))
    except LogError:  # not in memory
        return ""
    return f"{capitalize(CHECKS[SCORES].describe(found[0]))}." if found else ""


def describe_share(verdict: Verdict, caution: Caution) -> str:
    """Describe in how many cells of a grid a caution occurs, unless in all or in their mean."""
    whole = verdict.whole.tables if verdict.whole is not None else []
    if not whole or any(has_caution(table, caution).any() for table in whole):
        return ""
    flagged = [
        has_caution(table, caution).any(
            [dim for dim in table["caution"].dims if dim in ("model", "pair")]
        )
        for table in (verdict.intervals, verdict.comparison)
        if isinstance(table, xr.Dataset)
    ]
    cells, number = int(np.logical_or.reduce(flagged).sum()) if flagged else 0, len(verdict.cells)
    return f" This concerns {cells:,} of {number:,} cells." if 0 < cells < number else ""


def best_is_constant(verdict: Verdict) -> bool:
    """Whether the best model has a zero variance, alone or compared; True for several cells.

    Constant or equal candidates of a search that are not the best concern no sentence.
    """
    if len(verdict.cells) > 1 or len(verdict.models) < 3:
        return True
    best = verdict.models[int(verdict.best[0])]
    for table in verdict.tables:
        frame = result_frame(table)
        rows = frame[has_caution(frame, Caution.ZERO_VARIANCE)]
        names = [name for name in ("model", "other") if name in rows.index.names]
        if any(best in verdict.labels(rows, name) for name in names):
            return True
    return False


def describe_cell(verdict: Verdict, before: str) -> list[str]:
    """Describe the verdict of the only cell, and then the error of its best model."""
    scale, best = verdict.scale, int(verdict.best[0])
    name = verdict.quoted[best]
    row = {column: float(verdict.spread(column)[0, best]) for column in NUMBERS}
    alone, contrasts = len(verdict.models) == 1, "kind" in verdict.facts.attrs
    lead = "" if alone or contrasts else describe_lead(verdict)
    how = describe_switches(verdict, "intervals", lead)
    if verdict.winner is not None:
        found = result_frame(verdict.winner)
        row = {column: float(found[column].iloc[0]) for column in NUMBERS}
        by = "".join(f" with {switch.method}" for switch in verdict.switches["intervals"])
        how = f", using winner{by} because it was selected among {len(verdict.models):,}"
    decimals = count_decimals(pd.DataFrame([row]))
    value = scale.value(row["estimate"], decimals)
    limits = ""
    if not np.isnan(row["lower"] + row["upper"]):
        ends = scale.range(row["lower"], row["upper"], decimals, of_values=True)
        limits = f" ({verdict.level} interval {ends}{how})"
    basis = describe_basis(verdict)
    whose = "" if verdict.facts.are_nameless(verdict.models) else f" of {name}"
    error = f"the {scale.name}{whose} is {value}{scale.unit_words}{limits}, measured on {basis}."
    if alone and contrasts and limits:
        sure = "" if row["lower"] > 0 or row["upper"] < 0 else "not "
        error = f"{error.removesuffix('.')}; it is {sure}statistically significant."
    if contrasts and not alone:
        return [capitalize_sentence(before + describe_contrasts(verdict))]
    if alone:
        return [capitalize_sentence(before + error)]
    return [capitalize_sentence(before + lead), capitalize_sentence(error)]


NUMBERS = ("estimate", "lower", "upper", "se")
"""The columns of an interval used in a sentence."""


def describe_switches(verdict: Verdict, what: str, said: str = "") -> str:
    """Name the methods used instead of the default, and why unless that was said before."""
    words = []
    for switch in verdict.switches[what]:
        some, cause = "", switch.caution.cause
        if what == "comparison":
            rows = has_caution(switch.before, switch.caution)
            some = "" if rows.all() else f" for {int(rows.sum()):,} of them"
        words.append(f"{switch.method}{some}{'' if cause in said else f' {cause}'}")
    return f", using {join_words(words)}" if words else ""


def describe_width(verdict: Verdict, one: int, two: int) -> str:
    """Compare the limits of a difference with those of the default method."""
    pairs = verdict.pairs
    if pairs is None or not verdict.switches["comparison"]:
        return ""
    flagged, wider = [], []  # the last one first
    new = after = pairs.upper[0, one, two] - pairs.lower[0, one, two]
    for switch, before in reversed(verdict.changes(one, two)):
        flagged.append(switch)
        if not np.isclose(after, before, rtol=1e-9):  # the last digits of batched logs differ
            wider.append(switch)
        after = before
    if not flagged:
        return ""
    last, first, old = (wider or flagged)[0], flagged[-1], after
    words = f", using {last.method} {last.caution.cause}"
    if not (old > 0 and np.isfinite(new)):
        return words
    if not wider and first.caution is Caution.UNSTABLE_DIFFERENCE:  # as compare does itself
        return ", widened because of the models' similarity"
    if not wider:
        return f"; the default interval is used because it is wider than that of {last.method}"
    used = str(first.before.attrs.get("interval_method", "the default"))
    if new >= 2 * old:
        return f"{words}: {new / old:.1f} times as wide as with {used}"
    change = round(100 * (new / old - 1))
    size = (
        f"{abs(change)}% {'wider' if change > 0 else 'narrower'} than" if change else "as wide as"
    )
    return f"{words}: {size} with {used}"


def describe_grid(verdict: Verdict, whole: Verdict) -> list[str]:
    """Describe the mean over all cells, and then in how many of them models differ."""
    weighted = area_weights(verdict.facts.losses, verdict.dims) is not None
    by_area = ", weighted by area" if weighted else ""
    number = int((~np.isnan(verdict.estimate)).all(axis=1).sum())
    cells = f"{number:,} cells ({join_words(verdict.dims)}{by_area})"
    before = f"averaged over {cells}, "
    first = describe_cell(whole, before)[0]
    if len(verdict.models) == 1:
        return [first, describe_range(verdict)[0]]
    basis = describe_basis(verdict)
    return [
        first,
        describe_winners(verdict)[0],
        f"Each cell was measured on {basis}; {describe_scope(verdict).replace('The', 'the', 1)}",
    ]


def describe_targets(verdict: Verdict) -> list[str]:
    """Describe which models miss the target of a metric, in which direction, and by how much.

    The limits are simultaneous over all models and cells, by Šidák's method.
    """
    lower, estimate, upper = (
        verdict.spread(name, verdict.simultaneous) for name in ("lower", "estimate", "upper")
    )
    metric = str(verdict.facts.attrs.get("metric"))
    words = OFF_TARGET.get(metric, ("it is too low", "it is too high"))
    scale = verdict.scale
    target = np.nan if scale.target is None else scale.target
    sides, many = [upper < target, lower > target], estimate.size > FEW_VERDICTS
    decimals = count_decimals(result_frame(verdict.simultaneous))
    adjusted = f", adjusted for {estimate.size:,} intervals" if estimate.size > 1 else ""
    how = describe_switches(verdict, "intervals")
    basis = f"measured on {describe_basis(verdict)}"
    if many:
        places = f"{estimate.size:,} {'cells' if len(verdict.models) == 1 else 'models and cells'}"
        below, above = (int(side.sum()) for side in sides)
        return [
            f"The {scale.name} is below {target:g} in {below:,} of {places}, above it in "
            f"{above:,}, and not significantly different in the others ({verdict.level} "
            f"intervals{adjusted}{how}).",
            f"It was {basis}.",
        ]
    sentences: list[str] = []
    for cell, model in np.argwhere(~np.isnan(estimate)):
        which = [k for k in (0, 1) if sides[k][cell, model]]
        where = f" at {verdict.cell_names()[cell]}" if len(verdict.cells) > 1 else ""
        value = scale.value(estimate[cell, model], decimals)
        found = f"the {scale.name} of {verdict.quoted[model]}{where} is {value}"
        if np.isnan(lower[cell, model] + upper[cell, model]):
            sentences.append(f"{found}, without an interval")
            continue
        limits = scale.range(lower[cell, model], upper[cell, model], decimals, of_values=True)
        found += f" ({verdict.level} interval {limits}{adjusted}{'' if sentences else how})"
        miss = f": {words[which[0]]}" if which else ""
        ideal = f"{scale.target or 0.0:g}"
        sure = "not significantly different from" if not which else "above" if which[0] else "below"
        sentences.append(f"{found}, {sure} {ideal}{miss}")
    values = "This was" if len(sentences) == 1 else "These were"
    return [capitalize(f"{'; '.join(sentences)}."), f"{values} {basis}."]


FEW_VERDICTS = 4
"""With more models and cells, those that miss a target are counted."""


def describe_contrasts(verdict: Verdict) -> str:
    """Describe the difference between groups, or of two models, without ranking differences."""
    each = {name: verdict.spread(name)[0] for name in ("lower", "upper", "se")}
    scale, estimate = verdict.scale, verdict.estimate[0]
    decimals = count_decimals(pd.DataFrame({"estimate": estimate, **each}))
    words = []
    for at, name in enumerate(verdict.quoted[:NAMED]):
        ends = scale.range(each["lower"][at], each["upper"][at], decimals, of_values=True)
        value = scale.value(estimate[at], decimals) + scale.unit_words
        words.append(f"{value} for {name} ({verdict.level} interval {ends})")
    more = count_further_models(verdict)
    text = f"the {scale.name} is {join_words(words)}{more}."
    pairs = verdict.pairs
    if pairs is None or len(verdict.models) != 2:
        return text
    decimals = count_decimals(result_frame(verdict.comparison))
    lower, upper = pairs.lower[0, 0, 1], pairs.upper[0, 0, 1]
    lead = scale.difference(abs(pairs.lead[0, 0, 1]), decimals) + scale.unit_words
    sure = "" if lower > 0 or upper < 0 else "not "
    p = describe_p(verdict, 0, 1).removeprefix(", ")
    return (
        f"{text} These differ by {lead}, which is {sure}statistically significant"
        f"{f' ({p})' if p else ''}."
    )


def describe_lead(verdict: Verdict) -> str:
    """Describe which model is best, by how much, and whether this is significant."""
    models, best, scale = len(verdict.models), int(verdict.best[0]), verdict.scale
    name = verdict.quoted[best]
    most, more = ("highest", "higher") if scale.larger else ("lowest", "lower")
    pairs = verdict.pairs
    if pairs is None:
        rest = describe_no_test(verdict)
        return f"{name} has the {most} {scale.name} of {models:,} models, but {rest}"
    others = [int(j) for j in verdict.order[0, 1:] if not np.isnan(verdict.estimate[0, j])]
    tied = [j for j in others if verdict.tied[0, j]]
    rival = (tied or others)[0]
    decimals = count_decimals(result_frame(verdict.comparison))
    lead = scale.difference(pairs.lead[0, best, rival], decimals) + scale.unit_words
    limits = scale.range(
        pairs.lower[0, best, rival], pairs.upper[0, best, rival], decimals, of_values=False
    )
    sure = f"({verdict.level} interval {limits}{describe_p(verdict, best, rival)}"
    sure += f"{describe_width(verdict, best, rival)})"
    other = verdict.quoted[rival]
    if pairs.narrow[0, best, rival] and pairs.lower[0, best, rival] > 0:
        cautions = narrow_cautions(verdict.comparison)
        return (
            f"{name} has the {most} {scale.name} of {models:,} models, {more} than that of "
            f"{other} by {lead}, but this log cannot show whether the difference is significant: "
            f"no method accounts for {join_words([caution.label for caution in cautions])}."
        )
    noise = NOISE * np.abs(verdict.estimate[0, [best, rival]]).max()
    if abs(pairs.lead[0, best, rival]) <= noise:
        return describe_draw(verdict, rival, others, f"The difference is {lead} {sure}.")
    if not pairs.clear[0, best, rival]:
        beaten = [verdict.quoted[j] for j in others if j not in tied and j != rival]
        chance = f"is not statistically significant {sure}{name_worse(beaten)}."
        if models == 2:
            text = f"{name} has a {more} {scale.name} than {other}"
            return f"{text}, but its advantage of {lead} {chance}"
        if len(tied) == models - 1:
            return (
                f"none of the {models:,} models is significantly worse than any other: {name} has "
                f"the {most} {scale.name}, but its advantage of {lead} over {other} {chance}"
            )
        among = f"{name} has the {most} {scale.name} of {models:,} models, but "
        if len(tied) > 1:
            names = list_names([verdict.quoted[j] for j in tied])
            among += f"is not significantly better than {names}: "
        return f"{among}its advantage of {lead} over {other} {chance}"
    if models == 2:
        return f"{name} is better than {other}: its {scale.name} is {more} by {lead} {sure}."
    return (
        f"{name} is the best of {models:,} models: its {scale.name} is {more} than that of "
        f"{other}, the second best, by {lead} {sure}."
    )


def describe_draw(verdict: Verdict, rival: int, others: list[int], sure: str) -> str:
    """Describe two best models with equal error, and list others not significantly worse."""
    models, best, scale = len(verdict.models), int(verdict.best[0]), verdict.scale
    most = "highest" if scale.larger else "lowest"
    who = list_names([verdict.quoted[best], verdict.quoted[rival]])
    if models == 2:
        return f"{who} have the same {scale.name}. {sure}"
    tied = [verdict.quoted[j] for j in others if verdict.tied[0, j] and j != rival]
    clear = [verdict.quoted[j] for j in others if not verdict.tied[0, j] and j != rival]
    rest = name_worse(tied, "not ") + name_worse(clear)
    return f"{who} share the {most} {scale.name} of {models:,} models{rest}. {sure}"


def describe_no_test(verdict: Verdict) -> str:
    """Say that the models were not compared, and how to do it if there is a way."""
    few = len(verdict.models) == 2 and len(verdict.cells) == 1
    what = "difference" if few else "differences"
    words = f"no test of the {what} is available"
    if verdict.facts.log.lacks_pairs:
        return f"{words}: {WITHOUT_PAIRS}."
    if verdict.intervals.attrs["method"] == "case_bootstrap":
        of = "its interval" if few else "their intervals"
        return f"{words}, only {of}: cvstats.difference(log).cvci.case_bootstrap()."
    return f"{words}."


def name_worse(names: Sequence[str], sure: str = "") -> str:
    """Name models that are significantly worse, or, with ``"not "``, are not."""
    verb = "is" if len(names) == 1 else "are"
    return f"; {list_names(names)} {verb} {sure}significantly worse" if names else ""


def describe_p(verdict: Verdict, best: int, rival: int) -> str:
    """Format the p-value of a difference, the number of comparisons adjusted for, and how."""
    p = np.nan if verdict.pairs is None else float(verdict.pairs.p[0, best, rival])
    words = "" if np.isnan(p) else f", {write_p_value(p, verdict.alpha)}"
    if verdict.n_tests < 2:
        few = verdict.pairs is not None and verdict.comparison.attrs.get("quantiles") == "t"
        return f"{words}, by Student's t" if few else words
    sidak = verdict.comparison.attrs.get("adjust") == "sidak"
    return f"{words}, {'Šidák-' * sidak}adjusted for {verdict.n_tests:,} comparisons"


def describe_winners(verdict: Verdict) -> list[str]:
    """Count the cells in which models are best or not significantly worse."""
    if "kind" in verdict.facts.attrs:
        return describe_signs(verdict)
    where = f"{len(verdict.cells):,} cells ({join_words(verdict.dims)})"
    wins = np.bincount(verdict.best, minlength=len(verdict.models))
    names = verdict.quoted
    most = "highest" if verdict.scale.larger else "lowest"
    name = verdict.scale.name
    if verdict.pairs is None:
        order = np.argsort(-wins, kind="stable")
        words = [f"{names[j]} in {wins[j]:,}" for j in order if wins[j]]
        return [
            f"Among {where}, the {most} {name} is that of {list_names(words)}; "
            f"{describe_no_test(verdict)}"
        ]
    several = (~np.isnan(verdict.estimate)).sum(axis=1) > 1
    alone = several & (verdict.tied.sum(axis=1) == 1)
    clear = np.bincount(verdict.best[alone], minlength=len(names))
    chance = (
        f"adjusted for {verdict.n_tests:,} comparison{'s' * (verdict.n_tests > 1)}"
        f"{describe_switches(verdict, 'comparison')}"
    )
    basis = f"each cell was measured on {describe_basis(verdict)}"
    if len(names) == 2:
        noise = NOISE * np.abs(verdict.estimate).max(axis=1)
        ahead = verdict.pairs.lead[:, 0, 1]
        wins = np.array([(ahead > noise).sum(), (ahead < -noise).sum()])
        one, two = (int(j) for j in np.argsort(-wins, kind="stable"))
        more = "higher" if verdict.scale.larger else "lower"
        both = f"{several.sum():,} cells ({join_words(verdict.dims)})"
        return [
            f"{names[one]} has the {more} {name} in {wins[one]:,} of {both}, and {names[two]} in "
            f"{wins[two]:,}; {names[one]} is significantly better in "
            f"{name_cells(verdict, alone, one)}, and {names[two]} in "
            f"{name_cells(verdict, alone, two)}, {chance}.",
            f"{describe_median_lead(verdict, one, two)}; {basis}.",
        ]
    best_or_tied = verdict.tied.sum(axis=0)
    order = np.argsort(-best_or_tied, kind="stable")
    leader = names[order[0]]
    words = [
        f"{names[j]} in {best_or_tied[j]:,}" + (f" (alone in {clear[j]:,})" if clear[j] else "")
        for j in order
        if best_or_tied[j]
    ]
    counts = f" is best or not significantly worse than the best{words[0].removeprefix(leader)}"
    return [
        f"Among {where}, {list_names([leader + counts, *words[1:]])}, {chance}.",
        f"E{basis[1:]}.",
    ]


def describe_signs(verdict: Verdict) -> list[str]:
    """Count the cells in which differences are significantly below and above zero."""
    lower, upper = (verdict.spread(name, verdict.simultaneous) for name in ("lower", "upper"))
    signs = [(upper < 0).sum(axis=0), (lower > 0).sum(axis=0)]
    below, above = signs[::-1] if verdict.scale.larger else signs
    words = [
        f"below 0 in {low:,} and above 0 in {high:,} for {name}"
        for low, high, name in zip(below, above, verdict.quoted[:NAMED], strict=False)
    ]
    more = count_further_models(verdict)
    return [
        f"Among {len(verdict.cells):,} cells ({join_words(verdict.dims)}), the "
        f"{verdict.scale.name} is significantly {'; '.join(words)}{more} ({verdict.level} "
        f"intervals, adjusted for {lower.size:,} intervals).",
        f"Each cell was measured on {describe_basis(verdict)}.",
    ]


def name_cells(verdict: Verdict, alone: MaskArray, model: int) -> str:
    """Count the cells in which a model is alone the best, and name a few."""
    chosen = np.flatnonzero(alone & (verdict.best == model)).tolist()
    every = verdict.cell_names()
    some = f" ({'; '.join(every[cell] for cell in chosen)})" if 0 < len(chosen) <= NAMED else ""
    return f"{len(chosen):,}{some}" if chosen else "none"


def describe_median_lead(verdict: Verdict, one: int, two: int) -> str:
    """Describe by how much a model is better in the median cell."""
    scale, pairs = verdict.scale, verdict.pairs
    middle = 0.0 if pairs is None else float(np.nanmedian(pairs.lead[:, one, two]))
    decimals = count_decimals(result_frame(verdict.comparison))
    size = scale.difference(abs(middle), decimals) + scale.unit_words
    more = "higher" if scale.larger == (middle > 0) else "lower"
    return (
        f"In the median cell the {scale.name} of {verdict.quoted[one]} is {size} {more} than that "
        f"of {verdict.quoted[two]}"
    )


def describe_range(verdict: Verdict) -> list[str]:
    """Describe the errors of one model in many cells."""
    scale, estimate = verdict.scale, verdict.estimate[:, 0]
    decimals = count_decimals(verdict.frame)
    ends = sorted((float(np.min(estimate)), float(np.max(estimate))), reverse=scale.larger)
    low, high = (scale.value(end, decimals) for end in ends)
    middle = scale.value(float(np.median(estimate)), decimals)
    half = (verdict.spread("upper") - verdict.spread("lower"))[:, 0] / 2
    width = scale.difference(float(np.nanmedian(half)), decimals)
    return [
        f"The {scale.name} of {verdict.quoted[0]} ranges from {low} to {high}{scale.unit_words} "
        f"over {len(estimate):,} cells ({join_words(verdict.dims)}), and is {middle} in the "
        "median cell.",
        f"The {verdict.level} interval of the median cell is ±{width}; each "
        f"cell was measured on {describe_basis(verdict)}.",
    ]


def describe_scope(verdict: Verdict) -> str:
    """Name the target of the intervals, and which data would narrow them."""
    several = len(verdict.models) > 1 or len(verdict.cells) > 1
    what = "The intervals are" if several else "The interval is"
    groups = {"n_sources", "n_clusters"} & set(verdict.attrs)
    unit = "sources" if groups and not verdict.facts.log.fixed_sources else "test points"
    unit = "sources and points" if verdict.attrs.get("by") == "source, point" else unit
    tied = several and bool((verdict.tied.sum(axis=1) > 1).any())
    more = f"; they would narrow with more {unit}" if tied else ""
    target = describe_target(verdict, verdict.attrs)
    if verdict.comparison is not None and verdict.scale.target is None:
        switches = verdict.switches["comparison"]
        others = {}
        for used in switches or [verdict.comparison]:
            of_difference = str(used.attrs["target"]).removeprefix(OF_TWO)
            if of_difference != verdict.attrs["target"]:
                others[of_difference] = describe_target(
                    verdict, {**used.attrs, "target": of_difference}
                )
        if others:
            every = all(has_caution(switch.before, switch.caution).all() for switch in switches)
            those = "those of differences" if every else "some of those of differences"
            what = f"The intervals of models are for the {target}, and {those} are"
            target = " or the ".join(others.values())
    return f"{what} for the {target}{more}."


def capitalize(text: str) -> str:
    """Capitalize the first letter; the others are kept."""
    return text[:1].upper() + text[1:]


def capitalize_sentence(text: str) -> str:
    """Capitalize a sentence, unless it begins with the name of a model."""
    starts = ("the ", "of ", "among ", "none of ", "averaged over ", "for ")
    return text[:1].upper() + text[1:] if text.startswith(starts) else text
