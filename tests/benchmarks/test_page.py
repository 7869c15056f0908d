"""The page about speed: one command measures, and the page is what the saved run makes of it."""

import contextlib
import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import billion, growth, measure, methods
from benchmarks import page as page_module

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PEERS = {
    "pandas groupby.agg", "polars group_by.agg", "flox var", "numbagg group_nanvar",
    "np.bincount, centred", "np.var", "numbagg nanvar", "polars var", "xarray groupby.var",
    "flox xarray_reduce",
}  # fmt: skip


def tables(page):
    """Read the tables of a page by their names."""
    text = page.read_text("utf-8")
    found = re.findall(r"<!-- table: (\w+) -->\n(.*?)<!-- end -->", text, re.DOTALL)
    return {
        name: [
            [c.strip() for c in line.strip("|").split("|")] for line in inner.strip().split("\n")
        ]
        for name, inner in found
    }


def test_the_page_says_what_the_saved_run_found():
    page, run = DOCS / "benchmarks.md", measure.load(DOCS / "benchmarks" / "run.json")
    assert run["scale"] == "full"
    assert page_module.filled(page.read_text("utf-8"), run) == page.read_text("utf-8")


@pytest.mark.parametrize("name", ["growth_time", "growth_memory"])
def test_the_figures_show_what_the_saved_run_found(name):
    run = measure.load(DOCS / "benchmarks" / "run.json")
    figure = (DOCS / "benchmarks" / f"{name}.svg").read_text("utf-8")
    assert f"run {growth.digest(run['growth'])}" in figure


def test_the_saved_run_has_every_promise():
    rows = tables(DOCS / "benchmarks.md")["promises"][2:]
    lines = {(row[0], row[1], row[2]): row[-2] for row in rows}
    needed = {
        ("import cvstats", "", "pandas, xarray, numba, scipy.special"): "<= 1.1",
        ("compare, 19,900 pairs", "100,000 x 200 models", "X.T @ X"): "<= 2",
        ("memory of the first call, resident", "10,000,000 rows", ""): "<= 64.0 MB",
        ("memory of the first call, traced", "10,000,000 rows", ""): "<= 64.0 MB",
    }
    for variance in ("all-pairs", "within-fold"):
        wald = f"wald {variance}"
        needed |= {
            (f"{wald}, checked", "10,000,000 rows", "np.sum"): "<= 2",
            (f"{wald}, checked", "10,000,000 rows", "groupby.agg"): "<= 1/30",
            (f"{wald}, first call", "10,000,000 rows", "np.sum"): "<= 6",
            (f"{wald}, rows contiguous", "100,000 x 100 models", "np.sum"): "<= 2",
            (f"{wald}, columns contiguous", "100,000 x 100 models", "np.sum"): "<= 2",
            (f"{wald}, float64", "1,000 x 100,000 cells", 'mean("point")'): "<= 3",
            (f"{wald}, float32", "1,000 x 100,000 cells", 'mean("point")'): "<= 3",
            (f"{wald}, first in a process", "10,000 rows", ""): "<= 300 ms",
        }
    assert {key: lines.get(key) for key in needed} == needed
    beyond = [row for row in rows if row[0].startswith("beyond the arithmetic")]
    assert len(beyond) == 3 * 2 * 2
    assert {row[-2] for row in beyond} == {"<= 1 ms"}


