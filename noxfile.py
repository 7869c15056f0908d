"""What CI runs, for nox: ``nox`` runs all, ``nox -s lint`` one, ``nox -l`` lists them.

The commands are those of ``[tool.cvstats.checks]`` in pyproject.toml; so are those of .ci/run.
"""

from __future__ import annotations

import shlex

import nox

CHECKS = nox.project.load_toml("pyproject.toml")["tool"]["cvstats"]["checks"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "quick", "docs"]


def run(session: nox.Session, check: str, extras: str) -> None:
    """Run the commands of a check with some extras installed."""
    session.install("-e", f".[{extras}]")
    for line in CHECKS[check]:
        session.run(*shlex.split(line), *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint and check the format."""
    run(session, "lint", "dev")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the package and of a user's script."""
    run(session, "types", "dev")


@nox.session(python=PYTHONS)
def quick(session: nox.Session) -> None:
    """Run the tests that start no process and are not slow."""
    run(session, "quick", "test")


@nox.session
def coverage(session: nox.Session) -> None:
    """Run all tests but the slow ones, with line and branch coverage."""
    run(session, "coverage", "test")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, with the tutorials."""
    run(session, "docs", "test,doc")
