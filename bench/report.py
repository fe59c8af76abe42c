#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes bench/results.json of one run, and of that docs/benchmarks.md, its picture and README's table.

    bench/report.py FOLDER [OUT]    summarizes the run whose raw files are in FOLDER, and draws, below OUT if it is given
    bench/report.py                 draws again
    bench/report.py --peers FILE... takes "beside others" from these files of peers.py, a later run in parts, and draws
    bench/report.py --calls FILE    takes calls of few elements from what tensorcast_calls_bench printed, and draws
    bench/report.py --check         fails if the page or README does not show what bench/results.json has

Needs nothing but Python. Raw files have every pair of every run; bench/results.json has what the page shows.
"""

import datetime
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = "bench/results.json"

# The goals, as time over memcpy's time with 64 MiB or more.
PLAIN_MEAN, PLAIN_WORST = 0.78, 1.3
ANY, NARROW = "every other pair", "a source of 8 bits or fewer"
REPORTED = "float16 bfloat16 float8_e4m3fn float8_e5m2 int8"
QUANTIZED = r"(bfloat16|float16|float8_.*|int8|int4|float4_.*)"
# Per variant: what the group is, what a pair "from->to" of it looks like, and its goal. The first group that fits counts.
GROUPS = {
    "report": [
        (f"float32 to {REPORTED.replace(' ', ', ')}; {NARROW}", rf"float32->({REPORTED.replace(' ', '|')})", 2.5),
        ("float16 and bfloat16 to the same types", rf"b?float16->({REPORTED.replace(' ', '|')})", 4.0),
        (ANY, ".*", 8.0),
    ],
    "scale": [
        (f"float32, float16, bfloat16 to bfloat16, float16, float8, int8, int4, float4; {NARROW}", rf"(float32|b?float16)->{QUANTIZED}", 1.5),
        (ANY, ".*", 8.0),
    ],
}
GROUPS["strict"] = [(group, pattern, goal) for (group, pattern, _), goal in zip(GROUPS["scale"], (2.0, 8.0))]
SHOWN = {"report": "with a report", "scale": "scale 0.1", "strict": "strict, no element out of range"}

BUFFERS = {0: "aligned", 16: "malloc"}

README_CALLS = [("float32", "bfloat16"), ("float32", "float8_e4m3fn"), ("float16", "float32"), ("int8", "float32"), ("int64", "int32")]
README_PAIRS = [("float32", "bfloat16"), ("float32", "float8_e4m3fn"), ("float8_e4m3fn", "bfloat16"), ("int4", "float16")]


# Summarizing


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows, limit):
    worst = max(rows, key=lambda row: row["median"])
    return {
        "pairs": len(rows),
        "mean": mean(row["median"] for row in rows),
        "ns": mean(row["ns"] for row in rows),
        "worst": {key: worst[key] for key in ("from", "to", "median", "low", "high")},
        "limit": limit,
        "above": sum(row["median"] > limit for row in rows),
    }


def group_of(row, bits, variant):
    """The index of the first group in GROUPS[variant] that the pair belongs to."""
    if bits[row["from"]] <= 8:
        return 0
    pair = f"{row['from']}->{row['to']}"
    return next(i for i, (_, pattern, _) in enumerate(GROUPS[variant]) if re.fullmatch(pattern, pair))


def as_called(raw, results):
    """The runs from Python, named after their instruction sets: python, python-avx2."""
    runs = [raw[key] | {"machine": results["machine"]["cpu"]} for key in sorted(raw) if key.startswith("python")]
    return {"as_called": runs} if runs else {}


def summarize(folder):
    raw = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    runs = [document for document in raw.values() if "variant" in document]
    best_target = next(run["machine"]["target"] for run in runs if run["variant"] != "plain")
    if best_target in raw:  # as the other runs, on a machine without a better instruction set
        runs.remove(raw.pop(best_target))
    results = {"date": datetime.date.today().isoformat(), "machine": runs[0]["machine"], "rounds": runs[0]["rounds"]}
    results["machine"]["target"] = best_target
    results["plain"], results["groups"] = [], []
    for run in runs:
        settings = {key: run[key] for key in ("variant", "mib", "offset", "threads")} | {"target": run["machine"]["target"]}
        for copy in run["memcpy"]:
            rows = [row for row in run["rows"] if row["size"] == copy["size"]]
            settings = settings | {"size": copy["size"]}
            if run["variant"] == "plain":
                noise = {key: copy[key] for key in ("median", "low", "high")}
                results["plain"].append(settings | summary(rows, PLAIN_WORST) | {"memcpy": noise})
                # README's summary and the picture: the largest buffers, as malloc gives them.
                if is_usual(settings, best_target) and run["offset"] == 16 and run["mib"] >= results.get("pairs", run)["mib"]:
                    shown = [[row["from"], row["to"], *(row[key] for key in ("median", "low", "high"))] for row in rows]
                    results["pairs"] = {"mib": run["mib"], "types": list(run["bits"]), "rows": shown}
                continue
            for index, (group, _, goal) in enumerate(GROUPS[run["variant"]]):
                chosen = [row for row in rows if group_of(row, run["bits"], run["variant"]) == index]
                if chosen:
                    results["groups"].append(settings | {"group": group} | summary(chosen, goal))
    return rounded(results | {key: raw[key] for key in ("peers", "text") if key in raw} | as_called(raw, results))


def later_peers(paths):
    """One section of a run in parts, for a machine that is idle only for short times."""
    parts = [json.loads(pathlib.Path(path).read_text()) for path in paths]
    rows = [row for part in parts for row in part["rows"]]
    return rounded(parts[0] | {"rows": rows, "date": datetime.date.today().isoformat()})


def is_usual(row, target):
    """A run over pairs in memory that is neither of all cores nor of another target than this machine's best."""
    return row["size"] == "memory" and row["threads"] == 1 and row["target"] == target


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


