"""Run scikit-learn style estimators over a resampling plan, and get the loss log."""

from __future__ import annotations

from cvstats.evaluation.experiment import evaluate

__all__ = ["evaluate"]
