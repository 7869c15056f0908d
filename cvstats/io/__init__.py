"""Logs of other tools, and files of one's own: anything that was written down to a tidy table."""

from cvstats.io.asked import Asked
from cvstats.io.finding import read
from cvstats.io.formats import FORMATS, named_format
from cvstats.io.saving import save
from cvstats.io.tidy import Assembled, Tidy, assembled

__all__ = ["FORMATS", "Asked", "Assembled", "Tidy", "assembled", "named_format", "read", "save"]
