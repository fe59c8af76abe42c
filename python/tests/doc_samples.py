# SPDX-License-Identifier: Apache-2.0
"""The files and names that the examples of docstrings use."""

import json

import ml_dtypes
import numpy as np

import tensorcast as tc

ONNX_MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,64] x) => (float[N,256] y) {
  m = MatMul(x, w)
  r = Relu(m)
  y = Softmax(r)
}"""
ONNX_CAST = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float16[N] y) { y = Cast <to: int = 10> (x) }"""


def weights():
    """The weight of the examples: 64 rows of 256 numbers."""
    return np.random.default_rng(0).normal(0, 0.02, (64, 256)).astype(np.float32)


def write_files(folder):
    """Writes model.safetensors, the folder model of two shards, and quantized.safetensors."""
    tensors = {
        "embed.weight": weights() + 1,
        "layers.0.mlp.up_proj.weight": weights(),
        "norm.weight": np.ones(256, np.float32),
    }
    tc.save(folder / "model.safetensors", tensors)
    shards = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
    places = dict(zip(tensors, (shards[0], shards[1], shards[1])))
    (folder / "model").mkdir()
    for shard in shards:
        tc.save(folder / "model" / shard, {name: tensors[name] for name in tensors if places[name] == shard})
    index = {"metadata": {"total_size": sum(x.nbytes for x in tensors.values())}, "weight_map": places}
    (folder / "model" / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model" / "config.json").write_text(json.dumps({"dtype": "float32"}))
    tc.convert(folder / "model.safetensors", folder / "quantized.safetensors", "nvfp4")


def write_onnx(folder):
    """Writes model.onnx, of a MatMul with weights, and cast.onnx, of one Cast."""
    import onnx
    from onnx import numpy_helper

    model = onnx.parser.parse_model(ONNX_MODEL)
    model.graph.initializer.append(numpy_helper.from_array(weights(), "w"))
    for name, node in zip(("project", "clip", "normalize"), model.graph.node):
        node.name = name
    onnx.save(model, folder / "model.onnx")
    onnx.save(onnx.parser.parse_model(ONNX_CAST), folder / "cast.onnx")


def names():
    """What the examples use without importing it."""
    return {"np": np, "tc": tc, "ml_dtypes": ml_dtypes, "weight": weights()}
