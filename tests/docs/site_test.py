# SPDX-License-Identifier: Apache-2.0
"""The site: what its pages say is the engine's, each type has one, links are checked. scripts/docs builds all of it."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest


@pytest.fixture(scope="module")
def tools(source_dir, tcast):
    """The modules of the site that need nothing but Python and the command."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(source_dir / "site"))
    patch.setenv("TCAST", str(tcast))
    patch.setattr(sys, "dont_write_bytecode", True)
    from site_tools import command, engine, facts, links, pictures, python_pages

    yield {module.__name__.split(".")[-1]: module for module in (command, engine, facts, links, pictures, python_pages)}
    patch.undo()


def test_each_type_has_a_page_that_is_listed(source_dir, tools):
    listed = (source_dir / "site/mkdocs.yml").read_text()
    for name in tools["engine"].types():
        text = (source_dir / f"docs/types/{name}.md").read_text()
        assert f"<!-- site: type {name} -->" in text
        assert text.startswith(f"# What is {name}")
        assert f"- {name}: types/{name}.md\n" in listed


def test_each_scheme_is_listed(source_dir):
    listed = (source_dir / "site/mkdocs.yml").read_text()
    index = (source_dir / "docs/schemes/index.md").read_text()
    pages = sorted(path.name for path in (source_dir / "docs/schemes").iterdir())
    assert len(pages) >= 15
    for name in pages:
        assert f" schemes/{name}\n" in listed
        assert "<!-- site: explorer view=blocks " in (source_dir / "docs/schemes" / name).read_text()
        assert name == "index.md" or "-or-" in name or f"]({name})" in index


def test_marks_name_what_there_is(source_dir):
    known = re.search(r"makers.*?= \{(.*?)\n    \}", (source_dir / "site/site_tools/hooks.py").read_text(), re.DOTALL)[1]
    for path in (source_dir / "docs").rglob("*.md"):
        for name in re.findall(r"<!-- site: (\S+)", path.read_text()):
            assert f'"{name}":' in known, f"{path.name}: {name}"


FACTS = {
    "float8_e4m3fn": ["| largest | 448 |", "| NaN | `0x7F` | `0 1111 111` | NaN |", "| `464.0` | 448 | 448 |", "| `465.0` | 448 | NaN |", "`F8_E4M3`", "4 exponent + 3 mantissa"],
    "float8_e5m2": ["| infinity | `0x7C` | `0 11111 00` | ∞ |", "| largest | 57344 |"],
    "float8_e4m3fnuz": ["| `inf` | 240 | NaN | NaN |", "| zero | one, without a sign |"],
    "float8_e8m0fnu": ["| lowest | 2<sup>-127</sup>", "| `0.1` | 0.125 | 0.125 | 0.125 | 0.0625 |", "| zero | none |"],
    "float16": ["| largest | 65504 |", "| smallest normal | 0.00006103515625 |"],
    "int4": ["| `1.5` | 1 | 1 | 2 |", "Not to: `.safetensors`, `.gguf`"],
    "uint8": ["| `-1` | 255 | 0 | 255 |"],
    "string": ["| `1e20` | 100000000000000000000.0 |"],
}


@pytest.mark.parametrize("name", FACTS)
def test_the_facts_of_a_page_are_the_engines(tools, name):
    text = tools["facts"].whole_page(name)
    for fact in FACTS[name]:
        assert fact in text, text


def test_every_page_of_a_type_can_be_made(tools):
    for name in tools["engine"].types():
        assert tools["facts"].whole_page(name).startswith("## Bits and range")
    assert "| source |" in tools["facts"].same_casts("float16", "bfloat16")
    assert "| largest | 65504 |" in tools["facts"].compared("float16", "bfloat16")


@pytest.mark.parametrize("picture", ["error_against_type", "precision_against_magnitude", "time_against_memcpy"])
def test_pictures_are_svg(tools, picture):
    root = ElementTree.fromstring(getattr(tools["pictures"], picture)())
    assert len(list(root.iter())) > 30


def test_the_page_of_schemes_shows_what_was_measured(source_dir, tmp_path):
    subprocess.run([sys.executable, source_dir / "bench/schemes/measure.py", "--draw", tmp_path], check=True)
    for name in ("schemes.md", "schemes.svg"):
        assert (tmp_path / name).read_text() == (source_dir / "docs/benchmarks" / name).read_text(), "bench/schemes/measure.py --draw"
    ElementTree.fromstring((tmp_path / "schemes.svg").read_text())


