# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node tests with float32 inputs, converted by `tcast onnx convert`: all of them, or a sample.

    python tests/interop/onnx_node_models.py --tcast PROGRAM [--to TYPE ...] [--only REGEX] [--every N] [--back] [--openvino]

A model that ONNX Runtime, or OpenVINO on a CPU, runs must be valid after its conversion, load, run, give nearly the same, and a second
conversion must change nothing. The last line counts.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
# The largest error, relative to the largest number of the output.
TOLERANCE = {"float16": 2e-2, "bfloat16": 1.2e-1, "float32": 1e-4, "float64": 1e-4}
NUMPY = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}
FLOATS = (np.float16, np.float32, np.float64)


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def elements(type_proto):
    """Element types anywhere in a type."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return {type_proto.tensor_type.elem_type}
    if kind in ("sequence_type", "optional_type"):
        return elements(getattr(type_proto, kind).elem_type)
    return set()


def test_input(model_folder, model):
    """The values of data set 0 by name; None for an empty optional. Initializers that are inputs have none."""
    values = {}
    for index, value in enumerate(model.graph.input):
        path = model_folder / f"test_data_set_0/input_{index}.pb"
        if not path.exists() and any(each.name == value.name for each in model.graph.initializer):
            continue
        data = path.read_bytes()
        kind = value.type.WhichOneof("value")
        if kind == "sequence_type":
            values[value.name] = numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        elif kind == "optional_type":
            optional = onnx.OptionalProto.FromString(data)
            values[value.name] = numpy_helper.to_optional(optional)
        else:
            tensor = onnx.TensorProto.FromString(data)
            values[value.name] = tensor if tensor.data_type > 13 else numpy_helper.to_array(tensor)
    return values


def run(path, values):
    """The outputs of the model, whose inputs get the values in its own types."""
    opened = session(path)
    kinds = {each.name: each.type for each in opened.get_inputs()}

    def feed(name, value):
        kind = kinds[name]
        if isinstance(value, list):
            return [feed_array(each, kind) for each in value]
        return feed_array(value, kind)

    def feed_array(value, kind):
        element = re.search(r"tensor\((\w+)\)", kind).group(0)
        if isinstance(value, onnx.TensorProto):
            array = numpy_helper.to_array(value)
            if element in NUMPY:
                return array.astype(NUMPY[element])
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint8 if array.itemsize == 1 else np.uint16), value.data_type)
        if element == "tensor(bfloat16)" and value.dtype in FLOATS:
            import ml_dtypes
            array = value.astype(ml_dtypes.bfloat16).view(np.uint16)
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, TensorProto.BFLOAT16)
        if element in NUMPY and value.dtype in FLOATS:
            return value.astype(NUMPY[element])
        return value

    feeds = {name: feed(name, values[name]) for name in kinds if values.get(name) is not None}
    binding = any(isinstance(value, onnxruntime.OrtValue) for value in feeds.values())
    simple = all(each.type.startswith("tensor(") for each in opened.get_outputs())
    if binding or (simple and any("bfloat16" in each.type for each in opened.get_outputs())):
        feeds = {name: value if isinstance(value, (onnxruntime.OrtValue, list)) else onnxruntime.OrtValue.ortvalue_from_numpy(value)
                 for name, value in feeds.items()}
        return [from_ort(value) for value in opened.run_with_ort_values(None, feeds)]
    return opened.run(None, feeds)


def from_ort(value):
    if value.element_type() != TensorProto.BFLOAT16:
        return value.numpy()
    import ctypes
    import ml_dtypes
    count = int(np.prod(value.shape()))
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), count * 2), ml_dtypes.bfloat16)
    return raw.reshape(value.shape())


def run_in_openvino(path, values):
    """The same in OpenVINO, in float32 inside, as the model says more than the processor."""
    import ml_dtypes
    import openvino

    def data(tensor):
        is_bfloat16 = tensor.element_type == openvino.Type.bf16  # which OpenVINO shows as float16
        return tensor.data.view(ml_dtypes.bfloat16) if is_bfloat16 else tensor.data

    compiled = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        value = next(values[name] for name in port.names if name in values)
        if not isinstance(value, np.ndarray):
            raise TypeError("no tensor")
        tensor = openvino.Tensor(port.element_type, openvino.Shape(value.shape))
        data(tensor)[...] = value
        request.set_tensor(port, tensor)
    request.infer()
    return [np.array(data(request.get_tensor(port))) for port in compiled.outputs]


def arrays(value):
    if isinstance(value, list):
        return [array for each in value for array in arrays(each)]
    return [] if value is None else [np.asarray(value)]


def close(before, after, tolerance):
    """Why the outputs are not close; empty if they are."""
    before, after = arrays(before), arrays(after)
    if len(before) != len(after):
        return "another number of outputs"
    for expected, got in zip(before, after):
        if expected.shape != got.shape:
            return f"shape {got.shape} instead of {expected.shape}"
        if expected.dtype.kind not in "fiubV" or expected.size == 0:
            if not np.array_equal(expected, got):
                return "other elements"
            continue
        a, b = expected.astype(np.float64), got.astype(np.float64)
        if got.dtype.kind in "fV" and got.dtype.itemsize == 2:  # numbers beyond its range are infinite
            with np.errstate(over="ignore"):
                a = a.astype(got.dtype).astype(np.float64)
        # What the old model rounded on purpose, a wider one does not.
        here = max(tolerance, TOLERANCE.get(expected.dtype.name, 0.0))
        finite = np.isfinite(a)
        scale = max(1.0, np.abs(a[finite]).max(initial=0.0))
        wrong = np.abs(a[finite] - b[finite]) > here * scale
        if expected.dtype.kind in "iub" and wrong.any() and wrong.mean() <= 0.05:
            continue  # a comparison of equal or nearly equal numbers
        if wrong.any() or not np.array_equal(np.isnan(a), np.isnan(b)):
            worst = np.abs(a[finite] - b[finite]).max(initial=0.0)
            return f"error {worst:.3g} of {scale:.3g}, {int(wrong.sum())} of {wrong.size}"
    return ""


def candidates(only=None, every=1, engine=run):
    """(name, path, model, inputs, outputs) of the node tests with float32 inputs that `engine` runs right."""
    names = sorted(path.name for path in FOLDER.iterdir() if only is None or re.search(only, path.name))
    for name in names[::every]:
        path = FOLDER / name / "model.onnx"
        model = onnx.load(path)
        if not any(TensorProto.FLOAT in elements(value.type) for value in model.graph.input):
            continue
        try:
            values = test_input(FOLDER / name, model)
            outputs = engine(path, values)
            # OpenVINO 2026.4.1 gives what memory had for Tile, if the numbers of repeats are an input.
            if engine is not run and close(run(path, values), outputs, 1e-3):
                continue
        except Exception:
            continue
        yield name, path, model, values, outputs


def inside_if(model, values):
    """The model with its nodes in both branches of an If, where ONNX Runtime expands no operators into functions."""
    graph = model.graph
    given = {value.name for value in graph.input} | {each.name for each in graph.initializer}
    made = [value for value in graph.output if value.name not in given]
    branch = helper.make_graph(graph.node, "branch", [], made, value_info=graph.value_info)
    outer = [f"outer_{value.name}" for value in made]
    node = helper.make_node("If", ["inside_if"], outer, then_branch=branch, else_branch=branch)
    edges = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in made]
    for edge, name in zip(edges, outer, strict=True):
        edge.name = name
    flag = helper.make_tensor_value_info("inside_if", TensorProto.BOOL, [])
    whole = helper.make_graph([node], "whole", [*graph.input, flag], edges, graph.initializer,
                              sparse_initializer=graph.sparse_initializer)
    new = onnx.ModelProto.FromString(model.SerializeToString())
    new.graph.CopyFrom(whole)
    if not any(each.domain == "" for each in new.opset_import):
        new.opset_import.append(helper.make_opsetid("", 13))
    return new, {**values, "inside_if": np.array(True)}


def in_newest_opset(model, newest):
    """The model in the newest opset, up to `newest`, where its operators are the same: kernels may end before."""
    new = onnx.ModelProto.FromString(model.SerializeToString())
    for each in new.opset_import:
        if each.domain not in ("", "ai.onnx") or any(has_graphs(node) for node in model.graph.node):
            continue
        while each.version < newest and all(is_in_both(node.op_type, each.version) for node in model.graph.node):
            each.version += 1
    return new


def has_graphs(node):
    return any(attribute.g.node or attribute.graphs for attribute in node.attribute)


def is_in_both(op_type, opset):
    try:
        here, there = (onnx.defs.get_schema(op_type, each, "").since_version for each in (opset, opset + 1))
    except onnx.defs.SchemaError:
        return False
    return here == there


def rounded(value, to):
    """`value` as it arrives in a model whose inputs have the type."""
    if isinstance(value, list):
        return [rounded(each, to) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype not in (np.float32, np.float64):
        return value
    import ml_dtypes
    narrow = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}[to]
    with np.errstate(over="ignore"):
        return value.astype(narrow).astype(value.dtype)


def passes_full_check(path):
    """onnx 1.22 refuses its own model of MeanVarianceNormalization."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def has_sequences(model):
    return any(value.type.WhichOneof("value") != "tensor_type" for value in [*model.graph.input, *model.graph.output])


