"""Every chunk of a lazy array is read once, and none while the result is built."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from lazily import now
from together import together

import cvstats
from cvstats.large.lazy import Examined
from cvstats.log.loss_checks import LIMIT
from cvstats.log.read import read

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")

SHAPE = {"repetition": 2, "point": 48, "lat": 4, "model": 3}
CHUNKS = {"repetition": 1, "point": 24, "lat": 2}


class Counted:
    """An array that counts how many of its losses are read."""

    def __init__(self, values):
        self.values, self.read = values, 0
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, part):
        found = self.values[part]
        self.read += found.size
        return found


def folded(rng, names):
    fold = np.stack([rng.permutation(48) % 4 for _ in range(2)])
    log = xr.DataArray(rng.normal(size=tuple(SHAPE.values())), dims=tuple(SHAPE)).assign_coords(
        fold=(("repetition", "point"), fold), source=("point", np.arange(48) // 8),
        model=list("abc"),
    )  # fmt: skip
    return log.drop_vars([name for name in ("fold", "source") if name not in names])


def dense(rng, names):
    """A table of folds by points, in which NaN tells what was evaluated."""
    log = folded(rng, ["fold"])
    bare, fold = log.drop_vars("fold"), log["fold"].drop_vars("fold")
    return xr.concat([bare.where(fold == k) for k in range(4)], "fold")


def counted(make, *names, missing=False):
    """A lazy log, and what counts the losses that are read of it."""
    log = make(np.random.default_rng(3), names)
    if missing:
        log[{"point": 7, "model": 0}] = np.nan
    reader = Counted(log.values)
    data = dask.array.from_array(
        reader, chunks=tuple(CHUNKS.get(dim, -1) for dim in log.dims), meta=np.empty(()),
        inline_array=False, name=False,
    )  # fmt: skip
    return log.copy(data=data), reader


BOTH = ("fold", "source")
INTERVALS = {
    "wald": BOTH, "naive": BOTH, "cv_t": BOTH, "corrected_t": BOTH, "clustered": BOTH,
    "heterogeneity": BOTH, "decompose": BOTH, "interval": BOTH, "moments": BOTH,
    "wild_cluster": BOTH, "out_of_source": ("source",), "source_estimators": ("source",),
    "ordered": BOTH,
}  # fmt: skip
CALLS = {name: (names, getattr(cvstats, name)) for name, names in INTERVALS.items()}
CALLS |= {
    "by source": (BOTH, partial(cvstats.wald, by="source")),
    "within folds": (BOTH, partial(cvstats.wald, variance="within-fold")),
    "rope": (BOTH, partial(cvstats.rope, margin=0.1)),
    "equivalence": (BOTH, partial(cvstats.equivalence, margin=0.1)),
    "power": (BOTH, lambda log: cvstats.power(log.isel(repetition=[0]), effect=0.1)),
}
CALLS |= {
    f"compare, {method}, {adjust}": (BOTH, partial(cvstats.compare, method=method, adjust=adjust))
    for adjust, method in (
        ("holm", None),
        ("holm", "wald"),
        ("holm", "clustered"),
        ("holm", "union"),
        ("holm", "tango"),
        (None, "wald"),
    )
}
CALLS |= {
    "compare, bh": (BOTH, partial(cvstats.compare, adjust="bh")),
    "compare, max-t": (
        BOTH,
        partial(cvstats.compare, method="wald", adjust="max-t", rng=1, n_draws=1000),
    ),
    "compare, reference": (BOTH, partial(cvstats.compare, reference="b")),
}
DROPS = ["wald", "clustered", "decompose", "moments", "by source", "compare, wald, holm",
         "compare, max-t"]  # fmt: skip


def check_reads(call, log, reader, share=1):
    with now():
        table = call(log)
        assert reader.read == 0
        table.compute()
    assert reader.read == log.size * share


@together(CALLS)
def test_each_loss_is_read_once(name):
    names, call = CALLS[name]
    if "tango" in name:
        make = lambda rng, names: (folded(rng, names) > 0).astype(float)  # noqa: E731
        check_reads(call, *counted(make, *names))
    else:
        check_reads(call, *counted(folded, *names), share=0.5 if name == "power" else 1)


@pytest.mark.parametrize("name", DROPS)
def test_once_too_where_evaluations_are_left_out(name):
    names, call = CALLS[name]
    check_reads(partial(call, missing="drop"), *counted(folded, *names, missing=True))


@pytest.mark.parametrize(
    ("name", "missing"),
    [("wald", "raise"), ("wald", "drop"), ("compare, wald, holm", "raise"), ("moments", "drop")],
)
def test_once_too_where_nan_tells_what_was_evaluated(name, missing):
    _, call = CALLS[name]
    check_reads(partial(call, missing=missing), *counted(dense))


def test_once_too_in_two_logs():
    one, first = counted(folded, *BOTH)
    two, second = counted(folded, *BOTH)
    check_reads(lambda log: cvstats.compare(log, two, method="wald"), one, first)
    assert second.read == two.size


def test_once_too_when_computed_together():
    log, reader = counted(folded, *BOTH)
    tables = [call(log) for name, (names, call) in CALLS.items()
              if names is BOTH and "tango" not in name]  # fmt: skip
    assert reader.read == 0
    with now():
        dask.compute(*tables)
    assert reader.read == log.size


@pytest.mark.parametrize(
    ("shape", "rows", "step", "whole"),
    [((LIMIT, 3), LIMIT // 3, 1, False), ((400, 6_001), 300, 3, False),
     ((300, 6_001), 300, 1, True)],
)  # fmt: skip
def test_as_many_losses_are_examined_as_in_memory(shape, rows, step, whole):
    coords = {"point": np.arange(shape[0]), "cell": np.arange(shape[1])}
    found = Examined.of(read(xr.DataArray(np.zeros(shape), coords, ("point", "cell")).chunk()))
    assert (len(found.rows), found.step, found.whole) == (rows, step, whole)
