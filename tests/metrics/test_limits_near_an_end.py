"""Limits of metrics between two ends: for a plain proportion those of Clopper and Pearson."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats.intervals._limits import clopper_pearson, korn_graubard

TABLE = {(1, 1): 12, (1, 0): 3, (0, 1): 18, (0, 0): 67}
"""Truth and predicted label."""


def make_labels():
    rows = [pair for pair, times in TABLE.items() for _ in range(times)]
    truth, label = np.array(rows).T
    return pd.DataFrame({"point": np.arange(100), "y_true": truth, "m": label})


@pytest.mark.parametrize("loss", ["auc", "recall"])
def test_one_point_of_a_class_has_no_limits_and_two_have(loss):
    scores = np.arange(40) / 40
    column = scores if loss == "auc" else (scores > 0.5) * 1
    for positive in (1, 2):
        table = pd.DataFrame({"y": 0, "p": column}).rename_axis("point")
        table.loc[[35, 15][:positive], "y"] = 1
        found = cvstats.losses(table, "y", "p", loss).cvci.interval()
        assert found[["lower", "upper"]].notna().all(axis=None) == (positive == 2)
        assert "few of a class" in found["caution"].item()


@pytest.mark.parametrize(
    ("loss", "lower", "upper"),
    [
        ("recall", 0.519108866193, 0.956687994894),
        ("f1", 0.345402670063, 0.714585894395),
        ("balanced_accuracy", 0.649479030905, 0.898895972116),
        ("matthews", 0.230805154148, 0.649024061845),
        ("kappa", 0.191591151875, 0.609650880863),
    ],
)
def test_vectors_of_label_metrics(loss, lower, upper):
    log = cvstats.losses(make_labels(), prediction="m", loss=loss)
    table = cvstats.interval(log)
    assert table.attrs["interval"] == "korn-graubard"
    score = (lambda x: -x) if loss in ("matthews", "kappa") else (lambda x: 1 - x)
    found = [score(table["upper"].item()), score(table["lower"].item())]
    np.testing.assert_allclose(found, [lower, upper], rtol=0, atol=1e-11)
    streamed = cvstats.Moments.of_log(log).interval()
    pd.testing.assert_frame_equal(streamed[["lower", "upper"]], table[["lower", "upper"]])


def test_the_vector_of_an_auc():
    limits = korn_graubard(
        np.array([0.9066666666666666]), np.array([0.0010693908936123466]), np.array([1 / 30]), 0.05
    )
    expected = [0.796179757595, 0.968778843579]
    np.testing.assert_allclose(np.ravel(limits), expected, rtol=0, atol=1e-11)


def test_a_plain_proportion_has_its_exact_limits():
    for n in (1, 7, 50):
        ones = np.arange(n + 1)
        share = ones / n
        found = korn_graubard(share, share * (1 - share) / n, np.full(n + 1, 1 / n), 0.05)
        np.testing.assert_allclose(found, clopper_pearson(share, n, 0.05), atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "effective"), [("auc", 2 * 40**2 / 100), ("zero_one", 220**2 / 280)]
)
def test_weights_count_by_their_squares(loss, effective):
    truth = (np.arange(200) < 20).astype(int)
    weight = np.where(np.arange(200) < 10, 3.0, 1.0)
    frame = pd.DataFrame({"point": np.arange(200), "y_true": truth, "m": truth, "w": weight})
    asked = {"truth": "y_true", "prediction": ["m"], "loss": loss, "weight": "w"}
    row = cvstats.interval(cvstats.losses(frame, **asked)).iloc[0]
    assert row["upper"] == pytest.approx(1 - (0.05 / 2) ** (1 / effective))
    array = cvstats.losses(frame.set_index("point").to_xarray(), **asked).cvci.interval()
    assert array["upper"].item() == row["upper"]


def test_equal_weights_give_the_limits_of_an_error_rate():
    frame = pd.DataFrame({"point": range(60), "y": 0, "m": (np.arange(60) < 3) * 1, "w": 2.0})
    plain, weighted = (
        cvstats.losses(frame, "y", "m", "zero_one", **w).cvci.interval()
        for w in ({}, {"weight": "w"})
    )
    ends = ["lower", "upper"]
    np.testing.assert_allclose(weighted[ends], plain[ends], rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "change"), [("auc", 1 / 40), ("recall", 1 / 20), ("zero_one", 1 / 80)]
)
@pytest.mark.parametrize("strata", ["y", "half"])
def test_strata_have_limits_of_their_own_variance(loss, change, strata):
    """They had normal limits, and none if every prediction is right."""
    n = np.arange(80)
    frame = pd.DataFrame({"point": n, "y": (n < 20) * 1, "half": n % 2, "m": (n < 20) * 1.0})
    asked = {"truth": "y", "prediction": "m", "loss": loss, "threshold": 0.5}
    if loss == "auc":
        del asked["threshold"]
    plain = cvstats.losses(frame, **asked).cvci.interval()
    for shares in (None, {0: 0.75, 1: 0.25} if strata == "y" else {0: 0.5, 1: 0.5}):
        log = cvstats.losses(frame, strata=strata, shares=shares, **asked)
        same = ["estimate", "lower", "upper", "caution"]
        pd.testing.assert_frame_equal(log.cvci.interval()[same], plain[same])
    frame["m"] = frame["m"].where(n % 19 > 0, 0.4 * (frame["m"] < 0.5) + 0.3)
    found = cvstats.losses(frame, strata=strata, **asked).cvci.interval()
    estimate, variance = found["estimate"].to_numpy(), found["se"].to_numpy() ** 2 * 79 / 80
    limits = korn_graubard(estimate, variance, np.array([change]), 0.05)
    np.testing.assert_allclose(np.ravel(limits), found[["lower", "upper"]].iloc[0], rtol=1e-9)


def test_the_share_of_points_within_limits_is_a_proportion_with_weights_too():
    n = np.arange(60)
    frame = pd.DataFrame({"point": n, "y": (n < 57) * 1.0, "low": 0.5, "high": 2, "w": 3})
    asked = {"truth": "y", "prediction": {"m": ["low", "high"]}, "loss": "coverage", "level": 0.9}
    exact = cvstats.losses(frame, **asked).cvci.holdout(interval="clopper-pearson")
    weighted = cvstats.losses(frame, weight="w", **asked).cvci.interval()
    ends = ["lower", "upper"]
    np.testing.assert_allclose(weighted[ends], exact[ends], rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "rmse", "auc"])
@pytest.mark.parametrize("by", [None, "site"])
def test_weights_worth_few_points_are_few_points(loss, by):
    n = np.arange(240)
    frame = pd.DataFrame({"point": n, "fold": n % 3, "site": n // 120, "y": n % 2, "m": n % 7.0})
    found = []
    for heavy in (1.0, 100.0):  # 16 points have most of the weight: worth 21 points
        frame["w"] = np.where(n % 15 == 0, heavy, 1.0)
        log = cvstats.losses(frame, "y", "m", loss, weight="w", by=by)
        found.append(log.cvci.wald(by=by)["caution"].str.contains("few points").tolist())
    few = loss != "auc"  # whose limits include the weights
    assert found == [[False] * len(found[0]), [few] * len(found[0])]
    if few:
        frame["heavy"] = n % 15 == 0
        asked = {"strata": "heavy", "shares": {True: 0.9, False: 0.1}}  # nearly the same weights
        log = cvstats.losses(frame, "y", "m", loss, by=by, **asked)
        assert log.cvci.wald(by=by)["caution"].str.contains("few points").all()


def test_two_cells_have_limits_of_their_own():
    rng, n = np.random.default_rng(0), 80
    y = (rng.random((n, 2)) < 0.5).astype(int)
    score = (1.5 * y + rng.normal(size=(n, 2))) * [1, 0.1]
    table = xr.Dataset(
        {"y": (("point", "cell"), y), "p": (("point", "cell"), score)},
        {"point": range(n), "source": ("point", np.arange(n) % 20)},
    )
    asked = {"truth": "y", "prediction": ["p"], "loss": "auc", "folds": "pool"}
    whole = cvstats.losses(table, **asked).cvci.interval()
    for cell in range(2):
        alone = cvstats.losses(table.isel(cell=[cell]), **asked).cvci.interval()
        for side in ("lower", "upper"):
            assert whole[side].values.ravel()[cell] == pytest.approx(alone[side].item())


@pytest.mark.parametrize(
    ("how", "average", "change"),  # by a point of the smallest of 10, 20 and 30 points
    [
        ("ovr", "macro", (1 / 10 + 1 / 40 + 1 / 30) / 3),
        ("ovr", "weighted", (10 / 10 + 20 / 40 + 30 / 30) / 60),
        ("ovo", "macro", 2 / 3 / 10),
        ("ovo", "weighted", (30 + 40) / 120 / 10),
    ],
)
def test_an_auc_of_classes_counts_a_point_in_every_class(how, average, change):
    """An unrecognizable point is a positive of its class and a negative of the others."""

    def find_upper_limit(sizes):
        classes = list(range(len(sizes)))
        truth = np.repeat(classes, sizes)
        frame = pd.DataFrame(np.eye(len(sizes))[truth]).rename_axis("point").assign(y=truth)
        log = cvstats.losses(
            frame, "y", {"m": classes}, "auc", classes=classes, multi_class=how, average=average
        )
        return cvstats.interval(log)["upper"].item()

    two = pd.DataFrame({"y": [0] * 12 + [1] * 20}).assign(m=lambda table: table["y"] * 1.0)
    log = cvstats.losses(two.rename_axis("point"), "y", "m", "auc")
    assert find_upper_limit([12, 20]) == pytest.approx(cvstats.interval(log)["upper"].item())
    assert find_upper_limit([10, 20, 30]) == pytest.approx(1 - 0.025 ** (change / 2))


@pytest.mark.parametrize(
    ("loss", "points"),
    [("concordance", 4 / 3), ("somers_d", 4 / 3), ("kendall", 4 / 3), ("kendall_a", 4 / 3),
     ("spearman", 8 / 7)],
)  # fmt: skip
def test_limits_of_points_in_perfect_order(loss, points):
    frame = pd.DataFrame({"y": np.arange(30), "m": np.arange(30) ** 2}).rename_axis("point")
    found = cvstats.as_scores(cvstats.losses(frame, "y", "m", loss).cvci.interval())
    lowest = 0.025 ** (1 / (points * 30))
    lowest = lowest if loss == "concordance" else 2 * lowest - 1
    assert found["upper"].item() == 1
    assert found["lower"].item() == pytest.approx(lowest)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_a_random_positive_is_mostly_beyond_the_rate_of_a_partial_auc(rate):
    """With few positives, 1 - rate / 2 of the part of one is lost; with few negatives, half."""
    for negatives, change in ((2000, (1 - rate / 2) / 20), (30, 1 / 2 / (30 * rate))):
        truth = np.repeat([1, 0], [20, negatives])
        frame = pd.DataFrame({"y": truth, "m": truth * 1.0}).rename_axis("point")
        log = cvstats.losses(frame, "y", "m", "partial_auc", max_fpr=rate)
        found = cvstats.as_scores(cvstats.interval(log))
        change = max(change, (1 - rate / 2) / 20)
        assert found["lower"].item() == pytest.approx(rate * 0.025**change)
