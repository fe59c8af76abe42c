# SPDX-License-Identifier: Apache-2.0
"""Other implementations as functions for the runner: convert(source, codes, target, options) returns codes, or None.

A code None in a result: the implementation refuses this element.
"""

import ctypes
import functools
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from number_types import INFINITY, NAN, TYPES, is_float, value

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python" / "tests"))
import peers


def normal(source, target, options):
    """Options without words that say what is the default anyway."""
    options = dict(options)
    word = options.get("rounding")
    if not is_float(target) and (word == "toward_zero" or not is_float(source)):
        options.pop("rounding", None)
    elif target == "float8_e8m0fnu" and word in ("toward_positive", "toward_zero", "toward_negative"):
        del options["rounding"]
        if word != "toward_positive":
            options["round_mode"] = "down"
    elif is_float(target) and word == "nearest_even" and target != "float8_e8m0fnu":
        del options["rounding"]
    return options


def saturates(target):
    return is_float(target) and TYPES[target].bits == 8


def unsaturated(target):
    """What an implementation without options does: beyond the range are infinity and NaN, powers of two are the nearest."""
    if target == "float8_e8m0fnu":
        return [{"saturate": "false", "round_mode": "nearest"}]
    return [{"saturate": "false"}] if saturates(target) else [{}]


def numpy_type(name):
    owner = np if hasattr(np, name) else ml_dtypes
    return np.dtype(getattr(owner, name)) if hasattr(owner, name) else None


def array_of(codes, name):
    return np.array(codes, f"u{numpy_type(name).itemsize}").view(numpy_type(name))


def codes_of(array, name):
    mask = (1 << TYPES[name].bits) - 1
    array = np.ascontiguousarray(array).reshape(-1)
    return [code & mask for code in array.view(f"u{array.itemsize}").tolist()]


class Implementation:
    packages: tuple = ()
    undefined_integers = True  # what a float beyond an integer type becomes
    any_nan = False  # the runner gives it NaNs without payload

    def version(self):
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in self.packages)

    def convert(self, source, codes, target, options):
        options = normal(source, target, options)
        if options not in self.modes(source, target) or source not in self.types or target not in self.types:
            return None
        return self.cast(source, codes, target, options)

    def modes(self, source, target):
        return unsaturated(target)


class NumPy(Implementation):
    title, packages = "NumPy with ml_dtypes", ("numpy", "ml_dtypes")
    types = [name for name in TYPES if numpy_type(name)]

    def cast(self, source, codes, target, options):
        try:
            with np.errstate(all="ignore"):
                return codes_of(array_of(codes, source).astype(numpy_type(target)), target)
        except TypeError:
            return None


class Jax(Implementation):
    title, packages = "JAX on a CPU", ("jax", "jaxlib")
    types = [name for name in NumPy.types if not name.startswith("float6")]  # XLA has no code for it
    undefined_integers = False

    def modes(self, source, target):
        beyond = is_float(source) and not is_float(target) and target != "bool"
        return [{"out_of_range": "saturate"}] if beyond else unsaturated(target)

    def cast(self, source, codes, target, options):
        import jax

        jax.config.update("jax_enable_x64", True)
        count = len(codes)
        codes = codes + [0] * (-count % 512)  # one compilation for many lengths
        try:
            result = self._compiled(numpy_type(target))(array_of(codes, source))
            return codes_of(np.asarray(result), target)[:count]
        except (TypeError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError):
            return None

    @staticmethod
    @functools.cache
    def _compiled(target):
        import jax

        return jax.jit(lambda x: jax.lax.convert_element_type(x, target))


class Peer(Implementation):
    """One of python/tests/peers.py."""

    def __init__(self, peer, undefined_integers=True):
        self.peer, self.title, self.packages = peer, peer.title, peer.packages
        self.types, self.undefined_integers = peer.types, undefined_integers

    def modes(self, source, target):
        def spelled(options):
            return {name: str(value).lower() for name, value in options.items() if value is not True and value != "up"}

        return [spelled(options) for options in self.peer.modes(target)]

    def cast(self, source, codes, target, options):
        given = {name: value == "true" if name == "saturate" else value for name, value in options.items()}
        if saturates(target):
            given = {"saturate": True, **given}
        try:
            result = self.peer.cast(np.array(codes, peers.code_type(source)), source, target, given)
            return [code & (1 << TYPES[target].bits) - 1 for code in result.tolist()]
        except (peers.NoCast, RuntimeError):
            return None


