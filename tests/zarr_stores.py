"""The mark of tests that write Zarr stores."""

import pytest
import xarray as xr
from packaging.version import Version

writes_zarr = pytest.mark.skipif(
    Version(xr.__version__) < Version("2025.1.1"), reason="older ones cannot write with zarr 3"
)
