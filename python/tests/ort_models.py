# SPDX-License-Identifier: Apache-2.0
"""Models for the tests of ONNX Runtime, and sessions with and without tensorcast."""

import collections
import functools
import json
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tensorcast import ort

OWN = "ai.tensorcast"
RELEASE = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
# The newest opset that every release knows which the tests run on, and its file format.
OPSET, IR = (25, 13) if RELEASE >= (1, 24) else (21, 10)


def value(name, dtype, shape=("n",)):
    return helper.make_tensor_value_info(name, int(dtype), None if shape is None else list(shape))


def model(nodes, inputs, outputs, weights=(), opset=OPSET, ir=IR, functions=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    made.ir_version = ir
    return made


def cast(source, target, dtype, domain=OWN, **attributes):
    return helper.make_node("Cast", [source], [target], domain=domain, to=int(dtype), **attributes)


def options(register=True, override=False, provider=False, threads=1, all_pairs=False, **entries):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 4  # errors are exceptions, too
    made.intra_op_num_threads = threads
    for name, text in entries.items():
        setattr(made, name, text)
    if all_pairs:
        made.add_session_config_entry("ai.tensorcast.cast_like_all", "1")
    if register:
        ort.register(made, override=override, provider=provider)
    return made


def session(made, **settings):
    """The runtime's Python class tries again after an error and prints; its core does not."""
    data = made if isinstance(made, bytes) else made.SerializeToString()
    built_in = {} if settings.get("provider") else {"providers": ["CPUExecutionProvider"]}
    return onnxruntime.InferenceSession(data, options(**settings), **built_in)


def profiled(made, feeds, folder, **settings):
    """The outputs, and how many nodes of each operator each provider ran."""
    run = session(made, enable_profiling=True, profile_file_prefix=str(folder / "profile"), **settings)
    outputs = run.run(None, feeds)
    events = json.loads(pathlib.Path(run.end_profiling()).read_text())
    ran = [event["args"] for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    return outputs, collections.Counter((node["op_name"], node["provider"]) for node in ran)


def fails(made, **settings):
    """The error of making a session or of running it once without inputs of another type."""
    from onnxruntime.capi import onnxruntime_pybind11_state as core

    created = core.InferenceSession(options(**settings), made.SerializeToString(), False, False)
    created.initialize_session([], [], set())
    return created


def weight(name, shape, dtype=np.float16, seed=0):
    generator = np.random.default_rng([seed, *name.encode()])
    return numpy_helper.from_array((generator.standard_normal(shape) * 0.1).astype(dtype), name)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


@functools.cache
def float16_cnn():
    nodes, weights, last, channels = [], [], "x", 3
    for layer, width in enumerate((8, 16, 16)):
        weights += [weight(f"w{layer}", (width, channels, 3, 3)), weight(f"b{layer}", (width,))]
        nodes += [node("Conv", f"{last} w{layer} b{layer}", f"c{layer}", pads=[1] * 4), node("Relu", f"c{layer}", f"r{layer}")]
        last, channels = f"r{layer}", width
    weights.append(weight("w", (16, 10)))
    nodes += [node("GlobalAveragePool", last, "pool"), node("Flatten", "pool", "flat"), node("MatMul", "flat w", "logits"),
              node("Softmax", "logits", "y", axis=-1)]  # fmt: skip
    return model(nodes, [value("x", TensorProto.FLOAT16, ["n", 3, 24, 24])], [value("y", TensorProto.FLOAT16, ["n", 10])],
                 weights, opset=17, ir=9), {"x": (2, 3, 24, 24)}  # fmt: skip


@functools.cache
def float16_transformer():
    """One attention block and one feed-forward block; the layer norm is computed in float32, as exporters write it."""
    width = 32
    weights = [weight(name, (width, width)) for name in ("wq", "wk", "wv", "wo")]
    weights += [weight("w1", (width, 64)), weight("w2", (64, width)), weight("gain", (width,)),
                numpy_helper.from_array(np.float32(2), "two"), numpy_helper.from_array(np.float32(1e-5), "epsilon"),
                numpy_helper.from_array(np.float16(0.17), "scale")]  # fmt: skip
    nodes = [
        cast("x", "x32", 1, ""), node("ReduceMean", "x32", "mean", axes=[-1]), node("Sub", "x32 mean", "centered"),
        node("Pow", "centered two", "squares"), node("ReduceMean", "squares", "variance", axes=[-1]),
        node("Add", "variance epsilon", "moved"), node("Sqrt", "moved", "deviation"),
        node("Div", "centered deviation", "normal32"), cast("normal32", "normal", 10, ""),
        node("Mul", "normal gain", "h"),
        node("MatMul", "h wq", "q"), node("MatMul", "h wk", "k"), node("MatMul", "h wv", "v"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "scores"), node("Mul", "scores scale", "scaled"),
        cast("scaled", "scaled32", 1, ""), node("Softmax", "scaled32", "p32", axis=-1), cast("p32", "p", 10, ""),
        node("MatMul", "p v", "mixed"), node("MatMul", "mixed wo", "o"), node("Add", "x o", "r"),
        node("MatMul", "r w1", "u"), node("Erf", "u", "e"), node("Mul", "u e", "g"), node("MatMul", "g w2", "d"),
        node("Add", "r d", "y"),
    ]  # fmt: skip
    return model(nodes, [value("x", TensorProto.FLOAT16, ["n", "t", width])],
                 [value("y", TensorProto.FLOAT16, ["n", "t", width])], weights, opset=17, ir=9), {"x": (2, 7, width)}  # fmt: skip


@functools.cache
def float16_lstm():
    weights = [weight("w", (1, 64, 8)), weight("r", (1, 64, 16)), weight("b", (1, 128))]
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["h", "last"], hidden_size=16),
             node("Squeeze", "last axis", "y")]  # fmt: skip
    weights.append(numpy_helper.from_array(np.int64([0]), "axis"))
    return model(nodes, [value("x", TensorProto.FLOAT16, [9, 3, 8])], [value("y", TensorProto.FLOAT16, [3, 16])], weights,
                 opset=17, ir=9), {"x": (9, 3, 8)}  # fmt: skip


def dequantized(dtype, codes):
    """y = x @ dequantize(codes), the codes of a type that NumPy lacks, with float32 activations cast on the way."""
    weights = [helper.make_tensor("codes", dtype, [16, 8], codes, raw=True), weight("s", (8,), np.float32)]
    nodes = [node("DequantizeLinear", "codes s", "w", axis=1), cast("x", "x16", 10, ""), cast("x16", "x32", 1, ""),
             node("MatMul", "x32 w", "m"), cast("m", "y", 10, "")]  # fmt: skip
    return model(nodes, [value("x", TensorProto.FLOAT, ["n", 16])], [value("y", TensorProto.FLOAT16, ["n", 8])], weights,
                 opset=21, ir=10), {"x": (5, 16)}  # fmt: skip


@functools.cache
def float8_weights():
    return dequantized(TensorProto.FLOAT8E4M3FN, (np.arange(128) % 120).astype(np.uint8).tobytes())


@functools.cache
def int4_weights():
    return dequantized(TensorProto.INT4, np.arange(64, dtype=np.uint8).tobytes())


WHOLE_MODELS = [float16_cnn, float16_transformer, float16_lstm, float8_weights, int4_weights]


def feeds_of(made, shapes, seed=1):
    generator = np.random.default_rng(seed)
    types = {given.name: helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type) for given in made.graph.input}
    return {name: generator.standard_normal(shape).astype(types[name]) for name, shape in shapes.items()}
