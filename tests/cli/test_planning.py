"""best-set, equivalence and power; intervals by group; scores; files of other kinds."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import run
from plotted import logged

import cvstats


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planning")
    cvstats.save_log(logged("flights"), folder / "flights.csv")
    cvstats.save_log(logged("flights")[["naive_bayes"]], folder / "one.csv")
    flights = cvstats.datasets.load("flights")
    auc = cvstats.losses(flights, prediction=flights.attrs["models"], loss="auc")
    cvstats.save_log(auc, folder / "auc.parquet")
    return folder


def rows_of(capsys, *words):
    status, out, err = run(capsys, *words, "--format", "json")
    assert (status, err) == (0, "")
    return json.loads(out)["rows"]


@pytest.mark.parametrize(
    ("words", "ask"),
    [
        (["best-set", "--n-draws", "200", "--seed", "3"],
         lambda log: cvstats.best_set(log, n_draws=200, rng=3)),
        (["equivalence", "--margin", "0.005", "--reference", "naive_bayes"],
         lambda log: cvstats.equivalence(log, margin=0.005, reference="naive_bayes")),
        (["power", "--effect", "0.002", "--alternative", "less"],
         lambda log: cvstats.power(log, effect=0.002, alternative="less")),
        (["compare", "--by", "fold", "--reference", "naive_bayes"],
         lambda log: cvstats.compare(log, by="fold", reference="naive_bayes")),
        (["contrast", "--by", "fold", "--between", "0", "2", "--alpha", "0.1"],
         lambda log: cvstats.compare(
             cvstats.contrast(log, by="fold", between=(0, 2)), 0, alpha=0.1)),
        (["contrast", "--by", "fold", "--reference", "rest", "--adjust", "none"],
         lambda log: cvstats.compare(
             cvstats.contrast(log, by="fold", reference="rest"), 0, adjust=None)),
    ],
)  # fmt: skip
def test_the_commands_print_what_the_functions_return(capsys, folder, words, ask):
    expected = ask(logged("flights"))
    rows = rows_of(capsys, words[0], folder / "flights.csv", *words[1:])
    assert len(rows) == len(expected)
    for row, (_, numbers) in zip(rows, expected.iterrows(), strict=True):
        for name in expected.select_dtypes("number"):
            if np.isfinite(numbers[name]):
                assert row[name] == pytest.approx(numbers[name], rel=1e-12)
            else:
                assert row[name] is None
    status, out, _ = run(capsys, words[0], folder / "flights.csv", *words[1:])
    assert status == 0
    assert "target: " in out
    assert ("contrast: 0 - 2." in out) == ("--between" in words)
    assert " - 0 " not in out  # the difference between groups is compared with nothing
    assert words[0] != "contrast" or "between groups in the mean loss" in out


def test_an_interval_for_each_group(capsys, folder):
    rows = rows_of(capsys, "interval", folder / "one.csv", "--by", "source")
    log = logged("flights")["naive_bayes"]
    expected = cvstats.wald(log, by="source")
    assert [row["estimate"] for row in rows] == expected["estimate"].tolist()
    assert [row["lower"] for row in rows] == expected["lower"].tolist()
    same = rows_of(capsys, "interval", folder / "one.csv", "--by", "source", "--method", "wald")
    assert same == rows
    whole = [folder / "one.csv", "--by", "source", "--method", "two_stage"]
    status, _, err = run(capsys, "interval", *whole)
    assert (status, "two_stage needs bootstrap samples" in err) == (2, True)
    status, _, err = run(capsys, "interval", folder / "one.csv", "--by", "hospital")
    assert status == 2
    assert "no level 'hospital'. Expected by= to be one of 'fold', 'source', 'point'" in err


# --- files ----------------------------------------------------------------------------------------


def test_a_csv_file_of_another_country(capsys, tmp_path):
    path = tmp_path / "klinik.csv"
    lines = ["Fall;Fold;Verlust", *(f"{i};{i % 4};{i % 7},5" for i in range(40)), "3;3;3,5"]
    path.write_text("\n".join(lines), encoding="latin-1")
    words = [path, "--decimal", ",", "--encoding", "latin-1", "--metric", "Verlust",
             "--point", "Fall", "--fold", "Fold"]  # fmt: skip
    status, out, err = run(capsys, "interval", *words, "--drop-duplicates", "--format", "json")
    assert status == 0
    assert err == "cvstats: note: 1 copy of rows dropped\n"
    np.testing.assert_allclose(
        json.loads(out)["rows"][0]["estimate"], np.mean([i % 7 + 0.5 for i in range(40)])
    )
    status, _, err = run(capsys, "interval", *words)
    assert status == 2
    assert "an evaluation occurs twice" in err


def test_a_plain_netcdf_whose_points_are_times(capsys, tmp_path):
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=50)
    plain = xr.DataArray(rng.exponential(size=50), {"time": days}, name="wind")
    plain.to_netcdf(tmp_path / "wind.nc", engine="h5netcdf")
    rows = rows_of(capsys, "interval", tmp_path / "wind.nc", "--point", "time")
    assert rows[0]["estimate"] == pytest.approx(float(plain.mean()))
    log = cvstats.read_log(tmp_path / "wind.nc", point="time")
    assert log.dims == ("point",)
    assert cvstats.read_log(plain, point="time").equals(log)
    two = cvstats.read_log({"a": tmp_path / "wind.nc", "b": tmp_path / "wind.nc"}, point="time")
    assert (two["a"] == two["b"]).all()
    named = plain.assign_coords(station=("time", np.arange(50) % 5))
    assert "source" in cvstats.read_log(named, point="time", source="station").coords
    for options, words in (
        ({"point": "tme"}, "point='tme' is not a dimension.*Did you mean 'time'"),
        ({"fold": "time"}, "already has 'fold'"),
    ):
        with pytest.raises(cvstats.LogError, match=words):
            cvstats.read_log(named.rename(station="fold"), **options)
    cvstats.save_log(named.rename(time="point"), tmp_path / "saved.nc")
    with pytest.raises(cvstats.LogError, match="does not use point="):
        cvstats.read_log(tmp_path / "saved.nc", point="time")
    both = {"a": tmp_path / "saved.nc", "b": tmp_path / "saved.nc"}
    with pytest.raises(cvstats.LogError, match="does not use point="):
        cvstats.read_log(both, point="time")


def test_tasks_choose_their_scores(capsys, tmp_path):
    for model in ("alpha", "beta"):
        (tmp_path / model).mkdir()
        for task, names in (("arc", ["acc", "acc_norm"]), ("gsm", ["exact_match"])):
            rows = [
                {"doc_id": i, "doc_hash": f"{i}", "filter": "none", "metrics": names}
                | dict.fromkeys(names, float((i + len(model)) % 3 == 0))
                for i in range(30)
            ]
            path = tmp_path / model / f"samples_{task}_2026-01-01T00-00-00.jsonl"
            path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    rows = rows_of(capsys, "interval", tmp_path, "--metric", "arc=acc")
    assert [row["model"] for row in rows] == ["alpha", "beta"]
    assert rows == rows_of(
        capsys,
        "interval",
        *sorted(tmp_path.rglob("*.jsonl")),
        "--metric",
        "arc=acc,gsm=exact_match",
    )
    log = cvstats.read_log(tmp_path, metric="acc")
    assert rows[0]["estimate"] == pytest.approx(1 - log["alpha"].mean())
