# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a call: an error that says what to do, and nothing changed."""

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError

X = np.float32([[1, 2, 3], [4, 5, 6]])


class OnDevice:
    """What a CUDA tensor shows of itself by DLPack."""

    device = "cuda:0"
    shape = (2,)

    def __dlpack_device__(self):
        return (2, 0)  # kDLCUDA

    def __dlpack__(self, **_):
        raise AssertionError("memory of a device must not be asked for")


class OnDeviceWithoutName:
    def __dlpack_device__(self):
        return (10, 3)  # kDLROCM

    def __dlpack__(self, **_):
        raise AssertionError("memory of a device must not be asked for")


class CudaArray:
    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (16, False), "version": 3}


@pytest.mark.parametrize(
    "x, device",
    [(OnDevice(), "cuda:0"), (OnDeviceWithoutName(), "DLPack device 10:3"), (CudaArray(), "CUDA")],
)
@pytest.mark.parametrize("options", [{}, {"report": True}, {"copy": False}])
def test_tensors_on_a_device(x, device, options):
    with pytest.raises(CastError, match=rf"is on a device \({device}\); move it to the host first, e.g. with .cpu\(\)"):
        tc.cast(x, "float16", **options)


def test_tensors_on_a_device_elsewhere():
    with pytest.raises(CastError, match="on a device"):
        tc.promote(OnDevice(), np.float32([1]))
    program = tc.graph.Graph()
    program.output(program.cast(program.input("x"), "float16", output="y"))
    with pytest.raises(CastError, match="on a device"):
        program.compile().run({"x": OnDevice()})
    with pytest.raises(CastError, match="on a device"):
        tc.CastNode("float16").forward(OnDevice())


@pytest.mark.parametrize(
    "out, words",
    [
        (np.zeros(6, np.float16), r"out has shape \(6,\), but the result has \(2, 3\)"),
        (np.zeros((3, 2), np.float16), "shape"),
        (np.zeros((2, 3, 1), np.float16), "shape"),
        (np.zeros((2, 3), np.float32), "out has dtype float32, but the result is float16"),
        (np.zeros((2, 3), np.uint16), "dtype"),
        (np.zeros((2, 3), "U4"), "dtype"),
        (np.zeros((2, 3), object), "dtype"),
        (np.zeros((2, 3), ml_dtypes.bfloat16), "dtype"),
        (np.zeros((2, 3), [("a", np.float16)]), "dtype"),
        (np.broadcast_to(np.float16(0), (2, 3)), "read-only"),
    ],
)
def test_wrong_out(out, words):
    before, bytes_before = X.copy(), out.tobytes()
    with pytest.raises(CastError, match=words):
        tc.cast(X, "float16", out=out)
    assert np.array_equal(X, before) and out.tobytes() == bytes_before


@pytest.mark.parametrize(
    "out",
    [[[0] * 3] * 2, b"\0" * 12, "out", 1.0, np.float16(0), np.ma.zeros((2, 3), np.float16), np.zeros(1).view(np.recarray)],
    ids=lambda out: type(out).__name__,
)
def test_out_that_is_no_array(out):
    with pytest.raises(TypeError, match="out must be a numpy.ndarray, not "):
        tc.cast(X, "float16", out=out)


def test_out_in_a_file(tmp_path):
    out = np.memmap(tmp_path / "out", np.float16, "w+", shape=X.shape)
    assert tc.cast(X, "float16", out=out) is out
    out.flush()
    assert np.array_equal(np.fromfile(tmp_path / "out", np.float16), X.ravel().astype(np.float16))
    read_only = np.memmap(tmp_path / "out", np.float16, "r", shape=X.shape)
    with pytest.raises(CastError, match="read-only"):
        tc.cast(X, "float16", out=read_only)


def test_wrong_out_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0, 3.0])
    for out in (torch.zeros(2, dtype=torch.float16), torch.zeros(3), np.zeros(3, np.float16), [0.0] * 3):
        with pytest.raises(CastError, match=r"out must be a torch tensor of shape \(3,\) and type float16"):
            tc.cast(x, "float16", out=out)
    with pytest.raises(CastError, match=r"on a device \(meta\)"):
        tc.cast(x, "float16", out=torch.zeros(3, dtype=torch.float16, device="meta"))
    assert tc.cast(x.to("meta"), "float16").device.type == "meta"  # traced, by the operator
    memory = np.arange(6, dtype=np.float32)
    with pytest.raises(CastError, match="overlaps the input"):  # one memory, two storages
        tc.cast(torch.from_numpy(memory[:4]), "float32", out=torch.from_numpy(memory[2:]))
    with pytest.raises(TypeError, match="to_dense"):
        tc.cast(x.to_sparse(), "float16")
    assert x.tolist() == [1, 2, 3] and memory.tolist() == list(range(6))


