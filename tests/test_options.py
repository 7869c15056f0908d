"""Options that no log could make right are refused first, and the words say what there is."""

import inspect
import typing
from functools import partial
from types import NoneType

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from resampled_logs import example
from rows import multi_index, product_index
from together import together

import cvstats
from cvstats import LogError, options, plans
from cvstats.errors import is_number
from cvstats.intervals import interval_names

FUNCTIONS = {
    name: getattr(cvstats, name)
    for name in cvstats.__all__
    if inspect.isfunction(getattr(cvstats, name))
}
EMPTY = pd.Series(dtype=float)
"""A log that every function refuses: whatever else is said was said before it was looked at."""

NEEDED = {"equivalence": {"margin": 1}, "rope": {"margin": 1}, "power": {"effect": 1},
          "evaluate": {"X": [], "y": []},
          "prediction_powered": {"judge": EMPTY, "judge_on_all": EMPTY}}  # fmt: skip
"""What has to be given."""

OTHERS = {"scan_dask", "scan_parquet", "scan_predictions", "to_apa", "to_latex", "to_markdown"}
"""These take no log."""


def words_of(hint):
    """The words that a type allows, None among them; nothing for other types."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    parts = [words_of(part) for part in typing.get_args(hint) if part is not NoneType]
    words = [word for part in parts for word in part]
    return [*words, None] if words and NoneType in typing.get_args(hint) else words


OPTIONS = [
    (name, option, words)
    for name, function in FUNCTIONS.items()
    if name not in OTHERS
    for option, hint in typing.get_type_hints(function).items()
    if (words := words_of(hint)) and option != "return"
]


def refusal(name, log=EMPTY, **options):
    """The words of a refusal."""
    with pytest.raises(LogError) as caught:
        FUNCTIONS[name](log, **{**NEEDED.get(name, {}), **options})
    return str(caught.value)


DEFAULTS = {
    "n_draws": {9_999, 10_000}, "target_power": {0.8}, "n": {10}, "n_jobs": {1}, "rng": {0},
    "seed": {0}, "alpha": {0.05}, "k_fold": {10}, "repeated_k_fold": {10}, "holdout": {0.8},
    "subsampling": {25, 0.9}, "nested_cv": {5, 25}, "paired_subsampling": {10, 25, 0.9},
    "replace_one": {5, 1}, "bootstrap": {1000}, "case_bootstrap": {200}, "two_stage": {200, 100},
    "batch_size": {1 << 20},
}  # fmt: skip
"""Default numbers of options and of plans, which results depend on."""


def test_default_numbers():
    found = {}
    drawn = {name: getattr(plans, name) for name in plans.__all__ if name[0].islower()}
    for name, function in [*FUNCTIONS.items(), *drawn.items()]:
        for option, parameter in inspect.signature(function).parameters.items():
            if is_number(number := parameter.default) and not isinstance(number, bool):
                key = name if function in drawn.values() else option
                found.setdefault(key, set()).add(number)
    assert found == DEFAULTS


def test_there_are_options_to_look_at():
    assert len(OPTIONS) > 50
    found = {option for _, option, _ in OPTIONS}
    assert {"variance", "fold_weights", "alternative", "interval", "test", "bias_correction",
            "constant", "target", "estimator", "adjust", "missing", "correction", "center",
            "monte_carlo"} <= found  # fmt: skip


@together(OPTIONS, by=lambda name, *_: name)
def test_an_unknown_word_is_refused_before_the_log(name, option, words):
    for wrong in ("nothing like it", 42, 0.5, [words[0]], {}, np.array(["a", "b"]), b"t"):
        said = refusal(name, **{option: wrong})
        assert said.startswith(f"Invalid {option}={wrong!r}. Expected one of ")
        assert all(repr(word) in said for word in words)
    if None not in words:
        assert refusal(name, **{option: None}).startswith(f"Invalid {option}=None")


@together(OPTIONS, by=lambda name, *_: name)
def test_a_word_that_is_nearly_right_is_named(name, option, words):
    if None in words:  # only to those who wrote it
        assert "Did you mean None?" in refusal(name, **{option: "NONE"})
        assert "Did you mean None?" not in refusal(name, **{option: "nonex"})
    for word in filter(None, words):
        for near in (str(word).upper() + "_", str(word) + " ", str(word).replace("-", "_") + "x"):
            if len(str(word)) > 3:
                assert f"Did you mean {word!r}?" in refusal(name, **{option: near}), near


WITH_ALPHA = [name for name, f in FUNCTIONS.items() if "alpha" in inspect.signature(f).parameters]


@together(WITH_ALPHA)
def test_what_is_no_error_rate(name):
    for wrong in ("5%", "0.05", 5, 95, 0, 0.0, 1, 1.0, -0.1, True, False, None, [0.05], (0.05,),
                  np.array([0.05]), np.nan, np.inf, 1j, 10**400):  # fmt: skip
        said = refusal(name, alpha=wrong)
        assert said.startswith(f"alpha={wrong!r} is out of range. Expected an error rate between")


FIRST = ", ".join(map(repr, interval_names(for_differences=True)[:2]))
WRONG = [
    *[(name, {"rng": wrong}, f"rng={wrong!r} is not a seed. Expected a whole number from 0, or a")
      for name in ("compare", "best_set") for wrong in ("x", -1, 1.5, True, [1])],
    *[("compare", {"n_draws": wrong}, f"n_draws={wrong!r} is out of range. Expected a whole")
      for wrong in (-1, 0, 1.5, "many", True, None)],
    *[("best_set", {"n_draws": wrong}, f"n_draws={wrong!r} is too small. Expected a whole number")
      for wrong in (-1, 0, 3, 1.5, "many", True, None, 10**400)],
    *[("compare", {"n_draws": 999, **more},
       f"n_draws=999 is only used by adjust='max-t', and adjust={adjust!r} draws nothing. Omit")
      for more, adjust in (({}, "holm"), ({"adjust": None}, None), ({"anytime": True}, "holm"))],
    ("rope", {"rho": 0.1, "train_size": 3, "margin": 1}, "rho and train_size are two ways to"),
    *[("mcnemar", {"correction": True, "test": test},
       f"correction=True requires chi-squared, but test={test!r} is a binomial test. Omit")
      for test in ("exact", "mid-p")],
    *[("best_set", {"screening": wrong}, f"screening={wrong!r} is out of range. Expected None")
      for wrong in (0, 0.05, True, "x")],
    *[(name, {"train_size": wrong}, f"Invalid train_size={wrong!r}. Expected a number of")
      for name in ("corrected_t", "rope") for wrong in ("90%", True, 1j, np.array(3), b"3")],
    *[(name, {"train_size": wrong}, f"train_size contains {wrong}. Expected the number of points")
      for name in ("corrected_t", "rope") for wrong in (0, -3, 0.9)],
    *[(name, {"method": "wald", "options": wrong}, f"options={wrong!r} is not a mapping")
      for name in ("compare", "equivalence") for wrong in ("variance", 3, ["variance"])],
    *[(name, {"method": wrong}, f"Invalid method={wrong!r}. Expected one of {FIRST}")
      for name in ("compare", "equivalence") for wrong in ("nothing like it", 42, ["wald"], {})],
    ("compare", {"method": "Wald "}, "Did you mean 'wald'?"),
    ("compare", {"method": "wald", "options": {"varianc": 1}}, "Did you mean 'variance'?"),
    ("compare", {"method": "wald", "options": {"variance": "within"}},
     "Invalid variance='within'. Expected one of 'all-pairs', 'within-fold'."),
    ("compare", {"method": "corrected_t", "options": {"train_size": "x"}}, "Invalid train_size="),
    *[(name, {"effect": wrong}, f"effect={wrong!r} is out of range. Expected a finite number.")
      for name in ("power",) for wrong in ("1", True, np.inf, [1], 2**1024 - 1)],
    ("power", {"target_power": True}, "target_power=True is out of range"),
    *[(name, {"margin": True}, "Invalid margin=True") for name in ("equivalence", "rope")],
    *[("rope", {"rho": wrong}, f"rho={wrong!r} is out of range") for wrong in (True, 1.0, "x")],
    *[("decompose", {"rho": wrong}, f"rho={wrong!r} is out of range")
      for wrong in (True, 1.5, b"x", np.array(3), [0.1, True])],
    ("decompose", {"rho": [0.1, 1.0]}, "rho=1.0 is out of range. Expected a correlation"),
    ("decompose", {"rho": -0.1}, "rho=-0.1 is out of range"),
    ("decompose", {"gamma": np.inf}, "gamma=inf is out of range"),
    ("decompose", {"rho": 0.1, "gamma": 0.1}, "rho and gamma are two ways to specify"),
    *[("quadratic", {"bias": wrong}, f"bias={wrong!r} is out of range. Expected a sequence of")
      for wrong in (np.array(3), 3, "123", (0, np.nan, 1))],
    ("quadratic", {"bias": (1, 2)}, "bias=(1, 2) has 2 numbers"),
    ("bootstrap_632", {"plus": "yes"}, "Invalid plus='yes'. Expected True or False."),
    ("mcnemar", {"correction": 1}, "Invalid correction=1. Expected True or False."),
    *[(name, {option: wrong}, f"Invalid {option}={wrong!r}. Expected the name of a level")
      for name, option in (("clustered", "by"), ("clustered", "per"), ("heterogeneity", "by"),
                           ("friedman", "by"), ("nemenyi", "by"), ("decompose", "independent"),
                           ("source_components", "independent"))
      for wrong in (3, ["source"], pd.NA, np.array(["a", "b"]))],
    ("report", {"seed": "x"}, "seed='x' is out of range. Expected a whole number from 0."),
    ("report", {"title": ["a"]}, "title=['a'] is not a title. Expected a string."),
]  # fmt: skip


@together(WRONG, by=lambda name, *_: name)
def test_a_wrong_value_is_refused_before_the_log(name, options, words):
    assert words in refusal(name, **options)


def log_of(**values):
    """Losses of models in four folds of 12 points."""
    index = multi_index(fold=np.arange(12) % 4, point=range(12))
    return pd.DataFrame(values or {"ridge": np.arange(12.0), "lasso": 1.0}, index=index)


WRONG_NAMES = [
    *[(name, {"reference": wrong}, f"Unknown model {wrong!r}. Expected reference to be one")
      for name in ("compare", "difference", "equivalence", "rope", "power", "mcnemar")
      for wrong in ("rigde", 3, ["ridge"], np.array(["ridge"]), pd.NA, {})],
    ("compare", {"reference": "rigde"}, "Did you mean 'ridge'?"),
    ("wald", {"by": "fodl"}, "the log has no level 'fodl'. Expected one of its levels"),
    ("wald", {"by": "fodl"}, "Did you mean 'fold'?"),
    *[("wald", {"by": wrong}, f"Invalid level {wrong!r}. Expected the name of one level")
      for wrong in (3, ["fold"], np.array(["a"]), pd.NA)],
    *[("moments", {"by": wrong}, f"the log has no level {wrong!r}.")
      for wrong in (3, pd.NA, np.array(3))],
    ("moments", {"by": ["fold", "piont"]}, "no level 'piont'. Available levels: 'fold'"),
    ("moments", {"by": "piont"}, "Did you mean 'point'?"),
]  # fmt: skip


@together(WRONG_NAMES, by=lambda name, *_: name)
def test_a_name_that_is_not_there(name, options, words):
    log = log_of(ridge=np.arange(12) % 2.0, lasso=1.0) if name == "mcnemar" else log_of()
    assert words in refusal(name, log, **options)


def test_sources_that_cannot_be_names():
    log = pd.Series(np.arange(6.0), index=product_index(source=["north", "south"], point=range(3)))
    for wrong in (["north"], np.array(["north"]), pd.NA, 3):
        assert "Unknown source" in refusal("source_estimators", log, source=wrong)
    words = refusal("source_estimators", log, source="nroth")
    assert words.endswith("Expected one of 'north', 'south'. Did you mean 'north'?")


@pytest.mark.parametrize("wrong", ["x", {}, ["a"], 1j, pd.NA, object])
def test_leave_one_out_losses_that_are_none(wrong):
    log = example("corrected_t")["a"].to_frame("a").assign(count=1).set_index("count", append=True)
    refuses("leave_one_out=.*is not numeric", cvstats.case_bootstrap, log, leave_one_out=wrong)


@pytest.mark.parametrize("of_log", [False, True], ids=["function", "method"])
@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("wald", {"bogus": 1}, r"Valid options: interval, .*, missing\.$"),
        ("wald", {"confidence_level": 0.9}, r"For 90% intervals, pass alpha=0\.1\.$"),
        ("interval", {"level": 95}, "Did you mean 'alpha'"),
        ("compare", {"bogus": 1}, r"Valid options: other, .*, missing\.$"),
        ("compare", {"baseline": "a"}, "Did you mean 'reference'"),
        ("power", {"power": 0.9}, "Did you mean 'target_power'"),
        ("winner", {"random_state": 1}, "Did you mean 'rng'"),
        ("equivalence", {"delta": 0.1, "margin": 0.1}, "Did you mean 'margin'"),
        ("holdout", {"groups": "site"}, "Did you mean 'by'"),
        (
            "compare",
            {"train_size": 90, "method": "corrected_t"},
            r"Pass the options of corrected_t as options=\{'train_size': …\}\.$",
        ),
    ],
)
def test_an_option_that_is_not_there(name, given, words, of_log):
    log = log_of() if name == "interval" else EMPTY  # whose options depend on the log
    function = getattr(log.cvci, name) if of_log else partial(FUNCTIONS[name], log)
    start = rf"^{name}\(\) got an unexpected option '{next(iter(given))}'"
    with pytest.raises(TypeError, match=f"{start}.*{words}"):
        function(**given)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("y_true", "truth"), ("y_pred", "prediction"), ("pos_label", "positive"),
     ("sample_weight", "weight")],
)  # fmt: skip
def test_options_of_scikit_learn(given, meant):
    with pytest.raises(TypeError, match=f"'{given}'. Did you mean '{meant}'"):
        cvstats.losses(pd.DataFrame({"y": [0, 1]}), **{given: "y"})


def test_an_option_of_a_method_without_options():
    with pytest.raises(TypeError, match=r"option 'bogus'\. methods\(\) has no options\.$"):
        log_of().cvci.methods(bogus=1)


def example_function(
    a: typing.Literal["x", "y"],
    b: typing.Literal["z"] | None = None,
    c: float | typing.Literal["auto"] = "auto",
    d: str = "any",
): ...


def test_choices_are_read_off_the_annotations():
    choices = options.find_choices(example_function)
    assert choices == {"a": ("x", "y"), "b": ("z", None)}
    options.check_choices({"a": "y", "b": None, "c": "other", "d": "w", "e": 1}, choices)
    refuses("Invalid a='z'. Expected one of 'x', 'y'.", options.check_choices, {"a": "z"}, choices)
    refuses("Invalid b='x'. Expected one of 'z', None.", options.check_choices, {"b": "x"}, choices)


def test_numbers_are_those_that_a_float_can_hold():
    assert all(map(is_number, (1, -(2**1023) + 1, 0.5, np.float32(0.5), np.nan)))
    assert not any(map(is_number, (2**1024 - 1, -(10**400), True, 1j, "1", None)))


LEAST = {
    "wild_cluster n_draws": 99, "ordered horizon": 1, "ordered lags": 0, "answers repetitions": 1,
    "compare n_draws": 19, "compare tightest_at": 30, "best_set n_draws": 19,
    "power repetitions": 1, "passes k": 1, "largest_differences n": 1, "summary seed": 0,
    "plans.k_fold n_folds": 2, "plans.repeated_k_fold n_folds": 2,
    "plans.repeated_k_fold n_repetitions": 1, "plans.nested_cv n_folds": 3,
    "plans.nested_cv n_repetitions": 1, "plans.replace_one n_folds": 2,
    "plans.replace_one n_repetitions": 1, "plans.subsampling n_repetitions": 1,
    "plans.paired_subsampling n_repetitions": 1, "plans.paired_subsampling n_divisions": 1,
    "plans.bootstrap n_repetitions": 1, "plans.case_bootstrap n_repetitions": 1,
    "plans.two_stage n_samples": 1, "plans.two_stage n_repetitions": 1,
}  # fmt: skip
"""The smallest value of an option of a function or plan."""

WITH = {"compare n_draws": {"adjust": "max-t"}, "compare tightest_at": {"anytime": True},
        "ordered lags": {"estimator": "newey-west"}}  # fmt: skip


@together(LEAST)
def test_the_smallest_value_is_accepted_and_smaller_ones_are_refused(name):
    function, option = name.removeprefix("plans.").split()
    least = LEAST[name]
    if name.startswith("plans."):
        plan = getattr(cvstats.plans, function)
        plan(**{option: least})
        refuses(f"^{option}={least - 1} is out of range", plan, **{option: least - 1})
        return
    for value in (least, least - 1):
        said = refusal(function, **{option: value}, **WITH.get(name, {}))
        assert said.startswith(f"{option}={value} is ") == (value < least)
