"""The reliability diagram: simultaneous limits by bins, of points or of sources."""

import numpy as np
import pandas as pd
import pytest
from frontier import CASES, binary_frame
from matplotlib.figure import Figure

import cvstats
from cvstats import LogError
from cvstats.plot.reliability import tabulate_bins


def table(frame, bins=5, prediction="p", alpha=0.05):
    return tabulate_bins(frame, bins, "y_true", prediction, None, alpha)


def test_bands_are_those_of_statsmodels():
    stored = CASES["reliability_bands"]["outputs"]
    found = table(binary_frame())
    np.testing.assert_allclose(found["lower"], stored["lower"], rtol=1e-9)
    np.testing.assert_allclose(found["upper"], stored["upper"], rtol=1e-9)
    assert found["n_points"].sum() == 80


def test_it_is_drawn_for_each_model():
    frame = binary_frame()
    ax = cvstats.plot.reliability(frame, prediction=["p", "q"], bins=4, ax=Figure().subplots())
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["p", "q"]
    own = frame.cvci.plot.reliability(prediction="p", bins=[0, 0.3, 0.6, 1], ax=Figure().subplots())
    assert own.get_ylabel().startswith("observed frequency\n(95%")


def test_sources_are_the_sampling_unit():
    rng = np.random.default_rng(2)
    source = np.repeat(np.arange(40), 20)
    p = rng.random(800)
    shift = 2 * rng.normal(size=40)[source]
    truth = (rng.random(800) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))).astype(int)
    frame = pd.DataFrame({"point": range(800), "fold": 0, "y_true": truth, "p": p})
    points, sources = table(frame), table(frame.assign(source=source))
    np.testing.assert_allclose(points["observed"], sources["observed"])
    wide = (sources["upper"] - sources["lower"]) / (points["upper"] - points["lower"])
    assert wide.mean() > 1.2
    assert sources["lower"].min() >= 0
    assert sources["upper"].max() <= 1


@pytest.mark.slow
def test_all_bins_cover_together():
    rng, runs = np.random.default_rng(7), 400
    hits = 0
    for _ in range(runs):
        p = rng.random(300)
        truth = (rng.random(300) < p).astype(int)
        frame = pd.DataFrame({"point": range(300), "y_true": truth, "p": p})
        found = table(frame, bins=8)
        middle = [p[np.minimum((p * 8).astype(int), 7) == k].mean() for k in range(8)]
        hits += ((found["lower"] <= middle) & (middle <= found["upper"])).all()
    assert hits / runs >= 0.92


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"p": 1.2}, {}, "a predicted probability is 1.2"),
        ({}, {"bins": 0}, "Invalid bins=0"),
        ({}, {"bins": [0.5, 0.2]}, "at least two increasing edges"),
        ({}, {"bins": [0.0, 0.1]}, "lie outside of bins"),
        ({}, {"prediction": "r"}, "no column 'r'"),
    ],
)
def test_refusals(change, options, words):
    with pytest.raises(LogError, match=words):
        table(binary_frame().assign(**change), **options)


@pytest.mark.parametrize("bins", [1, 2, np.array([0, 1.0]), (0, 0.3, 1)])
def test_any_number_of_bins_is_accepted(bins):
    number = bins if isinstance(bins, int) else len(bins) - 1
    found = table(binary_frame(), bins=bins)
    assert len(found) == number
    assert found["n_points"].sum() == 80


def test_a_probability_at_an_edge_is_in_the_bin_above_and_1_in_the_last():
    frame = pd.DataFrame({"point": range(6), "y_true": [0, 1] * 3, "p": [0, 0.2, 0.2, 0.5, 1, 1]})
    assert table(frame, bins=[0, 0.2, 0.5, 1])["n_points"].tolist() == [1, 2, 3]
    assert table(frame, bins=[0, 0.2, 1])["n_points"].tolist() == [1, 5]


def test_repeated_points_are_refused():
    frame = pd.concat([binary_frame().assign(repetition=r) for r in range(2)])
    with pytest.raises(LogError, match="occurs in 2 repetitions"):
        table(frame)
    with pytest.raises(LogError, match="needs predictions, but this is a Series"):
        table(frame["p"])
    one = binary_frame().assign(point=range(80))
    for twice in (pd.concat([one, one]), pd.concat([one.assign(fold=0), one.assign(fold=1)])):
        with pytest.raises(LogError, match="point 0 occurs more than once. Expected each point"):
            table(twice)
    assert len(table(pd.concat([one.assign(source=0), one.assign(source=1)])))


@pytest.mark.parametrize("column", ["p", "y_true"])
def test_missing_predictions_and_truths_are_refused(column):
    frame = binary_frame()
    frame[column] = frame[column].astype(float).where(np.arange(len(frame)) % 4 != 1)
    words = r"missing \(NaN\) in row 1, row 5, row 9, and \d+ more. Expected both for every point"
    with pytest.raises(LogError, match=words):
        table(frame)
