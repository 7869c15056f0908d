"""An interrupted run goes on where it stopped, and ends with the same log."""

import functools
import importlib
import os
import pickle
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
from cvstats.evaluation import fingerprint, read_result

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
cvstats.evaluate(models, X, y, plan=plan, n_jobs=2, checkpoint=sys.argv[1])
"""


def models():
    """Two estimators, one of them with randomness of its own."""
    return {"ridge": Ridge(0.1), "forest": RandomForestRegressor(20, random_state=0)}


def run(estimators=None, X=X, y=Y, plan=PLAN, **options):
    """Evaluate without a bar."""
    return cvstats.evaluate(estimators or models(), X, y, plan=plan, progress=False, **options)


def kept(folder):
    """The results that a folder holds, by their paths."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*.fit")}


def same(one, two):
    """Both logs are the same to the last bit."""
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert one.attrs == two.attrs


@pytest.mark.process
def test_a_killed_run_of_two_processes_ends_with_the_log_of_one(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if len(kept(folder)) > 8:
            break
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = kept(folder)
    assert 8 <= len(done) < 62
    same(run(checkpoint=folder), run())
    found = kept(folder)
    assert len(found) == 62
    assert {path: found[path] for path in done} == done


FITS = []


class Counting(RegressorMixin, BaseEstimator):
    """Predict zero, and count how often that was learned."""

    def fit(self, X, y):
        """Count, and stop at the limit."""
        FITS.append(len(y))
        if len(FITS) == 12:
            raise KeyboardInterrupt
        return self

    def predict(self, X):
        """Predict zero."""
        return np.zeros(len(X))


def test_no_fit_is_done_again(tmp_path):
    folder, plan = tmp_path / "a" / "run", plans.k_fold(20, rng=1)
    FITS.clear()
    with pytest.raises(KeyboardInterrupt):
        run({"a": Counting()}, plan=plan, checkpoint=folder)
    assert len(kept(folder)) == 11
    log = run({"a": Counting()}, plan=plan, checkpoint=str(folder))
    assert len(FITS) == 21  # the interrupted one was begun twice
    same(log, run({"a": Counting()}, plan=plan, checkpoint=folder))
    assert len(FITS) == 21
    run({"b": Counting()}, plan=plan, checkpoint=folder, point=range(1, 61))  # only names differ
    assert len(FITS) == 21


def test_every_flipped_bit_is_noticed(tmp_path):
    options = {"estimators": {"a": Ridge()}, "plan": plans.bootstrap(1, rng=1)}
    log = run(**options, checkpoint=tmp_path)
    for path, whole in kept(tmp_path).items():
        for bit in range(0, 8 * len(whole), 29):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            assert read_result(path) is None
        path.write_bytes(whole)
        assert read_result(path) is not None
    one, two = list(kept(tmp_path).items())[:2]
    two[0].write_bytes(one[1])  # whole, and of another fit
    same(run(**options, checkpoint=tmp_path), log)


class Planted:
    """Executes something when it is unpickled."""

    def __reduce__(self):
        return FITS.append, (1,)


def test_nothing_that_lies_in_the_folder_is_executed(tmp_path):
    options = {"estimators": {"a": Ridge()}, "plan": plans.k_fold(2, rng=1)}
    log = run(**options, checkpoint=tmp_path)
    FITS.clear()
    for path in kept(tmp_path):
        path.write_bytes(pickle.dumps(Planted()))
    same(run(**options, checkpoint=tmp_path), log)
    assert not FITS


def cubed(truth, guess):
    """A loss."""
    return np.abs(truth - guess) ** 3


@pytest.mark.parametrize(
    ("options", "new_fits"),
    [
        ({}, 0),
        ({"plan": plans.k_fold(3, rng=2)}, 3),
        ({"y": Y + 1}, 2),
        ({"X": X * 2}, 2),
        ({"X": X.rename(columns={"age": "years"})}, 2),
        ({"loss": "absolute_error"}, 2),
        ({"loss": cubed}, 2),
        ({"estimators": {"a": Ridge(0.2)}}, 2),
        ({"estimators": {"a": Ridge(0.1), "b": Ridge(0.2)}}, 2),
        ({"estimators": {"a": Ridge(0.1).fit(X, Y)}}, 0),
        ({"groups": [0] * 60}, 0),
    ],
)
def test_fits_are_used_again_for_the_same_question_only(tmp_path, options, new_fits):
    every = {"estimators": {"a": Ridge(0.1)}, "plan": plans.k_fold(2, rng=1)}
    run(**every, checkpoint=tmp_path)
    assert len(kept(tmp_path)) == 2
    same(run(**every | options, checkpoint=tmp_path), run(**every | options))
    assert len(kept(tmp_path)) == 2 + new_fits


def test_failures_are_not_kept(tmp_path):
    FITS[:] = [0] * 20
    run({"a": Counting()}, plan=plans.k_fold(3, rng=1), checkpoint=tmp_path)
    y = Y.astype(object)
    y.iloc[-1] = "six"
    with pytest.raises(LogError, match=r"model 'a' failed at fold="):
        run({"a": Ridge()}, y=y, plan=plans.k_fold(3, rng=1), checkpoint=tmp_path)
    assert len(kept(tmp_path)) == 3


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("notes.txt", r"notes.txt' is not a folder. Expected the path of a folder"),
        ("notes.txt/run", "cannot be written: Not a directory"),
        (os.devnull, "is not a folder"),
        (3, "checkpoint= is an int. Expected the path"),
    ],
)
def test_paths_that_are_not_folders(tmp_path, monkeypatch, path, words):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("my notes")
    with pytest.raises(LogError, match=words):
        run(checkpoint=path)
    assert Path("notes.txt").read_text() == "my notes"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(LogError, match="cannot be written: permission denied"):
        run(checkpoint=tmp_path)


