#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `--budget` chooses beside other mixes of the same size: the sum of squared errors of all weights.

    bench/blocks/mixes.py [--layers 16] [--hidden 512]

Needs the Python package and gguf. The weights have the shapes and spreads of a Llama's: bfloat16, modules, rows and columns of
different sizes, outliers. llama.cpp's mix is Q4_K_M by its rules of names. auto-round's is its dynamic program over the
sums of |gradient * error| (auto_scheme/delta_loss.py of 0.16), with gradients of one size, as there is no model to run.
"""

import argparse
import itertools
import pathlib
import tempfile

import gguf
import ml_dtypes
import numpy as np

import tensorcast as tc

SHAPES = {"attn_q": (1, 1), "attn_k": (0.25, 1), "attn_v": (0.25, 1), "attn_output": (1, 1), "ffn_gate": (2.75, 1),
          "ffn_up": (2.75, 1), "ffn_down": (1, 2.75)}  # fmt: skip
SIZES = {"attn_q": 1.2, "attn_k": 1.3, "attn_v": 0.6, "attn_output": 0.7, "ffn_gate": 1.0, "ffn_up": 0.9, "ffn_down": 0.9}
MODULES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
           "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}  # fmt: skip
JOINED = {"attn_q": "qkv", "attn_k": "qkv", "attn_v": "qkv", "ffn_gate": "gate_up", "ffn_up": "gate_up"}


def weights(layers, hidden, seed=29):
    random = np.random.default_rng(seed)
    made = {}
    for layer, (module, scale) in itertools.product(range(layers), SHAPES.items()):
        shape = [max(int(hidden * size) // 256, 1) * 256 if size > 1 or size == 1 else int(hidden * size) for size in scale]
        x = random.normal(size=shape) * 0.02 * SIZES[module] * (1 + layer / layers)
        x *= np.exp2(random.normal(size=(shape[0], 1)) * 0.4) * np.exp2(random.normal(size=(1, shape[1])) * 0.3)
        x[random.random(shape) < 1e-3] *= 6
        made[layer, module] = x.astype(ml_dtypes.bfloat16)
    return made


def q4_k_m(layers):
    def more(layer):
        return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2

    return {(layer, module): "q6_k" if module in ("attn_v", "ffn_down") and more(layer) else "q4_k"
            for layer, module in itertools.product(range(layers), SHAPES)}  # fmt: skip


class Fits:
    """What each weight takes and loses in each scheme."""

    def __init__(self, made, schemes):
        self.bits, self.squares, self.absolutes = {}, {}, {}
        for (key, x), scheme in itertools.product(made.items(), schemes):
            if scheme.startswith(("q", "iq")):
                stored = [tc.gguf_quantize(x.astype(np.float32), scheme)]
                numbers = tc.dequantize(stored[0], None, scheme, spelling="gguf", dtype="float32").reshape(x.shape)
            else:
                q = tc.quantize(x, scheme)
                stored, numbers = q.spelled("compressed-tensors").values(), q.dequantize()
            error = x.astype(np.float64) - numbers
            self.bits[key, scheme] = 8 * sum(np.asarray(part).nbytes for part in stored)
            self.squares[key, scheme] = float((error**2).sum())
            self.absolutes[key, scheme] = float(np.abs(error).sum())
        self.elements = sum(x.size for x in made.values())

    def row(self, name, mix):
        size = sum(self.bits[item] for item in mix.items()) / self.elements
        counts = {scheme: list(mix.values()).count(scheme) for scheme in sorted(set(mix.values()))}
        words = ", ".join(f"{count} {scheme}" for scheme, count in counts.items())
        print(f"| {name} | {size:.4f} | {sum(self.squares[item] for item in mix.items()):.6g} | {words} |")


def auto_round(made, fits, schemes, bits):
    """The best sum of scores within the size, as its dynamic program finds it; joined modules get one scheme."""
    groups = {}
    for layer, module in made:
        groups.setdefault((layer, JOINED.get(module, module)), []).append((layer, module))
    states = {0: (0.0, ())}
    for members in groups.values():
        found = {}
        for (size, (score, path)), scheme in itertools.product(states.items(), schemes):
            size += sum(fits.bits[key, scheme] for key in members)
            score += sum(fits.absolutes[key, scheme] for key in members)
            if size <= bits * fits.elements and (size not in found or score < found[size][0]):
                found[size] = score, (*path, scheme)
        states, least = {}, np.inf
        for size, (score, path) in sorted(found.items()):
            if score < least:
                states[size], least = (score, path), score
    _, path = min(states.values())
    return {key: scheme for members, scheme in zip(groups.values(), path, strict=True) for key in members}


def in_gguf(made, bits, candidates, folder):
    writer = gguf.GGUFWriter(folder / "in.gguf", "llama")
    for (layer, module), x in made.items():
        writer.add_tensor(f"blk.{layer}.{module}.weight", x.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    done = tc.convert(folder / "in.gguf", folder / "out.gguf", budget=bits, candidates=candidates, overwrite=True)
    named = {tensor.name: tensor.scheme for tensor in done.tensors}
    return {(layer, module): named[f"blk.{layer}.{module}.weight"] for layer, module in made}


def in_safetensors(made, bits, candidates, folder):
    name = "model.layers.{}.{}.weight".format
    tc.save(folder / "in.safetensors", {name(layer, MODULES[module]): x for (layer, module), x in made.items()}, overwrite=True)
    done = tc.convert(folder / "in.safetensors", folder / "out.safetensors", budget=bits, candidates=candidates, overwrite=True)
    named = {tensor.name.rsplit(".", 1)[0]: tensor.scheme for tensor in done.tensors if tensor.recipe}
    return {(layer, module): named[name(layer, MODULES[module]).removesuffix(".weight")] for layer, module in made}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=512)
    given = parser.parse_args()
    made = weights(given.layers, given.hidden)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print("| mix | bits | sum of squared errors | weights |\n|---|---|---|---|")
        schemes = ["q4_k", "q6_k"]
        fits, rules = Fits(made, schemes), q4_k_m(given.layers)
        size = sum(fits.bits[item] for item in rules.items()) / fits.elements
        fits.row("Q4_K_M, rules of names", rules)
        fits.row(f"`--budget {size:.6f}`", in_gguf(made, size, schemes, folder))
        for schemes, bits in itertools.product((["mxfp4", "mxfp8"], ["nvfp4", "mxfp4", "mxfp6", "mxfp8"]), (4.5, 5.0, 6.0)):
            fits = Fits(made, schemes)
            fits.row(f"auto-round's choice, {bits} bits of {', '.join(schemes)}", auto_round(made, fits, schemes, bits))
            fits.row(f"`--budget {bits}`", in_safetensors(made, bits, schemes, folder))


if __name__ == "__main__":
    main()
