"""A table of patients, as somebody brings it who has read nothing: names of its own everywhere."""

import numpy as np
import pandas as pd

MODELS = ["Pred (LinReg)", "Pred (XGB)"]


def patients(rng):
    """Sixty patients of four hospitals, in five folds, predicted by two models."""
    truth = rng.normal(50, 15, 60).round(2)
    rows = {
        "Patient ID": [f"P{i:04d}" for i in range(60)],
        "CV Split": np.arange(60) % 5 + 1,
        "Hospital": rng.choice(list("ABCD"), 60),
        "True Value": truth,
    }
    return pd.DataFrame(rows).assign(**{name: truth + rng.normal(0, 5, 60) for name in MODELS})


def outcomes(table):
    """Turn the truth into yes and no, and give a probability of yes."""
    truth = table["True Value"]
    yes = np.where(truth > 50, "yes", "no")
    return table.assign(Outcome=yes, Prob=1 / (1 + np.exp((50 - truth) / 15)))
