"""Schedulers of dask for tests of lazy logs: one that refuses to compute, one without threads."""

import time
from functools import partial

import pytest

dask = pytest.importorskip("dask", reason="the extra dask is not installed")


def early(graph, keys, **_):
    """Stand in for a scheduler where nothing may be computed."""
    raise AssertionError("something was computed early")


guard = partial(dask.config.set, scheduler=early)
now = partial(dask.config.set, scheduler="synchronous")


def slowly(block):
    """Return the block after a moment; workers of a cluster import this by name."""
    time.sleep(0.15)
    return block
