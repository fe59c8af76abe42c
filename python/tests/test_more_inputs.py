# SPDX-License-Identifier: Apache-2.0
"""Series, tensors of OpenVINO, TensorProtos, nested containers, packed bytes with a shape, scales from the data."""

import fractions
import io
import types
import typing
import warnings
import zipfile

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError, _names

X = np.float32([[1, 2, 300], [0.5, -7, 3]])


def test_series_of_pandas():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.5, float("nan"), 2.5])
    assert np.array_equal(tc.cast(series, "float16"), np.float16([1.5, np.nan, 2.5]), equal_nan=True)
    assert tc.cast(pandas.Index([1, 2]), "int8").dtype == np.int8
    assert tc.cast({"a": series, "b": 5}, "float16")["a"].dtype == np.float16
    assert tc.cast(pandas.Series(["1", "2"]), "float32").tolist() == [1, 2]
    with pytest.raises(TypeError, match="1 missing values; pass x.fillna"):
        tc.cast(pandas.Series([1, None], dtype="Int64"), "float16")
    for name in ("Float32", "Float64"):  # to NumPy it is NaN, and 0 as an integer
        with pytest.raises(TypeError, match="1 missing values; pass x.fillna"):
            tc.cast(pandas.Series([1, None], dtype=name), "int8")
        assert tc.cast(pandas.Series([1, 2], dtype=name), "int8").tolist() == [1, 2]


def test_series_of_polars():
    """By its interface: the library itself is not among the tests' requirements."""

    class Series:
        __module__ = "polars.series.series"

        def __init__(self, values, nulls=0):
            self.values, self.nulls = values, nulls

        def null_count(self):
            return self.nulls

        def to_numpy(self):
            return self.values

    assert tc.cast(Series(X[0]), "int8", out_of_range="saturate").tolist() == [1, 2, 127]
    with pytest.raises(TypeError, match="2 missing values; pass x.fill_null"):
        tc.cast(Series(X[0], 2), "float16")


def test_tensors_of_openvino(tmp_path):
    openvino = pytest.importorskip("openvino")
    assert np.array_equal(tc.cast(openvino.Tensor(X), "float16"), X.astype(np.float16))
    half = tc.cast(X, "bfloat16")
    tensor = openvino.Tensor(half.view(np.uint8), openvino.Shape([2, 3]), openvino.Type.bf16)
    assert np.array_equal(tc.cast(tensor, "float32"), half.astype(np.float32))
    codes = tc.cast(X, "int4", packed=True)
    packed = openvino.Tensor(codes, openvino.Shape([2, 3]), openvino.Type.i4)
    assert np.array_equal(tc.cast(packed, "float32"), tc.cast(tc.cast(X, "int4"), "float32"))
    tc.save(tmp_path / "x.npz", {"x": tensor})
    assert tc.load(tmp_path / "x.npz", from_="bfloat16")["x"].dtype == ml_dtypes.bfloat16


def test_tensor_protos():
    onnx = pytest.importorskip("onnx")
    assert np.array_equal(tc.cast(onnx.numpy_helper.from_array(X), "float16"), X.astype(np.float16))
    proto = onnx.helper.make_tensor("x", onnx.TensorProto.BFLOAT16, [2], [1.5, 2.5])
    assert tc.cast(proto, "float32").tolist() == [1.5, 2.5]
    done = tc.cast({"x": proto}, "float32")
    assert done["x"].tolist() == [1.5, 2.5]
    proto.data_location = onnx.TensorProto.EXTERNAL
    with pytest.raises(TypeError, match="load_external_data_for_model"):
        tc.cast(proto, "float32")


def test_nested_containers():
    torch = pytest.importorskip("torch")
    shared = torch.ones(2)
    point = types.SimpleNamespace(x=1)
    state = {
        "model": {"w": X, "tied": shared, 3: X},
        "others": [{"again": shared, "betas": (0.9, 0.99)}, (X, point)],
        "step": 5,
    }
    done, reports = tc.cast(state, "float16", exclude=r"\.3$", rules={r"^others\.1\.0$": "int8"}, report=True)
    assert done["model"]["w"].dtype == np.float16 and done["model"][3].dtype == np.float32
    assert done["model"]["tied"] is done["others"][0]["again"] and done["model"]["tied"].dtype == torch.float16
    assert type(done["others"][1]) is tuple and done["others"][1][0].dtype == np.int8
    assert done["others"][1][1] is point and done["others"][0]["betas"] == (0.9, 0.99) and done["step"] == 5
    assert set(reports) == {"model.w", "model.tied", "others.0.again", "others.1.0"}
    with pytest.raises(TypeError, match="tensor 'a.0'"):
        tc.cast({"a": [np.ma.array([1.0])]}, "float16")


