# SPDX-License-Identifier: Apache-2.0
"""The patches of the pages docs/adding-*.md apply to this tree."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [page for page in sorted((ROOT / "docs").glob("adding-*.md")) if "```diff" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_patch_applies(page):
    patches = "".join(re.findall(r"^```diff\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))
    command = ["patch", "--dry-run", "--strip=1", "--force"]
    done = subprocess.run(command, cwd=ROOT, input=patches, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
