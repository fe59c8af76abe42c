# SPDX-License-Identifier: Apache-2.0
"""Public headers stand alone in both compilers, and misuse of them does not compile."""

import re
import shutil
import subprocess

import pytest

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = [name for name in ("g++", "clang++-16") if shutil.which(name)]


def compile_text(source_dir, compiler, text, *flags):
    return subprocess.run(
        [compiler, *STRICT, *flags, f"-I{source_dir}/include", "-"], input=text, capture_output=True, text=True
    )


def cpp(source_dir, compiler, text):
    return compile_text(source_dir, compiler, text, "-std=c++20", "-x", "c++")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_header_compiles_alone_and_twice(source_dir, compiler):
    headers = sorted((source_dir / "include/tensorcast").iterdir())
    assert len(headers) >= 10
    for header in headers:
        include = f'#include "tensorcast/{header.name}"\n'
        result = cpp(source_dir, compiler, include * 2)
        assert result.returncode == 0, f"{header.name}: {result.stderr}"


@pytest.mark.parametrize("standard", ["c99", "c11", "c17"])
@pytest.mark.parametrize("compiler", [name.replace("++", "cc" if name == "g++" else "") for name in COMPILERS])
def test_the_c_header_is_plain_c(source_dir, compiler, standard):
    text = '#include "tensorcast/c_api.h"\nint main(void) { return tc_storage_bytes(22, 3) == 2 ? 0 : 1; }\n'
    result = compile_text(source_dir, compiler, text, f"-std={standard}", "-x", "c")
    assert result.returncode == 0, result.stderr


# A struct is filled in its definition, and clang knows what borrows from a temporary.
STRUCTS = ["cast_options", "cast_report", "promote_options", "dtype_facts", "block_tensor", "quantize_options",
           "quantized_parts", "tensor_outcome", "quantized_layer", "quantized_part"]


