"""Differences as a percentage of the other model's loss: Fieller's limits over any method."""

import re

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from frontier import CASES
from paired_logs import models
from rows import multi_index, product_index
from scipy import stats
from strategies import by_row

import cvstats

PAIRED = pd.DataFrame(CASES["paired_data"]["inputs"]).rename_axis("point")
LOG = PAIRED[["a", "b"]]
SETS = PAIRED.rename(columns={"data_set": "source"}).assign(fold=0)
SETS = SETS.set_index(["fold", "source"], append=True)
FOLDED = models().abs()


def test_limits_are_those_of_fieller():
    expected = CASES["ratio_fieller"]["outputs"]
    found = LOG.cvci.compare(
        reference="b", relative=True, method="holdout", options={"interval": "t"}
    ).iloc[0]
    assert 1 + found["difference"] / 100 == pytest.approx(expected["ratio"], rel=1e-9)
    assert 1 + found["lower"] / 100 == pytest.approx(expected["lower"], rel=1e-9)
    assert 1 + found["upper"] / 100 == pytest.approx(expected["upper"], rel=1e-9)
    assert (found["se"] / 100) ** 2 * 39 / 40 == pytest.approx(expected["var"], rel=1e-9)
    plain = LOG.cvci.compare(reference="b", method="holdout", options={"interval": "t"}).iloc[0]
    assert found["p_value"] == plain["p_value"]


@pytest.mark.parametrize("unit", [2.0**-330, 2.0**490])
def test_limits_of_a_ratio_have_no_unit(unit):
    expected = LOG.cvci.compare(reference="b", relative=True)
    found = (LOG * unit).cvci.compare(reference="b", relative=True)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)


def test_geometric_mean_over_data_sets_is_a_t_interval_of_logs():
    expected = CASES["geometric_mean"]["outputs"]
    found = SETS.cvci.compare(reference="b", relative=True, over="source").iloc[0]
    assert 1 + found["difference"] / 100 == pytest.approx(expected["ratio"], rel=1e-9)
    assert 1 + found["lower"] / 100 == pytest.approx(expected["lower"], rel=1e-9)
    assert 1 + found["upper"] / 100 == pytest.approx(expected["upper"], rel=1e-9)
    assert found["p_value"] == pytest.approx(expected["p"], rel=1e-9)
    logs = SETS.groupby(level="source").mean().pipe(lambda mean: np.log(mean["a"] / mean["b"]))
    assert found["se"] == pytest.approx(100 * expected["ratio"] * logs.sem(), rel=1e-9)
    for alternative in ("less", "greater"):
        one = SETS.cvci.compare(
            reference="b", relative=True, over="source", alternative=alternative
        ).iloc[0]
        test = stats.ttest_1samp(logs, 0, alternative=alternative)
        assert one["p_value"] == pytest.approx(test.pvalue, rel=1e-9)


def test_the_same_ratio_in_every_data_set():
    means = SETS["b"] * 0 + 2.0 ** SETS.index.codes[SETS.index.names.index("source")]
    log = pd.DataFrame({"double": 2 * means, "same": means, "one": means})
    table = log.cvci.compare(reference="one", relative=True, over="source")
    assert table["difference"].tolist() == [100, 0]
    assert table["p_value"].tolist() == [0, 1]
    assert table["caution"].tolist() == ["zero variance"] * 2
    one = {"reference": "one", "relative": True, "over": "source", "alternative": "less"}
    assert log[["same", "one"]].cvci.compare(**one)["p_value"].item() == 1


METHODS = [("wald", {}), ("corrected_t", {}), ("cv_t", {}), ("wald", {"variance": "within-fold"})]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_limits_are_where_the_interval_of_the_method_ends_at_0(method, options):
    table = FOLDED.cvci.compare(reference="ridge", relative=True, method=method, options=options)
    for (model, other), found in table.iterrows():
        for side, opposite in (("lower", "lower"), ("upper", "upper")):
            ratio = 1 + found[side] / 100
            gap = (FOLDED[model] - ratio * FOLDED[other]).rename("gap")
            limits = getattr(gap.cvci, method)(**options).iloc[0]
            assert limits[opposite] == pytest.approx(0, abs=1e-9 * limits["se"])


def test_a_method_that_clamps_its_variance_is_solved_exactly():
    index = pd.MultiIndex.from_product([["j1", "j2", "j3", "j4"], range(30)])
    random = np.random.default_rng(1)
    crossed = pd.DataFrame(
        random.gamma(2, 1, (120, 2)) + np.tile(random.gamma(1, 1, 30), 4)[:, None],
        index.set_names(["source", "point"]), columns=["a", "b"],
    ).assign(fold=0).set_index("fold", append=True)  # fmt: skip
    found = crossed.cvci.compare(reference="b", relative=True).iloc[0]
    for side in ("lower", "upper"):
        gap = (crossed["a"] - (1 + found[side] / 100) * crossed["b"]).rename("gap")
        limits = gap.cvci.interval().iloc[0]
        assert limits[side] == pytest.approx(0, abs=1e-7 * limits["se"])


