"""How often the default interval of a metric, or of a log made from a log, contains the truth.

Each question draws the predictions of a fixed model and makes the call that a user would make. The
true value is known in closed form, by quadrature or from ten million points. A *habit* is the
interval that is usually computed from the same data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

import cvstats
from evidence.intervals import ALPHA, digits, share
from evidence.learners import Array

Z = stats.norm.ppf(1 - ALPHA / 2)
MANY = 10_000_000
"""Number of points for truths without a closed form."""

Limits = tuple[float, float]


@dataclass(frozen=True)
class Answer:
    """The row of an interval, the truth, and the limits of the habit."""

    row: pd.Series
    truth: float
    habit: Limits | None = None


@dataclass(frozen=True)
class Question:
    """A question, its population, and the usual habit."""

    call: str
    population: str
    ask: Callable[[np.random.Generator, int], Answer]
    habit: str = ""


def only_row(result: pd.DataFrame) -> pd.Series:
    """The row of a result for one model."""
    (row,) = [row for _, row in result.iterrows()]
    return row


def around(estimate: float, se: float, quantile: float = Z) -> Limits:
    """Limits on both sides of an estimate."""
    return float(estimate - quantile * se), float(estimate + quantile * se)


# --- classification -------------------------------------------------------------------------------

SHIFT = 2.9
"""Mean of the normal scores of positives: the AUC is .980."""


def ask_auc(rng: np.random.Generator, n: int) -> Answer:
    """5% positives, and a good score; the habit is the standard error of Hanley and McNeil."""
    truth = (np.arange(n) < n // 20).astype(int)
    frame = pd.DataFrame({"point": np.arange(n), "y": truth})
    frame["m"] = rng.normal(size=n) + SHIFT * truth
    log = cvstats.losses(frame, truth="y", prediction="m", loss="auc", positive=1)
    row = only_row(cvstats.interval(log))
    auc, few, many = 1 - row["estimate"], n // 20, n - n // 20
    pairs = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (few - 1) * (pairs[0] - auc**2) + (many - 1) * (pairs[1] - auc**2)
    habit = around(1 - auc, np.sqrt(max(variance, 0) / few / many))
    return Answer(row, float(special.ndtr(-SHIFT / np.sqrt(2))), habit)


def draw_labels(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """5% positives, of which 95% are found, and 2% false alarms."""
    truth = (np.arange(n) < n // 20).astype(int)
    guess = (rng.random(n) < np.where(truth == 1, 0.95, 0.02)).astype(int)
    return pd.DataFrame({"point": np.arange(n), "y": truth, "m": guess})


def ask_f1(rng: np.random.Generator, n: int) -> Answer:
    """F1 of a rare class; its true value is that of the expected counts."""
    log = cvstats.losses(draw_labels(rng, n), truth="y", prediction="m", loss="f1", positive=1)
    right, wrong = 0.05 * 0.95, 0.05 * 0.05 + 0.95 * 0.02
    return Answer(only_row(cvstats.interval(log)), 1 - 2 * right / (2 * right + wrong))


def ask_contrast(rng: np.random.Generator, n: int) -> Answer:
    """Two groups at 40 sites with different effects; the habit uses points as sampling unit."""
    sites, per = 40, n // 40
    site = np.repeat(np.arange(sites), per)
    group = np.tile(np.arange(per) % 2, sites)
    effect = rng.normal(0, 0.5, (2, sites))[group, site]
    values = (1 + effect + rng.normal(size=n)) ** 2
    index = pd.MultiIndex.from_arrays(
        [site, np.where(group == 1, "f", "m"), np.arange(n)], names=["source", "sex", "point"]
    )
    log = pd.Series(values, index, name="model")
    row = only_row(log.cvci.contrast(by="sex", between=("f", "m")).cvci.interval())
    f, m = values[group == 1], values[group == 0]
    se = np.sqrt(f.var(ddof=1) / len(f) + m.var(ddof=1) / len(m))
    return Answer(row, 0.0, around(f.mean() - m.mean(), se))


# --- relative differences -------------------------------------------------------------------------


def ask_relative(rng: np.random.Generator, n: int) -> Answer:
    """Skewed losses that share a part, one model better by 10%; the habit is the delta method."""
    common = rng.gamma(0.5, size=n)
    a, b = 0.9 * (common + rng.gamma(0.5, size=n)), common + rng.gamma(0.5, size=n)
    log = pd.DataFrame({"a": a, "b": b}, pd.RangeIndex(n, name="point"))
    row = only_row(log.cvci.compare(reference="b", relative=True))
    ratio = a.mean() / b.mean()
    se = np.std(a - ratio * b, ddof=1) / b.mean() / np.sqrt(n)
    low, high = around(ratio, se)
    return Answer(row, -10.0, (100 * (low - 1), 100 * (high - 1)))


# --- language models ------------------------------------------------------------------------------


def ask_passes(rng: np.random.Generator, n: int, *, every: bool) -> Answer:
    """Hard problems, ten attempts each; the habit takes the mean of pass@5 over 1,000 resamples."""
    a, b, attempts, k = 0.3, 2.4, 10, 3 if every else 5
    ability = rng.beta(a, b, n)
    wrong = rng.random((n, attempts)) > ability[:, None]
    index = pd.MultiIndex.from_product([range(n), range(attempts)], names=["point", "repetition"])
    log = pd.Series(wrong.ravel().astype(float), index, name="model")
    row = only_row(log.cvci.passes(k=k, all=every).cvci.interval())
    moment = special.beta(a + k * every, b + k * (not every)) / special.beta(a, b)
    rate = 1 - wrong.mean()
    se = np.sqrt(rate * (1 - rate) / wrong.size)  # all attempts as independent, then the power
    low, high = (np.clip(end, 0, 1) for end in around(rate, se))
    ends = (1 - high**k, 1 - low**k) if every else ((1 - high) ** k, (1 - low) ** k)
    return Answer(row, float(1 - moment if every else moment), (float(ends[0]), float(ends[1])))


def ask_strengths(rng: np.random.Generator, n: int) -> Answer:
    """Two of three models, n battles of 10 for each prompt, prompts favor models."""
    per, ability = 10, np.array([0.5, 0.0, -0.5])
    prompts = n // per
    liking = rng.normal(0, 1.0, (prompts, 3))
    prompt = np.repeat(np.arange(prompts), per)
    first = rng.integers(0, 3, n)
    second = (first + rng.integers(1, 3, n)) % 3
    own = ability + liking[prompt]
    rows = np.arange(n)
    won = rng.random(n) < special.expit(own[rows, first] - own[rows, second])
    names = np.array(["a", "b", "c"])
    battles = pd.DataFrame(
        {"prompt": prompt, "x": names[first], "y": names[second], "won": won.astype(float)}
    )
    log = cvstats.strengths(battles, prompt="prompt", models=["x", "y"], score="won")
    row = log.cvci.interval().loc["a"]
    return Answer(row, -true_strength())


@functools.cache
def true_strength() -> float:
    """The strength of the best model that predicts most results, from the mean win rates."""
    from scipy import optimize

    ability = np.array([0.5, 0.0, -0.5])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    pairs = [(0, 1), (0, 2), (1, 2)]
    rates = [special.expit(ability[i] - ability[j] + np.sqrt(2) * nodes) @ weights
             for i, j in pairs]  # fmt: skip

    def lack(values: Array) -> float:
        strength = np.append(values, -values.sum())
        logits = [strength[i] - strength[j] for i, j in pairs]
        return float(sum(
            np.logaddexp(0, logit) - rate * logit for rate, logit in zip(rates, logits, strict=True)
        ))  # fmt: skip

    return float(optimize.minimize(lack, np.zeros(2), tol=1e-12).x[0])


# --- survival -------------------------------------------------------------------------------------

SLOPE, AT, CENSORED = 0.8, 0.75, 0.58
"""Coefficient of the log hazard, time of prediction, hazard of censoring (39% of points)."""


def ask_survival(rng: np.random.Generator, n: int, *, loss: str) -> Answer:
    """A risk that is too extreme, or minus its score; the habit drops early censored points."""
    x = rng.normal(size=n)
    died = rng.exponential(size=n) / np.exp(SLOPE * x)
    left = rng.exponential(size=n) / CENSORED
    time, event = np.minimum(died, left), died <= left
    score = 1.3 * SLOPE * x
    frame = pd.DataFrame({
        "point": np.arange(n), "time": time, "event": event.astype(int),
        "risk": risk_of(score) if loss == "brier_at" else -score,
    })  # fmt: skip
    log = cvstats.losses(frame, truth="time", event="event", prediction="risk", loss=loss, at=AT)
    row = only_row(cvstats.interval(log))
    if loss == "uno":
        return Answer(row, true_ranks())
    seen = (time > AT) | event
    values = ((died <= AT) - risk_of(score))[seen] ** 2
    habit = around(values.mean(), values.std(ddof=1) / np.sqrt(len(values)))
    return Answer(row, true_brier(), habit)


def risk_of(score: Array) -> Array:
    """The predicted probability of an event by the time."""
    return -np.expm1(-AT * np.exp(score))


@functools.cache
def true_brier() -> float:
    """Compute the Brier score by quadrature over the feature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    happens, risk = risk_of(SLOPE * nodes), risk_of(1.3 * SLOPE * nodes)
    return float((happens * (1 - risk) ** 2 + (1 - happens) * risk**2) @ (weights / weights.sum()))


