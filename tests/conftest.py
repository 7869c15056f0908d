"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("cvstats", deadline=None)
settings.load_profile("cvstats")
