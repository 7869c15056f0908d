"""Copy a Zarr store without its Blosc compression; run as a program of its own.

A damaged chunk can crash Blosc, and with it the whole process. So it is unpacked in a process that
may crash, and the others read the copy. This file imports nothing of the package.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["copy_plain", "uses_blosc"]

METADATA = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")
MOST = 8 << 30
"""Bytes that may be written."""


def copy_plain(source: Path, target: Path) -> None:
    """Copy a store; chunks that Blosc packed are unpacked."""
    unpack = import_module("numcodecs.blosc").Blosc().decode
    room = MOST
    packed = [folder for folder in folders(source) if strip(description(folder))]
    for file in source.rglob("*"):
        if not file.is_file() or file.name == ".zmetadata":
            continue
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.name in METADATA:
            described = json.loads(file.read_text(encoding="utf-8"))
            strip(described)
            copy.write_text(json.dumps(described), encoding="utf-8")
        elif any(folder in file.parents for folder in packed):
            data = file.read_bytes()
            room -= int.from_bytes(data[4:8], "little")  # what the chunk says of its own size
            if room < 0:
                raise ValueError("it would take more than 8 GiB unpacked")
            copy.write_bytes(bytes(unpack(data)))
        else:
            shutil.copyfile(file, copy)


def uses_blosc(source: Path) -> bool:
    """Whether any array of a store is packed by Blosc."""
    return any(
        "blosc" in (folder / name).read_text(encoding="utf-8")
        for folder in folders(source)
        for name in (".zarray", "zarr.json")
        if (folder / name).is_file()
    )


def folders(source: Path) -> list[Path]:
    """List the directories of a store that describe themselves."""
    inside = (file.parent for file in source.rglob("*") if file.name in (".zarray", "zarr.json"))
    return sorted(set(inside))


def description(folder: Path) -> Any:
    """Read what a directory says of itself."""
    name = ".zarray" if (folder / ".zarray").is_file() else "zarr.json"
    return json.loads((folder / name).read_text(encoding="utf-8"))


def strip(described: Any) -> bool:
    """Take Blosc out of the description of an array; tell whether it was there."""
    if not isinstance(described, dict):
        return False
    described.pop("consolidated_metadata", None)
    compressor = described.get("compressor")
    if isinstance(compressor, dict) and compressor.get("id") == "blosc":
        described["compressor"] = None
        return True
    codecs = described.get("codecs")
    if not isinstance(codecs, list) or "blosc" not in json.dumps(codecs):
        return False
    last = codecs.pop()
    if "blosc" in json.dumps(codecs) or last.get("name") not in ("blosc", "numcodecs.blosc"):
        raise ValueError("Blosc within shards cannot be read. Write the store with zstd")
    return True


if __name__ == "__main__":
    sys.tracebacklimit = 0
    copy_plain(Path(sys.argv[1]), Path(sys.argv[2]))
