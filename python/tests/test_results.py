# SPDX-License-Identifier: Apache-2.0
"""What functions return: frozen dataclasses, and reports that are values."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

import tensorcast as tc

ARRAYS = {"w": np.float32([0.1, 1e9, 3]), "n": np.int64([1])}


@pytest.fixture
def file(tmp_path):
    tc.save(tmp_path / "x.safetensors", ARRAYS, metadata={"format": "pt"})
    return tmp_path / "x.safetensors"


def results(file):
    return [
        tc.dtypes()[0],
        tc.inspect(file, stats=True),
        tc.inspect(file, stats=True).tensors[0],
        tc.convert(file, file.with_name("y.safetensors"), "float16", report=True, dry_run=True),
        tc.convert(file, file.with_name("z.npz"), "bfloat16", report=True),
        tc.explain(0.1),
        tc.explain(0.1)[3],
    ]


def test_results_are_frozen_equal_and_pickled(file):
    for result in results(file):
        assert dataclasses.is_dataclass(result)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, None)
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert again == result and type(again) is type(result)
        assert type(result).__module__ == "tensorcast" and hasattr(tc, type(result).__name__)


def test_results_are_json(file):
    def refuse(constant):
        raise AssertionError(constant)

    for result in results(file):
        assert json.loads(result.to_json(), parse_constant=refuse) == result.as_dict()
    done = tc.convert(file, file.with_name("o.safetensors"), "float16", report=True).as_dict()
    assert done["output_format"] == "safetensors" and done["verified"] is False
    rows = {row["name"]: row for row in done["tensors"]}
    assert (rows["w"]["from"], rows["w"]["to"], rows["w"]["shape"]) == ("float32", "float16", [3])
    assert rows["w"]["report"]["overflowed"] == 1 and rows["w"]["reason"] == "to="
    info = tc.inspect(file).as_dict()
    assert info["metadata"] == {"format": "pt"} and info["tensors"][0]["stats"] is None


def report_of(array, to="float16", **options):
    return tc.cast(np.float32(array), to, report=True, **options)[1]


def test_reports_are_values():
    report = report_of([0.1, 1e9])
    assert report == report_of([0.1, 1e9]) and not report != report_of([0.1, 1e9])
    assert report != report_of([0.2, 1e9]) and report != tc.CastReport() and report != 3
    for again in (pickle.loads(pickle.dumps(report)), copy.copy(report), copy.deepcopy(report)):
        assert again == report and again is not report and repr(again) == repr(report)
    with pytest.raises(TypeError, match="unhashable"):
        hash(report)
    copied = copy.copy(report)
    copied.merge(report)
    assert copied.count == 4 and report.count == 2 and copied != report


def test_reports_are_dictionaries_and_json():
    report = report_of([0.1, 1e9])
    numbers = report.as_dict()
    assert numbers["count"] == 2 and numbers["overflowed"] == 1 and numbers["inexact"] == report.inexact
    assert numbers["snr_db"] == report.snr_db and numbers["max_abs_error"] == report.max_abs_error
    assert set(numbers) == {name for name in vars(tc.CastReport) if isinstance(getattr(report, name), (int, float))}
    assert tc.CastReport.from_dict(numbers) == report
    assert tc.CastReport.from_dict({}) == tc.CastReport()
    exact = report_of([1, 2])
    assert exact.as_dict()["snr_db"] == float("inf")
    assert json.loads(exact.to_json())["snr_db"] is None
    assert json.loads(report.to_json(indent=1)) == numbers
