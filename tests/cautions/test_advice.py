"""Every piece of advice of a caution or a finding runs on the very log that caused it."""

import ast
import inspect
import re
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from flagged_logs import (
    FINDINGS,
    bootstrap_log,
    by_source,
    dated,
    differing,
    disagreeing,
    k_fold,
    near_models,
    one_partition,
    splits,
    unequal_folds,
    zero_one,
)
from resampled_logs import example
from rows import multi_index, product_index

import cvstats
from cvstats.core.cautions import Caution
from cvstats.errors import LogError
from cvstats.intervals import interval_names

CODE = re.compile(r"log\.cvci\.\w+\([^()]*\)")
RNG = np.random.default_rng(11)


def pair(losses, shift=0.02):
    """Two models, the second of which is a little worse."""
    noise = np.random.default_rng(5).normal(0, 0.3, len(losses))
    return pd.DataFrame({"a": losses, "b": losses + shift + noise})


def seeds_of_folds(n=200, folds=5, seeds=4):
    """Two similar models, refitted with other seeds in the same folds."""
    base = k_fold(n, folds, 1).droplevel("repetition")
    log = pd.concat([base.to_frame("a")] * seeds, keys=range(seeds), names=["repetition"])
    fold = log.index.get_level_values("fold") + folds * log.index.get_level_values("repetition")
    return log.assign(b=log["a"] + np.random.default_rng(1).normal(0, 0.3, folds * seeds)[fold])


def crossed(sources=6, dates=40):
    """Stores that were observed on the same dates."""
    shock = np.cumsum(np.random.default_rng(3).normal(size=dates))
    index = product_index(source=range(sources), point=pd.date_range("2024-01-01", periods=dates))
    values = np.tile(shock, sources) + np.random.default_rng(4).normal(size=len(index))
    return pd.Series(values**2, index)


def of_dated_sources():
    """Dates that are divided between sources and between folds."""
    log = dated(0.7).to_frame("loss").reset_index()
    log["source"] = log.index % 9
    return log.set_index(["fold", "source", "point"])["loss"]


def by_horizon(log):
    """Two horizons whose points differ."""
    return pd.concat([log, log[5:]], keys=[1, 2], names=["horizon"])


def in_parts_of_folds(log):
    """Two horizons of points of the same folds."""
    return log.assign(horizon=log.index.get_level_values("point") % 2).set_index(
        "horizon", append=True
    )


def skewed(n=60):
    return pd.Series(np.random.default_rng(2).lognormal(0, 1.5, n), k_fold(n).index)


def rare_class(folds):
    draw = np.random.default_rng(8)
    truth = (np.arange(120) < 6).astype(int)
    index = multi_index(fold=np.arange(120) % 3, point=range(120))
    table = pd.DataFrame({"y": truth, "a": truth * 0.5 + draw.normal(size=120)}, index)
    return cvstats.losses(table, truth="y", prediction=["a"], loss="auc", folds=folds)


def grouped(sizes):
    label = np.repeat(np.arange(len(sizes)), sizes)
    index = multi_index(source=label, point=np.arange(len(label)))
    effect = np.random.default_rng(7).normal(size=len(sizes))[label]
    return pd.Series(2 + effect + np.random.default_rng(6).uniform(size=len(label)), index)


