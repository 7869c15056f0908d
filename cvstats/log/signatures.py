"""What type checkers see of functions of a log: the result is of the kind of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, cast, overload

import pandas as pd
import xarray as xr

from cvstats.log.log import Batches, Losses, Table

P = ParamSpec("P")


class TableFunction(Protocol[P]):
    """A function of a log: of pandas objects it returns a DataFrame, of arrays a Dataset."""

    __name__: str

    @overload
    def __call__(
        self, losses: pd.Series | pd.DataFrame, *args: P.args, **options: P.kwargs
    ) -> pd.DataFrame: ...
    @overload
    def __call__(
        self, losses: xr.DataArray | xr.Dataset, *args: P.args, **options: P.kwargs
    ) -> xr.Dataset: ...
    @overload
    def __call__(self, losses: Batches, *args: P.args, **options: P.kwargs) -> Table: ...


def of_its_kind(function: Callable[Concatenate[Losses, P], Any]) -> TableFunction[P]:
    """Tell type checkers that pandas objects give a DataFrame, and arrays a Dataset."""
    return cast(TableFunction[P], function)
