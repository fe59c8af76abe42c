# SPDX-License-Identifier: Apache-2.0
"""Which word of rounding gives which number, without a browser."""

import json
import subprocess

# Rounds to whole numbers, and has two words.
SCRIPT = """
import { roundings } from "./roundings.js";
const engine = {
  description: { cast_options: { options: [{ name: "rounding",
    words: ["auto", "toward_positive", "toward_negative", "to_odd", "stochastic"] }] } },
  explain(literal, { options }) {
    if (options.rounding === "to_odd") return [{ results: [{ error: "not here" }] }];
    const value = options.rounding === "toward_positive" ? Math.ceil(Number(literal)) : Math.floor(Number(literal));
    const times = options.scale ?? 1;
    return [{ results: [{ code: `0x${value}`, exact_value: String(value), exact_error: String(value - times * Number(literal)) }] }];
  },
};
const cases = [["2.25"], ["3"], ["2.25", { scale: 0.5 }], ["2.25", { scale: 1.125 }]];
console.log(JSON.stringify(cases.map(([text, options]) => roundings(engine, text, { to: "int8", options }))));
"""


def test_words_are_grouped_by_what_they_give(modules):
    (modules / "words.js").write_text(SCRIPT)
    done = subprocess.run(["node", modules / "words.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    between, exact, far, scaled = json.loads(done.stdout)
    assert [(row["code"], row["words"], row["share"]) for row in between["rows"]] == [
        ("0x2", ["toward_negative"], 0.75), ("0x3", ["toward_positive"], 0.25)]
    assert between["refused"] == [{"word": "to_odd", "error": "not here"}]
    assert [(row["code"], row["words"]) for row in exact["rows"]] == [("0x3", ["toward_positive", "toward_negative"])]
    # The product counts, and a number beyond both is not between them.
    assert ["share" in row for row in far["rows"]] == [False, False]
    assert [row["share"] for row in scaled["rows"]] == [0.46875, 0.53125]
