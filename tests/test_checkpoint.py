"""An interrupted run goes on where it stopped, and ends with the same log."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import cvstats
from cvstats import LogError, plans
from cvstats.evaluation.fingerprint import mark

X, Y = (part.iloc[:60] for part in load_diabetes(return_X_y=True, as_frame=True))
PLAN = plans.bootstrap(30, rng=1)

SCRIPT = """
import sys
import cvstats
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

X, y = (part.iloc[:60] for part in load_diabetes(return_X_y=True, as_frame=True))
models = {"ridge": Ridge(0.1), "forest": RandomForestRegressor(20, random_state=0)}
plan = cvstats.plans.bootstrap(30, rng=1)
cvstats.evaluate(models, X, y, plan=plan, n_jobs=int(sys.argv[2]), checkpoint=sys.argv[1])
"""


def models():
    """Two estimators, one of them with randomness of its own."""
    return {"ridge": Ridge(0.1), "forest": RandomForestRegressor(20, random_state=0)}


def run(estimators=None, X=X, y=Y, plan=PLAN, **options):
    """Evaluate without a bar."""
    return cvstats.evaluate(estimators or models(), X, y, plan=plan, progress=False, **options)


@pytest.fixture(scope="module")
def uninterrupted():
    """The log of one go."""
    return run()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The file of one go."""
    path = tmp_path_factory.mktemp("whole") / "run.jsonl"
    run(checkpoint=path)
    return path.read_bytes()


def same(one, two):
    """Both logs are the same to the last bit."""
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert one.attrs == two.attrs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_run_ends_with_the_same_log(tmp_path, uninterrupted, n_jobs):
    path = tmp_path / "run.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), str(n_jobs)], stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if path.exists() and path.read_bytes().count(b"\n") > 8:
            break
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = path.read_bytes().count(b"\n") - 1
    assert 8 <= done < 62
    same(run(checkpoint=path), uninterrupted)
    assert path.read_bytes().count(b"\n") == 1 + 62


class Counting(RegressorMixin, BaseEstimator):
    """Predict zero, and count how often that was learned."""

    fits = 0

    def fit(self, X, y):
        """Count, and stop at the limit."""
        type(self).fits += 1
        if type(self).fits == 12:
            raise KeyboardInterrupt
        return self

    def predict(self, X):
        """Predict zero."""
        return np.zeros(len(X))


def test_no_fit_is_done_again(tmp_path):
    path, plan = tmp_path / "run.jsonl", plans.k_fold(20, rng=1)
    Counting.fits = 0
    with pytest.raises(KeyboardInterrupt):
        run({"a": Counting()}, plan=plan, checkpoint=path)
    assert path.read_bytes().count(b"\n") == 12
    log = run({"a": Counting()}, plan=plan, checkpoint=str(path))
    assert Counting.fits == 21  # the interrupted one was begun twice
    same(log, run({"a": Counting()}, plan=plan, checkpoint=path))
    assert Counting.fits == 21


@pytest.mark.parametrize("kept", ["torn", "header", "part of the header", "nothing"])
def test_a_torn_file_is_continued(tmp_path, uninterrupted, text, kept):
    path = tmp_path / "run.jsonl"
    lines = text.splitlines(keepends=True)
    path.write_bytes({
        "torn": b"".join(lines[:20]) + lines[20][:70],
        "header": lines[0],
        "part of the header": lines[0][:40],
        "nothing": b"",
    }[kept])  # fmt: skip
    same(run(checkpoint=path, n_jobs=2), uninterrupted)
    assert sorted(path.read_bytes().splitlines()) == sorted(text.splitlines())


