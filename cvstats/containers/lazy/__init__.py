"""Chunked arrays and frames of dask: tasks for blocks, and results before they are known."""
