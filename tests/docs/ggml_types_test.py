# SPDX-License-Identifier: Apache-2.0
"""The page has no C++, so it lists ggml's types itself: as the engine has them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def numbers_of(*sums):
    return [sum(map(int, text.split("+"))) for text in sums]


def test_the_page_has_the_types_of_the_engine():
    page = (ROOT / "web/page/file_gguf.js").read_text()

    def table(name):
        return re.search(rf"const {name} = \{{(.*?)\}};", page, re.DOTALL).group(1)

    numbers = {int(number): name for number, name in re.findall(r'(\d+): "(\w+)"', table("types"))}
    blocks = {int(number): name for number, name in re.findall(r'(\d+): "(\w+)"', table("blocks"))}
    removed = {int(number): [int(size) for size in sizes] for number, *sizes in re.findall(r"(\d+): \[(\d+), (\d+)\]", table("removed"))}

    rows = (ROOT / "src/block/format/gguf_block.hpp").read_text()
    engine_blocks = re.findall(r'\{GgufBlock::\w+, "(\w+)", (\d+), ', rows)
    assert len(engine_blocks) > 20
    assert blocks == {int(number): name for name, number in engine_blocks}

    others = (ROOT / "src/formats/gguf/gguf_types.cpp").read_text()
    engine_others = re.findall(r'\{(\d+), "\w+", DType::(\w+), ([\d]+), ([\d +]+)', others)
    assert len(engine_others) > 15
    assert numbers == {int(number): dtype for number, dtype, _, _ in engine_others if dtype != "undefined"}
    assert removed == {int(number): numbers_of(*sizes) for number, dtype, *sizes in engine_others if dtype == "undefined"}
