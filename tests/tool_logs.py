"""One small experiment, and its log in the layout of each tool that stores no file here."""

from pathlib import Path

import numpy as np
import pandas as pd

LOGS = Path(__file__).parent / "reference" / "logs"
N, FOLDS, REPETITIONS = 40, 4, 2
CLASSES = ["high", "low", "mid"]
MODELS = ["ridge", "tree"]


def experiment(seed=1):
    """Evaluations of two models: numbers, classes and probabilities, rows in no order."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=N).round(3)
    label = rng.choice(CLASSES, size=N)
    label[:3] = CLASSES
    rows = []
    for repetition in range(1, REPETITIONS + 1):
        fold = rng.permutation(np.arange(N) % FOLDS) + 1
        for model in MODELS:
            p = rng.dirichlet(np.ones(3), size=N).round(4)
            p[:, 2] = (1 - p[:, 0] - p[:, 1]).round(4)
            rows.append(
                pd.DataFrame(
                    {
                        "model": model,
                        "repetition": repetition,
                        "fold": fold,
                        "point": np.arange(1, N + 1),
                        "y": y,
                        "guess": (y + rng.normal(size=N)).round(3),
                        "label": label,
                        "class": np.array(CLASSES)[p.argmax(axis=1)],
                        **dict(zip(CLASSES, p.T, strict=True)),
                    }
                )
            )
    table = pd.concat(rows, ignore_index=True)
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def direct(table, values, repeated=True):
    """Make the loss log by hand: a column for each model, sorted."""
    levels = (["repetition"] if repeated else []) + ["fold", "point"]
    log = table.assign(loss=values).set_index([*levels, "model"])["loss"].unstack("model")
    return log.sort_index()


def brier_of(table):
    """Sum the squared errors of the probabilities over the classes."""
    return sum((table[c] - (table["label"] == c)) ** 2 for c in CLASSES)


def tidymodels(table, classes=False):
    """Lay the log out as ``collect_predictions()`` of tune 1.3 does (repeated vfold_cv)."""
    out = pd.DataFrame(
        {
            "id": "Repeat" + table["repetition"].astype(str),
            "id2": "Fold" + table["fold"].astype(str),
            ".row": table["point"],
            ".config": table["model"].map({"ridge": "pre0_mod1_post0", "tree": "pre0_mod2_post0"}),
            "penalty": table["model"].map({"ridge": 0.1, "tree": 10.0}),
        }
    )
    if not classes:
        return out.assign(price=table["y"], **{".pred": table["guess"]})
    chances = {f".pred_{c}": table[c] for c in CLASSES}
    return out.assign(grade=table["label"], **chances, **{".pred_class": table["class"]})


def caret(table, classes=False):
    """Lay the log out as ``train$pred`` of caret 7.0 does (repeatedcv, savePredictions)."""
    out = pd.DataFrame(
        {
            "pred": table["class" if classes else "guess"],
            "obs": table["label" if classes else "y"],
            "rowIndex": table["point"],
            "mtry": table["model"].map({"ridge": 2, "tree": 4}),
            "Resample": "Fold"
            + table["fold"].astype(str)
            + ".Rep"
            + table["repetition"].astype(str).str.zfill(2),
        }
    )
    if classes:
        out = out.assign(**{c: table[c] for c in CLASSES})
    return out


def mlr3(table, classes=False):
    """Lay the log out as a benchmark of mlr3 1.2 does, iteration for iteration."""
    out = pd.DataFrame(
        {
            "learner_id": table["model"],
            "iteration": (table["repetition"] - 1) * FOLDS + table["fold"],
            "row_ids": table["point"],
            "truth": table["label" if classes else "y"],
            "response": table["class" if classes else "guess"],
        }
    )
    if classes:
        out = out.assign(**{f"prob.{c}": table[c] for c in CLASSES})
    return out


def openml(table, classes=False):
    """Lay the log of one model out as OpenML's predictions: everything counts from 0."""
    one = table[table["model"] == "ridge"]
    out = pd.DataFrame(
        {
            "repeat": one["repetition"] - 1,
            "fold": one["fold"] - 1,
            "row_id": one["point"] - 1,
            "prediction": one["class" if classes else "guess"],
            "truth": one["label" if classes else "y"],
        }
    )
    if classes:
        out = out.assign(**{f"confidence.{c}": one[c] for c in CLASSES})
    return out


def arff(table, path):
    """Write a table as the ARFF file that OpenML stores."""
    lines = ["% made for a test", "@RELATION openml_task_1_predictions", ""]
    for name in table:
        numbers = pd.api.types.is_numeric_dtype(table[name])
        values = ",".join(f"'{c}'" for c in sorted(set(map(str, table[name]))))
        lines.append(f"@ATTRIBUTE {name} {'NUMERIC' if numbers else '{' + values + '}'}")
    lines += ["", "@DATA"]
    for row in table.itertuples(index=False):
        lines.append(",".join(f"'{v}'" if isinstance(v, str) else str(v) for v in row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def same_interval(read, expected):
    """Hold the log that was read to the one made by hand: the same interval to 1e-12."""
    read = read.to_frame() if isinstance(read, pd.Series) else read
    expected = expected.to_frame() if isinstance(expected, pd.Series) else expected
    names = ["estimate", "se", "lower", "upper"]
    got = read.cvci.wald()[names].to_numpy(dtype=float)
    want = expected.cvci.wald()[names].to_numpy(dtype=float)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