@pytest.mark.process
def test_a_run_fills_every_table_and_redrawing_changes_nothing(tmp_path, monkeypatch):
    shutil.copy(DOCS / "benchmarks.md", tmp_path)
    monkeypatch.setattr(sys, "argv", ["page", "--scale", "tiny", "--docs", str(tmp_path)])
    page_module.main()
    every_table_is_filled(tmp_path)
    page, folder = tmp_path / "benchmarks.md", tmp_path / "benchmarks"
    before = {path: path.read_bytes() for path in (page, *folder.iterdir())}
    options = ["page", "--redraw", "--docs", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", options)
    page_module.main()
    assert {path: path.read_bytes() for path in before} == before
    run = json.loads((folder / "run.json").read_text("utf-8"))
    billion = {"heading": "elsewhere", "lines": [["work", "time"], ["scan_parquet", "2 s"]]}
    (folder / "run.json").write_text(json.dumps(run | {"billion": billion}), "utf-8")
    page_module.main()
    heading, *_, line = tables(page)["billion"]
    assert (heading, line) == (["elsewhere"], ["scan_parquet", "2 s"])
    monkeypatch.setattr(sys, "argv", ["page", "--scale", "tiny", "--docs", str(tmp_path)])
    monkeypatch.setattr(page_module, "measured", lambda scale: run)
    page_module.main()
    assert tables(page)["billion"][0] == ["elsewhere"]


def every_table_is_filled(docs):
    found = tables(docs / "benchmarks.md")
    assert set(found) == {
        "heading", "promises", "peers", "machine", "sizes", "methods", "growth", "scaling",
        "billion",
    }  # fmt: skip
    peers = {row[2] for row in found["peers"][2:]}
    assert peers == PEERS | {"scipy.stats.bootstrap, 99 resamples"}
    for row in found["peers"][2:]:
        assert (row[3] == "not installed") == (row[5] == "")
    assert {row[-1] for row in found["promises"][2:]} <= {"yes", "NO"}
    assert {row[0] for row in found["promises"][2:] if not row[0].startswith("beyond")} == {
        "import cvstats", "libraries it loads needlessly: none",
        "wald all-pairs, first in a process", "wald within-fold, first in a process",
        "memory of the first call, resident", "memory of the first call, traced",
    }  # fmt: skip
    assert found["sizes"][-1][0] == "wald all-pairs, first ever, kernels compiled"
    assert {"read of losses, 1 thread", "read of losses and codes, 1 thread"} < {
        row[2] for row in found["machine"][2:]
    }
    assert len(found["methods"]) == 2 + 2 * len(methods.METHODS)
    assert found["billion"] == [["Not measured in this run."]]
    for name in ("growth_time", "growth_memory"):
        assert "<svg" in (docs / "benchmarks" / f"{name}.svg").read_text("utf-8")


def test_a_log_larger_than_memory_joins_the_run(tmp_path, monkeypatch):
    """The code of each process runs in this one; the processes are those of the whole run above."""
    path = tmp_path / "run.json"
    monkeypatch.setattr(measure, "run_python", run_here)
    path.write_text('{"scale": "full"}', "utf-8")
    options = ["--rows", "20000", "--files", "4", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", ["billion", *options])
    billion.main()
    run = measure.load(path)
    assert run["scale"] == "full"
    lines = page_module.of_a_billion(run).splitlines()
    assert "Each once." in lines[0]
    assert [line.split(" | ")[0] for line in lines[4:]] == [
        "| pyarrow, means", "| pandas, means", "| scan_parquet, wald and compare",
        "| cvstats interval", "| cvstats compare", "| cvstats summary", "| cvstats report",
    ]  # fmt: skip


def run_here(code):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    return printed.getvalue()


def test_redrawing_needs_a_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["page", "--redraw", "--docs", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        page_module.main()
    assert left.value.code == 2
    assert "--redraw needs a saved run, and" in capsys.readouterr().err


def test_rows_are_kept_whole(tmp_path):
    row = measure.Row
    rows = [
        row("a", "b", "c", 1.0, 2.0, 0.5, 1 / 30, spread=(0.4, 0.6)),
        row("a", "b", "c", absent="not installed"),
        row("a", "", "", 3.0, bound=64.0, unit="MB", absolute=True),
        row("a", "", "", 0, bound=0, unit="of 4", absolute=True),
    ]
    measure.save({"rows": measure.pack(rows)}, tmp_path / "run.json")
    again = measure.unpack(measure.load(tmp_path / "run.json")["rows"])
    assert [one.cells() for one in again] == [one.cells() for one in rows]
    assert again[1].cells()[3:6] == ("not installed", "", "")
    assert measure.load(tmp_path / "other.json") == {}
