"""All answers are the stored ones, in every container; near zero and far from it."""

from __future__ import annotations

import golden
import pytest
from golden import CASES, FAR, LOGS, differences, far_calls

STORED = golden.read()


def asked(pairs):
    return [pytest.param(*pair, id=f"{pair[1]}: {pair[0]}") for pair in pairs]


def test_the_stored_cases_are_these():
    stored = [(name, box) for name, boxes in STORED["answers"].items() for box in boxes]
    assert stored == golden.calls()


@pytest.mark.parametrize("name", LOGS)
def test_the_logs_are_those_of_the_answers(name):
    assert golden.digest(golden.log_named(name)) == STORED["logs"][name]


@pytest.mark.parametrize(("name", "container"), asked(golden.calls()))
def test_the_answer_is_the_stored_one(name, container):
    found = golden.answer(CASES[name], container)
    assert not differences(STORED["answers"][name][container], found)


@pytest.mark.parametrize(("name", "container"), asked(far_calls()))
def test_a_far_level_changes_nothing_else(name, container):
    stored = STORED["answers"][name][container]
    case = CASES[name]
    found = golden.answer(case, container, level=FAR)
    assert not differences(stored, found, tolerance=1e-9, level=FAR, moving=case.moving)


@pytest.mark.parametrize("holder", STORED["signatures"])
def test_signatures(holder):
    assert golden.signatures()[holder] == STORED["signatures"][holder]
