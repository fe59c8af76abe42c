# SPDX-License-Identifier: Apache-2.0
"""What is raised: one class for each kind of error, with its parts."""

import copy
import errno
import pickle

import numpy as np
import pytest

import tensorcast as tc

X = np.float32([1, 300])


def raised(call):
    with pytest.raises(tc.CastError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "call, made, code",
    [
        (lambda: tc.cast(X, "flaot16"), tc.CastError, "invalid_argument"),
        (lambda: tc.cast(X, "int4", opset=13), tc.UnsupportedError, "unsupported"),
        (lambda: tc.promote_types("float16", "bfloat16"), tc.UnsupportedError, "unsupported"),
        (lambda: tc.cast(X, "uint8", out_of_range="error"), tc.OutOfRangeError, "out_of_range"),
        (lambda: tc.cast(np.array(["1,5"]), "float32"), tc.ParseError, "parse"),
        (lambda: tc.cast(np.array([1.5], object), "float32"), tc.ParseError, "parse"),
        (lambda: tc.inspect("absent.npy"), tc.FileError, "io"),
    ],
)
def test_each_kind_has_a_class(call, made, code):
    error = raised(call)
    assert isinstance(error, made) and error.code == code
    assert isinstance(error, ValueError)
    assert (type(error).__module__, type(error).__name__) == ("tensorcast", made.__name__)
    assert (type(error) is tc.CastError) == (made is tc.CastError)


def test_parts_of_an_element():
    error = raised(lambda: tc.cast(X, "uint8", out_of_range="error"))
    assert (error.index, error.tensor, error.file, error.hint) == (1, None, None, None)
    assert str(error) == "element 1: value 300 does not fit uint8 (from float32)"


def test_parts_of_a_file(tmp_path):
    path = str(tmp_path / "x.npz")
    tc.save(path, {"a": X})
    error = raised(lambda: tc.convert(path, tmp_path / "y.npz", "uint8", out_of_range="error"))
    assert (error.file, error.tensor, error.index) == (path, "a", 1)
    error = raised(lambda: tc.convert(path, path, "float16"))
    assert (error.file, error.hint) == (path, "overwrite=True replaces it")
    assert str(error).endswith("; overwrite=True replaces it")


@pytest.mark.parametrize("kind", [FileNotFoundError, tc.FileError, tc.CastError, OSError, ValueError])
@pytest.mark.parametrize("call", [tc.inspect, tc.open, tc.load, tc.load_model])
def test_a_missing_file_is_a_file_not_found_error(call, kind, tmp_path):
    path = str(tmp_path / "absent.npy")
    with pytest.raises(kind) as caught:
        call(path)
    error = caught.value
    assert (error.errno, error.filename, error.file) == (errno.ENOENT, path, path)
    assert error.strerror == "No such file or directory"


def test_other_errors_of_the_system(tmp_path):
    with pytest.raises(IsADirectoryError):
        tc.load_model(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError) as caught:
        tc.save(tmp_path / "file" / "x.npy", {"x": X})
    assert isinstance(caught.value, tc.FileError)


@pytest.mark.parametrize("make", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_are_pickled_and_copied(make, tmp_path):
    for call in (
        lambda: tc.cast(X, "uint8", out_of_range="error"),
        lambda: tc.inspect(tmp_path / "absent.npy"),
        lambda: tc.cast(X, "nothing"),
    ):
        error = raised(call)
        again = make(error)
        assert type(again) is type(error) and str(again) == str(error)
        for part in ("code", "hint", "file", "tensor", "index"):
            assert getattr(again, part) == getattr(error, part)
        if isinstance(error, OSError):
            assert (again.errno, again.filename, again.strerror) == (error.errno, error.filename, error.strerror)


def test_errors_can_be_made():
    error = tc.OutOfRangeError("too large", index=3, hint="scale= would help")
    assert (str(error), error.code, error.index, error.hint) == ("too large", "out_of_range", 3, "scale= would help")
    assert str(tc.FileError("gone")) == "gone"


def test_messages_are_in_pythons_words():
    for call, words in [
        (lambda: tc.cast(X, "float16", satruate=False), "unexpected keyword argument 'satruate'. Did you mean 'saturate'?"),
        (lambda: tc.promote(X, X, rulez="numpy"), "unexpected keyword argument 'rulez'"),
        (lambda: tc.convert("a", "b", "float16", force=True), "unexpected keyword argument 'force'"),
        (lambda: tc.convert("a", "b", "float16", overwite=True), "unexpected keyword argument 'overwite'. Did you mean 'overwrite'?"),
    ]:
        with pytest.raises(TypeError) as caught:
            call()
        assert words in str(caught.value)
    with pytest.raises(tc.UnsupportedError, match="promote_unsafe=True allows it"):
        tc.promote_types("float16", "bfloat16")
