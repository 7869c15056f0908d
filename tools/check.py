"""Run checks of pyproject.toml by name, in the active environment.

    python -m tools.check               # list them
    python -m tools.check lint types

The commands are in ``[tool.cvstats.checks]``, for this, nox, pre-commit, .ci/run and the workflows.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands() -> dict[str, list[str]]:
    """Read the commands of each check."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        checks: dict[str, list[str]] = tomllib.load(file)["tool"]["cvstats"]["checks"]
    return checks


def main(names: list[str]) -> int:
    """Run checks one after the other until one fails."""
    checks = commands()
    if not names or not set(names) <= set(checks):
        for name, lines in checks.items():
            print(f"{name}: {' && '.join(lines)}")
        return 2 if names else 0
    for name in names:
        for line in checks[name]:
            print("$", line, flush=True)
            words = shlex.split(line)
            if words[0] == "python":
                words[0] = sys.executable
            if code := subprocess.run(words, cwd=ROOT, check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
