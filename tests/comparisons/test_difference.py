"""The log of paired differences is a loss log."""

from __future__ import annotations

import numpy as np
import oracle
import pandas as pd
import pytest
from paired_logs import as_array, models

FRAME = models()
ARRAY = as_array(FRAME)


def test_difference_of_frames_is_a_log():
    table = FRAME.cvci.compare()
    gaps = FRAME.cvci.difference()
    assert list(gaps.columns) == list(table.index)
    np.testing.assert_allclose(gaps.cvci.wald()["se"], table["se"], rtol=1e-14)
    against = FRAME.cvci.compare(reference="ridge")
    gaps = FRAME.cvci.difference(reference="ridge")
    assert list(gaps.columns) == ["forest", "boost"]
    np.testing.assert_allclose(gaps.cvci.wald()["se"], against["se"], rtol=1e-14)
    gap = FRAME["ridge"].cvci.difference(FRAME["boost"])
    assert isinstance(gap, pd.Series)
    for variance in ("all-pairs", "within-fold"):
        wald = gap.cvci.wald(variance=variance)
        rows = oracle.log(gap, fold=gap.index.get_level_values("fold"))
        assert wald["se"].item() == pytest.approx(oracle.wald(rows, variance).se, rel=1e-13)


def test_difference_of_arrays_is_a_log():
    table = ARRAY.cvci.compare()
    gaps = ARRAY.cvci.difference()
    ours = gaps.cvci.wald()
    np.testing.assert_allclose(ours["se"], table["se"], rtol=1e-13)
    assert list(ours["model"].values) == list(table["model"].values)
    against = ARRAY.cvci.compare(reference="ridge")
    gaps = ARRAY.cvci.difference(reference="ridge")
    np.testing.assert_allclose(gaps.cvci.wald()["se"], against["se"], rtol=1e-13)
    dataset = ARRAY.to_dataset("model")
    gaps = dataset.cvci.difference(reference="ridge")
    assert list(gaps) == ["forest", "boost"]
    np.testing.assert_allclose(gaps.cvci.wald()["se"], against["se"], rtol=1e-13)
    np.testing.assert_allclose(dataset.cvci.difference().cvci.wald()["se"], table["se"], rtol=1e-13)
    gap = dataset["ridge"].cvci.difference(dataset["boost"].isel(point=slice(None, None, -1)))
    assert float(gap.cvci.wald()["se"]) == pytest.approx(float(table["se"][1]), rel=1e-13)
