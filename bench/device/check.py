# SPDX-License-Identifier: Apache-2.0
"""Casts by PyTorch's own operations on a device, against the engine on the host, and their speed: scripts/checks/device."""

import argparse
import hashlib
import statistics
import sys
import time

import numpy as np
import torch

import tensorcast as tc
import tensorcast.torch as tct
from tensorcast._device import _blocks, _quantize
from tensorcast._device._convert import CARRIER
from tensorcast._device._formats import engine_codes

ROWS = {row.name: row for row in tc.dtypes() if row.name != "string"}
OPTIONS = ({}, {"saturate": False}, {"out_of_range": "saturate"}, {"round_mode": "nearest"},
           {"rounding": "nearest_even"}, {"opset": 24},
           *({"rounding": word} for word in ("nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")),
           {"rounding": "stochastic", "seed": 7})  # fmt: skip
CHUNK = 1 << 26
SCHEMES = ("mxfp8", "mxfp4", "nvfp4", "fp8-channel", "fp8-block")


def found_device():
    for name in ("cuda", "xpu", "mps"):
        backend = getattr(torch, name, None)
        if backend is not None and backend.is_available():
            return torch.device(name)
    return None


def carried(codes, bits, device):
    width = max(8, bits)
    return torch.from_numpy(codes.view(np.uint8 if width == 8 else f"i{width // 8}")).to(device)


def made_on(device, codes, from_name, to, options):
    made = tct.cast_on_device(carried(codes, ROWS[from_name].bits, device), to, from_=from_name, **options)
    return made.view(CARRIER[max(8, ROWS[to].bits)]).cpu().numpy().view(f"u{max(8, ROWS[to].bits) // 8}")


def made_by_engine(codes, from_name, to, options):
    made = engine_codes(codes, from_name, to, options)
    return made & ((1 << ROWS[to].bits) - 1) if ROWS[to].bits < 8 else made


def check_digest(device):
    """Every code of 16 bits or fewer, and random ones of 32 and 64 bits, to every type with every kind of option."""
    here, there, count = hashlib.sha256(), hashlib.sha256(), 0
    random = np.random.default_rng(11)
    for from_name, row in ROWS.items():
        width = f"u{max(8, row.bits) // 8}"
        if row.bits <= 16:
            codes = np.arange(1 << row.bits, dtype=width)
        else:
            codes = random.integers(0, 1 << row.bits, 1 << 16, dtype=width, endpoint=False)
        for to in ROWS:
            for options in OPTIONS:
                try:
                    expected = made_by_engine(codes, from_name, to, options)
                except tc.CastError:
                    continue
                made = made_on(device, codes, from_name, to, options)
                if not np.array_equal(made, expected):
                    sys.exit(f"{from_name} to {to} with {options}: other bytes than the engine's")
                here.update(expected.tobytes())
                there.update(made.tobytes())
                count += codes.size
    assert here.digest() == there.digest()
    print(f"digest: {count:,} conversions equal, sha256 {there.hexdigest()[:16]}", flush=True)


def check_every_float32(device, share):
    """All float32 numbers, or each `share`-th, to each narrower type and to integers of up to 32 bits."""
    targets = [name for name, row in ROWS.items() if row.bits <= 32 and name not in ("float32", "bool")]
    for to in targets:
        count = 0
        for first in range(0, 1 << 32, CHUNK * share):
            codes = np.arange(first, min(first + CHUNK * share, 1 << 32), share, dtype=np.uint64).astype(np.uint32)
            if not np.array_equal(made_on(device, codes, "float32", to, {}), made_by_engine(codes, "float32", to, {})):
                sys.exit(f"float32 to {to}: other bytes than the engine's from 0x{first:08x} on")
            count += codes.size
        print(f"float32 to {to}: {count:,} numbers equal", flush=True)


def weights(shape, dtype):
    random = np.random.default_rng(2)
    numbers = random.standard_normal(shape) * np.exp2(random.integers(-12, 6, (*shape[:-1], 1)))
    numbers[..., :40] = 0
    numbers[..., 7::31] = -0.0
    return torch.from_numpy(numbers).to(dtype)


def bytes_of(tensor):
    return tensor.cpu().contiguous().view(torch.uint8)


