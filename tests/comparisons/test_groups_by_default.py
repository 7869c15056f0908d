"""One rule decides whether points or sources are what counts, in every function alike."""

import numpy as np
import pandas as pd
import pytest
import scipy
from packaging.version import Version
from rows import multi_index, only_row
from scipy import stats

from cvstats.errors import LogError

SOURCES, SIZE = 12, 10
SIZES = (4, 9, 9, 12, 20, 3, 7, 16)


def frame(sizes=(SIZE,) * SOURCES, seed=0, names="abc"):
    """Losses of models that sources move in different ways; no levels yet."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(len(sizes)), sizes)
    own = rng.normal(size=(len(sizes), len(names)))[source]
    losses = rng.gamma(2.0, size=(len(source), 1)) + 0.5 * own
    losses = losses + 0.3 * rng.normal(size=losses.shape) + 0.1 * np.arange(len(names))
    return source, pd.DataFrame(losses, columns=list(names))


def log_of(design, sizes=(SIZE,) * SOURCES, seed=0, names="abc"):
    source, losses = frame(sizes, seed, names)
    point = np.arange(len(source))
    fold = {
        "one test set": 0 * source, "grouped folds": source % 4, "left out, with folds": source,
        "divided": point % 5,
    }  # fmt: skip
    levels = {"fold": fold[design]} if design in fold else {}
    return losses.set_index(
        pd.MultiIndex.from_arrays(
            [*levels.values(), source, point], names=[*levels, "source", "point"]
        )
    )


def repeated(log, times=3):
    rng = np.random.default_rng(9)
    parts = {r: log + 0.2 * rng.normal(size=log.shape) for r in range(times)}
    return pd.concat(parts, names=["repetition"])


RULE = {
    "one test set": "clustered",
    "grouped folds": "clustered",
    "left out": "out_of_source",
    "left out, with folds": "out_of_source",
    "divided": "wald",
}
LOGS = {name: (log_of(name), method) for name, method in RULE.items()}
LOGS |= {f"{name}, repeated": (repeated(log), method) for name, (log, method) in LOGS.items()}
CALLS = {
    "compare": lambda log, **more: log.cvci.compare(**more),
    "equivalence": lambda log, **more: log.cvci.equivalence(margin=0.1, **more),
    "power": lambda log, **more: log.cvci.power(effect=0.1, **more),
    "best_set": lambda log, **more: log.cvci.best_set(rng=0, n_draws=500, **more),
}


@pytest.mark.parametrize(("log", "method"), LOGS.values(), ids=list(LOGS))
def test_one_rule_for_all_functions(log, method):
    assert log.cvci.interval().attrs["method"] == method
    for name, call in CALLS.items():
        table = call(log)
        assert table.attrs["interval_method"] == method, name
        ignored = table["caution"].str.contains("sources ignored")
        assert (ignored == (method == "wald")).all(), name
    assert log.cvci.interval()["caution"].str.contains("sources ignored").all() == (
        method == "wald"
    )


def test_few_errors_are_no_fault_of_a_set_of_models():
    log = log_of("one test set")
    log = (log > log.quantile(0.95)) * 1.0
    assert "few errors" in labels(log.cvci.clustered())
    assert "few errors" not in labels(log.cvci.best_set(rng=0, n_draws=500))


def labels(table):
    return set(", ".join(table["caution"]).split(", ")) - {""}


def test_means_of_whole_sources_do_not_ignore_them():
    for design, told in {"grouped folds": False, "divided": True}.items():
        log = log_of(design)
        for result in (log.cvci.corrected_t(), log.cvci.cv_t(), log.cvci.rope(margin=0.1)):
            assert ("sources ignored" in labels(result)) == told


def random_splits(whole):
    """Splits that each test a third of the sources, or a third of each source."""
    log, parts = log_of("one test set").droplevel("fold"), {}
    for r in range(4):
        code = np.asarray(log.index.get_level_values("source" if whole else "point"))
        parts[r] = log[(code + r) % 3 == 0]
    return pd.concat(parts, names=["repetition"])


def test_random_splits_of_whole_sources():
    assert "sources ignored" not in labels(random_splits(True).cvci.corrected_t(train_size=80))
    assert "sources ignored" in labels(random_splits(False).cvci.corrected_t(train_size=80))
    some = random_splits(True)
    fewer = some[np.arange(len(some)) % 7 > 0]  # not all points of a source each time
    assert "sources ignored" in labels(fewer.cvci.corrected_t(train_size=80))


def test_parts_of_a_log_with_sources_inside():
    source, losses = frame()
    index = multi_index(
        fold=source % 4, site=source // 4, source=source, point=np.arange(len(source))
    )
    log = losses[["a"]].set_index(index)
    assert log.cvci.wald(by="site")["caution"].str.contains("sources ignored").all()
    assert "sources ignored" not in labels(log.cvci.wald(by="source"))
    one = log[log.index.get_level_values("source") < 5]
    table = one.cvci.wald(by="site")["caution"]
    assert "sources ignored" in table.iloc[0]
    assert "sources ignored" not in table.iloc[1]  # the one source of its site


@pytest.mark.parametrize("design", ["one test set", "left out", "left out, with folds"])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_two_models_are_the_one_sided_t_test_over_sources(design, repetitions):
    log = log_of(design, SIZES, names="ab")
    log = repeated(log) if repetitions > 1 else log
    draws = 100_000
    table = log.cvci.best_set(rng=1, n_draws=draws)
    test = only_row(log.cvci.compare(alternative="greater"))
    for name, wanted in (("a", test["p_value"]), ("b", 1 - test["p_value"])):
        noise = 5 * np.sqrt(wanted * (1 - wanted) / draws) + 1 / draws
        assert table.loc[name, "p_value"] == pytest.approx(wanted, abs=noise)
    assert table.attrs["df"] == test["df"]
    t = test["statistic"]
    assert table["statistic"].to_numpy() == pytest.approx([t, -t], rel=1e-9)
    np.testing.assert_array_equal(table["estimate"], log.cvci.interval()["estimate"])
    assert table.attrs["target"].startswith("the models with the smallest")
    assert "sources grow" in table.attrs["guarantee"]


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("design", ["one test set", "left out"])
def test_power_of_a_t_test_over_sources(design, alternative):
    log = log_of(design, SIZES, names="ab")
    sign = -1 if alternative == "less" else 1
    row = only_row(log.cvci.power(effect=sign * 0.4, alternative=alternative))
    tail = 0.025 if alternative == "two-sided" else 0.05
    t, away = stats.t.isf(tail, row["df"]), 0.4 / row["se"]
    wanted = stats.nct.sf(t, row["df"], away)
    wanted += stats.nct.cdf(-t, row["df"], away) if alternative == "two-sided" else 0
    digits = 1e-9 if Version(scipy.__version__) >= Version("1.14") else 1e-7  # of its noncentral t
    assert row["power"] == pytest.approx(wanted, rel=digits)
    there = log.cvci.power(effect=row["smallest_effect"], alternative=alternative)
    assert there["power"].item() == pytest.approx(0.8, rel=1e-9)
    assert np.sign(row["smallest_effect"]) == sign


@pytest.mark.parametrize("design", ["one test set", "left out"])
def test_points_needed_come_in_groups_of_this_size(design):
    log = log_of(design, SIZES, names="ab")
    table = log.cvci.power(effect=0.4)
    row, g = only_row(table), len(SIZES)
    assert table.attrs["group_size"] == sum(SIZES) / g
    assert row["points_needed"] == np.ceil(row["groups_needed"] * sum(SIZES) / g)
    powers = []
    for groups in (row["groups_needed"], row["groups_needed"] - 1):
        df = (row["df"] + 1) * groups / g - 1
        away, t = 0.4 / row["se"] * np.sqrt(groups / g), stats.t.isf(0.025, df)
        powers.append(stats.nct.sf(t, df, away) + stats.nct.cdf(-t, df, away))
    assert powers[0] >= 0.8 > powers[1]
    # As many groups as are needed, like these, would have that power.
    many = pd.concat({i: log for i in range(int(row["groups_needed"]) // g + 1)}, names=["copy"])
    many = many.reset_index()
    many["source"] = many["copy"] * 100 + many["source"]
    many["point"] = np.arange(len(many))
    levels = [name for name in log.index.names]
    assert only_row(many.set_index(levels)[["a", "b"]].cvci.power(effect=0.4))["power"] > 0.78


@pytest.mark.parametrize(
    ("design", "method", "options"),
    [
        ("one test set", "clustered", None),
        ("grouped folds", "clustered", {"correction": "CR3"}),
        ("left out", "out_of_source", None),
    ],
)
def test_repetitions_split_the_variance_of_the_interval(design, method, options):
    log = repeated(log_of(design, SIZES, names="ab"), times=4)
    row = only_row(log.cvci.power(effect=0.4, method=method, options=options))
    ask = {"method": method, "options": options, "adjust": None}
    each = [only_row(log.xs(r, level="repetition").cvci.compare(**ask))["se"] for r in range(4)]
    n, once = sum(SIZES), np.mean(np.square(each))
    assert row["point_variance"] + row["repetition_variance"] == pytest.approx(n * once, rel=1e-9)
    se = np.sqrt((row["point_variance"] + row["repetition_variance"] / 4) / n)
    assert row["se"] == pytest.approx(se, rel=1e-9)
    assert row["points_needed_limit"] <= row["points_needed"]
    assert row["points_needed_limit"] % (n / len(SIZES)) == pytest.approx(0, abs=1)


def test_the_advice_of_holdout_can_be_followed():
    """Of several repetitions of a test set with sources, too."""
    log = repeated(log_of("left out", names="ab"))
    with pytest.raises(LogError, match=r"pandas.concat\(\{0: log\}, names=\['fold'\]\)"):
        log.cvci.compare(method="holdout")
    one = pd.concat({0: log}, names=["fold"])
    for name, call in CALLS.items():
        assert call(one, method="holdout").attrs["interval_method"] == "holdout", name
        assert call(one).attrs["interval_method"] == "clustered", name
    wanted = log.groupby(level=["source", "point"]).mean().droplevel("source")
    ours = only_row(one.cvci.compare(method="holdout"))
    assert ours["se"] == pytest.approx(only_row(wanted.cvci.compare())["se"], rel=1e-12)
