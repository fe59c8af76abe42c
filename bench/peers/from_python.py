# SPDX-License-Identifier: Apache-2.0
"""Times conversions as Python programs write them: each allocates its results and uses the threads that it uses by default.

usage: from_python.py --json FILE [--rounds N] [--count N] [--part I/N]     in an environment with the tensorcast package

A part of the pairs is added to FILE, so that short runs on a quiet machine make a whole one.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import statistics
import time

import converters
import numpy

import tensorcast as tc

TO = "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz int8 uint8 int32 int64 bool"
FROM = "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64"
OTHERS = (
    "float16>bfloat16 bfloat16>float16 float16>float8_e4m3fn bfloat16>float8_e4m3fn float8_e4m3fn>float16 "
    "float8_e4m3fn>bfloat16 int64>int32 int32>int64 float16>int8"
)
PAIRS = [("float32", to) for to in TO.split()]
PAIRS += [(source, "float32") for source in FROM.split()]
PAIRS += [tuple(pair.split(">")) for pair in OTHERS.split()]


def with_tensorcast(x, source, target):
    return lambda: tc.cast(x, target)


def with_tensorcast_without_pool(x, source, target):
    def first_call():
        tc.set_result_pool(0)
        try:
            return tc.cast(x, target)
        finally:
            tc.set_result_pool(512 << 20)

    return first_call


def with_numpy(x, source, target):
    dtype = converters.NumPy().dtype(target)

    def astype():
        with numpy.errstate(all="ignore"):
            return x.astype(dtype)

    return astype


def with_pytorch(x, source, target):
    import torch

    tensor = torch.from_numpy(x.view(numpy.uint8)).view(getattr(torch, source))
    to = getattr(torch, target)
    return lambda: tensor.to(to)


def with_onnx_runtime(x, source, target):
    peer = converters.OnnxRuntime()
    helper, runtime = peer.onnx.helper, peer.runtime
    ends = [helper.make_tensor_value_info(name, peer.number(dtype), [x.size]) for name, dtype in (("x", source), ("y", target))]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=peer.number(target))], "cast", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    if hasattr(numpy, source):
        value = runtime.OrtValue.ortvalue_from_numpy(x)
    else:
        value = runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(x.view(f"u{x.itemsize}"), peer.number(source))
    return lambda: session.run_with_ort_values(["y"], {"x": value})


CONTESTANTS = {
    "tensorcast": with_tensorcast,
    "without its pool": with_tensorcast_without_pool,
    "NumPy + ml_dtypes": with_numpy,
    "PyTorch": with_pytorch,
    "ONNX Runtime": with_onnx_runtime,
}


def measure(source, target, count, rounds):
    """Milliseconds of each contestant that has the conversion; they take turns, each as often. The second of two calls is
    timed, as in a loop: memory that a library keeps for itself is its own then. Threads of OpenMP wait for more work for
    milliseconds on a core that the next contestant needs: a pause ends that."""
    numbers = numpy.random.default_rng(1).normal(0.0, 8.0, count).astype(numpy.float32)
    x = tc.cast(numbers, converters.NumPy().dtype(source))
    runs = {}
    for name, prepare in CONTESTANTS.items():
        try:
            run = prepare(x, source, target)
            run()
            runs[name] = run
        except Exception as error:
            print(f"  {name} on {source} -> {target}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(0.02)
            run()
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: {"median": statistics.median(t), "low": min(t), "high": max(t)} for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=16 << 20, help="elements")
    parser.add_argument("--part", default="1/1", help="I/N: the I-th of N parts of the pairs")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    rows = json.loads(pathlib.Path(arguments.json).read_text())["rows"] if part > 1 else []
    for source, target in PAIRS[len(PAIRS) * (part - 1) // parts : len(PAIRS) * part // parts]:
        rows.append({"from": source, "to": target, "times": measure(source, target, arguments.count, arguments.rounds)})
        print(rows[-1], flush=True)
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "ml_dtypes", "torch", "onnxruntime")}
    run = {"versions": versions, "target": tc._core.target(), "date": datetime.date.today().isoformat(), "cores": os.cpu_count()}
    with open(arguments.json, "w") as out:
        json.dump({**run, "count": arguments.count, "contestants": list(CONTESTANTS), "rows": rows}, out)


if __name__ == "__main__":
    main()
