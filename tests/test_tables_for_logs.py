"""Tables that are no logs, options without names, and names of other tests: each is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats.errors import LogError

RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(
    {"patient": np.repeat(np.arange(20), 3), "ridge": RNG.random(60), "forest": RNG.random(60)}
)
PREDICTIONS = WIDE.assign(y_true=RNG.random(60))
LOG = WIDE.set_axis(
    pd.MultiIndex.from_arrays([np.arange(60) % 5, np.arange(60)], names=["fold", "point"])
).drop(columns="patient")


def stacked():
    """The predictions of two models, one below the other."""
    names = ["ridge", "forest"]
    parts = [PREDICTIONS[["patient", "y_true"]].assign(model=m, y_pred=WIDE[m]) for m in names]
    return pd.concat(parts)


@pytest.mark.parametrize("index", [None, ["patient"]], ids=["numbered", "by patient"])
def test_models_in_rows_are_not_points(index):
    frame = stacked()
    frame = frame if index is None else frame.set_index(index)
    with pytest.raises(
        LogError, match=r"'model' contains 2 labels, so models are stacked .*model="
    ):
        cvstats.losses(frame)


def test_what_the_message_says_works():
    table = stacked().assign(point=np.tile(np.arange(60), 2))
    options = {"truth": "y_true", "prediction": "y_pred", "loss": "squared_error"}
    log = cvstats.read_log(table, model="model", point="point", source="patient", **options)
    assert list(log.columns) == ["ridge", "forest"]
    one = cvstats.losses(table[table["model"] == "ridge"])
    assert one.to_numpy() == pytest.approx(log["ridge"].to_numpy())


@pytest.mark.parametrize("rows", [slice(None), slice(10, None)], ids=["all", "some"])
def test_a_table_is_not_a_log(rows):
    with pytest.raises(LogError, match=r"'y_true' is a column .*cvstats\.losses\(frame, truth="):
        PREDICTIONS[rows].cvci.interval()
    with pytest.raises(LogError, match=r"named like the level 'source'.*source='patient'\)"):
        WIDE[rows].cvci.interval()
    assert len(WIDE[rows][["ridge", "forest"]].cvci.interval()) == 2


def test_columns_named_like_levels_stay_if_some_rows_are_left_out():
    losses = cvstats.losses(PREDICTIONS[10:], prediction=["ridge", "forest"])
    assert losses.index.names == ["patient"]
    assert "unused level" in losses.cvci.interval()["caution"].iloc[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: log.cvci.wald(0.1), r"wald\(\) got 0.1 without a name.*wald\(alpha=0.1\)"),
        (lambda log: cvstats.wald(log, 0.1), r"wald\(\) got 0.1 without a name"),
        (lambda log: log.cvci.summary(0.1), r"summary\(alpha=0.1\).*Valid options: method, alpha"),
        (lambda log: log.cvci.clustered("site"), r"clustered\(by='site'\)"),
        (lambda log: log.cvci.diagnose(1), r"diagnose\(\) got 1 without a name\.$"),
    ],
)
def test_options_have_names(call, words):
    with pytest.raises(TypeError, match=words):
        call(LOG)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mcnemar", r"a function of its own.*log\.cvci\.mcnemar\(\)"),
        ("TOST", r"log\.cvci\.equivalence\(margin=…\)"),
        ("wilcoxon", r"tests medians or ranks.*Leave method= out"),
        ("ttest", r"method='ttest' is the corrected t-test.*neither folds nor repetitions"),
    ],
)
def test_names_of_other_tests(method, words):
    for function in ("interval", "compare"):
        with pytest.raises(LogError, match=words):
            getattr(LOG.droplevel("fold").cvci, function)(method=method)


def test_an_error_rate_is_not_another_log():
    with pytest.raises(LogError, match=r"other=0.1 is a number.*alpha=0.1"):
        LOG.cvci.compare(0.1)


def test_a_missing_member_is_a_missing_loss_that_is_named():
    members = [f"m{i}" for i in range(4)]
    frame = pd.DataFrame(RNG.random((30, 4)), columns=members).assign(y_true=RNG.random(30))
    frame.loc[[3, 7], "m2"] = np.nan
    losses = cvstats.losses(frame.rename_axis("point"), prediction={"ens": members}, loss="crps")
    with pytest.raises(
        LogError, match=r"'ens' is missing \(NaN\) at point=3; point=7.*missing='drop'"
    ):
        losses.cvci.interval()
    assert losses.cvci.interval(missing="drop").attrs["n_dropped"] == 2
