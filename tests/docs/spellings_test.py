# SPDX-License-Identifier: Apache-2.0
"""The spellings that are written are those that sentences name: the help of --spelling, and QuantizedWeight.spelled()."""

import re


def test_sentences_name_the_spellings(source_dir, run_tcast):
    refused = run_tcast("convert", "x", "-o", "y", "--to", "nvfp4", "--spelling", "mine").stderr
    written = set(re.search(r"is not one of ([\w, -]+)", refused)[1].replace(" or ", ", ").split(", "))
    help_text = (source_dir / "src/quantized/rewrite/target_options.hpp").read_text()
    names = "".join(re.findall(r'"(.*?)"', help_text.partition("written_spelling_names =")[2].partition(";")[0]))
    assert set(names.replace(" or ", ", ").split(", ")) == written
    sentence = (source_dir / "python/tensorcast/_cast/_quantized_weight.py").read_text().partition("``spelling`` is ")[2].partition(";")[0]
    assert set(re.findall(r'``"([\w-]+)"``', sentence)) == written
