"""The numbers: designs, moments and results, in numpy and numba alone."""
