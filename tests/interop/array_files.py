# SPDX-License-Identifier: Apache-2.0
"""What the tests of file formats share: arrays of every type, and files as the public packages read and write them."""

import pathlib

import ml_dtypes
import numpy as np
import onnx
import safetensors
from onnx import numpy_helper

NUMPY_TYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
               "bool"]
ML_TYPES = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
            "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "int2", "uint4", "uint2"]
PACKED_TYPES = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
NUMBER_TYPES = NUMPY_TYPES + ML_TYPES
# Those of the onnx package: float6 since 1.23, whose wheel has no node tests any more.
ONNX_TYPES = [name for name in NUMBER_TYPES if hasattr(onnx.TensorProto, "FLOAT6E2M3") or not name.startswith("float6")]
# Those that safetensors.numpy saves.
SAFETENSORS_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
                     "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
                     "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool"}


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name in ML_TYPES else name)


def is_float(name: str) -> bool:
    return "float" in name


def sample(name: str, shape=(3, 5), seed=1) -> np.ndarray:
    """Any codes of the type, NaN and infinities among them."""
    dtype = dtype_of(name)
    count = int(np.prod(shape))
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if name in PACKED_TYPES:
        return random.integers(0, 1 << PACKED_TYPES[name], count).astype(np.uint8).view(dtype).reshape(shape)
    return random.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype).reshape(shape)


def bits(array: np.ndarray) -> bytes:
    """The codes in C order, so that NaN compare equal; upper bits of types under 8 bits mean nothing."""
    array = np.ascontiguousarray(array)
    width = PACKED_TYPES.get(array.dtype.name)
    codes = np.frombuffer(array.tobytes(), np.uint8)
    return (codes & ((1 << width) - 1)).tobytes() if width else codes.tobytes()


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "UO":
        assert actual.tolist() == expected.tolist()
    else:
        assert bits(actual) == bits(expected)


def convert(run_tcast, source: pathlib.Path, target: pathlib.Path, *arguments) -> None:
    done = run_tcast("convert", source, "-o", target, "--force", "--quiet", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def refuse(run_tcast, source: pathlib.Path, target: pathlib.Path, *arguments) -> str:
    done = run_tcast("convert", source, "-o", target, *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("tcast: error: ")
    assert not target.exists()
    return done.stderr


def load_npy(path: pathlib.Path, name: str) -> np.ndarray:
    """NumPy loads types that it does not know as void; the view gives them their type back."""
    array = np.load(path)
    return array.view(dtype_of(name)) if name in ML_TYPES else array


def save_pb(path: pathlib.Path, array: np.ndarray, name: str = "") -> None:
    onnx.save_tensor(numpy_helper.from_array(array, name), path)


def load_pb(path: pathlib.Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.load_tensor(path), str(path.parent))


def load_safetensors(path: pathlib.Path) -> dict:
    """As safetensors.numpy.load_file, which cannot load the types that NumPy lacks."""
    tensors = safetensors.deserialize(path.read_bytes())
    return {
        name: np.frombuffer(bytes(tensor["data"]), dtype_of(SAFETENSORS_TYPES[tensor["dtype"]])).reshape(tensor["shape"])
        for name, tensor in tensors
    }


