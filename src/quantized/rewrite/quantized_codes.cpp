// SPDX-License-Identifier: Apache-2.0
// A weight in memory that quantize() made, as the layer that spellings write.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/written_layer.hpp"
#include "quantized/rewrite/layer_packer.hpp"
#include "quantized/rewrite/quantizing.hpp"
#include "quantized/rewrite/quantizing_plan.hpp"
#include "tensorcast/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::string_view module_name = "m";  // of the weight that the writers are given

// What a tensor of the module adds to its name: "weight_scale", or "_blocks" for gpt-oss's experts.
std::string suffix_of(std::string_view name) {
  if (!name.starts_with(module_name)) return std::string(name);
  name.remove_prefix(module_name.size());
  if (name.starts_with('.')) name.remove_prefix(1);
  return std::string(name);
}

// The parts as a packer asks for them.
class QuantizedCodes final : public LayerCodes {
 public:
  QuantizedCodes(const QuantizedTensor& weight, std::vector<std::byte> codes, const LayerContent& content)
      : weight_(weight), codes_(std::move(codes)), content_(content) {}

  Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) override {
    std::memcpy(out.data(), codes_.data() + first_row * content_.columns(), out.size());
    return {};
  }
  Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) override {
    if (weight_.scales.empty()) {  // rows without elements have a float32 scale in files, but none in memory
      block::set_unit_scales(DType::float32, out);
      return {};
    }
    const std::size_t item = content_.scales() == DType::float32 ? sizeof(float) : 1;
    std::memcpy(out.data(), weight_.scales.data() + first_row * content_.grid_columns() * item, out.size());
    return {};
  }
  Result<void> zero_points(std::uint64_t first_row, std::span<std::byte> out) override {
    std::ranges::fill(out, std::byte{0});
    if (weight_.zero_points.empty()) return {};  // of rows without elements
    std::memcpy(out.data(), weight_.zero_points.data() + first_row * content_.grid_columns(), out.size());
    return {};
  }
  // Recipes without a tensor scale have scale 1.
  Result<std::vector<float>> global_scales() override {
    return std::vector<float>{weight_.global_scale.value_or(1.0f)};
  }

 private:
  const QuantizedTensor& weight_;
  std::vector<std::byte> codes_;
  const LayerContent& content_;
};

Result<std::vector<SpelledTensor>> spelled(const QuantizedTensor& weight, std::string_view spelling, DType weights) {
  const std::string_view asked = spelling.empty() ? usual_spelling(*weight.recipe) : spelling;
  if (weight.coding.gguf != tensorcast::GgufBlock::none) {
    const Spelling* const layout = find_writer(asked);
    if (layout == nullptr || !layout->is_of_gguf)
      return unsupported(fmt::format("{} is a format of GGUF alone", weight.recipe->scheme));
    std::vector<std::byte> bytes(weight.codes.begin(), weight.codes.end());
    return std::vector<SpelledTensor>{{"weight", weight.codes_dtype, weight.codes_shape, std::move(bytes)}};
  }
  const Spelling* writer = find_writer(asked);
  if (writer == nullptr && spelling.empty()) {
    return unsupported(fmt::format("no loader of files reads {}, so no spelling has it", weight.recipe->scheme));
  }
  if (writer == nullptr) {
    return invalid(fmt::format("no spelling \"{}\"; there are {}", asked, fmt::join(written_spellings(), ", ")));
  }
  LayerContent content = content_of(weight, std::string(module_name) + ".weight", !weight.zero_points.empty());
  content.exact_scales = exact_scales_of(weight, weights);
  const WrittenLayer written = spell(*writer, content);
  if (!written.ok()) return unsupported(written.refusal);
  QuantizedCodes source(weight, TRY(element_codes(weight)), content);
  LayerPacker packer(content, written, source);
  std::vector<SpelledTensor> made;
  for (std::size_t i = 0; i < written.tensors.size(); ++i) {
    const formats::TensorInfo& info = written.tensors[i].info;
    SpelledTensor& tensor = made.emplace_back();
    tensor.suffix = suffix_of(info.name);
    tensor.dtype = info.dtype;
    tensor.shape = Shape(info.shape);
    if (info.dtype == DType::undefined) {  // blocks of GGUF
      const std::uint64_t rows = content.rows();
      std::vector<std::int64_t> sizes = info.shape;
      sizes.back() = rows == 0 ? 0 : static_cast<std::int64_t>(info.bytes / rows);
      tensor.dtype = DType::uint8;
      tensor.shape = Shape(sizes);
    }
    tensor.bytes.resize(info.bytes);
    TRY(packer.read(i, 0, tensor.bytes));
  }
  return made;
}

}  // namespace
}  // namespace tensorcast::quantized

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::vector<std::string_view> written_spellings() {
  std::vector<std::string_view> names;
  for (const quantized::Spelling& writer : quantized::all_writers()) names.push_back(writer.name);
  return names;
}

Result<std::vector<SpelledTensor>> spell(const QuantizedTensor& weight, std::string_view spelling, DType weights) {
  return guarded([&] { return quantized::spelled(weight, spelling, weights); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