def test_refitted_models_and_two_logs():
    log = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    table = losses.cvci.compare(reference="ridge", relative=True)
    assert table.attrs["interval_method"] == "refit_corrected"
    found = table.iloc[0]
    for side in ("lower", "upper"):
        gap = losses["random_forest"] - (1 + found[side] / 100) * losses["ridge"]
        gap.attrs = {"kind": "differences"}
        limits = gap.rename("gap").cvci.refit_corrected().iloc[0]
        assert limits[side] == pytest.approx(0, abs=1e-9 * limits["se"])
    again = losses["random_forest"].cvci.compare(losses["ridge"], relative=True)
    np.testing.assert_allclose(again["lower"], table["lower"], rtol=1e-9)


def test_the_command_prints_per_cent_over_data_sets(tmp_path, capsys):
    from cvstats.cli import main

    cvstats.save_log(SETS[["a", "b"]], tmp_path / "log.csv")
    asked = ["compare", str(tmp_path / "log.csv"), "--relative", "--over", "source"]
    assert main(asked) == 0
    assert "-15.2" in capsys.readouterr().out.replace("−", "-")


@pytest.mark.parametrize(
    ("repetitions", "folds", "method"),
    [(3, 5, None), (3, 5, "corrected_t"), (1, 5, "wald"), (1, 60, None)],
)
def test_a_lazy_array_gives_the_limits_of_the_frame(repetitions, folds, method):
    """With repetitions, or a fold for each point, the error was that all losses are 0."""
    rng, point = np.random.default_rng(0), np.tile(np.arange(60), repetitions)
    fold = np.concatenate([rng.permutation(60) % folds for _ in range(repetitions)])
    index = multi_index(repetition=np.repeat(range(repetitions), 60), fold=fold, point=point)
    log = pd.DataFrame(rng.random((len(index), 2)) + [0, 1], index, ["a", "b"])
    asked = {"reference": "b", "relative": True, "method": method}
    found = cvstats.compare(by_row(log).chunk(row=37), **asked).compute()
    row = cvstats.compare(log, **asked).iloc[0]
    for name in ("difference", "lower", "upper", "se", "p_value"):
        assert found[name].item() == pytest.approx(row[name], rel=1e-10)


def test_labels_max_t_and_one_side():
    half = pd.Index(np.where(FOLDED.index.to_frame()["point"] % 2, "odd", "even"), name="half")
    parts = FOLDED.set_index(half, append=True)
    table = parts.cvci.compare(reference="ridge", relative=True, by="half", method="wald")
    alone = parts.xs("odd", level="half").cvci.compare(
        reference="ridge", relative=True, method="wald"
    )
    np.testing.assert_allclose(table.xs("odd")["lower"], alone["lower"], rtol=1e-12)
    plain = FOLDED.cvci.compare(reference="ridge", relative=True)
    wide = FOLDED.cvci.compare(reference="ridge", relative=True, adjust="max-t", rng=0)
    assert (wide["upper"] > plain["upper"]).all()
    assert (wide["lower"] < plain["lower"]).all()
    less = FOLDED.cvci.compare(reference="ridge", relative=True, alternative="less")
    assert np.isneginf(less["lower"]).all()
    assert (less["upper"] < plain["upper"]).all()


F_TEST = {"method": "five_by_two", "options": {"test": "f"}}


def five_by_two() -> pd.DataFrame:
    """Five repetitions of two folds."""
    random = np.random.default_rng(0)
    index = product_index(repetition=range(5), point=range(20))
    values = pd.DataFrame(random.gamma(2, 1, (100, 2)), index, columns=["a", "b"])
    return values.set_index(pd.Index(np.arange(100) % 2, name="fold"), append=True)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: LOG - 10, {}, "Expected nonnegative losses"),
        (lambda: LOG.assign(b=0.0), {}, "all losses of 'b' are 0"),
        (lambda: LOG, {"method": "union"}, "standard errors, but method='union' has none"),
        (lambda: LOG, {"anytime": True}, "standard errors, but anytime=True has none"),
        (lambda: five_by_two(), F_TEST, "relative=True needs standard errors"),
        (lambda: LOG, {"over": "source", "relative": False}, "requires relative=True"),
        (
            lambda: SETS[["a", "b"]],
            {"over": "source", "method": "wald"},
            "does not support method=",
        ),
        (lambda: SETS[["a", "b"]].query("source < 4"), {"over": "source"}, "Expected at least 5"),
        (lambda: LOG, {"over": "source"}, "no level 'source'"),
        (
            lambda: (SETS[["a", "b"]] * 1.0).assign(b=0.0),
            {"over": "source"},
            f"needs mean losses above 0, but that of source {SETS.index[0][0]!r} is not",
        ),
    ],
)
def test_refusals(make, options, words):
    refuses(re.escape(words), make().cvci.compare, reference="b", **{"relative": True, **options})


