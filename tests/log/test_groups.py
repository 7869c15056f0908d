"""Parts of a log: rows taken out, masks, no names."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from grouped_logs import log_of, random_rows
from strategies import ARRAYS

import cvstats
from cvstats.core.design import Design
from cvstats.log.groups import Groups
from cvstats.log.read import read


def zero_one():
    """Losses of 0 and 1 in two folds; points have names of their own."""
    rows = [row._replace(point=f"{row.source}{row.point}", fold=row.point % 2)
            for row in random_rows((6, 8, 4), 1)]  # fmt: skip
    log = log_of(rows, levels=("fold", "source", "point"))
    return pd.DataFrame({"a": (log > 1).astype(float), "b": (log < 2).astype(float)})


@pytest.mark.parametrize("kind", ARRAYS)
def test_rows_of_arrays_are_gathered(kind):
    """Wilson's interval looks at the losses one by one."""
    frame = zero_one()
    table = cvstats.holdout(frame.droplevel("fold"), interval="wilson", by="source")
    array = ARRAYS[kind](frame.droplevel("fold"))
    found = cvstats.holdout(array, interval="wilson", by="source")
    for (source, model), row in table.iterrows():
        theirs = found.sel(source=source, model=model)
        assert float(theirs["lower"]) == pytest.approx(row["lower"], rel=1e-13)
        assert float(theirs["upper"]) == pytest.approx(row["upper"], rel=1e-13)


@pytest.mark.parametrize("kind", ["frame", "dense", "by point", "stacked"])
def test_a_part_is_a_log(kind):
    """Its levels by row, its losses and its moments are those of the rows taken out by hand."""
    frame = zero_one()
    log = read(frame if kind == "frame" else ARRAYS[kind](frame), by="source")
    whole = frame.reset_index()
    for label, part in zip(
        Groups(log, "source").labels, Groups(log, "source").parts(), strict=True
    ):
        mine = whole[whole["source"] == label]
        design = part.design
        assert design.size == len(mine)
        names = {name: design.levels[name] for name in ("fold", "source", "point")}
        rows = pd.DataFrame(
            {
                name: [level.labels[code] for code in level.block(0, design.size).tolist()]
                for name, level in names.items()
            }
        )
        rows["a"] = part.losses.column(0, 0, design.size)
        same = rows.sort_values("point", ignore_index=True)
        expected = mine[same.columns].sort_values("point", ignore_index=True)
        pd.testing.assert_frame_equal(same, expected, check_dtype=False)
        plain = Design(design.levels, design.size)
        assert plain.cell_table(("fold",)).total.sum() == len(mine)
        taken = replace(part, design=plain)
        for one, two in zip(
            [part.moments(("fold",)).location, part.moments(("fold",)).m2],
            [taken.moments(("fold",)).location, taken.moments(("fold",)).m2],
            strict=True,
        ):
            np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-15)


def test_repetitions_without_points():
    """Nothing tells points apart, and no part is a partition then."""
    log = log_of([r._replace(fold=r.point % 2) for r in random_rows((4, 4), 3, repetitions=2)],
                 ("repetition", "fold", "source", "point")).droplevel("point")  # fmt: skip
    for run in (partial(cvstats.wald, log), cvstats.Moments.of_log(log).wald):
        refuses("needs a K-fold .* 2 repetitions and no level", run, by="source")
    table = cvstats.wald(log, by="repetition")
    assert table.attrs["n_points"] == 8


@pytest.mark.parametrize("lazy", [False, True])
def test_groups_of_carried_cells_are_refused_with_a_way(lazy):
    """Users of xarray pass a coordinate of the map, or the month of a date."""
    months = pd.date_range("2024-01-01", periods=24, freq="MS")
    region = ("lat", "lon"), np.array([["sea", "land"], ["sea", "sea"]])
    coords = {"point": months, "lat": [0, 1], "lon": [5, 6], "region": region}
    log = xr.DataArray(np.random.default_rng(0).random((24, 2, 2)), coords, ("point", "lat", "lon"))
    log = log.chunk(point=12) if lazy else log
    words = (
        "'region' is along lat and lon, and every cell has a result of its own without by=. For "
    )
    words += "one per label, average cells first: log.groupby('region').mean()."
    refuses(re.escape(words), log.cvci.wald, by="region")
    if not lazy:
        regions = log.groupby("region").mean().cvci.wald()
        assert set(regions["region"].values) == {"land", "sea"}
    words = "Add it as a coordinate: log.assign_coords(month=log.point.dt.month)."
    refuses(re.escape(words), log.cvci.wald, by="point.month")
    assert log.assign_coords(month=log.point.dt.month).cvci.wald(by="month").sizes["month"] == 12
