"""Losses from saved predictions: those of individual points, and pseudo-losses of metrics."""
