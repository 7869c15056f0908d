"""Tables for papers: every kind of result in Markdown and LaTeX, rounded for reading only."""

import re
import subprocess
from functools import cache, partial
from pathlib import Path
from shutil import which

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.ft2font import FT2Font
from plotted import logged, write_without_marks

import cvstats
from cvstats.cli import format_result
from cvstats.errors import LogError
from cvstats.formatting import printable, write_p
from cvstats.reporting.verdict import Scale


@pytest.mark.parametrize("digits", ["auto", None, 0, 3])
def test_tables_for_papers(digits):
    losses = logged("diabetes").rename(columns={"ridge": "r|_&%<b>"})
    table = cvstats.wald(losses)
    lines = cvstats.to_markdown(table, digits=digits).splitlines()
    assert len(lines) == 5
    assert lines[2].startswith(r"| r\|_&%&lt;b> |")
    value = table["estimate"].iloc[0]
    expected = {"auto": "3,006", None: repr(float(value)), 0: "3,006", 3: "3,006.156"}[digits]
    assert lines[2].split(" | ")[1].startswith(f"{expected} (")
    latex = cvstats.to_latex(table, columns=["estimate"], digits=digits, caption="C", label="t:x")
    assert rf"r|\_\&\%\textless{{}}b\textgreater{{}} & {expected} \\" in latex
    assert latex.startswith("\\begin{table}\n\\centering\n\\caption{C}\n\\label{t:x}\n")
    assert latex.endswith("\n\\end{table}")
    assert latex.count(r"\\") == 4


def test_negative_exponents_have_minus_signs_in_sentences_and_tables(monkeypatch):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", write_without_marks)
    losses = logged("diabetes") / 1e16
    result, summary = losses.cvci.interval(), losses.cvci.summary()
    row = " ".join(cvstats.to_markdown(result).splitlines()[2].split())
    assert re.fullmatch(r"\| ridge \| 3\.\d+e−13 \(2\.\d+e−13 to 3\.\d+e−13\) \|", row)
    text = f"{summary.text} {cvstats.to_apa(result)} {losses.cvci.report()}"
    assert not re.search(
        r"\de-\d\d?\b", re.sub(r"<svg.*?</svg>|data:[^\"]*", "", text, flags=re.DOTALL)
    )
    latex = cvstats.to_latex(result)
    assert re.search(r"3\.\d+e\$-\$13 \(2\.\d+e\$-\$13 to", latex)
    assert "−" not in latex
    assert "e-13" in repr(result)  # as numbers are typed


def test_tables_refuse_what_they_cannot_show():
    table = cvstats.wald(logged("diabetes"))
    with pytest.raises(LogError, match="no column 'error'"):
        cvstats.to_markdown(table, columns=["error"])
    for wrong in (-1, True):
        with pytest.raises(LogError, match=f"digits={wrong} is out of range"):
            cvstats.to_latex(table, digits=wrong)
    with pytest.raises(LogError, match="a list is not a result"):
        cvstats.to_markdown([1, 2])
    losses = logged("diabetes")
    arrays = losses.to_xarray()
    for log in (losses, losses["ridge"], arrays, arrays["ridge"]):
        for write in (cvstats.to_markdown, cvstats.to_latex):
            with pytest.raises(LogError, match="this is a loss log, not a result. Pass the result"):
                write(log)
    parts = cvstats.decompose(logged("flights").iloc[::10], by="source")
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
        for asked, width in ((50, 50), (120, 120), (None, 80)):
            with pd.option_context("display.width", asked):
                longest = max(map(len, repr(table).splitlines()))
            assert width - 20 < longest <= width
    nothing = cvstats.diagnose(
        cvstats.losses(cvstats.datasets.load("diabetes"), prediction="ridge")
    )
    shape = "[0 rows x 5 columns: code, finding, model, value, advice]"
    assert repr(nothing) == f"no problems found\n\n{shape}"


def test_a_row_is_shown_as_it_is_in_its_table():
    """The name of a model may have two letters, as a pair has two names."""
    losses = cvstats.losses(
        cvstats.datasets.load("diabetes"), prediction=["ridge", "random_forest"]
    )
    table = losses.set_axis(["ab", "random_forest"], axis=1).cvci.wald()
    lines = cvstats.to_markdown(table).splitlines()
    assert [line.split() for line in cvstats.to_markdown(table.loc["ab"]).splitlines()[2:]] == [
        lines[2].split()
    ]


