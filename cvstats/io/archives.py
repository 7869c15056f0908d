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
from cvstats.io.files import MOST_JSON, check_size
from cvstats.io.words import needed

__all__ = ["documents"]

LARGEST = 256 << 20
"""A document of an archive may have 256 MiB, unpacked."""
MOST_DOCUMENTS = 1_000_000
ZSTANDARD = 93
"""The number of Zstandard among the methods of compression of zip files."""


def documents(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Open an archive: what stands at the head of the log, and its samples one by one."""
    check_size(path, 1 << 50)
    if not zipfile.is_zipfile(path):
        raise LogError(f"{path.name} is no archive of inspect, or it was cut off. Expected one.")
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
    if "header.json" not in entries:
        raise LogError(
            f"{path.name} has no header.json: the run did not end, or this is no archive of "
            f"inspect. Expected a finished log."
        )
    samples = [
        entry for name, entry in entries.items()
        if name.startswith("samples/") and name.endswith(".json")
    ]  # fmt: skip
    total = sum(entry.file_size for entry in samples)
    if len(samples) > MOST_DOCUMENTS or total > MOST_JSON:
        raise LogError(
            f"{path.name} claims {len(samples):,} samples of {total / 2**30:.1f} GiB. Expected at "
            f"most {MOST_DOCUMENTS:,} of {MOST_JSON >> 30}. Read it with inspect's samples_df."
        )
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
    if entry.file_size > LARGEST or entry.compress_size > LARGEST:
        raise LogError(f"{name[:60]!r} is larger than {LARGEST >> 20} MiB. Expected less.")
    try:
        value = json.loads(unpacked(file, entry))
    except LogError:
        raise
    except (ValueError, RecursionError, zlib.error, struct.error, OSError):
        raise LogError(f"{name[:60]!r} of the archive is damaged. Expected JSON.") from None
    if not isinstance(value, dict):
        raise LogError(f"{name[:60]!r} of the archive is no JSON object. Expected one.")
    return value


def unpacked(file: IO[bytes], entry: zipfile.ZipInfo) -> bytes:
    """Unpack a document; Python's own zipfile knows no Zstandard before 3.14."""
    file.seek(entry.header_offset)
    *_, name, extra = struct.unpack("<4s5H3L2H", file.read(30))
    file.seek(name + extra, 1)
    packed = file.read(entry.compress_size)
    if entry.compress_type == ZSTANDARD:
        codec = needed("pyarrow", "an archive of inspect").Codec("zstd")
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
