# SPDX-License-Identifier: Apache-2.0
"""Joins the page's ES modules into one script: pages that open from a disk may not load modules.

Each module becomes a function that returns its exports. Imports are `import { a, b } from "./x.js"` and
`import * as a from "./x.js"`, one a line; exports are of functions, classes and constants.
"""

from __future__ import annotations

import pathlib
import re

IMPORT = re.compile(r'^import (?:\{ ([^}]+) \}|\* as (\w+)) from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def bundle(folder: pathlib.Path, entry: str) -> str:
    order: list[str] = []
    texts: dict[str, str] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in texts:
            return
        if name in above:
            raise ValueError(f"{name} imports itself by {' '.join(above)}")
        text = (folder / name).read_text()
        for found in IMPORT.finditer(text):
            visit(found[3], (*above, name))
        texts[name] = text
        order.append(name)

    visit(entry, ())
    return "\n".join(_function(name, texts[name]) for name in order)


def variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name)


def _function(name: str, text: str) -> str:
    exported = [found[1] for found in EXPORT.finditer(text)]

    def imported(found: re.Match[str]) -> str:
        names = f"{{ {found[1].replace(' as ', ': ')} }}" if found[1] else found[2]
        return f"const {names} = {variable(found[3])};\n"

    text = EXPORT.sub("", IMPORT.sub(imported, text))
    for mark in ("import ", "export "):
        if re.search(rf"^{mark}", text, re.MULTILINE):
            raise ValueError(f"{name}: an {mark}of another form")
    return f"const {variable(name)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();"