def test_negative_losses_of_moments():
    """Their means may be positive; moments keep the losses of a short log."""
    log = LOG - LOG.to_numpy().mean() / 2
    assert (log.mean() > 0).all()
    with pytest.raises(cvstats.LogError, match="Expected nonnegative losses"):
        cvstats.Moments.of_log(log, pairs=True).compare(relative=True, reference="b")


def test_scores_are_refused():
    frame = cvstats.datasets.load("flights")
    for loss, words in (("auc", "this log has 1 - auc"), ("accuracy", "loss='zero_one'")):
        log = cvstats.losses(
            frame, prediction=["naive_bayes", "gradient_boosting"], loss=loss,
            **({"threshold": 0.5} if loss == "accuracy" else {"folds": "pool"}),
        )  # fmt: skip
        refuses(words, log.cvci.compare, relative=True)
    gaps = LOG.cvci.difference(reference="b")
    refuses("has differences", gaps["a"].cvci.compare, 0, relative=True)


def test_rmse_is_the_root_of_the_ratio_of_squares():
    log = cvstats.datasets.load("diabetes").query("repetition == 0")
    models_ = ["ridge", "random_forest"]
    root = cvstats.losses(log, prediction=models_, loss="rmse")
    found = root.cvci.compare(reference="ridge", relative=True, method="wald").iloc[0]
    square = cvstats.losses(log, prediction=models_)
    expected = square.cvci.compare(reference="ridge", relative=True, method="wald").iloc[0]
    for side in ("difference", "lower", "upper"):
        assert 1 + found[side] / 100 == pytest.approx(np.sqrt(1 + expected[side] / 100), rel=1e-6)
    slope = 1 / (2 * (1 + found["difference"] / 100))
    assert found["se"] == pytest.approx(slope * expected["se"], rel=1e-6)


@pytest.mark.parametrize(
    ("only_a", "only_b", "folds"), [(7, 1, 1), (8, 1, 5), (0, 0, 1), (0, 6, 5), (6, 0, 1)]
)
def test_limits_of_few_discordant_points_agree_with_the_exact_test(only_a, only_b, folds):
    n = 100
    both = np.arange(n) >= 92
    a, b = both.astype(float), both.astype(float)
    a[:only_a], b[20 : 20 + only_b] = 1, 1
    log = pd.DataFrame({"a": a, "b": b}, multi_index(fold=np.arange(n) % folds, point=np.arange(n)))
    plain, per_cent = log.cvci.compare().iloc[0], log.cvci.compare(relative=True).iloc[0]
    assert per_cent["p_value"] == plain["p_value"]
    assert (per_cent["lower"] <= 0 <= per_cent["upper"]) == (plain["p_value"] >= 0.05)
    assert per_cent["lower"] <= max(100 * plain["lower"] / b.mean(), -100) + 1e-9
    assert per_cent["upper"] >= 100 * plain["upper"] / b.mean() - 1e-9
    assert per_cent["upper"] > per_cent["lower"] >= -100


@pytest.mark.parametrize(("alternative", "method"), [("less", "wald"), ("greater", "quadratic")])
def test_one_sided_simultaneous_limits(alternative, method):
    ask = {"method": method, "alternative": alternative, "alpha": 0.2}
    wide = FOLDED.cvci.compare(relative=True, adjust="max-t", rng=0, **ask)
    plain = FOLDED.cvci.compare(adjust="max-t", rng=0, **ask)
    alone = FOLDED.cvci.compare(relative=True, adjust=None, **ask)
    side, way = ("upper", 1) if alternative == "less" else ("lower", -1)
    other = "lower" if alternative == "less" else "upper"
    assert (wide[other] == -way * np.inf).all()
    assert (way * wide[side] > way * alone[side]).all()
    assert ((way * wide[side] > 0) == (way * plain[side] > 0)).all()
    left, right = (FOLDED[wide.index.get_level_values(i)[0]] for i in range(2))
    reach = abs(plain[side].iloc[0] - plain["difference"].iloc[0]) / plain["se"].iloc[0]
    scaled = (left - (1 + wide[side].iloc[0] / 100) * right).rename("scaled")
    found = getattr(cvstats, method)(scaled).iloc[0]
    assert found["estimate"] + way * reach * found["se"] == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(("seed", "alpha"), [(33, 0.2), (38, 0.05), (56, 0.05), (90, 0.2)])
def test_limits_enclose_the_estimate_if_the_variance_jumps(seed, alpha):
    index = multi_index(fold=np.arange(24) % 3, point=np.arange(24))
    drawn = np.random.default_rng(seed).random((24, 2)) < 0.4
    log = pd.DataFrame(drawn.astype(float), index, columns=["a", "b"])
    found = log.cvci.compare(relative=True, method="quadratic", alpha=alpha).iloc[0]
    assert "variance clamped" in found["caution"]
    assert -100 < found["lower"] < found["difference"] < found["upper"] < 300
