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
    return [{ results: [{ code: `0x${value}`, exact_value: String(value) }] }];
  },
};
console.log(JSON.stringify(["2.25", "3"].map(text => roundings(engine, text, { to: "int8" }))));
"""


def test_words_are_grouped_by_what_they_give(modules):
    (modules / "words.js").write_text(SCRIPT)
    done = subprocess.run(["node", modules / "words.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    between, exact = json.loads(done.stdout)
    assert [(row["code"], row["words"], row["share"]) for row in between["rows"]] == [
        ("0x2", ["toward_negative"], 0.75), ("0x3", ["toward_positive"], 0.25)]
    assert between["refused"] == [{"word": "to_odd", "error": "not here"}]
    assert [(row["code"], row["words"]) for row in exact["rows"]] == [("0x3", ["toward_positive", "toward_negative"])]
