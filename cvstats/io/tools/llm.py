"""Evaluations of language models: logs of Inspect, samples of lm-evaluation-harness."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from cvstats.core.orientation import facts_of_score
from cvstats.errors import LogError, listed
from cvstats.io.paths import check_file, import_extra, raise_as_log_error, refuse_bomb
from cvstats.io.table import (
    TASK,
    PredictionTable,
    ReadOptions,
    add_named,
    require_columns,
    require_named,
)
from cvstats.io.text import records
from cvstats.io.tools import is_inspect_log, is_lm_eval_sample

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
UNFINISHED = ("cancelled", "error")
OLDER = "older runs"
"""The entry of a table's attrs for files of several runs, with which of the runs was read."""
LOST = "lost"
"""The entry of a table's attrs for what its log lacks."""
SAMPLE = ("task_name", "id")
SCORE = "score_"
"""The prefix of columns of scores."""
INVALIDATED = "invalidated"
"""The error of samples that someone marked as invalid after the run."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def join_runs(runs: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """Concatenate runs of several models and tasks, only the newest of each.

    The names of files start with their date. A run that did not finish is read only if there is no
    complete one.
    """
    found: dict[Any, list[Path]] = {}
    for path in sorted(runs, key=lambda path: path.name):
        found.setdefault(tuple(runs[path][["model", "task_name"]].iloc[0]), []).append(path)
    complete = {path for path, run in runs.items() if LOST not in run.attrs}
    newest = [([p for p in paths if p in complete] or paths)[-1] for paths in found.values()]
    table = pd.concat([runs[path] for path in newest], ignore_index=True)
    table.attrs = {}
    if lost := [f"{p.name}: {runs[p].attrs[LOST]}" for p in newest if LOST in runs[p].attrs]:
        table.attrs[LOST] = "; ".join(lost)
    older = {
        path.name: f"the newest {'complete one ' * (path != paths[-1])}of {len(paths)} runs"
        for path, paths in zip(newest, found.values(), strict=True) if len(paths) > 1
    }  # fmt: skip
    if older:
        table.attrs[OLDER] = older
    return table


def tabulate_log(log: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate the samples of a log as `samples_df` does."""
    head, samples = log.get("eval"), log["samples"]
    if not isinstance(head, dict) or not isinstance(samples, (list, Iterator)):
        raise LogError("this inspect log has no list of samples. Expected a finished log.")
    if log.get("status") == "started":
        raise LogError("the run of this inspect log did not finish. Expected a finished log.")
    rows: list[dict[str, Any]] = []
    for sample in samples:
        if not isinstance(sample, dict):
            raise LogError(f"sample {len(rows):,} of this log is not an object. Expected one.")
        row = {
            "id": sample.get("id"), "epoch": sample.get("epoch"), "eval_id": head.get("eval_id"),
            "model": head.get("model"), "task_name": head.get("task"),
        }  # fmt: skip
        error = sample.get("error")
        row["error"] = error.get("message", "error") if isinstance(error, dict) else error
        if sample.get("invalidation") is not None:
            row["error"] = INVALIDATED
        scores = sample.get("scores")
        for name, score in scores.items() if isinstance(scores, dict) else ():
            row[f"score_{name}"] = score.get("value") if isinstance(score, dict) else score
        metadata = sample.get("metadata")
        for name, value in metadata.items() if isinstance(metadata, dict) else ():
            if isinstance(value, (str, int, float, bool)):
                row[f"metadata_{name}"] = value
        rows.append(row)
    if not rows:
        raise LogError("this inspect log has no samples. Expected at least one.")
    table = pd.DataFrame(rows, columns=list(dict.fromkeys(key for row in rows for key in row)))
    if log.get("status") in UNFINISHED:
        table.attrs[LOST] = unfinished(log, head, len(rows))
    return table


