# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments are named in Python's words; right ones of other kinds are taken."""

import re

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError

X = np.float32([1, 2, 300, -1])


@pytest.fixture
def file(tmp_path):
    tc.save(tmp_path / "x.safetensors", {"x": X, "head.weight": X})
    return str(tmp_path / "x.safetensors")


@pytest.mark.parametrize("value", ["no", "False", None, 2, 1.0, []])
def test_saturate_is_a_truth_value(value, file, tmp_path):
    calls = [
        lambda **options: tc.cast(X, "float8_e4m3fn", **options),
        lambda **options: tc.cast(X[::2], "int4", **options),
        lambda **options: tc.cast({"x": X}, "float16", **options),
        lambda **options: tc.convert(file, tmp_path / "out.npz", "float16", **options),
        lambda **options: tc.inspect(file, stats=True, **options),
        lambda **options: tc.explain(1, **options),
        lambda **options: tc.CastNode("float16", **options),
        lambda **options: tc.graph.Graph().cast("x", "float16", **options),
    ]
    for call in calls:
        with pytest.raises(CastError, match="saturate must be True or False, not "):
            call(saturate=value)
    for truth in (True, False, np.True_, 0, 1):
        tc.cast(X, "float8_e4m3fn", saturate=truth)


@pytest.mark.parametrize("value", ["no", None])
def test_saturate_in_pytorch(value):
    torch = pytest.importorskip("torch")
    import tensorcast.torch

    with pytest.raises(CastError, match="saturate must be True or False"):
        tensorcast.torch.cast(torch.ones(2), "float8_e4m3fn", saturate=value)


def test_misspelled_options_of_openvino():
    openvino = pytest.importorskip("openvino")
    from tensorcast.openvino import Convert, use_tensorcast

    x = openvino.opset13.parameter([2], openvino.Type.f32) if hasattr(openvino, "opset13") else None
    if x is None:
        from openvino import opset13

        x = opset13.parameter([2], openvino.Type.f32)
    model = openvino.Model([x], [x], "nothing to convert")
    with pytest.raises(TypeError, match="'out_of_rang'. Did you mean 'out_of_range'"):
        use_tensorcast(model, out_of_rang="saturate")
    with pytest.raises(CastError, match="out_of_range must be one of"):
        use_tensorcast(model, out_of_range="clip")
    with pytest.raises(CastError, match="saturate must be True or False"):
        use_tensorcast(model, saturate="no")
    with pytest.raises(TypeError, match="out_of_rang"):
        Convert([x.output(0)], openvino.Type.f16, out_of_rang="saturate")


def test_what_only_statistics_use(file, tmp_path):
    with pytest.raises(CastError, match="stats=True"):
        tc.inspect(file, candidates=["float16"])
    with pytest.raises(CastError, match="scale= .*stats=True"):
        tc.inspect(tmp_path, scale=2)
    with pytest.raises(TypeError, match="satruate"):
        tc.inspect(tmp_path, satruate=False)
    with pytest.raises(TypeError, match="not a text"):
        tc.inspect(file, stats=True, candidates="float16")


def test_the_type_by_its_name():
    assert tc.cast(X, to="float16").dtype == np.float16
    assert tc.cast({"x": X}, to="float16")["x"].dtype == np.float16
    with pytest.raises(TypeError, match="takes the array first"):
        tc.cast(x=X, to="float16")
    with pytest.raises(TypeError, match="needs a type to convert to"):
        tc.cast(X)


def test_compiled_patterns(file, tmp_path):
    state = {"Head.weight": X, "norm": X}
    types = {name: value.dtype.name for name, value in tc.cast(state, None, rules={re.compile("head", re.I): "int8"}).items()}
    assert types == {"Head.weight": "int8", "norm": "float32"}
    assert tc.cast(state, "float16", include=re.compile("^norm"))["norm"].dtype == np.float16
    assert tc.cast(state, "float16", exclude=[re.compile("norm"), "x?"])["norm"].dtype == np.float32
    assert tc.cast(state, None, rules=[tc.Rule(re.compile("norm"), "float16")])["norm"].dtype == np.float16
    done = tc.convert(file, tmp_path / "out.npz", None, rules=[(re.compile("HEAD", re.IGNORECASE), "float16")])
    assert [tensor.to for tensor in done.tensors if tensor.name != "x"] == ["float16"]
    with pytest.raises(CastError, match="re.VERBOSE"):
        tc.cast(state, "float16", include=re.compile("a  b", re.VERBOSE))
    with pytest.raises(TypeError, match="regular expressions"):
        tc.cast(state, "float16", include=re.compile(b"a"))


