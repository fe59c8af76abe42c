// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/stored_scheme.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "block/format/scale_tiles.hpp"
#include "quantized/names/module_name.hpp"

namespace tensorcast::quantized {
namespace {

// The fewest elements that are whole bytes, and these.
std::int64_t elements_together(const BlockCoding& coding) noexcept { return 8 / std::gcd(coding.bits, 8); }
std::int64_t bytes_together(const BlockCoding& coding) noexcept { return coding.bits / std::gcd(coding.bits, 8); }

std::vector<std::int64_t> shape_of_scales(ScaleShape shape, const LayerContent& content) {
  if (content.block_rows == 0) return {};
  std::vector<std::int64_t> grid = grid_shape(content);
  switch (shape) {
    case ScaleShape::grid:
      break;
    case ScaleShape::rows:
      grid.pop_back();
      break;
    case ScaleShape::with_ones:
      grid = {grid[0], 1, grid[1], 1};
      break;
  }
  return grid;
}

// As a matrix of whole tiles.
std::vector<std::int64_t> shape_of_tiles(const LayerContent& content, WrittenLayer& written) {
  std::vector<std::int64_t> grid = grid_shape(content);
  written.need(grid.size() == 2, "ComfyUI's scales in tiles are of matrices, and the weight is {}",
               shape_text(content.shape));
  grid[0] = blocks_of(grid[0], block::tile_rows) * block::tile_rows;
  grid[1] = blocks_of(grid[1], block::tile_columns) * block::tile_columns;
  return grid;
}

}  // namespace

const StoredScheme* find_stored(std::span<const StoredScheme> rows, const LayerContent& content) noexcept {
  const auto found = std::ranges::find_if(rows, [&](const StoredScheme& row) {
    return row.scheme == content.scheme && row.coding.element == content.coding.element &&
           row.coding.bits == content.coding.bits;
  });
  return found == rows.end() ? nullptr : &*found;
}

void read_as(const StoredScheme& row, LayerBuilder& builder, std::size_t most_dimensions) {
  Layer& layer = builder.layer();
  layer.scheme = row.scheme;
  layer.coding = row.coding;
  if (row.block() != 0) {
    layer.block_rows = 1;
    layer.block_columns = row.block();
  }
  builder.need_codes_of({row.codes_type()}, most_dimensions);
  builder.set_shape(bytes_together(row.coding), elements_together(row.coding));
}

void spell_as(const StoredScheme& row, const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  BlockCoding& coding = written.layer.coding;
  if (row.coding.bits < 8 || row.coding.swizzled) need_whole_groups(content, row.block(), written);
  coding.packing = row.coding.packing;
  coding.global = row.coding.global;
  coding.positive_zero = row.coding.positive_zero;
  coding.swizzled = row.coding.swizzled;
  written.layer.name = tensor_of(module, "weight");
  add_tensor(written, PartRole::codes, tensor_of(module, row.codes), row.codes_type(),
             packed_shape(content, elements_together(row.coding), bytes_together(row.coding)));
  add_tensor(written, PartRole::scales, tensor_of(module, row.scales),
             row.coding.scale == DType::float8_e8m0fnu ? row.e8m0_type : content.scales(),
             coding.swizzled ? shape_of_tiles(content, written) : shape_of_scales(row.scale_shape, content));
  if (row.global.empty()) return;
  // compressed-tensors has a list of one divisor.
  const auto globals = static_cast<std::int64_t>(content.globals);
  add_tensor(written, PartRole::global_scale, tensor_of(module, row.global), DType::float32,
             globals == 1 && coding.global == GlobalScale::factor ? std::vector<std::int64_t>()
                                                                  : std::vector<std::int64_t>{globals});
}

void add_input_scale(const LayerContent& content, WrittenLayer& written, std::string_view name,
                     std::vector<std::int64_t> shape) {
  if (content.input_scale == GlobalScale::none) return;
  add_tensor(written, PartRole::activations, tensor_of(module_of(content.name), name), DType::float32,
             std::move(shape));
}

}  // namespace tensorcast::quantized
