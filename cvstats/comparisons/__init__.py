"""Comparisons of models on paired losses, each a function decorated with its record."""
