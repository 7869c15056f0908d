"""A reader is a function and a row of a table, and a broken file breaks its own readers only."""

import inspect
import sys
from pkgutil import iter_modules, resolve_name

import pandas as pd
import pytest

import cvstats
from cvstats.io import tools
from cvstats.io.tools import FORMATS, recognize

TABLE = pd.DataFrame({"fold": [0, 0, 1, 1], "point": [0, 1, 2, 3], "loss": [1.0, 2.0, 3.0, 4.0]})
FILES = [module.name for module in iter_modules(tools.__path__)]
KINDS = ["arrow", "netcdf"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_row_names_a_reader(name):
    reader = resolve_name(f"cvstats.io.tools.{FORMATS[name].reader}")
    assert list(inspect.signature(reader).parameters)[1:] == ["options"]


def test_every_file_of_tools_has_a_row():
    assert {form.reader.partition(":")[0] for form in FORMATS.values()} == set(FILES)


@pytest.mark.parametrize("file", [f"tools.{name}" for name in FILES] + KINDS)
def test_a_broken_file_breaks_itself_only(file, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, f"cvstats.io.{file}", None)  # importing it fails
    if file != "tools.columns":
        assert cvstats.read_log(TABLE).tolist() == [1, 2, 3, 4]
        assert cvstats.read_log({"a": TABLE, "b": TABLE}).shape == (4, 2)
    log = cvstats.as_log(TABLE)
    cvstats.save_log(log, tmp_path / "log.csv")
    assert cvstats.read_log(tmp_path / "log.csv").equals(log)
    for name, form in FORMATS.items():
        if file == f"tools.{form.reader.partition(':')[0]}":
            with pytest.raises(ImportError):
                cvstats.read_log(TABLE, format=name)


def test_what_recognises_nothing_reads_other_tables():
    assert recognize(TABLE, None) == "columns"
    assert recognize(object(), None) == "columns"
