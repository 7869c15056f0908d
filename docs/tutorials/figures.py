"""How the figures of the tutorials look: drawings that a new build does not change."""

import os

import matplotlib as mpl
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
os.environ["SOURCE_DATE_EPOCH"] = "0"  # a drawing bears no date
mpl.rcParams["svg.hashsalt"] = "cvstats"
mpl.rcParams["figure.figsize"] = (6.4, 3.6)
