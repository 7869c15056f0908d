"""A line of the table for each measurement, as plain text or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = ("work", "log", "peer", "theirs", "ours", "ratio", "bound", "met")
TO_THE_LEFT = 3


@dataclass(frozen=True)
class Row:
    """One measurement: ours and theirs in seconds, or ours alone in some unit.

    The bound is one of the ratio ours / theirs, or of ours where there is no peer or
    ``absolute`` is set.
    """

    work: str
    log: str
    peer: str
    ours: float
    theirs: float | None = None
    ratio: float | None = None
    bound: float | None = None
    unit: str = "s"
    absolute: bool = False

    @property
    def met(self) -> str:
        """Whether the bound holds; empty where there is none."""
        if self.bound is None:
            return ""
        value = self.ours if self.absolute else self.ratio
        return "yes" if value is not None and value <= self.bound else "NO"

    def cells(self) -> tuple[str, ...]:
        """What is printed, column by column."""
        theirs = "" if self.theirs is None else amount(self.theirs, self.unit)
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        return (
            self.work,
            self.log,
            self.peer,
            theirs,
            amount(self.ours, self.unit),
            ratio,
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
        return f"{value:.1f} {unit}"
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


def markdown(rows: Iterable[Row]) -> str:
    """Lay the rows out as a table for a page of the documentation."""
    rule = tuple("---" if i < TO_THE_LEFT else "---:" for i in range(len(COLUMNS)))
    lines = [COLUMNS, rule, *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
