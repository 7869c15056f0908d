"""Which interval for this log? What each method says of it, and the one its design calls for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd

from cvstats.api.rates import NAME
from cvstats.api.running import INTERVALS, Losses, Missing, Table, checked_alpha
from cvstats.containers import CellLog, CellPanels, Log, is_dask_frame, is_lazy, later, lazily, read
from cvstats.core.columns import all_binary
from cvstats.core.design import Design
from cvstats.core.result import Result
from cvstats.errors import LogError, checked_choice
from cvstats.intervals import layouts
from cvstats.intervals.registry import METHODS
from cvstats.intervals.source_layouts import across_folds

__all__ = ["interval", "methods"]

STUDY = "Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), arXiv:2409.18836"
COMPARISONS = {"mcnemar": 2, "cochran_q": 2, "friedman": 3, "nemenyi": 3}
"""Tests of models, and how many models each needs."""

BOOTSTRAPPED = tuple(name for name, method in METHODS.items() if "'count'" in method.needs)
ONE_BY_ONE = ("best_set", "mcnemar", "cochran_q", *BOOTSTRAPPED)
"""Methods that look at single losses, of which cells tell nothing."""

SUMMED_UP = ("friedman", "nemenyi", "source_components")
"""Methods that need cells alone, of all models or parts together, and are not done lazily."""

SMALL = 100
"""So many points are few for the study that compared the methods."""


def methods(losses: Losses) -> pd.DataFrame:
    """List every method: whether this log allows it, and if not, what is missing.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.

    Returns
    -------
    DataFrame
        Indexed by ``method``: ``applies`` (bool), ``why_not`` (empty, or what is missing and
        which resampling plan makes it), ``target`` (what the interval is for), ``guarantee``,
        ``fits`` (how many models have to be fitted), ``needs`` and ``reference``.
        ``attrs["suggestion"]`` says what a large comparison of the methods recommends for this
        number of points.

    Raises
    ------
    LogError
        If the log contradicts itself.

    Notes
    -----
    A method applies if the levels of the log fit it. It may still ask for a number that no log
    tells, such as the training size of random splits, and some options ask for more than the
    method: two points in each fold, for instance.

    References
    ----------
    Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), Constructing
    confidence intervals for "the" generalization error, arXiv:2409.18836.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> table = cvstats.methods(losses)
    >>> table.loc[["wald", "corrected_t", "nested_cv"], ["applies", "fits"]]
                 applies                                 fits
    method
    wald            True                K for each repetition
    corrected_t     True  1 for each split, K for each repetition
    nested_cv      False    K (K + 1) / 2 for each repetition
    """
    if is_dask_frame(losses):
        answer: pd.DataFrame = later(losses, methods)
        return answer
    log = read(losses)
    design = log.design
    rows = []
    for method in METHODS.values():
        words = method.why_not(design) or of_losses(method.name, log)
        rows.append(
            {
                "method": method.name,
                "applies": words is None,
                "why_not": words or "",
                "target": method.target,
                "guarantee": method.guarantee,
                "fits": method.fits,
                "needs": method.needs,
                "reference": method.reference,
            }
        )
    table = pd.DataFrame(rows).set_index("method")
    table.attrs = {"suggestion": suggestion(design)}
    return table


def of_losses(name: str, log: Log) -> str | None:
    """Say what a test asks of the losses themselves, beyond the design."""
    if isinstance(log.panels, CellPanels) and (words := of_cells(name, log)) is not None:
        return words
    models = len(log.labels.models)
    if name in COMPARISONS and models < COMPARISONS[name]:
        return f"the log holds {models} model{'s' if models > 1 else ''}; {name} needs more."
    if name in ("mcnemar", "cochran_q") and not all_binary(log.design, log.panels):
        return "the losses are other than 0 and 1."
    return None


def of_cells(name: str, log: Log) -> str | None:
    """Say what moments of cells do not tell, and a lazy array does not give."""
    lazy = is_lazy(log)
    averaged = name == "holdout" and log.design.number("repetition") > 1
    if name in ONE_BY_ONE or averaged:
        why = "to average each point over its repetitions" if averaged else "one by one"
        have = "this array is lazy" if lazy else "there are moments of cells only"
        return f"it needs the losses {why}, and {have}. Ask the log in memory."
    if lazy and name in SUMMED_UP:
        return f"it is not done lazily. Sum up first: cvstats.Moments.of_log(losses).{name}()."
    named = log.found.levels if isinstance(log, CellLog) else ()
    if name in ("friedman", "nemenyi") and not any(log.design.has(level) for level in named):
        return "the moments are by no level that could tell data sets apart."
    shared = not isinstance(log, CellLog) or log.gaps is not None or len(log.labels.models) < 2
    if name == "rope" and not shared:
        return "these moments hold nothing that two models share. Make them with pairs=True."
    return None


def interval(
    losses: Losses,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Compute the interval that the design of this log calls for, and say why.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    method : str, optional
        The name of an interval, to take it with its usual options whatever the design calls
        for. Without it: one test set gives `holdout`; K-fold cross-validation, leave-one-out
        and their repetitions `wald`; random splits, and logs of one score for each split,
        `corrected_t`; splits of the data and of its halves `conservative_z`; replaced points
        `replace_one`; nested folds `nested_cv`; bootstrap samples ``bootstrap_632``, or
        ``bootstrap_oob`` without the fit to the sample itself or without a no-information rate
        in ``attrs``; sources left out ``out_of_source``.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        The result of the method, with ``attrs["reason"]``, why it was this one, and
        ``attrs["suggestion"]``, what a large comparison of the methods recommends for so many
        points. A suggestion is never followed: it takes another log.

    Raises
    ------
    LogError
        If the method needs what the log does not have: the words say which level or number is
        missing.

    References
    ----------
    Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), Constructing
    confidence intervals for "the" generalization error, arXiv:2409.18836.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> result = cvstats.interval(losses)
    >>> print(result.attrs["method"], "-", result.attrs["reason"])
    wald - 10 repetitions of a partition into 10 folds: every point is tested once in each
    """
    checked_alpha(alpha)
    checked_choice("method", method, (*INTERVALS, None))
    if is_dask_frame(losses):
        answer: Table = later(
            losses, partial(interval, method=method, alpha=alpha), missing=missing
        )  # fmt: skip
        return answer
    log = read(losses, missing=missing)
    if method is None:
        method, reason = chosen_for(log)
        if method == "bootstrap_632" and NAME not in log.noted:
            method = "bootstrap_oob"
            reason += f"; no no-information rate is noted in attrs[{NAME!r}], which .632+ needs"
        if method not in INTERVALS:
            raise LogError(
                f"interval finds {reason}; the method for it is {method!r}, which this version "
                f"does not have. Choose another from cvstats.methods(losses), as in "
                f"interval(losses, method='wald')."
            )
    else:
        reason = "asked for by name"
    told = {"reason": reason, "suggestion": suggestion(log.design)}
    if is_lazy(log):
        run = partial(INTERVALS[method], alpha=alpha)
        if reason != "asked for by name":
            run = partial(still_chosen, run, method)
        return lazily(log, run).assign_attrs(told)
    result = INTERVALS[method](log, alpha=alpha)
    return log.label(replace(result, attrs={**result.attrs, **told}))


