"""The experiment on airlines: a small part of it again, and what its page says."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "gallery" / "multiple_source.json"


@pytest.fixture(scope="module")
def experiment():
    sys.path.insert(0, str(ROOT / "tools"))
    import multiple_source

    yield multiple_source
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def found():
    return json.loads(STORED.read_text("utf-8"))


def test_stored_variances_come_out_again(experiment, found):
    (stored,) = [row for row in found["variances"] if row["points"] == 50]
    again = experiment.variances(experiment.airlines(), 50, 100, np.random.default_rng(2))
    for key in ("by_source_theta_a", "by_source_theta_gamma", "random_theta_3"):
        error = np.hypot(
            stored[f"{key}_deviation"] / np.sqrt(found["how"]["logs"]),
            again[f"{key}_deviation"] / np.sqrt(100),
        )
        assert abs(again[key] - stored[key]) < 4 * error
    ratio = again["by_source_theta"] / stored["by_source_theta"]
    assert abs(ratio - 1) < 4 * np.sqrt(2 / 99 + 2 / 999)
    assert len(again["omega_k"]) == 15
    assert len(again["gamma_kl"]) == 105


def test_what_the_page_says(found):
    sizes = found["variances"]
    few, many = sizes[0], sizes[-1]
    assert many["by_source_theta_gamma"] > 8 * many["by_source_theta"]
    for row in sizes:
        assert abs(row["by_source_theta_b"] / row["by_source_theta"] - 1) < 0.1
        assert 0.45 < row["by_source_theta_a"] / row["by_source_theta"] < 0.6
        assert 8 < row["by_source_part_omega"] / row["random_part_omega"] < 140
    assert sum(row["random_omega"] < row["random_gamma"] for row in sizes) == 4
    assert all(3.5 < row["random_theta_5_deviation"] / row["random_theta"] < 5 for row in sizes)
    assert all(0.2 < row["random_theta_3_deviation"] / row["random_theta"] < 0.31 for row in sizes)
    assert np.std(few["omega_k"]) > 4 * np.std(many["omega_k"])
    assert np.std(few["gamma_kl"]) > 40 * np.std(many["gamma_kl"])
    for row in found["growing_points"]:
        assert row["random"] < row["truth"] - 10 * row["random_error"]
        assert abs(row["by_source"] - row["truth"]) < 0.006