def unfinished(log: Mapping[str, Any], head: Mapping[str, Any], number: int) -> str:
    """Make the warning for a run that did not finish, with the number of samples."""
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
        f"this inspect run did not finish (status {log['status']!r}): {number:,}{of} samples are "
        "in the log, and they may not be representative of all samples"
    )


def inspect(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Convert scores to losses; samples are identified by ``id``, not by the run."""
    require_columns(table, ["id", "epoch"], "table of inspect's samples_df()")
    lost: list[str] = [table.attrs[LOST]] if LOST in table.attrs else []
    note = describe_runs(table)
    table = separate_scores(table.reset_index(drop=True))
    failed = find_failures(table)
    task = table["task_name"].astype(str) if "task_name" in table else pd.Series("", table.index)
    scores = scores_of(table, task, failed, options)
    refuse_failures(table, failed, options)
    kept = table[~failed]
    attrs: dict[str, Any] = {}
    if failed.any():
        attrs["n_errored"] = int(failed.sum())
    whole = has_every_epoch(kept, models_of(kept, options))
    if not whole.all() and options.missing == "drop":
        attrs["n_incomplete"] = samples_in(kept[~whole])
        kept = kept[whole]
        if not len(kept):
            raise LogError(
                "no sample has a score in every epoch. Keep one epoch, as in "
                "samples[samples['epoch'] == 1]."
            )
    elif not whole.all():
        gaps = samples_in(kept[~whole])
        lack = "1 sample lacks" if gaps == 1 else f"{gaps:,} samples lack"
        lost.append(
            f"{lack} an epoch that others have, and would get less weight; pass missing='drop' to "
            "drop samples with such gaps"
        )
    higher = options.higher_is_better is not False
    read = losses_of(kept, task, scores, higher, options)
    plain = {name: score.removeprefix(SCORE) for name, score in scores.items()}
    attrs |= facts_of_scores(plain, higher)
    if len(scores) == 1 and "task_name" in kept:
        attrs[TASK] = next(iter(scores))
    return PredictionTable(read, {}, attrs, "; ".join(lost), note)


def separate_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Make a column of each number of scores that are mappings, perhaps written as JSON.

    The columns have the names of the numbers, as in the results of the log.
    """
    for name in [name for name in table.columns if str(name).startswith(SCORE)]:
        values = table[name].map(read_mapping)
        known = values[table[name].notna()]
        if not len(known) or known.isna().any():
            continue
        table = table.drop(columns=name)
        for key in dict.fromkeys(key for value in known for key in value):
            own = f"{SCORE}{key}" if f"{SCORE}{key}" not in table else f"{name}_{key}"
            table[own] = pd.Series({row: value.get(key) for row, value in known.items()})
    return table


def read_mapping(value: Any) -> dict[str, Any] | None:
    """Return a mapping, or read it from JSON; None if this is another value."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, dict) else None


def describe_runs(table: pd.DataFrame) -> str:
    """Describe which of several runs were read; empty if there are no older ones."""
    read = [f"{name} ({which})" for name, which in table.attrs.get(OLDER, {}).items()]
    return f"read was {listed(read)}" if read else ""


def find_failures(table: pd.DataFrame) -> pd.Series:
    """Find the samples that ended in an error."""
    if "error" not in table:
        return pd.Series(False, index=table.index)
    return table["error"].notna() & (table["error"].astype(str).str.strip() != "")


def refuse_failed_log(failed: pd.Series) -> None:
    """Refuse a log in which every sample ended in an error."""
    if len(failed) and failed.all():
        raise LogError(
            f"no sample has a score: all {len(failed):,} ended in an error. Expected a score for "
            "each. Rerun them."
        )


def refuse_failures(table: pd.DataFrame, failed: pd.Series, options: ReadOptions) -> None:
    """Refuse samples without a score, unless they are dropped."""
    refuse_failed_log(failed)
    number = int(failed.sum())
    if not number or options.missing == "drop":
        return
    counted = "1 sample" if number == 1 else f"{number:,} samples"
    names = [
        f"id={row.id!r}, epoch={row.epoch!r}"
        for row in table.loc[failed, ["id", "epoch"]].head(3).itertuples()
    ]
    marked = table.loc[failed, "error"].astype(str) == INVALIDATED
    reason = "ended in an error"
    if marked.any():
        reason += " or was invalidated" if number == 1 else " or were invalidated"
    raise LogError(
        f"{counted} {reason}: {listed(names, number)}. Expected a score for each. "
        "Rerun them, or pass missing='drop' to drop them."
    )


def has_every_epoch(kept: pd.DataFrame, models: pd.Series | None) -> pd.Series:
    """Find the samples that have a score in every epoch of their model.

    A sample with fewer answers would get less weight, and the test sets of epochs would differ.
    """
    if kept["epoch"].nunique() < 2:
        return pd.Series(True, index=kept.index)
    model = pd.Series("", index=kept.index) if models is None else models
    by = [model.rename("its model"), *(kept[name] for name in SAMPLE if name in kept)]
    found, need = (
        kept["epoch"].groupby(levels, dropna=False).transform("nunique") for levels in (by, by[:-1])
    )
    return found == need


def samples_in(kept: pd.DataFrame) -> int:
    """Count distinct samples, over all epochs."""
    names = [name for name in (*SAMPLE, "eval_id", "model") if name in kept]
    return len(kept[names].drop_duplicates())


def losses_of(
    kept: pd.DataFrame, task: pd.Series, scores: Mapping[str, str], higher: bool,
    options: ReadOptions,
) -> pd.DataFrame:  # fmt: skip
    """Convert scores to losses, with the names of samples, epochs, models and sources."""
    values = pd.Series(np.nan, kept.index)
    for name, score in scores.items():
        some = kept.loc[task[kept.index] == name, score]
        read = pd.Series([grade_to_number(value, score) for value in some], some.index, dtype=float)
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
    return out


def scores_of(
    table: pd.DataFrame, task: pd.Series, failed: pd.Series, options: ReadOptions
) -> dict[str, str]:
    """Choose the column of scores of each task."""
    every = [str(name) for name in table.columns if str(name).startswith(SCORE)]
    if not every:
        refuse_failed_log(failed)
        raise LogError(
            f"no sample has a score ({failed.sum():,} of {len(table):,} ended in an error). "
            "Expected a log that was scored: inspect score FILE."
        )
    names = {
        name: [score for score in every if rows[score].notna().any()] or every
        for name, rows in table.groupby(task, sort=False)
    }
    asked = options.wanted_by_task
    if isinstance(asked, Mapping):
        asked = {name: add_prefix(score, every) for name, score in asked.items()}
    elif asked is not None:
        asked = add_prefix(asked, every)
    return choose_names("metric", asked, names, every[0])


def add_prefix(score: str, every: list[str]) -> str:
    """Return the column of a score, whose prefix may be omitted."""
    return score if score in every or SCORE + score not in every else SCORE + score


def grade_to_number(value: Any, score: str) -> float:
    """Convert a grade to a number: C is 1, I is 0, P is 0.5, N (no answer) is 0."""
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
        "I, P and N."
    )


def models_of(table: pd.DataFrame, options: ReadOptions) -> pd.Series | None:
    """Name the models; runs of one model cannot be distinguished from models."""
    if options.model is not None:
        require_named(table, "model", [options.model])
        return table[options.model]
    if "model" in table:
        return table["model"]
    if "eval_id" in table and table["eval_id"].nunique() > 1:
        raise LogError(
            "the samples are from several runs, but the table does not name their models. Expected "
            "a column 'model': samples.merge(evals_df(logs)[['eval_id', 'model']])."
        )
    return None


LARGEST_SAMPLE = 1 << 28
"""Maximum size in bytes of a sample, which is unpacked at once."""

FOLDER = re.compile(r"samples/.*_epoch_\d+/")
"""The start of the name of each document of a sample that inspect wrote in several."""

ZSTANDARD = 93
"""The code of Zstandard among the compression methods of zip files."""


def read_archive(path: Path) -> pd.DataFrame:
    """Read an archive, as inspect writes it, one sample at a time."""
    check_file(path)
    if not zipfile.is_zipfile(path):
        raise LogError(f"{path.name} is not an inspect archive, or was truncated. Expected one.")
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
    unpacked = sum(entry.file_size for entry in entries.values())
    refuse_bomb(path.name, path.stat().st_size, unpacked)
    if "header.json" not in entries:
        raise LogError(
            f"{path.name} has no header.json: the run did not finish, or this is not an inspect "
            "archive. Expected a finished log."
        )
    samples = []
    for name, entry in entries.items():
        folder = FOLDER.match(name)  # of a sample in several documents
        if folder is not None and name == f"{folder[0]}sample.json":
            samples.append((entry, entries.get(f"{folder[0]}metadata.json")))
        elif folder is None and name.startswith("samples/") and name.endswith(".json"):
            samples.append((entry, None))
    for entry, _ in samples:
        if entry.file_size > LARGEST_SAMPLE:
            raise LogError(
                f"{entry.filename[:60]!r} of {path.name} unpacks to {entry.file_size:,} bytes. "
                f"Expected samples of up to {LARGEST_SAMPLE:,} bytes. Read the scores with inspect "
                f"itself: cvstats.read_log(inspect_ai.analysis.samples_df({path.name!r}))."
            )
    with path.open("rb") as file:
        head = read_document(file, entries["header.json"])
        found = (read_sample(file, *documents) for documents in samples)
        return tabulate_log({**head, "samples": found})


def read_sample(
    file: IO[bytes], entry: zipfile.ZipInfo, metadata: zipfile.ZipInfo | None
) -> dict[str, Any]:
    """Read one sample, whose metadata may be a document of their own."""
    sample = read_document(file, entry)
    return sample if metadata is None else sample | {"metadata": read_document(file, metadata)}


def read_document(file: IO[bytes], entry: zipfile.ZipInfo) -> dict[str, Any]:
    """Read one document."""
    name = entry.filename
    try:
        value = json.loads(unpack(file, entry))
    except LogError:
        raise
    except (ValueError, RecursionError, zlib.error, struct.error, OSError, MemoryError):
        raise LogError(f"{name[:60]!r} of the archive is damaged. Expected JSON.") from None
    if not isinstance(value, dict):
        raise LogError(f"{name[:60]!r} of the archive is not a JSON object. Expected one.")
    return value


def unpack(file: IO[bytes], entry: zipfile.ZipInfo) -> bytes:
    """Unpack a document; Python's own zipfile has no Zstandard before 3.14."""
    file.seek(entry.header_offset)
    *_, name, extra = struct.unpack("<4s5H3L2H", file.read(30))
    file.seek(name + extra, 1)
    packed = file.read(entry.compress_size)
    if entry.compress_type == ZSTANDARD:
        codec = import_extra("pyarrow", "an archive of inspect").Codec("zstd")
        data: bytes = codec.decompress(packed, entry.file_size, asbytes=True)
    elif entry.compress_type == zipfile.ZIP_DEFLATED:
        data = zlib.decompressobj(-15).decompress(packed, entry.file_size + 1)
    elif entry.compress_type == zipfile.ZIP_STORED:
        data = packed
    else:
        raise LogError(
            f"the archive uses compression method {entry.compress_type}. Expected 0, 8 or "
            f"{ZSTANDARD}."
        )
    if len(data) != entry.file_size or zlib.crc32(data) != entry.CRC:
        raise ValueError(entry.filename)
    return data


NAME = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d{2}-\d{2}T[\d.:-]+)?")
OWN = (
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash", "schema_version",
)  # fmt: skip
HIGHER = (
    "acc", "acc_norm", "acc_mutual_info", "acc_bytes", "acc_all", "exact_match", "em", "f1",
    "pass@1", "pass_at_1", "contains", "bleu", "rouge1", "rouge2", "rougeL", "mcc",
    "likelihood_diff",
)  # fmt: skip
LOWER = ("brier_score", "perplexity", "ter", "wer")


