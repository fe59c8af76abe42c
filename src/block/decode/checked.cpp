// SPDX-License-Identifier: Apache-2.0
#include "block/decode/checked.hpp"

#include <cstring>
#include <limits>

#include "block/disjoint.hpp"
#include "block/format/description.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::block {
namespace {

// Zero points, biases and scales that are not in tiles: one for each block.
Result<void> check_grid(const TensorView& view, const GridSize& grid, const char* what) {
  TRY(check_bytes(view, what));
  if (has_dimensions(view.shape, {grid.matrices, grid.rows, grid.columns})) return {};
  return invalid(formatted("{} have other dimensions than the {} x {} blocks", what, grid.rows, grid.columns));
}

// An array that the coding does not read, and whose numbers would be passed over.
Result<void> refuse_unused(const BlockTensor& tensor) {
  const bool is_gguf = tensor.coding.gguf != GgufBlock::none;
  struct Array {
    const TensorView& view;
    const char* name;
    bool is_read;
  };
  for (const Array& array :
       {Array{tensor.scales, "scales", !is_gguf},
        Array{tensor.global_scale, "global_scale", tensor.coding.global != GlobalScale::none},
        Array{tensor.zero_points, "zero_points", !is_gguf}, Array{tensor.biases, "biases", !is_gguf},
        Array{tensor.group_index, "group_index", !is_gguf}}) {
    if (array.is_read || array.view.dtype == DType::undefined) continue;
    return invalid(formatted("`{}` is given, which this format does not have", array.name));
  }
  const bool has_table = !is_gguf && tensor.coding.element == DType::undefined;
  if (has_table || tensor.table.empty()) return {};
  return invalid("`table` is given, which this format does not have");
}

// What a description must say before the sizes of its arrays are asked for.
Result<void> check_fields(const BlockTensor& tensor) {
  TRY(check_coding(tensor.coding));
  const BlockCoding& coding = tensor.coding;
  TRY(refuse_unused(tensor));
  if (coding.gguf != GgufBlock::none) return {};
  if (coding.element == DType::undefined) {
    const std::size_t codes = std::size_t{1} << coding.bits;
    if (tensor.table.size() < codes || tensor.table.data() == nullptr) {
      return invalid(formatted("`table` has {} numbers, but there are {} codes", tensor.table.size(), codes));
    }
  }
  if (tensor.block_rows < 0 || tensor.block_columns < 0) {
    return invalid(formatted("blocks of a negative size: {} x {}", tensor.block_rows, tensor.block_columns));
  }
  return {};
}

// Whether a type may hold the bits of codes of another type: bytes, words of several codes, or one code that has no
// sign where the code has none. Numbers of int4, of two's complement, are not codes from 0 to 15, and an int32 is no
// word of four float8 or int8 numbers.
bool may_contain(DType type, const CodeMatrices& codes) noexcept {
  if (family(type) != Family::integer) return false;
  const int width = bit_width(type);
  const bool is_signed_number = codes.element == DType::int8;
  if (width == 8) return true;
  if (width == codes.bits) return codes.packing != BlockPacking::gguf && is_signed(type) == is_signed_number;
  return width == 32 && (codes.bits < 8 || codes.element == DType::uint8);
}

// The shape of codes, which dequantize() may have a part of alone.
Result<void> check_codes(const TensorView& view, const CodeMatrices& codes) {
  const std::size_t rows = codes.matrix_bytes == 0 ? 0 : codes.count * (codes.matrix_bytes / codes.row_bytes);
  if (view.dtype != codes.element && !may_contain(view.dtype, codes)) {
    return invalid(formatted("the codes have type {}, expected uint8{}", name(view.dtype),
                             codes.element == DType::undefined || codes.element == DType::uint8
                                 ? ""
                                 : formatted(" or {}", name(codes.element))),
                   "where they are the right bits in another type, view them as uint8");
  }
  if (!has_rows(view.shape, rows)) return invalid(formatted("the shape of the codes has no {} rows", rows));
  return {};
}

Result<std::vector<std::int32_t>> read_group_index(const BlockTensor& tensor, std::size_t rows, std::size_t groups) {
  const TensorView& view = tensor.group_index;
  std::vector<std::int32_t> index;
  if (view.dtype == DType::undefined) return index;
  TRY(check_bytes(view, "the index of groups"));
  if (view.dtype != DType::int32 || view.bytes.size() != rows * sizeof(std::int32_t)) {
    return invalid(formatted("the index of groups is not {} int32 numbers", rows));
  }
  index.resize(rows);
  std::memcpy(index.data(), view.bytes.data(), view.bytes.size());
  for (const std::int32_t group : index) {
    if (group < 0 || static_cast<std::size_t>(group) >= groups) {
      return invalid(formatted("group {} of {}", group, groups));
    }
  }
  return index;
}

Error missing_global(GlobalScale kind) {
  const bool divides = kind == GlobalScale::divisor;
  return invalid(divides ? "`global_scale` is missing, which divides all scales"
                         : "`global_scale` is missing, which multiplies all scales",
                 divides ? "pass weight_global_scale of the checkpoint; with another spelling it is a factor"
                         : "pass weight_scale_2 of the checkpoint, or 1 if there is none; a divisor, as "
                           "weight_global_scale is, needs the spelling compressed-tensors");
}

// One factor or divisor, or one for each matrix.
Result<std::vector<float>> read_globals(const TensorView& view, GlobalScale kind, std::size_t matrices) {
  if (view.dtype == DType::undefined) return missing_global(kind);
  const Result<std::size_t> count = element_count(view.shape);
  if (!count || (*count != 1 && *count != matrices)) {
    return invalid(formatted("the global scale is not 1 or {} numbers", matrices));
  }
  TRY(check_bytes(view, "the global scales"));
  const ScaleGrid grid = TRY(scale_grid(view, {*count, 1, 1}, DType::undefined, false, "global scales"));
  std::vector<float> globals(*count);
  for (std::size_t i = 0; i < globals.size(); ++i) grid.read(i, 0, 0, std::span(globals).subspan(i, 1));
  return globals;
}

}  // namespace

