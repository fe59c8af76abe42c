# SPDX-License-Identifier: Apache-2.0
"""The rest of the package: promotion, files, explanations, the command."""

import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import tensorcast as tc
from tensorcast import CastError, _core


def test_every_public_name_is_there_and_documented():
    for name in tc.__all__:
        thing = getattr(tc, name)
        assert name == "__version__" or thing.__doc__, name
    assert list(inspect.signature(tc.cast).parameters)[:2] == ["x", "to"]
    modules = {"mdf", "onnx_backend", "openvino", "ort", "ray", "torch"}  # imported when they are named
    assert {name for name in dir(tc) if not name.startswith("_")} == {*tc.__all__, *modules, "open"} - {"__version__"}
    assert tc.cast.__module__ == "tensorcast"
    assert (pathlib.Path(tc.__file__).parent / "py.typed").exists()


def test_dtypes():
    rows = {row.name: row for row in tc.dtypes()}
    assert len(rows) == 32
    assert rows["float8_e4m3fn"].onnx == 17 and rows["float8_e4m3fn"].largest == 448
    assert rows["int4"].bits == 4 and "bf16" in rows["bfloat16"].spellings


def test_promote_types():
    assert tc.promote_types("int8", np.float32) == "float32"
    assert tc.promote_types("uint1", "uint8") == "uint8"
    assert tc.promote_types("uint64", "int8", promote_unsafe=True) == "float32"
    assert tc.promote_types("uint64", "int8", promote_unsafe=True, u64_integer_promotion_target="int64") == "int64"
    assert (
        tc.promote_types("float16", "float32", b_is_scalar=True, pytorch_scalar_promotion=True, promote_unsafe=True)
        == "float16"
    )
    with pytest.raises(CastError) as caught:
        tc.promote_types("float16", "bfloat16")
    assert caught.value.code == "unsupported"
    with pytest.raises(TypeError):
        tc.promote_types("float16", object)
    with pytest.raises(CastError, match="promotions have no rounding"):
        tc.promote(np.int8([1]), np.int16([1]), rounding="up")


@pytest.fixture
def checkpoint(tmp_path):
    tensors = {
        "layer.weight": np.random.default_rng(7).normal(size=(64, 32)).astype(np.float32),
        "layer.bias": np.float32([1, 2, 1e9]),
        "steps": np.int64([3]),
    }
    path = tmp_path / "in.safetensors"
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    return path, tensors


def test_inspect(checkpoint):
    path, tensors = checkpoint
    found = tc.inspect(path)
    assert found.format == "safetensors" and found.metadata == {"format": "pt"}
    assert {row.name: (row.dtype, row.shape, row.bytes) for row in found.tensors} == {
        name: (array.dtype.name, array.shape, array.nbytes) for name, array in tensors.items()
    }
    with pytest.raises(CastError) as caught:
        tc.inspect(path.with_name("absent.npy"))
    assert caught.value.code == "io"


def test_convert(checkpoint, tmp_path):
    path, tensors = checkpoint
    seen = []
    done = tc.convert(
        path,
        tmp_path / "out.safetensors",
        "float16",
        rules={"bias$": ml_dtypes.bfloat16},
        report=True,
        verify=True,
        progress=lambda *now: seen.append(now),
    )
    rows = {row.name: row for row in done.tensors}
    assert done.verified
    assert [rows[name].to for name in tensors] == ["float16", "bfloat16", "int64"]
    assert rows["layer.weight"].report.count == 64 * 32 and rows["layer.weight"].shape == (64, 32)
    assert seen and seen[-1][0] == seen[-1][1]
    back = tc.inspect(tmp_path / "out.safetensors")
    assert {row.name: row.dtype for row in back.tensors} == {name: rows[name].to for name in tensors}
    tc.convert(path, tmp_path / "again.npz", rules=[("weight", "float8_e5m2")], include=["weight"], exclude=["bias"])
    with np.load(tmp_path / "again.npz") as archive:
        assert archive["layer.weight"].itemsize == 1 and np.array_equal(archive["layer.bias"], tensors["layer.bias"])


def test_convert_obeys_out_of_range(tmp_path):
    numbers, halves = tmp_path / "numbers.npy", tmp_path / "halves.npy"
    np.save(numbers, np.int64([300, -300, 7]))
    np.save(halves, np.float32([1e6, -np.inf]))
    convert = lambda path, to, **options: tc.convert(path, tmp_path / "out.npy", to, overwrite=True, **options)
    for options, expected in [({}, [44, -44, 7]), ({"out_of_range": "saturate"}, [127, -128, 7])]:
        convert(numbers, "int8", **options)
        assert np.load(tmp_path / "out.npy").tolist() == expected
    convert(halves, "float16", out_of_range="saturate")
    assert np.load(tmp_path / "out.npy").tolist() == [65504, -np.inf]
    with pytest.raises(tc.OutOfRangeError, match="300 does not fit int8"):
        convert(numbers, "int8", out_of_range="error")
    with pytest.raises(tc.OutOfRangeError, match=r"1e\+06 does not fit float16"):
        convert(halves, "float16", out_of_range="error")