def check_blocks(device):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in ((256, 512), (100, 300), (2, 130, 256)):
            for scheme in SCHEMES:
                x = weights(shape, dtype)
                expected = tc.quantize(x, scheme)
                recipe = _quantize.recipe_for(scheme, {}, device)
                parts = _quantize.quantize(x.to(device), recipe, {})
                assert parts is not None
                same = torch.equal(bytes_of(parts.codes), bytes_of(expected.codes))
                same &= torch.equal(bytes_of(parts.scales), bytes_of(expected.scales))
                if expected.global_scale is not None:
                    same &= float(parts.global_scale) == expected.global_scale
                numbers = _blocks.dequantize(parts.codes, parts.scales, scheme, parts.global_scale, None, shape, None, "bfloat16")
                same &= torch.equal(bytes_of(numbers), bytes_of(expected.dequantize("bfloat16")))
                if not same:
                    sys.exit(f"{scheme} of {dtype} {shape}: other bytes than the engine's")
    print(f"blocks: {', '.join(SCHEMES)} of three types and shapes equal", flush=True)


def check_graphs(device):
    if device.type != "cuda":
        print("CUDA graphs: skipped, as the device is not CUDA's")
        return
    x = torch.randn(1 << 20, device=device)
    for to in ("float8_e4m3fn", "bfloat16", "int8"):
        tct.cast_on_device(x, to)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = tct.cast_on_device(x, to)
        x.copy_(torch.randn(1 << 20, device=device) * 300)
        graph.replay()
        if not torch.equal(bytes_of(captured), bytes_of(tc.cast(x.cpu(), to))):
            sys.exit(f"float32 to {to} in a CUDA graph: other bytes than the engine's")
    print("CUDA graphs: captured and replayed, equal")


def seconds(device, function, repeat):
    """Median time of one call."""
    wait = getattr(torch, device.type).synchronize if device.type != "cpu" else lambda: None
    function()
    times = []
    for _ in range(repeat):
        wait()
        start = time.perf_counter()
        function()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(device, size, repeat, fused):
    """Bytes read and written in a second, beside those of clone()."""
    print(f"{'':34}{'GB/s':>9}{'of clone':>10}")
    slow = []
    for from_, to in ((torch.float32, "float8_e4m3fn"), (torch.float32, "bfloat16"), (torch.bfloat16, "float8_e4m3fn"),
                      (torch.bfloat16, "float8_e8m0fnu"), (torch.float8_e4m3fn, "bfloat16")):  # fmt: skip
        x = torch.randn(size // 4, device=device).to(from_)
        target = getattr(torch, to)
        clone = 2 * x.nbytes / seconds(device, x.clone, repeat)
        moved = x.nbytes + x.numel() * target.itemsize
        ways = {"Tensor.to": lambda: x.to(target), "cast_on_device": lambda: tct.cast_on_device(x, to)}
        if fused:
            ways["cast_on_device, fused"] = lambda: tct.cast_on_device(x, to, fused=True)
        for name, way in ways.items():
            rate = moved / seconds(device, way, repeat)
            print(f"{str(from_)[6:] + ' to ' + to:34}{rate / 1e9:9.1f}{rate / clone:10.2f}  {name}", flush=True)
            if "fused" in name and rate < 0.8 * clone:
                slow.append(f"{from_} to {to}")
    try:
        from torchao.quantization.quantize_.workflows.float8.float8_tensor import Float8Tensor
    except ImportError:
        print("torchao: skipped, as it is not installed")
    else:
        x = torch.randn(4096, size // 4 // 4096, device=device, dtype=torch.bfloat16)
        for name, way in {"torchao, a scale a tensor": lambda: Float8Tensor.from_hp(x),
                          "tensorcast, a scale a row": lambda: tc.quantize(x, "fp8-channel")}.items():  # fmt: skip
            print(f"{'bfloat16 to float8 with scales':34}{x.nbytes * 1.5 / seconds(device, way, repeat) / 1e9:9.1f}{'':10}  {name}")
    return slow


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cpu", action="store_true", help="run on the CPU, and each 4096th float32 number alone")
    arguments.add_argument("--share", type=int, help="take each n-th float32 number")
    arguments.add_argument("--size", type=int, help="bytes of the tensors that are timed; default: 256 MiB")
    given = arguments.parse_args()
    device = torch.device("cpu") if given.cpu else found_device()
    if device is None:
        print("skipped: PyTorch finds no GPU here; --cpu runs the same on the CPU")
        return
    name = torch.cuda.get_device_name() if device.type == "cuda" else device.type
    print(f"tensorcast {tc.__version__}, PyTorch {torch.__version__}, on {name}")
    check_digest(device)
    check_every_float32(device, given.share or (4096 if given.cpu else 1))
    check_blocks(device)
    check_graphs(device)
    size = given.size or ((1 << 24) if given.cpu else (1 << 28))
    slow = measure(device, size, 3 if given.cpu else 20, fused=True)
    if slow and not given.cpu:
        sys.exit(f"fused casts have less than 80 % of clone's rate: {', '.join(slow)}")


if __name__ == "__main__":
    main()
