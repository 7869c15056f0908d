"""The plans of the study, the intervals computed from their logs, and the errors they target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cvstats import plans
from cvstats.plans import Plan


@dataclass(frozen=True)
class Question:
    """An interval with its options, and the error that it should cover."""

    method: str
    truth: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """A plan, and the questions about its logs."""

    plan: Callable[[int], Plan] | None
    questions: tuple[Question, ...]

    @property
    def truths(self) -> set[str]:
        """Every error that a question is about."""
        return {question.truth for question in self.questions}


def ask(method: str, truth: str, /, **options: Any) -> Question:
    return Question(method, truth, options)


PARTITION = (
    ask("wald", "trained"),
    ask("wald", "trained", variance="within-fold"),
    ask("wald", "trained", interval="hall"),
    ask("naive", "expected"),
    ask("cv_t", "expected"),
    ask("corrected_t", "expected"),
    *(ask("quadratic", "expected", estimator=f"theta_{i}") for i in (2, 3, 4, 5)),
    ask("interval", "trained"),
)
TEST_SET = (
    ask("holdout", "trained"),
    ask("holdout", "trained", interval="t"),
    ask("holdout", "trained", interval="hall"),
    ask("interval", "trained"),
)
PROPORTIONS = (
    ask("holdout", "trained", interval="wilson"),
    ask("holdout", "trained", interval="clopper-pearson"),
)

ELSEWHERE = {"refit_corrected": "for differences of models: docs/theory/refits.md"}
"""The intervals that are measured in another study, and where."""
UNMEASURED: dict[str, str] = {}
"""New intervals that neither the study nor the benchmarks measure yet, and why."""

DESIGNS: dict[str, Design] = {
    "holdout": Design(lambda seed: plans.holdout(0.8, rng=seed), TEST_SET),
    "10-fold": Design(lambda seed: plans.k_fold(10, rng=seed), PARTITION),
    "10-fold, labels": Design(
        lambda seed: plans.k_fold(10, rng=seed),
        (
            *PARTITION,
            ask("wald", "trained", interval="wilson"),
            ask("wald", "trained", interval="clopper-pearson"),
        ),
    ),
    "5 x 10-fold": Design(
        lambda seed: plans.repeated_k_fold(10, 5, rng=seed),
        (ask("wald", "trained"), ask("corrected_t", "expected")),
    ),
    "25 splits": Design(
        lambda seed: plans.subsampling(25, ratio=0.9, rng=seed),
        (ask("corrected_t", "expected"), ask("interval", "expected")),
    ),
    "five_by_two": Design(
        lambda seed: plans.five_by_two(rng=seed),
        (ask("five_by_two", "expected"), ask("five_by_two", "expected", test="f")),
    ),
    "paired_subsampling": Design(
        lambda seed: plans.paired_subsampling(rng=seed), (ask("conservative_z", "expected"),)
    ),
    "nested_cv": Design(
        lambda seed: plans.nested_cv(5, 25, rng=seed),
        (
            ask("nested_cv", "final"),
            ask("nested_cv", "expected_at_n"),
            ask("nested_cv", "final", bias_correction=None),
        ),
    ),
    "replace_one": Design(
        lambda seed: plans.replace_one(rng=seed), (ask("replace_one", "expected"),)
    ),
    "bootstrap": Design(
        lambda seed: plans.bootstrap(200, rng=seed),
        (
            ask("bootstrap_oob", "expected"),
            ask("bootstrap_oob", "expected", monte_carlo="removed"),
            ask("bootstrap_632", "expected_at_n"),
            ask("bootstrap_632", "expected_at_n", monte_carlo="removed"),
            ask("bootstrap_632", "expected_at_n", plus=False),
            ask("location_shifted", "expected_at_n"),
        ),
    ),
    "case_bootstrap": Design(
        lambda seed: plans.case_bootstrap(100, rng=seed),
        (ask("case_bootstrap", "expected_at_n"),),
    ),
    "two_stage": Design(
        lambda seed: plans.two_stage(100, 30, rng=seed),
        (
            ask("two_stage", "expected_at_n", correction="632"),
            ask("two_stage", "expected_at_n", correction="harrell"),
        ),
    ),
    "10-fold of groups": Design(
        lambda seed: plans.k_fold(10, grouped=True, rng=seed),
        (
            ask("clustered", "trained"),
            ask("clustered", "trained", correction="CR1"),
            ask("clustered", "trained", correction="CR3"),
            ask("wild_cluster", "trained", n_draws=999),
            ask("wald", "trained"),
            ask("interval", "trained"),
        ),
    ),
    "leave_one_source_out": Design(
        lambda seed: plans.leave_one_source_out(),
        (
            ask("out_of_source", "expected"),
            ask("out_of_source", "one_source", interval="prediction"),
            ask("out_of_source", "these_sources", target="these_sources"),
            ask("out_of_source", "these_sources", target="these_sources", variance="theta_a"),
            ask("clustered", "trained"),
            ask("wald", "these_sources"),
            ask("interval", "expected"),
        ),
    ),
    "10-fold, 90%": Design(
        lambda seed: plans.k_fold(10, rng=seed),
        (ask("naive", "final", alpha=0.1), ask("naive", "expected_at_n", alpha=0.1)),
    ),
    "nested_cv, 90%": Design(
        lambda seed: plans.nested_cv(5, 25, rng=seed),
        (
            ask("nested_cv", "final", alpha=0.1),
            ask("nested_cv", "expected_at_n", alpha=0.1),
            ask("nested_cv", "final"),
            ask("nested_cv", "expected_at_n"),
        ),
    ),
    "test set": Design(None, TEST_SET),
    "test set, labels": Design(None, (*TEST_SET, *PROPORTIONS)),
    "test set, bounded": Design(
        None,
        (
            *TEST_SET,
            ask("holdout", "trained", interval="betting", bounds=(0.0, 1.0)),
            ask("holdout", "trained", interval="bernstein", bounds=(0.0, 1.0)),
        ),
    ),
    "test set, times": Design(
        None,
        (
            ask("ordered", "trained"),
            ask("ordered", "trained", estimator="newey-west"),
            ask("holdout", "trained"),
        ),
    ),
    "test set, groups": Design(
        None,
        (
            ask("clustered", "trained"),
            ask("clustered", "trained", correction="CR1"),
            ask("wild_cluster", "trained", n_draws=999),
            ask("holdout", "trained"),
            ask("interval", "trained"),
        ),
    ),
    "test set, seeds": Design(
        None,
        (
            ask("clustered", "expected", by=("point", "repetition")),
            ask("holdout", "trained"),
        ),
    ),
    "test set, metric": Design(
        None,
        (
            ask("wald", "trained"),
            ask("wald", "trained", scale="logit"),
            ask("wald", "trained", fold_weights="equal"),
            ask("corrected_t", "expected"),
            ask("interval", "trained"),
        ),
    ),
}
"""Every design, by name."""


def describe(plan: Plan) -> str:
    """Format the call of a plan, without its seed and inactive options."""
    told = [f"{name}={value}" for name, value in plan.options if value and name != "rng"]
    return f"{plan.name}({', '.join(told)})"


@dataclass(frozen=True)
class Cell:
    """A population, a number of points and a design, with the runs of the full study."""

    population: str
    n: int
    design: str
    runs: int
    batch: int = 500
    """Number of runs that are computed and saved together."""


def over(population: str, design: str, sizes: Mapping[int, int], batch: int = 500) -> list[Cell]:
    """Cells of one population and design: the runs for each number of points."""
    return [Cell(population, n, design, runs, min(batch, runs)) for n, runs in sizes.items()]


SMOOTH = (
    "normal mean", "lognormal mean", "laplace median", "normal density", "label share", "ridge",
    "ridge t3", "flights", "flights departed", "flights late",
)  # fmt: skip
HEAVY = ("lognormal mean", "ridge", "least squares 30", "interpolation peak", "nearest neighbour",
         "nearest label", "flights", "flights late")  # fmt: skip

SIZES = {50: 4000, 100: 4000, 1000: 4000}
"""Cheap numbers of points, and their runs."""


def list_cells() -> list[Cell]:
    """Every cell of the study of intervals."""
    cells: list[Cell] = []
    for name in SMOOTH:
        cells += over(name, "10-fold", SIZES)
        cells += over(name, "10-fold", {10_000: 1000}, batch=100)
        cells += over(name, "holdout", {100: 4000, 1000: 4000})
        cells += over(name, "holdout", {10_000: 1000}, batch=100)
    for name in ("least squares 30", "nearest neighbour"):
        cells += over(name, "10-fold", {50: 4000, 100: 4000, 200: 4000, 1000: 2000}, batch=250)
        cells += over(name, "10-fold", {10_000: 200}, batch=20)
        cells += over(name, "holdout", {100: 4000, 1000: 2000}, batch=250)
    cells += over("interpolation peak", "10-fold", {100: 2000, 200: 1000}, batch=250)
    cells += over("interpolation peak", "holdout", {100: 2000}, batch=250)
    cells += over("nearest label", "10-fold, labels", SIZES)
    cells += over("nearest label", "10-fold, labels", {10_000: 500}, batch=50)
    cells += over("deep tree", "10-fold", {100: 500, 1000: 200}, batch=50)
    cells += over("sparse logit", "10-fold, labels", {90: 400}, batch=20)
    cells += over("logit 20", "10-fold, labels", {100: 4000, 1000: 2000}, batch=250)
    for name in HEAVY:
        batch = 100
        cells += over(name, "5 x 10-fold", {100: 2000}, batch)
        cells += over(name, "25 splits", {100: 2000}, batch)
        cells += over(name, "five_by_two", {100: 4000}, batch)
        cells += over(name, "paired_subsampling", {100: 1000}, batch)
        cells += over(name, "nested_cv", {100: 1000}, batch)
        cells += over(name, "replace_one", {100: 1000}, batch)
        cells += over(name, "bootstrap", {100: 500}, batch)
    for name in ("lognormal mean", "ridge", "nearest neighbour"):
        cells += over(name, "25 splits", {1000: 500}, batch=50)
        cells += over(name, "five_by_two", {1000: 1000}, batch=100)
        cells += over(name, "paired_subsampling", {1000: 300}, batch=20)
        cells += over(name, "nested_cv", {1000: 300}, batch=10)
        cells += over(name, "case_bootstrap", {50: 300}, batch=50)
        cells += over(name, "two_stage", {50: 300}, batch=50)
    for name in ("lognormal mean", "ridge"):
        cells += over(name, "replace_one", {400: 400}, batch=20)
    cells += over("deep tree", "nested_cv", {100: 100}, batch=10)
    cells += over("deep tree", "25 splits", {100: 200}, batch=50)
    cells += over("logit 20", "25 splits", {100: 2000}, batch=100)
    cells += over("sparse logit", "nested_cv, 90%", {90: 120}, batch=5)
    cells += over("sparse logit", "10-fold, 90%", {90: 400}, batch=20)
    cells += over("logit 20", "10-fold, 90%", {100: 4000}, batch=250)
    cells += over("logit 20", "nested_cv, 90%", {100: 1000}, batch=100)
    for name in ("groups", "unequal groups"):
        sizes = {100: 4000, 300: 4000, 1000: 4000}
        cells += over(name, "10-fold of groups", sizes, batch=250)
        cells += over(name, "10-fold of groups", {10_000: 400}, batch=50)
    for name in ("sources", "source offsets"):
        sizes = {100: 4000, 200: 4000, 600: 4000}
        cells += over(name, "leave_one_source_out", sizes, batch=250)
        cells += over(name, "leave_one_source_out", {2000: 1000}, batch=50)
    wide = {50: 4000, 100: 4000, 1000: 4000}
    for name, design in (
        ("rare errors", "test set, labels"), ("frequent errors", "test set, labels"),
        ("skewed losses", "test set"), ("bounded losses", "test set, bounded"),
        ("ar1 0.6", "test set, times"), ("ar1 0.9", "test set, times"),
        ("tested groups", "test set, groups"), ("grouped errors", "test set, groups"),
        ("repeated answers", "test set"),
        ("seeds", "test set, seeds"), ("ranked scores", "test set, metric"),
    ):  # fmt: skip
        cells += over(name, design, wide)
        cells += over(name, design, {10_000: 500}, batch=50)
    return cells
