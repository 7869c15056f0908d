"""Two logs that do not pair are refused, and what the messages say to type works.

Further pairs are in `refusals.other_logs` and `refusals.other_arrays`.
"""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from faulty_logs import k_fold, moved, one, random_splits, refused, with_value, without_label
from strategies import as_dataset, by_point, dense, listed_coords, stacked

import cvstats
from cvstats import compare, difference, holdout, quadratic, wald


def other_folds(log):
    """The same points in other folds."""
    at = log.index.names.index("fold")
    codes = (np.asarray(log.index.codes[at]) + 1) % 3
    return log.set_axis(log.index.set_codes(codes, level="fold")) + 1.0


def renamed_point(log):
    """The same log with point 3 called 99."""
    return log.rename(index={3: 99}, level="point")


def text(log):
    """The same log with its points as text, as from another file."""
    return log.rename(index=str, level="point")


def line(array):
    return array.isel(repetition=0, drop=True).sel(model="a", drop=True)


ONLY = "only the first log has fold=1, point=3, and only the second log has fold=1, point=99"

BAD_PAIRS = {
    "other points of arrays": (
        lambda: stacked(one().to_frame()), lambda: stacked(renamed_point(one()).to_frame()), ONLY,
    ),
    "other points of listed coordinates": (
        lambda: listed_coords(one().to_frame()),
        lambda: listed_coords(renamed_point(one()).to_frame()), ONLY,
    ),
    "points of arrays as text": (
        lambda: stacked(one().to_frame()), lambda: stacked(text(one()).to_frame()),
        "Convert both to text, as in log['point'].astype(str).",
    ),
    "other folds of dense arrays": (
        lambda: dense(k_fold()), lambda: dense(other_folds(k_fold())),
        "only the first log has a loss at repetition=0, fold=0, point=0",
    ),
    "labels in one only": (
        lambda: line(by_point(k_fold())), lambda: line(by_point(k_fold())).drop_vars("point"),
        "the logs have different levels: only one of them has 'point'",
    ),
    "other lengths": (
        lambda: line(by_point(k_fold())).drop_vars("point"),
        lambda: line(by_point(k_fold(n=9))).drop_vars("point"),
        "the logs differ in length along 'point': 12 and 9.",
    ),
    "no levels": (
        lambda: pd.Series(np.arange(9.0)), lambda: pd.Series(np.arange(9.0) ** 2),
        "two logs without levels cannot be matched row by row. Expected at least a level 'point' "
        "that names the evaluations. Type log.rename_axis('point').",
    ),
    "folds without points": (
        lambda: one().droplevel("point"), lambda: one().droplevel("point"),
        "the first log has no level 'point', and its other levels do not identify the evaluations: "
        "fold=1",
    ),
    "coordinates without points": (
        lambda: listed_coords(one().to_frame()).drop_vars("point"),
        lambda: listed_coords(one().to_frame()).drop_vars("point"),
        "no coordinate along the dimension 'evaluation' identifies the points. Expected a "
        "coordinate 'point'",
    ),
    "duplicates in both": (
        lambda: pd.concat([one(), one().iloc[:1]]), lambda: pd.concat([one(), one().iloc[:1]]),
        "the same evaluation appears twice",
    ),
    "other models of datasets": (
        lambda: as_dataset(dense(k_fold())), lambda: as_dataset(dense(k_fold(models=("a", "c")))),
        "different models",
    ),
    "another container": (one, k_fold, "a Series cannot be compared to a DataFrame. Expected two"),
    "a column": (k_fold, one, "Make it a column: log.assign(other=other), and pass reference="),
    "an array": (one, lambda: dense(k_fold()), "a Series cannot be compared to a DataArray"),
    "a list": (one, lambda: [1.0], "a Series cannot be compared to a list"),
    "a name": (k_fold, lambda: "a", "To name a model, pass reference='a'."),
    "no log": (lambda: [1.0], one, "a list is not a loss log"),
    "text": (one, lambda: one().astype(str), "are not numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_logs_that_do_not_pair(name):
    one_of, other_of, words = BAD_PAIRS[name]
    assert words in refused(compare, one_of(), other_of())
    if name not in {"other folds of dense arrays", "duplicates in both"}:
        assert words in refused(difference, one_of(), other_of())


@pytest.mark.parametrize("form", [lambda log: log, lambda log: stacked(log.to_frame("m"))])
def test_a_missing_loss_of_either_log_is_named(form):
    whole, gap = form(one()), form(with_value(one().rename("c"), np.nan))
    words = "has no loss (NaN) at fold=2, point=4, where"
    assert words in refused(compare, whole, gap)
    assert "of the second log" in refused(compare, whole, gap)
    assert f"of the first log {words}" in refused(compare, gap, whole)
    both = compare(whole, gap, missing="drop")
    assert both.attrs["n_dropped"] == 1
    kept = one().drop((2, 4))
    expected = compare(form(kept), form(kept))
    assert float(np.squeeze(both["se"])) == float(np.squeeze(expected["se"]))
    assert both.attrs["n_points"] == 11


@pytest.mark.parametrize("form", [lambda log: log, lambda log: listed_coords(log.to_frame("m"))])
def test_folds_as_numbers_and_as_text(form):
    """The message was to evaluate both models with the same plan, which they had."""
    log = one()
    other = log.rename(index=str, level="fold")
    way = "Convert both to text, as in log"
    assert "The labels of 'fold' have the type int" in refused(compare, form(log), form(other))
    assert way in refused(compare, form(other), form(log))
    assert way not in refused(compare, form(log), form(other_folds(log)))
    compare(form(other), form(log.rename(index=str, level="fold")))


@pytest.mark.parametrize("first", [0, 1])
def test_a_log_and_plain_rows(first):
    """It listed a level None, and said to drop the levels of the log."""
    log = one()
    frame = log.reset_index()
    pair = [log, frame[log.name]]
    words = refused(compare, pair[first], pair[1 - first])
    assert "only one of them has 'fold', 'point'. Expected" in words
    assert "as in frame.set_index(['fold', 'point']); or, if both logs have the same order" in words
    compare(log, frame.set_index(["fold", "point"])[log.name])
    compare(log, pair[1].set_axis(log.index))


def test_a_series_pairs_with_a_frame_of_one_column():
    first, second = k_fold()["a"], k_fold()["b"]
    expected = compare(first, second)
    pd.testing.assert_frame_equal(compare(first, second.to_frame()), expected)
    pd.testing.assert_frame_equal(compare(first.to_frame(), second.iloc[::-1]), expected)
    gap = difference(first, second.to_frame())
    pd.testing.assert_series_equal(gap, difference(first, second))
    assert gap.attrs["difference_from"] == "b"


def test_points_of_one_type_pair():
    other = text(one()).iloc[::-1]
    pd.testing.assert_frame_equal(compare(text(one()), other), compare(one(), one()))


def test_models_on_different_points_are_contrasted():
    first, second = one().iloc[:6].to_frame("a"), one().iloc[6:].to_frame("b")
    apart = pd.concat([first, second]).rename_axis(columns="model")
    said = refused(compare, apart)
    assert "no evaluation has a loss of both" in said
    assert "missing=" not in said
    assert "log.stack().dropna().cvci.contrast(by='model')" in said
    gap = apart.stack().dropna().droplevel("fold").cvci.contrast(by="model").cvci.interval()
    assert gap["estimate"].iloc[0] == pytest.approx(first["a"].mean() - second["b"].mean())


def test_one_model_has_nobody_to_be_compared_to():
    words = "the log has only one model. Expected at least two: pass the other log"
    for log in (one(), one().to_frame(), line(by_point(k_fold()))):
        for function in (compare, difference, cvstats.best_set, cvstats.winner):
            assert words in refused(function, log)
    both = "other and reference were both given. Expected only one of them."
    assert both in refused(lambda a, b: compare(a, b, reference="a"), k_fold(), k_fold())
    assert both in refused(lambda a, b: difference(a, b, reference="a"), k_fold(), k_fold())


@pytest.mark.parametrize("form", [by_point, lambda log: by_point(log).chunk()], ids=["", "lazy"])
def test_differences_along_pair_are_compared_one_at_a_time(form):
    rows = k_fold()
    log = form(rows.assign(c=rows["a"] + np.linspace(0, 1, len(rows))))
    pairs = log.cvci.difference()
    words = refused(compare, pairs)
    assert words.startswith(
        "this log has a dimension 'pair', so its losses are already differences"
    )
    assert "losses.cvci.compare(); or select one pair" in words
    found, whole = (
        made.compute() for made in (pairs.isel(pair=0).cvci.compare(), log.cvci.compare())
    )
    for name in ("difference", "lower", "upper", "p_value"):
        assert found[name].item() == pytest.approx(float(whole[name][0]), rel=1e-12)


def test_columns_of_one_frame_need_no_labels():
    frame = pd.DataFrame(np.random.default_rng(0).random((40, 2)), columns=["a", "b"])
    expected = frame.cvci.compare()
    pd.testing.assert_frame_equal(frame["a"].cvci.compare(frame["b"]), expected)


ADVICE = {
    "duplicates": (lambda: pd.concat([one(), one()]), wald, "log[~log.index.duplicated()]"),
    "models below each other": (
        lambda: k_fold().rename_axis(columns="model").stack(), wald, "log.unstack('model')",
    ),
    "a row without a fold": (
        lambda: without_label(k_fold()), wald, "log[log.index.get_level_values('fold').notna()]",
    ),
    "a loss without a fold": (
        lambda: by_point(k_fold()).assign_coords(fold=("point", [np.nan, 0, 0] + [1.0, 2, 3] * 3)),
        wald, "log.where(log['fold'].notnull())",
    ),
    "unknown levels of a frame": (
        lambda: k_fold().droplevel(0).rename_axis(["cv", "id"]), wald,
        "log.rename_axis(index={'cv': 'fold'})",
    ),
    "unknown dimensions": (
        lambda: line(by_point(k_fold())).expand_dims(lat=2).rename(point="lon").drop_vars("fold"),
        wald, "log.rename({'lat': 'point'})",
    ),
    "levels as columns": (
        lambda: one().reset_index(), wald, "frame.set_index(['fold', 'point'])",
    ),
    "one level as a column": (
        lambda: one().reset_index("fold"), wald, "frame.set_index(['fold'], append=True)",
    ),
    "a level as a variable": (
        lambda: as_dataset(by_point(k_fold())).reset_coords("fold"), wald,
        "log.set_coords(['fold'])",
    ),
    "numbers as text": (lambda: one().astype(str), wald, "pd.to_numeric"),
    "an array of text": (lambda: dense(k_fold()).astype(str), wald, "log.astype(float)"),
    "several folds": (one, holdout, "log.xs(0, level='fold')"),
    "several repetitions": (lambda: k_fold(r=2), quadratic, "log.xs(0, level='repetition')"),
    "repetitions without points": (
        lambda: k_fold(r=2).droplevel("point"), wald, "log.xs(0, level='repetition')",
    ),
    "random splits": (random_splits, wald, "holdout(log.xs(0, level='repetition'))"),
}  # fmt: skip


def typed(code, log, call):
    """Do what the message says."""
    if code == "pd.to_numeric":
        return call(pd.to_numeric(log))
    result = eval(code, {"log": log, "frame": log, "holdout": holdout})
    return result if code.startswith("holdout") else call(result)


@pytest.mark.parametrize("name", ADVICE)
def test_the_advice_works(name):
    make, call, code = ADVICE[name]
    log = make()
    assert code in refused(call, log)
    result = typed(code, log, call)
    assert np.isfinite(np.asarray(result["se"], dtype=float)).all()


@pytest.mark.parametrize("form", [lambda log: log, lambda log: stacked(log.to_frame("m"))])
def test_the_advice_for_pairs_works(form):
    for log, other in (
        (form(one()), form(one().iloc[2:] + 1.0)),
        (form(one().iloc[:-2]), form(one().iloc[:1:-1] + 1.0)),  # both lack points
    ):
        words = refused(compare, log, other)
        names = {"log": log, "other": other, "xarray": xr}
        exec(re.search(r"ones with (.*?); or evaluate", words)[1], names)
        expected = 10 if len(log) == 12 else 8
        assert compare(names["log"], names["other"]).attrs["n_points"] == expected
    short, long = form(one()), form(k_fold()["a"])
    assert "log.dro" in refused(compare, long, short)


def test_nothing_is_to_be_kept_where_nothing_is_common():
    apart = one().rename(index=lambda point: point + 100, level="point")
    for other in (apart, other_folds(one())):
        words = refused(compare, one(), other)
        assert "common" not in words
        assert words.endswith("in the same folds. Evaluate both models with the same plan.")


def test_the_advice_for_names_works():
    log, other = pd.Series(np.arange(40.0)), pd.Series(np.arange(40.0) ** 2)
    assert "Type log.rename_axis('point')" in refused(compare, log, other)
    assert compare(log.rename_axis("point"), other.rename_axis("point")).attrs["n_points"] == 40
    extra = pd.concat({0: one()}, names=["sample"])
    code = re.search(r"as in (log\.\S+\))\.", refused(compare, extra, one()))[1]
    assert compare(eval(code, {"log": extra}), one() + 1.0).attrs["n_points"] == 12


def test_the_advice_for_missing_losses_works():
    for log in (with_value(one(), np.nan), with_value(k_fold(), np.nan)):
        assert "missing='drop'" in refused(wald, log)
        result = wald(log, missing="drop")
        assert result.attrs["n_points"] == 11
        assert result.attrs["n_dropped"] == 1
        assert wald(log.dropna(), missing="drop").attrs["n_dropped"] == 0
    empty = with_value(one(), np.nan) * np.nan
    assert "missing='drop' leaves nothing" in refused(lambda it: wald(it, missing="drop"), empty)


def test_the_advice_for_tables_works():
    table = one().rename("error").reset_index().rename(columns={"fold": "cv", "point": "id"})
    log = table.set_index(["cv", "id"])["error"]
    assert "cvstats.as_log(log.reset_index(), fold='cv', …)" in refused(wald, log)
    again = cvstats.as_log(log.reset_index(), loss="error", fold="cv", point="id")
    pd.testing.assert_series_equal(again, one(), check_names=False)
    assert "cvstats.as_log(frame, loss=…)" in refused(wald, one().reset_index())
    pd.testing.assert_series_equal(cvstats.as_log(one().reset_index(), loss="a"), one())
    assert "repetition='split'" in refused(wald, moved())
    splits = random_splits().rename_axis(["split", "point"]).rename("error").reset_index()
    again = cvstats.as_log(splits, loss="error", repetition="split")
    assert repr(again.cvci) == "<cvci: 7 points, 2 repetitions, 1 model>"


@pytest.mark.parametrize("call", [holdout, quadratic])
def test_the_advice_names_a_label_that_exists(call):
    log = pd.concat({"r": k_fold(), "s": k_fold()}, names=["repetition"]).droplevel(1)
    log = log.rename(index={0: "x", 1: "y", 2: "z"}, level="fold")
    code = re.search(r"log\.xs\(.*?\)", refused(call, log))[0]
    call(eval(code, {"log": log.xs("r") if call is holdout else log}))


@pytest.mark.parametrize(("n", "plan"), [(100, "nested_cv"), (101, "corrected_t")])
def test_a_plan_is_recommended_for_the_number_of_points(n, plan):
    log = pd.Series(np.random.default_rng(0).normal(size=n), pd.RangeIndex(n, name="point"))
    assert f"recommend {plan}" in cvstats.interval(log).attrs["suggestion"]
