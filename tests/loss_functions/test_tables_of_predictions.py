"""Tables of predictions as people bring them: lead times, survival, members, counts."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal

import cvstats
from cvstats import LogError, cli

RANDOM = np.random.default_rng(0)
NUMBERS = pd.DataFrame(
    {
        "y_true": RANDOM.normal(size=60), "ridge": RANDOM.normal(size=60),
        "lasso": RANDOM.normal(size=60), "site": np.arange(60) % 6, "fold": np.arange(60) % 4,
        "point": np.arange(60),
    }
)  # fmt: skip


def leads():
    days = pd.date_range("2024-01-01", periods=20).repeat(3)
    return pd.DataFrame(
        {
            "date": days, "lead": np.tile([1, 2, 3], 20), "y_true": NUMBERS["y_true"],
            "y_pred": NUMBERS["ridge"],
        }
    )  # fmt: skip


def survival():
    risk, n = RANDOM.normal(size=200), 200
    time, censored = RANDOM.exponential(np.exp(-risk)), RANDOM.exponential(2, size=n)
    return pd.DataFrame(
        {
            "time": np.minimum(time, censored), "died": (time <= censored).astype(int),
            "cox": risk, "age": RANDOM.normal(size=n), "chance": 1 / (1 + np.exp(-risk)),
            "fold": np.arange(n) % 5, "id": np.arange(n),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: cvstats.read_log(leads(), loss="mse", point="date"), "lead times"),
        (
            lambda: cvstats.losses(leads().set_index("date").rename_axis("point")).cvci.interval(),
            "by='lead_time'",
        ),
        (lambda: losses_of_leads().cvci.interval(), "by='lead'"),
        (
            lambda: cvstats.losses(NUMBERS, prediction="ridge", loss="brier_score", at=1.0),
            "Expected loss='brier_at', with event= and at=",
        ),
        (
            lambda: cvstats.losses(NUMBERS, prediction="ridge", loss="auc", event="fold"),
            "Expected loss='auc_at'",
        ),
        (
            lambda: cvstats.losses(NUMBERS, prediction="ridge", loss="mse", event="fold"),
            "It applies to loss='brier_at' or 'auc_at' or 'uno'",
        ),
    ],
)
def test_refusals_name_the_way(ask, words):
    assert words in refusal(ask)


def losses_of_leads():
    table = leads().set_index(["date", "lead"]).rename_axis(index={"date": "point"})
    return cvstats.losses(table)


@pytest.mark.parametrize("name", ["fold", "point", "source", "repetition", "model"])
def test_levels_are_not_options_of_losses(name):
    with pytest.raises(TypeError, match="Levels are the index of the frame") as caught:
        cvstats.losses(NUMBERS, prediction="ridge", **{name: "fold"})
    assert f"read_log(predictions, {name}=…)" in str(caught.value)


def test_whole_numbers_that_repeat_are_no_model():
    table = pd.DataFrame(
        {"fold": np.arange(60) % 4, "point": range(60), "ridge": NUMBERS["ridge"] ** 2}
    )
    with pytest.warns(UserWarning, match=r"whole numbers, or not named like models: 'store'"):
        log = cvstats.read_log(table.assign(lasso=0.5, store=NUMBERS["site"] + 1))
    assert list(log) == ["ridge", "lasso"]
    with pytest.warns(UserWarning, match="not named like models: 'half'"):  # each label twice
        log = cvstats.read_log(table.assign(lasso=0.5, half=np.arange(60) % 30))
    assert list(log) == ["ridge", "lasso"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = cvstats.read_log(table.assign(hospital_code=NUMBERS["site"]))
        errors = cvstats.read_log(table.assign(label=np.arange(60) % 2))
    assert codes.index.names == ["fold", "point", "hospital_code"]
    assert list(errors) == ["ridge", "label"]


@pytest.mark.parametrize("loss", ["brier", "squared_error"])
def test_losses_are_their_own_scores(loss):
    table = NUMBERS.set_index(["fold", "point"]).assign(y_true=np.arange(60) % 2, p=0.4)
    result = cvstats.losses(table, prediction="p", loss=loss).cvci.interval()
    pd.testing.assert_frame_equal(cvstats.as_scores(result), result)


def test_models_of_a_dataset_may_have_fewer_members():
    members = xr.Dataset(
        {
            "y_true": ("point", RANDOM.normal(size=30)),
            "wide": (("point", "member"), RANDOM.normal(size=(30, 5))),
            "narrow": (("point", "member"), RANDOM.normal(size=(30, 5))),
        },
        {"point": range(30)},
    )
    members["narrow"][:, 3:] = np.nan
    ask = {"loss": "crps", "member": "member", "fair": True}
    both = cvstats.losses(members, prediction=["wide", "narrow"], **ask)
    alone = cvstats.losses(members.isel(member=slice(3)), prediction=["narrow"], **ask)
    np.testing.assert_array_equal(both["narrow"], alone["narrow"])


def test_the_command_scores_survival(tmp_path, capsys):
    survival().to_csv(tmp_path / "s.csv", index=False)
    read = ["--truth", "time", "--event", "died", "--fold", "fold", "--point", "id"]
    models = ["--prediction", "cox", "--prediction", "age"]
    file = str(tmp_path / "s.csv")
    assert cli.main(["interval", file, "--loss", "uno", "--at", "1", *read, *models]) == 0
    printed = capsys.readouterr().out
    table = pd.read_csv(file).rename(columns={"id": "point"}).set_index(["fold", "point"])
    log = cvstats.losses(table, "time", ["cox", "age"], "uno", event="died", at=1.0)
    expected = cvstats.as_scores(log.cvci.interval())["estimate"]
    assert f"{expected['cox']:.3f}" in printed
    one = ["--prediction", "chance"]
    assert cli.main(["summary", file, "--loss", "brier_at", "--at", "1", *read, *one]) == 0
    assert "Brier score at 1 of chance" in capsys.readouterr().out
    assert cli.main(["interval", file, "--loss", "uno", *read[:2], *read[4:], *one]) == 2
    assert "--event" in capsys.readouterr().err


def test_events_have_to_be_the_same_for_all_models():
    table = pd.concat([survival().assign(model=name, y_pred=0.1) for name in "ab"])
    table = table.reset_index(drop=True)
    ask = {"truth": "time", "prediction": "y_pred", "fold": "fold", "point": "id", "model": "model"}
    table.loc[200:, ["time", "died"]] = table.loc[:199, ["time", "died"]].to_numpy()
    table["y_pred"] = RANDOM.random(400)
    log = cvstats.read_log(table, loss="uno", event="died", at=1.0, **ask)
    assert list(log) == ["a", "b"]
    table.loc[7, "died"] = 1 - table.loc[7, "died"]
    with pytest.raises(LogError, match="the 'died' of id=7|the 'died' of point=7"):
        cvstats.read_log(table, loss="uno", event="died", at=1.0, **ask)
    with pytest.raises(LogError, match="no column 'deid', which event= names"):
        cvstats.read_log(table, loss="uno", event="deid", at=1.0, **ask)