def test_scales_of_rules(tmp_path):
    rules = [tc.Rule("^a", "int8", scale=2), tc.Rule("^b", "float16")]
    done = tc.cast({"a": X, "b": X, "c": X}, "float32", rules=rules, scale=4, out_of_range="saturate")
    assert done["a"].tolist() == [[2, 4, 127], [1, -14, 6]]
    assert done["b"][0, 0] == 4 and done["c"][0, 0] == 4
    assert tc.cast({"a": X}, "float32", rules=[tc.Rule("a", "float32", scale=1)], scale=4)["a"][0, 0] == 1
    with pytest.raises(CastError, match="keeps its tensors"):
        tc.cast({"a": X}, "float16", rules=[tc.Rule("a", scale=2)])
    with pytest.raises(TypeError, match="a number"):
        tc.cast({"a": X}, "float16", rules=[tc.Rule("a", "int8", scale="2")])


def test_packed_bytes_with_a_shape():
    codes = tc.cast(X, "int4", packed=True, out_of_range="saturate")
    whole = tc.cast(X, "int4", out_of_range="saturate")
    assert np.array_equal(tc.cast(codes, "float32", packed=True, from_="int4", shape=(2, 3)), tc.cast(whole, "float32"))
    odd = tc.cast(codes, "float32", packed=True, from_="int4", shape=5)
    assert odd.tolist() == tc.cast(whole, "float32").ravel()[:5].tolist()
    scaled = tc.cast(codes, "float32", packed=True, from_="int4", shape=(2, 3), scale=[[1], [2]])
    assert scaled.tolist() == tc.cast(whole, "float32", scale=[[1], [2]]).tolist()
    result, report = tc.cast(codes, "int2", packed=True, from_="int4", shape=(2, 3), report=True)
    assert result.dtype == np.uint8 and result.size == 2 and report.count == 6
    for options, words in [
        ({"shape": (2, 4)}, "8 elements of int4, shape .2, 4., take 4 bytes, but x has 3"),
        ({"shape": (-2, -3)}, "whole numbers"),
        ({"shape": (2.0, 3)}, "whole numbers"),
        ({"scale": [1, 2]}, "with shape="),
    ]:
        with pytest.raises(CastError, match=words):
            tc.cast(codes, "float32", packed=True, from_="int4", **options)
    with pytest.raises(CastError, match="from_="):
        tc.cast(X, "float16", shape=(2, 3))


@pytest.mark.parametrize("to", ["int8", "int4", "uint8", "float8_e4m3fn", "float8_e5m2", "float16", "float4_e2m1fn"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1])
def test_scales_from_the_data(to, axis):
    x = np.random.default_rng(3).normal(0, 5, (4, 6)).astype(np.float32)
    x = np.abs(x) if to == "uint8" else x
    x[1] = 0
    scale = tc.absmax_scale(x, to, axis=axis)
    largest = next(row.largest for row in tc.dtypes() if row.name == to)
    others = tuple({0, 1} - {a % 2 for a in np.ravel(axis)}) if axis is not None else (0, 1)
    high = np.abs(x).max(axis=others, keepdims=True, initial=0)
    if axis is None:
        assert isinstance(scale, float)
    else:
        assert scale.dtype == np.float64 and scale.shape == high.shape
    for each, top in zip(np.ravel(scale), high.ravel(), strict=True):
        if top == 0:
            assert each == 1
        else:
            product = fractions.Fraction(each) * fractions.Fraction(float(top))
            assert largest <= product < largest * fractions.Fraction(1 + 2**-50)
    codes = tc.cast(x, to, scale=scale, out_of_range="error") if "int" in to else tc.cast(x, to, scale=scale, saturate=False)
    values = tc.cast(codes, "float64")
    assert np.array_equal(np.abs(values).max(axis=others, keepdims=True), np.where(high == 0, 0, largest))


