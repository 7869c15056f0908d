"""Inspect: its logs, packed or in JSON, and the table of ``samples_df()``, by sample and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.readers.archives import documents
from cvstats.readers.asked import Asked
from cvstats.readers.tidy import Tidy
from cvstats.readers.words import require

__all__ = ["inspect", "is_log", "of_archive", "of_log"]

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def of_archive(path: Path) -> pd.DataFrame:
    """Read an archive, as inspect writes it."""
    head, samples = documents(path)
    return of_log({**head, "samples": samples})


def is_log(value: object) -> bool:
    """Whether a JSON document is a log."""
    return isinstance(value, Mapping) and {"eval", "samples"} <= set(value)


def of_log(log: Mapping[str, Any]) -> pd.DataFrame:
    """Lay the samples of a log out as `samples_df` does."""
    head, samples = log.get("eval"), log["samples"]
    if not isinstance(head, dict) or not isinstance(samples, (list, Iterator)):
        raise LogError("this log of inspect has no list of samples. Expected a finished log.")
    if log.get("status") == "started":
        raise LogError("this log of inspect is of a run that did not end. Expected a finished log.")
    rows: list[dict[str, Any]] = []
    for sample in samples:
        if not isinstance(sample, dict):
            raise LogError(f"sample {len(rows):,} of this log is no object. Expected one.")
        row = {"id": sample.get("id"), "epoch": sample.get("epoch")}
        row |= {"eval_id": head.get("eval_id"), "model": head.get("model")}
        row |= {"task_name": head.get("task")}
        error = sample.get("error")
        row["error"] = error.get("message", "error") if isinstance(error, dict) else error
        scores = sample.get("scores")
        for name, score in scores.items() if isinstance(scores, dict) else ():
            row[f"score_{name}"] = score.get("value") if isinstance(score, dict) else score
        metadata = sample.get("metadata")
        for name, value in metadata.items() if isinstance(metadata, dict) else ():
            if isinstance(value, (str, int, float, bool)):
                row[f"metadata_{name}"] = value
        rows.append(row)
    return pd.DataFrame(rows, columns=list(dict.fromkeys(key for row in rows for key in row)))


def inspect(table: pd.DataFrame, asked: Asked) -> Tidy:
    """Turn scores into losses; a sample is known by its ``id`` and not by that of the run."""
    require(table, ["id", "epoch"], "table of inspect's samples_df()")
    table = table.reset_index(drop=True)
    score = score_of(table, asked)
    failed = (
        table["error"].notna() & (table["error"].astype(str).str.strip() != "")
        if "error" in table
        else pd.Series(False, index=table.index)
    )
    if failed.any() and asked.missing != "drop":
        counted = "1 sample" if failed.sum() == 1 else f"{int(failed.sum()):,} samples"
        names = [
            f"id={row.id!r}, epoch={row.epoch!r}"
            for row in table.loc[failed, ["id", "epoch"]].head(3).itertuples()
        ]
        raise LogError(
            f"{counted} ended in an error: "
            f"{listed(names, int(failed.sum()))}. Expected a score for each. Run them again, or "
            f"pass missing='drop' to leave them out."
        )
    kept = table[~failed].reset_index(drop=True)
    higher = asked.higher_is_better is not False
    values = pd.Series([number(value, score) for value in kept[score]], dtype=float)
    if np.isinf(values).any():
        raise LogError(f"a value of {score!r} is infinite. Expected finite scores.")
    out = pd.DataFrame({"point": kept["id"], "loss": 1 - values if higher else values})
    if kept["epoch"].nunique() > 1:
        out["repetition"] = kept["epoch"]
    names_of = models_of(kept, asked)
    if names_of is not None:
        out["model"] = names_of
    source = asked.levels.get("source")
    if source is not None:
        require(kept, [source], "table with this source=")
        out["source"] = kept[source]
    elif "task_name" in kept and kept["task_name"].nunique() > 1:
        out["source"] = kept["task_name"]
    attrs: dict[str, Any] = {"loss": f"1 - {score}" if higher else score}
    if failed.any():
        attrs["n_errored"] = int(failed.sum())
    return Tidy(out, {}, attrs)


def score_of(table: pd.DataFrame, asked: Asked) -> str:
    """Choose the column of scores."""
    every = [str(name) for name in table.columns if str(name).startswith("score_")]
    wanted = asked.wanted
    if wanted is not None:
        name = wanted if wanted in every else f"score_{wanted}"
        if name not in every:
            raise LogError(
                f"there is no score {wanted!r}. Expected metric= to be one of "
                f"{', '.join(map(repr, every[:10])) or 'the scores, and there are none'}."
            )
        return name
    if len(every) != 1:
        raise LogError(
            f"the samples have {len(every)} scores: {listed(map(repr, every))}. Expected one of "
            f"them: metric={(every or ['score_match'])[0]!r}."
        )
    return every[0]


def number(value: Any, score: str) -> float:
    """Turn a grade into a number: C is 1, I 0, P a half, N (no answer) 0."""
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return float(value)
    if value is None or value is pd.NA:
        return float("nan")
    if isinstance(value, str):
        word = value.strip()
        if word in LETTERS:
            return LETTERS[word]
        if word.lower() in WORDS:
            return WORDS[word.lower()]
        try:
            return float(word)
        except ValueError:
            pass
    raise LogError(
        f"a value of {score!r} is {str(value)[:40]!r}. Expected a number or one of the grades C, "
        f"I, P and N. A score of several numbers has a column for none of them: read one with "
        f"samples_df first."
    )


def models_of(table: pd.DataFrame, asked: Asked) -> pd.Series | None:
    """Name the models; runs of one model cannot be told apart from models."""
    if asked.model is not None:
        require(table, [asked.model], "table with this model=")
        return table[asked.model]
    if "model" in table:
        return table["model"]
    if "eval_id" in table and table["eval_id"].nunique() > 1:
        raise LogError(
            "the samples are of several runs, and the table does not name their models. Expected "
            "a column 'model': samples.merge(evals_df(logs)[['eval_id', 'model']])."
        )
    return None
