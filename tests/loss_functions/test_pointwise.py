"""The losses, point by point: by hand, and the words of what is refused."""

import math
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.loss_functions.pointwise import LOSSES

NAN = math.nan
ONE_COLUMN = [name for name, loss in LOSSES.items() if loss.reads != "forecasts"]
LATE = ["late", "on time"]


def table(truth, prediction, name="y_pred"):
    index = pd.RangeIndex(10, 10 + len(truth), name="point")
    columns = {"y_true": truth, name: prediction}
    return pd.DataFrame({key: pd.Series(values, index=index) for key, values in columns.items()})


def lost(truth, prediction, loss, **options):
    """The losses as an array; table and index come back as they were."""
    frame = table(truth, prediction)
    before = frame.copy(deep=True)
    result = cvstats.losses(frame, loss=loss, **options)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_index_equal(result.index, before.index)
    assert result.dtype == np.float64
    return result.to_numpy()


def of_classes(truth, probabilities, loss, classes=("a", "b", "c")):
    frame = pd.DataFrame(dict(zip("xyz", np.transpose(probabilities), strict=False)))
    frame.insert(0, "y_true", truth)
    columns = list("xyz"[: len(classes)])
    return cvstats.losses(frame, prediction=columns, loss=loss, classes=classes).to_numpy()


BY_HAND = {
    "squared_error": ([1.0, 2.0, -3.0], [3.0, 2.0, 1.0], {}, [4.0, 0.0, 16.0]),
    "absolute_error": ([1.0, 2.0, -3.0], [3.0, 2.0, 1.0], {}, [2.0, 0.0, 4.0]),
    "percentage_error": ([1.0, 2.0, -4.0], [3.0, 2.0, 1.0], {}, [2.0, 0.0, 1.25]),
    "pinball": ([1.0, 2.0, 5.0], [3.0, 2.0, 1.0], {"quantile": 0.75}, [0.5, 0.0, 3.0]),
    "zero_one": ([1, 0, 2], [1, 1, 2], {}, [0.0, 1.0, 0.0]),
    "log_loss": ([1, 0, 1], [0.5, 0.75, 1.0], {}, [math.log(2), math.log(4), 0.0]),
    "brier": ([1, 0, 1], [0.5, 0.75, 1.0], {}, [0.25, 0.5625, 0.0]),
    "hinge": ([1, -1, 1], [2.0, 0.5, -1.0], {}, [0.0, 1.5, 2.0]),
    "net_benefit": ([1, 0, 1], [0.5, 0.75, 0.1], {"threshold": 0.5}, [-1.0, 1.0, 0.0]),
    "squared_log_error": (
        [1.0, 2.0, 0.0], [3.0, 2.0, 1.0], {}, [math.log(2) ** 2, 0.0, math.log(2) ** 2],
    ),
    "poisson_deviance": (
        [0, 2, 3.0], [1.5, 2.0, 1.0], {}, [3.0, 0.0, 6 * math.log(3) - 4],
    ),
    "gamma_deviance": ([1.0, 2.0, 3.0], [2.0, 2.0, 1.0], {},
                       [2 * math.log(2) - 1, 0.0, 4 - 2 * math.log(3)]),
    "huber": ([1.0, 2.0, -3.0], [2.5, 2.0, 1.0], {"delta": 2}, [1.125, 0.0, 6.0]),
}  # fmt: skip


@pytest.mark.parametrize("loss", ONE_COLUMN)
def test_by_hand(loss):
    truth, prediction, options, expected = BY_HAND[loss]
    got = lost(truth, prediction, loss, **options)
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    assert not np.signbit(got[got == 0]).any()  # no loss is -0.0


@pytest.mark.parametrize("loss", ["zero_one", "f1_macro", "balanced_accuracy", "kappa"])
def test_decimal_numbers_are_no_labels(loss):
    """The accuracy of a regression was 0, and a metric had as many classes as there were points."""
    truth, halves = np.linspace(2, 40, 39) + 0.1, np.arange(39) % 5 / 2
    with pytest.raises(cvstats.LogError, match="decimal numbers that do not occur .*row 0: 4.2"):
        lost(truth, 2 * truth, loss)
    with pytest.raises(cvstats.LogError, match=r"numeric \(row 0: 0 and '0'\)"):
        lost([0, 1, 1], ["0", "1", "1"], loss)
    assert len(set(lost(halves, halves, loss))) == 1  # half stars


