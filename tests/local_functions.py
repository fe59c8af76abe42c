# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of C++ sources that no other source can call by right."""

import collections
import re

import source_lengths

_NAMESPACE = re.compile(r"\b(inline\s+)?namespace\s*([\w:]*)\s*$")
_STATIC = re.compile(r"(?:^|[\s\]>])static\b")
_NAME = re.compile(r"(?<![\w:~])([a-z]\w*)\s*\(")
_ANONYMOUS, _INLINE, _OTHER = "{", "inline", ""  # in the place of a namespace's name


def local_functions(text):
    """{(namespace, name)} of the functions in anonymous namespaces, and of static ones; operators are left out."""
    found, blocks, head, here = set(), [], "", 0
    for token in source_lengths.TOKEN.finditer(text):
        head += text[here:token.start()]
        here, what = token.end(), token.group()
        if what not in ("{", "}", ";"):
            head += '""' if what[0] in "\"R'" else ""
            continue
        if what == "{":
            namespace, name = _NAMESPACE.search(head), _NAME.search(head)
            if namespace:
                blocks.append(_INLINE if namespace.group(1) else namespace.group(2) or _ANONYMOUS)
            else:
                is_function = _OTHER not in blocks and source_lengths.opens(head) == "function"
                if is_function and name and (_ANONYMOUS in blocks or _STATIC.search(head)):
                    found.add(("::".join(b for b in blocks if b not in (_ANONYMOUS, _INLINE)), name.group(1)))
                blocks.append(_OTHER)
        elif what == "}" and blocks:
            blocks.pop()
        head = ""
    return found


def shared_names(sources):
    """{(namespace, name): [source]} of local functions that several of the sources, {source: text}, have."""
    owners = collections.defaultdict(list)
    for source, text in sources.items():
        for function in local_functions(text):
            owners[function].append(source)
    return {function: names for function, names in owners.items() if len(names) > 1}
