# SPDX-License-Identifier: Apache-2.0
"""Zarr's codec cast_value, by its text and by what its reference implementation gives."""

import ml_dtypes
import numpy as np
import pytest

from tensorcast import CastError
from tensorcast.zarr import cast_array, cast_array_into


def cast(values, dtype, to, rounding="nearest-even", out_of_range=None, mapped=None):
    return cast_array(
        np.array(values, dtype), target_dtype=to, rounding_mode=rounding, out_of_range_mode=out_of_range,
        scalar_map_entries=mapped,
    )  # fmt: skip


def test_rounding_comes_before_the_range():
    assert cast([127.9, -0.4], "float64", "int8", "towards-zero").tolist() == [127, 0]
    assert cast([-0.4], "float64", "uint8", "towards-zero").tolist() == [0]
    with pytest.raises(CastError, match="127.9"):
        cast([127.9], "float64", "int8")
    with pytest.raises(CastError, match="element 1"):
        cast([0.0, -0.4], "float64", "uint8", "towards-negative")
    assert cast([65530.0], "float32", "float16", "towards-zero").tolist() == [65504]


@pytest.mark.parametrize(
    "rounding", ["nearest-even", "nearest-away", "towards-zero", "towards-positive", "towards-negative"]
)
def test_clamp_maps_to_infinity(rounding):
    clamped = cast([1e10, -1e10, 65504, np.inf], "float64", "float16", rounding, "clamp")
    assert clamped.tolist() == [np.inf, -np.inf, 65504, np.inf]
    assert cast([300, -300], "int32", "int8", rounding, "clamp").tolist() == [127, -128]


def test_nan_and_infinity_are_errors_where_the_type_has_none():
    for mode in (None, "clamp", "wrap"):
        for bad in (np.nan, np.inf):
            with pytest.raises(CastError):
                cast([bad], "float32", "int8", "nearest-even", mode)
    for bad in (np.nan, np.inf):
        with pytest.raises(CastError):
            cast([bad], "float32", "float4_e2m1fn", "nearest-even", "clamp")
    assert np.isnan(cast([np.nan], "float32", "float8_e4m3fn").astype(np.float32)[0])
    with pytest.raises(CastError):
        cast([np.inf], "float32", "float8_e4m3fn", "nearest-even", "clamp")
    assert cast([-0.0], "float32", "float16").tobytes() == b"\x00\x80"


def test_wrap():
    assert cast([256, -1, 300], "int64", "uint8", "nearest-even", "wrap").tolist() == [0, 255, 44]
    with pytest.raises(CastError, match="wrap"):
        cast([1.0], "float64", "float32", "nearest-even", "wrap")


def test_the_first_equal_entry_wins():
    assert cast([np.nan, 1, 2], "float32", "uint8", mapped=[(np.nan, 255), (1, 2), (2, 3)]).tolist() == [255, 2, 3]
    assert cast([1, 1], "int32", "int8", mapped=[(1, 5), (1, 6)]).tolist() == [5, 5]
    # Integers beyond 2^53 are not their neighbours.
    assert cast([2**60, 2**60 + 1], "int64", "int8", out_of_range="clamp", mapped={2**60 + 1: -1}).tolist() == [127, -1]
    assert cast([2.0**53], "float64", "int8", out_of_range="clamp", mapped={2**53 + 1: 0}).tolist() == [127]


def test_entries_tell_the_sign_of_zero_and_values_of_other_types():
    assert np.signbit(cast([1, 2], "float32", "float64", mapped=[(1, -0.0), (2, 0.0)])).tolist() == [True, False]
    assert cast([1, 2], "float32", "int8", mapped=[(1, 3), (2, np.int64(4))]).tolist() == [3, 4]
    assert cast([0, 1], "float32", "int8", mapped=[(1, 0), (0, 5)]).tolist() == [5, 0]


def test_entries_of_strided_arrays():
    out = np.zeros((2, 4), np.int16)
    x = np.float32([[1, np.nan], [np.nan, 2]])
    cast_array_into(x.T, out[:, ::2], rounding_mode="nearest-even", scalar_map_entries=[(np.nan, -1)])
    assert out[:, ::2].tolist() == [[1, -1], [-1, 2]]
    assert np.isnan(x).sum() == 2


