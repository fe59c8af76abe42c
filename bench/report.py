"""Draws docs/benchmarks.md and its pictures, and README's table, from bench/results/*.json.

usage: report.py [DATE]
"""

import datetime
import json
import math
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "bench/results", ROOT / "docs"
PICTURES = DOCS / "benchmarks"
TYPES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
    "float4_e2m1fn int64 int32 int16 int8 int4 int2 uint64 uint32 uint16 uint8 uint4 uint2 bool"
).split()
README_PAIRS = [
    ("float32", "bfloat16"),
    ("float32", "float8_e4m3fn"),
    ("float8_e4m3fn", "bfloat16"),
    ("int4", "float16"),
]

SHOWN = [*README_PAIRS, ("float32", "float16"), ("bfloat16", "float8_e4m3fn"), ("float32", "int8")]


def load(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def conversions(document, size="memory"):
    return {
        (row["from"], row["to"]): row
        for row in document["rows"]
        if row["size"] == size and row["path"] != "memcpy" and row["from"] != row["to"]
    }


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def save(figure, name):
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=110, bbox_inches="tight")
    plt.close(figure)


def heat_map(ratios, title, name):
    grid = [[ratios.get((a, b), {}).get("times_memcpy", math.nan) for b in TYPES] for a in TYPES]
    figure, axes = plt.subplots(figsize=(12, 10))
    image = axes.imshow(grid, cmap="RdYlGn_r", vmin=0.5, vmax=1.5)
    axes.set_xticks(range(len(TYPES)), TYPES, rotation=90)
    axes.set_yticks(range(len(TYPES)), TYPES)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    for y, line in enumerate(grid):
        for x, value in enumerate(line):
            if not math.isnan(value):
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=6)
    axes.set_title(title)
    figure.colorbar(image, shrink=0.7, label="time / memcpy's time")
    save(figure, name)


def bars(peers):
    rows = [row for row in peers["rows"] if "times_memcpy" in row["peers"]["tensorcast"]]
    rows = [row for row in rows if any(name in row["peers"] for name in peers["peers"])]
    chosen = rows if len(rows) <= 24 else [row for row in rows if (row["from"], row["to"]) in SHOWN] or rows[:24]
    names = ["tensorcast", *peers["peers"]]
    figure, axes = plt.subplots(figsize=(11, 0.5 * len(chosen) + 2))
    height = 0.8 / len(names)
    for index, name in enumerate(names):
        values = [row["peers"].get(name, {}).get("times_memcpy", 0) for row in chosen]
        places = [place + index * height for place in range(len(chosen))]
        axes.barh(places, values, height, label=name)
    axes.set_yticks([place + 0.4 for place in range(len(chosen))], [f"{r['from']} → {r['to']}" for r in chosen])
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time / memcpy's time of as many bytes (no bar: has no such conversion)")
    axes.invert_yaxis()
    axes.legend()
    save(figure, "peers")


def curves(document):
    figure, axes = plt.subplots(figsize=(9, 5))
    for curve in document["curves"]:
        points = curve["points"]
        label = f"{curve['from']} → {curve['to']}"
        axes.plot([p["bytes"] for p in points], [p["bytes"] / p["ns"] for p in points], marker="o", label=label)
    points = max((curve["points"] for curve in document["curves"]), key=len)
    axes.plot([p["bytes"] for p in points], [p["bytes"] / p["memcpy_ns"] for p in points], "k--", label="memcpy")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes read and written")
    axes.set_ylabel("GB/s")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, "curve")


def summary(name, title):
    document = load(name)
    if document is None:
        return []
    ratios = {pair: row["times_memcpy"] for pair, row in conversions(document).items()}
    worst = max(ratios, key=ratios.get)
    return [
        (
            title,
            f"{mean(ratios.values()):.2f}",
            sum(ratio > 1.15 for ratio in ratios.values()),
            f"{ratios[worst]:.2f} ({worst[0]} → {worst[1]})",
        )
    ]


def peer_cell(entry):
    if "times_memcpy" not in entry:
        return "–"
    return f"{entry['times_memcpy']:.2f}" + ("\\*" if entry.get("differs") else "")


def peer_table(names, rows):
    cells = [
        (row["from"], row["to"], f"**{row['peers']['tensorcast']['times_memcpy']:.2f}**")
        + tuple(peer_cell(row["peers"].get(name, {})) for name in names)
        for row in rows
    ]
    return table(["from", "to", "tensorcast", *names], cells)


def difference_table(names, rows):
    cells = [
        (name, row["from"], row["to"], entry["differs"]["codes"], *(f"`{entry['differs'][k]}`" for k in ("input", "ours", "theirs")))
        for name in names
        for row in rows
        if (entry := row["peers"].get(name, {})).get("differs")
    ]
    return table(["peer", "from", "to", "inputs", "input", "ours", "theirs"], cells)


