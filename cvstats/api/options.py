"""The words that options take, checked before anybody looks at the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvstats.core.result import ALTERNATIVES
from cvstats.errors import checked_choice
from cvstats.intervals import (
    bootstrap,
    heterogeneity,
    nested,
    quadratic,
    replace_one,
    resampled,
    sources,
    splits,
    wald,
)
from cvstats.options import check_alpha

__all__ = ["WORDS", "checked", "checked_words"]

WORDS: dict[str, dict[str, tuple[str | None, ...]]] = {
    "holdout": {"interval": splits.HOLDOUT},
    "wald": {
        "variance": wald.VARIANCES,
        "fold_weights": wald.FOLD_WEIGHTS,
        "alternative": ALTERNATIVES,
    },
    "quadratic": {"estimator": quadratic.ESTIMATORS, "fold_weights": wald.FOLD_WEIGHTS},
    "decompose": {"fold_weights": wald.FOLD_WEIGHTS},
    "five_by_two": {"test": resampled.TESTS},
    "nested_cv": {"bias_correction": nested.BIAS_CORRECTIONS},
    "replace_one": {"constant": replace_one.CONSTANTS},
    "bootstrap_oob": {"monte_carlo": bootstrap.MONTE_CARLO},
    "bootstrap_632": {"monte_carlo": bootstrap.MONTE_CARLO},
    "location_shifted": {"correction": bootstrap.CORRECTIONS},
    "two_stage": {"correction": bootstrap.CORRECTIONS},
    "out_of_source": {"target": tuple(sources.TARGETS), "variance": sources.VARIANCES},
    "clustered": {"correction": sources.CORRECTIONS},
    "heterogeneity": {"variance": heterogeneity.VARIANCES},
}
"""For each method its options that take one of a few words, and these words."""


def checked(method: str, options: Mapping[str, Any]) -> None:
    """Refuse options that no log could make right: ``alpha``, and words that are not known."""
    check_alpha(options["alpha"])
    checked_words(method, options)


def checked_words(method: str, options: Mapping[str, Any]) -> None:
    """Refuse words that a method does not know."""
    for name, allowed in WORDS.get(method, {}).items():
        if name in options:
            checked_choice(name, options[name], allowed)
