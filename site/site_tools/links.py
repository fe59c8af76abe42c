# SPDX-License-Identifier: Apache-2.0
"""Links between Markdown files of the project, as they are in the site; and a check of the links of built pages."""

from __future__ import annotations

import html.parser
import os
import pathlib
import posixpath
import re
import sys
import urllib.parse
from collections.abc import Callable

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(?ms)^( *)(```|~~~).*?^\1\2[ ]*$|`[^`\n]+`")


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to all but code."""
    out, last = [], 0
    for block in FENCE.finditer(markdown):
        # Code in a link's text belongs to the link.
        if not block[0].startswith(("`", " ")) or "\n" in block[0]:
            out += [change(markdown[last : block.start()]), block[0]]
            last = block.end()
    return "".join([*out, change(markdown[last:])])


def rewritten(markdown: str, source: str, page: str, site: dict[str, str], exists: Callable[[str], bool], base: str) -> tuple[str, list[str]]:
    """The text of `source` (a path of the project) as the page `page` of the site, and the links that lead nowhere.

    `site` maps paths of the project to pages. A link to another file of the project becomes one to `base`, where the
    project's files can be read, or plain text if that is not known.
    """
    lost: list[str] = []

    def one(match: re.Match[str]) -> str:
        words, target = match.groups()
        if re.match(r"[a-z]+:|#|/", target):
            return match[0]
        path, _, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        mark = "#" + anchor if anchor else ""
        if wanted in site:
            return f"[{words}]({posixpath.relpath(site[wanted], posixpath.dirname(page))}{mark})"
        if wanted.startswith("docs/"):
            return match[0]  # MkDocs checks it
        if not exists(wanted):
            lost.append(target)
        return f"[{words}]({base.rstrip('/')}/{wanted})" if base else words

    return outside_code(markdown, lambda text: LINK.sub(one, text)), lost


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)
            if name in ("href", "src") and not (tag == "link" and ("rel", "canonical") in attributes):
                self.links.append(value)


def _read(path: pathlib.Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(folder: pathlib.Path) -> list[str]:
    """The links of all pages under `folder` that lead to no file, or to no place in it; and files fetched from elsewhere."""
    pages = {path.resolve(): _read(path) for path in sorted(folder.rglob("*.html")) if "explorer" not in path.parts}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            name = urllib.parse.unquote(parts.fragment)
            if path.name == "404.html":
                target = folder.resolve() / parts.path.lstrip("/") if parts.path else path
                target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{path.relative_to(folder.resolve())}: {link}: no such file")
            elif name and target in pages and name not in pages[target].names and not name.startswith("__"):
                found.append(f"{path.relative_to(folder.resolve())}: {link}: no such place")
    return found


if __name__ == "__main__":
    complaints = broken(pathlib.Path(sys.argv[1]))
    print(*complaints, sep="\n" if complaints else "", end="\n" if complaints else "")
    if complaints:
        sys.exit(f"docs: {len(complaints)} broken links")
    count = sum(len(files) for _, _, files in os.walk(sys.argv[1]))
    print(f"docs: {count} files, every link leads somewhere")
