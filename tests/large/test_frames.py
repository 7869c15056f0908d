"""Frames of dask: the same functions and accessor, the same answers, one pass over partitions."""

import html
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from lazily import guard, now
from together import together

import cvstats
from cvstats import LogError

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")


def table(n=200, repetitions=2):
    rng = np.random.default_rng(3)
    rows = [
        pd.DataFrame({
            "repetition": r, "fold": rng.permutation(n) % 5,
            "source": [f"site {i % 7}" for i in range(n)], "point": np.arange(n),
            "ridge": rng.standard_normal(n), "forest": rng.standard_normal(n),
            "month": np.where(np.arange(n) % 3 == 0, "may", "june"),
        })
        for r in range(repetitions)
    ]  # fmt: skip
    return pd.concat(rows, ignore_index=True).sample(frac=1, random_state=0)


MODELS = ["ridge", "forest"]


def parted(whole, number=5):
    return frames.from_pandas(whole, npartitions=number, sort=False)


UNNAMED = ["repetition", "fold", "point", "patient", *MODELS]
ROADS = {
    "the accessor": lambda frame, names: frame[names].cvci.interval(),
    "as_log": lambda frame, names: cvstats.as_log(frame[names], loss=MODELS).cvci.interval(),
    "losses": lambda frame, names: cvstats.losses(
        frame[names].assign(y=0.5), "y", MODELS, "absolute_error"
    ).cvci.interval(),
    "scan_dask": lambda frame, names: cvstats.scan_dask(frame[names], loss=MODELS),
}


