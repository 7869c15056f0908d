"""decompose against the oracle, and what it refuses."""

import numpy as np
import oracle
import pandas as pd
import pytest
from fold_logs import WEIGHTS, top_of
from hypothesis import given
from hypothesis import strategies as st
from rows import only_row, product_index
from strategies import close, logs, shuffled

import cvstats


@given(
    logs(sizes=(2, 4), folds=(2, 4), repetitions=(1, 3)),
    st.sampled_from([0, 0.1, 0.7]),
    st.sampled_from(list(WEIGHTS)),
)
def test_decompose(rows, rho, fold_weights):
    parts = [
        [row for row in rows if row.repetition == repetition]
        for repetition in sorted({row.repetition for row in rows})
    ]
    exact = [oracle.decompose(part, WEIGHTS[fold_weights]) for part in parts]
    gammas = [oracle.gamma_of_rho(part, rho) for part in parts]
    ours = cvstats.decompose(shuffled(rows), rho=rho, fold_weights=fold_weights)
    expected = {name: oracle.mean(part[name] for part in exact) for name in exact[0]}
    gamma = oracle.mean(gammas)
    assert only_row(ours)["theta_1"] == pytest.approx(
        float(expected.pop("theta_1")), abs=2e-12 * top_of(rows) ** 2
    )
    expected |= {
        "gamma": gamma,
        "omega": gamma + expected["omega_minus_gamma"],
        "sigma2": gamma + expected["omega_minus_gamma"] + expected["sigma2_minus_omega"],
        "theta": gamma + expected["theta_minus_gamma"],
    }
    for name, value in expected.items():
        assert close(only_row(ours)[name], value, rows, 2, tolerance=4e-12), name
    given_gamma = only_row(
        cvstats.decompose(shuffled(rows), gamma=float(gamma), fold_weights=fold_weights)
    )
    for name in ("gamma", "omega", "sigma2", "theta"):
        assert close(given_gamma[name], expected[name], rows, 2, tolerance=4e-12), name
    assert "assumed correlation" in ours.attrs["cautions"]
    assert (only_row(ours)["n_points"], only_row(ours)["n_repetitions"]) == (
        len(parts[0]),
        len(parts),
    )


def test_assumed_correlations_of_each_label_of_by():
    rng = np.random.default_rng(4)
    index = product_index(task=range(3), repetition=range(2), point=range(20))
    folds = index.get_level_values("point") % 4
    frame = pd.DataFrame(rng.gamma(2.0, size=(len(index), 2)), index=index, columns=["a", "b"])
    frame = frame.assign(fold=folds).set_index("fold", append=True)
    table = frame.cvci.decompose(by="task", rho=[0, 0.3])
    assert table.index.names == ["task", "rho", "model"]
    for task in range(3):
        part = frame.xs(task, level="task")
        for rho in (0, 0.3):
            expected = part.cvci.decompose(rho=rho).drop(columns="caution")
            found = table.loc[(task, rho)].drop(columns="caution")[list(expected)]
            assert found.to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-12)
