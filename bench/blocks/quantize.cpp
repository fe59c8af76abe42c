// SPDX-License-Identifier: Apache-2.0
// How fast are weights quantized, on one thread? The time of each scheme's default recipe over memcpy's time for the
// bytes that are read and written, for float32 and bfloat16, as a table. Numbers that are read twice count twice: their
// scheme has a scale of the whole tensor.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "beside_copy.hpp"
#include "block/encode/quantizer.hpp"
#include "tensorcast/cast.hpp"

namespace {

using namespace tensorcast;

constexpr bench::Extent in_memory{.rows = 2048, .columns = 4096, .repetitions = 7};

struct Measured {
  double ratio = 0.0;        // to memcpy's time; 0 if it fails
  double nanoseconds = 0.0;  // an element
};

// Into memory that is there, as a conversion of files does.
Measured measure(std::string_view scheme, DType dtype, const std::vector<std::byte>& numbers,
                 const bench::Extent& extent) {
  const auto [rows, columns, repetitions] = extent;
  const Result<block::SharedLayout> made = block::WeightLayout::make(dtype, Shape{rows, columns}, scheme, {});
  if (!made) return {};
  const block::WeightLayout& layout = **made;
  const QuantizedTensor& tensor = layout.tensor;
  ResultVector<std::byte> codes(layout.rows * layout.codes_row_bytes, std::byte{});
  std::vector<std::byte> scales(static_cast<std::size_t>(rows * columns));
  const std::size_t scale_count =
      tensor.scales_dtype == DType::undefined || layout.is_per_tensor() ? 0 : layout.scales_before(layout.rows);
  const std::size_t scale_bytes = scale_count == 0 ? 0 : storage_bytes(tensor.scales_dtype, scale_count);
  const auto maximum = [&] {
    return layout.numbers.maximum(numbers.data(), layout.rows * layout.columns, {.threads = 1});
  };
  bool is_done = true;
  Result<block::Quantizer> quantizer = block::Quantizer::make(*made, {.maximum = maximum});
  const auto quantize = [&] {
    if (layout.needs_maximum()) quantizer = block::Quantizer::make(*made, {.maximum = maximum});
    is_done = is_done && quantizer &&
              quantizer->run(0, layout.rows, numbers.data(),
                             {codes.data(), scales.data(), nullptr, layout.results_bypass_cache()}, {.threads = 1});
  };
  const std::size_t passes = layout.needs_maximum() ? 2 : 1;
  const std::size_t bytes = (passes * numbers.size() + codes.size() + scale_bytes) / 2;
  const auto [work, copy] = bench::least_seconds(quantize, bytes, repetitions);
  return is_done ? Measured{work / copy, work * 1e9 / static_cast<double>(rows * columns)} : Measured{};
}

}  // namespace

// usage: tensorcast_quantize_bench [--in-cache] [SCHEME...]
int main(int argc, char** argv) {
  std::vector<std::string_view> asked(argv + 1, argv + argc);
  const bench::Extent extent = bench::take_in_cache(asked) ? bench::in_cache : in_memory;
  const auto [rows, columns, repetitions] = extent;
  std::vector<float> wide(static_cast<std::size_t>(rows * columns));
  std::mt19937 random(1);
  std::normal_distribution<float> bell(0.0f, 0.02f);
  for (float& number : wide) number = bell(random);
  const Shape shape{rows, columns};
  std::vector<std::byte> as_float32(wide.size() * sizeof(float)), as_bfloat16(wide.size() * 2);
  std::memcpy(as_float32.data(), wide.data(), as_float32.size());
  if (!cast({DType::float32, shape, as_float32}, {DType::bfloat16, shape, as_bfloat16})) return 1;
  fmt::print("| scheme | recipe | float32 | bfloat16 | ns an element of each |\n| --- | --- | --- | --- | --- |\n");
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    if (&recipe != find_quantize_recipe(recipe.scheme)) continue;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), recipe.scheme) == asked.end()) continue;
    const Measured of_float32 = measure(recipe.scheme, DType::float32, as_float32, extent);
    const Measured of_bfloat16 = measure(recipe.scheme, DType::bfloat16, as_bfloat16, extent);
    fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f}, {:.2f} |\n", recipe.scheme, recipe.recipe, of_float32.ratio,
               of_bfloat16.ratio, of_float32.nanoseconds, of_bfloat16.nanoseconds);
  }
  return 0;
}
