"""What results say of the study, and that the numbers are those of its file."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import multi_index

import cvstats
from cvstats.recommend import read_figures
from evidence.designs import ELSEWHERE, UNMEASURED

FIGURES = read_figures()
KIND = {row["name"]: row["kind"] for row in FIGURES["populations"]}
DESIGN = {row["name"]: row["design"] for row in FIGURES["populations"]}


def folds(values, *, sources=None):
    n = len(values)
    levels = {"fold": np.arange(n) % 10, "point": range(n)}
    if sources is not None:
        levels = {"fold": np.arange(n) % sources % 10, "source": np.arange(n) % sources,
                  "point": range(n)}  # fmt: skip
    return pd.Series(values, multi_index(**levels))


def normal(n, **options):
    return folds(np.random.default_rng(0).normal(size=n) ** 2, **options)


def shares_near(n, chosen, **asked):
    """The coverage in each population, at the number of points nearest to n."""
    found = {}
    for row in FIGURES["intervals"]:
        name = row["population"]
        if asked.items() <= row.items() and chosen(name):
            gap = abs(np.log(row["n"] / n))
            if row["coverage"] is not None and gap < found.get(name, (np.inf,))[0]:
                found[name] = gap, row["coverage"]
    return [coverage for _, coverage in found.values()]


@pytest.mark.parametrize("method", ["wald", "holdout"])
def test_the_reason_of_an_interval(method):
    log = normal(120) if method == "wald" else normal(120).droplevel("fold")
    start, measured = log.cvci.interval().attrs["reason"].split("; ")
    a_partition = "a partition into 10 folds: every point is tested once"
    assert start == (a_partition if method == "wald" else "one test set of 120 points")
    shares = shares_near(
        120, lambda name: KIND[name] not in ("zero_one", "score") and DESIGN[name] == "points",
        method=method, options={},
    )  # fmt: skip
    assert measured.startswith(f"in {len(shares)} simulated populations (n = ")
    middle, worst = 100 * np.median(shares), 100 * min(shares)
    words = f"95% intervals contained the true value in {middle:.0f}% of runs (median) and in "
    assert f"{words}{worst:.0f}% in the worst case: " in measured


def test_groups_are_measured_on_groups_and_errors_with_their_own_limits():
    log = normal(300, sources=30)
    shares = shares_near(
        300, lambda name: DESIGN[name] in ("groups", "sources") and KIND[name] != "zero_one",
        method="clustered", options={},
    )  # fmt: skip
    assert f"{100 * min(shares):.0f}% in the worst case" in log.cvci.interval().attrs["reason"]
    errors = (log > 2).droplevel("fold") * 1.0
    (share,) = shares_near(300, "grouped errors".__eq__, method="interval")
    assert f" in {100 * share:.0f}% of runs: " in errors.cvci.interval().attrs["reason"]


def test_the_table_of_methods():
    log = pd.DataFrame({"a": normal(100), "b": normal(100) + 0.1})
    table = log.cvci.methods()
    assert "95% intervals contained the true value in " in table.loc["nested_cv", "measured"]
    for name in ("compare", "refit_corrected"):  # the default of compare for refitted models
        assert "tests at 5% rejected equality of equally good" in table.loc[name, "measured"]
    of_one_set = log.droplevel("fold").cvci.methods()["measured"]
    assert of_one_set["compare"] == of_one_set["rope"] == ""  # measured on refitted models
    of_errors = {
        name: one.gt(2).cvci.methods().loc["compare", "measured"]
        for name, one in (("refitted", log), ("tested", log.droplevel("fold")))
    }
    assert of_errors["refitted"] != of_errors["tested"] != ""
    assert table.loc["decompose", "measured"] == ""
    assert "ordered" not in table.loc["holdout", "measured"]
    assert "autocorrelation" in table.loc["ordered", "measured"]


@pytest.mark.parametrize("loss", ["auc", "rmse", "r2", "f1", "contrast"])
def test_only_a_log_of_auc_is_measured_on_auc(loss):
    rng = np.random.default_rng(1)
    predictions = pd.DataFrame(
        {"y": rng.integers(2, size=200), "p": rng.random(200), "fold": np.arange(200) % 5,
         "point": range(200), "sex": rng.choice(list("fm"), 200)}
    ).set_index(["fold", "point", "sex"])  # fmt: skip
    if loss == "f1":
        predictions = predictions.round()
    kind = "brier" if loss == "contrast" else loss
    log = cvstats.losses(predictions, truth="y", prediction="p", loss=kind)
    if loss == "contrast":
        log = log.cvci.contrast(by="sex")
    array = xr.DataArray(log.to_numpy(), dims="point", attrs=log.attrs).assign_coords(
        {name: ("point", log.index.get_level_values(name)) for name in ("fold", "point")}
    )
    words = "in a simulated population (n = "
    for one in (log, array, array.chunk(point=50), cvstats.Moments.of_log(log)):
        table = cvstats.interval(one)
        assert (words in table.attrs["reason"]) == (loss == "auc")
        assert ("simulated" in table.attrs["reason"]) == (loss == "auc")
    assert log.cvci.methods()["measured"].str.contains("simulated").any() == (loss == "auc")


@pytest.mark.parametrize("part", ["intervals", "comparisons"])
def test_every_method_was_measured(part):
    from cvstats.intervals import list_methods
    from cvstats.intervals._method import IntervalMethod

    wanted = {
        "intervals": [made.name for made in list_methods() if isinstance(made, IntervalMethod)],
        "comparisons": ["compare", "equivalence", "mcnemar", "rope", "winner"],
    }[part]
    for name in wanted:
        found = {row["population"] for row in FIGURES[part] if row["method"] == name}
        assert bool(found) != (name in ELSEWHERE | UNMEASURED), name
