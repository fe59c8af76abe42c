# SPDX-License-Identifier: Apache-2.0
"""Times loading of a folder of DeepSeek's float8 into PyTorch, beside reading its bytes, decoding it, and PyTorch's reader.

    load_quantized.py FOLDER [--gib 8]     makes FOLDER, unless it is there, and prints a table in seconds

Layers are loaded one after the other into one state dict, so memory is that of a layer. Each way runs three times, in
turn, and the least time counts; the folder's pages are in memory unless it is larger. Needs torch and safetensors.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import tensorcast as tc
import torch
import torch.distributed.checkpoint as dcp
from tensorcast.torch import QuantizedReader

ROWS, COLUMNS, EACH = 8192, 8192, 4  # of a weight, and weights of a layer: 256 MiB
CONFIG = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                                  "activation_scheme": "dynamic"}}


def names_of(layer):
    return [f"model.layers.{layer}.mlp.w{i}.weight" for i in range(EACH)]


def make(folder, layers):
    random = np.random.default_rng(0)
    codes = random.integers(0, 0x7E, (ROWS, COLUMNS), np.uint8)  # finite numbers
    scales = random.uniform(0.5, 2, (ROWS // 128, COLUMNS // 128)).astype(np.float32)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    weight_map = {}
    for layer in range(layers):
        tensors = {}
        for name in names_of(layer):
            tensors[name] = torch.from_numpy(codes).view(torch.float8_e4m3fn)
            tensors[name + "_scale_inv"] = torch.from_numpy(scales)
        file = f"model-{layer + 1:05}-of-{layers:05}.safetensors"
        tc.save(folder / file, tensors)
        weight_map.update(dict.fromkeys(tensors, file))
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def read(folder, layers):
    buffer = bytearray(1 << 24)
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def decode(folder, layers):
    with tc.open(folder) as file:
        for layer in range(layers):
            for name in names_of(layer):
                file.layers[name].dequantize("bfloat16")


def load_with(reader):
    state = {i: torch.empty(ROWS, COLUMNS, dtype=torch.bfloat16) for i in range(EACH)}

    def load(folder, layers):
        for layer in range(layers):
            named = {name: state[i] for i, name in enumerate(names_of(layer))}
            dcp.load(named, storage_reader=reader(folder), no_dist=True)

    return load


def pytorch(folder):
    from torch.distributed.checkpoint.quantized_hf_storage import QuantizedHuggingFaceStorageReader

    return QuantizedHuggingFaceStorageReader(str(folder), target_dtype=torch.bfloat16, thread_count=torch.get_num_threads())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gib", type=float, default=8)
    given = parser.parse_args()
    layers = max(1, round(given.gib * (1 << 30) / (ROWS * COLUMNS * EACH)))
    if not given.folder.exists():
        make(given.folder, layers)
    ways = {"read its bytes": read, "decode it": decode,
            "QuantizedReader": load_with(lambda folder: QuantizedReader(folder, dtype=torch.bfloat16)),
            "PyTorch's reader": load_with(pytorch)}
    least = {}
    for _ in range(3):
        for name, way in ways.items():
            begin = time.perf_counter()
            way(given.folder, layers)
            least[name] = min(least.get(name, float("inf")), time.perf_counter() - begin)
    floor = max(least["read its bytes"], least["decode it"])
    for name, seconds in least.items():
        print(f"{name:20} {seconds:8.2f} s {seconds / floor:6.2f}")


if __name__ == "__main__":
    main()
