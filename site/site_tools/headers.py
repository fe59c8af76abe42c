# SPDX-License-Identifier: Apache-2.0
"""The reference of C++ and C: the declarations of the public headers with the comments above and behind them.

cxxheaderparser reads the declarations. It knows comments as Doxygen marks them and no preprocessor, so the text is
prepared first; the headers stay as they are.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any

from cxxheaderparser.simple import ClassScope, NamespaceScope, parse_string
from cxxheaderparser.types import Concept, EnumDecl, Function, Method, Variable

CONTRACT = re.compile(r"^(Sizes|Overlap|Loss|Errors|Cost|Options|Threads)(?::\s|\s{2,})\s*(.*)")


def marked(source: str, is_c: bool) -> str:
    """The text without directives, its comments marked for the parser."""
    lines, skipped = [], []
    for written in source.replace("\\\n", " ").splitlines():  # a directive may have several lines
        if "SPDX-License-Identifier" in written:
            continue
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", written)
        if directive:
            word, condition = directive.groups()
            if word in ("if", "ifdef", "ifndef"):
                skipped.append("__cplusplus" in condition if is_c else re.search(r"__[A-Z]", condition) is not None)
            elif word in ("else", "elif") and skipped:
                skipped[-1] = True  # the first branch is the one that is shown
            elif word == "endif" and skipped:
                skipped.pop()
            continue
        if not any(skipped):
            lines.append(written)
    text = "\n".join(lines)
    text = re.sub(r"\b(TENSORCAST_API|TC_API)\b ?| TENSORCAST_LIFETIMEBOUND\b", "", text)
    text = re.sub(r"(?m)^(inline namespace TENSORCAST_ABI {|}  // namespace TENSORCAST_ABI)\n", "", text)
    if is_c:
        text = re.sub(r"(?m)^(\s*)/\*(?!\*)", r"\1/**", text)
        text = re.sub(r"(?m)(\S[ \t]+)/\*(?!\*)", r"\1/**<", text)
        text = re.sub(r"(?m)(\w) (/\*\*<.*\*/)\n}", r"\1, \2\n}", text)  # the last enumerator's comment
        text = re.sub(r"typedef enum {([^}]*)} (\w+);", r"enum \2 {\1};", text)
        return re.sub(r"typedef struct (\w+) {([^}]*)} \w+;", r"struct \1 {\2};", text)
    # Behind a declaration of the namespace: above it. Above a member, after another member's: apart from that.
    text = re.sub(r"(?m)^([^\s/}].*[;}]) +// (.*)$", r"// \2\n\1", text)
    text = re.sub(r"(?m)^( +[^\s/].* // .*)\n( +// )", r"\1\n\n\2", text)
    text = re.sub(r"(?m)^(\s*)//(?!/) ?", r"\1/// ", text)
    return re.sub(r"(?m)(\S) +// ", r"\1  ///< ", text)


def prose(doxygen: str | None) -> str:
    """A comment as Markdown; the parts of a contract become a list."""
    if not doxygen:
        return ""
    body = re.sub(r"^/\*\*<?|\*/$", "", doxygen.strip())
    rows = [re.sub(r"^\s*(///<?|\*(?!\*))? ?", "", row).rstrip() for row in body.splitlines()]
    out: list[str] = []
    for row in rows:
        contract = CONTRACT.match(row)
        if contract:
            if out and out[-1] and not out[-1].startswith(("* ", "  ")):
                out.append("")
            out.append(f"* **{contract[1]}**: {contract[2]}")
        elif out and out[-1].startswith(("* ", "  ")) and row.strip():
            out.append("  " + row.strip())
        else:
            out.append(row.strip())
    text = "\n".join(out).strip()
    return re.sub(r"<(?=[A-Za-z/])", "&lt;", text)


def signature(function: Function) -> str:
    """The declaration on one line, or a parameter on each if it is long."""
    template = ""
    if function.template:
        found = function.template if isinstance(function.template, list) else [function.template]
        template = "".join(part.format() + "\n" if hasattr(part, "format") else "" for part in found)
    words = [word for word in ("static", "constexpr", "explicit") if getattr(function, word, False)]
    if function.return_type is not None and not (isinstance(function, Method) and (function.constructor or function.destructor)):
        words.append(function.return_type.format())
    name = function.name.format()
    parameters = [parameter.format() for parameter in function.parameters]
    tail = " const" if isinstance(function, Method) and function.const else ""
    tail += " noexcept" if function.noexcept else ""
    tail += " = delete" if function.deleted else ""
    head = " ".join([*words, name]) + "("
    flat = head + ", ".join(parameters) + ")" + tail
    if len(flat) > 100:
        flat = head + "\n    " + ",\n    ".join(parameters) + ")" + tail
    return template + flat + ";"


def code(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```\n"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def enumeration(enum: EnumDecl) -> tuple[str, str]:
    name = enum.typename.segments[-1].format() if enum.typename.segments else ""
    rows = ["| enumerator | value | |", "| --- | --- | --- |"]
    for entry in enum.values:
        value = entry.value.format() if entry.value else ""
        rows.append(f"| `{entry.name}` | {value} | {cell(prose(entry.doxygen))} |")
    return name if not name.startswith("<") else "", prose(enum.doxygen) + "\n\n" + "\n".join(rows) + "\n"


def structure(scope: ClassScope, language: str, level: int) -> list[str]:
    declared = scope.class_decl
    name = declared.typename.segments[-1].format()
    if name.startswith("<"):
        return []
    out = [f"{'#' * level} {declared.typename.classkey or 'class'} {name}\n", prose(declared.doxygen) + "\n"]
    fields = [field for field in scope.fields if field.access in (None, "public") and field.name]
    if fields:
        out += ["| member | default | |", "| --- | --- | --- |"]
        for field in fields:
            default = f"`{cell(field.value.format())}`" if field.value else ""
            out.append(f"| `{cell(field.type.format_decl(field.name))}` | {default} | {cell(prose(field.doxygen))} |")
        out.append("")
    shown = [m for m in scope.methods if m.access in (None, "public") and getattr(m, "operator", None) is None and not m.deleted and not m.default]
    shown = [m for m in shown if not m.destructor]
    for method in shown:
        out += [code(signature(method), language), prose(method.doxygen) + "\n"]
    for enum in scope.enums:
        if enum.access in (None, "public"):
            inner, body = enumeration(enum)
            out += [f"**enum {name}::{inner}**\n", body]
    for inner_class in scope.classes:
        if inner_class.class_decl.access in (None, "public") and inner_class.class_decl.typename.segments[-1].format()[0].isupper():
            out += structure(inner_class, language, level + 1)
    return out


def _public(scope: NamespaceScope, prefix: str = "") -> list[tuple[str, NamespaceScope]]:
    found = [(prefix, scope)]
    for name, inner in scope.namespaces.items():
        if name not in ("detail", "std", "internal"):
            found += _public(inner, f"{prefix}::{name}".removeprefix("::"))
    return found


def _operator(function: Function) -> bool:
    return getattr(function, "operator", None) is not None


def page(header: pathlib.Path) -> str:
    """One header's page."""
    is_c = header.suffix == ".h"
    language = "c" if is_c else "cpp"
    source = re.sub(r"^(//|/\*) SPDX[^\n]*\n", "", header.read_text())
    parsed = parse_string(marked(source, is_c))
    out = [f"# {header.name}\n"]
    intro = re.match(r"(?:// [^\n]*\n)*", source) if not is_c else None
    first = prose("\n".join("/// " + row[3:] for row in intro.group().splitlines())) if intro else ""
    if is_c:
        comment = re.match(r"\s*/\*(.*?)\*/", source, re.DOTALL)
        first = prose("/**" + comment[1] + "*/") if comment else ""
    out += [first + "\n", code(f'#include "tensorcast/{header.name}"', language)]
    for name, scope in _public(parsed.namespace):
        body: list[str] = []
        for enum in scope.enums:
            named, text = enumeration(enum)
            first_constants = not named and "## Constants\n" not in body
            body += [f"## enum {named}\n" if named else "## Constants\n" if first_constants else "", text]
        for alias in scope.using_alias:
            body += [f"## {alias.alias}\n", code(f"using {alias.alias} = {alias.type.format()};", language), prose(alias.doxygen) + "\n"]
        for concept in scope.concepts:
            body += _concept(concept, language)
        for typedef in scope.typedefs:
            body += [f"## {typedef.name}\n", code(f"typedef {typedef.type.format_decl(typedef.name)};", language)]
        for inner in scope.classes:
            body += structure(inner, language, 2)
        previous = ""
        for function in scope.functions:
            if _operator(function):
                continue
            called = function.name.format()
            if called != previous:
                body.append(f"## {called}\n")
            previous = called
            body += [code(signature(function), language), prose(function.doxygen) + "\n"]
        body += [_variable(variable, language) for variable in scope.variables]
        if body and not is_c:
            out.append(f"Namespace `{name}`.\n")
        out += body
    return "\n".join(out)


