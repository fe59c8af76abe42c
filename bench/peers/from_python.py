"""Times conversions as Python programs write them, 16 Mi elements: each allocates its results and uses the threads that it uses by default.

usage: from_python.py --json FILE      in an environment with the tensorcast package
"""

import argparse
import json
import statistics
import time

import converters
import numpy

import tensorcast as tc

COUNT = 16 << 20
PAIRS = [
    ("float32", to)
    for to in "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz int8 uint8 int32 int64 bool".split()
]
PAIRS += [(source, "float32") for source in "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64".split()]
PAIRS += [("float16", "bfloat16"), ("bfloat16", "float16"), ("float16", "float8_e4m3fn"), ("bfloat16", "float8_e4m3fn")]
PAIRS += [("float8_e4m3fn", "float16"), ("float8_e4m3fn", "bfloat16"), ("int64", "int32"), ("int32", "int64"), ("float16", "int8")]


def contestants(source, target):
    numbers = numpy.random.default_rng(1).normal(0.0, 8.0, COUNT).astype(numpy.float32)
    extended = converters.NumPy()
    x = tc.cast(numbers, extended.dtype(source))
    yield "tensorcast", lambda: tc.cast(x, target)

    def astype():
        with numpy.errstate(all="ignore"):
            return x.astype(extended.dtype(target))

    yield "NumPy + ml_dtypes", astype

    import torch

    tensor = torch.from_numpy(x.view(numpy.uint8)).view(getattr(torch, source))
    to = getattr(torch, target)
    yield "PyTorch", lambda: tensor.to(to)

    runtime = converters.OnnxRuntime()
    helper = runtime.onnx.helper
    ends = [helper.make_tensor_value_info(name, runtime.number(dtype), [COUNT]) for name, dtype in (("x", source), ("y", target))]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=runtime.number(target))], "cast", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = runtime.runtime.SessionOptions()
    session = runtime.runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    value = runtime.runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(numpy.uint8).view(f"u{x.itemsize}"), runtime.number(source)) if not hasattr(numpy, source) else runtime.runtime.OrtValue.ortvalue_from_numpy(x)
    yield "ONNX Runtime", lambda: session.run_with_ort_values(["y"], {"x": value})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    arguments = parser.parse_args()
    rows = []
    for source, target in PAIRS:
        runs = {}
        iterator = contestants(source, target)
        while True:
            try:
                name, run = next(iterator)
                run()
                runs[name] = run
            except StopIteration:
                break
            except Exception as error:
                print(f"  {source} -> {target}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
                break
        times = {name: [] for name in runs}
        for _ in range(5):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) * 1e3)
        row = {"from": source, "to": target, "times": {name: round(statistics.median(t), 2) for name, t in times.items()}}
        rows.append(row)
        print(source, target, row["times"], flush=True)
    peers = ["NumPy + ml_dtypes", "PyTorch", "ONNX Runtime"]
    with open(arguments.json, "w") as out:
        json.dump({"count": COUNT, "peers": peers, "rows": rows}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
