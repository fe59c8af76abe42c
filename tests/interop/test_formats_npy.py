# SPDX-License-Identifier: Apache-2.0
"""Files that NumPy writes are read, and files that tcast writes are read by NumPy, with ml_dtypes' types and results."""

import io

import numpy as np
import pytest
from array_files import (ML_TYPES, NUMBER_TYPES, NUMPY_TYPES, PACKED_TYPES, assert_same, bits, convert, dtype_of, is_float, load_npy,
                         refuse, sample)


def save(path, array):
    """As np.save does, but ml_dtypes' float8_e5m2 calls itself <f1, which NumPy cannot load: both must be read."""
    np.save(path, array)
    return path


def header(path):
    content = path.read_bytes()
    return content[: content.index(b"\n") + 1]


@pytest.mark.parametrize("name", NUMBER_TYPES)
def test_copies_keep_every_code(run_tcast, tmp_path, name):
    array = sample(name)
    source = save(tmp_path / "in.npy", array)
    convert(run_tcast, source, tmp_path / "out.npy", "--to", name, *(["--from", name] if name in ML_TYPES else []))
    assert_same(load_npy(tmp_path / "out.npy", name), array)
    if name != "float8_e5m2":
        assert (tmp_path / "out.npy").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", [name for name in ML_TYPES if is_float(name)] + ["float64", "float16"])
def test_float32_becomes_what_ml_dtypes_makes_of_it(run_tcast, tmp_path, name):
    # Inside of the range of every type: beyond it ml_dtypes and ONNX differ on purpose.
    array = np.concatenate([np.linspace(0.25, 5.75, 300), 2.0 ** np.arange(-2, 3)]).astype(np.float32)
    save(tmp_path / "in.npy", array)
    options = ["--round-mode", "nearest"] if name == "float8_e8m0fnu" else []
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", name, "--verify", *options)
    assert_same(load_npy(tmp_path / "out.npy", name), array.astype(dtype_of(name)))


@pytest.mark.parametrize("name", ML_TYPES)
def test_every_code_becomes_float32_as_ml_dtypes_says(run_tcast, tmp_path, name):
    width = dtype_of(name).itemsize
    array = np.arange(256 if width == 1 else 65536, dtype=f"u{width}")
    if name in PACKED_TYPES:
        array = array[: 1 << PACKED_TYPES[name]]
    array = array.view(dtype_of(name))
    save(tmp_path / "in.npy", array)
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--from", name, "--rule", ".*=float32")
    expected = array.astype(np.float32)
    actual = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    assert bits(actual[numbers]) == bits(expected[numbers])  # the sign of zero too


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (1, 1, 1), (7,), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", ["float32", "int4", "uint2", "float6_e2m3fn"])
def test_shapes(run_tcast, tmp_path, shape, name):
    array = sample(name, shape)
    save(tmp_path / "in.npy", array)
    options = ["--from", name] if name in ML_TYPES else []
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", name, *options)
    assert_same(load_npy(tmp_path / "out.npy", name), array)


@pytest.mark.parametrize("name", [name for name in NUMPY_TYPES if name != "bool"])
def test_big_endian_and_fortran_order(run_tcast, tmp_path, name):
    array = sample(name, (4, 3, 5))
    save(tmp_path / "big.npy", array.astype(array.dtype.newbyteorder(">")))
    save(tmp_path / "fortran.npy", np.asfortranarray(array))
    save(tmp_path / "both.npy", np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))))
    for source in ("big", "fortran", "both"):
        convert(run_tcast, tmp_path / f"{source}.npy", tmp_path / "out.npy", "--to", name)
        assert_same(np.load(tmp_path / "out.npy"), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(run_tcast, tmp_path, version):
    array = sample("float32")
    with open(tmp_path / "in.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "float32")
    assert_same(np.load(tmp_path / "out.npy"), array)


@pytest.mark.parametrize("shape", [(), (5,), (12345,), (2, 3), (1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_headers_are_those_of_numpy(run_tcast, tmp_path, shape):
    array = np.zeros(shape, np.uint8)
    save(tmp_path / "in.npy", array)
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--rule", ".*=float64")
    expected = io.BytesIO()
    np.save(expected, array.astype(np.float64))
    assert (tmp_path / "out.npy").read_bytes() == expected.getvalue()


def test_strings(run_tcast, tmp_path):
    array = np.array([["1.5", "-inf", "nan"], ["1e3", " 7 ", "0.1"]])
    for number, source in enumerate((array, array.astype("S"), array.astype(">U9"), np.asfortranarray(array))):
        save(tmp_path / f"{number}.npy", source)
        convert(run_tcast, tmp_path / f"{number}.npy", tmp_path / "out.npy", "--rule", ".*=float32")
        assert_same(np.load(tmp_path / "out.npy"), np.char.strip(array).astype(np.float32))


def test_numbers_become_strings(run_tcast, tmp_path):
    save(tmp_path / "in.npy", np.array([1.5, -0.0, np.inf, 1e10], np.float32))
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "string", "--verify")
    assert np.load(tmp_path / "out.npy").tolist() == ["1.5", "-0.0", "INF", "10000000000.0"]


def test_unicode_survives(run_tcast, tmp_path):
    array = np.array(["", "a", "é€", "😀 ok", "a\0b"])
    save(tmp_path / "in.npy", array)
    convert(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "float16", "--exclude", ".*")
    assert_same(np.load(tmp_path / "out.npy"), array)


@pytest.mark.parametrize(
    "array, words",
    [
        (np.array([None, {}]), "Python objects in npy are not supported"),
        (np.zeros(2, "c8"), "complex"),
        (np.zeros(2, "M8[s]"), "dates and times"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "structured"),
        (np.zeros(2, np.longdouble), "width"),
        (np.zeros(2, "V3"), "opaque"),
    ],
)
def test_what_has_no_type_is_refused(run_tcast, tmp_path, array, words):
    np.save(tmp_path / "in.npy", array, allow_pickle=True)
    assert words in refuse(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "float32")


def test_opaque_types_need_from(run_tcast, tmp_path):
    save(tmp_path / "in.npy", sample("bfloat16"))
    assert "--from" in refuse(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "float32")
    wrong = refuse(run_tcast, tmp_path / "in.npy", tmp_path / "out.npy", "--to", "float32", "--from", "float8_e4m3fn")
    assert "2 bytes" in wrong and "bfloat16" in wrong