def test_into():
    out = np.empty(3, np.int16)
    cast_array_into(np.float32([1.5, 2.5, -2.5]), out, rounding_mode="nearest-away")
    assert out.tolist() == [2, 3, -3]
    with pytest.raises(CastError, match="shape"):
        cast_array_into(np.float32([1]), out, rounding_mode="nearest-away")


class Subclass(np.ndarray):
    """Which only the general form takes."""


MAPS = [
    None,
    [(np.nan, 0), (np.inf, 1.0), (-np.inf, -0.0)],
    {0.0: 3, -7: 1, 0.1: 2, 1e300: 5, 2**53: 6},
    [[float("nan"), 1], [5, 2], [5.0, 3], (1e39, 4), (2.5, 1000)],  # 1000 is an error where 2.5 occurs in int8
    [(float(i), i) for i in range(17)],
    [(5, np.nan), (-7, np.inf), (1, -0.0)],
    [(np.float32(1), 1)],
    [],
]


@pytest.mark.parametrize("entries", MAPS)
@pytest.mark.parametrize("source", ["float64", "float32", "float16", "int32"])
def test_plain_arrays_are_cast_as_the_general_form_casts_them(source, entries):
    random = np.random.default_rng(5)
    values = np.concatenate([[0, -0.0, 5, 0.1, -7, 1, 2.6, 127, 16], random.integers(-90, 90, 3000), random.uniform(-99, 99, 2000)])
    with np.errstate(invalid="ignore"):
        plain = np.where(np.arange(len(values)) % 97 == 3, np.nan, values).astype(source)
    plain[1::211] = -90
    if source.startswith("float"):
        plain[7::89], plain[8::89] = np.inf, -np.inf

    def made(x, to, rounding, out_of_range):
        try:
            result = cast_array(
                x, target_dtype=to, rounding_mode=rounding, out_of_range_mode=out_of_range, scalar_map_entries=entries
            )
        except CastError as error:
            return str(error)
        return result.dtype, result.shape, result.tobytes()

    arrays = [plain, plain[:0], plain[:1].reshape(()), plain[:5000].reshape(50, -1), plain[::-1], np.tile(plain, 9)]
    arrays += [np.where(np.isfinite(plain), plain, 1).astype(source), plain.astype(plain.dtype.newbyteorder())]
    for x in arrays:
        for to in ("int8", "uint16", "int64", np.float32, np.dtype("float16"), "bfloat16", "float8_e4m3fn", ">i2", "float"):
            for rounding in ("nearest-even", "towards-negative"):
                for out_of_range in (None, "clamp", "wrap"):
                    call = to, rounding, out_of_range
                    assert made(x, *call) == made(x.view(Subclass), *call), (x.shape, *call)


def test_wrong_words():
    with pytest.raises(CastError, match="nearest-odd"):
        cast([1], "int8", "int16", "nearest-odd")
    with pytest.raises(CastError, match="saturate"):
        cast([1], "int8", "int16", "nearest-even", "saturate")