@functools.cache
def true_ranks() -> float:
    """Compute one minus Uno's C up to the time, from sampled pairs of points."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2, MANY // 2))
    died = rng.exponential(size=x.shape) / np.exp(SLOPE * x)
    first = died.argmin(axis=0)
    counted = died.min(axis=0) < AT
    right = (x[0] > x[1]) == (first == 0)
    return float(1 - right[counted].mean())


# --- calibration ----------------------------------------------------------------------------------


def ask_calibration(rng: np.random.Generator, n: int, *, loss: str) -> Answer:
    """Probabilities that are too extreme and a little too low."""
    x = rng.normal(size=n)
    y = (rng.random(n) < special.expit(x - 0.5)).astype(int)
    frame = pd.DataFrame({"point": np.arange(n), "y": y, "p": special.expit(1.25 * x - 0.8)})
    log = cvstats.losses(frame, truth="y", prediction="p", loss=loss, positive=1)
    row = only_row(cvstats.interval(log))
    truth = 0.8 if loss == "calibration_slope" else true_ratio()
    return Answer(row, truth)


@functools.cache
def true_ratio() -> float:
    """Observed over expected events, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float(
        special.expit(nodes - 0.5) @ weights / (special.expit(1.25 * nodes - 0.8) @ weights)
    )


