"""The command line: ``cvstats demo`` and commands that read a log from a file."""

from __future__ import annotations

from cvstats.cli.app import main

__all__ = ["main"]
