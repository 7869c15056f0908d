"""Cases that are tested together: each one that fails is named, and no other."""

import pytest
from together import together

CASES = [("none", 0), ("one", 1), ("two", 2), ("fewer", -1)]


@together(CASES, by=lambda name, number: number > 0)
def check(name, number):
    with pytest.raises(ZeroDivisionError):
        1 / number
    assert number == 0


def test_each_case_that_fails_is_named():
    with pytest.raises(AssertionError) as caught:
        check(False)
    assert "fewer, -1: Failed: DID NOT RAISE ZeroDivisionError" in str(caught.value)
    assert "none" not in str(caught.value)
    with pytest.raises(AssertionError, match="(?s)one, 1: .*two, 2: "):
        check(True)
    assert check.pytestmark[0].args == ("group", {False: CASES[::3], True: CASES[1:3]})