def test_by_hand_for_classes():
    p = [[0.5, 0.25, 0.25], [0.0, 0.125, 0.875], [1.0, 0.0, 0.0]]
    got = of_classes(["a", "b", "a"], p, "log_loss")
    np.testing.assert_allclose(got, [math.log(2), math.log(8), 0.0], rtol=1e-15)
    got = of_classes(["a", "b", "a"], p, "brier")
    np.testing.assert_allclose(got, [0.375, 1.53125, 0.0], rtol=1e-15)


# --- kinds of labels ------------------------------------------------------------------------

KINDS = {
    "object": lambda values: pd.Series(values, dtype=object),
    "str": lambda values: pd.Series(values, dtype="str"),
    "string": lambda values: pd.Series(values, dtype="string"),
    "category": lambda values: pd.Series(pd.Categorical(values, [*LATE, "never"])),
}


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
def test_labels_of_any_kind_are_compared(left, right):
    truth = KINDS[left](["late", "on time", "late", "on time"])
    said = KINDS[right](["late", "late", "late", "on time"])
    frame = pd.DataFrame({"y_true": truth, "y_pred": said})
    assert cvstats.losses(frame, loss="zero_one").tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["brier", "log_loss", "hinge", "zero_one"])
def test_positive_names_the_label(kind, loss):
    words = KINDS[kind](["late", "on time", "late", "on time"])
    p = [0.9, 0.25, 0.5, 0.75]
    options = {"threshold": 0.5} if loss == "zero_one" else {}
    frame = pd.DataFrame({"y_true": words, "y_pred": p})
    got = cvstats.losses(frame, loss=loss, positive="late", **options)
    np.testing.assert_array_equal(got, lost([1, 0, 1, 0], p, loss, **options))
    other = cvstats.losses(
        frame.assign(y_pred=1 - frame["y_pred"] if loss != "hinge" else -frame["y_pred"]),
        loss=loss, positive="on time", **options,
    )  # fmt: skip
    if loss != "zero_one":  # there a probability at the threshold is the positive class
        np.testing.assert_allclose(other, got, rtol=1e-14)


BINARY = {
    "int": [1, 0, 1, 0],
    "uint8": np.array([1, 0, 1, 0], dtype=np.uint8),
    "float": [1.0, 0.0, 1.0, 0.0],
    "bool": [True, False, True, False],
    "boolean": pd.array([True, False, True, False], dtype="boolean"),
    "Int64": pd.array([1, 0, 1, 0], dtype="Int64"),
    "object bools": np.array([True, False, True, False], dtype=object),
    "category": pd.Categorical([1, 0, 1, 0]),
    "category of bools": pd.Categorical([True, False, True, False]),
    "signs": [1, -1, 1, -1],
}


@together(product(BINARY, ["brier", "log_loss", "hinge"]), by=lambda kind, loss: loss)
def test_binary_truth_of_any_kind(kind, loss):
    p = [0.9, 0.25, 0.5, 0.75]
    np.testing.assert_array_equal(lost(BINARY[kind], p, loss), lost([1, 0, 1, 0], p, loss))


@pytest.mark.parametrize("kind", [kind for kind in BINARY if kind != "signs"])
def test_numbers_of_any_kind(kind):
    expected = [0.25, 0.25, 0.25, 0.25]
    for dtype in ("float64", "float32", "Float64", "object"):
        prediction = pd.Series([0.5] * 4, dtype=dtype).array
        assert lost(BINARY[kind], prediction, "squared_error").tolist() == expected
    assert lost(BINARY[kind], [Decimal("0.5")] * 4, "squared_error").tolist() == expected


def test_threshold():
    p = [0.2, 0.5, 0.8, 0.3]
    assert lost([0, 0, 1, 1], p, "zero_one", threshold=0.5).tolist() == [0, 1, 0, 1]
    assert lost([0, 0, 1, 1], p, "zero_one", threshold=0.3).tolist() == [0, 1, 0, 0]
    assert lost([0, 0, 1, 1], p, "zero_one", threshold=1.0).tolist() == [0, 0, 1, 1]
    got = lost(list("nnyy"), p, "zero_one", threshold=0.5, positive="y")
    assert got.tolist() == [0, 1, 0, 1]


# --- what is missing ------------------------------------------------------------------------


@together(product(ONE_COLUMN, [None, NAN, pd.NA]), by=lambda loss, gap: loss)
def test_a_missing_number_is_a_missing_loss(loss, gap):
    truth, prediction, options, expected = BY_HAND[loss]
    for holes in ([gap, *truth[1:]], prediction), (truth, [gap, *prediction[1:]]):
        kinds = [object] if gap is pd.NA else [object, None]
        for dtype in kinds:
            one, two = (pd.Series(values, dtype=dtype).array for values in holes)
            got = lost(one, two, loss, **options)
            np.testing.assert_allclose(got, [NAN, *expected[1:]], rtol=1e-15)


