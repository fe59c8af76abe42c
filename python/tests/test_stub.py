"""_core.pyi says what the extension module has: the same names, the same parameters."""

import ast
import pathlib

import numpy as np
import pytest

import tensorcast as tc
from tensorcast import _arrays, _core

STUB = ast.parse((pathlib.Path(tc.__file__).parent / "_core.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
VALUES = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)} - {"__version__"}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def _parameters(function):
    return [argument.arg for argument in function.args.args]


def test_names():
    assert {name for name in dir(_core) if not name.startswith("_")} == {*FUNCTIONS, *CLASSES, *VALUES}


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"cast"}))
def test_parameters(name):
    signature = getattr(_core, name).__doc__.splitlines()[0]  # nanobind begins with it
    (built,) = ast.parse(f"def {signature}: ...").body
    assert _parameters(FUNCTIONS[name]) == _parameters(built)


def test_properties_of_the_report():
    public = {name for name in vars(tc.CastReport) if not name.startswith("__")}
    assert public == {node.name for node in CLASSES["CastReport"].body} - {"__init__"}


def test_options_of_cast():
    """Every keyword of the stub is taken with its default, and changes nothing; cast takes no other."""
    arguments = FUNCTIONS["cast"].args
    assert _parameters(FUNCTIONS["cast"]) == ["x", "dtype"]
    defaults = {kw.arg: ast.literal_eval(value) for kw, value in zip(arguments.kwonlyargs, arguments.kw_defaults)}
    assert set(_arrays.cast.__kwdefaults__) <= set(defaults)
    array = np.float32([1.5, 1e9])
    for name, value in defaults.items():
        assert np.array_equal(tc.cast(array, "bfloat16", **{name: value}), tc.cast(array, "bfloat16")), name
        assert f"    {name}: " in tc.cast.__doc__, name
    assert np.array_equal(tc.cast(array, "bfloat16", **defaults), tc.cast(array, "bfloat16"))
