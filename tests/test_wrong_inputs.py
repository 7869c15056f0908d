"""Sixty wrong inputs: one message each, which names what is wrong, what is expected and a call.

Files, frames and options as people get them wrong. None of them is an error of another library.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import cvstats
from cvstats import LogError

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


def changed(**columns):
    """The table with other columns."""
    return TABLE.assign(**columns).set_index(["fold", "point"])


def evaluated(**options):
    """Evaluate a model."""
    given = {"estimators": Ridge(), "X": X, "y": Y, "cv": 3, "progress": False} | options
    return lambda tmp_path: cvstats.evaluate(**given)


CASES = {
    # files
    "no such file": (lambda p: cvstats.read_log(p / "nope.csv"), "nope.csv", "Expected the path"),
    "empty file": (file(""), "log.csv is empty", "Expected at least one"),
    "header only": (file("fold,point,loss\n"), "a header but no rows", "Expected at least one"),
    "binary file": (file(b"\x00\x01\x02\xff"), "log.csv is not text", "null byte"),
    "latin-1": (file("fold,loss\n0,1\n1,2\n".replace("fold", "f\xf6ld").encode("latin-1")),
                "log.csv could not be read", "encoding='latin-1'"),
    "no suffix": (file("a", name="log"), "has no suffix", "format='csv'"),
    "unknown suffix": (file("a", name="log.xlsx"), "ends in '.xlsx'", "Expected one of .csv"),
    "compressed": (file("a", name="log.csv.gz"), "is compressed (gz)", "gunzip log.csv.gz"),
    "not JSON": (file("{", name="log.json"), "is not a JSON document", "cut off"),
    "JSONL cut off": (file('{"fold": 1}\n{"fo', name="log.jsonl"), "line 2", "cut off"),
    "not Parquet": (file("abc", name="log.parquet"), "log.parquet could not be read", "damaged"),
    "no level": (file("a,b\n1,2\n"), "no column of losses", "read_log(path, fold=…"),
    "long rows": (file("fold,loss\n0,1,2,3\n1,2,3,4\n"), "more fields", "Expected equal"),
    "same names": (file("fold,loss,loss\n0,1,2\n"), "are called 'loss'", "Rename"),
    "dash in numbers": (file("fold,point,loss\n0,1,-\n0,2,3\n"), "'loss' has '-'", "na_values"),
    "decimal comma": (file("fold;point;loss\n0;1;0,5\n0;2;1,5\n"), "has '0,5'", "decimal=','"),
    "text losses": (file("fold,ridge\n0,good\n1,bad\n"), "as in 'good'", "Expected names"),
    "twice": (file("fold,point,loss\n0,1,2\n0,1,2\n"), "occurs twice", "drop_duplicates=True"),
    "bad mark": (file("fold,loss\n0,1\n", decimal="comma"), "decimal='comma'", "decimal=','"),
    "bad encoding": (file("fold,loss\n0,1\n", encoding="utf9"), "encoding 'utf9'", "'latin-1'"),
    "bad format": (file("fold,loss\n0,1\n", format="excel"), "format='excel'", "Expected one of"),
    "bad column": (file("fold,loss\n0,1\n", fold="split"), "'split'", "Expected"),
    "bad loss": (file("fold,y_true,y_pred\n0,1,1\n", loss="sqared_error"), "sqared", "squared_er"),
    "no loss": (file("fold,y_true,y_pred\n0,1,1\n"), "not losses", "loss='squared_error'"),
    "two models": (file("fold,y_true,a,b\n0,1,1,2\n", loss="mae"), "unknown", "prediction=…"),
    "folder": (lambda p: cvstats.read_log(p), "neither Parquet files nor", "scan_parquet(path)"),
    "text as path": (call("read_log", "fold,loss\n0,1\n"), "is text, not a path", "StringIO"),
    # frames and other objects
    "number": (call("wald", 3), "an int is not a loss log", "as_log("),
    "array": (call("wald", np.ones(4)), "numpy.ndarray is not a loss log", "as_log("),
    "list": (call("interval", [1.0, 2.0]), "a list is not a loss log", "as_log("),
    "dict": (call("summary", {"a": [1.0]}), "a dict is not a loss log", "as_log("),
    "None": (call("compare", None), "NoneType", "as_log("),
    "empty frame": (call("wald", LOG.iloc[:0]), "the log is empty", "Expected at least one"),
    "no index": (call("wald", TABLE), "'fold', 'point' are columns", "as_log(frame"),
    "NaN": (call("wald", changed(ridge=np.nan)), "missing", "missing='drop'"),
    "infinite": (call("wald", changed(ridge=np.inf)), "infinite", "Expected"),
    "text in a frame": (call("wald", changed(ridge="high")), "'ridge'", "Expected"),
    "dates as losses": (call("wald", changed(ridge=pd.Timestamp(0))), "'ridge'", "Expected"),
    "a result": (call("wald", LOG.cvci.wald()), "the result of wald", "Pass the losses from"),
    "a result in columns": (call("report", LOG.cvci.compare().reset_index(), "report.html"),
                            "the result of compare", "Pass the losses from"),
    "a Dataset of results": (call("clustered", LOG.to_xarray().cvci.wald().chunk()),
                             "the result of wald", "Pass the losses from"),
    "complex": (call("wald", changed(ridge=1j)), "'ridge'", "Expected"),
    "a fold twice": (call("wald", pd.concat([LOG, LOG])), "twice", "Expected"),
    "NaN labels": (call("wald", TABLE.assign(fold=np.nan).set_index(["fold", "point"])),
                   "fold", "Expected"),
    "one model": (call("compare", LOG["ridge"]), "one model", "a.cvci.compare(b)"),
    "other points": (call("compare", LOG["ridge"].iloc[:20], LOG["forest"].iloc[20:]),
                     "not evaluated on the same points", "Expected the same evaluations"),
    "no models": (call("wald", xr.Dataset()), "no variables", "Expected one"),
    "predictions": (call("losses", np.ones(3)), "no named predictions", "losses(frame, truth="),
    "bad truth": (call("losses", PREDICTED, truth="y"), "no column 'y'", "Expected truth="),
    "mixed labels": (call("losses", PREDICTED.assign(y_true="a"), loss="zero_one"), "text",
                     "Convert one"),
    "no probability": (call("losses", PREDICTED.assign(y_true=1, y_pred=3.0), loss="brier"),
                       "a predicted probability is 3", "Expected numbers from"),
    # options
    "alpha": (call("wald", LOG, alpha=95), "alpha=95", "such as 0.05"),
    "method": (call("interval", LOG, method="walt"), "method='walt'", "Did you mean 'wald'"),
    "adjust": (call("compare", LOG, adjust="tukey"), "adjust='tukey'", "Expected one of 'holm'"),
    "reference": (call("compare", LOG, reference="rigde"), "'rigde'", "Did you mean 'ridge'"),
    "margin": (call("equivalence", LOG), "margin", "Pass it"),
    "looks": (call("compare", LOG, anytime=np.array([10, 20])), "anytime=array", "True or False"),
    "no columns": (call("to_latex", pd.DataFrame()), "no columns", "Expected the result"),
    "negative margin": (call("equivalence", LOG, margin=-1), "margin=-1", "Expected"),
    "by": (call("interval", LOG, by="site"), "'site'", "Expected"),
    "seed": (call("best_set", LOG, rng="one"), "rng='one'", "Expected a whole number"),
    "bounds": (call("holdout", LOG.droplevel("fold")["ridge"], interval="betting"), "needs the",
               "bounds=(0, 1)"),
    "needs folds": (call("nested_cv", LOG), "outer", "cvstats.plans.nested_cv"),
    "no cv": (evaluated(cv=None), "cv is required", "such as cv=5"),
    "bad cv": (evaluated(cv="five"), "cv='five'", "such as cv=5"),
    "too many folds": (evaluated(cv=KFold(99)), "cannot split these data", "99"),
    "lengths": (evaluated(y=Y[:3]), "y has the shape (3,)", "Expected one value for each row"),
    "no estimator": (evaluated(estimators="Ridge"), "cannot clone", "{'ridge': Ridge()}"),
    "brier of numbers": (evaluated(loss="brier"), "y looks continuous", "Expected labels"),
    "save": (lambda p: cvstats.save_log(LOG, p / "log.xlsx"), ".xlsx", "Expected"),
    "save to nowhere": (lambda p: cvstats.save_log(LOG, p / "no" / "log.csv"), "no", "Expected"),
    "scan": (lambda p: cvstats.scan_parquet(p / "no.parquet"), "no.parquet", "Expected a Parquet"),
}  # fmt: skip


def test_there_are_sixty():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_one_message_says_what_is_wrong_and_what_to_do(name, tmp_path):
    wrong, value, way = CASES[name]
    with pytest.raises(LogError) as caught:
        wrong(tmp_path)
    said = str(caught.value)
    assert value in said, said
    assert way in said, said
    assert "\n" not in said, said
    assert len(said) < 900, said