def test_scales_of_every_kind_of_input():
    torch = pytest.importorskip("torch")
    expected = tc.absmax_scale(X, "float8_e4m3fn", axis=0)
    assert np.array_equal(tc.absmax_scale(torch.from_numpy(X), "float8_e4m3fn", axis=0), expected)
    half = torch.from_numpy(X).to(torch.bfloat16).requires_grad_()
    assert tc.absmax_scale(half, "float8_e4m3fn") == tc.absmax_scale(tc.cast(X, "bfloat16"), "float8_e4m3fn")
    assert tc.absmax_scale(np.float32([]), "int8") == 1.0
    assert tc.absmax_scale(np.float32(2), "int8") == 63.5
    assert tc.absmax_scale(np.int64([-(2**62)]), "int8") == 127 / 2**62
    for x, to, words in [
        (np.float32([np.nan]), "int8", "NaN and infinity"),
        (np.float32([np.inf]), "int8", "NaN and infinity"),
        (X, "uint8", "negative numbers"),
        (X, "bool", "no largest number"),
        (X, "float8_e8m0fnu", "no largest number"),
    ]:
        with pytest.raises(CastError, match=words):
            tc.absmax_scale(x, to)
    with pytest.raises(CastError, match="not a dimension"):
        tc.absmax_scale(X, "int8", axis=2)


def test_files_for_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = {"f": X, "b": tc.cast(X, "bfloat16"), "q": tc.cast(X, "float8_e4m3fn"), "s": np.float32(5), "e": X[:0]}
    tc.save(tmp_path / "x.safetensors", tensors)
    loaded = tc.load(tmp_path / "x.safetensors", framework="pt")
    assert {name: value.dtype for name, value in loaded.items()} == {
        "f": torch.float32, "b": torch.bfloat16, "q": torch.float8_e4m3fn, "s": torch.float32, "e": torch.float32}  # fmt: skip
    assert torch.equal(loaded["f"], torch.from_numpy(X)) and loaded["e"].shape == (0, 3) and loaded["s"].item() == 5
    with tc.open(tmp_path / "x.safetensors", framework="pt") as file:
        assert torch.equal(file.get_tensor("b"), loaded["b"])
        assert torch.equal(file.get_slice("q")[1:].float(), loaded["q"][1:].float())
        assert isinstance(file.get_slice("f")[0, 0], torch.Tensor)
    with pytest.raises(CastError, match="framework="):
        tc.load(tmp_path / "x.safetensors", framework="tensorflow")


SLICES = [0, -1, 1, np.s_[:], np.s_[1:3], np.s_[::-1], np.s_[::2], np.s_[3:0:-2], np.s_[2:2], np.s_[5:9], np.s_[1, 2],
          np.s_[1, 1:4], np.s_[..., 0], np.s_[1:3, ::2, -1], np.s_[2, 0, 3], np.s_[-3:], np.s_[:, 1], np.s_[None, 1],
          np.s_[1, None, 2], (), np.s_[[0, 2]], np.s_[:, [1, 0]], np.s_[1, ..., 2], np.int64(1)]  # fmt: skip


@pytest.mark.parametrize("extension", ["safetensors", "npz", "npy"])
@pytest.mark.parametrize("name", ["float32", "int64", "bool"])
def test_slices_are_numpys(extension, name, tmp_path):
    x = tc.cast(np.random.default_rng(1).normal(0, 9, (4, 3, 5)), name)
    tc.save(tmp_path / f"x.{extension}", {"x": x})
    with tc.open(tmp_path / f"x.{extension}") as file:
        part = file.get_slice(next(iter(file)))
        assert (part.shape, part.get_shape(), part.dtype, len(part)) == ((4, 3, 5), [4, 3, 5], name, 4)
        for key in SLICES:
            found, expected = part[key], x[key]
            assert found.shape == expected.shape and np.array_equal(found, expected), key
        for key in (4, -5, np.s_[0, 3], np.s_[0, 0, 0, 0]):
            with pytest.raises(IndexError):
                part[key]
        with pytest.raises(KeyError):
            file.get_slice("absent")
    with pytest.raises(CastError, match="closed"):
        part[0]


