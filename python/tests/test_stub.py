# SPDX-License-Identifier: Apache-2.0
"""_core.pyi says what the extension module has: the same names, the same parameters."""

import ast
import inspect
import pathlib

import numpy as np
import pytest

import tensorcast as tc
from tensorcast import _convert_options, _core, _options

STUB = ast.parse((pathlib.Path(tc.__file__).parent / "_core.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
VALUES = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)} - {"__version__"}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def _parameters(function):
    return [argument.arg for argument in function.args.args]


def test_names():
    described = {name for name in (*FUNCTIONS, *CLASSES, *VALUES) if not name.startswith("_")}
    assert {name for name in dir(_core) if not name.startswith("_")} == described


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"cast"}))
def test_parameters(name):
    signature = getattr(_core, name).__doc__.splitlines()[0]  # nanobind begins with it
    (built,) = ast.parse(f"def {signature}: ...").body
    assert _parameters(FUNCTIONS[name]) == _parameters(built)


def test_properties_of_the_report():
    public = {name for name in vars(tc.CastReport) if not name.startswith("__")}
    described = {node.name for node in CLASSES["CastReport"].body if isinstance(node, ast.FunctionDef)}
    assert public == {name for name in described if not name.startswith("__")}


def test_options_of_cast():
    """Every keyword of the signature is taken with its default, and changes nothing; the stub has the same ones."""
    parameters = inspect.signature(tc.cast).parameters
    assert [name for name, p in parameters.items() if p.kind is p.POSITIONAL_ONLY] == ["x"]
    assert list(parameters)[:2] == ["x", "to"]
    defaults = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    overloads = [node.args for node in STUB.body if isinstance(node, ast.FunctionDef) and node.name == "cast"]
    assert all([argument.arg for argument in (*each.posonlyargs, *each.args)] == ["x", "to"] for each in overloads)
    described = {argument.arg for each in overloads for argument in each.kwonlyargs}
    lists = [each for each in CLASSES.values() if each.name.startswith("_Of")]
    described |= {node.target.id for each in lists for node in each.body}
    assert {"CastOptions", "MappingOptions"} <= {base.id for each in lists for base in each.bases}
    described |= {*tc.CastOptions.__annotations__, *_convert_options.MappingOptions.__annotations__}
    assert described == set(defaults)
    assert {name: defaults[name] for name in _options.DEFAULTS} == _options.DEFAULTS
    array = np.float32([1.5, 1e9])
    for name, value in defaults.items():
        assert np.array_equal(tc.cast(array, "bfloat16", **{name: value}), tc.cast(array, "bfloat16")), name
        assert f"    {name}: " in tc.cast.__doc__, name
    assert np.array_equal(tc.cast(array, "bfloat16", **defaults), tc.cast(array, "bfloat16"))


@pytest.mark.parametrize(
    "function",
    [tc.convert, tc.inspect, tc.explain, tc.promote, tc.CastNode, tc.CastLikeNode, tc.graph.Graph.cast,
     tc.graph.Graph.cast_like, tc.graph.Graph.convert_promote_types],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_signatures_show_the_options(function):
    parameters = inspect.signature(function).parameters
    assert {name: parameters[name].default for name in _options.DEFAULTS} == _options.DEFAULTS
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values())
    assert "Literal['up', 'down', 'nearest']" in str(parameters["round_mode"])
