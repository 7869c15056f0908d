"""An Axes to draw on."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def ax():
    return Figure(figsize=(5, 4), layout="constrained").subplots()