@pytest.mark.parametrize("name", ["int4", "uint2", "float4_e2m1fn", "float6_e2m3fn", "string"])
def test_slices_of_packed_types_and_text(name, tmp_path):
    x = tc.cast(np.random.default_rng(1).uniform(0, 1.5, (5, 3, 7)), name)
    extension = "npy" if name == "string" else "pb" if name != "float6_e2m3fn" else "safetensors"
    x = x.astype("U") if name == "string" else x[..., :4] if extension == "safetensors" else x
    tc.save(tmp_path / f"x.{extension}", {"x": x})
    with tc.open(tmp_path / f"x.{extension}") as file:
        part = file.get_slice(next(iter(file)))
        for key in SLICES[:-1]:
            if key in (np.s_[2, 0, 3],):
                continue
            found, expected = part[key], x[key]
            assert np.array_equal(np.asarray(found, object), np.asarray(expected, object)), key


def test_a_slice_reads_only_its_rows(tmp_path):
    """A file whose end is missing still gives the rows before it."""
    rows = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    tc.save(tmp_path / "x.safetensors", {"x": rows})
    with tc.open(tmp_path / "x.safetensors") as file:
        with builtins_open(tmp_path / "x.safetensors", "r+b") as bytes_:
            bytes_.truncate(1 << 20)
        assert np.array_equal(file.get_slice("x")[5:7], rows[5:7])
        with pytest.raises(CastError):
            file["x"]


builtins_open = open


def test_slices_of_folders(tmp_path):
    for number in (1, 2):
        tc.save(tmp_path / f"model-0000{number}-of-00002.safetensors", {f"x{number}": X * number})
    with tc.open(tmp_path) as file:
        assert file.get_slice("x2")[1:].tolist() == (X[1:] * 2).tolist()


def test_a_line_of_progress(tmp_path, capsys):
    tc.save(tmp_path / "x.safetensors", {"weight": np.ones((512, 512), np.float32)})
    tc.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", "float16")
    assert capsys.readouterr() == ("", "")
    tc.convert(tmp_path / "x.safetensors", tmp_path / "z.safetensors", "float16", progress=True)
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("\r") and said.err.endswith("\n") and "100 %" in said.err
    with pytest.raises(CastError, match="progress= is True or a function"):
        tc.convert(tmp_path / "x.safetensors", tmp_path / "q.safetensors", "float16", progress="yes")
    assert not (tmp_path / "q.safetensors").exists()


def test_arrays_of_the_pyarrow_that_is_installed():
    pa = pytest.importorskip("pyarrow")
    assert tc.cast(pa.array([True] * 11)[3:9], "float16").tolist() == [1] * 6
    assert tc.cast(pa.array([1.0, 2, 3])[1:], "float16").tolist() == [2, 3]
    assert tc.cast(pa.chunked_array([[1.0], [2.0]]), "int8").tolist() == [1, 2]
    assert tc.cast(pa.array([1, 2], pa.float16()), "float32").tolist() == [1, 2]
    assert tc.cast(pa.array(["1.5", "2"]), "float16").tolist() == [1.5, 2]
    assert tc.cast(pa.array([], pa.float32()), "float16").shape == (0,)
    for nulls in (pa.array([1.5, None]), pa.array([1, None]), pa.array([True, None]), pa.chunked_array([[True], [None]])):
        with pytest.raises(TypeError, match=r"has 1 missing values; pass x\.fill_null\(value\)"):
            tc.cast(nulls, "float16")
        assert tc.cast(nulls.fill_null(False if nulls.type == pa.bool_() else 0), "float16").tolist()[-1] == 0
    rows = pa.array([[1.0, 2], [3, 4]])
    with pytest.raises(TypeError, match=r"pass numpy\.stack\(x\.to_numpy\(zero_copy_only=False\)\)"):
        tc.cast(rows, "float16")
    assert tc.cast(np.stack(rows.to_numpy(zero_copy_only=False)), "float16").tolist() == [[1, 2], [3, 4]]


