"""Logs larger than memory: lazy arrays and dask frames, batches, files."""