def peer_summary(names, rows):
    """Per peer: how many pairs it has, how its time compares, how often it is faster, how often its results differ."""
    lines = []
    for name in names:
        both = [(row["peers"][name], row["peers"]["tensorcast"]) for row in rows if "times_memcpy" in row["peers"].get(name, {})]
        if not both:
            continue
        ratios = [theirs["times_memcpy"] / ours["times_memcpy"] for theirs, ours in both]
        faster, differ = sum(ratio < 0.9 for ratio in ratios), sum(bool(theirs.get("differs")) for theirs, _ in both)
        lines.append((name, len(both), f"{mean(ratios):.1f}", f"{max(ratios):.0f}", faster, differ))
    return table(["peer", "pairs", "its time / ours, geometric mean", "most", "pairs more than 10 % faster than ours", "pairs with other results"], lines)


FACTS = """One thread each, the same memory, allocation excluded, in turns; time over memcpy's time. {versions}.
A star: on some of 65,536 inputs the result is another one. –: has no such conversion, or not on packed elements."""
FIRST_DIFFERENCES = """The first of 65,536 inputs that shows it, and on how many it does. [semantics.md]({docs}semantics.md) says why ours is ours,
[differences.md]({docs}differences.md) which rule decides."""


def peers_section(peers):
    names, rows = list(peers["peers"]), peers["rows"]
    usual = [row for row in rows if row.get("usual", True)]
    better = [
        f"{name} on {row['from']} → {row['to']} ({entry['times_memcpy']:.2f} against "
        f"{row['peers']['tensorcast']['times_memcpy']:.2f})"
        for row in usual
        for name in names
        if "times_memcpy" in (entry := row["peers"].get(name, {}))
        and entry["times_memcpy"] < 0.9 * row["peers"]["tensorcast"]["times_memcpy"]
    ]
    facts = FACTS.format(versions=", ".join(f"{name} {version}" for name, version in peers["peers"].items()))
    (PICTURES / "peers.md").write_text(f"""# Every pair beside others

Written by `scripts/bench`. {facts} [Where results differ](peers-differences.md).

{peer_table(names, rows)}
""")
    (PICTURES / "peers-differences.md").write_text(f"""# Where others' results differ

Written by `scripts/bench`. {FIRST_DIFFERENCES.format(docs="../")}

{difference_table(names, rows)}
""")
    return f"""## Beside others

{facts}

![Bars: time over memcpy's time, tensorcast and its peers](benchmarks/peers.png)

Over all {len(rows)} pairs that were measured ([each of them](benchmarks/peers.md)):

{peer_summary(names, rows)}

The usual pairs:

{peer_table(names, usual)}

More than 10 % faster than tensorcast on these: {"; ".join(better) if better else "none"}.

### Where results differ on the usual pairs

{FIRST_DIFFERENCES.format(docs="")}

{difference_table(names, usual)}
"""


def options_section(options):
    measured = [option for option in options["options"] if option]
    rows = [
        (
            o["option"],
            f"{o['mean']:.2f}",
            f"{o['nine_of_ten']:.2f}",
            f"{o['goal']:.1f}",
            f"{o['within_goal']} of {o['pairs']}",
            ", ".join(f"{row['from']} → {row['to']} {row['ratio']:.2f}" for row in o["worst_pairs"]),
        )
        for o in measured
    ]
    return f"""## What options cost

Time over the time with default options, {options["bytes"] >> 20} MiB, one thread. Pairs above the goal are measured again on five buffers, and
the median stands.

{table(["option", "geometric mean", "nine of ten below", "goal", "pairs within the goal", "worst pairs"], rows)}
"""


def placement_section(curve):
    keys = [key for key in curve["placement"][0] if key not in ("from", "to")]
    rows = [(row["from"], row["to"], *(f"{row[key]:.2f}" for key in keys)) for row in curve["placement"] if row]
    return f"""## From 64 elements to gigabytes

![Curve: GB/s over the number of bytes](benchmarks/curve.png)

Unaligned memory and odd counts, 64 MiB, time over that of the aligned and whole, median of 25 turns:

{table(["from", "to", *keys], rows)}
"""


def strings_section(rows):
    def million(ns):
        return f"{1e3 / ns:.1f}" if ns else "–"

    lines = [
        (row["work"], row["numbers"], row["dtype"], million(row["ns_per_element"]), million(row["standard_ns_per_element"]))
        for row in rows
    ]
    heading = ["work", "numbers", "dtype", "million elements/s", "`std::from_chars`, `std::to_chars`"]
    return f"## Text\n\nOne thread, a million elements.\n\n{table(heading, lines)}\n"


