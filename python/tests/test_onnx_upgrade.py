# SPDX-License-Identifier: Apache-2.0
"""Opsets that onnx's own converter raises: the model computes what it did, or the node is named."""

import numpy as np
import pytest
import tensorcast as tc

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402
from onnx.parser import parse_function, parse_model  # noqa: E402

IMAGE = np.random.default_rng(3).normal(size=(1, 2, 5, 5)).astype(np.float32)


def model_of(text, initializers=(), opset=10, ir_version=6):
    model = parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}, "own" : 1]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in dict(initializers).items())
    return model


def run(model, **inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 1.5, 1.7], [1, 1, 3, 1]])
@pytest.mark.parametrize("opset, node", [(10, "Resize<mode = %s>(x, s)"), (9, "Upsample<mode = %s>(x, s)"), (8, "Upsample<mode = %s, scales = %s>(x)")])
def test_resize_begins_where_it_did(opset, node, mode, scales):
    if mode == "linear" and scales[2] != scales[3] and opset < 10:
        pytest.skip("ONNX Runtime has no such Upsample")
    quoted = f'"{mode}"'
    call = node % ((quoted, [float(scale) for scale in scales]) if opset == 8 else quoted)
    old = model_of(f"g (float[1,2,5,5] x) => (float[a,b,c,d] y) {{ r = {call} y = Softmax<axis = 1>(r) }}",
                   {"s": np.float32(scales)} if opset > 8 else {}, opset)  # fmt: skip
    made = tc.onnx.convert(old, to="bfloat16", opset="auto", keep_io_types=True)
    assert made.rewritten_by_onnx
    wanted = run(old, x=IMAGE)
    assert np.abs(run(made.model, x=IMAGE) - wanted).max() <= 0.02 * wanted.max()


def test_resize_in_a_branch():
    text = """g (float[1,2,5,5] x, bool c) => (float[a,b,c,d] y) { r = If (c) <
        then_branch = t () => (float[a,b,c,d] p) { p = Resize<mode = "linear">(x, s) },
        else_branch = e () => (float[a,b,c,d] q) { q = Resize<mode = "linear">(x, s) }> y = Softmax<axis = 1>(r) }"""
    old = model_of(text, {"s": np.float32([1, 1, 2, 2])})
    made = tc.onnx.convert(old, to="bfloat16", opset="auto", keep_io_types=True).model
    given = {"x": IMAGE, "c": np.array(True)}
    assert np.abs(run(made, **given) - run(old, **given)).max() <= 0.02


@pytest.mark.parametrize("text, opset, to, initializers", [
    ("(float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax<axis = 1>(x) }", 11, "auto", {}),
    ("(float[1,2,5,5] x) => (float[a,b,c,d] y) { y = Resize(x, s) }", 10, "auto", {"s": np.float32([1, 1, 0.6, 2])}),
    ("(float[1,2,5,5] x, float[4] s) => (float[a,b,c,d] y) { y = Resize(x, s) }", 10, "auto", {}),
    ("(float[2,4,8] x, float[2] s) => (float[2,4,8] y) { y = GroupNormalization<num_groups = 2>(x, s, s) }", 18, 21, {}),
    ("""(float[1,3,4] x, float[1,4] z) => (float[1,4] y) { y, u = Scan<num_scan_inputs = 1, body = b (float[4] s, float[4] e)
        => (float[4] n, float[4] o) { n = Add(s, e) o = Neg(e) }>(, z, x) }""", 8, "auto", {}),
])  # fmt: skip
def test_nodes_that_onnx_would_change_are_named(text, opset, to, initializers):
    with pytest.raises(tc.CastError, match=r'onnx cannot upgrade \w+ "y" from opset'):
        tc.onnx.convert(model_of("g " + text, initializers, opset), to="bfloat16", opset=to)


