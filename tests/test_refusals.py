"""All refusals are in the stored words, in every container."""

import pytest
import refusals

STORED = refusals.read()
CALLS = refusals.calls()


def test_the_stored_calls_are_these():
    assert {log: sorted(said) for log, said in STORED.items()} == {
        log: sorted((box, name) for box, said in boxes.items() for name in said)
        for log, boxes in CALLS.items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("log", STORED)
def test_the_words_are_the_stored_ones(log):
    """Those of this container, or of another one: a road may take over what another says."""
    stored, other = STORED[log], {}
    for (box, name), wanted in stored.items():
        words = refusals.words_of(CALLS[log][box][name])
        others = [said for (_, call), said in stored.items() if call == name]
        if words != wanted and (words not in others or words.startswith(refusals.FAILED)):
            other[f"{name} of {box}"] = f"{words!r}, and not {wanted!r}"
    assert not other
