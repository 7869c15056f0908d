"""What papers report of these methods, beside what this study finds."""

from __future__ import annotations

from typing import Any

Rows = dict[str, list[dict[str, Any]]]


def compare(rows: Rows) -> list[dict[str, Any]]:
    """A row for each statement of the literature that the study can judge."""
    return []
