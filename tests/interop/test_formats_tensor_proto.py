# SPDX-License-Identifier: Apache-2.0
"""TensorProtos of the onnx package are read, those of tcast are read by it, and so is the test data that it ships."""

import pathlib

import ml_dtypes
import numpy as np
import onnx
import pytest
from array_files import (ML_TYPES, ONNX_TYPES, PACKED_TYPES, assert_same, bits, convert, dtype_of, load_npy, load_pb,
                         refuse, sample, save_pb)
from onnx import TensorProto, helper, numpy_helper

ONNX_NUMBERS = {name: helper.np_dtype_to_tensor_dtype(dtype_of(name)) for name in ONNX_TYPES}
TEST_DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


@pytest.mark.parametrize("name", ONNX_TYPES)
@pytest.mark.parametrize("shape", [(), (0, 2), (1,), (3, 5)])
def test_raw_data_of_every_type(run_tcast, tmp_path, name, shape):
    array = sample(name, shape)
    save_pb(tmp_path / "in.pb", array, "weight")
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", name)
    assert_same(load_pb(tmp_path / "out.pb"), array)
    assert onnx.load_tensor(tmp_path / "out.pb").name == "weight"
    assert (tmp_path / "out.pb").read_bytes() == (tmp_path / "in.pb").read_bytes()


