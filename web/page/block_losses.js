// SPDX-License-Identifier: Apache-2.0
// What weights lose in blocks that share scales.

// Quantizes by a recipe: what was made, bits for each number with its scales, and errors. {error} where it is refused.
export function quantized(engine, { scheme, recipe }, { values, rows, columns }) {
  try {
    const made = engine.quantize(values, rows, columns, scheme, recipe);
    let [signal, noise, largest] = [0, 0, 0];
    for (let i = 0; i < values.length; ++i) {
      const error = made.decoded[i] - values[i];
      signal += values[i] * values[i];
      noise += error * error;
      largest = Math.max(largest, Math.abs(error));
    }
    const bytes = made.codes.length + made.scales.length + (made.global_scale === undefined ? 0 : 4) + made.zero_points;
    return { made, bits: 8 * bytes / values.length, snr: 10 * Math.log10(signal / noise), largest };
  } catch (error) {
    return { error: error.message };
  }
}

// The same for the default recipe of each scheme, without what was made.
export function lossesOfSchemes(engine, weights) {
  const defaults = new Map(engine.recipes().reverse().map(recipe => [recipe.scheme, recipe]));
  return [...defaults.values()].reverse().map(recipe => {
    const { bits, snr, largest, error } = quantized(engine, recipe, weights);
    return { scheme: recipe.scheme, recipe: recipe.recipe, bits, snr, largest, error };
  });
}
