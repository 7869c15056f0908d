"""Advice in the words of Python, as options of the command that was typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from inspect import signature

from cvstats.cli import commands
from cvstats.cli.printing import spoken
from cvstats.cli.reading import Reading
from cvstats.core.design import LEVELS

__all__ = ["as_options"]

COMMANDS = {
    command.__name__: command
    for command in (
        commands.interval, commands.compare, commands.report, commands.methods,
        commands.diagnose, commands.convert,
    )
}  # fmt: skip
NO_OPTIONS = ("file", "more", "output", "reading", "read_as")
VALUE = r"(?:'[^']*'|\"[^\"]*\"|…|[\w+-]+(?:\.\w+)*)"
ADVICE = r"(?:as in|name:|apart:|such as) "
"""What stands before a level that is to be typed; elsewhere ``fold=2`` is a label of the log."""
CALL = r"(?:cvstats\.)?\b(?:read_log|interval|losses|as_log)\((?:[^()]|\([^()]*\))*\)"
OF_LABELS = (*LEVELS, "model")
INSTEAD = {
    "; or cvstats.read_predictions": "",
    ", or a function (truth, prediction) -> losses": "",
    "Pass a probability for each class with classes=.": "",
    ", None.": ".",  # to leave an option out
    "pass the other log, as in a.cvci.compare(b), or a frame with a column for each model (an "
    "array with a dimension 'model')": "repeat --prediction, once for each model, or name a "
    "second file",
}
"""What is said of Python only, and what a command says instead."""


def as_options(words: str, command: str | None, files: Sequence[str] = ()) -> str:
    """Turn calls and arguments of Python in a message into what one types in a shell.

    What the command has no option for stays as it is. ``files`` are those that were typed.
    """
    if command not in COMMANDS:
        return words
    options = options_of(command)
    parts = re.split(f"({CALL})", words)
    every = [in_options(part, options) for part in parts]
    every[1::2] = [typed(call, command, options, files) for call in parts[1::2]]
    words = "".join(every)
    for said, instead in INSTEAD.items():
        words = words.replace(said, instead)
    words = words.replace("cvstats.methods(losses)", f"cvstats methods {shell(files)}")
    return spoken(re.sub(r"\b(?:cvstats\.)?save_log\b", "cvstats convert", words))


def in_options(words: str, options: Mapping[str, str]) -> str:
    """Turn arguments outside of calls into options."""
    names = "|".join(options)
    free = "|".join(name for name in options if name not in OF_LABELS)
    one = rf"(?:{names})={VALUE}"
    words = re.sub(rf"({ADVICE})({one}(?:, {one})*)", lambda m: m[1] + given(m[2], options), words)
    words = re.sub(rf"(?<![\w.])(?:{free})={VALUE}", lambda m: given(m[0], options), words)
    return re.sub(rf"(?<![\w.])({names})=(?=[\s,;:.]|$)", lambda m: options[m[1]], words)


def options_of(command: str) -> Mapping[str, str]:
    """Name the option for each argument that the functions of the library have."""
    own = [*signature(COMMANDS[command]).parameters, *(field.name for field in fields(Reading))]
    options = {name: "--" + name.replace("_", "-") for name in own if name not in NO_OPTIONS}
    if "seed" in options:
        options["rng"] = "--seed"
    return {**options, "format": "--read-as"}


def typed(
    call: str, command: str, options: Mapping[str, str], read: Sequence[str]
) -> str:  # fmt: skip
    """Write a call as a command; as it is, where it needs more than a command takes."""
    function, _, arguments = call.removeprefix("cvstats.").partition("(")
    shown = function if function in COMMANDS else command
    files = re.findall(r"'([^']*)': '([^']*)'", arguments)
    if files:
        return f"cvstats {shown} {' '.join(f'{name}={path}' for name, path in files)} …"
    names = re.findall(r"(\w+)=", arguments)
    if not names or any(name not in options for name in names):
        return f"in Python, {call}"
    pairs = re.findall(rf"\w+=(?:\[[^\]]*\]|{VALUE})", arguments)
    start = f"cvstats {shown} {shell(read)}"
    return " ".join([start, *(given(pair, options) for pair in pairs)])


def shell(files: Sequence[str]) -> str:
    """Write the files that were typed as one types them."""
    return " ".join(map(shlex.quote, files)) or "FILE"


def given(arguments: str, options: Mapping[str, str]) -> str:
    """Write arguments with their values as options."""
    out = []
    for name, value in re.findall(rf"(\w+)=(\[[^\]]*\]|{VALUE})", arguments):
        option = options[name]
        if value in ("True", "False"):
            out.append(option if value == "True" else f"--no-{option[2:]}")
            continue
        several = re.findall(VALUE, value) if value.startswith("[") else [value]
        out += [f"{option} {plain(each)}" for each in several]
    return " ".join(out)


def plain(value: str) -> str:
    """Write a value without the quotes of Python, and with those of a shell where it needs any."""
    word = value.strip("'\"")
    return word if word == "…" else shlex.quote(word)
