# SPDX-License-Identifier: Apache-2.0
"""tensorcast.onnx: conversion with validation, the functions of others under their names, the search."""

import dataclasses
import functools
import inspect
import warnings
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import tensorcast as tc

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, numpy_helper  # noqa: E402

from tensorcast.onnx import _convert, _search, auto_mixed_precision, float16, transformers  # noqa: E402
from tensorcast.onnx._runtime_process import RuntimeProcess  # noqa: E402
from tensorcast.onnx.__main__ import main  # noqa: E402
from tensorcast.onnx._option_list import DEFAULTS, ROWS  # noqa: E402

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
WEIGHTS = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)


def parse(text, opset=21, **initializers):
    model = onnx.parser.parse_model(f'<ir_version: {10 if opset > 10 else 6}, opset_import: ["" : {opset}]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers.items())
    return model


def small():
    return parse("g (float[N,8] x) => (float[N,8] y) { m = MatMul(x, w)  r = Relu(m)  y = Softmax(r) }", w=WEIGHTS)


def ill():
    """float16 has no 2049, and only every second integer there: Add and Sub must stay, all else is harmless."""
    return parse(
        """g (float[2,8] x) => (float[2,8] y) {
            a = MatMul(x, w)  b = Relu(a)  c = Add(b, odd)  d = Sub(c, even)  e = Sigmoid(d)  y = MatMul(e, w) }""",
        w=WEIGHTS, odd=np.float32([2049]), even=np.float32([2048]),
    )  # fmt: skip


def types(values):
    return [value.type.tensor_type.elem_type for value in values]


def operators(model):
    return [node.op_type for node in model.graph.node]


def test_protos_bytes_and_files_give_the_same(tmp_path):
    model = small()
    before = model.SerializeToString()
    onnx.save(model, tmp_path / "m.onnx")
    result = tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "float16")
    assert result.model is None and result.path == str(tmp_path / "o.onnx")
    made = (tmp_path / "o.onnx").read_bytes()
    assert tc.onnx.convert(model, to=np.float16).model == onnx.load(tmp_path / "o.onnx")
    assert tc.onnx.convert(before, to="float16").model == made
    assert tc.onnx.convert(before, tmp_path / "p.onnx", to="float16").model is None
    assert (tmp_path / "p.onnx").read_bytes() == made
    assert model.SerializeToString() == before
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "o.onnx", "p.onnx"}


def test_the_result():
    result = tc.onnx.convert(small(), to="float16", keep_ops="Softmax", keep_io_types=["y"])
    assert (result.nodes, result.nodes_converted, result.initializers_converted) == (3, 2, 1)
    assert (result.initializer_bytes_before, result.initializer_bytes_after) == (256, 128)
    assert result.kept == (tc.onnx.KeptNode("y", "Softmax", "the request keeps it"),)
    assert types([*result.model.graph.input, *result.model.graph.output]) == [F16, F32]
    said = json.loads(result.to_json())
    assert said["casts_added"] == 1 and said["kept"][0]["op_type"] == "Softmax" and "model" not in said
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.nodes = 1


