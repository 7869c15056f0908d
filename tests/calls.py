"""Calls of which tests look at the words: refusals of functions, and commands."""

from typing import Any

import pytest

from cvstats import LogError, cli


def refusal(call: Any, *args: Any, **options: Any) -> str:
    """The message of a refusal."""
    with pytest.raises(LogError) as caught:
        call(*args, **options)
    return str(caught.value)


def refuses(words: str, call: Any, *args: Any, **options: Any) -> None:
    """Check that a call is refused in words that match a pattern."""
    with pytest.raises(LogError, match=words):
        call(*args, **options)


def run(capsys, *words):
    """The status of a command, what it prints, and its errors."""
    status = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err
