# SPDX-License-Identifier: Apache-2.0
"""Models of the onnx wheel and of PyTorch through tensorcast and three other converters, side by side.

    python tests/onnx_models/compare_converters.py --tcast PROGRAM [--big GIB] [--others NAME ...]

A model counts as right if ONNX's full checker passes, ONNX Runtime loads and runs it, and its outputs are close. Status 1
if tensorcast gets one wrong.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import onnx_node_models as judge  # noqa: E402
from peak_memory import wait_and_measure  # noqa: E402

DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data"
OTHERS = ("onnxconverter-common", "onnxruntime", "modelopt")
TOLERANCE = {"float16": 3e-2, "bfloat16": 1.5e-1, "float32": 3e-2}


def wheel_models():
    for group in ("light", "simple", "pytorch-converted", "pytorch-operator"):
        for path in sorted((DATA / group).glob("**/*.onnx")):
            try:
                model = onnx.load(path)
                kinds = set().union(*(judge.elements(value.type) for value in model.graph.input), set())
                stored = {each.data_type for each in model.graph.initializer}
                if TensorProto.FLOAT not in kinds | stored:
                    continue
                has_data = (path.parent / "test_data_set_0").exists()
                values = judge.test_input(path.parent, model) if has_data else random_values(model)
                yield group, path.parent.name if has_data else path.stem, path, values
            except Exception as problem:
                print(f"left out: {group}/{path.parent.name}: {str(problem)[:100]}", flush=True)


def random_values(model):
    numbers = np.random.default_rng(1)
    stored = {each.name for each in model.graph.initializer}
    shapes = {value.name: [each.dim_value or 1 for each in value.type.tensor_type.shape.dim]
              for value in model.graph.input if value.name not in stored}
    return {name: numbers.uniform(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def convert_with(converter, source, target, to):
    if converter == "onnxconverter-common":
        from onnxconverter_common import float16
        onnx.save(float16.convert_float_to_float16(onnx.load(source)), target)
    elif converter == "onnxruntime":
        from onnxruntime.transformers import float16
        onnx.save(float16.convert_float_to_float16(onnx.load(source)), target)
    else:
        import logging
        logging.disable(logging.CRITICAL)
        from modelopt.onnx import autocast
        onnx.save(autocast.convert_to_f16(onnx.load(source), low_precision_type="bf16" if to == "bfloat16" else "fp16",
                                          keep_io_types=False), target)


def worker(converter):
    """Reads jobs, one a line; answers each with a line: seconds, and what went wrong."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        source, target, to = json.loads(line)
        start, wrong = time.perf_counter(), ""
        try:
            convert_with(converter, source, target, to)
        except BaseException as problem:
            wrong = f"{type(problem).__name__}: {problem}"[:200]
        print(json.dumps([time.perf_counter() - start, wrong]), file=answers, flush=True)


