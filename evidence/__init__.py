"""Coverage of every method in populations with known truth: ``python -m evidence``."""
