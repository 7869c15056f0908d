"""What is shown of a log is as it was: the words of sentences, tables, pages and commands."""

from shown import CASES, EDGES, load, look
from together import together

STORED = load()


def group_of(name):
    """The log of `golden` that was changed, the metric, or the name itself."""
    return f"edges of {EDGES[name]}" if name in EDGES else name.split(" of ")[0]


@together(CASES, by=lambda view, name: f"{view} {group_of(name)}")
def test_what_is_shown_is_as_it_was(view, name):
    assert look(view, name) == STORED[f"{view}: {name}"]


def test_every_stored_view_is_tested():
    assert set(STORED) == {f"{view}: {name}" for view, name in CASES}
