"""Finished fits on disk, so that an interrupted run can be continued."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from os import PathLike
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, describe_type
from cvstats.evaluation.fit import fit_and_score

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