def test_arrays_of_pyarrow():
    """By its interface, where the library itself is not installed."""

    class Type:
        def __init__(self, name, num_fields=0):
            self.name, self.num_fields = name, num_fields

        def __str__(self):
            return self.name

    class FloatArray:
        __module__ = "pyarrow.lib"

        def __init__(self, values, type, nulls=0):
            self.values, self.type, self.null_count = values, type, nulls

        def __len__(self):
            return len(self.values)

        def to_numpy(self, zero_copy_only=True):
            assert not zero_copy_only
            return self.values

        def __dlpack__(self, **_):
            raise RuntimeError("Can only use DLPack on arrays with no nulls.")

        def __dlpack_device__(self):
            return (1, 0)

    assert tc.cast(FloatArray(X[0], Type("float")), "float16").tolist() == [1, 2, 300]
    assert tc.cast(FloatArray(np.array([True, False]), Type("bool")), "float16").tolist() == [1, 0]
    assert tc.cast({"a": FloatArray(X[0], Type("float"))}, "float16")["a"].dtype == np.float16
    with pytest.raises(TypeError, match="2 missing values; pass x.fill_null"):
        tc.cast(FloatArray(X[0], Type("float"), 2), "float16")
    assert tc.quantize(FloatArray(np.ones(64, np.float32), Type("float")), "nvfp4").shape == (64,)
    with pytest.raises(TypeError, match=r"of struct<a: float> has an array for each field; pass x.field\(name\)"):
        tc.cast(FloatArray(X, Type("struct<a: float>", 1)), "float16")
    with pytest.raises(TypeError, match=r"of list<item: float> is not an array of numbers; pass numpy.stack"):
        tc.cast(FloatArray(X, Type("list<item: float>", 1)), "float16")


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_jax_arrays_under_8_bits(name):
    """JAX lends none of them by DLPack."""
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.asarray(np.array([1, 0, 1], getattr(ml_dtypes, name)))
    wide = tc.cast(x, "float32")
    assert type(wide) is type(x) and wide.tolist() == [1, 0, 1]
    narrow = tc.cast(wide, name)
    assert type(narrow) is type(x) and narrow.dtype == x.dtype and tc.cast(narrow, "float32").tolist() == [1, 0, 1]
    assert tc.from_dlpack(x).tolist() == [1, 0, 1]
    with pytest.raises(CastError, match="jax takes no array of float6_e2m3fn; pass numpy.asarray"):
        tc.cast(wide, "float6_e2m3fn")


def test_a_state_dict_says_what_it_destroys():
    weights = np.float32([[0.1, 0.2], [-0.3, 0.0]])
    with pytest.warns(tc.LossWarning, match=r"tensor 'w' \(float32 to int8\): 3 of 3 nonzero elements became zero; scale=, a floating-point type or the scheme int8-channel would help"):
        done = tc.cast({"w": weights}, "int8")
    assert done["w"].tolist() == [[0, 0], [0, 0]]
    with pytest.warns(UserWarning, match="tensor 'optim.weight' and 1 more would be an optimizer's state by the name"):
        done = tc.cast({"w": weights, "optim.weight": weights, "optim.bias": weights}, "float16")
    assert done["optim.weight"].dtype == np.float32 and done["w"].dtype == np.float16
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.cast({"w": weights, "optim.weight": weights}, "float16", rules={"optim": "float16"})
        _, reports = tc.cast({"w": weights}, "float16", report=True)
    assert list(reports) == ["w"]


def test_content_in_the_place_of_a_path(tmp_path):
    path = tmp_path / "x.safetensors"
    tc.save(path, {"x": X, "n": np.int8([1])}, metadata={"a": "b"})
    content = path.read_bytes()
    for given in (content, bytearray(content), memoryview(content), io.BytesIO(content), path.open("rb")):
        loaded = tc.load(given)
        assert list(loaded) == ["x", "n"] and np.array_equal(loaded["x"], X)
    with tc.open(content) as file:
        assert file.metadata() == file.metadata == {"a": "b"}
        assert file.keys()[0] == "x" and file.keys()[:] == ["x", "n"] and set(file.keys()) == {"x", "n"}
        assert file.get_slice("x").get_dtype() == "F32" and file.get_slice("n").get_dtype() == "I8"
    tc.save(path, {"x": X}, overwrite=True)
    with tc.open(path) as file:
        assert file.metadata() is None and file.metadata == {}
    raw = tc.load(X.tobytes(), raw=("float32", (2, 3)), format="raw")
    assert np.array_equal(next(iter(raw.values())), X)
    with pytest.raises(TypeError, match="open it in binary mode"):
        tc.load(io.StringIO("text"))
    with pytest.raises(TypeError, match="is a path, its bytes or a file open in binary mode, not 5"):
        tc.load(5)
    with pytest.raises(CastError, match="<content>"):
        tc.load(content[:20])


