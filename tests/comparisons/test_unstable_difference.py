"""Differences that are not stable: what is promised of them, where that is said, and how often."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import multi_index
from scipy import stats

import cvstats
from cvstats.comparisons._pairs import read_pairs
from cvstats.intervals._stability import Partitions, exchange_ratio, find_unstable, measure_refits

ROOT = Path(__file__).parents[2]
LABEL = "unstable difference"
PAPER = "arXiv:2508.04409"
CONDITION = "if the difference between the losses is relatively stable"


def predict_mean(effect, *, repetitions=5, n=100, k=10, seed=1):
    """Squared errors of zero, of the mean, and of a copy of zero, cross-validated."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n) + effect
    parts = []
    for repetition in range(repetitions):
        fold = rng.permutation(np.arange(n) % k)
        mean = np.array([y[fold != f].mean() for f in range(k)])[fold]
        index = multi_index(repetition=np.full(n, repetition), fold=fold, point=np.arange(n))
        losses = {"zero": y**2, "mean": (y - mean) ** 2, "copy": y**2}
        parts.append(pd.DataFrame(losses, index=index))
    return pd.concat(parts)


NULL, REAL = predict_mean(0.0), predict_mean(1.0)
PAIR = ["zero", "mean"]


def ratio_by_hand(log):
    d = (log["zero"] - log["mean"]).groupby("repetition")
    se = np.sqrt(d.var(ddof=0).mean() / d.size().iloc[0])
    return d.mean().std() / se


def as_array(log):
    return log.to_xarray().to_dataarray("model")


ROADS = {
    "frame": lambda log: log,
    "shuffled": lambda log: log.sample(frac=1, random_state=0),
    "folds of repetitions": lambda log: (
        log.reset_index()
        .assign(fold=lambda table: table["fold"] + 9 * table.get("repetition", 0))
        .set_index(log.index.names)
    ),
    "array": as_array,
    "dask": lambda log: as_array(log).chunk(model=1, point=30),
    "Moments": lambda log: cvstats.Moments.of_log(log, pairs=True),
}
COMPARISONS = {"compare": {"method": "wald"}, "equivalence": {"margin": 0.1, "method": "wald"},
               "power": {"effect": 0.1, "method": "wald"}, "rope": {"margin": 0.1}}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "road"),
    [
        *(("compare", road) for road in ROADS),
        *((n, "frame") for n in COMPARISONS if n != "compare"),
    ],
)
def test_every_comparison_says_so_on_every_road(name, road):
    assert ratio_by_hand(NULL) > 0.3 > ratio_by_hand(REAL)
    for log, labelled in ((NULL, True), (REAL, False)):
        losses = ROADS[road](log[PAIR])
        function = getattr(losses if road == "Moments" else losses.cvci, name)
        labels = np.ravel(cvstats.cautions(function(**COMPARISONS[name])))
        assert [LABEL in label for label in labels] == [labelled]


@pytest.mark.parametrize("path", ["memory", "moments", "moments of a long log"])
def test_the_label_is_that_of_the_refits_and_of_long_moments_that_of_the_ratio(path, monkeypatch):
    if path == "moments of a long log":
        monkeypatch.setattr("cvstats.large.moments.LIMIT", 100)
    seen = set()
    for seed in range(8):
        log = predict_mean(0.15 if seed % 2 else 0.5, seed=seed)[PAIR]
        fold = log.index.get_level_values("repetition") * 10 + log.index.get_level_values("fold")
        rows = (log.index.get_level_values(name) for name in ("repetition", "point"))
        repetition, point = (row.to_numpy() for row in rows)
        cut = Partitions(repetition, fold.to_numpy(), point)
        matters = measure_refits((log["zero"] - log["mean"]).to_numpy(), cut).matters
        source = log if path == "memory" else cvstats.Moments.of_log(log, pairs=True)
        expected = ratio_by_hand(log) > 0.3 if "long" in path else matters
        table = cvstats.compare(source, method="wald")
        assert (LABEL in table["caution"].item()) == expected
        default = cvstats.compare(source).attrs
        assert default["interval_method"] == ("wald" if "long" in path else "refit_corrected")
        assert ("instead_of" in default) == ("long" in path)
        if "long" in path and expected:
            assert "Use compare(method='corrected_t')" in default["cautions"][LABEL]
        seen.add(matters)
    assert seen == {True, False}


