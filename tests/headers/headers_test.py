"""Public headers stand alone in both compilers, and misuse of them does not compile."""

import shutil
import subprocess

import pytest

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
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


# Each line compiles as it stands and no longer with its second form: so the error has the right reason.
MISUSE = {
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
    "a boolean where options are meant": (
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, tc::CastOptions{});",
        "(void)tc::cast(tc::TensorView{}, tc::MutableTensorView{}, true);",
    ),
}


@pytest.mark.parametrize("misuse", MISUSE)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_misuse_does_not_compile(source_dir, compiler, misuse):
    frame = '#include "tensorcast/cast.hpp"\nnamespace tc = tensorcast;\nvoid use() {{ {} }}\n'
    right, wrong = (cpp(source_dir, compiler, frame.format(line)) for line in MISUSE[misuse])
    assert right.returncode == 0, right.stderr
    assert wrong.returncode != 0, f"compiles: {misuse}"
