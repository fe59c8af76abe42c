# SPDX-License-Identifier: Apache-2.0
"""Blocks in the page: the bytes of native code and of the tools, by their digests, and what the view shows of them."""

import base64
import json
import re
import sys

import numpy as np
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "python/tests"))

import block_samples  # noqa: E402
import native_blocks  # noqa: E402

DIGESTS = json.loads((ROOT / "python/tests/recipe_digests.json").read_text())
# The page has the schemes' own options: groups of 128, symmetric.
OPTIONS = ("", "group_size=128 symmetric=true")

QUANTIZE = """async ([weights, rows, columns, pairs]) => {
  const kernels = await tensorcast.kernels();
  const text = bytes => {
    let found = "";
    for (let i = 0; i < bytes.length; i += 32768) found += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(found);
  };
  const numbers = new Float32Array(Uint8Array.from(atob(weights), c => c.charCodeAt(0)).buffer);
  return pairs.map(([scheme, recipe]) => {
    const made = kernels.quantize(numbers, rows, columns, scheme, recipe);
    return { codes: text(made.elements ?? made.codes), packed: text(made.codes), scales: text(made.scales), scale_type: made.scale_type, global_scale: made.global_scale, decoded: text(new Uint8Array(made.decoded.buffer)) };
  });
}"""


def parts_of(made, scheme, shape):
    codes = np.frombuffer(base64.b64decode(made["codes"]), np.uint8)
    if scheme.startswith(("q", "iq")):
        return {"codes_of_gguf": codes}
    scales = base64.b64decode(made["scales"])
    scale = None if made.get("global_scale") is None else np.array([made["global_scale"]], np.float32)
    dtype = np.float32 if made["scale_type"] == "float32" else np.uint8
    return {"codes": codes.reshape(shape), "scales": np.frombuffer(scales, dtype), "global_scale": scale}


@pytest.mark.parametrize("sample", ["weights", "exponents", "ties", "zeros"])
def test_every_byte_is_the_tools(opened, sample):
    cases = {}
    for case, digests in DIGESTS.items():
        scheme, recipe, options = re.match(r"(\S+) (\S+) ?(.*)", case).groups()
        if options in OPTIONS:
            cases[scheme, recipe] = digests[f"{sample} float32"]
    assert len(cases) > 50
    numbers = block_samples.sample(sample, "float32")
    weights = base64.b64encode(numbers.tobytes()).decode()
    page = opened("#view=blocks")
    made = page.evaluate(QUANTIZE, [weights, *numbers.shape, [list(pair) for pair in cases]])
    wrong = [
        pair
        for pair, one in zip(cases, made, strict=True)
        if block_samples.digest(" ".join(pair), parts_of(one, pair[0], numbers.shape)) != cases[pair]
    ]
    assert wrong == []


def test_every_recipe_makes_what_native_code_does(opened):
    wanted = json.loads((ROOT / "web/tests/native_blocks.json").read_text())
    numbers = block_samples.sample("weights", "float32")
    page = opened("#view=blocks")
    recipes = page.evaluate("tensorcast.kernels().then(kernels => kernels.recipes().map(row => [row.scheme, row.recipe]))")
    made = page.evaluate(QUANTIZE, [base64.b64encode(numbers.tobytes()).decode(), *numbers.shape, recipes])
    found = {
        " ".join(pair): native_blocks.digest(
            *(base64.b64decode(one[part]) for part in ("packed", "scales")), one.get("global_scale"), base64.b64decode(one["decoded"])
        )
        for pair, one in zip(recipes, made, strict=True)
    }
    assert found == wanted and len(found) > 70


def shown(opened, state):
    page = opened(f"#view=blocks{state}")
    page.wait_for_selector("table.elements")
    return page


def test_codes_and_scales_of_weights_of_ones_own(opened):
    """6 and 3 of MXFP4 have scale 1 (0x7F), codes 7 and 5."""
    page = shown(opened, "&weights=own&numbers=6 3 -0.5 0.2&scheme=mxfp4:rceil&other=mxfp8:rceil")
    rows = [row.split("\t") for row in page.locator("table.elements tbody tr").all_inner_texts()]
    assert rows[0][0] == "6" and "0x7F 1" in rows[0][1] and rows[0][2:5] == ["0x7", "6", "0"]
    assert [row[1] for row in rows[1:]] == ["0x5", "0x9", "0x0"]


def test_every_scheme_and_recipe_is_compared(opened):
    page = shown(opened, "&count=512&outliers=true")
    count = page.evaluate("tensorcast.kernels().then(kernels => kernels.recipes().length)")
    rows = page.locator("section[aria-label='All schemes and recipes'] tbody tr")
    assert rows.count() == count > 50
    assert page.locator("section[aria-label='All schemes and recipes'] tbody tr td[colspan]").count() == 0
    page.select_option("#scheme", "mxfp6:floor")
    assert "scheme=mxfp6" in page.url


def test_an_image_is_quantized(opened):
    page = shown(opened, "&weights=image")
    assert page.locator("section.images canvas").count() == 3
