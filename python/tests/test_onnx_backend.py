# SPDX-License-Identifier: Apache-2.0
"""tensorcast.onnx_backend, by ONNX's own node tests and by models of every version of Cast."""

import re
import unittest

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from arrays import codes
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests

import tensorcast as tc
from tensorcast import CastError, _core, onnx_backend

OPERATORS = r"test_(cast|castlike|bitcast|quantizelinear|dequantizelinear|dynamicquantizelinear(?!.*_expanded))(_.*)?"
CASES = BackendTest(onnx_backend.TensorcastBackend, __name__).include(f"^{OPERATORS}_cpu$").test_cases
NAMES = sorted(name for name in vars(CASES["OnnxBackendNodeModelTest"]) if re.fullmatch(OPERATORS + "_cpu", name))


def shipped_cases():
    return [case for case in load_model_tests(kind="node") if re.fullmatch(OPERATORS, case.name)]


@pytest.mark.parametrize("name", NAMES)
def test_node(name):
    result = unittest.TestResult()
    CASES["OnnxBackendNodeModelTest"](name).run(result)
    assert result.testsRun == 1 and not result.skipped
    assert result.wasSuccessful(), (result.errors + result.failures)[0][1]


def test_all_node_tests_of_these_operators_are_run():
    shipped = {case.name for case in shipped_cases()}
    assert len(shipped) > 180 and {name.removesuffix("_cpu") for name in NAMES} == shipped


def expected_and_run():
    for case in shipped_cases():
        rep = onnx_backend.prepare(onnx.load(f"{case.model_dir}/model.onnx"))
        folder = f"{case.model_dir}/test_data_set_0"
        inputs = [onnx.load_tensor(f"{folder}/input_{i}.pb") for i in range(len(rep._inputs))]
        for i, result in enumerate(rep.run([numpy_helper.to_array(value) for value in inputs])):
            yield case, numpy_helper.to_array(onnx.load_tensor(f"{folder}/output_{i}.pb")), result


def test_node_data_is_met_bit_for_bit():
    """BackendTest compares with a tolerance; a conversion has none."""
    for case, expected, result in expected_and_run():
        if expected.dtype == object:
            assert result.tolist() == expected.tolist(), case.name
            continue
        numbers = ~np.isnan(expected.astype(np.float64))
        assert np.array_equal(codes(result)[numbers], codes(expected)[numbers]), case.name
        assert np.isnan(result.astype(np.float64)[~numbers]).all(), case.name


def model(text, opset):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')


def test_opset_of_the_model_decides():
    text = "g (float[N] x) => (float8e5m2fnuz[N] y) { y = Cast <to = 20> (x) }"
    infinity = np.float32([np.inf])
    assert codes(onnx_backend.run_model(model(text, 19), [infinity])[0]).tolist() == [0x80]
    assert codes(onnx_backend.run_model(model(text, 24), [infinity])[0]).tolist() == [0x7F]
    with pytest.raises(tc.UnsupportedError, match='Cast of "y".*since opset 19; opset 13 was asked for'):
        onnx_backend.prepare(model(text, 13))


def test_cast_of_version_1_names_its_type():
    node = helper.make_node("Cast", ["x"], ["y"], to="FLOAT16")
    (y,) = onnx_backend.run_node(node, [np.float32([1.5])], opset_version=1)
    assert y.dtype == np.float16 and y.tolist() == [1.5]


def test_attributes():
    saturating = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)
    lossy = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN, saturate=0)
    down = helper.make_node("CastLike", ["x", "like"], ["y"], round_mode="down")
    x = np.float32([1e6])
    assert onnx_backend.run_node(saturating, x)[0].astype(np.float32).tolist() == [448]
    assert np.isnan(onnx_backend.run_node(lossy, [x])[0].astype(np.float32)[0])
    like = np.zeros(0, ml_dtypes.float8_e8m0fnu)
    assert codes(onnx_backend.run_node(down, [np.float32([3]), like])[0]).tolist() == [128]


def test_a_graph_of_conversions():
    graph = model(
        """g (float[N] x, string[M] s) => (string[N] t, float16[M] n, int4[2] c, float[N] x2)
        <float16[1] like = {0}>
        { h = Cast <to = 10> (x)  t = Cast <to = 8> (h)  n = CastLike (s, like)
          k = Constant <value = int64[2] {3, -2}> ()  c = Cast <to = 22> (k)  x2 = Identity (x) }""",
        25,
    )
    rep = onnx_backend.prepare(graph)
    x, s = np.float32([0.1, 2]), np.array(["1.5"], object)
    for done in (rep.run([x, s]), rep.run({"s": s, "x": x}), onnx_backend.run_model(graph, [x, s])):
        assert done["t"].tolist() == ["0.099975586", "2.0"] and done.n.tolist() == [1.5]
        assert done.c.dtype == ml_dtypes.int4 and done.c.tolist() == [3, -2] and done.x2 is x
    with pytest.raises(tc.ParseError, match='CastLike of "n"') as caught:
        rep.run([x, np.array(["no"], object)])
    assert (caught.value.index, caught.value.code) == (0, "parse")
    with pytest.raises(ValueError, match="2 inputs"):
        rep.run([x])
    with pytest.raises(ValueError, match="input s"):
        rep.run({"x": x})


