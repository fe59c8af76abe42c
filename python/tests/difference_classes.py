# SPDX-License-Identifier: Apache-2.0
"""The kinds of differences that are known, each with the rule of docs/semantics.md that decides.

Where what a peer does can be computed, the class computes it: then it holds no other difference.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from peers import BITS, array_of, codes_of

import tensorcast as tc

LARGE = ("float64", "int64", "uint64", "int32", "uint32")


def is_float(name):
    return "float" in name


def chain(codes, *names, **options):
    """Our casts one after the other; the options are the last one's."""
    for source, target in zip(names, names[1:]):
        last = options if target == names[-1] else {}
        if source != target:
            codes = codes_of(tc.cast(array_of(codes, source), target, **last), target)
    return codes


@dataclasses.dataclass
class Pair:
    """The elements of one pair of types on which a peer differs."""

    peer: str
    source: str
    target: str
    options: dict
    codes: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray

    def __post_init__(self):
        with np.errstate(all="ignore"):
            self.x, self.our_values, self.their_values = (
                array_of(codes, name).astype(np.float64)
                for codes, name in ((self.codes, self.source), (self.ours, self.target), (self.theirs, self.target))
            )

    @property
    def size(self):
        return self.codes.size

    def only(self, mask):
        parts = (self.codes[mask], self.ours[mask], self.theirs[mask])
        return Pair(self.peer, self.source, self.target, self.options, *parts)


@dataclasses.dataclass(frozen=True)
class Class:
    rule: str
    text: str
    applies: Callable  # a Pair -> a mask of its elements
    peers: tuple = ()  # none: all
    targets: tuple = ()  # none: all
    steady: bool = True  # False: which elements, and what they become, is the machine's

    def mask(self, pair):
        if (self.peers and pair.peer not in self.peers) or (self.targets and pair.target not in self.targets):
            return np.zeros(pair.size, bool)
        with np.errstate(all="ignore"):
            return np.broadcast_to(self.applies(pair), pair.size)


def undefined_integer(pair):
    if not (is_float(pair.source) and "int" in pair.target):
        return False
    bits = BITS.get(pair.target) or np.iinfo(pair.target).bits
    low, high = (0, 2**bits - 1) if pair.target.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    whole = np.trunc(pair.x)
    return ~((whole >= low) & (whole < high + 1.0))  # high + 1 is a power of two, and exact


def through_float32(pair):
    if not is_float(pair.target) or pair.source not in LARGE:
        return False
    return pair.theirs == chain(pair.codes, pair.source, "float32", pair.target, **pair.options)


def through_float16(pair):
    return pair.theirs == chain(pair.codes, pair.source, "float32", "float16", pair.target, **pair.options)


def half_away(pair):
    if not is_float(pair.source):
        return False
    nearest = np.sign(pair.x) * np.floor(np.abs(pair.x) + 0.5)
    return pair.theirs == np.where(np.isfinite(nearest), nearest, 0).astype(np.int64) % (1 << BITS[pair.target])


def odd_rounding(pair):
    codes = chain(pair.codes, pair.source, "float32").astype(np.uint64)
    return pair.theirs == (((codes + ((codes & 0x10000) >> 1)) >> 16) & 0xFFFF)


REFERENCES = ("onnx.reference", "NumPy and ml_dtypes")
MAGNITUDE = ("onnx.reference", "PyTorch")
SMALL_INTEGERS = ("int4", "int2", "uint4", "uint2")
E8M0 = ("float8_e8m0fnu",)

