# SPDX-License-Identifier: Apache-2.0
"""docs/machines.md has the digest that `tcast info --digest` expects, and rows in the order of their days."""

import re


def test_the_digest_is_that_of_the_command(source_dir):
    header = (source_dir / "tools/tcast/process/digests.h").read_text()
    expected = " ".join(re.findall(r"expected_digest_of_\w+ = 0x([0-9a-f]{16})u;", header))
    page = (source_dir / "docs/machines.md").read_text()
    assert len(expected) == 33
    assert set(re.findall(r"[0-9a-f]{16} [0-9a-f]{16}", page)) == {expected}


def test_the_newest_rows_are_first(source_dir):
    rows = re.findall(r"^\| (\d{4}-\d\d-\d\d) \|(?:[^|\n]+\|){5}$", (source_dir / "docs/machines.md").read_text(), re.MULTILINE)
    assert len(rows) >= 8 and rows == sorted(rows, reverse=True)
