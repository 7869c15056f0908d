"""Readers of the results of other tools; ``FORMATS`` of ``cvstats/io/formats.py`` lists them."""