@pytest.mark.parametrize("name", ONNX_TYPES)
def test_typed_data_of_every_type(run_tcast, tmp_path, name):
    array = sample(name, (4, 3))
    tensor = TensorProto(data_type=ONNX_NUMBERS[name], dims=array.shape, name="weight")
    if name in PACKED_TYPES:
        width = PACKED_TYPES[name] if PACKED_TYPES[name] != 6 else 8  # six bits: a value for each code
        codes = np.frombuffer(bits(array), np.uint8).reshape(-1, 8 // width)
        tensor.int32_data.extend((codes << np.arange(0, 8, width)).sum(axis=1).tolist())
    elif name in ("float32", "float64", "int64"):
        getattr(tensor, {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}[name]).extend(
            array.flatten().tolist())
    elif name in ("uint32", "uint64"):
        tensor.uint64_data.extend(array.flatten().tolist())
    elif name in ML_TYPES or name == "float16":
        tensor.int32_data.extend(array.view(f"u{array.dtype.itemsize}").flatten().tolist())
    else:
        tensor.int32_data.extend(array.flatten().astype(np.int32).tolist())
    (tmp_path / "in.pb").write_bytes(tensor.SerializeToString())
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", name)
    actual = load_pb(tmp_path / "out.pb")
    if name in ("float32", "float64"):  # Python's floats do not keep the payload of NaN
        np.testing.assert_array_equal(actual, array)
    else:
        assert_same(actual, array)
    assert onnx.load_tensor(tmp_path / "out.pb").HasField("raw_data")


@pytest.mark.parametrize("name", ONNX_TYPES)
def test_external_data_of_every_type(run_tcast, tmp_path, name):
    array = sample(name, (4, 3))
    tensor = numpy_helper.from_array(array, "weight")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.bin").write_bytes(bytes(4096) + tensor.raw_data + b"more")
    onnx.external_data_helper.set_external_data(tensor, "data/weights.bin", 4096, len(tensor.raw_data), checksum="0" * 40)
    tensor.ClearField("raw_data")
    (tmp_path / "in.pb").write_bytes(tensor.SerializeToString())
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", name)
    assert_same(load_pb(tmp_path / "out.pb"), array)
    assert not onnx.load_tensor(tmp_path / "out.pb").external_data


@pytest.mark.parametrize("location", ["/etc/hostname", "../weights.bin", "link.bin", "folder-link/weights.bin"])
def test_external_data_elsewhere_is_refused(run_tcast, tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(8))
    (folder / "link.bin").symlink_to("../weights.bin")
    (folder / "folder-link").symlink_to("..")
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    (folder / "in.pb").write_bytes(tensor.SerializeToString())
    assert location in refuse(run_tcast, folder / "in.pb", tmp_path / "out.pb", "--to", "float16")


def test_strings(run_tcast, tmp_path):
    array = np.array([["1.5", ""], ["é€", "😀"]], object)
    save_pb(tmp_path / "in.pb", array)
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", "float16", "--exclude", ".*")
    assert_same(load_pb(tmp_path / "out.pb"), array)
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.npy", "--to", "float16", "--exclude", ".*")
    assert np.load(tmp_path / "out.npy").tolist() == array.tolist()


def test_documentation_and_metadata_are_kept(run_tcast, tmp_path):
    tensor = numpy_helper.from_array(sample("int32"), "weight")
    tensor.doc_string = "what it is\nfor"
    tensor.metadata_props.add(key="origin", value="é")
    tensor.metadata_props.add(key="empty", value="")
    (tmp_path / "in.pb").write_bytes(tensor.SerializeToString())
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--rule", ".*=int64")
    read = onnx.load_tensor(tmp_path / "out.pb")
    assert (read.name, read.doc_string) == ("weight", tensor.doc_string)
    assert [(entry.key, entry.value) for entry in read.metadata_props] == [("origin", "é"), ("empty", "")]
    assert_same(numpy_helper.to_array(read), sample("int32").astype(np.int64))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float16", "float64"])
def test_float32_becomes_what_ml_dtypes_makes_of_it(run_tcast, tmp_path, name):
    array = np.linspace(-5, 5, 999, dtype=np.float32)
    save_pb(tmp_path / "in.pb", array)
    convert(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", name, "--verify")
    assert_same(load_pb(tmp_path / "out.pb"), array.astype(dtype_of(name)))


def test_segments_and_complex_numbers_are_refused(run_tcast, tmp_path):
    tensor = helper.make_tensor("x", TensorProto.COMPLEX64, [1], [1 + 2j])
    (tmp_path / "in.pb").write_bytes(tensor.SerializeToString())
    assert "COMPLEX64" in refuse(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", "float32")
    tensor = numpy_helper.from_array(np.zeros(2, np.float32))
    tensor.segment.begin = 0
    (tmp_path / "in.pb").write_bytes(tensor.SerializeToString())
    assert "segment" in refuse(run_tcast, tmp_path / "in.pb", tmp_path / "out.pb", "--to", "float32")


def shipped_tensors() -> dict:
    """Paths of shipped TensorProtos by element type and by how their elements are stored: a few of each."""
    groups = {}
    for path in sorted(TEST_DATA.rglob("*.pb")):
        if path.stat().st_size > 1 << 20:
            continue
        tensor = TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
            numpy_helper.to_array(tensor)
        except Exception:  # sequences, maps and optionals lie among them
            continue
        size = tensor.ByteSize()
        tensor.DiscardUnknownFields()
        is_tensor = tensor.ByteSize() == size == path.stat().st_size
        if not is_tensor or tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
            continue
        fields = tuple(field.name for field, _ in tensor.ListFields() if field.name.endswith("_data"))
        members = groups.setdefault((TensorProto.DataType.Name(tensor.data_type), fields, len(tensor.dims)), [])
        if len(members) < 4:
            members.append(path)
    return groups


SHIPPED = shipped_tensors()


def test_the_wheel_ships_tensors_of_many_kinds():
    assert {kind for kind, _, _ in SHIPPED} >= {"FLOAT", "DOUBLE", "INT64", "STRING"}


@pytest.mark.parametrize("group", SHIPPED, ids=lambda group: f"{group[0]}-{'+'.join(group[1])}-{group[2]}d")
def test_shipped_tensors_are_read_and_converted(run_tcast, tmp_path, group):
    for path in SHIPPED[group]:
        expected = load_pb(path)
        # Unchanged, through .pb and through .npy.
        convert(run_tcast, path, tmp_path / "copy.pb", "--to", "float32", "--exclude", ".*")
        assert_same(load_pb(tmp_path / "copy.pb"), expected)
        convert(run_tcast, path, tmp_path / "copy.npy", "--to", "float32", "--exclude", ".*")
        name = expected.dtype.name
        if expected.dtype.kind in "OU":
            assert np.load(tmp_path / "copy.npy").tolist() == expected.tolist()
            continue
        assert_same(load_npy(tmp_path / "copy.npy", name), expected)
        # Changed: exact for every type but the widest, so one rounding whatever the way.
        convert(run_tcast, path, tmp_path / "double.pb", "--rule", ".*=float64", "--verify")
        actual = load_pb(tmp_path / "double.pb")
        assert actual.dtype == np.float64
        np.testing.assert_array_equal(actual, expected.astype(np.float64))
        if name in ("float32", "float64", "float16"):
            convert(run_tcast, path, tmp_path / "half.pb", "--to", "bfloat16", "--allow-loss")
            if name != "float64":  # ml_dtypes takes float64 by way of float32 and rounds twice
                assert_same(load_pb(tmp_path / "half.pb"), expected.astype(ml_dtypes.bfloat16))
