# SPDX-License-Identifier: Apache-2.0
"""Shapes, strides, byte orders and out=: the result never depends on how the source lies in memory."""

import ml_dtypes
import numpy as np
import pytest
from arrays import NUMPY_TYPES, SUB_BYTE, codes, numpy_type, packed, samples

import tensorcast as tc
from tensorcast import CastError

CUBE = np.random.default_rng(4).normal(0, 50, (6, 8, 10)).astype(np.float32)
LAYOUTS = {
    "every other": lambda x: x[..., ::2],
    "backwards": lambda x: x[::-1, :, ::-1],
    "transposed": lambda x: x.T,
    "axes moved": lambda x: np.moveaxis(x, 0, 1),
    "Fortran": np.asfortranarray,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "one axis of one": lambda x: x[:, 3:4],
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype),
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "big-endian, transposed": lambda x: x.astype(x.dtype.newbyteorder(">")).T,
}


@pytest.mark.parametrize("order", ["C", "K"])
@pytest.mark.parametrize("to", ["float16", "float64", "float8_e4m3fn", "int8", "int4", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, to, order):
    array = LAYOUTS[layout](CUBE)
    result = tc.cast(array, to, order=order)
    assert result.shape == array.shape and result.dtype.isnative
    if order == "C":
        assert result.flags.c_contiguous
    else:
        assert result.strides == np.empty_like(array, result.dtype, order="K").strides
    expected = tc.cast(np.array(array, np.float32, order="C"), to)
    assert np.array_equal(codes(result), codes(expected))


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_every_type_with_strides_and_as_an_empty_array(name):
    array = samples(name)[:210]
    array = np.resize(array, (7, 30)).astype(array.dtype)
    strided = array[::2, ::-3]
    assert np.array_equal(codes(tc.cast(strided, "float32")), codes(tc.cast(np.ascontiguousarray(strided), "float32")))
    assert np.array_equal(
        codes(tc.cast(CUBE[::2, ::3], name)), codes(tc.cast(np.ascontiguousarray(CUBE[::2, ::3]), name))
    )
    for shape in [(0,), (3, 0), (0, 5, 2)]:
        assert tc.cast(np.empty(shape, numpy_type(name)), "float16").shape == shape
        assert tc.cast(np.empty(shape, np.float32), name).shape == shape
    zero_d = tc.cast(array[0, 1], "float32")
    assert zero_d.shape == () and codes(zero_d) == codes(tc.cast(array[:1, 1:2], "float32"))[0, 0]


def test_long_strided_arrays():
    """Longer than one block, rows that do not divide it, both sides of the GIL's release."""
    array = np.random.default_rng(1).normal(0, 3, (331, 1021)).astype(np.float32)
    for view in (array.T, array[::-1], array[:, ::2], array.astype(">f4")):
        assert np.array_equal(tc.cast(view, "float16"), view.astype(np.float16))
        assert np.array_equal(
            codes(tc.cast(view, "int4")), codes(tc.cast(np.array(view, np.float32, order="C"), "int4"))
        )


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_transposed_arrays_in_tiles(name):
    """Large enough for tiles, with edges that tiles do not divide, of every width; other axes around them."""
    base = np.resize(samples(name), (3, 331, 257)).astype(numpy_type(name))
    for view in (
        base.transpose(0, 2, 1),
        base.transpose(2, 1, 0),
        base.transpose(1, 2, 0),
        base[:, ::-1].transpose(2, 0, 1),
        base[1].T[::-1],
        base[:, :, ::2].transpose(0, 2, 1),
        base.transpose(0, 2, 1)[..., None],
        base[1].T[None, :, None],
        base.reshape(-1, 3).T,
        base.reshape(3, -1).T,
        base.astype(base.dtype.newbyteorder(">")).transpose(0, 2, 1) if base.itemsize > 1 else base.T,
    ):
        dense = np.array(view, view.dtype.newbyteorder("="), order="C")
        for to in ("float32", "float16", name, "uint4"):
            if hasattr(ml_dtypes, to) or hasattr(np, to):
                assert np.array_equal(codes(tc.cast(view, to)), codes(tc.cast(dense, to))), (view.shape, to)
    _, report = tc.cast(base.transpose(0, 2, 1), "float8_e5m2", report=True)
    _, expected = tc.cast(np.ascontiguousarray(base.transpose(0, 2, 1)), "float8_e5m2", report=True)
    assert (report.count, report.inexact, report.saturated) == (expected.count, expected.inexact, expected.saturated)


def test_transposed_targets():
    source = np.random.default_rng(2).normal(size=(331, 257)).astype(np.float32)
    out = np.empty((257, 331), np.float16).T
    assert tc.cast(source, "float16", out=out) is out and np.array_equal(out, source.astype(np.float16))
    swapped = np.empty((331, 257), ">f2")
    assert np.array_equal(tc.cast(np.asfortranarray(source), "float16", out=swapped), source.astype(np.float16))


def test_read_only_input_and_memmap(tmp_path):
    array = CUBE.copy()
    array.flags.writeable = False
    assert np.array_equal(tc.cast(array, "float16"), CUBE.astype(np.float16))
    CUBE.tofile(tmp_path / "cube")
    mapped = np.memmap(tmp_path / "cube", np.float32, "r", shape=CUBE.shape)
    result = tc.cast(mapped, "float16")
    assert type(result) is np.ndarray and np.array_equal(result, CUBE.astype(np.float16))


def test_buffers_and_numpy_scalars():
    assert tc.cast(b"\x01\x02", "float32").tolist() == [1.0, 2.0]
    assert tc.cast(memoryview(np.int16([3, 4])), "float32").tolist() == [3.0, 4.0]
    assert tc.cast(np.float32(1.5), "float16").tolist() == 1.5
    assert tc.cast(ml_dtypes.bfloat16(1.5), "float16").tolist() == 1.5


def test_copy():
    array = np.float32([1, 2])
    assert tc.cast(array, "float32", copy=False) is array
    copied = tc.cast(array, "float32")
    assert copied is not array and not np.shares_memory(copied, array)
    assert tc.cast(array, "float16", copy=False).dtype == np.float16
    assert tc.cast(array, "float32", copy=False, scale=2).tolist() == [2, 4]
    swapped = array.astype(">f4")
    assert tc.cast(swapped, "float32", copy=False).dtype.isnative


def test_out():
    out = np.empty(CUBE.shape, np.float16)
    assert tc.cast(CUBE, "float16", out=out) is out
    assert np.array_equal(out, CUBE.astype(np.float16))
    strided = np.zeros((6, 8, 20), np.float16)[..., ::2]
    tc.cast(CUBE, "float16", out=strided)
    assert np.array_equal(strided, out) and not strided.base[..., 1::2].any()
    swapped = np.empty(CUBE.shape, ">f2")
    tc.cast(CUBE, "float16", out=swapped)
    assert np.array_equal(swapped, out)
    nibbles = np.zeros(CUBE.shape, ml_dtypes.int4)
    assert tc.cast(CUBE, "int4", out=nibbles) is nibbles
    assert np.array_equal(codes(nibbles), codes(tc.cast(CUBE, "int4")))
    with_report, report = tc.cast(CUBE, "float16", out=out, report=True)
    assert with_report is out and report.count == CUBE.size


def test_out_in_the_same_memory():
    array = np.random.default_rng(5).normal(size=(1 << 20) + 3).astype(np.float64)
    expected = array.astype(np.float32)
    out = array.view(np.float32)[: array.size]
    tc.cast(array, "float32", out=out)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: (x[:-1], x[1:]),
        lambda x: (x[:5], x[4::-1]),
        lambda x: (x.view(np.int16)[:10], x[:10]),
        lambda x: (x[:8].reshape(2, 4), x[:8].reshape(2, 4)[::-1]),
    ],
)
def test_overlapping_out_is_refused(make):
    memory = np.arange(100, dtype=np.float32)
    before = memory.copy()
    source, out = make(memory)
    with pytest.raises(CastError, match="overlaps"):
        tc.cast(source, "float32", out=out)
    assert np.array_equal(memory, before)


