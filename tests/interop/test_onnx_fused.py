# SPDX-License-Identifier: Apache-2.0
"""Transformers that ONNX Runtime has fused convert whole to float16, run there, and agree."""

import numpy as np
import onnx
import onnx_fused_models
import onnx_node_models
import pytest
from onnx import TensorProto, helper
from onnx_fused_models import HEAD, HEADS, HIDDEN, MICROSOFT, normal, weight

FUSED = {name: (model, values) for name, model, values in onnx_fused_models.fused_models()}


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_operator_converts(tcast, tmp_path, name):
    assert onnx_fused_models.judge(tcast, tmp_path, name, *FUSED[name], "float16") is None


@pytest.mark.parametrize("to", ["bfloat16", "float64"])
def test_where_the_runtime_has_no_kernel_the_model_still_runs(tcast, tmp_path, to):
    wrong = {}
    for name, (model, values) in FUSED.items():
        found = onnx_fused_models.judge(tcast, tmp_path, name, model, values, to)
        if found is not None and found[0] != "whole":
            wrong[name] = found
    assert not wrong


def layer(number, initializers):
    """A layer of BERT, as onnxruntime.transformers.optimizer writes it: 7 nodes."""
    def own(word, *shape):
        initializers.append(weight(f"{word}_{number}", *shape))
        return f"{word}_{number}"

    def node(op_type, inputs, output, domain="", **attributes):
        return helper.make_node(op_type, inputs, [f"{output}_{number}"], name=f"{op_type}_{output}_{number}", domain=domain, **attributes)

    x = "hidden" if number == 0 else f"hidden_{number - 1}"
    return [
        node("Attention", [x, own("qkv", HIDDEN, 3 * HIDDEN), own("qkv_bias", 3 * HIDDEN), "mask_index"], "attended", MICROSOFT, num_heads=HEADS),
        node("MatMul", [f"attended_{number}", own("out", HIDDEN, HIDDEN)], "mixed"),
        node("SkipLayerNormalization", [f"mixed_{number}", x, own("g1", HIDDEN), own("b1", HIDDEN), own("out_bias", HIDDEN)], "middle", MICROSOFT),
        node("MatMul", [f"middle_{number}", own("up", HIDDEN, 4 * HIDDEN)], "wide"),
        node("FastGelu", [f"wide_{number}", own("up_bias", 4 * HIDDEN)], "active", MICROSOFT),
        node("MatMul", [f"active_{number}", own("down", 4 * HIDDEN, HIDDEN)], "narrow"),
        node("SkipLayerNormalization", [f"narrow_{number}", f"middle_{number}", own("g2", HIDDEN), own("b2", HIDDEN), own("down_bias", HIDDEN)],
             "hidden", MICROSOFT),
    ]


def bert(layers=2):
    names = ["embedding", "positions", "segments", "scale", "bias"]
    initializers = [weight(name, *shape) for name, shape in zip(names, [(30, HIDDEN), (16, HIDDEN), (2, HIDDEN), (HIDDEN,), (HIDDEN,)])]
    nodes = [helper.make_node("EmbedLayerNormalization", ["ids", "kinds", *names, "mask"], ["hidden", "mask_index"], domain=MICROSOFT)]
    for number in range(layers):
        nodes += layer(number, initializers)
    initializers.append(weight("head", 8, HIDDEN))
    nodes.append(helper.make_node("FusedMatMul", [f"hidden_{layers - 1}", "head"], ["y"], domain=MICROSOFT, transB=1, alpha=0.25))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in ("ids", "kinds", "mask")]
    graph = helper.make_graph(nodes, "bert", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", 8])], initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])


def test_a_fused_transformer_converts_whole(run_tcast, tmp_path):
    model = bert()
    onnx.save(model, tmp_path / "bert.onnx")
    done = run_tcast("onnx", "convert", "bert.onnx", "-o", "half.onnx", "--to", "float16")
    assert done.returncode == 0, done.stderr
    half = onnx.load(tmp_path / "half.onnx")
    assert [node.op_type for node in half.graph.node] == [node.op_type for node in model.graph.node]  # no Cast
    assert {each.data_type for each in half.graph.initializer} == {TensorProto.FLOAT16}
    ids = (np.arange(14, dtype=np.int32) * 5 % 30).reshape(2, 7)
    values = {"ids": ids, "kinds": ids % 2, "mask": (np.arange(7) < [[7], [5]]).astype(np.int32)}
    expected, got = (onnx_node_models.run(tmp_path / name, values) for name in ("bert.onnx", "half.onnx"))
    assert got[0].dtype == np.float16
    assert not onnx_node_models.close(expected, got, 2e-2)


def test_the_cache_of_grouped_attention_has_the_type_of_the_query(run_tcast, tmp_path):
    """Without old keys only the declared outputs tell the type of the new ones."""
    nodes = [helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["n"], epsilon=1e-5),
             helper.make_node("MatMul", ["n", "wq"], ["q"]), helper.make_node("MatMul", ["n", "wk"], ["k"]),
             helper.make_node("MatMul", ["n", "wv"], ["v"]),
             helper.make_node("GroupQueryAttention", ["q", "k", "v", "", "", "lengths", "total"], ["a", "new_k", "new_v"], domain=MICROSOFT,
                              num_heads=HEADS, kv_num_heads=1),
             helper.make_node("SkipSimplifiedLayerNormalization", ["a", "x", "scale"], ["y"], domain=MICROSOFT)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, HIDDEN]),
              helper.make_tensor_value_info("lengths", TensorProto.INT32, [1]), helper.make_tensor_value_info("total", TensorProto.INT32, [1])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "new_k", "new_v")]
    initializers = [weight("scale", HIDDEN), weight("wq", HIDDEN, HIDDEN), weight("wk", HIDDEN, HEAD), weight("wv", HIDDEN, HEAD)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]),
              tmp_path / "old.onnx")
    values = {"x": normal(1, 4, HIDDEN), "lengths": np.array([3], np.int32), "total": np.array([4], np.int32)}
    expected = onnx_node_models.run(tmp_path / "old.onnx", values)
    for arguments, casts in (((), 0), (("--keep-io-types",), 4), (("--keep", "op:GroupQueryAttention"), 4)):
        done = run_tcast("onnx", "convert", "old.onnx", "-o", "new.onnx", "--to", "float16", "--force", *arguments)
        assert done.returncode == 0, done.stderr
        assert sum(node.op_type == "Cast" for node in onnx.load(tmp_path / "new.onnx").graph.node) == casts
        assert not onnx_node_models.close(expected, onnx_node_models.run(tmp_path / "new.onnx", values), 2e-2)
