"""What the tests and the examples in docstrings share."""

# A plot and its file have one name. pytest would give the name to the file if that came first.
import cvstats.plot  # noqa: F401