def test_a_row_of_pairs_has_the_sentence_of_its_table():
    log = cvstats.datasets.load("diabetes")
    pairs = cvstats.losses(log, prediction=log.attrs["models"]).cvci.compare(reference="ridge")
    for at, sentence in enumerate(cvstats.to_apa(pairs).splitlines()):
        assert cvstats.to_apa(pairs.iloc[at]) == sentence


LOSS, SHARE = Scale("mean loss"), Scale("error rate")
ACCURACY = Scale("accuracy", "1 - score")


@pytest.mark.parametrize(
    ("scale", "limits", "decimals", "of_values", "words"),
    [
        (LOSS, (-0.00004, 0.02), 2, False, "−0.00004 to 0.02000"),
        (LOSS, (-0.00004, 0.02), 2, True, "0.00 to 0.02"),
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


# --- tables that fit a column ---------------------------------------------------------------------

LONG = "gradient_boosting_regressor with tuned depth-8/v3.5_turbo"


@cache
def tables_for_journals():
    losses = logged("diabetes")
    named = losses.rename(columns={"ridge": LONG})
    return {
        "intervals": cvstats.wald(losses),
        "pairs": cvstats.compare(losses),
        "long": cvstats.compare(named),
        "t": cvstats.compare(losses, method="corrected_t"),
        "cautions": cvstats.naive(losses.loc[[0]]),
        "shares": cvstats.compare(logged("flights")),
        "equivalence": cvstats.equivalence(losses, margin=100),
        "best_set": cvstats.best_set(losses, rng=0),
        "power": cvstats.power(losses, effect=100),
        "decompose": cvstats.decompose(losses.loc[[0]]),
    }


def test_estimates_limits_and_p_values_are_printed_as_in_journals():
    tables = tables_for_journals()
    latex = cvstats.to_latex(tables["pairs"]).splitlines()
    assert latex[latex.index(r"\toprule") - 1 :][:7] == [
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"model $-$ other & difference (95\% CI) & adj.\ $p$ \\",
        r"\midrule",
        r"ridge $-$ &  &  \\",
        r"\quad random\_forest & $-$182 ($-$433 to 69) & 0.47 \\",
        r"\quad gradient\_boosting & $-$143 ($-$406 to 119) & 0.57 \\",
    ]
    lines = cvstats.to_markdown(tables["pairs"]).splitlines()
    assert lines[0] == "| model | other | difference (95% CI) | p | adjusted p |"
    assert lines[2] == "| ridge | random_forest | −182 (−433 to 69) | 0.16 | 0.47 |"
    metadata = cvstats.to_latex(tables["cautions"])
    assert r"ridge\textsuperscript{a} & 3,023 (2,651 to 3,395) \\" in metadata
    assert r"{\footnotesize \textsuperscript{a}dependence ignored\par}" in metadata
    assert "| dependence ignored |" in cvstats.to_markdown(tables["cautions"])
    every = cvstats.to_latex(tables["pairs"], columns=["difference", "se", "p_value"])
    assert r"$-$182 & 128 & 0.155" in every
    assert [write_p(p) for p in (0.0004, 0.001, 0.0123, 0.0496, 0.0996, 0.5, np.nan)] == [
        "<0.001", "0.001", "0.012", "0.050", "0.10", "0.50", "–",
    ]  # fmt: skip


def test_sentences_in_the_style_of_the_apa():
    tables = tables_for_journals()
    assert cvstats.to_apa(tables["pairs"]).splitlines()[1] == (
        "ridge minus gradient_boosting: difference in loss = −143, "
        "95% CI [−406, 119], p = .28, adjusted p = .57."
    )
    equivalence = tables["equivalence"]  # its limits were labeled 95%
    assert "difference (90% CI)" in cvstats.to_markdown(equivalence)
    assert "difference (90\\% CI)" in cvstats.to_latex(equivalence)
    assert re.search(r", 90% CI \[.*\], equivalence p [=<]", cvstats.to_apa(equivalence))
    assert cvstats.to_apa(tables["cautions"]).startswith(
        "ridge: mean loss = 3,023, 95% CI [2,651, 3,395], n = 442. (Caution: dependence ignored.)"
    )
    together = cvstats.compare(logged("diabetes"), adjust="max-t", rng=0)
    assert ", p = " not in cvstats.to_apa(together)  # its limits are those of the adjusted p
    assert cvstats.to_markdown(together).startswith("| model | other | difference (95% CI) | adj")
    with pytest.raises(LogError, match="the result has no limits, which a sentence needs"):
        cvstats.to_apa(tables["best_set"])
    ranks = tables["best_set"].assign(lower_rank=[1, 1, 3], upper_rank=[2, 2, 3])
    rows = cvstats.to_markdown(ranks).splitlines()[2:]
    assert [row.split(" | ")[-1] for row in rows] == ["1 to 2 |", "1 to 2 |", "3 |"]


def test_sentences_name_differences_and_the_number_of_sources():
    points = pd.RangeIndex(160, name="point")
    log = pd.DataFrame(np.random.default_rng(0).gamma(2, 1, (160, 2)), points, ["a", "b"])
    log.attrs["loss"] = "absolute_error"
    whole = log.set_index(pd.Index(points // 8, name="source"), append=True)
    points = log.set_index(pd.Index(np.where(points % 2, "f", "m"), name="sex"), append=True)
    groups = points.cvci.contrast(by="sex")
    from_b = points.cvci.difference(reference="b")
    beginnings = {
        "a: mean absolute error = ": points.cvci.interval(),
        "a minus b: difference in absolute error = ": points.cvci.compare(),
        "a minus b: difference in mean absolute error = ": points.cvci.difference().cvci.interval(),
        "a: difference from b in mean absolute error = ": from_b.cvci.interval(),
        "a: difference between groups (f - m) in mean absolute error = ": groups.cvci.interval(),
        "a minus b: difference in differences between groups in absolute error = ": (
            groups.cvci.compare()
        ),
        "a minus 0: difference between groups (f - m) in absolute error = ": groups.cvci.compare(0),
    }
    for words, result in beginnings.items():
        assert cvstats.to_apa(result).startswith(words)
    from_zero, of_groups = groups.cvci.compare(0), groups.cvci.interval()
    assert from_zero.attrs["target"] == of_groups.attrs["target"]
    for method in ("out_of_source", "clustered"):
        text = cvstats.to_apa(cvstats.interval(whole, method=method))
        assert ", n = 160 points in 20 sources." in text
    assert ", n = 160." in cvstats.to_apa(points.cvci.interval())


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        ("zero_one", "error rate"),
        ("brier", "Brier score"),
        ("log_loss", "mean log loss"),
        ("hinge", "mean hinge loss"),
        ("auc", "1 - AUC"),
        ("rmse", "RMSE"),
        ("r2", "-R2"),
        ("net_benefit", "-net benefit"),
        ("calibration_slope", "calibration slope"),
        ("observed_expected", "ratio of observed to expected positives"),
    ],
)
def test_sentences_and_tables_name_losses_in_words(loss, name):
    """A table of 1 - AUC that says "estimate" is read as one of AUC."""
    draw, noise = np.random.default_rng(0).random((2, 100))
    table = pd.DataFrame({"y": (noise > draw) * 1, "a": 0.9 - 0.8 * draw, "b": 0.1 + 0.8 * noise})
    options = {"zero_one": {"threshold": 0.5}, "net_benefit": {"threshold": 0.2}}.get(loss, {})
    losses = cvstats.losses(
        table.rename_axis("point"), truth="y", prediction=["a", "b"], loss=loss, **options
    )
    single, pair = losses.cvci.interval(), losses.cvci.compare()
    change = f"difference in {name.removeprefix('mean ')}"
    weighted = cvstats.losses(
        table.assign(w=1.0).rename_axis("point"), "y", ["a", "b"], loss, weight="w", **options
    )
    if loss in ("zero_one", "brier", "log_loss", "hinge"):  # was "a lower zero one than"
        first = weighted.cvci.summary().sentences[0]
        assert f"a lower {name} than" in first or f"its {name} is lower" in first
        scores = cvstats.to_markdown(cvstats.as_scores(weighted.cvci.interval()))
        assert scores.startswith(f"| model | {name} (95% CI) |")
    assert cvstats.to_apa(single).startswith(f"a: {name} = ")
    assert cvstats.to_apa(pair).startswith(f"a minus b: {change} = ")
    assert cvstats.to_markdown(single).startswith(f"| model | {name} (95% CI) |")
    assert cvstats.to_markdown(pair).startswith(f"| model | other | {change} (95% CI) | p |")
    signs = re.sub(r"(?<!\S)-", "$-$", f"{change} (95\\% CI)")
    two_lines = signs.replace("in ", r"in\\", 1)
    assert any(words in cvstats.to_latex(pair) for words in (two_lines, rf"\qquad {signs}"))
    if name.startswith(("1 - ", "-")):
        score = name.removeprefix("1 - ").removeprefix("-")
        assert f" | {score} (95% CI) |" in cvstats.to_markdown(cvstats.as_scores(single))


def test_models_of_several_columns_are_named_as_on_the_screen():
    log = pd.DataFrame(np.random.default_rng(0).random((40, 2)), pd.RangeIndex(40, name="point"))
    log.columns = pd.MultiIndex.from_tuples([("ridge", 1), ("forest", 2)])
    log.columns = log.columns.to_flat_index()
    table = log.cvci.wald()
    for write in (
        cvstats.to_markdown,
        cvstats.to_latex,
        cvstats.to_apa,
        str,
        partial(format_result, format="csv"),
    ):
        assert "ridge · 1" in write(table), write
        assert "('ridge', 1)" not in write(table), write


def measure_rows(latex):
    """The widths of the cells of each row in points, in the font of LaTeX and at its size."""
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    font = FT2Font(str(folder / "cmr10.ttf"))
    sizes = {r"\small": 9, r"\footnotesize": 8, r"\scriptsize": 7}
    size = next((points for name, points in sizes.items() if latex.startswith("{" + name)), 10)
    font.set_size(size, 72)
    for row in latex.split(r"\midrule")[1].split(r"\bottomrule")[0].split(r"\\"):
        cells = []
        for cell in row.strip().split(" & "):
            text = re.sub(r"\\parbox\[t\]{(\d+)em}.*", lambda box: "nn" * int(box[1]), cell)
            text = text.replace(r"\quad", "mm")
            text = text.replace(r"\_", "n").replace("$-$", "+").replace("$", "")
            text = re.sub(r"\\[a-z]+|[\\{}]", "", text)
            font.set_text(text)
            cells.append(font.get_width_height()[0] / 64)
        yield cells


def test_tables_fit_a_column_by_their_letters():
    for name, table in tables_for_journals().items():
        latex = cvstats.to_latex(table)
        rows, gap = list(measure_rows(latex)), 6 if r"\tabcolsep" in latex else 12
        columns = max(map(len, rows))
        widths = [max(row[k] for row in rows if len(row) > k) for k in range(columns)]
        assert sum(widths) + gap * (columns - 1) <= 246, name


@pytest.mark.skipif(which("pdflatex") is None, reason="no LaTeX is installed")
@pytest.mark.parametrize("option", ["", "twocolumn"])
def test_tables_are_compiled_without_an_overfull_box(tmp_path, option):
    body = "\n\n".join(
        cvstats.to_latex(t, caption="Errors") for t in tables_for_journals().values()
    )
    (tmp_path / "page.tex").write_text(
        rf"\documentclass[{option}]{{article}}\usepackage{{booktabs}}\begin{{document}}"
        rf"{body}\end{{document}}"
    )
    run = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "page.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    log = (tmp_path / "page.log").read_text("latin-1")
    assert run.returncode == 0, run.stdout[-2000:]
    assert "Overfull" not in log
    assert "Undefined" not in log


def test_a_model_without_a_name_is_formatted():
    values = np.random.default_rng(0).random((30, 2))
    log = pd.DataFrame(values, pd.RangeIndex(30, name="point"), pd.Index(["a", None], dtype=object))
    for result in (log.cvci.interval(), log.cvci.compare()):
        for write in (cvstats.to_markdown, cvstats.to_latex):
            text = write(result)
            assert "nan" in text or "None" in text  # as pandas stores it in the index
