"""Inspect: its logs, packed or in JSON, and the table of ``samples_df()``, by sample and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io.formats.inspect_archive import documents
from cvstats.io.predictions import PredictionTable
from cvstats.io.tools._table import ReadOptions, add_named, require_columns
from cvstats.io.tools.tasks import choose_names, facts_of_scores, refuse_other_scales

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
UNFINISHED = ("cancelled", "error")
OLDER = "older runs"
"""The entry of a table's attrs: for each file that was read, how many older ones were not."""
LOST = "lost"
"""The entry of a table's attrs about what its log does not hold."""
SAMPLE = ("task_name", "id")
SCORE = "score_"
"""How the names of the columns of scores begin."""
TASK = "task"
"""Where the attrs name the one task of a log, which is a source beside logs of other tasks."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def join_runs(runs: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """Put runs of several models and tasks below each other, of each of these the newest only.

    The names of files begin with their date.
    """
    found: dict[Any, list[Path]] = {}
    for path in sorted(runs, key=lambda path: path.name):
        found.setdefault(tuple(runs[path][["model", "task_name"]].iloc[0]), []).append(path)
    newest = [paths[-1] for paths in found.values()]
    table = pd.concat([runs[path] for path in newest], ignore_index=True)
    table.attrs = {}
    if lost := [f"{p.name}: {runs[p].attrs[LOST]}" for p in newest if LOST in runs[p].attrs]:
        table.attrs[LOST] = "; ".join(lost)
    older = {paths[-1].name: len(paths) - 1 for paths in found.values() if len(paths) > 1}
    if older:
        table.attrs[OLDER] = older
    return table


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
            raise LogError(f"sample {len(rows):,} of this log is not an object. Expected one.")
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
    if not rows:
        raise LogError("this log of inspect has no samples. Expected at least one.")
    table = pd.DataFrame(rows, columns=list(dict.fromkeys(key for row in rows for key in row)))
    if log.get("status") in UNFINISHED:
        table.attrs[LOST] = unfinished(log, head, len(rows))
    return table


def unfinished(log: Mapping[str, Any], head: Mapping[str, Any], number: int) -> str:
    """Say that a run did not get to its end, and how many samples there should be."""
    results, data, config = (
        part if isinstance(part, dict) else {}
        for part in (log.get("results"), head.get("dataset"), head.get("config"))
    )
    every = results.get("total_samples")
    if not isinstance(every, int) and isinstance(data.get("samples"), int):
        epochs = config.get("epochs")
        every = data["samples"] * (epochs if isinstance(epochs, int) else 1)
    of = f" of {every:,}" if isinstance(every, int) and every >= number else ""
    return (
        f"this run of inspect did not get to its end (status {log['status']!r}): {number:,}{of} "
        f"samples are here, and these need not be like the others"
    )


def refuse_head(value: object) -> None:
    """Refuse a log that was read, or written, without its samples."""
    if isinstance(value, Mapping) and {"eval", "status"} <= set(value) and "samples" not in value:
        raise LogError(
            "this is the head of a log of inspect, without its samples. Expected the whole log: "
            "read the file itself, or read_eval_log(path) without header_only=True."
        )


def inspect(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Turn scores into losses; a sample is known by its ``id`` and not by that of the run."""
    require_columns(table, ["id", "epoch"], "table of inspect's samples_df()")
    lost: list[str] = [table.attrs[LOST]] if LOST in table.attrs else []
    runs: dict[str, int] = table.attrs.get(OLDER, {})
    table = table.reset_index(drop=True)
    failed = failures(table)
    task = table["task_name"].astype(str) if "task_name" in table else pd.Series("", table.index)
    scores = scores_of(table, task, options)
    refuse_failures(table, failed, options)
    kept = table[~failed]
    attrs: dict[str, Any] = {}
    if failed.any():
        attrs["n_errored"] = int(failed.sum())
    whole = complete(kept, models_of(kept, options))
    if not whole.all() and options.missing == "drop":
        attrs["n_incomplete"] = samples_in(kept[~whole])
        kept = kept[whole]
        if not len(kept):
            raise LogError(
                "no sample has a score in every epoch. Expected some. Keep one epoch, as in "
                "samples[samples['epoch'] == 1]."
            )
    elif not whole.all():
        gaps = samples_in(kept[~whole])
        lack = "1 sample lacks" if gaps == 1 else f"{gaps:,} samples lack"
        lost.append(
            f"{lack} an epoch that others have, and would count less; missing='drop' leaves out "
            f"what has such gaps"
        )
    higher = options.higher_is_better is not False
    read = losses_of(kept, task, scores, higher, options)
    plain = {name: score.removeprefix(SCORE) for name, score in scores.items()}
    attrs |= facts_of_scores(plain, higher)
    if len(scores) == 1 and "task_name" in kept:
        attrs[TASK] = next(iter(scores))
    older = [f"{name} (the newest of {number + 1} runs)" for name, number in runs.items()]
    note = f"read was {listed(older)}" if older else ""
    return PredictionTable(read, {}, attrs, "; ".join(lost), note)


