"""The files of language models that a tutorial reads, as its readers download them."""

from __future__ import annotations

import shutil
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

LOGS = Path(__file__).parents[1] / "tests" / "reference" / "logs"
FILES = ("lm_eval/*/*.jsonl", "inspect_samples.csv")


def write_logs(folder: Path) -> None:
    """Write the files as ``llm_logs.zip``, the same at each build, and unpack it."""
    archive = folder / "llm_logs.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        for path in sorted(path for pattern in FILES for path in LOGS.glob(pattern)):
            name = ZipInfo(f"llm_logs/{path.relative_to(LOGS).as_posix()}")
            file.writestr(name, path.read_bytes(), ZIP_DEFLATED)
    shutil.unpack_archive(archive, folder)
