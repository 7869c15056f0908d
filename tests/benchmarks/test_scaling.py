"""The exponent of a curve, and that every function with an own log is measured."""

import math

import pytest

from benchmarks import scaling
from benchmarks.measure import ROOT, load
from cvstats.registry import INTERVALS
from evidence.designs import UNMEASURED


def test_the_exponent_is_that_of_the_part_that_grows():
    sizes = [10**power for power in range(6)]
    linear = [(n, 1e-3 + 1e-5 * n) for n in sizes]
    assert scaling.exponent(linear) == pytest.approx(1, abs=0.25)
    assert scaling.exponent([(n, 1e-6 * n**2) for n in sizes]) == pytest.approx(2)
    assert math.isnan(scaling.exponent([(n, 1e-3) for n in sizes]))


def test_every_interval_is_measured(tmp_path):
    measured = {curve.function for curve in scaling.list_curves(tmp_path)}
    assert measured | set(UNMEASURED) >= set(INTERVALS)


@pytest.mark.parametrize("function", ["wald", "Moments +", "compare, max-t", "losses, auc"])
def test_a_curve_is_measured(function, tmp_path):
    curve = next(one for one in scaling.list_curves(tmp_path) if one.function == function)
    small = scaling.Curve(curve.function, curve.axis, curve.sizes[:2], curve.make)
    found = scaling.measure(small)
    assert [size for size, _ in found] == list(curve.sizes[:2])
    assert all(seconds >= 0 for _, seconds in found)


def test_the_page_shows_each_curve_and_no_growth_without_a_reason(tmp_path):
    stored = load(ROOT / "docs" / "benchmarks" / "run.json")["scaling"]
    curves = list(scaling.list_curves(tmp_path))
    assert {tuple(line[:2]) for line in stored} == {(one.function, one.axis) for one in curves}
    assert not [line for line in stored if line[-1] == "**none**"]
    assert set(scaling.REASONS) <= {one.function for one in curves}
