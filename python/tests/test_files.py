# SPDX-License-Identifier: Apache-2.0
"""Files as users find and misuse them."""

import argparse
import os
import pathlib
import pickle
import re
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError

safetensors = pytest.importorskip("safetensors.numpy")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        "embed": np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6),
        "norm": np.ones(8, np.float32),
        "head": np.linspace(-3, 3, 24, dtype=np.float32).reshape(8, 3),
        "steps": np.int64([3]),
    }
    safetensors.save_file(tensors, path)
    return path


def types(done):
    return {tensor.name: tensor.to for tensor in done.tensors}


def test_a_string_is_one_pattern(model, tmp_path):
    done = tc.convert(model, tmp_path / "out.safetensors", "float16", exclude="embed")
    assert types(done) == {"embed": "float32", "norm": "float16", "head": "float16", "steps": "int64"}
    done = tc.convert(model, tmp_path / "only.safetensors", "float16", include="embed")
    assert types(done)["norm"] == "float32"


@pytest.mark.parametrize("keyword", ["include", "exclude"])
def test_patterns_that_match_nothing(model, tmp_path, keyword):
    with pytest.raises(CastError, match=rf'{keyword} 1 \("nrom"\) matches no tensor; tensorcast.inspect\(\) lists'):
        tc.convert(model, tmp_path / "out.safetensors", "float16", **{keyword: "nrom"})
    assert not (tmp_path / "out.safetensors").exists()


def test_there_must_be_a_type(model, tmp_path):
    with pytest.raises(CastError, match="no type to convert to"):
        tc.convert(model, tmp_path / "out.safetensors")
    with pytest.raises(CastError, match="no type to convert to"):
        tc.convert(model, tmp_path / "out.safetensors", include="norm")
    with pytest.raises(TypeError, match="rules"):
        tc.convert(model, tmp_path / "out.safetensors", rules="norm=float16")


@pytest.mark.parametrize(
    "call",
    [
        lambda path: tc.convert(path, path.with_name("out.npy"), "float16", include="norm", nonsense=1),
        lambda path: tc.inspect(path, nonsense=1),
        lambda path: tc.cast(np.float32([1]), "float16", nonsense=1),
        lambda path: tc.cast(np.float32([1]), "string", nonsense=1),
        lambda path: tc.cast(np.array(["1"]), "float32", nonsense=1),
        lambda path: tc.cast(np.float32([1]), "float32", copy=False, nonsense=1),
        lambda path: tc.cast(np.float32([]), "float16", nonsense=1),
        lambda path: tc.cast(np.array(["1"]), "string", nonsense=1),
        lambda path: tc.explain(1, nonsense=1),
        lambda path: tc.CastNode("float16", nonsense=1),
        lambda path: tc.promote(np.float32([1]), np.float16([1]), nonsense=1),
    ],
)
def test_unknown_options(model, call):
    with pytest.raises(TypeError, match="nonsense"):
        call(model)


def test_errors_of_files_are_os_errors(model, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        tc.inspect(tmp_path / "missing.npy")
    assert isinstance(missing.value, CastError)
    assert missing.value.code == "io"
    assert missing.value.filename == str(tmp_path / "missing.npy")
    with pytest.raises(FileExistsError, match="overwrite=True replaces it") as exists:
        tc.convert(model, model, "float16")
    assert isinstance(exists.value, CastError)
    assert "--" not in str(exists.value)
    with pytest.raises(IsADirectoryError):
        tc.open(tmp_path, format="npy")
    with pytest.raises(FileNotFoundError, match="parents=True creates it"):
        tc.convert(model, tmp_path / "new" / "out.safetensors", "float16")
    tc.convert(model, tmp_path / "new" / "out.safetensors", "float16", parents=True)
    tc.convert(model, model, "float16", overwrite=True)
    again = pickle.loads(pickle.dumps(exists.value))
    assert type(again) is type(exists.value) and str(again) == str(exists.value)


def test_what_a_pytorch_checkpoint_loses_is_a_warning(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2), "args": argparse.Namespace(lr=1)}, tmp_path / "x.pt")
    with pytest.warns(UserWarning, match="Namespace") as said:
        done = tc.convert(tmp_path / "x.pt", tmp_path / "x.npz", "float16")
    assert len(done.warnings) == 1 and said[0].filename == __file__


