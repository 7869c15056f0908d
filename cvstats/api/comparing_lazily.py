"""Comparisons of lazy arrays: differences that are lazy themselves, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats.api.adjusting import simultaneous, with_adjusted
from cvstats.api.pairs import pairs_of, usual
from cvstats.api.rounding import exact
from cvstats.api.running import RUNNERS, Alternative, Losses
from cvstats.comparisons.paired import adjusted, tested
from cvstats.containers import LazyPanels, Log, lazily, read
from cvstats.containers.align import minus, subtracted
from cvstats.core.result import Result
from cvstats.core.types import IntArray
from cvstats.errors import LogError

__all__ = [
    "all_gaps",
    "based_lazily",
    "compared_lazily",
    "gaps_of",
    "lazy_losses",
    "of_pairs",
]


def lazy_losses(*logs: Losses | None) -> bool:
    """Whether the losses of one of these logs are still to be computed."""
    arrays: list[Any] = []
    for log in logs:
        if isinstance(log, xr.DataArray):
            arrays.append(log)
        elif isinstance(log, xr.Dataset):
            arrays.extend(log.data_vars.values())
    return any(array.chunks is not None for array in arrays)


FEW = 999
"""Draws for the form of an answer, of which no number is kept."""


# --- differences ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Gaps:
    """Lazy differences, the pairs as first dimension and in one chunk; and whose they are."""

    array: xr.DataArray
    names: list[tuple[Hashable, Hashable]]
    models: int
    pairs: tuple[IntArray, IntArray]
    """The numbers of the models of each pair that was asked for; there may be others behind."""

    @property
    def several(self) -> bool:
        """Whether more than one pair was asked for."""
        return len(self.names) > 1


def gaps_of(
    losses: Losses, other: Losses | None, reference: Hashable, missing: str, every: bool = False
) -> Gaps:
    """Subtract models; with ``every`` all pairs follow those that were asked for."""
    if other is not None and reference is not None:
        raise LogError("other and reference both name what to compare with. Expected one of them.")
    if other is not None:
        if every:
            raise LogError(
                "adjust='max-t' asks what all models share, and those of two lazy logs lie apart. "
                "Expected one log with a dimension 'model': xarray.concat([a, b], 'model')."
            )
        names = named(losses, other)
        apart = as_array(subtracted(losses, other)).drop_vars("model", errors="ignore")
        signs = np.arange(len(names)), np.arange(len(names)) + len(names)
        held = (there(losses), -1 * there(other)), asked_of(read(losses), missing)
        gaps = marked(apart, lambda: as_array(subtracted(*held[0])), *held[1])
        gaps = gaps.rename(model="pair") if "model" in gaps.dims else gaps
    else:
        log = read(losses)
        names, left, right = pairs_of(log, reference)
        signs = left, right
        if every and reference is not None:
            more = np.triu_indices(len(log.labels.models), 1)
            left, right = (np.append(a, b) for a, b in zip((left, right), more, strict=True))
        models = as_array(losses).drop_vars("model", errors="ignore").rename(model="pair")
        one, two = models.isel(pair=left), models.isel(pair=right)
        gaps = marked(
            minus(one, two), lambda: minus(there(one), -1 * there(two)), *asked_of(log, missing)
        )
    if "pair" in gaps.dims:
        gaps = gaps.transpose("pair", ...).chunk(pair=-1)
        told = [f"{one} - {two}" for one, two in names]
        gaps = gaps.assign_coords(pair=[*told, *range(gaps.sizes["pair"] - len(told))])
    return Gaps(gaps, names, int(max(map(np.max, signs))) + 1, signs)


def asked_of(log: Log, missing: str) -> tuple[bool, bool]:
    """Whether NaN tells what was evaluated, and whether missing losses are dropped."""
    return isinstance(log.panels, LazyPanels) and log.panels.nan_tells, missing == "drop"


def there(losses: Any) -> Any:
    """Put 1 where there is a loss, and 0 where there is none."""
    return losses.notnull().astype(np.float64)


def marked(gaps: Any, both: Callable[[], Any], nan_tells: bool, drop: bool) -> Any:
    """Put infinity where a difference is NaN and must not be taken for no evaluation.

    That is where one of the two models has a loss and the other has none, unless those are to
    be dropped; and where both are infinite. ``both`` counts which of the two have a loss.
    """
    if not (nan_tells or drop):
        return gaps
    least = 2 if drop else 1
    return gaps.where(gaps.notnull() | (both() < least), np.inf)


def all_gaps(losses: Losses, missing: str) -> Any:
    """Subtract all pairs of models of a lazy array."""
    return gaps_of(losses, None, None, missing).array


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


# --- questions --------------------------------------------------------------------------------


def of_pairs(
    gaps: Gaps,
    missing: str,
    run: Callable[[Log], Result],
    example: Callable[[Log], Result] | None = None,
) -> xr.Dataset:
    """Ask something of differences later; what it needs of the levels is checked now.

    ``example`` is a quicker question with an answer of the same form.
    """
    log = read(gaps.array, missing=missing)
    if isinstance(log.panels, LazyPanels):
        log = replace(log, panels=log.panels.of_pairs())
    width = gaps.array.sizes.get("pair", 1)
    table = lazily(log, run, width=width, example=example)
    if "pair" in table.dims:
        table = table.isel(pair=slice(len(gaps.names))).drop_vars("pair")
    dims = ("pair",) if "pair" in table.dims else ()
    coords = {
        side: (dims, [str(name) for name in labels] if dims else str(labels[0]))
        for side, labels in zip(("model", "other"), zip(*gaps.names, strict=True), strict=True)
    }
    return table.assign_coords(coords)


def based_lazily(log: Log, method: str | None, options: Mapping[str, Any], alpha: float) -> Result:
    """Compute the interval of the differences in the columns of a log."""
    chosen = usual(log) if method is None else method
    result = exact(RUNNERS[chosen](log, alpha=alpha, **options), log)
    return replace(result, attrs={**result.attrs, "interval_method": chosen})


def compared_lazily(
    losses: Losses,
    other: Losses | None,
    reference: Hashable,
    method: str | None,
    options: Mapping[str, Any],
    *,
    alternative: Alternative,
    adjust: str | None,
    alpha: float,
    n_draws: int,
    seed: int,
    missing: str,
) -> xr.Dataset:
    """Compare models later."""
    gaps = gaps_of(losses, other, reference, missing, every=adjust == "max-t")
    run = partial(
        compared, method=method, options=dict(options), alternative=alternative,
        adjust=adjust if gaps.several else None, alpha=alpha, pairs=gaps.pairs,
        models=gaps.models, width=gaps.array.sizes.get("pair", 1), n_draws=n_draws, seed=seed,
    )  # fmt: skip
    table = of_pairs(gaps, missing, run, partial(run, n_draws=min(n_draws, FEW)))
    return table.assign_attrs(n_draws=n_draws) if "n_draws" in table.attrs else table


def compared(
    log: Log,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: Alternative,
    adjust: str | None,
    alpha: float,
    pairs: tuple[IntArray, IntArray],
    models: int,
    width: int,
    n_draws: int,
    seed: int,
) -> Result:
    """Test the differences in the columns of a log, pairs before carried cells.

    There are ``width`` pairs; of those behind the ones that were asked for, only the standard
    errors are of use.
    """
    base = based_lazily(log, method, options, alpha)
    result = replace(tested(base, alternative=alternative, alpha=alpha), method="compare")
    if adjust == "max-t":
        asked, every = len(pairs[0]), models * (models - 1) // 2
        found = simultaneous(
            some_pairs(result, width, slice(asked)), some_pairs(base, width, slice(-every, None)),
            pairs, models, alternative=alternative, alpha=alpha, n_draws=n_draws, seed=seed,
        )  # fmt: skip
        return padded(found, len(result.caution))
    if adjust is not None:
        p = adjusted(result.columns["p_value"].reshape(width, -1), adjust)
        result = with_adjusted(result, p.reshape(-1), {"adjust": adjust})
    return result


def some_pairs(result: Result, width: int, part: slice) -> Result:
    """Take some of the pairs, with all their carried cells."""
    columns = {
        name: np.asarray(values).reshape(width, -1)[part].reshape(-1)
        for name, values in result.columns.items()
    }
    caution = result.caution.reshape(width, -1)[part].reshape(-1)
    return replace(result, columns=columns, caution=caution)


def padded(result: Result, size: int) -> Result:
    """Fill up for the pairs that nobody asked for, which are cut off when labels are put on."""
    rest = size - len(result.caution)
    columns = {name: np.pad(values, (0, rest)) for name, values in result.columns.items()}
    return replace(result, columns=columns, caution=np.pad(result.caution, (0, rest)))