def local_class():
    """A class that another process cannot import."""

    class Local(Ridge):
        pass

    return Local()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"loss": lambda t, f: t - f}, "loss=<lambda>"),
        ({"estimators": {"a": local_class()}}, "model 'a'"),
        (
            {"estimators": {"b": make_pipeline(FunctionTransformer(lambda x: x), Ridge())}},
            "model 'b'",
        ),
    ],
)
def test_what_cannot_be_pickled_is_named(tmp_path, options, what):
    words = f"{what} cannot be pickled, which checkpoint= needs: .*Define functions and classes by"
    with pytest.raises(LogError, match=words):
        run(**options, checkpoint=tmp_path)
    run(**options, plan=plans.k_fold(2, rng=1))


# --- edited code ----------------------------------------------------------------------------------

MODULE = """
import helpers_{n}
from functools import lru_cache, wraps
from sklearn.base import BaseEstimator, RegressorMixin

DEFAULT = 1.0

def shift():
    return 13.0

@lru_cache
def remembered():
    return 0.0

def doubled(method):
    @wraps(method)
    def inner(self, X):
        return 2 * method(self, X)
    return inner

class Base(RegressorMixin, BaseEstimator):
    def predict(self, X):
        return self.found(X) + shift() + remembered() + helpers_{n}.offset()

class Model(Base):
    factor = 3.0

    def fit(self, X, y):
        return self

    @property
    def constant(self):
        return 5.0

    @staticmethod
    def start():
        return 7.0

    @doubled
    def found(self, X):
        return X.iloc[:, 0] * self.factor + DEFAULT + self.constant + self.start()

def loss(truth, guess):
    return abs(truth - guess)
"""
HELPERS = """
def offset():
    return 11.0
"""


