"""What a log says of itself travels with it: scores, training sizes, the metric."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import multi_index
from strategies import ROADS, by_row

import cvstats
from cvstats.errors import LogError

SCORES = pd.DataFrame(
    {"fold": range(10), **dict(zip("ab", np.random.default_rng(0).random((2, 10)), strict=True))}
)


def scores():
    return cvstats.read_log(SCORES, format="scores", higher_is_better=False)


def splits(n_train):
    draw = np.random.default_rng(1)
    points = np.concatenate([draw.choice(40, 8, replace=False) for _ in range(12)])
    index = multi_index(repetition=np.repeat(range(12), 8), point=points)
    log = pd.DataFrame(draw.gamma(2.0, size=(96, 2)), index=index, columns=["a", "b"])
    log.attrs["n_train"] = n_train
    return log


CONTAINERS = {
    **{road: ROADS[road] for road in ("frame", "array", "lazy")},
    "dataset": lambda log: by_row(log).to_dataset("model").assign_attrs(log.attrs),
}


def differences(log, kind):
    """The differences by each road: all pairs, a reference, two logs."""
    yield log.cvci.difference()
    yield log.cvci.difference(reference="b")
    if kind == "dataset":
        yield cvstats.difference(log["a"].assign_attrs(log.attrs), log["b"].assign_attrs(log.attrs))
    elif kind == "frame":
        yield cvstats.difference(log["a"], log["b"])
        yield cvstats.difference(log[["a"]], log[["b"]])
    else:
        yield cvstats.difference(log.sel(model="a"), log.sel(model="b"))


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("log", [scores(), splits([32] * 12)], ids=["scores", "N"])
def test_an_interval_of_differences_is_the_comparison(log, kind):
    log = CONTAINERS[kind](log)
    table = cvstats.compare(log)
    assert table.attrs["interval_method"] == "corrected_t"
    for gap in differences(log, kind):
        found = cvstats.interval(gap)
        assert found.attrs["method"] == "corrected_t"
        for ours, theirs in (("estimate", "difference"), ("se", "se"), ("upper", "upper")):
            assert np.asarray(found[ours]).item() == pytest.approx(
                np.asarray(table[theirs]).item(), rel=1e-12
            )


def test_facts_in_which_two_logs_differ_do_not_travel():
    one, two = splits(32)["a"], splits(30)["b"]
    one.attrs["title"] = two.attrs["title"] = "trees"
    gap = one.cvci.difference(two)
    assert gap.attrs == {"title": "trees", "kind": "differences", "difference_from": "b"}
    refuses("needs the number of points each model was trained on", one.cvci.compare, two)


@pytest.mark.parametrize("fact", ["holds", "metric", "loss", "units"])
def test_logs_of_different_things_are_not_subtracted(fact):
    one, two = splits(32)["a"], splits(32)["b"]
    one.attrs[fact], two.attrs[fact] = "scores", "other"
    logs = [(one, two), (by_row(one.to_frame()), by_row(two.to_frame())),
            (by_row(one.to_frame()).chunk(), by_row(two.to_frame()).chunk())]  # fmt: skip
    for left, right in logs:
        for ask in (cvstats.compare, cvstats.difference, cvstats.mcnemar):
            if ask is cvstats.mcnemar and getattr(left, "chunks", None):
                continue
            refuses(f"differ in attrs.'{fact}'.: 'scores' and 'other'", ask, left, right)
    with pytest.raises(LogError, match="differ in attrs.'holds'.: 'scores' and None"):
        cvstats.compare(scores()["a"], scores()["b"].rename("b").pipe(without, "holds"))


def without(log, fact):
    log = log.copy()
    del log.attrs[fact]
    return log


def test_facts_travel_through_parts_gaps_and_moments(tmp_path):
    log = splits(32)
    gap = log.cvci.difference()
    moments = cvstats.Moments.of_log(gap)
    moments.save(tmp_path / "moments.npz")
    for each in (moments, cvstats.Moments.load(tmp_path / "moments.npz"), moments + other(gap)):
        assert each.corrected_t().attrs["n_train"] == 32
    holey = gap.copy()
    holey.iloc[3] = np.nan
    assert holey.cvci.corrected_t(missing="drop").attrs["n_train"] == 32
    parts = pd.concat({name: gap for name in "xy"}, names=["dataset"])
    parts.attrs = gap.attrs
    table = parts.cvci.corrected_t(by="dataset", train_size=32)
    pd.testing.assert_frame_equal(parts.cvci.corrected_t(by="dataset"), table)


def other(log):
    """The moments of the same splits under other names."""
    return cvstats.Moments.of_log(log.rename(index=lambda r: r + 100, level="repetition"))
