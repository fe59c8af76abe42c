# SPDX-License-Identifier: Apache-2.0
"""The view of two types, without a browser: its ranges begin and end at exact numbers."""

import json
import subprocess

# Explains codes of float32 as float8_e4m3fn does: beyond 448 they saturate.
SCRIPT = """
import { outcomesOf } from "./view_pair.js";
const bits = new DataView(new ArrayBuffer(4));
const words = { Infinity: "INF", "-Infinity": "-INF", NaN: "NaN" };
const engine = { explain(code, { from }) {
  if (from) bits.setUint32(0, Number(code));
  else bits.setFloat32(0, Number(code));
  const value = bits.getFloat32(0);
  const event = Math.abs(value) > 448 ? "saturated" : "rounded";
  const exact_value = words[value] ?? String(value);
  return [{ source: { exact_value }, results: [{ code: `0x${bits.getUint32(0).toString(16)}`, exact_value, events: [event] }] }];
} };
const type = (name, bits, exponent_bits, mantissa_bits, largest, smallest_positive) =>
  ({ name, bits, family: "float", exponent_bits, mantissa_bits, largest, lowest: -largest, smallest_positive });
const float32 = type("float32", 32, 8, 23, 3.4028234663852886e38, 1.401298464324817e-45);
const outcomes = outcomesOf(engine, float32, type("float8_e4m3fn", 8, 4, 3, 448, 2 ** -9), {});
console.log(JSON.stringify(outcomes.map(each => [each.text, each.event])));
"""


def test_ranges_begin_and_end_at_the_first_and_last_number(modules):
    (modules / "pair.js").write_text(SCRIPT)
    done = subprocess.run(["node", modules / "pair.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outcomes = [tuple(each) for each in json.loads(done.stdout) if each[0] not in ("NaN", "INF", "-INF")]
    values = [float(text) for text, _ in outcomes]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (-3.4028234663852886e38, 3.4028234663852886e38)
    out = [float(text) for text, event in outcomes if event == "saturated"]
    beyond = 448 + 2.0**-15  # the next number of float32
    assert (max(x for x in out if x < 0), min(x for x in out if x > 0)) == (-beyond, beyond)
    texts = [each[0] for each in json.loads(done.stdout)]
    assert texts.index("-INF") < texts.index(outcomes[0][0]), "infinity has a range of its own"