@pytest.mark.parametrize("gap", [None, NAN, pd.NA])
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_label_is_a_missing_loss(kind, gap):
    truth, said = KINDS[kind]([gap, "late", "late"]), KINDS[kind](["late", gap, "late"])
    got = cvstats.losses(pd.DataFrame({"y_true": truth, "y_pred": said}), loss="zero_one")
    np.testing.assert_array_equal(got, [NAN, NAN, 0])
    frame = pd.DataFrame({"y_true": truth, "y_pred": [0.5, NAN, 1.0]})
    for options in ({"loss": "brier"}, {"loss": "zero_one", "threshold": 0.5}):
        got = cvstats.losses(frame, positive="late", **options)
        np.testing.assert_array_equal(got, [NAN, NAN, 0])


def test_missing_dates_and_nullable_numbers():
    days = pd.to_datetime(["2013-01-01", None, "2013-01-03"])
    np.testing.assert_array_equal(lost(days, days[[0, 0, 1]], "zero_one"), [0, NAN, NAN])
    whole = pd.array([1, None, 3], dtype="Int64")
    np.testing.assert_array_equal(lost(whole, [1.0, 2.0, 1.0], "squared_error"), [0, NAN, 4])


# --- a function of one's own ----------------------------------------------------------------


def test_a_function_gets_arrays_and_gives_losses():
    def cubed(truth, prediction):
        assert isinstance(truth, np.ndarray)
        return np.abs(truth - prediction) ** 3

    assert lost([1, 2], [2.0, 4.0], cubed).tolist() == [1, 8]
    assert lost([1, 2], [2.0, 4.0], lambda y, p: list(y > p)).tolist() == [0, 0]
    assert lost(list("ab"), list("ac"), lambda y, p: y != p).tolist() == [0, 1]


def test_a_function_cannot_change_the_table():
    def rude(truth, prediction):
        prediction -= truth
        return prediction

    frame = table([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(ValueError, match="read-only"):
        cvstats.losses(frame, loss=rude)
    assert frame["y_pred"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda y, p: np.mean(y - p),
            "returned an array of shape () for 2 points. Expected one number",
        ),
        (lambda y, p: np.zeros(3), "returned an array of shape (3,) for 2 points"),
        (lambda y, p: ["good", "bad"], "the loss contains 'good', which is not a number"),
    ],
)
def test_a_function_must_give_a_number_for_each_point(function, words):
    assert words in refusal(lost, [1.0, 2.0], [2.0, 4.0], function)


# --- what is refused ------------------------------------------------------------------------