@pytest.mark.parametrize("name", ["fp8_e4m3", "f8e4m3", "e4m3"])
def test_e4m3_is_never_e4m3fn(name):
    with pytest.raises(CastError, match="write one of float8_e4m3fn, float8_e4m3fnuz"):
        tc.cast(X, name)


def test_float8_e4m3_is_that_of_ml_dtypes():
    for name in ("float8_e4m3", "ml_dtypes.float8_e4m3", ml_dtypes.float8_e4m3):
        assert tc.cast(X, name).dtype == ml_dtypes.float8_e4m3
    with pytest.raises(CastError, match="unknown dtype"):
        tc.cast(X, "torch.float8_e4m3")


def test_hints_are_of_the_right_kind():
    with pytest.raises(CastError, match="did you mean float4_e2m1fn\\?"):
        tc.cast(X, "float4")
    assert tc.cast(X, "U5").tolist() == ["1.0", "2.0", "300.0", "-1.0"]
    with pytest.raises(tc.OutOfRangeError):
        tc.cast(X, "<U3")


def test_mappings_refuse_what_a_cast_refuses():
    for value in (np.ma.array([1.0, 2.0], mask=[True, False]), np.matrix([[1.0]])):
        with pytest.raises(TypeError) as alone:
            tc.cast(value, "float16")
        with pytest.raises(TypeError, match="tensor 'a'") as among:
            tc.cast({"a": value}, "float16")
        assert str(alone.value) in str(among.value)


