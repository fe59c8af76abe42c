# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG, inline so that they follow the page's colours: errors by the engine, times by bench/results.json."""

from __future__ import annotations

import functools
import json
import math
import statistics
from collections.abc import Sequence

from site_tools import engine

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
WEIGHTS = 1023  # quantiles of the normal distribution, so that the picture is the same each time
SIGMA = 0.02


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    inside = "".join(parts)
    return (
        f'<div class="picture"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-size="12"><title>{title}</title>{inside}</svg></div>\n'
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" stroke-opacity="0.2"/>'


def bars(title: str, axis: str, rows: Sequence[tuple[str, Sequence[tuple[float, str]]]], legend: Sequence[str]) -> str:
    """A row of horizontal bars for each name; each bar is a length and the words at its end."""
    left, width, thickness = 190, 860, 15
    largest = max(length for _, group in rows for length, _ in group)
    scale = (width - left - 210) / largest
    parts, y = [text(left, 18, axis)], 30.0
    for i, name in enumerate(legend):
        parts.append(f'<rect x="{left + 230 * i}" y="{y - 2}" width="11" height="11" fill="{COLOURS[i]}"/>')
        parts.append(text(left + 230 * i + 16, y + 8, name))
    y += 24
    for name, group in rows:
        parts.append(text(left - 8, y + len(group) * thickness / 2 + 4, name, "end"))
        for i, (length, words) in enumerate(group):
            parts.append(f'<rect x="{left}" y="{y:.1f}" width="{max(length, 0) * scale:.1f}" height="{thickness - 2}" fill="{COLOURS[i]}"/>')
            parts.append(text(left + max(length, 0) * scale + 5, y + thickness - 4, words))
            y += thickness
        y += 9
    return svg(width, int(y) + 6, title, parts)


def signal_to_noise(values: Sequence[float], dtype: str, scale: float) -> float:
    """Decibels: the engine's results against the exact sources."""
    options = ["--scale", repr(scale)]
    if dtype.startswith("int"):
        options += ["--rounding", "nearest_even", "--out-of-range", "saturate"]
    results = engine.explain([repr(v) for v in values], dtype, "--from", "float32", *options)
    signal = math.fsum(v * v for v in values)
    noise = math.fsum((float(r["exact_value"]) / scale - v) ** 2 for v, r in zip(values, results))
    return math.inf if noise == 0 else 10 * math.log10(signal / noise)


@functools.cache
def error_against_type() -> str:
    """Signal to noise of the same weights in every narrow type."""
    normal = statistics.NormalDist(0, SIGMA)
    values = [normal.inv_cdf(i / (WEIGHTS + 1)) for i in range(1, WEIGHTS + 1)]
    sources = engine.explain([repr(v) for v in values], "float32")
    values = [float(s["exact_value"]) for s in sources]
    largest = max(map(abs, values))
    rows = []
    for dtype in (*FLOATS, "int8", "int4"):
        plain = signal_to_noise(values, dtype, 1.0)
        top = 2.0 ** math.floor(math.log2(engine.types()[dtype]["largest"])) if dtype == "float16" else engine.types()[dtype]["largest"]
        scaled = signal_to_noise(values, dtype, top / largest)
        rows.append((dtype, [(plain, f"{plain:.1f} dB" if plain > 0.05 else "0 dB: all become zero"), (scaled, f"{scaled:.1f} dB")]))
    title = f"Signal to noise ratio of {WEIGHTS} weights of a normal distribution, sigma {SIGMA}, in nine types"
    axis = f"signal to noise, decibels: {WEIGHTS:,} weights, normal distribution, σ = {SIGMA}; longer is better"
    return bars(title, axis, rows, ["as they are", "scaled: the largest fills the type"])


@functools.cache
def precision_against_magnitude() -> str:
    """The digits that each type keeps of a number, by the number's power of two."""
    low, high, steps = -30, 20, 16
    left, top, width, height = 60, 40, 860, 420
    across, up = (width - left - 20) / (high - low), (height - top - 40) / 12
    parts = [text(left, 16, "correct binary digits of the worst number between 2^n and 2^(n+1), by n")]
    for n in range(low, high + 1, 5):
        parts += [line(left + (n - low) * across, top, left + (n - low) * across, height - 40), text(left + (n - low) * across, height - 24, str(n), "middle")]
    for digits in range(0, 13, 2):
        y = height - 40 - digits * up
        parts += [line(left, y, width - 20, y), text(left - 8, y + 4, str(digits), "end")]
    for k, dtype in enumerate(FLOATS):
        values = [math.ldexp(1 + i / steps + 1 / 97, n) for n in range(low, high) for i in range(steps)]
        results = engine.explain([repr(v) for v in values], dtype, "--saturate", "true")
        points = []
        for j, n in enumerate(range(low, high)):
            group = range(j * steps, (j + 1) * steps)
            worst = max(abs(float(results[i]["exact_value"]) - values[i]) / values[i] for i in group)
            kept = min(12.0, max(0.0, -math.log2(worst))) if worst else 12.0
            points.append(f"{left + (n - low + 0.5) * across:.1f},{height - 40 - kept * up:.1f}")
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"/>')
        parts.append(f'<rect x="{left + 115 * k}" y="24" width="10" height="10" fill="{COLOURS[k]}"/>' + text(left + 115 * k + 14, 33, dtype))
    return svg(width, height, "Digits kept against magnitude, for seven types", parts)


@functools.cache
def time_against_memcpy(most: str = "10") -> str:
    """At most so many casts in memory, beside the fastest of the others; the recorded run of scripts/bench."""
    results = json.loads((engine.ROOT / "bench/results.json").read_text())
    rows = []
    for row in results["peers"]["rows"]:
        pair = (row["from"], row["to"])
        others = [(peer["median"], name) for name, peer in row["peers"].items() if peer and name not in ("memcpy", "tensorcast")]
        ours = row["peers"]["tensorcast"]["median"]
        best, name = min(others)
        rows.append((f"{pair[0]} → {pair[1]}", [(1.0, "memcpy"), (ours, f"{ours:.2f}"), (best, f"{best:.2f} {name}")]))
    wanted = ("float32 → bfloat16", "float32 → float8_e4m3fn", "float8_e4m3fn → bfloat16", "int4 → float16", "float32 → float16",
              "float32 → float8_e5m2", "float16 → bfloat16", "float16 → float32", "float8_e4m3fn → float32", "float32 → int8")
    chosen = [row for row in rows if row[0] in wanted[: int(most)]]
    machine = results["machine"]
    mib = results["peers"]["mib"]
    axis = f"time over memcpy's time, {mib} MiB, one thread, {machine['cpu']}, {machine['target']}, {results['date']}; shorter is better"
    return bars("Time of casts over the time of memcpy", axis, chosen, ["memcpy", "tensorcast", "the fastest other library"])
