"""A block function that takes its time: workers of a cluster import it by name."""

import time


def slowly(block):
    """Return the block after a moment."""
    time.sleep(0.15)
    return block
