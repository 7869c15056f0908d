"""One fit: train a clone, predict and compute losses; or read its result from a checkpoint."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, describe_type
from cvstats.loss_functions.losses import Loss
from cvstats.loss_functions.pointwise import LOSSES, LossOptions, checked_loss, loss_name, pointwise
from cvstats.metrics import METRICS

RESPONSES = {"probabilities": "predict_proba", "margins": "decision_function"}
"""The prediction method of losses that do not use ``predict``, by their inputs."""

OF_CHANCES = ("scores", "probabilities")
"""The inputs of metrics that use ``predict_proba``."""


@dataclass(frozen=True, eq=False)
class Values:
    """The arrays that a fit needs.

    Parameters
    ----------
    X : array, sparse array, DataFrame or list
        A row for each point.
    y : array or Series
        The target as passed, to train on.
    truth : array, shape (n,)
        The target as plain numbers or labels, to compute losses with.
    """

    X: Any
    y: Any
    truth: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ScoringSpec:
    """How every fit is scored.

    Parameters
    ----------
    loss : str or callable
        As for `cvstats.losses`.
    response : str
        The prediction method of the model.
    classes : tuple
        The sorted class labels; empty if ``predict`` is called.
    options : LossOptions
        The other arguments of the loss.
    responses : tuple of str
        For metrics, the prediction methods whose results are kept; the loss is then not computed.
    """

    loss: Loss
    response: str
    classes: tuple[Hashable, ...]
    options: LossOptions
    responses: tuple[str, ...] = ()

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of values per point of each response."""
        several = len(self.classes) if len(self.classes) > 2 else 1
        return tuple(several if name == "predict_proba" else 1 for name in self.responses)


@dataclass(frozen=True, eq=False)
class FitResult:
    """The losses of one fit of one model.

    Parameters
    ----------
    fit : int
        Number of the fit in the plan.
    model : str
        Name of the model.
    losses : array of float, shape (points,) or (points, numbers), optional
        A loss for each distinct test point, in ascending order of rows, or its predictions; None if
        the fit failed.
    no_information : float, optional
        If the fit is tested on its own sample: the mean loss over all pairs of a truth and a
        prediction.
    failure : Exception, optional
        The exception, if the fit failed.
    """

    fit: int
    model: Hashable
    losses: FloatArray | None = None
    no_information: float | None = None
    failure: BaseException | None = None


def response_of(loss: Loss, given: Mapping[str, Any]) -> str:
    """Name the prediction method that a loss uses."""
    if not isinstance(loss, str):
        return "predict"
    of_chances = loss in METRICS and METRICS[loss].reads in OF_CHANCES
    if of_chances or "threshold" in given:
        return "predict_proba"
    return RESPONSES.get(LOSSES[loss].reads, "predict") if loss in LOSSES else "predict"


def scoring_spec(loss: Loss, given: Mapping[str, Any], truth: NDArray[Any]) -> ScoringSpec:
    """Check the loss against the target, and find which predictions it uses."""
    options = LossOptions.of(given)
    checked_loss(loss, options)
    if more := [name for name in given if not hasattr(options, name)]:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points and does not use {more[0]}=. Omit it."
        )
    response = response_of(loss, given)
    if response == "predict":
        return ScoringSpec(loss, response, (), options)
    if truth.dtype.kind == "f" and np.any(truth % 1 != 0):
        raise LogError(
            f"loss={loss!r} is for classes, but y looks continuous. Expected labels, or another "
            "loss, such as squared_error."
        )
    classes = tuple(np.unique(truth).tolist())
    if len(classes) < 2:
        raise LogError(f"loss={loss!r} is for classes, but y has only {classes[0]!r}.")
    if len(classes) == 2:
        return ScoringSpec(loss, response, classes, replace(options, positive=classes[1]))
    if response == "decision_function" or options.threshold is not None:
        raise LogError(f"loss={loss!r} is for two classes, but y has {len(classes)}.")
    return ScoringSpec(loss, response, classes, replace(options, classes=classes))


def run_fit(
    score: Callable[..., tuple[FloatArray, float | None]],
    number: int,
    model: Hashable,
    *arguments: Any,
) -> FitResult:
    """Call `fit_and_score` or its cached version, and return an exception as a result.

    If it were raised in a worker process, the exception would lose its cause.
    """
    try:
        return FitResult(number, model, *score(*arguments))
    except Exception as error:
        return FitResult(number, model, failure=picklable_error(error))


