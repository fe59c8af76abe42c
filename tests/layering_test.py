# SPDX-License-Identifier: Apache-2.0
"""The laws of the source tree: what may include what, how large a file may be, how folders are named."""

import collections
import graphlib
import pathlib
import re
import subprocess

import local_functions
import name_literals
import pytest
import source_lengths

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CODE = {".cpp", ".hpp", ".c", ".h"}
LIST_OF_OPTIONS = re.compile(r"options/\w+\.hpp|(convert|models/onnx)/\w+_(options|fields|results)\.hpp")
# Which need no other code of the library.
ALONE = re.compile(r"dtype/(edit_distance|error_places|errors|lower_case|text_parts|try)\.hpp")
TEXT = CODE | {".py", ".md", ".txt", ".cmake", ".json", ".in", ".map", ".ini", ".toml", ".yml", ".yaml", ""}


def project_files():
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listing.returncode == 0:
        paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    else:  # an unpacked archive
        paths = (path for path in ROOT.rglob("*") if not re.match(r"build|\.", path.relative_to(ROOT).parts[0]))
    return sorted(path for path in paths
                  if path.is_file() and not path.is_symlink() and "third_party" not in path.parts)


def code_below(*folders):
    places = [ROOT / folder for folder in folders]
    return [path for path in FILES if path.suffix in CODE and any(place in path.parents for place in places)]


def is_test(path):
    return path.stem.endswith(("_test", "_fuzz")) or path.stem.startswith("test_")


def shown(path):
    return str(path.relative_to(ROOT))


def includes(path, kind):
    return [name for quote, name in INCLUDE.findall(path.read_text()) if quote == kind]


FILES = project_files()
# src/CMakeLists.txt: {component: its layers}, lowest first.
COMPONENTS = {name: layers.split() for name, layers in re.findall(
    r"tensorcast_component\((\w+) [\w-]+ ([\w ]+)\)", (ROOT / "src/CMakeLists.txt").read_text())}
# src/README.md: {component: its public headers}.
SECTIONS = re.split(r"^## `(\w+)`.*\n", (ROOT / "src/README.md").read_text(), flags=re.MULTILINE)[1:]
HEADERS = {name: re.search(r"Headers: `([\w ]+)`", text).group(1).split()
           for name, text in zip(SECTIONS[::2], SECTIONS[1::2])}
ROOMS = re.findall(r"^\| `(\w+/[\w/]+)/` \|", (ROOT / "src/README.md").read_text(), re.MULTILINE)  # lowest first
LAYERS = [layer for layers in COMPONENTS.values() for layer in layers]


def public_headers_up_to(component):
    names = list(HEADERS)
    return {header for name in names[: names.index(component) + 1] for header in HEADERS[name]}


def wrong_public_includes(paths, component):
    """What these files of a component include of later components' public headers."""
    allowed = public_headers_up_to(component)
    return [f"{shown(path)} includes {name}" for path in paths for name in includes(path, '"')
            if name.startswith("tensorcast/") and pathlib.Path(name).stem not in allowed]


def test_names_in_conditions_are_columns_of_tables():
    found = name_literals.comparisons()
    assert len(found) <= name_literals.LIMIT, "\n".join(found)


def test_every_folder_is_a_layer_and_src_readme_describes_it():
    folders = {path.relative_to(ROOT).parts[1] for path in FILES if path.is_relative_to(ROOT / "src")}
    assert set(LAYERS) == folders - {"README.md", "CMakeLists.txt"}
    assert len(LAYERS) == len(set(LAYERS)) >= 8
    assert list(COMPONENTS) == SECTIONS[::2] == ["core", "files", "models"]
    described = [re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE) for text in SECTIONS[1::2]]
    assert described == list(COMPONENTS.values())


def test_src_readme_describes_every_room():
    folders = {str(path.relative_to(ROOT / "src").parent) for path in code_below("src")}
    rooms = {room for room in folders if "/" in room and not {"testdata", "corpus"} & set(room.split("/"))}
    formats = {room for room in rooms if room.startswith("formats/") and room != "formats/bytes"}
    assert set(ROOMS) == rooms - formats | {"formats/NAME"}