@pytest.mark.parametrize("language", ["c89", "c99", "c17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_structs_of_c_have_initializers(source_dir, compiler, language):
    text = '#include "tensorcast/c_files.h"\n' + "".join(
        f"extern const tc_{name} of_{name};\nconst tc_{name} of_{name} = TC_{name.upper()}_INIT;\n" for name in STRUCTS)
    text += "extern void use(void);\nvoid use(void) { tc_cast_options options; tc_cast_options_init(&options); }\n"
    result = compile_text(source_dir, compiler, text, f"-std={language}", "-x", "c++" if language == "c++20" else "c")
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif("clang++-16" not in COMPILERS, reason="g++ does not know the attribute")
def test_clang_warns_of_views_of_temporaries(source_dir):
    text = ('#include "tensorcast/error.hpp"\n#include <string>\ntensorcast::Result<std::string> made();\n'
            "void use() {{ {} }}\n")
    kept = cpp(source_dir, "clang++-16", text.format("auto m = made(); const std::string& s = *m; (void)s;"))
    gone = cpp(source_dir, "clang++-16", text.format(
        "const std::string& s = static_cast<const tensorcast::Result<std::string>&>(made()).value(); (void)s;"))
    assert kept.returncode == 0, kept.stderr
    assert "temporary" in gone.stderr and gone.returncode != 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_older_standard_is_named_as_the_reason(source_dir, compiler):
    text = '#include "tensorcast/cast.hpp"\n'
    result = compile_text(source_dir, compiler, text, "-std=c++17", "-x", "c++")
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    assert "tensorcast needs C++20: compile with -std=c++20" in errors[0]


# What takes long to compile and is not needed; docs/headers.md has the times. libstdc++'s headers.
HEAVY = ("/tensor.hpp", "/memory", "/memory_resource", "/algorithm", "/functional", "/variant", "/ranges")
HEAVY_OF = {"element": (*HEAVY, "/string", "/span", "/vector", "/optional", "/error.hpp"), "cast": HEAVY, "typed_cast": HEAVY}


@pytest.mark.parametrize("header", HEAVY_OF)
def test_a_cast_needs_no_heavy_headers(source_dir, header):
    text = f'#include "tensorcast/{header}.hpp"\n'
    result = subprocess.run(["g++", "-std=c++20", "-M", f"-I{source_dir}/include", "-x", "c++", "-"], input=text,
                            capture_output=True, text=True, check=True)
    headers = set(result.stdout.replace("\\\n", " ").split())
    assert len(headers) > 10
    assert not [name for name in headers if name.endswith(HEAVY_OF[header]) and "/bits/" not in name]


def test_the_header_of_everything_includes_all_that_it_does_not_name(source_dir):
    folder = source_dir / "include/tensorcast"
    text = (folder / "tensorcast.hpp").read_text()
    named = {f"{name}.hpp" for name in re.findall(r"(\w+)\.hpp, which", text)}
    included = set(re.findall(r'#include "tensorcast/(\S+)"', text))
    assert named == {"tbb.hpp"}
    assert included == {path.name for path in folder.glob("*.hpp")} - named - {"tensorcast.hpp"}


SCALARS = """
#include "tensorcast/element.hpp"
namespace tc = tensorcast;
constexpr tc::bfloat16 third(1.0 / 3);
static_assert(third.bits() == 0x3eab && third < tc::bfloat16(1) && tc::bfloat16(4629700416936869889).bits() == 0x5e81);
static_assert(std::numeric_limits<tc::float8_e4m3fn>::max() == tc::float8_e4m3fn(448));
static_assert(tc::number_facts(tc::DType::float16).largest == 65504.0);
int main(int count, char**) {
  const tc::float8_e4m3fn code(static_cast<float>(count) * 0.3f);
  return static_cast<float>(code) == 0.3125f && isfinite(-code) && tc::int4(tc::float16(code)) == tc::int4(0) ? 0 : 1;
}
"""


@pytest.mark.parametrize("standard", ["c++20", "c++2b"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_single_elements_link_nothing(source_dir, compiler, standard, tmp_path):
    flags = [flag for flag in STRICT if flag != "-fsyntax-only"] + ["-fno-exceptions", "-fno-rtti"]
    program = tmp_path / "scalars"
    subprocess.run([compiler, *flags, f"-std={standard}", f"-I{source_dir}/include", "-x", "c++", "-", "-o", program],
                   input=SCALARS, text=True, check=True)
    subprocess.run([program], check=True)


# Each line compiles as it stands and no longer with its second form: so the error has the right reason.
MISUSE = {
    "a DType that contradicts the element type": (
        "std::vector<tc::bfloat16> codes; (void)tc::view<tc::DType::bfloat16>(codes);",
        "std::vector<tc::bfloat16> codes; (void)tc::view<tc::DType::float16>(codes);",
    ),
    "elements of a type that is none": (
        "std::vector<float> numbers; (void)tc::cast<tc::float16>(numbers);",
        "std::vector<char> numbers; (void)tc::cast<tc::float16>(numbers);",
    ),
    "an array of elements below 8 bits that is not packed": (
        "float numbers[2] = {}; (void)tc::cast<tc::int4>(numbers);",
        "float numbers[2] = {}; std::vector<tc::int4> codes(2); (void)tc::cast(numbers, codes);",
    ),
    "a result that is gone after the call": (
        "float numbers[2] = {}; std::vector<double> wide(2); (void)tc::cast(numbers, wide);",
        "float numbers[2] = {}; (void)tc::cast(numbers, std::vector<double>(2));",
    ),
    "a result that cannot be written": (
        "float numbers[2] = {}; double wide[2] = {}; (void)tc::cast(numbers, wide);",
        "float numbers[2] = {}; const double wide[2] = {}; (void)tc::cast(numbers, wide);",
    ),
    "a view of a temporary vector": (
        "std::vector<float> numbers; (void)tc::view(numbers);",
        "(void)tc::view(std::vector<float>());",
    ),
    "a view of a temporary tensor": (
        "const tc::Tensor tensor; (void)tensor.view();",
        "(void)tc::Tensor().view();",
    ),
    "elements of a temporary tensor": (
        "const tc::Tensor tensor; (void)tensor.as<float>();",
        "(void)tc::Tensor().as<float>();",
    ),
    "bytes of another type in a tensor that says its type": (
        "(void)tc::Tensor::own(tc::DType::float32, {1}, std::vector<std::byte>(4));",
        "(void)tc::Tensor::own(tc::DType::float32, {1}, std::vector<double>(4));",
    ),
    "a number where an element is meant": (
        "const tc::float16 half(1.5); (void)half;",
        "const tc::float16 half = 1.5; (void)half;",
    ),
    "threads among the options of meaning": (
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, {}, {.threads = 2});",
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, tc::CastOptions{.threads = 2});",
    ),
    "an ignored error": (
        "(void)tc::parse_dtype(\"f32\");",
        "tc::parse_dtype(\"f32\");",
    ),
    "writing to a view that only reads": (
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{});",
        "(void)tc::cast(tc::TensorView{}, tc::TensorView{});",
    ),
    "a number where a type is meant": (
        "(void)tc::name(tc::DType::int4);",
        "(void)tc::name(22);",
    ),
    "a value that may be an error": (
        "const tc::DType dtype = tc::parse_dtype(\"f32\").value(); (void)dtype;",
        "const tc::DType dtype = tc::parse_dtype(\"f32\"); (void)dtype;",
    ),
    "a view into the value of a temporary result": (
        "float numbers[2] = {}; auto made = tc::cast<tc::int4>(numbers); (void)made->span();",
        "float numbers[2] = {}; (void)tc::cast<tc::int4>(numbers)->span();",
    ),
    "a tensor of a temporary quantized one": (
        "auto made = tc::quantize({}, \"nvfp4\"); (void)made->tensor();",
        "(void)tc::quantize({}, \"nvfp4\")->tensor();",
    ),
    "a number where dimensions are meant": (
        "const tc::Shape shape = {0, 2}; (void)shape;",
        "const tc::Shape shape(0, 2); (void)shape;",
    ),
    "a boolean where options are meant": (
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, tc::CastOptions{});",
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, true);",
    ),
}


@pytest.mark.parametrize("misuse", MISUSE)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_misuse_does_not_compile(source_dir, compiler, misuse):
    frame = '#include "tensorcast/block.hpp"\n#include "tensorcast/tensor.hpp"\n#include "tensorcast/typed_cast.hpp"\nnamespace tc = tensorcast;\nvoid use() {{ {} }}\n'
    right, wrong = (cpp(source_dir, compiler, frame.format(line)) for line in MISUSE[misuse])
    assert right.returncode == 0, right.stderr
    assert wrong.returncode != 0, f"compiles: {misuse}"
