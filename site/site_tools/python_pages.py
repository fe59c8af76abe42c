# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package: its docstrings, read by mkdocstrings. `cast` has its docstring in C++, from which
a module of its own is made for mkdocstrings.
"""

from __future__ import annotations

import ast
import re

from site_tools import engine

PACKAGE = engine.ROOT / "python/tensorcast"
MADE = engine.ROOT / "build/site-python"  # mkdocs.yml has it among the paths of mkdocstrings


def _public(module: str) -> list[str]:
    tree = ast.parse((PACKAGE / module).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    own = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]
    return own


def cast_module() -> str:
    """A module with the signature of tensorcast.cast and help(tensorcast.cast), whose options are those of the command."""
    source = (engine.ROOT / "python/src/cast_doc.hpp").read_text()
    frame = re.search(r'R"\(cast\((.*?)\n--\n\n(.*?)\)";', source, re.DOTALL)
    if not frame:
        raise RuntimeError("python/src/cast_doc.hpp has no text")
    section = re.search(r"(?ms)^Conversion options:\n(.*?)^\S", engine.run("explain", "--help"))
    if not section:
        raise RuntimeError("tcast explain --help has no conversion options")
    rows: list[list[str]] = []
    for row in section[1].splitlines():
        flag = re.match(r"  --(\S+)(?: (\S+))?(?:\s{2,}(.*))?$", row)
        if flag:
            rows.append([flag[1].replace("-", "_"), flag[3] or ""])
        elif rows and row.strip():
            rows[-1][1] += " " + row.strip()
    options = "".join(f"    {name}: {' '.join(text.split())}.\n" for name, text in rows if not name.startswith("no_"))
    doc = frame[2].replace("{options}", options).replace("\n", "\n    ")
    return f'def cast({frame[1].replace("{signature}", "**options")}:\n    r"""{doc}\n    """\n'


def write_cast_module() -> None:
    MADE.mkdir(parents=True, exist_ok=True)
    (MADE / "tensorcast_cast.py").write_text(cast_module())


def _members(module: str, names: list[str]) -> str:
    """Functions first: people look for these, and find the classes that they return from there."""
    return "\n".join(f"::: {module}.{name}\n" for name in sorted(names, key=lambda name: (name[0].isupper(), name)))


def pages() -> dict[str, str]:
    modules = ("checkpoint", "graph", "onnx", "mdf", "onnx_backend", "openvino", "ort", "ray", "torch")
    top = [name for name in _public("__init__.py") if name not in (*modules, "__version__", "cast", "CastReport")]
    head = "# tensorcast\n\n::: tensorcast_cast.cast\n\n::: tensorcast._core.CastReport\n\n"
    runtimes = "\n".join(f"::: tensorcast.{name}\n" for name in ("torch", "ort", "openvino", "onnx_backend", "mdf", "ray"))
    return {
        "reference/python/tensorcast.md": head + _members("tensorcast", top),
        "reference/python/checkpoint.md": "# tensorcast.checkpoint\n\n" + _members("tensorcast.checkpoint", _public("checkpoint.py")),
        "reference/python/graph.md": "# tensorcast.graph\n\n" + _members("tensorcast.graph", _public("graph.py")),
        "reference/python/onnx.md": "# tensorcast.onnx\n\n" + _members("tensorcast.onnx", _public("onnx/__init__.py")),
        "reference/python/runtimes.md": "# Modules for other runtimes\n\n" + runtimes,
    }
