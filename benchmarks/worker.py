"""One commit's side of `benchmarks.compare`: told what to time by lines of standard input.

Each line is a JSON list: ``["ready", scale, name]`` makes the log of a workload and calls once,
``["time"]`` times it. Each answer is one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cvstats
from benchmarks.timing import seconds
from benchmarks.workloads import workloads

LONG_ENOUGH = 0.02
"""Seconds that a sample takes at the least: short calls are repeated."""


class Side:
    """The workload at hand."""

    def __init__(self) -> None:
        self.prepare: Callable[[], Any]
        self.call: Callable[[Any], Any]
        self.times = 1

    def ready(self, scale: str, name: str) -> int:
        """Make the log, and find out how often to call for one sample."""
        self.prepare, self.call = lambda: None, lambda argument: None  # frees the log before
        self.prepare, self.call = workloads(scale)[name].ready()
        self.call(self.prepare())
        self.times = 1
        self.times = min(101, int(LONG_ENOUGH / self.time()) + 1)
        return self.times

    def time(self) -> float:
        """Take the median of some calls."""
        found = []
        for _ in range(self.times):
            argument = self.prepare()
            found.append(seconds(lambda argument=argument: self.call(argument)))
        return median(found)


def main() -> None:
    """Answer each line until there are no more."""
    side = Side()
    tasks: dict[str, Callable[..., Any]] = {"ready": side.ready, "time": side.time}
    print(json.dumps({"answer": str(Path(cvstats.__file__).resolve())}), flush=True)
    for line in sys.stdin:
        task, *arguments = json.loads(line)
        try:
            answer = {"answer": tasks[task](*arguments)}
        except Exception as problem:  # an older commit may lack a function or refuse a log
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
