"""Few losses by numpy: the numbers of the compiled loops, which are not loaded."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvstats.core import kernels
from cvstats.core.design import Design, Level, count_blocks
from cvstats.core.loss_columns import Differences, LossColumns
from cvstats.core.reduce import compute_moments

BYS = [(), ("fold",), ("repetition", "fold"), ("repetition", "fold", "source")]


@given(st.integers(0, 2**32 - 1), st.sampled_from(BYS), st.booleans(), st.sampled_from([0.0, 1e9]))
def test_the_moments_are_those_of_the_loops(seed, by, masked, level):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    losses = LossColumns((rng.normal(level, 1.0, (n, 3)),))
    if rng.random() < 0.5:
        losses = Differences(losses, np.array([0, 2]), np.array([1, 0]))
    codes = {"repetition": np.int64, "fold": np.int8, "source": np.int16}
    levels = {name: Level(range(4), rng.integers(0, 4, n).astype(codes[name])) for name in codes}
    valid = rng.random(n) < 0.8 if masked else None
    found = []
    for rows in (kernels.FEW, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "FEW", rows)
            found.append(compute_moments(Design(levels, n, valid), losses, by))
    ours, theirs = found
    np.testing.assert_array_equal(ours.codes, theirs.codes)
    np.testing.assert_array_equal(ours.count, theirs.count)
    np.testing.assert_allclose(ours.location, theirs.location, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(ours.m2, theirs.m2, rtol=1e-12, atol=1e-12)
    cells = rng.integers(-1, 5, n).astype(np.int32)
    np.testing.assert_array_equal(*(count_blocks(n, cells, 5, few=few) for few in (True, False)))


SMALL = """
import numpy as np, pandas as pd, cvstats
index = pd.MultiIndex.from_arrays([np.arange(60) % 5, np.arange(60)], names=["fold", "point"])
log = pd.DataFrame(np.random.default_rng(0).random((60, 2)), index, columns=["a", "b"])
log.cvci.wald(variance="within-fold"), log.cvci.compare()
from cvstats.core import kernels
print([name for name, loop in vars(kernels).items() if getattr(loop, "signatures", None)])
"""


@pytest.mark.process
def test_a_small_log_loads_no_compiled_loop():
    """They take a third of a second."""
    run = subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
