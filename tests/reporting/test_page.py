"""The report: one page that holds the numbers, needs nothing else and escapes every name."""

import importlib
import re
import subprocess
import sys
import warnings
from functools import partial
from html import unescape
from html.parser import HTMLParser
from shutil import which
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import html5lib
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from plotted import draw_without_marks, grid, logged, many, schools, write_without_marks

import cvstats
from cvstats import cli, report
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.reporting import page as sections
from cvstats.reporting.page import draw_svg
from cvstats.reporting.verdict import Scale, Verdict

SCRIPT = "<script>alert(1)</script>"
HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, and text by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.text = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "use", "path", "br", "img"):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in self.stack:
            self.text.setdefault(tag, []).append(data)

    def words(self, tag):
        return " ".join("".join(self.text.get(tag, [])).split())


@pytest.fixture(scope="module")
def texts():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {
            "diabetes": cvstats.report(logged("diabetes")),
            "flights": cvstats.report(logged("flights"), title="Flights"),
            "evil": cvstats.report(evil()),
            "grid": cvstats.report(grid()),
        }


@pytest.fixture(scope="module")
def months():
    """A page whose plots have their tips alone."""
    with mock.patch.object(sections, "draw_svg", write_without_marks):
        return cvstats.report(logged("flights_by_month"))


@pytest.fixture
def unmarked(monkeypatch):
    """Plots of reports are drawn and not written, for tests of what draws them."""
    monkeypatch.setattr(sections, "draw_svg", draw_without_marks)


@pytest.fixture
def undrawn(monkeypatch):
    """Plots of reports have their tips alone, for tests that read the words of a page."""
    monkeypatch.setattr(sections, "draw_svg", write_without_marks)


def evil():
    losses = logged("diabetes").loc[[0, 1]]
    names = {"ridge": SCRIPT, "random_forest": 'a" onload="x & $y$', "gradient_boosting": "岭回归"}
    losses = losses.rename(columns=names)
    losses.attrs = {"title": f"{SCRIPT}&", "long_name": "<b>loss</b>", "units": "<i>"}
    return losses


IMAGE = re.compile(r"<svg.*?</svg>", re.DOTALL)


def pictures(text):
    """The plots of a page, which the page itself holds."""
    return [ElementTree.fromstring(source) for source in IMAGE.findall(text)]


def words_of_pictures(text):
    return " ".join("".join(picture.itertext()) for picture in pictures(text))


WORKS = ("https://doi.org/10.", "https://arxiv.org/abs/")
NAMES = ("diabetes", "flights", "evil", "grid")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid_html(texts, name):
    parser = html5lib.HTMLParser(strict=True)  # raises at the first error
    tree = parser.parse(texts[name])
    assert texts[name].startswith("<!DOCTYPE html>")
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in tree.iter():
        for key in ("aria-labelledby", "aria-describedby"):
            assert element.get(key) is None or element.get(key) in ids
        href = element.get("href")
        assert href is None or href.removeprefix("#") in ids or href.startswith(WORKS)
    for svg in IMAGE.findall(texts[name]):
        own = re.findall(r'\bid="([^"]+)"', svg)
        assert len(own) == len(set(own))
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(own)


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_nothing_else(texts, name):
    tree = html5lib.parse(texts[name])
    tags = [element.tag.split("}")[-1] for element in tree.iter() if isinstance(element.tag, str)]
    assert not set(tags) & {"link", "iframe", "object", "embed", "img", "base", "style-src"}
    assert tags.count("script") == 1  # the page can be read without it
    for element in tree.iter():
        assert not any(str(key).lower().startswith("on") for key in element.attrib)
        if element.tag == f"{HTML}script":
            assert not element.attrib
    text = re.sub(r'<a href="https://[^"]*">', "", IMAGE.sub("", texts[name]))
    assert not re.search(r"@import|url\(|(?:https?:)?//[a-z]", text)
    for picture in pictures(texts[name]):
        for element in picture.iter():
            assert element.tag not in (f"{SVG}script", f"{SVG}foreignObject")
            if element.tag == f"{SVG}image":
                (href,) = [v for key, v in element.attrib.items() if key.endswith("href")]
                assert href.startswith("data:image/png;base64,")
                continue
            for key, value in element.attrib.items():
                assert not key.lower().startswith("on")
                assert not key.endswith("href") or value.startswith("#")


