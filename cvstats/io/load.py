"""Load a path or an object, and read one or several objects of tools as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import MOST, LogError, listed
from cvstats.io import text as text_files
from cvstats.io.paths import (
    LONGEST,
    kind_of,
    no_such_file,
    path_of,
    raise_as_log_error,
    refuse_packed,
    refuse_stream,
)
from cvstats.io.save import load_saved, restore_dataset
from cvstats.io.table import TASK, PredictionTable, ReadOptions, refuse_strays
from cvstats.io.text import TextOptions
from cvstats.io.tools import (
    FORMATS,
    SKLEARN,
    is_inspect_log,
    is_lm_eval_sample,
    is_result,
    is_search,
    is_skore,
    recognize,
    refuse_unused,
)
from cvstats.log.tables import from_arrow, is_arrow
from cvstats.loss_functions.losses import refuse_columns

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class SavedLog:
    """A log written by `save_log`."""

    log: Any


@dataclass(frozen=True)
class SeveralObjects:
    """Objects or files of several models; ``named`` if a mapping names them."""

    named: bool
    parts: dict[str, Any]


def load(source: Any, options: ReadOptions) -> Any:
    """Load a file, or several by name; return other objects unchanged."""
    if isinstance(source, (str, PathLike)):
        return load_path(path_of(source), options)
    if is_arrow(source):
        return from_arrow(source)
    compared = getattr(source, "reports_", None)  # for a comparison by skore
    if isinstance(compared, Mapping):
        return SeveralObjects(True, {str(name): part for name, part in compared.items()})
    if isinstance(source, Mapping) and len(source):
        result = is_result(source) or is_inspect_log(source) or is_search(source)
        kinds: tuple[Any, ...] = (str, PathLike, pd.DataFrame, Mapping)
        if options.tool in ("cross_val_predict", "autogluon", *SKLEARN):
            kinds = (*kinds, np.ndarray, pd.Series, list)
        known = (isinstance(p, kinds) or is_skore(p) or is_arrow(p) for p in source.values())
        if not result and all(known):
            parts = {str(key): load(part, options) for key, part in source.items()}
            return SeveralObjects(True, parts)
    if isinstance(source, (list, tuple)):
        if not len(source):
            raise LogError(
                f"the {type(source).__name__} is empty. Expected paths of files, or records of a "
                f"table."
            )
        if all(isinstance(part, (str, PathLike)) for part in source):
            paths = [path_of(part) for part in source]
            return SeveralObjects(False, {str(path): load_path(path, options) for path in paths})
        if all(isinstance(part, Mapping) for part in source):
            if is_lm_eval_sample(source[0]):
                from cvstats.io.tools.llm import tabulate_samples

                with raise_as_log_error("these samples"):
                    return tabulate_samples(source)
            return pd.DataFrame.from_records(list(source))
    return source


def load_path(path: Path, options: ReadOptions) -> Any:
    """Load one file, or a folder of them."""
    container, tool, text = options.container, options.tool, options.text
    if path.is_dir() and container in (None, "parquet") and path.suffix != ".zarr":
        return load_folder(path, tool)
    refuse_stream(path)
    refuse_packed(path)
    kind = container or kind_of(path)
    if not path.exists():
        raise no_such_file(path.name)
    if text.given() and kind not in ("csv", "tsv"):
        raise not_text(text, path.name)
    with raise_as_log_error(path.name):
        if kind in ("netcdf", "zarr"):
            from cvstats.io import netcdf

            dataset, header = netcdf.read_dataset(path, kind)
            if header is None:
                return netcdf.foreign(dataset)
            return SavedLog(restore_dataset(dataset, header))
        saved_log = load_saved(path, kind) if tool is None else None
        if saved_log is not None and text.given():
            raise not_text(text, "a saved log")
        if saved_log is not None:
            return SavedLog(saved_log)
        return load_table(path, kind, tool, text)


def not_text(text: TextOptions, what: str) -> LogError:
    """Make the error for an option that applies only to CSV files."""
    return LogError(f"{text.given()[0]}= applies to CSV files, but this is {what}. Omit it.")


def load_table(path: Path, kind: str, tool: str | None, text: TextOptions) -> Any:
    """Load a file written by another program."""
    match kind:
        case "csv" | "tsv":
            return text_files.read_csv(path, "," if kind == "csv" else "\t", text)
        case "jsonl":
            first = next(text_files.records(path), {})
            if tool == "lm-eval" or (tool is None and is_lm_eval_sample(first)):
                from cvstats.io.tools.llm import read_samples

                return read_samples(path)
            return text_files.read_jsonl(text_files.records(path))
        case "parquet":
            from cvstats.io.arrow import read_parquet

            return read_parquet(path)
        case "arff":
            return text_files.read_arff(path)
        case "eval":
            from cvstats.io.tools.llm import read_archive

            return read_archive(path)
    document = text_files.read_json(path)
    refuse_head(document)
    if isinstance(document, list) and document and all(isinstance(r, dict) for r in document):
        return text_files.read_jsonl(document)
    if not is_mapping_of_columns(document) and not is_inspect_log(document):
        raise LogError(
            f"{path.name} is neither an inspect log nor an object of columns. Expected one of "
            "these, or a list of objects (JSONL also works)."
        )
    return document


def refuse_head(value: object) -> None:
    """Refuse a log of inspect without samples, and the means of lm-evaluation-harness."""
    if isinstance(value, Mapping) and {"results", "lm_eval_version"} <= set(value):
        raise LogError(
            "this file has the mean scores of lm-evaluation-harness, not its samples. Expected the "
            "files samples_*.jsonl that lm_eval --log_samples writes next to it: pass their folder "
            "to read_log."
        )
    if isinstance(value, Mapping) and {"eval", "status"} <= set(value) and "samples" not in value:
        raise LogError(
            "this is the header of an inspect log, without its samples. Expected the whole log: "
            "read the file itself, or read_eval_log(path) without header_only=True."
        )


def load_folder(folder: Path, tool: str | None) -> Any:
    """Load the rows of one log from several files, or the samples of several models."""
    name = folder.name or str(folder)
    entries = [] if tool == "lm-eval" else [
        entry for entry in folder.iterdir() if not entry.name.startswith(("_", "."))
    ]  # fmt: skip
    # Not deeper than the folders of a partitioned log: this may be a home directory.
    if any(e.suffix.lower() in PARQUET for e in entries if e.is_file()) or any(
        "=" in entry.name for entry in entries if entry.is_dir()
    ):
        with raise_as_log_error(name):
            return load_parquet_folder(folder)
    from cvstats.io.tools.llm import load_runs

    found = load_runs(folder, tool)
    if found is None:
        have = "no samples_*.jsonl" if tool == "lm-eval" else (
            "neither Parquet files nor samples_*.jsonl of lm_eval --log_samples, nor .eval files"
        )  # fmt: skip
        raise LogError(
            f"the folder {name} contains {have}. Expected "
            + ("the output of lm_eval --log_samples." if tool == "lm-eval" else "one of these, or "
               "a file. Parquet files in folders below it are read by cvstats.scan_parquet(path).")
        )  # fmt: skip
    return found if isinstance(found, pd.DataFrame) else SeveralObjects(True, found)


def load_parquet_folder(folder: Path) -> Any:
    """Concatenate the rows of the Parquet files of a folder, with the keys of each."""
    from cvstats.io import arrow

    tables: list[Any] = []
    saved = []
    files = arrow.list_files(folder)
    for file in files:
        found = load_saved(file.path, "parquet")
        saved.append(found is not None)
        table = arrow.read_parquet(file.path) if found is None else found
        if file.keys:
            table = (table.to_frame() if isinstance(table, pd.Series) else table).assign(
                **file.keys
            )
        first = tables[0] if tables else table
        if type(table) is not type(first) or names_in(table) != names_in(first):
            raise LogError(
                f"{file.path.name!r} has the columns {listed(names_in(table))}; "
                f"{files[0].path.name!r} has {listed(names_in(first))}. Expected the same columns "
                "in each file of the folder: the rows of one log. If each file contains one model, "
                "pass the files by name."
            )
        tables.append(table)
    whole = pd.concat(tables, ignore_index=isinstance(tables[0].index, pd.RangeIndex))
    return SavedLog(whole) if all(saved) and not files[0].keys else whole


def names_in(table: pd.Series | pd.DataFrame) -> list[str]:
    """List the levels and columns of a table."""
    names = [table.name] if isinstance(table, pd.Series) else list(table.columns)
    return [repr(name) for name in (*table.index.names, *names) if name is not None]


def is_mapping_of_columns(value: Any) -> bool:
    """Whether this is a mapping of columns."""
    kinds = (list, tuple, range, np.ndarray, pd.Series, pd.Index)
    return isinstance(value, Mapping) and 0 < len(value) == sum(
        isinstance(column, kinds) and getattr(column, "ndim", 1) == 1 for column in value.values()
    )


# --- one table ------------------------------------------------------------------------------------


OF_TASKS = {"lm-eval", "inspect"}
"""Formats with one file per model and task."""
COUNTED = ("n_errored", "n_incomplete", "n_duplicates")
"""The attrs of files that are summed."""


def read_one(found: Any, options: ReadOptions, what: str) -> PredictionTable:
    """Read one object with the reader of its tool."""
    tool = recognize(found, options.tool)
    form = FORMATS[tool]
    if isinstance(options.metric, Mapping) and tool not in ("lm-eval", "inspect"):
        raise LogError(
            f"metric={options.metric!r} names scores of tasks, but format={tool!r} has no tasks. "
            "Expected the name of one column."
        )
    refuse_unused(f"format={tool!r}", options, form.takes)
    if tool != "columns":
        refuse_columns(options.loss_options)
    with raise_as_log_error(f"{what} (as format={tool!r})"):
        table = as_table(found) if form.of_table else found
        copies = 0
        if options.drop_duplicates:
            table, copies = drop_copies(table, tool)
        reader = resolve_name(f"cvstats.io.tools.{form.reader}")
        read: PredictionTable = replace(reader(table, options), takes=form.takes)
        refuse_strays(read, options)
        dropped = {"n_duplicates": copies} if copies else {}
        return replace(read, attrs={"format": tool, **read.attrs, **dropped})


def drop_copies(table: Any, tool: str) -> tuple[pd.DataFrame, int]:
    """Drop rows that duplicate an earlier row in every column and index level."""
    if not isinstance(table, pd.DataFrame):
        raise LogError(
            f"drop_duplicates= applies to rows of a table, but format={tool!r} has none. Omit it."
        )
    spellings: dict[str, pd.Series] = table.attrs.get(text_files.SPELLINGS, {})
    whole = table.assign(**spellings)
    if all(name is not None for name in table.index.names):
        whole = whole.reset_index()
    nested = whole.map(lambda value: isinstance(value, (dict, list))).any(axis=None)
    first = ~(whole.map(repr) if nested else whole).duplicated().to_numpy()
    kept = table[first]
    kept.attrs = dict(table.attrs)
    if spellings:
        kept.attrs[text_files.SPELLINGS] = {name: text[first] for name, text in spellings.items()}
    return kept, int((~first).sum())


def as_table(found: Any) -> pd.DataFrame:
    """Convert an object to a table."""
    if isinstance(found, pd.DataFrame):
        return found
    if isinstance(found, pd.Series):
        return found.to_frame("loss" if found.name is None else found.name)
    if is_inspect_log(found):
        from cvstats.io.tools.llm import tabulate_log

        return tabulate_log(found)
    refuse_head(found)
    if is_split_table(found):
        return pd.DataFrame(found["data"], columns=found["columns"])
    if is_mapping_of_columns(found):
        lengths = {str(name): len(values) for name, values in found.items()}
        if len(set(lengths.values())) > 1:
            raise LogError(
                "the columns have different lengths: "
                f"{listed(f'{name!r} {n:,}' for name, n in lengths.items())}. Expected equal "
                "lengths."
            )
        return pd.DataFrame(
            {
                name: v.array if isinstance(v, (pd.Series, pd.Index)) else np.asarray(v)
                for name, v in found.items()
            }
        )
    raise unreadable(found)


SPLIT_TABLE = {"columns", "data", "index"}
"""The keys of a table as JSON with ``orient="split"``."""


def is_split_table(value: Any) -> bool:
    """Whether this is a table as JSON of pandas and MLflow: names of columns, and rows."""
    if not (isinstance(value, Mapping) and {"columns", "data"} <= value.keys() <= SPLIT_TABLE):
        return False
    columns, rows = value["columns"], value["data"]
    return isinstance(columns, list) and isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == len(columns) for row in rows
    )  # fmt: skip


def unreadable(found: Any) -> LogError:
    """Make the error for an object that cannot be read, with a call that converts it."""
    library = type(found).__module__.partition(".")[0]
    kind = "" if library in ("builtins", "_io") else f"{library} "
    ways = {
        "to_pandas": "Convert it to pandas: read_log(table.to_pandas(), …).",
        "collect": "Load it into memory: read_log(frame.collect(), …).",
        "compute": "Load it into memory: read_log(table.compute(), …).",
        "read": "Pass the path of the file, or a table: pandas.read_csv(file).",
    }
    way = next((f" {words}" for name, words in ways.items() if hasattr(found, name)), "")
    if isinstance(found, Mapping):
        some = {str(key): value for key, value in list(found.items())[:MOST]}
        held = listed(
            (f"{key!r}: {type(value).__name__}" for key, value in some.items()), len(found)
        )
        return LogError(
            f"a {kind}{type(found).__name__} of {held or 'nothing'} cannot be read. Expected "
            f"columns of one length, a file or table for each model, or the result of "
            f"cross_validate. Arrays of predictions of several models need y= and cv=."
        )
    name = f"{kind}{type(found).__name__}"
    return LogError(
        f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name} cannot be read. Expected a path, a "
        f"pandas table, a mapping of columns, or the result of scikit-learn's cross_validate.{way}"
    )


# --- several objects ------------------------------------------------------------------------------


def read_several(found: SeveralObjects, options: ReadOptions) -> PredictionTable:
    """Read objects with one model each, and stack the models in rows."""
    tools = {recognize(part, options.tool) for part in found.parts.values()}
    if not found.named and tools <= OF_TASKS:
        from cvstats.io.tools.llm import join_tasks

        joined = join_tasks(found.parts)
        if isinstance(joined, pd.DataFrame):
            return read_one(joined, options, "these files")
        found = found if joined is None else SeveralObjects(True, joined)
    parts = {key: only_model(key, part) for key, part in found.parts.items()}
    read = {key: read_one(part, options, Path(key).name) for key, part in parts.items()}
    tables = name_tasks([name_models(table, key, found.named) for key, table in read.items()])
    formats = {table.attrs["format"] for table in tables}
    if len(formats) > 1:
        raise LogError(
            f"the files have several formats: {listed(sorted(formats))}. Expected one format."
        )
    if len({frozenset(set(table.table.columns) & set(LEVELS)) for table in tables}) > 1:
        raise LogError(
            "the files have different levels, so they share no evaluations. Expected the same "
            "design in each."
        )
    same = all(dict(table.probabilities) == dict(tables[0].probabilities) for table in tables)
    return PredictionTable(
        pd.concat([table.table for table in tables], ignore_index=True),
        tables[0].probabilities if same else {},
        common_facts(tables),
        join_sentences(list(parts), [table.lost for table in tables]),
        "; ".join(table.note for table in tables if table.note),
        kept=[name for name in tables[0].kept if all(name in table.kept for table in tables)],
        takes=tables[0].takes,
        twice="" if found.named else call_with_names(list(parts)),
        separate=True,
    )


def name_tasks(tables: Sequence[PredictionTable]) -> list[PredictionTable]:
    """Use the task of each file as its source, if there are several tasks."""
    tasks = {table.attrs.get(TASK) for table in tables}
    if len(tasks) < 2 or not any(tasks):
        return list(tables)
    named = []
    for table in tables:
        task = table.attrs.get(TASK)
        if task is not None and "source" not in table.table:
            table = replace(table, table=table.table.assign(source=task))
        rest = {name: fact for name, fact in table.attrs.items() if name != TASK}
        named.append(replace(table, attrs={**rest, "sources_are": "fixed"}))
    return named


def only_model(key: str, part: Any) -> Any:
    """Return the only model of a directory."""
    if not isinstance(part, SeveralObjects):
        return part
    if len(part.parts) > 1:
        raise LogError(
            f"{Path(key).name!r} contains several models: {listed(map(repr, part.parts))}. "
            "Expected a file for each model, or only this directory."
        )
    (only,) = part.parts.values()
    return only


def name_models(found: PredictionTable, key: str, by_key: bool) -> PredictionTable:
    """Add the name of its model to the rows of one object."""
    found = found.stacked()
    table = found.table
    own = "model" in table and (not by_key or table["model"].nunique() > 1)
    if own and by_key and found.attrs["format"] != "lm-eval":
        table = table.assign(model=key + "/" + table["model"].astype(str))
    elif not own:
        table = table.assign(model=key if by_key else Path(key).stem)
    return replace(found, table=table)


def common_facts(tables: Sequence[PredictionTable]) -> dict[str, Any]:
    """Combine the attrs of files: counts are summed, training sizes must be equal."""
    attrs = dict(tables[0].attrs)
    sizes = [table.attrs.get("n_train") for table in tables]
    if any(size != sizes[0] for size in sizes):
        attrs.pop("n_train", None)
    for name in COUNTED:
        number = sum(table.attrs.get(name, 0) for table in tables)
        if number:
            attrs[name] = number
    files = [table.attrs["read_from"] for table in tables if "read_from" in table.attrs]
    if files:
        attrs["read_from"] = ", ".join(files)
    return attrs


def join_sentences(keys: Sequence[str], sentences: Sequence[str]) -> str:
    """Join messages: once if they are common to all files, otherwise with their file."""
    if len(set(sentences)) == 1:
        return sentences[0]
    pairs = zip(keys, sentences, strict=True)
    return "; ".join(f"{Path(key).name}: {sentence}" for key, sentence in pairs if sentence)


def call_with_names(files: Sequence[str]) -> str:
    """Return the call that names files of the same model, such as two runs."""
    short = [file if len(file) <= LONGEST else Path(file).name for file in files]
    pairs = zip(("'first'", "'second'"), short, strict=False)
    some = [f"{name}: {file!r}" for name, file in pairs] + ["…"] * (len(files) > 2)
    return f"Omit one file, or name the models: read_log({{{', '.join(some)}}}, …)"