@pytest.mark.parametrize("entries", [None, [(1, 1)]])
@pytest.mark.parametrize("out_of_range", [None, "clamp"])
@pytest.mark.parametrize("to", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3", "float8_e3m4"])
@pytest.mark.parametrize("step", [1, -1])
def test_infinity_is_in_the_range_of_types_that_have_it(step, to, out_of_range, entries):
    made = cast_array(np.float32([1, -np.inf, np.inf])[::step], target_dtype=to, rounding_mode="towards-zero",
                      out_of_range_mode=out_of_range, scalar_map_entries=entries)  # fmt: skip
    assert made.astype(np.float32).tolist() == [1, -np.inf, np.inf][::step]


@pytest.mark.filterwarnings("error")
def test_numbers_of_a_map_need_no_place_in_other_types():
    """0 has none in float8_e8m0fnu, whatever becomes of it."""
    made = cast_array(np.float32([0, 2]), target_dtype="float8_e8m0fnu", rounding_mode="nearest-even", scalar_map_entries=[(0, 4)])
    assert made.astype(np.float32).tolist() == [4, 2]
    powers = np.float32([0.25, 2]).astype(ml_dtypes.float8_e8m0fnu)
    assert cast_array(powers, target_dtype="uint8", rounding_mode="towards-zero", scalar_map_entries=[(0.25, 9)]).tolist() == [9, 2]
    missing = np.uint8([0xF1, 0x30]).view(ml_dtypes.float8_e3m4)  # a NaN that signals, and 1
    assert cast_array(missing, target_dtype="int8", rounding_mode="towards-zero", scalar_map_entries=[(np.nan, 7)]).tolist() == [7, 1]


TYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4", "int2",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_arrays_are_stored_as_every_type(name):
    zarr = pytest.importorskip("zarr")
    from tensorcast.zarr import CastValue

    if not hasattr(ml_dtypes, name) and not hasattr(np, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    fill = 1.0 if name == "float8_e8m0fnu" else 0.0
    array = zarr.create_array(
        {}, shape=(4,), chunks=(2,), dtype="float32", fill_value=fill, filters=[CastValue(data_type=name)], compressors=None
    )
    array[:3] = np.float32([1, 1, 1])
    assert array[:].tolist() == [1, 1, 1, fill]
    assert zarr.open_array(array.store)[:].tolist() == [1, 1, 1, fill]


def test_the_entry_point_is_found():
    pytest.importorskip("zarr")
    from importlib.metadata import entry_points

    assert any(point.value == "tensorcast.zarr:CastValue" for point in entry_points(group="zarr.codecs"))


def test_a_fill_value_that_does_not_survive_is_an_error():
    zarr = pytest.importorskip("zarr")
    from tensorcast.zarr import CastValue

    with pytest.raises(CastError, match="fill value nan does not survive"):
        zarr.create_array({}, shape=(2,), dtype="float32", fill_value=np.nan, filters=[CastValue(data_type="int16")])
    codec = CastValue(data_type="int16", scalar_map={"encode": [["NaN", -1]], "decode": [[-1, "NaN"]]})
    array = zarr.create_array({}, shape=(3,), dtype="float32", fill_value=np.nan, filters=[codec])
    array[0] = 7
    assert array[:2].tolist()[0] == 7 and np.isnan(array[1])
    one_way = CastValue(data_type="int16", scalar_map={"encode": [["NaN", -1]]})
    with pytest.raises(CastError, match="it comes back as -1"):
        zarr.create_array({}, shape=(2,), dtype="float32", fill_value=np.nan, filters=[one_way])


@pytest.mark.parametrize("order", "<>")
def test_bits_in_a_map_are_those_of_the_number_in_either_byte_order(order):
    zarr = pytest.importorskip("zarr")
    from tensorcast.zarr import CastValue

    codec = CastValue(data_type="int16", scalar_map={"encode": [["0x7fc00000", -1]], "decode": [[-1, "0x40400000"]]})
    array = zarr.create_array({}, shape=(2,), dtype=f"{order}f4", filters=[codec])
    array[:] = np.array([1, np.nan], f"{order}f4")
    assert array[:].tolist() == [1, 3]


@pytest.mark.parametrize("data_type, scalar_map, message", [
    ("bool", None, "the data_type is bool"), ("string", None, "integer and floating-point types"),
    ("complex64", None, "the data_type is complex64"), (5, None, "the name of a type, not 5"),
    ("int8", [], "has encode and decode"), ("int8", {"encode": None}, "a list of pairs"),
    ("int8", {"encode": [[1]]}, r"a list of pairs \[from, to\], not \[1\]"), ("int8", {"decode": "ab"}, "a list of pairs"),
    ("int8", {"encode": [["x", 1]]}, r"encode of scalar_map has no numbers of float32 and int8 in \['x', 1\]"),
    ("int8", {"decode": [[1, True]]}, "decode of scalar_map has no numbers"),
    ("int8", {"encode": [["0x7fc0000000", 1]]}, "encode of scalar_map has no numbers"),
])  # fmt: skip
def test_mistakes_are_named_when_an_array_is_made(data_type, scalar_map, message):
    zarr = pytest.importorskip("zarr")
    from tensorcast.zarr import CastValue

    with pytest.raises(CastError, match=message):
        codec = CastValue(data_type=data_type, scalar_map=scalar_map)
        zarr.create_array({}, shape=(2,), dtype="float32", filters=[codec])


def test_other_keys_are_errors():
    pytest.importorskip("zarr")
    from tensorcast.zarr import CastValue

    with pytest.raises(CastError, match="speed"):
        CastValue.from_dict({"name": "cast_value", "configuration": {"data_type": "int8", "speed": 1}})
    with pytest.raises(CastError, match="wrap"):
        CastValue(data_type="float16", out_of_range="wrap").validate(shape=(1,), dtype=_float32(), chunk_grid=None)


def _float32():
    from zarr.core.dtype import Float32

    return Float32()
