"""Designs, moments and results, in numpy and numba only."""