class Worker:
    """Another converter in a process of its own, which may die."""

    def __init__(self, converter):
        self.converter, self.process = converter, None

    def convert(self, source, target, to):
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, __file__, "--worker", self.converter]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps([str(source), str(target), to]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return tuple(json.loads(answer)) if answer else (0.0, "the converter crashed")


class Tcast:
    def __init__(self, program):
        self.program = program

    def convert(self, source, target, to):
        start = time.perf_counter()
        complaint = judge.convert(self.program, source, target, "--to", to)
        return time.perf_counter() - start, complaint


def verdict(source, target, values, expected, to, full):
    """(how far the model got, why no further)."""
    stages = ("converted", "valid", "loads", "right")
    try:
        onnx.checker.check_model(str(target), full_check=full)
    except Exception as problem:
        stage, why = 0, f"invalid: {problem}"
    else:
        stage, why = 1, ""
    try:
        got = judge.run(target, values)
    except Exception as problem:
        return stages[stage], why or f"does not run: {problem}"
    difference = judge.close(expected, got, TOLERANCE[to])
    if difference and to != "float32":
        narrow = {name: judge.rounded(value, to) for name, value in values.items()}
        difference = judge.close(judge.run(source, narrow), got, TOLERANCE[to])
    if stage == 0:
        return "runs, invalid", why
    return ("loads", difference) if difference else ("right", "")


def big_model(path, gib):
    count = int(gib * 16)
    block = np.random.default_rng(2).normal(0, 0.02, (4096, 4096)).astype(np.float32)
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    edge = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4096])  # noqa: E731
    stored = [numpy_helper.from_array(block, f"w{i}") for i in range(count)]
    graph = helper.make_graph(nodes, "big", [edge("v0")], [edge(f"v{count}")], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def measure_big(program, converters, gib, folder):
    """Seconds and peak memory of each converter, from file to file in a process of its own."""
    source = folder / "big.onnx"
    maker = f"import sys, pathlib; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); import compare_converters as c; "
    subprocess.run([sys.executable, "-c", f"{maker}c.big_model(pathlib.Path({str(source)!r}), {gib})"], check=True)
    for name in ("tensorcast", *converters):
        target = folder / "big-out.onnx"
        if name == "tensorcast":
            command = [program, "onnx", "convert", source, "-o", target, "--to", "float16", "--force", "--quiet"]
        else:
            command = [sys.executable, "-c", f"{maker}c.convert_with({name!r}, {str(source)!r}, {str(target)!r}, 'float16')"]
        before, start = os.times(), time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peak = wait_and_measure(process)
        seconds, after = time.perf_counter() - start, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        print(f"{gib} GiB, {name}: {seconds:.1f} s, of the CPU {cpu:.1f} s, {peak >> 20} MiB, status {process.returncode}",
              flush=True)
        target.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tcast")
    parser.add_argument("--worker")
    parser.add_argument("--big", type=float, default=0, help="size of a model for time and memory, in GiB")
    parser.add_argument("--others", nargs="*", default=OTHERS)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    ours = Tcast(options.tcast)
    counts, reasons = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    seconds, failed = collections.Counter(), False
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        import exported_models
        models = [*wheel_models(), *(("PyTorch", *row) for row in exported_models.export(folder))]
        workers = {name: Worker(name) for name in options.others}
        for group, name, source, values in models:
            if not re.search(options.only, f"{group}/{name}"):
                continue
            try:
                expected = judge.run(source, values)
            except Exception as problem:
                print(f"left out, as ONNX Runtime does not run it: {group}/{name}: {str(problem)[:100]}", flush=True)
                continue
            full = judge.passes_full_check(source)
            model = onnx.load(source, load_external_data=False)
            jobs = [("tensorcast", to, ours) for to in ("float16", "bfloat16")]
            jobs += [(other, "float16", workers[other]) for other in options.others]
            jobs += [("modelopt", "bfloat16", workers["modelopt"])] if "modelopt" in options.others else []
            for converter, to, converts in jobs:
                if to == "bfloat16" and judge.lacks_bfloat16(model):
                    continue
                target = folder / "out.onnx"
                target.unlink(missing_ok=True)
                row = f"{group} | {converter} {to}"
                took, wrong = converts.convert(source, target, to)
                stage, why = ("fails", wrong) if wrong else verdict(source, target, values, expected, to, full)
                counts[row]["models"] += 1
                counts[row][stage] += 1
                seconds[row] += took
                if converter != "tensorcast":
                    if why:
                        reasons[row][" ".join(why.split())[:150]] += 1
                    continue
                back = folder / "back.onnx"
                if stage == "right":
                    took, wrong = ours.convert(target, back, "float32")
                    stage, why = ("back fails", wrong) if wrong else verdict(source, back, values, expected, "float32", full)
                    if to == "bfloat16" and stage == "loads":  # its numbers were rounded to bfloat16
                        stage = "right" if not judge.close(expected, judge.run(back, values), TOLERANCE[to]) else stage
                    counts[f"{group} | tensorcast {to} and back"]["models"] += 1
                    counts[f"{group} | tensorcast {to} and back"][stage] += 1
                if stage != "right":
                    failed = True
                    print(f"WRONG {group}/{name} {to}: {stage}: {' '.join(why.split())[:250]}", flush=True)
        print("group | converter | models | right | others | seconds")
        for row, count in sorted(counts.items()):
            others = ", ".join(f"{number} {stage}" for stage, number in count.items() if stage not in ("models", "right"))
            print(f"{row} | {count['models']} | {count['right']} | {others} | {seconds[row]:.2f}")
            for why, number in reasons[row].most_common(3):
                print(f"    {number}: {why}")
        if options.big:
            measure_big(options.tcast, options.others, options.big, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