def load_runs(folder: Path, tool: str | None) -> pd.DataFrame | dict[str, pd.DataFrame] | None:
    """Load the runs of a folder: archives of inspect, or samples of lm-eval by model."""
    samples = {} if tool == "inspect" else files_of(folder, tool == "lm-eval")
    if samples:
        with raise_as_log_error(folder.name or str(folder)):
            return {model: read_newest(folder, tasks) for model, tasks in samples.items()}
    runs = [] if tool == "lm-eval" else [*folder.glob("*.eval"), *folder.glob("*/*.eval")]
    tables = {}
    for path in runs:
        with raise_as_log_error(path.name):
            tables[path] = read_archive(path)
    return join_runs(tables) if tables else None


def join_tasks(parts: Mapping[str, Any]) -> pd.DataFrame | dict[str, pd.DataFrame] | None:
    """Join the files of a benchmark, one per model and task.

    None for other files, and if a model has a task twice.
    """
    plain = {
        Path(key): tabulate_log(part) if is_inspect_log(part) else part
        for key, part in parts.items()
    }
    tables = {path: part for path, part in plain.items() if isinstance(part, pd.DataFrame)}
    for task, own in (("task_name", "eval_id"), ("task", "scores")):
        if len(tables) < len(parts) or not all(
            {task, own, "model"} <= set(table) for table in tables.values()
        ):
            continue
        who = [tuple(table[["model", task]].iloc[0]) for table in tables.values()]
        if len(set(who)) < len(who):
            return None
        if own == "eval_id":
            return join_runs(tables)
        models: dict[str, list[pd.DataFrame]] = {}
        for (model, _), table in zip(who, tables.values(), strict=True):
            models.setdefault(model, []).append(table)
        return {name: pd.concat(one, ignore_index=True) for name, one in models.items()}
    return None


