# SPDX-License-Identifier: Apache-2.0
"""Every format to every format: types, names, shapes and codes survive wherever the target can hold them."""

import numpy as np
import pytest
import safetensors.numpy
from array_files import (ML_TYPES, NUMBER_TYPES, ONNX_TYPES, PACKED_TYPES, SAFETENSORS_TYPES, assert_same, convert, load_npy, load_pb,
                         load_safetensors, sample, save_pb)


def save(path, array, name):
    """Writes with the package that owns the format; returns the options that reading needs."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, weight=array)
    elif path.suffix == ".safetensors":
        safetensors.numpy.save_file({"weight": array}, path)
    elif path.suffix == ".pb":
        save_pb(path, array, "weight")
    else:
        path.write_bytes(array.tobytes())
        return ["--raw", "--from", name, "--shape", ",".join(map(str, array.shape))]
    return ["--from", name] if name in ML_TYPES and path.suffix in (".npy", ".npz") else []


def load(path, name):
    if path.suffix == ".npy":
        return load_npy(path, name)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            (array,) = arrays.values()
        return array.view(sample(name).dtype) if name in ML_TYPES else array
    if path.suffix == ".safetensors":
        (array,) = load_safetensors(path).values()
        return array
    return load_pb(path)


@pytest.mark.parametrize("target", [".npy", ".npz", ".safetensors", ".pb"])
@pytest.mark.parametrize("source", [".npy", ".npz", ".safetensors", ".pb", ".bin"])
def test_codes_survive(run_tcast, tmp_path, source, target):
    for name in NUMBER_TYPES:
        if ".safetensors" in (source, target) and name not in SAFETENSORS_TYPES.values():
            continue
        if ".pb" in (source, target) and name not in ONNX_TYPES:
            continue
        if source == ".bin" and name in PACKED_TYPES:
            continue  # NumPy has no packed bytes of these to write
        array = sample(name, (4, 6))
        options = save(tmp_path / f"in{source}", array, name)
        convert(run_tcast, tmp_path / f"in{source}", tmp_path / f"out{target}", "--to", name, *options)
        assert_same(load(tmp_path / f"out{target}", name), array)


@pytest.mark.parametrize("target", [".npz", ".safetensors", ".pb"])
@pytest.mark.parametrize("source", [".npz", ".safetensors", ".pb"])
def test_names_survive(run_tcast, tmp_path, source, target):
    save(tmp_path / f"in{source}", sample("float32"), "float32")
    convert(run_tcast, tmp_path / f"in{source}", tmp_path / f"out{target}", "--to", "float16")
    done = run_tcast("inspect", tmp_path / f"out{target}")
    assert done.returncode == 0 and "weight" in done.stdout


@pytest.mark.parametrize("target", [".npy", ".pb"])
def test_many_tensors_do_not_fit_into_one(run_tcast, tmp_path, target):
    np.savez(tmp_path / "in.npz", a=np.zeros(2), b=np.zeros(2))
    done = run_tcast("convert", tmp_path / "in.npz", "-o", tmp_path / f"out{target}", "--to", "float16")
    assert done.returncode == 1 and "npz" in done.stderr


def test_types_that_a_format_lacks_name_the_formats_that_have_them(run_tcast, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(4, np.float32))
    done = run_tcast("convert", tmp_path / "in.npy", "-o", tmp_path / "out.safetensors", "--to", "int4")
    assert done.returncode == 1
    assert all(name in done.stderr for name in ("npy", "npz", "tensor_proto"))


def test_metadata_goes_along(run_tcast, tmp_path):
    safetensors.numpy.save_file({"weight": sample("float32")}, tmp_path / "in.safetensors", {"format": "pt"})
    convert(run_tcast, tmp_path / "in.safetensors", tmp_path / "out.pb", "--to", "float16")
    convert(run_tcast, tmp_path / "out.pb", tmp_path / "back.safetensors", "--to", "float32")
    with safetensors.safe_open(tmp_path / "back.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