WRONG = [
    lambda file: tc.cast({"a": X}, "float16", keep_rank="1"),
    lambda file: tc.cast({"a": X}, "float16", keep_rank=1.5),
    lambda file: tc.cast({"a": X}, "float16", keep_smaller="1"),
    lambda file: tc.cast({"a": X}, "float16", keep_smaller=-1),
    lambda file: tc.cast({"a": X}, "float16", include=[5]),
    lambda file: tc.cast({"a": X}, "float16", rules=5),
    lambda file: tc.cast({"a": X}, "float16", rules=[("a", "float16", "x")]),
    lambda file: tc.cast({"a": X}, "float16", rules=[tc.Rule("a", smaller="x")]),
    lambda file: tc.cast(X, "float16", opset="19"),
    lambda file: tc.cast(X, "float16", opset=True),
    lambda file: tc.cast(X, "float16", scale=None),
    lambda file: tc.convert(file, "b", "float16", overwrite="x"),
    lambda file: tc.convert(file, "b.npy", "int8-channel", convrot="16"),
    lambda file: tc.convert(file, "b", "float16", raw=5),
    lambda file: tc.convert(file, "b", "float16", raw=("int8", "3")),
    lambda file: tc.convert(5, "b", "float16"),
    lambda file: tc.inspect(file, stats=1),
    lambda file: tc.open(file, format=5),
    lambda file: tc.load(file, raw="x"),
    lambda file: tc.save("x.npy", {"a": X}, format=5),
    lambda file: tc.save("x.safetensors", {"a": X}, metadata={"a": 5}),
    lambda file: tc.quantize(X, "mxfp4", recipe=5),
    lambda file: tc.quantize(X, "mxfp4", group_size="32"),
    lambda file: tc.quantize(X, "mxfp4", symmetric="no"),
    lambda file: tc.quantize(X, "mxfp4", maximum="1"),
    lambda file: tc.quantize(X, "mxfp4", groups=32),
    lambda file: tc.promote_types("int8", "int16", rules=5),
    lambda file: tc.promote_types("int8", "int16", promote_unsafe="x"),
    lambda file: tc.graph.Graph(5),
    lambda file: tc.graph.Graph().input(5, "float32"),
    lambda file: tc.graph.Graph().input("y", "float32", shape="ab"),
    lambda file: tc.graph.Graph().cast(5, "float32"),
    lambda file: tc.CastNode("float16", name=5),
    lambda file: tc.CastNode("float16", lda_coeff="x"),
    lambda file: tc.CastNode("float16", specified_outputs_name=5),
    lambda file: tc.CastNode("float16", training="no"),
    lambda file: tc.checkpoint.run_shard("x", threads="a"),
    lambda file: tc.checkpoint.plan(5, 6, "float16"),
    lambda file: tc.checkpoint.diff("a", "b", headers_only="x"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_no_message_is_of_the_extension_module(number, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, CastError)) as caught:
        WRONG[number](file)
    assert not re.search(r"incompatible|std::|_core|nanobind|Invoked", str(caught.value)), caught.value
    assert len(str(caught.value)) < 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.safetensors"]


# What Python would refuse with words of its own, and halves of surrogate pairs.
MISTAKEN = [
    (lambda file: tc.convert(file, "b", "float16", rename=5), TypeError, "rename= is a mapping .*, not 5"),
    (lambda file: tc.convert(file, "b", "float16", rename=["a"]), TypeError, "rename= is a mapping"),
    (lambda file: tc.convert(file, "b", "float16", skip_files=5), TypeError, "skip_files= takes globs"),
    (lambda file: tc.convert(file, "b", "mxfp4", importance=5), TypeError, "importance= is a path, not 5"),
    (lambda file: tc.save("b.npz", {"a": X}, metadata=5), TypeError, "metadata must be a mapping of texts"),
    (lambda file: tc.save("b.npz", {"\ud800": X}), TypeError, "name of a tensor is a string, in UTF-8, not"),
    (lambda file: tc.cast(X, "float16", report="x"), TypeError, "report must be True or False, not 'x'"),
    (lambda file: tc.cast(X, "float16", packed=X), TypeError, "packed must be True or False"),
    (lambda file: tc.cast(X, "float16", scale=10**400), CastError, "scale must be a number that float64 can hold"),
    (lambda file: tc.quantize(X, None), TypeError, "scheme must be a text, not None"),
    (lambda file: tc.quantize(X, "mxfp5"), CastError, 'no scheme "mxfp5"; there are'),
    (lambda file: tc.quantize(X, "mx\0fp4"), CastError, "no scheme"),
    (lambda file: tc.quantize(X, "q4_k", importance=5), TypeError, "importance= is an array of numbers"),
    (lambda file: tc.gguf_quantize(X, "q9"), CastError, 'GGUF has no "q9"'),
    (lambda file: tc.dequantize(X, X, "mxfp5"), CastError, 'no block format "mxfp5"; there are'),
    (lambda file: tc.dequantize(X, ["a"], "mxfp4"), TypeError, "expected numbers of float32"),
    (lambda file: tc.dequantize(X, X, "mxfp4", global_scale=10**400), TypeError, "expected numbers of float32"),
    (lambda file: tc.dequantize(X, X, "mxfp4", shape=5), TypeError, "shape must be a shape, not 5"),
    (lambda file: tc.convert(file, "b", "float16", budget="\ud800"), CastError, "half of a surrogate pair"),
    (lambda file: tc.convert(file, "b", "float16", include="\ud800"), CastError, "half of a surrogate pair"),
    (lambda file: tc.convert(file, "b.npz", "float16", include="a\0b"), CastError, "matches no tensor"),
    (lambda file: tc.cast(X, "\ud800"), CastError, "half of a surrogate pair"),
    (lambda file: tc.cast(X, "float16", round_mode="\ud800"), CastError, "half of a surrogate pair"),
    (lambda file: tc.cast(X, "float16", round_mode="up\0"), CastError, "round_mode must be one of"),
    (lambda file: tc.load("\ud800.npy"), CastError, "path is not UTF-8, as texts and names of files"),
]


@pytest.mark.parametrize("number", range(len(MISTAKEN)))
def test_mistakes_are_named(number, file, tmp_path, monkeypatch):
    call, kind, words = MISTAKEN[number]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        call(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.safetensors"]


def test_none_is_the_default(file, tmp_path):
    options = dict.fromkeys(("dry_run", "single_file", "overwrite", "parents", "rename", "skip_files", "zero_limit"))
    tc.convert(file, tmp_path / "b.npz", "float16", **options)
    assert sorted(tc.load(tmp_path / "b.npz")) == ["head.weight", "x"]


def test_importance_is_a_list_of_numbers():
    weight, given = np.arange(256, dtype=np.float32)[None], list(np.linspace(1, 9, 256))
    of_array = tc.gguf_quantize(weight, "q4_k", importance=np.float32(given))
    assert np.array_equal(tc.gguf_quantize(weight, "q4_k", importance=given), of_array)


@pytest.mark.parametrize(
    "options",
    [{"round_mode": "upwards"}, {"opset": -1}, {"threads": -1}, {"order": "F"}, {"from_": "int4"}, {"invalid": None},
     {"packed": True, "out": X}],
)  # fmt: skip
def test_wrong_values_are_cast_errors(options):
    with pytest.raises(CastError):
        tc.cast(X, "float16", **options)


@pytest.mark.parametrize("options", [
    {"to": "bfloat16"}, {"to": "int8"}, {"to": "float16", "keep_ops": "Foo"}, {"to": "float16", "keep_nodes": "Foo"},
    {"to": "float16", "keep": "foo"}, {"to": "float16", "runtime": "foo"}, {"to": "float16", "keep_ops": [5]},
    {"to": "float16", "overwrite": "yes"}, {"to": "float16", "external_threshold": "many"},
])  # fmt: skip
def test_errors_of_onnx_name_neither_options_of_the_command_nor_files_that_are_gone(options):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)])
    with pytest.raises((TypeError, CastError)) as caught:
        tc.onnx.convert(model, **options)
    said = str(caught.value)
    assert not re.search(r"--|`|/tmp|tensorcast-onnx|std::", said), said
    if isinstance(caught.value, CastError):
        assert caught.value.file is None and "--" not in (caught.value.hint or "")


