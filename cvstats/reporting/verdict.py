"""The verdict on a log: which model is best or tied, by how much, over what, and what to doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.diagnostics import CHECKS, Examination, names_a_score
from cvstats.errors import LogError
from cvstats.formatting import count_decimals, printable, result_frame
from cvstats.intervals.out_of_source import FIXED_TARGET
from cvstats.large.frames import later
from cvstats.log.log import Losses
from cvstats.log.metrics import lost_metrics
from cvstats.log.read import is_dask_frame
from cvstats.options import Missing, check_alpha, whole_number
from cvstats.plot._style import facts_of
from cvstats.reporting.evidence import Evidence
from cvstats.reporting.wording import (
    NAMED,
    Scale,
    describe_basis,
    describe_target,
    join_words,
    list_names,
    p_words,
    scale_of,
)

SCORES = "CVS022"
"""The check that finds scores in the place of losses."""

FEW_CELLS = 3
"""Up to so many cells have a sentence each."""
WIDTH = 88


@dataclass(frozen=True, repr=False)
class Summary:
    """At most three sentences about a log, and what to doubt about them.

    Parameters
    ----------
    sentences : tuple of str
        Which model is best or tied, by how much, how large the error is, and over what.
    doubts : mapping
        The label of each caution that occurs, and its sentence.
    advice : mapping
        The same labels, and what to do.
    """

    sentences: tuple[str, ...]
    doubts: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentences alone, as a paragraph."""
        return fill(printable(" ".join(self.sentences)), WIDTH, break_on_hyphens=False)

    def __str__(self) -> str:
        """Write the sentences as a paragraph, and below it a paragraph for each doubt."""
        doubts = (
            f"Caution, {label}: {sentence} {self.advice[label]}"
            for label, sentence in self.doubts.items()
        )
        return "\n".join([self.text, *(fill(words, WIDTH) for words in doubts)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Write the sentences as a paragraph of HTML, and the doubts as a list."""
        text = f"<p>{escape(printable(' '.join(self.sentences)))}</p>"
        doubts = "".join(
            f"<li>{escape(f'{sentence} {self.advice[label]}')}</li>"
            for label, sentence in self.doubts.items()
        )
        return f"{text}<ul>{doubts}</ul>" if doubts else text


def summary(
    losses: Losses, *, alpha: float = 0.05, seed: int = 0, missing: Missing = "raise"
) -> Any:
    """Say in at most three sentences which model is best or tied, by how much, and over what.

    The target is that of the interval that `interval` chooses for this log; the last sentence
    names it. A model is called better than another where ``p_adjusted < alpha`` in `compare` of
    all pairs with its usual options, and tied with it otherwise.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    alpha : float, optional
        One minus the level of intervals and tests.
    seed : int, optional
        The seed of the draws of `best_set`, where there are more than ten models.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Summary
        ``sentences``, ``doubts`` (the cautions that occur, by label) and ``advice``; it prints as
        a paragraph and is HTML in a notebook. Of a frame of dask it is delayed.

    Raises
    ------
    LogError
        If no interval answers for this log. Where an interval does and no comparison, the
        sentences say that models were not compared.

    Notes
    -----
    Of more than ten models, those that may be the best are sought in place of all pairs: the
    models of `best_set`, and those whose difference from the smallest mean loss is not significant
    at level alpha by itself. Carried cells, such as those of a map, are counted, up to three of
    them described; p-values then allow for all pairs in all cells. Where losses were made from a
    score, the sentences are about the score, and more is better. Numbers are rounded to two digits
    of the smallest standard error, ``10^-d``.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    Lei (2020), JASA 115(532), 1978-1997, doi:10.1080/01621459.2019.1672556.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.summary()
    ridge and random_forest are tied: ridge has the lower mean squared error, but its lead of
    182 may be chance (95% interval −21 to 385, p = 0.079). The mean squared error of ridge
    is 3,006 (95% interval 2,640 to 3,372), measured on 442 points in 10 repetitions of
    10-fold cross-validation. The intervals are for the average test error of the models
    trained in this cross-validation; more points would narrow them.
    """
    check_alpha(alpha)
    whole_number("seed", seed, 0)
    if is_dask_frame(losses):
        ask = partial(summary, alpha=alpha, seed=seed)
        return later(losses, ask, pairs=True, missing=missing)
    return summarize_evidence(Evidence(losses, alpha, seed, missing))


def summarize_evidence(evidence: Evidence) -> Summary:
    """Put evidence into sentences, and gather its cautions."""
    cells, models = len(evidence.cells), len(evidence.models)
    if not cells:
        sentences = ["No cell of this log holds any loss."]
    elif cells == 1:
        sentences = describe_cell(evidence, 0, "")
    elif models > 1 and cells <= FEW_CELLS:
        sentences = [
            describe_cell(evidence, at, f"At {name}, ")[0]
            for at, name in enumerate(evidence.cell_names())
        ]
    elif models > 1:
        sentences = describe_winners(evidence)
    else:
        sentences = describe_range(evidence)
    if cells and len(sentences) < 3:
        sentences += describe_scope(evidence)
    doubts = cautions_of(evidence)
    label, scores = CHECKS[SCORES].title.lower(), find_scores(evidence)
    said, advised = ({label: scores}, {label: CHECKS[SCORES].advice}) if scores else ({}, {})
    if lost := lost_metrics(evidence.losses):
        said["metric not named"] = (
            f"This is a part of a log of several metrics ({join_words([*map(str, lost)])}), and "
            f"no label says of which."
        )
        advised["metric not named"] = (
            f"Keep the level: log.xs({lost[0]!r}, level='metric', drop_level=False)."
        )
    return Summary(
        tuple(sentences[:3]),
        said | {caution.label: caution.sentence for caution in doubts},
        advised | {caution.label: caution.advice for caution in doubts},
    )


def find_scores(evidence: Evidence) -> str:
    """Say that the losses look like scores, which are better when larger; empty if not.

    Only numbers above 1/2, and models with the name of a score, are worth another pass.
    """
    if not (evidence.estimate > 0.5).all() and not any(map(names_a_score, evidence.models)):
        return ""
    try:
        found = list(CHECKS[SCORES].look(Examination(evidence.losses)))
    except LogError:  # not in memory
        return ""
    return f"{found[0].words[:1].upper()}{found[0].words[1:]}." if found else ""


def cautions_of(evidence: Evidence) -> list[Caution]:
    """List the cautions of the intervals and of the comparison."""
    tables = [result_frame(evidence.intervals)]
    if evidence.comparison is not None:
        tables.append(result_frame(evidence.comparison))
    found = {label for table in tables for label in table.attrs.get("cautions", {})}
    masked = Caution.NO_LOSSES.label  # that is seen
    return [caution for caution in Caution if caution.label in found - {masked}]


def describe_cell(evidence: Evidence, cell: int, before: str) -> list[str]:
    """Describe the verdict of one cell, and then the error of its best model."""
    scale = scale_of_cell(evidence, cell)
    best = int(evidence.best[cell])
    name = evidence.names[best]
    lower, upper = (evidence.spread(side)[cell, best] for side in ("lower", "upper"))
    row = {"estimate": evidence.estimate[cell, best], "lower": lower, "upper": upper}
    decimals = count_decimals(pd.DataFrame({**row, "se": [evidence.spread("se")[cell, best]]}))
    value = scale.value(evidence.estimate[cell, best], decimals)
    limits = ""
    if not np.isnan(lower + upper):
        ends = scale.range(lower, upper, decimals, of_values=True)
        limits = f" ({level_of(evidence)} interval {ends})"
    basis = describe_basis(facts_of_basis(evidence))
    error = f"the {scale.name} of {name} is {value}{scale.unit_words}{limits}, measured on {basis}."
    if len(evidence.models) == 1:
        return [capitalize(before + error)]
    return [capitalize(before + describe_lead(evidence, cell, scale)), capitalize(error)]


def describe_lead(evidence: Evidence, cell: int, scale: Scale) -> str:
    """Say who is best or tied, and by how much."""
    models, best = len(evidence.models), int(evidence.best[cell])
    name = evidence.names[best]
    most, more = ("highest", "higher") if scale.larger else ("lowest", "lower")
    pairs = evidence.pairs
    if pairs is None:
        return (
            f"{name} has the {most} {scale.name} of {models:,} models, which were not compared, so "
            f"that this may be chance."
        )
    order = np.argsort(evidence.estimate[cell], kind="stable")
    others = [int(j) for j in order if j != best and not np.isnan(evidence.estimate[cell, j])]
    tied = [j for j in others if evidence.tied[cell, j]]
    rival = (tied or others)[0]
    decimals = count_decimals(result_frame(evidence.comparison))
    lead = scale.difference(pairs.lead[cell, best, rival], decimals) + scale.unit_words
    limits = scale.range(
        pairs.lower[cell, best, rival], pairs.upper[cell, best, rival], decimals, of_values=False
    )
    sure = f"({level_of(evidence)} interval {limits}{describe_p(evidence, cell, best, rival)})"
    other = evidence.names[rival]
    noise = 1e-12 * np.nanmax(np.abs(evidence.estimate[cell]))
    if abs(pairs.lead[cell, best, rival]) <= noise:
        return describe_draw(
            evidence, cell, scale, rival, tied, f"The difference is {lead} {sure}."
        )
    if not tied and models == 2:
        return f"{name} is better than {other}: its {scale.name} is {more} by {lead} {sure}."
    if not tied:
        return (
            f"{name} is the best of {models:,} models: its {scale.name} is {more} than that of "
            f"{other}, the next, by {lead} {sure}."
        )
    if models == 2:
        who = f"{name} and {other} are tied: {name} has the {more} {scale.name}"
    elif not evidence.all_pairs:
        which = f" ({list_names([evidence.names[j] for j in [best, *tied]])})"
        who = (
            f"{len(tied) + 1:,} of {models:,} models may be the best"
            f"{which if len(tied) < NAMED else ''}: {name} has the {most} {scale.name}"
        )
    elif len(tied) == models - 1:
        who = f"All {models:,} models are tied: {name} has the {most} {scale.name}"
    else:
        names = list_names([evidence.names[j] for j in tied])
        who = f"{name}, with the {most} {scale.name} of {models:,} models, is tied with {names}"
        return f"{who}: its lead over {other} of {lead} may be chance {sure}."
    over = "" if models == 2 else f" over {other}"
    return f"{who}, but its lead{over} of {lead} may be chance {sure}."


def describe_draw(
    evidence: Evidence, cell: int, scale: Scale, rival: int, tied: list[int], sure: str
) -> str:
    """Say that the two best models have the same error, and which others are tied with them."""
    models, best = len(evidence.models), int(evidence.best[cell])
    most = "highest" if scale.larger else "lowest"
    who = f"{evidence.names[best]} and {evidence.names[rival]}"
    if models == 2:
        return f"{who} are tied: both have the same {scale.name}. {sure}"
    others = [evidence.names[j] for j in tied if j != rival]
    rest = f"; {list_names(others)} may be as good" if others else ""
    return f"{who} share the {most} {scale.name} of {models:,} models{rest}. {sure}"


def describe_p(evidence: Evidence, cell: int, best: int, rival: int) -> str:
    """Write the p-value of a lead, and what it allows for."""
    pairs = evidence.pairs
    if not evidence.all_pairs:
        return f", not allowing for the choice among {len(evidence.models):,} models"
    if pairs is None or np.isnan(pairs.p[cell, best, rival]):
        return ""
    tests = evidence.n_tests
    words = p_words(float(pairs.p[cell, best, rival]))
    return f", {words}" + (f" adjusted for {tests:,} comparisons" if tests > 1 else "")


def describe_winners(evidence: Evidence) -> list[str]:
    """Count the cells in which models are best or tied."""
    count, where = len(evidence.cells), f"{len(evidence.cells):,} cells ({cells_of(evidence)})"
    wins = np.bincount(evidence.best, minlength=len(evidence.models))
    names = evidence.names
    most = "highest" if scale_of_cell(evidence, 0).larger else "lowest"
    name = scale_of_cell(evidence, 0).name
    if evidence.pairs is None:
        order = np.argsort(-wins, kind="stable")
        words = [f"{names[j]} in {wins[j]:,}" for j in order if wins[j]]
        return [
            f"Of {where} the {most} {name} is that of {list_names(words)}; the models were not "
            f"compared, so that this may be chance."
        ]
    alone = evidence.tied.sum(axis=1) == 1
    clear = np.bincount(evidence.best[alone], minlength=len(names))
    chance = f"p ≥ {evidence.alpha:g} adjusted for {evidence.n_tests:,} comparisons"
    basis = f"each cell was measured on {describe_basis(facts_of_basis(evidence))}"
    if len(names) == 2:
        one, two = (int(j) for j in np.argsort(-clear, kind="stable"))
        lead = describe_median_lead(evidence, one, two)
        if not clear.any():
            return [
                f"{names[one]} and {names[two]} are tied in all {where}; {chance}.",
                f"{lead}; {basis}.",
            ]
        counts = [f"worse in {clear[two]:,}"] if clear[two] else []
        counts += [f"tied in {count - clear.sum():,} ({chance})"] if clear.sum() < count else []
        which = f"all {where}" if clear[one] == count else f"{clear[one]:,} of {where}"
        first = f"{names[one]} is better than {names[two]} in {which}"
        return [f"{', '.join([first, *counts[:-1]])} and {counts[-1]}." if counts else f"{first}.",
                f"{lead}; {basis}."]  # fmt: skip
    best_or_tied = evidence.tied.sum(axis=0)
    order = np.argsort(-best_or_tied, kind="stable")
    words = [
        f"{names[j]} in {best_or_tied[j]:,}" + (f" (alone in {clear[j]:,})" if clear[j] else "")
        for j in order
        if best_or_tied[j]
    ]
    return [
        capitalize(
            f"of {where}, models are best or tied with the best ({chance}): {list_names(words)}."
        ),
        f"E{basis[1:]}.",
    ]


def describe_median_lead(evidence: Evidence, one: int, two: int) -> str:
    """Say by how much a model is better in the median cell."""
    scale, pairs = scale_of_cell(evidence, 0), evidence.pairs
    middle = 0.0 if pairs is None else float(np.nanmedian(pairs.lead[:, one, two]))
    decimals = count_decimals(result_frame(evidence.comparison))
    size = scale.difference(abs(middle), decimals) + scale.unit_words
    more = "higher" if scale.larger == (middle > 0) else "lower"
    return (
        f"In the median cell the {scale.name} of {evidence.names[one]} is {size} {more} than that "
        f"of {evidence.names[two]}"
    )


def describe_range(evidence: Evidence) -> list[str]:
    """Describe the errors of one model in many cells."""
    scale, estimate = scale_of_cell(evidence, 0), evidence.estimate[:, 0]
    decimals = count_decimals(evidence.frame)
    ends = sorted((float(np.min(estimate)), float(np.max(estimate))), reverse=scale.larger)
    low, high = (scale.value(end, decimals) for end in ends)
    middle = scale.value(float(np.median(estimate)), decimals)
    half = (evidence.spread("upper") - evidence.spread("lower"))[:, 0] / 2
    width = scale.difference(float(np.nanmedian(half)), decimals)
    return [
        capitalize(
            f"the {scale.name} of {evidence.names[0]} is from {low} to {high}{scale.unit_words} in "
            f"{len(estimate):,} cells ({cells_of(evidence)}), and {middle} in the median cell."
        ),
        f"The {level_of(evidence)} interval of the median cell reaches {width} to each side; each "
        f"cell was measured on {describe_basis(facts_of_basis(evidence))}.",
    ]


def describe_scope(evidence: Evidence) -> list[str]:
    """Say what the intervals are for, and what would narrow those of tied models."""
    several = len(evidence.models) > 1 or len(evidence.cells) > 1
    what = "The intervals are" if several else "The interval is"
    groups = {"n_sources", "n_clusters"} & set(evidence.facts)
    drawn = evidence.facts.get("target") != FIXED_TARGET
    unit = "sources" if groups and drawn else "points"
    tied = several and bool((evidence.tied.sum(axis=1) > 1).any())
    more = f"; more {unit} would narrow them" if tied and len(evidence.models) > 1 else ""
    target = describe_target(str(evidence.facts["target"]), scale_of_cell(evidence, 0))
    return [f"{what} for the {target}{more}."]


def facts_of_basis(evidence: Evidence) -> dict[Any, Any]:
    """Gather what the result and the log say about what was evaluated."""
    noted = facts_of(evidence.losses)
    return {**evidence.facts, "holds": noted.get("holds"), "sources_are": noted.get("sources_are")}


def scale_of_cell(evidence: Evidence, cell: int) -> Scale:
    """Find out what the numbers of a cell are: each cell may be of another metric."""
    noted = facts_of(evidence.losses)
    several = noted.get("metrics")
    if isinstance(several, Mapping) and "metric" in evidence.dims:
        label = evidence.cells[cell][evidence.dims.index("metric")]
        return scale_of(several.get(label, {}), {})
    return scale_of(noted, {} if lost_metrics(evidence.losses) else evidence.facts)


def cells_of(evidence: Evidence) -> str:
    """Name the dimensions of the cells."""
    return join_words(evidence.dims)


def level_of(evidence: Evidence) -> str:
    """Write the level of the intervals."""
    return f"{100 * (1 - evidence.alpha):g}%"


def capitalize(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with the name of a model."""
    return text[:1].upper() + text[1:] if text.startswith(("the ", "of ")) else text
