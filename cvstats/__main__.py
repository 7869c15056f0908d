"""``python -m cvstats``: the command line."""

import sys

from cvstats.cli import main

if __name__ == "__main__":
    sys.exit(main())
