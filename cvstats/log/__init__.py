"""A log as levels and columns: pandas and xarray objects in, labeled results out."""
