# SPDX-License-Identifier: Apache-2.0
"""The reference of the command: its own help texts."""

from __future__ import annotations

import re

from site_tools import engine


def _subcommands(text: str) -> list[str]:
    listed = re.search(r"(?ms)^Commands:\n(.*?)(?=^\S|\Z)", text)
    return re.findall(r"(?m)^  (\S+)", listed[1]) if listed else []


def page() -> str:
    whole = engine.run("--help")
    out = ["# Every command and option\n", "What `tcast COMMAND --help` prints.\n", f"## tcast\n\n```text\n{whole}```\n"]
    for name in _subcommands(whole):
        text = engine.run(name, "--help")
        out.append(f"## tcast {name}\n\n```text\n{text}```\n")
        for inner in _subcommands(text):
            out.append(f"### tcast {name} {inner}\n\n```text\n{engine.run(name, inner, '--help')}```\n")
    return "\n".join(out)