P = [0.2, 0.4, 0.6]
REFUSED = [
    ("squarish", [1, 2, 3], P, {}, "Unknown loss 'squarish'. Expected one of"),
    ([], [1, 0, 1], P, {}, "loss=[] contains a loss twice"),
    (["brier", "brier"], [1, 0, 1], P, {}, "contains a loss twice"),
    (["brier"], [1, 0, 1], P, {"beta": 2}, "none of loss=['brier'] uses beta="),
    ("squared_error", list("abc"), P, {}, "the truth contains 'a', which is not a number."),
    ("squared_error", [1, 2, 3], list("123"), {}, "the prediction contains '1', which is not"),
    ("absolute_error", [1, "2", 3], P, {}, "the truth contains '2', which is not a number"),
    ("absolute_error", ["2,5", "3", "4"], P, {}, "the file with decimal=',', an"),
    ("absolute_error", ["2.413,39", "3", "4"], P, {}, "with decimal=',' and thousands='.', an"),
    ("absolute_error", ["2,413.39", "3", "4"], P, {}, "the file with thousands=',', an"),
    ("absolute_error", ["a,b", "3", "4"], P, {}, "Convert them with pd.to_numeric"),
    ("hinge", [1, -1, 1], [1j, 2, 3], {}, "the prediction contains 1j, which is not a number"),
    ("squared_error", pd.to_datetime(["2013"] * 3), P, {}, "which is not a number"),
    ("poisson_deviance", [1, -1, 2], P, {}, "truth in row 1 is -1.0. Expected numbers from 0"),
    ("poisson_deviance", P, [1, 0, 2], {}, "prediction in row 1 is 0.0. Expected numbers above 0"),
    ("gamma_deviance", [1, 0, 2], P, {}, "truth in row 1 is 0.0. Expected numbers above 0"),
    ("percentage_error", [1, 0, 0], P, {}, "which is 0 in row 1 (and 1 more). Expected nonzero"),
    ("percentage_error", [1, 0, 2], P, {}, "which is 0 in row 1. Expected"),
    ("pinball", [1, 2, 3], P, {}, "got quantile=None. Expected a number between 0 and 1, such as"),
    ("pinball", [1, 2, 3], P, {"quantile": 1}, "got quantile=1"),
    ("pinball", [1, 2, 3], P, {"quantile": NAN}, "got quantile=nan"),
    ("brier", [1, 0, 1], [0.5, 1.5, -1], {}, "a predicted probability is 1.5 (row 1). Expected"),
    ("log_loss", [1, 0, 1], [0.5, 0.5, -1], {}, "a predicted probability is -1.0 (row 2)"),
    ("brier", [1, 2, 1], P, {}, "the truth has the labels 1, 2. Expected 0 and 1 (or -1 and 1, or"),
    ("brier", list("aba"), P, {}, "Specify the predicted label: positive='a' or positive='b'."),
    ("brier", [1.5, 2.5, 3.5], P, {}, "for numbers use a loss such as squared_error"),
    ("hinge", list("aba"), P, {"positive": "c"}, "'c' is not a label of the truth. Expected 'a'"),
    ("log_loss", list("abc"), P, {"positive": "a"}, "the truth has 3 labels. Expected two if"),
    ("zero_one", [0, 1, 1], P, {}, "look like probabilities (row 0: 0.2). Expected labels such as"),
    ("zero_one", [None, "b", "a"], P, {}, "is text and the other numeric (row 1: 'b' and 0.4)"),
    ("zero_one", [0, 1, 1], list("aba"), {}, "(row 0: 0 and 'a'). Expected the same labels in"),
    ("zero_one", [None, "a", None], [1, None, 1], {}, "the other numeric"),
    ("zero_one", [0, 1, 1], P, {"threshold": 50}, "threshold=50 is not a probability."),
    ("zero_one", [0, 1, 1], P, {"threshold": -0.1}, "threshold=-0.1 is not a probability."),
    ("log_loss", [0, 1, 1], P, {"clip": 0}, "clip=0 is not a small probability."),
    ("log_loss", [0, 1, 1], P, {"clip": 0.5}, "clip=0.5 is not a small probability."),
    ("zero_one", [0, 1, 1], [0, 1, 0], {"positive": 1}, "Pass threshold= with it"),
]  # fmt: skip


@together(REFUSED)
def test_refusals_say_what_to_do(loss, truth, prediction, options, words):
    frame = table(truth, prediction)
    before = frame.copy(deep=True)
    with pytest.raises(LogError) as caught:
        cvstats.losses(frame, loss=loss, **options)
    assert words in str(caught.value)
    assert "np." not in str(caught.value)  # labels as one would type them
    pd.testing.assert_frame_equal(frame, before)


OPTIONS = {"quantile": 0.5, "threshold": 0.5, "positive": 1, "classes": ["no"]}


@together(product([*LOSSES, abs], OPTIONS), by=lambda loss, option: option)
def test_an_option_that_would_change_nothing_is_refused(loss, option):
    if option in (("classes",) if callable(loss) else LOSSES[loss].takes):
        return
    prediction = ["y_pred"] if option == "classes" else "y_pred"
    with pytest.raises(LogError, match=f"does not use {option}=, which applies only to loss='"):
        cvstats.losses(
            table([0, 1], [0.5, 0.5]), prediction=prediction, loss=loss,
            **{option: OPTIONS[option]},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("truth", "p", "options", "words"),
    [
        ("aed", [[0.5, 0.5, 0]] * 3, {}, "the truth is 'e' in row 1, which is not among classes="),
        ("aba", [[1, 0, 0], [0.5, 0.4, 0], [0, 0, 0]], {}, "of row 1 sum to 0.9. Expected a sum"),
        ("aba", [[1, 0, 0], [0.5, 2.5, 0], [9, 0, 0]], {}, "predicted probability is 2.5 (row 1)"),
        ("aba", [[0.5, 0.5, 0]] * 3, {"positive": "a"}, "classes= and positive= were both given"),
        ("aba", [[0.5, 0.5, 0]] * 3, {"classes": list("aab")}, "contains a label twice"),
    ],
)
@pytest.mark.parametrize("loss", ["brier", "log_loss"])
def test_refusals_of_classes(loss, truth, p, options, words):
    frame = pd.DataFrame(p, columns=list("xyz")).assign(y_true=list(truth))
    assert words in refusal(
        cvstats.losses,
        frame,
        prediction=list("xyz"),
        loss=loss,
        **{"classes": list("abc"), **options},
    )
