# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does not do by itself: pages from the engine, the headers, the command and the project's own files.

A page has generated parts where it says `<!-- site: NAME ARGUMENT... -->`, which other viewers do not show.
"""

from __future__ import annotations

import logging
import os
import pathlib
import posixpath
import re
import shutil
import sys
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from site_tools import command, engine, facts, headers, links, pictures, python_pages  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks.tensorcast")
ROOT = engine.ROOT
PROJECT = ("DESIGN.md", "CONTRIBUTING.md", "RELEASING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CHANGELOG.md")
SITE = {
    **{name: f"project/{name}" for name in PROJECT},
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "include/tensorcast": "reference/cpp/index.md",
    "python/tensorcast": "reference/python/tensorcast.md",
    **{
        f"include/tensorcast/{path.name}": f"reference/cpp/{path.name.replace('.', '_')}.md"
        for path in (ROOT / "include/tensorcast").iterdir()
        if path.name not in headers.WITHOUT_PAGES
    },
}
SOURCE_URL = os.environ.get("TENSORCAST_SOURCE_URL", "")  # where the project's files can be read; "" if nowhere
EXPLORER = ROOT / "build/web"


def readme(section: str) -> str:
    """A section of the README, which is the one place for it."""
    found = re.search(rf"(?ms)^## {re.escape(section)}\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text())
    if not found:
        raise RuntimeError(f"README.md has no section {section}")
    return links.rewritten(found[1], "README.md", "index.md", {**SITE, **_docs()}, _exists, SOURCE_URL)[0]


def _docs() -> dict[str, str]:
    folder = ROOT / "docs"
    return {f"docs/{path.relative_to(folder).as_posix()}": path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}


def _exists(path: str) -> bool:
    return (ROOT / path).exists()


def explorer(page: str, state: str = "") -> str:
    """The explorer above the text, if it was built; else, on the first page, a picture of it."""
    if not (EXPLORER / "index.html").is_file():
        place = posixpath.relpath("explorer.md", posixpath.dirname(page))
        if page == "index.md":
            return f"[![0.1 as float8_e4m3fn: its bits, its exact value, its neighbours](explorer/number.png)]({place})\n"
        return "" if page == "explorer.md" else f"[The explorer]({place}) shows it bit by bit.\n"
    place = posixpath.relpath("explorer/index.html", posixpath.dirname(page)) + (f"#{state}" if state else "")
    return (
        f'<iframe class="explorer" loading="lazy" title="Explorer" src="{place}"></iframe>\n\n'
        f'<a href="{place}">The explorer on a page of its own</a>\n'
    )


def formats() -> str:
    rows = []
    for name, row in engine.types().items():
        size = f"{row['bits']}" if row["bits"] else "any"
        ends = f"{float(row['lowest']):.6g} to {float(row['largest']):.6g}" if "lowest" in row else ""
        if row["family"] == "integer":
            ends = f"{int(row['lowest'])} to {int(row['largest'])}"
        rows.append([f"[{name}](types/{name}.md)", size, ends, row["special_codes"], str(row["since_opset"] or "-")])
    return facts.table(["type", "bits", "range", "special codes", "since opset"], rows)


def scheme(*names: str) -> str:
    """The rows of docs/blocks.md on these schemes."""
    lines = (ROOT / "docs/blocks.md").read_text().splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("| scheme "))
    rows = [line for line in lines[head + 2 :] if set(names) & set(re.findall(r"[\w-]+", line.partition(" | ")[0]))]
    if not rows:
        raise RuntimeError(f"docs/blocks.md has no scheme {' '.join(names)}")
    return "\n".join(lines[head : head + 2] + [row for row in rows if row.startswith("|")]) + "\n"


FIRST = {"console": "Command", "pycon": "Python", "cpp": "C++"}


def first_steps() -> str:
    """README's first steps, one language at a time: tabs of HTML and CSS."""
    blocks = dict(re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", readme("First steps")))
    tabs = []
    for language, title in FIRST.items():
        code = "".join(f"    {line}\n" for line in f"```{language}\n{blocks[language]}```".splitlines())
        tabs.append(f'=== "{title}"\n\n{code}')
    return "\n".join(tabs)


MARK = re.compile(r"(?m)^<!-- site: (\S+)(.*?) -->")


def generated(name: str, arguments: list[str], page: str) -> str:
    makers: dict[str, Any] = {
        "type": facts.whole_page,
        "codes": facts.all_codes,
        "facts": facts.facts,
        "layout": facts.layout,
        "special": facts.special_codes,
        "casts": facts.casts,
        "compared": facts.compared,
        "same-casts": facts.same_casts,
        "error-against-type": pictures.error_against_type,
        "precision-against-magnitude": pictures.precision_against_magnitude,
        "time-against-memcpy": pictures.time_against_memcpy,
        "formats": formats,
        "scheme": scheme,
        "explorer": lambda *state: explorer(page, "&amp;".join(state)),
        "first-steps": first_steps,
        "readme": lambda *words: readme(" ".join(words)),
    }
    text: str = makers[name](*arguments)
    return text


def _named(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    return set().union(*(_named(part) for part in (nav.values() if isinstance(nav, dict) else nav)))


def on_startup(**_: Any) -> None:
    """Before mkdocstrings looks for its paths."""
    python_pages.write_cast_module()


def on_config(config: Any) -> Any:
    """Lists a new page of docs/ among the others, so that it is not forgotten."""
    sections = {name: part for entry in config["nav"] for name, part in entry.items()}
    for uri in sorted(set(_docs().values()) - _named(config["nav"])):
        if "/" not in uri:
            sections["Project" if uri.startswith("adding-") else "How to"].append(uri)
    return config


def on_files(files: Files, config: Any) -> Files:
    made: dict[str, str] = headers.pages(ROOT / "include/tensorcast")
    for name in headers.problems(made):
        LOG.warning("%s: the parser found nothing", name)
    made |= python_pages.pages()
    made["reference/command.md"] = command.page()
    made |= {f"project/{name}": (ROOT / name).read_text() for name in PROJECT if (ROOT / name).is_file()}
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    heading = re.match(r"(?:\s|<!--.*?-->)*# (.+)", markdown)
    if heading:  # the window's title is the question, where the list of pages has a short name
        page.meta.setdefault("title", heading[1])
    source = next((path for path, target in SITE.items() if target == uri and path in PROJECT), f"docs/{uri}")
    text = MARK.sub(lambda mark: generated(mark[1], mark[2].split(), uri), markdown)
    text, lost = links.rewritten(text, source, uri, {**SITE, **_docs()}, _exists, SOURCE_URL)
    for target in lost:
        LOG.warning("%s: %s: no such file of the project", uri, target)
    return text


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Docstrings have Sphinx's roles, which mkdocstrings shows as they are."""
    return re.sub(r":(?:func|class|meth|mod|attr|data|exc):(?=<code>)", "", html)


def on_post_build(config: Any) -> None:
    if (EXPLORER / "index.html").is_file():
        if "connect-src 'none'" not in (EXPLORER / "index.html").read_text():
            LOG.warning("build/web: the explorer has no policy that forbids connections; scripts/web builds it again")
        shutil.copytree(EXPLORER, pathlib.Path(config["site_dir"]) / "explorer", dirs_exist_ok=True)
