"""Losses from saved predictions: losses of single points, and pseudo-losses of other metrics."""
