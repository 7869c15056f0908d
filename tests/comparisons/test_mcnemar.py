"""0/1 losses: McNemar's test and Cochran's Q."""

import itertools

import numpy as np
import oracle_many
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paired_logs import wrong_answers
from rows import only_row
from scipy import stats

import cvstats
from cvstats.errors import LogError

TESTS = ["exact", "chi2", "mid-p"]

FRAME = wrong_answers()
PAIRED = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=70)


@given(PAIRED)
def test_every_table_as_enumerated(rows):
    a, b = (pd.Series(side, dtype=float).rename_axis("point") for side in zip(*rows, strict=True))
    exact = oracle_many.mcnemar(*zip(*rows, strict=True))
    wanted = {
        "exact": exact.exact,
        "mid-p": exact.mid_p,
        "chi2": stats.chi2.sf(float(exact.chi2), 1),
    }
    for test in TESTS:
        ours = only_row(cvstats.mcnemar(a, b, test=test).iloc[0])
        assert (ours["n01"], ours["n10"]) == (exact.n01, exact.n10)
        assert ours["p_value"] == pytest.approx(float(wanted[test]), rel=1e-12)
        assert ours["statistic"] == pytest.approx(
            float(exact.chi2) if test == "chi2" else min(exact.n01, exact.n10)
        )
        assert ours["test"] == test
    edwards = only_row(cvstats.mcnemar(a, b, test="chi2", correction=True).iloc[0])
    assert edwards["statistic"] == pytest.approx(float(exact.edwards))
    assert edwards["p_value"] == pytest.approx(stats.chi2.sf(float(exact.edwards), 1))
    usual = only_row(cvstats.mcnemar(a, b).iloc[0])
    assert usual["test"] == ("exact" if exact.n01 + exact.n10 < 25 else "chi2")
    assert usual["p_value"] == pytest.approx(float(wanted[usual["test"]]), rel=1e-12)


def test_pairs_reference_and_adjustment():
    table = FRAME.cvci.mcnemar()
    assert list(table.index) == list(itertools.combinations("abc", 2))
    assert list(table.columns)[:6] == ["n01", "n10", "statistic", "p_value", "p_adjusted", "test"]
    compared = FRAME.cvci.compare(adjust=None)
    np.testing.assert_allclose(
        (table["n10"] - table["n01"]) / len(FRAME), compared["difference"], rtol=1e-12
    )
    against = FRAME.cvci.mcnemar(reference="b", adjust=None)
    assert list(against.index) == [("a", "b"), ("c", "b")]
    assert "p_adjusted" not in against
    alone = cvstats.mcnemar(FRAME["a"], FRAME["b"].sample(frac=1, random_state=1))
    assert alone["p_value"].item() == table["p_value"].iloc[0]
    assert table["n01"].dtype.kind == "i"
    with pytest.raises(LogError, match="Invalid adjust='max-t'"):
        FRAME.cvci.mcnemar(adjust="max-t")
