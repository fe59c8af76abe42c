# SPDX-License-Identifier: Apache-2.0
"""tensorcast.open, load and save."""

import threading

import ml_dtypes
import numpy as np
import pytest
from arrays import NUMPY_TYPES, codes, samples

import tensorcast as tc

ARRAYS = {
    "scalar": np.float64(1.5).reshape(()),
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "half": np.float32([1, -2]).astype(ml_dtypes.bfloat16),
    "code": np.float32([1, 448]).astype(ml_dtypes.float8_e4m3fn),
    "empty": np.empty((0, 3), np.int16),
}


def same(found, expected):
    return found.dtype == expected.dtype and found.shape == expected.shape and np.array_equal(codes(found), codes(expected))


def test_a_file_is_a_lazy_mapping(tmp_path):
    path = tmp_path / "x.safetensors"
    tc.save(path, ARRAYS, metadata={"format": "pt", "note": "ä"})
    with tc.open(path) as file:
        assert len(file) == 5 and set(file) == set(ARRAYS) == set(file.keys()) and "matrix" in file and "x" not in file
        assert file.metadata == {"format": "pt", "note": "ä"} and file.info == tc.inspect(path)
        for name in reversed(ARRAYS):
            assert same(file[name], ARRAYS[name])
        assert file["matrix"] is not file["matrix"] and file["matrix"].flags.writeable
        with pytest.raises(KeyError, match="nothing"):
            file["nothing"]
        assert file.get("nothing") is None
        kept = file["matrix"]
    assert same(kept, ARRAYS["matrix"]) and len(file) == 5
    with pytest.raises(ValueError, match="x.safetensors is closed"):
        file["matrix"]
    file.close()
    assert "closed" in repr(file)


def test_elements_are_read_when_asked_for(tmp_path):
    path = tmp_path / "x.safetensors"
    tc.save(path, {"a": np.zeros(4, np.float32), "b": np.ones(4, np.float32)})
    file = tc.open(path)
    with open(path, "r+b") as bytes_:
        bytes_.seek(-16, 2)
        bytes_.write(np.float32([5, 6, 7, 8]).tobytes())
    assert file["b"].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("extension", ["safetensors", "npz"])
def test_what_was_saved_is_loaded(extension, tmp_path):
    path = tmp_path / f"x.{extension}"
    tc.save(path, ARRAYS)
    types = {"half": "bfloat16", "code": "float8_e4m3fn"} if extension == "npz" else None
    loaded = tc.load(path, from_=types)
    assert type(loaded) is dict and set(loaded) == set(ARRAYS)
    assert all(same(loaded[name], ARRAYS[name]) for name in ARRAYS)


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_every_type(name, tmp_path):
    array = np.resize(samples(name), (6, 8)).astype(samples(name).dtype)
    is_onnx = name not in ("float8_e4m3", "float8_e3m4", "float8_e4m3b11fnuz")
    for file in ("x.npy", "x.pb") if is_onnx else ("x.npy",):
        tc.save(tmp_path / file, {"x": array[::2, ::-1]})
        (loaded,) = tc.load(tmp_path / file, from_=name if file == "x.npy" else None).values()
        assert same(loaded, array[::2, ::-1])
    if not is_onnx:
        with pytest.raises(tc.UnsupportedError, match=f"tensor_proto cannot hold {name}; npy, "):
            tc.save(tmp_path / "x.pb", {"x": array})
    if name in ("int4", "uint4", "int2", "uint2") or not is_onnx:
        with pytest.raises(tc.UnsupportedError, match=f"safetensors cannot hold {name}; npy, "):
            tc.save(tmp_path / "x.safetensors", {"x": array})
        assert not (tmp_path / "x.safetensors").exists()
    else:
        tc.save(tmp_path / "x.safetensors", {"x": array})
        assert same(tc.load(tmp_path / "x.safetensors")["x"], array)


