# SPDX-License-Identifier: Apache-2.0
"""The package, the guide and the examples satisfy type checkers, which know what calls return."""

import doctest
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import pytest

import tensorcast

pytest.importorskip("mypy")
pytest.importorskip("pyright")

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path(tensorcast.__file__).parent

# mypy needs most of its time for these, whose types are only looked at in the strict check.
LARGE = ("torch", "onnx", "onnxruntime", "matplotlib", "modeci_mdf")

CALLS = """
import re
from typing import Any

import jax
import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.dlpack import from_dlpack
from typing_extensions import Unpack, assert_type

import tensorcast as tc

x = np.zeros((2, 3), np.float32)
flat: npt.NDArray[np.float32] = x
t = torch.zeros(2)
array = npt.NDArray[np.float16]

assert_type(tc.cast(flat, np.float16), npt.NDArray[np.float16])
assert_type(tc.cast(flat, np.dtype(np.int8)), npt.NDArray[np.int8])
assert_type(tc.cast(flat, np.float16, report=True), tuple[npt.NDArray[np.float16], tc.CastReport])
assert_type(tc.cast(flat, "float8_e4m3fn"), npt.NDArray[Any])
assert_type(tc.cast(flat, "float8_e4m3fn", report=True), tuple[npt.NDArray[Any], tc.CastReport])
assert_type(tc.cast(flat, "int4", packed=True), npt.NDArray[Any])
assert_type(tc.cast(np.float32(1), np.float64), npt.NDArray[np.float64])
assert_type(tc.cast(b"12", np.float64), npt.NDArray[np.float64])
assert_type(tc.cast(t, "bfloat16"), torch.Tensor)
assert_type(tc.cast(t, torch.bfloat16, scale=[1.0, 2.0]), torch.Tensor)
assert_type(tc.cast(t, "bfloat16", report=True), tuple[torch.Tensor, tc.CastReport])
out: npt.NDArray[np.float16] = np.empty((2, 3), np.float16)
assert_type(tc.cast(flat, "float16", out=out), npt.NDArray[np.float16])
tc.cast(flat, ml_dtypes.bfloat16, saturate=False, round_mode="down", scale=np.ones(3))
tc.cast(flat, 17)

done = tc.convert("a", "b", "float16", rules={"norm": np.float32}, progress=lambda now, of, name: True, opset=19)
assert_type(done, tc.ConvertResult)
assert_type(done.tensors[0].report, tc.CastReport | None)
assert_type(tc.inspect("a").tensors, tuple[tc.TensorInfo, ...])
assert_type(tc.explain(0.1)[0], tc.Explanation)
assert_type(tc.dtypes()[0].bits, int)
with tc.open("a") as file:
    assert_type(file["x"], npt.NDArray[Any])
assert_type(tc.load("a"), dict[str, npt.NDArray[Any]])
assert_type(tc.load("a", framework="pt"), dict[str, torch.Tensor])
with tc.open("a", framework="pt") as tensors:
    assert_type(tensors["x"], torch.Tensor)
    assert_type(tensors.get_slice("x")[1:], torch.Tensor)
opened: tc.TensorFile = tc.open("a")
assert_type(opened.get_slice("x")[0, 1], npt.NDArray[Any])
flag = bool(x.size)
assert_type(tc.cast(flat, np.float16, report=flag), npt.NDArray[Any] | tuple[npt.NDArray[Any], tc.CastReport])
assert_type(tc.cast(t, "float16", report=flag), torch.Tensor | tuple[torch.Tensor, tc.CastReport])
assert_type(tc.CastNode("float16").forward(t), torch.Tensor)
assert_type(tc.CastNode("float16").backward(x), npt.NDArray[Any])
assert_type(tc.cast(jax.numpy.ones(2), "float16"), jax.Array)
assert_type(tc.cast(flat, to="float16"), npt.NDArray[Any])
assert_type(tc.absmax_scale(x, "int8"), float)
assert_type(tc.absmax_scale(x, "int8", axis=0), npt.NDArray[np.float64])
tc.cast({"x": x}, None, rules={re.compile("x"): "int8"}, include=[re.compile("x"), "y"])
tc.cast({"x": x}, None, rules=[tc.Rule(re.compile("x"), "int8", scale=2.0)])
tc.cast(x.view(np.uint8), "float32", packed=True, from_="int4", shape=(2, 3))
tc.torch.convert_module(torch.nn.Linear(1, 1), {"weight": "float16"})
tc.convert("a", "b", "float16", progress=True)
tc.save("a", {"x": x, "t": t}, metadata={"format": "pt"})
assert_type(tc.from_dlpack(tc.dlpack(x)), npt.NDArray[Any])
from_dlpack(tc.dlpack(x))
model = tc.onnx.convert("a.onnx", "b.onnx", "float16", keep_io_types=["x"], validate=tc.onnx.Validation(rtol=0.01))
assert_type(model, tc.onnx.ConvertResult)
assert_type(model.kept, tuple[tc.onnx.KeptNode, ...])
assert_type(tc.onnx.search("a.onnx", "b.onnx", metric=lambda old, new: True).kept, tuple[str, ...])
tc.onnx.search("a.onnx", "b.onnx", keep=["op:Softmax"], clamp="finite", external_data="inline", opset="auto")
assert_type(tc.onnx.validate("a.onnx", "b.onnx", "float16")[0].passed, bool)
assert_type(tc.onnx.initializers("a.onnx"), tuple[tc.TensorInfo, ...])
assert_type(tc.cast({"x": x, "t": t}, "float16", rules=[tc.Rule("x", rank=2)]), dict[str, Any])
assert_type(tc.cast({"x": x}, None, rules={"x": "int8"}, report=True), tuple[dict[str, Any], dict[str, tc.CastReport]])
assert_type(tc.convert("a", "b", max_shard_size="5GB").shards, tuple[tc.ConvertedShard, ...])
assert_type(tc.checkpoint.run_shard("b", shard_of=(0, 8)), tc.ConvertResult)
assert_type(tc.checkpoint.verify("b", against="a", opset=19), tc.VerifyResult)
assert_type(tc.checkpoint.diff("a", "b")[0].from_, str | None)
found = tc.inspect("a")
if isinstance(found, tc.CheckpointInfo):
    assert_type(found.tensors[0].kind, str)
try:
    tc.cast(x, "float16")
except tc.FileError as error:
    assert_type(error.index, int | None)
    assert_type(error.hint, str | None)


def mine(x: npt.NDArray[np.float32], **options: Unpack[tc.CastOptions]) -> npt.NDArray[np.float16]:
    return tc.cast(x, np.float16, **options)
"""