# The first that applies is the one.
CLASSES = [
    Class(
        "D3",
        "Both are NaN. We keep the sign, and the leading payload bits where the target has some; they keep less, or "
        "leave a signalling NaN signalling.",
        lambda p: np.isnan(p.our_values) & np.isnan(p.their_values),
        steady=False,
    ),
    Class(
        "D6",
        "NaN, infinity, or beyond the integer's range, where the ONNX text leaves the result open: we give 0 for NaN "
        "and infinity and wrap the rest; they give what the processor's instruction gives.",
        undefined_integer,
        steady=False,
    ),
    Class("D0", "Rounded to float32 first, and then to the target. We round once.", through_float32),
    Class(
        "D0",
        "Rounded to float16 first, and then to the target. We round once.",
        through_float16,
        peers=("OpenVINO",),
        targets=("float8_e4m3fn", "float8_e5m2"),
    ),
    Class(
        "D0",
        "Among the subnormal results, a number just below a power of two becomes twice that power. We round once, to "
        "nearest.",
        lambda p: np.abs(p.their_values) == 2 * np.exp2(np.ceil(np.log2(np.abs(p.x)))),
        peers=("OpenVINO",),
        targets=("float16", "float8_e5m2"),
    ),
    Class(
        "D1",
        "Half a unit is added to the last place only where that place is odd, and the rest is cut off. We round to "
        "nearest.",
        odd_rounding,
        peers=("OpenVINO",),
        targets=("bfloat16",),
    ),
    Class(
        "D3",
        "A NaN whose payload lies in the bits that are cut off becomes an infinity (or, by a carry, -0). We keep NaN.",
        lambda p: np.isnan(p.x),
        peers=("OpenVINO",),
        targets=("bfloat16", "float8_e5m2"),
    ),
    Class(
        "D1",
        "Beyond the range becomes the largest finite number. We give infinity.",
        lambda p: np.isinf(p.our_values) & (np.abs(p.their_values) == 65504) & (p.source == "int32"),
        peers=("OpenVINO",),
        targets=("float16",),
    ),
    Class(
        "D2",
        "Without saturation, 480 up to 496 becomes the largest finite number. We give NaN.",
        lambda p: (np.abs(p.x) >= 480 - 2**-40) & (np.abs(p.x) < 496 + 2**-40) & (np.abs(p.their_values) == 448),
        peers=("ONNX Runtime",),
        targets=("float8_e4m3fn",),
    ),
    Class(
        "D2",
        "Without saturation, 61440 up to 65536 becomes NaN. We give infinity.",
        lambda p: (np.abs(p.x) < 65536 + 2**-30) & np.isnan(p.their_values),
        peers=("ONNX Runtime",),
        targets=("float8_e5m2",),
    ),
    Class(
        "D4",
        "A negative number, even -0 and -infinity, becomes the power of two of its magnitude. It is below the range: "
        "we give 2^-127, or NaN without saturation.",
        lambda p: np.signbit(p.x) & ~np.isnan(p.x),
        peers=MAGNITUDE,
        targets=E8M0,
    ),
    Class(
        "D4",
        "Infinity becomes NaN. Saturated, we give the largest, 2^127.",
        lambda p: np.isinf(p.x) & np.isnan(p.their_values),
        peers=MAGNITUDE,
        targets=E8M0,
    ),
    Class(
        "D4",
        "NaN with the sign becomes 2^-127. We give NaN.",
        lambda p: np.isnan(p.x) & np.signbit(p.x) & (p.theirs == 0),
        peers=("OpenVINO",),
        targets=E8M0,
    ),
    Class(
        "D4",
        "Of two powers of two equally near, the one with the even exponent. We take the larger.",
        lambda p: (np.frexp(p.x)[0] == 0.75) & (p.theirs.astype(int) == p.ours.astype(int) - 1),
        peers=("OpenVINO",),
        targets=E8M0,
    ),
    Class(
        "D4",
        "From 0 up to 2^-126, the smallest steps of the type. We take the range first (below 2^-127: 2^-127, or NaN "
        "without saturation) and then round by value.",
        lambda p: (p.x >= 0) & (p.x < 2.0**-126),
        targets=E8M0,
    ),
    Class(
        "D4",
        "Above 2^127, the largest: we look at the number itself and give 2^127 when saturated and NaN when not; they "
        "look at it after rounding.",
        lambda p: (p.x > 2.0**127) & (p.theirs >= 0xFE),
        peers=("onnx.reference", "NumPy and ml_dtypes", "PyTorch"),
        targets=E8M0,
    ),
    Class(
        "D5",
        "NaN becomes a zero whose sign is the opposite of the NaN's. We give -0, as ONNX's tests do.",
        lambda p: np.isnan(p.x) & (p.their_values == 0),
        peers=REFERENCES,
        targets=("float4_e2m1fn",),
    ),
    Class(
        "D5",
        "NaN becomes 6 with the NaN's sign. We give -0, as ONNX's tests do.",
        lambda p: np.isnan(p.x) & (np.abs(p.their_values) == 6),
        peers=("OpenVINO",),
        targets=("float4_e2m1fn",),
    ),
    Class(
        "D6",
        "Rounded to nearest, halves away from zero. We truncate, as for wider integers.",
        half_away,
        peers=("ONNX Runtime",),
        targets=SMALL_INTEGERS,
    ),
    Class(
        "D7",
        "Tests the code instead of the number: -0 (code 0x80) is true, and 2^-127 (code 0x00) is false. We test the "
        "number.",
        lambda p: (p.codes & 0x7F) == 0,
        peers=("ONNX Runtime",),
        targets=("bool",),
    ),
]
