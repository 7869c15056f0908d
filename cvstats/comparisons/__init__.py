"""Paired comparisons: an interval of differences in, tests and adjusted p-values out."""