def test_the_default_accounts_for_it():
    table = NULL[PAIR].cvci.compare()
    assert table.attrs["interval_method"] == "refit_corrected"
    assert LABEL not in table["caution"].item()
    assert table["se"].item() > 1.2 * NULL[PAIR].cvci.compare(method="wald")["se"].item()


def test_one_partition_of_models_that_are_nearly_alike():
    once = NULL[PAIR].xs(0, level="repetition")
    d, squares = once["zero"] - once["mean"], (once**2).mean().sum()
    for log, labelled in ((once, True), (once.assign(mean=10 * once["mean"]), False)):
        d, squares = log["zero"] - log["mean"], (log**2).mean().sum()
        assert (len(d) * d.var(ddof=0) / squares < 10) == labelled
        for road in ROADS:
            losses = ROADS[road](log)
            compare = losses.compare if road == "Moments" else losses.cvci.compare
            table, named = compare(), compare(method="wald")
            assert (LABEL in np.ravel(cvstats.cautions(table))[0]) == labelled
            ratio = np.ravel(table["se"])[0] / np.ravel(named["se"])[0]
            assert (ratio >= np.sqrt(2) * (1 - 1e-9)) if labelled else ratio == 1
            if labelled:
                wider = log.cvci.compare(method="refit_corrected")["se"].item()
                assert np.ravel(table["se"])[0] == pytest.approx(wider, rel=1e-9)
                both = compare(relative=True)
                excludes = (np.ravel(t["lower"] > 0)[0] or np.ravel(t["upper"] < 0)[0]
                            for t in (table, both))  # fmt: skip
                assert next(excludes) == next(excludes)


@pytest.mark.parametrize(
    ("n", "seed", "labelled"),
    [(30, 2, True), (29, 2, False), (100, 0, True), (100, 39, True), (100, 1, False)],
)  # fmt: skip
def test_two_folds_of_thirty_points_suffice_below_four_standard_errors(n, seed, labelled):
    once = predict_mean(0.0, repetitions=1, n=n, k=2, seed=seed).xs(0, level="repetition")[PAIR]
    table = once.cvci.compare(method="wald")
    assert (LABEL in table["caution"].item()) == labelled
    assert abs(table["difference"] / table["se"]).item() < (4 if labelled else 5)
    assert LABEL not in once.droplevel("fold").cvci.compare()["caution"].item()


def test_cells_are_judged_one_by_one():
    both = xr.concat([as_array(NULL[PAIR]), as_array(REAL[PAIR])], "cell", join="outer")
    for name, options in COMPARISONS.items():
        labels = cvstats.cautions(getattr(both.cvci, name)(**options)).values.reshape(-1)
        assert [LABEL in label for label in labels] == [True, False]
        assert "no losses" not in labels[0] + labels[1]


def test_best_set_labels_the_model_whose_closest_rival_is_as_good():
    both = pd.concat([NULL[PAIR], 5 + REAL[["copy"]]], axis=1)
    labels = both.cvci.best_set(method="wald", rng=0)["caution"]
    assert [LABEL in label for label in labels] == [True, True, False]
    for log in (both, REAL[PAIR]):
        assert not log.cvci.best_set(rng=0)["caution"].str.contains(LABEL).any()
    once = both.xs(0, level="repetition")
    assert LABEL in once[PAIR].cvci.compare()["caution"].item()
    assert [LABEL in label for label in once.cvci.best_set(rng=0)["caution"]] == [True, True, False]