def files_of(folder: Path, deep: bool) -> dict[str, list[list[Path]]]:
    """Find the samples of each model and task in a folder, oldest run first.

    Unless ``deep``, only at the depth at which the tool writes them: this may be a home directory.
    """
    name = "samples_*.jsonl"
    near = [path for depth in ("", "*/", "*/*/") for path in folder.glob(depth + name)]
    found: dict[str, dict[str, list[Path]]] = {}
    # The date is at the end of the name; the folder may be any.
    for path in sorted(folder.rglob(name) if deep else near, key=lambda path: path.name):
        match = NAME.fullmatch(path.stem)
        if match:
            found.setdefault(path.parent.name, {}).setdefault(match["task"], []).append(path)
    return {
        model: [runs for _, runs in sorted(tasks.items())] for model, tasks in sorted(found.items())
    }


def read_newest(folder: Path, tasks: list[list[Path]]) -> pd.DataFrame:
    """Read the newest run of each task, and note the files and the number of older ones."""
    table = pd.concat([read_samples(runs[-1]) for runs in tasks], ignore_index=True)
    older = {
        f"{folder.absolute().name}/{runs[-1].relative_to(folder).as_posix()}":
        f"the newest of {len(runs)} runs"
        for runs in tasks if len(runs) > 1
    }  # fmt: skip
    if older:
        table.attrs[OLDER] = older
    return table