def test_options_reach_the_library():
    model = parse("g (float[1,3] x) => (float[1,3] y) { a = Mul(x, w)  y = Add(a, m) }",
                  w=np.float32([[1e5, 1, 1]]), m=np.float32([[0, -1e9, 0]]))  # fmt: skip
    stored = {t.name: t for t in tc.onnx.convert(model, to="float16").model.graph.initializer}
    assert stored["w"].data_type == F32 and numpy_helper.to_array(stored["m"])[0, 1] == -65504
    clamped = tc.onnx.convert(model, to="float16", on_overflow="clamp", masks="inf").model
    stored = {t.name: numpy_helper.to_array(t) for t in clamped.graph.initializer}
    assert stored["w"][0, 0] == 65504 and stored["m"][0, 1] == -np.inf
    assert "Cast" in operators(tc.onnx.convert(small(), to="bfloat16", runtime="onnxruntime_cpu").model)
    for runtime in ("onnxruntime_cuda", "tensorrt", "openvino", "any"):
        new = tc.onnx.convert(small(), to="bfloat16", runtime=runtime).model
        assert operators(new) == ["MatMul", "Relu", "Softmax"]
    weights = tc.onnx.convert(small(), to="float8_e4m3fn", weights_only=True).model
    assert operators(weights)[0] == "Cast" and weights.graph.initializer[0].data_type == TensorProto.FLOAT8E4M3FN
    half = tc.onnx.convert(small(), to="float16").model
    assert tc.onnx.convert(half, to="float64", from_=["bfloat16"]).values_changed == 0
    with pytest.raises(ValueError, match="runtime must be one of 'onnxruntime_cpu', 'onnxruntime_cuda', .*, 'any', not 'cuda'"):
        tc.onnx.convert(small(), to="float16", runtime="cuda")


def test_mistakes(tmp_path):
    with pytest.raises(tc.CastError, match='the model has no operator "Conv"'):
        tc.onnx.convert(small(), to="float16", keep_ops="Conv")
    with pytest.raises(tc.CastError, match="name it with to="):
        tc.onnx.convert(small())
    with pytest.raises(tc.CastError, match="name it with output="):
        tc.onnx.convert("m.onnx", to="float16")
    with pytest.raises(TypeError, match="not dict"):
        tc.onnx.convert({}, to="float16")
    with pytest.raises(FileNotFoundError):
        tc.onnx.convert(tmp_path / "none.onnx", tmp_path / "o.onnx", "float16")
    with pytest.raises(tc.ParseError):
        tc.onnx.convert(b"not a model", to="float16")
    onnx.save(small(), tmp_path / "m.onnx")
    for validate in (False, True):
        with pytest.raises(FileExistsError):
            tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "m.onnx", "float16", validate=validate)
    with pytest.raises(FileNotFoundError):
        tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "no" / "o.onnx", "float16", validate=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float64"])
def test_validation_passes(to, tmp_path):
    onnx.save(small(), tmp_path / "m.onnx")
    result = tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", to, validate=True)
    (output,) = result.outputs
    assert output.passed and output.name == "y" and output.cosine > 0.999
    assert (output.max_abs_error > 0) == (to != "float64") or output.max_abs_error < 1e-6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx"]


def test_validation_that_fails_leaves_nothing(tmp_path):
    onnx.save(ill(), tmp_path / "m.onnx")
    (tmp_path / "o.onnx").write_text("old")
    with pytest.raises(tc.onnx.ValidationError, match="the output 'y' differs") as caught:
        tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "float16", validate=True, overwrite=True)
    assert caught.value.outputs[0].passed is False
    assert (tmp_path / "o.onnx").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx"]
    kept = tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "float16", keep_ops=["Add", "Sub"], validate=True, overwrite=True)
    assert kept.outputs[0].passed


def test_validation_with_inputs_and_tolerances():
    checks = tc.onnx.Validation(inputs={"x": np.ones((5, 8), np.float32)}, rtol=1e-9, atol=0)
    with pytest.raises(tc.onnx.ValidationError, match="rtol 1e-09"):
        tc.onnx.convert(small(), to="float16", validate=checks)
    with pytest.raises(tc.CastError, match="no input 'z'"):
        tc.onnx.convert(small(), to="float16", validate=tc.onnx.Validation(inputs={"z": np.ones(1)}))
    only_checked = tc.onnx.convert(small(), to="float16", validate=tc.onnx.Validation(run=False))
    assert only_checked.outputs == ()