# Drawing


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def spread(entry, digits=2):
    return f"{entry['median']:.{digits}f} ({entry['low']:.{digits}f}–{entry['high']:.{digits}f})"


def contest(entries, best, digits=2):
    """Cells of one row, the best bold: every one that looks as good as the best. None: has no such conversion."""
    shown = [f"{entry['median']:.{digits}f}" for entry in entries if entry]
    winner = best(shown, key=float, default=None)
    for entry in entries:
        if not entry:
            yield "–"
            continue
        mark = "\\*" if entry.get("differs") else ""
        bold = "**" if f"{entry['median']:.{digits}f}" == winner else ""
        yield bold + spread(entry, digits) + bold + mark


def pair_and(row):
    return f"{spread(row)}, {row['from']} → {row['to']}"


def plain_section(results):
    counts = {"call": "100 elements", "l1": "4 Ki elements", "l2": "16 Ki elements"}

    def place(row):
        size = counts.get(row["size"], f"{row['mib']} MiB")
        if row["size"] == "call":
            size += f", {row['ns']:.0f} ns a call"
        if row["threads"] != 1:
            size += ", all cores (memcpy: one)"
        return size + (f", {row['target']}" if row["target"] != results["machine"]["target"] else "")

    def order(row):
        others = row["threads"] != 1, row["target"] != results["machine"]["target"]
        return (*others, list(counts).index(row["size"]) if row["size"] in counts else 3, row["mib"], row["offset"] == 0)

    rows = [
        (place(row), BUFFERS[row["offset"]], f"{row['mean']:.2f}", pair_and(row["worst"]), row["above"], spread(row["memcpy"]))
        for row in sorted(results["plain"], key=order)
    ]
    heading = ["source and target together", "buffers", "mean", "worst pair", f"pairs above {PLAIN_WORST}", "memcpy against itself"]
    return f"""## All {len(results["pairs"]["rows"])} pairs

{table(heading, rows)}

malloc puts large buffers 16 bytes after the start of a page; aligned buffers start at a page. Up to 12 MiB, a part or all
is in the caches. The picture shows {results["pairs"]["mib"]} MiB in buffers as malloc gives them, one thread.

![Time over memcpy's time, every pair](benchmarks/pairs.svg)
"""


def goals_section(results):
    largest = results["pairs"]["mib"]
    plain = [row for row in results["plain"] if is_usual(row, results["machine"]["target"]) and row["mib"] == largest]
    rows = [
        (f"plain, {BUFFERS[row['offset']]}", f"every pair; the mean at most {PLAIN_MEAN}", row)
        for row in sorted(plain, key=lambda row: -row["offset"])
    ]
    rows += [(SHOWN[row["variant"]], row["group"], row) for row in results["groups"]]
    lines = [
        (cast, group, row["pairs"], f"{row['mean']:.2f}", pair_and(row["worst"]), f"{row['limit']:.1f}", row["above"])
        for cast, group, row in rows
    ]
    return f"""## Goals

One thread, {largest} MiB, buffers as malloc gives them unless a row says aligned. The goals are for 64 MiB and more.

{table(["cast", "from and to", "pairs", "mean", "worst pair", "goal", "pairs above the goal"], lines)}
"""


