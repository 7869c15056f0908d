"""``by=`` of `read_log`: columns of a table that become levels, such as a segment."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses

import cvstats
from cvstats import LogError
from cvstats.cli import main

NAMES = {"model": "learner", "point": "customer", "truth": "actual", "prediction": "predicted"}


@pytest.fixture(scope="module")
def stacked():
    """The predictions of two models for 90 customers in three segments, in rows."""
    draw = np.random.default_rng(0)
    customers = pd.DataFrame(
        {
            "customer": np.arange(90),
            "segment": np.repeat(["retail", "small", "large"], 30),
            "actual": draw.normal(size=90),
        }
    )
    return pd.concat(
        [
            customers.assign(learner=name, predicted=customers["actual"] + draw.normal(0, sd, 90))
            for name, sd in {"ridge": 1.0, "forest": 0.5}.items()
        ]
    ).sample(frac=1, random_state=1)


def test_a_segment_is_a_level_and_not_the_sampling_unit(stacked):
    log = cvstats.read_log(stacked, by="segment", loss="squared_error", **NAMES)
    plain = cvstats.read_log(stacked, loss="squared_error", **NAMES)
    pd.testing.assert_frame_equal(log.cvci.interval(), plain.cvci.interval())
    found = log.cvci.interval(by="segment")
    for segment, part in stacked.groupby("segment"):
        alone = cvstats.read_log(part, loss="squared_error", **NAMES).cvci.interval()
        assert found.loc[segment, "upper"].to_dict() == pytest.approx(alone["upper"].to_dict())


def test_a_metric_has_a_value_for_each_segment(stacked):
    log = cvstats.read_log(stacked, by="segment", loss="rmse", **NAMES)
    part = stacked[(stacked["segment"] == "small") & (stacked["learner"] == "ridge")]
    rmse = np.sqrt(((part["actual"] - part["predicted"]) ** 2).mean())
    assert log.cvci.interval(by="segment").loc[("small", "ridge"), "estimate"] == pytest.approx(
        rmse
    )


def test_what_is_no_column_is_refused(stacked):
    options = {"loss": "squared_error", **NAMES}
    for by, words in (
        ("segmnt", "no column 'segmnt'.* Did you mean 'segment'"),
        (3, "Invalid by=3. Expected the names of one or more columns"),
        ({"sex": np.arange(99)}, "^by= is a dict. Expected the names of one or more columns"),
        ("learner", "by='learner' names the models"),
    ):
        refuses(words, cvstats.read_log, stacked, by=by, **options)
    log = cvstats.read_log(stacked, **options)
    refuses(
        r"name it when you read the log: read_log\(…, by='region'\)", log.cvci.interval, by="region"
    )


def test_a_saved_log_has_its_segments(stacked, tmp_path):
    log = cvstats.read_log(stacked, by="segment", loss="squared_error", **NAMES)
    path = tmp_path / "log.csv"
    cvstats.save_log(log, path)
    pd.testing.assert_frame_equal(cvstats.read_log(path, by="segment"), log)
    refuses(r"no level 'segmet'.* Did you mean 'segment'", cvstats.read_log, path, by="segmet")


def test_models_in_rows_are_seen_by_other_names(stacked):
    with pytest.raises(LogError, match="'learner' contains 2 labels, so models are stacked"):
        cvstats.losses(stacked, truth="actual", prediction="predicted")
    one = stacked[stacked["learner"] == "ridge"]
    assert len(cvstats.losses(one, truth="actual", prediction="predicted")) == 90
    unequal = cvstats.losses(stacked.iloc[1:], truth="actual", prediction="predicted")
    assert len(unequal) == 179  # these labels occur unequally often


@pytest.mark.parametrize("command", ["interval", "summary"])
def test_the_command_has_segments_of_stacked_models(stacked, command, tmp_path, capsys):
    path = tmp_path / "stacked.csv"
    stacked.to_csv(path, index=False)
    words = [f"--{name}={column}" for name, column in NAMES.items()]
    main([command, str(path), "--by", "segment", "--loss", "squared_error", *words])
    said = capsys.readouterr().out
    assert all(segment in said for segment in ("retail", "small", "large"))
    assert "forest" in said