@pytest.mark.parametrize(
    "out, words",
    [
        (np.empty(3, np.float16), "shape"),
        (np.empty((2, 1), np.float16), "shape"),
        (np.empty(2, np.float32), "dtype"),
        (np.empty(2, ml_dtypes.bfloat16), "dtype"),
    ],
)
def test_wrong_out_is_refused(out, words):
    with pytest.raises(CastError, match=words):
        tc.cast(np.float32([1, 2]), "float16", out=out)


def test_unwritable_out_is_refused():
    out = np.zeros(2, np.float16)
    out.flags.writeable = False
    with pytest.raises(CastError, match="read-only"):
        tc.cast(np.float32([1, 2]), "float16", out=out)
    with pytest.raises(TypeError, match="numpy.ndarray"):
        tc.cast(np.float32([1, 2]), "float16", out=[0, 0])
    assert not out.any()


@pytest.mark.parametrize("name", SUB_BYTE)
def test_packed(name):
    array = np.arange(37, dtype=np.float32) % 2
    single = tc.cast(array, name)
    bytes_ = tc.cast(array, name, packed=True)
    bits = next(row.bits for row in tc.dtypes() if row.name == name)
    assert bytes_.dtype == np.uint8 and bytes_.shape == (-(-single.size * bits // 8),)
    back = tc.cast(bytes_, "float32", packed=True, from_=name)
    big = tc.cast(bytes_, np.dtype(">f4"), packed=True, from_=name)
    assert big.dtype == ">f4" and np.array_equal(big, back)
    assert np.array_equal(back[:37], array) and not back[37:].any()
    assert np.array_equal(tc.cast(single[::-1], "uint8", packed=True), array[::-1])
    assert tc.cast(single.reshape(37, 1), "uint8", packed=True).shape == (37, 1)
    assert np.array_equal(tc.cast(single, name, packed=True), bytes_)
    assert np.array_equal(tc.cast(bytes_, name, packed=True, from_=name), bytes_)
    assert np.array_equal(tc.cast(array.astype(str), name, packed=True), bytes_)
    assert np.array_equal(tc.cast(tc.cast(bytes_, str, packed=True, from_=name), "float32")[:37], array)
    result, report = tc.cast(array, name, packed=True, report=True)
    assert np.array_equal(result, bytes_) and report.count == 37


def test_packed_arguments():
    codes_ = np.uint8([0x21])
    assert tc.cast(codes_, "int8", packed=True, from_="int4").tolist() == [1, 2]
    with pytest.raises(CastError, match="under 8 bits"):
        tc.cast(codes_, "int8", packed=True, from_="int8")
    with pytest.raises(CastError, match="under 8 bits"):
        tc.cast(np.int16([1]), "int8", packed=True, from_="int4")
    with pytest.raises(ValueError, match="packed=True"):
        tc.cast(codes_, "int8", from_="int4")
    with pytest.raises(ValueError, match="out="):
        tc.cast(codes_, "int4", packed=True, out=codes_)


@pytest.mark.parametrize("to", [">f4", ">f2", ">f8", ">i2", ">u8", np.dtype(">f4"), np.dtype(">i4")])
def test_big_endian_targets(to):
    for array in (CUBE, CUBE.T, CUBE.astype(">f4"), CUBE.astype(ml_dtypes.bfloat16)):
        result = tc.cast(array, to)
        assert result.dtype == np.dtype(to) and not result.dtype.isnative
        native = tc.cast(array, np.dtype(to).newbyteorder("="))
        assert np.array_equal(result, native) and result.astype(native.dtype).tobytes() == native.tobytes()
    assert tc.cast(np.array(["1.5", "-2"]), to).tolist() in ([1.5, -2.0], [1, -2], [1, 2**64 - 2])


def test_byte_orders_that_stay():
    array = CUBE.astype(">f4")
    assert tc.cast(array, ">f4", copy=False) is array
    assert tc.cast(array, "float32", copy=False).dtype.isnative
    assert tc.cast(array, "float32", order="K").dtype.isnative
    assert tc.cast(CUBE, "<f4", copy=False) is CUBE
    out = np.empty(CUBE.shape, ">f2")
    assert tc.cast(CUBE, ">f2", out=out) is out and np.array_equal(out, CUBE.astype(np.float16))


class OverDlpack:
    """An array whose memory is lent by DLPack, with its strides."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **versions):
        return tc.dlpack(self.array).__dlpack__(**versions)


def random_view(random, name):
    """An array of any layout: axes in any order, reversed, with gaps, repeated, in the other byte order."""
    shape = tuple(random.integers(1, 9, random.integers(1, 4)))
    steps = random.integers(1, 4, len(shape))
    base = np.resize(samples(name), shape * steps).astype(numpy_type(name))
    view = base[tuple(slice(None, None, int(step)) for step in steps)]
    view = view[tuple(slice(None, None, int(way)) for way in random.choice([1, -1], len(shape)))]
    view = view.transpose(random.permutation(len(shape)))
    if random.random() < 0.2:
        view = np.broadcast_to(view[:1], view.shape)
    if random.random() < 0.2 and view.dtype.kind in "fiu" and view.dtype.itemsize > 1:
        view = view.astype(view.dtype.newbyteorder(">"), order="K")
    return view


def test_random_layouts_of_every_type():
    random = np.random.default_rng(49)
    for _ in range(1500):
        from_name, name = random.choice(NUMPY_TYPES, 2)
        view = random_view(random, from_name)
        case = (from_name, name, view.shape, view.strides)
        expected = tc.cast(np.array(view, numpy_type(from_name), order="C"), name)
        assert np.array_equal(codes(tc.cast(view, name)), codes(expected)), case
        # Into every other element, from the end: what lies between stays.
        memory = np.resize(samples(name), [2 * length for length in view.shape]).astype(numpy_type(name))
        before = codes(memory).copy()
        every_other = tuple(slice(None, None, -2) for _ in view.shape)
        between = np.ones(memory.shape, bool)
        between[every_other] = False
        out = memory[every_other]
        assert tc.cast(view, name, out=out) is out
        assert np.array_equal(codes(out), codes(expected)), case
        assert np.array_equal(codes(memory)[between], before[between]), case
        if view.dtype.isnative:
            assert np.array_equal(codes(np.asarray(tc.cast(OverDlpack(view), name))), codes(expected)), case
        if name in SUB_BYTE:  # a strided source beside packed results
            assert np.array_equal(tc.cast(view, name, packed=True), packed(expected)), case


@pytest.mark.parametrize("name", SUB_BYTE)
def test_large_transposed_arrays_become_packed_ones(name):
    array = (np.arange(301 * 199) * 7 % 2).astype(np.float32).reshape(199, 301).T
    expected = tc.cast(np.ascontiguousarray(array), name, packed=True)
    assert np.array_equal(tc.cast(array, name, packed=True), expected)


def test_targets_whose_elements_share_memory_are_refused():
    row = np.zeros((1, 5), np.float16)
    out = np.lib.stride_tricks.as_strided(row, (3, 5), (0, row.strides[1]))
    with pytest.raises(CastError, match="elements of the target share memory"):
        tc.cast(np.ones((3, 5), np.float32), "float16", out=out)
    assert not row.any()
