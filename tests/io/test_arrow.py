"""Frames of polars, Arrow and DuckDB: every function answers them as it answers pandas."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from calls import refuses
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge
from together import together

import cvstats
from cvstats import LogError
from cvstats.log.tables import from_arrow
from cvstats.registry import FUNCTIONS

N = 120
RNG = np.random.default_rng(7)
TABLE = pd.DataFrame(
    {
        "fold": np.arange(N) % 6,
        "source": np.array(list("abcdef"))[np.arange(N) % 6],
        "point": [f"p{i}" for i in range(N)],
        "ridge": RNG.random(N),
        "forest": RNG.random(N),
    }
)
LEVELS = ["fold", "source", "point"]
LOG = TABLE.set_index(LEVELS)
FRAMES = {
    "polars": pl.DataFrame(TABLE.to_dict("list")),
    "arrow": pa.table(TABLE.to_dict("list")),
    "duckdb": duckdb.from_arrow(pa.table(TABLE.to_dict("list"))),
}
POLARS = FRAMES["polars"]
OPTIONS = {
    "best_set": {"rng": 1, "n_draws": 199}, "passes": {"k": 1},
    "contrast": {"by": "source", "between": ("a", "b")},
    "equivalence": {"margin": 0.1}, "power": {"effect": 0.1},
    "rope": {"margin": 0.1}, "winner": {"rng": 1, "n_draws": 199},
}  # fmt: skip


def answer(call):
    """The result of a call, or the text of its refusal."""
    try:
        found = call()
    except LogError as error:
        return str(error)
    return str(found) if not isinstance(found, (pd.DataFrame, pd.Series)) else found


def same(mine, yours):
    """Whether two answers are the same, for tables with all labels and attrs."""
    if isinstance(yours, pd.DataFrame):
        pd.testing.assert_frame_equal(mine, yours)
        assert mine.attrs == yours.attrs
    elif isinstance(yours, pd.Series):
        pd.testing.assert_series_equal(mine, yours)
    else:
        assert mine == yours


@together([name for name in FUNCTIONS if name != "report"])
def test_a_log_in_columns_is_one_in_an_index(name):
    function, options = getattr(cvstats, name), OPTIONS.get(name, {})
    expected = answer(lambda: function(LOG, **options))
    libraries = FRAMES if name in ("wald", "compare", "moments", "summary") else ["polars"]
    for library in libraries:  # one function converts the frames of all libraries
        same(answer(lambda frame=FRAMES[library]: function(frame, **options)), expected)
    stream = FRAMES["arrow"].to_reader()  # which can be read once
    same(answer(lambda: function(stream, **options)), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda one, two, log: cvstats.compare(one, two),
        lambda one, two, log: cvstats.difference(one, two),
        lambda one, two, log: cvstats.equivalence(one, two, margin=0.1),
        lambda one, two, log: cvstats.power(one, two, effect=0.1),
        lambda one, two, log: cvstats.Moments.of_log(log).wald(),
    ],
)
def test_two_logs_and_groups(call):
    one, two = LOG[["ridge"]], LOG[["forest"]]
    same(
        answer(lambda: call(POLARS.drop("forest"), POLARS.drop("ridge"), POLARS)),
        answer(lambda: call(one, two, LOG)),
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda log, *_: cvstats.wald(log, by="site"),
        lambda _, one, two: cvstats.compare(one, two, by="site"),
        lambda log, *_: cvstats.summary(log, by="site"),
        lambda log, *_: cvstats.clustered(log, by=("source", "site")),
        lambda log, *_: cvstats.contrast(log, by="site", between=("v", "w")),
        lambda log, *_: cvstats.moments(log, by=["fold", "site"]),
        lambda log, *_: cvstats.largest_differences(log, reference="ridge", by="site"),
    ],
)
def test_groups_are_columns_too(call):
    table = TABLE.assign(site=np.array(list("vwxy"))[np.arange(N) % 4])
    logs = [table.drop(columns=names) for names in ([], ["forest"], ["ridge"])]
    same(
        answer(lambda: call(*(pl.DataFrame(log.to_dict("list")) for log in logs))),
        answer(lambda: call(*(log.set_index([*LEVELS, "site"]) for log in logs))),
    )


@pytest.mark.parametrize(
    "call",
    [
        cvstats.interval,
        lambda log: cvstats.moments(log, by=()),
        lambda log: cvstats.compare(log, by="source"),
        lambda log: cvstats.Moments.of_log(log).interval(),
    ],
)
def test_names_of_metrics_are_a_level(call):
    parts = [TABLE.assign(metric="mae"), TABLE.assign(metric="gap", ridge=RNG.random(N))]
    table = pd.concat(parts, ignore_index=True)
    log = table.set_index([*LEVELS, "metric"])
    same(answer(lambda: call(pl.DataFrame(table.to_dict("list")))), answer(lambda: call(log)))


PREDICTIONS = TABLE.rename(columns={"ridge": "y_true", "forest": "y_pred"})


@pytest.mark.parametrize("loss", ["squared_error", "rmse", ["rmse", "absolute_error"]])
def test_predictions(loss):
    frame = pl.DataFrame(PREDICTIONS.to_dict("list"))
    same(cvstats.losses(frame, loss=loss), cvstats.losses(PREDICTIONS, loss=loss))
    same(cvstats.read_log(frame, loss=loss), cvstats.read_log(PREDICTIONS, loss=loss))
    models, others = {"a": frame, "b": frame}, {"a": PREDICTIONS, "b": PREDICTIONS}
    same(cvstats.read_log(models, loss=loss), cvstats.read_log(others, loss=loss))


def test_counts_and_diagrams_of_predictions():
    """They asked for a DataFrame where they were given one."""
    table = TABLE.assign(y_true=np.arange(N) % 3 // 2)
    for frame in (pl.DataFrame(table.to_dict("list")), pa.table(table.to_dict("list"))):
        counts, plain = (
            cvstats.LabelCounts.of_predictions(each, prediction="ridge", threshold=0.5)
            for each in (frame, table)
        )
        same(counts.moments("f1").wald(), plain.moments("f1").wald())
        bars, expected = (
            cvstats.plot.reliability(each, prediction=["ridge"], bins=4, ax=Figure().subplots())
            for each in (frame, table)
        )
        np.testing.assert_array_equal(bars.lines[1].get_ydata(), expected.lines[1].get_ydata())


def test_tidy_tables():
    tidy = TABLE.melt(LEVELS, var_name="model", value_name="loss")
    frame = pl.DataFrame(tidy.to_dict("list"))
    same(cvstats.as_log(frame), cvstats.as_log(tidy))
    same(cvstats.read_log(frame), cvstats.read_log(tidy))
    refuses(r"model", cvstats.wald, frame)


def test_estimators_on_polars_data():
    X, y = POLARS.select("ridge"), POLARS["forest"]
    log = cvstats.evaluate(Ridge(), X, y, cv=5, groups=POLARS["source"], progress=False)
    other = cvstats.evaluate(
        Ridge(), TABLE[["ridge"]], TABLE["forest"], cv=5, groups=TABLE["source"], progress=False
    )
    pd.testing.assert_series_equal(log, other, check_index_type=False)


def test_types_that_pandas_does_not_compute_with():
    relation = duckdb.sql(
        "select 1::decimal(10, 3) as price, date '2024-05-01' as day, null::int as n, 'a' as word"
    )
    found = from_arrow(relation)
    assert found["price"].dtype == np.float64
    assert found["day"].dtype.kind == "M"
    assert found["n"].isna().all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cvstats.wald(POLARS["ridge"]), "Series is not a loss log.*polars, Arrow or Duck"),
        (lambda: cvstats.read_log(POLARS.lazy()), r"Load it into memory: read_log\(frame.coll"),
        (lambda: cvstats.wald(POLARS.head(0)), "the log is empty"),
        (lambda: cvstats.wald(POLARS.with_columns(pl.lit("x").alias("note"))), "note"),
    ],
)
def test_refusals(call, words):
    refuses(words, call)
