"""The command line: ``cvstats demo`` and commands that read a log from a file."""

from __future__ import annotations

from cvstats.cli.demo import decimals, demo
from cvstats.cli.running import main

__all__ = ["decimals", "demo", "main"]
