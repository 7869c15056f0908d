"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# On a build machine the same examples come each time; elsewhere new ones are sought.
settings.register_profile("cvstats", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cvstats")
