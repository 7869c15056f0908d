"""Logs larger than memory: lazy arrays and frames of dask, batches, files."""