def read_samples(path: Path) -> pd.DataFrame:
    """Read one file, whose name contains the task and whose directory is the model."""
    match = NAME.fullmatch(path.stem)
    table = tabulate_samples(records(path))
    return table.assign(
        task=match["task"] if match else path.stem, model=path.absolute().parent.name
    )


def tabulate_samples(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Keep what identifies a sample, and its scores."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        if not is_lm_eval_sample(row):
            raise LogError(
                f"row {len(kept):,} has no doc_id, or it has neither doc_hash nor filter. Expected "
                f"samples of lm-evaluation-harness. Found {listed(map(repr, row))}."
            )
        one = {name: row.get(name) for name in ("doc_id", "doc_hash", "filter", "target", "model")}
        names = row.get("metrics")
        if not isinstance(names, list):
            names = [name for name in row if name not in OWN]
        one["scores"] = {str(name): row.get(str(name)) for name in names}
        kept.append(one)
    return pd.DataFrame(kept).dropna(axis="columns", how="all")


def lm_eval(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Convert the scores of samples to losses; samples are matched by document."""
    older, note = table.attrs.get(OLDER, {}), describe_runs(table)
    if not len(table):
        raise LogError("there are no samples. Expected at least one.")
    task = table["task"] if "task" in table else pd.Series("", index=table.index)
    table, filters = keep_filters(table, task, options)
    task = task[table.index]
    names = {
        name: list(dict.fromkeys(score for one in scores for score in one))
        for name, scores in table["scores"].groupby(task, sort=False)
    }
    chosen = choose_names("metric", options.wanted_by_task, names, "acc")
    pairs = zip(map(chosen.__getitem__, task), table["scores"], strict=True)
    values = pd.Series([to_number(scores.get(name), name) for name, scores in pairs], table.index)
    lower = {name: is_lower(score, options) for name, score in chosen.items()}
    refuse_other_scales(values, task, chosen, lower)
    values = values.where(task.map(lower), 1 - values)
    table, values = table.reset_index(drop=True), values.reset_index(drop=True)
    out = pd.DataFrame({"point": name_points(table), "loss": values})
    if "model" in table and table["model"].nunique() > 0:
        out["model"] = table["model"]
    if len(chosen) > 1:
        out["source"] = table["task"]
    attrs = facts_of_scores(chosen, not any(lower.values()))
    if older:
        attrs["read_from"] = ", ".join(older)
    if filters:
        same = len(set(filters.values())) == 1
        attrs["filter"] = next(iter(filters.values())) if same else filters
    return PredictionTable(out, {}, attrs, note=note)


def keep_filters(
    table: pd.DataFrame, task: pd.Series, options: ReadOptions
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Keep the rows of one filter per task, as each sample has one row per filter."""
    if "filter" not in table:
        if options.filter is not None:
            raise LogError("these samples have no filter. Omit filter=.")
        return table, {}
    named = table["filter"].map(lambda name: isinstance(name, str))
    if not named.all():
        raise LogError("a sample has no filter, but others do. Expected one in each row.")
    names = {
        name: list(dict.fromkeys(filters))
        for name, filters in table["filter"].groupby(task, sort=False)
    }
    chosen = choose_names("filter", options.filter, names, "none")
    return table[table["filter"] == task.map(chosen)], chosen


def is_lower(score: str, options: ReadOptions) -> bool:
    """Whether lower scores are better."""
    if options.higher_is_better is not None:
        return not options.higher_is_better
    if score not in (*HIGHER, *LOWER):
        raise LogError(
            f"the direction of {score!r} is unknown. Pass higher_is_better=True or False."
        )
    return score in LOWER


def to_number(value: Any, score: str) -> float:
    """Convert a score to a number."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    if value is None:
        return float("nan")
    raise LogError(
        f"a sample's {score!r} is {str(value)[:40]!r}, which is not a number, so the score is "
        "not a mean over samples. Expected a score with one number per sample, such as acc. To "
        "omit the task, pass the files of the others: read_log(sorted(folder.glob("
        "'*/samples_gsm8k_*.jsonl')))."
    )


def name_points(table: pd.DataFrame) -> pd.Series:
    """Name samples by their hash, and copies of one document by doc_id."""
    if "doc_hash" not in table or table["doc_hash"].isna().any():
        return table["doc_id"]
    within = [name for name in ("model", "task") if name in table]
    copies = table.duplicated([*within, "doc_hash"], keep=False)
    same = table["doc_hash"].isin(table.loc[copies, "doc_hash"])
    longer = table["doc_hash"].astype(str) + "#" + table["doc_id"].astype(str)
    return table["doc_hash"].astype(str).where(~same, longer)


MOST = 10
"""Maximum number of names listed in a message."""
SEVERAL = {
    "metric": "the samples{of} have {number} scores: {some}. Expected one of them: {call}.",
    "filter": "each sample{of} was scored after several filters: {every}. Expected one of them: "
    "{call}.",
}
UNKNOWN = {
    "metric": "Unknown score {wanted!r}{of}. Expected metric= to be one of {every}.",
    "filter": "Unknown filter {wanted!r}{of}. Expected one of {every}.",
}


def choose_names(
    option: str, asked: str | Mapping[str, str] | None, names: Mapping[str, Sequence[str]],
    otherwise: str,
) -> dict[str, str]:  # fmt: skip
    """Choose a name for each task: the requested one, or the only one.

    Parameters
    ----------
    option : str
        "metric" or "filter".
    asked : str or mapping, optional
        One name for the tasks that have it, or a name for each task.
    names : mapping
        The names that each task has.
    otherwise : str
        The name to suggest if a task has none.

    Returns
    -------
    dict
        The name for each task.

    Raises
    ------
    LogError
        If a task has several names and none was requested, or lacks the requested one.
    """
    by_task = asked if isinstance(asked, Mapping) else None
    if strange := [task for task in by_task or () if task not in names]:
        raise LogError(
            f"{option}= names the task {strange[0]!r}. Expected one or more of "
            f"{listed(map(repr, names))}."
        )
    known = {name for every in names.values() for name in every}
    chosen = {}
    for task, every in names.items():
        wanted = asked if by_task is None else by_task.get(task)
        elsewhere = by_task is None and len(names) > 1 and wanted in known
        if wanted in every:
            chosen[task] = str(wanted)
        elif len(every) == 1 and (wanted is None or elsewhere):
            chosen[task] = every[0]
        else:
            first = every[0] if every else otherwise
            call = f"{option}={first!r}" if len(names) == 1 else f"{option}={{{task!r}: {first!r}}}"
            words = (SEVERAL if wanted is None else UNKNOWN)[option]
            raise LogError(
                words.format(
                    wanted=wanted, number=len(every), some=listed(map(repr, every)), call=call,
                    of="" if len(names) == 1 else f" of the task {task!r}",
                    every=", ".join(map(repr, every[:MOST])) or "its scores, but there are none",
                )
            )  # fmt: skip
    return chosen


def refuse_other_scales(
    scores: pd.Series, task: pd.Series, chosen: Mapping[str, str], lower: Mapping[str, bool]
) -> None:
    """Refuse to average scores that mean different things."""
    if len(set(chosen.values())) == 1:
        return
    worse = [name for name, is_lower in lower.items() if is_lower]
    if worse and len(worse) < len(lower):
        better = next(name for name in lower if name not in worse)
        raise LogError(
            f"the score of the task {worse[0]!r} is better when lower, that of {better!r} when "
            "higher, so their mean is meaningless. Expected one direction: read the tasks one "
            f"by one, or pass metric={{{worse[0]!r}: …}}."
        )
    wide = (scores < 0) | (scores > 1)
    if wide.any():
        raise LogError(
            f"the task {task[wide].iloc[0]!r} has the score {scores[wide].iloc[0]:g}, but "
            "different scores can be averaged over tasks only if all are between 0 and 1. Read "
            f"the tasks one by one, or pass metric={{…}}."
        )


def facts_of_scores(chosen: Mapping[str, str], higher: bool) -> dict[str, Any]:
    """Make the attrs of the losses: the scores, and how tasks are averaged."""
    name = " or ".join(dict.fromkeys(chosen.values()))
    facts: dict[str, Any] = facts_of_score(name, "1 - score") if higher else {"loss": name}
    several = {"sources_are": "fixed", "task_metrics": dict(chosen)}
    return facts | (several if len(chosen) > 1 else {})