@pytest.mark.parametrize("name", ["diabetes", "flights", "evil"])
def test_it_can_be_read_without_eyes_or_mouse(texts, name):
    tree = html5lib.parse(texts[name])
    html = tree.find(".") if tree.tag == f"{HTML}html" else tree
    assert html.get("lang") == "en"
    assert tree.find(f".//{HTML}main") is not None
    assert tree.find(f".//{HTML}a").get("class") == "skip"
    levels = [int(e.tag[-1]) for e in tree.iter() if re.fullmatch(rf"{HTML}h[1-6]", str(e.tag))]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    for table in tree.iter(f"{HTML}table"):
        assert table.find(f"{HTML}caption") is not None
        assert all(head.get("scope") in ("row", "col") for head in table.iter(f"{HTML}th"))
    for part in tree.iter(f"{HTML}div"):
        if part.get("class") != "wide":
            assert part.get("class") in ("parts", "plot", None)
            continue
        assert (part.get("tabindex"), part.get("role")) == ("0", "region")
        assert part.get("aria-label")
    figures = list(tree.iter(f"{HTML}figure"))
    assert len(figures) == len(pictures(texts[name])) > 0
    for figure in figures:
        plot = figure.find(f"{HTML}div")
        assert plot.get("role") == "img"
        assert len(plot.get("aria-label")) > 10
        assert len("".join(figure.find(f"{HTML}figcaption").itertext())) > 60
    assert all(picture.get("viewBox") for picture in pictures(texts[name]))


def test_names_are_shown_as_text(texts):
    page = Page(texts["evil"])
    assert len([tag for tag, _ in page.tags if tag in ("script", "b", "i")]) == 1
    drawn = words_of_pictures(texts["evil"])
    for place in ("table", "h1", "title"):
        assert SCRIPT in page.words(place)
    assert SCRIPT in drawn
    assert 'a" onload="x & $y$' in page.words("table")
    assert 'a" onload="x & $y$' in drawn
    assert "<b>loss</b> [<i>]" in drawn
    assert "岭回归" in drawn  # the reader's fonts show it: a missing glyph is no warning
    assert not [attrs for _, attrs in page.tags if "onload" in attrs]


