// SPDX-License-Identifier: Apache-2.0
// bitsandbytes: codes of NF4 or FP4 in weight, absmax, quant_map, and quant_state, a JSON text with shape and block
// size; int8 with SCB, the largest magnitude of each row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "dtype/ceil_div.hpp"
#include "quantized/layer/part_reader.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto keys_of_bitsandbytes = joined(
    keys_of<"load_in_4bit load_in_8bit _load_in_4bit _load_in_8bit bnb_4bit_use_double_quant">(KeyType::flag),
    keys_of<"llm_int8_threshold llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight bnb_4bit_compute_dtype">(
        KeyType::any),
    keys_of<"bnb_4bit_quant_type bnb_4bit_quant_storage">(KeyType::text));
// Of quant_state.
constexpr auto state_keys = joined(keys_of<"quant_type dtype nested_dtype">(KeyType::text),
                                   keys_of<"blocksize nested_blocksize">(KeyType::integer),
                                   keys_of<"shape">(KeyType::list), keys_of<"nested_offset">(KeyType::any));
constexpr std::string_view state_mark = ".quant_state.bitsandbytes__";

// Scales that are codes themselves: a table, a scale for each of their blocks, and an offset in the state.
void complete_nested(const ModelTensors& tensors, const std::string& weight, const Json& state, std::int64_t blocks,
                     LayerBuilder& builder) {
  constexpr std::uint64_t table_size = 256;
  const std::optional<std::size_t> scales = builder.need(weight + ".nested_absmax", PartRole::nested_scales);
  const std::optional<std::size_t> table = builder.need(weight + ".nested_quant_map", PartRole::nested_table);
  if (!builder.ok()) return;
  const std::int64_t size = size_in(state, "nested_blocksize").value_or(not_a_size);
  const auto offset = state.find("nested_offset");
  if (size < 1 || offset == state.end() || !offset->is_number()) {
    return builder.fail("quant_state lacks nested_blocksize or nested_offset");
  }
  builder.layer().nested_block = size;
  builder.layer().nested_offset = static_cast<float>(offset->get<double>());
  const std::int64_t wanted = blocks_of(blocks, size);
  builder.expect(tensors[*scales].dtype == DType::float32 && std::cmp_equal(tensors[*scales].count, wanted), scales,
                 "{} scales in blocks of {} have scales of float32 [{}]", blocks, size, wanted);
  builder.expect(tensors[*table].dtype == DType::float32 && tensors[*table].count == table_size, table,
                 "codes of scales need 256 numbers of float32");
}

// Codes are bytes under the type of `quant_storage`; the last element of such a type may have bytes to spare.
bool holds_pairs(const TensorInfo& codes, std::uint64_t count) {
  if (!is_castable(codes.dtype) || bit_width(codes.dtype) < 8) return false;
  const std::uint64_t bytes = count / 2 + count % 2, each = static_cast<std::uint64_t>(bit_width(codes.dtype)) / 8;
  return codes.bytes / each == bytes / each + (bytes % each != 0 ? 1 : 0);
}

// The numbers of codes are those of the scheme; a file that stores others was made by something else.
void check_table(const ModelTensors& tensors, std::optional<std::size_t> table, LayerBuilder& builder) {
  constexpr std::size_t size = 16;
  constexpr float least = 1e-6F;  // of differences: tools round the quotients of FP4 in their own ways
  if (!table || !builder.ok()) return;
  std::array<float, size> stored{};
  const Result<std::vector<std::byte>> bytes = tensors.read(*table);
  if (!bytes) return builder.fail(bytes.error().message, table);
  const bool fits = tensors[*table].dtype == DType::float32 && bytes->size() == sizeof stored;
  if (!builder.expect(fits, table, "its 16 numbers are float32")) return;
  std::memcpy(stored.data(), bytes->data(), sizeof stored);
  const std::vector<float> known = code_numbers(builder.layer().coding, builder.layer().scheme);
  for (std::size_t code = 0; code < size; ++code) {
    if (std::abs(stored[code] - known[code]) <= least) continue;
    return builder.fail(
        fmt::format("code {} means {}, and that of {} is {}", code, stored[code], builder.layer().scheme, known[code]),
        table);
  }
}

