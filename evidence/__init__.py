"""How well every method does where the truth is known: ``python -m evidence``."""