def test_a_destroyed_tensor_is_a_warning(model, tmp_path):
    out = tmp_path / "out.safetensors"
    with pytest.warns(tc.LossWarning, match="'embed' .float32 to int8.: .* nonzero elements became zero; .*scale=") as said:
        tc.convert(model, out, "int8", scale=0.3, exclude="norm", overwrite=True)
    assert len(said) == 2
    assert said[0].filename == __file__
    with pytest.raises(CastError, match="became zero") as strict:
        tc.convert(model, tmp_path / "strict.safetensors", "int8", scale=0.3, strict_loss=True)
    assert strict.value.tensor
    assert not (tmp_path / "strict.safetensors").exists()
    done = tc.convert(model, out, "int8", scale=40, overwrite=True, strict_loss=True)
    assert not any(tensor.damage for tensor in done.tensors)


def test_rules_have_scales_and_strict_loss_has_a_limit(model, tmp_path):
    out = tmp_path / "out.safetensors"
    before = tc.load(model)
    done = tc.convert(model, out, "float16", rules=[tc.Rule("embed", "float16", scale=2)], scale=4, verify=True)
    scales = {row.name: row.scale for row in done.tensors if row.to == "float16"}
    assert scales.pop("embed") == 2 and set(scales.values()) == {4}
    assert np.array_equal(tc.load(out)["embed"], tc.cast(before["embed"], "float16", scale=2))
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3, 1e-9]))
    with pytest.raises(CastError, match="zero_limit= allows more"):
        tc.convert(tmp_path / "x.npy", tmp_path / "y.npy", "float16", strict_loss=True)
    tc.convert(tmp_path / "x.npy", tmp_path / "y.npy", "float16", strict_loss=True, zero_limit=0.25)
    with pytest.raises(CastError, match="from 0 to 1, not 2"):
        tc.convert(tmp_path / "x.npy", tmp_path / "z.npy", "float16", strict_loss=True, zero_limit=2)
    with pytest.raises(TypeError, match="zero_limit="):
        tc.convert(tmp_path / "x.npy", tmp_path / "z.npy", "float16", zero_limit="1")


def test_float4_that_pytorch_could_not_load(model, tmp_path):
    done = tc.convert(model, tmp_path / "fp4.safetensors", "float4_e2m1fn")
    assert types(done) == {"embed": "float4_e2m1fn", "norm": "float4_e2m1fn", "head": "float32", "steps": "int64"}
    head = next(tensor for tensor in done.tensors if tensor.name == "head")
    assert head.left and head.reason == "last dimension odd"
    done = tc.convert(model, tmp_path / "odd.safetensors", "float4_e2m1fn", allow_odd=True)
    assert types(done)["head"] == "float4_e2m1fn"


def test_codes_with_scales(tmp_path):
    path = tmp_path / "codes.safetensors"
    codes = np.float32([1, 2]).astype(ml_dtypes.float8_e4m3fn)
    np.savez(tmp_path / "codes.npz", **{"w.weight": codes, "w.weight_scale_inv": np.float32([0.5])})
    from_ = {"w.weight": "float8_e4m3fn"}
    with pytest.raises(CastError, match='"w.weight_scale_inv".*raw_codes=True converts'):
        tc.convert(tmp_path / "codes.npz", path, "bfloat16", from_=from_)
    tc.convert(tmp_path / "codes.npz", path, "bfloat16", from_=from_, raw_codes=True)


