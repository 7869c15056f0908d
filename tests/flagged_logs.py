"""Logs that have a finding or a caution, and the cautions of a result."""

import numpy as np
import pandas as pd

import cvstats


def labels(result):
    """All labels of cautions in a result."""
    text = cvstats.cautions(result).to_numpy().astype(str).ravel()
    return {label for row in text for label in row.split(", ") if label}


def autoregressive(noise, correlation):
    """The noise plus a share of the value before, along the first dimension."""
    for at in range(1, len(noise)):
        noise[at] += correlation * noise[at - 1]
    return noise


def k_fold(n=300, k=10, repetitions=1, losses=None, seed=0):
    """A K-fold log, its points in random folds of nearly equal size."""
    draw = np.random.default_rng(seed)
    parts = []
    for r in range(repetitions):
        folds = draw.permutation(np.arange(n) % k)
        parts.append(pd.MultiIndex.from_arrays(
            [np.full(n, r), folds, np.arange(n)], names=["repetition", "fold", "point"]
        ))  # fmt: skip
    index = parts[0].append(parts[1:])
    if losses is None:
        losses = np.tile(draw.uniform(1, 2, n), repetitions) + draw.normal(0, 0.01, len(index))
    return pd.Series(np.asarray(losses, dtype=float), index, name="model")


SOUND = k_fold(repetitions=5)


def with_outlier():
    losses = SOUND.copy()
    losses.iloc[:8] = 50.0
    return losses


def by_source(sources, folds=None, n=40):
    label = np.repeat(np.arange(sources), n)
    index = [label, np.arange(len(label))]
    names = ["source", "point"]
    if folds is not None:
        index, names = [np.arange(len(label)) % folds, *index], ["fold", *names]
    return pd.Series(
        np.random.default_rng(3).uniform(size=len(label)),
        pd.MultiIndex.from_arrays(index, names=names),
    )


def heavy(n=300, power=2):
    return k_fold(n, losses=np.random.default_rng(1).standard_t(3, n) ** power)


def zero_one(n, errors):
    return pd.Series(1.0 * (np.arange(n) < errors), k_fold(n).index)


def one_partition():
    """Two models that one partition finds alike."""
    rng = np.random.default_rng(0)
    log = k_fold(200, losses=rng.normal(10, 1, 200)).to_frame("a")
    return log.assign(b=log["a"] + rng.normal(0, 0.1, 200))


def splits(repetitions, n=100, size=20, level="repetition"):
    draw = np.random.default_rng(5)
    points = np.concatenate([draw.choice(n, size, replace=False) for _ in range(repetitions)])
    index = [np.repeat(np.arange(repetitions), size), points]
    return pd.Series(
        draw.uniform(size=len(points)), pd.MultiIndex.from_arrays(index, names=[level, "point"])
    )


def missing():
    losses = SOUND.copy()
    losses.iloc[[3, 9]] = [np.nan, np.inf]
    return losses


def incomplete():
    return SOUND[SOUND.index.get_level_values("point") != SOUND.index.get_level_values(0) + 5]


def unequal_folds():
    folds = np.repeat(np.arange(6), [10, 21, 21, 21, 21, 21])
    index = pd.MultiIndex.from_arrays([folds, np.arange(115)], names=["fold", "point"])
    return pd.Series(np.random.default_rng(7).uniform(size=115), index)


def unequal_variances():
    losses = k_fold()
    wild = losses.index.get_level_values("fold") == 3
    losses[wild] = np.where(np.arange(wild.sum()) % 2, 0.2, 2.8)
    return losses


def disagreeing():
    losses = k_fold(repetitions=4)
    return losses + 0.05 * (losses.index.get_level_values(0) % 2)


def drifting():
    losses = k_fold(repetitions=8)
    return losses + 0.001 * losses.index.get_level_values(0)


def differing():
    """Two models whose difference has another sign in every second repetition."""
    losses = k_fold(repetitions=4)
    sign = 1 - 2 * (losses.index.get_level_values(0) % 2)
    return pd.DataFrame({"a": losses + 0.001 * sign * losses, "b": losses, "c": losses + 1})


