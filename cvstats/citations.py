"""BibTeX entries for the literature behind a result."""

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
"""Width to which field names are padded."""


def cite(result: Any) -> str:
    """Return BibTeX entries for the literature behind a result, and for cvstats itself.

    Parameters
    ----------
    result : DataFrame or Dataset
        The result of a method or a comparison.

    Returns
    -------
    str
        An entry for each work in ``result.attrs["reference"]``, and one for this version of the
        package.

    Raises
    ------
    LogError
        If the object has no ``attrs["reference"]``: it is not a result, or an operation dropped
        its attrs.

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
            f"this {type(result).__name__} has no attrs['reference']. Expected the result of a "
            "method with its attrs, as in cvstats.cite(losses.cvci.wald())."
        )
    entries = [write_entry(key, facts) for key, facts in find_works(reference).items()]
    own = {**read_works()["cvstats"], "version": version("cvstats")}
    return "\n\n".join([*entries, write_entry("cvstats", own)])


@cache
def read_works() -> dict[str, dict[str, Any]]:
    """Read the entries of all works, by key."""
    return tomllib.loads(files("cvstats").joinpath("citations.toml").read_text(encoding="utf-8"))


def find_works(reference: str) -> dict[str, dict[str, Any]]:
    """Find the works that a reference names, by their key."""
    return {
        key: facts
        for key, facts in read_works().items()
        if "find" in facts and facts["find"] in reference
    }


def locate_work(facts: Mapping[str, Any]) -> str:
    """Return the address of a work; empty if neither its DOI nor its arXiv number is known."""
    found_by = str(facts.get("doi", facts.get("find", "")))
    if DOI.match(found_by):
        return f"https://doi.org/{found_by}"
    return f"https://arxiv.org/abs/{found_by}" if ARXIV.match(found_by) else ""


def write_entry(key: str, facts: Mapping[str, Any]) -> str:
    """Write one entry; a DOI or an arXiv number identifies the work."""
    fields = {name: value for name, value in facts.items() if name not in ("find", "type")}
    found_by = str(facts.get("find", ""))
    if DOI.match(found_by):
        fields["doi"] = found_by
    elif ARXIV.match(found_by):
        fields |= {"eprint": found_by, "archiveprefix": "arXiv"}
    kind = facts.get("type", "article" if "journal" in facts else "misc")
    lines = [f"  {name.ljust(WIDTH)} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
