"""Lazy arrays and frames: nothing computes early, nothing is computed twice, no digit is lost."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from lazily import guard, now, slowly

import cvstats
from cvstats import LogError

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")

REPETITIONS, POINTS, LAT, LON, MODELS = 2, 24, 4, 3, 3


def grid(seed=1, level=1e3, masked=True):
    """Losses over repetitions, points, models and a map with a masked corner."""
    rng = np.random.default_rng(seed)
    fold = np.stack([rng.permutation(POINTS) % 4 for _ in range(REPETITIONS)])
    log = xr.DataArray(
        level + rng.standard_normal((REPETITIONS, LAT, POINTS, MODELS, LON)),
        {
            "fold": (("repetition", "point"), fold), "source": ("point", np.arange(POINTS) % 3),
            "model": list("abc"), "lat": 1.5 * np.arange(LAT),
            "point": [f"p{i}" for i in range(POINTS)],
        },
        ("repetition", "lat", "point", "model", "lon"), attrs={"units": "K"},
    )  # fmt: skip
    return log.where((log["lat"] > 0) | (log["lon"] > 0)) if masked else log


# --- frames of dask -----------------------------------------------------------------------------


def table(n=400, repetitions=2):
    rng = np.random.default_rng(3)
    rows = [
        pd.DataFrame({
            "repetition": r, "split": rng.permutation(n) % 5,
            "source": [f"site {i % 7}" for i in range(n)], "id": np.arange(n),
            "ridge": rng.standard_normal(n), "forest": rng.standard_normal(n),
        })
        for r in range(repetitions)
    ]  # fmt: skip
    return pd.concat(rows, ignore_index=True).sample(frac=1, random_state=0)


NAMED = {"loss": ["ridge", "forest"], "fold": "split", "point": "id"}


def test_frames_from_parquet(tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    whole = table()
    log = cvstats.as_log(whole, **NAMED)
    for i, part in enumerate(np.array_split(np.arange(len(whole)), 5)):
        whole.iloc[part].to_parquet(tmp_path / f"{i}.parquet")
    with guard():
        moments = cvstats.scan_dask(frames.read_parquet(tmp_path), pairs=True, **NAMED)
        both = moments.wald(variance="within-fold"), moments.compare()
    with now():
        wald, compared = dask.compute(*both)
    pd.testing.assert_frame_equal(wald, cvstats.wald(log, variance="within-fold"), rtol=1e-12)
    pd.testing.assert_frame_equal(compared, cvstats.compare(log), rtol=1e-11)
    with now():
        kept = cvstats.scan_dask(frames.from_pandas(whole, npartitions=3), **NAMED).compute()
    pd.testing.assert_frame_equal(kept.clustered(), cvstats.clustered(log), rtol=1e-12)
    with pytest.raises(LogError, match="is not a dask DataFrame"):
        cvstats.scan_dask(whole, **NAMED)


# --- a real cluster -----------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.filterwarnings("ignore")
def test_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    log = grid(masked=False)
    log = xr.concat([log] * 4, "lon").assign_coords(lon=range(12))
    lazy = log.chunk(point=4, lat=2, lon=6)
    lazy = lazy.copy(data=lazy.data.map_blocks(slowly, dtype=float, meta=np.empty((0,) * 5)))
    settings = {"distributed.comm.timeouts.connect": "5s", "temporary-directory": str(tmp_path)}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        futures = client.compute([lazy.cvci.wald(), lazy.cvci.cv_t()])
        half = threading.Event()
        for _ in range(200):
            done = sum(len(keys) for keys in client.has_what().values())
            if done > 3 or half.wait(0.05):
                break
        assert not any(future.done() for future in futures)
        os.kill(pids[0], signal.SIGKILL)
        distributed.wait(futures, timeout=120)
        wald, cv_t = client.gather(futures)
        after = set(client.run(os.getpid).values())
        assert pids[0] not in after
    xr.testing.assert_allclose(wald, cvstats.wald(log), rtol=1e-11)
    xr.testing.assert_allclose(cv_t, cvstats.cv_t(log), rtol=1e-11)