# --- the best of many -----------------------------------------------------------------------------


def ask_winner(rng: np.random.Generator, n: int) -> Answer:
    """Twenty equal models with skewed losses; the habit is the t interval of the selected one."""
    shared = rng.exponential(size=(n, 1))
    losses = 0.5 * (shared + rng.exponential(size=(n, 20)))
    log = pd.DataFrame(losses, pd.RangeIndex(n, name="point"),
                       [f"model {j}" for j in range(20)])  # fmt: skip
    row = only_row(cvstats.winner(log, rng=int(rng.integers(2**31))))
    best = losses[:, losses.mean(axis=0).argmin()]
    se = best.std(ddof=1) / np.sqrt(n)
    return Answer(row, 1.0, around(best.mean(), se, stats.t.ppf(1 - ALPHA / 2, n - 1)))


DELTA, IID = "delta method", "all attempts independent"

_LIST = [
    Question("auc", "5% positives", ask_auc, "Hanley and McNeil"),
    Question("f1", "5% positives", ask_f1),
    Question("contrast", "40 sites", ask_contrast, "Welch, points as the sample"),
    Question("compare(relative=True)", "skewed losses", ask_relative, DELTA),
    Question("passes(k=5)", "hard problems", functools.partial(ask_passes, every=False), IID),
    Question("passes(k=3, all=True)", "hard problems",
             functools.partial(ask_passes, every=True), IID),
    Question("strengths", "prompts favor models", ask_strengths),
    Question("brier_at", "39% censored", functools.partial(ask_survival, loss="brier_at"),
             "complete cases"),
    Question("uno", "39% censored", functools.partial(ask_survival, loss="uno")),
    Question("calibration_slope", "too extreme",
             functools.partial(ask_calibration, loss="calibration_slope")),
    Question("observed_expected", "too extreme",
             functools.partial(ask_calibration, loss="observed_expected")),
    Question("winner", "20 equal models", ask_winner, "t interval of the selected model"),
]  # fmt: skip