LOGS = {code: losses for code, (losses, _, _) in FINDINGS.items()} | {
    "alike": one_partition(),
    "crossed": crossed(),
    "two crossed": pair(crossed()),
    "seeds of folds": seeds_of_folds(),
    "dated pair": pair(dated(0.8)),
    "dated in sources": of_dated_sources(),
    "sources in folds": pair(by_source(40, folds=5)),
    "random splits of sources": splits(12).to_frame("a").assign(b=RNG.uniform(size=240)),
    "skewed": skewed(),
    "skewed pair": pair(skewed()),
    "skewed test set": skewed().droplevel(["repetition", "fold"]),
    "skewed groups": grouped([30] * 8) ** 8,
    "horizons of dates": by_horizon(pair(dated(0.8)).droplevel("fold")),
    "horizons of sources": by_horizon(pair(by_source(40, folds=5))),
    "skewed horizons": by_horizon(skewed()),
    "few errors": zero_one(60, 3),
    "no errors": zero_one(60, 0),
    "no errors of a test set": zero_one(60, 0).droplevel(["repetition", "fold"]),
    "few points": k_fold(20, 4).droplevel("repetition"),
    "few points of a test set": k_fold(20, 4).droplevel(["repetition", "fold"]),
    "unequal groups": grouped([300, 5, 5, 5, 5, 200, 4, 4]),
    "two groups": grouped([30, 30]),
    "pooled metric": rare_class("pool"),
    "averaged metric": rare_class("average"),
    "seeds": pair(disagreeing()),
    "seeds of parts of folds": in_parts_of_folds(pair(disagreeing())),
    "unequal folds": pair(unequal_folds()),
    "many models": near_models(8),
    "grouped models": pd.DataFrame({f"m{j}": grouped([8] * 40) + 0.01 * j for j in range(6)}),
    "five by two": k_fold(40, 2, 5),
    "bootstrap": bootstrap_log(120),
    "equal halves": pd.Series(
        [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.1],
        product_index(repetition=range(5), fold=range(2)),
    ),
    "folds in balance": pd.Series(
        np.tile([1.0, 2, 3, 4], 10),
        multi_index(fold=np.arange(40) // 4, point=range(40)),
    ),
    "few disagree": pd.DataFrame({"a": zero_one(60, 20), "b": zero_one(60, 25)}),
    "two data sets": pd.DataFrame([[1.0, 2, 3], [4, 5, 6]]).rename_axis("source"),
    "absolute errors": skewed().rename("absolute_error"),
}  # fmt: skip
for name in ("nested_cv", "replace_one", "conservative_z"):
    LOGS[name] = example(name)

OPTIONS = (
    ("interval", {}),
    ("wald", {"scale": "logit"}),
    ("holdout", {"scale": "logit"}),
    ("five_by_two", {"test": "f"}),
    ("clustered", {"correction": "CR1"}),
    ("ordered", {"horizon": 8}),
    ("bootstrap_632", {"plus": False}),
    ("quadratic", {"estimator": "theta_1"}),
    ("quadratic", {"bias": (-1.0, -0.5, 0.5)}),
    ("heterogeneity", {}),
    ("decompose", {}),
    *((name, {}) for name in interval_names()),
    ("compare", {}),
    *(("compare", {"method": name}) for name in ("wald", "naive", "corrected_t", "clustered")),
    ("compare", {"adjust": "max-t", "n_draws": 99, "rng": 0}),
    ("best_set", {"n_draws": 99, "rng": 0}),
    ("winner", {"rng": 0}),
    ("power", {"effect": 0.1}),
    ("equivalence", {"margin": 0.1}),
    ("friedman", {"test": "f"}),
    *((name, {"by": "horizon"}) for name in ("interval", "wald", "holdout", "ordered", "compare")),
)


@cache
def cautions_of(name):
    """Method, label and text of every caution that a log gives."""
    found = []
    for method, options in OPTIONS:
        try:
            result = getattr(LOGS[name].cvci, method)(**options)
        except (LogError, TypeError, AttributeError):
            continue
        found += [(method, *said) for said in result.attrs.get("cautions", {}).items()]
    return found


def run_advice(text, log, seen):
    """Run what an advice says to type, which names no method besides."""
    for code in set(CODE.findall(text)) - seen:
        assert len(eval(code, {"log": log, "cvstats": cvstats})), code
        seen.add(code)
    rest = CODE.sub("", text)
    return [name for name in interval_names() if re.search(rf"\b{name}(?=[ .,(])", rest)]


MAY_NAME = {"wald", "corrected_t", "two_stage", "location_shifted"}
"""Named to say what fails, or what fits after the log was made anew."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LOGS)
def test_advice_runs_on_the_log_that_caused_it(name):
    log, seen = LOGS[name], set()
    for method, label, text in cautions_of(name):
        named = run_advice(text, log, seen)
        assert set(named) <= MAY_NAME, (method, label, text)
        assert f"log.cvci.{method}()" not in text, (method, label)
    for row in cvstats.diagnose(log).to_dict("records"):
        named = run_advice(row["advice"], log, seen)
        assert set(named) <= MAY_NAME, row["advice"]


def test_what_is_advised_answers_the_caution():
    for make, call, label in (
        (partial(dated, 0.6), "log.cvci.ordered()", "serial dependence"),
        (partial(by_source, 40, 5), "log.cvci.clustered()", "sources ignored"),
        (one_partition, "log.cvci.compare(method='refit_corrected')", "unstable difference"),
        (seeds_of_folds, "log.cvci.compare(method='corrected_t')", "unstable difference"),
        (disagreeing, "log.cvci.corrected_t()", "unstable"),
    ):
        log = make()
        result = log.cvci.compare() if "compare" in call else log.cvci.wald()
        assert f"Use {call}" in result.attrs["cautions"][label]
        assert label not in eval(call, {"log": log}).attrs["cautions"]


@pytest.mark.parametrize(
    ("function", "options", "advice"),
    [
        ("compare", {"method": "wald"}, "Use log.cvci.compare(method='refit_corrected')."),
        ("best_set", {"method": "wald"}, "Omit method=."),
        ("equivalence", {"method": "wald", "margin": 0.1}, "Omit method=."),
        ("power", {"method": "wald", "effect": 0.1}, "Omit method=."),
        ("rope", {"margin": 0.1}, "rope and, by default, compare account for it."),
    ],
)
def test_repeated_logs_need_not_be_repeated(function, options, advice):
    text = getattr(differing().cvci, function)(**options).attrs["cautions"]["unstable difference"]
    assert text.endswith(f"by default. {advice}")
    once = getattr(one_partition().cvci, function)(**options).attrs["cautions"]
    if function not in ("best_set", "rope"):  # which cannot tell from one partition
        assert once["unstable difference"].lower().endswith(ADVICE_ON_ONE_PARTITION)


ADVICE_ON_ONE_PARTITION = "repeat the cross-validation with different folds."


def test_no_method_is_advised_that_the_log_does_not_allow():
    two_ways = crossed().cvci.wald().attrs["cautions"]
    for text in two_ways.values():
        assert "ordered()" not in text or len(crossed().cvci.ordered())
    losses = skewed()
    losses.attrs["loss"] = "absolute_error"
    assert "absolute error" not in str(losses.cvci.wald().attrs["cautions"])
    assert "hall" not in str((grouped([30] * 8) ** 8).cvci.interval().attrs["cautions"])
    assert "hall" in str(skewed().cvci.wald().attrs["cautions"])
    assert "pool'" not in rare_class("pool").cvci.interval().attrs["cautions"]["few of a class"]
    assert differing().cvci.diagnose()["advice"].str.contains("refit_corrected").all()
    near = pair(crossed() + 50)  # refit_corrected ignores the sources, compare does not
    assert "sources ignored" in near.cvci.compare(method="refit_corrected")["caution"].iloc[0]
    assert "CVS024" not in set(near.cvci.diagnose()["code"])


@pytest.mark.parametrize("first", ["absolute_error", "rmse"])
def test_advice_does_not_depend_on_what_was_asked_before(first):
    """Logs of one experiment share their index, and what is known of it."""
    rng, n = np.random.default_rng(0), 150
    x = rng.normal(size=n)
    index = multi_index(
        repetition=np.repeat(range(3), n),
        fold=np.concatenate([rng.permutation(n) % 5 for _ in range(3)]),
        point=np.tile(range(n), 3),
    )
    table = pd.DataFrame({"y": np.tile(x + rng.normal(size=n), 3)}, index)
    table["m"] = np.tile(x, 3) + 1.5 * rng.normal(size=3 * n)
    asked = {"absolute_error": {}, "rmse": {"folds": "pool"}}
    said = {}
    for loss in (first, *(asked.keys() - {first})):
        log = cvstats.losses(table, truth="y", prediction=["m"], loss=loss, **asked[loss])
        said[loss] = log.cvci.interval().attrs["cautions"]["unstable"]
    assert "Use log.cvci.corrected_t()" in said["absolute_error"]
    assert "corrected_t" not in said["rmse"]


def test_limits_of_proportions_are_advised_for_losses_of_0_and_1_only():
    for log, advised in ((zero_one(60, 0), True), (zero_one(60, 0) + 0.5, False)):
        text = log.cvci.wald().attrs["cautions"]["zero variance"]
        assert ("Use log.cvci.wald(interval='wilson')" in text) == advised


def test_every_caution_that_names_a_call_has_a_log():
    seen = {label for name in LOGS for _, label, _ in cautions_of(name)}
    needed = {c.label for c in Caution if c.instead or "log.cvci" in c.advice}
    assert needed - seen == set()


@pytest.mark.parametrize("caution", [each for each in Caution if each.instead])
def test_options_of_other_methods_exist(caution):
    for call in caution.instead:
        name, _, options = call.partition("(")
        function = getattr(cvstats, name)
        given = ast.parse(f"{name}({options or ')'}", mode="eval").body
        assert {each.arg for each in given.keywords} <= set(inspect.signature(function).parameters)
