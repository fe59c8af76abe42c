# SPDX-License-Identifier: Apache-2.0
"""DLPack both ways: tensorcast.dlpack lends the memory of arrays, tensorcast.from_dlpack borrows that of tensors."""

import ctypes

import ml_dtypes
import numpy as np
import pytest
from arrays import BITS, NUMPY_TYPES, ONNX_TYPES, codes, samples

import tensorcast as tc

BYTE_TYPES = [name for name in NUMPY_TYPES if BITS[name] >= 8]


def address(torch_tensor):
    return torch_tensor.data_ptr()


@pytest.mark.parametrize("name", [name for name in BYTE_TYPES if name not in ONNX_TYPES])
def test_types_that_pytorch_lacks_are_exchanged(name):
    array = np.resize(samples(name), (6, 10))[::2, 1:]
    back = tc.from_dlpack(tc.dlpack(array))
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data and back.strides == array.strides


@pytest.mark.parametrize("name", [name for name in BYTE_TYPES if name in ONNX_TYPES])
def test_arrays_enter_pytorch_without_a_copy(name):
    torch = pytest.importorskip("torch")
    array = np.resize(samples(name), (6, 10))[::2, 1:]
    tensor = torch.from_dlpack(tc.dlpack(array))
    assert tensor.dtype == getattr(torch, name) and tensor.shape == array.shape
    assert address(tensor) == array.ctypes.data
    assert tensor.stride() == tuple(stride // array.itemsize for stride in array.strides)
    back = tc.from_dlpack(tensor)
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data and back.strides == array.strides
    array[0, 0] = array[1, 1]
    assert np.array_equal(codes(back), codes(array))
    del array
    assert tensor.shape == (3, 9)  # the memory is kept


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "int8", "bool"])
def test_arrays_enter_jax_without_a_copy(name):
    jax = pytest.importorskip("jax")
    memory = np.zeros(4096, np.uint8)
    start = -memory.ctypes.data % 64  # the alignment that JAX asks for
    array = memory[start : start + 64 * (BITS[name] // 8)].view(tc.cast(np.float32([0]), name).dtype)
    array[...] = tc.cast(np.arange(64, dtype=np.float32) % 2, name)
    lent = jax.dlpack.from_dlpack(tc.dlpack(array))
    assert lent.dtype == array.dtype and np.array_equal(codes(np.asarray(lent)), codes(array))
    assert lent.unsafe_buffer_pointer() == array.ctypes.data
    back = tc.from_dlpack(lent)
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data
    assert not back.flags.writeable or array.flags.writeable


def test_the_protocol_of_the_array_api():
    array = np.float32([1, 2, 3])
    lent = tc.dlpack(array)
    assert lent.__dlpack_device__() == (1, 0) and lent.array is array
    versions = [None, (1, 0)]
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":  # which read no capsules with a version
        versions.remove((1, 0))
    choices = [{"max_version": version} for version in versions]
    for options in (*choices, {}, {"copy": False}, {"dl_device": (1, 0), "stream": None}):
        shared = np.from_dlpack(Raw(lent.__dlpack__(**options)))
        assert shared.ctypes.data == array.ctypes.data
    for version in versions:
        copied = np.from_dlpack(Raw(lent.__dlpack__(copy=True, max_version=version)))
        assert copied.ctypes.data != array.ctypes.data and copied.tolist() == array.tolist()
    with pytest.raises(BufferError, match=r"not \(2, 0\)"):
        lent.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no streams"):
        lent.__dlpack__(stream=1)


class Raw:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def test_read_only_arrays_stay_so():
    array = np.float32([1, 2])
    array.flags.writeable = False
    assert not tc.from_dlpack(tc.dlpack(array)).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        tc.dlpack(array).__dlpack__()
    assert np.from_dlpack(Raw(tc.dlpack(array).__dlpack__(copy=True))).tolist() == [1, 2]


@pytest.mark.parametrize("name", [name for name in NUMPY_TYPES if BITS[name] < 8])
def test_types_under_8_bits(name):
    array = samples(name)[:4]
    again = tc.from_dlpack(tc.dlpack(array))
    assert again.dtype == array.dtype and again.ctypes.data == array.ctypes.data
    with pytest.raises(BufferError, match="version 1.1"):
        tc.dlpack(array).__dlpack__()


def test_packed_tensors_are_unpacked():
    torch = pytest.importorskip("torch")
    pairs = torch.tensor([[0xF1, 0x53]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert tc.cast(tc.from_dlpack(pairs), "float32").tolist() == [[0.5, -6.0, 1.5, 3.0]]
    with pytest.raises(BufferError, match="needs a copy"):
        tc.from_dlpack(pairs, copy=False)


class Managed(ctypes.Structure):
    """DLPack's tensor, with a deleter in Python."""

    DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
    ]

    def capsule(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self), b"dltensor", None)


def managed(deleted, **changes):
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    fields = {"data": ctypes.addressof(memory), "device_type": 1, "ndim": 1, "code": 2, "bits": 32, "lanes": 1,
              "shape": (ctypes.c_int64 * 1)(4), "deleter": Managed.DELETER(lambda _: deleted.append(sum(range(10))))}
    made = Managed(**{**fields, **changes})
    made.memory = memory
    return made


def test_a_deleter_in_python_runs_after_a_refusal():
    deleted = []
    kept = managed(deleted, code=200)  # is refused when the capsule is consumed already
    with pytest.raises(TypeError, match="code 200"):
        tc.from_dlpack(Raw(kept.capsule()))
    assert deleted == [45]
    kept = managed(deleted)
    array = tc.from_dlpack(Raw(kept.capsule()))
    assert array.tolist() == [1, 2, 3, 4] and deleted == [45]
    del array
    assert deleted == [45, 45]


def lengths(*values):
    return (ctypes.c_int64 * len(values))(*values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": None}, "no memory"),
        ({"ndim": 2**31 - 1}, "2147483647 dimensions"),
        ({"ndim": -1}, "-1 dimensions"),
        ({"shape": None}, "no shape"),
        ({"shape": lengths(-4)}, "negative"),
        ({"ndim": 2, "shape": lengths(2**33, 2**33)}, "shape is too large"),
        ({"shape": lengths(2**62)}, "shape is too large"),
        ({"strides": lengths(2**61)}, "strides are too large"),
        ({"strides": lengths(-(2**63))}, "strides are too large"),
        ({"shape": lengths(1), "strides": lengths(2**62)}, "strides are too large"),
        ({"byte_offset": 2**64 - 1}, "offset is too large"),
        ({"device_type": 2}, "device 2"),
    ],
)
def test_damaged_tensors_are_refused(changes, words):
    deleted = []
    kept = managed(deleted, **changes)
    with pytest.raises(BufferError, match=words):
        tc.from_dlpack(Raw(kept.capsule()))


def test_an_empty_tensor_needs_no_memory():
    kept = managed([], data=None, shape=lengths(0), byte_offset=2**64 - 1)
    assert tc.from_dlpack(Raw(kept.capsule())).shape == (0,)


def test_copies_are_made_on_demand():
    array = np.float32([1, 2]).astype(ml_dtypes.bfloat16)
    for copy, shares in ((None, True), (False, True), (True, False)):
        assert np.shares_memory(tc.from_dlpack(tc.dlpack(array), copy=copy), array) is shares


class OnDevice:
    device = "cuda:0"

    def __init__(self, moves):
        self.moves = moves

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, max_version=None, dl_device=None, copy=None):
        assert dl_device == (1, 0), "memory of a device must not be asked for"
        if not self.moves:
            raise BufferError("cannot move")
        return tc.dlpack(np.float32([1, 2])).__dlpack__(max_version=max_version)