def _concept(concept: Concept, language: str) -> list[str]:
    return [f"## concept {concept.name}\n", prose(concept.doxygen) + "\n"]


def _variable(variable: Variable, language: str) -> str:
    name = variable.name.format()
    declared = variable.type.format_decl(name)
    value = f" = {variable.value.format()}" if variable.value else ""
    return f"## {name}\n\n{code(declared + value + ';', language)}\n{prose(variable.doxygen)}\n"


WITHOUT_PAGES = ("export.hpp", "element_code.hpp", "tensorcast.hpp", "version.hpp")


def pages(folder: pathlib.Path) -> dict[str, str]:
    """reference/cpp/NAME.md for each header, and an index."""
    headers = sorted(path for path in folder.iterdir() if path.name not in WITHOUT_PAGES)
    made = {f"reference/cpp/{path.name.replace('.', '_')}.md": page(path) for path in headers}
    rows = ["# C++ and C", "", "Made from the headers and their comments. `tensorcast.hpp` includes all of C++; `c_api.h`,", "`c_files.h` and `c_onnx.h` are C.", ""]
    rows += ["| header | |", "| --- | --- |"]
    for path in headers:
        text = made[f"reference/cpp/{path.name.replace('.', '_')}.md"].split("\n", 2)[2].strip().split("\n\n")[0]
        text = re.sub(r"^Component \w+\. ", "", text)
        rows.append(f"| [{path.name}]({path.name.replace('.', '_')}.md) | {cell(text).split('. ')[0].rstrip('.')} |")
    made["reference/cpp/index.md"] = "\n".join(rows) + "\n"
    return made


def problems(made: dict[str, Any]) -> list[str]:
    """Pages that say nothing, as the parser lost a header, or that begin with its licence."""
    return [name for name, text in made.items()
            if (text.count("\n## ") == 0 and not name.endswith("index.md")) or "SPDX-License" in text]
