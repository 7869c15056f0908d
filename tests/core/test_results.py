"""Results as tables: what prints, what is in attrs, and the cautions of every container."""

import json
import pickle
from importlib.metadata import version

import golden
import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import multi_index
from together import together

import cvstats
from cvstats.core.cautions import Caution, flag_attrs, label_cautions
from cvstats.intervals import list_methods


def log_of(**levels):
    """Losses of three models over some levels, in rows."""
    index = multi_index(**levels)
    draw = np.random.default_rng(0)
    common = draw.exponential(size=(len(index), 1))
    losses = common + draw.exponential(0.1, size=(len(index), 3))
    return pd.DataFrame(losses, index=index, columns=["ridge", "forest", "tree"])


POINTS = np.arange(120)
FOLDS = log_of(fold=POINTS % 5, point=POINTS)
FIRST = {}
for case in golden.CASES.values():
    FIRST.setdefault(case.function, case)


@together(sorted({method.name for method in list_methods()} & {*FIRST}))
def test_attrs_are_plain_and_survive(name):
    table = golden.call(FIRST[name], golden.log_named(FIRST[name].log))
    expected = {"method", "target", "guarantee", "reference", "cautions", "cvstats_version"}
    assert expected <= set(table.attrs)
    assert table.attrs["cvstats_version"] == version("cvstats")
    assert pickle.loads(pickle.dumps(table)).attrs == table.attrs
    assert json.loads(json.dumps(table.attrs)) == table.attrs
    assert pd.concat([table, table]).attrs == table.attrs


def test_decompose_of_a_series_is_a_series_of_numbers():
    parts = FOLDS["ridge"].cvci.decompose(rho=0.1)
    assert parts.dtype == np.float64
    assert parts.name == "ridge"
    assert cvstats.cautions(parts).loc["ridge"] == "assumed correlation"
    named = FOLDS["ridge"].rename(("ridge", 1)).cvci.decompose(rho=0.1)
    assert cvstats.cautions(named).to_dict() == {("ridge", 1): "assumed correlation"}


def test_counts_are_columns_only_where_rows_differ():
    index = FOLDS.index.get_level_values("point")
    uneven = FOLDS.assign(part=np.where(index < 40, "a", "b")).set_index("part", append=True)
    table = uneven.cvci.wald(by="part")
    assert table["n_points"].tolist() == [40, 40, 40, 80, 80, 80]
    assert table.attrs["n_folds"] == 5
    assert "n_points" not in table.attrs


def test_labels_are_short_plain_and_different():
    labels = [caution.label for caution in Caution]
    assert len(set(labels)) == len(labels)
    for caution in Caution:
        assert 0 < len(caution.label) <= 25
        assert set(caution.label) <= set("abcdefghijklmnopqrstuvwxyz -")
        for words in (caution.sentence, caution.advice):
            assert words == " ".join(words.split())
            assert words.endswith(".")
    meanings = flag_attrs(tuple(Caution))["flag_meanings"].split()
    assert [meaning.replace("_", " ") for meaning in meanings] == labels


def test_combinations_of_cautions_are_flags():
    both = Caution.FEW_POINTS | Caution.ONE_EACH
    assert label_cautions(int(both)) == "few points, one loss per split"
    assert Caution(0) == 0
    assert label_cautions(0) == ""


def test_what_has_no_cautions_is_refused():
    for other in (FOLDS, FOLDS["ridge"], 3):
        refuses("Expected the result of a function such as cvstats.wald", cvstats.cautions, other)


@pytest.mark.parametrize("unit", [0.1, 1e100])
def test_a_standard_error_below_the_rounding_of_means_is_zero(unit):
    """Ten folds, or sources, with three errors of seven each: their means are 3/7."""
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.permutation([1.0, 1, 1, 0, 0, 0, 0]) for _ in range(10)])
    calls = {"fold": ["corrected_t", "cv_t"], "source": ["clustered", "out_of_source", "interval"]}
    for level, methods in calls.items():
        levels = [np.repeat(np.arange(10), 7), np.arange(70)]
        log = pd.Series(losses, pd.MultiIndex.from_arrays(levels, names=[level, "point"])) * unit
        for data in (log, log.to_xarray(), log.to_xarray().chunk()):
            for name in methods:
                found = getattr(cvstats, name)(data).squeeze()
                assert found["se"] == 0, name
                assert found["lower"] == found["upper"] == found["estimate"], name
                text = cvstats.cautions(found.to_frame().T if data is log else found)
                assert "zero variance" in str(np.asarray(text).item()), name


def test_a_small_variance_about_a_far_mean_is_not_zero():
    log = pd.Series(1e6 + np.tile([0.0, 1e-6], 50), pd.RangeIndex(100, name="point"))
    assert cvstats.holdout(log)["se"].item() == pytest.approx(5e-8, rel=1e-2)
