"""The page that people read; it needs jinja2 and matplotlib (extra ``report``)."""

from __future__ import annotations

from cvstats.reporting.content import Settings
from cvstats.reporting.facts import fragment, summarize
from cvstats.reporting.page import check_path, report, write_report
from cvstats.reporting.verdict import Summary, summary

__all__ = [
    "Settings",
    "Summary",
    "check_path",
    "fragment",
    "report",
    "summarize",
    "summary",
    "write_report",
]
