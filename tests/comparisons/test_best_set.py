"""The models that may be the best, against the multiplier bootstrap of the paper."""

from functools import partial

import numpy as np
import oracle_many
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from hypothesis import given
from hypothesis import strategies as st
from paired_logs import equivalent_models
from rows import multi_index, product_index

import cvstats
from cvstats.comparisons.best_set import model_confidence_set, over_tasks
from cvstats.core.design import Design, Level
from cvstats.core.loss_columns import LossColumns
from cvstats.core.reduce import compute_moments, cross_products
from cvstats.errors import LogError
from cvstats.log.read import read

RNG = np.random.default_rng(29)


models = partial(equivalent_models, k=4, names="abcd", rng=RNG, level=1)
FRAME = models()


def parts(frame):
    """Losses and folds as the oracle takes them."""
    return frame.T.to_numpy().tolist(), frame.index.get_level_values("fold").tolist()


def of_draws(p, draws):
    """Five standard errors of a share of draws."""
    return 5 * np.sqrt(p * (1 - p) / draws) + 2 / draws


@pytest.mark.parametrize("center", ["fold", "global"])
def test_the_multiplier_bootstrap(center):
    losses, folds = parts(FRAME)
    table = FRAME.cvci.best_set(method="wald", center=center, rng=0)
    folds = folds if center == "fold" else [0] * len(folds)
    for m, name in enumerate(FRAME):
        exact = oracle_many.best(losses, m, folds, draws=2_000, seed=m)
        assert table.loc[name, "statistic"] == pytest.approx(exact.statistic, rel=1e-11)
        off = of_draws(exact.p_value, 2_000) + of_draws(exact.p_value, 10_000)
        assert table.loc[name, "p_value"] == pytest.approx(exact.p_value, abs=off)


@pytest.mark.parametrize("center", ["fold", "global"])
@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "d"]])
def test_two_and_three_models_as_integrated(names, center):
    frame, draws = FRAME[names], 200_000
    losses, folds = parts(frame)
    folds = folds if center == "fold" else [0] * len(folds)
    exact = oracle_many.two_models if len(names) == 2 else oracle_many.three_models
    table = frame.cvci.best_set(method="wald", center=center, n_draws=draws, rng=1)
    for m, name in enumerate(names):
        wanted = exact(losses, m, folds)
        assert table.loc[name, "p_value"] == pytest.approx(wanted, abs=of_draws(wanted, draws))


def test_rows_and_columns_in_memory():
    """From 16 models in C order on, rows are read whole; the numbers are those of columns."""
    rng = np.random.default_rng(30)
    n, m = 90, 20
    losses = rng.gamma(2.0, size=(n, 1)) + rng.normal(0.05 * np.arange(m), 1, (n, m))
    index = multi_index(fold=np.arange(n) % 3, point=range(n))
    tables = [
        pd.DataFrame(np.array(losses, order=order), index, copy=False).cvci.best_set(
            rng=0, n_draws=200
        )
        for order in "CF"
    ]
    for name in ("estimate", "statistic", "p_value"):
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=1e-10)
    exact = oracle_many.best(losses.T.tolist(), m - 1, (np.arange(n) % 3).tolist(), draws=1)
    assert tables[0]["statistic"].iloc[m - 1] == pytest.approx(exact.statistic, rel=1e-10)


@pytest.mark.parametrize("order", "CF")
def test_cross_products_of_rows_and_of_columns(order):
    """Read row by row or column by column; about the means of cells, some rows left out."""
    rng = np.random.default_rng(31)
    n, m = 70, 18
    values = np.array(rng.normal(3, 1, (n, m)), order=order)
    fold = np.arange(n) % 3
    valid = np.arange(n) != 5
    design = Design({"fold": Level((0, 1, 2), fold)}, n, valid=valid)
    losses = LossColumns((values,))
    found = compute_moments(design, losses, ("fold",))
    total, rest = cross_products(design, losses, np.arange(m), found)
    left = np.zeros((n, m))
    for k in range(3):
        here = (fold == k) & valid
        left[here] = values[here] - values[here].mean(axis=0)
    assert (losses.order == "C") == (order == "C")
    np.testing.assert_allclose(total, left.T @ left, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rest, 0, atol=1e-11)


