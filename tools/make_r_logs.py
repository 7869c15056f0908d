"""Make the prediction logs that the tutorial on tidymodels and mlr3 reads.

Rents of 120 flats, simulated, and two models of each kind in cross-validation. The tables are laid
out as R writes them: ``collect_predictions(res, summarize = FALSE)`` of tune 1.3 for repeated
``vfold_cv``, and ``as.data.table`` of the predictions of a benchmark of mlr3 1.2 with the number
of their iteration.

    python tools/make_r_logs.py docs/tutorials
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

SEED, FLATS, FOLDS, REPEATS, NEIGHBOURS = 11, 120, 5, 2, 7


def flats(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw area, age and distance of each flat, standardized, and its rent."""
    x = rng.normal(size=(FLATS, 3))
    rent = 900 + 250 * x[:, 0] - 40 * x[:, 1] - 110 * x[:, 2] + 60 * x[:, 0] * x[:, 2]
    return x, np.round(rent + rng.gamma(2, 70, FLATS))


def linear(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Predict by least squares."""
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    return np.column_stack([np.ones(len(new)), new]) @ weights


def nearest(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Predict by the mean of the nearest flats."""
    distance = ((new[:, None] - x) ** 2).sum(axis=2)
    return y[np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]].mean(axis=1)


WORKFLOWS = (
    ("recipe_lm", "linear_reg", linear),
    ("recipe_knn", "nearest_neighbor", nearest),
)


def tidymodels(x: np.ndarray, rent: np.ndarray, splits: np.ndarray) -> pd.DataFrame:
    """Lay out the predictions of a workflow set, a row for each flat, repeat and workflow."""
    parts = []
    for repeat, fold in enumerate(splits, 1):
        for workflow, model, learn in WORKFLOWS:
            for k in range(FOLDS):
                test = np.flatnonzero(fold == k)
                train = fold != k
                parts.append(
                    pd.DataFrame(
                        {
                            "wflow_id": workflow,
                            ".config": "pre0_mod0_post0",
                            "preproc": "recipe",
                            "model": model,
                            "id": f"Repeat{repeat}",
                            "id2": f"Fold{k + 1}",
                            ".pred": learn(x[train], rent[train], x[test]).round(2),
                            ".row": test + 1,
                            "rent": rent[test],
                        }
                    )
                )
    return pd.concat(parts, ignore_index=True)


def mlr3(x: np.ndarray, rent: np.ndarray, fold: np.ndarray) -> pd.DataFrame:
    """Lay out a benchmark: is a flat dear? The base rate, and the share among the nearest."""
    dear = (rent > np.median(rent)).astype(float)
    parts = []
    for learner in ("classif.featureless", "classif.kknn"):
        for k in range(FOLDS):
            test, train = np.flatnonzero(fold == k), fold != k
            if learner == "classif.kknn":
                p = (nearest(x[train], dear[train], x[test]) * NEIGHBOURS + 1) / (NEIGHBOURS + 2)
            else:
                p = np.full(len(test), dear[train].mean())
            parts.append(
                pd.DataFrame(
                    {
                        "learner_id": learner,
                        "iteration": k + 1,
                        "row_ids": test + 1,
                        "truth": np.where(dear[test] == 1, "dear", "fair"),
                        "response": np.where(p > 0.5, "dear", "fair"),
                        "prob.dear": p.round(4),
                        "prob.fair": (1 - p.round(4)).round(4),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rng = np.random.default_rng(SEED)
    x, rent = flats(rng)
    splits = np.array([rng.permutation(np.arange(FLATS) % FOLDS) for _ in range(REPEATS)])
    tables = {"tidymodels": tidymodels(x, rent, splits), "mlr3": mlr3(x, rent, splits[0])}
    for name, table in tables.items():
        path = folder / f"{name}_predictions.csv"
        table.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")


if __name__ == "__main__":
    main()
