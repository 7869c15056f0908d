"""Side by side with numpy, pandas and xarray: ``python -m benchmarks``."""