def test_one_tensor(model, tmp_path):
    tc.convert(model, tmp_path / "norm.npy", include="norm")
    assert np.array_equal(np.load(tmp_path / "norm.npy"), np.ones(8, np.float32))


def test_an_unknown_type_in_an_npz_hides_no_other(tmp_path):
    path = tmp_path / "mixed.npz"
    np.savez(path, known=np.float32([1, 2]), objects=np.array([None]), opaque=np.float32([1]).astype(ml_dtypes.bfloat16))
    found = tc.inspect(path)
    tensors = {tensor.name: tensor for tensor in found.tensors}
    assert tensors["known"].dtype == "float32" and not tensors["known"].problem
    assert "objects" not in tensors and "pickles" in found.warnings[0]
    assert tensors["opaque"].problem
    tensors = {tensor.name: tensor for tensor in tc.inspect(path, from_={"opaque": "bfloat16"}).tensors}
    assert tensors["opaque"].dtype == "bfloat16"
    with pytest.raises(CastError, match="from_= says it"):
        np.save(tmp_path / "opaque.npy", np.float32([1]).astype(ml_dtypes.bfloat16))
        tc.convert(tmp_path / "opaque.npy", tmp_path / "out.npy", "float32")


def test_raw_bytes(tmp_path):
    (tmp_path / "raw.bin").write_bytes(np.float32([1, 2]).tobytes())
    with pytest.raises(CastError, match="raw= says it"):
        tc.convert(tmp_path / "raw.bin", tmp_path / "out.npy", "float16")
    tc.convert(tmp_path / "raw.bin", tmp_path / "out.npy", "float16", raw=("float32", (2,)))
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.float16([1, 2]))


def test_integers_are_not_tried_as_float8(model):
    stats = {tensor.name: tensor.stats for tensor in tc.inspect(model, stats=True).tensors}
    assert stats["steps"].candidates == {}
    assert len(stats["norm"].candidates) == 4
    asked = tc.inspect(model, stats=True, candidates=["int8"]).tensors
    assert all(list(tensor.stats.candidates) == ["int8"] for tensor in asked)


def test_no_message_speaks_of_the_command(tmp_path):
    for name, content in {"a.pt": b"\x80\x02}", "b.bin": b"", "c.xyz": b"?", "d.npy": b"<html>"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CastError) as caught:
            tc.inspect(tmp_path / name)
        assert not re.search(r"(^|\s)--\w|`", str(caught.value)) or "`tcast" in str(caught.value), caught.value


def test_a_name_that_is_no_text_is_an_error_of_its_file(tmp_path):
    path = tmp_path / "a.gguf"
    name = b"a\xff"
    path.write_bytes(struct.pack(f"<4sIQQQ{len(name)}sIQIQ", b"GGUF", 3, 1, 0, len(name), name, 1, 4, 0, 0).ljust(128, b"\0"))
    with pytest.raises(CastError, match="not UTF-8"):
        tc.inspect(path)


COMPLEX = np.array([[1 + 2j, -3.5 - 0j], [np.inf, complex(0, np.nan)]], np.complex64)


def test_complex_tensors_lock_no_file(tmp_path):
    """C64 of safetensors is read as NumPy has it, in whole and in parts, and copied by conversions."""
    path, made = tmp_path / "c.safetensors", tmp_path / "made.safetensors"
    safetensors.save_file({"c": COMPLEX, "w": np.float32([1, 2])}, path)
    loaded = tc.load(path)
    assert loaded["c"].dtype == np.complex64 and loaded["c"].tobytes() == COMPLEX.tobytes() and loaded["w"].tolist() == [1, 2]
    with tc.open(path) as file:
        part = file.get_slice("c")
        assert part[1:, 0].tolist() == [np.inf] and part.get_shape() == [2, 2]
        assert (part.dtype, part.get_dtype()) == ("complex64", "C64")
        assert file.read("c", packed=True).shape == (2, 2) and sorted(file) == ["c", "w"]
    done = tc.convert(path, made, "float16")
    assert [(row.name, row.bytes_out) for row in done.tensors] == [("c", 32), ("w", 4)]
    back = safetensors.load_file(made)
    assert back["c"].tobytes() == COMPLEX.tobytes() and back["w"].dtype == np.float16
    assert tc.convert(path, tmp_path / "w.npz", "float16", drop=["c"]).tensors[0].name == "w"
    with pytest.raises(tc.UnsupportedError, match='tensor "c": npz cannot hold C64'):
        tc.convert(path, tmp_path / "c.npz", "float16")