def fit_and_score(
    key: str,
    train: IntArray,
    points: IntArray,
    apparent: bool,
    estimator: Any,
    data: Values,
    spec: ScoringSpec,
) -> tuple[FloatArray, float | None]:
    """Train a clone of the estimator and compute its loss at each of the points.

    Parameters
    ----------
    key : str
        Identifies estimator, data and scoring in a cache; not used here.
    train, points : array of int
        Rows to train on, including repeats, and distinct rows to test on, in ascending order.
    apparent : bool
        Whether the fit is tested on its own sample.
    estimator, data, spec
        The estimator to clone, the data, and the scoring.

    Returns
    -------
    losses : array of float, shape (points,)
    no_information : float or None
        The no-information rate of an apparent fit.
    """
    clone = import_module("sklearn.base").clone
    fitted = clone(estimator).fit(take_rows(data.X, train), take_rows(data.y, train))
    if spec.responses:
        return kept_predictions(fitted, take_rows(data.X, points), spec), None
    predicted = predictions(fitted, take_rows(data.X, points), spec)
    truth = data.truth[points]
    losses = pointwise(truth, predicted, spec.loss, spec.options)
    if not apparent:
        return losses, None
    again = np.searchsorted(points, train)  # each point as often as in the sample
    return losses, no_information(truth[again], predicted[again], spec.loss, spec.options)


def take_rows(values: Any, rows: IntArray) -> Any:
    """Select rows, including repeats, of data of any kind."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "shape"):
        return values[rows]
    return [values[row] for row in rows.tolist()]


def kept_predictions(fitted: Any, X: Any, spec: ScoringSpec) -> FloatArray:
    """Compute all predictions that the metrics need, as numbers: labels as codes."""
    columns: list[NDArray[Any]] = []
    for response in spec.responses:
        found = predictions(fitted, X, replace(spec, response=response))
        if response == "predict" and spec.classes:
            found = np.searchsorted(np.array(spec.classes), found)
        columns.append(found.reshape(len(found), -1))
    return np.column_stack(columns).astype(np.float64)


def predictions(fitted: Any, X: Any, spec: ScoringSpec) -> NDArray[Any]:
    """Compute the predictions that the loss uses."""
    if not hasattr(fitted, spec.response):
        raise LogError(
            f"{describe_type(fitted)} has no {spec.response}, which loss={spec.loss!r} "
            "requires. Expected a classifier that has it; for others use zero_one."
        )
    found = np.asarray(getattr(fitted, spec.response)(X))
    if spec.response == "predict_proba":
        return probabilities(fitted, found, spec.classes)
    if found.ndim == 2 and found.shape[1] == 1:
        return found[:, 0]
    if found.ndim != 1:
        raise LogError(
            f"{spec.response} returned the shape {found.shape}. Expected one number for each point."
        )
    return found


def probabilities(fitted: Any, found: NDArray[Any], classes: tuple[Hashable, ...]) -> NDArray[Any]:
    """Sort the columns by class; a class that was not in the training sample has probability 0.

    For two classes, only the probability of the second one is returned.
    """
    known = np.asarray(fitted.classes_).tolist()
    columns = np.zeros((len(found), len(classes)))
    for at, label in enumerate(known):
        columns[:, classes.index(label)] = found[:, at]
    return columns[:, 1] if len(classes) == 2 else columns


def picklable_error(error: Exception) -> BaseException:
    """Return this exception if it can be pickled, otherwise one with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    return error


