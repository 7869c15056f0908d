"""Logs of metrics: cell means against scikit-learn, intervals against stored answers."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from metric_peers import CLASSES, PEERS, UNWEIGHTED
from sklearn import metrics as sk
from together import together

import cvstats
from cvstats.metrics.metric import center_strata

STORED = Path(__file__).parents[1] / "reference" / "metrics.json"
CASES = {case["id"]: case for case in json.loads(STORED.read_text(encoding="utf-8"))}
DATA = pd.DataFrame(
    {k: v for k, v in CASES["metrics_data"]["inputs"].items() if k != "probability_class"}
).rename_axis("point")
DATA[["p0", "p1", "p2"]] = CASES["metrics_data"]["inputs"]["probability_class"]


@cache
def predictions(seed: int, ties: bool) -> pd.DataFrame:
    """Two repetitions of four unequal folds, in a random order of rows."""
    rng = np.random.default_rng(seed)
    n = 160
    parts = []
    truth, times = rng.integers(0, 2, n), rng.gamma(2.0, 3.0, n)
    classes = rng.integers(0, 3, n)
    for repetition in range(2):
        fold = np.minimum(rng.permutation(n) // 35, 3)
        score = truth + rng.normal(size=n)
        number = times + rng.normal(size=n)
        p = rng.gamma(1.0, size=(n, 3)) + 2 * np.eye(3)[classes]
        if ties:
            score, number, p = score.round(), number.round(), np.ceil(p)
        p /= p.sum(axis=1, keepdims=True)
        parts.append(
            pd.DataFrame(
                {
                    "repetition": repetition, "fold": fold, "point": np.arange(n), "y": truth,
                    "score": score, "label": (score > 0.5).astype(int), "t": times.round(1),
                    "number": number, "c": classes, "p0": p[:, 0], "p1": p[:, 1], "p2": p[:, 2],
                    "chance": 1 / (1 + np.exp(-score)), "l": p.argmax(axis=1),
                    "w": rng.gamma(2.0, size=n), "mean": times.mean() + rng.normal(size=n),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=seed)


def skill(y: Any, p: Any, sample_weight: Any, reference: Any) -> float:
    """One minus the ratio of two mean squared errors."""
    own = sk.mean_squared_error(y, p, sample_weight=sample_weight)
    return 1 - own / sk.mean_squared_error(y, reference, sample_weight=sample_weight)


COLUMNS: dict[str, tuple[str, Any]] = {
    "labels": ("y", "label"), "three labels": ("c", "l"), "scores": ("y", "score"),
    "chances": ("y", "chance"), "chances of three": ("c", ["p0", "p1", "p2"]),
    "numbers": ("t", "number"),
}  # fmt: skip
"""Truth and prediction of each kind of metric."""


def turned(number: float, attrs: Any) -> float:
    """The metric behind the mean of its losses, or the loss that a value of the metric becomes."""
    ways = {"1 - score": 1 - number, "-score": -number, "error": number, "value": number}
    return ways[attrs["orientation"]]


@together(
    [(case, *how) for case in PEERS for how in ((False, None, "average"), (True, "w", "pool"))],
    by=lambda case, *_: PEERS[case][0],
)
def test_mean_of_each_cell_is_the_metric(case: str, ties: bool, weight: Any, folds: str) -> None:
    name, options, kind, peer = PEERS[case]
    truth, prediction = COLUMNS[kind]
    if weight is not None and case in UNWEIGHTED:
        options = {**options, "weight": "ones"}
        weight = "ones"
    elif weight is not None:
        options = {**options, "weight": weight}
    frame = predictions(3, ties).assign(ones=2.5)
    log = cvstats.losses(frame, truth, prediction, loss=name, folds=folds, **options)
    levels = ["repetition"] + ["fold"] * (folds == "average")
    means = log.groupby(level=levels).mean()
    for key, here in frame.groupby(levels):
        w = np.ones(len(here)) if weight is None else here[weight].to_numpy()
        expected = peer(here[truth].to_numpy(), here[prediction].to_numpy(), sample_weight=w)
        assert turned(means.loc[key].item(), log.attrs) == pytest.approx(expected, abs=1e-12)


SETS = ["red", "green", "blue"]


def sets(n: int = 120) -> pd.DataFrame:
    """Three labels for each point, of which it may have any; two models."""
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 2, (n, 3))
    frame = pd.DataFrame({"fold": np.arange(n) % 4, "point": np.arange(n)})
    frame[SETS] = truth
    for model in "ab":
        wrong = rng.random((n, 3)) < 0.3
        frame[[f"{model} {label}" for label in SETS]] = np.where(wrong, 1 - truth, truth)
    return frame.assign(w=rng.gamma(2.0, size=n))


@pytest.mark.parametrize("folds", ["average", "pool"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_micro_f1_of_points_with_several_labels(folds: Any, weight: Any) -> None:
    frame = sets()
    columns = {model: [f"{model} {label}" for label in SETS] for model in "ab"}
    log = cvstats.losses(frame, SETS, columns, "f1", average="micro", folds=folds, weight=weight)
    for key, here in frame.groupby("fold") if folds == "average" else [(None, frame)]:
        for model in "ab":
            w = None if weight is None else here[weight]
            expected = sk.f1_score(
                here[SETS], here[columns[model]], average="micro", sample_weight=w
            )
            own = log[model] if key is None else log[model].xs(key, level="fold")
            assert 1 - own.mean() == pytest.approx(expected, abs=1e-12)
    data = frame.set_index("point").to_xarray().set_coords("fold")
    one = cvstats.losses(data, SETS, columns["a"], "f1", average="micro", folds=folds)
    two = cvstats.losses(frame, SETS, columns["a"], "f1", average="micro", folds=folds)
    np.testing.assert_allclose(one, two, rtol=1e-13)
    chance = frame.assign(**{name: 0.4 * frame[name] + 0.1 for name in columns["a"]})
    again = cvstats.losses(
        chance, SETS, columns["a"], "f1", average="micro", folds=folds, threshold=0.5
    )
    np.testing.assert_allclose(again, two, rtol=1e-13)


def test_several_labels_without_any() -> None:
    frame = sets()
    frame[[*SETS, *(f"a {label}" for label in SETS)]] = 0
    asked = (frame, SETS, [f"a {label}" for label in SETS], "f1")
    with pytest.raises(cvstats.LogError, match="no point has a label and none is predicted"):
        cvstats.losses(*asked, average="micro")
    log = cvstats.losses(*asked, average="micro", zero_division=1)
    assert (log == 0).all()
    assert log.attrs["cells_without_influence"] == 1


def test_skill_compares_with_a_reference_on_the_same_points() -> None:
    frame = predictions(5, False)
    for weight in (None, "w"):
        log = cvstats.losses(
            frame, "t", "number", loss="skill", reference="mean", weight=weight, folds="average"
        )
        for (r, k), mean in log.groupby(level=["repetition", "fold"]).mean().items():
            here = frame[(frame["repetition"] == r) & (frame["fold"] == k)]
            w = np.ones(len(here)) if weight is None else here["w"]
            assert -mean == pytest.approx(
                skill(here["t"], here["number"], w, here["mean"]), abs=1e-12
            )
    ratio = cvstats.losses(
        frame, "t", "number", loss="relative_error", reference="mean", base="absolute_error"
    )
    one = frame[frame["repetition"] == 0]
    expected = abs(one["t"] - one["number"]).mean() / abs(one["t"] - one["mean"]).mean()
    assert ratio.xs(0, level="repetition").mean() == pytest.approx(expected, abs=1e-12)


ASKED: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    **{
        name: (name, "truth_binary", "label_binary", {})
        for name in ("precision", "recall", "specificity", "npv", "f1", "jaccard", "matthews",
                     "balanced_accuracy", "g_mean", "kappa")
    },
    "f2": ("fbeta", "truth_binary", "label_binary", {"beta": 2}),
    "auc": ("auc", "truth_binary", "score", {"ddof": 0}),
    "average_precision": ("average_precision", "truth_binary", "score", {}),
    **{
        name: (name, "truth_number", "prediction_number", {})
        for name in ("rmse", "r2", "pearson", "concordance_correlation", "spearman", "concordance")
    },
    "kendall_b": ("kendall", "truth_number", "prediction_number", {}),
    "f1_macro": ("f1", "truth_class", "label_class", {"average": "macro"}),
    "auc_ovr_macro": ("auc", "truth_class", ["p0", "p1", "p2"], {**CLASSES, "ddof": 0}),
    "auc_ovo_macro": (
        "auc", "truth_class", ["p0", "p1", "p2"], {**CLASSES, "multi_class": "ovo", "ddof": 0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_wald_of_a_metric_is_the_stored_interval(case: str) -> None:
    name, truth, prediction, options = ASKED[case]
    stored = CASES[f"metric_{case}"]["outputs"]
    log = cvstats.losses(
        DATA.set_index("fold", append=True), truth, prediction, loss=name, folds="average",
        **options,
    )  # fmt: skip
    assert log.attrs["cells"] == ["fold"]
    for weights in ("size", "equal"):
        expected = stored["fold_averaged"][f"{weights}_weights"]
        for variance in ("all-pairs", "within-fold"):
            found = log.cvci.wald(variance=variance, fold_weights=weights)
            value = turned(expected["estimate"], log.attrs)
            assert found["estimate"].item() == pytest.approx(value, abs=1e-12)
            se = expected[f"se_{variance.replace('-', '_')}"]
            assert found["se"].item() == pytest.approx(se, abs=1e-12)
    pooled = cvstats.losses(
        DATA.set_index("fold", append=True), truth, prediction, loss=name, folds="pool", **options
    ).cvci.wald()
    assert pooled["estimate"].item() == pytest.approx(
        turned(stored["pooled"]["estimate"], log.attrs), abs=1e-12
    )
    assert pooled["se"].item() == pytest.approx(stored["pooled"]["se"], abs=1e-12)


def test_one_test_set_gives_delong() -> None:
    data, stored = CASES["delong"]["inputs"], CASES["delong"]["outputs"]
    frame = pd.DataFrame(data).rename_axis("point")
    log = cvstats.losses(frame, "y", ["sA", "sB"], loss="auc")
    found = cvstats.wald(log)
    assert found.loc["sA", "se"] ** 2 == pytest.approx(stored["pROC_var"], abs=1e-14)
    assert found.loc["sB", "se"] ** 2 == pytest.approx(stored["pROC_varB"], abs=1e-14)
    low, middle, high = stored["pROC_ci"]
    assert 1 - found.loc["sA", ["upper", "estimate", "lower"]].to_numpy() == pytest.approx(
        np.array([low, middle, high]), abs=1e-12
    )
    pair = log.cvci.compare(method="wald").iloc[0]
    assert pair["statistic"] == pytest.approx(-stored["pROC_Z"], abs=1e-10)
    assert pair["p_value"] == pytest.approx(stored["pROC_p"], abs=1e-10)


@pytest.mark.parametrize("ddof", [None, 0, 1])
@pytest.mark.parametrize("how", ["ovr", "ovo"])
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_the_auc_of_two_classes_has_one_standard_error(ddof: Any, how: str, average: str) -> None:
    """Whether it is passed as one score, or as a probability of each class."""
    rng = np.random.default_rng(0)
    truth = (np.arange(60) % 5 == 0) * 1
    one = np.round(rng.uniform(0.0, 0.6, 60) + 0.4 * truth, 2)
    frame = pd.DataFrame({"y": truth, "one": one, "zero": 1 - one, "w": 1.0 + np.arange(60) % 3})
    frame = frame.rename_axis("point")
    ask = {"loss": "auc", "weight": "w"} | ({} if ddof is None else {"ddof": ddof})
    binary = cvstats.losses(frame, "y", "one", **ask)
    options = {**ask, "classes": [0, 1], "multi_class": how, "average": average}
    several = cvstats.losses(frame, "y", {"one": ["zero", "one"]}, **options)
    np.testing.assert_allclose(several["one"], binary, atol=1e-12)
    found, wanted = several.cvci.interval(), binary.cvci.interval()
    columns = ["estimate", "lower", "upper", "se"]
    np.testing.assert_allclose(found[columns].astype(float), wanted[columns].astype(float))


def test_class_shares_of_the_log_give_the_interval_of_cvauc() -> None:
    data, stored = CASES["cvauc"]["inputs"], CASES["cvauc"]["outputs"]
    frame = pd.DataFrame(
        {"fold": data["fold"], "point": range(48), "y": data["y"], "s": data["sAc"]}
    )
    log = cvstats.losses(frame, "y", "s", loss="auc", ddof=0, class_shares="log")
    assert log.attrs["class_shares"] == "log"
    found = log.cvci.wald(variance="within-fold", fold_weights="equal")
    assert 1 - found["estimate"].item() == pytest.approx(stored["cvAUC"], abs=1e-12)
    squares = (log - log.groupby(level="fold").transform("mean")) ** 2
    se = np.sqrt(squares.groupby(level="fold").mean().mean() / 48)
    assert se == pytest.approx(stored["cvAUC_se"], abs=1e-12)
    # cvAUC divides by the mean size of the folds, and not by that of each less one
    assert found["se"].item() == pytest.approx(se, rel=0.06)


def test_equal_folds_are_cvauc_with_repeated_measures() -> None:
    data, stored = CASES["cvauc_ids"]["inputs"], CASES["cvauc_ids"]["outputs"]
    frame = pd.DataFrame({"fold": data["idfold"], "source": data["ids"], "point": range(48)})
    frame = frame.assign(y=data["y"], s=data["sAc"])
    found = cvstats.losses(frame, "y", "s", loss="auc").cvci.wald(fold_weights="equal")
    assert 1 - found["estimate"].item() == pytest.approx(stored["cvAUC_ids"], abs=1e-12)
    data, stored = CASES["cvauc"]["inputs"], CASES["cvauc"]["outputs"]
    frame = pd.DataFrame(
        {"fold": data["fold"], "point": range(48), "y": data["y"], "s": data["sAc"]}
    )
    log = cvstats.losses(frame, "y", "s", loss="auc")
    found = log.cvci.wald(fold_weights="equal")
    assert 1 - found["estimate"].item() == pytest.approx(stored["cvAUC"], abs=1e-12)
    each = 1 - log.groupby(level="fold").mean()
    np.testing.assert_allclose(each, stored["cvAUC_fold"], rtol=0, atol=1e-12)


def test_weights_and_strata_are_those_of_survey() -> None:
    data, stored = CASES["survey"]["inputs"], CASES["survey"]["outputs"]
    frame = pd.DataFrame(data).rename_axis("point").assign(y=0.0)

    def mean(truth: Any, prediction: Any) -> Any:
        return prediction

    n = len(frame)
    small = np.sqrt(n / (n - 1))
    found = cvstats.losses(frame, "y", "loss", loss=mean, weight="w").cvci.wald()
    assert found["estimate"].item() == pytest.approx(stored["svymean"], abs=1e-12)
    assert found["se"].item() * small == pytest.approx(stored["svymean_se"], abs=1e-12)
    ratio = cvstats.losses(
        frame, "y", "loss", loss="relative_error", reference="loss2", base=mean, weight="w"
    ).cvci.wald()
    assert ratio["estimate"].item() == pytest.approx(stored["svyratio"], abs=1e-12)
    assert ratio["se"].item() * small == pytest.approx(stored["svyratio_se"], abs=1e-12)
    found = cvstats.losses(frame, "y", "loss", loss=mean, weight="w", strata="strata").cvci.wald()
    assert found["se"].item() == pytest.approx(stored["svymean_str_se"], abs=1e-12)
    shares = {0: 0.2, 1: 0.5, 2: 0.3}
    found = cvstats.losses(
        frame, "y", "loss", loss=mean, strata="strata", shares=shares
    ).cvci.wald()
    assert found["estimate"].item() == pytest.approx(stored["ps"], abs=1e-12)
    assert found["se"].item() * small == pytest.approx(stored["ps_se"], abs=1e-12)
    small_weights = frame.assign(w=1e-4)
    again = cvstats.losses(
        small_weights, "y", "loss", loss=mean, weight="w", strata="strata", shares=shares
    ).cvci.wald()
    np.testing.assert_allclose(again[["estimate", "se"]], found[["estimate", "se"]], rtol=1e-12)
    parts = frame.assign(fold=np.where(frame["strata"] == 2, 1, np.arange(n) % 2)).reset_index()
    shares = {0: 0.4, 1: 0.6, 2: 0.0}  # the last one has no points in a fold
    options = {"strata": "strata", "shares": shares, "folds": "average"}
    log = cvstats.losses(parts, "y", "loss", loss="rmse", **options)
    squares = parts.assign(loss=parts["loss"] ** 2).groupby(["fold", "strata"])["loss"].mean()
    roots = np.sqrt(squares.unstack()[[0, 1]] @ [0.4, 0.6])
    np.testing.assert_allclose(log.groupby("fold").mean().to_numpy().ravel(), roots)
    clusters = cvstats.losses(
        frame.rename(columns={"ids": "source"}).reset_index(), "y", "loss", loss=mean, weight="w"
    ).cvci.clustered(correction="CR1")
    assert clusters["se"].item() == pytest.approx(stored["svymean_cl_se"], abs=1e-12)


def test_small_strata_are_centered_at_their_own_means() -> None:
    """A stratum of n points has n - 1 degrees of freedom, unless the shares are known."""
    z, stratum = np.array([5.0, 1.0, 3.0, 2.0, 4.0, 9.0]), np.array([0, 1, 1, 3, 3, 3])
    apart = np.array([0, -1, 1, -3, -1, 4.0])
    np.testing.assert_allclose(center_strata(z, stratum, True), apart)
    free = np.array([0, 2, 2, 3 / 2, 3 / 2, 3 / 2])
    np.testing.assert_allclose(center_strata(z, stratum, False), apart * np.sqrt(free))


@pytest.mark.parametrize("levels", [["point"], ["source", "point"]])
def test_sites_may_number_sources_and_points_alike(levels: list[str]) -> None:
    """With sources it was refused, as if an evaluation occurred twice."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"source": np.arange(60) // 5, "point": np.arange(60) % 5})
    if levels == ["point"]:
        table = table[[]].assign(point=np.arange(60))
    parts = {
        site: table.assign(y=rng.normal(size=60), a=rng.normal(size=60)).set_index(levels)
        for site in "pq"
    }
    whole = pd.concat(parts, names=["site"])
    array = xr.Dataset.from_dataframe(whole.reset_index()).set_coords(["site", *levels])
    ask = cvstats.clustered if "source" in levels else cvstats.wald
    options = {"by": ["source", "point"], "per": "site"} if "source" in levels else {"by": "site"}
    for log in (whole, array):
        losses = cvstats.losses(log, "y", ["a"], "rmse", by="site")
        found = np.ravel(ask(losses, **options)["se"])
        for site, se in zip("pq", found, strict=True):
            own = cvstats.losses(parts[site], "y", ["a"], "rmse")
            alone = {"by": options["by"]} if "per" in options else {}
            assert ask(own, **alone)["se"].item() == pytest.approx(se, rel=1e-12)