def peers_section(peers):
    names = ["tensorcast", *peers["versions"]]
    rows = [(row["from"], row["to"], *contest([row["peers"].get(name) for name in names], min)) for row in peers["rows"]]
    versions = ", ".join(f"{name} {version}" for name, version in peers["versions"].items())
    later = f"Of {peers['date']}, {peers['rounds']} times. " if "date" in peers else ""
    ours = [row["peers"]["tensorcast"]["median"] for row in peers["rows"]]
    bests = [min((entry["median"] for name, entry in row["peers"].items() if name in peers["versions"]), default=math.inf) for row in peers["rows"]]
    behind = [f"{row['from']} to {row['to']}" for row, own, best in zip(peers["rows"], ours, bests) if own > 1.05 * best]
    return f"""## Beside others

{later}{peers["mib"]} MiB of source and target, one thread each, the same memory, allocation excluded.
{versions}.
\\*: differs from tensorcast on some of 65,536 inputs; [differences.md](differences.md) says where and why.
–: does not have the conversion, or not on packed elements.

tensorcast: a mean of {mean(ours):.2f} over {len(ours)} pairs; more than 5 % behind another: {", ".join(behind) or "none"}.

{table(["from", "to", *names], rows)}
"""


def text_section(rows):
    lines = [
        (row["work"], row["numbers"], row["dtype"], *contest([row["tensorcast"], row.get("standard library")], max, 1))
        for row in rows
    ]
    return f"""## Text

One thread, millions of elements a second; more is better. Weights are numbers around 0.05, large numbers around a million.

{table(["work", "numbers", "dtype", "tensorcast", "`std::to_chars`, `std::from_chars`"], lines)}
"""


# The pairs that the figures of "as a user calls it" are about.
USUAL_PAIRS = [("float32", to) for to in "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64 bool".split()]
USUAL_PAIRS += [(source, "float32") for source in "float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int32 int64".split()]
USUAL_PAIRS += [tuple(pair.split(">")) for pair in "float16>bfloat16 bfloat16>float16 int64>int32 int32>int64 float8_e4m3fn>bfloat16 bfloat16>float8_e4m3fn".split()]
IN_PROCESS = ("NumPy + ml_dtypes", "PyTorch")


def usual_ratios(run, ours):
    """Of the usual pairs, our time over that of the better of NumPy and PyTorch."""
    by_pair = {(row["from"], row["to"]): row["times"] for row in run["rows"]}
    for pair in USUAL_PAIRS:
        times = by_pair[pair]
        yield pair, times[ours]["median"] / min(times[name]["median"] for name in IN_PROCESS if name in times)


def as_called_section(runs):
    """What comes first: new results, the threads that each uses by default."""
    parts = ["## As a user calls it\n\nFrom Python: each call makes a new result and uses the threads that it uses by default. Milliseconds for "
             f"{runs[0]['count'] / 2**20:g} Mi elements;\n\"without its pool\" is a call whose result gets no memory of an earlier one, as the first of a process. "
             "The better of\nNumPy with ml_dtypes and PyTorch is what the means are against. ONNX Runtime's results have memory of its arena."]  # fmt: skip
    for run in runs:
        names = run["contestants"]
        lines = []
        for ours in names[:2]:
            ratios = dict(usual_ratios(run, ours))
            above = [f"{source} to {to} {ratio:.2f}" for (source, to), ratio in sorted(ratios.items(), key=lambda item: -item[1]) if ratio > 1.05]
            lines.append(f"* {ours}: a mean of {mean(ratios.values()):.2f} over {len(ratios)} usual pairs; above 1.05: {', '.join(above) or 'none'}")
        rows = [(row["from"], row["to"], *contest([row["times"].get(name) for name in names], min, 1)) for row in run["rows"]]
        facts = f"{run['machine']}, {run['cores']} cores, {run['target']}, {run['date']}"
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        parts.append("\n".join([f"### {facts}", "", f"{versions}.", "", *lines, "", table(["from", "to", *names], rows)]))
    return "\n\n".join(parts) + "\n"


