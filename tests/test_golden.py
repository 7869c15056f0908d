"""All answers are the stored ones, in every container; near zero and far from it."""

import golden
import pytest
import scipy
from golden import CASES, FAR, LOGS, differences, far_calls
from packaging.version import Version
from together import together

STORED = golden.read()

DIGITS = 1e-12 if Version(scipy.__version__) >= Version("1.15") else 1e-9
"""Share of the width; quantiles of Student's t had fewer digits in older releases of scipy."""


def test_the_stored_cases_are_these():
    stored = [(name, box) for name, boxes in STORED["answers"].items() for box in boxes]
    assert stored == golden.calls()


@together(LOGS)
def test_the_logs_are_those_of_the_answers(name):
    assert golden.digest(golden.log_named(name)) == STORED["logs"][name]


@pytest.mark.parametrize("name", CASES)
def test_the_answers_are_the_stored_ones(name):
    stored = STORED["answers"][name]
    said = {}
    for box in stored:
        found = golden.answer(CASES[name], box)
        wanted = stored[box]
        if "refused" in wanted and "refused" not in found:  # as in memory, if at all
            wanted = stored.get(golden.IN_MEMORY.get(box, "frame"), wanted)
        said[box] = differences(wanted, found, tolerance=DIGITS)
        if wanted is stored[box] and wanted.get("caution") != found.get("caution"):
            said[box].append(f"cautions {found.get('caution')}, and not {wanted.get('caution')}")
    assert not {box: words for box, words in said.items() if words}


@together(far_calls(), by=lambda name, _: CASES[name].function)
def test_a_far_level_changes_nothing_else(name, container):
    stored = STORED["answers"][name][container]
    case = CASES[name]
    found = golden.answer(case, container, level=FAR)
    assert not differences(stored, found, tolerance=1e-9, level=FAR, moving=case.moving)


@pytest.mark.parametrize("holder", STORED["signatures"])
def test_signatures(holder):
    assert golden.signatures()[holder] == STORED["signatures"][holder]
