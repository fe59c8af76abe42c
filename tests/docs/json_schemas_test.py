# SPDX-License-Identifier: Apache-2.0
"""docs/json-schemas.json: made from what this command prints, true of other outputs, and of every command with --json."""

import json
import os
import re
import subprocess
import sys

import pytest

OTHERS = {
    "types": ["types"],
    "explain": ["explain 0.3 inf --full", "explain 300 --to int8"],
    "promote": ["promote int4 float32 --rules tensorflow", "promote bool uint64", "promote --table --rules jax"],
    "inspect": ["inspect exact.npy", "inspect llama.gguf", "inspect pixels.npy --stats", "inspect exact.npy weights.npy",
                "inspect weights.npy --stats --candidates float4_e2m1fn,q4_k"],
    "convert": ["convert exact.npy -o x.npy --to float8_e5m2 --force --allow-loss", "convert weights.npy -o x.npz --to int8 --out-of-range saturate --force"],
    "onnx casts": ["onnx casts old.onnx"],
    "onnx diff": ["onnx diff castlike.onnx relu.onnx", "onnx diff old.onnx cast.onnx", "onnx diff cast.onnx cast.onnx"],
    "onnx convert": ["onnx convert cast.onnx -o x.onnx --to bfloat16 --force"],
    "diff": ["diff weights.npy x.npz", "diff exact.npy pixels.npy", "diff pixels.npy pixels.npy --all", "diff weights.npy weights.npy --all",
             "diff model.safetensors kinds/mixed.npz"],
}


@pytest.fixture(scope="module")
def schemas(source_dir):
    return json.loads((source_dir / "docs/json-schemas.json").read_text())


@pytest.fixture(scope="module")
def made(source_dir, tcast, tmp_path_factory):
    out = tmp_path_factory.mktemp("schemas") / "made.json"
    environment = {**os.environ, "TCAST": str(tcast), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([source_dir / "scripts/make/json-schemas", "--output", out], check=True, env=environment)
    return json.loads(out.read_text())


def test_the_page_is_what_the_command_prints(schemas, made):
    assert schemas == made, "scripts/make/json-schemas writes it anew"


def help_of(tcast, *words):
    return subprocess.run([tcast, *words, "--help"], check=True, capture_output=True, text=True).stdout


def test_each_command_that_prints_json_has_one(tcast, schemas):
    def commands(*above):
        rows = re.search(r"^Commands:\n(.*?)\n\n", help_of(tcast, *above), re.MULTILINE | re.DOTALL)
        if rows is None:
            return {" ".join(above)} if "--json" in help_of(tcast, *above) else set()
        return set().union(*(commands(*above, name) for name in re.findall(r"^  ([a-z][\w-]*)", rows[1], re.MULTILINE)))

    listed = {name.removeprefix("tcast ") for name in schemas["$defs"] if name.startswith("tcast ")}
    assert listed == commands()


def test_other_outputs_follow_it(source_dir, tcast, schemas, tmp_path, monkeypatch):
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.syspath_prepend(str(source_dir / "tests/cli"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import fixtures

    fixtures.write_all(tmp_path)
    jsonschema.Draft202012Validator.check_schema(schemas)
    wrong = []
    for command, samples in OTHERS.items():
        validator = jsonschema.Draft202012Validator({**schemas, "$ref": f"#/$defs/tcast {command}".replace(" ", "%20")})
        for sample in samples:
            done = subprocess.run([tcast, *sample.split(), "--json"], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode <= 1 and done.stdout, done.stderr
            wrong += [f"{sample}: {error.json_path}: {error.message[:200]}" for error in validator.iter_errors(json.loads(done.stdout))]
    assert wrong == []


def test_errors_of_every_command_follow_it(tcast, schemas, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    wrong = []
    for name in schemas["$defs"]:
        if not name.startswith("tcast "):
            continue
        command = name.removeprefix("tcast ")
        validator = jsonschema.Draft202012Validator({**schemas, "$ref": f"#/$defs/{name}".replace(" ", "%20")})
        for arguments in (["--nothing"], ["missing", "-o", "x"], [""]):
            words = [*command.split(), *arguments, "--json"]
            done = subprocess.run([tcast, *words], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode in (1, 2) and list(json.loads(done.stdout)) == ["error"], words
            wrong += [f"{words}: {error.message[:200]}" for error in validator.iter_errors(json.loads(done.stdout))]
    assert wrong == []


def test_a_missing_key_and_a_wrong_type_are_found(schemas):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator({**schemas, "$ref": "#/$defs/tcast%20promote"})
    good = {"a": "float16", "b": "bfloat16", "common": None, "reason": "x"}
    assert validator.is_valid(good) and not validator.is_valid({**good, "a": 1})
    assert not validator.is_valid({key: value for key, value in good.items() if key != "common"})