def test_a_log_of_differences_is_judged_as_such():
    for log, labelled in ((NULL, True), (REAL, False)):
        for gap in (
            log[PAIR].cvci.difference(),
            log["zero"].cvci.difference(log["mean"]),
            log[PAIR].cvci.difference(reference="mean"),
            as_array(log[PAIR]).cvci.difference(),
        ):
            found = gap.cvci.wald()
            assert (LABEL in np.ravel(cvstats.cautions(found))[0]) == labelled
            assert CONDITION in found.attrs["guarantee"]
            assert PAPER in found.attrs["reference"]


def test_a_log_of_differences_is_judged_for_each_label_of_a_level():
    other = REAL.rename(lambda point: point + 1000, level="point")
    both = pd.concat({"x": NULL, "y": other}, names=["site"])[PAIR]
    found = both.cvci.difference().cvci.wald(by="site")
    assert [LABEL in label for label in found["caution"]] == [True, False]
    assert CONDITION in found.attrs["guarantee"]
    alone = NULL[PAIR].cvci.difference().cvci.wald()
    assert found["se"].iloc[0] == pytest.approx(alone["se"].item(), rel=1e-12)


def test_two_repetitions_and_one_test_set_show_nothing(monkeypatch):
    monkeypatch.setattr("cvstats.large.moments.LIMIT", 100)
    assert LABEL not in predict_mean(0.0, repetitions=2)[PAIR].cvci.compare()["caution"].item()
    runs = NULL[PAIR].droplevel("fold")
    for log in (runs, pd.concat({0: runs}, names=["fold"])):
        moments = cvstats.Moments.of_log(log, pairs=True)
        tables = log.cvci.compare(), log.cvci.best_set(rng=0), moments.compare(method="wald")
        for table in tables:
            assert not table["caution"].str.contains(LABEL).any()
    for call in (predict_mean(0.0, k=2)[PAIR].cvci.compare, NULL[PAIR].cvci.compare):
        assert LABEL in call(method="wald")["caution"].item()


def replace_points(effect, seed, repetitions=1, n=20):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = effect * x + rng.normal(size=n)
    parts = []
    for fit in cvstats.plans.replace_one(5, repetitions, rng=seed).bind(n):
        line = np.polyfit(x[fit.train], y[fit.train], 1)
        for test in fit.evaluations:
            at = test.points
            losses = {"mean": y[fit.train].mean() - y[at], "line": np.polyval(line, x[at]) - y[at]}
            parts.append(pd.DataFrame({**test.levels, "point": at, **losses}))
    return pd.concat(parts).set_index([*test.levels, "point"]) ** 2


def exchange_ratio_by_hand(d):
    """The formula, one sample and fold after the other."""
    frame = d.rename("d").reset_index()
    half = frame[frame["sample"] == 1]
    changes = []
    for (sample, *_), fold in frame.groupby(["sample", "repetition", "fold"]):
        both = fold.merge(half, on=["repetition", "point"])
        if sample > 1 and len(both) == len(fold) > 1:
            changes.append((both["d_x"] - both["d_y"]).var(ddof=1))
    points = half["point"].nunique()
    return points * np.mean(changes) / half["d"].var(ddof=0)


def test_the_exchange_of_a_training_point_as_in_the_formula():
    losses = replace_points(0.3, 5, 2, n=20)
    wanted = exchange_ratio_by_hand(losses["mean"] - losses["line"])
    shuffled = losses.sample(frac=1, random_state=1)
    for log in (losses, shuffled, losses.to_xarray().to_dataarray("model")):
        ours = read_pairs(log, None, None, "raise")
        assert exchange_ratio(ours) == pytest.approx([wanted], rel=1e-10)
    once = replace_points(0.3, 5).droplevel("repetition")
    assert find_unstable(read_pairs(once, None, None, "raise")) is not None


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(ROOT / "tools"))
    import unstable_differences

    yield unstable_differences
    sys.path.remove(str(ROOT / "tools"))


