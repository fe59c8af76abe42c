# SPDX-License-Identifier: Apache-2.0
"""Strings to numbers and numbers to strings, against the two peers that have them."""

import dataclasses

import numpy as np
from difference_samples import TEXTS, codes_for
from peers import OnnxReference, OnnxRuntime, array_of, codes_of

import tensorcast as tc

TARGETS = ["float64", "float32", "float16", "float8_e4m3fn", "int64", "int32", "uint8", "bool"]
SOURCES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int64",
    "int8",
    "uint64",
    "bool",
]
PEERS = [OnnxReference(), OnnxRuntime()]
ERROR = "error"

WHY = {
    "refused": ("D8", "They read it, or its beginning, as a number; by the grammar it is not one."),
    "accepted": ("D8", "They refuse what the grammar allows."),
    "infinite": ("D8", "They refuse a number beyond or below the range of float64; it becomes what D1 says."),
    "integer": (
        "D8, D6",
        "They read the integer before the point or the exponent; we read the number, truncate and wrap.",
    ),
    "range": ("D6", "NaN, infinity, or beyond the integer's range."),
    "nan": ("D3", "Both are NaN; the sign differs."),
    "truth": ("D8", "They test another thing than whether the number is zero."),
    "notation": ("D9", "The same number in other words: we write plain notation with a digit behind the point."),
    "digits": ("D9", "Other digits: we write the fewest that read back as the same float32 (float64: as itself)."),
    "bool": ("D9", "True and False; we write 1 and 0."),
}


@dataclasses.dataclass(frozen=True)
class Difference:
    peer: str
    source: str
    target: str
    why: str  # a key of WHY; empty: none fits
    example: str
    ours: str
    theirs: str


def outcome(make):
    try:
        return make()
    except Exception:  # noqa: BLE001 -- each peer has exceptions of its own
        return ERROR


def printed(codes, name):
    return str(tc.cast(array_of(codes, name), str, float_string="shortest")[0])


def reading_class(text, target, ours, theirs):
    plain = text.strip(" \t\n\v\f\r").lower()
    if ours == ERROR:
        return "refused"
    if target == "bool":
        return "truth"
    if theirs == ERROR:
        return "infinite" if plain.lstrip("+-").startswith(("1e400", "1e-400", "1e-310")) else "accepted"
    if {ours, theirs} <= {"NaN", "-NaN"}:
        return "nan"
    if "int" in target:
        value = float(plain)
        info = np.iinfo(target)
        if not np.isfinite(value) or not info.min <= np.trunc(value) <= info.max:
            return "range"
        return "integer" if plain.startswith((theirs, "-")) or theirs in plain else ""
    return ""


def measure_reading(peer):
    found = []
    for target in TARGETS:
        for text in TEXTS:
            ours = outcome(lambda: codes_of(tc.cast(np.array([text], object), target, saturate=True), target))
            theirs = outcome(lambda: peer.cast_from_strings([text], target, {}))
            if ours is not ERROR and theirs is not ERROR and np.array_equal(ours, theirs):
                continue
            if ours is ERROR and theirs is ERROR:
                continue
            a, b = (side if side is ERROR else printed(side, target) for side in (ours, theirs))
            found.append(Difference(peer.title, "string", target, reading_class(text, target, a, b), ascii(text), a, b))
    return found


def writing_class(source, ours, theirs):
    if source == "bool":
        return "bool" if theirs in ("True", "False") else ""
    if ours.lower() == theirs.lower() or (float(ours) == float(theirs)):
        return "notation"
    return "digits" if np.float32(ours) == np.float32(theirs) or np.isclose(float(ours), float(theirs), 1e-2) else ""


def measure_writing(peer):
    found = []
    for source in SOURCES:
        codes = codes_for(source)
        codes = codes[:: max(1, codes.size // 1500)]
        ours = tc.cast(array_of(codes, source), str).tolist()
        theirs = outcome(lambda: peer.cast_to_strings(codes, source))
        if theirs is ERROR:
            continue
        for code, a, b in zip(codes, ours, theirs):
            if a != b:
                example = f"0x{int(code):X}"
                found.append(Difference(peer.title, source, "string", writing_class(source, a, b), example, a, b))
    return found


def measure_all():
    return [difference for peer in PEERS for difference in measure_reading(peer) + measure_writing(peer)]


def unknown(found):
    return [f"{d.peer}: {d.source} {d.example} to {d.target}: we {d.ours}, they {d.theirs}" for d in found if not d.why]


def short(text):
    return text if len(text) <= 30 else f"{text[:6]}...{text[-20:]}"


def page(found):
    lines = ["## Strings\n"]
    for peer in PEERS:
        lines.append(f"### {peer.title}\n")
        groups = {}
        for d in found:
            if d.peer == peer.title:
                groups.setdefault((d.why, d.source == "string"), {}).setdefault((d.source, d.target), []).append(d)
        for (why, _), by_pair in groups.items():
            rule, text = WHY[why]
            lines.append(f"**{rule}.** {text}\n")
            lines.append("| from | to | differ | examples: input, ours, theirs |\n|---|---|---|---|")
            for (source, target), rows in by_pair.items():
                shown = "; ".join(f"`{r.example}`: {short(r.ours)}, {short(r.theirs)}" for r in rows[:3])
                lines.append(f"| {source} | {target} | {len(rows)} | {shown} |")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"