def test_overlaps_that_are_hard_to_tell_are_refused():
    memory = np.arange(4000, dtype=np.float32)
    before = memory.copy()
    as_strided = np.lib.stride_tricks.as_strided
    source = as_strided(memory, (7, 11, 13), (4 * 23, 4 * 29, 4 * 31))
    out = as_strided(memory[1:], (7, 11, 13), (4 * 37, 4 * 41, 4 * 43))
    with pytest.raises(CastError, match="overlaps the input; give it memory of its own"):
        tc.cast(source, "float32", out=out)
    assert np.array_equal(memory, before)
    evens, odds = memory[::2], memory[1::2]  # the same range of addresses, and yet apart
    assert tc.cast(evens, "float32", out=odds) is odds
    assert np.array_equal(memory[1::2], before[::2]) and np.array_equal(memory[::2], before[::2])


@pytest.mark.parametrize("order", ["C", "K"])
def test_a_refused_element_of_a_transposed_array_is_the_first_in_c_order(order):
    array = np.zeros((301, 413), np.float32).T
    array[400, 2] = array[3, 300] = np.nan
    with pytest.raises(CastError) as caught:
        tc.cast(array, "int8", invalid="error", order=order)
    assert caught.value.index == 3 * 301 + 300 and f"element {3 * 301 + 300}:" in str(caught.value)


@pytest.mark.parametrize(
    "text, words",
    [("abc", '"abc" is not a number'), ("", "is not a number"), ("0x10", "0x10"), ("1_000", "1_000"), ("1,5", "1,5")],
)
@pytest.mark.parametrize("index", [0, 70_000])
def test_text_that_does_not_parse(text, words, index):
    for dtype in (object, "U9"):
        array = np.full(70_001, "1", dtype)
        array[index] = text
        for to in ("float32", "int4", "bool"):
            with pytest.raises(CastError, match=f"element {index}: .*{words}") as caught:
                tc.cast(array, to)
            assert (caught.value.index, caught.value.code) == (index, "parse")


def test_objects_that_are_no_text():
    array = np.full(70_001, "1", object)
    array[70_000] = 1.5
    with pytest.raises(CastError, match="element 70000: an array of objects must hold strings, not float") as caught:
        tc.cast(array, "float32")
    assert caught.value.index == 70_000


def test_text_too_wide_for_its_array():
    numbers = np.ones(70_001, np.float32)
    numbers[70_000] = 12345
    with pytest.raises(CastError, match="element 70000: .*does not fit.*wider type") as caught:
        tc.cast(numbers, np.dtype("U5"))
    assert caught.value.index == 70_000


@pytest.mark.parametrize(
    "rows, words",
    [
        ([[1, 2], [3]], "rows of this list have different lengths"),
        (([1.0], [2.0, 3.0]), "rows of this tuple have different lengths"),
        ([[1, 2], 3], "different lengths"),
        ([X, X[:1]], "different lengths"),
        ([[1, 2], [3, 4]], r"a list has no dtype of its own; pass numpy.array\(x, dtype=numpy.float32\)"),
    ],
)
def test_lists(rows, words):
    with pytest.raises(TypeError, match=words):
        tc.cast(rows, "float16")


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5], "b": [1, 2]})
    with pytest.raises(TypeError, match=r"a dtype for each column; pass x.to_numpy\(\), or cast the columns one by one"):
        tc.cast(frame, "float16")
    assert tc.cast(frame["a"].to_numpy(), "float16").tolist() == [1.5, 2.5]


def test_traced_arrays_of_jax():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="traced JAX array has no elements yet.*jax.pure_callback"):
        jax.jit(lambda x: tc.cast(x, "float16"))(np.float32([1]))


@pytest.mark.parametrize("x, words", [(1.5, r"numpy.float32\(1.5\)"), (None, "cannot cast an object of type NoneType")])
def test_what_is_no_array(x, words):
    with pytest.raises(TypeError, match=words):
        tc.cast(x, "float16")


def test_files(tmp_path):
    with pytest.raises(CastError) as caught:
        tc.inspect(tmp_path / "absent.npy", stats=True)
    assert caught.value.code == "io"
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(CastError, match="did you mean float16"):
        tc.inspect(tmp_path / "x.npy", stats=True, candidates=["flaot16"])
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        tc.inspect(tmp_path / "x.npy", stats=True, nothing=1)
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 64)
    for call in (tc.inspect, lambda path: tc.convert(path, tmp_path / "out.npz", "float16")):
        with pytest.raises(CastError) as caught:
            call(tmp_path / "broken.safetensors")
        assert caught.value.code == "parse"
    assert not (tmp_path / "out.npz").exists()


def test_the_exception_belongs_to_the_package():
    assert (CastError.__module__, CastError.__qualname__) == ("tensorcast", "CastError")
    with pytest.raises(tc.CastError):
        tc.cast(X, "nothing")


@pytest.mark.parametrize(
    "word", "f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 fp8 float8 fp6 float6 int float".split()
)
def test_words_that_mean_several_types_are_refused(word):
    with pytest.raises(CastError) as caught:
        tc.cast(np.float32([1]), word)
    assert caught.value.code == "invalid_argument"


def test_a_byte_order_makes_a_word_numpys():
    assert tc.cast(np.float64([1.5]), "<f4").dtype == np.float32
    assert tc.cast(np.float64([1.5]), "=i8").dtype == np.int64
    assert tc.cast(np.float64([1.5]), "|u1").dtype == np.uint8