class CudaHeaders(Implementation):
    title, packages = "CUDA's headers, on the host", ("nvidia-cuda-runtime",)
    numbers = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}
    targets = ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float6_e2m3fn", "float6_e3m2fn",
               "float4_e2m1fn", "float16", "bfloat16"]  # fmt: skip
    types = [*numbers, *targets]

    def modes(self, source, target):
        if target == "float8_e8m0fnu":
            return [{**way, **end} for way in ({}, {"round_mode": "down"}) for end in ({}, {"saturate": "false"})]
        return [{}, {"saturate": "false"}] if saturates(target) else [{}]

    def cast(self, source, codes, target, options):
        if source not in self.numbers or target not in self.targets:
            return None
        ends = int("saturate" not in options)
        mode = ends + 2 * int(options.get("round_mode") == "down")
        result = (ctypes.c_uint64 * len(codes))()
        given = (ctypes.c_uint64 * len(codes))(*codes)
        done = library().convert(self.numbers[source], self.targets.index(target), mode, given, result, len(codes))
        return list(result) if done else None


@functools.cache
def library():
    """cuda_headers.cpp, compiled against the headers of the package nvidia-cuda-runtime."""
    files = importlib.metadata.files("nvidia-cuda-runtime")
    include = next(path.locate().parent for path in files if path.name == "cuda_fp4.h")
    made = pathlib.Path(tempfile.mkdtemp()) / "cuda_headers.so"
    source = pathlib.Path(__file__).with_name("cuda_headers.cpp")
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{include}", source, "-o", made], check=True)
    return ctypes.CDLL(str(made))


class Gfloat(Implementation):
    title, packages = "gfloat", ("gfloat",)
    any_nan = True
    types = [name for name in TYPES if not name.startswith(("float8_e4m3b11", "float8_e3m4", "float8_e5m3", "int64", "uint64"))]
    types = [name for name in types if name != "float8_e4m3"]
    roundings = {"nearest_away": "TiesToAway", "toward_zero": "TowardZero", "toward_positive": "TowardPositive",
                 "toward_negative": "TowardNegative"}  # fmt: skip

    @staticmethod
    @functools.cache
    def formats():
        from gfloat import Domain, formats

        p3109 = formats.format_info_p3109
        return {
            "float64": formats.format_info_binary64, "float32": formats.format_info_binary32,
            "float16": formats.format_info_binary16, "bfloat16": formats.format_info_bfloat16,
            "float8_e4m3fn": formats.format_info_ocp_e4m3, "float8_e5m2": formats.format_info_ocp_e5m2,
            "float8_e4m3fnuz": p3109(8, 4, domain=Domain.Finite), "float8_e5m2fnuz": p3109(8, 3, domain=Domain.Finite),
            "binary8p4se": p3109(8, 4, domain=Domain.Extended), "binary8p3se": p3109(8, 3, domain=Domain.Extended),
            "float6_e2m3fn": formats.format_info_ocp_e2m3, "float6_e3m2fn": formats.format_info_ocp_e3m2,
            "float4_e2m1fn": formats.format_info_ocp_e2m1,
        }  # fmt: skip

    def convert(self, source, codes, target, options):
        options = normal(source, target, options)
        if source == target or target not in self.formats() or source not in self.types or set(options) - {"saturate", "rounding"}:
            return None
        word = options.get("rounding", "")
        if word and word not in self.roundings:
            return None
        from gfloat import RoundMode

        # Every code of float4 and float6 is a number, and wide types never saturate.
        ends = TYPES[target].special == "none" or (saturates(target) and "saturate" not in options)
        mode = getattr(RoundMode, self.roundings.get(word, "TiesToEven"))
        return [self._one(self._number(source, code), self.formats()[target], mode, ends) for code in codes]

    @staticmethod
    def _number(source, code):
        negative, x = value(source, code)
        size = float(x if x not in (NAN, INFINITY) else np.nan if x == NAN else np.inf)
        return float(np.copysign(size, -1.0 if negative else 1.0))

    @staticmethod
    def _one(number, info, mode, ends):
        import gfloat

        try:
            return int(gfloat.encode_float(info, gfloat.round_float(info, number, mode, ends)))
        except ValueError:
            return None


class NumKong(Implementation):
    title, packages = "NumKong", ("numkong",)
    undefined_integers = False
    names = {name: name for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64",
                                     "uint32", "uint16", "uint8")}  # fmt: skip
    names |= {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float6_e2m3fn": "e2m3", "float6_e3m2fn": "e3m2"}
    types = list(names)

    def modes(self, source, target):
        if not is_float(target):
            both = {"rounding": "nearest_even", "out_of_range": "saturate"}
            return [both] if is_float(source) else [{"out_of_range": "saturate"}]
        return [{}] if target == "float8_e4m3fn" else unsaturated(target)

    def cast(self, source, codes, target, options):
        import numkong

        bits = np.array(codes, f"u{(TYPES[source].bits + 7) // 8}")
        made = numkong.from_pointer(bits.ctypes.data, (len(codes),), self.names[source], owner=bits).astype(self.names[target])
        size = (TYPES[target].bits + 7) // 8
        result = np.frombuffer(bytes(made), f"u{size}")[: len(codes)]
        return [code & (1 << TYPES[target].bits) - 1 for code in result.tolist()]


ALL = [NumPy(), Peer(peers.Torch()), Jax(), Peer(peers.OnnxRuntime()), Peer(peers.OpenVino()), CudaHeaders(), Gfloat(), NumKong()]