def test_validation_with_external_data(tmp_path):
    (tmp_path / "in").mkdir()
    onnx.save(small(), tmp_path / "in/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    tc.onnx.convert(tmp_path / "in/m.onnx", tmp_path / "o.onnx", "float16", validate=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "o.onnx", "o.onnx.data"]
    assert numpy_helper.to_array(onnx.load(tmp_path / "o.onnx").graph.initializer[0]).dtype == np.float16


def test_opsets():
    old = parse("g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }", opset=11)
    with pytest.raises(tc.UnsupportedError, match="opset 13"):
        tc.onnx.convert(old, to="bfloat16")
    made = tc.onnx.convert(old, to="bfloat16", opset="auto").model
    assert made.opset_import[0].version == 13 and types(made.graph.input) == [BF16]
    assert tc.onnx.convert(old, to="float16", opset="auto").model.opset_import[0].version == 11
    tried = tc.onnx.convert(old, to="bfloat16", opset=17, dry_run=True)
    assert (tried.opset_before, tried.opset_after) == (11, 17)
    with pytest.raises(ValueError, match="opset must be one of 'keep', 'auto', or a number, not 'newest'"):
        tc.onnx.convert(old, to="bfloat16", opset="newest")


def test_nodes_that_a_new_opset_changes_are_rewritten_by_onnx():
    text = '<ir_version: 8, opset_import: ["" : 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1>(x) }'
    old = onnx.parser.parse_model(text)
    with pytest.raises(tc.UnsupportedError, match="came with opset 13"):
        tc.onnx.convert(old, to="bfloat16")
    made = tc.onnx.convert(old, to="bfloat16", opset="auto")
    assert (made.opset_before, made.opset_after) == (11, 13)
    assert made.model.opset_import[0].version == 13
    onnx.checker.check_model(made.model, full_check=True)
    assert tc.onnx.convert(old, to="float16", opset=17).model.opset_import[0].version == 17
    with pytest.raises(tc.CastError, match="cannot get 9"):
        tc.onnx.convert(old, to="float16", opset=9)


COMMON = ["model", "min_positive_val", "max_finite_val", "keep_io_types", "disable_shape_infer", "op_block_list",
          "node_block_list", "check_fp16_ready"]  # fmt: skip
ORT = ["force_fp16_initializers", "force_fp16_inputs", "use_bfloat16_as_blocked_nodes_dtype"]


def test_signatures_of_others():
    parameters = inspect.signature(float16.convert_float_to_float16).parameters
    assert list(parameters) == COMMON + ORT
    assert [parameters[name].default for name in COMMON[1:]] == [1e-7, 1e4, False, False, None, None, True]
    parameters = inspect.signature(transformers.float16.convert_float_to_float16).parameters
    assert list(parameters) == COMMON[:-1] + ORT
    assert [each.default for each in parameters.values()][1:] == [5.96e-08, 65504.0, False, False, None, None, False, None, False]
    parameters = inspect.signature(float16.convert_float_to_float16_model_path).parameters
    assert list(parameters) == ["model_path", "min_positive_val", "max_finite_val", "keep_io_types"]
    parameters = inspect.signature(auto_mixed_precision.auto_convert_mixed_precision).parameters
    assert list(parameters) == ["model", "feed_dict", "validate_fn", "rtol", "atol", "keep_io_types"]
    assert [each.default for each in parameters.values()][2:] == [None, None, None, False]


def test_convert_float_to_float16(tmp_path):
    model = small()
    model.graph.node[0].name = "first"
    made = float16.convert_float_to_float16(model)
    assert types([*made.graph.input, *made.graph.output]) == [F16, F16] and types(model.graph.input) == [F32]
    assert float16.convert_float_to_float16(made) == made  # again
    kept = float16.convert_float_to_float16(model, keep_io_types=True, op_block_list=[*float16.DEFAULT_OP_BLOCK_LIST, "Conv", "Relu"])
    assert types([*kept.graph.input, *kept.graph.output]) == [F32, F32]
    assert operators(kept) == ["Cast", "MatMul", "Cast", "Relu", "Cast", "Softmax", "Cast"]
    kept = float16.convert_float_to_float16(model, node_block_list=["first", "absent"], disable_shape_infer=True)
    assert kept.graph.initializer[0].data_type == F32
    assert types(float16.convert_float_to_float16(model, keep_io_types=["x"]).graph.input) == [F32]
    onnx.save(model, tmp_path / "m.onnx")
    assert float16.convert_float_to_float16(str(tmp_path / "m.onnx"), force_fp16_initializers=True) == made
    assert float16.convert_float_to_float16_model_path(tmp_path / "m.onnx") == made
    with pytest.warns(UserWarning, match="numbers of initializers beyond 1 become that"):
        limited = float16.convert_float_to_float16(model, min_positive_val=0.5, max_finite_val=1)
    magnitudes = np.abs(numpy_helper.to_array(limited.graph.initializer[0]))
    assert magnitudes.min() == 0.5 and magnitudes.max() == 1
    with pytest.raises(ValueError, match="ModelProto"):
        float16.convert_float_to_float16(b"")


def test_defaults_of_the_replaced_converters():
    model = parse("g (float[2] x) => (float[2] y) { y = Mul(x, w) }", w=np.float32([12000, 60000]))
    with pytest.warns(UserWarning, match=r"2 numbers of initializers beyond 10000 become that.* of 'w'"):
        (limited,) = float16.convert_float_to_float16(model).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(limited), np.float16([10000, 10000]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (kept,) = transformers.float16.convert_float_to_float16(model).graph.initializer
        float16.convert_float_to_float16(model, max_finite_val=0)
    np.testing.assert_array_equal(numpy_helper.to_array(kept), np.float16([12000, 60000]))
    small_ones = parse("g (float[2] x) => (float[2] y) { y = Mul(x, w) }", w=np.float32([1e-9, 1e5]))
    with pytest.warns(UserWarning, match="1 numbers of initializers beyond 65504 become that, and 1 below 5.96e-08"):
        transformers.float16.convert_float_to_float16(small_ones)


X = np.random.default_rng(5).normal(size=(2, 8)).astype(np.float32)


def test_search_keeps_what_must_stay(tmp_path):
    lines = []
    checks = tc.onnx.Validation(inputs={"x": X})
    found = tc.onnx.search(ill(), checks=checks, progress=lines.append, state=tmp_path / "state.json")
    ops = {node.op_type: node.name for node in found.result.model.graph.node}
    assert {ops["Add"]} <= set(found.kept) <= {ops["Add"], ops["Sub"]}
    assert {ops["MatMul"], ops["Relu"], ops["Sigmoid"]} <= set(found.converted)
    assert len(lines) == found.attempts and "0 of 6 nodes kept: fails" in lines[0]
    # The same search again finds everything in its state file.
    again = tc.onnx.search(ill(), checks=checks, progress=None, state=tmp_path / "state.json")
    assert (again.attempts, again.kept) == (0, found.kept) and again.resumed == found.attempts
    with pytest.raises(tc.CastError, match="of another search"):
        tc.onnx.search(small(), checks=checks, state=tmp_path / "state.json")


def test_search_of_files_and_of_what_is_impossible(tmp_path):
    onnx.save(ill(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    found = tc.onnx.search(tmp_path / "m.onnx", tmp_path / "o.onnx", checks=tc.onnx.Validation(inputs={"x": X}), progress=None)
    assert found.kept and sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx", "o.onnx.data", "w.bin"]
    with pytest.raises(tc.onnx.ValidationError, match="even with every node kept"):
        tc.onnx.search(ill(), metric=lambda old, new: False, progress=None)
    assert tc.onnx.search(small(), progress=None).kept == ()


def test_a_state_is_of_the_external_data(tmp_path):
    search = lambda: tc.onnx.search(
        tmp_path / "m.onnx", tmp_path / "o.onnx", checks=tc.onnx.Validation(inputs={"x": X}, rtol=0.1, cosine=-1), progress=None,
        state=tmp_path / "state.json", overwrite=True,
    )  # fmt: skip
    onnx.save(small(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (search().kept, search().resumed) == ((), 1)
    model = (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "w.bin").write_bytes((WEIGHTS * 1e9).tobytes())
    assert (tmp_path / "m.onnx").read_bytes() == model
    with pytest.raises(tc.CastError, match="of another search: another model"):
        search()


LIMIT = 0.1


def near(old, new):
    return all(np.allclose(a, b, atol=LIMIT) for a, b in zip(old, new))


def near_enough(limit, seen, old, new):
    seen.append(near(old, new))
    return seen[-1] and limit > 0


class Near:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, old, new):
        return near(old, new) and self.limit > 0


class Nearer(Near):
    pass


def metric_of(limit, seen):
    return lambda old, new: seen.append(old) or limit >= 0


@pytest.mark.parametrize(
    "make",
    [
        lambda limit: near,
        lambda limit: lambda old, new: near(old, new),
        lambda limit: metric_of(limit, []),
        lambda limit: functools.partial(near_enough, limit, []),
        Near,
        Nearer,
        lambda limit: Near(limit).__call__,
    ],
)
def test_a_state_is_of_the_metric(monkeypatch, tmp_path, make):
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 0.1)
    search = lambda metric: tc.onnx.search(small(), metric=metric, progress=None, state=tmp_path / "state.json")
    assert (search(make(1)).attempts, search(make(1)).resumed) == (1, 1)
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 0.2)
    for other in (make(2), None, lambda old, new: False):
        with pytest.raises(tc.CastError, match=r"metric or version of tensorcast; remove it"):
            search(other)


def test_auto_convert_mixed_precision(capsys):
    made = auto_mixed_precision.auto_convert_mixed_precision(ill(), {"x": X}, rtol=0.05, atol=0.05, keep_io_types=True)
    assert types(made.graph.input) == [F32] and made.graph.initializer[0].data_type == F16
    assert "attempt 1" in capsys.readouterr().out
    with pytest.raises(ValueError, match="cannot both be"):
        auto_mixed_precision.auto_convert_mixed_precision(ill(), {"x": X})


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "tensorcast.onnx", *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("place", ["model", "-o", "--inputs"])
@pytest.mark.parametrize("name", ["", "-"])
def test_names_that_are_no_files(tmp_path, place, name):
    """Wrong usage, as of the command; no file named - is written."""
    given = {"model": ["m.onnx"], "-o": ["-o", "o.onnx"], "--inputs": ["--inputs", "x.npz"]}
    given[place][-1] = name
    words = ["convert", *given["model"], *given["-o"], *given["--inputs"], "--to", "float16"]
    done = subprocess.run([sys.executable, "-m", "tensorcast.onnx", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and f'"{name}" is not the name of a file' in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    onnx.save(ill(), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=X)
    common = (tmp_path / "m.onnx", "--to", "float16", "--inputs", tmp_path / "x.npz", "-o")
    done = command("convert", *common, tmp_path / "o.onnx", "--validate")
    assert done.returncode == 1 and "the output 'y' differs" in done.stderr and not (tmp_path / "o.onnx").exists()
    done = command("convert", *common, tmp_path / "o.onnx", "--validate", "--keep-op", "Add", "--keep-op", "Sub", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["outputs"][0]["passed"] is True
    done = command("search", *common, tmp_path / "s.onnx", "--state", tmp_path / "s.json", "--metric",
                   f"{sys.executable} -c 'import sys, numpy as n; a, b = map(n.load, sys.argv[1:]); "
                   "sys.exit(not n.allclose(a[\"arr_0\"], b[\"arr_0\"], 0.1, 0.1))'")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "attempt 1: 0 of 6 nodes kept: fails" in done.stdout and (tmp_path / "s.onnx").exists()
    state = ("search", *common, tmp_path / "t.onnx", "--state", tmp_path / "t.json", "--json", "--force", "--metric")
    runs = [command(*state, "sh -c true"), command(*state, "sh -c true"), command(*state, "sh -c :")]
    assert [run.returncode for run in runs] == [0, 0, 1] and "of another search" in runs[2].stderr
    assert [json.loads(run.stdout)["resumed"] for run in runs[:2]] == [0, 1]


def test_signatures_have_every_option():
    keywords = inspect.signature(tc.onnx.convert).parameters
    own = {"model", "output", "to", "validate", "overwrite"}
    assert {name: keywords[name].default for name in set(keywords) - own} == DEFAULTS
    assert set(tc.onnx.ConvertOptions.__annotations__) == set(DEFAULTS) == {row[0] for row in ROWS}
    assert all(DEFAULTS[keyword] == words[0] for keyword, _, _, _, words, _ in ROWS if words)
    assert all(f"\n        {keyword}: " in tc.onnx.convert.__doc__ for keyword in DEFAULTS)
    assert "**options" not in tc.onnx.convert.__doc__


@pytest.mark.parametrize(
    "arguments, options",
    [
        ([], {}),
        (["--keep", "op:Relu", "--keep", "tensor:m"], {"keep": ["op:Relu", "tensor:m"]}),
        (["--only", "op:MatMul"], {"only": "op:MatMul"}),
        (["--from", "float32", "--from", "float64"], {"from_": ["float32", "float64"]}),
        (["--keep-io-types"], {"keep_io_types": True}),
        (["--keep-io-types", "x"], {"keep_io_types": "x"}),
        (["--keep-io-types", "x=float64,y"], {"keep_io_types": {"x": "float64", "y": None}}),
        (["--weights-only"], {"weights_only": True}),
        (["--clamp", "onnxconverter-common"], {"clamp": "onnxconverter_common"}),
        (["--min-positive", "0.5", "--max-finite", "0.75"], {"min_positive": 0.5, "max_finite": 0.75}),
        (["--shared-init", "cast", "--keep-op", "MatMul"], {"shared_init": "cast", "keep_ops": "MatMul"}),
        (["--on-overflow", "inf", "--masks", "as-others", "--runtime", "any"],
         {"on_overflow": "inf", "masks": "as_others", "runtime": "any"}),
        (["--opset", "22"], {"opset": 22}),
        (["--allow-lossy-cast-elision", "--external-alignment", "64"],
         {"allow_lossy_cast_elision": True, "external_alignment": 64}),
        (["--op-types", "Relu:in=float16"], {"op_types": "Relu:in=float16"}),
    ],
)  # fmt: skip
def test_options_of_the_command(tmp_path, monkeypatch, arguments, options):
    onnx.save(small(), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "m.onnx", "-o", "o.onnx", "--to", "float16", *arguments]) == 0
    expected = tc.onnx.convert(small(), to="float16", **options).model
    assert onnx.load("o.onnx") == expected
    assert main(["search", "m.onnx", "-o", "s.onnx", "--rtol", "10", "--atol", "100", "--cosine", "-1", "-q", *arguments]) == 0
    assert operators(onnx.load("s.onnx")) == operators(expected)


def test_places_and_reports_of_the_command(tmp_path, monkeypatch, capsys):
    model = small()
    model.graph.node[1].name = "relu"
    onnx.save(model, tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "m.onnx", "--to", "float16", "--dry-run", "--explain", "relu"]) == 0
    said = capsys.readouterr().out
    assert "m.onnx: 3 of 3 nodes" in said and "Relu 'relu'" in said and "takes 'm': float32 -> float16" in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    place = ["--external-data", "per-tensor", "--external-threshold", "16"]
    assert main(["convert", "m.onnx", "-o", "o.onnx", "--to", "float16", *place]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx", "o.onnx.w.data"]
    assert main(["convert", "m.onnx", "--to", "float16"]) == 2
    assert "-o OUT" in capsys.readouterr().err
    assert main(["convert", "m.onnx", "-o", "p.onnx", "--to", "float16", "--keep", "op:Conv"]) == 1
    with pytest.raises(SystemExit):
        main(["search", "m.onnx", "-o", "p.onnx", "--dry-run"])
    assert not (tmp_path / "p.onnx").exists()


def test_search_takes_the_options_of_convert():
    found = tc.onnx.search(small(), keep=(name for name in ["op:Relu"]), progress=None)
    assert types([*found.result.model.graph.input]) == [F16] and "Cast" in operators(found.result.model)
    assert tc.onnx.search(small(), opset=22, progress=None).result.model.opset_import[0].version == 22
    with pytest.raises(TypeError, match="dry_run"):
        tc.onnx.search(small(), dry_run=True)


def test_search_upgrades_as_convert_does(monkeypatch):
    """By onnx's converter only where a node changes; the model is compared with the one before."""
    asked = []
    monkeypatch.setattr(_search, "_upgraded", lambda *given: asked.append(given) or upgraded(*given))
    upgraded = _convert._upgraded
    old = parse("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", opset=11)
    found = tc.onnx.search(old, to="bfloat16", opset="auto", progress=None)
    assert found.result.model.opset_import[0].version == 13 and (found.result.opset_before, asked) == (11, [])
    old = parse("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 1>(x) }", opset=11)
    found = tc.onnx.search(old, to="bfloat16", opset="auto", progress=None)
    assert found.result.model.opset_import[0].version == 13 and len(asked) == 1


def test_search_runs_the_old_model_once(monkeypatch, tmp_path):
    opened = []
    load = RuntimeProcess.load
    monkeypatch.setattr(RuntimeProcess, "load", lambda self, path, exposed=(): opened.append(path) or load(self, path, exposed))
    found = tc.onnx.search(ill(), checks=tc.onnx.Validation(inputs={"x": X}, ranges=False), progress=None)
    assert found.attempts > 2 and len(opened) == found.attempts + 1
    assert [path.endswith("trial.onnx") for path in opened] == [False] + [True] * found.attempts


def test_data_of_several_files(tmp_path):
    model = small()
    model.graph.initializer.add().CopyFrom(numpy_helper.from_array(WEIGHTS, "v"))
    model.graph.node.insert(0, onnx.helper.make_node("MatMul", ["x", "v"], ["n"]))
    model.graph.node[1].input[0] = "n"
    for tensor in model.graph.initializer:
        onnx.external_data_helper.set_external_data(tensor, f"{tensor.name}.bin")
    onnx.save(model, tmp_path / "m.onnx")
    tc.onnx.convert(tmp_path / "m.onnx", tmp_path / "o.onnx", "float16", validate=True)
    assert sorted(path.name for path in tmp_path.glob("o.*")) == ["o.onnx", "o.onnx.v.bin.data", "o.onnx.w.bin.data"]
    with pytest.raises(tc.CastError, match="external_alignment. is a power of two"):
        tc.onnx.convert(model, to="float16", external_alignment=3)


def test_both_command_lines_have_the_same_options():
    command = [sys.executable, "-m", "tensorcast", "onnx", "convert", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    described = dict(re.findall(r"^ +(?:-\w,)? *(--[a-z-]+) *(\S*)", text, re.MULTILINE))
    words = {flag: "|".join(words) for _, flag, _, _, words, _ in ROWS if words}
    assert {flag: described[flag] for flag in words} == words
    kept_apart = {"--help", "--to", "--output", "--picture", "--validate", "--inputs", "--dims", "--seed", "--rtol",
                  "--atol", "--cosine", "--force", "--json", "--quiet", "--no-symmetric"}  # fmt: skip
    assert set(described) - kept_apart == {row[1] for row in ROWS}
