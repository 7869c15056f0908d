"""The benchmarks are imported from the checkout: they are not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
