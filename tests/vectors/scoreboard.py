# SPDX-License-Identifier: Apache-2.0
"""Runs other implementations on the corpus and writes docs/scoreboard.md: python scoreboard.py CORPUS PAGE [TITLE...].

Only cases that an implementation claims to have count: its types, and the options that it has or cannot but have.
"""

import collections
import datetime
import pathlib
import sys

import implementations
from number_types import INFINITY, NAN, TYPES, is_float, nearest_even, value

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "vectors"))
import run_vectors

PAGE = """# Scoreboard: other implementations on the number vectors

[`scripts/vectors --scoreboard`](../scripts/vectors) wrote this page: each implementation, as pip installs its newest version,
on the casts of [the corpus](vectors.md), version {version}, on {machine} ({date}).
Only the cases of what an implementation has count: its types, and the options that it has or cannot but have; an implementation
that cannot saturate runs the cases with `saturate=false`. A failure is another code than the expected one. It is no verdict: where texts leave a result open,
[semantics.md](semantics.md) says why it is as it is here, and [differences.md](differences.md) compares all codes.

| implementation | versions | pairs of types | cases | passed | failed |
|---|---|---|---|---|---|
{summary}

Not counted: what a float beyond an integer type becomes, where the implementation leaves it undefined, and types that are
not in the table of an implementation. Of gfloat any NaN counts as the expected one. An element that is refused is a failure.
"""

REASONS = {
    "NaN code": "NaN becomes another NaN: its sign or payload differs",
    "NaN": "NaN becomes a number, or another number",
    "infinity": "infinity",
    "negative": "a negative number to a type without sign",
    "out of range": "a number beyond the largest or below the smallest",
    "rounded twice": "rounded to float32, or to float16, first",
    "zero": "zero, or its sign",
    "subnormal": "a subnormal number of the source or the target",
    "tie": "a midpoint",
    "refused": "the implementation refuses the element",
    "other": "other numbers",
}


def is_nan(name, code):
    return is_float(name) and value(name, code)[1] == NAN


def is_rounded_twice(case):
    source, target, code, result = case.source, case.target, case.code, case.result
    x = value(source, code)[1]
    if not is_float(target) or x in (NAN, INFINITY) or target == "float8_e8m0fnu":
        return False
    made = value(target, result)[1]
    between = ("float32", "float16") if TYPES[target].bits <= 8 else ("float32",)
    twice = [nearest_even(target, nearest_even(name, x)) for name in between]
    return made != nearest_even(target, x) and made in twice


Case = collections.namedtuple("Case", "source code target options expected tags result")


def reason(case):
    """Why a case failed: the first that holds, by its tags and by what came out."""
    tags = case.tags.split(",")
    if case.result is None:
        return "refused"
    if is_nan(case.target, case.expected) and is_nan(case.target, case.result):
        return "NaN code"
    if "nan" in tags:
        return "NaN"
    if is_rounded_twice(case):
        return "rounded twice"
    if is_float(case.target) and not TYPES[case.target].signed and value(case.source, case.code)[0] and "zero" not in tags:
        return "negative"
    if "infinity" in tags:
        return "infinity"
    if "overflow" in tags:
        return "out of range"
    if "zero" in tags:
        return "zero"
    for tag in ("tie", "subnormal", "source-subnormal"):
        if tag in tags:
            return tag.removeprefix("source-")
    return "out of range" if "underflow" in tags else "other"


def is_undefined(source, target, tags):
    return is_float(source) and not is_float(target) and target != "bool" and {"overflow", NAN, INFINITY} & set(tags.split(","))


def run(implementation, groups):
    """(cases, failures) of each group that the implementation has."""
    for (source, target, options), cases in groups.items():
        if implementation.undefined_integers:
            cases = [case for case in cases if not is_undefined(source, target, case[2])]
        if not cases:
            continue
        words = run_vectors.dictionary(options)
        results = implementation.convert(source, [code for code, _, _ in cases], target, words)
        if results is None:
            continue
        made = [Case(source, code, target, options, expected, tags, result) for (code, expected, tags), result in zip(cases, results)]
        failed = [case for case in made if case.result != case.expected]
        yield (source, target), made, [case for case in failed if not (implementation.any_nan and reason(case) == "NaN code")]


def shown(case):
    """One failure as a line of a table."""
    digits = (TYPES[case.target].bits + 3) // 4
    result = "refused" if case.result is None else f"0x{case.result:0{digits}x}"
    return f"{case.source} 0x{case.code:x} | {case.target}, {case.options} | 0x{case.expected:0{digits}x} | {result}"


def section(implementation, failures):
    lines = [f"## {implementation.title}", ""]
    if not failures:
        return [*lines, "Every case passes.", ""]
    lines += ["| what fails | cases | targets | for example | to | expected | result |", "|---|---|---|---|---|---|---|"]
    by_reason = collections.defaultdict(list)
    for case in failures:
        by_reason[reason(case)].append(case)
    for name, text in REASONS.items():
        found = by_reason.get(name, [])
        if found:
            names = [target for target in TYPES if any(case.target == target for case in found)]
            targets = ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"
            lines.append(f"| {text} | {len(found):,} | {targets} | {shown(found[0])} |")
    return [*lines, ""]


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return "an " + line.split(":")[1].strip()
    return "this machine"


def main():
    corpus, page, *titles = sys.argv[1:]
    groups = collections.defaultdict(list)
    for path in sorted(pathlib.Path(corpus, "casts").glob("*.tsv")):
        for source, target, options, *case in run_vectors.read_cases(path):
            if "stochastic" not in options:
                groups[source, target, options].append(case)
    summary, sections = [], []
    for implementation in implementations.ALL:
        if titles and implementation.title not in titles:
            continue
        pairs, count, failures = set(), 0, []
        for pair, made, failed in run(implementation, groups):
            pairs.add(pair)
            count += len(made)
            failures += failed
        row = [implementation.title, implementation.version(), len(pairs), f"{count:,}", f"{count - len(failures):,}"]
        summary.append("| " + " | ".join(map(str, [*row, f"{len(failures):,}"])) + " |")
        print(summary[-1], flush=True)
        sections += section(implementation, failures)
    first = pathlib.Path(corpus, "casts", "float32.tsv").read_text().splitlines()[0]
    text = PAGE.format(version=first.rsplit(" ", 1)[1], machine=machine(), date=datetime.date.today(), summary="\n".join(summary))
    pathlib.Path(page).write_text(text + "\n" + "\n".join(sections).rstrip() + "\n")


if __name__ == "__main__":
    main()