Result<Checked> check(const BlockTensor& tensor) {
  TRY(check_fields(tensor));
  const BlockCoding& coding = tensor.coding;
  Checked made;
  made.tensor = &tensor;
  const std::size_t count = TRY(element_count(tensor.shape));
  // Scales in tiles are up to 512 times as many as blocks.
  if (count > std::numeric_limits<std::size_t>::max() / 4096) return invalid("the weight is too large");
  const std::size_t rank = tensor.shape.size();
  made.columns = rank == 0 ? 1 : static_cast<std::size_t>(tensor.shape.back());
  made.rows = rank < 2 ? 1 : static_cast<std::size_t>(tensor.shape[rank - 2]);
  made.transposed = is_transposed(coding);

  CodeMatrices& codes = made.codes;
  codes.packing = coding.packing;
  codes.element = coding.element;
  codes.bits = coding.bits;
  codes.gguf = coding.gguf;
  codes.rows = made.transposed ? made.columns : made.rows;
  codes.columns = made.transposed ? made.rows : made.columns;
  codes.count = count == 0 ? 0 : count / (made.rows * made.columns);
  if (coding.packing == BlockPacking::flat) {
    codes.count = codes.rows = 1;
    codes.columns = count;
  }
  if (count == 0) return made;

  const std::size_t stored = TRY(element_count(tensor.codes.shape));
  TRY(lay_out(codes, storage_bytes(tensor.codes.dtype, stored), "the codes"));
  TRY(check_codes(tensor.codes, codes));
  if (coding.gguf != GgufBlock::none) return made;

  made.block_rows = tensor.block_rows == 0 ? codes.rows : static_cast<std::size_t>(tensor.block_rows);
  made.block_columns = tensor.block_columns == 0 ? codes.columns : static_cast<std::size_t>(tensor.block_columns);
  const GridSize grid{codes.count, (codes.rows - 1) / made.block_rows + 1,
                      (codes.columns - 1) / made.block_columns + 1};
  made.scales = TRY(scale_grid(tensor.scales, grid, coding.scale, coding.swizzled, "scales"));
  TRY(made.scales.is_swizzled() ? check_bytes(tensor.scales, "the scales")
                                : check_grid(tensor.scales, grid, "the scales"));
  if (tensor.zero_points.dtype != DType::undefined) {
    made.zeros = TRY(zero_grid(tensor.zero_points, grid, coding));
    TRY(made.zeros.is_packed() ? check_bytes(tensor.zero_points, "the zero points")
                               : check_grid(tensor.zero_points, grid, "the zero points"));
  }
  if (tensor.biases.dtype != DType::undefined) {
    made.biases = TRY(scale_grid(tensor.biases, grid, DType::undefined, false, "biases"));
    TRY(check_grid(tensor.biases, grid, "the biases"));
  }
  if (coding.global != GlobalScale::none) {
    made.globals = TRY(read_globals(tensor.global_scale, coding.global, codes.count));
  }
  made.group_of_row = TRY(read_group_index(tensor, codes.rows, grid.rows));
  // Most indices only say that groups follow each other.
  bool is_in_order = true;
  for (std::size_t i = 0; i < made.group_of_row.size(); ++i) {
    is_in_order = is_in_order && static_cast<std::size_t>(made.group_of_row[i]) == i / made.block_rows;
  }
  if (is_in_order) made.group_of_row.clear();
  return made;
}

Result<CodeRange> range_of(const Checked& checked, std::int64_t first, std::int64_t count) {
  const CodeMatrices& codes = checked.codes;
  const Result<std::size_t> total = element_count(checked.tensor->shape);
  const std::size_t all_rows = checked.columns == 0 ? 0 : *total / checked.columns;
  if (first < 0 || count < 0 || static_cast<std::uint64_t>(first) > all_rows ||
      static_cast<std::uint64_t>(count) > all_rows - static_cast<std::uint64_t>(first)) {
    return invalid(formatted("{} rows from row {} on, but the weight has {}", count, first, all_rows));
  }
  if (count == 0 || codes.count == 0) return CodeRange{};
  const auto begin = static_cast<std::uint64_t>(first);
  const std::uint64_t end = begin + static_cast<std::uint64_t>(count);
  if (codes.packing == BlockPacking::flat) {
    constexpr std::uint64_t aligned = CodeMatrices::alignment / 2;  // bytes; the reader begins at whole ones
    return CodeRange{begin * checked.columns / 2 / aligned * aligned, (end * checked.columns + 1) / 2};
  }
  if (has_whole_matrices(checked.coding())) {
    return CodeRange{begin / checked.rows * codes.matrix_bytes, ((end - 1) / checked.rows + 1) * codes.matrix_bytes};
  }
  return CodeRange{begin * codes.row_bytes, end * codes.row_bytes};
}

Result<void> check_target_memory(const Checked& checked, std::span<const std::byte> codes,
                                 std::span<const std::byte> target) {
  const BlockTensor& tensor = *checked.tensor;
  return check_disjoint(
      NamedBytes{"the target", target}, NamedBytes{"the codes", codes}, NamedBytes{"the scales", tensor.scales.bytes},
      NamedBytes{"the zero points", tensor.zero_points.bytes}, NamedBytes{"the biases", tensor.biases.bytes},
      NamedBytes{"the table", std::as_bytes(tensor.table)});
}

}  // namespace tensorcast::block
