"""Levels under other names, and means in place of losses, are doubted aloud."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import only_row, product_index

import cvstats
from cvstats.core.cautions import Caution
from cvstats.errors import LogError
from cvstats.log.tables import suggest_level

WORDS = "unused level"


def by_subject(name="subject", n=100):
    """Ten subjects of ten points, far apart, as they are when one is left out at a time."""
    draw = np.random.default_rng(4)
    groups = np.arange(n) // 10
    index = pd.MultiIndex.from_arrays([groups, np.arange(n)], names=[name, "point"])
    return pd.Series(draw.normal(size=10)[groups] + draw.normal(size=n), index)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *dict.fromkeys(
            ("subject", "Subject", "subject_id", "patients", "group", "Groups", "sorce", "siteId",
             "data source", "centre", "speaker"), "source",
        ).items(),
        *dict.fromkeys(("Fold", "folds", "cv_fold", "fold_id", "split"), "fold").items(),
        *dict.fromkeys(("rep", "repeats", "seed", "repitition", "Epoch"), "repetition").items(),
        *dict.fromkeys(("id", "idx", "row", "sample_id", "points"), "point").items(),
    ],
)  # fmt: skip
def test_names_that_sound_like_a_level(name, level):
    assert suggest_level(name) == level


@pytest.mark.parametrize(
    "name",
    ["country", "county", "month", "carrier", "folder", "resource", "order", "route", "router",
     "dataset", "x", "name", "data", "decade", "gold", "trial"],
)  # fmt: skip
def test_names_that_do_not(name):
    assert suggest_level(name) is None


@pytest.mark.parametrize("name", ["subject", "Fold", "cv_fold", "seed"])
def test_intervals_doubt_a_level_that_is_not_used(name):
    log = by_subject(name)
    several = pd.DataFrame({"a": log, "b": log + np.arange(100) % 7})
    for result in (log.cvci.interval(), log.cvci.holdout(), log.cvci.wald()):
        assert WORDS in only_row(result)["caution"]
    for table in (several.cvci.compare(), several.cvci.best_set(rng=0), several.cvci.wald()):
        assert table["caution"].str.contains(WORDS, regex=False).all()
    assert WORDS not in cvstats.wald(log, by=name)["caution"].iloc[0]
    said = log.cvci.diagnose().set_index("code").loc["CVS021", "finding"]
    assert f"the level {name!r} with 10 labels is not used" in said
    assert f"level {name!r} is not used; it may contain the" in repr(log.cvci)


def test_the_level_by_its_name_is_what_was_meant():
    log = by_subject()
    code = repr(log.cvci).split("sources: ")[1].rstrip(">")
    named = eval(code, {"log": log})
    assert WORDS not in only_row(named.cvci.interval())["caution"]
    assert "CVS021" not in set(named.cvci.diagnose()["code"])
    assert only_row(named.cvci.interval())["se"] > 1.5 * only_row(log.cvci.interval())["se"]


def test_coordinates_along_the_evaluations_are_doubted_too():
    folds = ("point", np.arange(40) % 4)
    array = xr.DataArray(np.arange(40.0) % 9, dims="point", coords={"folds": folds})
    for log in (array, array.chunk()):
        flags = log.cvci.wald()["caution"]
        assert flags.dtype == np.int64
        assert int(flags) & Caution.UNUSED_LEVEL
    assert "log.rename({'folds': 'fold'})" in repr(array.cvci)
    assert not int(array.rename(folds="fold").cvci.wald()["caution"]) & Caution.UNUSED_LEVEL


def test_moments_remember_the_doubt(tmp_path):
    log = by_subject()
    first, second = (cvstats.Moments.of_log(part) for part in (log.iloc[:50], log.iloc[50:]))
    (first + second).save(tmp_path / "both.npz")
    for part in (first, first + second, cvstats.Moments.load(tmp_path / "both.npz")):
        assert part.levels == ()
        assert WORDS in only_row(part.holdout())["caution"]
    named = cvstats.Moments.of_log(log, by="subject")  # asked for, so it is not an oversight
    assert WORDS not in cvstats.holdout(named, by="subject")["caution"].iloc[0]
    assert WORDS in only_row(named.holdout())["caution"]
    country = cvstats.Moments.of_log(log.rename_axis(index={"subject": "country"}))
    assert only_row(country.holdout())["caution"] == ""


def test_no_caution_where_nothing_is_in_doubt():
    log = by_subject()
    assert only_row(log.rename_axis(index={"subject": "country"}).cvci.interval())["caution"] == ""
    alone = log.set_axis(pd.MultiIndex.from_arrays([range(100)] * 2, names=["subject", "point"]))
    assert only_row(alone.cvci.interval())["caution"] == ""  # each subject has one point
    rows = pd.DataFrame({"source": np.arange(60) % 6, "point": range(60), "a": np.arange(60.0) % 7})
    array = rows.to_xarray().set_coords(["source", "point"])["a"]  # along the dimension "index"
    frame = rows.rename_axis("row").set_index(["source", "point"], append=True)["a"]
    again = pd.concat({0: frame, 1: frame + 1, 2: frame}, names=["repetition"])
    for numbered in (array, array.chunk(), frame, cvstats.Moments.of_log(frame), again):
        caution = np.ravel(cvstats.cautions(cvstats.interval(numbered)))
        assert caution.tolist() == ["few sources"]
    one = log.set_axis(log.index.set_codes(np.zeros(100, int), level="subject"))
    assert only_row(one.cvci.interval())["caution"] == ""
    named = log.droplevel("point").rename_axis("fold").to_frame("a").assign(id=range(100))
    table = only_row(named.set_index("id", append=True)["a"].cvci.wald())
    assert WORDS not in table["caution"]  # the names of points change no number


def test_advice_for_means_does_not_lead_into_the_trap():
    log = pd.Series(np.arange(15.0), product_index(repetition=range(3), fold=range(5)))
    with pytest.raises(LogError, match=r"set log.attrs\['holds'\] = 'scores'") as error:
        log.cvci.wald()
    assert "log.xs" not in str(error.value)
    log.attrs["holds"] = "scores"
    assert only_row(log.cvci.corrected_t())["n_splits"] == 15
    other = r"cross_val_score are read by .*cv=cv.*, other .* by cvstats\.read_log\(frame, "
    with pytest.raises(LogError, match=other):
        cvstats.wald(np.array([0.8, 0.9]))
    frame = pd.DataFrame({"fold": range(3), "score": [0.7, 0.8, 0.9]})
    scores = cvstats.read_log(frame, format="scores", higher_is_better=True)
    assert only_row(scores.cvci.corrected_t())["caution"] == "few splits"


def test_alpha_is_what_is_left_out():
    words = "large alpha"
    log = by_subject("fold")
    both = pd.DataFrame({"a": log, "b": log + np.arange(100) % 7})
    assert words in only_row(log.cvci.wald(alpha=0.95))["caution"]
    assert words in only_row(log.cvci.interval(alpha=0.51))["caution"]
    assert words in both.cvci.compare(alpha=0.9)["caution"].iloc[0]
    assert words in both.cvci.best_set(alpha=0.9, rng=0)["caution"].iloc[0]
    for alpha in (0.05, 0.5):
        assert words not in only_row(log.cvci.wald(alpha=alpha))["caution"]


def test_as_log_loses_no_level_unseen():
    table = by_subject().rename("loss").reset_index().rename(columns={"point": "trial"})
    log = cvstats.as_log(table, point="trial")
    assert list(log.index.names) == ["point", "subject"]
    assert WORDS in only_row(log.cvci.interval())["caution"]
    assert list(cvstats.as_log(table, point="trial", source="subject").index.names) == [
        "source", "point",
    ]  # fmt: skip
    plain = table.rename(columns={"subject": "country"})
    assert list(cvstats.as_log(plain, point="trial").index.names) == ["point"]
    numbers = table.assign(seed=table["loss"], run=1)  # floats are not labels, and one is none
    assert list(cvstats.as_log(numbers, point="trial").index.names) == ["point", "subject"]


def test_as_log_keeps_of_stacked_models_what_they_share():
    table = by_subject().rename("loss").reset_index()
    long = pd.concat({"a": table, "b": table}, names=["model", None]).reset_index("model")
    long["seed"] = (long["model"] == "a") * 7  # of the model, not of the evaluation
    log = cvstats.as_log(long)
    assert list(log.index.names) == ["point", "subject"]
    assert log.shape == (100, 2)
    assert not log.isna().any(axis=None)
