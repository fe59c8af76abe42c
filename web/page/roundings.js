// SPDX-License-Identifier: Apache-2.0
// Which word of the option `rounding` gives which number of a type.

import { difference, parseDecimal } from "./decimal.js";

// The results of the words, each with the words that give it, from the lowest on; and what a word refuses, if one does.
// Stochastic rounding gives one of the two beside the number: `share` is how often, of 1; undefined: the number is exact,
// or not between the two, as where it overflows, wraps around or loses its sign.
export function roundings(engine, literal, { from, to, options = {} }) {
  const rounding = engine.description.cast_options.options.find(option => option.name === "rounding");
  const results = new Map();
  const refused = [];
  for (const word of rounding.words) {
    if (word === "auto" || word === "stochastic") continue;
    const [{ results: [row] }] = engine.explain(literal, { from, to, options: { ...options, rounding: word } });
    if (row.error) {
      refused.push({ word, error: row.error });
      continue;
    }
    const known = results.get(row.code) ?? { code: row.code, value: row.exact_value, error: row.exact_error, words: [] };
    known.words.push(word);
    results.set(row.code, known);
  }
  const rows = [...results.values()];
  if (rows.length === 2 && rows.every(row => row.error !== undefined && parseDecimal(row.error) !== null)) {
    rows.sort((a, b) => Number(difference(a.error, b.error)));
    const [low, high] = rows;
    const above = -Number(low.error) / Number(difference(high.error, low.error));
    if (above > 0 && above < 1) {
      low.share = 1 - above;
      high.share = above;
    }
  }
  return { rows, refused };
}