def test_what_safetensors_numpy_cannot_read(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    floats = np.float32([[0.5, -6, 1.5, 3]])
    path = tmp_path / "narrow.safetensors"
    tc.save(path, {name: tc.cast(floats, name) for name in ("float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu")})
    with pytest.raises(Exception):  # noqa: B017
        safetensors.load_file(path)
    loaded = tc.load(path)
    assert loaded["float4_e2m1fn"].dtype == ml_dtypes.float4_e2m1fn
    assert tc.cast(loaded["float4_e2m1fn"], "float32").tolist() == floats.tolist()
    with tc.open(path) as file:
        assert file.read("float4_e2m1fn", packed=True).tolist() == [0xF1, 0x53]
        assert same(file.read("float8_e5m2", packed=True), loaded["float8_e5m2"])


def test_files_of_safetensors_itself(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"a": ARRAYS["matrix"], "b": ARRAYS["scalar"], "e": ARRAYS["empty"]}
    safetensors.save_file({name: np.asarray(array) for name, array in arrays.items()}, tmp_path / "theirs.safetensors")
    loaded = tc.load(tmp_path / "theirs.safetensors")
    assert all(same(loaded[name], arrays[name]) for name in arrays)
    tc.save(tmp_path / "ours.safetensors", arrays)
    loaded = safetensors.load_file(tmp_path / "ours.safetensors")
    assert all(same(loaded[name], arrays[name]) for name in arrays)


def test_strings_and_raw_bytes(tmp_path):
    tc.save(tmp_path / "s.pb", {"s": np.array(["a", "ä", ""])})
    (strings,) = tc.load(tmp_path / "s.pb").values()
    assert strings.dtype == object and strings.tolist() == ["a", "ä", ""]
    (tmp_path / "raw").write_bytes(ARRAYS["matrix"].tobytes())
    (matrix,) = tc.load(tmp_path / "raw", raw=("float32", (3, 4))).values()
    assert same(matrix, ARRAYS["matrix"])


def test_tensors_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    tc.save(tmp_path / "x.safetensors", {"t": tensor.T})
    found = tc.load(tmp_path / "x.safetensors")["t"]
    assert found.dtype == ml_dtypes.bfloat16 and found.tolist() == tensor.T.tolist()


def test_what_cannot_be_saved_changes_nothing(tmp_path):
    path = tmp_path / "x.npy"
    with pytest.raises(tc.UnsupportedError, match="exactly one array, not 2"):
        tc.save(path, {"a": ARRAYS["matrix"], "b": ARRAYS["half"]})
    with pytest.raises(TypeError, match="a mapping of names to arrays"):
        tc.save(path, ARRAYS["matrix"])
    with pytest.raises(TypeError, match="the name of a tensor is a string, in UTF-8, not 1"):
        tc.save(path, {1: ARRAYS["matrix"]})
    with pytest.raises(TypeError, match="a list has no dtype"):
        tc.save(path, {"a": [1, 2]})
    with pytest.raises(FileNotFoundError):
        tc.save(tmp_path / "new" / "x.npy", {"a": ARRAYS["matrix"]})
    with pytest.raises(tc.CastError):
        tc.save(tmp_path / "x.unknown", {"a": ARRAYS["matrix"]})
    assert not list(tmp_path.iterdir())
    tc.save(tmp_path / "new" / "x.npy", {"a": ARRAYS["matrix"]}, parents=True)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        tc.save(tmp_path / "new" / "x.npy", {"a": ARRAYS["half"]})
    assert same(np.load(tmp_path / "new" / "x.npy"), ARRAYS["matrix"])
    tc.save(tmp_path / "new" / "x.npy", {"a": ARRAYS["scalar"]}, overwrite=True)
    assert np.load(tmp_path / "new" / "x.npy") == 1.5


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(tc.ParseError):
        tc.open(tmp_path / "broken.safetensors")
    np.savez(tmp_path / "mixed.npz", ok=np.float32([1]), complex=np.complex64([1]))
    with tc.open(tmp_path / "mixed.npz") as file:
        assert file["ok"].tolist() == [1]
        with pytest.raises(tc.UnsupportedError) as caught:
            file["complex"]
    assert (caught.value.tensor, caught.value.file) == ("complex", str(tmp_path / "mixed.npz"))


def test_threads_share_a_file(tmp_path):
    arrays = {str(i): np.full(50_000, i, np.float32) for i in range(8)}
    tc.save(tmp_path / "x.npz", arrays)
    wrong = []
    with tc.open(tmp_path / "x.npz") as file:

        def read():
            wrong.extend(name for name in file if not same(file[name], arrays[name]))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
