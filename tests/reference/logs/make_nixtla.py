"""Write the Nixtla tables of this directory: python make_nixtla.py OUT."""

import sys

import numpy as np
import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import HistoricAverage, Naive, SeasonalNaive

out = sys.argv[1]
rng = np.random.default_rng(1)
days = pd.date_range("2024-01-01", periods=70)
parts = []
for name, level in (("bakery", 20.0), ("kiosk", 50.0), ("museum", 5.0)):
    week = 3 * np.sin(2 * np.pi * np.arange(70) / 7)
    y = (level + week + rng.normal(size=70)).round(2)
    parts.append(pd.DataFrame({"unique_id": name, "ds": days, "y": y}))
table = pd.concat(parts, ignore_index=True)
models = [Naive(), SeasonalNaive(season_length=7), HistoricAverage()]
forecast = StatsForecast(models=models, freq="D")
done = forecast.cross_validation(df=table, h=7, step_size=7, n_windows=4, level=[90])
done.to_csv(f"{out}/nixtla.csv", index=False, float_format="%.6g")
done.round(5).to_parquet(f"{out}/nixtla.parquet", index=False)
over = forecast.cross_validation(df=table, h=7, step_size=3, n_windows=3)
over.to_csv(f"{out}/nixtla_overlapping.csv", index=False, float_format="%.6g")
print(done.head(), done.dtypes)
