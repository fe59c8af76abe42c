#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of the name of a scheme, layout, method or recipe with a literal, and how many there may be.

What differs between schemes, layouts and methods is a column of their tables: block_formats(), quantize_recipes(), the
Spelling of each layout and its StoredScheme rows. A literal in a condition is a column that no table has. Counted are
literals beside `==` or `!=` that are a name of these tables, and those in starts_with() and ends_with() that are the
beginning or the end of a scheme. Keys of JSON and YAML, types and names of files are none of them.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 15
LITERAL = r'"([^"\\\n]+)"'
OF_FILES = r"(?<!format\.name )(?<!output_\.name )"  # of file formats, whose names are others
VIEW = r"(?:std::string_view\()?"
COMPARISON = re.compile(rf'{OF_FILES}[=!]= *{VIEW}{LITERAL}|{LITERAL} *[=!]=|is_same_name\([^,()]+, {LITERAL}\)')
AFFIX = re.compile(rf'\b(?:starts|ends)_with\({LITERAL}\)')


def known_names():
    """The names of schemes, and of all tables."""
    formats = (ROOT / "src/block/format/formats.cpp").read_text()
    rows = re.findall(r'\{"([\w-]+)", "([\w-]+)", ', formats)
    ggml = (ROOT / "src/block/format/gguf_block.hpp").read_text()
    schemes = {scheme for scheme, _ in rows} | set(re.findall(r'\{GgufBlock::\w+, "([\w-]+)"', ggml))
    names = schemes | {layout for _, layout in rows} | {"gguf"}
    for path in (ROOT / "src/quantized/layout").glob("*.[ch]pp"):
        text = path.read_text()
        names |= set(re.findall(r'\.word = "([^"]+)"', text))
        for row in re.findall(r"Spelling layouts::\w+ = \{(.*?)\n\n", text, re.DOTALL):
            names |= set(re.findall(r'\.name = "([^"]+)"', row))
        names |= set(re.findall(r'_method\("([^"]+)"', text))
    # Words of ComfyUI that are types.
    return schemes, {name for name in names if not re.fullmatch(r"float\d+_\w+", name)}


def is_affix(literal, schemes):
    text = literal.strip("-_")
    kinds = {scheme.split("-")[-1] for scheme in schemes if "-" in scheme}
    is_part = text in kinds or re.search(r"\d|fp", text) is not None
    return is_part and any(scheme.startswith(text) or scheme.endswith(text) for scheme in schemes)


def comparisons():
    """The comparisons of src, tools and python/src, without tests: "path:line: code"."""
    schemes, names = known_names()
    found = []
    for folder in ("src", "tools", "python/src"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            if path.stem.endswith(("_test", "_fuzz")) or "testing" in path.name:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = line.split("//")[0]
                literals = [next(filter(None, match.groups())) for match in COMPARISON.finditer(code)]
                counted = [literal for literal in literals if literal in names]
                counted += [match[1] for match in AFFIX.finditer(code) if is_affix(match[1].lower(), schemes)]
                found += [f"{path.relative_to(ROOT)}:{number}: {code.strip()}"] * len(counted)
    return found


if __name__ == "__main__":
    print(*comparisons(), sep="\n")