void add_four_bits(const ModelTensors& tensors, std::size_t state_index, std::vector<Layer>& layers) {
  const std::string& name = tensors[state_index].name;
  const std::string weight = name.substr(0, name.find(state_mark));
  const std::optional<std::size_t> codes = tensors.find(weight);
  if (!codes) return;
  LayerBuilder builder(tensors, "bitsandbytes", weight, *codes);
  Layer& layer = builder.layer();
  layer.scheme = name.substr(weight.size() + state_mark.size());
  layer.parts.push_back({.role = PartRole::state, .tensor = state_index});
  layer.coding = {.element = DType::undefined, .bits = 4, .packing = BlockPacking::flat};
  const std::optional<std::size_t> scales = builder.need(weight + ".absmax", PartRole::scales);
  const std::optional<std::size_t> table = builder.add(weight + ".quant_map", PartRole::table);
  const BlockFormat* const format = find_block_format(layer.scheme, layer.spelling);
  if (format == nullptr || format->table.empty() || format->scheme != layer.scheme)
    builder.fail("codes of bitsandbytes are nf4 or fp4");
  check_table(tensors, table, builder);
  const Result<std::vector<std::byte>> bytes = tensors.read(state_index);
  Json state;
  if (bytes) {
    state = Json::parse(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()), nullptr, false);
  } else {
    builder.fail(bytes.error().message, state_index);
  }
  if (!state.is_object()) builder.fail("its description is not JSON", state_index);
  if (std::string problem = key_problem(state, state_keys, "its description", tensors.accepted()); !problem.empty()) {
    builder.fail(std::move(problem), state_index);
  }
  if (state.contains("quant_type") && text_in(state, "quant_type") != layer.scheme) {
    builder.fail(fmt::format("its quant_type is not {}, as its name says", layer.scheme), state_index);
  }
  if (builder.ok()) {
    layer.shape = sizes_in(state, "shape", 0);
    if (std::ranges::any_of(layer.shape, [](std::int64_t size) { return size < 0; })) layer.shape.clear();
    const std::int64_t block = size_in(state, "blocksize").value_or(not_a_size);
    std::uint64_t count = 1;
    bool large = false;
    for (const std::int64_t size : layer.shape) large = large || __builtin_mul_overflow(count, size, &count);
    layer.block_columns = block;
    if (layer.shape.empty() || large) {
      builder.fail("its description has no shape", state_index);
    } else if (block < 1 || block % 2 != 0) {
      builder.fail("its description has no blocksize that is even and above 0", state_index);
    } else if (builder.expect(holds_pairs(tensors[*codes], count), {},
                              "{} says that the weight is {}, which takes {} bytes of codes", name,
                              shape_text(layer.shape), count / 2 + count % 2)) {
      const auto blocks = static_cast<std::int64_t>(ceil_div(count, static_cast<std::uint64_t>(block)));
      const bool nested = tensors[*scales].dtype == DType::uint8;
      builder.expect(
          (nested || tensors[*scales].dtype == DType::float32) && std::cmp_equal(tensors[*scales].count, blocks),
          scales, "blocks of {} need {} scales", block, blocks);
      if (nested) complete_nested(tensors, weight, state, blocks, builder);
    }
  }
  layers.push_back(std::move(builder).done());
}

void add_int8(const ModelTensors& tensors, std::size_t scales, const std::string& module, std::vector<Layer>& layers) {
  const std::optional<std::size_t> codes = tensors.find(tensor_of(module, "weight"));
  if (!codes) return;
  LayerBuilder builder(tensors, "bitsandbytes", tensor_of(module, "weight"), *codes, scales);
  Layer& layer = builder.layer();
  layer.scheme = "int8-channel";
  layer.coding = {.element = DType::int8, .factor = inverse_127};
  const std::optional<std::size_t> order = builder.add(tensor_of(module, "weight_format"), PartRole::state);
  if (order && !tensors.has_only(*order, std::byte{0})) {
    builder.fail("its codes are in the tiles of a tensor core, and those in rows (0) alone are decoded", order);
  }
  builder.need_codes_of({DType::int8}, 2);
  builder.set_shape(1, 1);
  layer.block_rows = 1;
  layer.block_columns = whole_row(layer.shape);
  if (tensors[scales].dtype != DType::float32) builder.fail("the magnitudes of rows are float32", scales);
  builder.check_grid(scales, "bitsandbytes");
  layers.push_back(std::move(builder).done());
}

void find_bitsandbytes(const ModelTensors& tensors, const Description* /*description*/, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (name.find(state_mark) != std::string::npos) add_four_bits(tensors, i, layers);
    if (const std::optional<std::string> module = module_with(name, "SCB")) add_int8(tensors, i, *module, layers);
  }
}

constexpr Method bitsandbytes_method(std::string_view name) {
  return {.name = name,
          .list = "llm_int8_skip_modules",
          .list_is_open = true,
          .rest_is_quantized = true,
          .skips_head = true};
}

}  // namespace

constinit const Spelling layouts::bitsandbytes = {
    .name = "bitsandbytes",
    .methods = {bitsandbytes_method("bitsandbytes"), bitsandbytes_method("bitsandbytes_4bit"),
                bitsandbytes_method("bitsandbytes_8bit")},
    .keys = keys_of_bitsandbytes,
    .describes_itself = true,
    .find = find_bitsandbytes,
};

}  // namespace tensorcast::quantized
