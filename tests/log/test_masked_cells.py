"""Cells of a grid where nothing was measured, and models that were not evaluated at all."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from rows import multi_index, only_row

import cvstats

SHAPE = {"point": 40, "lat": 3}


def grid(**more):
    draw = np.random.default_rng(8)
    sizes = {**SHAPE, **more}
    coords = {"fold": ("point", np.arange(40) % 5), "point": np.arange(40)}
    return xr.DataArray(draw.gamma(2.0, size=tuple(sizes.values())), dims=[*sizes], coords=coords)


def test_the_best_of_those_that_have_losses():
    log = grid(model=3).assign_coords(model=list("abc"), lat=[0, 1, 2])
    log = log + xr.DataArray([0.0, 0.5, 1.0], dims="model")
    some = log.where((log["model"] != "b") | (log["lat"] != 1))
    result = some.cvci.best_set(rng=0)
    assert result["p_value"].isnull().sum() == 1
    assert int(result.sel(model="b", lat=1)["lower_rank"]) == 0
    pair = log.sel(model=["a", "c"]).cvci.best_set(rng=0)
    rest = result.sel(model=["a", "c"], lat=1)
    for name in ("estimate", "p_value", "in_set", "lower_rank", "upper_rank", "statistic"):
        np.testing.assert_allclose(rest[name], pair.sel(lat=1)[name], rtol=1e-12)
    xr.testing.assert_allclose(result.sel(lat=[0, 2]), log.cvci.best_set(rng=0).sel(lat=[0, 2]))


COMPARISONS = {
    "compare": {},
    "max-t": {"adjust": "max-t", "rng": 0},
    "corrected_t": {"method": "corrected_t"},
    "union": {"method": "union"},
    "equivalence": {"margin": 0.1},
    "rope": {"margin": 0.1},
    "power": {"effect": 0.1},
    "best_set": {"rng": 0},
    "winner": {},
}


@pytest.mark.parametrize("case", COMPARISONS)
def test_comparisons_refuse_what_the_methods_of_one_model_refuse(case):
    options = COMPARISONS[case]
    name = "compare" if case in ("max-t", "corrected_t", "union") else case
    index = multi_index(fold=np.arange(40) % 5, point=range(40))
    log = pd.DataFrame(np.random.default_rng(1).gamma(2.0, size=(40, 3)), index, list("abc"))
    compared = getattr(cvstats, name)
    for scale in (1e-160, 1e-200):
        unit = {k: v * scale if k in ("margin", "effect") else v for k, v in options.items()}
        refuses("too small to be squared.* Multiply them by", compared, log * scale, **unit)
    whole = (log * 100).astype(np.int64) + 2**60
    refuses(r"whole numbers above 2\^53.* Subtract a constant first", compared, whole, **options)
    compared((log * 100).astype(np.int64), **options)


@pytest.mark.parametrize("name", ["estimate", "caution", "mean", "se"])
def test_carried_names_that_results_have_are_refused(name):
    log = grid().rename(lat=name).assign_coords({name: [10, 20, 30]})
    call = cvstats.moments if name == "mean" else cvstats.wald
    way = rf"Rename it: log.rename\(\{{'{name}': 'my_{name}'\}}\)"
    for each in (log, log.chunk({name: 1}), log.expand_dims(model=["a", "b"])):
        refuses(way, call, each)
    assert call(log.rename({name: f"my_{name}"}))[name].sizes == (
        {"fold": 5, "my_mean": 3} if name == "mean" else {f"my_{name}": 3}
    )


def test_a_table_of_random_splits_is_told_how_to_say_so():
    draw = np.random.default_rng(3)
    pairs = [(split, p) for split in range(20) for p in draw.permutation(30)[:6]]
    index = pd.MultiIndex.from_tuples(pairs, names=["repetition", "point"])
    log = pd.Series(draw.gamma(2.0, size=120), index)
    table = log.to_xarray()
    code = refusal(table.cvci.corrected_t, train_size=24).split("stack the array: ")[1].rstrip(".")
    said = eval(code, {"log": table})
    expected = only_row(log.cvci.corrected_t(train_size=24))["se"]
    assert float(said.cvci.corrected_t(train_size=24)["se"]) == pytest.approx(expected, rel=1e-13)
