"""Bradley-Terry strengths of models from pairwise results, as a log with a row for each prompt."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cvstats.core.cautions import ENOUGH_POINTS
from cvstats.core.orientation import facts_of_score
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_flag, describe_type, listed, nearest, spelled
from cvstats.log.metadata import MADE_OF
from cvstats.log.tables import as_container

ELO = 400 / np.log(10)
"""Elo points of one logit."""

STEPS = 100
"""Maximum number of Newton steps."""

CLOSE = 1e-13
"""Step size at which the iteration stops."""


def strengths(
    battles: pd.DataFrame,
    *,
    prompt: str,
    models: Sequence[str],
    score: str,
    elo: bool = False,
    judge: str | None = None,
) -> pd.DataFrame:
    r"""Create a log of Bradley-Terry strengths from pairwise results, with one row per prompt.

    The targets are the strengths that best predict, over prompts from the same population, which of
    two models wins. In this model, the logit of the probability that a beats b is s_a - s_b. The
    strengths are relative to the average of these models, which is 0.

    Parameters
    ----------
    battles : DataFrame
        A row for each result of two models on one prompt.
    prompt : str
        The column that identifies the prompt. All results on one prompt, for any pairs and any
        order of the answers, are one sampling unit.
    models : (str, str)
        The two columns with the names of the models.
    score : str
        The column of the result of the first model: 1 for a win, 0.5 for a tie, 0 for a loss.
        Alternatively the winner: the name of the model or of its column, or a string starting
        with "tie".
    elo : bool, optional
        Whether strengths are in Elo points (400 / ln 10 per logit) instead of logits.
    judge : str, optional
        The column that identifies the judge, if there are several: prompts and judges are then
        both sampling units, as levels ``point`` and ``source``.

    Returns
    -------
    DataFrame
        A loss log with a row for each prompt and a column for each model, whose mean is the
        negative strength. Intervals, comparisons, ranks and sets work as for any log, and
        `cvstats.as_scores` converts results to strengths.

    Raises
    ------
    LogError
        If models are not connected by any results; if some models won or lost all results against
        the others, so that no finite strengths exist; if results are missing or invalid; if
        there are fewer than two prompts; or if ``battles`` is not a table or lacks a column.

    See Also
    --------
    cvstats.best_set : The range of ranks of each model, and the possibly best models.
    cvstats.compare : Differences of strengths.

    Notes
    -----
    With m the probability of the fitted model, the influence of a result y of a against b is
    ``H^+ x (y - m)``, where x is 1 for a and -1 for b and H the information matrix. The log
    contains the negative strength minus G times the sum of the influences of each of G prompts,
    so that the standard error of its mean is the cluster-robust one,

    .. math::

        \mathrm{Var}(\hat s) = \frac{G}{G - 1} \sum_g u_g u_g', \qquad
        u_g = H^+ \sum_{i \in g} x_i (y_i - m_i) .

    If prompts favor particular models, intervals that treat results as independent, such as
    intervals from bootstrapping the results, are too narrow. In simulations, the coverage of such
    95% intervals was 90%, compared with 95% if prompts are the sampling unit. The interval is valid
    even if the Bradley-Terry model is wrong, because it is for the best-fitting strengths. If all
    models were compared on all prompts, the mean win rate is simpler; see the guide.

    References
    ----------
    Bradley and Terry (1952), Biometrika 39(3/4), 324-345, doi:10.1093/biomet/39.3-4.324.
    Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13.
    Ford (1957), American Mathematical Monthly 64(8), 28-33, doi:10.1080/00029890.1957.11989117.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> battles = pd.DataFrame({
    ...     "question": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
    ...     "model_a": ["x", "x", "y"] * 4,
    ...     "model_b": ["y", "z", "z"] * 4,
    ...     "win": [1, 1, 0, 0, 1, 1, 0.5, 0, 1, 1, 1, 1],
    ... })
    >>> log = cvstats.strengths(battles, prompt="question", models=["model_a", "model_b"],
    ...                         score="win")
    >>> table = cvstats.as_scores(log.cvci.interval())
    >>> table[["estimate", "lower", "upper"]].round(2)
           estimate  lower  upper
    model
    x          0.55  -1.33   2.44
    y          0.19  -1.83   2.21
    z         -0.74  -2.37   0.89
    """
    checked_flag("elo", elo)
    table: Any = as_container(battles)
    if not isinstance(table, pd.DataFrame):
        raise LogError(
            f"{describe_type(table)} is not a table of results. Expected a pandas DataFrame with a "
            "row for each result of two models on one prompt."
        )
    first, second, number, names = read_models(table, prompt, models, score, judge)
    y = read_scores(table, models, score, names, first, second)
    check_graph(first, second, y, names)
    fitted, influences = fit_strengths(first, second, y, len(names))
    keys = ["source", "point"] if judge is not None else ["point"]
    cells = table[[judge, prompt] if judge is not None else [prompt]].set_axis(keys, axis=1)
    rows = cells.groupby(keys, sort=False, observed=True)
    at, size = rows.ngroup().to_numpy(), rows.ngroups
    sums = np.stack([np.bincount(at, part, size) for part in influences.T], axis=1)
    unit = ELO if elo else 1.0
    labels = cells.drop_duplicates()
    index: pd.Index = pd.Index(labels["point"])
    if judge is not None:
        index = pd.MultiIndex.from_frame(labels.assign(fold=0))
    log = pd.DataFrame(-unit * (fitted + size * sums), index=index, columns=pd.Index(names))
    name = "Elo" if elo else "strength"
    log.attrs = {
        **facts_of_score(name, "-score"), "pseudo": True, "folds": "pool", "cells": [],
        "quantiles": "t", "few_points": number < ENOUGH_POINTS,
        MADE_OF: json.dumps({"points": {"": size}}),
    }  # fmt: skip
    return log


def read_models(
    table: pd.DataFrame, prompt: str, models: Sequence[str], score: str, judge: str | None
) -> tuple[IntArray, IntArray, int, list[Hashable]]:
    """Find the models of each result; also count the prompts, and list the models."""
    given: Any = models
    if isinstance(given, str) or not isinstance(given, Collection) or len(given) != 2:
        raise LogError(
            f"Invalid models={models!r}. Expected the two columns with the names of the models, "
            "as in models=['model_a', 'model_b']."
        )
    asked = {"prompt": prompt, "models": models[0], "models ": models[1], "score": score}
    for option, name in {**asked, **({"judge": judge} if judge is not None else {})}.items():
        if not isinstance(name, Hashable) or name not in table.columns:
            known = listed(map(repr, table.columns))
            raise LogError(
                f"{option.strip()}={name!r} is not a column. Expected one of "
                f"{known}.{nearest(name, table.columns)}"
            )
        gone = np.flatnonzero(table[name].isna())
        if len(gone):
            raise LogError(
                f"the column {name!r} is empty in row {gone[0]:,}. Expected a value in every "
                f"row. Drop these rows: battles.dropna(subset={[name]!r})."
            )
    both = pd.concat([table[name] for name in models], ignore_index=True)
    codes, names = pd.factorize(both, sort=True)
    first, second = np.split(codes.astype(np.int64), 2)
    itself = np.flatnonzero(first == second)
    if len(itself):
        raise LogError(
            f"in row {itself[0]:,} the model {spelled(names[first[itself[0]]])} is compared with "
            "itself. Expected two different models. Drop these rows."
        )
    number = int(table[prompt].nunique())
    if number < 2:
        raise LogError(
            f"prompt={prompt!r} has only {number} label. Expected at least two prompts, which "
            "are the sampling unit."
        )
    return first, second, number, list(names)


def read_scores(
    table: pd.DataFrame, models: Sequence[str], score: str, names: list[Hashable],
    first: IntArray, second: IntArray,
) -> FloatArray:  # fmt: skip
    """Read the result of the first model: a number, or the winner by name."""
    column = table[score]
    if pd.api.types.is_numeric_dtype(column):
        y = column.to_numpy(dtype=np.float64)
    else:
        said = column.astype(str).to_numpy()
        own = np.array([str(name) for name in names])
        tied = np.char.startswith(np.char.lower(said.astype(str)), "tie")
        y = np.where(tied, 0.5, np.nan)
        named = np.isin(said, own)  # a column may have the name of a model
        y[(said == models[0]) & ~named | (said == own[first])] = 1.0
        y[(said == models[1]) & ~named | (said == own[second])] = 0.0
    stray = np.flatnonzero(~np.isin(y, (0.0, 0.5, 1.0)))
    if len(stray):
        raise LogError(
            f"the result in row {stray[0]:,} is {spelled(column.iloc[stray[0]])}. Expected 1 (the "
            f"first model won), 0.5 (tie) or 0; or the name of the winner, or 'tie'."
        )
    return y


def check_graph(first: IntArray, second: IntArray, y: FloatArray, names: list[Hashable]) -> None:
    """Reject models that were never compared, and models that only won or only lost (Ford 1957)."""
    size = len(names)
    ones = np.ones(len(y))
    met = coo_array((ones, (first, second)), shape=(size, size))
    parts, label = connected_components(met, directed=False)
    if parts > 1:
        groups = [[spelled(names[i]) for i in np.flatnonzero(label == at)] for at in range(2)]
        raise LogError(
            f"no result connects the models {listed(groups[0])} with the models "
            f"{listed(groups[1])}, even through other models, so their strengths cannot be "
            "compared. Expected results that connect all models. Fit each part separately."
        )
    ahead, behind = np.stack([first, second]), np.stack([second, first])
    wins = np.concatenate([ahead[:, y > 0], behind[:, y < 1]], axis=1)
    beats = coo_array((np.ones(wins.shape[1]), wins), shape=(size, size))
    parts, label = connected_components(beats, directed=True, connection="strong")
    if parts == 1:
        return
    for at in np.argsort(np.bincount(label), kind="stable").tolist():  # the smallest group first
        mine = label == at
        lost = (mine[wins[1]] & ~mine[wins[0]]).any()
        won = (mine[wins[0]] & ~mine[wins[1]]).any()
        if won and lost:
            continue
        group = listed([spelled(names[i]) for i in np.flatnonzero(mine)])
        raise LogError(
            f"{group} {'lost' if lost else 'won'} all results against the other models, so no "
            "finite strength exists. Expected wins and losses of every model. Drop "
            f"{'it' if mine.sum() == 1 else 'them'}, or use the mean win rate."
        )


def fit_strengths(
    first: IntArray, second: IntArray, y: FloatArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Fit strengths with mean 0 by maximum likelihood; also the influence of each result."""
    s = np.zeros(size)
    for _ in range(STEPS):
        left, inverse = information(first, second, y, s)
        score = np.bincount(first, left, size) - np.bincount(second, left, size)
        step = inverse @ score
        s = s + step / max(1.0, np.abs(step).max() / 2)
        if np.abs(step).max() < CLOSE * (1 + np.abs(s).max()):
            break
    left, inverse = information(first, second, y, s)
    influences: FloatArray = left[:, None] * (inverse[first] - inverse[second])
    return s, influences


def information(
    first: IntArray, second: IntArray, y: FloatArray, s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute the residual of each result, and the inverse of the information matrix."""
    m = special.expit(s[first] - s[second])
    size, weight = len(s), m * (1 - m)
    pairs = np.bincount(first * size + second, weight, size * size).reshape(size, size)
    pairs = pairs + pairs.T
    matrix = np.diag(pairs.sum(axis=1)) - pairs
    ones = np.full((size, size), 1 / size)
    inverse: FloatArray = np.linalg.inv(matrix + ones) - ones
    return y - m, inverse
