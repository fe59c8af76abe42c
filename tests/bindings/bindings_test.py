# SPDX-License-Identifier: Apache-2.0
"""The binding of docs/bindings.md works as it stands there."""

import json
import os
import re
import struct
import subprocess
import types

import pytest


@pytest.fixture(scope="module")
def binding(source_dir):
    text = (source_dir / "docs/bindings.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 100
    library = source_dir / os.environ.get("TENSORCAST_SHARED_BUILD", "build/shared") / "src/libtensorcast-core.so"
    if not library.exists():
        pytest.skip(f"{library} is not built: run scripts/test")
    module = types.ModuleType("binding")
    exec(compile(code, "docs/bindings.md", "exec"), module.__dict__)
    module.load(str(library))
    return module


def test_values_and_reports(binding):
    data = struct.pack("<3f", 0.1, -2.5, 1000)
    assert binding.cast(data, "float32", "float8_e4m3fn") == b"\x1d\xc2\x7e"
    packed, report = binding.cast(data, "float32", "int4", report=True)
    assert packed == b"\xe0\x08" and report.count == 3 and report.wrapped == 1
    assert binding.cast(b"", "float32", "float64") == b""
    assert binding.cast(packed[:1], "int4", "int8") == b"\x00\xfe"


def test_options_and_errors(binding):
    data = struct.pack("<2f", 1, 300)
    assert binding.cast(data, "float32", "uint8", out_of_range="saturate", threads=1) == b"\x01\xff"
    with pytest.raises(binding.CastError, match="value 300 does not fit uint8") as refused:
        binding.cast(data, "float32", "uint8", out_of_range="error")
    assert refused.value.element == 1
    with pytest.raises(binding.CastError, match="fp8"):
        binding.cast(data, "float32", "fp8")
    with pytest.raises(TypeError, match="no option sturate"):
        binding.cast(data, "float32", "uint8", sturate=1)


def test_the_structs_are_those_of_the_header(binding):
    assert binding.c.sizeof(binding.CastOptions) == 56
    assert binding.c.sizeof(binding.CastReport) == 8 + 8 * 8 + 5 * 8


def test_the_description_is_that_of_the_command_and_the_binding(binding, tcast):
    c = binding.c
    library = c.CDLL(binding.lib._name)
    library.tc_describe.argtypes = [c.POINTER(c.c_void_p)]
    library.tc_free.argtypes = [c.c_void_p]
    text = c.c_void_p()
    assert library.tc_describe(c.byref(text)) == 0
    described = json.loads(c.string_at(text))
    library.tc_free(text)
    done = subprocess.run([tcast, "types", "--json"], capture_output=True, text=True, check=True)
    assert described["types"] == json.loads(done.stdout)
    for option in described["cast_options"]["options"]:
        field = getattr(binding.CastOptions, option["name"])
        assert (field.offset, field.size) == (option["offset"], option["bytes"])
        assert tuple(option.get("words", ())) == binding.CHOICES.get(option["name"], ())
    for number in described["report"]["numbers"]:
        assert getattr(binding.CastReport, number["name"]).offset == number["offset"]
    assert {row["scheme"] for row in described["block_formats"]} >= {"nvfp4", "mxfp4", "q4_k"}


@pytest.mark.parametrize("literal", ["0.1", "-2.5", "nan", "-inf", "1e300", "0x7f", "3/7", "300"])
def test_explanations_are_those_of_the_command(binding, tcast, literal):
    c = binding.c
    library = c.CDLL(binding.lib._name)
    library.tc_explain.argtypes = [c.c_char_p, c.c_int32, c.c_int32, c.c_void_p, c.POINTER(c.c_void_p)]
    library.tc_free.argtypes = [c.c_void_p]
    for to in ("float8_e4m3fn", "float16", "int8", "float4_e2m1fn", "bool"):
        text = c.c_void_p()
        number = library.tc_dtype_parse(to.encode())
        status = library.tc_explain(literal.encode(), 0, number, None, c.byref(text))
        done = subprocess.run([tcast, "explain", "--json", "--to", to, "--", literal], capture_output=True, text=True)
        assert (status == 0) == (done.returncode == 0), done.stderr
        if status == 0:
            assert json.loads(c.string_at(text)) == json.loads(done.stdout)
            library.tc_free(text)
