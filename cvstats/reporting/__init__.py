"""The page that people read; it needs jinja2 and matplotlib (extra ``report``)."""

from __future__ import annotations

from cvstats.reporting.content import Settings
from cvstats.reporting.facts import about, fragment
from cvstats.reporting.page import checked_path, report, reported

__all__ = ["Settings", "about", "checked_path", "fragment", "report", "reported"]