def test_functions_are_inlined_first():
    old = model_of("g (float[2,3,4] x) => (float[2,3,4] y) { r = own.Twice(x) y = Softmax<axis = 1>(r) }", opset=11, ir_version=8)
    old.functions.append(parse_function('<domain: "own", opset_import: ["" : 11]> Twice (a) => (b) { b = Add(a, a) }'))
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    made = tc.onnx.convert(old, to="bfloat16", opset="auto", keep_io_types=True).model
    assert np.abs(run(made, x=x) - run(old, x=x)).max() <= 0.01


def test_what_onnx_leaves_out_stays():
    old = model_of("g (float[2,3,4] x) => (float[2,3,4] y) { r = Neg(x) y = Softmax<axis = 1>(r) }", opset=11)
    old.graph.metadata_props.add(key="graph", value="1")
    old.graph.node[0].metadata_props.add(key="node", value="2")
    helper.set_model_props(old, {"model": "3"})
    annotation = old.graph.quantization_annotation.add(tensor_name="r")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x")
    made = tc.onnx.convert(old, to="bfloat16", opset="auto", keep_io_types=True).model
    assert [each.value for each in made.graph.metadata_props] == ["1"]
    assert [each.value for node in made.graph.node for each in node.metadata_props] == ["2"]
    assert [each.value for each in made.metadata_props] == ["3"]
    assert [each.tensor_name for each in made.graph.quantization_annotation] == ["r"]


def test_initializers_that_are_no_inputs_in_file_format_3():
    """Which allows no others; runtimes take them, and onnx's converter does not."""
    old = model_of("g (float[2,4] x) => (float[2,2] y) { r = MatMul(x, w) y = Softmax<axis = 1>(r) }", {"w": np.eye(4, 2, dtype=np.float32)}, 7, 3)
    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    made = tc.onnx.convert(old, to="bfloat16", opset="auto", keep_io_types=True)
    assert old.ir_version == 3 and np.abs(run(made.model, x=x) - run(old, x=x)).max() <= 0.01


@pytest.mark.parametrize("search", [False, True])
def test_external_data_is_not_loaded(tmp_path, monkeypatch, search):
    """A model beyond 2 GiB is no message that onnx's converter takes; what small tensors say counts for nodes. Before
    1.19, onnx reads it or loses it."""
    wide = np.random.default_rng(2).normal(size=(80, 80)).astype(np.float32)
    text = """g (float[1,2,5,5] x, float[2,80] z) => (float[a,b,c,d] y, float[2,80] v) {
        r = Resize(x, s) y = Softmax<axis = 1>(r) m = MatMul(z, w) v = Softmax<axis = 1>(m) }"""
    old = model_of(text, {"s": np.float32([1, 1, 2, 2]), "w": wide})
    (tmp_path / "in/data").mkdir(parents=True)
    onnx.save(model_of(text, {"s": np.float32([1, 1, 2, 2]), "w": wide}), tmp_path / "in/m.onnx", save_as_external_data=True, location="data/w.bin", size_threshold=0)
    loaded, load = [], onnx.load_external_data_for_model
    monkeypatch.setattr(onnx, "load_external_data_for_model", lambda *given: loaded.append(given) or load(*given))
    make = tc.onnx.search if search else tc.onnx.convert
    options = {"progress": None} if search else {}
    made = make(tmp_path / "in/m.onnx", tmp_path / "o.onnx", "bfloat16", opset="auto", keep_io_types=True, **options)
    done = made.result if search else made
    assert (done.opset_before, done.opset_after, done.rewritten_by_onnx) == (10, 13, True)
    if tuple(map(int, onnx.__version__.split(".")[:2])) >= (1, 19):
        assert not loaded and (tmp_path / "o.onnx.data").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    given = {"x": IMAGE, "z": np.random.default_rng(4).normal(size=(2, 80)).astype(np.float32)}
    models = (old.SerializeToString(), str(tmp_path / "o.onnx"))  # ONNX Runtime wants the scales in the model
    sessions = [onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]) for model in models]
    before, after = (session.run(None, given) for session in sessions)
    assert all(np.abs(a - b).max() <= 0.02 for a, b in zip(before, after, strict=True))