def test_complex_tensors_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = {"c": torch.tensor([1 + 2j, -3j]), "d": torch.tensor([1j, 2], dtype=torch.complex128), "w": torch.ones(2)}
    torch.save(tensors, tmp_path / "c.pt")
    for name, array in tc.load(tmp_path / "c.pt").items():
        assert str(array.dtype) == str(tensors[name].dtype).removeprefix("torch.") and array.tolist() == tensors[name].tolist()
    for name, tensor in tc.load(tmp_path / "c.pt", framework="pt").items():
        assert tensor.dtype == tensors[name].dtype and torch.equal(tensor, tensors[name])


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_of_files_that_are_not_utf8(model, tmp_path):
    """As os.listdir() gives them, bytes that are not UTF-8 as lone surrogates."""
    name = os.path.join(tmp_path, os.fsdecode(b"caf\xe9.safetensors"))
    tc.save(name, {"x": np.float32([1, 2])})
    assert b"caf\xe9.safetensors" in os.listdir(os.fsencode(tmp_path))
    assert tc.load(name)["x"].tolist() == tc.load(pathlib.Path(name))["x"].tolist() == [1, 2]
    assert tc.inspect(name, stats=True).tensors[0].stats.max == 2
    made = name.replace(".safetensors", ".npz")
    assert tc.convert(name, made, "float16").output_format == "npz"
    with tc.open(made) as file:
        assert file.path == made and file["x"].dtype == np.float16
    assert tc.checkpoint.diff(name, made)[0].different == 0
    with pytest.raises(FileNotFoundError) as caught:
        tc.load(name + "x")
    assert caught.value.filename == caught.value.file == name + "x"
    with pytest.raises(FileExistsError):
        tc.save(name, {"x": np.float32([1])})
    folder = os.path.join(tmp_path, os.fsdecode(b"model\xff"))
    os.mkdir(os.path.join(tmp_path, "in"))
    tc.convert(model, os.path.join(tmp_path, "in", "model.safetensors"), "float32")
    tc.convert(os.path.join(tmp_path, "in"), folder, "bfloat16")
    assert tc.open(folder)["norm"].dtype == ml_dtypes.bfloat16 and tc.checkpoint.verify(folder)


def test_load_warns_of_entries_that_are_no_tensors(tmp_path):
    records, dates = np.zeros(2, [("a", "f4")]), np.array(["2020-01-01"], "M8[D]")
    np.savez(tmp_path / "m.npz", w=np.float32([1]), r=records, d=dates)
    with pytest.warns(UserWarning) as caught:
        assert list(tc.load(tmp_path / "m.npz")) == ["w"]
    assert [str(each.message).split(":")[0] for each in caught] == [f'entry "{name}.npy" is left out' for name in "rd"]
    assert all(each.filename == __file__ for each in caught)


FIRST_CAST = """
import warnings, numpy as np, tensorcast as tc
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    small = np.full(4, 0.25, np.float32)
    for tensors in ({"w": small}, {"a": {"b": small}}, {"optim.w": small}):
        tc.cast(tensors, "int8")
print([each.filename for each in told])
"""


def test_warnings_name_the_line_of_the_caller(tmp_path):
    """Also those of the first mapping in a process, which takes another way, and of mappings in mappings."""
    script = tmp_path / "first.py"
    script.write_text(FIRST_CAST)
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str([str(script)] * 3)