def other_machines(target):
    """A line on the pages of earlier runs that are kept because their machines had other instruction sets."""
    pages = sorted((ROOT / "docs/benchmarks").glob("*.md"))  # those of other measurements have no such title
    kept = [page.stem for page in pages if page.stem != target and page.read_text().startswith("# Benchmarks of ")]
    links = ", ".join(f"[{name}](benchmarks/{name}.md)" for name in kept)
    return f"\nEarlier runs, of machines with other instruction sets: {links}.\n" if kept else ""


def page(results):
    machine = results["machine"]
    compiler = ("GCC " if machine["compiler"][0].isdigit() else "") + machine["compiler"]
    parts = [
        f"""# Benchmarks

Written by `scripts/bench` on {results["date"]}, all of one run unless a section says otherwise: {machine["cpu"]}, {machine["cores"]} cores, {machine["target"]}, {compiler};
transparent huge pages: {machine["huge_pages"]}.

Unless a section says otherwise, a figure is a time over the time of a `memcpy` that reads and writes as many bytes; below
1 is faster. Both are measured in turns, {results["rounds"]} times for each row of this page. A row shows the median, the lowest and
the highest of these ratios. Means are geometric means of medians. The best of a row is bold.
{other_machines(machine["target"])}""",
        *([as_called_section(results["as_called"])] if "as_called" in results else []),
        goals_section(results),
        plain_section(results),
    ]
    sections = {"peers": peers_section, "text": text_section}
    return "\n".join([*parts, *(draw(results[key]) for key, draw in sections.items() if key in results)])


def picture(results):
    """A heat map as SVG."""
    types, width, height, left, top = results["pairs"]["types"], 34, 18, 110, 110

    def color(ratio):
        hue = 120 * min(max((1.3 - ratio) / 0.6, 0.0), 1.0)  # green at 0.7, red at 1.3
        return f"hsl({hue:.0f},70%,75%)"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width * len(types)}" height="{top + height * len(types)}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, name in enumerate(types):
        x, y = left + width * (i + 0.65), top + height * (i + 0.7)
        lines.append(f'<text x="{left - 4}" y="{y:.0f}" text-anchor="end">{name}</text>')
        lines.append(f'<text transform="translate({x:.0f},{top - 4}) rotate(-90)">{name}</text>')
    for source, target, median, _, _ in results["pairs"]["rows"]:
        x, y = left + width * types.index(target), top + height * types.index(source)
        lines.append(f'<path fill="{color(median)}" d="M{x} {y}h{width}v{height}h-{width}"/><text x="{x + 6}" y="{y + 13}">{median:.2f}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def as_called_table(results):
    """README's first table: what a user meets, and who is faster."""
    if "as_called" not in results:
        return ""
    run = results["as_called"][0]
    by_pair = {(row["from"], row["to"]): row["times"] for row in run["rows"]}
    ours, rivals = run["contestants"][:2], run["contestants"][2:]
    rows = []
    for pair in README_CALLS:
        if pair not in by_pair:
            continue
        times = by_pair[pair]
        best = min((name for name in rivals if name in times), key=lambda name: times[name]["median"])
        cells = list(contest([times[ours[0]], times[ours[1]], times[best]], min, 1))
        rows.append((f"{pair[0]} to {pair[1]}", *cells[:2], f"{cells[2]}, {best}"))
    means = [mean(dict(usual_ratios(run, name)).values()) for name in ours]
    return f"""{table([f"from Python, {run['count'] / 2**20:g} Mi elements, ms", "in a loop", "first call", "best rival in a loop"], rows)}

New results on all cores, {run["machine"]}, {run["target"]}, {run["date"]}. Over {len(USUAL_PAIRS)} usual pairs, a mean of {means[0]:.2f} of the time of the better
of NumPy with ml_dtypes and PyTorch, of the first call {means[1]:.2f}.

"""


SHOWN_CALLS = ["PreparedCast", "cast", "tc_cast", "a loop by hand", "memcpy of the source"]


def calls_of(text, machine, date):
    """What tensorcast_calls_bench printed of float32 to bfloat16: nanoseconds of a call by the number of elements."""
    lines = text.split("| float32 to bfloat16, ns a call |")[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip(" |").split("|")] for line in lines]
    rows = {row[0]: [float(cell) for cell in row[1:]] for row in cells[2:] if row[0] in SHOWN_CALLS}
    return {"machine": machine, "target": text.split()[1], "date": date, "counts": [int(cell) for cell in cells[0]], "rows": rows}