QUESTIONS = {question.call: question for question in _LIST}


# --- the part of the study ------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A question at one size."""

    call: str
    population: str
    n: int
    runs: int
    batch: int = 250


def run(cell: Sample, runs: int, seed: int) -> dict[str, Array]:
    """Whether each interval contains the truth, how wide it is, and whether it has a label."""
    rng = np.random.default_rng(seed)
    answers = [QUESTIONS[cell.call].ask(rng, cell.n) for _ in range(runs)]
    habits = [answer.habit or (np.nan, np.nan) for answer in answers]
    truth = np.array([answer.truth for answer in answers])
    limits = np.array([[answer.row["lower"], answer.row["upper"]] for answer in answers], float)
    return {
        "lower": limits[:, 0], "upper": limits[:, 1], "truth": truth,
        "habit_lower": np.array(habits)[:, 0], "habit_upper": np.array(habits)[:, 1],
        "cautioned": np.array([bool(answer.row["caution"]) for answer in answers]),
    }  # fmt: skip


def summarize(cell: Sample, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """A row for the default interval, and one for the habit."""
    given = np.isfinite(found["lower"]) & np.isfinite(found["upper"])
    inside = (found["lower"] <= found["truth"]) & (found["truth"] <= found["upper"])
    silent = found["cautioned"] == 0
    about = {"population": cell.population, "n": cell.n, "runs": len(inside)}
    rows = [{
        "method": cell.call, **about,
        "coverage": share(inside[given]),
        "silent": share(inside[given & silent]) if (given & silent).any() else None,
        "cautioned": share(found["cautioned"]),
        "no_limits": share(~given),
        "width": digits(float(np.median((found["upper"] - found["lower"])[given]))),
    }]  # fmt: skip
    habit = QUESTIONS[cell.call].habit
    if habit:
        low, high = found["habit_lower"], found["habit_upper"]
        rows.append({
            "method": f"{habit} ({cell.call})", **about,
            "coverage": share((low <= found["truth"]) & (found["truth"] <= high)),
            "width": digits(float(np.median(high - low))),
        })  # fmt: skip
    return rows


def list_samples() -> list[Sample]:
    """List every question with few and with more points."""
    sizes: dict[str, tuple[int, ...]] = {
        "auc": (240, 1000), "f1": (240, 1000), "contrast": (400, 1600),
        "compare(relative=True)": (20, 50, 200), "passes(k=5)": (30, 164),
        "passes(k=3, all=True)": (30, 164), "strengths": (300, 2000),
        "brier_at": (100, 400), "uno": (100, 400), "calibration_slope": (100, 400),
        "observed_expected": (100, 400), "winner": (100, 400),
    }  # fmt: skip
    return [
        Sample(call, QUESTIONS[call].population, n, 1000)
        for call, some in sizes.items() for n in some
    ]  # fmt: skip
