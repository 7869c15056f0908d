"""Draw the pictures of the gallery page *Plots* and of the README, from the data that ship.

    python tools/plot_gallery.py

Each is an SVG in docs/gallery; the seed of everything drawn at random is 0.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import cvstats

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"


def logged(name, loss, **attrs):
    log = cvstats.datasets.load(name)
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss=loss)
    losses.attrs = attrs
    return losses


def main():
    diabetes = logged("diabetes", "squared_error", long_name="squared error", units="score²")
    flights = logged("flights", "brier", long_name="Brier score")
    months = logged("flights_by_month", "brier", long_name="Brier score")
    pictures = {
        "forest": (2.3, lambda ax: diabetes.cvci.plot.forest(ax=ax)),
        "folds": (3.2, lambda ax: diabetes.cvci.plot.folds(ax=ax)),
        "stability": (3.2, lambda ax: diabetes.cvci.plot.stability(ax=ax)),
        "sources": (5.6, lambda ax: months.cvci.plot.sources(ax=ax)),
        "decomposition": (4.6, lambda ax: diabetes.cvci.plot.decomposition(ax=ax)),
        "comparison": (2.8, lambda ax: diabetes.cvci.plot.comparison(ax=ax)),
        "matrix": (3.6, lambda ax: flights.cvci.plot.comparison(kind="matrix", ax=ax)),
        "best_set": (2.1, lambda ax: diabetes.cvci.plot.best_set(rng=0, ax=ax)),
    }
    for name, (height, draw) in pictures.items():
        with mpl.rc_context({"svg.hashsalt": name}):
            figure = Figure(figsize=(5, height), layout="constrained")
            draw(figure.subplots())
            figure.savefig(GALLERY / f"plot_{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
