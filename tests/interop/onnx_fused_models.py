# SPDX-License-Identifier: Apache-2.0
"""Models of one operator each into which ONNX Runtime fuses transformers, with float32 inputs: all that there are.

    python tests/interop/onnx_fused_models.py --tcast PROGRAM [--to TYPE ...] [--openvino] [--with ARGUMENTS]

Each is converted and judged as onnx_node_models.py does it, without ONNX's checker, which knows no such operator.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnx_node_models
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
BATCH, LENGTH, HEADS, HEAD = 2, 4, 2, 16
HIDDEN = HEADS * HEAD


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def weight(name, *shape):
    return numpy_helper.from_array(normal(*shape), name)


def model_of(op_type, inputs, outputs, initializers=(), domain=MICROSOFT, opset=17, **attributes):
    """(model, values): inputs are (name, array or None for an absent one); those of `initializers` have no array."""
    given = {name: array for name, array in inputs if isinstance(array, np.ndarray)}
    names = [name if array is not None else "" for name, array in inputs]
    node = helper.make_node(op_type, names, outputs, domain=domain, name=op_type, **attributes)
    edges = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [f"{name}_{k}" for k in range(array.ndim)])
             for name, array in given.items()]
    kinds = {"mask_index": TensorProto.INT32}
    results = [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None) for name in outputs if name]
    graph = helper.make_graph([node], "fused", edges, results, list(initializers))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=imports), given


def fused_models():
    x = normal(BATCH, LENGTH, HIDDEN)
    scale, bias = weight("scale", HIDDEN), weight("bias", HIDDEN)
    row = ("scale", True), ("bias", True)
    ids = (np.arange(BATCH * LENGTH, dtype=np.int32) % 7).reshape(BATCH, LENGTH)
    angles = np.outer(np.arange(12), 1.0 / 100 ** (np.arange(HEAD // 2) / (HEAD // 2))).astype(np.float32)
    rotary = [numpy_helper.from_array(np.cos(angles), "cos"), numpy_helper.from_array(np.sin(angles), "sin")]
    past = 3
    cache = normal(BATCH, 1, past, HEAD)
    lengths = np.full([BATCH], past, np.int32)
    total = np.array([past + 1], np.int32)
    norms = [weight("embedding", 10, HIDDEN), weight("positions", 6, HIDDEN), weight("segments", 2, HIDDEN), scale, bias]

    yield "FusedMatMul", *model_of("FusedMatMul", [("x", x), ("w", True)], ["y"], [weight("w", HIDDEN, HIDDEN)], alpha=0.5, transB=1)
    yield "BiasGelu", *model_of("BiasGelu", [("x", x), ("bias", True)], ["y"], [bias])
    yield "FastGelu", *model_of("FastGelu", [("x", x), ("bias", True)], ["y"], [bias])
    yield "FastGelu-plain", *model_of("FastGelu", [("x", x)], ["y"])
    yield "QuickGelu", *model_of("QuickGelu", [("x", x)], ["y"])
    yield "Gelu", *model_of("Gelu", [("x", x)], ["y"])
    yield "LayerNormalization-1", *model_of("LayerNormalization", [("x", x), *row], ["y", "mean", "deviation"], [scale, bias], "", 16)
    yield "SimplifiedLayerNormalization", *model_of("SimplifiedLayerNormalization", [("x", x), ("scale", True)], ["y", "deviation"], [scale], "")
    yield "SkipLayerNormalization", *model_of("SkipLayerNormalization", [("x", x), ("skip", x[::-1].copy()), *row, ("more", True)],
                                              ["y", "", "", "sum"], [scale, bias, weight("more", HIDDEN)])
    yield "SkipSimplifiedLayerNormalization", *model_of("SkipSimplifiedLayerNormalization", [("x", x), ("skip", x[::-1].copy()), *row],
                                                        ["y", "", "", "sum"], [scale, bias])
    yield "EmbedLayerNormalization", *model_of("EmbedLayerNormalization", [
        ("ids", ids), ("kinds", ids % 2), ("embedding", True), ("positions", True), ("segments", True), *row,
        ("mask", np.ones_like(ids))], ["y", "mask_index", "sum"], norms)
    yield "Attention", *model_of("Attention", [("x", x), ("w", True), ("bias", True), ("mask", np.full([BATCH], LENGTH, np.int32))], ["y"],
                                 [weight("w", HIDDEN, 3 * HIDDEN), weight("bias", 3 * HIDDEN)], num_heads=HEADS)
    yield "MultiHeadAttention", *model_of("MultiHeadAttention", [("q", x), ("k", x + 1), ("v", x - 1), ("bias", True)], ["y", "key", "value"],
                                          [weight("bias", 3 * HIDDEN)], num_heads=HEADS)
    yield "GroupQueryAttention", *model_of("GroupQueryAttention", [
        ("q", x[:, :1]), ("k", normal(BATCH, 1, HEAD)), ("v", normal(BATCH, 1, HEAD) + 1), ("old_k", cache), ("old_v", cache + 1),
        ("lengths", lengths), ("total", total), ("cos", True), ("sin", True)], ["y", "new_k", "new_v"],
        rotary, num_heads=HEADS, kv_num_heads=1, do_rotary=1)
    yield "RotaryEmbedding", *model_of("RotaryEmbedding", [("x", x), ("at", np.tile(np.arange(LENGTH), (BATCH, 1))), ("cos", True), ("sin", True)],
                                       ["y"], rotary)


def judge(tcast, folder, name, model, values, to, arguments=(), engine=onnx_node_models.run):
    """(stage, reason) of the first thing that is wrong; None if all is right. The node must convert."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    outputs = onnx_node_models.run(path, values)
    if engine is not onnx_node_models.run:
        if difference := onnx_node_models.close(outputs, engine(path, values), 1e-3):
            return "old", difference
    wrong = onnx_node_models.judge(tcast, path, model, values, outputs, to, folder, arguments, engine=engine, check=False)
    if wrong:
        return wrong
    operators = [node.op_type for node in onnx.load(folder / "out.onnx").graph.node]
    return None if operators == [model.graph.node[0].op_type] else ("whole", f"the nodes are {operators}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--to", nargs="+", default=["float16"])
    parser.add_argument("--with", dest="arguments", default="", help="more arguments for the command")
    parser.add_argument("--openvino", action="store_true", help="convert for OpenVINO, and run the models there")
    options = parser.parse_args()
    arguments = options.arguments.split()
    engine = onnx_node_models.run
    if options.openvino:
        engine = onnx_node_models.run_in_openvino
        arguments += [] if "--runtime" in arguments else ["--runtime", "openvino"]
    right = models = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, model, values in fused_models():
            for to in options.to:
                try:
                    wrong = judge(options.tcast, pathlib.Path(folder), name, model, values, to, arguments, engine)
                except Exception as problem:
                    wrong = "raises", str(problem)
                models += 1
                right += not wrong
                if wrong:
                    print(f"{to} {name}: {wrong[0]}: {' '.join(wrong[1].split())[:300]}", flush=True)
    print(f"{right} of {models} right")
    return right != models


if __name__ == "__main__":
    sys.exit(main())
