"""The page that people read; it needs jinja2 and matplotlib (extra ``report``)."""

from __future__ import annotations

from cvstats.reporting.facts import about, fragment
from cvstats.reporting.page import checked_path, report

__all__ = ["about", "checked_path", "fragment", "report"]
