"""All answers are the stored ones, in every container; near zero and far from it."""

from __future__ import annotations

import golden
import pytest
from golden import CASES, FAR, LOGS, differences, far_calls

STORED = golden.read()

FAR_AND_WRONG = {
    ("dask by point",): [
        "wald of repeated, variance=within-fold",
        "wald of repeated, variance=within-fold, fold_weights=equal",
        "corrected_t of splits, train_size=20, missing=drop",
        "conservative_z of halves",
        "interval of halves",
    ],
    ("dask by point", "moments"): [
        "holdout of one set",
        "holdout of one set, interval=t",
        "wald of k-fold, variance=within-fold",
        "wald of k-fold, variance=within-fold, fold_weights=equal",
        "wald of repeated",
        "wald of k-fold, alpha=0.2",
        "wald of k-fold, alternative=less",
        "wald of k-fold, alternative=greater",
        "naive of repeated",
        "cv_t of repeated, alpha=0.2",
        "quadratic of k-fold, estimator=theta_3",
        "quadratic of k-fold, estimator=theta_4",
        "quadratic of k-fold, estimator=theta_5",
        "quadratic of k-fold, fold_weights=equal",
        "nested_cv of nested, bias_correction=code",
        "nested_cv of nested, bias_correction=None",
        "replace_one of replaced, constant=printed",
        "clustered of whole sources, correction=CR3",
        "clustered of spread sources, correction=CR3",
        "clustered of repeated sources, correction=CR3",
        "interval of k-fold",
        "interval of repeated",
        "interval of binary",
        "interval of one set",
        "interval of binary set",
        "interval of spread sources",
        "interval of repeated sources",
        "interval of by source",
        "interval of nested",
        "interval of replaced",
    ],
    ("dask by point", "scan_dask"): ["moments of whole sources, by=source"],
    ("dask by point", "scan_dask", "moments"): [
        "wald of k-fold",
        "wald of by source",
        "naive of k-fold",
        "cv_t of k-fold",
        "cv_t of repeated",
        "quadratic of k-fold, estimator=theta_2",
        "corrected_t of repeated",
        "corrected_t of k-fold",
        "five_by_two of five by two",
        "nested_cv of nested",
        "replace_one of replaced",
        "out_of_source of by source",
        "clustered of whole sources, correction=CR1",
        "clustered of spread sources, correction=CR1",
        "clustered of repeated sources, correction=CR1",
        "moments of k-fold",
        "moments of repeated",
    ],
    ("frame",): ["holdout of seeds, interval=t", "interval of seeds"],
    ("frame", "dask by point", "moments"): [
        "wald of k-fold, fold_weights=equal",
        "wald of repeated, fold_weights=equal",
        "heterogeneity of whole sources, variance=pooled",
        "heterogeneity of by source, variance=pooled",
    ],
    ("series", "frame"): ["holdout of seeds"],
    ("series", "frame", "dask by point", "scan_dask", "moments"): [
        "heterogeneity of whole sources",
        "heterogeneity of by source",
        "source_estimators of by source",
    ],
    ("series", "frame", "scan_dask", "moments"): ["source_components of independent sources"],
}
"""Cases that lose digits at a far level, by the containers in which they do."""


def loses_digits(name, container):
    return any(container in boxes and name in names for boxes, names in FAR_AND_WRONG.items())


def asked_far():
    wrong = pytest.mark.xfail(reason="digits are lost at a far level", strict=True)
    return [
        pytest.param(*pair, id=f"{pair[1]}: {pair[0]}", marks=wrong if loses_digits(*pair) else ())
        for pair in far_calls()
    ]


def test_the_stored_cases_are_these():
    stored = [(name, box) for name, boxes in STORED["answers"].items() for box in boxes]
    assert stored == golden.calls()


@pytest.mark.parametrize("name", LOGS)
def test_the_logs_are_those_of_the_answers(name):
    assert golden.digest(golden.log_named(name)) == STORED["logs"][name]


@pytest.mark.parametrize("name", CASES)
def test_the_answers_are_the_stored_ones(name):
    stored = STORED["answers"][name]
    said = {box: differences(stored[box], golden.answer(CASES[name], box)) for box in stored}
    assert not {box: words for box, words in said.items() if words}


@pytest.mark.parametrize(("name", "container"), asked_far())
def test_a_far_level_changes_nothing_else(name, container):
    stored = STORED["answers"][name][container]
    case = CASES[name]
    found = golden.answer(case, container, level=FAR)
    assert not differences(stored, found, tolerance=1e-9, level=FAR, moving=case.moving)


@pytest.mark.parametrize("holder", STORED["signatures"])
def test_signatures(holder):
    assert golden.signatures()[holder] == STORED["signatures"][holder]
