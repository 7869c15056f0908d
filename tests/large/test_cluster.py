"""A cluster of processes: a worker that is killed loses nothing."""

import os
import signal
import threading

import numpy as np
import pytest
import xarray as xr
from lazily import slowly

import cvstats

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
pytest.importorskip("dask.array", reason="the extra dask is not installed")


def grid():
    """Losses of three models over repetitions, points and a map."""
    rng = np.random.default_rng(1)
    fold = np.stack([rng.permutation(24) % 4 for _ in range(2)])
    return xr.DataArray(
        1e3 + rng.standard_normal((2, 4, 24, 3, 12)),
        {"fold": (("repetition", "point"), fold), "source": ("point", np.arange(24) % 3)},
        ("repetition", "lat", "point", "model", "lon"),
    )


@pytest.mark.process
@pytest.mark.filterwarnings("ignore")
def test_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    log = grid()
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
