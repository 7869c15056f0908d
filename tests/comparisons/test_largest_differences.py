"""Where two models differ most: points to look at, groups with their tests."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import product_index
from strategies import by_row

import cvstats

N = 240
RNG = np.random.default_rng(4)
TABLE = pd.DataFrame(
    {
        "repetition": np.repeat([0, 1], N),
        "point": np.tile(np.arange(N), 2),
        "source": np.tile(np.arange(N) % 12, 2),
        "segment": np.tile(np.array(list("xyz"))[np.arange(N) // 80], 2),
        "a": RNG.normal(size=2 * N) ** 2,
        "b": RNG.normal(size=2 * N) ** 2,
        "c": RNG.normal(size=2 * N) ** 2,
    }
)
TABLE.loc[TABLE["point"] == 17, "b"] += 40
TABLE.loc[TABLE["segment"] == "z", "a"] += 2
LOG = TABLE.set_index(["repetition", "source", "point"]).drop(columns="segment")

SEGMENTS = (
    TABLE[TABLE["repetition"] == 0].drop(columns="repetition")
    .set_index(["source", "point", "segment"])
)  # fmt: skip


def test_points_are_means_over_their_evaluations():
    found = LOG[["a", "b"]].cvci.largest_differences(n=5)
    gap = (LOG["a"] - LOG["b"]).groupby(["source", "point"]).mean()
    assert found.index[0] == ("a", "b", 17 % 12, 17)
    assert found.index.names == ["model", "other", "source", "point"]
    order = gap.abs().sort_values(ascending=False).index[:5]
    assert [place[2:] for place in found.index] == list(order)
    np.testing.assert_allclose(found["difference"], gap[order])
    np.testing.assert_allclose(found["share"], gap[order].abs() / gap.abs().sum())
    assert (found["count"] == 2).all()


def test_pairs_of_models():
    every = LOG.cvci.largest_differences(n=2)
    assert every.groupby(["model", "other"]).size().tolist() == [2, 2, 2]
    one = LOG.cvci.largest_differences(n=2, reference="b")
    assert set(one.index.droplevel([2, 3])) == {("a", "b"), ("c", "b")}
    for first, second in ((LOG["a"], LOG["b"]), (LOG[["a"]], LOG[["b"]])):
        two = cvstats.largest_differences(first, second, n=3)
        pd.testing.assert_frame_equal(two, LOG[["a", "b"]].cvci.largest_differences(n=3))


@pytest.mark.parametrize("by", ["point", "source"])
@pytest.mark.parametrize("reference", [None, "b"])
def test_arrays_list_what_frames_list(by, reference):
    array = by_row(LOG)
    expected = LOG.cvci.largest_differences(by=by, reference=reference)
    for log in (array, array.to_dataset("model"), LOG.to_xarray()):
        found = cvstats.largest_differences(log, by=by, reference=reference)
        assert set(found.index.names) == set(expected.index.names)
        pd.testing.assert_frame_equal(
            found.reorder_levels(expected.index.names)[list(expected)], expected,
            check_index_type=False,
        )  # fmt: skip


def test_labels_of_a_dask_log_are_tested_and_its_points_are_refused():
    dd = pytest.importorskip("dask.dataframe")
    once = LOG.loc[0]
    frame, array = dd.from_pandas(once.reset_index(), 3), once.to_xarray().chunk(point=50)
    expected = once.cvci.largest_differences(by="source", n=2)
    for log in (frame, array):
        found = cvstats.largest_differences(log, by="source", n=2)
        found = found.reorder_levels(expected.index.names)[list(expected)]
        pd.testing.assert_frame_equal(found, expected, check_index_type=False)
        refuses("compute", cvstats.largest_differences, log)


def test_ties_are_listed_in_the_order_of_their_labels():
    rng = np.random.default_rng(0)
    index = product_index(repetition=range(3), point=range(30))
    log = pd.DataFrame(rng.integers(0, 2, (90, 2)).astype(float), index, ["a", "b"])
    found = log.cvci.largest_differences(n=30)
    size = found["difference"].abs().round(9)
    assert list(zip(-size, found.index.get_level_values("point"), strict=True)) == sorted(
        zip(-size, found.index.get_level_values("point"), strict=True)
    )
    for seed in range(5):
        pd.testing.assert_frame_equal(
            log.sample(frac=1, random_state=seed).cvci.largest_differences(n=30), found
        )


def test_labels_are_tested_together():
    found = SEGMENTS[["a", "b"]].cvci.largest_differences(by="segment", n=2)
    every = SEGMENTS[["a", "b"]].cvci.compare(by="segment")
    assert found.index[0] == ("z", "a", "b")
    assert len(found) == 2
    pd.testing.assert_frame_equal(found, every.loc[found.index], check_like=True)
    assert found["p_adjusted"].iloc[0] < 0.05
    assert found.attrs["adjust"] == "holm"
    fdr = SEGMENTS[["a", "b"]].cvci.largest_differences(by="segment", adjust="fdr")
    assert fdr.attrs["adjust"] == "bh"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LOG.cvci.largest_differences(n=0), "n=0 is out of range"),
        (lambda: LOG.cvci.largest_differences(by=3), "Invalid by=3"),
        (lambda: LOG.cvci.largest_differences(by="site"), "no level 'site'"),
        (lambda: LOG["a"].cvci.largest_differences(), "one model"),
        (lambda: LOG.droplevel("point").groupby(level=[0, 1]).mean()
         .cvci.largest_differences(), "the log has no level 'point'"),
        (lambda: cvstats.losses(
            cvstats.datasets.load("diabetes"), prediction=["ridge", "random_forest"], loss="rmse"
        ).cvci.largest_differences(), "was made from a metric"),
    ],
)  # fmt: skip
def test_refusals(call, words):
    refuses(words, call)