@pytest.mark.parametrize("road", ROADS)
def test_columns_that_resemble_a_level_are_not_models(road):
    frame = parted(table().assign(patient=lambda rows: rows["point"] // 4))
    named = [name for name in UNNAMED if name != "patient"]
    with now():
        found, plain = (ROADS[road](frame, names).compute() for names in (UNNAMED, named))
    found, plain = map(cvstats.interval, (found, plain)) if road == "scan_dask" else (found, plain)
    assert (list(found.index), set(found["caution"])) == (MODELS, {"unused level"})
    assert set(plain["caution"]) == {""}
    pd.testing.assert_frame_equal(found.iloc[:, :4], plain.iloc[:, :4])


def counted(whole, seen):
    """A frame whose partitions are counted as they are made."""

    def part(rows):
        seen.append(1)
        return rows

    frame = parted(whole)
    return frame.map_partitions(part, meta=frame._meta)


def test_methods_read_the_frame_once():
    whole, seen = table(), []
    frame = counted(whole[["fold", "point", "repetition", *MODELS]], seen)
    with now():
        wald, cv_t, parts = dask.compute(frame.cvci.wald(), frame.cvci.cv_t(), frame.cvci.compare())
    assert len(seen) == 5
    log = cvstats.as_log(whole.drop(columns=["source", "month"]), loss=MODELS)
    pd.testing.assert_frame_equal(wald, log.cvci.wald(), rtol=1e-12)
    pd.testing.assert_frame_equal(cv_t, log.cvci.cv_t(), rtol=1e-12)
    pd.testing.assert_frame_equal(parts, log.cvci.compare(), rtol=1e-11)
    assert wald.attrs["checked"].startswith("within each of 5 batches and across them")


@pytest.mark.parametrize("by", ["month", ("repetition", "month")])
def test_moments_by_a_column_of_its_own(by):
    whole = table()
    log = whole.set_index([name for name in whole if name not in MODELS])
    found = cvstats.moments(parted(whole), by=by).compute()
    pd.testing.assert_frame_equal(found, cvstats.moments(log, by=by), rtol=1e-12)


def test_frames_from_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    names = {"loss": MODELS, "fold": "split", "point": "id"}
    whole = table().drop(columns="month").rename(columns={"fold": "split", "point": "id"})
    log = cvstats.as_log(whole, **names)
    for i, part in enumerate(np.array_split(np.arange(len(whole)), 5)):
        whole.iloc[part].to_parquet(tmp_path / f"{i}.parquet")
    with guard():
        moments = cvstats.scan_dask(frames.read_parquet(tmp_path), pairs=True, **names)
        both = moments.wald(variance="within-fold"), moments.compare()
    with now():
        wald, compared = dask.compute(*both)
    pd.testing.assert_frame_equal(wald, cvstats.wald(log, variance="within-fold"), rtol=1e-12)
    pd.testing.assert_frame_equal(compared, cvstats.compare(log), rtol=1e-11)
    with pytest.raises(LogError, match="is not a dask DataFrame"):
        cvstats.scan_dask(whole, **names)


def test_attrs_assigned_to_a_frame_describe_its_losses():
    flights = cvstats.datasets.load("flights")
    log = cvstats.losses(flights, prediction=["naive_bayes", "logistic_regression"], loss="auc")
    bare = log.reset_index()
    bare.attrs = {}  # as from dask.dataframe.read_parquet
    frame = parted(bare)
    frame.attrs = log.attrs
    with now():
        found, pair = dask.compute(frame.cvci.interval(), frame.cvci.compare())
    expected = log.cvci.interval()
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    assert found.attrs["target"] == expected.attrs["target"]
    assert pair.attrs["target"] == log.cvci.compare().attrs["target"]


@pytest.mark.process
def test_frames_have_the_accessor_if_dask_was_imported_first():
    code = (
        "import dask.dataframe as frames, cvstats\n"
        "print(hasattr(frames.DataFrame, 'cvci'), hasattr(frames.Series, 'cvci'))\n"
    )
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["True", "True"]


def test_other_names():
    whole = table()
    log = cvstats.as_log(whole, loss=MODELS)
    other = whole.rename(columns={"fold": "split", "point": "id", "ridge": "se"})
    with guard():
        frame = cvstats.as_log(parted(other), loss=["se", "forest"], fold="split", point="id")
        later = frame.cvci.wald()
    assert list(frame.columns) == ["repetition", "fold", "source", "point", "se", "forest"]
    with now():
        found = later.compute()
    pd.testing.assert_frame_equal(found.rename({"se": "ridge"}), log.cvci.wald(), rtol=1e-12)


@pytest.mark.parametrize("prediction", ["ridge", MODELS, {"a": "ridge", "b": "forest"}])
def test_losses_of_predictions(prediction):
    whole = table().assign(y_true=1.5).set_axis(np.zeros(400, dtype=int), axis=0)
    levels = ["repetition", "fold", "source", "point"]
    log = cvstats.losses(whole.set_index(levels), prediction=prediction, loss="absolute_error")
    log = log.to_frame() if isinstance(log, pd.Series) else log
    with guard():
        frame = cvstats.losses(parted(whole), prediction=prediction, loss="absolute_error")
        later = frame.cvci.wald()
    assert list(frame.columns) == [*levels, *log.columns]
    with now():
        pd.testing.assert_frame_equal(later.compute(), log.cvci.wald(), rtol=1e-12)
    with guard(), pytest.raises(LogError, match="no column 'svm'"):
        cvstats.losses(parted(whole), prediction="svm")


def test_accuracy_of_predictions():
    """Its mean is the same for both values of ``folds=``."""
    whole = table().assign(y_true=1, ridge=lambda t: t["point"] % 2)
    asked = {"prediction": ["ridge"], "loss": "accuracy", "folds": "pool"}
    log = cvstats.losses(whole.set_index(["repetition", "fold", "source", "point"]), **asked)
    with now():
        ours = cvstats.losses(parted(whole), **asked).cvci.wald().compute()
    pd.testing.assert_frame_equal(ours, log.cvci.wald(), rtol=1e-12)


def test_findings_and_report_of_a_frame(tmp_path, monkeypatch):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", lambda *_: "")
    whole = table()
    log = cvstats.as_log(whole.drop(columns="month"), loss=MODELS)
    frame = parted(whole.drop(columns="month"))
    with guard():
        later = frame.cvci.diagnose()
        assert frame.cvci._repr_html_() == f"<p>{html.escape(repr(frame.cvci)[7:-1])}</p>"
    with now():
        found = later.compute()
    assert found["code"].tolist() == log.cvci.diagnose()["code"].tolist() != []
    path = frame.cvci.report(tmp_path / "report.html", title="Partitions")
    page = path.read_text(encoding="utf-8")
    assert "Partitions" in page
    assert "forest" in page
    stacked = whole.melt(["repetition", "fold", "source", "point"], MODELS, "model", "loss")
    with now():
        assert len(parted(stacked).cvci.diagnose().compute()) > 0
        assert "forest" in parted(stacked).cvci.report()
        words = " ".join(str(parted(stacked).cvci.summary().compute()).split())
        assert "ridge has the lowest" in words
        assert "This needs a column of losses for each model." in words


def test_models_in_rows_have_the_cautions_of_models_in_columns():
    drifting = np.cumsum(np.random.default_rng(0).normal(size=(300, 2)), axis=0)
    log = pd.DataFrame(drifting, pd.date_range("2024-01-01", periods=300, name="point"), MODELS)
    stacked = log.reset_index().melt("point", MODELS, "model", "loss")
    with now():
        ours = parted(stacked.sample(frac=1, random_state=1)).cvci.holdout().compute()
    assert cvstats.cautions(ours).tolist() == cvstats.cautions(log.cvci.holdout()).tolist()
    assert cvstats.cautions(ours).str.contains("serial dependence").all()


def test_a_frame_of_one_model(monkeypatch):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", lambda *_: "")
    whole = table().drop(columns=["forest", "month"]).assign(site=lambda t: t["point"] % 3)
    log = cvstats.as_log(whole, loss="ridge")
    frame = cvstats.as_log(parted(whole.drop(columns="site")), loss="ridge")
    with now():
        verdict, found = dask.compute(frame.cvci.summary(), frame.cvci.diagnose())
        assert str(verdict) == str(log.to_frame().cvci.summary())
        assert found["code"].tolist() == log.cvci.diagnose()["code"].tolist()
        assert "ridge" in frame.cvci.report()
        assert list(parted(whole).cvci.summary(by="site").compute()) == [0, 1, 2]


def test_missing_losses_of_some_repetitions():
    """In memory, a point is dropped from all repetitions; its rows are in several partitions."""
    whole = table().drop(columns=["source", "month"])
    whole.loc[(whole["repetition"] == 0) & (whole["point"] == 7), "ridge"] = np.nan
    frame = parted(whole)
    for call in ("wald", "corrected_t", "compare"):
        with now(), pytest.raises(LogError, match="drops a point from all repetitions"):
            getattr(frame.cvci, call)(missing="drop").compute()
    whole.loc[whole["point"] == 7, "ridge"] = np.nan  # from all of them
    with now():
        ours = parted(whole).cvci.wald(missing="drop").compute()
    log = cvstats.as_log(whole, loss=MODELS).cvci.wald(missing="drop")
    pd.testing.assert_frame_equal(ours, log, rtol=1e-12)


def test_models_below_each_other():
    whole = table()
    log = cvstats.as_log(whole, loss=MODELS)
    long = whole.melt(["repetition", "fold", "source", "point"], MODELS, "who", "se")
    long = long.sample(frac=1, random_state=2)
    with guard():
        frame = cvstats.as_log(parted(long, 7), loss="se", model="who")
        later = frame.cvci.wald(), frame.cvci.clustered(), cvstats.moments(frame)
    with now():
        wald, clustered, cells = dask.compute(*later)
    order = ["forest", "ridge"]  # by name: no order of partitions is the right one
    pd.testing.assert_frame_equal(wald, log[order].cvci.wald(), rtol=1e-12)
    pd.testing.assert_frame_equal(clustered, log[order].cvci.clustered(), rtol=1e-12)
    assert list(cells.index.names) == ["model", "repetition", "fold"]
    with guard(), pytest.raises(LogError, match="pairs=True compares models"):
        frame.cvci.compare()
    lost = long[~((long["who"] == "ridge") & (long["point"] == 7))]
    with now(), pytest.raises(LogError, match="'forest' and 'ridge' have 7 and 6 points|points at"):
        cvstats.as_log(parted(lost), loss="se", model="who").cvci.wald().compute()


def test_a_series_and_an_index():
    whole = table(repetitions=1).set_index("point")
    series = parted(whole["ridge"])
    log = whole["ridge"]
    with now():
        pd.testing.assert_frame_equal(
            series.cvci.holdout().compute(), cvstats.holdout(log), rtol=1e-12
        )
        frame = parted(whole).cvci.wald().compute()
    whole = whole.reset_index()
    pd.testing.assert_frame_equal(
        frame, cvstats.wald(cvstats.as_log(whole, loss=MODELS)), rtol=1e-12
    )


def refusals():
    whole = table()
    frame = parted(whole)
    yield "no level", "no level of a loss log", lambda: parted(whole[MODELS]).cvci.wald()
    yield "other names", r"Name the columns first: frame = cvstats.as_log\(frame, .*scan_dask", (
        lambda: cvstats.wald(parted(whole[MODELS].assign(cv_split=1))))  # fmt: skip
    yield "no numbers", "these are numeric: none", lambda: (
        parted(whole.drop(columns=MODELS)).cvci.wald())  # fmt: skip
    yield "a level", "no column 'site'", lambda: frame.cvci.naive(by="site")
    yield "an option", "variance='all'", lambda: frame.cvci.wald(variance="all")
    yield "two dask frames", "two dask frames cannot be paired", lambda: frame.cvci.compare(frame)
    yield "Pass its moments", "cvstats.scan_dask", lambda: cvstats.Moments.of_log(frame)
    yield "counts", "a bootstrap log", lambda: parted(whole.assign(count=1)).cvci.naive()
    yield "counts, scanned", r"a bootstrap log .* log.compute\(\)", lambda: (
        cvstats.scan_dask(parted(whole.assign(count=1)), loss=MODELS).compute())  # fmt: skip
    yield "a column", "no column 'error'", lambda: cvstats.as_log(frame, loss="error")
    yield "one of losses", "expected one column of losses", lambda: (
        parted(whole.assign(model="a")).cvci.wald())  # fmt: skip
    for name in sorted(set(cvstats.plot.__all__) - {"Plots", "reliability"}):
        plot = getattr(cvstats.plot, name)
        yield f"plot {name}", r"scan_dask\(frame\).compute\(\)", partial(plot, frame)
    yield "a plot", r"as_log\(frame.compute\(\)", lambda: frame.cvci.plot.forest()
    yield "no log", "repetitions. Select one", lambda: frame.cvci.quadratic().compute()


CASES = {name: (words, call) for name, words, call in refusals()}


@together(CASES)
def test_refused_in_words(name):
    words, call = CASES[name]
    where = now if name in ("no log", "counts, scanned") else guard
    with where(), pytest.raises(LogError, match=words):
        call()


def test_moments_of_one_frame_are_computed_once():
    frame = parted(table())
    asked = [cvstats.scan_dask(frame, loss=MODELS, by=by) for by in (None, None, "month")]
    assert asked[0].key == asked[1].key != asked[2].key
    graphs = [set(each.__dask_graph__()) for each in asked]
    assert graphs[0] == graphs[1]


def test_what_is_said_of_a_frame():
    with guard():
        assert "dask frame" in parted(table()).cvci._repr_html_()
        assert repr(parted(table()).cvci) == (
            "<cvci: a dask frame in 5 partitions, by 'repetition', 'fold', 'source', 'point'; "
            "2 models>"
        )
