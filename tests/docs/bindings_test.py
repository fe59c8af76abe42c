# SPDX-License-Identifier: Apache-2.0
"""bindings/npm/index.d.ts, which is written by hand, has the options of casts with their words, and the numbers of reports."""

import re
import runpy
import types

import pytest


@pytest.fixture(scope="module")
def lists(source_dir):
    """scripts/make/json-schemas, which reads the lists of src/options."""
    return types.SimpleNamespace(**runpy.run_path(str(source_dir / "scripts/make/json-schemas")))


@pytest.fixture(scope="module")
def members(source_dir):
    """members("CastReport"): {name: type} of an interface."""
    text = (source_dir / "bindings/npm/index.d.ts").read_text()

    def of(interface):
        body = re.search(rf"^export interface {interface} {{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE)[1]
        return dict(re.findall(r"^  (\w+)\??:(.*?);", body, re.DOTALL | re.MULTILINE))

    return of


def test_typescript_has_the_numbers_of_reports(lists, members):
    assert set(members("CastReport")) == {*lists.report_numbers(), "snr_db"}


def test_typescript_has_the_options(lists, members):
    options = members("CastOptions")
    text = lists.source("cast_options.hpp")
    names = {row[1] for row in re.finditer(r'\boption\(\s*"(\w+)"(.*?)\}\)', text, re.DOTALL) if ".for_strings" not in row[2]}
    assert len(names) > 8 and set(options) == names
    words = {name: found for name, found in lists.option_words().items() if name in names}
    assert {name: re.findall(r'"(\w+)"', options[name]) for name in words} == words
