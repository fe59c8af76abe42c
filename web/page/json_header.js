// SPDX-License-Identifier: Apache-2.0
// JSON as tcast reads it: names in their order and each once, numbers that are whole.

import { fail } from "./file_bytes.js";

const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const most_depth = 3;  // header, tensor, shape

// Objects become Maps, whole numbers BigInts.
export function parseHeader(text) {
  let at = 0;
  const wrong = () => fail(`the header is not valid JSON at character ${at + 1}`);
  const space = () => {
    while (" \t\r\n".includes(text[at] ?? "x")) ++at;
    return text[at];
  };
  const token = pattern => {
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? wrong();
    at += found.length;
    return found;
  };
  const word = () => {
    const found = JSON.parse(token(string));
    return found.isWellFormed() ? found : fail("the header has a text that is not UTF-8");
  };
  const items = (close, read) => {
    ++at;
    if (space() === close) return ++at;
    for (;;) {
      read();
      const next = space();
      if (next !== "," && next !== close) wrong();
      ++at;
      if (next === close) return at;
    }
  };
  function value(depth) {
    const first = space();
    if (first === '"') return word();
    if (first === "{" || first === "[") {
      if (depth === most_depth) fail("the header is nested too deeply");
      const found = first === "{" ? new Map() : [];
      items(first === "{" ? "}" : "]", () => {
        if (first === "[") return found.push(value(depth + 1));
        if (space() !== '"') wrong();
        const name = word();
        if (found.has(name)) fail(`"${name}" occurs twice`);
        if (space() !== ":") wrong();
        ++at;
        return found.set(name, value(depth + 1));
      });
      return found;
    }
    for (const [spelled, meant] of [["true", true], ["false", false], ["null", null]]) {
      if (!text.startsWith(spelled, at)) continue;
      at += spelled.length;
      return meant;
    }
    const digits = token(number);
    return /^\d+$/.test(digits) ? BigInt(digits) : Number(digits);
  }
  if (text[0] !== "{") fail("the header does not begin with {");
  const header = value(0);
  if (space() !== undefined) wrong();
  return header;
}
