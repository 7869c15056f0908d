"""Stored answers of other programs for calibration, survival, forecasts, groups and battles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

STORED = Path(__file__).parent / "reference" / "frontier.json"
CASES: dict[str, Any] = {
    case["id"]: case for case in json.loads(STORED.read_text(encoding="utf-8"))
}
BINARY = {name: np.array(values) for name, values in CASES["binary_data"]["inputs"].items()}


def binary_frame(sources: bool = False) -> pd.DataFrame:
    """80 points with a truth and the probabilities of two models, p and q, of 12 sites."""
    columns = {"point": range(80), "y_true": BINARY["y"], "p": BINARY["p"], "q": BINARY["q"]}
    frame = pd.DataFrame(columns)
    return frame.assign(source=BINARY["site"], fold=0) if sources else frame