def test_few_points_screen_later():
    """30 points and 6 models at .005: q = 3.09, and h = q / sqrt(1 - q^2 / n) = 3.74."""
    rng = np.random.default_rng(32)
    m, n = 6, 30
    squares = n * 2.0 * (1 - np.eye(m))
    options = {"df": n - 1, "alpha": 0.05, "n_draws": 999, "seed": 0, "screening": 0.005}
    for lead, screened in ((3.6, False), (3.9, True)):
        t = rng.normal(0, 0.1, (m, m))
        t[0, 1], t[1, 0] = lead, -lead
        _, p, _ = model_confidence_set(t, squares, n=n, **options)
        assert (p[0] == 0.005) == screened


@given(st.integers(3, 6), st.integers(0, 10_000), st.sampled_from([0.01, 0.05, 0.2]))
def test_ranks_by_their_definition(m, seed, alpha):
    rng = np.random.default_rng(seed)
    frame = models(names="abcdef"[:m], rng=rng) + rng.normal(0, 1, m)
    table = frame.cvci.best_set(center="global", alpha=alpha, n_draws=20_000, rng=seed)
    pairs = frame.cvci.compare(adjust="max-t", alpha=alpha, n_draws=100_000, rng=0)
    clear = (pairs["p_adjusted"] - alpha).abs() > 0.03  # else the draws decide
    better = np.zeros((m, m), dtype=bool)
    names = list(frame)
    for (a, b), row in pairs.iterrows():
        i, j = names.index(a), names.index(b)
        better[i, j], better[j, i] = row["upper"] < 0, row["lower"] > 0
    if clear.all():
        assert list(table["lower_rank"]) == list(1 + better.sum(axis=0))
        assert list(table["upper_rank"]) == list(m - better.sum(axis=1))
    assert (table["lower_rank"] <= table["upper_rank"]).all()
    true_rank = table["estimate"].rank()
    assert (table["lower_rank"] <= true_rank).all()
    assert (true_rank <= table["upper_rank"]).all()
    assert (table["in_set"] == (table["p_value"] > alpha)).all()
    assert table.loc[table["estimate"].idxmin(), "in_set"]


def test_a_copy_of_the_second_of_two_that_are_nearly_alike():
    near = FRAME["a"] + 1e-5 * RNG.normal(size=len(FRAME))
    table = FRAME.assign(near=near, again=near).cvci.best_set(method="wald", rng=0)
    assert table.loc["near", "p_value"] == table.loc["again", "p_value"]
    assert table.loc["near", "statistic"] == table.loc["again", "statistic"]
    gap = near - FRAME["a"]
    within = gap - gap.groupby(level="fold").transform("mean")
    t = np.sqrt(len(gap)) * gap.mean() / np.sqrt((within**2).sum() / (len(gap) - 1))
    assert table.loc["near", "statistic"] >= t - 1e-6


