"""Archives ``.eval`` of inspect: a zip file with a JSON document for each sample."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cvstats.errors import LogError
from cvstats.io.failures import import_extra, refuse_bomb
from cvstats.io.paths import check_file

ZSTANDARD = 93
"""The number of Zstandard among the methods of compression of zip files."""


def documents(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Open an archive: the head of the log, and its samples one by one."""
    check_file(path)
    if not zipfile.is_zipfile(path):
        raise LogError(f"{path.name} is not an archive of inspect, or was cut off. Expected one.")
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
    unpacked = sum(entry.file_size for entry in entries.values())
    refuse_bomb(path.name, path.stat().st_size, unpacked)
    if "header.json" not in entries:
        raise LogError(
            f"{path.name} has no header.json: the run did not end, or this is not an archive of "
            f"inspect. Expected a finished log."
        )
    samples = [
        entry for name, entry in entries.items()
        if name.startswith("samples/") and name.endswith(".json")
    ]  # fmt: skip
    with path.open("rb") as file:
        head = document(file, entries["header.json"])
    return head, each(path, samples)


def each(path: Path, entries: list[zipfile.ZipInfo]) -> Iterator[dict[str, Any]]:
    """Read one document after the other."""
    with path.open("rb") as file:
        for entry in entries:
            yield document(file, entry)


def document(file: IO[bytes], entry: zipfile.ZipInfo) -> dict[str, Any]:
    """Read one document."""
    name = entry.filename
    try:
        value = json.loads(unpack(file, entry))
    except LogError:
        raise
    except (ValueError, RecursionError, zlib.error, struct.error, OSError, MemoryError):
        raise LogError(f"{name[:60]!r} of the archive is damaged. Expected JSON.") from None
    if not isinstance(value, dict):
        raise LogError(f"{name[:60]!r} of the archive is not a JSON object. Expected one.")
    return value


def unpack(file: IO[bytes], entry: zipfile.ZipInfo) -> bytes:
    """Unpack a document; Python's own zipfile has no Zstandard before 3.14."""
    file.seek(entry.header_offset)
    *_, name, extra = struct.unpack("<4s5H3L2H", file.read(30))
    file.seek(name + extra, 1)
    packed = file.read(entry.compress_size)
    if entry.compress_type == ZSTANDARD:
        codec = import_extra("pyarrow", "an archive of inspect").Codec("zstd")
        data: bytes = codec.decompress(packed, entry.file_size, asbytes=True)
    elif entry.compress_type == zipfile.ZIP_DEFLATED:
        data = zlib.decompressobj(-15).decompress(packed, entry.file_size + 1)
    elif entry.compress_type == zipfile.ZIP_STORED:
        data = packed
    else:
        raise LogError(
            f"the archive is packed by method {entry.compress_type}. Expected 0, 8 or {ZSTANDARD}."
        )
    if len(data) != entry.file_size or zlib.crc32(data) != entry.CRC:
        raise ValueError(entry.filename)
    return data
