"""Lazy logs over the same losses, computed together: each has its own answer."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from lazily import now
from rows import counts_to_attrs

import cvstats
from cvstats import LogError

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")

LOSSES = np.random.default_rng(0).normal(size=(200, 2))
SPLITS = {"fold": None, "without": "source"}
"""A log of random splits, which does not tell how many points a model was trained on."""


def rows(
    data, *, repetitions=4, fold=5, source=4, months=2, points="p", models="ab", height=None,
    n_train=50, units="K", name=None, without=None,
):  # fmt: skip
    """Losses row by row, their levels as coordinates."""
    number = len(LOSSES) // repetitions
    point = np.tile(np.arange(number), repetitions)
    levels = {
        "repetition": np.repeat(np.arange(repetitions), number), "source": point % source,
        "point": [f"{points}{i}" for i in point], "month": point * months // number,
    }  # fmt: skip
    levels |= {} if fold is None else {"fold": point % fold}
    levels = {name: labels for name, labels in levels.items() if name != without}
    coords = {level: ("row", labels) for level, labels in levels.items()}
    coords |= {"model": list(models)} | ({} if height is None else {"height": ("model", height)})
    metadata = {"n_train": n_train, "units": units}
    return xr.DataArray(data, coords, ("row", "model"), attrs=metadata, name=name)


FOLD = np.random.default_rng(1).permuted(np.tile(np.arange(20) % 4, (2, 1)), axis=1)
DENSE = np.where(FOLD[:, None] == np.arange(4)[:, None], LOSSES[:20, 0], np.nan)[..., None]
DENSE = DENSE * [1.0, 2.0]
DENSE[:, :, 7, 1] = np.nan


def dense(data, *, source=4, points="p", models="ab", n_train=50):
    """A table with NaN where nothing was evaluated; the second model misses a point."""
    coords = {
        "source": ("point", np.arange(20) % source), "model": list(models),
        "point": [f"{points}{i}" for i in range(20)],
    }  # fmt: skip
    return xr.DataArray(
        data, coords, ("repetition", "fold", "point", "model"), attrs={"n_train": n_train}
    )


SQUARE = LOSSES.reshape(20, 20)
TURNED = (np.arange(20) + np.arange(20)[:, None] // 7) % 4


def square(data, *, fold=TURNED, dims=("repetition", "point"), lat=0):
    """As many repetitions as points, so that the table of folds is as large as its transpose."""
    log = xr.DataArray(data, dims=dims)
    if dims[0] == "repetition":
        return log.assign_coords(fold=(dims, fold))
    return log.assign_coords(fold=("point", fold[0]), lat=np.arange(20) + lat)


drop = {"missing": "drop"}
METHODS = {
    "wald": cvstats.wald,
    "within": partial(cvstats.wald, variance="within-fold"),
    "alpha": partial(cvstats.wald, alpha=0.1),
    "less": partial(cvstats.wald, alternative="less"),
    "cv_t": cvstats.cv_t,
    "by month": partial(cvstats.naive, by="month"),
    "by source": partial(cvstats.naive, by="source"),
    "corrected_t": cvstats.corrected_t,
    "size": partial(cvstats.corrected_t, train_size=77),
    "clustered": cvstats.clustered,
    "moments": cvstats.moments,
    "moments by source": partial(cvstats.moments, by="source"),
    "curve": partial(cvstats.decompose, rho=[0.0, 0.1]),
    "another curve": partial(cvstats.decompose, rho=[0.0, 0.2]),
    "compare": cvstats.compare,
    "compare, corrected": partial(cvstats.compare, method="corrected_t"),
    "rope": partial(cvstats.rope, margin=0.1),
    "rope, wider": partial(cvstats.rope, margin=0.2),
    "wald, drop": partial(cvstats.wald, **drop),
    "corrected_t, drop": partial(cvstats.corrected_t, **drop),
    "clustered, drop": partial(cvstats.clustered, **drop),
    "moments, drop": partial(cvstats.moments, by="source", **drop),
    "by source, drop": partial(cvstats.naive, by="source", **drop),
    "one model": lambda log: cvstats.clustered(log.isel(model=0)),
}
FOLDED = [name for name in METHODS if name != "one model"]
DROPPED = [name for name in METHODS if "drop" in name]
ONE_OF_EACH = ["clustered", "moments by source"]

LAYOUTS = {
    "rows": (rows, LOSSES, (120, 2), [
        ({}, FOLDED), ({"fold": 10}, ["wald", "moments"]), ({"months": 5}, ["by month"]),
        *[(change, ONE_OF_EACH) for change in (
            {"source": 7}, {"points": "q"}, {"repetitions": 2}, {"models": "ac"},
            {"height": [1.0, 2.0]}, {"units": "m"}, {"name": "loss"},
        )],
    ]),
    "splits": (rows, LOSSES, (120, 2), [
        (SPLITS | change, ["corrected_t", "size"])
        for change in ({}, {"n_train": 5000}, {"repetitions": 2}, {"points": "q"})
    ]),
    "dense": (dense, DENSE, (2, 4, 12, 2), [
        ({}, [*DROPPED, "one model"]), ({"n_train": 5000}, ["corrected_t, drop"]),
        *[(change, ["clustered, drop", "moments, drop", "one model"])
          for change in ({"source": 7}, {"source": 2}, {"points": "q"}, {"models": "ac"})],
    ]),
    "square": (square, SQUARE, (20, 12), [
        (change, ["corrected_t", "moments"] if "dims" not in change else ["cv_t", "moments"])
        for change in ({}, {"fold": TURNED.T}, {"dims": ("point", "lat")},
                       {"dims": ("point", "lat"), "lat": 3})
    ]),
}  # fmt: skip


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request):
    return request.param


def answers(layout, lazily):
    """Ask variants of a log; the lazy ones look at one array of losses."""
    make, losses, chunks, asked = LAYOUTS[layout]
    data = dask.array.from_array(losses, chunks=chunks) if lazily else losses
    logs = [(make(data, **change), names) for change, names in asked]
    return {(at, name): METHODS[name](log)
            for at, (log, names) in enumerate(logs) for name in names}  # fmt: skip


@pytest.fixture(scope="module")
def lazy(layout):
    return answers(layout, lazily=True)


def plain(table):
    """The table with its counts in attrs, and without what is only told in memory."""
    table = counts_to_attrs(table)
    table.attrs.pop("cautions", None)  # which labels occur is not known before the losses are
    return table


def test_computed_together_as_alone_and_as_in_memory(layout, lazy):
    with now():
        together = dict(zip(lazy, dask.compute(*lazy.values()), strict=True))
        for asked, table in lazy.items():
            xr.testing.assert_identical(together[asked], table.compute())
    for asked, table in answers(layout, lazily=False).items():
        found, table = plain(together[asked]), plain(table)
        xr.testing.assert_allclose(found, table, rtol=1e-9, atol=1e-12)
        assert found.attrs == table.attrs


def test_the_words_name_the_labels_of_their_own_log():
    """Which row is refused is a matter of the losses, and its name one of the log."""
    gap = LOSSES.copy()
    gap[3, 0] = np.nan
    data = dask.array.from_array(gap, chunks=(60, 2))
    logs = [xr.DataArray(data, {"point": [f"{p}{i}" for i in range(200)]}, ("point", "model"))
            for p in "pq"]  # fmt: skip
    tables = [cvstats.holdout(log) for log in logs]
    for table, name in zip(tables, "pq", strict=True):
        with now(), pytest.raises(LogError, match=f"at point='{name}3'"):
            table.compute()
    assert tables[0]["se"].data.name != tables[1]["se"].data.name


def of_labels(labels, along):
    """Losses of two places or models that are named by texts with hyphens, one of them missing."""
    gap = LOSSES.copy()
    gap[3, 1] = np.nan
    return xr.DataArray(
        dask.array.from_array(gap, chunks=(60, 1)), {along: np.array(labels, dtype=object)},
        ("point", along),
    )  # fmt: skip


@pytest.mark.parametrize("along", ["model", "lat"])
def test_texts_that_run_into_each_other(along):
    """dask's own tokens take "a-b", "c" and "a", "b-c" for the same."""
    tables = [cvstats.holdout(of_labels(labels, along)) for labels in (["a-b", "c"], ["a", "b-c"])]
    assert tables[0]["se"].data.name != tables[1]["se"].data.name


def test_another_log_in_memory_and_its_transpose():
    """dask's own tokens take a square array and its transpose for the same."""
    one = xr.DataArray(dask.array.from_array(SQUARE, chunks=7), dims=("point", "lat"))
    others = [xr.DataArray(table, dims=("point", "lat")) for table in (SQUARE + 1, SQUARE.T + 1)]
    lazy = [cvstats.compare(one, other) for other in others]
    with now():
        together = dask.compute(*lazy)
        memory = one.compute()
    for found, other in zip(together, others, strict=True):
        expected = cvstats.compare(memory, other)
        xr.testing.assert_allclose(counts_to_attrs(found), expected, rtol=1e-9, atol=1e-12)