def test_exact_numbers_survive(tmp_path):
    def odd(truth, guess):
        return np.resize([np.inf, np.nan, -0.0, 5e-324, 0.1], len(truth))

    path = tmp_path / "run.jsonl"
    log = run(loss=odd, plan=plans.k_fold(3, rng=1), checkpoint=path)
    again = run(loss=odd, plan=plans.k_fold(3, rng=1), checkpoint=path)
    assert log.to_numpy().tobytes() == again.to_numpy().tobytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plan": plans.bootstrap(30, rng=2)}, "the plan .with its seed."),
        ({"y": Y + 1}, "the data"),
        ({"X": X * 2}, "the data"),
        ({"X": X.rename(columns={"age": "years"})}, "the data"),
        ({"point": range(1, 61)}, "the data"),
        ({"groups": [0] * 60}, "the data"),
        ({"loss": "absolute_error"}, "the loss"),
        ({"loss": lambda t, f: t - f}, "the loss"),
        ({"estimators": {"ridge": Ridge(0.1)}}, "the estimators"),
        ({"estimators": {"ridge": Ridge(0.2), "forest": models()["forest"]}}, "the estimators"),
        ({"estimators": {"r": Ridge(0.1), "forest": models()["forest"]}, "y": Y + 1},
         "the data .* and the estimators"),
    ],
)  # fmt: skip
def test_another_run_is_refused(tmp_path, text, options, words):
    path = tmp_path / "run.jsonl"
    path.write_bytes(text)
    expected = (
        rf"belongs to another run: it differs in {words}.*plan=bootstrap\(.*Pass another path"
    )
    with pytest.raises(LogError, match=expected):
        run(**options, checkpoint=path)
    assert path.read_bytes() == text


@pytest.mark.parametrize("notes", [b"my notes\n", b"my notes", b'{"kind": "other"}\n', b"[1]\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, notes):
    path = tmp_path / "notes.txt"
    path.write_bytes(notes)
    with pytest.raises(LogError, match="is a file of something else, which is left as it is"):
        run(checkpoint=path)
    assert path.read_bytes() == notes


@pytest.mark.parametrize("line", [b"{}\n", b"garbage\n", b'{"fit": 0, "model": 9, "losses": ""}\n'])
def test_a_damaged_line_is_named(tmp_path, text, line):
    path = tmp_path / "run.jsonl"
    lines = text.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], line, *lines[4:]]))
    with pytest.raises(LogError, match=r"line 4 of checkpoint=.* is damaged"):
        run(checkpoint=path)


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(LogError, match="cannot be written.*a directory that exists"):
        run(checkpoint=tmp_path / "nowhere" / "run.jsonl")


def test_the_file_can_be_read_by_others(text):
    first, *rest = (json.loads(line) for line in text.decode().splitlines())
    assert first["kind"] == "cvstats.evaluate checkpoint 1"
    assert first["plan"] == str(PLAN)
    assert {(entry["fit"], entry["model"]) for entry in rest} == {
        (fit, model) for fit in range(31) for model in range(2)
    }


# --- marks ----------------------------------------------------------------------------------------

THINGS = """
import functools
import numpy as np, pandas as pd
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

def power(truth, guess, *, p=2):
    return [abs(t - g) ** p for t, g in zip(truth, guess)]

THINGS = {
    "search": make_pipeline(FunctionTransformer(np.log1p), Ridge(alpha=0.5)),
    "state": RandomForestRegressor(random_state=np.random.RandomState(1)),
    "kernel": GaussianProcessRegressor(RBF(2.0)),
    "function": power,
    "partial": functools.partial(power, p=3),
    "lambda": lambda t, g: {"a", "b", "c"} and abs(t - g),
    "set": {"a", "b", "c", "d"},
    "text": pd.DataFrame({"a": ["x", None], "b": pd.Categorical(["u", "v"])}),
    "lists": pd.Series([[1], [2]]),
    "objects": np.array(["a", 1], dtype=object),
    "sparse": sparse.csr_array(np.eye(3)),
    "class": Ridge,
}
"""


def test_marks_are_the_same_in_every_process():
    code = THINGS + (
        "from cvstats.evaluation.fingerprint import mark\n"
        "print({name: mark(thing) for name, thing in THINGS.items()})"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    marks = eval(found.pop())
    assert len(set(marks.values())) == len(marks)


def test_marks_tell_things_apart():
    def power(p):
        return lambda truth, guess: abs(truth - guess) ** p

    pairs = [
        (Ridge(1.0), Ridge(2.0)),
        (make_pipeline(StandardScaler(), Ridge()), make_pipeline(StandardScaler(), Ridge(2.0))),
        (FunctionTransformer(np.log1p), FunctionTransformer(np.exp)),
        (power(1), power(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (np.arange(6), np.arange(6).reshape(2, 3)),
        (np.arange(3), np.arange(3.0)),
        ([1, 2], [2, 1]),
        ("1", 1),
        (pd.Index(["a", "b"]), pd.Index(["b", "a"])),
    ]
    for one, two in pairs:
        assert mark(one) == mark(one)
        assert mark(one) != mark(two)
    assert mark(Path("a")) != mark(Path("b"))