def test_devices_are_honoured():
    with pytest.raises(tc.CastError, match=r"on a device \(cuda:0\)"):
        tc.from_dlpack(OnDevice(True))
    assert tc.from_dlpack(OnDevice(True), device="cpu").tolist() == [1, 2]
    with pytest.raises(BufferError, match="cannot move"):
        tc.from_dlpack(OnDevice(False), device="cpu")
    with pytest.raises(ValueError, match="device must be 'cpu' or None"):
        tc.from_dlpack(tc.dlpack(np.zeros(1)), device="cuda")


def test_what_dlpack_cannot_express():
    for array, words in [
        (np.array(["a"]), "no type"),
        (np.zeros(2, ">f4"), "byte orders"),
        (np.zeros(2, [("a", "f4"), ("b", "u1")])["a"], "part of an element"),
        (np.zeros(2, "M8[s]"), "no type"),
    ]:
        with pytest.raises(BufferError, match=words):
            tc.dlpack(array)
    with pytest.raises(TypeError, match="takes a NumPy array, not list"):
        tc.dlpack([1.0])
    with pytest.raises(TypeError, match="an object with __dlpack__, not list"):
        tc.from_dlpack([1.0])


def test_jax_without_64_bits():
    jax = pytest.importorskip("jax")
    x = jax.numpy.array([3e9, 1e18], "float32")
    with jax.enable_x64(False):
        for to in ("int64", "uint64", "float64"):
            with pytest.raises(tc.CastError, match=f"JAX holds no {to} unless .*jax_enable_x64.*numpy.asarray"):
                tc.cast(x, to)
        assert tc.cast(x, "int32", out_of_range="saturate").tolist() == [2**31 - 1] * 2
    with jax.enable_x64(True):
        assert tc.cast(x, "int64").tolist() == [3_000_000_000, 999_999_984_306_749_440]


def test_arrays_of_jax_cannot_be_changed():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones(3)
    array = tc.from_dlpack(x)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2
    assert tc.from_dlpack(x, copy=True).flags.writeable and x[0] == 1


class Lender:
    """An object with DLPack of no library that tensorcast knows."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device, self.asked = array, device, 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.asked += 1
        return tc.dlpack(self.array).__dlpack__(**options)


def test_casts_of_lent_memory_need_no_python_code(monkeypatch):
    from tensorcast._cast import _general

    numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
    general = []
    original = _general._cast_tensor
    monkeypatch.setattr(_general, "_cast_tensor", lambda *arguments: general.append(1) or original(*arguments))
    tc.cast(pytest.importorskip("torch").ones(1), "float16")  # from now on, what is PyTorch's is known
    general.clear()
    for array in (numbers, numbers.T, numbers[::2, ::-3], numbers[:0], np.array(3, np.float32), tc.cast(numbers, "bfloat16")):
        lender = Lender(array)
        result = tc.cast(lender, "float16", scale=0.5)
        assert type(result) is np.ndarray and np.array_equal(result, tc.cast(array, "float16", scale=0.5))
        assert lender.asked == 1 and not general
    small = tc.cast(numbers, "int4")
    assert np.array_equal(codes(tc.cast(Lender(small), "int8")), codes(tc.cast(small, "int8"))) and general
    with pytest.raises(tc.CastError, match="device"):
        tc.cast(Lender(numbers, (2, 0)), "float16")
    with pytest.raises(tc.CastError, match="element 4"):
        tc.cast(Lender(numbers), "uint2", out_of_range="error")