# Each line is an error for both checkers.
WRONG = """
import numpy as np
import tensorcast as tc

x = np.zeros(3, np.float32)
tc.cast(x, "float16", satruate=False)
tc.cast(x, "float16", round_mode="upwards")
tc.cast(x, "float16", opset="19")
tc.cast(x=x, to="float16")
tc.cast([1.0], "float16")
tc.convert("a", "b", "float16", force=True)
tc.convert("a", "b", "float16", out_of_range="clip")
tc.convert("a", "b", "float16").cancelled
tc.cast({"x": x}, "float16", rules="x")
tc.cast(x, "float16", keep_rank=1)
tc.checkpoint.run_shard("b", "first")
tc.explain(0.1, rounding="up")
tc.promote_types("int8", "int16", rules="scipy")
tc.load_model("a", format="tensorflow")
tc.CastNode("float16", saturates=True)
tc.onnx.convert("a.onnx", "b.onnx", "float16", runtime="cuda")
tc.onnx.search("a.onnx", "b.onnx", dry_run=True)
tc.onnx.convert("a.onnx", "b.onnx", "float16").model_proto
tc.dtypes()[0].name = "x"
"""


def guide():
    """The recipes of the guide as one module, without the calls that are TypeErrors on purpose."""
    text = (ROOT / "docs/guide.md").read_text()
    parts = ["from typing import *\nimport ml_dtypes, numpy as np, numpy.typing as npt, tensorcast as tc"]
    parts.append("from typing_extensions import Unpack")
    for number, part in enumerate(re.split(r"^## ", text, flags=re.MULTILINE)):
        session = "".join(re.findall(r"^```pycon\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))
        examples = doctest.DocTestParser().get_examples(session)
        sources = [e.source for e in examples if not (e.exc_msg or "").startswith("TypeError")]
        if sources:
            parts.append(f"def recipe_{number}() -> None:\n" + textwrap.indent("".join(sources), "    "))
        parts += re.findall(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    assert len(parts) > 15
    return "\n\n".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typing")
    (folder / "calls.py").write_text(CALLS)
    (folder / "guide.py").write_text(guide())
    for example in (ROOT / "examples").glob("*.py"):
        (folder / example.name).write_text(example.read_text())
    (folder / "wrong.py").write_text(WRONG)
    (folder / "tensorcast").symlink_to(PACKAGE)
    skipped = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in LARGE)
    (folder / "stubtest.ini").write_text("[mypy]\n" + skipped)
    # nanobind's functions have no signatures; test_stub.py compares them. A type alias is a string at run time.
    # ONNX Runtime is imported for type checkers alone; OpenVINO's operators have a metaclass of its own.
    (folder / "allowed").write_text(
        "tensorcast\\.(\\w+\\.)?_.*\ntensorcast\\.ort\\.onnx(runtime)?\ntensorcast\\.openvino\\.Convert.*\n"
    )
    return folder


def run(folder, *command):
    # A file, and a session of its own: after a time-out, what a killed checker had started would keep a pipe open.
    with open(folder / "said", "w+") as said:
        checker = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},  # it asks the network for a newer release else
            start_new_session=True,
        )  # fmt: skip
        try:
            status = checker.wait(timeout=400)
        except subprocess.TimeoutExpired:
            os.killpg(checker.pid, signal.SIGKILL)
            checker.wait()
            raise
        said.seek(0)
        return status, said.read()


def check(folder, *command):
    """Runs a checker over everything: it finds exactly the mistakes of wrong.py."""
    _, said = run(folder, *command)
    errors = re.findall(r"([\w/.-]+\.pyi?):(\d+):(?:\d+ -)? error", said)
    assert {(file.rpartition("/")[2], int(line)) for file, line in errors} == {("wrong.py", n) for n in wrong_lines()}, said


def wrong_lines():
    return {number for number, line in enumerate(WRONG.splitlines(), 1) if line.startswith("tc.")}


def test_mypy(folder):
    names = [part for path in folder.glob("*.py") for part in ("-m", path.stem)]
    check(folder, "mypy", "--strict", "--no-pretty", "--cache-dir", os.devnull, "-p", "tensorcast", *names)


def test_pyright(folder):
    files = (path.name for path in folder.glob("*.py"))
    try:
        check(folder, "pyright", "--pythonpath", sys.executable, "tensorcast", *files)
    except subprocess.TimeoutExpired:
        pytest.skip("pyright did not end, as its Node.js now and then does not; mypy has checked the same files")


def test_stubtest(folder):
    status, said = run(
        folder, "mypy.stubtest", "tensorcast", "--mypy-config-file", "stubtest.ini", "--allowlist", "allowed",
        "--ignore-unused-allowlist", "--ignore-disjoint-bases",
    )  # fmt: skip
    assert status == 0, said
