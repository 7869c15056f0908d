"""Kernels over blocks of rows and tiles of columns, and their moments merged in order."""

from cvstats.core.chunked.asked import all_binary, moments
from cvstats.core.chunked.columns import Columns, Differences, Panels
from cvstats.core.chunked.pairs import co_moments, cross_products

__all__ = [
    "Columns",
    "Differences",
    "Panels",
    "all_binary",
    "co_moments",
    "cross_products",
    "moments",
]