def bootstrap_log(samples, n=60):
    """The nearest neighbour of noise, which interpolates: no error on points in bag."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=n), draw.normal(size=n)
    counts = np.vstack([np.ones(n, int), draw.multinomial(n, np.full(n, 1 / n), samples)])
    gaps = np.abs(x - x[:, None])
    nearest = [np.where(drawn > 0, gaps, np.inf).argmin(axis=1) for drawn in counts]
    losses = np.array([(y[near] - y) ** 2 for near in nearest])
    index = pd.MultiIndex.from_product(
        [range(samples + 1), range(n)], names=["repetition", "point"]
    )
    table = pd.DataFrame({"count": counts.ravel(), "loss": losses.ravel()}, index)
    return table.set_index("count", append=True)["loss"]


def dated(correlation, n=300, seed=0, **text):
    """Squared errors of a series whose errors depend on those of the day before."""
    draw = np.random.default_rng(seed)
    errors = autoregressive(np.r_[0.0, draw.normal(size=n - 1)], correlation)
    dates = pd.date_range("2020-01-01", periods=n)
    days = dates.strftime("%Y-%m-%d") if text else dates
    index = pd.MultiIndex.from_arrays([draw.permutation(n) % 5, days], names=["fold", "point"])
    return pd.Series(np.abs(errors), index).iloc[draw.permutation(n)]


def stored_twice(n=100, repetitions=3, decimals=9, copies=2):
    """Each point under two ids, tested by the mean and a line."""
    draw = np.random.default_rng(0)
    x = np.tile(draw.normal(size=n), copies)
    y = np.tile(draw.normal(size=n), copies).round(decimals)
    if copies == 1:
        x, y = draw.normal(size=2 * n), draw.normal(size=2 * n).round(decimals)
    parts = []
    for r in range(repetitions):
        fold = draw.permutation(2 * n) % 10
        losses = np.empty((2 * n, 2))
        for k in range(10):
            test, train = fold == k, fold != k
            line = np.polyfit(x[train], y[train], 1)
            losses[test, 0] = (y[test] - y[train].mean()) ** 2
            losses[test, 1] = (y[test] - np.polyval(line, x[test])) ** 2
        index = [np.full(2 * n, r), fold, np.arange(2 * n)]
        parts.append(
            pd.DataFrame(losses, pd.MultiIndex.from_arrays(index), columns=["mean", "line"])
        )
    return pd.concat(parts).rename_axis(["repetition", "fold", "point"])


def near_models(m, n=200):
    """Models that are equally good, on one test set."""
    losses = np.random.default_rng(0).uniform(1, 2, (n, m))
    return pd.DataFrame(losses, pd.RangeIndex(n, name="point"))


TWINS = pd.DataFrame({"a": SOUND, "b": SOUND + 1, "c": SOUND})


def turned_round():
    index = pd.MultiIndex.from_arrays([range(40), np.arange(40) % 4], names=["point", "fold"])
    truth = np.arange(40) // 4 % 2
    return cvstats.losses(pd.DataFrame({"y_true": truth, "y_pred": -truth}, index), loss="auc")


def censored():
    times = np.random.default_rng(2).exponential(size=120)
    table = pd.DataFrame({"y_true": times, "y_pred": -times, "event": np.arange(120) % 3 > 0})
    return cvstats.losses(table.rename_axis("point"), loss="concordance", event="event")


def labels_as_scores():
    table = pd.DataFrame({"fold": np.arange(90) % 3, "y_true": np.arange(90) // 3 % 2})
    table["y_pred"] = table["y_true"] ^ (np.arange(90) // 3 % 5 == 0)
    return cvstats.losses(table.rename_axis("point"), loss="auc")


FINDINGS = {
    "CVS001": (pd.concat([SOUND, SOUND]), None, "appears twice"),
    "CVS002": (missing(), 2, "2 losses are missing or infinite"),
    "CVS003": (incomplete(), 1 / 300, "tests only 299 of the 300 points"),
    "CVS004": (SOUND.droplevel(["fold", "point"]), None, "no level 'point'"),
    "CVS005": (with_outlier(), None, "of the sum of squares"),
    "CVS006": (k_fold(2000, losses=np.random.default_rng(1).pareto(1.2, 2000)), None, "power law"),
    "CVS007": (with_outlier(), None, "the log has only 300"),
    "CVS008": (k_fold(25, 5), 25, "only 25 points"),
    "CVS009": (zero_one(200, 4), 4, "for only 4 points"),
    "CVS010": (SOUND * 0 + 2, 2, "every loss is 2"),
    "CVS011": (-SOUND, 1, "are these scores?"),
    "CVS012": (unequal_folds(), 2.1, "largest fold has 21 points and the smallest 10"),
    "CVS013": (unequal_variances(), None, "times that of the median fold"),
    "CVS014": (k_fold(k=3), 3, "trained on only 67% of the points"),
    "CVS015": (by_source(4), 4, "only 4 sources"),
    "CVS016": (splits(6), 6, "only 6 random splits"),
    "CVS017": (disagreeing(), None, "standard errors"),
    "CVS018": (drifting(), None, "drifts over the repetitions"),
    "CVS019": (TWINS, 1, "identical to that of a"),
    "CVS020": (by_source(12, folds=5), 12, "12 of 12 sources occur in several folds"),
    "CVS021": (
        SOUND.rename_axis(index={"fold": "cv_fold"}),
        10,
        "If it contains the folds, type log.rename_axis(index={'cv_fold': 'fold'})",
    ),
    "CVS022": (1 - zero_one(200, 4), 0.98, "are these scores? Smaller losses are better, so"),
    "CVS023": (SOUND.groupby(["repetition", "fold"]).mean(), 50, "one loss for each of 50 splits"),
    "CVS024": (differing(), 3, "the one between a and b, depend on the training points"),
    "CVS025": (bootstrap_log(19), 19, "only 19 bootstrap samples"),
    "CVS026": (bootstrap_log(120), 0, "training points is only 0% of the out-of-bag error"),
    "CVS027": (dated(0.6), None, "losses on successive dates have a correlation of 0."),
    "CVS028": (
        stored_twice(),
        None,
        "exactly the same losses as one other evaluation in their fold",
    ),
    "CVS029": (
        near_models(5),
        5,
        "the errors of 5 models, including this one, are within two standard errors of the "
        "smallest",
    ),
    "CVS030": (turned_round(), 0.0, "do larger predictions mean the negative class?"),
    "CVS031": (censored(), None, "some times are censored"),
    "CVS032": (labels_as_scores(), None, "as predicted labels do"),
}
"""For each code a log, the value of its finding, and words of it."""
