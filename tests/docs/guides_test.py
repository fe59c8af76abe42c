# SPDX-License-Identifier: Apache-2.0
"""What the guides to C++ and C show is what one gets: the blocks of each part are a program, which prints the part's text.

The library is that of TENSORCAST_STATIC_BUILD (default: build/release).
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("TENSORCAST_STATIC_BUILD", "build/release")
BLOCK = re.compile(r"^(?:<!-- (?P<mark>[\w :]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMPILERS = {
    "cpp": ["g++", "-std=c++20", "-x", "c++", "-Wall", "-Wextra", "-Wconversion", "-Werror"],
    "c": ["gcc", "-std=c99", "-x", "c", "-Wall", "-Wextra", "-Werror"],
}
PAGES = {"cpp": ROOT / "docs/cpp.md", "c": ROOT / "docs/c.md"}


def blocks(text):
    return [(found["mark"] or "", found["language"], found["text"]) for found in BLOCK.finditer(text)]


def parts():
    """Language, prelude and blocks of each part that has a program."""
    for language, page in PAGES.items():
        first, *rest = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
        ((_, _, prelude),) = [block for block in blocks(first) if block[0] == "prelude"]
        for part in rest:
            found = blocks(part)
            if any(block[1] == language for block in found):
                yield pytest.param(language, prelude, found, id=f"{page.name}: {part.splitlines()[0]}")


PARTS = list(parts())


def program(language, prelude, found):
    ours = [block for block in found if block[1] == language]
    outside = "".join(text for mark, _, text in ours if mark == "outside main")
    inside = "".join(text for mark, _, text in ours if mark == "")
    return f"{prelude}{outside}int main(void) {{\n{inside}return 0;\n}}\n"


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}:\n{result.stdout}{result.stderr}"
    return result.stdout


def libraries():
    text = (BUILD / "tensorcast.pc").read_text()
    required = re.search(r"^Requires: *(.*)$", text, re.MULTILINE).group(1).replace(",", " ").split()
    return [BUILD / "src/libtensorcast.a", *run("pkg-config", "--libs", *required).split(), "-lstdc++", "-lm", "-pthread"]


def onnx_model():
    """The bytes of a model with one node, Neg of float32."""
    def field(number, payload):
        return bytes([number << 3 | 2, len(payload)]) + payload

    def number(field_number, value):
        return bytes([field_number << 3, value])

    def value(name):
        tensor = number(1, 1) + field(2, field(1, number(1, 2)))  # float32, of two elements
        return field(1, name) + field(2, field(1, tensor))

    node = field(1, b"x") + field(2, b"y") + field(4, b"Neg")
    graph = field(1, node) + field(2, b"g") + field(11, value(b"x")) + field(12, value(b"y"))
    return number(1, 10) + field(7, graph) + field(8, number(2, 21))


@pytest.mark.parametrize("language, prelude, found", PARTS)
def test_a_part_prints_what_it_says(tmp_path, language, prelude, found):
    (tmp_path / "model.onnx").write_bytes(onnx_model())
    (tmp_path / "program").write_text(program(language, prelude, found))
    run(*COMPILERS[language], f"-I{ROOT}/include", tmp_path / "program", "-x", "none", *libraries(), "-o", tmp_path / "a.out")
    assert run(tmp_path / "a.out", cwd=tmp_path) == "".join(text for _, name, text in found if name == "text")


def test_the_guides_have_their_parts():
    titles = [part.id for part in PARTS]
    assert sum(title.startswith("cpp.md") for title in titles) >= 11
    assert sum(title.startswith("c.md") for title in titles) >= 9


# --- CMake ---

WAYS = {(page, mark.removeprefix("cmake: ")): text
        for page, path in PAGES.items() for mark, _, text in blocks(path.read_text()) if mark.startswith("cmake: ")}
ENGINE = '#include <stdio.h>\n#include <tensorcast/c_api.h>\nint main(void) { puts(tc_dtype_name(TC_FLOAT16)); return 0; }\n'


def project(folder, languages, text):
    folder.mkdir()
    source = "engine.c" if languages == "C" else "engine.cpp"
    (folder / source).write_text(ENGINE)
    (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(engine LANGUAGES {languages})\n"
                                           f"add_executable(engine {source})\n{text}install(TARGETS engine)\n")
    return folder


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder, "--component", "dev")
    return folder


@pytest.mark.parametrize("page, way, languages", [("cpp", "find_package", "CXX"), ("cpp", "pkg_config", "CXX"),
                                                  ("c", "find_package", "C"), ("cpp", "pkg_config", "C")])
def test_an_installed_package_is_linked(prefix, tmp_path, page, way, languages):
    folder = project(tmp_path / "engine", languages, WAYS[page, way])
    packages = next(prefix.rglob("tensorcast.pc")).parent
    run("cmake", "-S", folder, "-B", tmp_path / "built", f"-DCMAKE_PREFIX_PATH={prefix}",
        env=os.environ | {"PKG_CONFIG_PATH": str(packages)})
    run("cmake", "--build", tmp_path / "built")
    assert run(tmp_path / "built/engine") == "float16\n"


# Kernels are left out, as they take most of the time to compile.
SUBPROJECT = ["-DTENSORCAST_KERNELS=portable", "-DTENSORCAST_WITH_TBB=OFF", "-G", "Ninja"]


def cached(folder, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found and found.group(1)


def test_a_folder_of_sources_is_linked_and_leaves_the_project_alone(tmp_path):
    folder = project(tmp_path / "engine", "C CXX", WAYS["cpp", "add_subdirectory"])
    (folder / "third_party").mkdir()
    (folder / "third_party/tensorcast").symlink_to(ROOT)
    run("cmake", "-S", folder, "-B", tmp_path / "built", *SUBPROJECT)
    assert cached(tmp_path / "built", "CMAKE_BUILD_TYPE") == ""
    assert cached(tmp_path / "built", "TENSORCAST_INSTALL") == "OFF"
    flags = (tmp_path / "built/build.ninja").read_text()
    assert " -O3 " in flags, "tensorcast's own sources are optimized"
    run("cmake", "-S", folder, "-B", tmp_path / "built", "-DCMAKE_CXX_FLAGS=-O0")  # as optimizing takes minutes
    run("cmake", "--build", tmp_path / "built", "-j", "2")
    assert run(tmp_path / "built/engine") == "float16\n"
    run("cmake", "--install", tmp_path / "built", "--prefix", tmp_path / "installed")
    assert [path.name for path in (tmp_path / "installed").rglob("*") if path.is_file()] == ["engine"]


def test_sources_are_fetched(tmp_path):
    folder = project(tmp_path / "engine", "C CXX", WAYS["cpp", "FetchContent"])
    run("cmake", "-S", folder, "-B", tmp_path / "built", f"-DFETCHCONTENT_SOURCE_DIR_TENSORCAST={ROOT}",
        "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DTENSORCAST_INSTALL=ON", *SUBPROJECT)
    assert cached(tmp_path / "built", "CMAKE_BUILD_TYPE") == "MinSizeRel"
    script = "".join(path.read_text() for path in (tmp_path / "built").rglob("cmake_install.cmake"))
    assert "tensorcast-config.cmake" in script, "TENSORCAST_INSTALL asks for it"