def still_chosen(run: Callable[[Log], Result], method: str, log: Log) -> Result:
    """Run a method that was chosen before anybody knew what was evaluated, if it holds good."""
    right, reason = chosen_for(log)
    if right != method:
        raise LogError(
            f"interval finds {reason}, for which {right!r} is the method; before the losses of "
            f"this lazy array were looked at, {method!r} seemed to be. Expected it by name: "
            f"interval(losses, method={right!r})."
        )
    return run(log)


def chosen_for(log: Log) -> tuple[str, str]:
    """Choose by the design, and by whether there are losses of points at all."""
    scores = log.noted.get("holds") == "scores"
    if not scores or any(log.design.has(level) for level in RESAMPLED):
        return chosen(log.design)
    return "corrected_t", "one score for each split, and no losses of points"


def chosen(design: Design) -> tuple[str, str]:
    """Choose the method that the design of a log calls for, and the reason."""
    for level, choose in RESAMPLED.items():
        if design.has(level):
            return choose(design)
    if layouts.partitioned(design):
        return of_partition(design)
    return of_test_sets(design)


def allows(design: Design, name: str) -> bool:
    """Whether a method takes logs of this design."""
    return name in METHODS and METHODS[name].problem(design) is None


BOOTSTRAPS = {
    "bootstrap_632": "bootstrap samples, and the fit on the sample itself (repetition 0)",
    "bootstrap_oob": "bootstrap samples, without the fit on the sample itself",
    "case_bootstrap": "bootstrap samples whose own points were left out in turn",
}


