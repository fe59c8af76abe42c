# SPDX-License-Identifier: Apache-2.0
"""`tcast onnx respell`: MatMulNBits of ONNX Runtime, and MatMul behind a DequantizeLinear of blocks, of the same codes.

What each node holds is unpacked by its documentation, one code at a time.
"""

import json

import numpy as np
import onnx
import onnx.helper
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper

F16, F32, INT4, UINT4 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT4, TensorProto.UINT4
ROWS = 5


def nibbles(codes):
    """Low nibble first."""
    flat = np.asarray(codes, np.int64).ravel() & 15
    if flat.size % 2:
        flat = np.append(flat, 0)
    return (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes()


def qdq_model(inputs, outputs, block, element=INT4, zeros=True, numbers=F32, opset=21, seed=0):
    """(model, codes, scales, zero points) of y = x @ dequantized."""
    random = np.random.default_rng(seed)
    low = -8 if element == INT4 else 0
    blocks = -(-inputs // block)
    codes = random.integers(low, low + 16, (inputs, outputs))
    scales = random.uniform(0.01, 0.02, (blocks, outputs)).astype(np.float16 if numbers == F16 else np.float32)
    zero_points = random.integers(low, low + 16, (blocks, outputs)) if zeros else np.zeros((blocks, outputs), np.int64)
    tensors = [onnx.helper.make_tensor("codes", element, codes.shape, nibbles(codes), raw=True),
               numpy_helper.from_array(scales, "scales")]
    if zeros:
        tensors.append(onnx.helper.make_tensor("zeros", element, zero_points.shape, nibbles(zero_points), raw=True))
    nodes = [onnx.helper.make_node("DequantizeLinear", [tensor.name for tensor in tensors], ["w"], "dq", axis=0, block_size=block),
             onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
    x = onnx.helper.make_tensor_value_info("x", numbers, [ROWS, inputs])
    y = onnx.helper.make_tensor_value_info("y", numbers, [ROWS, outputs])
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    return model, codes, scales, zero_points


def tensor_of(model, name):
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


def of_nbits(model):
    """(codes [inputs, outputs], scales and zero points [blocks, outputs]) of its MatMulNBits, unsigned."""
    node = next(node for node in model.graph.node if node.op_type == "MatMulNBits")
    said = {attribute.name: attribute.i for attribute in node.attribute}
    assert node.domain == "com.microsoft" and said["bits"] == 4
    inputs, outputs, block = said["K"], said["N"], said["block_size"]
    blocks = -(-inputs // block)
    packed = numpy_helper.to_array(tensor_of(model, node.input[1])).reshape(outputs, blocks * block // 2)
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(outputs, -1)[:, :inputs].T
    scales = numpy_helper.to_array(tensor_of(model, node.input[2])).reshape(outputs, blocks).T
    zeros = np.full((blocks, outputs), 8)
    if len(node.input) > 3 and node.input[3]:
        packed = numpy_helper.to_array(tensor_of(model, node.input[3])).reshape(outputs, -1)
        zeros = np.stack([packed & 15, packed >> 4], -1).reshape(outputs, -1)[:, :blocks].T
    return codes, scales, zeros


def run(path, x):
    # Otherwise ONNX Runtime makes MatMulNBits of the other form itself, and rounds activations to 8 bits.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.fixture
def respell(run_tcast, tmp_path):
    def respelled(source, target, to, *more):
        done = run_tcast("onnx", "respell", source, "-o", target, "--to", to, "--json", *more)
        assert done.returncode == 0, done.stderr
        model = onnx.load(tmp_path / target)
        onnx.checker.check_model(model)
        return json.loads(done.stdout), model
    return respelled


@pytest.mark.parametrize("element", [INT4, UINT4])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("numbers, block, inputs, outputs", [(F32, 32, 96, 24), (F32, 16, 48, 7), (F16, 128, 256, 16)])
def test_codes_are_the_same_and_outputs_agree(respell, tmp_path, element, zeros, numbers, block, inputs, outputs):
    model, codes, scales, zero_points = qdq_model(inputs, outputs, block, element, zeros, numbers)
    onnx.save(model, tmp_path / "in.onnx")
    said, packed = respell("in.onnx", "nbits.onnx", "matmulnbits")
    assert said["respelled"] == 1 and said["left"] == []
    added = 8 if element == INT4 else 0
    found = of_nbits(packed)
    np.testing.assert_array_equal(found[0], codes + added)
    np.testing.assert_array_equal(found[1], scales)
    np.testing.assert_array_equal(found[2], zero_points + added)
    assert [node.op_type for node in packed.graph.node] == ["MatMulNBits"]
    assert {tensor.name.split("_")[0] for tensor in packed.graph.initializer} <= {"codes", "scales", "zeros"}
    x = np.random.default_rng(1).normal(size=(ROWS, inputs)).astype(scales.dtype)
    exact = x.astype(np.float64) @ ((codes - np.repeat(zero_points, block, 0)[:inputs]) * np.repeat(scales.astype(np.float64), block, 0)[:inputs])
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if numbers == F16 else {"rtol": 1e-4, "atol": 1e-4}
    of_codes, of_blocks = run(tmp_path / "nbits.onnx", x), run(tmp_path / "in.onnx", x)
    np.testing.assert_allclose(of_codes, exact, **tolerance)
    np.testing.assert_allclose(of_codes, of_blocks, **tolerance)
    # And back: int4 with the same differences.
    said, back = respell("nbits.onnx", "back.onnx", "qdq")
    assert said["respelled"] == 1
    assert [node.op_type for node in back.graph.node] == ["DequantizeLinear", "MatMul"]
    onnx.checker.check_model(back, full_check=True)
    np.testing.assert_array_equal(run(tmp_path / "back.onnx", x), of_blocks)
    _, twice = respell("back.onnx", "again.onnx", "matmulnbits")
    for one, two in zip(of_nbits(packed), of_nbits(twice)):
        np.testing.assert_array_equal(one, two)


def test_an_old_opset_rises_for_blocks(respell, run_tcast, tmp_path):
    model = qdq_model(64, 8, 32)[0]
    onnx.save(model, tmp_path / "in.onnx")
    _, packed = respell("in.onnx", "nbits.onnx", "matmulnbits")
    packed.opset_import[0].version = 17
    packed.ir_version = 8
    onnx.save(packed, tmp_path / "old.onnx")
    said, back = respell("old.onnx", "back.onnx", "qdq")
    assert (said["opset_before"], said["opset_after"]) == (17, 21)
    assert back.opset_import[0].version == 21 and back.ir_version == 10
    x = np.ones((ROWS, 64), np.float32)
    np.testing.assert_array_equal(run(tmp_path / "back.onnx", x), run(tmp_path / "in.onnx", x))


def test_what_has_no_such_spelling_stays(respell, tmp_path):
    reasons = {"channels": "scales of channels", "small": "a power of two from 16 on", "axis": "run along the inputs",
               "input": "not constants"}
    for word, reason in reasons.items():
        model = qdq_model(64, 64, 8 if word == "small" else 32)[0]
        dequantize = model.graph.node[0]
        if word == "channels":
            del dequantize.attribute[:]
            dequantize.attribute.append(onnx.helper.make_attribute("axis", 1))
            model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones(64, np.float32), "scales"))
            del model.graph.initializer[2]
            del dequantize.input[2]
        if word == "axis":
            dequantize.attribute[0].i = 1
            for tensor in model.graph.initializer[1:]:
                tensor.dims[:] = [64, 2]
        if word == "input":
            model.graph.input.append(onnx.helper.make_tensor_value_info("scales", F32, [2, 64]))
        onnx.save(model, tmp_path / "in.onnx")
        said, new = respell("in.onnx", "out.onnx", "matmulnbits", "--force")
        assert said["respelled"] == 0
        assert [left["name"] for left in said["left"]] == ["codes"] and reason in said["left"][0]["reason"], word
        assert new == model


@pytest.mark.parametrize("name, value, reason", [("weight_prepacked", 0, ""), ("weight_prepacked", 1, "order of a kernel"),
                                                 ("weight_prepacked", 2, "order of a kernel"), ("new_meaning", 1, "not known")])
def test_codes_in_another_order_stay(respell, tmp_path, name, value, reason):
    onnx.save(qdq_model(64, 8, 32)[0], tmp_path / "in.onnx")
    _, packed = respell("in.onnx", "nbits.onnx", "matmulnbits")
    packed.graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))
    onnx.save(packed, tmp_path / "other.onnx")
    said, new = respell("other.onnx", "out.onnx", "qdq")
    assert said["respelled"] == (0 if reason else 1)
    if reason:
        assert reason in said["left"][0]["reason"] and new == packed


def test_one_dequantize_for_two_products_and_another_use(respell, tmp_path):
    model = qdq_model(64, 16, 32)[0]
    model.graph.node.append(onnx.helper.make_node("MatMul", ["x", "w"], ["z"], "second"))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", F32, [ROWS, 16]))
    onnx.save(model, tmp_path / "in.onnx")
    said, packed = respell("in.onnx", "out.onnx", "matmulnbits")
    assert said["respelled"] == 2 and len(packed.graph.initializer) == 3
    model.graph.node.append(onnx.helper.make_node("Neg", ["w"], ["n"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("n", F32, [64, 16]))
    onnx.save(model, tmp_path / "in.onnx")
    said, packed = respell("in.onnx", "out.onnx", "matmulnbits", "--force")
    assert [node.op_type for node in packed.graph.node] == ["DequantizeLinear", "MatMulNBits", "MatMulNBits", "Neg"]
    assert len(packed.graph.initializer) == 6


def test_a_model_that_tcast_quantized(respell, run_tcast, tmp_path):
    random = np.random.default_rng(4)
    weight = numpy_helper.from_array(random.normal(size=(256, 32)).astype(np.float32), "weight")
    node = onnx.helper.make_node("MatMul", ["x", "weight"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", F32, [ROWS, 256])],
                                   [onnx.helper.make_tensor_value_info("y", F32, [ROWS, 32])], [weight])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), tmp_path / "in.onnx")
    done = run_tcast("onnx", "convert", "in.onnx", "-o", "int4.onnx", "--weights-only", "int4-group", "--group-size", "32")
    assert done.returncode == 0, done.stderr
    said, _ = respell("int4.onnx", "nbits.onnx", "matmulnbits")
    assert said["respelled"] == 1
    x = random.normal(size=(ROWS, 256)).astype(np.float32)
    np.testing.assert_allclose(run(tmp_path / "nbits.onnx", x), run(tmp_path / "int4.onnx", x), rtol=1e-4, atol=1e-4)


def test_bytes_that_do_not_fit_are_an_error(run_tcast, tmp_path):
    model = qdq_model(64, 16, 32)[0]
    model.graph.node[0].attribute[1].i = 64
    onnx.save(model, tmp_path / "in.onnx")
    done = run_tcast("onnx", "respell", "in.onnx", "-o", "out.onnx", "--to", "matmulnbits")
    assert done.returncode == 1 and "other sizes than their product" in done.stderr
    assert not (tmp_path / "out.onnx").exists()
