"""Facts about a log, as rows to read: the first section of the report."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.folds import count_folds, fold_level
from cvstats.describe import describe_log
from cvstats.errors import LogError
from cvstats.formatting import printable, write_labels
from cvstats.log.log import Log, Losses
from cvstats.log.read import read

MOST_NAMES = 12


def summarize(losses: Losses) -> str:
    """Summarize a log in one line; say why it cannot be read, where it cannot."""
    return describe_log(losses).removeprefix("<cvci: ").removesuffix(">")


def facts(losses: Losses) -> list[tuple[str, str]]:
    """List what a log is: models, points, how it was resampled, and what is missing.

    Raises
    ------
    LogError
        If the log cannot be read.
    """
    log = read(losses)
    design = log.design
    attrs = dict(losses.attrs)
    if isinstance(losses, xr.Dataset):
        attrs = {**next(iter(losses.data_vars.values())).attrs, **attrs}
    rows = [(key.replace("_", " "), str(attrs[key])) for key in ("title", "source") if key in attrs]
    if "read_from" in attrs:
        rows.append(("read from", str(attrs["read_from"])))
    loss = attrs.get("long_name") or str(attrs.get("loss", "")).replace("_", " ")
    if loss or attrs.get("units"):
        units = f" in {attrs['units']}" if attrs.get("units") else ""
        rows.append(("loss", f"{loss or 'loss'}{units}, smaller is better"))
    models = pd.Index(list(log.labels.models), dtype=object, tupleize_cols=False)
    (names,) = write_labels(models, lambda name: "(no name)" if name is None else str(name))
    more = f", and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    rows.append((f"models ({len(names):,})", ", ".join(names[:MOST_NAMES]) + more))
    points = design.splits().points
    rows.append(("points", f"{points:,}" if points is not None else "not named in the log"))
    sizes = design.splits().rows
    rows.append(("evaluations of each model", f"{int(sizes.sum()):,}"))
    for level in ("sample", "outer", "repetition"):
        if design.has(level):
            rows.append((f"{level}s", f"{design.number(level):,}"))
    folds = count_folds(log.design)
    if folds > 1 and not log.fixed_sources:
        rows.append(("folds", f"{folds:,}{of_points(log)}"))
    if design.has("source"):
        tasks = log.fixed_sources
        both = ", which are the folds" if fold_level(design) == "source" and not tasks else ""
        rows.append(("tasks" if tasks else "sources", f"{design.number('source'):,}{both}"))
    if design.has("count"):
        rows.append(("count", "how often the point was in the training sample"))
    cells = log.panels.width // max(1, len(names))
    if cells > 1:
        rows.append(("cells of each model", f"{cells:,}"))
    rows.append(("missing losses", f"{missing(log):,}"))
    rows.append(("container", f"{type(losses).__module__.split('.')[0]} {type(losses).__name__}"))
    return rows


def of_points(log: Log) -> str:
    """Describe the sizes of the folds."""
    by = [name for name in ("repetition", fold_level(log.design)) if name is not None]
    plan = log.design.cell_table(tuple(name for name in by if name in log.design.levels))
    sizes = plan.total[plan.used]
    least, most = int(sizes.min()), int(sizes.max())
    return f" of {least:,} points" if least == most else f" of {least:,} to {most:,} points"


def missing(log: Log) -> int:
    """Count the losses that are NaN, outside of masked cells."""
    total, masked = 0, set(log.masked().tolist())
    for j in range(log.panels.width):
        if j not in masked:
            gone = np.isnan(log.panels.column(j, 0, log.design.size))
            total += int(
                gone.sum() if log.design.present is None else gone[log.design.present].sum()
            )
    return total


def fragment(losses: Losses) -> str:
    """Write the first section for a notebook; it needs no package and raises nothing."""
    try:
        rows = facts(losses)
    except LogError as error:
        return f"<p><strong>not read as a loss log:</strong> {escape(printable(str(error)))}</p>"
    return first_section(rows, summarize(losses))


def first_section(rows: list[tuple[str, str]], line: str) -> str:
    """Write the rows as a table with a caption, every name escaped."""
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(printable(value))}</td></tr>'
        for name, value in rows
    )
    return (
        f'<table class="facts">\n<caption>The log: {escape(printable(line))}</caption>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )
