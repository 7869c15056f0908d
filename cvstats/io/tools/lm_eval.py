"""lm-evaluation-harness: the samples that ``--log_samples`` writes, a JSONL file for each task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io.formats.tabular import records
from cvstats.io.predictions import PredictionTable
from cvstats.io.tools._table import ReadOptions
from cvstats.io.tools.tasks import choose_names, facts_of_scores, refuse_other_scales

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
OLDER = "older runs"
"""The entry of a table's attrs: for each file that was read, how many older ones were not."""
LOWER = ("brier_score", "perplexity", "ter", "wer")


def is_sample(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a sample of this tool."""
    return "doc_id" in record and bool({"doc_hash", "filtered_resps", "filter"} & set(record))


def files_of(folder: Path, deep: bool = True) -> dict[str, list[list[Path]]]:
    """Find the samples of each model and task below a folder, from the oldest run to the newest.

    Unless ``deep``, no further down than the tool itself puts them: what is searched may be
    anybody's home.
    """
    name = "samples_*.jsonl"
    near = [path for depth in ("", "*/", "*/*/") for path in folder.glob(depth + name)]
    found: dict[tuple[str, str], list[Path]] = {}
    # The date stands at the end of the name, below whatever folder the run was put.
    for path in sorted(folder.rglob(name) if deep else near, key=lambda path: path.name):
        match = NAME.fullmatch(path.stem)
        if match:
            found.setdefault((path.parent.name, match["task"]), []).append(path)
    out: dict[str, list[list[Path]]] = {}
    for (model, _), runs in sorted(found.items()):
        out.setdefault(model, []).append(runs)
    return out


def newest(folder: Path, tasks: list[list[Path]]) -> pd.DataFrame:
    """Read the newest run of each task, and note which files these are and what is older."""
    table = pd.concat([of_file(runs[-1]) for runs in tasks], ignore_index=True)
    older = {
        f"{folder.absolute().name}/{runs[-1].relative_to(folder).as_posix()}": len(runs) - 1
        for runs in tasks
        if len(runs) > 1
    }
    if older:
        table.attrs[OLDER] = older
    return table


def of_file(path: Path) -> pd.DataFrame:
    """Read one file; the task is in its name, the model in that of its directory."""
    match = NAME.fullmatch(path.stem)
    table = of_records(records(path))
    return table.assign(
        task=match["task"] if match else path.stem, model=path.absolute().parent.name
    )


def of_records(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Keep what identifies a sample, and its scores."""
    kept: list[dict[str, Any]] = []
    for row in rows:
        if not is_sample(row):
            raise LogError(
                f"row {len(kept):,} has no doc_id with doc_hash or filter. Expected samples of "
                f"lm-evaluation-harness. Found {listed(map(repr, row))}."
            )
        one = {name: row.get(name) for name in ("doc_id", "doc_hash", "filter", "target", "model")}
        names = row.get("metrics")
        if not isinstance(names, list):
            names = [name for name in row if name not in OWN]
        one["scores"] = {str(name): row.get(str(name)) for name in names}
        kept.append(one)
    return pd.DataFrame(kept).dropna(axis="columns", how="all")


def lm_eval(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Turn the scores of samples into losses, joined by what the documents say."""
    older: dict[str, int] = table.attrs.get(OLDER, {})
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
    lower = {name: is_lower(score, options) for name, score in chosen.items()}
    values = pd.Series(
        [
            of(scores.get(chosen[name]), chosen[name])
            for name, scores in zip(task, table["scores"], strict=True)
        ],
        table.index,
    )
    refuse_other_scales(values, task, chosen, lower)
    values = values.where(task.map(lower), 1 - values)
    table, values = table.reset_index(drop=True), values.reset_index(drop=True)
    out = pd.DataFrame({"point": points_of(table), "loss": values})
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
    read = [f"{name} (the newest of {number + 1} runs)" for name, number in older.items()]
    return PredictionTable(out, {}, attrs, note=f"read was {listed(read)}" if read else "")


def keep_filters(
    table: pd.DataFrame, task: pd.Series, options: ReadOptions
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Keep the rows of one filter for each task; each sample has a row for each filter."""
    if "filter" not in table:
        if options.filter is not None:
            raise LogError("these samples name no filter. Leave filter= out.")
        return table, {}
    named = table["filter"].map(lambda name: isinstance(name, str))
    if not named.all():
        raise LogError("a sample has no filter, while others have. Expected one in each row.")
    names = {
        name: list(dict.fromkeys(filters))
        for name, filters in table["filter"].groupby(task, sort=False)
    }
    chosen = choose_names("filter", options.filter, names, "none")
    return table[table["filter"] == task.map(chosen)], chosen


def is_lower(score: str, options: ReadOptions) -> bool:
    """Whether a score is better when it is lower."""
    if options.higher_is_better is not None:
        return not options.higher_is_better
    if score not in (*HIGHER, *LOWER):
        raise LogError(
            f"whether more {score!r} is better is not known. Expected higher_is_better=True or "
            f"False."
        )
    return score in LOWER


def of(value: Any, score: str) -> float:
    """Take a score that is one number."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    if value is None:
        return float("nan")
    raise LogError(
        f"a sample's {score!r} is {str(value)[:40]!r}, which is not a number: it is averaged in "
        f"some other way. Expected a score with a number for each sample, such as acc."
    )


def points_of(table: pd.DataFrame) -> pd.Series:
    """Name each sample by its hash; doc_id tells copies of one document apart."""
    if "doc_hash" not in table or table["doc_hash"].isna().any():
        return table["doc_id"]
    within = [name for name in ("model", "task") if name in table]
    copies = table.duplicated([*within, "doc_hash"], keep=False)
    same = table["doc_hash"].isin(table.loc[copies, "doc_hash"])
    longer = table["doc_hash"].astype(str) + "#" + table["doc_id"].astype(str)
    return table["doc_hash"].astype(str).where(~same, longer)