def bright(colour):
    """The relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_writing_has_enough_contrast_in_light_and_dark(texts):
    (style,) = re.findall(r"<style>(.*?)</style>", texts["flights"], re.DOTALL)
    used = set(re.findall(r"[{;\s]color:\s*var\(--([a-z]+)\)", style))
    assert {"ink", "soft", "link"} <= used
    schemes = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([a-z]+): #([0-9a-f]{6})", scheme))
        for behind in ("page", "pale", "code"):
            for name in used:
                lights = sorted((bright(colours[name]), bright(colours[behind])))
                assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5, (name, behind)
        for name in ("blue", "orange", "grey"):  # of plots
            lights = sorted((bright(colours[name]), bright(colours["page"])))
            assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 3, name
    dark = style.index("prefers-color-scheme: dark")
    assert style[:dark].rstrip().endswith("@media screen and (")  # paper stays white


@pytest.mark.parametrize("name", NAMES)
def test_plots_can_be_read_on_a_phone_and_on_paper(texts, name):
    for picture in pictures(texts[name]):
        width = float(picture.get("viewBox").split()[2])
        sizes = [
            float(size)
            for text in picture.iter(f"{SVG}text")
            for size in re.findall(r"font(?:-size)?:[^;]*?([\d.]+)px", text.get("style") or "")
        ]
        assert sizes
        assert min(sizes) * 364 / width >= 11  # pixels, 390 wide with margins
        assert min(sizes) * 255 / width >= 7.5  # points, 9 cm wide


def test_it_prints_whole_and_black(texts):
    (style,) = re.findall(r"<style>(.*?)</style>", texts["flights"], re.DOTALL)
    printed = style.partition("@media print")[2]
    (rule,) = re.findall(r"([^{}]*)\{ color: #000; \}", printed)
    for name in ("body", "figcaption", "footer", "a"):
        assert name in rule.replace(",", " ").split()
    assert "details::details-content { content-visibility: visible" in printed  # closed ones too
    assert ".wide { overflow: visible; }" in printed
    assert "thead { display: table-header-group; }" in printed
    assert re.search(r"figure, tr,[^{]*\{ break-inside: avoid; \}", printed)


def row_of(text, name):
    """The cells of the first row of a table that starts so."""
    text = text.replace("<wbr>", "")
    (row, *_) = re.findall(rf'<tr><th scope="row">{re.escape(name)}</th>(.*?)</tr>', text)
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_it_holds_the_numbers(texts):
    losses = logged("diabetes")
    wald, pairs = cvstats.wald(losses), cvstats.compare(losses, adjust="max-t", rng=0)
    for model in losses.columns:
        shown = [f"{wald.loc[model, name]:,.0f}" for name in ("estimate", "lower", "upper", "se")]
        assert row_of(texts["diabetes"], model) == shown
    name = "ridge − random_forest"  # without a caution, which the last pair has
    row = pairs.loc[("ridge", "random_forest")]
    assert row_of(texts["diabetes"], name) == [
        f"{row['difference']:.0f}".replace("-", "−"), f"{row['lower']:.0f}".replace("-", "−"),
        f"{row['upper']:.0f}", f"{row['p_adjusted']:.3f}",
    ]  # fmt: skip
    text = Page(texts["diabetes"]).words("main")
    for sentence in losses.cvci.summary().sentences:
        assert sentence in text
    beaten = {
        *pairs.index[pairs["upper"] < 0].droplevel(0),
        *pairs.index[pairs["lower"] > 0].droplevel(1),
    }
    assert not beaten
    assert "Any of the 3 models could be the best: ridge" in text
    assert wald.attrs["target"] in text
    assert wald.attrs["guarantee"] in text
    assert "Bayle, Bayle, Janson and Mackey (2020)" in text
    title = "Cross-validation confidence intervals for test error"
    assert f'<a href="https://arxiv.org/abs/2007.12671">{title}</a>' in texts["diabetes"]
    assert f"cvstats {cvstats.__version__}" in text
    assert "losses.cvci.report()" in text


@pytest.mark.usefixtures("undrawn")
def test_no_findings_do_not_contradict_the_cautions_of_the_summary():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(40) % 5, range(40)], names=["fold", "point"])
    log = pd.DataFrame({"y": np.arange(40) < 8, "p": rng.random(40)}, index)
    log["p"] = 0.5 * log["p"] + 0.2 * log["y"]
    log["q"] = rng.random(40)
    page = report(cvstats.losses(log, truth="y", prediction=["p", "q"], loss="auc"))
    assert "At least one class has fewer than 10" in page
    assert "no problems other than those in the cautions of the summary, but" in page
    assert "The checks found no problems, but" not in page


def test_nothing_technical_comes_before_the_appendix(texts):
    for name in NAMES:
        text = texts[name].partition('id="how"')[0]
        before = IMAGE.sub("", text) + words_of_pictures(text)
        for word in ("rho", "ρ", "γ", "θ", "I²", "tau", "cannot be drawn", "log.sel", "Expected "):
            assert word not in re.sub(r"<em>What to do:</em>[^<]*", "", before), (name, word)


SCATTER = {
    "Means of the folds": (["repetition", "fold", "point"], "Folds and repetitions"),
    "Means of the repetitions": (["repetition", "point"], "Repetitions"),
    "Means of the test sets": (["repetition", "part"], "Repetitions"),
}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("title", SCATTER)
def test_means_of_folds_are_told_from_those_of_test_sets(title):
    levels, section = SCATTER[title]
    at = np.arange(120)
    labels = {
        "repetition": at // 40, "fold": at % 4, "point": at % 40, "part": at % 40 + 15 * (at // 40)
    }  # fmt: skip
    index = pd.MultiIndex.from_arrays([labels[name] for name in levels], names=levels)
    log = pd.Series(np.random.default_rng(0).gamma(1, 1, 120), index.set_names("point", level=-1))
    log.attrs["n_train"] = 60
    text = cvstats.report(log)
    assert [other for other in SCATTER if other in text] == [title]
    assert section in re.findall(r"<h2[^>]*>(.*?)</h2>", text)


@pytest.mark.usefixtures("undrawn")
def test_a_grid_has_no_tables_and_plots_of_single_cells():
    rng = np.random.default_rng(2)
    log = xr.DataArray(
        rng.gamma(1, 1, (5, 7, 60)), dims=["lat", "lon", "point"],
        coords={"fold": ("point", np.arange(60) // 20), "source": ("point", np.arange(60) // 10)},
    )  # fmt: skip
    text = cvstats.report(log)
    assert len(pictures(text)) == 2
    for words in ("sources differ", "Folds and repetitions", "Variance components", "first 60"):
        assert words not in text
    assert "Not shown" not in text
    assert "sources differ" in cvstats.report(log.isel(lat=0, lon=slice(2)))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("loss", "shares", "ends"),
    [
        ("squared_error", [0, 0.25, 0.5, 0.75, 1], ("best", "worst")),
        ("r2", [1, 0.75, 0.5, 0.25, 0], ("best", "worst")),
        ("calibration_slope", [0, 0.25, 0.5, 0.75, 1], ("lowest", "highest")),
    ],
)
def test_quantiles_of_a_grid_are_those_of_the_cells(loss, shares, ends):
    rng = np.random.default_rng(4)
    truth = xr.DataArray(rng.normal(size=(5, 7, 60)), dims=["lat", "lon", "point"])
    made = xr.Dataset({"y": truth, "m": truth + rng.normal(size=(5, 7, 1)) * rng.normal(size=60)})
    if loss == "calibration_slope":
        drawn = truth + rng.normal(size=truth.shape) > 0
        made = xr.Dataset({"y": drawn * 1, "m": 1 / (1 + np.exp(-made["m"]))})
    log = cvstats.losses(made, "y", ["m"], loss)
    table = cvstats.interval(log)
    shown = cvstats.as_scores(table) if loss == "r2" else table
    half = np.median((shown["upper"] - shown["lower"]) / 2)
    text = cvstats.report(log)
    written = [word.replace("−", "-") for word in row_of(text, "m")]
    quantiles = np.quantile(shown["estimate"], shares)
    np.testing.assert_allclose(np.array(written, float), [*quantiles, half], atol=0.006)
    assert f"from the {ends[0]} cell to the {ends[1]};" in Page(text).words("caption")
    assert all(f">{end}</th>" in text for end in ends)


@pytest.mark.usefixtures("undrawn")
def test_the_title_names_the_models_and_the_loss(texts):
    assert "<h1>Mean squared error of 3 models</h1>" in texts["diabetes"]
    titled = logged("diabetes")["ridge"].iloc[:100]
    assert "<h1>Mean squared error of ridge</h1>" in cvstats.report(titled)
    titled.attrs = {"title": "Diabetes"}
    assert "<h1>Diabetes</h1>" in cvstats.report(titled)
    assert "<h1>Mine</h1>" in cvstats.report(titled, title="Mine")
    rng = np.random.default_rng(0)
    preds = xr.Dataset(
        {name: ("point", rng.random(40)) for name in ("y", "a")},
        coords={"fold": ("point", np.arange(40) // 10)},
    )
    several = cvstats.losses(preds, "y", ["a"], loss=["squared_error", "absolute_error"])
    assert "<h1>Metrics of a</h1>" in cvstats.report(several)
    assert "<h1>Loss log</h1>" in cvstats.report(several.isel(point=[0]))


@pytest.mark.usefixtures("unmarked")
def test_a_table_with_a_name_for_its_columns():
    tidy = pd.DataFrame({"fold": np.arange(80) % 5, "point": np.arange(80) // 2})
    tidy["fold"] = tidy["point"] % 5
    tidy["learner"] = np.where(np.arange(80) % 2, "ridge", "forest")
    tidy["loss"] = np.random.default_rng(0).random(80)
    log = tidy.pivot(index=["fold", "point"], columns="learner", values="loss")
    assert log.columns.name == "learner"
    text = cvstats.report(log)
    assert row_of(text, "ridge")
    assert "is not statistically significant" in text


@pytest.mark.usefixtures("undrawn")
def test_models_whose_names_read_alike():
    alike = {"naive_bayes": 1, "gradient_boosting": "1"}
    losses = logged("flights")[list(alike)].rename(columns=alike)
    text, wald = cvstats.report(losses), cvstats.clustered(losses)
    for model, name in ((1, "1"), ("1", "&#39;1&#39;")):
        assert row_of(text, name)[0] == f"{wald.loc[model, 'estimate']:.4f}"
    assert row_of(text, "1 − &#39;1&#39;")
    assert row_of(text, "models (2)") == ["1, &#x27;1&#x27;"]


@pytest.mark.usefixtures("undrawn")
def test_a_small_and_a_strange_log_have_a_page_too():
    flat = pd.Series(np.arange(1.0, 9.0), pd.RangeIndex(8, name="point"))
    text = cvstats.report(flat)
    assert "holdout" in text
    assert "CVS008" in text
    assert "CVS004" in cvstats.report(flat.rename_axis("repetition").repeat(4))
    wrong = logged("flights")["naive_bayes"]
    assert "CVS019" in cvstats.report(pd.DataFrame({"a": wrong, "b": wrong}))


@pytest.mark.usefixtures("undrawn")
def test_missing_losses():
    losses = logged("flights").copy()
    losses.iloc[5, 0] = np.nan
    with pytest.raises(LogError, match="missing='drop'"):
        cvstats.report(losses)
    text = cvstats.report(losses, missing="drop", alpha=0.1)
    assert "CVS002" in text
    assert "90% interval" in text
    assert "missing=&#39;drop&#39;" in text


@pytest.mark.usefixtures("undrawn")
def test_it_is_written_where_it_should_be(tmp_path):
    path = tmp_path / "a page.html"
    losses = logged("flights")[["naive_bayes"]].iloc[:200]
    assert losses.cvci.report(path) == path
    assert losses.cvci.report(str(path), seed=3) == path
    assert "seed=3" in path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_the_call_is_that_of_the_page(tmp_path):
    for options, written in (
        ({}, ""),
        ({"path": tmp_path / "r.html"}, repr(str(tmp_path / "r.html"))),
        ({"title": "<T>", "alpha": 0.1}, "title='<T>', alpha=0.1"),
        ({"seed": 1, "missing": "drop"}, "seed=1, missing='drop'"),
    ):
        made = cvstats.report(logged("flights")[["naive_bayes"]].iloc[:200], **options)
        text = made if isinstance(made, str) else made.read_text(encoding="utf-8")
        assert f"losses.cvci.report({written})<" in unescape(text)


@pytest.mark.usefixtures("unmarked")
@pytest.mark.parametrize("plot", ["forest", "decomposition"])
def test_a_plot_whose_file_is_broken_is_left_out(plot, monkeypatch):
    monkeypatch.delattr(f"cvstats.plot.{plot}")
    monkeypatch.setitem(sys.modules, f"cvstats.plot.{plot}", None)
    with pytest.warns(UserWarning, match="could not be drawn") as notes:
        text = cvstats.report(logged("diabetes"))
    assert [plot in str(note.message) for note in notes] == [True]
    assert len(pictures(text)) == 4
    assert "it could not be drawn" in text


def test_places_where_no_page_can_be_written(tmp_path, monkeypatch):
    losses = logged("flights")[["naive_bayes"]]
    folder = str(tmp_path / "nowhere")
    computed = []
    made = sections.Report(("A verdict.",), [])
    monkeypatch.setattr("cvstats.reporting.page.make_report", lambda *_: computed.append(1) or made)
    with pytest.raises(LogError, match="the directory .*nowhere' does not exist. Create it first"):
        cvstats.report(losses, f"{folder}/page.html")
    with pytest.raises(LogError, match="is a directory. Expected a file, such as 'report.html'"):
        cvstats.report(losses, tmp_path)
    with pytest.raises(LogError, match="path=42 is not a path. Expected one such as 'report.html'"):
        cvstats.report(losses, 42)
    with pytest.raises(LogError, match=r"cvstats.report\(cvstats.read_log\('log.csv'\), …\)"):
        cvstats.report("log.csv")
    assert not computed  # refused before the work
    with pytest.raises(LogError, match="int is not a loss log. Expected a pandas Series"):
        cvstats.report(42)
    (tmp_path / "page.html").mkdir()
    monkeypatch.setattr("pathlib.Path.is_dir", lambda self: self == tmp_path)
    with pytest.raises(LogError, match="could not write the report to .*: Is a directory"):
        cvstats.report(losses, tmp_path / "page.html")


@pytest.mark.usefixtures("undrawn")
def test_an_old_page_stays_when_a_new_one_cannot_be_written(tmp_path, monkeypatch):
    def write_half(self, text, encoding):
        with open(self, "w", encoding=encoding) as file:
            file.write(text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    path = tmp_path / "page.html"
    losses = logged("flights")[["naive_bayes"]].iloc[:200]
    losses.cvci.report(path)
    before = path.read_bytes()
    monkeypatch.setattr("pathlib.Path.write_text", write_half)
    with pytest.raises(LogError, match="could not write the report to .*: No space left on device"):
        losses.cvci.report(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.usefixtures("undrawn")
def test_hundreds_of_models_are_compared_with_the_best_alone(monkeypatch):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(120) % 4, np.arange(120)], names=["fold", "point"])
    losses = pd.DataFrame(rng.random((120, 300)), index, [f"m{k}" for k in range(300)])
    asked = []

    def compare(log, **options):
        asked.append(options.get("reference"))
        return cvstats.compare(log, **options)

    monkeypatch.setattr("cvstats.reporting.verdict.compare", compare)
    text = cvstats.report(losses)
    assert asked == [losses.mean().idxmin()]
    assert text.count("<tr>") < 150


def test_the_same_log_gives_the_same_page_and_nothing_is_left_behind(texts, monkeypatch):
    """Each plot is drawn once."""
    drawn, draw = [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda *args: [drawn.append(1), draw(*args)][1])
    before, figures_open, log = dict(mpl.rcParams), plt.get_fignums(), logged("flights").copy()
    assert cvstats.report(logged("flights"), title="Flights") == texts["flights"]
    assert len(drawn) == len(pictures(texts["flights"])) > 3
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == figures_open
    pd.testing.assert_frame_equal(logged("flights"), log)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_what_is_missing_is_named(monkeypatch, package):
    monkeypatch.setattr("cvstats.reporting.page.find_spec", lambda name: name != package or None)
    words = rf"needs {package}. Install it: pip install .*\[report\]"
    with pytest.raises(ModuleNotFoundError, match=words):
        cvstats.report(logged("flights"))


def test_html_of_the_accessor_is_the_first_section(texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    shown = logged("diabetes").cvci._repr_html_()
    assert shown in texts["diabetes"]
    assert "<td>10, with 44 to 45 points each</td>" in shown
    assert "&lt;script&gt;" in evil().cvci._repr_html_()
    arrays = logged("diabetes").to_xarray().cvci._repr_html_()
    assert "xarray Dataset" in arrays
    bad = pd.DataFrame({"<fold>": ["x"]}, pd.Index([1], name="point"))
    assert "&lt;fold&gt;" in bad.cvci._repr_html_()
    assert "not a valid loss log" in pd.Series([], dtype=float).cvci._repr_html_()


def test_plots_are_images_of_text():
    def draw(ax):
        ax.plot([0, 1], label="a--b <c>")
        ax.legend()
        return ax

    source = sections.draw_svg(draw, 2)
    (picture,) = pictures(source)
    assert "a--b <c>" in "".join(picture.itertext())
    assert "DejaVuSans-" not in source  # text, not outlines
    assert "dc:date" not in source
    assert sections.draw_svg(draw, 2) == source


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_what_it_is_about(tmp_path, capsys):
    table = pd.DataFrame({"fold": np.arange(60) % 5, "id": range(60), "y": np.arange(60.0)})
    table = table.assign(tree=table["y"] * 1.1, net=table["y"] ** 1.01)
    table.loc[3, "tree"] = np.nan
    table.to_csv(tmp_path / "my preds.csv", index=False)
    words = [
        "report", str(tmp_path / "my preds.csv"), "--output", str(tmp_path / "page.html"),
        "--loss", "squared_error", "--truth", "y", "--prediction", "tree", "--prediction", "net",
        "--point", "id", "--missing", "drop",
    ]  # fmt: skip
    assert cli.main(words) == 0
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert "squared error, lower is better" in page.words("td")
    assert "my preds.csv" in page.words("td")
    assert "1 evaluation was dropped for all models" in page.words("p")
    call = page.words("code")
    assert call.startswith("cvstats report '")
    assert "--prediction tree --prediction net" in call
    assert "naive interval" in page.words("figcaption")
    capsys.readouterr()


@pytest.mark.usefixtures("unmarked")
@pytest.mark.parametrize("name", ["diabetes", "flights_by_month"])
def test_a_log_is_read_once(name, monkeypatch):
    reading = importlib.import_module("cvstats.log.read")
    calls, read_container = [], reading.read_container
    monkeypatch.setattr(
        reading, "read_container", lambda *log: [calls.append(1), read_container(*log)][1]
    )
    for view in (cvstats.report, cvstats.summary, cvstats.diagnose, cvstats.methods):
        calls.clear()
        view(logged(name))
        assert len(calls) == 1


@pytest.mark.usefixtures("unmarked")
@pytest.mark.parametrize("name", [float("nan"), None])
def test_a_model_without_a_name_has_a_report(name):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(60) % 5, range(60)], names=["fold", "point"])
    losses = pd.DataFrame(rng.random((60, 3)), index, pd.Index(["a", "b", name], dtype=object))
    assert "of the 3 models" in losses.cvci.summary().text
    assert "3 models could be the best" in cvstats.report(losses)


def test_limits_are_those_of_the_table_beyond_the_ends_of_a_scale():
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_arrays([np.arange(40) // 10, range(40)], names=["source", "point"])
    right = pd.Series((rng.random(40) < 0.9) * 1.0, index)
    right.iloc[:30] = 1.0
    losses = pd.DataFrame({"a": 1 - right})
    losses.attrs = {"metric": "accuracy", "orientation": "1 - score"}
    found = cvstats.as_scores(losses.cvci.clustered()).iloc[0]
    assert found["upper"] > 1
    upper = f"{100 * found['upper']:.0f}"
    assert re.search(rf"to {upper}[\d.]*%", losses.cvci.summary(method="clustered").sentences[0])


@pytest.mark.usefixtures("undrawn")
def test_a_table_of_sources_is_not_shown_twice(months):
    """Intervals of the first table are explained where sources are; others get their own table."""
    assert "intervals for the mean over new sources" not in Page(months).words("caption")
    assert "prediction intervals for a new source" in Page(months).words("caption")
    assert "the sampling unit of the intervals of the models" in months
    log = logged("flights_by_month")  # with random folds, which split the months
    split = log.set_index(pd.Index(np.arange(len(log)) % 5, name="fold"), append=True)
    assert "intervals with sources" not in cvstats.report(split)


@pytest.mark.usefixtures("undrawn")
def test_the_method_of_some_differences_is_not_said_of_all():
    """Of six differences one depends on the training points, and the others are by wald."""
    rng = np.random.default_rng(0)
    loss = rng.normal(size=200) ** 2
    index = pd.MultiIndex.from_arrays([np.arange(200) % 10, range(200)], names=["fold", "point"])
    losses = pd.DataFrame({"a": loss, "b": loss + 0.001 * rng.normal(size=200)}, index)
    losses["c"] = loss + 0.5 * rng.normal(size=200) + 0.2
    losses["d"] = loss + 0.7 * rng.normal(size=200) + 0.3
    page = unescape(" ".join(cvstats.report(losses).split()))
    assert "wald; for differences with the caution 'unstable difference', the wider of" in page
    assert "asymptotically exact in the number of points, if" in page
    assert "For such differences, this report uses refit_corrected where" in page


def test_plots_name_what_is_below_the_pointer(texts):
    losses = logged("diabetes")
    row = cvstats.wald(losses).loc["ridge"]
    words = f"ridge: {row['estimate']:,.0f} ({row['lower']:,.0f} to {row['upper']:,.0f})"
    forest = pictures(texts["diabetes"])[0]
    tips = [tip for tip in forest.iter(f"{SVG}rect") if tip.get("class") == "tip"]
    assert [tip.find(f"{SVG}title").text for tip in tips][0] == words
    assert [float(tip.get("y")) for tip in tips] == sorted(float(tip.get("y")) for tip in tips)
    assert len(tips) == 3
    assert f'aria-label="Intervals for all models. {words}; ' in texts["diabetes"]
    left, top, width, height = map(float, forest.get("viewBox").split())
    for tip in tips:
        x, y, across, down = (float(tip.get(key)) for key in ("x", "y", "width", "height"))
        assert left <= x < x + across <= left + width
        assert top <= y < y + down <= top + height


def test_what_does_not_apply_has_a_reason_without_code(texts):
    for name in NAMES:
        appendix = texts[name].partition('id="how-title"')[2]
        others = appendix.partition("Methods for other logs")[2].partition("</main>")[0]
        assert "one test set" in others
        for code in ("Expected", "cvstats.", "log.", "losses(", "xs(", "levels '"):
            assert code not in others
    assert '<details class="screen">' in texts["diabetes"]
    (style,) = re.findall(r"<style>(.*?)</style>", texts["diabetes"], re.DOTALL)
    assert ".screen { display: none; }" in style.partition("@media print")[2]
    words = "the log has no level 'source'. Add it: as_log(frame, source='x')."
    assert sections.reason_in_words(LogError(words)) == "the log has no level 'source'."
    bare = sections.reason_in_words(LogError("cvstats.losses(…) makes none. Expected losses."))
    assert bare == "it does not apply to this log."


def tips_of(text):
    """What a page shows where the pointer rests, in each plot."""
    return [
        [
            tip.find(f"{SVG}title").text
            for tip in picture.iter(f"{SVG}rect")
            if tip.get("class") == "tip"
        ]
        for picture in pictures(text)
    ]


def test_sources_are_named_below_the_pointer(months):
    losses = logged("flights_by_month")[["naive_bayes"]]
    first = losses.cvci.wald(by="source").loc[("2013-01", "naive_bayes")]
    words = next(tip for tips in tips_of(months) for tip in tips if "2013-01" in tip)
    assert f"naive_bayes {first['estimate']:.4f} " in words


@pytest.mark.usefixtures("undrawn")
def test_a_method_that_replaces_the_default_is_explained():
    log = cvstats.datasets.load("flights").iloc[::8]
    auc = cvstats.losses(log, prediction=log.attrs["models"], loss="auc")
    text = cvstats.report(auc)
    method = Page(text).words("dd")
    assert "a partition into 12 folds" in method
    assert "which replaces wald because some sources are split between folds" in method
    assert "points are the sampling unit" not in method
    used, plain = (
        cvstats.compare(auc, method=name, adjust=None, alpha=1 - 0.95 ** (1 / 3))
        for name in ("clustered", None)
    )
    wider = (used["upper"] - used["lower"]) / (plain["upper"] - plain["lower"]) - 1
    told = re.findall(
        r"using clustered because some sources are split between folds: "
        r"(\d+%) wider than with wald",
        text,
    )
    assert told
    assert set(told) <= {f"{change:.0%}" for change in wider}


@pytest.mark.parametrize(("what", "name"), [("lead", "RdBu"), ("estimate", "viridis")])
def test_on_the_map_of_a_lead_blue_is_ahead(what, name):
    """A lead is larger where the first is better, unlike a difference of losses."""
    losses = np.random.default_rng(0).gamma(1, 1, (2, 3, 4, 40)) + np.arange(2).reshape(2, 1, 1, 1)
    cells = xr.DataArray(losses, dims=["model", "y", "x", "point"], coords={"model": ["a", "b"]})
    ax = Figure().subplots()
    sections.draw_map(ax, judged(cells), what, ())
    assert ax.collections[0].get_cmap().name == name


# --- where "many" begins --------------------------------------------------------------------------

LIMIT = 4


def field(n):
    """Losses of one model in a row of n cells."""
    rng = np.random.default_rng(0)
    places = {"cell": np.arange(n), "fold": ("point", np.arange(40) % 5)}
    return xr.DataArray(rng.gamma(1, 1, (40, n)), dims=["point", "cell"], coords=places)


def judged(log):
    return Verdict(LogFacts(log), 0.05, 0)


def tied(n):
    names = [f"m{k}" for k in range(n)]
    return SimpleNamespace(
        quoted=names, models=names, tied=np.full((1, n), True), level="95%", scale=Scale("loss")
    )


def in_pixels(draw, n):
    """Whether a plot of n marks is an image within the picture."""
    return "data:image/png" in draw_svg(lambda ax: draw(ax, range(n)), 2)


def lines_of(n):
    """Whether lines of some of n models along a dimension are left out."""
    ax = Figure().subplots()
    shift = xr.DataArray(range(n), {"model": [f"m{k}" for k in range(n)]}, "model")
    sections.draw_lines(ax, judged(field(3) + shift))
    return len(ax.lines) < n


def ranked(n):
    """Whether a report of n models ranks them, instead of parts and means of their folds."""
    page = report(many(n))
    found = {
        "with the best at the top" in page,
        "Means of the folds" not in page,
        "Variance components." not in page,
    }
    assert len(found) == 1
    return found.pop()


TOP = {"TOP": 2}
AS_MANY = {
    "compared with the best": ("FEW_MODELS", lambda n: "could be the best?" in report(many(n))),
    "no list of the best": ("FEW_MODELS", lambda n: "best: " not in sections.count_best(tied(n))),
    "a ranking, no folds and no parts": ("TOP", ranked),
    "a grid": ("TOP", lambda n: sections.is_gridded(judged(field(n)))),
    "no tips of a ranking": ("MANY", lambda n: not tips_of(report(many(n)))[0], TOP),
    "no tips of sources": ("MANY", lambda n: sections.list_source_tips(judged(schools(n))) == []),
    "no tips of cells": ("MANY", lambda n: sections.list_cell_tips(judged(field(n))) == []),
    "marks in pixels": ("MANY", partial(in_pixels, lambda ax, at: ax.plot(at, at, "."))),
    "dots in pixels": ("MANY", partial(in_pixels, lambda ax, at: ax.scatter(at, at))),
    "bars in pixels": ("MANY", partial(in_pixels, lambda ax, at: ax.hlines(at, 0, 1))),
    "some lines left out": ("MOST_LINES", lines_of),
    "names left out": ("MOST_NAMES", lambda n: ", and 1 more" in str(
        sections.list_facts(LogFacts(many(n))))),
    "rows cut off": ("MOST_ROWS", lambda n: "the first " in report(many(n)).partition("</tab")[0]),
}  # fmt: skip


@pytest.mark.parametrize("n", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("what", AS_MANY)
@pytest.mark.usefixtures("undrawn")
def test_many_are_more_than_the_limit(what, n, monkeypatch):
    constant, is_many, *others = AS_MANY[what]
    for name, value in {constant: LIMIT, **(others[0] if others else {})}.items():
        monkeypatch.setattr(sections, name, value)
    assert is_many(n) == (n > LIMIT)


def test_tables_with_many_columns_or_long_words_span_the_page():
    for columns, letters, wide in [(5, 24, False), (6, 1, True), (1, 25, True), (5, 0, False)]:
        rows = [("a", [""] * columns), ("b", [*[""] * (columns - 1), "x" * letters])]
        table = sections.Grid("caption", ["head"] * columns, rows, [True] * columns)
        assert table.wide is wide


@pytest.mark.parametrize(("winners", "named"), [(6, 6), (7, 7), (8, 6), (9, 6)])
def test_each_color_of_a_map_is_one_model_until_there_are_more(winners, named):
    best = np.arange(12) % winners
    verdict = SimpleNamespace(best=best, names=[f"m{k}" for k in range(winners)])
    field = xr.DataArray(best.reshape(3, 4), {"lat": range(3), "lon": range(4)}, ("lat", "lon"))
    ax = Figure().subplots()
    sections.draw_categories(ax, verdict, field, field >= 0)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    others = [f"{winners - named} others"] if winners > named else []
    assert labels == [*verdict.names[:named], *others]
    explained = np.array([one.get_facecolor() for one in ax.get_legend().get_patches()])
    pixels = ax.collections[0].get_array().reshape(-1, 4)
    np.testing.assert_allclose(pixels, explained[np.minimum(best, len(explained) - 1)])


COUNT_CUT = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)"
BROWSER = which("chromium") or which("google-chrome")


@pytest.mark.process
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_shows_whole_tables_at_every_width(tmp_path):
    """With a plot next to a table, the table must not scroll: its last column has the p-values."""
    names = ["gradient_boosting", "random_forest", "ridge", "lasso"]
    page = report(many(4).set_axis(names, axis=1))
    (tmp_path / "page.html").write_text(
        page.replace("</body>", f"<script>document.title = {COUNT_CUT}.length</script></body>"),
        "utf-8",
    )
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}")
    for width in (560, 940, 1030, 1280):
        shown = subprocess.run(
            [BROWSER, *options, f"--window-size={width},900", "--dump-dom",
             (tmp_path / "page.html").as_uri()],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip
        assert "<title>0</title>" in shown, width