def lacks_bfloat16(model):
    return max((each.version for each in model.opset_import if each.domain == ""), default=0) < 13


def convert(tcast, source, target, *arguments):
    done = subprocess.run([tcast, "onnx", "convert", source, "-o", target, "--force", "--quiet", *arguments],
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def judge(tcast, path, model, values, outputs, to, folder, arguments=(), tolerance=None, engine=run, check=True):
    """(stage, reason) of the first thing that is wrong with a converted model; None if all is right."""
    target, again = folder / "out.onnx", folder / "again.onnx"
    if to == "bfloat16" and has_sequences(model):  # ONNX Runtime passes no sequences of it to Python
        arguments = [*arguments, "--keep-io-types"]
    if complaint := convert(tcast, path, target, "--to", to, *arguments):
        return "convert", complaint
    try:
        if check:
            onnx.checker.check_model(str(target), full_check=passes_full_check(path))
    except Exception as problem:
        return "check", str(problem)
    try:
        got = engine(target, values)
    except Exception as problem:
        return "run", str(problem)
    is_random = any(node.op_type in RANDOM for node in model.graph.node)
    difference = "" if is_random else close(outputs, got, tolerance or TOLERANCE[to])
    if difference and to in ("float16", "bfloat16"):  # perhaps only as the inputs were rounded
        rounded_outputs = engine(path, {name: rounded(value, to) for name, value in values.items()})
        difference = close(rounded_outputs, got, tolerance or TOLERANCE[to])
    if difference:
        return "close", difference
    if complaint := convert(tcast, target, again, "--to", to, *arguments):
        return "again", complaint
    if target.read_bytes() != again.read_bytes():
        return "idempotent", "a second conversion changes the model"
    return None


def judge_back(tcast, path, model, values, outputs, to, folder, tolerance=None):
    """The same for a model that was converted to `to` and back to float32."""
    narrow = folder / "narrow.onnx"
    if complaint := convert(tcast, path, narrow, "--to", to):
        return "convert", complaint
    rounded_values = {name: rounded(value, to) for name, value in values.items()}
    outputs = run(path, rounded_values)
    return judge(tcast, narrow, model, rounded_values, outputs, "float32", folder, tolerance=tolerance or TOLERANCE[to])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--to", nargs="+", default=["float16"])
    parser.add_argument("--only")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--with", dest="arguments", default="", help="more arguments for the command")
    parser.add_argument("--inside-if", action="store_true", help="put the nodes into the branches of an If")
    parser.add_argument("--newest", type=int, help="raise the opset to this at most, where operators stay the same")
    parser.add_argument("--back", action="store_true", help="convert to --to, and then back to float32")
    parser.add_argument("--openvino", action="store_true", help="convert for OpenVINO, and run the models there")
    options = parser.parse_args()
    engine, arguments = run, options.arguments.split()
    if options.openvino:
        engine = run_in_openvino
        if "--runtime" not in arguments:
            arguments += ["--runtime", "openvino"]
    counts = {to: collections.Counter() for to in options.to}
    with tempfile.TemporaryDirectory() as folder:
        for name, path, model, values, outputs in candidates(options.only, options.every, engine):
            if options.inside_if or options.newest:
                if options.inside_if:
                    model, values = inside_if(model, values)
                if options.newest:
                    model = in_newest_opset(model, options.newest)
                path = pathlib.Path(folder) / "changed.onnx"
                onnx.save(model, path)
                try:
                    outputs = engine(path, values)
                except Exception:
                    continue
            for to in options.to:
                if to == "bfloat16" and lacks_bfloat16(model) and "--opset" not in arguments:
                    continue
                where = pathlib.Path(folder)
                if options.back:
                    wrong = judge_back(options.tcast, path, model, values, outputs, to, where)
                else:
                    wrong = judge(options.tcast, path, model, values, outputs, to, where, arguments, engine=engine)
                counts[to]["models"] += 1
                counts[to][wrong[0] if wrong else "right"] += 1
                if wrong:
                    print(f"{to} {name}: {wrong[0]}: {' '.join(wrong[1].split())[:300]}", flush=True)
    for to, count in counts.items():
        print(to, ", ".join(f"{number} {what}" for what, number in count.items()))
    return any(count["models"] != count["right"] for count in counts.values())


if __name__ == "__main__":
    sys.exit(main())