def test_bytes_that_are_no_model():
    with pytest.raises(tc.ParseError, match="^the model: malformed protobuf"):
        tc.onnx.casts(b"abc")


@pytest.mark.parametrize("folder", ["memory://", "memory:///", "memory://arguments/deep/"])
@pytest.mark.parametrize("extension", ["safetensors", "npz"])
def test_files_behind_urls(folder, extension, tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    url, half = f"{folder}arguments.{extension}", f"{folder}arguments-half.{extension}"
    try:
        tc.save(url, {"x": X})
        with pytest.raises(FileExistsError, match="overwrite=True") as exists:
            tc.save(url, {"x": X})
        assert exists.value.filename == url
        tc.save(url, {"x": X}, overwrite=True)
        assert tc.load(url)["x"].tolist() == X.tolist()
        with tc.open(url) as opened:
            assert opened.path == url and opened["x"].tolist() == X.tolist()
        found = tc.inspect(url)
        assert (found.format, found.tensors[0].shape, type(found)) == (extension, (4,), tc.FileInfo)
        assert tc.inspect(url, stats=True).tensors[0].stats.max == 300
        tc.convert(url, half, "float16")
        assert tc.load(half)["x"].dtype == np.float16
    finally:
        for path in (url, half):
            if fsspec.filesystem("memory").exists(path):
                fsspec.filesystem("memory").rm(path)
    assert not list(tmp_path.iterdir())


def test_errors_of_files_behind_urls():
    fsspec = pytest.importorskip("fsspec")
    url = "memory://arguments-bad.safetensors"
    for call in (tc.load, tc.inspect, tc.open, lambda url: tc.convert(url, "memory://x.npz", "float16")):
        with pytest.raises(FileNotFoundError):
            call("memory://arguments-none.npz")
    fsspec.filesystem("memory").pipe("/arguments-bad.safetensors", b"\xff" * 20)
    for call in (tc.load, tc.inspect, lambda url: tc.convert(url, "memory://x.npz", "float16")):
        with pytest.raises(tc.ParseError, match="arguments-bad.safetensors") as caught:
            call(url)
        assert "/tmp" not in str(caught.value)
    fsspec.filesystem("memory").rm("/arguments-bad.safetensors")