def no_information(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> float:
    """Average the loss over all pairs of a truth and a prediction (Efron and Tibshirani 1997, 28).

    Squared error, Brier score and 0/1 loss take one step per point, absolute error also a sort.
    Other losses take one step per distinct truth and prediction, which are few for classes.
    """
    if loss == "squared_error":
        return squared(truth, prediction)
    if loss == "brier" and prediction.ndim == 1:
        return squared(truth == options.positive, prediction)
    if loss == "brier":
        pairs = zip(options.classes or (), prediction.T, strict=True)
        return float(sum(squared(truth == label, column) for label, column in pairs))
    if loss == "absolute_error":
        return absolute(truth.astype(np.float64), prediction.astype(np.float64))
    if loss == "zero_one":
        return zero_one(truth, prediction)
    values, shares = counted(truth)
    rates = [
        float(np.mean(pointwise(np.full(len(truth), value), prediction, loss, options)))
        for value in values
    ]
    return float(np.average(rates, weights=shares))


def squared(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """``var(y) + var(f) + (mean(y) - mean(f))^2``, the variances with divisor n."""
    y, f = truth.astype(np.float64), prediction.astype(np.float64)
    return float(np.var(y) + np.var(f) + (np.mean(y) - np.mean(f)) ** 2)


def zero_one(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """``sum_c p_c (1 - q_c)``, the shares of a class among truths and predictions."""
    labels, shares = counted(truth)
    same = [float(np.mean(np.asarray(prediction == label))) for label in labels]
    return float(sum(p * (1 - q) for p, q in zip(shares, same, strict=True)))


def absolute(truth: FloatArray, prediction: FloatArray) -> float:
    """Mean distance of all pairs, from the sorted predictions and their running sums."""
    origin = np.mean(prediction)  # keeps the precision of running sums
    f = np.sort(prediction - origin)
    y = truth - origin
    n = len(f)
    below = np.searchsorted(f, y)
    running = np.concatenate([[0.0], np.cumsum(f)])
    total = y * below - running[below] + (running[n] - running[below]) - y * (n - below)
    return float(np.mean(total) / n)


def counted(truth: NDArray[Any]) -> tuple[list[Any], list[float]]:
    """Find the distinct truths and their frequencies."""
    values, counts = np.unique(truth, return_counts=True)
    return list(values), (counts / len(truth)).tolist()


# --- finished fits on disk ------------------------------------------------------------------------


DIGEST = 32
"""Size of a SHA-256 hash in bytes."""
PLAIN = (str, bytes, int, float, complex, type(None))
"""Types of constants that are described by their text."""


Scored = tuple[FloatArray, float | None]
"""The result of `fit_and_score`: losses, and the no-information rate of an apparent fit."""


@dataclass(frozen=True)
class FitCache:
    """Calls `fit_and_score`, unless its result is cached in a folder.

    A result is a file of numbers preceded by their SHA-256 hash. Reading one cannot execute code,
    and a file that is damaged or belongs to another fit is computed again.

    Parameters
    ----------
    folder : path
        The folder of the results.
    """

    folder: Path

    def __call__(
        self, key: str, train: IntArray, points: IntArray, apparent: bool, *question: Any
    ) -> Scored:
        """Read the result of a fit, or compute and write it."""
        about = repr((key, len(train), apparent)).encode()
        rows = (np.asarray(part, dtype="<i8").tobytes() for part in (train, points))
        path = self.folder / f"{sha256(about + b''.join(rows)).hexdigest()}.fit"
        found = read_result(path)
        if found is None:
            found = fit_and_score(key, train, points, apparent, *question)
            write_result(path, *found)
        return found


def digest_of(path: Path, numbers: bytes) -> bytes:
    """Hash the numbers of a file together with its name, which identifies the fit."""
    return sha256(path.stem.encode() + numbers).digest()


def read_result(path: Path) -> Scored | None:
    """Read the result of a fit; None if it does not exist or is damaged."""
    if not path.exists():
        return None
    whole = path.read_bytes()
    digest, numbers = whole[:DIGEST], whole[DIGEST:]
    if digest != digest_of(path, numbers):
        return None
    has_rate, rate, *_ = values = np.frombuffer(numbers, dtype="<f8")
    return values[2:].astype(np.float64), float(rate) if has_rate else None


def write_result(path: Path, losses: FloatArray, rate: float | None) -> None:
    """Write the result of a fit atomically."""
    values = np.concatenate([[rate is not None, rate or 0.0], losses.reshape(-1)])
    numbers = values.astype("<f8").tobytes()
    new = path.with_suffix(f".{os.getpid()}")
    new.write_bytes(digest_of(path, numbers) + numbers)
    os.replace(new, path)


def cache_in(folder: str | PathLike[str]) -> FitCache:
    """Return a version of `fit_and_score` that caches its results in a folder.

    Raises
    ------
    LogError
        If the path is not a folder, or is not writable.
    """
    expected = "Expected the path of a folder, such as checkpoint='my_run'."
    if not isinstance(folder, (str, PathLike)):
        raise LogError(f"checkpoint= is {describe_type(folder)}. {expected}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise LogError(f"checkpoint={str(path)!r} is not a folder. {expected}")
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError("permission denied")
    except OSError as error:
        raise LogError(
            f"checkpoint={str(path)!r} cannot be written: {error.strerror or error}. {expected}"
        ) from error
    return FitCache(path.resolve())


def fingerprint(name: str, value: Any) -> str:
    """Hash a value and the code of its classes and functions, equal in all processes.

    Raises
    ------
    LogError
        If the value cannot be pickled.
    """
    try:
        code = CodeCollector()
        code.dump(value)
        # Bytecode differs between versions of Python, and losses may between versions of cvstats.
        versions = sys.version_info[:2], version("cvstats")
        return str(import_module("joblib").hash([value, sorted(code.found), versions]))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise LogError(
            f"{name} cannot be pickled, which checkpoint= needs: {error}. Define functions and "
            "classes by def and class at the top level of a module, or omit checkpoint=."
        ) from error


class CodeCollector(pickle.Pickler):
    """Collects the code of every class and function that an object refers to.

    Pickles, and therefore `joblib.hash`, contain only the name of a class, so the losses of an
    estimator that was edited since would be reused.

    Attributes
    ----------
    found : list of (str, str)
        Name and version of the package if it is installed, otherwise bytecode and constants.
    """

    def __init__(self) -> None:
        # Only names are needed: arrays are skipped, not copied.
        super().__init__(BytesIO(), protocol=5, buffer_callback=lambda _: None)
        self.found: list[tuple[str, str]] = []
        self.seen: set[int] = set()  # avoids endless recursion

    def persistent_id(self, thing: Any) -> None:
        """Inspect every object that is pickled, and pickle it as usual."""
        if isinstance(thing, (type, FunctionType)):
            self.add(thing)

    def add(self, thing: type | FunctionType) -> None:
        """Add a class or function, and those that its code refers to."""
        if id(thing) in self.seen:
            return
        self.seen.add(id(thing))
        text = installed_version(str(thing.__module__).partition(".")[0])
        if text is None:
            text = repr([self.describe(part) for part in parts_of(thing)])
        self.found.append((f"{thing.__module__}.{thing.__qualname__}", text))

    def describe(self, part: Any) -> Any:
        """Describe a part of a class or function, independent of the process."""
        if isinstance(part, (type, FunctionType)):
            self.add(part)
            return part.__qualname__
        if isinstance(part, tuple):
            return [self.describe(item) for item in part]
        if isinstance(part, frozenset):
            return sorted(map(repr, part))
        if isinstance(part, CodeType):
            return [part.co_code.hex(), part.co_names, self.describe(part.co_consts)]
        if hasattr(part, "__wrapped__"):  # such as by functools.lru_cache
            return self.describe(part.__wrapped__)
        return part if isinstance(part, PLAIN) else type(part).__qualname__


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None for code that the user may edit."""
    if package in sys.stdlib_module_names:
        return sys.version
    module = sys.modules.get(package)
    folders = Path(getattr(module, "__file__", None) or "").parts
    if not {"site-packages", "dist-packages"} & set(folders):
        return None
    return str(getattr(module, "__version__", ""))


def parts_of(thing: type | FunctionType) -> Iterator[Any]:
    """Yield the parts of a class or function, and what its code refers to."""
    if isinstance(thing, type):
        yield from thing.__bases__
        for name, part in vars(thing).items():
            part = getattr(part, "__func__", part)  # of a class method or static method
            if isinstance(part, property):
                yield name, (part.fget, part.fset)
            elif isinstance(part, (type, FunctionType)) or not name.startswith("__"):
                yield name, part
        return
    yield from (thing.__code__, thing.__defaults__, tuple((thing.__kwdefaults__ or {}).items()))
    yield from (cell.cell_contents for cell in thing.__closure__ or ())
    names = names_in(thing.__code__)
    known = [thing.__globals__[name] for name in names if name in thing.__globals__]
    modules = [vars(part) for part in known if isinstance(part, ModuleType)]
    yield from known
    yield from (module[name] for module in modules for name in names if name in module)


def names_in(code: CodeType) -> list[str]:
    """List the names in some code, including the functions that it defines."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [*code.co_names, *(name for part in inner for name in names_in(part))]
