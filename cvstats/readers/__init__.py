"""Logs of other tools, and files of one's own: anything that was written down to a tidy table."""

from cvstats.readers.asked import Asked
from cvstats.readers.finding import read
from cvstats.readers.formats import FORMATS, named_format
from cvstats.readers.saving import save
from cvstats.readers.tidy import Assembled, Tidy, assembled

__all__ = ["FORMATS", "Asked", "Assembled", "Tidy", "assembled", "named_format", "read", "save"]
