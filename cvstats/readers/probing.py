"""Try a NetCDF file in a process of its own first: a damaged one can hang or crash HDF5."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cvstats.errors import LogError

__all__ = ["probe"]

SECONDS = 20.0
PER_SECOND = 20 << 20
"""A file is given 20 seconds, and one more for each 20 MiB."""

CODE = """
import math, sys, warnings
warnings.simplefilter("ignore")
sys.tracebacklimit = 0
import h5netcdf, h5py
path = sys.argv[1]
with h5py.File(path, "r") as file:
    file.attrs.get("_nc3_strict")
    for name in file:
        outside = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
        if not outside and isinstance(file[name], h5py.Dataset):
            outside = bool(file[name].external) or file[name].is_virtual
        if outside:
            sys.exit("outside:" + name)
with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
    for variable in file.variables.values():
        dict(variable.attrs)
        if math.prod(variable.shape) <= 10_000_000:
            variable[...]
"""


def probe(path: Path) -> None:
    """Refuse a file that cannot be opened, or whose values would be read out of other files."""
    limit = SECONDS + path.stat().st_size / PER_SECOND
    command = [sys.executable, "-I", "-c", CODE, str(path.absolute())]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise LogError(
            f"{path.name} could not be read within {limit:.0f} seconds. It seems to be damaged."
        ) from None
    if done.returncode == 0:
        return
    words = done.stderr.decode(errors="replace").strip().splitlines()
    last = words[-1][:200] if words else f"HDF5 stopped with status {done.returncode}"
    if last.startswith("outside:"):
        raise LogError(
            f"the values of {last[8:48]!r} in {path.name} would be read out of another file. "
            f"Expected them in the file itself."
        )
    raise LogError(f"{path.name} could not be read: {last}. It seems to be damaged.")
