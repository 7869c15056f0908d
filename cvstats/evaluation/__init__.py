"""Run scikit-learn style estimators over a resampling plan to get a loss log."""

from __future__ import annotations

from cvstats.evaluation.experiment import evaluate

__all__ = ["evaluate"]
