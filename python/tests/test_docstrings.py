# SPDX-License-Identifier: Apache-2.0
"""Everything public has an example in its docstring, and all examples give what they show."""

import doctest
import importlib
import inspect
import re
import typing

import doc_samples
import numpy as np
import pytest
from test_guide import Checker

import tensorcast as tc
from tensorcast._cast import _pool
from tensorcast._files import _files, _remote

# The public modules, and a package that each imports.
MODULES = {
    "tensorcast": "numpy",
    "tensorcast.checkpoint": "numpy",
    "tensorcast.graph": "numpy",
    "tensorcast.mdf": "modeci_mdf",
    "tensorcast.onnx": "onnx",
    "tensorcast.onnx.auto_mixed_precision": "onnx",
    "tensorcast.onnx.float16": "onnx",
    "tensorcast.onnx.transformers.float16": "onnx",
    "tensorcast.onnx_backend": "onnx",
    "tensorcast.openvino": "openvino",
    "tensorcast.ort": "onnxruntime",
    "tensorcast.ray": "numpy",
    "tensorcast.torch": "torch",
    "tensorcast.zarr": "zarr",
}
PACKAGES = ("fsspec", "matplotlib", "modeci_mdf", "onnx", "onnxruntime", "openvino", "ray", "torch", "zarr")
WITHOUT = ("tensorcast.onnx_backend.run_model",)  # onnx.backend.base.Backend defines it
# Words of examples, and the package without which these do not run.
NEEDS = {
    "onnx.search": "onnxruntime",
    "onnx.validate": "onnxruntime",
    "validate=": "onnxruntime",
    "auto_mixed_precision": "onnxruntime",
    "set_storage_options": "fsspec",
    "plot_report": "matplotlib",
    'framework="pt"': "torch",
    "mdf.install": "modeci_mdf",
    '.onnx"': "onnx",
    "openvino": "openvino",
    "library_path": "onnxruntime",
}


def _exported(module):
    names = getattr(module, "__all__", None)
    if module is tc:
        names = [*names, "open"]
    return {name: getattr(module, name) for name in names if not name.startswith("__")}


def _methods(kind):
    """The public methods that a class of this package defines and describes."""
    for owner in inspect.getmro(kind):
        if not owner.__module__.startswith("tensorcast"):
            continue
        for name, value in vars(owner).items():
            function = getattr(value, "__func__", value)
            is_compiled = type(function).__module__ == "nanobind"
            if not name.startswith("_") and (is_compiled or inspect.isfunction(function)) and function.__doc__:
                yield name, function


def _documented():
    """(name, docstring) of all that is public, each once."""
    found = {}
    for module_name, package in MODULES.items():
        try:
            importlib.import_module(package)
        except ImportError:
            continue
        module = importlib.import_module(module_name)
        found.setdefault(id(module), (module_name, module.__doc__))
        for name, value in _exported(module).items():
            if inspect.ismodule(value) or not callable(value):
                continue
            full = f"{module_name}.{name}"
            if full not in WITHOUT:
                function = getattr(value, "__func__", value)
                found.setdefault(id(function), (full, value.__doc__))
            if inspect.isclass(value) and not typing.is_typeddict(value):
                for method, function in _methods(value):
                    found.setdefault(id(function), (f"{full}.{method}", function.__doc__))
    return dict(found.values())


LIBRARIES = ("tensorcast.openvino", "tensorcast.ort")
DOCUMENTED = _documented()
WITH_EXAMPLES = {name: doc for name, doc in DOCUMENTED.items() if doc and ">>> " in doc}
MODULES_ALONE = {name for name in DOCUMENTED if name in MODULES}


def test_formats_of_files_are_named(tmp_path):
    """FileFormat and the four docstrings follow the list of formats in C++, which the errors print."""
    with pytest.raises(tc.CastError) as unknown:
        tc.save(tmp_path / "x.npy", {"": np.float32([1])}, format="other")
    names = unknown.value.hint.removeprefix("there are ").split(", ")
    assert set(names) == set(typing.get_args(_files.FileFormat))
    (tmp_path / "x.other").write_bytes(b"\1" * 100)
    for function, call in {
        (tc.inspect, tc.open, tc.convert): lambda: tc.open(tmp_path / "x.other"),
        (tc.save,): lambda: tc.save(tmp_path / "x.other", {"": np.float32([1])}),
    }.items():
        with pytest.raises(tc.UnsupportedError) as extensions:
            call()
        known = re.findall(r"\.\w+", extensions.value.hint.partition(";")[0])
        assert len(known) >= 7
        for documented in function:
            # Those of PyTorch's checkpoints are not listed one by one, and raw files have their own argument.
            for extension in set(known) - {".pt", ".pth", ".ckpt", ".bin", ".raw"}:
                assert f"``{extension}``" in documented.__doc__, f"{documented.__name__}: {extension}"


def test_everything_public_is_found():
    expected = (
        "tensorcast.cast",
        "tensorcast.convert",
        "tensorcast.TensorFile.get_slice",
        "tensorcast.graph.Graph.cast",
    )
    assert set(expected) <= DOCUMENTED.keys() and len(DOCUMENTED) > 100


@pytest.mark.parametrize("name", sorted(DOCUMENTED.keys() - MODULES_ALONE))
def test_has_an_example(name):
    assert name in WITH_EXAMPLES, f"{name} has no example in its docstring"


def _skip_without_libraries(name):
    """Some builds of the package have no libraries for other runtimes."""
    module = importlib.import_module(".".join(name.split(".")[:2]))
    paths = [
        getattr(module, path)
        for path in ("extension_path", "library_path", "provider_library_path")
        if hasattr(module, path)
    ]
    try:
        for path in paths:
            path()
    except tc.CastError as error:
        pytest.skip(str(error))


@pytest.fixture
def kept_settings():
    """Restores what examples set for the whole process."""
    options = dict(_remote._storage_options)
    yield
    tc.set_result_pool(512 << 20)
    _pool.read_environment()
    _remote._storage_options.clear()
    _remote._storage_options.update(options)
    _remote._set_store.cache_clear()


@pytest.mark.parametrize("name", sorted(WITH_EXAMPLES))
@pytest.mark.filterwarnings("ignore")
def test_example(name, tmp_path, monkeypatch, kept_settings):
    doc = inspect.cleandoc(WITH_EXAMPLES[name])
    if tuple(map(int, np.__version__.split(".")[:2])) < (2, 3):
        pytest.skip("older NumPy prints numbers in another way")
    test = doctest.DocTestParser().get_doctest(doc, doc_samples.names(), name, None, None)
    source = "".join(example.source for example in test.examples)
    for package in PACKAGES:
        if re.search(rf"import (tensorcast\.)?{package}\b", source):
            pytest.importorskip(package)
    for words, package in NEEDS.items():
        if words in source:
            pytest.importorskip(package)
    if name.startswith(LIBRARIES):
        _skip_without_libraries(name)
    if ".safetensors" in source or '"model' in source:
        doc_samples.write_files(tmp_path)
    if '.onnx"' in source:
        doc_samples.write_onnx(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = []
    failed, tried = doctest.DocTestRunner(checker=Checker()).run(test, out=said.append)
    assert tried and not failed, "".join(said)
