"""Make cvstats/datasets/diabetes.npz: three regressions, 10 x 10-fold cross-validation.

    python tools/datasets/make_diabetes.py            write the file
    python tools/datasets/make_diabetes.py --check    compare with the file; exit 1 if they differ

Needs scikit-learn, which also carries the data. Written with scikit-learn 1.9.1 and NumPy 2.4.6;
another version may grow slightly different trees, which --check then reports.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

TARGET = Path(__file__).parents[2] / "cvstats" / "datasets" / "diabetes.npz"
REPETITIONS, FOLDS = 10, 10
SPLIT_SEED, MODEL_SEED = 442, 2004
# Predictions are stored in whole thousandths: negligible on a scale of 25 to 346, but far above the
# rounding error of the fits.
DECIMALS = 3


def models() -> dict[str, object]:
    """Return the regressions; the seed is fixed, so a fit depends only on its training set."""
    return {
        "ridge": make_pipeline(StandardScaler(), Ridge(alpha=10.0)),
        "random_forest": RandomForestRegressor(
            200, min_samples_leaf=5, max_features=1 / 3, random_state=MODEL_SEED
        ),
        "gradient_boosting": GradientBoostingRegressor(
            n_estimators=150,
            learning_rate=0.05,
            max_depth=2,
            subsample=0.7,
            min_samples_leaf=5,
            random_state=MODEL_SEED,
        ),
    }


def build() -> dict[str, np.ndarray]:
    """Cross-validate every model on the same splits."""
    features, target = load_diabetes(return_X_y=True, scaled=False)
    named = models()
    fold = np.full((REPETITIONS, len(target)), -1, dtype=np.int8)
    prediction = np.full((len(named), REPETITIONS, len(target)), np.nan)
    splits = RepeatedKFold(n_splits=FOLDS, n_repeats=REPETITIONS, random_state=SPLIT_SEED)
    for i, (train, test) in enumerate(splits.split(features)):
        repetition, k = divmod(i, FOLDS)
        fold[repetition, test] = k
        for m, model in enumerate(named.values()):
            fitted = model.fit(features[train], target[train])
            prediction[m, repetition, test] = fitted.predict(features[test])
    return {
        "model": np.array(list(named)),
        "decimals": np.array(DECIMALS, dtype=np.int8),
        "y_true": target.astype(np.int16),  # the target is recorded in whole numbers
        "fold": fold,
        "prediction": whole(prediction, np.int32),
    }


def whole(values: np.ndarray, dtype: type[np.integer]) -> np.ndarray:
    """Return values in units of 10**-DECIMALS; raise if the integer type is too small."""
    scaled = np.rint(values * 10**DECIMALS)
    limits = np.iinfo(dtype)
    if not (np.isfinite(scaled) & (scaled >= limits.min) & (scaled <= limits.max)).all():
        raise ValueError(f"a prediction is missing or does not fit {np.dtype(dtype)}")
    return scaled.astype(dtype)


def packed(members: dict[str, np.ndarray]) -> bytes:
    """Return the archive: uncompressed, members in the order given, no time stamps."""
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def report(members: dict[str, np.ndarray]) -> None:
    """Print the mean squared error of each model."""
    truth = members["y_true"].astype(float)
    print(f"{'constant':20s} {truth.var():.1f}")
    for name, prediction in zip(members["model"], members["prediction"], strict=True):
        print(f"{name:20s} {np.mean((prediction / 10**DECIMALS - truth) ** 2):.1f}")


def check(members: dict[str, np.ndarray]) -> int:
    """Compare with the bundled file; print the differences and return the exit status."""
    if packed(members) == TARGET.read_bytes():
        print(f"{TARGET.name}: the same, bit for bit")
        return 0
    with np.load(TARGET, allow_pickle=False) as stored:
        for name in sorted({*stored.files, *members}):
            old, new = stored.get(name), members.get(name)
            if old is None or new is None or not np.array_equal(old, new):
                print(f"{TARGET.name}: member {name!r} differs", file=sys.stderr)
    print(f"made here with scikit-learn {sklearn.__version__}", file=sys.stderr)
    return 1


def main() -> int:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    with threadpool_limits(1):  # sums in one order, whatever the machine
        members = build()
    if options.check:
        return check(members)
    TARGET.write_bytes(packed(members))
    report(members)
    return 0


if __name__ == "__main__":
    sys.exit(main())