def readme_table(cast, peers, date):
    ours = conversions(cast)
    by_pair = {(row["from"], row["to"]): row["peers"] for row in peers["rows"]} if peers else {}
    copy = next(row for row in cast["rows"] if row["path"] == "memcpy" and row["size"] == "memory")
    rows = [("memcpy", f"{copy['gigabytes_per_second']:.1f}", "1.00", "")]
    for pair in README_PAIRS:
        row = ours[pair]
        rivals = {
            name: entry["times_memcpy"]
            for name, entry in by_pair.get(pair, {}).items()
            if name not in ("memcpy", "tensorcast") and "times_memcpy" in entry
        }
        best = min(rivals, key=rivals.get, default=None)
        rival = f"{rivals[best]:.2f} ({best})" if best else ""
        rows.append((f"{pair[0]} → {pair[1]}", f"{row['gigabytes_per_second']:.1f}", f"{row['times_memcpy']:.2f}", rival))
    ratios = [row["times_memcpy"] for row in ours.values()]
    text = table(["one thread, 128 MiB", "GB/s", "time / memcpy", "best rival's time / memcpy"], rows)
    return f"""{text}

All {len(ratios)} pairs: mean {mean(ratios):.2f}, worst {max(ratios):.2f} of memcpy's time. {cast["cpu"]}, {cast["target"]}, {date}; [everything measured](docs/benchmarks.md).
"""


def main():
    date = sys.argv[1] if len(sys.argv) > 1 else datetime.date.today().isoformat()
    cast, peers, curve = load("cast"), load("peers"), load("curve")
    heat_map(conversions(cast), f"tc_cast, one thread, memory: time over memcpy's time ({cast['cpu']}, {cast['target']})", "pairs")
    overall = [
        *summary("cast", f"one thread, {cast['target']}"),
        *summary("cast_huge_pages", f"one thread, {cast['target']}, huge pages"),
        *summary("cast_all_threads", "all cores (memcpy: one)"),
        *summary("cast_avx2", "one thread, avx2"),
        *summary("cast_portable", "one thread, portable"),
    ]
    kernels = load("kernels")
    slowest = sorted(conversions(kernels, "l2").values(), key=lambda row: row["elements_per_ns"])[:8] if kernels else []
    parts = [
        f"""# Benchmarks

Written by `scripts/bench` on {date}: {cast["cpu"]}, {cast["cores"]} cores, compiled by
{"GCC " if cast["compiler"][0].isdigit() else ""}{cast["compiler"]}. Every figure is a ratio
to `memcpy` of as many bytes, measured in turns with it; raw results are in [bench/results](../bench/results).
Other work on the machine makes some pair look slow in every run: those above 1.15 are measured three times, and the
median stands.

## All pairs

![Heat map of all pairs](benchmarks/pairs.png)

{table(["source and target together 128 MiB", "geometric mean", "pairs above 1.15", "worst"], overall)}

Pages have 4 KiB, as `malloc` gives them, or 2 MiB, as NumPy asks for; in these, memcpy itself is a third faster.
"""
    ]
    if slowest:
        rows = [(row["from"], row["to"], f"{row['elements_per_ns']:.1f}", row["algorithm"]) for row in slowest]
        parts.append(f"Slowest kernels in the second-level cache (16 Ki elements):\n\n{table(['from', 'to', 'elements/ns', 'algorithm'], rows)}\n")
    if peers:
        bars(peers)
        parts.append(peers_section(peers))
    if options := load("options"):
        parts.append(options_section(options))
    if curve:
        curves(curve)
        parts.append(placement_section(curve))
    if strings := load("strings"):
        parts.append(strings_section(strings))
    if python := load("python"):
        parts.append(python_section(python))
    (DOCS / "benchmarks.md").write_text("\n".join(parts))

    readme = ROOT / "README.md"
    text = readme.read_text()
    new = readme_table(cast, peers, date)
    text = re.sub(r"(<!-- measured: begin.*?-->\n).*?(<!-- measured: end -->)", lambda m: m[1] + new + m[2], text, flags=re.S)
    readme.write_text(text)


def python_section(python):
    names = list(python["peers"])
    rows = [
        (row["from"], row["to"], f"**{row['times']['tensorcast']:.1f}**", *(f"{row['times'][n]:.1f}" if n in row["times"] else "–" for n in names))
        for row in python["rows"]
    ]
    return f"""## From Python

Milliseconds for {python["count"] >> 20} Mi elements, each allocates its results and uses the threads that it uses by default.

{table(["from", "to", "tensorcast", *names], rows)}
"""


if __name__ == "__main__":
    main()
