"""A line of the table for each measurement, as plain text or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = ("work", "log", "peer", "theirs", "ours", "ratio", "middle half", "bound", "met")
TO_THE_LEFT = 3


@dataclass(frozen=True)
class Row:
    """One measurement: ours and theirs in seconds, or ours alone in some unit.

    The bound is one of the ratio ours / theirs, or of ours where there is no peer or
    ``absolute`` is set. Half of all pairs of calls had a ratio within ``spread``. A peer that
    could not be measured says in ``absent`` why.
    """

    work: str
    log: str
    peer: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    bound: float | None = None
    unit: str = "s"
    absolute: bool = False
    spread: tuple[float, float] | None = None
    absent: str = ""

    @property
    def met(self) -> str:
        """Whether the bound holds; empty where there is none."""
        if self.bound is None:
            return ""
        value = self.ours if self.absolute else self.ratio
        return "yes" if value is not None and value <= self.bound else "NO"

    def cells(self) -> tuple[str, ...]:
        """What is printed, column by column."""
        theirs = self.absent if self.theirs is None else amount(self.theirs, self.unit)
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        return (
            self.work,
            self.log,
            self.peer,
            theirs,
            "" if self.ours is None else amount(self.ours, self.unit),
            ratio,
            "" if self.spread is None else " to ".join(f"{end:.3g}" for end in self.spread),
            self.limit(),
            self.met,
        )

    def limit(self) -> str:
        """Write the bound as a ratio, a speed-up or an amount."""
        if self.bound is None:
            return ""
        if self.absolute:
            return f"<= {amount(self.bound, self.unit)}"
        return f"<= {self.bound:g}" if self.bound >= 1 else f"<= 1/{1 / self.bound:g}"


def amount(value: float, unit: str) -> str:
    """Write seconds in a unit that suits them; megabytes as they are."""
    if unit != "s":
        return f"{value:.1f} {unit}" if unit in ("MB", "GB/s") else f"{value:g} {unit}"
    for size, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value * 1e6:.3g} us"


def text(rows: Iterable[Row]) -> str:
    """Lay the rows out in aligned columns."""
    lines = [COLUMNS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < TO_THE_LEFT else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row], *, whole: bool = True) -> str:
    """Lay the rows out as a table for a page; columns without a word only in the ``whole``."""
    lines = [row.cells() for row in rows]
    shown = [
        i for i in range(len(COLUMNS)) if whole or i < TO_THE_LEFT or any(line[i] for line in lines)
    ]
    rule = ["---" if i < TO_THE_LEFT else "---:" for i in range(len(COLUMNS))]
    return "\n".join(
        f"| {' | '.join(line[i] for i in shown)} |" for line in (COLUMNS, rule, *lines)
    )
