"""A file that keeps every finished fit, so that an interrupted run can go on.

It is JSON, a line for each fit of each model after a first line that says which run it is.
Lines are only ever added, each in one go: whatever ends the process, all but the last line is
whole.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Hashable, Iterator, Mapping
from io import BufferedRandom
from pathlib import Path
from typing import Any, Self

import numpy as np

from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.evaluation.data import Data
from cvstats.evaluation.fingerprint import mark
from cvstats.evaluation.fitting import Answer, Question
from cvstats.plans import BoundPlan

__all__ = ["Checkpoint"]

KIND = "cvstats.evaluate checkpoint 1"

MEANING = {
    "plan": "the plan (with its seed)",
    "data": "the data (X, y, groups or point)",
    "models": "the estimators",
    "loss": "the loss",
}


class Checkpoint:
    """The finished fits of one run.

    Parameters
    ----------
    path : path
        The file; made if it is not there.
    bound, data, models, question
        What makes this run; the file holds their marks, to tell it from others.

    Raises
    ------
    LogError
        If the file is something else, or belongs to another run.
    """

    def __init__(
        self,
        path: str | Path,
        bound: BoundPlan,
        data: Data,
        models: Mapping[Hashable, Any],
        question: Question,
    ) -> None:
        self.path = Path(path)
        self.names = list(models)  # the file has their numbers
        self.run = {
            "kind": KIND,
            "plan": str(bound.plan),
            "data": mark([data.values.X, data.truth, data.point, data.source]),
            "models": mark([self.names, *models.values()]),
            "loss": mark([question.loss, question.options.quantile]),
        }
        try:
            self.file: BufferedRandom = self.path.open("r+b" if self.path.exists() else "w+b")
        except OSError as error:
            raise LogError(
                f"checkpoint={str(path)!r} cannot be written: {error}. Expected the path of a "
                f"file in a directory that exists."
            ) from error
        try:
            self.done = list(self._resume())
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Self:
        """Keep the file open."""
        return self

    def __exit__(self, *reason: object) -> None:
        """Close the file."""
        self.file.close()

    def add(self, answer: Answer) -> None:
        """Write down a finished fit."""
        losses = np.asarray(answer.losses, dtype="<f8")
        self._write(
            {
                "fit": answer.fit,
                "model": self.names.index(answer.model),
                "losses": base64.b64encode(losses.tobytes()).decode(),
                "no_information": answer.no_information,
            }
        )

    def _write(self, entry: Mapping[str, Any]) -> None:
        self.file.write(json.dumps(entry).encode() + b"\n")
        self.file.flush()

    def _resume(self) -> Iterator[Answer]:
        """Read what is there, cut off a line that was not finished, and go to the end."""
        text = self.file.read()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole and not json.dumps(self.run).encode().startswith(text):
            raise self._foreign()
        lines = whole.splitlines()
        self.file.seek(len(whole))
        self.file.truncate()
        if not lines:
            self._write(self.run)
            return
        self._check(lines[0])
        for number, line in enumerate(lines[1:], start=2):
            yield self._read(line, number)

    def _check(self, line: bytes) -> None:
        """Compare the first line with this run."""
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise self._foreign()
        other = [words for part, words in MEANING.items() if found.get(part) != self.run[part]]
        if other:
            raise LogError(
                f"checkpoint={str(self.path)!r} belongs to another run: it differs in "
                f"{' and '.join(other)}. Expected the run that began it, with "
                f"plan={found.get('plan')}. Pass another path, or delete the file."
            )

    def _read(self, line: bytes, number: int) -> Answer:
        try:
            entry = json.loads(line)
            losses: FloatArray = np.frombuffer(
                base64.b64decode(entry["losses"], validate=True), dtype="<f8"
            ).astype(np.float64)
            rate = entry["no_information"]
            return Answer(entry["fit"], self.names[entry["model"]], losses, rate)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise LogError(
                f"line {number:,} of checkpoint={str(self.path)!r} is damaged. Expected the lines "
                f"that cvstats wrote. Delete it, and its fit is done again."
            ) from error

    def _foreign(self) -> LogError:
        return LogError(
            f"checkpoint={str(self.path)!r} is a file of something else, which is left as it is. "
            f"Expected a path without a file, or a checkpoint of this run."
        )