def test_the_page_shows_the_stored_numbers(study):
    stored = json.loads(study.TARGET.read_text("utf-8"))
    page = (ROOT / "docs" / "theory" / "differences.md").read_text("utf-8")
    assert study.format_table(stored["rows"]) in page
    assert {row["comparison"] for row in stored["rows"]} == {c.name for c in study.COMPARISONS}
    assert stored["how"]["runs"] == study.RUNS == 2_000
    words = " ".join(page.split())

    def limits(name, differ):
        numbers = [r[name] for r in stored["rows"] if r["differ"] is differ and name in r]
        return min(numbers), max(numbers)

    bad, good = (limits("union_width", differ) for differ in (False, True))
    width = (
        "{:.0f} to {:,.0f} times that of `wald` in the upper rows, and {:.0f} to {:.0f} times in "
        "the controls"
    )
    assert width.format(*bad, *good) in words
    claims = {
        "`wald` covers {:.0%} to {:.0%} of the time": "one_partition",
        "The default covers {:.0%} to {:.0%} on one partition": "default",
        "and {:.0%} to {:.0%} on five": "repeated_default",
        "finds {:.0%} to {:.0%} of the bad comparisons": "labelled",
        "without it are covered {:.0%} to {:.0%} of the time": "silent",
    }
    for claim, name in claims.items():
        assert claim.format(*limits(name, False)) in words
    labelled = {(r["n"], r["labelled"]) for r in stored["rows"] if r["differ"] and "labelled" in r}
    assert {share for n, share in labelled if n == 1_000} == {0}
    assert f"up to {max(share for _, share in labelled):.0%} of those with 100" in words


@pytest.mark.slow
def test_stored_numbers_come_out_again(study):
    stored = json.loads(study.TARGET.read_text("utf-8"))["rows"]
    for row in stored:
        if row["n"] == 100:
            (one,) = (c for c in study.COMPARISONS if c.name == row["comparison"])
            again = study.measure_repeated(one, 100, runs=600, seed=3)
            for name in ("one_partition", "default", "repeated", "repeated_default", "labelled",
                         "corrected_t", "union"):  # fmt: skip
                error = np.sqrt(max(row[name] * (1 - row[name]), 0.002) * (1 / 600 + 1 / 2_000))
                assert abs(again[name] - row[name]) < 4 * error, (row["comparison"], name)


@pytest.mark.parametrize("n", [60, 300])
def test_similar_models_with_0_1_losses_have_few_discordant_points_and_a_wider_interval(n):
    rng = np.random.default_rng(0)
    index = multi_index(fold=np.arange(n) % 5, point=np.arange(n))
    a = pd.Series(rng.random(n) < 0.4, index, dtype=float)
    log = pd.DataFrame({"a": a, "b": a.where(np.arange(n) > 3, 1 - a)})
    d, means = log["a"] - log["b"], log.groupby("fold").mean().diff(axis=1)["b"]
    ratio = stats.t.isf(0.025, 4) / stats.norm.isf(0.025)
    se = max(np.sqrt(2 * d.var(ddof=0) / n), ratio * np.sqrt((1 / 5 + 1 / 4) * means.var()))
    for container in (log, as_array(log), as_array(log).chunk(point=20)):
        table = container.cvci.compare()
        label = table["caution"] if container is log else cvstats.cautions(table)
        assert label.to_numpy().item() == "unstable difference, few discordant points"
        assert np.ravel(table["se"])[0] == pytest.approx(se)
        assert np.ravel(table["upper"])[0] == pytest.approx(d.mean() + 1.95996398 * se)
        power = container.cvci.power(effect=0.1)
        assert np.ravel(power["se"])[0] == pytest.approx(se)
        assert np.ravel(container.cvci.compare(method="wald")["se"])[0] < se
