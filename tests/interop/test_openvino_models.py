# SPDX-License-Identifier: Apache-2.0
"""IR models that OpenVINO saved, run by tcast beside OpenVINO's CPU plugin; and what OpenVINO leaves open."""

import numpy as np
import pytest

openvino = pytest.importorskip("openvino")
import openvino.opset14 as ops  # noqa: E402
from openvino import Model, Type  # noqa: E402

NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8",
         "u32": "u4", "u16": "u2", "u8": "u1", "boolean": "?"}
# Of every type, values that any other numeric type takes without leaving its range, or so that OpenVINO says what comes.
VALUES = [0, 1, 2, 3, 7]


@pytest.fixture
def both(run_tcast, tmp_path):
    """both(outputs, parameters, inputs): the outputs by name, of OpenVINO and of tcast."""

    def run(outputs, parameters, inputs):
        model = Model(outputs, parameters, "m")
        openvino.save_model(model, tmp_path / "m.xml", compress_to_fp16=False)
        core = openvino.Core()
        request = core.compile_model(core.read_model(tmp_path / "m.xml"), "CPU").create_infer_request()
        options = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            options += ["--input", f"{name}={name}.npy"]
            request.set_tensor(name, openvino.Tensor(value))
        request.infer()
        theirs = [np.array(request.get_output_tensor(i).data) for i in range(len(outputs))]
        result = run_tcast("run", "m.xml", *options, "--output-dir", "out", "--force")
        assert result.returncode == 0, result.stderr
        names = [output.get_any_name() for output in model.outputs]
        ours = [np.load(tmp_path / "out" / f"{name}.npy") for name in names]
        return theirs, ours

    return run


def same(theirs, ours):
    assert ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()


def parameter(name, element, shape):
    made = ops.parameter(shape, getattr(Type, element), name=name)
    made.output(0).set_names({name})
    return made


def named(output, name):
    output.set_names({name})
    return output


@pytest.mark.parametrize("source", NUMPY)
@pytest.mark.parametrize("target", NUMPY)
def test_convert(both, source, target):
    x = np.array(VALUES).astype(NUMPY[source])
    if source[0] in "fi" and target[0] == "f":
        x = np.concatenate([x, -x])
    if source[0] == "f":
        x = np.concatenate([x, x / 4])
    p = parameter("x", source, list(x.shape))
    same(*(side[0] for side in both([named(ops.convert(p, target).output(0), "y")], [p], {"x": x})))


@pytest.mark.parametrize("target", ["u8", "i8", "u16", "i16"])
def test_out_of_range_wraps(both, target):
    x = np.float32([300, -300, 70000, -1, -1.9, 2.9])
    p = parameter("x", "f32", list(x.shape))
    same(*(side[0] for side in both([named(ops.convert(p, target).output(0), "y")], [p], {"x": x})))
    x = np.int32([300, -300, 70000, -1, 2**31 - 1])
    p = parameter("x", "i32", list(x.shape))
    same(*(side[0] for side in both([named(ops.convert(p, target).output(0), "y")], [p], {"x": x})))


@pytest.mark.parametrize("target", ["f8e4m3", "f8e5m2", "f16", "f8e8m0"])
def test_narrow_floats(both, target):
    x = np.float32([0, -0.0, 1, -1, 448, 464, 465, 500, 57344, 65519, 65520, 1e30, np.inf, -np.inf, 0.3, 1e-3, 0.002,
                    2.5, -2.5, 5, 100])
    if target == "f8e8m0":
        x = x[(np.abs(x) * 4 % 3 != 0) | (x == 0)]  # ties go to the even exponent in OpenVINO
    p = parameter("x", "f32", list(x.shape))
    same(*(side[0] for side in both([named(ops.convert(p, target).output(0), "y")], [p], {"x": x})))


def test_convert_like_a_constant(both):
    x = np.float32([1.5, -2.5, 100])
    p = parameter("x", "f32", [3])
    like = ops.constant(np.arange(6, dtype=np.int8).reshape(2, 3))
    same(*(side[0] for side in both([named(ops.convert_like(p, like).output(0), "y")], [p], {"x": x})))


@pytest.mark.parametrize("target", ["i32", "f32", "u8"])
def test_constants(both, target):
    outputs = []
    for i, array in enumerate([np.arange(6, dtype=np.int16).reshape(2, 3), np.float32(2.5), np.array([True, False])]):
        outputs.append(named(ops.convert(ops.constant(array), target).output(0), f"y{i}"))
    p = parameter("x", "f32", [1])
    outputs.append(named(ops.convert(p, "f16").output(0), "half"))
    for theirs, ours in zip(*both(outputs, [p], {"x": np.float32([1])})):
        same(theirs, ours)


INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("a", [*INTEGERS, "f16", "f32", "boolean"])
@pytest.mark.parametrize("b", ["i8", "u8", "i64", "u64", "f16", "f32", "boolean"])
def test_convert_promote_types(both, run_tcast, tmp_path, a, b, unsafe):
    p, q = parameter("a", a, [2, 3]), parameter("b", b, [2])
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(NUMPY[a])
    y = np.array([7, 8]).astype(NUMPY[b])
    try:
        made = ops.convert_promote_types(p, q, unsafe)
    except RuntimeError:
        return  # what it refuses, tcast's tests of promotion refuse
    for theirs, ours in zip(*both([named(made.output(0), "c"), named(made.output(1), "d")], [p, q], {"a": x, "b": y})):
        same(theirs, ours)


def test_scalars_and_tensors(both):
    p, q = parameter("a", "i64", []), parameter("b", "u8", [2])
    made = ops.convert_promote_types(p, q, True, True)
    result = both([named(made.output(0), "c"), named(made.output(1), "d")], [p, q],
                  {"a": np.array(5, np.int64), "b": np.uint8([1, 2])})
    for theirs, ours in zip(*result):
        same(theirs, ours)


def test_any_shape(both):
    p = parameter("x", "f32", openvino.PartialShape("?,2..5"))
    same(*(side[0] for side in both([named(ops.convert(p, "i32").output(0), "y")], [p],
                                    {"x": np.float32([[1.5, 2.5]])})))
