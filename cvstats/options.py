"""Checks of the options of functions, before any log is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from cvstats.errors import LogError, checked_choice, is_number, is_several, plainly, read_names

Rng: TypeAlias = int | np.integer[Any] | np.random.Generator | None


Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
Missing: TypeAlias = Literal["raise", "drop"]
Adjust: TypeAlias = Literal["holm", "bonferroni", "bh"]

AREAS = ("auc", "gini", "partial_auc", "auc_at", "concordance", "somers_d", "uno")
"""Metrics of DeLong's test."""


FUNCTIONS = {
    **dict.fromkeys(("mcnemar", "friedman", "nemenyi", "cochran-q", "winner", "rope"), ""),
    "best-set": "", "equivalence": "margin=…", "tost": "margin=…",
}  # fmt: skip
"""Tests that are functions of their own, and what these need."""
RANKS = ("wilcoxon", "wilcoxon-signed-rank", "signed-rank", "sign-test", "mann-whitney")
"""Tests of medians or of ranks."""


def known_name(option: str, word: Any, losses: Any = None) -> Any:
    """Return the name of a method or adjustment in this package, if it fits the log."""
    if not isinstance(word, str):
        return word
    plain, metadata = plainly(word), getattr(losses, "attrs", {})
    name = read_names(option).get(plain, word)
    if option == "method" and plain in FUNCTIONS:
        test = {"tost": "equivalence"}.get(plain, plain.replace("-", "_"))
        raise LogError(
            f"method={word!r} is a function of its own, not the method of an interval. Expected "
            f"log.cvci.{test}({FUNCTIONS[plain]})."
        )
    if option == "method" and plain in RANKS:
        raise LogError(
            f"method={word!r} tests medians or ranks, but a mean loss is estimated here. Leave "
            f"{option}= out, or use log.cvci.friedman() for ranks of models over data sets."
        )
    if name == "corrected_t" and name != word and has_one_set(losses):
        raise LogError(
            f"method={word!r} is the corrected t-test (corrected_t) of random splits or of "
            f"cross-validation, but this log has neither folds nor repetitions. Leave {option}= "
            "out: points of one test set are then compared in pairs."
        )
    if losses is not None and plain == "delong" and metadata.get("metric") not in AREAS:
        raise LogError(
            f"{option}={word!r} is a test of two AUCs, but this log has "
            f"{metadata.get('loss', 'other losses')}. Expected a log of cvstats.losses(…, "
            f"loss='auc'). Omit {option}=."
        )
    return name


def has_one_set(losses: Any) -> bool:
    """Whether a log has neither folds nor splits, as far as the names of its levels show it."""
    index, dims = getattr(losses, "index", None), getattr(losses, "coords", None)
    names = {*getattr(index, "names", ()), *getattr(losses, "dims", ()), *(dims or ())}
    known = index is not None or dims is not None
    return known and names.isdisjoint(("fold", "repetition", "source", "sample", "outer"))


# --- choices --------------------------------------------------------------------------------------


@cache
def find_choices(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Read the allowed values of each option from the annotations: ``Literal["CR1", "CR3"]``."""
    found = {}
    for name, hint in get_type_hints(function).items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        literals = [part for part in parts if get_origin(part) is Literal]
        if literals and all(part in literals or part is NoneType for part in parts):
            words = tuple(word for part in literals for word in get_args(part))
            found[name] = (*words, None) if NoneType in parts else words
    return found


def check_choices(options: Mapping[str, Any], choices: Mapping[str, tuple[Any, ...]]) -> None:
    """Reject invalid values of options with fixed choices; other options are not checked."""
    for name, allowed in choices.items():
        if name in options:
            checked_choice(name, options[name], allowed)


# --- numbers --------------------------------------------------------------------------------------


def check_alpha(alpha: object) -> None:
    """Reject an invalid error rate."""
    if not isinstance(alpha, (float, np.floating)) or not 0 < alpha < 1:
        raise LogError(
            f"alpha={alpha!r} is out of range. Expected an error rate between 0 and 1, such as "
            f"0.05 for a 95% interval."
        )


def check_numbers(name: str, got: object, *, several: bool = False) -> None:
    """Reject values that are not finite numbers (with ``several``, sequences of these)."""
    sequence = is_several(got)
    values: list[Any] = list(got) if isinstance(got, Iterable) and sequence else [got]
    finite = all(is_number(value) and math.isfinite(value) for value in values)
    if several != sequence or not finite:
        expected = "a sequence of finite numbers" if several else "a finite number"
        raise LogError(f"{name}={got!r} is out of range. Expected {expected}.")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a single whole number (bool excluded)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_number(name: str, value: object, least: int) -> int:
    """Return an option if it is a whole number of at least ``least``."""
    if not is_whole(value) or value < least:
        raise LogError(f"{name}={value!r} is out of range. Expected a whole number from {least}.")
    return int(value)


# --- random numbers -------------------------------------------------------------------------------


def check_rng(rng: object) -> None:
    """Reject values that are neither a seed nor a generator, without drawing."""
    if rng is None or isinstance(rng, np.random.Generator):
        return
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise LogError(
            f"rng={rng!r} is not a seed. Expected a whole number from 0, or a "
            f"numpy.random.Generator."
        )


def seed_of(rng: Rng) -> int:
    """Return the given seed, or draw one."""
    check_rng(rng)
    if rng is None:
        return int(np.random.default_rng().integers(1 << 32))
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(1 << 32))
    return int(rng)
