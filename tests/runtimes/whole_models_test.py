# SPDX-License-Identifier: Apache-2.0
"""Whole models, exported by PyTorch, in ONNX Runtime with and without tensorcast's Cast. scripts/checks/onnxruntime --models."""

import collections
import functools
import io
import json
import os
import pathlib
import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorcast as tc
from tensorcast import ort

torch = pytest.importorskip("torch")
nn = torch.nn
torch.backends.mha.set_fastpath_enabled(False)  # one operator that ONNX lacks
onnxruntime.set_default_logger_severity(4)
ROUNDS = int(os.environ.get("ROUNDS", "20"))


class Cnn(nn.Module):
    """Residual blocks with batch normalization and SiLU, as in image classifiers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(32, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.SiLU(), nn.Conv2d(32, 32, 1))
            for _ in range(3))  # fmt: skip
        self.head = nn.Linear(32, 100)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return torch.softmax(self.head(x.mean((2, 3))), -1)


class Activations(nn.Module):
    """What lies between the large matrix products of a network: cheap functions of wide activations. ONNX Runtime has
    each in float32 only, so that most of the time goes into Casts that it inserts."""

    def forward(self, x):
        for _ in range(6):
            x = torch.nn.functional.leaky_relu(-x, 0.5)
        return x


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 128, 2)

    def forward(self, x):
        return self.lstm(x)[0]


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return self.layers(x.half().float()).half()


def transformer():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 512, 0.0, "gelu", batch_first=True), 2,
                                 enable_nested_tensor=False)  # fmt: skip


def exported(module, x):
    module = module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    stream = io.BytesIO()
    torch.onnx.export(module, (x,), stream, input_names=["x"], output_names=["y"], opset_version=20, dynamo=False)
    model = onnx.load_from_string(stream.getvalue())
    model.ir_version = 10
    return model


def dequantized(model, dtype):
    """The matrices of weights in a narrow type, with a scale for each column."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph, name = model.graph, "int4" if dtype == TensorProto.INT4 else "float8_e4m3fn"
    for index, tensor in enumerate(list(graph.initializer)):
        weights = numpy_helper.to_array(tensor)
        if weights.ndim != 2:
            continue
        largest = 448.0 if name == "float8_e4m3fn" else 7.0
        scale = np.abs(weights).max() / largest
        packed = tc.cast(weights / scale, name, packed=True) if name == "int4" else tc.cast(weights / scale, name)
        graph.initializer.remove(tensor)
        graph.initializer.extend([
            helper.make_tensor(f"codes{index}", dtype, weights.shape, packed.tobytes(), raw=True),
            numpy_helper.from_array(np.float32(scale), f"scale{index}")])  # fmt: skip
        graph.node.insert(0, helper.make_node("DequantizeLinear", [f"codes{index}", f"scale{index}"], [tensor.name]))
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 21))
    return model


@functools.cache
def model_named(name):
    torch.manual_seed(0)
    if name == "float16 CNN":
        x = torch.randn(4, 3, 96, 96).half()
        return exported(Cnn().half(), x), x.numpy()
    if name == "float16 transformer":
        x = torch.randn(4, 64, 256).half()
        return exported(transformer().half(), x), x.numpy()
    if name == "float16 LSTM":
        x = torch.randn(32, 4, 64).half()
        return exported(Lstm().half(), x), x.numpy()
    if name == "float16 activations":
        x = torch.randn(16, 128, 1024).half()
        return exported(Activations().half(), x), x.numpy()
    x = torch.randn(64, 256)
    dtype = TensorProto.FLOAT8E4M3FN if name.startswith("float8") else TensorProto.INT4
    return dequantized(exported(Mlp(), x), dtype), x.numpy()


NAMES = ["float16 CNN", "float16 transformer", "float16 LSTM", "float16 activations", "float8 weights", "int4 weights"]


def session_of(model, override, profile=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if override:
        ort.register(options, override=True)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def share_of_casts(model, x, override, folder):
    session = session_of(model, override, folder / f"profile{override}")
    for _ in range(ROUNDS):
        session.run(None, {"x": x})
    spent = collections.Counter()
    for event in json.loads(pathlib.Path(session.end_profiling()).read_text()):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            spent[event["args"]["op_name"]] += event["dur"]
    return spent["Cast"] / sum(spent.values())


def ulps_apart(a, b):
    """Steps between numbers of float16."""
    order = lambda x: np.where((c := x.view(np.int16).astype(int)) < 0, -(c & 0x7FFF), c)
    return int(np.abs(order(a) - order(b)).max())


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_model(name, tmp_path, capsys):
    model, x = model_named(name)
    sessions = [session_of(model, override) for override in (False, True)]
    expected, found = (session.run(None, {"x": x})[0] for session in sessions)
    assert found.dtype == expected.dtype == np.float16 and np.isfinite(found).all()
    # Not the same bits always: with its own Cast, the runtime fuses and removes pairs of Casts, which skips roundings.
    apart = ulps_apart(found, expected)
    close = np.abs(found.astype(float) - expected).max()
    fastest = [float("inf")] * 2
    for _ in range(ROUNDS):
        for k, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, {"x": x})
            fastest[k] = min(fastest[k], time.perf_counter() - start)
    shares = [share_of_casts(model, x, override, tmp_path) for override in (False, True)]
    with capsys.disabled():
        print(f"\n| {onnxruntime.__version__} | {name} | {1e3 * fastest[0]:.2f} | {1e3 * fastest[1]:.2f} | "
              f"{shares[0]:.0%} | {shares[1]:.0%} | {'same' if apart == 0 else f'{apart} ulp, {close:.2g}'} |")  # fmt: skip
    assert close <= 0.02
