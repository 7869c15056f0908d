"""Results as they are displayed: rounded for reading, complete in 80 columns, explained in HTML."""

import html5lib
import numpy as np
import pandas as pd
import pytest
from plotted import logged, many

import cvstats
from cvstats.log.display import ResultFrame, format_rows, measure, write_frame

HTML = "{http://www.w3.org/1999/xhtml}"


@pytest.fixture(scope="module")
def losses():
    return logged("diabetes")


def few(losses):
    """Six points, too few for any interval."""
    return losses.loc[[0]].groupby(level="fold").head(1).iloc[:10]


def test_numbers_are_rounded_to_the_standard_error_and_kept(losses):
    table = losses.cvci.wald()
    assert repr(table) == (
        "                  estimate  lower  upper   se caution\n"
        "model\n"
        "ridge                3,006  2,640  3,372  187\n"
        "random_forest        3,188  2,807  3,569  194\n"
        "gradient_boosting    3,150  2,755  3,544  201"
    )
    assert table["estimate"].iloc[0] == pytest.approx(3006.1563079, abs=1e-6)
    assert "3006.156308" in repr(table["estimate"])
    assert "3006.156308" in repr(table[["estimate"]])  # its error is not known
    assert repr(table.sort_values("estimate").iloc[:1]).splitlines()[2].split()[1] == "3,006"


def test_tiny_values_have_an_exponent_but_not_zero():
    losses = pd.DataFrame({"a": [1e-12, 3e-12] * 20, "b": 0.0}, pd.RangeIndex(40, name="point"))
    shown = repr(losses.cvci.holdout()[["estimate", "lower", "upper", "se"]]).splitlines()
    assert shown[2].split() == ["a", "2.00e-12", "1.69e-12", "2.31e-12", "1.6e-13"]
    assert set("".join(shown[3].split()[1:])) == {"0", "."}


def test_values_rounded_before_get_no_zeros():
    table = logged("flights").cvci.interval()
    shown = repr(table[["estimate", "lower", "upper"]].round(1)).splitlines()[2:]
    assert {len(cell.split(".")[1]) for row in shown for cell in row.split()[1:]} == {1}


def test_cautions_that_do_not_fit_are_explained_below(losses):
    table = few(losses).cvci.compare()
    shown = repr(table)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.splitlines()[-1].startswith("caution: (a) few points")
    assert "- random_forest (a)" in shown


def test_long_tables_are_cut_and_counted():
    table = many().cvci.wald()
    with pd.option_context("display.max_rows", 10, "display.min_rows", 6):
        lines = repr(table).splitlines()
        page = table._repr_html_()
    assert lines[-1] == f"[{len(table):,} rows]"
    assert len(lines) == 2 + 7 + 2
    assert page.count("<tr>") == 1 + 7
    assert f"{len(table):,} rows" in page


def test_html_has_a_caption_and_explains_cautions(losses):
    named = losses.rename(columns={"ridge": "<script>&"})
    table = named.loc[[0, 1]].cvci.naive()
    page = table._repr_html_()
    tree = html5lib.parse(page)
    caption = "".join(tree.find(f".//{HTML}caption").itertext())
    counts = "442 points, 2 repetitions, 10 folds"
    assert caption == f"Expected risk (claimed, but not covered); {counts}; 95% limits"
    notes = list(tree.iter(f"{HTML}abbr"))
    assert [note.text for note in notes] == ["dependence ignored"] * 3
    assert notes[0].get("title") == table.attrs["cautions"]["dependence ignored"]
    assert not list(tree.iter(f"{HTML}script"))
    assert "&lt;script&gt;&amp;" in page
    heads = [head.text for head in tree.find(f".//{HTML}thead").iter(f"{HTML}th")]
    assert heads == ["model", *table.columns]
    pairs = html5lib.parse(named.loc[[0, 1]].cvci.compare()._repr_html_())
    row = next(pairs.find(f".//{HTML}tbody").iter(f"{HTML}tr"))
    assert [head.text for head in row.iter(f"{HTML}th")] == ["<script>&", "random_forest"]


def test_other_frames_are_displayed_by_pandas(losses):
    table = losses.cvci.wald()
    assert isinstance(table, ResultFrame)
    bare = ResultFrame(table.reset_index(drop=True))
    bare.attrs = {}
    twice = ResultFrame(pd.concat([table, table], axis=1))
    twice.attrs = dict(table.attrs)
    percent = table.assign(se="16.7%")
    for frame in (table.T, table.describe(), bare, twice, percent):
        expected = pd.DataFrame(frame)
        with pd.option_context("display.max_columns", None):
            assert repr(frame) == repr(expected)


