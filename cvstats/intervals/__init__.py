"""Interval methods, one file for each family: moments in, interval out, nothing else."""
