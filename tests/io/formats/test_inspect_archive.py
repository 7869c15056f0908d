"""Archives of inspect: packed in any way, read without unpacking more than they claim."""

import json
import struct
import zipfile
from functools import partial

import numpy as np
import pytest
from calls import refusal

import cvstats

SAMPLES = [
    {"id": "a", "epoch": 1, "scores": {"match": {"value": "C"}}},
    {"id": "b", "epoch": 1, "scores": {"match": {"value": "I"}}},
]
HEAD = {"version": 2, "status": "success", "eval": {"eval_id": "e", "model": "m", "task": "t"}}


def archive(path, samples=SAMPLES, head=HEAD, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", how) as file:
        for at, sample in enumerate(samples):
            text = sample if isinstance(sample, str) else json.dumps(sample)
            file.writestr(f"samples/{at}_epoch_1.json", text)
        file.writestr("summaries.json", "[]")
        if head is not None:
            entry = zipfile.ZipInfo("header.json")
            entry.compress_type, entry.extra = how, b"\x99\x99\x02\x00ab"
            file.writestr(entry, json.dumps(head))
    return path


refused = partial(refusal, cvstats.read_log)


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_any_packing(tmp_path, how):
    log = cvstats.read_log(archive(tmp_path / "run.eval", how=how))
    np.testing.assert_array_equal(log, [0.0, 1.0])
    assert log.index.tolist() == ["a", "b"]


def test_samples_in_several_documents(tmp_path):
    """As `convert_eval_logs_to_chunked` writes them; a log may have both kinds."""
    path = archive(tmp_path / "run.eval", [SAMPLES[0] | {"metadata": {"topic": "y"}}])
    with zipfile.ZipFile(path, "a") as file:
        for name, text in {
            "sample": json.dumps(SAMPLES[1]), "metadata": '{"topic": "x"}', "skeleton": "{}",
            "messages/0": "[]", "events/0": "[]", "events/stats": "{}",
        }.items():  # fmt: skip
            file.writestr(f"samples/b_epoch_1/{name}.json", text)
    log = cvstats.read_log(path)
    assert log.to_dict() == {"a": 0.0, "b": 1.0}
    log = cvstats.read_log(path, source="metadata_topic")
    assert log.to_dict() == {("y", "a"): 0.0, ("x", "b"): 1.0}


def test_methods_that_nobody_uses(tmp_path):
    path = archive(tmp_path / "run.eval", how=zipfile.ZIP_BZIP2)
    assert "uses compression method 12. Expected 0, 8 or 93" in refused(path)


def test_runs_that_did_not_end(tmp_path):
    assert "has no header.json: the run did not finish" in refused(
        archive(tmp_path / "run.eval", head=None)
    )
    head = {**HEAD, "status": "started"}
    assert "did not finish" in refused(archive(tmp_path / "run.eval", head=head))


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "run.eval"
    path.write_text("{}")
    assert "is not an inspect archive, or was truncated" in refused(path)
    assert "damaged" in refused(archive(path, samples=["{"]))
    assert "is not a JSON object" in refused(archive(path, samples=["[1]"]))


def test_a_sample_that_fills_the_memory_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("cvstats.io.tools.llm.LARGEST_SAMPLE", 10_000)
    monkeypatch.setattr("cvstats.io.tools.llm.unpack", None)
    path = archive(tmp_path / "run.eval", samples=[json.dumps({"id": " " * 100_000})])
    assert "unpacks to 100,010 bytes. Expected samples of up to 10,000" in refused(path)


def test_a_document_that_is_larger_than_it_says(tmp_path):
    path = archive(tmp_path / "run.eval", samples=[json.dumps({"id": " " * 100_000})])
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 24  # its size in the list at the end
    assert struct.unpack_from("<L", data, at) == (100_010,)
    struct.pack_into("<L", data, at, 500)
    path.write_bytes(bytes(data))
    assert "is damaged. Expected JSON" in refused(path)
