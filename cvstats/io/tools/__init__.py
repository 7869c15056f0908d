"""Readers of the results of other tools, which return a `PredictionTable`.

A reader is a function in a file of this folder, and a row of ``FORMATS`` in ``cvstats/io/read.py``.
The functions below recognize objects, and are also used by readers.
"""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

SCORE = re.compile(r"split(\d+)_test_(.+)")
"""The columns of scores in ``cv_results_``."""


def is_search(found: Any) -> bool:
    """Whether this is a fitted search, or its ``cv_results_`` as a dict or a table."""
    if isinstance(found, (Mapping, pd.DataFrame)):
        return "params" in found and any(SCORE.fullmatch(str(name)) for name in found)
    return not isinstance(found, type) and hasattr(found, "cv_results_")


def is_skore(found: Any) -> bool:
    """Whether this is a report of skore on one estimator."""
    return hasattr(found, "estimator_name_") and (
        hasattr(found, "split_indices") or hasattr(found, "X_test")
    )


def is_inspect_log(found: Any) -> bool:
    """Whether a JSON document is a log of inspect."""
    return isinstance(found, Mapping) and {"eval", "samples"} <= set(found)


def is_lm_eval_sample(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a sample of lm-evaluation-harness."""
    return "doc_id" in record and bool({"doc_hash", "filtered_resps", "filter"} & set(record))
