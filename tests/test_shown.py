"""What is shown of a log is as it was: the words of sentences, tables, pages and commands."""

import pytest
from shown import CASES, load, look

STORED = load()


@pytest.mark.parametrize(("view", "name"), CASES)
def test_what_is_shown_is_as_it_was(view, name):
    assert look(view, name) == STORED[f"{view}: {name}"]


def test_every_stored_view_is_tested():
    assert set(STORED) == {f"{view}: {name}" for view, name in CASES}
