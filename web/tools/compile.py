# SPDX-License-Identifier: Apache-2.0
"""Compiles the C interface to modules of WebAssembly: explain.wasm, kernels.wasm, and digest.wasm for tests.

Both have 16-byte vectors, one thread and no exceptions. explain.wasm has no kernels (src/dtype/platform.hpp): its
casts are the reference's. digest.wasm compares kernels.wasm with native code.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("dtype", "options", "promote", "codec", "kernels", "report", "cast", "block", "explain", "c_api")
COMMON = ["malloc", "free", "tc_free", "tc_last_error", "tc_cast", "tc_cast_options_init_sized", "tc_storage_bytes"]
EXPORTS = {
    "explain": [*COMMON, "tc_describe", "tc_explain", "tc_promote", "tc_promote_options_init_sized", "tc_dtype_parse"],
    "kernels": [*COMMON, "tc_cast_with_report", "tc_cast_report_init_sized", "web_dequantize", "web_quantize", "web_recipes"],
    "digest": ["digest"],
}
FLAGS = (
    "-target wasm32-wasi -msimd128 -std=gnu++20 -DNDEBUG -g0 -fno-exceptions -fno-rtti -fvisibility=hidden"
    " -ffunction-sections -fdata-sections -ffp-contract=off -fno-trapping-math -fno-math-errno"
    " -Wall -Wextra -Werror -Wno-psabi -Wno-unused-command-line-argument"
)
TARGET = '-DTENSORCAST_TARGET=portable -DTENSORCAST_TARGET_LEVEL=0 "-DTENSORCAST_SIMD_HEADER=\\"kernels/simd/portable.hpp\\""'
WITH_OR_WITHOUT_KERNELS = ROOT / "src/cast/run_conversion.cpp"
OF_BLOCKS = {"encode_gguf", "encode_runs", "fit_runs", "multiply", "scale_runs", "unpack_gguf"}
FEATURES = "--enable-simd --enable-bulk-memory --enable-sign-ext --enable-mutable-globals --enable-nontrapping-float-to-int"
# Equal functions once, and numbers without padding. -Oz gives fewer bytes, but more of them after brotli.
SHRINK = f"{FEATURES} --duplicate-function-elimination --strip-debug --strip-producers"
STACK = 1 << 20

RULES = f"""\
zig = $python -m ziglang
flags = {FLAGS} -I{ROOT}/include -I{ROOT}/src -isystem headers
rule compile
  command = $zig c++ $flags $more -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = $out
rule link
  command = $zig c++ {FLAGS} -O2 -mexec-model=reactor $in -o $out -s -Wl,--gc-sections,--strip-all $exports
  description = $out
rule shrink
  command = wasm-opt {SHRINK} $in -o $out
  description = $out
"""


def sources() -> list[pathlib.Path]:
    folders = [ROOT / "src" / layer for layer in LAYERS]
    found = [path for folder in folders for path in folder.rglob("*.cpp")]
    return sorted(p for p in found if not re.search(r"(_test|_fuzz)\.cpp$", p.name))


def ninja(python: str) -> str:
    """The text of build.ninja."""
    if not WITH_OR_WITHOUT_KERNELS.exists():
        raise FileNotFoundError(WITH_OR_WITHOUT_KERNELS)
    lines = [f"python = {python}", RULES]
    objects: dict[str, list[str]] = {"explain": [], "kernels": []}
    own = [ROOT / "web/engine" / name for name in ("module.cpp", "blocks.cpp", "quantize.cpp")]
    for source in [*sources(), *own]:
        name = "_".join(source.relative_to(ROOT).with_suffix("").parts)
        # Small code, but for the loops over elements; those of blocks are short, and -O3 only unrolls them.
        optimize = "-Oz"
        if source.parent.name == "per_target":
            optimize = "-Os" if source.stem in OF_BLOCKS else "-O3"
        target = TARGET if source.parent.name == "per_target" else ""
        variants = {"kernels": ""}
        if source == WITH_OR_WITHOUT_KERNELS:
            variants["explain"] = "-DTENSORCAST_HAS_KERNELS=0"
        for module, definition in variants.items():
            made = f"objects/{name}{'_explain' if module == 'explain' else ''}.o"
            lines.append(f"build {made}: compile {source}\n  more = {optimize} {target} {definition}")
            objects[module].append(made)
            if module == "kernels" and source != WITH_OR_WITHOUT_KERNELS:
                objects["explain"].append(made)
    lines.append(f"build objects/digest.o: compile {ROOT}/web/engine/digest.cpp\n  more = -O3")
    objects["digest"] = [*objects["kernels"], "objects/digest.o"]
    for module, exports in EXPORTS.items():
        flags = " ".join(f"-Wl,--export={name}" for name in exports) + f" -Wl,-z,stack-size={STACK}"
        lines.append(f"build {module}.linked.wasm: link {' '.join(objects[module])}\n  exports = {flags}")
        lines.append(f"build {module}.wasm: shrink {module}.linked.wasm")
    return "\n".join(lines) + "\n"


def compile_modules(work: pathlib.Path, modules: tuple[str, ...] = ("explain", "kernels")) -> None:
    (work / "headers").mkdir(parents=True, exist_ok=True)
    fmt = work / "headers/fmt"  # the system's other headers are not for this target
    if not fmt.exists():
        fmt.symlink_to("/usr/include/fmt")
    (work / "build.ninja").write_text(ninja(sys.executable))
    jobs = os.environ.get("JOBS", "1")
    files = [f"{module}.wasm" for module in modules]
    subprocess.run(["ninja", "-C", work, f"-j{jobs}", "--quiet", *files], check=True)


if __name__ == "__main__":
    compile_modules(pathlib.Path(sys.argv[1]), tuple(sys.argv[2:]))