def test_many_columns_of_few_rows_stand_below_each_other():
    losses = logged("diabetes")[["ridge", "random_forest"]]
    lines = repr(losses.cvci.power(effect=100)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["model", "ridge"]
    assert [line.split()[0] for line in lines[2:5]] == ["difference", "se", "power"]


def test_cautions_become_letters_only_where_lines_are_too_long(losses):
    table = few(losses).cvci.wald()
    width = measure(format_rows(table))
    assert "few points" in write_frame(table, width).splitlines()[2]
    assert "few points" not in write_frame(table, width - 1).splitlines()[2]


def test_models_of_a_pair_stand_below_each_other_only_where_lines_are_too_long(losses):
    pairs = losses.cvci.compare().drop(columns="caution")
    width = measure(format_rows(pairs))
    assert "model - other" not in write_frame(pairs, width)
    assert "model - other" in write_frame(pairs, width - 1)
    groups = losses.cvci.compare(by="repetition", reference="ridge").drop(columns="caution")
    lines = write_frame(groups, 70).splitlines()
    assert max(map(len, lines)) <= 70
    assert lines[1] == "repetition · model - other"
    assert lines[2].startswith("0 · random_forest")
    assert lines[3].startswith("- ridge")


def test_results_compare_with_frames_in_either_order():
    log = pd.DataFrame({"a": np.arange(12.0), "b": 1.0}, pd.RangeIndex(12, name="point"))
    for result in (log.cvci.holdout(), log.cvci.methods()):
        plain = pd.DataFrame(result.to_dict(), result.index)[[*result.columns]]
        pd.testing.assert_frame_equal(plain, result, check_dtype=False)
        pd.testing.assert_frame_equal(result, plain, check_dtype=False)


def test_a_table_of_losses_made_from_scores_says_so():
    """An AUC of .95 is printed as 0.05, which a reader could take for the AUC."""
    log = cvstats.datasets.load("flights").iloc[:2000]
    for loss, words in (
        ("auc", "1 - auc"),
        (["auc", "brier", "r2"], "1 - auc, -r2"),
        ("brier", ""),
    ):
        losses = cvstats.losses(log, prediction=["naive_bayes"], loss=loss)
        note = f"loss: {words} (cvstats.as_scores converts it)"
        table = losses.cvci.interval()
        for shown in (table, table[["estimate", "se"]], table[["se"]]):
            expected = bool(words) and bool({"estimate", "difference"} & set(shown))
            assert (note in repr(shown).splitlines()) == expected
            assert (note in shown._repr_html_()) == expected
        if words:
            assert "loss:" not in repr(cvstats.as_scores(table))


def test_the_note_on_scores_names_each_loss_once():
    """It was "loss: -net_benefit, -net_benefit, -net_benefit" for three thresholds."""
    log = cvstats.datasets.load("flights").iloc[:2000]
    losses = cvstats.losses(
        log, prediction=["naive_bayes"], loss="net_benefit", threshold=[0.1, 0.2, 0.3]
    )
    assert "\nloss: -net_benefit (cvstats.as_scores converts it)" in repr(losses.cvci.interval())


def test_every_table_that_says_so_can_be_converted():
    log = cvstats.datasets.load("flights").iloc[:2000]
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss="auc")
    methods = losses.cvci.methods()
    options = {"equivalence": {"margin": 0.1}, "rope": {"margin": 0.1}, "power": {"effect": 0.01}}
    noted = set()
    for name in {*methods.index[methods["applies"]], "power", "best_set"} - {"difference"}:
        table = getattr(losses.cvci, name)(**options.get(name, {}))
        if isinstance(table, pd.DataFrame) and "as_scores converts it" in repr(table):
            noted.add(name)
            assert "as_scores" not in repr(cvstats.as_scores(table)), name
    assert {"wald", "compare", "best_set", "winner", "power", "equivalence"} <= noted


def test_a_table_of_differences_names_what_was_subtracted(losses):
    gap = losses.cvci.difference(reference="ridge")
    for result in (gap.cvci.interval(), gap.cvci.compare(0)):
        assert "\ndifference from: ridge" in str(result)
        assert "difference from: ridge" in result._repr_html_()
    assert cvstats.to_markdown(gap.cvci.interval()).startswith("| model | difference from ridge in")
    assert "difference from" not in str(gap.cvci.compare())
    assert "difference from" not in str(losses.cvci.difference().cvci.interval())
    assert "difference from" not in str(gap.cvci.interval()[["se"]])
    array = losses.to_xarray().to_array("model").cvci.difference(reference="ridge")
    assert array.cvci.interval().attrs["difference_from"] == "ridge"
