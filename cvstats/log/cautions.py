"""The cautions of a result as labels, for every container."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import label_cautions
from cvstats.core.types import IntArray
from cvstats.errors import LogError
from cvstats.log.pandas import NAMELESS


def cautions(result: pd.Series | pd.DataFrame | xr.Dataset) -> Any:
    """Return the cautions of each row or cell of a result, as labels.

    Parameters
    ----------
    result : DataFrame, Series or Dataset
        What a function such as `wald` or `compare` returned.

    Returns
    -------
    Series or DataArray
        For each row or cell its labels joined by ``", "``, empty where there is none. Of a lazy
        Dataset it is lazy.

    Raises
    ------
    LogError
        If the result has no ``caution``.

    Notes
    -----
    A frame holds the labels itself, in its column ``caution``, and ``attrs["cautions"]`` maps
    those that occur to what they mean and what to do. In a Dataset ``caution`` is a CF variable
    of independent flags (attributes ``flag_masks``, ``flag_meanings`` and ``flag_descriptions``),
    whose bits mean the same in every result, and ``attrs["cautions"]`` is the same mapping as
    JSON, which a file can hold. Which labels occur in a lazy Dataset is not known yet: its flags
    describe all there are, and it has no ``attrs["cautions"]``.

    References
    ----------
    CF Conventions, 3.5 Flags, https://cfconventions.org.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> index = pd.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 2), (1, 3)], names=["fold", "point"])
    >>> result = pd.DataFrame({"tree": [1.0, 3, 2, 2]}, index=index).cvci.wald()
    >>> cvstats.cautions(result)
    model
    tree    few points
    Name: caution, dtype: str
    >>> result.attrs["cautions"]["few points"]  # doctest: +ELLIPSIS
    'There are fewer than 30 points, in total or in some group, so the normal approximation is ...'
    """
    if isinstance(result, pd.Series) and "cautions" in result.attrs:
        name = NAMELESS if result.name is None else result.name
        index = pd.Index([name], name="model", tupleize_cols=False)
        return pd.Series([", ".join(result.attrs["cautions"])], index=index, name="caution")
    if not isinstance(result, (pd.DataFrame, xr.Dataset)) or "caution" not in result:
        raise LogError(
            f"a {type(result).__name__} without 'caution' is not a result. Expected what a "
            f"function such as cvstats.wald returned."
        )
    if isinstance(result, pd.DataFrame):
        return result["caution"]
    flags = result["caution"]
    labels: xr.DataArray = xr.apply_ufunc(
        label_flags, flags, dask="parallelized", output_dtypes=[object], keep_attrs=False
    )
    return labels.assign_attrs(long_name=flags.attrs.get("long_name", "")).rename("caution")


def label_flags(flags: IntArray) -> NDArray[Any]:
    """Label each entry of an array of flags."""
    different, at = np.unique(np.asarray(flags, dtype=np.int64), return_inverse=True)
    labels = np.array([label_cautions(value) for value in different.tolist()], dtype=object)
    return labels[at.reshape(np.shape(flags))]
