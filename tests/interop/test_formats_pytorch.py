# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of PyTorch 2.13.0 are read as expected.json beside them says; the package itself is not needed."""

import collections
import enum
import json
import pathlib
import pickle
import re
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from array_files import convert, refuse

TESTDATA = pathlib.Path(__file__).resolve().parent.parent.parent / "src" / "formats" / "pytorch" / "testdata"
EXPECTED = json.loads((TESTDATA / "expected.json").read_text())


def header_of(path):
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    return json.loads(content[8:8 + length])


def tensors_of(path):
    """Types, shapes and bytes, also of types that no package loads."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = header_of(path)
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: [entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])].hex()]
            for name, entry in header.items()}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_tensor_and_all_other_data(run_tcast, tmp_path, name):
    expected = EXPECTED[name]
    source = TESTDATA / "valid" / f"{name}.pt"
    done = run_tcast("convert", source, "-o", "out.safetensors", "--to", "float64", "--exclude", ".*", "--verify")
    assert done.returncode == 0, done.stderr
    skipped = sorted(set(re.findall('"object": "([^"]*)"', json.dumps(expected["other"]))))
    assert len(done.stderr.splitlines()) == len(skipped) and all(made_by in done.stderr for made_by in skipped)
    tensors = expected["tensors"]
    if list(tensors) == [""]:
        tensors = {name: tensors[""]}  # a lone tensor is named for its file
    actual = tensors_of(tmp_path / "out.safetensors")
    assert sorted(actual) == sorted(tensors)
    for key, tensor in tensors.items():
        assert actual[key] == tensor, key
    assert header_of(tmp_path / "out.safetensors")["__metadata__"] == {"format": "pt"}
    other = tmp_path / "out.safetensors.json"
    assert other.exists() == (expected["other"] is not None)
    if other.exists():
        assert json.loads(other.read_text()) == expected["other"]


def test_all_pytorch_extensions(run_tcast, tmp_path):
    for name in ("plain", "plain-stacked"):
        for extension in (".pt", ".pth", ".ckpt", ".bin"):
            source = tmp_path / f"model{extension}"
            source.write_bytes((TESTDATA / "valid" / f"{name}.pt").read_bytes())
            convert(run_tcast, source, tmp_path / "out.safetensors", "--to", "float16")
            assert tensors_of(tmp_path / "out.safetensors")["w"][0] == "F16"


def test_the_other_data_are_named_and_never_overwritten(run_tcast, tmp_path):
    source = TESTDATA / "valid" / "plain.pt"
    planned = run_tcast("convert", source, "-o", "out.safetensors", "--to", "float16", "--dry-run")
    assert "out.safetensors.json" in planned.stdout and not list(tmp_path.iterdir())
    (tmp_path / "out.safetensors.json").write_text("mine")
    assert "out.safetensors.json" in refuse(run_tcast, source, tmp_path / "out.safetensors", "--to", "float16")
    assert (tmp_path / "out.safetensors.json").read_text() == "mine"
    done = run_tcast("convert", source, "-o", "out.safetensors", "--to", "float16", "--force", "--json")
    assert json.loads(done.stdout)["other_data"] == "out.safetensors.json"
    assert json.loads((tmp_path / "out.safetensors.json").read_text()) == {"step": 7}


def test_inspect_shows_the_other_data(run_tcast):
    source = TESTDATA / "valid" / "plain.pt"
    assert json.loads(run_tcast("inspect", source, "--json").stdout)["other_data"] == {"step": 7}
    assert '{"step": 7}' in run_tcast("inspect", source).stdout
    assert "other_data" not in json.loads(run_tcast("inspect", TESTDATA / "valid" / "strided.pt", "--json").stdout)


def test_one_tensor_is_extracted_alone(run_tcast, tmp_path):
    convert(run_tcast, TESTDATA / "valid" / "plain.pt", tmp_path / "t.npy", "--include", "^t$")
    assert [path.name for path in tmp_path.iterdir()] == ["t.npy"]
    assert np.load(tmp_path / "t.npy").tolist() == np.arange(24.0).reshape(4, 6).T.tolist()


def test_checkpoints_are_not_written(run_tcast, tmp_path):
    source = TESTDATA / "valid" / "plain.pt"
    assert "only read" in refuse(run_tcast, source, tmp_path / "out.pt", "--to", "float16")
    said = refuse(run_tcast, source, tmp_path / "out.x", "--to", "float16", "--output-format", "pytorch")
    assert "only read" in said


def test_code_is_named_and_never_run(run_tcast, tmp_path):
    class Evil:
        def __reduce__(self):
            import os
            return os.system, (f"touch {tmp_path}/run",)

    with zipfile.ZipFile(tmp_path / "in.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Evil()}, 2))
    said = refuse(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float16")
    assert "posix.system" in said and not (tmp_path / "run").exists()


def strided_checkpoint(path, rows, columns):
    """The transpose of a matrix of float32, as torch.save writes it."""
    sys.path.insert(0, str(TESTDATA))
    import generate

    items = rows * columns
    storage = generate.StorageStub(items=items)
    data = generate.pickled({"w": generate.tensor(storage, size=(columns, rows), strides=(1, columns))})
    path.write_bytes(generate.archive(data, {"0": np.arange(items, dtype=np.float32).tobytes()}))


@pytest.mark.parametrize("rows, columns", [(3000, 4000), (3, 3_000_000), (3_000_000, 3)])
def test_large_transposes_are_gathered_in_blocks(run_tcast, tmp_path, rows, columns):
    strided_checkpoint(tmp_path / "in.pt", rows, columns)
    convert(run_tcast, tmp_path / "in.pt", tmp_path / "w.npy", "--include", "^w$")
    expected = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns).T
    assert np.array_equal(np.load(tmp_path / "w.npy"), expected)


def test_the_generator_agrees_where_pytorch_is_installed():
    pytest.importorskip("torch")
    subprocess.run([sys.executable, TESTDATA / "generate.py", "--check"], check=True)


def test_inspect_lists_names_and_types(run_tcast):
    done = run_tcast("inspect", TESTDATA / "valid" / "training.pt")
    assert done.returncode == 0, done.stderr
    assert "optimizer.state.0.exp_avg" in done.stdout and "pytorch: " in done.stdout


class Layer(enum.Enum):
    FIRST = "first"
    LAST = "last"


class Name(str):
    pass


def pickled(path, value, protocol=2):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, protocol))


W = np.float32([1, 2, 3])


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_keys_of_classes_of_text(run_tcast, tmp_path, protocol):
    keys = {np.str_("wé"): W, Name("v"): W + 1, Layer.FIRST: W + 2, Layer.LAST: W + 3, 1.0: W + 4, "1": W + 5, ("a", 1): W + 6}
    pickled(tmp_path / "in.pt", keys, protocol)
    assert run_tcast("convert", "in.pt", "-o", "out.safetensors", "--to", "float32").stderr == ""
    names = ["wé", "v", "first", "last", "1.0", "1", "('a', 1)"]
    assert tensors_of(tmp_path / "out.safetensors") == {name: ["F32", [3], (W + i).tobytes().hex()] for i, name in enumerate(names)}


def test_a_container_of_itself_locks_nothing(run_tcast, tmp_path):
    deep = []
    for _ in range(200):
        deep = [deep]
    itself = {"w": W, "deep": deep, "list": []}
    itself["again"] = collections.OrderedDict(parent=itself)
    itself["list"].append(itself["list"])
    pickled(tmp_path / "in.pt", itself)
    done = run_tcast("convert", "in.pt", "-o", "out.safetensors", "--to", "float32")
    assert done.returncode == 0 and "3 containers that contain themselves, or are nested deeper than 100" in done.stderr
    assert list(tensors_of(tmp_path / "out.safetensors")) == ["w"]
    other = json.loads((tmp_path / "out.safetensors.json").read_text())
    assert other["again"] == {"parent": {"object": "a container around it"}}


def test_tensors_nested_too_deep_are_an_error_unless_dropped(run_tcast, tmp_path):
    sys.path.insert(0, str(TESTDATA))
    import generate

    tensor = deep = generate.tensor(generate.StorageStub(items=3), size=(3,), strides=(1,))
    for _ in range(200):
        deep = [deep]
    data = {"0": W.tobytes()}
    (tmp_path / "in.pt").write_bytes(generate.archive(generate.pickled({"w": tensor, "deep": deep}), data))
    said = refuse(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float16")
    assert "nested deeper than 100" in said
    convert(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float16", "--drop", "deep")
    assert list(tensors_of(tmp_path / "out.safetensors")) == ["w"]


def test_numpy_arrays_of_types_of_ml_dtypes(run_tcast, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    read = {name: np.arange(-3, 5).astype(getattr(ml_dtypes, name)) for name in ("float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz", "bfloat16")}
    pickled(tmp_path / "in.pt", read)
    convert(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float32", "--rule", ".=float32")
    for name, (kind, _, content) in tensors_of(tmp_path / "out.safetensors").items():
        assert kind == "F32" and content == read[name].astype(np.float32).tobytes().hex(), name


@pytest.mark.parametrize("array", ["int4", "float4_e2m1fn", "longdouble"])
def test_numbers_that_are_not_read_are_an_error_unless_dropped(run_tcast, tmp_path, array):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    narrow = np.arange(4).astype(getattr(ml_dtypes, array, None) or np.dtype(array))
    pickled(tmp_path / "in.pt", {"w": W, "codes": narrow})
    said = refuse(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float16")
    assert "codes" in said and "NumPy array of" in said and "astype" in said
    convert(run_tcast, tmp_path / "in.pt", tmp_path / "out.safetensors", "--to", "float16", "--drop", "codes")
    assert list(tensors_of(tmp_path / "out.safetensors")) == ["w"]