def import_model(folder, monkeypatch, old="", new=""):
    """Write the module, edited, and import it as a new process would."""
    n = len(str(folder)) and folder.name.replace("-", "_")
    (folder / f"models_{n}.py").write_text(MODULE.format(n=n).replace(old, new))
    (folder / f"helpers_{n}.py").write_text(HELPERS.replace(old, new))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in (f"models_{n}", f"helpers_{n}"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(f"models_{n}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* self.factor", "/ self.factor"),
        ("factor = 3.0", "factor = 4.0"),
        ("DEFAULT = 1.0", "DEFAULT = 2.0"),
        ("return 5.0", "return 6.0"),
        ("return 7.0", "return 8.0"),
        ("return 13.0", "return 14.0"),
        ("def remembered():\n    return 0.0", "def remembered():\n    return 1.0"),
        ("return 2 * method", "return 3 * method"),
        ("self.found(X) +", "self.found(X) -"),
        ("return 11.0", "return 12.0"),
        ("abs(truth - guess)", "(truth - guess) ** 2"),
    ],
)
def test_losses_of_edited_code_are_computed_anew(tmp_path, monkeypatch, old, new):
    options = {"plan": plans.k_fold(2, rng=1)}
    module = import_model(tmp_path, monkeypatch)
    first = run(module.Model(), loss=module.loss, **options, checkpoint=tmp_path / "run")
    edited = import_model(tmp_path, monkeypatch, old, new)
    second = run(edited.Model(), loss=edited.loss, **options, checkpoint=tmp_path / "run")
    assert not np.allclose(first, second)
    pd.testing.assert_series_equal(second, run(edited.Model(), loss=edited.loss, **options))


@pytest.mark.parametrize(
    ("old", "new"),
    [("\nDEFAULT", "# a comment\n\nDEFAULT"), ("def loss", "def other(): pass\n\ndef loss")],
)
def test_code_that_only_moved_is_the_same(tmp_path, monkeypatch, old, new):
    options = {"plan": plans.k_fold(3, rng=1), "checkpoint": tmp_path / "run"}
    for edit in (("", ""), (old, new)):
        module = import_model(tmp_path, monkeypatch, *edit)
        run(module.Model(), loss=module.loss, **options)
    assert len(kept(tmp_path)) == 3


def test_another_version_of_a_library_is_other_code(monkeypatch):
    before = fingerprint("model", Ridge())
    monkeypatch.setattr("sklearn.__version__", "999.0")
    assert fingerprint("model", Ridge()) != before


# --- fingerprints ---------------------------------------------------------------------------------

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

def uses_a_set(truth, guess):
    return abs(truth - guess) if truth in {"a", "b", "c"} else 0.0

THINGS = {
    "search": make_pipeline(FunctionTransformer(np.log1p), Ridge(alpha=0.5)),
    "state": RandomForestRegressor(random_state=np.random.RandomState(1)),
    "kernel": GaussianProcessRegressor(RBF(2.0)),
    "function": power,
    "partial": functools.partial(power, p=3),
    "set in code": uses_a_set,
    "set": {"a", "b", "c", "d"},
    "text": pd.DataFrame({"a": ["x", None], "b": pd.Categorical(["u", "v"])}),
    "lists": pd.Series([[1], [2]]),
    "objects": np.array(["a", 1], dtype=object),
    "sparse": sparse.csr_array(np.eye(3)),
    "class": Ridge,
}
"""


@pytest.mark.process
def test_fingerprints_are_the_same_in_every_process():
    code = THINGS + (
        "from cvstats.evaluation import fingerprint\n"
        "print({name: fingerprint(name, thing) for name, thing in THINGS.items()})"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    fingerprints = eval(found.pop())
    assert len(set(fingerprints.values())) == len(fingerprints)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Ridge(1.0), Ridge(2.0)),
        (make_pipeline(StandardScaler(), Ridge()), make_pipeline(StandardScaler(), Ridge(2.0))),
        (FunctionTransformer(np.log1p), FunctionTransformer(np.exp)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (np.arange(6), np.arange(6).reshape(2, 3)),
        (np.arange(3), np.arange(3.0)),
        ([1, 2], [2, 1]),
        ("1", 1),
        (pd.Index(["a", "b"]), pd.Index(["b", "a"])),
    ],
)
def test_fingerprints_differ(one, two):
    assert fingerprint("thing", one) == fingerprint("thing", one)
    assert fingerprint("thing", one) != fingerprint("thing", two)
