"""Cautions about a result: bits that methods set, and their texts.

A table shows their labels; ``attrs["cautions"]`` and the report give sentence and advice. The texts
are in ``cautions.toml``, which is read when a caution first occurs. To add a caution, add a member
with the next free bit, and its texts. Bits are never reused, so that results of other versions keep
their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any

import numpy as np

from cvstats.core.types import IntArray

ENOUGH_POINTS = 30
"""Number of points, or of other units, below which the normal approximation is rough."""

FEW_CLUSTERS = 30
"""With fewer clusters (or labels of either level), skewed means make the interval too narrow.

Unequal clusters count as their degrees of freedom plus one.
"""

ENOUGH_DF = (FEW_CLUSTERS - 1) * (1 - 1e-12)
"""Degrees of freedom of that many clusters, up to rounding."""

FEW_DF = 2 - 1e-12
"""Degrees of freedom below which one or two clusters dominate the interval; 2 up to rounding."""


class Caution(IntFlag):
    """Limitations of a result, as bits that can be combined.

    Each member has a ``label`` of at most 25 characters without a comma, a ``sentence`` on what is
    wrong, and an ``advice``; some have methods to use ``instead``, if the log allows them.
    """

    NO_LOSSES = 1 << 0
    ZERO_VARIANCE = 1 << 1
    CLAMPED = 1 << 2
    NEGATIVE_VARIANCE = 1 << 3
    DEPENDENCE_IGNORED = 1 << 4
    BELOW_CHANCE = 1 << 5
    ONE_FOLD = 1 << 6
    SOURCES_AS_FOLDS = 1 << 7
    MEAN_DOMINATED = 1 << 8
    ASSUMED_GAMMA = 1 << 9
    FEW_POINTS = 1 << 10
    FEW_REPETITIONS = 1 << 11
    UNSTABLE_DIFFERENCE = 1 << 12
    SERIAL_DEPENDENCE = 1 << 13
    SELECTED = 1 << 14
    FEW_REPLICATES = 1 << 38
    FEW_SOURCES = 1 << 16
    FEW_CLUSTERS = 1 << 17
    SOURCES_ACROSS_FOLDS = 1 << 18
    FEW_OF_A_CLASS = 1 << 19
    DISCORDANT_FEW = 1 << 20
    NO_TEST = 1 << 21
    FEW_SPLITS = 1 << 22
    FEW_ERRORS = 1 << 23
    SOURCES_IGNORED = 1 << 24
    SMALL_FOLDS = 1 << 25
    UNSTABLE = 1 << 26
    SKEWED = 1 << 27
    UNUSED_LEVEL = 1 << 28
    VERY_FEW_CLUSTERS = 1 << 29
    HEAVY_TAILS = 1 << 30
    ONE_EACH = 1 << 31
    EMPTY = 1 << 32
    NO_LIMITS_YET = 1 << 33
    DOMINATED = 1 << 34
    ALWAYS_AGREE = 1 << 35
    ONE_REPETITION = 1 << 36
    BOUNDED = 1 << 37
    MANY_MODELS = 1 << 15  # frequent, and netCDF 3 has 32 bits
    EARLY_LOOK = 1 << 39
    OTHER_TEST_SIZE = 1 << 40
    OVERFITTING = 1 << 41
    NEVER_OUT_OF_BAG = 1 << 42
    DUPLICATED_POINTS = 1 << 43
    LARGE_ALPHA = 1 << 44
    IDENTICAL = 1 << 45
    HALVES_OVERLAP = 1 << 46
    OTHER_DRAWS = 1 << 47
    JUDGE_IGNORED = 1 << 48
    FEW_DISAGREEMENTS = 1 << 49
    UNEQUAL_CLUSTERS = 1 << 50
    BIASED_BY_FOLD = 1 << 51
    END_OF_SCALE = 1 << 52
    NO_INFLUENCE = 1 << 53
    FEW_AT_ONE_LEVEL = 1 << 54
    TWO_WAYS_CLAMPED = 1 << 55
    POINTS_ALIKE = 1 << 56
    GAPS_IN_TIME = 1 << 57
    HORIZON_NOT_USED = 1 << 58
    STRONG_DEPENDENCE = 1 << 59
    FEW_DATA_SETS = 1 << 60
    CENSORED = 1 << 61
    REFERENCE_NEAR_ZERO = 1 << 62

    @property
    def label(self) -> str:
        """What tables show."""
        return str(words_of(self).get("label", ""))

    @property
    def sentence(self) -> str:
        """What is wrong with the number."""
        return str(words_of(self).get("sentence", ""))

    @property
    def advice(self) -> str:
        """What to do about it, for any log."""
        return str(words_of(self).get("advice", ""))

    @property
    def instead(self) -> tuple[str, ...]:
        """Methods to use instead, best first; options are given only for the method itself."""
        return tuple(words_of(self).get("instead", ()))

    @property
    def too_narrow(self) -> bool:
        """Whether intervals with it are too narrow to decide anything."""
        return bool(words_of(self).get("too_narrow", False))

    @property
    def cause(self) -> str:
        """The reason for another method: ``because of serial dependence``."""
        return str(words_of(self).get("cause", f"because of {self.label}"))

    def advise(self, call: str) -> str:
        """Recommend the call that the log allows instead of this one, and alternatives.

        A sentence, which ends with a period, replaces all advice.
        """
        if not call or call.endswith("."):
            return call or self.advice
        rest = f", or {self.advice[0].lower()}{self.advice[1:]}" if self.advice else "."
        return f"Use {call}{rest}"


@cache
def read_texts() -> dict[str, dict[Any, dict[str, Any]]]:
    """Read the texts of all cautions, and of the checks of `diagnose`, by name."""
    import tomllib

    return tomllib.loads(files("cvstats").joinpath("cautions.toml").read_text(encoding="utf-8"))


@cache
def words_of(caution: Caution) -> dict[str, Any]:
    """Look up the texts of a caution."""
    return read_texts()["cautions"][caution.name]


@cache
def cautions_by_label() -> dict[str, Caution]:
    """Map labels to cautions, in the order of the class."""
    return {caution.label: caution for caution in Caution}


@cache
def label_cautions(flags: int) -> str:
    """Join the labels of all bits of one row; empty if there are none."""
    return ", ".join(caution.label for caution in members_of(flags))


def list_cautions(flags: IntArray) -> tuple[Caution, ...]:
    """List the cautions that occur in any row."""
    return members_of(int(np.bitwise_or.reduce(flags, axis=None)))


@cache
def members_of(flags: int) -> tuple[Caution, ...]:
    """Split a combination of bits into its members."""
    return tuple(caution for caution in Caution if flags & caution)


@cache
def sentences_of(
    cautions: tuple[Caution, ...], calls: tuple[str | None, ...] = ()
) -> Mapping[str, str]:
    """Map the label of each caution to its sentence and its advice.

    ``calls`` are what the log allows instead of the call with the caution, one for each.
    """
    return {
        caution.label: f"{caution.sentence} {caution.advise(call or '')}".strip()
        for caution, call in zip_longest(cautions, calls)
    }


@cache
def methods_instead(flags: int) -> dict[Caution, tuple[str, ...]]:
    """List the methods to use instead, for each caution that has any."""
    return {caution: caution.instead for caution in members_of(flags) if caution.instead}


@cache
def narrow_labels() -> dict[str, Caution]:
    """Map labels to cautions, for intervals that are too narrow to decide anything."""
    return {caution.label: caution for caution in Caution if caution.too_narrow}


def flag_attrs(cautions: tuple[Caution, ...]) -> dict[str, Any]:
    """Make the attrs of a variable of flags, following the CF conventions.

    The flags have 64 bits. NetCDF 3 has only 32, which suffice if the listed cautions fit;
    therefore an array in memory lists only the cautions that occur. A bit means the same in every
    result.
    """
    return {
        "long_name": "cautions about the result",
        "comment": "independent flags; cvstats.cautions(result) returns their labels",
        "flag_masks": np.array([int(caution) for caution in cautions], dtype=np.int64),
        "flag_meanings": " ".join(caution.label.replace(" ", "_") for caution in cautions),
        "flag_descriptions": "; ".join(
            f"{label}: {words}" for label, words in sentences_of(cautions).items()
        ),
    }
