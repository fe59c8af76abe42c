// SPDX-License-Identifier: Apache-2.0
// Quantizing for the page: one call that returns codes and scales as JSON, and the decoded numbers.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "c_api/c_call.hpp"
#include "c_api/json_writer.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"

namespace {

using namespace tensorcast::c_api;
using tensorcast::DType;
using tensorcast::QuantizedTensor;
using tensorcast::QuantizeRecipe;
using tensorcast::Result;
using tensorcast::TensorView;

void append_hex(JsonWriter& json, std::string_view key, const std::byte* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += "0123456789abcdef"[std::to_integer<int>(bytes[i]) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(bytes[i]) & 15];
  }
  json.member(key, std::string_view(text));
}

Result<JsonWriter> described(const QuantizedTensor& made) {
  JsonWriter json;
  json.open('{');
  json.member("recipe", made.recipe->recipe);
  json.member("spelling", made.recipe->spelling);
  json.member("element", made.coding.element == DType::undefined ? "" : tensorcast::name(made.coding.element));
  json.member("bits", made.coding.bits);
  json.member("block_rows", static_cast<int>(made.block_rows));
  json.member("block_columns", static_cast<int>(made.block_columns));
  append_hex(json, "codes", made.codes.data(), made.codes.size());
  json.member("scale_type", made.scales_dtype == DType::undefined ? "" : tensorcast::name(made.scales_dtype));
  append_hex(json, "scales", made.scales.data(), made.scales.size());
  if (made.global_scale) json.member("global_scale", static_cast<double>(*made.global_scale));
  json.member("zero_points", static_cast<int>(made.zero_points.size()));
  if (made.coding.gguf == tensorcast::GgufBlock::none) {
    const auto codes = tensorcast::element_codes(made);
    if (!codes) return codes.error();
    append_hex(json, "elements", codes->data(), codes->size());
  }
  json.close('}');
  return json;
}

}  // namespace

extern "C" {

// All recipes, as a JSON array.
__attribute__((visibility("default"))) tc_status web_recipes(char** json) {
  return run([&]() -> Result<void> {
    JsonWriter list;
    list.open('[');
    for (const QuantizeRecipe& row : tensorcast::quantize_recipes()) {
      list.next();
      list.open('{');
      list.member("scheme", row.scheme);
      list.member("recipe", row.recipe);
      list.member("spelling", row.spelling);
      list.member("scale", row.scale);
      list.member("element", row.element);
      list.close('}');
    }
    list.close(']');
    return list.hand_over(json);
  });
}

// Quantizes `rows` rows of float32 and decodes them to `decoded`, which has as many numbers.
__attribute__((visibility("default"))) tc_status web_quantize(const float* weights, std::size_t rows,
                                                              std::size_t columns, const char* scheme,
                                                              const char* recipe, float* decoded, char** json) {
  return run([&]() -> Result<void> {
    const tensorcast::Shape shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
    const std::size_t bytes = rows * columns * sizeof(float);
    const TensorView weight{DType::float32, shape, {reinterpret_cast<const std::byte*>(weights), bytes}};
    const Result<QuantizedTensor> made = tensorcast::quantize(weight, scheme, {.recipe = recipe}, {.threads = 1});
    if (!made) return made.error();
    const Result<JsonWriter> text = described(*made);
    if (!text) return text.error();
    const tensorcast::MutableTensorView out{DType::float32, shape, {reinterpret_cast<std::byte*>(decoded), bytes}};
    if (Result<void> done = tensorcast::dequantize(made->tensor(), 0, out, {}, nullptr, {.threads = 1}); !done) {
      return done;
    }
    return text->hand_over(json);
  });
}

}  // extern "C"
