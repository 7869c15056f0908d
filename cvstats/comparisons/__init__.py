"""Comparisons of models on paired losses, each a function under the record of its method."""
