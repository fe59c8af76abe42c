# SPDX-License-Identifier: Apache-2.0
"""The modules give what native code gives: explanations, conversions, tables of promotion."""

import itertools
import json
import random
import shutil
import subprocess

import pytest

from conftest import PAGE, ROOT

# Of web/engine/digest.cpp, compiled natively for AVX-512, AVX2, NEON and portable code.
NATIVE_DIGEST = "491113efdab059d6"
OPTIONS = [
    {},
    {"saturate": False},
    {"opset": 19},
    {"opset": 13},
    {"round_mode": "down"},
    {"round_mode": "nearest"},
    {"out_of_range": "wrap"},
    {"out_of_range": "saturate"},
    {"out_of_range": "error"},
    {"rounding": "nearest_even"},
    {"invalid": "error"},
    {"fnuz_inf": "flt_max", "opset": 23},
    {"scale": 0.1},
    {"scale": -1024.5, "rounding": "nearest_even"},
]


def literals(count, seed):
    """Numbers of all sizes, ties of narrow types, words."""
    rng = random.Random(seed)
    found = ["0", "-0", "inf", "-inf", "nan", "-nan", "1", "-1", "448", "464", "465", "65519", "65520", "2147483648"]
    while len(found) < count:
        kind = rng.randrange(5)
        if kind == 0:
            text = repr(rng.uniform(-1, 1) * 10 ** rng.uniform(-12, 12))
        elif kind == 1:
            text = str(rng.randrange(-(2 ** rng.randrange(1, 66)), 2 ** rng.randrange(1, 66)))
        elif kind == 2:  # a number of few bits, or the middle of two
            text = repr(rng.randrange(-129, 130) * 2.0 ** rng.randrange(-20, 20))
        elif kind == 3:
            text = f"{rng.choice('+-')}{rng.randrange(10**9)}.{rng.randrange(10**9)}e{rng.randrange(-340, 340)}"
        else:
            text = repr(rng.uniform(-500, 500))
        found.append(text)
    return found


def native(tcast, values, options, *more):
    words = [f"--{name.replace('_', '-')}={str(value).lower()}" for name, value in options.items()]
    done = subprocess.run([tcast, "explain", "--json", *words, *more, "--", *values], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def parsed(text):
    """JavaScript writes 1.8e19 with all its digits, as if it were a whole number."""
    return json.loads(text, parse_int=float)


EXPLAIN = "([values, type, options]) => JSON.stringify(values.map(v => tensorcast.explain(v, type, options)[0]))"


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_explanations_are_those_of_the_command(opened, tcast, number):
    options = OPTIONS[number]
    values = literals(150, number)
    page = opened()
    assert parsed(page.evaluate(EXPLAIN, [values, None, options])) == native(tcast, values, options)


def test_explanations_of_codes_are_those_of_the_command(opened, tcast):
    page = opened()
    types = json.loads(subprocess.run([tcast, "types", "--json"], capture_output=True, text=True).stdout)
    rng = random.Random(1)
    for row in types:
        if row["bits"] == 0:
            continue
        most = 1 << row["bits"]
        codes = range(most) if most <= 256 else [rng.randrange(most) for _ in range(60)] + [0, most - 1, most // 2]
        values = [hex(code) for code in codes]
        options = {"from": row["name"]}
        given = parsed(page.evaluate(EXPLAIN, [values, "float8_e5m2", options]))
        assert given == native(tcast, values, options, "--to", "float8_e5m2"), row["name"]


def test_errors_are_those_of_the_command(opened, tcast):
    page = opened()
    for value, type_ in [("1x", "float16"), ("0x1FF", "float8_e4m3fn"), ("1", "fp8"), ("", "int8")]:
        done = subprocess.run([tcast, "explain", "--json", "--to", type_, "--", value], capture_output=True, text=True)
        assert done.returncode != 0
        said = page.evaluate("([v, t]) => { try { return tensorcast.explain(v, t) } catch (e) { return e.message } }", [value, type_])
        assert isinstance(said, str) and said


def test_promotion_is_the_commands(opened, tcast):
    page = opened()
    types = json.loads(subprocess.run([tcast, "types", "--json"], capture_output=True, text=True).stdout)
    names = [row["name"] for row in types]
    call = "([a, b, o]) => tensorcast.engine.promote(a, b, o).type ?? null"
    rng = random.Random(3)
    pairs = rng.sample(list(itertools.product(names, names)), 25)
    for rules in ("openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"):
        for a, b in pairs:
            done = subprocess.run([tcast, "promote", a, b, "--rules", rules], capture_output=True, text=True)
            wanted = done.stdout.split()[0] if done.returncode == 0 else None
            assert page.evaluate(call, [a, b, {"rules": rules}]) == wanted, (rules, a, b)


DIGEST = """async bytes => {
  let memory;
  const none = (count, size) => [count, size].forEach(at => new DataView(memory.buffer).setUint32(at, 0)) ?? 0;
  const stub = new Proxy({}, { get: (_, name) => name === "environ_sizes_get" ? none : () => name === "environ_get" ? 0 : 8 });
  const { instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: stub });
  memory = instance.exports.memory;
  instance.exports._initialize();
  return BigInt.asUintN(64, instance.exports.digest(1000000)).toString(16).padStart(16, "0");
}"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_conversions_are_those_of_native_code_in_node():
    module = ROOT / "build/web-objects/digest.wasm"
    code = f"({DIGEST})(require('fs').readFileSync({json.dumps(str(module))})).then(d => console.log(d))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True)
    assert done.stdout.strip() == NATIVE_DIGEST, done.stderr


def test_conversions_are_those_of_native_code_in_chromium(opened):
    page = opened()
    text = (ROOT / "build/web-objects/digest.wasm").read_bytes().hex()
    code = f"hex => ({DIGEST})(Uint8Array.from(hex.match(/../g), two => parseInt(two, 16)))"
    assert page.evaluate(code, text) == NATIVE_DIGEST


def test_the_page_has_its_module_inside():
    assert (PAGE / "index.html").stat().st_size < 800_000