def test_convert_refusals_leave_nothing(checkpoint, tmp_path):
    path, _ = checkpoint
    target = tmp_path / "out.safetensors"
    with pytest.raises(CastError) as caught:
        tc.convert(path, target, rules={"bias": "int8"}, out_of_range="error")
    assert (caught.value.tensor, caught.value.index, caught.value.code) == ("layer.bias", 2, "out_of_range")
    with pytest.raises(CastError, match="matches"):
        tc.convert(path, target, rules={"nothing": "int8"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        tc.convert(path, target, "float16", nothing=1)
    with pytest.raises(ZeroDivisionError):
        tc.convert(path, target, "float16", progress=lambda *now: 1 // 0)
    with pytest.raises(tc.Cancelled, match="nothing was written") as cancelled:
        tc.convert(path, target, "float16", progress=lambda *now: False)
    assert (cancelled.value.code, cancelled.value.file) == ("cancelled", str(target))
    assert isinstance(cancelled.value, CastError)
    assert tc.convert(path, target, "float16", dry_run=True).tensors
    assert sorted(found.name for found in tmp_path.iterdir()) == ["in.safetensors"]
    target.write_bytes(b"old")
    with pytest.raises(CastError):
        tc.convert(path, target, "float16")
    assert target.read_bytes() == b"old"
    tc.convert(path, target, "float16", overwrite=True)
    assert tc.inspect(target).format == "safetensors"


def test_explain():
    table = tc.explain(0.1)
    assert len(table) == 31 and table[0].dtype == "float64" and repr(table[:1]) == repr(tc.explain(0.1, to="float64"))
    half = next(row for row in table if row.dtype == "float16")
    assert (
        half.code == 0x2E66 and half.events == ("rounded",) and half.exact_value.startswith("0.0999755859375")
    )
    assert "float8_e4m3fn" in repr(table) and repr(table).splitlines()[0].startswith("dtype")
    assert table._repr_html_().count("<tr>") == 32
    assert tc.explain("0x7E", from_="float8_e4m3fn", to="float32")[0].shortest_value == "448.0"
    assert tc.explain(ml_dtypes.bfloat16(1.5), to="int8")[0].code == 1
    assert tc.explain(np.uint8(200), to="int8")[0].events == ("wrapped",)
    assert tc.explain(True, to="float16")[0].shortest_value == "1.0"
    assert tc.explain(300, to="uint8", out_of_range="saturate")[0].code == 255
    with pytest.raises(CastError) as caught:
        tc.explain("1,5")
    assert caught.value.code == "parse"


def test_the_command():
    done = subprocess.run([sys.executable, "-m", "tensorcast", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and tc.__version__ in done.stdout
    assert subprocess.run([sys.executable, "-m", "tensorcast", "no-such-command"], capture_output=True).returncode == 2
    installed = subprocess.run(
        [pathlib.Path(sys.executable).with_name("tcast"), "--version"], capture_output=True, text=True
    )
    assert installed.stdout == done.stdout


def runs_tcast(process):
    return os.path.basename(os.readlink(f"/proc/{process.pid}/exe")) == "tcast"


def catches(process, number):
    caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)
    return int(caught.group(1), 16) >> (number - 1) & 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_command(sent, tmp_path):
    """One process: what a signal does, and the status after it, are the command's own."""
    np.lib.format.open_memmap(tmp_path / "zeros.npy", "w+", np.float64, (1 << 30,)).flush()  # takes no space on disk
    command = [sys.executable, "-m", "tensorcast", "inspect", "zeros.npy", "--stats"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (runs_tcast(process) and catches(process, sent)):
        time.sleep(0.01)
    process.send_signal(sent)
    assert process.wait(60) == 128 + sent


def test_inspect_with_statistics(checkpoint):
    path, tensors = checkpoint
    rows = {row.name: row.stats for row in tc.inspect(path, stats=True, candidates=["f16", "e4m3fn"]).tensors}
    assert list(rows["steps"].candidates) == ["float16", "float8_e4m3fn"]
    assert tc.inspect(path).tensors[0].stats is None
    bias = rows["layer.bias"]
    assert (bias.count, bias.min, bias.max, bias.zero, bias.negative) == (3, 1, 1e9, 0, 0)
    assert bias.candidates["float16"].overflowed == 1
    for name, array in tensors.items():
        _, report = tc.cast(array, "float8_e4m3fn", report=True)
        found = rows[name].candidates["float8_e4m3fn"]
        assert (found.count, found.inexact, found.saturated) == (report.count, report.inexact, report.saturated)
    scaled = tc.inspect(path, stats=True, candidates=["float16"], scale=1e-6).tensors
    assert not any(row.stats.candidates["float16"].overflowed for row in scaled)


def test_inspect_of_text_has_no_statistics(tmp_path):
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    (row,) = tc.inspect(tmp_path / "words.npy", stats=True).tensors
    assert row.stats is None


def test_target_names_the_instruction_set():
    assert _core.target()
