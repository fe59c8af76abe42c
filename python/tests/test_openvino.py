"""tensorcast inside OpenVINO models."""

import ml_dtypes
import numpy as np
import pytest
from arrays import codes, samples

import tensorcast as tc

ov = pytest.importorskip("openvino")

from openvino import opset14 as ops

from tensorcast.openvino import use_tensorcast

TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
         "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i4": "int4",
         "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "u4": "uint4", "boolean": "bool"}  # fmt: skip
CORE = ov.Core()


def model_of(results, parameters):
    return ov.Model([ops.result(value) for value in results], parameters, "model")


def run(model, *inputs):
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(list(inputs)).values())


def kinds(model):
    return sorted(f"{node.get_type_name()}.{node.get_type_info().version_id}" for node in model.get_ops()
                  if "Convert" in node.get_type_name())  # fmt: skip


@pytest.mark.parametrize("to", TYPES)
def test_conversions_equal_cast(to):
    x = ops.parameter([-1], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, to), "f64")], [x])
    assert use_tensorcast(model) == 2 and kinds(model) == ["Convert.tensorcast"] * 2
    given = samples("float32")[:301]
    (found,) = run(model, given)
    assert np.array_equal(codes(found), codes(tc.cast(tc.cast(given, TYPES[to]), "float64")))


def test_options_and_names():
    x = ops.parameter([-1, 2], ov.Type.f32, name="x")
    convert = ops.convert(x, "u8")
    convert.set_friendly_name("to_bytes")
    model = model_of([convert], [x])
    assert use_tensorcast(model, out_of_range="saturate") == 1
    assert "to_bytes" in {node.get_friendly_name() for node in model.get_ops()}
    assert run(model, np.float32([[300, -5], [7, 255]]))[0].tolist() == [[255, 0], [7, 255]]
    assert use_tensorcast(model) == 0  # already done


def test_promotion():
    a, b = ops.parameter([-1], ov.Type.i8, name="a"), ops.parameter([-1], ov.Type.f16, name="b")
    both = ops.convert_promote_types(a, b)
    model = model_of([both.output(0), both.output(1)], [a, b])
    assert use_tensorcast(model, by_text=True) == 1 and kinds(model) == ["Convert.tensorcast"]
    first, second = run(model, np.int8([1, -2]), np.float16([0.5]))
    assert first.dtype == np.float16 and first.tolist() == [1, -2] and second.tolist() == [0.5]


def test_promotion_that_the_text_forbids():
    a, b = ops.parameter([], ov.Type.u8, name="a"), ops.parameter([-1], ov.Type.i8, name="b")
    make = lambda: model_of(
        [ops.convert_promote_types(a, b, pytorch_scalar_promotion=True).output(0)], [a, b])  # fmt: skip
    model = make()
    with pytest.raises(tc.CastError, match="ConvertPromoteTypes_"):
        use_tensorcast(model, by_text=True)
    assert kinds(model) == ["ConvertPromoteTypes.opset14"]
    assert use_tensorcast(model) == 1
    assert run(model, np.uint8(200), np.int8([1]))[0].tolist() == -56


def test_constants_stay_unless_asked_for():
    x = ops.parameter([-1, 4], ov.Type.f32, name="x")
    weights = ops.constant(np.arange(8, dtype=np.float16).reshape(4, 2) / 8)
    make = lambda: model_of([ops.matmul(x, ops.convert(weights, "f32"), False, False)], [x])
    given = np.float32([[1, 2, 3, 4]])
    expected = run(make(), given)[0]
    for constants, count in ((False, 0), (True, 1)):
        model = make()
        assert use_tensorcast(model, constants=constants) == count
        assert np.array_equal(run(model, given)[0], expected)


def test_a_body_of_if():
    x, condition = ops.parameter([-1], ov.Type.f32, name="x"), ops.parameter([], ov.Type.boolean, name="c")
    inner, other = ops.parameter([-1], ov.Type.f32), ops.parameter([-1], ov.Type.f32)
    choice = ops.if_op(condition)
    then = model_of([ops.convert(inner, "u8")], [inner])
    otherwise = model_of([ops.convert(ops.negative(other), "u8")], [other])
    choice.set_then_body(then)
    choice.set_else_body(otherwise)
    choice.set_input(x.output(0), inner, other)
    model = model_of([choice.set_output(then.results[0], otherwise.results[0])], [x, condition])
    assert use_tensorcast(model, out_of_range="saturate", int_rounding="nearest_even") == 2
    assert run(model, np.float32([300, 1.5, -7]), np.array(True))[0].tolist() == [255, 2, 0]
    assert run(model, np.float32([300, 1.5, -7]), np.array(False))[0].tolist() == [0, 0, 7]


def test_bits_of_narrow_types_inside():
    x = ops.parameter([3], ov.Type.f32, name="x")
    model = model_of([ops.convert(ops.convert(x, "i4"), "f8e4m3")], [x])
    use_tensorcast(model)
    assert run(model, np.float32([1, -2, 7]))[0].view(ml_dtypes.float8_e4m3fn).astype(np.float32).tolist() == [1, -2, 7]
