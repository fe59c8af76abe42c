# SPDX-License-Identifier: Apache-2.0
"""Where other implementations of Cast differ from ours: measures, classifies, and writes docs/differences.md.

    python differences.py             prints the page
    python differences.py --update    writes it; read the difference before you commit it

A difference that no class of difference_classes.py holds is a failure: of a peer's new version, or of ours.
"""

import argparse
import collections
import dataclasses
import importlib.metadata
import pathlib
import sys

import linear_differences
import numpy as np
import text_differences
from difference_classes import CLASSES, Pair
from difference_samples import codes_for
from peers import PEERS, NoCast, array_of, bits_of, codes_of

import tensorcast as tc

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "differences.md"
HEAD = """# Where other implementations differ

Written by `python/tests/differences.py`, which runs them: every code of every type of 16 bits or fewer, and the hard
and some random codes of the larger ones, between all types that both have. A test writes this page anew and compares;
a difference that no line below explains fails it. Rules are those of [semantics.md](semantics.md).

Implementations without options are compared under ours that come nearest: `saturate=False` for the float8 types
(`True` where they saturate), `round_mode="nearest"` for float8_e8m0fnu. OpenVINO is its reference evaluation.

[recipes.md](recipes.md#where-they-contradict-themselves-or-each-other) has the inputs on which tools that quantize to blocks
contradict themselves or each other.

"""


@dataclasses.dataclass
class Row:
    """The differences of one peer, class and target."""

    sources: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    count: int = 0
    example: tuple = ()


@dataclasses.dataclass
class Findings:
    peer: str
    version: str
    pairs: int = 0
    missing: int = 0
    elements: int = 0
    differing: int = 0
    rows: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(Row))  # by class index and target
    unknown: list = dataclasses.field(default_factory=list)


def version_of(peer):
    return ", ".join(f"{package} {importlib.metadata.version(package).split('+')[0]}" for package in peer.packages)


def compare(peer, source, target, options, codes):
    """A Pair of what differs. NoCast where the peer has no such conversion."""
    theirs = peer.cast(codes, source, target, options)
    ours = codes_of(tc.cast(array_of(codes, source), target, **options), target)
    wrong = np.flatnonzero(ours != theirs)
    return Pair(peer.title, source, target, options, codes[wrong], ours[wrong], theirs[wrong])


def shown(codes, name):
    """The first code and its value."""
    value = tc.cast(array_of(codes[:1], name), str, float_string="shortest")[0]
    return f"0x{int(codes[0]):0{(bits_of(name) + 3) // 4}X} ({value})"


def words(options):
    return ", ".join(f"{name}={value}" for name, value in options.items())


def brief_options(options, peer, target):
    if len(options) == len(peer.modes(target)):
        return "any" if len(options) > 1 else options[0]
    return "; ".join(options) or "-"


def sort_in(findings, pair):
    findings.differing += pair.size
    for number, kind in enumerate(CLASSES):
        if pair.size == 0:
            return
        mask = kind.mask(pair)
        held = pair.only(mask)
        pair = pair.only(~mask)
        if held.size == 0:
            continue
        row = findings.rows[number, held.target]
        row.count += held.size
        if held.source not in row.sources:
            row.sources.append(held.source)
        if held.options and words(held.options) not in row.options:
            row.options.append(words(held.options))
        if not row.example:
            row.example = (
                f"{held.source} {shown(held.codes, held.source)}",
                shown(held.ours, held.target),
                shown(held.theirs, held.target),
            )
    if pair.size:
        findings.unknown.append(
            f"{pair.peer}: {pair.source} {shown(pair.codes, pair.source)} to {pair.target} ({words(pair.options)}): "
            f"we {shown(pair.ours, pair.target)}, they {shown(pair.theirs, pair.target)}; {pair.size} such"
        )


def measure(peer, thorough=False):
    findings = Findings(peer.title, version_of(peer))
    for source in peer.types:
        codes = codes_for(source, thorough)
        for target in peer.types:
            if source == target:
                continue
            for options in peer.modes(target):
                try:
                    pair = compare(peer, source, target, options, codes)
                except NoCast:
                    findings.missing += 1
                    break
                findings.elements += codes.size
                sort_in(findings, pair)
            else:
                findings.pairs += 1
    return findings


def brief(names):
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def section(findings, peer):
    lines = [f"## {findings.peer}\n"]
    kinds = sorted({number for number, _ in findings.rows})
    for number in kinds:
        kind = CLASSES[number]
        lines.append(f"**{kind.rule}.** {kind.text}\n")
        if not kind.steady:
            continue
        rows = [
            [target, brief(row.sources), brief_options(row.options, peer, target), f"{row.count}", *row.example]
            for (owner, target), row in findings.rows.items()
            if owner == number
        ]
        lines.append(table(["to", "from", "options", "differ", "example", "ours", "theirs"], rows))
    if not kinds:
        lines.append("No difference.\n")
    return "\n".join(lines)


def page(measured, texts, linear):
    summary = [[f.peer, f.version, f"{f.pairs}", f"{f.missing}", f"{f.elements:,}".replace(",", " ")] for f in measured]
    parts = [
        HEAD + table(["implementation", "version", "pairs compared", "pairs it lacks", "elements compared"], summary),
        "Where a paragraph has no table, the elements and what they become differ from processor to processor.\n",
        *(section(findings, peer) for findings, peer in zip(measured, PEERS)),
        text_differences.page(texts),
        *map(linear_differences.page, linear),
    ]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    measured = [measure(peer) for peer in PEERS]
    texts = text_differences.measure_all()
    linear = linear_differences.measure_all()
    unknown = [line for findings in measured for line in findings.unknown] + text_differences.unknown(texts)
    unknown += [line for findings in linear for line in findings.unknown]
    text = page(measured, texts, linear)
    if arguments.update:
        PAGE.write_text(text)
    else:
        print(text)
    for line in unknown:
        print("not classified:", line, file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
