"""Comparisons of lazy arrays: differences that are lazy themselves, and their tests."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats.api.pairs import pairs_of, usual
from cvstats.api.running import RUNNERS, Losses
from cvstats.comparison.paired import adjusted, tested
from cvstats.containers import Log, lazily, read
from cvstats.containers.pairing import minus, subtracted
from cvstats.errors import LogError
from cvstats.results import Result

__all__ = ["all_gaps", "compared_lazily", "lazy_losses"]


def lazy_losses(*logs: Losses | None) -> bool:
    """Whether the losses of one of these logs are still to be computed."""
    arrays: list[Any] = []
    for log in logs:
        if isinstance(log, xr.DataArray):
            arrays.append(log)
        elif isinstance(log, xr.Dataset):
            arrays.extend(log.data_vars.values())
    return any(array.chunks is not None for array in arrays)


def compared_lazily(
    losses: Losses,
    other: Losses | None,
    reference: Hashable,
    method: str | None,
    options: Mapping[str, Any],
    *,
    alternative: str,
    adjust: str | None,
    alpha: float,
    missing: str,
) -> xr.Dataset:
    """Compare models later; what the comparison needs of the levels is checked now."""
    gaps, names = differences(losses, other, reference)
    several = "pair" in gaps.dims and gaps.sizes["pair"] > 1
    if several and adjust == "max-t":
        raise LogError(
            "adjust='max-t' draws from the joint law of all models, and that is not done lazily. "
            "Expected adjust='holm', 'bh' or None, or losses in memory: log.compute()."
        )
    log = read(gaps, missing=missing)
    chosen = usual(log) if method is None else method
    run = partial(
        compared, method=chosen, options=dict(options), alternative=alternative,
        adjust=adjust if several else None, alpha=alpha, pairs=gaps.sizes.get("pair", 1),
    )  # fmt: skip
    table = lazily(log, run)
    dims = ("pair",) if "pair" in table.dims else ()
    coords = {
        side: (dims, [str(name) for name in labels] if dims else str(labels[0]))
        for side, labels in zip(("model", "other"), zip(*names, strict=True), strict=True)
    }
    return table.assign_coords(coords)


def differences(losses: Losses, other: Losses | None, reference: Hashable) -> Any:
    """Subtract models, the pairs as first dimension and in one chunk; also name them."""
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    if other is not None:
        names = named(losses, other)
        gaps = as_array(subtracted(losses, other))
        gaps = gaps.drop_vars("model", errors="ignore")
        gaps = gaps.rename(model="pair") if "model" in gaps.dims else gaps
    else:
        log = read(losses)
        names, left, right = pairs_of(log, reference)
        models = as_array(losses)
        paired = models.drop_vars("model", errors="ignore").rename(model="pair")
        gaps = minus(paired.isel(pair=left), paired.isel(pair=right))
    if "pair" in gaps.dims:
        gaps = gaps.transpose("pair", ...).chunk(pair=-1)
    return gaps, names


def all_gaps(losses: Losses) -> Any:
    """Subtract all pairs of models of a lazy array."""
    return differences(losses, None, None)[0]


def as_array(losses: Any) -> Any:
    """Make one array of the models of a dataset."""
    if not isinstance(losses, xr.Dataset):
        return losses
    units = {array.attrs.get("units") for array in losses.data_vars.values()}
    whole = losses.to_dataarray("model")
    one = units.pop() if len(units) == 1 else None
    whole.attrs = {"units": one} if one else {}
    return whole


def named(one: Any, two: Any) -> list[tuple[Hashable, Hashable]]:
    """Name each model and its partner in the other log."""
    mine, yours = list(read(one).labels.models), list(read(two).labels.models)
    if len(mine) > 1:
        yours = [name for name in mine if name in yours]
    pairs = zip(mine, yours, strict=False)
    return [("model" if a is None else a, "other" if b is None else b) for a, b in pairs]


def compared(
    log: Log,
    *,
    method: str,
    options: Mapping[str, Any],
    alternative: str,
    adjust: str | None,
    alpha: float,
    pairs: int,
) -> Result:
    """Test the differences in the columns of a log, pairs before carried cells."""
    result = tested(
        RUNNERS[method](log, alpha=alpha, **options), alternative=alternative, alpha=alpha
    )
    columns = dict(result.columns)
    attrs = {**result.attrs, "interval_method": method}
    if adjust is not None:
        known: dict[str, Any] = {}
        for name, values in columns.items():
            known[name] = values
            if name == "p_value":
                table = np.asarray(values)
                if table.size % pairs == 0:  # the sketch of the result has one column
                    table = adjusted(table.reshape(pairs, -1), adjust).reshape(-1)
                known["p_adjusted"] = table
        columns, attrs = known, {**attrs, "adjust": adjust}
    return replace(result, method="compare", columns=columns, attrs=attrs)
