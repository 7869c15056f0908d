"""Tables that are no logs, options without names, and names of other tests: each is refused."""

import inspect

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses
from rows import multi_index
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.registry import FUNCTIONS, find_function

RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(
    {"patient": np.repeat(np.arange(20), 3), "ridge": RNG.random(60), "forest": RNG.random(60)}
)
PREDICTIONS = WIDE.assign(y_true=RNG.random(60))
LOG = WIDE.set_axis(multi_index(fold=np.arange(60) % 5, point=np.arange(60))).drop(
    columns="patient"
)


def stacked():
    """The predictions of two models, one below the other."""
    names = ["ridge", "forest"]
    parts = [PREDICTIONS[["patient", "y_true"]].assign(model=m, y_pred=WIDE[m]) for m in names]
    return pd.concat(parts)


@pytest.mark.parametrize("index", [None, ["patient"]], ids=["numbered", "by patient"])
def test_models_in_rows_are_not_points(index):
    frame = stacked()
    frame = frame if index is None else frame.set_index(index)
    refuses(r"'model' contains 2 labels, so models are stacked .*model=", cvstats.losses, frame)


@pytest.mark.parametrize("rows", [slice(None), slice(10, None)], ids=["all", "some"])
def test_a_table_is_not_a_log(rows):
    with pytest.raises(LogError, match=r"'y_true' is a column .*cvstats\.losses\(frame, truth="):
        PREDICTIONS[rows].cvci.interval()
    refuses(r"named like the level 'source'.*source='patient'\)", WIDE[rows].cvci.interval)
    assert len(WIDE[rows][["ridge", "forest"]].cvci.interval()) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: log.cvci.wald(0.1), r"wald\(\) got 0.1 without a name.*wald\(alpha=0.1\)"),
        (lambda log: cvstats.wald(log, 0.1), r"wald\(\) got 0.1 without a name"),
        (lambda log: log.cvci.summary(0.1), r"summary\(alpha=0.1\).*Valid options: method, alpha"),
        (lambda log: log.cvci.clustered("site"), r"clustered\(by='site'\)"),
        (lambda log: log.cvci.diagnose(1), r"diagnose\(\) got 1 without a name\.$"),
    ],
)
def test_options_have_names(call, words):
    with pytest.raises(TypeError, match=words):
        call(LOG)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mcnemar", r"a function of its own.*log\.cvci\.mcnemar\(\)"),
        ("TOST", r"log\.cvci\.equivalence\(margin=…\)"),
        ("wilcoxon", r"tests medians or ranks.*Leave method= out"),
        ("ttest", r"method='ttest' is the corrected t-test.*neither folds nor repetitions"),
    ],
)
def test_names_of_other_tests(method, words):
    for function in ("interval", "compare"):
        refuses(words, getattr(LOG.droplevel("fold").cvci, function), method=method)


def test_an_error_rate_is_not_another_log():
    refuses(r"other=0.1 is a number.*alpha=0.1", LOG.cvci.compare, 0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cvstats.to_latex(LOG.cvci.wald(), columns=-1), "columns=-1 is not a list"),
        (lambda: cvstats.to_markdown(LOG.cvci.wald(), columns="se"), "columns='se' is not a list"),
        (
            lambda: cvstats.plot.forest(LOG, methods="wald"),
            r"methods='wald' is not a list.*\['wald'\]",
        ),
        (lambda: cvstats.plot.forest(LOG, methods=3), "methods=3 is not a list"),
        (lambda: cvstats.plot.decomposition(LOG, rho=0.1), "rho=0.1 is out of range.*sequence"),
        (lambda: cvstats.plot.decomposition(LOG, rho="no"), "out of range.*sequence"),
    ],
)
def test_one_value_is_not_a_list(call, words):
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    refuses(words, call)


def test_json_of_columns_and_rows_is_a_table(tmp_path):
    table = WIDE.assign(point=np.arange(60)).drop(columns="patient")
    table.to_json(tmp_path / "table.json", orient="split")
    read = cvstats.read_log(tmp_path / "table.json")
    assert read["ridge"].to_numpy() == pytest.approx(table["ridge"].to_numpy())
    table.to_json(tmp_path / "rows.json", orient="split", index=False)
    pd.testing.assert_frame_equal(cvstats.read_log(tmp_path / "rows.json"), read, check_names=True)


ANYTHING = object()
NEEDED = {
    "equivalence": {"margin": 0.1}, "rope": {"margin": 0.1}, "power": {"effect": 0.1},
    "contrast": {"by": "fold", "between": (0, 1)}, "passes": {"k": 1},
}  # fmt: skip
LEFT_ALONE = {"losses", "other", "reference", "k", "options"}
"""The log, models, which may have any name, attempts, which this log lacks, and other options."""


@together(sorted(FUNCTIONS))
def test_every_option_of_every_function_refuses_what_it_cannot_be(name):
    function = find_function(name)
    with pytest.raises(LogError):
        function(ANYTHING, **NEEDED.get(name, {}))
    for option in inspect.signature(function).parameters.keys() - LEFT_ALONE:
        assert len(refusal(function, LOG, **{**NEEDED.get(name, {}), option: ANYTHING})) > 30, (
            option
        )