def test_the_first_page_has_what_people_come_for(source_dir):
    text = (source_dir / "docs/index.md").read_text()
    order = [text.index(part) for part in ("<!-- site: explorer ", "## Install", "<!-- site: first-steps -->", "<!-- site: time-against-memcpy ", "| question |")]
    assert order == sorted(order)
    assert text.partition("```sh\n")[2].partition("```")[0].count("\n") == 3  # installed in three lines
    steps = (source_dir / "README.md").read_text().partition("## First steps")[2]
    for language in ("console", "pycon", "cpp"):
        assert f"```{language}\n" in steps


def test_the_explorer_may_not_connect(source_dir):
    page = (source_dir / "web/page/index.html").read_text()
    assert page.count("<!-- policy -->") == 1 and not re.search(r"<[^>]* on\w+=", page)
    rules = (source_dir / "web/tools/build.py").read_text()
    assert "\"connect-src 'none'\"" in rules and "\"default-src 'none'\"" in rules and "'unsafe-eval'" not in rules


def test_the_command_is_described_by_its_help(tools):
    text = tools["command"].page()
    assert "## tcast convert" in text and "### tcast onnx convert" in text and "--strict-loss" in text


def test_python_pages_name_the_public_functions(tools):
    pages = tools["python_pages"].pages()
    text = pages["reference/python/tensorcast.md"]
    assert "::: tensorcast.convert\n" in text and "::: tensorcast_cast.cast\n" in text
    module = tools["python_pages"].cast_module()
    assert "out_of_range: " in module and "{options}" not in module and "{signature}" not in module
    names = {}
    exec(module, names)
    assert names["cast"].__doc__.startswith("Converts every element")


def test_links_to_the_project_become_links_of_the_site(tools):
    site = {"README.md": "index.md", "docs/a.md": "a.md"}
    text = "[x](../README.md#y) [a](a.md) [s](../src/x.cpp) ![p](p.svg) `[c](../d)`\n```\n[f](../g)\n```\n[gone](../gone)"

    def rewritten(base):
        return tools["links"].rewritten(text, "docs/b.md", "sub/b.md", site, lambda path: path != "gone", base)

    changed, lost = rewritten("")
    assert "[x](../index.md#y) [a](../a.md) s ![p](p.svg)" in changed and "[f](../g)" in changed and lost == ["../gone"]
    assert "[s](https://x.example/src/x.cpp)" in rewritten("https://x.example/")[0]


def test_broken_links_are_found(source_dir, tools, tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="#top">1</a><a href="b.html#there">2</a><img src="p.svg">')
    (tmp_path / "b.html").write_text('<a href="a.html#nowhere">1</a><a href="https://x.example/">2</a><h2 id="there"></h2>')
    assert tools["links"].broken(tmp_path) == ["a.html: p.svg: no such file", "b.html: a.html#nowhere: no such place"]
    command = [sys.executable, "-m", "site_tools.links", tmp_path]
    result = subprocess.run(command, cwd=source_dir / "site", capture_output=True, text=True)
    assert result.returncode == 1 and "2 broken links" in result.stderr


def test_each_table_has_its_head(source_dir):
    """A blank line inside a table makes a text of the rows behind it."""
    for page in [*source_dir.glob("*.md"), *(source_dir / "docs").rglob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert re.match(r"\|.*\n\|[\s:|-]+\|\n", table), f"{page}: {table}"


def test_paths_of_the_project_are_there(source_dir):
    folders = ("bench/", "bindings/", "cmake/", "docs/", "examples/", "include/", "integrations/", "python/", "scripts/", "site/", "src/", "tests/",
               "tools/", "web/")  # fmt: skip
    for page in [*source_dir.glob("*.md"), *(source_dir / "docs").glob("*.md")]:
        text = re.sub(r"^```diff.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)  # of what is added
        for path in re.findall(r"`(?:\./)?([a-z][\w./-]*/[\w./-]*)`", text):
            if path.startswith(folders) and "NAME" not in path:
                assert (source_dir / path).exists() or any(source_dir.glob(f"{path}.*")), f"{page}: {path}"
