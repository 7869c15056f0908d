"""A log as levels and columns: pandas and xarray objects in, labelled results out."""
