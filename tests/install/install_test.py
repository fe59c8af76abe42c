# SPDX-License-Identifier: Apache-2.0
"""An installed tensorcast, static and shared, can be used by strangers; and the library shows and needs only what it may.

The two builds are found through TENSORCAST_STATIC_BUILD and TENSORCAST_SHARED_BUILD (default: the presets' folders).
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
COMPONENTS = ["core", "files", "models"]
BUILDS = {
    "static": os.environ.get("TENSORCAST_STATIC_BUILD", "build/release"),
    "shared": os.environ.get("TENSORCAST_SHARED_BUILD", "build/shared"),
}


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}:\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module", params=BUILDS)
def installed(request, source_dir, tmp_path_factory):
    """(kind, prefix): installed once, then moved, because packages are."""
    build = source_dir / BUILDS[request.param]
    assert (build / "CMakeCache.txt").exists(), f"{build} is missing: run scripts/test"
    first = tmp_path_factory.mktemp(request.param) / "first"
    run("cmake", "--install", build, "--prefix", first, "--strip")
    return request.param, first.rename(first.with_name("moved"))


def library_dir(prefix):
    return next(prefix.rglob("tensorcast.pc")).parent.parent


def environment(prefix):
    library = library_dir(prefix)
    return os.environ | {"PKG_CONFIG_PATH": f"{library}/pkgconfig", "LD_LIBRARY_PATH": str(library)}


def needed(file):
    """The shared libraries that a program or library asks for, without their versions."""
    names = re.findall(r"NEEDED.*\[(?:lib)?([\w+-]+)\.so", run("readelf", "-d", file))
    return set(names) - {"ld-linux-x86-64", "c", "m", "gcc_s", "stdc++"}


# oneTBB where it was found; nothing else.
ALLOWED_IN_CORE = {"tensorcast-core", "tbb"}


@pytest.mark.parametrize("component", [*COMPONENTS, ""], ids=lambda component: component or "all")
def test_the_cmake_package(installed, tmp_path, component):
    _, prefix = installed
    sources = [component] if component else COMPONENTS
    run("cmake", "-S", HERE / "cmake_consumer", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCOMPONENT={component}", f"-DSOURCES={';'.join(sources)}")
    run("cmake", "--build", tmp_path)
    for program in sources:
        assert re.fullmatch(r"tensorcast \d+\.\d+\.\d+ works\n", run(tmp_path / program))
    if component == "core":
        assert needed(tmp_path / "core") <= ALLOWED_IN_CORE


PACKAGES = [("core", "cmake_consumer/core.cpp"), ("core", "c_consumer/consumer.c"), ("files", "cmake_consumer/files.cpp"),
            ("models", "cmake_consumer/models.cpp"), ("", "cmake_consumer/files.cpp"), ("", "c_consumer/consumer.c")]


@pytest.mark.parametrize("component, source", PACKAGES)
def test_pkg_config(installed, tmp_path, component, source):
    _, prefix = installed
    package = "tensorcast-" + component if component else "tensorcast"
    flags = run("pkg-config", "--cflags", "--libs", package, env=environment(prefix)).split()
    compiler = ["g++", "-std=c++20"] if source.endswith("cpp") else ["gcc", "-std=c11", "-Wall", "-Werror"]
    run(*compiler, HERE / source, *flags, "-o", tmp_path / "consumer")
    assert "works" in run(tmp_path / "consumer", env=environment(prefix))
    if component == "core":
        libraries = {flag.removeprefix("-l") for flag in flags if flag.startswith("-l")}
        assert libraries <= ALLOWED_IN_CORE | {"stdc++", "m"}
        assert needed(tmp_path / "consumer") <= ALLOWED_IN_CORE


# --- examples ---

EXAMPLES = pathlib.Path(HERE / "../../examples")
EXPECTED = {
    "cast_array.cpp": r"0x1d 0xc2 0x7e 0x00 \n1 saturated, 1 underflowed to zero\n",
    "quantize_int4.cpp": r"3 -7 0 7 -4 0\.30 -0\.70 0\.00 0\.70 -0\.40 \n",
    "tensor_results.cpp": r"float32: 1 2 300\n",
    "engine_types.cpp": r"(?s)float32 +32\.00 bits, error 0\.0000.*q6_k +6\.56 bits, error 0\.0.*\n",
    "caller_threads.cpp": r"4 3, 1048576 numbers of 0\.25\n",
    "convert_checkpoint.cpp": r"embedding +float32 -> float16  .*dB\nweight +float32 -> bfloat16  .*dB\n",
    "cast_array.c": r"0x1d 0xc2 0x7e 0x00 \n1 saturated, 1 underflowed to zero\n",
    "refuse_loss.c": r"13 254\nelement 2: value 256 does not fit uint8 \(from float64\)\n",
    "transpose.c": r"4 2 6\nfloat32 6\n",
    "list_types.c": r"(.* bits, .* to .*\n){32}",
    "convert_file.c": r"embedding: float32 -> bfloat16\nweight: float32 -> bfloat16\n",
}


def small_checkpoint(path):
    data = struct.pack("<8f", *range(8))
    header = json.dumps({"embedding": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
                         "weight": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


@pytest.mark.parametrize("example", EXPECTED)
def test_examples_compile_strictly_and_run(installed, tmp_path, example):
    kind, prefix = installed
    family = {"static": ("gcc", "g++"), "shared": ("clang-16", "clang++-16")}[kind]
    compiler = family[example.endswith("cpp")]
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    uses_files = example.startswith("convert")
    flags = run("pkg-config", "--cflags", "--libs", f"tensorcast-{'files' if uses_files else 'core'}",
                env=environment(prefix)).split()
    standard = "-std=c++20" if example.endswith("cpp") else "-std=c99"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Wcast-align", "-Werror"]
    run(compiler, standard, *strict, EXAMPLES / example, *flags, "-o", tmp_path / "example")
    arguments = [small_checkpoint(tmp_path / "in.safetensors"), tmp_path / "out.safetensors"] if uses_files else []
    assert re.fullmatch(EXPECTED[example], run(tmp_path / "example", *arguments, env=environment(prefix)))


def test_core_links_nothing_else(installed, tmp_path):
    kind, prefix = installed
    library = library_dir(prefix) / f"libtensorcast-core.{'a' if kind == 'static' else 'so'}"
    if kind == "shared":
        assert needed(library) <= {"tbb"}
        return
    # All of it, not only what a program happens to use.
    (tmp_path / "empty.cpp").write_text("int main() {}\n")
    threads = ["-ltbb"] if "-ltbb" in run("pkg-config", "--libs", "tensorcast-core", env=environment(prefix)) else []
    run("g++", tmp_path / "empty.cpp", "-Wl,--whole-archive", library, "-Wl,--no-whole-archive", *threads, "-pthread",
        "-o", tmp_path / "empty")


def test_core_alone_is_configured_without_other_libraries(source_dir, tmp_path):
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("TBB", "ZLIB", "nlohmann_json", "CLI11", "GTest")]
    run("cmake", "-S", source_dir, "-B", tmp_path, "-DTENSORCAST_CORE_ONLY=ON", "-DTENSORCAST_BUILD_TESTS=OFF", *absent)


def test_a_component_that_does_not_exist_is_not_found(installed, tmp_path):
    _, prefix = installed
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\nfind_package(tensorcast REQUIRED COMPONENTS gpu)\n"
    )
    result = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"],
                            capture_output=True, text=True)
    assert result.returncode != 0 and "gpu" in result.stderr


def test_versions_agree(installed):
    _, prefix = installed
    version = run("pkg-config", "--modversion", "tensorcast", env=environment(prefix)).strip()
    assert version in run(prefix / "bin/tcast", "--version")
    header = (prefix / "include/tensorcast/version.hpp").read_text()
    assert version == ".".join(re.findall(r"define TENSORCAST_VERSION_\w+ (\d+)", header))


def test_an_older_minor_version_is_not_taken_for_this_one(installed, tmp_path):
    _, prefix = installed
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(old LANGUAGES CXX)\nfind_package(tensorcast 0.0 CONFIG REQUIRED)\n"
    )
    result = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"],
                            capture_output=True, text=True)
    assert result.returncode != 0 and "compatible with requested version" in result.stderr


def test_the_command_runs_where_it_was_installed(installed):
    _, prefix = installed
    assert "float8_e4m3fn" in run(prefix / "bin/tcast", "types")


def test_only_what_belongs_to_users_is_installed(installed):
    kind, prefix = installed
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    library = str(library_dir(prefix).relative_to(prefix))
    wanted = re.compile(r"bin/tcast|share/bash-completion/completions/tcast|share/zsh/site-functions/_tcast|"
                        r"share/fish/vendor_completions.d/tcast\.fish|share/doc/tensorcast/LICENSE|share/man/man1/tcast(-[\w-]+)*\.1|"
                        rf"include/tensorcast/\w+\.(hpp|h)|{library}/cmake/tensorcast/tensorcast-[\w-]+\.cmake|"
                        rf"{library}/pkgconfig/tensorcast(-\w+)?\.pc|{library}/libtensorcast(-\w+)?\.(a|so(\.\d+)*)|"
                        rf"{library}/libtensorcast_(onnxruntime(_provider)?|openvino(_\d+\.\d+)?)\.so")
    assert not {name for name in files if not wanted.fullmatch(name)}
    suffix = "a" if kind == "static" else "so"
    assert {f"{library}/libtensorcast{name}.{suffix}" for name in ("", "-core", "-files")} <= files


def test_the_package_carries_its_licence(installed):
    _, prefix = installed
    assert (prefix / "share/doc/tensorcast/LICENSE").read_text() == (HERE / "../../LICENSE").read_text()


@pytest.mark.parametrize("component", COMPONENTS)
def test_projects_in_c_alone_link_the_package(installed, tmp_path, component):
    _, prefix = installed
    library = "tensorcast" if component == "models" else component
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(engine LANGUAGES C)\n"
        f"find_package(tensorcast 0.1 REQUIRED COMPONENTS {component})\n"
        f"add_executable(engine {HERE}/c_consumer/consumer.c)\n"
        f"target_link_libraries(engine PRIVATE tensorcast::{library})\n"
        + ("target_compile_definitions(engine PRIVATE WITH_FILES)\n" if component != "core" else "")
        + ("target_compile_definitions(engine PRIVATE WITH_MODELS)\n" if component == "models" else ""))
    run("cmake", "-S", tmp_path, "-B", tmp_path / "built", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "built")
    assert "works" in run(tmp_path / "built/engine", cwd=tmp_path)


def test_the_soname_has_a_version(installed):
    kind, prefix = installed
    if kind == "shared":
        for name in ("libtensorcast", "libtensorcast-core", "libtensorcast-files"):
            dynamic = run("readelf", "-d", library_dir(prefix) / f"{name}.so")
            version = run("pkg-config", "--modversion", "tensorcast", env=environment(prefix)).split(".")
            soname = version[0] if version[0] != "0" else f"0.{version[1]}"
            assert re.search(rf"SONAME.*\[{name}\.so\.{re.escape(soname)}\]", dynamic)


# --- symbols ---


def declared_c_functions(components):
    headers = ["c_api.h", "c_files.h", "c_onnx.h"][:components]
    texts = [(HERE / "../../include/tensorcast" / header).read_text() for header in headers]
    return set(re.findall(r"\bTC_API [^;{]*?\(?(tc_\w+)\)?\(", "".join(texts)))


def public_text(components):
    """The headers of these components; src/README.md says which those are."""
    sections = re.split(r"^## `(\w+)`.*\n", (HERE / "../../src/README.md").read_text(), flags=re.MULTILINE)[1:]
    headers = {name: re.search(r"Headers: `([\w ]+)`", text).group(1).split()
               for name, text in zip(sections[::2], sections[1::2])}
    return "".join(path.read_text() for component in components for path in (HERE / "../../include/tensorcast").glob("*.hpp")
                   if path.stem in headers[component] and path.stem != "export")


def declared_cpp_functions(components):
    return set(re.findall(r"TENSORCAST_API [^;{(]*?(\w+)\(", public_text(components))) - {"operator"}


def declared_classes(components):
    """Exported classes with virtual functions."""
    found = re.findall(r"class TENSORCAST_API (\w+)[^;{]*\{(.*?)\n\};", public_text(components), flags=re.DOTALL)
    return {name for name, body in found if "virtual " in body}


@pytest.mark.parametrize("components", [1, 2, 3], ids=COMPONENTS)
def test_a_shared_library_shows_exactly_the_public_functions(tensorcast_library, components):
    name = ["libtensorcast-core.so", "libtensorcast-files.so", tensorcast_library.name][components - 1]
    listing = run("nm", "-D", "--defined-only", "--demangle", tensorcast_library.with_name(name))
    names = [line.split(" ", 2)[2] for line in listing.splitlines() if line.split(" ", 2)[1] in "TDBRVWi"]
    # Programs derive from the classes that headers export, which takes what the compiler makes for a class.
    of_classes = re.compile(r"(?:typeinfo|typeinfo name|vtable) for tensorcast::(?:\w+::)*(\w+)")
    classes = {found[1] for name in names if (found := of_classes.fullmatch(name.split("@")[0]))}
    assert classes == declared_classes(COMPONENTS[:components])
    names = [name for name in names if not of_classes.fullmatch(name.split("@")[0])]
    functions = {re.match(r"[\w:]+", name.split("[abi:")[0]).group() for name in names}
    c = {name for name in functions if name.startswith("tc_")}
    cpp = {name.split("::")[-1] for name in functions - c if name.startswith("tensorcast::")}
    cpp -= {"", "operator"}  # destructors, assignments
    assert functions - c <= {name for name in functions if name.startswith("tensorcast::")}
    assert c == declared_c_functions(components)
    assert cpp == declared_cpp_functions(COMPONENTS[:components])


def test_c_functions_have_versions_and_cpp_symbols_that_of_the_interface(tensorcast_library):
    listing = run("nm", "-D", "--defined-only", "--with-symbol-versions", tensorcast_library)
    names = [line.split()[-1] for line in listing.splitlines()]
    c = [name for name in names if name.startswith("tc_")]
    assert c and all(re.search(r"@+TENSORCAST_0\.\d+$", name) for name in c)
    assert all(re.search("10tensorcast(4onnx)?4v0_1", name) for name in names if name.startswith("_ZN"))


# A library is a guest in its process: it does not print, end it, or ask about the user's language.
FORBIDDEN = re.compile(
    r"abort|_?exit|quick_exit|_Exit|__assert_fail|v?f?printf|__v?f?printf_chk|puts|fputs|putchar|fputc|perror|"
    r"setlocale|newlocale|uselocale|localeconv|secure_getenv|setenv|putenv|signal|sigaction|system|popen|"
    r"std::(cout|cerr|clog)|std::locale::global.*|std::basic_ostream.*|std::print.*"
)
EXCUSED = {"localeconv": "nlohmann/json asks for the decimal point of fractions; headers of files have none"}


def test_the_library_does_not_print_end_the_process_or_read_the_locale(tensorcast_library):
    listing = run("nm", "-D", "--undefined-only", "--demangle", tensorcast_library)
    needed = {re.sub(r"@.*", "", line.split(maxsplit=1)[1]) for line in listing.splitlines()}
    assert {name for name in needed if FORBIDDEN.fullmatch(name)} <= set(EXCUSED)


def test_one_place_reads_the_environment(source_dir):
    archive = source_dir / BUILDS["static"] / "src/libtensorcast.a"
    member, readers = "", set()
    for line in run("nm", "--undefined-only", archive).splitlines():
        member = line.rstrip(":") if line.endswith(":") else member
        if line.split()[-1:] == ["getenv"]:
            readers.add(member)
    assert len(readers) == 1, readers
