# SPDX-License-Identifier: Apache-2.0
"""Whatever the documents show, works: commands and their output, programs, and links."""

import importlib.util
import os
import re
import shlex
import subprocess

import pytest

DOCUMENTS = ["README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "src/README.md"]
TIME = re.compile(r"in [0-9.]+ m?s, [0-9.]+ [KMG]?B/s")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def readme(source_dir):
    return (source_dir / "README.md").read_text()


@pytest.fixture
def files(source_dir, tmp_path):
    """A folder with the files that the examples convert."""
    spec = importlib.util.spec_from_file_location("fixtures", source_dir / "tests/cli/fixtures.py")
    fixtures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fixtures)
    fixtures.write_all(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document, at_least", [("README.md", 4), ("docs/command.md", 3), ("docs/nodes.md", 3)])
def test_commands_print_what_the_documents_say(source_dir, tcast, files, document, at_least):
    environment = os.environ | {"PATH": f"{tcast.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    commands = 0
    for block in blocks((source_dir / document).read_text(), "console"):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            result = subprocess.run(shlex.split(command), cwd=files, env=environment, capture_output=True, text=True)
            assert result.returncode == 0, f"{command}: {result.stderr}"
            if expected:
                assert TIME.sub("TIME", result.stdout) == TIME.sub("TIME", expected), command
            commands += 1
    assert commands >= at_least


def library(source_dir):
    build = source_dir / os.environ.get("TENSORCAST_STATIC_BUILD", "build/release")
    return [str(build / "src/libtensorcast-core.a"), "-ltbb", "-lstdc++", "-lm", "-pthread"]


PROGRAMS = {
    "cpp": (["g++", "-std=c++20", "-x", "c++"],
            "#include <cstdio>\n#include <vector>\n#include \"tensorcast/typed_cast.hpp\"\n",
            "for (const auto code : *codes) std::printf(\"0x%02x \", code.bits());"),
    "c": (["gcc", "-std=c11", "-x", "c"],
          "#include <stdio.h>\n#include \"tensorcast/c_api.h\"\n",
          "for (int i = 0; i < 3; ++i) printf(\"0x%02x \", codes[i]);"),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_compile_and_do_what_their_comments_say(readme, source_dir, tmp_path, language):
    compiler, head, tail = PROGRAMS[language]
    (snippet,) = blocks(readme, language)
    (tmp_path / "program").write_text(f"{head}int main(void) {{\n{snippet}{tail}\nreturn 0;\n}}\n")
    subprocess.run([*compiler, "-Wall", "-Werror", f"-I{source_dir}/include", tmp_path / "program", "-x", "none",
                    *library(source_dir), "-o", tmp_path / "a.out"], check=True)
    output = subprocess.run([tmp_path / "a.out"], check=True, capture_output=True, text=True).stdout
    assert output.strip() == re.search(r"codes: ([0-9a-fx ]+?)(?: \*/)?$", snippet, re.MULTILINE).group(1)


def test_the_first_screen_is_a_screen(readme):
    lines = readme.split("\n## First steps")[0].splitlines()
    assert len([line for line in lines if line]) <= 40


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(source_dir, document):
    path = source_dir / document
    targets = re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text())
    for target in targets:
        name, _, anchor = target.partition("#")
        page = (path.parent / name) if name else path
        assert page.exists(), f"{document}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{document}: {target}"


def test_links_between_the_pages_of_docs(source_dir):
    for page in sorted((source_dir / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
