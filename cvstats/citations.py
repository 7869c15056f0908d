"""BibTeX of the works behind a result."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from cvstats.errors import LogError

DOI = re.compile(r"^10\.\d+/")
ARXIV = re.compile(r"^\d{4}\.\d{5}$")
WIDTH = 13
"""Names of fields are filled up to so many characters."""


def cite(result: Any) -> str:
    """Write the works that a result rests on, and cvstats itself, as BibTeX.

    Parameters
    ----------
    result : DataFrame or Dataset
        What a method or a comparison returned.

    Returns
    -------
    str
        An entry for each work named in ``result.attrs["reference"]``, and one for this version
        of the package.

    Raises
    ------
    LogError
        If the object has no ``attrs["reference"]``: it is not a result, or a call has dropped its
        attrs.

    References
    ----------
    Those of the result. Entries are kept in ``citations.toml``.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.cite(losses.cvci.wald()))  # doctest: +ELLIPSIS
    @inproceedings{bayle2020,
      title         = {Cross-validation confidence intervals for test error},
      author        = {Bayle, Pierre and Bayle, Alexandre and Janson, Lucas and Mackey, Lester},
    ...
    """
    reference = getattr(result, "attrs", {}).get("reference")
    if not isinstance(reference, str):
        raise LogError(
            f"a {type(result).__name__} names no reference. Expected the result of a "
            "method, as in cvstats.cite(losses.cvci.wald()), with its attrs."
        )
    entries = [
        write_entry(key, facts)
        for key, facts in read_works().items()
        if "find" in facts and facts["find"] in reference
    ]
    own = {**read_works()["cvstats"], "version": version("cvstats")}
    return "\n\n".join([*entries, write_entry("cvstats", own)])


@cache
def read_works() -> dict[str, dict[str, Any]]:
    """Read the entries of all works, by their key."""
    return tomllib.loads(files("cvstats").joinpath("citations.toml").read_text(encoding="utf-8"))


def write_entry(key: str, facts: Mapping[str, Any]) -> str:
    """Write one entry; a DOI or an arXiv number is what the work is found by."""
    fields = {name: value for name, value in facts.items() if name not in ("find", "type")}
    found_by = str(facts.get("find", ""))
    if DOI.match(found_by):
        fields["doi"] = found_by
    elif ARXIV.match(found_by):
        fields |= {"eprint": found_by, "archiveprefix": "arXiv"}
    kind = facts.get("type", "article" if "journal" in facts else "misc")
    lines = [f"  {name.ljust(WIDTH)} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
