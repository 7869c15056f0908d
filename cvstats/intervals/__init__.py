"""Intervals and other statistics of one log, each a function decorated with its record."""

from cvstats.intervals._method import find_method as find_method
from cvstats.intervals._method import interval_names as interval_names
from cvstats.intervals._method import list_methods as list_methods
