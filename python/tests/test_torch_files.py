# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save with one odd value beside a tensor, and folders with files of odd names."""

import collections
import datetime
import enum
import json
import pathlib
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

W = torch.arange(12, dtype=torch.float32).reshape(3, 4)


class Attributes(dict):
    """As Lightning's AttributeDict."""


class History:
    """As mmengine's HistoryBuffer, with arrays that are no weights."""

    def __init__(self):
        self.values = np.arange(3.0)


class Outer:
    class Inner:
        pass

    class Kind(enum.Enum):
        FIRST = 1

    class Entries(dict):
        pass

    def method(self):
        pass


class ListAndDict(dict):
    """Pickles items as a list does, and entries as a dict does."""

    def __reduce__(self):
        return (ListAndDict, (), None, iter([1]), iter([("k", 2)]))

    def append(self, item):
        pass

    def extend(self, items):
        pass


class Holder:
    def __init__(self):
        self.weight = W


# What is left out, by the words of the warning; None: nothing is.
LEFT_OUT = {
    "history": (History(), "History without tensors"),
    "date": (datetime.datetime(2020, 1, 1), "datetime.datetime without tensors"),
    "path": (pathlib.PurePosixPath("/x"), "PurePosixPath without tensors"),
    "texts": (np.array(["x", "yy"]), "numpy.ndarray of type U2"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "numpy.ndarray of type M8"),
    "objects": (np.array([{"x": 1}], dtype=object), "numpy.ndarray of type O8"),
    "records": (np.zeros(2, [("x", "f4")]), "numpy.ndarray of type V"),
    "text scalar": (np.str_("x"), None),
    "random": (np.random.default_rng(1), "__generator_ctor without tensors"),
    "half a surrogate": ("\ud800", "U+FFFD"),
    "function": (len, "builtins.len without tensors"),
    "type": (int, "builtins."),
    "empty bytes": ([b"", b"\xff", {1}], None),
    "attributes": (Attributes(a=1), None),
    "class in a class": (Outer.Inner(), "Outer.Inner without tensors"),
    "enumeration in a class": (Outer.Kind.FIRST, "Outer.Kind without tensors"),
    "dict in a class": (Outer.Entries(a=1), None),
    "method": (Outer().method, "Outer.method without tensors"),
    "list and dict": (ListAndDict(), None),
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_holds_no_weights_is_left_out(name, protocol, tmp_path):
    value, words = LEFT_OUT[name]
    torch.save({"w": W, "o": value}, tmp_path / "x.pt", pickle_protocol=protocol)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float32")
    assert (words is None and not told) or (len(told) == 1 and words in str(told[0].message))
    loaded = tc.load(tmp_path / "x.safetensors")
    assert list(loaded) == ["w"] and np.array_equal(loaded["w"], W.numpy())


def test_containers_and_keys_of_other_kinds(tmp_path):
    half = np.arange(3).astype(ml_dtypes.bfloat16)
    odd = {("a", 1): W, "attributes": Attributes(w=W + 1), "half": half, None: W, b"k": W, "": W,
           "counted": collections.Counter("aab")}  # fmt: skip
    torch.save(odd, tmp_path / "x.pt")
    tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float32", exclude="half")
    loaded = tc.load(tmp_path / "x.safetensors")
    assert sorted(loaded) == ["", "('a', 1)", "None", "attributes.w", "b'k'", "half"]
    assert np.array_equal(loaded["attributes.w"], W.numpy() + 1) and loaded["half"].tolist() == half.tolist()
    assert loaded["half"].dtype == half.dtype and json.loads((tmp_path / "x.safetensors.json").read_text()) == {"counted": {"a": 2, "b": 1}}


UNREAD = {
    "object": (Holder(), "tensors inside of an object of"),
    "sparse": (W.to_sparse(), "a sparse tensor"),
    "meta": (torch.empty(3, device="meta"), "a tensor on the meta device"),
    "storage": ((W + 1).storage().untyped(), "a storage without a tensor"),
    "complex128": (np.array([1j]), "cannot hold complex128"),
    "type of PyTorch": (torch.ones(3, dtype=torch.uint8).view(torch.bits8), "a tensor of torch.bits8, which is not read"),
    "tensors as keys": ({W: 1}, "a dict whose keys are tensors"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_filters_decide_before_it_is_an_error(name, tmp_path):
    value, words = UNREAD[name]
    torch.save({"w": W, "o": value}, tmp_path / "x.pt")
    target = tmp_path / "x.safetensors"
    with pytest.raises(tc.UnsupportedError, match=words) as refused:
        tc.convert(tmp_path / "x.pt", target, "float32")
    assert refused.value.tensor == "o"
    listed = {row.name: row for row in tc.inspect(tmp_path / "x.pt").tensors}
    assert sorted(listed) == ["o", "w"] and (name == "complex128" or words in listed["o"].problem)
    for number, choice in enumerate(({"drop": "^o"}, {"only": "^w"}, {"include": "^w"}, {"exclude": "^o"})):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tc.convert(tmp_path / "x.pt", target, "float16", overwrite=True, **choice)
        assert [words in str(each.message) for each in told] == [True] * (number > 1)
        assert list(tc.load(target)) == ["w"] and tc.load(target)["w"].dtype == np.float16
    with tc.open(tmp_path / "x.pt") as file:
        assert np.array_equal(file["w"], W.numpy())
        if name == "complex128":  # which NumPy has
            assert file["o"].tolist() == [1j]
        else:
            with pytest.raises(tc.CastError):
                file["o"]


def test_tensors_in_attributes_of_a_dict(tmp_path):
    state = collections.OrderedDict(w=W)
    state._metadata = {"version": 1}
    state.extra = W + 1
    torch.save({"model": state}, tmp_path / "x.pt")
    with pytest.raises(tc.UnsupportedError, match="tensors in an attribute of a dict") as refused:
        tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float32")
    assert refused.value.tensor == "model.extra"
    tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float32", drop="extra")
    assert list(tc.load(tmp_path / "x.safetensors")) == ["model.w"]


def test_modules_of_the_older_format(tmp_path):
    state = {"w": W, "act": torch.nn.ReLU(), "layer": torch.nn.Linear(1, 1)}
    torch.save(state, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(tc.UnsupportedError, match="tensors inside of an object of torch.nn.modules.linear.Linear") as refused:
        tc.load(tmp_path / "x.pt")
    assert refused.value.tensor == "layer"
    with pytest.warns(UserWarning, match="ReLU without tensors"):
        tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float32", drop="layer")
    assert np.array_equal(tc.load(tmp_path / "x.safetensors")["w"], W.numpy())


def test_keys_that_are_sets_and_types(tmp_path):
    torch.save({frozenset({1}): W, np.dtype("f4"): W}, tmp_path / "x.pt")
    assert sorted(tc.load(tmp_path / "x.pt")) == ["<f4", "frozenset({1})"]


NOT_OF_TORCH = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello\n", "neither a zip archive nor a pickle of torch.save"),
    "pickle": (pickle.dumps({"w": W}), "a Python pickle that torch.save did not write"),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), "gzip has compressed this file"),
}


@pytest.mark.parametrize("name", NOT_OF_TORCH)
def test_files_that_torch_save_did_not_write(name, tmp_path):
    content, words = NOT_OF_TORCH[name]
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(tc.CastError, match=words):
        tc.load(tmp_path / "x.pt")


class Member(enum.Enum):
    ONE = 1


ALIKE = [{0: W, "0": W + 1}, {"a": {"b": W}, "a.b": W + 1}, {Member.ONE: W, 1: W + 1}, {(Member.ONE,): W, (1,): W + 1},
         {torch.float16: W, "torch.float16": W + 1}]  # fmt: skip


@pytest.mark.parametrize("state", ALIKE, ids=str)
def test_two_tensors_of_one_name_are_an_error(state, tmp_path):
    torch.save(state, tmp_path / "x.pt")
    with pytest.raises(tc.UnsupportedError, match="two tensors of the checkpoint would have this name"):
        tc.convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "float16")