def failures(table: pd.DataFrame) -> pd.Series:
    """Find the samples that ended in an error."""
    return (
        table["error"].notna() & (table["error"].astype(str).str.strip() != "")
        if "error" in table
        else pd.Series(False, index=table.index)
    )


def refuse_failures(table: pd.DataFrame, failed: pd.Series, options: ReadOptions) -> None:
    """Refuse samples without a score, unless they are to be left out."""
    number = int(failed.sum())
    if len(table) and number == len(table):
        raise LogError(every_failed(number))
    if not number or options.missing == "drop":
        return
    counted = "1 sample" if number == 1 else f"{number:,} samples"
    names = [
        f"id={row.id!r}, epoch={row.epoch!r}"
        for row in table.loc[failed, ["id", "epoch"]].head(3).itertuples()
    ]
    raise LogError(
        f"{counted} ended in an error: {listed(names, number)}. Expected a score for each. Run "
        f"them again, or pass missing='drop' to leave them out."
    )


def every_failed(number: int) -> str:
    """Say that there is nothing to be read."""
    return (
        f"no sample has a score: all {number:,} ended in an error. Expected a score for each. Run "
        f"them again."
    )


def complete(kept: pd.DataFrame, models: pd.Series | None) -> pd.Series:
    """Find the samples that have a score in every epoch of their model.

    One with fewer answers would weigh less, and the epochs would no longer be the same test set.
    """
    if kept["epoch"].nunique() < 2:
        return pd.Series(True, index=kept.index)
    model = pd.Series("", index=kept.index) if models is None else models
    by = [model.rename("its model"), *(kept[name] for name in SAMPLE if name in kept)]
    runs = [by[0], *(kept[name] for name in ("task_name",) if name in kept)]
    need = kept["epoch"].groupby(runs, dropna=False).transform("nunique")
    return kept["epoch"].groupby(by, dropna=False).transform("nunique") == need


def samples_in(kept: pd.DataFrame) -> int:
    """Count samples, however many epochs they have."""
    names = [name for name in (*SAMPLE, "eval_id", "model") if name in kept]
    return len(kept[names].drop_duplicates())


def losses_of(
    kept: pd.DataFrame, task: pd.Series, scores: Mapping[str, str], higher: bool,
    options: ReadOptions,
) -> pd.DataFrame:  # fmt: skip
    """Turn scores into losses, with the names of samples, epochs, models and sources."""
    values = pd.Series(np.nan, kept.index)
    for name, score in scores.items():
        some = kept.loc[task[kept.index] == name, score]
        read = pd.Series([number(value, score) for value in some], some.index, dtype=float)
        if np.isinf(read).any():
            raise LogError(f"a value of {score!r} is infinite. Expected finite scores.")
        values = values.where(task[kept.index] != name, read)
    refuse_other_scales(values, task[kept.index], scores, dict.fromkeys(scores, not higher))
    out = pd.DataFrame({"point": kept["id"], "loss": 1 - values if higher else values})
    if kept["epoch"].nunique() > 1:
        out["repetition"] = kept["epoch"]
    names_of = models_of(kept, options)
    if names_of is not None:
        out["model"] = names_of
    add_named(out, kept, options)
    if "source" not in out and len(scores) > 1:
        out["source"] = kept["task_name"]
    return out.reset_index(drop=True)


def scores_of(table: pd.DataFrame, task: pd.Series, options: ReadOptions) -> dict[str, str]:
    """Choose the column of scores of each task."""
    every = [str(name) for name in table.columns if str(name).startswith(SCORE)]
    if not every:
        failed = int(failures(table).sum())
        raise LogError(
            every_failed(failed)
            if failed and failed == len(table)
            else f"no sample has a score ({failed:,} of {len(table):,} ended in an error). "
            f"Expected a log that was scored: inspect score FILE."
        )
    names = {
        name: [score for score in every if rows[score].notna().any()] or every
        for name, rows in table.groupby(task, sort=False)
    }
    asked = options.wanted_by_task
    if isinstance(asked, Mapping):
        asked = {name: in_full(score, every) for name, score in asked.items()}
    elif asked is not None:
        asked = in_full(asked, every)
    return choose_names("metric", asked, names, every[0])


def in_full(score: str, every: list[str]) -> str:
    """Name the column of a score, which may be called without its prefix."""
    return score if score in every or SCORE + score not in every else SCORE + score


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


def models_of(table: pd.DataFrame, options: ReadOptions) -> pd.Series | None:
    """Name the models; runs of one model cannot be told apart from models."""
    if options.model is not None:
        require_columns(table, [options.model], "table with this model=")
        return table[options.model]
    if "model" in table:
        return table["model"]
    if "eval_id" in table and table["eval_id"].nunique() > 1:
        raise LogError(
            "the samples are of several runs, and the table does not name their models. Expected "
            "a column 'model': samples.merge(evals_df(logs)[['eval_id', 'model']])."
        )
    return None
