# SPDX-License-Identifier: Apache-2.0
"""Weights that recipes are compared on: the same bits in every version of NumPy, as only raw bits are drawn."""

import hashlib
import zlib

import ml_dtypes
import numpy as np

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}


def _raw(name, count):
    return np.random.PCG64(zlib.crc32(name.encode())).random_raw(count)


def _uniform(name, *shape):
    """In [0, 1), multiples of 2^-53."""
    return (_raw(name, int(np.prod(shape))) >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def _bell(name, *shape):
    """Nearly normal: the sum of twelve uniform numbers, less their mean."""
    return _uniform(name, *shape, 12).sum(-1) - 6


def importance(columns):
    """As of an importance matrix: mean squares of many sizes, some of them 0."""
    x = np.exp2(20 * _uniform("importance", columns) - 14)
    return np.where(_uniform("importance of nothing", columns) < 0.03, 0, x).astype(np.float32)


def _rounded(x, dtype):
    """To float32 first, then as ml_dtypes rounds; infinity becomes the largest number."""
    x = np.clip(x, -float(np.finfo(np.float32).max), float(np.finfo(np.float32).max)).astype(np.float32)
    if dtype == "float32":
        return x
    made = x.astype(DTYPES[dtype])
    return np.where(np.isfinite(made.astype(np.float32)), made, np.sign(x) * ml_dtypes.finfo(DTYPES[dtype]).max).astype(
        DTYPES[dtype]
    )


def _normal():
    return _bell("normal", 128, 512) * 0.02


def _weights():
    """As of a layer: rows and columns of different sizes, and outliers."""
    x = _bell("weights", 128, 512) * np.exp2(6 * _uniform("rows", 128, 1) - 8)
    return np.where(_uniform("outliers", 128, 512) < 0.002, 40 * x, x)


def _exponents(low, high):
    """Blocks of 16 whose largest number is anywhere in 2^low to 2^high, the others at most 2^12 smaller."""
    name = f"exponents {low} {high}"
    tops = np.exp2(low + (high - low) * _uniform(name, 64, 32, 1))
    sizes = np.exp2(-12 * _uniform(name + " sizes", 64, 32, 16))
    signs = np.where(_uniform(name + " signs", 64, 32, 16) < 0.5, -1.0, 1.0)
    return (tops * sizes * signs).reshape(64, 512)


def _powers(low, high):
    """Largest numbers at powers of two and 1.5, 1.75 times them, and up to 130 steps beside them."""
    name = f"powers {low} {high}"
    steps = np.floor(261 * _uniform(name, 256, 16)) - 130
    steps[::2] = np.sign(steps[::2])
    base = np.array([1.0, 1.5, 1.75, 1.75])[(np.arange(256 * 16) % 4).reshape(256, 16)]
    exponents = np.floor(low + (high - low + 1) * _uniform(name + " exponents", 256, 16))
    tops = (base.astype(np.float32).view(np.int32) + steps.astype(np.int32)).view(np.float32).astype(np.float64)
    x = _bell(name + " others", 256, 16, 16) / 40
    x[..., 3] = 1
    return (x * (tops * np.exp2(exponents))[..., None]).reshape(256, 256)


def _ties():
    """Numbers at and beside the midpoints of all small types, under scales that are powers of two."""
    halves = np.concatenate([np.arange(0, 129) / 16, np.arange(0, 129) * 4])
    x = np.resize(halves, (64, 256)).astype(np.float32)
    x = (x.view(np.int32) + np.resize([0, 0, 1, -1, 0], x.shape) * (x != 0)).astype(np.int32).view(np.float32)
    x = x * np.resize([1.0, -1.0, 1.0], x.shape)
    x[:, ::16] = np.resize([6, 448, 7.5, 28, 4, 127.5], (64, 1))
    return x.astype(np.float64) * np.exp2(np.arange(64) % 9 - 4)[:, None]


def _zeros():
    """Blocks of zeros of both signs between others, rows of zeros, and a large number beside small ones."""
    x = _bell("zeros", 128, 256) * 0.1
    x[:, 32:96] = 0
    x[::2, 40:50] = -0.0
    x[5] = 0
    x[::3, 96] = -0.0
    x[7, 128:160] = 1e-30
    x[9, 200] = 3000
    return x


SAMPLES = {
    "normal": _normal,
    "weights": _weights,
    "exponents": lambda: _exponents(-20, 20),
    "all exponents": lambda: _exponents(-149, 127.9),
    "small numbers": lambda: _exponents(-149, -110),
    "powers": lambda: _powers(-20, 20),
    "all powers": lambda: _powers(-148, 126),
    "ties": _ties,
    "zeros": _zeros,
}


def _nonfinite(numbers):
    """Blocks that have some of these numbers, among others, zeros and each other, beside blocks, rows and tiles without."""
    x = _bell("others", 256, 256) * 0.1
    x[:8, 64:128] = 0
    places = (_raw("places", 60) % np.uint64(96 * 256)).astype(int)
    x.reshape(-1)[places] = np.resize(numbers, 60)
    x[7, 64:96] = np.resize(numbers, 32)
    x[9, 100] = numbers[0]
    x[9, 101:103] = numbers[-1]
    return x


# Of Quark alone, whose scales end in its own way.
ENDS = {
    "ends of the exponents": lambda: np.concatenate(
        [_exponents(120, 128), _exponents(-130, -118), _powers(125, 127).reshape(128, 512), _powers(-130, -120).reshape(128, 512)]
    )
}

NONFINITE = {
    "NaN": lambda: _nonfinite([np.nan]),
    "infinity": lambda: _nonfinite([np.inf, np.inf, -np.inf]),
    "NaN and infinity": lambda: _nonfinite([np.nan, np.inf, -np.inf, np.nan, -np.inf]),
}


def sample(name, dtype):
    if name in NONFINITE:
        return NONFINITE[name]().astype(np.float32).astype(DTYPES[dtype])
    return _rounded({**SAMPLES, **ENDS}[name](), dtype)


# Quark writes 0 for it, and contradicts itself: its float8 and its kernels of float4 for GPUs have -0.
NEGATIVE_ZERO = {"mxfp4": 8, "mxfp6": 32, "mxfp6-e3m2": 32}


def canonical(case, parts):
    """What is compared: codes and scales, less what tools do not define: which NaN, codes under a NaN scale, Quark's -0."""
    scheme, recipe, *_ = case.split(" ")
    parts = {name: np.ascontiguousarray(part) for name, part in parts.items() if part is not None}
    if "codes" not in parts:
        return parts
    codes, scales = parts["codes"].copy(), parts["scales"].copy()
    if recipe == "quark":
        codes[codes == NEGATIVE_ZERO.get(scheme)] = 0
    if scales.dtype == np.float32:
        nan = np.isnan(scales)
    else:
        nan = (scales & 0x7F) == 0x7F if scheme == "nvfp4" else scales == 0xFF
    scales[nan] = np.nan if scales.dtype == np.float32 else 0x7F
    if scheme in ("fp8-tensor", "fp8-channel", "fp8-block", "mxfp8"):
        codes[(codes & 0x7F) == 0x7F] = 0x7F
    elif nan.any():
        wide = np.repeat(nan.reshape(codes.shape[0], -1), codes.shape[1] // (scales.size // codes.shape[0]), 1)
        codes[wide] = 0
    return {**parts, "codes": codes, "scales": scales.ravel()}


def digest(case, parts):
    """Of a case: scheme, recipe and options, as recipe_digests.json has them."""
    made = canonical(case, parts)
    whole = hashlib.sha256()
    for name in sorted(made):
        whole.update(name.encode() + made[name].tobytes())
    return whole.hexdigest()[:12]
