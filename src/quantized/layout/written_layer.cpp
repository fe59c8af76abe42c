// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/written_layer.hpp"

#include <algorithm>
#include <set>

#include "quantized/layer/model_tensors.hpp"
#include "quantized/names/architectures.hpp"
#include "quantized/names/name_pattern.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 56;  // products with bits cannot overflow

// Returns a pattern for a module's name, with any number in the place of each number between dots.
std::string pattern_of(const std::string& module) {
  std::string pattern = "re:";
  for (std::size_t i = 0; i < module.size(); ++i) {
    const char c = module[i];
    const std::size_t end = std::min(module.find_first_not_of("0123456789", i), module.size());
    const bool begins = i == 0 || module[i - 1] == '.';
    if (begins && end > i && (end == module.size() || module[end] == '.')) {
      i = end - 1;
      pattern += "\\d+";
    } else if (c == '.') {
      pattern += "\\.";
    } else {
      pattern += c;
    }
  }
  return pattern + "$";
}

}  // namespace

DynamicActivations dynamic_activations(const Spelling& writer, std::string_view scheme) noexcept {
  return lists(writer.activations_schemes, scheme) ? writer.activations : DynamicActivations::never;
}

WrittenLayer spell(const Spelling& writer, const LayerContent& content) {
  WrittenLayer written;
  Layer& layer = written.layer;
  static_cast<BlockWeight&>(layer) = content;
  layer.spelling = writer.name;
  layer.coding.global = GlobalScale::none;  // unless the spelling stores one
  const auto is_too_large = [](std::int64_t size) { return size < 0 || size >= most_elements; };
  const std::size_t rank = content.shape.size();
  const bool fits =
      written.need(rank >= 2, "a weight of {} is no matrix", shape_text(content.shape)) &&
      written.need(rank <= 3 || writer.has_kernels, "a kernel of {} is no matrix", shape_text(content.shape)) &&
      written.need(std::ranges::none_of(content.shape, is_too_large), "its shape is too large") &&
      written.need(content.deviations.rotation == 0 || writer.has_rotations,
                   "its inputs are rotated by ConvRot, which the spelling comfyui alone has");
  if (!fits) return written;
  writer.spell(content, written);
  for (std::size_t i = 0; i < written.tensors.size(); ++i) {
    layer.parts.push_back({.role = written.tensors[i].role, .tensor = i});
  }
  return written;
}

WrittenConfig describe(const Spelling& writer, const WrittenModel& model) {
  WrittenConfig config;
  if (writer.describe != nullptr) writer.describe(model, config);
  return config;
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view(".*+?^$()[]{}|\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::vector<std::string> module_targets(const std::vector<std::string>& modules,
                                        const std::vector<std::string>& others) {
  std::set<std::string> patterns;
  for (const std::string& module : modules) patterns.insert(pattern_of(module));
  if (patterns.size() * 4 > modules.size()) return modules;
  for (const std::string& pattern : patterns) {
    const auto compiled = file_conversion::NamePattern::compile("^(?:" + pattern.substr(3) + ")");
    if (!compiled) return modules;
    if (std::ranges::any_of(others, [&](const std::string& other) { return compiled->matches(other); })) return modules;
  }
  return {patterns.begin(), patterns.end()};
}

WrittenTensor& add_tensor(WrittenLayer& written, PartRole role, std::string name, DType dtype,
                          std::vector<std::int64_t> shape) {
  WrittenTensor& tensor = written.tensors.emplace_back();
  tensor.role = role;
  tensor.info.name = std::move(name);
  tensor.info.dtype = dtype;
  tensor.info.shape = std::move(shape);
  const Result<std::size_t> count = element_count(tensor.info.shape);
  written.need(count && std::cmp_less_equal(*count, most_elements), "its shape is too large");
  if (!written.ok()) return tensor;
  tensor.info.count = *count;
  tensor.info.bytes = storage_bytes(dtype, *count);
  return tensor;
}

std::vector<std::int64_t> grid_shape(const LayerContent& content) {
  std::vector<std::int64_t> shape = content.shape;
  const std::size_t rank = shape.size();
  if (rank < 2) return shape;
  shape[rank - 2] = content.block_rows == 0 ? 1 : blocks_of(shape[rank - 2], content.block_rows);
  shape[rank - 1] = content.block_columns == 0 ? 1 : blocks_of(shape[rank - 1], content.block_columns);
  return shape;
}

std::vector<std::int64_t> packed_shape(const LayerContent& content, std::int64_t elements, std::int64_t units) {
  std::vector<std::int64_t> shape = content.shape;
  // Their product may be too large where another dimension is 0.
  shape.back() = shape.back() / elements * units + blocks_of(shape.back() % elements * units, elements);
  return shape;
}

void need_whole_groups(const LayerContent& content, std::int64_t size, WrittenLayer& written) {
  written.need(content.shape.back() % size == 0, "{} inputs are not whole groups of {}", content.shape.back(), size);
}

void refuse_scheme(const LayerContent& content, WrittenLayer& written, std::string_view instead) {
  written.need(false, "{} has no {}, only {}", written.layer.spelling, content.scheme, instead);
}

}  // namespace tensorcast::quantized
