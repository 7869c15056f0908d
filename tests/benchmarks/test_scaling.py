"""The exponent of a curve, and that every function with an own log is measured."""

from __future__ import annotations

import math

import pytest

from benchmarks import scaling
from cvstats.registry import INTERVALS


def test_the_exponent_is_that_of_the_part_that_grows():
    sizes = [10**power for power in range(6)]
    linear = [(n, 1e-3 + 1e-5 * n) for n in sizes]
    assert scaling.exponent(linear) == pytest.approx(1, abs=0.25)
    assert scaling.exponent([(n, 1e-6 * n**2) for n in sizes]) == pytest.approx(2)
    assert math.isnan(scaling.exponent([(n, 1e-3) for n in sizes]))


def test_every_interval_is_measured(tmp_path):
    assert {curve.function for curve in scaling.list_curves(tmp_path)} >= set(INTERVALS)


@pytest.mark.parametrize("function", ["wald", "Moments +", "compare, max-t", "losses, auc"])
def test_a_curve_is_measured(function, tmp_path):
    curve = next(one for one in scaling.list_curves(tmp_path) if one.function == function)
    small = scaling.Curve(curve.function, curve.axis, curve.sizes[:2], curve.make)
    found = scaling.measure(small)
    assert [size for size, _ in found] == list(curve.sizes[:2])
    assert all(seconds >= 0 for _, seconds in found)
