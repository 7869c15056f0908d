"""Two levels at once: stored numbers of R, statsmodels, slow sums, containers and edges."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses
from grouped_logs import assert_limits, stored_case
from rows import multi_index, only_row, product_index
from scipy import stats

import cvstats
from cvstats.errors import LogError

CROSSED, UNEVEN = stored_case("crossed"), stored_case("two_way")
BOTH = ("point", "seed")


def log_of(table, names=BOTH, models=1):
    """A Series of a table of fractions, first by second; or of several numbers in each cell."""
    index = pd.MultiIndex.from_tuples(list(table), names=names)
    return pd.Series([float(loss) for loss in table.values()], index, name="net")


def crossed(i, j, seed, of_first=1.0, of_second=0.3):
    """Losses of i points under j seeds, with three decimals."""
    rng = np.random.default_rng(seed)
    first, second = of_first * rng.standard_normal(i), of_second * rng.standard_normal(j)
    return {
        (f"p{a}", b): Fraction(
            round(1000 * (2 + first[a] + second[b] + rng.standard_normal())), 1000
        )
        for a, b in product(range(i), range(j))
    }


def analysis(table):
    """The mean squares of a crossed table, their variance and degrees of freedom, in fractions."""
    one, two = (sorted({key[at] for key in table}) for at in (0, 1))
    i, j = len(one), len(two)
    mean = sum(table.values()) / (i * j)
    of_one = {a: sum(table[a, b] for b in two) / j for a in one}
    of_two = {b: sum(table[a, b] for a in one) / i for b in two}
    first = j * sum((m - mean) ** 2 for m in of_one.values()) / (i - 1)
    second = i * sum((m - mean) ** 2 for m in of_two.values()) / (j - 1)
    rest = sum(
        (loss - of_one[a] - of_two[b] + mean) ** 2 for (a, b), loss in table.items()
    ) / ((i - 1) * (j - 1))  # fmt: skip
    total = first + second - rest
    df = total**2 / (
        first**2 / (i - 1) + second**2 / (j - 1) + rest**2 / ((i - 1) * (j - 1))
    )  # fmt: skip
    return mean, total / (i * j), df, (first, second, rest)


def clusters(rows):
    """The variance of Cameron, Gelbach and Miller from (first, second, loss), in fractions."""
    n = len(rows)
    mean = sum(row[-1] for row in rows) / n

    def one_way(key):
        sums = {}
        for row in rows:
            sums[key(row)] = sums.get(key(row), 0) + row[-1] - mean
        return Fraction(len(sums), len(sums) - 1) * sum(s**2 for s in sums.values()) / n**2

    parts = [one_way(lambda row: row[0]), one_way(lambda row: row[1])]
    return mean, parts, sum(parts) - one_way(lambda row: row[:2])


@pytest.mark.parametrize("points", [20, 24])
def test_one_error_has_the_degrees_of_freedom_of_equal_mean_squares(points):
    """Rounding decided between 3 and 92."""
    index = product_index(repetition=range(5), point=range(points))
    log = pd.Series(1.0 * (np.arange(5 * points) == 7), index)
    found = log.cvci.clustered(by=("point", "repetition"))["df"].iloc[0]
    assert found == pytest.approx(1 / (1 / 4 + 1 / (points - 1) + 1 / (4 * (points - 1))))


def test_repetitions_of_a_pair_are_averaged():
    index = pd.MultiIndex.from_product([range(3), range(6), range(8)])
    index.names = names = ["repetition", "source", "point"]
    log = pd.Series(np.random.default_rng(0).normal(size=144), index, name="net")
    found = log.cvci.clustered(by=names[1:])
    expected = log.groupby(level=names[1:]).mean().cvci.clustered(by=names[1:])
    pd.testing.assert_frame_equal(found, expected, rtol=1e-10)


@pytest.mark.parametrize("names", [BOTH, ("point", "repetition"), ("prompt", "judge")])
def test_the_mean_squares_of_r(names):
    case, wanted = CROSSED["inputs"], CROSSED["outputs"]
    log = pd.Series(case["z"], pd.MultiIndex.from_arrays([case["A"], case["B"]], names=names))
    row = only_row(cvstats.clustered(log, by=names))
    assert row["estimate"] == pytest.approx(wanted["mean"], rel=1e-14)
    assert row["se"] ** 2 == pytest.approx(wanted["variance"], rel=1e-12)
    assert row["df"] == pytest.approx(wanted["df"], rel=1e-12)
    for name in ("lower", "upper"):  # older scipy has 11 digits of this quantile
        assert row[name] == pytest.approx(wanted[name], rel=1e-10), name
    assert (row["n_first"], row["n_second"], row["crossed"]) == (9, 4, 1)
    assert row["caution"] == "few clusters, few clusters at one level"
    usual = only_row(cvstats.clustered(log, by=names, correction="CR1"))
    assert usual["se"] ** 2 == pytest.approx(wanted["cgm_cadj"], rel=1e-12)
    assert usual["df"] == 3


def test_the_sums_of_clusters_of_r():
    case, wanted = UNEVEN["inputs"], UNEVEN["outputs"]
    index = multi_index(prompt=case["g"], judge=case["h"])
    result = cvstats.clustered(pd.Series(case["y"], index), by=("prompt", "judge"))
    row = only_row(result)
    assert row["se"] ** 2 == pytest.approx(wanted["two_HC0_cadj"], rel=1e-12)
    assert row["df"] == 4
    assert (result.attrs["by"], result.attrs["crossed"]) == ("prompt, judge", 0)
    assert "Cameron" in result.attrs["reference"]
    assert "new labels of both" in result.attrs["target"]


@pytest.mark.parametrize(("i", "j"), [(2, 2), (3, 7), (12, 3), (40, 12)])
def test_mean_squares_in_fractions(i, j):
    table = crossed(i, j, seed=i)
    log = log_of(table).sample(frac=1, random_state=1)
    row = only_row(cvstats.clustered(log, by=BOTH))
    mean, variance, df, squares = analysis(table)
    assert squares[0] + squares[1] > 2 * squares[2]
    assert_limits(row, mean, variance, df)
    turned = only_row(cvstats.clustered(log, by=BOTH[::-1]))
    for name in ("estimate", "se", "lower", "upper", "df"):
        assert turned[name] == pytest.approx(row[name], rel=1e-13), name


@pytest.mark.parametrize("missing", [1, 9])
def test_an_incomplete_log_in_fractions(missing):
    table = crossed(8, 5, seed=7)
    for key in list(table)[:: 40 // missing][:missing]:
        del table[key]
    row = only_row(cvstats.clustered(log_of(table), by=BOTH))
    mean, _, variance = clusters([(*key, loss) for key, loss in table.items()])
    assert_limits(row, mean, variance, 4)


def three_models():
    return pd.DataFrame({name: log_of(crossed(20, 5, seed)) for seed, name in enumerate("abc")})


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_differences_are_compared_with_their_own_degrees_of_freedom(alternative):
    models = three_models()
    given = {"method": "clustered", "options": {"by": BOTH}}
    table = cvstats.compare(models, **given, alternative=alternative)
    assert table["df"].nunique() == 3
    assert table.attrs["guarantee"].startswith("asymptotically exact in the labels of both levels")
    assert "relatively stable" in table.attrs["guarantee"]
    assert "2508.04409" in table.attrs["reference"]
    assert "Cameron" in table.attrs["reference"]
    for (one, two), row in table.iterrows():
        gap = (models[one] - models[two]).rename("gap")
        wanted = only_row(cvstats.clustered(gap, by=BOTH))
        assert row["difference"] == pytest.approx(wanted["estimate"], rel=1e-12)
        assert row["se"] == pytest.approx(wanted["se"], rel=1e-12)
        t = wanted["estimate"] / wanted["se"]
        tails = {
            "two-sided": 2 * stats.t.sf(abs(t), wanted["df"]),
            "less": stats.t.cdf(t, wanted["df"]),
            "greater": stats.t.sf(t, wanted["df"]),
        }
        assert row["p_value"] == pytest.approx(tails[alternative], rel=1e-10)
        level = 0.05 if alternative == "two-sided" else 0.1
        reach = stats.t.isf(level / 2, wanted["df"]) * wanted["se"]
        lower, upper = row["difference"] - reach, row["difference"] + reach
        assert row["lower"] == pytest.approx(-np.inf if alternative == "less" else lower)
        assert row["upper"] == pytest.approx(np.inf if alternative == "greater" else upper)
    apart = cvstats.compare(models["a"], models["b"], **given, alternative=alternative)
    assert apart["p_value"].iloc[0] == pytest.approx(table["p_value"].iloc[0], rel=1e-12)
    array = cvstats.compare(models.to_xarray(), **given, alternative=alternative)
    np.testing.assert_allclose(array["p_value"], table["p_value"], rtol=1e-12)


def test_what_two_ways_allow():
    given = {"method": "clustered", "options": {"by": BOTH}}
    table = cvstats.compare(three_models(), adjust="max-t", rng=1, **given)
    assert table["df"].nunique() == 3
    reach = (table["upper"] - table["difference"]) / table["se"]
    normal = stats.norm.isf(stats.t.sf(reach, table["df"]))
    assert normal.max() == pytest.approx(normal.min(), rel=1e-9)
    excludes = (table["lower"] > 0) | (table["upper"] < 0)
    assert (excludes == (table["p_adjusted"] < 0.05)).all()
    with pytest.raises(LogError, match=r"by=\('point', 'seed'\) names two levels"):
        cvstats.power(three_models(), effect=0.1, **given)
    with pytest.raises(LogError, match=r"by=\('point', 'seed'\) names two"):
        cvstats.compare(three_models(), anytime=True, **given)


def labels_of(table, names=BOTH, **options):
    row = only_row(cvstats.clustered(log_of(table, names), by=names, **options))
    return row, [label for label in row["caution"].split(", ") if label not in ("", "skewed")]


def test_a_variance_below_its_floor_is_replaced_by_it():
    """The rest is all there is: rows and columns of a Latin square have equal means."""
    table = {
        (a, b): Fraction((a + b) % 4) + Fraction(a, 50) for a, b in product(range(4), repeat=2)
    }
    row, labels = labels_of(table)
    mean, _, _, (first, second, rest) = analysis(table)
    assert 0 < first + second < rest
    assert_limits(row, mean, rest / 16, 9)
    assert labels == ["few clusters", "few clusters at one level", "two-way variance clamped"]
    row, labels = labels_of(table, correction="CR1")
    _, parts, variance = clusters([(*key, loss) for key, loss in table.items()])
    assert variance < 0
    assert_limits(row, mean, sum(parts), 3)
    assert "two-way variance clamped" in labels


REFUSALS = {
    "one level twice": (("point", "point"), {}, "two different ones, as in by=('point'"),
    "numbers": ((1, 2), {}, "Invalid by=(1, 2)"),
    "a level that is not there": (("point", "judge"), {}, "the log has no level 'judge'"),
    "a known level that is not there": (("source", "seed"), {}, "the log has no level 'source'"),
    "CR3": (BOTH, {"correction": "CR3"}, "correction='CR3' supports one level of clusters"),
    "parts by one of them": (BOTH, {"per": "seed"}, "leaves one cluster in each part"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=list(REFUSALS))
def test_refused(case):
    by, options, words = case
    assert words in refusal(cvstats.clustered, log_of(crossed(5, 3, 1)), by=by, **options)


def test_one_label_or_nested_labels_are_refused():
    log = log_of(crossed(5, 3, 1))
    refuses("one label of 'seed', which does not show", cvstats.clustered, log.iloc[::3], by=BOTH)
    school = pd.MultiIndex.from_product([["x", "y"], [0, 1], [0, 1, 2]]).to_frame(index=False)
    pupil = school[0] + school[1].astype(str)
    tests = pd.Series(np.arange(12.0) % 5, multi_index(a=school[0], b=pupil, point=school.index))
    with pytest.raises(LogError, match="each label of 'b' occurs with one label of 'a' only"):
        cvstats.clustered(tests, by=("a", "b"))
    with pytest.raises(LogError, match="each label of 'b' occurs with one label of 'a' only"):
        cvstats.clustered(tests, by=("b", "a"))
    bootstrap = pd.Series(
        np.arange(8.0),
        product_index(sample=[0, 1], point=[0, 1], repetition=[0, 1]),
    )
    refuses("several resampled data sets", cvstats.clustered, bootstrap, by=("point", "repetition"))
    refuses(r"Invalid by=\('point', 'seed'\)", cvstats.wild_cluster, log, by=BOTH)
