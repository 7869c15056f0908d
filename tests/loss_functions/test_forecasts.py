"""Losses of probabilistic forecasts: other programs, containers, and the words of refusals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal
from together import together

import cvstats
from cvstats.errors import LogError

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "reference" / "forecasts.json").read_text())
}
DATA = {name: np.array(values) for name, values in CASES["forecast_data"]["inputs"].items()}
MEMBERS = [f"member_{at}" for at in range(11)]
WIS = ["mu", "lo50", "hi50", "lo90", "hi90"]
PARTS = ["overprediction", "underprediction", "dispersion"]
VECTORS = [f"{axis}_{at}" for axis in "uv" for at in range(11)]


def frame(folds=5):
    """A table of the forecasts, with folds."""
    n = len(DATA["y"])
    levels = pd.MultiIndex.from_arrays([np.arange(n) % folds, range(n)], names=["fold", "point"])
    columns = {name: values for name, values in DATA.items() if values.ndim == 1}
    columns |= dict(zip(MEMBERS, DATA["ensemble"].T, strict=True))
    columns |= {"u": DATA["y2"][:, 0], "v": DATA["y2"][:, 1]}
    parts = np.concatenate([DATA["ensemble2"][:, :, 0], DATA["ensemble2"][:, :, 1]], axis=1)
    columns |= dict(zip(VECTORS, parts.T, strict=True))
    return pd.DataFrame(columns, index=levels)


def dataset():
    """The same as arrays, with the members as a dimension, and two lead times."""
    coords = {"point": range(30), "fold": ("point", np.arange(30) % 5)}
    lead = np.array([0.0, 0.5])
    return xr.Dataset(
        {
            "y": ("point", DATA["y"]),
            "ens": (("member", "point", "lead"), DATA["ensemble"].T[:, :, None] + lead),
            "u_ens": (("point", "member"), DATA["ensemble2"][:, :, 0]),
            "v_ens": (("point", "member"), DATA["ensemble2"][:, :, 1]),
            "u": ("point", DATA["y2"][:, 0]), "v": ("point", DATA["y2"][:, 1]),
        },
        coords | {"lead": [1, 2], "member": list("abcdefghijk")},
    )  # fmt: skip


CALLS = {
    "crps_ensemble": ("crps", MEMBERS, {}, "y", "crps"),
    "crps_ensemble fair": ("crps", MEMBERS, {"fair": True}, "y", "fair"),
    "crps_normal": ("crps", ["mu", "sd"], {"distribution": "normal"}, "y", "crps"),
    "interval_score": ("interval_score", ["lo90", "hi90"], {"level": 0.9}, "y", "score"),
    "weighted_interval_score": (
        "weighted_interval_score", WIS, {"level": [0.5, 0.9]}, "y", "score",
    ),
    "energy_score": ("energy_score", VECTORS, {}, ["u", "v"], "score"),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_as_other_programs_compute_it(case):
    loss, columns, options, truth, output = CALLS[case]
    log = cvstats.losses(frame(), truth, {"ets": columns}, loss, **options)
    expected = CASES[case.split()[0]]["outputs"][output]
    np.testing.assert_allclose(log["ets"], expected, rtol=1e-9)
    assert log.attrs["loss"] == loss
    alone = cvstats.losses(frame(), truth, columns, loss, **options)
    np.testing.assert_array_equal(alone, log["ets"])  # a list is one model


def test_the_parts_of_the_weighted_interval_score_add_up():
    wanted = ["weighted_interval_score", *PARTS]
    log = cvstats.losses(frame(), "y", {"ets": WIS}, wanted, level=[0.5, 0.9])["ets"]
    whole = log.xs("weighted_interval_score", level="metric")
    point = cvstats.losses(frame(), "y", {"ets": ["mu"] * 5}, wanted[0], level=[0.5, 0.9])["ets"]
    np.testing.assert_allclose(point, (frame()["y"] - frame()["mu"]).abs(), rtol=1e-14)
    parts = sum(log.xs(part, level="metric") for part in PARTS)
    np.testing.assert_allclose(parts, whole, rtol=1e-14)
    table = cvstats.wald(log.to_frame("ets"), by="metric")
    assert len(table) == 4
    assert (log.xs("dispersion", level="metric") > 0).all()
    lies = DATA["y"] < DATA["lo90"]
    assert (log.xs("overprediction", level="metric")[lies] > 0).all()
    assert (log.xs("underprediction", level="metric")[lies] == 0).all()


def test_scores_of_one_member_and_of_no_spread_are_absolute_errors():
    table = frame().assign(sd=0.0)
    expected = (table["y"] - table["mu"]).abs()
    np.testing.assert_allclose(cvstats.losses(table, "y", "mu", "crps"), expected)
    normal = cvstats.losses(table, "y", ["mu", "sd"], "crps", distribution="normal")
    np.testing.assert_allclose(normal, expected)
    np.testing.assert_allclose(
        cvstats.losses(table, "y", {"m": ["mu"]}, "energy_score")["m"], expected
    )


def test_a_missing_number_is_a_missing_loss():
    table = frame()
    for name in ("y", "lo90", "member_3"):
        table.iloc[4, table.columns.get_loc(name)] = np.nan
    table.iloc[5, table.columns.get_loc("mu")] = np.nan
    for columns, loss, options, gone in (
        (MEMBERS, "crps", {}, [4]), (["mu", "sd"], "crps", {"distribution": "normal"}, [4, 5]),
        (["lo90", "hi90"], "interval_score", {"level": 0.9}, [4]),
        (["lo90", "hi90"], "coverage", {"level": 0.9}, [4]),
        (WIS, PARTS[0], {"level": [0.5, 0.9]}, [4, 5]),
        (WIS, "dispersion", {"level": [0.5, 0.9]}, [4, 5]),
    ):  # fmt: skip
        log = cvstats.losses(table, "y", columns, loss, **options)
        assert np.flatnonzero(log.isna()).tolist() == gone


def test_an_interval_covers_its_limits():
    table = pd.DataFrame({"y": [1.0, 2.0, 0.9, 2.1], "low": 1.0, "high": 2.0, "fold": 0})
    log = cvstats.losses(table, "y", ["low", "high"], ["coverage", "interval_score"], level=0.9)
    assert log["coverage"].tolist() == [1, 1, 0, 0]
    np.testing.assert_allclose(log["interval_score"], [1, 1, 3, 3])


# --- containers and methods -----------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_members_are_a_dimension_of_an_array(lazy):
    arrays = dataset()
    if lazy:
        pytest.importorskip("dask")
        arrays = arrays.chunk({"point": 10, "member": 4})
    log = cvstats.losses(arrays, "y", {"a": "ens"}, "crps", member="member")
    assert set(log["a"].dims) == {"point", "lead"}
    assert "member" not in log.coords
    expected = CASES["crps_ensemble"]["outputs"]["crps"]
    np.testing.assert_allclose(log["a"].sel(lead=1).values, expected, rtol=1e-9)
    assert (log["a"].chunks is not None) == lazy
    result = cvstats.wald(log["a"])
    assert result["estimate"].sizes == {"lead": 2}
    alone = cvstats.losses(arrays, "y", "ens", "crps", member="member")
    assert isinstance(alone, xr.DataArray)
    xr.testing.assert_equal(alone.rename("a"), log["a"])


def test_an_energy_score_of_arrays_has_a_variable_for_each_truth():
    model = {"a": ["u_ens", "v_ens"]}
    log = cvstats.losses(dataset(), ["u", "v"], model, "energy_score", member="member")
    np.testing.assert_allclose(log["a"], CASES["energy_score"]["outputs"]["score"], rtol=1e-9)


def test_a_function_reads_the_members():
    def spread(truth, members):
        assert members.shape == (len(truth), 11)
        return members.std(axis=1)

    expected = DATA["ensemble"].std(axis=1)
    log = cvstats.losses(frame(), "y", {"a": MEMBERS}, spread)
    np.testing.assert_allclose(log["a"], expected)
    arrays = cvstats.losses(
        dataset()[["y", "ens"]].sel(lead=1), "y", "ens", spread, member="member"
    )
    np.testing.assert_allclose(arrays, expected)

    def of_two(truth, prediction):
        return np.abs(truth - prediction).max(axis=1)

    two = cvstats.losses(frame(), ["u", "v"], {"a": ["mu", "sd"]}, of_two)["a"]
    both = np.abs(DATA["y2"] - np.column_stack([DATA["mu"], DATA["sd"]])).max(axis=1)
    np.testing.assert_allclose(two, both)


def test_a_metric_reads_several_columns():
    def worst(truth, limits):
        return float(np.mean((truth < limits[:, 0]) | (truth > limits[:, 1])))

    model = {"a": ["lo90", "hi90"]}
    own = cvstats.losses(frame(), "y", model, metric=worst, higher_is_better=False, folds="pool")
    share = 1 - cvstats.losses(frame(), "y", model, "coverage", level=0.9)["a"].mean()
    assert own["a"].mean() == pytest.approx(share)


def test_weights_and_strata():
    table = frame().assign(w=np.arange(30) % 4 + 1.0)
    log = cvstats.losses(table, "y", {"a": MEMBERS}, "crps", weight="w")
    expected = np.average(CASES["crps_ensemble"]["outputs"]["crps"], weights=table["w"])
    assert log["a"].mean() == pytest.approx(expected, rel=1e-12)
    fair = cvstats.losses(table, "y", {"a": MEMBERS}, "crps", weight="w", fair=True)
    assert fair["a"].mean() < log["a"].mean()


def test_coverage_is_compared_with_its_level():
    table = frame()
    table["low"], table["high"] = table["mu"] - 0.1, table["mu"] + 0.1
    model = {"wide": ["lo90", "hi90"], "narrow": ["low", "high"]}
    log = cvstats.losses(table, "y", model, "coverage", level=0.9)
    inside = (DATA["y"] >= DATA["lo90"]) & (DATA["y"] <= DATA["hi90"])
    np.testing.assert_array_equal(log["wide"], inside)
    assert log.attrs["target_value"] == 0.9
    interval = cvstats.interval(log)
    assert interval.loc["wide", "estimate"] == pytest.approx(inside.mean())
    assert interval.attrs["interval"].startswith("wilson")
    words = " ".join(str(log.cvci.summary()).split())
    assert "below 0.9: its intervals are too narrow" in words
    assert "better" not in words
    assert (cvstats.compare(log)["p_value"] < 0.05).all()
    with pytest.raises(LogError, match=r"coverage has the target value 0.9"):
        cvstats.best_set(log)
    weighted = cvstats.losses(table.assign(w=1.0), "y", model, "coverage", level=0.9, weight="w")
    assert weighted.attrs["target_value"] == 0.9
    np.testing.assert_allclose(weighted["wide"].mean(), inside.mean())


# --- refusals -------------------------------------------------------------------------------------

SWAPPED = ["hi90", "lo90"]
REFUSALS = [
    ("interval_score", SWAPPED, {"level": 0.9}, "the lower limit of row 0 is above the upper one"),
    ("coverage", SWAPPED, {"level": 0.9}, "Expected the columns as [lower, upper]."),
    ("weighted_interval_score", ["mu", *SWAPPED], {"level": 0.9}, "the lower limit of row 0"),
    ("interval_score", ["lo90", "hi90"], {"level": 90}, "got level=90. Expected a number between"),
    ("interval_score", ["lo90", "hi90"], {}, "needs the level of the interval, but got level=None"),
    ("interval_score", ["lo90", "hi90"], {"level": [0.5, 0.9]}, "got level=[0.5, 0.9]. Expected"),
    ("coverage", ["lo90", "hi90"], {"level": 0.0}, "got level=0.0."),
    ("weighted_interval_score", WIS, {"level": [0.5, 1.0]}, "got level=1.0."),
    ("weighted_interval_score", WIS, {"level": [0.5, 0.5]}, "contains a level twice"),
    ("weighted_interval_score", WIS[:3], {"level": [0.5, 0.9]},
     "got 3 columns of predictions for a model. Expected 5, as in cvstats.losses(frame, "
     "prediction={'model': ['median', 'lower_0.5', 'upper_0.5', 'lower_0.9', 'upper_0.9']}"),
    ("weighted_interval_score", ["lo90", "lo50", "mu", "hi50", "hi90"], {"level": [0.5, 0.9]},
     "the median of row 0, "),
    ("interval_score", "mu", {"level": 0.9}, "got 1 columns of predictions for a model"),
    ("crps", ["mu"], {"fair": True}, "with fair=True got one member"),
    ("energy_score", ["mu"], {"fair": True}, "with fair=True got one member"),
    ("crps", MEMBERS, {"fair": "yes"}, "Invalid fair='yes'. Expected True or False"),
    ("crps", MEMBERS, {"distribution": "gamma"}, "Invalid distribution='gamma'"),
    ("crps", MEMBERS, {"distribution": "normal"}, "Expected 2, as in cvstats.losses(frame, "
     "prediction={'model': ['mean', 'sd']}"),
    ("crps", ["sd", "mu"], {"distribution": "normal"},
     "the standard deviation of row 10 is -0.5717"),
    ("crps", ["mu", "sd"], {"distribution": "normal", "fair": True}, "Omit fair=."),
    ("crps", MEMBERS, {"level": 0.9}, "loss='crps' does not use level=, which applies only to"),
    ("crps", MEMBERS, {"member": "member"}, "requires a Dataset, but this is a DataFrame"),
    ("squared_error", ["mu"], {"member": "member"}, "reads one column of predictions"),
    ("squared_error", {"a": MEMBERS}, {}, "has 11 columns of predictions. Expected 1, or classes="),
    ("crps", {"a": []}, {}, "prediction= is empty."),
]  # fmt: skip


@together(REFUSALS)
def test_refusals(loss, columns, options, words):
    assert words in refusal(cvstats.losses, frame(), "y", columns, loss, **options)


def test_refusals_of_vectors_and_dimensions():
    with pytest.raises(LogError, match="got 11 columns of predictions for 2 columns of the truth"):
        cvstats.losses(frame(), ["u", "v"], MEMBERS, "energy_score")
    with pytest.raises(LogError, match="with weight= or strata= reads one"):
        cvstats.losses(frame(), ["u", "v"], VECTORS, "energy_score", weight="sd")
    with pytest.raises(
        LogError, match="loss='crps' reads one. Lists are for points with several labels"
    ):
        cvstats.losses(frame(), ["u", "v"], MEMBERS, "crps")
    with pytest.raises(
        LogError, match="'y' has no dimension 'member'. Expected member= to be one of its dim"
    ):
        cvstats.losses(dataset(), "u", "y", "crps", member="member")
    with pytest.raises(LogError, match="'member', which the truth does not have.*pass member="):
        cvstats.losses(dataset(), "y", "ens", "crps")
    with pytest.raises(LogError, match="no column 'enss'"):
        cvstats.losses(dataset(), "y", "enss", "crps", member="member")


def test_files_of_predictions_refuse_with_the_call_to_type(tmp_path):
    frame()[["y", "mu"]].reset_index().to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(LogError, match=r"Expected 2, as in cvstats\.losses\(frame, prediction="):
        cvstats.read_log(
            tmp_path / "table.csv", truth="y", prediction="mu", loss="interval_score", fold="fold",
            point="point",
        )  # fmt: skip


def test_fair_scores_of_two_members():
    """Without bias: the mean distance to the truth less half the distance of the two."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300_000, 3)), columns=["y", "one", "two"])
    found = cvstats.losses(
        table.rename_axis("point"), "y", {"a": ["one", "two"]}, "crps", fair=True
    )
    y, one, two = table.to_numpy().T
    wanted = (abs(one - y) + abs(two - y)) / 2 - abs(one - two) / 2
    np.testing.assert_allclose(found["a"], wanted, atol=1e-12)
