"""AutoGluon: out-of-fold predictions, which are averages without their folds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from cvstats.errors import LogError, listed, spelled
from cvstats.io.predictions import PredictionTable
from cvstats.io.tools._table import ReadOptions, add_probabilities, likeliest, require_columns

LOST = (
    "AutoGluon averages each out-of-fold prediction over its bags and does not say in which "
    "fold a point was: the log has no repetition and no fold, so only methods for one test set "
    "apply, and they take all predictions for those of one model"
)


def autogluon(predictions: pd.Series | pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read ``predict_oof`` or ``predict_proba_oof``, aligned with the truth by index."""
    y = options.data.get("y")
    table = predictions.to_frame() if isinstance(predictions, pd.Series) else predictions
    if options.levels.get("point"):
        require_columns(table, [options.levels["point"]], "table with this point=")
        table = table.set_index(options.levels["point"])
    truth = options.truth
    if y is None and truth is not None and truth in table.columns:
        y, table = table[truth], table.drop(columns=truth)
    if not isinstance(y, pd.Series):
        raise LogError(
            "the truth of these out-of-fold predictions is not known. Expected the label column "
            "of the training data, y=train['label'] (a Series, by whose index they are aligned)."
        )
    for what, index in (("the predictions", table.index), ("y", y.index)):
        if not index.is_unique:
            again = index[index.duplicated()][0]
            raise LogError(
                f"the index of {what} names row {spelled(again)} twice, as AutoGluon does when it "
                f"copies rows of rare classes. Expected each point once. Drop the copies."
            )
    absent = table.index.difference(y.index)
    if len(absent):
        raise LogError(
            f"y has no truth for row {spelled(absent[0])} (and {len(absent) - 1:,} more). Expected "
            f"the training data of the predictor."
        )
    columns = {"point": table.index, "y_true": y.reindex(table.index).array}
    out = pd.DataFrame(columns)
    groups = options.data.get("groups")
    if groups is not None:
        if not isinstance(groups, pd.Series) or not groups.index.is_unique:
            raise LogError("groups= of AutoGluon's points is a Series by the same index.")
        out["fold"] = groups.reindex(table.index).array
    chances = class_columns(table, y)
    if not chances and table.shape[1] != 1:
        raise LogError(
            f"the predictions have the columns {listed(map(repr, table.columns))}. Expected one, "
            f"or one for each class of y."
        )
    plain = table.reset_index(drop=True)
    out["y_pred"] = likeliest(plain, chances) if chances else plain.iloc[:, 0]
    found = add_probabilities(out, plain, chances)
    return PredictionTable(out, found, {}, LOST if groups is None else "")


def class_columns(table: pd.DataFrame, y: pd.Series) -> dict[Hashable, Hashable]:
    """Find the classes that the columns are the probabilities of."""
    known: dict[str, Any] = {str(label): label for label in pd.unique(y.dropna())}
    if not {str(name) for name in table.columns} >= set(known) or table.shape[1] < 2:
        return {}
    return {name: name for name in table.columns}
