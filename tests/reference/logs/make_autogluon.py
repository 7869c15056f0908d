"""Write the out-of-fold predictions of this directory: python make_autogluon.py OUT."""

import sys
import tempfile

import numpy as np
import pandas as pd
from autogluon.tabular import TabularPredictor

out = sys.argv[1]
rng = np.random.default_rng(1)
X = rng.normal(size=(80, 3)).round(3)
label = np.where(X[:, 0] + rng.normal(size=80) > 0, "yes", "no")
names = [f"p{i:02d}" for i in rng.permutation(80)]
train = pd.DataFrame(
    X, columns=["a", "b", "c"], index=[f"p{i:02d}" for i in rng.permutation(80)]
).assign(label=label)
with tempfile.TemporaryDirectory() as folder:
    predictor = TabularPredictor("label", path=folder, verbosity=0).fit(
        train,
        hyperparameters={"RF": {"n_estimators": 20}},
        num_bag_folds=4,
        num_bag_sets=2,
        ag_args_ensemble={"fold_fitting_strategy": "sequential_local", "use_child_oof": False},
        fit_weighted_ensemble=False,
    )
    model = predictor.model_names()[0]
    oof = predictor.predict_oof(model, train_data=train)
    proba = predictor.predict_proba_oof(model, train_data=train)
    both = proba.round(6)
    both["label"] = train["label"]
    both.sample(frac=1, random_state=1).to_csv(f"{out}/autogluon.csv")
    print(model, (oof == proba.idxmax(axis=1)).all(), both.head())
