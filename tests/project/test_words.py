"""Words that the style note of CONTRIBUTING.md rules out, in the package and its pages."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
]
CODE = sorted(path for path in (ROOT / "cvstats").rglob("*.py"))
RULED_OUT = {
    r"stands? (?:in|below|beside)\b": "occurs in, appears in",
    r"(?<!there )\b(?:is|are) no (?!longer|better|more)\w": "is not a",
    r"\b(?:whoever|nobody|somebody)\b": "name the user, or use the passive",
    r"\blest\b": "so that ... does not",
    r"\b(?:tells|told)\b(?! (?:\w+ ){0,8}apart)": "shows, reports, returns, says",
    r"\bnormal law\b": "normal distribution",
    r"\bsums? up\b": "aggregate",
    r"\bmend(?:s|ed)?\b": "fix, replace",
    r"\b(?:only|this|lower|between) rooms?\b": "module, subpackage",
}


@cache
def read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""  # it may be tested without a checkout


def lines_with(word: str, paths: Iterable[Path], flags: int = 0) -> str:
    """List the lines of files that match a pattern."""
    pattern = re.compile(word, flags | re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        if pattern.search(read(path))  # most files need not be split into lines
        for number, line in enumerate(read(path).splitlines(), 1)
        if pattern.search(line)
    ]
    return "\n".join(found)


TEXTS = [ROOT / "cvstats" / "cautions.toml", ROOT / "cvstats" / "recommend.py"] + [
    path
    for folder in ("cli", "plot", "reporting")
    for path in (ROOT / "cvstats" / folder).rglob("*")
    if path.suffix in (".j2", ".py")
]
FOLKLORE = {
    r"\b(?:doubts?|doubted)\b": "caution, warning, limitation",
    r"\bmay be chance\b|\b(?:more than|beyond) chance\b": "is (not) statistically significant",
    r"\bpromises?\b": "guarantee",
    r"\bmay be the best\b": "possibly best",
}
EVERYWHERE = [
    *CODE,
    *PAGES,
    *(path for name in ("evidence", "benchmarks", "tools") for path in (ROOT / name).rglob("*.py")),
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")),
    *(path for path in (ROOT / "cvstats").rglob("*") if path.suffix in (".toml", ".j2")),
]
TRANSLATED = {
    r"\bh(?:e|o)lds? the truth\b": "contains the true value, covers",
    r"\ballow(?:s|ing)? for\b": "accounts for, is adjusted for",
    r"\bcounts? (?:its )?points\b": "treats points as the sampling unit",
    r"\bchance (?:of|in) the training\b": "training-set variability",
    r"\bmay be chance\b|\bmore than chance\b": "is (not) statistically significant",
    r"\bhave no variance\b": "have infinite variance",
    r"\bin the place of\b": "in place of, instead of",
    r"\bmet the same\b": "were evaluated on the same",
    r"\bof (?:one|your)(?:'s|r)? own\b": "custom",
    r"\band friends\b|\bits kin\b": "and other, and related",
    r"\bthat anyone kept\b": "saved",
    r"\bon (?:every|any) road\b": "in every code path",
    r"\ba int\b|\ba array\b": "an int, an array",
    r"[a-z]\.\.(?:\s|$)": "one period",
    r"\btake[sn]? for independent\b": "treats as independent",
    r"is not known\. Expected": "Unknown loss 'mse'. Expected",
    r"\bthere is no (?:model|source|group|data set|column) [{'\"]": "Unknown model 'x'",
    r"[Ll]eave (?:it|them|\w+=) out\.": "Omit it.",
    r"\blean(?:s|ed)? on\b": "relies on",
    r"\bclaims? too much\b": "is not valid",
    r"\bdrawn as (?:these|they) were\b": "from the same population",
    r"\btimes that go on\b": "if the series continues",
    r"\basked for by name\b": "requested by name",
    r"\bone and the same\b": "constant, the same",
    r"^\s*\"\"\"So many\b|\bat the (?:least|most)\b[.,:]": "Minimum number of, at most",
    r"\(remembered\)": "(cached)",
}


TABLES = {
    "ruled out": (RULED_OUT, [*PAGES, *CODE], re.IGNORECASE),
    "not the term of the field": (FOLKLORE, TEXTS, re.IGNORECASE),
    "translated": (TRANSLATED, EVERYWHERE, 0),
}


@pytest.mark.parametrize(
    ("table", "word"), [(table, word) for table in TABLES for word in TABLES[table][0]]
)
def test_words_that_the_style_note_replaces_do_not_occur(table: str, word: str) -> None:
    instead, paths, flags = TABLES[table]
    found = lines_with(word, paths, flags)
    assert not found, f"write: {instead[word]}\n{found}"


def test_there_are_pages_to_read() -> None:
    assert len(PAGES) > 20
