"""Estimators that fail, in a module that the processes of `evaluate` can import."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


class Stubborn(ValueError):
    """An exception that cannot be sent to another process and back."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Failing(RegressorMixin, BaseEstimator):
    """Fail where a point is not in the training sample."""

    def __init__(self, without=0, when="fit", stubborn=False):
        self.without = without
        self.when = when
        self.stubborn = stubborn

    def fit(self, X, y):
        """Fail, or do nothing."""
        self.gone_ = self.without not in X.index
        if self.gone_ and self.when == "fit":
            raise Stubborn("this", "that") if self.stubborn else ZeroDivisionError("no pivot")
        return self

    def predict(self, X):
        """Fail, or predict zero."""
        if self.gone_ and self.when == "predict":
            raise ZeroDivisionError("no pivot")
        return np.zeros(len(X))