def test_names_in_folders(tmp_path):
    (tmp_path / "in").mkdir()
    torch.save({"w": W}, tmp_path / "in/model.safetensors")  # as some tools name it
    tc.convert(tmp_path / "in", tmp_path / "out", "float16")
    assert np.array_equal(tc.load(tmp_path / "out/model.safetensors")["w"], W.half().numpy())
    (tmp_path / "shards").mkdir()
    for number in (1, 2):
        name = f"model.safetensors-0000{number}-of-00002.safetensors"
        safetensors.save_file({f"w{number}": W.numpy()}, tmp_path / "shards" / name)
    tc.convert(tmp_path / "shards", tmp_path / "made", "float16")
    assert len(json.loads((tmp_path / "made/model.safetensors.index.json").read_text())["weight_map"]) == 2
    index = tmp_path / "in/model.safetensors.index.json"
    index.write_text('{"metadata": {}, "weight_map": {}}')
    with pytest.raises(tc.ParseError, match="the index names no tensors: its weight_map is empty"):
        tc.convert(index, tmp_path / "none", "float16")


@pytest.mark.parametrize("framework", ["np", "pt"])
def test_shapes_that_no_array_has(framework):
    header = json.dumps({"a": {"dtype": "F32", "shape": [0, 2**32, 2**32], "data_offsets": [0, 0]}}).encode()
    with pytest.raises(tc.UnsupportedError, match="cannot hold the shape"):
        tc.load(len(header).to_bytes(8, "little") + header, framework=framework)


def test_a_tensor_without_a_name_in_a_folder(tmp_path):
    weight = W.numpy()
    for name in ("safetensors", "pt"):
        (tmp_path / name).mkdir()
    safetensors.save_file({"": weight, "a": weight + 1}, tmp_path / "safetensors/model.safetensors")
    torch.save(W, tmp_path / "pt/pytorch_model.bin")
    for name, expected in (("safetensors", ""), ("pt", "pytorch_model")):
        assert np.array_equal(tc.load(tmp_path / name)[expected], weight)
        rows = {row.name: row for row in tc.inspect(tmp_path / name, stats=True).tensors}
        assert rows[expected].stats.max == 11
        tc.convert(tmp_path / name, tmp_path / f"{name}.out", "float16")
        assert np.array_equal(tc.load(tmp_path / f"{name}.out")[expected], weight)


def test_metadata_that_is_null(tmp_path):
    header = json.dumps({"__metadata__": None, "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}).encode()
    content = len(header).to_bytes(8, "little") + header + b"\1\2"
    assert tc.load(content)["a"].tolist() == [1, 2]
    for wrong in (b'{"__metadata__": {"a": null}}', b'{"a": null}'):
        with pytest.raises(tc.ParseError, match="null"):
            tc.load(len(wrong).to_bytes(8, "little") + wrong, format="safetensors")


def test_npz_with_a_readme_and_records(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.float32([1, 2]), o=np.array([{}], object), r=np.zeros(2, [("x", "f4")]))
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive:
        archive.writestr("README.md", "# text")
        archive.writestr("__MACOSX/._a.npy", b"\0\5\x16\7")  # as macOS packs a folder
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tc.convert(tmp_path / "x.npz", tmp_path / "x.safetensors", "float16")
    assert len(told) == 4 and list(tc.load(tmp_path / "x.safetensors")) == ["a"]
    assert list(tc.load(tmp_path / "x.npz")) == ["a"]
