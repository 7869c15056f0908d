"""Tables for papers: every kind of result in Markdown and LaTeX, rounded for reading only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plotted import logged

import cvstats
from cvstats.errors import LogError
from cvstats.formatting import printable
from cvstats.reporting.sentences import Scale


@pytest.mark.parametrize("digits", ["auto", None, 0, 3])
def test_tables_for_papers(digits):
    losses = logged("diabetes").rename(columns={"ridge": "r|_&%<b>"})
    table = cvstats.wald(losses)
    lines = cvstats.to_markdown(table, digits=digits).splitlines()
    assert len(lines) == 5
    assert lines[2].startswith(r"| r\|_&%&lt;b> |")
    value = table["estimate"].iloc[0]
    expected = {"auto": "3,006", None: repr(float(value)), 0: "3,006", 3: "3,006.156"}[digits]
    assert lines[2].split(" | ")[1] == expected
    latex = cvstats.to_latex(table, columns=["estimate"], digits=digits, caption="C", label="t:x")
    assert rf"r|\_\&\%\textless{{}}b\textgreater{{}} & {expected} \\" in latex
    assert latex.startswith("\\begin{table}\n\\centering\n\\caption{C}\n\\label{t:x}")
    assert latex.count(r"\\") == 4


def test_tables_of_every_kind_of_result():
    losses = logged("diabetes")
    arrays = losses.to_xarray()
    for result in (cvstats.compare(losses), cvstats.moments(losses).head(), arrays.cvci.compare()):
        assert cvstats.to_markdown(result).count("|") > 20
    assert cvstats.to_markdown(losses["ridge"].cvci.wald()).splitlines()[2].startswith("| ridge |")
    assert cvstats.to_markdown(arrays["ridge"].cvci.wald()).splitlines()[2].startswith("| loss |")
    wide = cvstats.to_markdown(arrays.cvci.wald())
    assert wide == cvstats.to_markdown(losses.cvci.wald())
    found = cvstats.to_markdown(cvstats.diagnose(logged("flights")))
    assert found.splitlines()[0].startswith("| code | finding |")


def test_tables_refuse_what_they_cannot_show():
    table = cvstats.wald(logged("diabetes"))
    with pytest.raises(LogError, match="no column 'error'"):
        cvstats.to_markdown(table, columns=["error"])
    with pytest.raises(LogError, match="digits=-1 is out of range"):
        cvstats.to_latex(table, digits=-1)
    with pytest.raises(LogError, match="a list is not a result"):
        cvstats.to_markdown([1, 2])
    losses = logged("diabetes")
    arrays = losses.to_xarray()
    for log in (losses, losses["ridge"], arrays, arrays["ridge"]):
        for write in (cvstats.to_markdown, cvstats.to_latex):
            with pytest.raises(
                LogError, match="this is a loss log and not a result. Expected what"
            ):
                write(log)
    parts = cvstats.decompose(logged("flights"), by="source")
    assert cvstats.to_markdown(parts).count("|") > 20


def test_what_no_page_can_show_is_replaced():
    assert printable("a\x00b\x1b[31m\ud800\x85") == "a\N{REPLACEMENT CHARACTER}b" + (
        "\N{REPLACEMENT CHARACTER}[31m" + 2 * "\N{REPLACEMENT CHARACTER}"
    )
    assert printable("tab\tand\nline") == "tab and line"
    assert printable("é · 模型 $x_1$") == "é · 模型 $x_1$"


def test_sentences_of_tables_are_wrapped_and_complete():
    log = cvstats.datasets.load("flights_by_month")
    losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    for table, column in ((cvstats.methods(losses), "why_not"), (losses.cvci.diagnose(), "advice")):
        shown = repr(table)
        assert max(map(len, shown.splitlines())) <= 80
        assert str(table.columns[-1]) in shown.splitlines()[-1]
        for words in table[column]:
            assert " ".join(words.split()) in " ".join(shown.split())
            assert words.replace("<", "&lt;").replace(">", "&gt;") in table._repr_html_()
        assert type(table.head(1)) is pd.DataFrame
    nothing = cvstats.diagnose(
        cvstats.losses(cvstats.datasets.load("diabetes"), prediction="ridge")
    )
    assert repr(nothing) == "[0 rows x 5 columns: code, finding, model, value, advice]"


LOSS, SHARE = Scale("mean loss"), Scale("error rate")
ACCURACY = Scale("accuracy", "1 - score")


@pytest.mark.parametrize(
    ("scale", "limits", "decimals", "of_values", "words"),
    [
        (LOSS, (-0.00004, 0.02), 2, False, "−0.00004 to 0.02000"),
        (LOSS, (-0.00004, 0.02), 2, True, "−0.00 to 0.02"),
        (LOSS, (0.0, 0.02), 1, False, "0.00 to 0.02"),
        (LOSS, (-np.inf, 0.001), 1, False, "−∞ to 0.001"),
        (SHARE, (-0.1, 0.25), 3, True, "−10.0% to 25.0%"),
        (SHARE, (-0.1, 0.25), 3, False, "−10.0 to 25.0"),
        (ACCURACY, (-0.1, 0.25), 3, True, "75.0% to 110.0%"),
    ],
)
def test_limits_in_words(scale, limits, decimals, of_values, words):
    """A limit of a difference beside 0 is not written as 0, nor is one clipped to a scale."""
    assert scale.range(*limits, decimals, of_values=of_values) == words
