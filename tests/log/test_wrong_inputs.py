"""Files, frames and options as people get them wrong: one message says what, and what to do."""

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from sklearn.linear_model import Ridge

import cvstats

N = 40
RNG = np.random.default_rng(1)
TABLE = pd.DataFrame(
    {
        "fold": np.arange(N) % 4,
        "point": np.arange(N),
        "ridge": RNG.random(N),
        "forest": RNG.random(N),
    }
)
LOG = TABLE.set_index(["fold", "point"])
PREDICTED = TABLE.rename(columns={"ridge": "y_true", "forest": "y_pred"})
INDEXED = PREDICTED.set_index(["fold", "point"])
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=N)


def file(text, **options):
    """Read a file of some text."""

    def call(tmp_path):
        path = tmp_path / options.pop("name", "log.csv")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return cvstats.read_log(path, **options)

    return call


def call(function, *arguments, **options):
    """Call a function of cvstats."""
    return lambda tmp_path: getattr(cvstats, function)(*arguments, **options)


def lazy_predictions():
    """Predictions as a dask frame."""
    frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")
    return frames.from_pandas(PREDICTED, npartitions=2)


def evaluated(**options):
    """Evaluate a model."""
    given = {"estimators": Ridge(), "X": X, "y": Y, "cv": 3, "progress": False} | options
    return lambda tmp_path: cvstats.evaluate(**given)


CASES = {
    # files
    "empty file": (file(""), "log.csv is empty", "Expected at least one"),
    "no suffix": (file("a", name="log"), "has no suffix", "format='csv'"),
    "not JSON": (file("{", name="log.json"), "is not a JSON document", "cut off"),
    "JSONL cut off": (file('{"fold": 1}\n{"fo', name="log.jsonl"), "line 2", "cut off"),
    "deep JSON": (file('{"a":' + "[" * 100_000, name="log.jsonl"), "is not JSON", "Expected"),
    "not Parquet": (file("abc", name="log.parquet"), "log.parquet could not be read", "damaged"),
    "long rows": (file("fold,loss\n0,1,2,3\n1,2,3,4\n"), "more fields", "Expected equal"),
    "same names": (file("fold,loss,loss\n0,1,2\n"), "are called 'loss'", "Rename"),
    "bad encoding": (file("fold,loss\n0,1\n", encoding="utf9"), "encoding 'utf9'", "'latin-1'"),
    "bad format": (file("fold,loss\n0,1\n", format="excel"), "format='excel'", "Expected one of"),
    "text as path": (call("read_log", "fold,loss\n0,1\n"), "is text, not a path", "StringIO"),
    # frames and other objects
    "a result": (call("wald", LOG.cvci.wald()), "the result of wald", "Pass the losses from"),
    "a result in columns": (call("report", LOG.cvci.compare().reset_index(), "report.html"),
                            "the result of compare", "Pass the losses from"),
    "a Dataset of results": (call("clustered", LOG.to_xarray().cvci.wald().chunk()),
                             "the result of wald", "Pass the losses from"),
    "samples, not repetitions": (call("interval", TABLE.set_index(["fold", "point"]).rename_axis(
        index={"fold": "sample"}).assign(count=[0, 1] * (N // 2)).set_index("count", append=True)),
        "no level 'repetition'", "If 'sample' numbers the bootstrap samples, rename"),
    "a table of moments": (call("wald", LOG.cvci.moments()), "the result of moments", "Pass the"),
    "moments of an array": (call("wald", LOG.to_xarray().cvci.moments()), "the result of moments",
                            "Pass the losses from"),
    "a path": (lambda p: cvstats.interval(p / "log.csv"), "is not a loss log",
               "Read a file with cvstats.read_log("),
    "predictions": (call("interval", INDEXED), "'y_true' is a column", "Compute them"),
    "a Dataset of predictions": (call("compare", INDEXED.to_xarray()), "'y_true' is a variable",
                                 "cvstats.losses(frame, truth='y_true'"),
    "an array of predictions": (call("summary", INDEXED.to_xarray().to_array("model")),
                                "'y_true' is a model of this array", "Compute them"),
    "lazy predictions": (lambda p: cvstats.wald(lazy_predictions()), "'y_true' is a column",
                         "Compute them"),
    "own predictions": (call("wald", cvstats.datasets.load("diabetes")), "'y_true' is a column",
                        "Compute them"),
    "bad truth": (call("losses", PREDICTED, truth="y"), "no column 'y'", "Expected truth="),
    "no probability": (call("losses", PREDICTED.assign(y_true=1, y_pred=3.0), loss="brier"),
                       "a predicted probability is 3", "Expected numbers from"),
    # options
    "looks": (call("compare", LOG, anytime=np.array([10, 20])), "anytime=array", "True or False"),
    "no columns": (call("to_latex", pd.DataFrame()), "no columns", "Expected the result"),
    "seed": (call("best_set", LOG, rng="one"), "rng='one'", "Expected a whole number"),
    "bad cv": (evaluated(cv="five"), "cv='five'", "such as cv=5"),
    "lengths": (evaluated(y=Y[:3]), "y has the shape (3,)", "Expected one value for each row"),
    "no estimator": (evaluated(estimators="Ridge"), "cannot clone", "{'ridge': Ridge()}"),
    "save": (lambda p: cvstats.save_log(LOG, p / "log.xlsx"), ".xlsx", "Expected"),
}  # fmt: skip


@pytest.mark.parametrize("form", ["frame", "dataset", "array", "dask"])
def test_a_column_truth_is_no_model(form):
    """In arrays and frames with levels it was one of the models, perhaps the best."""
    frame = INDEXED.rename(columns={"y_true": "truth"})
    log = {
        "frame": lambda: frame, "dataset": frame.to_xarray,
        "array": lambda: frame.to_xarray().to_array("model"),
        "dask": lambda: pytest.importorskip("dask.dataframe").from_pandas(
            frame.reset_index(), npartitions=2
        ),
    }[form]()  # fmt: skip
    with pytest.raises(cvstats.LogError, match="^'truth' is a .* Compute them"):
        cvstats.wald(log)


@pytest.mark.parametrize("name", CASES)
def test_one_message_says_what_is_wrong_and_what_to_do(name, tmp_path):
    wrong, value, way = CASES[name]
    said = refusal(wrong, tmp_path)
    assert value in said, said
    assert way in said, said
    assert "\n" not in said, said
    assert len(said) < 900, said
