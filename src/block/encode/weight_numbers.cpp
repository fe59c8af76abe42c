// SPDX-License-Identifier: Apache-2.0
#include "block/encode/weight_numbers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "block/convert_numbers.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/recipe/run_encoder.hpp"
#include "cast/parallel.hpp"
#include "cast/tuning.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast::block {

WeightNumbers::WeightNumbers(DType stored, DType computed, const QuantizeRecipe& words, const Recipe& recipe,
                             NonFiniteWeights nonfinite) noexcept
    : stored_(stored), computed_(computed), undefined_(recipe.undefined), recipe_(words.recipe) {
  if (nonfinite == NonFiniteWeights::tool) refused_ = undefined_;
  const bool reads_stored = stored == DType::bfloat16 && computed != DType::float16;
  if (reads_stored && recipe.scale != nullptr && recipe.element.search == Search::none) read_ = DType::bfloat16;
}

void WeightNumbers::load(const std::byte* numbers, std::size_t first, std::size_t count, float* out) const noexcept {
  auto* const floats = reinterpret_cast<std::byte*>(out);
  const std::byte* const from = numbers + bytes(first);
  if (!is_rounded()) return convert_numbers(stored_, from, DType::float32, floats, count);
  std::array<std::byte, piece_numbers * 2> rounded;
  for (std::size_t done = 0; done < count; done += piece_numbers) {
    const std::size_t n = std::min(piece_numbers, count - done);
    convert_numbers(stored_, from + bytes(done), computed_, rounded.data(), n);
    convert_numbers(computed_, rounded.data(), DType::float32, floats + done * sizeof(float), n);
  }
}

Result<float> WeightNumbers::maximum(const std::byte* numbers, std::size_t count, const Execution& execution) const {
  const std::size_t tasks = ceil_div(count, task_elements);
  std::vector<std::uint32_t> largest(tasks);
  run_tasks(tasks, execution, [&](std::size_t task) {
    std::vector<float> buffer;
    const std::size_t end = std::min((task + 1) * task_elements, count);
    for (std::size_t first = task * task_elements; first < end; first += piece()) {
      const std::size_t n = std::min(piece(), end - first);
      largest[task] = std::max(largest[task], largest_bits(at(numbers, first, n, buffer), read_, n));
    }
  });
  const std::uint32_t bits = tasks == 0 ? 0 : *std::max_element(largest.begin(), largest.end());
  if (refuses(float_of(bits))) return refusal(numbers, count);
  return float_of(bits);
}

Error WeightNumbers::refusal(const std::byte* numbers, std::size_t count) const {
  constexpr std::size_t chunk = 1024;
  std::array<float, chunk> floats;
  for (std::size_t done = 0; done < count; done += chunk) {
    const std::size_t n = std::min(chunk, count - done);
    load(numbers, done, n, floats.data());
    for (std::size_t i = 0; i < n; ++i) {
      if (!refuses(floats[i])) continue;
      Error error{.code = ErrorCode::out_of_range,
                  .message = formatted("{} has no block scale", is_nan(floats[i]) ? "NaN" : "infinity"),
                  .hint = "set `nonfinite` to tool to quantize it as the recipe's tool does",
                  .element = done + i};
      if (has(undefined_, floats[i])) {
        error.message += formatted(", and what {} makes of it is undefined", recipe_);
        error.hint.clear();
      }
      return error;
    }
  }
  return Error{.message = "no number is NaN or infinite"};
}

}  // namespace tensorcast::block