@pytest.mark.parametrize(
    "attribute, value, expected",
    [
        ("value_float", 1.5, np.float32(1.5)),
        ("value_floats", [1.5], np.float32([1.5])),
        ("value_int", 3, np.int64(3)),
        ("value_ints", [3], np.int64([3])),
        ("value_string", "a", np.array("a", object)),
        ("value_strings", ["a", "b"], np.array(["a", "b"], object)),
    ],
)
def test_constants(attribute, value, expected):
    (made,) = onnx_backend.run_node(helper.make_node("Constant", [], ["y"], **{attribute: value}), [])
    assert made.dtype == expected.dtype and made.shape == expected.shape and made.tolist() == expected.tolist()


def test_local_functions_are_inlined():
    text = """<ir_version: 10, opset_import: ["" : 25, "f" : 1]>
        g (float[N] x) => (float16[N] y) { y = f.half (x) }
        <domain: "f", opset_import: ["" : 25]> half (a) => (b) { b = Cast <to = 10> (a) }"""
    (y,) = onnx_backend.run_model(onnx.parser.parse_model(text), [np.float32([0.1])])
    assert y.dtype == np.float16


def test_what_is_no_conversion_is_refused():
    other = model("g (float[N] x) => (float[N] y) { y = Relu (x) }", 25)
    assert not onnx_backend.is_compatible(other)
    with pytest.raises(CastError, match="Relu is not an operator that is run here; Cast, "):
        onnx_backend.prepare(other)
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", 1, [1], [2.0]), helper.make_tensor("i", 7, [1], [0]), [2]
    )
    with pytest.raises(CastError, match="sparse tensors are not supported"):
        onnx_backend.run_node(helper.make_node("Constant", [], ["y"], sparse_value=sparse), [])
    with pytest.raises(onnx.checker.ValidationError):
        onnx_backend.prepare(model("g (float[N] x) => (float16[N] y) { y = Cast (x) }", 25))


def test_the_backend_and_load_model_are_one_engine(tmp_path):
    chosen = model(
        """g (bool c, float[N] x) => (int4[N] y) {
            y = If (c) <then_branch = t () => (int4[N] a) { a = Cast <to = 22> (x) },
                        else_branch = e () => (int4[N] b) { k = Identity (x)  b = Cast <to = 22> (k) }> }""",
        newest := min(onnx.defs.onnx_opset_version(), _core.newest_opset),
    )
    onnx.save(chosen, tmp_path / "if.onnx")
    x = np.float32([7.6, 9, -9])
    expected = tc.cast(x, "int4", opset=newest)
    for choice in (np.array(True), np.array(False)):
        (y,) = onnx_backend.run_model(chosen, [choice, x])
        assert np.array_equal(codes(y), codes(expected))
        for source in (tmp_path / "if.onnx", chosen, chosen.SerializeToString()):
            program = tc.load_model(source)
            assert program.format == "onnx"
            assert np.array_equal(codes(program.run({"c": choice, "x": x})["y"]), codes(expected))


def test_models_in_memory():
    with pytest.raises(tc.ParseError):
        tc.load_model(b"")
    with pytest.raises(tc.UnsupportedError, match="not read from memory"):
        tc.load_model(b"{}", format="mdf")
    with pytest.raises(TypeError, match="a path, bytes or an onnx.ModelProto, not int"):
        tc.load_model(3)
    external = model("g () => (float[1] y) <float[1] k = {1}> { y = Identity (k) }", 25)
    tensor = external.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    with pytest.raises(tc.UnsupportedError, match="no folder in which its external data could be"):
        tc.load_model(external)


def test_devices():
    assert onnx_backend.supports_device("CPU") and onnx_backend.supports_device("CPU:0")
    assert not onnx_backend.supports_device("CUDA") and not onnx_backend.supports_device("nothing")
    with pytest.raises(CastError, match="CUDA"):
        onnx_backend.prepare(model("g (float[N] x) => (float[N] y) { y = Identity (x) }", 25), "CUDA")
