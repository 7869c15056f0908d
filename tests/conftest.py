"""What all tests share."""

import gc
import os
import sys

import pytest
from hypothesis import settings

# The workers of ``-n 2`` start with this. Threads of BLAS wait in a busy loop: two workers with two
# threads each hinder each other, and a logistic regression takes ten times as long.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# With it, each worker and each process that a test starts compiles all modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# On a build machine the same examples come each time; elsewhere new ones are sought.
COMMON = {"deadline": None, "derandomize": "CI" in os.environ}
settings.register_profile("quick", max_examples=10, **COMMON)
settings.register_profile("thorough", max_examples=100, **COMMON)


def is_thorough(config):
    """Whether ``-m slow`` was asked for, which runs the tests of drawn examples too."""
    return config.option.markexpr == "slow"


def pytest_configure(config):
    settings.load_profile("thorough" if is_thorough(config) else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if is_thorough(config) and hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("slow")


def pytest_collection_finish():
    """Leave out the tests and modules, a million objects, from each collection of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_figure_left_open():
    """A figure that a test leaves open would be counted in whichever test comes next."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        left = pyplot.get_fignums()
        pyplot.close("all")
        assert left == []


@pytest.fixture
def plots_without_marks(monkeypatch):
    """Draw no marks in reports; undone in order with what the test patches itself."""
    from plotted import draw_without_marks

    monkeypatch.setattr("cvstats.reporting.page.draw_svg", draw_without_marks)
