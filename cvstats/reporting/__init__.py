"""The one-page report; it needs jinja2 and matplotlib (extra ``report``)."""

from __future__ import annotations

from cvstats.reporting.page import check_path, fragment, report, write_report
from cvstats.reporting.sentences import Summaries, Summary, summary

__all__ = ["Summaries", "Summary", "check_path", "fragment", "report", "summary", "write_report"]