@pytest.mark.parametrize("layer", ["block", "quantized", "convert", "checkpoint"])
def test_a_room_includes_only_rooms_above_it(layer):
    order = [room for room in ROOMS if room.startswith(f"{layer}/")]
    wrong = [
        f"{shown(path)} includes {name}"
        for path in code_below(*(f"src/{room}" for room in order))
        if not is_test(path)
        for name in includes(path, '"')
        if (room := name.rpartition("/")[0]) in order
        and order.index(room) > order.index(str(path.relative_to(ROOT / "src").parent))
    ]
    assert order and not wrong


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_includes_only_itself_lower_layers_and_the_public_headers(layer):
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], "tensorcast"}
    sources = code_below(f"src/{layer}")
    assert sources
    wrong = [
        f"{shown(path)} includes {name}"
        for path in sources
        for name in includes(path, '"')
        if name.split("/")[0] not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_includes_no_public_header_of_a_later_one(component):
    headers = [path for path in code_below("include") if path.stem in HEADERS[component]]
    assert len(headers) == len(HEADERS[component])
    sources = code_below(*(f"src/{layer}" for layer in COMPONENTS[component]))
    assert not wrong_public_includes(headers + sources, component)


def test_core_needs_the_standard_library_and_threads():
    excused = {"src/dtype/formatted.hpp", "src/dtype/formatted.cpp", "src/cast/parallel.cpp"}
    foreign = [f"{shown(path)} includes <{name}>" for path in code_below(*(f"src/{layer}" for layer in COMPONENTS["core"]))
               if not is_test(path) and shown(path) not in excused
               for name in includes(path, "<") if re.match(r"(fmt|oneapi|tbb)/|zlib|pugixml|yaml-cpp", name)]
    assert not foreign


def test_every_public_header_belongs_to_one_component():
    listed = [header for headers in HEADERS.values() for header in headers]
    assert sorted(listed) == sorted(path.stem for path in code_below("include"))


def test_every_public_header_says_its_component_first():
    component = {header: name for name, headers in HEADERS.items() for header in headers}
    wrong = [shown(path) for path in code_below("include")
             if not re.match(rf"Component {component[path.stem]}\. [A-Z]", path.read_text().splitlines()[1][3:])]
    assert not wrong


def test_public_headers_need_only_each_other_and_the_standard_library():
    headers = code_below("include")
    assert headers
    wrong = [f"{shown(path)} includes {name}" for path in headers for name in includes(path, '"')
             if not name.startswith("tensorcast/")]
    wrong += [f"{shown(path)} includes <{name}>" for path in headers for name in includes(path, "<")
              if not re.fullmatch(r"[a-z0-9_]+(\.h)?", name)
              # The one header for programs that use oneTBB themselves; no other header includes it.
              and not (path.name == "tbb.hpp" and name.startswith("oneapi/tbb/"))]
    assert not wrong


@pytest.mark.parametrize("user", ["tools", "examples"])
def test_programs_use_the_public_interface_only(user):
    sources = code_below(user)
    assert sources
    inside = [
        f"{shown(path)} includes {name}"
        for path in sources
        for name in includes(path, '"')
        if not name.startswith("tensorcast/")
        and not any((folder / name).exists() for folder in (path.parent, ROOT / "tools/tcast"))
        and not (ROOT / f"tools/tcast/{name}.in").exists()  # is generated
        and not (user == "tools" and (LIST_OF_OPTIONS.fullmatch(name) or ALONE.fullmatch(name)))  # constants
    ]
    assert not inside


def test_the_library_has_no_streams_and_no_locale():
    banned = {"iostream", "locale", "clocale", "locale.h", "codecvt"}
    wrong = [
        f"{shown(path)} includes <{name}>"
        for path in code_below("src", "include")
        if not is_test(path)
        for name in includes(path, "<")
        if name in banned
    ]
    assert not wrong


def test_intrinsics_are_in_kernels_simd():
    """But those of SHA-256 and of rounding modes, which are no vector operations on numbers: DESIGN.md."""
    intrinsic = re.compile(r"\b_mm\d*_\w+\(|\b__m(?:128|256|512|mask)|\bv[a-z]\w*_[fpsu](?:8|16|32|64)\(")
    allowed = {"src/io/sha256_blocks.cpp", "src/dtype/float_environment.hpp"}
    for path in code_below("src", "tools", "python"):
        if shown(path) not in allowed and not shown(path).startswith("src/kernels/simd/") and not is_test(path):
            assert not intrinsic.search(path.read_text()), shown(path)


def test_the_extension_keeps_to_the_stable_abi():
    # Macros that read objects of Python in place. A wheel for 3.12 and newer has none of them; Debian 12 has Python 3.11.
    in_place = re.compile(r"\bPy[A-Z][A-Za-z]*_(?:AS|GET|SET)_[A-Z_]+\b")
    sources = [path for path in FILES if path.is_relative_to(ROOT / "python/src")]
    assert len(sources) > 20 and in_place.search("PyFloat_AS_DOUBLE(object)")
    assert not [f"{shown(path)}: {found}" for path in sources for found in in_place.findall(path.read_text())]


def test_headers_are_included_once():
    headers = [path for path in code_below("src", "include", "tools") if path.suffix == ".hpp"]
    assert not [shown(path) for path in headers if "#pragma once" not in path.read_text()]


def test_no_file_is_over_600_lines():
    limited = [path for path in FILES if path.suffix in CODE | {".py", ".cmake", ".md", ""} and path.name != "LICENSE"]
    lengths = {shown(path): path.read_bytes().count(b"\n") for path in limited if "testdata" not in path.parts}
    assert not {name: length for name, length in lengths.items() if length > 600}


def test_no_function_is_over_80_lines():
    long = []
    for path in FILES:
        if "testdata" in path.parts or path.suffix not in CODE | {".py"}:
            continue
        read = source_lengths.python_functions if path.suffix == ".py" else source_lengths.cpp_functions
        long += [f"{shown(path)}:{line}: {name}, {lines} lines" for name, line, lines in read(path.read_text()) if lines > 80]
    assert not long


def test_functions_are_found():
    found = source_lengths.cpp_functions('''
namespace a {  // {
constexpr int table[] = {1, 2};
template <class T>
struct S : Base<T> {
  S(int x) noexcept : x_{x}, y_(1) { if (x) { f("}"); } }
  [[nodiscard]] auto size() const -> std::vector<int> {
    return R"(
})";
  }
};
}  // namespace a
TEST(Name, Of) {
  const auto work = [&](char c) { return c == \'{\'; };
}
''')
    assert [(line, lines) for _, line, lines in found] == [(6, 1), (7, 4), (13, 3)]
    text = 'def f():\n    """Doc.\n\n    More."""\n    def g():\n        pass\n    return g\n'
    assert source_lengths.python_functions(text) == [("f", 1, 4), ("g", 5, 2)]


def sources_by_group():
    """{group: sources} of those that a compiler may read as one (tensorcast_compile_together): it would call the function
    of another source where its parameters fit better."""
    groups = collections.defaultdict(dict)
    for path in FILES:
        place = pathlib.Path(shown(path))
        if path.suffix != ".cpp" or place.parts[0] not in ("src", "tools") or path.stem.endswith("_fuzz"):
            continue
        layer, folder = place.parts[1], str(place.parent)
        if path.stem.endswith("_test"):
            groups[folder + ", tests"][str(place)] = path.read_text()
        elif layer in COMPONENTS["core"]:
            continue
        elif place.parts[0] == "tools" or "ACROSS_FOLDERS" in (ROOT / "src" / layer / "CMakeLists.txt").read_text():
            groups[str(pathlib.Path(*place.parts[:2]))][str(place)] = path.read_text()
        else:
            groups[folder][str(place)] = path.read_text()
    return groups


def test_sources_compiled_as_one_name_their_functions_apart():
    groups = sources_by_group()
    assert {"src/models", "src/graph", "src/cast, tests", "tools/tcast"} <= groups.keys()
    assert not {f"{group}: {name}": names for group, sources in groups.items()
                for (_, name), names in local_functions.shared_names(sources).items()}


def test_functions_of_a_source_alone_are_found():
    first = '''
namespace a {
inline namespace V {
namespace {
template <class T>
[[nodiscard]] int first(T x) { return [&] { return x; }(); }
int declared(int);
struct S { void member() {} };
bool operator==(S, S) { return true; }
}  // namespace
void S::member() {}
static int second() { return 1; }
int other() { return 2; }
}
namespace b { namespace { int first() { return 3; } } }
}
'''
    assert local_functions.local_functions(first) == {("a", "first"), ("a", "second"), ("a::b", "first")}
    second = "namespace a {\nnamespace {\nvoid first(int x, const char* y) {}\n}\nint second() { return 2; }\n}\n"
    assert local_functions.shared_names({"1": first, "2": second}) == {("a", "first"): ["1", "2"]}


def test_python_has_no_circle_of_imports():
    modules = {}
    for path in FILES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        if path.suffix == ".py" and parts[:2] == ("python", "tensorcast"):
            is_package = parts[-1] == "__init__"
            modules[".".join(parts[1:-1] if is_package else parts[1:])] = path, ".".join(parts[1:-1])
    assert len(modules) > 20
    imports = {name: source_lengths.imports_of(path.read_text(), package, set(modules))
               for name, (path, package) in modules.items()}
    assert list(graphlib.TopologicalSorter(imports).static_order())  # CycleError names the circle
    text = "if TYPE_CHECKING:\n    from . import a\ndef f():\n    from . import b\n    from .c import x\n"
    assert source_lengths.imports_of(text, "p", {"p.a", "p.b", "p.c"}) == {"p.b", "p.c"}


def test_folders_and_files_are_named_after_concepts():
    nothing = re.compile(r"utils?|common|helpers?|misc|stuff")
    wrong = {shown(path) for path in FILES for part in path.relative_to(ROOT).with_suffix("").parts
             if nothing.fullmatch(part)}
    assert not wrong


def test_the_text_speaks_of_the_project_alone():
    # Written so that this file does not match itself.
    places = re.compile(rb"(?<![\w.$}])/(?:ro" rb"ot|wo" rb"rk|ho" rb"me|op" rb"t)/\w|pypi\.o" rb"rg|deb\.deb" rb"ian|\.\./sha" rb"red")
    unfinished = re.compile(rb"\b(?:TO" rb"DO|FIX" rb"ME|XX" rb"X)\b")
    wrong = []
    for path in FILES:
        if path.suffix not in TEXT or "testdata" in path.parts or path.stat().st_size > 1 << 20:
            continue
        text = path.read_bytes()
        wrong += [f"{shown(path)}: {match.group().decode()}" for rule in (places, unfinished)
                  for match in rule.finditer(text)]
    assert not wrong
