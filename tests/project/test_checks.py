"""CI, nox, pre-commit and the workflows run the checks of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cvstats"]["checks"]
USERS = (
    ".ci/run", ".pre-commit-config.yaml", ".github/workflows/tests.yml",
    ".github/workflows/docs.yml", "CONTRIBUTING.md",
)  # fmt: skip


@pytest.mark.parametrize("name", USERS)
def test_each_check_that_is_run_exists(name):
    text = (ROOT / name).read_text("utf-8")
    asked = re.findall(r"tools\.check ([a-z ]+)", text)
    assert asked
    assert {check for words in asked for check in words.split()} <= set(CHECKS)


def test_nox_runs_checks_that_exist():
    text = (ROOT / "noxfile.py").read_text("utf-8")
    assert set(re.findall(r'run\(session, "(\w+)"', text)) <= set(CHECKS)


def test_the_readme_tests_what_the_check_of_coverage_tests():
    (readme,) = re.findall(r"&& (python -m pytest.*)", (ROOT / "README.md").read_text("utf-8"))
    assert CHECKS["coverage"][0].startswith(readme)