def calls_table(results):
    """README's table of calls of few elements."""
    if "calls" not in results:
        return ""
    run = results["calls"]
    rows = [(name, *(f"{nanoseconds:.1f}" for nanoseconds in run["rows"][name])) for name in SHOWN_CALLS]
    return f"""{table(["float32 → bfloat16, ns a call", *(f"{count:,}" for count in run["counts"])], rows)}

Calls of few elements from C++ and C: {run["machine"]}, {run["target"]}, {run["date"]}.

"""


def readme_table(results):
    by_pair = {(row["from"], row["to"]): row["peers"] for row in results.get("peers", {"rows": []})["rows"]}
    rows = []
    for pair in README_PAIRS:
        if pair not in by_pair:
            continue
        ours = by_pair[pair]["tensorcast"]
        rivals = {name: by_pair[pair][name] for name in results["peers"]["versions"] if name in by_pair[pair]}
        best = min(rivals, key=lambda name: rivals[name]["median"], default=None)
        cells = list(contest([ours, rivals.get(best)], min))
        rows.append((f"{pair[0]} → {pair[1]}", f"{ours['gigabytes_per_second']:.1f}", cells[0], f"{cells[1]}, {best}" if best else "–"))
    pairs = results["pairs"]
    worst = max(pairs["rows"], key=lambda row: row[2])
    worst = dict(zip(("from", "to", "median", "low", "high"), worst))
    machine = results["machine"]
    mib = results["peers"]["mib"] if rows else pairs["mib"]
    later = f", the table of pairs {results['peers']['date']}" if "date" in results.get("peers", {}) else ""
    return f"""{as_called_table(results)}{calls_table(results)}{table([f"one thread, {mib} MiB", "GB/s", "time / memcpy's", "best rival's time / memcpy's"], rows)}

All {len(pairs["rows"])} pairs with {pairs["mib"]} MiB: a mean of {mean(row[2] for row in pairs["rows"]):.2f} of memcpy's time, at worst {pair_and(worst)}. In brackets the lowest and the
highest of {results["rounds"]} measurements. {machine["cpu"]}, {machine["target"]}, {results["date"]}{later}; [everything measured](docs/benchmarks.md).
"""


def files(results):
    """What is drawn: the text of each file."""
    begin, end = "<!-- measured: begin", "<!-- measured: end -->"
    before, rest = (ROOT / "README.md").read_text().split(begin)
    comment, rest = rest.split("\n", 1)
    return {
        "docs/benchmarks.md": page(results),
        "docs/benchmarks/pairs.svg": picture(results),
        "README.md": f"{before}{begin}{comment}\n{readme_table(results)}{end}{rest.split(end)[1]}",
    }


def stale_files():
    drawn = files(json.loads((ROOT / RESULTS).read_text()))
    return [name for name, text in drawn.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]


def main():
    arguments = sys.argv[1:]
    if arguments == ["--check"]:
        stale = ", ".join(stale_files())
        sys.exit(f"not what {RESULTS} has: {stale}; run scripts/bench --draw" if stale else 0)
    later = {}
    if arguments[:1] == ["--peers"]:
        later = {"peers": later_peers(arguments[1:])}
    elif arguments[:1] == ["--calls"]:
        cpu = next(line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
        later = {"calls": calls_of(pathlib.Path(arguments[1]).read_text(), cpu, datetime.date.today().isoformat())}
    out = pathlib.Path(arguments[1]) if len(arguments) > 1 and not later else ROOT
    if later:
        results = json.loads((ROOT / RESULTS).read_text()) | later
        (ROOT / RESULTS).write_text(json.dumps(results, indent=0) + "\n")
    elif arguments:
        (out / RESULTS).parent.mkdir(parents=True, exist_ok=True)
        (out / RESULTS).write_text(json.dumps(summarize(pathlib.Path(arguments[0])), indent=0) + "\n")
    for name, text in files(json.loads((out / RESULTS).read_text())).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)


if __name__ == "__main__":
    main()
