"""Run scikit-learn style estimators over a resampling plan to get a loss log."""
