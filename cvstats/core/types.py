"""Types that several modules share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
MaskArray: TypeAlias = NDArray[np.bool_]


class Labels(Protocol):
    """The labels of a level by position: a tuple, a range, a pandas Index."""

    def __len__(self) -> int:
        """Count the labels."""

    def __getitem__(self, position: Any, /) -> Any:
        """Return the label at a position."""

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over the labels."""
