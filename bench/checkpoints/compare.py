#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts one random checkpoint of llama by tcast and by the public ways to do the same: time, peak memory, losses.

    bench/checkpoints/compare.py TCAST [--gigabytes 2] [--rounds 3] [--folder DIR]

Needs torch, transformers, safetensors and compressed-tensors. Prints a table in Markdown. Every way is a process of its
own, followed by sync; its output is removed before the next. The source is in the page cache for all.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/interop"))
from peak_memory import wait_and_measure  # noqa: E402

PYTHON_LOOP = """
import json, pathlib, shutil, sys, torch
from safetensors.torch import load_file, save_file
source, out = map(pathlib.Path, sys.argv[1:])
out.mkdir()
for path in sorted(source.iterdir()):
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        save_file({k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in tensors.items()}, out / path.name)
    else:
        shutil.copy(path, out / path.name)
"""
TRANSFORMERS = """
import sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
model.save_pretrained(sys.argv[2], max_shard_size="500MB")
"""
COMPRESSED_TENSORS = """
import sys, torch
from compressed_tensors.entrypoints.convert import convert_checkpoint
from compressed_tensors.entrypoints.convert.converters import Converter
class ToBfloat16(Converter):
    def process(self, tensors):
        return {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in tensors.items()}
    def update_config(self, config):
        return config
    def get_dependencies(self, name):
        return set()
convert_checkpoint(sys.argv[1], sys.argv[2], ToBfloat16(), device="cpu")
"""


def write_source(folder, gigabytes):
    """Float32, in shards of 500 MB, with the metadata, tied names and files that real checkpoints have."""
    import safetensors.torch
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden, layers = 2048, max(1, round((gigabytes * 1e9 / 4 - 8000 * 2048 * 2) / 58.7e6))
    config = LlamaConfig(vocab_size=8000, hidden_size=hidden, intermediate_size=5632, num_hidden_layers=layers,
                         num_attention_heads=16, tie_word_embeddings=False)  # fmt: skip
    torch.manual_seed(1)
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="500MB")
    for path in folder.glob("*.safetensors"):
        tensors = safetensors.torch.load_file(path)
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt", "training_run": "17"})
    (folder / "tokenizer.json").write_text("{}")


def header(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


def losses(source, out, expected):
    """What the output lacks or has wrong."""
    found = []
    names, metadata = {}, True
    for path in sorted(out.glob("*.safetensors")):
        entries = header(path)
        kept = entries.pop("__metadata__", {}).get("training_run") == "17"
        metadata = metadata and kept
        names.update({name: (path, entry) for name, entry in entries.items()})
    if not metadata:
        found.append("`__metadata__`")
    index = json.loads((out / "model.safetensors.index.json").read_text())
    size = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for _, entry in names.values())
    if index["metadata"].get("total_size") != size:
        found.append("`total_size` is wrong")
    config = json.loads((out / "config.json").read_text())
    if "bfloat16" not in (config.get("dtype"), config.get("torch_dtype")):
        found.append("`config.json` names float32")
    if not (out / "tokenizer.json").exists():
        found.append("the tokenizer")
    if not (out / "SHA256SUMS").exists():
        found.append("no checksums")
    if expected and digest(names) != expected:
        found.append("other bits")
    return found


def digest(names):
    sums = {}
    for name, (path, entry) in names.items():
        with open(path, "rb") as file:
            begin = 8 + int.from_bytes(file.read(8), "little")
            file.seek(begin + entry["data_offsets"][0])
            sums[name] = hashlib.sha256(file.read(entry["data_offsets"][1] - entry["data_offsets"][0])).hexdigest()
    return sums


def tensors_of(out):
    names = {}
    for path in out.glob("*.safetensors"):
        entries = header(path)
        entries.pop("__metadata__", None)
        names.update({name: (path, entry) for name, entry in entries.items()})
    return digest(names)


def run(command, out):
    """Seconds until all is on the disk, and the peak of resident memory in MB."""
    shutil.rmtree(out, ignore_errors=True)
    os.sync()
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=said)
        peak = wait_and_measure(process)
        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode())
        os.sync()
        return time.monotonic() - start, peak / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tcast")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the source and the outputs go (default: a temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        source, out = pathlib.Path(folder) / "source", pathlib.Path(folder) / "out"
        write_source(source, given.gigabytes)
        python = [sys.executable, "-c"]
        ways = {
            "`cp -r`": ["cp", "-r", source, out],
            "`tcast convert`": [given.tcast, "convert", source, "-o", out, "--to", "bfloat16", "--quiet"],
            "Python loop, safetensors and torch": [*python, PYTHON_LOOP, source, out],
            "transformers, load and save": [*python, TRANSFORMERS, source, out],
            "compressed-tensors, with a converter of one's own": [*python, COMPRESSED_TENSORS, source, out],
        }
        results = {name: [] for name in ways}
        lost, expected = {}, None
        for _ in range(given.rounds):
            for name, command in ways.items():
                results[name].append(run(command, out))
                if name == "`tcast convert`":
                    expected = tensors_of(out)
                if name != "`cp -r`":
                    lost[name] = losses(source, out, expected)
        total = sum(path.stat().st_size for path in source.glob("*.safetensors"))
        print(f"{total / 1e9:.2f} GB in {len(list(source.glob('*.safetensors')))} shards, {os.cpu_count()} cores, "
              f"load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
        print("| | seconds | peak memory | lost or wrong |\n|---|---|---|---|")
        for name, rows in results.items():
            seconds, memory = sorted(row[0] for row in rows), max(row[1] for row in rows)
            times = f"{seconds[len(seconds) // 2]:.1f} ({seconds[0]:.1f}–{seconds[-1]:.1f})"
            print(f"| {name} | {times} | {memory:,.0f} MB | {', '.join(lost.get(name, [])) or 'nothing'} |")


if __name__ == "__main__":
    main()