@pytest.mark.parametrize("format", ["npz", "safetensors", "gguf"])
def test_content_is_saved_and_inspected(tmp_path, format):
    tensors = {"x": X, "n": np.int8([1])}
    tc.save(content := io.BytesIO(), tensors, format=format)
    tc.save(tmp_path / f"x.{format}", tensors)
    assert format == "npz" or content.getvalue() == (tmp_path / f"x.{format}").read_bytes()
    with open(tmp_path / "raw", "w+b", buffering=0) as raw:
        tc.save(raw, tensors, format=format)
        raw.seek(0)
        listed = tc.inspect(raw)
    assert listed == tc.inspect(content.getvalue()) == tc.inspect(tmp_path / f"x.{format}")
    assert tc.inspect(content.getvalue(), stats=True).tensors[0].stats.max == X.max()
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        with archive.open("inner", "w") as member:
            tc.save(member, tensors, format=format)
        assert np.array_equal(tc.load(archive.read("inner"))["x"], X)


def test_content_that_is_refused(tmp_path):
    with pytest.raises(CastError, match="format= names what to write"):
        tc.save(io.BytesIO(), {"x": X})
    with pytest.raises(TypeError, match="open it in binary mode"):
        tc.save(io.StringIO(), {"x": X}, format="npz")
    with pytest.raises(TypeError, match="saved to a path, or to a file open in binary mode, not to 5"):
        tc.save(5, {"x": X}, format="npz")
    with pytest.raises(CastError, match="npy holds exactly one array, not 2"):
        tc.save(content := io.BytesIO(), {"x": X, "y": X}, format="npy")
    assert content.getvalue() == b""
    with pytest.raises(CastError, match="<content>"):
        tc.inspect(b"no file of tensors")
    for given in (io.BytesIO(b"x"), 5, None):
        with pytest.raises(TypeError, match=r"a path is a text or a pathlib.Path, not .*; open\(\), load\(\) and inspect\(\) take bytes"):
            tc.convert(given, tmp_path / "y.npy", "float16")


def test_devices_of_files(tmp_path):
    torch = pytest.importorskip("torch")
    tc.save(tmp_path / "x.safetensors", {"x": X})
    loaded = tc.load(tmp_path / "x.safetensors", framework="pt", device="meta")
    assert loaded["x"].device.type == "meta" and loaded["x"].shape == (2, 3)
    with tc.open(tmp_path / "x.safetensors", framework="pt", device=torch.device("meta")) as file:
        assert file.get_slice("x")[:1].device.type == "meta" and file["x"].device.type == "meta"
    assert tc.load(tmp_path / "x.safetensors", device="cpu")["x"].dtype == np.float32
    with pytest.raises(CastError, match="is for tensors of PyTorch; pass framework='pt'"):
        tc.open(tmp_path / "x.safetensors", device="cuda:0")
    with pytest.raises(CastError, match="is no device of PyTorch"):
        tc.open(tmp_path / "x.safetensors", framework="pt", device="nowhere")


def test_names_for_editors():
    lists = {
        _names.DTypeName: [row.name for row in tc.dtypes()], _names.SchemeName: tc.schemes(),
        _names.BlockSchemeName: [row["scheme"] for row in tc.block_formats()],
        _names.RecipeName: [row["recipe"] for row in tc.recipes()],
        _names.SpellingName: [row["spelling"] for row in tc.block_formats()],
    }  # fmt: skip
    for names, known in lists.items():
        assert list(typing.get_args(names)) == list(dict.fromkeys(known))
