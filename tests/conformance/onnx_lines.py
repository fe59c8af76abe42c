#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own node tests of casts and quantization, of every release line that installs, on tensorcast.onnx_backend.

    tests/conformance/onnx_lines.py --wheel dist/tensorcast-*.whl [--record] [LINE...]

Each line (1.16, 1.17, ...) gets an environment of its own with its newest wheel, kept in .venv-onnx. --record writes
docs/onnx-releases.md. A difference that semantics.md does not explain is a failure.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = [f"1.{minor}" for minor in range(16, 24)]
CHILD = pathlib.Path(__file__).with_name("onnx_line.py")

# Why an element may differ from the release's data, by what the child says of it.
REASONS = {
    "fnuz infinity": "infinity to a FNUZ type, `saturate=1`, opset 19 to 23: the text of these versions says NaN, the data "
    "the largest number (D2; `fnuz_inf=\"flt_max\"` gives the data's)",
    "bfloat16 truncated": "data that was truncated, not rounded to nearest even (D1); within the runner's tolerance",
    "nan code": "NaN as 0x7E instead of 0x7F, in a release that compares codes (D3: any NaN is one)",
}
HEAD = """# ONNX's node tests, release by release

Written by `tests/conformance/onnx_lines.py --record`: every `test_cast_*` and `test_castlike_*` (the expanded ones too),
`test_bitcast_*`, `test_quantizelinear*`, `test_dequantizelinear*` and `test_dynamicquantizelinear*` that
the newest wheel of each release line has, run by its own `onnx.backend.test.BackendTest` on `tensorcast.onnx_backend`.
None is skipped. The runner compares with tolerances; "bit for bit" says how many tests' data is met exactly, where any NaN
equals any other.

| onnx | NumPy | tests | passed | bit for bit | differences |
|---|---|---:|---:|---:|---|
"""


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


def environment(line: str, wheel: pathlib.Path) -> pathlib.Path | None:
    """The line's interpreter; None where no wheel of the line installs."""
    folder = ROOT / ".venv-onnx" / line
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"]
    if not (folder / "made").exists():
        run(sys.executable, "-m", "venv", folder)
        numpy = "numpy<2" if line == "1.16" else "numpy<2.4"  # what the release was made for
        command = [*pip, f"onnx~={line}.0", numpy, "ml_dtypes", "pytest"]
        if subprocess.run(list(map(str, command)), capture_output=True).returncode != 0:
            return None
        (folder / "made").touch()
    run(*pip, "--force-reinstall", "--no-deps", wheel)
    return python


def summary(result: dict) -> tuple[str, list[str]]:
    """The table's cell, and what is not explained."""
    counts: dict[str, int] = {}
    wrong = [f"{name}: {error}" for name, error in result["errors"].items()]
    for name, differences in result["differences"].items():
        for difference in differences:
            if difference["kind"] in REASONS:
                counts[difference["kind"]] = counts.get(difference["kind"], 0) + 1
            else:
                wrong.append(f"{name}: {difference}")
    explained = {name for name, rows in result["differences"].items() if all(row["kind"] in REASONS for row in rows)}
    wrong += [f"{name}: {why}" for name, why in result["failed"].items() if name not in explained]
    cell = "; ".join(f"{count} elements: {REASONS[kind]}" for kind, count in sorted(counts.items())) or "none"
    return cell, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("lines", nargs="*", metavar="LINE")
    arguments = parser.parse_args()
    table, failures = [], []
    for line in arguments.lines or LINES:
        if not re.fullmatch(r"1\.\d+", line):
            parser.error(f"a release line is like 1.22, not {line}")
        python = environment(line, arguments.wheel.resolve())
        if python is None:
            print(f"{line}: no wheel installs")
            continue
        result = json.loads(run(python, "-W", "ignore", CHILD).stdout.splitlines()[-1])
        cell, wrong = summary(result)
        tests, passed = result["tests"], result["tests"] - len(result["failed"])
        exact = tests - sum(any(row["kind"] != "nan code" for row in rows) for rows in result["differences"].values())
        table.append(f"| {result['onnx']} | {result['numpy']} | {tests} | {passed} | {exact} | {cell} |")
        print(table[-1], flush=True)
        failures += [f"{line}: {words}" for words in wrong]
        if result["skipped"]:
            failures.append(f"{line}: skipped {result['skipped']}")
    for failure in failures:
        print(failure)
    if arguments.record and not failures:
        (ROOT / "docs/onnx-releases.md").write_text(HEAD + "\n".join(table) + "\n")
    return 1 if failures or not table else 0


if __name__ == "__main__":
    sys.exit(main())
