# SPDX-License-Identifier: Apache-2.0
"""A new flag of the command or number of a report is named where users look: CHANGELOG.md, and command.md or guide.md.

interface.txt has those that were there when this was written, or that a release has published; not all are in the pages.
"""

import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).parent


def flags(tcast, *command):
    """All flags of the command and of those below it, from their help."""
    text = subprocess.run([tcast, *command, "--help"], capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r"^ +(?:-\w, ?)?(--[a-z][\w-]*)", text, re.MULTILINE))
    below = re.search(r"^Commands:\n(.*?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    for name in re.findall(r"^  ([a-z][\w-]*) ", below[1], re.MULTILINE) if below else []:
        found |= flags(tcast, *command, name)
    return found


def missing_pages(name, pages):
    """What does not name it; "" if it is where users look."""
    named = {page: re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for page, text in pages.items()}
    lacking = [] if named["CHANGELOG.md"] else ["CHANGELOG.md"]
    if not (named["docs/command.md"] or named["docs/guide.md"]):
        lacking.append("docs/command.md or docs/guide.md")
    return " and ".join(lacking)


def test_pages_are_searched_for_whole_words():
    pages = {"CHANGELOG.md": "`--to-all` is new", "docs/command.md": "", "docs/guide.md": "a --to-all, b"}
    assert missing_pages("--to-all", pages) == ""
    assert missing_pages("--to", pages) == "CHANGELOG.md and docs/command.md or docs/guide.md"


def test_new_flags_and_numbers_are_named(source_dir, tcast):
    rows = (source_dir / "src/options/cast_report.hpp").read_text()
    there = flags(tcast) | set(re.findall(r'ReportNumber\{"(\w+)"', rows))
    assert len(there) > 100
    known = set((HERE / "interface.txt").read_text().split())
    pages = {name: (source_dir / name).read_text() for name in ("CHANGELOG.md", "docs/command.md", "docs/guide.md")}
    faults = [f"{name} is new: name it in {lacking}" for name in sorted(there - known) if (lacking := missing_pages(name, pages))]
    faults += [f"{name} is gone: say so in CHANGELOG.md, and remove it from tests/docs/interface.txt" for name in sorted(known - there)]
    assert not faults, "\n".join(faults)