@pytest.mark.parametrize(
    ("level", "step", "copies"),
    [(1, 2.0**-20, False), (1, 2.0**-28, False), (1, 2.0**-52, True), (0, 0, True)],
)
def test_models_of_equal_means_are_copies_if_their_losses_differ_by_rounding(level, step, copies):
    a = pd.Series(level * (16 + np.arange(60) % 7) / 16, FRAME.index)
    sign = 1 - 2 * (np.arange(60) // 4 % 2)
    sign[:4] = 0  # signs add up to 0 in each fold
    table = pd.DataFrame({"a": a, "b": a + step * sign, "c": FRAME["c"]}).cvci.best_set(rng=0)
    assert table["caution"].str.contains("identical model").tolist() == [copies, copies, False]
    assert (table["statistic"].iloc[0] == 0) != copies


@pytest.mark.parametrize("gap", [0.5, 1e-3])
def test_a_model_that_is_never_better(gap):
    frame = FRAME.assign(up=FRAME["a"] + gap, more=FRAME["a"] + 2 * gap)
    table, alone = frame.cvci.best_set(rng=0), FRAME.cvci.best_set(rng=0)
    for name in ("up", "more"):
        assert table.loc[name, "p_value"] == 0
        assert not table.loc[name, "in_set"]
        assert np.isinf(table.loc[name, "statistic"])
        assert "dominated" in table.loc[name, "caution"]
    for name in FRAME:  # it does not count for the others
        assert table.loc[name, "p_value"] == alone.loc[name, "p_value"]
    assert table.loc["up", "lower_rank"] >= 2
    assert table.loc["more", "lower_rank"] >= 3
    pair = FRAME[["a"]].assign(up=FRAME["a"] + gap).cvci.best_set()
    assert list(pair["p_value"]) == [1, 0]
    assert list(pair["lower_rank"]) == list(pair["upper_rank"]) == [1, 2]


def test_screening_as_in_the_paper():
    frame = FRAME.assign(bad=FRAME["a"] + RNG.normal(2, 1, len(FRAME)),
                         noisy=FRAME["a"] + RNG.normal(9, 9, len(FRAME)))  # fmt: skip
    losses, folds = parts(frame)
    keep = oracle_many.screened(losses, folds, 0.005)
    table = frame.cvci.best_set(rng=0, screening=0.005, n_draws=50_000)
    out = [m for m, rest in enumerate(keep) if rest is None]
    assert out
    assert (table["p_value"].iloc[out] == 0.005).all()
    assert not table["in_set"].iloc[out].any()
    for m, name in enumerate(frame):
        if keep[m]:  # only these count: the same as a log of these alone
            some = [name, *(frame.columns[j] for j in keep[m])]
            alone = frame[some].cvci.best_set(rng=0, n_draws=50_000).loc[name, "p_value"]
            assert table.loc[name, "p_value"] == pytest.approx(alone, abs=0.02)
    assert table.attrs["screening"] == 0.005
    assert "screening" not in frame.cvci.best_set().attrs


def test_screening_leaves_ranks_as_they_are():
    for _ in range(3):
        frame, ranks = models(names="abcdefghijklmnopqrst", step=0.4), ["lower_rank", "upper_rank"]
        table, whole = (
            frame.cvci.best_set(rng=0, n_draws=500, screening=level)[ranks]
            for level in (0.01, None)
        )
        pd.testing.assert_frame_equal(table, whole, check_exact=True)


def test_screening_leaves_the_only_good_model_in():
    frame = FRAME[["a"]].assign(bad=FRAME["a"] + RNG.normal(9, 1, len(FRAME)))
    table = frame.cvci.best_set(screening=0.01)
    assert list(table["p_value"]) == [0.99, 0.01]


def test_words():
    refuses("Invalid center='median'", FRAME.cvci.best_set, center="median")
    refuses("at least 99 for alpha=0.01", FRAME.cvci.best_set, alpha=0.01, n_draws=50)
    for screening in (0.05, 0, "low"):
        refuses("a level between 0 and alpha=0.05", FRAME.cvci.best_set, screening=screening)
    with pytest.raises(LogError, match=r"folds of one point.*center='global'"):
        FRAME.droplevel("fold").assign(fold=range(60)).set_index(
            "fold", append=True
        ).cvci.best_set()
    refuses("at least two points", FRAME.iloc[:1].cvci.best_set, center="global")
    gap = FRAME.copy()
    gap.iloc[3, 1] = np.nan
    refuses("'b' has no loss", gap.cvci.best_set)
    assert gap.cvci.best_set(missing="drop").attrs["n_dropped"] == 1
    splits = FRAME.rename({0: 1}, level="repetition").iloc[:20]
    with pytest.raises(LogError, match="best_set needs one test set or a K-fold partition"):
        pd.concat([FRAME, splits]).cvci.best_set()


def test_each_task_costs_a_degree_of_freedom():
    index = product_index(source=range(3), point=range(4))
    log = pd.DataFrame(np.random.default_rng(0).random((12, 2)), index, list("ab"))
    leads = over_tasks(read(log))
    assert (leads.n, set(leads.df)) == (12, {9})


def judged(log, method):
    """The statistics of both models of a log, from compare."""
    t = log.cvci.compare(method=method)["statistic"].item()
    return [t, -t]


def test_leads_are_standardized_as_by_compare():
    """Refits of repeated folds, models nearly alike, metrics near their end, roots of means."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 120, 9))
    y = x[:, 0] + y[:, 0]
    fits = []
    for r in range(3):
        fold = rng.permutation(120) % 5
        for k in range(5):
            test = fold == k
            for model, columns in {"a": [0], "b": range(9)}.items():
                part = x[:, columns]
                beta = np.linalg.lstsq(part[~test], y[~test], rcond=None)[0]
                fits += [(r, k, p, model, y[p], part[p] @ beta) for p in np.flatnonzero(test)]
    table = pd.DataFrame(fits, columns=["repetition", "fold", "point", "model", "y_true", "y_pred"])
    one = table[table["repetition"] == 0]
    few = table.assign(y_true=(table["y_true"] > 1.5) * 1)
    few = few[few["repetition"] == 0]
    logs = {
        "refits": cvstats.read_log(table, loss="squared_error"),
        "one partition": cvstats.read_log(one, loss="squared_error"),
        "roots": cvstats.read_log(one, loss="rmse", folds="pool"),
        "few positives": cvstats.read_log(few, loss="auc", positive=1, folds="pool"),
    }
    for name, log in logs.items():
        found = log.cvci.best_set(rng=0, center="global")
        ours, plain = judged(log, None), judged(log, "wald")
        share = log.groupby("point").ngroups
        exact = np.sqrt((share - 1) / share)  # sums of squares are divided by n - 1
        assert found["statistic"].tolist() == pytest.approx([exact * t for t in ours]), name
        wider = abs(plain[0]) > 1.001 * abs(ours[0])
        assert wider == (name != "roots"), name
    assert logs["refits"].cvci.best_set(rng=0).attrs["interval_method"] == "refit_corrected"


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_seeds_that_differ_are_flagged(spread):
    """One of three equal models of five seeds was excluded in 19 of 25 such logs, silently."""
    rng = np.random.default_rng(5)
    index = product_index(repetition=range(5), point=range(400))
    odds = np.tile(rng.normal(size=400), 5)[:, None]
    odds = odds + np.repeat(rng.normal(0, spread, (5, 3)), 400, axis=0)
    log = pd.DataFrame((rng.random((2000, 3)) < 1 / (1 + np.exp(-odds))) * 1.0, index, list("abc"))
    for table in (log, log.to_xarray(), pd.concat({0: log}, names=["fold"])):
        cautions = cvstats.best_set(table, rng=0, n_draws=500).attrs["cautions"]
        assert ("unstable" in cautions) == (spread > 0)
        assert ("'by': ('point', 'repetition')" in str(cautions)) == (spread > 0)


def test_differences_that_depend_on_dates_for_long_are_flagged():
    """The losses of each model vary so much from day to day that their dependence is hidden."""
    rng, days = np.random.default_rng(0), pd.date_range("2024-01-01", periods=100)
    index = product_index(source=range(12), point=days)
    shared, walk = 10 * rng.normal(size=len(index)), rng.normal(size=100).cumsum()
    losses = {name: shared + rng.normal(size=len(index)) for name in "ab"}
    log = pd.DataFrame(losses, index)
    log["b"] += np.tile(walk, 12)
    assert (log.cvci.interval()["caution"] == "").all()
    assert (log.cvci.compare()["caution"] == "strong dependence").all()
    assert (log.cvci.best_set()["caution"] == "strong dependence").all()


@pytest.mark.parametrize("design", ["whole", "crossed"])
def test_carried_cells_have_degrees_of_freedom_and_cautions_of_their_own(design):
    """The losses of the second cell are skewed, and more dependent within their source."""
    rng = np.random.default_rng(3)
    source, point = np.divmod(np.arange(120), 15)
    noise = rng.normal(size=(3, 120))
    skewed = 0.2 * noise + rng.exponential(size=(3, 8))[:, source] ** 3
    log = xr.DataArray(
        np.stack([noise, skewed], axis=-1), dims=("model", "row", "cell"),
        coords={"model": list("abc"), "source": ("row", source),
                "point": ("row", point if design == "crossed" else np.arange(120))},
    )  # fmt: skip
    ask = {"n_draws": 500, "rng": 0}
    found = log.cvci.best_set(**ask)
    for cell in (0, 1):
        alone = log.isel(cell=cell).cvci.best_set(**ask)
        for name in ("statistic", "p_value", "caution"):
            np.testing.assert_array_equal(found[name].isel(cell=cell), alone[name], name)
    skewed = [["skewed" in label for label in row] for row in cvstats.cautions(found).values]
    assert np.array_equal(skewed, [[False, True]] * 3)
    nothing = (log * np.nan).cvci.best_set(**ask)
    assert (cvstats.cautions(nothing) == "no losses").all()
