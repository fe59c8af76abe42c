# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of C++ and Python sources and how many lines each has."""

import ast
import re

# What stands between the parameters of a C++ function and its body.
_AFTER_PARAMETERS = re.compile(
    r"\)\s*(?:const\b|noexcept\b(?:\s*\([^()]*\))?|override\b|final\b|mutable\b|try\b|&&?|\s)*"
    r"(?:->\s*[\w:<>,*&\s()]+?)?\s*$")
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![\w'])'(?:\\.|[^'\\\n])+'|[{};]"
    r"|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.DOTALL | re.MULTILINE)


def opens(head):
    """What a brace behind this text opens: "scope", "function", or "" for initializers and the like."""
    if _AFTER_PARAMETERS.search(head):
        return "function"
    return "scope" if _SCOPE.search(head) and "=" not in head else ""


def cpp_functions(text):
    """(name, first line, number of lines) of each function that is not inside another one."""
    found, blocks, head, start, here = [], [], "", 0, 0
    for token in TOKEN.finditer(text):
        words = text[here:token.start()]
        if not head.strip():
            head, start = "", here + len(words) - len(words.lstrip())
        head += words
        here, what = token.end(), token.group()
        if what not in ("{", "}", ";"):
            head += '""' if what[0] in "\"R'" else ""
            continue
        if what == "{":
            inside = any(kind != "scope" for kind, _, _ in blocks)
            blocks.append(("inside" if inside else opens(head), head, start))
        elif what == "}" and blocks:
            kind, words, begin = blocks.pop()
            if kind == "function":
                name = re.findall(r"([~\w:]+|operator\W+)\s*\(", words)
                first = text.count("\n", 0, begin) + 1
                found.append((name[0] if name else "?", first, text.count("\n", 0, here) + 2 - first))
        head = ""
    return found


def python_functions(text):
    """(name, first line, number of lines without the docstring) of each function."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        lines = node.end_lineno - node.lineno + 1
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= first.end_lineno - first.lineno + 1
        found.append((node.name, node.lineno, lines))
    return found


def imports_of(text, package, modules):
    """The modules of a package that one of them, with this text, imports when it is loaded or in functions; not those
    for type checkers alone. `package` is the dotted name of its package."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            children = node.orelse
        else:
            children = ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package.split(".")[: len(package.split(".")) + 1 - node.level], *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found.update(names & modules or {base} & modules)
        for child in children:
            visit(child)

    visit(ast.parse(text))
    return {module for module in found if not f"{package}.".startswith(f"{module}.")}  # a package is loaded by then
