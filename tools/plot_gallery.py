"""Draw the pictures of the gallery page *Plots* and of the README, from the data that ship.

    python tools/plot_gallery.py

Each is an SVG in docs/gallery; the seed of everything drawn at random is 0.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import cvstats

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"


def logged(name, loss, **attrs):
    log = cvstats.datasets.load(name)
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss=loss)
    losses.attrs = attrs
    return losses


def flights_auc():
    log = cvstats.datasets.load("flights_by_month")
    return cvstats.losses(log, prediction=log.attrs["models"], loss="auc")


def schools(number=200):
    """Simulated squared errors at 12 points in each school."""
    rng = np.random.default_rng(0)
    school = np.repeat(np.arange(number), 12)
    index = pd.MultiIndex.from_arrays([school, np.arange(len(school))], names=["source", "point"])
    losses = rng.gamma(3, np.exp(rng.normal(0, 0.3, number))[school] / 3)
    log = pd.Series(losses, index, name="ridge")
    log.attrs = {"loss": "squared_error"}
    return log


def field():
    """Made up: absolute errors of two forecasts on 100 days; the second is better in the west."""
    rng = np.random.default_rng(0)
    lat, lon = np.arange(-75, 90, 10), np.arange(-175, 180, 10)
    smooth = xr.DataArray(
        rng.gamma(2, 0.5, (100, len(lat), len(lon))), dims=("day", "lat", "lon"),
        coords={"point": ("day", np.arange(100)), "lat": lat, "lon": lon},
    )  # fmt: skip
    west = -np.sin(np.deg2rad(smooth["lon"])) * np.cos(np.deg2rad(smooth["lat"]))
    raw = smooth - 0.2 * west + 0.3 * rng.normal(size=smooth.shape)
    log = xr.Dataset({"smooth": smooth, "raw": abs(raw)})
    land = (log["lat"] > 20) & (abs(log["lon"] - 60) < 35)
    named = {"long_name": "absolute error", "units": "K"}
    return log.where(~land).map(lambda losses: losses.assign_attrs(named)).assign_attrs(named)


def leads():
    """Made up: the differences of the two forecasts grow with the lead time."""
    two = field()
    parts = [two.assign(raw=two["smooth"] + k * (two["raw"] - two["smooth"])) for k in (1, 2, 3, 4)]
    return xr.concat(parts, "lead").assign_coords(lead=[1, 3, 5, 7]).assign_attrs(two.attrs)


def twelve():
    """Made up: twelve models in ten repetitions of five folds."""
    rng = np.random.default_rng(0)
    folds = np.concatenate([rng.permutation(60) % 5 for _ in range(10)])
    index = pd.MultiIndex.from_arrays(
        [np.repeat(np.arange(10), 60), folds, np.tile(np.arange(60), 10)],
        names=["repetition", "fold", "point"],
    )
    base = np.tile(rng.exponential(size=60), 10)
    noise = rng.normal(0, 0.3, (12, 600))
    return pd.DataFrame({f"model {k + 1}": base + 0.1 * k + noise[k] for k in range(12)}, index)


def reliability(ax):
    log = cvstats.datasets.load("flights")
    return cvstats.plot.reliability(
        log, prediction=["naive_bayes", "gradient_boosting"], bins=8, ax=ax
    )


def main():
    diabetes = logged("diabetes", "squared_error", long_name="squared error", units="score²")
    months = logged("flights_by_month", "brier", long_name="Brier score")
    pictures = {
        "forest": (2.3, lambda ax: diabetes.cvci.plot.forest(ax=ax)),
        "forest_naive": (
            2.3,
            lambda ax: diabetes.cvci.plot.forest(methods=["wald", "naive"], ax=ax),
        ),
        "forest_methods": (
            2.6,
            lambda ax: diabetes.cvci.plot.forest(methods=["wald", "corrected_t", "naive"], ax=ax),
        ),
        "forest_log": (
            2.3,
            lambda ax: diabetes.assign(diverged=2000 * diabetes["ridge"]).cvci.plot.forest(
                log=True, ax=ax
            ),
        ),
        "folds": (3.2, lambda ax: diabetes.cvci.plot.folds(ax=ax)),
        "stability": (3.2, lambda ax: diabetes.cvci.plot.stability(ax=ax)),
        "stability_one": (3.2, lambda ax: diabetes["ridge"].cvci.plot.stability(ax=ax)),
        "sources": (5.6, lambda ax: months.cvci.plot.sources(ax=ax)),
        "sources_many": (4.2, lambda ax: schools().cvci.plot.sources(ax=ax)),
        "panels": (5.0, lambda ax: twelve().cvci.plot.stability(ax=ax)),
        "reliability": (3.4, lambda ax: reliability(ax)),
        "map_leads": (3.0, lambda ax: leads().cvci.plot.map(ax=ax)),
        "map": (3.0, lambda ax: field()["smooth"].cvci.plot.map(ax=ax)),
        "map_difference": (3.0, lambda ax: field().cvci.plot.map(ax=ax)),
        "scores": (2.2, lambda ax: flights_auc().cvci.plot.forest(ax=ax)),
        "decomposition": (4.6, lambda ax: diabetes.cvci.plot.decomposition(ax=ax)),
        "comparison": (2.8, lambda ax: diabetes.cvci.plot.comparison(ax=ax)),
        "matrix": (3.6, lambda ax: months.cvci.plot.comparison(kind="matrix", ax=ax)),
        "best_set": (2.1, lambda ax: diabetes.cvci.plot.best_set(rng=0, ax=ax)),
    }
    for name, (height, draw) in pictures.items():
        with mpl.rc_context({"svg.hashsalt": name}):
            figure = Figure(figsize=(5, height), layout="constrained")
            draw(figure.subplots())
            figure.savefig(GALLERY / f"plot_{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