def of_bootstrap(design: Design) -> tuple[str, str]:
    """Tell the bootstrap logs apart: which fits there are, and who was tested."""
    if design.has("sample"):
        return "two_stage", "bootstrap samples of bootstrap samples (levels 'sample' and 'count')"
    name = next((name for name in BOOTSTRAPS if allows(design, name)), "bootstrap_oob")
    return name, BOOTSTRAPS[name]


def of_nested(_: Design) -> tuple[str, str]:
    """Nested cross-validation has one method."""
    return "nested_cv", "folds held out while the others are cross-validated (level 'outer')"


def of_samples(design: Design) -> tuple[str, str]:
    """Tell halves from replaced points: the latter are cross-validated in folds."""
    if design.has("fold"):
        return "replace_one", "cross-validation of a half with one point replaced at a time"
    return "conservative_z", "random splits of the data and of its halves (level 'sample')"


RESAMPLED: dict[str, Callable[[Design], tuple[str, str]]] = {
    "count": of_bootstrap,
    "outer": of_nested,
    "sample": of_samples,
}


def of_partition(design: Design) -> tuple[str, str]:
    """Choose for cross-validation: by folds or by sources, once or several times."""
    by_source = design.has("source") and allows(design, "out_of_source")
    if by_source or layouts.fold_level(design) == "source":
        return "out_of_source", (
            f"{design.number('source'):,} sources, left out one at a time (level 'source')"
            + ("; no level is called 'fold'" if layouts.folds_guessed(design) else "")
        )
    k = layouts.fewest_folds(design)
    repetitions = design.number("repetition")
    points = design.splits().points
    what = "leave-one-out" if k == points else f"a partition into {k:,} folds"
    groups = ""
    if design.has("source"):
        split = across_folds(design, "source")
        groups = "; sources stand in several folds, so they are taken as they are" if split else (
            "; folds hold whole sources: for the error on new ones use clustered"
        )  # fmt: skip
    if repetitions == 1:
        return "wald", f"{what}: every point is tested once{groups}"
    each = "every point is tested once in each"
    return "wald", f"{repetitions:,} repetitions of {what}: {each}{groups}"


def of_test_sets(design: Design) -> tuple[str, str]:
    """Choose between one test set, perhaps met several times, and random splits."""
    splits = design.splits()
    if splits.points is None:
        raise LogError(
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so nothing tells "
            f"random splits from one test set met several times. Add the identity of each "
            f"point to the index, or choose: interval(losses, method='corrected_t')."
        )
    if layouts.whole(design):
        again = f", met {len(splits.rows):,} times" if len(splits.rows) > 1 else ""
        return "holdout", f"one test set of {splits.points:,} points{again}"
    return "corrected_t", (
        f"random splits: {len(splits.rows):,} repetitions that each test some of the points"
    )


def suggestion(design: Design) -> str:
    """Say what the study recommends for so many points; nothing where they have no names."""
    n = design.splits().points
    if n is None:
        return ""
    if n <= SMALL:
        what = (
            "nested_cv with 5 folds and 25 repetitions or more, or conservative_z with 25 "
            "divisions of 10 splits or more"
        )
    else:
        what = (
            "corrected_t on 25 random splits or more that train on 90% of the points, or "
            "conservative_z with 10 divisions of 5 splits"
        )
    return f"for {n:,} points the comparison by {STUDY} recommends {what}"
